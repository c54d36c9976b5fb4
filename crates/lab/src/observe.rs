//! Watching a replay, request by request.
//!
//! [`crate::replay`] is compiled once with an observer that does nothing, so nothing
//! is paid for what nobody watches.

use flashwise_ssd::Ssd;
use flashwise_workload::Request;

/// Why whoever watches a replay cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// More intervals than are kept.
    #[error(
        "the series would have more than {max} intervals of {interval_s} s: use a longer \
         --series-interval, or none, which finds a fitting one"
    )]
    TooManyIntervals {
        /// Most that are kept.
        max: u64,
        /// Length asked for \[s\].
        interval_s: f64,
    },
    /// What was seen could not be written.
    #[error("{path}: {source}")]
    Write {
        /// File.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Somebody who watches a replay. Requests arrive in order of time; they complete in
/// any order, and each completion is told when its request is handed in.
pub trait Observer {
    /// The replay begins.
    fn starts(&mut self, ssd: &Ssd, now_ns: u64) {
        let _ = (ssd, now_ns);
    }

    /// A request arrives; nothing of it has been done yet.
    fn arrives(&mut self, ssd: &Ssd, at_ns: u64) -> Result<(), ObserveError> {
        let _ = (ssd, at_ns);
        Ok(())
    }

    /// The same request will be done at `done_ns`.
    fn completed(
        &mut self,
        request: &Request,
        at_ns: u64,
        done_ns: u64,
    ) -> Result<(), ObserveError> {
        let _ = (request, at_ns, done_ns);
        Ok(())
    }

    /// All requests were done by `end_ns`.
    fn ends(&mut self, ssd: &Ssd, end_ns: u64) {
        let _ = (ssd, end_ns);
    }
}

/// Nobody watches.
impl Observer for () {}
