//! A preset for a capacity, like a model in everything else.
//!
//! What is asked for is kept as it is; what has to change with the capacity (dies,
//! channels, blocks, mapping unit, write buffer) is chosen here, and the comment of
//! each key says which of the two it is. A preset that comes out was checked: it
//! makes a drive that exports what was asked for, to within one mapping unit.

use flashwise_ssd::{ConfigError, DeviceConfig, FtlConfig, PresetError};

use crate::annotated::Annotated;
use crate::cells::{PARTS, part};
use crate::error::DesignError;
use crate::size::{binary, decimal, short};

/// Most mapping units of a drive, over-provisioning included: two values of a 32-bit
/// table entry are taken.
const UNITS_MAX: f64 = (u32::MAX - 2) as f64;

/// Dies on a channel before more channels are chosen. Assumed: chip enables of common
/// controllers.
const DIES_PER_CHANNEL: u32 = 8;

/// Channels that are chosen at most. Assumed: the widest common controllers.
const CHANNELS_MAX: u32 = 16;

/// Blocks of a die, reserve excluded, below which blocks are made smaller: greedy
/// collection needs many to choose from.
const BLOCKS_MIN: u32 = 64;

/// One key that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The option, for messages: `--read-us`.
    pub option: String,
    /// `key=value`, as `--set` takes it.
    pub change: String,
    /// What the comment of the key shall say.
    pub source: String,
}

impl Ask {
    /// `option` sets `key` to `value`.
    pub fn new(option: &str, key: &str, value: impl std::fmt::Display) -> Self {
        Self {
            option: option.to_owned(),
            change: format!("{key}={value}"),
            source: format!("asked for: {option} {value}"),
        }
    }
}

/// A drive that is wanted.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// Exported capacity \[bytes\].
    pub capacity_bytes: u64,
    /// Where the capacity comes from, for its comment: `asked for: --capacity 960G`.
    pub capacity_source: String,
    /// Preset or preset file that says the rest.
    pub like: String,
    /// Name of the new preset.
    pub name: String,
    /// Bits per cell: slc, mlc, tlc or qlc.
    pub cell: Option<String>,
    /// Spare per exported byte \[percent\].
    pub op_percent: Option<f64>,
    /// Dies of the drive.
    pub dies: Option<u32>,
    /// Channels.
    pub channels: Option<u32>,
    /// Single keys; later ones win.
    pub asks: Vec<Ask>,
    /// Lines for the head of the file.
    pub head: Vec<String>,
}

/// Keys that follow from other options, and those options.
const CHOSEN: [(&str, &str); 5] = [
    ("ftl.capacity_mib", "--capacity"),
    ("ftl.over_provisioning", "--op"),
    ("geometry.channels", "--channels"),
    ("geometry.dies_per_channel", "--dies"),
    ("geometry.blocks_per_plane", "--capacity and --op"),
];

/// The preset that `wish` asks for.
pub fn design(wish: &Wish) -> Result<Annotated, DesignError> {
    let mut drive = Drive::new(wish)?;
    drive.apply_cell()?;
    drive.apply_asks()?;
    drive.choose_unit()?;
    drive.choose_dies()?;
    drive.choose_blocks()?;
    drive.scale_buffer();
    drive.describe();
    let preset = drive.preset;
    preset.config().check().map_err(|source| blame(wish, source))?;
    // What is handed out is what a reader of the file gets.
    let again = DeviceConfig::parse("the new preset", &preset.to_toml(), &[]);
    assert_eq!(again.as_ref().ok(), Some(preset.config()), "the file says the same");
    Ok(preset)
}

/// Names the option that set the key an error is about, or another that the key has to
/// agree with.
fn blame(wish: &Wish, source: PresetError) -> DesignError {
    let key = match &source {
        PresetError::Value { key, .. } | PresetError::Choice { key, .. } => key.clone(),
        PresetError::Config(ConfigError::Impossible { key, .. }) => (*key).to_owned(),
        _ => String::new(),
    };
    let agree: &[&str] = match key.as_str() {
        "geometry.page_kib" => &["ftl.unit_kib"],
        "geometry.pages_per_block" => &["geometry.planes", "geometry.page_kib", "ftl.unit_kib"],
        "host.mdts_kib" => &["ftl.unit_kib"],
        "buffer.kib" => &["geometry.planes", "geometry.page_kib"],
        _ => &[],
    };
    let mut keys = std::iter::once(key.as_str()).chain(agree.iter().copied());
    let asked = |key: &str| {
        let sets = |a: &&Ask| {
            let bare = a.change.split('=').next().unwrap_or("");
            DeviceConfig::full_key(bare.trim()).is_ok_and(|k| k == key)
        };
        wish.asks.iter().rev().find(sets).map(|a| a.option.clone())
    };
    let what = keys.find_map(asked);
    let chosen = || CHOSEN.iter().find(|c| c.0 == key).map(|c| c.1.to_owned());
    let whole = || format!("{} like {}", decimal(wish.capacity_bytes as f64), wish.like);
    let what = what.or_else(chosen).unwrap_or_else(whole);
    DesignError::Refused { what, source }
}

/// A change that cannot be read; the message names the option once.
fn unreadable(option: &str, source: PresetError) -> DesignError {
    match source {
        PresetError::Syntax { message, .. } => combination(format!("{option}: {message}")),
        source if option == "--set" => DesignError::Preset(source),
        source => DesignError::Refused { what: option.to_owned(), source },
    }
}

/// A preset on its way from the model to the wish.
struct Drive<'a> {
    wish: &'a Wish,
    model: DeviceConfig,
    model_ftl: FtlConfig,
    preset: Annotated,
    /// Spare units for each exported one that are wanted.
    op: f64,
    asked: Vec<&'static str>,
    n_logical: f64,
}

impl<'a> Drive<'a> {
    fn new(wish: &'a Wish) -> Result<Self, DesignError> {
        let preset = Annotated::open(&wish.like)?;
        let model = preset.config().clone();
        let model_ftl = model.check()?;
        let op = match wish.op_percent {
            Some(percent) if !(percent > 0.0 && percent <= 10_000.0) => {
                return Err(combination(format!(
                    "--op {percent}: expected more than 0 and at most 10000 percent; consumer \
                     drives have about 7, data-centre drives 7 to 28"
                )));
            }
            Some(percent) => percent / 100.0,
            None if model.ftl.capacity_mib == 0.0 => model.ftl.over_provisioning,
            None => model_ftl.over_provisioning(),
        };
        Ok(Self { wish, model, model_ftl, preset, op, asked: vec![], n_logical: 0.0 })
    }

    /// Another cell mode has other times, and other pages to a block.
    fn apply_cell(&mut self) -> Result<(), DesignError> {
        let Some(name) = &self.wish.cell else { return Ok(()) };
        let Some(p) = PARTS.iter().find(|p| p.name == name) else {
            return Err(combination(format!("--cell {name}: expected slc, mlc, tlc or qlc")));
        };
        let (asked, old) = (format!("asked for: --cell {name}"), self.model.native()?);
        self.preset.change(&["flash.native"], &asked, |c| c.flash.native = p.name.to_owned());
        if p.mode == old {
            return Ok(());
        }
        let order = format!("source: {}", p.times_source);
        self.preset.change(&["flash.page_order"], &order, |c| {
            c.flash.page_order = p.page_order.to_owned();
        });
        self.preset.change(&["flash.read_us", "flash.read_4k_us"], &order, |c| {
            c.flash.read_us = p.read_us.to_vec();
            c.flash.read_4k_us = p.read_4k_us.to_vec();
        });
        self.preset.change(&["flash.program_us"], &order, |c| {
            c.flash.program_us = vec![p.program_us];
        });
        let endurance = format!("assumed: order of magnitude usual for {}", name.to_uppercase());
        self.preset.change(&["flash.endurance"], &endurance, |c| c.flash.endurance = p.endurance);
        let rows = (self.model.geometry.pages_per_block / old.bits()).max(1);
        let pages = format!("source: follows from {rows} rows of cells, as {}", self.wish.like);
        self.preset.change(&["geometry.pages_per_block"], &pages, |c| {
            c.geometry.pages_per_block = rows * p.mode.bits();
        });
        Ok(())
    }

    fn apply_asks(&mut self) -> Result<(), DesignError> {
        for ask in &self.wish.asks {
            let refused = |source| unreadable(&ask.option, source);
            let bare = ask.change.split('=').next().unwrap_or("").trim();
            if let Ok(key) = DeviceConfig::full_key(bare)
                && let Some((_, option)) = CHOSEN.iter().find(|c| c.0 == key)
            {
                return Err(combination(format!(
                    "{} {}: {key} follows from {option} here; use that option",
                    ask.option, ask.change
                )));
            }
            let key = self.preset.set(&ask.change, &ask.source).map_err(refused)?;
            self.asked.push(key);
        }
        // A read time that was asked for holds for short reads too.
        if self.asked.contains(&"flash.read_us") && !self.asked.contains(&"flash.read_4k_us") {
            let source = self.preset.source("flash.read_us").unwrap_or("").to_owned();
            self.preset.change(&["flash.read_4k_us"], &source, |c| {
                c.flash.read_4k_us = c.flash.read_us.clone();
            });
        }
        Ok(())
    }

    /// Mapping units of the size that lets 32-bit tables name all of them.
    fn choose_unit(&mut self) -> Result<(), DesignError> {
        let capacity = self.wish.capacity_bytes as f64;
        let cfg = self.preset.config();
        let page = cfg.geometry.page_kib;
        let mut unit = cfg.ftl.unit_kib;
        if !(unit.is_finite() && unit > 0.0) {
            return Ok(()); // Refused by the check.
        }
        let fits = |unit: f64| capacity * (1.0 + self.op) * 1.02 / (unit * 1024.0) < UNITS_MAX;
        let asked = self.asked.contains(&"ftl.unit_kib");
        while !fits(unit) && !asked && unit < 64.0 && unit < page {
            unit *= 2.0;
        }
        if !fits(unit) {
            let most = UNITS_MAX * unit * 1024.0 / (1.0 + self.op) / 1.02;
            let larger = if unit < 64.0 {
                "; a larger --unit-kib (and --page-kib) can hold more"
            } else {
                ""
            };
            return Err(combination(format!(
                "--capacity: {} has more than the 2^32 mapping units of {unit} KiB that tables can \
                 name; {} is the most with pages of {page} KiB{larger}",
                decimal(capacity),
                decimal(most)
            )));
        }
        if unit != cfg.ftl.unit_kib {
            let source = format!(
                "source: follows from the capacity: units of {} KiB would exceed the 2^32 that \
                 tables can name; smaller writes are read-modify-write",
                cfg.ftl.unit_kib
            );
            self.preset.change(&["ftl.unit_kib"], &source, |c| c.ftl.unit_kib = unit);
        }
        self.n_logical = (capacity / (unit * 1024.0)).floor();
        if self.n_logical < 1.0 {
            return Err(combination(format!(
                "--capacity: {} is less than one mapping unit of {unit} KiB",
                decimal(capacity)
            )));
        }
        Ok(())
    }

    fn choose_dies(&mut self) -> Result<(), DesignError> {
        let p = part(self.preset.config().native()?);
        let raw = self.wish.capacity_bytes as f64 * (1.0 + self.op);
        let die = (p.die_gib << 30) as f64;
        let least = self.model_ftl.geo.n_dies();
        let wanted = self.wish.dies.unwrap_or(((raw / die).ceil() as u32).clamp(least, 4096));
        let model_channels = self.model.geometry.channels;
        let channels = self.wish.channels.unwrap_or_else(|| {
            let mut n = model_channels;
            while wanted > n * DIES_PER_CHANNEL && n < CHANNELS_MAX {
                n *= 2;
            }
            n
        });
        if channels == 0 || wanted == 0 || channels > 1024 || wanted > 4096 {
            return Err(combination(format!(
                "--dies {wanted} on --channels {channels}: expected 1 to 4096 dies on 1 to 1024 \
                 channels"
            )));
        }
        let (dies, channels) = match (self.wish.dies, self.wish.channels) {
            (Some(dies), Some(channels)) if !dies.is_multiple_of(channels) => {
                let (below, above) = (dies / channels * channels, dies.next_multiple_of(channels));
                let works =
                    if below > 0 { format!("{below} or {above}") } else { above.to_string() };
                return Err(combination(format!(
                    "--dies {dies} --channels {channels}: all channels have as many dies; on \
                     {channels} channels {works} would do"
                )));
            }
            (Some(dies), None) => {
                let divides = (1..=channels.min(dies)).rev().find(|c| dies.is_multiple_of(*c));
                (dies, divides.unwrap_or(1))
            }
            _ => (wanted.next_multiple_of(channels), channels),
        };
        self.set_dies(
            dies,
            channels,
            &format!("{} GiB of {} in a die", p.die_gib, p.name.to_uppercase()),
        );
        Ok(())
    }

    fn set_dies(&mut self, dies: u32, channels: u32, why: &str) {
        let per_channel = dies / channels;
        let model = &self.model.geometry;
        let (asked_dies, asked_channels) = (self.wish.dies, self.wish.channels);
        if asked_channels.is_some() || channels != model.channels {
            let source = match asked_channels {
                Some(n) => format!("asked for: --channels {n}"),
                None if channels > model.channels => {
                    format!(
                        "assumed: up to {DIES_PER_CHANNEL} dies on a channel, {CHANNELS_MAX} channels"
                    )
                }
                None => format!("source: follows from {dies} dies"),
            };
            self.preset.change(&["geometry.channels"], &source, |c| c.geometry.channels = channels);
        }
        if asked_dies.is_some() || per_channel != model.dies_per_channel {
            let source = match asked_dies {
                Some(n) => format!("asked for: --dies {n}"),
                None if dies == self.model_ftl.geo.n_dies() => {
                    format!("source: follows from {dies} dies, as the model")
                }
                None => format!("assumed: {dies} dies, {why}"),
            };
            self.preset.change(&["geometry.dies_per_channel"], &source, |c| {
                c.geometry.dies_per_channel = per_channel;
            });
        }
    }

    /// The fewest blocks that hold the capacity, the spare space and the reserve.
    fn choose_blocks(&mut self) -> Result<(), DesignError> {
        let mib = self.n_logical * self.preset.config().ftl.unit_kib / 1024.0;
        self.preset.change(&["ftl.capacity_mib"], &self.wish.capacity_source, |c| {
            c.ftl.capacity_mib = mib;
        });
        let mut ftl = self.probe()?;
        self.shrink_blocks(&mut ftl);
        let per_block = f64::from(ftl.layout().units_per_block) * f64::from(ftl.geo.n_dies());
        // A part in a million less: 0.07 has no exact form.
        let usable = (self.n_logical * (1.0 + self.op) * (1.0 - 1e-9) / per_block).ceil().max(1.0);
        if usable > 1e9 {
            return Err(combination(format!(
                "--capacity: {} needs {usable:.0} blocks in each plane; use more dies, planes or \
                 pages per block",
                decimal(self.wish.capacity_bytes as f64)
            )));
        }
        ftl.geo.n_blocks_per_plane = usable as u32 + ftl.reserve_blocks();
        ftl.n_logical = self.n_logical as u32;
        if let Err(ConfigError::TooLittleSpace { needed, .. }) = ftl.check() {
            ftl.geo.n_blocks_per_plane = u32::try_from(needed).unwrap_or(u32::MAX);
        }
        ftl.check().map_err(|e| blame(self.wish, e.into()))?;
        self.set_blocks(&ftl);
        Ok(())
    }

    /// The translation layer for a drive of one unit, which checks the shape alone.
    fn probe(&mut self) -> Result<FtlConfig, DesignError> {
        let mut cfg = self.preset.config().clone();
        cfg.geometry.blocks_per_plane = 4096;
        cfg.ftl.capacity_mib = cfg.ftl.unit_kib / 1024.0;
        loop {
            match cfg.ftl_config(flashwise_ssd::RelationPolicy::None) {
                // Blocks so large that few of them exceed the tables.
                Err(PresetError::Config(ConfigError::TooManyUnits { .. }))
                    if cfg.geometry.blocks_per_plane > 16 =>
                {
                    cfg.geometry.blocks_per_plane /= 2;
                }
                other => return other.map_err(|e| blame(self.wish, e)),
            }
        }
    }

    /// A small drive gets smaller blocks, so that it has enough of them.
    fn shrink_blocks(&mut self, ftl: &mut FtlConfig) {
        if self.asked.contains(&"geometry.pages_per_block") {
            return;
        }
        let (old, bits) = (ftl.geo.n_pages_per_block, ftl.native.bits());
        let usable = |ftl: &FtlConfig| {
            let per_block = f64::from(ftl.layout().units_per_block) * f64::from(ftl.geo.n_dies());
            self.n_logical * (1.0 + self.op) / per_block
        };
        while usable(ftl) < f64::from(BLOCKS_MIN) && ftl.geo.n_pages_per_block >= 16 * bits {
            ftl.geo.n_pages_per_block = ftl.geo.n_pages_per_block / 2 / bits * bits;
        }
        let pages = ftl.geo.n_pages_per_block;
        if pages != old {
            let source = format!(
                "assumed: smaller than the {old} of the model, so that a die has {BLOCKS_MIN} blocks \
                 to collect from"
            );
            self.preset.change(&["geometry.pages_per_block"], &source, |c| {
                c.geometry.pages_per_block = pages;
            });
        }
    }

    fn set_blocks(&mut self, ftl: &FtlConfig) {
        let blocks = ftl.geo.n_blocks_per_plane;
        let op = ftl.over_provisioning();
        let wanted = format!("{} %", short(self.op * 100.0));
        let whence = match self.wish.op_percent {
            Some(percent) => format!("asked for: --op {percent}"),
            None => format!("as {}", self.wish.like),
        };
        let source = format!(
            "source: follows from the capacity, {wanted} spare ({whence}) and {} blocks of reserve",
            ftl.reserve_blocks()
        );
        self.preset.change(&["geometry.blocks_per_plane"], &source, |c| {
            c.geometry.blocks_per_plane = blocks;
        });
        let source = if op - self.op > 0.05 * self.op {
            format!(
                "source: follows from capacity_mib; {wanted} wanted ({whence}), whole blocks and the \
                 needs of collection make it more"
            )
        } else {
            format!(
                "source: follows from capacity_mib and whole blocks; {wanted} wanted ({whence})"
            )
        };
        let rounded = (op * 1e6).round() / 1e6;
        self.preset.change(&["ftl.over_provisioning"], &source, |c| {
            c.ftl.over_provisioning = rounded;
        });
    }

    /// As many program units per die as the model buffers.
    fn scale_buffer(&mut self) {
        if self.asked.contains(&"buffer.kib") {
            return;
        }
        let Ok(ftl) = self.preset.config().ftl_config(flashwise_ssd::RelationPolicy::None) else {
            return;
        };
        let stripe_kib = |f: &FtlConfig| {
            let unit_kib = f64::from(f.geo.unit_bytes) / 1024.0;
            f64::from(f.layout().units_per_pu) * unit_kib * f64::from(f.geo.n_dies())
        };
        let (old, new) = (stripe_kib(&self.model_ftl), stripe_kib(&ftl));
        if old == new {
            return;
        }
        let pu_per_die = self.model.buffer.kib / old;
        let kib = (pu_per_die * new / 64.0).ceil() * 64.0;
        let source =
            format!("assumed: {} program units per die, as {}", short(pu_per_die), self.wish.like);
        self.preset.change(&["buffer.kib"], &source, |c| c.buffer.kib = kib.min(1048576.0));
    }

    /// A program takes its time whatever it programs: with other planes or pages that
    /// is another amount, and the comment of the time says so.
    fn note_program_unit(&mut self) {
        let cfg = self.preset.config();
        if self.asked.contains(&"flash.program_us") || cfg.flash.native != self.model.flash.native {
            return;
        }
        let row_kib = |c: &DeviceConfig| f64::from(c.geometry.planes) * c.geometry.page_kib;
        if row_kib(cfg) == row_kib(&self.model) {
            return;
        }
        let times = format!(
            "{} x the program unit of that source",
            short(row_kib(cfg) / row_kib(&self.model))
        );
        let old = self.preset.source("flash.program_us").unwrap_or("");
        let source = format!("{old}; here for {times}");
        self.preset.change(&["flash.program_us"], &source, |_| ());
    }

    fn describe(&mut self) {
        self.note_program_unit();
        let (name, like) = (self.wish.name.clone(), &self.wish.like);
        let dies =
            self.preset.config().geometry.channels * self.preset.config().geometry.dies_per_channel;
        let capacity = decimal(self.wish.capacity_bytes as f64);
        let about = format!("{capacity} on {dies} dies, like {like}");
        self.preset.head = self.wish.head.clone();
        self.preset.head.push(format!(
            "{capacity} ({}) like {like}: numbers without «asked for» or «follows» are those of {like}.",
            binary(self.wish.capacity_bytes as f64)
        ));
        let asked = |key: &str| self.asked.contains(&key);
        let (names, tells) = (!asked("name"), !asked("about"));
        self.preset.change(&[], "", |c| {
            if names {
                c.name.clone_from(&name);
            }
            if tells {
                c.about.clone_from(&about);
            }
        });
    }
}

fn combination(text: String) -> DesignError {
    DesignError::Combination(text)
}
