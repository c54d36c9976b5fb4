//! The fragmentation study: what append and overwrite hints are worth (Jun et al., "We
//! Ain't Afraid of No File Fragmentation", FAST'24), reproduced and taken further.

use crate::{Cell, Study, StudyError, run_cells};

/// How the study is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and smaller runs: every experiment, coarser.
    pub quick: bool,
    /// Seed of everything random.
    pub seed: u64,
}

/// The cells of the study.
pub fn cells(_options: &Options) -> Vec<Cell> {
    vec![]
}

/// Runs the study on `n_threads` threads; `done` is told the name of each cell that ended.
pub fn run(
    options: &Options,
    n_threads: usize,
    done: impl Fn(&str) + Sync,
) -> Result<Study, StudyError> {
    Ok(Study { lines: run_cells(&cells(options), n_threads, done)? })
}
