//! One block group in memory: which blocks are free, and the same as a buddy system.
//!
//! A free run is cut into the largest aligned powers of two it holds (at most 2^13 blocks),
//! one bit for each in the map of its order. That cut is unique, so the buddy state follows
//! from the free blocks alone, and taking and giving keep it up by splitting and joining.
//! Source of the scheme: Linux 6.18 `fs/ext4/mballoc.c`, `mb_mark_used`, `mb_free_blocks`,
//! `ext4_mb_mark_free_simple`.
//!
//! Invariants: a free block is in exactly one buddy; counts are those of the maps; a block
//! that is free here is free on disk (the reverse fails for preallocated blocks and for
//! blocks whose freeing is not committed). Cost: 16 KiB for each group that was used;
//! taking and giving cost O(orders), searches scan words of 64 blocks.

use std::ops::Range;

use crate::layout::GROUP_BLOCKS;

/// Orders of buddies: 2^0 to 2^13 blocks. Source: `MB_NUM_ORDERS`, the bits of a block's
/// size and two more.
pub(super) const N_ORDERS: usize = 14;
/// Words of the map of all blocks.
const WORDS: usize = GROUP_BLOCKS as usize / 64;

/// What searches ask of a group before they look into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// Free blocks.
    pub(super) n_free: u32,
    /// Free runs.
    pub(super) n_fragments: u32,
    /// No block before it is free; may lag behind.
    pub(super) first_free: u32,
    /// Free buddies by order.
    pub(super) n_buddies: [u16; N_ORDERS],
}

impl Summary {
    /// Of a group with these free runs, in order.
    pub(super) fn of(runs: impl Iterator<Item = Range<u32>>) -> Self {
        let mut summary = Self { first_free: GROUP_BLOCKS, ..Self::default() };
        for run in runs {
            summary.n_free += run.end - run.start;
            summary.n_fragments += 1;
            summary.first_free = summary.first_free.min(run.start);
            for_each_buddy(run, |_, order| summary.n_buddies[order] += 1);
        }
        summary
    }

    /// The largest order that has a free buddy.
    pub(super) fn largest_order(&self) -> Option<usize> {
        (0..N_ORDERS).rev().find(|order| self.n_buddies[*order] > 0)
    }

    /// The list of groups by mean length of a free run this one is in.
    pub(super) fn fragment_order(&self) -> Option<usize> {
        (self.n_free > 0).then(|| fragment_order(self.n_free / self.n_fragments))
    }
}

/// The list for runs of a length \[blocks\]. Source: `mb_avg_fragment_size_order`.
pub(super) fn fragment_order(len: u32) -> usize {
    let bits = (u32::BITS - len.leading_zeros()) as usize;
    bits.saturating_sub(2).min(N_ORDERS - 1)
}

/// Cuts a run into buddies: calls with first block and order of each.
fn for_each_buddy(run: Range<u32>, mut each: impl FnMut(u32, usize)) {
    let mut start = run.start;
    while start < run.end {
        let aligned = if start == 0 { N_ORDERS - 1 } else { start.trailing_zeros() as usize };
        let fits = (run.end - start).ilog2() as usize;
        let order = aligned.min(fits).min(N_ORDERS - 1);
        each(start, order);
        start += 1 << order;
    }
}

/// The maps of one group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// A bit for each block an allocation may take.
    free: Box<[u64]>,
    /// A bit for each block that is free on disk: free above, preallocated, or freed and not
    /// yet committed. The last kind has its bit unset until it can be used again.
    disk_free: Box<[u64]>,
    /// A bit for each free buddy, by order.
    orders: [Box<[u64]>; N_ORDERS],
    /// Counts of the above.
    pub(super) summary: Summary,
}

impl Group {
    /// A group with these free runs, in order and apart.
    pub(super) fn new(runs: impl Iterator<Item = Range<u32>> + Clone) -> Self {
        let map = |order: usize| vec![0; (WORDS >> order).max(1)].into_boxed_slice();
        let mut group = Self {
            free: map(0),
            disk_free: map(0),
            orders: std::array::from_fn(map),
            summary: Summary::of(runs.clone()),
        };
        for run in runs {
            set(&mut group.free, run.start, run.end - run.start);
            let orders = &mut group.orders;
            for_each_buddy(run, |start, order| {
                set(&mut orders[order], start >> order, 1);
            });
        }
        group.disk_free.copy_from_slice(&group.free);
        group
    }

    /// Whether a block may be taken.
    #[inline]
    pub(super) fn is_free(&self, block: u32) -> bool {
        get(&self.free, block)
    }

    /// Whether a block is free on disk.
    pub(super) fn is_disk_free(&self, block: u32) -> bool {
        get(&self.disk_free, block)
    }

    /// The first free block at or after `from`.
    #[inline]
    pub(super) fn next_free(&self, from: u32) -> Option<u32> {
        next(&self.free, from, 0)
    }

    /// The first block at or after `from` that is not free, or the end of the group.
    #[inline]
    pub(super) fn next_used(&self, from: u32) -> u32 {
        next(&self.free, from, u64::MAX).unwrap_or(GROUP_BLOCKS)
    }

    /// The first free buddy of an order.
    #[inline]
    pub(super) fn first_buddy(&self, order: usize) -> Option<u32> {
        next(&self.orders[order], 0, 0).map(|idx| idx << order)
    }

    /// The order of the buddy a free block is in.
    fn order_at(&self, block: u32) -> usize {
        let found = (0..N_ORDERS).find(|order| get(&self.orders[*order], block >> order));
        found.expect("a free block is in a buddy")
    }

    /// How many free blocks there are from `block` on, counted by whole buddies until there
    /// are `needed`; 0 if it is not free. Source: `mb_find_extent`.
    pub(super) fn extent_at(&self, block: u32, needed: u32) -> u32 {
        self.extent_in(&(block..self.next_used(block)), needed)
    }

    /// The same for a free run (or an empty one) that is known to end where it does.
    #[inline]
    pub(super) fn extent_in(&self, run: &Range<u32>, needed: u32) -> u32 {
        let len = run.end - run.start;
        if len <= needed {
            return len;
        }
        // The buddy in which there are enough counts whole.
        let last = run.start + needed.max(1) - 1;
        let order = self.order_at(last);
        (((last >> order) + 1) << order) - run.start
    }

    /// Takes free blocks, for a file or a preallocation.
    pub(super) fn take(&mut self, start: u32, len: u32) {
        let end = start + len;
        self.count_change(start, len, false);
        let mut at = start;
        while at < end {
            assert!(self.is_free(at), "block {at} of a group is taken twice");
            let order = self.order_at(at);
            let (first, after) = ((at >> order) << order, ((at >> order) + 1) << order);
            self.remove_buddy(first, order);
            self.add_run(first..at);
            self.add_run(end.min(after)..after);
            at = after;
        }
        clear(&mut self.free, start, len);
    }

    /// Gives blocks back.
    pub(super) fn give(&mut self, start: u32, len: u32) {
        assert!(self.next_free(start).is_none_or(|next| next >= start + len), "freed twice");
        self.count_change(start, len, true);
        set(&mut self.free, start, len);
        let mut chunks = [(0, 0); 2 * N_ORDERS + 4];
        let mut n_chunks = 0;
        for_each_buddy(start..start + len, |at, order| {
            chunks[n_chunks] = (at, order);
            n_chunks += 1;
        });
        for (mut at, mut order) in chunks[..n_chunks].iter().copied() {
            while order + 1 < N_ORDERS && get(&self.orders[order], (at >> order) ^ 1) {
                let other = ((at >> order) ^ 1) << order;
                self.remove_buddy(other, order);
                at = at.min(other);
                order += 1;
            }
            set(&mut self.orders[order], at >> order, 1);
            self.summary.n_buddies[order] += 1;
        }
    }

    /// Marks blocks that were taken as allocated on disk.
    pub(super) fn write_disk(&mut self, start: u32, len: u32) {
        let after = next(&self.disk_free, start, u64::MAX).unwrap_or(GROUP_BLOCKS);
        assert!(after >= start + len, "blocks are allocated twice");
        clear(&mut self.disk_free, start, len);
    }

    /// Marks blocks as free on disk.
    pub(super) fn clear_disk(&mut self, start: u32, len: u32) {
        let next = next(&self.disk_free, start, 0).unwrap_or(GROUP_BLOCKS);
        assert!(next >= start + len, "blocks are freed that are not allocated");
        set(&mut self.disk_free, start, len);
    }

    /// The next run at or after `from` of blocks that are free on disk.
    pub(super) fn next_disk_free(&self, from: u32) -> Option<Range<u32>> {
        let start = next(&self.disk_free, from, 0)?;
        Some(start..next(&self.disk_free, start, u64::MAX).unwrap_or(GROUP_BLOCKS))
    }

    /// The next free run at or after `from`.
    #[inline]
    pub(super) fn next_run(&self, from: u32) -> Option<Range<u32>> {
        let start = self.next_free(from)?;
        Some(start..self.next_used(start))
    }

    fn remove_buddy(&mut self, first: u32, order: usize) {
        clear(&mut self.orders[order], first >> order, 1);
        self.summary.n_buddies[order] -= 1;
    }

    fn add_run(&mut self, run: Range<u32>) {
        let (orders, summary) = (&mut self.orders, &mut self.summary);
        for_each_buddy(run, |start, order| {
            set(&mut orders[order], start >> order, 1);
            summary.n_buddies[order] += 1;
        });
    }

    /// Keeps the counts up before blocks become free or taken.
    fn count_change(&mut self, start: u32, len: u32, freed: bool) {
        let end = start + len;
        let neighbours = u32::from(start > 0 && self.is_free(start - 1))
            + u32::from(end < GROUP_BLOCKS && self.is_free(end));
        let summary = &mut self.summary;
        if freed {
            summary.n_free += len;
            summary.n_fragments = summary.n_fragments + 1 - neighbours;
            summary.first_free = summary.first_free.min(start);
        } else {
            summary.n_free -= len;
            summary.n_fragments = summary.n_fragments + neighbours - 1;
            if summary.first_free == start {
                summary.first_free += len;
            }
        }
    }

    /// Checks maps and counts against each other.
    pub(super) fn self_check(&self) {
        let mut at = 0;
        let mut runs = Vec::new();
        while let Some(run) = (at < GROUP_BLOCKS).then(|| self.next_run(at)).flatten() {
            at = run.end;
            runs.push(run);
        }
        let fresh = Self::new(runs.iter().cloned());
        assert!(self.summary.first_free <= fresh.summary.first_free, "first free block");
        let summary = Summary { first_free: self.summary.first_free, ..fresh.summary };
        assert_eq!(self.summary, summary, "counts of a group");
        assert_eq!(self.orders, fresh.orders, "buddies of a group");
        for (free, disk) in self.free.iter().zip(&self.disk_free) {
            assert_eq!(free & !disk, 0, "a free block is allocated on disk");
        }
    }
}

#[inline]
fn get(map: &[u64], idx: u32) -> bool {
    map[idx as usize / 64] >> (idx % 64) & 1 == 1
}

/// Bits `from..to` of a word.
#[inline]
fn mask(from: u32, to: u32) -> u64 {
    (u64::MAX >> (64 - (to - from))) << from
}

/// Calls with each word of a range and the bits that are in it.
#[inline]
fn for_each_word(start: u32, len: u32, mut each: impl FnMut(usize, u64)) {
    let end = start + len;
    let mut at = start;
    while at < end {
        let to = (at | 63).min(end - 1) + 1;
        each(at as usize / 64, mask(at % 64, to - (at & !63)));
        at = to;
    }
}

#[inline]
fn set(map: &mut [u64], start: u32, len: u32) {
    for_each_word(start, len, |word, bits| map[word] |= bits);
}

#[inline]
fn clear(map: &mut [u64], start: u32, len: u32) {
    for_each_word(start, len, |word, bits| map[word] &= !bits);
}

/// The first bit at or after `from` that is set once a word is flipped by `flip`.
#[inline]
fn next(map: &[u64], from: u32, flip: u64) -> Option<u32> {
    let mut word = from as usize / 64;
    let mut bits = (map.get(word)? ^ flip) & (u64::MAX << (from % 64));
    while bits == 0 {
        word += 1;
        bits = map.get(word)? ^ flip;
    }
    Some(word as u32 * 64 + bits.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_is_cut_into_the_largest_aligned_buddies() {
        let mut all = Vec::new();
        for_each_buddy(3..21, |start, order| all.push((start, order)));
        assert_eq!(all, [(3, 0), (4, 2), (8, 3), (16, 2), (20, 0)]);
    }

    #[test]
    fn an_extent_is_counted_by_whole_buddies() {
        let run = 3..21;
        let group = Group::new([run].into_iter());
        assert_eq!(group.extent_at(3, 1), 1);
        assert_eq!(group.extent_at(3, 2), 5);
        assert_eq!(group.extent_at(5, 4), 11);
        assert_eq!(group.extent_at(16, 100), 5);
        assert_eq!(group.extent_at(2, 1), 0);
    }

    proptest! {
        #[test]
        fn maps_follow_a_list_of_blocks(steps in prop::collection::vec((0u32..32700, 1u32..3000), 1..60)) {
            let mut free = vec![true; GROUP_BLOCKS as usize];
            let whole = 0..GROUP_BLOCKS;
            let mut group = Group::new([whole].into_iter());
            for (start, len) in steps {
                let end = (start + len).min(GROUP_BLOCKS);
                let state = free[start as usize];
                let end = (start..end).find(|b| free[*b as usize] != state).unwrap_or(end);
                if state {
                    group.take(start, end - start);
                    group.write_disk(start, end - start);
                } else {
                    group.clear_disk(start, end - start);
                    group.give(start, end - start);
                }
                free[start as usize..end as usize].fill(!state);
                group.self_check();
                prop_assert_eq!(
                    group.summary.n_free as usize,
                    free.iter().filter(|free| **free).count()
                );
            }
            for (block, free) in free.iter().enumerate() {
                prop_assert_eq!(group.is_free(block as u32), *free);
            }
        }
    }
}
