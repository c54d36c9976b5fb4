//! What the test files of this crate share: drives built from a preset, workloads,
//! runs of them, and the formula of greedy collection.
#![allow(dead_code, unused_imports, reason = "every test file uses a part of it")]

pub(crate) use flashwise_design::greedy_waf;
use flashwise_hint::Lba;
use flashwise_lab::{LabError, Pace, Policy, Replay, Row, replay};
use flashwise_ssd::{DeviceConfig, Lpn, Options, PresetError, Ssd};
use flashwise_workload::{OpKind, Source, Synthetic, SyntheticSpec};

/// Sectors of a 4 KiB unit.
pub(crate) const UNIT: u64 = 8;

pub(crate) fn build(preset: &str, sets: &[&str]) -> Result<Ssd, PresetError> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    Ssd::new(DeviceConfig::open(preset, &sets)?, Options::default())
}

pub(crate) fn drive(preset: &str, sets: &[&str]) -> Ssd {
    build(preset, sets).expect("a device that can be built")
}

pub(crate) fn try_run(ssd: &mut Ssd, source: impl Source, pace: Pace) -> Result<Row, LabError> {
    let policy = Policy::none();
    let spec = Replay { workload: "test", policy: &policy, pace, fit: None, cpu_clock: None };
    replay(ssd, source, &spec)
}

pub(crate) fn run(ssd: &mut Ssd, source: impl Source, queue_depth: u32) -> Row {
    try_run(ssd, source, Pace::Closed { queue_depth, gap_ns: 0 }).expect("a valid workload")
}

pub(crate) fn run_open(ssd: &mut Ssd, source: impl Source) -> Row {
    try_run(ssd, source, Pace::Open { time_scale: 1.0 }).expect("a valid workload")
}

pub(crate) fn random(ssd: &Ssd, read_percent: u32, n: u64, seed: u64) -> Synthetic {
    let spec = SyntheticSpec {
        read_percent,
        n_requests: Some(n),
        ..SyntheticSpec::random_write(ssd.capacity_sectors(), seed)
    };
    Synthetic::new(spec).expect("a valid workload")
}

/// Random overwrites of the first `n_units`.
pub(crate) fn overwrites(n_units: u64, n: u64, seed: u64) -> Synthetic {
    let n_requests = Some(n);
    let spec = SyntheticSpec { n_requests, ..SyntheticSpec::random_write(n_units * UNIT, seed) };
    Synthetic::new(spec).expect("a valid workload")
}

pub(crate) fn sequential(ssd: &Ssd, op: OpKind, block_sectors: u32, n: u64) -> Synthetic {
    let spec = SyntheticSpec {
        read_percent: if op == OpKind::Read { 100 } else { 0 },
        sequential: true,
        block_sectors,
        n_requests: Some(n),
        ..SyntheticSpec::random_write(ssd.capacity_sectors(), 1)
    };
    Synthetic::new(spec).expect("a valid workload")
}

pub(crate) fn units(ssd: &Ssd) -> u64 {
    ssd.capacity_sectors() / ssd.sectors_per_unit()
}

pub(crate) fn fill(ssd: &mut Ssd, n_units: u64) {
    (0..n_units).for_each(|lpn| ssd.fill_unit(Lpn(lpn as u32)));
}

pub(crate) fn read_ns(ssd: &mut Ssd, lba: u64, sectors: u32) -> u64 {
    let at = ssd.rest() + 1_000_000;
    ssd.submit_read(Lba(lba), sectors, at).unwrap() - at
}
