//! Program units that fill page by page: what the `chain` policy writes into.
//!
//! A *plane slot* is one plane of one die; a file's next piece belongs in the slot after
//! that of its predecessor. Pieces of many files meet in a program unit, so the pages of
//! the open ones fill in any order, and a plane may run ahead of the others by a bounded
//! number of program units. They are programmed in order, each as soon as it is full.
//!
//! Two ways to use the room, by what the part can do:
//! * planes that read independently sense any two pages of a die together, so a piece
//!   takes the page it fits best;
//! * otherwise only pages of one row are sensed together, so a piece that begins a row
//!   takes an empty row, and the rest of the row waits for what follows it.
//!
//! Where the bound is met, the piece takes the page that is due and so helps the oldest
//! program unit along. Files that begin at the same die would fill some dies more than
//! others, and the fullest bounds what a drive reads: a chain steps over a die that holds
//! clearly more than the mean.
//!
//! Invariants (in `check.rs`): `Frontier::next` is the sum of the units in all pages;
//! program units before the due one are full; `n_ahead` counts those begun after it.

use flashwise_nand::{Flash, Ppn};

use crate::place::{Rule, Slot, WriteContext};
use crate::write::Payload;
use crate::{Ftl, Lpn, RelationPolicy};

/// Part of the mean, and program units, by which a die may hold more than the mean before
/// chains step over it. Without the rule 1,000 files of 128 KiB that grow by 29 pieces of
/// 16 KiB read at 0.893 of the same files written in one go, with it at 0.930 (1 MiB of
/// buffer; `flashwise study fragmentation`, sweep small-appends).
const FAIR_PART: u64 = 128;
const FAIR_PUS: u32 = 16;

/// How full the pages of open blocks of the host are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    /// Units in each page of the block of each host frontier; none: blocks fill in order.
    pub(crate) fill: Vec<u16>,
    /// End of the last program unit begun, for each host frontier \[units\].
    pub(crate) begun: Vec<u32>,
    /// Program units begun beyond the due ones, on all frontiers.
    pub(crate) n_ahead: u32,
}

impl Ftl {
    /// Blocks of the host fill page by page from now on, if the policy asks for it.
    pub(crate) fn set_lanes(&mut self) {
        if self.cfg.relation != RelationPolicy::Chain || !self.lanes.begun.is_empty() {
            return;
        }
        let n = self.n_host_frontiers();
        self.lanes.fill = vec![0; n * self.n_pages()];
        self.lanes.begun = vec![0; n];
        for f in 0..n {
            self.reset_lane(f);
        }
    }

    /// Forgets what was begun and starts again from what the frontiers say.
    pub(crate) fn reload_lanes(&mut self) {
        self.lanes = Lanes::default();
        self.set_lanes();
    }

    /// Pages of frontier `f` are filled in order up to its `next`.
    pub(crate) fn reset_lane(&mut self, f: usize) {
        let (n_pages, upp) = (self.n_pages(), self.layout.units_per_page);
        let fr = self.frontiers[f];
        for (page, fill) in self.lanes.fill[f * n_pages..(f + 1) * n_pages].iter_mut().enumerate() {
            *fill = fr.next.saturating_sub(page as u32 * upp).min(upp) as u16;
        }
        self.lanes.begun[f] = fr.pu_end;
    }

    pub(crate) fn n_pages(&self) -> usize {
        (self.layout.units_per_block / self.layout.units_per_page) as usize
    }

    /// The block of `f` fills page by page.
    #[inline]
    pub(crate) fn is_loose(&self, f: usize) -> bool {
        f < self.lanes.begun.len()
    }

    fn fill(&self, f: usize, page: u32) -> u32 {
        u32::from(self.lanes.fill[f * self.n_pages() + page as usize])
    }

    fn pages_per_pu(&self) -> u32 {
        self.layout.units_per_pu / self.layout.units_per_page
    }

    /// First page of the due program unit of `f`.
    fn first_due(&self, f: usize) -> u32 {
        (self.frontiers[f].pu_end - self.layout.units_per_pu) / self.layout.units_per_page
    }

    /// The page that is filled next where nothing else is wanted.
    pub(crate) fn due_page(&self, f: usize) -> u32 {
        let first = self.first_due(f);
        let mut pages = first..first + self.pages_per_pu();
        pages.find(|&p| self.room(f, p) > 0).expect("a due unit has room")
    }

    /// Pages of `f` that may be written now: those of program units begun, and of as
    /// many more as the buffer holds.
    fn open_pages(&self, f: usize) -> std::ops::Range<u32> {
        let more = self.cfg.chain_pus.saturating_sub(self.lanes.n_ahead);
        let end =
            self.lanes.begun[f] + more.min(self.layout.units_per_block) * self.layout.units_per_pu;
        let end = end.min(self.layout.units_per_block) / self.layout.units_per_page;
        self.first_due(f)..end
    }

    /// Where the `n` units that follow `ppn` go: on in its page, if nothing else came there
    /// since and they fit, or what is left is too little for others; else to the next slot.
    pub(crate) fn slot_after(&self, handle: u16, ppn: Ppn, n: u32) -> Slot {
        let place = self.place(ppn);
        let (die, page) = (place.die.0, place.page_idx);
        let plane = u32::from(place.page.plane);
        let f = self.host_frontier(handle, usize::from(die));
        let is_open = self.is_loose(f) && self.frontiers[f].block == place.block.0;
        let pages = if is_open { self.open_pages(f) } else { 0..0 };
        let end = ppn.0 % self.layout.units_per_page + 1;
        let is_last_filled = pages.contains(&page) && self.fill(f, page) == end;
        let room = self.layout.units_per_page - end;
        if is_last_filled && room > 0 && (n <= room || 4 * room <= n) {
            return Slot { die, plane, page: Some(page) };
        }
        let is_last = plane + 1 == self.cfg.geo.n_planes;
        let waits = pages.contains(&(page + 1)) && !is_last && self.fill(f, page + 1) == 0;
        if is_last || !(self.cfg.independent_planes || waits) {
            return Slot { die: self.fair_die_after(die), plane: 0, page: None };
        }
        let page = (!self.cfg.independent_planes).then_some(page + 1);
        Slot { die, plane: plane + 1, page }
    }

    /// The first die after `die` that does not hold more than the mean by more than
    /// [`FAIR_PART`] of it and [`FAIR_PUS`].
    fn fair_die_after(&self, die: u16) -> u16 {
        let n_dies = self.dies.len() as u64;
        let more = n_dies * u64::from(FAIR_PUS * self.layout.units_per_pu);
        let most = self.n_valid + self.n_valid / FAIR_PART + more;
        let mut next = self.die_after(die);
        while u64::from(self.dies[usize::from(next)].n_valid) * n_dies > most {
            next = self.die_after(next);
        }
        next
    }

    /// Page of frontier `f` for the next unit of the command, if its slot lies there;
    /// else the one that is due will do.
    pub(crate) fn page_for(&mut self, ctx: &mut WriteContext, f: usize, die: usize) -> Option<u32> {
        let n_left = ctx.n_left;
        let Rule::Slot(slot) = &mut ctx.rule else {
            return None;
        };
        if usize::from(slot.die) != die {
            return None;
        }
        let open = self.open_pages(f);
        let has_room = |p: &u32| open.contains(p) && self.room(f, *p) > 0;
        let page = slot.page.filter(has_room).or_else(|| self.find_page(f, slot.plane, n_left));
        if page.is_none() {
            self.counters.hints_yielded += 1;
        }
        let page = page.unwrap_or_else(|| self.due_page(f));
        slot.page = Some(page);
        Some(page)
    }

    fn room(&self, f: usize, page: u32) -> u32 {
        self.layout.units_per_page - self.fill(f, page)
    }

    /// A page for a piece of `n` units that belongs in `plane`: with independent planes the
    /// one it fits best, the oldest of equals, be it in another plane.
    pub(crate) fn find_page(&self, f: usize, plane: u32, n: u32) -> Option<u32> {
        let n_planes = self.cfg.geo.n_planes;
        let n = n.min(self.layout.units_per_page);
        let mut pages = self.open_pages(f).filter(|p| p % n_planes == plane);
        if self.cfg.independent_planes {
            let fits = self.open_pages(f).filter(|&p| self.room(f, p) >= n);
            let best = fits.min_by_key(|&p| (p % n_planes != plane, self.room(f, p), p));
            return best.or_else(|| self.next_in_plane(f, plane));
        }
        pages.find(|&p| {
            let row = p - plane..p - plane + n_planes;
            row.into_iter().all(|p| self.fill(f, p) == 0)
        })
    }

    /// The oldest page of `plane` that has room.
    fn next_in_plane(&self, f: usize, plane: u32) -> Option<u32> {
        let mut pages = self.open_pages(f).filter(|p| p % self.cfg.geo.n_planes == plane);
        pages.find(|&p| self.room(f, p) > 0)
    }

    /// Appends one unit of the host to the loose frontier `f` of `die`, where the rule of
    /// the command wants it; `old` holds the old contents.
    #[expect(clippy::too_many_arguments, reason = "as for `append`")]
    pub(crate) fn append_by_slot<F: Flash>(
        &mut self,
        ctx: &mut WriteContext,
        f: usize,
        die: usize,
        lpn: Lpn,
        old: Option<Ppn>,
        payload: Payload<'_>,
        buffered: bool,
        ready_ns: u64,
        flash: &mut F,
    ) -> bool {
        let page = match (ctx.rule, old) {
            (Rule::StaySlot, Some(old)) => {
                let place = self.place(old);
                let same_die = usize::from(place.die.0) == die;
                same_die.then(|| self.next_in_plane(f, u32::from(place.page.plane))).flatten()
            }
            _ => self.page_for(ctx, f, die),
        };
        let page = page.unwrap_or_else(|| self.due_page(f));
        let offset = page * self.layout.units_per_page + self.fill(f, page);
        let ppn = Ppn(self.frontiers[f].block * self.layout.units_per_block + offset);
        let filled = self.append_to_page(f, die, page, lpn.0, payload, buffered, ready_ns, flash);
        ctx.n_left = ctx.n_left.saturating_sub(1);
        self.after_unit(ctx, ppn);
        filled
    }

    /// A unit of the command went to `page`: where the next one goes.
    pub(crate) fn after_unit(&self, ctx: &mut WriteContext, ppn: Ppn) {
        let Rule::Slot(slot) = &mut ctx.rule else {
            return;
        };
        let place = self.place(ppn);
        let offset = ppn.0 % self.layout.units_per_block;
        if slot.page == Some(place.page_idx)
            && (offset + 1).is_multiple_of(self.layout.units_per_page)
        {
            *slot = self.slot_after(ctx.handle, ppn, ctx.n_left);
        }
    }

    /// Puts `lpn` into `page` of the loose frontier `f`; true when that filled program
    /// units, which are then sent to the flash.
    #[expect(clippy::too_many_arguments, reason = "as for `append`")]
    pub(crate) fn append_to_page<F: Flash>(
        &mut self,
        f: usize,
        die: usize,
        page: u32,
        lpn: u32,
        payload: Payload<'_>,
        buffered: bool,
        ready_ns: u64,
        flash: &mut F,
    ) -> bool {
        self.seq += 1;
        let (n_pu, at) = (self.layout.units_per_pu, f * self.n_pages() + page as usize);
        let offset = page * self.layout.units_per_page + u32::from(self.lanes.fill[at]);
        self.lanes.fill[at] += 1;
        let pu_end = offset / n_pu * n_pu + n_pu;
        if pu_end > self.lanes.begun[f] {
            self.lanes.n_ahead += (pu_end - self.lanes.begun[f]) / n_pu;
            self.lanes.begun[f] = pu_end;
        }
        let fr = &mut self.frontiers[f];
        let block = fr.block;
        let ppn = Ppn(block * self.layout.units_per_block + offset);
        if fr.is_between_units(n_pu) {
            fr.first_seq = self.seq.min(self.redo_seq);
        }
        fr.next += 1;
        fr.n_buffered += u32::from(buffered);
        if self.media.is_some() {
            self.stage(ppn, lpn, payload, true);
        }
        self.map.set(lpn, ppn);
        self.blocks.add_valid(block, 1);
        self.dies[die].n_valid += 1;
        self.n_valid += 1;
        let mut n_finished = 0;
        while self.is_due_full(f) {
            self.finish_program_unit(f, die, ready_ns, flash);
            n_finished += 1;
        }
        if matches!(payload, Payload::Host(_)) && buffered {
            // The caller pays for one of them.
            (1..n_finished).for_each(|_| self.pace_gc(die, ready_ns, flash));
        }
        n_finished > 0
    }

    fn is_due_full(&self, f: usize) -> bool {
        if !self.frontiers[f].is_open() {
            return false;
        }
        let first = self.first_due(f);
        let mut pages = first..first + self.pages_per_pu();
        pages.all(|p| self.fill(f, p) == self.layout.units_per_page)
    }

    /// Fills what is left of the due program unit of `f` with padding.
    pub(crate) fn pad_due(&mut self, f: usize) {
        let (first, upp, n_pages) = (self.first_due(f), self.layout.units_per_page, self.n_pages());
        let block = self.frontiers[f].block;
        for page in first..first + self.pages_per_pu() {
            for offset in page * upp + self.fill(f, page)..(page + 1) * upp {
                self.pad_place(block, offset, true);
                self.frontiers[f].next += 1;
            }
            self.lanes.fill[f * n_pages + page as usize] = upp as u16;
        }
    }

    /// The due program unit of the loose frontier `f`, which ends at `pu_end`, is gone.
    pub(crate) fn pass_due(&mut self, f: usize, pu_end: u32) {
        if self.lanes.begun[f] > pu_end {
            self.lanes.n_ahead -= 1;
        } else if pu_end < self.layout.units_per_block {
            self.lanes.begun[f] = pu_end + self.layout.units_per_pu;
        }
    }

    /// Checks the pages of open blocks against their frontiers.
    pub(crate) fn check_lanes(&self) -> Result<(), String> {
        let (n_pages, n_pu) = (self.n_pages(), self.layout.units_per_pu);
        let mut n_ahead = 0;
        for (f, &begun) in self.lanes.begun.iter().enumerate() {
            let fr = self.frontiers[f];
            if !fr.is_open() {
                continue;
            }
            let pages = &self.lanes.fill[f * n_pages..(f + 1) * n_pages];
            let sum: u32 = pages.iter().map(|&n| u32::from(n)).sum();
            let due = self.first_due(f) as usize;
            let is_full = |&n: &u16| u32::from(n) == self.layout.units_per_page;
            if sum != fr.next || !pages[..due].iter().all(is_full) || begun < fr.pu_end {
                return Err(format!("pages {pages:?} of frontier {f}: {fr:?}, begun to {begun}"));
            }
            let end = (begun / self.layout.units_per_page) as usize;
            if pages[end..].iter().any(|&n| n > 0) {
                return Err(format!("frontier {f} holds units beyond {begun}: {pages:?}"));
            }
            n_ahead += (begun - fr.pu_end) / n_pu;
        }
        if n_ahead != self.lanes.n_ahead || n_ahead > self.cfg.chain_pus {
            let (counted, most) = (self.lanes.n_ahead, self.cfg.chain_pus);
            return Err(format!(
                "{n_ahead} program units ahead, {counted} counted, at most {most}"
            ));
        }
        Ok(())
    }
}
