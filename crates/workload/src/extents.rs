//! A set of sectors as sorted, merged ranges.
//!
//! A trace names the same few hot ranges millions of times, mostly out of order. So
//! inserts only append to a batch, and the batch is sorted and merged into the set
//! when it has grown to half of it: O(log n) amortized per insert, 16 bytes per
//! range, and no tree nodes.
//!
//! Invariant: `merged` is sorted and its ranges are disjoint, not adjacent and not
//! empty. All answers are right at any time; while a batch is open
//! ([`Extents::settle`] closes it) they cost a pass over the batch.

use std::borrow::Cow;
use std::ops::Range;

/// Smallest batch worth a merge \[ranges\], assumed: 64 KiB, which stays in cache.
const BATCH_MIN: usize = 4096;

/// Sorted merged set of `[start, end)` ranges of 512-byte sectors.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    merged: Vec<(u64, u64)>,
    batch: Vec<(u64, u64)>,
}

impl Extents {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the sectors from `start` to before `end`; nothing if that is empty.
    pub fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        if let Some(last) = self.batch.last_mut()
            && last.0 <= start
            && start <= last.1
        {
            last.1 = last.1.max(end);
            return;
        }
        self.batch.push((start, end));
        if self.batch.len() >= BATCH_MIN.max(self.merged.len() / 2) {
            self.settle();
        }
    }

    /// Merges the open batch, so that the next questions are answered at full speed.
    pub fn settle(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let merged = self.settled().into_owned();
        self.merged = merged;
        self.batch.clear();
    }

    /// Number of sectors in the set.
    pub fn total_sectors(&self) -> u64 {
        self.settled().iter().map(|(start, end)| end - start).sum()
    }

    /// Number of disjoint ranges.
    pub fn n_ranges(&self) -> usize {
        self.settled().len()
    }

    /// Whether the set has no sector.
    pub fn is_empty(&self) -> bool {
        self.merged.is_empty() && self.batch.is_empty()
    }

    /// Whether a sector is in the set.
    pub fn contains(&self, sector: u64) -> bool {
        let after = self.merged.partition_point(|&(start, _)| start <= sector);
        let in_merged = after > 0 && sector < self.merged[after - 1].1;
        in_merged || self.batch.iter().any(|&(start, end)| start <= sector && sector < end)
    }

    /// The ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let ranges = self.settled();
        (0..ranges.len()).map(move |i| ranges[i].0..ranges[i].1)
    }

    /// The merged view: borrowed when no batch is open.
    fn settled(&self) -> Cow<'_, [(u64, u64)]> {
        if self.batch.is_empty() {
            return Cow::Borrowed(&self.merged);
        }
        let mut batch = self.batch.clone();
        batch.sort_unstable();
        let mut out: Vec<(u64, u64)> = Vec::with_capacity(self.merged.len() + batch.len());
        let (mut left, mut right) = (self.merged.iter().peekable(), batch.iter().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if a <= b => left.next(),
                (_, Some(_)) => right.next(),
                (Some(_), None) => left.next(),
                (None, None) => break,
            };
            let Some(&(start, end)) = next else { break };
            match out.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => out.push((start, end)),
            }
        }
        out.shrink_to_fit();
        Cow::Owned(out)
    }
}

impl PartialEq for Extents {
    fn eq(&self, other: &Self) -> bool {
        self.settled() == other.settled()
    }
}

impl Eq for Extents {}

impl FromIterator<Range<u64>> for Extents {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        for range in ranges {
            set.insert(range.start, range.end);
        }
        set.settle();
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set of single sectors, before and after settling.
        #[test]
        fn agrees_with_a_naive_set(
            ranges in prop::collection::vec((0_u64..400, 0_u64..40), 0..80),
            settle_every in 1_usize..20,
        ) {
            let mut set = Extents::new();
            let mut model = BTreeSet::new();
            for (i, &(start, len)) in ranges.iter().enumerate() {
                set.insert(start, start + len);
                model.extend(start..start + len);
                if i % settle_every == 0 {
                    set.settle();
                }
                prop_assert_eq!(set.total_sectors(), model.len() as u64);
            }
            for sector in 0..450 {
                prop_assert_eq!(set.contains(sector), model.contains(&sector));
            }
            let listed: Vec<u64> = set.iter().flatten().collect();
            prop_assert_eq!(listed, model.iter().copied().collect::<Vec<_>>());
            let gaps_are_real = set.iter().zip(set.iter().skip(1)).all(|(a, b)| a.end < b.start);
            prop_assert!(gaps_are_real);
            prop_assert_eq!(set.is_empty(), model.is_empty());
        }
    }

    #[test]
    fn a_million_scattered_inserts_merge_to_what_was_inserted() {
        let n = 1_000_000_u64;
        let mut set = Extents::new();
        for i in 0..n {
            let unit = (i * 7_368_787) % n; // coprime to n: a permutation
            set.insert(unit * 16, unit * 16 + 8);
        }
        set.settle();
        assert_eq!(set.n_ranges() as u64, n);
        assert_eq!(set.total_sectors(), n * 8);
        for i in 0..n {
            set.insert(i * 16 + 8, i * 16 + 16);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), vec![0..n * 16]);
    }
}
