//! State of every block, in separate arrays, and the block lists of every die.

use std::collections::VecDeque;

/// What a block is used for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockState {
    /// Blank, or about to be.
    Free,
    /// A frontier writes to it.
    Open,
    /// Full; garbage collection may choose it.
    Closed,
    /// Being emptied by garbage collection.
    Victim,
    /// Empty, but not to be erased before newer data is safe.
    Waiting,
}

/// Arrays over all blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Valid units.
    pub(crate) valid: Vec<u32>,
    pub(crate) state: Vec<BlockState>,
    /// Frontier of an open block.
    pub(crate) frontier: Vec<u32>,
    /// Units programmed since the last erase that ended.
    pub(crate) programmed: Vec<u32>,
    /// Erases queued and not ended: until then `programmed` is about older data.
    pub(crate) pending_erases: Vec<u8>,
    /// Append or trim that last took a valid unit away.
    pub(crate) last_change: Vec<u64>,
}

impl Blocks {
    pub(crate) fn new(n: u32) -> Self {
        let n = n as usize;
        Self {
            valid: vec![0; n],
            state: vec![BlockState::Free; n],
            frontier: vec![0; n],
            programmed: vec![0; n],
            pending_erases: vec![0; n],
            last_change: vec![0; n],
        }
    }

    /// The unit at `offset` is on the media.
    #[inline]
    pub(crate) fn is_programmed(&self, block: u32, offset: u32) -> bool {
        offset < self.programmed[block as usize] && self.pending_erases[block as usize] == 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.valid.len() as u64 * (4 + 1 + 4 + 4 + 1 + 8)
    }
}

/// A block that garbage collection is emptying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) block: u32,
    /// Next offset to look at.
    pub(crate) next: u32,
    /// Valid units when it was chosen.
    pub(crate) n_valid: u32,
    /// Moves owed for host writes, in units of 1 / (units gained).
    pub(crate) debt: i64,
}

/// Block lists of one die.
#[derive(Clone, Debug)]
pub(crate) struct DieBlocks {
    /// Blank blocks, the one erased longest ago first.
    pub(crate) free: VecDeque<u32>,
    /// Valid units on the die.
    pub(crate) n_valid: u32,
    pub(crate) job: Option<Job>,
    /// Blocks in [`BlockState::Waiting`], oldest first.
    pub(crate) waiting: VecDeque<u32>,
    /// First append of every program that has not ended (kept only without power
    /// protection).
    pub(crate) pending_first_seq: VecDeque<u64>,
    /// Closed blocks, oldest first (kept only for first-in-first-out victims).
    pub(crate) closed_order: VecDeque<u32>,
}

impl DieBlocks {
    pub(crate) fn blank(die: u32, n_blocks: u32) -> Self {
        Self {
            free: (die * n_blocks..(die + 1) * n_blocks).collect(),
            n_valid: 0,
            job: None,
            waiting: VecDeque::new(),
            pending_first_seq: VecDeque::new(),
            closed_order: VecDeque::new(),
        }
    }
}
