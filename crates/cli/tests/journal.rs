//! Finding a journal, and calling the writes into it what they are.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn flashwise(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashwise"));
    command.args(args).current_dir(root).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn json(args: &[&str]) -> Value {
    let out = flashwise(&[args, &["--json"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("one JSON object")
}

fn refused(args: &[&str], parts: &[&str]) {
    let out = flashwise(args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "no «{part}» in: {message}");
    }
}

fn file(dir: &tempfile::TempDir, name: &str, contents: &[u8]) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, contents).expect("a file");
    path.to_str().expect("a plain path").to_owned()
}

/// An image of so many MiB, made by mkfs.ext4; `None`, loudly, where there is none.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn ext4(dir: &tempfile::TempDir, mib: u64, options: &[&str]) -> Option<String> {
    let path = file(dir, &format!("{mib}.img"), b"");
    let image = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    image.set_len(mib << 20).expect("a sparse file");
    let search = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new("mkfs.ext4");
    command.env("PATH", search).args(["-q", "-F"]).args(options).arg(&path);
    match command.status() {
        Ok(status) if status.success() => Some(path),
        _ => {
            eprintln!("skipped: needs mkfs.ext4");
            None
        }
    }
}

/// Sectors 0 to 8 hold data, 8 to 24 the journal, and one write lies half in it.
const TRACE: &[u8] = b"0 0 0 8 0\n1000 0 8 8 0\n2000 0 16 8 0\n3000 0 20 8 0\n4000 0 8 8 1\n";

#[test]
fn writes_into_a_range_are_counted_by_class() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = file(&dir, "t.trace", TRACE);
    let args = ["replay", &trace, "--device", "tiny", "--fresh"];
    let plain = json(&args);
    assert!(plain["rows"][0].get("bytes_journal").is_none(), "nothing carries a class");
    let tagged = [&args[..], &["--journal-range", "4KiB+8KiB"]].concat();
    let v = json(&tagged);
    let row = &v["rows"][0];
    assert_eq!(row["bytes_journal"], 8192);
    for key in ["bytes_metadata", "bytes_hot", "bytes_cold"] {
        assert_eq!(row[key], 0, "{key}");
    }
    // Two ranges that touch are one; the half-way write then lies inside.
    let two = [&tagged[..], &["--journal-range", "12288+4KiB"]].concat();
    assert_eq!(json(&two)["rows"][0]["bytes_journal"], 12_288);
    let table = text(&flashwise(&tagged).stdout);
    assert!(table.contains("of it journal [MiB]") && !table.contains("of it hot"), "{table}");
    let both = [&tagged[..], &["--policy", "none", "--policy", "hints"]].concat();
    let v = json(&both);
    let rows = v["rows"].as_array().expect("rows");
    assert!(rows.len() == 2 && rows.iter().all(|row| row["bytes_journal"] == 8192));
}

#[test]
fn the_addresses_of_the_trace_decide_whatever_they_are_fitted_to() {
    let dir = tempfile::tempdir().expect("a directory");
    // Two writes a terabyte apart: compacting packs them, wrapping folds them.
    let trace = file(&dir, "far.trace", b"0 0 2147483648 8 0\n1000 0 0 8 0\n");
    for fit in ["compact", "wrap"] {
        let args = ["replay", &trace, "--device", "tiny", "--fresh", "--fit", fit];
        let bytes = |range: &str| {
            let v = json(&[&args[..], &["--journal-range", range]].concat());
            v["rows"][0].get("bytes_journal").cloned()
        };
        assert_eq!(bytes("1TiB+4KiB"), Some(4096.into()), "{fit}");
        assert_eq!(bytes("4KiB+4KiB"), None, "{fit}: where the far write may be moved to");
        assert_eq!(bytes("0+4KiB"), Some(4096.into()), "{fit}");
    }
    let args = ["replay", &trace, "--device", "tiny", "--fresh", "--journal-range", "4KiB+4KiB"];
    let notes = text(&flashwise(&args).stderr);
    assert!(notes.contains("no write of the trace lies wholly in the journal"), "{notes}");
}

/// The recorded trace is of a 256 MiB image that mkfs.ext4 made with these options.
#[test]
fn a_recorded_trace_has_its_journal_writes_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
    let Some(image) = ext4(&dir, 256, &options) else { return };
    let found = json(&["journal", &image]);
    let volume = &found["volumes"][0];
    assert_eq!((&volume["kind"], &volume["journal"]), (&"ext4".into(), &"inside".into()));
    let ranges = volume["ranges"].as_array().expect("ranges");
    let n = |v: &Value, key: &str| v[key].as_u64().expect("a number");
    let sum: u64 = ranges.iter().map(|r| n(r, "length_bytes")).sum();
    assert_eq!((n(volume, "journal_bytes"), ranges.len()), (sum, 1));
    let manual = format!("{}+{}", n(&ranges[0], "start_bytes"), sum);
    let replay = ["replay", "examples/ext4.blkparse.gz"];
    let by_image = json(&[&replay[..], &["--journal-of", &image]].concat());
    let by_hand = json(&[&replay[..], &["--journal-range", &manual]].concat());
    let row = &by_image["rows"][0];
    assert_eq!(row, &by_hand["rows"][0]);
    let (journal, written) = (n(row, "bytes_journal"), n(row, "bytes_host"));
    // A file system that syncs small files 24 times writes a good part to its journal.
    assert!(journal > written / 20 && journal < written / 2, "{journal} of {written}");
    let table = text(&flashwise(&["journal", &image, "--metadata"]).stdout);
    for part in ["ext4", "of it superblock", "metadata", "UUID"] {
        assert!(table.contains(part), "no «{part}» in\n{table}");
    }
}

#[test]
fn what_cannot_be_a_journal_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = file(&dir, "t.trace", TRACE);
    let job = file(&dir, "job.fio", b"[a]\nrw=write\nsize=64k\n");
    let noise = file(&dir, "noise", &[7; 9000]);
    let folder = dir.path().to_str().expect("a plain path");
    let gone = format!("{folder}/gone.img");
    let replay = |input: &str, option: &str, value: &str, parts: &[&str]| {
        refused(&["replay", input, "--device", "tiny", "--fresh", option, value], parts);
    };
    replay(&trace, "--journal-of", &gone, &["gone.img", "expected the image"]);
    replay(&trace, "--journal-of", folder, &["is a directory"]);
    replay(&trace, "--journal-of", &noise, &["noise", "no superblock", "give the image"]);
    replay(&trace, "--journal-range", "1PiB+64MiB", &["beyond byte", "traced device"]);
    for (range, part) in [
        ("4GiB", "for example 4GiB+64MiB"),
        ("4GiB+0", "more than 0"),
        ("x+1MiB", "no number"),
        ("100+1MiB", "multiples of 512"),
    ] {
        replay(&trace, "--journal-range", range, &[part]);
    }
    replay(&job, "--journal-range", "0+1MiB", &["expect a block trace", "fio job"]);
    let two = b"1,a,0,Write,0,4096,1\n2,a,1,Write,0,4096,1\n";
    let two = file(&dir, "two.csv", two);
    replay(&two, "--journal-range", "0+1MiB", &["this trace has 2", "--select"]);
    refused(&["journal", &gone], &["gone.img", "expected the image"]);
    refused(&["journal", &noise], &["no superblock"]);
    if let Some(image) = ext4(&dir, 64, &["-O", "^has_journal"]) {
        replay(&trace, "--journal-of", &image, &["this ext4 has no journal"]);
        assert_eq!(json(&["journal", &image])["volumes"][0]["journal"], "none");
        refused(&["journal", &image, "--offset", "1MiB"], &["byte 1048576", "no superblock"]);
    }
    // The journal of a large image lies beyond both a small drive and this trace.
    if let Some(image) = ext4(&dir, 8192, &[]) {
        replay(&trace, "--journal-of", &image, &["8192.img", "beyond byte"]);
    }
}
