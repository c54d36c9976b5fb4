//! The smallest of a few dozen keys that change one at a time: a winner tree in a
//! flat array. A change costs one comparison per level, the smallest is at hand.

/// A winner tree over `u64` keys; of equal keys the lowest index wins.
#[derive(Clone, Debug)]
pub(crate) struct MinTree {
    /// Leaves (a power of two of them).
    keys: Vec<u64>,
    /// Winner below each inner node; the root is 1.
    winners: Vec<u16>,
}

impl MinTree {
    /// `n` keys, all at the maximum.
    pub(crate) fn new(n: usize) -> Self {
        let n_leaves = n.next_power_of_two().max(2);
        let mut tree = Self { keys: vec![u64::MAX; n_leaves], winners: vec![0; n_leaves] };
        for node in (1..n_leaves).rev() {
            tree.winners[node] = tree.winner_of(node);
        }
        tree
    }

    #[inline]
    pub(crate) fn set(&mut self, index: usize, key: u64) {
        self.keys[index] = key;
        let mut node = (index + self.keys.len()) / 2;
        while node >= 1 {
            self.winners[node] = self.winner_of(node);
            node /= 2;
        }
    }

    #[inline]
    pub(crate) fn min(&self) -> (usize, u64) {
        let winner = usize::from(self.winners[1]);
        (winner, self.keys[winner])
    }

    #[inline]
    fn winner_of(&self, node: usize) -> u16 {
        let n = self.keys.len();
        let of = |child: usize| if child >= n { (child - n) as u16 } else { self.winners[child] };
        let (left, right) = (of(2 * node), of(2 * node + 1));
        if self.keys[usize::from(right)] < self.keys[usize::from(left)] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_the_minimum() {
        for n in [1, 2, 3, 8, 37, 64] {
            let mut tree = MinTree::new(n);
            let mut keys = vec![u64::MAX; n];
            let mut x = 1u64;
            for _ in 0..2000 {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                let (i, key) = ((x >> 33) as usize % n, (x >> 20) % 50);
                keys[i] = key;
                tree.set(i, key);
                let least = *keys.iter().min().unwrap();
                let at = keys.iter().position(|&k| k == least).unwrap();
                assert_eq!(tree.min(), (at, least));
            }
        }
    }
}
