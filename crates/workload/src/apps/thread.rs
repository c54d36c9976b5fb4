//! The state of one thread of a personality.

use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;

/// A descriptor of a thread, and the file behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descriptor {
    /// It is open.
    pub(super) open: bool,
    /// File set.
    pub(super) set: usize,
    /// File of the set.
    pub(super) file: u32,
    /// Where the next sequential read starts \[bytes\].
    pub(super) at: u64,
}

/// The call that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// None, or one whose end changes nothing.
    Nothing,
    /// A file is opened, or made.
    Open { slot: u32, set: usize, file: u32, create: bool },
    /// A descriptor is closed.
    Close { slot: u32 },
    /// A file is unlinked.
    Delete { set: usize, file: u32 },
    /// A file is asked about.
    Stat { set: usize, file: u32 },
    /// A write that ends at this byte.
    Write { slot: u32, end: u64 },
    /// An append.
    Append { slot: u32 },
    /// A piece of a file read whole; `last` if nothing is expected.
    ReadWhole { slot: u32, last: bool },
    /// A read of its own; `sequential` if it moves the position of the descriptor.
    Read { slot: u32, sequential: bool },
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Which of the programs.
    pub(super) program: usize,
    /// Flowop of the program.
    pub(super) pc: usize,
    /// How often the flowop was done already, of `Step::times`.
    pub(super) times: u32,
    /// Amid the flowop: what is drawn or begun stays.
    pub(super) begun: bool,
    /// Opening a file for the flowop failed.
    pub(super) failed: bool,
    /// Position of a whole-file flowop, size of an append, next target of a post.
    pub(super) progress: u64,
    /// How often no file was to be had.
    pub(super) n_tries: u32,
    /// Descriptors; `first_fd` plus the index is the number of one.
    pub(super) slots: Vec<Descriptor>,
    pub(super) first_fd: u32,
    /// Slot of the last flowop that takes them in turn.
    pub(super) turn: u32,
    /// Rotation of files of a thread that has its own.
    pub(super) rotor: u32,
    pub(super) waiting: Waiting,
    /// Its semaphore, where it blocks.
    pub(super) semaphore: Option<usize>,
    /// Threads to wake before anything else.
    pub(super) wakes: VecDeque<u32>,
    /// To park after that.
    pub(super) parks: bool,
    /// Operations and bytes since the last limit, and what is paid in advance.
    pub(super) spent_ops: u64,
    pub(super) spent_bytes: u64,
    pub(super) credit_bytes: u64,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl Thread {
    /// At the start of its program.
    pub(super) fn new(
        program: usize,
        n_slots: u32,
        first_fd: u32,
        rng: Xoshiro256PlusPlus,
    ) -> Self {
        Self {
            program,
            pc: 0,
            times: 0,
            begun: false,
            failed: false,
            progress: 0,
            n_tries: 0,
            slots: vec![Descriptor::default(); n_slots as usize],
            first_fd,
            turn: 0,
            rotor: 0,
            waiting: Waiting::Nothing,
            semaphore: None,
            wakes: VecDeque::new(),
            parks: false,
            spent_ops: 0,
            spent_bytes: 0,
            credit_bytes: 0,
            rng,
        }
    }

    /// The file behind an open slot.
    pub(super) fn open_file(&self, slot: u32) -> Option<(usize, u32)> {
        let descriptor = &self.slots[slot as usize];
        descriptor.open.then_some((descriptor.set, descriptor.file))
    }
}
