//! Names and inodes: making, opening, removing, renaming; cutting and reserving.
//!
//! Each function is one system call's change to the books. Which blocks of metadata it
//! touches is the model's claim about ext4; the comparison with a real one is in
//! docs/model.md. Source: fs/ext4/namei.c, inode.c, ialloc.c of Linux 6.

use std::ops::Range;

use flashwise_hint::FileOp;

use crate::application::Outcome;
use crate::call::{Call, Fd, OpenFlags};
use crate::directory::{Directory, Grown, hash};
use crate::fs::{FileSystem, MapFor};
use crate::inode::{Inode, OpenFile, PAGE, ReadAhead};
use crate::inodes::NewInode;
use crate::layout::FsBlock;
use crate::paths::{PathId, Paths};

/// Blocks of unwritten extents that one transaction of `fallocate` takes at most. Source:
/// fs/ext4/extents.c, `EXT_UNWRITTEN_MAX_LEN`.
const FALLOCATE_MAX: u32 = 32_767;

/// Descriptors are smaller. Source: Linux `fs.nr_open`, 1048576 by default.
const FD_MAX: u32 = 1 << 20;

impl FileSystem {
    /// The open file a descriptor names.
    pub(crate) fn file(&self, fd: Fd) -> Result<&OpenFile, Outcome> {
        self.files.get(fd.0 as usize).and_then(Option::as_ref).ok_or(Outcome::Invalid)
    }

    pub(crate) fn file_mut(&mut self, fd: Fd) -> Option<&mut OpenFile> {
        self.files.get_mut(fd.0 as usize).and_then(Option::as_mut)
    }

    fn attach(&mut self, fd: Fd, inode: u32, flags: OpenFlags) -> Result<(), Outcome> {
        if fd.0 >= FD_MAX {
            return Err(Outcome::Invalid);
        }
        let at = fd.0 as usize;
        if self.files.len() <= at {
            self.files.resize_with(at + 1, || None);
        }
        if self.files[at].is_some() {
            return Err(Outcome::Invalid);
        }
        self.files[at] = Some(OpenFile { inode, flags, ahead: ReadAhead::default() });
        self.inodes[inode as usize].opens += 1;
        Ok(())
    }

    fn is_free(&self, fd: Fd) -> bool {
        fd.0 < FD_MAX && self.files.get(fd.0 as usize).is_none_or(Option::is_none)
    }

    /// The directory a new name goes into, and its component.
    fn parent(&mut self, paths: &Paths, path: PathId) -> Result<(u32, u32), Outcome> {
        let dir = self.resolve(paths, paths.parent(path))?;
        match self.inodes[dir as usize].dir {
            Some(_) if path != Paths::ROOT => Ok((dir, paths.component(path))),
            _ => Err(Outcome::Invalid),
        }
    }

    // ---- names ----

    fn dir_block(&self, dir: u32, block: u32) -> FsBlock {
        let found = self.inodes[dir as usize].extents.find(block);
        found.expect("every block of a directory is mapped").start
    }

    /// Puts a name into a directory; the block that holds it.
    fn enter(
        &mut self,
        paths: &Paths,
        dir: u32,
        path: PathId,
        inode: u32,
        cpu: u32,
    ) -> Result<FsBlock, Outcome> {
        let (component, name_len) = (paths.component(path), paths.name(path).len());
        self.enter_component(dir, component, name_len, inode, cpu)
    }

    /// [`enter`](Self::enter) by component and length of the name.
    pub(crate) fn enter_component(
        &mut self,
        dir: u32,
        component: u32,
        name_len: usize,
        inode: u32,
        cpu: u32,
    ) -> Result<FsBlock, Outcome> {
        let entries = self.inodes[dir as usize].dir.as_ref().expect("it is a directory");
        if let Some(grown) = entries.growth(component, name_len) {
            self.grow_directory(dir, grown, cpu)?;
        }
        let entries = self.inodes[dir as usize].dir.as_mut().expect("it is a directory");
        let block = entries.add(component, name_len).block;
        let block = self.dir_block(dir, block);
        self.touch(block);
        self.touch_inode(dir, false);
        self.entries.insert((dir, component), inode);
        Ok(block)
    }

    /// Finds all blocks that a directory needs to grow, or none.
    fn grow_directory(&mut self, dir: u32, grown: Grown, cpu: u32) -> Result<(), Outcome> {
        let old_size = self.inodes[dir as usize].size;
        let blocks = grown.first..grown.first + grown.n;
        self.inodes[dir as usize].size = u64::from(blocks.end) * PAGE;
        for new in blocks.clone() {
            if self.map(dir, new, 1, MapFor::Write, cpu).is_err() {
                let mut gone = vec![];
                let extents = &mut self.inodes[dir as usize].extents;
                extents.remove(blocks, |e| gone.push((e.start, e.len)));
                gone.into_iter().for_each(|(start, len)| self.free(start, len, true));
                self.inodes[dir as usize].size = old_size;
                // Fewer extents need no new block of the tree.
                let _ = self.touch_tree(dir, grown.first, cpu);
                return Err(Outcome::NoSpace);
            }
            self.touch(self.dir_block(dir, new));
        }
        self.touch(self.dir_block(dir, grown.split));
        self.touch(self.dir_block(dir, 0));
        Ok(())
    }

    /// Takes a name out of a directory.
    fn leave(&mut self, paths: &Paths, dir: u32, path: PathId) {
        self.leave_component(dir, paths.component(path), paths.name(path).len());
        self.unremember(path);
    }

    /// [`leave`](Self::leave) by component and length of the name.
    pub(crate) fn leave_component(&mut self, dir: u32, component: u32, name_len: usize) {
        let entries = self.inodes[dir as usize].dir.as_mut().expect("it is a directory");
        let block = entries.remove(component, name_len);
        let block = self.dir_block(dir, block);
        self.touch(block);
        self.touch_inode(dir, false);
        self.entries.remove(&(dir, component));
    }

    /// A new inode beside `dir`.
    fn new_inode(&mut self, paths: &Paths, dir: u32, path: Option<PathId>) -> Result<u32, Outcome> {
        let parent = self.inodes[dir as usize].ino;
        let ino = self.inode_table.allocate(NewInode::File, parent, &self.alloc);
        let ino = ino.map_err(|_| Outcome::NoSpace)?;
        let inode = Inode {
            ino,
            id: self.new_id(),
            table_block: self.layout.inode_table_block(ino),
            mtime_ns: self.now_ns,
            class: self.class_of(paths, path),
            ..Inode::default()
        };
        let i = self.slot(inode);
        self.touch_inodes_of(self.layout.group_of_inode(ino));
        self.touch_inode(i, true);
        self.tell(i, || FileOp::Create { path: path.map(|path| paths.path(path).to_owned()) });
        Ok(i)
    }

    /// `open`.
    pub(crate) fn open(
        &mut self,
        paths: &Paths,
        path: PathId,
        fd: Fd,
        flags: OpenFlags,
        cpu: u32,
    ) -> Result<(), Outcome> {
        if !self.is_free(fd) {
            return Err(Outcome::Invalid);
        }
        let i = match self.resolve(paths, path) {
            Ok(_) if flags.create && flags.exclusive => return Err(Outcome::Exists),
            Ok(i) if self.inodes[i as usize].dir.is_some() => return Err(Outcome::IsDirectory),
            Ok(i) => {
                self.attach(fd, i, flags)?;
                self.tell(i, || FileOp::Open { path: paths.path(path).to_owned() });
                let inode = &self.inodes[i as usize];
                if flags.truncate && (inode.size > 0 || inode.extents.len() > 0) {
                    self.truncate(i, 0);
                }
                return Ok(());
            }
            Err(_) if !flags.create => return Err(Outcome::NotFound),
            Err(_) => {
                let (dir, _) = self.parent(paths, path)?;
                let i = self.new_inode(paths, dir, Some(path))?;
                self.inodes[i as usize].links = 1;
                match self.enter(paths, dir, path, i, cpu) {
                    // The directory's inode is not written with it (measured).
                    Ok(block) => self.inodes[i as usize].name_blocks = vec![block],
                    Err(outcome) => {
                        self.inodes[i as usize].links = 0;
                        self.evict(i);
                        return Err(outcome);
                    }
                }
                i
            }
        };
        self.attach(fd, i, flags)
    }

    /// `open` with `O_TMPFILE`.
    pub(crate) fn open_temporary(
        &mut self,
        paths: &Paths,
        dir: PathId,
        fd: Fd,
        flags: OpenFlags,
    ) -> Result<(), Outcome> {
        let dir = self.resolve(paths, dir)?;
        if self.inodes[dir as usize].dir.is_none() || !self.is_free(fd) {
            return Err(Outcome::Invalid);
        }
        let i = self.new_inode(paths, dir, None)?;
        self.inodes[i as usize].is_linkable = true;
        self.touch_orphans();
        self.attach(fd, i, flags)
    }

    /// `close`. The inode index, if its data should be written back now because it replaces
    /// what was cut away.
    pub(crate) fn close(&mut self, fd: Fd) -> Result<Option<u32>, Outcome> {
        let i = self.file(fd)?.inode;
        self.files[fd.0 as usize] = None;
        Ok(self.put(i))
    }

    /// A call begins to use a file: it stays until [`FileSystem::end_use`].
    pub(crate) fn begin_use(&mut self, i: u32) {
        let inode = &mut self.inodes[i as usize];
        (inode.opens, inode.n_calls) = (inode.opens + 1, inode.n_calls + 1);
    }

    /// A call that used a file is over. As `close` answers.
    pub(crate) fn end_use(&mut self, i: u32) -> Option<u32> {
        self.inodes[i as usize].n_calls -= 1;
        self.put(i)
    }

    /// Whether a file goes when one that uses it does not any more.
    pub(crate) fn is_last_use(&self, i: u32) -> bool {
        let inode = &self.inodes[i as usize];
        inode.links == 0 && inode.opens == 1
    }

    /// One user of the inode less.
    fn put(&mut self, i: u32) -> Option<u32> {
        let inode = &mut self.inodes[i as usize];
        inode.opens -= 1;
        if inode.opens > 0 {
            return None;
        }
        self.tell(i, || FileOp::LastClose);
        let inode = &mut self.inodes[i as usize];
        if inode.links == 0 {
            self.evict(i);
            return None;
        }
        let inode = &mut self.inodes[i as usize];
        let was_cut = std::mem::take(&mut inode.was_cut);
        let (ino, n_reserved) = (inode.ino, inode.n_reserved);
        if n_reserved == 0 {
            self.alloc.discard_preallocation(ino);
        }
        Some(i).filter(|_| was_cut && n_reserved > 0)
    }

    /// The inode whose blocks a call gives back, if it does.
    pub(crate) fn victim(&mut self, paths: &Paths, call: &Call) -> Option<u32> {
        let last_name = |fs: &mut Self, path| {
            let i = fs.resolve(paths, path).ok()?;
            let inode = &fs.inodes[i as usize];
            (inode.links == 1 && inode.opens == 0).then_some(i)
        };
        match *call {
            Call::Unlink { path } => last_name(self, path),
            Call::Rename { from, to } if from != to => last_name(self, to),
            Call::Open { path, flags, .. } if flags.truncate => {
                let i = self.resolve(paths, path).ok()?;
                (self.inodes[i as usize].size > 0).then_some(i)
            }
            Call::Close { fd } => {
                let i = self.file(fd).ok()?.inode;
                self.is_last_use(i).then_some(i)
            }
            Call::Truncate { fd, size } => {
                let i = self.file(fd).ok()?.inode;
                (size <= self.inodes[i as usize].size).then_some(i)
            }
            Call::PunchHole { fd, .. } => Some(self.file(fd).ok()?.inode),
            _ => None,
        }
    }

    /// `unlink`.
    pub(crate) fn unlink(&mut self, paths: &Paths, path: PathId) -> Result<(), Outcome> {
        let i = self.resolve(paths, path)?;
        if self.inodes[i as usize].dir.is_some() {
            return Err(Outcome::IsDirectory);
        }
        let (dir, _) = self.parent(paths, path)?;
        self.leave(paths, dir, path);
        self.drop_link(i);
        Ok(())
    }

    /// A name of the inode is gone.
    fn drop_link(&mut self, i: u32) {
        self.touch_inode(i, true);
        let inode = &mut self.inodes[i as usize];
        inode.links -= 1;
        if inode.links > 0 {
            return;
        }
        let is_open = inode.opens > 0;
        self.tell(i, || FileOp::Unlink);
        self.touch_orphans();
        if !is_open {
            self.evict(i);
        }
    }

    /// The last name and the last descriptor are gone: so is the file.
    pub(crate) fn evict(&mut self, i: u32) {
        let ino = self.inodes[i as usize].ino;
        self.alloc.discard_preallocation(ino);
        self.cut(i, 0..u32::MAX);
        self.touch_orphans();
        self.touch_inode(i, true);
        self.touch_inodes_of(self.layout.group_of_inode(ino));
        self.inode_table.free(ino, false);
        self.drop_slot(i);
    }

    /// `mkdir`.
    pub(crate) fn mkdir(&mut self, paths: &Paths, path: PathId, cpu: u32) -> Result<(), Outcome> {
        if self.resolve(paths, path).is_ok() {
            return Err(Outcome::Exists);
        }
        let (dir, _) = self.parent(paths, path)?;
        let parent = self.inodes[dir as usize].ino;
        let kind = NewInode::Directory { name_hash: hash(paths.component(path)) };
        let ino = self.inode_table.allocate(kind, parent, &self.alloc);
        let ino = ino.map_err(|_| Outcome::NoSpace)?;
        let inode = Inode {
            ino,
            table_block: self.layout.inode_table_block(ino),
            links: 2,
            size: PAGE,
            dir: Some(Box::new(Directory::new())),
            ..Inode::default()
        };
        let i = self.slot(inode);
        self.touch_inodes_of(self.layout.group_of_inode(ino));
        let made = match self.map(i, 0, 1, MapFor::Write, cpu) {
            Ok(_) => self.enter(paths, dir, path, i, cpu).map(drop),
            Err(_) => Err(Outcome::NoSpace),
        };
        if let Err(outcome) = made {
            self.remove_dir_inode(i);
            return Err(outcome);
        }
        self.touch(self.dir_block(i, 0));
        self.touch_inode(i, true);
        Ok(())
    }

    /// `rmdir`.
    pub(crate) fn rmdir(&mut self, paths: &Paths, path: PathId) -> Result<(), Outcome> {
        let i = self.resolve(paths, path)?;
        match &self.inodes[i as usize].dir {
            None => return Err(Outcome::Invalid),
            Some(dir) if dir.n_entries() > 0 || path == Paths::ROOT => {
                return Err(Outcome::IsDirectory);
            }
            Some(_) => {}
        }
        let (dir, _) = self.parent(paths, path)?;
        self.leave(paths, dir, path);
        self.touch_orphans();
        self.remove_dir_inode(i);
        Ok(())
    }

    fn remove_dir_inode(&mut self, i: u32) {
        let extents: Vec<_> = self.inodes[i as usize].extents.iter().copied().collect();
        for extent in extents {
            self.free(extent.start, extent.len, true);
        }
        let tree = std::mem::take(&mut self.inodes[i as usize].tree);
        tree.into_iter().for_each(|block| self.free(block, 1, true));
        let ino = self.inodes[i as usize].ino;
        self.touch_inode(i, true);
        self.touch_inodes_of(self.layout.group_of_inode(ino));
        self.inode_table.free(ino, true);
        self.drop_slot(i);
        self.generation += 1;
    }

    /// `link`, or `linkat` of an open file.
    pub(crate) fn link(
        &mut self,
        paths: &Paths,
        i: u32,
        to: PathId,
        cpu: u32,
    ) -> Result<(), Outcome> {
        if self.inodes[i as usize].dir.is_some() {
            return Err(Outcome::IsDirectory);
        }
        if self.resolve(paths, to).is_ok() {
            return Err(Outcome::Exists);
        }
        let (dir, _) = self.parent(paths, to)?;
        let inode = &self.inodes[i as usize];
        if inode.links == 0 && !inode.is_linkable {
            // What was unlinked stays so. Source: fs/namei.c, `vfs_link`.
            return Err(Outcome::NotFound);
        }
        self.enter(paths, dir, to, i, cpu)?;
        let inode = &mut self.inodes[i as usize];
        inode.links += 1;
        inode.is_linkable = false;
        if inode.links == 1 {
            // It was an orphan.
            let class = self.class_of(paths, Some(to));
            self.inodes[i as usize].class = class;
            self.touch_orphans();
        }
        self.touch_inode(i, true);
        Ok(())
    }

    /// `rename`. The inode index, if its data should be written back now because it replaces
    /// another file.
    pub(crate) fn rename(
        &mut self,
        paths: &Paths,
        from: PathId,
        to: PathId,
        cpu: u32,
    ) -> Result<Option<u32>, Outcome> {
        let i = self.resolve(paths, from)?;
        if from == to {
            return Ok(None);
        }
        let (from_dir, _) = self.parent(paths, from)?;
        let (to_dir, component) = self.parent(paths, to)?;
        let is_dir = self.inodes[i as usize].dir.is_some();
        if is_dir && self.is_below(paths, to, i) {
            return Err(Outcome::Invalid);
        }
        let replaced = self.resolve(paths, to).ok();
        match replaced {
            Some(old) if old == i => return Ok(None),
            Some(old) => {
                let old_dir = self.inodes[old as usize].dir.as_ref();
                match (is_dir, old_dir.map(|d| d.n_entries())) {
                    (false, None) => {}
                    (true, Some(0)) => self.rmdir(paths, to)?,
                    _ => return Err(Outcome::IsDirectory),
                }
            }
            None => {}
        }
        if let (Some(old), false) = (replaced, is_dir) {
            // The entry changes its inode; the directory does not grow.
            let entries = self.inodes[to_dir as usize].dir.as_ref().expect("it is a directory");
            let block = self.dir_block(to_dir, entries.block_of(component));
            self.touch(block);
            self.touch_inode(to_dir, false);
            self.entries.insert((to_dir, component), i);
            self.unremember(to);
            self.leave(paths, from_dir, from);
            self.drop_link(old);
        } else {
            self.enter(paths, to_dir, to, i, cpu)?;
            self.leave(paths, from_dir, from);
        }
        if is_dir {
            self.generation += 1;
        } else if from.0 != to.0 {
            self.inodes[i as usize].class = self.class_of(paths, Some(to));
        }
        self.touch_inode(i, true);
        if !is_dir {
            self.tell(i, || FileOp::Rename { to: paths.path(to).to_owned() });
        }
        let writes_back = replaced.is_some() && self.inodes[i as usize].n_reserved > 0;
        Ok(Some(i).filter(|_| writes_back))
    }

    /// Whether `path` lies in the directory `i` or is it.
    fn is_below(&mut self, paths: &Paths, mut path: PathId, i: u32) -> bool {
        while path != Paths::ROOT {
            if self.resolve(paths, path) == Ok(i) {
                return true;
            }
            path = paths.parent(path);
        }
        false
    }

    // ---- size and blocks ----

    /// `ftruncate`.
    pub(crate) fn truncate(&mut self, i: u32, size: u64) {
        let old = self.inodes[i as usize].size;
        self.tell(i, || FileOp::Truncate { size });
        self.inodes[i as usize].size = size;
        self.inodes[i as usize].mtime_ns = self.now_ns;
        // Cutting to the same size gives back what was reserved behind the end. Source:
        // fs/ext4/inode.c, `ext4_setattr`.
        if size <= old {
            self.touch_orphans();
            let first = size.div_ceil(PAGE) as u32;
            let ino = self.inodes[i as usize].ino;
            self.alloc.discard_preallocation(ino);
            self.cut(i, first..u32::MAX);
            if size == 0 && old > 0 {
                self.inodes[i as usize].was_cut = true;
            }
            self.zero_edge(i, size);
            self.touch_orphans();
        }
        self.touch_inode(i, true);
    }

    /// The rest of a block that is cut in the middle is filled with zeroes.
    fn zero_edge(&mut self, i: u32, edge: u64) {
        let page = (edge / PAGE) as u32;
        let mapped = self.inodes[i as usize].extents.find(page).is_some_and(|e| !e.unwritten);
        if !edge.is_multiple_of(PAGE) && mapped {
            self.mark_dirty(i, page..page + 1, false);
            self.log_data(i, page..page + 1);
        }
    }

    /// Pages and blocks of `range` go.
    pub(crate) fn cut(&mut self, i: u32, range: Range<u32>) {
        let mut pages = std::mem::take(&mut self.inodes[i as usize].pages);
        let reserved = self.reserved_in(i, &mut pages, &range);
        self.cache.forget(&mut pages, range.clone());
        let clean = pages.n_dirty == 0;
        let inode = &mut self.inodes[i as usize];
        inode.pages = pages;
        if clean {
            inode.dirty_since_ns = None;
        }
        inode.n_reserved -= reserved;
        self.alloc.unreserve(reserved);
        let mut freed = vec![];
        self.inodes[i as usize].extents.remove(range.clone(), |e| freed.push((e.start, e.len)));
        if freed.is_empty() {
            return;
        }
        for (start, len) in freed {
            self.free(start, len, false);
        }
        // A hole can make one extent more. Without room for it the tree stays short.
        let _ = self.touch_tree(i, range.start, 0);
    }

    /// Dirty pages of `range` that room is set aside for.
    fn reserved_in(
        &mut self,
        i: u32,
        pages: &mut crate::cache::FilePages,
        range: &Range<u32>,
    ) -> u32 {
        if self.inodes[i as usize].n_reserved == 0 {
            return 0;
        }
        let mut n = 0;
        let mut at = range.start;
        while let Some(run) = self.cache.next_dirty(pages, at..range.end, u32::MAX) {
            let mut page = run.start;
            while page < run.end {
                let extents = &self.inodes[i as usize].extents;
                match extents.find(page) {
                    Some(e) => page += e.len.min(run.end - page),
                    None => {
                        let next = extents.next_mapped(page).unwrap_or(u32::MAX).min(run.end);
                        n += next - page;
                        page = next;
                    }
                }
            }
            at = run.end;
        }
        n
    }

    /// `fallocate`.
    pub(crate) fn fallocate(
        &mut self,
        i: u32,
        offset: u64,
        len: u64,
        keep_size: bool,
        cpu: u32,
    ) -> Result<(), Outcome> {
        let end = offset.checked_add(len).filter(|end| *end <= MAX_SIZE && len > 0);
        let end = end.ok_or(Outcome::Invalid)?;
        let last = end.div_ceil(PAGE) as u32;
        let mut at = (offset / PAGE) as u32;
        while at < last {
            let extents = &self.inodes[i as usize].extents;
            if let Some(extent) = extents.find(at) {
                at += extent.len;
                continue;
            }
            let hole = extents.next_mapped(at).unwrap_or(u32::MAX).min(last) - at;
            match self.map(i, at, hole.min(FALLOCATE_MAX), MapFor::Fallocate, cpu) {
                Ok(n) => {
                    self.keep_promise(i, at..at + n);
                    at += n;
                }
                Err(_) => return Err(Outcome::NoSpace),
            }
        }
        let inode = &mut self.inodes[i as usize];
        if !keep_size {
            inode.size = inode.size.max(end);
        }
        self.touch_inode(i, true);
        Ok(())
    }

    /// A hole got blocks that were not taken from what was set aside for its dirty pages.
    pub(crate) fn keep_promise(&mut self, i: u32, range: Range<u32>) {
        if self.inodes[i as usize].n_reserved == 0 {
            return;
        }
        let n = self.n_dirty_in(i, range);
        self.inodes[i as usize].n_reserved -= n;
        self.alloc.unreserve(n);
    }

    /// `fallocate` with `FALLOC_FL_PUNCH_HOLE`.
    pub(crate) fn punch(&mut self, i: u32, offset: u64, len: u64) -> Result<(), Outcome> {
        let end = offset.checked_add(len).filter(|_| len > 0).ok_or(Outcome::Invalid)?;
        let size = self.inodes[i as usize].size;
        let end = end.min(size);
        if offset >= end {
            return Ok(());
        }
        let first = offset.div_ceil(PAGE) as u32;
        // Up to the end of the file the last block goes whole.
        let last = if end == size { end.div_ceil(PAGE) } else { end / PAGE } as u32;
        let ino = self.inodes[i as usize].ino;
        self.alloc.discard_preallocation(ino);
        if first < last {
            self.cut(i, first..last);
        }
        self.zero_edge(i, offset);
        if !end.is_multiple_of(PAGE) && end < self.inodes[i as usize].size {
            self.zero_edge(i, end);
        }
        self.touch_inode(i, true);
        Ok(())
    }
}

/// Largest file \[bytes\]: 2^32 - 1 blocks of 4 KiB less one. Source: kernel documentation,
/// ext4 "Limits" (16 TiB with extents).
pub(crate) const MAX_SIZE: u64 = (u32::MAX as u64 - 1) * PAGE;
