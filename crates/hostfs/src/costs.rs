//! What the host's CPU spends, and how long its threads take to wake.
//!
//! Each figure is time on one core \[ns\]. They decide how fast a thread can ask for I/O, and
//! with that whether a drive or the host is what a workload waits for.

/// CPU time of the parts of the host path \[ns\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCosts {
    /// Enter and leave the kernel, find the file: every call.
    pub syscall_ns: u64,
    /// Walk a path to an inode: open, stat, and each path of other calls.
    pub path_ns: u64,
    /// Change a directory, make or free an inode: create, unlink, rename, link, mkdir.
    pub namespace_ns: u64,
    /// Copy 4 KiB between a program and the page cache, with the page's bookkeeping.
    pub page_ns: u64,
    /// Begin and end a buffered write.
    pub write_ns: u64,
    /// Get 4 KiB of memory for a page that was not cached.
    pub new_page_ns: u64,
    /// Give a cached page up, with its block: truncate, unlink.
    pub free_page_ns: u64,
    /// Find or allocate one extent (an iomap, for direct I/O).
    pub map_ns: u64,
    /// Make one bio.
    pub bio_ns: u64,
    /// Add one page to a bio; direct I/O pins the page of the program as well.
    pub bio_page_ns: u64,
    /// Make one request of bios.
    pub request_ns: u64,
    /// Hand one request to the driver: build the command, ring the doorbell.
    pub command_ns: u64,
    /// From the end of a request to its thread running again: interrupt, completion, wake-up.
    pub wake_ns: u64,
    /// Put one block into a transaction.
    pub journal_block_ns: u64,
    /// Copy and checksum one block of a transaction that commits.
    pub commit_block_ns: u64,
}

impl HostCosts {
    /// No cost at all: only the drive takes time.
    pub const NONE: Self = Self {
        syscall_ns: 0,
        path_ns: 0,
        namespace_ns: 0,
        page_ns: 0,
        write_ns: 0,
        new_page_ns: 0,
        free_page_ns: 0,
        map_ns: 0,
        bio_ns: 0,
        bio_page_ns: 0,
        request_ns: 0,
        command_ns: 0,
        wake_ns: 0,
        journal_block_ns: 0,
        commit_block_ns: 0,
    };

    /// A server core (Xeon at 2.8 GHz, Linux 6.18), rounded from what
    /// `cargo run --release -p flashwise-realfs --bin host-costs -- DIR` printed on an ext4 in
    /// memory; it differs by a third from run to run. How a direct read divides into its
    /// parts, from mapping to the command, is assumed, as are `wake_ns` and the two of the
    /// journal.
    pub const DEFAULT: Self = Self {
        syscall_ns: 300,
        path_ns: 400,
        namespace_ns: 6_000,
        page_ns: 500,
        write_ns: 1_000,
        new_page_ns: 450,
        free_page_ns: 200,
        map_ns: 350,
        bio_ns: 400,
        bio_page_ns: 130,
        request_ns: 900,
        command_ns: 700,
        wake_ns: 3_000,
        journal_block_ns: 250,
        commit_block_ns: 800,
    };

    /// The host of the FAST'24 fragmentation paper (Xeon Gold 6138 at 2.0 GHz, Linux 5.15).
    /// Its Figures 4 and 5: reading 8 MiB in 256 pieces spends 9.7 ms in the kernel, 1.5
    /// times what one piece takes, so each piece adds (9.7 - 9.7 / 1.5) ms / 255 = 12.7 us
    /// of mapping and request creation, and the 2,048 pages take the other 6.5 ms (3.2 us
    /// each, measured with tracing on). How the 12.7 us split is in the figure but not in
    /// the text: mostly request creation, an iomap for each piece, little for bios.
    pub const FAST24: Self = Self {
        map_ns: 2_400,
        bio_ns: 1_000,
        bio_page_ns: 3_160,
        request_ns: 7_500,
        command_ns: 1_800,
        ..Self::DEFAULT
    };

    /// Sets by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("default", Self::DEFAULT), ("fast24", Self::FAST24), ("none", Self::NONE)];
}
