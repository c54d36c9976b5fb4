//! Where an ext4 keeps its metadata, and where files lie, read from what `dumpe2fs`,
//! `debugfs` and `filefrag` print.
//!
//! Bitmaps, inode tables, descriptors and the journal lie where `mkfs` put them. Blocks of
//! directories and extent trees are allocated like data; who watches the trace learns of
//! those (see [`crate::collect`]).
//!
//! Cost: one pass over the text, about 300 bytes per group.

use thiserror::Error;

use crate::blocks::Blocks;
use crate::observed::Structure;

/// Where things are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Size of a block \[bytes\].
    pub block_bytes: u64,
    /// Blocks of the file system.
    pub n_blocks: u64,
    /// Metadata with a fixed place, and the journal if it is inside.
    pub blocks: Blocks,
    /// Blocks of the journal in the order of the ring, the superblock first; empty when
    /// there is none or it is on another device.
    pub journal: Runs,
}

/// First block and number of blocks of each run, in order of the file.
pub type Runs = Vec<(u64, u64)>;

/// Text that is not what the tools print.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{tool} printed {line:?}: {wrong}; expected the format of e2fsprogs 1.46 or later")]
pub struct BadText {
    /// Which tool.
    pub tool: &'static str,
    /// The line.
    pub line: String,
    /// What is wrong with it.
    pub wrong: &'static str,
}

/// Reads what `dumpe2fs` prints without options.
pub fn parse_dumpe2fs(text: &str) -> Result<Layout, BadText> {
    let mut layout = Layout::default();
    for line in text.lines() {
        let bad = |wrong| BadText { tool: "dumpe2fs", line: line.to_owned(), wrong };
        let number = |rest: &str| rest.trim().parse().map_err(|_| bad("not a number"));
        if let Some(rest) = line.strip_prefix("Block size:") {
            layout.block_bytes = number(rest)?;
        } else if let Some(rest) = line.strip_prefix("Block count:") {
            layout.n_blocks = number(rest)?;
        } else if line.starts_with("  ") {
            // A line may name several: "Primary superblock at 0, Group descriptors at 1-1".
            for (name, structure) in PLACES {
                let Some(at) = line.find(name) else { continue };
                let (first, n) =
                    range(&line[at + name.len()..]).ok_or_else(|| bad("no block number"))?;
                layout.blocks.set(first, n, structure);
            }
        }
    }
    if layout.block_bytes == 0 || layout.n_blocks == 0 {
        let line = text.lines().next().unwrap_or("").to_owned();
        return Err(BadText { tool: "dumpe2fs", line, wrong: "no block size or block count" });
    }
    Ok(layout)
}

const PLACES: [(&str, Structure); 7] = [
    ("superblock at ", Structure::Superblock),
    ("Group descriptors at ", Structure::GroupDescriptors),
    ("Group descriptor at ", Structure::GroupDescriptors),
    ("Reserved GDT blocks at ", Structure::GroupDescriptors),
    ("Block bitmap at ", Structure::BlockBitmap),
    ("Inode bitmap at ", Structure::InodeBitmap),
    ("Inode table at ", Structure::InodeTable),
];

/// First block and number of `2-64, …` or `65 (+65)`.
fn range(text: &str) -> Option<(u64, u64)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    let (first, last) = text[..end].split_once('-').unwrap_or((&text[..end], &text[..end]));
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    Some((first, last.checked_sub(first)?.checked_add(1)?))
}

/// Physical runs of a file (first block, number) from what `debugfs -R 'stat <N>'` prints
/// after `EXTENTS:` or, for a file with a block map, `BLOCKS:`. Blocks of the tree itself
/// (`ETB0`, `IND`) come apart, in the second list.
pub fn parse_stat(text: &str) -> Result<(Runs, Vec<u64>), BadText> {
    let (mut runs, mut tree) = (Vec::new(), Vec::new());
    let lines = text.lines().skip_while(|line| !matches!(line.trim(), "EXTENTS:" | "BLOCKS:"));
    for line in lines.skip(1).take_while(|line| line.starts_with('(')) {
        let bad = |wrong| BadText { tool: "debugfs stat", line: line.to_owned(), wrong };
        for item in line.split(", ") {
            let item = item.trim_end_matches(',');
            let (name, place) = item.split_once("):").ok_or_else(|| bad("no `(n):block`"))?;
            let (first, n) = range(place).ok_or_else(|| bad("no block number"))?;
            if name.starts_with("(ETB") || name.ends_with("IND") {
                tree.push(first);
            } else {
                runs.push((first, n));
            }
        }
    }
    Ok((runs, tree))
}

/// Runs of adjacent blocks of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExtents {
    /// Its path.
    pub path: String,
    /// Where it lies.
    pub runs: Runs,
}

/// Reads what `filefrag -v` prints of several files. Its rows look like
/// `   0:        0..    1023:      34816..     35839:   1024:             last,eof`.
/// Extents that follow each other on the device are one run.
pub fn parse_filefrag(text: &str) -> Vec<FileExtents> {
    let mut all: Vec<FileExtents> = Vec::new();
    let mut runs = Runs::new();
    for line in text.lines() {
        if let Some((path, _)) = line.rsplit_once(": ").filter(|(_, end)| end.contains(" extent")) {
            all.push(FileExtents { path: path.to_owned(), runs: std::mem::take(&mut runs) });
            continue;
        }
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let [number, _, physical, n, ..] = fields[..] else { continue };
        let first = physical.split("..").next().and_then(|first| first.trim().parse().ok());
        let (Ok(_), Some(first), Ok(n)) = (number.parse::<u64>(), first, n.parse::<u64>()) else {
            continue;
        };
        match runs.last_mut() {
            Some((start, have)) if start.checked_add(*have) == Some(first) => {
                *have = have.saturating_add(n);
            }
            _ => runs.push((first, n)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
Filesystem features:      has_journal ext_attr
Block count:              131072
Block size:               4096
Blocks per group:         32768


Group 0: (Blocks 0-32767) csum 0xb9d3 [ITABLE_ZEROED]
  Primary superblock at 0, Group descriptors at 1-1
  Reserved GDT blocks at 2-64
  Block bitmap at 65 (+65), csum 0x96361b5b
  Inode bitmap at 69 (+69), csum 0xe4443e68
  Inode table at 73-584 (+73)
  30640 free blocks, 8177 free inodes, 2 directories, 8177 unused inodes
  Free blocks: 2128-32767
Group 1: (Blocks 32768-65535) csum 0x1448 [ITABLE_ZEROED]
  Backup superblock at 32768, Group descriptors at 32769-32769
  Block bitmap at 66 (bg #0 + 66), csum 0xfd3f454d
";

    #[test]
    fn places_of_metadata_are_found() {
        let layout = parse_dumpe2fs(DUMP).expect("well formed");
        assert_eq!((layout.block_bytes, layout.n_blocks), (4096, 131_072));
        let at = |block| layout.blocks.get(block);
        assert_eq!(at(0), Some(Structure::Superblock));
        assert_eq!((at(1), at(64)), (Some(Structure::GroupDescriptors), at(2)));
        assert_eq!((at(65), at(66)), (Some(Structure::BlockBitmap), Some(Structure::BlockBitmap)));
        assert_eq!((at(67), at(69)), (None, Some(Structure::InodeBitmap)));
        assert_eq!((at(73), at(584)), (Some(Structure::InodeTable), Some(Structure::InodeTable)));
        assert_eq!((at(585), at(32768)), (None, Some(Structure::Superblock)));
    }

    #[test]
    fn runs_of_a_file_are_found() {
        let text =
            "Inode: 8   Type: regular\nEXTENTS:\n(ETB0):70000, (0-4095):65536-69631, (4096):12\n";
        assert_eq!(parse_stat(text), Ok((vec![(65536, 4096), (12, 1)], vec![70000])));
        let text = "BLOCKS:\n(IND):9, (0-11):20-31, (12-13):40-41\nTOTAL: 15\n";
        assert_eq!(parse_stat(text), Ok((vec![(20, 12), (40, 2)], vec![9])));
        assert_eq!(parse_stat("no such inode"), Ok((vec![], vec![])));
    }

    #[test]
    fn other_text_is_refused() {
        assert!(parse_dumpe2fs("dumpe2fs: Bad magic number").is_err());
        assert!(parse_dumpe2fs("Block size:   four").is_err());
        assert!(parse_stat("EXTENTS:\n(0-3)70\n").is_err());
    }

    #[test]
    fn extents_that_touch_are_one_run() {
        let text = "\
Filesystem type is: ef53
File size of /m/a is 16384 (4 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       1:      34816..     34817:      2:
   1:        2..       2:      34818..     34818:      1:             unwritten
   2:        3..       3:        900..       900:      1:      34819: last,eof
/m/a: 2 extents found
File size of /m/b: c is 0 (0 blocks of 4096 bytes)
/m/b: c: 0 extents found
";
        assert_eq!(
            parse_filefrag(text),
            [
                FileExtents { path: "/m/a".into(), runs: vec![(34816, 3), (900, 1)] },
                FileExtents { path: "/m/b: c".into(), runs: vec![] },
            ]
        );
    }
}
