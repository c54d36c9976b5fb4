//! What is asked of the allocator, what it answers, and its settings.

use thiserror::Error;

use crate::layout::{FsBlock, Ino};

/// Settings, with the names of `/sys/fs/ext4/<device>/` where they have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocOptions {
    /// Blocks are set aside for files that grow. Off, no request is enlarged (as if each
    /// carried `EXT4_MB_HINT_NOPREALLOC`); ext4 itself can only turn the shared half off,
    /// with `mb_group_prealloc` 0.
    pub prealloc: bool,
    /// Files up to this size share a space, larger ones are streams \[blocks\]. Source:
    /// `mballoc.h`, `MB_DEFAULT_STREAM_THRESHOLD`.
    pub mb_stream_req: u32,
    /// Length of a shared space \[blocks\]. Source: `mballoc.h`, `MB_DEFAULT_GROUP_PREALLOC`.
    pub mb_group_prealloc: u32,
    /// Free runs looked at before one that is long enough is taken, though a better one may
    /// follow. Source: `mballoc.h`, `MB_DEFAULT_MIN_TO_SCAN`.
    pub mb_min_to_scan: u32,
    /// Free runs looked at before the best is taken, though it is too short. Source:
    /// `mballoc.h`, `MB_DEFAULT_MAX_TO_SCAN`.
    pub mb_max_to_scan: u32,
    /// Orders by which a request may be cut before a slow search. Source: `mballoc.h`,
    /// `MB_DEFAULT_BEST_AVAIL_TRIM_ORDER`.
    pub mb_best_avail_max_trim_order: u32,
    /// CPUs, each of which has its own shared spaces; with at least four groups for each,
    /// also its own place where streams go on. Assumed: 8. Source of the rule: Linux 6.17,
    /// `s_mb_nr_global_goals`.
    pub n_cpus: u32,
    /// The file system is mounted with delayed allocation. Without it, new files start in
    /// one of 16 parts of their group, by thread. Source: `balloc.c`,
    /// `ext4_inode_to_goal_block`, where it is the process number.
    pub delalloc: bool,
}

impl Default for AllocOptions {
    fn default() -> Self {
        Self {
            prealloc: true,
            mb_stream_req: 16,
            mb_group_prealloc: 512,
            mb_min_to_scan: 10,
            mb_max_to_scan: 200,
            mb_best_avail_max_trim_order: 3,
            n_cpus: 8,
            delalloc: true,
        }
    }
}

/// What blocks are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockUse {
    /// Contents of a regular file.
    #[default]
    Data,
    /// Contents of a directory. Nothing is set aside.
    Directory,
    /// A block of the extent tree of a file or directory. May use the pool that is kept for
    /// it, so that data written back finds room for its tree.
    ExtentTree,
}

/// A place of a file that has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Block of the file.
    pub logical: u32,
    /// Block of the device.
    pub block: FsBlock,
}

/// A request for blocks, as `ext4_map_blocks` makes it.
///
/// How ext4 cuts its requests shows in the result. Writing back, it asks for all dirty blocks
/// in a row, at most 2048; after a short answer it asks for the rest of the folio (the
/// naturally aligned power of two, at most 512 blocks, one write put into the page cache) that
/// was cut, and goes on from there. Without delayed allocation it asks block by block. Direct
/// writes ask for all at once. Sources: `inode.c`, `mpage_process_folio_buffers`,
/// `ext4_block_write_begin`, `ext4_iomap_alloc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whose.
    pub ino: Ino,
    /// What for.
    pub usage: BlockUse,
    /// First block of the file.
    pub logical: u32,
    /// How many, at least 1. None of them has a block yet.
    pub len: u32,
    /// Size of the file \[blocks\], the part that is being written included where ext4 has
    /// counted it in: with delayed allocation it has, else the size before the write.
    pub file_blocks: u32,
    /// The last block before `logical` that is mapped.
    pub left: Option<Mapped>,
    /// The first block after `logical` that is mapped.
    pub right: Option<Mapped>,
    /// Where to look first; `None`: by the mapped blocks, then by the group of the inode.
    pub goal: Option<FsBlock>,
    /// Group of the inode (`Layout::group_of_inode`).
    pub inode_group: u32,
    /// Thread that asks: picks the shared space.
    pub cpu: u32,
    /// The blocks were counted by `reserve` when they were written.
    pub reserved: bool,
    /// The file is open for writing. Data that is written back after the last close gets no
    /// more than it needs.
    pub open_for_write: bool,
    /// Take exactly what is asked. `fallocate` asks so, up to 32767 blocks, the longest extent
    /// that is not written; more is enlarged as data is. Source: `extents.c`,
    /// `ext4_alloc_file_blocks`.
    pub exact: bool,
}

impl Request {
    /// Data of an open file, written back with delayed allocation.
    pub fn data(ino: Ino, inode_group: u32, logical: u32, len: u32, file_blocks: u32) -> Self {
        Self {
            ino,
            usage: BlockUse::Data,
            logical,
            len,
            file_blocks,
            left: None,
            right: None,
            goal: None,
            inode_group,
            cpu: 0,
            reserved: true,
            open_for_write: true,
            exact: false,
        }
    }
}

/// Blocks that were given, all in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block of the file.
    pub logical: u32,
    /// First block of the device.
    pub start: FsBlock,
    /// How many; may be fewer than asked.
    pub len: u32,
}

impl Extent {
    /// The group whose bitmap and descriptor changed.
    pub fn group(&self) -> u32 {
        self.start.group()
    }

    /// Its last place.
    pub fn last(&self) -> Mapped {
        let more = self.len - 1;
        Mapped { logical: self.logical + more, block: FsBlock(self.start.0 + more) }
    }
}

/// The file system is full.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "no space left on the file system: {wanted} blocks are wanted and {available} may be \
     used; delete files or use a larger device"
)]
pub struct NoSpace {
    /// Blocks asked for.
    pub wanted: u32,
    /// Blocks that are free and not promised to others.
    pub available: u64,
}

/// Part of the blocks kept for extent trees: one in 50. Source: `super.c`,
/// `ext4_calculate_resv_clusters`.
pub(super) const POOL_PART: u32 = 50;
/// Most blocks kept for extent trees. Source: same.
pub(super) const POOL_MAX: u32 = 4096;
/// Groups from which on lists find a group rather than a walk over all. Source: `super.c`,
/// `MB_DEFAULT_LINEAR_SCAN_THRESHOLD`.
pub(super) const LISTS_FROM_GROUPS: u32 = 16;
/// Smallest power of two searched for as a buddy, as a number of bits. Source: `mballoc.h`,
/// `MB_DEFAULT_ORDER2_REQS`.
pub(super) const ORDER2_REQ: u32 = 2;
/// Groups of each place where streams go on. Source: `mballoc.c`, `ext4_mb_init`.
pub(super) const GROUPS_PER_STREAM_GOAL: u32 = 4;

/// The range of a file \[blocks\] a request is enlarged to, before neighbours cut it. Source:
/// `ext4_mb_normalize_request`: powers of two up to 1 MiB for the whole file, then aligned
/// chunks of 2, 4 and 8 MiB.
pub(super) fn enlarged(logical: u32, len: u32, file_blocks: u32) -> (u32, u32) {
    const KIB: u64 = 1024;
    let bytes = logical.saturating_add(len).max(file_blocks);
    let n_bytes = u64::from(bytes) * 4 * KIB;
    let chunk = |mib: u32| {
        let blocks = mib * 256;
        (logical - logical % blocks, blocks)
    };
    match n_bytes {
        n if n <= 1024 * KIB => (0, bytes.next_power_of_two().max(4)),
        n if n <= 4096 * KIB => chunk(2),
        n if n <= 8192 * KIB => chunk(4),
        _ => chunk(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_grow_with_the_file() {
        assert_eq!(enlarged(0, 1, 1), (0, 4));
        assert_eq!(enlarged(16, 1, 17), (0, 32));
        assert_eq!(enlarged(255, 1, 256), (0, 256));
        assert_eq!(enlarged(256, 1, 257), (0, 512));
        assert_eq!(enlarged(600, 10, 610), (512, 512));
        assert_eq!(enlarged(1500, 10, 1510), (1024, 1024));
        assert_eq!(enlarged(5000, 1, 9000), (4096, 2048));
    }
}
