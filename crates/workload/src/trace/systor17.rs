//! Rows of the `systor17` format (virtual desktops at Fujitsu): timestamp, response
//! time, type, LUN, offset, size. Source: the README of the traces at SNIA IOTTA (Lee
//! et al., "Understanding storage traffic characteristics on enterprise virtual
//! desktop infrastructure", SYSTOR'17).
//!
//! Times are seconds since 1970 with nine digits, offsets and sizes are bytes. The
//! type of some rows is blank: a command that moves no data. They are counted.

use super::TimeUnit;
use super::fields::{self, COMMA, Flaw};
use super::parser::{Device, Line, Row};
use crate::Format;

/// What one row means, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Line<'_>, Flaw> {
    let [time, _response, kind, lun, offset, size] =
        fields::columns::<6>(line, COMMA, Format::Systor17.columns())?;
    let at_ns = fields::time_ns(time, unit)?;
    if kind.is_empty() {
        return Ok(Line::Other("rows with a blank type (commands without data)"));
    }
    let op = fields::read_or_write("the type (column 3)", kind, ["R", "W"])?;
    fields::integer("the LUN (column 4)", lun)?;
    let offset = fields::integer("the offset in bytes (column 5)", offset)?;
    let size = fields::integer("the size in bytes (column 6)", size)?;
    Row::of_bytes(at_ns, op, offset, size, Device::named(lun)).map(Line::Row)
}
