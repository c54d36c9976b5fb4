//! Why a drive cannot be designed.

use flashwise_ssd::PresetError;

use crate::size::SizeError;

/// A drive that cannot be made as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// The model is not a preset, or a change to it cannot be read.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// A key makes no drive.
    #[error("{what}: {source}")]
    Refused {
        /// The option that set the key, or else capacity and model.
        what: String,
        /// What is wrong.
        #[source]
        source: PresetError,
    },
    /// Not a size.
    #[error("--capacity: {0}")]
    Size(#[from] SizeError),
    /// Options that exclude each other, or a value that no drive can have.
    #[error("{0}")]
    Combination(String),
}
