//! When a job asks: queue depth, pauses, rates, run time and warm-up of one job in
//! virtual time.
//!
//! The next request is prepared as soon as the one before is done, so that jobs can be
//! compared by the time of their next request. Rules:
//!
//! * a request is issued when a place in the queue is free, the host gap has passed, and
//!   neither a pause, a rate nor a flush holds the job back;
//! * a flush blocks the job until it is done, because fsync(2) blocks its thread;
//!   requests that are in flight go on meanwhile. The flush at the end waits for them;
//! * a pause begins when everything in flight is done;
//! * a rate gives each direction a time of its next request; a mix that is ahead of
//!   the rate in one direction goes on with the other if that is behind.
//!
//! Source: fio, `rate_ddir` and `handle_thinktime`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::stream::{JobStream, Step};
use super::{Direction, JobSpec, Mix, Rate};
use crate::Request;

/// Times beyond this mean never \[ns\].
const NEVER_NS: u64 = u64::MAX / 4;

/// Issue time of a request that comes later than that \[ns\]: no clock holds it.
const BEYOND_NS: u64 = u64::MAX / 2;

/// One running job.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    spec: JobSpec,
    stream: JobStream,
    start_ns: u64,
    gap_ns: u64,
    /// When each place of the queue is free again.
    places: BinaryHeap<Reverse<u64>>,
    /// The latest of them.
    all_free_ns: u64,
    /// The job is held back until then.
    not_before_ns: u64,
    /// When the last completion was.
    end_ns: u64,
    next: Option<(Request, Step)>,
    /// Next request of each direction \[ns since the start\].
    rate_ns: [u64; 3],
    rate_bytes: [u64; 3],
    rate_rng: Xoshiro256PlusPlus,
    n_issued: u64,
    /// Requests that counted for the last pause.
    n_at_pause: u64,
    /// The stream was cut off by time.
    cut_off: bool,
}

impl Host {
    /// A job that starts at `start_ns`.
    pub(crate) fn new(spec: JobSpec, start_ns: u64, gap_ns: u64) -> Self {
        let mut host = Self {
            stream: JobStream::new(spec.stream.clone()),
            start_ns,
            gap_ns,
            places: (0..spec.queue_depth).map(|_| Reverse(start_ns)).collect(),
            all_free_ns: start_ns,
            not_before_ns: start_ns,
            end_ns: start_ns,
            next: None,
            rate_ns: [0; 3],
            rate_bytes: [0; 3],
            rate_rng: Xoshiro256PlusPlus::seed_from_u64(spec.stream.seed ^ 0x9013_5504),
            n_issued: 0,
            n_at_pause: 0,
            cut_off: false,
            spec,
        };
        host.prepare();
        host
    }

    /// When the next request is issued; `None`: the job has ended.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next.map(|(request, _)| request.at_ns)
    }

    /// The next request.
    pub(crate) fn next(&self) -> Option<Request> {
        self.next.map(|(request, _)| request)
    }

    /// When the last completion was, so far.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Until when the job warms up.
    pub(crate) fn ramp_end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.spec.ramp_ns)
    }

    /// Ends the job at `exit_ns`, except for a last flush, which comes no earlier than
    /// `now_ns`. Whether that changed its next request.
    pub(crate) fn cut_off(&mut self, exit_ns: u64, now_ns: u64) -> bool {
        let late = |(r, step): (Request, Step)| r.at_ns >= exit_ns && step != Step::LastFlush;
        let cut = self.next.is_some_and(late);
        if cut {
            self.cut_off = true;
            self.not_before_ns = self.not_before_ns.max(exit_ns).max(now_ns);
            self.prepare();
        }
        cut
    }

    /// The request that is next was issued and is done at `done_ns`.
    pub(crate) fn completed(&mut self, done_ns: u64) {
        let Some((request, step)) = self.next.take() else { return };
        // Time passes, also on a drive where something takes none.
        let free_ns = done_ns.max(request.at_ns + 1).saturating_add(self.gap_ns);
        self.end_ns = self.end_ns.max(done_ns);
        // A rate may have held the request back while the queue had room.
        self.not_before_ns = self.not_before_ns.max(request.at_ns);
        self.all_free_ns = self.all_free_ns.max(free_ns);
        match step {
            Step::Go(direction) => {
                if let Some(mut first) = self.places.peek_mut() {
                    *first = Reverse(free_ns);
                }
                self.n_issued += 1;
                self.advance_rate(direction, request.bytes());
                self.pause(request.at_ns);
            }
            Step::Flush | Step::LastFlush | Step::End => self.not_before_ns = free_ns,
        }
        self.prepare();
    }

    /// Finds the next request and when it is issued.
    fn prepare(&mut self) {
        let mut step = if self.cut_off { self.stream.end() } else { self.stream.step() };
        let mut at_ns = self.free_ns();
        if let Step::Go(direction) = &mut step {
            at_ns = at_ns.max(self.limited_by_rate(direction, at_ns));
        }
        let stop_ns = self.stop_ns();
        if !matches!(step, Step::LastFlush | Step::End) && at_ns >= stop_ns {
            if stop_ns == NEVER_NS {
                // Not an end that was asked for: the consumer has to say so.
                at_ns = BEYOND_NS;
            } else {
                self.cut_off = true;
                step = self.stream.end();
            }
        }
        self.next = match step {
            Step::End => None,
            Step::Go(direction) => {
                Some((Request { at_ns, ..self.stream.request(direction) }, step))
            }
            Step::Flush => Some((Request { at_ns, ..self.stream.flush() }, step)),
            Step::LastFlush => {
                let at_ns = self.free_ns().max(self.all_free_ns);
                Some((Request { at_ns, ..self.stream.flush() }, step))
            }
        };
    }

    fn free_ns(&self) -> u64 {
        let free_ns = self.places.peek().map_or(self.start_ns, |place| place.0);
        free_ns.max(self.not_before_ns)
    }

    fn stop_ns(&self) -> u64 {
        match self.spec.runtime_ns {
            Some(ns) => self.ramp_end_ns().saturating_add(ns).min(NEVER_NS),
            None => NEVER_NS,
        }
    }

    /// When the rate lets a request go; may turn the direction of a mix.
    fn limited_by_rate(&self, direction: &mut Direction, ready_ns: u64) -> u64 {
        let at = |d: Direction| self.start_ns.saturating_add(self.rate_ns[d as usize]);
        let other = match (self.spec.stream.mix, *direction) {
            (Mix::ReadPercent(1..=99), Direction::Read) => Direction::Write,
            (Mix::ReadPercent(1..=99), Direction::Write) => Direction::Read,
            _ => return at(*direction),
        };
        if at(*direction) > ready_ns && at(other) < at(*direction) {
            *direction = other;
        }
        at(*direction)
    }

    fn advance_rate(&mut self, direction: Direction, bytes: u64) {
        let d = direction as usize;
        let Some(rate) = self.spec.rates[d] else { return };
        let (amount, per_s) = match rate {
            Rate::Bytes(per_s) => (bytes, per_s),
            Rate::Requests(per_s) => (1, per_s),
        };
        self.rate_bytes[d] = self.rate_bytes[d].saturating_add(amount);
        let ns = |amount: u64| {
            let ns = u128::from(amount) * 1_000_000_000 / u128::from(per_s.max(1));
            u64::try_from(ns).unwrap_or(NEVER_NS).min(NEVER_NS)
        };
        self.rate_ns[d] = if self.spec.poisson {
            let part = (self.rate_rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let wait_ns = -(1.0 - part).ln() * ns(amount) as f64;
            self.rate_ns[d].saturating_add(wait_ns as u64).min(NEVER_NS)
        } else {
            // From the sum, so that fractions of nanoseconds do not add up.
            ns(self.rate_bytes[d])
        };
    }

    /// Begins a pause if it is time for one, after a request at `at_ns`.
    fn pause(&mut self, at_ns: u64) {
        let Some(think) = self.spec.think else { return };
        let counted = if think.by_issue {
            self.n_issued
        } else {
            // What is done when the queue next has room.
            let now_ns = at_ns.max(self.free_ns());
            let in_flight = self.places.iter().filter(|place| place.0 > now_ns).count();
            self.n_issued - in_flight as u64
        };
        if counted >= self.n_at_pause + think.every {
            self.n_at_pause = counted;
            self.not_before_ns = self.all_free_ns.saturating_add(think.pause_ns).min(NEVER_NS);
        }
    }
}
