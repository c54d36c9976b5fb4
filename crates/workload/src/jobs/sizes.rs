//! Lengths of requests: one length, a range, or a split by percentages.
//!
//! The rules are those of fio's `get_next_buflen`: a range is drawn up to its end plus
//! its start, rounded down to a multiple of the start and cut at the end, which makes
//! every multiple equally likely; a length that does not fit before the end of the
//! region is drawn again.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use crate::zipf::mul_shift;

/// Draws before the longest length that fits is taken.
const N_TRIES: u32 = 16;

/// Lengths of the requests of one direction \[sectors\].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Multiples of `min` up to `max`.
    Range {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// Length and percentage; the percentages add up to 100.
    Split(Vec<(u32, u32)>),
}

impl Sizes {
    /// The shortest.
    pub fn min(&self) -> u32 {
        match self {
            Self::Fixed(sectors) => *sectors,
            Self::Range { min, .. } => *min,
            Self::Split(parts) => parts.iter().map(|part| part.0).min().unwrap_or(0),
        }
    }

    /// The longest.
    pub fn max(&self) -> u32 {
        match self {
            Self::Fixed(sectors) => *sectors,
            Self::Range { max, .. } => *max,
            Self::Split(parts) => parts.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }

    /// A length of at most `room`, which holds the shortest.
    #[inline]
    pub(crate) fn draw(&self, room: u64, rng: &mut Xoshiro256PlusPlus) -> u32 {
        if let Self::Fixed(sectors) = self {
            return *sectors;
        }
        let drawn = (0..N_TRIES).map(|_| self.draw_any(rng)).find(|&n| u64::from(n) <= room);
        drawn.unwrap_or_else(|| self.longest_within(room))
    }

    fn draw_any(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self {
            Self::Fixed(sectors) => *sectors,
            Self::Range { min, max } => {
                let n = u64::from(*min) + mul_shift(rng.next_u64(), u64::from(*max));
                ((n - n % u64::from(*min)) as u32).min(*max)
            }
            Self::Split(parts) => {
                let mut at = mul_shift(rng.next_u64(), 100) as u32;
                for &(sectors, percent) in parts {
                    if at < percent {
                        return sectors;
                    }
                    at -= percent;
                }
                self.min()
            }
        }
    }

    fn longest_within(&self, room: u64) -> u32 {
        let fits = |sectors: u32| u64::from(sectors) <= room;
        match self {
            Self::Fixed(sectors) => *sectors,
            Self::Range { min, max } if !fits(*max) => {
                ((room - room % u64::from(*min)) as u32).max(*min)
            }
            Self::Range { max, .. } => *max,
            Self::Split(parts) => {
                let fitting = parts.iter().map(|part| part.0).filter(|&sectors| fits(sectors));
                fitting.max().unwrap_or(self.min())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    fn shares(sizes: &Sizes, room: u64) -> Vec<(u32, f64)> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut counts = std::collections::BTreeMap::new();
        (0..100_000).for_each(|_| *counts.entry(sizes.draw(room, &mut rng)).or_insert(0) += 1);
        counts.into_iter().map(|(sectors, n)| (sectors, f64::from(n) / 100_000.0)).collect()
    }

    #[test]
    fn ranges_are_even_and_splits_follow_their_percentages() {
        for (sizes, expected) in [
            (Sizes::Range { min: 8, max: 32 }, vec![(8, 0.25), (16, 0.25), (24, 0.25), (32, 0.25)]),
            // Cut at an end that is no multiple of the start.
            (Sizes::Range { min: 8, max: 20 }, vec![(8, 0.4), (16, 0.4), (20, 0.2)]),
            (Sizes::Split(vec![(16, 10), (8, 90)]), vec![(8, 0.9), (16, 0.1)]),
        ] {
            let found = shares(&sizes, 1000);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for ((n, share), (sectors, part)) in found.into_iter().zip(expected) {
                assert!(n == sectors && (share - part).abs() < 0.01, "{n}: {share}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_drawn() {
        assert_eq!(shares(&Sizes::Range { min: 8, max: 800 }, 12), [(8, 1.0)]);
        assert_eq!(shares(&Sizes::Split(vec![(8, 0), (64, 100)]), 10), [(8, 1.0)]);
    }
}
