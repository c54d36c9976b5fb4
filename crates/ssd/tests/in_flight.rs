//! Power fails while commands are in flight.
//!
//! Commands arrive without waiting for each other, so completions lie ahead of the
//! clock, and power may fail before, between and after them. The oracle keeps every
//! version of every sector with the time it was acknowledged and the time from which
//! it must survive: its completion, if it was forced or the buffer is protected, or
//! that of a flush that came after its completion. After power-on a sector holds the
//! newest version that had to survive, or one that came later. Blocks fail on some of
//! the drives, until such a drive takes nothing new.

mod common;

use common::{Rng, check};
use flashwise_hint::{DataClass, Handle, Lba, Relation, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, CommandError, Contents, DeviceConfig, Options, RelationPolicy, Ssd};

#[derive(Clone, Copy, Debug)]
struct Version {
    number: u64,
    done_ns: u64,
    durable_ns: u64,
}

const BLANK: Version = Version { number: 0, done_ns: 0, durable_ns: 0 };

/// A small drive of a random shape, with as little spare space as works or a bit more.
fn device(rng: &mut Rng) -> Option<Ssd> {
    let mut pick = |of: &[&'static str]| of[rng.below(of.len() as u32) as usize];
    let (unit, bits) = (pick(&["1", "4", "8"]), pick(&["slc", "mlc", "tlc", "qlc"]));
    let order = pick(&["alternate", "one-shot", "shared"]);
    let mut sets: Vec<String> = [
        ("geometry.channels", pick(&["1", "2", "3"])),
        ("geometry.dies_per_channel", pick(&["1", "2"])),
        ("geometry.planes", pick(&["1", "2"])),
        ("geometry.blocks_per_plane", pick(&["13", "20", "29", "34"])),
        ("geometry.pages_per_block", pick(&["12", "24", "36"])),
        ("geometry.page_kib", pick(&["8", "16"])),
        ("flash.native", bits),
        ("flash.page_order", order),
        ("flash.cache_program", pick(&["true", "false"])),
        ("flash.cache_read", pick(&["true", "false"])),
        ("flash.independent_plane_reads", pick(&["true", "false"])),
        ("ftl.unit_kib", unit),
        ("ftl.handles", pick(&["1", "3", "4"])),
        ("ftl.gc_low_blocks", pick(&["2", "3"])),
        ("ftl.yield_percent", pick(&["0", "25", "100"])),
        ("ftl.yield_erases", pick(&["0", "0.5", "10"])),
        ("ftl.yield_programs", pick(&["0", "1", "4"])),
        ("ftl.victim", pick(&["greedy", "cost-benefit", "fifo"])),
        ("ftl.idle_us", pick(&["100", "10000"])),
        ("buffer.kib", pick(&["128", "256"])),
        ("buffer.power_protected", pick(&["false", "false", "true"])),
        ("buffer.coalesce", pick(&["true", "false"])),
        ("host.mdts_kib", "64"),
        ("wear.leveling", pick(&["none", "dynamic", "static"])),
        ("wear.gap_max", "2"),
        ("wear.scrub_reads", pick(&["0", "0", "40"])),
        ("faults.program_fail_ppm", pick(&["0", "0", "500", "5000", "30000"])),
        ("faults.erase_fail_ppm", pick(&["0", "0", "5000"])),
        ("faults.factory_bad_ppm", pick(&["0", "10000"])),
    ]
    .iter()
    .map(|(key, value)| format!("{key}={value}"))
    .collect();
    let (more, hints) = (pick(&["0", "0.05", "0.2", "0.6"]), pick(&["none", "hints"]));
    let open = |sets: &[String]| DeviceConfig::open("tiny", sets).expect("the keys exist");
    sets.push("ftl.over_provisioning=0".to_owned());
    let refused = Ssd::new(open(&sets), Options::default()).err()?.to_string();
    // Some shapes have too few blocks for any spare space.
    let least: f64 = refused.rsplit(' ').next()?.parse().ok()?;
    let more: f64 = more.parse().expect("a number");
    sets.push(format!("ftl.over_provisioning={:.4}", least + more));
    let relation = if hints == "hints" { RelationPolicy::Hints } else { RelationPolicy::None };
    let options = Options { relation, contents: Contents::Memory, crash_recovery: true };
    Ssd::new(open(&sets), options).ok()
}

struct Run {
    ssd: Ssd,
    sectors: Vec<Vec<Version>>,
    rng: Rng,
    now: u64,
    last_done: u64,
    number: u64,
}

impl Run {
    fn new(seed: u64) -> Option<Self> {
        let mut rng = Rng(seed);
        let ssd = device(&mut rng)?;
        let sectors = vec![vec![BLANK]; ssd.capacity_sectors() as usize];
        Some(Self { ssd, sectors, rng, now: 0, last_done: 0, number: 0 })
    }

    fn capacity(&self) -> u64 {
        self.sectors.len() as u64
    }

    fn protected(&self) -> bool {
        self.ssd.config().buffer.power_protected
    }

    /// First sector of a place for `len` sectors, often in the first part of the drive.
    fn place(&mut self, len: u64) -> u64 {
        let at = self.rng.next() % (self.capacity() - len + 1);
        let at = if self.rng.below(2) == 0 { at } else { at / 4 };
        let unit = self.ssd.sectors_per_unit();
        if self.rng.below(3) == 0 { at } else { at / unit * unit }
    }

    fn put(&mut self, sectors: std::ops::Range<u64>, number: u64, done_ns: u64, forced: bool) {
        let durable_ns = if forced || self.protected() { done_ns } else { u64::MAX };
        for sector in sectors {
            self.sectors[sector as usize].push(Version { number, done_ns, durable_ns });
        }
    }

    fn hint(&mut self) -> WriteHint {
        let relation = match self.rng.below(4) {
            0 => Relation::None,
            1 => Relation::Overwrite,
            2 => Relation::Append { prev: Lba(0) },
            _ => Relation::Append { prev: Lba(self.rng.next() % (2 * self.capacity())) },
        };
        let handle = Handle(self.rng.below(u32::from(self.ssd.config().ftl.handles)) as u16);
        WriteHint { relation, class: DataClass::Unspecified, handle }
    }

    fn write(&mut self) {
        let unit = self.ssd.sectors_per_unit() as u32;
        let len = match self.rng.below(3) {
            0 => unit,
            1 => unit * (1 + self.rng.below(4)),
            _ => 1 + self.rng.below(self.ssd.max_sectors()),
        };
        let len = len.min(self.ssd.max_sectors());
        let first = self.place(u64::from(len));
        self.write_at(first, len);
        // Once more through another handle: the two lie in different program units, and
        // which is programmed first is open.
        if self.rng.below(3) == 0 {
            self.write_at(first, len);
        }
    }

    fn write_at(&mut self, first: u64, len: u32) {
        let (forced, hint) = (self.rng.below(10) == 0, self.hint());
        self.number += 1;
        let mut data = vec![0u8; len as usize * SECTOR_BYTES as usize];
        for (bytes, sector) in data.chunks_exact_mut(SECTOR_BYTES as usize).zip(first..) {
            bytes[..8].copy_from_slice(&self.number.to_le_bytes());
            bytes[504..].copy_from_slice(&sector.to_le_bytes());
        }
        let done = self.ssd.write_bytes(Lba(first), &data, forced, hint, self.now);
        let sectors = first..first + u64::from(len);
        match done {
            Ok(done) => self.last_done = done,
            Err(e) => return self.refused(&e, sectors, self.number),
        }
        self.put(sectors, self.number, self.last_done, forced);
    }

    /// A drive without spare blocks takes nothing new; it may have become one in the
    /// middle of the command.
    fn refused(&mut self, e: &CommandError, sectors: std::ops::Range<u64>, number: u64) {
        assert!(matches!(e, CommandError::ReadOnly { .. }), "{e}");
        for sector in sectors {
            let newest = self.sectors[sector as usize].last().map(|v| v.number);
            let found = self.read(sector);
            if Some(found) != newest {
                assert_eq!(found, number, "sector {sector}");
                self.put(sector..sector + 1, number, self.last_done, false);
            }
        }
    }

    fn submit(&mut self, command: &Command) -> Result<(), CommandError> {
        self.last_done = self.ssd.submit(command, self.now)?;
        Ok(())
    }

    fn trim(&mut self) {
        let sectors = 1 + self.rng.below((self.capacity() / 4) as u32);
        let first = self.place(u64::from(sectors));
        if let Err(e) = self.submit(&Command::Trim { lba: Lba(first), sectors }) {
            return self.refused(&e, first..first, 0);
        }
        let unit = self.ssd.sectors_per_unit();
        let end = (first + u64::from(sectors)) / unit * unit;
        self.put(first.div_ceil(unit) * unit..end, 0, self.last_done, false);
    }

    fn zero(&mut self) {
        let sectors = 1 + self.rng.below(3 * self.ssd.sectors_per_unit() as u32);
        let first = self.place(u64::from(sectors));
        let all = first..first + u64::from(sectors);
        if let Err(e) = self.submit(&Command::WriteZeroes { lba: Lba(first), sectors }) {
            return self.refused(&e, all, 0);
        }
        self.put(all, 0, self.last_done, false);
    }

    fn flush(&mut self) {
        self.submit(&Command::Flush).expect("a flush is never refused");
        let (now, done) = (self.now, self.last_done);
        for version in self.sectors.iter_mut().flatten() {
            if version.done_ns <= now {
                version.durable_ns = version.durable_ns.min(done);
            }
        }
    }

    /// Number of what a sector holds.
    fn read(&mut self, sector: u64) -> u64 {
        let mut data = [0u8; SECTOR_BYTES as usize];
        let done = self.ssd.read_bytes(Lba(sector), &mut data, self.now);
        self.last_done = done.expect("in range");
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let number = word(&data[..8]);
        let expected = if number == 0 { 0 } else { sector };
        assert_eq!(word(&data[504..]), expected, "data of another sector");
        number
    }

    fn power_cut(mut self) -> Self {
        let at = match self.rng.below(3) {
            0 => self.now,
            1 => self.now + u64::from(self.rng.below(3_000_000)),
            _ => self.now.max(self.last_done),
        };
        let off = self.ssd.power_cut(at).expect("contents are kept");
        self.ssd = off.power_on().expect("memory does not fail");
        self.now = 0;
        for sector in 0..self.capacity() {
            let found = self.read(sector);
            let versions = &mut self.sectors[sector as usize];
            let safe = versions.iter().rposition(|v| v.durable_ns <= at).unwrap_or(0);
            let may_be = &versions[safe..];
            assert!(
                may_be.iter().any(|v| v.number == found),
                "cut at {at}: sector {sector} holds {found}, not one of {may_be:?}"
            );
            *versions = vec![Version { number: found, ..BLANK }];
        }
        self.now = self.last_done;
        self
    }

    fn step(mut self) -> Self {
        match self.rng.below(10) {
            0..4 => self.now = self.now.max(self.last_done),
            4..8 => self.now += u64::from(self.rng.below(100_000)),
            8 if self.rng.below(10) == 0 => self.now += u64::from(self.rng.below(50_000_000)),
            _ => {}
        }
        match self.rng.below(100) {
            0..66 => self.write(),
            66..70 => self.trim(),
            70..76 => self.zero(),
            76..80 => self.flush(),
            80..99 => {
                let sector = self.place(1);
                let newest = self.sectors[sector as usize].last().map(|v| v.number);
                assert_eq!(Some(self.read(sector)), newest, "sector {sector}");
            }
            _ => return self.power_cut(),
        }
        self
    }
}

#[test]
fn what_was_acknowledged_and_made_durable_survives_with_commands_in_flight() {
    let mut n_shapes = 0;
    let n_seeds = std::env::var("FLASHWISE_SEEDS").ok().and_then(|n| n.parse().ok());
    let mut n_read_only = 0;
    for seed in 0..n_seeds.unwrap_or(60) {
        let Some(mut run) = Run::new(seed) else { continue };
        n_shapes += 1;
        for step in 0..500 {
            run = run.step();
            if step % 16 == 0 {
                check(&run.ssd);
            }
        }
        n_read_only += u32::from(run.ssd.ftl().is_read_only());
        run.power_cut();
    }
    assert!(n_shapes > 25, "{n_shapes} shapes can be built");
    assert!(n_read_only > 0, "no drive lost all its spare blocks");
}
