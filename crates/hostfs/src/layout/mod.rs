//! Where an ext4 file system keeps its own structures, as `mke2fs` lays them out on a
//! device of a given size.
//!
//! Addresses matter to a drive: bitmaps, group descriptors and inode tables are written
//! again and again at fixed places, and the journal is one long range in the middle. So
//! the layout is that of the real tool to the block, and a test compares the two.
//!
//! Modelled: 4 KiB blocks, 256-byte inodes and the features Debian's `mke2fs.conf` gives an
//! ext4 file system (`64bit`, `flex_bg` with 16 groups, `sparse_super`, `resize_inode`,
//! `metadata_csum`, and the rest, which move nothing). Inode ratio by size as the tool
//! chooses it: 4096 bytes below 512 MiB (type `small`, whose 1 KiB blocks we do not follow:
//! it is `mkfs.ext4 -b 4096`), 32768 from 4 TiB (`big`), 16384 between. Sources: e2fsprogs
//! 1.47, `misc/mke2fs.c`, `lib/ext2fs/initialize.c`, `alloc_tables.c`, `mkjournal.c`,
//! `res_gdt.c`, `fallocate.c`.
//!
//! Invariants: the used ranges are sorted, apart and inside the device; each bitmap and
//! table is in them. Cost: some microseconds for each group to build, O(1) to look up
//! (`is_metadata`: a binary search).

mod build;
mod ranges;

use std::ops::Range;

use thiserror::Error;

/// Size of a block \[bytes\]. Other sizes are not modelled.
pub const BLOCK_BYTES: u32 = 4096;
/// Blocks of a group, the last one may be shorter. Source: one bitmap block covers a group,
/// 8 bits for each of 4096 bytes.
pub const GROUP_BLOCKS: u32 = 8 * BLOCK_BYTES;
/// Groups of a flex group, which keep their bitmaps and tables together. Source:
/// `mke2fs.c`, `-G` unset.
pub const FLEX_GROUPS: u32 = 16;
/// Size of an inode \[bytes\]. Source: `mke2fs.conf`, `inode_size`.
pub const INODE_BYTES: u32 = 256;
/// Inodes in one block of an inode table.
pub const INODES_PER_BLOCK: u32 = BLOCK_BYTES / INODE_BYTES;
/// Size of a group descriptor \[bytes\]. Source: `64bit` feature, `s_desc_size`.
pub(crate) const DESCRIPTOR_BYTES: u32 = 64;
/// Group descriptors in one block.
pub(crate) const DESCRIPTORS_PER_BLOCK: u32 = BLOCK_BYTES / DESCRIPTOR_BYTES;
/// First inode that is not reserved; `mke2fs` gives it to `lost+found`. Source: `ext2_fs.h`,
/// `EXT2_GOOD_OLD_FIRST_INO`.
pub const FIRST_INODE: u32 = 11;

/// A block of the file system, and so of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FsBlock(pub u32);

impl FsBlock {
    /// The group it is in.
    #[inline]
    pub fn group(self) -> u32 {
        self.0 / GROUP_BLOCKS
    }

    /// Its place in its group.
    #[inline]
    pub(crate) fn offset(self) -> u32 {
        self.0 % GROUP_BLOCKS
    }

    /// The first block of a group.
    #[inline]
    pub fn first_of(group: u32) -> Self {
        Self(group * GROUP_BLOCKS)
    }
}

/// An inode number; the first is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u32);

impl Ino {
    /// The root directory. Source: `ext2_fs.h`, `EXT2_ROOT_INO`.
    pub const ROOT: Self = Self(2);
    /// The journal. Source: `ext2_fs.h`, `EXT2_JOURNAL_INO`.
    pub const JOURNAL: Self = Self(8);
}

/// What journal a file system gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalSize {
    /// By the size of the device, as `mke2fs` chooses.
    #[default]
    Default,
    /// This many MiB (`-J size=`).
    MiB(u32),
    /// None inside: no journal at all (`-O ^has_journal`), or one on another device, which
    /// takes no room here.
    None,
}

/// What to lay out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutOptions {
    /// Size of the device \[blocks of 4 KiB\].
    pub n_blocks: u64,
    /// The journal.
    pub journal: JournalSize,
    /// Part of the blocks only root may use \[%\] (`-m`). The default is 0: the model has
    /// no users, and `mke2fs` would take 5.
    pub reserved_percent: f64,
    /// Bytes of the device for each inode (`-i`); `None` is what `mke2fs` chooses for the
    /// size.
    pub inode_ratio: Option<u32>,
}

impl LayoutOptions {
    /// A device of `n_blocks` blocks with everything by default.
    pub fn new(n_blocks: u64) -> Self {
        Self { n_blocks, journal: JournalSize::Default, reserved_percent: 0.0, inode_ratio: None }
    }
}

/// A device that cannot take the file system.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum LayoutError {
    /// Block numbers are 32 bits here.
    #[error(
        "a device of {n_blocks} blocks is too large for the file-system model: it takes fewer \
         than 2^32 blocks (16 TiB); use a smaller device"
    )]
    TooLarge {
        /// Size of the device \[blocks\].
        n_blocks: u64,
    },
    /// No room for the structures and some files.
    #[error(
        "a device of {n_blocks} blocks is too small for an ext4 file system: its structures \
         need {needed} blocks; use a larger device or fewer inodes"
    )]
    TooSmall {
        /// Size of the device \[blocks\].
        n_blocks: u64,
        /// What is needed \[blocks\].
        needed: u64,
    },
    /// A journal of a size `mke2fs` refuses.
    #[error(
        "a journal of {mib} MiB does not fit: ext4 takes 4 MiB to 40000 MiB and at most half \
         of the free blocks, {most_mib} MiB here"
    )]
    Journal {
        /// Wanted size \[MiB\].
        mib: u32,
        /// Most that fits \[MiB\].
        most_mib: u64,
    },
    /// More inodes for a group than its bitmap has bits.
    #[error(
        "an inode for each {ratio} bytes is too many: ext4 takes ratios from 4096 bytes (one \
         inode for each block) to 64 MiB"
    )]
    InodeRatio {
        /// Bytes for each inode.
        ratio: u32,
    },
    /// A percentage outside 0 to 50.
    #[error("reserved blocks of {percent} % are refused: mke2fs takes 0 to 50")]
    Reserved {
        /// Wanted percentage.
        percent: f64,
    },
}

/// The places of everything `mke2fs` puts on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    n_blocks: u32,
    n_groups: u32,
    inodes_per_group: u32,
    inode_table_blocks: u32,
    descriptor_blocks: u32,
    reserved_descriptor_blocks: u32,
    reserved_blocks: u32,
    /// First block of each group's structure.
    block_bitmaps: Vec<u32>,
    inode_bitmaps: Vec<u32>,
    inode_tables: Vec<u32>,
    root_dir: FsBlock,
    lost_found: Range<u32>,
    journal: Vec<Range<u32>>,
    /// All blocks in use after `mke2fs`.
    used: Vec<Range<u32>>,
    n_free: u32,
}

impl Layout {
    /// Lays a file system out.
    pub fn new(options: &LayoutOptions) -> Result<Self, LayoutError> {
        build::build(options)
    }

    /// Size of the file system \[blocks\]. A last group too short to be of use is left out,
    /// so it may be less than the device.
    pub fn n_blocks(&self) -> u32 {
        self.n_blocks
    }

    /// How many groups there are.
    pub fn n_groups(&self) -> u32 {
        self.n_groups
    }

    /// How many inodes there are, reserved ones included.
    pub fn n_inodes(&self) -> u32 {
        self.n_groups * self.inodes_per_group
    }

    /// Inodes of each group.
    pub fn inodes_per_group(&self) -> u32 {
        self.inodes_per_group
    }

    /// Length of the inode table of one group \[blocks\].
    pub fn inode_table_blocks(&self) -> u32 {
        self.inode_table_blocks
    }

    /// Blocks only root may use.
    pub fn reserved_blocks(&self) -> u32 {
        self.reserved_blocks
    }

    /// Free blocks of the new file system.
    pub fn free_blocks(&self) -> u32 {
        self.n_free
    }

    /// The blocks of a group.
    pub fn group_range(&self, group: u32) -> Range<u32> {
        let first = group * GROUP_BLOCKS;
        first..first.saturating_add(GROUP_BLOCKS).min(self.n_blocks)
    }

    /// The group an inode is in.
    #[inline]
    pub fn group_of_inode(&self, ino: Ino) -> u32 {
        (ino.0 - 1) / self.inodes_per_group
    }

    /// The superblock that mounts and commits write. Its copies are written by tools only.
    pub fn superblock(&self) -> FsBlock {
        FsBlock(0)
    }

    /// The block with the descriptor of a group, which changes when anything of the group
    /// is allocated or freed.
    #[inline]
    pub fn group_descriptor_block(&self, group: u32) -> FsBlock {
        FsBlock(1 + group / DESCRIPTORS_PER_BLOCK)
    }

    /// Length of the group descriptor table \[blocks\].
    pub fn descriptor_blocks(&self) -> u32 {
        self.descriptor_blocks
    }

    /// Blocks kept free after each copy of the table so that it can grow (`resize_inode`).
    pub fn reserved_descriptor_blocks(&self) -> u32 {
        self.reserved_descriptor_blocks
    }

    /// The block bitmap of a group.
    #[inline]
    pub fn block_bitmap(&self, group: u32) -> FsBlock {
        FsBlock(self.block_bitmaps[group as usize])
    }

    /// The inode bitmap of a group.
    #[inline]
    pub fn inode_bitmap(&self, group: u32) -> FsBlock {
        FsBlock(self.inode_bitmaps[group as usize])
    }

    /// The first block of the inode table of a group.
    #[inline]
    pub fn inode_table(&self, group: u32) -> FsBlock {
        FsBlock(self.inode_tables[group as usize])
    }

    /// The block that holds an inode.
    #[inline]
    pub fn inode_table_block(&self, ino: Ino) -> FsBlock {
        let place = ino.0 - 1;
        let (group, idx) = (place / self.inodes_per_group, place % self.inodes_per_group);
        FsBlock(self.inode_tables[group as usize] + idx / INODES_PER_BLOCK)
    }

    /// The block of the root directory.
    pub fn root_dir(&self) -> FsBlock {
        self.root_dir
    }

    /// The blocks of `lost+found`.
    pub fn lost_found(&self) -> Range<u32> {
        self.lost_found.clone()
    }

    /// The journal, if it is on this device and in one piece, which it is unless it was made
    /// so large that copies of the superblock are in its way.
    pub fn journal(&self) -> Option<Range<u32>> {
        match self.journal.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }

    /// The pieces of the journal in order; empty if there is none on this device.
    pub fn journal_ranges(&self) -> &[Range<u32>] {
        &self.journal
    }

    /// Length of the journal \[blocks\].
    pub fn journal_blocks(&self) -> u32 {
        self.journal.iter().map(|range| range.end - range.start).sum()
    }

    /// All blocks in use after `mke2fs`, sorted and apart: structures, copies, journal,
    /// root directory, `lost+found`.
    pub fn used(&self) -> &[Range<u32>] {
        &self.used
    }

    /// Whether a block is in use from the start, so that no file ever gets it.
    pub fn is_metadata(&self, block: FsBlock) -> bool {
        let after = self.used.partition_point(|range| range.end <= block.0);
        self.used.get(after).is_some_and(|range| range.start <= block.0)
    }

    /// The first block a file could get.
    pub fn first_free(&self) -> FsBlock {
        FsBlock(self.used.first().map_or(0, |range| range.end))
    }

    /// Whether a group begins with a copy of the superblock and of the descriptors.
    pub fn has_superblock(group: u32) -> bool {
        build::has_superblock(group)
    }
}
