//! What to do: trace readers, generators, and the fitting of addresses to a drive.
//!
//! Everything that produces requests is a [`Source`]: a recorded trace
//! ([`open_trace`]), a generator ([`Synthetic`]), one plain job ([`JobStream`]), or a
//! plain list (`Vec<Request>::into_iter()`). Jobs that wait for their completions are a
//! [`Driver`]: a fio job file ([`read_fio_file`]) becomes a [`JobSet`].
//! Programs that use files are an [`Application`](flashwise_hostfs::Application), built
//! from a text such as `varmail,files=20000` ([`AppSpec`]).
//! [`summarize`] walks a source once and says what it touches, and [`Profiled`] what
//! it looks like; [`Fit`] maps its addresses onto a drive of another size.
//!
//! Invariants: bad input is a [`WorkloadError`] that names the file, the line or key,
//! what was expected and what to do; it is never a panic, a hang, a silent end or
//! unbounded memory. The same file or seed yields the same requests on every run.
//!
//! Cost: a trace row is parsed in well under a microsecond without allocation; a
//! generated request takes a few nanoseconds.

mod apps;
mod classify;
mod driver;
mod error;
mod extents;
mod fio;
mod fit;
mod jobs;
mod names;
#[doc(hidden)]
pub mod oracle;
mod profile;
mod request;
mod summary;
mod synthetic;
mod trace;
mod zipf;

pub use apps::{AppAbout, AppError, AppSpec};
pub use classify::{ClassMap, Classified};
pub use driver::{Driver, Issue};
pub use error::WorkloadError;
pub use extents::Extents;
pub use fio::{FioFile, JobPlan, JobTarget, parse_fio_file, read_fio_file};
pub use fit::{Fit, FitMode};
pub use jobs::{
    Direction, Handles, JobSet, JobSpec, JobStream, Mix, Rate, Sequencer, Sizes, Spread,
    StreamSpec, Think, Zone,
};
pub use profile::{Profile, Profiled, SizeClass};
pub use request::{MAX_SECTORS, OpKind, Request, Source};
pub use summary::{Summary, summarize};
pub use synthetic::{Distribution, Synthetic, SyntheticSpec};
pub use trace::{
    BadLine, BlkAction, Columns, Compression, DeviceMode, DeviceUse, Format, Tally, TimeUnit,
    TraceOptions, TraceReader, TraceWriter, open_trace, read_trace,
};
