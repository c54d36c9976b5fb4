//! Rows of the `alibaba` format (block traces of 2020): device, operation, offset,
//! length, timestamp. Source: the README of alibaba/block-traces. Offsets and lengths
//! are bytes, times are microseconds.

use super::TimeUnit;
use super::fields::{self, COMMA, Flaw};
use super::parser::{Device, Row};
use crate::Format;

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let [device, kind, offset, length, time] =
        fields::columns::<5>(line, COMMA, Format::Alibaba.columns())?;
    fields::integer("the device (column 1)", device)?;
    let op = fields::read_or_write("the operation (column 2)", kind, ["R", "W"])?;
    let offset = fields::integer("the offset in bytes (column 3)", offset)?;
    let length = fields::integer("the length in bytes (column 4)", length)?;
    let at_ns = fields::time_ns(time, unit)?;
    Row::of_bytes(at_ns, op, offset, length, Device::named(device))
}
