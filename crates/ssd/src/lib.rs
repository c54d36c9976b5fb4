//! A solid-state drive in virtual time.
//!
//! [`Ssd::submit`] takes a command at a moment and says when it is done; that
//! answer is final and `now` never goes back. Behind it stand the host link, the
//! write buffer, the FTL and the flash. Contents can be kept (in memory or a sparse
//! file) at their physical place, so that a power failure ([`Ssd::power_cut`]) is
//! recovered from the media alone.
//!
//! ```
//! use flashwise_hint::{Lba, WriteHint};
//! use flashwise_ssd::{Command, DeviceConfig, Options, Ssd};
//!
//! let cfg = DeviceConfig::open("tiny", &[])?;
//! let mut ssd = Ssd::new(cfg, Options::default())?;
//! let write = Command::Write { lba: Lba(0), sectors: 8, fua: false, hint: WriteHint::NONE };
//! let written_ns = ssd.submit(&write, 0)?;
//! let read_ns = ssd.submit(&Command::Read { lba: Lba(0), sectors: 8 }, written_ns)?;
//! assert!(read_ns > written_ns);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants: a read returns the last acknowledged write; requests longer than
//! the device takes, out of range or naming a handle it lacks are refused, never
//! cut short; at queue depth 1 a service time is the sum of its parts.

mod config;
mod data;
mod device;
mod error;
mod power;
mod preset;
mod snapshot;

pub use config::{
    BufferConfig, DeviceConfig, FaultConfig, FirmwareConfig, FlashConfig, FtlKeys, GeometryConfig,
    HostConfig, KEYS, LinkConfig, PreconditionConfig, SlcConfig, WearConfig,
};
pub use device::{Command, Options, Ssd, SsdCounters};
pub use error::{CommandError, PresetError, SnapshotError};
pub use flashwise_ftl::{
    ConfigError, Contents, FtlConfig, FtlCounters, Health, Lpn, RelationPolicy, VictimPolicy,
};
pub use flashwise_nand::{
    BlockId, CellMode, Counters as NandCounters, DieId, Layout, PageOrder, Timing,
};
pub use power::PoweredOff;
pub use preset::{PRESETS, did_you_mean, read_preset};
pub use snapshot::is_saved_drive;
