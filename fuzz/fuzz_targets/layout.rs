//! Any bytes as the output of `filefrag -v` (`study fragmentation --extents`).
//!
//! Oracle: extents follow one another and share no block, read the same when they are
//! written out again, and all their data goes onto the drive once; a refusal names a line
//! that exists.
//!
//! Run: `cargo +nightly fuzz run layout`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| flashwise_study::fragmentation::oracle::layout(data));
