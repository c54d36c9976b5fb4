//! Calls of the application's threads: what each costs, waits for and changes.

use std::collections::VecDeque;
use std::ops::Range;

use flashwise_hint::FileOp;

use super::read::{Read, ReadStage};
use super::sync::Sync;
use super::{Actor, Flow, Host, OpDone, OpOpen, Phase, Task};
use crate::application::{Action, Application, OpId, Outcome};
use crate::call::{Call, Fd, OpenFlags};
use crate::data::pages_of;
use crate::error::HostError;
use crate::files::MAX_SIZE;
use crate::fs::{FileSystem, TICK_NS};
use crate::inode::PAGE;
use crate::io::IoClass;
use crate::layout::FsBlock;

/// Pages of a write that are handled at once, after which others have their turn \[pages\]:
/// 1 MiB, assumed.
const WRITE_STEP: u64 = 256;

/// Most bytes of one read or write; more are cut short. Source: include/linux/fs.h,
/// `MAX_RW_COUNT`.
const RW_MAX: u64 = 0x7fff_f000;

/// Smallest piece of a device \[bytes\].
const SECTOR: u64 = 512;

/// The same where data is logged: each page is a handle of its own there, so that the blocks
/// of writes that run side by side alternate in the transaction, and go home in small
/// pieces \[pages\]. Assumed: a few pages pass before another core has its turn.
const LOGGED_STEP: u64 = 4;

/// Times a call that finds no space waits for a commit to give some back. Source:
/// fs/ext4/balloc.c, `ext4_should_retry_alloc`.
const SPACE_TRIES: u8 = 3;

/// A call under way.
#[derive(Clone, Debug)]
pub(super) struct CallState {
    call: Call,
    op: OpId,
    ends_op: bool,
    stage: Stage,
    n_tries: u8,
    start_ns: u64,
    /// File it uses, from when it found it to its end.
    file: Option<(u32, OpenFlags)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The way into the kernel.
    Enter,
    /// Do it.
    Run,
    /// Reading.
    Read(Read),
    /// Writing: the next byte, and the one after the last; whether pages that it covers in
    /// part were read.
    Write { start: u64, at: u64, end: u64, is_read: bool },
    /// A direct write is on its way.
    Direct { n: u64 },
    /// Written; what a durable write still needs, and how much was written.
    Durable { sync: Sync, n: u64 },
    /// A sync is all it does.
    Sync(Sync),
    /// It is done but for requests that are on their way.
    Sent(Outcome),
}

impl<A: Application> Host<A> {
    /// What a thread does next.
    pub(super) fn step_thread(&mut self, a: u32) -> Flow {
        if self.phase != Phase::Running {
            return self.step_preparation(a);
        }
        let now_ns = self.now_ns - self.epoch_ns;
        loop {
            let Task::Thread(state) = &mut self.actors[a as usize].task else { unreachable!() };
            if state.has_ended {
                return Flow::Block;
            }
            if state.is_parked {
                if state.n_wakes == 0 {
                    self.n_parked += 1;
                    if self.n_parked == self.n_live {
                        // Only threads wake threads.
                        self.stalled();
                    }
                    return Flow::Block;
                }
                state.n_wakes -= 1;
                state.is_parked = false;
            }
            if state.is_joining {
                if state.n_spawned > 0 {
                    return Flow::Block;
                }
                state.is_joining = false;
            }
            match self.app.next(a, now_ns) {
                Action::Call { call, op, ends_op } => return self.begin_call(a, call, op, ends_op),
                Action::Spawn { call, op } => self.spawn(a, call, op),
                Action::Join => self.thread_state(a).is_joining = true,
                Action::Compute { ns } => return Flow::Cpu(ns.max(1)),
                Action::SleepUntil { at_ns } => {
                    // Never in no time: a thread that waits for something looks again later.
                    return Flow::Until((self.epoch_ns + at_ns).max(self.now_ns + 1));
                }
                Action::Park => self.thread_state(a).is_parked = true,
                Action::Wake { thread } => {
                    if thread < self.n_threads {
                        let state = self.thread_state(thread);
                        state.n_wakes += 1;
                        let was_blocked = state.is_parked && state.n_wakes == 1;
                        let at_ns = self.now_ns + self.fs.cfg.costs.wake_ns;
                        if thread != a && was_blocked {
                            self.n_parked -= 1;
                            self.wake(thread, at_ns);
                        }
                    }
                }
                Action::End => self.thread_ended(a),
            }
        }
    }

    fn thread_state(&mut self, a: u32) -> &mut super::ThreadState {
        match &mut self.actors[a as usize].task {
            Task::Thread(state) => state,
            _ => unreachable!("threads come first"),
        }
    }

    fn thread_ended(&mut self, a: u32) {
        self.thread_state(a).has_ended = true;
        self.n_live -= 1;
        if self.n_live == 0 {
            self.phase = Phase::Ended;
        } else if self.n_parked == self.n_live {
            self.stalled();
        }
    }

    /// One call after another makes the files; then everything goes home.
    fn step_preparation(&mut self, a: u32) -> Flow {
        if self.phase == Phase::Preparing {
            if let Some(call) = self.app.prepare() {
                return self.begin_call(a, call, OpId(0), true);
            }
            self.phase = Phase::Settling;
            return self.begin_call(a, Call::Sync, OpId(0), true);
        }
        self.fs.drop_cache();
        self.phase = Phase::Running;
        self.epoch_ns = self.now_ns;
        self.counts_before = self.counts;
        for thread in 0..self.n_threads {
            if thread != a {
                self.wake(thread, self.now_ns);
            }
        }
        Flow::Cpu(0)
    }

    fn begin_call(&mut self, a: u32, call: Call, op: OpId, ends_op: bool) -> Flow {
        if self.phase == Phase::Running && (a as usize) < self.open_ops.len() {
            self.open_ops[a as usize].start_ns.get_or_insert(self.now_ns);
        }
        let start_ns = self.now_ns;
        let stage = Stage::Enter;
        self.actors[a as usize].call =
            Some(CallState { call, op, ends_op, stage, n_tries: 0, start_ns, file: None });
        Flow::Cpu(0)
    }

    /// A call that goes on beside its thread. Those of one descriptor go one after another, as
    /// glibc's asynchronous I/O serves them: a helper thread for each descriptor. Source:
    /// glibc, `sysdeps/pthread/aio_misc.c`.
    fn spawn(&mut self, a: u32, call: Call, op: OpId) {
        self.thread_state(a).n_spawned += 1;
        if let Some(fd) = call.data_fd() {
            if let Some(queue) = self.spawned.get_mut(&fd) {
                queue.push_back((a, call, op, self.now_ns));
                return;
            }
            self.spawned.insert(fd, VecDeque::new());
        }
        self.begin_spawned(a, call, op, self.now_ns);
    }

    fn begin_spawned(&mut self, a: u32, call: Call, op: OpId, start_ns: u64) {
        let free = self.actors.iter().position(|actor| matches!(actor.task, Task::Free));
        let at = match free {
            Some(at) => at,
            None => {
                self.actors.push(Actor::new(Task::Free));
                self.actors.len() - 1
            }
        };
        self.actors[at].task = Task::Spawned { thread: a };
        self.begin_call(at as u32, call, op, true);
        if let Some(state) = &mut self.actors[at].call {
            state.start_ns = start_ns;
        }
        self.wake(at as u32, self.now_ns);
    }

    /// A spawned call is over: the next one of its descriptor begins.
    fn next_spawned(&mut self, call: &Call) {
        let Some(fd) = call.data_fd() else { return };
        match self.spawned.get_mut(&fd).and_then(VecDeque::pop_front) {
            Some((thread, call, op, start_ns)) => self.begin_spawned(thread, call, op, start_ns),
            None => {
                self.spawned.remove(&fd);
            }
        }
    }

    /// A call is over: the application is told. Whether the thread goes on at once.
    pub(super) fn call_ended(&mut self, a: u32, outcome: Outcome) -> bool {
        let call = self.actors[a as usize].call.take().expect("a call is under way");
        if let Some((i, _)) = call.file {
            // Write-back that its close would have begun is left to the flusher.
            self.fs.end_use(i);
        }
        let (bytes, failed) = match outcome {
            Outcome::Done(n) => (n, false),
            _ => (0, true),
        };
        if let Task::Spawned { thread } = self.actors[a as usize].task {
            self.op_done(OpDone {
                op: call.op,
                thread,
                start_ns: call.start_ns,
                end_ns: self.now_ns,
                bytes,
                failed,
            });
            self.actors[a as usize].task = Task::Free;
            let state = self.thread_state(thread);
            state.n_spawned -= 1;
            if state.n_spawned == 0 && state.is_joining {
                self.wake(thread, self.now_ns + self.fs.cfg.costs.wake_ns);
            }
            self.next_spawned(&call.call);
            return false;
        }
        if self.phase != Phase::Running {
            if failed {
                self.failure = Some(HostError::Prepare {
                    call: self.describe(&call.call),
                    outcome: outcome.to_string(),
                });
                self.phase = Phase::Ended;
                return false;
            }
            return true;
        }
        let open = &mut self.open_ops[a as usize];
        open.bytes += bytes;
        open.failed |= failed;
        // An application does not go on with an operation that failed.
        if call.ends_op || failed {
            let OpOpen { start_ns, bytes, failed } = std::mem::take(open);
            let start_ns = start_ns.unwrap_or(call.start_ns);
            let (op, end_ns) = (call.op, self.now_ns);
            self.op_done(OpDone { op, thread: a, start_ns, end_ns, bytes, failed });
        }
        self.app.finished(a, outcome, self.now_ns - self.epoch_ns);
        true
    }

    fn op_done(&mut self, done: OpDone) {
        self.ops.push(done);
    }

    /// A call in words, for messages.
    fn describe(&self, call: &Call) -> String {
        let path = |verb: &str, path| format!("{verb} {}", self.app.paths().path(path));
        match *call {
            Call::Mkdir { path: p } => path("mkdir", p),
            Call::Open { path: p, .. } => path("open", p),
            Call::Write { len, .. } | Call::Append { len, .. } => format!("write of {len} bytes"),
            Call::Fallocate { len, .. } => format!("fallocate of {len} bytes"),
            ref other => format!("{other:?}"),
        }
    }

    pub(super) fn step_call(&mut self, a: u32) -> Flow {
        let state = self.actors[a as usize].call.as_ref().expect("a call is under way");
        let (call, mut stage, file) = (state.call, state.stage, state.file);
        let flow = match &mut stage {
            Stage::Enter => {
                let ns = self.entry_ns(&call);
                stage = Stage::Run;
                // Never no time at all: a program that only asks would ask forever.
                Flow::Cpu(ns.max(1))
            }
            Stage::Run => {
                let (next, flow) = self.run_call(a, &call);
                stage = next;
                flow
            }
            Stage::Read(read) => self.step_read(a, read, file),
            Stage::Write { .. } => self.step_write(a, &mut stage, file),
            Stage::Direct { n } => {
                let n = *n;
                self.direct_ended(file);
                self.after_write(file, n, &mut stage)
            }
            Stage::Durable { sync, n } => match self.step_sync(a, sync) {
                Some(flow) => flow,
                None => Flow::Done(Outcome::Done(*n)),
            },
            Stage::Sync(sync) => self.step_sync(a, sync).unwrap_or(Flow::Done(Outcome::Done(0))),
            Stage::Sent(outcome) => Flow::Done(*outcome),
        };
        self.fs.shrink_cache();
        self.discard_freed();
        if flow == Flow::Done(Outcome::NoSpace) {
            if let Some(flow) = self.retry_for_space(a) {
                return flow;
            }
            if let Stage::Write { start, at, .. } = stage
                && at > start
            {
                // What was written before counts, as a short write.
                let stage = Stage::Write { start, at, end: at, is_read: false };
                self.set_stage(a, stage);
                return Flow::Cpu(0);
            }
        }
        if let (Flow::Done(outcome), Some((i, _))) = (flow, file)
            && self.fs.is_last_use(i)
            && let Some(flow) = self.wait_writeback(a, i)
        {
            // The file goes with the call, and nothing may be on its way to its blocks.
            self.set_stage(a, Stage::Sent(outcome));
            return flow;
        }
        self.set_stage(a, stage);
        flow
    }

    fn set_stage(&mut self, a: u32, stage: Stage) {
        if let Some(state) = &mut self.actors[a as usize].call {
            state.stage = stage;
        }
    }

    /// The call uses a file from now on, whatever becomes of its descriptor.
    fn use_file(&mut self, a: u32, fd: Fd) -> Result<(u32, OpenFlags), Outcome> {
        let file = self.fs.file(fd)?;
        let found = (file.inode, file.flags);
        self.fs.begin_use(found.0);
        if let Some(state) = &mut self.actors[a as usize].call {
            debug_assert!(state.file.is_none(), "a call uses one file");
            state.file = Some(found);
        }
        Ok(found)
    }

    /// Space that was freed comes back when its transaction commits: a call that finds none
    /// waits for that and tries again.
    fn retry_for_space(&mut self, a: u32) -> Option<Flow> {
        let tid = self.freeing_tid()?;
        let state = self.actors[a as usize].call.as_mut()?;
        if state.n_tries >= SPACE_TRIES {
            return None;
        }
        state.n_tries += 1;
        Some(self.wait_commit(a, tid))
    }

    /// CPU time of a call but for what depends on its length \[ns\].
    fn entry_ns(&self, call: &Call) -> u64 {
        let c = &self.fs.cfg.costs;
        c.syscall_ns
            + match call {
                Call::Open { flags, .. } if flags.create => c.path_ns + c.namespace_ns,
                Call::Open { .. } | Call::Stat { .. } => c.path_ns,
                Call::OpenTemporary { .. } | Call::LinkFd { .. } => c.path_ns + c.namespace_ns,
                Call::Mkdir { .. } | Call::Rmdir { .. } | Call::Unlink { .. } => {
                    c.path_ns + c.namespace_ns
                }
                Call::Rename { .. } | Call::Link { .. } => 2 * c.path_ns + c.namespace_ns,
                Call::Truncate { .. } | Call::Fallocate { .. } | Call::PunchHole { .. } => {
                    c.namespace_ns
                }
                _ => 0,
            }
    }

    /// Blocks that a change of names in the directory of `path` touches first.
    fn name_blocks(&mut self, path: crate::PathId) -> Vec<FsBlock> {
        let paths = self.app.paths();
        let Ok(dir) = self.fs.resolve(paths, paths.parent(path)) else { return vec![] };
        let inode = &self.fs.inodes[dir as usize];
        let group = self.fs.layout.group_of_inode(inode.ino);
        let descriptors = self.fs.layout.group_descriptor_block(group);
        vec![inode.table_block, self.fs.layout.inode_bitmap(group), descriptors]
    }

    /// Blocks of metadata that finding space for a file changes: its own of the inode
    /// table, then those of its group.
    pub(super) fn allocation_blocks(&self, i: u32) -> [FsBlock; 3] {
        let inode = &self.fs.inodes[i as usize];
        let last = inode.extents.before(u32::MAX);
        let group = last.map_or(self.fs.layout.group_of_inode(inode.ino), |e| e.start.group());
        let layout = &self.fs.layout;
        [inode.table_block, layout.group_descriptor_block(group), layout.block_bitmap(group)]
    }

    fn inode_blocks(&self, fd: Fd) -> Vec<FsBlock> {
        match self.fs.file(fd) {
            Ok(file) => self.allocation_blocks(file.inode).to_vec(),
            Err(_) => vec![],
        }
    }

    /// What the call has to wait for before it may change anything.
    fn admit_call(&mut self, a: u32, call: &Call) -> Option<Flow> {
        let blocks = match *call {
            Call::Open { path, flags, .. } if flags.create => self.name_blocks(path),
            Call::Mkdir { path } | Call::Rmdir { path } | Call::Unlink { path } => {
                self.name_blocks(path)
            }
            Call::Rename { from, to } => {
                let mut blocks = self.name_blocks(from);
                blocks.extend(self.name_blocks(to));
                blocks
            }
            Call::Link { to, .. } | Call::LinkFd { to, .. } => self.name_blocks(to),
            Call::OpenTemporary { .. } => vec![],
            Call::Truncate { fd, .. } | Call::Fallocate { fd, .. } | Call::PunchHole { fd, .. } => {
                self.inode_blocks(fd)
            }
            _ => return None,
        };
        self.admit(a, &blocks, 32)
    }

    /// Before blocks are given back, nothing may be on its way to them. Source: mm/truncate.c,
    /// which waits for write-back, and `inode_dio_wait`.
    fn wait_for_victim(&mut self, a: u32, call: &Call) -> Option<Flow> {
        let i = self.fs.victim(self.app.paths(), call)?;
        if self.fs.inodes[i as usize].n_direct > 0 {
            return Some(self.until_next_end());
        }
        self.wait_writeback(a, i)
    }

    fn run_call(&mut self, a: u32, call: &Call) -> (Stage, Flow) {
        if let Some(flow) = self.wait_for_victim(a, call).or_else(|| self.admit_call(a, call)) {
            return (Stage::Run, flow);
        }
        let n_before = self.n_logged();
        let n_pages = self.fs.cache.n_pages();
        let done = self.apply(a, call);
        // Each block that went into the transaction took its time, and each page that went.
        let costs = &self.fs.cfg.costs;
        let ns = self.n_logged().saturating_sub(n_before) * costs.journal_block_ns
            + n_pages.saturating_sub(self.fs.cache.n_pages()) * costs.free_page_ns;
        match done {
            Ok(Next::Done(n)) => (Stage::Sent(Outcome::Done(n)), Flow::Cpu(ns)),
            Ok(Next::Wait(n)) => (Stage::Sent(Outcome::Done(n)), Flow::Io),
            Ok(Next::Stage(stage)) => (stage, Flow::Cpu(ns)),
            Err(outcome) => (Stage::Run, Flow::Done(outcome)),
        }
    }

    fn n_logged(&self) -> u64 {
        let running = self.fs.journal.as_ref().and_then(|j| j.running.as_ref());
        running.map_or(0, |t| u64::from(t.n_blocks()))
    }

    fn apply(&mut self, a: u32, call: &Call) -> Result<Next, Outcome> {
        let paths = self.app.paths();
        let fs = &mut self.fs;
        match *call {
            Call::Mkdir { path } => fs.mkdir(paths, path, a)?,
            Call::Rmdir { path } => fs.rmdir(paths, path)?,
            Call::Open { path, fd, flags } => fs.open(paths, path, fd, flags, a)?,
            Call::OpenTemporary { dir, fd, flags } => fs.open_temporary(paths, dir, fd, flags)?,
            Call::Close { fd } => {
                let replaces = fs.close(fd)?;
                self.write_soon(a, replaces);
            }
            Call::Unlink { path } => fs.unlink(paths, path)?,
            Call::Rename { from, to } => {
                let replaces = fs.rename(paths, from, to, a)?;
                self.write_soon(a, replaces);
            }
            Call::Link { from, to } => {
                let i = fs.resolve(paths, from)?;
                fs.link(paths, i, to, a)?;
            }
            Call::LinkFd { fd, to } => {
                let i = fs.file(fd)?.inode;
                fs.link(paths, i, to, a)?;
            }
            Call::Stat { path } => {
                let i = fs.resolve(paths, path)?;
                return Ok(Next::Done(fs.inodes[i as usize].size));
            }
            Call::Truncate { fd, size } => {
                FileSystem::check_range(size, 0)?;
                let i = fs.file(fd)?.inode;
                fs.truncate(i, size);
            }
            Call::Fallocate { fd, offset, len, keep_size } => {
                let i = fs.file(fd)?.inode;
                fs.fallocate(i, offset, len, keep_size, a)?;
            }
            Call::PunchHole { fd, offset, len } => {
                let i = fs.file(fd)?.inode;
                fs.punch(i, offset, len)?;
            }
            Call::Read { fd, offset, len } => {
                let (_, flags) = self.use_file(a, fd)?;
                // A place behind the largest file is behind the end of this one too.
                let len = len.min(RW_MAX);
                let end = offset.saturating_add(len).min(MAX_SIZE);
                check_direct(flags, offset, len)?;
                let offset = offset.min(end);
                let read = Read { fd, offset, end, at: offset, got: 0, stage: ReadStage::Begin };
                return Ok(Next::Stage(Stage::Read(read)));
            }
            Call::Write { fd, offset, len } => return self.begin_write(a, fd, Some(offset), len),
            Call::Append { fd, len } => return self.begin_write(a, fd, None, len),
            Call::Fsync { fd } | Call::Fdatasync { fd } => {
                let (i, _) = self.use_file(a, fd)?;
                let data_only = matches!(call, Call::Fdatasync { .. });
                self.fs.tell(i, || FileOp::Sync);
                let sync = Sync::of(Some(i), data_only, self.now_ns);
                return Ok(Next::Stage(Stage::Sync(sync)));
            }
            Call::Sync => {
                return Ok(Next::Stage(Stage::Sync(Sync::of(None, false, self.now_ns))));
            }
            Call::Trim => {
                let free = self.fs.untrimmed();
                self.discards.extend(free);
                self.send_discards(a, IoClass::Data);
                return Ok(Next::Wait(0));
            }
        }
        Ok(Next::Done(0))
    }

    /// Data that replaces other data goes home at once, without waiting (`auto_da_alloc`).
    fn write_soon(&mut self, a: u32, file: Option<u32>) {
        let Some(i) = file else { return };
        let mut bios = vec![];
        self.fs.write_back(i, 0..u32::MAX, u32::MAX, a, |bio| bios.push(bio));
        self.add_all(a, &bios);
    }

    // ---- writing ----

    fn begin_write(
        &mut self,
        a: u32,
        fd: Fd,
        offset: Option<u64>,
        len: u64,
    ) -> Result<Next, Outcome> {
        let file = self.fs.file(fd)?;
        let (i, flags) = (file.inode, file.flags);
        let start = offset.unwrap_or(self.fs.inodes[i as usize].size);
        let len = len.min(RW_MAX);
        let end = FileSystem::check_range(start, len)?;
        check_direct(flags, start, len)?;
        if len == 0 {
            return Ok(Next::Done(0));
        }
        self.use_file(a, fd)?;
        Ok(Next::Stage(Stage::Write { start, at: start, end, is_read: false }))
    }

    fn step_write(&mut self, a: u32, stage: &mut Stage, file: Option<(u32, OpenFlags)>) -> Flow {
        let Stage::Write { start, at, end, is_read } = *stage else { unreachable!() };
        let (i, flags) = file.expect("a write has its file");
        if flags.direct && !self.logs_data() {
            return self.write_direct(a, i, stage, start, end);
        }
        if at == end {
            return self.after_write(file, end - start, stage);
        }
        if self.balance() {
            return self.throttle();
        }
        let step = if self.logs_data() { LOGGED_STEP } else { WRITE_STEP };
        let step_end = ((at / PAGE + step) * PAGE).min(end);
        if !is_read && self.read_edges(a, i, at, step_end - at) {
            *stage = Stage::Write { start, at, end, is_read: true };
            return Flow::Io;
        }
        match self.write_step(a, i, at, step_end - at) {
            Ok((n, flow)) => {
                *stage = Stage::Write { start, at: at + n, end, is_read: false };
                flow
            }
            Err(flow) => flow,
        }
    }

    /// Reads the pages that a write covers in part; whether there are any.
    fn read_edges(&mut self, a: u32, i: u32, at: u64, len: u64) -> bool {
        let edges = self.fs.read_first(i, at, len);
        if edges.is_empty() {
            return false;
        }
        let mut bios = vec![];
        for page in &edges {
            self.fs.read_bios(i, *page..page + 1, |bio| bios.push(bio));
            self.fs.cached(i, *page..page + 1);
        }
        self.counts.cache_misses += edges.len() as u64;
        self.add_all(a, &bios);
        true
    }

    /// Some pages of a buffered write: how many bytes were written. `Err` with how to go on,
    /// if it could not be done.
    fn write_step(&mut self, a: u32, i: u32, at: u64, len: u64) -> Result<(u64, Flow), Flow> {
        let n_pages = pages_of(at, len).len() as u64;
        let inode = &self.fs.inodes[i as usize];
        let changes = inode.mtime_ns / TICK_NS != self.now_ns / TICK_NS;
        if changes || !self.fs.cfg.delays_allocation() {
            // Blocks that are found at once change bitmap and descriptor too.
            let allocates = !self.fs.cfg.delays_allocation() && at + len > inode.size;
            let blocks = self.allocation_blocks(i);
            let blocks = if allocates { &blocks[..] } else { &blocks[..1] };
            if let Some(flow) = self.admit(a, blocks, n_pages + 16) {
                return Err(flow);
            }
        }
        let n_before = self.n_logged();
        let n_cached = self.fs.cache.n_pages();
        let n = self.fs.write(i, at, len, a).map_err(Flow::Done)?;
        let costs = &self.fs.cfg.costs;
        let logged = self.n_logged().saturating_sub(n_before) * costs.journal_block_ns;
        let new = self.fs.cache.n_pages().saturating_sub(n_cached) * costs.new_page_ns;
        let copied = pages_of(at, n).len() as u64 * costs.page_ns;
        Ok((n, Flow::Cpu(costs.write_ns + copied + new + logged)))
    }

    fn write_direct(&mut self, a: u32, i: u32, stage: &mut Stage, start: u64, end: u64) -> Flow {
        if let Some(flow) = self.settle_pages(a, i, pages_of(start, end - start)) {
            return flow;
        }
        let blocks = [self.fs.inodes[i as usize].table_block];
        if let Some(flow) = self.admit(a, &blocks, 32) {
            return flow;
        }
        let mut bios = vec![];
        let done = self.fs.write_direct(i, start, end - start, a, |bio| bios.push(bio));
        let map_ns = self.fs.cfg.costs.map_ns;
        for bio in &bios {
            self.actors[a as usize].plug.spend(map_ns);
            self.add(a, *bio);
        }
        match done {
            Ok(()) => {
                self.fs.inodes[i as usize].n_direct += 1;
                *stage = Stage::Direct { n: end - start };
                Flow::Io
            }
            Err(outcome) => Flow::Done(outcome),
        }
    }

    /// Before a direct read or write: dirty pages of the range go to the device, and those on
    /// their way arrive. Source: mm/filemap.c, `kiocb_write_and_wait`.
    pub(super) fn settle_pages(&mut self, a: u32, i: u32, pages: Range<u32>) -> Option<Flow> {
        if self.fs.inodes[i as usize].pages.n_dirty > 0 {
            let mut bios = vec![];
            let written = self.fs.write_back(i, pages, u32::MAX, a, |bio| bios.push(bio));
            if written.n > 0 {
                self.add_all(a, &bios);
                return Some(Flow::Io);
            }
        }
        self.wait_writeback(a, i)
    }

    /// A direct read or write of a file is over.
    pub(super) fn direct_ended(&mut self, file: Option<(u32, OpenFlags)>) {
        let (i, _) = file.expect("it has its file");
        self.fs.inodes[i as usize].n_direct -= 1;
    }

    /// All is written: a durable write goes on as a sync.
    fn after_write(&mut self, file: Option<(u32, OpenFlags)>, n: u64, stage: &mut Stage) -> Flow {
        match file {
            Some((i, flags)) if flags.dsync => {
                self.fs.tell(i, || FileOp::Sync);
                let sync = Sync::of(Some(i), true, self.now_ns);
                *stage = Stage::Durable { sync, n };
                Flow::Cpu(0)
            }
            _ => Flow::Done(Outcome::Done(n)),
        }
    }
}

/// A direct read or write is of whole sectors. Source: fs/iomap/direct-io.c.
fn check_direct(flags: OpenFlags, offset: u64, len: u64) -> Result<(), Outcome> {
    let is_aligned = offset.is_multiple_of(SECTOR) && len.is_multiple_of(SECTOR);
    if flags.direct && !is_aligned { Err(Outcome::Invalid) } else { Ok(()) }
}

/// How a call goes on after its change.
enum Next {
    /// It is over.
    Done(u64),
    /// It is over when its requests are done.
    Wait(u64),
    /// It has more to do.
    Stage(Stage),
}
