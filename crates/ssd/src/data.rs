//! Bytes in and out, for devices that keep contents.

use flashwise_ftl::{Contents, Lpn};
use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};

use crate::device::Ssd;
use crate::error::CommandError;

impl Ssd {
    /// Writes whole sectors from `data`; see [`Ssd::submit`].
    pub fn write_bytes(
        &mut self,
        lba: Lba,
        data: &[u8],
        fua: bool,
        hint: WriteHint,
        now_ns: u64,
    ) -> Result<u64, CommandError> {
        self.needs_contents()?;
        let sectors = whole_sectors(data.len())?;
        self.submit_data(lba, sectors, fua, &hint, Some(data), now_ns)
    }

    /// Reads whole sectors into `into`; unmapped ones are zeros. See
    /// [`Ssd::submit`].
    pub fn read_bytes(
        &mut self,
        lba: Lba,
        into: &mut [u8],
        now_ns: u64,
    ) -> Result<u64, CommandError> {
        self.needs_contents()?;
        let sectors = whole_sectors(into.len())?;
        // Data is what it was when the command came, wherever it moves meanwhile.
        let done_ns = self.submit_read(lba, sectors, now_ns)?;
        self.copy_out(lba, into)?;
        Ok(done_ns)
    }

    pub(crate) fn keeps(&self) -> &Contents {
        self.ftl.media().map_or(&Contents::None, |m| m.contents())
    }

    fn needs_contents(&self) -> Result<(), CommandError> {
        match self.keeps() {
            Contents::None => Err(CommandError::NoContents),
            _ => Ok(()),
        }
    }

    fn copy_out(&self, lba: Lba, into: &mut [u8]) -> Result<(), CommandError> {
        let unit_bytes = self.ftl.config().geo.unit_bytes as usize;
        let mut unit = vec![0u8; unit_bytes];
        let (mut at, mut byte) = (0, lba.byte_offset());
        while at < into.len() {
            let lpn = Lpn((byte / unit_bytes as u64) as u32);
            let skip = (byte % unit_bytes as u64) as usize;
            let n = (unit_bytes - skip).min(into.len() - at);
            self.unit_contents(lpn, &mut unit)?;
            into[at..at + n].copy_from_slice(&unit[skip..skip + n]);
            at += n;
            byte += n as u64;
        }
        Ok(())
    }

    fn unit_contents(&self, lpn: Lpn, into: &mut [u8]) -> Result<(), CommandError> {
        match self.ftl.lookup(lpn) {
            Some(ppn) => {
                self.ftl.read_contents(ppn, into)?;
            }
            None => into.fill(0),
        }
        Ok(())
    }

    /// Contents of a unit after `part` is written at `sector` of it.
    pub(crate) fn merge(
        &self,
        lpn: Lpn,
        sector: u64,
        part: &[u8],
    ) -> Result<Box<[u8]>, CommandError> {
        let unit_bytes = self.ftl.config().geo.unit_bytes as usize;
        if part.len() == unit_bytes {
            return Ok(part.into());
        }
        let mut unit = vec![0u8; unit_bytes];
        self.unit_contents(lpn, &mut unit)?;
        let from = (sector * SECTOR_BYTES) as usize;
        unit[from..from + part.len()].copy_from_slice(part);
        Ok(unit.into())
    }
}

fn whole_sectors(bytes: usize) -> Result<u32, CommandError> {
    let sectors = bytes / SECTOR_BYTES as usize;
    if bytes.is_multiple_of(SECTOR_BYTES as usize) && u32::try_from(sectors).is_ok() {
        return Ok(sectors as u32);
    }
    Err(CommandError::PartialSector { bytes })
}
