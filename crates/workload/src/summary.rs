//! One pass over a source: what it does, how much, where, and for how long.
//!
//! Fitting, filling and steady-state decisions need to know the whole workload before
//! its first request is served. Addresses are kept as ranges, so a request of any
//! length costs O(log n) and memory grows with the number of disjoint ranges, not
//! with the number of requests or sectors.

use std::collections::BTreeMap;

use crate::{Extents, MAX_SECTORS, OpKind, Request, Source, WorkloadError};

/// Mean arrival rate above which a time unit is suspect \[requests/s\], assumed: far
/// beyond what one drive or one host reaches.
const RATE_MAX_PER_S: f64 = 50e6;
/// Mean arrival rate below which a time unit is suspect \[requests/s\], assumed: one
/// request per hour.
const RATE_MIN_PER_S: f64 = 1.0 / 3600.0;

/// What a workload does as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of requests of all kinds.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of trims.
    pub trims: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of write-zeroes requests.
    pub write_zeroes: u64,
    /// Data read \[bytes\].
    pub read_bytes: u64,
    /// Data written, without write zeroes \[bytes\].
    pub write_bytes: u64,
    /// Data trimmed \[bytes\].
    pub trim_bytes: u64,
    /// Arrival of the last request minus that of the first \[ns\].
    pub span_ns: u64,
    /// Largest end of any request \[sectors\]: the drive that holds it unfitted.
    pub max_lba_end: u64,
    /// Longest request \[sectors\].
    pub max_sectors: u32,
    /// Every address of any request, rounded outward to the alignment.
    pub touched: Extents,
    /// Every address that is read, rounded outward to the alignment.
    pub read: Extents,
    /// Every address whose first use is a read, rounded outward to the alignment: what
    /// must hold data before the replay for all reads to find some.
    pub first_read: Extents,
}

/// Walks a source to its end. `align_sectors` is the drive's mapping unit \[sectors\];
/// extents are rounded outward to it.
pub fn summarize(source: &mut dyn Source, align_sectors: u64) -> Result<Summary, WorkloadError> {
    if align_sectors == 0 {
        return Err(WorkloadError::Parameter {
            key: "align_sectors",
            found: "0".into(),
            expected: "at least 1".into(),
        });
    }
    let mut summary = Summary::default();
    let mut seen = Seen::default();
    let mut first_ns = None;
    while let Some(request) = source.next_request()? {
        let start_ns = *first_ns.get_or_insert(request.at_ns);
        summary.span_ns = summary.span_ns.max(request.at_ns.saturating_sub(start_ns));
        summary.count(&request);
        if request.op == OpKind::Flush {
            continue;
        }
        let (start, end) = (request.lba.0, request.end());
        if end > MAX_SECTORS {
            return Err(WorkloadError::OutOfRange {
                lba: start,
                sectors: u64::from(request.sectors),
                capacity_sectors: MAX_SECTORS,
            });
        }
        let is_read = request.op == OpKind::Read;
        if is_read {
            let (start, end) = outward(start, end, align_sectors);
            summary.read.insert(start, end);
        }
        seen.add(start, end, |gap_start, gap_end| {
            if is_read {
                let (start, end) = outward(gap_start, gap_end, align_sectors);
                summary.first_read.insert(start, end);
            }
        });
        summary.max_lba_end = summary.max_lba_end.max(end);
        summary.max_sectors = summary.max_sectors.max(request.sectors);
    }
    for (start, end) in seen.ranges {
        let (start, end) = outward(start, end, align_sectors);
        summary.touched.insert(start, end);
    }
    summary.touched.settle();
    summary.read.settle();
    summary.first_read.settle();
    Ok(summary)
}

impl Summary {
    /// A sentence if the mean arrival rate suggests a wrong unit of time: above 50
    /// million requests per second or below one per hour. `None` for closed-loop
    /// sources, whose requests carry no time.
    pub fn implausible_span(&self) -> Option<String> {
        if self.requests < 2 || self.span_ns == 0 {
            return None;
        }
        let span_s = self.span_ns as f64 / 1e9;
        let rate = (self.requests - 1) as f64 / span_s;
        let what = if rate > RATE_MAX_PER_S {
            format!("{rate:.3e} requests/s, more than any drive serves")
        } else if rate < RATE_MIN_PER_S {
            format!("{:.3} requests per hour", rate * 3600.0)
        } else {
            return None;
        };
        let n = self.requests;
        Some(format!(
            "{n} requests in {span_s:e} s are {what}; the time unit (s, ms, us, ns) is probably \
             another"
        ))
    }

    fn count(&mut self, request: &Request) {
        self.requests += 1;
        let bytes = request.bytes();
        match request.op {
            OpKind::Read => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(bytes);
            }
            OpKind::Write => {
                self.writes += 1;
                self.write_bytes = self.write_bytes.saturating_add(bytes);
            }
            OpKind::Trim => {
                self.trims += 1;
                self.trim_bytes = self.trim_bytes.saturating_add(bytes);
            }
            OpKind::Flush => self.flushes += 1,
            OpKind::WriteZeroes => self.write_zeroes += 1,
        }
    }
}

/// Rounds a range outward to multiples of `align`.
fn outward(start: u64, end: u64, align: u64) -> (u64, u64) {
    let end = end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
    (start - start % align, end)
}

/// Ranges seen so far, start to end, disjoint and not adjacent. A tree, because each
/// request asks for the parts that are new before it adds itself.
#[derive(Default)]
struct Seen {
    ranges: BTreeMap<u64, u64>,
}

impl Seen {
    /// Adds `[start, end)` and reports each part that was not there.
    fn add(&mut self, start: u64, end: u64, mut new: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let (mut merged_start, mut merged_end, mut from) = (start, end, start);
        if let Some((&before, &before_end)) = self.ranges.range(..=start).next_back()
            && before_end >= start
        {
            if before_end >= end {
                return;
            }
            (merged_start, from) = (before, before_end);
            self.ranges.remove(&before);
        }
        while from <= end
            && let Some((&next, &next_end)) = self.ranges.range(from..=end).next()
        {
            if from < next {
                new(from, next);
            }
            self.ranges.remove(&next);
            from = next_end;
            merged_end = merged_end.max(next_end);
        }
        if from < end {
            new(from, end);
        }
        self.ranges.insert(merged_start, merged_end);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flashwise_hint::Lba;
    use proptest::prelude::*;

    use super::*;

    fn naive(list: &[Request], align: u64) -> (BTreeSet<u64>, BTreeSet<u64>, BTreeSet<u64>) {
        let (mut touched, mut read, mut first) = Default::default();
        let mut seen = BTreeSet::new();
        let put = |set: &mut BTreeSet<u64>, sector: u64| {
            let unit = sector / align * align;
            set.extend(unit..unit + align);
        };
        for request in list {
            for sector in request.lba.0..request.end() {
                put(&mut touched, sector);
                if request.op == OpKind::Read {
                    put(&mut read, sector);
                    if !seen.contains(&sector) {
                        put(&mut first, sector);
                    }
                }
                seen.insert(sector);
            }
        }
        (touched, read, first)
    }

    proptest! {
        #[test]
        fn extents_agree_with_a_naive_walk(
            rows in prop::collection::vec((0_u64..300, 1_u32..30, 0_u8..4), 0..60),
            align in 1_u64..9,
        ) {
            let kinds = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::WriteZeroes];
            let list: Vec<Request> = rows
                .iter()
                .map(|&(lba, n, kind)| Request::new(kinds[kind as usize], Lba(lba), n))
                .collect();
            let summary = summarize(&mut list.clone().into_iter(), align).unwrap();
            let (touched, read, first) = naive(&list, align);
            let flat = |set: &Extents| set.iter().flatten().collect::<BTreeSet<u64>>();
            prop_assert_eq!(flat(&summary.touched), touched);
            prop_assert_eq!(flat(&summary.read), read);
            prop_assert_eq!(flat(&summary.first_read), first);
            prop_assert_eq!(summary.requests as usize, list.len());
            let parts = summary.reads + summary.writes + summary.trims + summary.write_zeroes;
            prop_assert_eq!(parts, summary.requests);
        }
    }

    #[test]
    fn counts_bytes_span_and_end() {
        let mut list = vec![
            Request::new(OpKind::Write, Lba(100), 8),
            Request::new(OpKind::Read, Lba(4), 2),
            Request::new(OpKind::Flush, Lba(0), 0),
        ];
        list[1].at_ns = 7;
        list[2].at_ns = 9;
        let summary = summarize(&mut list.into_iter(), 8).unwrap();
        assert_eq!((summary.reads, summary.writes, summary.flushes), (1, 1, 1));
        assert_eq!((summary.read_bytes, summary.write_bytes), (1024, 4096));
        assert_eq!((summary.span_ns, summary.max_lba_end, summary.max_sectors), (9, 108, 8));
        assert_eq!(summary.touched.iter().collect::<Vec<_>>(), vec![0..8, 96..112]);
    }

    #[test]
    fn huge_requests_cost_nothing_and_unaddressable_ones_are_refused() {
        let huge = vec![Request::new(OpKind::Trim, Lba(MAX_SECTORS - (1 << 31)), 1 << 31); 1000];
        let summary = summarize(&mut huge.into_iter(), 8).unwrap();
        assert_eq!(summary.touched.n_ranges(), 1);
        let beyond = vec![Request::new(OpKind::Read, Lba(MAX_SECTORS), 1)];
        let text = summarize(&mut beyond.into_iter(), 8).unwrap_err().to_string();
        assert!(text.contains(&format!("LBA {MAX_SECTORS}")), "{text}");
        assert!(summarize(&mut Vec::new().into_iter(), 0).is_err());
    }

    #[test]
    fn a_wrong_time_unit_is_noticed() {
        let over = |requests, span_ns| Summary { requests, span_ns, ..Default::default() };
        assert_eq!(over(6_999, 137_000_000).implausible_span(), None);
        assert_eq!(over(1, 0).implausible_span(), None);
        assert_eq!(over(1_000, 0).implausible_span(), None);
        let fast = over(6_999, 137).implausible_span().unwrap();
        assert!(fast.contains("6999 requests") && fast.contains("time unit"), "{fast}");
        let slow = over(10, u64::MAX / 2).implausible_span().unwrap();
        assert!(slow.contains("per hour"), "{slow}");
    }
}
