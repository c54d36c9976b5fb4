//! Making data durable: fsync, fdatasync, writes that are, and sync.
//!
//! fsync writes a file's dirty pages and waits; then it needs the transaction with the
//! file's last change on the device. If that is not committed, the commit's own flush
//! covers the data; if it is, the device is flushed. With `data=journal` the commit comes
//! first and the pages go home after it. Source: fs/ext4/fsync.c and inode.c of Linux 6;
//! counts per call are compared with a real ext4 in docs/model.md.

use super::{Flow, Host};
use crate::application::Application;
use crate::layout::FsBlock;

/// How often a thread looks whether what it waits for has happened, where nobody tells it
/// \[ns\]. Assumed.
const LOOK_NS: u64 = 10_000;

/// Where a sync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncStage {
    /// With `data=journal`: the pages' transaction commits.
    CommitFirst,
    /// Dirty pages are sent on their way.
    Write,
    /// Blocks are found, and the requests go.
    Written,
    /// Others' writes of the file are on their way.
    Wait,
    /// New blocks become part of their files.
    Convert,
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
    /// When it began \[ns\]. What becomes dirty later is not its concern, so it ends however
    /// much others write.
    start_ns: u64,
    pub(super) stage: SyncStage,
}

impl Sync {
    pub(super) fn of(file: Option<u32>, data_only: bool, start_ns: u64) -> Self {
        Self { file, data_only, start_ns, stage: SyncStage::CommitFirst }
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
                Ok(flow) => (SyncStage::Written, flow),
                Err(flow) => (SyncStage::Write, flow),
            },
            SyncStage::Written => (SyncStage::Wait, Flow::Io),
            SyncStage::Wait => match self.others_write(a, sync) {
                Some(flow) => (SyncStage::Wait, flow),
                None => (SyncStage::Convert, Flow::Cpu(0)),
            },
            SyncStage::Convert => match self.convert_files(a, sync) {
                Some(flow) => (SyncStage::Convert, flow),
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

    /// Sends what is dirty on its way, once. `Err` with what it has to wait for before it
    /// tries again.
    fn write_dirty(&mut self, a: u32, sync: &Sync) -> Result<Flow, Flow> {
        let mut map_ns = 0;
        match sync.file {
            Some(i) => map_ns += self.write_dirty_file(a, i)?,
            None => {
                let listed = self.fs.dirty_files.iter();
                let listed = listed.filter(|(since, _)| *since <= sync.start_ns);
                let mut files: Vec<u32> = listed.map(|(_, i)| *i).collect();
                files.extend(self.held_by_flusher());
                for i in files {
                    map_ns += self.write_dirty_file(a, i)?;
                }
            }
        }
        if map_ns == 0 {
            return Ok(Flow::Cpu(0));
        }
        // Finding the blocks takes its time before the first request goes.
        Ok(Flow::Until(self.cpu(map_ns)))
    }

    /// The same for one file. How long finding its blocks takes \[ns\].
    fn write_dirty_file(&mut self, a: u32, i: u32) -> Result<u64, Flow> {
        let inode = &self.fs.inodes[i as usize];
        if inode.pages.n_dirty == 0 {
            return Ok(0);
        }
        if inode.n_reserved > 0
            && let Some(flow) = self.admit(a, &self.allocation_blocks(i), 16)
        {
            return Err(flow);
        }
        if self.fs.converts_late() {
            let inode = &mut self.fs.inodes[i as usize];
            inode.converts |= inode.n_reserved > 0;
        }
        let mut bios = vec![];
        let written = self.fs.write_back(i, 0..u32::MAX, u32::MAX, a, |bio| bios.push(bio));
        let map_ns = bios.len() as u64 * self.fs.cfg.costs.map_ns;
        self.add_all(a, &bios);
        if written.no_space {
            match self.freeing_tid() {
                // What the transaction freed can be used once it has committed. Source:
                // fs/ext4/inode.c, `ext4_do_writepages`.
                Some(tid) => return Err(self.wait_commit(a, tid)),
                None => self.fs.lose_unmapped(i),
            }
        }
        Ok(map_ns)
    }

    /// Waits for writes that others sent: of the file, or all.
    fn others_write(&mut self, a: u32, sync: &Sync) -> Option<Flow> {
        if let Some(i) = sync.file {
            return self.wait_writeback(a, i);
        }
        // Everything that was made before.
        let is_before = |queued: &crate::plug::Queued| queued.made_ns <= sync.start_ns;
        if self.actors.iter().any(|actor| actor.plug.iter().next().is_some_and(is_before)) {
            return Some(self.until_next_end());
        }
        let last = self.in_flight.iter().map(|r| r.0.0).max()?;
        (last > self.now_ns).then_some(Flow::Until(last + self.fs.cfg.costs.wake_ns))
    }

    /// Waits until no page of a file is on its way to the device.
    pub(super) fn wait_writeback(&mut self, a: u32, i: u32) -> Option<Flow> {
        let writeback = &mut self.fs.inodes[i as usize].writeback;
        if writeback.n_queued > 0 {
            writeback.waiters.push(a);
            return Some(Flow::Block);
        }
        let end_ns = writeback.end_ns;
        (end_ns > self.now_ns).then_some(Flow::Until(end_ns + self.fs.cfg.costs.wake_ns))
    }

    /// Requests end without anybody being told; the next one that does is worth a look.
    pub(super) fn until_next_end(&self) -> Flow {
        let next = self.in_flight.peek().map(|first| first.0.0);
        Flow::Until(next.unwrap_or(0).max(self.now_ns + LOOK_NS))
    }

    /// Blocks that were allocated for the data become part of their files now that it is on
    /// the device: a commit that began before does not cover that. The flusher's are taken
    /// to be part of them at once.
    fn convert_files(&mut self, a: u32, sync: &Sync) -> Option<Flow> {
        if !self.fs.converts_late() {
            return None;
        }
        let files = match sync.file {
            Some(i) => i..i + 1,
            None => 0..self.fs.inodes.len() as u32,
        };
        for i in files {
            if !self.fs.inodes[i as usize].converts {
                continue;
            }
            let block = self.fs.inodes[i as usize].table_block;
            if let Some(flow) = self.admit(a, &[block], 4) {
                return Some(flow);
            }
            self.fs.inodes[i as usize].converts = false;
            self.fs.convert(i);
        }
        None
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
        // A journal on a device of its own has the file system's flushed after the log is
        // written; else the one flush comes after that.
        let before_flush = match self.actors[self.journal_thread() as usize].task {
            super::Task::Journal(super::CommitStage::Log { .. }) => true,
            super::Task::Journal(super::CommitStage::DataFlush { .. }) => {
                !self.fs.journal_is_apart()
            }
            _ => false,
        };
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
}
