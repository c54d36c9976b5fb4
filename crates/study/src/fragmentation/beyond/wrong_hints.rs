//! A tenant whose hints are wrong, beside one that gives right ones: what the other loses.
//!
//! Both write in closed loops of their own, and the other one reads meanwhile what it wrote
//! before. All is compared with the same tenants where the first gives no hints.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};
use flashwise_ssd::{Command, RelationPolicy, Ssd};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::super::device::Device;
use super::super::raw::{FILE, PIECE, READER};
use super::super::write::{Piece, submit};
use super::super::{AGED, PRESET};
use super::{Growing, MIB, SECTORS, anchors, below, write_at_rest, write_piece};
use crate::{Line, Point, StudyError};

/// Files of the other tenant: what it reads meanwhile, and what it writes.
const N_READ: u64 = 8;
const N_WRITTEN: u64 = 16;
/// Where the tenant with the hints writes \[sectors\].
const FIRST: u64 = (1 << 30) / SECTOR_BYTES;
/// Pieces it overwrites.
const N_OWN: u64 = 1024;
/// Requests under way: writes of each tenant, and reads.
const WRITES: usize = 16;
const READS: usize = 4;

/// What a tenant says of its writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    /// Each piece continues the one before.
    Right,
    /// A random block of its own comes before.
    Random,
    /// A block beyond the namespace comes before.
    Beyond,
    /// A block before one of so many dies comes before.
    Dies(u64),
    /// It overwrites its pieces, which lie on one die.
    Stay,
    /// One die, then the next, each for as many writes as its part of the buffer takes.
    Turns,
}

const ALL: [(&str, Says); 9] = [
    ("nothing", Says::Nothing),
    ("right", Says::Right),
    ("random", Says::Random),
    ("beyond", Says::Beyond),
    ("one die", Says::Dies(1)),
    ("two dies", Says::Dies(2)),
    ("four dies", Says::Dies(4)),
    ("overwrites on one die", Says::Stay),
    ("one die after another", Says::Turns),
];

/// Program units kept for each other die (`ftl.yield_programs`): usual, none, many.
const KEPT: [u32; 3] = [2, 0, 10];

/// The cell's work, on an aged drive or a fresh one.
pub(super) fn run(is_aged: bool, seed: u64) -> Result<Vec<Line>, StudyError> {
    let device = Device::new(PRESET, if is_aged { AGED } else { &[] });
    let relation = RelationPolicy::Hints;
    let mut lines = vec![];
    // The curve is that of the fresh drive.
    for &kept in if is_aged { &KEPT[..1] } else { &KEPT[..] } {
        let mut of = None;
        for (name, says) in ALL {
            let ssd = if is_aged { device.aged(relation)? } else { device.fresh(relation)? };
            let erases = ssd.config().ftl.yield_erases;
            let found = Tenants::new(ssd.with_yield(erases, kept)?, says, seed)?.run()?;
            let of = *of.get_or_insert(found);
            lines.push(found.point(&device, name, kept, &of).into());
        }
    }
    Ok(lines)
}

#[derive(Clone, Copy)]
struct Found {
    /// Writes of the other tenant, and of the one with the hints \[MiB/s\].
    others_mib_s: f64,
    own_mib_s: f64,
    /// Reads of the other tenant meanwhile \[us\].
    read_us: f64,
    read_p99_us: f64,
    /// Reading afterwards what it wrote \[MiB/s\].
    later_mib_s: f64,
    senses: f64,
    yielded: f64,
}

impl Found {
    fn point(&self, device: &Device, name: &str, kept: u32, of: &Self) -> Point {
        let series = format!("the other says: {name}");
        Point::new("wrong-hints", device.name(), series, f64::from(kept))
            .with("others_write_mib_s", self.others_mib_s)
            .with("others_write_of_nothing", self.others_mib_s / of.others_mib_s)
            .with("others_read_us", self.read_us)
            .with("others_read_of_nothing", of.read_us / self.read_us)
            .with("others_read_p99_us", self.read_p99_us)
            .with("later_read_mib_s", self.later_mib_s)
            .with("later_read_of_nothing", self.later_mib_s / of.later_mib_s)
            .with("senses_per_256_kib", self.senses)
            .with("own_write_mib_s", self.own_mib_s)
            .with("hints_yielded", self.yielded)
    }
}

/// A closed loop: when the requests under way end \[ns\].
struct Loop {
    under_way: BinaryHeap<Reverse<u64>>,
    depth: usize,
    start_ns: u64,
}

impl Loop {
    fn new(depth: usize, start_ns: u64) -> Self {
        Self { under_way: BinaryHeap::new(), depth, start_ns }
    }

    /// When the next request is issued \[ns\].
    fn due_ns(&self) -> u64 {
        match self.under_way.peek() {
            Some(&Reverse(done_ns)) if self.under_way.len() == self.depth => done_ns,
            _ => self.start_ns,
        }
    }

    fn issue(&mut self, done_ns: u64) {
        if self.under_way.len() == self.depth {
            self.under_way.pop();
        }
        self.under_way.push(Reverse(done_ns));
    }
}

struct Tenants {
    ssd: Ssd,
    says: Says,
    rng: Xoshiro256PlusPlus,
    /// A unit of the tenant before each die: an append to it goes to that die.
    before_die: Vec<u64>,
    n_own: u64,
}

impl Tenants {
    /// A drive with what is read, and with the pieces that are overwritten.
    fn new(mut ssd: Ssd, says: Says, seed: u64) -> Result<Self, StudyError> {
        let mut old = Growing::new(N_READ, FILE);
        for i in 0..N_READ * FILE / PIECE {
            let (lba, hint) = old.next((i % N_READ) as usize);
            write_at_rest(&mut ssd, lba, hint)?;
        }
        let before_die = anchors(&mut ssd)?;
        for i in 0..N_OWN {
            write_at_rest(&mut ssd, FIRST + i * SECTORS, WriteHint::append(Lba(before_die[0])))?;
        }
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Ok(Self { ssd, says, rng, before_die, n_own: 0 })
    }

    /// The next write of the tenant with the hints.
    fn own(&mut self) -> (u64, WriteHint) {
        let i = self.n_own;
        self.n_own += 1;
        let lba = FIRST + (N_OWN + i) * SECTORS;
        let before = |die: u64| WriteHint::append(Lba(self.before_die[die as usize]));
        match self.says {
            Says::Nothing => (lba, WriteHint::NONE),
            Says::Right => (lba, WriteHint::append(Lba(lba - 1))),
            Says::Random => {
                let written = FIRST + below(&mut self.rng, (N_OWN + i) * SECTORS);
                (lba, WriteHint::append(Lba(written)))
            }
            Says::Beyond => (lba, WriteHint::append(Lba(self.ssd.capacity_sectors() + i))),
            Says::Dies(n) => (lba, before(i % n)),
            Says::Stay => {
                let piece = below(&mut self.rng, N_OWN);
                (FIRST + piece * SECTORS, WriteHint::overwrite())
            }
            Says::Turns => (lba, before(i / 16 % self.before_die.len() as u64)),
        }
    }

    /// Until the other tenant has written its files.
    fn run(mut self) -> Result<Found, StudyError> {
        let start_ns = self.ssd.rest();
        let before = self.ssd.counters();
        let mut loops = [WRITES, WRITES, READS].map(|depth| Loop::new(depth, start_ns));
        let first = N_READ * FILE / SECTOR_BYTES;
        let mut files = Growing::new(N_WRITTEN, FILE);
        files.at.iter_mut().chain(&mut files.base).for_each(|at| *at += first);
        let (mut n_others, mut latencies) = (0, vec![]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut now_ns = start_ns;
        while n_others < N_WRITTEN * FILE / PIECE {
            let due = |i: &usize| loops[*i].due_ns();
            let i = (0..3).min_by_key(due).expect("three loops");
            now_ns = now_ns.max(loops[i].due_ns());
            let command = match i {
                0 => {
                    let (lba, hint) = files.next((n_others % N_WRITTEN) as usize);
                    n_others += 1;
                    write_piece(lba, hint)
                }
                1 => {
                    let (lba, hint) = self.own();
                    write_piece(lba, hint)
                }
                _ => {
                    let lba = Lba(below(&mut rng, N_READ * FILE / PIECE) * SECTORS);
                    Command::Read { lba, sectors: SECTORS as u32 }
                }
            };
            let done_ns = submit(&mut self.ssd, &command, now_ns, "two tenants")?;
            loops[i].issue(done_ns);
            if i == 2 {
                latencies.push(done_ns - now_ns);
            }
        }
        let seconds = (now_ns - start_ns).max(1) as f64 / 1e9;
        let yielded = self.ssd.counters().since(&before).ftl.hints_yielded as f64;
        latencies.sort_unstable();
        let mean_ns = latencies.iter().sum::<u64>() as f64 / latencies.len().max(1) as f64;
        let pieces = |&lba: &u64| [Piece { lba, sectors: FILE / SECTOR_BYTES }];
        let files: Vec<_> = files.base.iter().map(pieces).collect();
        let later = READER.read(&mut self.ssd, files.iter().map(|f| f.as_slice()))?;
        Ok(Found {
            others_mib_s: (n_others * PIECE) as f64 / MIB / seconds,
            own_mib_s: (self.n_own * PIECE) as f64 / MIB / seconds,
            read_us: mean_ns / 1e3,
            read_p99_us: latencies
                .get(latencies.len() * 99 / 100)
                .map_or(0.0, |&ns| ns as f64 / 1e3),
            later_mib_s: later.mib_s,
            senses: later.senses_per_256_kib,
            yielded,
        })
    }
}
