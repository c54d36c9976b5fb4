//! What users of other simulators report as broken in their timing, as tests of this
//! one: each names the public tracker item (or the measured defect) that it answers.

mod common;

use common::{UNIT, drive, fill, random, read_ns, run, sequential, units};
use flashwise_hint::{Lba, WriteHint};
use flashwise_lab::precondition;
use flashwise_ssd::{Lpn, Ssd};
use flashwise_workload::{OpKind, Synthetic, SyntheticSpec};

/// One die whose reads take 65 us and 25.6 us of channel; the link takes 1 ns/KiB.
fn one_die(cache_read: bool) -> Ssd {
    let cache_read = format!("flash.cache_read={cache_read}");
    let shape = ["geometry.channels=1", "geometry.dies_per_channel=1", "geometry.planes=1"];
    let size = ["geometry.page_kib=4", "geometry.blocks_per_plane=32"];
    let times = ["flash.read_us=65", "flash.read_4k_us=65", "flash.channel_mb_s=160"];
    let rest = ["link.mb_s=1000000", "firmware.read_4k_us=0", cache_read.as_str()];
    drive("tiny", &[&shape[..], &size, &times, &rest].concat())
}

/// When the last of `n` reads of different pages at one moment is done \[ns\].
fn burst_ns(ssd: &mut Ssd, n: u64) -> u64 {
    fill(ssd, 64);
    let at = 1_000_000;
    let ends = (0..n).map(|i| ssd.submit_read(Lba(i % 64 * UNIT), 8, at).unwrap());
    ends.max().unwrap() - at
}

/// FEMU PR #201: eight reads of one die took 8 x (sense + transfer), the bus being held
/// while the die senses.
#[test]
fn transfers_of_one_die_overlap_its_senses_only_with_cache_read() {
    let (sense, transfer, link) = (65_000, 25_600, 5);
    assert_eq!(burst_ns(&mut one_die(true), 8), 8 * sense + transfer + link);
    assert_eq!(burst_ns(&mut one_die(false), 8), 8 * (sense + transfer) + link);
}

/// NVMeVirt forgets contention beyond a horizon of 393 ms: requests that wait longer
/// are given the minimal delay.
#[test]
fn a_backlog_of_any_length_waits_its_turn() {
    let n = 20_000; // 1.3 s
    assert_eq!(burst_ns(&mut one_die(true), n), n * 65_000 + 25_600 + 5);
}

/// When a read is done, that came while the die programs, and all work is: both from
/// the start of the write \[ns\].
fn read_amid_program(suspend_us: &str, reads: bool) -> (Option<u64>, u64) {
    let suspend = format!("flash.suspend_program_us={suspend_us}");
    let mut ssd = drive("tiny", &["flash.program_us=2000", &suspend]);
    let per_pu = u64::from(ssd.ftl().layout().units_per_pu);
    // A program unit on each of the four dies, then one more on the first.
    fill(&mut ssd, 4 * per_pu);
    let (start, sectors) = (ssd.rest(), (per_pu * UNIT) as u32);
    let lba = Lba(4 * per_pu * UNIT);
    ssd.submit_write(lba, sectors, false, &WriteHint::NONE, start).unwrap();
    let place = |ssd: &Ssd, lpn: u64| ssd.ftl().place(ssd.ftl().lookup(Lpn(lpn as u32)).unwrap());
    assert_eq!(place(&ssd, 0).die, place(&ssd, 4 * per_pu).die);
    let read = reads.then(|| ssd.submit_read(Lba(0), 8, start + 500_000).unwrap() - start);
    let end = ssd.rest() - start;
    assert!(place(&ssd, 4 * per_pu).on_media, "the program ended");
    ssd.self_check().unwrap();
    (read, end)
}

/// MQSim PR #62: program suspend is broken by a misspelt key and swapped arguments, and
/// crashes when it is repaired.
#[test]
fn a_suspended_program_lets_a_read_pass_and_still_ends() {
    let (_, undisturbed) = read_amid_program("100", false);
    assert!(undisturbed > 2_000_000);
    let mut idle = drive("tiny", &[]);
    fill(&mut idle, 64);
    let alone = read_ns(&mut idle, 0, 8);
    let firmware = (idle.config().firmware.read_4k_us * 1000.0) as u64;
    let sense = idle.nand().timing().main.read_4k_ns[0];
    let (read, end) = read_amid_program("100", true);
    assert_eq!(read, Some(500_000 + 100_000 + alone));
    assert_eq!(end, undisturbed + 100_000 + sense, "all of the program is still done");
    let (read, _) = read_amid_program("-1", true);
    assert_eq!(read, Some(undisturbed + alone - firmware), "without suspend it waits");
}

/// SimpleSSD-Standalone #25 ("DMASpeed does not bound throughput") and FEMU #151 (no
/// model of PCIe bandwidth).
#[test]
fn the_link_bounds_throughput() {
    for (op, rates) in [(OpKind::Read, [100.0, 250.0, 500.0]), (OpKind::Write, [20.0, 40.0, 80.0])]
    {
        for mb_s in rates {
            let link = format!("link.mb_s={mb_s}");
            let mut ssd = drive("tiny", &[&link]);
            let n = units(&ssd);
            if op == OpKind::Read {
                fill(&mut ssd, n);
            }
            let source = sequential(&ssd, op, 64, n / 8);
            let row = run(&mut ssd, source, 32);
            let part = row.host_mib_s * 1.048_576 / mb_s;
            assert!((0.98..=1.0).contains(&part), "{op:?} at {mb_s} MB/s: {part}");
            assert_eq!(row.bottleneck, "link");
        }
    }
}

/// FEMU #137: are sequential reads different from random ones? They are where the
/// layout says so: units that share a page share a sense.
#[test]
fn sequential_reads_are_faster_where_the_layout_says_so() {
    let read = |in_order: bool, block_sectors, queue_depth| {
        let mut ssd = drive("tiny", &["flash.read_us=32", "flash.read_4k_us=32"]);
        let n = units(&ssd) / 2;
        // In steps of an odd number no two neighbours share a page.
        let step = if in_order { 1 } else { 1237 };
        (0..n).for_each(|i| ssd.fill_unit(Lpn((i * step % n) as u32)));
        let spec = SyntheticSpec {
            read_percent: 100,
            sequential: true,
            block_sectors,
            n_requests: Some(n * UNIT / u64::from(block_sectors)),
            ..SyntheticSpec::random_write(n * UNIT, 1)
        };
        run(&mut ssd, Synthetic::new(spec).unwrap(), queue_depth)
    };
    let (file, scattered) = (read(true, 256, 4), read(false, 256, 4));
    assert_eq!(2 * file.page_reads, scattered.page_reads);
    assert!(file.read_mib_s > 1.3 * scattered.read_mib_s, "{file:?} against {scattered:?}");
    // One unit at a time shares nothing.
    let (file, scattered) = (read(true, 8, 1), read(false, 8, 1));
    assert_eq!(file.read_mean_us, scattered.read_mean_us);
}

/// SimpleSSD #5: changing the read time of a page does not change latency.
#[test]
fn flash_read_time_changes_latency_by_exactly_that() {
    let of = |sectors, sets: &[&str]| {
        let mut ssd = drive("tiny", sets);
        fill(&mut ssd, 64);
        let first = read_ns(&mut ssd, 0, sectors);
        assert_eq!(read_ns(&mut ssd, 0, sectors), first, "nothing hides the second sense");
        first
    };
    let base = of(16, &[]);
    assert_eq!(of(16, &["flash.read_us=[42.5, 48]"]), base + 10_500);
    assert_eq!(of(16, &["flash.read_us=[32, 480]"]), base, "another page type");
    let base = of(8, &[]);
    assert_eq!(of(8, &["flash.read_4k_us=132"]), base + 100_000);
    assert_eq!(of(8, &["flash.read_us=[320, 480]"]), base, "4 KiB reads have their own time");
}

/// NVMeVirt #37: throughput falls with more requests in flight.
#[test]
fn throughput_does_not_fall_with_queue_depth() {
    let mut ssd = drive("tiny", &[]);
    let n = units(&ssd);
    fill(&mut ssd, n);
    let depths = [1, 2, 4, 8, 16, 32, 64, 256];
    let iops = depths.map(|depth| {
        let source = random(&ssd, 100, 20_000, 1);
        run(&mut ssd.clone(), source, depth).iops
    });
    assert!(iops.windows(2).all(|w| w[1] > 0.999 * w[0]), "{iops:?}");
    assert!(iops[4] > 3.0 * iops[0], "four dies: {iops:?}");
    precondition(&mut ssd, 1, |_| ());
    let iops = depths.map(|depth| {
        let source = random(&ssd, 50, 40_000, 1);
        run(&mut ssd.clone(), source, depth).iops
    });
    assert!(iops.windows(2).all(|w| w[1] > 0.98 * w[0]), "mixed: {iops:?}");
}
