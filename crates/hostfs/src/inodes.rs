//! Which number an inode gets, and so where in an inode table it is and near which blocks
//! its data goes.
//!
//! A file goes where its directory is: the first free number of the first group of the flex
//! group that has one. Directories in the root are spread over the flex groups that are
//! emptier than the mean (Orlov); deeper ones stay with their parent while it is not
//! crowded. Source: Linux 6.18 `fs/ext4/ialloc.c`, `find_group_orlov`, `find_group_other`,
//! `__ext4_new_inode`.
//!
//! A freed number is used again at once, the lowest first: ext4 spares recently deleted
//! inodes only when it has no journal (`recently_deleted`), which is left out here. Where a
//! directory in the root goes depends, in ext4, on a hash of its name with a key that is
//! chosen at random by `mke2fs`; here the caller gives the hash.
//!
//! Invariants: a number is given once until it is freed; counts are those of the bitmaps.
//! Cost: O(flex groups) for a directory, a scan of words of 64 numbers for a file; 1 bit for
//! each inode.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::alloc::BlockAllocator;
use crate::layout::{FIRST_INODE, FLEX_GROUPS, GROUP_BLOCKS, Ino, Layout};

/// All inodes are in use.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "no inode left: all {n_inodes} of the file system are in use; delete files or lay it out \
     with more inodes (a smaller inode ratio)"
)]
pub struct NoInodes {
    /// Inodes of the file system.
    pub n_inodes: u32,
}

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewInode {
    /// A file, link or device.
    File,
    /// A directory.
    Directory {
        /// A hash of its name, which picks a flex group for a directory in the root.
        name_hash: u32,
    },
}

/// The inode numbers of a file system.
#[derive(Clone, Debug)]
pub struct InodeAllocator {
    inodes_per_group: u32,
    /// Words of the bitmap of one group.
    words: usize,
    /// A bit for each number that is in use.
    used: Vec<u64>,
    /// Free numbers and directories by group.
    free: Vec<u32>,
    directories: Vec<u32>,
    n_free: u32,
    n_directories: u32,
    /// Group of the last inode made in a directory.
    last_group: BTreeMap<u32, u32>,
}

/// What a search asks of a flex group.
#[derive(Clone, Copy, Debug)]
struct Flex {
    n_free: u32,
    n_directories: u32,
    free_blocks: u64,
}

impl InodeAllocator {
    /// All numbers of a new file system: the reserved ones, the root and `lost+found` are in
    /// use.
    pub fn new(layout: &Layout) -> Self {
        let (n_groups, per_group) = (layout.n_groups(), layout.inodes_per_group());
        let words = per_group.div_ceil(64) as usize;
        let mut inodes = Self {
            inodes_per_group: per_group,
            words,
            used: vec![0; words * n_groups as usize],
            free: vec![per_group; n_groups as usize],
            directories: vec![0; n_groups as usize],
            n_free: per_group * n_groups,
            n_directories: 0,
            last_group: BTreeMap::new(),
        };
        for ino in 1..=FIRST_INODE {
            inodes.take(Ino(ino), ino == Ino::ROOT.0 || ino == FIRST_INODE);
        }
        inodes
    }

    /// Free numbers.
    pub fn free_inodes(&self) -> u32 {
        self.n_free
    }

    /// Free numbers of a group, as its descriptor counts them.
    pub fn free_in_group(&self, group: u32) -> u32 {
        self.free[group as usize]
    }

    /// Directories of a group, as its descriptor counts them.
    pub fn directories_in_group(&self, group: u32) -> u32 {
        self.directories[group as usize]
    }

    /// The group a number belongs to, whose bitmap and descriptor change with it.
    pub fn group_of(&self, ino: Ino) -> u32 {
        (ino.0 - 1) / self.inodes_per_group
    }

    /// Whether a number is in use.
    pub fn is_used(&self, ino: Ino) -> bool {
        let (word, bit) = self.place(ino);
        self.used[word] >> bit & 1 == 1
    }

    /// Gives a number to something new in a directory.
    pub fn allocate(
        &mut self,
        new: NewInode,
        parent: Ino,
        blocks: &BlockAllocator,
    ) -> Result<Ino, NoInodes> {
        let none = NoInodes { n_inodes: self.free.len() as u32 * self.inodes_per_group };
        if self.n_free == 0 {
            return Err(none);
        }
        let group = match new {
            NewInode::File => self.group_for_file(parent, blocks),
            NewInode::Directory { name_hash } => {
                let hash = (parent == Ino::ROOT).then_some(name_hash);
                self.group_for_directory(parent, hash, blocks)
            }
        };
        let group = group.ok_or(none)?;
        self.last_group.insert(parent.0, group);
        let ino = self.first_free(group).ok_or(none)?;
        self.take(ino, new != NewInode::File);
        Ok(ino)
    }

    /// Takes a number back.
    pub fn free(&mut self, ino: Ino, is_directory: bool) {
        assert!(self.is_used(ino), "inode {} is freed but not in use", ino.0);
        let (word, bit) = self.place(ino);
        let group = self.group_of(ino) as usize;
        self.used[word] &= !(1 << bit);
        self.free[group] += 1;
        self.n_free += 1;
        if is_directory {
            self.directories[group] -= 1;
            self.n_directories -= 1;
            self.last_group.remove(&ino.0);
        }
    }

    fn place(&self, ino: Ino) -> (usize, u32) {
        let (group, idx) = (self.group_of(ino), (ino.0 - 1) % self.inodes_per_group);
        (group as usize * self.words + idx as usize / 64, idx % 64)
    }

    fn take(&mut self, ino: Ino, is_directory: bool) {
        assert!(!self.is_used(ino), "inode {} is given twice", ino.0);
        let (word, bit) = self.place(ino);
        let group = self.group_of(ino) as usize;
        self.used[word] |= 1 << bit;
        self.free[group] -= 1;
        self.n_free -= 1;
        self.directories[group] += u32::from(is_directory);
        self.n_directories += u32::from(is_directory);
    }

    /// The first free number of a group.
    fn first_free(&self, group: u32) -> Option<Ino> {
        let words = &self.used[group as usize * self.words..][..self.words];
        let word = words.iter().position(|word| *word != u64::MAX)?;
        let idx = word as u32 * 64 + words[word].trailing_ones();
        let is_inside = idx < self.inodes_per_group;
        is_inside.then_some(Ino(group * self.inodes_per_group + idx + 1))
    }

    fn n_groups(&self) -> u32 {
        self.free.len() as u32
    }

    /// The groups of a flex group.
    fn flex_range(&self, flex: u32) -> std::ops::Range<u32> {
        let first = flex * FLEX_GROUPS;
        first..(first + FLEX_GROUPS).min(self.n_groups())
    }

    /// The first group of a flex group that has a free number.
    fn first_group(&self, flex: u32) -> Option<u32> {
        self.flex_range(flex).find(|group| self.free[*group as usize] > 0)
    }

    fn flex(&self, flex: u32, blocks: &BlockAllocator) -> Flex {
        let groups = self.flex_range(flex);
        Flex {
            n_free: groups.clone().map(|group| self.free[group as usize]).sum(),
            n_directories: groups.clone().map(|group| self.directories[group as usize]).sum(),
            free_blocks: groups.map(|group| u64::from(blocks.free_in_group(group))).sum(),
        }
    }

    fn group_for_file(&self, parent: Ino, blocks: &BlockAllocator) -> Option<u32> {
        let own = self.group_of(parent) / FLEX_GROUPS;
        let last = self.last_group.get(&parent.0).map(|group| group / FLEX_GROUPS);
        self.first_group(own)
            .or_else(|| self.first_group(last?))
            .or_else(|| self.group_for_directory(parent, None, blocks))
    }

    fn group_for_directory(
        &self,
        parent: Ino,
        root_hash: Option<u32>,
        blocks: &BlockAllocator,
    ) -> Option<u32> {
        let n_flex = self.n_groups().div_ceil(FLEX_GROUPS);
        let chosen = match root_hash {
            Some(hash) => self.emptiest_flex(hash % n_flex, n_flex, blocks),
            None => self.near_flex(parent, n_flex, blocks),
        };
        chosen.and_then(|flex| self.first_group(flex)).or_else(|| self.any_group(parent))
    }

    /// Of the flex groups with no less room than the mean, the one with fewest directories;
    /// the first such from `start` on.
    fn emptiest_flex(&self, start: u32, n_flex: u32, blocks: &BlockAllocator) -> Option<u32> {
        let mean_free = self.n_free / n_flex;
        let mean_blocks = blocks.free_blocks() / u64::from(n_flex);
        let mut best = None;
        let mut least = self.inodes_per_group;
        for flex in (start..n_flex).chain(0..start) {
            let Flex { n_free, n_directories, free_blocks } = self.flex(flex, blocks);
            let has_room = n_free > 0 && n_free >= mean_free && free_blocks >= mean_blocks;
            if has_room && n_directories < least {
                (best, least) = (Some(flex), n_directories);
            }
        }
        best
    }

    /// The first flex group from that of the parent on which is not crowded.
    fn near_flex(&self, parent: Ino, n_flex: u32, blocks: &BlockAllocator) -> Option<u32> {
        // Source: `find_group_orlov`: a 16th of the inodes of a flex group may be directories
        // above the mean; a quarter of its inodes and blocks may be missing to the mean.
        let most_directories =
            self.n_directories / n_flex + self.inodes_per_group * FLEX_GROUPS / 16;
        let mean_free = self.n_free / n_flex;
        let least_free = mean_free.saturating_sub(self.inodes_per_group * FLEX_GROUPS / 4).max(1);
        let mean_blocks = blocks.free_blocks() / u64::from(n_flex);
        let least_blocks = mean_blocks.saturating_sub(u64::from(GROUP_BLOCKS * FLEX_GROUPS / 4));
        let near = self.last_group.get(&parent.0).copied();
        let start = near.unwrap_or_else(|| self.group_of(parent)) / FLEX_GROUPS;
        (start..n_flex).chain(0..start).find(|flex| {
            let Flex { n_free, n_directories, free_blocks } = self.flex(*flex, blocks);
            n_directories < most_directories && n_free >= least_free && free_blocks >= least_blocks
        })
    }

    /// The first group from that of the parent on with no fewer free numbers than the mean,
    /// then with any.
    fn any_group(&self, parent: Ino) -> Option<u32> {
        let start = self.group_of(parent);
        let mean = self.n_free / self.n_groups();
        let find = |least: u32| {
            (start..self.n_groups())
                .chain(0..start)
                .find(|group| self.free[*group as usize] >= least.max(1))
        };
        find(mean).or_else(|| find(1))
    }

    /// Checks counts against the bitmaps.
    ///
    /// # Panics
    ///
    /// If they do not agree.
    pub fn self_check(&self) {
        for group in 0..self.n_groups() {
            let words = &self.used[group as usize * self.words..][..self.words];
            let n_used: u32 = words.iter().map(|word| word.count_ones()).sum();
            let n_free = self.free[group as usize];
            assert_eq!(n_used + n_free, self.inodes_per_group, "inodes of group {group}");
            assert!(self.directories[group as usize] <= n_used, "directories of group {group}");
        }
        assert_eq!(self.free.iter().sum::<u32>(), self.n_free);
        assert_eq!(self.directories.iter().sum::<u32>(), self.n_directories);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::AllocOptions;
    use crate::layout::LayoutOptions;
    use proptest::prelude::*;

    fn file_system(n_blocks: u64) -> (Layout, BlockAllocator, InodeAllocator) {
        let layout = Layout::new(&LayoutOptions::new(n_blocks)).unwrap();
        let blocks = BlockAllocator::new(&layout, AllocOptions::default());
        let inodes = InodeAllocator::new(&layout);
        (layout, blocks, inodes)
    }

    #[test]
    fn files_take_the_lowest_numbers_near_their_directory() {
        let (_, blocks, mut inodes) = file_system(8 << 18);
        let new = |inodes: &mut InodeAllocator| {
            inodes.allocate(NewInode::File, Ino::ROOT, &blocks).unwrap().0
        };
        assert_eq!([12, 13, 14], [new(&mut inodes), new(&mut inodes), new(&mut inodes)]);
        inodes.free(Ino(13), false);
        assert_eq!([13, 15], [new(&mut inodes), new(&mut inodes)]);
        inodes.self_check();
    }

    #[test]
    fn directories_of_the_root_spread_and_others_stay() {
        let (_, blocks, mut inodes) = file_system(64 << 18);
        let mut flexes = Vec::new();
        for name_hash in 0..8 {
            let new = NewInode::Directory { name_hash: 3 * name_hash };
            let dir = inodes.allocate(new, Ino::ROOT, &blocks).unwrap();
            let flex = inodes.group_of(dir) / FLEX_GROUPS;
            let below = NewInode::Directory { name_hash: 7 };
            let child = inodes.allocate(below, dir, &blocks).unwrap();
            assert_eq!(inodes.group_of(child) / FLEX_GROUPS, flex);
            let file = inodes.allocate(NewInode::File, child, &blocks).unwrap();
            assert_eq!(inodes.group_of(file) / FLEX_GROUPS, flex);
            flexes.push(flex);
        }
        flexes.sort_unstable();
        flexes.dedup();
        // 32 flex groups, and none gets a second directory while others have none.
        assert_eq!(flexes.len(), 8);
        inodes.self_check();
    }

    #[test]
    fn every_number_is_given_once_and_then_no_more() {
        let (layout, blocks, mut inodes) = file_system(80_000);
        let mut seen = vec![false; layout.n_inodes() as usize + 1];
        for _ in 0..layout.n_inodes() - FIRST_INODE {
            let ino = inodes.allocate(NewInode::File, Ino::ROOT, &blocks).unwrap();
            assert!(!std::mem::replace(&mut seen[ino.0 as usize], true));
        }
        let refused = inodes.allocate(NewInode::File, Ino::ROOT, &blocks).unwrap_err();
        assert!(refused.to_string().contains("no inode left"));
        inodes.free(Ino(4321), false);
        assert_eq!(inodes.allocate(NewInode::File, Ino::ROOT, &blocks), Ok(Ino(4321)));
        inodes.self_check();
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn numbers_follow_a_list(
            steps in prop::collection::vec((0u8..4, any::<u32>()), 1..400),
            inode_ratio in prop_oneof![Just(16_384u32), Just(16 << 20)],
        ) {
            let inode_ratio = Some(inode_ratio);
            let options = LayoutOptions { inode_ratio, ..LayoutOptions::new(8 << 18) };
            let layout = Layout::new(&options).unwrap();
            let blocks = BlockAllocator::new(&layout, AllocOptions::default());
            let mut inodes = InodeAllocator::new(&layout);
            let mut dirs = vec![Ino::ROOT];
            let mut files: Vec<Ino> = Vec::new();
            let n_free = inodes.free_inodes();
            for (kind, pick) in steps {
                let parent = dirs[pick as usize % dirs.len()];
                match kind {
                    0 if !files.is_empty() => {
                        let ino = files.swap_remove(pick as usize % files.len());
                        inodes.free(ino, false);
                    }
                    1 => {
                        let new = NewInode::Directory { name_hash: pick };
                        if let Ok(ino) = inodes.allocate(new, parent, &blocks) {
                            prop_assert!(!dirs.contains(&ino) && !files.contains(&ino));
                            dirs.push(ino);
                        }
                    }
                    _ => {
                        if let Ok(ino) = inodes.allocate(NewInode::File, parent, &blocks) {
                            prop_assert!(ino.0 > FIRST_INODE && ino.0 <= layout.n_inodes());
                            prop_assert!(!dirs.contains(&ino) && !files.contains(&ino));
                            files.push(ino);
                        }
                    }
                }
                inodes.self_check();
                let n_used = (files.len() + dirs.len() - 1) as u32;
                prop_assert_eq!(inodes.free_inodes(), n_free - n_used);
            }
        }
    }
}
