//! The part that touches the machine: loop devices, mounts, tracefs and the calls.

mod costs;
mod device;
mod error;
mod files;
mod make;
mod run;
mod settings;
mod tools;
mod tracefs;

pub use costs::host_costs;
pub use device::sweep_leftovers;
pub use error::RealError;
pub use make::{Data, Journal, Options, RealFs};
pub use run::{Closing, Report, run, run_script};
pub use tools::missing;
