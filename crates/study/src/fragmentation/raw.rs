//! The raw file of the paper's Figures 11 and 12: 8 MiB appended or overwritten in pieces of
//! 32 KiB, each made durable before another file is written.
//!
//! Source of sizes and order: the artifact's `hypothetical_append` and
//! `hypothetical_overwrite` scripts, as the facts describe them.

use flashwise_hostfs::Call;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::plan::{Files, Plan};
use super::read::Reader;

/// Size of the file \[bytes\].
pub(crate) const FILE: u64 = 8 << 20;
/// Size of a piece: what goes to one die of the paper's drive at a time \[bytes\].
pub(crate) const PIECE: u64 = 32 << 10;
/// That of all dies \[bytes\].
pub(crate) const STRIPE: u64 = 256 << 10;

/// The reader: `O_DIRECT` reads of 1 MiB, one after another. The gap is that of the fast24
/// preset (`host.gap_us`), which was set on the contiguous case.
pub(crate) const READER: Reader = Reader {
    read_bytes: 1 << 20,
    gap_ns: 60_500,
    one_at_a_time: false,
    ahead: false,
    n_threads: 1,
};

/// How the file comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In writes of 1 MiB and in one go.
    Contiguous,
    /// Appended in pieces.
    Append,
    /// Written in one go, then overwritten in pieces.
    Overwrite,
}

/// What is written between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// As much as brings the next piece back to the same die.
    Worst,
    /// One to 32 times 32 KiB.
    Random {
        /// Seed of the draw.
        seed: u64,
    },
}

/// The calls of one run; the file is the first one.
pub(crate) fn plan(kind: Kind, between: Between) -> (Plan, Files) {
    let mut files = Files::default();
    let (file, open) = files.create("/file", false);
    let mut calls = vec![open];
    if kind != Kind::Append {
        for offset in (0..FILE).step_by(1 << 20) {
            calls.push(Call::Write { fd: file, offset, len: 1 << 20 });
        }
        calls.push(Call::Fdatasync { fd: file });
    }
    if kind != Kind::Contiguous {
        let mut lengths = Lengths::new(between);
        for (i, offset) in (0..FILE).step_by(PIECE as usize).enumerate() {
            calls.push(Call::Write { fd: file, offset, len: PIECE });
            calls.push(Call::Fdatasync { fd: file });
            let (dummy, open) = files.create(&format!("/dummy{i}"), false);
            let write = Call::Write { fd: dummy, offset: 0, len: lengths.next() };
            calls.extend([open, write, Call::Fdatasync { fd: dummy }, Call::Close { fd: dummy }]);
        }
    }
    let paths = files.paths.clone();
    (Plan::new(paths, vec![], vec![calls]), files)
}

/// Lengths of what comes between.
struct Lengths {
    between: Between,
    rng: Xoshiro256PlusPlus,
}

impl Lengths {
    fn new(between: Between) -> Self {
        let seed = match between {
            Between::Worst => 0,
            Between::Random { seed } => seed,
        };
        Self { between, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    fn next(&mut self) -> u64 {
        match self.between {
            Between::Worst => STRIPE - PIECE,
            Between::Random { .. } => (self.rng.next_u64() % 32 + 1) * PIECE,
        }
    }
}
