//! Any bytes as a trace file, in any format and compression.
//!
//! Oracle: if the bytes are accepted, every row became one request within bounds and
//! in order of time, a slow reading of plain text by the standard library agrees, and
//! the requests written down again (plain, gzip, zstd) read back the same. If they are
//! refused, the error names the file, a line that exists, and what was expected.
//! The property tests of flashwise-workload run the same function.
//!
//! Run: `cargo +nightly fuzz run trace_reader`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashwise_workload::oracle::trace_reader(data));
