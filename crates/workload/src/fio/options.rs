//! What the keys of one section say, before a drive is known.
//!
//! Invariants: later keys override earlier ones and the section overrides [global], as in
//! fio; each key remembers the line that set it. What fio does not make depend on the
//! order (bssplit over bsrange over bs) does not depend on it here.

use std::collections::BTreeMap;

use super::Amount;
use super::keys::{self, Fate};
use super::lines::{Place, Section, Setting};
use super::value::{self, Expected, KbBase, RandomDistribution};
use crate::{Direction, Mix, Rate, WorkloadError, names};

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// The modes of `rw`.
pub(crate) const MODES: [(&str, Option<Mix>, bool); 11] = [
    ("read", Some(Mix::Only(Direction::Read)), true),
    ("write", Some(Mix::Only(Direction::Write)), true),
    ("trim", Some(Mix::Only(Direction::Trim)), true),
    ("randread", Some(Mix::Only(Direction::Read)), false),
    ("randwrite", Some(Mix::Only(Direction::Write)), false),
    ("randtrim", Some(Mix::Only(Direction::Trim)), false),
    // Mixed: the share of reads is another key.
    ("rw", None, true),
    ("readwrite", None, true),
    ("randrw", None, false),
    ("trimwrite", Some(Mix::TrimWrite), true),
    ("randtrimwrite", Some(Mix::TrimWrite), false),
];

/// Names of `write_hint` with the handle they stand for. Source: how Linux mapped
/// lifetimes to NVMe streams (nvme_assign_write_stream in drivers/nvme/host/core.c,
/// 4.13 to 5.17): none is no stream, and the others follow from 1.
pub(crate) const WRITE_HINTS: [(&str, u16); 5] =
    [("none", 0), ("short", 1), ("medium", 2), ("long", 3), ("extreme", 4)];

/// Engines that do no block I/O on one region.
const OTHER_ENGINES: [&str; 18] = [
    "cpuio",
    "exec",
    "net",
    "netsplice",
    "rdma",
    "dircreate",
    "dirdelete",
    "dirstat",
    "filecreate",
    "filedelete",
    "filestat",
    "ftruncate",
    "falloc",
    "e4defrag",
    "http",
    "nbd",
    "dev-dax",
    "external",
];

/// Engines that have one request in flight.
const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "sg"];

/// Pattern named by `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rw {
    /// `None`: reads and writes, mixed by rwmixread.
    pub(crate) mix: Option<Mix>,
    pub(crate) sequential: bool,
    /// Number behind the colon: requests per new place, or bytes left out.
    pub(crate) suffix: u64,
}

/// How placement identifiers are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Placement {
    #[default]
    None,
    Fdp,
    Streams,
}

/// All keys of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) places: BTreeMap<&'static str, Place>,
    pub(crate) kb_base: KbBase,
    pub(crate) name: Option<String>,
    pub(crate) rw: Option<Rw>,
    pub(crate) identical: bool,
    pub(crate) bs: [Option<u32>; 3],
    pub(crate) bsrange: [Option<(u32, u32)>; 3],
    pub(crate) bssplit: [Option<Vec<(u32, u32)>>; 3],
    pub(crate) ba: [Option<u32>; 3],
    pub(crate) size: Option<Amount>,
    pub(crate) io_size: Option<Amount>,
    pub(crate) offset: Option<Amount>,
    pub(crate) offset_increment: Option<Amount>,
    pub(crate) loops: Option<u64>,
    pub(crate) number_ios: Option<u64>,
    pub(crate) iodepth: Option<u32>,
    pub(crate) numjobs: Option<u32>,
    pub(crate) mix_read: Option<u32>,
    pub(crate) distribution: Option<RandomDistribution>,
    pub(crate) random_percent: [Option<u32>; 3],
    pub(crate) norandommap: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) thinktime_ns: u64,
    pub(crate) thinktime_blocks: Option<u64>,
    pub(crate) think_by_issue: bool,
    pub(crate) rate: [Option<Rate>; 3],
    pub(crate) rate_iops: [Option<Rate>; 3],
    pub(crate) poisson: bool,
    pub(crate) runtime_ns: u64,
    pub(crate) time_based: bool,
    pub(crate) ramp_ns: u64,
    pub(crate) start_delay_ns: (u64, u64),
    pub(crate) stonewall: bool,
    pub(crate) exit_all: bool,
    pub(crate) fsync: Option<u64>,
    pub(crate) fdatasync: Option<u64>,
    pub(crate) flush_at_end: bool,
    pub(crate) fua: bool,
    pub(crate) write_hint: u16,
    pub(crate) placement: Placement,
    pub(crate) plids: Vec<u16>,
    pub(crate) random_plids: bool,
    pub(crate) group_reporting: bool,
    pub(crate) synchronous: Option<String>,
    pub(crate) filename: Option<String>,
}

impl Options {
    /// These options, changed by the keys of a section. Notices are added to the list,
    /// one for each key without effect.
    pub(crate) fn with(
        &self,
        section: &Section,
        notices: &mut Vec<String>,
    ) -> Result<Self, WorkloadError> {
        let mut options = self.clone();
        // fio reads kb_base first: it changes the meaning of the other keys.
        let (first, rest): (Vec<&Setting>, Vec<&Setting>) =
            section.settings.iter().partition(|setting| setting.key == "kb_base");
        for setting in first.into_iter().chain(rest) {
            options.take(setting, notices)?;
        }
        Ok(options)
    }

    fn take(&mut self, setting: &Setting, notices: &mut Vec<String>) -> Result<(), WorkloadError> {
        let Setting { place, key, value } = setting;
        let found = format!("«{}»", names::excerpt(value.as_bytes()));
        match keys::look_up(key) {
            None => Err(unknown(place, key)),
            Some((name, Fate::Refused(why))) => {
                let found = format!("`{name}`, which is not supported ({why})");
                let expected = "a job without it";
                Err(place.key_error(key, &found, expected, "remove the key or change the job"))
            }
            Some((name, Fate::NoEffect(why))) => {
                if name == "filename" {
                    self.filename = Some(value.clone());
                }
                notices.push(format!("line {}: `{key}` has no effect here: {why}", place.line));
                Ok(())
            }
            Some((name, Fate::Used)) => {
                let applied = self.apply(name, value).and_then(|known| match known {
                    true => Ok(()),
                    false => self.apply_timing(name, value),
                });
                applied.map_err(|expected| {
                    place.key_error(key, &found, expected, "correct the value")
                })?;
                self.places.insert(name, place.clone());
                if name == "ioengine" {
                    let line = place.line;
                    notices.push(format!(
                        "line {line}: `{key}` has no effect here: the host is a queue and a gap \
                         between requests"
                    ));
                }
                Ok(())
            }
        }
    }

    /// The keys of the pattern; whether it is one of them.
    fn apply(&mut self, key: &str, text: &str) -> Result<bool, Expected> {
        let base = self.kb_base;
        let block = |text: &str| value::block(text, base);
        let amount = |text: &str| value::amount(text, base).map(Some);
        match key {
            "rw" => self.rw = Some(rw(text, base)?),
            "rw_sequencer" => {
                self.identical = choose(text, &[("sequential", false), ("identical", true)])?;
            }
            "bs" => self.bs = value::by_direction(text, block)?,
            "bsrange" => {
                self.bsrange = value::by_direction(text, |text| value::block_range(text, base))?;
            }
            "bssplit" => {
                self.bssplit = value::by_direction(text, |text| value::split(text, block))?;
            }
            "ba" => self.ba = value::by_direction(text, block)?,
            "size" => self.size = amount(text)?,
            "io_size" => self.io_size = amount(text)?,
            "offset" => self.offset = amount(text)?,
            "offset_increment" => self.offset_increment = amount(text)?,
            "loops" => self.loops = Some(value::bounded(text, 1, u64::MAX)?),
            "number_ios" => self.number_ios = Some(value::bounded(text, 1, u64::MAX)?),
            "rwmixread" => self.mix_read = Some(value::bounded(text, 0, 100)? as u32),
            "rwmixwrite" => self.mix_read = Some(100 - value::bounded(text, 0, 100)? as u32),
            "random_distribution" => self.distribution = Some(value::distribution(text, base)?),
            "percentage_random" => {
                let percent = |text: &str| value::bounded(text, 0, 100).map(|n| n as u32);
                self.random_percent = value::by_direction(text, percent)?;
            }
            "norandommap" => self.norandommap = value::switch(text)?,
            "randseed" => self.seed = Some(value::integer(text, base)?),
            "kb_base" => {
                self.kb_base =
                    choose(text, &[("1024", KbBase::Binary), ("1000", KbBase::Decimal)])?;
            }
            "write_hint" => self.write_hint = choose(text, &WRITE_HINTS)?,
            "fdp" => {
                self.placement =
                    if value::switch(text)? { Placement::Fdp } else { Placement::None };
            }
            "dataplacement" => {
                let known = [
                    ("none", Placement::None),
                    ("fdp", Placement::Fdp),
                    ("streams", Placement::Streams),
                ];
                self.placement = choose(text, &known)?;
            }
            "plids" => self.plids = value::numbers(text)?,
            "plid_select" => {
                // `scheme` names a file of address ranges, which is not supported.
                self.random_plids = choose(text, &[("roundrobin", false), ("random", true)])?;
            }
            "sync" => {
                let known =
                    [("none", false), ("0", false), ("sync", true), ("1", true), ("dsync", true)];
                self.fua = choose(text, &known)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The keys about time, flushes and reports.
    fn apply_timing(&mut self, key: &str, text: &str) -> Result<(), Expected> {
        let base = self.kb_base;
        match key {
            // Source: the most commands an NVMe queue of the largest size holds (CAP.MQES).
            "iodepth" => self.iodepth = Some(value::bounded(text, 1, 65_535)? as u32),
            // Source: fio's REAL_MAX_JOBS.
            "numjobs" => self.numjobs = Some(value::bounded(text, 1, 4096)? as u32),
            "thinktime" => self.thinktime_ns = value::time(text, MICROSECOND_NS)?,
            "thinktime_blocks" => {
                self.thinktime_blocks = Some(value::bounded(text, 1, u64::MAX)?);
            }
            "thinktime_blocks_type" => {
                self.think_by_issue = choose(text, &[("complete", false), ("issue", true)])?;
            }
            "rate" => {
                let rate = |text: &str| value::integer(text, base).map(Rate::Bytes);
                self.rate = value::by_direction(text, rate)?;
            }
            "rate_iops" => {
                let rate = |text: &str| value::integer(text, base).map(Rate::Requests);
                self.rate_iops = value::by_direction(text, rate)?;
            }
            "rate_process" => self.poisson = choose(text, &[("linear", false), ("poisson", true)])?,
            "runtime" => self.runtime_ns = value::time(text, SECOND_NS)?,
            "time_based" => self.time_based = value::switch(text)?,
            "ramp_time" => self.ramp_ns = value::time(text, SECOND_NS)?,
            "startdelay" => self.start_delay_ns = value::times(text, SECOND_NS)?,
            "stonewall" => self.stonewall = value::switch(text)?,
            "exitall" => self.exit_all = value::switch(text)?,
            "exit_what" => choose(text, &[("all", ())])?,
            "fsync" => self.fsync = rhythm(text)?,
            "fdatasync" => self.fdatasync = rhythm(text)?,
            "end_fsync" | "fsync_on_close" => self.flush_at_end = value::switch(text)?,
            "group_reporting" => self.group_reporting = value::switch(text)?,
            "nrfiles" => choose(text, &[("1", ())])?,
            "zonemode" => choose(text, &[("none", ())])?,
            "ioengine" => self.take_engine(text)?,
            _ => {
                if text.is_empty() {
                    return Err("a name".to_owned());
                }
                self.name = Some(text.to_owned());
            }
        }
        Ok(())
    }

    fn take_engine(&mut self, text: &str) -> Result<(), Expected> {
        let engine = text.split(':').next().unwrap_or_default();
        if OTHER_ENGINES.contains(&engine) {
            return Err("an engine that reads and writes blocks, such as io_uring".to_owned());
        }
        self.synchronous = SYNCHRONOUS.contains(&engine).then(|| engine.to_owned());
        Ok(())
    }
}

fn rhythm(text: &str) -> Result<Option<u64>, Expected> {
    Ok(Some(value::bounded(text, 0, u64::MAX)?).filter(|every| *every > 0))
}

/// One of a list of words.
fn choose<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, Expected> {
    let found = known.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.join(""),
        }
    })
}

/// `mode` or `mode:number`.
fn rw(text: &str, base: KbBase) -> Result<Rw, Expected> {
    let (mode, suffix) = text.split_once(':').map_or((text, None), |(mode, n)| (mode, Some(n)));
    let found = MODES.iter().find(|(name, ..)| *name == mode);
    let Some(&(_, mix, sequential)) = found else {
        let words: Vec<&str> = MODES.iter().map(|(name, ..)| *name).collect();
        return Err(format!("one of {}", words.join(", ")));
    };
    let suffix = match suffix {
        None => 0,
        Some(text) if text.starts_with('-') => {
            return Err("a number of bytes to leave out that is not negative".to_owned());
        }
        Some(text) => value::integer(text, base)?,
    };
    if sequential && suffix % 512 != 0 {
        return Err("a number of bytes to leave out that is a multiple of 512".to_owned());
    }
    Ok(Rw { mix, sequential, suffix })
}

fn unknown(place: &Place, key: &str) -> WorkloadError {
    let found = "an unknown key";
    match names::nearest(key, keys::all()) {
        Some(name) => {
            place.key_error(key, found, "a key of fio", format!("did you mean `{name}`?"))
        }
        None => {
            let expected = format!("one of: {}", keys::USED.join(", "));
            let advice = "remove the key if the pattern does not depend on it";
            place.key_error(key, found, expected, advice)
        }
    }
}
