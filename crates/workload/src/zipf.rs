//! Zipf-distributed ranks, exact and fast, a bijection that spreads them, and random
//! orders that need no memory.
//!
//! Rejection from a staircase: ranks are cut into segments whose bounds differ by at
//! most 1/16, each segment is drawn by an alias table with the weight of its first
//! rank, and a rank inside it is accepted with probability `(rank / first)^-theta`.
//! That probability is above `(17/16)^-theta`, so a comparison with this floor settles
//! nearly all draws and the power function runs only for the rest. Sources: Walker's
//! alias method in Vose's form (IEEE TSE 17(9), 1991). Chosen over the
//! rejection-inversion of Hörmann and Derflinger (ACM TOMACS 6(3), 1996), which takes
//! several power functions per draw.
//!
//! Invariants: P(rank k) is proportional to (k+1)^-theta over `0..n`, without a bias
//! other than that of 64-bit draws. Cost: a table of about 600 entries for any `n`,
//! ten nanoseconds or so per draw.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

/// Ranks that are their own segment: below, a step of 1/16 is less than one rank.
const SINGLES: u64 = 16;

/// A Zipf distribution over `0..n`, rank 0 the most frequent.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    segments: Vec<Segment>,
    /// 64 minus the logarithm of the table size.
    shift: u32,
    theta: f64,
}

/// One column of the alias table and the segment of the same index.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// First rank, from 1.
    first: u64,
    /// Number of ranks.
    len: u64,
    /// A 32-bit draw below this accepts any rank of the segment.
    floor: u64,
    /// Draws in the column below this stay; others go to `alias`.
    stay_below: u64,
    alias: u32,
}

impl Zipf {
    /// `n` at least 1, `theta` finite and positive.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        let mut segments = Vec::new();
        let mut weights = Vec::new();
        let mut first = 1_u64;
        while first <= n {
            let len = if first < SINGLES { 1 } else { first / 16 }.min(n - first + 1);
            let last = (first + len - 1) as f64;
            let floor = ((last / first as f64).powf(-theta) * 4_294_967_296.0) as u64;
            segments.push(Segment { first, len, floor, ..Segment::default() });
            weights.push(len as f64 * (first as f64).powf(-theta));
            first += len;
        }
        let n_columns = segments.len().next_power_of_two().max(2);
        segments.resize(n_columns, Segment::default());
        weights.resize(n_columns, 0.0);
        fill_alias(&mut segments, &weights);
        Self { segments, shift: 64 - n_columns.trailing_zeros(), theta }
    }

    /// One rank.
    #[inline]
    pub(crate) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let draw = rng.next_u64();
            let index = (draw >> self.shift) as usize;
            let within = draw << (64 - self.shift);
            let column = &self.segments[index];
            // A select, not a branch: which way it goes cannot be predicted.
            let chosen = std::hint::select_unpredictable(
                within < column.stay_below,
                index,
                column.alias as usize,
            );
            let segment = &self.segments[chosen];
            if segment.len == 1 {
                return segment.first - 1;
            }
            let draw = rng.next_u64();
            let rank = segment.first + mul_shift(draw, segment.len);
            // The rank uses the high bits and the decision the low ones.
            let low = draw & u64::from(u32::MAX);
            if low < segment.floor || self.accepts(segment.first, rank, low) {
                return rank - 1;
            }
        }
    }

    #[cold]
    fn accepts(&self, first: u64, rank: u64, low: u64) -> bool {
        let chance = (rank as f64 / first as f64).powf(-self.theta);
        (low as f64) < chance * 4_294_967_296.0
    }
}

/// Vose's alias construction: each column keeps its own segment up to its weight and
/// the rest of it belongs to a heavier one.
fn fill_alias(segments: &mut [Segment], weights: &[f64]) {
    let n = segments.len() as f64;
    let total: f64 = weights.iter().sum();
    let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * n / total).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..scaled.len()).partition(|&i| scaled[i] < 1.0);
    while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
        small.pop();
        segments[low].stay_below = (scaled[low] * 18_446_744_073_709_551_616.0) as u64;
        segments[low].alias = high as u32;
        scaled[high] -= 1.0 - scaled[low];
        if scaled[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    // What rounding left over is a full column, or a padding column of no weight.
    let heaviest = (0..weights.len()).max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    for i in small.into_iter().chain(large) {
        let padding = segments[i].len == 0;
        segments[i].stay_below = if padding { 0 } else { u64::MAX };
        segments[i].alias = if padding { heaviest.unwrap_or(0) as u32 } else { i as u32 };
    }
}

/// A uniform draw scaled to `0..n` by multiplication.
#[inline]
pub(crate) fn mul_shift(draw: u64, n: u64) -> u64 {
    ((u128::from(draw) * u128::from(n)) >> 64) as u64
}

/// A bijection of `0..n` that scatters neighbours: steps that are invertible modulo a
/// power of two, repeated until the result falls inside (cycle walking; on average
/// less than two rounds).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    n: u64,
    mask: u64,
    half: u32,
}

impl Scatter {
    pub(crate) fn new(n: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        Self { n, mask, half: (bits / 2).max(1) }
    }

    /// The place of `index`, which is below `n`.
    #[inline]
    pub(crate) fn place(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            // Odd constants of SplitMix64 (Steele et al., OOPSLA 2014).
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x &= self.mask;
            x ^= x >> self.half;
            x = x.wrapping_mul(0x94d0_49bb_1331_11eb) & self.mask;
            x ^= x >> self.half;
            if x < self.n {
                return x;
            }
        }
    }
}

/// A random order of `0..n` in constant memory: keyed steps that are invertible modulo
/// a power of two, with cycle walking as in [`Scatter`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    half: u32,
    /// What is added and what is multiplied by (odd), round by round.
    keys: [(u64, u64); 4],
}

impl Permutation {
    pub(crate) fn new(n: u64, rng: &mut Xoshiro256PlusPlus) -> Self {
        let Scatter { n, mask, half } = Scatter::new(n);
        let keys = std::array::from_fn(|_| (rng.next_u64(), rng.next_u64() | 1));
        Self { n, mask, half, keys }
    }

    /// The element at `index`, which is below `n`.
    #[inline]
    pub(crate) fn place(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            for (add, factor) in self.keys {
                x = x.wrapping_add(add).wrapping_mul(factor) & self.mask;
                x ^= x >> self.half;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// Chi-square per degree of freedom of the first ranks (the rest pooled).
    fn misfit(n: u64, theta: f64, n_draws: u64) -> f64 {
        let zipf = Zipf::new(n, theta);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let n_bins = n.min(400) as usize;
        let mut counts = vec![0_u64; n_bins];
        for _ in 0..n_draws {
            let rank = zipf.sample(&mut rng);
            assert!(rank < n);
            counts[(rank as usize).min(n_bins - 1)] += 1;
        }
        let mut expected = vec![0.0; n_bins];
        for rank in 0..n {
            expected[(rank as usize).min(n_bins - 1)] += (rank as f64 + 1.0).powf(-theta);
        }
        let total: f64 = expected.iter().sum();
        let terms = counts.iter().zip(&expected).map(|(&count, &weight)| {
            let mean = weight / total * n_draws as f64;
            (count as f64 - mean).powi(2) / mean
        });
        terms.sum::<f64>() / (n_bins as f64 - 1.0)
    }

    #[test]
    fn frequencies_follow_the_power_law() {
        for (n, theta) in [(2, 1.0), (17, 0.5), (40, 3.0), (400, 1.0), (1000, 0.99), (100_000, 1.2)]
        {
            // One in a standard deviation of sqrt(2 / bins): 1.6 is over 5 of them
            // where there are many bins, and few bins get more room.
            let bound = if n < 50 { 3.5 } else { 1.6 };
            let misfit = misfit(n, theta, 1_000_000);
            assert!(misfit < bound, "n {n} theta {theta}: {misfit}");
        }
    }

    #[test]
    fn extreme_parameters_still_draw_in_range() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for n in [1, 2, 3, 16, 17, 1 << 55] {
            for theta in [1e-9, 1.0, 20.0] {
                let zipf = Zipf::new(n, theta);
                assert!((0..2000).all(|_| zipf.sample(&mut rng) < n), "n {n} theta {theta}");
            }
        }
    }

    #[test]
    fn scattering_is_a_bijection_and_parts_neighbours() {
        for n in [1, 2, 3, 5, 64, 1000, 4097] {
            let scatter = Scatter::new(n);
            let mut places: Vec<u64> = (0..n).map(|i| scatter.place(i)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..n).collect::<Vec<_>>(), "n {n}");
        }
        let scatter = Scatter::new(1 << 20);
        let near = (0..1000).filter(|&i| scatter.place(i).abs_diff(scatter.place(i + 1)) < 1000);
        assert!(near.count() < 20);
    }

    #[test]
    fn an_order_has_every_element_once_and_looks_random() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for n in [1, 2, 3, 16, 1000, 4097] {
            let order = Permutation::new(n, &mut rng);
            let mut places: Vec<u64> = (0..n).map(|i| order.place(i)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..n).collect::<Vec<_>>(), "n {n}");
        }
        for n in [10_000_u64, 65_536, 100_003] {
            let order = Permutation::new(n, &mut rng);
            // The first tenth of the order falls evenly into sixteenths of the range.
            let mut counts = [0.0_f64; 16];
            let mut steps = 0.0;
            for i in 0..n / 10 {
                counts[(order.place(i) * 16 / n) as usize] += 1.0;
                steps += order.place(i).abs_diff(order.place(i + 1)) as f64;
            }
            let mean = (n / 10) as f64 / 16.0;
            let chi: f64 = counts.iter().map(|c| (c - mean).powi(2) / mean).sum();
            // 15 degrees of freedom: above 44 once in 10,000.
            assert!(chi < 44.0, "n {n}: {chi}");
            // Two random places are a third of the range apart.
            let step = steps / (n / 10) as f64 / n as f64;
            assert!((step - 1.0 / 3.0).abs() < 0.02, "n {n}: {step}");
        }
    }
}
