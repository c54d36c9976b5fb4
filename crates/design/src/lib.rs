//! Drives of one's own: preset files that are written, explained and taken from a
//! real drive. Everything here is a function of its arguments: no drive is built, so
//! the memory that a large one takes is not needed.
//!
//! * [`Annotated`]: a preset with the comment of each key, which is its source.
//! * [`design`]: a preset for a capacity, like a model in everything else.
//! * [`Identity`]: what an NVMe drive says about itself, decoded.
//! * [`Derived`]: what follows from a preset: space, rates, write amplification, life.

mod annotated;
mod cells;
mod derive;
mod error;
mod formula;
mod identify;
mod meaning;
mod new;
mod size;

pub use annotated::Annotated;
pub use derive::{Derived, Fact, Rates};
pub use error::DesignError;
pub use formula::greedy_waf;
pub use identify::{Controller, IDENTIFY_BYTES, Identity, IdentityError, Namespace};
pub use meaning::{Meaning, meaning};
pub use new::{Ask, Wish, design};
pub use size::{SizeError, parse_size};
