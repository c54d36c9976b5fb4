//! What can go wrong on the machine.

use std::path::PathBuf;

use flashwise_hostfs::Call;
use thiserror::Error;

use crate::journal::BadJournal;
use crate::layout::BadText;
use crate::trace::BadLine;

/// An error of the real side.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RealError {
    /// Something is not on this machine.
    #[error("needs {what}, which is not here")]
    Missing {
        /// What.
        what: String,
    },
    /// A tool failed.
    #[error("`{command}` failed with {status}: {stderr}")]
    Tool {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// A file could not be used.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A call failed in a way an application is not told of.
    #[error("{call:?} failed: {source}; the mount may be broken, see the kernel's log")]
    Call {
        /// Which.
        call: Call,
        /// How.
        source: std::io::Error,
    },
    /// The trace is incomplete.
    #[error("{events} events of the trace were lost; use a larger buffer (`Options::trace_kib`)")]
    Lost {
        /// How many.
        events: u64,
    },
    /// The trace never showed a marker that was written to it.
    #[error("the trace did not show the marker {marker:?} within {seconds} s")]
    NoMarker {
        /// Which.
        marker: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A line of the trace is not understood.
    #[error(transparent)]
    Trace(#[from] BadLine),
    /// What a tool printed is not understood.
    #[error(transparent)]
    Text(#[from] BadText),
    /// The journal is not understood.
    #[error(transparent)]
    Journal(#[from] BadJournal),
    /// A thread of the application is named that does not exist.
    #[error("thread {thread} was woken, but the application has {n_threads}")]
    NoThread {
        /// Which.
        thread: u32,
        /// How many there are.
        n_threads: u32,
    },
}

impl RealError {
    /// For `map_err`: what was tried with which file.
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
