//! Programs that use files: threads that make calls, compute and wait for each other.
//!
//! An application is pulled, one action of one thread at a time, by whoever carries it
//! out: the model in virtual time, or a runner on a real file system. It is told how each
//! call ended and decides what that thread does next.
//!
//! Invariant: the same application, asked in the same order and told the same outcomes,
//! does the same. Nothing in it reads a clock but the `now_ns` it is given.

use crate::{Call, Paths};

/// Kind of operation a call counts for: an index into [`Application::op_names`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u16);

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make a call and wait for it.
    Call {
        /// Which.
        call: Call,
        /// What it counts for. An operation may be made of several calls.
        op: OpId,
        /// The operation ends with it; one whose call fails ends in any case.
        ends_op: bool,
    },
    /// Make a call and go on (asynchronous I/O); [`Action::Join`] waits for it. Calls that move
    /// data of one descriptor go one after another, as in glibc's. An operation of its own. [`Application::finished`] is not told.
    Spawn {
        /// Which.
        call: Call,
        /// What it counts for.
        op: OpId,
    },
    /// Wait until all calls this thread spawned are done.
    Join,
    /// Compute.
    Compute {
        /// CPU time \[ns\].
        ns: u64,
    },
    /// Sleep.
    SleepUntil {
        /// When to go on \[ns, as `now_ns`\]; the past is now.
        at_ns: u64,
    },
    /// Sleep until another thread wakes this one. A wake that came before counts: each
    /// one ends one `Park`.
    Park,
    /// Wake a thread that parks, or will.
    Wake {
        /// Which.
        thread: u32,
    },
    /// The thread ends.
    End,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well; bytes read or written where it moves any, the size for `Stat`, else 0.
    Done(u64),
    /// No space left, the whole call had no effect or was cut short.
    NoSpace,
    /// There is no such file or directory.
    NotFound,
    /// There is a file or directory of that name already.
    Exists,
    /// A directory is not empty, or a directory was named where a file is needed.
    IsDirectory,
    /// The descriptor is not open, is in use, or the call makes no sense.
    Invalid,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done(_) => "success",
            Self::NoSpace => "no space left on the file system",
            Self::NotFound => "no such file or directory",
            Self::Exists => "file exists",
            Self::IsDirectory => "directory not empty, or a directory where a file is needed",
            Self::Invalid => "invalid argument",
        })
    }
}

/// Threads that use files.
pub trait Application {
    /// How many threads there are; they are numbered from 0.
    fn n_threads(&self) -> u32;

    /// Names of the kinds of operations.
    fn op_names(&self) -> &[String];

    /// The paths its calls name. Calls may name paths that were interned since the last.
    fn paths(&self) -> &Paths;

    /// The next call that prepares the files, one after another before any thread runs;
    /// `None` when all is there. Not measured. Everything is then written back, the page
    /// cache dropped, and time starts.
    fn prepare(&mut self) -> Option<Call>;

    /// What `thread` does next, at `now_ns` since time started. Not called again after
    /// [`Action::End`].
    fn next(&mut self, thread: u32, now_ns: u64) -> Action;

    /// The last [`Action::Call`] of `thread` ended like this, at `now_ns`.
    fn finished(&mut self, thread: u32, outcome: Outcome, now_ns: u64);
}

impl<A: Application + ?Sized> Application for Box<A> {
    fn n_threads(&self) -> u32 {
        (**self).n_threads()
    }

    fn op_names(&self) -> &[String] {
        (**self).op_names()
    }

    fn paths(&self) -> &Paths {
        (**self).paths()
    }

    fn prepare(&mut self) -> Option<Call> {
        (**self).prepare()
    }

    fn next(&mut self, thread: u32, now_ns: u64) -> Action {
        (**self).next(thread, now_ns)
    }

    fn finished(&mut self, thread: u32, outcome: Outcome, now_ns: u64) {
        (**self).finished(thread, outcome, now_ns);
    }
}
