//! File-system calls, as a program makes them.

use crate::PathId;

/// A file descriptor. The application chooses the numbers, small and dense; one number
/// names one open file of the whole application, whatever thread uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenFlags {
    /// Make the file if it is not there (`O_CREAT`).
    pub create: bool,
    /// With `create`: fail if it is there (`O_EXCL`).
    pub exclusive: bool,
    /// Cut it to nothing (`O_TRUNC`).
    pub truncate: bool,
    /// Reads and writes pass the page cache by (`O_DIRECT`).
    pub direct: bool,
    /// Every write is durable before it returns (`O_DSYNC`).
    pub dsync: bool,
}

impl OpenFlags {
    /// An existing file, through the page cache.
    pub const PLAIN: Self =
        Self { create: false, exclusive: false, truncate: false, direct: false, dsync: false };
    /// A new file; one that is there is cut to nothing.
    pub const CREATE: Self = Self { create: true, truncate: true, ..Self::PLAIN };
    /// An existing file, past the page cache.
    pub const DIRECT: Self = Self { direct: true, ..Self::PLAIN };
    /// An existing file whose writes are durable.
    pub const DSYNC: Self = Self { dsync: true, ..Self::PLAIN };
}

/// One call. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Make a directory.
    Mkdir {
        /// Its path.
        path: PathId,
    },
    /// Remove an empty directory.
    Rmdir {
        /// Its path.
        path: PathId,
    },
    /// Open a file; `fd` names it from then on.
    Open {
        /// Its path.
        path: PathId,
        /// Descriptor, which is not in use.
        fd: Fd,
        /// How.
        flags: OpenFlags,
    },
    /// Open a new file without a name (`O_TMPFILE`).
    OpenTemporary {
        /// Directory whose file system and group it is made in.
        dir: PathId,
        /// Descriptor, which is not in use.
        fd: Fd,
        /// How; `create` and `exclusive` do not matter.
        flags: OpenFlags,
    },
    /// Close a descriptor.
    Close {
        /// Which.
        fd: Fd,
    },
    /// Read; ends at the end of the file.
    Read {
        /// From which file.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length.
        len: u64,
    },
    /// Write.
    Write {
        /// To which file.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length.
        len: u64,
    },
    /// Write at the end of the file (`O_APPEND`).
    Append {
        /// To which file.
        fd: Fd,
        /// Length.
        len: u64,
    },
    /// Make data and metadata of a file durable.
    Fsync {
        /// Which.
        fd: Fd,
    },
    /// Make the data of a file durable, and what is needed to find it.
    Fdatasync {
        /// Which.
        fd: Fd,
    },
    /// Write everything dirty and make it durable (`sync`).
    Sync,
    /// Cut or extend a file to a size.
    Truncate {
        /// Which.
        fd: Fd,
        /// New size.
        size: u64,
    },
    /// Reserve blocks, which read as zeroes.
    Fallocate {
        /// In which file.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length.
        len: u64,
        /// The size of the file stays (`FALLOC_FL_KEEP_SIZE`).
        keep_size: bool,
    },
    /// Give blocks back, which then read as zeroes (`FALLOC_FL_PUNCH_HOLE`).
    PunchHole {
        /// In which file.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length.
        len: u64,
    },
    /// Remove a name; data lives on until the last name is gone and the last descriptor
    /// is closed.
    Unlink {
        /// Which name.
        path: PathId,
    },
    /// Give a file or a directory another name; a file of that name is replaced.
    Rename {
        /// Old name.
        from: PathId,
        /// New name.
        to: PathId,
    },
    /// Give a file one more name.
    Link {
        /// A name it has.
        from: PathId,
        /// The new one.
        to: PathId,
    },
    /// Give an open file, for example one without a name, a name (`linkat`).
    LinkFd {
        /// Which.
        fd: Fd,
        /// Its new name.
        to: PathId,
    },
    /// Ask for attributes.
    Stat {
        /// Of which file.
        path: PathId,
    },
    /// Tell the device about all free space (`fstrim`).
    Trim,
}

impl Call {
    /// The descriptor whose data the call reads, writes or makes durable.
    pub fn data_fd(&self) -> Option<Fd> {
        match *self {
            Self::Read { fd, .. }
            | Self::Write { fd, .. }
            | Self::Append { fd, .. }
            | Self::Fsync { fd }
            | Self::Fdatasync { fd } => Some(fd),
            _ => None,
        }
    }
}
