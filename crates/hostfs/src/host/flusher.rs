//! The flusher: dirty pages go home when they are old or too many; writers wait when there
//! are far too many.
//!
//! Source: Linux fs/fs-writeback.c and mm/page-writeback.c: files in the order in which
//! they became dirty, a file's pages in the order of the file, a bounded number of pages of
//! one file before the next has its turn. Not modelled: the kernel slows writers down
//! gradually from halfway between the two limits, and throttles background writes on busy
//! devices (`wbt`); here writers run free up to the limit and then wait.

use super::{Flow, Host, Task};
use crate::application::Application;
use crate::inode::PAGE;
use crate::layout::FsBlock;

/// Pages sent on their way in one step.
const STEP_PAGES: u32 = 1024;

/// Turns of files in one step, half of them to choose the file. Assumed: the kernel holds
/// one plug for a whole round, which ends sooner whenever its thread has to wait.
const STEP_FILES: u32 = 256;

/// Longest that files go home before the limit is looked at again \[ns\]. Source:
/// fs/fs-writeback.c, `writeback_sb_inodes` (HZ / 10).
const PASS_NS: u64 = 100_000_000;

/// Smallest turn of a file \[pages\]. Source: fs/fs-writeback.c, `MIN_WRITEBACK_PAGES`
/// (4 MiB).
const TURN_MIN: u64 = 1024;

/// What the flusher is at.
#[derive(Clone, Debug, Default)]
pub(super) struct FlusherState {
    /// File whose turn it is, and how many pages it may still write.
    turn: Option<(u32, u64)>,
    /// When the round began \[ns\].
    round_ns: u64,
    in_round: bool,
    /// When it last found too much dirty; what was dirty then goes home \[ns\].
    pass_ns: Option<u64>,
    /// When it looks next without being asked \[ns\].
    next_ns: u64,
    /// Files that could not be written now.
    later: Vec<(u64, u32)>,
}

impl FlusherState {
    /// Files it has taken off the list of dirty ones.
    pub(super) fn held(&self) -> impl Iterator<Item = u32> + '_ {
        let turn = self.turn.iter().map(|(i, _)| *i);
        turn.chain(self.later.iter().map(|(_, i)| *i))
    }
}

impl<A: Application> Host<A> {
    fn flusher_state(&mut self) -> &mut FlusherState {
        let a = self.flusher();
        match &mut self.actors[a as usize].task {
            Task::Flusher(state) => state,
            _ => unreachable!("the flusher is the flusher"),
        }
    }

    fn dirty_bytes(&self) -> u64 {
        let metadata = self.fs.dirty_metadata.len() as u64;
        (self.fs.cache.n_dirty() + self.writeback_pages + metadata) * PAGE
    }

    /// Starts write-back if there is too much that is dirty; whether a writer has to wait.
    pub(super) fn balance(&mut self) -> bool {
        let cfg = &self.fs.cfg;
        let (limit, background) = (cfg.dirty_limit(), cfg.background_limit());
        let dirty = self.dirty_bytes();
        if dirty > background && !self.flusher_state().in_round {
            self.wake(self.flusher(), self.now_ns);
        }
        dirty > limit
    }

    /// A writer waits until enough has reached the device.
    pub(super) fn throttle(&mut self) -> Flow {
        if self.logs_data()
            && let Some(journal) = &self.fs.journal
            && let Some(running) = &journal.running
        {
            // Its pages cannot go home before they are committed.
            self.want_commit(running.tid);
        }
        self.until_next_end()
    }

    /// Some files after each other in one plug, so that small ones that lie side by side
    /// share requests.
    pub(super) fn step_flusher(&mut self, a: u32) -> Flow {
        let mut cpu_ns = 0;
        for _ in 0..STEP_FILES {
            match self.flush_some(a) {
                Flow::Cpu(ns) => cpu_ns += ns,
                // What is in the plug goes first; then it looks again what there is to do.
                _ if cpu_ns > 0 || self.actors[a as usize].plug.iter().next().is_some() => break,
                other => return other,
            }
        }
        Flow::Cpu(cpu_ns)
    }

    fn flush_some(&mut self, a: u32) -> Flow {
        let now_ns = self.now_ns;
        let interval_ns = self.fs.cfg.writeback_ms * 1_000_000;
        if !self.flusher_state().in_round {
            let state = self.flusher_state();
            (state.in_round, state.round_ns) = (true, now_ns);
            if interval_ns > 0 && now_ns >= state.next_ns {
                state.next_ns = now_ns + interval_ns;
            }
        }
        if let Some((i, left)) = self.flusher_state().turn {
            return self.flush_file(a, i, left);
        }
        if let Some(i) = self.next_file() {
            let turn = (self.fs.cfg.dirty_limit() / 8 / PAGE).max(TURN_MIN);
            self.flusher_state().turn = Some((i, turn));
            return Flow::Cpu(0);
        }
        if self.metadata_is_due() {
            let blocks: Vec<FsBlock> = self.fs.dirty_metadata.iter().map(|b| FsBlock(*b)).collect();
            let mut bios = vec![];
            self.fs.metadata_bios(&blocks, |bio| bios.push(bio));
            self.add_all(a, &bios);
            return Flow::Cpu(0);
        }
        let state = self.flusher_state();
        state.in_round = false;
        let later = std::mem::take(&mut state.later);
        let next_ns = state.next_ns;
        later.into_iter().rev().for_each(|file| self.fs.dirty_files.push_front(file));
        if interval_ns == 0 { Flow::Block } else { Flow::Until(next_ns.max(now_ns + 1)) }
    }

    /// Whether a file that is dirty since `since_ns` goes home because too much is dirty: the
    /// limit is looked at once for all files that are dirty by then.
    fn is_in_pass(&mut self, since_ns: u64) -> bool {
        let now_ns = self.now_ns;
        let under_way = self.flusher_state().pass_ns;
        if under_way.is_some_and(|at| since_ns <= at && now_ns < at + PASS_NS) {
            return true;
        }
        let starts = self.is_over_background();
        self.flusher_state().pass_ns = starts.then_some(now_ns);
        starts
    }

    /// Data and metadata count together, as writers that wait count them.
    fn is_over_background(&self) -> bool {
        let n_dirty = self.fs.cache.n_dirty() + self.fs.dirty_metadata.len() as u64;
        n_dirty * PAGE > self.fs.cfg.background_limit()
    }

    fn is_old(&mut self, since_ns: u64) -> bool {
        let expire_ns = self.fs.cfg.expire_ms * 1_000_000;
        self.fs.cfg.writeback_ms > 0 && since_ns + expire_ns <= self.flusher_state().round_ns
    }

    fn metadata_is_due(&mut self) -> bool {
        let Some(since_ns) = self.fs.metadata_since_ns else { return false };
        !self.fs.dirty_metadata.is_empty() && (self.is_old(since_ns) || self.is_over_background())
    }

    /// The file whose pages go home next.
    fn next_file(&mut self) -> Option<u32> {
        while let Some((since_ns, i)) = self.fs.dirty_files.front().copied() {
            if self.fs.inodes[i as usize].dirty_since_ns != Some(since_ns) {
                self.fs.dirty_files.pop_front();
                continue;
            }
            if !self.is_in_pass(since_ns) && !self.is_old(since_ns) {
                return None;
            }
            self.fs.dirty_files.pop_front();
            return Some(i);
        }
        None
    }

    fn flush_file(&mut self, a: u32, i: u32, left: u64) -> Flow {
        let inode = &self.fs.inodes[i as usize];
        if inode.n_reserved > 0
            && let Some(flow) = self.admit(a, &self.allocation_blocks(i), 16)
        {
            return flow;
        }
        let Some(since_ns) = self.fs.inodes[i as usize].dirty_since_ns else {
            self.flusher_state().turn = None;
            return Flow::Cpu(0);
        };
        let mut bios = vec![];
        let n_max = STEP_PAGES.min(left as u32).max(1);
        let written = self.fs.write_back(i, 0..u32::MAX, n_max, a, |bio| bios.push(bio));
        self.add_all(a, &bios);
        let n = written.n;
        if written.no_space {
            match self.freeing_tid() {
                Some(tid) => self.want_commit(tid),
                None => self.fs.lose_unmapped(i),
            }
        }
        let map_ns = bios.len() as u64 * self.fs.cfg.costs.map_ns;
        let is_dirty = self.fs.inodes[i as usize].dirty_since_ns == Some(since_ns);
        let left = left.saturating_sub(u64::from(n));
        self.flusher_state().turn = match (is_dirty, n, left) {
            (false, ..) => None,
            // Its pages belong to a transaction that is not committed.
            (true, 0, _) => {
                self.flusher_state().later.push((since_ns, i));
                None
            }
            (true, _, 0) => {
                self.requeue(since_ns, i);
                None
            }
            (true, ..) => Some((i, left)),
        };
        Flow::Cpu(map_ns)
    }

    /// The turn of a file is over and it is not done: it waits behind the others that are
    /// due.
    fn requeue(&mut self, since_ns: u64, i: u32) {
        let expire_ns = self.fs.cfg.expire_ms * 1_000_000;
        let round_ns = self.flusher_state().round_ns;
        let files = &mut self.fs.dirty_files;
        let due = files.partition_point(|(since, _)| since + expire_ns <= round_ns);
        files.insert(due, (since_ns, i));
    }
}
