//! The trace reader: lines in, requests out, with every rule that spans lines (the
//! header, order of time, blank lines, bad lines, devices, the start of time).
//!
//! Invariants: `at_ns` of the first request is 0 and never decreases; every line is
//! counted in the tally as a row, as something else with a reason, or as skipped, or
//! it ends the trace with an error that names it; after an error or the end,
//! `next_request` returns `None`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flashwise_hint::Lba;

use super::devices::Devices;
use super::fields::Flaw;
use super::input::Lines;
use super::order::{LATE_MAX_NS, Order};
use super::parser::{Line, Parser};
use super::{Columns, Compression, DeviceUse, Format, Tally, TimeUnit, TraceOptions, detect};
use crate::{OpKind, Request, Source, WorkloadError, names};

/// Opens a trace: compression is told by its first bytes, the format by its first line.
pub fn open_trace(path: &Path, opts: &TraceOptions) -> Result<TraceReader, WorkloadError> {
    // Before it is opened: a pipe nobody writes to would block.
    let is_special = std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
    if is_special {
        return Err(WorkloadError::Io {
            path: path.to_owned(),
            action: "read",
            advice: "a trace is read more than once: write it to a file first",
            source: std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                "a pipe or a device, not a file",
            ),
        });
    }
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
    let named = named_format(opts)?;
    let mut lines = Lines::new(path, input, opts.max_expanded_bytes)?;
    let format = match named {
        Some(format) => Some(format),
        None => detect::binary(&lines)?,
    };
    let is_text = format.is_none_or(|format| format.record_bytes().is_none());
    if (is_text || lines.head.is_empty()) && !lines.advance(0)? {
        return Err(WorkloadError::Empty {
            path: path.to_owned(),
            line: 1,
            found: "an empty file",
            expected: format!("requests ({})", Format::catalogue()).into(),
        });
    }
    let format = match format {
        Some(format) => format,
        None => detect::text(&lines)?,
    };
    let columns = opts.columns.as_ref();
    let parser = Parser::new(format, lines.text(), columns, opts);
    let (parser, first_line_waits) = parser.map_err(|flaw| locate(&lines, flaw, 0))?;
    let mode = opts.devices.unwrap_or(format.device_mode());
    let unit = columns.and_then(Columns::time_unit).unwrap_or(format.time_unit());
    Ok(TraceReader {
        lines,
        format,
        unit: opts.time_unit.unwrap_or(unit),
        parser,
        first_line_waits: is_text && first_line_waits,
        has_header: is_text && !first_line_waits,
        devices: Devices::new(mode, &opts.select),
        order: Order::new(opts.reorder_rows.unwrap_or(format.reorder_rows())),
        skip_bad: opts.skip_bad,
        tally: Tally::default(),
        at_end: false,
        done: false,
    })
}

/// The format that the options name, if they do, after checking that they agree.
fn named_format(opts: &TraceOptions) -> Result<Option<Format>, WorkloadError> {
    match (opts.format, &opts.columns) {
        (Some(Format::Custom), None) => Err(Columns::missing()),
        (Some(Format::Custom) | None, Some(columns)) => {
            if columns.time_unit().is_none() && opts.time_unit.is_none() {
                return Err(WorkloadError::Columns {
                    found: "time without a unit".into(),
                    expected: "time:s, time:ms, time:us, time:ns or time:100ns, or the unit \
                               by --time-unit"
                        .into(),
                });
            }
            Ok(Some(Format::Custom))
        }
        (Some(format), Some(_)) => Err(WorkloadError::Columns {
            found: format!("the format {format}").into(),
            expected: "the format custom, or none".into(),
        }),
        (format, None) => Ok(format),
    }
}

/// A trace being read.
pub struct TraceReader {
    lines: Lines,
    format: Format,
    unit: TimeUnit,
    parser: Parser,
    /// The first line was read to tell the format and is itself a row.
    first_line_waits: bool,
    has_header: bool,
    devices: Devices,
    order: Order,
    skip_bad: u64,
    tally: Tally,
    at_end: bool,
    done: bool,
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader")
            .field("path", &self.lines.path)
            .field("format", &self.format)
            .field("compression", &self.lines.compression)
            .field("tally", &self.tally)
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

    /// Whether the first line names the columns or the format and is no row.
    pub fn has_header(&self) -> bool {
        self.has_header
    }

    /// Rows read so far. A row is one request, or two if a flush goes before it.
    pub fn rows(&self) -> u64 {
        self.tally.rows
    }

    /// What became of every line read so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The devices that the rows read so far name, in order of first appearance.
    pub fn devices(&self) -> &[DeviceUse] {
        &self.devices.seen
    }

    /// What a user should know about the rows read so far.
    pub fn notices(&self) -> Vec<String> {
        super::notices::notices(self.format, self.devices.mode, &self.devices.seen, &self.tally)
    }

    fn step(&mut self) -> Result<Option<Request>, WorkloadError> {
        loop {
            if let Some(request) = self.order.pop(self.at_end) {
                return Ok(Some(request));
            }
            if self.at_end {
                return Ok(None);
            }
            if self.next_line()? {
                self.take_line()?;
            } else {
                self.check_end()?;
                self.at_end = true;
            }
        }
    }

    /// Moves to the next line; false at the end. Blank lines may stand at the end only.
    fn next_line(&mut self) -> Result<bool, WorkloadError> {
        if let Some(n_bytes) = self.format.record_bytes() {
            return self.lines.advance_record(n_bytes, self.tally.rows);
        }
        let mut first_blank = None;
        loop {
            let waits = std::mem::take(&mut self.first_line_waits);
            if !waits && !self.lines.advance(self.tally.rows)? {
                return Ok(false);
            }
            if !self.lines.text().trim_ascii().is_empty() {
                break;
            }
            if !self.parser.takes_blank_lines() {
                first_blank.get_or_insert(self.lines.line);
            }
        }
        if let Some(line) = first_blank {
            let expected = format!("a row ({})", self.format.columns());
            let flaw = Flaw::new(expected, "an empty line before more rows")
                .advise("remove the line, or look for rows that were lost here");
            self.tally.lines += 1;
            self.skip_or_fail(flaw, line)?;
        }
        Ok(true)
    }

    fn take_line(&mut self) -> Result<(), WorkloadError> {
        self.tally.lines += 1;
        let line = self.lines.line;
        let row = match self.parser.parse(self.lines.text(), self.unit) {
            Ok(Line::Row(row)) => row,
            Ok(Line::Other(why)) => {
                self.tally.other(why);
                return Ok(());
            }
            Err(flaw) => return self.skip_or_fail(flaw, line),
        };
        let mut request = row.request;
        let (flush_before, rounded) = (row.flush_before, row.rounded);
        if let Some(device) = row.device {
            match self.devices.place(device, &mut request) {
                Ok(true) => {}
                Ok(false) => {
                    self.tally.left_out += 1;
                    return Ok(());
                }
                Err(flaw) => return self.skip_or_fail(flaw, line),
            }
        }
        if let Err(previous_ns) = self.order.admit(request.at_ns) {
            return self.refuse_late(request.at_ns, previous_ns);
        }
        self.tally.rows += 1;
        self.tally.rounded += u64::from(rounded);
        self.tally.late_rows = self.order.late_rows;
        self.tally.late_max_ns = self.order.late_max_ns;
        if flush_before {
            let at_ns = request.at_ns;
            self.order.push(Request { at_ns, ..Request::new(OpKind::Flush, Lba(0), 0) });
        }
        self.order.push(request);
        Ok(())
    }

    /// Counts a bad line, or makes it an error if no more may be skipped.
    fn skip_or_fail(&mut self, flaw: Flaw, line: u64) -> Result<(), WorkloadError> {
        if self.tally.bad < self.skip_bad {
            self.tally.skip(line, &flaw);
            return Ok(());
        }
        let mut error = locate(&self.lines, flaw, self.tally.bad);
        if let WorkloadError::Syntax { line: at, .. } = &mut error {
            *at = line;
        }
        Err(error)
    }

    fn refuse_late(&mut self, found_ns: u64, previous_ns: u64) -> Result<(), WorkloadError> {
        let unit = self.unit;
        let found = format!("{} {unit}", unit.decimal(found_ns));
        let (expected, more) = match self.order.window() {
            0 => ("times that never go back".to_owned(), ""),
            window => (
                format!(
                    "times that go back by at most {} s and {window} rows",
                    LATE_MAX_NS / 1_000_000_000
                ),
                ", or look further ahead with --reorder",
            ),
        };
        // A file may hold one device after the other.
        let select = match self.devices.seen.iter().filter(|device| device.kept).count() {
            0 | 1 => "",
            _ => ", or keep one device with --select",
        };
        if self.tally.bad < self.skip_bad {
            self.tally.skip(self.lines.line, &Flaw::new(expected, found));
            return Ok(());
        }
        Err(WorkloadError::TimeBackwards {
            path: self.lines.path.clone(),
            line: self.lines.line,
            found: found.into(),
            previous: format!("{} {unit}", unit.decimal(previous_ns)).into(),
            expected: expected.into(),
            advice: format!("{}{more}{select}", self.format.sort_advice()).into(),
        })
    }

    /// At the end: there were rows, and every selected device was one of theirs.
    fn check_end(&self) -> Result<(), WorkloadError> {
        if let Some(absent) = self.devices.absent().next() {
            let known: Vec<&str> = self.devices.seen.iter().map(|d| d.name.as_str()).collect();
            return Err(WorkloadError::NoSuchDevice {
                path: self.lines.path.clone(),
                line: self.lines.line.max(1),
                found: names::excerpt(absent.as_bytes()).into(),
                suggestion: names::nearest(absent, known.iter().copied()).map(Into::into),
                known: names::list(&known).into(),
            });
        }
        if self.tally.rows > 0 {
            return Ok(());
        }
        let (path, line) = (self.lines.path.clone(), self.lines.line.max(1));
        let expected = match &self.parser {
            Parser::Blkparse(blkparse) => blkparse.expected(),
            _ => format!("at least one row ({})", self.format.columns()),
        };
        let expected = expected.into();
        if self.tally.lines > 0 {
            let others = self.tally.others.iter().map(|(why, n)| format!("{why}: {n}"));
            let bad = Some(format!("bad lines: {}", self.tally.bad));
            let bad = bad.filter(|_| self.tally.bad > 0);
            let counted = others.chain(bad).collect::<Vec<_>>().join(", ").into();
            return Err(WorkloadError::NoRequests { path, line, counted, expected });
        }
        let found = if self.has_header { "only a header" } else { "only empty lines" };
        Err(WorkloadError::Empty { path, line, found, expected })
    }
}

/// A flaw of the line read last as an error, which also says how many bad lines were
/// skipped before it.
fn locate(lines: &Lines, flaw: Flaw, skipped: u64) -> WorkloadError {
    let text = lines.text();
    let binary = text.contains(&0) || std::str::from_utf8(text).is_err();
    let mut advice = match flaw.is_of_text() && binary {
        true => "the file is binary or damaged here".to_owned(),
        false => flaw.advice.to_owned(),
    };
    if skipped > 0 {
        advice = format!("{advice} (bad lines before it, skipped: {skipped})");
    }
    WorkloadError::Syntax {
        path: lines.path.clone(),
        line: lines.line.max(1),
        found: flaw.found.into(),
        expected: flaw.expected.into(),
        advice: advice.into(),
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
