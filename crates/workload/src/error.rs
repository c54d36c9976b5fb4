//! Everything that can be wrong with a workload, as one error type with fields.
//!
//! One enum for the crate, because readers, generators and fitting are used together
//! and a caller wants one `?`. Each variant carries where it happened, what was found
//! and what was expected, and its text ends in what to do; front ends may print it as
//! it is. Texts are boxed, so that a `Result` stays small on the path without errors.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Compression, Format, OpKind};

/// Why a workload cannot be read, generated or fitted to a drive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The operating system refused.
    #[error("{}: cannot {action} ({source}); {advice}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// What was attempted: `open`, `read` or `write`.
        action: &'static str,
        /// What to do.
        advice: &'static str,
        /// The system's reason.
        source: io::Error,
    },

    /// There is nothing to do in the file.
    #[error("{}:{line}: found {found}, expected {expected}; record the trace again or name \
             another file", path.display())]
    Empty {
        /// File.
        path: PathBuf,
        /// Last line looked at, from 1.
        line: u64,
        /// What is there instead.
        found: &'static str,
        /// What should be.
        expected: Box<str>,
    },

    /// Every line was understood, and none is a request.
    #[error("{}:{line}: expected {expected}, found no requests in the lines before ({counted}); \
             choose other rows or record the trace again", path.display())]
    NoRequests {
        /// File.
        path: PathBuf,
        /// Last line, from 1.
        line: u64,
        /// What the lines are, with counts.
        counted: Box<str>,
        /// What should be.
        expected: Box<str>,
    },

    /// No reader recognises the first line.
    #[error("{}:{line}: found «{found}», expected a trace in a known format ({known}); {advice}",
            path.display())]
    UnknownFormat {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Start of that line.
        found: Box<str>,
        /// The known formats with their columns.
        known: Box<str>,
        /// What to do.
        advice: Box<str>,
    },

    /// One line does not follow the format.
    #[error("{}:{line}: expected {expected}, found {found}; {advice}", path.display())]
    Syntax {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What stands there.
        found: Box<str>,
        /// What should.
        expected: Box<str>,
        /// What to do.
        advice: Box<str>,
    },

    /// The first line follows two formats.
    #[error("{}:{line}: expected the first rows of one known format, found rows that could be \
             {one} or {other}; name the right one with --format", path.display())]
    AmbiguousFormat {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// A format that fits.
        one: Format,
        /// Another that fits.
        other: Format,
    },

    /// A row is earlier than the rows before it, by more than can be put in order.
    #[error("{}:{line}: expected {expected}, found {found} after {previous}; {advice}",
            path.display())]
    TimeBackwards {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Time of this row, with unit.
        found: Box<str>,
        /// Time that it should not go behind, with unit.
        previous: Box<str>,
        /// Which order of times is accepted.
        expected: Box<str>,
        /// What to do.
        advice: Box<str>,
    },

    /// A device was selected that no row names.
    #[error("{}:{line}: expected rows of the selected device «{found}»{}, found {}; select one of \
             those, or none to keep all", path.display(), did_you_mean(suggestion), devices(known))]
    NoSuchDevice {
        /// File.
        path: PathBuf,
        /// Last line, from 1.
        line: u64,
        /// What was selected.
        found: Box<str>,
        /// The nearest device of the trace.
        suggestion: Option<Box<str>>,
        /// Devices of the trace, shortened.
        known: Box<str>,
    },

    /// A line without end.
    #[error("{}:{line}: expected a line of at most {limit_bytes} bytes, found no line end in them; \
             the file is binary, damaged or not a trace", path.display())]
    LineTooLong {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Longest line accepted \[bytes\].
        limit_bytes: u64,
    },

    /// Compressed data stops in the middle.
    #[error("{}:{line}: the {compression} data ends early, after {rows} complete rows ({source}), \
             expected its end mark; the file is truncated: copy it again", path.display())]
    EndsEarly {
        /// File.
        path: PathBuf,
        /// Line being read, from 1.
        line: u64,
        /// Rows read so far.
        rows: u64,
        /// How it is compressed.
        compression: Compression,
        /// The decoder's reason.
        source: io::Error,
    },

    /// Compressed data is wrong, or something else follows it.
    #[error("{}:{line}: the {compression} data is damaged after {rows} complete rows ({source}), \
             expected an intact stream and nothing behind it; copy it again or recompress it",
            path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// Line being read, from 1.
        line: u64,
        /// Rows read so far.
        rows: u64,
        /// How it is compressed.
        compression: Compression,
        /// The decoder's reason.
        source: io::Error,
    },

    /// The data is larger than the caller allows.
    #[error("{}:{line}: expected at most {limit_bytes} bytes of data, found more after {rows} rows; \
             raise the limit if the file can be trusted", path.display())]
    TooLarge {
        /// File.
        path: PathBuf,
        /// Line being read, from 1.
        line: u64,
        /// Rows read so far.
        rows: u64,
        /// The limit \[bytes\].
        limit_bytes: u64,
    },

    /// A key of a job file is unknown or has a bad value.
    #[error("{}:{line}: key `{key}`: expected {expected}, found {found}; {advice}",
            path.display())]
    Key {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The key.
        key: Box<str>,
        /// Its value.
        found: Box<str>,
        /// What it should be.
        expected: Box<str>,
        /// What to do.
        advice: Box<str>,
    },

    /// A parameter of a generator or of fitting is out of its range.
    #[error("{key}: expected {expected}, found {found}")]
    Parameter {
        /// The field or argument.
        key: &'static str,
        /// Its value.
        found: Box<str>,
        /// What it should be.
        expected: Box<str>,
    },

    /// A description of the columns of a trace is wrong.
    #[error("--columns: found {found}; expected {expected}")]
    Columns {
        /// The item, and what is wrong with it.
        found: Box<str>,
        /// How a description is written.
        expected: Box<str>,
    },

    /// A name that is not in a list of known names.
    #[error("unknown {what} «{found}»{}; expected one of: {known}", did_you_mean(suggestion))]
    UnknownName {
        /// What kind of name.
        what: &'static str,
        /// What was typed.
        found: Box<str>,
        /// The nearest known name.
        suggestion: Option<Box<str>>,
        /// All known names.
        known: Box<str>,
    },

    /// A request lies beyond the end of the drive.
    #[error("request at LBA {lba} for {sectors} sectors: expected it to end within the drive's \
             {capacity_sectors} sectors ({}), found its end at {}; use a larger drive, or fit the \
             workload by wrap or compact", gib(*capacity_sectors), lba.saturating_add(*sectors))]
    OutOfRange {
        /// First sector.
        lba: u64,
        /// Length \[sectors\].
        sectors: u64,
        /// Size of the drive \[sectors\].
        capacity_sectors: u64,
    },

    /// Even packed, the workload needs a larger drive.
    #[error("the workload touches {footprint_sectors} sectors ({}), expected at most the drive's \
             {capacity_sectors} sectors ({}); use a larger drive, or fit the workload by wrap",
            gib(*footprint_sectors), gib(*capacity_sectors))]
    Footprint {
        /// Sectors touched, rounded to mapping units.
        footprint_sectors: u64,
        /// Size of the drive \[sectors\].
        capacity_sectors: u64,
    },

    /// A request that the summary behind a compacting fit did not see.
    #[error(
        "request at LBA {lba} for {sectors} sectors: expected only addresses that the \
             workload's summary lists, found another; summarize the same source that is replayed"
    )]
    NotTouched {
        /// First sector.
        lba: u64,
        /// Length \[sectors\].
        sectors: u64,
    },

    /// A format that is read and not written.
    #[error("{}: expected mqsim or cloudphysics, found {format}; write one of those", path.display())]
    NotWritable {
        /// File to be written.
        path: PathBuf,
        /// The format.
        format: Format,
    },

    /// A format has no way to write down a request.
    #[error("{}: expected only requests that the {format} format can hold ({accepted}), found a \
             {op:?}; choose another format", path.display())]
    NotExpressible {
        /// File being written.
        path: PathBuf,
        /// Its format.
        format: Format,
        /// What the format can hold.
        accepted: &'static str,
        /// What was to be written.
        op: OpKind,
    },
}

impl WorkloadError {
    /// The file the error is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. }
            | Self::Empty { path, .. }
            | Self::UnknownFormat { path, .. }
            | Self::Syntax { path, .. }
            | Self::TimeBackwards { path, .. }
            | Self::LineTooLong { path, .. }
            | Self::EndsEarly { path, .. }
            | Self::Damaged { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Key { path, .. }
            | Self::AmbiguousFormat { path, .. }
            | Self::NoRequests { path, .. }
            | Self::NoSuchDevice { path, .. }
            | Self::NotWritable { path, .. }
            | Self::NotExpressible { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The line the error is about, from 1, if it is about one.
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Empty { line, .. }
            | Self::UnknownFormat { line, .. }
            | Self::Syntax { line, .. }
            | Self::TimeBackwards { line, .. }
            | Self::LineTooLong { line, .. }
            | Self::EndsEarly { line, .. }
            | Self::Damaged { line, .. }
            | Self::TooLarge { line, .. }
            | Self::AmbiguousFormat { line, .. }
            | Self::NoRequests { line, .. }
            | Self::NoSuchDevice { line, .. }
            | Self::Key { line, .. } => Some(*line),
            _ => None,
        }
    }
}

fn did_you_mean(suggestion: &Option<Box<str>>) -> String {
    match suggestion {
        Some(name) => format!(", did you mean `{name}`?"),
        None => String::new(),
    }
}

fn devices(known: &str) -> String {
    match known {
        "" => "no device names".to_owned(),
        known => format!("rows of {known}"),
    }
}

/// Sectors as GiB with one digit, or MiB below one GiB.
pub(crate) fn gib(sectors: u64) -> String {
    let mib = sectors as f64 / 2048.0;
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}
