//! Values of fio keys: sizes with suffixes, percentages, switches, environment
//! variables. Each function returns what it expected in words, so that the caller can
//! name the file, the line and the key around it.

use super::Amount;
use crate::Distribution;
use crate::names::excerpt;

/// What a value should have been.
pub(crate) type Expected = String;

/// Longest value after expanding variables \[bytes\], assumed: far above any real one.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// An integer with an optional suffix k, m, g, t or p (powers of 1024) and an optional b.
pub(crate) fn integer(text: &str) -> Result<u64, Expected> {
    let expected = || "a whole number with an optional suffix k, m, g, t or p".to_owned();
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(digits_end);
    if digits.is_empty() {
        return Err(expected());
    }
    let suffix = suffix.to_ascii_lowercase();
    if suffix.chars().nth(1) == Some('i') {
        return Err(
            "a suffix k, m, g, t or p without `i` (fio's default kb_base=1024 reads KiB as \
                    1000 bytes and k as 1024)"
                .to_owned(),
        );
    }
    let power = match suffix.strip_suffix('b').unwrap_or(&suffix) {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(expected()),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << (10 * power)))
        .ok_or_else(|| "a number below 2^64".to_owned())
}

/// An integer within bounds.
pub(crate) fn bounded(text: &str, min: u64, max: u64) -> Result<u64, Expected> {
    match integer(text) {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        Ok(_) => Err(format!("a number from {min} to {max}")),
        Err(expected) => Err(expected),
    }
}

/// Bytes that are whole sectors, or a percentage.
pub(crate) fn amount(text: &str) -> Result<Amount, Expected> {
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.trim().parse::<u32>() {
            Ok(percent @ 0..=100) => Ok(Amount::Percent(percent)),
            _ => Err("a whole percentage from 0% to 100%".to_owned()),
        };
    }
    match integer(text)? {
        bytes if bytes % 512 == 0 => Ok(Amount::Bytes(bytes)),
        _ => Err("a multiple of 512 bytes".to_owned()),
    }
}

/// `random` or `zipf:theta`.
pub(crate) fn distribution(text: &str) -> Result<Distribution, Expected> {
    if text == "random" {
        return Ok(Distribution::Uniform);
    }
    let theta = text.strip_prefix("zipf:").and_then(|theta| theta.parse::<f64>().ok());
    match theta {
        Some(theta) if theta > 0.0 && theta <= 20.0 => Ok(Distribution::Zipf { theta }),
        _ => Err("`random` or `zipf:theta` with theta above 0 and at most 20".to_owned()),
    }
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
pub(crate) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Expected> {
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

    #[test]
    fn suffixes_are_powers_of_1024() {
        for (text, value) in [
            ("0", 0),
            ("512", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("1m", 1 << 20),
            ("32G", 32 << 30),
            ("2t", 2 << 40),
            ("1p", 1 << 50),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
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
            "0x10",
            "4 k",
            "4\u{3a2}",
            "4kéi",
        ] {
            assert!(integer(text).is_err(), "{text}");
        }
        assert!(integer("4KiB").unwrap_err().contains("kb_base"));
    }

    #[test]
    fn amounts_and_switches_and_distributions() {
        assert_eq!(amount("100%"), Ok(Amount::Percent(100)));
        assert_eq!(amount("1k"), Ok(Amount::Bytes(1024)));
        assert!(amount("101%").is_err() && amount("-1%").is_err() && amount("513").is_err());
        assert_eq!((switch("1"), switch("0")), (Ok(true), Ok(false)));
        assert!(switch("yes").is_err());
        assert_eq!(distribution("zipf:1.2"), Ok(Distribution::Zipf { theta: 1.2 }));
        for text in ["zipf", "zipf:", "zipf:0", "zipf:nan", "zipf:inf", "pareto:0.2", "zipf:1:2"] {
            assert!(distribution(text).is_err(), "{text}");
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
