//! Data of files: from a write to dirty pages, and from dirty pages to bios.

use std::ops::Range;

use flashwise_hint::{DataClass, FileOp, Handle, Lba, Relation};

use crate::application::Outcome;
use crate::config::{Atime, DataMode};
use crate::files::MAX_SIZE;
use crate::fs::{FileSystem, MapFor};
use crate::inode::PAGE;
use crate::io::{IoClass, IoOp};
use crate::layout::FsBlock;
use crate::plug::{Bio, Target};

/// Most blocks allocated at once by write-back. Source: fs/ext4/inode.c,
/// `MAX_WRITEPAGES_EXTENT_LEN`.
const WRITE_BACK_MAX: u32 = 2048;

/// Sectors of a block.
pub(crate) const SECTORS: u64 = PAGE / 512;

/// Chunks of pages looked at when a call finds memory full. Each call adds fewer. Assumed.
const SHRINK_CHUNKS: usize = 256;

/// A day \[ns\].
const DAY_NS: u64 = 86_400_000_000_000;

/// The pages that hold so many bytes.
pub(crate) fn pages_of(offset: u64, len: u64) -> Range<u32> {
    (offset / PAGE) as u32..(offset + len).div_ceil(PAGE) as u32
}

impl FileSystem {
    /// Whether the bytes can be in a file at all.
    pub(crate) fn check_range(offset: u64, len: u64) -> Result<u64, Outcome> {
        offset.checked_add(len).filter(|end| *end <= MAX_SIZE).ok_or(Outcome::Invalid)
    }

    /// Pages a write covers in part and whose old contents are on the device only: they
    /// have to be read first.
    pub(crate) fn read_first(&mut self, i: u32, offset: u64, len: u64) -> Vec<u32> {
        let pages = pages_of(offset, len);
        let end = offset + len;
        let inode = &self.inodes[i as usize];
        let is_whole = |page: u32| {
            let (from, to) = (u64::from(page) * PAGE, u64::from(page + 1) * PAGE);
            offset <= from && (end >= to || end >= inode.size)
        };
        let mut edges = vec![];
        for page in [pages.start, pages.end - 1] {
            let written = inode.extents.find(page).is_some_and(|e| !e.unwritten);
            if !is_whole(page) && written && u64::from(page) * PAGE < inode.size {
                edges.push(page);
            }
        }
        edges.dedup();
        let mut file = std::mem::take(&mut self.inodes[i as usize].pages);
        edges.retain(|page| !self.cache.run(&mut file, *page, page + 1).0);
        self.inodes[i as usize].pages = file;
        edges
    }

    /// A buffered write: pages become dirty, room is set aside or taken. How much was
    /// written, up to where there was no more room.
    pub(crate) fn write(
        &mut self,
        i: u32,
        offset: u64,
        len: u64,
        cpu: u32,
    ) -> Result<u64, Outcome> {
        let end = Self::check_range(offset, len)?;
        let pages = pages_of(offset, len);
        let delays = self.cfg.delays_allocation();
        let mut page = pages.start;
        while page < pages.end {
            let extents = &self.inodes[i as usize].extents;
            match extents.find(page) {
                Some(e) => {
                    let to = page + e.len.min(pages.end - page);
                    self.mark_dirty(i, page..to, e.unwritten);
                    if e.unwritten && self.cfg.data == DataMode::Journal {
                        // Logged data is written as soon as it is logged.
                        self.mark_written(i, page..to, cpu);
                    }
                    page = to;
                }
                None if delays => {
                    let to = extents.next_mapped(page).unwrap_or(u32::MAX).min(pages.end);
                    let n = self.set_aside(i, page..to);
                    if n == 0 {
                        break;
                    }
                    self.mark_dirty(i, page..page + n, true);
                    page += n;
                }
                None => {
                    // Block by block, as a write without delay asks for them.
                    if self.map(i, page, 1, MapFor::Write, cpu).is_err() {
                        break;
                    }
                    self.mark_dirty(i, page..page + 1, true);
                    page += 1;
                }
            }
        }
        let end = if page < pages.end { end.min(u64::from(page) * PAGE) } else { end };
        if end <= offset {
            return Err(Outcome::NoSpace);
        }
        self.log_data(i, pages.start..page);
        let n_written = end - offset;
        self.tell(i, || FileOp::Write { offset, len: n_written });
        let inode = &mut self.inodes[i as usize];
        if end > inode.size {
            inode.size = end;
            if !delays {
                self.touch_inode(i, true);
            }
        }
        self.stamp(i);
        Ok(end - offset)
    }

    /// Sets room aside for pages of a hole; for how many there is room.
    fn set_aside(&mut self, i: u32, range: Range<u32>) -> u32 {
        let n_dirty = self.n_dirty_in(i, range.clone());
        let mut n_pages = range.len() as u32;
        let mut n = n_pages - n_dirty;
        if self.alloc.reserve(n).is_err() {
            // The pages that are dirty have their room; others get what there is.
            let room = u32::try_from(self.alloc.available_blocks()).unwrap_or(u32::MAX);
            let mut at = range.start;
            n = 0;
            while at < range.end {
                let dirty = self.next_dirty(i, at..range.end).unwrap_or(range.end..range.end);
                let new = (dirty.start - at).min(room - n);
                n += new;
                if at + new < dirty.start {
                    at += new;
                    break;
                }
                at = dirty.end;
            }
            n_pages = at - range.start;
            self.alloc.reserve(n).expect("no more than there is room for");
        }
        self.inodes[i as usize].n_reserved += n;
        n_pages
    }

    /// Blocks of a file that were reserved are written from now on.
    fn mark_written(&mut self, i: u32, pages: Range<u32>, cpu: u32) {
        let first = pages.start;
        self.inodes[i as usize].extents.mark_written(pages);
        // Without room for one extent more ext4 writes zeroes instead; here the tree stays
        // short until it changes again. Source: fs/ext4/extents.c, `EXT4_EXT_MAY_ZEROOUT`.
        let _ = self.touch_tree(i, first, cpu);
        self.touch_inode(i, true);
    }

    /// The first run of dirty pages in `range`.
    pub(crate) fn next_dirty(&mut self, i: u32, range: Range<u32>) -> Option<Range<u32>> {
        let pages = &mut self.inodes[i as usize].pages;
        self.cache.next_dirty(pages, range, u32::MAX)
    }

    pub(crate) fn n_dirty_in(&mut self, i: u32, range: Range<u32>) -> u32 {
        let (mut n, mut at) = (0, range.start);
        while let Some(run) = self.next_dirty(i, at..range.end) {
            n += run.len() as u32;
            at = run.end;
        }
        n
    }

    /// Pages are dirty from now on.
    pub(crate) fn mark_dirty(&mut self, i: u32, range: Range<u32>, fresh: bool) {
        let inode = &mut self.inodes[i as usize];
        self.cache.dirty(&mut inode.pages, i, range, fresh);
        if inode.dirty_since_ns.is_none() {
            inode.dirty_since_ns = Some(self.now_ns);
            self.push_dirty_file(i);
        }
    }

    /// Puts a file at the end of the list of dirty ones. Files that were written since they
    /// were put there leave it when they are more than half of it.
    fn push_dirty_file(&mut self, i: u32) {
        self.dirty_files.push_back((self.now_ns, i));
        if self.dirty_files.len() > self.dirty_files_max {
            let inodes = &self.inodes;
            self.dirty_files
                .retain(|(since, i)| inodes[*i as usize].dirty_since_ns == Some(*since));
            self.dirty_files_max = 2 * self.dirty_files.len() + 64;
        }
    }

    /// With `data=journal`: the blocks of pages go into the transaction.
    pub(crate) fn log_data(&mut self, i: u32, pages: Range<u32>) {
        if self.cfg.data != DataMode::Journal {
            return;
        }
        let Some(journal) = &mut self.journal else { return };
        let mut tid = 0;
        for page in pages {
            let found = self.inodes[i as usize].extents.find(page);
            let block = found.expect("data that is logged has its block").start;
            tid = journal.add(block, Some((i, page)), self.now_ns);
        }
        let inode = &mut self.inodes[i as usize];
        (inode.sync_tid, inode.datasync_tid) = (tid, tid);
    }

    /// The time of a read is noted, if it has to be.
    pub(crate) fn note_read(&mut self, i: u32) {
        let inode = &mut self.inodes[i as usize];
        let due = match self.cfg.atime {
            Atime::Off => false,
            Atime::Strict => {
                self.now_ns / crate::fs::TICK_NS != inode.atime_ns / crate::fs::TICK_NS
            }
            Atime::Relatime => {
                inode.atime_ns <= inode.mtime_ns || self.now_ns > inode.atime_ns + DAY_NS
            }
        };
        if due {
            inode.atime_ns = self.now_ns.max(1);
            self.touch_inode(i, false);
        }
    }

    /// What is said about a write that starts at `page`.
    fn write_hint(
        &mut self,
        i: u32,
        page: u32,
        n_pages: u32,
        fresh: bool,
    ) -> flashwise_hint::WriteHint {
        let inode = &self.inodes[i as usize];
        let handle = match &mut self.placer {
            None => Handle(0),
            Some(placer) => {
                let (offset, len) = (u64::from(page) * PAGE, u64::from(n_pages) * PAGE);
                placer.handle(inode.id, offset, len, self.now_ns)
            }
        };
        let mut hint = self.hint(inode.class, handle);
        if self.cfg.hints.relation {
            let before = page.checked_sub(1).and_then(|before| inode.extents.find(before));
            hint.relation = match before {
                _ if !fresh => Relation::Overwrite,
                Some(e) if !e.unwritten => {
                    Relation::Append { prev: Lba(u64::from(e.start.0) * SECTORS) }
                }
                _ => Relation::None,
            };
        }
        hint
    }

    /// Sends dirty pages of `range` on their way, at most `n_max`. Delayed blocks are
    /// allocated. With `data=journal` pages of a transaction that is not committed stay.
    pub(crate) fn write_back(
        &mut self,
        i: u32,
        range: Range<u32>,
        n_max: u32,
        cpu: u32,
        mut add: impl FnMut(Bio),
    ) -> WrittenBack {
        let mut pages = std::mem::take(&mut self.inodes[i as usize].pages);
        let (mut at, mut n, mut no_space) = (range.start, 0, false);
        while n < n_max {
            let Some(run) = self.cache.next_dirty(&mut pages, at..range.end, n_max - n) else {
                break;
            };
            at = run.start;
            while at < run.end {
                let fresh = self.cache.is_fresh(&mut pages, at);
                let extent = match self.block_for(i, at..run.end, cpu) {
                    Some(extent) => extent,
                    // No room though it was set aside: it waits for a commit, or a block of
                    // the extent tree is lacking. The pages stay dirty.
                    None => {
                        no_space = true;
                        break;
                    }
                };
                if self.is_pinned(extent.0, extent.1) {
                    at += extent.1;
                    continue;
                }
                add(Bio {
                    op: IoOp::Write,
                    target: Target::Main,
                    start: extent.0,
                    len: extent.1,
                    segments: self.segments(extent.1),
                    fua: false,
                    class: IoClass::Data,
                    hint: self.write_hint(i, at, extent.1, fresh),
                    file: i,
                });
                self.cache.clean(&mut pages, at..at + extent.1);
                self.wrote_data(extent.0, extent.1);
                at += extent.1;
                n += extent.1;
            }
            if at < run.end {
                break;
            }
        }
        let inode = &mut self.inodes[i as usize];
        inode.pages = pages;
        if inode.pages.n_dirty == 0 {
            inode.dirty_since_ns = None;
        }
        WrittenBack { n, no_space }
    }

    /// Drops dirty pages for which there is no room and will be none, as ext4 does: their
    /// data is lost. Source: fs/ext4/inode.c, `mpage_map_and_submit_extent`.
    pub(crate) fn lose_unmapped(&mut self, i: u32) {
        let mut at = 0;
        loop {
            let Some(run) = self.next_dirty(i, at..u32::MAX) else { return };
            let inode = &self.inodes[i as usize];
            at = match inode.extents.find(run.start) {
                Some(e) => run.start + e.len,
                None => {
                    let next = inode.extents.next_mapped(run.start).unwrap_or(u32::MAX);
                    self.cut(i, run.start..run.end.min(next));
                    next
                }
            };
        }
    }

    /// The block of a page and how many of `range` follow side by side; allocated if need
    /// be.
    fn block_for(&mut self, i: u32, range: Range<u32>, cpu: u32) -> Option<(FsBlock, u32)> {
        let n = range.len() as u32;
        let extents = &self.inodes[i as usize].extents;
        let Some(extent) = extents.find(range.start) else {
            let hole = extents.next_mapped(range.start).unwrap_or(u32::MAX) - range.start;
            let want = hole.min(n).min(WRITE_BACK_MAX);
            let len = self.map(i, range.start, want, MapFor::WriteBack, cpu).ok()?;
            let inode = &mut self.inodes[i as usize];
            inode.n_reserved -= len;
            let start = inode.extents.find(range.start).expect("it was mapped just now").start;
            return Some((start, len));
        };
        let len = extent.len.min(n);
        if extent.unwritten {
            self.mark_written(i, range.start..range.start + len, cpu);
        }
        Some((extent.start, len))
    }

    /// Pieces of memory that so many dirty pages are in: logged data is cached block by
    /// block.
    fn segments(&self, n_pages: u32) -> u32 {
        if self.cfg.data == DataMode::Journal { n_pages } else { 1 }
    }

    /// With `data=journal`: whether a block may not go home yet.
    fn is_pinned(&self, start: FsBlock, len: u32) -> bool {
        match &self.journal {
            Some(journal) if self.cfg.data == DataMode::Journal => {
                (start.0..start.0 + len).any(|block| journal.is_pinned(FsBlock(block)))
            }
            _ => false,
        }
    }

    fn wrote_data(&mut self, start: FsBlock, len: u32) {
        if self.cfg.data == DataMode::Journal
            && let Some(journal) = &mut self.journal
        {
            (start.0..start.0 + len).for_each(|block| journal.wrote_home(FsBlock(block)));
        }
    }

    /// Bios of a direct write; blocks are allocated at once. Cached pages are dropped, so
    /// dirty ones have to be written back first. Without room for all nothing is written,
    /// and the file keeps no blocks behind its end. Source: fs/ext4/file.c,
    /// `ext4_inode_extension_cleanup`.
    pub(crate) fn write_direct(
        &mut self,
        i: u32,
        offset: u64,
        len: u64,
        cpu: u32,
        mut add: impl FnMut(Bio),
    ) -> Result<(), Outcome> {
        let end = Self::check_range(offset, len)?;
        let pages = pages_of(offset, len);
        if let Err(outcome) = self.map_holes(i, &pages, cpu) {
            let inode = &self.inodes[i as usize];
            let (ino, n_pages) = (inode.ino, inode.n_pages());
            if pages.end > n_pages {
                self.alloc.discard_preallocation(ino);
                self.cut(i, n_pages..u32::MAX);
            }
            return Err(outcome);
        }
        let mut at = pages.start;
        while at < pages.end {
            let found = self.inodes[i as usize].extents.find(at);
            let fresh = found.is_some_and(|e| e.unwritten);
            let block = self.block_for(i, at..pages.end, cpu).expect("it is mapped");
            add(Bio {
                op: IoOp::Write,
                target: Target::Main,
                start: block.0,
                len: block.1,
                segments: 1,
                fua: false,
                class: IoClass::Data,
                hint: self.write_hint(i, at, block.1, fresh),
                // Nobody but the writer waits for it.
                file: crate::plug::NO_FILE,
            });
            at += block.1;
        }
        self.tell(i, || FileOp::Write { offset, len });
        let mut cached = std::mem::take(&mut self.inodes[i as usize].pages);
        self.cache.forget(&mut cached, pages);
        let inode = &mut self.inodes[i as usize];
        inode.pages = cached;
        if inode.pages.n_dirty == 0 {
            inode.dirty_since_ns = None;
        }
        if end > inode.size {
            inode.size = end;
            self.touch_inode(i, true);
        }
        self.stamp(i);
        Ok(())
    }

    /// Maps all holes of `pages`.
    fn map_holes(&mut self, i: u32, pages: &Range<u32>, cpu: u32) -> Result<(), Outcome> {
        let mut at = pages.start;
        while at < pages.end {
            let extents = &self.inodes[i as usize].extents;
            if let Some(e) = extents.find(at) {
                at = at.saturating_add(e.len);
                continue;
            }
            let hole = extents.next_mapped(at).unwrap_or(u32::MAX).min(pages.end) - at;
            let n = self.map(i, at, hole, MapFor::Write, cpu).map_err(|_| Outcome::NoSpace)?;
            self.keep_promise(i, at..at + n);
            at += n;
        }
        Ok(())
    }

    /// Bios that read `pages` from the device; holes and unwritten blocks need none.
    pub(crate) fn read_bios(&self, i: u32, pages: Range<u32>, mut add: impl FnMut(Bio)) {
        let extents = &self.inodes[i as usize].extents;
        let mut at = pages.start;
        while at < pages.end {
            let Some(extent) = extents.find(at) else {
                at = extents.next_mapped(at).unwrap_or(u32::MAX);
                continue;
            };
            let len = extent.len.min(pages.end - at);
            if !extent.unwritten {
                add(Bio {
                    op: IoOp::Read,
                    target: Target::Main,
                    start: extent.start,
                    len,
                    segments: 1,
                    fua: false,
                    class: IoClass::Data,
                    hint: self.hint(DataClass::Unspecified, Handle(0)),
                    file: crate::plug::NO_FILE,
                });
            }
            at += len;
        }
    }

    /// Pages are in memory now. Others go if there is no room.
    pub(crate) fn cached(&mut self, i: u32, pages: Range<u32>) {
        let inode = &mut self.inodes[i as usize];
        self.cache.fill(&mut inode.pages, i, pages);
        self.shrink_cache();
    }

    /// Gives up clean pages if there are too many.
    pub(crate) fn shrink_cache(&mut self) {
        if self.cache.is_over() {
            self.shrink_to(self.cache.limit(), SHRINK_CHUNKS);
        }
    }

    /// Gives up all clean pages (`drop_caches`).
    pub(crate) fn drop_cache(&mut self) {
        self.shrink_to(0, usize::MAX);
    }

    fn shrink_to(&mut self, limit: u64, n_chunks: usize) {
        let (inodes, now_ns) = (&mut self.inodes, self.now_ns);
        self.cache.shrink(limit, n_chunks, |owner, index, is_empty| {
            let inode = &mut inodes[owner as usize];
            // Pages stay until they are on the device.
            let may_go = !inode.is_writing(now_ns);
            if may_go && is_empty {
                inode.pages.lost(index);
            }
            may_go
        });
    }
}

/// How far write-back of a file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenBack {
    /// Pages sent on their way.
    pub(crate) n: u32,
    /// Pages stay dirty because no blocks were found for them.
    pub(crate) no_space: bool,
}
