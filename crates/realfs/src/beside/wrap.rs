//! An application around an application: it takes the time of calls, makes them come
//! later, and syncs at the end.

use flashwise_hostfs::{Action, Application, Call, OpId, Outcome, Paths};
use serde::Serialize;

/// Where the time of threads went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Until the last thread ended \[ns\].
    pub elapsed_ns: u64,
    /// In calls that make something durable, and waiting for such, over all threads
    /// \[ns\].
    pub sync_ns: u64,
    /// Everything else threads did, sleep excluded \[ns\].
    pub other_ns: u64,
    /// Calls.
    pub n_calls: u64,
    /// Calls that failed.
    pub n_failed: u64,
}

/// What a thread is at, and since when \[ns\].
#[derive(Clone, Copy, Debug)]
enum At {
    /// A call or a wait that makes something durable.
    Sync(u64),
    /// Anything else.
    Other(u64),
    /// Asleep, or not there any more.
    Away,
}

/// Does what the inner one does, and notes how long that takes.
pub(super) struct Timed<A> {
    inner: A,
    /// CPU time before each call \[ns\].
    compute_ns: u64,
    /// A sync follows when the last thread ends, as the runner on a real file system does.
    syncs: bool,
    /// What a thread does once it has computed.
    held: Vec<Option<Action>>,
    at: Vec<At>,
    /// Threads that run.
    n_live: u32,
    /// The thread that makes the final sync.
    syncing: Option<u32>,
    times: Times,
}

impl<A: Application> Timed<A> {
    pub(super) fn new(inner: A) -> Self {
        let n_threads = inner.n_threads();
        Self {
            inner,
            compute_ns: 0,
            syncs: false,
            held: vec![None; n_threads as usize],
            at: vec![At::Other(0); n_threads as usize],
            n_live: n_threads,
            syncing: None,
            times: Times::default(),
        }
    }

    /// The same, each call after so much CPU time \[ns\].
    pub(super) fn slowed(inner: A, compute_ns: u64) -> Self {
        Self { compute_ns, ..Self::new(inner) }
    }

    /// The same, with a sync at the end.
    pub(super) fn paced(inner: A, compute_ns: u64) -> Self {
        Self { syncs: true, ..Self::slowed(inner, compute_ns) }
    }

    /// Where time went.
    pub(super) fn times(&self) -> Times {
        self.times
    }

    /// What a thread was at ends now, and something else begins.
    fn turn(&mut self, thread: u32, now_ns: u64, next: At) {
        match std::mem::replace(&mut self.at[thread as usize], next) {
            At::Sync(since_ns) => self.times.sync_ns += now_ns.saturating_sub(since_ns),
            At::Other(since_ns) => self.times.other_ns += now_ns.saturating_sub(since_ns),
            At::Away => {}
        }
    }

    fn give(&mut self, thread: u32, now_ns: u64, action: Action) -> Action {
        let next = match action {
            Action::Call { call: Call::Fsync { .. } | Call::Fdatasync { .. }, .. }
            | Action::Join => At::Sync(now_ns),
            Action::SleepUntil { .. } | Action::Park => At::Away,
            _ => At::Other(now_ns),
        };
        self.turn(thread, now_ns, next);
        action
    }

    fn end(&mut self, thread: u32, now_ns: u64) -> Action {
        self.turn(thread, now_ns, At::Away);
        self.n_live -= 1;
        if self.n_live > 0 {
            return Action::End;
        }
        self.times.elapsed_ns = now_ns;
        if !self.syncs {
            return Action::End;
        }
        self.syncing = Some(thread);
        Action::Call { call: Call::Sync, op: OpId(0), ends_op: false }
    }
}

impl<A: Application> Application for Timed<A> {
    fn n_threads(&self) -> u32 {
        self.inner.n_threads()
    }

    fn op_names(&self) -> &[String] {
        self.inner.op_names()
    }

    fn paths(&self) -> &Paths {
        self.inner.paths()
    }

    fn prepare(&mut self) -> Option<Call> {
        self.inner.prepare()
    }

    fn next(&mut self, thread: u32, now_ns: u64) -> Action {
        if let Some(action) = self.held[thread as usize].take() {
            return self.give(thread, now_ns, action);
        }
        if self.syncing == Some(thread) {
            return Action::End;
        }
        match self.inner.next(thread, now_ns) {
            action @ (Action::Call { .. } | Action::Spawn { .. }) => {
                self.times.n_calls += 1;
                if self.compute_ns == 0 {
                    return self.give(thread, now_ns, action);
                }
                self.held[thread as usize] = Some(action);
                self.give(thread, now_ns, Action::Compute { ns: self.compute_ns })
            }
            Action::End => self.end(thread, now_ns),
            other => self.give(thread, now_ns, other),
        }
    }

    fn finished(&mut self, thread: u32, outcome: Outcome, now_ns: u64) {
        if self.syncing == Some(thread) {
            return;
        }
        self.turn(thread, now_ns, At::Other(now_ns));
        self.times.n_failed += u64::from(!matches!(outcome, Outcome::Done(_)));
        self.inner.finished(thread, outcome, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts::script;

    #[test]
    fn calls_are_the_same_and_a_sync_follows() {
        let mut plain = script("create").expect("a script");
        let mut paced = Timed::paced(script("create").expect("a script"), 5);
        let mut n = 0;
        loop {
            let expected = plain.next(0, 0);
            if expected == Action::End {
                break;
            }
            assert_eq!(paced.next(0, 0), Action::Compute { ns: 5 });
            assert_eq!(paced.next(0, 0), expected);
            paced.finished(0, Outcome::Done(0), 0);
            n += 1;
        }
        assert!(matches!(paced.next(0, 9), Action::Call { call: Call::Sync, .. }));
        paced.finished(0, Outcome::NoSpace, 9);
        assert_eq!(paced.next(0, 9), Action::End);
        let times = paced.times();
        assert_eq!((times.n_calls, times.n_failed, times.elapsed_ns), (n, 0, 9));
    }

    #[test]
    fn time_of_syncs_is_told_from_the_rest() {
        let mut timed = Timed::new(script("append-fsync").expect("a script"));
        // Open, append, fsync: 10, 20 and 40 ns, and 1 ns between any two.
        let mut now_ns = 0;
        for took_ns in [10, 20, 40] {
            now_ns += 1;
            timed.next(0, now_ns);
            now_ns += took_ns;
            timed.finished(0, Outcome::Done(0), now_ns);
        }
        assert_eq!((timed.times().sync_ns, timed.times().other_ns), (40, 33));
    }
}
