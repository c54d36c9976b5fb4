//! Read time of a file against the number of its pieces (Figure 3), on NVMe drives.

use flashwise_ssd::RelationPolicy;

use super::through_host::{Pieces, fs, read_drive};
use super::{NVME, WithPublished, host, lines};
use crate::fragmentation::device::Device;
use crate::{Cell, Line, Point, StudyError};

const SWEEP: &str = "dof";
/// Degrees of fragmentation.
const DOFS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// `nr_requests` of the paper.
const DEPTHS: [u32; 2] = [1, 1023];
/// Commits of the journal while the file is written in 256 pieces, in two more series: the
/// published figures of NVMe-B lie between them. With fewer pieces the writing is shorter,
/// and commits are as many fewer.
const COMMITS: [u64; 2] = [2, 3];

/// A cell for each drive, depth and kind of writing.
pub(super) fn cells() -> Vec<Cell> {
    let queue = DEPTHS[1];
    let kinds = DEPTHS.map(|depth| (depth, 0)).into_iter().chain(COMMITS.map(|n| (queue, n)));
    let cells = kinds.flat_map(|(depth, n_commits)| NVME.map(|drive| (drive, depth, n_commits)));
    let cell = |(drive, depth, n_commits)| {
        let name = format!("{SWEEP} on {drive}, {}", series(depth, n_commits));
        Cell::new(name, move || sweep(drive, depth, n_commits))
    };
    cells.map(cell).collect()
}

fn series(depth: u32, n_commits: u64) -> String {
    match n_commits {
        0 => format!("depth {depth}"),
        n => format!("depth {depth}, {n} commits"),
    }
}

fn sweep(drive: &'static str, depth: u32, n_commits: u64) -> Result<Vec<Line>, StudyError> {
    let device = Device::new(drive, &[]);
    let mut points = vec![];
    let mut whole_ms = None;
    for dof in DOFS {
        let pieces = Pieces { n_commits: n_commits * dof / 256, ..Pieces::of_section_3(dof) };
        let ssd = device.fresh(RelationPolicy::None)?;
        let read = read_drive(ssd, &pieces, &fs(depth, host(depth)))?;
        let read_ms = read.ns as f64 / 1e6;
        let relative = read_ms / *whole_ms.get_or_insert(read_ms);
        let point = Point::new(SWEEP, drive, series(depth, n_commits), dof as f64)
            .with("read_ms", read_ms)
            .with("relative", relative)
            .with("pieces", read.n_pieces as f64)
            .with("requests", read.requests.len() as f64)
            .with_published("paper_relative", published(drive, depth, dof));
        points.push(point);
    }
    Ok(lines(points))
}

/// Section 3, from the text: read time by that of the file in one piece.
fn published(drive: &str, depth: u32, dof: u64) -> Option<f64> {
    match (drive, depth, dof) {
        (_, _, 1) => Some(1.0),
        ("nvme-a", 1023, 128) => Some(2.7),
        ("nvme-a", 1023, 256) => Some(4.4),
        ("nvme-b", 1023, 128) => Some(1.3),
        ("nvme-b", 1023, 256) => Some(1.9),
        _ => None,
    }
}
