//! What follows from a preset: space, the rates that each resource allows, write
//! amplification at steady state, life. Closed formulas of the model's own rules
//! (docs/model.md); nothing is simulated.
//!
//! The rates are bounds: a run comes close to the smallest of them where nothing
//! else is in the way, and never above it.

use flashwise_ssd::{CellMode, DeviceConfig, FtlConfig, Layout, PresetError, Timing};

use crate::formula::greedy_waf;
use crate::size::{binary, decimal, short};

const MIB: f64 = (1u64 << 20) as f64;

/// A rate of every resource, and which is the smallest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// What is bounded, the unit included: `sequential_read_mib_s`.
    pub key: &'static str,
    /// In words.
    pub label: &'static str,
    /// Unit in words.
    pub unit: &'static str,
    /// Each resource and its bound.
    pub bounds: Vec<(&'static str, f64)>,
}

impl Rates {
    /// Bounds in another unit, times `factor`; those that are no bound are left out.
    fn of(
        key: &'static str,
        label: &'static str,
        unit: &'static str,
        factor: f64,
        bounds: Vec<(&'static str, f64)>,
    ) -> Self {
        let finite = bounds.into_iter().filter(|b| b.1.is_finite());
        let bounds = finite.map(|(name, rate)| (name, rate * factor)).collect();
        Self { key, label, unit, bounds }
    }

    /// The resource with the smallest bound.
    pub fn smallest(&self) -> (&'static str, f64) {
        let least = self.bounds.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        *least.expect("every rate has bounds")
    }
}

/// One derived figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// Key, which ends in the unit.
    pub key: &'static str,
    /// Value; `None` where there is no such number.
    pub value: Option<f64>,
    /// What it is, for people.
    pub label: &'static str,
    /// The value, for people.
    pub text: String,
    /// How it follows from the keys.
    pub how: String,
}

/// Everything that follows from a preset.
#[derive(Clone, Debug)]
pub struct Derived {
    /// Sizes, write amplification, life.
    pub facts: Vec<Fact>,
    /// Rates by resource.
    pub rates: Vec<Rates>,
}

/// The numbers that formulas share.
struct Numbers<'a> {
    cfg: &'a DeviceConfig,
    ftl: FtlConfig,
    timing: Timing,
    layout: Layout,
    unit: f64,
    n_dies: f64,
    block: f64,
    program_unit: f64,
    raw: f64,
    exported: f64,
    op: f64,
}

impl Derived {
    /// Derives what follows from `cfg`, which must make a drive.
    pub fn of(cfg: &DeviceConfig) -> Result<Self, PresetError> {
        let ftl = cfg.check()?;
        let layout = ftl.layout();
        let unit = f64::from(ftl.geo.unit_bytes);
        let n_dies = f64::from(ftl.geo.n_dies());
        let block = f64::from(layout.units_per_block) * unit;
        let n = Numbers {
            cfg,
            timing: cfg.timing()?,
            unit,
            n_dies,
            block,
            program_unit: f64::from(layout.units_per_pu) * unit,
            raw: block * n_dies * f64::from(ftl.geo.n_blocks_per_plane),
            exported: f64::from(ftl.n_logical) * unit,
            op: ftl.over_provisioning(),
            layout,
            ftl,
        };
        let mut facts = n.space();
        facts.extend(n.pieces());
        facts.extend(n.amplification_and_life());
        facts.extend(n.latencies());
        let rates =
            vec![n.sequential_read(), n.sequential_write(), n.random_read(), n.random_write()];
        Ok(Self { facts, rates })
    }

    /// The value of a fact.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.facts.iter().find(|f| f.key == key)?.value
    }

    /// Facts and rates as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let facts = self.facts.iter().map(|f| (f.label, f.text.clone(), f.how.clone()));
        let rates = self.rates.iter().map(|r| {
            let (name, least) = r.smallest();
            let all = r.bounds.iter().map(|(n, v)| format!("{n} {v:.0}"));
            let how = format!("bounded by {name}: {}", all.collect::<Vec<_>>().join(", "));
            (r.label, format!("{least:.0} {}", r.unit), how)
        });
        let all: Vec<_> = facts.chain(rates).collect();
        let width =
            |of: fn(&(&str, String, String)) -> usize| all.iter().map(of).max().unwrap_or(0);
        let (first, second) = (width(|l| l.0.len()), width(|l| l.1.len()));
        let line = |(a, b, c): &(&str, String, String)| format!("  {a:first$}  {b:>second$}  {c}");
        all.iter().map(|l| line(l).trim_end().to_owned()).collect()
    }
}

fn fact(
    key: &'static str,
    value: f64,
    label: &'static str,
    text: String,
    how: impl Into<String>,
) -> Fact {
    let value = value.is_finite().then_some(value);
    Fact { key, value, label, text, how: how.into() }
}

fn bytes(key: &'static str, value: f64, label: &'static str, how: impl Into<String>) -> Fact {
    fact(key, value, label, binary(value), how)
}

impl Numbers<'_> {
    fn space(&self) -> Vec<Fact> {
        let g = &self.cfg.geometry;
        let n_reserve = self.ftl.reserve_blocks();
        let reserve = f64::from(n_reserve) * self.block * self.n_dies;
        let spare = self.raw - reserve - self.exported;
        let shape = format!(
            "{} channels x {} dies x {} planes x {} blocks x {} pages x {} KiB",
            g.channels,
            g.dies_per_channel,
            g.planes,
            g.blocks_per_plane,
            g.pages_per_block,
            g.page_kib
        );
        let n_units = self.ftl.n_logical;
        let units = format!("{}; {n_units} units of {}", decimal(self.exported), binary(self.unit));
        let reserved = format!(
            "{n_reserve} blocks per die: handles + 2 + gc_low_blocks, open or kept free for collection"
        );
        let with_reserve = (self.raw / self.exported - 1.0) * 100.0;
        let op = fact(
            "over_provisioning",
            self.op,
            "over-provisioning",
            format!("{:.2} %", self.op * 100.0),
            format!("spare by exported; with the reserve {with_reserve:.2} %"),
        );
        vec![
            bytes("exported_bytes", self.exported, "exported", units),
            bytes("raw_bytes", self.raw, "raw", shape),
            bytes("reserve_bytes", reserve, "reserve", reserved),
            bytes("spare_bytes", spare, "spare", "raw - reserve - exported"),
            op,
        ]
    }

    fn pieces(&self) -> Vec<Fact> {
        let (pu, n) = (self.program_unit, self.n_dies);
        let buffer = self.cfg.buffer.kib * 1024.0;
        let buffered = format!("{} program units per die", short(buffer / pu / n));
        let tables = table_bytes(&self.ftl);
        let per_unit = tables / f64::from(self.ftl.n_logical);
        let memory = format!("{per_unit:.2} bytes per exported unit; what simulating it takes");
        let die = format!("of {}", binary(self.raw / n));
        vec![
            fact("dies", n, "dies", short(n), die),
            bytes("program_unit_bytes", pu, "program unit", "what one die programs at once"),
            bytes("stripe_bytes", pu * n, "stripe", "a program unit on every die"),
            bytes("block_bytes", self.block, "block", "what one die erases at once, all planes"),
            bytes("superblock_bytes", self.block * n, "superblock", "a block on every die"),
            bytes("buffer_bytes", buffer, "write buffer", buffered),
            bytes("table_bytes", tables, "tables in memory", memory),
        ]
    }

    /// Places that hold data, live or stale, for each exported unit at steady state: all
    /// but the free blocks (the low mark or one less) and half of the open ones.
    fn places_per_unit(&self) -> f64 {
        let open = f64::from(self.ftl.n_handles) + 2.0;
        let blank = f64::from(self.ftl.gc_low_blocks) - 0.5 + open / 2.0;
        (self.raw - blank * self.n_dies * self.block) / self.exported
    }

    /// Write amplification of random 4 KiB overwrites of the whole drive at steady state.
    fn random_waf(&self) -> f64 {
        greedy_waf(self.places_per_unit()) * (self.unit / 4096.0).max(1.0)
    }

    fn amplification_and_life(&self) -> Vec<Fact> {
        let waf = self.random_waf();
        let a = self.places_per_unit();
        let mut how = format!(
            "a / (a + W(-a e^-a)), a = {a:.4} places that hold data per exported unit, greedy \
             collection"
        );
        if self.unit > 4096.0 {
            how += &format!(
                ", x {} as 4 KiB rewrite a unit of {}",
                self.unit / 4096.0,
                binary(self.unit)
            );
        }
        if self.cfg.ftl.victim != "greedy" {
            how += &format!("; {} differs", self.cfg.ftl.victim);
        }
        let endurance = self.cfg.flash.endurance as f64;
        let total = endurance * self.raw;
        let life = |key, waf: f64, label, how: String| {
            let written = total / waf;
            let how = format!("{how}; {} drive writes", short(written / self.exported));
            fact(key, written / 1e12, label, decimal(written), how)
        };
        let at_waf = format!("by the write amplification of {waf:.2}");
        vec![
            fact(
                "random_4k_waf",
                waf,
                "write amplification",
                format!("{waf:.3}"),
                format!("random 4 KiB at steady state: {how}"),
            ),
            life(
                "endurance_tb",
                1.0,
                "host writes in its life",
                format!("raw x {endurance} cycles, WAF 1, even wear"),
            ),
            life("random_endurance_tb", waf, "  random 4 KiB", at_waf),
        ]
    }

    fn latencies(&self) -> Vec<Fact> {
        let fw = &self.cfg.firmware;
        let moved = self.unit.max(4096.0);
        let sense = self.sense_us(moved);
        let (channel, link) = (self.channel_us(moved), 4096.0 / self.cfg.link.mb_s);
        let read = fw.read_4k_us + sense + channel + link;
        let write = fw.write_us + fw.write_4k_us + link;
        let us = |key, v: f64, label, how| fact(key, v, label, format!("{v:.1} us"), how);
        vec![
            us(
                "read_4k_us",
                read,
                "read of 4 KiB, idle drive",
                format!(
                    "firmware {} + sense {} + channel {} + link {}",
                    short(fw.read_4k_us),
                    short(sense),
                    short(channel),
                    short(link)
                ),
            ),
            us(
                "write_4k_us",
                write,
                "write of 4 KiB, idle drive",
                format!("firmware {} + link {}", short(fw.write_us + fw.write_4k_us), short(link)),
            ),
        ]
    }

    /// Mean over a block of a time by page type \[us\].
    fn mean_us(&self, by_type: &[u64; 4], step: usize) -> f64 {
        let n_pages = (self.layout.units_per_block / self.layout.units_per_page) as usize;
        let pages = (0..n_pages).step_by(step.max(1));
        let n = pages.len() as f64;
        let sum: u64 =
            pages.map(|p| by_type[usize::from(self.layout.page(p as u32).ptype) & 3]).sum();
        sum as f64 / n / 1000.0
    }

    /// Mean sense where `bytes` of a page are wanted \[us\].
    fn sense_us(&self, bytes: f64) -> f64 {
        let cell = self.timing.cell(self.mode());
        self.mean_us(if bytes <= 4096.0 { &cell.read_4k_ns } else { &cell.read_ns }, 1)
    }

    fn mode(&self) -> CellMode {
        self.timing.native
    }

    fn channel_us(&self, bytes: f64) -> f64 {
        bytes * self.timing.channel_ps_per_byte as f64 / 1e6
    }

    /// Senses that a die has under way at once, and the pages each brings.
    fn senses(&self) -> (f64, f64) {
        let planes = f64::from(self.ftl.geo.n_planes);
        if self.timing.independent_plane_reads { (planes, 1.0) } else { (1.0, planes) }
    }

    fn sequential_read(&self) -> Rates {
        let (at_once, pages) = self.senses();
        let bytes = pages * f64::from(self.ftl.geo.page_bytes);
        let transfer = if self.timing.cache_read { 0.0 } else { self.channel_us(bytes) };
        let dies = self.n_dies * at_once * bytes / (self.sense_us(bytes.max(4097.0)) + transfer);
        self.rates_mib_s(
            "sequential_read_mib_s",
            "sequential read",
            vec![
                ("dies", dies),
                ("channels", f64::from(self.ftl.geo.n_channels) / self.channel_us(1.0)),
                ("link", self.cfg.link.mb_s),
            ],
        )
    }

    /// Time that programs and erases of a whole block take its die \[us\].
    fn write_block_us(&self) -> f64 {
        let cell = self.timing.cell(self.mode());
        let n_units = self.block / self.program_unit;
        let step = (self.layout.units_per_pu / self.layout.units_per_page) as usize;
        let transfer =
            if self.timing.cache_program { 0.0 } else { self.channel_us(self.program_unit) };
        n_units * (self.mean_us(&cell.program_ns, step) + transfer) + cell.erase_ns as f64 / 1000.0
    }

    fn sequential_write(&self) -> Rates {
        let cell = self.timing.cell(self.mode());
        let step = (self.layout.units_per_pu / self.layout.units_per_page) as usize;
        let held = self.channel_us(self.program_unit) + self.mean_us(&cell.program_ns, step);
        self.rates_mib_s(
            "sequential_write_mib_s",
            "sequential write",
            vec![
                ("dies", self.n_dies * self.block / self.write_block_us()),
                ("channels", f64::from(self.ftl.geo.n_channels) / self.channel_us(1.0)),
                ("link", self.cfg.link.mb_s),
                ("buffer", self.cfg.buffer.kib * 1024.0 / held),
            ],
        )
    }

    /// From bytes per microsecond.
    fn rates_mib_s(
        &self,
        key: &'static str,
        label: &'static str,
        bounds: Vec<(&'static str, f64)>,
    ) -> Rates {
        Rates::of(key, label, "MiB/s", 1e6 / MIB, bounds)
    }

    fn random_read(&self) -> Rates {
        let moved = self.unit.max(4096.0);
        let (at_once, _) = self.senses();
        let transfer = if self.timing.cache_read { 0.0 } else { self.channel_us(moved) };
        let channels = f64::from(self.ftl.geo.n_channels);
        let bounds = vec![
            ("dies", self.n_dies * at_once / (self.sense_us(moved) + transfer)),
            ("channels", channels / self.channel_us(moved)),
            ("link", self.cfg.link.mb_s / 4096.0),
        ];
        self.per_second("random_4k_read_iops", "random 4 KiB read", bounds)
    }

    /// Programs and erases at the write amplification of the steady state; the
    /// senses of collection come on top.
    fn random_write(&self) -> Rates {
        let waf = self.random_waf();
        let per_byte = self.write_block_us() / self.block;
        let moved = (2.0 * waf - 1.0) * 4096.0;
        let channels = f64::from(self.ftl.geo.n_channels);
        let bounds = vec![
            ("dies", self.n_dies / (waf * 4096.0 * per_byte)),
            ("channels", channels / self.channel_us(moved)),
            ("link", self.cfg.link.mb_s / 4096.0),
        ];
        self.per_second("random_4k_write_iops", "random 4 KiB write, steady", bounds)
    }

    /// From operations per microsecond.
    fn per_second(
        &self,
        key: &'static str,
        label: &'static str,
        bounds: Vec<(&'static str, f64)>,
    ) -> Rates {
        Rates::of(key, label, "IOPS", 1e6, bounds)
    }
}

/// Bytes of the mapping tables: 4 bytes for each logical and each physical unit, a
/// bit for each physical one, and 19 bytes for each block. The index of victims is
/// left out (2 bytes for a group of blocks under greedy collection).
fn table_bytes(ftl: &FtlConfig) -> f64 {
    let n_physical = f64::from(ftl.geo.n_blocks()) * f64::from(ftl.layout().units_per_block);
    let n_logical = f64::from(ftl.n_logical) + f64::from(ftl.n_meta());
    4.0 * n_logical + 4.125 * n_physical + 19.0 * f64::from(ftl.geo.n_blocks())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::{Options, PRESETS, Ssd};

    fn derived(name: &str, sets: &[&str]) -> Derived {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        let cfg = DeviceConfig::open(name, &sets).expect("a preset");
        Derived::of(&cfg).expect("a drive")
    }

    fn rate<'a>(d: &'a Derived, key: &str) -> &'a Rates {
        d.rates.iter().find(|r| r.key == key).expect("a rate")
    }

    #[test]
    fn sizes_are_those_of_the_drive_that_is_built() {
        for (name, _) in PRESETS {
            let cfg = DeviceConfig::open(name, &[]).expect("a preset");
            let d = Derived::of(&cfg).expect("a drive");
            let ssd = Ssd::new(cfg, Options::default()).expect("a drive");
            assert_eq!(d.get("exported_bytes"), Some(ssd.capacity_sectors() as f64 * 512.0));
            let raw = ssd.ftl().n_physical() as f64 * f64::from(ssd.ftl().config().geo.unit_bytes);
            assert_eq!(d.get("raw_bytes"), Some(raw));
            let tables = d.get("table_bytes").expect("a size") / ssd.ftl().table_bytes() as f64;
            assert!((0.98..=1.0).contains(&tables), "{name}: {tables}");
            assert!(d.lines().len() > 15);
        }
    }

    #[test]
    fn rates_of_fast24_follow_by_hand() {
        let d = derived("fast24", &[]);
        // Sense (30.013 + 42.013) / 2 us and 32 KiB at 832 MB/s while the die waits.
        let per_die = 32_768.0 / ((30.013 + 42.013) / 2.0 + 32_768.0 * 1.202e-3);
        let dies = 8.0 * per_die * 1e6 / MIB;
        let found = rate(&d, "sequential_read_mib_s");
        assert!((found.bounds[0].1 / dies - 1.0).abs() < 1e-9, "{found:?}, {dies}");
        // 4 x 832 MB/s; the channels are just slower than the dies.
        assert!(found.smallest().0 == "channels" && (found.smallest().1 - 3174.0).abs() < 1.0);
        // Programs alone: 8 dies x 32 KiB / (185 us + transfer).
        let write = 8.0 * 32_768.0 / (185.0 + 32_768.0 * 1.202e-3) * 1e6 / MIB;
        let found = rate(&d, "sequential_write_mib_s").smallest();
        assert!(found.0 == "dies" && (found.1 / write - 1.0).abs() < 1e-9, "{found:?}, {write}");
    }

    #[test]
    fn larger_units_amplify_small_writes() {
        let (small, large) =
            (derived("bench-16g", &[]), derived("bench-16g", &["ftl.unit_kib=16"]));
        let ratio = large.get("random_4k_waf").unwrap() / small.get("random_4k_waf").unwrap();
        assert!((ratio - 4.0).abs() < 0.01, "{ratio}");
        assert!((small.get("random_4k_waf").unwrap() - 2.461).abs() < 0.01);
        let how = &large.facts.iter().find(|f| f.key == "random_4k_waf").unwrap().how;
        assert!(how.contains("x 4 as 4 KiB rewrite a unit of 16 KiB"), "{how}");
    }

    #[test]
    fn free_flash_leaves_bounds_out_instead_of_dividing_by_zero() {
        let zero = [
            "flash.read_us=[0]",
            "flash.read_4k_us=[0]",
            "flash.program_us=[0]",
            "flash.erase_us=0",
        ];
        let d = derived("bench-16g", &zero);
        for r in &d.rates {
            assert!(r.bounds.iter().all(|b| b.1.is_finite()), "{r:?}");
            assert_ne!(r.smallest().0, "dies");
        }
    }
}
