//! A thousand random job files parse or are refused, never panic.
//!
//! The files follow the grammar: sections, keys of fio, and for each key values that are
//! mostly of its kind. So most files reach the drive, and the oracle runs their jobs:
//! the canonical form means the same, requests stay in their region, time never goes
//! back. The fuzz target runs the same oracle on any bytes.

use flashwise_workload::oracle;
use proptest::prelude::*;

/// A key with values of its kind.
type Key = (&'static str, &'static [&'static str]);

const SIZES: &[&str] = &["4k", "512", "8k,16k", "64k", "1m", ",4k,", "4k,8k,512", "0x1000"];
const AMOUNTS: &[&str] = &["1m", "64k", "50%", "100%", "4096", "0", "5m", "${SIZE}", "33%"];
const TIMES: &[&str] = &["1", "10us", "5ms", "0", "1m", "2-4", "3s"];
const COUNTS: &[&str] = &["1", "2", "3", "7", "32", "100", "0"];
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
    ("startdelay", TIMES),
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
    ("kb_base", &["1000", "1024"]),
    ("name", &["a", "b c", "$${x}"]),
    ("ioengine", &["libaio", "psync", "cpuio"]),
    ("verify", &["crc32c"]),
    ("zonesize", &["1m"]),
    ("iodpeth", &["4"]),
    ("include", &["more.inc", "self.inc", "none.inc"]),
];

fn line() -> impl Strategy<Value = String> {
    // Wrong values are rare: most files should reach the drive.
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_u8..60).prop_map(
        |(key, value, kind)| {
            let (key, values) = KEYS[key.index(KEYS.len())];
            let values = if kind == 0 { KEYS[value.index(KEYS.len())].1 } else { values };
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_thousand_random_job_files_parse_or_are_refused_never_panic(text in file()) {
        oracle::fio_job(text.as_bytes());
    }
}
