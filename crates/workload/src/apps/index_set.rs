//! A set of small numbers that finds the next member at or after any number at once.
//!
//! Filebench walks its files in the order of their numbers, around and around, and looks
//! for the next one that is there. A bit per number, with a bit per non-zero word above
//! it, and so on, answers that in one look per level: four levels for sixteen million.
//!
//! Invariant: a bit of a level is set exactly if the word below it is not zero.

/// Numbers in `0..n`, each in or out.
#[derive(Clone, Debug)]
pub(super) struct IndexSet {
    /// Bits, lowest level first; the last level is one word.
    levels: Vec<Vec<u64>>,
}

impl IndexSet {
    /// All of `0..n` out.
    pub(super) fn new(n: u32) -> Self {
        let mut levels = Vec::new();
        let mut n_words = (n as usize).div_ceil(64).max(1);
        loop {
            levels.push(vec![0; n_words]);
            if n_words == 1 {
                return Self { levels };
            }
            n_words = n_words.div_ceil(64);
        }
    }

    /// Puts a number in.
    pub(super) fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            level[at / 64] &= !(1 << (at % 64));
            if level[at / 64] != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// The smallest member that is not below `from`; else the smallest of all.
    pub(super) fn next_around(&self, from: u32) -> Option<u32> {
        self.at_or_after(from as usize).or_else(|| self.at_or_after(0))
    }

    fn at_or_after(&self, from: usize) -> Option<u32> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / 64)? & (u64::MAX << (at % 64));
            if word != 0 {
                at = at / 64 * 64 + word.trailing_zeros() as usize;
                for below in self.levels[..height].iter().rev() {
                    at = at * 64 + below[at].trailing_zeros() as usize;
                }
                return Some(at as u32);
            }
            at = at / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_a_tree_finds(
            n in 1_u32..20_000,
            steps in prop::collection::vec((any::<bool>(), any::<u32>(), any::<u32>()), 1..300),
        ) {
            let mut set = IndexSet::new(n);
            let mut tree = BTreeSet::new();
            for (put, number, from) in steps {
                let (number, from) = (number % n, from % (n + 70));
                if put {
                    set.insert(number);
                    tree.insert(number);
                } else {
                    set.remove(number);
                    tree.remove(&number);
                }
                let expected = tree.range(from..).next().or_else(|| tree.first()).copied();
                prop_assert_eq!(set.next_around(from), expected);
            }
        }
    }
}
