//! Journals of ext2, ext3 and ext4 that mkfs.ext4 made, against what debugfs and dumpe2fs
//! say about the same image.

mod common;

use common::{
    command, debugfs_ranges, ext, found, have, number_after, open, output, ring, run, skipped,
    sparse, text,
};
use flashwise_superblock::{
    ByteRange, Journal, Kind, Note, ReadAt, SuperblockError, find, metadata_ranges,
};

const TOOLS: [&str; 4] = ["mkfs.ext4", "mke2fs", "debugfs", "dumpe2fs"];

/// Name, size \[MiB\], options, kind, and whether mkfs may refuse.
type Case = (&'static str, u64, &'static [&'static str], Kind);

const CASES: [Case; 15] = [
    ("16m", 16, &[], Kind::Ext4),
    ("64m-1k", 64, &["-b", "1024"], Kind::Ext4),
    ("128m-2k", 128, &["-b", "2048"], Kind::Ext4),
    ("512m-4k", 512, &["-b", "4096"], Kind::Ext4),
    ("8g", 8192, &[], Kind::Ext4),
    ("8g-j400", 8192, &["-J", "size=400"], Kind::Ext4),
    ("ext3", 256, &["-t", "ext3"], Kind::Ext3),
    ("ext3-1k", 256, &["-t", "ext3", "-b", "1024", "-J", "size=40"], Kind::Ext3),
    ("no-extents", 256, &["-O", "^extent,^64bit"], Kind::Ext4),
    ("no-64bit", 256, &["-O", "^64bit"], Kind::Ext4),
    ("no-csum", 256, &["-O", "^metadata_csum"], Kind::Ext4),
    ("bigalloc", 512, &["-O", "bigalloc", "-C", "65536"], Kind::Ext4),
    ("meta_bg", 512, &["-b", "1024", "-O", "meta_bg,^resize_inode"], Kind::Ext4),
    ("csum_seed", 64, &["-O", "metadata_csum_seed"], Kind::Ext4),
    ("inode-128", 64, &["-I", "128"], Kind::Ext4),
];

#[test]
fn journals_are_where_debugfs_says() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, mib, options, kind) in CASES {
        let Some(image) = ext(&dir, name, mib, &[options, &["-L", "label"]].concat()) else {
            skipped(&format!("mkfs.ext4 that takes {options:?}"));
            continue;
        };
        let fs = found(&image);
        let head = run("dumpe2fs", &["-h", text(&image)]);
        let block_bytes = number_after(&head, "Block size:");
        assert_eq!((fs.kind, fs.label.as_str()), (kind, "label"), "{name}");
        assert_eq!(u64::from(fs.block_bytes), block_bytes, "{name}");
        assert_eq!(fs.size_bytes, number_after(&head, "Block count:") * block_bytes, "{name}");
        assert!(head.contains(&fs.uuid.to_string()), "{name}");
        assert_eq!(fs.notes, [], "{name}");
        let ring = ring(&fs);
        assert_eq!(ring.ranges, debugfs_ranges(&image, block_bytes), "{name}");
        assert_eq!(ring.bytes(), number_after(&head, "Total journal blocks:") * block_bytes);
        let first = ByteRange { start: ring.ranges[0].start, bytes: block_bytes };
        assert_eq!(ring.superblock, Some(first), "{name}");
        assert_eq!(ring.fast_commit, [], "{name}");
        check_contents(&dir, &image, &ring.ranges);
        std::fs::remove_file(&image).expect("a file to remove");
    }
}

/// The ranges hold the bytes that debugfs copies out of the journal's inode.
fn check_contents(dir: &tempfile::TempDir, image: &std::path::Path, ranges: &[ByteRange]) {
    let copy = dir.path().join("journal");
    run("debugfs", &["-R", &format!("dump <8> {}", text(&copy)), text(image)]);
    let copy = std::fs::read(copy).expect("a copy of the journal");
    let file = open(image);
    let mut bytes = vec![];
    for range in ranges {
        let mut part = vec![0; usize::try_from(range.bytes).expect("a size in memory")];
        file.fill_at(range.start, &mut part).expect("a range inside the image");
        bytes.extend(part);
    }
    assert!(bytes == copy, "{}: other bytes than the journal's", image.display());
}

#[test]
fn without_a_journal_there_is_none() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, options, kind) in
        [("ext2", &["-t", "ext2"][..], Kind::Ext2), ("ext4", &["-O", "^has_journal"], Kind::Ext4)]
    {
        let image = ext(&dir, name, 64, options).expect("a file system");
        let fs = found(&image);
        assert_eq!((fs.kind, &fs.journal), (kind, &Journal::None));
    }
}

#[test]
fn the_fast_commit_area_is_the_end_of_the_journal() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for mib in [64, 1024] {
        let Some(image) = ext(&dir, "fc", mib, &["-O", "fast_commit"]) else {
            skipped("mkfs.ext4 that takes fast_commit");
            return;
        };
        let fs = found(&image);
        let head = run("dumpe2fs", &["-h", text(&image)]);
        let bytes = number_after(&head, "Fast commit length:") * u64::from(fs.block_bytes);
        let ring = ring(&fs);
        assert!(bytes > 0 && ring.ranges == debugfs_ranges(&image, fs.block_bytes.into()));
        let end = ring.ranges.last().expect("a range").end();
        assert_eq!(ring.fast_commit, [ByteRange { start: end - bytes, bytes }], "{mib} MiB");
    }
}

/// A journal in many pieces: the free space is cut up before the journal is made.
#[test]
fn a_journal_in_pieces_is_found_in_its_order() {
    if !have(&TOOLS) || !have(&["tune2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, options) in [
        ("extents", &["-O", "^has_journal"][..]),
        ("map", &["-O", "^has_journal,^extent,^64bit,^metadata_csum"]),
        ("no-csum", &["-O", "^has_journal,^metadata_csum"]),
    ] {
        let all = [options, &["-b", "1024", "-m", "0", "-N", "64"]].concat();
        let image = ext(&dir, name, 32, &all).expect("a file system");
        // A file that comes and goes leaves bitmaps in all groups; then every fourth block of
        // the free space is marked as used.
        let big = dir.path().join("big");
        std::fs::write(&big, vec![1; 26 << 20]).expect("a file");
        let mut commands = format!("write {} big\nrm big\n", text(&big));
        commands.extend((600..32_000).step_by(4).map(|n| format!("setb {n}\n")));
        let script = dir.path().join("script");
        std::fs::write(&script, commands).expect("a script");
        run("debugfs", &["-w", "-f", text(&script), text(&image)]);
        let made = output("tune2fs", &["-O", "has_journal", "-J", "size=12", text(&image)]);
        assert!(made.is_some(), "{name}");
        let fs = found(&image);
        let ring = ring(&fs);
        assert_eq!(ring.ranges, debugfs_ranges(&image, 1024), "{name}");
        assert_eq!(ring.bytes(), 12 << 20, "{name}");
        assert!(ring.ranges.len() > 1000, "{name}: {} pieces", ring.ranges.len());
        check_contents(&dir, &image, &ring.ranges);
    }
}

#[test]
fn an_external_journal_is_named_and_is_all_journal() {
    if !have(&TOOLS) || !have(&["losetup"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for block in ["1024", "4096"] {
        let device = sparse(&dir, "journal.img", 32);
        run("mke2fs", &["-q", "-F", "-b", block, "-O", "journal_dev", text(&device)]);
        let fs = found(&device);
        let bytes: u64 = block.parse().expect("a number");
        assert_eq!((fs.kind, fs.size_bytes), (Kind::ExtJournal, 32 << 20));
        // Behind the superblock at byte 1024.
        let start = (1024 / bytes + 1) * bytes;
        let whole = ByteRange { start, bytes: (32 << 20) - start };
        assert_eq!(ring(&fs).ranges, [whole]);
        assert_eq!(ring(&fs).superblock, Some(ByteRange { start, bytes }));
        let Some(node) = output("losetup", &["-f", "--show", text(&device)]) else {
            skipped("root and a loop device");
            return;
        };
        let node = node.trim();
        let option = format!("device={node}");
        let image = ext(&dir, "data.img", 64, &["-b", block, "-J", &option]);
        run("losetup", &["-d", node]);
        let data = found(&image.expect("a file system with an external journal"));
        assert_eq!(data.journal, Journal::External { uuid: Some(fs.uuid), bytes: None });
        assert_eq!(ring(&found(&device)).ranges, [whole]);
    }
}

#[test]
fn metadata_lies_where_dumpe2fs_says() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for (name, mib, options, _) in CASES.into_iter().filter(|c| c.1 <= 512) {
        let Some(image) = ext(&dir, name, mib, options) else { continue };
        let fs = found(&image);
        let ranges = metadata_ranges(&open(&image), 0).expect("ranges");
        assert!(ranges.windows(2).all(|w| w[0].end() < w[1].start), "{name}: in order, apart");
        let listed = run("dumpe2fs", &[text(&image)]);
        let mut expected = vec![];
        for item in listed.split(['\n', ',']) {
            let item = item.trim();
            let keys = ["superblock at", "Group descriptors at", "Group descriptor at"];
            let keys = [&keys[..], &["Reserved GDT blocks at", "bitmap at", "Inode table at"]];
            for key in keys.concat() {
                if let Some(rest) = item.split(key).nth(1) {
                    expected.push(span(rest.trim(), fs.block_bytes));
                }
            }
        }
        assert!(expected.len() > 3, "{name}: {listed}");
        expected.sort_unstable();
        let mut joined: Vec<ByteRange> = vec![];
        for range in expected {
            match joined.last_mut() {
                Some(last) if range.start <= last.end() => {
                    last.bytes = last.bytes.max(range.end() - last.start);
                }
                _ => joined.push(range),
            }
        }
        assert_eq!(ranges, joined, "{name}");
    }
}

/// `5-20 (+4)` or `7` as blocks.
fn span(text: &str, block_bytes: u32) -> ByteRange {
    let text = text.split_whitespace().next().expect("blocks");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |t: &str| t.parse::<u64>().unwrap_or_else(|_| panic!("a block: {t}"));
    let (first, last) = (number(first), number(last));
    let block_bytes = u64::from(block_bytes);
    ByteRange { start: first * block_bytes, bytes: (last + 1 - first) * block_bytes }
}

/// What a mounted file system writes on fsync lands in the range that was found.
#[test]
fn fsync_changes_bytes_of_the_journal() {
    let root = output("id", &["-u"]).is_some_and(|id| id.trim() == "0");
    if !root || !have(&TOOLS) || !have(&["mount", "umount"]) {
        skipped("root");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let image = ext(&dir, "mounted", 64, &[]).expect("a file system");
    let ranges = ring(&found(&image)).ranges.clone();
    let before = std::fs::read(&image).expect("bytes");
    let point = dir.path().join("point");
    std::fs::create_dir(&point).expect("a mount point");
    if output("mount", &["-o", "loop", text(&image), text(&point)]).is_none() {
        skipped("a kernel that mounts ext4 on a loop device");
        return;
    }
    let written = std::fs::File::create(point.join("file")).and_then(|mut file| {
        std::io::Write::write_all(&mut file, &[7; 9000])?;
        file.sync_all()
    });
    let unmounted = command("umount").arg(&point).status();
    assert!(written.is_ok() && unmounted.is_ok_and(|s| s.success()), "{written:?}");
    let after = std::fs::read(&image).expect("bytes");
    let changed =
        (0..before.len()).step_by(1024).filter(|&at| before[at..at + 1024] != after[at..at + 1024]);
    let in_journal = |at: &usize| ranges.iter().any(|r| (r.start..r.end()).contains(&(*at as u64)));
    let (inside, outside): (Vec<_>, Vec<_>) = changed.partition(in_journal);
    // Superblock of the journal, a descriptor, metadata and a commit block at least; the
    // file itself and the metadata in place outside.
    assert!(inside.len() >= 4 && outside.len() >= 9, "{} {}", inside.len(), outside.len());
    let magic = [0xC0, 0x3B, 0x39, 0x98];
    let headers = |list: &[usize]| list.iter().filter(|&&at| after[at..at + 4] == magic).count();
    assert!(headers(&inside) >= 3, "descriptor and commit blocks lie in the range");
    assert_eq!(headers(&outside), 0, "and none elsewhere");
}

#[test]
fn an_image_that_was_cut_says_so() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let image = ext(&dir, "cut", 128, &[]).expect("a file system");
    let whole = found(&image);
    let journal = ring(&whole).ranges[0];
    let cut = |len: u64| {
        std::fs::OpenOptions::new().write(true).open(&image).expect("a file").set_len(len)
    };
    cut(journal.start).expect("a shorter file");
    let fs = found(&image);
    assert_eq!(ring(&fs).ranges, ring(&whole).ranges);
    assert!(fs.notes.iter().any(|n| matches!(n, Note::JournalUnseen { .. })), "{:?}", fs.notes);
    assert!(fs.notes.iter().any(|n| matches!(n, Note::Short { .. })), "{:?}", fs.notes);
    cut(1500).expect("a shorter file");
    let error = find(&open(&image), 0).expect_err("no superblock is left");
    assert!(matches!(error, SuperblockError::NotFound { .. } | SuperblockError::Truncated { .. }));
    assert!(error.to_string().contains("byte "), "{error}");
}
