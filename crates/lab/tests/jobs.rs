//! Workloads that are told their completions: the same as a closed loop where they ask
//! for the same, and warm-ups are in no figure.

mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_lab::{LabError, Pace, Policy, Replay, Row, replay, replay_jobs};
use flashwise_ssd::Ssd;
use flashwise_workload::{Driver, Issue, Request, Source, Synthetic, SyntheticSpec};

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
