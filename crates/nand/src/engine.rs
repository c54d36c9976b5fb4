//! Dies and channels in virtual time.
//!
//! Reads are answered at once and finally. Programs, copies and erases are queued
//! per die ([`Flash`]) and *started* lazily: [`Nand::advance`] starts what the die
//! could have begun before a moment, in order, so a read that arrives then waits
//! for at most the operation in progress (or suspends it). What has started stays
//! with its die until [`Nand::pop_done`] hands it out.
//!
//! Every die has one next event, the end of what runs or else the start of what
//! waits; a winner tree over dies gives the earliest in O(1). There is no queue of
//! events: an operation costs a few dozen nanoseconds.

use std::collections::VecDeque;

use crate::calendar::Calendar;
use crate::geometry::{BlockId, CellMode, DieId, Geometry, PageInfo};
use crate::min_tree::MinTree;
use crate::timing::Timing;

/// Where the FTL sends physical work. [`Nand`] queues it in virtual time,
/// [`Instant`] only counts it (for filling a drive).
pub trait Flash {
    /// Work is done when it is sent, so its effects can be applied at once.
    const INSTANT: bool;
    /// Senses one page to move `bytes` of it elsewhere.
    fn copy_read(&mut self, page: PageOp);
    /// Programs one unit of `bytes`; `n_buffered` mapping units leave the write
    /// buffer when it is done.
    fn program(&mut self, page: PageOp, n_buffered: u32);
    /// Erases a block.
    fn erase(&mut self, die: DieId, block: BlockId, mode: CellMode, ready_ns: u64);
    /// Starts all queued work of `die` and promises its end, which is returned \[ns\].
    fn settle(&mut self, die: DieId) -> u64;
}

/// A page to be sensed, or the first page of a unit to be programmed.
#[derive(Clone, Copy, Debug)]
pub struct PageOp {
    /// Die.
    pub die: DieId,
    /// Block.
    pub block: BlockId,
    /// Cell mode of the block.
    pub mode: CellMode,
    /// Plane and page type.
    pub page: PageInfo,
    /// Bytes that cross the channel.
    pub bytes: u32,
    /// Additional senses until a page to be moved can be read.
    pub retries: u8,
    /// Not before \[ns\].
    pub ready_ns: u64,
}

/// A host read of (part of) one page, or of one page in several planes where the
/// part senses them together.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    /// Die.
    pub die: DieId,
    /// Block.
    pub block: BlockId,
    /// First page of the row, counted over all planes.
    pub row: u32,
    /// Planes it is in, one bit each.
    pub planes: u32,
    /// Cell mode of the block.
    pub mode: CellMode,
    /// Plane and page type.
    pub page: PageInfo,
    /// Bytes that cross the channel.
    pub bytes: u32,
    /// Additional senses until the page can be read.
    pub retries: u8,
}

/// What ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DoneKind {
    /// A program unit is on the media; so many mapping units left the buffer.
    Program {
        /// Mapping units of the host that leave the write buffer.
        n_buffered: u16,
    },
    /// A block is blank.
    Erase,
}

/// An operation that ended, or was under way when power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Done {
    /// End \[ns\].
    pub end_ns: u64,
    /// Die.
    pub die: DieId,
    /// Block.
    pub block: BlockId,
    /// What.
    pub kind: DoneKind,
    /// When the die began with it \[ns\].
    pub start_ns: u64,
}

/// Totals since power-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Senses for host reads.
    pub page_reads: u64,
    /// Senses that had to wait for their die.
    pub die_collisions: u64,
    /// Senses to move data.
    pub copy_reads: u64,
    /// Additional senses of pages that could not be read at first, of both kinds.
    pub read_retries: u64,
    /// Program operations.
    pub programs: u64,
    /// Bytes programmed.
    pub program_bytes: u64,
    /// Block erases.
    pub erases: u64,
    /// Times a program or erase was interrupted (reads that join do not count).
    pub suspends: u64,
    /// Time that planes were busy, summed over planes \[ns\].
    pub busy_plane_ns: u64,
}

impl Counters {
    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            page_reads: self.page_reads - earlier.page_reads,
            die_collisions: self.die_collisions - earlier.die_collisions,
            copy_reads: self.copy_reads - earlier.copy_reads,
            read_retries: self.read_retries - earlier.read_retries,
            programs: self.programs - earlier.programs,
            program_bytes: self.program_bytes - earlier.program_bytes,
            erases: self.erases - earlier.erases,
            suspends: self.suspends - earlier.suspends,
            busy_plane_ns: self.busy_plane_ns - earlier.busy_plane_ns,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum OpKind {
    CopyRead,
    Program { n_buffered: u16 },
    Erase,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    ready_ns: u64,
    block: BlockId,
    bytes: u32,
    mode: CellMode,
    page: PageInfo,
    retries: u8,
    kind: OpKind,
}

/// The program or erase a die worked on last, which a read may suspend.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    start_ns: u64,
    end_ns: u64,
    /// Reads that interrupted it occupy the die until here.
    resume_ns: u64,
    /// Its end was told to somebody: it can no longer move.
    told: bool,
    is_erase: bool,
    is_buffered: bool,
    n_suspends: u32,
}

#[derive(Clone, Debug, Default)]
struct Die {
    /// Waiting, oldest first.
    queue: VecDeque<Op>,
    /// Begun and not handed out, oldest first; the last is `current`.
    running: VecDeque<Done>,
    current: Current,
    n_buffered_programs: u32,
    last_program_end_ns: u64,
}

/// A host read that others may join.
#[derive(Clone, Copy, Debug)]
struct LastRead {
    block: BlockId,
    row: u32,
    /// Planes it reads.
    planes: u32,
    is_short: bool,
    start_ns: u64,
    sensed_ns: u64,
    /// The slot is free again, if nothing else came since \[ns\].
    free_ns: u64,
}

impl LastRead {
    /// None, which nothing joins.
    const NONE: Self = Self {
        block: BlockId(u32::MAX),
        row: u32::MAX,
        planes: u32::MAX,
        is_short: false,
        start_ns: 0,
        sensed_ns: 0,
        free_ns: 0,
    };
}

/// The flash of one device.
#[derive(Clone, Debug)]
pub struct Nand {
    geo: Geometry,
    timing: Timing,
    /// Independently readable parts of a die: its planes, or the die as one.
    n_slots: u32,
    /// A die senses a row in all planes at once.
    senses_rows: bool,
    channels: Vec<Calendar>,
    /// Array of a slot is free from \[ns\].
    free_ns: Vec<u64>,
    /// Time a slot was busy since power-on, what is booked ahead included \[ns\].
    busy_ns: Vec<u64>,
    /// Page register of a slot is free from \[ns\].
    register_ns: Vec<u64>,
    /// Last host read of a slot.
    last_reads: Vec<LastRead>,
    /// Start of the oldest queued operation of a die \[ns\]; `u64::MAX`: none.
    head_start_ns: Vec<u64>,
    dies: Vec<Die>,
    /// End of what runs on each die, or else start of what waits \[ns\].
    events: MinTree,
    /// Nothing that runs ends before \[ns\].
    next_end_ns: u64,
    /// How far back a channel may be booked: the transfer of the next program unit
    /// lies before its start where the part can take it in early \[ns\].
    longest_program_transfer_ns: u64,
    sent_program_bytes: u64,
    /// Units of the write buffer in programs that took no time, not yet handed out.
    n_released: u32,
    wear: Vec<u32>,
    counters: Counters,
}

impl Nand {
    /// New flash, all blocks blank and unworn.
    pub fn new(geo: Geometry, timing: Timing) -> Self {
        let n_dies = geo.n_dies() as usize;
        let n_slots = if timing.independent_plane_reads { geo.n_planes } else { 1 };
        Self {
            geo,
            timing,
            n_slots,
            senses_rows: n_slots < geo.n_planes,
            channels: vec![Calendar::default(); geo.n_channels as usize],
            free_ns: vec![0; n_dies * n_slots as usize],
            busy_ns: vec![0; n_dies * n_slots as usize],
            register_ns: vec![0; n_dies * n_slots as usize],
            last_reads: vec![LastRead::NONE; n_dies * n_slots as usize],
            head_start_ns: vec![u64::MAX; n_dies],
            dies: vec![Die::default(); n_dies],
            events: MinTree::new(n_dies),
            next_end_ns: u64::MAX,
            longest_program_transfer_ns: 0,
            sent_program_bytes: 0,
            n_released: 0,
            wear: vec![0; geo.n_blocks() as usize],
            counters: Counters::default(),
        }
    }

    /// Answers a host read that reaches the die at `at_ns`: calls `chunk(end_ns,
    /// bytes)` for each channel transfer, in order.
    #[inline]
    pub fn read(&mut self, r: &PageRead, at_ns: u64, mut chunk: impl FnMut(u64, u32)) {
        self.advance(r.die, at_ns);
        let slot = self.slot(r.die, r.page.plane);
        if self.senses_rows && self.join(slot, r, at_ns, &mut chunk) {
            return;
        }
        let suspended_ns = self.suspend(r.die, slot, at_ns);
        let start = match suspended_ns {
            Some((start, _)) => start,
            None => at_ns.max(self.free_ns[slot]),
        };
        self.counters.page_reads += 1;
        self.counters.die_collisions += u64::from(start > at_ns);
        let free = self.sense(slot, start, r, &mut chunk);
        if let Some((_, rest_ns)) = suspended_ns {
            self.resume(r.die, at_ns, free, rest_ns);
        }
        if self.head_start_ns[usize::from(r.die.0)] != u64::MAX {
            self.update_head(r.die);
        }
    }

    /// A read of a row that the die is about to sense anyway, in another plane, shares the
    /// sense. False: it needs one of its own.
    fn join(
        &mut self,
        slot: usize,
        r: &PageRead,
        at_ns: u64,
        chunk: &mut impl FnMut(u64, u32),
    ) -> bool {
        let last = self.last_reads[slot];
        let joins = last.start_ns >= at_ns
            && (last.block, last.row) == (r.block, r.row)
            && last.planes & r.planes == 0
            && last.free_ns == self.free_ns[slot]
            && last.is_short >= (r.bytes <= 4096)
            && r.retries == 0;
        if joins {
            let sent = self.transfer(last.sensed_ns, r, chunk);
            let free = if self.timing.cache_read { last.free_ns } else { sent };
            self.occupy(slot, last.free_ns, free);
            self.register_ns[slot] = sent;
            self.last_reads[slot].planes |= r.planes;
            self.last_reads[slot].free_ns = free;
            if self.head_start_ns[usize::from(r.die.0)] != u64::MAX {
                self.update_head(r.die);
            }
        }
        joins
    }

    /// Starts the queued work of `die` that could begin before `now_ns`.
    #[inline]
    pub fn advance(&mut self, die: DieId, now_ns: u64) {
        while self.head_start_ns[die.0 as usize] < now_ns {
            self.start_head(die);
        }
    }

    /// [`Nand::advance`] for every die. No read and no queued work may come for a
    /// moment before `now_ns` afterwards.
    pub fn advance_all(&mut self, now_ns: u64) {
        for die in 0..self.dies.len() {
            self.advance(DieId(die as u16), now_ns);
        }
        let past_ns = now_ns.saturating_sub(self.longest_program_transfer_ns);
        self.channels.iter_mut().for_each(|c| c.forget_before(past_ns));
    }

    /// The next operation that ended by `now_ns`. Operations of one die come in
    /// order.
    #[inline]
    pub fn pop_done(&mut self, now_ns: u64) -> Option<Done> {
        if self.next_end_ns > now_ns { None } else { self.pop_ended(now_ns) }
    }

    fn pop_ended(&mut self, now_ns: u64) -> Option<Done> {
        let ends = self.dies.iter().map(|d| d.running.front().map_or(u64::MAX, |r| r.end_ns));
        let (die, end_ns) = ends.enumerate().min_by_key(|&(_, end)| end)?;
        self.next_end_ns = end_ns;
        (end_ns != u64::MAX && end_ns <= now_ns).then(|| self.pop_running(die))
    }

    /// Runs the device forward to the end of the operation that ends next,
    /// whenever that is, and hands it out: its end is then promised. `None`: no
    /// work is left.
    pub fn pop_next(&mut self) -> Option<Done> {
        loop {
            let (die, at_ns) = self.events.min();
            if at_ns == u64::MAX {
                return None;
            }
            if self.dies[die].running.is_empty() {
                self.start_head(DieId(die as u16));
            } else {
                return Some(self.pop_running(die));
            }
        }
    }

    fn pop_running(&mut self, die: usize) -> Done {
        let d = &mut self.dies[die];
        let done = d.running.pop_front().expect("only called where something runs");
        // What was handed out has ended for good.
        d.current.told |= d.running.is_empty();
        self.update_event(die);
        done
    }

    /// Starts the work of `die` up to its last program of buffered data and
    /// promises the end of that program, which is returned \[ns\].
    pub fn run_programs(&mut self, die: DieId) -> u64 {
        while self.dies[die.0 as usize].n_buffered_programs > 0 {
            self.start_head(die);
        }
        let d = &mut self.dies[die.0 as usize];
        d.current.told |= d.current.is_buffered;
        d.last_program_end_ns
    }

    /// Starts all queued work and returns when the last of it ends \[ns\].
    pub fn drain(&mut self) -> u64 {
        for die in 0..self.dies.len() {
            self.settle(DieId(die as u16));
        }
        self.free_ns.iter().chain(&self.register_ns).copied().max().unwrap_or(0)
    }

    /// Power fails at `now_ns`: returns the operations under way, oldest end
    /// first, and forgets all that had not begun. Call [`Nand::advance_all`] and
    /// empty [`Nand::pop_done`] first.
    pub fn cut(&mut self, now_ns: u64) -> Vec<Done> {
        let mut torn: Vec<Done> = self.dies.iter_mut().flat_map(|d| d.running.drain(..)).collect();
        torn.retain(|d| d.start_ns < now_ns);
        torn.sort_unstable();
        self.power_on();
        torn
    }

    /// Forgets queues and bookings, keeps wear; time starts at 0 again.
    pub fn power_on(&mut self) {
        let wear = std::mem::take(&mut self.wear);
        *self = Self { wear, ..Self::new(self.geo, self.timing) };
    }

    /// Nothing is queued on `die` and it is free from this time on \[ns\].
    pub fn idle_from(&self, die: DieId) -> Option<u64> {
        let d = die.0 as usize;
        (self.head_start_ns[d] == u64::MAX).then(|| self.die_free_ns(die))
    }

    /// Bytes of all programs that were sent, begun or not.
    pub fn sent_program_bytes(&self) -> u64 {
        self.sent_program_bytes
    }

    /// Units that left the write buffer in programs through [`Instant`] since the last
    /// call.
    #[inline]
    pub fn take_released(&mut self) -> u32 {
        std::mem::take(&mut self.n_released)
    }

    /// Units of the write buffer in programs that have not ended.
    pub fn n_buffered(&self) -> u32 {
        (0..self.dies.len()).map(|die| self.n_buffered_of(DieId(die as u16))).sum()
    }

    /// Those of them that wait for `die` or are in progress there.
    pub fn n_buffered_of(&self, die: DieId) -> u32 {
        let d = &self.dies[usize::from(die.0)];
        let queued = d.queue.iter().map(|op| match op.kind {
            OpKind::Program { n_buffered } => u32::from(n_buffered),
            _ => 0,
        });
        let running = d.running.iter().map(|done| match done.kind {
            DoneKind::Program { n_buffered } => u32::from(n_buffered),
            DoneKind::Erase => 0,
        });
        queued.sum::<u32>() + running.sum::<u32>()
    }

    /// Programs of `block` that have not ended: queued, then running.
    pub fn programs_pending(&self, die: DieId, block: BlockId) -> usize {
        let d = &self.dies[die.0 as usize];
        let queued = d.queue.iter();
        let queued =
            queued.filter(|op| op.block == block && matches!(op.kind, OpKind::Program { .. }));
        let running = d.running.iter();
        let running =
            running.filter(|r| r.block == block && matches!(r.kind, DoneKind::Program { .. }));
        queued.count() + running.count()
    }

    /// Shape of the flash.
    pub fn geometry(&self) -> &Geometry {
        &self.geo
    }

    /// Times of the flash.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Totals since power-on.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Time that channels were booked, summed over channels \[ns\].
    pub fn channel_busy_ns(&self) -> u64 {
        self.channels.iter().map(Calendar::busy_ns).sum()
    }

    /// Planes that can work at the same time, for utilisation.
    pub fn n_parallel_planes(&self) -> u64 {
        u64::from(self.geo.n_dies() * self.n_slots)
    }

    /// Erases of each block.
    pub fn wear(&self) -> &[u32] {
        &self.wear
    }

    /// Sets the erases of each block, as read from a saved drive.
    pub fn set_wear(&mut self, wear: Vec<u32>) {
        assert_eq!(wear.len(), self.wear.len(), "one count per block");
        self.wear = wear;
    }

    fn slot(&self, die: DieId, plane: u8) -> usize {
        let plane = if self.n_slots == 1 { 0 } else { usize::from(plane) };
        usize::from(die.0) * self.n_slots as usize + plane
    }

    fn slots(&self, die: DieId) -> std::ops::Range<usize> {
        let first = usize::from(die.0) * self.n_slots as usize;
        first..first + self.n_slots as usize
    }

    #[inline]
    fn die_free_ns(&self, die: DieId) -> u64 {
        let slots = self.slots(die);
        if slots.len() == 1 {
            return self.free_ns[slots.start];
        }
        self.free_ns[slots].iter().copied().max().unwrap_or(0)
    }

    fn register_free_ns(&self, die: DieId) -> u64 {
        self.register_ns[self.slots(die)].iter().copied().max().unwrap_or(0)
    }

    fn occupy(&mut self, slot: usize, start: u64, end: u64) {
        self.counters.busy_plane_ns += end - start;
        self.busy_ns[slot] += end - start;
        self.free_ns[slot] = end;
    }

    /// Senses and transfers; returns when the slot is free again \[ns\].
    #[inline]
    fn sense(
        &mut self,
        slot: usize,
        start: u64,
        r: &PageRead,
        chunk: &mut impl FnMut(u64, u32),
    ) -> u64 {
        let cell = self.timing.cell(r.mode);
        let times = if r.bytes <= 4096 { &cell.read_4k_ns } else { &cell.read_ns };
        let sense_ns = times[usize::from(r.page.ptype) & 3];
        let mut sensed = start + sense_ns;
        if r.retries > 0 {
            self.counters.read_retries += u64::from(r.retries);
            sensed += u64::from(r.retries) * sense_ns;
        }
        if self.timing.cache_read {
            // The data register must be empty before the sensed page moves into it.
            sensed = sensed.max(self.register_ns[slot]);
        }
        let sent = self.transfer(sensed, r, chunk);
        let free = if self.timing.cache_read { sensed } else { sent };
        self.occupy(slot, start, free);
        self.register_ns[slot] = sent;
        if self.senses_rows {
            self.last_reads[slot] = LastRead {
                block: r.block,
                row: r.row,
                planes: r.planes,
                is_short: r.bytes <= 4096,
                start_ns: start,
                sensed_ns: sensed,
                free_ns: free,
            };
        }
        free
    }

    /// Moves what was sensed over the channel; the end \[ns\].
    #[inline]
    fn transfer(&mut self, sensed: u64, r: &PageRead, chunk: &mut impl FnMut(u64, u32)) -> u64 {
        let channel = self.geo.channel_of(r.die) as usize;
        let (mut sent, mut left) = (sensed, r.bytes);
        while left > 0 {
            let n = left.min(self.timing.channel_chunk_bytes);
            sent = self.channels[channel].book(sent, self.timing.transfer_ns(n));
            chunk(sent, n);
            left -= n;
        }
        sent
    }

    /// If the die is amid work that a read may interrupt: when the read can start,
    /// and how much of the work is left.
    #[inline]
    fn suspend(&self, die: DieId, slot: usize, at: u64) -> Option<(u64, u64)> {
        let current = &self.dies[usize::from(die.0)].current;
        let under_way = current.start_ns <= at && at < current.end_ns;
        if !under_way || current.told || self.free_ns[slot] != current.end_ns {
            return None;
        }
        let delay = if current.is_erase {
            self.timing.suspend_erase_ns?
        } else {
            self.timing.suspend_program_ns?
        };
        let start = if current.resume_ns > at { current.resume_ns } else { at + delay };
        let rest_ns = current.end_ns - at.max(current.resume_ns);
        (start < current.end_ns && current.n_suspends < self.timing.suspends_max)
            .then_some((start, rest_ns))
    }

    /// The work goes on at `from_ns`; `at_ns` is when the read arrived.
    fn resume(&mut self, die: DieId, at_ns: u64, from_ns: u64, rest_ns: u64) {
        let end = from_ns + rest_ns;
        let slots = self.slots(die);
        self.free_ns[slots].fill(end);
        let d = &mut self.dies[usize::from(die.0)];
        // A read that joins another does not interrupt again.
        if at_ns >= d.current.resume_ns {
            self.counters.suspends += 1;
            d.current.n_suspends += 1;
        }
        d.current.resume_ns = from_ns;
        d.current.end_ns = end;
        if d.current.is_buffered {
            d.last_program_end_ns = end;
        }
        d.running.back_mut().expect("what is suspended runs").end_ns = end;
        self.update_event(usize::from(die.0));
    }

    /// The next event of a die changed.
    #[inline]
    fn update_event(&mut self, die: usize) {
        let event = match self.dies[die].running.front() {
            Some(running) => running.end_ns,
            None => self.head_start_ns[die],
        };
        self.events.set(die, event);
    }

    fn enqueue(&mut self, die: DieId, op: Op) {
        if let OpKind::Program { .. } = op.kind {
            self.sent_program_bytes += u64::from(op.bytes);
            let transfer_ns = self.timing.transfer_ns(op.bytes);
            self.longest_program_transfer_ns = self.longest_program_transfer_ns.max(transfer_ns);
        }
        let d = &mut self.dies[usize::from(die.0)];
        if let OpKind::Program { n_buffered: 1.. } = op.kind {
            d.n_buffered_programs += 1;
        }
        d.queue.push_back(op);
        if d.queue.len() == 1 {
            self.update_head(die);
        }
    }

    #[inline]
    fn update_head(&mut self, die: DieId) {
        let start = match self.dies[usize::from(die.0)].queue.front() {
            None => u64::MAX,
            Some(op) => op.ready_ns.max(self.head_free_ns(die, op)),
        };
        let die = usize::from(die.0);
        self.head_start_ns[die] = start;
        if self.dies[die].running.is_empty() {
            self.events.set(die, start);
        }
    }

    /// When the die can begin with `op`, were it ready.
    #[inline]
    fn head_free_ns(&self, die: DieId, op: &Op) -> u64 {
        match op.kind {
            OpKind::CopyRead => self.free_ns[self.slot(die, op.page.plane)],
            OpKind::Program { .. } | OpKind::Erase => self.die_free_ns(die),
        }
    }

    /// Begins the oldest queued operation of `die`.
    fn start_head(&mut self, die: DieId) {
        let start = self.head_start_ns[usize::from(die.0)];
        let d = &mut self.dies[usize::from(die.0)];
        let op = d.queue.pop_front().expect("a head start belongs to a queued operation");
        match op.kind {
            OpKind::CopyRead => self.start_copy(die, &op, start),
            OpKind::Program { n_buffered } => self.start_program(die, &op, start, n_buffered),
            OpKind::Erase => self.start_erase(die, &op, start),
        }
        self.update_head(die);
    }

    fn start_copy(&mut self, die: DieId, op: &Op, start: u64) {
        let slot = self.slot(die, op.page.plane);
        let Op { block, mode, page, bytes, retries, .. } = *op;
        // No host read waits for the same row.
        let r = PageRead { die, block, row: u32::MAX, planes: 0, mode, page, bytes, retries };
        self.sense(slot, start, &r, &mut |_, _| ());
        self.counters.copy_reads += 1;
    }

    fn start_program(&mut self, die: DieId, op: &Op, start: u64, n_buffered: u16) {
        let channel = self.geo.channel_of(die) as usize;
        let transfer_ns = self.timing.transfer_ns(op.bytes);
        // The page register may be taken before the array is free, but holds copied
        // pages until they are out.
        let early = if self.timing.cache_program { transfer_ns } else { 0 };
        let from = op.ready_ns.max(start.saturating_sub(early)).max(self.register_free_ns(die));
        let moved = self.channels[channel].book(from, transfer_ns);
        let program_ns = self.timing.cell(op.mode).program_ns[usize::from(op.page.ptype) & 3];
        let array_start = moved.max(start);
        let busy_from = if self.timing.cache_program { array_start } else { start };
        let end = array_start + program_ns;
        self.count_program(op.bytes);
        if n_buffered > 0 {
            let d = &mut self.dies[usize::from(die.0)];
            d.n_buffered_programs -= 1;
            d.last_program_end_ns = end;
        }
        self.start_whole_die(die, op, busy_from, end, DoneKind::Program { n_buffered });
    }

    fn start_erase(&mut self, die: DieId, op: &Op, start: u64) {
        let end = start + self.timing.cell(op.mode).erase_ns;
        self.count_erase(op.block);
        self.start_whole_die(die, op, start, end, DoneKind::Erase);
    }

    fn start_whole_die(&mut self, die: DieId, op: &Op, start: u64, end: u64, kind: DoneKind) {
        for slot in self.slots(die) {
            self.occupy(slot, start, end);
        }
        let d = &mut self.dies[usize::from(die.0)];
        d.current = Current {
            start_ns: start,
            end_ns: end,
            is_erase: kind == DoneKind::Erase,
            is_buffered: matches!(kind, DoneKind::Program { n_buffered: 1.. }),
            ..Current::default()
        };
        d.running.push_back(Done { end_ns: end, die, block: op.block, kind, start_ns: start });
        self.next_end_ns = self.next_end_ns.min(end);
        self.update_event(usize::from(die.0));
    }

    fn count_program(&mut self, bytes: u32) {
        self.counters.programs += 1;
        self.counters.program_bytes += u64::from(bytes);
    }

    fn count_erase(&mut self, block: BlockId) {
        self.counters.erases += 1;
        self.wear[block.0 as usize] += 1;
    }
}

impl Flash for Nand {
    const INSTANT: bool = false;

    #[inline]
    fn copy_read(&mut self, c: PageOp) {
        self.enqueue(c.die, op(&c, OpKind::CopyRead));
    }

    #[inline]
    fn program(&mut self, c: PageOp, n_buffered: u32) {
        let n_buffered = u16::try_from(n_buffered).expect("a program unit has few mapping units");
        self.enqueue(c.die, op(&c, OpKind::Program { n_buffered }));
    }

    fn erase(&mut self, die: DieId, block: BlockId, mode: CellMode, ready_ns: u64) {
        let page = PageInfo { plane: 0, ptype: 0 };
        let c = PageOp { die, block, mode, page, bytes: 0, retries: 0, ready_ns };
        self.enqueue(die, op(&c, OpKind::Erase));
    }

    fn settle(&mut self, die: DieId) -> u64 {
        let d = usize::from(die.0);
        while self.head_start_ns[d] != u64::MAX {
            self.start_head(die);
        }
        self.dies[d].current.told = true;
        self.die_free_ns(die)
    }
}

fn op(c: &PageOp, kind: OpKind) -> Op {
    let PageOp { block, mode, page, bytes, retries, ready_ns, .. } = *c;
    Op { ready_ns, block, bytes, mode, page, retries, kind }
}

/// Flash without time: work is counted and done.
#[derive(Debug)]
pub struct Instant<'a>(pub &'a mut Nand);

impl Flash for Instant<'_> {
    const INSTANT: bool = true;

    #[inline]
    fn copy_read(&mut self, c: PageOp) {
        self.0.counters.copy_reads += 1;
        self.0.counters.read_retries += u64::from(c.retries);
    }

    #[inline]
    fn program(&mut self, c: PageOp, n_buffered: u32) {
        self.0.n_released += n_buffered;
        self.0.sent_program_bytes += u64::from(c.bytes);
        self.0.count_program(c.bytes);
    }

    #[inline]
    fn erase(&mut self, _: DieId, block: BlockId, _: CellMode, _: u64) {
        self.0.count_erase(block);
    }

    fn settle(&mut self, _: DieId) -> u64 {
        0
    }
}

impl Nand {
    /// Time that `die` was busy by `now_ns`, the mean of its independent planes \[ns\].
    /// What it has booked beyond that moment is taken as one piece and left out; work
    /// that waits in its queue is not known yet.
    pub fn die_busy_ns(&self, die: DieId, now_ns: u64) -> u64 {
        let slots = self.slots(die);
        let ahead = |slot: usize| self.free_ns[slot].saturating_sub(now_ns);
        let busy = slots.map(|slot| self.busy_ns[slot].saturating_sub(ahead(slot)));
        busy.sum::<u64>() / u64::from(self.n_slots)
    }
}
