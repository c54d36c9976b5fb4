//! The experiment that lays a real file onto the model, as its extents say.
//!
//! The file is written extent by extent in its own order, as one that only grew. What lies
//! between two extents is written between them, by others and without hints; a gap above
//! `GAP_MAX` and a jump backwards say nothing of what was. Blocks of the file that were
//! written again leave no trace in its extents, but move what follows to other dies: the
//! sweep shows what that does.

use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, RelationPolicy, Ssd};

use super::PRESET;
use super::device::Device;
use super::layout::Layout;
use super::read::ReadFigures;
use super::sqlite;
use super::write::{MIB, Piece, submit};
use crate::{Cell, Line, Point, StudyError, WorkloadRow};

/// Largest gap that counts as written in between \[sectors\]: a mebibyte.
const GAP_MAX: u64 = 1 << 11;
/// Length of the place where others write, in a ring \[sectors\]. Longer than all program
/// units that are open, so that nothing is replaced before it is on a die.
const RING: u64 = 64 << 11;
/// What every place keeps its offset in \[sectors\]: the mapping unit.
const UNIT: u64 = 8;
/// What is written again before each extent, in the sweep \[KiB\].
const REWRITTEN_KIB: [u64; 9] = [0, 4, 8, 12, 16, 20, 24, 28, 32];
const POLICIES: [RelationPolicy; 2] = [RelationPolicy::None, RelationPolicy::Hints];

/// A piece of the file, and how much others wrote before it \[sectors\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) between: u64,
    pub(super) piece: Piece,
}

/// What a file came to.
struct Figures {
    read: ReadFigures,
    write_mib_s: f64,
    waf: f64,
    hints_yielded: u64,
}

/// The cells of a file that lies as `layout` says.
pub fn cells(layout: &Layout) -> Result<Vec<Cell>, StudyError> {
    let steps = steps(layout);
    let end = steps.iter().map(|s| s.piece.lba + s.piece.sectors).max().unwrap_or(0);
    let drive = Device::new(PRESET, &[]).fresh(RelationPolicy::None)?.capacity_sectors();
    if end > drive {
        return Err(StudyError::TooLarge {
            file_mib: (end - RING) >> 11,
            most_mib: (drive - RING) >> 11,
            preset: PRESET,
        });
    }
    let rows_of = steps.clone();
    let mut cells = vec![Cell::new("extents", move || rows(&rows_of))];
    for kib in REWRITTEN_KIB {
        let steps = steps.clone();
        cells.push(Cell::new(format!("extents-rewritten {kib}"), move || points(&steps, kib)));
    }
    Ok(cells)
}

/// Contiguous, and as it lies, without and with hints.
fn rows(steps: &[Step]) -> Result<Vec<Line>, StudyError> {
    let device = Device::new(PRESET, &[]);
    let contiguous = contiguous(&device, steps)?;
    let whole = contiguous.read.mib_s;
    let row = |workload: &str, policy: RelationPolicy, n: usize, f: Figures| WorkloadRow {
        workload: workload.to_owned(),
        policy: policy.name().to_owned(),
        device: device.name(),
        read_mib_s: f.read.mib_s,
        normalized: f.read.mib_s / whole,
        write_mib_s: f.write_mib_s,
        die_collisions: f.read.die_collisions,
        senses_per_256_kib: f.read.senses_per_256_kib,
        waf: f.waf,
        pieces_per_file: n as f64,
        hints_yielded: f.hints_yielded,
        ..WorkloadRow::default()
    };
    let mut lines = vec![row("extents-contiguous", RelationPolicy::None, 1, contiguous).into()];
    for policy in POLICIES {
        let figures = figures(&device, policy, steps, 0)?;
        lines.push(row("extents", policy, steps.len(), figures).into());
    }
    Ok(lines)
}

/// The same if so much of the file was written again before each extent.
fn points(steps: &[Step], kib: u64) -> Result<Vec<Line>, StudyError> {
    let device = Device::new(PRESET, &[]);
    let whole = contiguous(&device, steps)?.read.mib_s;
    let point = |policy: RelationPolicy| {
        let read = figures(&device, policy, steps, kib << 1)?.read;
        let point = Point::new("extents-rewritten", device.name(), policy.name(), kib as f64)
            .with("read_mib_s", read.mib_s)
            .with("normalized", read.mib_s / whole)
            .with("senses_per_256_kib", read.senses_per_256_kib);
        Ok(point.into())
    };
    POLICIES.into_iter().map(point).collect()
}

fn contiguous(device: &Device, steps: &[Step]) -> Result<Figures, StudyError> {
    let sectors = steps.iter().map(|s| s.piece.sectors).sum();
    let whole = Step { between: 0, piece: Piece { lba: RING, sectors } };
    figures(device, RelationPolicy::None, &[whole], 0)
}

/// The extents that hold data in the order of the file, adjacent ones as one. Which place
/// it is matters to no die, so they are moved together: a file fits on the drive wherever
/// it lay on a larger one.
pub(super) fn steps(layout: &Layout) -> Vec<Step> {
    let sectors = layout.block_bytes / SECTOR_BYTES;
    let run = |e: &super::layout::FileExtent| (e.physical * sectors, e.len * sectors);
    let mut all: Vec<_> = layout.extents.iter().map(run).collect();
    all.sort_unstable();
    let written: Vec<_> = layout.extents.iter().filter(|e| e.is_written).map(run).collect();
    let places = moved_together(&written);
    let mut steps: Vec<Step> = vec![];
    let mut end = None;
    for (&(first, sectors), lba) in written.iter().zip(places) {
        match steps.last_mut() {
            Some(step) if end == Some(first) => step.piece.sectors += sectors,
            _ => {
                let between = end.map_or(0, |end| by_others(&all, end, first));
                steps.push(Step { between, piece: Piece { lba, sectors } });
            }
        }
        end = Some(first + sectors);
    }
    steps
}

/// Where each of `runs` (first sector, sectors) goes: in the same order on the drive, each
/// at its offset in a mapping unit, what is adjacent still so.
fn moved_together(runs: &[(u64, u64)]) -> Vec<u64> {
    let mut order: Vec<_> = (0..runs.len()).collect();
    order.sort_by_key(|&i| runs[i].0);
    let mut places = vec![0; runs.len()];
    // Where the one before ended: in truth, and here.
    let (mut end, mut at) = (0, RING);
    for i in order {
        let gap = runs[i].0 - end;
        at += if gap < UNIT { gap } else { UNIT + gap % UNIT };
        places[i] = at;
        end += gap + runs[i].1;
        at += runs[i].1;
    }
    places
}

/// Sectors between two extents that are not of the file, whose extents are `all`, sorted.
fn by_others(all: &[(u64, u64)], from: u64, to: u64) -> u64 {
    let gap = to.saturating_sub(from);
    if gap > GAP_MAX {
        return 0;
    }
    let first = all.partition_point(|run| run.0 < from);
    gap - all[first..].iter().take_while(|run| run.0 < to).map(|run| run.1).sum::<u64>()
}

/// Writes the file, so much of its beginning again before each piece \[sectors\], and reads
/// it as SQLite does.
fn figures(
    device: &Device,
    policy: RelationPolicy,
    steps: &[Step],
    rewritten: u64,
) -> Result<Figures, StudyError> {
    let mut writer = Writer::new(device.fresh(policy)?);
    let mut before: Option<Piece> = None;
    for (i, &Step { between, piece }) in steps.iter().enumerate() {
        writer.others(between)?;
        if i > 0 {
            writer.again(&steps[..i], rewritten)?;
        }
        let append = |at: u64| WriteHint::append(Lba(at - 1));
        let first = before.map_or(WriteHint::NONE, |b| append(b.lba + b.sectors));
        writer.write(piece, |at| if at == piece.lba { first } else { append(at) })?;
        before = Some(piece);
    }
    let Writer { mut ssd, now_ns, sectors, .. } = writer;
    let ftl = ssd.counters().ftl;
    let pieces: Vec<_> = steps.iter().map(|s| s.piece).collect();
    Ok(Figures {
        read: sqlite::READER.read(&mut ssd, [pieces.as_slice()])?,
        write_mib_s: (sectors * SECTOR_BYTES) as f64 / MIB / (now_ns.max(1) as f64 / 1e9),
        waf: ftl.waf().unwrap_or(1.0),
        hints_yielded: ftl.hints_yielded,
    })
}

/// Writes one command after another.
struct Writer {
    ssd: Ssd,
    now_ns: u64,
    /// Where others go on in their ring.
    ring: u64,
    /// Written so far.
    sectors: u64,
}

impl Writer {
    fn new(ssd: Ssd) -> Self {
        Self { ssd, now_ns: 0, ring: 0, sectors: 0 }
    }

    /// Others write so much.
    fn others(&mut self, sectors: u64) -> Result<(), StudyError> {
        // At most `GAP_MAX`, so it never goes round more than once.
        let before_end = sectors.min(RING - self.ring);
        for (lba, sectors) in [(self.ring, before_end), (0, sectors - before_end)] {
            self.write(Piece { lba, sectors }, |_| WriteHint::NONE)?;
        }
        self.ring = (self.ring + sectors) % RING;
        Ok(())
    }

    /// The first so many sectors of the file again.
    fn again(&mut self, steps: &[Step], sectors: u64) -> Result<(), StudyError> {
        let mut left = sectors;
        for Step { piece, .. } in steps {
            let sectors = piece.sectors.min(left);
            self.write(Piece { sectors, ..*piece }, |_| WriteHint::overwrite())?;
            left -= sectors;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn write(&mut self, piece: Piece, hint: impl Fn(u64) -> WriteHint) -> Result<(), StudyError> {
        let max = u64::from(self.ssd.max_sectors());
        let (mut at, end) = (piece.lba, piece.lba + piece.sectors);
        while at < end {
            let sectors = max.min(end - at) as u32;
            let command = Command::Write { lba: Lba(at), sectors, fua: false, hint: hint(at) };
            self.now_ns = submit(&mut self.ssd, &command, self.now_ns, "laying out the extents")?;
            at += u64::from(sectors);
        }
        self.sectors += piece.sectors;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::FileExtent;
    use super::*;

    /// Logical, physical, length, whether it holds data.
    fn layout(block_bytes: u64, extents: &[(u64, u64, u64, bool)]) -> Layout {
        let extent = |&(logical, physical, len, is_written): &(u64, u64, u64, bool)| FileExtent {
            logical,
            physical,
            len,
            is_written,
        };
        Layout { block_bytes, extents: extents.iter().map(extent).collect() }
    }

    fn between(layout: &Layout) -> Vec<u64> {
        steps(layout).iter().map(|s| s.between / 8).collect()
    }

    #[test]
    fn what_lies_between_is_what_others_wrote() {
        let far = 1 << 40;
        // Adjacent; 25 blocks further; a jump that says nothing, and one back.
        let l = layout(4096, &[(0, 9, 1, true), (1, 10, 2, true), (3, 37, 4, true)]);
        assert_eq!(between(&l), [0, 25]);
        let l = layout(4096, &[(0, far, 1, true), (1, 7, 2, true), (3, 9 + 257, 4, true)]);
        assert_eq!(between(&l), [0, 0, 0]);
        // The file's own blocks are nobody else's: one that comes later, one without data.
        let l = layout(4096, &[(0, 0, 1, true), (1, 20, 1, true), (2, 5, 3, true)]);
        assert_eq!(between(&l), [0, 16, 0]);
        let l = layout(4096, &[(0, 0, 1, true), (1, 1, 4, false), (5, 8, 3, true)]);
        assert_eq!(between(&l), [0, 3]);
    }

    #[test]
    fn places_keep_their_offset_and_share_nothing() {
        let l = layout(512, &[(0, 1 << 45, 5, true), (5, 3, 4, true), (9, 9, 30, true)]);
        let pieces: Vec<_> = steps(&l).iter().map(|s| s.piece).collect();
        let offsets: Vec<_> = pieces.iter().map(|p| p.lba % UNIT).collect();
        assert_eq!(offsets, [0, 3, 1]);
        assert_eq!(pieces[2].lba - pieces[1].lba, 6);
        assert!(pieces[0].lba >= pieces[2].lba + 30 && pieces[0].lba < RING + 100);
    }

    #[test]
    fn a_file_is_read_as_far_apart_as_its_dies() {
        let one = layout(4096, &[(0, 0, 2048, true)]);
        let device = Device::new(PRESET, &[]);
        let whole = contiguous(&device, &steps(&one)).unwrap().read.mib_s;
        // Pieces of 32 KiB a stripe apart, the worst case of the paper.
        let apart: Vec<_> = (0..256).map(|i| (i * 8, i * 64, 8, true)).collect();
        let steps = steps(&layout(4096, &apart));
        let read = |policy, kib: u64| figures(&device, policy, &steps, kib * 2).unwrap().read.mib_s;
        assert!(read(RelationPolicy::None, 0) < 0.5 * whole);
        assert!(read(RelationPolicy::Hints, 0) > 0.97 * whole);
        // Rewriting another 32 KiB before each moves every piece to the next die.
        assert!(read(RelationPolicy::None, 32) > 0.97 * whole);
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_with_sizes() {
        let blocks = 57 << 18;
        let error = cells(&layout(4096, &[(0, 0, blocks, true)])).err().unwrap().to_string();
        assert!(error.contains("58368 MiB") && error.contains("fast24"), "{error}");
        assert!(cells(&layout(4096, &[(0, 0, blocks, false), (blocks, 0, 1, true)])).is_ok());
    }
}
