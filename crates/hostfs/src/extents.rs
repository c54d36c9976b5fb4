//! Where the blocks of one file are: its extents, sorted by place in the file.
//!
//! Invariants: extents are in order of their first file block, do not overlap and are
//! merged where both file and device blocks continue in the same state. Cost: O(log extents)
//! to look up or change one, also in a file of millions.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

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
    /// By first block of the file.
    all: BTreeMap<u32, Extent>,
}

impl ExtentMap {
    /// All extents in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.all.values()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The extent that holds `logical`, or the last one before it.
    fn up_to(&self, logical: u32) -> Option<&Extent> {
        self.all.range(..=logical).next_back().map(|(_, e)| e)
    }

    /// The part of the extent that holds `logical`, from there on.
    pub(crate) fn find(&self, logical: u32) -> Option<Extent> {
        let extent = self.up_to(logical)?;
        (logical < extent.end()).then(|| extent.clip(&(logical..u32::MAX)))
    }

    /// The first mapped block at or after `logical`.
    pub(crate) fn next_mapped(&self, logical: u32) -> Option<u32> {
        match self.up_to(logical) {
            Some(e) if logical < e.end() => Some(logical),
            _ => self.after(logical).map(|e| e.logical),
        }
    }

    /// The extent before `logical`: where a new one would like to continue.
    pub(crate) fn before(&self, logical: u32) -> Option<Extent> {
        self.all.range(..logical).next_back().map(|(_, e)| *e)
    }

    /// The first extent after `logical`.
    pub(crate) fn after(&self, logical: u32) -> Option<Extent> {
        self.all.range((Bound::Excluded(logical), Bound::Unbounded)).next().map(|(_, e)| *e)
    }

    /// Which of `n_leaves` blocks of the tree holds `logical`, as if the extents were spread
    /// evenly over the file.
    pub(crate) fn leaf_of(&self, logical: u32, n_leaves: usize) -> usize {
        let end = self.all.last_key_value().map_or(1, |(_, e)| u64::from(e.end()));
        let leaf = u64::from(logical) * n_leaves as u64 / end.max(1);
        (leaf as usize).min(n_leaves.saturating_sub(1))
    }

    /// Adds an extent where none is.
    pub(crate) fn insert(&mut self, mut extent: Extent) {
        debug_assert!(extent.len > 0);
        debug_assert!(self.next_mapped(extent.logical).is_none_or(|next| next >= extent.end()));
        if let Some(before) = self.before(extent.logical)
            && before.continues(&extent)
        {
            extent = Extent { len: before.len + extent.len, ..before };
        }
        if let Some(next) = self.all.get(&extent.end()).copied()
            && extent.continues(&next)
        {
            self.all.remove(&next.logical);
            extent.len += next.len;
        }
        self.all.insert(extent.logical, extent);
    }

    /// Takes the blocks of `range` out and tells about each piece, in order.
    pub(crate) fn remove(&mut self, range: Range<u32>, mut freed: impl FnMut(Extent)) {
        if range.is_empty() {
            return;
        }
        let mut next = self.next_mapped(range.start);
        while let Some(at) = next.filter(|at| *at < range.end) {
            let extent = *self.up_to(at).expect("a mapped block is in an extent");
            self.all.remove(&extent.logical);
            freed(extent.clip(&range));
            self.keep(extent.clip(&(0..range.start.max(extent.logical))));
            self.keep(extent.clip(&(range.end.min(extent.end())..u32::MAX)));
            next = self.next_mapped(extent.end().min(range.end));
        }
    }

    /// A piece that stays when the rest of its extent changes.
    fn keep(&mut self, piece: Extent) {
        if piece.len > 0 {
            self.all.insert(piece.logical, piece);
        }
    }

    /// Blocks of `range` that were allocated are now written. Whether anything changed.
    pub(crate) fn mark_written(&mut self, range: Range<u32>) -> bool {
        let mut changed = false;
        let mut next = self.next_mapped(range.start);
        while let Some(at) = next.filter(|at| *at < range.end) {
            let extent = *self.up_to(at).expect("a mapped block is in an extent");
            if extent.unwritten {
                changed = true;
                self.all.remove(&extent.logical);
                self.keep(extent.clip(&(0..range.start.max(extent.logical))));
                self.keep(extent.clip(&(range.end.min(extent.end())..u32::MAX)));
                self.insert(Extent { unwritten: false, ..extent.clip(&range) });
            }
            next = self.next_mapped(extent.end().min(range.end));
        }
        changed
    }

    /// Pieces that a reader meets: extents that do not continue the one before on the
    /// device, as `filefrag` counts them.
    pub(crate) fn n_fragments(&self) -> u32 {
        let ends = |e: &Extent| (e.end(), e.start.0 + e.len);
        let mut last = None;
        let mut n = 0;
        for e in self.iter() {
            n += u32::from(last != Some((e.logical, e.start.0)));
            last = Some(ends(e));
        }
        n
    }

    /// Checks order and lengths.
    pub(crate) fn self_check(&self) {
        let mut end = 0;
        for (logical, e) in &self.all {
            assert!(*logical == e.logical && e.logical >= end && e.len > 0, "extents overlap");
            assert!(e.len <= LEN_MAX[usize::from(e.unwritten)], "an extent is too long");
            end = e.end();
        }
    }

    /// Allocated blocks.
    #[cfg(test)]
    pub(crate) fn n_blocks(&self) -> u64 {
        self.iter().map(|e| u64::from(e.len)).sum()
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
        assert!(map.iter().eq(&[extent(0, 100, 12, false)]));
        let mut freed = vec![];
        map.remove(2..5, |e| freed.push(e));
        assert_eq!(freed, [extent(2, 102, 3, false)]);
        assert_eq!((map.len(), map.n_fragments(), map.n_blocks()), (2, 2, 9));
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
                let all: Vec<Extent> = map.iter().copied().collect();
                for pair in all.windows(2) {
                    prop_assert!(!pair[0].continues(&pair[1]));
                    prop_assert!(pair[0].end() <= pair[1].logical);
                }
            }
        }
    }
}
