//! Any bytes as a fio job file.
//!
//! Oracle: if the bytes are accepted, the canonical form of the file reads back as the
//! same jobs, and on drives from nothing to 8 EiB they either run or an error names the
//! file, a line that exists, and what was expected. Jobs that run stay in their regions,
//! on a drive that is now fast, now slow; time never goes back; and a plain job is the
//! same stream on the fast path. Lines `include more.inc` and `include self.inc` reach
//! the code that reads other files. The property tests of flashwise-workload run the
//! same function.
//!
//! Run: `cargo +nightly fuzz run fio_job`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    flashwise_workload::oracle::fio_job(data);
});
