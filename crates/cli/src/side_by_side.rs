//! All policies of a replay, side by side: each on its own drive and its own thread, and
//! a trace is read once for all of them.
//!
//! Rows come out in the order of the policies, with the bytes that one replay after the
//! other would give. Where requests are written to a file as they complete, the policies
//! take turns.

use std::thread;

use cpu_time::ThreadTime;

use flashwise_hostfs::Host;
use flashwise_lab::{
    Feeder, LabError, ObserveError, Observer, Pace, Policy, Replay, Row, Shared,
    replay_files_observed, replay_jobs_observed, replay_observed, share,
};
use flashwise_ssd::Ssd;
use flashwise_workload::{
    ClassMap, Classified, Fit, JobPlan, JobSet, JobStream, Source, Synthetic, TraceReader,
    open_trace,
};

use crate::Failure;
use crate::args::ReplayArgs;
use crate::files::App;
use crate::output::Progress;
use crate::replay::{Work, plain, workload_name};
use crate::watch::{Files, Watch};

/// What is replayed, and how.
pub(crate) struct SideBySide<'a> {
    pub(crate) args: &'a ReplayArgs,
    pub(crate) work: &'a Work,
    pub(crate) pace: Pace,
    pub(crate) fit: Option<&'a Fit>,
    pub(crate) policies: &'a [Policy],
    /// Classes that writes of a trace get by their address.
    pub(crate) classes: &'a ClassMap,
}

/// A trace whose writes carry classes.
type Trace = Classified<TraceReader>;

/// Where the requests of one replay come from.
enum Input<'a> {
    Trace(Box<dyn Source + Send>),
    Jobs(&'a JobPlan),
    App(&'a App),
}

impl SideBySide<'_> {
    /// Replays under every policy, each on a copy of `ssd`; the rows in their order.
    pub(crate) fn run(&self, ssd: Ssd, files: &mut Files) -> Result<Vec<Row>, Failure> {
        let names: Vec<&str> = self.policies.iter().map(|p| &*p.name).collect();
        let progress = Progress::start(&format!(
            "replaying {}, {}",
            workload_name(self.args.input()),
            names.join(" and ")
        ));
        let result = if files.needs_turns() || self.policies.len() == 1 {
            self.in_turns(ssd, files)
        } else {
            self.beside(ssd, files)
        };
        drop(progress);
        result
    }

    fn in_turns(&self, ssd: Ssd, files: &mut Files) -> Result<Vec<Row>, Failure> {
        let mut rows = vec![];
        let mut ssd = Some(ssd);
        for (i, policy) in self.policies.iter().enumerate() {
            let is_last = i + 1 == self.policies.len();
            let drive = if is_last { ssd.take() } else { ssd.clone() };
            let drive = drive.expect("only the last one takes it");
            let mut watch = files.watch(&policy.name);
            let input = match self.work {
                Work::Trace { .. } => Input::Trace(Box::new(self.open()?)),
                Work::Jobs { plan } => Input::Jobs(plan),
                Work::App { app } => Input::App(app),
            };
            rows.push(self.one(drive, input, policy, watch.as_mut()).map_err(failure)?);
            let series = watch.and_then(Watch::into_series);
            files.add(&policy.name, series)?;
        }
        Ok(rows)
    }

    fn beside(&self, ssd: Ssd, files: &mut Files) -> Result<Vec<Row>, Failure> {
        let n = self.policies.len();
        let (feeder, inputs) = self.inputs(n)?;
        let mut done = thread::scope(|scope| {
            let all = self.policies.iter().zip(inputs).zip(copies(ssd, n));
            let started: Vec<_> = all
                .map(|((policy, input), drive)| {
                    let mut watch = files.watch_beside(&policy.name);
                    scope.spawn(move || {
                        let row = self.one(drive, input, policy, watch.as_mut());
                        (row, watch.and_then(Watch::into_series))
                    })
                })
                .collect();
            let read = feeder.map_or(Ok(()), Feeder::run);
            let ended = started.into_iter().map(|t| match t.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let ended: Vec<_> = ended.collect();
            // Where reading failed, no row means anything.
            read.map(|()| ended).map_err(Failure::input)
        })?;
        let mut rows = vec![];
        for (policy, (row, series)) in self.policies.iter().zip(done.drain(..)) {
            rows.push(row.map_err(failure)?);
            files.add(&policy.name, series)?;
        }
        Ok(rows)
    }

    /// Inputs for `n` replays, and who reads for them.
    fn inputs(&self, n: usize) -> Result<(Option<Feeder<Trace>>, Vec<Input<'_>>), Failure> {
        match self.work {
            Work::Jobs { plan } => Ok((None, (0..n).map(|_| Input::Jobs(plan)).collect())),
            Work::App { app } => Ok((None, (0..n).map(|_| Input::App(app)).collect())),
            Work::Trace { .. } => {
                let (feeder, shared) = share(self.open()?, n);
                let input = |s: Shared| Input::Trace(Box::new(s));
                Ok((Some(feeder), shared.into_iter().map(input).collect()))
            }
        }
    }

    fn open(&self) -> Result<Trace, Failure> {
        let reader = open_trace(self.args.input(), &self.args.trace_options());
        reader.map(|r| Classified::new(r, self.classes.clone())).map_err(Failure::input)
    }

    fn one(
        &self,
        drive: Ssd,
        input: Input<'_>,
        policy: &Policy,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<Row, LabError> {
        let mut drive = drive.with_relation(policy.relation);
        let workload = workload_name(self.args.input());
        let clock = || ThreadTime::now().as_duration().as_secs_f64();
        let cpu_clock: Option<&dyn Fn() -> f64> =
            if self.args.timing { Some(&clock) } else { None };
        let (pace, fit) = (self.pace, self.fit);
        let spec = Replay { workload: &workload, policy, pace, fit, cpu_clock };
        match watch {
            Some(watch) => carry_out(&mut drive, input, &spec, self.args.seed, watch),
            None => carry_out(&mut drive, input, &spec, self.args.seed, &mut ()),
        }
    }
}

fn copies(ssd: Ssd, n: usize) -> Vec<Ssd> {
    let mut all: Vec<Ssd> = (1..n).map(|_| ssd.clone()).collect();
    all.push(ssd);
    all
}

/// One plain job is a stream of requests, which replays fastest; several jobs, or one
/// that depends on time, hear of their completions.
fn carry_out<O: Observer>(
    ssd: &mut Ssd,
    input: Input<'_>,
    spec: &Replay<'_>,
    seed: u64,
    observer: &mut O,
) -> Result<Row, LabError> {
    let plan = match input {
        Input::App(app) => {
            let device_bytes = ssd.capacity_sectors() * 512;
            let host = Host::new(app.spec.build(seed), &app.fs, device_bytes);
            let mut host = host.map_err(LabError::Host)?;
            return replay_files_observed(ssd, &mut host, spec, observer);
        }
        Input::Trace(source) => return replay_observed(ssd, source, spec, observer),
        Input::Jobs(plan) => plan,
    };
    if let Some(job) = plain(plan) {
        return match job.synthetic() {
            Some(fast) => replay_observed(ssd, Synthetic::new(fast)?, spec, observer),
            None => replay_observed(ssd, JobStream::new(job.stream.clone()), spec, observer),
        };
    }
    let gap_ns = (ssd.config().host.gap_us * 1000.0).round() as u64;
    let set = JobSet::new(plan.specs.clone(), plan.names.clone(), gap_ns);
    replay_jobs_observed(ssd, set, spec, observer)
}

fn failure(e: LabError) -> Failure {
    match e {
        LabError::Workload(_)
        | LabError::NoRequests { .. }
        | LabError::OnlyRamp { .. }
        | LabError::EndlessJob { .. }
        | LabError::TimeOverflow { .. }
        | LabError::Observe(ObserveError::TooManyIntervals { .. }) => Failure::input(e),
        other => Failure::Work(other.into()),
    }
}
