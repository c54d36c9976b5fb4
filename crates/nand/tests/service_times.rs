//! Service times against times computed by hand.

use flashwise_nand::*;

const KIB: u32 = 1024;
const US: u64 = 1000;

/// 65 us sense, 25 us transfer of a 16 KiB page.
fn nand(n_channels: u32, n_planes: u32, change: impl FnOnce(&mut Timing)) -> Nand {
    let geo = Geometry {
        n_channels,
        n_dies_per_channel: 1,
        n_planes,
        n_blocks_per_plane: 4,
        n_pages_per_block: 8,
        page_bytes: 16 * KIB,
        unit_bytes: 4 * KIB,
    };
    let cell = CellTiming {
        read_ns: [65 * US; 4],
        read_4k_ns: [65 * US; 4],
        program_ns: [450 * US; 4],
        erase_ns: 2000 * US,
    };
    let mut timing = Timing {
        native: CellMode::Tlc,
        main: cell,
        slc: cell,
        channel_ps_per_byte: 25 * US * 1000 / u64::from(16 * KIB),
        channel_chunk_bytes: 16 * KIB,
        cache_read: false,
        cache_program: false,
        independent_plane_reads: false,
        suspend_program_ns: None,
        suspend_erase_ns: None,
        suspends_max: 4,
    };
    // 25 us / 16 KiB is not a whole number of ps per byte: round up, then check.
    timing.channel_ps_per_byte += 1;
    change(&mut timing);
    Nand::new(geo, timing)
}

fn page(die: u16, plane: u8) -> PageRead {
    let page = PageInfo { plane, ptype: 0 };
    PageRead {
        die: DieId(die),
        block: BlockId(0),
        row: 0,
        planes: 1 << plane,
        mode: CellMode::Tlc,
        page,
        bytes: 16 * KIB,
        retries: 0,
    }
}

fn read_us(n: &mut Nand, r: &PageRead, at_us: u64) -> u64 {
    let mut last = 0;
    n.read(r, at_us * US, |end, _| last = end);
    last / US
}

fn program(die: u16, ready_us: u64) -> PageOp {
    PageOp {
        die: DieId(die),
        block: BlockId(u32::from(die) * 4),
        mode: CellMode::Tlc,
        page: PageInfo { plane: 0, ptype: 0 },
        bytes: 16 * KIB,
        retries: 0,
        ready_ns: ready_us * US,
    }
}

#[test]
fn eight_same_die_reads_without_cache_read_take_eight_times_sense_and_transfer() {
    let mut n = nand(1, 1, |_| ());
    let ends: Vec<u64> = (0..8).map(|_| read_us(&mut n, &page(0, 0), 0)).collect();
    assert_eq!(ends[7], 8 * (65 + 25));
    assert_eq!(n.counters().die_collisions, 7);
}

#[test]
fn eight_same_die_reads_with_cache_read_hide_all_transfers_but_the_last() {
    let mut n = nand(1, 1, |t| t.cache_read = true);
    let ends: Vec<u64> = (0..8).map(|_| read_us(&mut n, &page(0, 0), 0)).collect();
    assert_eq!(ends[0], 65 + 25);
    assert_eq!(ends[7], 8 * 65 + 25);
}

#[test]
fn with_cache_read_a_slow_channel_bounds_the_rate() {
    let mut n = nand(1, 1, |t| {
        t.cache_read = true;
        t.channel_ps_per_byte = 100 * US * 1000 / u64::from(16 * KIB) + 1;
    });
    let ends: Vec<u64> = (0..8).map(|_| read_us(&mut n, &page(0, 0), 0)).collect();
    assert_eq!(ends[7], 65 + 8 * 100);
}

#[test]
fn planes_overlap_only_where_the_part_can() {
    let both = |independent| {
        let mut n = nand(1, 2, |t| t.independent_plane_reads = independent);
        (read_us(&mut n, &page(0, 0), 0), read_us(&mut n, &page(0, 1), 0))
    };
    assert_eq!(both(true), (90, 90 + 25), "sensed together, one channel");
    assert_eq!(both(false), (90, 90 + 25), "a row is sensed as one");
}

#[test]
fn a_read_of_the_same_row_joins_a_sense_that_has_not_begun() {
    let ends = |change: fn(&mut PageRead), at_us: u64| {
        let mut n = nand(1, 2, |_| ());
        // The die is busy until 90 us, so the second read begins there.
        read_us(&mut n, &PageRead { row: 8, ..page(0, 0) }, 0);
        let second = read_us(&mut n, &page(0, 0), 10);
        let mut third = page(0, 1);
        change(&mut third);
        (second, read_us(&mut n, &third, at_us), n.counters().page_reads)
    };
    assert_eq!(ends(|_| (), 90), (180, 180 + 25, 2));
    assert_eq!(ends(|_| (), 91), (180, 180 + 90, 3), "it is being sensed");
    assert_eq!(ends(|r| r.row = 2, 20), (180, 180 + 90, 3), "another row");
    assert_eq!(ends(|r| r.block = BlockId(1), 20), (180, 180 + 90, 3), "another block");
    assert_eq!(ends(|r| r.planes = 1, 20), (180, 180 + 90, 3), "the same page again");
    assert_eq!(ends(|r| r.retries = 1, 20), (180, 180 + 65 + 90, 3), "one that needs retries");
}

#[test]
fn a_late_read_uses_the_gap_in_the_channel() {
    // Dies 0 and 1 share a channel. Die 0 is asked at 200 us, then die 1 at 0:
    // its transfer fits before, although it was booked later.
    let geo_two = |n: &mut Nand| (read_us(n, &page(0, 0), 200), read_us(n, &page(1, 0), 0));
    let mut g = nand(1, 1, |_| ());
    let mut geo = *g.geometry();
    geo.n_dies_per_channel = 2;
    g = Nand::new(geo, *g.timing());
    assert_eq!(geo_two(&mut g), (290, 90));
}

#[test]
fn a_multi_plane_program_moves_once_and_programs_once() {
    let mut n = nand(1, 2, |_| ());
    n.program(PageOp { bytes: 32 * KIB, ..program(0, 0) }, 8);
    assert_eq!(n.run_programs(DieId(0)) / US, 2 * 25 + 450);
}

#[test]
fn cache_program_hides_the_next_transfer() {
    let two = |cache| {
        let mut n = nand(1, 1, |t| t.cache_program = cache);
        n.program(program(0, 0), 4);
        n.program(program(0, 0), 4);
        n.run_programs(DieId(0)) / US
    };
    assert_eq!(two(false), 2 * (25 + 450));
    assert_eq!(two(true), 25 + 2 * 450);
}

#[test]
fn a_read_overtakes_work_that_has_not_begun_and_waits_for_work_that_has() {
    let mut n = nand(1, 1, |_| ());
    for _ in 0..4 {
        n.program(program(0, 0), 4);
    }
    // At 100 us the first program (0..475 us) is under way, three wait.
    assert_eq!(read_us(&mut n, &page(0, 0), 100), 475 + 90);
    assert_eq!(n.drain() / US, 4 * 475 + 90);
    assert_eq!(n.counters().programs, 4);
}

#[test]
fn a_suspended_program_lets_the_read_in_and_ends_later() {
    let mut n = nand(1, 1, |t| t.suspend_program_ns = Some(10 * US));
    n.program(program(0, 0), 4);
    assert_eq!(read_us(&mut n, &page(0, 0), 100), 100 + 10 + 90);
    assert_eq!(read_us(&mut n, &page(0, 0), 150), 200 + 90, "already suspended");
    // 375 us were left at 100 us.
    assert_eq!(n.run_programs(DieId(0)) / US, 290 + 375);
    assert_eq!(n.counters().suspends, 1, "the second read joins the first");
    let done = n.pop_done(u64::MAX).expect("one program");
    assert_eq!(done.end_ns / US, 665);
}

#[test]
fn a_promised_end_cannot_be_suspended() {
    let mut n = nand(1, 1, |t| t.suspend_program_ns = Some(10 * US));
    n.program(program(0, 0), 4);
    let done = n.pop_next().expect("one program");
    assert_eq!(done.end_ns / US, 475);
    assert_eq!(read_us(&mut n, &page(0, 0), 100), 475 + 90);
}

#[test]
fn suspension_is_bounded() {
    let mut n = nand(1, 1, |t| {
        t.suspend_erase_ns = Some(US);
        t.suspends_max = 2;
    });
    n.erase(DieId(0), BlockId(0), CellMode::Tlc, 0);
    let ends: Vec<u64> = (0..3).map(|i| read_us(&mut n, &page(0, 0), 100 + i * 200)).collect();
    // 100 + 1 + 90; 300 + 1 + 90; then the erase must end: 2000 + 91 + 91.
    assert_eq!(ends, [191, 391, 2182 + 90]);
}

#[test]
fn the_next_end_is_the_earliest_over_all_dies() {
    let mut n = nand(2, 1, |_| ());
    n.erase(DieId(0), BlockId(0), CellMode::Tlc, 0);
    n.program(program(0, 0), 4);
    n.program(program(1, 100), 4);
    let ends: Vec<u64> = std::iter::from_fn(|| n.pop_next()).map(|d| d.end_ns / US).collect();
    assert_eq!(ends, [575, 2000, 2475]);
}

#[test]
fn power_failure_tears_what_runs_and_forgets_what_waits() {
    let mut n = nand(1, 1, |_| ());
    n.program(program(0, 0), 4);
    n.program(program(0, 0), 4);
    n.program(program(0, 0), 4);
    n.advance_all(500 * US);
    assert_eq!(n.pop_done(500 * US).map(|d| d.end_ns / US), Some(475));
    let torn = n.cut(500 * US);
    assert_eq!(torn.len(), 1);
    assert_eq!(n.drain(), 0);
}

#[test]
fn work_promised_for_later_is_not_suspended_before_it_begins() {
    let mut n = nand(1, 1, |t| t.suspend_program_ns = Some(10 * US));
    n.program(program(0, 0), 4);
    n.program(program(0, 0), 4);
    assert_eq!(n.pop_next().map(|d| d.end_ns / US), Some(475), "promised");
    n.advance(DieId(0), 500 * US);
    // At 100 us the first program runs and was promised, the second is committed
    // for 475 us: the read waits for both.
    assert_eq!(read_us(&mut n, &page(0, 0), 100), 950 + 90);
    assert_eq!(n.counters().suspends, 0);
}

#[test]
fn a_transfer_taken_in_early_does_not_commit_the_die() {
    let mut n = nand(1, 1, |t| {
        t.cache_program = true;
        t.suspend_program_ns = Some(10 * US);
    });
    n.program(program(0, 0), 4);
    n.program(program(0, 0), 4);
    // The first program runs until 475 us; the second may move in from 450 us on.
    assert_eq!(read_us(&mut n, &page(0, 0), 460), 460 + 10 + 90);
    // 15 us were left of the first, so the second could begin at 575 us, but the
    // channel is busy with the read until 560 us and the data is in at 585 us.
    assert_eq!(n.run_programs(DieId(0)) / US, 585 + 450);
}

#[test]
fn moved_data_is_out_of_the_register_before_it_goes_back_in() {
    let mut n = nand(1, 1, |t| t.cache_read = true);
    n.copy_read(program(0, 0));
    n.program(program(0, 0), 4);
    // Sensed at 65 us, out at 90, in at 115, programmed at 565.
    assert_eq!(n.run_programs(DieId(0)) / US, 565);
}
