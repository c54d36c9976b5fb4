//! Threads that make given calls with pauses, and remember how each ended.

use std::cell::RefCell;
use std::rc::Rc;

use flashwise_hostfs::{Action, Application, Call, OpId, Outcome, Paths};

/// A call that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) thread: u32,
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
    /// When it began and ended \[ns since time started\].
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// A call, and a pause before it \[ns\].
pub(crate) type Step = (Call, u64);

/// The last steps of each thread, which whoever looks on makes when the others are done:
/// paths to remove, and whether each is a directory.
pub(crate) type Removals = Rc<RefCell<Vec<Removal>>>;

/// Those of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removal {
    /// The thread has come so far.
    pub(crate) is_wanted: bool,
    pub(crate) paths: Option<Vec<(String, bool)>>,
}

/// The threads.
#[derive(Debug)]
pub(crate) struct Player {
    paths: Paths,
    names: Vec<String>,
    threads: Vec<Vec<Step>>,
    next: Vec<usize>,
    has_slept: Vec<bool>,
    start_ns: Vec<u64>,
    removals: Removals,
    pub(crate) ended: Vec<Ended>,
}

impl Player {
    pub(crate) fn new(paths: Paths, threads: Vec<Vec<Step>>, removals: Removals) -> Self {
        let n = threads.len();
        *removals.borrow_mut() = vec![Removal::default(); n];
        Self {
            paths,
            names: vec!["call".to_owned()],
            threads,
            next: vec![0; n],
            has_slept: vec![false; n],
            start_ns: vec![0; n],
            removals,
            ended: vec![],
        }
    }
}

impl Application for Player {
    fn n_threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn op_names(&self) -> &[String] {
        &self.names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        None
    }

    fn next(&mut self, thread: u32, now_ns: u64) -> Action {
        let t = thread as usize;
        let Some((call, pause_ns)) = self.threads[t].get(self.next[t]).copied() else {
            let removal = &mut self.removals.borrow_mut()[t];
            if std::mem::replace(&mut removal.is_wanted, true) && removal.paths.is_none() {
                return Action::End;
            }
            for (path, is_dir) in removal.paths.take().unwrap_or_default() {
                let path = self.paths.intern(&path);
                let call = if is_dir { Call::Rmdir { path } } else { Call::Unlink { path } };
                self.threads[t].push((call, 1));
            }
            if self.next[t] < self.threads[t].len() {
                self.threads[t].extend([(Call::Sync, 1), (Call::Sync, 1)]);
            }
            return Action::SleepUntil { at_ns: now_ns + 1 };
        };
        // Always a pause, so that whoever looks on can look between calls.
        if !std::mem::replace(&mut self.has_slept[t], true) {
            return Action::SleepUntil { at_ns: now_ns + pause_ns };
        }
        self.start_ns[t] = now_ns;
        Action::Call { call, op: OpId(0), ends_op: true }
    }

    fn finished(&mut self, thread: u32, outcome: Outcome, now_ns: u64) {
        let t = thread as usize;
        let (call, _) = self.threads[t][self.next[t]];
        let (start_ns, end_ns) = (self.start_ns[t], now_ns);
        self.ended.push(Ended { thread, call, outcome, start_ns, end_ns });
        self.next[t] += 1;
        self.has_slept[t] = false;
    }
}
