//! Workloads that are told their completions: the same as a closed loop where they ask
//! for the same, and warm-ups are in no figure.

mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use flashwise_lab::{LabError, Pace, Policy, Replay, Row, replay, replay_jobs};
use flashwise_ssd::Ssd;
use flashwise_workload::{
    Driver, Issue, JobSet, JobStream, JobTarget, Request, Source, Synthetic, SyntheticSpec,
    parse_fio_file,
};

/// A closed loop as the simplest driver there is.
struct Loop {
    source: Synthetic,
    slots: BinaryHeap<Reverse<u64>>,
    gap_ns: u64,
    /// Requests before this one are a warm-up.
    ramp: u64,
    n: u64,
    names: Vec<String>,
}

impl Loop {
    fn new(spec: SyntheticSpec, gap_ns: u64, ramp: u64) -> Self {
        let source = Synthetic::new(spec).unwrap();
        let slots = (0..spec.queue_depth).map(|_| Reverse(0)).collect();
        Self { source, slots, gap_ns, ramp, n: 0, names: vec!["loop".to_owned()] }
    }
}

impl Driver for Loop {
    fn next_issue(&mut self) -> Option<Issue> {
        let request = self.source.next_request().unwrap()?;
        let at_ns = self.slots.pop().unwrap().0;
        self.n += 1;
        let request = Request { at_ns, ..request };
        Some(Issue { request, job: 0, measured: self.n > self.ramp })
    }

    fn completed(&mut self, done_ns: u64) {
        self.slots.push(Reverse(done_ns + self.gap_ns));
    }

    fn job_names(&self) -> &[String] {
        &self.names
    }
}

fn spec(ssd: &Ssd) -> SyntheticSpec {
    let region = ssd.capacity_sectors();
    let n_requests = Some(5000);
    SyntheticSpec { n_requests, read_percent: 40, ..SyntheticSpec::random_write(region, 5) }
}

fn run(ramp: u64) -> Result<Row, LabError> {
    let mut ssd = common::drive("tiny", &[]);
    let policy = Policy::none();
    let pace = Pace::Driven;
    let how = Replay { workload: "loop", policy: &policy, pace, fit: None, cpu_clock: None };
    let driver = Loop::new(spec(&ssd), 1000, ramp);
    replay_jobs(&mut ssd, driver, &how)
}

#[test]
fn a_closed_loop_as_a_driver_gives_the_figures_of_a_closed_loop() {
    let mut ssd = common::drive("tiny", &[]);
    let policy = Policy::none();
    let pace = Pace::Closed { queue_depth: 32, gap_ns: 1000 };
    let how = Replay { workload: "loop", policy: &policy, pace, fit: None, cpu_clock: None };
    let source = Synthetic::new(spec(&ssd)).unwrap();
    let expected = replay(&mut ssd, source, &how).unwrap();
    let row = run(0).unwrap();
    let job = row.jobs[0].clone();
    assert_eq!(Row { jobs: vec![], bottleneck: expected.bottleneck.clone(), ..row }, expected);
    assert_eq!(job.name, "loop");
    assert_eq!((job.requests, job.elapsed_s), (expected.requests, expected.elapsed_s));
    assert_eq!((job.read_p99_us, job.iops), (expected.read_p99_us, expected.iops));
}

/// The three ways to replay one plain job: the fast generator, its stream, and the set of
/// jobs that hears of completions.
#[test]
fn a_plain_job_gives_the_same_figures_on_every_path() {
    let text = "[a]\nrw=randrw\nnorandommap\nsize=50%\nbs=8k\niodepth=5\nio_size=20m\n";
    let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let file = parse_fio_file(Path::new("t.fio"), text.as_bytes(), &|_| None, &none).unwrap();
    let mut ssds = [(); 3].map(|()| common::drive("tiny", &[]));
    let capacity_sectors = ssds[0].capacity_sectors();
    let target = JobTarget { capacity_sectors, n_handles: 1, seed: 3, queue_depth: None };
    let plan = file.jobs(&target).unwrap();
    let policy = Policy::none();
    let pace = Pace::Closed { queue_depth: 5, gap_ns: 700 };
    let how = Replay { workload: "a", policy: &policy, pace, fit: None, cpu_clock: None };
    let [one, two, three] = &mut ssds;
    let fast = Synthetic::new(plan.specs[0].synthetic().unwrap()).unwrap();
    let fast = replay(one, fast, &how).unwrap();
    let stream = replay(two, JobStream::new(plan.specs[0].stream.clone()), &how).unwrap();
    let set = replay_jobs(three, JobSet::new(plan.specs, plan.names, 700), &how).unwrap();
    assert_eq!(fast.requests, 2560);
    assert_eq!(fast, stream);
    assert_eq!(Row { jobs: vec![], ..set }, fast);
}

#[test]
fn a_warm_up_is_in_no_figure() {
    let (all, rest) = (run(0).unwrap(), run(2000).unwrap());
    assert_eq!((all.requests, rest.requests, rest.jobs[0].requests), (5000, 3000, 3000));
    assert!(rest.elapsed_s < all.elapsed_s && rest.elapsed_s > 0.4 * all.elapsed_s);
    let share = rest.bytes_host as f64 / all.bytes_host as f64;
    assert!((share - 0.6).abs() < 0.03, "{share}");
    assert!(rest.die_utilization <= 1.0 && rest.die_utilization > 0.5 * all.die_utilization);
    // All of it: an error that says so, not a row of zeroes.
    let message = run(5000).unwrap_err().to_string();
    assert!(message.contains("5000") && message.contains("ramp_time"), "{message}");
}
