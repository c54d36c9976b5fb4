//! A file system without faults, and a runner that carries an application out on it in
//! virtual time: calls take a random while and have their effect when they end, so that
//! threads interleave in every way.
//!
//! It panics on a descriptor that is opened or closed twice and, unless told to inject
//! faults, it panics on a call that a correct program would not
//! make: a missing file, a gap before a write, a read beyond the end,
//! an unlink of an open file (which filebench avoids).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use flashwise_hostfs::{Action, Application, Call, Fd, OpId, Outcome, PathId, Paths};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// Files, directories and descriptors, by the rules.
#[derive(Default)]
pub(crate) struct PerfectFs {
    pub(crate) dirs: HashSet<PathId>,
    /// Size and open descriptors of each file.
    pub(crate) files: HashMap<PathId, (u64, u32)>,
    pub(crate) fds: HashMap<Fd, PathId>,
    /// Most descriptors open at once.
    pub(crate) max_fds: usize,
    /// Panics on what it refuses.
    pub(crate) strict: bool,
    /// Nothing can be written any more.
    pub(crate) full: bool,
}

impl PerfectFs {
    pub(crate) fn apply(&mut self, call: Call, paths: &Paths) -> Outcome {
        let writes = matches!(call, Call::Write { .. } | Call::Append { .. });
        if self.full && writes {
            return Outcome::NoSpace;
        }
        match self.carry_out(call, paths) {
            Ok(done) => Outcome::Done(done),
            Err((outcome, why)) => {
                assert!(!self.strict, "{call:?}: {why}");
                outcome
            }
        }
    }

    fn carry_out(&mut self, call: Call, paths: &Paths) -> Result<u64, (Outcome, &'static str)> {
        let missing = (Outcome::NotFound, "no such file");
        match call {
            Call::Mkdir { path } => {
                let parent = paths.parent(path);
                if parent != Paths::ROOT && !self.dirs.contains(&parent) {
                    return Err((Outcome::NotFound, "no parent directory"));
                }
                let new = self.dirs.insert(path);
                new.then_some(0).ok_or((Outcome::Exists, "directory exists"))
            }
            Call::Open { path, fd, flags } => {
                if !self.dirs.contains(&paths.parent(path)) {
                    return Err((Outcome::NotFound, "no directory"));
                }
                assert!(!self.fds.contains_key(&fd), "{call:?}: descriptor in use");
                if flags.create {
                    let new = !self.files.contains_key(&path);
                    assert!(new || !self.strict, "{call:?}: made a file that is there");
                    self.files.entry(path).or_insert((0, 0));
                }
                let file = self.files.get_mut(&path).ok_or(missing)?;
                file.1 += 1;
                file.0 = if flags.truncate { 0 } else { file.0 };
                self.fds.insert(fd, path);
                self.max_fds = self.max_fds.max(self.fds.len());
                Ok(0)
            }
            Call::Close { fd } => {
                let path = self.fds.remove(&fd).unwrap_or_else(|| panic!("{call:?}: not open"));
                if let Some(file) = self.files.get_mut(&path) {
                    file.1 -= 1;
                }
                Ok(0)
            }
            Call::Unlink { path } => {
                let file = self.files.get(&path).ok_or(missing)?;
                assert!(file.1 == 0 || !self.strict, "{call:?}: unlinked while open");
                self.files.remove(&path);
                Ok(0)
            }
            Call::Stat { path } => self.files.get(&path).map(|file| file.0).ok_or(missing),
            Call::Fsync { fd } => self.size(fd).map(|_| 0),
            Call::Read { fd, offset, len } => {
                let size = *self.size(fd)?;
                if len == 0 || offset > size {
                    return Err((Outcome::Invalid, "reads nothing or beyond the end"));
                }
                Ok(len.min(size - offset))
            }
            Call::Write { fd, offset, len } => {
                let size = self.size(fd)?;
                if len == 0 || offset > *size {
                    return Err((Outcome::Invalid, "writes nothing or behind a gap"));
                }
                *size = (*size).max(offset + len);
                Ok(len)
            }
            Call::Append { fd, len } => {
                let size = self.size(fd)?;
                if len == 0 {
                    return Err((Outcome::Invalid, "appends nothing"));
                }
                *size += len;
                Ok(len)
            }
            other => panic!("{other:?} is of no use to these applications"),
        }
    }

    fn size(&mut self, fd: Fd) -> Result<&mut u64, (Outcome, &'static str)> {
        let path = self.fds.get(&fd).ok_or((Outcome::Invalid, "not open"))?;
        match self.files.get_mut(path) {
            Some(file) => Ok(&mut file.0),
            // Unlinked while it was open, which only faults bring about.
            None => Err((Outcome::Invalid, "unlinked")),
        }
    }
}

/// What a thread is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Acts at this time; first ends that call.
    At(u64, Option<Call>),
    Parked,
    Ended,
}

/// An action that was given out, before it has an effect.
pub(crate) struct Seen<'a> {
    pub(crate) thread: u32,
    pub(crate) action: Action,
    /// The operation of a call.
    pub(crate) label: &'a str,
    pub(crate) fs: &'a PerfectFs,
    pub(crate) paths: &'a Paths,
}

/// A run of an application on a [`PerfectFs`].
pub(crate) struct Runner {
    pub(crate) app: Box<dyn Application + Send>,
    pub(crate) fs: PerfectFs,
    threads: Vec<State>,
    /// Threads that act at some time, earliest first.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    permits: Vec<u32>,
    /// Calls with their own generator: `None` takes turns with calls of one length.
    random: Option<Xoshiro256PlusPlus>,
    /// One call in so many fails; 0: none.
    pub(crate) faults: u64,
    pub(crate) now_ns: u64,
    pub(crate) n_actions: u64,
    digest: DefaultHasher,
    /// Operations that ended, by name.
    pub(crate) ops: BTreeMap<String, u64>,
    /// Bytes moved, by name of operation.
    pub(crate) bytes: BTreeMap<String, u64>,
}

/// Time of a call where all take the same \[ns\].
const CALL_NS: u64 = 1_000;

impl Runner {
    /// Prepares all files. `seed` is that of random calls.
    pub(crate) fn new(app: Box<dyn Application + Send>, seed: Option<u64>) -> Self {
        let mut runner = Self {
            threads: vec![State::At(0, None); app.n_threads() as usize],
            due: (0..app.n_threads()).map(|thread| Reverse((0, thread))).collect(),
            permits: vec![0; app.n_threads() as usize],
            fs: PerfectFs { strict: true, ..PerfectFs::default() },
            random: seed.map(Xoshiro256PlusPlus::seed_from_u64),
            faults: 0,
            now_ns: 0,
            n_actions: 0,
            digest: DefaultHasher::new(),
            ops: app.op_names().iter().map(|name| (name.clone(), 0)).collect(),
            bytes: BTreeMap::new(),
            app,
        };
        while let Some(call) = runner.app.prepare() {
            runner.fs.apply(call, runner.app.paths());
        }
        assert!(runner.fs.fds.is_empty(), "preparing left a descriptor open");
        runner
    }

    /// Runs until all threads end or so many actions were given out; true at the end.
    pub(crate) fn run(&mut self, max_actions: u64, mut see: impl FnMut(&Seen)) -> bool {
        for _ in 0..max_actions {
            let Some((thread, at_ns, call)) = self.earliest() else {
                let parked = self.threads.contains(&State::Parked);
                assert!(!parked, "deadlock at {} ns: {:?}", self.now_ns, self.threads);
                return true;
            };
            self.now_ns = self.now_ns.max(at_ns);
            if let Some(call) = call {
                let outcome = self.outcome(call);
                self.app.finished(thread, outcome, self.now_ns);
            }
            let action = self.app.next(thread, self.now_ns);
            self.n_actions += 1;
            format!("{thread} {action:?}").hash(&mut self.digest);
            let label = match action {
                Action::Call { op, .. } | Action::Spawn { op, .. } => {
                    &self.app.op_names()[usize::from(op.0)]
                }
                _ => "",
            };
            let (fs, paths) = (&self.fs, self.app.paths());
            see(&Seen { thread, action, label, fs, paths });
            self.act(thread, action);
        }
        false
    }

    /// A number that two runs share exactly if their actions are the same.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    fn earliest(&mut self) -> Option<(u32, u64, Option<Call>)> {
        let Reverse((at_ns, thread)) = self.due.pop()?;
        match self.threads[thread as usize] {
            State::At(_, call) => Some((thread, at_ns, call)),
            other => panic!("thread {thread} is due but {other:?}"),
        }
    }

    fn outcome(&mut self, call: Call) -> Outcome {
        if self.faults > 0 && self.draw(self.faults) == 0 {
            // A close may report an error, but it closes.
            if matches!(call, Call::Close { .. }) {
                self.fs.apply(call, self.app.paths());
            }
            return match self.draw(4) {
                0 => Outcome::NotFound,
                1 => Outcome::Invalid,
                2 => Outcome::Exists,
                _ => Outcome::NoSpace,
            };
        }
        self.fs.apply(call, self.app.paths())
    }

    fn draw(&mut self, n: u64) -> u64 {
        self.random.as_mut().map_or(0, |rng| rng.next_u64() % n)
    }

    fn act(&mut self, thread: u32, action: Action) {
        let index = thread as usize;
        let now_ns = self.now_ns;
        self.threads[index] = match action {
            Action::Call { call, op, ends_op } => {
                self.count(call, op, ends_op);
                let ns = CALL_NS + self.draw(100_000);
                State::At(now_ns + ns, Some(call))
            }
            Action::Spawn { call, op } => {
                self.count(call, op, true);
                let outcome = self.fs.apply(call, self.app.paths());
                let may_fail = self.fs.full || !self.fs.strict;
                assert!(matches!(outcome, Outcome::Done(_)) || may_fail, "{call:?}: {outcome:?}");
                State::At(now_ns + CALL_NS, None)
            }
            Action::Join => State::At(now_ns + CALL_NS, None),
            Action::Compute { ns } => State::At(now_ns + ns, None),
            Action::SleepUntil { at_ns } => {
                assert!(at_ns > now_ns, "a sleep that takes no time");
                State::At(at_ns, None)
            }
            Action::Park if self.permits[index] > 0 => {
                self.permits[index] -= 1;
                State::At(now_ns, None)
            }
            Action::Park => State::Parked,
            Action::Wake { thread } => {
                let woken = &mut self.threads[thread as usize];
                assert_ne!(*woken, State::Ended, "woke a thread that has ended");
                match woken {
                    State::Parked => {
                        *woken = State::At(now_ns, None);
                        self.due.push(Reverse((now_ns, thread)));
                    }
                    _ => self.permits[thread as usize] += 1,
                }
                State::At(now_ns, None)
            }
            Action::End => State::Ended,
        };
        if let State::At(at_ns, _) = self.threads[index] {
            self.due.push(Reverse((at_ns, thread)));
        }
    }

    fn count(&mut self, call: Call, op: OpId, ends_op: bool) {
        let name = self.app.op_names()[usize::from(op.0)].clone();
        let (Call::Read { len, .. } | Call::Write { len, .. } | Call::Append { len, .. }) = call
        else {
            *self.ops.entry(name).or_default() += u64::from(ends_op);
            return;
        };
        *self.bytes.entry(name.clone()).or_default() += len;
        *self.ops.entry(name).or_default() += u64::from(ends_op);
    }
}
