//! The flow engine: carries out the flowop lists of a personality, call by call.
//!
//! A thread is a position in its list and a few numbers. [`Application::next`] runs
//! flowops until one of them asks for an action; a flowop of several calls keeps the
//! position until its last one. [`Application::finished`] books how the call ended.
//!
//! Where filebench would end the whole run, a run here goes on, because a model is asked
//! what happens then: a flowop that finds no file tries again [`MAX_TRIES`] times, a
//! millisecond apart, and is left out then; a call that fails ends its flowop; flowops
//! whose descriptor is not open are left out. An operation that failed amid its calls
//! never ends and does not count. A list whose flowops are all left out sleeps.
//!
//! Invariants: no thread is asked to sleep into the past or past the end of the run, so
//! virtual time passes whenever nothing can be done; a descriptor that is open belongs to
//! one thread; when the run is over every parked thread is woken. Random numbers of a
//! thread come from its own stream, so that what it draws does not depend on the others.
//! Cost: tens of nanoseconds per action and no allocation.

use std::ops::Range;

use flashwise_hostfs::{Action, Application, Call, OpId, Outcome, Paths};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::fileset::FileSet;
use super::limits::{Events, Semaphore};
use super::personality::{self, Flowop, Slot, Workload};
use super::prepare::Prepare;
use super::thread::Thread;

/// Pause of a thread that cannot go on \[ns\], assumed: short beside any run, long beside
/// a call. Filebench waits for a busy file as long as that takes, and ends the run where
/// there is none at all.
pub(super) const PAUSE_NS: u64 = 1_000_000;

/// How often a flowop asks for a file before it is left out, assumed: 10 ms in all.
pub(super) const MAX_TRIES: u32 = 10;

/// Time of one store of `hog` \[ns\], assumed: its loop takes a few cycles a store when
/// compiled without optimisation, which is about this at 3 to 4 GHz.
const STORE_NS: u64 = 1;

/// Most descriptors a thread takes in turn. Source: filebench, `THREADFLOW_MAXFD`. It
/// opens all of them even for fewer files; here each file is opened once.
const MAX_TURNS: u32 = 128;

/// Whose flowop is carried out, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) thread: usize,
    /// What its calls count for.
    pub(super) op: OpId,
    /// Time \[ns\].
    pub(super) now_ns: u64,
}

/// A step as it runs.
#[derive(Clone, Copy, Debug)]
struct Step {
    flowop: Flowop,
    op: OpId,
    times: u32,
}

/// Threads that do the same.
#[derive(Clone, Debug)]
struct Program {
    steps: Vec<Step>,
    /// Flowops of one pass, repetitions counted.
    n_flowops: u64,
    /// Semaphores of its threads; empty if it does not block.
    semaphores: Range<usize>,
}

/// A personality that runs.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    paths: Paths,
    op_names: Vec<String>,
    pub(super) sets: Vec<FileSet>,
    programs: Vec<Program>,
    pub(super) threads: Vec<Thread>,
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) events: Option<Events>,
    prepare: Prepare,
    /// When threads end \[ns\].
    runtime_ns: u64,
    /// Operations until threads end.
    ops_left: u64,
    over: bool,
}

impl Flow {
    /// Draws everything; threads end after `runtime_ns` or `max_ops` operations.
    pub(super) fn new(workload: &Workload, runtime_ns: u64, max_ops: u64, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Streams of one generator that are 2^128 draws apart.
        let mut stream = || {
            rng.jump();
            rng.clone()
        };
        let mut paths = Paths::new();
        let sets = &workload.sets;
        let sets: Vec<_> =
            sets.iter().map(|spec| FileSet::new(spec, &mut paths, stream())).collect();
        let mut flow = Self {
            paths,
            op_names: Vec::new(),
            sets,
            programs: Vec::new(),
            threads: Vec::new(),
            semaphores: Vec::new(),
            events: (workload.event_rate > 0).then(|| Events::new(workload.event_rate)),
            prepare: Prepare::default(),
            runtime_ns,
            ops_left: max_ops,
            over: false,
        };
        let n_threads = workload.programs.iter().map(|program| program.instances as usize).sum();
        let mut next_fd = 0;
        for program in &workload.programs {
            flow.add_program(program, n_threads, &mut next_fd, &mut stream);
        }
        flow
    }

    fn add_program(
        &mut self,
        program: &personality::Program,
        n_posters: usize,
        next_fd: &mut u32,
        mut stream: impl FnMut() -> Xoshiro256PlusPlus,
    ) {
        let n_slots = program.steps.iter().map(|step| self.n_slots(step.flowop)).max();
        let n_slots = n_slots.unwrap_or(0);
        let blocks = program.steps.iter().find_map(|step| match step.flowop {
            Flowop::SemBlock { value, high_water } => Some((value, high_water)),
            _ => None,
        });
        let first_semaphore = self.semaphores.len();
        for _ in 0..program.instances {
            let number = self.threads.len() as u32;
            let mut thread = Thread::new(self.programs.len(), n_slots, *next_fd, stream());
            *next_fd += n_slots;
            if let Some((need, high_water)) = blocks {
                thread.semaphore = Some(self.semaphores.len());
                self.semaphores.push(Semaphore::new(number, need, high_water, n_posters));
            }
            self.threads.push(thread);
        }
        let steps: Vec<_> = program.steps.iter().map(|step| self.compile(step)).collect();
        let n_flowops = steps.iter().map(|step| u64::from(step.times)).sum();
        let semaphores = first_semaphore..self.semaphores.len();
        self.programs.push(Program { steps, n_flowops, semaphores });
    }

    fn compile(&mut self, step: &personality::Step) -> Step {
        let known = self.op_names.iter().position(|name| name == step.label);
        let op = match (known, step.label) {
            (Some(index), _) => index,
            (None, "") => 0,
            (None, label) => {
                self.op_names.push(label.to_owned());
                self.op_names.len() - 1
            }
        };
        Step { flowop: step.flowop, op: OpId(op as u16), times: step.times }
    }

    /// Descriptors that a flowop needs.
    fn n_slots(&self, flowop: Flowop) -> u32 {
        match flowop {
            Flowop::Create { slot, .. }
            | Flowop::Open { slot, .. }
            | Flowop::Append { slot, .. }
            | Flowop::Read { slot: Slot::At(slot), .. }
            | Flowop::AioWrite { slot: Slot::At(slot), .. } => slot + 1,
            Flowop::Read { set, slot: Slot::Next, .. }
            | Flowop::AioWrite { set, slot: Slot::Next, .. } => self.sets[set].len().min(MAX_TURNS),
            _ => 0,
        }
    }

    /// Semaphores of the threads of a program.
    pub(super) fn semaphores_of(&self, program: usize) -> Range<usize> {
        self.programs[program].semaphores.clone()
    }

    /// Ends the flowop of a thread: the next repetition, flowop or pass comes.
    pub(super) fn advance(&mut self, thread: usize) {
        let thread = &mut self.threads[thread];
        let steps = &self.programs[thread.program].steps;
        thread.begun = false;
        thread.failed = false;
        thread.progress = 0;
        thread.n_tries = 0;
        thread.times += 1;
        if thread.times >= steps[thread.pc].times {
            thread.times = 0;
            thread.pc = if thread.pc + 1 == steps.len() { 0 } else { thread.pc + 1 };
        }
    }

    /// An operation ends with the action that is given out now.
    pub(super) fn count(&mut self, thread: usize) {
        self.ops_left -= 1;
        self.threads[thread].spent_ops += 1;
    }

    /// Sleeps until then, or the end of the run.
    pub(super) fn sleep(&self, until_ns: u64) -> Action {
        Action::SleepUntil { at_ns: until_ns.min(self.runtime_ns) }
    }

    /// One flowop, or the next call of one; `None` if it is over without an action.
    fn step(&mut self, thread: usize, now_ns: u64) -> Option<Action> {
        let state = &self.threads[thread];
        let step = self.programs[state.program].steps[state.pc];
        let turn = Turn { thread, op: step.op, now_ns };
        match step.flowop {
            Flowop::Create { set, slot } => self.open(turn, set, slot, true),
            Flowop::Open { set, slot } => self.open(turn, set, slot, false),
            Flowop::Close { slot } => self.close(turn, slot),
            Flowop::Delete { set } => self.delete(turn, set),
            Flowop::Stat { set } => self.stat(turn, set),
            Flowop::Append { set, slot, below } => self.append(turn, set, slot, below),
            Flowop::Fsync { slot } => self.fsync(turn, slot),
            Flowop::WriteWhole { slot, piece } => self.write_whole(turn, slot, piece),
            Flowop::ReadWhole { slot, piece } => self.read_whole(turn, slot, piece),
            Flowop::Read { set, slot, len, random } => self.read(turn, set, slot, len, random),
            Flowop::AioWrite { set, slot, len } => self.aio_write(turn, set, slot, len),
            Flowop::AioWait => self.then(turn, Action::Join),
            Flowop::SemBlock { .. } => self.block(turn),
            Flowop::SemPost { program } => self.post(turn, program),
            Flowop::Hog { stores } => {
                self.then(turn, Action::Compute { ns: stores.saturating_mul(STORE_NS) })
            }
            Flowop::Delay { ns } => {
                let action = self.sleep(now_ns.saturating_add(ns));
                self.then(turn, action)
            }
            Flowop::Limit(limit) => self.limit(turn, limit),
        }
    }

    /// The run is over: threads that park are woken, all others end.
    fn end(&mut self, thread: usize) -> Action {
        if !self.over {
            self.over = true;
            let wakes = &mut self.threads[thread].wakes;
            for semaphore in &mut self.semaphores {
                semaphore.release(wakes);
            }
        }
        match self.threads[thread].wakes.pop_front() {
            Some(thread) => Action::Wake { thread },
            None => Action::End,
        }
    }
}

impl Application for Flow {
    fn n_threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn op_names(&self) -> &[String] {
        &self.op_names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        self.prepare.next(&mut self.sets)
    }

    fn next(&mut self, thread: u32, now_ns: u64) -> Action {
        let thread = thread as usize;
        let state = &mut self.threads[thread];
        if let Some(thread) = state.wakes.pop_front() {
            return Action::Wake { thread };
        }
        if std::mem::take(&mut state.parks) {
            return Action::Park;
        }
        if self.over || now_ns >= self.runtime_ns || self.ops_left == 0 {
            return self.end(thread);
        }
        let n_flowops = self.programs[self.threads[thread].program].n_flowops;
        for _ in 0..n_flowops {
            if let Some(action) = self.step(thread, now_ns) {
                return action;
            }
        }
        self.sleep(now_ns + PAUSE_NS)
    }

    fn finished(&mut self, thread: u32, outcome: Outcome, _now_ns: u64) {
        self.book(thread as usize, outcome);
    }
}
