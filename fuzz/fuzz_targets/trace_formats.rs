//! Any bytes in every trace format, text and binary, under varying options: the first
//! byte names the format, the second the options, and the rest is the file.
//!
//! Oracle: every line is accounted for as a row, as something else or as skipped;
//! times begin at 0 and never decrease; read again, or packed by gzip or zstd, the
//! same bytes give the same requests or the same error; written down in the formats
//! that can be written, the requests read back the same. Errors name the file, a line
//! that exists, and what was expected. The tests of flashwise-workload run the same
//! function.
//!
//! Run: `cargo +nightly fuzz run trace_formats`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashwise_workload::oracle::trace_formats(data));
