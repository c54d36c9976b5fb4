//! Where ext2, ext3 and ext4 keep metadata at fixed places: superblocks, descriptors and
//! the blocks reserved for more of them, bitmaps, inode tables. Directories, extent nodes
//! and the like lie among the data and are not listed.
//!
//! Cost: 12 bytes of the image and at most four ranges per block group.

use crate::ByteRange;
use crate::error::SuperblockError;
use crate::ext::{ExtSuper, any_super};
use crate::read::{View, le32};

/// Most block groups that are listed, assumed: 512 TiB with groups of 128 MiB.
const GROUPS_MAX: u64 = 1 << 22;

/// The fixed metadata of the file system of `view`, in order, neighbours joined \[bytes of
/// the image\].
pub(crate) fn ranges(view: &View<'_>) -> Result<Vec<ByteRange>, SuperblockError> {
    let sb = any_super(view)?;
    if sb.is_journal_device() {
        return Ok(vec![]);
    }
    if sb.n_groups() > GROUPS_MAX {
        return Err(SuperblockError::TooLarge {
            what: "block groups",
            offset: view.offset(sb.at),
            found: sb.n_groups(),
            most: GROUPS_MAX,
        });
    }
    let mut blocks = copies_of_super(&sb);
    for nth in 0..sb.n_groups().div_ceil(sb.descs_per_block()) {
        described(view, &sb, nth, &mut blocks)?;
    }
    blocks.retain(|&(start, n)| n > 0 && start < sb.blocks);
    blocks.sort_unstable();
    let mut out: Vec<ByteRange> = vec![];
    for (start, n) in blocks {
        let block_bytes = u64::from(sb.block_bytes);
        let end = start.saturating_add(n).min(sb.blocks) * block_bytes;
        let (start, end) = (view.offset(start * block_bytes), view.offset(end));
        match out.last_mut() {
            Some(last) if start <= last.end() => last.bytes = last.bytes.max(end - last.start),
            _ => out.push(ByteRange { start, bytes: end - start }),
        }
    }
    Ok(out)
}

/// Superblocks, the descriptors behind them, and what is reserved for more \[blocks\].
fn copies_of_super(sb: &ExtSuper) -> Vec<(u64, u64)> {
    let behind = sb.n_leading_desc_blocks().saturating_add(sb.reserved_gdt_blocks);
    let groups = (0..sb.n_groups()).filter(|&group| sb.has_super(group));
    let copies = groups.map(|group| match group {
        0 => (sb.super_block(), 1 + behind),
        _ => (sb.group_start(group), 1 + behind),
    });
    copies.collect()
}

/// What the `nth` block of descriptors names, and itself if it lies in a meta group, with
/// its copies there \[blocks\].
fn described(
    view: &View<'_>,
    sb: &ExtSuper,
    nth: u64,
    blocks: &mut Vec<(u64, u64)>,
) -> Result<(), SuperblockError> {
    let at = sb.desc_block(nth).saturating_mul(sb.block_bytes.into());
    let table = view.read(at, sb.block_bytes as usize, "descriptors of block groups")?;
    let first = nth * sb.descs_per_block();
    if sb.in_meta_group(nth) {
        blocks.push((sb.desc_block(nth), 1));
        for group in [first + 1, first + sb.descs_per_block() - 1] {
            if group < sb.n_groups() {
                blocks.push((sb.group_start(group) + u64::from(sb.has_super(group)), 1));
            }
        }
    }
    let table_bytes = u64::from(sb.inodes_per_group) * sb.inode_bytes as u64;
    let table_blocks = table_bytes.div_ceil(sb.block_bytes.into());
    let n = (sb.n_groups() - first).min(sb.descs_per_block());
    for desc in table.chunks_exact(sb.desc_bytes).take(n as usize) {
        let at = |low: usize, high: usize| {
            let high = if sb.desc_bytes >= 64 { le32(desc, high) } else { 0 };
            u64::from(le32(desc, low)) | u64::from(high) << 32
        };
        let parts = [(at(0x0, 0x20), 1), (at(0x4, 0x24), 1), (at(0x8, 0x28), table_blocks)];
        for (start, n) in parts {
            let end = start.checked_add(n);
            if start <= sb.first_data_block || end.is_none_or(|end| end > sb.blocks) {
                return Err(SuperblockError::damaged(
                    "descriptor of a block group",
                    view.offset(sb.desc_block(nth).saturating_mul(sb.block_bytes.into())),
                    format!("{n} blocks of metadata at block {start}"),
                    "blocks inside the file system",
                ));
            }
            blocks.push((start, n));
        }
    }
    Ok(())
}
