//! Rows of the `spc` format (Storage Performance Council, UMass repository): ASU,
//! first sector, size, operation, timestamp, and perhaps more. Source: "SPC Trace File
//! Format Specification", revision 1.0.1. An ASU is an application storage unit: a
//! volume. Addresses are sectors of 512 bytes, sizes are bytes, times are seconds.

use flashwise_hint::SECTOR_BYTES;

use super::TimeUnit;
use super::fields::{self, COMMA, Flaw};
use super::parser::{Device, Row};
use crate::Format;

/// Fields that every row has; the format allows optional ones behind them.
const N_FIELDS: usize = 5;

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let ([asu, lba, size, kind, time], n) = fields::split::<N_FIELDS>(line, COMMA);
    if n < N_FIELDS {
        return Err(fields::wrong_count("at least 5", n, line, Format::Spc.columns()));
    }
    fields::integer("the ASU (column 1)", asu)?;
    let lba = fields::integer("the first sector (column 2)", lba)?;
    let size = fields::integer("the size in bytes (column 3)", size)?;
    let op = fields::read_or_write("the operation (column 4)", kind, ["r", "w"])?;
    let at_ns = fields::time_ns(time, unit)?;
    if size == 0 {
        return Err(Flaw::new("a size (column 3) of at least 1 byte", "0"));
    }
    let request = fields::request(at_ns, op, lba, size.div_ceil(SECTOR_BYTES))?;
    let rounded = !size.is_multiple_of(SECTOR_BYTES);
    Ok(Row { rounded, ..Row::new(request, Device::named(asu)) })
}
