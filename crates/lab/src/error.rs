//! Why an experiment could not be carried out.

use flashwise_ssd::CommandError;
use flashwise_workload::WorkloadError;

/// An experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The workload could not be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The drive refused a request.
    #[error("request {number} ({what}): {source}")]
    Command {
        /// Number of the request, from 1.
        number: u64,
        /// The request in words.
        what: String,
        /// Why.
        #[source]
        source: CommandError,
    },
    /// An application on a file system could not start or go on.
    #[error(transparent)]
    Host(flashwise_hostfs::HostError),
    /// A workload without a single request.
    #[error("{name}: no requests; nothing can be measured")]
    NoRequests {
        /// Workload.
        name: String,
    },
    /// Every request was issued before the measurement began.
    #[error(
        "{name}: all {n} requests fall into ramp_time; nothing can be measured: shorten it or let \
         the jobs run longer"
    )]
    OnlyRamp {
        /// Workload.
        name: String,
        /// Requests carried out.
        n: u64,
    },
    /// Whoever watches the replay cannot go on.
    #[error(transparent)]
    Observe(#[from] crate::observe::ObserveError),
    /// A job that goes on beyond the clock.
    #[error(
        "job {name}: after {n} requests it would go on for more than a hundred years of virtual \
         time: shorten its pauses, raise its rate, or end it with runtime or number_ios"
    )]
    EndlessJob {
        /// Job.
        name: String,
        /// Requests carried out.
        n: u64,
    },
    /// Arrival times beyond what a 64-bit nanosecond clock holds.
    #[error(
        "arrival time {at_ns} ns x time scale {scale} does not fit the clock (584 years): use a smaller --time-scale"
    )]
    TimeOverflow {
        /// Arrival \[ns\].
        at_ns: u64,
        /// Factor.
        scale: f64,
    },
}
