//! What fails, and when: a plan drawn from a seed.
//!
//! Whether an operation fails depends on the seed, the block, how often the block was
//! erased and the place in it, and on nothing else: not on time or on the order of
//! commands. So a run can be repeated, a saved drive fails as the first one would
//! have, and a page that needs a retry needs it until it is rewritten, as on real
//! flash. All off by default.
//!
//! Cost: nothing where the plan is empty; else one hash of four words per operation.

use crate::geometry::BlockId;

/// Parts per million that are certain.
const CERTAIN: u64 = 1_000_000;

/// Chances of failure. A chance is for an unworn block; it grows linearly with the
/// erases of the block to `worn_factor` times as much at the end of its endurance,
/// and on from there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Seed of everything below.
    pub seed: u64,
    /// Blocks that are bad from the start \[ppm\].
    pub factory_bad_ppm: u32,
    /// Programs that fail \[ppm of program operations\].
    pub program_fail_ppm: u32,
    /// Erases that fail \[ppm of erases\].
    pub erase_fail_ppm: u32,
    /// Pages that need another sense \[ppm\]; of those, as many a third, and so on.
    pub read_retry_ppm: u32,
    /// Most additional senses of one read.
    pub read_retries_max: u8,
    /// Growth of the chances over the endurance of a block \[factor\].
    pub worn_factor: f64,
    /// Program / erase cycles of the native cell mode.
    pub endurance: u64,
}

/// What a draw is for, so that draws for one place are independent.
#[derive(Clone, Copy)]
enum Draw {
    FactoryBad = 1,
    Program,
    Erase,
    Retry,
}

impl FaultPlan {
    /// Blocks can become bad.
    pub fn retires_blocks(&self) -> bool {
        self.factory_bad_ppm > 0 || self.program_fail_ppm > 0 || self.erase_fail_ppm > 0
    }

    /// The block is bad from the start.
    pub fn is_factory_bad(&self, block: BlockId) -> bool {
        self.hits(Draw::FactoryBad, self.factory_bad_ppm.into(), block, 0, 0)
    }

    /// Programming the unit at `offset` of a block that was erased `n_erases` times
    /// fails.
    pub fn program_fails(&self, block: BlockId, n_erases: u32, offset: u32) -> bool {
        let ppm = self.grown(self.program_fail_ppm, n_erases);
        self.hits(Draw::Program, ppm, block, n_erases, offset)
    }

    /// The erase that is the `n_erases`th of the block fails.
    pub fn erase_fails(&self, block: BlockId, n_erases: u32) -> bool {
        let ppm = self.grown(self.erase_fail_ppm, n_erases);
        self.hits(Draw::Erase, ppm, block, n_erases, 0)
    }

    /// Additional senses that reading a page takes.
    #[inline]
    pub fn read_retries(&self, block: BlockId, n_erases: u32, page_idx: u32) -> u8 {
        if self.read_retry_ppm == 0 { 0 } else { self.draw_retries(block, n_erases, page_idx) }
    }

    #[cold]
    fn draw_retries(&self, block: BlockId, n_erases: u32, page_idx: u32) -> u8 {
        let ppm = self.grown(self.read_retry_ppm, n_erases);
        let again = |n: &u8| {
            let at = page_idx * 256 + u32::from(*n);
            self.hits(Draw::Retry, ppm, block, n_erases, at)
        };
        (0..self.read_retries_max).take_while(again).count() as u8
    }

    fn grown(&self, ppm: u32, n_erases: u32) -> u64 {
        let used = f64::from(n_erases) / self.endurance.max(1) as f64;
        let grown = f64::from(ppm) * (1.0 + (self.worn_factor - 1.0).max(0.0) * used);
        (grown as u64).min(CERTAIN)
    }

    fn hits(&self, what: Draw, ppm: u64, block: BlockId, n_erases: u32, at: u32) -> bool {
        let place = u64::from(block.0) << 32 | u64::from(at);
        let when = u64::from(n_erases) << 8 | what as u64;
        let drawn = mix(mix(mix(self.seed) ^ place) ^ when);
        ((u128::from(drawn) * u128::from(CERTAIN)) >> 64) < u128::from(ppm)
    }
}

/// The finaliser of SplitMix64. Source: Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: FaultPlan = FaultPlan {
        seed: 7,
        factory_bad_ppm: 20_000,
        program_fail_ppm: 1000,
        erase_fail_ppm: 10_000,
        read_retry_ppm: 250_000,
        read_retries_max: 3,
        worn_factor: 10.0,
        endurance: 3000,
    };

    fn share(n: u32, hit: impl Fn(u32) -> bool) -> f64 {
        f64::from((0..n).filter(|&i| hit(i)).count() as u32) / f64::from(n)
    }

    #[test]
    fn shares_are_what_the_plan_says_and_grow_with_wear() {
        let n = 400_000;
        let bad = share(n, |i| PLAN.is_factory_bad(BlockId(i)));
        assert!((0.019..0.021).contains(&bad), "{bad}");
        let new = share(n, |i| PLAN.program_fails(BlockId(i / 64), 0, i % 64));
        assert!((0.0008..0.0012).contains(&new), "{new}");
        let worn = share(n, |i| PLAN.program_fails(BlockId(i / 64), 3000, i % 64));
        assert!((0.0095..0.0105).contains(&worn), "{worn}");
        let erase = share(n, |i| PLAN.erase_fails(BlockId(i), 1500));
        assert!((0.054..0.056).contains(&erase), "{erase}");
    }

    #[test]
    fn a_quarter_of_the_pages_that_were_sensed_need_another_sense() {
        let counts = (0..100_000).fold([0u32; 5], |mut counts, i| {
            counts[usize::from(PLAN.read_retries(BlockId(i / 100), 0, i % 100))] += 1;
            counts
        });
        let expected = [75_000.0, 18_750.0, 4687.5, 1562.5, 0.0];
        for (n, e) in counts.into_iter().zip(expected) {
            assert!((f64::from(n) - e).abs() <= 5.0 * f64::sqrt(e), "{counts:?}");
        }
    }

    #[test]
    fn seeds_and_purposes_are_independent_and_an_empty_plan_never_fails() {
        let other = FaultPlan { seed: 8, ..PLAN };
        let both =
            share(100_000, |i| PLAN.is_factory_bad(BlockId(i)) && other.is_factory_bad(BlockId(i)));
        assert!(both < 0.001, "{both}");
        let none = FaultPlan::default();
        assert!(!none.retires_blocks());
        assert!((0..1000).all(|i| !none.is_factory_bad(BlockId(i))
            && !none.program_fails(BlockId(i), 9999, 0)
            && !none.erase_fails(BlockId(i), 9999)
            && none.read_retries(BlockId(i), 9999, 0) == 0));
        let all = FaultPlan { erase_fail_ppm: 1_000_000, ..none };
        assert!((0..1000).all(|i| all.erase_fails(BlockId(i), 0)));
    }
}
