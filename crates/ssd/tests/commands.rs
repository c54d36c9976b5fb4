//! Commands one by one on an idle drive: what they cost, computed by hand from the
//! preset; what they count; which are refused.
//!
//! The drive is `tiny`: units of 4 KiB in program units of 16 KiB on four dies, with
//! one channel for dies 0 and 2 and another for dies 1 and 3.

mod common;

use common::{
    Rng, check, config, dies_of, drive, hinted, lba, n_units, read, with_contents, write,
};
use flashwise_hint::{Handle, Lba, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, CommandError, Options, RelationPolicy, Ssd};

const NONE: WriteHint = WriteHint::NONE;
const PROTECTED: &str = "buffer.power_protected=true";
const UNIT_BYTES: u64 = 4096;

/// `firmware.write_us`.
const WRITE_NS: u64 = 5600;
/// `firmware.write_4k_us`.
const WRITE_4K_NS: u64 = 600;
/// `firmware.read_us`.
const READ_NS: u64 = 13_000;
/// `firmware.read_4k_us`.
const READ_4K_NS: u64 = 20_000;
/// `flash.read_4k_us`.
const SENSE_4K_NS: u64 = 32_000;
/// `flash.program_us` of the first row of a block, and of the second.
const PROGRAM_NS: [u64; 2] = [300_000, 600_000];
/// A program unit of 16 KiB over a channel of 1600 MB/s.
const PU_TRANSFER_NS: u64 = 16_384 * 625 / 1000;
/// A mapping unit over the channel.
const UNIT_TRANSFER_NS: u64 = 4096 * 625 / 1000;

/// Over the link of 3000 MB/s, which is 333 ps per byte.
fn link_ns(bytes: u64) -> u64 {
    (bytes * 333).div_ceil(1000)
}

/// Firmware and link of a write.
fn taken_in_ns(bytes: u64) -> u64 {
    WRITE_NS + bytes.div_ceil(4096) * WRITE_4K_NS + link_ns(bytes)
}

fn sectors_of(lba: u64, sectors: u32, fua: bool) -> Command {
    Command::Write { lba: Lba(lba), sectors, fua, hint: NONE }
}

fn submit(ssd: &mut Ssd, command: &Command, now: u64) -> u64 {
    ssd.submit(command, now).unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

fn flush(ssd: &mut Ssd, now: u64) -> u64 {
    submit(ssd, &Command::Flush, now)
}

/// Writes `n` units from `unit` and waits until they are on the media.
fn put_on_media(ssd: &mut Ssd, unit: u32, n: u32) -> u64 {
    let command = write(ssd, unit, n, NONE);
    let done = submit(ssd, &command, ssd.now_ns());
    flush(ssd, done).max(ssd.rest())
}

// Flush and forced writes.

#[test]
fn a_write_is_done_when_it_is_in_the_buffer() {
    let mut ssd = drive("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(0, 8, false), 1000);
    assert_eq!(done, 1000 + 5600 + 600 + 1364);
    assert_eq!(done, 1000 + taken_in_ns(4096));
    assert_eq!(ssd.counters().nand.programs, 0);
}

#[test]
fn a_protected_flush_waits_for_no_program() {
    let mut ssd = drive("tiny", &[PROTECTED]);
    let command = write(&ssd, 0, 5, NONE);
    let done = submit(&mut ssd, &command, 0);
    assert_eq!(flush(&mut ssd, done), done + WRITE_NS);
    ssd.rest();
    let c = ssd.counters();
    assert_eq!(c.nand.programs, 1, "the program unit that was full");
    assert_eq!(c.ftl.bytes_padding, 0);
}

#[test]
fn an_unprotected_flush_ends_with_the_program_of_the_padded_unit() {
    let mut ssd = drive("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(0, 8, false), 0);
    let flushed = flush(&mut ssd, done);
    assert_eq!(flushed, done + WRITE_NS + PU_TRANSFER_NS + PROGRAM_NS[0]);
    assert_eq!(flushed, 7564 + 5600 + 10_240 + 300_000);
    assert_eq!(ssd.counters().ftl.bytes_padding, 3 * UNIT_BYTES);
}

#[test]
fn an_unprotected_flush_waits_for_the_last_of_several_dies() {
    let mut ssd = drive("tiny", &[]);
    let command = write(&ssd, 0, 5, NONE);
    let done = submit(&mut ssd, &command, 0);
    assert_eq!(done, taken_in_ns(5 * UNIT_BYTES));
    // Die 0 began when its program unit was full; die 1 begins with the flush, on a
    // channel of its own.
    let flushed = flush(&mut ssd, done);
    assert_eq!(flushed, done + WRITE_NS + PU_TRANSFER_NS + PROGRAM_NS[0]);
    assert_eq!(ssd.counters().ftl.bytes_padding, 3 * UNIT_BYTES);
    assert_eq!(ssd.counters().nand.programs, 2);
}

#[test]
fn a_flush_of_nothing_costs_firmware_alone() {
    let mut ssd = drive("tiny", &[]);
    assert_eq!(flush(&mut ssd, 7), 7 + WRITE_NS);
    let now = put_on_media(&mut ssd, 0, 6);
    let before = ssd.counters();
    assert_eq!(flush(&mut ssd, now), now + WRITE_NS);
    assert_eq!(ssd.counters(), before, "nothing was padded again");
}

#[test]
fn a_protected_forced_write_is_like_any_other() {
    let mut ssd = drive("tiny", &[PROTECTED]);
    assert_eq!(submit(&mut ssd, &sectors_of(0, 8, true), 0), taken_in_ns(4096));
    ssd.rest();
    assert_eq!(ssd.counters().ftl.bytes_padding, 0);
    assert_eq!(ssd.counters().nand.programs, 0);
}

#[test]
fn an_unprotected_forced_write_ends_with_its_program() {
    let mut ssd = drive("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(0, 8, true), 0);
    assert_eq!(done, taken_in_ns(4096) + PU_TRANSFER_NS + PROGRAM_NS[0]);
    assert_eq!(done, 7564 + 10_240 + 300_000);
    assert_eq!(ssd.counters().ftl.bytes_padding, 3 * UNIT_BYTES);
}

#[test]
fn a_forced_write_leaves_the_program_units_of_others_open() {
    let mut ssd = hinted("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(0, 8, false), 0);
    let hint = WriteHint::append(Lba(0));
    let forced = Command::Write { lba: Lba(8), sectors: 8, fua: true, hint };
    submit(&mut ssd, &forced, done);
    assert_eq!(dies_of(&ssd, 0, 2), [0, 1]);
    assert_eq!(ssd.counters().ftl.bytes_padding, 3 * UNIT_BYTES, "that of die 1 alone");
    assert_eq!(ssd.counters().nand.programs, 1);
}

#[test]
fn a_forced_write_that_coalesces_programs_what_it_joined() {
    let mut ssd = drive("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(0, 8, false), 0);
    let forced = submit(&mut ssd, &sectors_of(0, 8, true), done);
    assert_eq!(forced, done + taken_in_ns(4096) + PU_TRANSFER_NS + PROGRAM_NS[0]);
    assert_eq!(ssd.counters().ftl.bytes_coalesced, UNIT_BYTES);
}

#[test]
fn the_second_row_of_a_block_takes_longer() {
    let mut ssd = drive("tiny", &["geometry.channels=1", "geometry.dies_per_channel=1"]);
    for row in 0..6 {
        let now = ssd.rest();
        let done = submit(&mut ssd, &sectors_of(row * 8, 8, true), now);
        let program = PROGRAM_NS[row as usize % 2];
        assert_eq!(done - now, taken_in_ns(4096) + PU_TRANSFER_NS + program, "row {row}");
    }
}

#[test]
fn forced_writes_go_round_robin_over_dies() {
    let (mut forced, mut flushed) = (drive("tiny", &[]), drive("tiny", &[]));
    let (mut a, mut b) = (0, 0);
    for unit in 0..8 {
        a = submit(&mut forced, &sectors_of(unit * 8, 8, true), a);
        b = submit(&mut flushed, &sectors_of(unit * 8, 8, false), b);
        b = flush(&mut flushed, b);
    }
    assert_eq!(dies_of(&forced, 0, 8), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(dies_of(&flushed, 0, 8), [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn a_flush_waits_for_trim_records_that_are_under_way() {
    let mut ssd = with_contents("tiny", &[], RelationPolicy::None);
    let n = n_units(&ssd);
    let (mut rng, mut now) = (Rng(1), 0);
    let data = [7u8; UNIT_BYTES as usize];
    let put = |ssd: &mut Ssd, unit: u32, now: u64| {
        ssd.write_bytes(lba(ssd, unit), &data, false, NONE, now).expect("in range")
    };
    for unit in 0..n {
        now = put(&mut ssd, unit, now);
    }
    for _ in 0..12 {
        let gone = rng.below(n);
        let trim = Command::Trim { lba: lba(&ssd, gone), sectors: 8 };
        now = submit(&mut ssd, &trim, now);
        let records = ssd.counters().ftl.bytes_meta;
        // Until collection needs a block that waits for the record.
        while ssd.counters().ftl.bytes_meta == records {
            let unit = rng.below(n);
            if unit != gone {
                now = put(&mut ssd, unit, now);
            }
        }
        now = flush(&mut ssd, now);
        let off = ssd.clone().power_cut(now).expect("contents are kept");
        let mut on = off.power_on().expect("memory does not fail");
        let mut found = [1u8; UNIT_BYTES as usize];
        on.read_bytes(lba(&ssd, gone), &mut found, 0).expect("in range");
        assert!(found == [0; UNIT_BYTES as usize], "unit {gone} was trimmed and flushed");
        now = put(&mut ssd, gone, now);
    }
}

// Trim and write zeroes.

#[test]
fn a_trim_costs_firmware_whatever_its_length() {
    let mut ssd = drive("tiny", &[]);
    let n = n_units(&ssd);
    let mut now = 0;
    for unit in (0..n).step_by(32) {
        let command = write(&ssd, unit, 32, NONE);
        now = submit(&mut ssd, &command, now);
    }
    now = flush(&mut ssd, now);
    let before = ssd.counters();
    for n_trimmed in [1, n - 1] {
        let trim = Command::Trim { lba: Lba(0), sectors: n_trimmed * 8 };
        assert_eq!(submit(&mut ssd, &trim, now), now + WRITE_NS);
        let counted = ssd.counters().ftl.units_trimmed;
        assert_eq!(counted, u64::from(n_trimmed), "each unit once, while it is mapped");
    }
    assert_eq!(ssd.counters().nand, before.nand, "no flash operation");
    assert_eq!(ssd.ftl().n_valid(), 1);
    check(&ssd);
}

/// Sixteen units of contents 1, 2, 3 …; their sectors are told apart by position.
fn marked() -> (Ssd, Vec<u8>, u64) {
    let mut ssd = with_contents("tiny", &[], RelationPolicy::None);
    let data: Vec<u8> = (0..16 * UNIT_BYTES).map(|i| (i / SECTOR_BYTES + 1) as u8).collect();
    let done = ssd.write_bytes(Lba(0), &data, false, NONE, 0).expect("in range");
    (ssd, data, done)
}

fn contents(ssd: &mut Ssd, now: u64) -> Vec<u8> {
    let mut found = vec![0xAA; 16 * UNIT_BYTES as usize];
    ssd.read_bytes(Lba(0), &mut found, now).expect("in range");
    found
}

fn zero(data: &mut [u8], sectors: std::ops::Range<u64>) {
    let bytes = sectors.start * SECTOR_BYTES..sectors.end * SECTOR_BYTES;
    data[bytes.start as usize..bytes.end as usize].fill(0);
}

#[test]
fn a_trim_keeps_units_it_covers_in_part() {
    // First sector, length, and the sectors that are gone.
    let cases = [
        (0, 8, 0..8),
        (1, 7, 0..0),
        (0, 7, 0..0),
        (3, 2, 0..0),
        (4, 8, 0..0),
        (1, 15, 8..16),
        (4, 24, 8..24),
        (8, 17, 8..24),
        (7, 10, 8..16),
        (0, 128, 0..128),
    ];
    for (first, sectors, gone) in cases {
        let (mut ssd, mut data, now) = marked();
        let now = submit(&mut ssd, &Command::Trim { lba: Lba(first), sectors }, now);
        zero(&mut data, gone.clone());
        assert!(contents(&mut ssd, now) == data, "{sectors} sectors from {first}");
        assert_eq!(ssd.counters().ftl.units_trimmed, (gone.end - gone.start) / 8);
        let now = flush(&mut ssd, now);
        let off = ssd.power_cut(now).expect("contents are kept");
        let mut on = off.power_on().expect("memory does not fail");
        assert!(contents(&mut on, 0) == data, "{sectors} sectors from {first}, after power-on");
    }
}

#[test]
fn write_zeroes_zeroes_every_sector_and_no_other() {
    for first in 0..17 {
        for sectors in 1..33 {
            let (mut ssd, mut data, now) = marked();
            let zeroes = Command::WriteZeroes { lba: Lba(first), sectors };
            let now = submit(&mut ssd, &zeroes, now);
            zero(&mut data, first..first + u64::from(sectors));
            assert!(contents(&mut ssd, now) == data, "{sectors} sectors from {first}");
        }
    }
}

#[test]
fn write_zeroes_unmaps_whole_units_and_writes_the_edges() {
    // First sector, length: units unmapped, sectors written.
    let cases = [
        (0, 8, 1, 0),
        (0, 24, 3, 0),
        (0, 7, 0, 7),
        (2, 3, 0, 3),
        (4, 8, 0, 8),
        (1, 15, 1, 7),
        (8, 9, 1, 1),
        (3, 30, 3, 6),
        (5, 2, 0, 2),
    ];
    for (first, sectors, n_unmapped, n_written) in cases {
        let mut ssd = drive("tiny", &[]);
        let now = put_on_media(&mut ssd, 0, 16);
        let before = ssd.counters();
        let zeroes = Command::WriteZeroes { lba: Lba(first), sectors };
        let done = submit(&mut ssd, &zeroes, now);
        let c = ssd.counters().since(&before);
        assert_eq!(c.ftl.units_trimmed, n_unmapped, "{sectors} sectors from {first}");
        assert_eq!(c.ftl.bytes_host, n_written * SECTOR_BYTES, "{sectors} sectors from {first}");
        if n_written == 0 {
            assert_eq!(done, now + WRITE_NS, "no data crosses the link");
            assert_eq!(c.nand.page_reads, 0);
        }
        check(&ssd);
    }
}

#[test]
fn write_zeroes_of_any_length_are_taken() {
    let mut ssd = drive("tiny", &[]);
    let all = ssd.capacity_sectors() as u32;
    let now = put_on_media(&mut ssd, 0, 16);
    let done = submit(&mut ssd, &Command::WriteZeroes { lba: Lba(0), sectors: all }, now);
    assert_eq!(done, now + WRITE_NS);
    assert_eq!(ssd.ftl().n_valid(), 0);
}

// Reads without a sense.

#[test]
fn an_unmapped_read_costs_firmware_and_link_alone() {
    let mut ssd = drive("tiny", &[]);
    let mut read_ns = |sectors: u32| {
        let now = ssd.now_ns() + 1_000_000;
        submit(&mut ssd, &Command::Read { lba: Lba(3), sectors }, now) - now
    };
    assert_eq!(read_ns(1), READ_4K_NS + link_ns(512));
    assert_eq!(read_ns(1), 20_000 + 171);
    assert_eq!(read_ns(8), 20_000 + 1364, "at most 4 KiB, if of two units");
    assert_eq!(read_ns(9), READ_NS + link_ns(4608));
    assert_eq!(read_ns(256), READ_NS + link_ns(131_072));
    let c = ssd.counters();
    assert_eq!((c.nand.page_reads, c.buffer_hits, c.channel_busy_ns), (0, 0, 0));
}

#[test]
fn a_buffered_read_costs_firmware_and_link_alone() {
    let mut ssd = drive("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(0, 16, false), 0);
    let command = read(&ssd, 0, 2);
    assert_eq!(submit(&mut ssd, &command, done), done + READ_NS + link_ns(8192));
    assert_eq!(ssd.counters().buffer_hits, 2);
    assert_eq!(ssd.counters().nand.page_reads, 0);
}

#[test]
fn a_read_from_the_media_adds_sense_and_channel() {
    let mut ssd = drive("tiny", &[]);
    let now = put_on_media(&mut ssd, 0, 1);
    let command = read(&ssd, 0, 1);
    let done = submit(&mut ssd, &command, now);
    let parts = READ_4K_NS + SENSE_4K_NS + UNIT_TRANSFER_NS + link_ns(4096);
    assert_eq!(done - now, parts);
    assert_eq!(done - now, 20_000 + 32_000 + 2560 + 1364);
}

// The write buffer.

#[test]
fn a_write_to_a_full_buffer_waits_until_the_first_program_ends() {
    let mut ssd = drive("tiny", &["buffer.kib=16"]);
    let command = write(&ssd, 0, 4, NONE);
    let full = submit(&mut ssd, &command, 0);
    assert_eq!(full, taken_in_ns(16_384));
    let waited = submit(&mut ssd, &sectors_of(800, 8, false), full);
    assert_eq!(waited, full + PU_TRANSFER_NS + PROGRAM_NS[0]);
    assert_eq!(waited, 13_456 + 10_240 + 300_000);
    assert_eq!(ssd.counters().buffer_waits, 1);
    assert_eq!(ssd.counters().ftl.bytes_padding, 0);
}

#[test]
fn the_first_program_that_ends_makes_room() {
    let mut ssd = drive("tiny", &["buffer.kib=32"]);
    // Die 0 is one program unit ahead of die 1.
    let command = write(&ssd, 0, 4, NONE);
    let first = submit(&mut ssd, &command, 0);
    let command = write(&ssd, 4, 4, NONE);
    let second = submit(&mut ssd, &command, first + 50_000);
    assert_eq!(dies_of(&ssd, 3, 2), [0, 1]);
    let command = write(&ssd, 8, 4, NONE);
    let waited = submit(&mut ssd, &command, second);
    assert_eq!(waited, first + PU_TRANSFER_NS + PROGRAM_NS[0]);
    let command = write(&ssd, 12, 1, NONE);
    let again = submit(&mut ssd, &command, waited);
    assert_eq!(again, second + PU_TRANSFER_NS + PROGRAM_NS[0], "then die 1 does");
    assert_eq!(ssd.counters().buffer_waits, 2);
}

#[test]
fn a_buffer_full_of_open_program_units_programs_the_oldest() {
    let mut ssd = hinted("tiny", &["buffer.kib=16"]);
    let mut now = submit(&mut ssd, &sectors_of(0, 8, false), 0);
    for unit in 1..4 {
        let command = write(&ssd, unit, 1, WriteHint::append(Lba(u64::from(unit - 1) * 8)));
        now = submit(&mut ssd, &command, now);
    }
    assert_eq!(dies_of(&ssd, 0, 4), [0, 1, 2, 3]);
    assert_eq!(ssd.counters().nand.programs, 0, "each die has one unit of four");
    let waited = submit(&mut ssd, &sectors_of(800, 8, false), now);
    assert_eq!(waited, now + taken_in_ns(4096) + PU_TRANSFER_NS + PROGRAM_NS[0]);
    assert_eq!(ssd.counters().ftl.bytes_padding, 3 * UNIT_BYTES, "that of die 0");
}

#[test]
fn a_buffer_below_one_program_unit_is_refused() {
    for (kib, fits) in [(4, false), (12, false), (15, false), (16, true)] {
        let cfg = config("tiny", &[&format!("buffer.kib={kib}")]);
        match Ssd::new(cfg, Options::default()) {
            Ok(_) => assert!(fits, "{kib} KiB"),
            Err(e) => {
                assert!(!fits, "{kib} KiB: {e}");
                let message = e.to_string();
                let expected = format!("buffer.kib = {kib}: expected at least one program unit");
                assert!(message.contains(&expected) && message.contains("16 KiB"), "{message}");
            }
        }
    }
}

#[test]
fn more_handles_than_buffer_units_never_hang() {
    for protection in ["buffer.power_protected=false", PROTECTED] {
        let sets = [protection, "ftl.handles=64", "geometry.blocks_per_plane=128", "buffer.kib=16"];
        let mut ssd = drive("tiny", &sets);
        let n = n_units(&ssd);
        let (mut rng, mut now) = (Rng(9), 0);
        for step in 0..20_000u32 {
            let unit = if step < 64 { step } else { rng.below(n) };
            let hint = WriteHint { handle: Handle((step % 64) as u16), ..NONE };
            let command = write(&ssd, unit, 1, hint);
            let done = submit(&mut ssd, &command, now);
            assert!(done < now + 1_000_000_000, "step {step} takes {} ns", done - now);
            now = done;
        }
        check(&ssd);
        now = flush(&mut ssd, now);
        assert_eq!(ssd.counters().ftl.bytes_host, 20_000 * UNIT_BYTES);
        let command = read(&ssd, 0, 32);
        submit(&mut ssd, &command, now);
    }
}

// Parts of mapping units.

#[test]
fn a_small_write_reads_the_old_unit_and_the_next_one_coalesces() {
    let mut ssd = drive("tiny", &[]);
    let now = put_on_media(&mut ssd, 0, 1);
    let before = ssd.counters();
    let done = submit(&mut ssd, &sectors_of(2, 1, false), now);
    assert_eq!(done, now + taken_in_ns(512) + SENSE_4K_NS + UNIT_TRANSFER_NS);
    assert_eq!(done, now + 5600 + 600 + 171 + 32_000 + 2560);
    let c = ssd.counters().since(&before);
    assert_eq!((c.rmw_reads, c.nand.page_reads), (1, 1));
    assert_eq!((c.ftl.bytes_host, c.ftl.bytes_rmw, c.ftl.bytes_coalesced), (512, 3584, 0));
    // The unit is in the buffer now.
    let again = submit(&mut ssd, &sectors_of(3, 1, false), done);
    assert_eq!(again, done + taken_in_ns(512));
    let c = ssd.counters().since(&before);
    assert_eq!((c.rmw_reads, c.nand.page_reads), (1, 1));
    assert_eq!((c.ftl.bytes_host, c.ftl.bytes_rmw, c.ftl.bytes_coalesced), (1024, 3584, 512));
    assert_eq!(c.ftl.bytes_programmed(), UNIT_BYTES, "one place");
}

#[test]
fn without_coalescing_every_small_write_takes_a_place() {
    let mut ssd = drive("tiny", &["buffer.coalesce=false"]);
    let now = put_on_media(&mut ssd, 0, 1);
    let before = ssd.counters();
    let done = submit(&mut ssd, &sectors_of(2, 1, false), now);
    let again = submit(&mut ssd, &sectors_of(3, 1, false), done);
    assert_eq!(again, done + taken_in_ns(512), "the old contents are in the buffer");
    let c = ssd.counters().since(&before);
    assert_eq!(c.rmw_reads, 1);
    assert_eq!((c.ftl.bytes_host, c.ftl.bytes_rmw, c.ftl.bytes_coalesced), (1024, 7168, 0));
    assert_eq!(c.ftl.bytes_programmed(), 2 * UNIT_BYTES);
}

#[test]
fn a_small_write_to_an_unmapped_unit_reads_nothing() {
    let mut ssd = drive("tiny", &[]);
    let done = submit(&mut ssd, &sectors_of(2, 1, false), 0);
    assert_eq!(done, taken_in_ns(512));
    let c = ssd.counters();
    assert_eq!((c.rmw_reads, c.nand.page_reads, c.ftl.bytes_rmw), (0, 0, 3584));
}

#[test]
fn a_write_of_two_parts_completes_both_units() {
    let mut ssd = drive("tiny", &[]);
    let now = put_on_media(&mut ssd, 0, 2);
    let before = ssd.counters();
    submit(&mut ssd, &sectors_of(4, 8, false), now);
    let c = ssd.counters().since(&before);
    assert_eq!((c.rmw_reads, c.ftl.bytes_host, c.ftl.bytes_rmw), (2, 4096, 4096));
}

#[test]
fn a_small_write_keeps_the_rest_of_the_unit() {
    let (mut ssd, mut data, mut now) = marked();
    for (sector, n) in [(0, 1), (7, 1), (9, 3), (13, 8), (30, 40)] {
        let new = vec![0xF0 | sector as u8; n * SECTOR_BYTES as usize];
        let at = sector * SECTOR_BYTES as usize;
        now = ssd.write_bytes(Lba(sector as u64), &new, false, NONE, now).expect("in range");
        data[at..at + new.len()].copy_from_slice(&new);
        assert!(contents(&mut ssd, now) == data, "{n} sectors from {sector}");
        now = flush(&mut ssd, now);
        assert!(contents(&mut ssd, now) == data, "{n} sectors from {sector}, flushed");
    }
}

// Refusals.

/// Every command that should be refused, and whether the error is the right one.
type Refusal = (Command, fn(&CommandError) -> bool);

fn refusals(ssd: &Ssd) -> Vec<Refusal> {
    let capacity = ssd.capacity_sectors();
    let long = ssd.max_sectors() + 1;
    let handle = WriteHint { handle: Handle(ssd.ftl().config().n_handles), ..NONE };
    let out: fn(&CommandError) -> bool = |e| matches!(e, CommandError::OutOfRange { .. });
    let empty: fn(&CommandError) -> bool = |e| matches!(e, CommandError::Empty);
    let too_long: fn(&CommandError) -> bool = |e| matches!(e, CommandError::TooLong { .. });
    let no_handle: fn(&CommandError) -> bool = |e| matches!(e, CommandError::NoSuchHandle { .. });
    let mut all = vec![
        (Command::Read { lba: Lba(0), sectors: long }, too_long),
        (sectors_of(0, long, false), too_long),
        (sectors_of(0, u32::MAX, false), too_long),
        (Command::Write { lba: Lba(0), sectors: 8, fua: false, hint: handle }, no_handle),
    ];
    for (first, sectors) in [(capacity, 1), (capacity - 1, 2), (u64::MAX, 8), (u64::MAX - 3, 8)] {
        let lba = Lba(first);
        all.push((Command::Read { lba, sectors }, out));
        all.push((sectors_of(first, sectors, true), out));
        all.push((Command::Trim { lba, sectors }, out));
        all.push((Command::WriteZeroes { lba, sectors }, out));
    }
    let whole = u32::try_from(capacity).expect("a small drive");
    all.push((Command::Trim { lba: Lba(1), sectors: whole }, out));
    all.push((Command::WriteZeroes { lba: Lba(0), sectors: u32::MAX }, out));
    for lba in [Lba(0), Lba(capacity)] {
        all.push((Command::Read { lba, sectors: 0 }, empty));
        all.push((sectors_of(lba.0, 0, true), empty));
        all.push((Command::Trim { lba, sectors: 0 }, empty));
        all.push((Command::WriteZeroes { lba, sectors: 0 }, empty));
    }
    all
}

#[test]
fn a_refused_command_has_the_right_error_and_no_effect() {
    let mut ssd = drive("tiny", &["ftl.handles=3"]);
    let n = n_units(&ssd);
    let mut now = put_on_media(&mut ssd, 0, 30);
    now = submit(&mut ssd, &sectors_of(801, 5, false), now);
    let mut twin = ssd.clone();
    for (command, is_right) in refusals(&ssd) {
        let before = (ssd.counters(), ssd.now_ns(), ssd.ftl().n_valid());
        let error = ssd.submit(&command, now + 500_000).expect_err("it is refused");
        assert!(is_right(&error), "{command:?}: {error:?}");
        assert_eq!((ssd.counters(), ssd.now_ns(), ssd.ftl().n_valid()), before, "{command:?}");
    }
    // And nothing that shows later.
    let mut rng = Rng(11);
    for _ in 0..500 {
        let command = write(&ssd, rng.below(n), 1, NONE);
        let done = submit(&mut ssd, &command, now);
        assert_eq!(done, submit(&mut twin, &command, now));
        now = done;
    }
    assert_eq!(ssd.counters(), twin.counters());
}

#[test]
fn errors_say_what_was_asked_and_what_there_is() {
    let mut ssd = drive("tiny", &[]);
    let capacity = ssd.capacity_sectors();
    let mut message = |command: &Command| ssd.submit(command, 0).expect_err("refused").to_string();
    let range = message(&Command::Read { lba: Lba(capacity - 1), sectors: 2 });
    assert!(range.contains(&format!("{}..{}", capacity - 1, capacity + 1)), "{range}");
    assert!(range.contains(&format!("{capacity} sectors")), "{range}");
    let long = message(&sectors_of(0, 257, false));
    assert!(long.contains("257") && long.contains("256") && long.contains("mdts_kib"), "{long}");
    let hint = WriteHint { handle: Handle(1), ..NONE };
    let handle = message(&Command::Write { lba: Lba(0), sectors: 8, fua: false, hint });
    assert!(handle.contains("handle 1") && handle.contains("has 1 (ftl.handles)"), "{handle}");
}

#[test]
fn the_last_sector_and_the_longest_command_are_taken() {
    let mut ssd = drive("tiny", &[]);
    let (capacity, longest) = (ssd.capacity_sectors(), ssd.max_sectors());
    let at_end = capacity - u64::from(longest);
    let mut now = submit(&mut ssd, &sectors_of(capacity - 1, 1, false), 0);
    now = submit(&mut ssd, &sectors_of(at_end, longest, true), now);
    now = submit(&mut ssd, &Command::Read { lba: Lba(at_end), sectors: longest }, now);
    let sectors = u32::try_from(capacity).expect("a small drive");
    submit(&mut ssd, &Command::Trim { lba: Lba(0), sectors }, now);
    assert_eq!(ssd.ftl().n_valid(), 0);
    check(&ssd);
}

#[test]
#[should_panic(expected = "time went back from 1000 to 999")]
fn time_that_goes_back_is_a_broken_caller() {
    let mut ssd = drive("tiny", &[]);
    submit(&mut ssd, &Command::Flush, 1000);
    submit(&mut ssd, &Command::Flush, 1000);
    submit(&mut ssd, &Command::Flush, 999);
}

#[test]
fn a_refused_command_may_come_at_any_time() {
    let mut ssd = drive("tiny", &[]);
    submit(&mut ssd, &Command::Flush, 1000);
    let error = ssd.submit(&Command::Read { lba: Lba(0), sectors: 0 }, 0);
    assert!(matches!(error, Err(CommandError::Empty)));
}
