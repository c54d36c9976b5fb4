//! Relation hints and where data goes: appends go on die by die, overwrites stay,
//! wrong hints fall back, collection keeps what hints achieved, and no pattern of
//! hints can fill one die.
//!
//! The drive is `tiny`: four dies, program units of four mapping units.

mod common;

use common::{Rng, check, die_of, dies_of, drive, fill, hinted, lba, n_units, read, write};
use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, DieId, Lpn, Options, RelationPolicy, Ssd};

const NONE: WriteHint = WriteHint::NONE;
const N_DIES: u32 = 4;
const UNITS_PER_PU: u32 = 4;

/// Sectors of a mapping unit of 4 KiB.
const SECTORS: u64 = 8;

/// The write goes on after `unit`.
fn after(unit: u32) -> WriteHint {
    WriteHint::append(Lba(u64::from(unit) * SECTORS))
}

fn tiny() -> Ssd {
    hinted("tiny", &[])
}

/// Writes `n` units at depth one.
fn put(ssd: &mut Ssd, now: &mut u64, unit: u32, n: u32, hint: WriteHint) {
    let command = write(ssd, unit, n, hint);
    *now = ssd.submit(&command, *now).expect("the command is in range");
}

/// Units that each die may still take in.
fn slacks(ssd: &Ssd) -> Vec<u64> {
    let ftl = ssd.ftl();
    let (cfg, layout) = (ftl.config(), ftl.layout());
    let usable = cfg.geo.n_blocks_per_plane - cfg.reserve_blocks();
    let limit = u64::from(usable * layout.units_per_block);
    ftl.die_valid().map(|v| limit.checked_sub(u64::from(v)).expect("within the limit")).collect()
}

/// No die has less slack than the yield rule leaves it: at least
/// (100 - yield) percent of the mean, but for the unit just placed.
fn assert_balanced(ssd: &Ssd) {
    let all = slacks(ssd);
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    let keep = f64::from(100 - ssd.config().ftl.yield_percent) / 100.0;
    let least = *all.iter().min().expect("there are dies") as f64;
    assert!(least + 1.0 >= mean * keep, "slack {all:?}, mean {mean}, keep {keep}");
}

/// Collection always has a block's worth of blank places for each die, in free
/// blocks or in those it is filling.
fn assert_room_left(ssd: &Ssd) {
    let n = ssd.ftl().n_blank();
    let least = N_DIES * ssd.ftl().layout().units_per_block;
    assert!(n >= u64::from(least), "{n} blank places on {N_DIES} dies");
}

#[test]
fn without_hints_program_units_go_round_robin() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 20, NONE);
    assert_eq!(dies_of(&ssd, 0, 20), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0, 0]);
}

#[test]
fn a_grain_below_the_program_unit_is_the_step_between_dies() {
    let (mut ssd, mut now) = (hinted("tiny", &["ftl.grain_kib=4"]), 0);
    put(&mut ssd, &mut now, 0, 9, NONE);
    assert_eq!(dies_of(&ssd, 0, 9), [0, 1, 2, 3, 0, 1, 2, 3, 0]);
    let (mut ssd, mut now) = (hinted("tiny", &["ftl.grain_kib=8"]), 0);
    put(&mut ssd, &mut now, 0, 1, NONE);
    put(&mut ssd, &mut now, 1, 10, after(0));
    assert_eq!(dies_of(&ssd, 1, 10), [1, 1, 2, 2, 3, 3, 0, 1, 1, 2]);
    assert_eq!(ssd.nand().counters().programs, 0, "no program unit is full yet");
    check(&ssd);
}

#[test]
fn a_grain_divides_the_program_unit() {
    for (grain, expected) in [("12", "16 KiB"), ("32", "16 KiB"), ("6", "4096"), ("-1", "grain")] {
        let message = common::build("tiny", &[&format!("ftl.grain_kib={grain}")]).unwrap_err();
        assert!(message.contains("ftl.grain_kib") && message.contains(expected), "{message}");
    }
}

#[test]
fn an_append_lands_on_the_die_after_that_of_the_previous_block() {
    for prev in [0, 4, 8, 12, 15] {
        let (mut ssd, mut now) = (tiny(), 0);
        put(&mut ssd, &mut now, 0, 16, NONE);
        let expected = (die_of(&ssd, prev).expect("written") + 1) % N_DIES as u16;
        put(&mut ssd, &mut now, 100, 1, after(prev));
        assert_eq!(die_of(&ssd, 100), Some(expected), "after unit {prev}");
    }
}

#[test]
fn short_appends_move_on_to_the_next_die_each_time() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 1, NONE);
    for unit in 1..9 {
        put(&mut ssd, &mut now, unit, 1, after(unit - 1));
    }
    assert_eq!(dies_of(&ssd, 0, 9), [0, 1, 2, 3, 0, 1, 2, 3, 0]);
}

#[test]
fn an_append_longer_than_a_program_unit_goes_on_die_by_die() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 1, NONE);
    put(&mut ssd, &mut now, 1, 12, after(0));
    assert_eq!(dies_of(&ssd, 1, 12), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    // Die 0 has one unit in its open program unit: it takes three more.
    put(&mut ssd, &mut now, 13, 8, after(12));
    assert_eq!(dies_of(&ssd, 13, 8), [0, 0, 0, 1, 1, 1, 1, 2]);
}

#[test]
fn an_append_does_not_move_the_round_robin() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 1, NONE);
    put(&mut ssd, &mut now, 100, 8, after(0));
    assert_eq!(dies_of(&ssd, 100, 8), [1, 1, 1, 1, 2, 2, 2, 2]);
    put(&mut ssd, &mut now, 200, 7, NONE);
    assert_eq!(dies_of(&ssd, 200, 7), [0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn every_unit_of_an_overwrite_stays_on_its_own_die() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 32, NONE);
    // Off the grid of program units, so that one command mixes dies.
    let before = dies_of(&ssd, 2, 27);
    for _ in 0..50 {
        put(&mut ssd, &mut now, 2, 27, WriteHint::overwrite());
        assert_eq!(dies_of(&ssd, 2, 27), before);
    }
    check(&ssd);
}

#[test]
fn an_overwrite_of_scattered_units_keeps_the_scatter() {
    let (mut ssd, mut now) = (tiny(), 0);
    for unit in Rng(1).permutation(32) {
        put(&mut ssd, &mut now, unit, 1, NONE);
    }
    let before = dies_of(&ssd, 0, 32);
    put(&mut ssd, &mut now, 0, 32, WriteHint::overwrite());
    assert_eq!(dies_of(&ssd, 0, 32), before);
}

#[test]
fn the_unmapped_part_of_an_overwrite_goes_round_robin() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 8, NONE);
    put(&mut ssd, &mut now, 4, 8, WriteHint::overwrite());
    assert_eq!(dies_of(&ssd, 4, 4), [1; 4], "these were mapped");
    assert_eq!(dies_of(&ssd, 8, 4), [2; 4], "the round robin stood on die 2");
}

#[test]
fn a_previous_block_that_is_not_there_falls_back_to_round_robin() {
    let capacity = tiny().capacity_sectors();
    let missing = [Lba(800), Lba(capacity - 1), Lba(capacity), Lba(u64::MAX)];
    for prev in missing {
        let (mut ssd, mut now) = (tiny(), 0);
        put(&mut ssd, &mut now, 0, 8, NONE);
        put(&mut ssd, &mut now, 8, 8, WriteHint::append(prev));
        assert_eq!(dies_of(&ssd, 8, 8), [2, 2, 2, 2, 3, 3, 3, 3], "{prev:?}");
        assert_eq!(ssd.counters().ftl.hints_yielded, 0, "no die was passed over");
    }
}

#[test]
fn a_previous_block_that_was_trimmed_falls_back_to_round_robin() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 8, NONE);
    let trim = Command::Trim { lba: lba(&ssd, 0), sectors: 8 };
    now = ssd.submit(&trim, now).expect("in range");
    put(&mut ssd, &mut now, 8, 4, after(0));
    assert_eq!(dies_of(&ssd, 8, 4), [2; 4]);
}

#[test]
fn an_append_to_the_block_it_writes_goes_by_the_old_place() {
    let (mut ssd, mut now) = (tiny(), 0);
    put(&mut ssd, &mut now, 0, 8, NONE);
    put(&mut ssd, &mut now, 0, 4, after(0));
    assert_eq!(dies_of(&ssd, 0, 4), [1; 4]);
}

#[test]
fn relation_none_ignores_every_hint() {
    let (mut plain, mut told) = (drive("tiny", &[]), drive("tiny", &[]));
    let mut rng = Rng(2);
    let (n, mut now) = (n_units(&plain), 0);
    for step in 0..6000 {
        let len = 1 + rng.below(8);
        let unit = rng.below(n - len);
        let hint = match rng.below(3) {
            0 => WriteHint::overwrite(),
            1 => after(rng.below(n)),
            _ => WriteHint::append(Lba(rng.next())),
        };
        let a = plain.submit(&write(&plain, unit, len, NONE), now).expect("in range");
        let b = told.submit(&write(&told, unit, len, hint), now).expect("in range");
        assert_eq!(a, b, "step {step}");
        now = a;
    }
    assert!(plain.counters().ftl.gc_runs > 0, "collection took part");
    assert_eq!(plain.counters(), told.counters());
    let places = |ssd: &Ssd| (0..n).map(|u| ssd.ftl().lookup(Lpn(u))).collect::<Vec<_>>();
    assert_eq!(places(&plain), places(&told));
}

#[test]
fn collection_keeps_the_die_of_every_unit() {
    for victim in ["ftl.victim=greedy", "ftl.victim=cost-benefit", "ftl.victim=fifo"] {
        let mut ssd = hinted("tiny", &[victim]);
        fill(&mut ssd);
        let n = n_units(&ssd);
        let mut rng = Rng(3);
        let mut now = 0;
        let mut dies = dies_of(&ssd, 0, n);
        for step in 0..20_000 {
            let unit = rng.below(n);
            let hint = match rng.below(3) {
                0 => NONE,
                1 => WriteHint::overwrite(),
                _ => after(rng.below(n)),
            };
            put(&mut ssd, &mut now, unit, 1, hint);
            dies[unit as usize] = die_of(&ssd, unit).expect("just written");
            if step % 1000 == 0 {
                // An idle spell collects too.
                now += 200_000_000;
            }
        }
        assert!(ssd.counters().ftl.bytes_gc > 20_000 * 4096 / 4, "{victim}: collection moved data");
        assert_eq!(dies_of(&ssd, 0, n), dies, "{victim}");
        check(&ssd);
    }
}

/// Program unit a unit lies in, and its position there.
fn in_program_unit(ssd: &Ssd, unit: u32) -> (u32, u32) {
    let ppn = ssd.ftl().lookup(Lpn(unit)).expect("the unit is mapped").0;
    (ppn / UNITS_PER_PU, ppn % UNITS_PER_PU)
}

/// On every die each second program unit is cold: it stays as it is, those between
/// are overwritten at random. How many cold ones there are, how many moved, and how
/// many do not lie in one program unit in their order any more.
fn collect_around_cold_data(sets: &[&str]) -> (usize, usize, usize) {
    let mut ssd = hinted("tiny", sets);
    fill(&mut ssd);
    let n = n_units(&ssd);
    let is_cold = |unit: u32| (unit / UNITS_PER_PU / N_DIES).is_multiple_of(2);
    let firsts = (0..n / UNITS_PER_PU).map(|pu| pu * UNITS_PER_PU);
    let cold: Vec<u32> = firsts.filter(|&u| is_cold(u)).collect();
    let before: Vec<_> = cold.iter().map(|&u| in_program_unit(&ssd, u)).collect();
    let (mut rng, mut now) = (Rng(4), 0);
    for _ in 0..40_000 {
        let unit = rng.below(n);
        if !is_cold(unit) {
            put(&mut ssd, &mut now, unit, 1, NONE);
        }
    }
    check(&ssd);
    let (mut n_moved, mut n_broken) = (0, 0);
    for (&first, &old) in cold.iter().zip(&before) {
        let now_at = in_program_unit(&ssd, first);
        let whole = (0..UNITS_PER_PU).all(|i| in_program_unit(&ssd, first + i) == (now_at.0, i));
        n_moved += usize::from(now_at != old);
        n_broken += usize::from(!whole);
    }
    (cold.len(), n_moved, n_broken)
}

#[test]
fn collection_keeps_wholly_valid_program_units_whole_while_blocks_are_not_short() {
    for victim in ["ftl.victim=greedy", "ftl.victim=cost-benefit", "ftl.victim=fifo"] {
        for protection in protections() {
            let sets = [victim, protection, "ftl.gc_low_blocks=6"];
            let (n_cold, n_moved, n_broken) = collect_around_cold_data(&sets);
            assert!(n_moved * 2 > n_cold, "{sets:?}: {n_moved} of {n_cold} moved");
            assert_eq!(n_broken, 0, "{sets:?}: of {n_cold}");
        }
    }
}

#[test]
fn collection_keeps_nearly_all_of_them_whole_with_the_lowest_marks() {
    for victim in ["ftl.victim=greedy", "ftl.victim=cost-benefit", "ftl.victim=fifo"] {
        for protection in protections() {
            let sets = [victim, protection];
            // With the lowest marks a die can be without a free block, and then the two
            // kinds of moved data share what is open.
            let (n_cold, _, n_broken) = collect_around_cold_data(&sets);
            assert!(n_broken * 100 <= n_cold, "{sets:?}: {n_broken} of {n_cold}");
        }
    }
}

/// Overwrites a full drive with hints that all lead to die 0; `next` picks the unit.
fn press(sets: &[&str], n: u32, mut next: impl FnMut(&Ssd, &mut Rng) -> u32) -> Ssd {
    let mut ssd = hinted("tiny", sets);
    fill(&mut ssd);
    let mut rng = Rng(5);
    let mut now = 0;
    // A unit on the last die that is never written again: what is appended to it
    // belongs on die 0.
    let n_logical = n_units(&ssd);
    let anchor = (0..n_logical).rfind(|&u| die_of(&ssd, u) == Some(3)).expect("die 3 is used");
    for step in 0..n {
        let unit = next(&ssd, &mut rng);
        if unit != anchor {
            put(&mut ssd, &mut now, unit, 1, after(anchor));
        }
        assert_balanced(&ssd);
        assert_room_left(&ssd);
        if step % 2000 == 0 {
            check(&ssd);
        }
    }
    check(&ssd);
    assert_eq!(die_of(&ssd, anchor), Some(3));
    ssd
}

fn protections() -> [&'static str; 2] {
    ["buffer.power_protected=false", "buffer.power_protected=true"]
}

#[test]
fn hints_that_all_name_one_die_do_not_fill_it() {
    for protection in protections() {
        let ssd = press(&[protection], 15_000, |ssd, rng| rng.below(n_units(ssd)));
        let c = ssd.counters().ftl;
        assert!(c.hints_yielded > 5000, "{protection}: {} yielded", c.hints_yielded);
        assert!(c.hints_yielded < 15_000, "{protection}: hints worked where they could");
        let valid: Vec<u32> = ssd.ftl().die_valid().collect();
        assert!(valid[0] > *valid[1..].iter().max().expect("four dies"), "{valid:?}: die 0 leads");
    }
}

#[test]
fn overwriting_only_what_is_on_other_dies_does_not_fill_a_die() {
    for protection in protections() {
        let ssd = press(&[protection], 15_000, |ssd, rng| {
            loop {
                let unit = rng.below(n_units(ssd));
                if die_of(ssd, unit) != Some(0) {
                    return unit;
                }
            }
        });
        assert!(ssd.counters().ftl.hints_yielded > 5000, "{protection}");
    }
}

#[test]
fn overwriting_only_what_is_on_other_dies_does_not_fill_a_die_without_hints() {
    let mut ssd = hinted("tiny", &[]);
    fill(&mut ssd);
    let (mut rng, mut now) = (Rng(6), 0);
    for _ in 0..20_000 {
        let unit = rng.below(n_units(&ssd));
        if die_of(&ssd, unit) != Some(0) {
            put(&mut ssd, &mut now, unit, 1, NONE);
            assert_balanced(&ssd);
            assert_room_left(&ssd);
        }
    }
    check(&ssd);
}

#[test]
fn any_yield_percentage_serves_hints_that_name_one_die() {
    for protection in protections() {
        for yield_percent in [0, 1, 50, 90, 99, 100] {
            let yields = format!("ftl.yield_percent={yield_percent}");
            press(&[protection, &yields], 4000, |ssd, rng| rng.below(n_units(ssd)));
        }
    }
}

/// By how many erases per block the die that is most worn is ahead of the mean.
fn wear_lead(ssd: &Ssd) -> f64 {
    let erases = ssd.ftl().die_erases();
    let mean = erases.iter().sum::<u64>() as f64 / erases.len() as f64;
    let most = *erases.iter().max().expect("there are dies") as f64;
    (most - mean) / f64::from(ssd.ftl().config().geo.n_blocks_per_plane)
}

/// Overwrites some few units `n` times with hints that name die 0; the greatest lead on the
/// way. Few, so that die 0 keeps its space.
fn wear_die_0(ssd: &mut Ssd, now: &mut u64, n: u32) -> f64 {
    let (mut rng, mut most) = (Rng(8), 0f64);
    let anchor = (0..n_units(ssd)).rfind(|&u| die_of(ssd, u) == Some(3)).expect("die 3 is used");
    for step in 0..n {
        put(ssd, now, rng.below(64), 1, after(anchor));
        if step % 100 == 0 {
            most = most.max(wear_lead(ssd));
        }
    }
    check(ssd);
    most
}

#[test]
fn hints_that_all_name_one_die_do_not_wear_it_out() {
    for protection in protections() {
        let lead_of = |sets: &[&str]| {
            let mut ssd = hinted("tiny", &[&[protection, "ftl.yield_programs=0"], sets].concat());
            fill(&mut ssd);
            let lead = wear_die_0(&mut ssd, &mut 0, 60_000);
            (lead, ssd.counters().ftl.hints_yielded_wear)
        };
        let (lead, n) = lead_of(&[]);
        assert!((9.0..10.5).contains(&lead), "{protection}: {lead} erases per block ahead");
        assert!(n > 1000, "{protection}: {n} yielded");
        let (lead, n) = lead_of(&["ftl.yield_erases=1"]);
        assert!((0.5..1.5).contains(&lead), "{protection}: {lead} erases per block ahead");
        assert!(n > 1000, "{protection}: {n} yielded");
        let (lead, n) = lead_of(&["ftl.yield_erases=1e6"]);
        assert!(lead > 20.0 && n == 0, "{protection}: {lead} without the rule, {n} yielded");
    }
}

#[test]
fn the_lead_of_a_die_is_known_after_a_power_cut_and_in_a_saved_drive() {
    let options =
        Options { relation: RelationPolicy::Hints, crash_recovery: true, ..Options::default() };
    let sets = ["ftl.yield_erases=2", "ftl.yield_programs=0"];
    let mut ssd = Ssd::new(common::config("tiny", &sets), options.clone()).expect("a drive");
    fill(&mut ssd);
    let mut now = 0;
    wear_die_0(&mut ssd, &mut now, 15_000);
    assert!(wear_lead(&ssd) > 1.8, "{}", wear_lead(&ssd));
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("drive");
    ssd.clone().save(&path).expect("a saved drive");
    let loaded = Ssd::load(&path, options).expect("just saved");
    let cut = ssd.power_cut(now).expect("out-of-band data is kept");
    for mut again in [loaded, cut.power_on().expect("the media is whole")] {
        assert!(wear_lead(&again) > 1.5, "{}", wear_lead(&again));
        let mut now = again.now_ns();
        let before = again.counters().ftl.hints_yielded_wear;
        let most = wear_die_0(&mut again, &mut now, 2_000);
        let n = again.counters().ftl.hints_yielded_wear - before;
        assert!(n > 100 && most < 2.3, "{n} yielded, {most} ahead");
    }
}

/// Sends all writes to die 0 of a blank drive faster than it takes them; the most units that
/// wait for it.
fn flood(sets: &[&str]) -> (u32, Ssd) {
    let (mut ssd, mut now) = (hinted("tiny", sets), 0);
    put(&mut ssd, &mut now, 0, 16, NONE);
    let mut most = 0;
    for unit in 16..600 {
        let command = write(&ssd, unit, 1, after(15));
        ssd.submit(&command, now).expect("in range");
        most = most.max(ssd.nand().n_buffered_of(DieId(0)));
    }
    check(&ssd);
    (most, ssd)
}

#[test]
fn hints_that_all_name_one_die_do_not_fill_the_buffer_with_it() {
    for protection in protections() {
        // 64 units, of which each of three other dies keeps two program units of four.
        let (most, ssd) = flood(&[protection, "ftl.yield_programs=2"]);
        let n = ssd.counters().ftl.hints_yielded_buffer;
        assert!((40..40 + UNITS_PER_PU).contains(&most) && n > 100, "{protection}: {most}, {n}");
        let (most, ssd) = flood(&[protection, "ftl.yield_programs=0"]);
        let n = ssd.counters().ftl.hints_yielded_buffer;
        assert!(most >= 60 && n == 0, "{protection}: {most} without the rule, {n}");
    }
}

#[test]
fn reads_stay_right_while_hints_press_on_one_die() {
    let mut ssd = common::with_contents("tiny", &[], RelationPolicy::Hints);
    let n = n_units(&ssd);
    let unit_bytes = (ssd.sectors_per_unit() * SECTOR_BYTES) as usize;
    let mut versions = vec![0u32; n as usize];
    let mut rng = Rng(7);
    let mut now = 0;
    let data = |unit: u32, version: u32| -> Vec<u8> {
        let word = (u64::from(unit) << 32 | u64::from(version)).to_le_bytes();
        word.repeat(unit_bytes / word.len())
    };
    let anchor = 13;
    for step in 0..n + 12_000 {
        let unit = if step < n { step } else { rng.below(n) };
        if step >= n && unit == anchor {
            continue;
        }
        versions[unit as usize] = step + 1;
        let hint = if step < n { NONE } else { WriteHint::append(lba(&ssd, anchor)) };
        let bytes = data(unit, step + 1);
        now = ssd.write_bytes(lba(&ssd, unit), &bytes, false, hint, now).expect("in range");
    }
    assert_eq!(die_of(&ssd, anchor), Some(3), "the anchor sends everything to die 0");
    assert!(ssd.counters().ftl.hints_yielded > 1000);
    let mut found = vec![0; unit_bytes];
    for unit in 0..n {
        now = ssd.read_bytes(lba(&ssd, unit), &mut found, now).expect("in range");
        assert!(found == data(unit, versions[unit as usize]), "unit {unit} is not its last write");
    }
    check(&ssd);
}

#[test]
fn a_hinted_file_reads_faster_than_one_that_lies_on_one_die() {
    // Appends spread what random round-robin turns would collide: eight program
    // units in file order need no two senses of one plane at a time.
    let (mut ssd, mut now) = (tiny(), 0);
    let mut prev = None;
    for pu in 0..8 {
        let unit = pu * UNITS_PER_PU;
        let hint = prev.map_or(NONE, after);
        put(&mut ssd, &mut now, unit, UNITS_PER_PU, hint);
        prev = Some(unit + UNITS_PER_PU - 1);
        // Somebody else writes in between and would take every other turn.
        put(&mut ssd, &mut now, 1000 + unit, UNITS_PER_PU, NONE);
    }
    now = ssd.submit(&Command::Flush, now).expect("a flush succeeds").max(ssd.rest());
    let file: Vec<u16> = (0..8).map(|pu| dies_of(&ssd, pu * UNITS_PER_PU, 1)[0]).collect();
    assert!(file.windows(2).all(|w| (w[0] + 1) % N_DIES as u16 == w[1]), "{file:?}");
    let before = ssd.counters().nand.die_collisions;
    ssd.submit(&read(&ssd, 0, 16), now).expect("in range");
    assert_eq!(ssd.counters().nand.die_collisions, before, "one program unit on each die");
}
