//! The part that touches the machine: loop devices, mounts, tracefs and the calls.

mod error;
mod files;
mod make;
mod run;
mod settings;
mod tools;
mod tracefs;

pub use error::RealError;
pub use make::{Data, FileExtents, Journal, Options, RealFs, sweep_leftovers};
pub use run::{Closing, Report, run, run_script};
pub use tools::missing;
