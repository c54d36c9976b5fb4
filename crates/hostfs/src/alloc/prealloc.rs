//! Blocks set aside for files: those of one inode, and those that small files share.
//!
//! They are taken in memory but free on disk, so a crash or the end of use gives them back.
//! Source: Linux 6.18 `fs/ext4/mballoc.c`, `ext4_mb_use_preallocated`, `ext4_mb_new_inode_pa`,
//! `ext4_mb_new_group_pa`, `ext4_mb_add_n_trim`.
//!
//! Invariants: spaces of one inode do not overlap, neither in the file nor on the device;
//! no space is empty. Cost: O(log inodes) to find one, O(spaces of the inode) more.

use std::collections::BTreeMap;

use crate::layout::{FsBlock, Ino};

/// Lists of shared spaces by free blocks. Source: `PREALLOC_TB_SIZE`.
const N_LISTS: usize = 10;
/// A list longer than this is cut to five. Source: `ext4_mb_add_n_trim`.
const LIST_MAX: usize = 8;
/// What a list is cut to. Source: `ext4_mb_discard_lg_preallocations`.
const LIST_TRIMMED: usize = 5;

/// Blocks of one inode: a range of the file that has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InodeSpace {
    /// First block in the file.
    pub(super) logical: u32,
    /// First block on the device.
    pub(super) start: u32,
    /// Length \[blocks\].
    pub(super) len: u32,
    /// Blocks not used yet.
    pub(super) n_free: u32,
}

impl InodeSpace {
    /// Ends before this block of the file.
    pub(super) fn logical_end(&self) -> u64 {
        u64::from(self.logical) + u64::from(self.len)
    }
}

/// Blocks that small files get one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedSpace {
    /// Next block to give.
    pub(super) start: u32,
    /// Blocks left.
    pub(super) len: u32,
}

/// Shared spaces of one CPU (locality group).
type Shared = [Vec<SharedSpace>; N_LISTS];

/// All preallocated blocks.
#[derive(Clone, Debug)]
pub(super) struct Prealloc {
    inodes: BTreeMap<u32, Vec<InodeSpace>>,
    shared: Vec<Shared>,
    n_blocks: u64,
}

impl Prealloc {
    pub(super) fn new(n_cpus: u32) -> Self {
        let shared = (0..n_cpus.max(1)).map(|_| Shared::default()).collect();
        Self { inodes: BTreeMap::new(), shared, n_blocks: 0 }
    }

    /// Blocks set aside and not used.
    pub(super) fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// Uses up to `len` blocks for a place of a file that a space of the inode covers.
    /// Answers first block and length.
    pub(super) fn use_inode(&mut self, ino: Ino, logical: u32, len: u32) -> Option<(u32, u32)> {
        let spaces = self.inodes.get_mut(&ino.0)?;
        let idx = spaces.partition_point(|space| space.logical <= logical).checked_sub(1)?;
        let space = &mut spaces[idx];
        if u64::from(logical) >= space.logical_end() {
            return None;
        }
        let skip = logical - space.logical;
        let len = len.min(space.len - skip);
        let start = space.start + skip;
        assert!(space.n_free >= len, "a preallocated block is used twice");
        space.n_free -= len;
        if space.n_free == 0 {
            spaces.remove(idx);
            if spaces.is_empty() {
                self.inodes.remove(&ino.0);
            }
        }
        self.n_blocks -= u64::from(len);
        Some((start, len))
    }

    /// Adds a space to an inode.
    pub(super) fn add_inode(&mut self, ino: Ino, space: InodeSpace) {
        self.n_blocks += u64::from(space.n_free);
        let spaces = self.inodes.entry(ino.0).or_default();
        let idx = spaces.partition_point(|other| other.logical < space.logical);
        spaces.insert(idx, space);
    }

    /// Where the spaces about a place of a file end and start, which no space covers.
    pub(super) fn around(&self, ino: Ino, logical: u32) -> (Option<u64>, Option<u32>) {
        let Some(spaces) = self.inodes.get(&ino.0) else { return (None, None) };
        let idx = spaces.partition_point(|space| space.logical <= logical);
        let left = idx.checked_sub(1).map(|idx| spaces[idx].logical_end());
        (left, spaces.get(idx).map(|space| space.logical))
    }

    /// Takes the spaces of an inode away.
    pub(super) fn remove_inode(&mut self, ino: Ino) -> Vec<InodeSpace> {
        let spaces = self.inodes.remove(&ino.0).unwrap_or_default();
        self.n_blocks -= spaces.iter().map(|space| u64::from(space.n_free)).sum::<u64>();
        spaces
    }

    /// Uses `len` blocks of the shared space nearest to `goal` that has them. Answers the
    /// first block, and the spaces given up because a list grew too long.
    pub(super) fn use_shared(
        &mut self,
        cpu: u32,
        goal: FsBlock,
        len: u32,
    ) -> Option<(u32, Vec<SharedSpace>)> {
        let cpu = self.cpu(cpu);
        let mut best: Option<(usize, usize, u32)> = None;
        for list in list_of(len)..N_LISTS {
            for (idx, space) in self.shared[cpu][list].iter().enumerate() {
                let distance = goal.0.abs_diff(space.start);
                if space.len >= len && best.is_none_or(|(_, _, least)| distance < least) {
                    best = Some((list, idx, distance));
                }
            }
        }
        let (list, idx, _) = best?;
        let mut space = self.shared[cpu][list].remove(idx);
        self.n_blocks -= u64::from(space.len);
        let start = space.start;
        space.start += len;
        space.len -= len;
        Some((start, self.add_to_list(cpu, space)))
    }

    /// Adds a shared space. Answers the spaces given up.
    pub(super) fn add_shared(&mut self, cpu: u32, space: SharedSpace) -> Vec<SharedSpace> {
        let cpu = self.cpu(cpu);
        self.add_to_list(cpu, space)
    }

    fn cpu(&self, cpu: u32) -> usize {
        cpu as usize % self.shared.len()
    }

    fn add_to_list(&mut self, cpu: usize, space: SharedSpace) -> Vec<SharedSpace> {
        if space.len == 0 {
            return Vec::new();
        }
        self.n_blocks += u64::from(space.len);
        let list = &mut self.shared[cpu][list_of(space.len)];
        let n_others = list.len();
        let idx = list.iter().position(|other| space.len < other.len).unwrap_or(n_others);
        list.insert(idx, space);
        if n_others < LIST_MAX {
            return Vec::new();
        }
        // From the smallest on, but not the one in use.
        let mut given_up = Vec::new();
        let mut at = 0;
        while list.len() > LIST_TRIMMED {
            if list[at] == space {
                at += 1;
            } else {
                given_up.push(list.remove(at));
            }
        }
        self.n_blocks -= given_up.iter().map(|space| u64::from(space.len)).sum::<u64>();
        given_up
    }

    /// Takes away all spaces of the first groups that give back `needed` blocks together.
    pub(super) fn remove_for(&mut self, needed: u32) -> (Vec<InodeSpace>, Vec<SharedSpace>) {
        let mut by_group: BTreeMap<u32, u32> = BTreeMap::new();
        for space in self.inodes.values().flatten() {
            *by_group.entry(FsBlock(space.start).group()).or_default() += space.n_free;
        }
        for space in self.shared.iter().flatten().flatten() {
            *by_group.entry(FsBlock(space.start).group()).or_default() += space.len;
        }
        let mut left = i64::from(needed);
        by_group.retain(|_, n_free| {
            let chosen = left > 0;
            left -= i64::from(*n_free);
            chosen
        });
        self.remove_if(|start| by_group.contains_key(&FsBlock(start).group()))
    }

    /// Takes everything away.
    pub(super) fn remove_all(&mut self) -> (Vec<InodeSpace>, Vec<SharedSpace>) {
        self.remove_if(|_| true)
    }

    fn remove_if(&mut self, chosen: impl Fn(u32) -> bool) -> (Vec<InodeSpace>, Vec<SharedSpace>) {
        let (mut of_inodes, mut shared) = (Vec::new(), Vec::new());
        self.inodes.retain(|_, spaces| {
            of_inodes.extend(spaces.extract_if(.., |space| chosen(space.start)));
            !spaces.is_empty()
        });
        for list in self.shared.iter_mut().flatten() {
            shared.extend(list.extract_if(.., |space| chosen(space.start)));
        }
        self.n_blocks -= of_inodes.iter().map(|space| u64::from(space.n_free)).sum::<u64>();
        self.n_blocks -= shared.iter().map(|space| u64::from(space.len)).sum::<u64>();
        (of_inodes, shared)
    }

    /// Checks the order of spaces and their sum. Answers all of them.
    pub(super) fn self_check(&self) -> (Vec<InodeSpace>, Vec<SharedSpace>) {
        let mut n_blocks = 0;
        for spaces in self.inodes.values() {
            assert!(!spaces.is_empty(), "an inode without spaces is listed");
            for pair in spaces.windows(2) {
                assert!(pair[0].logical_end() <= u64::from(pair[1].logical), "spaces overlap");
            }
            for space in spaces {
                assert!(space.n_free > 0 && space.n_free <= space.len, "free blocks of a space");
                n_blocks += u64::from(space.n_free);
            }
        }
        for space in self.shared.iter().flatten().flatten() {
            assert!(space.len > 0, "a shared space is empty");
            n_blocks += u64::from(space.len);
        }
        assert_eq!(n_blocks, self.n_blocks, "preallocated blocks");
        (
            self.inodes.values().flatten().copied().collect(),
            self.shared.iter().flatten().flatten().copied().collect(),
        )
    }
}

/// The list for spaces of a length.
fn list_of(len: u32) -> usize {
    (len.max(1).ilog2() as usize).min(N_LISTS - 1)
}
