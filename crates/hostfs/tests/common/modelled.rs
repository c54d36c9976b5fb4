//! The same operations on the model: what ext4 would ask its allocator.
//!
//! Sources: Linux 6.18, `fs/ext4/inode.c` (`ext4_do_writepages`, `ext4_iomap_alloc`,
//! `ext4_block_write_begin`), `extents.c` (`ext4_ext_map_blocks`), `file.c`
//! (`ext4_release_file`).

use std::collections::{BTreeMap, BTreeSet};

use flashwise_hostfs::alloc::{AllocOptions, BlockAllocator, BlockUse, Extent, Mapped, Request};
use flashwise_hostfs::inodes::{InodeAllocator, NewInode};
use flashwise_hostfs::layout::{FLEX_GROUPS, FsBlock, Ino, Layout, LayoutOptions};

use super::{How, Op, Run, Setup, dir_of, join};

/// Longest extent that is written back at once \[blocks\]. Source: `inode.c`,
/// `MAX_WRITEPAGES_EXTENT_LEN`.
const WRITEBACK_BLOCKS: u32 = 2048;
/// Longest extent that was not written \[blocks\]. Source: `ext4_extents.h`,
/// `EXT_UNWRITTEN_MAX_LEN`.
const UNWRITTEN_BLOCKS: u32 = 32767;
/// Order of the largest folio: 2 MiB. Source: `include/linux/pagemap.h`,
/// `PREFERRED_MAX_PAGECACHE_ORDER` on x86-64.
const FOLIO_ORDER: u32 = 9;
/// Extents that fit into an inode, and into a block of the tree.
const INODE_EXTENTS: usize = 4;
const LEAF_EXTENTS: usize = 340;
/// Entries with names of nine characters in a block of a directory: 20 bytes each, and 12 for
/// the checksum.
const BLOCK_ENTRIES: u32 = 204;

#[derive(Debug, Default)]
struct FileState {
    ino: Ino,
    how: Option<How>,
    /// First block of the file to first block and length on the device.
    extents: BTreeMap<u32, (u32, u32)>,
    tree: Vec<FsBlock>,
    n_blocks: u32,
    /// Dirty blocks without a place.
    dirty: BTreeSet<u32>,
    /// Folios of the page cache: first block to length.
    folios: BTreeMap<u32, u32>,
}

impl FileState {
    fn left(&self, logical: u32) -> Option<Mapped> {
        let (first, (start, len)) = self.extents.range(..=logical).next_back()?;
        Some(Mapped { logical: first + len - 1, block: FsBlock(start + len - 1) })
    }

    fn right(&self, logical: u32) -> Option<Mapped> {
        let (first, (start, _)) = self.extents.range(logical + 1..).next()?;
        Some(Mapped { logical: *first, block: FsBlock(*start) })
    }

    /// The first part of a range that has no place.
    fn hole(&self, at: u32, end: u32) -> Option<(u32, u32)> {
        let mut at = at;
        if let Some(left) = self.left(at) {
            at = at.max(left.logical + 1);
        }
        while let Some((_, len)) = self.extents.get(&at) {
            at += len;
        }
        let stop = self.right(at).map_or(end, |right| right.logical.min(end));
        (at < stop).then(|| (at, stop - at))
    }

    /// Brings a range that is written into the page cache, in folios as large as the write
    /// and their alignment allow. Source: `mm/filemap.c`, `__filemap_get_folio`.
    fn cache(&mut self, at: u32, end: u32) {
        let mut at = at;
        while at < end {
            let there = self.folios.range(..=at).next_back().map_or(0, |(at, len)| at + len);
            if there > at {
                at = there;
                continue;
            }
            let aligned = if at == 0 { FOLIO_ORDER } else { at.trailing_zeros() };
            let order = (end - at).ilog2().min(FOLIO_ORDER).min(aligned);
            self.folios.insert(at, 1 << order);
            at += 1 << order;
        }
    }

    /// The end of the folio a block is in.
    fn folio_end(&self, block: u32) -> u32 {
        let (at, len) = self.folios.range(..=block).next_back().expect("it is in the cache");
        at + len
    }

    fn add(&mut self, extent: &Extent) {
        let (mut first, mut start, mut len) = (extent.logical, extent.start.0, extent.len);
        if let Some((left, (place, old))) = self.extents.range(..first).next_back()
            && left + old == first
            && place + old == start
        {
            (first, start, len) = (*left, *place, old + len);
        }
        if let Some((place, more)) = self.extents.get(&(first + len)).copied()
            && place == start + len
        {
            self.extents.remove(&(first + len));
            len += more;
        }
        self.extents.insert(first, (start, len));
    }
}

pub(crate) struct Modelled {
    delalloc: bool,
    allocator: BlockAllocator,
    inodes: InodeAllocator,
    files: BTreeMap<u32, FileState>,
    /// Files with dirty blocks, in the order they became dirty.
    order: Vec<u32>,
    freed: Vec<(FsBlock, u32)>,
    dirs: BTreeMap<u32, Dir>,
    n_groups: u32,
}

#[derive(Debug, Default)]
struct Dir {
    file: FileState,
    n_entries: u32,
}

impl Modelled {
    pub(crate) fn new(setup: &Setup, n_cpus: u32) -> Self {
        let layout = Layout::new(&LayoutOptions::new(u64::from(setup.mib) << 8)).unwrap();
        let mut options =
            AllocOptions { delalloc: setup.delalloc, n_cpus, ..AllocOptions::default() };
        options.mb_stream_req = setup.mb_stream_req.unwrap_or(options.mb_stream_req);
        options.mb_group_prealloc = setup.mb_group_prealloc.unwrap_or(options.mb_group_prealloc);
        let mut root = FileState { ino: Ino::ROOT, n_blocks: 1, ..FileState::default() };
        root.extents.insert(0, (layout.root_dir().0, 1));
        // `.` and `..` take as much as one, and there is `lost+found`.
        let root = Dir { file: root, n_entries: 2 };
        Self {
            delalloc: setup.delalloc,
            allocator: BlockAllocator::new(&layout, options),
            inodes: InodeAllocator::new(&layout),
            files: BTreeMap::new(),
            order: Vec::new(),
            freed: Vec::new(),
            dirs: BTreeMap::from([(0, root)]),
            n_groups: layout.n_groups(),
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Mkdir { dir, parent } => self.make_dir(dir, parent, 0),
            Op::Create(file, how) => self.create(file, how),
            Op::Write { file, at, len } => self.write(file, at, len),
            Op::Fallocate { file, len } => {
                // What fits into one extent that is not written is asked for exactly.
                // Source: `ext4_alloc_file_blocks`.
                let exact = len <= UNWRITTEN_BLOCKS;
                while let Some((at, len)) = self.file(file).hole(0, len) {
                    let size = self.files[&file].n_blocks;
                    self.map(file, at, len.min(UNWRITTEN_BLOCKS), size, false, exact);
                }
                let state = self.file(file);
                state.n_blocks = state.n_blocks.max(len);
                // The tool opens the file, and closes it.
                if state.how.is_none() {
                    let ino = state.ino;
                    self.allocator.discard_preallocation(ino);
                }
            }
            Op::Sync(file) => self.write_back(file),
            Op::Close(file) => {
                let state = self.file(file);
                state.how = None;
                let (ino, clean) = (state.ino, state.dirty.is_empty());
                if clean {
                    self.allocator.discard_preallocation(ino);
                }
            }
            Op::Delete(file) => self.delete(file),
            Op::SyncAll => {
                for file in std::mem::take(&mut self.order) {
                    if self.files.contains_key(&file) {
                        self.write_back(file);
                    }
                }
                for (start, len) in std::mem::take(&mut self.freed) {
                    self.allocator.release_freed(start, len);
                }
            }
        }
    }

    /// Where the files are.
    pub(crate) fn runs(&self, files: &[u32]) -> Vec<Vec<Run>> {
        let runs = |file: &u32| {
            let extents = self.files[file].extents.iter();
            join(extents.map(|(first, (start, len))| (*first, *start..start + len)))
        };
        files.iter().map(runs).collect()
    }

    pub(crate) fn check(&self) {
        self.allocator.self_check();
        self.inodes.self_check();
    }

    fn file(&mut self, file: u32) -> &mut FileState {
        self.files.get_mut(&file).expect("the file was created")
    }

    /// Makes a directory. `near` is a group of the flex group that the hash of its name
    /// picks, which counts in the root.
    pub(crate) fn make_dir(&mut self, dir: u32, parent: u32, near: u32) {
        let name_hash = near / FLEX_GROUPS;
        assert!(near < self.n_groups);
        let new = NewInode::Directory { name_hash };
        let ino = self.inodes.allocate(new, self.dirs[&parent].file.ino, &self.allocator).unwrap();
        self.add_entry(parent);
        let file = FileState { ino, ..FileState::default() };
        self.dirs.insert(dir, Dir { file, n_entries: 0 });
        self.add_entry(dir);
    }

    fn create(&mut self, file: u32, how: How) {
        let dir = dir_of(file);
        let parent = self.dirs[&dir].file.ino;
        let ino = self.inodes.allocate(NewInode::File, parent, &self.allocator).unwrap();
        self.files.insert(file, FileState { ino, how: Some(how), ..FileState::default() });
        self.add_entry(dir);
    }

    fn add_entry(&mut self, dir: u32) {
        let dir = self.dirs.get_mut(&dir).expect("the directory was made");
        dir.n_entries += 1;
        while dir.file.n_blocks * BLOCK_ENTRIES < dir.n_entries {
            let group = self.inodes.group_of(dir.file.ino);
            let mut request = Request::data(dir.file.ino, group, dir.file.n_blocks, 1, 0);
            request.usage = BlockUse::Directory;
            request.left = dir.file.left(dir.file.n_blocks);
            request.reserved = false;
            let extent = self.allocator.allocate(&request).unwrap();
            dir.file.add(&extent);
            dir.file.n_blocks += 1;
        }
    }

    /// The inode number of a file.
    pub(crate) fn ino(&self, file: u32) -> u32 {
        self.files[&file].ino.0
    }

    /// The inode number of a directory.
    pub(crate) fn dir_ino(&self, dir: u32) -> u32 {
        self.dirs[&dir].file.ino.0
    }

    /// The group of an inode.
    pub(crate) fn group_of(&self, ino: u32) -> u32 {
        self.inodes.group_of(Ino(ino))
    }

    /// Free blocks.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.allocator.free_blocks()
    }

    fn write(&mut self, file: u32, at: u32, len: u32) {
        let end = at + len;
        let state = self.file(file);
        let size = state.n_blocks;
        if state.how == Some(How::Direct) {
            while let Some((at, len)) = self.file(file).hole(at, end) {
                self.map(file, at, len, size, false, false);
            }
        } else if !self.delalloc {
            // Each block is mapped alone.
            while let Some((at, _)) = self.file(file).hole(at, end) {
                self.map(file, at, 1, size, false, false);
            }
        } else {
            self.file(file).cache(at, end);
            let was_clean = self.file(file).dirty.is_empty();
            let mut from = at;
            while let Some((at, len)) = self.file(file).hole(from, end) {
                for block in at..at + len {
                    if self.file(file).dirty.insert(block) {
                        self.allocator.reserve(1).unwrap();
                    }
                }
                from = at + len;
            }
            if was_clean && !self.file(file).dirty.is_empty() {
                self.order.push(file);
            }
        }
        let state = self.file(file);
        state.n_blocks = state.n_blocks.max(end);
    }

    /// Maps dirty blocks, in extents as long as they come. When less comes than asked, the
    /// kernel goes on with the rest of the folio that was cut, and only then with more.
    fn write_back(&mut self, file: u32) {
        let dirty: Vec<u32> = std::mem::take(&mut self.file(file).dirty).into_iter().collect();
        let size = self.files[&file].n_blocks;
        for run in dirty.chunk_by(|a, b| a + 1 == *b) {
            let (mut at, end) = (run[0], run[0] + run.len() as u32);
            while at < end {
                let mut stop = end.min(at + WRITEBACK_BLOCKS);
                while at < stop {
                    let n_given = self.map(file, at, stop - at, size, true, false);
                    at += n_given;
                    if at < stop {
                        stop = stop.min(self.files[&file].folio_end(at));
                    }
                }
            }
        }
        self.order.retain(|other| *other != file);
    }

    /// `ext4_map_blocks`: once, perhaps for a part.
    fn map(&mut self, file: u32, at: u32, len: u32, size: u32, reserved: bool, exact: bool) -> u32 {
        let state = &self.files[&file];
        let group = self.inodes.group_of(state.ino);
        let request = Request {
            left: state.left(at),
            right: state.right(at),
            reserved,
            exact,
            open_for_write: state.how.is_some() || exact,
            ..Request::data(state.ino, group, at, len, size)
        };
        let extent = self.allocator.allocate(&request).unwrap();
        let state = self.file(file);
        state.add(&extent);
        let n_leaves = match state.extents.len() {
            n if n <= INODE_EXTENTS => 0,
            n => n.div_ceil(LEAF_EXTENTS),
        };
        if n_leaves > state.tree.len() {
            let tree = Request {
                usage: BlockUse::ExtentTree,
                len: 1,
                reserved: false,
                left: None,
                right: None,
                ..request
            };
            let block = self.allocator.allocate(&tree).unwrap().start;
            self.file(file).tree.push(block);
        }
        extent.len
    }

    fn delete(&mut self, file: u32) {
        let state = self.files.remove(&file).expect("the file was created");
        self.allocator.discard_preallocation(state.ino);
        self.allocator.unreserve(state.dirty.len() as u32);
        for (start, len) in state.extents.into_values() {
            self.allocator.mark_freed(FsBlock(start), len);
            self.freed.push((FsBlock(start), len));
        }
        for block in state.tree {
            self.allocator.mark_freed(block, 1);
            self.freed.push((block, 1));
        }
        self.inodes.free(state.ino, false);
        self.dirs.get_mut(&dir_of(file)).expect("the directory was made").n_entries -= 1;
    }
}
