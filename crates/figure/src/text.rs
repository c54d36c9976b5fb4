//! Text: escaping, widths that no font decides, numbers on axes.

/// Width of a character by the font size: a safe mean of sans-serif fonts.
const EM: f64 = 0.56;

/// `text` for an element or an attribute. Characters XML has no place for become U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

/// About how wide `text` is at a font size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * EM
}

/// `text` on lines of at most `room`, broken after spaces and hyphens only.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in text.split_inclusive([' ', '-']) {
        let line = lines.last_mut().expect("never empty");
        if !line.is_empty() && width(line, size) + width(part.trim_end(), size) > room {
            lines.push(part.to_owned());
        } else {
            line.push_str(part);
        }
    }
    lines.iter().map(|l| l.trim_end().to_owned()).collect()
}

/// A number on an axis: no more digits than it needs, thousands apart.
pub(crate) fn number(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e12).contains(&value.abs()) {
        return format!("{value:e}");
    }
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let mut out = if whole == "0" && fraction.is_empty() { "" } else { sign }.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_reads_as_markup_is_escaped() {
        assert_eq!(escape("a<b> & \"c\"\n\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot; \u{fffd}");
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (0.25, "0.25"),
            (1024.0, "1024"),
            (16384.0, "16,384"),
            (-1_234_567.5, "-1,234,567.5"),
            (0.1 + 0.2, "0.3"),
            (2f64.powi(60), "1.152921504606847e18"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn lines_break_after_hyphens_and_spaces() {
        assert_eq!(wrap("overwrite-random", 10.0, 60.0), ["overwrite-", "random"]);
        assert_eq!(wrap("a b", 10.0, 60.0), ["a b"]);
        assert_eq!(wrap("", 10.0, 60.0), [""]);
    }
}
