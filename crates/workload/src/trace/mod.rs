//! Recorded block traces: find out what a file is, then read it row by row.
//!
//! Compression is told by the first bytes and the format by the first line, never by
//! the name ([`Format`] lists them; docs/traces.md describes each with an example).
//! Reading streams: memory is one line, the decoder's window (at most 128 MiB), the
//! rows held back to bring times in order, and the names of the devices, whatever the
//! length of the file. Times are exact integers throughout; a decimal time keeps its
//! nanoseconds.
//!
//! The way of a row:
//!
//! ```text
//! compression -> input (lines) -> parser (one file per format) -> devices -> order
//!                                        \_ what is no request -> tally
//! ```
//!
//! Rules for all formats: [`TraceOptions::time_unit`] overrides the unit of the time
//! column; times may have decimals (digits below 1 ns are dropped); lines end in LF or
//! CRLF, the last one may lack its end; blank lines may stand at the end only (anywhere
//! in a blkparse text).

mod alibaba;
mod blkparse;
mod cloudphysics;
mod columns;
mod compression;
mod custom;
mod detect;
mod devices;
mod fields;
mod fiu;
mod format;
mod input;
mod iolog;
mod mqsim;
mod msr;
mod notices;
mod options;
mod order;
mod parser;
mod reader;
mod spc;
mod systor17;
mod tally;
mod tencent;
mod vscsi;
mod writer;

pub use columns::Columns;
pub use compression::Compression;
pub use devices::{DeviceMode, DeviceUse};
pub use format::Format;
pub use options::{BlkAction, TimeUnit, TraceOptions};
pub use reader::{TraceReader, open_trace, read_trace};
pub use tally::{BadLine, Tally};
pub use writer::TraceWriter;
