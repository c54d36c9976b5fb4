//! What can be wrong with a configuration, and with a run.

use thiserror::Error;

use crate::layout::LayoutError;

/// A file-system description that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such file system.
    #[error(
        "no file system «{found}» is modelled; expected ext4, with options after commas, for example ext4,data=journal"
    )]
    Kind {
        /// What was given.
        found: String,
    },
    /// No such option.
    #[error("no option «{found}»{hint}; there are {known}")]
    Key {
        /// What was given.
        found: String,
        /// Did you mean.
        hint: String,
        /// What there is.
        known: String,
    },
    /// An option given twice.
    #[error("{key} is given twice; leave one out")]
    Twice {
        /// Option.
        key: &'static str,
    },
    /// A value that is none.
    #[error("{key}={found}: expected {expected}")]
    Value {
        /// Option.
        key: &'static str,
        /// What was given.
        found: String,
        /// What it takes.
        expected: &'static str,
    },
    /// Options that exclude each other.
    #[error("{why}")]
    Together {
        /// Which, and what to do.
        why: &'static str,
    },
}

impl ConfigError {
    pub(crate) fn unknown<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.collect();
        let near = known
            .iter()
            .map(|key| (strsim::damerau_levenshtein(found, key), key))
            .min()
            .filter(|(distance, key)| *distance <= key.len().max(found.len()) / 3);
        let hint = near.map_or(String::new(), |(_, key)| format!("; did you mean «{key}»?"));
        Self::Key { found: found.to_owned(), hint, known: known.join(", ") }
    }
}

/// A run that cannot start or go on.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum HostError {
    /// The device does not take the file system.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The file system is larger than the device.
    #[error(
        "size={size_bytes} bytes: the device has {device_bytes} bytes; choose a smaller size, or leave it out to use all of the device"
    )]
    Size {
        /// Asked for.
        size_bytes: u64,
        /// There are.
        device_bytes: u64,
    },
    /// A call of the preparation failed.
    #[error(
        "preparing the files failed: {call}: {outcome}; use fewer or smaller files, or a larger device"
    )]
    Prepare {
        /// Which call.
        call: String,
        /// How it ended.
        outcome: String,
    },
    /// All threads wait for each other.
    #[error("after {at_s} s all threads of the application wait for each other")]
    Stalled {
        /// When \[s\].
        at_s: u64,
    },
}
