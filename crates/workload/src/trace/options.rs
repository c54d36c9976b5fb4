//! What a caller may say about a trace: its format, its unit of time, and how much
//! data to accept. All of it has a default that reads the common case.

use std::fmt;
use std::str::FromStr;

use crate::{WorkloadError, names};

/// Most data a compressed trace may expand to by default \[bytes\], assumed: above
/// any published trace file, and an end for a decompression bomb.
const MAX_EXPANDED_BYTES: u64 = 64 << 30;

/// A trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Five blank-separated columns, as MQSim reads them.
    Mqsim,
    /// `version,time,op,size,lbn` with a header, as the CloudPhysics sample.
    CloudPhysicsCsv,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 2] = [Self::Mqsim, Self::CloudPhysicsCsv];

    /// The name users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mqsim => "mqsim",
            Self::CloudPhysicsCsv => "cloudphysics",
        }
    }

    /// One row in words.
    pub const fn columns(self) -> &'static str {
        match self {
            Self::Mqsim => "time device lba sectors type",
            Self::CloudPhysicsCsv => "version,time,op,size,lbn",
        }
    }

    /// Unit of the time column, as the format defines it.
    pub const fn time_unit(self) -> TimeUnit {
        match self {
            Self::Mqsim => TimeUnit::Nanoseconds,
            Self::CloudPhysicsCsv => TimeUnit::Seconds,
        }
    }

    /// Command that sorts a file of this format by time and keeps the order of equals.
    pub(crate) const fn sort_command(self) -> &'static str {
        match self {
            Self::Mqsim => "sort -s -n -k1,1",
            Self::CloudPhysicsCsv => "sort -s -t, -k2,2n",
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
        match text {
            "mqsim" => Ok(Self::Mqsim),
            "cloudphysics" | "cloudphysics-csv" => Ok(Self::CloudPhysicsCsv),
            _ => Err(names::unknown("trace format", text, &Self::ALL.map(Self::name))),
        }
    }
}

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
}

impl TimeUnit {
    /// All units.
    pub const ALL: [Self; 4] =
        [Self::Seconds, Self::Milliseconds, Self::Microseconds, Self::Nanoseconds];

    /// Decimal digits from this unit down to 1 ns.
    pub const fn digits(self) -> u32 {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
            Self::Microseconds => 3,
            Self::Nanoseconds => 0,
        }
    }

    /// The symbol users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
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

/// How to read a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Format; `None`: told by the first line.
    pub format: Option<Format>,
    /// Unit of the time column; `None`: as the format defines it.
    pub time_unit: Option<TimeUnit>,
    /// Most data a compressed file may expand to \[bytes\]. Default: 64 GiB.
    pub max_expanded_bytes: u64,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self { format: None, time_unit: None, max_expanded_bytes: MAX_EXPANDED_BYTES }
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
        assert_eq!(TimeUnit::Nanoseconds.decimal(u64::MAX), u64::MAX.to_string());
    }
}
