//! Checks the books of the file system and of the host against each other. For tests: it
//! looks at every block, page and name.

use rustc_hash::FxHashMap;

use crate::application::Application;
use crate::fs::{FileSystem, ROOT};
use crate::host::Host;
use crate::inode::Inode;
use crate::layout::{FIRST_INODE, FsBlock, Ino};

impl<A: Application> Host<A> {
    /// Whether a block belongs to nothing: a discard may name it.
    #[doc(hidden)]
    pub fn is_free(&self, block: FsBlock) -> bool {
        let fs = self.file_system();
        !fs.layout.is_metadata(block) && !fs.alloc.is_given(block)
    }

    /// Checks all books against each other. For tests: it takes as long as the file system
    /// is large.
    ///
    /// # Panics
    ///
    /// If anything does not agree.
    #[doc(hidden)]
    pub fn self_check(&self) {
        self.file_system().self_check();
        self.check_writeback();
    }
}

/// Whether a slot holds a file or directory.
fn is_live(inode: &Inode) -> bool {
    inode.ino != Ino::default()
}

impl FileSystem {
    /// Checks all books against each other.
    ///
    /// # Panics
    ///
    /// If anything does not agree.
    pub(crate) fn self_check(&self) {
        self.alloc.self_check();
        self.inode_table.self_check();
        self.check_blocks();
        self.check_pages();
        self.check_names();
        if let Some(journal) = &self.journal {
            journal.self_check();
        }
    }

    fn live(&self) -> impl Iterator<Item = (u32, &Inode)> {
        (0u32..).zip(&self.inodes).filter(|(_, inode)| is_live(inode))
    }

    /// Every block has one owner, and the counts are those of the owners.
    fn check_blocks(&self) {
        let mut owned = vec![false; self.layout.n_blocks() as usize];
        let mut n_owned = 0u64;
        let mut own = |start: FsBlock, len: u32, what: &str, ino: Ino| {
            for block in start.0..start.0 + len {
                let ino = ino.0;
                assert!(
                    !self.layout.is_metadata(FsBlock(block)),
                    "{what} of inode {ino} has block {block}, which is for structures"
                );
                assert!(
                    !std::mem::replace(&mut owned[block as usize], true),
                    "{what} of inode {ino} has block {block}, which has an owner"
                );
                assert!(
                    self.alloc.is_given(FsBlock(block)),
                    "{what} of inode {ino} has block {block}, which is free"
                );
                n_owned += 1;
            }
        };
        for (_, inode) in self.live() {
            for e in inode.extents.iter() {
                if e.start != self.layout.root_dir() {
                    own(e.start, e.len, "a file", inode.ino);
                }
            }
            inode.tree.iter().for_each(|block| own(*block, 1, "a tree", inode.ino));
            inode.extents.self_check();
        }
        let mut n_pending = 0u64;
        if let Some(journal) = &self.journal {
            for (start, len) in journal.pending_frees() {
                own(start, len, "a commit that frees", Ino::default());
                n_pending += u64::from(len);
            }
        }
        assert_eq!(n_pending, self.alloc.freed_blocks(), "blocks that wait for a commit");
        let n_free = self.alloc.free_blocks() - n_pending;
        let n_all = u64::from(self.layout.free_blocks());
        assert_eq!(n_free + n_owned, n_all, "free and owned blocks are all there are");
    }

    /// Cached pages and what room is set aside for them.
    fn check_pages(&self) {
        let mut n_reserved = 0u64;
        for (i, inode) in self.live() {
            let (mut n, mut n_dirty) = (0, 0);
            for page in self.cache.dirty_pages(&inode.pages) {
                n_dirty += 1;
                n += u32::from(inode.extents.find(page).is_none());
                assert!(page < inode.n_pages(), "page {page} of slot {i} is behind the end");
            }
            assert_eq!(n_dirty, inode.pages.n_dirty, "dirty pages of slot {i}");
            assert_eq!(n, inode.n_reserved, "dirty pages of slot {i} without blocks");
            n_reserved += u64::from(n);
            assert_eq!(inode.dirty_since_ns.is_some(), n_dirty > 0, "slot {i} is dirty");
        }
        assert_eq!(n_reserved, self.alloc.reserved_blocks(), "blocks set aside for pages");
        let files = (0u32..).zip(&self.inodes).map(|(i, inode)| (i, &inode.pages));
        self.cache.self_check(files);
    }

    /// Names, links, descriptors and inode numbers.
    fn check_names(&self) {
        let mut n_names: FxHashMap<u32, u32> = FxHashMap::default();
        let mut n_entries: FxHashMap<u32, u32> = FxHashMap::default();
        for ((dir, component), i) in &self.entries {
            *n_names.entry(*i).or_default() += 1;
            *n_entries.entry(*dir).or_default() += 1;
            let inode = &self.inodes[*dir as usize];
            let entries = inode.dir.as_ref().expect("names are in directories");
            let block = entries.block_of(*component);
            assert!(inode.extents.find(block).is_some(), "block {block} of directory {dir}");
            assert!(is_live(&self.inodes[*i as usize]), "a name of nothing in directory {dir}");
        }
        let mut n_opens: FxHashMap<u32, u32> = FxHashMap::default();
        for file in self.files.iter().flatten() {
            *n_opens.entry(file.inode).or_default() += 1;
        }
        let mut n_live = 0;
        let mut seen = std::collections::BTreeSet::new();
        for (i, inode) in self.live() {
            n_live += 1;
            let names = n_names.get(&i).copied().unwrap_or(0);
            assert!(seen.insert(inode.ino), "inode {} is in two slots", inode.ino.0);
            assert!(self.inode_table.is_used(inode.ino), "inode {} is free", inode.ino.0);
            match &inode.dir {
                Some(dir) => {
                    assert_eq!(names, u32::from(i != ROOT), "names of directory {i}");
                    let entries = n_entries.get(&i).copied().unwrap_or(0);
                    assert_eq!(entries, dir.n_entries(), "entries of directory {i}");
                    let n_mapped: u32 = inode.extents.iter().map(|e| e.len).sum();
                    assert_eq!(n_mapped, dir.n_blocks(), "blocks of directory {i}");
                    assert_eq!(inode.n_pages(), dir.n_blocks(), "size of directory {i}");
                }
                None => {
                    assert_eq!(names, inode.links, "names of slot {i}");
                    let opens = n_opens.get(&i).copied().unwrap_or(0);
                    assert_eq!(opens + inode.n_calls, inode.opens, "users of slot {i}");
                    assert!(names + inode.opens > 0, "nobody uses slot {i}");
                }
            }
        }
        let n_used = self.layout.n_inodes() - self.inode_table.free_inodes();
        // The reserved ones, of which the root is live, and `lost+found`.
        assert_eq!(n_used, FIRST_INODE + n_live - 1, "inodes in use");
        self.check_slots();
    }
}
