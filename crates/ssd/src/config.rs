//! What a device is made of, as a preset file says it.
//!
//! Every key is known here by its dotted name, so an unknown one is refused with
//! the nearest that exists, and `--set key=value` can reach all of them. Values are
//! checked when the device is built.

use serde::{Deserialize, Serialize};

use flashwise_ftl::{ConfigError, FtlConfig, RelationPolicy, Scrub, VictimPolicy, WearLeveling};
use flashwise_nand::{CellMode, CellTiming, FaultPlan, Geometry, PageOrder, Timing};

use crate::error::PresetError;

/// A device preset. Units stand in the names of the keys; MB is 10^6 bytes, KiB
/// and MiB are binary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Name of the preset.
    pub name: String,
    /// One line on what it stands for.
    pub about: String,
    /// Sizes.
    pub geometry: GeometryConfig,
    /// The flash part.
    pub flash: FlashConfig,
    /// Blocks used in SLC mode.
    pub slc: SlcConfig,
    /// Host link.
    pub link: LinkConfig,
    /// Controller latency.
    pub firmware: FirmwareConfig,
    /// Write buffer.
    pub buffer: BufferConfig,
    /// Translation layer.
    pub ftl: FtlKeys,
    /// How wear is spread, and when data is moved for its own good.
    #[serde(default)]
    pub wear: WearConfig,
    /// What fails.
    #[serde(default)]
    pub faults: FaultConfig,
    /// How the host drives it when the workload does not say.
    pub host: HostConfig,
    /// How the drive is aged before it is measured.
    pub precondition: PreconditionConfig,
}

/// `[geometry]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryConfig {
    /// Channels.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes in each die.
    pub planes: u32,
    /// Blocks in each plane.
    pub blocks_per_plane: u32,
    /// Pages in each block, in the native cell mode.
    pub pages_per_block: u32,
    /// Data of one page \[KiB\].
    pub page_kib: f64,
}

/// `[flash]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashConfig {
    /// `slc`, `mlc`, `tlc` or `qlc`.
    pub native: String,
    /// `one-shot`, `alternate` or `shared`.
    pub page_order: String,
    /// Sense of a page by page type, LSB first \[us\]; one value: the same for all.
    pub read_us: Vec<f64>,
    /// Sense when at most 4 KiB are wanted, by page type \[us\].
    pub read_4k_us: Vec<f64>,
    /// Program of one program unit by type of its first page \[us\].
    pub program_us: Vec<f64>,
    /// Erase of a block \[us\].
    pub erase_us: f64,
    /// Program / erase cycles a block is good for.
    pub endurance: u64,
    /// Channel rate \[MB/s\].
    pub channel_mb_s: f64,
    /// Largest piece of a read's transfer; others may come between pieces \[KiB\].
    pub channel_chunk_kib: f64,
    /// Sense of the next page overlaps transfer of the last.
    pub cache_read: bool,
    /// Transfer of the next program unit overlaps program of the last.
    pub cache_program: bool,
    /// Planes sense different pages at the same time.
    pub independent_plane_reads: bool,
    /// Delay of a read that suspends a program \[us\]; negative: it waits instead.
    pub suspend_program_us: f64,
    /// Delay of a read that suspends an erase \[us\]; negative: it waits instead.
    pub suspend_erase_us: f64,
    /// Times one operation may be suspended.
    pub suspends_max: u32,
}

/// `[slc]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcConfig {
    /// Sense of a page \[us\].
    pub read_us: f64,
    /// Program of one page per plane \[us\].
    pub program_us: f64,
    /// Erase of a block \[us\].
    pub erase_us: f64,
    /// Program / erase cycles a block is good for in this mode.
    pub endurance: u64,
}

/// `[link]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Rate \[MB/s\].
    pub mb_s: f64,
    /// Both directions at once.
    pub full_duplex: bool,
}

/// `[firmware]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirmwareConfig {
    /// Latency of a read command \[us\].
    pub read_us: f64,
    /// Latency of a read command of at most 4 KiB \[us\].
    pub read_4k_us: f64,
    /// Latency of a write command \[us\].
    pub write_us: f64,
    /// Added latency per 4 KiB written \[us\].
    pub write_4k_us: f64,
}

/// `[buffer]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferConfig {
    /// Capacity \[KiB\].
    pub kib: f64,
    /// Survives power failure.
    pub power_protected: bool,
    /// A unit rewritten while its program unit still fills takes no new place.
    pub coalesce: bool,
}

/// `[ftl]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FtlKeys {
    /// Mapping unit \[KiB\].
    pub unit_kib: f64,
    /// Spare space per exported byte (0.07 = 7 %), reserve excluded; used where
    /// `capacity_mib` is 0.
    pub over_provisioning: f64,
    /// Exported capacity \[MiB\]; 0: from `over_provisioning`.
    pub capacity_mib: f64,
    /// Placement handles.
    pub handles: u16,
    /// `greedy`, `cost-benefit` or `fifo`.
    pub victim: String,
    /// Free blocks of a die below which host writes pay for collection.
    pub gc_low_blocks: u32,
    /// Free blocks of a die up to which idle time is used.
    pub gc_high_blocks: u32,
    /// Silence after which the device is idle \[us\].
    pub idle_us: f64,
    /// How far below the mean of all dies the unused space of a die may lie before
    /// writes pass it over \[percent\].
    pub yield_percent: u32,
    /// By how many erases per block a die may be ahead of the mean of all dies before
    /// hinted writes pass it over.
    #[serde(default = "yield_erases")]
    pub yield_erases: f64,
    /// Program units of the write buffer kept for each other die: hinted writes pass over a
    /// die for which the rest of the buffer waits; 0: none are kept.
    #[serde(default = "yield_programs")]
    pub yield_programs: u32,
    /// What goes to one die before the next one is due; 0: a program unit \[KiB\].
    #[serde(default)]
    pub grain_kib: f64,
    /// Write buffer for pieces that `chain` keeps for their slot; at most half of it
    /// \[KiB\].
    #[serde(default)]
    pub chain_kib: f64,
}

/// `[wear]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearConfig {
    /// `none`, `dynamic` or `static`.
    pub leveling: String,
    /// Erases by which the least worn block of a die may lag behind before its data
    /// moves (static).
    pub gap_max: u32,
    /// Senses in a block since its erase after which its data moves; 0: never.
    pub scrub_reads: u32,
    /// Age of data after which it moves \[hours of simulated time\]; 0: never.
    pub scrub_hours: f64,
}

impl Default for WearConfig {
    fn default() -> Self {
        Self { leveling: "static".to_owned(), gap_max: 100, scrub_reads: 0, scrub_hours: 0.0 }
    }
}

/// `[faults]`. Chances are for unworn blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultConfig {
    /// Seed of all failures.
    pub seed: u64,
    /// Blocks that are bad from the start \[ppm\].
    pub factory_bad_ppm: u32,
    /// Programs that fail \[ppm\].
    pub program_fail_ppm: u32,
    /// Erases that fail \[ppm\].
    pub erase_fail_ppm: u32,
    /// Pages that need another sense \[ppm\]; as many of those a third, and so on.
    pub read_retry_ppm: u32,
    /// Most additional senses of one read.
    pub read_retries_max: u8,
    /// Growth of the chances over the endurance of a block \[factor\].
    pub worn_factor: f64,
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            factory_bad_ppm: 0,
            program_fail_ppm: 0,
            erase_fail_ppm: 0,
            read_retry_ppm: 0,
            read_retries_max: 7,
            worn_factor: 1.0,
        }
    }
}

/// `[host]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Largest command; longer requests are split \[KiB\].
    pub mdts_kib: f64,
    /// Host time between a completion and the next request of a closed loop \[us\].
    pub gap_us: f64,
}

/// `[precondition]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreconditionConfig {
    /// Part of the exported space that is filled, in order \[0..1\].
    pub occupancy: f64,
    /// `random` (uniform overwrites until write amplification is flat) or `none`.
    pub overwrite: String,
    /// Flat: the last windows differ by no more than this \[percent\].
    pub tolerance_percent: f64,
    /// Window over which write amplification is measured \[drive writes\].
    pub window_drive_writes: f64,
    /// Overwrites after which the attempt is given up \[drive writes\].
    pub drive_writes_max: f64,
}

fn yield_erases() -> f64 {
    10.0
}

fn yield_programs() -> u32 {
    2
}

/// Every key that can be set, in the order of a preset file.
pub const KEYS: [&str; 67] = [
    "name",
    "about",
    "geometry.channels",
    "geometry.dies_per_channel",
    "geometry.planes",
    "geometry.blocks_per_plane",
    "geometry.pages_per_block",
    "geometry.page_kib",
    "flash.native",
    "flash.page_order",
    "flash.read_us",
    "flash.read_4k_us",
    "flash.program_us",
    "flash.erase_us",
    "flash.endurance",
    "flash.channel_mb_s",
    "flash.channel_chunk_kib",
    "flash.cache_read",
    "flash.cache_program",
    "flash.independent_plane_reads",
    "flash.suspend_program_us",
    "flash.suspend_erase_us",
    "flash.suspends_max",
    "slc.read_us",
    "slc.program_us",
    "slc.erase_us",
    "slc.endurance",
    "link.mb_s",
    "link.full_duplex",
    "firmware.read_us",
    "firmware.read_4k_us",
    "firmware.write_us",
    "firmware.write_4k_us",
    "buffer.kib",
    "buffer.power_protected",
    "buffer.coalesce",
    "ftl.unit_kib",
    "ftl.over_provisioning",
    "ftl.capacity_mib",
    "ftl.handles",
    "ftl.victim",
    "ftl.gc_low_blocks",
    "ftl.gc_high_blocks",
    "ftl.idle_us",
    "ftl.yield_percent",
    "ftl.yield_erases",
    "ftl.yield_programs",
    "ftl.grain_kib",
    "ftl.chain_kib",
    "wear.leveling",
    "wear.gap_max",
    "wear.scrub_reads",
    "wear.scrub_hours",
    "faults.seed",
    "faults.factory_bad_ppm",
    "faults.program_fail_ppm",
    "faults.erase_fail_ppm",
    "faults.read_retry_ppm",
    "faults.read_retries_max",
    "faults.worn_factor",
    "host.mdts_kib",
    "host.gap_us",
    "precondition.occupancy",
    "precondition.overwrite",
    "precondition.tolerance_percent",
    "precondition.window_drive_writes",
    "precondition.drive_writes_max",
];

impl DeviceConfig {
    /// Checks everything that building the drive checks, without the memory that a
    /// drive takes; returns what its translation layer needs.
    pub fn check(&self) -> Result<FtlConfig, PresetError> {
        let ftl = self.ftl_config(RelationPolicy::None)?;
        self.timing()?;
        crate::device::Limits::of(self, &ftl)?;
        Ok(ftl)
    }

    /// Checks the keys that no part of the device looks at when it is built.
    pub(crate) fn check_use(&self) -> Result<(), PresetError> {
        let (h, p) = (&self.host, &self.precondition);
        ns("host.gap_us", h.gap_us)?;
        choice("precondition.overwrite", &p.overwrite, &[("random", ()), ("none", ())])?;
        let bounds = [
            ("precondition.occupancy", p.occupancy, 0.0, 1.0),
            ("precondition.tolerance_percent", p.tolerance_percent, 0.0, 100.0),
            ("precondition.window_drive_writes", p.window_drive_writes, 1e-6, 1000.0),
            ("precondition.drive_writes_max", p.drive_writes_max, 0.0, 1e6),
        ];
        for (key, value, min, max) in bounds {
            if !(min..=max).contains(&value) {
                return Err(PresetError::value(key, value, format!("{min} to {max}")));
            }
        }
        let positive =
            [("flash.endurance", self.flash.endurance), ("slc.endurance", self.slc.endurance)];
        match positive.into_iter().find(|&(_, cycles)| cycles == 0) {
            Some((key, _)) => Err(PresetError::value(key, 0.0, "at least 1 cycle".to_owned())),
            None => Ok(()),
        }
    }

    /// Shape of the flash.
    pub fn geometry(&self) -> Result<Geometry, PresetError> {
        let g = &self.geometry;
        Ok(Geometry {
            n_channels: g.channels,
            n_dies_per_channel: g.dies_per_channel,
            n_planes: g.planes,
            n_blocks_per_plane: g.blocks_per_plane,
            n_pages_per_block: g.pages_per_block,
            page_bytes: kib("geometry.page_kib", g.page_kib)?,
            unit_bytes: kib("ftl.unit_kib", self.ftl.unit_kib)?,
        })
    }

    /// Native cell mode.
    pub fn native(&self) -> Result<CellMode, PresetError> {
        let modes = [
            ("slc", CellMode::Slc),
            ("mlc", CellMode::Mlc),
            ("tlc", CellMode::Tlc),
            ("qlc", CellMode::Qlc),
        ];
        choice("flash.native", &self.flash.native, &modes)
    }

    /// Times of the flash.
    pub fn timing(&self) -> Result<Timing, PresetError> {
        let (f, s) = (&self.flash, &self.slc);
        let slc_read = [ns("slc.read_us", s.read_us)?; 4];
        Ok(Timing {
            native: self.native()?,
            main: CellTiming {
                read_ns: by_type("flash.read_us", &f.read_us)?,
                read_4k_ns: by_type("flash.read_4k_us", &f.read_4k_us)?,
                program_ns: by_type("flash.program_us", &f.program_us)?,
                erase_ns: ns("flash.erase_us", f.erase_us)?,
            },
            slc: CellTiming {
                read_ns: slc_read,
                read_4k_ns: slc_read,
                program_ns: [ns("slc.program_us", s.program_us)?; 4],
                erase_ns: ns("slc.erase_us", s.erase_us)?,
            },
            channel_ps_per_byte: ps_per_byte("flash.channel_mb_s", f.channel_mb_s)?,
            channel_chunk_bytes: kib("flash.channel_chunk_kib", f.channel_chunk_kib)?,
            cache_read: f.cache_read,
            cache_program: f.cache_program,
            independent_plane_reads: f.independent_plane_reads,
            suspend_program_ns: optional_ns("flash.suspend_program_us", f.suspend_program_us)?,
            suspend_erase_ns: optional_ns("flash.suspend_erase_us", f.suspend_erase_us)?,
            suspends_max: f.suspends_max,
        })
    }

    /// What the translation layer needs, with this relation policy.
    pub fn ftl_config(&self, relation: RelationPolicy) -> Result<FtlConfig, PresetError> {
        let orders = [
            ("one-shot", PageOrder::OneShot),
            ("alternate", PageOrder::Alternate),
            ("shared", PageOrder::Shared),
        ];
        let k = &self.ftl;
        let mut cfg = FtlConfig {
            geo: self.geometry()?,
            native: self.native()?,
            order: choice("flash.page_order", &self.flash.page_order, &orders)?,
            n_logical: 1,
            n_handles: k.handles,
            relation,
            victim: choice("ftl.victim", &k.victim, &VictimPolicy::ALL)?,
            gc_low_blocks: k.gc_low_blocks,
            gc_high_blocks: k.gc_high_blocks,
            yield_percent: k.yield_percent,
            yield_erases: self.yield_erases()?,
            yield_buffer_units: u32::MAX,
            grain_units: self.grain_units()?,
            chain_pus: 0,
            independent_planes: self.flash.independent_plane_reads,
            power_protected: self.buffer.power_protected,
            coalesce: self.buffer.coalesce,
            oob: false,
            leveling: choice("wear.leveling", &self.wear.leveling, &WearLeveling::ALL)?,
            wear_gap_max: self.wear.gap_max,
            scrub: self.scrub()?,
            faults: self.fault_plan()?,
        };
        // With one exported unit this checks everything but the space.
        self.check_space(&cfg)?;
        cfg.chain_pus = self.chain_pus(&cfg)?;
        cfg.n_logical = self.n_logical(&cfg)?;
        self.check_space(&cfg)?;
        cfg.yield_buffer_units = self.yield_units(&cfg)?;
        Ok(cfg)
    }

    pub(crate) fn yield_erases(&self) -> Result<f64, PresetError> {
        let erases = self.ftl.yield_erases;
        if (0.0..=1e6).contains(&erases) {
            return Ok(erases);
        }
        let expected = "0 to 1,000,000 erases per block".to_owned();
        Err(PresetError::value("ftl.yield_erases", erases, expected))
    }

    /// Units of the buffer that may wait for one die, if hints send them there: what is
    /// left when each other die has its own, but never less than an equal share and two
    /// program units, one under way and one to follow.
    pub(crate) fn yield_units(&self, cfg: &FtlConfig) -> Result<u32, PresetError> {
        if self.ftl.yield_programs == 0 {
            return Ok(u32::MAX);
        }
        let units = kib("buffer.kib", self.buffer.kib)? / cfg.geo.unit_bytes;
        let (per_pu, n_dies) = (cfg.layout().units_per_pu, cfg.geo.n_dies());
        let kept = per_pu.saturating_mul(self.ftl.yield_programs).saturating_mul(n_dies - 1);
        Ok(units.saturating_sub(kept).max(units.div_ceil(n_dies)).max(2 * per_pu))
    }

    fn grain_units(&self) -> Result<u32, PresetError> {
        let (unit, grain) = (kib("ftl.unit_kib", self.ftl.unit_kib)?, self.ftl.grain_kib);
        if grain == 0.0 {
            return Ok(0);
        }
        let bytes = kib("ftl.grain_kib", grain)?;
        if unit == 0 || bytes % unit != 0 {
            let expected = format!("0, or a multiple of the mapping unit ({unit} bytes)");
            return Err(PresetError::value("ftl.grain_kib", grain, expected));
        }
        Ok(bytes / unit)
    }

    /// A program that fails is written again as a whole, so nothing runs ahead where
    /// programs can fail.
    fn chain_pus(&self, cfg: &FtlConfig) -> Result<u32, PresetError> {
        if self.ftl.chain_kib == 0.0 {
            return Ok(0);
        }
        let chain = kib("ftl.chain_kib", self.ftl.chain_kib)?;
        let bytes = chain.min(kib("buffer.kib", self.buffer.kib)? / 2);
        let may_fail = cfg.faults.program_fail_ppm > 0;
        Ok(if may_fail { 0 } else { bytes / (cfg.layout().units_per_pu * cfg.geo.unit_bytes) })
    }

    fn scrub(&self) -> Result<Scrub, PresetError> {
        let (reads_max, hours) = (self.wear.scrub_reads, self.wear.scrub_hours);
        // Data that is younger is not old on any flash, and moving it all the time would
        // wear the drive out; a hundred years lie well within the clock.
        if hours != 0.0 && !(1.0..=876_000.0).contains(&hours) {
            let expected = "0 (never), or 1 to 876,000 hours".to_owned();
            return Err(PresetError::value("wear.scrub_hours", hours, expected));
        }
        Ok(Scrub { reads_max, age_max_ns: (hours * 3.6e12) as u64 })
    }

    fn fault_plan(&self) -> Result<FaultPlan, PresetError> {
        let f = &self.faults;
        if !(1.0..=1e6).contains(&f.worn_factor) {
            let expected = "1 (no growth) to 1,000,000".to_owned();
            return Err(PresetError::value("faults.worn_factor", f.worn_factor, expected));
        }
        Ok(FaultPlan {
            seed: f.seed,
            factory_bad_ppm: f.factory_bad_ppm,
            program_fail_ppm: f.program_fail_ppm,
            erase_fail_ppm: f.erase_fail_ppm,
            read_retry_ppm: f.read_retry_ppm,
            read_retries_max: f.read_retries_max,
            worn_factor: f.worn_factor,
            endurance: self.flash.endurance,
        })
    }

    /// Checks the configuration; what is advised where space is short really works.
    fn check_space(&self, cfg: &FtlConfig) -> Result<(), PresetError> {
        match cfg.check() {
            Ok(()) => Ok(()),
            Err(ConfigError::TooLittleSpace { n_logical, reserve, available, needed }) => {
                let needed = self.blocks_that_work(cfg).unwrap_or(needed);
                let e = ConfigError::TooLittleSpace { n_logical, reserve, available, needed };
                Err(e.into())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Where the capacity follows from the blocks, more blocks need more again: the
    /// first number that works.
    fn blocks_that_work(&self, cfg: &FtlConfig) -> Option<u64> {
        // Without spare space (or with none that is a number) no number of blocks does.
        let has_spare = self.ftl.over_provisioning > 0.0;
        if self.ftl.capacity_mib != 0.0 || !has_spare {
            return None;
        }
        let more = cfg.geo.n_blocks_per_plane + 1..cfg.geo.n_blocks_per_plane + 100_000;
        let mut more = more.filter(|&n_blocks_per_plane| {
            let geo = Geometry { n_blocks_per_plane, ..cfg.geo };
            let mut larger = FtlConfig { geo, ..cfg.clone() };
            self.n_logical(&larger).is_ok_and(|n_logical| {
                larger.n_logical = n_logical;
                larger.check().is_ok()
            })
        });
        more.next().map(u64::from)
    }

    fn n_logical(&self, cfg: &FtlConfig) -> Result<u32, PresetError> {
        let k = &self.ftl;
        let units_per_mib = (1 << 20) / u64::from(cfg.geo.unit_bytes);
        if k.capacity_mib != 0.0 {
            let mib = positive("ftl.capacity_mib", k.capacity_mib)?;
            let units = mib * units_per_mib as f64;
            let max = f64::from(u32::MAX - 2);
            if units < 1.0 || units > max {
                let expected = format!(
                    "at least one mapping unit and at most {:.0} MiB",
                    max / units_per_mib as f64
                );
                return Err(PresetError::value("ftl.capacity_mib", k.capacity_mib, expected));
            }
            return Ok(units as u32);
        }
        if k.over_provisioning > 100.0 {
            let expected = "at most 100 (spare space a hundred times the exported)".to_owned();
            return Err(PresetError::value("ftl.over_provisioning", k.over_provisioning, expected));
        }
        if k.over_provisioning.is_nan() || k.over_provisioning <= 0.0 {
            let least = self.least_over_provisioning(cfg);
            let expected = format!(
                "more than 0: garbage collection needs spare space; the smallest that works on \
                 this geometry is {least:.4}"
            );
            return Err(PresetError::value("ftl.over_provisioning", k.over_provisioning, expected));
        }
        // Whole MiB, so that capacities stay readable.
        let units = u64::from(cfg.logical_for(k.over_provisioning));
        let whole = units / units_per_mib * units_per_mib;
        let units = if whole > 0 { whole } else { units };
        if units == 0 {
            let expected =
                format!("more than the {} blocks per die that are reserve", cfg.reserve_blocks());
            let value = f64::from(cfg.geo.n_blocks_per_plane);
            return Err(PresetError::value("geometry.blocks_per_plane", value, expected));
        }
        Ok(units as u32)
    }

    /// Smallest over-provisioning that passes the check, to four digits.
    fn least_over_provisioning(&self, cfg: &FtlConfig) -> f64 {
        let fits = |op: f64| {
            let n_logical = cfg.logical_for(op);
            n_logical > 0 && FtlConfig { n_logical, ..cfg.clone() }.check().is_ok()
        };
        (1..=20_000).map(|i| f64::from(i) * 1e-4).find(|&op| fits(op)).unwrap_or(2.0)
    }
}

fn by_type(key: &'static str, us: &[f64]) -> Result<[u64; 4], PresetError> {
    if us.is_empty() || us.len() > 4 {
        let expected = "one to four times, LSB first".to_owned();
        return Err(PresetError::value(key, us.len() as f64, expected));
    }
    let mut all = [0; 4];
    for (i, to) in all.iter_mut().enumerate() {
        *to = ns(key, us[i.min(us.len() - 1)])?;
    }
    Ok(all)
}

/// Microseconds as nanoseconds.
pub(crate) fn ns(key: &'static str, us: f64) -> Result<u64, PresetError> {
    if us.is_finite() && (0.0..=1e9).contains(&us) {
        return Ok((us * 1000.0).round() as u64);
    }
    Err(PresetError::value(key, us, "0 to 1,000,000,000 us".to_owned()))
}

fn optional_ns(key: &'static str, us: f64) -> Result<Option<u64>, PresetError> {
    if us < 0.0 { Ok(None) } else { ns(key, us).map(Some) }
}

fn positive(key: &'static str, value: f64) -> Result<f64, PresetError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(PresetError::value(key, value, "a positive number".to_owned()))
}

/// KiB as bytes.
pub(crate) fn kib(key: &'static str, value: f64) -> Result<u32, PresetError> {
    let bytes = value * 1024.0;
    if bytes.is_finite() && bytes >= 1.0 && bytes <= f64::from(u32::MAX / 2) && bytes.fract() == 0.0
    {
        return Ok(bytes as u32);
    }
    Err(PresetError::value(key, value, "a positive number of whole bytes, below 2 GiB".to_owned()))
}

/// MB/s as picoseconds per byte.
pub(crate) fn ps_per_byte(key: &'static str, mb_s: f64) -> Result<u64, PresetError> {
    let mb_s = positive(key, mb_s)?;
    let ps = (1e6 / mb_s).round();
    if (1.0..=1e12).contains(&ps) {
        return Ok(ps as u64);
    }
    Err(PresetError::value(key, mb_s, "0.000001 to 1000000 MB/s".to_owned()))
}

pub(crate) fn choice<T: Copy>(
    key: &'static str,
    value: &str,
    all: &[(&'static str, T)],
) -> Result<T, PresetError> {
    if let Some(found) = all.iter().find(|(name, _)| *name == value) {
        return Ok(found.1);
    }
    let names: Vec<&str> = all.iter().map(|a| a.0).collect();
    Err(PresetError::Choice {
        key: key.to_owned(),
        value: value.to_owned(),
        names: names.join(", "),
    })
}
