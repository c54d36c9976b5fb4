//! The fast device against a slow one.
//!
//! The oracle is a map from sector to the versions it may hold: one after it was
//! made durable, more while writes are only buffered and power may fail. Both are
//! driven with writes (whole and partial units, right, wrong and hostile hints),
//! trims, zeroes, flushes, forced writes, idle time that lets collection run, power
//! cuts, saves and loads; blocks are worn evenly or not, scrubbed, and fail; after every
//! step every invariant is checked, and reads compare contents that were stored at their
//! physical place. A drive that has lost its last spare block refuses writes, and still
//! reads everything.

use std::collections::BTreeMap;

use flashwise_hint::{DataClass, Handle, Lba, Relation, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, CommandError, Contents, DeviceConfig, Options, RelationPolicy, Ssd};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Write { at: u64, sectors: u32, fua: bool, relation: u8, prev: u64, handle: u16 },
    Burst { at: u64, n: u32, stride: u64, relation: u8 },
    Trim { at: u64, sectors: u32 },
    Zero { at: u64, sectors: u32 },
    Read { at: u64, sectors: u32 },
    Flush,
    Idle { us: u64 },
    PowerCut { early_us: u64 },
    SaveAndLoad,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0..1u64 << 32;
    let step = prop_oneof![
        6 => (at.clone(), 1..40u32, any::<bool>(), 0..4u8, at.clone(), 0..4u16).prop_map(
            |(at, sectors, fua, relation, prev, handle)| Step::Write {
                at, sectors, fua: fua && sectors % 3 == 0, relation, prev, handle
            }
        ),
        6 => (at.clone(), 1..200u32, 0..600u64, 0..4u8)
            .prop_map(|(at, n, stride, relation)| Step::Burst { at, n, stride, relation }),
        2 => (at.clone(), 1..3000u32).prop_map(|(at, sectors)| Step::Trim { at, sectors }),
        1 => (at.clone(), 1..60u32).prop_map(|(at, sectors)| Step::Zero { at, sectors }),
        3 => (at, 1..60u32).prop_map(|(at, sectors)| Step::Read { at, sectors }),
        2 => Just(Step::Flush),
        1 => prop_oneof![3 => 0..60_000u64, 1 => 0..9_000_000_000u64]
            .prop_map(|us| Step::Idle { us }),
        2 => (0..3000u64).prop_map(|early_us| Step::PowerCut { early_us }),
        1 => Just(Step::SaveAndLoad),
    ];
    prop::collection::vec(step, 1..120)
}

#[derive(Clone, Debug)]
struct Shape {
    channels: u32,
    dies: u32,
    planes: u32,
    handles: u16,
    unit_kib: u32,
    power_protected: bool,
    coalesce: bool,
    victim: &'static str,
    relation: RelationPolicy,
    over_provisioning: f64,
    leveling: &'static str,
    /// Reads after which a block is scrubbed; 0: never.
    scrub_reads: u32,
    grain_kib: u32,
    chain_kib: u32,
    independent_planes: bool,
    /// Chances of failure, as parts of what is plenty; 0: none.
    faults: u32,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let victims = prop::sample::select(vec!["greedy", "cost-benefit", "fifo"]);
    let relation = prop::sample::select(RelationPolicy::ALL.map(|(_, p)| p).to_vec());
    let size = (1..3u32, 1..3u32, 1..3u32, 1..4u16, prop::sample::select(vec![4u32, 8]));
    let op = prop::sample::select(vec![0.02, 0.3]);
    let leveling = prop::sample::select(vec!["none", "dynamic", "static"]);
    let scrub_reads = prop::sample::select(vec![0u32, 0, 5, 100]);
    let faults = prop::sample::select(vec![0u32, 0, 0, 1, 10]);
    let ageing = (leveling, scrub_reads, faults);
    let grain = prop::sample::select(vec![0u32, 0, 8]);
    let chain = (grain, prop::sample::select(vec![0u32, 8, 16, 32]), any::<bool>());
    (size, any::<bool>(), any::<bool>(), victims, relation, op, (ageing, chain)).prop_map(
        |(
            (channels, dies, planes, handles, unit_kib),
            power_protected,
            coalesce,
            victim,
            relation,
            op,
            ((leveling, scrub_reads, faults), (grain_kib, chain_kib, independent_planes)),
        )| {
            Shape {
                channels,
                dies,
                planes,
                handles,
                unit_kib,
                power_protected,
                coalesce,
                victim,
                relation,
                over_provisioning: op,
                leveling,
                scrub_reads,
                grain_kib,
                chain_kib,
                independent_planes,
                faults,
            }
        },
    )
}

/// As little spare space as asked for, or as little as the shape allows.
fn device(s: &Shape) -> Ssd {
    let more = (0..100).map(|i| s.over_provisioning + 0.02 * f64::from(i));
    more.filter_map(|op| try_device(s, op)).next().expect("some spare space is enough")
}

fn try_device(s: &Shape, over_provisioning: f64) -> Option<Ssd> {
    let sets = [
        format!("geometry.channels={}", s.channels),
        format!("geometry.dies_per_channel={}", s.dies),
        format!("geometry.planes={}", s.planes),
        "geometry.blocks_per_plane=32".to_owned(),
        "geometry.pages_per_block=8".to_owned(),
        "geometry.page_kib=8".to_owned(),
        format!("ftl.unit_kib={}", s.unit_kib),
        format!("ftl.handles={}", s.handles),
        format!("ftl.victim={}", s.victim),
        format!("ftl.over_provisioning={over_provisioning}"),
        format!("buffer.power_protected={}", s.power_protected),
        format!("buffer.coalesce={}", s.coalesce),
        "buffer.kib=64".to_owned(),
        format!("ftl.yield_erases={}", if s.handles == 2 { 10.0 } else { 0.1 }),
        format!("ftl.yield_programs={}", s.handles - 1),
        format!("wear.leveling={}", s.leveling),
        "wear.gap_max=2".to_owned(),
        format!("ftl.grain_kib={}", s.grain_kib),
        format!("ftl.chain_kib={}", s.chain_kib),
        format!("flash.independent_plane_reads={}", s.independent_planes),
        format!("wear.scrub_reads={}", s.scrub_reads),
        format!("wear.scrub_hours={}", if s.scrub_reads > 5 { 1.0 } else { 0.0 }),
        format!("faults.seed={}", s.channels + 7 * s.planes),
        format!("faults.factory_bad_ppm={}", s.faults * 1000),
        format!("faults.program_fail_ppm={}", s.faults * 500),
        format!("faults.erase_fail_ppm={}", s.faults * 2000),
        format!("faults.read_retry_ppm={}", s.faults * 30_000),
        format!("faults.worn_factor={}", 1 + s.faults),
        "flash.endurance=50".to_owned(),
    ];
    let cfg = DeviceConfig::open("tiny", &sets).expect("the keys exist");
    let options =
        Options { relation: s.relation, contents: Contents::Memory, crash_recovery: true };
    Ssd::new(cfg, options).ok()
}

/// What one sector may hold: the durable version, then what came after.
type Versions = Vec<u64>;

struct Pair {
    ssd: Ssd,
    shape: Shape,
    model: BTreeMap<u64, Versions>,
    now: u64,
    version: u64,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        Self { ssd: device(&shape), shape, model: BTreeMap::new(), now: 0, version: 0 }
    }

    fn place(&self, at: u64, sectors: u32) -> (u64, u32) {
        let capacity = self.ssd.capacity_sectors();
        let sectors = u64::from(sectors).min(capacity);
        (at % (capacity - sectors + 1), sectors as u32)
    }

    fn versions(&mut self, sector: u64) -> &mut Versions {
        self.model.entry(sector).or_insert_with(|| vec![0])
    }

    fn put(&mut self, first: u64, sectors: u32, version: u64, durable: bool) {
        for sector in first..first + u64::from(sectors) {
            let v = self.versions(sector);
            if durable {
                v.clear();
            }
            v.push(version);
        }
    }

    fn write(&mut self, at: u64, sectors: u32, fua: bool, hint: WriteHint) {
        let sectors = sectors.min(self.ssd.max_sectors());
        let (first, sectors) = self.place(at, sectors);
        self.version += 1;
        let mut data = vec![0u8; sectors as usize * SECTOR_BYTES as usize];
        for (i, s) in data.chunks_exact_mut(SECTOR_BYTES as usize).enumerate() {
            s[..8].copy_from_slice(&self.version.to_le_bytes());
            s[504..].copy_from_slice(&(first + i as u64).to_le_bytes());
        }
        match self.ssd.write_bytes(Lba(first), &data, fua, hint, self.now) {
            Ok(done) => self.now = done,
            Err(e) => return self.refused(&e, first, sectors, self.version),
        }
        self.put(first, sectors, self.version, fua || self.shape.power_protected);
    }

    /// A drive without spare blocks refuses what changes it, perhaps in the middle of
    /// a command.
    fn refused(&mut self, e: &CommandError, first: u64, sectors: u32, version: u64) {
        assert!(matches!(e, CommandError::ReadOnly { .. }), "{e}");
        assert!(self.ssd.ftl().is_read_only() && self.shape.faults > 0, "{e}");
        self.now = self.now.max(self.ssd.now_ns());
        let mut data = vec![0u8; SECTOR_BYTES as usize];
        for sector in first..first + u64::from(sectors) {
            let done = self.ssd.read_bytes(Lba(sector), &mut data, self.now);
            self.now = done.expect("a read in range succeeds");
            let found = u64::from_le_bytes(data[..8].try_into().unwrap());
            let held = self.versions(sector);
            if held.last() != Some(&found) {
                assert_eq!(found, version, "sector {sector}");
                held.push(version);
            }
        }
    }

    fn hint(&self, relation: u8, prev: u64, handle: u16) -> WriteHint {
        let relation = match relation {
            0 => Relation::None,
            1 => Relation::Overwrite,
            // Right, wrong or far outside the device.
            2 => Relation::Append { prev: Lba(prev % self.ssd.capacity_sectors()) },
            _ => Relation::Append { prev: Lba(prev << 20) },
        };
        let handle = Handle(handle % self.shape.handles);
        WriteHint { relation, class: DataClass::Unspecified, handle }
    }

    fn read(&mut self, at: u64, sectors: u32) {
        let sectors = sectors.min(self.ssd.max_sectors());
        let (first, sectors) = self.place(at, sectors);
        let mut data = vec![0xAAu8; sectors as usize * SECTOR_BYTES as usize];
        let done = self.ssd.read_bytes(Lba(first), &mut data, self.now);
        self.now = done.expect("a read in range succeeds");
        for (i, s) in data.chunks_exact(SECTOR_BYTES as usize).enumerate() {
            let sector = first + i as u64;
            let found = u64::from_le_bytes(s[..8].try_into().unwrap());
            let place = u64::from_le_bytes(s[504..].try_into().unwrap());
            assert_eq!(place, if found == 0 { 0 } else { sector }, "data of another sector");
            let newest = *self.versions(sector).last().unwrap();
            assert_eq!(found, newest, "sector {sector} is not its last write");
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write { at, sectors, fua, relation, prev, handle } => {
                let hint = self.hint(relation, prev, handle);
                self.write(at, sectors, fua, hint);
            }
            Step::Burst { at, n, stride, relation } => {
                let unit = self.ssd.sectors_per_unit();
                for i in 0..u64::from(n) {
                    let at = at / unit * unit + i * stride * unit;
                    let hint = self.hint(relation, at.wrapping_sub(unit), 0);
                    self.write(at, unit as u32, false, hint);
                }
            }
            Step::Trim { at, sectors } => {
                let (first, sectors) = self.place(at, sectors);
                if let Err(e) = self.command(Command::Trim { lba: Lba(first), sectors }) {
                    return self.refused(&e, first, 1, 0);
                }
                let unit = self.ssd.sectors_per_unit();
                let inner = first.div_ceil(unit) * unit;
                let end = (first + u64::from(sectors)) / unit * unit;
                if inner < end {
                    let durable = self.shape.power_protected;
                    self.put(inner, (end - inner) as u32, 0, durable);
                }
            }
            Step::Zero { at, sectors } => {
                let (first, sectors) = self.place(at, sectors);
                if let Err(e) = self.command(Command::WriteZeroes { lba: Lba(first), sectors }) {
                    return self.refused(&e, first, sectors, 0);
                }
                self.put(first, sectors, 0, self.shape.power_protected);
            }
            Step::Read { at, sectors } => self.read(at, sectors),
            Step::Flush => {
                self.command(Command::Flush).expect("a flush succeeds");
                self.settle_model();
            }
            Step::Idle { us } => self.now += us * 1000,
            Step::PowerCut { early_us } => self.power_cut(early_us * 1000),
            Step::SaveAndLoad => self.save_and_load(),
        }
    }

    fn command(&mut self, command: Command) -> Result<(), CommandError> {
        self.now = self.ssd.submit(&command, self.now)?;
        Ok(())
    }

    fn settle_model(&mut self) {
        for v in self.model.values_mut() {
            v.drain(..v.len() - 1);
        }
    }

    /// Everything acknowledged by now counts; what the device is told of the
    /// future must not.
    fn power_cut(&mut self, later_ns: u64) {
        let ssd = self.ssd.clone().power_cut(self.now + later_ns).expect("kept");
        self.ssd = ssd.power_on().expect("memory does not fail");
        self.now = 0;
        let written: Vec<u64> = self.model.keys().copied().collect();
        let mut data = vec![0u8; SECTOR_BYTES as usize];
        for sector in written {
            let done = self.ssd.read_bytes(Lba(sector), &mut data, self.now);
            self.now = done.expect("a read in range succeeds");
            let found = u64::from_le_bytes(data[..8].try_into().unwrap());
            let allowed = self.versions(sector);
            assert!(allowed.contains(&found), "sector {sector} holds {found} of {allowed:?}");
            *allowed = vec![found];
        }
    }

    fn save_and_load(&mut self) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("drive");
        self.ssd.save(&path).expect("saving works");
        self.settle_model();
        let options = Options { relation: self.shape.relation, ..Options::default() };
        let loaded = Ssd::load(&path, options).expect("loading works");
        assert_eq!(loaded.nand().wear(), self.ssd.nand().wear());
        self.ssd = loaded;
        self.now = 0;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn the_device_agrees_with_the_oracle(shape in shapes(), steps in steps()) {
        let mut pair = Pair::new(shape);
        for step in &steps {
            pair.step(step);
            if let Err(what) = pair.ssd.self_check() {
                panic!("after {step:?}: {what}");
            }
        }
        let capacity = pair.ssd.capacity_sectors();
        for at in (0..capacity).step_by(64) {
            pair.read(at, 64);
        }
    }
}

/// Records of trims take blocks that collection needs, and collection writes records:
/// every mix of the two on the least spare space there can be.
#[test]
fn trims_and_flushes_leave_blocks_to_collection() {
    for victim in ["greedy", "cost-benefit", "fifo"] {
        for (planes, handles, dies) in [(2, 2, 1), (1, 3, 1), (1, 1, 2)] {
            let shape = Shape {
                channels: 1,
                dies,
                planes,
                handles,
                unit_kib: 4,
                power_protected: false,
                coalesce: false,
                victim,
                relation: RelationPolicy::None,
                over_provisioning: 0.02,
                leveling: "static",
                scrub_reads: 0,
                grain_kib: 0,
                chain_kib: 0,
                independent_planes: false,
                faults: 0,
            };
            let mut pair = Pair::new(shape);
            pair.step(&Step::Burst { at: 0, n: 4000, stride: 1, relation: 0 });
            for i in 0..400u64 {
                let at = i * 7_368_787;
                pair.step(&Step::Burst { at, n: i as u32 % 23, stride: 281, relation: 0 });
                pair.step(&Step::Trim { at: at + 40, sectors: 8 + i as u32 % 90 });
                for sector in 0..i % 40 {
                    pair.step(&Step::Trim { at: at + 800 + 8 * sector, sectors: 16 });
                    pair.step(&Step::Flush);
                }
                let handle = (i % 3) as u16;
                let write = Step::Write { at, sectors: 9, fua: true, relation: 0, prev: 0, handle };
                pair.step(&write);
                if let Err(what) = pair.ssd.self_check() {
                    panic!("{victim}, {planes} planes, round {i}: {what}");
                }
            }
        }
    }
}
