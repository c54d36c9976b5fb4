//! Maps the addresses of a workload onto a drive of another size.
//!
//! Published traces come from drives larger than one likes to simulate. Folding them
//! silently (as other simulators do) turns distinct blocks into overwrites, so the
//! choice is explicit: [`FitMode::Compact`] keeps every block distinct, [`FitMode::Wrap`]
//! folds, [`FitMode::Reject`] refuses. A workload that fits is never changed.
//!
//! Invariants: lengths never change; every mapped request ends within the drive;
//! compacting is injective and keeps the order of addresses and the offset inside a
//! mapping unit. Cost: O(log extents) per request, two words per extent.

use std::str::FromStr;

use flashwise_hint::{Lba, Relation};

use crate::{OpKind, Request, Summary, WorkloadError, names};

/// What to do with a workload whose addresses exceed the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FitMode {
    /// Addresses modulo the capacity: distinct blocks may fall together.
    Wrap,
    /// Touched extents packed from address 0: blocks stay distinct, gaps disappear.
    Compact,
    /// An error.
    Reject,
}

impl FitMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Wrap, Self::Compact, Self::Reject];

    /// The name users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wrap => "wrap",
            Self::Compact => "compact",
            Self::Reject => "reject",
        }
    }
}

impl std::fmt::Display for FitMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FitMode {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mode = Self::ALL.into_iter().find(|mode| mode.name() == text);
        mode.ok_or_else(|| names::unknown("fit mode", text, &Self::ALL.map(Self::name)))
    }
}

/// A mapping of addresses onto one drive.
#[derive(Clone, Debug)]
pub struct Fit {
    plan: Plan,
    capacity_sectors: u64,
}

#[derive(Clone, Debug)]
enum Plan {
    Identity,
    Wrap { usable_sectors: u64, align_sectors: u64 },
    Compact(Vec<Packed>),
}

/// One touched extent and where it goes \[sectors\].
#[derive(Clone, Copy, Debug)]
struct Packed {
    start: u64,
    end: u64,
    to: u64,
}

impl Fit {
    /// Plans how the workload behind `summary` goes onto a drive of `capacity_sectors`
    /// whose mapping unit is `align_sectors`. For compacting, the summary must have
    /// been taken with the same alignment.
    pub fn new(
        mode: FitMode,
        summary: &Summary,
        capacity_sectors: u64,
        align_sectors: u64,
    ) -> Result<Self, WorkloadError> {
        let usable_sectors = capacity_sectors.checked_rem(align_sectors);
        let usable_sectors = usable_sectors.map_or(0, |rest| capacity_sectors - rest);
        if usable_sectors == 0 {
            return Err(WorkloadError::Parameter {
                key: "capacity_sectors",
                found: format!("{capacity_sectors} with a mapping unit of {align_sectors}").into(),
                expected: "at least one mapping unit of at least one sector".into(),
            });
        }
        let plan = if summary.max_lba_end <= capacity_sectors {
            Plan::Identity
        } else {
            match mode {
                FitMode::Reject => Plan::Identity,
                FitMode::Wrap => Plan::Wrap { usable_sectors, align_sectors },
                FitMode::Compact => Plan::Compact(pack(summary, usable_sectors, align_sectors)?),
            }
        };
        Ok(Self { plan, capacity_sectors })
    }

    /// Whether no address changes.
    pub fn is_identity(&self) -> bool {
        matches!(self.plan, Plan::Identity)
    }

    /// Moves a request onto the drive; true if its address changed. The `prev` of an
    /// append hint moves along, or the relation is dropped if `prev` has no place.
    pub fn apply(&self, request: &mut Request) -> Result<bool, WorkloadError> {
        if let Relation::Append { prev } = request.hint.relation {
            request.hint.relation = match self.map_sector(prev.0) {
                Some(sector) => Relation::Append { prev: Lba(sector) },
                None => Relation::None,
            };
        }
        if request.op == OpKind::Flush {
            return Ok(false);
        }
        let (lba, sectors) = (request.lba.0, u64::from(request.sectors));
        let to = self.map(lba, sectors)?;
        request.lba = Lba(to);
        Ok(to != lba)
    }

    /// Where a sector range named by the summary (such as [`Summary::read`]) goes. With
    /// wrapping, a range that passes the end comes back as several; the union of the
    /// results is what requests within the range can reach.
    pub fn map_range(&self, start: u64, end: u64) -> Result<Vec<(u64, u64)>, WorkloadError> {
        if start >= end {
            return Ok(Vec::new());
        }
        match &self.plan {
            Plan::Wrap { usable_sectors: usable, align_sectors: align } => {
                let (from, len) = (start % usable, end - start);
                if len >= *usable {
                    return Ok(vec![(0, *usable)]);
                }
                if from + len <= *usable {
                    return Ok(vec![(from, from + len)]);
                }
                // A straddling request is shifted back to end by the end of the drive,
                // short of it by less than a mapping unit.
                let shifted = (usable - len).saturating_sub(align - 1);
                Ok(vec![(0, from + len - usable), (shifted, *usable)])
            }
            _ => {
                let to = self.map(start, end - start)?;
                Ok(vec![(to, to + (end - start))])
            }
        }
    }

    fn map(&self, lba: u64, sectors: u64) -> Result<u64, WorkloadError> {
        let capacity_sectors = self.capacity_sectors;
        match &self.plan {
            Plan::Identity => match lba.checked_add(sectors) {
                Some(end) if end <= capacity_sectors => Ok(lba),
                _ => Err(WorkloadError::OutOfRange { lba, sectors, capacity_sectors }),
            },
            Plan::Wrap { usable_sectors: usable, align_sectors: align } => {
                if sectors > *usable {
                    return Err(WorkloadError::OutOfRange { lba, sectors, capacity_sectors });
                }
                let to = lba % usable;
                if to + sectors <= *usable {
                    return Ok(to);
                }
                // Shift back by whole mapping units, so that the offset inside one
                // stays; only a request of almost the whole drive has no room for that.
                let room = usable - sectors;
                let offset = lba % align;
                Ok(if offset <= room { room - (room - offset) % align } else { room })
            }
            Plan::Compact(extents) => match find(extents, lba) {
                Some(extent) if lba.saturating_add(sectors) <= extent.end => {
                    Ok(extent.to + (lba - extent.start))
                }
                _ => Err(WorkloadError::NotTouched { lba, sectors }),
            },
        }
    }

    fn map_sector(&self, sector: u64) -> Option<u64> {
        match &self.plan {
            Plan::Identity => (sector < self.capacity_sectors).then_some(sector),
            Plan::Wrap { usable_sectors, .. } => Some(sector % usable_sectors),
            Plan::Compact(extents) => {
                find(extents, sector).map(|extent| extent.to + (sector - extent.start))
            }
        }
    }
}

/// The extent that holds a sector.
fn find(extents: &[Packed], sector: u64) -> Option<&Packed> {
    let after = extents.partition_point(|extent| extent.start <= sector);
    let extent = extents.get(after.checked_sub(1)?)?;
    (sector < extent.end).then_some(extent)
}

/// Packs the touched extents in order from 0, each on mapping-unit boundaries.
fn pack(summary: &Summary, usable: u64, align: u64) -> Result<Vec<Packed>, WorkloadError> {
    let mut extents: Vec<Packed> = Vec::with_capacity(summary.touched.n_ranges());
    let mut to = 0_u64;
    for range in summary.touched.iter() {
        let start = range.start - range.start % align;
        let end = range.end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        match extents.last_mut() {
            Some(last) if start <= last.end => {
                to += end - last.end;
                last.end = end;
            }
            _ => {
                extents.push(Packed { start, end, to });
                to += end - start;
            }
        }
    }
    if to > usable {
        return Err(WorkloadError::Footprint { footprint_sectors: to, capacity_sectors: usable });
    }
    Ok(extents)
}
