//! Saved drives: they go on exactly as the drive that was saved, and a damaged file
//! is an error that names it, never a panic and never another drive.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Rng, config, lba, n_units};
use flashwise_hint::{Lba, WriteHint};
use flashwise_ssd::{Command, Contents, Options, Ssd, is_saved_drive};

fn drive(sets: &[&str], contents: Contents) -> Ssd {
    let options = Options { contents, ..Options::default() };
    Ssd::new(config("tiny", sets), options).expect("it can be built")
}

/// Random reads, writes, trims and flushes at depth one; the completions.
fn exercise(ssd: &mut Ssd, seed: u64, n: u64) -> Vec<u64> {
    let mut rng = Rng(seed);
    let n_units = n_units(ssd);
    let mut now = ssd.now_ns();
    let start = now;
    let mut done = vec![];
    for _ in 0..n {
        let lba = lba(ssd, rng.below(n_units));
        let command = match rng.below(20) {
            0 => Command::Trim { lba, sectors: 8 },
            1 => Command::Flush,
            2..7 => Command::Read { lba, sectors: 8 },
            _ => Command::Write { lba, sectors: 8, fua: false, hint: WriteHint::NONE },
        };
        now = ssd.submit(&command, now).expect("in range");
        done.push(now - start);
    }
    done
}

fn saved(ssd: &mut Ssd) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("aged.fwdrive");
    ssd.save(&path).expect("it can be saved");
    assert!(is_saved_drive(&path));
    (dir, path)
}

#[test]
fn a_loaded_drive_goes_on_as_the_saved_one() {
    for victim in ["greedy", "cost-benefit", "fifo"] {
        for protected in ["true", "false"] {
            let sets =
                [format!("ftl.victim={victim}"), format!("buffer.power_protected={protected}")];
            let mut ssd = drive(&[&sets[0], &sets[1]], Contents::None);
            exercise(&mut ssd, 1, 40_000);
            let (_dir, path) = saved(&mut ssd);
            let mut loaded = Ssd::load(&path, Options::default()).expect("it can be loaded");
            let before = (ssd.counters(), loaded.counters());
            assert_eq!(exercise(&mut loaded, 2, 5000), exercise(&mut ssd, 2, 5000), "{sets:?}");
            let after = (ssd.counters(), loaded.counters());
            assert_eq!(after.0.since(&before.0), after.1.since(&before.1), "{sets:?}");
            loaded.self_check().unwrap();
        }
    }
}

fn load_error(path: &Path) -> Option<String> {
    match Ssd::load(path, Options::default()) {
        Ok(ssd) => {
            ssd.self_check().expect("what is loaded is whole");
            None
        }
        Err(e) => Some(e.to_string()),
    }
}

#[test]
fn a_file_cut_short_or_changed_is_refused_by_name() {
    let mut ssd = drive(&["geometry.blocks_per_plane=16"], Contents::None);
    exercise(&mut ssd, 1, 8000);
    let (dir, path) = saved(&mut ssd);
    let good = std::fs::read(&path).expect("it was written");
    let bad = dir.path().join("bad.fwdrive");
    let mut rng = Rng(5);
    for i in 0..120 {
        let mut bytes = good.clone();
        let at = rng.below(good.len() as u32) as usize;
        let truncated = i % 2 == 0;
        if truncated {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << rng.below(8);
        }
        std::fs::write(&bad, bytes).expect("it can be written");
        match load_error(&bad) {
            Some(message) => assert!(message.contains("bad.fwdrive"), "{message}"),
            None => assert!(!truncated, "{at} of {} bytes are not a drive", good.len()),
        }
    }
}

#[test]
fn what_is_not_a_saved_drive_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("text", b"name = \"tiny\"\n"),
        ("older", b"flashwise drive 1\nwhatever"),
        ("head", b"flashwise drive 2\n"),
    ];
    for (name, bytes) in cases {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("it can be written");
        let message = load_error(&path).expect("refused");
        assert!(message.contains(name), "{message}");
        assert_eq!(is_saved_drive(&path), name == "head" || name == "older");
        assert_eq!(message.contains("another version"), name == "older", "{message}");
    }
    assert!(load_error(dir.path()).is_some());
    assert!(load_error(&dir.path().join("absent")).expect("refused").contains("absent"));
}

fn pattern(unit: u64, version: u8) -> Vec<u8> {
    (0..4096u64).map(|i| (unit * 31 + i) as u8 ^ version).collect()
}

fn write_all(ssd: &mut Ssd, version: u8, now: &mut u64) {
    let n_units = ssd.capacity_sectors() / 8;
    for unit in 0..n_units {
        let data = pattern(unit, version);
        let done = ssd.write_bytes(Lba(unit * 8), &data, false, WriteHint::NONE, *now);
        *now = done.expect("in range");
    }
}

fn check_all(ssd: &mut Ssd, version: u8, mut now: u64) {
    let n_units = ssd.capacity_sectors() / 8;
    let mut data = vec![0u8; 4096];
    for unit in 0..n_units {
        now = ssd.read_bytes(Lba(unit * 8), &mut data, now).expect("in range");
        assert_eq!(data, pattern(unit, version), "unit {unit}");
    }
}

#[test]
fn contents_are_saved_and_loaded() {
    let mut ssd = drive(&[], Contents::Memory);
    let mut now = 0;
    write_all(&mut ssd, 1, &mut now);
    write_all(&mut ssd, 2, &mut now);
    let (_dir, path) = saved(&mut ssd);
    let mut loaded = Ssd::load(&path, Options::default()).expect("it can be loaded");
    check_all(&mut loaded, 2, 0);
}

#[test]
fn contents_in_a_sparse_file_outlive_a_power_cut() {
    let file = tempfile::tempfile().expect("a file");
    let mut ssd = drive(&[], Contents::File(Arc::new(file)));
    let mut now = 0;
    write_all(&mut ssd, 1, &mut now);
    write_all(&mut ssd, 2, &mut now);
    now = ssd.submit(&Command::Flush, now).expect("flush");
    let mut again = ssd.power_cut(now).expect("kept").power_on().expect("the file is read");
    check_all(&mut again, 2, 0);
    again.self_check().unwrap();
}

#[test]
fn contents_that_cannot_be_written_are_an_error_of_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("read-only");
    std::fs::write(&path, b"").expect("it can be written");
    let file = std::fs::File::open(&path).expect("it can be read");
    let mut ssd = drive(&[], Contents::File(Arc::new(file)));
    let data = pattern(0, 0);
    let mut now = 0;
    let failed = (0..10_000u64).find_map(|i| {
        let lba = Lba(i % 4000 * 8);
        match ssd.write_bytes(lba, &data, false, WriteHint::NONE, now) {
            Ok(done) => {
                now = done;
                None
            }
            Err(e) => Some(e.to_string()),
        }
    });
    assert!(failed.expect("a file that takes no data").contains("contents at physical unit"));
}

#[test]
fn a_device_without_contents_says_so() {
    let mut ssd = drive(&[], Contents::None);
    let mut data = vec![0u8; 512];
    let error = ssd.read_bytes(Lba(0), &mut data, 0).unwrap_err().to_string();
    assert!(error.contains("keeps no contents"), "{error}");
    assert!(ssd.clone().power_cut(0).is_none());
    let mut kept = drive(&[], Contents::Memory);
    let error = kept.read_bytes(Lba(0), &mut [0u8; 100], 0).unwrap_err().to_string();
    assert!(error.contains("100 bytes"), "{error}");
}
