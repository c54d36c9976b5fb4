//! Rows of the `mqsim` format (see the table in the parent module). Stateless: one
//! line in, one request out, so that a bad line cannot disturb its neighbours.

use super::TimeUnit;
use super::fields::{self, Flaw};
use crate::{Format, OpKind, Request, names};

/// A parsed row: the request with its absolute time, and the device number.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<(Request, u64), Flaw> {
    let blank = |byte: u8| byte == b' ' || byte == b'\t';
    let [time, device, lba, sectors, kind] =
        fields::columns::<5>(line, true, blank, Format::Mqsim.columns())?;
    let at_ns = fields::time_ns(time, unit)?;
    let device = fields::integer("the device number (column 2)", device)?;
    let lba = fields::integer("the first sector (column 3)", lba)?;
    let sectors = fields::integer("the length in sectors (column 4)", sectors)?;
    let op = match kind {
        b"0" => OpKind::Write,
        b"1" => OpKind::Read,
        _ => {
            let expected = "the type (column 5) as 0 for a write or 1 for a read";
            return Err(Flaw::new(expected, format!("«{}»", names::excerpt(kind))));
        }
    };
    Ok((fields::request(at_ns, op, lba, sectors)?, device))
}

/// Whether a first line is a row of this format: five columns that begin like numbers.
pub(crate) fn recognises(line: &[u8]) -> bool {
    let mut n = 0;
    for field in line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()) {
        let numeric = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
        if !field.iter().all(numeric) {
            return false;
        }
        n += 1;
    }
    n == 5
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_hint::Lba;

    #[test]
    fn a_row_means_what_the_table_says() {
        let (request, device) =
            parse(b"938513000 4 264719034 16 0", TimeUnit::Nanoseconds).unwrap();
        assert_eq!(device, 4);
        assert_eq!(request.at_ns, 938_513_000);
        assert_eq!(request.op, OpKind::Write);
        assert_eq!((request.lba, request.sectors), (Lba(264_719_034), 16));
        let (request, _) = parse(b"\t1  0\t2 3 1 ", TimeUnit::Milliseconds).unwrap();
        assert_eq!((request.at_ns, request.op), (1_000_000, OpKind::Read));
    }
}
