//! The journal: which blocks are in which transaction, where the log stands, and what
//! has to be written home before log space comes free.
//!
//! As in jbd2, one transaction runs, at most one commits, and finished ones stay in the
//! log until all their blocks are home. A block that is logged again leaves the older
//! transaction. The log is a ring behind one block, the journal's superblock, which says
//! where the oldest live transaction begins.
//!
//! This module keeps the books and does no I/O; `commit.rs` writes. Sources of rules and
//! constants: fs/jbd2 of Linux 6 (`journal.c`, `transaction.c`, `commit.c`,
//! `checkpoint.c`) and the kernel's documentation of the journal's format.
//!
//! Invariants: positions in the log only grow; `tail <= head <= tail + len`; each buffer is
//! on at most one checkpoint list, whose count includes it. Cost: one hash lookup per
//! block and change.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::layout::FsBlock;

/// Number of a transaction; 0 is before the first.
pub(crate) type Tid = u32;

/// Blocks that one descriptor names: 4 KiB less header (12 bytes), UUID (16) and checksum
/// (4), in tags of 16 bytes. Source: kernel documentation, "Journal (jbd2)", tag version 3
/// (`metadata_csum` and `64bit`).
const TAGS: u64 = 254;

/// Blocks that one revoke block names: 4 KiB less header (16 bytes) and checksum (4), 8
/// bytes each. Source: as above.
const REVOKES: u64 = 509;

/// A block the journal knows about.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    running: bool,
    committing: bool,
    /// Freed while it committed.
    freed: bool,
    /// Finished transaction whose log copy is still needed; 0 for none.
    checkpoint: Tid,
    /// Page of a file, where data is logged: (inode index, page).
    data: Option<(u32, u32)>,
}

/// A transaction that runs or commits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) tid: Tid,
    /// When its first handle started \[ns\].
    pub(crate) start_ns: u64,
    blocks: Vec<u32>,
    n_live: u32,
    n_revokes: u64,
    /// Space that comes free when it is committed.
    pub(crate) freed: Vec<(FsBlock, u32)>,
}

impl Transaction {
    /// Blocks it holds so far.
    pub(crate) fn n_blocks(&self) -> u32 {
        self.n_live
    }
}

/// A finished transaction that is still needed.
#[derive(Clone, Debug)]
struct Checkpoint {
    tid: Tid,
    log_start: u64,
    blocks: Vec<u32>,
    /// Blocks before this one have left.
    first: usize,
    n_left: u32,
}

/// A piece of the log to write: ring offset and length \[blocks\].
pub(crate) type LogRun = (u64, u64);

/// A block that goes home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// A block of metadata.
    Metadata(FsBlock),
    /// A page of a file: inode index and page.
    Data(u32, u32),
}

/// What a checkpoint can do about the oldest transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Oldest {
    /// Nothing is left of it, or there is none: the tail can move.
    Gone,
    /// These blocks have to go home first.
    Write(Vec<Home>),
    /// Its blocks are in this transaction again, which has to commit first.
    Commit(Tid),
}

/// The journal.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// Blocks of the ring.
    len: u64,
    head: u64,
    /// Oldest position that the journal's superblock says is needed.
    tail: u64,
    pub(crate) running: Option<Transaction>,
    pub(crate) committing: Option<Transaction>,
    finished: VecDeque<Checkpoint>,
    buffers: FxHashMap<u32, Buffer>,
    next_tid: Tid,
    /// Last transaction that was committed.
    pub(crate) committed: Tid,
    /// Transaction that somebody wants committed.
    pub(crate) wanted: Tid,
}

impl Journal {
    /// An empty journal whose ring has `len` blocks.
    pub(crate) fn new(len: u64) -> Self {
        Self {
            len,
            head: 0,
            tail: 0,
            running: None,
            committing: None,
            finished: VecDeque::new(),
            buffers: FxHashMap::default(),
            next_tid: 1,
            committed: 0,
            wanted: 0,
        }
    }

    /// Most blocks of one transaction: a third of the journal, less its descriptor and
    /// commit blocks. Measured on Linux 6.18: at most 5,410 blocks and 23 of overhead in a
    /// ring of 16,383, with credits of about 28 set aside (fs/jbd2
    /// `j_max_transaction_buffers`; a quarter before Linux 6.10).
    pub(crate) fn transaction_max(&self) -> u64 {
        let third = self.len / 3;
        third.saturating_sub(third.div_ceil(TAGS) + 1).max(1)
    }

    /// Blocks of the journal: the ring and its superblock.
    pub(crate) fn n_blocks(&self) -> u64 {
        self.len + 1
    }

    /// Rounds of the ring so far.
    pub(crate) fn rounds(&self) -> f64 {
        self.head as f64 / self.len as f64
    }

    /// Log blocks that are free, less a margin and what the commit under way will need.
    /// Source: fs/jbd2 `jbd2_log_space_left`, margin of 32 blocks.
    fn space_left(&self) -> u64 {
        let committing = self.committing.as_ref().map_or(0, |t| self.log_blocks(t));
        let free = self.len - (self.head - self.tail);
        free.saturating_sub(32 + committing)
    }

    /// Whether a handle has to wait until log space is made.
    pub(crate) fn is_short(&self) -> bool {
        self.space_left() < self.transaction_max()
    }

    /// Whether the running transaction has no room for `n` blocks more. Blocks that were
    /// freed since they changed count: credits that were spent do not come back. Source:
    /// fs/jbd2 `add_transaction_credits`, `t_outstanding_credits`.
    pub(crate) fn is_full(&self, n: u64) -> bool {
        let max = self.transaction_max();
        let spent = self.running.as_ref().map_or(0, |t| t.blocks.len() as u64);
        spent > 0 && spent + n > max
    }

    /// The running transaction, which starts now if there is none.
    pub(crate) fn run(&mut self, now_ns: u64) -> &mut Transaction {
        let next_tid = &mut self.next_tid;
        self.running.get_or_insert_with(|| {
            let tid = *next_tid;
            *next_tid += 1;
            Transaction { tid, start_ns: now_ns, ..Transaction::default() }
        })
    }

    /// A block changes in the running transaction; `data` where it is a page of a file.
    pub(crate) fn add(&mut self, block: FsBlock, data: Option<(u32, u32)>, now_ns: u64) -> Tid {
        let buffer = self.buffers.entry(block.0).or_default();
        (buffer.data, buffer.freed) = (data, false);
        let is_new = !std::mem::replace(&mut buffer.running, true);
        let running = self.run(now_ns);
        if is_new {
            running.blocks.push(block.0);
            running.n_live += 1;
        }
        running.tid
    }

    /// A logged block is free: it need not go home, and replay must not write it. Returns
    /// whether the journal knew it.
    pub(crate) fn forget(&mut self, block: FsBlock, now_ns: u64) -> bool {
        let Some(buffer) = self.buffers.get_mut(&block.0) else { return false };
        let was_running = std::mem::take(&mut buffer.running);
        let (checkpoint, committing) = (std::mem::take(&mut buffer.checkpoint), buffer.committing);
        buffer.freed = true;
        if !committing {
            self.buffers.remove(&block.0);
        }
        self.leave(checkpoint);
        if was_running && let Some(running) = &mut self.running {
            running.n_live -= 1;
        }
        if checkpoint != 0 || committing {
            self.run(now_ns).n_revokes += 1;
        }
        true
    }

    /// A revoke record for a block the journal need not know: a freed block of metadata.
    pub(crate) fn revoke(&mut self, now_ns: u64) {
        self.run(now_ns).n_revokes += 1;
    }

    /// A buffer leaves the list of a finished transaction.
    fn leave(&mut self, checkpoint: Tid) {
        if checkpoint == 0 {
            return;
        }
        let at = self.finished.binary_search_by_key(&checkpoint, |c| c.tid);
        let at = at.expect("a checkpoint that buffers point to is there");
        self.finished[at].n_left -= 1;
        while self.finished.front().is_some_and(|c| c.n_left == 0) {
            self.finished.pop_front();
        }
    }

    /// Whether a block is being written to the log, so that changes to it have to wait.
    pub(crate) fn is_committing(&self, block: FsBlock) -> bool {
        self.buffers.get(&block.0).is_some_and(|b| b.committing)
    }

    /// Whether a block is in a transaction that is not committed.
    pub(crate) fn is_pinned(&self, block: FsBlock) -> bool {
        self.buffers.get(&block.0).is_some_and(|b| b.running || b.committing)
    }

    /// Blocks a transaction takes in the log, descriptors, revoke and commit blocks included.
    fn log_blocks(&self, t: &Transaction) -> u64 {
        let n = u64::from(t.n_live);
        let needed = n + n.div_ceil(TAGS) + t.n_revokes.div_ceil(REVOKES) + 1;
        // One call is one handle here, where ext4 cuts large ones into several
        // transactions; one that is too large for the ring counts as large as fits.
        needed.min(self.len / 4 * 3)
    }

    /// Whether the running transaction fits into the log as it stands.
    pub(crate) fn has_room_to_commit(&self) -> bool {
        let needed = self.running.as_ref().map_or(0, |t| self.log_blocks(t));
        self.head + needed - self.tail <= self.len
    }

    /// The running transaction begins to commit. The runs of the ring its blocks go to, and
    /// the place of its commit block.
    pub(crate) fn begin_commit(&mut self) -> Option<(Vec<LogRun>, u64)> {
        let mut t = self.running.take()?;
        let buffers = &mut self.buffers;
        t.blocks.retain(|block| {
            let buffer = buffers.get_mut(block).filter(|b| b.running);
            buffer.is_some_and(|b| {
                (b.running, b.committing) = (false, true);
                true
            })
        });
        t.n_live = t.blocks.len() as u32;
        let n = self.log_blocks(&t);
        assert!(self.head + n - self.tail <= self.len, "the log has room for a transaction");
        let runs = self.ring(self.head, n - 1);
        let commit = (self.head + n - 1) % self.len;
        self.committing = Some(t);
        Some((runs, commit))
    }

    fn ring(&self, from: u64, n: u64) -> Vec<LogRun> {
        let offset = from % self.len;
        let first = n.min(self.len - offset);
        [(offset, first), (0, n - first)].into_iter().filter(|(_, n)| *n > 0).collect()
    }

    /// The commit block is on the device. Tells about blocks that can go home now; returns
    /// the space that comes free.
    pub(crate) fn end_commit(&mut self, mut dirty: impl FnMut(Home)) -> Vec<(FsBlock, u32)> {
        let mut t = self.committing.take().expect("a commit is under way");
        let n = self.log_blocks(&t);
        let mut checkpoint = Checkpoint {
            tid: t.tid,
            log_start: self.head,
            blocks: std::mem::take(&mut t.blocks),
            first: 0,
            n_left: 0,
        };
        self.head += n;
        self.committed = t.tid;
        // On the list before older ones shrink, which drops those that are empty.
        let blocks = std::mem::take(&mut checkpoint.blocks);
        checkpoint.n_left = blocks.len() as u32 + 1;
        self.finished.push_back(checkpoint);
        let mut n_kept = 0;
        for block in &blocks {
            let Some(buffer) = self.buffers.get_mut(block) else { continue };
            let older = std::mem::replace(&mut buffer.checkpoint, t.tid);
            let was_committing = std::mem::take(&mut buffer.committing);
            debug_assert!(was_committing);
            let (running, data) = (buffer.running, buffer.data);
            if buffer.freed {
                self.buffers.remove(block);
                self.leave(older);
                continue;
            }
            self.leave(older);
            n_kept += 1;
            if !running {
                dirty(match data {
                    Some((inode, page)) => Home::Data(inode, page),
                    None => Home::Metadata(FsBlock(*block)),
                });
            }
        }
        let last = self.finished.back_mut().expect("it was pushed");
        last.blocks = blocks;
        last.n_left = n_kept;
        while self.finished.front().is_some_and(|c| c.n_left == 0) {
            self.finished.pop_front();
        }
        t.freed
    }

    /// A block was written home, unless it changed again meanwhile.
    pub(crate) fn wrote_home(&mut self, block: FsBlock) {
        let Some(buffer) = self.buffers.get_mut(&block.0) else { return };
        let checkpoint = std::mem::take(&mut buffer.checkpoint);
        if !buffer.running && !buffer.committing {
            self.buffers.remove(&block.0);
        }
        self.leave(checkpoint);
    }

    /// The oldest position that is still needed.
    fn needed(&self) -> u64 {
        self.finished.front().map_or(self.head, |c| c.log_start)
    }

    /// Whether moving the tail would free as much as a transaction may take, which makes a
    /// commit write the journal's superblock. Source: fs/jbd2/commit.c; measured on Linux
    /// 6.18.
    pub(crate) fn should_move_tail(&self) -> bool {
        self.needed() - self.tail >= self.len / 3
    }

    /// Whether the tail can move at all.
    pub(crate) fn can_move_tail(&self) -> bool {
        self.needed() > self.tail
    }

    /// The journal's superblock says so now.
    pub(crate) fn move_tail(&mut self) {
        self.tail = self.needed();
    }

    /// What the oldest transaction still needs; at most `n_max` blocks at once.
    pub(crate) fn oldest(&mut self, n_max: usize) -> Oldest {
        let Some(oldest) = self.finished.front_mut() else { return Oldest::Gone };
        let has_left =
            |block: &u32| self.buffers.get(block).is_none_or(|b| b.checkpoint != oldest.tid);
        // A block that left never comes back, so each is passed once.
        oldest.first += oldest.blocks[oldest.first..].iter().take_while(|b| has_left(b)).count();
        let mut homes = vec![];
        let mut wanted = None;
        for block in &oldest.blocks[oldest.first..] {
            let Some(buffer) = self.buffers.get(block).filter(|b| b.checkpoint == oldest.tid)
            else {
                continue;
            };
            let tid_of = |t: &Option<Transaction>| t.as_ref().map(|t| t.tid);
            if buffer.committing {
                wanted = wanted.or(tid_of(&self.committing));
            } else if buffer.running {
                wanted = wanted.or(tid_of(&self.running));
            } else {
                homes.push(match buffer.data {
                    Some((inode, page)) => Home::Data(inode, page),
                    None => Home::Metadata(FsBlock(*block)),
                });
                if homes.len() == n_max {
                    break;
                }
            }
        }
        match (homes.is_empty(), wanted) {
            (false, _) => Oldest::Write(homes),
            (true, Some(tid)) => Oldest::Commit(tid),
            (true, None) => Oldest::Gone,
        }
    }

    /// Blocks of the oldest transaction that are in a later one as well.
    pub(crate) fn oldest_logged_again(&self, n_max: usize) -> Vec<FsBlock> {
        let Some(oldest) = self.finished.front() else { return vec![] };
        let is_left =
            |block: &&u32| self.buffers.get(*block).is_some_and(|b| b.checkpoint == oldest.tid);
        oldest.blocks.iter().filter(is_left).take(n_max).map(|b| FsBlock(*b)).collect()
    }

    /// Space whose freeing is not committed.
    pub(crate) fn pending_frees(&self) -> impl Iterator<Item = (FsBlock, u32)> {
        let open = self.running.iter().chain(&self.committing);
        open.flat_map(|t| t.freed.iter().copied())
    }

    /// Checks the books against the buffers.
    ///
    /// # Panics
    ///
    /// If they do not agree.
    pub(crate) fn self_check(&self) {
        assert!(self.tail <= self.needed() && self.needed() <= self.head);
        assert!(self.head - self.tail <= self.len);
        let mut n_left: FxHashMap<Tid, u32> = FxHashMap::default();
        for buffer in self.buffers.values().filter(|b| b.checkpoint != 0) {
            *n_left.entry(buffer.checkpoint).or_default() += 1;
        }
        for c in &self.finished {
            let n = n_left.remove(&c.tid).unwrap_or(0);
            assert_eq!(n, c.n_left, "transaction {}", c.tid);
        }
        assert!(n_left.is_empty(), "a buffer waits for a transaction that is gone");
        let running = self.buffers.values().filter(|b| b.running).count();
        assert_eq!(running, self.running.as_ref().map_or(0, |t| t.n_live as usize));
        assert!(self.buffers.values().all(|b| b.running || b.committing || b.checkpoint != 0));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn commit(j: &mut Journal) -> Vec<Home> {
        let mut homes = vec![];
        if j.begin_commit().is_some() {
            j.end_commit(|home| homes.push(home));
        }
        homes
    }

    #[test]
    fn a_transaction_takes_its_blocks_and_two_more() {
        let mut j = Journal::new(1000);
        j.add(FsBlock(5), None, 7);
        j.add(FsBlock(6), None, 8);
        j.add(FsBlock(5), None, 9);
        assert_eq!(j.running.as_ref().map(|t| (t.tid, t.start_ns)), Some((1, 7)));
        let (runs, at) = j.begin_commit().expect("a transaction runs");
        assert_eq!((runs, at), (vec![(0, 3)], 3));
        assert!(j.is_committing(FsBlock(5)));
        let homes = {
            let mut homes = vec![];
            j.end_commit(|home| homes.push(home));
            homes
        };
        assert_eq!(homes, [Home::Metadata(FsBlock(5)), Home::Metadata(FsBlock(6))]);
        assert_eq!((j.head, j.committed), (4, 1));
        j.self_check();
    }

    #[test]
    fn a_block_that_is_logged_again_frees_the_older_transaction() {
        let mut j = Journal::new(100);
        for _ in 0..20 {
            j.add(FsBlock(5), None, 0);
            commit(&mut j);
        }
        assert_eq!((j.head, j.needed()), (60, 57));
        assert!(j.should_move_tail() && j.can_move_tail());
        j.move_tail();
        j.wrote_home(FsBlock(5));
        assert_eq!(j.oldest(9), Oldest::Gone);
        j.self_check();
    }

    #[test]
    fn a_freed_block_is_revoked_and_never_goes_home() {
        let mut j = Journal::new(100);
        j.add(FsBlock(5), Some((0, 0)), 0);
        assert_eq!(commit(&mut j), [Home::Data(0, 0)]);
        assert!(j.forget(FsBlock(5), 0));
        assert!(!j.forget(FsBlock(5), 0));
        let (runs, at) = j.begin_commit().expect("the revoke record is a transaction");
        // One revoke block and the commit block.
        assert_eq!((runs, at), (vec![(3, 1)], 4));
        j.end_commit(|_| unreachable!());
        assert_eq!(j.oldest(9), Oldest::Gone);
        j.self_check();
    }

    proptest! {
        /// Everything that was logged goes home exactly once after its last change, or is
        /// forgotten; the books hold at every step.
        #[test]
        fn logged_blocks_go_home(steps in prop::collection::vec((0u8..6, 0u32..30), 1..200)) {
            let mut j = Journal::new(200);
            let mut logged = BTreeSet::new();
            let mut home = BTreeSet::new();
            for (kind, block) in steps {
                match kind {
                    0..=2 => {
                        j.add(FsBlock(block), None, 0);
                        home.remove(&block);
                        logged.insert(block);
                    }
                    3 => {
                        j.forget(FsBlock(block), 0);
                        logged.remove(&block);
                        home.remove(&block);
                    }
                    4 => {
                        while j.is_short() {
                            match j.oldest(7) {
                                Oldest::Gone => j.move_tail(),
                                Oldest::Write(all) => for h in all {
                                    let Home::Metadata(b) = h else { unreachable!() };
                                    prop_assert!(logged.contains(&b.0) && home.insert(b.0));
                                    j.wrote_home(b);
                                },
                                Oldest::Commit(_) => { commit(&mut j); }
                            }
                        }
                        commit(&mut j);
                    }
                    _ => {
                        if !j.is_pinned(FsBlock(block)) && logged.contains(&block) {
                            home.insert(block);
                        }
                        if !j.is_pinned(FsBlock(block)) {
                            j.wrote_home(FsBlock(block));
                        }
                    }
                }
                j.self_check();
            }
            commit(&mut j);
            loop {
                match j.oldest(100) {
                    Oldest::Gone => break,
                    Oldest::Write(all) => for h in all {
                        let Home::Metadata(b) = h else { unreachable!() };
                        prop_assert!(home.insert(b.0), "block {} goes home twice", b.0);
                        j.wrote_home(b);
                    },
                    Oldest::Commit(tid) => prop_assert!(false, "{tid} is not committed"),
                }
            }
            prop_assert_eq!(home, logged);
            j.self_check();
        }
    }
}
