//! Brings rows that are nearly in order of time into order, and time to a start at 0.
//!
//! Recordings are written when a request ends, or by several processors, so their rows
//! step back a little. A bounded number of requests is held back and handed out in
//! order of time; equal times keep the order of the file. A row that comes too late
//! for that, or steps back by more than a request can take, is refused.
//!
//! Invariants: times handed out never decrease, and the first is 0. With a window of 0
//! nothing is held back and every step back is refused.
//!
//! Cost: nothing while rows are in order; a late row moves at most the window.

use std::collections::VecDeque;

use crate::Request;

/// Largest step back that is put in order \[ns\]: 60 s, the longest that a driver waits
/// for a request. Source: the Windows disk timeout (`TimeOutValue`, 60 s); Linux gives
/// a SCSI command 30 s (`SD_TIMEOUT`).
pub(crate) const LATE_MAX_NS: u64 = 60_000_000_000;

/// Requests that are held back.
#[derive(Debug)]
pub(crate) struct Order {
    queue: VecDeque<Request>,
    /// Most requests held back.
    window: usize,
    /// Largest time that came in \[ns\].
    latest_ns: u64,
    /// First and latest time that went out \[ns\].
    handed_ns: Option<(u64, u64)>,
    /// Rows that came after a later one.
    pub(crate) late_rows: u64,
    /// Largest step back among them \[ns\].
    pub(crate) late_max_ns: u64,
}

impl Order {
    pub(crate) fn new(window: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            window,
            latest_ns: 0,
            handed_ns: None,
            late_rows: 0,
            late_max_ns: 0,
        }
    }

    /// Most requests held back.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// Accepts the time of a row, or returns the time that it may not go behind.
    pub(crate) fn admit(&mut self, at_ns: u64) -> Result<(), u64> {
        if at_ns >= self.latest_ns {
            self.latest_ns = at_ns;
            return Ok(());
        }
        let back_ns = self.latest_ns - at_ns;
        let handed_ns = self.handed_ns.map_or(0, |(_, latest)| latest);
        if self.window == 0 || back_ns > LATE_MAX_NS {
            return Err(self.latest_ns);
        }
        if at_ns < handed_ns {
            return Err(handed_ns);
        }
        self.late_rows += 1;
        self.late_max_ns = self.late_max_ns.max(back_ns);
        Ok(())
    }

    /// Takes in a request whose time was accepted.
    pub(crate) fn push(&mut self, request: Request) {
        if self.queue.back().is_none_or(|last| last.at_ns <= request.at_ns) {
            return self.queue.push_back(request);
        }
        let at = self.queue.partition_point(|held| held.at_ns <= request.at_ns);
        self.queue.insert(at, request);
    }

    /// The next request, with its time since the first one; `None` while more may have
    /// to go before it.
    #[inline]
    pub(crate) fn pop(&mut self, at_end: bool) -> Option<Request> {
        if self.queue.len() <= self.window && !at_end {
            return None;
        }
        let mut request = self.queue.pop_front()?;
        let (start, _) = self.handed_ns.unwrap_or((request.at_ns, 0));
        self.handed_ns = Some((start, request.at_ns));
        request.at_ns -= start;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use flashwise_hint::Lba;
    use proptest::prelude::*;

    use super::*;
    use crate::OpKind;

    /// The index of each row goes into its address.
    fn order(times: &[u64], window: usize) -> (Vec<(u64, u64)>, u64) {
        let mut order = Order::new(window);
        let mut out = Vec::new();
        for (i, &at_ns) in (0..).zip(times) {
            if order.admit(at_ns).is_ok() {
                order.push(Request { at_ns, ..Request::new(OpKind::Read, Lba(i), 1) });
            }
            out.extend(order.pop(false).map(|r| (r.at_ns, r.lba.0)));
        }
        while let Some(r) = order.pop(true) {
            out.push((r.at_ns, r.lba.0));
        }
        (out, order.late_rows)
    }

    proptest! {
        /// Rows displaced by less than the window come out as a stable sort gives them.
        #[test]
        fn displaced_rows_are_sorted(
            gaps in prop::collection::vec((0_u64..5, 0_u64..9), 1..200),
            window in 10_usize..40,
        ) {
            let mut now = 0;
            let times = gaps.iter().map(|&(gap, delay)| {
                now += gap.max(1);
                now + delay
            });
            let times: Vec<u64> = times.collect();
            let (out, _) = order(&times, window);
            let mut sorted: Vec<(u64, u64)> = times.iter().copied().zip(0..).collect();
            sorted.sort_by_key(|row| row.0);
            let start = sorted[0].0;
            sorted.iter_mut().for_each(|row| row.0 -= start);
            prop_assert_eq!(out, sorted);
        }

        #[test]
        fn whatever_comes_in_goes_out_in_order(
            times in prop::collection::vec(0_u64..100, 0..100),
            window in 0_usize..10,
        ) {
            let (out, late) = order(&times, window);
            prop_assert!(out.is_sorted_by_key(|row| row.0));
            prop_assert!(out.first().is_none_or(|row| row.0 == 0));
            prop_assert!(window > 0 || late == 0);
        }
    }

    #[test]
    fn a_step_back_of_a_minute_is_refused() {
        let mut order = Order::new(10);
        order.admit(LATE_MAX_NS + 5).unwrap();
        assert_eq!(order.admit(5), Ok(()));
        assert_eq!(order.admit(4), Err(LATE_MAX_NS + 5));
        assert_eq!((order.late_rows, order.late_max_ns), (1, LATE_MAX_NS));
    }
}
