//! Names that users type: the unknown-name error with a did-you-mean, and excerpts of
//! their input that are safe to print. Pure text, used by every parser here, so that
//! all of them answer a slip in the same words.

use crate::WorkloadError;

/// Longest excerpt of bad input in a message \[characters\], assumed: enough to
/// recognise the place, short enough for one terminal line.
const EXCERPT_CHARS: usize = 48;

/// Most names of a list that a message shows, assumed: one or two terminal lines.
const LISTED: usize = 8;

/// The known name nearest to what was typed, if any is near.
pub(crate) fn nearest<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A slip is short; comparing a pasted book with each key would be quadratic.
    if found.len() > 64 {
        return None;
    }
    let found = found.to_ascii_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&found, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// Error for a name that is not in a list of known ones.
pub(crate) fn unknown(what: &'static str, found: &str, known: &[&str]) -> WorkloadError {
    WorkloadError::UnknownName {
        what,
        found: excerpt(found.as_bytes()).into(),
        suggestion: nearest(found, known.iter().copied()).map(Into::into),
        known: known.join(", ").into(),
    }
}

/// Names in a list that is short enough for a message.
pub(crate) fn list(names: &[&str]) -> String {
    let shown = names.iter().take(LISTED).map(|name| excerpt(name.as_bytes()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(LISTED) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

/// A short printable excerpt of raw input, with control bytes escaped.
pub(crate) fn excerpt(raw: &[u8]) -> String {
    let head = &raw[..raw.len().min(4 * EXCERPT_CHARS)];
    let text = String::from_utf8_lossy(head);
    let mut out: String = text.chars().take(EXCERPT_CHARS).flat_map(char::escape_debug).collect();
    if raw.len() > head.len() || text.chars().nth(EXCERPT_CHARS).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_neighbour_and_noise_does_not() {
        let known = ["iodepth", "io_size", "rw"];
        assert_eq!(nearest("iodpeth", known), Some("iodepth"));
        assert_eq!(nearest("IO_SIZE", known), Some("io_size"));
        assert_eq!(nearest("completely", known), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        assert_eq!(excerpt(b"a\0b"), "a\\0b");
        let long = excerpt(&[b'7'; 1000]);
        assert_eq!(long.chars().count(), EXCERPT_CHARS + 1);
        assert!(excerpt(b"\xff\xfe1").contains('\u{fffd}'));
    }
}
