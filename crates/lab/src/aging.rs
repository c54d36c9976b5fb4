//! Making a blank drive an aged one.
//!
//! The exported space is filled in order, then overwritten at random until write
//! amplification has stopped changing. Time stands still meanwhile: operations are
//! counted, not simulated, which makes ageing several times faster than replay.
//! Always ends: after a bound of overwrites the drive is called unsteady.

use std::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use serde::Serialize;

use flashwise_hint::Lba;
use flashwise_ssd::{Lpn, Ssd};

/// Windows of write amplification that have to agree.
const N_WINDOWS: usize = 4;

/// Requests looked ahead, so that map entries are fetched in time.
const LOOK_AHEAD: usize = 32;

/// How a drive was aged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Aging {
    /// Write amplification was flat at the end (or no overwrites were asked for).
    pub steady: bool,
    /// Part of the exported space that was filled.
    pub occupancy: f64,
    /// Random overwrites, in units of the exported space.
    pub drive_writes: f64,
    /// Write amplification of the last windows; none without overwrites.
    pub waf: Option<f64>,
    /// Largest difference between the last windows \[percent of their mean\].
    pub waf_spread_percent: Option<f64>,
    /// Free blocks at the end.
    pub free_blocks: u64,
    /// The drive lost its last spare block meanwhile and takes no more writes.
    pub read_only: bool,
}

/// Ages `ssd` as its preset says. `progress` is told the drive writes so far.
pub fn precondition(ssd: &mut Ssd, seed: u64, mut progress: impl FnMut(f64)) -> Aging {
    let cfg = ssd.config().precondition.clone();
    let n_logical = (ssd.capacity_sectors() / ssd.sectors_per_unit()) as u32;
    let n_filled = (f64::from(n_logical) * cfg.occupancy).round() as u32;
    for lpn in 0..n_filled {
        ssd.fill_unit(Lpn(lpn));
    }
    let mut aging = Aging {
        steady: true,
        occupancy: f64::from(n_filled) / f64::from(n_logical),
        ..Aging::default()
    };
    if cfg.overwrite != "none" && n_filled > 0 {
        let n_physical = ssd.ftl().n_physical();
        let window = (f64::from(n_logical) * cfg.window_drive_writes).ceil().max(1.0) as u64;
        let most = (f64::from(n_logical) * cfg.drive_writes_max) as u64;
        let tolerance = cfg.tolerance_percent;
        let mut overwriter = Overwriter::new(n_filled, seed);
        let (mut n, mut wafs) = (0u64, vec![]);
        aging.steady = loop {
            wafs.push(overwriter.run(ssd, window));
            if ssd.ftl().is_read_only() {
                break false;
            }
            n += window;
            aging.drive_writes = n as f64 / f64::from(n_logical);
            progress(aging.drive_writes);
            let spread = spread_percent(&wafs);
            // Write amplification means something once every place has been used
            // and what the filling laid out in order has been overwritten.
            let used_up = u64::from(n_filled) + n >= n_physical && n >= u64::from(n_filled);
            if used_up && spread.is_some_and(|s| s <= tolerance) {
                break true;
            }
            if n >= most {
                break false;
            }
        };
        let last = &wafs[wafs.len().saturating_sub(N_WINDOWS)..];
        aging.waf = Some(last.iter().sum::<f64>() / last.len() as f64);
        aging.waf_spread_percent = spread_percent(&wafs);
    }
    // A drive that is measured was idle before; what it collected then is no
    // cost of the workload.
    ssd.fill_idle();
    aging.read_only = ssd.ftl().is_read_only();
    aging.steady &= !aging.read_only;
    aging.free_blocks = ssd.ftl().n_free_blocks();
    aging
}

/// Fills what is still unmapped of some sector ranges, so that reads there find
/// something. Returns the units written.
pub fn fill_ranges(ssd: &mut Ssd, ranges: impl Iterator<Item = Range<u64>>) -> u64 {
    let per_unit = ssd.sectors_per_unit();
    let capacity = ssd.capacity_sectors();
    let mut n = 0;
    for range in ranges {
        let end = range.end.min(capacity).div_ceil(per_unit);
        for unit in range.start / per_unit..end {
            let lpn = Lpn(unit as u32);
            if !ssd.is_mapped(lpn) {
                ssd.fill_unit(lpn);
                n += 1;
            }
        }
    }
    n
}

fn spread_percent(wafs: &[f64]) -> Option<f64> {
    let last = wafs.len().checked_sub(N_WINDOWS).map(|from| &wafs[from..])?;
    let (min, max) = last.iter().fold((f64::MAX, 0.0f64), |(lo, hi), &w| (lo.min(w), hi.max(w)));
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    Some((max - min) / mean * 100.0)
}

/// Uniform random overwrites, a window at a time.
struct Overwriter {
    rng: Xoshiro256PlusPlus,
    n_units: u32,
    ahead: [u32; LOOK_AHEAD],
    at: usize,
}

impl Overwriter {
    fn new(n_units: u32, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x05EE_D0FA_6E50);
        let ahead = std::array::from_fn(|_| draw(&mut rng, n_units));
        Self { rng, n_units, ahead, at: 0 }
    }

    /// Overwrites `n` units; write amplification meanwhile (1 if the drive takes no
    /// writes).
    fn run(&mut self, ssd: &mut Ssd, n: u64) -> f64 {
        let before = ssd.counters().ftl;
        let per_unit = ssd.sectors_per_unit();
        for _ in 0..n {
            let lpn = self.ahead[self.at];
            let later = draw(&mut self.rng, self.n_units);
            self.ahead[self.at] = later;
            self.at = (self.at + 1) % LOOK_AHEAD;
            ssd.prefetch_map(Lba(u64::from(later) * per_unit));
            let half = self.ahead[(self.at + LOOK_AHEAD / 2) % LOOK_AHEAD];
            ssd.prefetch_place(Lba(u64::from(half) * per_unit));
            ssd.fill_unit(Lpn(lpn));
        }
        ssd.counters().ftl.since(&before).waf().unwrap_or(1.0)
    }
}

/// A uniform number below `n`.
fn draw(rng: &mut Xoshiro256PlusPlus, n: u32) -> u32 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u32
}
