//! The smallest of a few dozen keys that change one at a time: a tree of minima in a
//! flat array. A change climbs only as far as it changes a minimum; the smallest is
//! at hand, and whose it is takes one comparison per level.

/// A tree of minima over `u64` keys; of equal keys the lowest index wins.
#[derive(Clone, Debug)]
pub(crate) struct MinTree {
    /// Node i holds the minimum of nodes 2i and 2i + 1; leaves are the upper half.
    nodes: Vec<u64>,
}

impl MinTree {
    /// `n` keys, all at the maximum.
    pub(crate) fn new(n: usize) -> Self {
        Self { nodes: vec![u64::MAX; 2 * n.next_power_of_two()] }
    }

    #[inline]
    pub(crate) fn set(&mut self, index: usize, key: u64) {
        let mut node = index + self.nodes.len() / 2;
        self.nodes[node] = key;
        while node > 1 {
            node /= 2;
            let least = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if self.nodes[node] == least {
                return;
            }
            self.nodes[node] = least;
        }
    }

    #[inline]
    pub(crate) fn min(&self) -> (usize, u64) {
        let n_leaves = self.nodes.len() / 2;
        let least = self.nodes[1];
        let mut node = 1;
        while node < n_leaves {
            node = 2 * node + usize::from(self.nodes[2 * node] != least);
        }
        (node - n_leaves, least)
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
