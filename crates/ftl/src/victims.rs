//! The index garbage collection chooses from, as the victim policy needs it.
//!
//! Greedy asks for the emptiest closed block. Every overwrite would move a block in
//! a sorted structure, and the neighbours it touches there lie in other cache
//! lines. Instead each group of 64 blocks keeps a lower bound of its smallest valid
//! count: an overwrite lowers at most one bound, and a choice looks at the bounds of
//! the die and then into the group that may hold the minimum (about 140 words for a
//! die of 8192 blocks, once per victim).

use crate::blocks::{Blocks, NOT_CLOSED};
use crate::config::FtlConfig;
use crate::gc::VictimPolicy;
use crate::lists::Lists;

const GROUP: u32 = 64;

/// The index.
#[derive(Clone, Debug)]
pub(crate) enum Victims {
    /// For greedy.
    Groups(Groups),
    /// For cost-benefit.
    Lists(Lists),
    /// For first in, first out: the order blocks were closed in is kept with the
    /// die.
    Order,
}

/// Lower bounds of valid counts.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    blocks_per_die: u32,
    per_die: usize,
    /// At most the smallest valid count of the closed blocks in the group.
    bound: Vec<u16>,
    /// Where the search of each die goes on, counted in blocks of the die.
    next: Vec<u32>,
}

impl Victims {
    pub(crate) fn new(cfg: &FtlConfig, units_per_block: u32) -> Self {
        let (n_dies, blocks_per_die) = (cfg.geo.n_dies(), cfg.geo.n_blocks_per_plane);
        match cfg.victim {
            VictimPolicy::Greedy => {
                let per_die = blocks_per_die.div_ceil(GROUP) as usize;
                let bound = vec![NOT_CLOSED; per_die * n_dies as usize];
                let next = vec![0; n_dies as usize];
                Self::Groups(Groups { blocks_per_die, per_die, bound, next })
            }
            VictimPolicy::CostBenefit => {
                Self::Lists(Lists::new(n_dies, cfg.geo.n_blocks(), units_per_block))
            }
            VictimPolicy::Fifo => Self::Order,
        }
    }

    /// A block with `valid` valid units was closed.
    pub(crate) fn insert(&mut self, die: usize, block: u32, valid: u32) {
        match self {
            Self::Groups(g) => g.lower(die, block, valid as u16),
            Self::Lists(l) => l.insert(die, block, valid),
            Self::Order => {}
        }
    }

    /// A closed block was chosen.
    pub(crate) fn remove(&mut self, die: usize, block: u32, valid: u32) {
        if let Self::Lists(l) = self {
            l.remove(die, block, valid);
        }
    }

    /// A unit of a closed block, which had `valid` of them, became invalid.
    #[inline]
    pub(crate) fn decrement(&mut self, die: usize, block: u32, valid: u32) {
        match self {
            Self::Groups(g) => g.lower(die, block, valid as u16 - 1),
            Self::Lists(l) => l.decrement(die, block, valid),
            Self::Order => {}
        }
    }

    /// Forgets what is not part of a saved drive.
    pub(crate) fn rest(&mut self) {
        if let Self::Groups(g) = self {
            g.next.fill(0);
        }
    }

    /// Bytes of the index.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Groups(g) => g.bound.len() as u64 * 2,
            Self::Lists(l) => l.bytes(),
            Self::Order => 0,
        }
    }
}

impl Groups {
    #[inline]
    fn lower(&mut self, die: usize, block: u32, valid: u16) {
        let in_die = block - die as u32 * self.blocks_per_die;
        let bound = &mut self.bound[die * self.per_die + (in_die / GROUP) as usize];
        *bound = (*bound).min(valid);
    }

    /// The closed block of `die` with the fewest valid units, and that number. Equals
    /// take turns: were it always the first, a drive with many empty blocks would wear
    /// out some and never touch others.
    pub(crate) fn emptiest(&mut self, die: usize, blocks: &Blocks) -> Option<(u32, u32)> {
        let first = die as u32 * self.blocks_per_die;
        let bounds = &mut self.bound[die * self.per_die..(die + 1) * self.per_die];
        loop {
            let least = *bounds.iter().min()?;
            if least == NOT_CLOSED {
                return None;
            }
            let from = (self.next[die] / GROUP) as usize;
            let later = bounds[from..].iter().position(|&b| b == least).map(|at| from + at);
            let group = later.or_else(|| bounds.iter().position(|&b| b == least))?;
            let start = first + group as u32 * GROUP;
            let end = (start + GROUP).min(first + self.blocks_per_die);
            let counts = &blocks.count[start as usize..end as usize];
            // Blocks that are not closed have the top bit and are never smallest.
            let found = counts.iter().copied().min()?.min(NOT_CLOSED);
            if found == least {
                let skip = if group == from { (self.next[die] % GROUP) as usize } else { 0 };
                let later = counts.iter().skip(skip).position(|&c| c == found);
                let at = later.map(|at| skip + at);
                let at = at.or_else(|| counts.iter().position(|&c| c == found))? as u32;
                let in_die = start - first + at + 1;
                self.next[die] = if in_die == self.blocks_per_die { 0 } else { in_die };
                return Some((start + at, u32::from(found)));
            }
            bounds[group] = found;
        }
    }
}
