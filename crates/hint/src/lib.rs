//! The vocabulary all layers share: logical addresses, what the host says about
//! a write ([`WriteHint`]), and what a file system says about a file
//! ([`FileEvent`]). Pure data, no dependencies: a trace reader, the FTL, the wire
//! encoding and a live agent all speak it.
//!
//! Invariant: a hint changes *where* data goes, never *what* is stored. A wrong or
//! stale relation or class may cost speed and nothing else; a handle the device
//! lacks is refused.

mod file;
mod write;

pub use file::{FileEvent, FileId, FileOp};
pub use write::{DataClass, Handle, Lba, Relation, SECTOR_BYTES, WriteHint};
