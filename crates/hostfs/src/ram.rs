//! A RAM disk: requests that take the time of a copy, side by side.
//!
//! The device of the FAST'24 paper's Figures 4 to 6, and the external journal of its
//! experiments. Flushes and discards take the fixed part only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::io::{Io, IoOp};

/// How fast a [`RamDisk`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamSpeed {
    /// Fixed part of a request \[ns\].
    pub request_ns: u64,
    /// Copying rate of one worker \[MB/s\].
    pub mb_s: u64,
    /// Requests served at once.
    pub n_workers: u32,
}

impl RamSpeed {
    /// About what one core copies: DDR4-2666 moves 21.3 GB/s per channel, and a copy by one
    /// core of a server of that time gets about 8 GB/s. Assumed; four requests at once,
    /// as the channels of its memory allow.
    pub const DDR4: Self = Self { request_ns: 1_000, mb_s: 8_000, n_workers: 4 };
}

/// A RAM disk.
#[derive(Clone, Debug)]
pub struct RamDisk {
    speed: RamSpeed,
    /// When each worker is free \[ns\].
    free_ns: BinaryHeap<Reverse<u64>>,
}

impl RamDisk {
    /// An idle disk.
    pub fn new(speed: RamSpeed) -> Self {
        let workers = speed.n_workers.max(1);
        Self { speed, free_ns: (0..workers).map(|_| Reverse(0)).collect() }
    }

    /// Carries out a request; when it is done \[ns\].
    pub fn submit(&mut self, io: &Io) -> u64 {
        let bytes = match io.op {
            IoOp::Read | IoOp::Write => u64::from(io.sectors) * 512,
            IoOp::Discard | IoOp::Flush => 0,
        };
        let copy_ns = bytes * 1_000 / self.speed.mb_s.max(1);
        let mut first = self.free_ns.peek_mut().expect("there is at least one worker");
        let done_ns = first.0.max(io.at_ns) + self.speed.request_ns + copy_ns;
        first.0 = done_ns;
        done_ns
    }
}

#[cfg(test)]
mod tests {
    use flashwise_hint::{Lba, WriteHint};

    use super::*;
    use crate::io::IoClass;

    #[test]
    fn requests_take_a_copy_and_share_workers() {
        let mut disk = RamDisk::new(RamSpeed { request_ns: 1_000, mb_s: 1_000, n_workers: 2 });
        let io = Io {
            at_ns: 0,
            op: IoOp::Read,
            lba: Lba(0),
            sectors: 8,
            fua: false,
            hint: WriteHint::NONE,
            class: IoClass::Data,
            measured: true,
        };
        let done: Vec<u64> = (0..4).map(|_| disk.submit(&io)).collect();
        assert_eq!(done, [5_096, 5_096, 10_192, 10_192]);
        assert_eq!(disk.submit(&Io { op: IoOp::Flush, at_ns: 20_000, ..io }), 21_000);
    }
}
