//! A device that remembers what happened to each block, and checks that what it is asked
//! makes sense.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use flashwise_hostfs::layout::FsBlock;
use flashwise_hostfs::{Application, Host, Io, IoClass, IoOp};

/// The last write of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) at_ns: u64,
    pub(crate) done_ns: u64,
    pub(crate) fua: bool,
}

/// The device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) blocks: BTreeMap<u32, Written>,
    /// Flushes: when each was asked for, and when it was done.
    flushes: Vec<(u64, u64)>,
    /// Commit blocks: the same.
    commits: Vec<(u64, u64)>,
    in_flight: BinaryHeap<Reverse<u64>>,
    last_ns: u64,
    pub(crate) n_ios: u64,
    /// A digest of all requests.
    pub(crate) digest: u64,
    seed: u64,
    speed: Speed,
}

/// How long requests take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// No time.
    Instant,
    /// 10 to 100 us.
    Fast,
    /// Anything from nothing to seconds.
    Wild,
}

impl Device {
    pub(crate) fn new(speed: Speed, seed: u64) -> Self {
        Self {
            blocks: BTreeMap::new(),
            flushes: vec![],
            commits: vec![],
            in_flight: BinaryHeap::new(),
            last_ns: 0,
            n_ios: 0,
            digest: 0,
            seed: seed | 1,
            speed,
        }
    }

    fn random(&mut self, n: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        (self.seed >> 33) % n
    }

    fn latency_ns(&mut self) -> u64 {
        match self.speed {
            Speed::Instant => 0,
            Speed::Fast => 10_000 + self.random(90_000),
            Speed::Wild => match self.random(20) {
                0..=4 => 0,
                5..=14 => self.random(200_000),
                15..=18 => self.random(20_000_000),
                _ => self.random(4_000_000_000),
            },
        }
    }

    fn note(&mut self, io: &Io) {
        let hint = (format!("{:?}", io.hint), io.op, io.class, io.fua, io.measured);
        let text = format!("{} {} {} {hint:?}", io.at_ns, io.lba.0, io.sectors);
        for byte in text.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.n_ios += 1;
    }

    /// Carries out a request; when it is done.
    pub(crate) fn submit<A: Application>(&mut self, host: &Host<A>, io: &Io) -> u64 {
        self.note(io);
        assert!(io.at_ns >= self.last_ns, "time goes back: {io:?}");
        self.last_ns = io.at_ns;
        while self.in_flight.peek().is_some_and(|done| done.0 <= io.at_ns) {
            self.in_flight.pop();
        }
        let depth = host.config().nr_requests as usize;
        assert!(self.in_flight.len() < depth, "more than {depth} requests at once: {io:?}");
        let done_ns = io.at_ns + self.latency_ns();
        self.in_flight.push(Reverse(done_ns));
        if io.op == IoOp::Flush {
            assert_eq!((io.lba.0, io.sectors), (0, 0), "{io:?}");
            self.flushes.push((io.at_ns, done_ns));
            return done_ns;
        }
        assert!(io.lba.0.is_multiple_of(8) && io.sectors.is_multiple_of(8), "{io:?}");
        let start = (io.lba.0 / 8) as u32;
        let end = start + io.sectors / 8;
        assert!(start < end && end <= host.layout().n_blocks(), "{io:?}");
        if io.op == IoOp::Write && io.class == IoClass::Journal && io.fua {
            self.commits.push((io.at_ns, done_ns));
        }
        for block in start..end {
            self.touch(host, io, block, done_ns);
        }
        done_ns
    }

    fn touch<A: Application>(&mut self, host: &Host<A>, io: &Io, block: u32, done_ns: u64) {
        let layout = host.layout();
        let journal = layout.journal_ranges();
        let in_journal = journal.iter().any(|range| range.contains(&block));
        match io.op {
            IoOp::Read => {
                assert!(self.blocks.contains_key(&block), "{block} was not written: {io:?}");
            }
            IoOp::Write => {
                assert_eq!(in_journal, io.class == IoClass::Journal, "{block}: {io:?}");
                if io.class == IoClass::Data {
                    assert!(!layout.is_metadata(FsBlock(block)), "{block} is metadata: {io:?}");
                    assert!(!host.is_free(FsBlock(block)), "{block} is free: {io:?}");
                }
                let written = Written { at_ns: io.at_ns, done_ns, fua: io.fua };
                self.blocks.insert(block, written);
            }
            IoOp::Discard => {
                let is_mkfs = io.class == IoClass::Metadata;
                assert!(is_mkfs || host.is_free(FsBlock(block)), "{block} is in use: {io:?}");
                self.blocks.remove(&block);
            }
            IoOp::Flush => {}
        }
    }

    /// Whether the block was written since `since_ns`, and that survives a loss of power at
    /// `now_ns`.
    pub(crate) fn is_durable(&self, block: u32, since_ns: u64, now_ns: u64, barrier: bool) -> bool {
        let Some(written) = self.blocks.get(&block) else { return false };
        let flushed = |(at, done): &(u64, u64)| *at >= written.done_ns && *done <= now_ns;
        written.at_ns >= since_ns
            && written.done_ns <= now_ns
            && (!barrier || written.fua || self.flushes.iter().rev().any(flushed))
    }

    /// Whether a transaction was committed since.
    pub(crate) fn has_committed(&self, since_ns: u64, now_ns: u64) -> bool {
        self.commits.iter().rev().any(|(at, done)| *at >= since_ns && *done <= now_ns)
    }
}
