//! PostMark: a pool of small files, transactions on them, and the end of all of them.
//!
//! After Katcher, "PostMark: a new file system benchmark" (NetApp TR3022, 1997) and its
//! version 1.5. The pool is made first. A transaction reads a random file or appends to
//! it, then makes a file or deletes a random one. At last every file that is left is
//! deleted, and the only thread ends. Making the pool and the last deletes belong to the
//! run, as in PostMark's total time.
//!
//! The table has two slots per file of the pool. A file is made in the first free slot,
//! and none is made while there is no free slot. PostMark draws with `random()` and seed
//! 42; here it is xoshiro256++ and the seed of the run.
//!
//! PostMark hands over blocks of 512 bytes, but through `fwrite` and `fread`, which pass
//! them on 4096 bytes at a time (seen with strace, version 1.53 on ext4). That is the key
//! `buffer`; 0 is `set buffering false`, where each block is a call.
//!
//! Invariants: a slot of size 0 is free; the descriptor is closed between operations.
//! Cost: tens of nanoseconds per call; about 100 bytes for the name of each file made,
//! since names never come twice.

use std::fmt::Write as _;

use flashwise_hostfs::{Action, Application, Call, Fd, OpId, OpenFlags, Outcome, PathId, Paths};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::index_set::IndexSet;
use super::keys::{Key, NONE, Values};
use crate::zipf::mul_shift;

/// The directory of all files.
const ROOT: &str = "/postmark";

/// Both biases are out of ten. Source: PostMark, `RND(10)`.
const BIAS_OF: u64 = 10;

const FD: Fd = Fd(0);

/// Kinds of operations, as PostMark reports them.
const OPS: [&str; 6] = ["create-alone", "create", "read", "append", "delete", "delete-alone"];

/// A file, or a free slot if its size is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    size: u64,
    path: PathId,
}

/// What the thread is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Make this many files more.
    Pool(u64),
    /// First half of a transaction, with this many left.
    ReadOrAppend(u64),
    /// Second half.
    CreateOrDelete(u64),
    /// Delete what is left, from this slot on.
    DeleteAll(usize),
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    op: OpId,
    kind: Kind,
    slot: usize,
    /// Where the next piece starts, and where the last one ends \[bytes\].
    at: u64,
    end: u64,
    opened: bool,
    closing: bool,
    /// Length of the last piece \[bytes\].
    asked: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Create,
    Read,
    Append,
    Delete,
}

/// PostMark.
#[derive(Clone, Debug)]
pub(super) struct PostMark {
    paths: Paths,
    op_names: Vec<String>,
    /// Directories to make, last one first.
    to_make: Vec<PathId>,
    values: Values,
    table: Vec<Slot>,
    free: IndexSet,
    /// Files that are there.
    n_files: u64,
    /// Files made so far; their names.
    n_made: u64,
    name: String,
    phase: Phase,
    running: Option<Running>,
    rng: Xoshiro256PlusPlus,
}

impl PostMark {
    /// With the values of the keys of PostMark.
    pub(super) fn new(values: &Values, seed: u64) -> Self {
        let n_slots = values[Key::Files] * 2;
        let mut free = IndexSet::new(n_slots as u32);
        (0..n_slots as u32).for_each(|slot| free.insert(slot));
        let mut paths = Paths::new();
        let mut to_make = Vec::new();
        if values[Key::Subdirs] > 1 {
            let dirs = (0..values[Key::Subdirs]).rev();
            to_make.extend(dirs.map(|dir| paths.intern(&format!("{ROOT}/s{dir}"))));
        }
        to_make.push(paths.intern(ROOT));
        Self {
            paths,
            op_names: OPS.map(str::to_owned).to_vec(),
            to_make,
            table: vec![Slot::default(); n_slots as usize],
            free,
            n_files: 0,
            n_made: 0,
            name: String::new(),
            phase: Phase::Pool(values[Key::Files]),
            running: None,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            values: values.clone(),
        }
    }

    /// Below `n`, or 0.
    fn random(&mut self, n: u64) -> u64 {
        mul_shift(self.rng.next_u64(), n)
    }

    /// A random slot that is in use; there is one.
    fn used_slot(&mut self) -> usize {
        loop {
            let slot = self.random(self.table.len() as u64) as usize;
            if self.table[slot].size > 0 {
                return slot;
            }
        }
    }

    fn start(&mut self, op: usize, kind: Kind, slot: usize, at: u64, end: u64) {
        let op = OpId(op as u16);
        self.running =
            Some(Running { op, kind, slot, at, end, opened: false, closing: false, asked: 0 });
    }

    /// Starts to make a file, if a slot is free.
    fn create(&mut self, op: usize) {
        let low = self.values[Key::SizeLow];
        let Some(slot) = self.free.next_around(0) else { return };
        let size = low + self.random(self.values[Key::SizeHigh] - low);
        self.n_made += 1;
        self.name.clear();
        let subdirs = self.values[Key::Subdirs];
        let written = if subdirs > 1 {
            let dir = self.random(subdirs);
            write!(self.name, "{ROOT}/s{dir}/{}", self.n_made)
        } else {
            write!(self.name, "{ROOT}/{}", self.n_made)
        };
        written.expect("a string takes any text");
        self.table[slot as usize] = Slot { size: 0, path: self.paths.intern(&self.name) };
        self.start(op, Kind::Create, slot as usize, 0, size);
    }

    fn read_or_append(&mut self) {
        let bias = self.values[Key::ReadBias];
        if bias == NONE {
            return;
        }
        let reads = self.random(BIAS_OF) < bias;
        let slot = self.used_slot();
        let (size, high) = (self.table[slot].size, self.values[Key::SizeHigh]);
        if reads {
            self.start(2, Kind::Read, slot, 0, size);
        } else if size < high {
            let len = self.random(high - size) + 1;
            self.start(3, Kind::Append, slot, size, size + len);
        }
    }

    fn create_or_delete(&mut self) {
        let bias = self.values[Key::CreateBias];
        if bias == NONE {
            return;
        }
        if self.random(BIAS_OF) < bias {
            self.create(1);
        } else {
            let slot = self.used_slot();
            self.start(4, Kind::Delete, slot, 0, 0);
        }
    }

    /// Starts the next operation, if this step of the algorithm has one. False at the end.
    fn advance(&mut self) -> bool {
        match self.phase {
            Phase::Pool(0) => self.phase = Phase::ReadOrAppend(self.values[Key::Transactions]),
            Phase::Pool(left) => {
                self.phase = Phase::Pool(left - 1);
                self.create(0);
            }
            // Out of files or transactions.
            Phase::ReadOrAppend(left) if left == 0 || self.n_files == 0 => {
                self.phase = Phase::DeleteAll(0);
            }
            Phase::ReadOrAppend(left) => {
                self.phase = Phase::CreateOrDelete(left);
                self.read_or_append();
            }
            Phase::CreateOrDelete(left) => {
                self.phase = Phase::ReadOrAppend(left - 1);
                // A read may have found that the last file is gone.
                if self.n_files > 0 {
                    self.create_or_delete();
                }
            }
            Phase::DeleteAll(slot) if slot == self.table.len() => return false,
            Phase::DeleteAll(slot) => {
                self.phase = Phase::DeleteAll(slot + 1);
                if self.table[slot].size > 0 {
                    self.start(5, Kind::Delete, slot, 0, 0);
                }
            }
        }
        true
    }

    /// The next call of the operation under way.
    fn call(&mut self) -> Option<Action> {
        let Running { op, kind, slot, at, end, opened, .. } = *self.running.as_ref()?;
        let path = self.table[slot].path;
        let mut ends_op = false;
        let call = if kind == Kind::Delete {
            ends_op = true;
            Call::Unlink { path }
        } else if !opened {
            let create = kind == Kind::Create;
            let flags = if create { OpenFlags::CREATE } else { OpenFlags::PLAIN };
            Call::Open { path, fd: FD, flags }
        } else if at == end {
            ends_op = true;
            self.running.as_mut()?.closing = true;
            Call::Close { fd: FD }
        } else {
            let is_read = kind == Kind::Read;
            let block = if is_read { Key::ReadBlock } else { Key::WriteBlock };
            let len = self.values[block].max(self.values[Key::Buffer]).min(end - at);
            let running = self.running.as_mut()?;
            running.at += len;
            running.asked = len;
            match kind {
                Kind::Read => Call::Read { fd: FD, offset: at, len },
                Kind::Append => Call::Append { fd: FD, len },
                _ => Call::Write { fd: FD, offset: at, len },
            }
        };
        Some(Action::Call { call, op, ends_op })
    }

    /// A file is there, or has another size.
    fn keep(&mut self, slot: usize, size: u64) {
        if self.table[slot].size == 0 {
            self.free.remove(slot as u32);
            self.n_files += 1;
        }
        self.table[slot].size = size;
    }

    /// A file is gone.
    fn forget(&mut self, slot: usize) {
        if self.table[slot].size > 0 {
            self.table[slot].size = 0;
            self.free.insert(slot as u32);
            self.n_files -= 1;
        }
    }
}

impl Application for PostMark {
    fn n_threads(&self) -> u32 {
        1
    }

    fn op_names(&self) -> &[String] {
        &self.op_names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        self.to_make.pop().map(|path| Call::Mkdir { path })
    }

    fn next(&mut self, _thread: u32, _now_ns: u64) -> Action {
        loop {
            if let Some(action) = self.call() {
                return action;
            }
            if !self.advance() {
                return Action::End;
            }
        }
    }

    fn finished(&mut self, _thread: u32, outcome: Outcome, _now_ns: u64) {
        let Some(running) = &mut self.running else { return };
        let slot = running.slot;
        let done = matches!(outcome, Outcome::Done(_));
        match running.kind {
            Kind::Delete => {
                self.running = None;
                if done || outcome == Outcome::NotFound {
                    self.forget(slot);
                }
            }
            _ if !running.opened => {
                running.opened = done;
                let (kind, size) = (running.kind, running.end);
                if !done {
                    self.running = None;
                    if outcome == Outcome::NotFound {
                        self.forget(slot);
                    }
                } else if kind != Kind::Read {
                    self.keep(slot, size);
                }
            }
            // Whatever it says, a descriptor is closed after `close`.
            _ if running.closing => self.running = None,
            // What could not be read or written is left out, and what is behind it.
            Kind::Read if outcome != Outcome::Done(running.asked) => running.at = running.end,
            _ if !done => running.at = running.end,
            _ => {}
        }
    }
}
