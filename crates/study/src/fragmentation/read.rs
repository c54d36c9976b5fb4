//! Readers: programs that read whole files, with one host gap for each kind of program.
//!
//! A read of a file becomes one command for each piece and each largest command within it;
//! all of them are submitted at once (the paper's queue depth is 1,023). The gap is the time
//! of the host between two reads of one thread. It is set on the contiguous case alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_hint::{Lba, SECTOR_BYTES};
use flashwise_ssd::{Command, Ssd, SsdCounters};

use super::write::{Piece, submit};
use crate::StudyError;

/// How a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    /// Length of a read \[bytes\].
    pub(crate) read_bytes: u64,
    /// Time of the host for each read \[ns\].
    pub(crate) gap_ns: u64,
    /// The gap is work that one thread at a time can do before its read (a lock); otherwise
    /// each thread does its own afterwards.
    pub(crate) one_at_a_time: bool,
    /// The host works on a read while the next one is under way (read-ahead). Otherwise the
    /// next one begins afterwards.
    pub(crate) ahead: bool,
    /// Threads, each with a file of its own at any time.
    pub(crate) n_threads: usize,
}

/// What reading came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ReadFigures {
    pub(crate) mib_s: f64,
    pub(crate) die_collisions: u64,
    pub(crate) senses_per_256_kib: f64,
}

/// A thread amid a file.
struct Thread<'a> {
    file: &'a [Piece],
    /// Piece, and sectors of it that are read.
    at: (usize, u64),
    /// The host is busy with what was read until \[ns\].
    busy_ns: u64,
}

impl Reader {
    /// Reads `files` one after another, each thread taking the next one.
    pub(crate) fn read<'a>(
        &self,
        ssd: &mut Ssd,
        files: impl IntoIterator<Item = &'a [Piece]>,
    ) -> Result<ReadFigures, StudyError> {
        let start_ns = ssd.rest();
        let before = ssd.counters();
        let mut files = files.into_iter().filter(|f| !f.is_empty());
        let (mut threads, mut due) = (vec![], BinaryHeap::new());
        for (i, file) in files.by_ref().take(self.n_threads).enumerate() {
            threads.push(Thread { file, at: (0, 0), busy_ns: start_ns });
            due.push(Reverse((start_ns, i)));
        }
        let (mut bytes, mut end_ns) = (0, start_ns);
        let mut unlocked_ns = start_ns;
        while let Some(Reverse((mut now_ns, i))) = due.pop() {
            if self.one_at_a_time {
                now_ns = now_ns.max(unlocked_ns) + self.gap_ns;
                unlocked_ns = now_ns;
            }
            let thread = &mut threads[i];
            let (n, done_ns) = self.read_once(ssd, thread, now_ns)?;
            bytes += n;
            // With read-ahead the next read begins when the host turns to this one.
            let from_ns = done_ns.max(thread.busy_ns);
            let after_ns = if self.one_at_a_time { 0 } else { self.gap_ns };
            thread.busy_ns = from_ns + after_ns;
            end_ns = end_ns.max(thread.busy_ns);
            if thread.at.0 == thread.file.len() {
                match files.next() {
                    Some(file) => (thread.file, thread.at) = (file, (0, 0)),
                    None => continue,
                }
            }
            due.push(Reverse((if self.ahead { from_ns } else { thread.busy_ns }, i)));
        }
        Ok(figures(&ssd.counters().since(&before), bytes, end_ns - start_ns))
    }

    /// One read of a thread: bytes, and when they are there \[ns\].
    fn read_once(
        &self,
        ssd: &mut Ssd,
        thread: &mut Thread<'_>,
        now_ns: u64,
    ) -> Result<(u64, u64), StudyError> {
        let mut left = self.read_bytes / SECTOR_BYTES;
        let mut done_ns = now_ns;
        while left > 0 && thread.at.0 < thread.file.len() {
            let piece = thread.file[thread.at.0];
            let n = (piece.sectors - thread.at.1).min(left).min(u64::from(ssd.max_sectors()));
            let lba = Lba(piece.lba + thread.at.1);
            let command = Command::Read { lba, sectors: n as u32 };
            done_ns = done_ns.max(submit(ssd, &command, now_ns, "reading")?);
            left -= n;
            thread.at.1 += n;
            if thread.at.1 == piece.sectors {
                thread.at = (thread.at.0 + 1, 0);
            }
        }
        Ok((self.read_bytes - left * SECTOR_BYTES, done_ns))
    }
}

fn figures(counters: &SsdCounters, bytes: u64, ns: u64) -> ReadFigures {
    let mib = bytes as f64 / f64::from(1 << 20);
    ReadFigures {
        mib_s: mib / (ns.max(1) as f64 / 1e9),
        die_collisions: counters.nand.die_collisions,
        senses_per_256_kib: counters.nand.page_reads as f64 / (mib * 4.0).max(f64::MIN_POSITIVE),
    }
}
