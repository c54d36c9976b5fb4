//! Rows of the `tencent` format (cloud block storage, 2018): timestamp, offset, size,
//! type, volume. Source: the README of the traces at SNIA IOTTA (Zhang et al., "OSCA",
//! ATC'20). Offsets and sizes are sectors of 512 bytes; times are whole seconds, so
//! many rows share one.

use super::TimeUnit;
use super::fields::{self, COMMA, Flaw};
use super::parser::{Device, Row};
use crate::Format;

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let [time, offset, size, kind, volume] =
        fields::columns::<5>(line, COMMA, Format::Tencent.columns())?;
    let at_ns = fields::time_ns(time, unit)?;
    let lba = fields::integer("the offset in sectors (column 2)", offset)?;
    let sectors = fields::integer("the size in sectors (column 3)", size)?;
    let op = fields::read_or_write("the type (column 4)", kind, ["0", "1"])?;
    fields::integer("the volume (column 5)", volume)?;
    Ok(Row::new(fields::request(at_ns, op, lba, sectors)?, Device::named(volume)))
}
