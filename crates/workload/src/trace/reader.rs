//! The trace reader: lines in, requests out, with every rule that spans lines (the
//! header, time that never goes back, blank lines, the start of time).
//!
//! Invariants: `at_ns` of the first request is 0 and never decreases; every non-blank
//! row yields one request or ends the trace with an error that names it; after an
//! error or the end, `next_request` returns `None`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::fields::Flaw;
use super::input::{Compression, Lines};
use super::{Format, TimeUnit, TraceOptions, cloudphysics, mqsim};
use crate::{Request, Source, WorkloadError, names};

/// First bytes of packed files that people take for traces, and what unpacks them.
const PACKED: [(&[u8], &str); 4] = [
    (b"\xfd7zXZ\0", "unpack it with `xz -d`"),
    (b"BZh", "unpack it with `bzip2 -d`"),
    (b"PK\x03\x04", "unpack it with `unzip`"),
    (b"7z\xbc\xaf\x27\x1c", "unpack it with `7z x`"),
];

/// Opens a trace: compression is told by its first bytes, the format by its first line.
pub fn open_trace(path: &Path, opts: &TraceOptions) -> Result<TraceReader, WorkloadError> {
    let file = File::open(path).map_err(|source| WorkloadError::Io {
        path: path.to_owned(),
        action: "open",
        advice: "check the path and its permissions",
        source,
    })?;
    read_trace(path, Box::new(file), opts)
}

/// Reads a trace from any stream; `path` is its name in messages.
pub fn read_trace(
    path: &Path,
    input: Box<dyn Read + Send>,
    opts: &TraceOptions,
) -> Result<TraceReader, WorkloadError> {
    let mut lines = Lines::new(path, input, opts.max_expanded_bytes)?;
    if !lines.advance(0)? {
        return Err(WorkloadError::Empty {
            path: path.to_owned(),
            line: 1,
            found: "an empty file",
            expected: format!("requests ({})", Format::catalogue()).into(),
        });
    }
    let format = match opts.format {
        Some(format) => format,
        None => detect(&lines)?,
    };
    if format == Format::CloudPhysicsCsv && !cloudphysics::recognises(lines.text()) {
        return Err(WorkloadError::Syntax {
            path: path.to_owned(),
            line: 1,
            found: format!("«{}»", names::excerpt(lines.text())).into(),
            expected: format!("the header «{}»", format.columns()).into(),
            advice: "add the header or name another format".into(),
        });
    }
    Ok(TraceReader {
        lines,
        format,
        unit: opts.time_unit.unwrap_or(format.time_unit()),
        first_line_waits: format != Format::CloudPhysicsCsv,
        clock: None,
        rows: 0,
        first_device: None,
        many_devices: false,
        done: false,
    })
}

/// A trace being read.
pub struct TraceReader {
    lines: Lines,
    format: Format,
    unit: TimeUnit,
    /// The first line was read to tell the format and is itself a row.
    first_line_waits: bool,
    /// Absolute times of the first and the latest row \[ns\].
    clock: Option<(u64, u64)>,
    rows: u64,
    first_device: Option<u64>,
    many_devices: bool,
    done: bool,
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader")
            .field("path", &self.lines.path)
            .field("format", &self.format)
            .field("compression", &self.lines.compression)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl TraceReader {
    /// The format that is read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// How the file is compressed.
    pub fn compression(&self) -> Compression {
        self.lines.compression
    }

    /// The unit of the time column.
    pub fn time_unit(&self) -> TimeUnit {
        self.unit
    }

    /// Requests yielded so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What a user should know about the rows read so far.
    pub fn notices(&self) -> Vec<String> {
        if !self.many_devices {
            return Vec::new();
        }
        vec!["the trace names several device numbers; they share one address space here".into()]
    }

    fn step(&mut self) -> Result<Option<Request>, WorkloadError> {
        if !self.next_row()? {
            return if self.rows == 0 { Err(self.no_rows()) } else { Ok(None) };
        }
        let parsed = match self.format {
            Format::Mqsim => mqsim::parse(self.lines.text(), self.unit).map(|(request, device)| {
                self.many_devices |= *self.first_device.get_or_insert(device) != device;
                request
            }),
            Format::CloudPhysicsCsv => cloudphysics::parse(self.lines.text(), self.unit),
        };
        let mut request = parsed.map_err(|flaw| self.locate(flaw))?;
        let (start, latest) = self.clock.unwrap_or((request.at_ns, request.at_ns));
        if request.at_ns < latest {
            return Err(self.backwards(request.at_ns, latest));
        }
        self.clock = Some((start, request.at_ns));
        self.rows += 1;
        request.at_ns -= start;
        Ok(Some(request))
    }

    /// Moves to the next row; false at the end. Blank lines may stand at the end only.
    fn next_row(&mut self) -> Result<bool, WorkloadError> {
        let mut first_blank = None;
        loop {
            if !std::mem::take(&mut self.first_line_waits) && !self.lines.advance(self.rows)? {
                return Ok(false);
            }
            if self.lines.text().trim_ascii().is_empty() {
                first_blank.get_or_insert(self.lines.line);
                continue;
            }
            let Some(line) = first_blank else {
                return Ok(true);
            };
            return Err(WorkloadError::Syntax {
                path: self.lines.path.clone(),
                line,
                found: "an empty line before more rows".into(),
                expected: format!("a row ({})", self.format.columns()).into(),
                advice: "remove the line, or look for rows that were lost here".into(),
            });
        }
    }

    fn locate(&self, flaw: Flaw) -> WorkloadError {
        let text = self.lines.text();
        let binary = text.contains(&0) || std::str::from_utf8(text).is_err();
        let advice = if binary { "the file is binary or damaged here" } else { flaw.advice };
        WorkloadError::Syntax {
            path: self.lines.path.clone(),
            line: self.lines.line,
            found: flaw.found.into(),
            expected: flaw.expected.into(),
            advice: advice.into(),
        }
    }

    fn backwards(&self, found_ns: u64, latest_ns: u64) -> WorkloadError {
        let unit = self.unit;
        WorkloadError::TimeBackwards {
            path: self.lines.path.clone(),
            line: self.lines.line,
            found: format!("{} {unit}", unit.decimal(found_ns)).into(),
            previous: format!("{} {unit}", unit.decimal(latest_ns)).into(),
            sort: self.format.sort_command(),
        }
    }

    fn no_rows(&self) -> WorkloadError {
        let has_header = self.format == Format::CloudPhysicsCsv;
        WorkloadError::Empty {
            path: self.lines.path.clone(),
            line: self.lines.line,
            found: if has_header { "only a header" } else { "only empty lines" },
            expected: format!("at least one row ({})", self.format.columns()).into(),
        }
    }
}

impl Source for TraceReader {
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        if self.done {
            return Ok(None);
        }
        let result = self.step();
        self.done = !matches!(result, Ok(Some(_)));
        result
    }
}

/// Tells the format by the first line.
fn detect(lines: &Lines) -> Result<Format, WorkloadError> {
    let first = lines.text();
    if cloudphysics::recognises(first) {
        return Ok(Format::CloudPhysicsCsv);
    }
    if mqsim::recognises(first) {
        return Ok(Format::Mqsim);
    }
    let packed = PACKED.iter().find(|(magic, _)| first.starts_with(magic));
    let binary = first.contains(&0) || std::str::from_utf8(first).is_err();
    let advice = match packed {
        Some((_, advice)) => *advice,
        None if binary => "the file is binary: unpack or convert it first",
        None => "convert the file, or name its format if the first line is damaged",
    };
    Err(WorkloadError::UnknownFormat {
        path: lines.path.clone(),
        line: lines.line,
        found: names::excerpt(first).into(),
        known: Format::catalogue().into(),
        advice: advice.into(),
    })
}
