//! Closed blocks of each die, sorted by how many valid units they hold and, among
//! equals, by last change: what cost-benefit victims are chosen from.
//!
//! One doubly linked list per (die, valid count), intrusive in two arrays, and a
//! bit map of the lists that are not empty: every overwrite moves one block down
//! one list in O(1). A list is in the order of last change (its head changed longest
//! ago), so only the head of each list can be the best, which makes the choice
//! O(valid counts) instead of O(blocks).

const NONE: u32 = u32::MAX;

/// The index.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    n_lists: usize,
    n_words: usize,
    head: Vec<u32>,
    tail: Vec<u32>,
    next: Vec<u32>,
    prev: Vec<u32>,
    occupied: Vec<u64>,
}

impl Lists {
    pub(crate) fn new(n_dies: u32, n_blocks: u32, units_per_block: u32) -> Self {
        let n_lists = units_per_block as usize + 1;
        let n_words = n_lists.div_ceil(64);
        let n_dies = n_dies as usize;
        Self {
            n_lists,
            n_words,
            head: vec![NONE; n_dies * n_lists],
            tail: vec![NONE; n_dies * n_lists],
            next: vec![NONE; n_blocks as usize],
            prev: vec![NONE; n_blocks as usize],
            occupied: vec![0; n_dies * n_words],
        }
    }

    /// Adds a closed block.
    #[inline]
    pub(crate) fn insert(&mut self, die: usize, block: u32, valid: u32) {
        let list = die * self.n_lists + valid as usize;
        let last = self.tail[list];
        self.prev[block as usize] = last;
        self.next[block as usize] = NONE;
        self.tail[list] = block;
        if last == NONE {
            self.head[list] = block;
            self.occupied[die * self.n_words + valid as usize / 64] |= 1 << (valid % 64);
        } else {
            self.next[last as usize] = block;
        }
    }

    /// Takes a block out.
    #[inline]
    pub(crate) fn remove(&mut self, die: usize, block: u32, valid: u32) {
        let list = die * self.n_lists + valid as usize;
        let (prev, next) = (self.prev[block as usize], self.next[block as usize]);
        if prev == NONE {
            self.head[list] = next;
        } else {
            self.next[prev as usize] = next;
        }
        if next == NONE {
            self.tail[list] = prev;
        } else {
            self.prev[next as usize] = prev;
        }
        if self.head[list] == NONE {
            self.occupied[die * self.n_words + valid as usize / 64] &= !(1 << (valid % 64));
        }
    }

    /// A unit of a closed block, which had `valid` of them, became invalid.
    #[inline]
    pub(crate) fn decrement(&mut self, die: usize, block: u32, valid: u32) {
        self.remove(die, block, valid);
        self.insert(die, block, valid - 1);
    }

    /// The block changed longest ago of each valid count, emptiest first.
    pub(crate) fn heads(&self, die: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let words = &self.occupied[die * self.n_words..(die + 1) * self.n_words];
        let lists = words.iter().enumerate().flat_map(|(i, &w)| {
            std::iter::successors((w != 0).then_some(w), |w| {
                let rest = w & (w - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |w| i * 64 + w.trailing_zeros() as usize)
        });
        lists.map(move |valid| (self.head[die * self.n_lists + valid], valid as u32))
    }

    pub(crate) fn bytes(&self) -> u64 {
        let words = self.head.len() + self.tail.len() + self.next.len() + self.prev.len();
        words as u64 * 4 + self.occupied.len() as u64 * 8
    }

    /// All blocks of a die with their list, for checking.
    pub(crate) fn blocks(&self, die: usize) -> Vec<(u32, u32)> {
        let mut all = vec![];
        for valid in 0..self.n_lists {
            let mut block = self.head[die * self.n_lists + valid];
            while block != NONE {
                all.push((block, valid as u32));
                block = self.next[block as usize];
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_a_naive_model() {
        let mut v = Lists::new(2, 40, 130);
        let mut model: Vec<(u32, u32)> = vec![];
        let mut x = 7u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (block, valid) = ((x >> 33) as u32 % 20, (x >> 40) as u32 % 131);
            match model.iter().position(|m| m.0 == block) {
                None => {
                    v.insert(1, block, valid);
                    model.push((block, valid));
                }
                Some(i) if model[i].1 == 0 || x.is_multiple_of(7) => {
                    v.remove(1, block, model[i].1);
                    model.remove(i);
                }
                Some(i) => {
                    v.decrement(1, block, model[i].1);
                    let (block, valid) = model.remove(i);
                    model.push((block, valid - 1));
                }
            }
            // The model is in order of last change: a stable sort gives the lists.
            let mut sorted = model.clone();
            sorted.sort_by_key(|m| m.1);
            assert_eq!(v.blocks(1), sorted);
            assert_eq!(v.heads(1).next(), sorted.first().copied());
            assert!(v.blocks(0).is_empty());
        }
    }
}
