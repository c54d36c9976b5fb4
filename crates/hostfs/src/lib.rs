//! A file system and a kernel in virtual time: what they do to a file before flash sees
//! it. Nothing here touches a real disk.
//!
//! An [`Application`] is a set of threads that make file-system calls ([`Call`]); paths
//! are interned in [`Paths`].

mod application;
mod call;
mod cache;
mod directory;
mod extents;
mod journal;
pub mod layout;
mod paths;

pub use application::{Action, Application, OpId, Outcome};
pub use call::{Call, Fd, OpenFlags};
pub use paths::{PathId, Paths};
