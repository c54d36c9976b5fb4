//! What happens to files, as placement policies see it. One event is one line of a
//! file-level trace or one notification from a live kernel.

/// Identity of a file that survives renames (an inode number, or a counter that a
/// trace assigns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// One thing that happened to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// When \[ns from the start of the recording\].
    pub at_ns: u64,
    /// To which file.
    pub file: FileId,
    /// What.
    pub op: FileOp,
}

/// The kinds of file events that matter for placement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileOp {
    /// The file came to be under this path (no path: `O_TMPFILE`).
    Create {
        /// Path as the program named it.
        path: Option<String>,
    },
    /// An existing file was opened under this path.
    Open {
        /// Path as the program named it.
        path: String,
    },
    /// Bytes were written.
    Write {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// The file was made durable (fsync, fdatasync, O_DSYNC write).
    Sync,
    /// The file was cut or extended to this many bytes.
    Truncate {
        /// New size \[bytes\].
        size: u64,
    },
    /// The file got another path.
    Rename {
        /// New path.
        to: String,
    },
    /// The last path was removed; data lives on until the last close.
    Unlink,
    /// The last descriptor was closed.
    LastClose,
}
