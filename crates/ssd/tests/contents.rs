//! Contents, wherever they are kept: one suite for memory and for a sparse file, with
//! power cuts; and files of saved drives that were cut short or changed.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{Rng, check, config, lba, n_units, write};
use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, Contents, Options, RelationPolicy, Ssd};

const NONE: WriteHint = WriteHint::NONE;
const VICTIMS: [&str; 3] = ["ftl.victim=greedy", "ftl.victim=cost-benefit", "ftl.victim=fifo"];

type Store = (&'static str, fn() -> Contents);

fn in_file() -> Contents {
    Contents::File(Arc::new(tempfile::tempfile().expect("a file")))
}

const STORES: [Store; 2] = [("memory", || Contents::Memory), ("file", in_file)];

fn drive(sets: &[&str], contents: Contents) -> Ssd {
    let options = Options { contents, crash_recovery: true, ..Options::default() };
    Ssd::new(config("tiny", sets), options).unwrap_or_else(|e| panic!("{e}"))
}

/// A drive and what each of its sectors should hold: a version, and so all of its
/// bytes.
struct Pair {
    ssd: Ssd,
    sectors: Vec<u32>,
    version: u32,
    now: u64,
}

fn sector(at: u64, version: u32) -> [u8; SECTOR_BYTES as usize] {
    let mut bytes = [0; SECTOR_BYTES as usize];
    if version > 0 {
        let word = (at << 32 | u64::from(version)).to_le_bytes();
        bytes.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&word));
    }
    bytes
}

impl Pair {
    fn new(ssd: Ssd) -> Self {
        let sectors = vec![0; ssd.capacity_sectors() as usize];
        Self { ssd, sectors, version: 0, now: 0 }
    }

    fn write(&mut self, first: u64, n: u64, fua: bool) {
        self.version += 1;
        let data: Vec<u8> = (first..first + n).flat_map(|s| sector(s, self.version)).collect();
        let done = self.ssd.write_bytes(Lba(first), &data, fua, NONE, self.now);
        self.now = done.expect("in range");
        self.sectors[first as usize..(first + n) as usize].fill(self.version);
    }

    fn command(&mut self, command: &Command) {
        self.now = self.ssd.submit(command, self.now).expect("in range");
    }

    fn zero(&mut self, first: u64, n: u64) {
        self.command(&Command::WriteZeroes { lba: Lba(first), sectors: n as u32 });
        self.sectors[first as usize..(first + n) as usize].fill(0);
    }

    fn trim(&mut self, first: u64, n: u64) {
        self.command(&Command::Trim { lba: Lba(first), sectors: n as u32 });
        let (inner, end) = (first.div_ceil(8) * 8, (first + n) / 8 * 8);
        if inner < end {
            self.sectors[inner as usize..end as usize].fill(0);
        }
    }

    /// Random commands; collection takes part after a drive write.
    fn exercise(&mut self, rng: &mut Rng, n: u32) {
        let capacity = self.ssd.capacity_sectors();
        for _ in 0..n {
            let len = u64::from(1 + rng.below(32));
            let first = rng.next() % (capacity - len);
            match rng.below(40) {
                0 => self.trim(first, len),
                1 => self.zero(first, len),
                2 => self.command(&Command::Flush),
                3 => self.write(first, len, true),
                4..24 => self.write(first / 8 * 8, 8, false),
                _ => self.write(first, len, false),
            }
        }
    }

    fn check(&mut self) {
        check(&self.ssd);
        let mut found = vec![0xAA; 256 * SECTOR_BYTES as usize];
        for first in (0..self.sectors.len()).step_by(256) {
            let n = (self.sectors.len() - first).min(256);
            let found = &mut found[..n * SECTOR_BYTES as usize];
            let done = self.ssd.read_bytes(Lba(first as u64), found, self.now);
            self.now = done.expect("in range");
            for (i, bytes) in found.chunks_exact(SECTOR_BYTES as usize).enumerate() {
                let at = first + i;
                let expected = sector(at as u64, self.sectors[at]);
                assert!(bytes == expected, "sector {at} is not version {}", self.sectors[at]);
            }
        }
    }

    fn power_cut(mut self) -> Self {
        self.command(&Command::Flush);
        let off = self.ssd.power_cut(self.now).expect("contents are kept");
        let ssd = off.power_on().unwrap_or_else(|e| panic!("{e}"));
        Self { ssd, now: 0, ..self }
    }
}

#[test]
fn every_store_reads_what_was_written_also_after_power_cuts() {
    for (name, store) in STORES {
        for protection in ["buffer.power_protected=false", "buffer.power_protected=true"] {
            let mut pair = Pair::new(drive(&[protection], store()));
            let mut rng = Rng(1);
            pair.write(3, 2, false);
            pair.check();
            pair = pair.power_cut();
            pair.check();
            for _ in 0..3 {
                pair.exercise(&mut rng, 5000);
                pair.check();
                pair = pair.power_cut();
                pair.check();
            }
            let wear: u32 = pair.ssd.nand().wear().iter().sum();
            assert!(wear > 100, "{name}: collection took part");
        }
    }
}

#[test]
fn stores_agree_on_every_completion() {
    let mut pairs = STORES.map(|(_, store)| Pair::new(drive(&[], store())));
    for pair in &mut pairs {
        pair.exercise(&mut Rng(2), 6000);
    }
    let [memory, file] = pairs;
    assert_eq!(memory.now, file.now);
    assert_eq!(memory.ssd.counters(), file.ssd.counters());
}

/// Writes of whole units without data among writes with data, then a power cut.
fn write_without_data(store: Contents) {
    let mut pair = Pair::new(drive(&[], store));
    for _ in 0..3 {
        for unit in 0..u64::from(n_units(&pair.ssd)) {
            pair.write(unit * 8, 8, false);
        }
    }
    for unit in [5, 900, 902, 4000] {
        let command = write(&pair.ssd, unit, 1, NONE);
        pair.command(&command);
        pair.sectors[unit as usize * 8..][..8].fill(0);
        pair.write(u64::from(unit + 1) * 8, 8, false);
    }
    pair.check();
    pair.command(&Command::Flush);
    pair.check();
    pair.power_cut().check();
}

#[test]
fn a_write_without_data_stores_zeros_in_memory() {
    write_without_data(Contents::Memory);
}

#[test]
fn a_write_without_data_stores_zeros_in_a_file() {
    write_without_data(in_file());
}

// Saved drives.

fn save(ssd: &mut Ssd, name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(name);
    ssd.save(&path).unwrap_or_else(|e| panic!("{e}"));
    (dir, path)
}

fn load(path: &Path, contents: Contents) -> Ssd {
    let options = Options { contents, ..Options::default() };
    Ssd::load(path, options).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn saved_contents_can_be_loaded_into_every_store() {
    for (name, store) in STORES {
        let mut pair = Pair::new(drive(&[], Contents::Memory));
        let mut rng = Rng(3);
        pair.exercise(&mut rng, 8000);
        let (_dir, path) = save(&mut pair.ssd, name);
        pair.ssd = load(&path, store());
        pair.now = 0;
        pair.check();
        pair.exercise(&mut rng, 3000);
        pair.check();
        pair.power_cut().check();
    }
}

#[test]
fn a_drive_that_keeps_its_contents_in_a_file_can_be_saved() {
    let mut pair = Pair::new(drive(&[], in_file()));
    pair.write(0, 8, false);
    let (_dir, path) = save(&mut pair.ssd, "drive");
    pair.ssd = load(&path, Contents::Memory);
    pair.now = 0;
    pair.check();
}

#[test]
fn a_drive_whose_file_has_its_full_length_can_be_saved() {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(32 << 20).expect("a sparse file");
    let mut pair = Pair::new(drive(&[], Contents::File(Arc::new(file))));
    pair.exercise(&mut Rng(4), 8000);
    let (_dir, path) = save(&mut pair.ssd, "drive");
    pair.now = pair.ssd.now_ns();
    pair.check();
    for (_, store) in STORES {
        pair.ssd = load(&path, store());
        pair.now = 0;
        pair.check();
    }
}

#[test]
fn a_loaded_drive_saves_to_the_same_bytes() {
    for victim in VICTIMS {
        for contents in [Contents::None, Contents::Memory] {
            let options = Options { contents, ..Options::default() };
            let ssd = Ssd::new(config("tiny", &[victim]), options).expect("a drive");
            let keeps = ssd.ftl().media().is_some();
            let mut pair = Pair::new(ssd);
            if keeps {
                pair.exercise(&mut Rng(5), 8000);
            } else {
                let n = n_units(&pair.ssd);
                let mut rng = Rng(5);
                for _ in 0..20_000 {
                    let command = write(&pair.ssd, rng.below(n), 1, NONE);
                    pair.command(&command);
                }
            }
            let (dir, path) = save(&mut pair.ssd, "once");
            let again = dir.path().join("again");
            load(&path, Contents::None).save(&again).unwrap_or_else(|e| panic!("{e}"));
            let (once, again) = (std::fs::read(&path), std::fs::read(&again));
            assert!(once.expect("saved") == again.expect("saved"), "{victim}");
        }
    }
}

#[test]
fn a_drive_can_be_loaded_with_another_relation_policy() {
    let mut pair = Pair::new(drive(&[], Contents::Memory));
    pair.exercise(&mut Rng(6), 6000);
    let (_dir, path) = save(&mut pair.ssd, "drive");
    let options = Options { relation: RelationPolicy::Hints, ..Options::default() };
    pair.ssd = Ssd::load(&path, options).unwrap_or_else(|e| panic!("{e}"));
    pair.now = 0;
    assert_eq!(pair.ssd.ftl().config().relation, RelationPolicy::Hints);
    pair.check();
}

/// A small saved drive, with or without contents.
fn small(contents: Contents) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let sets = ["geometry.blocks_per_plane=12", "geometry.channels=1", "buffer.kib=64"];
    let mut ssd = Ssd::new(config("tiny", &sets), Options { contents, ..Options::default() })
        .expect("a drive");
    let (n, mut rng, mut now) = (n_units(&ssd), Rng(7), 0);
    for step in 0..3000 {
        let unit = rng.below(n);
        let trim = Command::Trim { lba: lba(&ssd, unit), sectors: 8 };
        let command = if step % 50 == 0 { trim } else { write(&ssd, unit, 1, NONE) };
        now = ssd.submit(&command, now).expect("in range");
    }
    let (dir, path) = save(&mut ssd, "small.drive");
    let bytes = std::fs::read(&path).expect("saved");
    (dir, path, bytes)
}

/// Loads a changed file: an error that names it, or exactly the drive that was saved.
fn load_changed(path: &Path, good: &[u8], what: &str) -> bool {
    match Ssd::load(path, Options::default()) {
        Ok(mut ssd) => {
            check(&ssd);
            let again = path.with_extension("again");
            ssd.save(&again).unwrap_or_else(|e| panic!("{e}"));
            assert!(std::fs::read(again).expect("saved") == good, "{what}: another drive");
            true
        }
        Err(e) => {
            assert!(e.to_string().contains("small.drive"), "{what}: {e}");
            false
        }
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    for contents in [Contents::None, Contents::Memory] {
        let (_dir, path, good) = small(contents);
        let n = good.len();
        let ends = (0..64).chain((64..n).step_by(n / 150)).chain(n - 64..n);
        for len in ends {
            std::fs::write(&path, &good[..len]).expect("it can be written");
            let what = format!("{len} of {n} bytes");
            assert!(!load_changed(&path, &good, &what), "{what} were loaded");
        }
    }
}

#[test]
fn a_changed_byte_is_refused_or_changes_nothing() {
    for contents in [Contents::None, Contents::Memory] {
        let (_dir, path, good) = small(contents);
        let n = good.len();
        let mut n_loaded = 0;
        let places: Vec<usize> = (0..64).chain((64..n).step_by(n / 250)).chain(n - 32..n).collect();
        for &at in &places {
            for flip in [0x01, 0x80, 0xFF] {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                std::fs::write(&path, &bytes).expect("it can be written");
                let what = format!("byte {at} of {n} changed by {flip:#x}");
                n_loaded += usize::from(load_changed(&path, &good, &what));
            }
        }
        assert!(n_loaded < places.len() / 10, "{n_loaded} changed files were loaded");
    }
}
