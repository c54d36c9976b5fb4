//! The model beside a real ext4: the same work on both, the same sums from both.
//!
//! A [`Case`] says what runs on what file system. [`modelled`] carries it out on
//! [`flashwise_hostfs::Host`], `real` on a loop device; both give [`Figures`], and a
//! [`Row`] holds the two. What is bounded by a number of operations is comparable as it
//! stands. What depends on time (the clock that stamps files ticks each 4 ms, commits that
//! run side by side) needs the model to take as long as the real run did:
//! [`modelled_as`] slows calls and device until threads spend as much time in calls that
//! sync, and in others, as they did.
//!
//! Invariant: a case says everything; two runs of the model give the same figures. Cost:
//! the model does some 10^5 to 10^6 calls per second, and a paced case runs a few times.

mod cases;
mod figures;
mod model;
mod published;
#[cfg(target_os = "linux")]
mod real;
mod wrap;

pub use cases::{Case, Mode, Setting, all, named, quick};
pub use figures::{Figures, Miss, Row};
pub use model::{CompareError, LOOP_DEVICE, modelled, modelled_as};
pub use published::{PUBLISHED, Published};
#[cfg(target_os = "linux")]
pub use real::real;
pub use wrap::Times;
