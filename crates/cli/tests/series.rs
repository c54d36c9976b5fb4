//! `--series` and `--latencies`: files beside the results.

mod common;

use std::io::Read;

use common::{file, json, path, printed, refused};

const TRACE: &str = "examples/sqlite.trace";

/// A CSV without quotes: columns by name.
struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(text: &str) -> Self {
        let mut lines = text.lines().map(|l| l.split(',').map(str::to_owned).collect());
        let header: Vec<String> = lines.next().expect("a header");
        let rows: Vec<Vec<String>> = lines.collect();
        assert!(rows.iter().all(|r| r.len() == header.len()), "{header:?}");
        Self { header, rows }
    }

    fn open(path: &str) -> Self {
        Self::read(&std::fs::read_to_string(path).expect("a file"))
    }

    fn column(&self, name: &str) -> impl Iterator<Item = &str> {
        let at = self.header.iter().position(|h| h == name).unwrap_or_else(|| panic!("{name}"));
        self.rows.iter().map(move |r| r[at].as_str())
    }

    fn numbers(&self, name: &str) -> Vec<f64> {
        self.column(name).filter(|t| !t.is_empty()).map(|t| t.parse().expect(name)).collect()
    }
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn both_files_hold_every_policy_and_every_request() {
    let dir = directory();
    let (series, latencies) = (path(&dir, "s.csv"), path(&dir, "l.csv"));
    let args = [
        "replay",
        TRACE,
        "--device",
        "tiny",
        "--json",
        "--policy",
        "none",
        "--policy",
        "hints",
        "--series",
        &series,
        "--series-interval",
        "100ms",
        "--latencies",
        &latencies,
    ];
    let v = json(&args);
    let (s, l) = (Table::open(&series), Table::open(&latencies));
    assert_eq!(s.header[..3], ["policy", "time_s", "length_s"]);
    assert_eq!(s.header.last().map(String::as_str), Some("die_3_busy"));
    for (i, policy) in ["none", "hints"].iter().enumerate() {
        let row = &v["rows"][i];
        let mine = |t: &Table, name: &str| -> f64 {
            let pairs = t.column("policy").zip(t.column(name));
            pairs.filter(|p| p.0 == *policy).map(|p| p.1.parse::<f64>().expect(name)).sum()
        };
        for name in ["requests", "read_requests", "bytes_host", "bytes_gc", "erases"] {
            assert_eq!(Some(mine(&s, name)), row[name].as_f64(), "{policy}: {name}");
        }
        assert_eq!(l.column("policy").filter(|p| p == policy).count(), 10_215);
    }
    let reads: Vec<f64> = {
        let all = l.column("op").zip(l.column("latency_us"));
        all.take(10_215).filter(|p| p.0 == "read").map(|p| p.1.parse().expect("a number")).collect()
    };
    assert_eq!(reads.len() as u64, v["rows"][0]["read_requests"].as_u64().expect("a number"));
    let slowest = reads.iter().copied().fold(0.0, f64::max);
    assert_eq!(Some(slowest), v["rows"][0]["read_max_us"].as_f64());
    assert!(l.numbers("arrival_us").windows(2).take(10_000).all(|w| w[0] <= w[1]));
    for name in ["die_busy_min", "die_busy_mean", "die_busy_max", "die_0_busy"] {
        assert!(s.numbers(name).iter().all(|b| (0.0..=1.0).contains(b)), "{name}");
    }
    // Nothing changes for who is watched, and the same command writes the same bytes.
    let alone = json(&[
        "replay", TRACE, "--device", "tiny", "--json", "--policy", "none", "--policy", "hints",
    ]);
    assert_eq!(alone["rows"], v["rows"]);
    let before = [&series, &latencies].map(|p| std::fs::read(p).expect("a file"));
    json(&args);
    assert_eq!(before, [&series, &latencies].map(|p| std::fs::read(p).expect("a file")));
}

#[test]
fn compressed_files_hold_the_same_as_plain_ones() {
    let dir = directory();
    let (plain, gz) = (path(&dir, "s.csv"), path(&dir, "s.csv.gz"));
    let run =
        |out: &str| printed(&["replay", TRACE, "--device", "tiny", "--fresh", "--series", out]);
    run(&plain);
    run(&gz);
    let mut text = String::new();
    let file = std::fs::File::open(&gz).expect("a file");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    assert_eq!(text, std::fs::read_to_string(&plain).expect("a file"));
    let n = Table::read(&text).rows.len();
    assert!((200..=1000).contains(&n), "{n} intervals of a length of its own");
}

#[test]
fn files_that_cannot_be_are_refused_before_the_work() {
    let dir = directory();
    let trace = file(&dir, "mine.csv", b"0 0 0 8 0\n1000000000 0 8 8 0\n");
    let link = path(&dir, "same.csv");
    let cases: [(i32, &[&str], &[&str]); 9] = [
        (2, &["--series", "x.txt"], &["--series x.txt", ".csv.zst"]),
        (2, &["--latencies", "x"], &["--latencies x", ".parquet"]),
        (1, &["--series", "no/such/dir/x.csv"], &["no/such/dir/x.csv"]),
        (2, &["--series", &trace], &["mine.csv", "uses that file already"]),
        (2, &["--series", &link, "--latencies", &link], &["a file each"]),
        (2, &["--series-interval", "1s"], &["--series"]),
        (2, &["--series", &link, "--series-interval", "soon"], &["100ms"]),
        (2, &["--series", &link, "--series-interval", "0ms"], &["100ms"]),
        (2, &["--series", &link, "--series-interval", "1ns"], &["--series-interval", "1000000"]),
    ];
    for (status, args, parts) in cases {
        let message =
            refused(status, &[&["replay", &trace, "--device", "tiny", "--fresh"], args].concat());
        for part in parts {
            assert!(message.contains(part), "{args:?}: «{part}» is not in {message}");
        }
    }
    assert_eq!(std::fs::read(&trace).expect("the trace"), b"0 0 0 8 0\n1000000000 0 8 8 0\n");
    assert!(!std::path::Path::new(&link).exists(), "half a series is removed");
    if cfg!(not(feature = "parquet")) {
        let out = path(&dir, "x.parquet");
        let message = refused(2, &["replay", TRACE, "--device", "tiny", "--series", &out]);
        assert!(message.contains("--features flashwise-cli/parquet"), "{message}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_written_where_it_is_built_in() {
    let dir = directory();
    let out = path(&dir, "x.parquet");
    printed(&["replay", TRACE, "--device", "tiny", "--fresh", "--series", &out]);
    let bytes = std::fs::read(&out).expect("a file");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}
