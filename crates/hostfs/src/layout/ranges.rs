//! Used blocks while a layout is built: ranges that are sorted, apart and joined where they
//! touch. A bit for each block would take 2 MiB for each 64 GiB of a device that is almost
//! empty.
//!
//! Cost: O(log ranges) for each question; there are a few ranges for each flex group.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of blocks.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// First block to the block after the last.
    by_start: BTreeMap<u32, u32>,
}

impl Ranges {
    /// The last range that starts before `end` and ends after `start`.
    fn conflict(&self, start: u32, end: u32) -> Option<Range<u32>> {
        let (from, to) = self.by_start.range(..end).next_back()?;
        (*to > start).then_some(*from..*to)
    }

    /// Adds blocks, none of which is there yet.
    pub(super) fn insert(&mut self, new: Range<u32>) {
        if new.is_empty() {
            return;
        }
        assert!(self.conflict(new.start, new.end).is_none(), "{new:?} is in use already");
        let (mut start, mut end) = (new.start, new.end);
        if let Some((from, to)) = self.by_start.range(..start).next_back()
            && *to == start
        {
            start = *from;
        }
        if let Some(to) = self.by_start.remove(&end) {
            end = to;
        }
        self.by_start.insert(start, end);
    }

    /// Whether none of `len` blocks from `start` is in the set.
    pub(super) fn is_free(&self, start: u32, len: u32) -> bool {
        self.conflict(start, start.saturating_add(len)).is_none()
    }

    /// The first of `len` free blocks in a row that begin in `within` and end by `n_blocks`.
    pub(super) fn find(&self, within: Range<u32>, len: u32, n_blocks: u32) -> Option<u32> {
        let mut start = within.start;
        while start < within.end && u64::from(start) + u64::from(len) <= u64::from(n_blocks) {
            match self.conflict(start, start + len) {
                None => return Some(start),
                Some(used) => start = used.end,
            }
        }
        None
    }

    /// The first free run at or after `start`.
    pub(super) fn free_run(&self, start: u32, n_blocks: u32) -> Option<Range<u32>> {
        let mut from = start;
        if let Some((_, to)) = self.by_start.range(..=start).next_back() {
            from = from.max(*to);
        }
        let to = self.by_start.range(from..).next().map_or(n_blocks, |(next, _)| *next);
        (from < n_blocks).then_some(from..to)
    }

    /// How many of the blocks of a range are in the set.
    pub(super) fn count_in(&self, range: &Range<u32>) -> u32 {
        let mut count = 0;
        for (from, to) in self.by_start.range(..range.end).rev() {
            if *to <= range.start {
                break;
            }
            count += range.end.min(*to) - range.start.max(*from);
        }
        count
    }

    /// All of it.
    pub(super) fn into_vec(self) -> Vec<Range<u32>> {
        self.by_start.into_iter().map(|(from, to)| from..to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_found() {
        let mut ranges = Ranges::default();
        ranges.insert(0..10);
        ranges.insert(20..30);
        assert_eq!(ranges.find(0..100, 10, 100), Some(10));
        assert_eq!(ranges.find(0..100, 11, 100), Some(30));
        assert_eq!(ranges.find(0..100, 71, 100), None);
        assert_eq!(ranges.free_run(25, 100), Some(30..100));
        assert_eq!(ranges.free_run(5, 100), Some(10..20));
        assert_eq!(ranges.count_in(&(5..25)), 10);
        ranges.insert(10..20);
        assert!(!ranges.is_free(29, 1) && ranges.is_free(30, 70));
        assert_eq!(ranges.into_vec(), vec![0..30]);
    }
}
