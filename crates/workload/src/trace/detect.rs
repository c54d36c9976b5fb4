//! Tells the format of a file by its first line, or by its first records.
//!
//! Each format has a shape: how many columns, and what kind of text stands in each.
//! Shapes look at the kind only, so that a bad number in the first line still finds
//! its format and is then refused by its name. No two shapes accept the same line as
//! long as the formats keep to their own columns; if two do, the answer is an error
//! that names both, never a guess.

use super::fields::{self, COMMA, Separator};
use super::input::Lines;
use super::{Format, blkparse, fiu, iolog, vscsi};
use crate::{WorkloadError, names};

/// First bytes of packed files that people take for traces, and what unpacks them.
const PACKED: [(&[u8], &str); 3] = [
    (b"BZh", "unpack it with `bzip2 -d`"),
    (b"PK\x03\x04", "unpack it with `unzip`"),
    (b"7z\xbc\xaf\x27\x1c", "unpack it with `7z x`"),
];

/// Where a tar archive says that it is one \[bytes\]. Source: POSIX.1-2017, pax.
const TAR_MAGIC_AT: usize = 257;

/// Kind of text in a column.
#[derive(Clone, Copy)]
enum Kind {
    /// Digits, perhaps with a sign or a point.
    Number,
    /// A number or nothing.
    NumberOrBlank,
    /// One of these words, of either case.
    Word([&'static str; 2]),
    /// One of these words, or nothing.
    WordOrBlank([&'static str; 2]),
    /// Anything but nothing.
    Any,
}
use Kind::{Any, Number, NumberOrBlank, Word, WordOrBlank};

/// The format of a binary file, if its first bytes are records of one.
pub(crate) fn binary(lines: &Lines) -> Result<Option<Format>, WorkloadError> {
    let fitting = Format::ALL.into_iter().filter(|format| vscsi::fits(*format, &lines.head));
    only_one(lines, &fitting.collect::<Vec<_>>())
}

/// The format of a text, by its first line.
pub(crate) fn text(lines: &Lines) -> Result<Format, WorkloadError> {
    let first = lines.text();
    let fitting = Format::ALL.into_iter().filter(|format| fits(*format, first));
    if let Some(format) = only_one(lines, &fitting.collect::<Vec<_>>())? {
        return Ok(format);
    }
    let packed = PACKED.iter().find(|(magic, _)| first.starts_with(magic));
    let is_tar = lines.head.get(TAR_MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"ustar"));
    let binary = first.contains(&0) || std::str::from_utf8(first).is_err();
    let advice = match packed {
        Some((_, advice)) => *advice,
        None if is_tar => "it is an archive of files: unpack it with `tar -xf`",
        None if first.trim_ascii().starts_with(b"[") => {
            "a fio job is known by its name: rename it to *.fio"
        }
        None if binary => "the file is binary: unpack or convert it first",
        None => {
            "describe its columns with --columns, or name its format with --format if the first \
             line is damaged"
        }
    };
    Err(WorkloadError::UnknownFormat {
        path: lines.path.clone(),
        line: lines.line.max(1),
        found: names::excerpt(first).into(),
        known: Format::catalogue().into(),
        advice: advice.into(),
    })
}

/// Whether a line names the columns of a format rather than holding a row.
pub(crate) fn is_header(format: Format, line: &[u8]) -> bool {
    let Some(header) = format.header() else { return false };
    let mut fields = line.split(|&byte| byte == b',');
    let same = |name: &str, field: &[u8]| {
        let letters = field.iter().filter(|byte| !matches!(byte, b' ' | b'\t' | b'_'));
        letters.map(u8::to_ascii_lowercase).eq(name.bytes())
    };
    let all = header.split(',').all(|name| fields.next().is_some_and(|field| same(name, field)));
    all && (format == Format::Spc || fields.next().is_none())
}

fn only_one(lines: &Lines, fitting: &[Format]) -> Result<Option<Format>, WorkloadError> {
    match fitting {
        [] => Ok(None),
        [format] => Ok(Some(*format)),
        [one, other, ..] => Err(WorkloadError::AmbiguousFormat {
            path: lines.path.clone(),
            line: lines.line.max(1),
            one: *one,
            other: *other,
        }),
    }
}

fn fits(format: Format, line: &[u8]) -> bool {
    if is_header(format, line) {
        return true;
    }
    let csv = |kinds: &[Kind]| fits_columns(line, COMMA, kinds);
    let read_or_write = Word(["Read", "Write"]);
    let letter = Word(["R", "W"]);
    match format {
        Format::Mqsim => fits_columns(line, Separator::Blanks, &[Number; 5]),
        Format::Msr => csv(&[Number, Any, Number, read_or_write, Number, Number, NumberOrBlank]),
        Format::Alibaba => csv(&[Number, letter, Number, Number, Number]),
        Format::Tencent => csv(&[Number, Number, Number, Word(["0", "1"]), Number]),
        Format::Systor17 => csv(&[
            Number,
            NumberOrBlank,
            WordOrBlank(["R", "W"]),
            NumberOrBlank,
            NumberOrBlank,
            NumberOrBlank,
        ]),
        Format::Spc => {
            // Optional fields may follow the five.
            let end = line.iter().enumerate().filter(|(_, byte)| **byte == b',').nth(4);
            let five = &line[..end.map_or(line.len(), |(at, _)| at)];
            fits_columns(five, COMMA, &[Number, Number, Number, letter, Number])
        }
        Format::Fiu => fiu::words(line).is_some_and(|(time, pid, tail)| {
            let kinds = [Number, Number, Word(["R", "W"]), Number, Number];
            is(Number, time) && is(Number, pid) && kinds.iter().zip(tail).all(|(k, f)| is(*k, f))
        }),
        Format::FioIolog => iolog::version(line).is_some(),
        Format::Blkparse => {
            let (f, n) = fields::split::<6>(line, Separator::Blanks);
            let event = n >= 6 && blkparse::device(f[0]).is_some() && is(Number, f[3]);
            event || line.starts_with(b"Input file ")
        }
        Format::CloudPhysicsCsv | Format::Vscsi1 | Format::Vscsi2 | Format::Custom => false,
    }
}

fn fits_columns(line: &[u8], separator: Separator, kinds: &[Kind]) -> bool {
    let (f, n) = fields::split::<8>(line, separator);
    n == kinds.len() && kinds.iter().zip(f).all(|(kind, field)| is(*kind, field))
}

fn is(kind: Kind, field: &[u8]) -> bool {
    let numeric = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
    let word = |words: [&str; 2]| words.iter().any(|w| field.eq_ignore_ascii_case(w.as_bytes()));
    match kind {
        Number => !field.is_empty() && field.iter().all(numeric),
        NumberOrBlank => field.iter().all(numeric),
        Word(words) => word(words),
        WordOrBlank(words) => field.is_empty() || word(words),
        Any => !field.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A first line of each text format that is told by its shape.
    const FIRST: [(Format, &str); 15] = [
        (Format::Mqsim, "938513000 4 264719034 16 0"),
        (Format::CloudPhysicsCsv, "Version, Time, Op, Size, LBN"),
        (Format::Msr, "128166372003061629,hm,0,Read,9056039936,8192,113736"),
        (Format::Msr, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        (Format::Alibaba, "419,W,8792731648,16384,1577808144360767"),
        (Format::Alibaba, "device_id,opcode,offset,length,timestamp"),
        (Format::Tencent, "1538323200,12910952,128,0,1063"),
        (Format::Systor17, "Timestamp,Response,IOType,LUN,Offset,Size"),
        (Format::Systor17, "1455592560.125,0.002,R,1,4096,512"),
        (Format::Systor17, "1455592560.125,,,1,,"),
        (Format::Fiu, "89966 4253 nfsd 508083 8 W 6 0 0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
        (Format::Spc, "0,20941264,8192,W,0.551706"),
        (Format::Spc, "0, 20941264, 8192, w, 0.551706, 7, more"),
        (Format::FioIolog, "fio version 3 iolog"),
        (Format::Blkparse, "  8,0    1        1     0.000000000   697  G   W 223490 + 8 [x]"),
    ];

    #[test]
    fn each_first_line_fits_its_format_and_no_other() {
        for (format, line) in FIRST {
            let fitting: Vec<Format> =
                Format::ALL.into_iter().filter(|other| fits(*other, line.as_bytes())).collect();
            assert_eq!(fitting, [format], "{line}");
        }
    }

    #[test]
    fn what_is_no_trace_fits_nothing() {
        for line in
            ["", "1,2,3", "5 0 8 8", "hello world", "1,5633898,2a,512,42932745", "1,2,3,4,5"]
        {
            assert!(!Format::ALL.into_iter().any(|format| fits(format, line.as_bytes())), "{line}");
        }
    }
}
