//! The file server of the paper's Figure 12: files of 128 KiB to which ten threads append
//! pieces at random, each made durable, until a file has about 600 KB.
//!
//! Sizes and counts are the paper's: 10,000 files of 128 KiB, ten threads, 32 KiB an append
//! (16 KiB in the small one), a mean size of 600 KB afterwards in 15.7 pieces, which is 128
//! KiB and 14.7 appends. That each append is made durable follows from its rate (some 5,000
//! appends in a second by ten threads). The small one is given the same bytes, so twice the
//! appends; its mean size is not published.

use flashwise_hostfs::{Call, Fd};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::plan::{Files, Plan};
use super::read::Reader;

/// Size of a file at the start \[bytes\].
const FIRST: u64 = 128 << 10;
/// Bytes appended to a file, on average: 14.7 pieces of 32 KiB.
const APPENDED: u64 = 147 * (32 << 10) / 10;
/// Threads, of the writing and of the reading.
const N_THREADS: usize = 10;

/// The readers: whole files by direct reads of 1 MiB. Ten threads keep the drive so busy
/// that a gap of each thread's own hardly shows (1,500 us bring the contiguous case from
/// 3,120 to 3,062 MiB/s, published are 2,740): what bounds it must be work that one thread at
/// a time does, such as choosing and opening a file. It was set on the contiguous case of
/// the file server alone.
pub(crate) const READER: Reader = Reader {
    read_bytes: 1 << 20,
    gap_ns: 213_000,
    one_at_a_time: true,
    ahead: false,
    n_threads: N_THREADS,
};

/// A file server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Server {
    /// Files.
    pub(crate) n_files: u32,
    /// Size of an append \[bytes\].
    pub(crate) append: u64,
    /// Seed of which file is next.
    pub(crate) seed: u64,
}

impl Server {
    /// Files that get the appends, in order.
    fn order(&self) -> Vec<u32> {
        let n = u64::from(self.n_files) * APPENDED / self.append;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let draw = |_| ((u128::from(rng.next_u64()) * u128::from(self.n_files)) >> 64) as u32;
        (0..n).map(draw).collect()
    }

    /// The files grow side by side.
    pub(crate) fn fragmented(&self) -> (Plan, Files) {
        let mut files = Files::default();
        let mut prepare = vec![];
        let fds = self.make(&mut files, &mut prepare, |_| FIRST);
        let mut threads = vec![vec![]; N_THREADS];
        for (i, file) in self.order().into_iter().enumerate() {
            let fd = fds[file as usize];
            let append = Call::Append { fd, len: self.append };
            threads[i % N_THREADS].extend([append, Call::Fdatasync { fd }]);
        }
        (Plan::new(files.paths.clone(), prepare, threads), files)
    }

    /// Files of the same sizes, copied one after another.
    pub(crate) fn copied(&self) -> (Plan, Files) {
        let mut sizes = vec![FIRST; self.n_files as usize];
        self.order().into_iter().for_each(|file| sizes[file as usize] += self.append);
        let mut files = Files::default();
        let mut calls = vec![];
        self.make(&mut files, &mut calls, |i| sizes[i as usize]);
        (Plan::new(files.paths.clone(), vec![], vec![calls]), files)
    }

    fn make(&self, files: &mut Files, calls: &mut Vec<Call>, size: impl Fn(u32) -> u64) -> Vec<Fd> {
        let mut make = |i: u32| {
            let (fd, open) = files.create(&format!("/{i}"), false);
            calls.extend([open, Call::Write { fd, offset: 0, len: size(i) }]);
            calls.push(Call::Fdatasync { fd });
            fd
        };
        (0..self.n_files).map(&mut make).collect()
    }
}
