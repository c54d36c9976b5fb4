//! What each flowop does, call by call, and how the end of a call is booked.

use flashwise_hostfs::{Action, Call, Fd, OpenFlags, Outcome};
use rand_xoshiro::rand_core::RngCore;

use super::flow::{Flow, MAX_TRIES, PAUSE_NS, Turn};
use super::limits::Posted;
use super::personality::{Limit, Set, Slot};
use super::thread::Waiting;
use crate::zipf::mul_shift;

/// Bytes per event of a bandwidth limit. Source: filebench, `MB`.
const LIMIT_BYTES: u64 = 1 << 20;

impl Flow {
    /// The flowop is over with this action.
    pub(super) fn then(&mut self, turn: Turn, action: Action) -> Option<Action> {
        self.advance(turn.thread);
        Some(action)
    }

    /// The flowop, or what is left of it, is left out.
    fn skip(&mut self, turn: Turn) -> Option<Action> {
        self.advance(turn.thread);
        None
    }

    /// The last call of the flowop.
    fn last_call(&mut self, turn: Turn, call: Call, waiting: Waiting) -> Option<Action> {
        self.advance(turn.thread);
        self.count(turn.thread);
        self.threads[turn.thread].waiting = waiting;
        Some(Action::Call { call, op: turn.op, ends_op: true })
    }

    /// A call that others of the flowop follow.
    fn early_call(&mut self, turn: Turn, call: Call, waiting: Waiting) -> Option<Action> {
        self.threads[turn.thread].begun = true;
        self.threads[turn.thread].waiting = waiting;
        Some(Action::Call { call, op: turn.op, ends_op: false })
    }

    fn fd(&self, turn: Turn, slot: u32) -> Fd {
        Fd(self.threads[turn.thread].first_fd + slot)
    }

    /// No file was to be had: tries again later, or not at all.
    fn no_file(&mut self, turn: Turn) -> Option<Action> {
        let thread = &mut self.threads[turn.thread];
        thread.n_tries += 1;
        if thread.n_tries > MAX_TRIES {
            return self.skip(turn);
        }
        Some(self.sleep(turn.now_ns.saturating_add(PAUSE_NS)))
    }

    pub(super) fn open(&mut self, turn: Turn, set: Set, slot: u32, create: bool) -> Option<Action> {
        let files = &mut self.sets[set];
        let picked = if create { files.pick_absent() } else { files.pick_present(None) };
        let Some(file) = picked else { return self.no_file(turn) };
        let flags = OpenFlags { create, ..OpenFlags::PLAIN };
        let call = Call::Open { path: files.file(file).path, fd: self.fd(turn, slot), flags };
        self.last_call(turn, call, Waiting::Open { slot, set, file, create })
    }

    /// Opens a file for a flowop that needs one, as part of its operation.
    fn open_first(
        &mut self,
        turn: Turn,
        set: Set,
        slot: u32,
        own_order: bool,
        flags: OpenFlags,
    ) -> Option<Action> {
        let thread = &mut self.threads[turn.thread];
        if thread.failed {
            return self.skip(turn);
        }
        let rotor = own_order.then_some(&mut thread.rotor);
        let Some(file) = self.sets[set].pick_present(rotor) else { return self.no_file(turn) };
        let path = self.sets[set].file(file).path;
        let call = Call::Open { path, fd: self.fd(turn, slot), flags };
        self.early_call(turn, call, Waiting::Open { slot, set, file, create: false })
    }

    pub(super) fn close(&mut self, turn: Turn, slot: u32) -> Option<Action> {
        if self.threads[turn.thread].open_file(slot).is_none() {
            return self.skip(turn);
        }
        let call = Call::Close { fd: self.fd(turn, slot) };
        self.last_call(turn, call, Waiting::Close { slot })
    }

    pub(super) fn fsync(&mut self, turn: Turn, slot: u32) -> Option<Action> {
        if self.threads[turn.thread].open_file(slot).is_none() {
            return self.skip(turn);
        }
        let call = Call::Fsync { fd: self.fd(turn, slot) };
        self.last_call(turn, call, Waiting::Nothing)
    }

    pub(super) fn delete(&mut self, turn: Turn, set: Set) -> Option<Action> {
        let files = &mut self.sets[set];
        let Some(file) = files.pick_present(None) else { return self.no_file(turn) };
        if files.is_open(file) {
            // As in filebench: somebody uses it, so it is spared, and no other is sought.
            files.put_back(file);
            return self.skip(turn);
        }
        let call = Call::Unlink { path: files.file(file).path };
        self.last_call(turn, call, Waiting::Delete { set, file })
    }

    pub(super) fn stat(&mut self, turn: Turn, set: Set) -> Option<Action> {
        let files = &mut self.sets[set];
        let Some(file) = files.pick_present(None) else { return self.no_file(turn) };
        let call = Call::Stat { path: files.file(file).path };
        self.last_call(turn, call, Waiting::Stat { set, file })
    }

    /// Appends up to `below - 2` bytes: filebench rounds a real number in `0..below - 1`
    /// down. Zero bytes are no call.
    pub(super) fn append(
        &mut self,
        turn: Turn,
        set: Option<Set>,
        slot: u32,
        below: u64,
    ) -> Option<Action> {
        let thread = &mut self.threads[turn.thread];
        if !thread.begun {
            thread.progress = mul_shift(thread.rng.next_u64(), below - 1);
            thread.begun = true;
        }
        let len = thread.progress;
        if len == 0 {
            return self.skip(turn);
        }
        match (thread.open_file(slot), set) {
            (Some(_), _) => {
                let call = Call::Append { fd: self.fd(turn, slot), len };
                self.last_call(turn, call, Waiting::Append { slot })
            }
            (None, Some(set)) => self.open_first(turn, set, slot, false, OpenFlags::PLAIN),
            (None, None) => self.skip(turn),
        }
    }

    pub(super) fn write_whole(&mut self, turn: Turn, slot: u32, piece: u64) -> Option<Action> {
        let thread = &mut self.threads[turn.thread];
        let Some((set, file)) = thread.open_file(slot) else { return self.skip(turn) };
        let (offset, size) = (thread.progress, self.sets[set].file(file).size);
        let len = piece.min(size - offset);
        if len == 0 {
            return self.skip(turn);
        }
        let end = offset + len;
        thread.progress = end;
        let call = Call::Write { fd: self.fd(turn, slot), offset, len };
        if end == size {
            self.last_call(turn, call, Waiting::Write { slot, end })
        } else {
            self.early_call(turn, call, Waiting::Write { slot, end })
        }
    }

    /// The last read is the one that starts at the known end of the file.
    pub(super) fn read_whole(&mut self, turn: Turn, slot: u32, piece: u64) -> Option<Action> {
        let thread = &self.threads[turn.thread];
        let Some((set, file)) = thread.open_file(slot) else { return self.skip(turn) };
        let offset = thread.progress;
        let call = Call::Read { fd: self.fd(turn, slot), offset, len: piece };
        if offset >= self.sets[set].file(file).len {
            self.last_call(turn, call, Waiting::ReadWhole { slot, last: true })
        } else {
            self.early_call(turn, call, Waiting::ReadWhole { slot, last: false })
        }
    }

    /// Chooses the descriptor of a flowop, once each time it is done.
    fn slot(&mut self, turn: Turn, slot: Slot) -> (u32, bool) {
        let thread = &mut self.threads[turn.thread];
        match slot {
            Slot::At(slot) => (slot, false),
            Slot::Next => {
                if !thread.begun {
                    thread.begun = true;
                    thread.turn = match thread.turn + 1 {
                        turn if turn as usize >= thread.slots.len() => 0,
                        turn => turn,
                    };
                }
                (thread.turn, true)
            }
        }
    }

    /// A random multiple of `len` at which as much can be read or written. Filebench
    /// scales a random number to `size - len` and rounds it down, so that the last piece
    /// comes only where the size is not a multiple of it.
    fn random_offset(&mut self, turn: Turn, size: u64, len: u64) -> u64 {
        let draw = self.threads[turn.thread].rng.next_u64();
        mul_shift(draw, size.saturating_sub(len)) / len * len
    }

    pub(super) fn read(
        &mut self,
        turn: Turn,
        set: Set,
        slot: Slot,
        len: u64,
        random: bool,
    ) -> Option<Action> {
        let (slot, own_order) = self.slot(turn, slot);
        let Some((set, file)) = self.threads[turn.thread].open_file(slot) else {
            return self.open_first(turn, set, slot, own_order, OpenFlags::PLAIN);
        };
        let offset = if random {
            let size = self.sets[set].file(file).size;
            self.random_offset(turn, size, len)
        } else {
            self.threads[turn.thread].slots[slot as usize].at
        };
        let call = Call::Read { fd: self.fd(turn, slot), offset, len };
        self.last_call(turn, call, Waiting::Read { slot, sequential: !random })
    }

    pub(super) fn aio_write(
        &mut self,
        turn: Turn,
        set: Set,
        slot: Slot,
        len: u64,
    ) -> Option<Action> {
        let (slot, own_order) = self.slot(turn, slot);
        let Some((set, file)) = self.threads[turn.thread].open_file(slot) else {
            return self.open_first(turn, set, slot, own_order, OpenFlags::DSYNC);
        };
        let size = self.sets[set].file(file).size;
        let offset = self.random_offset(turn, size, len);
        let call = Call::Write { fd: self.fd(turn, slot), offset, len };
        self.count(turn.thread);
        self.then(turn, Action::Spawn { call, op: turn.op })
    }

    pub(super) fn block(&mut self, turn: Turn) -> Option<Action> {
        let thread = &mut self.threads[turn.thread];
        let semaphore = thread.semaphore.expect("a thread that blocks has a semaphore");
        thread.parks = self.semaphores[semaphore].block(&mut thread.wakes);
        let action = match thread.wakes.pop_front() {
            Some(thread) => Action::Wake { thread },
            None if std::mem::take(&mut thread.parks) => Action::Park,
            None => return self.skip(turn),
        };
        self.then(turn, action)
    }

    pub(super) fn post(&mut self, turn: Turn, program: usize) -> Option<Action> {
        let semaphores = self.semaphores_of(program);
        let thread = &mut self.threads[turn.thread];
        loop {
            let at = semaphores.start + thread.progress as usize;
            if at >= semaphores.end {
                return self.skip(turn);
            }
            thread.progress += 1;
            match self.semaphores[at].post(turn.thread as u32) {
                Posted::Done => {}
                Posted::Wakes(thread) => return Some(Action::Wake { thread }),
                Posted::Parks => return Some(Action::Park),
            }
        }
    }

    pub(super) fn limit(&mut self, turn: Turn, limit: Limit) -> Option<Action> {
        let thread = &mut self.threads[turn.thread];
        let ops = std::mem::take(&mut thread.spent_ops);
        let bytes = std::mem::take(&mut thread.spent_bytes);
        let Some(events) = &mut self.events else { return self.skip(turn) };
        let n = match limit {
            Limit::Passes => 1,
            Limit::Operations => ops,
            Limit::Mebibytes if bytes <= thread.credit_bytes => {
                thread.credit_bytes -= bytes;
                0
            }
            Limit::Mebibytes => {
                let owed = bytes - thread.credit_bytes;
                let n = owed / LIMIT_BYTES + 1;
                thread.credit_bytes = n * LIMIT_BYTES - owed;
                n
            }
        };
        let until_ns = if n == 0 { turn.now_ns } else { events.take(n, turn.now_ns) };
        if until_ns <= turn.now_ns {
            return self.skip(turn);
        }
        let action = self.sleep(until_ns);
        self.then(turn, action)
    }

    /// Books how a call ended.
    pub(super) fn book(&mut self, thread: usize, outcome: Outcome) {
        let waiting = std::mem::replace(&mut self.threads[thread].waiting, Waiting::Nothing);
        match waiting {
            Waiting::Nothing => {}
            Waiting::Open { slot, set, file, create } => {
                self.book_open(thread, slot, set, file, create, outcome);
            }
            Waiting::Close { slot } => {
                // Whatever it says, a descriptor is closed after `close`.
                if let Some((set, file)) = self.threads[thread].open_file(slot) {
                    self.threads[thread].slots[slot as usize].open = false;
                    self.sets[set].closed(file);
                }
            }
            Waiting::Delete { set, file } => match outcome {
                Outcome::Done(_) | Outcome::NotFound => self.sets[set].release(file, false),
                _ => self.sets[set].put_back(file),
            },
            Waiting::Stat { set, file } => match outcome {
                Outcome::NotFound if !self.sets[set].is_open(file) => {
                    self.sets[set].release(file, false);
                }
                _ => self.sets[set].put_back(file),
            },
            Waiting::Write { .. } | Waiting::Append { .. } => {
                self.book_write(thread, waiting, outcome);
            }
            Waiting::ReadWhole { .. } | Waiting::Read { .. } => {
                self.book_read(thread, waiting, outcome);
            }
        }
    }

    fn book_open(
        &mut self,
        thread: usize,
        slot: u32,
        set: Set,
        file: u32,
        create: bool,
        outcome: Outcome,
    ) {
        let (files, thread) = (&mut self.sets[set], &mut self.threads[thread]);
        match outcome {
            Outcome::Done(_) => {
                let descriptor = &mut thread.slots[slot as usize];
                *descriptor = super::thread::Descriptor { open: true, set, file, at: 0 };
                files.release(file, true);
                files.opened(file);
            }
            Outcome::NotFound if !create && !files.is_open(file) => {
                files.release(file, false);
                thread.failed = thread.begun;
            }
            _ => {
                files.put_back(file);
                thread.failed = thread.begun;
            }
        }
    }

    fn book_write(&mut self, thread: usize, waiting: Waiting, outcome: Outcome) {
        let Outcome::Done(n) = outcome else { return self.book_failure(thread) };
        let state = &mut self.threads[thread];
        state.spent_bytes += n;
        let (Waiting::Write { slot, .. } | Waiting::Append { slot }) = waiting else { return };
        let Some((set, file)) = state.open_file(slot) else { return };
        let old = self.sets[set].file(file).len;
        let len = match waiting {
            Waiting::Write { end, .. } => old.max(end),
            _ => old.saturating_add(n),
        };
        self.sets[set].set_len(file, len);
    }

    fn book_read(&mut self, thread: usize, waiting: Waiting, outcome: Outcome) {
        let Outcome::Done(n) = outcome else { return self.book_failure(thread) };
        let state = &mut self.threads[thread];
        state.spent_bytes += n;
        match waiting {
            Waiting::Read { slot, sequential: true } => {
                // As in filebench: a read at the end starts over.
                let at = &mut state.slots[slot as usize].at;
                *at = if n == 0 { 0 } else { at.saturating_add(n) };
            }
            Waiting::ReadWhole { slot, last: false } if n == 0 => {
                // Shorter than was known. The flowop ends with one more read.
                let progress = state.progress;
                if let Some((set, file)) = state.open_file(slot) {
                    self.sets[set].set_len(file, progress);
                }
            }
            Waiting::ReadWhole { last: false, .. } => {
                state.progress = state.progress.saturating_add(n);
            }
            _ => {}
        }
    }

    /// A call failed that moves data: what is left of its flowop is left out.
    fn book_failure(&mut self, thread: usize) {
        if self.threads[thread].begun {
            self.advance(thread);
        }
    }
}
