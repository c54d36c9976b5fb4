//! What must be on the media before something else may happen.
//!
//! Without power protection, data in the buffer is lost with power. Erasing the
//! last older copy of such data would lose what the host had made durable before,
//! so a block waits until everything that took its units away is programmed: later
//! copies by collection, later writes of the host, records of trims. It waits for
//! free where it can; where a die needs the block, open program units are padded.
//!
//! Trims leave no data behind, so they are recorded: one bit per logical unit, in
//! units of their own that live beyond the host's addresses and are collected like
//! data. A record says which units of its range were unmapped when it was written;
//! data written later overrules it.

use std::collections::BTreeSet;

use flashwise_nand::{DieId, Flash};

use crate::write::Payload;
use crate::{Ftl, Lpn};

/// Trims not yet recorded on the media.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrimLog {
    /// Records that are out of date.
    pub(crate) dirty: BTreeSet<u32>,
    /// The oldest trim they lack.
    pub(crate) oldest_seq: u64,
    /// When the records sent so far are programmed \[ns\]. They may have been sent
    /// long before the flush that has to wait for them.
    safe_ns: u64,
}

impl Ftl {
    /// Unmaps `n` units from `first`. Returns how many were mapped.
    pub fn trim(&mut self, first: Lpn, n: u32) -> u64 {
        let mut n_trimmed = 0;
        for lpn in first.0..first.0 + n {
            let Some(ppn) = self.map.get(lpn) else {
                continue;
            };
            let block = self.block_div.div(ppn.0);
            self.invalidate(ppn, block, self.die_of_block(block));
            self.map.unmap(lpn);
            n_trimmed += 1;
        }
        if n_trimmed > 0 {
            self.seq += 1;
            self.log_trim(first.0, n);
        }
        self.counters.units_trimmed += n_trimmed;
        n_trimmed
    }

    fn log_trim(&mut self, first: u32, n: u32) {
        if self.trims.dirty.is_empty() {
            self.trims.oldest_seq = self.seq;
        }
        let units_per_record = self.cfg.geo.unit_bytes * 8;
        self.trims.dirty.extend(first / units_per_record..=(first + n - 1) / units_per_record);
    }

    /// Sends everything the host wrote or trimmed on its way to the media; returns
    /// when records of trims are safe \[ns\] (programs of host data are for the
    /// caller to await). Nothing to do with power protection.
    pub fn flush<F: Flash>(&mut self, ready_ns: u64, flash: &mut F) -> u64 {
        if self.cfg.power_protected {
            return ready_ns;
        }
        for f in 0..self.n_host_frontiers() {
            self.pad_paced(f, ready_ns, flash);
        }
        self.make_room_for_records(ready_ns, flash);
        self.record_trims(ready_ns, flash).max(self.trims.safe_ns)
    }

    /// Records take blocks without collecting, as collection itself has to write them
    /// before it may erase. A host that only trims and flushes would use up the blocks
    /// collection needs, so what it asks for collects first, like its writes.
    fn make_room_for_records<F: Flash>(&mut self, ready_ns: u64, flash: &mut F) {
        let dies: BTreeSet<usize> =
            self.trims.dirty.iter().map(|&r| r as usize % self.dies.len()).collect();
        for die in dies {
            let n_records = (self.trims.dirty.len() / self.dies.len() + 1) as u32;
            let fr = &self.frontiers[self.gc_frontier(0, die)];
            let n_left = if fr.is_open() { self.layout.units_per_block - fr.next } else { 0 };
            if n_left < n_records {
                self.reclaim_until(die, self.cfg.blocks_before_open(), ready_ns, flash);
            }
        }
    }

    fn pad_host<F: Flash>(&mut self, ready_ns: u64, flash: &mut F) {
        for f in 0..self.n_host_frontiers() {
            self.pad(f, ready_ns, flash);
        }
    }

    /// The capacitors' work at power failure: everything buffered reaches the
    /// media. The caller drains the flash first.
    pub(crate) fn dump<F: Flash>(&mut self, flash: &mut F) {
        self.record_trims(0, flash);
        for f in 0..self.frontiers.len() {
            self.pad(f, 0, flash);
        }
    }

    /// Writes the records that are out of date and programs them.
    ///
    /// A record calls a unit mapped whose newest contents may still be buffered.
    /// Were they lost, contents from before a trim would come back, so everything
    /// written so far is programmed first.
    fn record_trims<F: Flash>(&mut self, ready_ns: u64, flash: &mut F) -> u64 {
        if self.trims.dirty.is_empty() {
            return ready_ns;
        }
        let mut safe_ns = ready_ns;
        if !self.cfg.power_protected {
            self.pad_host(ready_ns, flash);
            for die in 0..self.dies.len() {
                safe_ns = safe_ns.max(flash.settle(DieId(die as u16)));
            }
        }
        let ready_ns = safe_ns;
        let mut used = BTreeSet::new();
        for record in std::mem::take(&mut self.trims.dirty) {
            let lpn = self.cfg.n_logical + record;
            if let Some(old) = self.map.get(lpn) {
                let block = self.block_div.div(old.0);
                self.invalidate(old, block, self.die_of_block(block));
            }
            // Records share the block for fragments.
            let die = self.die_for_record(record);
            let f = self.gc_target(die, false);
            self.append(f, die, lpn, Payload::Meta, false, ready_ns, flash);
            self.counters.bytes_meta += u64::from(self.cfg.geo.unit_bytes);
            used.insert((die, f));
        }
        for (die, f) in used {
            self.pad(f, ready_ns, flash);
            safe_ns = safe_ns.max(flash.settle(DieId(die as u16)));
        }
        self.trims.safe_ns = self.trims.safe_ns.max(safe_ns);
        safe_ns
    }

    fn die_for_record(&self, record: u32) -> usize {
        let n = self.dies.len();
        let turn = (0..n).map(|i| (record as usize + i) % n);
        let mut takes = turn.filter(|&d| self.has_gc_target(d));
        // A drive that has just become read-only may have no die within its limit.
        let within = takes.clone().find(|&d| self.dies[d].n_valid < self.dies[d].limit);
        within.or_else(|| takes.next()).expect("a die has room for a record")
    }

    /// One bit for every logical unit of record `index` that is unmapped.
    pub(crate) fn trim_record(&self, index: u32) -> Box<[u64]> {
        let per_record = self.cfg.geo.unit_bytes * 8;
        let first = index * per_record;
        let mut bits = vec![0u64; per_record as usize / 64];
        for (i, lpn) in
            (first..self.cfg.n_logical.min(first.saturating_add(per_record))).enumerate()
        {
            if self.map.get(lpn).is_none() {
                bits[i / 64] |= 1 << (i % 64);
            }
        }
        bits.into()
    }

    /// Erases blocks that waited and need not any more.
    pub(crate) fn release_waiting<F: Flash>(&mut self, die: usize, ready_ns: u64, flash: &mut F) {
        while let Some(&block) = self.dies[die].waiting.front() {
            if !self.is_superseded_safely(die, block) {
                return;
            }
            self.dies[die].waiting.pop_front();
            self.erase(die, block, ready_ns, flash);
        }
    }

    /// Makes the oldest waiting block safe to erase, and erases it.
    pub(crate) fn force_waiting<F: Flash>(&mut self, die: usize, ready_ns: u64, flash: &mut F) {
        let block = self.dies[die].waiting.pop_front().expect("called with a waiting block");
        let need = self.blocks.last_change[block as usize];
        let mut safe_ns = ready_ns;
        if !self.trims.dirty.is_empty() && self.trims.oldest_seq <= need {
            safe_ns = self.record_trims(ready_ns, flash);
        }
        for f in 0..self.frontiers.len() {
            if self.is_filling_since(f, need) {
                self.pad(f, ready_ns, flash);
            }
        }
        for other in 0..self.dies.len() {
            if other != die && self.has_pending_since(other, need) {
                safe_ns = safe_ns.max(flash.settle(DieId(other as u16)));
            }
        }
        self.erase(die, block, safe_ns, flash);
    }

    /// Everything that took units of `block` away is programmed, or will be on the
    /// same die before the erase.
    fn is_superseded_safely(&self, die: usize, block: u32) -> bool {
        let need = self.blocks.last_change[block as usize];
        let trimmed = !self.trims.dirty.is_empty() && self.trims.oldest_seq <= need;
        !trimmed
            && !(0..self.frontiers.len()).any(|f| self.is_filling_since(f, need))
            && !(0..self.dies.len()).any(|d| d != die && self.has_pending_since(d, need))
    }

    /// The open program unit of `f` holds an append up to `seq`.
    fn is_filling_since(&self, f: usize, seq: u64) -> bool {
        self.is_part_filled(f) && self.frontiers[f].first_seq <= seq
    }

    fn has_pending_since(&self, die: usize, seq: u64) -> bool {
        self.dies[die].pending_first_seq.iter().any(|&first| first <= seq)
    }
}
