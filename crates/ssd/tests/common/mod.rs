//! What the test files of this crate share: drives built from a preset, commands on
//! whole mapping units, where a unit is, and a generator that needs no crate.
#![allow(dead_code, reason = "every test file uses a part of it")]

use flashwise_hint::{Lba, WriteHint};
use flashwise_ssd::{Command, Contents, DeviceConfig, Lpn, Options, RelationPolicy, Ssd};

/// The preset with these `key=value` changes.
pub(crate) fn config(preset: &str, sets: &[&str]) -> DeviceConfig {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    DeviceConfig::open(preset, &sets).unwrap_or_else(|e| panic!("{e}"))
}

/// A blank drive without contents, or the message of what is wrong.
pub(crate) fn build(preset: &str, sets: &[&str]) -> Result<Ssd, String> {
    let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
    let cfg = DeviceConfig::open(preset, &sets).map_err(|e| e.to_string())?;
    Ssd::new(cfg, Options::default()).map_err(|e| e.to_string())
}

/// A blank drive without contents.
pub(crate) fn drive(preset: &str, sets: &[&str]) -> Ssd {
    build(preset, sets).unwrap_or_else(|e| panic!("{e}"))
}

/// A blank drive without contents that acts on hints.
pub(crate) fn hinted(preset: &str, sets: &[&str]) -> Ssd {
    let options = Options { relation: RelationPolicy::Hints, ..Options::default() };
    Ssd::new(config(preset, sets), options).unwrap_or_else(|e| panic!("{e}"))
}

/// A blank drive that keeps contents in memory.
pub(crate) fn with_contents(preset: &str, sets: &[&str], relation: RelationPolicy) -> Ssd {
    let options = Options { relation, contents: Contents::Memory, crash_recovery: true };
    Ssd::new(config(preset, sets), options).unwrap_or_else(|e| panic!("{e}"))
}

/// Mapping units the host sees.
pub(crate) fn n_units(ssd: &Ssd) -> u32 {
    ssd.ftl().config().n_logical
}

/// First sector of a unit.
pub(crate) fn lba(ssd: &Ssd, unit: u32) -> Lba {
    Lba(u64::from(unit) * ssd.sectors_per_unit())
}

/// Writes `n` whole units from `unit`.
pub(crate) fn write(ssd: &Ssd, unit: u32, n: u32, hint: WriteHint) -> Command {
    let sectors = n * ssd.sectors_per_unit() as u32;
    Command::Write { lba: lba(ssd, unit), sectors, fua: false, hint }
}

/// Reads `n` whole units from `unit`.
pub(crate) fn read(ssd: &Ssd, unit: u32, n: u32) -> Command {
    Command::Read { lba: lba(ssd, unit), sectors: n * ssd.sectors_per_unit() as u32 }
}

/// Die that holds a unit.
pub(crate) fn die_of(ssd: &Ssd, unit: u32) -> Option<u16> {
    let ftl = ssd.ftl();
    ftl.lookup(Lpn(unit)).map(|ppn| ftl.place(ppn).die.0)
}

/// Dies that hold `n` units from `unit`.
pub(crate) fn dies_of(ssd: &Ssd, unit: u32, n: u32) -> Vec<u16> {
    (unit..unit + n).map(|u| die_of(ssd, u).expect("the unit is mapped")).collect()
}

/// Fills the exported space in order, without timing.
pub(crate) fn fill(ssd: &mut Ssd) {
    (0..n_units(ssd)).for_each(|u| ssd.fill_unit(Lpn(u)));
}

/// Panics with the first invariant that does not hold.
pub(crate) fn check(ssd: &Ssd) {
    ssd.self_check().unwrap_or_else(|what| panic!("{what}"));
}

/// splitmix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; the bias of the remainder does not matter here.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        ((self.next() >> 32) % u64::from(n)) as u32
    }

    /// The numbers below `n` in random order.
    pub(crate) fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n).collect();
        for i in (1..n).rev() {
            all.swap(i as usize, self.below(i + 1) as usize);
        }
        all
    }
}
