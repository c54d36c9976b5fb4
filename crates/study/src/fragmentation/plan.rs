//! A fixed list of calls for each of several threads, as an application.

use std::vec::IntoIter;

use flashwise_hostfs::{Action, Application, Call, Fd, OpId, OpenFlags, Outcome, PathId, Paths};

/// Calls of threads, decided before anything runs.
pub(crate) struct Plan {
    paths: Paths,
    prepare: IntoIter<Call>,
    threads: Vec<IntoIter<Call>>,
    /// The call each thread waits for.
    under_way: Vec<Option<Call>>,
    /// The first call that failed.
    failed: Option<(Call, Outcome)>,
    names: Vec<String>,
}

impl Plan {
    /// Calls that prepare the files, and what each thread does then.
    pub(crate) fn new(paths: Paths, prepare: Vec<Call>, threads: Vec<Vec<Call>>) -> Self {
        let n = threads.len();
        Self {
            paths,
            prepare: prepare.into_iter(),
            threads: threads.into_iter().map(Vec::into_iter).collect(),
            under_way: vec![None; n],
            failed: None,
            names: vec!["call".to_owned()],
        }
    }

    /// The first call that failed, if one did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.as_ref().map(|(call, outcome)| format!("{call:?}: {outcome}"))
    }
}

impl Application for Plan {
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
        self.prepare.next()
    }

    fn next(&mut self, thread: u32, _now_ns: u64) -> Action {
        let next = self.threads[thread as usize].next();
        self.under_way[thread as usize] = next;
        match next {
            Some(call) => Action::Call { call, op: OpId(0), ends_op: true },
            None => Action::End,
        }
    }

    fn finished(&mut self, thread: u32, outcome: Outcome, _now_ns: u64) {
        let call = self.under_way[thread as usize].take();
        if let (None, Some(call)) = (&self.failed, call)
            && !matches!(outcome, Outcome::Done(_))
        {
            self.failed = Some((call, outcome));
        }
    }
}

/// Files of a plan: each has a descriptor of its number.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) paths: Paths,
    pub(crate) ids: Vec<PathId>,
}

impl Files {
    /// One more file; the call that makes it.
    pub(crate) fn create(&mut self, path: &str, direct: bool) -> (Fd, Call) {
        let fd = Fd(self.ids.len() as u32);
        let path = self.paths.intern(path);
        self.ids.push(path);
        let flags = OpenFlags { direct, ..OpenFlags::CREATE };
        (fd, Call::Open { path, fd, flags })
    }
}
