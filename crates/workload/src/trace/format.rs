//! The trace formats: what each is called, what a row holds, and what is done by
//! default with its times and devices. Data only; how a row is read stands in the
//! file of the format.

use std::fmt;
use std::str::FromStr;

use super::{DeviceMode, TimeUnit};
use crate::{WorkloadError, names};

/// Rows that are looked ahead to bring recorded times in order, assumed: several
/// times the requests that one host has in flight (Linux allows 1,023 per queue of
/// a drive by default), since a row is written when its request ends.
const REORDER_ROWS: usize = 4096;

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Five blank-separated columns, as MQSim reads them.
    Mqsim,
    /// `version,time,op,size,lbn` with a header, as the CloudPhysics sample.
    CloudPhysicsCsv,
    /// CloudPhysics binary records of 32 bytes.
    Vscsi1,
    /// CloudPhysics binary records of 40 bytes.
    Vscsi2,
    /// MSR Cambridge, seven comma-separated columns.
    Msr,
    /// Alibaba block traces of 2020, five comma-separated columns.
    Alibaba,
    /// Tencent cloud block storage, five comma-separated columns.
    Tencent,
    /// SYSTOR '17 (Fujitsu virtual desktops), six comma-separated columns.
    Systor17,
    /// FIU I/O deduplication traces, nine blank-separated columns.
    Fiu,
    /// Storage Performance Council (UMass), at least five comma-separated columns.
    Spc,
    /// What fio's `write_iolog` writes, version 2 or 3.
    FioIolog,
    /// Default text output of blkparse.
    Blkparse,
    /// Columns that the user describes ([`crate::Columns`]).
    Custom,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 13] = [
        Self::Mqsim,
        Self::CloudPhysicsCsv,
        Self::Vscsi1,
        Self::Vscsi2,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Systor17,
        Self::Fiu,
        Self::Spc,
        Self::FioIolog,
        Self::Blkparse,
        Self::Custom,
    ];

    /// The name users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mqsim => "mqsim",
            Self::CloudPhysicsCsv => "cloudphysics",
            Self::Vscsi1 => "vscsi1",
            Self::Vscsi2 => "vscsi2",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Systor17 => "systor17",
            Self::Fiu => "fiu",
            Self::Spc => "spc",
            Self::FioIolog => "fio-iolog",
            Self::Blkparse => "blkparse",
            Self::Custom => "custom",
        }
    }

    /// One row in words.
    pub const fn columns(self) -> &'static str {
        match self {
            Self::Mqsim => "time device lba sectors type",
            Self::CloudPhysicsCsv => "version,time,op,size,lbn",
            Self::Vscsi1 => "binary records of 32 bytes",
            Self::Vscsi2 => "binary records of 40 bytes",
            Self::Msr => "timestamp,hostname,disk,Read|Write,offset,size,response",
            Self::Alibaba => "device,R|W,offset,length,timestamp",
            Self::Tencent => "timestamp,offset,size,0|1,volume",
            Self::Systor17 => "timestamp,response,R|W,lun,offset,size",
            Self::Fiu => "time pid process lba sectors R|W major minor md5",
            Self::Spc => "asu,lba,size,r|w,timestamp",
            Self::FioIolog => "«fio version 2 iolog» or 3, then file action offset length",
            Self::Blkparse => "major,minor cpu seq time pid action rwbs sector + sectors",
            Self::Custom => "columns described by --columns",
        }
    }

    /// Names of the columns in a header line, if the format may have one.
    pub(crate) const fn header(self) -> Option<&'static str> {
        match self {
            Self::CloudPhysicsCsv => Some("version,time,op,size,lbn"),
            Self::Msr => Some("timestamp,hostname,disknumber,type,offset,size,responsetime"),
            Self::Alibaba => Some("deviceid,opcode,offset,length,timestamp"),
            Self::Tencent => Some("timestamp,offset,size,iotype,volumeid"),
            Self::Systor17 => Some("timestamp,response,iotype,lun,offset,size"),
            Self::Spc => Some("asu,lba,size,opcode,timestamp"),
            _ => None,
        }
    }

    /// Unit of the time column, as the format defines it.
    pub const fn time_unit(self) -> TimeUnit {
        match self {
            Self::Mqsim | Self::Fiu => TimeUnit::Nanoseconds,
            Self::Msr => TimeUnit::HundredNanoseconds,
            Self::Alibaba | Self::FioIolog | Self::Vscsi1 | Self::Vscsi2 => TimeUnit::Microseconds,
            Self::CloudPhysicsCsv
            | Self::Tencent
            | Self::Systor17
            | Self::Spc
            | Self::Blkparse
            | Self::Custom => TimeUnit::Seconds,
        }
    }

    /// What is in a row and has no use here, for the notices.
    pub(crate) const fn unused_columns(self) -> Option<&'static str> {
        match self {
            Self::Msr | Self::Systor17 => Some("response times"),
            Self::Vscsi2 => Some("response times, serial numbers and scatter-gather counts"),
            Self::Vscsi1 => Some("serial numbers and scatter-gather counts"),
            Self::Fiu => Some("process numbers, process names and hashes"),
            _ => None,
        }
    }

    /// How several devices of one trace share the address space by default.
    pub const fn device_mode(self) -> DeviceMode {
        match self {
            Self::Mqsim => DeviceMode::Shared,
            _ => DeviceMode::Separate,
        }
    }

    /// How many rows may be looked ahead to bring times in order, by default. The
    /// inputs of simulators are written in order; recordings are not always.
    pub const fn reorder_rows(self) -> usize {
        match self {
            Self::Mqsim | Self::CloudPhysicsCsv => 0,
            _ => REORDER_ROWS,
        }
    }

    /// Length of a record, if the format is binary \[bytes\].
    pub(crate) const fn record_bytes(self) -> Option<usize> {
        match self {
            Self::Vscsi1 => Some(32),
            Self::Vscsi2 => Some(40),
            _ => None,
        }
    }

    /// How to sort a file of this format by time and keep the order of equals.
    pub(crate) const fn sort_advice(self) -> &'static str {
        match self {
            Self::Mqsim | Self::Fiu | Self::FioIolog => {
                "sort the rows by time first, for example with `sort -s -n -k1,1`"
            }
            Self::CloudPhysicsCsv => {
                "sort the rows by time first, for example with `sort -s -t, -k2,2n`"
            }
            Self::Msr | Self::Tencent | Self::Systor17 => {
                "sort the rows by time first, for example with `sort -s -t, -k1,1n`"
            }
            Self::Alibaba | Self::Spc => {
                "sort the rows by time first, for example with `sort -s -t, -k5,5n`"
            }
            Self::Blkparse => "sort the rows by time first, for example with `sort -s -n -k4,4`",
            Self::Vscsi1 | Self::Vscsi2 | Self::Custom => "sort the rows by time first",
        }
    }

    /// All formats with their columns, for messages.
    pub(crate) fn catalogue() -> String {
        let each = Self::ALL.map(|format| format!("{format}: {}", format.columns()));
        each.join("; ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "cloudphysics-csv" {
            return Ok(Self::CloudPhysicsCsv);
        }
        let format = Self::ALL.into_iter().find(|format| format.name() == text);
        format.ok_or_else(|| names::unknown("trace format", text, &Self::ALL.map(Self::name)))
    }
}
