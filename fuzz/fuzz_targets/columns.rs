//! Any text as a description of columns (`--columns`).
//!
//! Oracle: a description that is accepted prints as a description with the same
//! meaning; a refusal says what was expected.
//!
//! Run: `cargo +nightly fuzz run columns`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashwise_workload::oracle::columns(data));
