//! Rows of the `cloudphysics` format (see the table in the parent module).
//!
//! Operation codes are those of SCSI block commands. Source: SBC-4, "Commands for
//! direct access block devices". Codes without a meaning for a block simulator are
//! refused rather than skipped, because a skipped command would make the counts lie.

use flashwise_hint::{Lba, SECTOR_BYTES};

use super::TimeUnit;
use super::fields::{self, Flaw};
use crate::{Format, OpKind, Request, names};

/// The accepted codes, for messages.
const ACCEPTED: &str = "a SCSI operation code in hex: read 8, 28, 88, a8; write a, 2a, 8a, aa; \
                        trim 42; flush 35, 91; write zeroes 41, 93";

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Request, Flaw> {
    let comma = |byte: u8| byte == b',';
    let [version, time, code, size, lbn] =
        fields::columns::<5>(line, false, comma, Format::CloudPhysicsCsv.columns())?;
    fields::integer("the version (column 1)", version)?;
    let at_ns = fields::time_ns(time, unit)?;
    let op = operation(code)?;
    let bytes = fields::integer("the size in bytes (column 4)", size)?;
    let lbn = fields::integer("the first sector (column 5)", lbn)?;
    if op == OpKind::Flush {
        return Ok(Request { at_ns, ..Request::new(op, Lba(0), 0) });
    }
    if bytes == 0 || bytes % SECTOR_BYTES != 0 {
        let expected = "the size (column 4) as a multiple of 512 bytes, at least 512";
        return Err(Flaw::new(expected, bytes.to_string()));
    }
    fields::request(at_ns, op, lbn, bytes / SECTOR_BYTES)
}

/// Whether a first line is the header of this format.
pub(crate) fn recognises(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    Format::CloudPhysicsCsv
        .columns()
        .split(',')
        .all(|name| fields.next().is_some_and(|field| field.eq_ignore_ascii_case(name.as_bytes())))
        && fields.next().is_none()
}

/// The operation code under which a kind of request is written.
pub(crate) fn code(op: OpKind) -> &'static str {
    match op {
        OpKind::Read => "28",
        OpKind::Write => "2a",
        OpKind::Trim => "42",
        OpKind::Flush => "35",
        OpKind::WriteZeroes => "93",
    }
}

fn operation(field: &[u8]) -> Result<OpKind, Flaw> {
    let digits = field.strip_prefix(b"0x").or(field.strip_prefix(b"0X")).unwrap_or(field);
    let hex = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| (1..=2).contains(&digits.len()) && !digits.starts_with('+'))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    match hex {
        Some(0x08 | 0x28 | 0x88 | 0xa8) => Ok(OpKind::Read),
        Some(0x0a | 0x2a | 0x8a | 0xaa) => Ok(OpKind::Write),
        Some(0x42) => Ok(OpKind::Trim),
        Some(0x35 | 0x91) => Ok(OpKind::Flush),
        Some(0x41 | 0x93) => Ok(OpKind::WriteZeroes),
        _ => Err(Flaw::new(ACCEPTED, format!("«{}»", names::excerpt(field)))
            .advise("remove the rows of other commands first")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(code: &str) -> OpKind {
        let row = format!("1,5633898,{code},512,42932745");
        parse(row.as_bytes(), TimeUnit::Seconds).unwrap().op
    }

    #[test]
    fn every_accepted_code_has_its_meaning() {
        for code in ["8", "08", "28", "88", "a8", "A8", "0x28"] {
            assert_eq!(op(code), OpKind::Read, "{code}");
        }
        for code in ["a", "0a", "2a", "2A", "8a", "aa"] {
            assert_eq!(op(code), OpKind::Write, "{code}");
        }
        assert_eq!([op("42"), op("35"), op("91")], [OpKind::Trim, OpKind::Flush, OpKind::Flush]);
        assert_eq!([op("41"), op("93")], [OpKind::WriteZeroes; 2]);
        for kind in [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Flush, OpKind::WriteZeroes]
        {
            assert_eq!(op(code(kind)), kind);
        }
    }

    #[test]
    fn other_codes_list_the_accepted_ones() {
        for code in ["12", "", "zz", "128", "+8", "0x"] {
            let row = format!("1,5,{code},512,4");
            let flaw = parse(row.as_bytes(), TimeUnit::Seconds).unwrap_err();
            assert!(flaw.expected.contains("8, 28, 88, a8"), "{code}: {flaw:?}");
        }
    }

    #[test]
    fn a_row_means_what_the_table_says() {
        let row = parse(b"1,5633898.25,28,6656,40409911", TimeUnit::Seconds).unwrap();
        assert_eq!(row.at_ns, 5_633_898_250_000_000);
        assert_eq!((row.lba, row.sectors), (Lba(40_409_911), 13));
        let flush = parse(b"1,5,35,0,77", TimeUnit::Seconds).unwrap();
        assert_eq!((flush.lba, flush.sectors), (Lba(0), 0));
        for size in ["0", "511", "513"] {
            let row = format!("1,5,2a,{size},4");
            assert!(parse(row.as_bytes(), TimeUnit::Seconds).is_err(), "{size}");
        }
    }

    #[test]
    fn only_the_exact_header_is_recognised() {
        assert!(recognises(b"version,time,op,size,lbn"));
        assert!(recognises(b"Version, Time, Op, Size, LBN"));
        assert!(!recognises(b"version,time,op,size"));
        assert!(!recognises(b"version,time,op,size,lbn,more"));
        assert!(!recognises(b"1,5633898,2a,512,42932745"));
    }
}
