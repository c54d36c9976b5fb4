//! Logs of XFS file systems that mkfs.xfs made, against what xfs_db says.

mod common;

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use common::{found, have, number_after, open, output, ring, run, skipped, sparse, text};
use flashwise_superblock::{ByteRange, Journal, Kind, Note, ReadAt, find};

const TOOLS: [&str; 2] = ["mkfs.xfs", "xfs_db"];

fn xfs(dir: &tempfile::TempDir, name: &str, mib: u64, options: &[&str]) -> Option<PathBuf> {
    let path = sparse(dir, name, mib);
    output("mkfs.xfs", &[&["-q", "-f"], options, &[text(&path)]].concat())?;
    Some(path)
}

/// Name, size \[MiB\] and options.
const CASES: [(&str, u64, &[&str]); 9] = [
    ("400m", 400, &[]),
    ("1g", 1024, &["-L", "name"]),
    ("8g", 8192, &[]),
    ("16-groups", 2048, &["-d", "agcount=16"]),
    ("7-groups", 1024, &["-d", "agcount=7"]),
    ("1k", 512, &["-b", "size=1024"]),
    ("64k", 4096, &["-b", "size=65536"]),
    ("sector", 512, &["-s", "size=4096"]),
    ("v4", 512, &["-m", "crc=0"]),
];

#[test]
fn logs_are_where_xfs_db_says() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, mib, options) in CASES {
        let Some(image) = xfs(&dir, name, mib, options) else {
            skipped(&format!("mkfs.xfs that takes {options:?}"));
            continue;
        };
        let fs = found(&image);
        let keys = "p logstart logblocks agblocks agblklog blocksize dblocks";
        let said = run("xfs_db", &["-r", "-c", "sb 0", "-c", keys, text(&image)]);
        let n = |key: &str| number_after(&said, key);
        let block = run(
            "xfs_db",
            &["-r", "-c", &format!("convert fsb {} daddr", n("logstart")), text(&image)],
        );
        // `0x800 (2048)`: sectors of 512 bytes.
        let sector = number_after(&block, "(");
        let expected = ByteRange { start: sector * 512, bytes: n("logblocks") * n("blocksize") };
        assert_eq!(ring(&fs).ranges, [expected], "{name}");
        assert_eq!((fs.kind, fs.notes.as_slice()), (Kind::Xfs, &[][..]), "{name}");
        assert_eq!(fs.size_bytes, n("dblocks") * n("blocksize"), "{name}");
        assert_eq!(u64::from(fs.block_bytes), n("blocksize"), "{name}");
        if name == "1g" {
            assert_eq!(fs.label, "name");
        }
        // A new log begins with the header of a record. Source: xfs_log_format.h.
        let mut magic = [0; 4];
        open(&image).fill_at(expected.start, &mut magic).expect("the log");
        assert_eq!(magic, [0xFE, 0xED, 0xBA, 0xBE], "{name}");
        damaged_primary(&image, name);
        std::fs::remove_file(&image).expect("a file to remove");
    }
}

/// With the primary superblock gone, or the whole first block, a copy is found.
fn damaged_primary(image: &std::path::Path, name: &str) {
    let whole = found(image);
    let write = |bytes: &[u8], at: u64| {
        let file = std::fs::OpenOptions::new().write(true).open(image).expect("a file");
        file.write_all_at(bytes, at).expect("bytes to write");
    };
    let expect_backup = |what: &str| {
        let fs = find(&open(image), 0).unwrap_or_else(|e| panic!("{name}, {what}: {e}"));
        assert_eq!((&fs.journal, fs.uuid), (&whole.journal, whole.uuid), "{name}, {what}");
        let note = fs.notes.iter().find(|n| matches!(n, Note::BackupSuperblock { .. }));
        assert!(note.is_some(), "{name}, {what}: {:?}", fs.notes);
    };
    if name != "v4" {
        // One bit of the log's place.
        write(&[0x7F], 55);
        expect_backup("a wrong place of the log");
    }
    write(&[0; 512], 0);
    expect_backup("no superblock");
    if !["16-groups", "7-groups"].contains(&name) {
        // A number of groups that is not the usual one cannot be guessed.
        write(&[0; 65536], 0);
        expect_backup("no headers at all");
    }
}

#[test]
fn an_external_log_is_named() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let log = sparse(&dir, "log", 128);
    let option = format!("logdev={},size=64m", text(&log));
    let image = xfs(&dir, "data", 512, &["-l", &option]).expect("a file system");
    let fs = found(&image);
    assert_eq!(fs.journal, Journal::External { uuid: None, bytes: Some(64 << 20) });
}

#[test]
fn a_log_outside_its_group_is_damage() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let Some(image) = xfs(&dir, "v4", 512, &["-m", "crc=0"]) else {
        skipped("mkfs.xfs that takes crc=0");
        return;
    };
    let mut bytes = std::fs::read(&image).expect("bytes");
    bytes[96..100].copy_from_slice(&u32::MAX.to_be_bytes());
    let fs = find(&bytes, 0).expect("a copy helps");
    assert!(matches!(fs.notes[0], Note::BackupSuperblock { .. }));
    // Without copies there is an error that says where.
    bytes.truncate(64 << 20);
    let error = find(&bytes, 0).expect_err("no superblock is good");
    assert!(error.to_string().contains("byte 48: superblock of XFS is damaged"), "{error}");
}
