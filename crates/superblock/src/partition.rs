//! Partition tables: MBR with logical partitions, and GPT.
//!
//! A GPT is used if its checksums are right; where the first is damaged, the one at the
//! end of the disk is. An MBR has no checksum: entries that cannot be true make the
//! sector no table. Chains of logical partitions are followed at most
//! [`LOGICAL_MAX`] times.
//!
//! Layout: UEFI Specification 2.10, section 5 (both tables); of logical partitions,
//! the extended boot records that fdisk(8) writes. Cost: a few sectors; the entries of a
//! GPT, 16 KiB as a rule.

use crate::ByteRange;
use crate::error::SuperblockError;
use crate::read::{READ_BYTES_MAX, View, le16, le32, le64};

/// Most logical partitions. Assumed; Linux takes 256 partitions in all.
const LOGICAL_MAX: u32 = 256;
/// Types of an extended partition.
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];
/// Type of the entry that covers a disk with a GPT.
const PROTECTIVE: u8 = 0xEE;
/// Sector of an MBR \[bytes\]. Disks with sectors of 4 KiB are read if they have a GPT.
const SECTOR_BYTES: u64 = 512;
/// Most entries of a GPT that are read \[bytes\]: four times the usual.
const ENTRIES_BYTES_MAX: u64 = READ_BYTES_MAX as u64;

/// Which table a disk has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Table {
    /// None: the image is one file system, or nothing.
    None,
    /// Master boot record.
    Mbr,
    /// GUID partition table.
    Gpt,
    /// GUID partition table, whose copy at the end of the disk was used.
    GptBackup,
}

impl Table {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mbr => "MBR",
            Self::Gpt => "GPT",
            Self::GptBackup => "GPT (backup)",
        }
    }
}

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number, as Linux counts: from 1; logical ones from 5.
    pub number: u32,
    /// Where it lies in the image.
    pub range: ByteRange,
}

/// The table of the disk and its partitions. The view must begin at the disk's start.
pub(crate) fn partitions(view: &View<'_>) -> Result<(Table, Vec<Partition>), SuperblockError> {
    let Ok(sector) = view.read(0, SECTOR_BYTES as usize, "MBR") else {
        return Ok((Table::None, vec![]));
    };
    let Some(entries) = mbr_entries(&sector) else { return Ok((Table::None, vec![])) };
    if entries.iter().any(|e| e.kind == PROTECTIVE) {
        return gpt(view);
    }
    let mut all = vec![];
    for (entry, number) in entries.iter().zip(1..) {
        if EXTENDED.contains(&entry.kind) {
            logical(view, entry.start, &mut all);
        } else if entry.kind != 0 {
            all.push(partition(number, entry.start, entry.sectors));
        }
    }
    all.sort_by_key(|p: &Partition| p.number);
    Ok((Table::Mbr, all))
}

fn partition(number: u32, start: u64, sectors: u64) -> Partition {
    // Both are below 2^33 sectors.
    let range = ByteRange { start: start * SECTOR_BYTES, bytes: sectors * SECTOR_BYTES };
    Partition { number, range }
}

/// An entry of an MBR \[sectors\].
#[derive(Clone, Copy)]
struct Entry {
    kind: u8,
    start: u64,
    sectors: u64,
}

/// The entries of a sector, if it is an MBR: signed, each entry plausible, one used.
fn mbr_entries(sector: &[u8]) -> Option<[Entry; 4]> {
    let entries: [(u8, Entry); 4] = std::array::from_fn(|i| {
        let e = &sector[446 + 16 * i..462 + 16 * i];
        let (start, sectors) = (le32(e, 8).into(), le32(e, 12).into());
        (e[0], Entry { kind: e[4], start, sectors })
    });
    let used = |e: &Entry| e.kind != 0;
    let plausible = entries.iter().all(|(status, e)| {
        [0, 0x80].contains(status) && (!used(e) || (e.start > 0 && e.sectors > 0))
    });
    let signed = le16(sector, 510) == 0xAA55;
    let any = entries.iter().any(|(_, e)| used(e));
    (signed && plausible && any).then(|| entries.map(|(_, e)| e))
}

/// Follows the chain of logical partitions that begins at sector `extended`. A damaged
/// record ends it.
fn logical(view: &View<'_>, extended: u64, all: &mut Vec<Partition>) {
    let mut at = extended;
    for number in 5..5 + LOGICAL_MAX {
        let Ok(sector) = view.read(at * SECTOR_BYTES, SECTOR_BYTES as usize, "EBR") else { return };
        let Some(entries) = mbr_entries(&sector) else { return };
        if entries[0].kind != 0 {
            all.push(partition(number, at + entries[0].start, entries[0].sectors));
        }
        let next = entries[1];
        // Forwards only, so that no chain is a circle.
        if !EXTENDED.contains(&next.kind) || extended + next.start <= at {
            return;
        }
        at = extended + next.start;
    }
}

/// The partitions of a GPT, of whichever copy and sector size is good.
fn gpt(view: &View<'_>) -> Result<(Table, Vec<Partition>), SuperblockError> {
    let mut first_error = None;
    for sector_bytes in [512, 4096] {
        let last = (view.len / sector_bytes).saturating_sub(1);
        for (table, lba) in [(Table::Gpt, 1), (Table::GptBackup, last)] {
            match gpt_at(view, lba, sector_bytes) {
                Ok(all) => return Ok((table, all)),
                Err(e) => first_error = first_error.or(Some(e)),
            }
        }
    }
    Err(first_error.expect("four were tried"))
}

fn gpt_at(view: &View<'_>, lba: u64, sector_bytes: u64) -> Result<Vec<Partition>, SuperblockError> {
    let at = lba * sector_bytes;
    let mut header = view.read(at, 512, "header of the GPT")?;
    let wrong = |found: String, expected| SuperblockError::Damaged {
        what: "header of the GPT",
        offset: view.offset(at),
        found,
        expected,
        advice: "repair the table (sgdisk), or name the offset of the file system",
    };
    let header_bytes = le32(&header, 0xC) as usize;
    if &header[..8] != b"EFI PART" || !(92..=512).contains(&header_bytes) {
        return Err(wrong("another signature".into(), "EFI PART and a length of 92 to 512"));
    }
    let stored = le32(&header, 0x10);
    header[0x10..0x14].fill(0);
    if crc32(&header[..header_bytes]) != stored {
        return Err(wrong(format!("{stored:#x}"), "the checksum of its contents"));
    }
    let (n, entry_bytes) = (u64::from(le32(&header, 0x50)), u64::from(le32(&header, 0x54)));
    // Both are below 2^32.
    let bytes = n * entry_bytes;
    if !(128..=4096).contains(&entry_bytes) || bytes > ENTRIES_BYTES_MAX {
        return Err(wrong(format!("{n} entries of {entry_bytes} bytes"), "at most 64 KiB of them"));
    }
    let entries_at = le64(&header, 0x48).checked_mul(sector_bytes);
    let entries_at = entries_at.ok_or_else(|| wrong("entries beyond 2^64".into(), "entries"))?;
    let entries = view.read(entries_at, bytes as usize, "entries of the GPT")?;
    if crc32(&entries) != le32(&header, 0x58) {
        return Err(wrong("another checksum of its entries".into(), "that of its entries"));
    }
    let mut all = vec![];
    for (e, number) in entries.chunks_exact(entry_bytes as usize).zip(1..) {
        let (first, last) = (le64(e, 0x20), le64(e, 0x28));
        let unused = e[..16].iter().all(|&b| b == 0);
        let end = last.checked_add(1).and_then(|end| end.checked_mul(sector_bytes));
        if let (false, Some(end), true) = (unused, end, first <= last) {
            let start = first * sector_bytes;
            all.push(Partition { number, range: ByteRange { start, bytes: end - start } });
        }
    }
    Ok(all)
}

/// CRC-32 of IEEE 802.3, bit by bit: a table would not pay for 16 KiB once.
fn crc32(data: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        // The check value that every catalogue of CRCs lists for CRC-32/ISO-HDLC.
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_chain_of_logical_partitions_that_turns_back_ends() {
        let mut disk = vec![0_u8; 64 * 512];
        let mut put = |sector: usize, entry: usize, kind: u8, start: u32, sectors: u32| {
            let at = sector * 512;
            disk[at + 510..at + 512].copy_from_slice(&[0x55, 0xAA]);
            let e = at + 446 + 16 * entry;
            disk[e + 4] = kind;
            disk[e + 8..e + 12].copy_from_slice(&start.to_le_bytes());
            disk[e + 12..e + 16].copy_from_slice(&sectors.to_le_bytes());
        };
        put(0, 0, 0x83, 1, 3);
        put(0, 1, 0x05, 8, 50);
        put(8, 0, 0x83, 1, 2);
        put(8, 1, 0x05, 8, 8);
        put(16, 0, 0x83, 1, 2);
        put(16, 1, 0x05, 8, 8);
        let view = View::new(&disk, 0).unwrap();
        let (table, all) = partitions(&view).unwrap();
        let found: Vec<_> = all.iter().map(|p| (p.number, p.range.start / 512)).collect();
        assert_eq!((table, found), (Table::Mbr, vec![(1, 1), (5, 9), (6, 17)]));
    }
}
