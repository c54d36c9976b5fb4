//! Lines of the `custom` format: columns as [`Columns`] describes them, as in the
//! configurable text traces of SimpleSSD.
//!
//! The first line that is no comment (`#`) tells how columns are separated: by commas
//! if it has one, else by semicolons, else by blanks. If neither its time nor its
//! address nor its length begins with a digit, it is a header.

use flashwise_hint::Lba;

use super::TimeUnit;
use super::columns::{Column, Columns, MAX_COLUMNS};
use super::fields::{self, Flaw, Separator};
use super::parser::{Device, Line, Row};
use crate::{OpKind, Request};

/// The usual words, for messages.
const WORDS: &str = "r, read, w, write, t, trim, d, discard, f or flush";

/// The state between lines.
#[derive(Debug)]
pub(crate) struct Custom {
    columns: Columns,
    /// Told by the first line that is no comment.
    separator: Option<Separator>,
}

impl Custom {
    pub(crate) fn new(columns: Columns) -> Self {
        Self { columns, separator: None }
    }

    /// What one line means.
    pub(crate) fn parse<'a>(&mut self, line: &'a [u8], unit: TimeUnit) -> Result<Line<'a>, Flaw> {
        if line.trim_ascii_start().starts_with(b"#") {
            return Ok(Line::Other("comments"));
        }
        let is_first = self.separator.is_none();
        let separator = *self.separator.get_or_insert_with(|| separator(line));
        let (f, n) = fields::split::<MAX_COLUMNS>(line, separator);
        let expected = self.columns.columns.len();
        if n < expected || (n > expected && !self.columns.more) {
            let at_least = if self.columns.more { "at least " } else { "" };
            let count = format!("{at_least}{expected}");
            return Err(fields::wrong_count(&count, n, line, &self.columns.to_string()));
        }
        if is_first && self.is_header(&f[..expected]) {
            return Ok(Line::Other("header"));
        }
        self.row(&f[..expected], unit)
    }

    fn is_header(&self, f: &[&[u8]]) -> bool {
        let word = |field: &[u8]| field.first().is_some_and(|byte| !byte.is_ascii_digit());
        let number = |c: &Column| matches!(c, Column::Time(_) | Column::Lba(_) | Column::Size(_));
        self.columns.columns.iter().zip(f).all(|(column, field)| !number(column) || word(field))
    }

    fn row<'a>(&self, f: &[&'a [u8]], unit: TimeUnit) -> Result<Line<'a>, Flaw> {
        let (mut at_ns, mut op, mut device) = (0, OpKind::Read, None);
        let (mut lba, mut size) = ((&b""[..], 1), (&b""[..], 1));
        for (column, &field) in self.columns.columns.iter().zip(f) {
            match column {
                Column::Time(_) => at_ns = fields::time_ns(field, unit)?,
                Column::Op(words) => op = operation(words, field)?,
                Column::Lba(bytes) => lba = (field, *bytes),
                Column::Size(bytes) => size = (field, *bytes),
                Column::Device => device = Some(Device::named(field)),
                Column::Unused => {}
            }
        }
        if op == OpKind::Flush {
            let flush = Request { at_ns, ..Request::new(op, Lba(0), 0) };
            return Ok(Row::new(flush, device).into());
        }
        let offset = scaled("the first address", lba)?;
        let bytes = scaled("the length", size)?;
        Row::of_bytes(at_ns, op, offset, bytes, device).map(Line::Row)
    }
}

fn separator(line: &[u8]) -> Separator {
    let has = |byte| line.contains(&byte);
    match () {
        () if has(b',') => Separator::Byte(b','),
        () if has(b';') => Separator::Byte(b';'),
        () => Separator::Blanks,
    }
}

/// A number of units as bytes.
fn scaled(column: &str, (field, unit_bytes): (&[u8], u64)) -> Result<u64, Flaw> {
    let units = fields::integer(column, field)?;
    let too_large = || Flaw::field(column, "below 2^64 bytes", field);
    units.checked_mul(unit_bytes).ok_or_else(too_large)
}

fn operation(words: &[String], field: &[u8]) -> Result<OpKind, Flaw> {
    let kinds = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Flush];
    if !words.is_empty() {
        let word = words.iter().position(|word| word.as_bytes() == field);
        return word.map(|i| kinds[i]).ok_or_else(|| {
            Flaw::field("the operation", &format!("one of {}", words.join(", ")), field)
        });
    }
    let is = |words: [&str; 2]| words.iter().any(|w| field.eq_ignore_ascii_case(w.as_bytes()));
    match () {
        () if is(["r", "read"]) => Ok(OpKind::Read),
        () if is(["w", "write"]) => Ok(OpKind::Write),
        () if is(["t", "trim"]) || is(["d", "discard"]) => Ok(OpKind::Trim),
        () if is(["f", "flush"]) => Ok(OpKind::Flush),
        () => Err(Flaw::field("the operation", WORDS, field)
            .advise("name the words that mean read and write, for example op:0/1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(columns: &str, lines: &[&str]) -> Vec<(u64, OpKind, u64, u32)> {
        let mut custom = Custom::new(columns.parse().unwrap());
        let mut out = Vec::new();
        for line in lines {
            let parsed = custom.parse(line.as_bytes(), TimeUnit::Microseconds);
            match parsed.unwrap_or_else(|flaw| panic!("{line}: {flaw:?}")) {
                Line::Row(Row { request: r, .. }) => {
                    out.push((r.at_ns, r.op, r.lba.0, r.sectors));
                }
                Line::Other(_) => {}
            }
        }
        out
    }

    #[test]
    fn separator_header_comments_and_words_are_understood() {
        let expected = [(7000, OpKind::Write, 8, 8), (8000, OpKind::Read, 0, 1)];
        let with_words = "time:us,op,lba:512,size:bytes";
        for lines in [
            ["# made by hand", "time,op,lba,size", "7,W,8,4096", "8,read,0,512"],
            ["t o l s", "7 w 8 4096", "  8 R  0\t512 ", "# end"],
            ["7;write;8;4096", "#", "8;r;0;512", " # x"],
        ] {
            assert_eq!(read(with_words, &lines), expected, "{lines:?}");
        }
        let with_codes = "size:4k,lba:4k,op:0/1/2/3,time,...";
        let lines = ["1 1 1 7 extra", "1 0 0 8", "2 2 2 9", "0 0 3 9"];
        let trim = (9000, OpKind::Trim, 16, 16);
        let expected = [
            (7000, OpKind::Write, 8, 8),
            (8000, OpKind::Read, 0, 8),
            trim,
            (9000, OpKind::Flush, 0, 0),
        ];
        assert_eq!(read(with_codes, &lines), expected);
    }

    #[test]
    fn a_bare_code_asks_for_its_meaning() {
        let mut custom = Custom::new("time,op,lba:512,size:512".parse().unwrap());
        let flaw = custom.parse(b"7 1 8 8", TimeUnit::Seconds).unwrap_err();
        assert!(flaw.advice.contains("op:0/1"), "{flaw:?}");
    }
}
