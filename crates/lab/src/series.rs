//! What happened in each interval of a replay.
//!
//! A request belongs to the interval in which it completes. What the drive counts
//! (bytes, erases, free blocks, busy dies) is looked at when the first request
//! arrives at or after the end of an interval, before it is carried out. The drive is
//! only looked at, so a replay that is watched gives the same row and digest. Sums
//! over all intervals are those of the row.
//!
//! Without a given length intervals start at 10 us and grow by 2 and 5 in turn
//! whenever there are more than 1000, so that any run ends with 200 to 1000 of them
//! (fewer if it is shorter than 2 ms) of 1 or 2 times a power of ten.
//!
//! Cost: a few tree lookups per request; memory for each interval: its counters, a
//! number per die, and the distinct latencies (to three digits).

use std::collections::BTreeMap;

use flashwise_hint::SECTOR_BYTES;
use flashwise_ssd::{DieId, Ssd, SsdCounters};
use flashwise_workload::{OpKind, Request};

use crate::measure::Latencies;
use crate::observe::{ObserveError, Observer};

/// Intervals before shorter ones are merged.
const AUTO_ROWS: u64 = 1000;

/// First length of intervals that are not given \[ns\].
const AUTO_START_NS: u64 = 10_000;

/// Intervals of a given length that are kept: some gigabyte at most.
const FIXED_ROWS_MAX: u64 = 1_000_000;

/// How long intervals are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// So that there are 200 to 1000 of them.
    Auto,
    /// This \[ns\], more than 0.
    Fixed(u64),
}

/// One interval. Every field but the dies is a column of the same name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesRow {
    /// Start, from the first arrival \[s\].
    pub time_s: f64,
    /// Length; the last interval ends with the replay \[s\].
    pub length_s: f64,
    /// Requests of all kinds that completed.
    pub requests: u64,
    /// Reads.
    pub read_requests: u64,
    /// Writes (write zeroes included).
    pub write_requests: u64,
    /// Trims.
    pub trim_requests: u64,
    /// Flushes.
    pub flush_requests: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub write_bytes: u64,
    /// Read \[MiB/s\].
    pub read_mib_s: f64,
    /// Written \[MiB/s\].
    pub write_mib_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes programmed by bytes the host wrote; none without writes.
    pub waf: Option<f64>,
    /// Bytes the host wrote to the flash translation layer.
    pub bytes_host: u64,
    /// Bytes that took a place on the flash.
    pub bytes_programmed: u64,
    /// Of these, moved by collection.
    pub bytes_gc: u64,
    /// Median, 99 %, 99.9 % and slowest read \[us\].
    pub read_us: [Option<f64>; 4],
    /// The same of writes \[us\].
    pub write_us: [Option<f64>; 4],
    /// Free blocks at the end.
    pub free_blocks: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Most erases of one block so far.
    pub erase_max: u32,
    /// Mean erases of a block so far.
    pub erase_mean: f64,
    /// Part of the time that each die was busy.
    pub die_busy: Vec<f64>,
}

/// One request, as `--latencies` writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyRow {
    /// Number of the request, from 0, in order of arrival.
    pub index: u64,
    /// Arrival, from the start of the replay \[us\].
    pub arrival_us: f64,
    /// Kind: read, write, trim, write-zeroes or flush.
    pub op: &'static str,
    /// First sector.
    pub lba: u64,
    /// Sectors.
    pub sectors: u32,
    /// Completion less arrival \[us\].
    pub latency_us: f64,
}

impl LatencyRow {
    /// The row of a request.
    pub fn new(index: u64, start_ns: u64, request: &Request, at_ns: u64, done_ns: u64) -> Self {
        let op = match request.op {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Trim => "trim",
            OpKind::WriteZeroes => "write-zeroes",
            OpKind::Flush => "flush",
        };
        Self {
            index,
            arrival_us: (at_ns - start_ns) as f64 / 1000.0,
            op,
            lba: request.lba.0,
            sectors: request.sectors,
            latency_us: (done_ns - at_ns) as f64 / 1000.0,
        }
    }
}

/// Latencies of one kind in one interval, to three digits.
#[derive(Clone, Debug, Default)]
struct Sample {
    counts: BTreeMap<u64, u32>,
    max_ns: u64,
}

impl Sample {
    fn merge(&mut self, other: Self) {
        for (ns, n) in other.counts {
            *self.counts.entry(ns).or_default() += n;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn len(&self) -> u64 {
        self.counts.values().map(|&n| u64::from(n)).sum()
    }

    /// Median, 99 %, 99.9 % and longest \[us\].
    fn quantiles_us(&self, scratch: &mut Latencies) -> [Option<f64>; 4] {
        if self.counts.is_empty() {
            return [None; 4];
        }
        scratch.reset();
        self.counts.iter().for_each(|(&ns, &n)| scratch.record_n(ns, n));
        // Values stand for all that cannot be told from them; the longest is exact.
        let max_us = self.max_ns as f64 / 1000.0;
        let at = |q| scratch.quantile_up_to_us(q, self.max_ns);
        [at(0.5), at(0.99), at(0.999), Some(max_us)]
    }
}

/// Requests that complete in one interval.
#[derive(Clone, Debug, Default)]
struct Bin {
    reads: Sample,
    writes: Sample,
    n_trims: u64,
    n_flushes: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl Bin {
    fn merge(&mut self, other: Self) {
        self.reads.merge(other.reads);
        self.writes.merge(other.writes);
        self.n_trims += other.n_trims;
        self.n_flushes += other.n_flushes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
    }
}

/// The drive at the end of an interval.
#[derive(Clone, Debug)]
struct Mark {
    counters: SsdCounters,
    free_blocks: u64,
    erase_max: u32,
    die_busy_ns: Box<[u64]>,
}

/// An [`Observer`] that gives a row for each interval.
#[derive(Debug)]
pub struct Series {
    interval: Interval,
    length_ns: u64,
    start_ns: u64,
    end_ns: u64,
    first: Option<Mark>,
    /// The drive at the end of each interval that has passed.
    marks: Vec<Mark>,
    last: Option<Mark>,
    bins: BTreeMap<u64, Bin>,
    /// Erases of all blocks before the replay.
    worn: u64,
    n_blocks: u64,
    scratch: Latencies,
}

impl Series {
    /// A series that has seen nothing.
    pub fn new(interval: Interval) -> Self {
        let length_ns = match interval {
            Interval::Auto => AUTO_START_NS,
            Interval::Fixed(ns) => ns.max(1),
        };
        Self {
            interval,
            length_ns,
            start_ns: 0,
            end_ns: 0,
            first: None,
            marks: vec![],
            last: None,
            bins: BTreeMap::new(),
            worn: 0,
            n_blocks: 0,
            scratch: Latencies::default(),
        }
    }

    /// Makes intervals longer until `index` is one of them, or refuses.
    fn make_room(&mut self, at_ns: u64) -> Result<u64, ObserveError> {
        loop {
            let index = (at_ns - self.start_ns) / self.length_ns;
            match self.interval {
                Interval::Fixed(_) if index >= FIXED_ROWS_MAX => {
                    let interval_s = self.length_ns as f64 / 1e9;
                    return Err(ObserveError::TooManyIntervals { max: FIXED_ROWS_MAX, interval_s });
                }
                Interval::Auto if index >= AUTO_ROWS => self.lengthen(),
                _ => return Ok(index),
            }
        }
    }

    /// 10 us, 20 us, 100 us, 200 us and so on.
    fn lengthen(&mut self) {
        let power = 10u64.pow(self.length_ns.ilog10());
        let factor = if self.length_ns == power { 2 } else { 5 };
        self.length_ns *= factor;
        let n = factor as usize;
        self.marks = self.marks.drain(..).skip(n - 1).step_by(n).collect();
        for (index, bin) in std::mem::take(&mut self.bins) {
            self.bins.entry(index / factor).or_default().merge(bin);
        }
    }

    fn boundary_ns(&self, index: u64) -> u64 {
        self.start_ns + (index + 1) * self.length_ns
    }

    fn mark(&self, ssd: &Ssd, now_ns: u64) -> Mark {
        let counters = ssd.counters();
        let nand = ssd.nand();
        let before = self.marks.last().or(self.first.as_ref());
        let erase_max = match before {
            Some(m) if m.counters.nand.erases == counters.nand.erases => m.erase_max,
            _ => nand.wear().iter().copied().max().unwrap_or(0),
        };
        let dies = 0..nand.geometry().n_dies() as u16;
        Mark {
            counters,
            free_blocks: ssd.ftl().n_free_blocks(),
            erase_max,
            die_busy_ns: dies.map(|d| nand.die_busy_ns(DieId(d), now_ns)).collect(),
        }
    }

    /// The rows, once the replay has ended.
    pub fn rows(mut self) -> Vec<SeriesRow> {
        let (Some(first), Some(last)) = (self.first.take(), self.last.take()) else {
            return vec![];
        };
        let n_rows = (self.end_ns - self.start_ns) / self.length_ns + 1;
        let mut rows = Vec::with_capacity(n_rows as usize);
        let mut before = &first;
        let mut busy_ns = first.die_busy_ns.clone();
        for index in 0..n_rows {
            let end_ns = self.boundary_ns(index).min(self.end_ns);
            let start_ns = self.start_ns + index * self.length_ns;
            let length_ns = (end_ns - start_ns).max(1);
            let after = match self.marks.get(index as usize) {
                Some(mark) if index + 1 < n_rows => mark,
                _ => &last,
            };
            let bin = self.bins.remove(&index).unwrap_or_default();
            let mut row = bin.row(&mut self.scratch);
            row.time_s = (start_ns - self.start_ns) as f64 / 1e9;
            row.length_s = length_ns as f64 / 1e9;
            row.add_rates();
            row.add_drive(before, after, self.worn, self.n_blocks);
            row.die_busy = busy(&mut busy_ns, &after.die_busy_ns, length_ns);
            rows.push(row);
            before = after;
        }
        rows
    }
}

/// Part of an interval that each die was busy. A die is busy for no longer than an
/// interval lasts: what an operation takes beyond is counted in the next one.
fn busy(told_ns: &mut [u64], now_ns: &[u64], length_ns: u64) -> Vec<f64> {
    let dies = told_ns.iter_mut().zip(now_ns);
    let part = dies.map(|(told, &now)| {
        let ns = now.saturating_sub(*told).min(length_ns);
        *told += ns;
        ns as f64 / length_ns as f64
    });
    part.collect()
}

impl Bin {
    fn row(&self, scratch: &mut Latencies) -> SeriesRow {
        let (read_requests, write_requests) = (self.reads.len(), self.writes.len());
        SeriesRow {
            requests: read_requests + write_requests + self.n_trims + self.n_flushes,
            read_requests,
            write_requests,
            trim_requests: self.n_trims,
            flush_requests: self.n_flushes,
            read_bytes: self.read_bytes,
            write_bytes: self.write_bytes,
            read_us: self.reads.quantiles_us(scratch),
            write_us: self.writes.quantiles_us(scratch),
            ..SeriesRow::default()
        }
    }
}

impl SeriesRow {
    fn add_rates(&mut self) {
        let mib_s = |bytes: u64| bytes as f64 / f64::from(1 << 20) / self.length_s;
        self.read_mib_s = mib_s(self.read_bytes);
        self.write_mib_s = mib_s(self.write_bytes);
        self.iops = self.requests as f64 / self.length_s;
    }

    fn add_drive(&mut self, before: &Mark, after: &Mark, worn: u64, n_blocks: u64) {
        let ftl = after.counters.ftl.since(&before.counters.ftl);
        self.waf = ftl.waf();
        self.bytes_host = ftl.bytes_host;
        self.bytes_programmed = ftl.bytes_programmed();
        self.bytes_gc = ftl.bytes_gc;
        self.free_blocks = after.free_blocks;
        self.erases = ftl.erases;
        self.erase_max = after.erase_max;
        let erased = worn + after.counters.nand.erases;
        self.erase_mean = erased as f64 / n_blocks.max(1) as f64;
    }

    /// Least, mean and most of the dies.
    pub fn die_busy_range(&self) -> [f64; 3] {
        let n = self.die_busy.len().max(1) as f64;
        let min = self.die_busy.iter().copied().fold(f64::INFINITY, f64::min);
        let max = self.die_busy.iter().copied().fold(0.0, f64::max);
        [min.min(max), self.die_busy.iter().sum::<f64>() / n, max]
    }
}

impl Observer for Series {
    fn starts(&mut self, ssd: &Ssd, now_ns: u64) {
        (self.start_ns, self.end_ns) = (now_ns, now_ns);
        let nand = ssd.nand();
        self.n_blocks = u64::from(nand.geometry().n_blocks());
        let worn: u64 = nand.wear().iter().map(|&n| u64::from(n)).sum();
        self.worn = worn - nand.counters().erases.min(worn);
        self.first = Some(self.mark(ssd, now_ns));
    }

    #[inline]
    fn arrives(&mut self, ssd: &Ssd, at_ns: u64) -> Result<(), ObserveError> {
        if at_ns < self.boundary_ns(self.marks.len() as u64) {
            return Ok(());
        }
        self.make_room(at_ns)?;
        while at_ns >= self.boundary_ns(self.marks.len() as u64) {
            let mark = self.mark(ssd, self.boundary_ns(self.marks.len() as u64));
            self.marks.push(mark);
        }
        Ok(())
    }

    #[inline]
    fn completed(
        &mut self,
        request: &Request,
        at_ns: u64,
        done_ns: u64,
    ) -> Result<(), ObserveError> {
        let index = self.make_room(done_ns)?;
        let ns = done_ns - at_ns;
        let like = self.scratch.lowest_like(ns);
        let bytes = u64::from(request.sectors) * SECTOR_BYTES;
        let bin = self.bins.entry(index).or_default();
        let sample = match request.op {
            OpKind::Read => {
                bin.read_bytes += bytes;
                &mut bin.reads
            }
            OpKind::Write | OpKind::WriteZeroes => {
                bin.write_bytes += bytes;
                &mut bin.writes
            }
            OpKind::Trim => {
                bin.n_trims += 1;
                return Ok(());
            }
            OpKind::Flush => {
                bin.n_flushes += 1;
                return Ok(());
            }
        };
        *sample.counts.entry(like).or_default() += 1;
        sample.max_ns = sample.max_ns.max(ns);
        Ok(())
    }

    fn ends(&mut self, ssd: &Ssd, end_ns: u64) {
        self.end_ns = end_ns;
        self.last = Some(self.mark(ssd, end_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_to_round_lengths() {
        let mut s = Series::new(Interval::Auto);
        let lengths = [10_000u64, 20_000, 100_000, 200_000, 1_000_000, 2_000_000, 10_000_000];
        for ns in lengths {
            assert_eq!(s.length_ns, ns);
            s.lengthen();
        }
        let index = s.make_room(3_600_000_000_000).expect("any length fits");
        assert_eq!((s.length_ns, index), (10_000_000_000, 360));
    }

    #[test]
    fn too_many_intervals_of_a_given_length_are_refused() {
        let mut s = Series::new(Interval::Fixed(1000));
        assert_eq!(s.make_room(999_999_999).expect("the last that fits"), 999_999);
        let message = s.make_room(1_000_000_000).unwrap_err().to_string();
        assert!(message.contains("--series-interval"), "{message}");
    }

    #[test]
    fn a_die_is_busy_for_no_longer_than_an_interval_lasts() {
        let mut told = [0, 0];
        assert_eq!(busy(&mut told, &[150, 20], 100), [1.0, 0.2]);
        assert_eq!(busy(&mut told, &[150, 10], 100), [0.5, 0.0], "the rest, and never less");
        assert_eq!(told, [150, 20]);
    }
}
