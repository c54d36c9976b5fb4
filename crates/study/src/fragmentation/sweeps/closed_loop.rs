//! A closed loop of reads on a raw drive: so many under way, a new one for each that is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_hint::{Lba, SECTOR_BYTES};
use flashwise_ssd::{Command, Lpn, Ssd};

use crate::StudyError;
use crate::fragmentation::write::submit;

/// How a raw drive is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    /// Reads under way.
    pub(super) depth: usize,
    /// Time of the host between the end of a read and the next one in its place \[ns\].
    pub(super) gap_ns: u64,
}

/// A raw drive and the time it has reached.
pub(super) struct RawDrive {
    pub(super) ssd: Ssd,
    /// The end of the last read: data crosses the link after the flash has come to rest.
    now_ns: u64,
}

impl RawDrive {
    /// A blank drive whose first `bytes` are written in order, without time.
    pub(super) fn written(mut ssd: Ssd, bytes: u64) -> Self {
        let n_units = bytes / SECTOR_BYTES / ssd.sectors_per_unit();
        (0..n_units).for_each(|unit| ssd.fill_unit(Lpn(unit as u32)));
        Self { ssd, now_ns: 0 }
    }

    /// Reads of `bytes` at all `offsets`: how long they take \[ns\].
    pub(super) fn read_all(
        &mut self,
        how: Loop,
        bytes: u64,
        offsets: impl IntoIterator<Item = u64>,
    ) -> Result<u64, StudyError> {
        let times = self.run(how, bytes, offsets, 0)?;
        Ok(times.end_ns - times.start_ns)
    }

    /// Reads of `bytes` at `offsets` while the loop is full: from the submission of the read
    /// after the first `n_before` to that of the last \[ns\].
    pub(super) fn read_steadily(
        &mut self,
        how: Loop,
        bytes: u64,
        offsets: impl IntoIterator<Item = u64>,
        n_before: usize,
    ) -> Result<u64, StudyError> {
        let times = self.run(how, bytes, offsets, n_before)?;
        Ok(times.last_ns - times.from_ns)
    }

    fn run(
        &mut self,
        how: Loop,
        bytes: u64,
        offsets: impl IntoIterator<Item = u64>,
        n_before: usize,
    ) -> Result<Times, StudyError> {
        let start_ns = self.ssd.rest().max(self.now_ns);
        let mut times = Times { start_ns, from_ns: start_ns, last_ns: start_ns, end_ns: start_ns };
        let mut due: BinaryHeap<_> = (0..how.depth).map(|_| Reverse(start_ns)).collect();
        for (i, offset) in offsets.into_iter().enumerate() {
            let Some(Reverse(now_ns)) = due.pop() else { break };
            times.last_ns = now_ns;
            if i == n_before {
                times.from_ns = now_ns;
            }
            let done_ns = read(&mut self.ssd, offset, bytes, now_ns)? + how.gap_ns;
            times.end_ns = times.end_ns.max(done_ns);
            due.push(Reverse(done_ns));
        }
        self.now_ns = times.end_ns;
        Ok(times)
    }
}

/// When a loop began, submitted the first read that counts, submitted its last, and ended
/// \[ns\].
struct Times {
    start_ns: u64,
    from_ns: u64,
    last_ns: u64,
    end_ns: u64,
}

/// One read, in commands that the drive takes; when the last is done \[ns\].
fn read(ssd: &mut Ssd, offset: u64, bytes: u64, now_ns: u64) -> Result<u64, StudyError> {
    let (mut lba, end) = (offset / SECTOR_BYTES, (offset + bytes) / SECTOR_BYTES);
    let mut done_ns = now_ns;
    while lba < end {
        let sectors = (end - lba).min(u64::from(ssd.max_sectors())) as u32;
        let command = Command::Read { lba: Lba(lba), sectors };
        done_ns = done_ns.max(submit(ssd, &command, now_ns, "reading")?);
        lba += u64::from(sectors);
    }
    Ok(done_ns)
}
