//! Recorded block traces: find out what a file is, then read it row by row.
//!
//! Compression is told by the first bytes and the format by the first line, never by
//! the name. Reading streams: memory is one line and the decoder's window (at most
//! 128 MiB for zstd), whatever the length of the file. Times are exact integers
//! throughout; a decimal time keeps its nanoseconds.
//!
//! # Formats
//!
//! ## `mqsim`
//! ASCII, five columns separated by blanks, no header. Source: the trace reader of
//! CMU-SAFARI/MQSim.
//!
//! ```text
//! 938513000 4 264719034 16 0
//! ```
//! | column | meaning | unit |
//! |---|---|---|
//! | 1 | arrival | ns |
//! | 2 | device number; read and ignored, all devices share one address space | |
//! | 3 | first sector | 512 B |
//! | 4 | length, at least 1 | 512 B |
//! | 5 | 0 write, 1 read | |
//!
//! ## `cloudphysics`
//! Comma-separated with a header. Source: the CloudPhysics sample of libCacheSim.
//!
//! ```text
//! version,time,op,size,lbn
//! 1,5633898,2a,512,42932745
//! ```
//! | column | meaning | unit |
//! |---|---|---|
//! | version | version of the record, an integer; read and ignored | |
//! | time | arrival, integer or decimal | s |
//! | op | SCSI operation code in hex: 8, 28, 88, a8 read; a, 2a, 8a, aa write; 42 unmap (trim); 35, 91 synchronize cache (flush); 41, 93 write same (write zeroes) | |
//! | size | length, a multiple of 512, at least 512 (flush: any) | bytes |
//! | lbn | first sector | 512 B |
//!
//! In both, [`TraceOptions::time_unit`] overrides the unit of the time column, times
//! may have decimals (digits below 1 ns are dropped) and never go back, lines end in
//! LF or CRLF, the last one may lack its end, and blank lines may stand at the end
//! only.

mod cloudphysics;
mod fields;
mod input;
mod mqsim;
mod options;
mod reader;
mod writer;

pub use input::Compression;
pub use options::{Format, TimeUnit, TraceOptions};
pub use reader::{TraceReader, open_trace, read_trace};
pub use writer::TraceWriter;
