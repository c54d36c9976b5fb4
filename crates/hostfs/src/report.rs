//! What a run did to the device, counted where it happens.

use crate::io::{IoClass, IoOp};

/// Totals of one class of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Requests that write.
    pub write_requests: u64,
    /// Bytes they write.
    pub write_bytes: u64,
    /// Requests that read.
    pub read_requests: u64,
    /// Bytes they read.
    pub read_bytes: u64,
}

/// Totals since the host started. Subtract two of them for an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By class, as [`IoClass::ALL`].
    pub classes: [ClassCounts; 3],
    /// Flushes, those before a commit block included.
    pub flushes: u64,
    /// Writes with force unit access.
    pub fua: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes they name.
    pub discard_bytes: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Log blocks they took, commit blocks included.
    pub log_blocks: u64,
    /// Writes of the journal's superblock.
    pub journal_superblocks: u64,
    /// Times a thread had to make log space.
    pub checkpoints: u64,
    /// Blocks written home for log space.
    pub checkpoint_blocks: u64,
    /// Page-cache pages found when read.
    pub cache_hits: u64,
    /// Pages that had to be read.
    pub cache_misses: u64,
}

impl Counts {
    pub(crate) fn count(&mut self, op: IoOp, class: IoClass, bytes: u64, fua: bool) {
        let of_class = &mut self.classes[class as usize];
        match op {
            IoOp::Read => {
                of_class.read_requests += 1;
                of_class.read_bytes += bytes;
            }
            IoOp::Write => {
                of_class.write_requests += 1;
                of_class.write_bytes += bytes;
                self.fua += u64::from(fua);
            }
            IoOp::Discard => {
                self.discards += 1;
                self.discard_bytes += bytes;
            }
            IoOp::Flush => self.flushes += 1,
        }
    }

    /// Of one class.
    pub fn class(&self, class: IoClass) -> &ClassCounts {
        &self.classes[class as usize]
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut classes = self.classes;
        for (now, before) in classes.iter_mut().zip(&earlier.classes) {
            now.write_requests -= before.write_requests;
            now.write_bytes -= before.write_bytes;
            now.read_requests -= before.read_requests;
            now.read_bytes -= before.read_bytes;
        }
        Self {
            classes,
            flushes: self.flushes - earlier.flushes,
            fua: self.fua - earlier.fua,
            discards: self.discards - earlier.discards,
            discard_bytes: self.discard_bytes - earlier.discard_bytes,
            commits: self.commits - earlier.commits,
            log_blocks: self.log_blocks - earlier.log_blocks,
            journal_superblocks: self.journal_superblocks - earlier.journal_superblocks,
            checkpoints: self.checkpoints - earlier.checkpoints,
            checkpoint_blocks: self.checkpoint_blocks - earlier.checkpoint_blocks,
            cache_hits: self.cache_hits - earlier.cache_hits,
            cache_misses: self.cache_misses - earlier.cache_misses,
        }
    }
}
