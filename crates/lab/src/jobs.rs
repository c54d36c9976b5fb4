//! Driving jobs that wait for their own completions through a drive.
//!
//! The same core loop as [`replay`](crate::replay), with the workload in charge of time:
//! take the next request in virtual time, submit it, tell the workload when it was done.
//! No batches: which job comes next depends on the completion before.
//!
//! Warm-up: a request that the workload does not measure is carried out and left out of
//! every figure. The time and the counters between the last measured request before a
//! warm-up and the first one after it are left out as well.
//!
//! Cost: nothing is fetched ahead, so jobs replay at about two thirds of the speed of a
//! single closed loop (2.2 against 3.3 million pages per CPU second on bench-16g).

use flashwise_ssd::{Ssd, SsdCounters};
use flashwise_workload::{Driver, OpKind, Request};

use crate::error::LabError;
use crate::measure::Latencies;
use crate::observe::Observer;
use crate::replay::{Replay, Run};
use crate::row::{JobRow, Row};

/// Replays the jobs of `driver` on `ssd`. Their times count from the drive's clock;
/// `spec.pace` and `spec.fit` do not apply.
pub fn replay_jobs<D: Driver>(
    ssd: &mut Ssd,
    driver: D,
    spec: &Replay<'_>,
) -> Result<Row, LabError> {
    replay_jobs_observed(ssd, driver, spec, &mut ())
}

/// [`replay_jobs`], with somebody who is told of every request, of warm-ups too.
pub fn replay_jobs_observed<D: Driver, O: Observer>(
    ssd: &mut Ssd,
    mut driver: D,
    spec: &Replay<'_>,
    observer: &mut O,
) -> Result<Row, LabError> {
    let cpu_start = spec.cpu_clock.map(|clock| clock());
    let start_ns = ssd.now_ns();
    let mut window = Window::new(ssd.counters(), start_ns);
    let mut run = Run::new(spec.policy.relation);
    if driver.span_ns().is_some() {
        run.relations_come_with_writes();
    }
    let mut meters: Vec<Meter> = driver.job_names().iter().map(|_| Meter::default()).collect();
    let mut n_ramp = 0;
    observer.starts(ssd, start_ns);
    while let Some(issue) = driver.next_issue() {
        let r = &issue.request;
        let at_ns = match start_ns.checked_add(r.at_ns) {
            Some(t) if t < u64::MAX / 2 => t,
            _ => {
                let name = driver.job_names()[issue.job as usize].clone();
                return Err(LabError::EndlessJob { name, n: run.n });
            }
        };
        if window.blank && issue.measured {
            // A delay before the first request is no part of the run.
            window.skipped_ns += at_ns - start_ns;
        }
        match driver.span_ns() {
            Some((from_ns, _)) if issue.measured => window.turn(true, start_ns + from_ns, ssd),
            _ => window.turn(issue.measured, at_ns, ssd),
        }
        observer.arrives(ssd, at_ns)?;
        let done_ns = match run.serve(ssd, r, at_ns) {
            Ok(done_ns) => done_ns,
            Err(e) => {
                run.stop(e)?;
                break;
            }
        };
        observer.completed(r, at_ns, done_ns)?;
        run.end_ns = run.end_ns.max(done_ns);
        if issue.measured {
            run.record(ssd, r, done_ns - at_ns);
            meters[issue.job as usize].record(r, at_ns, done_ns);
        } else {
            n_ramp += 1;
        }
        driver.completed(done_ns - start_ns);
    }
    if let Some((from_ns, to_ns)) = driver.span_ns() {
        window.turn(true, start_ns + from_ns, ssd);
        run.end_ns = run.end_ns.max(start_ns + to_ns);
    }
    let name = spec.workload.to_owned();
    match (run.n, n_ramp) {
        _ if driver.span_ns().is_some() => {}
        (0, 0) => return Err(LabError::NoRequests { name }),
        (0, n) => return Err(LabError::OnlyRamp { name, n }),
        _ => {}
    }
    observer.ends(ssd, run.end_ns);
    window.turn(true, run.end_ns, ssd);
    let mut row = run.row(ssd, &window.counters(ssd), run.end_ns - start_ns - window.skipped_ns);
    run.name(&mut row, spec, cpu_start);
    row.jobs = driver.job_names().iter().zip(&meters).map(|(name, m)| m.row(name)).collect();
    Ok(row)
}

/// The time and the counters that are measured: all but the warm-ups.
struct Window {
    before: SsdCounters,
    /// Where the warm-up under way began.
    ramp: Option<(u64, SsdCounters)>,
    /// What each warm-up cost.
    skipped: Vec<SsdCounters>,
    skipped_ns: u64,
    start_ns: u64,
    /// Nothing was issued yet.
    blank: bool,
}

impl Window {
    fn new(before: SsdCounters, start_ns: u64) -> Self {
        Self { before, ramp: None, skipped: vec![], skipped_ns: 0, start_ns, blank: true }
    }

    /// The request at `at_ns` is measured or not.
    #[inline]
    fn turn(&mut self, measured: bool, at_ns: u64, ssd: &Ssd) {
        match (&self.ramp, measured) {
            (None, true) | (Some(_), false) => {}
            (None, false) => {
                // A warm-up at the start covers the time before the first request too.
                let from_ns = if self.blank { self.start_ns } else { at_ns };
                self.ramp = Some((from_ns, ssd.counters()));
            }
            (Some((from_ns, counters)), true) => {
                self.skipped.push(ssd.counters().since(counters));
                self.skipped_ns += at_ns - from_ns;
                self.ramp = None;
            }
        }
        self.blank = false;
    }

    fn counters(&self, ssd: &Ssd) -> SsdCounters {
        let all = ssd.counters().since(&self.before);
        self.skipped.iter().fold(all, |rest, skipped| rest.since(skipped))
    }
}

/// What one job got. Histograms are large, so a kind that never comes has none.
#[derive(Default)]
struct Meter {
    first_ns: Option<u64>,
    end_ns: u64,
    n_trims: u64,
    read_bytes: u64,
    write_bytes: u64,
    reads: Option<Box<Latencies>>,
    writes: Option<Box<Latencies>>,
    flushes: Option<Box<Latencies>>,
}

impl Meter {
    fn record(&mut self, r: &Request, at_ns: u64, done_ns: u64) {
        self.first_ns.get_or_insert(at_ns);
        self.end_ns = self.end_ns.max(done_ns);
        let kind = match r.op {
            OpKind::Trim => {
                self.n_trims += 1;
                return;
            }
            OpKind::Read => {
                self.read_bytes += r.bytes();
                &mut self.reads
            }
            OpKind::Write | OpKind::WriteZeroes => {
                self.write_bytes += r.bytes();
                &mut self.writes
            }
            OpKind::Flush => &mut self.flushes,
        };
        kind.get_or_insert_default().record(done_ns - at_ns);
    }

    fn row(&self, name: &str) -> JobRow {
        let elapsed_s = (self.end_ns - self.first_ns.unwrap_or(0)).max(1) as f64 / 1e9;
        let mib_s = |bytes: u64| bytes as f64 / f64::from(1 << 20) / elapsed_s;
        let n = |l: &Option<Box<Latencies>>| l.as_ref().map_or(0, |l| l.len());
        let mean = |l: &Option<Box<Latencies>>| l.as_ref().and_then(|l| l.mean_us());
        let at = |l: &Option<Box<Latencies>>, q| l.as_ref().and_then(|l| l.quantile_us(q));
        let requests = n(&self.reads) + n(&self.writes) + n(&self.flushes) + self.n_trims;
        JobRow {
            name: name.to_owned(),
            requests,
            read_requests: n(&self.reads),
            write_requests: n(&self.writes),
            trim_requests: self.n_trims,
            flush_requests: n(&self.flushes),
            elapsed_s,
            host_mib_s: mib_s(self.read_bytes + self.write_bytes),
            read_mib_s: mib_s(self.read_bytes),
            write_mib_s: mib_s(self.write_bytes),
            iops: requests as f64 / elapsed_s,
            read_mean_us: mean(&self.reads),
            read_p50_us: at(&self.reads, 0.5),
            read_p99_us: at(&self.reads, 0.99),
            write_mean_us: mean(&self.writes),
            write_p50_us: at(&self.writes, 0.5),
            write_p99_us: at(&self.writes, 0.99),
            flush_p50_us: at(&self.flushes, 0.5),
            flush_p99_us: at(&self.flushes, 0.99),
        }
    }
}
