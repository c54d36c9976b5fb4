//! The `chain` policy: small pieces of a file go plane by plane, and wait for their place in
//! a bounded part of the buffer.
//!
//! The drive is `tiny`: four dies of two planes, pages of two mapping units.

mod common;

use common::{Rng, check, drive, lba, read, write};
use flashwise_hint::WriteHint;
use flashwise_ssd::{Command, Lpn, RelationPolicy, Ssd};

const NONE: WriteHint = WriteHint::NONE;
const N_DIES: u32 = 4;
const N_PLANES: u32 = 2;
const UNITS_PER_PAGE: u32 = 2;

fn chained(sets: &[&str]) -> Ssd {
    drive("tiny", sets).with_relation(RelationPolicy::Chain)
}

/// Writes `n` units after the one before them.
fn append(ssd: &mut Ssd, now: &mut u64, unit: u32, n: u32) {
    append_to(ssd, now, unit - 1, unit, n);
}

/// Writes `n` units at `unit` as what comes after `prev` in a file.
fn append_to(ssd: &mut Ssd, now: &mut u64, prev: u32, unit: u32, n: u32) {
    let hint = WriteHint::append(lba(ssd, prev));
    put(ssd, now, unit, n, hint);
}

fn put(ssd: &mut Ssd, now: &mut u64, unit: u32, n: u32, hint: WriteHint) {
    let command = write(ssd, unit, n, hint);
    *now = ssd.submit(&command, *now).expect("the command is in range");
}

/// Die, plane and row of a unit.
fn place(ssd: &Ssd, unit: u32) -> (u16, u8, u32) {
    let place = ssd.ftl().place(ssd.ftl().lookup(Lpn(unit)).expect("written"));
    (place.die.0, place.page.plane, place.page_idx / N_PLANES)
}

/// Die and plane of each of `n` units.
fn slots(ssd: &Ssd, first: u32, n: u32) -> Vec<(u16, u8)> {
    (first..first + n).map(|u| place(ssd, u)).map(|(die, plane, _)| (die, plane)).collect()
}

#[test]
fn pieces_of_a_page_go_plane_by_plane_and_die_by_die() {
    let (mut ssd, mut now) = (chained(&[]), 0);
    put(&mut ssd, &mut now, 0, 2, NONE);
    for unit in (2..20).step_by(2) {
        append(&mut ssd, &mut now, unit, 2);
    }
    let expected = [0, 1, 2, 3].map(|die| [(die, 0), (die, 0), (die, 1), (die, 1)]).concat();
    assert_eq!(slots(&ssd, 0, 16), expected);
    assert_eq!(slots(&ssd, 16, 4), [(0, 0), (0, 0), (0, 1), (0, 1)]);
    check(&ssd);
}

#[test]
fn a_piece_goes_on_in_the_page_where_it_fits() {
    let (mut ssd, mut now) = (chained(&[]), 0);
    put(&mut ssd, &mut now, 0, 1, NONE);
    append(&mut ssd, &mut now, 1, 1);
    append(&mut ssd, &mut now, 2, 1);
    assert_eq!(slots(&ssd, 0, 3), [(0, 0), (0, 0), (0, 1)]);
    // It does not fit behind unit 2, and half of a page is of use to others.
    append(&mut ssd, &mut now, 3, 2);
    assert_eq!(slots(&ssd, 3, 2), [(1, 0), (1, 0)]);
    // A piece of one unit fits there best.
    append_to(&mut ssd, &mut now, 1, 100, 1);
    assert_eq!(place(&ssd, 100), place(&ssd, 2));
}

#[test]
fn an_overwrite_stays_in_its_die_and_plane() {
    let (mut ssd, mut now) = (chained(&[]), 0);
    put(&mut ssd, &mut now, 0, 32, NONE);
    let before = slots(&ssd, 0, 32);
    for unit in Rng(7).permutation(32) {
        put(&mut ssd, &mut now, unit, 1, WriteHint::overwrite());
    }
    assert_eq!(slots(&ssd, 0, 32), before);
    check(&ssd);
}

/// Appends pieces of a page to `n_files` files, whichever comes next; rows of neighbours
/// that lie in one row, of all, and hints that yielded.
fn grow(ssd: &mut Ssd, n_files: u32) -> (u32, u64) {
    let (mut now, mut rng) = (0, Rng(3));
    let room = 256;
    let mut at: Vec<u32> = (0..n_files).map(|f| f * room).collect();
    for _ in 0..n_files * 64 {
        let f = rng.below(n_files) as usize;
        let unit = at[f];
        if unit.is_multiple_of(room) {
            put(ssd, &mut now, unit, UNITS_PER_PAGE, NONE);
        } else if unit % room < room - UNITS_PER_PAGE {
            append(ssd, &mut now, unit, UNITS_PER_PAGE);
        } else {
            continue;
        }
        at[f] += UNITS_PER_PAGE;
    }
    check(ssd);
    let pieces = |f: usize| (f as u32 * room..at[f]).step_by(UNITS_PER_PAGE as usize);
    let n_row_mates = (0..at.len())
        .flat_map(|f| pieces(f).zip(pieces(f).skip(1)))
        .filter(|&(a, b)| {
            let (a, b) = (place(ssd, a), place(ssd, b));
            a.1 == 0 && b.1 == 1 && (a.0, a.2) == (b.0, b.2)
        })
        .count();
    (n_row_mates as u32, ssd.counters().ftl.hints_yielded)
}

#[test]
fn without_independent_planes_rows_wait_for_neighbours_as_far_as_the_buffer_goes() {
    let with = |kib: u32| {
        let set = format!("ftl.chain_kib={kib}");
        grow(&mut chained(&["flash.independent_plane_reads=false", &set]), 8)
    };
    let [(none, yielded_none), (some, yielded_some), (most, yielded_most)] = [0, 48, 128].map(with);
    assert!(none < some && some < most, "{none}, {some}, {most} pairs");
    assert!(yielded_none > yielded_some && yielded_some > yielded_most);
    // 8 files of 64 pieces are 256 pairs.
    assert!(most > 150, "{most} pairs");
}

#[test]
fn the_bound_holds_and_counts_all_dies() {
    // `check` compares the program units begun ahead with `chain_kib`.
    for kib in ["0", "16", "64", "1024"] {
        for planes in ["true", "false"] {
            let planes = format!("flash.independent_plane_reads={planes}");
            let set = format!("ftl.chain_kib={kib}");
            let mut ssd = chained(&[&planes, &set]);
            grow(&mut ssd, 16);
            let cfg = ssd.ftl().config();
            // Half of the buffer of 256 KiB at most, in program units of 16 KiB.
            let kib: u32 = kib.parse().expect("a number");
            assert_eq!(cfg.chain_pus, kib.min(128) / 16);
        }
    }
}

#[test]
fn chains_that_all_begin_on_one_die_fill_all_alike() {
    let (mut ssd, mut now) = (chained(&[]), 0);
    put(&mut ssd, &mut now, 0, 2 * UNITS_PER_PAGE, NONE);
    for unit in (10..4010).step_by(2) {
        append_to(&mut ssd, &mut now, 3, unit, 2);
    }
    let valid: Vec<_> = ssd.ftl().die_valid().collect();
    // Above the mean by a 128th and 16 program units of 4 units at most, and the last piece.
    let mean = valid.iter().sum::<u32>() / N_DIES;
    assert!(valid.iter().all(|&v| v <= mean + mean / 128 + 16 * 4 + 2), "{valid:?}");
    check(&ssd);
}

#[test]
fn a_drive_that_leaves_chain_goes_on() {
    let (mut ssd, mut now) = (chained(&[]), 0);
    put(&mut ssd, &mut now, 0, 2, NONE);
    for unit in (2..30).step_by(2) {
        append(&mut ssd, &mut now, unit, 2);
    }
    for policy in [RelationPolicy::Hints, RelationPolicy::None, RelationPolicy::Chain] {
        ssd = ssd.with_relation(policy);
        put(&mut ssd, &mut now, 100, 30, NONE);
        append(&mut ssd, &mut now, 200, 3);
        check(&ssd);
    }
    now = ssd.submit(&Command::Flush, now).expect("a flush is in range");
    let command = read(&ssd, 0, 32);
    ssd.submit(&command, now).expect("the command is in range");
    assert_eq!(ssd.ftl().n_buffered(), 0);
    check(&ssd);
}

#[test]
fn a_bound_that_is_no_number_of_bytes_is_refused() {
    for value in ["-1", "0.0001", "nan", "3000000"] {
        let message = common::build("tiny", &[&format!("ftl.chain_kib={value}")]).unwrap_err();
        assert!(message.contains("ftl.chain_kib"), "{value}: {message}");
    }
}
