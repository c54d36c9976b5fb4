//! Whole disks: partition tables that sfdisk wrote, with file systems that mkfs made.

mod common;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{command, ext, found, have, open, ring, sparse};
use flashwise_superblock::{Disk, Kind, SuperblockError, Table, find, scan};

const TOOLS: [&str; 2] = ["mkfs.ext4", "sfdisk"];
/// Where the partitions begin, each 40 MiB \[MiB\].
const STARTS: [u64; 2] = [1, 48];

fn disk(dir: &tempfile::TempDir, label: &str, script: &str) -> PathBuf {
    let disk = sparse(dir, "disk", 100);
    let mut child = command("sfdisk")
        .args(["-q", disk.to_str().expect("a plain path")])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sfdisk runs");
    let text = format!("label: {label}\n{script}");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), text.as_bytes())
        .expect("a script");
    assert!(child.wait().expect("an end").success(), "sfdisk: {text}");
    let file = std::fs::OpenOptions::new().write(true).open(&disk).expect("a file");
    for (start, options) in STARTS.into_iter().zip([&[][..], &["-t", "ext3"]]) {
        let part = ext(dir, "part", 40, options).expect("a file system");
        let bytes = std::fs::read(part).expect("bytes");
        file.write_all_at(&bytes, start << 20).expect("room");
    }
    disk
}

fn check(disk: &Disk, path: &Path, table: Table, numbers: [u32; 2]) {
    assert_eq!(disk.table, table);
    assert_eq!(disk.volumes.len(), 2);
    for (((volume, start), kind), number) in
        disk.volumes.iter().zip(STARTS).zip([Kind::Ext4, Kind::Ext3]).zip(numbers)
    {
        let partition = volume.partition.expect("a partition");
        assert_eq!((partition.number, partition.range.start), (number, start << 20));
        let fs = volume.found.as_ref().expect("a file system");
        assert_eq!((fs.kind, fs.offset), (kind, start << 20));
        let ring = ring(fs);
        assert!(ring.ranges[0].start > start << 20 && ring.ranges[0].end() < (start + 40) << 20);
        assert_eq!(find(&open(path), start << 20).expect("the same"), *fs);
    }
}

const TWO: &str = "start=1MiB, size=40MiB, type=L\nstart=48MiB, size=40MiB, type=L\n";

#[test]
fn each_partition_of_an_mbr_is_found() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = disk(&dir, "dos", TWO);
    check(&scan(&open(&path)).expect("a disk"), &path, Table::Mbr, [1, 2]);
}

#[test]
fn logical_partitions_are_found() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let script = "start=1MiB, size=40MiB, type=L\nstart=46MiB, size=50MiB, type=E\n\
                  start=48MiB, size=40MiB, type=L\n";
    let path = disk(&dir, "dos", script);
    check(&scan(&open(&path)).expect("a disk"), &path, Table::Mbr, [1, 5]);
}

#[test]
fn each_partition_of_a_gpt_is_found_also_by_its_copy() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = disk(&dir, "gpt", TWO);
    check(&scan(&open(&path)).expect("a disk"), &path, Table::Gpt, [1, 2]);
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    // The first sector of the first entry.
    file.write_all_at(&[0xFF], 1024 + 32).expect("a byte");
    check(&scan(&open(&path)).expect("a disk"), &path, Table::GptBackup, [1, 2]);
    file.write_all_at(&[0; 512], (100 << 20) - 512).expect("a sector");
    let error = scan(&open(&path)).expect_err("no table is left");
    assert!(matches!(error, SuperblockError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("GPT"), "{error}");
}

#[test]
fn an_image_without_a_table_is_one_volume() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let image = ext(&dir, "plain", 64, &[]).expect("a file system");
    let disk = scan(&open(&image)).expect("a disk");
    assert_eq!((disk.table, disk.volumes.len()), (Table::None, 1));
    assert_eq!(*disk.volumes[0].found.as_ref().expect("it"), found(&image));
    let blank = sparse(&dir, "blank", 64);
    let disk = scan(&open(&blank)).expect("a disk");
    let error = disk.volumes[0].found.as_ref().expect_err("nothing is there");
    assert!(matches!(error, SuperblockError::NotFound { offset: 0 }), "{error}");
}
