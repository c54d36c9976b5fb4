//! Saving and loading an FTL that is at rest: nothing queued, no program unit half
//! filled. A loaded FTL goes on exactly as the saved one would have.

use std::collections::{BTreeMap, VecDeque};

use flashwise_nand::{Flash, Ppn};

use crate::blocks::BlockState;
use crate::codec::{CodecError, Reader, Writer};
use crate::health::BadReason;
use crate::map::Map;
use crate::media::{Contents, Media, Oob};
use crate::victims::Victims;
use crate::write::Frontier;
use crate::{Ftl, FtlConfig};

const STATES: [BlockState; 5] =
    [BlockState::Free, BlockState::Open, BlockState::Closed, BlockState::Failing, BlockState::Bad];

impl Ftl {
    /// Brings the FTL to rest: pads open program units, gives a half collected
    /// victim back and erases what waited. Ages of data count from `now_ns` then. The
    /// caller drains the flash before and after.
    pub fn quiesce<F: Flash>(&mut self, now_ns: u64, flash: &mut F) {
        self.dump(flash);
        for die in 0..self.dies.len() {
            match self.dies[die].job.take() {
                Some(job) if self.is_bad(job.block) => {
                    self.blocks.set_state(job.block, BlockState::Failing);
                }
                Some(job) => self.close(job.block, die, now_ns),
                None => {}
            }
            while !self.dies[die].waiting.is_empty() {
                self.force_waiting(die, 0, flash);
            }
        }
        self.reset_due();
        self.scrub.restart(now_ns);
        self.victims.rest();
    }

    /// Writes the state as sections. Call [`Ftl::quiesce`] first.
    pub fn save(&self, w: &mut Writer<'_>) -> Result<(), CodecError> {
        let (l2p, p2l, valid) = self.map.tables();
        w.words(b"L2P ", l2p)?;
        w.words(b"P2L ", p2l)?;
        w.words(b"VALD", valid)?;
        let blocks = 0..self.cfg.geo.n_blocks();
        let state: Vec<u8> = blocks.clone().map(|b| self.blocks.state(b) as u8).collect();
        w.words(b"BLKS", &state)?;
        let programmed: Vec<u32> = blocks.clone().map(|b| self.blocks.programmed(b)).collect();
        w.words(b"PROG", &programmed)?;
        w.words(b"CHNG", &self.blocks.last_change)?;
        let frontiers: Vec<u32> = self.frontiers.iter().flat_map(|f| [f.block, f.next]).collect();
        w.words(b"FRNT", &frontiers)?;
        let (mut free, mut order, mut closed): (Vec<u32>, Vec<u32>, Vec<u32>) = Default::default();
        for (die, d) in self.dies.iter().enumerate() {
            free.extend(&d.free);
            order.extend(&d.closed_order);
            if let Victims::Lists(lists) = &self.victims {
                closed.extend(lists.blocks(die).iter().map(|b| b.0));
            }
        }
        // Where no order is kept, the order of the blocks will do.
        if closed.is_empty() {
            closed.extend(blocks.filter(|&b| self.blocks.state(b) == BlockState::Closed));
        }
        w.words(b"FREE", &free)?;
        w.words(b"CLOS", &closed)?;
        w.words(b"FIFO", &order)?;
        w.words(b"CURS", &self.cursors)?;
        w.words(b"SEQN", &[self.seq])?;
        let bad: Vec<u32> = self.bad_blocks.iter().flat_map(|(&b, &r)| [b, r as u32]).collect();
        w.words(b"BADB", &bad)?;
        w.words(b"READ", &self.scrub.n_reads)?;
        match &self.media {
            Some(media) => save_media(media, w),
            None => Ok(()),
        }
    }

    /// Reads back what [`Ftl::save`] wrote for the same configuration. Contents go
    /// to `contents`.
    pub fn load(
        cfg: FtlConfig,
        contents: Contents,
        r: &mut Reader<'_>,
    ) -> Result<Self, CodecError> {
        let inconsistent = |what: String| CodecError::Inconsistent { what };
        let mut ftl = Self::new(cfg, contents).map_err(|e| inconsistent(e.to_string()))?;
        let n_blocks = ftl.cfg.geo.n_blocks() as usize;
        let n_physical = n_blocks * ftl.layout.units_per_block as usize;
        let l2p = r.words(b"L2P ", ftl.map.n_logical() as usize)?;
        let p2l = r.words(b"P2L ", n_physical)?;
        let valid = r.words(b"VALD", n_physical.div_ceil(64))?;
        let named = l2p.iter().filter(|&&v: &&u32| v != 0);
        if let Some(v) = named.map(|v| !v).find(|&ppn| ppn as usize >= n_physical) {
            return Err(inconsistent(format!("a page maps to physical unit {v} of {n_physical}")));
        }
        ftl.map = Map::from_tables(l2p, p2l, valid);
        let states: Vec<u8> = r.words(b"BLKS", n_blocks)?;
        for (block, s) in states.into_iter().enumerate() {
            let state = STATES.iter().find(|&&state| state as u8 == s);
            let state = state.ok_or_else(|| inconsistent(format!("block state {s}")))?;
            ftl.blocks.set_state(block as u32, *state);
        }
        let programmed: Vec<u32> = r.words(b"PROG", n_blocks)?;
        if programmed.iter().any(|&n| n > ftl.layout.units_per_block) {
            return Err(inconsistent("a block is programmed beyond its end".to_owned()));
        }
        for (block, &n) in programmed.iter().enumerate() {
            ftl.blocks.set_programmed(block as u32, n);
        }
        ftl.blocks.last_change = r.words(b"CHNG", n_blocks)?;
        ftl.load_lists(r)?;
        ftl.seq = r.words(b"SEQN", 1)?[0];
        ftl.load_bad(r)?;
        ftl.reload_lanes();
        ftl.scrub.n_reads = r.words(b"READ", ftl.scrub.n_reads.len())?;
        if let Some(media) = &mut ftl.media {
            load_media(media, programmed, r)?;
        }
        Ok(ftl)
    }

    fn load_bad(&mut self, r: &mut Reader<'_>) -> Result<(), CodecError> {
        let inconsistent = |what: String| CodecError::Inconsistent { what };
        let n_blocks = self.cfg.geo.n_blocks();
        let entries: Vec<u32> = r.section(b"BADB", u64::from(n_blocks) * 8, false)?;
        let mut bad = BTreeMap::new();
        for entry in entries.chunks_exact(2) {
            let &[block, reason] = entry else { unreachable!("chunks of two") };
            let reason = BadReason::ALL.into_iter().find(|&r| r as u32 == reason);
            match reason {
                Some(reason) if block < n_blocks => {
                    bad.insert(block, reason);
                }
                _ => return Err(inconsistent(format!("block {block} in the bad block table"))),
            }
        }
        // A blank drive has its first bad blocks already; the table says it all.
        self.reset_bad();
        self.restore_bad(&bad);
        self.reset_due();
        Ok(())
    }

    fn load_lists(&mut self, r: &mut Reader<'_>) -> Result<(), CodecError> {
        let inconsistent = |what: &str| CodecError::Inconsistent { what: what.to_owned() };
        let n_blocks = self.cfg.geo.n_blocks();
        let units_per_block = self.layout.units_per_block;
        for block in 0..n_blocks {
            let n = self.map.count_valid(Ppn(block * units_per_block), units_per_block);
            self.blocks.add_valid(block, n);
            let die = self.die_of_block(block);
            self.dies[die].n_valid += n;
            self.n_valid += u64::from(n);
        }
        let frontiers: Vec<u32> = r.words(b"FRNT", self.frontiers.len() * 2)?;
        for (f, entry) in frontiers.chunks_exact(2).enumerate() {
            let &[block, next] = entry else { unreachable!("chunks of two") };
            if block == u32::MAX {
                continue;
            }
            if block >= n_blocks || next >= units_per_block {
                return Err(inconsistent("an open block lies outside the device"));
            }
            let pu_end = next + self.layout.units_per_pu;
            self.frontiers[f] = Frontier { block, next, pu_end, ..Frontier::CLOSED };
            self.blocks.frontier[block as usize] = f as u32;
        }
        self.dies.iter_mut().for_each(|d| d.free.clear());
        let limit = u64::from(n_blocks) * 4;
        let mut list = |tag: &[u8; 4]| -> Result<Vec<u32>, CodecError> {
            let blocks: Vec<u32> = r.section(tag, limit, false)?;
            let outside = blocks.iter().any(|&b| b >= n_blocks);
            if outside {
                Err(inconsistent("a listed block lies outside the device"))
            } else {
                Ok(blocks)
            }
        };
        for block in list(b"FREE")? {
            let die = self.die_of_block(block);
            self.dies[die].free.push_back(block);
        }
        for block in list(b"CLOS")? {
            let die = self.die_of_block(block);
            self.victims.insert(die, block, self.blocks.valid(block));
        }
        let order: VecDeque<u32> = list(b"FIFO")?.into();
        for block in order {
            let die = self.die_of_block(block);
            self.dies[die].closed_order.push_back(block);
        }
        let cursors: Vec<u16> = r.words(b"CURS", self.cursors.len())?;
        if cursors.iter().any(|&c| usize::from(c) >= self.dies.len()) {
            return Err(inconsistent("a cursor names a die the device lacks"));
        }
        self.cursors = cursors;
        Ok(())
    }
}

fn save_media(media: &Media, w: &mut Writer<'_>) -> Result<(), CodecError> {
    assert!(media.is_settled(), "only a device at rest is saved");
    let (oob, records) = media.parts();
    w.words(b"OLPN", &oob.iter().map(|o| o.lpn).collect::<Vec<_>>())?;
    w.words(b"OCRC", &oob.iter().map(|o| o.crc).collect::<Vec<_>>())?;
    w.words(b"OSEQ", &oob.iter().map(|o| o.seq).collect::<Vec<_>>())?;
    w.words(b"RPPN", &records.keys().copied().collect::<Vec<u32>>())?;
    for bits in records.values() {
        w.words(b"RECD", bits)?;
    }
    let (n_blocks, units_per_block, unit_bytes) = media.shape();
    let mut unit = vec![0u8; unit_bytes as usize];
    for block in 0..n_blocks as u32 {
        let n = media.programmed()[block as usize];
        let mut data = vec![];
        for offset in 0..n {
            if media.is_pad(block, offset) {
                unit.fill(0);
            } else if !media.read(block, offset, true, &mut unit)? {
                break;
            }
            data.extend_from_slice(&unit);
        }
        debug_assert!(n <= units_per_block);
        w.words(b"DATA", &data)?;
    }
    Ok(())
}

fn load_media(
    media: &mut Media,
    programmed: Vec<u32>,
    r: &mut Reader<'_>,
) -> Result<(), CodecError> {
    let (n_blocks, units_per_block, unit_bytes) = media.shape();
    let n = n_blocks * units_per_block as usize;
    let lpn: Vec<u32> = r.words(b"OLPN", n)?;
    let crc: Vec<u32> = r.words(b"OCRC", n)?;
    let seq: Vec<u64> = r.words(b"OSEQ", n)?;
    let oob = lpn.into_iter().zip(crc).zip(seq);
    let oob = oob.map(|((lpn, crc), seq)| Oob { lpn, crc, seq }).collect();
    let places: Vec<u32> = r.section(b"RPPN", n as u64 * 4, false)?;
    let mut records = BTreeMap::new();
    for ppn in places {
        let bits: Vec<u64> = r.words(b"RECD", unit_bytes as usize / 8)?;
        records.insert(ppn, bits.into_boxed_slice());
    }
    for (block, &n_units) in programmed.iter().enumerate() {
        let data: Vec<u8> =
            r.section(b"DATA", u64::from(n_units) * u64::from(unit_bytes), false)?;
        let first = block as u32 * units_per_block;
        for (i, unit) in data.chunks_exact(unit_bytes as usize).enumerate() {
            let put = media.restore_data(first + i as u32, unit);
            put?;
        }
    }
    media.restore(oob, programmed, records);
    Ok(())
}
