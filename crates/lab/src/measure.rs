//! Latencies and the digest of a run.

use hdrhistogram::Histogram;

/// Longest latency told apart from longer ones \[ns\]: one day.
const LATENCY_MAX_NS: u64 = 86_400_000_000_000;

/// Latencies of one kind of request, to three significant digits.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u32>,
    sum_ns: u128,
    max_ns: u64,
    n: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3);
        Self {
            histogram: histogram.expect("constant bounds are valid"),
            sum_ns: 0,
            max_ns: 0,
            n: 0,
        }
    }
}

impl Latencies {
    /// Adds one \[ns\].
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
        self.n += 1;
    }

    /// Adds `count` of the same length \[ns\].
    pub(crate) fn record_n(&mut self, ns: u64, count: u32) {
        self.histogram.saturating_record_n(ns, count);
        self.sum_ns += u128::from(ns) * u128::from(count);
        self.max_ns = self.max_ns.max(ns);
        self.n += u64::from(count);
    }

    /// Forgets all.
    pub(crate) fn reset(&mut self) {
        self.histogram.reset();
        (self.sum_ns, self.max_ns, self.n) = (0, 0, 0);
    }

    /// The shortest latency that cannot be told from `ns`.
    #[inline]
    pub(crate) fn lowest_like(&self, ns: u64) -> u64 {
        self.histogram.lowest_equivalent(ns)
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// None yet.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Sum of all \[ns\].
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Mean \[us\]; `None` without requests.
    pub fn mean_us(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64 / 1000.0)
    }

    /// Latency that the part `q` of requests stays within \[us\].
    pub fn quantile_us(&self, q: f64) -> Option<f64> {
        self.quantile_up_to_us(q, self.max_ns)
    }

    /// The same where the longest is known to be `max_ns` \[us\].
    pub(crate) fn quantile_up_to_us(&self, q: f64, max_ns: u64) -> Option<f64> {
        let ns = self.histogram.value_at_quantile(q).min(max_ns);
        (self.n > 0).then(|| ns as f64 / 1000.0)
    }

    /// Longest \[us\].
    pub fn max_us(&self) -> Option<f64> {
        (self.n > 0).then(|| self.max_ns as f64 / 1000.0)
    }
}

/// Hash over everything that must be the same in every run. Not cryptographic: a
/// multiply and a rotation per value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }

    pub(crate) fn hex(self) -> String {
        format!("{:016x}", self.0 ^ self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth_and_never_above_the_maximum() {
        let mut l = Latencies::default();
        assert_eq!((l.mean_us(), l.quantile_us(0.5), l.max_us()), (None, None, None));
        for us in 1..=1000 {
            l.record(us * 1000);
        }
        assert_eq!(l.mean_us(), Some(500.5));
        for (q, us) in [(0.5, 500.0), (0.99, 990.0), (0.999, 999.0), (1.0, 1000.0)] {
            let found = l.quantile_us(q).unwrap();
            assert!((found / us - 1.0).abs() < 1e-3, "{q}: {found}");
            assert!(found <= l.max_us().unwrap());
        }
        assert_eq!(l.len(), 1000);
    }

    #[test]
    fn a_digest_depends_on_values_and_their_order() {
        let of = |values: &[u64]| {
            let mut d = Digest::new();
            values.iter().for_each(|&v| d.add(v));
            d.hex()
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
    }
}
