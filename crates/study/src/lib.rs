//! Studies: fixed sets of experiments on modelled drives, with the published figure beside
//! each of ours.
//!
//! A study is a list of cells. A cell is a pure function from its parameters to lines
//! ([`Line`]), so cells run side by side and the result is the same with any number of
//! threads. Nothing is printed here and no clock is read.

mod cell;
mod line;
mod table;

pub mod fragmentation;

pub use cell::{Cell, run_cells};
pub use line::{Line, Point, WorkloadRow};
pub use table::Table;

use flashwise_hostfs::HostError;
use flashwise_ssd::{CommandError, PresetError};

/// Why a study could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A device could not be built.
    #[error("{0}")]
    Preset(#[from] PresetError),
    /// A drive refused a command.
    #[error("{what}: {source}")]
    Command {
        /// What was being done.
        what: String,
        /// Why it was refused.
        source: CommandError,
    },
    /// A call of an application failed.
    #[error("{what}: {call}")]
    Call {
        /// What was being done.
        what: String,
        /// The call, and how it ended.
        call: String,
    },
    /// A file has more data than the drive has room for.
    #[error(
        "a file of {file_mib} MiB, expected at most {most_mib} MiB, for which the drive \
         ({preset}) has room: choose a smaller file"
    )]
    TooLarge {
        /// Size of the file \[MiB\].
        file_mib: u64,
        /// Room \[MiB\].
        most_mib: u64,
        /// The drive.
        preset: &'static str,
    },
    /// The host stopped, for example for want of space.
    #[error("{what}: {source}")]
    Host {
        /// What was being done.
        what: String,
        /// Why.
        source: HostError,
    },
}

/// What a study found.
#[derive(Clone, Debug, Default)]
pub struct Study {
    /// Its lines, in the order of its cells.
    pub lines: Vec<Line>,
}

impl Study {
    /// Lines of workloads.
    pub fn rows(&self) -> impl Iterator<Item = &WorkloadRow> {
        self.lines.iter().filter_map(|line| match line {
            Line::Workload(row) => Some(&**row),
            Line::Point(_) => None,
        })
    }

    /// Names of the sweeps.
    pub fn sweeps(&self) -> Vec<&'static str> {
        let mut sweeps = vec![];
        for line in &self.lines {
            if let Line::Point(p) = line
                && !sweeps.contains(&p.sweep)
            {
                sweeps.push(p.sweep);
            }
        }
        sweeps
    }

    /// Points of one sweep.
    pub fn points<'a>(&'a self, sweep: &'a str) -> impl Iterator<Item = &'a Point> {
        self.lines.iter().filter_map(move |line| match line {
            Line::Point(p) if p.sweep == sweep => Some(p),
            _ => None,
        })
    }
}
