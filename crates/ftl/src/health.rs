//! Blocks that fail, and what that does to a drive.
//!
//! A program that fails is found out at its end; what it held is still in the buffer
//! and is programmed again elsewhere, and the block is emptied and retired. An erase
//! that fails retires the block at once. Every lost block is one of spare space less
//! on its die, so write amplification grows; when a die, or the drive as a whole, has
//! none left, the drive becomes read-only: everything it holds can be read, and what is
//! buffered is still programmed, but nothing new is taken.
//!
//! Failures come from [`flashwise_nand::FaultPlan`]. One that the drive could not
//! survive (no second free block on the die) does not happen, nor does any once the
//! drive is read-only. A failing block gains no space when it is emptied, so that is
//! done only while the die has free blocks to spare, never to gain one.
//!
//! Invariants: retired blocks hold nothing valid; no acknowledged data is lost; the
//! table of bad blocks survives power failure, as drives keep it in several copies.

use std::collections::BTreeMap;

use flashwise_nand::{BlockId, Flash, Ppn};

use crate::blocks::BlockState;
use crate::write::{Frontier, Payload};
use crate::{ConfigError, Ftl};

/// Why a block is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadReason {
    Factory,
    Program,
    Erase,
}

impl BadReason {
    pub(crate) const ALL: [Self; 3] = [Self::Factory, Self::Program, Self::Erase];
}

/// State of a drive's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Blocks that were bad from the start.
    pub factory_bad: u32,
    /// Blocks lost to failed programs.
    pub program_failures: u32,
    /// Blocks lost to failed erases.
    pub erase_failures: u32,
    /// Blocks the drive can still lose before it becomes read-only, at best.
    pub spare_blocks: u64,
    /// The same for a drive without bad blocks.
    pub spare_blocks_new: u64,
    /// Nothing new is taken.
    pub read_only: bool,
}

impl Health {
    /// Blocks that are bad for any reason.
    pub fn bad_blocks(&self) -> u32 {
        self.factory_bad + self.program_failures + self.erase_failures
    }
}

impl Ftl {
    /// State of the blocks.
    pub fn health(&self) -> Health {
        let count = |reason| self.bad_blocks.values().filter(|&&r| r == reason).count() as u32;
        let n_new = self.n_spare(0);
        Health {
            factory_bad: count(BadReason::Factory),
            program_failures: count(BadReason::Program),
            erase_failures: count(BadReason::Erase),
            spare_blocks: self.n_spare(self.bad_blocks.len() as u64).unwrap_or(0),
            spare_blocks_new: n_new.unwrap_or(0),
            read_only: self.read_only,
        }
    }

    /// Nothing new may be written; see [`Health::read_only`].
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Blocks beyond what the exported units need, if `n_bad` are bad.
    fn n_spare(&self, n_bad: u64) -> Option<u64> {
        let needed = self.cfg.blocks_needed() * u64::from(self.cfg.geo.n_dies());
        u64::from(self.cfg.geo.n_blocks()).checked_sub(needed + n_bad)
    }

    /// Retires the blocks that are bad from the start. Call on a blank drive.
    pub(crate) fn retire_factory_bad(&mut self) -> Result<(), ConfigError> {
        let plan = self.cfg.faults;
        if plan.factory_bad_ppm == 0 {
            return Ok(());
        }
        for die in 0..self.dies.len() {
            let bad = self.blocks_of(die).filter(|&b| plan.is_factory_bad(BlockId(b)));
            let bad: Vec<u32> = bad.collect();
            for &block in &bad {
                self.mark_bad(die, block, BadReason::Factory);
                self.blocks.set_state(block, BlockState::Bad);
            }
            self.dies[die].free.retain(|b| !bad.contains(b));
            let n_blocks = self.cfg.geo.n_blocks_per_plane;
            let n_spare = u64::from(n_blocks).saturating_sub(self.cfg.blocks_needed());
            if bad.len() as u64 > n_spare {
                let (ppm, n_bad) = (plan.factory_bad_ppm, bad.len() as u32);
                let die = die as u32;
                return Err(ConfigError::TooManyBadBlocks { ppm, die, n_blocks, n_bad, n_spare });
            }
        }
        Ok(())
    }

    /// Counts `block` as bad: its die has less room.
    fn mark_bad(&mut self, die: usize, block: u32, reason: BadReason) {
        if self.bad_blocks.insert(block, reason).is_some() {
            return;
        }
        let d = &mut self.dies[die];
        let lost = self.layout.units_per_block.min(d.limit);
        d.limit -= lost;
        self.total_limit -= u64::from(lost);
        self.read_only |= d.limit == 0
            || self.dies[die].n_valid > self.dies[die].limit
            || self.n_spare(self.bad_blocks.len() as u64).is_none();
    }

    /// Puts back a table of bad blocks, after a power failure or from a saved drive.
    pub(crate) fn restore_bad(&mut self, bad: &BTreeMap<u32, BadReason>) {
        for (&block, &reason) in bad {
            self.mark_bad(self.die_of_block(block), block, reason);
        }
    }

    /// Makes bad blocks that still hold something due, and nothing else.
    pub(crate) fn reset_due(&mut self) {
        self.dies.iter_mut().for_each(|d| d.due.clear());
        for &block in self.bad_blocks.keys() {
            if self.blocks.state(block) == BlockState::Failing {
                self.dies[self.die_div.div(block) as usize].due.push_back(block);
            }
        }
    }

    /// Forgets all bad blocks.
    pub(crate) fn reset_bad(&mut self) {
        let per_die = self.cfg.geo.n_blocks_per_plane - self.cfg.reserve_blocks();
        let limit = per_die * self.layout.units_per_block;
        self.dies.iter_mut().for_each(|d| d.limit = limit);
        self.total_limit = u64::from(limit) * self.dies.len() as u64;
        self.bad_blocks.clear();
        self.read_only = false;
    }

    /// The block is bad, retired or about to be.
    pub fn is_bad_block(&self, block: BlockId) -> bool {
        self.is_bad(block.0)
    }

    /// `block` is bad, retired or about to be.
    pub(crate) fn is_bad(&self, block: u32) -> bool {
        self.bad_blocks.contains_key(&block)
    }

    /// The program unit at `offset` of `block` is going to fail.
    pub(crate) fn program_fails(&self, die: usize, block: u32, offset: u32) -> bool {
        let n_erases = self.blocks.n_erases[block as usize];
        !self.read_only
            && self.dies[die].free.len() >= 2
            && self.cfg.faults.program_fails(BlockId(block), n_erases, offset)
    }

    /// The erase of `block` that was just sent is going to fail.
    pub(crate) fn erase_fails(&self, die: usize, block: u32) -> bool {
        let plan = &self.cfg.faults;
        plan.erase_fail_ppm > 0
            && !self.read_only
            && self.dies[die].free.len() >= 2
            && plan.erase_fails(BlockId(block), self.blocks.n_erases[block as usize])
    }

    /// An erase failed: `block`, which is empty, is out of use.
    pub(crate) fn retire_unerased(&mut self, die: usize, block: u32) {
        self.blocks.set_state(block, BlockState::Bad);
        self.mark_bad(die, block, BadReason::Erase);
    }

    /// Units of a failing program unit that began with append `first_seq` are superseded
    /// already and not written again. Blocks whose erase relied on them have to await
    /// what superseded them instead: everything up to now.
    fn await_superseders(&mut self, first_seq: u64) {
        if self.cfg.power_protected {
            return;
        }
        for last in &mut self.blocks.last_change {
            if *last >= first_seq {
                *last = self.seq;
            }
        }
    }

    /// Sends the finished program unit at `start` of frontier `f` to the flash, where
    /// it fails; what it held goes to the next block of `f`.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail_program<F: Flash>(
        &mut self,
        f: usize,
        die: usize,
        start: u32,
        ready_ns: u64,
        flash: &mut F,
    ) {
        let fr = self.frontiers[f];
        let first = fr.block * self.layout.units_per_block + start;
        let places = first..first + self.layout.units_per_pu;
        let valid: Vec<Ppn> = places.map(Ppn).filter(|&p| self.map.is_valid(p)).collect();
        if valid.len() < self.layout.units_per_pu as usize {
            self.await_superseders(fr.first_seq);
        }
        if !self.cfg.power_protected {
            self.dies[die].pending_first_seq.push_back(fr.first_seq);
        }
        self.frontiers[f] = Frontier::CLOSED;
        self.blocks.set_state(fr.block, BlockState::Failing);
        self.mark_bad(die, fr.block, BadReason::Program);
        self.dies[die].due.push_back(fr.block);
        // Buffer space of what is written again is free when that is programmed.
        let n_kept = (valid.len() as u32).min(fr.n_buffered);
        self.send_program(die, fr.block, start, fr.n_buffered - n_kept, ready_ns, flash);
        // What these units superseded must not be erased before they are safe.
        let outer = self.redo_seq;
        self.redo_seq = fr.first_seq.min(outer);
        for (i, from) in valid.into_iter().enumerate() {
            if !self.frontiers[f].is_open() {
                self.open_blank(f, die);
            }
            let lpn = self.map.lpn_at(from);
            self.invalidate(from, fr.block, die);
            let buffered = (i as u32) < n_kept;
            self.append(f, die, lpn, Payload::Move(from), buffered, ready_ns, flash);
            self.counters.bytes_redo += u64::from(self.cfg.geo.unit_bytes);
        }
        self.redo_seq = outer;
        if let Some(media) = &mut self.media {
            for offset in start..start + self.layout.units_per_pu {
                media.spoil(fr.block, offset);
            }
        }
    }
}
