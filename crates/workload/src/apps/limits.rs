//! What makes threads wait for each other and for the clock: counting semaphores with a
//! high-water mark, and events at a steady rate.
//!
//! Both hand over in the order of asking. Filebench leaves the order to the kernel; one
//! fixed order keeps results the same on every run and wakes a thread only for good.

use std::collections::VecDeque;

/// Capacity of the event queue \[seconds of events\]. Source: filebench, `eventgen.c`: the
/// generator pauses at five times the rate.
const QUEUE_S: i128 = 5;

const NS_PER_S: i128 = 1_000_000_000;

/// A pair of semaphores of one blocking flowop, as System V semaphores in filebench: the
/// owner takes `need` from `low` and puts `need` into `high`; a blocking post takes one
/// from `high` and puts one into `low`. `high` bounds how far posters run ahead.
///
/// Invariant: a thread is parked here exactly if it is in `posters` or, for the owner, if
/// `waiting`.
#[derive(Clone, Debug)]
pub(super) struct Semaphore {
    owner: u32,
    need: u64,
    low: u64,
    high: u64,
    waiting: bool,
    posters: VecDeque<u32>,
}

/// What a poster does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Posted {
    /// Goes on.
    Done,
    /// Goes on, after it woke the owner.
    Wakes(u32),
    /// Parks; the post is made for it.
    Parks,
}

impl Semaphore {
    /// Of a flowop of thread `owner` that takes `need` posts at a time; at most
    /// `high_water` posts run ahead of the first.
    pub(super) fn new(owner: u32, need: u64, high_water: u64, n_posters: usize) -> Self {
        let posters = VecDeque::with_capacity(n_posters);
        Self { owner, need, low: 0, high: high_water, waiting: false, posters }
    }

    /// Thread `by` posts once.
    pub(super) fn post(&mut self, by: u32) -> Posted {
        if self.high == 0 {
            self.posters.push_back(by);
            return Posted::Parks;
        }
        self.high -= 1;
        self.low += 1;
        if !self.waiting || self.low < self.need {
            return Posted::Done;
        }
        self.low -= self.need;
        self.waiting = false;
        Posted::Wakes(self.owner)
    }

    /// The owner asks for its posts: threads it lets go on are added to `wakes`. True if
    /// the owner has to park.
    pub(super) fn block(&mut self, wakes: &mut VecDeque<u32>) -> bool {
        self.high += self.need;
        while self.high > 0
            && let Some(poster) = self.posters.pop_front()
        {
            self.high -= 1;
            self.low += 1;
            wakes.push_back(poster);
        }
        if self.low >= self.need {
            self.low -= self.need;
        } else {
            self.waiting = true;
        }
        self.waiting
    }

    /// Lets all parked threads go, at the end of the run.
    pub(super) fn release(&mut self, wakes: &mut VecDeque<u32>) {
        if std::mem::take(&mut self.waiting) {
            wakes.push_back(self.owner);
        }
        wakes.extend(self.posters.drain(..));
    }
}

/// Events that come at a rate and are used up by threads, first come, first served.
/// Filebench posts them ten at a time; here they come evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    /// Events per second, at least 1.
    rate: u64,
    /// Unused events times 10^9; negative while threads wait for theirs.
    left: i128,
    /// Up to when `left` is \[ns\].
    as_of_ns: u64,
}

impl Events {
    /// `rate` per second, at least 1; none at time 0.
    pub(super) fn new(rate: u64) -> Self {
        assert!(rate > 0, "no events ever");
        Self { rate, left: 0, as_of_ns: 0 }
    }

    /// Takes `n` events at `now_ns`; when the last of them has come \[ns\].
    pub(super) fn take(&mut self, n: u64, now_ns: u64) -> u64 {
        let rate = i128::from(self.rate);
        let passed_ns = now_ns.saturating_sub(self.as_of_ns);
        self.as_of_ns = self.as_of_ns.max(now_ns);
        let full = QUEUE_S * rate * NS_PER_S;
        self.left = (self.left + i128::from(passed_ns) * rate).min(full);
        self.left -= i128::from(n) * NS_PER_S;
        let missing_ns = (-self.left).max(0) / rate + i128::from(self.left % rate != 0);
        if self.left >= 0 { now_ns } else { now_ns.saturating_add(missing_ns as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_their_rate_and_wait_for_five_seconds_at_most() {
        let mut events = Events::new(100);
        assert_eq!(events.take(1, 0), 10_000_000);
        assert_eq!(events.take(1, 0), 20_000_000);
        assert_eq!(events.take(1, 15_000_000), 30_000_000);
        let late_ns = 60_000_000_000;
        for _ in 0..500 {
            assert_eq!(events.take(1, late_ns), late_ns);
        }
        assert_eq!(events.take(1, late_ns), late_ns + 10_000_000);
    }

    #[test]
    fn posters_stop_at_the_high_water_mark_and_the_owner_at_its_need() {
        let mut wakes = VecDeque::new();
        let mut semaphore = Semaphore::new(9, 3, 2, 4);
        assert_eq!([semaphore.post(0), semaphore.post(1)], [Posted::Done, Posted::Done]);
        assert_eq!([semaphore.post(2), semaphore.post(3)], [Posted::Parks, Posted::Parks]);
        // Two parked posts are made, which is enough for the owner: 4 - 3 = 1 left.
        assert!(!semaphore.block(&mut wakes));
        assert_eq!(wakes, [2, 3]);
        wakes.clear();
        assert!(semaphore.block(&mut wakes) && wakes.is_empty());
        assert_eq!(semaphore.post(0), Posted::Done);
        assert_eq!(semaphore.post(1), Posted::Wakes(9));
        semaphore.release(&mut wakes);
        assert!(wakes.is_empty());
    }
}
