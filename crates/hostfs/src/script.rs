//! A list of calls as an application of one thread: for tests, and to compare the model
//! with a real file system call by call.

use crate::application::{Action, Application, OpId, Outcome};
use crate::call::Call;
use crate::paths::Paths;

/// Calls, one after another.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The paths they name.
    pub paths: Paths,
    /// Calls that prepare the files; not measured.
    pub prepare: Vec<Call>,
    /// The calls.
    pub calls: Vec<Call>,
    /// How each call ended, in order.
    pub outcomes: Vec<Outcome>,
    next: usize,
    next_prepared: usize,
    names: Vec<String>,
}

impl Script {
    /// A script of these calls.
    pub fn new(paths: Paths, prepare: Vec<Call>, calls: Vec<Call>) -> Self {
        let names = vec!["call".to_owned()];
        Self { paths, prepare, calls, names, ..Self::default() }
    }
}

impl Application for Script {
    fn n_threads(&self) -> u32 {
        1
    }

    fn op_names(&self) -> &[String] {
        &self.names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        self.next_prepared += 1;
        self.prepare.get(self.next_prepared - 1).copied()
    }

    fn next(&mut self, _thread: u32, _now_ns: u64) -> Action {
        self.next += 1;
        match self.calls.get(self.next - 1) {
            Some(call) => Action::Call { call: *call, op: OpId(0), ends_op: true },
            None => Action::End,
        }
    }

    fn finished(&mut self, _thread: u32, outcome: Outcome, _now_ns: u64) {
        self.outcomes.push(outcome);
    }
}
