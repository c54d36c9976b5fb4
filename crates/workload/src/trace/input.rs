//! Bytes to lines: finds out the compression, expands it within a budget, and hands
//! out lines of bounded length.
//!
//! Invariants: at most one line of [`MAX_LINE_BYTES`] is held; a compressed file never
//! yields more than the budget; a stream that stops without its end mark is an error
//! even if the text so far ends in a complete row.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::WorkloadError;

/// Longest line accepted \[bytes\], assumed: hundreds of times the longest row of any
/// known format.
pub(crate) const MAX_LINE_BYTES: u64 = 64 << 10;

/// Size of each buffer, of raw and of expanded data \[bytes\], assumed.
const BUFFER_BYTES: usize = 64 << 10;

/// First bytes of a gzip member. Source: RFC 1952, section 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a Zstandard frame. Source: RFC 8878, section 3.1.1.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one or more members.
    Gzip,
    /// Zstandard, one or more frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Lines of a file.
pub(crate) struct Lines {
    pub(crate) path: PathBuf,
    pub(crate) compression: Compression,
    /// Number of the line in `buf`, from 1; 0 before the first.
    pub(crate) line: u64,
    buf: Vec<u8>,
    input: Box<dyn BufRead + Send>,
    max_expanded_bytes: u64,
}

impl Lines {
    /// Looks at the first bytes and prepares to read lines.
    pub(crate) fn new(
        path: &Path,
        mut raw: Box<dyn Read + Send>,
        max_expanded_bytes: u64,
    ) -> Result<Self, WorkloadError> {
        let mut head = Vec::new();
        raw.by_ref()
            .take(ZSTD_MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(|source| read_error(path, source))?;
        let compression = if head.starts_with(&GZIP_MAGIC) {
            Compression::Gzip
        } else if head == ZSTD_MAGIC {
            Compression::Zstd
        } else {
            Compression::None
        };
        let raw = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head).chain(raw));
        let expanded: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(raw),
            Compression::Gzip => {
                Box::new(Budget { inner: MultiGzDecoder::new(raw), left: max_expanded_bytes })
            }
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(raw)
                    .map_err(|source| read_error(path, source))?;
                Box::new(Budget { inner: decoder, left: max_expanded_bytes })
            }
        };
        Ok(Self {
            path: path.to_owned(),
            compression,
            line: 0,
            buf: Vec::new(),
            input: Box::new(BufReader::with_capacity(BUFFER_BYTES, expanded)),
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

    /// The line read last, without its end.
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

/// A reader that fails once more than its budget has come out.
struct Budget<R> {
    inner: R,
    left: u64,
}

/// Marker inside the `io::Error` that a spent budget raises.
#[derive(Debug, thiserror::Error)]
#[error("more data than allowed")]
struct OverBudget;

impl<R: Read> Read for Budget<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !out.is_empty() {
            let mut probe = [0];
            return match self.inner.read(&mut probe)? {
                0 => Ok(0),
                _ => Err(io::Error::other(OverBudget)),
            };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let n = self.inner.read(&mut out[..room])?;
        self.left -= n as u64;
        Ok(n)
    }
}
