//! A case on the model.

use flashwise_hostfs::{
    Application, ConfigError, FsConfig, Host, HostError, Io, IoOp, RamDisk, RamSpeed,
};
use flashwise_workload::{AppError, AppSpec};

use super::wrap::Timed;
use super::{Case, Figures, Times};
use crate::scripts::script;

/// The device of the comparison: a loop device over tmpfs. A request wakes a kernel thread
/// that copies, and its end wakes the one that waits. 30 us for that are assumed.
pub const LOOP_DEVICE: RamSpeed = RamSpeed { request_ns: 30_000, mb_s: 8_000, n_workers: 2 };

/// Most runs to find a pace.
const PACE_RUNS: u32 = 8;

/// How near the model's time has to come.
const PACE_NEAR: f64 = 0.05;

/// How fast the device of a paced run may be \[ns per request\]: loop devices of idle and of
/// busy machines.
const REQUEST_NS: std::ops::Range<f64> = 5_000.0..150_000.0;

/// A case cannot be run on the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The load is no script and no application.
    #[error("{load} is neither a script of ext4-observe --list nor an application: {source}")]
    Load {
        /// What was asked for.
        load: String,
        /// Why it is no application.
        source: AppError,
    },
    /// The settings are wrong.
    #[error("the model does not take {text}: {source}")]
    Config {
        /// Settings as they were given.
        text: String,
        /// Why.
        source: ConfigError,
    },
    /// The model ended early.
    #[error("the model ended early: {0}")]
    Host(#[from] HostError),
}

/// Runs a case on the model at the model's own pace.
pub fn modelled(case: &Case) -> Result<Figures, CompareError> {
    once(case, Pace::default())
}

/// How much slower than it is the model is made.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    /// CPU time before each call \[ns\].
    compute_ns: f64,
    /// Fixed part of a request of the device \[ns\].
    request_ns: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { compute_ns: 0.0, request_ns: LOOP_DEVICE.request_ns as f64 }
    }
}

/// Runs a case on the model so that its threads spend about as much time as those of a
/// real run, in calls that sync and in others. What time decides is then decided alike.
pub fn modelled_as(case: &Case, real: &Times) -> Result<Figures, CompareError> {
    let mut pace = Pace::default();
    let n_calls = real.n_calls.max(1) as f64;
    let n_threads = f64::from(case.application()?.n_threads());
    // Threads that compute share the cores, so that each ns takes several.
    let crowd = (n_threads / f64::from(case.n_cores())).max(1.0);
    let mut best = (f64::INFINITY, Figures::default());
    for _ in 0..PACE_RUNS {
        let figures = once(case, pace)?;
        let model = figures.times;
        let off = 2.0 * ratio(real.elapsed_ns, model.elapsed_ns).ln().abs()
            + ratio(real.sync_ns, model.sync_ns).ln().abs();
        if off < best.0 {
            best = (off, figures);
        }
        if off <= PACE_NEAR {
            break;
        }
        let missing = real.other_ns as f64 - model.other_ns as f64;
        pace.compute_ns = (pace.compute_ns + missing / n_calls / crowd).max(0.0);
        let slower = ratio(real.sync_ns, model.sync_ns);
        pace.request_ns = (pace.request_ns * slower).clamp(REQUEST_NS.start, REQUEST_NS.end);
    }
    Ok(best.1)
}

/// How many times the model's time fits into the real one; 1 where there is none.
fn ratio(real_ns: u64, model_ns: u64) -> f64 {
    match real_ns > 0 && model_ns > 0 {
        true => real_ns as f64 / model_ns as f64,
        false => 1.0,
    }
}

fn once(case: &Case, pace: Pace) -> Result<Figures, CompareError> {
    let text = case.config();
    let config = FsConfig::parse(&text).map_err(|source| CompareError::Config { text, source })?;
    let app = Timed::paced(case.application()?, pace.compute_ns as u64);
    let mut host = Host::new(app, &config, case.device_bytes())?;
    let request_ns = pace.request_ns as u64;
    let speed = RamSpeed { request_ns, ..LOOP_DEVICE };
    host.set_journal_disk(speed);
    let mut disk = RamDisk::new(speed);
    host.run(|io| submit(&mut disk, io))?;
    Ok(Figures::modelled(&host, host.application().times()))
}

/// When a loop device is done with a request. It has no FUA: the kernel flushes after such
/// a write.
pub(super) fn submit(disk: &mut RamDisk, io: &Io) -> u64 {
    let done_ns = disk.submit(io);
    match io.fua {
        true => disk.submit(&Io { at_ns: done_ns, op: IoOp::Flush, ..*io }),
        false => done_ns,
    }
}

impl Case {
    /// The application of the case.
    pub fn application(&self) -> Result<Box<dyn Application + Send>, CompareError> {
        if let Some(script) = script(&self.load) {
            return Ok(Box::new(script));
        }
        match AppSpec::parse(&self.load) {
            Ok(spec) => Ok(spec.build(self.seed)),
            Err(source) => Err(CompareError::Load { load: self.load.clone(), source }),
        }
    }
}
