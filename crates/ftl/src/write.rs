//! The write path: one unit at a time into the open block of its placement.

use flashwise_nand::{DieId, Flash, Ppn};

use crate::blocks::BlockState;
use crate::config::N_GC_FRONTIERS;
use crate::media::Body;
use crate::place::WriteContext;
use crate::{Ftl, Lpn, VictimPolicy};

/// An open block, or none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frontier {
    pub(crate) block: u32,
    /// Next offset to fill.
    pub(crate) next: u32,
    /// End of the program unit being filled.
    pub(crate) pu_end: u32,
    /// Units of the host in it that occupy the write buffer.
    pub(crate) n_buffered: u32,
    /// Append that began it.
    pub(crate) first_seq: u64,
}

impl Frontier {
    pub(crate) const CLOSED: Self =
        Self { block: u32::MAX, next: 0, pu_end: 0, n_buffered: 0, first_seq: 0 };

    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.block != u32::MAX
    }

    /// Nothing is in the program unit (of `units_per_pu`) to be filled next.
    #[inline]
    pub(crate) fn is_between_units(&self, units_per_pu: u32) -> bool {
        self.next + units_per_pu == self.pu_end
    }
}

/// What an appended unit carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// Data of the host (nothing where contents are not kept).
    Host(Option<&'a [u8]>),
    /// The unit at this place, moved.
    Move(Ppn),
    /// A record of trimmed addresses.
    Meta,
}

impl Ftl {
    /// Writes one mapping unit, of which the host wrote `host_bytes` (the rest is
    /// merged). Returns false when it replaced buffered data in place, true when it
    /// took a new place.
    #[inline]
    pub fn write_unit<F: Flash>(
        &mut self,
        ctx: &mut WriteContext,
        lpn: Lpn,
        host_bytes: u32,
        data: Option<&[u8]>,
        ready_ns: u64,
        flash: &mut F,
    ) -> bool {
        debug_assert!(lpn.0 < self.cfg.n_logical, "the device checks addresses");
        let mut old = self.locate(lpn);
        self.counters.bytes_host += u64::from(host_bytes);
        if let Some((ppn, block, _)) = old
            && self.cfg.coalesce
            && self.is_filling(ppn, block)
        {
            self.replace(ppn, host_bytes, data);
            return false;
        }
        self.counters.bytes_rmw += u64::from(self.cfg.geo.unit_bytes - host_bytes);
        let die = self.choose_die(ctx, old.map(|o| o.2));
        let f = self.host_frontier(ctx.handle, die);
        if !self.frontiers[f].is_open() {
            // May collect, and so move the old contents. The place for the new
            // ones must be certain before the old ones become invalid.
            self.open(f, die, ready_ns, flash);
            old = self.locate(lpn);
        }
        if let Some((ppn, block, old_die)) = old {
            self.invalidate(ppn, block, old_die);
        }
        let buffered = !F::INSTANT;
        let payload = Payload::Host(data);
        let filled = if self.is_loose(f) {
            let old_ppn = old.map(|o| o.0);
            self.append_by_slot(ctx, f, die, lpn, old_ppn, payload, buffered, ready_ns, flash)
        } else {
            self.append(f, die, lpn.0, payload, buffered, ready_ns, flash)
        };
        if filled {
            self.after_program_unit(ctx, die);
            self.pace_gc(die, ready_ns, flash);
        } else if self.cfg.grain_units > 0 && self.ends_grain(f) {
            self.after_program_unit(ctx, die);
        }
        true
    }

    /// The last unit of the unfinished program unit of `f` filled a grain.
    fn ends_grain(&self, f: usize) -> bool {
        self.frontiers[f].next.is_multiple_of(self.cfg.grain_units)
    }

    /// A write of `lpn` would replace buffered data in place.
    pub fn will_coalesce(&self, lpn: Lpn) -> bool {
        let old = self.locate(lpn);
        self.cfg.coalesce && old.is_some_and(|(ppn, block, _)| self.is_filling(ppn, block))
    }

    /// `ppn` lies in an open program unit of the host.
    #[inline]
    fn is_filling(&self, ppn: Ppn, block: u32) -> bool {
        !self.blocks.is_closed(block)
            && self.open_frontier_of(ppn).is_some_and(|f| !self.is_gc_frontier(f))
    }

    #[cold]
    fn replace(&mut self, ppn: Ppn, host_bytes: u32, data: Option<&[u8]>) {
        self.counters.bytes_coalesced += u64::from(host_bytes);
        if let (Some(media), Some(data)) = (&mut self.media, data) {
            let (block, offset) = self.block_div.div_rem(ppn.0);
            media.restage(block, offset, data);
        }
    }

    /// Place, block and die of `lpn`.
    #[inline]
    fn locate(&self, lpn: Lpn) -> Option<(Ppn, u32, usize)> {
        let ppn = self.map.get(lpn.0)?;
        let block = self.block_div.div(ppn.0);
        Some((ppn, block, self.die_of_block(block)))
    }

    /// Programs what `lpn` shares a program unit with, padded if need be; the die
    /// that has to finish it.
    pub fn program_now<F: Flash>(
        &mut self,
        lpn: Lpn,
        ready_ns: u64,
        flash: &mut F,
    ) -> Option<DieId> {
        let ppn = self.map.get(lpn.0)?;
        if let Some(f) = self.open_frontier_of(ppn) {
            self.pad_paced(f, ready_ns, flash);
        }
        Some(self.place(ppn).die)
    }

    /// Pads and programs the open program unit that has waited longest, so that
    /// its buffer space comes free. False: there is none.
    pub fn program_oldest_open<F: Flash>(&mut self, ready_ns: u64, flash: &mut F) -> bool {
        let open = self.frontiers.iter().enumerate().filter(|(_, f)| f.n_buffered > 0);
        let oldest = open.min_by_key(|(_, f)| f.first_seq).map(|(i, _)| i);
        if let Some(f) = oldest {
            self.pad_paced(f, ready_ns, flash);
        }
        oldest.is_some()
    }

    /// The frontier whose unfinished program unit holds `ppn`.
    #[inline]
    pub(crate) fn open_frontier_of(&self, ppn: Ppn) -> Option<usize> {
        let (block, offset) = self.block_div.div_rem(ppn.0);
        if self.blocks.state(block) != BlockState::Open {
            return None;
        }
        let f = self.blocks.frontier[block as usize] as usize;
        (offset >= self.frontiers[f].pu_end - self.layout.units_per_pu).then_some(f)
    }

    #[inline]
    pub(crate) fn host_frontier(&self, handle: u16, die: usize) -> usize {
        usize::from(handle) * self.dies.len() + die
    }

    /// Frontier of garbage collection: `kind` 0 for fragments, 1 for program
    /// units that move whole.
    #[inline]
    pub(crate) fn gc_frontier(&self, kind: u32, die: usize) -> usize {
        debug_assert!(kind < N_GC_FRONTIERS);
        (usize::from(self.cfg.n_handles) + kind as usize) * self.dies.len() + die
    }

    pub(crate) fn is_gc_frontier(&self, f: usize) -> bool {
        f >= self.n_host_frontiers()
    }

    pub(crate) fn n_host_frontiers(&self) -> usize {
        usize::from(self.cfg.n_handles) * self.dies.len()
    }

    /// Puts `lpn` into the next place of frontier `f`; true when that filled a
    /// program unit, which is then sent to the flash.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the inner loop passes plain values")]
    pub(crate) fn append<F: Flash>(
        &mut self,
        f: usize,
        die: usize,
        lpn: u32,
        payload: Payload<'_>,
        buffered: bool,
        ready_ns: u64,
        flash: &mut F,
    ) -> bool {
        if !self.frontiers[f].is_open() {
            self.open(f, die, ready_ns, flash);
        }
        if self.is_loose(f) {
            let page = self.due_page(f);
            return self.append_to_page(f, die, page, lpn, payload, buffered, ready_ns, flash);
        }
        self.seq += 1;
        let fr = &mut self.frontiers[f];
        let block = fr.block;
        let ppn = Ppn(block * self.layout.units_per_block + fr.next);
        if fr.is_between_units(self.layout.units_per_pu) {
            fr.first_seq = self.seq.min(self.redo_seq);
        }
        fr.next += 1;
        fr.n_buffered += u32::from(buffered);
        let full = fr.next == fr.pu_end;
        if self.media.is_some() {
            self.stage(ppn, lpn, payload, false);
        }
        self.map.set(lpn, ppn);
        self.blocks.add_valid(block, 1);
        self.dies[die].n_valid += 1;
        self.n_valid += 1;
        if full {
            self.finish_program_unit(f, die, ready_ns, flash);
        }
        full
    }

    /// Fills the open program unit of `f` with padding and programs it; again, should
    /// the program fail.
    pub(crate) fn pad<F: Flash>(&mut self, f: usize, ready_ns: u64, flash: &mut F) {
        while self.is_part_filled(f) {
            self.pad_once(f, ready_ns, flash);
        }
    }

    /// [`Ftl::pad`] for the host, which pays for collection as if it had filled the
    /// program unit: a host that flushes all the time would else run the die out of free
    /// blocks, and whole victims would be collected at once.
    pub(crate) fn pad_paced<F: Flash>(&mut self, f: usize, ready_ns: u64, flash: &mut F) {
        if self.is_part_filled(f) {
            let die = self.die_of_block(self.frontiers[f].block);
            self.pad(f, ready_ns, flash);
            self.pace_gc(die, ready_ns, flash);
        }
    }

    /// Something is in the open program unit of `f`.
    pub(crate) fn is_part_filled(&self, f: usize) -> bool {
        let fr = &self.frontiers[f];
        fr.is_open() && !fr.is_between_units(self.layout.units_per_pu)
    }

    pub(crate) fn pad_place(&mut self, block: u32, offset: u32, loose: bool) {
        self.map.set_pad(Ppn(block * self.layout.units_per_block + offset));
        if let Some(media) = &mut self.media {
            media.stage_pad(block, offset, loose);
        }
        self.counters.bytes_padding += u64::from(self.cfg.geo.unit_bytes);
    }

    fn pad_once<F: Flash>(&mut self, f: usize, ready_ns: u64, flash: &mut F) {
        let fr = self.frontiers[f];
        if self.is_loose(f) {
            self.pad_due(f);
        } else {
            (fr.next..fr.pu_end).for_each(|offset| self.pad_place(fr.block, offset, false));
            self.frontiers[f].next = fr.pu_end;
        }
        let die = self.die_of_block(fr.block);
        self.finish_program_unit(f, die, ready_ns, flash);
        if !self.is_gc_frontier(f) {
            // The next unit goes to the next die, as after a full program unit.
            self.pass_cursor(f / self.dies.len(), die);
        }
    }

    /// The open program unit of `f` is full: sends it to the flash.
    ///
    /// Not inlined: it happens once for many appends, which stay short without it.
    #[inline(never)]
    pub(crate) fn finish_program_unit<F: Flash>(
        &mut self,
        f: usize,
        die: usize,
        ready_ns: u64,
        flash: &mut F,
    ) {
        let fr = self.frontiers[f];
        let start = fr.pu_end - self.layout.units_per_pu;
        let is_loose = self.is_loose(f);
        if is_loose {
            self.pass_due(f, fr.pu_end);
            if let Some(media) = &mut self.media {
                media.settle(fr.block, start, self.layout.units_per_pu);
            }
        }
        if self.cfg.faults.program_fail_ppm > 0 && self.program_fails(die, fr.block, start) {
            return self.fail_program(f, die, start, ready_ns, flash);
        }
        if !self.cfg.power_protected {
            self.dies[die].pending_first_seq.push_back(fr.first_seq);
        }
        // Units of program units begun after this one stay in the buffer.
        let n_stay = if is_loose { fr.n_buffered.min(fr.next - fr.pu_end) } else { 0 };
        self.frontiers[f].n_buffered = n_stay;
        if fr.pu_end == self.layout.units_per_block {
            self.frontiers[f] = Frontier::CLOSED;
            self.close(fr.block, die, ready_ns);
        } else {
            self.frontiers[f].pu_end += self.layout.units_per_pu;
        }
        self.send_program(die, fr.block, start, fr.n_buffered - n_stay, ready_ns, flash);
    }

    /// Gives frontier `f` a blank block.
    pub(crate) fn open<F: Flash>(&mut self, f: usize, die: usize, ready_ns: u64, flash: &mut F) {
        if !self.is_gc_frontier(f) {
            self.reclaim_until(die, self.cfg.blocks_before_open(), ready_ns, flash);
        }
        self.open_blank(f, die);
    }

    /// Gives frontier `f` a blank block, of which the die must have one.
    pub(crate) fn open_blank(&mut self, f: usize, die: usize) {
        let block = self.take_free(f, die);
        self.blocks.set_state(block, BlockState::Open);
        self.blocks.frontier[block as usize] = f as u32;
        let pu_end = self.layout.units_per_pu;
        self.frontiers[f] = Frontier { block, pu_end, ..Frontier::CLOSED };
        if self.is_loose(f) {
            self.reset_lane(f);
        }
    }

    pub(crate) fn close(&mut self, block: u32, die: usize, now_ns: u64) {
        self.blocks.set_state(block, BlockState::Closed);
        self.scrub.on_close(block, now_ns);
        if self.cfg.victim == VictimPolicy::CostBenefit {
            // Its age counts from here, as its place in the list does.
            self.blocks.last_change[block as usize] = self.seq;
        }
        self.victims.insert(die, block, self.blocks.valid(block));
        if self.cfg.victim == VictimPolicy::Fifo {
            self.dies[die].closed_order.push_back(block);
        }
    }

    /// The unit at `ppn` is superseded by the next append or trim.
    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn, block: u32, die: usize) {
        self.map.invalidate(ppn);
        if self.blocks.is_closed(block) {
            self.victims.decrement(die, block, self.blocks.valid(block));
        }
        self.blocks.take_valid(block, 1);
        if self.tracks_changes {
            self.blocks.last_change[block as usize] = self.seq + 1;
        }
        self.dies[die].n_valid -= 1;
        self.n_valid -= 1;
    }

    #[cold]
    pub(crate) fn stage(&mut self, ppn: Ppn, lpn: u32, payload: Payload<'_>, loose: bool) {
        let (block, offset) = self.block_div.div_rem(ppn.0);
        let n_logical = self.cfg.n_logical;
        match payload {
            Payload::Host(data) => {
                let media = self.media.as_mut().expect("only called with media");
                media.stage(block, offset, lpn, self.seq, Body::of_host(data), loose);
            }
            Payload::Move(from) => {
                let (from_block, from_offset) = self.block_div.div_rem(from.0);
                let on_media = self.blocks.is_programmed(from_block, from_offset);
                let media = self.media.as_mut().expect("only called with media");
                let (seq, body) = media.body(from_block, from_offset, on_media);
                // A record speaks of the moment it was written, wherever it moves.
                let seq = if lpn < n_logical { self.seq } else { seq };
                media.stage(block, offset, lpn, seq, body, loose);
            }
            Payload::Meta => {
                let record = self.trim_record(lpn - n_logical);
                let media = self.media.as_mut().expect("only called with media");
                media.stage(block, offset, lpn, self.seq, Body::Record(record), loose);
            }
        }
    }
}
