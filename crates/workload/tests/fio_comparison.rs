//! The same job files in real fio, on a file, and here: numbers of operations are equal
//! where a job determines them, and distributions agree.
//!
//! fio writes down what it issues (`write_iolog`). Prints `skipped: needs fio` where
//! there is none. The figures are printed with `--nocapture`.

#![allow(clippy::print_stdout, reason = "the figures are for whoever asks with --nocapture")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use flashwise_workload::{Driver, JobSet, JobTarget, OpKind, parse_fio_file};

/// Kind (r, w, t or s for a flush), offset and length in bytes.
type Op = (char, u64, u64);

/// Size of the file that fio works on.
const FILE_BYTES: u64 = 64 << 20;
const N_BLOCKS: usize = (FILE_BYTES / 4096) as usize;

fn has_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        println!("skipped: needs fio");
    }
    found
}

/// What fio issues for a job with these keys.
fn theirs(dir: &Path, engine: &str, keys: &str) -> Vec<Op> {
    let file = dir.join("data");
    if !file.exists() {
        std::fs::write(&file, vec![0; FILE_BYTES as usize]).unwrap();
    }
    let log = dir.join("log");
    let _ = std::fs::remove_file(&log);
    let job = dir.join("job.fio");
    // Names are relative, because fio draws seeds from them.
    let text =
        format!("[job]\nfilename=data\nioengine={engine}\nwrite_iolog=log\ninvalidate=0\n{keys}");
    std::fs::write(&job, text).unwrap();
    let out = Command::new("fio").arg("--output=/dev/null").arg(&job).current_dir(dir).output();
    let out = out.expect("fio runs");
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{keys}: {errors}");
    let log = std::fs::read_to_string(&log).expect("fio writes its log");
    let ops = log.lines().filter_map(|line| {
        // Version 3 puts a time in front.
        let fields: Vec<&str> = line.rsplit(' ').take(3).collect();
        let &[length, offset, action] = &fields[..] else { return None };
        let kind = match action {
            "read" => 'r',
            "write" => 'w',
            "trim" => 't',
            "sync" | "datasync" => 's',
            _ => return None,
        };
        let number = |text: &str| text.parse().unwrap();
        Some(if kind == 's' { (kind, 0, 0) } else { (kind, number(offset), number(length)) })
    });
    ops.collect()
}

/// What is issued here, on a drive where everything takes 100 us.
fn ours(engine: &str, keys: &str) -> Vec<Op> {
    let text = format!("[job]\nioengine={engine}\n{keys}");
    let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let file = parse_fio_file(Path::new("job.fio"), text.as_bytes(), &|_| None, &none).unwrap();
    let capacity_sectors = FILE_BYTES / 512;
    let target = JobTarget { capacity_sectors, n_handles: 1, seed: 1, queue_depth: None };
    let plan = file.jobs(&target).unwrap();
    let mut set = JobSet::new(plan.specs, plan.names, 0);
    let mut ops = vec![];
    while let Some(issue) = set.next_issue() {
        let r = issue.request;
        set.completed(r.at_ns + 100_000);
        let kind = match r.op {
            OpKind::Read => 'r',
            OpKind::Write => 'w',
            OpKind::Trim => 't',
            _ => 's',
        };
        ops.push((kind, r.lba.byte_offset(), r.bytes()));
    }
    ops
}

fn both(engine: &str, keys: &str) -> [Vec<Op>; 2] {
    let dir = tempfile::tempdir().unwrap();
    [theirs(dir.path(), engine, keys), ours(engine, keys)]
}

fn kinds(ops: &[Op]) -> String {
    ops.iter().map(|op| op.0).collect()
}

fn count(ops: &[Op], kind: char) -> usize {
    ops.iter().filter(|op| op.0 == kind).count()
}

/// How often each 4 KiB block is touched.
fn touches(ops: &[Op]) -> Vec<u32> {
    let mut blocks = vec![0; N_BLOCKS];
    for (_, offset, length) in ops.iter().filter(|op| op.0 != 's') {
        (offset / 4096..(offset + length).div_ceil(4096)).for_each(|b| blocks[b as usize] += 1);
    }
    blocks
}

/// Parts of the requests that the hottest blocks get: 1 of them, 10, 100, and so on.
fn heat(ops: &[Op]) -> Vec<f64> {
    let mut blocks = touches(ops);
    blocks.sort_unstable_by(|a, b| b.cmp(a));
    let all: u32 = blocks.iter().sum();
    [1, 10, 100, 1000, 5000]
        .map(|n| f64::from(blocks[..n].iter().sum::<u32>()) / f64::from(all))
        .to_vec()
}

/// Part of the requests that begin in each tenth of the file.
fn tenths(ops: &[Op]) -> Vec<f64> {
    let mut tenths = vec![0.0; 10];
    for (_, offset, _) in ops {
        tenths[(offset * 10 / FILE_BYTES) as usize] += 1.0 / ops.len() as f64;
    }
    tenths
}

/// Largest difference between the two distributions of offsets (Kolmogorov-Smirnov).
fn ks([a, b]: &[Vec<Op>; 2]) -> f64 {
    let sorted = |ops: &[Op]| {
        let mut offsets: Vec<u64> = ops.iter().map(|op| op.1).collect();
        offsets.sort_unstable();
        offsets
    };
    let (a, b) = (sorted(a), sorted(b));
    let below = |v: &[u64], x| v.partition_point(|offset| *offset <= x) as f64 / v.len() as f64;
    a.iter().chain(&b).map(|&x| (below(&a, x) - below(&b, x)).abs()).fold(0.0, f64::max)
}

fn lengths(ops: &[Op]) -> BTreeMap<u64, f64> {
    let mut lengths = BTreeMap::new();
    ops.iter().for_each(|op| *lengths.entry(op.2).or_insert(0.0) += 1.0 / ops.len() as f64);
    lengths
}

fn near(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    let show = |v: &[f64]| v.iter().map(|x| format!("{x:.3} ")).collect::<String>();
    println!("{what}: fio {}| here {}", show(a), show(b));
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(a.len() == b.len() && worst <= tolerance, "{what}: {worst} above {tolerance}");
}

#[test]
fn sequential_jobs_are_the_same_operations() {
    if !has_fio() {
        return;
    }
    for keys in [
        "rw=read\nsize=1m\n",
        "rw=write\nbs=64k\noffset=8m\nsize=4m\n",
        "rw=write\nbs=12k\noffset=63m\nsize=1m\n",
        "rw=read\nbs=12k\noffset=63m\nsize=1m\nloops=3\n",
        "rw=write\nsize=1m\nio_size=2500k\n",
        "rw=write\nsize=1m\nio_size=10k\n",
        "rw=write:8k\nsize=1m\nnumber_ios=80\n",
        "rw=read\nsize=1m\nnumber_ios=17\n",
        "rw=read\nsize=25%\nbs=1m\n",
        "rw=read\noffset=75%\nsize=50%\nbs=1m\n",
        "rw=write\nsize=1m\nfsync=32\n",
        "rw=write\nsize=1m\nfdatasync=7\nend_fsync=1\n",
        "rw=write\nsize=1m\nfsync=3\nfdatasync=2\n",
    ] {
        let [theirs, ours] = both("psync", keys);
        println!("{}: {} operations", keys.replace('\n', " "), ours.len());
        assert_eq!(theirs, ours, "{keys}");
    }
    for keys in ["rw=trim\nsize=1m\nbs=64k\n", "rw=trimwrite\nsize=1m\n"] {
        let [theirs, ours] = both("null", keys);
        assert_eq!(theirs, ours, "{keys}");
    }
}

#[test]
fn random_jobs_visit_every_block_once_in_each_pass() {
    if !has_fio() {
        return;
    }
    for (engine, keys, times) in [
        ("psync", "rw=randread\n", 1),
        ("psync", "rw=randwrite\nloops=2\n", 2),
        ("psync", "rw=randrw\nrwmixread=30\n", 1),
        ("null", "rw=randtrim\nsize=64m\n", 1),
        ("psync", "rw=randwrite\nbssplit=4k/50:16k/30:64k/20\n", 1),
        ("psync", "rw=randread\nbsrange=4k-32k\n", 1),
    ] {
        let [theirs, ours] = both(engine, keys);
        println!("{}: fio {}, here {}", keys.replace('\n', " "), theirs.len(), ours.len());
        assert!(touches(&theirs).iter().all(|&n| n == times), "fio: {keys}");
        assert!(touches(&ours).iter().all(|&n| n == times), "{keys}");
        if !keys.contains("bs") {
            assert_eq!(theirs.len(), ours.len(), "{keys}");
        } else {
            let ratio = theirs.len() as f64 / ours.len() as f64;
            assert!((0.9..1.1).contains(&ratio), "{keys}: {ratio}");
        }
    }
    // Both visit in a random order: a part of a pass is even.
    let pair = both("psync", "rw=randwrite\nio_size=16m\n");
    assert_eq!(pair[0].len(), pair[1].len());
    near("a quarter of a pass, tenths", &tenths(&pair[0]), &tenths(&pair[1]), 0.03);
    assert!(pair.iter().all(|ops| touches(ops).iter().all(|&n| n <= 1)));
    // A second pass repeats the first.
    for ops in both("psync", "rw=randwrite\nsize=1m\nloops=2\n") {
        assert_eq!(ops[..256], ops[256..]);
    }
}

#[test]
fn random_trim_and_write_pairs_agree() {
    if !has_fio() {
        return;
    }
    for ops in both("null", "rw=randtrimwrite\nsize=8m\n") {
        assert_eq!((count(&ops, 't'), count(&ops, 'w')), (2048, 2048));
        assert!(ops.chunks(2).all(|pair| pair[0].1 == pair[1].1 && pair[0].0 == 't'));
    }
}

#[test]
fn counts_of_flushes_and_limits_agree_for_random_jobs() {
    if !has_fio() {
        return;
    }
    for keys in [
        "rw=randwrite\nsize=4m\nfsync=8\n",
        "rw=randwrite\nsize=4m\nfdatasync=5\nend_fsync=1\n",
        "rw=randwrite\nnorandommap\nsize=1m\nio_size=3m\n",
        "rw=randread\nsize=4m\nnumber_ios=100\n",
        "rw=randread\nsize=1m\nio_size=1500k\n",
    ] {
        let [theirs, ours] = both("psync", keys);
        println!("{}: {} operations", keys.replace('\n', " "), ours.len());
        assert_eq!(kinds(&theirs), kinds(&ours), "{keys}");
    }
}

#[test]
fn mixes_and_lengths_agree() {
    if !has_fio() {
        return;
    }
    for percent in [10, 50, 70, 95] {
        let keys = format!("rw=randrw\nrwmixread={percent}\nnorandommap\n");
        let pair = both("psync", &keys);
        let share = |ops: &[Op]| vec![count(ops, 'r') as f64 / ops.len() as f64];
        assert_eq!(pair[0].len(), pair[1].len());
        near(&format!("rwmixread={percent}"), &share(&pair[0]), &share(&pair[1]), 0.02);
    }
    for keys in [
        "rw=randwrite\nnorandommap\nbssplit=4k/50:16k/30:64k/20\n",
        "rw=randread\nnorandommap\nbsrange=4k-16k\n",
        "rw=randread\nnorandommap\nbsrange=4k-10k\n",
        "rw=read\nbssplit=4k/10:8k/90\n",
    ] {
        let pair = both("psync", keys);
        let [theirs, ours] = pair.each_ref().map(|ops| lengths(ops));
        assert!(theirs.keys().eq(ours.keys()), "{keys}: {theirs:?} {ours:?}");
        let shares = |lengths: &BTreeMap<u64, f64>| lengths.values().copied().collect::<Vec<_>>();
        near(&keys.replace('\n', " "), &shares(&theirs), &shares(&ours), 0.03);
    }
    let pair = both("psync", "rw=randrw\nbs=4k,16k\nnorandommap\nsize=32m\n");
    for ops in &pair {
        assert!(ops.iter().all(|op| op.2 == if op.0 == 'r' { 4096 } else { 16384 }));
    }
    near("bs=4k,16k", &tenths(&pair[0]), &tenths(&pair[1]), 0.04);
}

#[test]
fn distributions_of_offsets_agree() {
    if !has_fio() {
        return;
    }
    let pair = both("psync", "rw=randread\nnorandommap\n");
    let distance = ks(&pair);
    println!("uniform: Kolmogorov-Smirnov {distance:.4} of two times {}", pair[0].len());
    // Twice 16,384 draws of one distribution differ by more than this once in 10,000.
    assert!(distance < 2.23 * (2.0 / 16_384_f64).sqrt(), "{distance}");
    // Tolerances: the law of fio's zipf is itself an approximation beyond the second
    // rank, and its hash lets blocks fall together.
    for (what, tolerance) in [
        ("zipf:1.2", 0.04),
        ("zipf:0.8", 0.04),
        ("zipf:1.5", 0.04),
        ("pareto:0.2", 0.03),
        ("pareto:0.4", 0.03),
        ("normal:10", 0.03),
        ("normal:40", 0.03),
    ] {
        let pair = both("psync", &format!("rw=randread\nrandom_distribution={what}\n"));
        assert_eq!(pair[0].len(), pair[1].len());
        near(
            &format!("{what}, hottest 1 10 100 1000 5000"),
            &heat(&pair[0]),
            &heat(&pair[1]),
            tolerance,
        );
    }
    for what in ["zoned:60/10:30/20:10/70", "zoned_abs:60/8m:40/32m"] {
        // No map, with or without norandommap.
        let keys = format!("rw=randread\nrandom_distribution={what}\n");
        let pair = both("psync", &keys);
        near(&format!("{what}, tenths"), &tenths(&pair[0]), &tenths(&pair[1]), 0.02);
    }
    let pair = both("psync", "rw=randread\nnorandommap\npercentage_random=30\n");
    let follows = |ops: &[Op]| {
        let n = ops.windows(2).filter(|pair| pair[1].1 == pair[0].1 + pair[0].2).count();
        vec![n as f64 / ops.len() as f64]
    };
    near("percentage_random=30, following", &follows(&pair[0]), &follows(&pair[1]), 0.02);
    let pair = both("psync", "rw=randread:8\nnorandommap\n");
    near("randread:8, following", &follows(&pair[0]), &follows(&pair[1]), 0.02);
}

#[test]
fn rates_and_run_times_give_the_same_counts() {
    if !has_fio() {
        return;
    }
    for keys in [
        "rw=randread\nrate_iops=400\nruntime=1\ntime_based\n",
        "rw=write\nrate=2m\nruntime=1\ntime_based\n",
        "rw=randrw\nrate_iops=300,100\nruntime=1\ntime_based\n",
        "rw=randread\nthinktime=2000\nthinktime_blocks=4\nruntime=1\ntime_based\nrate_iops=500\n",
    ] {
        let [theirs, ours] = both("psync", keys);
        println!("{}: fio {}, here {}", keys.replace('\n', " "), theirs.len(), ours.len());
        // fio runs on a real clock, on a machine that others may use too.
        let ratio = theirs.len() as f64 / ours.len() as f64;
        assert!((0.5..1.15).contains(&ratio), "{keys}: {ratio}");
    }
}
