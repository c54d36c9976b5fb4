//! The allocator gives files as many extents as a real ext4 does, pattern by pattern.
//!
//! Each test makes a file system in a loop device, carries a pattern out on it and on the
//! model, and compares the extents of all files (`filefrag -v`). Needs root; else it prints
//! `skipped: needs root and a loop device`.

#![allow(clippy::print_stdout)]

mod common;

use common::modelled::Modelled;
use common::real::{Real, possible_cpus};
use common::{How, Op, Run, Setup};

/// Extents may differ by this part.
const TOLERANCE: f64 = 0.10;

/// How many files that differ to show: set `SHOW` to see where the two part.
fn show() -> usize {
    std::env::var("SHOW").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A plain generator, the same everywhere (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % u64::from(n)) as u32
    }
}

fn compare(name: &str, setup: &Setup, ops: &[Op], files: &[u32]) {
    compare_all(name, setup, ops, &[("", files)]);
}

/// Compares some sets of files apart.
fn compare_all(name: &str, setup: &Setup, ops: &[Op], sets: &[(&str, &[u32])]) {
    let Some(mut real) = Real::new(setup) else { return };
    let mut modelled = Modelled::new(setup, possible_cpus());
    for op in ops {
        real.apply(op);
        match *op {
            // Where a directory of the root goes is up to a hash with a random key.
            Op::Mkdir { dir, parent: 0 } => {
                let ino = real.dir_ino(dir);
                modelled.make_dir(dir, 0, modelled.group_of(ino));
                assert_eq!(modelled.dir_ino(dir), ino, "{name}: inode of directory {dir}");
            }
            Op::Mkdir { dir, .. } => {
                modelled.apply(op);
                assert_eq!(modelled.dir_ino(dir), real.dir_ino(dir), "{name}: directory {dir}");
            }
            Op::Create(file, _) => {
                modelled.apply(op);
                assert_eq!(modelled.ino(file), real.ino(file), "{name}: inode of file {file}");
            }
            _ => modelled.apply(op),
        }
    }
    modelled.check();
    println!("{name}: {} blocks free, {} in the model", real.free_blocks(), modelled.free_blocks());
    for (set, files) in sets {
        compare_files(&format!("{name}{set}"), &real, &modelled, files);
    }
}

fn compare_files(name: &str, real: &Real, modelled: &Modelled, files: &[u32]) {
    let (real, modelled) = (real.runs(files), modelled.runs(files));
    let count = |runs: &[Vec<Run>]| runs.iter().map(Vec::len).sum::<usize>();
    let same = real.iter().zip(&modelled).filter(|(real, ours)| real == ours).count();
    let (n_real, n_ours) = (count(&real), count(&modelled));
    println!(
        "{name}: {n_real} extents, {n_ours} in the model, {same} of {} files at the same blocks",
        files.len()
    );
    let differing = files.iter().zip(real.iter().zip(&modelled)).filter(|(_, (a, b))| a != b);
    for (file, (real, ours)) in differing.take(show()) {
        println!("  file {file}: real {real:?}");
        println!("  file {file}: ours {ours:?}");
    }
    let difference = n_ours as f64 / n_real as f64 - 1.0;
    assert!(difference.abs() <= TOLERANCE, "{name}: {n_ours} extents for {n_real}");
}

/// Files that are appended in turn by pieces, each made durable.
fn in_turn(n_files: u32, piece: u32, n_pieces: u32, how: How) -> Vec<Op> {
    let mut ops: Vec<Op> = (0..n_files).map(|file| Op::Create(file, how)).collect();
    for idx in 0..n_pieces {
        for file in 0..n_files {
            ops.push(Op::Write { file, at: idx * piece, len: piece });
            ops.push(Op::Sync(file));
        }
    }
    ops.extend((0..n_files).map(Op::Close));
    ops.push(Op::SyncAll);
    ops
}

const PIECES: [(u32, u32); 5] = [(1, 200), (4, 150), (8, 100), (16, 80), (64, 50)];

fn compare_in_turn(delalloc: bool, how: How) {
    for (piece, n_pieces) in PIECES {
        let setup = Setup { delalloc, ..Setup::new(4096) };
        let name = format!("2 files, {} KiB in turn, delalloc {delalloc}, {how:?}", piece * 4);
        compare(&name, &setup, &in_turn(2, piece, n_pieces, how), &[0, 1]);
    }
}

#[test]
fn one_file_written_in_order() {
    for how in [How::Buffered, How::Direct] {
        for delalloc in [true, false] {
            let mut ops = vec![Op::Create(0, how)];
            ops.extend((0..100).map(|idx| Op::Write { file: 0, at: idx * 256, len: 256 }));
            ops.extend([Op::Sync(0), Op::Close(0), Op::SyncAll]);
            let setup = Setup { delalloc, ..Setup::new(4096) };
            compare(&format!("one file, delalloc {delalloc}, {how:?}"), &setup, &ops, &[0]);
        }
    }
}

#[test]
fn two_files_in_turn() {
    compare_in_turn(true, How::Buffered);
}

#[test]
fn two_files_in_turn_without_delayed_allocation() {
    compare_in_turn(false, How::Buffered);
}

#[test]
fn two_files_in_turn_past_the_page_cache() {
    compare_in_turn(true, How::Direct);
}

#[test]
fn other_settings_for_small_files() {
    let small = Setup { mb_stream_req: Some(4), mb_group_prealloc: Some(64), ..Setup::new(4096) };
    let large = Setup { mb_stream_req: Some(256), ..Setup::new(4096) };
    let unshared = Setup { mb_group_prealloc: Some(0), ..Setup::new(4096) };
    for setup in [small, large, unshared] {
        let name = format!("5 files, 16 KiB in turn, {setup:?}");
        compare(&name, &setup, &in_turn(5, 4, 60, How::Buffered), &[0, 1, 2, 3, 4]);
    }
}

/// Files of random sizes, some deleted and others made in their room.
fn small_files(sync_each: bool) {
    let mut random = Random(7);
    let mut ops = Vec::new();
    let mut create = |ops: &mut Vec<Op>, file: u32| {
        let len = 1 + random.below(40);
        ops.extend([Op::Create(file, How::Buffered), Op::Write { file, at: 0, len }]);
        if sync_each {
            ops.push(Op::Sync(file));
        }
        ops.push(Op::Close(file));
    };
    (0..1000).for_each(|file| create(&mut ops, file));
    ops.push(Op::SyncAll);
    ops.extend((0..1000).step_by(2).map(Op::Delete));
    ops.push(Op::SyncAll);
    (1000..1500).for_each(|file| create(&mut ops, file));
    ops.push(Op::SyncAll);
    let files: Vec<u32> = (0..1500).filter(|file| *file >= 1000 || file % 2 == 1).collect();
    let name = format!("1000 small files, every second replaced, synced one by one {sync_each}");
    compare(&name, &Setup::new(600), &ops, &files);
    compare(&name, &Setup::new(4096), &ops, &files);
}

#[test]
fn small_files_synced_one_by_one() {
    small_files(true);
}

#[test]
fn small_files_synced_together() {
    small_files(false);
}

#[test]
fn a_fallocated_file_filled_in_pieces() {
    let mut random = Random(3);
    for how in [How::Buffered, How::Direct] {
        for len in [1000, 16384, 40_000] {
            let mut ops = vec![Op::Create(0, how), Op::Fallocate { file: 0, len }];
            for _ in 0..60 {
                ops.push(Op::Write { file: 0, at: random.below(len - 16), len: 16 });
                ops.push(Op::Sync(0));
            }
            ops.extend([Op::Close(0), Op::SyncAll]);
            compare(&format!("{len} blocks fallocated, {how:?}"), &Setup::new(4096), &ops, &[0]);
        }
    }
}

/// Fills a file system to nine tenths with files of 400 KiB to 1.2 MiB, deletes every third
/// and writes a large file into the holes. `n_taken` blocks are fallocated before.
fn large_file_on_a_full_file_system(mib: u32, n_taken: u32) {
    const TAKEN: u32 = 9999;
    let mut random = Random(11);
    let mut ops = Vec::new();
    if n_taken > 0 {
        ops.push(Op::Create(TAKEN, How::Buffered));
        ops.extend([Op::Fallocate { file: TAKEN, len: n_taken }, Op::Close(TAKEN)]);
    }
    let n_files = (mib * 256 * 9 / 10 - n_taken) / 200;
    for file in 0..n_files {
        let len = 100 + random.below(200);
        ops.extend([Op::Create(file, How::Buffered), Op::Write { file, at: 0, len }]);
        ops.extend([Op::Sync(file), Op::Close(file)]);
    }
    ops.push(Op::SyncAll);
    ops.extend((0..n_files).filter(|file| file % 3 == 1).map(Op::Delete));
    ops.push(Op::SyncAll);
    let large = n_files;
    ops.push(Op::Create(large, How::Buffered));
    let n_pieces = n_files * 200 / 4 / 512;
    for idx in 0..n_pieces {
        ops.push(Op::Write { file: large, at: idx * 512, len: 512 });
    }
    ops.extend([Op::Sync(large), Op::Close(large), Op::SyncAll]);
    let small: Vec<u32> = (0..n_files).filter(|file| file % 3 != 1).collect();
    let sets: [(&str, &[u32]); 2] = [(", files of 800 KiB", &small), (", a large file", &[large])];
    compare_all(&format!("{mib} MiB almost full"), &Setup::new(mib), &ops, &sets);
}

#[test]
fn a_large_file_on_a_full_file_system_of_few_groups() {
    large_file_on_a_full_file_system(600, 0);
}

#[test]
fn a_large_file_on_a_full_file_system_of_many_groups() {
    large_file_on_a_full_file_system(2304, 400_000);
}

#[test]
fn files_in_many_directories() {
    let mut random = Random(2);
    let mut ops = Vec::new();
    for dir in 1..=6 {
        ops.push(Op::Mkdir { dir, parent: 0 });
        ops.push(Op::Mkdir { dir: 10 * dir, parent: dir });
        ops.push(Op::Mkdir { dir: 10 * dir + 1, parent: 10 * dir });
    }
    let mut files = Vec::new();
    for idx in 0..40 {
        for dir in (1..=6).flat_map(|dir| [dir, 10 * dir, 10 * dir + 1]) {
            let file = dir * 10_000 + idx;
            ops.extend([Op::Create(file, How::Buffered)]);
            ops.push(Op::Write { file, at: 0, len: 1 + random.below(30) });
            ops.extend([Op::Sync(file), Op::Close(file)]);
            files.push(file);
        }
    }
    for file in files.iter().filter(|file| *file % 3 == 0) {
        ops.push(Op::Delete(*file));
    }
    ops.push(Op::SyncAll);
    files.retain(|file| file % 3 != 0);
    for dir in 1..=6 {
        let file = dir * 10_000 + 100;
        ops.extend([Op::Create(file, How::Buffered), Op::Write { file, at: 0, len: 300 }]);
        ops.extend([Op::Sync(file), Op::Close(file)]);
        files.push(file);
    }
    ops.push(Op::SyncAll);
    compare("18 directories", &Setup::new(16 * 1024), &ops, &files);
}

#[test]
fn random_writes_to_a_sparse_file() {
    for (how, delalloc) in [(How::Buffered, true), (How::Buffered, false), (How::Direct, true)] {
        let mut random = Random(5);
        let mut ops = vec![Op::Create(0, how)];
        for _ in 0..300 {
            ops.push(Op::Write { file: 0, at: 4 * random.below(4000), len: 4 });
            ops.push(Op::Sync(0));
        }
        ops.extend([Op::Close(0), Op::SyncAll]);
        let setup = Setup { delalloc, ..Setup::new(4096) };
        let name = format!("random writes to a sparse file, delalloc {delalloc}, {how:?}");
        compare(&name, &setup, &ops, &[0]);
    }
}
