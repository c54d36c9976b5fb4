//! Checks the state of the allocator against itself.

use super::BlockAllocator;
use crate::layout::{FsBlock, GROUP_BLOCKS};

impl BlockAllocator {
    /// Whether a block was given and not released.
    pub(crate) fn is_given(&self, block: FsBlock) -> bool {
        let maps = self.groups[block.group() as usize].as_ref();
        maps.is_some_and(|maps| !maps.is_disk_free(block.offset()))
    }

    /// Checks all counts and maps. For tests: it looks at every block of every group that was
    /// used.
    ///
    /// # Panics
    ///
    /// If anything does not agree.
    pub fn self_check(&self) {
        let (of_inodes, shared) = self.prealloc.self_check();
        let mut set_aside = vec![0u64; self.n_groups as usize];
        for space in &of_inodes {
            set_aside[FsBlock(space.start).group() as usize] += u64::from(space.n_free);
        }
        for space in &shared {
            set_aside[FsBlock(space.start).group() as usize] += u64::from(space.len);
        }
        let (mut n_free, mut n_usable) = (0, 0);
        for group in 0..self.n_groups {
            let summary = self.summary(group);
            self.lists.self_check(group, summary);
            n_free += u64::from(self.group_free[group as usize]);
            n_usable += u64::from(summary.n_free);
            let usable = u64::from(summary.n_free) + set_aside[group as usize];
            assert!(usable <= u64::from(self.group_free[group as usize]), "group {group}");
            if let Some(maps) = &self.groups[group as usize] {
                maps.self_check();
                for used in &self.fixed {
                    let first = group * GROUP_BLOCKS;
                    for block in used.start.max(first)..used.end.min(first + GROUP_BLOCKS) {
                        assert!(!maps.is_free(block - first), "block {block} is not for files");
                    }
                }
            }
        }
        assert_eq!(n_free, self.n_free, "free blocks of all groups");
        let n_waiting = self.n_free - n_usable;
        assert_eq!(n_waiting, self.prealloc.n_blocks() + self.n_freed, "blocks not to be given");
    }
}
