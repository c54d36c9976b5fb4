//! The paper's scheme emulated on drives that know no hints (Figure 11), by what is written
//! between two pieces of a file: as much as leaves the next piece to the same die, or a full
//! stripe, so that it goes where the scheme would put it.

use flashwise_ssd::RelationPolicy;

use super::through_host::{FILE, Pieces, fs, read_drive};
use super::{host, lines};
use crate::fragmentation::device::Device;
use crate::{Cell, Line, Point, StudyError};

const SWEEP: &str = "dummy-write";
/// Pieces. Source: section 5.1.
const N: u64 = 256;
const DEPTH: u32 = 1023;
/// Native command queueing.
const SATA_DEPTH: u32 = 32;

/// A drive of Figure 11.
#[derive(Clone, Copy)]
struct Drive {
    preset: &'static str,
    /// Changes to it.
    set: &'static [&'static str],
    depth: u32,
    grain: u64,
    stripe: u64,
    /// Published, as a part of the contiguous file: append and overwrite on one die, then
    /// with the scheme. Source: section 5.1, of whose text the loss of an overwritten file on
    /// NVMe ("to a quarter") and what the scheme leaves ("2 %", "1 %", "1.2 %") are means.
    paper: [f64; 4],
}

const NVME_A: Drive = Drive {
    preset: "nvme-a",
    set: &[],
    depth: DEPTH,
    grain: 32 << 10,
    stripe: 1 << 20,
    paper: [0.21, 0.25, 0.98, 0.99],
};
const NVME_B: Drive =
    Drive { preset: "nvme-b", stripe: 256 << 10, paper: [0.24, 0.25, 0.98, 0.99], ..NVME_A };
const SATA_A: Drive = Drive {
    preset: "sata-a",
    set: &[],
    depth: SATA_DEPTH,
    grain: 4 << 10,
    stripe: 32 << 10,
    paper: [0.73, 0.73, 0.988, 0.988],
};
const SATA_B: Drive = Drive {
    preset: "sata-b",
    grain: 16 << 10,
    stripe: 256 << 10,
    paper: [0.84, 0.84, 0.988, 0.988],
    ..SATA_A
};

/// The four, and what it takes for the published loss on SATA: that pieces which lie in one
/// page (SATA-A: four of 4 KiB) or one row of pages (SATA-B: two of 16 KiB) of a die are
/// sensed once for all commands that wait, as one sense for each command does that is so
/// much shorter; on SATA-B also a channel as fast as the two together.
const DRIVES: [Drive; 6] = [
    NVME_A,
    NVME_B,
    SATA_A,
    SATA_B,
    Drive { set: &["flash.read_4k_us=15"], ..SATA_A },
    Drive { set: &["flash.read_us=16", "flash.channel_mb_s=460"], ..SATA_B },
];

/// A cell for each drive.
pub(super) fn cells() -> Vec<Cell> {
    let cell = |drive: Drive| {
        Cell::new(format!("{SWEEP} on {}", device(drive).name()), move || sweep(drive))
    };
    DRIVES.into_iter().map(cell).collect()
}

fn sweep(drive: Drive) -> Result<Vec<Line>, StudyError> {
    let Drive { grain, stripe, paper, .. } = drive;
    let same_die = Pieces { n: N, len: grain, between: stripe - grain, ..Pieces::WHOLE };
    let next_die = Pieces { between: stripe, ..same_die };
    let whole = mib_s(drive, &Pieces::WHOLE)?;
    let cases = [
        ("contiguous", Pieces::WHOLE, 1.0),
        ("append, one die", same_die, paper[0]),
        ("append, scheme", next_die, paper[2]),
        ("overwrite, one die", Pieces { overwrite: true, ..same_die }, paper[1]),
        ("overwrite, scheme", Pieces { overwrite: true, ..next_die }, paper[3]),
    ];
    let mut points = vec![];
    for (i, (series, pieces, paper)) in cases.into_iter().enumerate() {
        let read = mib_s(drive, &pieces)?;
        let point = Point::new(SWEEP, device(drive).name(), series, i as f64)
            .with("read_mib_s", read)
            .with("normalized", read / whole)
            .with("paper_normalized", paper);
        points.push(point);
    }
    Ok(lines(points))
}

fn device(drive: Drive) -> Device {
    Device::new(drive.preset, drive.set)
}

fn mib_s(drive: Drive, pieces: &Pieces) -> Result<f64, StudyError> {
    let ssd = device(drive).fresh(RelationPolicy::None)?;
    let read = read_drive(ssd, pieces, &fs(drive.depth, host(drive.depth)))?;
    Ok((FILE >> 20) as f64 / (read.ns as f64 / 1e9))
}
