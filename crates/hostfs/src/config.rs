//! What is modelled: the options of the file system, the kernel and the host, with the
//! defaults of ext4 and Linux, read from text such as `ext4,data=journal,commit=1`.
//!
//! Every key is in one table (`KEYS`), with what it takes and how it is set and shown, so
//! that what can be said is also printed.

use std::fmt::Write;

use crate::costs::HostCosts;
use crate::error::ConfigError;

/// What the journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataMode {
    /// Metadata; data goes home before the transaction that needs it commits.
    #[default]
    Ordered,
    /// Metadata and data.
    Journal,
    /// Metadata, and data in any order.
    Writeback,
}

/// Where the journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalPlace {
    /// On the device of the file system.
    #[default]
    Internal,
    /// On a RAM disk of its own.
    External,
    /// There is none.
    None,
}

/// When free space is told to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discard {
    /// Never.
    #[default]
    Off,
    /// When the transaction that freed it commits (`discard`).
    Online,
    /// All of it, every so often \[s\] (`fstrim`).
    Periodic(u32),
}

/// When a read notes its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atime {
    /// The first time after a change, or after a day.
    #[default]
    Relatime,
    /// Never.
    Off,
    /// Always.
    Strict,
}

/// What the file system tells the drive, an axis each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintAxes {
    /// Append and overwrite.
    pub relation: bool,
    /// Journal, metadata, hot, cold.
    pub class: bool,
    /// Placement handles.
    pub handle: bool,
}

/// Extensions of files that stay: the cold list that mkfs.f2fs writes into a file system
/// (f2fs-tools, `mkfs/f2fs_format.c`).
pub const COLD_EXTENSIONS: &str = "jpg:gif:png:avi:divx:mp4:mp3:3gp:wmv:wma:mpeg:mkv:mov:asx:asf:\
                                   wmx:svi:wvx:wm:mpg:mpe:rm:ogg:jpeg:video:apk";

/// Everything that can be said about the host. Sources of defaults: mke2fs 1.47 and mount
/// options of ext4 (`ext4(5)`), Linux `Documentation/admin-guide/sysctl/vm.rst` and
/// `Documentation/block/queue-sysfs.rst`.
#[derive(Clone, Debug, PartialEq)]
pub struct FsConfig {
    /// What the journal holds.
    pub data: DataMode,
    /// Where it is.
    pub journal: JournalPlace,
    /// Its size \[bytes\]; `None` is what mke2fs gives for the device.
    pub journal_bytes: Option<u64>,
    /// Blocks are allocated at write-back. Never with `data=journal`, as in ext4.
    pub delalloc: bool,
    /// Each file keeps free blocks behind its end to itself.
    pub prealloc: bool,
    /// Files of at most this size share the preallocation of their CPU \[blocks\]
    /// (`mb_stream_req`). Source: fs/ext4/mballoc.h, `MB_DEFAULT_STREAM_THRESHOLD`.
    pub stream_blocks: u32,
    /// Oldest a running transaction gets \[s\].
    pub commit_s: u32,
    /// Commits flush the device and force their last block.
    pub barrier: bool,
    /// When reads note their time.
    pub atime: Atime,
    /// When free space is told.
    pub discard: Discard,
    /// Part of the blocks that files of long ago take up, whose making and removing left
    /// holes \[%\]; 0: a new file system.
    pub age_percent: f64,
    /// How often half of those files were replaced.
    pub age_rounds: u32,
    /// mkfs tells the device to forget everything, as mkfs.ext4 does where it can. Off, what
    /// an aged drive holds stays until it is overwritten.
    pub mkfs_discard: bool,
    /// Part of the device the file system is on \[bytes\]; `None`: all of it.
    pub size_bytes: Option<u64>,
    /// Blocks no program may use \[%\] (`mkfs.ext4 -m`).
    pub reserved_percent: f64,
    /// Memory of the host \[bytes\], which the page cache may fill.
    pub memory_bytes: u64,
    /// Dirty pages at which writers have to wait \[bytes\]; `None`: 20 % of memory.
    pub dirty_bytes: Option<u64>,
    /// Dirty pages at which write-back starts \[bytes\]; `None`: half of that.
    pub background_bytes: Option<u64>,
    /// Age at which dirty pages are written back \[ms\].
    pub expire_ms: u64,
    /// How often the flusher looks \[ms\]; 0: never.
    pub writeback_ms: u64,
    /// Longest read-ahead \[bytes\]; 0: none.
    pub readahead_bytes: u64,
    /// Pages that were read stay in memory.
    pub read_cache: bool,
    /// Largest request \[bytes\].
    pub request_bytes: u32,
    /// Most pieces of memory in a request (`max_segments`); drives have about 128.
    pub segments: u32,
    /// Requests a plug holds back.
    pub plug_requests: u32,
    /// Size of a request that ends a plug \[bytes\].
    pub plug_bytes: u32,
    /// Requests at the device at once (`nr_requests`).
    pub nr_requests: u32,
    /// Cores that threads share; 0: each has its own.
    pub cores: u32,
    /// CPU times.
    pub costs: HostCosts,
    /// What the drive is told.
    pub hints: HintAxes,
    /// Extensions of cold files, with `:` between.
    pub cold: String,
}

impl Default for FsConfig {
    fn default() -> Self {
        Self {
            data: DataMode::Ordered,
            journal: JournalPlace::Internal,
            journal_bytes: None,
            delalloc: true,
            prealloc: true,
            stream_blocks: 16,
            commit_s: 5,
            barrier: true,
            atime: Atime::Relatime,
            discard: Discard::Off,
            age_percent: 0.0,
            age_rounds: 4,
            mkfs_discard: false,
            size_bytes: None,
            reserved_percent: 0.0,
            memory_bytes: 8 << 30,
            dirty_bytes: None,
            background_bytes: None,
            expire_ms: 30_000,
            writeback_ms: 5_000,
            readahead_bytes: 128 << 10,
            read_cache: true,
            request_bytes: 1 << 20,
            segments: 128,
            plug_requests: 16,
            plug_bytes: 128 << 10,
            nr_requests: 1023,
            cores: 8,
            costs: HostCosts::DEFAULT,
            hints: HintAxes { relation: true, class: true, handle: true },
            cold: COLD_EXTENSIONS.to_owned(),
        }
    }
}

/// What a value should have been, in words.
type Expected = &'static str;

/// One key: name, what it takes, setter, and how it is shown.
struct Key {
    name: &'static str,
    expected: Expected,
    set: fn(&mut FsConfig, &str) -> Option<()>,
    show: fn(&FsConfig) -> String,
}

macro_rules! key {
    ($name:literal, $expected:expr, $set:expr, $show:expr) => {
        Key { name: $name, expected: $expected, set: $set, show: $show }
    };
}

const SWITCH: Expected = "on or off";
const AUTO_SIZE: Expected = "auto, or a size such as 64m, in whole blocks of 4k";
const SIZE: Expected = "a size such as 64m, in whole blocks of 4k";

/// All keys. Long, but each line says one thing, and what is not here cannot be said.
const KEYS: &[Key] = &[
    key!(
        "data",
        "ordered, journal or writeback",
        |c, v| {
            c.data = match v {
                "ordered" => DataMode::Ordered,
                "journal" => DataMode::Journal,
                "writeback" => DataMode::Writeback,
                _ => return None,
            };
            Some(())
        },
        |c| match c.data {
            DataMode::Ordered => "ordered".into(),
            DataMode::Journal => "journal".into(),
            DataMode::Writeback => "writeback".into(),
        }
    ),
    key!(
        "journal",
        "internal, external or none",
        |c, v| {
            c.journal = match v {
                "internal" => JournalPlace::Internal,
                "external" => JournalPlace::External,
                "none" => JournalPlace::None,
                _ => return None,
            };
            Some(())
        },
        |c| match c.journal {
            JournalPlace::Internal => "internal".into(),
            JournalPlace::External => "external".into(),
            JournalPlace::None => "none".into(),
        }
    ),
    key!(
        "journal_size",
        "auto, or a size from 4m to 16g in whole MiB",
        |c, v| {
            c.journal_bytes = match v {
                "auto" => None,
                _ => Some(
                    size(v).filter(|b| (4 << 20..=16 << 30).contains(b) && b % (1 << 20) == 0)?,
                ),
            };
            Some(())
        },
        |c| optional(c.journal_bytes)
    ),
    key!("delalloc", SWITCH, |c, v| switch(&mut c.delalloc, v), |c| on_off(c.delalloc)),
    key!("prealloc", SWITCH, |c, v| switch(&mut c.prealloc, v), |c| on_off(c.prealloc)),
    key!(
        "stream_blocks",
        "a number of blocks below 2^32",
        |c, v| number(&mut c.stream_blocks, v, 0, u32::MAX),
        |c| c.stream_blocks.to_string()
    ),
    key!(
        "commit",
        "whole seconds from 1 to 900",
        |c, v| seconds(&mut c.commit_s, v, 1, 900),
        |c| format!("{}s", c.commit_s)
    ),
    key!("barrier", SWITCH, |c, v| switch(&mut c.barrier, v), |c| on_off(c.barrier)),
    key!(
        "atime",
        "relatime, off or strict",
        |c, v| {
            c.atime = match v {
                "relatime" => Atime::Relatime,
                "off" => Atime::Off,
                "strict" => Atime::Strict,
                _ => return None,
            };
            Some(())
        },
        |c| match c.atime {
            Atime::Relatime => "relatime".into(),
            Atime::Off => "off".into(),
            Atime::Strict => "strict".into(),
        }
    ),
    key!(
        "discard",
        "off, online, or seconds between trims such as 60s",
        |c, v| {
            c.discard = match v {
                "off" => Discard::Off,
                "online" => Discard::Online,
                _ => {
                    let mut s = 0;
                    seconds(&mut s, v, 1, 86_400 * 31)?;
                    Discard::Periodic(s)
                }
            };
            Some(())
        },
        |c| match c.discard {
            Discard::Off => "off".into(),
            Discard::Online => "online".into(),
            Discard::Periodic(s) => format!("{s}s"),
        }
    ),
    key!(
        "age",
        "a percentage from 0 to 95",
        |c, v| {
            let percent: f64 = v.strip_suffix('%').unwrap_or(v).parse().ok()?;
            c.age_percent = Some(percent).filter(|p| (0.0..=95.0).contains(p))?;
            Some(())
        },
        |c| format!("{}%", c.age_percent)
    ),
    key!(
        "age_rounds",
        "a number from 0 to 100",
        |c, v| number(&mut c.age_rounds, v, 0, 100),
        |c| c.age_rounds.to_string()
    ),
    key!("mkfs_discard", SWITCH, |c, v| switch(&mut c.mkfs_discard, v), |c| on_off(c.mkfs_discard)),
    key!(
        "size",
        "auto, or a size of at least 8m in whole blocks of 4k",
        |c, v| {
            c.size_bytes = match v {
                "auto" => None,
                _ => Some(size(v).filter(|b| *b >= 8 << 20 && b % 4096 == 0)?),
            };
            Some(())
        },
        |c| optional(c.size_bytes)
    ),
    key!(
        "reserved",
        "a percentage from 0 to 50",
        |c, v| {
            let percent: f64 = v.strip_suffix('%').unwrap_or(v).parse().ok()?;
            c.reserved_percent = Some(percent).filter(|p| (0.0..=50.0).contains(p))?;
            Some(())
        },
        |c| format!("{}%", c.reserved_percent)
    ),
    key!("memory", SIZE, |c, v| blocks(&mut c.memory_bytes, v, 4 << 20), |c| show(c.memory_bytes)),
    key!("dirty", AUTO_SIZE, |c, v| some_blocks(&mut c.dirty_bytes, v), |c| optional(
        c.dirty_bytes
    )),
    key!("background", AUTO_SIZE, |c, v| some_blocks(&mut c.background_bytes, v), |c| optional(
        c.background_bytes
    )),
    key!(
        "expire",
        "seconds such as 30s, or milliseconds such as 500ms, up to a day",
        |c, v| millis(&mut c.expire_ms, v),
        |c| show_ms(c.expire_ms)
    ),
    key!(
        "flusher",
        "seconds such as 5s, milliseconds such as 500ms, or 0 for never",
        |c, v| millis(&mut c.writeback_ms, v),
        |c| show_ms(c.writeback_ms)
    ),
    key!(
        "readahead",
        "a size in whole blocks of 4k up to 64m, or 0",
        |c, v| {
            c.readahead_bytes = size(v).filter(|b| b % 4096 == 0 && *b <= 64 << 20)?;
            Some(())
        },
        |c| show(c.readahead_bytes)
    ),
    key!("read_cache", SWITCH, |c, v| switch(&mut c.read_cache, v), |c| on_off(c.read_cache)),
    key!(
        "request",
        "a size from 4k to 4m in whole blocks of 4k",
        |c, v| request_bytes(&mut c.request_bytes, v),
        |c| show(u64::from(c.request_bytes))
    ),
    key!(
        "segments",
        "a number from 1 to 65535",
        |c, v| number(&mut c.segments, v, 1, 65_535),
        |c| c.segments.to_string()
    ),
    key!(
        "plug",
        "a number of requests from 1 to 1024",
        |c, v| number(&mut c.plug_requests, v, 1, 1024),
        |c| c.plug_requests.to_string()
    ),
    key!(
        "plug_size",
        "a size from 4k to 4m in whole blocks of 4k",
        |c, v| request_bytes(&mut c.plug_bytes, v),
        |c| show(u64::from(c.plug_bytes))
    ),
    key!(
        "nr_requests",
        "a number from 1 to 65535",
        |c, v| number(&mut c.nr_requests, v, 1, 65_535),
        |c| c.nr_requests.to_string()
    ),
    key!(
        "cores",
        "a number from 1 to 1024, or 0 for one per thread",
        |c, v| number(&mut c.cores, v, 0, 1024),
        |c| c.cores.to_string()
    ),
    key!(
        "costs",
        "default, fast24 or none",
        |c, v| {
            c.costs = HostCosts::ALL.iter().find(|(name, _)| *name == v)?.1;
            Some(())
        },
        |c| {
            let named = HostCosts::ALL.iter().find(|(_, costs)| *costs == c.costs);
            named.map_or("custom", |(name, _)| name).to_owned()
        }
    ),
    key!("hint_relation", SWITCH, |c, v| switch(&mut c.hints.relation, v), |c| on_off(
        c.hints.relation
    )),
    key!("hint_class", SWITCH, |c, v| switch(&mut c.hints.class, v), |c| on_off(c.hints.class)),
    key!("hint_handle", SWITCH, |c, v| switch(&mut c.hints.handle, v), |c| on_off(c.hints.handle)),
    key!(
        "cold",
        "extensions with a colon between, such as mp4:jpg, or none",
        |c, v| {
            let valid = v.split(':').all(|e| !e.is_empty() && !e.contains(['/', '.', '=']));
            c.cold = match v {
                "none" => String::new(),
                _ if valid => v.to_ascii_lowercase(),
                _ => return None,
            };
            Some(())
        },
        |c| if c.cold.is_empty() { "none".to_owned() } else { c.cold.clone() }
    ),
];

/// Mount options that say the same as a key and its value. Source: `ext4(5)`.
const SHORT: [(&str, &str, &str); 8] = [
    ("nodelalloc", "delalloc", "off"),
    ("delalloc", "delalloc", "on"),
    ("noatime", "atime", "off"),
    ("relatime", "atime", "relatime"),
    ("strictatime", "atime", "strict"),
    ("nobarrier", "barrier", "off"),
    ("discard", "discard", "online"),
    ("nodiscard", "discard", "off"),
];

impl FsConfig {
    /// Reads `ext4` and options after commas, as key=value or in the short form of mount.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut parts = text.split(',').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        if kind != "ext4" {
            return Err(ConfigError::Kind { found: kind.to_owned() });
        }
        let mut config = Self::default();
        let mut given: Vec<&str> = vec![];
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim(), value.trim()),
                None => SHORT.iter().find(|s| s.0 == part).map_or((part, ""), |s| (s.1, s.2)),
            };
            let name = name.replace('-', "_");
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                return Err(ConfigError::unknown(&name, KEYS.iter().map(|key| key.name)));
            };
            if given.contains(&key.name) {
                return Err(ConfigError::Twice { key: key.name });
            }
            given.push(key.name);
            if (key.set)(&mut config, value).is_none() {
                let (found, expected) = (value.to_owned(), key.expected);
                return Err(ConfigError::Value { key: key.name, found, expected });
            }
        }
        config.check()?;
        Ok(config)
    }

    /// Choices that exclude each other.
    fn check(&self) -> Result<(), ConfigError> {
        let pairs = [
            (
                self.journal == JournalPlace::None && self.data != DataMode::Ordered,
                "data=journal and data=writeback need a journal; leave journal=none out",
            ),
            (
                self.journal == JournalPlace::None && self.journal_bytes.is_some(),
                "journal_size needs a journal; leave journal=none out",
            ),
            (
                self.background_limit() > self.dirty_limit(),
                "background must not be above dirty, or writers would wait for nothing",
            ),
        ];
        match pairs.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, why)) => Err(ConfigError::Together { why }),
            None => Ok(()),
        }
    }

    /// Dirty pages at which writers wait \[bytes\]. Source: `vm.dirty_ratio` = 20 %.
    pub fn dirty_limit(&self) -> u64 {
        self.dirty_bytes.unwrap_or(self.memory_bytes / 5)
    }

    /// Dirty pages at which write-back starts \[bytes\]. Source:
    /// `vm.dirty_background_ratio` = 10 %, half of `vm.dirty_ratio`.
    pub fn background_limit(&self) -> u64 {
        self.background_bytes.unwrap_or(self.dirty_limit() / 2)
    }

    /// Whether blocks are allocated at write-back, `data=journal` considered.
    pub fn delays_allocation(&self) -> bool {
        self.delalloc && self.data != DataMode::Journal
    }

    /// Every key with its value, and whether that is the default.
    pub fn choices(&self) -> Vec<(&'static str, String, bool)> {
        let default = Self::default();
        KEYS.iter()
            .map(|key| {
                let value = (key.show)(self);
                let is_default = value == (key.show)(&default);
                (key.name, value, is_default)
            })
            .collect()
    }

    /// In one line: what differs from the defaults, and always mode, journal and discard.
    pub fn summary(&self) -> String {
        let mut text = "ext4".to_owned();
        for (name, value, is_default) in self.choices() {
            if !is_default || matches!(name, "data" | "journal" | "discard" | "mkfs_discard") {
                let _ = write!(text, ",{name}={value}");
            }
        }
        text
    }

    /// What each key takes.
    pub fn keys() -> impl Iterator<Item = (&'static str, &'static str)> {
        KEYS.iter().map(|key| (key.name, key.expected))
    }
}

fn switch(slot: &mut bool, text: &str) -> Option<()> {
    *slot = match text {
        "on" => true,
        "off" => false,
        _ => return None,
    };
    Some(())
}

fn number(slot: &mut u32, text: &str, min: u32, max: u32) -> Option<()> {
    *slot = text.parse().ok().filter(|n| (min..=max).contains(n))?;
    Some(())
}

fn seconds(slot: &mut u32, text: &str, min: u32, max: u32) -> Option<()> {
    number(slot, text.strip_suffix('s').unwrap_or(text), min, max)
}

/// Milliseconds, at most a day.
fn millis(slot: &mut u64, text: &str) -> Option<()> {
    let ms: u64 = match text.strip_suffix("ms") {
        Some(ms) => ms.parse().ok()?,
        None => {
            let s: u64 = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
            s.checked_mul(1000)?
        }
    };
    *slot = Some(ms).filter(|ms| *ms <= 86_400_000)?;
    Some(())
}

/// A number with an optional suffix k, m, g or t (1024) \[bytes\].
fn size(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match &text[end..] {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn blocks(slot: &mut u64, text: &str, min: u64) -> Option<()> {
    *slot = size(text).filter(|b| *b >= min && b % 4096 == 0)?;
    Some(())
}

fn some_blocks(slot: &mut Option<u64>, text: &str) -> Option<()> {
    *slot = match text {
        "auto" => None,
        _ => Some(size(text).filter(|b| *b >= 4096 && b % 4096 == 0)?),
    };
    Some(())
}

fn request_bytes(slot: &mut u32, text: &str) -> Option<()> {
    let bytes = size(text).filter(|b| (4096..=4 << 20).contains(b) && b % 4096 == 0)?;
    *slot = bytes as u32;
    Some(())
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn optional(bytes: Option<u64>) -> String {
    bytes.map_or("auto".to_owned(), show)
}

/// Bytes in the largest unit that divides them.
fn show(bytes: u64) -> String {
    let units = [(40, "t"), (30, "g"), (20, "m"), (10, "k")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or(bytes.to_string(), |(shift, name)| format!("{}{name}", bytes >> shift))
}

fn show_ms(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_again() {
        let text = "ext4,data=journal,journal_size=64m,nodelalloc,discard=60s,expire=1500ms,\
                    memory=2g,dirty=300m,reserved=2.5,cold=mp4:txt,costs=none,hint_class=off";
        let config = FsConfig::parse(text).expect("valid");
        let again: Vec<String> =
            config.choices().iter().map(|(k, v, _)| format!("{k}={v}")).collect();
        assert_eq!(FsConfig::parse(&format!("ext4,{}", again.join(","))), Ok(config.clone()));
        assert_eq!((config.journal_bytes, config.expire_ms), (Some(64 << 20), 1500));
        assert!(!config.delays_allocation() && FsConfig::default().delays_allocation());
        assert_eq!(
            FsConfig::default().summary(),
            "ext4,data=ordered,journal=internal,discard=off,mkfs_discard=off"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text: &str| FsConfig::parse(text).expect_err(text).to_string();
        assert!(message("xfs").contains("«xfs»"));
        assert!(message("ext4,data=jurnal").contains("data=jurnal: expected ordered, journal"));
        assert!(message("ext4,comit=5").contains("did you mean «commit»?"));
        assert!(message("ext4,commit=5,commit=6").contains("commit is given twice"));
        assert!(message("ext4,journal=none,data=journal").contains("need a journal"));
        assert!(message("ext4,dirty=1m,background=2m").contains("background"));
        for text in [
            "commit=0",
            "memory=1",
            "journal_size=1m",
            "nr_requests=0",
            "cold=a/b",
            "size=5000",
            "expire=99999999999999999999s",
            "memory=99999999999g",
            "reserved=-1",
        ] {
            assert!(message(&format!("ext4,{text}")).contains("expected"), "{text}");
        }
        assert!(message("").contains("ext4"));
    }
}
