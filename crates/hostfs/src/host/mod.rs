//! The host in virtual time: threads, the flusher, the journal's thread and what they
//! wait for.
//!
//! The core loop is [`Host::next_io`]: take the actor that is due first, let it go on until
//! it has a request for the device, and hand that out at its time; [`Host::completed`] says
//! when it was done. Since a completion is known as soon as a request was submitted, waiting
//! is arithmetic and nothing runs at the same time.
//!
//! An actor is a small state machine. Its step changes the file system's books at once,
//! leaves bios in its plug, and says how to go on ([`Flow`]).
//!
//! Invariants: requests leave in the order of their times; the same application and the
//! same completions give the same requests. Cost: a heap operation or two per request and
//! per call.

mod calls;
mod commit;
mod flusher;
mod read;
mod sync;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use flashwise_hint::Lba;
use rustc_hash::FxHashMap;

use crate::age::Ageing;
use crate::application::{Application, OpId, Outcome};
use crate::call::{Call, Fd};
use crate::config::FsConfig;
use crate::data::SECTORS;
use crate::error::HostError;
use crate::extents::Extent;
use crate::fs::FileSystem;
use crate::io::{Io, IoClass, IoOp};
use crate::journal::Tid;
use crate::layout::FsBlock;
use crate::placer::Placer;
use crate::plug::{Bio, NO_FILE, Plug, PlugRules, Queued, Target};
use crate::ram::{RamDisk, RamSpeed};
use crate::report::Counts;

use calls::CallState;
use commit::CommitStage;
use flusher::FlusherState;

/// Seed of files of long ago: the same ones for every policy and seed of the application.
const AGE_SEED: u64 = 1;
/// Steps at one moment that no sound state needs: whoever takes more waits for nothing.
const STEPS_MAX: u32 = 1 << 24;

/// Entries out of date that the heap of due actors may hold besides one for each.
const DUE_SLACK: usize = 128;

/// Never.
const NEVER: u64 = u64::MAX;

/// How an actor goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// After so much CPU time \[ns\].
    Cpu(u64),
    /// When everything it submitted is done.
    Io,
    /// At a time \[ns\].
    Until(u64),
    /// When somebody wakes it.
    Block,
    /// The call is over.
    Done(Outcome),
}

/// What an actor is for.
#[derive(Clone, Debug)]
enum Task {
    /// A thread of the application.
    Thread(ThreadState),
    /// A call that a thread spawned.
    Spawned { thread: u32 },
    /// Nothing: a spawned call that is over.
    Free,
    /// Write-back.
    Flusher(FlusherState),
    /// The journal's thread.
    Journal(CommitStage),
    /// Tells the device about free space; at this time \[ns\] if every so often.
    Trimmer { next_ns: u64 },
}

/// What a thread does between calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ThreadState {
    is_parked: bool,
    is_joining: bool,
    has_ended: bool,
    /// Wakes that came before their `Park`.
    n_wakes: u32,
    /// Calls it spawned that are not over.
    n_spawned: u32,
}

/// A flow of control.
#[derive(Clone, Debug)]
struct Actor {
    task: Task,
    call: Option<CallState>,
    plug: Plug,
    /// Whether it waits for its requests once they are submitted.
    waits_for_io: bool,
    /// End of the last of its requests that it has not waited for \[ns\].
    io_end_ns: u64,
    /// When it goes on \[ns\]; `NEVER` while it is blocked.
    wake_ns: u64,
    /// Log space it makes before it goes on with its call.
    makes_space: Option<commit::SpaceStage>,
}

impl Actor {
    fn new(task: Task) -> Self {
        Self {
            task,
            call: None,
            plug: Plug::default(),
            waits_for_io: false,
            io_end_ns: 0,
            wake_ns: NEVER,
            makes_space: None,
        }
    }
}

/// An operation of the application that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpDone {
    /// Which kind.
    pub op: OpId,
    /// By which thread.
    pub thread: u32,
    /// When it began \[ns, as [`Io::at_ns`]\].
    pub start_ns: u64,
    /// When it ended \[ns\].
    pub end_ns: u64,
    /// Bytes it read or wrote.
    pub bytes: u64,
    /// A call of it failed.
    pub failed: bool,
}

/// An operation under way.
#[derive(Clone, Copy, Debug, Default)]
struct OpOpen {
    start_ns: Option<u64>,
    bytes: u64,
    failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Preparing,
    Settling,
    Running,
    Ended,
}

/// What a step of a host came to.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// A request for the device.
    Io(Io),
    /// Nothing for the device.
    Step,
    /// It is over.
    End,
}

/// An application on a file system on a host, in virtual time.
pub struct Host<A> {
    app: A,
    fs: FileSystem,
    actors: Vec<Actor>,
    due: BinaryHeap<Reverse<(u64, u32)>>,
    now_ns: u64,
    /// Ends of requests at the device, and pages of files they write back.
    in_flight: BinaryHeap<Reverse<(u64, u32)>>,
    /// Pages of files on their way to the device.
    writeback_pages: u64,
    /// When each core is free \[ns\]; none where threads do not share.
    cores: Vec<u64>,
    rules: PlugRules,
    journal_disk: RamDisk,
    /// The request that was handed out and is not completed.
    handed: Option<(u32, Queued)>,
    phase: Phase,
    epoch_ns: u64,
    n_threads: u32,
    n_live: u32,
    /// Threads that are parked and not woken.
    n_parked: u32,
    /// Steps since time last moved.
    n_steps: u32,
    ops: Vec<OpDone>,
    open_ops: Vec<OpOpen>,
    commit_waiters: Vec<(Tid, u32)>,
    switch_waiters: Vec<u32>,
    log_waiters: Vec<u32>,
    space_waiters: Vec<u32>,
    space_maker: Option<u32>,
    discards: Vec<(FsBlock, u32)>,
    /// Spawned calls that wait for an earlier one of their descriptor: thread, call, kind,
    /// and since when \[ns\].
    spawned: FxHashMap<Fd, VecDeque<(u32, Call, OpId, u64)>>,
    failure: Option<HostError>,
    counts: Counts,
    counts_before: Counts,
}

impl<A: Application> Host<A> {
    /// An application on a new file system of a device of so many bytes.
    pub fn new(app: A, cfg: &FsConfig, device_bytes: u64) -> Result<Self, HostError> {
        let mut fs = FileSystem::new(cfg, device_bytes)?;
        if cfg.age_percent > 0.0 {
            let ageing = Ageing { full: cfg.age_percent / 100.0, rounds: cfg.age_rounds };
            fs.age(&ageing, AGE_SEED);
        }
        let n_threads = app.n_threads();
        let thread = || Actor::new(Task::Thread(ThreadState::default()));
        let mut actors: Vec<Actor> = (0..n_threads).map(|_| thread()).collect();
        actors.push(Actor::new(Task::Flusher(FlusherState::default())));
        actors.push(Actor::new(Task::Journal(CommitStage::Idle)));
        actors.push(Actor::new(Task::Trimmer { next_ns: 0 }));
        let blocks = |bytes: u32| bytes / 4096;
        let mut host = Self {
            app,
            fs,
            actors,
            due: BinaryHeap::new(),
            now_ns: 0,
            in_flight: BinaryHeap::new(),
            writeback_pages: 0,
            cores: vec![0; cfg.cores as usize],
            rules: PlugRules {
                blocks_max: blocks(cfg.request_bytes),
                segments_max: cfg.segments,
                n_max: cfg.plug_requests as usize,
                flush_blocks: blocks(cfg.plug_bytes),
            },
            journal_disk: RamDisk::new(RamSpeed::DDR4),
            handed: None,
            phase: if n_threads == 0 { Phase::Ended } else { Phase::Preparing },
            epoch_ns: 0,
            n_threads,
            n_live: n_threads,
            n_parked: 0,
            n_steps: 0,
            ops: vec![],
            open_ops: vec![OpOpen::default(); n_threads as usize],
            commit_waiters: vec![],
            switch_waiters: vec![],
            log_waiters: vec![],
            space_waiters: vec![],
            space_maker: None,
            discards: vec![],
            spawned: FxHashMap::default(),
            failure: None,
            counts: Counts::default(),
            counts_before: Counts::default(),
        };
        if n_threads > 0 {
            host.wake(0, 0);
            if cfg.mkfs_discard {
                let n_blocks = host.fs.layout.n_blocks();
                host.discards.push((FsBlock(0), n_blocks));
                host.send_discards(0, IoClass::Metadata);
                host.actors[0].plug.flush(&cfg.costs);
            }
        }
        if cfg.writeback_ms > 0 {
            host.wake(host.flusher(), cfg.writeback_ms * 1_000_000);
        }
        if let crate::config::Discard::Periodic(s) = cfg.discard {
            host.wake(host.trimmer(), u64::from(s) * 1_000_000_000);
        }
        Ok(host)
    }

    /// For checks.
    pub(crate) fn file_system(&self) -> &FileSystem {
        &self.fs
    }

    /// Files with dirty pages, beside those the file system lists: the flusher has them.
    fn held_by_flusher(&self) -> Vec<u32> {
        match &self.actors[self.flusher() as usize].task {
            Task::Flusher(state) => state.held().collect(),
            _ => unreachable!("the flusher is the flusher"),
        }
    }

    /// Checks what is on its way against the files it belongs to.
    ///
    /// # Panics
    ///
    /// If it does not agree.
    pub(crate) fn check_writeback(&self) {
        let mut n_queued = vec![0; self.fs.inodes.len()];
        let mut n_pages = self.in_flight.iter().map(|r| u64::from(r.0.1)).sum::<u64>();
        let plugged = self.actors.iter().flat_map(|actor| actor.plug.iter());
        for queued in plugged.chain(self.handed.as_ref().map(|(_, queued)| queued)) {
            queued.files().for_each(|file| n_queued[file as usize] += 1);
            n_pages += u64::from(queued.n_pages);
        }
        let counted = self.fs.inodes.iter().map(|inode| inode.writeback.n_queued);
        assert!(counted.eq(n_queued), "queued requests of files");
        assert_eq!(n_pages, self.writeback_pages, "pages on their way");
        let held = self.held_by_flusher();
        for (i, inode) in (0u32..).zip(&self.fs.inodes) {
            let is_listed = inode
                .dirty_since_ns
                .is_none_or(|since| self.fs.dirty_files.contains(&(since, i)) || held.contains(&i));
            assert!(is_listed, "dirty slot {i} is on no list");
        }
        assert!(self.in_flight.len() <= self.fs.cfg.nr_requests as usize, "requests in flight");
    }

    /// Makes the device of an external journal as fast as this, instead of a RAM disk.
    pub fn set_journal_disk(&mut self, speed: RamSpeed) {
        self.journal_disk = RamDisk::new(speed);
    }

    fn flusher(&self) -> u32 {
        self.n_threads
    }

    fn journal_thread(&self) -> u32 {
        self.n_threads + 1
    }

    fn trimmer(&self) -> u32 {
        self.n_threads + 2
    }

    /// Lets a placement policy choose the handles of writes.
    pub fn set_placer(&mut self, placer: Box<dyn Placer + Send>) {
        self.fs.placer = Some(placer);
    }

    /// The next request for the device, at its time; `None` at the end. The one before has
    /// to be [`completed`](Self::completed).
    pub fn next_io(&mut self) -> Option<Io> {
        loop {
            match self.advance() {
                Advance::Io(io) => return Some(io),
                Advance::Step => {}
                Advance::End => return None,
            }
        }
    }

    /// One step of [`next_io`](Self::next_io), for tests that look between them.
    #[doc(hidden)]
    pub fn advance(&mut self) -> Advance {
        assert!(self.handed.is_none(), "the request before has to be completed first");
        if self.phase == Phase::Ended {
            return Advance::End;
        }
        let Some(Reverse((at_ns, a))) = self.due.pop() else {
            self.stalled();
            return Advance::End;
        };
        if self.actors[a as usize].wake_ns != at_ns {
            return Advance::Step;
        }
        self.actors[a as usize].wake_ns = NEVER;
        debug_assert!(at_ns >= self.now_ns);
        self.set_now(at_ns);
        match self.go_on(a) {
            Some(io) => Advance::Io(io),
            None => Advance::Step,
        }
    }

    /// No thread can go on.
    fn stalled(&mut self) {
        self.failure = Some(HostError::Stalled { at_s: self.now_ns / 1_000_000_000 });
        self.phase = Phase::Ended;
    }

    /// The request that [`next_io`](Self::next_io) gave last is done at `done_ns` \[ns, as
    /// [`Io::at_ns`]\], which is not before it was given.
    pub fn completed(&mut self, done_ns: u64) {
        let (a, queued) = self.handed.take().expect("a request was handed out");
        self.note_end(a, &queued, done_ns.max(self.now_ns));
        // What it does next, it does at this moment.
        self.wake(a, self.now_ns);
    }

    /// Runs to the end on a device: `submit` takes a request and says when it is done.
    pub fn run(&mut self, mut submit: impl FnMut(&Io) -> u64) -> Result<(), HostError> {
        while let Some(io) = self.next_io() {
            let done_ns = submit(&io);
            self.completed(done_ns);
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Why it ended early, if it did.
    pub fn failure(&self) -> Option<&HostError> {
        self.failure.as_ref()
    }

    /// The time it has reached \[ns\].
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// When the threads started: the end of the preparation \[ns\].
    pub fn start_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// Operations that ended since this was last asked.
    pub fn take_ops(&mut self) -> std::vec::Drain<'_, OpDone> {
        self.ops.drain(..)
    }

    /// What was done to the device since the threads started.
    pub fn counts(&self) -> Counts {
        self.counts.since(&self.counts_before)
    }

    /// The application.
    pub fn application(&self) -> &A {
        &self.app
    }

    /// What is modelled.
    pub fn config(&self) -> &FsConfig {
        &self.fs.cfg
    }

    /// Where the file system keeps its structures.
    pub fn layout(&self) -> &crate::layout::Layout {
        &self.fs.layout
    }

    /// Rounds of the journal's ring since the file system was made; `None` without one.
    pub fn journal_rounds(&self) -> Option<f64> {
        self.fs.journal.as_ref().map(crate::journal::Journal::rounds)
    }

    /// Blocks of the journal, its superblock included.
    pub fn journal_blocks(&self) -> Option<u64> {
        self.fs.journal.as_ref().map(crate::journal::Journal::n_blocks)
    }

    /// The extents of a file; `None` where there is none.
    pub fn extents(&mut self, path: crate::paths::PathId) -> Option<Vec<Extent>> {
        let i = self.fs.resolve(self.app.paths(), path).ok()?;
        Some(self.fs.inodes[i as usize].extents.iter().copied().collect())
    }

    /// Files that have blocks, and the pieces they lie in, as `filefrag` counts them:
    /// (files, pieces).
    pub fn fragmentation(&self) -> (u64, u64) {
        let files = self.fs.inodes.iter().filter(|i| i.dir.is_none() && i.links > 0);
        let pieces = files.map(|i| u64::from(i.extents.n_fragments())).filter(|n| *n > 0);
        pieces.fold((0, 0), |(files, all), n| (files + 1, all + n))
    }

    /// Blocks no file or structure has.
    pub fn free_blocks(&self) -> u64 {
        self.fs.alloc.free_blocks()
    }

    /// Pages in the page cache, and how many of them are dirty.
    pub fn cached_pages(&self) -> (u64, u64) {
        (self.fs.cache.n_pages(), self.fs.cache.n_dirty())
    }

    fn note_end(&mut self, a: u32, queued: &Queued, done_ns: u64) {
        if queued.bio.target == Target::Main {
            self.in_flight.push(Reverse((done_ns, queued.n_pages)));
        }
        let actor = &mut self.actors[a as usize];
        actor.io_end_ns = actor.io_end_ns.max(done_ns);
        for file in queued.files() {
            let writeback = &mut self.fs.inodes[file as usize].writeback;
            writeback.end_ns = writeback.end_ns.max(done_ns);
            if self.fs.write_left(file) {
                let writeback = &mut self.fs.inodes[file as usize].writeback;
                let (end_ns, waiters) = (writeback.end_ns, std::mem::take(&mut writeback.waiters));
                for waiter in waiters {
                    self.wake(waiter, end_ns);
                }
            }
        }
    }

    fn set_now(&mut self, now_ns: u64) {
        if now_ns > self.now_ns {
            self.n_steps = 0;
        }
        self.now_ns = now_ns;
        self.fs.now_ns = now_ns;
        while let Some(Reverse((done_ns, pages))) = self.in_flight.peek().copied() {
            if done_ns > now_ns {
                break;
            }
            self.in_flight.pop();
            self.writeback_pages -= u64::from(pages);
        }
    }

    /// An actor goes on at `at_ns`, or earlier if it would have anyway.
    fn wake(&mut self, a: u32, at_ns: u64) {
        let actor = &mut self.actors[a as usize];
        let at_ns = at_ns.max(self.now_ns);
        if at_ns < actor.wake_ns {
            actor.wake_ns = at_ns;
            self.due.push(Reverse((at_ns, a)));
            // An actor that wakes earlier leaves its old entry behind: with a commit after
            // another, one for each would wait for its five seconds.
            if self.due.len() > 2 * self.actors.len() + DUE_SLACK {
                let actors = &self.actors;
                self.due.retain(|Reverse((at_ns, a))| actors[*a as usize].wake_ns == *at_ns);
            }
        }
    }

    /// When CPU time that is asked for now has been spent.
    fn cpu(&mut self, ns: u64) -> u64 {
        let Some(core) = self.cores.iter_mut().min() else { return self.now_ns + ns };
        *core = (*core).max(self.now_ns) + ns;
        *core
    }

    /// Lets an actor go on until it hands out a request or waits.
    fn go_on(&mut self, a: u32) -> Option<Io> {
        loop {
            if let Some(io) = self.submit(a)? {
                return Some(io);
            }
            let actor = &mut self.actors[a as usize];
            if std::mem::take(&mut actor.waits_for_io) {
                let end_ns = std::mem::take(&mut actor.io_end_ns);
                if end_ns > self.now_ns {
                    self.wake(a, end_ns + self.fs.cfg.costs.wake_ns);
                    return None;
                }
            }
            self.n_steps += 1;
            assert!(self.n_steps < STEPS_MAX, "time stands still at {} ns", self.now_ns);
            let flow = self.step(a);
            self.arm_journal();
            self.actors[a as usize].plug.flush(&self.fs.cfg.costs);
            match flow {
                Flow::Cpu(0) => {}
                Flow::Cpu(ns) => {
                    let at_ns = self.cpu(ns);
                    if !self.is_first(at_ns) {
                        self.wake(a, at_ns);
                        return None;
                    }
                    self.set_now(at_ns);
                }
                Flow::Io => self.actors[a as usize].waits_for_io = true,
                Flow::Until(at_ns) => {
                    self.wake(a, at_ns);
                    return None;
                }
                Flow::Block => return None,
                Flow::Done(outcome) => {
                    if !self.call_ended(a, outcome) {
                        return None;
                    }
                }
            }
        }
    }

    /// Whether nobody else is due before `at_ns`.
    fn is_first(&self, at_ns: u64) -> bool {
        self.due.peek().is_none_or(|Reverse((first, _))| *first > at_ns)
    }

    /// Submits the requests of an actor one by one. `None`: it has to wait first;
    /// `Some(None)`: nothing is left to submit.
    fn submit(&mut self, a: u32) -> Option<Option<Io>> {
        loop {
            let actor = &mut self.actors[a as usize];
            let Some(front) = actor.plug.front() else { return Some(None) };
            let (cpu_ns, bio) = (front.cpu_ns, front.bio);
            let is_main = bio.target == Target::Main;
            if is_main && self.in_flight.len() >= self.fs.cfg.nr_requests as usize {
                let Reverse((done_ns, _)) = *self.in_flight.peek().expect("it is not empty");
                self.wake(a, done_ns.max(self.now_ns + 1));
                return None;
            }
            if cpu_ns > 0 {
                actor.plug.paid();
                let at_ns = self.cpu(cpu_ns);
                if !self.is_first(at_ns) {
                    self.wake(a, at_ns);
                    return None;
                }
                self.set_now(at_ns);
                continue;
            }
            if bio.op == IoOp::Discard && bio.class == IoClass::Data && self.clip_discard(a, &bio) {
                continue;
            }
            let Some(queued) = self.actors[a as usize].plug.pop() else { continue };
            let io = self.io(&bio);
            self.counts.count(io.op, io.class, u64::from(io.sectors) * 512, io.fua);
            if is_main {
                self.handed = Some((a, queued));
                return Some(Some(io));
            }
            let done_ns = self.journal_disk.submit(&io);
            self.note_end(a, &queued, done_ns);
        }
    }

    /// A discard waited in its queue, and some of its blocks may be in use by now: they are
    /// left out. Whether the next request of the actor is another one now. Source:
    /// fs/ext4/mballoc.c, `ext4_try_to_trim_range`, which looks at what is free.
    fn clip_discard(&mut self, a: u32, bio: &Bio) -> bool {
        let runs = self.fs.alloc.free_runs_in(bio.start, bio.len);
        let mut parts: Vec<Bio> = vec![];
        for (start, len) in runs {
            match parts.last_mut() {
                // Runs end at group ends; the request need not.
                Some(last) if last.start.0 + last.len == start.0 => last.len += len,
                _ => parts.push(Bio { start, len, ..*bio }),
            }
        }
        if parts.len() == 1 && (parts[0].start, parts[0].len) == (bio.start, bio.len) {
            return false;
        }
        self.actors[a as usize].plug.replace_front(&parts);
        true
    }

    fn io(&self, bio: &Bio) -> Io {
        Io {
            at_ns: self.now_ns,
            op: bio.op,
            lba: Lba(u64::from(bio.start.0) * SECTORS),
            sectors: bio.len * SECTORS as u32,
            fua: bio.fua,
            hint: bio.hint,
            class: bio.class,
            measured: self.phase == Phase::Running,
        }
    }

    /// Puts a bio into the plug of an actor.
    fn add(&mut self, a: u32, bio: Bio) {
        let plug = &mut self.actors[a as usize].plug;
        plug.now_ns = self.now_ns;
        let n_new = plug.add(bio, &self.rules, &self.fs.cfg.costs);
        if bio.file != NO_FILE {
            self.fs.inodes[bio.file as usize].writeback.n_queued += n_new;
            self.writeback_pages += u64::from(bio.len);
        }
    }

    /// Puts bios into the plug of an actor.
    fn add_all(&mut self, a: u32, bios: &[Bio]) {
        bios.iter().for_each(|bio| self.add(a, *bio));
    }

    fn step(&mut self, a: u32) -> Flow {
        if self.actors[a as usize].makes_space.is_some()
            && let Some(flow) = self.make_space(a)
        {
            return flow;
        }
        if self.actors[a as usize].call.is_some() {
            return self.step_call(a);
        }
        match &self.actors[a as usize].task {
            Task::Thread(_) => self.step_thread(a),
            Task::Flusher(_) => self.step_flusher(a),
            Task::Journal(_) => self.step_journal(a),
            Task::Trimmer { next_ns } => self.step_trimmer(a, *next_ns),
            Task::Spawned { .. } | Task::Free => Flow::Block,
        }
    }
}
