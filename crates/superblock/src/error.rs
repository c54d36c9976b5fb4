//! Why no journal was found.

use std::io;

/// An image that cannot be understood. Offsets are in bytes from the start of the image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// Reading failed.
    #[error("byte {offset}: cannot be read: {source}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The image ends before something that must be there.
    #[error(
        "byte {offset}: expected {what} ({bytes} bytes), but the image ends at byte {image_bytes}; \
         give the whole image"
    )]
    Truncated {
        /// What should be there.
        what: &'static str,
        /// Where.
        offset: u64,
        /// Its length.
        bytes: u64,
        /// Length of the image.
        image_bytes: u64,
    },
    /// Neither a superblock nor a partition table.
    #[error(
        "byte {offset}: no superblock of ext2, ext3, ext4 or XFS, primary or backup; give the image \
         of such a file system, of its external journal, or of a disk with an MBR or GPT partition \
         table, and name the offset if it does not begin at a partition"
    )]
    NotFound {
        /// Where one was looked for.
        offset: u64,
    },
    /// Something is there, and is wrong.
    #[error("byte {offset}: {what} is damaged: found {found}, expected {expected}; {advice}")]
    Damaged {
        /// What.
        what: &'static str,
        /// Where.
        offset: u64,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// Valid, but more than this crate takes.
    #[error("byte {offset}: {what}: {found}, at most {most} are taken; give the range by hand")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Where.
        offset: u64,
        /// How much.
        found: u64,
        /// How much at most.
        most: u64,
    },
    /// Not offered for this file system.
    #[error("byte {offset}: {what}: not offered; expected ext2, ext3 or ext4")]
    Unsupported {
        /// Where the file system begins.
        offset: u64,
        /// What was asked for.
        what: &'static str,
    },
}

/// What to do about a damaged file system.
pub(crate) const REPAIR: &str = "repair the file system (e2fsck, xfs_repair) or give another image";

impl SuperblockError {
    /// Shorthand for damage that a repair would mend.
    pub(crate) fn damaged(
        what: &'static str,
        offset: u64,
        found: impl ToString,
        expected: &'static str,
    ) -> Self {
        Self::Damaged { what, offset, found: found.to_string(), expected, advice: REPAIR }
    }
}
