//! Damage to real images: the right answer, or an error or a note that says what is wrong.
//! Never a panic, and never a wrong answer that looks right.

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use common::{ext, found, have, number_after, open, output, ring, run, sparse, text};
use flashwise_superblock::{
    FileSystem, Journal, Note, ReadAt, SuperblockError, find, metadata_ranges, scan,
};
use proptest::prelude::*;

/// A file with some bytes changed.
struct Changed {
    file: File,
    bytes: BTreeMap<u64, u8>,
    /// Where it ends, if it was cut.
    end: Option<u64>,
}

impl Changed {
    fn new(path: &std::path::Path) -> Self {
        Self { file: open(path), bytes: BTreeMap::new(), end: None }
    }

    fn fill(mut self, range: std::ops::Range<u64>, value: u8) -> Self {
        self.bytes.extend(range.map(|at| (at, value)));
        self
    }

    fn flip(mut self, at: u64, bits: u8) -> Self {
        let mut old = [0];
        // A place beyond the end stays as it is: nothing.
        if self.fill_at(at, &mut old).is_ok() {
            self.bytes.insert(at, old[0] ^ bits);
        }
        self
    }
}

impl ReadAt for Changed {
    fn n_bytes(&self) -> io::Result<u64> {
        let n = self.file.n_bytes()?;
        Ok(self.end.map_or(n, |end| end.min(n)))
    }

    fn fill_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if offset + buf.len() as u64 > self.n_bytes()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.fill_at(offset, buf)?;
        for (at, value) in self.bytes.range(offset..offset + buf.len() as u64) {
            buf[usize::try_from(at - offset).expect("inside")] = *value;
        }
        Ok(())
    }
}

const TOOLS: [&str; 2] = ["mkfs.ext4", "debugfs"];

/// Images with and without checksums, with extents and with a block map.
fn ext_images(dir: &tempfile::TempDir) -> Vec<(&'static str, PathBuf)> {
    let cases: [(&str, u64, &[&str]); 6] = [
        ("1k", 32, &["-b", "1024"]),
        ("4k", 256, &["-b", "4096"]),
        ("ext3", 64, &["-t", "ext3", "-b", "1024"]),
        ("no-csum", 64, &["-O", "^metadata_csum", "-b", "1024"]),
        ("all-backups", 64, &["-O", "^sparse_super,^resize_inode", "-b", "1024"]),
        ("bigalloc", 4096, &["-O", "bigalloc", "-b", "4096", "-C", "65536"]),
    ];
    let made = cases.map(|(name, mib, options)| Some((name, ext(dir, name, mib, options)?)));
    made.into_iter().flatten().collect()
}

fn has_note(fs: &FileSystem, is: impl Fn(&Note) -> bool) -> bool {
    fs.notes.iter().any(is)
}

fn is_backup_super(note: &Note) -> bool {
    matches!(note, Note::BackupSuperblock { .. })
}

#[test]
fn without_the_primary_superblock_a_backup_serves() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, image) in ext_images(&dir) {
        let whole = found(&image);
        let zeroed = Changed::new(&image).fill(1024..2048, 0);
        let fs = find(&zeroed, 0).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((&fs.journal, fs.uuid), (&whole.journal, whole.uuid), "{name}");
        assert!(has_note(&fs, is_backup_super), "{name}: {:?}", fs.notes);
        let all = |image: &dyn ReadAt| metadata_ranges(image, 0).expect("ranges");
        assert_eq!(all(&zeroed), all(&open(&image)), "{name}");
        // Any other magic number.
        let fs = find(&Changed::new(&image).flip(1024 + 0x38, 1), 0).expect("a backup serves");
        assert!(fs.journal == whole.journal && has_note(&fs, is_backup_super), "{name}");
    }
}

#[test]
fn every_flipped_bit_of_a_checked_superblock_is_noticed() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let image = ext(&dir, "image", 32, &["-b", "1024"]).expect("a file system");
    let whole = found(&image);
    // Which checksum there is, is said by one bit, which a checksum cannot guard.
    let guard = (1024 + 0x65, 1 << 2);
    for at in 1024..2048 {
        for bit in 0..8 {
            let changed = Changed::new(&image).flip(at, 1 << bit);
            let fs = find(&changed, 0).unwrap_or_else(|e| panic!("byte {at} bit {bit}: {e}"));
            assert_eq!(fs.journal, whole.journal, "byte {at} bit {bit}");
            let is = |n: &Note| {
                is_backup_super(n)
                    || (at, 1 << bit) == guard && matches!(n, Note::BackupDiffers { .. })
            };
            assert!(has_note(&fs, is), "byte {at} bit {bit}: {:?}", fs.notes);
        }
    }
}

#[test]
fn without_the_journals_inode_its_copy_serves() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, image) in ext_images(&dir) {
        let whole = found(&image);
        let place = run("debugfs", &["-R", "imap <8>", text(&image)]);
        let block = number_after(&place, "located at block ");
        let offset = place.split("offset 0x").nth(1).expect("an offset").trim();
        let offset = u64::from_str_radix(offset, 16).expect("a number");
        let at = block * u64::from(whole.block_bytes) + offset;
        for (what, changed) in [
            ("zeroed", Changed::new(&image).fill(at..at + 128, 0)),
            ("a directory", Changed::new(&image).flip(at + 1, 0xC0)),
            ("another table", Changed::new(&image).fill(at + 0x28..at + 0x64, 0xFF)),
        ] {
            let fs = find(&changed, 0).unwrap_or_else(|e| panic!("{name}, {what}: {e}"));
            assert_eq!(fs.journal, whole.journal, "{name}, {what}");
            let is = |n: &Note| matches!(n, Note::JournalBackup { .. });
            assert!(has_note(&fs, is), "{name}, {what}: {:?}", fs.notes);
        }
        // Another journal than the file system's.
        let journal = ring(&whole).ranges[0].start;
        let error = find(&Changed::new(&image).fill(journal..journal + 4, 0), 0);
        let error = error.expect_err("no journal begins there");
        assert!(matches!(error, SuperblockError::Damaged { .. }), "{name}: {error}");
        assert!(error.to_string().contains(&format!("byte {journal}: ")), "{name}: {error}");
    }
}

fn check(whole: &FileSystem, changed: &Changed) -> Result<(), TestCaseError> {
    let _ = scan(changed);
    let _ = metadata_ranges(changed, 0);
    match find(changed, 0) {
        Err(e) => prop_assert!(e.to_string().contains("byte "), "{}", e),
        Ok(fs) => {
            let told = !fs.notes.is_empty();
            prop_assert!(fs.journal == whole.journal || told, "{:?}", fs);
            if let Journal::Internal(ring) = &fs.journal {
                let inside = ring.ranges.iter().all(|r| r.end() <= fs.size_bytes);
                prop_assert!(inside, "{:?}", fs);
            }
        }
    }
    Ok(())
}

/// Flipped bits, most of them where they matter; and a cut, or none.
fn damage(len: u64) -> impl Strategy<Value = (Vec<(u64, u8)>, Option<u64>)> {
    let place = prop_oneof![4 => 1024..2048_u64, 2 => 0..4096_u64, 1 => 0..len];
    let flips = prop::collection::vec((place, 1..=u8::MAX), 1..12);
    (flips, prop::option::weighted(0.2, 0..len))
}

fn apply(image: &std::path::Path, damage: &(Vec<(u64, u8)>, Option<u64>)) -> Changed {
    let start = Changed::new(image);
    let mut changed = damage.0.iter().fold(start, |c, &(at, bits)| c.flip(at, bits));
    changed.end = damage.1;
    changed
}

#[test]
fn random_damage_is_told_or_does_not_matter() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mut images = ext_images(&dir);
    if have(&["mkfs.xfs"]) {
        let image = sparse(&dir, "xfs", 400);
        let made = output("mkfs.xfs", &["-q", "-f", text(&image)]);
        images.extend(made.map(|_| ("xfs", image)));
    }
    for (name, image) in images {
        let whole = found(&image);
        let len = whole.size_bytes;
        // Where there are no checksums, only what has a copy can be judged.
        let judged = ["1k", "4k", "xfs"].contains(&name);
        proptest!(ProptestConfig::with_cases(600), |(damage in damage(len))| {
            let changed = apply(&image, &damage);
            if judged {
                check(&whole, &changed)?;
            } else {
                let _ = (find(&changed, 0), scan(&changed), metadata_ranges(&changed, 0));
            }
        });
    }
}
