//! One generator for the classic closed-loop workloads: sequential, uniform random and
//! Zipf, with a mix of reads and writes.
//!
//! It feeds loops of ten million requests per second, so a request costs one or two
//! draws of xoshiro256++ and a multiplication; nothing is allocated after creation.
//! Random addresses are independent draws: a block may come twice before another comes
//! once (fio's `norandommap`), which is what steady-state write amplification is
//! defined for.
//!
//! Invariants: the same spec yields the same stream (Zipf: on the same platform's
//! power function); every request lies within the region, is one block long and starts
//! on a block boundary of the region. A remainder of the region shorter than a block
//! is not touched.

use flashwise_hint::Lba;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::zipf::{Scatter, Zipf, mul_shift};
use crate::{MAX_SECTORS, OpKind, Request, Source, WorkloadError};

/// How random addresses are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Every block equally likely.
    Uniform,
    /// The k-th hottest block with weight k^-theta; hot blocks are scattered over the
    /// region.
    Zipf {
        /// Skew, above 0 and at most 20; 0 would be uniform.
        theta: f64,
    },
}

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticSpec {
    /// Share of reads \[percent of requests\]; the others are writes.
    pub read_percent: u32,
    /// Spread of random addresses; without effect if `sequential`.
    pub distribution: Distribution,
    /// Length of every request \[512-byte sectors\].
    pub block_sectors: u32,
    /// First sector of the region.
    pub region_start: u64,
    /// Length of the region \[512-byte sectors\].
    pub region_sectors: u64,
    /// Ascending addresses that start over at the end of the region. Reads and writes
    /// have a position each, as in fio.
    pub sequential: bool,
    /// Number of requests; `None`: without end.
    pub n_requests: Option<u64>,
    /// Requests the host keeps in flight; for the consumer, the stream is the same.
    pub queue_depth: u32,
    /// Seed of the stream.
    pub seed: u64,
}

impl SyntheticSpec {
    /// Uniform random 4 KiB writes without end over `region_sectors`, 32 in flight: the
    /// workload that steady state is measured with, and a base to vary from.
    pub const fn random_write(region_sectors: u64, seed: u64) -> Self {
        Self {
            read_percent: 0,
            distribution: Distribution::Uniform,
            block_sectors: 8,
            region_start: 0,
            region_sectors,
            sequential: false,
            n_requests: None,
            queue_depth: 32,
            seed,
        }
    }

    /// Checks every field against its range.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let refuse = |key, expected: &str, found: String| {
            Err(WorkloadError::Parameter { key, found: found.into(), expected: expected.into() })
        };
        if self.read_percent > 100 {
            return refuse("read_percent", "0 to 100", self.read_percent.to_string());
        }
        if self.block_sectors == 0 {
            return refuse("block_sectors", "at least 1", "0".to_owned());
        }
        if self.queue_depth == 0 {
            return refuse("queue_depth", "at least 1", "0".to_owned());
        }
        if self.region_sectors < u64::from(self.block_sectors) {
            let found = format!("{} with blocks of {}", self.region_sectors, self.block_sectors);
            return refuse("region_sectors", "at least one block", found);
        }
        match self.region_start.checked_add(self.region_sectors) {
            Some(end) if end <= MAX_SECTORS => {}
            _ => {
                let found = format!("{} + {}", self.region_start, self.region_sectors);
                return refuse("region_start + region_sectors", "at most 2^55 - 1", found);
            }
        }
        match self.distribution {
            Distribution::Zipf { theta } if !(theta > 0.0 && theta <= 20.0) => {
                refuse("theta", "above 0 and at most 20", theta.to_string())
            }
            _ => Ok(()),
        }
    }
}

/// A stream of requests made to a [`SyntheticSpec`].
#[derive(Clone, Debug)]
pub struct Synthetic {
    spec: SyntheticSpec,
    rng: Xoshiro256PlusPlus,
    pattern: Pattern,
    /// Requests to come; `u64::MAX` is without end.
    left: u64,
}

/// Everything a draw needs besides randomness.
#[derive(Clone, Debug)]
struct Pattern {
    addresses: Addresses,
    mix: Mix,
    n_blocks: u64,
    start: u64,
    block_sectors: u64,
}

#[derive(Clone, Debug)]
enum Addresses {
    Sequential { next_read: u64, next_write: u64 },
    Uniform,
    Zipf(Box<(Zipf, Scatter)>),
}

#[derive(Clone, Copy, Debug)]
enum Mix {
    Only(OpKind),
    /// A draw below this is a read.
    ReadBelow(u64),
}

impl Synthetic {
    /// Checks the spec and prepares its tables.
    pub fn new(spec: SyntheticSpec) -> Result<Self, WorkloadError> {
        spec.validate()?;
        let n_blocks = spec.region_sectors / u64::from(spec.block_sectors);
        let addresses = match spec.distribution {
            _ if spec.sequential => Addresses::Sequential { next_read: 0, next_write: 0 },
            Distribution::Uniform => Addresses::Uniform,
            Distribution::Zipf { theta } => {
                Addresses::Zipf(Box::new((Zipf::new(n_blocks, theta), Scatter::new(n_blocks))))
            }
        };
        let mix = match spec.read_percent {
            0 => Mix::Only(OpKind::Write),
            100 => Mix::Only(OpKind::Read),
            percent => Mix::ReadBelow(((u128::from(percent) << 64) / 100) as u64),
        };
        Ok(Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(spec.seed),
            left: spec.n_requests.unwrap_or(u64::MAX),
            pattern: Pattern {
                addresses,
                mix,
                n_blocks,
                start: spec.region_start,
                block_sectors: u64::from(spec.block_sectors),
            },
            spec,
        })
    }

    /// What is generated.
    pub fn spec(&self) -> &SyntheticSpec {
        &self.spec
    }

    /// Writes the next requests to the front of `out` and returns how many: all of
    /// `out`, or fewer at the end of the stream. The stream is the same as one by one.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        // A copy of the state stays in registers for the whole batch.
        let mut rng = self.rng.clone();
        let block_sectors = self.spec.block_sectors;
        for slot in &mut out[..n] {
            let (op, lba) = self.pattern.draw(&mut rng);
            *slot = Request::new(op, lba, block_sectors);
        }
        self.rng = rng;
        self.spend(n as u64);
        n
    }

    fn spend(&mut self, n: u64) {
        if self.spec.n_requests.is_some() {
            self.left -= n;
        }
    }
}

impl Pattern {
    /// Operation and address of the next request. Not the whole request: building that
    /// where it goes saves a copy.
    #[inline]
    fn draw(&mut self, rng: &mut Xoshiro256PlusPlus) -> (OpKind, Lba) {
        let op = match self.mix {
            Mix::Only(op) => op,
            // A select, not a branch: a mix cannot be predicted.
            Mix::ReadBelow(limit) => {
                std::hint::select_unpredictable(rng.next_u64() < limit, OpKind::Read, OpKind::Write)
            }
        };
        let block = match &mut self.addresses {
            Addresses::Uniform => mul_shift(rng.next_u64(), self.n_blocks),
            Addresses::Zipf(tables) => tables.1.place(tables.0.sample(rng)),
            Addresses::Sequential { next_read, next_write } => {
                let next = if op == OpKind::Read { next_read } else { next_write };
                let block = *next;
                *next = if block + 1 == self.n_blocks { 0 } else { block + 1 };
                block
            }
        };
        let lba = self.start + block * self.block_sectors;
        (op, Lba(lba))
    }
}

impl Source for Synthetic {
    #[inline]
    fn next_request(&mut self) -> Result<Option<Request>, WorkloadError> {
        if self.left == 0 {
            return Ok(None);
        }
        let (op, lba) = self.pattern.draw(&mut self.rng);
        self.spend(1);
        Ok(Some(Request::new(op, lba, self.spec.block_sectors)))
    }

    #[inline]
    fn next_batch(&mut self, out: &mut [Request]) -> Result<usize, WorkloadError> {
        Ok(self.fill(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(spec: SyntheticSpec, n: usize) -> Vec<Request> {
        let mut source = Synthetic::new(spec).unwrap();
        let mut out = Vec::new();
        while out.len() < n
            && let Some(request) = source.next_request().unwrap()
        {
            out.push(request);
        }
        out
    }

    fn base() -> SyntheticSpec {
        SyntheticSpec { region_start: 1000, ..SyntheticSpec::random_write(8 * 100 + 5, 42) }
    }

    #[test]
    fn the_same_seed_gives_the_same_stream_and_another_seed_another() {
        for distribution in [Distribution::Uniform, Distribution::Zipf { theta: 1.1 }] {
            let spec = SyntheticSpec { distribution, read_percent: 30, ..base() };
            assert_eq!(take(spec, 500), take(spec, 500));
            assert_ne!(take(spec, 500), take(SyntheticSpec { seed: 43, ..spec }, 500));
        }
        // The stream is part of what results depend on: it may not drift unnoticed.
        let lbas: Vec<u64> = take(base(), 4).iter().map(|request| request.lba.0).collect();
        assert_eq!(lbas, GOLDEN_LBAS);
    }

    /// Computed apart from this crate, from the definitions of SplitMix64 (which expands the
    /// seed) and xoshiro256++.
    const GOLDEN_LBAS: [u64; 4] = [1648, 1248, 1784, 1560];

    #[test]
    fn batches_and_single_steps_are_one_stream() {
        let spec = SyntheticSpec { n_requests: Some(1003), read_percent: 50, ..base() };
        let single = take(spec, usize::MAX);
        assert_eq!(single.len(), 1003);
        let mut source = Synthetic::new(spec).unwrap();
        let mut batch = [single[0]; 32];
        let mut all = Vec::new();
        loop {
            match source.fill(&mut batch) {
                0 => break,
                n => all.extend_from_slice(&batch[..n]),
            }
        }
        assert_eq!(all, single);
        assert_eq!(source.next_request().unwrap(), None);
    }

    #[test]
    fn requests_stay_in_the_region_and_on_its_blocks() {
        for distribution in [Distribution::Uniform, Distribution::Zipf { theta: 0.9 }] {
            for request in take(SyntheticSpec { distribution, ..base() }, 5000) {
                assert!(request.lba.0 >= 1000 && request.end() <= 1800);
                assert_eq!((request.lba.0 - 1000) % 8, 0);
                assert_eq!((request.sectors, request.at_ns), (8, 0));
            }
        }
    }

    #[test]
    fn uniform_is_uniform_and_the_mix_is_the_mix() {
        let n = 1_000_000;
        let spec = SyntheticSpec { read_percent: 70, ..base() };
        let mut counts = [[0_u64; 100]; 2];
        for request in take(spec, n) {
            let block = (request.lba.0 - 1000) / 8;
            counts[usize::from(request.op == OpKind::Read)][block as usize] += 1;
        }
        let reads: u64 = counts[1].iter().sum();
        assert!((reads as f64 / n as f64 - 0.7).abs() < 0.003, "{reads}");
        for (row, share) in counts.iter().zip([0.3, 0.7]) {
            let mean = n as f64 * share / 100.0;
            let chi: f64 = row.iter().map(|&c| (c as f64 - mean).powi(2) / mean).sum();
            // 99 degrees of freedom: mean 99, standard deviation 14.
            assert!((40.0..170.0).contains(&chi), "{chi}");
        }
    }

    #[test]
    fn zipf_makes_few_blocks_hot_and_scatters_them() {
        let distribution = Distribution::Zipf { theta: 1.2 };
        let spec = SyntheticSpec { distribution, ..SyntheticSpec::random_write(8 * 10_000, 3) };
        let mut counts = vec![0_u64; 10_000];
        for request in take(spec, 500_000) {
            counts[(request.lba.0 / 8) as usize] += 1;
        }
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by_key(|&block| std::cmp::Reverse(counts[block]));
        let head: u64 = order[..100].iter().map(|&block| counts[block]).sum();
        // H(100, 1.2) / H(10000, 1.2) = 3.603 / 4.798.
        assert!((head as f64 / 500_000.0 - 0.751).abs() < 0.01, "{head}");
        let lower_half = order[..100].iter().filter(|&&block| block < 5_000).count();
        assert!((25..=75).contains(&lower_half), "{lower_half}");
    }

    #[test]
    fn sequential_wraps_with_a_position_per_direction() {
        let spec = SyntheticSpec { sequential: true, region_sectors: 8 * 3, ..base() };
        let lbas: Vec<u64> = take(spec, 5).iter().map(|request| request.lba.0).collect();
        assert_eq!(lbas, [1000, 1008, 1016, 1000, 1008]);
        let mut next = [1000; 2];
        for request in take(SyntheticSpec { read_percent: 50, ..spec }, 200) {
            let position = &mut next[usize::from(request.op == OpKind::Read)];
            assert_eq!(request.lba.0, *position);
            *position = if *position == 1016 { 1000 } else { *position + 8 };
        }
    }

    #[test]
    fn every_field_out_of_range_is_named() {
        let bad = [
            ("read_percent", SyntheticSpec { read_percent: 101, ..base() }),
            ("block_sectors", SyntheticSpec { block_sectors: 0, ..base() }),
            ("queue_depth", SyntheticSpec { queue_depth: 0, ..base() }),
            ("region_sectors", SyntheticSpec { region_sectors: 7, ..base() }),
            ("region_start", SyntheticSpec { region_start: u64::MAX, ..base() }),
            ("theta", SyntheticSpec { distribution: Distribution::Zipf { theta: 0.0 }, ..base() }),
            (
                "theta",
                SyntheticSpec { distribution: Distribution::Zipf { theta: f64::NAN }, ..base() },
            ),
        ];
        for (key, spec) in bad {
            let text = Synthetic::new(spec).unwrap_err().to_string();
            assert!(text.starts_with(key) && text.contains("expected"), "{text}");
        }
    }
}
