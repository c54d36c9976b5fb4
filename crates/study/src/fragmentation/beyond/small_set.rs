//! Overwrites of a small set beside overwrites anywhere: which dies collect and wear, and what
//! the yield rule makes of it.
//!
//! The drive is small (1.9 GiB), so that it wears within seconds: what the bound on wear does
//! depends on erases per block, not on the number of blocks. Which write goes to the set is
//! drawn at random; with every second one, round robin over an even number of dies would keep
//! the set on dies of its own.

use flashwise_hint::{Lba, WriteHint};
use flashwise_ssd::{FtlCounters, RelationPolicy, Ssd};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::super::PRESET;
use super::super::device::Device;
use super::super::raw::{PIECE, READER};
use super::super::write::Piece;
use super::{MIB, SECTORS, Writer, anchors, below, waf};
use crate::{Line, Point, StudyError};

/// A drive of 256 blocks a die.
const SMALL: &[&str] = &["geometry.blocks_per_plane=256"];
/// The same with four times the spare space.
const SPACIOUS: &[&str] = &["geometry.blocks_per_plane=256", "ftl.over_provisioning=0.28"];
/// What is written \[MiB\]: some drive writes, collection included.
const N_MIB: u64 = 2048;
/// Pieces of the set.
const N_SET: u64 = 128;
/// Pieces read for the rest of the drive.
const N_REST: u64 = 2048;
/// A bound on wear that is never reached \[erases per block\].
const UNBOUND: f64 = 1e6;
/// Bounds of the curve \[erases per block\].
const BOUNDS: [f64; 4] = [0.25, 1.0, 4.0, UNBOUND];

/// Where the set lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    OnOneDie,
    OnAllDies,
    /// As random overwrites of 4 KiB left it: the units of a piece on any dies.
    Scattered,
}

impl Lies {
    const ALL: [(&str, Self); 3] = [
        ("on one die", Self::OnOneDie),
        ("on all dies", Self::OnAllDies),
        ("scattered", Self::Scattered),
    ];

    /// Puts the set there; its pieces.
    fn put(self, ssd: &mut Ssd) -> Result<Vec<u64>, StudyError> {
        let before_die = anchors(ssd)?;
        let step = n_pieces(ssd) / (N_SET + 1);
        let set: Vec<_> = (0..N_SET).map(|i| i * step).collect();
        for (i, piece) in set.iter().enumerate() {
            let die = match self {
                Self::OnOneDie => 0,
                Self::OnAllDies => i % before_die.len(),
                Self::Scattered => break,
            };
            let hint = WriteHint::append(Lba(before_die[die]));
            Writer::new(ssd).write(ssd, piece * SECTORS, SECTORS, hint)?;
        }
        Ok(set)
    }
}

fn n_pieces(ssd: &Ssd) -> u64 {
    ssd.capacity_sectors() / SECTORS
}

/// The cell's work.
pub(super) fn run(is_quick: bool, seed: u64) -> Result<Vec<Line>, StudyError> {
    let bounds = if is_quick { &BOUNDS[2..] } else { &BOUNDS[..] };
    let (small, spacious) = (Device::new(PRESET, SMALL), Device::new(PRESET, SPACIOUS));
    let mut lines = vec![];
    for (lies, set) in Lies::ALL {
        lines.extend(curves(&small, lies, set, bounds, seed)?);
    }
    let (lies, set) = Lies::ALL[0];
    lines.extend(curves(&spacious, lies, set, bounds, seed)?);
    Ok(lines)
}

/// One drive and set: without hints, with the usual bounds, and with bounds on wear alone.
fn curves(
    device: &Device,
    lies: &str,
    set: Lies,
    bounds: &[f64],
    seed: u64,
) -> Result<Vec<Line>, StudyError> {
    let usual = device.fresh(RelationPolicy::None)?.config().ftl.clone();
    let usual = (usual.yield_erases, usual.yield_programs);
    let none = ("none", RelationPolicy::None, usual);
    let both = ("hints", RelationPolicy::Hints, usual);
    let curve = bounds.iter().map(|&bound| ("hints, wear", RelationPolicy::Hints, (bound, 0)));
    let mut lines = vec![];
    for (series, policy, (erases, programs)) in [none, both].into_iter().chain(curve) {
        let mut ssd = device.aged(RelationPolicy::Hints)?.with_yield(UNBOUND, 0)?;
        let pieces = set.put(&mut ssd)?;
        let ssd = ssd.with_relation(policy).with_yield(erases, programs)?;
        let values = overwrite(ssd, &pieces, seed)?;
        let series = format!("{series}, {lies}");
        let point = Point { values, ..Point::new("small-set", device.name(), series, erases) };
        lines.push(point.into());
    }
    Ok(lines)
}

/// Half of all writes go to the set; figures of that.
fn overwrite(mut ssd: Ssd, set: &[u64], seed: u64) -> Result<Vec<(&'static str, f64)>, StudyError> {
    let n = n_pieces(&ssd);
    let (before, dies) = (ssd.counters(), Dies::of(&ssd));
    let mut writer = Writer::new(&mut ssd);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..N_MIB * MIB as u64 / PIECE {
        let (piece, hint) = match below(&mut rng, 2) {
            0 => (set[below(&mut rng, N_SET) as usize], WriteHint::overwrite()),
            _ => (below(&mut rng, n), WriteHint::NONE),
        };
        writer.write(&mut ssd, piece * SECTORS, SECTORS, hint)?;
    }
    let mut values = vec![("write_mib_s", writer.mib_s()), ("waf", waf(&ssd, &before))];
    values.extend(Dies::of(&ssd).figures(&dies, &ssd));
    let piece = |piece: u64| Piece { lba: piece * SECTORS, sectors: SECTORS };
    let all: Vec<_> = set.iter().map(|&p| piece(p)).collect();
    let FtlCounters { hints_yielded, hints_yielded_wear, hints_yielded_buffer, .. } =
        ssd.counters().since(&before).ftl;
    values.push(("read_set_mib_s", READER.read(&mut ssd, [all.as_slice()])?.mib_s));
    let rest: Vec<_> = (0..N_REST).map(|_| piece(below(&mut rng, n))).collect();
    values.push(("read_rest_mib_s", READER.read(&mut ssd, [rest.as_slice()])?.mib_s));
    values.push(("hints_yielded", hints_yielded as f64));
    values.push(("hints_yielded_wear", hints_yielded_wear as f64));
    values.push(("hints_yielded_buffer", hints_yielded_buffer as f64));
    Ok(values)
}

/// What each die did so far.
struct Dies {
    erases: Vec<u64>,
    moved: Vec<u64>,
}

impl Dies {
    fn of(ssd: &Ssd) -> Self {
        Self { erases: ssd.ftl().die_erases(), moved: ssd.ftl().die_moved().collect() }
    }

    fn figures(&self, before: &Self, ssd: &Ssd) -> [(&'static str, f64); 7] {
        let (cfg, layout) = (ssd.ftl().config(), ssd.ftl().layout());
        let n_blocks = cfg.geo.n_blocks_per_plane;
        let limit = u64::from((n_blocks - cfg.reserve_blocks()) * layout.units_per_block);
        let slack = ssd.ftl().die_valid().map(|valid| limit - u64::from(valid));
        let since = |now: &[u64], then: &[u64]| now.iter().zip(then).map(|(n, t)| n - t).collect();
        let erases: Vec<u64> = since(&self.erases, &before.erases);
        let erased = Extremes::of(&erases);
        let moved = Extremes::of(&since(&self.moved, &before.moved));
        let slack = Extremes::of(&slack.collect::<Vec<_>>());
        [
            ("erases_of_mean_most", erased.most),
            ("erases_of_mean_least", erased.least),
            ("lead_erases", (erased.most - 1.0) * erased.mean / f64::from(n_blocks)),
            ("moved_of_mean_most", moved.most),
            ("moved_of_mean_least", moved.least),
            ("slack_of_mean_most", slack.most),
            ("slack_of_mean_least", slack.least),
        ]
    }
}

/// The extremes of dies, by their mean.
struct Extremes {
    most: f64,
    least: f64,
    mean: f64,
}

impl Extremes {
    fn of(all: &[u64]) -> Self {
        let mean = (all.iter().sum::<u64>() as f64 / all.len() as f64).max(f64::MIN_POSITIVE);
        let most = all.iter().copied().max().unwrap_or(0) as f64 / mean;
        let least = all.iter().copied().min().unwrap_or(0) as f64 / mean;
        Self { most, least, mean }
    }
}
