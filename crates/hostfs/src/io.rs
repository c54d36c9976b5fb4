//! What leaves the host: requests to a block device.

use flashwise_hint::{Lba, WriteHint};

/// What a request carries, as far as the file system knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoClass {
    /// Contents of files.
    #[default]
    Data,
    /// The journal: log blocks and its superblock.
    Journal,
    /// Metadata at its own place: inode tables, bitmaps, descriptors, directories, extents.
    Metadata,
}

impl IoClass {
    /// All of them, as they are indexed.
    pub const ALL: [Self; 3] = [Self::Data, Self::Journal, Self::Metadata];
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoOp {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write,
    /// Forget blocks.
    Discard,
    /// Make everything written so far durable.
    Flush,
}

/// One request, as a driver gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// When it reaches the device \[ns since the host started\].
    pub at_ns: u64,
    /// What to do.
    pub op: IoOp,
    /// First sector; 0 for a flush.
    pub lba: Lba,
    /// Length \[512-byte sectors\]; 0 for a flush.
    pub sectors: u32,
    /// Durable before it completes.
    pub fua: bool,
    /// What the file system says about it.
    pub hint: WriteHint,
    /// What it carries.
    pub class: IoClass,
    /// Part of the run, not of its preparation.
    pub measured: bool,
}
