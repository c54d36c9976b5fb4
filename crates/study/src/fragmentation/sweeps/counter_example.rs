//! Section 4: pieces are not what makes reads slow, and one piece does not make them fast.

use flashwise_hostfs::{Call, Fd};
use flashwise_ssd::RelationPolicy;

use super::lines;
use crate::fragmentation::device::{Device, artifact_fs};
use crate::fragmentation::plan::{Files, Plan};
use crate::fragmentation::raw::{Between, FILE, Kind, PIECE, READER, STRIPE, plan};
use crate::fragmentation::write::{Piece, write_files};
use crate::{Cell, Line, Point, StudyError};

const SWEEP: &str = "counter-example";
const DEVICE: &str = "fast24";
/// Size of the file system \[bytes\].
const FS: u64 = 2 << 30;

type Case = (&'static str, fn() -> (Plan, Files));

const CASES: [Case; 6] = [
    ("contiguous", || plan(Kind::Contiguous, Between::Worst)),
    ("in pieces, next die each", || filled(PIECE, STRIPE, false)),
    ("in pieces, same die", || plan(Kind::Append, Between::Worst)),
    ("contiguous, overwritten on one die", || plan(Kind::Overwrite, Between::Worst)),
    ("contiguous, overwritten at random", || plan(Kind::Overwrite, Between::Random { seed: 0 })),
    ("contiguous, allocated before, filled by 16 KiB", || filled(PIECE / 2, PIECE / 2, true)),
];

/// One cell.
pub(super) fn cells() -> Vec<Cell> {
    vec![Cell::new(format!("{SWEEP} on {DEVICE}"), sweep)]
}

fn sweep() -> Result<Vec<Line>, StudyError> {
    let device = Device::new(DEVICE, &[]);
    let (mut points, mut whole) = (vec![], None);
    for (i, (series, plan)) in CASES.into_iter().enumerate() {
        let (plan, files) = plan();
        let ssd = device.fresh(RelationPolicy::None)?;
        let mut written = write_files(ssd, &artifact_fs(FS), plan, &files.ids[..1], None, series)?;
        let pieces = joined(&written.files[0]);
        let read = READER.read(&mut written.ssd, [pieces.as_slice()])?;
        let whole_mib_s = *whole.get_or_insert(read.mib_s);
        let point = Point::new(SWEEP, DEVICE, series, i as f64)
            .with("read_mib_s", read.mib_s)
            .with("normalized", read.mib_s / whole_mib_s)
            .with("pieces_per_file", pieces.len() as f64)
            .with("senses_per_256_kib", read.senses_per_256_kib)
            .with("die_collisions", read.die_collisions as f64);
        points.push(point);
    }
    Ok(lines(points))
}

/// A file that grows by `piece`, or is allocated before and filled so, each followed by
/// `between` of another file; all made durable at once.
fn filled(piece: u64, between: u64, allocated: bool) -> (Plan, Files) {
    let mut files = Files::default();
    let (file, open) = files.create("/file", false);
    let (other, open_other) = files.create("/other", false);
    let mut calls = vec![open, open_other];
    if allocated {
        calls.push(Call::Fallocate { fd: file, offset: 0, len: FILE, keep_size: true });
        calls.push(Call::Fdatasync { fd: file });
    }
    let durable =
        |fd: Fd, offset: u64, len: u64| [Call::Write { fd, offset, len }, Call::Fdatasync { fd }];
    for i in 0..FILE / piece {
        calls.extend(durable(file, i * piece, piece));
        calls.extend(durable(other, i * between, between));
    }
    let paths = files.paths.clone();
    (Plan::new(paths, vec![], vec![calls]), files)
}

/// Neighbouring extents, such as those that were filled one after another, are one piece.
fn joined(extents: &[Piece]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![];
    for &extent in extents {
        match pieces.last_mut() {
            Some(last) if last.lba + last.sectors == extent.lba => last.sectors += extent.sectors,
            _ => pieces.push(extent),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let piece = |lba, sectors| Piece { lba, sectors };
        let made = joined(&[piece(0, 8), piece(8, 8), piece(24, 8), piece(32, 1)]);
        assert_eq!(made, [piece(0, 16), piece(24, 9)]);
    }
}
