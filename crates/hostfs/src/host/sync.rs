//! Making data durable: fsync, fdatasync, writes that are, and sync.
//!
//! fsync writes a file's dirty pages and waits; then it needs the transaction with the
//! file's last change on the device. If that is not committed, the commit's own flush
//! covers the data; if it is, the device is flushed. With `data=journal` the commit comes
//! first and the pages go home after it. Source: fs/ext4/fsync.c and inode.c of Linux 6;
//! counts per call are compared with a real ext4 in docs/model.md.

use super::{Flow, Host};
use crate::application::{Application, Outcome};
use crate::layout::FsBlock;

/// Where a sync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncStage {
    /// With `data=journal`: the pages' transaction commits.
    CommitFirst,
    /// Dirty pages are sent on their way.
    Write,
    /// Others' writes of the file are on their way.
    Wait,
    /// The transaction commits.
    Commit,
    /// Metadata is written, where there is no journal.
    Metadata,
    /// The device is flushed, unless a commit's own flush did.
    Flush { is_covered: bool },
    /// All is durable.
    End,
}

/// What a sync covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sync {
    /// Which file; everything if `None`.
    pub(super) file: Option<u32>,
    /// Only what is needed to find the data.
    pub(super) data_only: bool,
    pub(super) stage: SyncStage,
}

impl Sync {
    pub(super) fn of(file: Option<u32>, data_only: bool) -> Self {
        Self { file, data_only, stage: SyncStage::CommitFirst }
    }
}

impl<A: Application> Host<A> {
    /// One step of a sync; `None` when all is durable.
    pub(super) fn step_sync(&mut self, a: u32, sync: &mut Sync) -> Option<Flow> {
        let (next, flow) = match sync.stage {
            SyncStage::CommitFirst => match self.tid_of(sync) {
                Some(tid) if self.logs_data() && !self.is_committed(tid) => {
                    (SyncStage::Write, self.wait_commit(a, tid))
                }
                _ => (SyncStage::Write, Flow::Cpu(0)),
            },
            SyncStage::Write => match self.write_dirty(a, sync) {
                Some(flow) => (SyncStage::Write, flow),
                None => (SyncStage::Wait, Flow::Io),
            },
            SyncStage::Wait => match self.others_write(a, sync) {
                Some(flow) => (SyncStage::Wait, flow),
                None => (SyncStage::Commit, Flow::Cpu(0)),
            },
            SyncStage::Commit => self.commit_for(a, sync),
            SyncStage::Metadata => {
                self.write_metadata(a, sync);
                (SyncStage::Flush { is_covered: false }, Flow::Io)
            }
            SyncStage::Flush { is_covered } => {
                if self.fs.cfg.barrier && !is_covered {
                    self.add(a, crate::plug::Bio::flush(crate::plug::Target::Main));
                }
                (SyncStage::End, Flow::Io)
            }
            SyncStage::End => return None,
        };
        sync.stage = next;
        Some(flow)
    }

    /// The transaction that has to be on the device.
    fn tid_of(&self, sync: &Sync) -> Option<u32> {
        match sync.file {
            Some(i) => {
                let inode = &self.fs.inodes[i as usize];
                Some(if sync.data_only { inode.datasync_tid } else { inode.sync_tid })
            }
            None => {
                let journal = self.fs.journal.as_ref()?;
                let tid = |t: &Option<crate::journal::Transaction>| t.as_ref().map(|t| t.tid);
                tid(&journal.running).or(tid(&journal.committing))
            }
        }
    }

    fn is_committed(&self, tid: u32) -> bool {
        self.fs.journal.as_ref().is_none_or(|j| tid <= j.committed)
    }

    fn write_dirty(&mut self, a: u32, sync: &Sync) -> Option<Flow> {
        let files: Vec<u32> = match sync.file {
            Some(i) => vec![i],
            None => self.fs.dirty_files.iter().map(|(_, i)| *i).collect(),
        };
        let mut map_ns = 0;
        for i in files {
            let inode = &self.fs.inodes[i as usize];
            if inode.pages.n_dirty == 0 {
                continue;
            }
            if inode.n_reserved > 0
                && let Some(flow) = self.admit(a, &[inode.table_block], 16)
            {
                return Some(flow);
            }
            let mut bios = vec![];
            self.fs.write_back(i, 0..u32::MAX, u32::MAX, a, |bio| bios.push(bio));
            map_ns += bios.len() as u64 * self.fs.cfg.costs.map_ns;
            self.add_all(a, &bios);
        }
        // Finding the blocks takes its time before the first request goes.
        let at_ns = self.cpu(map_ns);
        if at_ns > self.now_ns && map_ns > 0 {
            return Some(Flow::Until(at_ns));
        }
        None
    }

    /// Waits for writes of the file that others sent.
    fn others_write(&mut self, a: u32, sync: &Sync) -> Option<Flow> {
        let wake_ns = self.fs.cfg.costs.wake_ns;
        let Some(i) = sync.file else {
            // Everything that is at the device by now.
            let last = self.in_flight.iter().map(|r| r.0.0).max()?;
            return (last > self.now_ns).then_some(Flow::Until(last + wake_ns));
        };
        let writeback = &mut self.fs.inodes[i as usize].writeback;
        if writeback.n_queued > 0 {
            writeback.waiters.push(a);
            return Some(Flow::Block);
        }
        (writeback.end_ns > self.now_ns).then_some(Flow::Until(writeback.end_ns + wake_ns))
    }

    fn commit_for(&mut self, a: u32, sync: &Sync) -> (SyncStage, Flow) {
        let Some(journal) = &self.fs.journal else {
            return (SyncStage::Metadata, Flow::Cpu(0));
        };
        let after = |is_covered| match sync.file {
            Some(_) => SyncStage::Flush { is_covered },
            None => SyncStage::Metadata,
        };
        let tid = self.tid_of(sync).unwrap_or(0);
        if tid <= journal.committed {
            return (after(false), Flow::Cpu(0));
        }
        // A commit that has sent its flush already does not cover what was written since.
        let is_covered = self.commit_will_flush(tid);
        (after(is_covered), self.wait_commit(a, tid))
    }

    /// Whether the commit of `tid` has its flush still before it.
    fn commit_will_flush(&self, tid: u32) -> bool {
        let Some(journal) = &self.fs.journal else { return false };
        let is_running = journal.running.as_ref().is_some_and(|t| t.tid == tid);
        let before_flush = matches!(
            self.actors[self.journal_thread() as usize].task,
            super::Task::Journal(
                super::CommitStage::Log { .. } | super::CommitStage::DataFlush { .. }
            )
        );
        self.fs.cfg.barrier && (is_running || before_flush)
    }

    /// Metadata that `sync` writes home, or fsync where there is no journal.
    fn write_metadata(&mut self, a: u32, sync: &Sync) {
        let blocks: Vec<FsBlock> = match sync.file {
            None => self.fs.dirty_metadata.iter().map(|b| FsBlock(*b)).collect(),
            Some(i) => {
                let inode = &mut self.fs.inodes[i as usize];
                let mut blocks = std::mem::take(&mut inode.name_blocks);
                blocks.push(inode.table_block);
                blocks.extend(&inode.tree);
                blocks.sort_unstable();
                blocks.dedup();
                blocks
            }
        };
        let mut bios = vec![];
        self.fs.metadata_bios(&blocks, |bio| bios.push(bio));
        self.add_all(a, &bios);
    }

    /// The step of an `fsync` that is all a call does.
    pub(super) fn step_sync_call(&mut self, a: u32, mut sync: Sync) -> (Sync, Flow) {
        match self.step_sync(a, &mut sync) {
            Some(flow) => (sync, flow),
            None => (sync, Flow::Done(Outcome::Done(0))),
        }
    }
}
