//! What a job asks for, one request after another, without time.
//!
//! The rules are those of fio's `get_next_block`, `get_rw_ddir` and `io_bytes_exceeded`
//! (io_u.c, backend.c): the direction comes first, then the address, then the length.
//! Where fio itself behaves in different ways, [docs/fio.md] says which was chosen.
//!
//! Invariants: the same spec yields the same stream; every request lies in the region.
//!
//! [docs/fio.md]: https://github.com/flashwise/flashwise/blob/main/docs/fio.md

use flashwise_hint::{Handle, Lba};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::addresses::Addresses;
use super::{Direction, Handles, Mix, Sequencer, StreamSpec};
use crate::zipf::mul_shift;
use crate::{OpKind, Request, Source, WorkloadError};

/// What comes next in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A request of this direction.
    Go(Direction),
    /// A flush because enough was written.
    Flush,
    /// The last flush.
    LastFlush,
    /// Nothing.
    End,
}

/// The requests of one job.
#[derive(Clone, Debug)]
pub struct JobStream {
    spec: StreamSpec,
    rng: Xoshiro256PlusPlus,
    /// State of the generator at the start of a pass.
    rng_at_start: Xoshiro256PlusPlus,
    /// A draw below this is a read.
    reads_below: u64,
    addresses: Addresses,
    /// Where the last request began and ended, by direction \[sectors in the region\].
    last: [Last; 3],
    n_by_direction: [u64; 3],
    bytes: [u64; 3],
    next_handle: usize,
    /// Requests until a new place.
    until_new: u64,
    last_was_write: bool,
    last_was_flush: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    start: u64,
    end: u64,
}

impl JobStream {
    /// Prepares the tables of a stream.
    pub fn new(spec: StreamSpec) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(spec.seed);
        // Independent draws have no tables, and their stream is that of `Synthetic`.
        let mut for_tables = Xoshiro256PlusPlus::seed_from_u64(spec.seed ^ 0x7AB1_E5ED);
        let addresses = Addresses::new(&spec, &mut for_tables);
        let reads_below = match spec.mix {
            Mix::ReadPercent(percent) => ((u128::from(percent) << 64) / 100) as u64,
            _ => 0,
        };
        if spec.random_map {
            rng.jump();
        }
        Self {
            rng_at_start: rng.clone(),
            rng,
            reads_below,
            addresses,
            last: [Last::default(); 3],
            n_by_direction: [0; 3],
            bytes: [0; 3],
            next_handle: 0,
            until_new: 1,
            last_was_write: false,
            last_was_flush: false,
            spec,
        }
    }

    /// What comes next. Draws the direction of a mix, so it is asked once per request.
    #[inline]
    pub(crate) fn step(&mut self) -> Step {
        if self.is_over() {
            return self.end();
        }
        if self.last_was_write && self.wants_flush() {
            return Step::Flush;
        }
        Step::Go(match self.spec.mix {
            Mix::Only(direction) => direction,
            Mix::ReadPercent(100) => Direction::Read,
            Mix::ReadPercent(0) => Direction::Write,
            Mix::ReadPercent(_) if self.rng.next_u64() < self.reads_below => Direction::Read,
            Mix::ReadPercent(_) => Direction::Write,
            Mix::TrimWrite if self.owes_write() => Direction::Write,
            Mix::TrimWrite => Direction::Trim,
        })
    }

    /// What comes after the last request, also of a stream that is cut off.
    pub(crate) fn end(&self) -> Step {
        let wrote = self.n_by_direction[Direction::Write as usize] > 0;
        let flush = self.spec.flush_at_end && wrote && !self.last_was_flush;
        if flush { Step::LastFlush } else { Step::End }
    }

    fn wants_flush(&self) -> bool {
        let n = self.n_by_direction[Direction::Write as usize];
        self.spec.flush_every.iter().flatten().any(|every| n.is_multiple_of(*every))
    }

    fn owes_write(&self) -> bool {
        let [_, writes, trims] = self.n_by_direction;
        trims > writes
    }

    fn is_over(&self) -> bool {
        let [reads, writes, trims] = self.bytes;
        let bytes = match self.spec.mix {
            Mix::Only(direction) => self.bytes[direction as usize],
            Mix::ReadPercent(_) => reads + writes,
            Mix::TrimWrite => writes,
        };
        // A trim and its write count as one request of the limit.
        let n: u64 = match self.spec.mix {
            Mix::TrimWrite if self.owes_write() => return false,
            Mix::TrimWrite => self.n_by_direction[Direction::Write as usize],
            _ => self.n_by_direction.iter().sum(),
        };
        debug_assert!(trims == 0 || !matches!(self.spec.mix, Mix::ReadPercent(_)));
        self.spec.limit_bytes.is_some_and(|limit| bytes >= limit)
            || self.spec.limit_requests.is_some_and(|limit| n >= limit)
    }

    /// A flush that [`step`](Self::step) announced.
    pub(crate) fn flush(&mut self) -> Request {
        self.last_was_write = false;
        self.last_was_flush = true;
        Request::new(OpKind::Flush, Lba(0), 0)
    }

    /// The next request of a direction.
    #[inline]
    pub(crate) fn request(&mut self, direction: Direction) -> Request {
        let d = direction as usize;
        let (offset, sectors) = if self.spec.mix == Mix::TrimWrite && direction == Direction::Write
        {
            let trimmed = self.last[Direction::Trim as usize];
            (trimmed.start, (trimmed.end - trimmed.start) as u32)
        } else {
            self.place(direction)
        };
        self.last[d] = Last { start: offset, end: offset + u64::from(sectors) };
        self.n_by_direction[d] += 1;
        self.bytes[d] = self.bytes[d].saturating_add(u64::from(sectors) * 512);
        self.last_was_write = direction == Direction::Write;
        self.last_was_flush = false;
        let op = [OpKind::Read, OpKind::Write, OpKind::Trim][d];
        let mut request = Request::new(op, Lba(self.spec.region_start + offset), sectors);
        if direction == Direction::Write {
            request.fua = self.spec.fua;
            request.hint.handle = Handle(self.handle());
        }
        request
    }

    /// Offset in the region and length \[sectors\].
    #[inline]
    fn place(&mut self, direction: Direction) -> (u64, u32) {
        let d = direction as usize;
        if self.spec.sequential {
            return self.follow(direction).unwrap_or_else(|| self.length_at(direction, 0));
        }
        if let Some(Sequencer { every, identical }) = self.spec.sequencer {
            self.until_new -= 1;
            if self.until_new > 0 {
                if identical {
                    return self.length_at(direction, self.last[d].start);
                }
                return self.follow(direction).unwrap_or_else(|| self.jump(direction));
            }
            self.until_new = every;
        }
        let percent = self.spec.random_percent[d];
        if percent < 100 && mul_shift(self.rng.next_u64(), 100) >= u64::from(percent) {
            return self.follow(direction).unwrap_or_else(|| self.jump(direction));
        }
        self.jump(direction)
    }

    /// Where the last request of the direction ended; `None` at the end of the region.
    #[inline]
    fn follow(&mut self, direction: Direction) -> Option<(u64, u32)> {
        let d = direction as usize;
        let end = self.last[d].end;
        // fio leaves no gap before the first request.
        let gap = if end == 0 { 0 } else { self.spec.gap_sectors };
        let offset = end.saturating_add(gap);
        let min = u64::from(self.spec.sizes[d].min());
        (offset.saturating_add(min) <= self.spec.region_sectors)
            .then(|| self.length_at(direction, offset))
    }

    #[inline]
    fn jump(&mut self, direction: Direction) -> (u64, u32) {
        let drawn = self.addresses.draw(direction, &mut self.rng);
        let offset = drawn.unwrap_or_else(|| {
            // Everything was visited: the next pass is the same pass again.
            self.addresses.restart();
            self.rng = self.rng_at_start.clone();
            self.addresses.draw(direction, &mut self.rng).unwrap_or(0)
        });
        let (offset, sectors) = self.length_at(direction, offset);
        (offset, self.addresses.claim(direction, offset, sectors))
    }

    #[inline]
    fn length_at(&mut self, direction: Direction, offset: u64) -> (u64, u32) {
        let room = self.spec.region_sectors - offset;
        (offset, self.spec.sizes[direction as usize].draw(room, &mut self.rng))
    }

    #[inline]
    fn handle(&mut self) -> u16 {
        match &self.spec.handles {
            Handles::One(handle) => *handle,
            Handles::RoundRobin(handles) => {
                let handle = handles[self.next_handle];
                self.next_handle = (self.next_handle + 1) % handles.len();
                handle
            }
            Handles::Random(handles) => {
                handles[mul_shift(self.rng.next_u64(), handles.len() as u64) as usize]
            }
        }
    }
}

impl Source for JobStream {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        Ok(match self.step() {
            Step::Go(direction) => Some(self.request(direction)),
            Step::Flush | Step::LastFlush => Some(self.flush()),
            Step::End => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sizes, Spread};
    use super::*;
    use crate::{Synthetic, SyntheticSpec};

    fn base(n_blocks: u64) -> StreamSpec {
        StreamSpec {
            region_start: 1000,
            region_sectors: n_blocks * 8,
            mix: Mix::Only(Direction::Write),
            sequential: false,
            gap_sectors: 0,
            sequencer: None,
            random_percent: [100; 3],
            sizes: [const { Sizes::Fixed(8) }; 3],
            align: [8; 3],
            spread: Spread::Uniform,
            random_map: true,
            limit_bytes: Some(n_blocks * 4096),
            limit_requests: None,
            flush_every: [None; 2],
            flush_at_end: false,
            fua: false,
            handles: Handles::One(0),
            seed: 3,
        }
    }

    fn take(spec: StreamSpec) -> Vec<Request> {
        let (start, end) = (spec.region_start, spec.region_start + spec.region_sectors);
        let mut stream = JobStream::new(spec);
        let mut out = vec![];
        while let Some(request) = stream.next_request().unwrap() {
            assert!(request.op == OpKind::Flush || request.lba.0 >= start && request.end() <= end);
            out.push(request);
        }
        out
    }

    fn blocks(requests: &[Request]) -> Vec<u64> {
        requests.iter().map(|r| (r.lba.0 - 1000) / 8).collect()
    }

    #[test]
    fn a_pass_visits_every_block_once_and_passes_are_alike() {
        for mix in [Mix::Only(Direction::Write), Mix::ReadPercent(30), Mix::Only(Direction::Trim)] {
            let spec = StreamSpec { mix, limit_bytes: Some(2 * 500 * 4096), ..base(500) };
            let all = take(spec);
            let mut first = blocks(&all[..500]);
            assert_eq!(first, blocks(&all[500..]));
            assert!(!first.is_sorted());
            first.sort_unstable();
            assert_eq!(first, (0..500).collect::<Vec<_>>());
        }
    }

    #[test]
    fn requests_of_many_lengths_cover_every_block_once() {
        let split = Sizes::Split(vec![(64, 20), (8, 50), (24, 30)]);
        let sizes = [const { Sizes::Fixed(8) }; 3].map(|_| split.clone());
        let requests = take(StreamSpec { sizes, ..base(1000) });
        let mut seen = vec![0; 1000];
        for r in &requests {
            let first = (r.lba.0 - 1000) / 8;
            (first..first + u64::from(r.sectors) / 8).for_each(|b| seen[b as usize] += 1);
        }
        assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
        assert!(requests.len() < 700, "{}", requests.len());
    }

    #[test]
    fn plain_streams_are_those_of_the_fast_generator() {
        for (sequential, percent) in [(false, 0), (false, 70), (true, 100), (true, 40)] {
            let mix = Mix::ReadPercent(percent);
            let spec = StreamSpec {
                sequential,
                mix,
                random_map: false,
                limit_bytes: Some(4096 * 3000),
                ..base(777)
            };
            let fast = SyntheticSpec {
                sequential,
                read_percent: percent,
                region_start: 1000,
                n_requests: Some(3000),
                ..SyntheticSpec::random_write(777 * 8, 3)
            };
            let mut fast = Synthetic::new(fast).unwrap();
            for request in take(spec) {
                assert_eq!(fast.next_request().unwrap(), Some(request));
            }
            assert_eq!(fast.next_request().unwrap(), None);
        }
    }

    #[test]
    fn flushes_come_in_their_rhythm_and_at_the_end() {
        let spec = StreamSpec { flush_every: [Some(3), None], flush_at_end: true, ..base(7) };
        let text = |requests: &[Request]| -> String {
            requests.iter().map(|r| if r.op == OpKind::Flush { 'f' } else { 'w' }).collect()
        };
        assert_eq!(text(&take(spec.clone())), "wwwfwwwfwf");
        assert_eq!(
            text(&take(StreamSpec { flush_every: [Some(3), Some(2)], ..spec })),
            "wwfwfwfwwfwf"
        );
        // No rhythm after the last write.
        let spec = StreamSpec { flush_every: [Some(3), None], ..base(6) };
        assert_eq!(text(&take(spec)), "wwwfwww");
        let reads = StreamSpec { mix: Mix::Only(Direction::Read), flush_at_end: true, ..base(7) };
        assert!(take(reads).iter().all(|r| r.op == OpKind::Read));
    }

    #[test]
    fn trim_and_write_alternate_on_the_same_blocks() {
        let spec = StreamSpec { mix: Mix::TrimWrite, ..base(50) };
        for sequential in [false, true] {
            let requests = take(StreamSpec { sequential, ..spec.clone() });
            assert_eq!(requests.len(), 100);
            for pair in requests.chunks(2) {
                assert_eq!((pair[0].op, pair[1].op), (OpKind::Trim, OpKind::Write));
                assert_eq!((pair[0].lba, pair[0].sectors), (pair[1].lba, pair[1].sectors));
            }
        }
        assert_eq!(take(StreamSpec { limit_requests: Some(5), ..spec }).len(), 10);
    }

    #[test]
    fn sequencers_and_gaps_follow_fio() {
        let sequencer = |identical| Some(Sequencer { every: 4, identical });
        let first = blocks(&take(StreamSpec { sequencer: sequencer(false), ..base(400) }));
        for run in first.chunks(4) {
            assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1 || pair[0] == 399), "{run:?}");
        }
        let same = blocks(&take(StreamSpec { sequencer: sequencer(true), ..base(400) }));
        assert!(same.chunks(4).all(|run| run.iter().all(|b| *b == run[0])) && same[4] != same[0]);
        let gap = StreamSpec { sequential: true, gap_sectors: 16, ..base(8) };
        assert_eq!(blocks(&take(gap)), [0, 3, 6, 0, 3, 6, 0, 3]);
    }

    #[test]
    fn handles_take_turns() {
        let handles = Handles::RoundRobin(vec![2, 5]);
        let requests = take(StreamSpec { handles, ..base(5) });
        let turns: Vec<u16> = requests.iter().map(|r| r.hint.handle.0).collect();
        assert_eq!(turns, [2, 5, 2, 5, 2]);
        let handles = Handles::Random(vec![1, 3]);
        let requests = take(StreamSpec { handles, ..base(1000) });
        let n = requests.iter().filter(|r| r.hint.handle.0 == 3).count();
        assert!((400..600).contains(&n), "{n}");
    }
}
