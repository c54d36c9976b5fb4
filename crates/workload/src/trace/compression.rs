//! Expands a file whose compression is told by its first bytes, within a budget of
//! data and of memory.
//!
//! Invariants: no more than the budget comes out; a decoder holds a window of at most
//! 128 MiB (gzip: 32 KiB), whatever the file asks for.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::input::read_error;
use crate::WorkloadError;

/// Size of each buffer, of raw and of expanded data \[bytes\], assumed.
pub(crate) const BUFFER_BYTES: usize = 64 << 10;

/// Memory for one xz decoder \[KiB\], assumed: twice the dictionary of `xz -9`, the
/// same window as the zstd decoder allows, and what that decoder needs beside it.
const XZ_MEMORY_KIB: u32 = (128 << 10) + 1024;

/// First bytes of a gzip member. Source: RFC 1952, section 2.3.1.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a Zstandard frame. Source: RFC 8878, section 3.1.1.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of an xz stream. Source: "The .xz File Format" 1.2.1, section 2.1.1.1.
const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, one or more members.
    Gzip,
    /// xz, one or more streams.
    Xz,
    /// Zstandard, one or more frames.
    Zstd,
}

impl Compression {
    fn of(head: &[u8]) -> Self {
        if head.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if head.starts_with(&XZ_MAGIC) {
            Self::Xz
        } else if head.starts_with(&ZSTD_MAGIC) {
            Self::Zstd
        } else {
            Self::None
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// Looks at the first bytes and returns the expanded stream.
pub(crate) fn expand(
    path: &Path,
    mut raw: Box<dyn Read + Send>,
    max_expanded_bytes: u64,
) -> Result<(Compression, Box<dyn Read + Send>), WorkloadError> {
    let mut head = Vec::new();
    raw.by_ref()
        .take(XZ_MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|source| read_error(path, source))?;
    let compression = Compression::of(&head);
    let raw = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(head).chain(raw));
    let inner: Box<dyn Read + Send> = match compression {
        Compression::None => return Ok((compression, Box::new(raw))),
        Compression::Gzip => Box::new(MultiGzDecoder::new(raw)),
        Compression::Xz => Box::new(Xz(XzReader::new_mem_limit(raw, true, XZ_MEMORY_KIB))),
        Compression::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw);
            Box::new(decoder.map_err(|source| read_error(path, source))?)
        }
    };
    Ok((compression, Box::new(Budget { inner, left: max_expanded_bytes })))
}

/// An xz decoder that says in our words when a file asks for too much memory.
struct Xz<R: Read>(XzReader<R>);

impl<R: Read> Read for Xz<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|e| match e.kind() {
            io::ErrorKind::OutOfMemory => io::Error::other(
                "its dictionary needs more than 128 MiB of memory; recompress it with xz -9",
            ),
            _ => e,
        })
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
pub(crate) struct OverBudget;

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
