//! The search for free blocks: the goal first, then group after group by criteria that
//! become less and less picky.
//!
//! Source: Linux 6.18 `fs/ext4/mballoc.c`, `ext4_mb_regular_allocator` and what it calls.
//! Cost: with lists of groups (16 groups and more) one or two groups are looked into; the
//! last two criteria walk over all groups, which happens on file systems that are almost
//! full.

use super::group::{Group, N_ORDERS, fragment_order};
use super::lists::List;
use super::request::{GROUPS_PER_STREAM_GOAL, LISTS_FROM_GROUPS, ORDER2_REQ};
use super::{BlockAllocator, BlockUse, Kind, Request};
use crate::layout::{FLEX_GROUPS, FsBlock, GROUP_BLOCKS};

/// What a search goes by, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Criterion {
    /// A free buddy of the size asked for.
    PowerOfTwo,
    /// A group whose mean free run is as long as asked for.
    MeanRun,
    /// The same for less, but not less than needed.
    ShorterRun,
    /// A group that has as many free blocks.
    EnoughFree,
    /// Any group that is not full.
    Anything,
}

/// One search.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// Blocks needed.
    pub(super) len: u32,
    pub(super) kind: Kind,
    /// Where to look first.
    pub(super) goal: FsBlock,
    /// The goal block itself is tried before any search.
    pub(super) try_goal: bool,
    /// First block of the file of the enlarged request.
    pub(super) logical: u32,
    /// Length looked for now.
    pub(super) goal_len: u32,
    /// Length looked for at first.
    pub(super) wish_len: u32,
    /// First block of the file of the request.
    wanted: u32,
    is_data: bool,
    stream: Option<usize>,
    criterion: Criterion,
    /// Order of the buddy looked for; 0 for none.
    order: usize,
    best: Option<Run>,
    n_found: u32,
    state: State,
}

/// A run of free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    group: u32,
    start: u32,
    len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Searching,
    /// Enough was looked at: take the best.
    Enough,
    Found,
}

/// The groups streams start from, one for each CPU if there are groups enough.
pub(super) fn stream_goals(n_groups: u32, n_cpus: u32) -> Vec<u32> {
    vec![0; n_groups.div_ceil(GROUPS_PER_STREAM_GOAL).min(n_cpus).max(1) as usize]
}

impl Search {
    pub(super) fn new(request: &Request, len: u32, kind: Kind, goal: FsBlock) -> Self {
        Self {
            len,
            kind,
            goal,
            try_goal: false,
            logical: request.logical,
            goal_len: len,
            wish_len: len,
            wanted: request.logical,
            is_data: request.usage == BlockUse::Data,
            stream: (kind == Kind::Stream).then_some(request.ino.0 as usize),
            criterion: Criterion::MeanRun,
            order: 0,
            best: None,
            n_found: 0,
            state: State::Searching,
        }
    }

    /// Prepares for another search after spaces were given up.
    pub(super) fn restart(&mut self) {
        self.goal_len = self.wish_len;
        self.best = None;
        self.n_found = 0;
        self.state = State::Searching;
    }

    /// The place in the file for a space of `found` blocks, fewer than wished for or not: at
    /// the end of the range, at its start, or at the request, whatever holds the request.
    /// Source: `ext4_mb_new_inode_pa`.
    pub(super) fn place(&self, found: u32) -> u32 {
        let end = u64::from(self.logical) + u64::from(self.wish_len);
        let at_end = (end - u64::from(found.min(self.wish_len))) as u32;
        if found >= self.wish_len {
            self.logical
        } else if self.wanted >= at_end {
            at_end
        } else if u64::from(self.wanted) + u64::from(self.len)
            <= u64::from(self.logical) + u64::from(found)
        {
            self.logical
        } else {
            self.wanted
        }
    }

    /// Looks at the free runs of a group, from the first on. Answers the one to take, if the
    /// search ends here. Source: `ext4_mb_complex_scan_group`.
    fn scan_runs(&mut self, maps: &Group, group: u32, limits: &Limits) -> Option<Run> {
        let mut left = maps.summary.n_free;
        let mut at = maps.summary.first_free;
        while left > 0 {
            let run = maps.next_run(at).expect("a counted free block is in the map");
            let mut len = run.end - run.start;
            if self.criterion >= Criterion::EnoughFree || len >= self.goal_len {
                len = maps.extent_in(&run, self.goal_len);
                let found = self.measure(Run { group, start: run.start, len }, limits);
                if found.is_some() || self.state != State::Searching {
                    return found;
                }
            }
            at = run.start + len;
            left -= len;
        }
        self.check_limits(limits, true)
    }

    /// Compares a run with the best so far. Source: `ext4_mb_measure_extent`.
    fn measure(&mut self, run: Run, limits: &Limits) -> Option<Run> {
        self.n_found += 1;
        if run.len == self.goal_len {
            return Some(run);
        }
        let Some(best) = self.best else {
            self.best = Some(run);
            return None;
        };
        let better = if best.len < self.goal_len {
            run.len > best.len
        } else {
            run.len > self.goal_len && run.len < best.len
        };
        if better {
            self.best = Some(run);
        }
        self.check_limits(limits, false)
    }

    /// Source: `ext4_mb_check_limits`.
    fn check_limits(&mut self, limits: &Limits, group_done: bool) -> Option<Run> {
        if self.n_found > limits.max_to_scan {
            self.state = State::Enough;
            return None;
        }
        let is_enough = group_done || self.n_found > limits.min_to_scan;
        self.best.filter(|best| is_enough && best.len >= self.goal_len)
    }
}

/// Free runs to look at, at least and at most.
struct Limits {
    min_to_scan: u32,
    max_to_scan: u32,
}

impl BlockAllocator {
    /// Finds blocks and takes them. Answers first block and length, which may be less than
    /// needed or up to `goal_len`.
    pub(super) fn search(&mut self, search: &mut Search) -> Option<(u32, u32)> {
        self.try_goal(search);
        if search.state == State::Searching {
            self.prepare(search);
            self.scan_groups(search);
        }
        if let (State::Searching | State::Enough, Some(best)) = (search.state, search.best) {
            // Nothing else takes blocks meanwhile, so the best found is still there.
            let len = self.group_mut(best.group).extent_at(best.start, best.len);
            assert!(len > 0, "the best run is free");
            self.take_best(search, Run { len, ..best });
        }
        let best = search.best.filter(|_| search.state == State::Found)?;
        Some((best.group * GROUP_BLOCKS + best.start, best.len))
    }

    /// Source: `ext4_mb_find_by_goal`.
    fn try_goal(&mut self, search: &mut Search) {
        let (group, start) = (search.goal.group(), search.goal.offset());
        if !search.try_goal || self.summary(group).n_free == 0 {
            return;
        }
        let len = self.group_mut(group).extent_at(start, search.goal_len);
        if len >= search.goal_len {
            search.n_found += 1;
            self.take_best(search, Run { group, start, len });
        }
    }

    fn prepare(&mut self, search: &mut Search) {
        let len = search.goal_len;
        let bits = u32::BITS - len.leading_zeros();
        search.order = 0;
        if (ORDER2_REQ..=N_ORDERS as u32).contains(&bits) && len.is_power_of_two() {
            search.order = bits as usize - 1;
        }
        if let Some(hash) = search.stream {
            let group = self.stream_goals[hash % self.stream_goals.len()];
            search.goal = FsBlock::first_of(group);
        }
        search.criterion =
            if search.order > 0 { Criterion::PowerOfTwo } else { Criterion::MeanRun };
    }

    fn scan_groups(&mut self, search: &mut Search) {
        let start = search.goal.group();
        let by_lists = self.n_groups >= LISTS_FROM_GROUPS;
        loop {
            let next = match search.criterion {
                Criterion::PowerOfTwo if by_lists => {
                    let orders = search.order..N_ORDERS;
                    self.scan_lists(search, start, |_| orders.clone().map(List::Largest));
                    Criterion::MeanRun
                }
                Criterion::MeanRun if by_lists => {
                    let orders = fragment_order(search.goal_len)..N_ORDERS;
                    self.scan_lists(search, start, |_| orders.clone().map(List::Fragment));
                    if search.is_data { Criterion::ShorterRun } else { Criterion::EnoughFree }
                }
                Criterion::ShorterRun if by_lists => {
                    self.scan_shorter(search, start);
                    Criterion::EnoughFree
                }
                criterion => {
                    for group in (start..self.n_groups).chain(0..start) {
                        self.scan_group(search, group);
                        if search.state != State::Searching {
                            return;
                        }
                    }
                    match criterion {
                        Criterion::PowerOfTwo => Criterion::MeanRun,
                        Criterion::MeanRun => Criterion::ShorterRun,
                        Criterion::ShorterRun => Criterion::EnoughFree,
                        Criterion::EnoughFree => Criterion::Anything,
                        Criterion::Anything => return,
                    }
                }
            };
            if search.state != State::Searching {
                return;
            }
            search.criterion = next;
        }
    }

    /// Looks into the groups of lists, from a group to the last and then from the first.
    fn scan_lists<I: Iterator<Item = List>>(
        &mut self,
        search: &mut Search,
        start: u32,
        lists: impl Fn(&Search) -> I,
    ) {
        for groups in [start..self.n_groups, 0..start] {
            for list in lists(search) {
                let mut at = groups.start;
                while let Some(group) = self.lists.first_in(list, at..groups.end) {
                    self.scan_group(search, group);
                    if search.state != State::Searching {
                        return;
                    }
                    at = group + 1;
                }
            }
        }
    }

    /// Looks for powers of two below the length, down to what is needed. Source:
    /// `ext4_mb_scan_groups_best_avail`.
    fn scan_shorter(&mut self, search: &mut Search, start: u32) {
        let order = search.goal_len.ilog2();
        let mut least = order.saturating_sub(self.options.mb_best_avail_max_trim_order);
        if 1 << least < search.len {
            least = search.len.ilog2() + 1;
        }
        for groups in [start..self.n_groups, 0..start] {
            for order in (least..=order).rev() {
                search.goal_len = 1 << order;
                let list = List::Fragment(fragment_order(search.goal_len));
                let mut at = groups.start;
                while let Some(group) = self.lists.first_in(list, at..groups.end) {
                    self.scan_group(search, group);
                    if search.state != State::Searching {
                        return;
                    }
                    at = group + 1;
                }
            }
        }
        search.goal_len = search.wish_len;
    }

    /// Whether a group is worth a look. Source: `ext4_mb_good_group`.
    fn is_good(&self, search: &Search, group: u32) -> bool {
        let summary = self.summary(group);
        if summary.n_free == 0 {
            return false;
        }
        match search.criterion {
            // The first group of a flex group is left to directories.
            Criterion::PowerOfTwo => {
                !(search.is_data && group.is_multiple_of(FLEX_GROUPS))
                    && summary.n_free >= search.goal_len
                    && summary.largest_order().is_some_and(|order| order >= search.order)
            }
            Criterion::MeanRun | Criterion::ShorterRun => {
                summary.n_free / summary.n_fragments >= search.goal_len
            }
            Criterion::EnoughFree => summary.n_free >= search.goal_len,
            Criterion::Anything => true,
        }
    }

    fn scan_group(&mut self, search: &mut Search, group: u32) {
        if !self.is_good(search, group) {
            return;
        }
        if search.criterion == Criterion::PowerOfTwo {
            self.scan_buddies(search, group);
            return;
        }
        let limits = Limits {
            min_to_scan: self.options.mb_min_to_scan,
            max_to_scan: self.options.mb_max_to_scan,
        };
        if let Some(run) = search.scan_runs(self.group_mut(group), group, &limits) {
            self.take_best(search, run);
        }
    }

    /// The first buddy of the smallest order that will do. Source:
    /// `ext4_mb_simple_scan_group`.
    fn scan_buddies(&mut self, search: &mut Search, group: u32) {
        let maps = self.group_mut(group);
        let order = (search.order..N_ORDERS).find(|order| maps.summary.n_buddies[*order] > 0);
        let order = order.expect("a good group has a buddy");
        let start = maps.first_buddy(order).expect("a counted buddy is in its map");
        search.n_found += 1;
        self.take_best(search, Run { group, start, len: 1 << order });
    }

    /// Source: `ext4_mb_use_best_found`.
    fn take_best(&mut self, search: &mut Search, run: Run) {
        let run = Run { len: run.len.min(search.goal_len), ..run };
        let maps = self.group_mut(run.group);
        maps.take(run.start, run.len);
        self.update_lists(run.group);
        search.best = Some(run);
        search.state = State::Found;
        if let Some(hash) = search.stream {
            let idx = hash % self.stream_goals.len();
            self.stream_goals[idx] = run.group;
        }
    }
}
