//! Which die a unit goes to: the relation axis of placement policies.
//!
//! `none` goes round robin over dies, a program unit at a time. `hints` is the
//! scheme of Jun et al. (FAST'24), for every unit of a command and not only the
//! first: an append continues on the die after the one that holds the previous
//! file block, program unit by program unit; an overwrite stays on its die.
//! Both yield: a die whose unused space lies too far below the mean of all dies is
//! passed over, so no pattern of hints or writes can fill one die. Hinted writes yield for
//! more reasons; see `yields.rs`.

use flashwise_hint::{Handle, Relation, WriteHint};

use crate::{Ftl, Lpn};

/// What is done with append and overwrite hints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RelationPolicy {
    /// Nothing: round robin.
    #[default]
    None,
    /// As the FAST'24 paper, for every unit of a command.
    Hints,
    /// `hints` by plane slots: a piece of a file goes to the plane after that of the
    /// piece before it, and after the last plane to the next die.
    Chain,
}

impl RelationPolicy {
    /// Every policy with its name on the command line.
    pub const ALL: [(&'static str, Self); 3] =
        [("none", Self::None), ("hints", Self::Hints), ("chain", Self::Chain)];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, p)| *p == self).map_or("", |(n, _)| n)
    }
}

/// Placement of one write command, from its first unit to its last.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    pub(crate) handle: u16,
    /// Units of it that are still to come.
    pub(crate) n_left: u32,
    pub(crate) rule: Rule,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    RoundRobin,
    /// Continue on this die.
    From(u16),
    /// Stay on the die of the old contents.
    Stay,
    /// Continue in this plane slot.
    Slot(Slot),
    /// Stay in the plane slot of the old contents.
    StaySlot,
}

/// A plane of a die, and the page of its open block that is being filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) die: u16,
    pub(crate) plane: u32,
    pub(crate) page: Option<u32>,
}

impl Ftl {
    /// Placement for a command of `n_units` with this hint. `prev` is the hint's previous
    /// file block as a logical page of the same namespace, if it lies in it.
    pub fn begin_write(&self, hint: &WriteHint, prev: Option<Lpn>, n_units: u32) -> WriteContext {
        let Handle(handle) = hint.handle;
        debug_assert!(handle < self.cfg.n_handles, "the device checks handles");
        let rule = match (self.cfg.relation, hint.relation) {
            (RelationPolicy::None, _) | (_, Relation::None) => Rule::RoundRobin,
            (RelationPolicy::Hints, Relation::Overwrite) => Rule::Stay,
            (RelationPolicy::Chain, Relation::Overwrite) => Rule::StaySlot,
            (RelationPolicy::Chain, Relation::Append { .. }) => {
                match prev.and_then(|lpn| self.lookup(lpn)) {
                    Some(ppn) => Rule::Slot(self.slot_after(handle, ppn, n_units)),
                    None => Rule::RoundRobin,
                }
            }
            (RelationPolicy::Hints, Relation::Append { .. }) => {
                match prev.and_then(|lpn| self.lookup(lpn)) {
                    Some(ppn) => Rule::From(self.die_after(self.place(ppn).die.0)),
                    None => Rule::RoundRobin,
                }
            }
        };
        WriteContext { handle, n_left: n_units, rule }
    }

    /// Die for the next unit of the command; `old_die` holds the old contents.
    #[inline]
    pub(crate) fn choose_die(&mut self, ctx: &mut WriteContext, old_die: Option<usize>) -> usize {
        let wanted = match ctx.rule {
            Rule::RoundRobin => return self.round_robin(ctx.handle),
            Rule::From(die) => usize::from(die),
            Rule::Slot(slot) => usize::from(slot.die),
            Rule::Stay | Rule::StaySlot => match old_die {
                Some(die) => die,
                None => return self.round_robin(ctx.handle),
            },
        };
        if self.may_take(wanted) {
            return wanted;
        }
        self.elsewhere(ctx.handle)
    }

    /// The last unit filled a program unit of `die`, or a grain of one: where the command goes on.
    #[inline]
    pub(crate) fn after_program_unit(&mut self, ctx: &mut WriteContext, die: usize) {
        match &mut ctx.rule {
            Rule::From(at) if usize::from(*at) == die => *at = self.die_after(die as u16),
            Rule::Slot(slot) if usize::from(slot.die) == die => {}
            _ => self.pass_cursor(usize::from(ctx.handle), die),
        }
    }

    /// A program unit of `die` is finished: the round robin of the handle goes on if
    /// it stood there.
    #[inline]
    pub(crate) fn pass_cursor(&mut self, handle: usize, die: usize) {
        if usize::from(self.cursors[handle]) == die {
            self.cursors[handle] = self.die_after(die as u16);
        }
    }

    pub(crate) fn die_after(&self, die: u16) -> u16 {
        if usize::from(die) + 1 == self.dies.len() { 0 } else { die + 1 }
    }

    #[inline]
    pub(crate) fn round_robin(&mut self, handle: u16) -> usize {
        let at = usize::from(self.cursors[usize::from(handle)]);
        if self.has_room(at) {
            return at;
        }
        self.next_with_room(handle)
    }

    #[cold]
    fn next_with_room(&mut self, handle: u16) -> usize {
        let n = self.dies.len();
        let at = usize::from(self.cursors[usize::from(handle)]);
        let after = |i: usize| (at + i) % n;
        let fair = (1..n).map(after).find(|&d| self.has_room(d));
        // Without spare space every die is at its limit but one: take what is left.
        let die = fair
            .or_else(|| (0..n).map(after).find(|&d| self.dies[d].n_valid < self.dies[d].limit))
            .expect("the configuration leaves room for every logical unit");
        self.cursors[usize::from(handle)] = die as u16;
        die
    }

    /// The die has unused space, and not much less than the others: its slack is
    /// at least (100 - yield) percent of the mean.
    #[inline]
    pub(crate) fn has_room(&self, die: usize) -> bool {
        let n_dies = self.dies.len() as u64;
        let limit = u64::from(self.dies[die].limit);
        let valid = u64::from(self.dies[die].n_valid);
        if valid >= limit {
            return false;
        }
        // All dies may be past their limits when a drive has just become read-only.
        let total_slack = self.total_limit.saturating_sub(self.n_valid);
        let keep_percent = u64::from(100 - self.cfg.yield_percent);
        (limit - valid) * n_dies * 100 >= total_slack * keep_percent
    }
}
