//! Random addresses of a job: independent draws from a distribution, or every block
//! once per pass.
//!
//! A block stands for the shortest request. Where every request is one block long, a
//! pass is a permutation that takes no memory. Where requests differ in length, a bit
//! for each block says what was touched, and a request is cut before the next touched
//! block, as in fio. Zones have a permutation each; a zone with nothing left hands its
//! requests to the next one.
//!
//! Invariants: addresses lie in the region; without repetition no block comes twice in
//! a pass, and all come.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use super::{Direction, Spread, StreamSpec, Zone};
use crate::zipf::{Permutation, Scatter, Zipf, mul_shift};

/// Most blocks of a pass whose requests differ in length: 2^32, half a GiB of bits.
pub(crate) const MAP_BLOCKS_MAX: u64 = 1 << 32;

/// Where the random requests of a stream go.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    by_direction: [Grid; 3],
    draws: Draws,
    maps: Vec<Map>,
    /// Map of each direction; directions with the same blocks share one.
    map_of: [usize; 3],
}

/// The blocks of one direction.
#[derive(Clone, Copy, Debug)]
struct Grid {
    block_sectors: u64,
    n_blocks: u64,
}

#[derive(Clone, Debug)]
enum Draws {
    Uniform,
    /// Ranks, scattered and rotated, over blocks of one length for all directions.
    Zipf(Box<Zipf>, Hot),
    Pareto(f64, Hot),
    Normal {
        deviation: u64,
        hot: Hot,
    },
    Zoned(Box<[Vec<Zone>; 3]>),
}

/// Where ranks lie.
#[derive(Clone, Copy, Debug)]
struct Hot {
    scatter: Scatter,
    rotation: u64,
    n: u64,
}

impl Hot {
    /// `first`: the rank that `center` names the place of.
    fn new(n: u64, first: u64, center: Option<f64>, rng: &mut Xoshiro256PlusPlus) -> Self {
        let scatter = Scatter::new(n);
        let random = mul_shift(rng.next_u64(), n);
        let rotation = match center {
            None => random,
            Some(part) => {
                let place = ((n as f64 * part) as u64).min(n - 1);
                (place + n - scatter.place(first)) % n
            }
        };
        Self { scatter, rotation, n }
    }

    #[inline]
    fn place(&self, rank: u64) -> u64 {
        (self.scatter.place(rank) + self.rotation) % self.n
    }
}

impl Addresses {
    pub(crate) fn new(spec: &StreamSpec, rng: &mut Xoshiro256PlusPlus) -> Self {
        let grid = |d: Direction| {
            let align = u64::from(spec.align[d as usize]);
            let min = u64::from(spec.sizes[d as usize].min());
            // The last address has to leave room for the shortest request.
            let usable = spec.region_sectors.saturating_sub(min.saturating_sub(align));
            Grid { block_sectors: align, n_blocks: (usable / align).max(1) }
        };
        let by_direction = Direction::ALL.map(grid);
        let used = Direction::ALL.into_iter().filter(|&d| spec.mix.has(d));
        let n = used.clone().map(|d| by_direction[d as usize].n_blocks).min().unwrap_or(1);
        let draws = match &spec.spread {
            Spread::Uniform => Draws::Uniform,
            Spread::Zipf { theta, center } => {
                Draws::Zipf(Box::new(Zipf::new(n, *theta)), Hot::new(n, 0, *center, rng))
            }
            Spread::Pareto { h, center } => {
                Draws::Pareto(h.ln() / (1.0 - h).ln(), Hot::new(n, 0, *center, rng))
            }
            Spread::Normal { deviation_percent, center } => {
                let deviation = ((n as f64 * deviation_percent / 100.0).ceil() as u64).min(n / 2);
                Draws::Normal { deviation, hot: Hot::new(n, n / 2, *center, rng) }
            }
            Spread::Zoned(zones) => Draws::Zoned(zones.clone()),
        };
        let mut addresses = Self { by_direction, draws, maps: vec![], map_of: [0; 3] };
        if spec.random_map {
            for direction in used {
                addresses.add_map(direction, spec, rng);
            }
        }
        addresses
    }

    fn add_map(&mut self, direction: Direction, spec: &StreamSpec, rng: &mut Xoshiro256PlusPlus) {
        let d = direction as usize;
        let grid = self.by_direction[d];
        let zones = match &self.draws {
            Draws::Zoned(zones) => zones[d].iter().map(|zone| grid.blocks_of(zone)).collect(),
            _ => vec![(0, grid.n_blocks)],
        };
        let found = self.maps.iter().position(|map| map.serves(grid, &zones));
        let varied = u64::from(spec.sizes[d].max()) > grid.block_sectors;
        let at = found.unwrap_or_else(|| {
            self.maps.push(Map::new(grid, &zones, rng));
            self.maps.len() - 1
        });
        if varied {
            self.maps[at].keep_bits(grid.n_blocks);
        }
        self.map_of[d] = at;
    }

    /// A block of the region as its first sector; `None`: the pass is over.
    #[inline]
    pub(crate) fn draw(&mut self, d: Direction, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let grid = self.by_direction[d as usize];
        if !self.maps.is_empty() {
            let zone = match &self.draws {
                Draws::Zoned(zones) => draw_zone(&zones[d as usize], rng),
                _ => 0,
            };
            let block = self.maps[self.map_of[d as usize]].next(zone)?;
            return Some(block * grid.block_sectors);
        }
        let block = match &self.draws {
            Draws::Uniform => mul_shift(rng.next_u64(), grid.n_blocks),
            Draws::Zipf(zipf, hot) => hot.place(zipf.sample(rng)),
            Draws::Pareto(power, hot) => {
                let part = unit(rng).powf(*power);
                hot.place((((hot.n - 1) as f64 * part) as u64).min(hot.n - 1))
            }
            Draws::Normal { deviation, hot } => hot.place(normal_rank(hot.n, *deviation, rng)),
            Draws::Zoned(zones) => {
                let zones = &zones[d as usize];
                let (first, n) = grid.blocks_of(&zones[draw_zone(zones, rng)]);
                first + mul_shift(rng.next_u64(), n)
            }
        };
        Some(block * grid.block_sectors)
    }

    /// Marks what a request from `offset` touches; its length, cut before what was
    /// touched already \[sectors\].
    #[inline]
    pub(crate) fn claim(&mut self, d: Direction, offset: u64, sectors: u32) -> u32 {
        match self.maps.get_mut(self.map_of[d as usize]) {
            Some(map) => map.claim(offset, sectors),
            None => sectors,
        }
    }

    /// Starts a pass over.
    pub(crate) fn restart(&mut self) {
        self.maps.iter_mut().for_each(Map::restart);
    }
}

impl Grid {
    /// First block and number of blocks of a zone, at least one.
    fn blocks_of(&self, zone: &Zone) -> (u64, u64) {
        let first = (zone.start / self.block_sectors).min(self.n_blocks - 1);
        let end = (zone.end / self.block_sectors).clamp(first + 1, self.n_blocks);
        (first, end - first)
    }
}

/// A number in 0..=1.
fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 / ((1_u64 << 53) - 1) as f64
}

fn draw_zone(zones: &[Zone], rng: &mut Xoshiro256PlusPlus) -> usize {
    let mut at = mul_shift(rng.next_u64(), 100) as u32;
    for (i, zone) in zones.iter().enumerate() {
        if at < zone.percent {
            return i;
        }
        at -= zone.percent;
    }
    zones.len() - 1
}

/// Source: fio, `lib/gauss.c`.
fn normal_rank(n: u64, deviation: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
    const N_DRAWS: u64 = 12;
    let sum: u128 = (0..N_DRAWS).map(|_| u128::from(mul_shift(rng.next_u64(), n + 1))).sum();
    let mean = sum.div_ceil(u128::from(N_DRAWS)) as i64;
    let mut shift = 0;
    if deviation > 0 {
        shift = mul_shift(rng.next_u64(), deviation) as i64 - (deviation / 2) as i64;
        while !(0..n as i64).contains(&(mean + shift)) && shift != 0 {
            shift /= 2;
        }
    }
    (mean + shift).clamp(0, n as i64 - 1) as u64
}

/// Every block once: an order for each zone, and what was touched out of order.
#[derive(Clone, Debug)]
struct Map {
    block_sectors: u64,
    zones: Vec<Order>,
    /// A bit for each block; empty where a request never touches more than its own.
    touched: Vec<u64>,
    n_blocks: u64,
}

/// The order of one zone.
#[derive(Clone, Copy, Debug)]
struct Order {
    first: u64,
    order: Permutation,
    next: u64,
    n: u64,
}

impl Map {
    fn new(grid: Grid, zones: &[(u64, u64)], rng: &mut Xoshiro256PlusPlus) -> Self {
        let order = |&(first, n)| Order { first, order: Permutation::new(n, rng), next: 0, n };
        let zones: Vec<Order> = zones.iter().map(order).collect();
        let n_blocks = grid.n_blocks;
        let mut map = Self { block_sectors: grid.block_sectors, zones, touched: vec![], n_blocks };
        // Zones that round to the same block need the bits to tell.
        if map.zones.windows(2).any(|pair| pair[0].first + pair[0].n > pair[1].first) {
            map.keep_bits(n_blocks);
        }
        map
    }

    /// Whether another direction with these blocks and zones may share the map.
    fn serves(&self, grid: Grid, zones: &[(u64, u64)]) -> bool {
        let own = self.zones.iter().map(|order| (order.first, order.n));
        self.block_sectors == grid.block_sectors
            && self.n_blocks == grid.n_blocks
            && own.eq(zones.iter().copied())
    }

    fn keep_bits(&mut self, n_blocks: u64) {
        if self.touched.is_empty() {
            self.touched = vec![0; n_blocks.min(MAP_BLOCKS_MAX).div_ceil(64) as usize];
        }
    }

    #[inline]
    fn next(&mut self, zone: usize) -> Option<u64> {
        let n_zones = self.zones.len();
        for i in 0..n_zones {
            let at = if zone + i < n_zones { zone + i } else { zone + i - n_zones };
            let order = &mut self.zones[at];
            while order.next < order.n {
                let block = order.first + order.order.place(order.next);
                order.next += 1;
                let bit = self.touched.get((block / 64) as usize);
                if bit.is_none_or(|word| word >> (block % 64) & 1 == 0) {
                    return Some(block);
                }
            }
        }
        None
    }

    fn claim(&mut self, offset: u64, sectors: u32) -> u32 {
        if self.touched.is_empty() {
            return sectors;
        }
        let first = offset / self.block_sectors;
        let last = (first + u64::from(sectors).div_ceil(self.block_sectors)).min(self.n_blocks);
        let mut block = first;
        while block < last {
            let Some(word) = self.touched.get_mut((block / 64) as usize) else { break };
            let bit = 1 << (block % 64);
            // The first block is free: the order names none that was touched.
            if *word & bit != 0 && block > first {
                break;
            }
            *word |= bit;
            block += 1;
        }
        let room = (block.max(first + 1) - first) * self.block_sectors;
        sectors.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    fn restart(&mut self) {
        self.zones.iter_mut().for_each(|order| order.next = 0);
        self.touched.iter_mut().for_each(|word| *word = 0);
    }
}
