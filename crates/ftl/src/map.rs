//! Logical to physical, physical to logical, and one valid bit per physical unit:
//! 4 + 4 bytes and a bit per unit, in three flat tables. Entries of the first are
//! stored inverted, so that a fresh table is all zeros and costs no memory until
//! it is used.

use flashwise_nand::Ppn;

use crate::memory::{on_huge_pages, prefetch};

/// Reverse-map entry of a place that holds padding.
pub(crate) const PAD: u32 = u32::MAX - 1;

/// The three tables.
#[derive(Debug)]
pub(crate) struct Map {
    l2p_inverted: Vec<u32>,
    p2l: Vec<u32>,
    valid: Vec<u64>,
}

impl Clone for Map {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.n_logical(), self.p2l.len() as u32);
        copy.l2p_inverted.copy_from_slice(&self.l2p_inverted);
        copy.p2l.copy_from_slice(&self.p2l);
        copy.valid.copy_from_slice(&self.valid);
        copy
    }
}

impl Map {
    pub(crate) fn new(n_logical: u32, n_physical: u32) -> Self {
        Self {
            l2p_inverted: on_huge_pages(vec![0; n_logical as usize]),
            p2l: on_huge_pages(vec![0; n_physical as usize]),
            valid: on_huge_pages(vec![0; (n_physical as usize).div_ceil(64)]),
        }
    }

    #[inline]
    pub(crate) fn get(&self, lpn: u32) -> Option<Ppn> {
        let v = self.l2p_inverted[lpn as usize];
        (v != 0).then_some(Ppn(!v))
    }

    /// `lpn` is at `ppn` from now on. The old place, if any, stays marked.
    #[inline]
    pub(crate) fn set(&mut self, lpn: u32, ppn: Ppn) {
        self.l2p_inverted[lpn as usize] = !ppn.0;
        self.p2l[ppn.0 as usize] = lpn;
        self.valid[ppn.0 as usize / 64] |= 1 << (ppn.0 % 64);
    }

    #[inline]
    pub(crate) fn set_pad(&mut self, ppn: Ppn) {
        self.p2l[ppn.0 as usize] = PAD;
    }

    #[inline]
    pub(crate) fn unmap(&mut self, lpn: u32) {
        self.l2p_inverted[lpn as usize] = 0;
    }

    #[inline]
    pub(crate) fn invalidate(&mut self, ppn: Ppn) {
        self.valid[ppn.0 as usize / 64] &= !(1 << (ppn.0 % 64));
    }

    /// Clears the valid bits `bits` of the (at most 64) places from `first`.
    #[inline]
    pub(crate) fn invalidate_bits(&mut self, first: Ppn, bits: u64) {
        let (word, bit) = (first.0 as usize / 64, first.0 % 64);
        self.valid[word] &= !(bits << bit);
        if bit > 0 && bits >> (64 - bit) != 0 {
            self.valid[word + 1] &= !(bits >> (64 - bit));
        }
    }

    #[inline]
    pub(crate) fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[ppn.0 as usize / 64] >> (ppn.0 % 64) & 1 == 1
    }

    #[inline]
    pub(crate) fn lpn_at(&self, ppn: Ppn) -> u32 {
        self.p2l[ppn.0 as usize]
    }

    /// Valid bits of the `n <= 64` places from `first`, lowest first.
    #[inline]
    pub(crate) fn valid_bits(&self, first: Ppn, n: u32) -> u64 {
        debug_assert!(n <= 64);
        let (word, bit) = (first.0 as usize / 64, first.0 % 64);
        let mut bits = self.valid[word] >> bit;
        if bit + n > 64 {
            bits |= self.valid[word + 1] << (64 - bit);
        }
        if n < 64 { bits & ((1 << n) - 1) } else { bits }
    }

    /// Number of valid places among the `n` from `first`.
    pub(crate) fn count_valid(&self, first: Ppn, n: u32) -> u32 {
        let chunks = (0..n).step_by(64);
        chunks.map(|at| self.valid_bits(Ppn(first.0 + at), 64.min(n - at)).count_ones()).sum()
    }

    pub(crate) fn n_logical(&self) -> u32 {
        self.l2p_inverted.len() as u32
    }

    pub(crate) fn n_valid(&self) -> u64 {
        self.valid.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    #[inline]
    pub(crate) fn prefetch_lpn(&self, lpn: u32) {
        prefetch(&self.l2p_inverted, lpn as usize);
    }

    #[inline]
    pub(crate) fn prefetch_ppn(&self, ppn: Ppn) {
        prefetch(&self.valid, ppn.0 as usize / 64);
    }

    #[inline]
    pub(crate) fn prefetch_reverse(&self, ppn: Ppn) {
        prefetch(&self.p2l, ppn.0 as usize);
    }

    /// Bytes the tables occupy when fully used.
    pub(crate) fn bytes(&self) -> u64 {
        (self.l2p_inverted.len() * 4 + self.p2l.len() * 4 + self.valid.len() * 8) as u64
    }

    pub(crate) fn tables(&self) -> (&[u32], &[u32], &[u64]) {
        (&self.l2p_inverted, &self.p2l, &self.valid)
    }

    pub(crate) fn from_tables(l2p_inverted: Vec<u32>, p2l: Vec<u32>, valid: Vec<u64>) -> Self {
        Self { l2p_inverted, p2l, valid }
    }
}
