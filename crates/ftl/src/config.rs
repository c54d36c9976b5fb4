//! What an FTL is built for, and whether that can work. Impossible shapes are
//! refused here, with the smallest change that would do, so that nothing later
//! has to run out of blocks.

use flashwise_nand::{CellMode, FaultPlan, Geometry, Layout, PageOrder};

use crate::gc::VictimPolicy;
use crate::place::RelationPolicy;
use crate::wear::{Scrub, WearLeveling};

/// Open blocks of garbage collection on each die: one for fragments, one for
/// program units that move whole.
pub(crate) const N_GC_FRONTIERS: u32 = 2;

/// Blocks of each die held back where blocks can fail.
const N_FOR_FAULTS: u32 = 2;

/// Everything an [`crate::Ftl`] has to know.
#[derive(Clone, Debug)]
pub struct FtlConfig {
    /// Shape of the flash.
    pub geo: Geometry,
    /// Native cell mode.
    pub native: CellMode,
    /// Order of page types in a block.
    pub order: PageOrder,
    /// Mapping units the host sees.
    pub n_logical: u32,
    /// Placement handles (each has its own open block per die).
    pub n_handles: u16,
    /// What is done with append and overwrite hints.
    pub relation: RelationPolicy,
    /// How garbage collection chooses a block.
    pub victim: VictimPolicy,
    /// Free blocks of a die below which host writes pay for collection.
    pub gc_low_blocks: u32,
    /// Free blocks of a die up to which idle time is used for collection.
    pub gc_high_blocks: u32,
    /// A die is passed over when its unused space is this much below the mean
    /// of all dies \[percent\].
    pub yield_percent: u32,
    /// A hinted write passes a die over whose blocks were erased so much more often than
    /// the mean of all dies \[erases per block\].
    pub yield_erases: f64,
    /// And one for which so many units of the write buffer wait.
    pub yield_buffer_units: u32,
    /// Units that go to one die before round robin and appends step on; 0: a program
    /// unit. Divides a program unit, of which several then fill side by side.
    pub grain_units: u32,
    /// Program units that `chain` may begin before those due are full, on all dies.
    pub chain_pus: u32,
    /// Planes of a die sense different pages at the same time.
    pub independent_planes: bool,
    /// Buffered data survives power failure.
    pub power_protected: bool,
    /// A unit rewritten before its program unit was full takes no new place.
    pub coalesce: bool,
    /// Out-of-band data is kept, so that a crash can be recovered from.
    pub oob: bool,
    /// How erases are spread over the blocks of a die.
    pub leveling: WearLeveling,
    /// Erases by which the least worn block of a die may lag behind before its data
    /// moves (static wear levelling).
    pub wear_gap_max: u32,
    /// What is moved because it was read often or is old.
    pub scrub: Scrub,
    /// What fails.
    pub faults: FaultPlan,
}

/// Why a device cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A size is zero or does not divide.
    #[error("{key} = {value}: expected {expected}")]
    Impossible {
        /// Preset key.
        key: &'static str,
        /// What it was set to, in the unit of the key.
        value: String,
        /// What would do.
        expected: String,
    },
    /// More units than a 32-bit table can address.
    #[error(
        "{units} mapping units (over-provisioning included) exceed the 2^32 that a table entry \
         can name: use a larger ftl.unit_kib or fewer blocks"
    )]
    TooManyUnits {
        /// Units asked for.
        units: u64,
    },
    /// More blocks are bad from the start than there are spare ones.
    #[error(
        "faults.factory_bad_ppm = {ppm}: of the {n_blocks} blocks of die {die}, {n_bad} are bad, \
         and only {n_spare} can be spared; set it lower, or export less (ftl.capacity_mib, \
         ftl.over_provisioning)"
    )]
    TooManyBadBlocks {
        /// Share of blocks that are bad \[ppm\].
        ppm: u32,
        /// Die.
        die: u32,
        /// Its blocks.
        n_blocks: u32,
        /// Its bad blocks.
        n_bad: u32,
        /// Blocks it can do without.
        n_spare: u64,
    },
    /// The reserves of the FTL do not fit beside the exported capacity.
    #[error(
        "{n_logical} exported mapping units need {needed} blocks per die ({reserve} of them \
         reserve), but there are {available}: set geometry.blocks_per_plane to at least {needed}, \
         or export less (ftl.capacity_mib, ftl.over_provisioning)"
    )]
    TooLittleSpace {
        /// Units asked to be exported.
        n_logical: u64,
        /// Blocks per die that would do.
        needed: u64,
        /// Blocks per die held back.
        reserve: u64,
        /// Blocks per die there are.
        available: u64,
    },
}

impl FtlConfig {
    /// Blocks per die that the exported units need, reserve included; see
    /// [`ConfigError::TooLittleSpace`].
    pub(crate) fn blocks_needed(&self) -> u64 {
        let layout = self.layout();
        let (per_block, per_pu) =
            (u64::from(layout.units_per_block), u64::from(layout.units_per_pu));
        let n_dies = u64::from(self.geo.n_dies());
        // One program unit more per die, for the rounding of a round robin.
        let used = u64::from(self.n_logical) + u64::from(self.n_meta()) + n_dies * per_pu;
        let least = used.div_ceil(per_block * n_dies) + u64::from(self.reserve_blocks());
        if self.power_protected {
            return least;
        }
        // Without power protection a collected block can cost a padded program
        // unit: the mean victim has to gain more than that. The more blocks, the
        // more of that, so the smallest number that holds is approached from below.
        let mut needed = least;
        while needed < least + (needed * per_pu).div_ceil(per_block) {
            needed = least + (needed * per_pu).div_ceil(per_block);
        }
        needed
    }

    /// Checks the configuration; an FTL built from a checked one never runs out
    /// of blocks.
    pub fn check(&self) -> Result<(), ConfigError> {
        let geo = &self.geo;
        let positive = [
            ("geometry.channels", geo.n_channels),
            ("geometry.dies_per_channel", geo.n_dies_per_channel),
            ("geometry.planes", geo.n_planes),
            ("geometry.blocks_per_plane", geo.n_blocks_per_plane),
            ("geometry.pages_per_block", geo.n_pages_per_block),
            ("geometry.page_kib", geo.page_bytes),
            ("ftl.unit_kib", geo.unit_bytes),
            ("ftl.handles", u32::from(self.n_handles)),
            ("ftl.gc_low_blocks", self.gc_low_blocks),
            ("ftl.capacity_mib", self.n_logical),
        ];
        if let Some(&(key, _)) = positive.iter().find(|(_, v)| *v == 0) {
            return Err(impossible(key, 0, "at least 1"));
        }
        self.check_bounds()?;
        self.check_units()?;
        self.check_space()
    }

    fn check_bounds(&self) -> Result<(), ConfigError> {
        let geo = &self.geo;
        let bounds = [
            ("geometry.channels", u64::from(geo.n_channels), 1024),
            ("geometry.dies_per_channel", u64::from(geo.n_dies_per_channel), 1024),
            ("geometry.planes", u64::from(geo.n_planes), 8),
            ("ftl.handles", u64::from(self.n_handles), 128),
            ("ftl.yield_percent", u64::from(self.yield_percent), 100),
            ("ftl.gc_low_blocks", u64::from(self.gc_low_blocks), 1_000_000),
            ("ftl.gc_high_blocks", u64::from(self.gc_high_blocks), 1_000_000),
            ("faults.factory_bad_ppm", u64::from(self.faults.factory_bad_ppm), 1_000_000),
            ("faults.program_fail_ppm", u64::from(self.faults.program_fail_ppm), 1_000_000),
            ("faults.erase_fail_ppm", u64::from(self.faults.erase_fail_ppm), 1_000_000),
            ("faults.read_retry_ppm", u64::from(self.faults.read_retry_ppm), 1_000_000),
        ];
        for (key, value, max) in bounds {
            if value > max {
                return Err(impossible(key, value, &format!("at most {max}")));
            }
        }
        let n_dies = u64::from(geo.n_channels) * u64::from(geo.n_dies_per_channel);
        if n_dies > 4096 {
            let most = 4096 / geo.n_channels;
            let expected = format!("at most {most} on {} channels (4096 dies)", geo.n_channels);
            let value = geo.n_dies_per_channel;
            return Err(impossible("geometry.dies_per_channel", value, &expected));
        }
        if self.gc_high_blocks < self.gc_low_blocks || self.gc_low_blocks < 2 {
            let expected = "2 <= ftl.gc_low_blocks <= ftl.gc_high_blocks";
            return Err(impossible("ftl.gc_low_blocks", self.gc_low_blocks, expected));
        }
        Ok(())
    }

    fn check_units(&self) -> Result<(), ConfigError> {
        let geo = &self.geo;
        if !(512..=65_536).contains(&geo.unit_bytes) || !geo.unit_bytes.is_power_of_two() {
            let expected = "a power of two from 512 bytes to 64 KiB";
            return Err(impossible("ftl.unit_kib", in_kib(geo.unit_bytes), expected));
        }
        if !geo.page_bytes.is_multiple_of(geo.unit_bytes) {
            let expected = format!("a multiple of the mapping unit ({} bytes)", geo.unit_bytes);
            return Err(impossible("geometry.page_kib", in_kib(geo.page_bytes), &expected));
        }
        let rows = if self.order == PageOrder::OneShot { self.native.bits() } else { 1 };
        if !geo.n_pages_per_block.is_multiple_of(rows) {
            let expected = format!("a multiple of {rows} (bits programmed in one shot)");
            let value = geo.n_pages_per_block;
            return Err(impossible("geometry.pages_per_block", value, &expected));
        }
        let per_block = u64::from(geo.n_pages_per_block)
            * u64::from(geo.n_planes)
            * u64::from(geo.units_per_page());
        if per_block > 32_767 {
            let most = 32_767 * u64::from(geo.n_pages_per_block) / per_block;
            let expected =
                format!("at most {most} here (32767 mapping units in a block of all planes)");
            let value = geo.n_pages_per_block;
            return Err(impossible("geometry.pages_per_block", value, &expected));
        }
        let units = u64::from(geo.n_channels)
            * u64::from(geo.n_dies_per_channel)
            * u64::from(geo.n_blocks_per_plane)
            * per_block;
        // Two values of a table entry are taken ("unmapped", "padding").
        if units > u64::from(u32::MAX) - 2 {
            return Err(ConfigError::TooManyUnits { units });
        }
        let per_pu = self.layout().units_per_pu;
        if self.grain_units > 0 && !per_pu.is_multiple_of(self.grain_units) {
            let pu_kib = in_kib(per_pu * geo.unit_bytes);
            let expected = format!("0, or a part of a program unit ({pu_kib} KiB) without rest");
            let value = in_kib(self.grain_units * geo.unit_bytes);
            return Err(impossible("ftl.grain_kib", value, &expected));
        }
        Ok(())
    }

    fn check_space(&self) -> Result<(), ConfigError> {
        let layout = self.layout();
        if !self.power_protected && layout.units_per_pu == layout.units_per_block {
            let expected = "more than one program unit in a block without power protection";
            let value = self.geo.n_pages_per_block;
            return Err(impossible("geometry.pages_per_block", value, expected));
        }
        let (needed, available) = (self.blocks_needed(), u64::from(self.geo.n_blocks_per_plane));
        if needed > available {
            let (n_logical, reserve) = (self.n_logical.into(), self.reserve_blocks().into());
            return Err(ConfigError::TooLittleSpace { n_logical, needed, reserve, available });
        }
        Ok(())
    }

    /// Layout of a block in the native cell mode.
    pub fn layout(&self) -> Layout {
        Layout::new(&self.geo, self.native, self.native, self.order)
    }

    /// Blocks of each die that never count as space for data: open blocks, the free
    /// blocks garbage collection works with, and where blocks can fail those that take
    /// what a failed one was to hold.
    pub fn reserve_blocks(&self) -> u32 {
        let for_faults = if self.faults.retires_blocks() { N_FOR_FAULTS } else { 0 };
        u32::from(self.n_handles) + N_GC_FRONTIERS + self.gc_low_blocks + for_faults
    }

    /// Free blocks of a die below which none is opened for the host.
    pub(crate) fn blocks_before_open(&self) -> usize {
        if self.faults.retires_blocks() { 3 } else { 2 }
    }

    /// Mapping units that can be exported with `op` spare units for each
    /// exported one (0.07 = 7 %), reserve excluded.
    pub fn logical_for(&self, op: f64) -> u32 {
        let blocks = self.geo.n_blocks_per_plane.saturating_sub(self.reserve_blocks());
        let per_die = u64::from(blocks) * u64::from(self.layout().units_per_block);
        let raw = per_die * u64::from(self.geo.n_dies());
        (raw as f64 / (1.0 + op)) as u32
    }

    /// Spare units for each exported unit, reserve excluded.
    pub fn over_provisioning(&self) -> f64 {
        f64::from(self.logical_for(0.0)) / f64::from(self.n_logical) - 1.0
    }

    /// Units that record which addresses were trimmed: one bit per logical unit.
    pub fn n_meta(&self) -> u32 {
        self.n_logical.div_ceil(self.geo.unit_bytes * 8)
    }
}

fn impossible(key: &'static str, value: impl ToString, expected: &str) -> ConfigError {
    ConfigError::Impossible { key, value: value.to_string(), expected: expected.to_owned() }
}

fn in_kib(bytes: u32) -> f64 {
    f64::from(bytes) / 1024.0
}
