//! What is there before a run: the directories of all file sets, then the preallocated
//! files of each, written from front to back and closed.
//!
//! Filebench makes them one after another too, unless a set says `paralloc`.

use flashwise_hostfs::{Call, Fd, OpenFlags};

use super::fileset::FileSet;

/// How many bytes a preparing write has. Source: filebench, `FILE_ALLOC_BLOCK`.
const PIECE_BYTES: u64 = 1 << 20;

/// The only descriptor that is open while preparing.
const FD: Fd = Fd(0);

/// Where the preparation stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prepare {
    /// Set under way.
    set: usize,
    /// Directories of it that were made.
    n_dirs: usize,
    /// File that is open, and how much of it is written \[bytes\].
    file: Option<(u32, u64)>,
}

impl Prepare {
    /// The next call, or `None` when all is there.
    pub(super) fn next(&mut self, sets: &mut [FileSet]) -> Option<Call> {
        loop {
            let set = sets.get_mut(self.set)?;
            if let Some((file, written)) = &mut self.file {
                let left = set.file(*file).size - *written;
                if left == 0 {
                    self.file = None;
                    return Some(Call::Close { fd: FD });
                }
                let (offset, len) = (*written, left.min(PIECE_BYTES));
                *written += len;
                return Some(Call::Write { fd: FD, offset, len });
            }
            if let Some(path) = set.dirs().get(self.n_dirs) {
                self.n_dirs += 1;
                return Some(Call::Mkdir { path: *path });
            }
            if let Some(file) = set.next_preallocated() {
                self.file = Some((file, 0));
                let flags = OpenFlags { create: true, ..OpenFlags::PLAIN };
                return Some(Call::Open { path: set.file(file).path, fd: FD, flags });
            }
            *self = Self { set: self.set + 1, ..Self::default() };
        }
    }
}
