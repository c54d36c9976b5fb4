//! Values of fio keys: sizes with suffixes, times, percentages, switches, lists by
//! direction, splits, distributions. Each function returns what it expected in words, so
//! that the caller can name the file, the line and the key around it.
//!
//! Source: fio's HOWTO ("Parameter types"), `parse.c` and `options.c`.

use super::{Amount, Env};
use crate::names::excerpt;

/// What a value should have been.
pub(crate) type Expected = String;

/// Longest value after expanding variables \[bytes\], assumed: far above any real one.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// Longest time \[ns\]: a hundred years.
const MAX_TIME_NS: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// Most parts of a split. Source: fio's `BSSPLIT_MAX` and `ZONESPLIT_MAX`, smaller one.
const MAX_PARTS: usize = 64;

/// What `k` stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KbBase {
    /// 1024, and `ki` is refused: fio reads it as 1000 then.
    #[default]
    Binary,
    /// 1000, and `ki` is 1024.
    Decimal,
}

/// An integer with an optional suffix k, m, g, t or p and an optional b.
pub(crate) fn integer(text: &str, base: KbBase) -> Result<u64, Expected> {
    let expected = || "a whole number with an optional suffix k, m, g, t or p".to_owned();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let digits = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        return match u64::from_str_radix(hex, 16) {
            Ok(value) => Ok(value),
            Err(_) if digits => Err("a number below 2^64".to_owned()),
            Err(_) => Err(expected()),
        };
    }
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(expected());
    }
    let suffix = suffix.to_ascii_lowercase();
    let is_ibi = suffix.chars().nth(1) == Some('i');
    let kilo: u64 = match (base, is_ibi) {
        (KbBase::Binary, true) => {
            return Err("a suffix k, m, g, t or p without `i` (fio's default kb_base=1024 reads \
                        KiB as 1000 bytes and k as 1024)"
                .to_owned());
        }
        (KbBase::Binary, false) | (KbBase::Decimal, true) => 1024,
        (KbBase::Decimal, false) => 1000,
    };
    let suffix = suffix.strip_suffix('b').unwrap_or(&suffix);
    let power = match if is_ibi { suffix.get(..1).unwrap_or("?") } else { suffix } {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(expected()),
    };
    if is_ibi && suffix.len() != 2 {
        return Err(expected());
    }
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(kilo.pow(power)))
        .ok_or_else(|| "a number below 2^64".to_owned())
}

/// A whole number without suffix rules of sizes, within bounds.
pub(crate) fn bounded(text: &str, min: u64, max: u64) -> Result<u64, Expected> {
    match integer(text, KbBase::Binary) {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        Ok(_) => Err(format!("a number from {min} to {max}")),
        Err(expected) => Err(expected),
    }
}

/// A length of requests \[sectors\].
pub(crate) fn block(text: &str, base: KbBase) -> Result<u32, Expected> {
    let bytes = integer(text, base)?;
    match u32::try_from(bytes / 512) {
        Ok(sectors) if bytes % 512 == 0 && sectors > 0 => Ok(sectors),
        _ => Err("a block size, a multiple of 512 bytes below 2 TiB".to_owned()),
    }
}

/// Bytes that are whole sectors, or a percentage.
pub(crate) fn amount(text: &str, base: KbBase) -> Result<Amount, Expected> {
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.trim().parse::<u32>() {
            Ok(percent @ 0..=100) => Ok(Amount::Percent(percent)),
            _ => Err("a whole percentage from 0% to 100%".to_owned()),
        };
    }
    match integer(text, base)? {
        bytes if bytes % 512 == 0 => Ok(Amount::Bytes(bytes)),
        _ => Err("a multiple of 512 bytes".to_owned()),
    }
}

/// A time with an optional unit \[ns\]; `default_ns` is the unit of a bare number.
pub(crate) fn time(text: &str, default_ns: u64) -> Result<u64, Expected> {
    let expected = || "a whole number with an optional unit d, h, m, s, ms or us".to_owned();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let unit_ns = match unit.trim().to_ascii_lowercase().as_str() {
        "" => default_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(expected()),
    };
    if digits.is_empty() {
        return Err(expected());
    }
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit_ns))
        .filter(|ns| *ns <= MAX_TIME_NS)
        .ok_or_else(|| "a time of at most a hundred years".to_owned())
}

/// A time or a range of times \[ns\].
pub(crate) fn times(text: &str, default_ns: u64) -> Result<(u64, u64), Expected> {
    match text.split_once(['-', ':']) {
        None => time(text, default_ns).map(|ns| (ns, ns)),
        Some((from, to)) => {
            let (from, to) = (time(from, default_ns)?, time(to, default_ns)?);
            Ok((from.min(to), from.max(to)))
        }
    }
}

/// One value for all directions, or one each for reads, writes and trims; of two, the
/// second is for writes and trims. An empty one leaves the default.
pub(crate) fn by_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, Expected>,
) -> Result<[Option<T>; 3], Expected> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let one = |part: &str| if part.is_empty() { Ok(None) } else { parse(part).map(Some) };
    match parts[..] {
        [all] => {
            parse(all).map(|value| [const { None }; 3].map(|_: Option<T>| Some(value.clone())))
        }
        [read, others] => {
            let others = one(others)?;
            Ok([one(read)?, others.clone(), others])
        }
        [read, write, trim] => Ok([one(read)?, one(write)?, one(trim)?]),
        _ => Err("one to three values (reads, writes, trims) with commas between".to_owned()),
    }
}

/// A range of block sizes \[sectors\].
pub(crate) fn block_range(text: &str, base: KbBase) -> Result<(u32, u32), Expected> {
    let Some((from, to)) = text.split_once(['-', ':']) else {
        return Err("a range of block sizes such as 4k-64k".to_owned());
    };
    let (from, to) = (block(from.trim(), base)?, block(to.trim(), base)?);
    Ok((from.min(to), from.max(to)))
}

/// `value/percent:value/percent:...`; values without a percentage share what is left.
pub(crate) fn split<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, Expected>,
) -> Result<Vec<(T, u32)>, Expected> {
    let mut parts = vec![];
    for part in text.split(':').map(str::trim).filter(|part| !part.is_empty()) {
        let (value, percent) = match part.split_once('/') {
            None => (part, None),
            Some((value, "")) => (value, None),
            Some((value, percent)) => match percent.trim().parse::<u32>() {
                Ok(percent @ 0..=100) => (value, Some(percent)),
                _ => return Err("whole percentages from 0 to 100 behind each `/`".to_owned()),
            },
        };
        parts.push((parse(value.trim())?, percent));
        if parts.len() > MAX_PARTS {
            return Err(format!("at most {MAX_PARTS} parts"));
        }
    }
    let given: u32 = parts.iter().filter_map(|part| part.1).sum();
    let n_open = parts.iter().filter(|part| part.1.is_none()).count() as u32;
    if parts.is_empty() || given > 100 || (n_open == 0 && given < 100) {
        return Err("parts such as 4k/60:64k/40 whose percentages add up to 100".to_owned());
    }
    // What does not divide goes to the first ones, so that the sum is 100.
    let mut left = (100 - given, n_open);
    let percent = |given: Option<u32>| {
        given.unwrap_or_else(|| {
            let share = left.0.div_ceil(left.1.max(1));
            left = (left.0 - share, left.1 - 1);
            share
        })
    };
    let mut percent = percent;
    Ok(parts.into_iter().map(|(value, given)| (value, percent(given))).collect())
}

/// How random addresses are spread, before zones are laid on a region.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RandomDistribution {
    Random,
    Zipf {
        theta: f64,
        center: Option<f64>,
    },
    Pareto {
        h: f64,
        center: Option<f64>,
    },
    Normal {
        deviation_percent: f64,
        center: Option<f64>,
    },
    /// Access percentage and size in percent, or in bytes, by direction.
    Zoned {
        zones: [Vec<(u32, u64)>; 3],
        absolute: bool,
    },
}

/// A value of `random_distribution`.
pub(crate) fn distribution(text: &str, base: KbBase) -> Result<RandomDistribution, Expected> {
    let (kind, rest) = text.split_once([':', '=']).unwrap_or((text, ""));
    match kind {
        "random" if rest.is_empty() => Ok(RandomDistribution::Random),
        "zipf" => {
            let (theta, center) = parameters(rest, 1.1)?;
            if !(theta > 0.0 && theta <= 20.0) || theta == 1.0 {
                let expected = "zipf:theta with theta above 0, at most 20 and not 1, as in fio";
                return Err(expected.to_owned());
            }
            Ok(RandomDistribution::Zipf { theta, center })
        }
        "pareto" => {
            let (h, center) = parameters(rest, 0.2)?;
            if !(h > 0.0 && h < 1.0) {
                return Err("pareto:h with h above 0 and below 1".to_owned());
            }
            Ok(RandomDistribution::Pareto { h, center })
        }
        "normal" => {
            let (deviation_percent, center) = parameters(rest, 0.0)?;
            if !(0.0..100.0).contains(&deviation_percent) {
                return Err("normal:deviation in percent, from 0 to below 100".to_owned());
            }
            Ok(RandomDistribution::Normal { deviation_percent, center })
        }
        "zoned" | "zoned_abs" => zoned(rest, kind == "zoned_abs", base),
        _ => Err("random, zipf:theta, pareto:h, normal:deviation, zoned:access/size:... or \
                  zoned_abs:access/size:..."
            .to_owned()),
    }
}

/// A parameter and a center.
fn parameters(text: &str, default: f64) -> Result<(f64, Option<f64>), Expected> {
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| "numbers behind the name, as in zipf:1.2 or zipf:1.2:0.5".to_owned())
    };
    if text.is_empty() {
        return Ok((default, None));
    }
    let Some((value, center)) = text.split_once(':') else {
        return Ok((number(text)?, None));
    };
    match number(center)? {
        center if (0.0..=1.0).contains(&center) => Ok((number(value)?, Some(center))),
        _ => Err("a center from 0 to 1".to_owned()),
    }
}

fn zoned(text: &str, absolute: bool, base: KbBase) -> Result<RandomDistribution, Expected> {
    let list = |text: &str| -> Result<Vec<(u32, u64)>, Expected> {
        let mut zones = vec![];
        for part in text.split(':').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((access, size)) = part.split_once('/') else {
                return Err(
                    "zones such as 60/10:40/90, access and size with `/` between".to_owned()
                );
            };
            let access = bounded(access.trim(), 0, 100)? as u32;
            let size = integer(size.trim().trim_end_matches('%'), base)?;
            if absolute && (size % 512 != 0 || size == 0) {
                return Err("zones of whole sectors of 512 bytes".to_owned());
            }
            zones.push((access, size));
            if zones.len() > MAX_PARTS {
                return Err(format!("at most {MAX_PARTS} zones"));
            }
        }
        let sum = zones.iter().map(|zone| zone.0).sum::<u32>();
        let sizes = zones.iter().try_fold(0_u64, |sum, zone| sum.checked_add(zone.1));
        match sizes {
            _ if sum != 100 => Err("zones whose accesses add up to 100 percent".to_owned()),
            None => Err("zones below 2^64 bytes".to_owned()),
            Some(sizes) if !absolute && sizes != 100 => {
                Err("zones whose sizes add up to 100 percent".to_owned())
            }
            Some(_) => Ok(zones),
        }
    };
    let [Some(read), Some(write), Some(trim)] = by_direction(text, list)? else {
        return Err("zones for reads, for writes and for trims, or for all at once".to_owned());
    };
    Ok(RandomDistribution::Zoned { zones: [read, write, trim], absolute })
}

/// Numbers and ranges of them with commas between, in ascending order.
pub(crate) fn numbers(text: &str) -> Result<Vec<u16>, Expected> {
    let expected = || "numbers and ranges such as 0,2-5, at most 128 of them".to_owned();
    let number = |text: &str| text.trim().parse::<u16>().map_err(|_| expected());
    let mut all = vec![];
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        // Source: fio's FIO_MAX_DP_IDS.
        if from > to || usize::from(to - from) + all.len() >= 128 {
            return Err(expected());
        }
        all.extend(from..=to);
    }
    all.sort_unstable();
    Ok(all)
}

/// A switch: 1 or 0.
pub(crate) fn switch(text: &str) -> Result<bool, Expected> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("1 or 0".to_owned()),
    }
}

/// Replaces each `${NAME}`.
pub(crate) fn expand(text: &str, env: Env<'_>) -> Result<String, Expected> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let Some(end) = after.find('}') else {
            return Err("`}` after `${`".to_owned());
        };
        let name = &after[..end];
        match env(name) {
            Some(value) => out.push_str(&value),
            None => {
                let name = excerpt(name.as_bytes());
                return Err(format!("the environment variable {name} to be set"));
            }
        }
        if out.len() > MAX_VALUE_BYTES {
            return Err(format!("at most {MAX_VALUE_BYTES} bytes"));
        }
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<u64, Expected> {
        integer(text, KbBase::Binary)
    }

    #[test]
    fn suffixes_are_powers_of_1024_or_of_1000() {
        for (text, value) in [
            ("0", 0),
            ("512", 512),
            ("0x1000", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("1m", 1 << 20),
            ("32G", 32 << 30),
            ("2t", 2 << 40),
            ("1p", 1 << 50),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "k",
            "-1",
            "1.5k",
            "4kk",
            "4x",
            "99999999999p",
            "4,8k",
            "0x",
            "0xg",
            "4 k",
            "4\u{3a2}",
            "4kéi",
            "1ii",
            "0x11111111111111111",
        ] {
            assert!(bytes(text).is_err(), "{text}");
            assert!(integer(text, KbBase::Decimal).is_err(), "{text}");
        }
        assert!(bytes("4KiB").unwrap_err().contains("kb_base"));
        for (text, value) in [("4k", 4000), ("4ki", 4096), ("1MiB", 1 << 20), ("2mb", 2_000_000)] {
            assert_eq!(integer(text, KbBase::Decimal), Ok(value), "{text}");
        }
    }

    #[test]
    fn amounts_times_and_switches() {
        let amount = |text: &str| amount(text, KbBase::Binary);
        assert_eq!(amount("100%"), Ok(Amount::Percent(100)));
        assert_eq!(amount("1k"), Ok(Amount::Bytes(1024)));
        assert!(amount("101%").is_err() && amount("-1%").is_err() && amount("513").is_err());
        assert_eq!((switch("1"), switch("0")), (Ok(true), Ok(false)));
        assert!(switch("yes").is_err());
        for (text, ns) in
            [("2", 2_000_000_000), ("3us", 3000), ("5 ms", 5_000_000), ("1m", 60_000_000_000)]
        {
            assert_eq!(time(text, 1_000_000_000), Ok(ns), "{text}");
        }
        for text in ["", "s", "1w", "-1", "9999999999d"] {
            assert!(time(text, 1).is_err(), "{text}");
        }
        assert_eq!(times("5-2", 1000), Ok((2000, 5000)));
    }

    #[test]
    fn lists_by_direction_and_splits() {
        let three = |text: &str| by_direction(text, bytes);
        assert_eq!(three("4k"), Ok([Some(4096); 3]));
        assert_eq!(three("4k,8k"), Ok([Some(4096), Some(8192), Some(8192)]));
        assert_eq!(three(",8k,"), Ok([None, Some(8192), None]));
        assert!(three("1,2,3,4").is_err() && three("").is_err());
        let split = |text: &str| split(text, bytes);
        assert_eq!(split("4k/10:8k/90"), Ok(vec![(4096, 10), (8192, 90)]));
        assert_eq!(split("4k/50:8k/:16k"), Ok(vec![(4096, 50), (8192, 25), (16384, 25)]));
        for text in ["", "4k/50", "4k/60:8k/60", "4k/x", "4k/101", "x/100"] {
            assert!(split(text).is_err(), "{text}");
        }
        assert_eq!(numbers("3,0-1"), Ok(vec![0, 1, 3]));
        for text in ["", "a", "3-1", "0-70000", "0-200", "1,"] {
            assert!(numbers(text).is_err(), "{text}");
        }
    }

    #[test]
    fn distributions_and_their_parameters() {
        let parse = |text: &str| distribution(text, KbBase::Binary);
        assert_eq!(parse("zipf:1.2"), Ok(RandomDistribution::Zipf { theta: 1.2, center: None }));
        assert_eq!(parse("pareto"), Ok(RandomDistribution::Pareto { h: 0.2, center: None }));
        let center = Some(0.25);
        let normal = RandomDistribution::Normal { deviation_percent: 10.0, center };
        assert_eq!(parse("normal:10:0.25"), Ok(normal));
        let zones = [const { vec![] }; 3].map(|_: Vec<(u32, u64)>| vec![(60, 10), (40, 90)]);
        let zoned = RandomDistribution::Zoned { zones, absolute: false };
        assert_eq!(parse("zoned:60/10:40/90"), Ok(zoned));
        for text in [
            "zipf:0",
            "zipf:1",
            "zipf:nan",
            "zipf:inf",
            "zipf:1:2:3",
            "zipf:1.2:1.5",
            "pareto:1",
            "normal:100",
            "zoned:",
            "zoned:60/10",
            "zoned:60/10:40/80",
            "zoned:10:90",
            "zoned_abs:100/0",
            "uniform",
            "random:1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_expand_once() {
        let env = |name: &str| (name == "A").then(|| "${A}".to_owned());
        assert_eq!(expand("x${A}y", &env), Ok("x${A}y".to_owned()));
        assert!(expand("${B}", &env).unwrap_err().contains('B'));
        assert!(expand("${A", &env).is_err());
    }
}
