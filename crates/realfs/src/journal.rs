//! What lies in the ring of a JBD2 journal: which home blocks each transaction holds.
//!
//! The ring is read as it is on the device, whole transactions of earlier rounds included,
//! so that the content of commits can be told after the fact without any kernel event.
//!
//! Format: "Journal (jbd2)" in the kernel's ext4 documentation
//! (`Documentation/filesystems/ext4/journal.rst`). All numbers are big-endian. A block of
//! data that would begin with the magic number is stored with zeroes there, so any block
//! that begins with it is the journal's own.
//!
//! Cost: one pass over the ring.

use std::collections::BTreeMap;

use thiserror::Error;

const MAGIC: u32 = 0xC03B_3998;
const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;
const FEATURE_64BIT: u32 = 0x2;
const FEATURE_CHECKSUM_V2: u32 = 0x8;
const FEATURE_CHECKSUM_V3: u32 = 0x10;
const TAG_SAME_UUID: u32 = 0x2;
const TAG_LAST: u32 = 0x8;

/// A transaction found in the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Home addresses of the blocks it holds \[file-system blocks\].
    pub homes: Vec<u64>,
    /// Descriptor blocks.
    pub descriptors: u64,
    /// Blocks of revoke records.
    pub revokes: u64,
    /// Blocks that must not be replayed from earlier transactions.
    pub revoked: u64,
    /// Its commit block is there.
    pub committed: bool,
}

/// A ring that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadJournal {
    /// There is no journal superblock.
    #[error(
        "the journal begins with {found:#010x} instead of {MAGIC:#010x}; is it of ext3 or ext4?"
    )]
    NoMagic {
        /// First four bytes.
        found: u32,
    },
    /// It is cut short.
    #[error("the journal has {bytes} bytes, which are not whole blocks of {block_bytes} bytes")]
    Short {
        /// Bytes given.
        bytes: usize,
        /// Size of a block it states \[bytes\].
        block_bytes: u32,
    },
}

/// Reads a whole journal, superblock first. Transactions by number; those of which blocks
/// were overwritten lack a part.
pub fn parse(journal: &[u8]) -> Result<BTreeMap<u32, Transaction>, BadJournal> {
    let word = |at: usize| be32(journal, at).ok_or(BadJournal::Short { bytes: at, block_bytes: 0 });
    if word(0)? != MAGIC {
        return Err(BadJournal::NoMagic { found: word(0)? });
    }
    let (block_bytes, features) = (word(12)?, word(40)?);
    let size = block_bytes as usize;
    if size < 1024 || !journal.len().is_multiple_of(size) {
        return Err(BadJournal::Short { bytes: journal.len(), block_bytes });
    }
    let mut all: BTreeMap<u32, Transaction> = BTreeMap::new();
    for block in journal.chunks_exact(size).skip(1) {
        let [Some(MAGIC), Some(kind), Some(tid)] = [0, 4, 8].map(|at| be32(block, at)) else {
            continue;
        };
        match kind {
            DESCRIPTOR => {
                let transaction = all.entry(tid).or_default();
                transaction.descriptors += 1;
                tags(block, features, &mut transaction.homes);
            }
            REVOKE => {
                let transaction = all.entry(tid).or_default();
                transaction.revokes += 1;
                let used = u64::from(be32(block, 12).unwrap_or(16)).saturating_sub(16);
                transaction.revoked += used / if features & FEATURE_64BIT != 0 { 8 } else { 4 };
            }
            COMMIT => all.entry(tid).or_default().committed = true,
            _ => {}
        }
    }
    Ok(all)
}

/// Adds the home addresses in a descriptor block.
fn tags(block: &[u8], features: u32, homes: &mut Vec<u64>) {
    let wide = features & FEATURE_64BIT != 0;
    let v3 = features & FEATURE_CHECKSUM_V3 != 0;
    let tag_bytes = if v3 { 16 } else { 8 + 4 * usize::from(wide) };
    let tail = if v3 || features & FEATURE_CHECKSUM_V2 != 0 { 4 } else { 0 };
    let end = block.len() - tail;
    let mut at = 12;
    while at + tag_bytes <= end {
        let field = |offset: usize| be32(block, at + offset).unwrap_or(0);
        // Version 3 has 32 bits of flags; before, a checksum takes the upper half.
        let flags = if v3 { field(4) } else { field(4) & 0xFFFF };
        let high = if wide { field(8) } else { 0 };
        homes.push(u64::from(field(0)) | u64::from(high) << 32);
        at += tag_bytes + if flags & TAG_SAME_UUID != 0 { 0 } else { 16 };
        if flags & TAG_LAST != 0 {
            return;
        }
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().expect("four bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(words: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        bytes.resize(1024, 0);
        bytes
    }

    fn superblock(features: u32) -> Vec<u8> {
        block(&[MAGIC, 4, 0, 1024, 8, 1, 7, 1, 0, 0, features])
    }

    #[test]
    fn a_transaction_of_version_3_names_its_blocks() {
        let mut ring = superblock(FEATURE_64BIT | FEATURE_CHECKSUM_V3);
        // The first tag is followed by a UUID.
        ring.extend(block(&[
            MAGIC, DESCRIPTOR, 9, 73, 0, 0, 0xAAAA, 1, 2, 3, 4, 65, 2, 1, 0xBBBB, 70, 10, 0, 0, 99,
        ]));
        ring.extend([block(&[1]), block(&[0]), block(&[3])].concat());
        ring.extend(block(&[MAGIC, REVOKE, 9, 16 + 24]));
        ring.extend(block(&[MAGIC, COMMIT, 9]));
        let all = parse(&ring).expect("well formed");
        let expected = Transaction {
            homes: vec![73, 65 | 1 << 32, 70],
            descriptors: 1,
            revokes: 1,
            revoked: 3,
            committed: true,
        };
        assert_eq!(all, BTreeMap::from([(9, expected)]));
    }

    #[test]
    fn a_journal_without_checksums_has_short_tags() {
        let mut ring = superblock(0);
        ring.extend(block(&[MAGIC, DESCRIPTOR, 3, 5, 2, 6, 10, 7, 10]));
        let all = parse(&ring).expect("well formed");
        assert_eq!((all[&3].homes.clone(), all[&3].committed), (vec![5, 6], false));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(parse(&[0; 4096]), Err(BadJournal::NoMagic { found: 0 }));
        assert!(matches!(parse(&[]), Err(BadJournal::Short { .. })));
        let mut cut = superblock(0);
        cut.push(0);
        assert!(matches!(parse(&cut), Err(BadJournal::Short { block_bytes: 1024, .. })));
    }
}
