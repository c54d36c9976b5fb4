//! Sizes as people and vendors write them: 960G is 960 x 10^9 bytes, 960GiB is
//! binary.

/// A size that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "«{text}» is not a size: {why}; write 960G or 1.92T (decimal, as vendors do), 512GiB or 1TiB \
     (binary), or bytes"
)]
pub struct SizeError {
    text: String,
    why: &'static str,
}

/// Largest size \[bytes\]: beyond any drive, and exact in a 64-bit float.
const MAX: f64 = 4e15;

/// Reads a size in bytes: a number with K, M, G, T or P (decimal, a B may follow) or
/// KiB, MiB, GiB, TiB or PiB (binary).
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let refused = |why| SizeError { text: text.to_owned(), why };
    let trimmed = text.trim();
    let digits_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (number, suffix) = trimmed.split_at(digits_end.unwrap_or(trimmed.len()));
    let number: f64 = number.replace('_', "").parse().map_err(|_| refused("no number"))?;
    let suffix = suffix.trim().to_ascii_lowercase();
    let (base, letter) = match suffix.strip_suffix("ib") {
        Some(letter) => (1024f64, letter),
        None => (1000f64, suffix.strip_suffix('b').unwrap_or(&suffix)),
    };
    let power = match letter {
        "" if base == 1000.0 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(refused("unknown suffix")),
    };
    let bytes = (number * base.powi(power)).round();
    match () {
        () if bytes < 1.0 => Err(refused("it must be more than 0")),
        () if bytes > MAX => Err(refused("the largest is 4P")),
        () => Ok(bytes as u64),
    }
}

/// Bytes in a binary unit that reads well: `894.07 GiB`.
pub(crate) fn binary(bytes: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", short(value), units[unit])
}

/// Bytes as vendors count them: `960 GB`.
pub(crate) fn decimal(bytes: f64) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.9995 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", short(value), units[unit])
}

/// A number with at most two digits after the point, none that say nothing.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_vendors_write_them() {
        let cases = [
            ("960G", 960_000_000_000),
            ("1.92T", 1_920_000_000_000),
            ("1.92TB", 1_920_000_000_000),
            ("3.84 tb", 3_840_000_000_000),
            ("512GiB", 512 << 30),
            ("1tib", 1 << 40),
            ("0.5MiB", 512 << 10),
            ("4096", 4096),
            ("1_000_000", 1_000_000),
            ("7B", 7),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "1.2.3G", "-5G", "0", "0G", "960X", "ib", "5i", "9999P", "1e3G"] {
            let message = parse_size(text).expect_err(text).to_string();
            assert!(message.contains("960G"), "{message}");
        }
    }

    #[test]
    fn sizes_are_written_in_a_unit_that_reads_well() {
        assert_eq!(decimal(960e9), "960 GB");
        assert_eq!(decimal(1.92e12), "1.92 TB");
        assert_eq!(decimal(512.0), "512 bytes");
        assert_eq!(binary(3.5 * 1024.0), "3.5 KiB");
        assert_eq!(binary(1.5 * f64::from(1 << 30)), "1.5 GiB");
    }
}
