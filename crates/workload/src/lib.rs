//! What to do: trace readers, generators, and the fitting of addresses to a drive.
//!
//! Everything that produces requests is a [`Source`]: a recorded trace
//! ([`open_trace`]), a generator ([`Synthetic`]), a fio job ([`read_fio_job`], which
//! becomes a generator), or a plain list (`Vec<Request>::into_iter()`).
//! [`summarize`] walks a source once and says what it touches, and [`Profiled`] what
//! it looks like; [`Fit`] maps its addresses onto a drive of another size.
//!
//! Invariants: bad input is a [`WorkloadError`] that names the file, the line or key,
//! what was expected and what to do; it is never a panic, a hang, a silent end or
//! unbounded memory. The same file or seed yields the same requests on every run.
//!
//! Cost: a trace row is parsed in well under a microsecond without allocation; a
//! generated request takes a few nanoseconds.

mod driver;
mod error;
mod extents;
mod fio;
mod fit;
mod names;
#[doc(hidden)]
pub mod oracle;
mod profile;
mod request;
mod summary;
mod synthetic;
mod trace;
mod zipf;

pub use driver::{Driver, Issue};
pub use error::WorkloadError;
pub use extents::Extents;
pub use fio::{FioJob, parse_fio_job, read_fio_job};
pub use fit::{Fit, FitMode};
pub use profile::{Profile, Profiled, SizeClass};
pub use request::{MAX_SECTORS, OpKind, Request, Source};
pub use summary::{Summary, summarize};
pub use synthetic::{Distribution, Synthetic, SyntheticSpec};
pub use trace::{
    BadLine, BlkAction, Columns, Compression, DeviceMode, DeviceUse, Format, Tally, TimeUnit,
    TraceOptions, TraceReader, TraceWriter, open_trace, read_trace,
};
