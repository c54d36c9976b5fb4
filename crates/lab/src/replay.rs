//! Driving a workload through a drive. The core loop is [`replay`]: take the next
//! request, decide when it arrives, hand it to the drive in commands it can take,
//! note when it was done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_hint::{DataClass, Lba, Relation};
use flashwise_ssd::{BlockId, Command, RelationPolicy, Ssd, SsdCounters};
use flashwise_workload::{Fit, OpKind, Request, Source};

use crate::error::LabError;
use crate::measure::{Digest, Latencies};
use crate::observe::Observer;
use crate::policy::Policy;
use crate::row::{ClassBytes, Relations, Row};

/// When requests arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// At their time in the trace, times a factor, whatever the drive does.
    Open {
        /// Factor on arrival times (2 = half the rate).
        time_scale: f64,
    },
    /// So many in flight, the next one a while after a completion.
    Closed {
        /// Requests in flight.
        queue_depth: u32,
        /// Host time between a completion and the next request \[ns\].
        gap_ns: u64,
    },
    /// At the times the workload names (see [`crate::replay_jobs`]).
    Driven,
}

/// What to replay and how.
pub struct Replay<'a> {
    /// Name of the workload in the results.
    pub workload: &'a str,
    /// Policy the drive runs.
    pub policy: &'a Policy,
    /// When requests arrive.
    pub pace: Pace,
    /// How addresses are made to fit; `None`: they do.
    pub fit: Option<&'a Fit>,
    /// CPU time so far \[s\]; `None`: speeds are not measured.
    pub cpu_clock: Option<&'a dyn Fn() -> f64>,
}

/// Requests handled together.
const BATCH: usize = 32;

/// What bounds jobs that saturate no part of the drive.
pub(crate) const NO_BOTTLENECK: &str = "the jobs";

/// Below this a resource is not what bounds throughput.
const SATURATED: f64 = 0.6;

/// Replays `source` on `ssd` and measures from the first request on. The drive's
/// clock may be anywhere; arrival times count from there.
pub fn replay<S: Source>(ssd: &mut Ssd, source: S, spec: &Replay<'_>) -> Result<Row, LabError> {
    replay_observed(ssd, source, spec, &mut ())
}

/// [`replay`], with somebody who is told of every request. The row is the same.
pub fn replay_observed<S: Source, O: Observer>(
    ssd: &mut Ssd,
    source: S,
    spec: &Replay<'_>,
    observer: &mut O,
) -> Result<Row, LabError> {
    let cpu_start = spec.cpu_clock.map(|clock| clock());
    let start_ns = ssd.now_ns();
    let before = ssd.counters();
    let mut requests = LookAhead::new(source, spec.fit);
    let mut arrivals = Arrivals::new(spec.pace, start_ns);
    let mut run = Run::new(spec.policy.relation);
    observer.starts(ssd, start_ns);
    while let Some(request) = requests.next(ssd)? {
        let at_ns = arrivals.next(request)?;
        observer.arrives(ssd, at_ns)?;
        let done_ns = match run.carry_out(ssd, request, at_ns) {
            Ok(done_ns) => done_ns,
            Err(e) => {
                run.stop(e)?;
                break;
            }
        };
        observer.completed(request, at_ns, done_ns)?;
        arrivals.completed(done_ns);
    }
    if run.n == 0 {
        return Err(LabError::NoRequests { name: spec.workload.to_owned() });
    }
    observer.ends(ssd, run.end_ns);
    let c = ssd.counters().since(&before);
    let mut row = run.row(ssd, &c, run.end_ns - start_ns);
    row.fitted_requests = requests.n_fitted;
    run.name(&mut row, spec, cpu_start);
    Ok(row)
}

fn bottleneck(row: &Row, pace: Pace) -> &'static str {
    let resources = [
        (row.die_utilization, "die"),
        (row.channel_utilization, "channel"),
        (row.link_utilization, "link"),
    ];
    let busiest = resources.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    match (busiest, pace) {
        (Some((used, name)), _) if used >= SATURATED => name,
        (_, Pace::Open { .. }) => "arrivals",
        (_, Pace::Closed { .. }) => "queue depth",
        (_, Pace::Driven) => NO_BOTTLENECK,
    }
}

/// The next requests of a source, in batches. While one batch is carried out, the
/// map entries of the next are fetched, and half-way the state of the places they
/// name.
struct LookAhead<'a, S> {
    source: S,
    fit: Option<&'a Fit>,
    batches: [[Request; BATCH]; 2],
    n: [usize; 2],
    /// Batch being carried out.
    current: usize,
    at: usize,
    n_fitted: u64,
}

impl<'a, S: Source> LookAhead<'a, S> {
    fn new(source: S, fit: Option<&'a Fit>) -> Self {
        let blank = Request::new(OpKind::Flush, Lba(0), 0);
        // An empty batch that has ended: the first call moves on.
        Self {
            source,
            fit,
            batches: [[blank; BATCH]; 2],
            n: [0; 2],
            current: 0,
            at: 0,
            n_fitted: 0,
        }
    }

    #[inline]
    fn next(&mut self, ssd: &Ssd) -> Result<Option<&Request>, LabError> {
        if self.at == self.n[self.current] {
            self.turn(ssd)?;
            if self.n[self.current] == 0 {
                return Ok(None);
            }
        }
        if self.at == BATCH / 2 {
            let next = 1 - self.current;
            for r in &self.batches[next][..self.n[next]] {
                ssd.prefetch_place(r.lba);
            }
        }
        self.at += 1;
        Ok(Some(&self.batches[self.current][self.at - 1]))
    }

    /// Goes on with the next batch and fetches the one after.
    fn turn(&mut self, ssd: &Ssd) -> Result<(), LabError> {
        if self.n == [0; 2] {
            self.fill(1 - self.current, ssd)?;
        }
        self.n[self.current] = 0;
        self.current = 1 - self.current;
        self.at = 0;
        self.fill(1 - self.current, ssd)
    }

    fn fill(&mut self, batch: usize, ssd: &Ssd) -> Result<(), LabError> {
        let n = self.source.next_batch(&mut self.batches[batch])?;
        self.n[batch] = n;
        for r in &mut self.batches[batch][..n] {
            if let Some(fit) = self.fit {
                self.n_fitted += u64::from(fit.apply(r)?);
            }
            ssd.prefetch_map(r.lba);
        }
        Ok(())
    }
}

/// Arrival times of an open or closed loop.
struct Arrivals {
    pace: Pace,
    start_ns: u64,
    /// When each request in flight is done, plus the host's gap.
    in_flight: BinaryHeap<Reverse<u64>>,
}

impl Arrivals {
    fn new(pace: Pace, start_ns: u64) -> Self {
        let in_flight = match pace {
            Pace::Open { .. } | Pace::Driven => BinaryHeap::new(),
            Pace::Closed { queue_depth, .. } => {
                (0..queue_depth).map(|_| Reverse(start_ns)).collect()
            }
        };
        Self { pace, start_ns, in_flight }
    }

    #[inline]
    fn next(&mut self, request: &Request) -> Result<u64, LabError> {
        match self.pace {
            Pace::Closed { .. } => Ok(self.in_flight.peek().map_or(self.start_ns, |r| r.0)),
            Pace::Open { .. } | Pace::Driven => {
                let time_scale = match self.pace {
                    Pace::Open { time_scale } => time_scale,
                    _ => 1.0,
                };
                let at_ns = request.at_ns;
                let scaled =
                    if time_scale == 1.0 { at_ns } else { (at_ns as f64 * time_scale) as u64 };
                // `as` saturates, and nothing may come near the end of the clock.
                match self.start_ns.checked_add(scaled) {
                    Some(t) if t < u64::MAX / 2 => Ok(t),
                    _ => Err(LabError::TimeOverflow { at_ns, scale: time_scale }),
                }
            }
        }
    }

    #[inline]
    fn completed(&mut self, done_ns: u64) {
        if let Pace::Closed { gap_ns, .. } = self.pace
            && let Some(mut first) = self.in_flight.peek_mut()
        {
            *first = Reverse(done_ns + gap_ns);
        }
    }
}

/// What has been measured so far.
pub(crate) struct Run {
    relation: RelationPolicy,
    relations: Relations,
    pub(crate) n: u64,
    n_trims: u64,
    n_flushes: u64,
    n_units: u64,
    read_bytes: u64,
    write_bytes: u64,
    classes: Option<ClassBytes>,
    reads: Latencies,
    writes: Latencies,
    others: Latencies,
    pub(crate) end_ns: u64,
    digest: Digest,
    stopped: Option<String>,
}

impl Run {
    pub(crate) fn new(relation: RelationPolicy) -> Self {
        Self {
            relation,
            relations: Relations::None,
            n: 0,
            n_trims: 0,
            n_flushes: 0,
            n_units: 0,
            read_bytes: 0,
            write_bytes: 0,
            classes: None,
            reads: Latencies::default(),
            writes: Latencies::default(),
            others: Latencies::default(),
            end_ns: 0,
            digest: Digest::new(),
            stopped: None,
        }
    }

    /// Relations come with the writes, and none is inferred.
    pub(crate) fn relations_come_with_writes(&mut self) {
        if self.relation != RelationPolicy::None {
            self.relations = Relations::Carried;
        }
    }

    #[inline]
    fn carry_out(&mut self, ssd: &mut Ssd, r: &Request, at_ns: u64) -> Result<u64, LabError> {
        let done_ns = self.serve(ssd, r, at_ns)?;
        self.record(ssd, r, done_ns - at_ns);
        self.end_ns = self.end_ns.max(done_ns);
        Ok(done_ns)
    }

    /// Carries out a request without counting it; when it was done \[ns\].
    #[inline]
    pub(crate) fn serve(
        &mut self,
        ssd: &mut Ssd,
        r: &Request,
        at_ns: u64,
    ) -> Result<u64, LabError> {
        let related;
        let r = if self.relation != RelationPolicy::None && r.op == OpKind::Write {
            related = self.relate(ssd, *r);
            &related
        } else {
            r
        };
        let done_ns = submit_split(ssd, r, at_ns).map_err(|source| self.refused(r, source))?;
        self.digest.add(done_ns);
        Ok(done_ns)
    }

    /// Counts a request that was carried out.
    #[inline]
    pub(crate) fn record(&mut self, ssd: &Ssd, r: &Request, latency_ns: u64) {
        self.n += 1;
        let bytes = u64::from(r.sectors) * flashwise_hint::SECTOR_BYTES;
        match r.op {
            OpKind::Read => {
                self.reads.record(latency_ns);
                self.read_bytes += bytes;
                self.n_units += ssd.units_of(r.sectors);
            }
            OpKind::Write => {
                self.writes.record(latency_ns);
                self.write_bytes += bytes;
                self.n_units += ssd.units_of(r.sectors);
                if r.hint.class != DataClass::Unspecified {
                    self.count_class(r.hint.class, bytes);
                }
            }
            OpKind::WriteZeroes => {
                self.writes.record(latency_ns);
                self.write_bytes += bytes;
            }
            OpKind::Trim => {
                self.n_trims += 1;
                self.others.record(latency_ns);
            }
            OpKind::Flush => {
                self.n_flushes += 1;
                self.others.record(latency_ns);
            }
        }
    }

    fn count_class(&mut self, class: DataClass, bytes: u64) {
        let classes = self.classes.get_or_insert_default();
        match class {
            DataClass::Unspecified => {}
            DataClass::Journal => classes.bytes_journal += bytes,
            DataClass::Metadata => classes.bytes_metadata += bytes,
            DataClass::Hot => classes.bytes_hot += bytes,
            DataClass::Cold => classes.bytes_cold += bytes,
        }
    }

    /// A drive that has become read-only ends the run; what was measured until then
    /// counts. Other errors, and a drive that took nothing at all, are errors.
    #[cold]
    pub(crate) fn stop(&mut self, e: LabError) -> Result<(), LabError> {
        let ends = matches!(
            &e,
            LabError::Command { source: flashwise_ssd::CommandError::ReadOnly { .. }, .. }
        );
        if !ends || self.n == 0 {
            return Err(e);
        }
        self.stopped = Some(e.to_string());
        Ok(())
    }

    #[cold]
    fn refused(&self, r: &Request, source: flashwise_ssd::CommandError) -> LabError {
        let what = format!("{:?} of {} sectors at {}", r.op, r.sectors, r.lba.0);
        LabError::Command { number: self.n + 1, what, source }
    }

    /// Takes the relation a request carries, or infers it from what is mapped.
    fn relate(&mut self, ssd: &Ssd, mut r: Request) -> Request {
        if r.hint.relation != Relation::None {
            self.relations = Relations::Carried;
            return r;
        }
        if self.relations == Relations::Carried || r.lba.0 >= ssd.capacity_sectors() {
            return r;
        }
        self.relations = Relations::Inferred;
        let per_unit = ssd.sectors_per_unit();
        let mapped = |lba: u64| ssd.is_mapped(flashwise_ssd::Lpn((lba / per_unit) as u32));
        if mapped(r.lba.0) {
            r.hint.relation = Relation::Overwrite;
        } else if r.lba.0 >= per_unit && mapped(r.lba.0 - per_unit) {
            r.hint.relation = Relation::Append { prev: Lba(r.lba.0 - per_unit) };
        }
        r
    }

    /// The figures, with the counters `c` of the time that was measured.
    pub(crate) fn row(&mut self, ssd: &Ssd, c: &SsdCounters, elapsed_ns: u64) -> Row {
        let ftl = c.ftl;
        self.digest_counters(c);
        let elapsed_ns = elapsed_ns.max(1);
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let mib_s = |bytes: u64| bytes as f64 / f64::from(1 << 20) / elapsed_s;
        let part = |busy_ns: u64, n: u64| (busy_ns as f64 / (elapsed_ns * n) as f64).min(1.0);
        let geo = ssd.nand().geometry();
        let n_dies = f64::from(geo.n_dies());
        let wear = Wear::of(ssd);
        // A few writes say nothing about a life.
        let enough = ftl.bytes_host >= wear.stripe_bytes;
        let tbw_tb = ftl.waf().filter(|_| enough).map(|waf| wear.budget_bytes / waf / 1e12);
        let host_bytes_per_s = ftl.bytes_host as f64 / elapsed_s;
        let left = (1.0 - wear.used).max(0.0);
        let health = ssd.ftl().health();
        let fullest = ssd.ftl().die_valid().max().unwrap_or(0);
        let (r, w) = (&self.reads, &self.writes);
        let latencies = r.sum_ns() + w.sum_ns() + self.others.sum_ns();
        Row {
            requests: self.n,
            read_requests: r.len(),
            write_requests: w.len(),
            trim_requests: self.n_trims,
            flush_requests: self.n_flushes,
            elapsed_s,
            host_mib_s: mib_s(self.read_bytes + self.write_bytes),
            read_mib_s: mib_s(self.read_bytes),
            write_mib_s: mib_s(self.write_bytes),
            iops: self.n as f64 / elapsed_s,
            read_mean_us: r.mean_us(),
            read_p50_us: r.quantile_us(0.5),
            read_p99_us: r.quantile_us(0.99),
            read_p999_us: r.quantile_us(0.999),
            read_max_us: r.max_us(),
            write_mean_us: w.mean_us(),
            write_p50_us: w.quantile_us(0.5),
            write_p99_us: w.quantile_us(0.99),
            write_p999_us: w.quantile_us(0.999),
            write_max_us: w.max_us(),
            waf: ftl.waf(),
            bytes_host: ftl.bytes_host,
            bytes_gc: ftl.bytes_gc,
            bytes_fold: ftl.bytes_fold,
            bytes_padding: ftl.bytes_padding,
            bytes_rmw: ftl.bytes_rmw,
            bytes_meta: ftl.bytes_meta,
            bytes_coalesced: ftl.bytes_coalesced,
            classes: self.classes,
            erases: ftl.erases,
            bytes_redo: ftl.bytes_redo,
            erase_max: wear.most,
            life_used: f64::from(wear.most) / ssd.config().flash.endurance as f64,
            erase_spread: wear.most - wear.least,
            tbw_tb,
            life_years: tbw_tb.map(|tb| tb * 1e12 * left / host_bytes_per_s / SECONDS_PER_YEAR),
            gc_runs: ftl.gc_runs,
            leveling_runs: ftl.leveling_runs,
            scrub_runs: ftl.scrub_runs,
            read_retries: c.nand.read_retries,
            bad_blocks: health.bad_blocks(),
            spare_blocks: health.spare_blocks,
            free_blocks: ssd.ftl().n_free_blocks(),
            die_collisions: c.nand.die_collisions,
            page_reads: c.nand.page_reads,
            buffer_hits: c.buffer_hits,
            die_utilization: part(c.nand.busy_plane_ns, ssd.nand().n_parallel_planes()),
            channel_utilization: part(c.channel_busy_ns, u64::from(geo.n_channels)),
            link_utilization: part(c.link_out_busy_ns.max(c.link_in_busy_ns), 1),
            die_imbalance: f64::from(fullest) * n_dies / (ssd.ftl().n_valid() as f64).max(1.0),
            relations: self.relations,
            hints_yielded: ftl.hints_yielded,
            in_flight_mean: latencies as f64 / elapsed_ns as f64,
            digest: self.digest.hex(),
            ..Row::default()
        }
    }

    /// What a row says about its origin and the speed of the simulator.
    pub(crate) fn name(&self, row: &mut Row, spec: &Replay<'_>, cpu_start: Option<f64>) {
        row.workload = spec.workload.to_owned();
        row.policy = spec.policy.name.clone();
        row.stopped.clone_from(&self.stopped);
        row.bottleneck = bottleneck(row, spec.pace).to_owned();
        if let (Some(clock), Some(start)) = (spec.cpu_clock, cpu_start) {
            let cpu_s = clock() - start;
            row.cpu_s = Some(cpu_s);
            row.host_pages_per_cpu_s = Some(self.n_units as f64 / cpu_s.max(1e-9));
        }
    }

    fn digest_counters(&mut self, c: &SsdCounters) {
        let (f, n) = (&c.ftl, &c.nand);
        let all = [
            self.n,
            f.bytes_host,
            f.bytes_programmed(),
            f.bytes_gc,
            f.bytes_padding,
            f.erases,
            n.page_reads,
            n.die_collisions,
            n.copy_reads,
            n.programs,
            n.erases,
            n.busy_plane_ns,
            c.channel_busy_ns,
            c.link_out_busy_ns,
            c.link_in_busy_ns,
        ];
        all.into_iter().for_each(|v| self.digest.add(v));
    }
}

/// A year of 365.25 days \[s\].
const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;

/// How worn the good blocks of a drive are.
struct Wear {
    least: u32,
    most: u32,
    /// Bytes that can be programmed from new until every good block has reached its
    /// endurance.
    budget_bytes: f64,
    /// Part of that which is gone.
    used: f64,
    /// A program unit on every die \[bytes\].
    stripe_bytes: u64,
}

impl Wear {
    fn of(ssd: &Ssd) -> Self {
        let all = ssd.nand().wear().iter().zip(0..);
        let good = all.filter(|&(_, b)| !ssd.ftl().is_bad_block(BlockId(b)));
        let wear: Vec<u32> = good.map(|(&n, _)| n).collect();
        let n_good = wear.len() as f64;
        let sum: u64 = wear.iter().map(|&n| u64::from(n)).sum();
        let endurance = ssd.config().flash.endurance as f64;
        let unit_bytes = f64::from(ssd.ftl().config().geo.unit_bytes);
        let block_bytes = f64::from(ssd.ftl().layout().units_per_block) * unit_bytes;
        Self {
            least: wear.iter().copied().min().unwrap_or(0),
            most: wear.iter().copied().max().unwrap_or(0),
            budget_bytes: n_good * endurance * block_bytes,
            used: sum as f64 / (n_good * endurance),
            stripe_bytes: u64::from(ssd.ftl().config().geo.n_dies())
                * u64::from(ssd.ftl().layout().units_per_pu)
                * u64::from(ssd.ftl().config().geo.unit_bytes),
        }
    }
}

/// Hands a request to the drive, cut into commands it can take, all at `at_ns`;
/// when the last is done \[ns\].
#[inline]
fn submit_split(
    ssd: &mut Ssd,
    r: &Request,
    at_ns: u64,
) -> Result<u64, flashwise_ssd::CommandError> {
    let max = ssd.max_sectors();
    match r.op {
        OpKind::Read if r.sectors <= max => return ssd.submit_read(r.lba, r.sectors, at_ns),
        OpKind::Write if r.sectors <= max => {
            return ssd.submit_write(r.lba, r.sectors, r.fua, &r.hint, at_ns);
        }
        OpKind::Read | OpKind::Write => {}
        _ => return ssd.submit(&command(r, r.lba, r.sectors), at_ns),
    }
    // Cut from the start of the request, as a block layer cuts one.
    let (mut lba, end) = (r.lba.0, r.lba.0 + u64::from(r.sectors));
    let mut piece = *r;
    let mut done_ns = at_ns;
    while lba < end {
        let n = (end - lba).min(u64::from(max)) as u32;
        done_ns = done_ns.max(ssd.submit(&command(&piece, Lba(lba), n), at_ns)?);
        lba += u64::from(n);
        if let Relation::Append { .. } = piece.hint.relation {
            piece.hint.relation =
                Relation::Append { prev: Lba(lba - ssd.sectors_per_unit().min(lba)) };
        }
    }
    Ok(done_ns)
}

#[inline]
fn command(r: &Request, lba: Lba, sectors: u32) -> Command {
    match r.op {
        OpKind::Read => Command::Read { lba, sectors },
        OpKind::Write => Command::Write { lba, sectors, fua: r.fua, hint: r.hint },
        OpKind::Trim => Command::Trim { lba, sectors },
        OpKind::WriteZeroes => Command::WriteZeroes { lba, sectors },
        OpKind::Flush => Command::Flush,
    }
}
