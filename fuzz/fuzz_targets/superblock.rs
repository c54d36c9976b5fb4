//! Any changes to small images of ext3, ext4, XFS and a disk with partitions.
//!
//! Oracle: the journal lies inside its file system, no byte of it twice, with its
//! superblock and fast-commit area inside it; the same image gives the same answer; an
//! error says at which byte. A property test of flashwise-superblock runs the same
//! function.
//!
//! Run: `cargo +nightly fuzz run superblock`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    flashwise_superblock::oracle::changed_image(data);
});
