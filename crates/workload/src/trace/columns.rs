//! The description of columns that a user gives for a trace in no known format.
//!
//! One line, one item for each column, in order, separated by commas:
//!
//! | item | the column holds |
//! |---|---|
//! | `time` or `time:UNIT` | arrival in s, ms, us, ns or 100ns |
//! | `op` | the operation in words: r, read, w, write, t, trim, d, discard, f, flush |
//! | `op:READ/WRITE` | the operation, in these two words; `/TRIM` and `/FLUSH` may follow |
//! | `lba:UNIT` | first address, in units of that many bytes (`bytes` is 1, `4k` is 4096) |
//! | `size:UNIT` | length, the same |
//! | `device` | name of the device |
//! | `-` | nothing of use |
//! | `...` | at the end: any further columns |
//!
//! Invariant: a description that is accepted has exactly one time, op, lba and size.

use std::fmt;
use std::str::FromStr;

use super::TimeUnit;
use crate::{WorkloadError, names};

/// Most columns, assumed: more than any trace has.
pub(crate) const MAX_COLUMNS: usize = 32;

/// The grammar in a sentence, for messages.
const GRAMMAR: &str = "a comma-separated list with an item for each column: time:UNIT (s, ms, us, \
                       ns, 100ns), op or op:READ/WRITE[/TRIM[/FLUSH]] with the words the column \
                       uses, lba:UNIT and size:UNIT (bytes, 512, 4k, any number of bytes), \
                       device, - for a column without use, and ... at the end for any more; for \
                       example time:us,op,lba:512,size:bytes,-,device";

/// What one column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Time(Option<TimeUnit>),
    /// The words for read, write, trim and flush; none: the usual ones.
    Op(Vec<String>),
    /// Bytes per unit.
    Lba(u64),
    /// Bytes per unit.
    Size(u64),
    Device,
    Unused,
}

/// What the columns of a trace hold, as a user describes it: one item per column,
/// `time:UNIT`, `op` or `op:READ/WRITE`, `lba:UNIT`, `size:UNIT`, `device`, `-`, and
/// `...` at the end for any more, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(crate) columns: Vec<Column>,
    /// Further columns may follow.
    pub(crate) more: bool,
}

impl Columns {
    /// The unit of the time column, if the description names one.
    pub(crate) fn time_unit(&self) -> Option<TimeUnit> {
        self.columns.iter().find_map(|column| match column {
            Column::Time(unit) => *unit,
            _ => None,
        })
    }

    /// The description that is missing, as an error.
    pub(crate) fn missing() -> WorkloadError {
        error("none for the format custom".to_owned(), "")
    }

    fn check(&self, text: &str) -> Result<(), WorkloadError> {
        let count = |is: fn(&Column) -> bool| self.columns.iter().filter(|c| is(c)).count();
        let counts = [
            ("time", count(|c| matches!(c, Column::Time(_)))),
            ("op", count(|c| matches!(c, Column::Op(_)))),
            ("lba", count(|c| matches!(c, Column::Lba(_)))),
            ("size", count(|c| matches!(c, Column::Size(_)))),
        ];
        for (name, n) in counts {
            if n != 1 {
                let what = format!("{name} {n} times in «{}»", names::excerpt(text.as_bytes()));
                return Err(error(what, &format!("{name} exactly once in ")));
            }
        }
        if count(|c| *c == Column::Device) > 1 {
            return Err(error("device more than once".to_owned(), "device at most once in "));
        }
        if self.columns.len() > MAX_COLUMNS {
            let found = format!("{} columns", self.columns.len());
            return Err(error(found, &format!("at most {MAX_COLUMNS} columns in ")));
        }
        Ok(())
    }
}

fn error(found: String, which: &str) -> WorkloadError {
    let expected = format!("{which}{GRAMMAR}").into();
    WorkloadError::Columns { found: found.into(), expected }
}

impl FromStr for Columns {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut items: Vec<&str> = text.split(',').map(str::trim).collect();
        let more = items.last() == Some(&"...");
        if more {
            items.pop();
        }
        let columns = items.iter().map(|item| column(item)).collect::<Result<_, _>>()?;
        let columns = Self { columns, more };
        columns.check(text)?;
        Ok(columns)
    }
}

fn column(item: &str) -> Result<Column, WorkloadError> {
    let (name, value) = match item.split_once(':') {
        Some((name, value)) => (name, Some(value)),
        None => (item, None),
    };
    let bad = |what: &str| {
        let excerpt = names::excerpt(item.as_bytes());
        error(format!("«{excerpt}», {what}"), "")
    };
    match (name, value) {
        ("-", None) => Ok(Column::Unused),
        ("device", None) => Ok(Column::Device),
        ("time", None) => Ok(Column::Time(None)),
        ("time", Some(unit)) => {
            unit.parse().map(|unit| Column::Time(Some(unit))).map_err(|e| bad(&e.to_string()))
        }
        ("op", None) => Ok(Column::Op(Vec::new())),
        ("op", Some(words)) => op_words(words).map(Column::Op).map_err(bad),
        ("lba" | "size", None) => Err(bad("which names no unit, such as :512 or :bytes")),
        ("lba", Some(unit)) => bytes(unit).map(Column::Lba).map_err(bad),
        ("size", Some(unit)) => bytes(unit).map(Column::Size).map_err(bad),
        ("device" | "-", Some(_)) => Err(bad("which takes no unit")),
        _ => {
            let known = ["time", "op", "lba", "size", "device"];
            let near = names::nearest(name, known);
            let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            Err(bad(&format!("which is no kind of column{near}")))
        }
    }
}

fn op_words(words: &str) -> Result<Vec<String>, &'static str> {
    let words: Vec<String> = words.split('/').map(str::to_owned).collect();
    let distinct = words.iter().enumerate().all(|(i, word)| !words[..i].contains(word));
    if !(2..=4).contains(&words.len()) || words.iter().any(String::is_empty) || !distinct {
        return Err("which needs two to four different words, such as op:0/1");
    }
    Ok(words)
}

/// Bytes per unit: `bytes`, a number, or a number of KiB or MiB.
fn bytes(unit: &str) -> Result<u64, &'static str> {
    if unit == "bytes" {
        return Ok(1);
    }
    let (digits, factor) = match unit.as_bytes().last() {
        Some(b'k' | b'K') => (&unit[..unit.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&unit[..unit.len() - 1], 1 << 20),
        _ => (unit, 1),
    };
    let number = Some(digits).filter(|d| d.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(|digits| digits.parse::<u32>().ok()).filter(|&n| n > 0);
    number
        .map(|n| u64::from(n) * factor)
        .ok_or("whose unit is not bytes, 512, 4k or another number of bytes")
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, column) in self.columns.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            match column {
                Column::Time(None) => f.write_str("time"),
                Column::Time(Some(unit)) => write!(f, "time:{unit}"),
                Column::Op(words) if words.is_empty() => f.write_str("op"),
                Column::Op(words) => write!(f, "op:{}", words.join("/")),
                Column::Lba(1) => f.write_str("lba:bytes"),
                Column::Lba(bytes) => write!(f, "lba:{bytes}"),
                Column::Size(1) => f.write_str("size:bytes"),
                Column::Size(bytes) => write!(f, "size:{bytes}"),
                Column::Device => f.write_str("device"),
                Column::Unused => f.write_str("-"),
            }?;
        }
        f.write_str(if self.more { ",..." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_print_as_they_are_read() {
        for text in [
            "time:us,op,lba:512,size:bytes,-,device",
            "time,op:0/1,lba:4096,size:4096,...",
            "-,-,size:bytes,lba:bytes,op:R/W/T/F,time:100ns",
        ] {
            let columns: Columns = text.parse().unwrap();
            assert_eq!(columns.to_string(), text);
        }
        let spaced: Columns = " time:s , op , lba:4k , size:1m ".parse().unwrap();
        assert_eq!(spaced.to_string(), "time:s,op,lba:4096,size:1048576");
    }

    #[test]
    fn slips_are_answered_with_the_grammar() {
        for (text, part) in [
            ("", "which is no kind of column"),
            ("tiem:us,op,lba:512,size:512", "did you mean `time`?"),
            ("time:us,op,lba:512,sise:512", "did you mean `size`?"),
            ("time:years,op,lba:512,size:512", "unknown time unit"),
            ("time:us,op,lba,size:512", "names no unit"),
            ("time:us,op,lba:0,size:512", "whose unit is not"),
            ("time:us,op,lba:-1,size:512", "whose unit is not"),
            ("time:us,op:0,lba:512,size:512", "two to four different words"),
            ("time:us,op:0/0,lba:512,size:512", "two to four different words"),
            ("time:us,op,lba:512", "size 0 times"),
            ("time:us,op,lba:512,size:512,size:1", "size 2 times"),
            ("time:us,op,lba:512,size:1,device,device", "device more than once"),
            ("time:us,...,op,lba:512,size:1", "which is no kind of column"),
        ] {
            let message = text.parse::<Columns>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains("for example time:us,op"), "{text}: {message}");
        }
    }
}
