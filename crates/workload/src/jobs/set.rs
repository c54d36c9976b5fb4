//! Several jobs on one drive: who comes next, who starts when, and what counts.
//!
//! The job with the earliest next request goes first; of several at the same time, the
//! one that stands first in the list. A group of jobs starts when all jobs of the groups
//! before it have ended, and a job in it when its delay, which counts from the start of
//! the whole run, is over. While any running job warms up, nothing is measured.
//!
//! Invariant: issue times never go back. A job is started at a time that is no earlier
//! than any request before it, and its own times never go back.
//!
//! Cost: a heap with one entry per running job.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::JobSpec;
use super::host::Host;
use crate::{Driver, Issue};

/// Jobs that run on one drive.
#[derive(Clone, Debug)]
pub struct JobSet {
    /// In order; those of one group are neighbours.
    jobs: Vec<Job>,
    names: Vec<String>,
    gap_ns: u64,
    /// Next request of each job that runs, or start of each that waits for its delay.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// First job that is in no group that was opened.
    n_opened: usize,
    /// Jobs opened that have not ended.
    n_open: usize,
    /// Last completion of the jobs that have ended.
    end_ns: u64,
    ramp_end_ns: u64,
    /// All jobs end then.
    exit_ns: u64,
    /// Job that issued last, and when.
    current: u32,
    now_ns: u64,
}

#[derive(Clone, Debug)]
enum Job {
    Waiting(Box<JobSpec>),
    Running(Box<Host>, Info),
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Info {
    row: u32,
    exit_all: bool,
}

impl JobSet {
    /// `names` are the rows that the jobs are reported under; `gap_ns` is the host time
    /// between a completion and the next request.
    pub fn new(specs: Vec<JobSpec>, names: Vec<String>, gap_ns: u64) -> Self {
        let mut set = Self {
            jobs: specs.into_iter().map(|spec| Job::Waiting(Box::new(spec))).collect(),
            names,
            gap_ns,
            queue: BinaryHeap::new(),
            n_opened: 0,
            n_open: 0,
            end_ns: 0,
            ramp_end_ns: 0,
            exit_ns: u64::MAX,
            current: 0,
            now_ns: 0,
        };
        set.open_groups();
        set
    }

    /// Opens the next group once nobody runs.
    fn open_groups(&mut self) {
        while self.n_open == 0 && self.end_ns < self.exit_ns {
            let Some(Job::Waiting(first)) = self.jobs.get(self.n_opened) else { return };
            let group = first.group;
            while let Some(Job::Waiting(spec)) = self.jobs.get(self.n_opened) {
                if spec.group != group {
                    break;
                }
                let start_ns = self.end_ns.max(spec.start_delay_ns);
                self.queue.push(Reverse((start_ns, self.n_opened as u32)));
                self.n_opened += 1;
                self.n_open += 1;
            }
        }
    }

    /// Starts a job that was waiting for its time.
    fn start(&mut self, index: u32, at_ns: u64) {
        let slot = &mut self.jobs[index as usize];
        if let Job::Waiting(spec) = std::mem::replace(slot, Job::Ended) {
            let info = Info { row: spec.row, exit_all: spec.exit_all };
            let host = Host::new(*spec, at_ns, self.gap_ns);
            self.ramp_end_ns = self.ramp_end_ns.max(host.ramp_end_ns());
            *slot = Job::Running(Box::new(host), info);
        }
        self.requeue(index);
    }

    /// Puts a job back in line, or lets it end.
    fn requeue(&mut self, index: u32) {
        let Job::Running(host, info) = &mut self.jobs[index as usize] else { return };
        host.cut_off(self.exit_ns, self.now_ns);
        if let Some(at_ns) = host.next_ns() {
            self.queue.push(Reverse((at_ns, index)));
            return;
        }
        self.end_ns = self.end_ns.max(host.end_ns());
        if info.exit_all {
            self.exit_ns = self.exit_ns.min(host.end_ns());
        }
        self.jobs[index as usize] = Job::Ended;
        self.n_open -= 1;
        self.ramp_end_ns = self.running().map(Host::ramp_end_ns).max().unwrap_or(0);
        self.open_groups();
    }

    fn running(&self) -> impl Iterator<Item = &Host> {
        self.jobs[..self.n_opened].iter().filter_map(|job| match job {
            Job::Running(host, _) => Some(&**host),
            _ => None,
        })
    }
}

impl Driver for JobSet {
    fn next_issue(&mut self) -> Option<Issue> {
        while let Some(Reverse((at_ns, index))) = self.queue.pop() {
            match &mut self.jobs[index as usize] {
                Job::Ended => {}
                slot @ Job::Waiting(_) if at_ns >= self.exit_ns => {
                    *slot = Job::Ended;
                    self.n_open -= 1;
                }
                Job::Waiting(_) => self.start(index, at_ns),
                Job::Running(host, info) => {
                    // Its end may have come after it got in line.
                    if host.cut_off(self.exit_ns, self.now_ns) {
                        self.requeue(index);
                        continue;
                    }
                    let (request, job) = (host.next()?, info.row);
                    self.current = index;
                    self.now_ns = at_ns;
                    return Some(Issue { request, job, measured: at_ns >= self.ramp_end_ns });
                }
            }
        }
        None
    }

    fn completed(&mut self, done_ns: u64) {
        if let Job::Running(host, _) = &mut self.jobs[self.current as usize] {
            host.completed(done_ns);
        }
        self.requeue(self.current);
    }

    fn job_names(&self) -> &[String] {
        &self.names
    }
}
