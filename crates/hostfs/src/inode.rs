//! One file or directory in memory, and one open file.

use std::ops::Range;

use flashwise_hint::{DataClass, FileId};

use crate::cache::FilePages;
use crate::call::OpenFlags;
use crate::directory::Directory;
use crate::extents::ExtentMap;
use crate::journal::Tid;
use crate::layout::{FsBlock, Ino};

/// Size of a block and of a page \[bytes\].
pub(crate) const PAGE: u64 = 4096;

/// A file or directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    pub(crate) ino: Ino,
    /// Identity of the file: inode numbers are used again, these are not.
    pub(crate) id: FileId,
    /// Block of the inode table it is in.
    pub(crate) table_block: FsBlock,
    /// Names.
    pub(crate) links: u32,
    /// Descriptors.
    pub(crate) opens: u32,
    /// Size \[bytes\].
    pub(crate) size: u64,
    pub(crate) extents: ExtentMap,
    /// Blocks of the extent tree outside the inode.
    pub(crate) tree: Vec<FsBlock>,
    /// The tree lacks a block, for want of space.
    pub(crate) is_tree_short: bool,
    /// Calls under way that use it; each counts in `opens` as well, so that it stays.
    pub(crate) n_calls: u32,
    /// Direct reads and writes on their way.
    pub(crate) n_direct: u32,
    /// A file without a name that may get one (`O_TMPFILE`).
    pub(crate) is_linkable: bool,
    pub(crate) pages: FilePages,
    /// Since when there have been dirty pages \[ns\].
    pub(crate) dirty_since_ns: Option<u64>,
    /// Dirty pages that have no blocks yet, only room set aside for them.
    pub(crate) n_reserved: u32,
    /// Transaction with the last change of anything.
    pub(crate) sync_tid: Tid,
    /// Transaction with the last change that is needed to find the data.
    pub(crate) datasync_tid: Tid,
    /// A sync wrote blocks that become part of the file when the write has ended.
    pub(crate) converts: bool,
    pub(crate) mtime_ns: u64,
    pub(crate) atime_ns: u64,
    /// Cut to nothing since it was opened, so that its close writes it back.
    pub(crate) was_cut: bool,
    pub(crate) class: DataClass,
    /// Removed, while writes of it were queued.
    pub(crate) is_gone: bool,
    /// Write-back under way.
    pub(crate) writeback: Writeback,
    /// Entries, of a directory.
    pub(crate) dir: Option<Box<Directory>>,
    /// Blocks that a file system without a journal has to write with the first fsync,
    /// because they hold the name.
    pub(crate) name_blocks: Vec<FsBlock>,
}

/// Writes of one file that are on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writeback {
    /// Requests that have not reached the device.
    pub(crate) n_queued: u32,
    /// When the last of those that have is done \[ns\].
    pub(crate) end_ns: u64,
    /// Who waits for all of them.
    pub(crate) waiters: Vec<u32>,
}

impl Inode {
    /// Whether pages of it are on their way to the device.
    pub(crate) fn is_writing(&self, now_ns: u64) -> bool {
        self.writeback.n_queued > 0 || self.writeback.end_ns > now_ns
    }

    /// Pages up to the end of the file.
    pub(crate) fn n_pages(&self) -> u32 {
        self.size.div_ceil(PAGE) as u32
    }
}

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    pub(crate) inode: u32,
    pub(crate) flags: OpenFlags,
    pub(crate) ahead: ReadAhead,
}

/// Where a reader is and how far was read ahead for it. Source: Linux mm/readahead.c
/// (on-demand read-ahead).
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadAhead {
    /// Window that was read last \[pages\].
    start: u32,
    size: u32,
    /// Pages at its end that were read before they were asked for.
    ahead: u32,
    /// Page after the last one that was read.
    next: u32,
    /// Pages on their way.
    pub(crate) pending: Vec<(Range<u32>, u64)>,
}

impl ReadAhead {
    /// First window for a request of `n` pages. Source: mm/readahead.c
    /// `get_init_ra_size`.
    fn first_size(n: u32, max: u32) -> u32 {
        let size = n.max(1).next_power_of_two();
        match size {
            _ if size <= max / 32 => size * 4,
            _ if size <= max / 4 => size * 2,
            _ => max,
        }
    }

    /// Window after one of `size` pages. Source: mm/readahead.c `get_next_ra_size`.
    fn next_size(size: u32, max: u32) -> u32 {
        match size {
            _ if size < max / 16 => size * 4,
            _ if size <= max / 2 => size * 2,
            _ => max,
        }
    }

    /// Longest window for a request of `n` pages: a request longer than the read-ahead is
    /// read whole, up to the longest request. Source: mm/readahead.c `ractl_max_pages`.
    fn longest(n: u32, max: u32, io_max: u32) -> u32 {
        if n > max { max.max(n.min(io_max)) } else { max }
    }

    /// `page` is not in memory, and `n` pages are wanted from there: the pages to read now.
    /// `max` is the longest read-ahead, `io_max` the longest request.
    pub(crate) fn miss(&mut self, page: u32, n: u32, max: u32, io_max: u32) -> Range<u32> {
        let max = Self::longest(n, max, io_max);
        if max == 0 {
            return page..page.saturating_add(n.clamp(1, io_max));
        }
        if self.size > 0 && page == self.start.saturating_add(self.size) {
            // Exactly where the last window ended.
            self.start = page;
            self.size = Self::next_size(self.size, max);
            self.ahead = self.size;
        } else if page == 0 || n > max || page == self.next || page + 1 == self.next {
            self.start = page;
            self.size = Self::first_size(n, max);
            self.ahead = if self.size > n { self.size - n } else { self.size };
        } else {
            // A read at random: no more than was asked for.
            return page..page.saturating_add(n.min(max));
        }
        self.start..self.start.saturating_add(self.size)
    }

    /// Pages to read beside, because `range` reaches those that were read ahead; `n` pages
    /// are wanted.
    pub(crate) fn hit(
        &mut self,
        range: &Range<u32>,
        n: u32,
        max: u32,
        io_max: u32,
    ) -> Option<Range<u32>> {
        let max = if max == 0 { 0 } else { Self::longest(n, max, io_max) };
        if self.size == 0 || self.ahead == 0 || max == 0 {
            return None;
        }
        let mark = self.start.saturating_add(self.size - self.ahead);
        if !range.contains(&mark) {
            return None;
        }
        self.start = self.start.saturating_add(self.size);
        self.size = Self::next_size(self.size, max);
        self.ahead = self.size;
        Some(self.start..self.start.saturating_add(self.size))
    }

    /// Pages up to `next` were read.
    pub(crate) fn read_to(&mut self, next: u32) {
        self.next = next;
    }

    /// When all pages of `range` that are on their way have come \[ns\].
    pub(crate) fn ready_ns(&mut self, range: &Range<u32>, now_ns: u64) -> u64 {
        self.pending.retain(|(_, at_ns)| *at_ns > now_ns);
        let touching =
            self.pending.iter().filter(|(r, _)| r.start < range.end && range.start < r.end);
        touching.map(|(_, at_ns)| *at_ns).max().unwrap_or(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_as_the_kernel_grows_them() {
        // 128 KiB of read-ahead, reads of one page: 4 pages, then 8, 16, 32, 32.
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.miss(0, 1, 32, 256), 0..4);
        ahead.read_to(1);
        assert_eq!(ahead.hit(&(1..2), 1, 32, 256), Some(4..12));
        assert_eq!(ahead.hit(&(2..4), 1, 32, 256), None);
        assert_eq!(ahead.hit(&(4..5), 1, 32, 256), Some(12..28));
        assert_eq!(ahead.hit(&(12..13), 1, 32, 256), Some(28..60));
        assert_eq!(ahead.hit(&(28..29), 1, 32, 256), Some(60..92));
    }

    #[test]
    fn a_large_read_is_read_whole_and_a_random_one_alone() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.miss(0, 256, 32, 256), 0..256);
        assert_eq!(ahead.hit(&(0..256), 256, 32, 256), Some(256..512));
        ahead.read_to(512);
        assert_eq!(ahead.miss(1000, 2, 32, 256), 1000..1002);
        assert_eq!(ReadAhead::default().miss(7, 3, 0, 256), 7..10);
    }
}
