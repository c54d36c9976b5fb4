//! How fast the engine is: `cargo bench -p flashwise-lab --bench engine [-- PRESET...]`
//! (default bench-16g; bench-1t needs 3 GB and two to three minutes).
//!
//! A drive is aged to steady state, then overwritten and read at random, 4 KiB at
//! depth 32, with timing, channels, write buffer and latency histograms on. Beside
//! it runs a bare loop that only makes the same random touches of the same tables,
//! which is what the machine allows at that moment: judge by the ratio.
#![allow(clippy::print_stdout, reason = "a benchmark reports to the person who ran it")]

use std::time::Instant;

use cpu_time::ProcessTime;

use flashwise_lab::{Pace, Policy, Replay, Row, precondition, replay};
use flashwise_ssd::{DeviceConfig, Options, Ssd};
use flashwise_workload::{Source, Synthetic, SyntheticSpec};

const N_REQUESTS: u64 = 8_000_000;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let presets = if named.is_empty() { vec!["bench-16g".to_owned()] } else { named };
    println!("commit {}", commit());
    for preset in presets {
        bench(&preset);
    }
}

fn bench(preset: &str) {
    let cfg = DeviceConfig::open(preset, &[]).unwrap_or_else(|e| panic!("{e}"));
    let start = Instant::now();
    let mut ssd = Ssd::new(cfg, Options::default()).expect("a preset that can be built");
    let n_units = ssd.capacity_sectors() / ssd.sectors_per_unit();
    println!(
        "\n{preset}: {n_units} mapping units, started in {:.3} s",
        start.elapsed().as_secs_f64()
    );
    let bytes = ssd.ftl().table_bytes() as f64 / n_units as f64;
    println!("  tables             {bytes:10.2} bytes per mapping unit");

    let cpu = ProcessTime::now();
    let aging = precondition(&mut ssd, 1, |_| ());
    let aged_s = cpu.elapsed().as_secs_f64();
    let n_aged = n_units as f64 * (1.0 + aging.drive_writes);
    println!(
        "  ageing             {:10.2} M writes/CPU-s, steady {}, WAF {:.3}",
        n_aged / aged_s / 1e6,
        aging.steady,
        aging.waf.unwrap_or(1.0)
    );
    if let Some(rss) = peak_rss_bytes() {
        println!("  peak memory        {:10.2} bytes per mapping unit", rss / n_units as f64);
    }

    let waf = aging.waf.unwrap_or(1.0);
    let bare_write = bare(&ssd, N_REQUESTS, waf);
    let row = run(&mut ssd, 0);
    report("random overwrites", &row, bare_write);
    let bare_read = bare(&ssd, N_REQUESTS, 0.0);
    let row = run(&mut ssd, 100);
    report("random reads", &row, bare_read);
}

fn run(ssd: &mut Ssd, read_percent: u32) -> Row {
    let spec = SyntheticSpec {
        read_percent,
        n_requests: Some(N_REQUESTS),
        ..SyntheticSpec::random_write(ssd.capacity_sectors(), 11)
    };
    let source = Synthetic::new(spec).expect("a valid workload");
    let policy = Policy::none();
    let clock = || ProcessTime::now().as_duration().as_secs_f64();
    let spec = Replay {
        workload: "bench",
        policy: &policy,
        pace: Pace::Closed { queue_depth: 32, gap_ns: 0 },
        fit: None,
        cpu_clock: Some(&clock),
    };
    replay(ssd, source, &spec).expect("the workload fits the drive")
}

fn report(what: &str, row: &Row, bare_per_s: f64) {
    let rate = row.host_pages_per_cpu_s.expect("timed");
    println!(
        "  {what:<18} {:10.2} M pages/CPU-s; bare loop {:.2} M/s, ratio {:.2}; WAF {}",
        rate / 1e6,
        bare_per_s / 1e6,
        bare_per_s / rate,
        row.waf.map_or("-".to_owned(), |w| format!("{w:.3}")),
    );
}

/// The random touches alone: per request a table entry, its valid bit and (for
/// writes) a new reverse entry; for every unit collection moves, a table entry
/// again. Requests per CPU second.
fn bare(ssd: &Ssd, n: u64, waf: f64) -> f64 {
    let n_units = (ssd.capacity_sectors() / ssd.sectors_per_unit()) as usize;
    let n_physical = n_units * 5 / 4;
    let mut map: Vec<u32> = (0..n_units as u32).collect();
    let mut reverse = vec![0u32; n_physical];
    let mut valid = vec![u64::MAX; n_physical / 64 + 1];
    let spec = SyntheticSpec::random_write(ssd.capacity_sectors(), 5);
    let mut source = Synthetic::new(spec).expect("a valid workload");
    let mut next = || match source.next_request() {
        Ok(Some(r)) => (r.lba.0 / ssd.sectors_per_unit()) as usize,
        _ => unreachable!("an endless generator"),
    };
    let moves = (waf - 1.0).max(0.0);
    let (mut owed, mut at, mut seen) = (0.0, 0usize, 0u64);
    // Batches, so that the processor overlaps the misses as prefetching does.
    let mut batch = [0usize; 32];
    let cpu = ProcessTime::now();
    for _ in 0..n / 32 {
        batch.fill_with(&mut next);
        for &lpn in &batch {
            let old = map[lpn] as usize;
            seen = seen.wrapping_add(valid[old / 64]);
            if waf > 0.0 {
                valid[old / 64] ^= 1 << (old % 64);
                at = if at + 1 == n_physical { 0 } else { at + 1 };
                reverse[at] = lpn as u32;
                map[lpn] = at as u32;
            }
        }
        owed += moves * 32.0;
        while owed >= 1.0 {
            owed -= 1.0;
            let lpn = next();
            at = if at + 1 == n_physical { 0 } else { at + 1 };
            reverse[at] = lpn as u32;
            map[lpn] = at as u32;
        }
    }
    let per_s = n as f64 / cpu.elapsed().as_secs_f64();
    std::hint::black_box((seen, &map, &reverse));
    per_s
}

/// Peak resident memory of this process; `None` where the system does not say.
fn peak_rss_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib * 1024.0)
}

fn commit() -> String {
    let git = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    git.ok()
        .and_then(|o| String::from_utf8(o.stdout).ok())
        .map_or("unknown".to_owned(), |s| s.trim().to_owned())
}
