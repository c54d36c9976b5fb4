//! What can be set about applications: keys, their bounds, and how a value is written.
//!
//! All values are whole numbers in base units: bytes, nanoseconds, counts. Bounds keep
//! memory and arithmetic in check; each message names them.

use std::fmt;
use std::ops::{Index, IndexMut};

/// No limit, no bias: above every value of a key.
pub(super) const NONE: u64 = u64::MAX;

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;

/// Most files of an application, and most transactions of PostMark, which may make one
/// each. Each file takes about 200 bytes of memory, more in narrow trees.
pub(super) const MAX_FILES: u64 = 10_000_000;

/// Something that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Files,
    MeanSize,
    Threads,
    Runtime,
    Append,
    IoSize,
    DirWidth,
    Prealloc,
    Ops,
    Rate,
    Passive,
    ReadSize,
    Interval,
    Writers,
    LogSize,
    LogIo,
    UserMode,
    SizeLow,
    SizeHigh,
    Transactions,
    Subdirs,
    ReadBlock,
    WriteBlock,
    Buffer,
    ReadBias,
    CreateBias,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole number.
    Count,
    /// A whole number, or `none`.
    CountOrNone,
    /// Bytes, with a suffix k, m, g or t (powers of 1024).
    Bytes,
    /// Seconds with up to three decimals, with or without s; or whole milliseconds, ms.
    Time,
    /// A whole number, or -1 for none.
    Bias,
}

/// Name, form and bounds of a key.
pub(super) struct Rules {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Key {
    /// Number of keys.
    const N: usize = Self::CreateBias as usize + 1;

    pub(super) const fn rules(self) -> Rules {
        use Form::{Bias, Bytes, Count, CountOrNone, Time};
        let (name, form, min, max) = match self {
            Self::Files => ("files", Count, 1, MAX_FILES),
            Self::MeanSize => ("mean_size", Bytes, 1, KIB * GIB),
            Self::Threads => ("threads", Count, 1, 10_000),
            Self::Runtime => ("runtime", Time, SECOND / 1000, 1_000_000 * SECOND),
            // Lengths go up to 2 less, see `Flow::append`: 3 is the first that appends.
            Self::Append => ("append", Bytes, 3, GIB),
            Self::IoSize => ("io_size", Bytes, 1, GIB),
            Self::DirWidth => ("dir_width", Count, 2, 1_000_000_000),
            Self::Prealloc => ("prealloc", Count, 0, 100),
            Self::Ops => ("ops", CountOrNone, 1, NONE - 1),
            Self::Rate => ("rate", Count, 0, 1_000_000_000),
            Self::Passive => ("passive", Count, 1, MAX_FILES),
            Self::ReadSize => ("read_size", Bytes, 1, GIB),
            Self::Interval => ("interval", Time, 0, 1_000_000 * SECOND),
            Self::Writers => ("writers", Count, 1, 1000),
            Self::LogSize => ("log_size", Bytes, 1, KIB * GIB),
            Self::LogIo => ("log_io", Bytes, 1, GIB),
            Self::UserMode => ("usermode", Count, 0, 1_000_000_000),
            Self::SizeLow => ("size_low", Bytes, 1, GIB),
            Self::SizeHigh => ("size_high", Bytes, 1, GIB),
            Self::Transactions => ("transactions", Count, 0, MAX_FILES),
            Self::Subdirs => ("subdirs", Count, 0, 1_000_000),
            Self::ReadBlock => ("read_block", Bytes, 1, GIB),
            Self::WriteBlock => ("write_block", Bytes, 1, GIB),
            Self::Buffer => ("buffer", Bytes, 0, GIB),
            Self::ReadBias => ("read_bias", Bias, 0, 10),
            Self::CreateBias => ("create_bias", Bias, 0, 10),
        };
        Rules { name, form, min, max }
    }

    /// Reads a value, or says what it should have been.
    pub(super) fn parse(self, text: &str) -> Result<u64, String> {
        let Rules { form, min, max, .. } = self.rules();
        let value = match form {
            Form::Count => text.parse().ok(),
            Form::CountOrNone if text == "none" => return Ok(NONE),
            Form::CountOrNone => text.parse().ok(),
            Form::Bytes => bytes(text),
            Form::Time => time_ns(text),
            Form::Bias if text == "-1" => return Ok(NONE),
            Form::Bias => text.parse().ok(),
        };
        // Rust reads "+5" as a number; one form for one value is enough.
        match value {
            Some(value) if (min..=max).contains(&value) && !text.starts_with('+') => Ok(value),
            _ => Err(self.expected()),
        }
    }

    fn expected(self) -> String {
        let Rules { form, min, max, .. } = self.rules();
        let (min, max) = (self.written(min), self.written(max));
        match form {
            Form::Count => format!("a whole number from {min} to {max}"),
            Form::CountOrNone => format!("a whole number of at least {min}, or none"),
            Form::Bytes => {
                format!("bytes with an optional suffix k, m, g or t, from {min} to {max}")
            }
            Form::Time => format!("seconds such as 60, 2.5s or 100ms, from {min} to {max}"),
            Form::Bias => format!("a whole number from {min} to {max}, or -1 for none"),
        }
    }

    /// A value of this key, in the shortest form that reads as the same.
    pub(super) fn written(self, value: u64) -> Written {
        Written(self.rules().form, value)
    }
}

/// A value as text.
pub(super) struct Written(Form, u64);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.1;
        match self.0 {
            Form::Count => write!(f, "{value}"),
            Form::CountOrNone if value == NONE => f.write_str("none"),
            Form::CountOrNone => write!(f, "{value}"),
            Form::Bias if value == NONE => f.write_str("-1"),
            Form::Bias => write!(f, "{value}"),
            Form::Bytes => {
                let power = (value.trailing_zeros() / 10).min(4);
                let suffix = ["", "k", "m", "g", "t"][if value == 0 { 0 } else { power as usize }];
                write!(f, "{}{suffix}", if value == 0 { 0 } else { value >> (10 * power) })
            }
            Form::Time if value.is_multiple_of(SECOND) => write!(f, "{}", value / SECOND),
            Form::Time => write!(f, "{}ms", value / 1_000_000),
        }
    }
}

fn bytes(text: &str) -> Option<u64> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(digits_end);
    let power = match suffix {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << (10 * power))
}

fn time_ns(text: &str) -> Option<u64> {
    const MS: u64 = 1_000_000;
    if let Some(ms) = text.strip_suffix("ms") {
        return ms.parse::<u64>().ok()?.checked_mul(MS);
    }
    let text = text.strip_suffix('s').unwrap_or(text);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 3 {
        return None;
    }
    let ms = decimals.parse::<u64>().ok()? * 10_u64.pow(3 - decimals.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(SECOND)?.checked_add(ms * MS)
}

/// A value for each key of an application; 0 for the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Values([u64; Key::N]);

impl Index<Key> for Values {
    type Output = u64;

    fn index(&self, key: Key) -> &u64 {
        &self.0[key as usize]
    }
}

impl IndexMut<Key> for Values {
    fn index_mut(&mut self, key: Key) -> &mut u64 {
        &mut self.0[key as usize]
    }
}
