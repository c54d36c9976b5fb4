//! Random addresses of a job: independent draws from a distribution, or every block
//! once per pass.
//!
//! A block stands for the shortest request. Where every request is one block long, a
//! pass is a permutation that takes no memory. Where requests differ in length, a bit for
//! each block says what was touched: as in fio, a request goes to the first free block
//! from a random one on, and is cut before the next touched block.
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
        let found = self.maps.iter().position(|map| map.serves(grid));
        let varied = u64::from(spec.sizes[d].max()) > grid.block_sectors;
        let at = found.unwrap_or_else(|| {
            self.maps.push(Map::new(grid, rng));
            self.maps.len() - 1
        });
        if varied {
            self.maps[at].keep_bits();
        }
        self.map_of[d] = at;
    }

    /// A block of the region as its first sector; `None`: the pass is over.
    #[inline]
    pub(crate) fn draw(&mut self, d: Direction, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let grid = self.by_direction[d as usize];
        if !self.maps.is_empty() {
            let block = self.maps[self.map_of[d as usize]].next(rng)?;
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

/// Every block once.
#[derive(Clone, Debug)]
struct Map {
    block_sectors: u64,
    n_blocks: u64,
    order: Permutation,
    /// Blocks taken from the order.
    n_taken: u64,
    /// Where requests may touch more than their first block, instead of the order.
    touched: Option<Touched>,
}

impl Map {
    fn new(grid: Grid, rng: &mut Xoshiro256PlusPlus) -> Self {
        let Grid { block_sectors, n_blocks } = grid;
        let order = Permutation::new(n_blocks, rng);
        Self { block_sectors, n_blocks, order, n_taken: 0, touched: None }
    }

    /// Whether another direction with these blocks may share the map.
    fn serves(&self, grid: Grid) -> bool {
        (self.block_sectors, self.n_blocks) == (grid.block_sectors, grid.n_blocks)
    }

    fn keep_bits(&mut self) {
        let n_blocks = self.n_blocks;
        self.touched.get_or_insert_with(|| Touched::new(n_blocks));
    }

    #[inline]
    fn next(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        if let Some(touched) = &self.touched {
            return touched.free_from(mul_shift(rng.next_u64(), self.n_blocks));
        }
        if self.n_taken == self.n_blocks {
            return None;
        }
        self.n_taken += 1;
        Some(self.order.place(self.n_taken - 1))
    }

    fn claim(&mut self, offset: u64, sectors: u32) -> u32 {
        let Some(touched) = &mut self.touched else { return sectors };
        let first = offset / self.block_sectors;
        let n = u64::from(sectors).div_ceil(self.block_sectors);
        let room = touched.claim(first, n) * self.block_sectors;
        sectors.min(u32::try_from(room).unwrap_or(u32::MAX))
    }

    fn restart(&mut self) {
        self.n_taken = 0;
        if let Some(touched) = &mut self.touched {
            *touched = Touched::new(touched.n_blocks);
        }
    }
}

/// A bit for each block, and a bit for each word of them that is full, so that a free
/// block is found fast when few are left.
#[derive(Clone, Debug)]
struct Touched {
    words: Vec<u64>,
    full: Vec<u64>,
    n_blocks: u64,
}

impl Touched {
    fn new(n_blocks: u64) -> Self {
        let n_words = n_blocks.min(MAP_BLOCKS_MAX).div_ceil(64) as usize;
        let mut touched =
            Self { words: vec![0; n_words], full: vec![0; n_words.div_ceil(64)], n_blocks };
        // What lies behind the last block is not free.
        if let (Some(last), 1..) = (touched.words.last_mut(), n_blocks % 64) {
            *last = u64::MAX << (n_blocks % 64);
        }
        if let (Some(last), 1..) = (touched.full.last_mut(), n_words % 64) {
            *last = u64::MAX << (n_words % 64);
        }
        touched
    }

    /// The first free block from `block` on, or from the start.
    fn free_from(&self, block: u64) -> Option<u64> {
        let word = (block / 64) as usize;
        let above = self.words.get(word)? | ((1 << (block % 64)) - 1);
        if above != u64::MAX {
            return Some(word as u64 * 64 + u64::from(above.trailing_ones()));
        }
        let word = self.word_from(word + 1).or_else(|| self.word_from(0))?;
        Some(word as u64 * 64 + u64::from(self.words[word].trailing_ones()))
    }

    /// The first word from `word` on that is not full.
    fn word_from(&self, word: usize) -> Option<usize> {
        let at = word / 64;
        let first = self.full.get(at)? | ((1 << (word % 64)) - 1);
        if first != u64::MAX {
            return Some(at * 64 + first.trailing_ones() as usize);
        }
        let rest = self.full[at + 1..].iter().position(|full| *full != u64::MAX)?;
        let at = at + 1 + rest;
        Some(at * 64 + self.full[at].trailing_ones() as usize)
    }

    /// Marks up to `n` blocks from a free one on; how many before one that is not.
    fn claim(&mut self, first: u64, n: u64) -> u64 {
        for block in first..first.saturating_add(n) {
            let at = (block / 64) as usize;
            let bit = 1 << (block % 64);
            let free = self.words.get(at).is_some_and(|word| word & bit == 0);
            if !free {
                return (block - first).max(1);
            }
            self.words[at] |= bit;
            if self.words[at] == u64::MAX {
                self.full[at / 64] |= 1 << (at % 64);
            }
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_blocks_are_found_up_to_the_last() {
        for n in [1, 63, 64, 65, 4096, 4097, 10_000] {
            let mut touched = Touched::new(n);
            let mut found = vec![];
            let mut from = 0;
            while let Some(block) = touched.free_from(from) {
                assert_eq!(touched.claim(block, 1), 1);
                found.push(block);
                from = (from + 7919) % n;
            }
            found.sort_unstable();
            assert_eq!(found, (0..n).collect::<Vec<_>>(), "n {n}");
        }
    }
}
