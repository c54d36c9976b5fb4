//! Jobs: hosts that work on one drive at the same time, each with its own pattern,
//! queue depth, pauses and rates.
//!
//! A job file becomes a list of [`JobSpec`]s. [`JobSet`] runs them in virtual time. What
//! a job asks for (its stream) knows no time, and when it asks (its host) knows no
//! addresses, so that each can be tested alone, and a single plain job can be replayed
//! as a [`Source`](crate::Source) on the fast path.
//!
//! Invariants: requests stay within the region of their job; issue times never go back;
//! the same specs and completions yield the same requests.
//!
//! Cost: a request takes some ten nanoseconds, and one entry of a heap over the jobs. A
//! random pattern without repetition takes no memory if all its blocks are of one
//! length, else one bit for each block.

mod addresses;
mod host;
mod set;
mod sizes;
mod stream;

pub(crate) use addresses::MAP_BLOCKS_MAX;
pub use set::JobSet;
pub use sizes::Sizes;
pub use stream::JobStream;

use crate::{Distribution, SyntheticSpec};

/// What a request does, as far as patterns tell requests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
}

impl Direction {
    /// All of them, in the order of their indices.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];
}

/// Which directions a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Always the same.
    Only(Direction),
    /// Reads with this probability \[percent\], otherwise writes.
    ReadPercent(u32),
    /// Each block is trimmed and then written.
    TrimWrite,
}

impl Mix {
    /// Whether requests of this direction occur.
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Self::Only(only) => only == direction,
            Self::ReadPercent(percent) => match direction {
                Direction::Read => percent > 0,
                Direction::Write => percent < 100,
                Direction::Trim => false,
            },
            Self::TrimWrite => direction != Direction::Read,
        }
    }
}

/// How random addresses are spread over the blocks of the region.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// Every block equally likely.
    Uniform,
    /// The k-th hottest block with weight k^-theta.
    Zipf {
        /// Skew, above 0 and at most 20.
        theta: f64,
        /// Place of the hottest block, as a part of the region; `None`: random.
        center: Option<f64>,
    },
    /// Self-similar: the first part `h` of the ranks gets all but the part `h` of the
    /// requests.
    Pareto {
        /// Above 0 and below 1.
        h: f64,
        /// Place of the hottest block, as a part of the region; `None`: random.
        center: Option<f64>,
    },
    /// Ranks around the middle, as fio draws them: the mean of twelve uniform ranks,
    /// plus a uniform deviation.
    Normal {
        /// Width of the deviation \[percent of the region\], below 100.
        deviation_percent: f64,
        /// Rotation: the part of the region that the middle rank moves to.
        center: Option<f64>,
    },
    /// Parts of the region with a share of the requests each, by direction.
    Zoned(Box<[Vec<Zone>; 3]>),
}

/// A part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Share of the requests \[percent\]; the shares of a list add up to 100.
    pub percent: u32,
    /// Start \[sectors from the start of the region\].
    pub start: u64,
    /// End \[sectors from the start of the region\].
    pub end: u64,
}

/// When a random pattern goes on from where it is instead of to a new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequencer {
    /// Every so many requests go to a new place.
    pub every: u64,
    /// The others repeat the last address instead of following it.
    pub identical: bool,
}

/// Placement handles of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handles {
    /// Always this one.
    One(u16),
    /// One after the other.
    RoundRobin(Vec<u16>),
    /// Each equally likely.
    Random(Vec<u16>),
}

/// What a job asks for, without time.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// First sector of the region.
    pub region_start: u64,
    /// Length of the region \[sectors\].
    pub region_sectors: u64,
    /// Directions.
    pub mix: Mix,
    /// Ascending addresses, a position for each direction, that start over at the end.
    pub sequential: bool,
    /// Sectors left out after each request of a sequential pattern.
    pub gap_sectors: u64,
    /// New places of a random pattern; `None`: every request.
    pub sequencer: Option<Sequencer>,
    /// Share of random requests in a random pattern, by direction \[percent\].
    pub random_percent: [u32; 3],
    /// Lengths, by direction.
    pub sizes: [Sizes; 3],
    /// Random addresses are multiples of this, by direction \[sectors\].
    pub align: [u32; 3],
    /// Random addresses.
    pub spread: Spread,
    /// Every block once before any comes again.
    pub random_map: bool,
    /// Ends after so many bytes were transferred (of a trim-write job: written).
    pub limit_bytes: Option<u64>,
    /// Ends after so many requests.
    pub limit_requests: Option<u64>,
    /// A flush after every so many writes; two rhythms may be combined.
    pub flush_every: [Option<u64>; 2],
    /// A flush at the end.
    pub flush_at_end: bool,
    /// Writes are durable before they complete.
    pub fua: bool,
    /// Placement handles of writes.
    pub handles: Handles,
    /// Seed.
    pub seed: u64,
}

/// How many requests one pause comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// The pause, after all requests in flight were done \[ns\].
    pub pause_ns: u64,
    /// Requests between pauses.
    pub every: u64,
    /// Requests are counted when they are issued, not when they complete.
    pub by_issue: bool,
}

/// An upper bound on the speed of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bytes per second.
    Bytes(u64),
    /// Requests per second.
    Requests(u64),
}

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSpec {
    /// Name.
    pub name: String,
    /// Row of results it belongs to.
    pub row: u32,
    /// Jobs of a group start when all jobs of the groups before have ended.
    pub group: u32,
    /// What it asks for.
    pub stream: StreamSpec,
    /// Requests in flight.
    pub queue_depth: u32,
    /// Starts no earlier \[ns\].
    pub start_delay_ns: u64,
    /// Starts to count so long after its start \[ns\].
    pub ramp_ns: u64,
    /// Ends so long after its start and warm-up \[ns\].
    pub runtime_ns: Option<u64>,
    /// Pauses.
    pub think: Option<Think>,
    /// Rates, by direction.
    pub rates: [Option<Rate>; 3],
    /// Requests that a rate spaces arrive at random (a Poisson process), not evenly.
    pub poisson: bool,
    /// All jobs end when this one does.
    pub exit_all: bool,
}

impl JobSpec {
    /// Whether this is a plain closed loop: requests in flight, and nothing about time.
    pub fn is_plain(&self) -> bool {
        let s = &self.stream;
        self.start_delay_ns == 0
            && self.ramp_ns == 0
            && self.runtime_ns.is_none()
            && self.think.is_none()
            && self.rates == [None; 3]
            && s.flush_every == [None; 2]
            && !s.flush_at_end
    }

    /// The job as a spec of the fast generator, if that can make the same stream.
    pub fn synthetic(&self) -> Option<SyntheticSpec> {
        let s = &self.stream;
        let used = |d: &&Direction| s.mix.has(**d);
        let mut sizes = Direction::ALL.iter().filter(used).map(|&d| &s.sizes[d as usize]);
        let &Sizes::Fixed(block_sectors) = sizes.next()? else { return None };
        let read_percent = match s.mix {
            Mix::Only(Direction::Read) => 100,
            Mix::Only(Direction::Write) => 0,
            Mix::ReadPercent(percent) => percent,
            _ => return None,
        };
        let independent = !s.random_map && s.spread == Spread::Uniform;
        let plain = self.is_plain()
            && sizes.all(|size| *size == Sizes::Fixed(block_sectors))
            && (s.sequential || independent)
            && s.align == [block_sectors; 3]
            && (s.gap_sectors, s.sequencer, s.random_percent) == (0, None, [100; 3])
            && (s.fua, &s.handles) == (false, &Handles::One(0));
        let bytes = s.limit_bytes?.div_ceil(u64::from(block_sectors) * 512);
        plain.then(|| SyntheticSpec {
            read_percent,
            distribution: Distribution::Uniform,
            block_sectors,
            region_start: s.region_start,
            region_sectors: s.region_sectors,
            sequential: s.sequential,
            n_requests: Some(bytes.min(s.limit_requests.unwrap_or(u64::MAX))),
            queue_depth: self.queue_depth,
            seed: s.seed,
        })
    }
}
