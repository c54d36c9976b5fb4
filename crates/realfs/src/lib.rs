//! File-system work on a real ext4, and what of it reaches the block device.
//!
//! A model of a file system is worth what it agrees with. This crate makes an ext4 on a
//! loop device over memory, carries the calls of an [`flashwise_hostfs::Application`] out
//! on it and reads the kernel's own trace of the block device. What came of it is an
//! [`Observed`]: plain sums that a model can fill too, so that both stand side by side.
//!
//! Nothing here is virtual time: results differ a little from run to run, because
//! write-back and the journal have threads of their own. The scripts of [`scripts`] are
//! single threads that end in `sync` or `fsync`, which leaves little room for that.
//!
//! The modules of this level do no I/O. Those that do are under `linux`, where they need
//! root, loop devices, tracefs and e2fsprogs; `missing` says what is not there.

pub mod beside;
pub mod blocks;
pub mod collect;
pub mod journal;
pub mod layout;
pub mod observed;
pub mod scripts;
pub mod trace;

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{
    Closing, Data, Journal, Options, RealError, RealFs, Report, host_costs, missing, run,
    run_script, sweep_leftovers,
};
pub use observed::Observed;
