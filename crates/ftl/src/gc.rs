//! Garbage collection, per die.
//!
//! Host writes pay as they go: while a die is short of free blocks, every program
//! unit it takes in moves as many units out of the victim as keep the two in step,
//! so the work is spread and never far behind. What cannot wait (a frontier needs
//! a block and none may be taken) is collected at once, and idle time is used up
//! to a higher mark. The moves become physical work in the queue of the die, which
//! host reads overtake.
//!
//! Data keeps its die. A program unit of the victim that is wholly valid moves
//! whole into a block for such units, so a file that lay well keeps lying well;
//! fragments fill another block. Under `chain` a page is enough.

use flashwise_nand::{DieId, Flash, PageOp, Ppn};

use crate::blocks::{BlockState, Job};
use crate::config::N_GC_FRONTIERS;
use crate::victims::Victims;
use crate::write::Payload;
use crate::{Ftl, Lpn, RelationPolicy};

/// How garbage collection chooses a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum VictimPolicy {
    /// The one with the fewest valid units.
    #[default]
    Greedy,
    /// The largest (1 - u) / 2u x age. Source: Rosenblum and Ousterhout, "The
    /// Design and Implementation of a Log-Structured File System", 1992, with the
    /// two transfers per move of Kawaguchi et al., 1995; age counts appends since
    /// a unit of the block last became invalid.
    CostBenefit,
    /// The one closed longest ago.
    Fifo,
}

impl VictimPolicy {
    /// Every policy with its name in a preset.
    pub const ALL: [(&'static str, Self); 3] =
        [("greedy", Self::Greedy), ("cost-benefit", Self::CostBenefit), ("fifo", Self::Fifo)];
}

impl Ftl {
    /// A program unit of the host went to `die`: move what that costs.
    #[inline]
    pub(crate) fn pace_gc<F: Flash>(&mut self, die: usize, ready_ns: u64, flash: &mut F) {
        self.look_for_old(die, ready_ns);
        if self.n_blank_soon(die) < self.cfg.gc_low_blocks as usize {
            self.collect_some(die, ready_ns, flash);
        } else if !self.dies[die].due.is_empty() || self.dies[die].job.is_some_and(|j| j.is_due) {
            self.work_on_due(die, ready_ns, flash);
        }
        if !self.dies[die].waiting.is_empty() {
            self.release_waiting(die, ready_ns, flash);
        }
    }

    /// Uses idle time of `die`: moves one program unit if its free blocks are
    /// below the high mark. False: there is nothing to do.
    pub fn collect_idle<F: Flash>(&mut self, die: DieId, ready_ns: u64, flash: &mut F) -> bool {
        let die = usize::from(die.0);
        self.release_waiting(die, ready_ns, flash);
        self.look_for_old(die, ready_ns);
        if self.read_only {
            return false;
        }
        if self.n_blank_soon(die) >= self.cfg.gc_high_blocks as usize {
            return self.work_on_due(die, ready_ns, flash);
        }
        if !self.begin_job(die) {
            return self.work_on_due(die, ready_ns, flash);
        }
        self.collect_program_unit(die, ready_ns, flash);
        self.end_job_if_empty(die, ready_ns, flash);
        true
    }

    /// Free blocks, and emptied ones that may not be erased yet: collecting more does
    /// not make those come sooner.
    #[inline]
    fn n_blank_soon(&self, die: usize) -> usize {
        self.dies[die].free.len() + self.dies[die].waiting.len()
    }

    /// Collects on `die` until it has `n` free blocks.
    pub(crate) fn reclaim_until<F: Flash>(
        &mut self,
        die: usize,
        n: usize,
        ready_ns: u64,
        flash: &mut F,
    ) {
        while self.dies[die].free.len() < n {
            if !self.dies[die].waiting.is_empty() {
                self.force_waiting(die, ready_ns, flash);
                continue;
            }
            let found = self.begin_job(die);
            if !found && self.read_only {
                return;
            }
            assert!(found, "a die within its limit has something to collect");
            while !self.end_job_if_empty(die, ready_ns, flash) {
                self.collect_program_unit(die, ready_ns, flash);
            }
        }
    }

    fn collect_some<F: Flash>(&mut self, die: usize, ready_ns: u64, flash: &mut F) {
        if !self.begin_job(die) {
            return;
        }
        let job = self.dies[die].job.as_mut().expect("just begun");
        if job.is_due {
            // It gains little or nothing, so it must not be paid for by what it gains.
            self.work_on_due(die, ready_ns, flash);
            return;
        }
        // To gain (block - valid) units, `valid` have to move.
        let gain = i64::from(self.layout.units_per_block - job.n_valid);
        job.debt += i64::from(self.layout.units_per_pu) * i64::from(job.n_valid);
        while self.dies[die].job.is_some_and(|j| j.debt > 0) {
            let n_moved = self.collect_program_unit(die, ready_ns, flash);
            let job = self.dies[die].job.as_mut().expect("only ended below");
            job.debt -= i64::from(n_moved) * gain;
            if self.end_job_if_empty(die, ready_ns, flash) {
                return;
            }
        }
        // A victim that held nothing costs nothing.
        self.end_job_if_empty(die, ready_ns, flash);
    }

    /// Makes sure a victim is chosen; false if no block holds invalid units.
    fn begin_job(&mut self, die: usize) -> bool {
        if self.dies[die].job.is_some() {
            return true;
        }
        let Some((block, n_valid)) = self.choose_victim(die) else {
            return false;
        };
        self.victims.remove(die, block, n_valid);
        self.begin(die, block, false);
        true
    }

    /// Makes a block that is in no index any more the victim.
    pub(crate) fn begin(&mut self, die: usize, block: u32, is_due: bool) {
        let n_valid = self.blocks.valid(block);
        self.blocks.set_state(block, BlockState::Victim);
        self.dies[die].job = Some(Job { block, is_due, next: 0, n_valid, debt: 0 });
        self.counters.gc_runs += 1;
    }

    fn choose_victim(&mut self, die: usize) -> Option<(u32, u32)> {
        let units_per_block = self.layout.units_per_block;
        let worth_it = |&(_, valid): &(u32, u32)| valid < units_per_block;
        match &mut self.victims {
            Victims::Groups(g) => g.emptiest(die, &self.blocks).filter(worth_it),
            Victims::Lists(lists) => {
                let score = |block: u32, valid: u32| {
                    let age = self.seq + 1 - self.blocks.last_change[block as usize];
                    f64::from(units_per_block - valid) * age as f64 / f64::from(valid)
                };
                let heads = lists.heads(die).filter(worth_it);
                heads.max_by(|a, b| score(a.0, a.1).total_cmp(&score(b.0, b.1)))
            }
            Victims::Order => {
                let order = &mut self.dies[die].closed_order;
                let at = order.iter().position(|&b| self.blocks.valid(b) < units_per_block)?;
                let block = order.remove(at)?;
                Some((block, self.blocks.valid(block)))
            }
        }
    }

    /// Moves what is valid in the next program unit of the victim; how many units.
    pub(crate) fn collect_program_unit<F: Flash>(
        &mut self,
        die: usize,
        ready_ns: u64,
        flash: &mut F,
    ) -> u32 {
        // Moved data needs room: an emptied block may not wait any longer then.
        while self.dies[die].free.len() < 2 && !self.dies[die].waiting.is_empty() {
            self.force_waiting(die, ready_ns, flash);
        }
        let job = self.dies[die].job.as_mut().expect("a job was begun");
        let (block, start) = (job.block, job.next);
        if start >= self.layout.units_per_block {
            return 0;
        }
        let n_pu = self.layout.units_per_pu;
        job.next += n_pu;
        let first = Ppn(block * self.layout.units_per_block + start);
        let n = self.map.count_valid(first, n_pu);
        if n > 0 {
            let upp = self.layout.units_per_page;
            let mut whole = n == n_pu;
            let mut f = self.gc_target(die, whole);
            for at in (start..start + n_pu).step_by(upp as usize) {
                if n < n_pu && self.moves_pages() {
                    let n_page = self.map.count_valid(Ppn(first.0 + at - start), upp);
                    if whole != (n_page == upp) {
                        whole = !whole;
                        f = self.gc_target(die, whole);
                    }
                }
                f = self.still_right(f, die, whole);
                self.move_page(f, die, whole, block, at, ready_ns, flash);
            }
        }
        self.prefetch_job(Ppn(first.0 + n_pu), start + n_pu);
        n
    }

    #[expect(clippy::too_many_arguments, reason = "the inner loop passes plain values")]
    fn move_page<F: Flash>(
        &mut self,
        f: usize,
        die: usize,
        whole: bool,
        block: u32,
        at: u32,
        ready_ns: u64,
        flash: &mut F,
    ) {
        let (upp, unit_bytes) = (self.layout.units_per_page, self.cfg.geo.unit_bytes);
        let first = block * self.layout.units_per_block + at;
        let n = self.map.count_valid(Ppn(first), upp);
        if n == 0 {
            return;
        }
        let (id, page_idx) = (flashwise_nand::BlockId(block), self.layout.page_of(at));
        let op = PageOp {
            die: DieId(die as u16),
            block: id,
            mode: self.layout.mode,
            page: self.layout.page(page_idx),
            bytes: n * unit_bytes,
            retries: self.read_retries(id, page_idx),
            ready_ns,
        };
        flash.copy_read(op);
        self.counters.bytes_gc += u64::from(n) * u64::from(unit_bytes);
        self.dies[die].n_moved += u64::from(n);
        for chunk in (0..upp).step_by(64) {
            let from = Ppn(first + chunk);
            let bits = self.map.valid_bits(from, 64.min(upp - chunk));
            if self.media.is_some() {
                self.move_units(f, die, whole, block, from, bits, ready_ns, flash);
            } else {
                self.move_bits(f, die, whole, block, from, bits, ready_ns, flash);
            }
        }
    }

    /// Moves the units of `bits` one by one, with their contents.
    #[expect(clippy::too_many_arguments, reason = "the inner loop passes plain values")]
    fn move_units<F: Flash>(
        &mut self,
        mut f: usize,
        die: usize,
        whole: bool,
        block: u32,
        first: Ppn,
        mut bits: u64,
        ready_ns: u64,
        flash: &mut F,
    ) {
        while bits != 0 {
            let from = Ppn(first.0 + bits.trailing_zeros());
            bits &= bits - 1;
            let lpn = self.map.lpn_at(from);
            debug_assert_eq!(self.map.get(lpn), Some(from));
            f = self.still_right(f, die, whole);
            self.invalidate(from, block, die);
            self.append(f, die, lpn, Payload::Move(from), false, ready_ns, flash);
        }
    }

    /// The same where no contents are kept: counts change once for as many units
    /// as fit into the program unit being filled.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the inner loop passes plain values")]
    fn move_bits<F: Flash>(
        &mut self,
        mut f: usize,
        die: usize,
        whole: bool,
        block: u32,
        first: Ppn,
        mut bits: u64,
        ready_ns: u64,
        flash: &mut F,
    ) {
        self.map.invalidate_bits(first, bits);
        self.blocks.take_valid(block, bits.count_ones());
        while bits != 0 {
            f = self.still_right(f, die, whole);
            if !self.frontiers[f].is_open() {
                self.open(f, die, ready_ns, flash);
            }
            if self.is_loose(f) {
                let lpn = self.map.lpn_at(Ppn(first.0 + bits.trailing_zeros()));
                bits &= bits - 1;
                self.dies[die].n_valid -= 1;
                self.n_valid -= 1;
                self.append(f, die, lpn, Payload::Host(None), false, ready_ns, flash);
                continue;
            }
            let fr = &mut self.frontiers[f];
            if fr.is_between_units(self.layout.units_per_pu) {
                fr.first_seq = self.seq + 1;
            }
            let n = bits.count_ones().min(fr.pu_end - fr.next);
            let mut to = Ppn(fr.block * self.layout.units_per_block + fr.next);
            fr.next += n;
            let full = fr.next == fr.pu_end;
            self.blocks.add_valid(fr.block, n);
            self.seq += u64::from(n);
            for _ in 0..n {
                let lpn = self.map.lpn_at(Ppn(first.0 + bits.trailing_zeros()));
                bits &= bits - 1;
                self.map.set(lpn, to);
                to.0 += 1;
            }
            if full {
                self.finish_program_unit(f, die, ready_ns, flash);
            }
        }
        if self.tracks_changes {
            self.blocks.last_change[block as usize] = self.seq;
        }
    }

    /// `f`, or where its data goes on if its block was filled, or the program unit that
    /// fragments were to complete.
    #[inline]
    fn still_right(&self, f: usize, die: usize, whole: bool) -> usize {
        let fr = &self.frontiers[f];
        let is_over = !whole && f >= self.gc_frontier(1, 0) && self.is_between_wholes(f);
        if fr.is_open() && !is_over { f } else { self.gc_target(die, whole) }
    }

    /// What moves whole are pages: planes that read independently sense a page of any two
    /// rows together, and `chain` puts pieces of different files into a program unit.
    fn moves_pages(&self) -> bool {
        self.cfg.relation == RelationPolicy::Chain && self.cfg.independent_planes
    }

    /// The frontier `f` of whole units is where the next of them may begin.
    #[inline]
    fn is_between_wholes(&self, f: usize) -> bool {
        let fr = &self.frontiers[f];
        if self.moves_pages() {
            return fr.next.is_multiple_of(self.layout.units_per_page);
        }
        fr.is_between_units(self.layout.units_per_pu)
    }

    /// The block moved data goes to: whole program units and fragments each have
    /// their own. Where one of the two is full and no block is free, they share what
    /// is open; the reserve makes sure that there is enough of it. What fragments began
    /// in the block of whole ones they also complete, or every later unit there would
    /// straddle two program units.
    #[inline]
    pub(crate) fn gc_target(&self, die: usize, whole: bool) -> usize {
        let wholes = self.gc_frontier(1, die);
        if !whole && self.frontiers[wholes].is_open() && !self.is_between_wholes(wholes) {
            return wholes;
        }
        let own = self.gc_frontier(u32::from(whole), die);
        if self.frontiers[own].is_open() || !self.dies[die].free.is_empty() {
            return own;
        }
        self.open_frontiers(die).next().expect("a die keeps room for collection")
    }

    /// Moved data and records have a place on `die`.
    pub(crate) fn has_gc_target(&self, die: usize) -> bool {
        !self.dies[die].free.is_empty() || self.open_frontiers(die).next().is_some()
    }

    /// Open frontiers of `die`, those of collection first.
    fn open_frontiers(&self, die: usize) -> impl Iterator<Item = usize> + '_ {
        let of_collection = (0..N_GC_FRONTIERS).map(move |kind| self.gc_frontier(kind, die));
        let of_host = (0..self.cfg.n_handles).map(move |h| self.host_frontier(h, die));
        of_collection.chain(of_host).filter(|&f| self.frontiers[f].is_open())
    }

    /// If the victim is empty, frees it (at once, or when that is safe).
    pub(crate) fn end_job_if_empty<F: Flash>(
        &mut self,
        die: usize,
        ready_ns: u64,
        flash: &mut F,
    ) -> bool {
        let Some(job) = self.dies[die].job else {
            return true;
        };
        if self.blocks.valid(job.block) > 0 {
            return false;
        }
        self.dies[die].job = None;
        if self.is_bad(job.block) {
            // It stays as it is; copies that were superseded do no harm.
            self.blocks.set_state(job.block, BlockState::Bad);
        } else if self.cfg.power_protected {
            self.erase(die, job.block, ready_ns, flash);
        } else {
            self.blocks.set_state(job.block, BlockState::Waiting);
            self.dies[die].waiting.push_back(job.block);
            self.release_waiting(die, ready_ns, flash);
        }
        true
    }

    /// Erases an empty block: it is free for what is queued after the erase.
    pub(crate) fn erase<F: Flash>(&mut self, die: usize, block: u32, ready_ns: u64, flash: &mut F) {
        self.blocks.erase_queued(block);
        self.count_erase(die, block);
        self.scrub.on_erase(block);
        self.counters.erases += 1;
        if self.erase_fails(die, block) {
            self.retire_unerased(die, block);
        } else {
            self.blocks.set_state(block, BlockState::Free);
            self.dies[die].free.push_back(block);
            self.level(die, block);
        }
        let id = flashwise_nand::BlockId(block);
        flash.erase(DieId(die as u16), id, self.layout.mode, ready_ns);
        if F::INSTANT {
            self.on_erased(id);
        }
    }

    /// Map entries of the next program unit of the victim will be needed soon.
    fn prefetch_job(&self, first: Ppn, offset: u32) {
        if offset >= self.layout.units_per_block {
            return;
        }
        let n = self.layout.units_per_pu.min(64);
        let mut bits = self.map.valid_bits(first, n);
        while bits != 0 {
            let at = Ppn(first.0 + bits.trailing_zeros());
            bits &= bits - 1;
            self.prefetch_map(Lpn(self.map.lpn_at(at)));
        }
        let later = first.0 + 2 * n;
        if offset + 2 * n < self.layout.units_per_block {
            self.map.prefetch_reverse(Ppn(later));
        }
    }
}
