//! Bytes of an image, and numbers in them.
//!
//! An image is anything that can be read at an offset: a file, a block device, a slice.
//! [`View`] is the part of it from the start of a file system on; all parsers read
//! through it, so that no arithmetic on offsets can overflow and nothing longer than
//! [`READ_BYTES_MAX`] is read at once.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::SuperblockError;

/// Longest single read \[bytes\]: the largest block of ext4 and XFS (64 KiB).
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;

/// What can be read at an offset.
pub trait ReadAt {
    /// Length \[bytes\].
    fn n_bytes(&self) -> io::Result<u64>;

    /// Fills `buf` from `offset` on \[bytes\], or fails.
    fn fill_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for [u8] {
    fn n_bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn fill_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let part = start.and_then(|start| self.get(start..start.checked_add(buf.len())?));
        buf.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn n_bytes(&self) -> io::Result<u64> {
        self.as_slice().n_bytes()
    }

    fn fill_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.as_slice().fill_at(offset, buf)
    }
}

/// Moves the position of the file. The length is where a seek to the end arrives, which
/// is right for block devices too.
impl ReadAt for File {
    fn n_bytes(&self) -> io::Result<u64> {
        let mut file = self;
        file.seek(SeekFrom::End(0))
    }

    fn fill_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buf)
    }
}

/// An image from the start of a file system on.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    image: &'a dyn ReadAt,
    /// Where the file system begins \[bytes\].
    pub(crate) base: u64,
    /// Bytes from there to the end of the image.
    pub(crate) len: u64,
}

impl<'a> View<'a> {
    /// The image from `base` on.
    pub(crate) fn new(image: &'a dyn ReadAt, base: u64) -> Result<Self, SuperblockError> {
        let len = image.n_bytes().map_err(|source| SuperblockError::Io { offset: base, source })?;
        Ok(Self { image, base, len: len.saturating_sub(base) })
    }

    /// A part of the image, such as a partition; what is beyond it is not there.
    pub(crate) fn within(
        image: &'a dyn ReadAt,
        range: crate::ByteRange,
    ) -> Result<Self, SuperblockError> {
        let all = Self::new(image, range.start)?;
        Ok(Self { len: all.len.min(range.bytes), ..all })
    }

    /// `n_bytes` at `at` \[bytes from the start of the file system\]; `what` names them in
    /// the error.
    pub(crate) fn read(
        &self,
        at: u64,
        n_bytes: usize,
        what: &'static str,
    ) -> Result<Vec<u8>, SuperblockError> {
        assert!(n_bytes <= READ_BYTES_MAX, "{n_bytes} bytes of {what} at once");
        let end = at.checked_add(n_bytes as u64).filter(|&end| end <= self.len);
        let Some(offset) = self.base.checked_add(at).filter(|_| end.is_some()) else {
            return Err(SuperblockError::Truncated {
                what,
                offset: self.base.saturating_add(at),
                bytes: n_bytes as u64,
                image_bytes: self.base.saturating_add(self.len),
            });
        };
        let mut buf = vec![0; n_bytes];
        let read = self.image.fill_at(offset, &mut buf);
        read.map_err(|source| SuperblockError::Io { offset, source })?;
        Ok(buf)
    }

    /// Offset in the image of `at` \[bytes\].
    pub(crate) fn offset(&self, at: u64) -> u64 {
        self.base.saturating_add(at)
    }
}

/// `N` bytes at `at`; the caller has checked the length of `b` once.
fn array<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&b[at..at + N]);
    out
}

pub(crate) fn le16(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(b, at))
}

pub(crate) fn le32(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(b, at))
}

pub(crate) fn le64(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(b, at))
}

pub(crate) fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(b, at))
}

pub(crate) fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(b, at))
}

pub(crate) fn be64(b: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(b, at))
}

pub(crate) fn uuid(b: &[u8], at: usize) -> crate::Uuid {
    crate::Uuid(array(b, at))
}

/// Text up to the first zero byte, control characters replaced.
pub(crate) fn text(b: &[u8]) -> String {
    let end = b.iter().position(|&c| c == 0).unwrap_or(b.len());
    let text = String::from_utf8_lossy(&b[..end]);
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// CRC-32C without the inversions at its start and end, which is how ext4 chains it.
pub(crate) fn crc32c_raw(seed: u32, data: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_reads_within_the_image_and_nowhere_else() {
        let image: Vec<u8> = (0..100).collect();
        let view = View::new(&image, 10).unwrap();
        assert_eq!(view.read(5, 2, "x").unwrap(), [15, 16]);
        assert_eq!(view.read(88, 2, "x").unwrap(), [98, 99]);
        for (at, n) in [(89, 2), (u64::MAX, 1), (u64::MAX - 5, 10)] {
            let error = view.read(at, n, "the thing").unwrap_err();
            assert!(error.to_string().contains("the thing"), "{error}");
        }
        assert_eq!(View::new(&image, 200).unwrap().len, 0);
    }

    #[test]
    fn checksums_chain() {
        // RFC 3720, B.4: 32 bytes of zeroes have the CRC 8A9136AA.
        assert_eq!(!crc32c_raw(!0, &[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c_raw(crc32c_raw(!0, &[1, 2]), &[3]), crc32c_raw(!0, &[1, 2, 3]));
    }
}
