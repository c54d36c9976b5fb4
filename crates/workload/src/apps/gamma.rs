//! Random numbers with a gamma distribution, which filebench draws file sizes, directory
//! widths and directory depths from.
//!
//! Method: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM
//! TOMS 26(3), 2000: a normal number is transformed and accepted with a probability near
//! one; shapes below one are reached by their section 6. Normal numbers come from
//! Marsaglia's polar method (Marsaglia and Bray, SIAM Review 6(3), 1964). Filebench uses
//! algorithms A and G of Knuth (volume 2); the distribution is the same, the numbers are
//! not.
//!
//! Invariant: the same generator state gives the same number on one platform; platforms
//! may differ in the last digit of a logarithm. Cost: below 100 ns; drawn only when an
//! application is built.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

/// Gamma numbers of one shape and mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gamma {
    shape: f64,
    /// Mean divided by shape.
    scale: f64,
}

impl Gamma {
    /// `shape` above 0, `mean` at least 0; their variance is `mean` squared / `shape`.
    pub(super) fn new(shape: f64, mean: f64) -> Self {
        assert!(shape > 0.0 && mean >= 0.0, "a gamma distribution of {shape}, {mean}");
        Self { shape, scale: mean / shape }
    }

    /// One number, at least 0.
    pub(super) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        if self.shape >= 1.0 {
            return self.scale * standard(self.shape, rng);
        }
        let power = uniform(rng).powf(1.0 / self.shape);
        self.scale * standard(self.shape + 1.0, rng) * power
    }
}

/// Gamma of scale one; `shape` at least 1.
fn standard(shape: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = normal(rng);
        let base = 1.0 + c * normal;
        if base <= 0.0 {
            continue;
        }
        let cube = base * base * base;
        let bound = 0.5 * normal * normal + d * (1.0 - cube + cube.ln());
        if uniform(rng).ln() < bound {
            return d * cube;
        }
    }
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(rng) - 1.0, 2.0 * uniform(rng) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// Above 0 and below 1.
pub(super) fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// Mean, variance and third central moment of many draws against theory:
    /// a b, a b^2 and 2 a b^3.
    #[test]
    fn moments_are_those_of_the_distribution() {
        for (shape, mean) in [(1.5, 16_384.0), (0.5, 3.0), (1.0, 1.0), (7.0, 0.25)] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
            let gamma = Gamma::new(shape, mean);
            let n = 400_000;
            let draws: Vec<f64> = (0..n).map(|_| gamma.sample(&mut rng)).collect();
            let moment = |k: i32, around: f64| {
                draws.iter().map(|x| (x - around).powi(k)).sum::<f64>() / f64::from(n)
            };
            let scale = mean / shape;
            let near = |found: f64, expected: f64, within: f64| {
                let off = (found / expected - 1.0).abs();
                assert!(off < within, "shape {shape}: {found} instead of {expected}");
            };
            near(moment(1, 0.0), mean, 0.01);
            near(moment(2, mean), shape * scale * scale, 0.02);
            near(moment(3, mean), 2.0 * shape * scale.powi(3), 0.08);
            assert!(draws.iter().all(|x| *x >= 0.0));
        }
    }
}
