//! What reached a block device, as sums: for a real file system and for a model of one.
//!
//! No I/O and no clock: whoever saw the writes calls [`Observed::bio`] and
//! [`Observed::request`], and reads means and shares off.
//!
//! A *bio* is what the file system handed to the block layer, a *request* what the block
//! layer handed to the device after splitting and merging. Bytes are counted by bio, each
//! once. Sizes are counted by request, since that is what a drive sees; a request that
//! merges two classes counts for the one its first sector is in.
//!
//! Invariant: bytes of `writes` summed over classes are those of `structures` summed over
//! structures. Cost: one addition or two per bio.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use serde::Serialize;

/// What a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The ring of the journal and its superblock, whatever the blocks in it hold.
    Journal,
    /// Metadata at its home address.
    Metadata,
    /// Contents of files at their home address, also when they went through the journal.
    Data,
}

impl Class {
    /// All, in the order of [`PerClass`].
    pub const ALL: [Self; 3] = [Self::Journal, Self::Metadata, Self::Data];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Metadata => "metadata",
            Self::Data => "data",
        }
    }
}

/// What a block of an ext4 holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Structure {
    /// First block of the journal.
    JournalSuperblock,
    /// A block of the journal's ring.
    JournalRing,
    /// Superblock, the first one or a backup.
    Superblock,
    /// Group descriptors, also those reserved for growth.
    GroupDescriptors,
    /// Block bitmap of a group.
    BlockBitmap,
    /// Inode bitmap of a group.
    InodeBitmap,
    /// Inode table.
    InodeTable,
    /// Entries of a directory.
    Directory,
    /// Extent tree of a file, or another block of metadata that belongs to one file.
    ExtentTree,
    /// Contents of a file.
    Data,
    /// Not known; marked as metadata by the kernel (`REQ_META`).
    UnknownMetadata,
    /// Not known; not marked.
    Unknown,
}

impl Structure {
    /// The class it counts for.
    pub fn class(self) -> Class {
        match self {
            Self::JournalSuperblock | Self::JournalRing => Class::Journal,
            Self::Data | Self::Unknown => Class::Data,
            _ => Class::Metadata,
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::JournalSuperblock => "journal superblock",
            Self::JournalRing => "journal ring",
            Self::Superblock => "superblock",
            Self::GroupDescriptors => "group descriptors",
            Self::BlockBitmap => "block bitmap",
            Self::InodeBitmap => "inode bitmap",
            Self::InodeTable => "inode table",
            Self::Directory => "directory",
            Self::ExtentTree => "extent tree",
            Self::Data => "data",
            Self::UnknownMetadata => "metadata (flag only)",
            Self::Unknown => "unknown",
        }
    }
}

/// One value for each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PerClass<T> {
    /// Of [`Class::Journal`].
    pub journal: T,
    /// Of [`Class::Metadata`].
    pub metadata: T,
    /// Of [`Class::Data`].
    pub data: T,
}

impl<T> Index<Class> for PerClass<T> {
    type Output = T;

    fn index(&self, class: Class) -> &T {
        match class {
            Class::Journal => &self.journal,
            Class::Metadata => &self.metadata,
            Class::Data => &self.data,
        }
    }
}

impl<T> IndexMut<Class> for PerClass<T> {
    fn index_mut(&mut self, class: Class) -> &mut T {
        match class {
            Class::Journal => &mut self.journal,
            Class::Metadata => &mut self.metadata,
            Class::Data => &mut self.data,
        }
    }
}

/// Number of buckets of [`Traffic::sizes`].
pub const SIZE_BUCKETS: usize = 13;

/// Bytes moved, and in what pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Bytes of all bios.
    pub bytes: u64,
    /// Bios that move data.
    pub bios: u64,
    /// Requests the device got.
    pub requests: u64,
    /// Bytes of those requests; differs from `bytes` where requests were under way when
    /// counting began or ended, or merge two classes.
    pub request_bytes: u64,
    /// Requests by size: bucket `i` holds those of more than `2 KiB << i` and at most
    /// `4 KiB << i` bytes; the first also smaller, the last also larger ones.
    pub sizes: [u64; SIZE_BUCKETS],
}

impl Traffic {
    /// Mean size of a request \[bytes\]; 0 without any.
    pub fn mean_request_bytes(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.request_bytes as f64 / self.requests as f64 }
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.bios += other.bios;
        self.requests += other.requests;
        self.request_bytes += other.request_bytes;
        for (sum, n) in self.sizes.iter_mut().zip(other.sizes) {
            *sum += n;
        }
    }

    fn bio(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.bios += 1;
    }

    fn request(&mut self, bytes: u64) {
        self.requests += 1;
        self.request_bytes += bytes;
        let units = bytes.div_ceil(4096).max(1);
        let bucket = units.next_power_of_two().trailing_zeros() as usize;
        self.sizes[bucket.min(SIZE_BUCKETS - 1)] += 1;
    }
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// No data: the device is told that it may forget some.
    Discard,
}

/// What the journal did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JournalUse {
    /// Size of the ring without its superblock \[bytes\]; 0 without a journal.
    pub ring_bytes: u64,
    /// Times its superblock was written: the tail moved, or the journal was empty before.
    pub superblock_writes: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Handles (one operation of the file system each, more or less) in them.
    pub handles: u64,
    /// Blocks of metadata (with `data=journal` also data) in them.
    pub blocks: u64,
    /// Blocks written for them: also descriptors, revoke records and commit blocks.
    pub blocks_logged: u64,
    /// Blocks that checkpoints had to write home because the ring was full.
    pub checkpoint_written: u64,
}

impl JournalUse {
    /// Times the ring was filled, given the bytes written to it.
    pub fn wraps(&self, ring_written_bytes: u64) -> f64 {
        if self.ring_bytes == 0 { 0.0 } else { ring_written_bytes as f64 / self.ring_bytes as f64 }
    }
}

/// How files lie on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Regular files.
    pub files: u64,
    /// Runs of adjacent blocks they lie in.
    pub extents: u64,
    /// Bytes they occupy.
    pub bytes: u64,
}

impl Layout {
    /// Mean number of extents of a file; 0 without files.
    pub fn extents_per_file(&self) -> f64 {
        if self.files == 0 { 0.0 } else { self.extents as f64 / self.files as f64 }
    }
}

/// What reached the device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Observed {
    /// Written.
    pub writes: PerClass<Traffic>,
    /// Read.
    pub reads: PerClass<Traffic>,
    /// Discarded.
    pub discards: Traffic,
    /// Bytes written by what the blocks hold.
    pub structures: BTreeMap<Structure, u64>,
    /// Bios that make everything before them durable first (`REQ_PREFLUSH`), empty ones
    /// included.
    pub preflush_bios: u64,
    /// Bios that are durable when they complete (`REQ_FUA`).
    pub fua_bios: u64,
    /// Flush commands the device got. A device without FUA gets one after each FUA write.
    pub flush_requests: u64,
    /// The journal.
    pub journal: JournalUse,
    /// Files at the end.
    pub layout: Layout,
    /// Bytes written by name of the thread that submitted them. Numbers are cut off, so
    /// that `kworker/u8:2` is `kworker` and `jbd2/loop0-8` is `jbd2`.
    pub writers: BTreeMap<String, PerClass<u64>>,
}

impl Observed {
    /// Counts a bio that moves data.
    pub fn bio(&mut self, direction: Direction, structure: Structure, bytes: u64) {
        let class = structure.class();
        match direction {
            Direction::Discard => self.discards.bio(bytes),
            Direction::Read => self.reads[class].bio(bytes),
            Direction::Write => {
                self.writes[class].bio(bytes);
                *self.structures.entry(structure).or_default() += bytes;
                if structure == Structure::JournalSuperblock {
                    self.journal.superblock_writes += 1;
                }
            }
        }
    }

    /// Counts who submitted a bio that writes.
    pub fn writer(&mut self, comm: &str, class: Class, bytes: u64) {
        let name = writer_name(comm);
        if let Some(sum) = self.writers.get_mut(name) {
            sum[class] += bytes;
        } else {
            let mut sum = PerClass::default();
            sum[class] = bytes;
            self.writers.insert(name.to_owned(), sum);
        }
    }

    /// Counts a request that moves data.
    pub fn request(&mut self, direction: Direction, class: Class, bytes: u64) {
        match direction {
            Direction::Discard => self.discards.request(bytes),
            Direction::Read => self.reads[class].request(bytes),
            Direction::Write => self.writes[class].request(bytes),
        }
    }

    /// Counts a committed transaction: its handles, the blocks in it and those written.
    pub fn commit(&mut self, handles: u64, blocks: u64, blocks_logged: u64) {
        self.journal.commits += 1;
        self.journal.handles += handles;
        self.journal.blocks += blocks;
        self.journal.blocks_logged += blocks_logged;
    }

    /// Bytes written, of all classes.
    pub fn written_bytes(&self) -> u64 {
        Class::ALL.iter().map(|class| self.writes[*class].bytes).sum()
    }

    /// Times the journal's ring was filled.
    pub fn journal_wraps(&self) -> f64 {
        let ring = self.structures.get(&Structure::JournalRing).copied().unwrap_or(0);
        self.journal.wraps(ring)
    }

    /// Adds what came later. The layout is that of `later`.
    pub fn add(&mut self, later: &Self) {
        for class in Class::ALL {
            self.writes[class].add(&later.writes[class]);
            self.reads[class].add(&later.reads[class]);
        }
        self.discards.add(&later.discards);
        for (structure, bytes) in &later.structures {
            *self.structures.entry(*structure).or_default() += bytes;
        }
        self.preflush_bios += later.preflush_bios;
        self.fua_bios += later.fua_bios;
        self.flush_requests += later.flush_requests;
        let (sum, journal) = (&mut self.journal, &later.journal);
        sum.ring_bytes = sum.ring_bytes.max(journal.ring_bytes);
        sum.superblock_writes += journal.superblock_writes;
        sum.commits += journal.commits;
        sum.handles += journal.handles;
        sum.blocks += journal.blocks;
        sum.blocks_logged += journal.blocks_logged;
        sum.checkpoint_written += journal.checkpoint_written;
        self.layout = later.layout;
        for (name, bytes) in &later.writers {
            let sum = self.writers.entry(name.clone()).or_default();
            for class in Class::ALL {
                sum[class] += bytes[class];
            }
        }
    }
}

/// Name of a thread without what tells it from others of its kind.
fn writer_name(comm: &str) -> &str {
    match comm.split_once('/') {
        Some((kind @ ("kworker" | "jbd2"), _)) => kind,
        _ => comm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_structure_and_by_class_are_the_same_sum() {
        let mut seen = Observed::default();
        seen.bio(Direction::Write, Structure::JournalRing, 8192);
        seen.bio(Direction::Write, Structure::JournalSuperblock, 4096);
        seen.bio(Direction::Write, Structure::InodeTable, 4096);
        seen.bio(Direction::Write, Structure::Unknown, 1024);
        seen.bio(Direction::Read, Structure::Data, 512);
        seen.bio(Direction::Discard, Structure::Data, 1 << 20);
        assert_eq!(seen.written_bytes(), seen.structures.values().sum::<u64>());
        assert_eq!(
            Class::ALL.map(|class| seen.writes[class].bytes),
            [12288, 4096, 1024],
            "journal, metadata, data"
        );
        assert_eq!((seen.reads.data.bytes, seen.discards.bytes), (512, 1 << 20));
        assert_eq!(seen.journal.superblock_writes, 1);
        seen.journal.ring_bytes = 4096;
        assert_eq!(seen.journal_wraps(), 2.0, "the superblock is not in the ring");
    }

    #[test]
    fn sizes_fall_into_buckets_by_powers_of_two() {
        let mut traffic = Traffic::default();
        for bytes in [512, 4096, 4097, 8192, 12288, 16 << 20, 1 << 30] {
            traffic.request(bytes);
        }
        assert_eq!(traffic.sizes[..4], [2, 2, 1, 0]);
        assert_eq!(traffic.sizes[SIZE_BUCKETS - 1], 2);
        assert_eq!(traffic.sizes.iter().sum::<u64>(), traffic.requests);
    }

    #[test]
    fn adding_two_spans_is_counting_them_as_one() {
        let span = |seen: &mut Observed, part: u64| {
            seen.bio(Direction::Write, Structure::Data, 4096 * part);
            seen.request(Direction::Write, Class::Data, 4096 * part);
            seen.writer("kworker/u8:1", Class::Data, 4096 * part);
            seen.commit(part, part + 1, part + 3);
            seen.flush_requests += part;
        };
        let (mut first, mut second, mut both) =
            (Observed::default(), Observed::default(), Observed::default());
        span(&mut first, 1);
        span(&mut second, 2);
        span(&mut both, 1);
        span(&mut both, 2);
        first.add(&second);
        assert_eq!(first, both);
        assert_eq!(both.writers["kworker"].data, 12288);
    }
}
