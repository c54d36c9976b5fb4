//! Division by a run-time constant without a divide instruction. Addresses are
//! split into die, block and page on every host page, and geometries are not
//! powers of two. Method: Lemire, Kaser, Kurz, "Faster remainder by direct
//! computation", 2019 (exact for every 32-bit numerator). Cost: one wide multiply.

/// Divides `u32` values by a fixed divisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastDiv {
    divisor: u32,
    magic: u64,
}

impl FastDiv {
    /// A divider by `divisor`.
    ///
    /// # Panics
    /// If `divisor` is 0.
    pub const fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "a divisor is positive");
        // For 1 the magic wraps to 0, which `div` takes as "by one".
        Self { divisor, magic: (u64::MAX / divisor as u64).wrapping_add(1) }
    }

    /// The divisor.
    #[inline]
    pub const fn divisor(self) -> u32 {
        self.divisor
    }

    /// `n / divisor`.
    #[inline]
    pub const fn div(self, n: u32) -> u32 {
        if self.magic == 0 { n } else { ((self.magic as u128 * n as u128) >> 64) as u32 }
    }

    /// `(n / divisor, n % divisor)`.
    #[inline]
    pub const fn div_rem(self, n: u32) -> (u32, u32) {
        let q = self.div(n);
        (q, n - q * self.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_divide_instruction() {
        let edges = |d: u32| {
            [
                0,
                1,
                d - 1,
                d,
                d.saturating_add(1),
                d.saturating_mul(3) / 2,
                1 << 31,
                u32::MAX - 1,
                u32::MAX,
            ]
        };
        for d in (1..2000).chain([4096, 98_304, 1 << 31, (1 << 31) - 1, u32::MAX]) {
            let f = FastDiv::new(d);
            for n in edges(d).into_iter().chain((0..500).map(|i| i * 8_589_935)) {
                assert_eq!(f.div_rem(n), (n / d, n % d), "{n} by {d}");
            }
        }
    }
}
