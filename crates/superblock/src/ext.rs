//! The superblock of ext2, ext3 and ext4, and its backups.
//!
//! A superblock is used if its checksum is right, or, where the file system has none, if
//! its numbers can be true. The journal it leads to is the last check: it begins with a
//! superblock of its own. Where the primary fails any of these, backups are tried.
//!
//! Offsets and bits: Documentation/filesystems/ext4 (super.rst, group_descr.rst) and
//! fs/ext4/ext4.h of Linux. The rule for backups: `sparse_super`, groups 1 and powers of
//! 3, 5 and 7.
//!
//! Cost: one KiB; with a damaged primary at most some 130 reads of a KiB.

use crate::error::SuperblockError;
use crate::ext_journal;
use crate::read::{View, crc32c_raw, le16, le32, text, uuid};
use crate::{FileSystem, Kind, Note, Uuid};

/// Where the primary superblock lies \[bytes\].
pub(crate) const PRIMARY_AT: u64 = 1024;
/// Length of a superblock \[bytes\].
pub(crate) const SUPER_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;
/// The checksum, last field of the superblock.
const CHECKSUM_AT: usize = 0x3FC;

const COMPAT_HAS_JOURNAL: u32 = 0x4;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const COMPAT_FAST_COMMIT: u32 = 0x400;
const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_EXTENTS: u32 = 0x40;
const INCOMPAT_64BIT: u32 = 0x80;
const INCOMPAT_CSUM_SEED: u32 = 0x2000;
const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;
const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
/// What ext3 can have: filetype, recovery, journal device and meta block groups among
/// the incompatible features, sparse superblocks and large files among the others. Source:
/// `EXT3_FEATURE_INCOMPAT_SUPP` and `EXT3_FEATURE_RO_COMPAT_SUPP`, fs/ext4/ext4.h.
const EXT3_INCOMPAT: u32 = 0x2 | 0x4 | 0x8 | 0x10;
const EXT3_RO_COMPAT: u32 = 0x1 | 0x2 | 0x4;

/// Groups that hold a backup under `sparse_super` and are tried.
const BACKUP_GROUPS: [u64; 9] = [1, 3, 5, 7, 9, 25, 27, 49, 81];
/// Blocks per cluster that mke2fs gives `bigalloc` (mke2fs(8), -C), and none.
const CLUSTER_RATIOS: [u64; 2] = [1, 16];

/// What a superblock says, as far as it matters here. Blocks are numbered from the start
/// of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtSuper {
    /// Where it was read \[bytes from the start of the file system\].
    pub(crate) at: u64,
    pub(crate) block_bytes: u32,
    pub(crate) blocks: u64,
    pub(crate) first_data_block: u64,
    pub(crate) blocks_per_group: u64,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_bytes: usize,
    pub(crate) desc_bytes: usize,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
    first_meta_bg: u64,
    pub(crate) reserved_gdt_blocks: u64,
    backup_groups: [u64; 2],
    group: u64,
    uuid: Uuid,
    label: String,
    pub(crate) journal_inode: u32,
    pub(crate) journal_uuid: Uuid,
    /// `i_block`, then the size (high, low) of the journal's inode (`s_jnl_blocks`).
    pub(crate) journal_backup: Option<[u8; 68]>,
    /// Start of the checksums of inodes and extent blocks, if there are any.
    pub(crate) checksum_seed: Option<u32>,
}

impl ExtSuper {
    pub(crate) fn is_journal_device(&self) -> bool {
        self.incompat & INCOMPAT_JOURNAL_DEV != 0
    }

    pub(crate) fn has_journal(&self) -> bool {
        self.compat & COMPAT_HAS_JOURNAL != 0
    }

    pub(crate) fn has_fast_commit(&self) -> bool {
        self.compat & COMPAT_FAST_COMMIT != 0
    }

    pub(crate) fn n_groups(&self) -> u64 {
        (self.blocks - self.first_data_block).div_ceil(self.blocks_per_group)
    }

    /// First block of a group.
    pub(crate) fn group_start(&self, group: u64) -> u64 {
        self.first_data_block.saturating_add(group.saturating_mul(self.blocks_per_group))
    }

    /// The block that holds the primary superblock.
    pub(crate) fn super_block(&self) -> u64 {
        PRIMARY_AT / u64::from(self.block_bytes)
    }

    /// Whether a group holds a copy of the superblock.
    pub(crate) fn has_super(&self, group: u64) -> bool {
        let power_of = |base: u64| {
            let mut n = base;
            while n < group {
                n *= base;
            }
            n == group
        };
        match () {
            () if group == 0 => true,
            () if self.compat & COMPAT_SPARSE_SUPER2 != 0 => self.backup_groups.contains(&group),
            () if self.ro_compat & RO_COMPAT_SPARSE_SUPER == 0 => true,
            () => group == 1 || power_of(3) || power_of(5) || power_of(7),
        }
    }

    pub(crate) fn descs_per_block(&self) -> u64 {
        u64::from(self.block_bytes) / self.desc_bytes as u64
    }

    /// Whether a block of descriptors lies in its own meta group, not behind the
    /// superblock.
    pub(crate) fn in_meta_group(&self, desc_block: u64) -> bool {
        self.incompat & INCOMPAT_META_BG != 0 && desc_block >= self.first_meta_bg
    }

    /// Blocks of the descriptor table behind the superblock.
    pub(crate) fn n_leading_desc_blocks(&self) -> u64 {
        let all = self.n_groups().div_ceil(self.descs_per_block());
        if self.incompat & INCOMPAT_META_BG != 0 { all.min(self.first_meta_bg) } else { all }
    }

    /// The block that holds the `nth` block of descriptors.
    pub(crate) fn desc_block(&self, nth: u64) -> u64 {
        if !self.in_meta_group(nth) {
            return self.super_block() + 1 + nth;
        }
        let group = nth.saturating_mul(self.descs_per_block());
        let behind_super = if group == 0 && self.block_bytes == 1024 {
            self.super_block() + 1 - self.first_data_block
        } else {
            u64::from(self.has_super(group))
        };
        self.group_start(group).saturating_add(behind_super)
    }

    fn kind(&self) -> Kind {
        let beyond_ext3 =
            self.incompat & !EXT3_INCOMPAT != 0 || self.ro_compat & !EXT3_RO_COMPAT != 0;
        match () {
            () if self.is_journal_device() => Kind::ExtJournal,
            () if beyond_ext3 => Kind::Ext4,
            () if self.has_journal() => Kind::Ext3,
            () => Kind::Ext2,
        }
    }

    /// What never differs between the primary and a backup of a healthy file system.
    fn essence(&self) -> impl PartialEq + use<> {
        let journal = (self.has_journal(), self.journal_inode, self.journal_uuid);
        let layout = (self.block_bytes, self.blocks_per_group, self.inodes_per_group);
        let sizes = (self.inode_bytes, self.desc_bytes, self.checksum_seed.is_some());
        let extents = self.incompat & (INCOMPAT_EXTENTS | INCOMPAT_JOURNAL_DEV);
        (journal, layout, sizes, extents, self.has_fast_commit(), self.blocks, self.uuid)
    }
}

/// Whether the magic number of ext2 to ext4 is where it belongs.
pub(crate) fn has_magic(view: &View<'_>) -> bool {
    view.read(PRIMARY_AT + 0x38, 2, "magic number").is_ok_and(|b| le16(&b, 0) == MAGIC)
}

/// Reads and checks the superblock at `at`.
pub(crate) fn read_super(view: &View<'_>, at: u64) -> Result<ExtSuper, SuperblockError> {
    let b = view.read(at, SUPER_BYTES, "superblock of ext4")?;
    let wrong = |field: usize, found: u64, expected| {
        SuperblockError::damaged(
            "superblock of ext4",
            view.offset(at + field as u64),
            found,
            expected,
        )
    };
    if le16(&b, 0x38) != MAGIC {
        return Err(wrong(0x38, u64::from(le16(&b, 0x38)), "the magic number 0xEF53 (61267)"));
    }
    let ro_compat = le32(&b, 0x64);
    let has_checksum = ro_compat & RO_COMPAT_METADATA_CSUM != 0;
    if has_checksum {
        if b[0x175] != 1 {
            return Err(wrong(0x175, b[0x175].into(), "checksum type 1, CRC-32C"));
        }
        let computed = crc32c_raw(!0, &b[..CHECKSUM_AT]);
        if computed != le32(&b, CHECKSUM_AT) {
            let found = u64::from(le32(&b, CHECKSUM_AT));
            return Err(wrong(CHECKSUM_AT, found, "the checksum of its contents"));
        }
    }
    let sb = decode(&b, at, has_checksum);
    check(&sb, &b, wrong)?;
    Ok(sb)
}

/// Fields as they are; nothing is checked.
fn decode(b: &[u8], at: u64, has_checksum: bool) -> ExtSuper {
    let incompat = le32(b, 0x60);
    let wide = incompat & INCOMPAT_64BIT != 0;
    let blocks_high = if wide { le32(b, 0x150) } else { 0 };
    // Revision 0 had no fields from here on, and fixed values.
    let dynamic = le32(b, 0x4C) > 0;
    let seed = match incompat & INCOMPAT_CSUM_SEED {
        0 => crc32c_raw(!0, &b[0x68..0x78]),
        _ => le32(b, 0x270),
    };
    ExtSuper {
        at,
        block_bytes: 1024_u32.checked_shl(le32(b, 0x18)).unwrap_or(0),
        blocks: u64::from(le32(b, 0x4)) | u64::from(blocks_high) << 32,
        first_data_block: le32(b, 0x14).into(),
        blocks_per_group: le32(b, 0x20).into(),
        inodes_per_group: le32(b, 0x28),
        inode_bytes: if dynamic { le16(b, 0x58).into() } else { 128 },
        desc_bytes: if wide { le16(b, 0xFE).into() } else { 32 },
        compat: le32(b, 0x5C),
        incompat,
        ro_compat: le32(b, 0x64),
        first_meta_bg: le32(b, 0x104).into(),
        reserved_gdt_blocks: le16(b, 0xCE).into(),
        backup_groups: [le32(b, 0x24C).into(), le32(b, 0x250).into()],
        group: le16(b, 0x5A).into(),
        uuid: uuid(b, 0x68),
        label: text(&b[0x78..0x88]),
        journal_inode: le32(b, 0xE0),
        journal_uuid: uuid(b, 0xD0),
        journal_backup: (b[0xFD] == 1).then(|| std::array::from_fn(|i| b[0x10C + i])),
        checksum_seed: has_checksum.then_some(seed),
    }
}

/// Whether the numbers can be true. The bounds are those of fs/ext4/super.c.
fn check(
    sb: &ExtSuper,
    b: &[u8],
    wrong: impl Fn(usize, u64, &'static str) -> SuperblockError,
) -> Result<(), SuperblockError> {
    let block_bytes = u64::from(sb.block_bytes);
    if le32(b, 0x18) > 6 {
        return Err(wrong(0x18, le32(b, 0x18).into(), "block sizes of 1 KiB to 64 KiB (0 to 6)"));
    }
    let first_max = u64::from(sb.block_bytes == 1024);
    if sb.first_data_block > first_max {
        return Err(wrong(0x14, sb.first_data_block, "first block 0, or 1 with blocks of 1 KiB"));
    }
    // A file holds at most 2^63 bytes, and no image more.
    let bytes = sb.blocks.checked_mul(block_bytes).filter(|&n| n < 1 << 63);
    if sb.blocks <= sb.first_data_block || bytes.is_none() {
        return Err(wrong(0x4, sb.blocks, "a number of blocks below 2^63 bytes"));
    }
    if sb.is_journal_device() {
        return Ok(());
    }
    let clusters = le32(b, 0x1C);
    let ratio = clusters.checked_sub(le32(b, 0x18)).filter(|&n| n < 32).map_or(1, |n| 1_u64 << n);
    if !(1..=block_bytes * 8 * ratio).contains(&sb.blocks_per_group) {
        return Err(wrong(0x20, sb.blocks_per_group, "a group that one block of bitmap covers"));
    }
    if !(1..=block_bytes * 8).contains(&u64::from(sb.inodes_per_group)) {
        return Err(wrong(
            0x28,
            sb.inodes_per_group.into(),
            "inodes that one block of bitmap covers",
        ));
    }
    let inode_ok = sb.inode_bytes.is_power_of_two() && sb.inode_bytes >= 128;
    if !inode_ok || sb.inode_bytes as u64 > block_bytes {
        return Err(wrong(
            0x58,
            sb.inode_bytes as u64,
            "a power of two from 128 to the block size",
        ));
    }
    let desc_ok = sb.desc_bytes.is_power_of_two() && (32..=1024).contains(&sb.desc_bytes);
    if !desc_ok {
        return Err(wrong(0xFE, sb.desc_bytes as u64, "a power of two from 32 to 1024"));
    }
    let inodes = u64::from(le32(b, 0x0));
    if inodes == 0 || inodes > sb.n_groups().saturating_mul(sb.inodes_per_group.into()) {
        return Err(wrong(0x0, inodes, "no more inodes than the groups hold"));
    }
    Ok(())
}

/// The file system whose primary superblock is good.
pub(crate) fn by_primary(view: &View<'_>) -> Result<FileSystem, SuperblockError> {
    let sb = read_super(view, PRIMARY_AT)?;
    let mut fs = file_system(view, &sb)?;
    if sb.checksum_seed.is_none() && !sb.is_journal_device() {
        fs.notes.extend(contradiction(view, &sb));
    }
    Ok(fs)
}

/// The file system of the first backup superblock that is good. `why`: what is wrong with
/// the primary one.
pub(crate) fn by_backup(view: &View<'_>, why: &SuperblockError) -> Option<FileSystem> {
    candidates(view).into_iter().find_map(|(group, at)| {
        let sb = backup(view, group, at)?;
        let mut fs = file_system(view, &sb).ok()?;
        fs.notes
            .insert(0, Note::BackupSuperblock { offset: view.offset(at), why: why.to_string() });
        Some(fs)
    })
}

/// The superblock in use: the primary one, or a backup.
pub(crate) fn any_super(view: &View<'_>) -> Result<ExtSuper, SuperblockError> {
    let primary = read_super(view, PRIMARY_AT);
    primary.or_else(|e| {
        let mut all = candidates(view).into_iter();
        all.find_map(|(group, at)| backup(view, group, at)).ok_or(e)
    })
}

/// A superblock that is good and belongs where it lies.
fn backup(view: &View<'_>, group: u64, at: u64) -> Option<ExtSuper> {
    let sb = read_super(view, at).ok()?;
    let belongs = sb.group == group
        && !sb.is_journal_device()
        && sb.group_start(group).checked_mul(sb.block_bytes.into()) == Some(at);
    belongs.then_some(sb)
}

/// Where backups may lie: where the primary one says, if it can be read at all, and where
/// mke2fs puts them. Group and place \[bytes\].
fn candidates(view: &View<'_>) -> Vec<(u64, u64)> {
    let mut all = vec![];
    let mut add = |first: u64, per_group: u64, block_bytes: u64| {
        for group in BACKUP_GROUPS {
            let block = group.checked_mul(per_group).and_then(|n| n.checked_add(first));
            let at = block.and_then(|n| n.checked_mul(block_bytes)).filter(|&at| at < view.len);
            all.extend(at.filter(|&at| at > PRIMARY_AT).map(|at| (group, at)));
        }
    };
    if let Ok(b) = view.read(PRIMARY_AT, SUPER_BYTES, "superblock of ext4") {
        let sb = decode(&b, PRIMARY_AT, false);
        add(sb.first_data_block, sb.blocks_per_group, sb.block_bytes.into());
    }
    for shift in 0..=6 {
        let block_bytes = 1024_u64 << shift;
        for ratio in CLUSTER_RATIOS {
            let first = u64::from(block_bytes == 1024 && ratio == 1);
            add(first, block_bytes * 8 * ratio, block_bytes);
        }
    }
    all
}

/// Without checksums, a backup that says something else is the only sign of damage.
fn contradiction(view: &View<'_>, sb: &ExtSuper) -> Option<Note> {
    let group = (1..sb.n_groups().min(10)).find(|&group| sb.has_super(group))?;
    let at = sb.group_start(group).checked_mul(sb.block_bytes.into())?;
    let offset = view.offset(at);
    match backup(view, group, at) {
        Some(other) if other.essence() == sb.essence() => None,
        _ if at.saturating_add(SUPER_BYTES as u64) > view.len => None,
        _ => Some(Note::BackupDiffers { offset }),
    }
}

fn file_system(view: &View<'_>, sb: &ExtSuper) -> Result<FileSystem, SuperblockError> {
    let (journal, mut notes) = ext_journal::locate(view, sb)?;
    let size_bytes = sb.blocks * u64::from(sb.block_bytes);
    if size_bytes > view.len {
        notes.push(Note::Short { size_bytes, present_bytes: view.len });
    }
    Ok(FileSystem {
        kind: sb.kind(),
        offset: view.base,
        block_bytes: sb.block_bytes,
        size_bytes,
        label: sb.label.clone(),
        uuid: sb.uuid,
        journal,
        notes,
    })
}
