//! The fragmentation study: what append and overwrite hints are worth (Jun et al., "We
//! Ain't Afraid of No File Fragmentation", FAST'24), reproduced and taken further.
//!
//! Files are written through the modelled ext4, so that their pieces, their requests and the
//! hints are those a file system gives; they are read with one host gap for each kind of
//! program.

mod beyond;
mod device;
mod experiment;
pub mod extents;
mod figures;
mod fileserver;
pub mod layout;
pub mod oracle;
mod page;
mod plan;
mod published;
mod raw;
mod read;
mod small_appends;
mod sqlite;
mod sweeps;
mod write;

use flashwise_ssd::RelationPolicy;

use crate::{Cell, Study, StudyError, run_cells};

use device::Device;
use experiment::Experiment;
use fileserver::Server;
use raw::{Between, Kind};

pub use page::{NAME, POINTS_LISTED, Real, files};
pub use published::{PUBLISHED, Published};

/// How the study is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer and smaller runs: every experiment, coarser.
    pub quick: bool,
    /// Seed of everything random.
    pub seed: u64,
}

/// Preset of the drive that published figures are of.
pub const PRESET: &str = "fast24";

/// The same drive with two planes: where `chain` has something to choose.
const TWO_PLANES: &str = "fast24-2p";

/// What is changed in it for an aged drive: a quarter of the size ages in a quarter of the
/// time.
const AGED: &[&str] = &["geometry.blocks_per_plane=2048"];

/// The cells of the study.
pub fn cells(options: &Options) -> Vec<Cell> {
    let paper = Device::new(PRESET, &[]);
    let aged = Device::new(PRESET, AGED);
    let policies = [RelationPolicy::None, RelationPolicy::Hints];
    let mut cells = vec![];
    for experiment in experiments(options) {
        let (device, aged) = (paper.clone(), aged.clone());
        let name = format!("{} on {}", experiment.workload, device.name());
        cells.push(Cell::new(name, move || experiment.run(&device, &policies, &aged, &policies)));
    }
    let two_planes = Device::new(TWO_PLANES, &[]);
    let two_planes_aged = Device::new(TWO_PLANES, AGED);
    let policies = RelationPolicy::ALL.map(|(_, policy)| policy);
    // The other drive shows what ageing does to the others.
    let chain = [RelationPolicy::Chain];
    for experiment in experiments(options) {
        let (device, aged) = (two_planes.clone(), two_planes_aged.clone());
        let name = format!("{} on {}", experiment.workload, device.name());
        cells.push(Cell::new(name, move || experiment.run(&device, &policies, &aged, &chain)));
    }
    cells.extend(sweeps::cells(options));
    cells.extend(small_appends::cells(options));
    cells.extend(beyond::cells(options.quick, options.seed, &aged));
    cells
}

/// The workloads of the paper's Figure 12.
fn experiments(options: &Options) -> Vec<Experiment> {
    let mut all: Vec<Experiment> = [
        ("append-worst", Kind::Append, false),
        ("append-random", Kind::Append, true),
        ("overwrite-worst", Kind::Overwrite, false),
        ("overwrite-random", Kind::Overwrite, true),
    ]
    .into_iter()
    .map(|(workload, kind, is_random)| raw_file(workload, kind, is_random, options))
    .collect();
    all.push(database(options));
    let n_files = if options.quick { 500 } else { 10_000 };
    let (name, small) = ("fileserver", "fileserver-small");
    all.push(file_server(name, "fileserver-contiguous", 32 << 10, n_files, options));
    all.push(file_server(small, "fileserver-small-contiguous", 16 << 10, n_files, options));
    all
}

fn moved_part(options: &Options) -> f64 {
    if options.quick { 0.25 } else { 0.5 }
}

fn raw_file(workload: &'static str, kind: Kind, is_random: bool, options: &Options) -> Experiment {
    let first = options.seed;
    let between = move |seed| match is_random {
        true => Between::Random { seed: first + seed },
        false => Between::Worst,
    };
    Experiment {
        workload,
        contiguous: "contiguous",
        contiguous_plan: Box::new(|| raw::plan(Kind::Contiguous, Between::Worst)),
        plan: Box::new(move |seed| raw::plan(kind, between(seed))),
        n_seeds: match (is_random, options.quick) {
            (false, _) => 1,
            (true, true) => 2,
            (true, false) => 10,
        },
        n_files: 1,
        n_reads: 10,
        reader: raw::READER,
        moved_part: moved_part(options),
        fs_bytes: 2 << 30,
    }
}

fn database(options: &Options) -> Experiment {
    let n_rows = if options.quick { 2_000 } else { 10_000 };
    Experiment {
        workload: "sqlite",
        contiguous: "sqlite-contiguous",
        contiguous_plan: Box::new(move || sqlite::copied(n_rows)),
        plan: Box::new(move |_| sqlite::inserted(n_rows)),
        n_seeds: 1,
        n_files: 1,
        n_reads: 1,
        reader: sqlite::READER,
        moved_part: moved_part(options),
        fs_bytes: 2 << 30,
    }
}

fn file_server(
    workload: &'static str,
    contiguous: &'static str,
    append: u64,
    n_files: u32,
    options: &Options,
) -> Experiment {
    let server = Server { n_files, append, seed: options.seed };
    Experiment {
        workload,
        contiguous,
        contiguous_plan: Box::new(move || server.copied()),
        plan: Box::new(move |_| server.fragmented()),
        n_seeds: 1,
        n_files: n_files as usize,
        n_reads: 1,
        reader: fileserver::READER,
        moved_part: moved_part(options),
        fs_bytes: 9 << 30,
    }
}

/// Runs the study on `n_threads` threads; `done` is told the name of each cell that ended.
pub fn run(
    options: &Options,
    n_threads: usize,
    done: impl Fn(&str) + Sync,
) -> Result<Study, StudyError> {
    Ok(Study { lines: run_cells(&cells(options), n_threads, done)? })
}
