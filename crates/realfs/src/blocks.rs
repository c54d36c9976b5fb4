//! Which block holds what, as ranges.
//!
//! Invariant: ranges do not overlap; a later one replaces what it covers. Cost: one tree
//! lookup per question, independent of the size of the device.

use std::collections::BTreeMap;

use crate::observed::Structure;

/// Ranges of file-system blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// First block to (block after the last, contents).
    ranges: BTreeMap<u64, (u64, Structure)>,
}

impl Blocks {
    /// From now on `n` blocks from `first` hold `structure`.
    pub fn set(&mut self, first: u64, n: u64, structure: Structure) {
        if n == 0 {
            return;
        }
        let end = first.saturating_add(n);
        // Whatever reaches into the new range is cut; what lies in it goes.
        let touched: Vec<u64> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(|(_, (old_end, _))| *old_end > first)
            .map(|(start, _)| *start)
            .collect();
        for start in touched {
            let Some((old_end, old)) = self.ranges.remove(&start) else { continue };
            if start < first {
                self.ranges.insert(start, (first, old));
            }
            if old_end > end {
                self.ranges.insert(end, (old_end, old));
            }
        }
        self.ranges.insert(first, (end, structure));
    }

    /// What a block holds, if that is known.
    pub fn get(&self, block: u64) -> Option<Structure> {
        self.run(block).0
    }

    /// What a block holds, and the block after the last of which the same is said. For
    /// unknown blocks that is the next known one.
    pub fn run(&self, block: u64) -> (Option<Structure>, u64) {
        if let Some((_, (end, structure))) = self.ranges.range(..=block).next_back()
            && *end > block
        {
            return (Some(*structure), *end);
        }
        let next = self.ranges.range(block..).next().map_or(u64::MAX, |(start, _)| *start);
        (None, next)
    }

    /// All ranges in order: first block, number of blocks, contents.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, Structure)> + '_ {
        self.ranges.iter().map(|(start, (end, structure))| (*start, end - start, *structure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against one entry per block, with ranges from a fixed stream of numbers.
    #[test]
    fn ranges_follow_a_table_of_blocks() {
        let all = [Structure::Data, Structure::Directory, Structure::InodeTable];
        let mut naive = [None; 64];
        let mut blocks = Blocks::default();
        let mut state = 1_u64;
        for _ in 0..500 {
            // Knuth's MMIX constants for a linear congruential generator.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let first = (state >> 33) as usize % 64;
            let n = ((state >> 45) as usize % 12).min(64 - first);
            let structure = all[(state >> 55) as usize % 3];
            blocks.set(first as u64, n as u64, structure);
            naive[first..first + n].fill(Some(structure));
            for (at, expected) in naive.iter().enumerate() {
                assert_eq!(blocks.get(at as u64), *expected);
                let (_, end) = blocks.run(at as u64);
                assert!(end > at as u64);
                let run = &naive[at..(end as usize).min(64)];
                assert!(run.iter().all(|same| same == expected));
            }
        }
        assert_eq!(
            blocks.iter().map(|(_, n, _)| n).sum::<u64>(),
            naive.iter().flatten().count() as u64
        );
    }
}
