//! The journal's thread: when a transaction commits and what that writes; and threads that
//! make log space.
//!
//! A commit writes descriptors, blocks and revoke records to the ring, waits, then flushes
//! the device and forces the commit block. Threads that change a block which is being
//! written wait until it is; threads that want the commit wait for its end. Source:
//! fs/jbd2/commit.c and checkpoint.c of Linux 6.

use super::{Flow, Host, NEVER, Task};
use crate::application::Application;
use crate::config::{DataMode, Discard};
use crate::io::{IoClass, IoOp};
use crate::journal::{Home, Oldest, Tid};
use crate::layout::FsBlock;
use crate::plug::{Bio, Target};

/// Blocks written home at once to make log space. Source: fs/jbd2, `JBD2_NR_BATCH`.
const CHECKPOINT_BATCH: usize = 64;

/// Longest discard \[blocks\]: 2 TiB less one block would be the most that a request's 32
/// bits of sectors hold.
const DISCARD_MAX: u32 = 1 << 28;

/// Where a commit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CommitStage {
    /// Nothing commits.
    #[default]
    Idle,
    /// The blocks are on their way; the commit block goes to this place of the ring.
    Log { commit: u64 },
    /// The file system's own device is being flushed.
    DataFlush { commit: u64 },
    /// The journal's device is being flushed.
    Flush { commit: u64 },
    /// The commit block is on its way.
    Record,
    /// The journal's superblock is on its way.
    Superblock,
}

/// Where a thread that makes log space is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpaceStage {
    /// Look what can be done.
    Look,
    /// The device is flushed before the tail moves.
    Flushed,
    /// The journal's superblock was written.
    TailWritten,
}

impl<A: Application> Host<A> {
    /// The journal's thread wakes when the running transaction is old enough.
    pub(super) fn arm_journal(&mut self) {
        let Some(journal) = &self.fs.journal else { return };
        let a = self.journal_thread();
        let actor = &self.actors[a as usize];
        let is_idle = matches!(actor.task, Task::Journal(CommitStage::Idle))
            && actor.makes_space.is_none()
            && actor.wake_ns == NEVER;
        if !is_idle {
            return;
        }
        if let Some(running) = &journal.running {
            let at_ns = match journal.wanted >= running.tid {
                true => self.now_ns,
                false => running.start_ns + u64::from(self.fs.cfg.commit_s) * 1_000_000_000,
            };
            self.wake(a, at_ns);
        }
    }

    /// Somebody wants `tid` committed.
    pub(super) fn want_commit(&mut self, tid: Tid) {
        if let Some(journal) = &mut self.fs.journal {
            journal.wanted = journal.wanted.max(tid);
            let a = self.journal_thread();
            let actor = &self.actors[a as usize];
            // Not while it waits for something.
            if matches!(actor.task, Task::Journal(CommitStage::Idle)) && actor.makes_space.is_none()
            {
                self.wake(a, self.now_ns);
            }
        }
    }

    /// `a` waits until `tid` is committed.
    pub(super) fn wait_commit(&mut self, a: u32, tid: Tid) -> Flow {
        self.want_commit(tid);
        self.commit_waiters.push((tid, a));
        Flow::Block
    }

    pub(super) fn step_journal(&mut self, a: u32) -> Flow {
        let Task::Journal(stage) = self.actors[a as usize].task else { unreachable!() };
        let (next, flow) = match stage {
            CommitStage::Idle => return self.begin_commit(a),
            CommitStage::Log { commit } => {
                self.wake_all(|host| &mut host.log_waiters);
                // Data that a transaction makes part of files has to be durable before it;
                // logged data is in it.
                if self.fs.journal_is_apart() && self.fs.cfg.barrier && !self.logs_data() {
                    self.add(a, Bio::flush(Target::Main));
                }
                (CommitStage::DataFlush { commit }, Flow::Io)
            }
            CommitStage::DataFlush { commit } => {
                if self.fs.cfg.barrier {
                    self.add(a, self.fs.journal_flush_bio());
                }
                (CommitStage::Flush { commit }, Flow::Io)
            }
            CommitStage::Flush { commit } => {
                self.add_log(a, commit, 1, true);
                (CommitStage::Record, Flow::Io)
            }
            CommitStage::Record => {
                self.commit_ended();
                let moves = self.fs.journal.as_ref().is_some_and(|j| j.should_move_tail());
                if moves && self.space_maker.is_none() {
                    self.add(a, self.fs.journal_superblock_bio());
                    self.counts.journal_superblocks += 1;
                    (CommitStage::Superblock, Flow::Io)
                } else {
                    (CommitStage::Idle, Flow::Cpu(0))
                }
            }
            CommitStage::Superblock => {
                if let Some(journal) = &mut self.fs.journal
                    && self.space_maker.is_none()
                {
                    journal.move_tail();
                }
                (CommitStage::Idle, Flow::Cpu(0))
            }
        };
        self.actors[a as usize].task = Task::Journal(next);
        flow
    }

    fn begin_commit(&mut self, a: u32) -> Flow {
        let Some(journal) = &mut self.fs.journal else { return Flow::Block };
        let Some(running) = &journal.running else { return Flow::Block };
        let due_ns = running.start_ns + u64::from(self.fs.cfg.commit_s) * 1_000_000_000;
        if journal.wanted < running.tid && self.now_ns < due_ns {
            return Flow::Until(due_ns);
        }
        if !journal.has_room_to_commit() {
            return self.need_space(a);
        }
        let (runs, commit) = journal.begin_commit().expect("a transaction runs");
        let mut n_blocks = 1;
        for (offset, len) in runs {
            self.add_log(a, offset, len, false);
            n_blocks += len;
        }
        self.counts.log_blocks += n_blocks;
        self.actors[a as usize].task = Task::Journal(CommitStage::Log { commit });
        self.wake_all(|host| &mut host.switch_waiters);
        // The requests are made once the blocks are copied and summed; then it waits.
        let ns = n_blocks * self.fs.cfg.costs.commit_block_ns;
        let at_ns = self.cpu(ns);
        self.actors[a as usize].waits_for_io = true;
        Flow::Until(at_ns)
    }

    fn add_log(&mut self, a: u32, offset: u64, len: u64, fua: bool) {
        let mut bios = vec![];
        self.fs.log_bios(offset, len, fua, |bio| bios.push(bio));
        self.add_all(a, &bios);
    }

    /// The commit block is on the device.
    fn commit_ended(&mut self) {
        let freed = self.fs.committed();
        self.counts.commits += 1;
        if self.fs.cfg.discard == Discard::Online && !freed.is_empty() {
            self.discards.extend(freed);
            self.wake(self.trimmer(), self.now_ns);
        }
        let committed = self.fs.journal.as_ref().map_or(0, |j| j.committed);
        let wake_ns = self.now_ns + self.fs.cfg.costs.wake_ns;
        let mut waiters = std::mem::take(&mut self.commit_waiters);
        waiters.retain(|(tid, waiter)| {
            let is_done = *tid <= committed;
            if is_done {
                self.wake(*waiter, wake_ns);
            }
            !is_done
        });
        self.commit_waiters = waiters;
    }

    pub(super) fn wake_all(&mut self, list: impl Fn(&mut Self) -> &mut Vec<u32>) {
        for waiter in std::mem::take(list(self)) {
            let at_ns = self.now_ns + self.fs.cfg.costs.wake_ns;
            self.wake(waiter, at_ns);
        }
    }

    // ---- before a change ----

    /// What `a` has to wait for before it may change `blocks` in a transaction, `n` blocks in
    /// all.
    pub(super) fn admit(&mut self, a: u32, blocks: &[FsBlock], n: u64) -> Option<Flow> {
        let journal = self.fs.journal.as_ref()?;
        if journal.is_short() {
            return Some(self.need_space(a));
        }
        if journal.is_full(n) {
            let tid = journal.running.as_ref().map_or(0, |t| t.tid);
            self.want_commit(tid);
            self.switch_waiters.push(a);
            return Some(Flow::Block);
        }
        let is_writing = matches!(
            self.actors[self.journal_thread() as usize].task,
            Task::Journal(CommitStage::Log { .. })
        );
        if is_writing && blocks.iter().any(|block| journal.is_committing(*block)) {
            self.log_waiters.push(a);
            return Some(Flow::Block);
        }
        None
    }

    fn need_space(&mut self, a: u32) -> Flow {
        self.actors[a as usize].makes_space = Some(SpaceStage::Look);
        Flow::Cpu(0)
    }

    // ---- log space ----

    /// Makes log space on the time of `a`; `None` when there is enough.
    pub(super) fn make_space(&mut self, a: u32) -> Option<Flow> {
        let stage = self.actors[a as usize].makes_space.expect("it makes space");
        if self.space_maker.is_some_and(|other| other != a) {
            self.space_waiters.push(a);
            return Some(Flow::Block);
        }
        self.space_maker = Some(a);
        let (next, flow) = match stage {
            SpaceStage::Look => match self.look_for_space(a) {
                Some(found) => found,
                None => {
                    self.actors[a as usize].makes_space = None;
                    self.space_maker = None;
                    self.wake_all(|host| &mut host.space_waiters);
                    return None;
                }
            },
            SpaceStage::Flushed => {
                self.add(a, self.fs.journal_superblock_bio());
                self.counts.journal_superblocks += 1;
                (SpaceStage::TailWritten, Flow::Io)
            }
            SpaceStage::TailWritten => {
                if let Some(journal) = &mut self.fs.journal {
                    journal.move_tail();
                }
                (SpaceStage::Look, Flow::Cpu(0))
            }
        };
        self.actors[a as usize].makes_space = Some(next);
        Some(flow)
    }

    fn look_for_space(&mut self, a: u32) -> Option<(SpaceStage, Flow)> {
        let is_journal = a == self.journal_thread();
        let journal = self.fs.journal.as_mut()?;
        let enough = if is_journal { journal.has_room_to_commit() } else { !journal.is_short() };
        if enough {
            return None;
        }
        if journal.can_move_tail() {
            // What was written home has to be durable before its log copy goes.
            if self.fs.cfg.barrier {
                self.add(a, Bio::flush(Target::Main));
            }
            return Some((SpaceStage::Flushed, Flow::Io));
        }
        self.counts.checkpoints += 1;
        match journal.oldest(CHECKPOINT_BATCH) {
            Oldest::Write(homes) => {
                self.write_homes(a, &homes);
                Some((SpaceStage::Look, Flow::Io))
            }
            Oldest::Commit(tid) if !is_journal => Some(self.space_by_commit(a, tid)),
            Oldest::Gone if !is_journal => {
                // All of the log belongs to transactions that are not finished.
                let tid = |t: &Option<crate::journal::Transaction>| t.as_ref().map(|t| t.tid);
                let tid = tid(&journal.committing).or(tid(&journal.running))?;
                Some(self.space_by_commit(a, tid))
            }
            Oldest::Commit(_) | Oldest::Gone => {
                // The journal's thread cannot wait for itself: the blocks are in the
                // transaction it is about to commit, so their old copies go home from there.
                let homes = self.fs.journal.as_ref()?.oldest_logged_again(CHECKPOINT_BATCH);
                assert!(!homes.is_empty(), "a full log has an oldest transaction");
                self.write_logged_again(a, &homes);
                Some((SpaceStage::Look, Flow::Io))
            }
        }
    }

    /// Waits for a commit. Meanwhile the journal's thread may have to make space itself.
    fn space_by_commit(&mut self, a: u32, tid: Tid) -> (SpaceStage, Flow) {
        self.space_maker = None;
        self.wake_all(|host| &mut host.space_waiters);
        (SpaceStage::Look, self.wait_commit(a, tid))
    }

    /// The transaction whose commit gives freed space back, if any does.
    pub(super) fn freeing_tid(&self) -> Option<Tid> {
        let journal = self.fs.journal.as_ref()?;
        let freeing = |t: &&crate::journal::Transaction| !t.freed.is_empty();
        let running = journal.running.as_ref().filter(freeing);
        Some(running.or(journal.committing.as_ref().filter(freeing))?.tid)
    }

    /// Blocks go home so that their log copies are not needed.
    fn write_homes(&mut self, a: u32, homes: &[Home]) {
        self.counts.checkpoint_blocks += homes.len() as u64;
        let metadata: Vec<FsBlock> = homes
            .iter()
            .filter_map(|home| match home {
                Home::Metadata(block) => Some(*block),
                Home::Data(..) => None,
            })
            .collect();
        let mut bios = vec![];
        self.fs.metadata_bios(&metadata, |bio| bios.push(bio));
        for home in homes {
            if let Home::Data(i, page) = *home {
                self.fs.write_back(i, page..page + 1, 1, 0, |bio| bios.push(bio));
            }
        }
        self.add_all(a, &bios);
    }

    /// Old copies of blocks that changed again since.
    fn write_logged_again(&mut self, a: u32, blocks: &[FsBlock]) {
        for block in blocks {
            let bio = self.fs.home_bio(*block);
            self.add(a, bio);
        }
    }

    // ---- discard ----

    pub(super) fn step_trimmer(&mut self, a: u32, next_ns: u64) -> Flow {
        if let Discard::Periodic(s) = self.fs.cfg.discard {
            if self.now_ns < next_ns {
                return Flow::Until(next_ns);
            }
            let next_ns = self.now_ns + u64::from(s) * 1_000_000_000;
            self.actors[a as usize].task = Task::Trimmer { next_ns };
            self.discards.extend(self.fs.untrimmed());
        }
        if self.discards.is_empty() && !matches!(self.fs.cfg.discard, Discard::Periodic(_)) {
            return Flow::Block;
        }
        self.send_discards(a, IoClass::Data);
        Flow::Io
    }

    /// Space that came free without a journal is told at once.
    pub(super) fn discard_freed(&mut self) {
        if self.fs.freed.is_empty() {
            return;
        }
        let freed = std::mem::take(&mut self.fs.freed);
        if self.fs.cfg.discard == Discard::Online {
            self.discards.extend(freed);
            self.wake(self.trimmer(), self.now_ns);
        }
    }

    /// Sends what is to be discarded. What is of class data is looked at again before it
    /// goes.
    pub(super) fn send_discards(&mut self, a: u32, class: IoClass) {
        let mut runs = std::mem::take(&mut self.discards);
        runs.sort_unstable();
        let mut merged: Vec<(FsBlock, u32)> = vec![];
        for (start, len) in runs {
            match merged.last_mut() {
                Some((first, n)) if first.0 + *n == start.0 => *n += len,
                _ => merged.push((start, len)),
            }
        }
        let pieces = merged.into_iter().flat_map(|(start, len)| {
            let starts = (0..len).step_by(DISCARD_MAX as usize);
            starts.map(move |at| (FsBlock(start.0 + at), DISCARD_MAX.min(len - at)))
        });
        for (start, len) in pieces {
            let bio = Bio { op: IoOp::Discard, start, len, ..Bio::flush(Target::Main) };
            self.add(a, Bio { class, ..bio });
        }
    }

    /// Whether data of `i` has to commit before it can go home.
    pub(super) fn logs_data(&self) -> bool {
        self.fs.cfg.data == DataMode::Journal && self.fs.journal.is_some()
    }
}
