//! Flash translation layer: mapping, frontiers, garbage collection, recovery.
