//! What is physically on the flash: contents and out-of-band data, at their place.
//!
//! Only operations that ended touch it. Data that waits for its program is staged
//! per block, in order, and vanishes with power. Each place carries { LPN, sequence
//! number, checksum }, so recovery needs nothing else. Kept only where contents or
//! crash recovery are wanted: 16 bytes per place, plus the contents.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use crate::health::BadReason;
use crate::map::PAD;

/// Where contents are kept.
#[derive(Clone, Debug, Default)]
pub enum Contents {
    /// Nowhere: the device knows addresses only.
    #[default]
    None,
    /// In memory, block by block as they are programmed.
    Memory,
    /// In a sparse file, at place x unit size. Clones share the file, so only one
    /// of them may go on writing.
    File(Arc<File>),
}

/// Reading or writing contents failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("contents at physical unit {ppn}: {source}")]
pub struct StoreError {
    /// Place.
    pub ppn: u32,
    /// Why.
    #[source]
    pub source: Arc<std::io::Error>,
}

/// Out-of-band data of one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oob {
    pub(crate) lpn: u32,
    pub(crate) crc: u32,
    pub(crate) seq: u64,
}

/// What a place holds besides its out-of-band data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Body {
    /// Nothing that is kept.
    #[default]
    None,
    /// Contents of one unit.
    Data(Box<[u8]>),
    /// Which units of a range are trimmed.
    Record(Box<[u64]>),
}

impl Body {
    pub(crate) fn of_host(data: Option<&[u8]>) -> Self {
        data.map_or(Self::None, |d| Self::Data(d.into()))
    }

    fn checksum(&self, lpn: u32, seq: u64) -> u32 {
        let crc = crc32c::crc32c_append(lpn, &seq.to_le_bytes());
        match self {
            Self::None => crc,
            Self::Data(d) => crc32c::crc32c_append(crc, d),
            Self::Record(r) => {
                r.iter().fold(crc, |crc, w| crc32c::crc32c_append(crc, &w.to_le_bytes()))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Staged {
    offset: u32,
    lpn: u32,
    seq: u64,
    body: Body,
}

/// The media.
#[derive(Clone, Debug)]
pub struct Media {
    units_per_block: u32,
    unit_bytes: u32,
    oob: Vec<Oob>,
    /// Places programmed in each block.
    programmed: Vec<u32>,
    /// Contents of each block (empty: nothing kept).
    memory: Vec<Box<[u8]>>,
    contents: Contents,
    /// Trim records by place.
    records: BTreeMap<u32, Box<[u64]>>,
    staged: Vec<VecDeque<Staged>>,
    /// Units of program units that fill in any order, by (block, offset).
    loose: BTreeMap<(u32, u32), Staged>,
    /// The table of bad blocks as it was when power failed.
    pub(crate) bad_blocks: BTreeMap<u32, BadReason>,
    /// The first access that failed; nothing after it can be trusted.
    failure: Option<StoreError>,
}

impl Media {
    pub(crate) fn new(
        n_blocks: u32,
        units_per_block: u32,
        unit_bytes: u32,
        contents: Contents,
    ) -> Self {
        Self {
            units_per_block,
            unit_bytes,
            oob: vec![Oob::default(); n_blocks as usize * units_per_block as usize],
            programmed: vec![0; n_blocks as usize],
            memory: vec![Box::default(); n_blocks as usize],
            contents,
            records: BTreeMap::new(),
            staged: vec![VecDeque::new(); n_blocks as usize],
            loose: BTreeMap::new(),
            bad_blocks: BTreeMap::new(),
            failure: None,
        }
    }

    /// The first access to the contents that failed.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Where contents are kept.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Places programmed in each block.
    pub(crate) fn programmed(&self) -> &[u32] {
        &self.programmed
    }

    pub(crate) fn shape(&self) -> (usize, u32, u32) {
        (self.programmed.len(), self.units_per_block, self.unit_bytes)
    }

    /// Puts a unit in line for the program of its program unit.
    /// A loose one is put in line later, by [`Media::settle`].
    pub(crate) fn stage(
        &mut self,
        block: u32,
        offset: u32,
        lpn: u32,
        seq: u64,
        mut body: Body,
        loose: bool,
    ) {
        // Where contents are kept, a write without data is one of zeros.
        if body == Body::None && lpn != PAD && !matches!(self.contents, Contents::None) {
            body = Body::Data(vec![0; self.unit_bytes as usize].into());
        }
        let unit = Staged { offset, lpn, seq, body };
        if loose {
            self.loose.insert((block, offset), unit);
        } else {
            self.staged[block as usize].push_back(unit);
        }
    }

    pub(crate) fn stage_pad(&mut self, block: u32, offset: u32, loose: bool) {
        self.stage(block, offset, PAD, 0, Body::None, loose);
    }

    /// Puts the loose units of the program unit at `start` in line.
    pub(crate) fn settle(&mut self, block: u32, start: u32, n: u32) {
        for offset in start..start + n {
            if let Some(unit) = self.loose.remove(&(block, offset)) {
                self.staged[block as usize].push_back(unit);
            }
        }
    }

    /// Replaces the contents of a staged unit.
    pub(crate) fn restage(&mut self, block: u32, offset: u32, data: &[u8]) {
        if let Some(unit) = self.loose.get_mut(&(block, offset)) {
            unit.body = Body::Data(data.into());
            return;
        }
        let at = self.staged_at(block, offset).expect("the unit is staged");
        self.staged[block as usize][at].body = Body::Data(data.into());
    }

    /// A program of the block ended: its oldest staged units are on the media.
    pub(crate) fn program_next(&mut self, block: u32, n: u32) {
        for _ in 0..n {
            let unit = self.staged[block as usize].pop_front().expect("a program has data");
            let at = self.programmed[block as usize];
            assert_eq!(unit.offset, at, "places of a block are programmed in order");
            let ppn = block * self.units_per_block + at;
            let crc = unit.body.checksum(unit.lpn, unit.seq);
            self.oob[ppn as usize] = Oob { lpn: unit.lpn, crc, seq: unit.seq };
            if let Err(e) = self.store(block, at, unit.body) {
                self.failure.get_or_insert(e);
            }
            self.programmed[block as usize] += 1;
        }
    }

    /// An erase of the block ended.
    pub(crate) fn erase(&mut self, block: u32) {
        self.programmed[block as usize] = 0;
        self.memory[block as usize] = Box::default();
        let first = block * self.units_per_block;
        let places = first..first + self.units_per_block;
        let gone: Vec<u32> = self.records.range(places).map(|(&ppn, _)| ppn).collect();
        for ppn in gone {
            self.records.remove(&ppn);
        }
    }

    /// Power failed while a program of the block was under way: its places are
    /// used up and hold nothing that passes its checksum.
    pub(crate) fn tear_program(&mut self, block: u32, n: u32) {
        for _ in 0..n {
            let at = self.programmed[block as usize];
            let ppn = (block * self.units_per_block + at) as usize;
            let crc = !Body::None.checksum(PAD, 0);
            self.oob[ppn] = Oob { lpn: PAD, crc, seq: 0 };
            self.programmed[block as usize] += 1;
        }
    }

    /// Power failed while an erase of the block was under way: nothing in it
    /// passes its checksum, and it is not blank.
    pub(crate) fn tear_erase(&mut self, block: u32) {
        let n = self.programmed[block as usize].max(1);
        self.erase(block);
        self.tear_program(block, n);
    }

    /// The program of a place fails: it holds nothing that passes its checksum.
    pub(crate) fn spoil(&mut self, block: u32, offset: u32) {
        if let Some(at) = self.staged_at(block, offset) {
            let unit = &mut self.staged[block as usize][at];
            (unit.lpn, unit.seq, unit.body) = (PAD, 0, Body::None);
            return;
        }
        let ppn = block * self.units_per_block + offset;
        let crc = Body::None.checksum(PAD, 0);
        self.oob[ppn as usize] = Oob { lpn: PAD, crc, seq: 0 };
        self.records.remove(&ppn);
    }

    /// Forgets what was only staged.
    pub(crate) fn lose_staged(&mut self) {
        self.staged.iter_mut().for_each(VecDeque::clear);
        self.loose.clear();
    }

    /// Nothing waits for a program.
    pub(crate) fn is_settled(&self) -> bool {
        self.loose.is_empty() && self.staged.iter().all(VecDeque::is_empty)
    }

    /// Out-of-band data and body of a programmed place, if they pass the checksum
    /// and the place was not padding.
    pub(crate) fn scan(&self, block: u32, offset: u32) -> Result<Option<(Oob, Body)>, StoreError> {
        let oob = self.oob[(block * self.units_per_block + offset) as usize];
        if oob.lpn == PAD {
            return Ok(None);
        }
        let body = self.load(block, offset)?;
        Ok((body.checksum(oob.lpn, oob.seq) == oob.crc).then_some((oob, body)))
    }

    /// Sequence number and body of a place, on the media or staged. A failure is
    /// kept and reported with the command that caused the move.
    pub(crate) fn body(&mut self, block: u32, offset: u32, on_media: bool) -> (u64, Body) {
        if !on_media {
            let unit = self.staged_unit(block, offset);
            return (unit.seq, unit.body.clone());
        }
        let seq = self.oob[(block * self.units_per_block + offset) as usize].seq;
        match self.load(block, offset) {
            Ok(body) => (seq, body),
            Err(e) => {
                self.failure.get_or_insert(e);
                (seq, Body::None)
            }
        }
    }

    fn staged_unit(&self, block: u32, offset: u32) -> &Staged {
        if let Some(unit) = self.loose.get(&(block, offset)) {
            return unit;
        }
        let at = self.staged_at(block, offset).expect("a place is programmed or staged");
        &self.staged[block as usize][at]
    }

    /// Copies the contents of a place; false if none are kept.
    pub(crate) fn read(
        &self,
        block: u32,
        offset: u32,
        on_media: bool,
        into: &mut [u8],
    ) -> Result<bool, StoreError> {
        if matches!(self.contents, Contents::None) {
            return Ok(false);
        }
        let body = if on_media {
            self.load(block, offset)?
        } else {
            self.staged_unit(block, offset).body.clone()
        };
        match body {
            Body::Data(d) => into.copy_from_slice(&d[..into.len()]),
            _ => into.fill(0),
        }
        Ok(true)
    }

    /// A programmed place holds padding.
    pub(crate) fn is_pad(&self, block: u32, offset: u32) -> bool {
        self.oob[(block * self.units_per_block + offset) as usize].lpn == PAD
    }

    /// Index in the queue of the block. A block can be erased and reused before
    /// its older programs ended, so the place is counted from the newest end.
    fn staged_at(&self, block: u32, offset: u32) -> Option<usize> {
        let queue = &self.staged[block as usize];
        let newest = queue.back()?.offset;
        let back = newest.checked_sub(offset)? as usize;
        let at = queue.len().checked_sub(back + 1)?;
        (queue[at].offset == offset).then_some(at)
    }

    fn store(&mut self, block: u32, offset: u32, body: Body) -> Result<(), StoreError> {
        let ppn = block * self.units_per_block + offset;
        match body {
            Body::Record(r) => {
                self.records.insert(ppn, r);
                Ok(())
            }
            Body::None => Ok(()),
            Body::Data(d) => self.store_data(block, offset, &d).map_err(|e| failed(ppn, e)),
        }
    }

    fn store_data(&mut self, block: u32, offset: u32, data: &[u8]) -> std::io::Result<()> {
        let n = self.unit_bytes as usize;
        match &self.contents {
            Contents::None => Ok(()),
            Contents::Memory => {
                let chunk = &mut self.memory[block as usize];
                if chunk.is_empty() {
                    *chunk = vec![0; n * self.units_per_block as usize].into();
                }
                chunk[offset as usize * n..][..n].copy_from_slice(data);
                Ok(())
            }
            Contents::File(file) => {
                let ppn = u64::from(block) * u64::from(self.units_per_block) + u64::from(offset);
                let mut file = &**file;
                file.seek(SeekFrom::Start(ppn * n as u64))?;
                file.write_all(data)
            }
        }
    }

    fn load(&self, block: u32, offset: u32) -> Result<Body, StoreError> {
        let ppn = block * self.units_per_block + offset;
        if let Some(r) = self.records.get(&ppn) {
            return Ok(Body::Record(r.clone()));
        }
        let n = self.unit_bytes as usize;
        match &self.contents {
            Contents::None => Ok(Body::None),
            Contents::Memory => {
                let chunk = &self.memory[block as usize];
                let unit = chunk.get(offset as usize * n..(offset as usize + 1) * n);
                Ok(unit.map_or(Body::None, |d| Body::Data(d.into())))
            }
            Contents::File(file) => {
                let mut data = vec![0; n];
                let mut file = &**file;
                file.seek(SeekFrom::Start(u64::from(ppn) * n as u64))
                    .and_then(|_| file.read_exact(&mut data))
                    .map_err(|e| failed(ppn, e))?;
                Ok(Body::Data(data.into()))
            }
        }
    }

    /// Raw parts, for saving.
    pub(crate) fn parts(&self) -> (&[Oob], &BTreeMap<u32, Box<[u64]>>) {
        (&self.oob, &self.records)
    }

    /// Parts read from a saved drive.
    pub(crate) fn restore(
        &mut self,
        oob: Vec<Oob>,
        programmed: Vec<u32>,
        records: BTreeMap<u32, Box<[u64]>>,
    ) {
        (self.oob, self.programmed, self.records) = (oob, programmed, records);
    }

    /// Puts contents back at a place, when a saved drive is loaded.
    pub(crate) fn restore_data(&mut self, ppn: u32, data: &[u8]) -> Result<(), StoreError> {
        let (block, offset) = (ppn / self.units_per_block, ppn % self.units_per_block);
        self.store_data(block, offset, data).map_err(|e| failed(ppn, e))
    }
}

fn failed(ppn: u32, source: std::io::Error) -> StoreError {
    StoreError { ppn, source: Arc::new(source) }
}
