//! The file system: what it knows, and how a change touches metadata.
//!
//! Nothing here takes time: a function changes the books at once and says what has to be
//! written. `host.rs` decides when.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use flashwise_hint::{DataClass, FileEvent, FileId, FileOp, Handle};
use rustc_hash::FxHashMap;

use crate::alloc::{AllocOptions, BlockAllocator, BlockUse, Mapped, NoSpace, Request};
use crate::application::Outcome;
use crate::cache::PageCache;
use crate::config::{DataMode, FsConfig, JournalPlace};
use crate::directory::Directory;
use crate::error::HostError;
use crate::extents::Extent;
use crate::inode::{Inode, OpenFile, PAGE};
use crate::inodes::InodeAllocator;
use crate::io::{IoClass, IoOp};
use crate::journal::{Home, Journal};
use crate::layout::{FsBlock, Ino, JournalSize, Layout, LayoutOptions};
use crate::paths::{PathId, Paths};
use crate::placer::Placer;
use crate::plug::{Bio, NO_FILE, Target};

/// Extents of one block of the extent tree: 4 KiB less a header of 12 bytes and a checksum
/// of 4, 12 bytes each. Source: kernel documentation, ext4 "Extent Tree".
const EXTENTS_PER_BLOCK: usize = 340;

/// Extents in the inode itself. Source: as above.
const EXTENTS_INLINE: usize = 4;

/// Time between two ticks of the clock that stamps files \[ns\]: 250 Hz, the default of
/// Linux (`CONFIG_HZ`). Two writes in one tick leave the same time.
pub(crate) const TICK_NS: u64 = 4_000_000;

/// A file system and what the kernel keeps of it in memory.
pub(crate) struct FileSystem {
    pub(crate) cfg: FsConfig,
    pub(crate) layout: Layout,
    pub(crate) alloc: BlockAllocator,
    pub(crate) inode_table: InodeAllocator,
    pub(crate) inodes: Vec<Inode>,
    unused: Vec<u32>,
    /// (directory, component) to inode.
    pub(crate) entries: FxHashMap<(u32, u32), u32>,
    /// What a path was resolved to last, and in which generation.
    resolved: Vec<(u32, u32)>,
    /// Grows when a directory moves.
    pub(crate) generation: u32,
    pub(crate) files: Vec<Option<OpenFile>>,
    pub(crate) cache: PageCache,
    pub(crate) journal: Option<Journal>,
    /// The journal's pieces; its first block is its superblock, the ring follows.
    journal_ranges: Vec<Range<u32>>,
    /// Blocks of metadata that may be written home.
    pub(crate) dirty_metadata: BTreeSet<u32>,
    pub(crate) metadata_since_ns: Option<u64>,
    /// Files with dirty pages, in the order they became dirty; some are out of date.
    pub(crate) dirty_files: VecDeque<(u64, u32)>,
    /// Length at which those that are out of date leave it.
    pub(crate) dirty_files_max: usize,
    /// Space that came free without a journal, not told to the device yet.
    pub(crate) freed: Vec<(FsBlock, u32)>,
    /// Groups whose free space was told, and no block came free since.
    is_trimmed: Vec<bool>,
    cold: Vec<String>,
    /// Chooses handles.
    pub(crate) placer: Option<Box<dyn Placer + Send>>,
    n_files: u64,
    pub(crate) now_ns: u64,
}

/// Why blocks are found for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapFor {
    /// Dirty pages go to the device that room was set aside for.
    WriteBack,
    /// A write allocates at once.
    Write,
    /// Blocks are reserved and stay unwritten.
    Fallocate,
}

/// Index of the root directory.
pub(crate) const ROOT: u32 = 0;

impl FileSystem {
    /// A new file system on a device of so many bytes, with its root directory.
    pub(crate) fn new(cfg: &FsConfig, device_bytes: u64) -> Result<Self, HostError> {
        let size_bytes = cfg.size_bytes.unwrap_or(device_bytes);
        if size_bytes > device_bytes {
            return Err(HostError::Size { size_bytes, device_bytes });
        }
        let journal_size = match (cfg.journal, cfg.journal_bytes) {
            (JournalPlace::Internal, None) => JournalSize::Default,
            (JournalPlace::Internal, Some(bytes)) => JournalSize::MiB((bytes >> 20) as u32),
            _ => JournalSize::None,
        };
        let options = LayoutOptions {
            n_blocks: size_bytes / PAGE,
            journal: journal_size,
            reserved_percent: cfg.reserved_percent,
            inode_ratio: None,
        };
        let layout = Layout::new(&options)?;
        let journal = match cfg.journal {
            JournalPlace::None => None,
            JournalPlace::Internal => Some(u64::from(layout.journal_blocks())),
            JournalPlace::External => {
                // As large as an internal one would be.
                let of_size =
                    Layout::new(&LayoutOptions { journal: JournalSize::Default, ..options })?;
                let inside = of_size.journal().map_or(0, |r| u64::from(r.end - r.start));
                Some(cfg.journal_bytes.map_or(inside, |bytes| bytes / PAGE))
            }
        };
        // Internal, with 0 blocks: the device is too small for one.
        let journal = journal.filter(|blocks| *blocks > 0);
        let journal_ranges = match (cfg.journal, journal) {
            (JournalPlace::Internal, _) => layout.journal_ranges().to_vec(),
            (_, blocks) => {
                let whole = blocks.map(|blocks| 0..u32::try_from(blocks).unwrap_or(u32::MAX));
                whole.into_iter().collect()
            }
        };
        let alloc_options = AllocOptions {
            prealloc: cfg.prealloc,
            mb_stream_req: cfg.stream_blocks,
            n_cpus: if cfg.cores == 0 { AllocOptions::default().n_cpus } else { cfg.cores },
            delalloc: cfg.delays_allocation(),
            ..AllocOptions::default()
        };
        let mut root = Inode { ino: Ino::ROOT, links: 2, ..Inode::default() };
        root.table_block = layout.inode_table_block(Ino::ROOT);
        root.dir = Some(Box::new(Directory::new()));
        root.size = PAGE;
        let first = Extent { logical: 0, start: layout.root_dir(), len: 1, unwritten: false };
        root.extents.insert(first);
        Ok(Self {
            alloc: BlockAllocator::new(&layout, alloc_options),
            inode_table: InodeAllocator::new(&layout),
            inodes: vec![root],
            unused: vec![],
            entries: FxHashMap::default(),
            resolved: vec![],
            generation: 1,
            files: vec![],
            cache: PageCache::new(cfg.memory_bytes / PAGE),
            journal: journal.map(|blocks| Journal::new(blocks.saturating_sub(1).max(64))),
            journal_ranges,
            dirty_metadata: BTreeSet::new(),
            metadata_since_ns: None,
            dirty_files: VecDeque::new(),
            dirty_files_max: 64,
            freed: vec![],
            is_trimmed: vec![false; layout.n_groups() as usize],
            cold: cfg.cold.split(':').filter(|e| !e.is_empty()).map(str::to_owned).collect(),
            placer: None,
            n_files: 0,
            now_ns: 0,
            cfg: cfg.clone(),
            layout,
        })
    }

    // ---- inodes and names ----

    /// The inode a path names.
    pub(crate) fn resolve(&mut self, paths: &Paths, path: PathId) -> Result<u32, Outcome> {
        if path == Paths::ROOT {
            return Ok(ROOT);
        }
        if let Some((inode, generation)) = self.resolved.get(path.0 as usize)
            && *generation == self.generation
        {
            return Ok(*inode);
        }
        let dir = self.resolve(paths, paths.parent(path))?;
        let found = self.entries.get(&(dir, paths.component(path))).copied();
        let inode = found.ok_or(Outcome::NotFound)?;
        self.remember(path, inode);
        Ok(inode)
    }

    fn remember(&mut self, path: PathId, inode: u32) {
        let at = path.0 as usize;
        if self.resolved.len() <= at {
            self.resolved.resize(at + 1, (0, 0));
        }
        self.resolved[at] = (inode, self.generation);
    }

    /// A name is gone: what was remembered of it is too.
    pub(crate) fn unremember(&mut self, path: PathId) {
        if let Some(slot) = self.resolved.get_mut(path.0 as usize) {
            slot.1 = 0;
        }
    }

    /// A free slot for an inode that was read or made.
    pub(crate) fn slot(&mut self, inode: Inode) -> u32 {
        match self.unused.pop() {
            Some(slot) => {
                self.inodes[slot as usize] = inode;
                slot
            }
            None => {
                self.inodes.push(inode);
                self.inodes.len() as u32 - 1
            }
        }
    }

    /// The inode of a slot is gone. The slot is used again when no write of it is queued.
    pub(crate) fn drop_slot(&mut self, slot: u32) {
        let writeback = std::mem::take(&mut self.inodes[slot as usize].writeback);
        debug_assert!(writeback.waiters.is_empty(), "nobody waits for a file that is not open");
        if writeback.n_queued == 0 {
            self.inodes[slot as usize] = Inode::default();
            self.unused.push(slot);
        } else {
            self.inodes[slot as usize] = Inode { writeback, is_gone: true, ..Inode::default() };
        }
    }

    /// A queued write of a file reached the device.
    pub(crate) fn write_left(&mut self, slot: u32) -> bool {
        let inode = &mut self.inodes[slot as usize];
        inode.writeback.n_queued -= 1;
        if inode.writeback.n_queued == 0 && inode.is_gone {
            *inode = Inode::default();
            self.unused.push(slot);
            return false;
        }
        inode.writeback.n_queued == 0
    }

    /// Checks that each slot is in use or is on the list of those that are not.
    ///
    /// # Panics
    ///
    /// If one is both or neither.
    pub(crate) fn check_slots(&self) {
        let mut is_unused = vec![false; self.inodes.len()];
        for slot in &self.unused {
            assert!(!std::mem::replace(&mut is_unused[*slot as usize], true), "unused twice");
        }
        for (slot, inode) in self.inodes.iter().enumerate() {
            let is_live = inode.ino != Ino::default();
            assert_eq!(!is_unused[slot], is_live || inode.is_gone, "use of slot {slot}");
            assert!(!(is_live && inode.is_gone), "slot {slot} is gone and in use");
            let (_, n_tree) = Self::tree_blocks(inode.extents.len());
            let is_right = inode.is_tree_short && inode.tree.len() < n_tree;
            assert!(is_right || inode.tree.len() == n_tree, "tree of slot {slot}");
        }
    }

    /// The class of a new file, by its name.
    pub(crate) fn class_of(&self, paths: &Paths, path: Option<PathId>) -> DataClass {
        let extension = path.and_then(|path| paths.extension(path));
        match extension {
            Some(e) if self.cold.iter().any(|cold| cold.eq_ignore_ascii_case(e)) => DataClass::Cold,
            _ => DataClass::Hot,
        }
    }

    /// An identity for a new file.
    pub(crate) fn new_id(&mut self) -> FileId {
        self.n_files += 1;
        FileId(self.n_files)
    }

    /// The placement policy hears of it, if there is one.
    pub(crate) fn tell(&mut self, i: u32, op: impl FnOnce() -> FileOp) {
        if let Some(placer) = &mut self.placer {
            let file = self.inodes[i as usize].id;
            placer.event(&FileEvent { at_ns: self.now_ns, file, op: op() });
        }
    }

    // ---- metadata ----

    /// A block of metadata changes.
    pub(crate) fn touch(&mut self, block: FsBlock) {
        match &mut self.journal {
            Some(journal) => {
                journal.add(block, None, self.now_ns);
                self.dirty_metadata.remove(&block.0);
            }
            None => self.dirty_home(block),
        }
    }

    fn dirty_home(&mut self, block: FsBlock) {
        self.dirty_metadata.insert(block.0);
        self.metadata_since_ns.get_or_insert(self.now_ns);
    }

    /// The inode changes; `needed` if its data cannot be found without the change.
    pub(crate) fn touch_inode(&mut self, i: u32, needed: bool) {
        self.touch(self.inodes[i as usize].table_block);
        let tid = self.journal.as_ref().and_then(|j| j.running.as_ref()).map_or(0, |t| t.tid);
        let inode = &mut self.inodes[i as usize];
        inode.sync_tid = tid;
        if needed {
            inode.datasync_tid = tid;
        }
    }

    /// Blocks of a group are taken or given back: its bitmap and descriptor change.
    pub(crate) fn touch_blocks_of(&mut self, group: u32) {
        self.touch(self.layout.block_bitmap(group));
        self.touch(self.layout.group_descriptor_block(group));
    }

    /// An inode of a group is taken or given back.
    pub(crate) fn touch_inodes_of(&mut self, group: u32) {
        self.touch(self.layout.inode_bitmap(group));
        self.touch(self.layout.group_descriptor_block(group));
    }

    /// The list of orphans in the superblock changes.
    pub(crate) fn touch_orphans(&mut self) {
        if self.journal.is_some() {
            self.touch(self.layout.superblock());
        }
    }

    /// The file is written at this moment: its times change, unless they would be the same.
    pub(crate) fn stamp(&mut self, i: u32) {
        let inode = &mut self.inodes[i as usize];
        if inode.mtime_ns / TICK_NS != self.now_ns / TICK_NS || self.now_ns == 0 {
            inode.mtime_ns = self.now_ns;
            self.touch_inode(i, false);
        }
    }

    /// Whether blocks are allocated unwritten and become written, in a transaction of that
    /// moment, when their data is on the device (`dioread_nolock`, the default; not without
    /// delay). Source: fs/ext4/ext4_jbd2.h, `ext4_should_dioread_nolock`.
    pub(crate) fn converts_late(&self) -> bool {
        self.journal.is_some() && self.cfg.delays_allocation()
    }

    /// The data of new blocks is on the device: the file has them from now on.
    pub(crate) fn convert(&mut self, i: u32) {
        if let Some(leaf) = self.inodes[i as usize].tree.last() {
            self.touch(*leaf);
        }
        self.touch_inode(i, true);
    }

    // ---- space ----

    /// Finds blocks for a hole of a file and maps them; how many.
    pub(crate) fn map(
        &mut self,
        i: u32,
        logical: u32,
        want: u32,
        how: MapFor,
        cpu: u32,
    ) -> Result<u32, NoSpace> {
        let inode = &self.inodes[i as usize];
        let mapped = |logical: u32, start: FsBlock| Mapped { logical, block: start };
        let before = inode.extents.before(logical);
        let request = Request {
            usage: if inode.dir.is_some() { BlockUse::Directory } else { BlockUse::Data },
            left: before.map(|e| {
                let last = e.len.min(logical - e.logical) - 1;
                mapped(e.logical + last, FsBlock(e.start.0 + last))
            }),
            right: inode.extents.after(logical).map(|e| mapped(e.logical, e.start)),
            cpu,
            reserved: how == MapFor::WriteBack,
            open_for_write: inode.opens > 0,
            exact: how == MapFor::Fallocate,
            ..Request::data(
                inode.ino,
                self.layout.group_of_inode(inode.ino),
                logical,
                want,
                inode.n_pages(),
            )
        };
        let found = self.alloc.allocate(&request)?;
        // Blocks of data become written when their data is (`dioread_nolock`, the default).
        // Logged data needs no such care, nor directories; without delay ext4 takes none.
        let is_data = request.usage == BlockUse::Data;
        let unwritten = match how {
            MapFor::Fallocate => true,
            MapFor::Write => is_data && self.cfg.delays_allocation(),
            MapFor::WriteBack => false,
        };
        let extent = Extent { logical, start: found.start, len: found.len, unwritten };
        let extents = &mut self.inodes[i as usize].extents;
        let n_before = extents.len();
        extents.insert(extent);
        if how == MapFor::WriteBack
            && n_before == EXTENTS_INLINE
            && extents.len() == n_before
            && let Some(journal) = &mut self.journal
        {
            // The blocks are unwritten for a moment, which makes one extent more than the
            // inode holds: a block of the tree comes and goes, and is revoked.
            journal.revoke(self.now_ns);
        }
        self.touch_blocks_of(found.start.group());
        if let Err(no_space) = self.touch_tree(i, logical, cpu) {
            self.unmap(i, logical..logical + found.len, found.start, how, cpu);
            return Err(no_space);
        }
        self.touch_inode(i, true);
        Ok(found.len)
    }

    /// Gives blocks back that were just mapped, because the tree has no room for them.
    fn unmap(&mut self, i: u32, range: Range<u32>, start: FsBlock, how: MapFor, cpu: u32) {
        let inode = &mut self.inodes[i as usize];
        let (ino, len) = (inode.ino, range.len() as u32);
        let logical = range.start;
        inode.extents.remove(range, |_| {});
        self.alloc.discard_preallocation(ino);
        self.alloc.take_back(start, len, how == MapFor::WriteBack);
        // Half of the tree may have grown.
        let _ = self.touch_tree(i, logical, cpu);
    }

    /// Blocks of the extent tree outside the inode for so many extents: leaves, and all.
    pub(crate) fn tree_blocks(n_extents: usize) -> (usize, usize) {
        let leaves =
            if n_extents > EXTENTS_INLINE { n_extents.div_ceil(EXTENTS_PER_BLOCK) } else { 0 };
        // Inner nodes above the leaves, beyond those the inode holds itself.
        let inner = if leaves > EXTENTS_INLINE { leaves.div_ceil(EXTENTS_PER_BLOCK) } else { 0 };
        (leaves, leaves + inner)
    }

    /// The extents of a file changed at `logical`: the block of the tree that holds them
    /// changes, and there may have to be more or fewer of them. Without room for more the
    /// tree stays short until its next change.
    pub(crate) fn touch_tree(&mut self, i: u32, logical: u32, cpu: u32) -> Result<(), NoSpace> {
        let inode = &self.inodes[i as usize];
        let (leaves, needed) = Self::tree_blocks(inode.extents.len());
        let (ino, n_now) = (inode.ino, inode.tree.len());
        for _ in n_now..needed {
            let group = self.layout.group_of_inode(ino);
            let last = self.inodes[i as usize].extents.before(logical.saturating_add(1));
            let request = Request {
                usage: BlockUse::ExtentTree,
                goal: last.map(|e| e.start),
                cpu,
                reserved: false,
                ..Request::data(ino, group, 0, 1, 0)
            };
            let found = self.alloc.allocate(&request);
            self.inodes[i as usize].is_tree_short = found.is_err();
            let block = found?.start;
            self.inodes[i as usize].tree.push(block);
            self.touch_blocks_of(block.group());
            self.touch(block);
        }
        self.inodes[i as usize].is_tree_short = false;
        while self.inodes[i as usize].tree.len() > needed {
            let block = self.inodes[i as usize].tree.pop().expect("it is longer than needed");
            self.free(block, 1, true);
        }
        if leaves > 0 {
            let inode = &self.inodes[i as usize];
            let leaf = inode.tree[inode.extents.leaf_of(logical, leaves)];
            self.touch(leaf);
        }
        Ok(())
    }

    /// Blocks are given back. They can be used again when the transaction has committed.
    pub(crate) fn free(&mut self, start: FsBlock, len: u32, is_metadata: bool) {
        for group in groups_of(start, len) {
            self.touch_blocks_of(group);
        }
        let logs_data = self.cfg.data == DataMode::Journal;
        match &mut self.journal {
            Some(journal) => {
                if is_metadata || logs_data {
                    for block in start.0..start.0 + len {
                        self.dirty_metadata.remove(&block);
                        let known = journal.forget(FsBlock(block), self.now_ns);
                        if !known && is_metadata {
                            journal.revoke(self.now_ns);
                        }
                    }
                }
                journal.run(self.now_ns).freed.push((start, len));
                self.alloc.mark_freed(start, len);
            }
            None => {
                if is_metadata {
                    (start.0..start.0 + len).for_each(|b| {
                        self.dirty_metadata.remove(&b);
                    });
                }
                self.alloc.release(start, len);
                self.freed.push((start, len));
                self.note_untrimmed(start, len);
            }
        }
    }

    // ---- the journal's own blocks ----

    fn journal_target(&self) -> Target {
        match self.cfg.journal {
            JournalPlace::External => Target::Journal,
            _ => Target::Main,
        }
    }

    /// Writes to the ring: one, or more where the journal is in pieces.
    pub(crate) fn log_bios(&self, offset: u64, len: u64, fua: bool, mut add: impl FnMut(Bio)) {
        // The first block of the journal is its superblock.
        let (mut at, mut left) = (offset as u32 + 1, len as u32);
        for range in &self.journal_ranges {
            let n_range = range.end - range.start;
            if left == 0 {
                break;
            }
            if at >= n_range {
                at -= n_range;
                continue;
            }
            let n = left.min(n_range - at);
            add(self.journal_bio(FsBlock(range.start + at), n, fua));
            (at, left) = (0, left - n);
        }
        assert_eq!(left, 0, "a place of the ring is in the journal");
    }

    /// A write of the journal's superblock.
    pub(crate) fn journal_superblock_bio(&self) -> Bio {
        self.journal_bio(FsBlock(self.journal_ranges[0].start), 1, self.cfg.barrier)
    }

    fn journal_bio(&self, start: FsBlock, len: u32, fua: bool) -> Bio {
        Bio {
            op: IoOp::Write,
            target: self.journal_target(),
            start,
            len,
            segments: len,
            fua: fua && self.cfg.barrier,
            class: IoClass::Journal,
            hint: self.hint(DataClass::Journal, Handle(0)),
            file: NO_FILE,
        }
    }

    /// A flush of the device the journal is on.
    pub(crate) fn journal_flush_bio(&self) -> Bio {
        Bio::flush(self.journal_target())
    }

    /// Whether the journal is on a device of its own.
    pub(crate) fn journal_is_apart(&self) -> bool {
        self.journal_target() == Target::Journal
    }

    /// What every write of a class says.
    pub(crate) fn hint(&self, class: DataClass, handle: Handle) -> flashwise_hint::WriteHint {
        let axes = self.cfg.hints;
        flashwise_hint::WriteHint {
            class: if axes.class { class } else { DataClass::Unspecified },
            handle: if axes.handle { handle } else { Handle(0) },
            ..flashwise_hint::WriteHint::NONE
        }
    }

    /// The running transaction is on the device: its blocks may go home, what it freed may
    /// be used again. Returns what came free.
    pub(crate) fn committed(&mut self) -> Vec<(FsBlock, u32)> {
        let (dirty, since_ns) = (&mut self.dirty_metadata, &mut self.metadata_since_ns);
        let journal = self.journal.as_mut().expect("a journal committed");
        let freed = journal.end_commit(|home| {
            if let Home::Metadata(block) = home {
                dirty.insert(block.0);
                since_ns.get_or_insert(self.now_ns);
            }
        });
        for (start, len) in &freed {
            self.alloc.release_freed(*start, *len);
            self.note_untrimmed(*start, *len);
        }
        freed
    }

    fn note_untrimmed(&mut self, start: FsBlock, len: u32) {
        for group in groups_of(start, len) {
            self.is_trimmed[group as usize] = false;
        }
    }

    /// Free space of the groups where something came free since they were trimmed. Source:
    /// fs/ext4/mballoc.c, `EXT4_GROUP_INFO_WAS_TRIMMED`.
    pub(crate) fn untrimmed(&mut self) -> Vec<(FsBlock, u32)> {
        let free = self.alloc.free_extents();
        let free: Vec<_> =
            free.filter(|(start, _)| !self.is_trimmed[start.group() as usize]).collect();
        self.is_trimmed.fill(true);
        free
    }

    /// Metadata goes home: all of it that may, or the given blocks.
    pub(crate) fn metadata_bios(&mut self, blocks: &[FsBlock], mut add: impl FnMut(Bio)) {
        for block in blocks {
            if self.dirty_metadata.remove(&block.0) {
                add(self.home_bio(*block));
            }
        }
        if self.dirty_metadata.is_empty() {
            self.metadata_since_ns = None;
        }
    }

    /// A block of metadata goes home, and the journal hears of it.
    pub(crate) fn home_bio(&mut self, block: FsBlock) -> Bio {
        if let Some(journal) = &mut self.journal {
            journal.wrote_home(block);
        }
        Bio {
            op: IoOp::Write,
            target: Target::Main,
            start: block,
            len: 1,
            segments: 1,
            fua: false,
            class: IoClass::Metadata,
            hint: self.hint(DataClass::Metadata, Handle(0)),
            file: NO_FILE,
        }
    }
}

/// The groups that blocks lie in.
fn groups_of(start: FsBlock, len: u32) -> std::ops::RangeInclusive<u32> {
    start.group()..=FsBlock(start.0 + (len - 1)).group()
}
