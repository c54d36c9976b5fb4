//! The superblock of XFS, its copies in the other allocation groups, and the log.
//!
//! A block address is (group << agblklog) | block in the group; a log lies in one group.
//! Version 5 has a checksum. Version 4 has none, so its numbers are checked and a copy is
//! compared.
//!
//! If the primary superblock is bad, the length of the first group says where a copy
//! lies: as the bad superblock has it, as the header of the group has it (AGF), or as
//! mkfs.xfs cuts a device of the size of the image.
//!
//! Offsets and bits: `struct xfs_dsb` and `struct xfs_agf`, fs/xfs/libxfs/xfs_format.h of
//! Linux; "XFS Algorithms & Data Structures", 3rd edition, chapter "Superblocks". Cost: one
//! sector; with a damaged primary at most some 60.

use crate::error::SuperblockError;
use crate::read::{View, be16, be32, be64, le32, text, uuid};
use crate::{ByteRange, FileSystem, Journal, Kind, Note, Ring, Uuid};

const MAGIC: &[u8] = b"XFSB";
const AGF_MAGIC: &[u8] = b"XAGF";
/// Length of the superblock's fields \[bytes\]; the rest of its sector is zero.
const SUPER_BYTES: usize = 512;
/// Where its checksum is, little-endian unlike all other fields.
const CHECKSUM_AT: usize = 224;
/// Sectors are 512 bytes to 32 KiB. Source: `XFS_MIN_SECTORSIZE_LOG` and its maximum.
const SECTOR_LOG: std::ops::RangeInclusive<u32> = 9..=15;
/// Blocks are 512 bytes to 64 KiB. Source: `XFS_MIN_BLOCKSIZE_LOG` and its maximum.
const BLOCK_LOG: std::ops::RangeInclusive<u32> = 9..=16;
/// Default numbers of groups are powers of two up to 64 or so. Source:
/// `calc_default_ag_geometry`, libfrog or mkfs of xfsprogs.
const GROUPS_LOG_MAX: u32 = 7;

/// What a superblock says, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct XfsSuper {
    block_bytes: u32,
    blocks: u64,
    realtime_blocks: u64,
    uuid: Uuid,
    /// First block of the log; 0: on another device.
    log_start: u64,
    log_blocks: u32,
    group_blocks: u32,
    n_groups: u32,
    /// Bits of a block's number in its group.
    group_log: u8,
    label: String,
    has_checksum: bool,
}

/// Whether the image shows that it is, or was, XFS.
pub(crate) fn has_signs(view: &View<'_>) -> bool {
    has_magic(view) || !first_group_blocks(view).is_empty()
}

/// Whether the magic number is where it belongs.
pub(crate) fn has_magic(view: &View<'_>) -> bool {
    view.read(0, 4, "magic number").is_ok_and(|b| b == MAGIC)
}

/// Reads and checks the superblock at `at`.
fn read_super(view: &View<'_>, at: u64) -> Result<XfsSuper, SuperblockError> {
    let mut b = view.read(at, SUPER_BYTES, "superblock of XFS")?;
    let wrong = |field: u64, found: u64, expected| {
        SuperblockError::damaged("superblock of XFS", view.offset(at + field), found, expected)
    };
    if &b[..4] != MAGIC {
        return Err(wrong(0, be32(&b, 0).into(), "the magic number XFSB (1481003842)"));
    }
    let sector_bytes = u32::from(be16(&b, 102));
    if !sector_bytes.is_power_of_two() || !SECTOR_LOG.contains(&sector_bytes.ilog2()) {
        return Err(wrong(102, sector_bytes.into(), "sectors of 512 bytes to 32 KiB"));
    }
    let version = be16(&b, 100) & 0xF;
    if !(4..=5).contains(&version) {
        return Err(wrong(100, version.into(), "version 4 or 5"));
    }
    if version == 5 {
        b = view.read(at, sector_bytes as usize, "superblock of XFS")?;
        let stored = le32(&b, CHECKSUM_AT);
        let mut copy = b.clone();
        copy[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
        if crc32c::crc32c(&copy) != stored {
            let at = CHECKSUM_AT as u64;
            return Err(wrong(at, stored.into(), "the checksum of its contents"));
        }
    }
    let sb = XfsSuper {
        block_bytes: be32(&b, 4),
        blocks: be64(&b, 8),
        realtime_blocks: be64(&b, 16),
        uuid: uuid(&b, 32),
        log_start: be64(&b, 48),
        log_blocks: be32(&b, 96),
        group_blocks: be32(&b, 84),
        n_groups: be32(&b, 88),
        group_log: b[124],
        label: text(&b[108..120]),
        has_checksum: version == 5,
    };
    check(&sb, &b, wrong)?;
    Ok(sb)
}

/// Whether the numbers can be true. The bounds are those of `xfs_validate_sb_common`,
/// fs/xfs/libxfs/xfs_sb.c.
fn check(
    sb: &XfsSuper,
    b: &[u8],
    wrong: impl Fn(u64, u64, &'static str) -> SuperblockError,
) -> Result<(), SuperblockError> {
    let block_ok = sb.block_bytes.is_power_of_two() && BLOCK_LOG.contains(&sb.block_bytes.ilog2());
    if !block_ok || u32::from(b[120]) != sb.block_bytes.ilog2() {
        return Err(wrong(
            4,
            sb.block_bytes.into(),
            "blocks of 512 bytes to 64 KiB, and their log",
        ));
    }
    let (group, n) = (u64::from(sb.group_blocks), u64::from(sb.n_groups));
    if group < 64 || group.next_power_of_two().ilog2() != sb.group_log.into() {
        return Err(wrong(84, group, "64 blocks in a group at least, and their log"));
    }
    // Both factors are below 2^32.
    let bytes = sb.blocks.checked_mul(sb.block_bytes.into()).filter(|&n| n < 1 << 63);
    if n == 0 || sb.blocks <= group * (n - 1) || sb.blocks > group * n || bytes.is_none() {
        return Err(wrong(8, sb.blocks, "as many blocks as its groups have"));
    }
    if sb.log_blocks == 0 {
        return Err(wrong(96, 0, "a log"));
    }
    if sb.log_start == 0 {
        return Ok(());
    }
    let log_group = sb.log_start >> sb.group_log;
    let in_group = sb.log_start & ((1 << sb.group_log) - 1);
    let end = in_group + u64::from(sb.log_blocks);
    if log_group >= n || end > group || in_group == 0 || log_group * group + end > sb.blocks {
        return Err(wrong(48, sb.log_start, "a log inside one group"));
    }
    Ok(())
}

/// The file system whose primary superblock is good.
pub(crate) fn by_primary(view: &View<'_>) -> Result<FileSystem, SuperblockError> {
    let sb = read_super(view, 0)?;
    let mut fs = file_system(view, &sb);
    if !sb.has_checksum && sb.n_groups > 1 {
        let at = u64::from(sb.group_blocks) * u64::from(sb.block_bytes);
        let copy = read_super(view, at);
        let unseen = matches!(copy, Err(SuperblockError::Truncated { .. }));
        if !unseen && copy.ok().map(|c| essence(&c)) != Some(essence(&sb)) {
            fs.notes.push(Note::BackupDiffers { offset: view.offset(at) });
        }
    }
    Ok(fs)
}

/// What never differs between a superblock and its copies.
fn essence(sb: &XfsSuper) -> impl PartialEq + use<> {
    let sb = sb.clone();
    (sb.block_bytes, sb.blocks, sb.group_blocks, sb.log_start, sb.log_blocks, sb.has_checksum)
}

/// The file system of the first copy that is good. `why`: what is wrong with the primary.
pub(crate) fn by_backup(view: &View<'_>, why: &SuperblockError) -> Option<FileSystem> {
    candidates(view).into_iter().find_map(|at| {
        let sb = read_super(view, at).ok()?;
        let group_bytes = u64::from(sb.group_blocks) * u64::from(sb.block_bytes);
        let group = at / group_bytes;
        if at % group_bytes != 0 || !(1..u64::from(sb.n_groups)).contains(&group) {
            return None;
        }
        let mut fs = file_system(view, &sb);
        fs.notes
            .insert(0, Note::BackupSuperblock { offset: view.offset(at), why: why.to_string() });
        Some(fs)
    })
}

/// Lengths of the first group that its header names \[blocks\].
fn first_group_blocks(view: &View<'_>) -> Vec<u64> {
    let header = |log: u32| {
        let b = view.read(1 << log, 16, "header of a group").ok()?;
        (&b[..4] == AGF_MAGIC).then(|| be32(&b, 12).into())
    };
    SECTOR_LOG.filter_map(header).collect()
}

/// Where the copy of the second group may lie \[bytes\].
fn candidates(view: &View<'_>) -> Vec<u64> {
    let mut all = vec![];
    if let Ok(b) = view.read(0, SUPER_BYTES, "superblock of XFS") {
        all.push(u64::from(be32(&b, 4)).saturating_mul(be32(&b, 84).into()));
    }
    for blocks in first_group_blocks(view) {
        all.extend(BLOCK_LOG.map(|log| blocks << log));
    }
    for log in BLOCK_LOG {
        let blocks = view.len >> log;
        all.extend((1..=GROUPS_LOG_MAX).map(|n| blocks.div_ceil(1 << n) << log));
    }
    all.retain(|&at| at > 0 && at < view.len);
    all
}

fn file_system(view: &View<'_>, sb: &XfsSuper) -> FileSystem {
    let block_bytes = u64::from(sb.block_bytes);
    let log_bytes = u64::from(sb.log_blocks) * block_bytes;
    let journal = match sb.log_start {
        0 => Journal::External { uuid: None, bytes: Some(log_bytes) },
        start => {
            let in_group = start & ((1 << sb.group_log) - 1);
            let block = (start >> sb.group_log) * u64::from(sb.group_blocks) + in_group;
            let range = ByteRange { start: view.offset(block * block_bytes), bytes: log_bytes };
            Journal::Internal(Ring { ranges: vec![range], superblock: None, fast_commit: vec![] })
        }
    };
    let size_bytes = sb.blocks * block_bytes;
    let mut notes = vec![];
    if size_bytes > view.len {
        notes.push(Note::Short { size_bytes, present_bytes: view.len });
    }
    if sb.realtime_blocks > 0 {
        notes.push(Note::Realtime);
    }
    FileSystem {
        kind: Kind::Xfs,
        offset: view.base,
        block_bytes: sb.block_bytes,
        size_bytes,
        label: sb.label.clone(),
        uuid: sb.uuid,
        journal,
        notes,
    }
}
