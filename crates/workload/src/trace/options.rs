//! What a caller may say about a trace: its format, its unit of time, which of its
//! devices and rows count, and how much data to accept. All of it has a default that
//! reads the common case.

use std::fmt;
use std::str::FromStr;

use super::{Columns, DeviceMode, Format};
use crate::{WorkloadError, names};

/// Most data a compressed trace may expand to by default \[bytes\], assumed: above
/// any published trace file, and an end for a decompression bomb.
const MAX_EXPANDED_BYTES: u64 = 64 << 30;

/// Unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// s
    Seconds,
    /// ms
    Milliseconds,
    /// us
    Microseconds,
    /// ns
    Nanoseconds,
    /// 100 ns, the unit of Windows file times
    HundredNanoseconds,
}

impl TimeUnit {
    /// All units.
    pub const ALL: [Self; 5] = [
        Self::Seconds,
        Self::Milliseconds,
        Self::Microseconds,
        Self::Nanoseconds,
        Self::HundredNanoseconds,
    ];

    /// Decimal digits from this unit down to 1 ns.
    pub const fn digits(self) -> u32 {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
            Self::Microseconds => 3,
            Self::Nanoseconds => 0,
            Self::HundredNanoseconds => 2,
        }
    }

    /// The symbol users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::HundredNanoseconds => "100ns",
        }
    }

    /// A time as this unit's decimal number, exact to the nanosecond and without
    /// trailing zeroes.
    pub(crate) fn decimal(self, ns: u64) -> String {
        let per_unit = 10_u64.pow(self.digits());
        let (whole, below) = (ns / per_unit, ns % per_unit);
        if below == 0 {
            return whole.to_string();
        }
        let below = format!("{below:0width$}", width = self.digits() as usize);
        format!("{whole}.{}", below.trim_end_matches('0'))
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TimeUnit {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unit = Self::ALL.into_iter().find(|unit| unit.name() == text);
        unit.ok_or_else(|| names::unknown("time unit", text, &Self::ALL.map(Self::name)))
    }
}

/// Which event of a request counts as its arrival in a blkparse text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlkAction {
    /// `Q`: the block layer took the request, in the order of the host.
    #[default]
    Queue,
    /// `D`: the driver sent it to the device, after merging and scheduling.
    Issue,
    /// `C`: the device completed it.
    Complete,
}

impl BlkAction {
    /// All actions.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Issue, Self::Complete];

    /// The letter that blkparse prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "Q",
            Self::Issue => "D",
            Self::Complete => "C",
        }
    }
}

impl fmt::Display for BlkAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BlkAction {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let action = Self::ALL.into_iter().find(|action| action.name() == text);
        action.ok_or_else(|| names::unknown("blkparse action", text, &Self::ALL.map(Self::name)))
    }
}

/// How to read a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Format; `None`: told by the first line.
    pub format: Option<Format>,
    /// What the columns of a [`Format::Custom`] trace hold.
    pub columns: Option<Columns>,
    /// Unit of the time column; `None`: as the format defines it.
    pub time_unit: Option<TimeUnit>,
    /// Which lines of a blkparse text count.
    pub blkparse_action: BlkAction,
    /// How several devices share the address space; `None`: as the format does.
    pub devices: Option<DeviceMode>,
    /// Names of the devices whose rows are kept; empty: all.
    pub select: Vec<String>,
    /// Most bad lines that are left out and counted instead of being an error.
    pub skip_bad: u64,
    /// Rows looked ahead to bring times in order; `None`: as the format needs.
    pub reorder_rows: Option<usize>,
    /// Most data a compressed file may expand to \[bytes\]. Default: 64 GiB.
    pub max_expanded_bytes: u64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            format: None,
            columns: None,
            time_unit: None,
            blkparse_action: BlkAction::default(),
            devices: None,
            select: Vec::new(),
            skip_bad: 0,
            reorder_rows: None,
            max_expanded_bytes: MAX_EXPANDED_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_slips_are_answered() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        for unit in TimeUnit::ALL {
            assert_eq!(unit.to_string().parse::<TimeUnit>().unwrap(), unit);
        }
        for action in BlkAction::ALL {
            assert_eq!(action.to_string().parse::<BlkAction>().unwrap(), action);
        }
        assert_eq!("cloudphysics-csv".parse::<Format>().unwrap(), Format::CloudPhysicsCsv);
        let text = "mqism".parse::<Format>().unwrap_err().to_string();
        assert!(text.contains("did you mean `mqsim`?"), "{text}");
        assert!(text.contains("mqsim, cloudphysics"), "{text}");
        let text = "fortnight".parse::<TimeUnit>().unwrap_err().to_string();
        assert!(text.contains("s, ms, us, ns") && !text.contains("did you mean"), "{text}");
    }

    #[test]
    fn times_print_exactly() {
        assert_eq!(TimeUnit::Seconds.decimal(1_500_000_000), "1.5");
        assert_eq!(TimeUnit::Seconds.decimal(1), "0.000000001");
        assert_eq!(TimeUnit::Milliseconds.decimal(2_000_000), "2");
        assert_eq!(TimeUnit::Microseconds.decimal(1_001), "1.001");
        assert_eq!(TimeUnit::HundredNanoseconds.decimal(1_234), "12.34");
        assert_eq!(TimeUnit::Nanoseconds.decimal(u64::MAX), u64::MAX.to_string());
    }
}
