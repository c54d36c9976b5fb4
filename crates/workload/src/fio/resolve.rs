//! From the options of a job file to jobs on a drive: regions, limits, groups, seeds,
//! handles.
//!
//! Invariants: every job that comes out stays within the drive and issues at least one
//! request or is bounded by time; what does not fit is an error that names the key and
//! its line. Source of the rules about sizes: fio, `filesetup.c` and `backend.c`.

use flashwise_hint::SECTOR_BYTES;

use super::options::{Options, Placement};
use super::value::RandomDistribution;
use super::{Amount, FioFile, FioJob};
use crate::error::gib;
use crate::jobs::MAP_BLOCKS_MAX;
use crate::{
    Direction, Handles, JobSpec, Mix, Rate, Sequencer, Sizes, Spread, StreamSpec, Think,
    WorkloadError, Zone,
};

/// Most jobs of a file, clones counted. Source: fio's REAL_MAX_JOBS.
const MAX_JOBS: u32 = 4096;

/// Block size without `bs` \[sectors\]. Source: fio's default, 4096 bytes.
const DEFAULT_BLOCK: u32 = 8;

/// What jobs run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobTarget {
    /// Size of the drive \[sectors\].
    pub capacity_sectors: u64,
    /// Placement handles it has.
    pub n_handles: u16,
    /// Seed of jobs that name none.
    pub seed: u64,
    /// Overrides every `iodepth`.
    pub queue_depth: Option<u32>,
}

/// The jobs of a file on one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    /// In order.
    pub specs: Vec<JobSpec>,
    /// Rows they are reported under: each job, or each section with `group_reporting`.
    pub names: Vec<String>,
}

impl JobPlan {
    /// Regions that are read, as first sector and end.
    pub fn regions_read(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        let read = self.specs.iter().filter(|spec| spec.stream.mix.has(Direction::Read));
        read.map(|spec| {
            spec.stream.region_start..spec.stream.region_start + spec.stream.region_sectors
        })
    }
}

impl FioFile {
    /// Resolves the jobs against a drive.
    pub fn jobs(&self, target: &JobTarget) -> Result<JobPlan, WorkloadError> {
        let mut plan = JobPlan { specs: vec![], names: vec![] };
        let mut group = 0;
        for (i, job) in self.jobs.iter().enumerate() {
            group += u32::from(job.options.stonewall && i > 0);
            let n = job.options.numjobs.unwrap_or(1);
            if plan.specs.len() as u32 + n > MAX_JOBS {
                let found = format!("{n} more than {}", plan.specs.len());
                let expected = format!("at most {MAX_JOBS} jobs in all");
                return Err(job.refuse_with("numjobs", &found, expected, "say fewer"));
            }
            for clone in 0..n {
                let number = plan.specs.len() as u64;
                let name = match n {
                    1 => job.name.clone(),
                    _ if job.options.group_reporting => format!("{} x {n}", job.name),
                    _ => format!("{}.{clone}", job.name),
                };
                if clone == 0 || !job.options.group_reporting {
                    plan.names.push(name.clone());
                }
                let row = plan.names.len() as u32 - 1;
                plan.specs.push(job.spec(target, name, clone, number, row, group)?);
            }
        }
        Ok(plan)
    }

    /// The file, as its errors name it.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

impl FioJob {
    fn spec(
        &self,
        target: &JobTarget,
        name: String,
        clone: u32,
        number: u64,
        row: u32,
        group: u32,
    ) -> Result<JobSpec, WorkloadError> {
        let o = &self.options;
        // The first job draws from the seed itself, the others from it and their number.
        let seed = o.seed.unwrap_or(target.seed) ^ mix_bits(number);
        let (from_ns, to_ns) = o.start_delay_ns;
        let within = u128::from(mix_bits(seed ^ 0xDE1A)) * u128::from(to_ns - from_ns + 1);
        let rates = if o.rate_iops.iter().any(Option::is_some) { o.rate_iops } else { o.rate };
        if o.rate.iter().any(Option::is_some) && o.rate_iops.iter().any(Option::is_some) {
            let expected = "either rate or rate_iops".to_owned();
            return Err(self.refuse_with("rate_iops", "both", expected, "remove one"));
        }
        // fio takes a rate of 0 for none.
        let rates = rates
            .map(|rate| rate.filter(|rate| !matches!(rate, Rate::Bytes(0) | Rate::Requests(0))));
        let runtime_ns = (o.runtime_ns > 0).then_some(o.runtime_ns);
        if o.time_based && runtime_ns.is_none() {
            let expected = "a runtime for a job that is bounded by time".to_owned();
            return Err(self.refuse_with("time_based", "none", expected, "add `runtime`"));
        }
        Ok(JobSpec {
            name,
            row,
            group,
            stream: self.stream(target, clone, seed)?,
            queue_depth: target.queue_depth.or(o.iodepth).unwrap_or(1),
            start_delay_ns: from_ns + (within >> 64) as u64,
            ramp_ns: o.ramp_ns,
            runtime_ns,
            think: (o.thinktime_ns > 0).then(|| Think {
                pause_ns: o.thinktime_ns,
                every: o.thinktime_blocks.unwrap_or(1),
                by_issue: o.think_by_issue,
            }),
            rates,
            poisson: o.poisson,
            exit_all: o.exit_all,
        })
    }

    fn stream(
        &self,
        target: &JobTarget,
        clone: u32,
        seed: u64,
    ) -> Result<StreamSpec, WorkloadError> {
        let o = &self.options;
        let (mix, sequential, suffix) = pattern(o);
        let sizes = [0, 1, 2].map(|d| o.sizes(d));
        let align = [0, 1, 2].map(|d| match o.ba[d] {
            Some(ba) if !sequential => ba,
            _ => sizes[d].min(),
        });
        let used = || Direction::ALL.into_iter().filter(|d| mix.has(*d)).map(|d| d as usize);
        let longest_min = used().map(|d| u64::from(sizes[d].min())).max().unwrap_or(0);
        let (start, len) = self.region(target, clone, longest_min)?;
        let aligned = used().any(|d| align[d] != sizes[d].min());
        let spread = self.spread(len)?;
        let uniform = spread == Spread::Uniform;
        let random_map = !sequential && !o.norandommap && uniform && !aligned;
        let varied = used().any(|d| sizes[d].max() > sizes[d].min());
        let least = used().map(|d| u64::from(align[d])).min().unwrap_or(1);
        if random_map && varied && len / least > MAP_BLOCKS_MAX {
            let found = format!("{} blocks", len / least);
            let expected = format!("at most {MAP_BLOCKS_MAX} blocks, or norandommap");
            return Err(self.refuse("size", &found, expected));
        }
        Ok(StreamSpec {
            region_start: start,
            region_sectors: len,
            mix,
            sequential,
            gap_sectors: if sequential { suffix / SECTOR_BYTES } else { 0 },
            sequencer: (!sequential && suffix > 1)
                .then_some(Sequencer { every: suffix, identical: o.identical }),
            random_percent: o.random_percent.map(|percent| percent.unwrap_or(100)),
            limit_bytes: self.limit_bytes(len, longest_min)?,
            limit_requests: o.number_ios.filter(|_| !o.time_based),
            flush_every: [o.fsync, o.fdatasync],
            flush_at_end: o.flush_at_end,
            fua: o.fua,
            handles: self.handles(target, mix)?,
            sizes,
            align,
            spread,
            random_map,
            seed,
        })
    }

    /// The region as first sector and length \[sectors\].
    fn region(
        &self,
        target: &JobTarget,
        clone: u32,
        block: u64,
    ) -> Result<(u64, u64), WorkloadError> {
        let o = &self.options;
        let capacity = target.capacity_sectors;
        let drive = format!("a drive of {capacity} sectors ({})", gib(capacity));
        let percent = |percent: u32| (u128::from(capacity) * u128::from(percent) / 100) as u64;
        let sectors = |amount: Option<Amount>| match amount {
            None => 0,
            Some(Amount::Bytes(bytes)) => bytes / SECTOR_BYTES,
            Some(Amount::Percent(p)) => percent(p),
        };
        let step = u128::from(clone) * u128::from(sectors(o.offset_increment));
        let start = u128::from(sectors(o.offset)) + step;
        let is_percent = |amount| matches!(amount, Some(Amount::Percent(_)));
        let rounded = is_percent(o.offset) || is_percent(o.offset_increment);
        let unit = u128::from(if rounded { block } else { 1 });
        let start = start.div_ceil(unit) * unit;
        if start >= u128::from(capacity) {
            let key = if step > 0 { "offset_increment" } else { "offset" };
            let expected = format!("a start within {drive}");
            return Err(self.refuse(key, &format!("sector {start}"), expected));
        }
        let start = start as u64;
        let rest = capacity - start;
        let len = match o.size {
            None => rest,
            // A percentage is cut at the end of the drive, as in fio.
            Some(Amount::Percent(p)) => {
                let len = percent(p).min(rest);
                len - len % block
            }
            Some(Amount::Bytes(bytes)) => bytes / SECTOR_BYTES,
        };
        if len > rest {
            let expected = format!("a region that ends within {drive}");
            let found = format!("{len} sectors ({}) from sector {start}", gib(len));
            return Err(self.refuse("size", &found, expected));
        }
        if len < block {
            let expected = format!("room for one block of {block} sectors on {drive}");
            return Err(self.refuse("size", &format!("{len} sectors"), expected));
        }
        Ok((start, len))
    }

    /// Bytes after which the job ends; `None`: time ends it.
    fn limit_bytes(&self, len: u64, block: u64) -> Result<Option<u64>, WorkloadError> {
        let o = &self.options;
        if o.time_based {
            return Ok(None);
        }
        let region_bytes = (len - len % block) * SECTOR_BYTES;
        let pass_bytes = match o.io_size {
            None => region_bytes,
            Some(Amount::Bytes(bytes)) => bytes,
            Some(Amount::Percent(percent)) => {
                (u128::from(region_bytes) * u128::from(percent) / 100) as u64
            }
        };
        let loops = o.loops.unwrap_or(1);
        let Some(total_bytes) = pass_bytes.checked_mul(loops) else {
            let found = format!("{loops} times {pass_bytes} bytes");
            let expected = "less than 2^64 bytes in all".to_owned();
            return Err(self.refuse_with("loops", &found, expected, "correct the value"));
        };
        if total_bytes == 0 {
            let expected = "at least one request".to_owned();
            return Err(self.refuse_with("io_size", "0 bytes", expected, "correct the value"));
        }
        Ok(Some(total_bytes))
    }

    fn spread(&self, len: u64) -> Result<Spread, WorkloadError> {
        Ok(match self.options.distribution.clone().unwrap_or(RandomDistribution::Random) {
            RandomDistribution::Random => Spread::Uniform,
            RandomDistribution::Zipf { theta, center } => Spread::Zipf { theta, center },
            RandomDistribution::Pareto { h, center } => Spread::Pareto { h, center },
            RandomDistribution::Normal { deviation_percent, center } => {
                Spread::Normal { deviation_percent, center }
            }
            RandomDistribution::Zoned { zones, absolute } => {
                let mut laid = [const { vec![] }; 3];
                for (zones, laid) in zones.iter().zip(&mut laid) {
                    *laid = self.zones(zones, absolute, len)?;
                }
                Spread::Zoned(Box::new(laid))
            }
        })
    }

    /// Lays zones one after another on a region.
    fn zones(
        &self,
        zones: &[(u32, u64)],
        absolute: bool,
        len: u64,
    ) -> Result<Vec<Zone>, WorkloadError> {
        let place = |at: u64| match absolute {
            true => at / SECTOR_BYTES,
            false => (u128::from(len) * u128::from(at) / 100) as u64,
        };
        let (mut at, mut laid) = (0_u64, vec![]);
        for &(percent, size) in zones {
            let end = at.saturating_add(size);
            let zone = Zone { percent, start: place(at), end: place(end) };
            if zone.end > len {
                let found = format!("zones of {end} bytes and more");
                let expected = format!("zones within the region of {len} sectors ({})", gib(len));
                return Err(self.refuse("random_distribution", &found, expected));
            }
            laid.push(zone);
            at = end;
        }
        Ok(laid)
    }

    /// Placement handles, all of which the drive has.
    fn handles(&self, target: &JobTarget, mix: Mix) -> Result<Handles, WorkloadError> {
        let o = &self.options;
        let n = target.n_handles;
        let (key, handles) = match o.placement {
            Placement::None => ("write_hint", vec![o.write_hint]),
            // Without a list, fio takes all that the drive has.
            Placement::Fdp if o.plids.is_empty() => ("fdp", (0..n).collect()),
            Placement::Streams if o.plids.is_empty() => {
                let expected = "plids with dataplacement=streams".to_owned();
                return Err(self.refuse_with("dataplacement", "none", expected, "add `plids`"));
            }
            Placement::Fdp | Placement::Streams => ("plids", o.plids.clone()),
        };
        let lacking = handles.iter().find(|handle| **handle >= n);
        if let Some(handle) = lacking.filter(|_| mix.has(Direction::Write)) {
            let found =
                format!("handle {handle} of job «{}»", crate::names::excerpt(self.name.as_bytes()));
            let expected = format!("a handle below {n}: the drive has {n} (ftl.handles)");
            let place = o.places.get(key).unwrap_or(&self.place);
            let most = handles.iter().max().unwrap_or(handle);
            let needed = u32::from(*most) + 1;
            let advice = format!("give the drive more with --set ftl.handles={needed}");
            return Err(place.key_error(key, &found, expected, advice));
        }
        Ok(match (handles.len(), o.random_plids) {
            (0 | 1, _) => Handles::One(handles.first().copied().unwrap_or(0)),
            (_, false) => Handles::RoundRobin(handles),
            (_, true) => Handles::Random(handles),
        })
    }

    fn refuse(&self, key: &str, found: &str, expected: String) -> WorkloadError {
        self.refuse_with(key, found, expected, "change the key or use a larger drive")
    }

    fn refuse_with(&self, key: &str, found: &str, expected: String, advice: &str) -> WorkloadError {
        let place = self.options.places.get(key).unwrap_or(&self.place);
        place.key_error(key, found, expected, advice)
    }
}

impl Options {
    fn sizes(&self, d: usize) -> Sizes {
        match (&self.bssplit[d], self.bsrange[d], self.bs[d]) {
            (Some(parts), ..) => match parts[..] {
                [(sectors, _)] => Sizes::Fixed(sectors),
                _ => Sizes::Split(parts.clone()),
            },
            (None, Some((min, max)), _) if min < max => Sizes::Range { min, max },
            (None, Some((min, _)), _) => Sizes::Fixed(min),
            (None, None, sectors) => Sizes::Fixed(sectors.unwrap_or(DEFAULT_BLOCK)),
        }
    }
}

/// Directions, whether addresses ascend, and the number behind the mode.
fn pattern(o: &Options) -> (Mix, bool, u64) {
    match o.rw {
        None => (Mix::Only(Direction::Read), true, 0),
        Some(rw) => {
            let mixed = Mix::ReadPercent(o.mix_read.unwrap_or(50));
            (rw.mix.unwrap_or(mixed), rw.sequential, rw.suffix)
        }
    }
}

/// A number that looks random, 0 for 0. Source: SplitMix64 (Steele et al., OOPSLA 2014).
fn mix_bits(n: u64) -> u64 {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
