//! What must hold for any image: the check that the fuzz target and a property test run.
//!
//! Arbitrary bytes hardly ever have a checksum that is right or a pointer that leads
//! anywhere. So the input is a list of changes to small images that are built here: ext3
//! with a block map, ext4 with a tree of extents, XFS, and a disk with logical
//! partitions. None has checksums, so every change gets past the first check.

use std::collections::BTreeMap;
use std::io;

use crate::{FileSystem, Journal, ReadAt, find, metadata_ranges, scan};

/// Length of a block of an image here \[bytes\].
const BLOCK: u64 = 1024;
/// Blocks of an image: more than two block groups.
const BLOCKS: u64 = 20_000;
/// Blocks of a journal here.
const JOURNAL: u32 = 1024;

/// An image that is zero but for a few blocks.
#[derive(Clone, Debug, Default)]
struct Sparse {
    blocks: BTreeMap<u64, Vec<u8>>,
    len: u64,
}

impl Sparse {
    /// Writes `bytes` at `at`, inside one block.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let block = self.blocks.entry(at / BLOCK).or_insert_with(|| vec![0; BLOCK as usize]);
        let start = (at % BLOCK) as usize;
        block[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn put_le32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn put_be32(&mut self, at: u64, value: u32) {
        self.put(at, &value.to_be_bytes());
    }
}

impl ReadAt for Sparse {
    fn n_bytes(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn fill_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buf.fill(0);
        let stored = self.blocks.range(offset / BLOCK..end.map_or(0, |end| end.div_ceil(BLOCK)));
        for (block, bytes) in stored {
            // The part of this block that is asked for.
            let from = offset.max(block * BLOCK);
            let to = (offset + buf.len() as u64).min((block + 1) * BLOCK);
            let source = &bytes[(from - block * BLOCK) as usize..(to - block * BLOCK) as usize];
            buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
        Ok(())
    }
}

/// Ext3 or ext4 with a journal that begins at block 2000.
fn ext(extents: bool) -> Sparse {
    let mut image = Sparse { len: BLOCKS * BLOCK, ..Sparse::default() };
    for (block, group) in [(1, 0_u8), (8193, 1)] {
        let at = block * BLOCK;
        let fields = [
            (0x0, 96),
            (0x4, BLOCKS as u32),
            (0x14, 1),
            (0x20, 8192),
            (0x28, 32),
            (0x4C, 1),
            (0x58, 128),
            (0x5C, 0x4),
            (0x60, if extents { 0x42 } else { 0x2 }),
            (0x64, 1),
            (0xE0, 8),
        ];
        fields.into_iter().for_each(|(field, value)| image.put_le32(at + field, value));
        image.put(at + 0x38, &[0x53, 0xEF]);
        image.put(at + 0x5A, &[group]);
    }
    for group in 0..3 {
        let bitmaps = 10 + 8 * group;
        for (i, block) in [bitmaps, bitmaps + 1, bitmaps + 2].into_iter().enumerate() {
            image.put_le32(2 * BLOCK + 32 * u64::from(group) + 4 * i as u64, block);
        }
    }
    let inode = 12 * BLOCK + 7 * 128;
    image.put(inode, &[0x80, 0x81]);
    image.put_le32(inode + 4, JOURNAL * BLOCK as u32);
    let root = inode + 0x28;
    if extents {
        image.put_le32(inode + 0x20, 0x8_0000);
        node(&mut image, root, 4, 1, &[(0, 1000, 0), (600, 1001, 0)]);
        node(&mut image, 1000 * BLOCK, 84, 0, &[(0, 600, 2000)]);
        node(&mut image, 1001 * BLOCK, 84, 0, &[(600, JOURNAL - 600, 4000)]);
    } else {
        (0..12).for_each(|i| image.put_le32(root + 4 * u64::from(i), 2000 + i));
        image.put_le32(root + 48, 1000);
        image.put_le32(root + 52, 1001);
        let table = |image: &mut Sparse, block: u64, first: u32| {
            (0..256).for_each(|i| image.put_le32(block * BLOCK + 4 * u64::from(i), first + i));
        };
        table(&mut image, 1000, 2012);
        (0..3).for_each(|i| image.put_le32(1001 * BLOCK + 4 * u64::from(i), 1002 + i));
        (0..3).for_each(|i| table(&mut image, 1002 + u64::from(i), 4000 + 256 * i));
    }
    let fields = [(0, 0xC03B_3998), (4, 4), (0xC, BLOCK as u32), (0x10, JOURNAL), (0x14, 1)];
    fields.into_iter().for_each(|(field, value)| image.put_be32(2000 * BLOCK + field, value));
    image
}

/// A node of extents: logical block and node (depth above 0), or logical block, length and
/// first block.
fn node(image: &mut Sparse, at: u64, max: u32, depth: u32, entries: &[(u32, u32, u32)]) {
    image.put_le32(at, 0xF30A | (entries.len() as u32) << 16);
    image.put_le32(at + 4, max | depth << 16);
    for (entry, at) in entries.iter().zip((at + 12..).step_by(12)) {
        image.put_le32(at, entry.0);
        image.put_le32(at + 4, entry.1);
        image.put_le32(at + 8, entry.2);
    }
}

/// XFS of four groups, version 4.
fn xfs() -> Sparse {
    let mut image = Sparse { len: BLOCKS * BLOCK, ..Sparse::default() };
    let group = (BLOCKS / 4) as u32;
    for at in [0, u64::from(group) * BLOCK] {
        image.put(at, b"XFSB");
        let fields = [
            (4, BLOCK as u32),
            (12, BLOCKS as u32),
            (52, 2 << 13 | 100),
            (84, group),
            (88, 4),
            (96, 512),
            (100, 4 << 16 | 512),
        ];
        fields.into_iter().for_each(|(field, value)| image.put_be32(at + field, value));
        image.put(at + 120, &[10, 9, 8, 3, 13]);
    }
    image
}

/// A disk with an ext3 in a logical partition.
fn disk() -> Sparse {
    let inner = ext(false);
    let mut image = Sparse { len: inner.len + (1 << 20), ..Sparse::default() };
    let moved = inner.blocks.into_iter().map(|(block, bytes)| (block + 1024, bytes));
    image.blocks = moved.collect();
    let sectors = (BLOCKS * 2) as u32;
    for (at, kind, start) in [(0, 0x05, 100), (100 * 512, 0x83, 2048 - 100)] {
        image.put_le32(at + 446 + 4, kind);
        image.put_le32(at + 446 + 8, start);
        image.put_le32(at + 446 + 12, sectors);
        image.put(at + 510, &[0x55, 0xAA]);
    }
    image
}

/// Changes an image as `data` says and reads it: the first byte names the image; every
/// four bytes after it a byte of its blocks that are not zero (16 bits), how it changes (8
/// bits) and the value. Panics if an answer cannot be true or is not the same twice.
pub fn changed_image(data: &[u8]) {
    let [which, changes @ ..] = data else { return };
    let mut image = match which % 5 {
        0 => ext(false),
        1 => ext(true),
        2 => xfs(),
        3 => disk(),
        _ => Sparse { blocks: BTreeMap::from([(0, vec![0; 1024])]), len: 1 << 20 },
    };
    let places: Vec<u64> = image.blocks.keys().copied().collect();
    for change in changes.chunks_exact(4) {
        let at = usize::from(change[0]) | usize::from(change[1]) << 8;
        let block = places[at / 1024 % places.len()];
        let byte = image.blocks.get_mut(&block).map(|b| &mut b[at % 1024]).expect("a place");
        match change[2] % 4 {
            0 => *byte ^= change[3],
            1 => *byte = change[3],
            2 => *byte = byte.wrapping_add(change[3]),
            _ => image.len = image.len * u64::from(change[3]) / 255,
        }
    }
    check(&image);
}

fn check(image: &Sparse) {
    let one = find(image, 0);
    if let Ok(fs) = &one {
        check_ranges(fs);
        assert_eq!(find(image, 0).ok().as_ref(), Some(fs), "the same answer twice");
    }
    if let Ok(disk) = scan(image) {
        disk.volumes.iter().filter_map(|v| v.found.as_ref().ok()).for_each(check_ranges);
    }
    if let Ok(ranges) = metadata_ranges(image, 0) {
        assert!(ranges.windows(2).all(|w| w[0].end() < w[1].start), "in order and apart");
    }
    let error = one.err().map(|e| e.to_string());
    assert!(error.is_none_or(|e| e.contains("byte ")), "an error says where");
}

/// A journal lies in its file system, without overlaps, and its parts in it.
fn check_ranges(fs: &FileSystem) {
    let Journal::Internal(ring) = &fs.journal else { return };
    let end = fs.offset + fs.size_bytes;
    let mut sorted = ring.ranges.clone();
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|w| w[0].end() <= w[1].start), "no byte twice: {ring:?}");
    let inside = sorted.iter().all(|r| r.start > fs.offset && r.bytes > 0 && r.end() <= end);
    assert!(inside && !sorted.is_empty(), "inside the file system: {fs:?}");
    for part in ring.superblock.iter().chain(&ring.fast_commit) {
        let holds = |r: &crate::ByteRange| r.start <= part.start && part.end() <= r.end();
        assert!(sorted.iter().any(holds), "{part} is a part of the journal: {ring:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use proptest::prelude::*;

    #[test]
    fn the_images_are_what_they_are_meant_to_be() {
        let bytes = u64::from(JOURNAL) * BLOCK;
        for (image, kind) in [(ext(false), Kind::Ext3), (ext(true), Kind::Ext4), (xfs(), Kind::Xfs)]
        {
            let fs = find(&image, 0).unwrap();
            assert_eq!((fs.kind, fs.notes.as_slice()), (kind, &[][..]));
            let Journal::Internal(ring) = &fs.journal else { panic!("{fs:?}") };
            assert_eq!(ring.bytes(), if kind == Kind::Xfs { 512 * BLOCK } else { bytes });
            check(&image);
        }
        let found = scan(&disk()).unwrap();
        let fs = found.volumes[0].found.as_ref().unwrap();
        assert_eq!((found.volumes.len(), fs.kind, fs.offset), (1, Kind::Ext3, 1 << 20));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn any_change_gives_a_possible_answer_or_an_error(
            data in prop::collection::vec(any::<u8>(), 1..64),
        ) {
            changed_image(&data);
        }
    }
}
