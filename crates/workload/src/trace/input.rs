//! Bytes to lines, or to records of a fixed length if the format is binary.
//!
//! Invariants: at most one line of [`MAX_LINE_BYTES`] is held; a stream that stops
//! without its end mark is an error even if the text so far ends in a complete row;
//! what was read ahead to tell the format is read again.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use super::compression::{BUFFER_BYTES, Compression, OverBudget, expand};
use crate::WorkloadError;

/// Longest line accepted \[bytes\], assumed: hundreds of times the longest row of any
/// known format.
pub(crate) const MAX_LINE_BYTES: u64 = 64 << 10;

/// Data that is looked at to tell a binary format \[bytes\]: 16 of its longest records.
const HEAD_BYTES: u64 = 640;

/// Lines of a file.
pub(crate) struct Lines {
    pub(crate) path: PathBuf,
    pub(crate) compression: Compression,
    /// Number of the line or record in `buf`, from 1; 0 before the first.
    pub(crate) line: u64,
    /// The first bytes of the expanded data.
    pub(crate) head: Vec<u8>,
    buf: Vec<u8>,
    input: Box<dyn BufRead + Send>,
    max_expanded_bytes: u64,
}

impl Lines {
    /// Looks at the first bytes and prepares to read lines.
    pub(crate) fn new(
        path: &Path,
        raw: Box<dyn Read + Send>,
        max_expanded_bytes: u64,
    ) -> Result<Self, WorkloadError> {
        let (compression, mut expanded) = expand(path, raw, max_expanded_bytes)?;
        let mut head = Vec::new();
        let read = expanded.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        // What came before an error is read first, and then the error is raised.
        let rest = Cursor::new(head.clone()).chain(Failed(read.err())).chain(expanded);
        Ok(Self {
            path: path.to_owned(),
            compression,
            line: 0,
            head,
            buf: Vec::new(),
            input: Box::new(BufReader::with_capacity(BUFFER_BYTES, rest)),
            max_expanded_bytes,
        })
    }

    /// Reads the next line; false at the end. `rows` goes into messages.
    pub(crate) fn advance(&mut self, rows: u64) -> Result<bool, WorkloadError> {
        self.buf.clear();
        self.line += 1;
        // The line, its end, and one byte to see that there is no end.
        let mut bounded = self.input.by_ref().take(MAX_LINE_BYTES + 2);
        let n = match bounded.read_until(b'\n', &mut self.buf) {
            Ok(n) => n,
            Err(source) => return Err(self.stream_error(source, rows)),
        };
        if n == 0 {
            self.line -= 1;
            return Ok(false);
        }
        if self.buf.last() == Some(&b'\n') {
            self.buf.pop();
        }
        if self.buf.last() == Some(&b'\r') {
            self.buf.pop();
        }
        if self.line == 1 && self.buf.starts_with(b"\xef\xbb\xbf") {
            self.buf.drain(..3);
        }
        if self.buf.len() as u64 > MAX_LINE_BYTES {
            return Err(WorkloadError::LineTooLong {
                path: self.path.clone(),
                line: self.line,
                limit_bytes: MAX_LINE_BYTES,
            });
        }
        Ok(true)
    }

    /// Reads the next record of `n_bytes`, which the last of a damaged file may lack;
    /// false at the end.
    pub(crate) fn advance_record(
        &mut self,
        n_bytes: usize,
        rows: u64,
    ) -> Result<bool, WorkloadError> {
        self.buf.clear();
        let read = self.input.by_ref().take(n_bytes as u64).read_to_end(&mut self.buf);
        self.line += 1;
        read.map_err(|source| self.stream_error(source, rows))?;
        if self.buf.is_empty() {
            self.line -= 1;
        }
        Ok(!self.buf.is_empty())
    }

    /// The line or record read last, without the line end.
    pub(crate) fn text(&self) -> &[u8] {
        &self.buf
    }

    fn stream_error(&self, source: io::Error, rows: u64) -> WorkloadError {
        let (path, line, compression) = (self.path.clone(), self.line, self.compression);
        if source.get_ref().is_some_and(|inner| inner.is::<OverBudget>()) {
            let limit_bytes = self.max_expanded_bytes;
            return WorkloadError::TooLarge { path, line, rows, limit_bytes };
        }
        if compression == Compression::None || source.raw_os_error().is_some() {
            return read_error(&path, source);
        }
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return WorkloadError::EndsEarly { path, line, rows, compression, source };
        }
        WorkloadError::Damaged { path, line, rows, compression, source }
    }
}

/// An operating-system error while reading.
pub(crate) fn read_error(path: &Path, source: io::Error) -> WorkloadError {
    WorkloadError::Io {
        path: path.to_owned(),
        action: "read",
        advice: "check that it is a readable file, not a directory",
        source,
    }
}

/// Raises an error once, and is empty without one.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
