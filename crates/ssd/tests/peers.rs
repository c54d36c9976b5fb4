//! Defects that users of other SSD simulators reported, or that show in them, as
//! tests of this one. Each names the public report it stands for; "observed" marks
//! what no report names. Reports about trace time units and about rates over whole
//! seconds (MQSim #13, #74, PR #23) concern workloads and results and are tested there.

mod common;

use common::{Rng, check, config, drive, fill, lba, n_units, read, write};
use flashwise_hint::{Lba, WriteHint};
use flashwise_ssd::{Command, CommandError, Lpn, Options, PRESETS, Ssd, SsdCounters};

const NONE: WriteHint = WriteHint::NONE;
const VICTIMS: [&str; 3] = ["ftl.victim=greedy", "ftl.victim=cost-benefit", "ftl.victim=fifo"];
const PROTECTIONS: [&str; 2] = ["buffer.power_protected=true", "buffer.power_protected=false"];

fn submit(ssd: &mut Ssd, command: &Command, now: u64) -> u64 {
    ssd.submit(command, now).unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// `n` writes of one unit at depth one, uniform over the first `span` units.
fn overwrite(ssd: &mut Ssd, rng: &mut Rng, span: u32, n: u32) {
    let mut now = ssd.now_ns();
    for _ in 0..n {
        let command = write(ssd, rng.below(span), 1, NONE);
        now = submit(ssd, &command, now);
    }
}

/// Commands that all arrive now; when the last of them is done.
fn together(ssd: &mut Ssd, commands: &[Command]) -> u64 {
    let now = ssd.now_ns();
    let done = commands.iter().map(|c| submit(ssd, c, now)).max();
    done.expect("there are commands")
}

/// Fills the exported space by commands in order and waits until all is on the media.
fn fill_by_commands(ssd: &mut Ssd) {
    let (n, mut now) = (n_units(ssd), ssd.now_ns());
    for unit in (0..n).step_by(8) {
        let command = write(ssd, unit, 8.min(n - unit), NONE);
        now = submit(ssd, &command, now);
    }
    submit(ssd, &Command::Flush, now);
    ssd.rest();
}

// Preconditioning.

/// MQSim #31, #48 (preconditioning never ends) and #20 ("not possible to assign PPA
/// to all LPAs", depending on the occupancy).
#[test]
fn every_occupancy_can_be_filled_and_ends() {
    for percent in 1..=100 {
        let mut ssd = drive("tiny", &[VICTIMS[percent as usize % 3]]);
        let n_filled = n_units(&ssd) * percent / 100;
        (0..n_filled).for_each(|u| ssd.fill_unit(Lpn(u)));
        assert_eq!(ssd.ftl().n_valid(), u64::from(n_filled), "{percent} %");
        let mut rng = Rng(u64::from(percent));
        (0..n_filled).for_each(|_| ssd.fill_unit(Lpn(rng.below(n_filled))));
        ssd.fill_idle();
        assert_eq!(ssd.ftl().n_valid(), u64::from(n_filled), "{percent} %");
        check(&ssd);
    }
}

/// MQSim #78: after preconditioning there are far fewer free blocks than the
/// occupancy leaves, and collection starts early.
#[test]
fn a_fill_in_order_uses_no_more_blocks_than_its_data() {
    for percent in [10, 25, 50, 75, 100] {
        let mut ssd = drive("tiny", &[]);
        let n_filled = n_units(&ssd) * percent / 100;
        (0..n_filled).for_each(|u| ssd.fill_unit(Lpn(u)));
        let ftl = ssd.ftl();
        let (n_dies, n_blocks) = (ftl.config().geo.n_dies(), ftl.config().geo.n_blocks());
        // One block of each die may be open.
        let used = n_filled.div_ceil(ftl.layout().units_per_block) + n_dies;
        assert!(ftl.n_free_blocks() >= u64::from(n_blocks - used), "{percent} %");
        assert_eq!((ftl.counters().gc_runs, ftl.counters().waf()), (0, Some(1.0)), "{percent} %");
    }
}

/// Observed in MQSim: write amplification of a "steady" drive goes on rising, from
/// 2.1 to 4.6 within a million requests.
#[test]
fn write_amplification_of_a_steady_drive_does_not_drift() {
    let mut ssd = drive("mqsim", &["geometry.blocks_per_plane=64"]);
    let span = n_units(&ssd) * 8 / 10;
    (0..span).for_each(|u| ssd.fill_unit(Lpn(u)));
    let mut rng = Rng(1);
    overwrite(&mut ssd, &mut rng, span, span);
    let window = |ssd: &mut Ssd, rng: &mut Rng| {
        let before = *ssd.ftl().counters();
        overwrite(ssd, rng, span, span / 2);
        ssd.ftl().counters().since(&before).waf().expect("there were writes")
    };
    let wafs: Vec<f64> = (0..4).map(|_| window(&mut ssd, &mut rng)).collect();
    let (least, most) = wafs.iter().fold((f64::MAX, 0f64), |(a, b), &w| (a.min(w), b.max(w)));
    assert!(least > 1.2, "{wafs:?}: collection takes part");
    assert!(most / least < 1.03, "{wafs:?}");
}

// Collection.

/// MQSim #52: with the default configuration collection never runs.
#[test]
fn random_overwrites_of_a_full_drive_collect() {
    for preset in ["tiny", "mqsim"] {
        let mut ssd = drive(preset, &[]);
        fill(&mut ssd);
        let n = n_units(&ssd);
        overwrite(&mut ssd, &mut Rng(2), n, n / 2);
        let c = ssd.counters();
        assert!(c.ftl.gc_runs > 0 && c.nand.erases > 0 && c.nand.copy_reads > 0, "{preset}");
    }
}

/// FEMU #130: 4 KiB random writes show no slowdown from collection. Spare space has
/// to matter, too.
#[test]
fn random_writes_slow_down_when_the_drive_is_full_and_less_with_more_spare_space() {
    let slowdown = |over_provisioning: &str| {
        let sets = ["buffer.power_protected=true", over_provisioning];
        let mut ssd = drive("tiny", &sets);
        let n = n_units(&ssd);
        let mut rng = Rng(3);
        let mut time = |ssd: &mut Ssd| {
            let start = ssd.rest();
            overwrite(ssd, &mut rng, n, 2000);
            (ssd.rest() - start) as f64
        };
        let fresh = time(&mut ssd);
        fill(&mut ssd);
        (0..n).for_each(|u| ssd.fill_unit(Lpn(u)));
        time(&mut ssd);
        time(&mut ssd) / fresh
    };
    let (little, much) =
        (slowdown("ftl.over_provisioning=0.1"), slowdown("ftl.over_provisioning=1"));
    assert!(little > 2.0, "a full drive is {little:.2} times as slow");
    assert!(little > 1.3 * much, "{little:.2} with 10 %, {much:.2} with 100 % spare space");
}

/// NVMeVirt #4 and FEMU #138: victims with many valid pages use up the free lines.
#[test]
fn victims_that_are_almost_full_do_not_use_up_free_blocks() {
    for victim in VICTIMS {
        for protection in PROTECTIONS {
            let zero = config("tiny", &[protection, "ftl.over_provisioning=0"]);
            let message = Ssd::new(zero, Options::default()).expect_err("refused").to_string();
            let least = message.rsplit(' ').next().expect("it names the smallest that works");
            let spare = format!("ftl.over_provisioning={least}");
            let mut ssd = drive("tiny", &[victim, protection, &spare]);
            fill(&mut ssd);
            let (n, mut rng, mut now) = (n_units(&ssd), Rng(4), 0);
            let n_dies = u64::from(ssd.ftl().config().geo.n_dies());
            let room = n_dies * u64::from(ssd.ftl().layout().units_per_block);
            for _ in 0..20_000 {
                let command = write(&ssd, rng.below(n), 1, NONE);
                now = submit(&mut ssd, &command, now);
                assert!(ssd.ftl().n_blank() >= room, "{victim}, {protection}");
            }
            check(&ssd);
        }
    }
}

/// NVMeVirt #56: random writes that touch every block once before any twice leave
/// only victims without valid data. With dies and frontiers of its own that must not
/// hold: collection has to move data in every pass.
#[test]
fn overwriting_each_unit_once_in_random_order_still_moves_data() {
    let mut ssd = drive("tiny", &["ftl.over_provisioning=0.1"]);
    fill(&mut ssd);
    let (n, mut rng, mut now) = (n_units(&ssd), Rng(5), 0);
    for pass in 0..5 {
        let before = ssd.counters().ftl.bytes_gc;
        for unit in rng.permutation(n) {
            let command = write(&ssd, unit, 1, NONE);
            now = submit(&mut ssd, &command, now);
        }
        let moved = ssd.counters().ftl.bytes_gc - before;
        assert!(moved > u64::from(n) * 4096 / 4, "pass {pass}: {moved} bytes");
    }
}

/// MQSim #15: replaying a trace ten times on a small drive, to study wear, fails.
#[test]
fn a_trace_replayed_ten_times_wears_the_drive_evenly() {
    let mut ssd = drive("tiny", &[]);
    fill(&mut ssd);
    let n = n_units(&ssd);
    let mut last = 0;
    for pass in 0..10 {
        overwrite(&mut ssd, &mut Rng(6), n, 4 * n);
        let erases: u64 = ssd.nand().wear().iter().map(|&w| u64::from(w)).sum();
        assert_eq!(erases, ssd.counters().nand.erases, "pass {pass}");
        assert!(erases >= last + u64::from(4 * n) / 64, "pass {pass}: {last}, then {erases}");
        last = erases;
    }
    let wear = ssd.nand().wear();
    let mean = last as f64 / wear.len() as f64;
    let most = f64::from(*wear.iter().max().expect("there are blocks"));
    assert!(most < 1.5 * mean, "{most} erases of one block, {mean} on average");
    check(&ssd);
}

/// Observed in MQSim and NVMeVirt: no trim, so deleted data is moved for ever.
#[test]
fn trimmed_data_is_not_moved() {
    let waf = |trimmed: bool| {
        let mut ssd = drive("tiny", &[]);
        fill(&mut ssd);
        let n = n_units(&ssd);
        if trimmed {
            let trim = Command::Trim { lba: lba(&ssd, n / 2), sectors: n / 2 * 8 };
            submit(&mut ssd, &trim, 0);
        }
        let mut rng = Rng(7);
        overwrite(&mut ssd, &mut rng, n / 2, n);
        let before = *ssd.ftl().counters();
        overwrite(&mut ssd, &mut rng, n / 2, n);
        ssd.ftl().counters().since(&before).waf().expect("there were writes")
    };
    let (kept, trimmed) = (waf(false), waf(true));
    assert!(trimmed - 1.0 < (kept - 1.0) / 2.0, "{trimmed} after a trim, {kept} without");
}

// Robustness.

/// Observed in MQSim: reads of a preconditioned drive program pages, run collection
/// and end with "Requesting a free block from an empty pool!".
#[test]
fn reads_write_nothing() {
    for occupancy in [0, 50, 100] {
        let mut ssd = drive("tiny", &[]);
        let n = n_units(&ssd);
        (0..n * occupancy / 100).for_each(|u| ssd.fill_unit(Lpn(u)));
        let before = ssd.counters();
        let (mut rng, mut now) = (Rng(8), 0);
        for _ in 0..20_000 {
            let command = read(&ssd, rng.below(n - 8), 1 + rng.below(8));
            now = submit(&mut ssd, &command, now);
        }
        let after = ssd.counters();
        assert_eq!(after.ftl, before.ftl, "{occupancy} % full");
        assert_eq!(after.nand.programs, before.nand.programs, "{occupancy} % full");
        assert_eq!(after.nand.erases, before.nand.erases, "{occupancy} % full");
        check(&ssd);
    }
}

/// MQSim #75, #9 and observed crashes: some page sizes and occupancies end in a
/// mapping inconsistency or a segmentation fault.
#[test]
fn page_sizes_and_occupancies_all_work() {
    for page_kib in [4, 8, 16, 32] {
        for occupancy in [80, 90, 100] {
            for victim in VICTIMS {
                let page = format!("geometry.page_kib={page_kib}");
                let mut ssd = drive("tiny", &[&page, victim, "ftl.over_provisioning=0.2"]);
                let n = n_units(&ssd) * occupancy / 100;
                (0..n).for_each(|u| ssd.fill_unit(Lpn(u)));
                let (mut rng, mut now) = (Rng(9), 0);
                for _ in 0..4000 {
                    let (unit, len) = (rng.below(n - 4), 1 + rng.below(4));
                    let command = if rng.below(4) == 0 {
                        read(&ssd, unit, len)
                    } else {
                        write(&ssd, unit, len, NONE)
                    };
                    now = submit(&mut ssd, &command, now);
                }
                check(&ssd);
            }
        }
    }
}

/// FEMU #138: a device that is filled to the end aborts ("No free lines left").
#[test]
fn a_drive_filled_to_the_last_sector_takes_more_and_refuses_what_lies_beyond() {
    for protection in PROTECTIONS {
        let mut ssd = drive("tiny", &[protection]);
        for _ in 0..3 {
            fill_by_commands(&mut ssd);
            assert_eq!(ssd.ftl().n_valid(), u64::from(n_units(&ssd)));
        }
        let n = n_units(&ssd);
        overwrite(&mut ssd, &mut Rng(10), n, 2 * n);
        let (beyond, now) = (Lba(ssd.capacity_sectors()), ssd.now_ns());
        let write = Command::Write { lba: beyond, sectors: 8, fua: false, hint: NONE };
        assert!(matches!(ssd.submit(&write, now), Err(CommandError::OutOfRange { .. })));
        check(&ssd);
    }
}

/// MQSim #30 (23.6 million requests generated, 21,992 serviced) and observed there:
/// the last batch is never drained.
#[test]
fn every_command_completes_and_nothing_is_left_behind() {
    let mut ssd = drive("tiny", &[]);
    let n = n_units(&ssd);
    let (mut rng, mut now, mut bytes) = (Rng(11), 0, 0);
    let mut done = vec![];
    // An open loop that runs ahead of the drive, so that many are in flight.
    for _ in 0..20_000 {
        let (unit, len) = (rng.below(n - 8), 1 + rng.below(8));
        let is_read = rng.below(3) == 0;
        let command = if is_read { read(&ssd, unit, len) } else { write(&ssd, unit, len, NONE) };
        bytes += if is_read { 0 } else { u64::from(len) * 4096 };
        done.push(submit(&mut ssd, &command, now));
        assert!(done.last() > Some(&now));
        now += 20_000;
    }
    assert_eq!(done.len(), 20_000);
    let last = done.into_iter().max().expect("there are completions");
    submit(&mut ssd, &Command::Flush, now);
    assert!(ssd.rest() + 1_000_000 > last, "the flash ends about when the last command does");
    let c = ssd.counters();
    assert_eq!(c.ftl.bytes_host, bytes);
    assert_eq!(c.nand.program_bytes, ssd.nand().sent_program_bytes(), "no program is left");
    // What was placed is on the media, but for open program units of collection.
    let open = c.ftl.bytes_programmed() - c.nand.program_bytes;
    assert!(open < 2 * 4 * 16_384, "{open} bytes in open program units");
    check(&ssd);
}

/// Observed in MQSim: 0.94 KB of memory for each write, for ever.
#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_number_of_writes() {
    let resident_kib = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("a Linux system");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("it has a size");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
    };
    let mut ssd = drive("tiny", &[]);
    fill(&mut ssd);
    let (n, mut rng) = (n_units(&ssd), Rng(12));
    overwrite(&mut ssd, &mut rng, n, 50_000);
    let before = resident_kib();
    overwrite(&mut ssd, &mut rng, n, 400_000);
    // Other tests of this process come and go meanwhile.
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 400_000 / 4, "{grown} KiB for 400,000 writes");
}

// Numbers.

/// Observed in MQSim: empty queues print 9223372036854775808, averages of nothing
/// print -nan.
#[test]
fn a_drive_that_did_nothing_reports_nothing() {
    for (name, _) in PRESETS {
        // The large drives differ in size alone.
        if ["tiny", "mqsim", "fast24"].contains(&name) {
            let mut ssd = drive(name, &[]);
            assert_eq!(ssd.counters(), SsdCounters::default(), "{name}");
            assert_eq!(ssd.ftl().counters().waf(), None, "{name}: no write, no amplification");
            assert_eq!(ssd.rest(), 0, "{name}");
            assert_eq!(ssd.ftl().n_valid(), 0, "{name}");
            assert_eq!(ssd.ftl().n_blank(), ssd.ftl().n_physical(), "{name}");
        }
    }
}

/// MQSim #17: byte counts and rates overflow at 2 GB.
#[test]
fn counts_and_rates_beyond_four_gibibytes_are_exact() {
    let sets = [
        "link.mb_s=8000",
        "flash.channel_mb_s=16000",
        "flash.program_us=[1]",
        "flash.erase_us=1",
        "buffer.power_protected=true",
    ];
    let mut ssd = drive("tiny", &sets);
    let n_commands = (1u64 << 32) / 131_072 + 8;
    let n = n_units(&ssd) / 32;
    let mut now = 0;
    for i in 0..n_commands {
        let command = write(&ssd, (i % u64::from(n)) as u32 * 32, 32, NONE);
        now = submit(&mut ssd, &command, now);
    }
    assert_eq!(ssd.counters().ftl.bytes_host, n_commands * 131_072);
    assert!(ssd.counters().ftl.bytes_host > u64::from(u32::MAX));
    assert_eq!(ssd.counters().ftl.waf(), Some(1.0), "in order");
    // Reads of unmapped space, 32 at a time: nothing but the link holds them up.
    let sectors = u32::try_from(ssd.capacity_sectors()).expect("a small drive");
    now = submit(&mut ssd, &Command::Trim { lba: Lba(0), sectors }, now).max(ssd.rest());
    let (start, mut in_flight) = (now, std::collections::VecDeque::new());
    for i in 0..n_commands {
        let command = read(&ssd, (i % u64::from(n)) as u32 * 32, 32);
        if in_flight.len() == 32 {
            now = now.max(in_flight.pop_front().expect("32 of them"));
        }
        in_flight.push_back(submit(&mut ssd, &command, now));
    }
    let end = in_flight.pop_back().expect("the last");
    let gb_s = (n_commands * 131_072) as f64 / (end - start) as f64;
    assert!((7.9..=8.0).contains(&gb_s), "{gb_s} GB/s over a link of 8 GB/s");
}

/// FEMU PR #201: eight reads of one plane took 8 x (sense + transfer), because the
/// bus was held during the sense, and not 8 x sense + transfer.
#[test]
fn eight_reads_of_one_plane_overlap_their_transfers() {
    let sets = [
        "geometry.channels=1",
        "geometry.dies_per_channel=1",
        "geometry.planes=1",
        "geometry.page_kib=16",
        "flash.read_us=[65]",
        "flash.channel_mb_s=655.36",
        "link.mb_s=1000000",
        "firmware.read_us=0",
        "ftl.over_provisioning=0.5",
    ];
    // 16 KiB at 1526 ps per byte; the link takes 1 ps per byte.
    let (sense, transfer, link) = (65_000, 25_002, 17);
    for (cache_read, expected) in
        [("true", 8 * sense + transfer), ("false", 8 * (sense + transfer))]
    {
        let cache = format!("flash.cache_read={cache_read}");
        let mut all = sets.to_vec();
        all.push(&cache);
        let mut ssd = drive("tiny", &all);
        fill_by_commands(&mut ssd);
        let start = ssd.rest();
        let commands: Vec<Command> = (0..8).map(|page| read(&ssd, page * 4, 4)).collect();
        assert_eq!(together(&mut ssd, &commands) - start, expected + link, "{cache}");
        assert_eq!(ssd.counters().nand.page_reads, 8);
    }
}

/// FEMU #151 (PCIe bandwidth is not modelled) and SimpleSSD-Standalone #25 (the DMA
/// speed does not bound throughput: 11.1 GB/s at 3.2).
#[test]
fn the_link_bounds_throughput() {
    for mb_s in [50.0, 200.0, 800.0] {
        let link = format!("link.mb_s={mb_s}");
        let mut ssd = drive("tiny", &[&link]);
        fill_by_commands(&mut ssd);
        let start = ssd.rest();
        let reads: Vec<Command> = (0..100).map(|i| read(&ssd, i * 32, 32)).collect();
        let bytes = 100.0 * 131_072.0;
        let rate = bytes * 1000.0 / (together(&mut ssd, &reads) - start) as f64;
        assert!(rate <= mb_s, "{rate} MB/s over {link}");
        assert!(mb_s > 200.0 || rate > 0.95 * mb_s, "{rate} MB/s over {link}");
        let mut fast = drive("tiny", &[&link, "flash.program_us=[1]", "flash.channel_mb_s=9999"]);
        let writes: Vec<Command> = (0..100).map(|i| write(&fast, i * 32, 32, NONE)).collect();
        let rate = bytes * 1000.0 / together(&mut fast, &writes) as f64;
        assert!(rate <= mb_s && rate > 0.95 * mb_s, "{rate} MB/s of writes over {link}");
    }
}

/// FEMU PR #200: no channel contention. Dies of one channel share its rate.
#[test]
fn the_channel_bounds_throughput() {
    let rate = |channels: &str| {
        let sets = [channels, "geometry.dies_per_channel=4", "flash.channel_mb_s=100"];
        let mut ssd = drive("tiny", &sets);
        fill_by_commands(&mut ssd);
        let start = ssd.rest();
        let reads: Vec<Command> = (0..100).map(|i| read(&ssd, i * 32, 32)).collect();
        100.0 * 131_072.0 * 1000.0 / (together(&mut ssd, &reads) - start) as f64
    };
    let (one, two) = (rate("geometry.channels=1"), rate("geometry.channels=2"));
    assert!((95.0..=100.0).contains(&one), "{one} MB/s over one channel of 100 MB/s");
    assert!((190.0..=200.0).contains(&two), "{two} MB/s over two");
}

/// What a command of `len` units takes at least \[ns\]: firmware, and then the link
/// for all of it, or a sense and the link for what is on the media.
fn least_ns(ssd: &Ssd, is_read: bool, unit: u32, len: u32) -> f64 {
    let (fw, flash) = (&ssd.config().firmware, &ssd.config().flash);
    let unit_bytes = ssd.sectors_per_unit() * 512;
    // Rates are rounded to whole picoseconds per byte.
    let link_ns = |units: u64| (units * unit_bytes) as f64 * 998.0 / ssd.config().link.mb_s;
    let (n_units, bytes) = (u64::from(len), u64::from(len) * unit_bytes);
    if !is_read {
        let latency_us = fw.write_us + fw.write_4k_us * bytes.div_ceil(4096) as f64;
        return latency_us * 1000.0 + link_ns(n_units);
    }
    let ftl = ssd.ftl();
    let places = (unit..unit + len).filter_map(|u| ftl.lookup(Lpn(u))).map(|ppn| ftl.place(ppn));
    let n_sensed = places.filter(|p| p.on_media).count() as u64;
    let sense_us = flash.read_us.iter().chain(&flash.read_4k_us).copied().fold(f64::MAX, f64::min);
    let sensed_ns = if n_sensed > 0 { sense_us * 1000.0 + link_ns(n_sensed) } else { 0.0 };
    let latency_us = if bytes <= 4096 { fw.read_4k_us } else { fw.read_us };
    latency_us * 1000.0 + link_ns(n_units).max(sensed_ns)
}

/// FEMU #92: the modelled drive is faster than no model at all. Nothing is done
/// sooner than its parts allow.
#[test]
fn no_command_is_faster_than_the_sum_of_its_parts() {
    for preset in ["tiny", "mqsim", "fast24"] {
        let mut ssd = drive(preset, &[]);
        let (mut rng, mut now) = (Rng(13), 0);
        for step in 0..8000 {
            let (unit, len) = (rng.below(2000), 1 + rng.below(8));
            let is_read = rng.below(2) == 0;
            let command =
                if is_read { read(&ssd, unit, len) } else { write(&ssd, unit, len, NONE) };
            let least = least_ns(&ssd, is_read, unit, len);
            let done = submit(&mut ssd, &command, now);
            let took = (done - now) as f64;
            assert!(took >= least, "{preset}, step {step}: {command:?} took {took} of {least}");
            now = if rng.below(2) == 0 { done } else { now + 5000 };
        }
        assert!(ssd.counters().nand.page_reads > 1000, "{preset}: reads reach the media");
    }
}

/// SimpleSSD #5: changing the read time of the flash does not change latency.
#[test]
fn each_read_time_of_the_flash_shows_in_latency() {
    // Latency of reading so many units of a row; unit 0 lies in the LSB row, unit 16
    // in the MSB row of the same die.
    let latency = |set: &str, unit: u32, n: u32| {
        let mut ssd = drive("tiny", &[set]);
        fill_by_commands(&mut ssd);
        let start = ssd.rest();
        let command = read(&ssd, unit, n);
        submit(&mut ssd, &command, start) - start
    };
    let plain = "name=tiny";
    let (lsb, msb) = (latency(plain, 0, 2), latency(plain, 16, 2));
    assert_eq!(msb - lsb, 16_000, "48 us and 32 us");
    assert_eq!(latency("flash.read_us=[42, 48]", 0, 2) - lsb, 10_000);
    assert_eq!(latency("flash.read_us=[42, 48]", 16, 2), msb);
    assert_eq!(latency("flash.read_us=[32, 98]", 16, 2) - msb, 50_000);
    let small = latency(plain, 0, 1);
    assert_eq!(latency("flash.read_us=[42, 98]", 0, 1), small, "4 KiB have a time of their own");
    assert_eq!(latency("flash.read_4k_us=[62]", 0, 1) - small, 30_000);
}
