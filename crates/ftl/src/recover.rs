//! Power failure, and what can be read back from the media alone.
//!
//! Every programmed place is scanned; of the places that pass their checksum the
//! newest of each logical page counts, unless a newer record says that the page was
//! trimmed. Blocks that end up empty are erased; blocks that were not full become
//! open blocks again, as far as there are frontiers for them. Of the bad blocks there
//! is a table; those that hold something that was not yet safe elsewhere are emptied
//! again.

use flashwise_nand::{Done, DoneKind, Instant, Nand, Ppn};

use crate::blocks::BlockState;
use crate::media::{Body, Media, StoreError};
use crate::write::Frontier;
use crate::{Ftl, FtlConfig};

impl Ftl {
    /// Power fails. `torn` are the operations under way; operations that ended
    /// were reported before. With power protection the caller drained the flash
    /// and nothing is torn: what is buffered is saved now. Returns the media, or
    /// `None` where none is kept.
    pub fn power_cut(mut self, torn: &[Done], nand: &mut Nand) -> Option<(FtlConfig, Media)> {
        if self.cfg.power_protected {
            assert!(torn.is_empty(), "protected devices finish what they began");
            self.dump(&mut Instant(nand));
        }
        let n_pu = self.layout.units_per_pu;
        let mut media = self.media?;
        for done in torn {
            match done.kind {
                DoneKind::Program { .. } => media.tear_program(done.block.0, n_pu),
                DoneKind::Erase => media.tear_erase(done.block.0),
            }
        }
        media.lose_staged();
        media.bad_blocks = self.bad_blocks;
        Some((self.cfg, media))
    }

    /// Builds the FTL from what is on the media, and nothing else.
    pub fn recover(cfg: FtlConfig, media: Media, nand: &mut Nand) -> Result<Self, StoreError> {
        let layout = cfg.layout();
        let n_blocks = cfg.geo.n_blocks();
        let shape = (n_blocks as usize, layout.units_per_block, cfg.geo.unit_bytes);
        assert_eq!(media.shape(), shape, "the media belongs to this configuration");
        let n_physical = n_blocks * layout.units_per_block;
        let mut ftl = Self::with_media(cfg, layout, n_physical, Some(media));
        let newest = ftl.scan()?;
        ftl.apply(&newest);
        ftl.set_erases(nand.wear());
        let media = ftl.media.as_mut().expect("recovery has media");
        let bad = std::mem::take(&mut media.bad_blocks);
        ftl.restore_bad(&bad);
        ftl.rebuild_blocks(nand);
        ftl.reset_due();
        ftl.reload_lanes();
        Ok(ftl)
    }

    /// Newest (sequence, place) of every page of data and every record.
    fn scan(&mut self) -> Result<Vec<(u64, u32)>, StoreError> {
        let media = self.media.as_ref().expect("recovery has media");
        let mut newest = vec![(0u64, 0u32); self.map.n_logical() as usize];
        let mut last_seq = 0;
        let mut records = vec![];
        for (block, &n) in media.programmed().iter().enumerate() {
            for offset in 0..n {
                let Some((oob, body)) = media.scan(block as u32, offset)? else {
                    continue;
                };
                let Some(best) = newest.get_mut(oob.lpn as usize) else {
                    continue;
                };
                last_seq = last_seq.max(oob.seq);
                if oob.seq > best.0 {
                    *best = (oob.seq, block as u32 * self.layout.units_per_block + offset);
                    if let Body::Record(bits) = body {
                        records.push((oob.lpn - self.cfg.n_logical, oob.seq, bits));
                    }
                }
            }
        }
        self.seq = last_seq;
        let per_record = self.cfg.geo.unit_bytes * 8;
        for (index, seq, bits) in records {
            if newest[(self.cfg.n_logical + index) as usize].0 != seq {
                continue;
            }
            let first = index * per_record;
            for lpn in first..self.cfg.n_logical.min(first.saturating_add(per_record)) {
                let i = (lpn - first) as usize;
                let trimmed = bits[i / 64] >> (i % 64) & 1 == 1;
                if trimmed && newest[lpn as usize].0 < seq {
                    newest[lpn as usize] = (0, 0);
                }
            }
        }
        Ok(newest)
    }

    fn apply(&mut self, newest: &[(u64, u32)]) {
        for (lpn, &(seq, ppn)) in newest.iter().enumerate() {
            if seq == 0 {
                continue;
            }
            let block = self.block_div.div(ppn);
            self.map.set(lpn as u32, Ppn(ppn));
            self.blocks.add_valid(block, 1);
            let die = self.die_of_block(block);
            self.dies[die].n_valid += 1;
            self.n_valid += 1;
        }
    }

    fn rebuild_blocks(&mut self, nand: &mut Nand) {
        let media = self.media.as_ref().expect("recovery has media");
        for (block, &n) in media.programmed().iter().enumerate() {
            self.blocks.set_programmed(block as u32, n);
        }
        let per_die = self.cfg.geo.n_blocks_per_plane;
        for die in 0..self.dies.len() {
            self.dies[die].free.clear();
            let mut partial = vec![];
            for block in die as u32 * per_die..(die as u32 + 1) * per_die {
                let n = self.blocks.programmed(block);
                if self.is_bad(block) {
                    // What a retired block holds may still be the newest copy.
                    if self.blocks.valid(block) == 0 {
                        self.blocks.set_state(block, BlockState::Bad);
                    } else {
                        self.blocks.set_state(block, BlockState::Failing);
                    }
                } else if n == 0 {
                    self.dies[die].free.push_back(block);
                } else if self.blocks.valid(block) == 0 {
                    self.erase(die, block, 0, &mut Instant(nand));
                } else if n < self.layout.units_per_block
                    && n.is_multiple_of(self.layout.units_per_pu)
                {
                    partial.push(block);
                } else {
                    self.close(block, die, 0);
                }
            }
            partial.sort_by_key(|&b| (self.blocks.programmed(b), b));
            self.reopen(die, &partial);
        }
    }

    /// Makes partly programmed blocks frontiers again, the emptiest for collection.
    fn reopen(&mut self, die: usize, partial: &[u32]) {
        let gc = [self.gc_frontier(0, die), self.gc_frontier(1, die)];
        let host = (0..self.cfg.n_handles).map(|h| self.host_frontier(h, die));
        let mut frontiers = gc.into_iter().chain(host).collect::<Vec<_>>().into_iter();
        for &block in partial {
            let Some(f) = frontiers.next() else {
                self.close(block, die, 0);
                continue;
            };
            let next = self.blocks.programmed(block);
            let pu_end = next + self.layout.units_per_pu;
            self.blocks.set_state(block, BlockState::Open);
            self.blocks.frontier[block as usize] = f as u32;
            self.frontiers[f] = Frontier { block, next, pu_end, ..Frontier::CLOSED };
        }
    }
}
