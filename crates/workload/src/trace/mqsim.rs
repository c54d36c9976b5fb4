//! Rows of the `mqsim` format: time, device, first sector, sectors, type. Source: the
//! trace reader of CMU-SAFARI/MQSim.

use super::TimeUnit;
use super::fields::{self, Flaw, Separator};
use super::parser::{Device, Row};
use crate::{Format, OpKind};

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let [time, device, lba, sectors, kind] =
        fields::columns::<5>(line, Separator::Blanks, Format::Mqsim.columns())?;
    let at_ns = fields::time_ns(time, unit)?;
    fields::integer("the device number (column 2)", device)?;
    let lba = fields::integer("the first sector (column 3)", lba)?;
    let sectors = fields::integer("the length in sectors (column 4)", sectors)?;
    let op = match kind {
        b"0" => OpKind::Write,
        b"1" => OpKind::Read,
        _ => {
            return Err(Flaw::field("the type (column 5)", "0 for a write or 1 for a read", kind));
        }
    };
    Ok(Row::new(fields::request(at_ns, op, lba, sectors)?, Device::named(device)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_hint::Lba;

    #[test]
    fn a_row_means_what_the_table_says() {
        let row = parse(b"938513000 4 264719034 16 0", TimeUnit::Nanoseconds).unwrap();
        assert_eq!(row.device, Some(Device::named(b"4")));
        let request = row.request;
        assert_eq!(request.at_ns, 938_513_000);
        assert_eq!(request.op, OpKind::Write);
        assert_eq!((request.lba, request.sectors), (Lba(264_719_034), 16));
        let request = parse(b"\t1  0\t2 3 1 ", TimeUnit::Milliseconds).unwrap().request;
        assert_eq!((request.at_ns, request.op), (1_000_000, OpKind::Read));
    }
}
