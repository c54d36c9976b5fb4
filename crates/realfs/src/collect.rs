//! From events of the trace to an [`Observed`].
//!
//! What a block holds is decided, in this order:
//! 1. by where `mkfs` put bitmaps, inode tables, descriptors and the journal;
//! 2. by the file system's own allocation events, which say whether blocks are for data of
//!    a regular file; else they are entries where the owner is a directory (known from
//!    inode allocation events), or metadata of the owner such as its extent tree;
//! 3. by the flag `REQ_META`, for what nobody announced.
//!
//! The flag alone would not do: with `data=journal` the kernel sets it for data too, as
//! such buffers take the way of metadata (`ext4_dirty_journalled_data` in Linux'
//! `fs/ext4/inode.c`).
//!
//! Events must be seen from the mount on, so that all allocations are known. Counting
//! begins when [`Collector::start`] is called.

use std::collections::HashSet;

use crate::blocks::Blocks;
use crate::layout::Layout;
use crate::observed::{Direction, Observed, Structure};
use crate::trace::{Block, Dev, Event, Op};

/// Bytes of a sector in the trace. Source: `sector_t` of the Linux block layer.
const SECTOR_BYTES: u64 = 512;

/// Type bits of a mode, and those of a directory. Source: inode(7).
const MODE_TYPE: u32 = 0o170_000;
const MODE_DIRECTORY: u32 = 0o040_000;

/// Inodes of the root and of `lost+found`. Source: `EXT4_ROOT_INO` in Linux'
/// `fs/ext4/ext4.h`; the first inode `mkfs` may use is 11.
const ROOT_INODE: u64 = 2;
const LOST_FOUND_INODE: u64 = 11;

/// Where the journal is, beside the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalJournal {
    /// Its device.
    pub dev: Dev,
    /// Block that holds the journal's superblock: the one after the block with the ext4
    /// superblock.
    pub superblock: u64,
}

/// Adds events up.
#[derive(Clone, Debug)]
pub struct Collector {
    dev: Dev,
    external: Option<ExternalJournal>,
    block_bytes: u64,
    blocks: Blocks,
    directories: HashSet<u64>,
    counting: bool,
    observed: Observed,
    tids: Vec<u32>,
    lost: u64,
}

impl Collector {
    /// For a file system on `dev`.
    pub fn new(dev: Dev, layout: &Layout, external: Option<ExternalJournal>) -> Self {
        let mut observed = Observed::default();
        let ring: u64 = layout.journal.iter().map(|(_, n)| n).sum();
        observed.journal.ring_bytes = ring.saturating_sub(1) * layout.block_bytes;
        Self {
            dev,
            external,
            block_bytes: layout.block_bytes,
            blocks: layout.blocks.clone(),
            directories: HashSet::from([ROOT_INODE, LOST_FOUND_INODE]),
            counting: false,
            observed,
            tids: Vec::new(),
            lost: 0,
        }
    }

    /// Size of a ring on a device of its own \[bytes\], which the layout does not know.
    pub fn set_ring_bytes(&mut self, bytes: u64) {
        self.observed.journal.ring_bytes = bytes;
    }

    /// What follows counts, from zero.
    pub fn start(&mut self) {
        self.cut();
        self.tids.clear();
        self.counting = true;
    }

    /// Ends a span: what was counted since the last call.
    pub fn cut(&mut self) -> Observed {
        let ring_bytes = self.observed.journal.ring_bytes;
        let span = std::mem::take(&mut self.observed);
        self.observed.journal.ring_bytes = ring_bytes;
        span
    }

    /// What follows does not count.
    pub fn stop(&mut self) {
        self.counting = false;
    }

    /// Events lost since the beginning.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Numbers of the transactions that were committed while counting.
    pub fn tids(&self) -> &[u32] {
        &self.tids
    }

    /// What is known about blocks of the file system.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// What a block of the file system holds.
    pub fn structure(&self, block: u64, meta: bool) -> Structure {
        self.blocks.get(block).unwrap_or(if meta {
            Structure::UnknownMetadata
        } else {
            Structure::Unknown
        })
    }

    /// Takes an event in. Markers are for the caller.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Allocated { inode, block, n, data } => {
                let structure = if *data {
                    Structure::Data
                } else if self.directories.contains(inode) {
                    Structure::Directory
                } else {
                    Structure::ExtentTree
                };
                self.blocks.set(*block, *n, structure);
            }
            Event::InodeAllocated { inode, mode } => {
                if mode & MODE_TYPE == MODE_DIRECTORY {
                    self.directories.insert(*inode);
                } else {
                    self.directories.remove(inode);
                }
            }
            Event::Lost(n) => self.lost += n,
            Event::Marker(_) => {}
            _ if !self.counting => {}
            Event::Bio(bio) => self.bio(bio),
            Event::Request(request) => self.request(request),
            Event::Committed { tid, handles, blocks, logged } => {
                self.observed.commit(*handles, *blocks, *logged);
                self.tids.push(*tid);
            }
            Event::Checkpointed { written, .. } => {
                self.observed.journal.checkpoint_written += written;
            }
        }
    }

    fn bio(&mut self, bio: &Block) {
        self.observed.preflush_bios += u64::from(bio.rwbs.preflush);
        self.observed.fua_bios += u64::from(bio.rwbs.fua);
        let (Some(direction), 1..) = (direction(bio.rwbs.op), bio.n_sectors) else { return };
        // A bio may cover several structures (inode table after a bitmap): cut it there.
        let mut counted = None;
        self.each_structure(bio, |structure, bytes| {
            counted.get_or_insert_with(Vec::new).push((structure, bytes));
        });
        for (at, (structure, bytes)) in counted.into_iter().flatten().enumerate() {
            if at == 0 || direction != Direction::Discard {
                self.observed.bio(direction, structure, bytes);
            } else {
                self.observed.discards.bytes += bytes;
            }
            if direction == Direction::Write {
                self.observed.writer(&bio.comm, structure.class(), bytes);
            }
        }
    }

    fn request(&mut self, request: &Block) {
        if request.rwbs.op == Op::Flush {
            self.observed.flush_requests += 1;
            return;
        }
        let (Some(direction), 1..) = (direction(request.rwbs.op), request.n_sectors) else {
            return;
        };
        let mut first = None;
        self.each_structure(request, |structure, _| {
            first.get_or_insert(structure);
        });
        if let Some(structure) = first {
            let bytes = request.n_sectors * SECTOR_BYTES;
            self.observed.request(direction, structure.class(), bytes);
        }
    }

    /// Calls with each part of a range of sectors that holds one structure.
    fn each_structure(&self, block: &Block, mut part: impl FnMut(Structure, u64)) {
        let mut at = block.sector * SECTOR_BYTES;
        let end = at + block.n_sectors * SECTOR_BYTES;
        if let Some(external) = self.external.filter(|external| external.dev == block.dev) {
            let superblock = at / self.block_bytes <= external.superblock;
            let structure =
                if superblock { Structure::JournalSuperblock } else { Structure::JournalRing };
            part(structure, end - at);
            return;
        }
        if block.dev != self.dev {
            return;
        }
        while at < end {
            let (known, run_end) = self.blocks.run(at / self.block_bytes);
            let to = run_end.saturating_mul(self.block_bytes).min(end);
            let structure = known.unwrap_or(if block.rwbs.meta {
                Structure::UnknownMetadata
            } else {
                Structure::Unknown
            });
            part(structure, to - at);
            at = to;
        }
    }
}

fn direction(op: Op) -> Option<Direction> {
    match op {
        Op::Read => Some(Direction::Read),
        // Zeroes that the device writes itself count as written: they replace contents.
        Op::Write | Op::Other => Some(Direction::Write),
        Op::Discard => Some(Direction::Discard),
        Op::Flush => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Rwbs;

    const DEV: Dev = Dev { major: 7, minor: 0 };

    fn block(rwbs: &str, sector: u64, n_sectors: u64) -> Block {
        let rwbs = Rwbs::parse(rwbs).expect("letters");
        Block { dev: DEV, rwbs, sector, n_sectors, comm: "test".into() }
    }

    fn collector() -> Collector {
        let mut layout = Layout { block_bytes: 4096, n_blocks: 1000, ..Layout::default() };
        layout.blocks.set(0, 1, Structure::Superblock);
        layout.blocks.set(10, 20, Structure::InodeTable);
        layout.blocks.set(100, 1, Structure::JournalSuperblock);
        layout.blocks.set(101, 63, Structure::JournalRing);
        layout.journal = vec![(100, 64)];
        Collector::new(DEV, &layout, None)
    }

    #[test]
    fn allocation_events_decide_before_the_flag() {
        let mut collector = collector();
        for event in [
            Event::InodeAllocated { inode: 12, mode: 0o100_644 },
            Event::InodeAllocated { inode: 13, mode: 0o040_755 },
            Event::Allocated { inode: 12, block: 200, n: 4, data: true },
            Event::Allocated { inode: 12, block: 204, n: 1, data: false },
            Event::Allocated { inode: 13, block: 205, n: 1, data: false },
        ] {
            collector.event(&event);
        }
        collector.start();
        // Data that carries the flag, as with data=journal, is still data.
        collector.event(&Event::Bio(block("WM", 200 * 8, 32)));
        collector.event(&Event::Bio(block("WM", 204 * 8, 16)));
        collector.event(&Event::Bio(block("WSM", 300 * 8, 8)));
        collector.event(&Event::Bio(block("W", 301 * 8, 8)));
        let seen = collector.cut();
        assert_eq!(seen.writes.data.bytes, 16384 + 4096);
        assert_eq!(seen.structures[&Structure::ExtentTree], 4096);
        assert_eq!(seen.structures[&Structure::Directory], 4096);
        assert_eq!(seen.structures[&Structure::UnknownMetadata], 4096);
        assert_eq!(seen.structures[&Structure::Unknown], 4096);
    }

    #[test]
    fn a_bio_over_two_structures_is_cut() {
        let mut collector = collector();
        collector.start();
        collector.event(&Event::Bio(block("WS", 100 * 8, 24)));
        collector.event(&Event::Request(block("WS", 100 * 8, 24)));
        let seen = collector.cut();
        assert_eq!(seen.structures[&Structure::JournalSuperblock], 4096);
        assert_eq!(seen.structures[&Structure::JournalRing], 8192);
        assert_eq!((seen.writes.journal.requests, seen.writes.journal.request_bytes), (1, 12288));
        assert_eq!(seen.journal.ring_bytes, 63 * 4096);
    }

    #[test]
    fn flushes_are_counted_at_both_levels() {
        let mut collector = collector();
        collector.start();
        collector.event(&Event::Bio(block("FWFSM", 101 * 8, 8)));
        collector.event(&Event::Bio(block("FWS", 0, 0)));
        for _ in 0..3 {
            collector.event(&Event::Request(block("FF", 0, 0)));
        }
        let seen = collector.cut();
        assert_eq!((seen.preflush_bios, seen.fua_bios, seen.flush_requests), (2, 1, 3));
        assert_eq!(seen.writes.journal.bios, 1, "an empty bio moves nothing");
    }

    #[test]
    fn only_what_lies_between_start_and_stop_counts() {
        let mut collector = collector();
        let write = Event::Bio(block("W", 500 * 8, 8));
        collector.event(&write);
        collector.start();
        collector.event(&write);
        let first = collector.cut();
        collector.event(&write);
        collector.event(&write);
        collector.stop();
        collector.event(&write);
        assert_eq!((first.written_bytes(), collector.cut().written_bytes()), (4096, 8192));
    }

    #[test]
    fn a_journal_on_another_device_is_all_journal() {
        let mut collector = collector();
        let dev = Dev { major: 7, minor: 9 };
        collector.external = Some(ExternalJournal { dev, superblock: 1 });
        collector.start();
        collector.event(&Event::Bio(Block { dev, ..block("WS", 8, 8) }));
        collector.event(&Event::Bio(Block { dev, ..block("WS", 16, 80) }));
        let stranger = Dev { major: 8, minor: 0 };
        collector.event(&Event::Bio(Block { dev: stranger, ..block("WS", 16, 80) }));
        let seen = collector.cut();
        assert_eq!(seen.writes.journal.bytes, seen.written_bytes());
        assert_eq!((seen.journal.superblock_writes, seen.writes.journal.bytes), (1, 44 * 1024));
    }
}
