//! The command line.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use flashwise_workload::{BlkAction, Columns, DeviceMode, FitMode, Format, TimeUnit, TraceOptions};

/// Carries what a file system knows about a file down to the flash die that stores
/// it, and shows what that is worth.
#[derive(Debug, Parser)]
#[command(name = "flashwise", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Replay a block trace, fio jobs or an application on a modelled drive
    Replay(Box<ReplayArgs>),
    /// List, explain or make drives
    Device(DeviceArgs),
    /// Find the journal of a file system (ext2 to ext4, XFS) in the image of a device
    Journal(crate::journal::JournalArgs),
    /// Run a study: experiments beside their published figures
    Study(crate::study::StudyArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Trace (plain, gzip, xz or zstd), fio job (*.fio), or application with settings, for
    /// example varmail or varmail,files=20000 (see --list)
    #[arg(required_unless_present = "list")]
    input: Option<PathBuf>,
    /// List the applications with their settings, and the options of --fs
    #[arg(long)]
    pub(crate) list: bool,
    /// File system of an application, for example ext4,data=journal [default: ext4]
    #[arg(long, value_name = "FS")]
    pub(crate) fs: Option<String>,
    /// Print what was understood of a trace, and replay nothing
    #[arg(long)]
    pub(crate) inspect: bool,
    /// Format of the trace, for example msr or blkparse; a wrong name lists all [default: detected]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// Columns of a trace in no known format, for example time:us,op,lba:512,size:bytes,-,device
    #[arg(long)]
    pub(crate) columns: Option<Columns>,
    /// Unit of the time column: s, ms, us, ns or 100ns [default: as the format defines]
    #[arg(long)]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Keep only this device (disk, volume, LUN, file) of a trace with several; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) select: Vec<String>,
    /// How devices of one trace share the address space: separate or shared [default: separate; mqsim: shared]
    #[arg(long, value_name = "HOW")]
    pub(crate) trace_devices: Option<DeviceMode>,
    /// Event of a blkparse text that is the arrival of a request: Q, D or C
    #[arg(long, default_value = "Q", value_name = "ACTION")]
    pub(crate) blkparse_action: BlkAction,
    /// Leave out and report up to this many bad lines of a trace
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) skip_bad: u64,
    /// Rows looked ahead to put times in order [default: 4096; mqsim, cloudphysics: 0]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(..=16_777_216))]
    pub(crate) reorder: Option<u32>,
    /// Preset, preset file (TOML) or saved drive
    #[arg(long, default_value = "tlc-slc")]
    pub(crate) device: String,
    /// Change one key of the preset; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Placement policy, for example none or relation=hints; repeatable, one row each [default: none]
    #[arg(long = "policy")]
    pub(crate) policies: Vec<String>,
    /// What to do with addresses beyond the drive: wrap, compact or reject
    #[arg(long, default_value = "compact")]
    pub(crate) fit: FitMode,
    /// Start from a blank drive: neither aged nor filled where the trace reads
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Requests in flight: replays a trace in a closed loop instead of by its times; overrides iodepth of all jobs
    #[arg(long, value_name = "N")]
    pub(crate) queue_depth: Option<u32>,
    /// Factor on the times of a trace (2: half the rate)
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", allow_negative_numbers = true)]
    pub(crate) time_scale: f64,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the aged drive to a file, which --device takes
    #[arg(long, value_name = "FILE")]
    pub(crate) save_drive: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) journal: crate::journal::TagArgs,
    #[command(flatten)]
    pub(crate) watch: crate::watch::WatchArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure the simulator itself: CPU time, pages per CPU second
    #[arg(long)]
    pub(crate) timing: bool,
}

impl ReplayArgs {
    /// What is replayed.
    pub(crate) fn input(&self) -> &Path {
        self.input.as_deref().unwrap_or(Path::new(""))
    }

    /// How to read the trace.
    pub(crate) fn trace_options(&self) -> TraceOptions {
        TraceOptions {
            format: self.format,
            columns: self.columns.clone(),
            time_unit: self.time_unit,
            blkparse_action: self.blkparse_action,
            devices: self.trace_devices,
            select: self.select.clone(),
            skip_bad: self.skip_bad,
            reorder_rows: self.reorder.map(|rows| rows as usize),
            ..TraceOptions::default()
        }
    }

    /// Options that say how to read a trace and were given, with what they are about.
    pub(crate) fn given_trace_options(&self) -> Vec<&'static str> {
        let given = [
            (self.format.is_some(), "--format"),
            (self.columns.is_some(), "--columns"),
            (self.time_unit.is_some(), "--time-unit"),
            (!self.select.is_empty(), "--select"),
            (self.trace_devices.is_some(), "--trace-devices"),
            (self.blkparse_action != BlkAction::default(), "--blkparse-action"),
            (self.skip_bad > 0, "--skip-bad"),
            (self.reorder.is_some(), "--reorder"),
        ];
        given.into_iter().filter(|(given, _)| *given).map(|(_, name)| name).collect()
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    pub(crate) verb: DeviceVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeviceVerb {
    /// List the presets
    List,
    /// Explain a drive: every number with its source, and what follows from them
    Show {
        /// Preset, preset file or saved drive
        preset: String,
        /// Change one key; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write a preset for a capacity, or for a drive of this machine
    New(Box<crate::device_new::NewArgs>),
}
