//! The invariants, checked from scratch. Slow (it looks at everything): for tests,
//! and after loading a drive from a file.

use flashwise_nand::{DieId, Nand, Ppn};

use crate::Ftl;
use crate::blocks::BlockState;
use crate::victims::Victims;

impl Ftl {
    /// Checks every invariant of the FTL, and against `nand` that the programs
    /// still due are queued there. Returns the first violation.
    pub fn self_check(&self, nand: &Nand) -> Result<(), String> {
        self.check_map()?;
        self.check_blocks(nand)?;
        self.check_dies()?;
        self.check_lanes()?;
        self.check_bounds(nand)?;
        self.check_bytes(nand)
    }

    fn check_map(&self) -> Result<(), String> {
        let mut n_mapped = 0;
        for lpn in 0..self.map.n_logical() {
            let Some(ppn) = self.map.get(lpn) else {
                continue;
            };
            n_mapped += 1;
            if self.map.lpn_at(ppn) != lpn || !self.map.is_valid(ppn) {
                return Err(format!(
                    "page {lpn} maps to {ppn:?}, which holds {}",
                    self.map.lpn_at(ppn)
                ));
            }
        }
        if n_mapped != self.n_valid || self.map.n_valid() != self.n_valid {
            let bits = self.map.n_valid();
            return Err(format!("{n_mapped} mapped, {bits} valid bits, {} counted", self.n_valid));
        }
        Ok(())
    }

    fn check_blocks(&self, nand: &Nand) -> Result<(), String> {
        let units_per_block = self.layout.units_per_block;
        for block in 0..self.cfg.geo.n_blocks() {
            let n = self.map.count_valid(Ppn(block * units_per_block), units_per_block);
            if n != self.blocks.valid(block) {
                return Err(format!(
                    "block {block} holds {n} valid, counts {}",
                    self.blocks.valid(block)
                ));
            }
            let state = self.blocks.state(block);
            let is_empty =
                matches!(state, BlockState::Free | BlockState::Waiting | BlockState::Bad);
            if n > 0 && is_empty {
                return Err(format!("block {block} is {state:?} and holds {n} valid units"));
            }
            if let BlockState::Open = state {
                self.check_open(block, nand)?;
            }
        }
        Ok(())
    }

    /// Programs sent for an open block are on the media or pending.
    fn check_open(&self, block: u32, nand: &Nand) -> Result<(), String> {
        let f = &self.frontiers[self.blocks.frontier[block as usize] as usize];
        if f.block != block {
            return Err(format!("block {block} is open but its frontier has block {}", f.block));
        }
        if self.blocks.has_pending_erase(block) {
            return Ok(());
        }
        let die = DieId(self.die_of_block(block) as u16);
        let id = flashwise_nand::BlockId(block);
        let pending = nand.programs_pending(die, id) as u32 * self.layout.units_per_pu;
        let sent = f.pu_end - self.layout.units_per_pu;
        let programmed = self.blocks.programmed(block);
        if programmed + pending != sent {
            return Err(format!(
                "block {block}: {sent} sent, {programmed} programmed, {pending} due"
            ));
        }
        Ok(())
    }

    fn check_dies(&self) -> Result<(), String> {
        let per_die = self.cfg.geo.n_blocks_per_plane;
        for (die, d) in self.dies.iter().enumerate() {
            let range = die as u32 * per_die..(die as u32 + 1) * per_die;
            let count =
                |s: BlockState| range.clone().filter(|&b| self.blocks.state(b) == s).count();
            let valid: u32 = range.clone().map(|b| self.blocks.valid(b)).sum();
            if valid != d.n_valid {
                return Err(format!("die {die} holds {valid} valid, counts {}", d.n_valid));
            }
            if valid > d.limit && !self.read_only {
                return Err(format!("die {die} holds {valid} valid units of {}", d.limit));
            }
            let n_bad = range.clone().filter(|&b| self.is_bad(b)).count() as u32;
            let good = (per_die - self.cfg.reserve_blocks()).saturating_sub(n_bad);
            if good * self.layout.units_per_block != d.limit {
                return Err(format!("die {die}: {n_bad} blocks are bad, limit {}", d.limit));
            }
            let lost = range.clone().find(|&b| {
                let state = self.blocks.state(b);
                let retired = state == BlockState::Bad;
                (retired || state == BlockState::Free) && retired != self.is_bad(b)
            });
            if let Some(b) = lost {
                return Err(format!("block {b} is {:?}", self.blocks.state(b)));
            }
            let mut failing = range.clone();
            let failing = failing
                .find(|b| self.blocks.state(*b) == BlockState::Failing && !d.due.contains(b));
            if let Some(b) = failing {
                return Err(format!("block {b} is failing and nobody empties it"));
            }
            let listed = [
                (BlockState::Free, d.free.len()),
                (BlockState::Waiting, d.waiting.len()),
                (BlockState::Victim, usize::from(d.job.is_some())),
            ];
            if let Some((s, n)) = listed.into_iter().find(|&(s, n)| count(s) != n) {
                return Err(format!("die {die}: {} blocks are {s:?}, {n} listed", count(s)));
            }
            let closed = range.filter(|&b| self.blocks.state(b) == BlockState::Closed);
            let closed: Vec<_> = closed.map(|b| (b, self.blocks.valid(b))).collect();
            self.check_index(die, &closed)?;
        }
        Ok(())
    }

    /// What the yield rule looks at is what the flash holds.
    fn check_bounds(&self, nand: &Nand) -> Result<(), String> {
        let per_die = self.cfg.geo.n_blocks_per_plane as usize;
        for (die, d) in self.dies.iter().enumerate() {
            let of_die = &self.blocks.n_erases[die * per_die..(die + 1) * per_die];
            let n_erases: u64 = of_die.iter().map(|&n| u64::from(n)).sum();
            if n_erases != d.n_erases {
                return Err(format!("die {die}: {n_erases} erases, counts {}", d.n_erases));
            }
            let n_queued = nand.n_buffered_of(DieId(die as u16));
            if n_queued != d.n_queued {
                return Err(format!("die {die}: {n_queued} units queued, counts {}", d.n_queued));
            }
        }
        let n_erases: u64 = self.dies.iter().map(|d| d.n_erases).sum();
        if n_erases != self.n_erases {
            return Err(format!("{n_erases} erases, counts {}", self.n_erases));
        }
        Ok(())
    }

    fn check_index(&self, die: usize, closed: &[(u32, u32)]) -> Result<(), String> {
        if closed.iter().any(|&(b, _)| !self.blocks.is_closed(b)) {
            return Err(format!("die {die}: a closed block does not count as one"));
        }
        match self.victims.clone() {
            Victims::Groups(mut g) => {
                let found = g.emptiest(die, &self.blocks);
                let least = closed.iter().copied().min_by_key(|&(b, valid)| (valid, b));
                if found.map(|f| f.1) != least.map(|l| l.1) {
                    return Err(format!("die {die}: emptiest is {found:?}, not {least:?}"));
                }
            }
            Victims::Lists(lists) => {
                let mut indexed = lists.blocks(die);
                indexed.sort_unstable();
                if indexed != closed {
                    return Err(format!("die {die}: lists {indexed:?}, closed {closed:?}"));
                }
            }
            Victims::Order => {
                let mut order: Vec<u32> = self.dies[die].closed_order.iter().copied().collect();
                order.sort_unstable();
                if !order.iter().eq(closed.iter().map(|(b, _)| b)) {
                    return Err(format!("die {die}: order {order:?}, closed {closed:?}"));
                }
            }
        }
        Ok(())
    }

    /// Bytes programmed, queued and waiting in open program units add up to the
    /// places taken.
    fn check_bytes(&self, nand: &Nand) -> Result<(), String> {
        let n_pu = self.layout.units_per_pu;
        let open: u32 =
            self.frontiers.iter().filter(|f| f.is_open()).map(|f| f.next - (f.pu_end - n_pu)).sum();
        let unit_bytes = u64::from(self.cfg.geo.unit_bytes);
        let taken = self.counters.bytes_programmed();
        let sent = nand.sent_program_bytes();
        if sent + u64::from(open) * unit_bytes != taken {
            return Err(format!("{taken} bytes placed, {sent} sent and {open} units open"));
        }
        Ok(())
    }
}
