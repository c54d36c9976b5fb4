//! Rows of the `cloudphysics` format: version, time, operation code, size, first
//! sector. Source: the CloudPhysics sample of libCacheSim.
//!
//! Operation codes are those of SCSI block commands. Source: SBC-4, "Commands for
//! direct access block devices". Codes without a meaning for a block simulator are
//! refused rather than skipped, because a skipped command would make the counts lie.

use flashwise_hint::{Lba, SECTOR_BYTES};

use super::TimeUnit;
use super::fields::{self, COMMA, Flaw};
use super::parser::Row;
use crate::{Format, OpKind, Request, names};

/// The accepted codes, for messages.
pub(crate) const ACCEPTED: &str = "a SCSI operation code in hex: read 8, 28, 88, a8; write a, 2a, \
                                   8a, aa; trim 42; flush 35, 91; write zeroes 41, 93";

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let [version, time, code, size, lbn] =
        fields::columns::<5>(line, COMMA, Format::CloudPhysicsCsv.columns())?;
    fields::integer("the version (column 1)", version)?;
    let at_ns = fields::time_ns(time, unit)?;
    let op = operation_in_hex(code)?;
    let bytes = fields::integer("the size in bytes (column 4)", size)?;
    let lbn = fields::integer("the first sector (column 5)", lbn)?;
    let request = match op {
        OpKind::Flush => Request { at_ns, ..Request::new(op, Lba(0), 0) },
        _ => fields::request(at_ns, op, lbn, sectors("the size (column 4)", bytes)?)?,
    };
    Ok(Row::new(request, None))
}

/// A length in bytes as sectors: a drive that speaks SCSI moves nothing smaller.
pub(crate) fn sectors(column: &'static str, bytes: u64) -> Result<u64, Flaw> {
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        let expected = format!("{column} as a multiple of 512 bytes, at least 512");
        return Err(Flaw::new(expected, bytes.to_string()));
    }
    Ok(bytes / SECTOR_BYTES)
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

/// What a SCSI operation code asks of a drive, if it is about its blocks.
pub(crate) fn operation(code: u8) -> Option<OpKind> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(OpKind::Read),
        0x0a | 0x2a | 0x8a | 0xaa => Some(OpKind::Write),
        0x42 => Some(OpKind::Trim),
        0x35 | 0x91 => Some(OpKind::Flush),
        0x41 | 0x93 => Some(OpKind::WriteZeroes),
        _ => None,
    }
}

/// Whether a SCSI operation code asks about the drive and touches none of its blocks:
/// test unit ready, request sense, inquiry, mode sense, read capacity, log sense,
/// service action in, report LUNs. Source: SPC-4 and SBC-4.
pub(crate) fn moves_no_data(code: u8) -> bool {
    matches!(code, 0x00 | 0x03 | 0x12 | 0x1a | 0x25 | 0x4d | 0x5a | 0x9e | 0xa0)
}

fn operation_in_hex(field: &[u8]) -> Result<OpKind, Flaw> {
    let digits = field.strip_prefix(b"0x").or(field.strip_prefix(b"0X")).unwrap_or(field);
    let hex = std::str::from_utf8(digits)
        .ok()
        .filter(|digits| (1..=2).contains(&digits.len()) && !digits.starts_with('+'))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    hex.and_then(operation).ok_or_else(|| {
        Flaw::new(ACCEPTED, format!("«{}»", names::excerpt(field)))
            .advise("remove the rows of other commands first, or allow some with --skip-bad")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(code: &str) -> OpKind {
        let row = format!("1,5633898,{code},512,42932745");
        parse(row.as_bytes(), TimeUnit::Seconds).unwrap().request.op
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
        let row = parse(b"1,5633898.25,28,6656,40409911", TimeUnit::Seconds).unwrap().request;
        assert_eq!(row.at_ns, 5_633_898_250_000_000);
        assert_eq!((row.lba, row.sectors), (Lba(40_409_911), 13));
        let flush = parse(b"1,5,35,0,77", TimeUnit::Seconds).unwrap().request;
        assert_eq!((flush.lba, flush.sectors), (Lba(0), 0));
        for size in ["0", "511", "513"] {
            let row = format!("1,5,2a,{size},4");
            assert!(parse(row.as_bytes(), TimeUnit::Seconds).is_err(), "{size}");
        }
    }
}
