//! What can be wrong with a preset, a command or a saved drive.

use flashwise_ftl::{CodecError, ConfigError, Health, StoreError};

/// A preset, or a `--set`, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresetError {
    /// No preset or file of this name.
    #[error("no device preset or file «{name}»; presets: {known}{hint}")]
    NoSuchPreset {
        /// Name asked for.
        name: String,
        /// Presets there are.
        known: String,
        /// Did you mean.
        hint: String,
    },
    /// The file could not be read.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not TOML, or a value of the wrong type.
    #[error("{place}: {message}")]
    Syntax {
        /// File and line.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A key that does not exist.
    #[error("{place}: unknown key «{key}»{hint} (all keys: flashwise device show fast24)")]
    UnknownKey {
        /// File and line, or `--set`.
        place: String,
        /// The key.
        key: String,
        /// Did you mean.
        hint: String,
    },
    /// A key is missing.
    #[error(
        "{place}: key «{key}» is missing; copy a preset (flashwise device show fast24) and change it"
    )]
    MissingKey {
        /// File.
        place: String,
        /// The key.
        key: String,
    },
    /// A bare key that several sections have.
    #[error("--set {key}: several keys end so: {candidates}; name the section")]
    AmbiguousKey {
        /// The key.
        key: String,
        /// Keys it could be.
        candidates: String,
    },
    /// Not of the form key=value.
    #[error("--set «{text}»: expected key=value, for example --set geometry.channels=8")]
    NotAnAssignment {
        /// What was given.
        text: String,
    },
    /// A number out of range.
    #[error("{key} = {value}: expected {expected}")]
    Value {
        /// Key.
        key: String,
        /// Value found.
        value: f64,
        /// What would do.
        expected: String,
    },
    /// Not one of the names a key takes.
    #[error("{key} = «{value}»: expected one of {names}")]
    Choice {
        /// Key.
        key: String,
        /// Value found.
        value: String,
        /// What would do.
        names: String,
    },
    /// The numbers do not make a device.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl PresetError {
    pub(crate) fn value(key: &str, value: f64, expected: String) -> Self {
        Self::Value { key: key.to_owned(), value, expected }
    }
}

/// A command the device refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// Beyond the end of the namespace.
    #[error(
        "sectors {first}..{end} lie beyond the device, which has {capacity} sectors of 512 bytes"
    )]
    OutOfRange {
        /// First sector.
        first: u64,
        /// One past the last sector.
        end: u64,
        /// Sectors there are.
        capacity: u64,
    },
    /// Longer than the device takes.
    #[error(
        "a command of {sectors} sectors exceeds the {max} the device takes (host.mdts_kib): split it"
    )]
    TooLong {
        /// Sectors asked for.
        sectors: u32,
        /// Sectors taken.
        max: u32,
    },
    /// No sectors.
    #[error("a command of no sectors")]
    Empty,
    /// A placement handle the device lacks.
    #[error("placement handle {handle} asked for, but the device has {n_handles} (ftl.handles): 0..={}", n_handles - 1)]
    NoSuchHandle {
        /// Handle asked for.
        handle: u16,
        /// Handles there are.
        n_handles: u16,
    },
    /// The drive has no spare blocks left.
    #[error(
        "the drive is read-only: of {} blocks that failed ({} from the start, {} at a program, \
         {} at an erase) the last was its last spare one; what it holds can still be read",
        health.bad_blocks(), health.factory_bad, health.program_failures, health.erase_failures
    )]
    ReadOnly {
        /// State of its blocks.
        health: Health,
    },
    /// The buffer of a read or write is not whole sectors.
    #[error("{bytes} bytes are not a whole number of 512-byte sectors")]
    PartialSector {
        /// Bytes given.
        bytes: usize,
    },
    /// Contents are asked for but none are kept.
    #[error("the device keeps no contents: build it with Contents::Memory or Contents::File")]
    NoContents,
    /// Contents could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A saved drive that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Opening, reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// File.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Not a saved drive.
    #[error("{path}: not a saved drive (expected a file that starts with «{expected}»)")]
    NotADrive {
        /// File.
        path: String,
        /// Magic.
        expected: &'static str,
    },
    /// Saved by a version that kept other things.
    #[error(
        "{path}: saved by another version (expected a file that starts with «{expected}»): age \
         the drive again and save it"
    )]
    OtherVersion {
        /// File.
        path: String,
        /// Magic.
        expected: &'static str,
    },
    /// Damaged.
    #[error("{path}: {source}")]
    Codec {
        /// File.
        path: String,
        /// Why.
        #[source]
        source: CodecError,
    },
    /// The configuration inside does not make a device.
    #[error("{path}: {source}")]
    Preset {
        /// File.
        path: String,
        /// Why.
        #[source]
        source: PresetError,
    },
}
