//! Spreading wear, and moving data before it becomes unreadable.
//!
//! *Dynamic* levelling opens the free block that was erased least. Blocks whose data
//! never changes are never free and so never worn; *static* levelling moves such data
//! once its block lags behind by more than a gap, into the most worn free block, where
//! it keeps still. Scrubbing moves data that was read so often, or lies there so long,
//! that its cells may have drifted.
//!
//! What has to be emptied waits in the list `due` of its die. It is worked on a program
//! unit at a time, beside writes, reads and in idle time, and only while the die has
//! free blocks: nothing of it is urgent.
//!
//! Cost: a look at the free blocks whenever one is opened; a look at all blocks of the
//! die every 16th erase of a block (static), and at most 64 times per age limit (scrubbing).

use flashwise_nand::{DieId, Flash};

use crate::Ftl;
use crate::blocks::BlockState;

/// Free blocks a die must have before blocks that are due are emptied: a wholly valid
/// one needs a block, and the host may open one meanwhile.
const FREE_FOR_DUE: usize = 3;

/// Erases of a block between looks for one that lags behind.
const LOOK_EVERY: u32 = 16;

/// Most looks for old data per age limit.
const LOOKS_PER_AGE: u64 = 64;

/// How erases are spread over the blocks of a die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WearLeveling {
    /// The block erased longest ago is opened next.
    None,
    /// The free block erased least is opened next.
    Dynamic,
    /// And data that does not change moves out of blocks that lag behind.
    #[default]
    Static,
}

impl WearLeveling {
    /// Every kind with its name in a preset.
    pub const ALL: [(&'static str, Self); 3] =
        [("none", Self::None), ("dynamic", Self::Dynamic), ("static", Self::Static)];
}

/// When data is moved because of what happened to its cells. 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrub {
    /// Senses for the host in a block since it was erased.
    pub reads_max: u32,
    /// Time since a block was filled \[ns\].
    pub age_max_ns: u64,
}

/// What scrubbing has to know; empty where it is off.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScrubState {
    /// Senses of each block since its erase.
    pub(crate) n_reads: Vec<u32>,
    /// When each block was filled \[ns\].
    closed_ns: Vec<u64>,
    /// When each die is looked at next \[ns\].
    next_look_ns: Vec<u64>,
}

impl ScrubState {
    pub(crate) fn new(scrub: Scrub, n_blocks: u32, n_dies: u32) -> Self {
        let n_timed = if scrub.age_max_ns > 0 { n_blocks as usize } else { 0 };
        let n_read = if scrub.reads_max > 0 { n_blocks as usize } else { 0 };
        Self {
            n_reads: vec![0; n_read],
            closed_ns: vec![0; n_timed],
            next_look_ns: vec![0; if n_timed > 0 { n_dies as usize } else { 0 }],
        }
    }

    pub(crate) fn on_close(&mut self, block: u32, now_ns: u64) {
        if let Some(at) = self.closed_ns.get_mut(block as usize) {
            *at = now_ns;
        }
    }

    pub(crate) fn on_erase(&mut self, block: u32) {
        if let Some(n) = self.n_reads.get_mut(block as usize) {
            *n = 0;
        }
    }

    /// The clock starts anew at `now_ns`: all data counts as written then.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        self.closed_ns.fill(now_ns);
        self.next_look_ns.fill(now_ns);
    }
}

impl Ftl {
    /// Takes a blank block for frontier `f`.
    pub(crate) fn take_free(&mut self, f: usize, die: usize) -> u32 {
        let d = &self.dies[die];
        let wear = |at: &usize| self.blocks.n_erases[d.free[*at] as usize];
        // What is moved for another reason than space keeps still: it goes where wear is
        // highest, if a block is opened for it.
        let is_static = self.cfg.leveling == WearLeveling::Static;
        let keeps_still = is_static && self.is_gc_frontier(f) && d.job.is_some_and(|j| j.is_due);
        let at = match self.cfg.leveling {
            WearLeveling::None => Some(0),
            _ if keeps_still => (0..d.free.len()).rev().max_by_key(wear),
            _ => (0..d.free.len()).min_by_key(wear),
        };
        let at = at.expect("collection keeps a free block");
        self.dies[die].free.remove(at).expect("collection keeps a free block")
    }

    /// `block` was erased: looks whether another of its die lags behind it.
    pub(crate) fn level(&mut self, die: usize, block: u32) {
        let n_erases = self.blocks.n_erases[block as usize];
        if self.cfg.leveling != WearLeveling::Static || !n_erases.is_multiple_of(LOOK_EVERY) {
            return;
        }
        let wear = |&b: &u32| self.blocks.n_erases[b as usize];
        let least = self.blocks_of(die).filter(|&b| self.blocks.is_closed(b)).min_by_key(wear);
        let Some(least) =
            least.filter(|b| wear(b).saturating_add(self.cfg.wear_gap_max) < n_erases)
        else {
            return;
        };
        if !self.dies[die].due.contains(&least) {
            self.dies[die].due.push_back(least);
            self.counters.leveling_runs += 1;
        }
    }

    /// All blocks of a die.
    pub(crate) fn blocks_of(&self, die: usize) -> std::ops::Range<u32> {
        let n = self.cfg.geo.n_blocks_per_plane;
        die as u32 * n..(die as u32 + 1) * n
    }

    /// Reads are counted.
    #[inline]
    pub fn counts_reads(&self) -> bool {
        self.cfg.scrub.reads_max > 0
    }

    /// The host sensed a page of `block`: counts it, and pays for what is due on the
    /// die with the move of a program unit.
    pub fn note_read<F: Flash>(&mut self, die: DieId, block: u32, at_ns: u64, flash: &mut F) {
        let die = usize::from(die.0);
        let n = &mut self.scrub.n_reads[block as usize];
        *n = n.saturating_add(1);
        if *n >= self.cfg.scrub.reads_max && self.blocks.is_closed(block) {
            self.add_scrub(die, block);
        }
        self.work_on_due(die, at_ns, flash);
    }

    fn add_scrub(&mut self, die: usize, block: u32) {
        if !self.dies[die].due.contains(&block) {
            self.dies[die].due.push_back(block);
            self.counters.scrub_runs += 1;
        }
    }

    /// Adds blocks of `die` that were filled too long ago to what is due.
    #[inline]
    pub(crate) fn look_for_old(&mut self, die: usize, now_ns: u64) {
        if self.scrub.next_look_ns.get(die).is_some_and(|&next| next <= now_ns) {
            self.look_at_ages(die, now_ns);
        }
    }

    #[cold]
    fn look_at_ages(&mut self, die: usize, now_ns: u64) {
        let age_max_ns = self.cfg.scrub.age_max_ns;
        let mut oldest_ns = now_ns;
        for block in self.blocks_of(die) {
            if !self.blocks.is_closed(block) {
                continue;
            }
            let closed_ns = self.scrub.closed_ns[block as usize];
            if now_ns.saturating_sub(closed_ns) >= age_max_ns {
                self.add_scrub(die, block);
            } else {
                oldest_ns = oldest_ns.min(closed_ns);
            }
        }
        // Not before another can be old enough, and not all the time.
        let next_ns = (oldest_ns + age_max_ns).max(now_ns + age_max_ns / LOOKS_PER_AGE);
        self.scrub.next_look_ns[die] = next_ns;
    }

    /// When the ages of a die are looked at next \[ns\], if at all.
    pub fn next_age_look_ns(&self, die: DieId) -> Option<u64> {
        self.scrub.next_look_ns.get(usize::from(die.0)).copied()
    }

    /// Moves a program unit out of a block that is due, if the die has one and can.
    pub(crate) fn work_on_due<F: Flash>(
        &mut self,
        die: usize,
        ready_ns: u64,
        flash: &mut F,
    ) -> bool {
        if self.read_only || !self.begin_due(die) {
            return false;
        }
        self.collect_program_unit(die, ready_ns, flash);
        self.end_job_if_empty(die, ready_ns, flash);
        true
    }

    /// A block that is due is being emptied, or one can be begun.
    fn begin_due(&mut self, die: usize) -> bool {
        if let Some(job) = self.dies[die].job {
            return job.is_due;
        }
        if self.dies[die].free.len() < FREE_FOR_DUE {
            return false;
        }
        while let Some(block) = self.dies[die].due.pop_front() {
            let is_closed = self.blocks.state(block) == BlockState::Closed;
            if is_closed {
                self.dies[die].closed_order.retain(|&b| b != block);
                self.victims.remove(die, block, self.blocks.valid(block));
            }
            if is_closed || self.blocks.state(block) == BlockState::Failing {
                self.begin(die, block, true);
                return true;
            }
        }
        false
    }
}
