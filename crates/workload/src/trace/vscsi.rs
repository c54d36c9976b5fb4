//! Records of the `vscsi1` and `vscsi2` formats: CloudPhysics traces as they were
//! recorded, little-endian, without a header. Source: `vscsi.h` of libCacheSim.
//!
//! | version 1 | version 2 | meaning |
//! |---|---|---|
//! | bytes 12-13 | bytes 0-1 | SCSI operation code |
//! | bytes 14-15 | bytes 2-3 | version, in the high byte |
//! | bytes 0-3 | bytes 4-7 | serial number |
//! | bytes 4-7 | bytes 8-11 | length \[bytes\] |
//! | bytes 8-11 | bytes 12-15 | entries of the scatter-gather list |
//! | bytes 16-23 | bytes 16-23 | first sector |
//! | bytes 24-31 | bytes 24-31 | arrival \[us\] |
//! | | bytes 32-39 | response time |
//!
//! A record cannot be taken out of such a file by hand. So commands that move no data
//! (test unit ready, inquiry and the like) are counted here, while the text format
//! refuses them. Other codes are flaws in both.

use super::fields::Flaw;
use super::parser::{Line, Row};
use super::{TimeUnit, cloudphysics, fields};
use crate::{Format, OpKind, Request};

use flashwise_hint::Lba;

/// Records that are looked at to tell the version.
pub(crate) const N_PROBED: usize = 16;

/// What a record of version 1 means.
pub(crate) fn parse_v1(record: &[u8], unit: TimeUnit) -> Result<Line<'static>, Flaw> {
    let record: &[u8; 32] = whole(record)?;
    Fields::v1(record).parse(1, unit)
}

/// What a record of version 2 means.
pub(crate) fn parse_v2(record: &[u8], unit: TimeUnit) -> Result<Line<'static>, Flaw> {
    let record: &[u8; 40] = whole(record)?;
    Fields::v2(record).parse(2, unit)
}

/// Whether the first bytes of a file are records of a format: at least one, each with
/// its version and a known command.
pub(crate) fn fits(format: Format, head: &[u8]) -> bool {
    let (n_bytes, version) = match format {
        Format::Vscsi1 => (32, 1),
        Format::Vscsi2 => (40, 2),
        _ => return false,
    };
    let fit = |record: &[u8]| {
        let fields = match version {
            1 => whole(record).map(Fields::v1),
            _ => whole(record).map(Fields::v2),
        };
        fields.is_ok_and(|fields| fields.version == version && fields.is_known())
    };
    head.len() >= n_bytes && head.chunks_exact(n_bytes).take(N_PROBED).all(fit)
}

fn whole<const N: usize>(record: &[u8]) -> Result<&[u8; N], Flaw> {
    record.try_into().map_err(|_| {
        Flaw::new(format!("a record of {N} bytes"), format!("{} bytes", record.len()))
            .advise("the file is truncated or of another format")
    })
}

/// The fields of either version that matter.
struct Fields {
    command: u16,
    version: u16,
    bytes: u32,
    lbn: u64,
    time: u64,
}

impl Fields {
    fn v1(record: &[u8; 32]) -> Self {
        Self {
            bytes: u32::from_le_bytes(part(record, 4)),
            command: u16::from_le_bytes(part(record, 12)),
            version: u16::from_le_bytes(part(record, 14)) >> 8,
            lbn: u64::from_le_bytes(part(record, 16)),
            time: u64::from_le_bytes(part(record, 24)),
        }
    }

    fn v2(record: &[u8; 40]) -> Self {
        Self {
            command: u16::from_le_bytes(part(record, 0)),
            version: u16::from_le_bytes(part(record, 2)) >> 8,
            bytes: u32::from_le_bytes(part(record, 8)),
            lbn: u64::from_le_bytes(part(record, 16)),
            time: u64::from_le_bytes(part(record, 24)),
        }
    }

    fn is_known(&self) -> bool {
        let code = u8::try_from(self.command);
        code.is_ok_and(|code| {
            cloudphysics::operation(code).is_some() || cloudphysics::moves_no_data(code)
        })
    }

    fn parse(&self, version: u16, unit: TimeUnit) -> Result<Line<'static>, Flaw> {
        if self.version != version {
            let found = format!("version {}", self.version);
            return Err(Flaw::new(format!("a record of version {version}"), found)
                .advise("the file is damaged here or of another format"));
        }
        let code = u8::try_from(self.command).ok();
        let Some(op) = code.and_then(cloudphysics::operation) else {
            if code.is_some_and(cloudphysics::moves_no_data) {
                return Ok(Line::Other("SCSI commands without data (inquiry and the like)"));
            }
            let found = format!("operation code {:#x}", self.command);
            return Err(Flaw::new(cloudphysics::ACCEPTED, found));
        };
        let at_ns = self.time.checked_mul(10_u64.pow(unit.digits())).ok_or_else(|| {
            Flaw::new("a time below 2^64 ns (584 years)", format!("{} {unit}", self.time))
                .advise("name the right time unit")
        })?;
        let request = match op {
            OpKind::Flush => Request { at_ns, ..Request::new(op, Lba(0), 0) },
            _ => {
                let sectors = cloudphysics::sectors("the length", u64::from(self.bytes))?;
                fields::request(at_ns, op, self.lbn, sectors)?
            }
        };
        Ok(Row::new(request, None).into())
    }
}

fn part<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&record[at..at + N]);
    out
}
