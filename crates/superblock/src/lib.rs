//! Finds the journal of a file system in its image.
//!
//! A host that gives no hints still writes its journal to one place. This crate reads
//! that place from the image of the device: of ext2, ext3 and ext4 (inode, block map,
//! external journal, fast-commit area) and of XFS (internal log). [`find`] takes a file
//! system at an offset, [`scan`] a whole disk with its partition table, and
//! [`metadata_ranges`] gives the other fixed places of ext2 to ext4.
//!
//! Nothing is written and no file system is mounted. Only structures that say where the
//! journal lies are read.
//!
//! Invariants: any bytes give an answer or a [`SuperblockError`], never a panic; work and
//! memory are bounded whatever the image says. Ranges lie inside the file system. An
//! answer that rests on a backup, or that could not be checked, carries a [`Note`].
//!
//! Cost: a few reads of a block; a damaged superblock costs some 200 small reads.

mod error;
mod ext;
mod ext_journal;
mod ext_metadata;
mod model;
#[doc(hidden)]
pub mod oracle;
mod partition;
mod read;
mod xfs;

pub use error::SuperblockError;
pub use model::{ByteRange, FileSystem, Journal, Kind, Note, Ring, Uuid};
pub use partition::{Partition, Table};
pub use read::ReadAt;

use read::View;

/// The file system that begins at `offset` \[bytes\].
pub fn find(image: &dyn ReadAt, offset: u64) -> Result<FileSystem, SuperblockError> {
    let view = View::new(image, offset)?;
    by_primary(&view).or_else(|e| by_backup(&view, e))
}

/// A disk and what is on it.
#[derive(Debug)]
pub struct Disk {
    /// Its partition table.
    pub table: Table,
    /// The image itself if it has no table, or is a file system all the same; and each
    /// partition.
    pub volumes: Vec<Volume>,
}

/// A partition, or a whole image, and the file system on it.
#[derive(Debug)]
pub struct Volume {
    /// The partition; `None`: the whole image.
    pub partition: Option<Partition>,
    /// What is on it.
    pub found: Result<FileSystem, SuperblockError>,
}

/// Every file system of an image: of the one it is, or of the partitions of the disk.
pub fn scan(image: &dyn ReadAt) -> Result<Disk, SuperblockError> {
    let view = View::new(image, 0)?;
    let whole = |found| Volume { partition: None, found };
    let good = by_primary(&view);
    let table = partition::partitions(&view);
    let (table, partitions) = match (table, &good) {
        (Ok(table), _) => table,
        (Err(_), Ok(_)) => (Table::None, vec![]),
        (Err(e), Err(_)) => return Err(e),
    };
    let mut volumes = vec![];
    match good {
        Ok(fs) => volumes.push(whole(Ok(fs))),
        // A disk with a table may hold the remains of a file system that once was all of it.
        Err(e) if table == Table::None => volumes.push(whole(by_backup(&view, e))),
        Err(_) => {}
    }
    for partition in partitions {
        let part = View::within(image, partition.range);
        let found = part.and_then(|v| by_primary(&v).or_else(|e| by_backup(&v, e)));
        volumes.push(Volume { partition: Some(partition), found });
    }
    Ok(Disk { table, volumes })
}

/// Where ext2, ext3 or ext4 at `offset` \[bytes\] keeps superblocks, descriptors, bitmaps and
/// inode tables: ranges in order. The journal is not among them.
pub fn metadata_ranges(image: &dyn ReadAt, offset: u64) -> Result<Vec<ByteRange>, SuperblockError> {
    let view = View::new(image, offset)?;
    if xfs::has_magic(&view) {
        return Err(SuperblockError::Unsupported { offset, what: "fixed metadata of XFS" });
    }
    ext_metadata::ranges(&view)
}

/// By primary superblocks alone.
fn by_primary(view: &View<'_>) -> Result<FileSystem, SuperblockError> {
    let of_xfs = xfs::by_primary(view);
    if of_xfs.is_ok() {
        return of_xfs;
    }
    match ext::by_primary(view) {
        Err(_) if xfs::has_magic(view) => of_xfs,
        other => other,
    }
}

/// By backups, after the primary failed with `why`.
fn by_backup(view: &View<'_>, why: SuperblockError) -> Result<FileSystem, SuperblockError> {
    let of_ext = || ext::by_backup(view, &why);
    let of_xfs = || xfs::by_backup(view, &why);
    // A device can hold copies of an older file system, so signs of the current one go first.
    let found = if xfs::has_signs(view) && !ext::has_magic(view) {
        of_xfs().or_else(of_ext)
    } else {
        of_ext().or_else(of_xfs)
    };
    match found {
        Some(fs) => Ok(fs),
        None if ext::has_magic(view) || xfs::has_magic(view) => Err(why),
        None if matches!(why, SuperblockError::Io { .. }) => Err(why),
        None => Err(SuperblockError::NotFound { offset: view.base }),
    }
}
