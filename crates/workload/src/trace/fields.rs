//! Numbers in trace columns: strict, exact, without allocation on the good path.
//!
//! Digits only: no sign, no exponent, no hex prefix unless the column is hex. A
//! number that does not fit is an error and never wraps. Floating point is not used,
//! because a Unix time in nanoseconds has more digits than a double.

use flashwise_hint::{Lba, SECTOR_BYTES};

use super::TimeUnit;
use crate::{MAX_SECTORS, OpKind, Request, names};

/// What is wrong with a line; the reader adds the file and the line number.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// What stands there.
    pub(crate) found: String,
    /// What should.
    pub(crate) expected: String,
    /// What to do.
    pub(crate) advice: &'static str,
}

/// Default advice for a bad row.
const CORRECT_IT: &str = "correct or remove the line, or allow some with --skip-bad";

impl Flaw {
    pub(crate) fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { found: found.into(), expected: expected.into(), advice: CORRECT_IT }
    }

    /// A field that is not what its column holds.
    pub(crate) fn field(column: &str, expected: &str, found: &[u8]) -> Self {
        Self::new(format!("{column} as {expected}"), format!("«{}»", names::excerpt(found)))
    }

    /// Whether the flaw is about text, which binary bytes are not.
    pub(crate) fn is_of_text(&self) -> bool {
        self.found.contains('«')
    }

    /// Replaces the advice.
    pub(crate) fn advise(mut self, advice: &'static str) -> Self {
        self.advice = advice;
        self
    }
}

/// The byte that ends a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// One of these bytes: empty fields count.
    Byte(u8),
    /// Any run of blanks and tabs: there are no empty fields.
    Blanks,
}

/// The separator of comma-separated columns.
pub(crate) const COMMA: Separator = Separator::Byte(b',');

/// The first `N` fields of a line, trimmed, and how many there are in all.
pub(crate) fn split<const N: usize>(line: &[u8], separator: Separator) -> ([&[u8]; N], usize) {
    let mut out: [&[u8]; N] = [&[]; N];
    let mut n = 0;
    let mut keep = |field| {
        if let Some(slot) = out.get_mut(n) {
            *slot = field;
        }
        n += 1;
    };
    match separator {
        Separator::Byte(end) => {
            line.split(|&byte| byte == end).for_each(|field| keep(field.trim_ascii()));
        }
        Separator::Blanks => {
            let fields = line.split(|&byte| byte == b' ' || byte == b'\t');
            fields.filter(|field| !field.is_empty()).for_each(keep);
        }
    }
    (out, n)
}

/// Splits exactly `N` fields.
pub(crate) fn columns<'a, const N: usize>(
    line: &'a [u8],
    separator: Separator,
    layout: &str,
) -> Result<[&'a [u8]; N], Flaw> {
    let (out, n) = split::<N>(line, separator);
    if n == N { Ok(out) } else { Err(wrong_count(&N.to_string(), n, line, layout)) }
}

/// A line with another number of columns than its format has.
pub(crate) fn wrong_count(expected: &str, found: usize, line: &[u8], layout: &str) -> Flaw {
    let found = format!("{found} («{}»)", names::excerpt(line));
    Flaw::new(format!("{expected} columns ({layout})"), found)
}

/// A field that says read or write in one of the given ways, upper or lower case.
pub(crate) fn read_or_write(
    column: &'static str,
    field: &[u8],
    [read, write]: [&'static str; 2],
) -> Result<OpKind, Flaw> {
    if field.eq_ignore_ascii_case(read.as_bytes()) {
        Ok(OpKind::Read)
    } else if field.eq_ignore_ascii_case(write.as_bytes()) {
        Ok(OpKind::Write)
    } else {
        Err(Flaw::field(column, &format!("{read} or {write}"), field))
    }
}

/// An unsigned decimal integer.
pub(crate) fn integer(column: &str, field: &[u8]) -> Result<u64, Flaw> {
    let mut value = 0_u64;
    for &byte in field {
        if !byte.is_ascii_digit() {
            return Err(Flaw::field(column, "a whole number, not negative", field));
        }
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(byte - b'0')))
            .ok_or_else(|| Flaw::field(column, "a number below 2^64", field))?;
    }
    if field.is_empty() {
        return Err(Flaw::field(column, "a whole number, not negative", field));
    }
    Ok(value)
}

/// A time in `unit`, integer or decimal, as nanoseconds. Digits below 1 ns are
/// checked and dropped.
pub(crate) fn time_ns(field: &[u8], unit: TimeUnit) -> Result<u64, Flaw> {
    let expected = "a number, not negative, with decimals at most";
    let (whole, decimals) = match field.iter().position(|&byte| byte == b'.') {
        Some(dot) => (&field[..dot], &field[dot + 1..]),
        None => (field, &b"0"[..]),
    };
    let all_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if !all_digits(whole) || !all_digits(decimals) {
        return Err(Flaw::field("the time", expected, field));
    }
    let too_late = || {
        Flaw::new("a time below 2^64 ns (584 years)", format!("«{}» {unit}", names::excerpt(field)))
            .advise("name the right time unit or subtract a start time")
    };
    let whole = integer("the time", whole).map_err(|_| too_late())?;
    let mut below = 0_u64;
    for digit in 0..unit.digits() as usize {
        below = below * 10 + decimals.get(digit).map_or(0, |byte| u64::from(byte - b'0'));
    }
    whole
        .checked_mul(10_u64.pow(unit.digits()))
        .and_then(|ns| ns.checked_add(below))
        .ok_or_else(too_late)
}

/// A request from checked numbers: the length fits and the end is addressable.
pub(crate) fn request(at_ns: u64, op: OpKind, lba: u64, sectors: u64) -> Result<Request, Flaw> {
    if sectors == 0 {
        return Err(Flaw::new("a length of at least 1 sector", "0"));
    }
    let Ok(short) = u32::try_from(sectors) else {
        return Err(Flaw::new("a length below 2^32 sectors (2 TiB)", format!("{sectors} sectors")));
    };
    match lba.checked_add(sectors) {
        Some(end) if end <= MAX_SECTORS => {}
        _ => {
            let expected = format!("an end at or below sector {MAX_SECTORS} (2^64 bytes)");
            let found = format!("first sector {lba} and length {sectors}");
            return Err(Flaw::new(expected, found));
        }
    }
    Ok(Request { at_ns, ..Request::new(op, Lba(lba), short) })
}

/// A request from an offset and a length in bytes, rounded outward to whole sectors;
/// the second value says whether that changed anything.
pub(crate) fn request_of_bytes(
    at_ns: u64,
    op: OpKind,
    offset: u64,
    bytes: u64,
) -> Result<(Request, bool), Flaw> {
    if bytes == 0 {
        return Err(Flaw::new("a length of at least 1 byte", "0"));
    }
    let Some(end) = offset.checked_add(bytes) else {
        let found = format!("offset {offset} and length {bytes}");
        return Err(Flaw::new("an end at or below 2^64 bytes", found));
    };
    let (lba, lba_end) = (offset / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES));
    let rounded = !offset.is_multiple_of(SECTOR_BYTES) || !end.is_multiple_of(SECTOR_BYTES);
    Ok((request(at_ns, op, lba, lba_end - lba)?, rounded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_scales_exactly() {
        for (unit, text, ns) in [
            (TimeUnit::Seconds, "5633898", 5_633_898_000_000_000),
            (TimeUnit::Seconds, "1.5", 1_500_000_000),
            (TimeUnit::Seconds, "0.0000000019", 1),
            (TimeUnit::Milliseconds, "7", 7_000_000),
            (TimeUnit::Milliseconds, "0.25", 250_000),
            (TimeUnit::Microseconds, "7", 7_000),
            (TimeUnit::Microseconds, "1.001", 1_001),
            (TimeUnit::Nanoseconds, "938513000", 938_513_000),
            (TimeUnit::Nanoseconds, "9.99", 9),
            (TimeUnit::Nanoseconds, "18446744073709551615", u64::MAX),
        ] {
            assert_eq!(time_ns(text.as_bytes(), unit).unwrap(), ns, "{text} {unit}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-1", "+1", "1e9", "0x10", " 1", "1 ", "1_0", "\u{661}", "1\0"] {
            assert!(integer("x", text.as_bytes()).is_err(), "{text:?}");
            assert!(time_ns(text.as_bytes(), TimeUnit::Seconds).is_err(), "{text:?}");
        }
        for text in [".", "1.", ".5", "1.2.3", "1.-2"] {
            assert!(time_ns(text.as_bytes(), TimeUnit::Seconds).is_err(), "{text:?}");
        }
        assert!(integer("x", b"18446744073709551616").is_err());
        assert!(time_ns(b"18446744074", TimeUnit::Seconds).is_err());
    }

    #[test]
    fn requests_end_where_bytes_still_count() {
        assert!(request(0, OpKind::Read, MAX_SECTORS - 8, 8).is_ok());
        assert!(request(0, OpKind::Read, MAX_SECTORS - 7, 8).is_err());
        assert!(request(0, OpKind::Read, u64::MAX, 8).is_err());
        assert!(request(0, OpKind::Read, 0, 0).is_err());
        assert!(request(0, OpKind::Read, 0, 1 << 32).is_err());
    }

    #[test]
    fn byte_ranges_are_rounded_outward() {
        for (offset, bytes, lba, sectors, rounded) in [
            (512, 512, 1, 1, false),
            (0, 1, 0, 1, true),
            (511, 2, 0, 2, true),
            (1024, 513, 2, 2, true),
        ] {
            let (request, changed) = request_of_bytes(0, OpKind::Read, offset, bytes).unwrap();
            assert_eq!((request.lba, request.sectors, changed), (Lba(lba), sectors, rounded));
        }
        assert!(request_of_bytes(0, OpKind::Read, u64::MAX, 1).is_err());
        assert!(request_of_bytes(0, OpKind::Read, 0, 0).is_err());
    }

    #[test]
    fn lines_split_by_bytes_or_by_blanks() {
        let (fields, n) = split::<3>(b"a, ,b ,c", COMMA);
        assert_eq!((fields, n), ([&b"a"[..], b"", b"b"], 4));
        let (fields, n) = split::<3>(b"  a \tb ", Separator::Blanks);
        assert_eq!((fields, n), ([&b"a"[..], b"b", b""], 2));
    }
}
