//! Writes requests down as `mqsim` or `cloudphysics`: for converting, for small examples, and as
//! the other half of the round-trip tests.
//!
//! Invariant: what is written reads back as the same requests, relative to the first.
//! Hints and force unit access have no column in these formats and are left out; an
//! operation without a code is an error.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flashwise_hint::SECTOR_BYTES;

use super::{Format, cloudphysics};
use crate::{OpKind, Request, WorkloadError};

/// A trace being written.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    path: PathBuf,
    out: W,
    format: Format,
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace and writes its header, if it has one; `path` is its name in
    /// messages.
    pub fn new(path: &Path, out: W, format: Format) -> Result<Self, WorkloadError> {
        if !matches!(format, Format::Mqsim | Format::CloudPhysicsCsv) {
            return Err(WorkloadError::NotWritable { path: path.to_owned(), format });
        }
        let mut writer = Self { path: path.to_owned(), out, format };
        if format == Format::CloudPhysicsCsv {
            let header = writeln!(writer.out, "{}", format.columns());
            header.map_err(|source| writer.io(source))?;
        }
        Ok(writer)
    }

    /// Writes one request, in the time unit that the format defines.
    pub fn write(&mut self, request: &Request) -> Result<(), WorkloadError> {
        let time = self.format.time_unit().decimal(request.at_ns);
        let (lba, sectors) = (request.lba.0, request.sectors);
        let written = match (self.format, request.op) {
            (Format::Mqsim, OpKind::Read) => writeln!(self.out, "{time} 0 {lba} {sectors} 1"),
            (Format::Mqsim, OpKind::Write) => writeln!(self.out, "{time} 0 {lba} {sectors} 0"),
            (Format::Mqsim, op) => {
                return Err(WorkloadError::NotExpressible {
                    path: self.path.clone(),
                    format: self.format,
                    accepted: "reads and writes",
                    op,
                });
            }
            (_, op) => {
                let bytes = u64::from(sectors) * SECTOR_BYTES;
                writeln!(self.out, "1,{time},{},{bytes},{lba}", cloudphysics::code(op))
            }
        };
        written.map_err(|source| self.io(source))
    }

    /// Flushes and returns the stream.
    pub fn finish(mut self) -> Result<W, WorkloadError> {
        match self.out.flush() {
            Ok(()) => Ok(self.out),
            Err(source) => Err(self.io(source)),
        }
    }

    fn io(&self, source: io::Error) -> WorkloadError {
        WorkloadError::Io {
            path: self.path.clone(),
            action: "write",
            advice: "check free space and permissions",
            source,
        }
    }
}
