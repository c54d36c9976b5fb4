//! A file system and a kernel in virtual time: what they do to a file before flash sees
//! it. Nothing here touches a real disk.
//!
//! An [`Application`] is a set of threads that make file-system calls ([`Call`]); paths
//! are interned in [`Paths`].

mod age;
pub mod alloc;
mod application;
mod cache;
mod call;
mod check;
mod config;
mod costs;
mod data;
mod directory;
mod error;
mod extents;
mod files;
mod fs;
mod host;
mod inode;
pub mod inodes;
mod io;
mod journal;
pub mod layout;
mod paths;
mod placer;
mod plug;
mod ram;
mod report;
mod script;

pub use application::{Action, Application, OpId, Outcome};
pub use call::{Call, Fd, OpenFlags};
pub use config::{Atime, COLD_EXTENSIONS, DataMode, Discard, FsConfig, HintAxes, JournalPlace};
pub use costs::HostCosts;
pub use error::{ConfigError, HostError};
pub use extents::Extent;
#[doc(hidden)]
pub use host::Advance;
pub use host::{Host, OpDone};
pub use io::{Io, IoClass, IoOp};
pub use paths::{PathId, Paths};
pub use placer::Placer;
pub use ram::{RamDisk, RamSpeed};
pub use report::{ClassCounts, Counts};
pub use script::Script;
