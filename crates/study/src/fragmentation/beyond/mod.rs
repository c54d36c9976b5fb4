//! What the paper leaves open: what hints cost writers and the flash, what wrong ones do to
//! others, and what the same read speed costs by rewriting files.
//!
//! Commands go to the raw drive in a closed loop, with the hints a file system would give.

mod small_set;
mod wrong_hints;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, Lpn, RelationPolicy, Ssd, SsdCounters};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::PRESET;
use super::device::{Device, artifact_fs};
use super::raw::{Between, FILE, Kind, PIECE, READER, plan};
use super::write::{Piece, submit, write_files};
use crate::{Cell, Line, Point, StudyError};

const POLICIES: [RelationPolicy; 2] = [RelationPolicy::None, RelationPolicy::Hints];
/// Commands under way.
const DEPTH: usize = 32;
/// Sectors of a piece.
const SECTORS: u64 = PIECE / SECTOR_BYTES;
const MIB: f64 = (1 << 20) as f64;

/// The cells.
pub(super) fn cells(is_quick: bool, seed: u64, aged: &Device) -> Vec<Cell> {
    let n_mib = if is_quick { 128 } else { 512 };
    let [of_cost, of_defragmentation] = [aged.clone(), aged.clone()];
    vec![
        Cell::new("write-cost", move || write_cost(&of_cost, n_mib, seed)),
        Cell::new("wrong-hints", move || wrong_hints::run(false, seed)),
        Cell::new("wrong-hints, aged", move || wrong_hints::run(true, seed)),
        Cell::new("small-set", move || small_set::run(is_quick, seed)),
        Cell::new("defragmentation", move || defragmentation(&of_defragmentation)),
    ]
}

fn below(rng: &mut Xoshiro256PlusPlus, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

/// Writes in a closed loop: [`DEPTH`] under way, the next one when one is done.
struct Writer {
    under_way: BinaryHeap<Reverse<u64>>,
    start_ns: u64,
    now_ns: u64,
    bytes: u64,
}

impl Writer {
    fn new(ssd: &mut Ssd) -> Self {
        let start_ns = ssd.rest();
        Self { under_way: BinaryHeap::new(), start_ns, now_ns: start_ns, bytes: 0 }
    }

    fn write(
        &mut self,
        ssd: &mut Ssd,
        lba: u64,
        sectors: u64,
        hint: WriteHint,
    ) -> Result<(), StudyError> {
        if self.under_way.len() == DEPTH {
            let Reverse(done_ns) = self.under_way.pop().expect("commands under way");
            self.now_ns = self.now_ns.max(done_ns);
        }
        let command = Command::Write { lba: Lba(lba), sectors: sectors as u32, fua: false, hint };
        self.under_way.push(Reverse(submit(ssd, &command, self.now_ns, "writing")?));
        self.bytes += sectors * SECTOR_BYTES;
        Ok(())
    }

    /// Write throughput to here \[MiB/s\].
    fn mib_s(&self) -> f64 {
        let end_ns = self.under_way.iter().map(|r| r.0).max().unwrap_or(self.now_ns);
        self.bytes as f64 / MIB / ((end_ns - self.start_ns).max(1) as f64 / 1e9)
    }
}

fn waf(ssd: &Ssd, before: &SsdCounters) -> f64 {
    ssd.counters().since(before).ftl.waf().unwrap_or(1.0)
}

/// Files that grow side by side, each by the next piece of its own range.
struct Growing {
    at: Vec<u64>,
    base: Vec<u64>,
}

impl Growing {
    fn new(n: u64, bytes_each: u64) -> Self {
        let base: Vec<_> = (0..n).map(|i| i * bytes_each / SECTOR_BYTES).collect();
        Self { at: base.clone(), base }
    }

    /// Address and hint of the next piece of file `i`.
    fn next(&mut self, i: usize) -> (u64, WriteHint) {
        let lba = self.at[i];
        self.at[i] += SECTORS;
        let is_first = lba == self.base[i];
        (lba, if is_first { WriteHint::NONE } else { WriteHint::append(Lba(lba - 1)) })
    }
}

fn write_piece(lba: u64, hint: WriteHint) -> Command {
    Command::Write { lba: Lba(lba), sectors: SECTORS as u32, fua: false, hint }
}

fn write_at_rest(ssd: &mut Ssd, lba: u64, hint: WriteHint) -> Result<(), StudyError> {
    let now_ns = ssd.rest();
    submit(ssd, &write_piece(lba, hint), now_ns, "preparation")?;
    Ok(())
}

/// A written unit on the die before each die \[sectors\]. They lie at the end of the drive.
fn anchors(ssd: &mut Ssd) -> Result<Vec<u64>, StudyError> {
    let n_dies = u64::from(ssd.ftl().config().geo.n_dies());
    let mut found = vec![None; n_dies as usize];
    let mut lba = ssd.capacity_sectors() / SECTORS * SECTORS;
    while found.contains(&None) {
        lba -= SECTORS;
        write_at_rest(ssd, lba, WriteHint::NONE)?;
        let ppn = ssd.ftl().lookup(Lpn((lba / ssd.sectors_per_unit()) as u32));
        let die = u64::from(ssd.ftl().place(ppn.expect("just written")).die.0);
        found[((die + 1) % n_dies) as usize] = Some(lba);
    }
    Ok(found.into_iter().flatten().collect())
}

/// Sixteen files grow at random, as fast as the drive takes it.
fn write_cost(aged: &Device, n_mib: u64, seed: u64) -> Result<Vec<Line>, StudyError> {
    let mut lines = vec![];
    for (state, device) in [("fresh", &Device::new(PRESET, &[])), ("aged", aged)] {
        let mut of_none = None;
        for policy in POLICIES {
            let mut ssd =
                if state == "aged" { device.aged(policy)? } else { device.fresh(policy)? };
            let before = ssd.counters();
            let mut writer = Writer::new(&mut ssd);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut files = Growing::new(16, n_mib << 20);
            for _ in 0..n_mib * MIB as u64 / PIECE {
                let (lba, hint) = files.next(below(&mut rng, 16) as usize);
                writer.write(&mut ssd, lba, SECTORS, hint)?;
            }
            let mib_s = writer.mib_s();
            let series = format!("{state}, {}", policy.name());
            let point = Point::new("write-cost", device.name(), series, lines.len() as f64)
                .with("write_mib_s", mib_s)
                .with("of_none", mib_s / *of_none.get_or_insert(mib_s))
                .with("waf", waf(&ssd, &before));
            lines.push(point.into());
        }
    }
    Ok(lines)
}

/// The worst file read as it lies, then copied to a free range in one go, and the same
/// written with hints.
fn defragmentation(device: &Device) -> Result<Vec<Line>, StudyError> {
    let mut lines = vec![];
    for policy in POLICIES {
        let (plan, files) = plan(Kind::Append, Between::Worst);
        let fs = artifact_fs(FS);
        let ssd = device.aged(policy)?;
        let mut written = write_files(ssd, &fs, plan, &files.ids[..1], None, "defragmentation")?;
        let file = [written.files[0].as_slice()];
        let read = READER.read(&mut written.ssd, file)?;
        let ssd = &mut written.ssd;
        let point = |x: usize, series: &str, mib_s: f64, before: &SsdCounters, ssd: &Ssd| {
            let f = ssd.counters().since(before).ftl;
            Point::new("defragmentation", device.name(), series, x as f64)
                .with("read_mib_s", mib_s)
                .with("rewritten_mib", f.bytes_host as f64 / MIB)
                .with("programmed_mib", f.bytes_programmed() as f64 / MIB)
        };
        let before = ssd.counters();
        lines.push(point(lines.len(), policy.name(), read.mib_s, &before, ssd).into());
        if policy == RelationPolicy::None {
            let free = FS / SECTOR_BYTES;
            let mut writer = Writer::new(ssd);
            for at in (0..FILE / SECTOR_BYTES).step_by(ssd.max_sectors() as usize) {
                let sectors = u64::from(ssd.max_sectors());
                writer.write(ssd, free + at, sectors, WriteHint::NONE)?;
            }
            let copy = [Piece { lba: free, sectors: FILE / SECTOR_BYTES }];
            let read = READER.read(ssd, [copy.as_slice()])?;
            lines.push(point(lines.len(), "none, rewritten", read.mib_s, &before, ssd).into());
        }
    }
    Ok(lines)
}

/// Size of the file system \[bytes\].
const FS: u64 = 2 << 30;
