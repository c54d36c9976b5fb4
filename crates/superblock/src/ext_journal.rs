//! The journal of ext3 and ext4: an inode, or a device of its own.
//!
//! The inode maps the journal by extents or by a block map. Either must map every block
//! of it in order, once, inside the file system; the first of them must hold the journal's
//! superblock. That makes cycles, holes and stray pointers errors, and bounds the work by
//! the length of the journal. If the inode fails, the copy of its map in the file system's
//! superblock (`s_jnl_blocks`) is tried.
//!
//! Offsets: Documentation/filesystems/ext4 (inodes.rst, ifork.rst, journal.rst),
//! fs/ext4/ext4_extents.h, include/linux/jbd2.h of Linux. Cost: one block per node of the map.

use crate::error::SuperblockError;
use crate::ext::ExtSuper;
use crate::model::push_range;
use crate::read::{View, be32, crc32c_raw, le16, le32};
use crate::{ByteRange, Journal, Note, Ring};

/// Longest journal that is taken \[blocks\]; e2fsprogs makes none beyond 10,240,000.
const BLOCKS_MAX: u64 = 1 << 24;
/// Most pieces of a journal, assumed: 16 MiB of memory, far beyond any real one.
const PIECES_MAX: usize = 1 << 20;
/// Most nodes of an extent tree, assumed: 1.4 million extents with blocks of 4 KiB.
const NODES_MAX: u32 = 4096;
/// Deepest extent tree. Source: `EXT4_MAX_EXTENT_DEPTH`, fs/ext4/ext4_extents.h.
const DEPTH_MAX: u16 = 5;
const EXTENT_MAGIC: u16 = 0xF30A;
/// Header of a node, and each entry \[bytes\].
const ENTRY_BYTES: usize = 12;
/// Longer extents are unwritten ones of that much less. Source: `EXT_INIT_MAX_LEN`.
const EXTENT_BLOCKS_MAX: u16 = 1 << 15;
/// `EXT4_EXTENTS_FL`: the inode maps by extents.
const FLAG_EXTENTS: u32 = 0x8_0000;
/// Pointers in an inode; the last three are indirect.
const DIRECT: usize = 12;

const JOURNAL_MAGIC: u32 = 0xC03B_3998;
/// Block types of the two versions of a journal superblock.
const SUPER_V1: u32 = 3;
const SUPER_V2: u32 = 4;
const JOURNAL_CSUM: u32 = 0x8 | 0x10;
const JOURNAL_FAST_COMMIT: u32 = 0x20;
const JOURNAL_KNOWN: u32 = 0x3F;
/// `JBD2_DEFAULT_FAST_COMMIT_BLOCKS`, where the superblock says 0.
const FAST_COMMIT_DEFAULT: u32 = 256;
/// `JBD2_MIN_JOURNAL_BLOCKS`: the kernel makes no fast-commit area that leaves less.
const RING_BLOCKS_MIN: u64 = 1024;

/// The journal of the file system of `sb`.
pub(crate) fn locate(
    view: &View<'_>,
    sb: &ExtSuper,
) -> Result<(Journal, Vec<Note>), SuperblockError> {
    let mut notes = vec![];
    if sb.is_journal_device() {
        return Ok((Journal::Internal(own_device(view, sb, &mut notes)?), notes));
    }
    if !sb.has_journal() {
        return Ok((Journal::None, notes));
    }
    if sb.journal_inode == 0 {
        if sb.journal_uuid.is_nil() {
            return Err(SuperblockError::damaged(
                "superblock of ext4",
                view.offset(sb.at + 0xD0),
                "neither an inode nor a device of the journal",
                "one of them, as it has a journal",
            ));
        }
        let uuid = Some(sb.journal_uuid);
        return Ok((Journal::External { uuid, bytes: None }, notes));
    }
    let by_inode = inode_map(view, sb, &mut notes).and_then(|map| ring(view, sb, &map, &mut notes));
    let ring = match (by_inode, &sb.journal_backup) {
        (Ok(ring), _) => ring,
        (Err(e), None) => return Err(e),
        (Err(e), Some(copy)) => {
            notes.clear();
            let map = backup_map(view, sb, copy);
            let Ok(found) = map.and_then(|map| ring(view, sb, &map, &mut notes)) else {
                return Err(e);
            };
            notes.push(Note::JournalBackup { why: e.to_string() });
            found
        }
    };
    Ok((Journal::Internal(ring), notes))
}

/// The blocks of a journal, in its order.
struct Map {
    /// Where they lie \[bytes from the start of the file system\].
    ranges: Vec<ByteRange>,
    /// How many.
    blocks: u64,
}

/// Reads the inode of the journal and its map.
fn inode_map(
    view: &View<'_>,
    sb: &ExtSuper,
    notes: &mut Vec<Note>,
) -> Result<Map, SuperblockError> {
    let number = sb.journal_inode;
    let per_group = u64::from(sb.inodes_per_group);
    let (group, idx) = (u64::from(number - 1) / per_group, u64::from(number - 1) % per_group);
    if group >= sb.n_groups() {
        return Err(SuperblockError::damaged(
            "superblock of ext4",
            view.offset(sb.at + 0xE0),
            format!("inode {number} for the journal"),
            "an inode inside the file system, usually 8",
        ));
    }
    let block_bytes = u64::from(sb.block_bytes);
    let desc_at = sb
        .desc_block(group / sb.descs_per_block())
        .saturating_mul(block_bytes)
        .saturating_add(group % sb.descs_per_block() * sb.desc_bytes as u64);
    let desc = view.read(desc_at, sb.desc_bytes, "descriptor of the journal's group")?;
    let high = if sb.desc_bytes >= 64 { le32(&desc, 0x28) } else { 0 };
    let table = u64::from(le32(&desc, 0x8)) | u64::from(high) << 32;
    if table <= sb.super_block() || table >= sb.blocks {
        return Err(SuperblockError::damaged(
            "descriptor of the journal's group",
            view.offset(desc_at),
            format!("an inode table at block {table}"),
            "one inside the file system",
        ));
    }
    let at = table * block_bytes + idx * sb.inode_bytes as u64;
    let inode = view.read(at, sb.inode_bytes, "inode of the journal")?;
    let wrong = |found: String, expected| {
        SuperblockError::damaged("inode of the journal", view.offset(at), found, expected)
    };
    let seed = sb
        .checksum_seed
        .map(|seed| crc32c_raw(crc32c_raw(seed, &number.to_le_bytes()), &inode[0x64..0x68]));
    if seed.is_some_and(|seed| !inode_checksum_is_right(seed, &inode)) {
        return Err(wrong("another checksum".into(), "the checksum of its contents"));
    }
    let mode = le16(&inode, 0);
    if mode & 0xF000 != 0x8000 {
        return Err(wrong(format!("mode {mode:#o}"), "a regular file"));
    }
    let size = u64::from(le32(&inode, 0x4)) | u64::from(le32(&inode, 0x6C)) << 32;
    let extents = le32(&inode, 0x20) & FLAG_EXTENTS != 0;
    // Without a checksum, a copy that says something else is the only sign of damage.
    let copy = sb.journal_backup.filter(|_| seed.is_none());
    if copy.is_some_and(|copy| copy[..60] != inode[0x28..0x64] || copy_size(&copy) != size) {
        notes.push(Note::JournalBackupDiffers);
    }
    map(view, sb, &inode[0x28..0x64], size, extents, seed, at)
}

/// The checksum of an inode skips the places where it is stored: two bytes, and two more
/// in inodes that are long enough.
fn inode_checksum_is_right(seed: u32, inode: &[u8]) -> bool {
    let wide = inode.len() > 128 && le16(inode, 0x80) >= 4;
    let mut copy = inode.to_vec();
    copy[0x7C..0x7E].fill(0);
    let mut stored = u32::from(le16(inode, 0x7C));
    if wide {
        copy[0x82..0x84].fill(0);
        stored |= u32::from(le16(inode, 0x82)) << 16;
    }
    let computed = crc32c_raw(seed, &copy);
    stored == if wide { computed } else { computed & 0xFFFF }
}

/// The map in the superblock: the pointers of the inode and its size.
fn backup_map(view: &View<'_>, sb: &ExtSuper, copy: &[u8; 68]) -> Result<Map, SuperblockError> {
    let size = copy_size(copy);
    // The flag of the inode is not there; a root of extents is told by its magic number.
    let extents = le16(copy, 0) == EXTENT_MAGIC;
    // The generation of the inode is not there either, so checksums of nodes are not
    // looked at.
    map(view, sb, &copy[..60], size, extents, None, sb.at + 0x10C)
}

/// The size of the journal's inode in its copy \[bytes\].
fn copy_size(copy: &[u8; 68]) -> u64 {
    u64::from(le32(copy, 64)) | u64::from(le32(copy, 60)) << 32
}

/// Follows the pointers `root` of a file of `size` bytes, which were read at `at`.
fn map(
    view: &View<'_>,
    sb: &ExtSuper,
    root: &[u8],
    size: u64,
    extents: bool,
    seed: Option<u32>,
    at: u64,
) -> Result<Map, SuperblockError> {
    let blocks = size / u64::from(sb.block_bytes);
    if blocks > BLOCKS_MAX {
        return Err(SuperblockError::TooLarge {
            what: "blocks of the journal",
            offset: view.offset(at),
            found: blocks,
            most: BLOCKS_MAX,
        });
    }
    let mut walk = Walk { view, sb, seed, blocks, next: 0, nodes: 0, ranges: vec![] };
    if blocks == 0 {
        return Err(walk.wrong(at, "no block", "a journal"));
    }
    if extents {
        walk.extents(root, None, at)?;
    } else {
        for i in 0..DIRECT + 3 {
            let level = i.saturating_sub(DIRECT - 1) as u32;
            walk.pointer(le32(root, 4 * i), level, at)?;
        }
    }
    if walk.next < blocks {
        let next = walk.next;
        return Err(walk.wrong(at, format!("{next} blocks of {blocks}"), "all blocks of it"));
    }
    let mut sorted = walk.ranges.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].end() > pair[1].start) {
        let found = format!("byte {} twice", pair[1].start);
        return Err(walk.wrong(at, found, "each block once"));
    }
    Ok(Map { ranges: walk.ranges, blocks })
}

/// A walk over the map of a journal, in order of its blocks.
struct Walk<'a> {
    view: &'a View<'a>,
    sb: &'a ExtSuper,
    /// Start of the checksums of nodes.
    seed: Option<u32>,
    /// Blocks of the journal.
    blocks: u64,
    /// The block of the journal that comes next.
    next: u64,
    nodes: u32,
    ranges: Vec<ByteRange>,
}

impl Walk<'_> {
    fn wrong(&self, at: u64, found: impl ToString, expected: &'static str) -> SuperblockError {
        SuperblockError::damaged("map of the journal", self.view.offset(at), found, expected)
    }

    /// The next `n` blocks of the journal lie at `start`.
    fn push(&mut self, start: u64, n: u64, at: u64) -> Result<(), SuperblockError> {
        let end = start.checked_add(n);
        if start <= self.sb.first_data_block || end.is_none_or(|end| end > self.sb.blocks) {
            let found = format!("{n} blocks at block {start}");
            return Err(self.wrong(at, found, "blocks inside the file system"));
        }
        // Allocation in clusters may map a little more than the file is long.
        let n = n.min(self.blocks - self.next);
        self.next += n;
        let block_bytes = u64::from(self.sb.block_bytes);
        push_range(
            &mut self.ranges,
            ByteRange { start: start * block_bytes, bytes: n * block_bytes },
        );
        if self.ranges.len() > PIECES_MAX {
            return Err(SuperblockError::TooLarge {
                what: "pieces of the journal",
                offset: self.view.offset(at),
                found: self.ranges.len() as u64,
                most: PIECES_MAX as u64,
            });
        }
        Ok(())
    }

    /// Reads a block of the map.
    fn node(&mut self, block: u64, at: u64) -> Result<Vec<u8>, SuperblockError> {
        if block <= self.sb.first_data_block || block >= self.sb.blocks {
            let found = format!("a node at block {block}");
            return Err(self.wrong(at, found, "blocks inside the file system"));
        }
        let block_bytes = self.sb.block_bytes;
        self.view.read(block * u64::from(block_bytes), block_bytes as usize, "map of the journal")
    }

    /// A node of an extent tree that was read at `at`, with its parent's depth.
    fn extents(
        &mut self,
        node: &[u8],
        parent: Option<u16>,
        at: u64,
    ) -> Result<(), SuperblockError> {
        let (n, max, depth) =
            (usize::from(le16(node, 2)), usize::from(le16(node, 4)), le16(node, 6));
        let depth_ok = parent.map_or(depth <= DEPTH_MAX, |p| depth + 1 == p);
        let fits = ENTRY_BYTES * (1 + max) <= node.len();
        if le16(node, 0) != EXTENT_MAGIC || !depth_ok || !fits || n > max || n == 0 {
            let found = format!("magic {:#x}, depth {depth}, {n} of {max}", le16(node, 0));
            return Err(self.wrong(at, found, "a node of extents one level below its parent"));
        }
        let tail = ENTRY_BYTES * (1 + max);
        if let (Some(seed), Some(_)) = (self.seed, parent)
            && (tail + 4 > node.len() || crc32c_raw(seed, &node[..tail]) != le32(node, tail))
        {
            return Err(self.wrong(at, "another checksum of a node", "that of its contents"));
        }
        for entry in node[ENTRY_BYTES..].chunks_exact(ENTRY_BYTES).take(n) {
            if self.next == self.blocks {
                break;
            }
            if u64::from(le32(entry, 0)) != self.next {
                let found = format!("block {} after block {}", le32(entry, 0), self.next);
                return Err(self.wrong(at, found, "no holes and no steps back"));
            }
            if depth == 0 {
                let len = le16(entry, 4);
                if !(1..=EXTENT_BLOCKS_MAX).contains(&len) {
                    let found = format!("an extent of length {len}");
                    return Err(self.wrong(at, found, "written extents, 1 to 32768"));
                }
                let start = u64::from(le32(entry, 8)) | u64::from(le16(entry, 6)) << 32;
                self.push(start, len.into(), at)?;
            } else {
                self.nodes += 1;
                if self.nodes > NODES_MAX {
                    return Err(SuperblockError::TooLarge {
                        what: "nodes of the journal's map",
                        offset: self.view.offset(at),
                        found: self.nodes.into(),
                        most: NODES_MAX.into(),
                    });
                }
                let block = u64::from(le32(entry, 4)) | u64::from(le16(entry, 8)) << 32;
                let child = self.node(block, at)?;
                let child_at = block * u64::from(self.sb.block_bytes);
                self.extents(&child, Some(depth), child_at)?;
            }
        }
        Ok(())
    }

    /// A pointer of a block map: to a block of the journal, or `level` tables above.
    fn pointer(&mut self, block: u32, level: u32, at: u64) -> Result<(), SuperblockError> {
        if self.next == self.blocks {
            return Ok(());
        }
        if level == 0 {
            return self.push(block.into(), 1, at);
        }
        let table = self.node(block.into(), at)?;
        let table_at = u64::from(block) * u64::from(self.sb.block_bytes);
        for entry in table.chunks_exact(4) {
            self.pointer(le32(entry, 0), level - 1, table_at)?;
        }
        Ok(())
    }
}

/// What a journal's own superblock says \[blocks\].
struct JournalSuper {
    /// Blocks of the journal, its superblock included.
    blocks: u64,
    /// Blocks of the fast-commit area.
    fast_commit: u64,
}

/// Reads the journal superblock at `at`; it must be that of a journal of at most `most`
/// blocks.
fn journal_super(
    view: &View<'_>,
    sb: &ExtSuper,
    at: u64,
    most: u64,
    notes: &mut Vec<Note>,
) -> Result<JournalSuper, SuperblockError> {
    let b = view.read(at, 1024, "superblock of the journal")?;
    let wrong = |field: u64, found: u32, expected| {
        let offset = view.offset(at + field);
        SuperblockError::damaged("superblock of the journal", offset, found, expected)
    };
    let version = be32(&b, 4);
    if be32(&b, 0) != JOURNAL_MAGIC || ![SUPER_V1, SUPER_V2].contains(&version) {
        return Err(wrong(
            0,
            be32(&b, 0),
            "the magic number 0xC03B3998 (3225106840) and type 3 or 4",
        ));
    }
    if be32(&b, 0xC) != sb.block_bytes {
        return Err(wrong(0xC, be32(&b, 0xC), "the block size of the file system"));
    }
    let (blocks, first) = (u64::from(be32(&b, 0x10)), be32(&b, 0x14));
    if blocks > most || u64::from(first) >= blocks {
        return Err(wrong(0x10, be32(&b, 0x10), "no more blocks than its file has"));
    }
    let incompat = if version == SUPER_V2 { be32(&b, 0x28) } else { 0 };
    if incompat & JOURNAL_CSUM != 0 {
        let mut copy = b.clone();
        copy[0xFC..0x100].fill(0);
        if crc32c_raw(!0, &copy) != be32(&b, 0xFC) {
            return Err(wrong(0xFC, be32(&b, 0xFC), "the checksum of its contents"));
        }
    }
    if incompat & !JOURNAL_KNOWN != 0 {
        notes.push(Note::JournalFeatures { bits: incompat & !JOURNAL_KNOWN });
    }
    let asked = sb.has_fast_commit() || incompat & JOURNAL_FAST_COMMIT != 0;
    let recorded = be32(&b, 0x54);
    let area = if recorded == 0 { FAST_COMMIT_DEFAULT } else { recorded };
    let fits = blocks.checked_sub(area.into()).is_some_and(|rest| rest >= RING_BLOCKS_MIN);
    let has_area = version == SUPER_V2 && asked && fits;
    if has_area && recorded == 0 {
        notes.push(Note::FastCommitDefault { blocks: area });
    }
    Ok(JournalSuper { blocks, fast_commit: if has_area { area.into() } else { 0 } })
}

/// The ring that a map describes. One that lies beyond the end of the image is believed,
/// with a note.
fn ring(
    view: &View<'_>,
    sb: &ExtSuper,
    map: &Map,
    notes: &mut Vec<Note>,
) -> Result<Ring, SuperblockError> {
    let first = map.ranges.first().expect("a map has a block");
    let found = match journal_super(view, sb, first.start, map.blocks, notes) {
        Err(e @ SuperblockError::Truncated { .. }) => {
            notes.push(Note::JournalUnseen { why: e.to_string() });
            JournalSuper { blocks: map.blocks, fast_commit: 0 }
        }
        other => other?,
    };
    let block_bytes = u64::from(sb.block_bytes);
    let part = |from: u64, blocks: u64| {
        let ranges = part_of(&map.ranges, from * block_bytes, blocks * block_bytes);
        in_image(view, ranges)
    };
    let superblock = part(0, 1).first().copied();
    let fast_commit = part(found.blocks - found.fast_commit, found.fast_commit);
    Ok(Ring { ranges: part(0, found.blocks), superblock, fast_commit })
}

/// The device that is a journal. Block numbers of such a journal count from the start of
/// the device. Source: `jbd2_journal_bmap`, fs/jbd2/journal.c.
fn own_device(
    view: &View<'_>,
    sb: &ExtSuper,
    notes: &mut Vec<Note>,
) -> Result<Ring, SuperblockError> {
    let block_bytes = u64::from(sb.block_bytes);
    let start = sb.super_block() + 1;
    if start >= sb.blocks {
        return Err(SuperblockError::damaged(
            "superblock of ext4",
            view.offset(sb.at + 0x4),
            format!("{} blocks", sb.blocks),
            "room for a journal behind it",
        ));
    }
    let found = journal_super(view, sb, start * block_bytes, sb.blocks, notes)?;
    let part = |from: u64, blocks: u64| {
        in_image(view, vec![ByteRange { start: from * block_bytes, bytes: blocks * block_bytes }])
    };
    let fast_commit = match found.fast_commit {
        0 => vec![],
        n => part(found.blocks - n, n),
    };
    let superblock = part(start, 1).first().copied();
    Ok(Ring { ranges: part(start, sb.blocks - start), superblock, fast_commit })
}

/// `bytes` of the concatenation of `ranges`, from `skip` on.
fn part_of(ranges: &[ByteRange], mut skip: u64, mut bytes: u64) -> Vec<ByteRange> {
    let mut part = vec![];
    for range in ranges {
        let before = skip.min(range.bytes);
        let n = bytes.min(range.bytes - before);
        push_range(&mut part, ByteRange { start: range.start + before, bytes: n });
        (skip, bytes) = (skip - before, bytes - n);
    }
    part
}

/// The same ranges counted from the start of the image.
fn in_image(view: &View<'_>, ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let moved = ranges.into_iter().map(|r| ByteRange { start: view.offset(r.start), ..r });
    moved.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_pieces_is_pieces() {
        let range = |start, bytes| ByteRange { start, bytes };
        let pieces = [range(100, 10), range(50, 10), range(200, 10)];
        assert_eq!(part_of(&pieces, 0, 30), pieces);
        assert_eq!(part_of(&pieces, 5, 10), [range(105, 5), range(50, 5)]);
        assert_eq!(part_of(&pieces, 20, 10), [range(200, 10)]);
        assert_eq!(part_of(&pieces, 30, 0), []);
    }
}
