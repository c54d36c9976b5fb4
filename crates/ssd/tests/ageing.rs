//! What time and use do to a drive: wear and how it is spread, data moved before it
//! becomes unreadable, pages that need another sense, blocks that fail until none can
//! be spared, and what trimmed space is worth.

mod common;

use common::{Rng, build, check, drive, fill, lba, n_units, read, with_contents, write};
use flashwise_hint::{SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, CommandError, Lpn, Options, RelationPolicy, Ssd};

const NONE: WriteHint = WriteHint::NONE;

/// Fewest and most erases of the blocks of one die.
fn wear_of_die(ssd: &Ssd, die: usize) -> (u32, u32) {
    let n = ssd.ftl().config().geo.n_blocks_per_plane as usize;
    let wear = &ssd.nand().wear()[die * n..(die + 1) * n];
    (*wear.iter().min().unwrap(), *wear.iter().max().unwrap())
}

/// A full drive of which the first tenth is overwritten at random, for long.
fn hot_tenth(leveling: &str, drive_writes: u32) -> Ssd {
    let sets = [
        &format!("wear.leveling={leveling}") as &str,
        "wear.gap_max=20",
        "ftl.over_provisioning=0.15",
    ];
    let mut ssd = drive("tiny", &sets);
    fill(&mut ssd);
    let (n, mut rng) = (n_units(&ssd), Rng(3));
    for _ in 0..n * drive_writes {
        ssd.fill_unit(Lpn(rng.below(n / 10)));
    }
    check(&ssd);
    ssd
}

#[test]
fn static_levelling_bounds_the_spread_that_dynamic_levelling_leaves() {
    let spread = |ssd: &Ssd| {
        let of_die = (0..4).map(|die| wear_of_die(ssd, die));
        of_die.map(|(least, most)| most - least).max().unwrap()
    };
    let (dynamic, fixed) = (hot_tenth("dynamic", 100), hot_tenth("static", 100));
    // Blocks of cold data are never erased without it.
    assert!((0..4).all(|die| wear_of_die(&dynamic, die).0 == 0));
    assert!(spread(&dynamic) > 150, "{}", spread(&dynamic));
    // The gap, and 16 erases between two looks for the block that lags behind most; one
    // block at a time is helped.
    let bound = 20 + 2 * 16;
    assert!(spread(&fixed) <= bound, "{} > {bound}", spread(&fixed));
    assert_eq!(dynamic.counters().ftl.leveling_runs, 0);
    assert!(fixed.counters().ftl.leveling_runs > 100);
    // It costs little: every wholly valid block that is moved gives its die `gap`
    // more erases.
    let (cost, without) = (fixed.counters().ftl.waf(), dynamic.counters().ftl.waf());
    let cost = cost.unwrap() / without.unwrap();
    assert!((1.0..1.1).contains(&cost), "{cost}");
}

#[test]
fn dynamic_levelling_opens_the_least_worn_block() {
    let spread = |leveling: &str| {
        let mut ssd = drive("tiny", &[&format!("wear.leveling={leveling}"), "wear.gap_max=1000"]);
        let mut rng = Rng(8);
        for _ in 0..200_000 {
            ssd.fill_unit(Lpn(rng.below(1000)));
        }
        let (least, most) = wear_of_die(&ssd, 0);
        most - least
    };
    assert!(spread("dynamic") <= 4, "{}", spread("dynamic"));
    assert!(spread("none") >= spread("dynamic"));
}

/// Overwrites at random until the drive takes no more; the model of what it holds.
fn write_until_read_only(ssd: &mut Ssd, seed: u64) -> Vec<u64> {
    let (n, mut rng, mut now) = (n_units(ssd), Rng(seed), 0);
    let mut model = vec![0u64; n as usize];
    let mut data = vec![0u8; (ssd.sectors_per_unit() * SECTOR_BYTES) as usize];
    for version in 1..3_000_000u64 {
        let unit = if version <= u64::from(n) { version as u32 - 1 } else { rng.below(n) };
        data[..8].copy_from_slice(&version.to_le_bytes());
        match ssd.write_bytes(lba(ssd, unit), &data, false, NONE, now) {
            Ok(done) => now = done,
            Err(CommandError::ReadOnly { .. }) => {
                return model;
            }
            Err(e) => panic!("{e}"),
        }
        model[unit as usize] = version;
        if version % 4096 == 0 {
            check(ssd);
        }
    }
    panic!("the drive never became read-only: {:?}", ssd.ftl().health());
}

fn assert_holds(ssd: &mut Ssd, model: &[u64]) {
    let (mut now, mut data) = (ssd.now_ns(), vec![0u8; 4096]);
    for (unit, &version) in model.iter().enumerate() {
        let done = ssd.read_bytes(lba(ssd, unit as u32), &mut data, now);
        now = done.expect("a read-only drive reads");
        assert_eq!(u64::from_le_bytes(data[..8].try_into().unwrap()), version, "unit {unit}");
    }
}

#[test]
fn no_data_is_lost_while_spare_blocks_last_and_then_the_drive_is_read_only() {
    for (failures, power) in [
        ("faults.program_fail_ppm=1000", "buffer.power_protected=true"),
        ("faults.program_fail_ppm=1000", "buffer.power_protected=false"),
        ("faults.erase_fail_ppm=20000", "buffer.power_protected=false"),
    ] {
        let sets = [failures, power, "faults.factory_bad_ppm=20000", "ftl.over_provisioning=0.4"];
        let mut ssd = with_contents("tiny", &sets, RelationPolicy::None);
        let new = ssd.ftl().health();
        assert!(new.spare_blocks > 3 && new.factory_bad > 0 && !new.read_only, "{new:?}");
        assert_eq!(new.spare_blocks + u64::from(new.bad_blocks()), new.spare_blocks_new);
        let model = write_until_read_only(&mut ssd, 5);
        check(&ssd);
        let health = ssd.ftl().health();
        assert!(health.read_only, "{health:?}");
        assert!(health.program_failures + health.erase_failures > 3, "{health:?}");
        assert_eq!(health.program_failures > 0, failures.starts_with("faults.program"));
        assert_eq!(health.erase_failures > 0, failures.starts_with("faults.erase"));
        assert!(health.spare_blocks < new.spare_blocks, "{health:?}");
        assert_holds(&mut ssd, &model);

        // Nothing changes it, and it says why.
        let now = ssd.now_ns();
        let (at, per_unit) = (lba(&ssd, 0), ssd.sectors_per_unit() as u32);
        for command in [
            write(&ssd, 0, 1, NONE),
            Command::Trim { lba: at, sectors: per_unit },
            Command::WriteZeroes { lba: at, sectors: per_unit },
        ] {
            let e = ssd.submit(&command, now).expect_err("it is read-only");
            assert!(e.to_string().contains("read-only"), "{e}");
        }
        ssd.submit(&Command::Flush, now).expect("a flush has nothing to refuse");
        assert_holds(&mut ssd, &model);

        // It stays so, whatever happens to it.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("drive");
        ssd.save(&path).unwrap();
        let mut loaded = Ssd::load(&path, Options::default()).unwrap();
        assert_eq!(loaded.ftl().health(), health);
        assert_holds(&mut loaded, &model);
        let now = ssd.now_ns();
        let mut back = ssd.power_cut(now).expect("kept").power_on().expect("readable");
        assert_eq!(back.ftl().health(), health);
        check(&back);
        assert_holds(&mut back, &model);
    }
}

#[test]
fn failed_programs_cost_space_and_work_and_add_up() {
    let run = |ppm: u32| {
        let ppm = format!("faults.program_fail_ppm={ppm}");
        let mut ssd = drive("tiny", &[&ppm, "ftl.capacity_mib=16"]);
        let (n, mut rng, mut now) = (n_units(&ssd), Rng(4), 0);
        for _ in 0..4 * n {
            let command = write(&ssd, rng.below(n), 1, NONE);
            now = ssd.submit(&command, now).expect("spare blocks are left");
        }
        check(&ssd);
        ssd
    };
    let (sound, failing) = (run(0), run(1500));
    let (a, b) = (sound.counters().ftl, failing.counters().ftl);
    assert_eq!(a.bytes_redo, 0);
    let lost = failing.ftl().health().program_failures;
    assert!(lost >= 3, "{lost}");
    // A program unit of the preset holds four units.
    assert!(b.bytes_redo > 0 && b.bytes_redo <= u64::from(lost) * 4 * 4096);
    let parts = b.bytes_host - b.bytes_coalesced + b.bytes_gc + b.bytes_padding + b.bytes_redo;
    assert_eq!(b.bytes_programmed(), parts + b.bytes_rmw + b.bytes_meta);
    assert!(b.bytes_gc > a.bytes_gc, "less spare space, more collection");
    assert!(failing.counters().nand.programs > sound.counters().nand.programs);
}

#[test]
fn bad_blocks_from_the_start_are_never_used_and_too_many_are_refused() {
    let mut ssd = drive("tiny", &["faults.factory_bad_ppm=30000", "ftl.over_provisioning=0.3"]);
    let bad = ssd.ftl().health().factory_bad;
    assert!(bad > 0);
    fill(&mut ssd);
    let mut rng = Rng(1);
    for _ in 0..10 * n_units(&ssd) {
        let unit = rng.below(n_units(&ssd));
        ssd.fill_unit(Lpn(unit));
    }
    check(&ssd);
    let unused = ssd.nand().wear().iter().filter(|&&n| n == 0).count();
    assert_eq!(unused, bad as usize);
    let e = build("tiny", &["faults.factory_bad_ppm=400000"]).expect_err("too many");
    assert!(e.contains("faults.factory_bad_ppm = 400000") && e.contains("spared"), "{e}");
}

#[test]
fn a_retry_costs_one_sense() {
    let latency = |sets: &[&str]| {
        let mut ssd = drive("tiny", sets);
        fill(&mut ssd);
        let now = ssd.rest();
        let mut all: Vec<u64> = vec![];
        let mut at = now;
        for unit in 0..64 {
            let done = ssd.submit(&read(&ssd, unit, 1), at).unwrap();
            all.push(done - at);
            at = done + 10_000_000;
        }
        (all, ssd.counters().nand.read_retries)
    };
    let (sound, none) = latency(&[]);
    assert_eq!(none, 0);
    let (all, n) = latency(&["faults.read_retry_ppm=1000000", "faults.read_retries_max=3"]);
    assert_eq!(n, 3 * 64);
    // Senses of at most 4 KiB take 32 us on this preset.
    for (a, b) in sound.iter().zip(&all) {
        assert_eq!(b - a, 3 * 32_000);
    }
    let (some, n) = latency(&["faults.read_retry_ppm=300000", "faults.seed=5"]);
    assert!((5..40).contains(&n), "{n}");
    let added: u64 = some.iter().zip(&sound).map(|(a, b)| (a - b) / 32_000).sum();
    assert_eq!(added, n);
}

#[test]
fn data_that_is_read_often_moves_and_is_still_there() {
    let sets = ["wear.scrub_reads=2000", "ftl.over_provisioning=0.3"];
    let mut ssd = with_contents("tiny", &sets, RelationPolicy::None);
    let (n, mut now) = (n_units(&ssd), 0);
    let mut data = vec![0u8; 4096];
    for unit in 0..n {
        data[..8].copy_from_slice(&u64::from(unit + 1).to_le_bytes());
        now = ssd.write_bytes(lba(&ssd, unit), &data, false, NONE, now).unwrap();
    }
    for _ in 0..30_000 {
        now = ssd.submit(&read(&ssd, 0, 1), now).unwrap();
    }
    check(&ssd);
    let c = ssd.counters().ftl;
    assert!((3..=15).contains(&c.scrub_runs), "{}", c.scrub_runs);
    let model: Vec<u64> = (1..=u64::from(n)).collect();
    assert_holds(&mut ssd, &model);
    // Off by default.
    let mut off = drive("tiny", &[]);
    fill(&mut off);
    let mut now = off.rest();
    for _ in 0..30_000 {
        now = off.submit(&read(&off, 0, 1), now).unwrap();
    }
    assert_eq!(off.counters().ftl.scrub_runs, 0);
}

#[test]
fn old_data_moves_in_idle_time_once_per_age() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let mut ssd = drive("tiny", &["wear.scrub_hours=100", "ftl.over_provisioning=0.3"]);
    let (n, mut now) = (n_units(&ssd), 0);
    for unit in 0..n {
        now = ssd.submit(&write(&ssd, unit, 1, NONE), now).unwrap();
    }
    let n_closed = |ssd: &Ssd| {
        let layout = ssd.ftl().layout();
        u64::from(n_units(ssd) / layout.units_per_block)
    };
    let mut at = now;
    let mut visit = |ssd: &mut Ssd, hours: u64| {
        at += hours * HOUR_NS;
        ssd.submit(&read(ssd, 0, 1), at).unwrap();
        check(ssd);
        ssd.counters().ftl.scrub_runs
    };
    assert_eq!(visit(&mut ssd, 99), 0);
    // Every filled block moves once in about a hundred hours.
    let first = (0..60).map(|_| visit(&mut ssd, 1)).last().unwrap();
    assert!((n_closed(&ssd)..=n_closed(&ssd) + 8).contains(&first), "{first}");
    let second = (0..150).map(|_| visit(&mut ssd, 1)).last().unwrap();
    let more = second - first;
    assert!((n_closed(&ssd)..=2 * n_closed(&ssd)).contains(&more), "{more}");
}

#[test]
fn trimmed_space_is_spare_space() {
    let waf = |trimmed_percent: u32| {
        let mut ssd = drive("bench-16g", &["geometry.blocks_per_plane=64", "ftl.capacity_mib=0"]);
        fill(&mut ssd);
        let n = n_units(&ssd);
        let kept = n - (u64::from(n) * u64::from(trimmed_percent) / 100) as u32;
        let per_unit = ssd.sectors_per_unit() as u32;
        if kept < n {
            let command = Command::Trim { lba: lba(&ssd, kept), sectors: (n - kept) * per_unit };
            ssd.submit(&command, 0).unwrap();
        }
        let mut rng = Rng(6);
        for _ in 0..4 * n {
            ssd.fill_unit(Lpn(rng.below(kept)));
        }
        let before = ssd.counters().ftl;
        for _ in 0..2 * n {
            ssd.fill_unit(Lpn(rng.below(kept)));
        }
        ssd.counters().ftl.since(&before).waf().unwrap()
    };
    let wafs = [0, 20, 50].map(waf);
    assert!(wafs[0] > 1.3 * wafs[1] && wafs[1] > 1.3 * wafs[2], "{wafs:?}");
}

/// Blocks fail now and then on drives that are full and worn, of every kind; collection
/// never runs out of room, whatever else goes on.
#[test]
fn collection_keeps_its_room_while_blocks_fail() {
    for victim in ["greedy", "cost-benefit", "fifo"] {
        for (program, erase) in [(20, 0), (0, 500), (300, 300), (3000, 0)] {
            for power in ["true", "false"] {
                let sets = [
                    &format!("ftl.victim={victim}") as &str,
                    &format!("faults.program_fail_ppm={program}"),
                    &format!("faults.erase_fail_ppm={erase}"),
                    &format!("buffer.power_protected={power}"),
                    "faults.worn_factor=10",
                    "flash.endurance=30",
                    "wear.gap_max=4",
                    "geometry.blocks_per_plane=200",
                    "ftl.over_provisioning=0.1",
                ];
                let mut ssd = drive("tiny", &sets);
                fill(&mut ssd);
                let (n, mut rng) = (n_units(&ssd), Rng(9));
                for i in 0..12 * n {
                    let hot = if i % 3 == 0 { n } else { n / 8 };
                    ssd.fill_unit(Lpn(rng.below(hot)));
                    if i % 40_000 == 0 {
                        check(&ssd);
                    }
                }
                check(&ssd);
                let health = ssd.ftl().health();
                assert!(health.bad_blocks() > 0, "{health:?}");
            }
        }
    }
}

#[test]
fn a_long_silence_is_no_excuse_for_old_data() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let runs = |hours: u64| {
        let mut ssd = drive("tiny", &["wear.scrub_hours=24", "ftl.over_provisioning=0.3"]);
        fill(&mut ssd);
        let now = ssd.rest();
        ssd.submit(&read(&ssd, 0, 1), now + hours * HOUR_NS).unwrap();
        check(&ssd);
        ssd.counters().ftl.scrub_runs
    };
    let n_filled = runs(30);
    assert!(n_filled > 20, "{n_filled}");
    assert_eq!(runs(20), 0);
    // Thirty days: once a day, all of it.
    let month = runs(24 * 30);
    assert!((n_filled * 28..=n_filled * 32).contains(&month), "{month} of {n_filled} a day");
}

/// Units 0 to 2 are durable; newer copies of them wait in one program unit, still newer
/// ones in another. When the first of the two fails, its copies are not written again, as
/// they are superseded: the durable ones must last until the second is programmed.
#[test]
fn a_failed_program_leaves_durable_data_alone() {
    let mut n_hits = 0;
    for seed in 0..1500 {
        let sets = [
            "geometry.channels=1",
            "geometry.dies_per_channel=1",
            "ftl.handles=2",
            "ftl.gc_low_blocks=2",
            "ftl.gc_high_blocks=31",
            "buffer.coalesce=false",
            "faults.program_fail_ppm=10000",
            &format!("faults.seed={seed}"),
        ];
        let mut ssd = with_contents("tiny", &sets, RelationPolicy::None);
        // A block, of which three units stay valid.
        (0..64).for_each(|unit| put(&mut ssd, unit, 0, 1));
        (3..67).for_each(|unit| put(&mut ssd, unit, 0, 2));
        let now = ssd.rest();
        ssd.submit(&Command::Flush, now).unwrap();
        let before = ssd.counters().ftl.bytes_redo;
        (0..3).for_each(|unit| put(&mut ssd, unit, 0, 3));
        (0..3).for_each(|unit| put(&mut ssd, unit, 1, 4));
        put(&mut ssd, 70, 0, 3);
        if before > 0 || ssd.counters().ftl.bytes_redo != 4096 {
            continue;
        }
        n_hits += 1;
        (71..74).for_each(|unit| put(&mut ssd, unit, 0, 5));
        // Idle time, in which the first block, empty by now, is collected.
        let later = ssd.now_ns() + 1_000_000_000;
        ssd.submit(&read(&ssd, 70, 1), later).unwrap();
        let end = ssd.rest();
        let mut back = ssd.power_cut(end).expect("kept").power_on().expect("readable");
        for unit in 0..3 {
            let mut data = vec![0u8; 4096];
            let now = back.now_ns();
            back.read_bytes(lba(&back, unit), &mut data, now).expect("it can be read");
            assert!([1, 3, 4].contains(&data[0]), "seed {seed}: unit {unit} holds {}", data[0]);
        }
    }
    assert!(n_hits > 2, "{n_hits} of the plans fail the program in question");
}

/// Writes a unit through a handle.
fn put(ssd: &mut Ssd, unit: u32, handle: u16, version: u8) {
    let hint = WriteHint { handle: flashwise_hint::Handle(handle), ..NONE };
    let now = ssd.now_ns();
    ssd.write_bytes(lba(ssd, unit), &[version; 4096], false, hint, now).unwrap();
}
