//! NAND flash in virtual time: how long an operation takes, what it has to wait
//! for, and how worn a block is. No addresses of the host and no contents live
//! here; the FTL above decides where, this crate says when.
//!
//! * [`Geometry`] and [`Layout`]: channels x dies x planes x blocks x pages, and
//!   how mapping units fill pages, program units and blocks of one cell mode.
//! * [`Calendar`]: a short gap-filling booking list for a channel or a link.
//! * [`Nand`]: dies by next-free time, residual work per die, wear per block.
//! * [`FaultPlan`]: which operations fail.
//!
//! Time is a value: [`Nand::read`] answers at once with completion times, and
//! what was answered is final. Work nobody was told about (programs of buffered
//! data, copies, erases) waits in a queue per die and is started lazily, so a
//! host read overtakes everything that had not started when it arrived.
//!
//! Invariants: operations of one die never overlap (planes read independently
//! only if the part can); queued work of one die starts in order; a booking never
//! overlaps another in its calendar.

mod calendar;
mod engine;
mod faults;
mod geometry;
mod math;
mod min_tree;
mod timing;

pub use calendar::Calendar;
pub use engine::{Counters, Done, DoneKind, Flash, Instant, Nand, PageOp, PageRead};
pub use faults::FaultPlan;
pub use geometry::{BlockId, CellMode, DieId, Geometry, Layout, PageInfo, PageOrder, Ppn};
pub use math::FastDiv;
pub use timing::{CellTiming, Timing};
