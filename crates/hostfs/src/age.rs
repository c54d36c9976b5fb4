//! Ageing: a file system that has been used for years, made in a moment.
//!
//! Files are made until the file system is as full as it will be, then half of them are
//! removed, at random, and others made in their place, round after round. Several files grow
//! at a time, in pieces, so that they lie between each other; what their removal leaves are
//! holes of all sizes. Blocks go through the same allocator as any others. Nothing is
//! written: the drive is aged by other means.
//!
//! Sizes are lognormal with a median of e^9.48 bytes (13 KB) and sigma 2.46, the body of the
//! distribution of Agrawal, Bolosky, Douceur and Lorch, "A Five-Year Study of File-System
//! Metadata" (FAST'07), as "Generating Realistic Impressions for File-System Benchmarking"
//! (FAST'09) uses it.
//!
//! Cost: about a microsecond for each piece of a file.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::directory::{Directory, hash};
use crate::fs::{FileSystem, MapFor, ROOT};
use crate::inode::{Inode, PAGE};
use crate::inodes::NewInode;

/// How a file system is aged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ageing {
    /// Part of the blocks that is in use at the end \[0..1\].
    pub(crate) full: f64,
    /// How often half of the files are replaced.
    pub(crate) rounds: u32,
}

/// Files that grow at a time, assumed.
const WRITERS: usize = 4;

/// What a growing file gets at a time \[blocks\], assumed: 256 KiB.
const PIECE: u32 = 64;

/// Directories the files are in, assumed.
const DIRECTORIES: u32 = 64;

/// Largest file, as a part of the file system: 1/16, so that no single one decides.
const LARGEST_PART: u64 = 16;

/// A file that grows.
#[derive(Clone, Copy, Debug)]
struct Growing {
    inode: u32,
    n_left: u32,
    at: u32,
}

impl FileSystem {
    /// Ages a new file system.
    pub(crate) fn age(&mut self, ageing: &Ageing, seed: u64) {
        // None of it is logged or written.
        let journal = self.journal.take();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let dirs: Vec<u32> = (0..DIRECTORIES).filter_map(|n| self.age_dir(n)).collect();
        let mut files: Vec<(u32, u32, u32)> = vec![];
        let mut n_made = DIRECTORIES;
        for round in 0..=ageing.rounds {
            self.age_fill(ageing.full, &dirs, &mut files, &mut n_made, &mut random);
            if round < ageing.rounds {
                for _ in 0..files.len() / 2 {
                    let at = below(&mut random, files.len() as u64) as usize;
                    let (dir, component, inode) = files.swap_remove(at);
                    self.age_remove(dir, component, inode);
                }
            }
        }
        self.alloc.discard_all_preallocations();
        self.journal = journal;
        self.dirty_metadata.clear();
        self.metadata_since_ns = None;
        self.freed.clear();
    }

    fn age_dir(&mut self, n: u32) -> Option<u32> {
        let component = u32::MAX - n;
        let kind = NewInode::Directory { name_hash: hash(component) };
        let parent = self.inodes[ROOT as usize].ino;
        let ino = self.inode_table.allocate(kind, parent, &self.alloc).ok()?;
        let table_block = self.layout.inode_table_block(ino);
        let dir = Some(Box::new(Directory::new()));
        let i =
            self.slot(Inode { ino, table_block, links: 2, size: PAGE, dir, ..Inode::default() });
        self.map(i, 0, 1, MapFor::Write, 0).ok()?;
        self.enter_component(ROOT, component, NAME_BYTES, i, 0).ok()?;
        Some(i)
    }

    fn age_fill(
        &mut self,
        full: f64,
        dirs: &[u32],
        files: &mut Vec<(u32, u32, u32)>,
        n_made: &mut u32,
        random: &mut Xoshiro256PlusPlus,
    ) {
        let n_blocks = f64::from(self.layout.n_blocks());
        let least_free = (n_blocks * (1.0 - full)) as u64;
        let largest = u64::from(self.layout.n_blocks()) / LARGEST_PART;
        let mut growing: Vec<Growing> = vec![];
        while self.alloc.free_blocks() > least_free {
            while growing.len() < WRITERS {
                let n_blocks = file_blocks(random).min(largest) as u32;
                let dir = dirs[below(random, dirs.len() as u64) as usize];
                let Some(inode) = self.age_file(dir, *n_made) else { return };
                files.push((dir, u32::MAX - *n_made, inode));
                *n_made += 1;
                growing.push(Growing { inode, n_left: n_blocks, at: 0 });
            }
            let turn = below(random, growing.len() as u64) as usize;
            let file = &mut growing[turn];
            let want = file.n_left.min(PIECE);
            self.inodes[file.inode as usize].size = u64::from(file.at + want) * PAGE;
            let got = self.map(file.inode, file.at, want, MapFor::Write, turn as u32).unwrap_or(0);
            self.inodes[file.inode as usize].extents.mark_written(file.at..file.at + got);
            file.at += got;
            file.n_left -= got;
            let is_done = file.n_left == 0 || got == 0;
            if is_done {
                let Growing { inode, at, .. } = growing.swap_remove(turn);
                self.inodes[inode as usize].size = u64::from(at) * PAGE;
                let ino = self.inodes[inode as usize].ino;
                self.alloc.discard_preallocation(ino);
            }
            if got == 0 {
                break;
            }
        }
        for Growing { inode, at, .. } in growing {
            self.inodes[inode as usize].size = u64::from(at) * PAGE;
        }
    }

    fn age_file(&mut self, dir: u32, n: u32) -> Option<u32> {
        let component = u32::MAX - n;
        let parent = self.inodes[dir as usize].ino;
        let ino = self.inode_table.allocate(NewInode::File, parent, &self.alloc).ok()?;
        let table_block = self.layout.inode_table_block(ino);
        let id = self.new_id();
        let i = self.slot(Inode { ino, id, table_block, links: 1, ..Inode::default() });
        self.enter_component(dir, component, NAME_BYTES, i, 0).ok()?;
        Some(i)
    }

    fn age_remove(&mut self, dir: u32, component: u32, i: u32) {
        self.leave_component(dir, component, NAME_BYTES);
        self.inodes[i as usize].links = 0;
        self.evict(i);
    }
}

/// Length of a name \[bytes\], assumed.
const NAME_BYTES: usize = 16;

/// Blocks of a file, at least one.
fn file_blocks(random: &mut Xoshiro256PlusPlus) -> u64 {
    let bytes = (9.48 + 2.46 * normal(random)).exp();
    (bytes / PAGE as f64).ceil().max(1.0) as u64
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let (a, b) = (uniform(random.next_u64()), uniform(random.next_u64()));
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

fn below(random: &mut Xoshiro256PlusPlus, n: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(n)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FsConfig;

    #[test]
    fn an_aged_file_system_is_as_full_as_asked_and_its_holes_are_small() {
        let cfg = FsConfig::default();
        let mut fs = FileSystem::new(&cfg, 2 << 30).expect("it fits");
        let free_before = fs.alloc.free_blocks();
        let longest = |fs: &FileSystem| {
            let lens: Vec<u32> = fs.alloc.free_extents().map(|(_, len)| len).collect();
            (lens.len(), lens.iter().sum::<u32>() / lens.len() as u32)
        };
        let (_, mean_before) = longest(&fs);
        fs.age(&Ageing { full: 0.8, rounds: 3 }, 7);
        let used = 1.0 - fs.alloc.free_blocks() as f64 / f64::from(fs.layout.n_blocks());
        assert!((0.79..0.81).contains(&used), "{used}");
        assert!(fs.alloc.free_blocks() < free_before);
        let (n, mean) = longest(&fs);
        assert!(n > 500 && mean < mean_before / 10, "{n} holes of {mean} blocks");
        // Nothing of it is left to write.
        assert!(
            fs.dirty_metadata.is_empty()
                && fs.journal.as_ref().is_some_and(|j| j.running.is_none())
        );
    }

    #[test]
    fn sizes_are_those_of_the_study() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut sizes: Vec<u64> = (0..20_001).map(|_| file_blocks(&mut random)).collect();
        sizes.sort_unstable();
        // 13 KB are 4 blocks; the 90th percentile is e^(9.48 + 1.2816 x 2.46) = 307 KB.
        assert_eq!(sizes[10_000], 4);
        assert!((70..80).contains(&sizes[18_000]), "{}", sizes[18_000]);
    }
}
