//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use flashwise_workload::{FitMode, Format, TimeUnit};

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
    /// Replay a block trace or a fio job on a modelled drive
    Replay(ReplayArgs),
    /// List, explain or make drives
    Device(DeviceArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Trace (plain, gzip or zstd) or fio job (*.fio)
    pub(crate) input: PathBuf,
    /// Format of the trace: mqsim or cloudphysics [default: detected]
    #[arg(long)]
    pub(crate) format: Option<Format>,
    /// Unit of the time column: s, ms, us or ns [default: as the format defines]
    #[arg(long)]
    pub(crate) time_unit: Option<TimeUnit>,
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
    /// Requests in flight: replays a trace in a closed loop instead of by its times; overrides iodepth
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
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure the simulator itself: CPU time, pages per CPU second
    #[arg(long)]
    pub(crate) timing: bool,
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
