//! Groups by what they offer, so that a search finds one without a walk over all: by their
//! largest free buddy, and by the mean length of their free runs. Source: Linux 6.17
//! `s_mb_largest_free_orders`, `s_mb_avg_fragment_size` (arrays in order of group number).
//!
//! Cost: O(log groups) when a group changes its list, which few allocations do.

use std::collections::BTreeSet;
use std::ops::Range;

use super::group::{N_ORDERS, Summary};

/// Which lists a group is in; 255 for none.
type Place = (u8, u8);

/// Both kinds of lists.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    by_largest: [BTreeSet<u32>; N_ORDERS],
    by_fragment: [BTreeSet<u32>; N_ORDERS],
    places: Vec<Place>,
}

/// Which kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Of groups whose largest free buddy has this order.
    Largest(usize),
    /// Of groups whose mean free run has about this length.
    Fragment(usize),
}

impl Lists {
    pub(super) fn new(n_groups: u32) -> Self {
        Self {
            by_largest: Default::default(),
            by_fragment: Default::default(),
            places: vec![(u8::MAX, u8::MAX); n_groups as usize],
        }
    }

    /// Moves a group to the lists it belongs to.
    #[inline]
    pub(super) fn update(&mut self, group: u32, summary: &Summary) {
        let order = |order: Option<usize>| order.map_or(u8::MAX, |order| order as u8);
        let new = (order(summary.largest_order()), order(summary.fragment_order()));
        let old = std::mem::replace(&mut self.places[group as usize], new);
        if old.0 != new.0 {
            shift(&mut self.by_largest, group, old.0, new.0);
        }
        if old.1 != new.1 {
            shift(&mut self.by_fragment, group, old.1, new.1);
        }
    }

    /// The first group of a list in a range of groups.
    #[inline]
    pub(super) fn first_in(&self, list: List, groups: Range<u32>) -> Option<u32> {
        let set = match list {
            List::Largest(order) => &self.by_largest[order],
            List::Fragment(order) => &self.by_fragment[order],
        };
        if set.is_empty() || groups.is_empty() {
            return None;
        }
        set.range(groups).next().copied()
    }

    /// Checks that a group is where it belongs.
    pub(super) fn self_check(&self, group: u32, summary: &Summary) {
        for order in 0..N_ORDERS {
            let is_largest = summary.largest_order() == Some(order);
            assert_eq!(self.by_largest[order].contains(&group), is_largest, "group {group}");
            let is_fragment = summary.fragment_order() == Some(order);
            assert_eq!(self.by_fragment[order].contains(&group), is_fragment, "group {group}");
        }
    }
}

fn shift(sets: &mut [BTreeSet<u32>; N_ORDERS], group: u32, from: u8, to: u8) {
    if from != u8::MAX {
        sets[from as usize].remove(&group);
    }
    if to != u8::MAX {
        sets[to as usize].insert(group);
    }
}
