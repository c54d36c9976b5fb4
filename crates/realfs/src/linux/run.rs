//! An application, carried out on the mount with real threads.
//!
//! Each thread of the application is a thread here. The application itself is behind a
//! mutex: a thread holds it while it asks what to do next, never during a call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use flashwise_hostfs::{Action, Application, Fd, OpId, Outcome};
use serde::Serialize;

use super::RealError;
use super::files::{Buffer, Files, Named};
use super::make::RealFs;
use crate::observed::Observed;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Everything is written out (`syncfs`), which is observed apart.
    Sync,
    /// As it is when the last thread ends.
    AsIs,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// While threads ran.
    pub during: Observed,
    /// In the final `syncfs`.
    pub closing: Observed,
    /// How long threads ran \[ns\].
    pub elapsed_ns: u64,
    /// Operations by name.
    pub ops: Vec<OpCount>,
    /// Calls that did not end well.
    pub failed_calls: u64,
    /// Numbers of the transactions that were committed.
    pub tids: Vec<u32>,
}

impl Report {
    /// All that was written, the final `syncfs` included.
    pub fn total(&self) -> Observed {
        let mut total = self.during.clone();
        total.add(&self.closing);
        total
    }
}

/// Operations of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpCount {
    /// Its name.
    pub name: String,
    /// How many ended.
    pub n: u64,
    /// Bytes they read or wrote, and the sizes `Stat` told.
    pub bytes: u64,
    /// Time their calls took, summed \[ns\].
    pub calls_ns: u64,
}

/// Carries a script out: an application of one thread, on one CPU, to its end.
///
/// ext4 keeps preallocated space for small files per CPU (`ext4_locality_group` in Linux'
/// `fs/ext4/mballoc.c`). A thread that moves to another CPU goes on elsewhere on the
/// device, and the file has another extent; on one CPU runs are alike.
pub fn run_script(
    fs: &RealFs,
    script: &mut (dyn Application + Send),
    closing: Closing,
) -> Result<Report, RealError> {
    // A thread of its own, so that the caller is not bound; its threads inherit the CPU.
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            pin()
                .map_err(|e| RealError::io("bind a thread to a CPU of", "/proc/self")(e.into()))?;
            run(fs, script, Duration::MAX, closing)
        });
        pinned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Binds the calling thread to the CPU it is on.
fn pin() -> Result<(), rustix::io::Errno> {
    let mut cpus = rustix::thread::CpuSet::new();
    cpus.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &cpus)
}

/// Carries an application out for at most `limit` of real time; no call begins after it.
pub fn run(
    fs: &RealFs,
    app: &mut (dyn Application + Send),
    limit: Duration,
    closing: Closing,
) -> Result<Report, RealError> {
    let files = Files::new(fs.root());
    prepare(fs, app, &files)?;
    fs.mark("prepared")?;
    fs.with_collector(|collector| collector.start());
    let n_threads = app.n_threads();
    let ops =
        app.op_names().iter().map(|name| OpCount { name: name.clone(), ..Default::default() });
    let report = Report { ops: ops.collect(), ..Report::default() };
    let start = Instant::now();
    let shared = Shared {
        app: Mutex::new(app),
        files: &files,
        start,
        limit,
        report: Mutex::new(report),
        wakes: Mutex::new(vec![0; n_threads as usize]),
        woken: Condvar::new(),
        failed: Mutex::new(None),
        stop: AtomicBool::new(false),
        turns: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for thread in 0..n_threads {
            let shared = &shared;
            scope.spawn(move || {
                if let Err(error) = shared.thread(scope, thread) {
                    shared.fail(error);
                }
            });
        }
    });
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    if let Some(error) = shared.failed.into_inner().expect("no holder panics") {
        return Err(error);
    }
    let mut report = shared.report.into_inner().expect("no holder panics");
    report.elapsed_ns = elapsed_ns;
    fs.mark("ran")?;
    report.during = fs.with_collector(|collector| collector.cut());
    if closing == Closing::Sync {
        files.sync().map_err(|e| RealError::io("sync", fs.root())(e.into()))?;
        fs.mark("synced")?;
    }
    report.closing = fs.with_collector(|collector| {
        collector.stop();
        report.tids = collector.tids().to_vec();
        collector.cut()
    });
    fs.check_lost()?;
    files.close_all();
    let layout = fs.file_layout()?;
    (report.during.layout, report.closing.layout) = (layout, layout);
    Ok(report)
}

/// Makes the files, writes all out and forgets what is cached.
fn prepare(fs: &RealFs, app: &mut dyn Application, files: &Files) -> Result<(), RealError> {
    let mut buffer = Buffer::default();
    while let Some(call) = app.prepare() {
        let named = files.name(call, app.paths());
        let outcome = files.make(&named, &mut buffer)?;
        if !matches!(outcome, Outcome::Done(_)) {
            let source = std::io::Error::other(format!("{outcome:?} while preparing"));
            return Err(RealError::Call { call, source });
        }
    }
    files.sync().map_err(|e| RealError::io("sync", fs.root())(e.into()))?;
    fs.cool_down()
}

struct Shared<'a> {
    app: Mutex<&'a mut (dyn Application + Send)>,
    files: &'a Files,
    start: Instant,
    limit: Duration,
    report: Mutex<Report>,
    /// Wakes not yet used, by thread.
    wakes: Mutex<Vec<u64>>,
    woken: Condvar,
    failed: Mutex<Option<RealError>>,
    stop: AtomicBool,
    turns: Mutex<BTreeMap<Fd, Arc<Mutex<()>>>>,
}

impl<'a> Shared<'a> {
    fn thread<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        thread: u32,
    ) -> Result<(), RealError> {
        let mut buffer = Buffer::default();
        let mut spawned: Vec<ScopedJoinHandle<'scope, ()>> = Vec::new();
        while !self.over() {
            match self.next(thread) {
                (Action::Call { op, ends_op, .. }, Some(named)) => {
                    let outcome = self.call(&named, op, ends_op, &mut buffer)?;
                    let mut app = self.app.lock().expect("no holder panics");
                    app.finished(thread, outcome, self.now_ns());
                }
                (Action::Spawn { call, op }, Some(named)) => {
                    let turn = self.turn(call.data_fd());
                    spawned.push(scope.spawn(move || {
                        // A call that panicked ends the run; others need not care.
                        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                        if let Err(error) = self.call(&named, op, true, &mut Buffer::default()) {
                            self.fail(error);
                        }
                    }));
                }
                (Action::Join, _) => {
                    // A panic of a call is reported by the scope.
                    spawned.drain(..).for_each(|helper| drop(helper.join()));
                }
                (Action::Compute { ns }, _) => compute(Duration::from_nanos(ns)),
                (Action::SleepUntil { at_ns }, _) => {
                    let at = Duration::from_nanos(at_ns).min(self.limit);
                    std::thread::sleep(at.saturating_sub(self.start.elapsed()));
                }
                (Action::Park, _) => self.park(thread),
                (Action::Wake { thread }, _) => self.wake(thread)?,
                (Action::End, _) => break,
                (Action::Call { .. } | Action::Spawn { .. }, None) => unreachable!("named above"),
            }
        }
        Ok(())
    }

    /// What spawned calls of one descriptor hold while they are made, as glibc's
    /// asynchronous I/O makes them one after another.
    fn turn(&self, fd: Option<Fd>) -> Arc<Mutex<()>> {
        let Some(fd) = fd else { return Arc::default() };
        self.turns.lock().expect("no holder panics").entry(fd).or_default().clone()
    }

    fn next(&self, thread: u32) -> (Action, Option<Named>) {
        let mut app = self.app.lock().expect("no holder panics");
        let action = app.next(thread, self.now_ns());
        let named = match action {
            Action::Call { call, .. } | Action::Spawn { call, .. } => {
                Some(self.files.name(call, app.paths()))
            }
            _ => None,
        };
        (action, named)
    }

    fn call(
        &self,
        named: &Named,
        op: OpId,
        ends_op: bool,
        buffer: &mut Buffer,
    ) -> Result<Outcome, RealError> {
        let began = Instant::now();
        let outcome = self.files.make(named, buffer)?;
        let took = began.elapsed().as_nanos() as u64;
        let mut report = self.report.lock().expect("no holder panics");
        let Some(count) = report.ops.get_mut(usize::from(op.0)) else { return Ok(outcome) };
        count.n += u64::from(ends_op);
        count.calls_ns += took;
        if let Outcome::Done(bytes) = outcome {
            count.bytes += bytes;
        } else {
            report.failed_calls += 1;
        }
        Ok(outcome)
    }

    fn park(&self, thread: u32) {
        let mut wakes = self.wakes.lock().expect("no holder panics");
        while wakes[thread as usize] == 0 {
            if self.over() {
                return;
            }
            // Looks at the clock now and then: nobody may be left to wake it.
            let wait = self.woken.wait_timeout(wakes, Duration::from_millis(20));
            wakes = wait.expect("no holder panics").0;
        }
        wakes[thread as usize] -= 1;
    }

    fn wake(&self, thread: u32) -> Result<(), RealError> {
        let mut wakes = self.wakes.lock().expect("no holder panics");
        let n_threads = wakes.len() as u32;
        let Some(count) = wakes.get_mut(thread as usize) else {
            return Err(RealError::NoThread { thread, n_threads });
        };
        *count += 1;
        self.woken.notify_all();
        Ok(())
    }

    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.start.elapsed() >= self.limit
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn fail(&self, error: RealError) {
        self.failed.lock().expect("no holder panics").get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Uses a CPU for a while. Short times are spun, as a program would be busy for them.
fn compute(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}
