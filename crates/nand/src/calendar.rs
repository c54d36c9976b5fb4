//! Bookings of a serial resource (a flash channel, a direction of the host link)
//! that fill gaps. A single next-free time would waste the gap before a transfer
//! whose sense ends later: on the random case of the FAST'24 artifact that costs
//! 10 % of the read throughput.
//!
//! Bounded: at most [`Calendar::CAPACITY`] busy intervals are remembered; touching
//! ones merge. The past is forgotten when its owner says that nothing will be
//! booked there any more; should the list overflow before, the smallest gap is
//! given up (a delay, never an overlap).
//! Cost: O(1) at the end of the calendar, else a scan of the few later intervals.

/// A gap-filling calendar of busy intervals \[ns\].
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    busy: Vec<(u64, u64)>,
    busy_ns: u64,
}

impl Calendar {
    /// Busy intervals remembered at most. Assumed: several times the commands of
    /// a deep queue that can be in flight on one channel; see docs/model.md.
    pub const CAPACITY: usize = 64;

    /// Books `len_ns` at the first gap that starts at or after `at_ns`; returns
    /// the end of the booking. A booking of no length ends where it starts.
    #[inline]
    pub fn book(&mut self, at_ns: u64, len_ns: u64) -> u64 {
        if len_ns == 0 {
            return at_ns;
        }
        self.busy_ns += len_ns;
        match self.busy.last_mut() {
            Some(last) if last.1 == at_ns => {
                last.1 += len_ns;
                last.1
            }
            Some(last) if last.1 > at_ns => self.book_in_gap(at_ns, len_ns),
            _ => {
                self.push(at_ns, at_ns + len_ns);
                at_ns + len_ns
            }
        }
    }

    /// Total time booked so far \[ns\].
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// Nothing will be booked before `now_ns` any more: forgets what ended by then.
    #[inline]
    pub fn forget_before(&mut self, now_ns: u64) {
        let n_old = self.busy.iter().take_while(|b| b.1 <= now_ns).count();
        self.busy.drain(..n_old);
    }

    fn book_in_gap(&mut self, at_ns: u64, len_ns: u64) -> u64 {
        let mut next = self.busy.len();
        while next > 0 && self.busy[next - 1].1 > at_ns {
            next -= 1;
        }
        let mut start = at_ns;
        while next < self.busy.len() && self.busy[next].0 < start + len_ns {
            start = start.max(self.busy[next].1);
            next += 1;
        }
        let end = start + len_ns;
        let joins_prev = next > 0 && self.busy[next - 1].1 == start;
        let joins_next = next < self.busy.len() && self.busy[next].0 == end;
        match (joins_prev, joins_next) {
            (true, true) => {
                self.busy[next - 1].1 = self.busy[next].1;
                self.busy.remove(next);
            }
            (true, false) => self.busy[next - 1].1 = end,
            (false, true) => self.busy[next].0 = start,
            (false, false) if next == self.busy.len() => self.push(start, end),
            (false, false) => {
                self.busy.insert(next, (start, end));
                self.forget_if_full();
            }
        }
        end
    }

    fn push(&mut self, start: u64, end: u64) {
        self.busy.push((start, end));
        self.forget_if_full();
    }

    fn forget_if_full(&mut self) {
        if self.busy.len() > Self::CAPACITY {
            let gaps = self.busy.windows(2).map(|w| w[1].0 - w[0].1).enumerate();
            let (i, _) = gaps.min_by_key(|&(_, gap)| gap).expect("a full list has gaps");
            self.busy[i].1 = self.busy[i + 1].1;
            self.busy.remove(i + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_request_takes_an_earlier_gap() {
        let mut c = Calendar::default();
        assert_eq!(c.book(0, 10), 10);
        assert_eq!(c.book(50, 10), 60, "leaves a gap of 40");
        assert_eq!(c.book(0, 30), 40, "fills the gap from 10");
        assert_eq!(c.book(0, 20), 80, "10 left in the gap is too short");
        assert_eq!(c.book(0, 10), 50, "exactly the rest of the gap");
        assert_eq!(c.busy, [(0, 80)], "touching bookings merge");
        assert_eq!(c.busy_ns(), 80);
        assert_eq!(c.book(7, 0), 7, "nothing takes no time");
    }

    #[test]
    fn bookings_far_ahead_do_not_delay_those_before_them() {
        let mut c = Calendar::default();
        for i in 0..10 * Calendar::CAPACITY as u64 {
            c.book(1_000_000 + i * 1000, 10);
        }
        assert_eq!(c.book(500, 10), 510);
        c.forget_before(1_000_000);
        assert_eq!(c.busy[0].0, 1_000_000);
    }

    #[test]
    fn the_list_stays_short_and_never_overlaps() {
        let mut c = Calendar::default();
        let mut x = 1u64;
        let mut taken: Vec<(u64, u64)> = vec![];
        for i in 0..5000u64 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (at, len) = (i * 20 + (x >> 40) % 3000, 1 + (x >> 20) % 25);
            let end = c.book(at, len);
            assert!(end >= at + len);
            taken.push((end - len, end));
            assert!(c.busy.len() <= Calendar::CAPACITY);
        }
        taken.sort_unstable();
        assert!(taken.windows(2).all(|w| w[0].1 <= w[1].0));
        assert_eq!(c.busy_ns(), taken.iter().map(|t| t.1 - t.0).sum::<u64>());
    }
}
