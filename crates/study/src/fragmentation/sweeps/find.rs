//! Finds the die map of a drive in its stride curve, of which nothing else is known.
//!
//! Reads at multiples of a stride meet a place modulo the stripe that is a multiple of the
//! greatest common divisor of both, and all of those equally. So throughput is a function of
//! that divisor: full while it is no more than what goes to one die, then less with each die
//! that is left out, least at the stripe itself.

/// A stride curve.
pub(super) struct Curve {
    /// Stride \[KiB\] and throughput.
    pub(super) points: Vec<(u64, f64)>,
    /// Reads under way.
    pub(super) depth: usize,
}

/// What a curve says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// Stripe \[KiB\].
    pub(super) stripe_kib: u64,
    /// What goes to one die at a time is no less than this \[KiB\] …
    pub(super) grain_kib: u64,
    /// … and less than this \[KiB\]. In between no stride of the curve divides the stripe.
    pub(super) grain_below_kib: u64,
    /// Dies, by the depth of the deepest dip, were nothing but dies ever waited for.
    pub(super) n_dies: f64,
    /// Throughput at the deepest dip by the full one.
    pub(super) slowest_part: f64,
    /// Largest deviation from the mean of the strides with the same divisor, by that mean.
    pub(super) period_error: f64,
}

/// As slow as the slowest stride, within noise.
const SLOWEST: f64 = 1.15;
/// As fast as the fastest, within noise.
const FULL: f64 = 0.88;

/// The die map behind a curve.
pub(super) fn found(curve: &Curve) -> Found {
    let Curve { points, depth } = curve;
    let full = full_speed(points);
    let slowest = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let at_slowest = points.iter().find(|p| p.1 <= slowest * SLOWEST);
    let stripe_kib = at_slowest.map_or(0, |p| p.0);
    let divisors = || points.iter().filter(|p| stripe_kib.is_multiple_of(p.0));
    let grain_kib = divisors().take_while(|p| p.1 >= full * FULL).last().map_or(0, |p| p.0);
    let grain_below_kib = divisors().find(|p| p.0 > grain_kib).map_or(stripe_kib, |p| p.0);
    Found {
        stripe_kib,
        grain_kib,
        grain_below_kib,
        n_dies: dies(full / slowest, *depth as f64),
        slowest_part: slowest / full,
        period_error: period_error(points, stripe_kib),
    }
}

/// The median of those strides that are odd multiples of the smallest: a stripe of an even
/// number of smallest strides leaves them all dies.
fn full_speed(points: &[(u64, f64)]) -> f64 {
    let mut odd: Vec<f64> = points.iter().step_by(2).map(|p| p.1).collect();
    odd.sort_by(f64::total_cmp);
    odd.get(odd.len() / 2).copied().unwrap_or(0.0)
}

/// Of n dies that `depth` reads choose at random, depth / (depth + n - 1) are busy (the
/// closed network of equal servers with exponential service: Lazowska et al., Quantitative
/// System Performance, 1984, chapter 6); of one die, all. `ratio` is n times that.
fn dies(ratio: f64, depth: f64) -> f64 {
    ratio * (depth - 1.0) / (depth - ratio)
}

fn period_error(points: &[(u64, f64)], stripe_kib: u64) -> f64 {
    let class = |stride: u64| gcd(stride, stripe_kib);
    let error = |&(stride, y): &(u64, f64)| {
        let same = points.iter().filter(|p| class(p.0) == class(stride)).map(|p| p.1);
        let (n, sum) = same.fold((0.0, 0.0), |(n, sum), y| (n + 1.0, sum + y));
        (y * n / sum - 1.0).abs()
    };
    points.iter().map(error).fold(0.0, f64::max)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curve of a drive with so many dies and so much on each, by the formula.
    fn curve(n_dies: u64, grain: u64) -> Curve {
        let stripe = n_dies * grain;
        let at = |stride| {
            let n = (stripe / gcd(stride, stripe)).min(n_dies) as f64;
            (stride, n * 32.0 / (31.0 + n) * 100.0)
        };
        Curve { points: (1..=256).map(|i| at(4 * i)).collect(), depth: 32 }
    }

    #[test]
    fn what_made_a_curve_is_found_in_it() {
        for (n_dies, grain, below) in [
            (32, 32, 64),
            (8, 32, 64),
            (8, 4, 8),
            (16, 16, 32),
            (73, 8, 292),
            (151, 4, 604),
            (5, 20, 100),
            (6, 16, 24),
        ] {
            let f = found(&curve(n_dies, grain));
            assert_eq!(f.stripe_kib, n_dies * grain);
            assert_eq!((f.grain_kib, f.grain_below_kib), (grain, below), "{n_dies} x {grain}");
            assert!((f.n_dies - n_dies as f64).abs() < 1e-6, "{f:?}");
            assert!(f.period_error < 1e-9, "{f:?}");
        }
    }

    #[test]
    fn a_dip_that_a_die_map_cannot_make_is_an_error_of_the_period() {
        let mut with_dip = curve(73, 8);
        with_dip.points[15].1 *= 0.5;
        let f = found(&with_dip);
        assert_eq!(f.stripe_kib, 584);
        assert!(f.period_error > 0.4, "{f:?}");
    }
}
