//! Appends of half a program unit: the open problem of the paper, and how much of the write
//! buffer its answer takes.
//!
//! The files are those of the small file server. They are read by the same ten threads, but
//! the host takes no time, so that nothing but the drive bounds them.

use flashwise_ssd::RelationPolicy;

use super::device::Device;
use super::experiment::Experiment;
use super::fileserver;
use super::read::Reader;
use super::{Options, TWO_PLANES, file_server};
use crate::{Cell, Line, Point, StudyError};

const READER: Reader = Reader { gap_ns: 0, one_at_a_time: false, ..fileserver::READER };
/// Values of `ftl.chain_kib`. The last is half of the buffer, the most that is used.
const CHAIN_KIB: [u32; 8] = [0, 32, 64, 128, 256, 512, 1024, 2048];
/// A die that senses a row of pages as one: a piece has to wait for its neighbour.
const ROWS: &[&str] = &["flash.independent_plane_reads=false"];
/// Sweep, what is changed in the preset, and files that grow side by side: where a piece has
/// to wait for its neighbour, it is their number that counts.
const CASES: [(&str, &[&str], u32); 4] = [
    ("small-appends", &[], N_FILES),
    ("small-appends-rows", ROWS, N_FILES),
    ("small-appends-rows", ROWS, 64),
    ("small-appends-rows", ROWS, 16),
];
const N_FILES: u32 = 1_000;

/// The cells.
pub(super) fn cells(options: &Options) -> Vec<Cell> {
    let cell = |(name, set, n_files): (&'static str, &'static [&str], u32)| {
        let n = if options.quick { n_files.min(N_FILES / 4) } else { n_files };
        // The number of files is nothing to the others.
        let first = if n_files == N_FILES { 0 } else { RelationPolicy::ALL.len() - 1 };
        let experiment = Experiment { reader: READER, ..file_server("", "", 16 << 10, n, options) };
        Cell::new(format!("{name} to {n} files"), move || {
            sweep(name, &experiment, set, &RelationPolicy::ALL[first..])
        })
    };
    CASES.map(cell).into()
}

/// Policies that do not use the buffer so, once, and `chain` for each bound of what it keeps
/// there.
fn sweep(
    name: &'static str,
    experiment: &Experiment,
    set: &[&str],
    policies: &[(&str, RelationPolicy)],
) -> Result<Vec<Line>, StudyError> {
    let device = Device::new(TWO_PLANES, set);
    let whole = experiment.contiguous(&device)?.read.mib_s;
    let mut lines = vec![];
    for &(_, policy) in policies {
        let n = if policy == RelationPolicy::Chain { CHAIN_KIB.len() } else { 1 };
        for &chain_kib in &CHAIN_KIB[..n] {
            let chain = format!("ftl.chain_kib={chain_kib}");
            let bounded = Device::new(TWO_PLANES, &[set, &[&chain]].concat());
            let f = experiment.mean(&bounded, policy, false, 1)?;
            let series = format!("{}, {} files", policy.name(), experiment.n_files);
            let point = Point::new(name, device.name(), series, f64::from(chain_kib))
                .with("read_mib_s", f.read.mib_s)
                .with("normalized", f.read.mib_s / whole)
                .with("senses_per_256_kib", f.read.senses_per_256_kib)
                .with("hints_yielded", f.hints_yielded as f64)
                .with("write_mib_s", f.write_mib_s);
            lines.push(point.into());
        }
    }
    Ok(lines)
}
