//! A thousand random job files parse or are refused, never panic.
//!
//! The files follow the grammar: sections, keys of fio, and for each key values that are
//! mostly of its kind. So most files reach the drive, and the oracle runs their jobs:
//! the canonical form means the same, requests stay in their region, time never goes
//! back. The fuzz target runs the same oracle on any bytes.

#![allow(clippy::print_stdout, reason = "how many files ran is for whoever asks")]

use std::cell::Cell;

use flashwise_workload::oracle;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// A key with values of its kind.
type Key = (&'static str, &'static [&'static str]);

const SIZES: &[&str] = &["4k", "512", "8k,16k", "64k", "1m", ",4k,", "4k,8k,512", "0x1000"];
const AMOUNTS: &[&str] = &["1m", "64k", "50%", "100%", "4096", "5m", "${SIZE}", "33%"];
const TIMES: &[&str] = &["1", "10us", "5ms", "0", "1m", "3s"];
const COUNTS: &[&str] = &["1", "2", "3", "7", "32"];
const SWITCHES: &[&str] = &["1", "0", ""];

const KEYS: &[Key] = &[
    (
        "rw",
        &[
            "read",
            "write",
            "trim",
            "randread",
            "randwrite",
            "randtrim",
            "rw",
            "randrw",
            "trimwrite",
            "randtrimwrite",
            "randread:8",
            "write:4k",
            "randwrite:3",
            "readwrite",
        ],
    ),
    ("rw_sequencer", &["sequential", "identical"]),
    ("bs", SIZES),
    ("bsrange", &["4k-64k", "512-4k,8k-16k", "4k:10k", "1k-1k"]),
    ("bssplit", &["4k/60:64k/40", "4k/50:8k", "512/1:1m/99,4k/100", "4k", "4k/0:8k/100"]),
    ("ba", SIZES),
    ("size", AMOUNTS),
    ("io_size", AMOUNTS),
    ("offset", AMOUNTS),
    ("offset_increment", AMOUNTS),
    ("loops", COUNTS),
    ("number_ios", COUNTS),
    ("iodepth", COUNTS),
    ("numjobs", COUNTS),
    ("rwmixread", &["0", "30", "70", "100"]),
    ("rwmixwrite", &["0", "10", "100"]),
    (
        "random_distribution",
        &[
            "random",
            "zipf:1.2",
            "zipf:0.9:0.5",
            "pareto:0.2",
            "pareto:0.9:1",
            "normal:10",
            "normal:0:0",
            "zoned:60/10:40/90",
            "zoned:10/0:90/100,100/100",
            "zoned_abs:50/4k:50/8k",
            "zipf",
        ],
    ),
    ("percentage_random", &["0", "50", "100,20"]),
    ("norandommap", SWITCHES),
    ("randseed", COUNTS),
    ("thinktime", TIMES),
    ("thinktime_blocks", COUNTS),
    ("thinktime_blocks_type", &["complete", "issue"]),
    ("rate", &["1m", "100k,50k", "1", ",1g", "0"]),
    ("rate_iops", &["100", "1", "5000,200"]),
    ("rate_process", &["linear", "poisson"]),
    ("runtime", TIMES),
    ("time_based", SWITCHES),
    ("ramp_time", TIMES),
    ("startdelay", &["0", "1", "2ms-4ms"]),
    ("stonewall", SWITCHES),
    ("exitall", SWITCHES),
    ("fsync", COUNTS),
    ("fdatasync", COUNTS),
    ("end_fsync", SWITCHES),
    ("sync", &["none", "dsync", "sync"]),
    ("write_hint", &["none", "short", "medium", "long", "extreme"]),
    ("fdp", SWITCHES),
    ("dataplacement", &["none", "fdp", "streams"]),
    ("plids", &["0", "1-3", "2,0", "7"]),
    ("plid_select", &["random", "roundrobin"]),
    ("group_reporting", SWITCHES),
    ("kb_base", &["1024"]),
    ("name", &["a", "b c", "$${x}"]),
    ("ioengine", &["libaio", "psync"]),
    ("verify", &["crc32c"]),
    ("include", &["more.inc"]),
];

/// Keys and values that are mostly refused.
const BAD: &[Key] = &[
    ("ioengine", &["cpuio"]),
    ("kb_base", &["1000", "1"]),
    ("zonesize", &["1m"]),
    ("iodpeth", &["4"]),
    ("include", &["self.inc", "none.inc", ""]),
    ("loops", &["0", "9999999p"]),
    ("runtime", &["2-4", "-1"]),
    ("size", &["0", "9999g", "513"]),
    ("dataplacement", &["streams"]),
    ("rate_iops", &["1\nrate=1"]),
];

fn line() -> impl Strategy<Value = String> {
    // Wrong values are rare: most files should reach the drive.
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..200).prop_map(
        |(key, value, kind)| {
            let (key, values) = match kind {
                0 => BAD[key.index(BAD.len())],
                1 => (KEYS[key.index(KEYS.len())].0, KEYS[value.index(KEYS.len())].1),
                _ => KEYS[key.index(KEYS.len())],
            };
            match (key, values[value.index(values.len())]) {
                ("include", file) => format!("include {file}\n"),
                (key, "") => format!("{key}\n"),
                (key, value) => format!("{key}={value}\n"),
            }
        },
    )
}

fn file() -> impl Strategy<Value = String> {
    let section = prop::collection::vec(line(), 0..9);
    prop::collection::vec((any::<bool>(), section), 1..5).prop_map(|sections| {
        // Short jobs, so that their ends are seen too.
        let mut out = String::from("[global]\nsize=256k ; small\n");
        for (i, (global, lines)) in sections.into_iter().enumerate() {
            let header =
                if global && i == 0 { "[global]\n".to_owned() } else { format!("[j{i}]\n") };
            out += &header;
            out += &lines.concat();
        }
        out
    })
}

#[test]
fn a_thousand_random_job_files_parse_or_are_refused_never_panic() {
    let config =
        ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() };
    let n_run = Cell::new(0);
    let result = TestRunner::new(config).run(&file(), |text| {
        n_run.set(n_run.get() + u32::from(oracle::fio_job(text.as_bytes())));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    // The generator is worth something only if many files become jobs that run.
    println!("{} of 1000 files became jobs", n_run.get());
    assert!(n_run.get() > 400, "{}", n_run.get());
}
