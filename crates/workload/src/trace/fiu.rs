//! Rows of the `fiu` format (I/O deduplication traces): time, process number, process
//! name, first sector, sectors, operation, major, minor, hash. Source: the README of
//! the traces at SNIA IOTTA (Koller, Rangaswami, "I/O Deduplication", FAST'10).
//!
//! Times are nanoseconds, addresses and lengths are sectors of 512 bytes. A process
//! name may hold blanks, so the columns behind it are counted from the end.

use super::TimeUnit;
use super::fields::{self, Flaw, Separator};
use super::parser::{Device, Row};
use crate::Format;

/// Columns of a row whose process name is one word.
const N_COLUMNS: usize = 9;
/// Most words that are looked at, assumed: a process name has at most 15 bytes
/// (TASK_COMM_LEN of Linux), so at most 8 words.
const MAX_WORDS: usize = N_COLUMNS + 7;

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let Some((time, pid, [lba, sectors, kind, major, minor])) = words(line) else {
        let (_, n) = fields::split::<MAX_WORDS>(line, Separator::Blanks);
        return Err(fields::wrong_count("9", n, line, Format::Fiu.columns()));
    };
    let at_ns = fields::time_ns(time, unit)?;
    fields::integer("the process number (column 2)", pid)?;
    let lba = fields::integer("the first sector (column 4)", lba)?;
    let sectors = fields::integer("the length in sectors (column 5)", sectors)?;
    let op = fields::read_or_write("the operation (column 6)", kind, ["R", "W"])?;
    fields::integer("the major number (column 7)", major)?;
    fields::integer("the minor number (column 8)", minor)?;
    let device = Device::pair(major, b':', minor);
    Ok(Row::new(fields::request(at_ns, op, lba, sectors)?, device))
}

/// Time, process number, and the five columns between process name and hash.
#[allow(clippy::type_complexity)]
pub(crate) fn words(line: &[u8]) -> Option<(&[u8], &[u8], [&[u8]; 5])> {
    let (all, n) = fields::split::<MAX_WORDS>(line, Separator::Blanks);
    let words = all.get(..n).filter(|words| words.len() >= N_COLUMNS)?;
    let mut tail: [&[u8]; 5] = [&[]; 5];
    tail.copy_from_slice(&words[n - 6..n - 1]);
    Some((words[0], words[1], tail))
}

#[cfg(test)]
mod tests {
    use flashwise_hint::Lba;

    use super::*;
    use crate::OpKind;

    #[test]
    fn a_process_name_may_hold_blanks() {
        for name in ["nfsd", "a b", "x y z w"] {
            let row = format!("89966 4253 {name} 508083 8 W 6 0 0f1e2d3c4b5a69788796a5b4c3d2e1f0");
            let row = parse(row.as_bytes(), TimeUnit::Nanoseconds).unwrap();
            assert_eq!((row.request.lba, row.request.sectors), (Lba(508_083), 8));
            assert_eq!((row.request.op, row.request.at_ns), (OpKind::Write, 89_966));
            assert_eq!(row.device, Some(Device::pair(b"6", b':', b"0")));
        }
        assert!(parse(b"89966 4253 508083 8 W 6 0 0f", TimeUnit::Nanoseconds).is_err());
    }
}
