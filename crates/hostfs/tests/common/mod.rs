//! One pattern of file operations, carried out twice: on a real ext4 in a loop device, and
//! by a harness that asks the allocator what ext4 would ask it. The harness has no journal and
//! no time: what depends on when a write ends (blocks of extent trees that are needed for a
//! while, the CPU that writes back) may differ from run to run on the real one.

pub(crate) mod modelled;
pub(crate) mod real;

use std::ops::Range;

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Through the page cache.
    Buffered,
    /// Past it (`O_DIRECT`).
    Direct,
}

/// One operation. Files are numbers, lengths and offsets are in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Make a directory in another one.
    Mkdir {
        dir: u32,
        parent: u32,
    },
    /// Make a file and open it for writing. It is in the directory of [`dir_of`].
    Create(u32, How),
    Write {
        file: u32,
        at: u32,
        len: u32,
    },
    Fallocate {
        file: u32,
        len: u32,
    },
    /// `fdatasync`.
    Sync(u32),
    Close(u32),
    Delete(u32),
    /// `syncfs`: write back and commit.
    SyncAll,
}

/// The directory a file is in: files of directory `n` are numbered from `n * 10000`; 0 is the
/// root.
pub(crate) fn dir_of(file: u32) -> u32 {
    file / 10_000
}

/// A file system to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) mib: u32,
    pub(crate) delalloc: bool,
    pub(crate) mb_stream_req: Option<u32>,
    pub(crate) mb_group_prealloc: Option<u32>,
}

impl Setup {
    pub(crate) fn new(mib: u32) -> Self {
        Self { mib, delalloc: true, mb_stream_req: None, mb_group_prealloc: None }
    }
}

/// A run of blocks of a file: first block in the file, blocks on the device.
pub(crate) type Run = (u32, Range<u32>);

/// Joins runs that go on in the file and on the device.
pub(crate) fn join(runs: impl IntoIterator<Item = Run>) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::new();
    for (logical, blocks) in runs {
        if let Some((first, last)) = joined.last_mut()
            && *first + (last.end - last.start) == logical
            && last.end == blocks.start
        {
            last.end = blocks.end;
            continue;
        }
        joined.push((logical, blocks));
    }
    joined
}
