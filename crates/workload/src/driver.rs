//! A workload that decides when each request is issued, because it sees when earlier
//! ones were done.
//!
//! A [`Source`](crate::Source) is a list: it does not care how fast the drive is. A
//! [`Driver`] is a set of hosts: several jobs with a queue depth, pauses, rate limits
//! and barriers each. Its consumer takes a request, submits it at the time it carries
//! and reports the completion before it takes the next one; virtual time makes that
//! possible without a scheduler, because the answer of the drive is known at once.
//!
//! Invariants: issue times never go back; the same driver and the same completions
//! yield the same requests.

use crate::Request;

/// One request of a [`Driver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// What to do; its `at_ns` is when it is issued \[ns since the start of the workload\].
    pub request: Request,
    /// Row of results it belongs to: an index into [`Driver::job_names`].
    pub job: u32,
    /// Counts for the results; `false` while some job still warms up.
    pub measured: bool,
}

/// Something that issues requests in virtual time and is told when they are done.
pub trait Driver {
    /// The next request, or `None` at the end. The one before has to be
    /// [`completed`](Self::completed).
    fn next_issue(&mut self) -> Option<Issue>;

    /// The request that [`next_issue`](Self::next_issue) gave last is done at `done_ns`
    /// \[ns since the start of the workload\].
    fn completed(&mut self, done_ns: u64);

    /// For a host with a file system: from when to when what it runs is measured \[ns since
    /// the start of the workload\], which may be long before its first and after its last
    /// request. Everything that is known about writes comes with them then, and nothing is
    /// inferred.
    fn span_ns(&self) -> Option<(u64, u64)> {
        None
    }

    /// Names of the rows that requests are reported under.
    fn job_names(&self) -> &[String];
}

impl<D: Driver + ?Sized> Driver for Box<D> {
    fn next_issue(&mut self) -> Option<Issue> {
        (**self).next_issue()
    }

    fn completed(&mut self, done_ns: u64) {
        (**self).completed(done_ns);
    }

    fn job_names(&self) -> &[String] {
        (**self).job_names()
    }

    fn span_ns(&self) -> Option<(u64, u64)> {
        (**self).span_ns()
    }
}

impl<D: Driver + ?Sized> Driver for &mut D {
    fn next_issue(&mut self) -> Option<Issue> {
        (**self).next_issue()
    }

    fn completed(&mut self, done_ns: u64) {
        (**self).completed(done_ns);
    }

    fn job_names(&self) -> &[String] {
        (**self).job_names()
    }

    fn span_ns(&self) -> Option<(u64, u64)> {
        (**self).span_ns()
    }
}
