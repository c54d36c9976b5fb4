//! Where a placement policy plugs in: it hears what happens to files and says which handle
//! a write gets.

use flashwise_hint::{FileEvent, FileId, Handle};

/// A placement policy, as the file system uses one.
pub trait Placer {
    /// Something happened to a file.
    fn event(&mut self, event: &FileEvent);

    /// The handle of a write that leaves the host at `now_ns`: `len` bytes of `file` from
    /// `offset` on. A handle the drive does not have is refused there.
    fn handle(&mut self, file: FileId, offset: u64, len: u64, now_ns: u64) -> Handle;
}
