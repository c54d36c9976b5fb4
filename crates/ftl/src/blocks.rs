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
    /// A program of it failed: to be emptied and retired. It gains no space, so it is
    /// no victim like others.
    Failing,
    /// Retired: nothing is written to it any more.
    Bad,
}

/// Top bit of a valid count: the block is not closed.
pub(crate) const NOT_CLOSED: u16 = 1 << 15;

/// One erase that is queued and has not ended, in the upper byte of `written`.
const PENDING_ERASE: u32 = 1 << 24;

/// Arrays over all blocks. The write path touches `count` alone, two bytes a block,
/// so that it stays in the caches of a core even for large drives.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Valid units, and [`NOT_CLOSED`].
    pub(crate) count: Vec<u16>,
    state: Vec<BlockState>,
    /// Frontier of an open block.
    pub(crate) frontier: Vec<u32>,
    /// Units programmed since the last erase that ended, and erases queued since:
    /// until they end the number is about older data.
    written: Vec<u32>,
    /// Append or trim that last took a valid unit away. Kept up to date only where
    /// something asks for it.
    pub(crate) last_change: Vec<u64>,
    /// Erases sent so far.
    pub(crate) n_erases: Vec<u32>,
}

impl Blocks {
    pub(crate) fn new(n: u32) -> Self {
        let n = n as usize;
        Self {
            count: vec![NOT_CLOSED; n],
            state: vec![BlockState::Free; n],
            frontier: vec![0; n],
            written: vec![0; n],
            last_change: vec![0; n],
            n_erases: vec![0; n],
        }
    }

    /// Valid units.
    #[inline]
    pub(crate) fn valid(&self, block: u32) -> u32 {
        u32::from(self.count[block as usize] & !NOT_CLOSED)
    }

    #[inline]
    pub(crate) fn add_valid(&mut self, block: u32, n: u32) {
        self.count[block as usize] += n as u16;
    }

    #[inline]
    pub(crate) fn take_valid(&mut self, block: u32, n: u32) {
        debug_assert!(self.valid(block) >= n);
        self.count[block as usize] -= n as u16;
    }

    pub(crate) fn state(&self, block: u32) -> BlockState {
        self.state[block as usize]
    }

    #[inline]
    pub(crate) fn is_closed(&self, block: u32) -> bool {
        self.count[block as usize] & NOT_CLOSED == 0
    }

    pub(crate) fn set_state(&mut self, block: u32, state: BlockState) {
        self.state[block as usize] = state;
        if state == BlockState::Closed {
            self.count[block as usize] &= !NOT_CLOSED;
        } else {
            self.count[block as usize] |= NOT_CLOSED;
        }
    }

    /// The unit at `offset` is on the media.
    #[inline]
    pub(crate) fn is_programmed(&self, block: u32, offset: u32) -> bool {
        let written = self.written[block as usize];
        offset < written && written < PENDING_ERASE
    }

    /// Units programmed since the last erase that ended.
    pub(crate) fn programmed(&self, block: u32) -> u32 {
        self.written[block as usize] % PENDING_ERASE
    }

    pub(crate) fn set_programmed(&mut self, block: u32, n: u32) {
        self.written[block as usize] = n;
    }

    #[inline]
    pub(crate) fn add_programmed(&mut self, block: u32, n: u32) {
        self.written[block as usize] += n;
    }

    pub(crate) fn has_pending_erase(&self, block: u32) -> bool {
        self.written[block as usize] >= PENDING_ERASE
    }

    pub(crate) fn erase_queued(&mut self, block: u32) {
        let written = &mut self.written[block as usize];
        *written = written.checked_add(PENDING_ERASE).expect("few erases of a block are queued");
    }

    pub(crate) fn erase_ended(&mut self, block: u32) {
        let written = &mut self.written[block as usize];
        *written = (*written - PENDING_ERASE) / PENDING_ERASE * PENDING_ERASE;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.count.len() as u64 * (2 + 1 + 4 + 4 + 8 + 4)
    }
}

/// A block that garbage collection is emptying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) block: u32,
    /// It is emptied for another reason than the space it gains.
    pub(crate) is_due: bool,
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
    /// Units of the write buffer in programs that were sent and have not ended.
    pub(crate) n_queued: u32,
    /// Erases of its blocks so far.
    pub(crate) n_erases: u64,
    /// Units that collection moved.
    pub(crate) n_moved: u64,
    pub(crate) job: Option<Job>,
    /// Blocks in [`BlockState::Waiting`], oldest first.
    pub(crate) waiting: VecDeque<u32>,
    /// First append of every program that has not ended (kept only without power
    /// protection).
    pub(crate) pending_first_seq: VecDeque<u64>,
    /// Closed blocks, oldest first (kept only for first-in-first-out victims).
    pub(crate) closed_order: VecDeque<u32>,
    /// Valid units the die may hold.
    pub(crate) limit: u32,
    /// Blocks to be emptied whatever they hold, oldest first: failing, rarely erased,
    /// often read or old ones. Some may have been emptied since.
    pub(crate) due: VecDeque<u32>,
}

impl DieBlocks {
    pub(crate) fn blank(die: u32, n_blocks: u32, limit: u32) -> Self {
        Self {
            free: (die * n_blocks..(die + 1) * n_blocks).collect(),
            n_valid: 0,
            n_queued: 0,
            n_erases: 0,
            n_moved: 0,
            job: None,
            waiting: VecDeque::new(),
            pending_first_seq: VecDeque::new(),
            closed_order: VecDeque::new(),
            limit,
            due: VecDeque::new(),
        }
    }
}
