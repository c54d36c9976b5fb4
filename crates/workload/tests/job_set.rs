//! Jobs in virtual time, on drives whose answers are known: who comes when.

use std::path::Path;

use flashwise_workload::{Driver, Issue, JobSet, JobTarget, OpKind, parse_fio_file};

const US: u64 = 1000;
const MS: u64 = 1_000_000;

fn set(text: &str, gap_ns: u64) -> JobSet {
    let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let file = parse_fio_file(Path::new("t.fio"), text.as_bytes(), &|_| None, &none).unwrap();
    let target = JobTarget { capacity_sectors: 1 << 21, n_handles: 1, seed: 1, queue_depth: None };
    let plan = file.jobs(&target).unwrap();
    JobSet::new(plan.specs, plan.names, gap_ns)
}

/// Everything the jobs issue on a drive that takes `service_ns`.
fn run(text: &str, service_ns: u64) -> Vec<Issue> {
    run_with(text, 0, |_| service_ns)
}

fn run_with(text: &str, gap_ns: u64, service_ns: impl Fn(&Issue) -> u64) -> Vec<Issue> {
    let mut set = set(text, gap_ns);
    let mut issues: Vec<Issue> = vec![];
    while let Some(issue) = set.next_issue() {
        assert!(issues.last().is_none_or(|last| last.request.at_ns <= issue.request.at_ns));
        set.completed(issue.request.at_ns + service_ns(&issue));
        issues.push(issue);
    }
    issues
}

fn times(issues: &[Issue]) -> Vec<u64> {
    issues.iter().map(|issue| issue.request.at_ns / US).collect()
}

fn of_job(issues: &[Issue], job: u32) -> Vec<u64> {
    let mine = issues.iter().filter(|issue| issue.job == job);
    mine.map(|issue| issue.request.at_ns / US).collect()
}

#[test]
fn queue_depth_and_gap_space_the_requests_of_a_job() {
    assert_eq!(times(&run("[a]\nsize=16k\n", 10 * US)), [0, 10, 20, 30]);
    assert_eq!(times(&run("[a]\nsize=24k\niodepth=2\n", 10 * US)), [0, 0, 10, 10, 20, 20]);
    let gap = run_with("[a]\nsize=12k\n", 5 * US, |_| 10 * US);
    assert_eq!(times(&gap), [0, 15, 30]);
}

#[test]
fn jobs_share_the_drive_and_ties_go_to_the_first() {
    let issues = run_with("[a]\nsize=12k\n[b]\nsize=12k\n", 0, |issue| {
        if issue.job == 0 { 10 * US } else { 15 * US }
    });
    assert_eq!(of_job(&issues, 0), [0, 10, 20]);
    assert_eq!(of_job(&issues, 1), [0, 15, 30]);
    let order: Vec<u32> = issues.iter().map(|issue| issue.job).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
}

#[test]
fn stonewall_waits_for_all_before_and_delays_count_from_the_start() {
    let text = "[a]\nsize=12k\n[b]\nsize=4k\nstartdelay=50us\n[c]\nstonewall\nsize=8k\n\
                [d]\nsize=4k\nstartdelay=1ms\n[e]\nstonewall\nsize=4k\n";
    let issues = run(text, 10 * US);
    assert_eq!(of_job(&issues, 0), [0, 10, 20]);
    assert_eq!(of_job(&issues, 1), [50]);
    assert_eq!(of_job(&issues, 2), [60, 70]);
    assert_eq!(of_job(&issues, 3), [1000]);
    assert_eq!(of_job(&issues, 4), [1010]);
}

#[test]
fn pauses_begin_when_all_is_done() {
    let think = "[a]\nsize=24k\nthinktime=100\nthinktime_blocks=2\n";
    assert_eq!(times(&run(think, 10 * US)), [0, 10, 120, 130, 240, 250]);
    // Counted at issue, a queue of two is full after both.
    let two = "[a]\nsize=16k\niodepth=2\nthinktime=100\nthinktime_blocks=2\n\
               thinktime_blocks_type=issue\n";
    assert_eq!(times(&run(two, 10 * US)), [0, 0, 110, 110]);
}

#[test]
fn rates_space_requests_by_bytes_or_by_count() {
    // 4 KiB at 4 MiB/s: one every 976 us; the drive is faster.
    let issues = run("[a]\nsize=16k\nrate=4m\niodepth=4\n", 10 * US);
    assert_eq!(times(&issues), [0, 976, 1953, 2929]);
    let issues = run("[a]\nsize=16k\nrate_iops=1000\n", 10 * US);
    assert_eq!(times(&issues), [0, 1000, 2000, 3000]);
    // A drive that is slower than the rate sets the pace, and the rate catches up.
    let issues = run("[a]\nsize=12k\nrate_iops=1000\n", 5 * MS);
    assert_eq!(times(&issues), [0, 5000, 10_000]);
    let mixed = run("[a]\nrw=randrw\nsize=40m\nrate_iops=3000,1000\n", 10 * US);
    let reads = mixed.iter().filter(|issue| issue.request.op == OpKind::Read).count();
    let share = reads as f64 / mixed.len() as f64;
    assert!((share - 0.75).abs() < 0.01, "{share}");
    let poisson = run("[a]\nrw=randread\nsize=40m\nrate_iops=1000\nrate_process=poisson\n", US);
    let times = times(&poisson);
    let mean = *times.last().unwrap() as f64 / (times.len() - 1) as f64;
    assert!((mean - 1000.0).abs() < 30.0, "{mean}");
    // Of an exponential wait, 1 - 1/e are shorter than the mean.
    let short = times.windows(2).filter(|pair| pair[1] - pair[0] < 1000).count();
    let share = short as f64 / (times.len() - 1) as f64;
    assert!((share - 0.632).abs() < 0.02, "{share}");
}

#[test]
fn time_ends_a_job_and_a_warm_up_is_not_measured() {
    let timed = "[a]\nrw=randread\nsize=8k\nruntime=1ms\ntime_based\n";
    let issues = run(timed, 10 * US);
    assert_eq!(issues.len(), 100);
    // Without time_based the size ends it first; with a short runtime, time does.
    assert_eq!(run("[a]\nsize=8k\nruntime=1ms\n", 10 * US).len(), 2);
    assert_eq!(run("[a]\nsize=1m\nruntime=1ms\n", 10 * US).len(), 100);
    let ramp = run(&format!("{timed}ramp_time=500us\n"), 10 * US);
    assert_eq!((ramp.len(), ramp.iter().filter(|issue| !issue.measured).count()), (150, 50));
    // While one job warms up, nothing is measured.
    let two = run("[a]\nsize=40k\n[b]\nsize=80k\nramp_time=55us\nstartdelay=20us\n", 10 * US);
    let measured: Vec<u64> = two
        .iter()
        .filter(|issue| issue.measured && issue.job == 0)
        .map(|i| i.request.at_ns / US)
        .collect();
    // The request at 20 us comes before the start of the other job.
    assert_eq!(measured, [0, 10, 20, 80, 90]);
}

#[test]
fn a_flush_blocks_its_job_and_the_last_one_waits_for_all() {
    let text = "[a]\nrw=write\nsize=20k\niodepth=2\nfsync=2\nend_fsync=1\n";
    let issues = run_with(text, 0, |issue| match issue.request.op {
        OpKind::Flush => 100 * US,
        _ => 10 * US,
    });
    let kinds: String =
        issues.iter().map(|i| if i.request.op == OpKind::Flush { 'f' } else { 'w' }).collect();
    assert_eq!(kinds, "wwfwwfwf");
    assert_eq!(times(&issues), [0, 0, 10, 110, 110, 120, 220, 230]);
}

#[test]
fn exitall_ends_the_others() {
    let text = "[a]\nsize=40k\nexitall\n[b]\nrw=write\nsize=1m\nend_fsync=1\n[c]\nstonewall\nsize=8k\n\
                [d]\nstartdelay=5ms\nsize=4k\n";
    let issues = run(text, 10 * US);
    assert_eq!(of_job(&issues, 0).len(), 10);
    // Ten writes and the last flush.
    assert_eq!(of_job(&issues, 1), [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    assert!(of_job(&issues, 2).is_empty() && of_job(&issues, 3).is_empty());
}

#[test]
fn a_drive_that_takes_no_time_ends_a_job_that_time_bounds() {
    let issues = run("[a]\nrw=randtrim\nsize=8k\nruntime=1us\ntime_based\n", 0);
    assert_eq!(issues.len(), 1000);
}
