//! Experiments as pure functions: a drive, a workload and a policy in, rows of
//! figures out. Nothing is printed and no clock is read here, so the same inputs
//! give the same rows on every machine; measured speeds come from a clock the
//! caller passes in.
//!
//! * [`Policy`]: what `--policy` says, on three independent axes.
//! * [`precondition`]: fills and ages a drive to steady state.
//! * [`replay`]: drives a workload through a drive and measures; [`share`] reads it once
//!   for several replays; [`in_words`] says what one was worth against another.
//! * [`replay_jobs`]: the same for jobs that wait for their completions.
//! * [`replay_files`]: the same for an application on a file system.
//! * [`Series`]: an [`Observer`] of a replay that gives a row for each interval.

mod aging;
mod compare;
mod error;
mod files;
mod jobs;
mod measure;
mod observe;
mod policy;
mod replay;
mod row;
mod series;
mod share;

pub use aging::{Aging, fill_ranges, precondition};
pub use compare::in_words;
pub use error::LabError;
pub use files::{FilesRow, OpRow, replay_files, replay_files_observed, run_files_on_ram};
pub use jobs::{replay_jobs, replay_jobs_observed};
pub use measure::Latencies;
pub use observe::{ObserveError, Observer};
pub use policy::{Policy, PolicyError};
pub use replay::{Pace, Replay, replay, replay_observed};
pub use row::{ClassBytes, JobRow, Relations, Row};
pub use series::{Interval, LatencyRow, Series, SeriesRow};
pub use share::{Feeder, Shared, share};
