//! Any bytes as a fio job file.
//!
//! Oracle: if the bytes are accepted, the job's canonical form reads back as the same
//! job, and on drives from nothing to 8 EiB it resolves either to requests that stay
//! within the drive or to an error; errors name the file, a line that exists, and what
//! was expected. The property tests of flashwise-workload run the same function.
//!
//! Run: `cargo +nightly fuzz run fio_job`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashwise_workload::oracle::fio_job(data));
