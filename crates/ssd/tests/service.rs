//! What each command does and when it is done, against times computed by hand from
//! the preset `tiny` (ns by its keys), and commands that are refused.

mod common;

use flashwise_hint::{Handle, Lba, WriteHint};
use flashwise_ssd::{Command, CommandError, Ssd};

fn tiny(sets: &[&str]) -> Ssd {
    common::drive("tiny", sets)
}

fn write(unit: u64, fua: bool) -> Command {
    Command::Write { lba: Lba(unit * 8), sectors: 8, fua, hint: WriteHint::NONE }
}

// tiny: firmware 5.6 us + 0.6 us per 4 KiB written, 20 us for a small read; link
// 3000 MB/s = 333 ps per byte; channel 1600 MB/s = 625 ps; program unit 16 KiB in two
// planes, LSB program 300 us, sense 32 us; pages of 8 KiB.
const WRITE_FW: u64 = 5600 + 600;
const READ_FW: u64 = 20_000;
const LINK_4K: u64 = 1364; // 4096 x 333 ps, rounded up
const CHANNEL_4K: u64 = 2560;
const CHANNEL_PU: u64 = 10_240;
const PROGRAM: u64 = 300_000;
const WRITTEN: u64 = WRITE_FW + LINK_4K;

#[test]
fn a_write_is_done_when_it_is_in_the_buffer() {
    let mut ssd = tiny(&[]);
    assert_eq!(ssd.submit(&write(0, false), 0).unwrap(), WRITTEN);
    assert_eq!(ssd.counters().nand.programs, 0);
}

#[test]
fn a_flush_programs_what_is_buffered_unless_the_buffer_is_protected() {
    let flush = |protected: &str| {
        let mut ssd = tiny(&[&format!("buffer.power_protected={protected}")]);
        ssd.submit(&write(0, false), 0).unwrap();
        let done = ssd.submit(&Command::Flush, 100_000).unwrap() - 100_000;
        (done, ssd.counters().ftl.bytes_padding)
    };
    assert_eq!(flush("true"), (5600, 0));
    // One unit of four is host data, three are padding.
    assert_eq!(flush("false"), (5600 + CHANNEL_PU + PROGRAM, 3 * 4096));
}

#[test]
fn force_unit_access_waits_for_its_own_program_only() {
    let force = |protected: &str| {
        let mut ssd = tiny(&[&format!("buffer.power_protected={protected}")]);
        ssd.submit(&write(0, true), 0).unwrap()
    };
    assert_eq!(force("true"), WRITTEN);
    assert_eq!(force("false"), WRITTEN + CHANNEL_PU + PROGRAM);
}

#[test]
fn a_flush_with_nothing_buffered_is_quick() {
    let mut ssd = tiny(&[]);
    assert_eq!(ssd.submit(&Command::Flush, 0).unwrap(), 5600);
    ssd.submit(&write(0, true), 10_000).unwrap();
    let start = ssd.rest();
    assert_eq!(ssd.submit(&Command::Flush, start).unwrap() - start, 5600);
}

#[test]
fn a_full_buffer_makes_the_next_write_wait_for_the_first_program() {
    // One program unit fits: the fifth write finds it full.
    let mut ssd = tiny(&["buffer.kib=16"]);
    for unit in 0..4 {
        assert_eq!(ssd.submit(&write(unit, false), 0).unwrap(), WRITTEN + unit * LINK_4K);
    }
    let programmed = WRITTEN + 3 * LINK_4K + CHANNEL_PU + PROGRAM;
    assert_eq!(ssd.submit(&write(4, false), 0).unwrap(), programmed);
    assert_eq!(ssd.counters().buffer_waits, 1);
}

#[test]
fn a_read_finds_data_in_the_buffer_on_the_media_or_nowhere() {
    let mut ssd = tiny(&[]);
    let read = |ssd: &mut Ssd, unit: u64, at| {
        ssd.submit(&Command::Read { lba: Lba(unit * 8), sectors: 8 }, at).unwrap() - at
    };
    assert_eq!(read(&mut ssd, 7, 0), READ_FW + LINK_4K, "unmapped: no sense");
    ssd.submit(&write(0, false), 100_000).unwrap();
    assert_eq!(read(&mut ssd, 0, 200_000), READ_FW + LINK_4K, "buffered");
    assert_eq!((ssd.counters().buffer_hits, ssd.counters().nand.page_reads), (1, 0));
    ssd.submit(&Command::Flush, 300_000).unwrap();
    let start = ssd.rest();
    assert_eq!(read(&mut ssd, 0, start), READ_FW + 32_000 + CHANNEL_4K + LINK_4K);
    ssd.submit(&Command::Trim { lba: Lba(0), sectors: 8 }, start + 200_000).unwrap();
    assert_eq!(read(&mut ssd, 0, start + 300_000), READ_FW + LINK_4K, "trimmed");
}

#[test]
fn a_partial_write_reads_what_it_lacks() {
    let sector = Command::Write { lba: Lba(3), sectors: 1, fua: false, hint: WriteHint::NONE };
    let mut ssd = tiny(&[]);
    ssd.submit(&write(0, true), 0).unwrap();
    let start = ssd.rest();
    let link = 171; // 512 x 333 ps
    let done = ssd.submit(&sector, start).unwrap() - start;
    assert_eq!(done, WRITE_FW + link + 32_000 + CHANNEL_4K);
    let c = ssd.counters();
    assert_eq!((c.rmw_reads, c.ftl.bytes_rmw), (1, 4096 - 512));
    // The next sector of the same unit finds it in the buffer.
    let next = Command::Write { lba: Lba(4), sectors: 1, fua: false, hint: WriteHint::NONE };
    let at = start + 1_000_000;
    assert_eq!(ssd.submit(&next, at).unwrap() - at, WRITE_FW + link);
    let c = ssd.counters();
    assert_eq!((c.rmw_reads, c.ftl.bytes_coalesced), (1, 512));
}

#[test]
fn trims_keep_units_they_cover_in_part() {
    let mut ssd = tiny(&[]);
    let mut now = 0;
    for unit in 0..4 {
        now = ssd.submit(&write(unit, false), now).unwrap();
    }
    now = ssd.submit(&Command::Trim { lba: Lba(4), sectors: 16 }, now).unwrap();
    assert_eq!((ssd.ftl().n_valid(), ssd.counters().ftl.units_trimmed), (3, 1));
    let zeroes = Command::WriteZeroes { lba: Lba(4), sectors: 24 };
    ssd.submit(&zeroes, now).unwrap();
    // Units 1 and 2 are gone, 0 and 3 were written in part.
    assert_eq!((ssd.ftl().n_valid(), ssd.counters().ftl.units_trimmed), (2, 2));
}

#[test]
fn commands_that_cannot_be_are_refused_and_change_nothing() {
    let mut ssd = tiny(&[]);
    let end = ssd.capacity_sectors();
    let before = ssd.counters();
    let hint = WriteHint { handle: Handle(1), ..WriteHint::NONE };
    let read = |lba, sectors| Command::Read { lba: Lba(lba), sectors };
    let cases = [
        (read(end, 8), "beyond the device"),
        (read(end - 4, 8), "beyond the device"),
        (read(u64::MAX, 8), "beyond the device"),
        (read(0, 0), "no sectors"),
        (read(0, ssd.max_sectors() + 1), "host.mdts_kib"),
        (Command::Trim { lba: Lba(end), sectors: 1 }, "beyond the device"),
        (Command::WriteZeroes { lba: Lba(0), sectors: 0 }, "no sectors"),
        (Command::Write { lba: Lba(0), sectors: 8, fua: false, hint }, "handle 1 asked for"),
    ];
    for (command, expected) in cases {
        let message = ssd.submit(&command, 0).unwrap_err().to_string();
        assert!(message.contains(expected), "{command:?}: {message}");
    }
    assert_eq!(ssd.counters(), before);
    assert!(matches!(ssd.submit(&read(0, 0), 0), Err(CommandError::Empty)));
}

#[test]
#[should_panic(expected = "time went back")]
fn time_does_not_go_back() {
    let mut ssd = tiny(&[]);
    ssd.submit(&Command::Flush, 10).unwrap();
    let _ = ssd.submit(&Command::Flush, 9);
}

#[test]
fn many_open_program_units_in_a_small_buffer_do_not_block() {
    // 64 handles on four dies: far more open program units than the buffer holds.
    let mut ssd = tiny(&["ftl.handles=64", "geometry.blocks_per_plane=120", "buffer.kib=16"]);
    let mut now = 0;
    for i in 0..2000u64 {
        let hint = WriteHint { handle: Handle((i % 64) as u16), ..WriteHint::NONE };
        let lba = Lba(i * 7919 % 3000 * 8);
        let command = Command::Write { lba, sectors: 8, fua: false, hint };
        now = ssd.submit(&command, now).unwrap();
    }
    assert!(ssd.counters().ftl.bytes_padding > 0, "they are padded to make room");
    ssd.self_check().unwrap();
}

/// A host that flushes after every write pads most of what it programs. It pays for
/// collection as it goes, too, so no read has to wait until a whole victim has moved.
#[test]
fn flushes_keep_collection_in_step() {
    let mut ssd =
        common::drive("tiny", &["geometry.pages_per_block=128", "ftl.over_provisioning=0.1"]);
    common::fill(&mut ssd);
    let (n, mut rng) = (common::n_units(&ssd), common::Rng(2));
    (0..3 * n).for_each(|_| ssd.fill_unit(flashwise_ssd::Lpn(rng.below(n))));
    let (mut now, mut slowest) = (ssd.rest(), 0);
    for _ in 0..3000 {
        let command = common::write(&ssd, rng.below(n), 1, WriteHint::NONE);
        now = ssd.submit(&command, now).unwrap();
        now = ssd.submit(&Command::Flush, now).unwrap();
        let done = ssd.submit(&common::read(&ssd, rng.below(n), 1), now).unwrap();
        slowest = slowest.max(done - now);
        now = done;
    }
    common::check(&ssd);
    assert!(slowest < 6_000_000, "{slowest} ns");
}
