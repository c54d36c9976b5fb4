//! Where the blocks of one file are: a sorted list of extents.
//!
//! Invariants: extents are in order of their first file block, do not overlap and are
//! merged where both file and device blocks continue in the same state. Cost: a binary
//! search per lookup; appending is O(1).

use std::ops::Range;

use crate::layout::FsBlock;

/// Blocks of a file that lie side by side on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block of the file.
    pub logical: u32,
    /// First block of the device.
    pub start: FsBlock,
    /// Number of blocks.
    pub len: u32,
    /// Allocated and never written: reads as zeroes.
    pub unwritten: bool,
}

/// Most blocks of one extent. Source: Linux documentation, ext4 "Extent Tree": a length of
/// up to 32,768 blocks, and one less where the extent is unwritten.
const LEN_MAX: [u32; 2] = [32_768, 32_767];

impl Extent {
    fn end(&self) -> u32 {
        self.logical + self.len
    }

    /// The part that lies in `range` of the file.
    fn clip(&self, range: &Range<u32>) -> Self {
        let from = self.logical.max(range.start);
        let to = self.end().min(range.end);
        let start = FsBlock(self.start.0 + (from - self.logical));
        Self { logical: from, start, len: to - from, ..*self }
    }

    fn continues(&self, next: &Self) -> bool {
        self.end() == next.logical
            && self.start.0 + self.len == next.start.0
            && self.unwritten == next.unwritten
            && self.len + next.len <= LEN_MAX[usize::from(self.unwritten)]
    }
}

/// The extents of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtentMap {
    all: Vec<Extent>,
}

impl ExtentMap {
    /// All extents in order.
    pub(crate) fn as_slice(&self) -> &[Extent] {
        &self.all
    }

    /// Index of the extent that holds `logical`, or of the first one after it.
    fn position(&self, logical: u32) -> usize {
        match self.all.last() {
            Some(last) if last.end() <= logical => self.all.len(),
            _ => self.all.partition_point(|e| e.end() <= logical),
        }
    }

    /// The part of the extent that holds `logical`, from there on.
    pub(crate) fn find(&self, logical: u32) -> Option<Extent> {
        let extent = self.all.get(self.position(logical))?;
        (extent.logical <= logical).then(|| extent.clip(&(logical..u32::MAX)))
    }

    /// The first mapped block at or after `logical`.
    pub(crate) fn next_mapped(&self, logical: u32) -> Option<u32> {
        self.all.get(self.position(logical)).map(|e| e.logical.max(logical))
    }

    /// The extent before `logical`: where a new one would like to continue.
    pub(crate) fn before(&self, logical: u32) -> Option<Extent> {
        let at = self.position(logical);
        match self.all.get(at) {
            Some(e) if e.logical < logical => Some(*e),
            _ => self.all[..at].last().copied(),
        }
    }

    /// The first extent after `logical`.
    pub(crate) fn after(&self, logical: u32) -> Option<Extent> {
        self.all[self.position(logical)..].iter().find(|e| e.logical > logical).copied()
    }

    /// Which extent of the tree `logical` is in or next to.
    pub(crate) fn index_of(&self, logical: u32) -> usize {
        self.position(logical).min(self.all.len().saturating_sub(1))
    }

    /// Adds an extent where none is.
    pub(crate) fn insert(&mut self, extent: Extent) {
        debug_assert!(extent.len > 0);
        let at = self.position(extent.logical);
        debug_assert!(self.all.get(at).is_none_or(|e| extent.end() <= e.logical));
        if at > 0 && self.all[at - 1].continues(&extent) {
            self.all[at - 1].len += extent.len;
            self.merge_after(at - 1);
            return;
        }
        self.all.insert(at, extent);
        self.merge_after(at);
    }

    fn merge_after(&mut self, at: usize) {
        if let Some(next) = self.all.get(at + 1).copied()
            && self.all[at].continues(&next)
        {
            self.all[at].len += next.len;
            self.all.remove(at + 1);
        }
    }

    /// Takes the blocks of `range` out and tells about each piece.
    pub(crate) fn remove(&mut self, range: Range<u32>, mut freed: impl FnMut(Extent)) {
        let mut at = self.position(range.start);
        while let Some(extent) = self.all.get(at).copied() {
            if extent.logical >= range.end {
                break;
            }
            let gone = extent.clip(&range);
            freed(gone);
            let left = extent.clip(&(0..range.start.max(extent.logical)));
            let right = extent.clip(&(range.end.min(extent.end())..u32::MAX));
            match (left.len > 0, right.len > 0) {
                (true, true) => {
                    self.all[at] = left;
                    self.all.insert(at + 1, right);
                    break;
                }
                (true, false) => {
                    self.all[at] = left;
                    at += 1;
                }
                (false, true) => {
                    self.all[at] = right;
                    break;
                }
                (false, false) => {
                    // Whole extents in the middle go in one sweep.
                    let end = self.all.partition_point(|e| e.end() <= range.end).max(at + 1);
                    for gone in &self.all[at + 1..end] {
                        freed(*gone);
                    }
                    self.all.drain(at..end);
                }
            }
        }
    }

    /// Blocks of `range` that were allocated are now written. Whether anything changed.
    pub(crate) fn mark_written(&mut self, range: Range<u32>) -> bool {
        let mut changed = false;
        let mut at = self.position(range.start);
        while let Some(extent) = self.all.get(at).copied() {
            if extent.logical >= range.end {
                break;
            }
            if !extent.unwritten {
                at += 1;
                continue;
            }
            changed = true;
            let left = extent.clip(&(0..range.start.max(extent.logical)));
            let right = extent.clip(&(range.end.min(extent.end())..u32::MAX));
            let mut written = extent.clip(&range);
            written.unwritten = false;
            let pieces = [left, written, right].into_iter().filter(|piece| piece.len > 0);
            self.all.splice(at..=at, pieces);
            let mut from = at + usize::from(left.len > 0);
            if from > 0 && self.all[from - 1].continues(&self.all[from]) {
                from -= 1;
            }
            self.merge_after(from);
            if self.all.get(from).is_some_and(|e| e.end() == written.end()) {
                self.merge_after(from);
            }
            at = self.position(written.end());
        }
        changed
    }

    /// Pieces that a reader meets: extents that do not continue the one before on the
    /// device, as `filefrag` counts them.
    pub(crate) fn n_fragments(&self) -> u32 {
        let ends = |e: &Extent| (e.end(), e.start.0 + e.len);
        let mut last = None;
        let mut n = 0;
        for e in &self.all {
            n += u32::from(last != Some((e.logical, e.start.0)));
            last = Some(ends(e));
        }
        n
    }

    /// Allocated blocks.
    #[cfg(test)]
    pub(crate) fn n_blocks(&self) -> u64 {
        self.all.iter().map(|e| u64::from(e.len)).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(logical: u32, start: u32, len: u32, unwritten: bool) -> Extent {
        Extent { logical, start: FsBlock(start), len, unwritten }
    }

    #[test]
    fn neighbours_merge_and_pieces_come_out() {
        let mut map = ExtentMap::default();
        map.insert(extent(0, 100, 4, false));
        map.insert(extent(8, 108, 4, false));
        map.insert(extent(4, 104, 4, false));
        assert_eq!(map.as_slice(), [extent(0, 100, 12, false)]);
        let mut freed = vec![];
        map.remove(2..5, |e| freed.push(e));
        assert_eq!(freed, [extent(2, 102, 3, false)]);
        assert_eq!((map.as_slice().len(), map.n_fragments(), map.n_blocks()), (2, 2, 9));
        assert_eq!(map.find(3), None);
        assert_eq!(map.next_mapped(3), Some(5));
        assert_eq!(map.before(5), Some(extent(0, 100, 2, false)));
    }

    proptest! {
        /// Against one entry per block.
        #[test]
        fn the_list_agrees_with_a_table(
            steps in prop::collection::vec((0u8..3, 0u32..64, 1u32..20, any::<bool>()), 1..60)
        ) {
            let mut map = ExtentMap::default();
            let mut table: Vec<Option<(u32, bool)>> = vec![None; 100];
            let mut next = 1000;
            for (kind, at, len, flag) in steps {
                let range = at..at + len;
                match kind {
                    0 => {
                        // Every second time continue the block before, if it is mapped.
                        let before = (at > 0).then(|| table[at as usize - 1]).flatten();
                        let mut start = before.filter(|_| flag).map_or(next, |(b, _)| b + 1);
                        let free = |t: &[Option<(u32, bool)>]| {
                            range.clone().take_while(|b| t[*b as usize].is_none()).count() as u32
                        };
                        let n = free(&table);
                        if table.iter().flatten().any(|(b, _)| (start..start + n).contains(b)) {
                            start = next;
                        }
                        if n == 0 { continue; }
                        next += 50;
                        map.insert(extent(at, start, n, !flag));
                        for i in 0..n {
                            table[(at + i) as usize] = Some((start + i, !flag));
                        }
                    }
                    1 => {
                        map.remove(range.clone(), |e| {
                            for i in 0..e.len {
                                let slot = &mut table[(e.logical + i) as usize];
                                assert_eq!(*slot, Some((e.start.0 + i, e.unwritten)));
                                *slot = None;
                            }
                        });
                        assert!(range.clone().all(|b| table[b as usize].is_none()));
                    }
                    _ => {
                        map.mark_written(range.clone());
                        for b in range {
                            if let Some((_, unwritten)) = &mut table[b as usize] {
                                *unwritten = false;
                            }
                        }
                    }
                }
                for (b, slot) in (0u32..).zip(&table) {
                    let found = map.find(b).map(|e| (e.start.0, e.unwritten));
                    prop_assert_eq!(found, *slot, "block {}", b);
                }
                for pair in map.as_slice().windows(2) {
                    prop_assert!(!pair[0].continues(&pair[1]));
                    prop_assert!(pair[0].end() <= pair[1].logical);
                }
            }
        }
    }
}
