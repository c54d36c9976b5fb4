//! Programs that use files, as workloads: the filebench personalities and PostMark.
//!
//! A personality is data ([`personality`]): file sets, threads, and the list of flowops
//! each thread does over and over. One engine ([`flow`]) carries the lists out as an
//! [`Application`](flashwise_hostfs::Application), call by call. PostMark is an algorithm
//! of its own ([`postmark`]). Names and settings are text ([`AppSpec::parse`]).
//!
//! What was read for the facts: filebench at its head of 2020-02 (`workloads/*.f`,
//! `fileset.c`, `flowop_library.c`, `eventgen.c`) and PostMark 1.5. No code is theirs.
//!
//! Invariants: the same settings, seed, order of questions and outcomes give the same
//! calls; memory is bounded by the number of files (PostMark: and of transactions); no
//! outcome makes an application panic, spin at one moment or park for ever.
//!
//! Cost: 50 to 150 ns per action, its caller included, and no allocation once it runs
//! (PostMark: one path per file it makes). Building takes two or three microseconds and
//! about 200 bytes per file, nearly all for its path; twice that in narrow trees.

mod error;
mod fileset;
mod flow;
mod flowops;
mod gamma;
mod index_set;
mod keys;
mod limits;
mod personality;
mod postmark;
mod prepare;
mod spec;
mod thread;

pub use error::AppError;
pub use spec::{AppAbout, AppSpec};
