//! Results against closed formulas and published figures. Each prints what it
//! found (`cargo test -p flashwise-lab --test physics -- --nocapture`).
#![allow(clippy::print_stdout, reason = "figures for the documentation")]

mod common;

use common::{drive, greedy_waf, random, run};
use flashwise_hint::{Lba, WriteHint};
use flashwise_lab::precondition;
use flashwise_ssd::{Command, Ssd};
use flashwise_workload::{Distribution, OpKind, Request, Synthetic, SyntheticSpec};

#[test]
fn the_formula_is_the_published_one() {
    assert!((greedy_waf(1.28) - 2.481).abs() < 1e-3);
    assert!((greedy_waf(1.07) - 7.817).abs() < 1e-3);
    assert!((greedy_waf(1.3) - 2.364).abs() < 1e-3);
}

#[test]
fn greedy_write_amplification_follows_the_formula() {
    for (op, blocks) in [(0.07, 736), (0.15, 790), (0.28, 880), (0.5, 1030)] {
        let blocks = format!("geometry.blocks_per_plane={blocks}");
        let op_key = format!("ftl.over_provisioning={op}");
        let sets = [blocks.as_str(), op_key.as_str(), "ftl.capacity_mib=0"];
        let mut ssd = drive("bench-16g", &sets);
        assert!(ssd.capacity_sectors() > 15 << 21, "at least 15 GiB exported");
        let aging = precondition(&mut ssd, 1, |_| ());
        assert!(aging.steady, "{aging:?}");
        let n = ssd.capacity_sectors() / 8;
        let source = random(&ssd, 0, n, 7);
        let row = run(&mut ssd, source, 32);
        // The formula's device has no reserve: blank places do not count.
        let ftl = ssd.ftl();
        let raw =
            u64::from(ssd.nand().geometry().n_blocks()) * u64::from(ftl.layout().units_per_block);
        let a = (raw - ftl.n_blank()) as f64 / ftl.n_valid() as f64;
        let (found, expected) = (row.waf.unwrap(), greedy_waf(a));
        let off = found / expected - 1.0;
        println!("OP {op}, a = {a:.4}: {found:.3} against {expected:.3} ({:+.2} %)", off * 100.0);
        assert!((-0.03..=0.0).contains(&off), "OP {op}: {found:.3} against {expected:.3}");
    }
}

#[test]
fn sequential_writes_amplify_nothing() {
    let mut ssd = drive("tiny", &["buffer.power_protected=true"]);
    let spec = SyntheticSpec {
        sequential: true,
        n_requests: Some(6 * ssd.capacity_sectors() / 8),
        ..SyntheticSpec::random_write(ssd.capacity_sectors() / 8 * 8, 1)
    };
    let row = run(&mut ssd, Synthetic::new(spec).unwrap(), 32);
    assert_eq!(row.waf, Some(1.0), "{row:?}");
    assert!(row.erases > 0, "the drive was overwritten");
}

#[test]
fn requests_in_flight_follow_littles_law() {
    for queue_depth in [1, 8, 32] {
        let mut ssd = drive("tiny", &["buffer.power_protected=true"]);
        precondition(&mut ssd, 1, |_| ());
        let spec = SyntheticSpec {
            read_percent: 50,
            n_requests: Some(40_000),
            ..SyntheticSpec::random_write(ssd.capacity_sectors(), 3)
        };
        let row = run(&mut ssd, Synthetic::new(spec).unwrap(), queue_depth);
        let off = row.in_flight_mean / f64::from(queue_depth) - 1.0;
        assert!(off.abs() < 0.01, "depth {queue_depth}: {}", row.in_flight_mean);
    }
}

#[test]
fn at_depth_one_a_read_takes_the_sum_of_its_parts() {
    let mut ssd = drive("fast24", &[]);
    let write = Command::Write { lba: Lba(0), sectors: 64, fua: true, hint: WriteHint::NONE };
    ssd.submit(&write, 0).unwrap();
    let start = ssd.rest();
    let read = |ssd: &mut Ssd, sectors, at| {
        ssd.submit(&Command::Read { lba: Lba(0), sectors }, at).unwrap() - at
    };
    // Firmware + LSB sense + channel + link, one 4 KiB chunk: ns by the preset.
    let channel = |bytes: u64| (bytes * 1202).div_ceil(1000);
    let link = |bytes: u64| (bytes * 284).div_ceil(1000);
    let small = 21_500 + 29_760 + channel(4096) + link(4096);
    assert_eq!(read(&mut ssd, 8, start), small);
    // 32 KiB: two 16 KiB chunks; the link carries the first beside the second.
    let large = 30_490 + 30_013 + 2 * channel(16_384) + link(16_384);
    assert_eq!(read(&mut ssd, 64, start + 1_000_000), large);
    assert_eq!(ssd.counters().nand.die_collisions, 0);
}

#[test]
fn parts_of_write_amplification_add_up_to_what_was_programmed() {
    for protected in ["true", "false"] {
        let set = format!("buffer.power_protected={protected}");
        let mut ssd = drive("tiny", &[&set]);
        let spec = SyntheticSpec {
            block_sectors: 3,
            distribution: Distribution::Zipf { theta: 0.9 },
            n_requests: Some(60_000),
            ..SyntheticSpec::random_write(ssd.capacity_sectors(), 5)
        };
        let row = run(&mut ssd, Synthetic::new(spec).unwrap(), 8);
        assert!(row.bytes_rmw > 0 && row.bytes_gc > 0, "{row:?}");
        ssd.rest();
        ssd.self_check().expect("places taken = bytes programmed + open program units");
        let ftl = ssd.counters().ftl;
        let parts = row.bytes_host - row.bytes_coalesced
            + row.bytes_gc
            + row.bytes_fold
            + row.bytes_padding
            + row.bytes_rmw
            + row.bytes_meta;
        assert_eq!(parts, ftl.bytes_programmed());
        let programmed = ssd.counters().nand.program_bytes;
        let open = parts - programmed;
        let pu_bytes = u64::from(ssd.ftl().layout().units_per_pu) * 4096;
        assert!(open < 3 * 4 * pu_bytes, "only open program units may lack: {open}");
    }
}

/// One 32 KiB piece of an 8 MiB file after another, and what comes between; then
/// the file is read ten times in 1 MiB reads at depth 1. Source of the procedure:
/// the FAST'24 artifact's hypothetical_append script. MiB/s.
fn append_and_read(mut between: impl FnMut(u64) -> u64) -> f64 {
    const PIECE: u64 = 64; // sectors: 32 KiB
    const N: u64 = 256;
    let mut ssd = drive("fast24", &[]);
    let mut now = 0;
    let (mut dummy, mut pieces) = (1 << 22, vec![]);
    let mut write = |ssd: &mut Ssd, lba: u64, sectors: u64| {
        for at in (0..sectors).step_by(PIECE as usize) {
            let (lba, sectors) = (Lba(lba + at), (sectors - at).min(PIECE) as u32);
            let c = Command::Write { lba, sectors, fua: false, hint: WriteHint::NONE };
            now = ssd.submit(&c, now).unwrap();
        }
    };
    // Pieces are far apart on the address space when something lies between.
    let mut next = 0;
    for i in 0..N {
        write(&mut ssd, next, PIECE);
        pieces.push(next);
        let n = between(i);
        write(&mut ssd, dummy, n);
        dummy += n;
        next += if n == 0 { PIECE } else { 2 * PIECE };
    }
    ssd.rest();
    let gap_ns = (ssd.config().host.gap_us * 1000.0) as u64;
    let start = ssd.now_ns();
    let mut now = start;
    for _ in 0..10 {
        for megabyte in pieces.chunks(32) {
            now = read_pieces(&mut ssd, megabyte, now) + gap_ns;
        }
    }
    80.0 / ((now - start) as f64 / 1e9)
}

/// A 1 MiB read: neighbouring pieces are one request, cut at the largest command.
fn read_pieces(ssd: &mut Ssd, pieces: &[u64], now: u64) -> u64 {
    let mut requests: Vec<(u64, u64)> = vec![];
    for &lba in pieces {
        match requests.last_mut() {
            Some((first, n)) if *first + *n == lba && *n < u64::from(ssd.max_sectors()) => *n += 64,
            _ => requests.push((lba, 64)),
        }
    }
    let read = |ssd: &mut Ssd, (lba, n): (u64, u64)| {
        ssd.submit(&Command::Read { lba: Lba(lba), sectors: n as u32 }, now).unwrap()
    };
    requests.into_iter().map(|r| read(ssd, r)).max().unwrap()
}

#[test]
fn a_fragmented_file_reads_as_slowly_as_the_artifact_says() {
    let contiguous = append_and_read(|_| 0);
    // 224 KiB of another file: every piece lands on the same die.
    let worst = append_and_read(|_| 7 * 64);
    let random = {
        let runs = (1..=10u64).map(|seed| {
            let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            append_and_read(move |_| {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                ((x >> 33) % 32 + 1) * 64
            })
        });
        runs.sum::<f64>() / 10.0
    };
    println!("contiguous {contiguous:.0}, worst {worst:.0}, random {random:.0} MiB/s");
    let off = |found: f64, paper: f64| (found / paper - 1.0).abs();
    assert!(off(contiguous, 2174.0) < 0.03, "contiguous {contiguous:.0} MiB/s");
    assert!(off(worst, 397.0) < 0.03, "worst {worst:.0} MiB/s");
    assert!(off(random, 1470.0) < 0.05, "random {random:.0} MiB/s");
}

#[test]
fn the_same_inputs_give_the_same_digest() {
    let once = |seed| {
        let mut ssd = drive("tiny", &[]);
        let aging = precondition(&mut ssd, seed, |_| ());
        let spec = SyntheticSpec {
            read_percent: 30,
            n_requests: Some(20_000),
            ..SyntheticSpec::random_write(ssd.capacity_sectors(), seed)
        };
        (aging, run(&mut ssd, Synthetic::new(spec).unwrap(), 16))
    };
    assert_eq!(once(1), once(1));
    assert_ne!(once(1).1.digest, once(2).1.digest);
}

#[test]
fn any_occupancy_ages_to_a_steady_state() {
    for percent in (1..=100).step_by(3).chain([100]) {
        let set = format!("precondition.occupancy={}", f64::from(percent) / 100.0);
        let mut ssd = drive("tiny", &[&set]);
        let aging = precondition(&mut ssd, 1, |_| ());
        assert!(aging.steady, "{percent} %: {aging:?}");
        ssd.self_check().unwrap();
        // And it still works.
        let requests: Vec<Request> = (0..500u64)
            .map(|i| Request::new(OpKind::Write, Lba(i * 7919 * 8 % ssd.capacity_sectors()), 8))
            .collect();
        run(&mut ssd, requests.into_iter(), 4);
        ssd.self_check().unwrap();
    }
}

#[test]
fn an_unsteady_drive_is_called_unsteady() {
    let sets = ["precondition.tolerance_percent=0", "precondition.drive_writes_max=3"];
    let aging = precondition(&mut drive("tiny", &sets), 1, |_| ());
    assert!(!aging.steady && aging.drive_writes >= 3.0, "{aging:?}");
}
