//! What became of every line of a trace: nothing is left out without being counted.
//!
//! Invariant: `lines` is the sum of `rows`, `left_out`, `bad` and all of `others`.

use super::fields::Flaw;

/// Bad lines that are kept as examples, assumed: enough to see a pattern.
const N_EXAMPLES: usize = 5;
/// Kinds of flaws that are counted apart, assumed: more are one kind, "others".
const N_KINDS: usize = 20;

/// A line that did not follow its format and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Number of the line or record, from 1.
    pub line: u64,
    /// What should stand there.
    pub expected: Box<str>,
    /// What does.
    pub found: Box<str>,
}

/// How many lines of each kind a trace had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines or records, without empty lines and without the header.
    pub lines: u64,
    /// Rows that became requests.
    pub rows: u64,
    /// Rows of devices that were not selected.
    pub left_out: u64,
    /// Lines that are no requests, by reason.
    pub others: Vec<(&'static str, u64)>,
    /// Bad lines that were skipped.
    pub bad: u64,
    /// Bad lines by what was expected in them.
    pub bad_kinds: Vec<(Box<str>, u64)>,
    /// The first of the bad lines.
    pub bad_examples: Vec<BadLine>,
    /// Rows whose range was rounded outward to whole sectors.
    pub rounded: u64,
    /// Rows that were brought forward in time order.
    pub late_rows: u64,
    /// Largest step back among them \[ns\].
    pub late_max_ns: u64,
}

impl Tally {
    /// Counts a line that is no request.
    pub(crate) fn other(&mut self, why: &'static str) {
        match self.others.iter_mut().find(|(known, _)| *known == why) {
            Some((_, n)) => *n += 1,
            None => self.others.push((why, 1)),
        }
    }

    /// Counts a bad line.
    pub(crate) fn skip(&mut self, line: u64, flaw: &Flaw) {
        self.bad += 1;
        let n_kinds = self.bad_kinds.len();
        match self.bad_kinds.iter_mut().find(|(known, _)| **known == *flaw.expected) {
            Some((_, n)) => *n += 1,
            None if n_kinds < N_KINDS => self.bad_kinds.push((flaw.expected.as_str().into(), 1)),
            None => match self.bad_kinds.iter_mut().find(|(known, _)| **known == *"others") {
                Some((_, n)) => *n += 1,
                None => self.bad_kinds.push(("others".into(), 1)),
            },
        }
        if self.bad_examples.len() < N_EXAMPLES {
            let (expected, found) = (flaw.expected.as_str().into(), flaw.found.as_str().into());
            self.bad_examples.push(BadLine { line, expected, found });
        }
    }
}
