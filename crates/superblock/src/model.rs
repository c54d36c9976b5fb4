//! What is found: a file system and where its journal lies.
//!
//! All offsets and ranges are in bytes from the start of the *image*, so those of
//! several partitions can be used together.

use std::fmt;

/// A universally unique identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zeroes, which means none.
    pub fn is_nil(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&i) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// Length \[bytes\].
    pub bytes: u64,
}

impl ByteRange {
    /// The byte after the last one, saturating.
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.start, self.bytes)
    }
}

/// Adds a range behind the others; one that goes on where the last ended is joined to it.
pub(crate) fn push_range(ranges: &mut Vec<ByteRange>, range: ByteRange) {
    match ranges.last_mut() {
        _ if range.bytes == 0 => {}
        Some(last) if last.end() == range.start => last.bytes += range.bytes,
        _ => ranges.push(range),
    }
}

/// Which file system it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Ext2: no journal and no feature of ext4.
    Ext2,
    /// Ext3: a journal and no feature of ext4.
    Ext3,
    /// Ext4.
    Ext4,
    /// No file system, but the external journal of one (ext3 or ext4).
    ExtJournal,
    /// XFS.
    Xfs,
}

impl Kind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::ExtJournal => "external journal of ext4",
            Self::Xfs => "xfs",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A file system, or the external journal of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// What it is.
    pub kind: Kind,
    /// Where it begins \[bytes\].
    pub offset: u64,
    /// Block size \[bytes\].
    pub block_bytes: u32,
    /// Its size, as its superblock says \[bytes\].
    pub size_bytes: u64,
    /// Label; empty for none.
    pub label: String,
    /// Its identifier.
    pub uuid: Uuid,
    /// Where its journal lies.
    pub journal: Journal,
    /// What is not as it should be, and what was done about it.
    pub notes: Vec<Note>,
}

/// Where a journal lies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Journal {
    /// There is none.
    None,
    /// In the image.
    Internal(Ring),
    /// On another device.
    External {
        /// Identifier of that device, where it is recorded (ext4).
        uuid: Option<Uuid>,
        /// Its length, where it is recorded (XFS) \[bytes\].
        bytes: Option<u64>,
    },
}

/// A journal: a ring that is written round and round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// The whole journal, in the order it is written; neighbours are joined.
    pub ranges: Vec<ByteRange>,
    /// The journal's own superblock, its first block (ext3 and ext4). It is rewritten
    /// whenever the tail of the ring moves, far more often than the ring goes round: a
    /// hot block, which `ranges` contains.
    pub superblock: Option<ByteRange>,
    /// The fast-commit area (ext4), the last blocks of the journal. It is written from its
    /// start again after each full commit, so faster than the ring goes round; `ranges`
    /// contains it. Source: fs/jbd2/journal.c.
    pub fast_commit: Vec<ByteRange>,
}

impl Ring {
    /// Length of the whole journal \[bytes\].
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| r.bytes).sum()
    }
}

/// Something about an image that a reader should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The primary superblock could not be used.
    BackupSuperblock {
        /// Where the one lies that was used \[bytes\].
        offset: u64,
        /// What is wrong with the primary one.
        why: String,
    },
    /// There is no checksum, and a backup superblock is damaged or says something else.
    BackupDiffers {
        /// Where that one lies \[bytes\].
        offset: u64,
    },
    /// The journal's inode could not be used; the copy in the superblock was (ext4).
    JournalBackup {
        /// What is wrong with the inode.
        why: String,
    },
    /// There is no checksum, and the journal's inode and the copy of its map differ (ext3
    /// and ext4).
    JournalBackupDiffers,
    /// The image is shorter than the file system.
    Short {
        /// Length of the file system \[bytes\].
        size_bytes: u64,
        /// Bytes of it in the image.
        present_bytes: u64,
    },
    /// The image ends before the journal, which therefore could not be looked at.
    JournalUnseen {
        /// Why.
        why: String,
    },
    /// The journal was written by a newer kind of journal code.
    JournalFeatures {
        /// Incompatible features that are not known here, as bits.
        bits: u32,
    },
    /// The area is recorded by the file system, but its length is not: the kernel's
    /// default was taken.
    FastCommitDefault {
        /// Length \[blocks\].
        blocks: u32,
    },
    /// The file system has a realtime device, whose writes go elsewhere (XFS).
    Realtime,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackupSuperblock { offset, why } => {
                write!(f, "the superblock at byte {offset} was used, a backup: {why}")
            }
            Self::BackupDiffers { offset } => write!(
                f,
                "the backup superblock at byte {offset} is damaged or differs, and no checksum \
                 tells which is right"
            ),
            Self::JournalBackup { why } => {
                write!(f, "the journal's map in the superblock was used, a backup: {why}")
            }
            Self::JournalBackupDiffers => f.write_str(
                "the journal's inode and its copy in the superblock differ, and no checksum tells \
                 which is right; the inode was used",
            ),
            Self::Short { size_bytes, present_bytes } => write!(
                f,
                "the image holds {present_bytes} of the {size_bytes} bytes of the file system"
            ),
            Self::JournalUnseen { why } => {
                write!(f, "the range of the journal is right only if the map is: {why}")
            }
            Self::JournalFeatures { bits } => {
                write!(f, "the journal has features unknown here ({bits:#x})")
            }
            Self::FastCommitDefault { blocks } => write!(
                f,
                "the length of the fast-commit area is not recorded; the kernel's default of \
                 {blocks} blocks was taken"
            ),
            Self::Realtime => f.write_str("data on the realtime device is not in this image"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_print_as_everywhere() {
        let id: [u8; 16] = std::array::from_fn(|i| i as u8);
        assert_eq!(Uuid(id).to_string(), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert!(Uuid::default().is_nil() && !Uuid(id).is_nil());
    }

    #[test]
    fn neighbours_are_joined() {
        let mut ranges = vec![];
        for (start, bytes) in [(0, 4), (4, 4), (8, 0), (12, 1), (8, 4)] {
            push_range(&mut ranges, ByteRange { start, bytes });
        }
        let starts: Vec<_> = ranges.iter().map(|r| (r.start, r.bytes)).collect();
        assert_eq!(starts, [(0, 8), (12, 1), (8, 4)]);
    }
}
