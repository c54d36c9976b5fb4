//! Rows of the `msr` format (MSR Cambridge): timestamp, hostname, disk number, type,
//! offset, size, response time. Source: the README of the traces at SNIA IOTTA
//! (Narayanan, Donnelly, Rowstron, "Write Off-Loading", FAST'08).
//!
//! Times are Windows file times: units of 100 ns since 1601, which fit 64 bits in
//! nanoseconds until the year 2185. Offsets and sizes are bytes.

use super::TimeUnit;
use super::fields::{self, COMMA, Flaw};
use super::parser::{Device, Row};
use crate::Format;

/// The request of one row, with its absolute time.
pub(crate) fn parse(line: &[u8], unit: TimeUnit) -> Result<Row<'_>, Flaw> {
    let [time, host, disk, kind, offset, size, _response] =
        fields::columns::<7>(line, COMMA, Format::Msr.columns())?;
    let at_ns = fields::time_ns(time, unit)?;
    fields::integer("the disk number (column 3)", disk)?;
    let op = fields::read_or_write("the type (column 4)", kind, ["Read", "Write"])?;
    let offset = fields::integer("the offset in bytes (column 5)", offset)?;
    let size = fields::integer("the size in bytes (column 6)", size)?;
    Row::of_bytes(at_ns, op, offset, size, Device::pair(host, b'_', disk))
}
