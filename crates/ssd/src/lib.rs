//! An SSD: commands, link, write buffer, presets, snapshots.
