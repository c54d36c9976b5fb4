//! Sections of a saved drive: tag, length, payload, checksum; little-endian.
//!
//! A reader asks for the section and the number of elements it expects, so a
//! damaged or hostile file can neither be misread nor make it allocate more than
//! the device itself needs.

use std::io::{Read, Write};

/// Writing or reading a saved drive failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The file could not be read or written to the end.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Contents could not be read or written.
    #[error(transparent)]
    Contents(#[from] crate::media::StoreError),
    /// Not the section that comes next.
    #[error(
        "expected section {expected}, found {found}: the file is not a saved drive of this version or is damaged"
    )]
    Tag {
        /// Section asked for.
        expected: String,
        /// Section found.
        found: String,
    },
    /// The section has another size than the device needs.
    #[error("section {tag} holds {found} bytes, expected {expected} (or fewer, where it varies)")]
    Length {
        /// Section.
        tag: String,
        /// Bytes needed.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// The section does not match its checksum.
    #[error("section {tag} does not match its checksum: the file is damaged")]
    Checksum {
        /// Section.
        tag: String,
    },
    /// The sections do not fit each other.
    #[error("the saved drive contradicts itself: {what}")]
    Inconsistent {
        /// What does not hold.
        what: String,
    },
}

/// A number with a fixed width in the file.
pub(crate) trait Word: Copy + Default {
    const BYTES: usize;
    fn put(self, to: &mut [u8]);
    fn get(from: &[u8]) -> Self;
}

macro_rules! word {
    ($($t:ty),*) => {$(
        impl Word for $t {
            const BYTES: usize = size_of::<$t>();
            fn put(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }
            fn get(from: &[u8]) -> Self {
                Self::from_le_bytes(from.try_into().expect("chunks have the width of a word"))
            }
        }
    )*};
}
word!(u8, u16, u32, u64);

const CHUNK_WORDS: usize = 8192;

/// Writes sections.
pub struct Writer<'a>(&'a mut dyn Write);

impl<'a> Writer<'a> {
    /// A writer of sections to `to`.
    pub fn new(to: &'a mut dyn Write) -> Self {
        Self(to)
    }

    /// Writes bytes as one section.
    pub fn bytes(&mut self, tag: &[u8; 4], bytes: &[u8]) -> Result<(), CodecError> {
        self.words(tag, bytes)
    }

    /// Writes numbers as one section.
    pub fn u32s(&mut self, tag: &[u8; 4], words: &[u32]) -> Result<(), CodecError> {
        self.words(tag, words)
    }

    /// Writes numbers as one section.
    pub fn u64s(&mut self, tag: &[u8; 4], words: &[u64]) -> Result<(), CodecError> {
        self.words(tag, words)
    }

    pub(crate) fn words<T: Word>(&mut self, tag: &[u8; 4], words: &[T]) -> Result<(), CodecError> {
        self.0.write_all(tag)?;
        self.0.write_all(&((words.len() * T::BYTES) as u64).to_le_bytes())?;
        let mut buffer = vec![0u8; CHUNK_WORDS * T::BYTES];
        let mut crc = crc32c::crc32c(tag);
        for chunk in words.chunks(CHUNK_WORDS) {
            let bytes = &mut buffer[..chunk.len() * T::BYTES];
            for (w, to) in chunk.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
                w.put(to);
            }
            crc = crc32c::crc32c_append(crc, bytes);
            self.0.write_all(bytes)?;
        }
        Ok(self.0.write_all(&crc.to_le_bytes())?)
    }
}

/// Reads sections.
pub struct Reader<'a>(&'a mut dyn Read);

impl<'a> Reader<'a> {
    /// A reader of sections from `from`.
    pub fn new(from: &'a mut dyn Read) -> Self {
        Self(from)
    }

    /// Reads a section of at most `max` bytes.
    pub fn bytes(&mut self, tag: &[u8; 4], max: u64) -> Result<Vec<u8>, CodecError> {
        self.section(tag, max, false)
    }

    /// Reads a section of exactly `n` numbers.
    pub fn u32s(&mut self, tag: &[u8; 4], n: usize) -> Result<Vec<u32>, CodecError> {
        self.words(tag, n)
    }

    /// Reads a section of exactly `n` numbers.
    pub fn u64s(&mut self, tag: &[u8; 4], n: usize) -> Result<Vec<u64>, CodecError> {
        self.words(tag, n)
    }

    pub(crate) fn words<T: Word>(&mut self, tag: &[u8; 4], n: usize) -> Result<Vec<T>, CodecError> {
        self.section(tag, (n * T::BYTES) as u64, true)
    }

    /// A section of any length up to `limit` bytes, or of exactly that length.
    pub(crate) fn section<T: Word>(
        &mut self,
        tag: &[u8; 4],
        limit: u64,
        exact: bool,
    ) -> Result<Vec<T>, CodecError> {
        let name = |t: &[u8]| String::from_utf8_lossy(t).into_owned();
        let mut head = [0u8; 12];
        self.0.read_exact(&mut head)?;
        if head[..4] != *tag {
            return Err(CodecError::Tag { expected: name(tag), found: name(&head[..4]) });
        }
        let found = u64::get(&head[4..]);
        if found > limit || (exact && found != limit) || found % T::BYTES as u64 != 0 {
            return Err(CodecError::Length { tag: name(tag), expected: limit, found });
        }
        let mut words = vec![];
        let mut left = found as usize / T::BYTES;
        let mut buffer = vec![0u8; CHUNK_WORDS * T::BYTES];
        let mut crc = crc32c::crc32c(tag);
        while left > 0 {
            let n = left.min(CHUNK_WORDS);
            let bytes = &mut buffer[..n * T::BYTES];
            self.0.read_exact(bytes)?;
            crc = crc32c::crc32c_append(crc, bytes);
            words.extend(bytes.chunks_exact(T::BYTES).map(T::get));
            left -= n;
        }
        let mut stored = [0u8; 4];
        self.0.read_exact(&mut stored)?;
        if u32::get(&stored) != crc {
            return Err(CodecError::Checksum { tag: name(tag) });
        }
        Ok(words)
    }
}
