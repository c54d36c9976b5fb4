//! The layout is that of the real `mkfs.ext4`, to the block. The images are sparse files;
//! no root is needed.

#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flashwise_hostfs::layout::{JournalSize, Layout, LayoutOptions};

const MIB: u64 = 1 << 20;

/// An image that is removed at the end, also of a test that fails.
struct Image(PathBuf);

impl Image {
    fn new(n_bytes: u64, args: &[&str]) -> Self {
        let dir = Path::new("/dev/shm");
        let dir = if dir.is_dir() { dir.to_path_buf() } else { std::env::temp_dir() };
        let name = format!("flashwise-layout-{}-{n_bytes}-{}", std::process::id(), args.join(""));
        let image = Self(dir.join(name));
        std::fs::File::create(&image.0).unwrap().set_len(n_bytes).unwrap();
        let status = Command::new("mkfs.ext4")
            .args(["-q", "-F", "-b", "4096", "-m", "0"])
            .args(args)
            .arg(&image.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "mkfs.ext4 failed");
        image
    }

    fn run(&self, tool: &str, args: &[&str]) -> String {
        let out = Command::new(tool).args(args).arg(&self.0).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn have_tools() -> bool {
    let there = |tool: &str| Command::new(tool).arg("-V").output().is_ok();
    there("mkfs.ext4") && there("dumpe2fs") && there("debugfs")
}

/// What `dumpe2fs` says of one group.
#[derive(Debug, Default, PartialEq)]
struct Group {
    block_bitmap: u32,
    inode_bitmap: u32,
    inode_table: u32,
    n_free: u32,
    has_superblock: bool,
}

fn number(text: &str, after: &str) -> Option<u32> {
    let rest = &text[text.find(after)? + after.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn parse(dump: &str) -> (BTreeMap<String, String>, Vec<Group>) {
    let mut header = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for line in dump.lines() {
        if line.starts_with("Group ") && line.contains("(Blocks") {
            groups.push(Group::default());
        }
        let Some(group) = groups.last_mut() else {
            if let Some((key, value)) = line.split_once(':') {
                header.insert(key.to_string(), value.trim().to_string());
            }
            continue;
        };
        group.has_superblock |= line.contains(" superblock at ");
        if let Some(at) = number(line, "Block bitmap at ") {
            group.block_bitmap = at;
        }
        if let Some(at) = number(line, "Inode bitmap at ") {
            group.inode_bitmap = at;
        }
        if let Some(at) = number(line, "Inode table at ") {
            group.inode_table = at;
        }
        if line.contains(" free blocks, ") {
            group.n_free = number(line, "  ").unwrap();
        }
    }
    (header, groups)
}

/// The pieces of the journal, from `debugfs`.
fn journal(image: &Image) -> Vec<std::ops::Range<u32>> {
    let mut pieces: Vec<std::ops::Range<u32>> = Vec::new();
    for line in image.run("debugfs", &["-R", "ex <8>"]).lines() {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_ascii_digit()).filter(|w| !w.is_empty()).collect();
        let numbers: Vec<u32> = words.iter().filter_map(|w| w.parse().ok()).collect();
        // level, levels, entry, entries, logical, last, physical, last, length
        if numbers.len() != 9 || numbers[0] != numbers[1] {
            continue;
        }
        match pieces.last_mut() {
            Some(last) if last.end == numbers[6] => last.end = numbers[7] + 1,
            _ => pieces.push(numbers[6]..numbers[7] + 1),
        }
    }
    pieces
}

fn compare(n_bytes: u64, size: JournalSize, args: &[&str]) {
    if !have_tools() {
        eprintln!("skipped: needs mkfs.ext4, dumpe2fs and debugfs");
        return;
    }
    let image = Image::new(n_bytes, args);
    let options = LayoutOptions { journal: size, ..LayoutOptions::new(n_bytes / 4096) };
    let layout = Layout::new(&options).unwrap();
    let (header, groups) = parse(&image.run("dumpe2fs", &[]));
    let what = format!("{} MiB {args:?}", n_bytes / MIB);
    let value = |key: &str| header[key].parse::<u32>().unwrap();

    assert_eq!(layout.n_blocks(), value("Block count"), "{what}");
    assert_eq!(layout.n_groups() as usize, groups.len(), "{what}");
    assert_eq!(layout.n_inodes(), value("Inode count"), "{what}");
    assert_eq!(layout.inodes_per_group(), value("Inodes per group"), "{what}");
    assert_eq!(layout.inode_table_blocks(), value("Inode blocks per group"), "{what}");
    assert_eq!(layout.reserved_descriptor_blocks(), value("Reserved GDT blocks"), "{what}");
    if size != JournalSize::None {
        assert_eq!(layout.journal_ranges(), journal(&image), "{what}");
    }
    for (group, real) in groups.iter().enumerate() {
        let group = group as u32;
        let range = layout.group_range(group);
        let used: u32 = layout
            .used()
            .iter()
            .map(|used| used.end.min(range.end).saturating_sub(used.start.max(range.start)))
            .sum();
        let ours = Group {
            block_bitmap: layout.block_bitmap(group).0,
            inode_bitmap: layout.inode_bitmap(group).0,
            inode_table: layout.inode_table(group).0,
            n_free: range.end - range.start - used,
            has_superblock: Layout::has_superblock(group),
        };
        assert_eq!(&ours, real, "{what}, group {group}");
    }
    assert_eq!(layout.free_blocks(), value("Free blocks"), "{what}");
}

#[test]
fn default_layouts_are_those_of_mkfs() {
    for mib in [100, 511, 600, 1024, 2048, 8192, 29 * 1024, 56 * 1024, 120 * 1024] {
        compare(mib * MIB, JournalSize::Default, &[]);
    }
}

#[test]
fn a_tebibyte_is_laid_out_as_by_mkfs() {
    compare(1024 * 1024 * MIB, JournalSize::Default, &[]);
}

#[test]
fn odd_sizes_are_those_of_mkfs() {
    // The second and third leave a last group too short to keep, or just long enough.
    let few = [25_600, 60_000, 80_000, 110_000, 557_056, 589_824, 620_000];
    let more = [262_145, 262_144 + 560, 262_144 + 700, 1_000_003, 3_333_333, 7_864_320];
    for blocks in few.into_iter().chain(more) {
        compare(blocks * 4096, JournalSize::Default, &[]);
    }
}

#[test]
fn journals_of_any_size_are_those_of_mkfs() {
    compare(8192 * MIB, JournalSize::None, &["-O", "^has_journal"]);
    compare(600 * MIB, JournalSize::MiB(64), &["-J", "size=64"]);
    compare(2048 * MIB, JournalSize::MiB(400), &["-J", "size=400"]);
    compare(8192 * MIB, JournalSize::MiB(1024), &["-J", "size=1024"]);
    compare(29 * 1024 * MIB, JournalSize::MiB(4000), &["-J", "size=4000"]);
    compare(120 * 1024 * MIB, JournalSize::MiB(128), &["-J", "size=128"]);
}

#[test]
fn devices_that_do_not_fit_are_refused_with_advice() {
    let refused = |n_blocks| Layout::new(&LayoutOptions::new(n_blocks)).unwrap_err().to_string();
    assert!(refused(1 << 32).contains("fewer than 2^32 blocks"));
    assert!(refused(10).contains("too small"));
    let options = LayoutOptions { journal: JournalSize::MiB(9000), ..LayoutOptions::new(1 << 20) };
    assert!(Layout::new(&options).unwrap_err().to_string().contains("half"));
}
