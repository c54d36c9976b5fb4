//! When a hinted write yields to round robin: the guard around the relation axis.
//!
//! A hint may name any die, so whatever one die can run out of before the others is
//! bounded here:
//! * *space*: slack too far below the mean (`has_room`, which binds round robin too);
//! * *wear*: more erases per block than the mean of all dies and `yield_erases`;
//! * *the write buffer*: so much of it waits for the die that others would run dry.
//!
//! Wear is bounded in erases per block and not as a ratio: what a die that is ahead costs
//! is life of the drive, and the bound by the endurance is the part of it that can be lost.
//!
//! Cost: two loads and two comparisons for a unit with a hint. Sums change at an erase, and
//! when a program unit is sent or done.

use crate::{Ftl, FtlConfig};

/// Bounds of the configuration in the form that is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct YieldBounds {
    /// Erases of a die times the number of dies, over those of all dies.
    lead: u64,
    /// Units of the write buffer that wait for one die.
    queued: u32,
}

impl YieldBounds {
    pub(crate) fn of(cfg: &FtlConfig) -> Self {
        // A die that is `yield_erases` ahead in every block has a D-th of the blocks, and its
        // erases count D times.
        let lead = (cfg.yield_erases * f64::from(cfg.geo.n_blocks())) as u64;
        Self { lead, queued: cfg.yield_buffer_units }
    }
}

impl Ftl {
    /// A hinted write may go to `die`; else it yields, which is counted.
    #[inline]
    pub(crate) fn may_take(&mut self, die: usize) -> bool {
        let takes = self.takes_hints(die);
        if !takes {
            self.count_yield(die);
        }
        takes
    }

    #[inline]
    fn takes_hints(&self, die: usize) -> bool {
        !self.is_worn_ahead(die) && !self.is_behind(die) && self.has_room(die)
    }

    #[cold]
    fn count_yield(&mut self, die: usize) {
        let (is_worn, is_behind) = (self.is_worn_ahead(die), self.is_behind(die));
        self.counters.hints_yielded += 1;
        self.counters.hints_yielded_wear += u64::from(is_worn);
        self.counters.hints_yielded_buffer += u64::from(is_behind && !is_worn);
    }

    /// Die for a unit that yields: round robin, but past dies that it would yield on as well.
    /// Else a die at its bound would get its turn on top.
    #[cold]
    pub(crate) fn elsewhere(&mut self, handle: u16) -> usize {
        let (n, at) = (self.dies.len(), usize::from(self.cursors[usize::from(handle)]));
        let die = (0..n).map(|i| (at + i) % n).find(|&die| self.takes_hints(die));
        let Some(die) = die else { return self.round_robin(handle) };
        self.cursors[usize::from(handle)] = die as u16;
        die
    }

    /// As much of the write buffer waits for `die` as hints may send there.
    #[inline]
    fn is_behind(&self, die: usize) -> bool {
        self.dies[die].n_queued >= self.bounds.queued
    }

    /// The blocks of `die` were erased more often than those of all dies by more than
    /// the bound, on average.
    #[inline]
    fn is_worn_ahead(&self, die: usize) -> bool {
        self.dies[die].n_erases * self.dies.len() as u64 > self.n_erases + self.bounds.lead
    }

    /// Changes the bounds of hinted writes; data stays where it is.
    pub fn set_yield(&mut self, erases: f64, buffer_units: u32) {
        (self.cfg.yield_erases, self.cfg.yield_buffer_units) = (erases, buffer_units);
        self.bounds = YieldBounds::of(&self.cfg);
    }

    /// A block of `die` is erased.
    pub(crate) fn count_erase(&mut self, die: usize, block: u32) {
        self.blocks.n_erases[block as usize] += 1;
        self.dies[die].n_erases += 1;
        self.n_erases += 1;
    }

    /// Erases of each block sent so far, as the flash counts them.
    pub fn set_erases(&mut self, wear: &[u32]) {
        self.blocks.n_erases.copy_from_slice(wear);
        let per_die = self.cfg.geo.n_blocks_per_plane as usize;
        for (d, wear) in self.dies.iter_mut().zip(wear.chunks_exact(per_die)) {
            d.n_erases = wear.iter().map(|&n| u64::from(n)).sum();
        }
        self.n_erases = self.dies.iter().map(|d| d.n_erases).sum();
    }

    /// Erases of each die, of all its blocks together.
    pub fn die_erases(&self) -> Vec<u64> {
        self.dies.iter().map(|d| d.n_erases).collect()
    }
}
