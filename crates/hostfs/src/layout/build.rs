//! The steps of `mke2fs` that decide where things go, in its order: sizes, copies of the
//! superblock, bitmaps and tables, first directories, the resize inode's block, the journal.

use std::ops::Range;

use super::ranges::Ranges;
use super::{
    BLOCK_BYTES, DESCRIPTORS_PER_BLOCK, FIRST_INODE, FLEX_GROUPS, FsBlock, GROUP_BLOCKS,
    INODES_PER_BLOCK, JournalSize, Layout, LayoutError, LayoutOptions,
};

/// Smallest and largest journal \[blocks\]. Source: e2fsprogs `util.c`, `figure_journal_size`:
/// 1024 and 10240000 blocks.
const JOURNAL_BLOCKS: Range<u64> = 1024..10_240_001;
/// Blocks the last group must have besides its structures. Source: `initialize.c`.
const LAST_GROUP_SPARE: u32 = 50;
/// Size of `lost+found` \[blocks\]. Source: `mke2fs.c`, `create_lost_and_found`: 16 KiB.
const LOST_FOUND_BLOCKS: u32 = 4;
/// Longest extent that was written \[blocks\]. Source: `ext3_extents.h`, `EXT_INIT_MAX_LEN`.
const EXTENT_BLOCKS: u32 = 32768;
/// Extents an inode holds itself; more need a block. Source: 60 bytes of `i_block`, 12 for
/// the header and 12 for each extent.
const INODE_EXTENTS: usize = 4;
/// Block numbers in one block. Source: 4 bytes each; it bounds the reserved descriptors.
const ADDRESSES_PER_BLOCK: u64 = (BLOCK_BYTES / 4) as u64;

/// What follows from the size alone.
struct Sizes {
    n_blocks: u32,
    n_groups: u32,
    inodes_per_group: u32,
    inode_table_blocks: u32,
    descriptor_blocks: u32,
    reserved_descriptor_blocks: u32,
}

pub(super) fn build(options: &LayoutOptions) -> Result<Layout, LayoutError> {
    if !(0.0..=50.0).contains(&options.reserved_percent) {
        return Err(LayoutError::Reserved { percent: options.reserved_percent });
    }
    let sizes = sizes(options)?;
    let n_blocks = sizes.n_blocks;
    let small = |needed: u64| LayoutError::TooSmall { n_blocks: options.n_blocks, needed };
    let structures = u64::from(sizes.n_groups) * (2 + u64::from(sizes.inode_table_blocks));

    let mut used = Ranges::default();
    for group in 0..sizes.n_groups {
        let first = group * GROUP_BLOCKS;
        if has_superblock(group) {
            let len = 1 + sizes.descriptor_blocks + sizes.reserved_descriptor_blocks;
            if first + len > n_blocks {
                return Err(small(u64::from(first + len)));
            }
            used.insert(first..first + len);
        }
    }
    let [block_bitmaps, inode_bitmaps, inode_tables] = place_tables(&sizes, &mut used)
        .ok_or_else(|| small(structures + u64::from(LAST_GROUP_SPARE)))?;

    let mut take = |from: u32, len: u32| {
        let start = used.find(from..n_blocks, len, n_blocks)?;
        used.insert(start..start + len);
        Some(start)
    };
    let spare = || small(structures + u64::from(LAST_GROUP_SPARE));
    let root_dir = FsBlock(take(0, 1).ok_or_else(spare)?);
    let lost_found = take(0, LOST_FOUND_BLOCKS).ok_or_else(spare)?;
    if sizes.reserved_descriptor_blocks > 0 {
        // The double-indirect block of the resize inode goes after the first inode table.
        take(inode_tables[0] + sizes.inode_table_blocks, 1).ok_or_else(spare)?;
    }
    let journal = place_journal(options.journal, &sizes, &mut used)?;

    let used = used.into_vec();
    let n_used: u32 = used.iter().map(|range| range.end - range.start).sum();
    Ok(Layout {
        n_blocks,
        n_groups: sizes.n_groups,
        inodes_per_group: sizes.inodes_per_group,
        inode_table_blocks: sizes.inode_table_blocks,
        descriptor_blocks: sizes.descriptor_blocks,
        reserved_descriptor_blocks: sizes.reserved_descriptor_blocks,
        // Rounded down, as in `mke2fs.c`.
        reserved_blocks: (options.reserved_percent * f64::from(n_blocks) / 100.0) as u32,
        block_bitmaps,
        inode_bitmaps,
        inode_tables,
        root_dir,
        lost_found: lost_found..lost_found + LOST_FOUND_BLOCKS,
        journal,
        used,
        n_free: n_blocks - n_used,
    })
}

/// Whether a group has a copy of the superblock. Source: `sparse_super`, groups 0, 1 and
/// powers of 3, 5 and 7.
pub(super) fn has_superblock(group: u32) -> bool {
    let is_power = |base: u32| {
        let mut rest = group;
        while rest.is_multiple_of(base) {
            rest /= base;
        }
        rest == 1
    };
    group <= 1 || is_power(3) || is_power(5) || is_power(7)
}

/// The type of use `mke2fs` chooses by size, as bytes for each inode. Source: `mke2fs.c`,
/// `parse_fs_type`, and Debian's `mke2fs.conf`.
fn default_ratio(n_bytes: u64) -> u32 {
    const MIB: u64 = 1 << 20;
    match n_bytes {
        n if n < 512 * MIB => 4096,
        n if n < 4 * MIB * MIB => 16384,
        _ => 32768,
    }
}

/// Groups and inodes. Source: `initialize.c`, `ext2fs_initialize`. A last group that is too
/// short is dropped, which changes the rest, so it is worked out again.
fn sizes(options: &LayoutOptions) -> Result<Sizes, LayoutError> {
    let mut n_blocks = match u32::try_from(options.n_blocks) {
        Ok(n_blocks) if n_blocks >= 64 => n_blocks,
        Ok(_) => {
            return Err(LayoutError::TooSmall { n_blocks: options.n_blocks, needed: 64 });
        }
        Err(_) => return Err(LayoutError::TooLarge { n_blocks: options.n_blocks }),
    };
    let n_bytes = u64::from(n_blocks) * u64::from(BLOCK_BYTES);
    let ratio = options.inode_ratio.unwrap_or_else(|| default_ratio(n_bytes));
    if !(BLOCK_BYTES..=64 << 20).contains(&ratio) {
        return Err(LayoutError::InodeRatio { ratio });
    }
    let wanted = (n_bytes / u64::from(ratio)).max(u64::from(FIRST_INODE) + 1) as u32;
    loop {
        let n_groups = n_blocks.div_ceil(GROUP_BLOCKS);
        let inode_table_blocks = wanted.div_ceil(n_groups).div_ceil(INODES_PER_BLOCK).max(1);
        let descriptor_blocks = n_groups.div_ceil(DESCRIPTORS_PER_BLOCK);
        let sizes = Sizes {
            n_blocks,
            n_groups,
            inodes_per_group: inode_table_blocks * INODES_PER_BLOCK,
            inode_table_blocks,
            descriptor_blocks,
            reserved_descriptor_blocks: reserved_descriptors(n_blocks, descriptor_blocks),
        };
        let mut overhead = 2 + inode_table_blocks;
        if has_superblock(n_groups - 1) {
            overhead += 1 + descriptor_blocks + sizes.reserved_descriptor_blocks;
        }
        let rest = n_blocks % GROUP_BLOCKS;
        if rest == 0 || rest >= overhead + LAST_GROUP_SPARE {
            return Ok(sizes);
        }
        if n_groups == 1 {
            if rest >= overhead {
                return Ok(sizes);
            }
            let needed = u64::from(overhead + LAST_GROUP_SPARE);
            return Err(LayoutError::TooSmall { n_blocks: options.n_blocks, needed });
        }
        n_blocks -= rest;
    }
}

/// Room for the descriptor table to grow to 1024 times the size. Source: `res_gdt.c` and
/// `initialize.c`, `calc_reserved_gdt_blocks`.
fn reserved_descriptors(n_blocks: u32, descriptor_blocks: u32) -> u32 {
    let most = (u64::from(n_blocks) * 1024).min(u64::from(u32::MAX));
    let groups = most.div_ceil(u64::from(GROUP_BLOCKS));
    let blocks = groups.div_ceil(u64::from(DESCRIPTORS_PER_BLOCK));
    blocks.saturating_sub(u64::from(descriptor_blocks)).min(ADDRESSES_PER_BLOCK) as u32
}

/// Bitmaps and inode tables of all groups, packed at the start of each flex group. Source:
/// `alloc_tables.c`. `None` if there is no room.
fn place_tables(sizes: &Sizes, used: &mut Ranges) -> Option<[Vec<u32>; 3]> {
    let lens = [1, 1, sizes.inode_table_blocks];
    let mut places: [Vec<u32>; 3] = Default::default();
    for group in 0..sizes.n_groups {
        let last = (group | (FLEX_GROUPS - 1)).min(sizes.n_groups - 1);
        let end = (last + 1).saturating_mul(GROUP_BLOCKS).min(sizes.n_blocks);
        // In the first group of a flex group: where the structure before ends, with those
        // of all groups. A group that is alone in its flex group keeps room for 16, which
        // mke2fs 1.47 does and its source does not explain.
        let n_packed = if last == group { FLEX_GROUPS } else { last + 1 - group };
        let mut after = None;
        for (places, len) in places.iter_mut().zip(lens) {
            let next = match places.last() {
                Some(before) if !group.is_multiple_of(FLEX_GROUPS) => Some(before + len),
                _ => after,
            };
            let next = next.filter(|at| {
                u64::from(*at) + u64::from(len) <= u64::from(sizes.n_blocks)
                    && used.is_free(*at, len)
            });
            let first = (group - group % FLEX_GROUPS) * GROUP_BLOCKS;
            let all = ((last + 1 - group) * len).min(GROUP_BLOCKS / 4);
            let start = next
                .or_else(|| used.find(first..end, all, sizes.n_blocks))
                .or_else(|| used.find(first..end, len, sizes.n_blocks))
                .or_else(|| used.find(0..end, len, sizes.n_blocks))?;
            used.insert(start..start + len);
            places.push(start);
            after = Some(start + n_packed);
        }
    }
    Some(places)
}

/// Length of the journal by size of the file system \[blocks\]. Source: `mkjournal.c`,
/// `ext2fs_default_journal_size`.
fn default_journal(n_blocks: u32) -> u32 {
    const KI: u32 = 1024;
    match n_blocks {
        n if n < 2 * KI => 0,
        n if n < 32 * KI => KI,
        n if n < 256 * KI => 4 * KI,
        n if n < 512 * KI => 8 * KI,
        n if n < 4096 * KI => 16 * KI,
        n if n < 8192 * KI => 32 * KI,
        n if n < 16384 * KI => 64 * KI,
        n if n < 32768 * KI => 128 * KI,
        _ => 256 * KI,
    }
}

/// The journal, from the middle of the device on. Source: `mkjournal.c`,
/// `get_midpoint_journal_block`; `fallocate.c`.
fn place_journal(
    size: JournalSize,
    sizes: &Sizes,
    used: &mut Ranges,
) -> Result<Vec<Range<u32>>, LayoutError> {
    let n_free = u64::from(sizes.n_blocks - used.count_in(&(0..sizes.n_blocks)));
    let n_journal = match size {
        JournalSize::None => 0,
        JournalSize::Default => default_journal(sizes.n_blocks),
        JournalSize::MiB(mib) => {
            let blocks = u64::from(mib) << 8;
            if !JOURNAL_BLOCKS.contains(&blocks) || blocks > n_free / 2 {
                return Err(LayoutError::Journal { mib, most_mib: n_free / 2 / 256 });
            }
            blocks as u32
        }
    };
    if n_journal == 0 {
        return Ok(Vec::new());
    }
    let goal = middle_group(sizes, used) * GROUP_BLOCKS;
    let mut extents: Vec<Range<u32>> = Vec::new();
    let (mut from, mut left) = (goal, n_journal);
    while left > 0 {
        let Some(run) =
            used.free_run(from, sizes.n_blocks).or_else(|| used.free_run(0, sizes.n_blocks))
        else {
            let needed = u64::from(sizes.n_blocks) + u64::from(left);
            return Err(LayoutError::TooSmall { n_blocks: u64::from(sizes.n_blocks), needed });
        };
        let len = (run.end - run.start).min(left).min(EXTENT_BLOCKS);
        used.insert(run.start..run.start + len);
        extents.push(run.start..run.start + len);
        from = run.start + len;
        left -= len;
    }
    if extents.len() > INODE_EXTENTS {
        // The block of the extent tree: mke2fs 1.47 puts it right before the journal.
        let at = goal.checked_sub(1).filter(|at| used.is_free(*at, 1));
        if let Some(at) = at.or_else(|| used.find(0..sizes.n_blocks, 1, sizes.n_blocks)) {
            used.insert(at..at + 1);
        }
    }
    let mut pieces: Vec<Range<u32>> = Vec::new();
    for extent in extents {
        match pieces.last_mut() {
            Some(last) if last.end == extent.start => last.end = extent.end,
            _ => pieces.push(extent),
        }
    }
    Ok(pieces)
}

/// The group the journal starts in: the emptiest of those about the middle.
fn middle_group(sizes: &Sizes, used: &Ranges) -> u32 {
    let n_groups = sizes.n_groups;
    let free = |group: u32| {
        let first = group * GROUP_BLOCKS;
        let end = first.saturating_add(GROUP_BLOCKS).min(sizes.n_blocks);
        end - first - used.count_in(&(first..end))
    };
    let middle = sizes.n_blocks / 2 / GROUP_BLOCKS;
    let (group, start) = if middle > FLEX_GROUPS {
        let flex = middle - middle % FLEX_GROUPS;
        let start = (flex..n_groups).find(|group| free(*group) > 0).unwrap_or(0);
        (start, start)
    } else {
        (middle, middle.saturating_sub(1))
    };
    let end = if group + 1 < n_groups { group + 1 } else { group };
    let mut best = start;
    for group in start + 1..=end {
        if free(group) > free(best) {
            best = group;
        }
    }
    best
}
