//! The subset of fio job files that describes one closed-loop pattern.
//!
//! fio jobs are how engineers already write down a workload. The reader takes the keys
//! that shape the pattern, collects keys that cannot matter to a modelled drive as
//! notices, and refuses the rest by name: a key that is silently ignored would be a
//! different workload. Sizes and percentages are resolved against the drive only in
//! [`FioJob::synthetic`], so one job runs on any drive.
//!
//! | key | meaning here |
//! |---|---|
//! | `rw`, `readwrite` | read, write, randread, randwrite, rw, readwrite, randrw; default read |
//! | `bs`, `blocksize` | length of every request; default 4k; a multiple of 512 |
//! | `offset`, `size` | region; bytes or percent of the drive; default the rest of the drive |
//! | `io_size` | bytes to transfer, or percent of the region; default the region once |
//! | `loops` | multiplies the bytes to transfer |
//! | `number_ios` | upper bound on requests |
//! | `iodepth` | queue depth; default 1 |
//! | `rwmixread`, `rwmixwrite` | percent of a mixed pattern; the later one counts; default 50 |
//! | `random_distribution` | `random` or `zipf:theta` |
//! | `norandommap` | always in effect: addresses are independent draws |
//! | `randseed` | seed; otherwise the caller's |
//! | `numjobs` | 1 |
//! | `name` | replaces the section's name |
//!
//! Suffixes k, m, g, t and p are powers of 1024 (fio's default `kb_base=1024`). `kib`
//! and the like are refused, because fio reads them as powers of 1000 there. `;` and
//! `#` start a comment anywhere, `${NAME}` is an environment variable, and a key
//! without value is 1. Source: fio's HOWTO and its `parse.c`.

mod parse;
mod value;

use std::path::PathBuf;

use flashwise_hint::SECTOR_BYTES;

pub use parse::{parse_fio_job, read_fio_job};

use crate::error::gib;
use crate::{Distribution, SyntheticSpec, WorkloadError};

/// A size in a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent, 0 to 100, of the drive (for `io_size`: of the region).
    Percent(u32),
}

/// A value with the line it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) line: u64,
}

/// One job, as written; sizes are not resolved yet.
#[derive(Clone, Debug)]
pub struct FioJob {
    /// Name of the job.
    pub name: String,
    /// What a user should know: keys without effect here, and where fio would differ.
    pub notices: Vec<String>,
    /// Requests in flight (`iodepth`).
    pub queue_depth: u32,
    /// Share of reads \[percent\].
    pub read_percent: u32,
    /// Whether addresses ascend.
    pub sequential: bool,
    /// Spread of random addresses.
    pub distribution: Distribution,
    /// Length of every request \[bytes\], a multiple of 512.
    pub block_bytes: u64,
    /// Seed named by the job.
    pub seed: Option<u64>,
    pub(crate) path: PathBuf,
    /// Line of the job's section header.
    pub(crate) line: u64,
    pub(crate) offset: Option<At<Amount>>,
    pub(crate) size: Option<At<Amount>>,
    pub(crate) io_size: Option<At<Amount>>,
    pub(crate) loops: At<u64>,
    pub(crate) number_ios: Option<At<u64>>,
}

impl FioJob {
    /// Resolves the job against a drive of `capacity_sectors`. `seed` counts unless the
    /// job names one.
    pub fn synthetic(
        &self,
        capacity_sectors: u64,
        seed: u64,
    ) -> Result<SyntheticSpec, WorkloadError> {
        let (start, len) = self.region(capacity_sectors)?;
        let spec = SyntheticSpec {
            read_percent: self.read_percent,
            distribution: self.distribution,
            // Checked when read: a block is at least 512 bytes and below 2^32 sectors.
            block_sectors: u32::try_from(self.block_bytes / SECTOR_BYTES).unwrap_or(u32::MAX),
            region_start: start,
            region_sectors: len,
            sequential: self.sequential,
            n_requests: Some(self.n_requests(len * SECTOR_BYTES)?),
            queue_depth: self.queue_depth,
            seed: self.seed.unwrap_or(seed),
        };
        spec.validate()?;
        Ok(spec)
    }

    /// The region as first sector and length \[sectors\].
    fn region(&self, capacity_sectors: u64) -> Result<(u64, u64), WorkloadError> {
        let block_sectors = self.block_bytes / SECTOR_BYTES;
        let drive = format!("a drive of {capacity_sectors} sectors ({})", gib(capacity_sectors));
        let whole_blocks = |percent: u32| {
            let sectors = u128::from(capacity_sectors) * u128::from(percent) / 100;
            let sectors = sectors as u64;
            sectors - sectors % block_sectors
        };
        let start = match self.offset {
            None => 0,
            Some(At { value: Amount::Percent(percent), .. }) => whole_blocks(percent),
            Some(At { value: Amount::Bytes(bytes), .. }) => bytes / SECTOR_BYTES,
        };
        if start >= capacity_sectors {
            let line = self.offset.map_or(self.line, |at| at.line);
            let expected = format!("a start within {drive}");
            return Err(self.refuse("offset", line, expected, format!("sector {start}")));
        }
        let rest = capacity_sectors - start;
        let len = match self.size {
            None => rest,
            Some(At { value: Amount::Percent(percent), .. }) => whole_blocks(percent),
            Some(At { value: Amount::Bytes(bytes), .. }) => bytes / SECTOR_BYTES,
        };
        let line = self.size.map_or(self.line, |at| at.line);
        if len > rest {
            let expected = format!("a region that ends within {drive}");
            let found = format!("{len} sectors ({}) from sector {start}", gib(len));
            return Err(self.refuse("size", line, expected, found));
        }
        if len < block_sectors {
            let expected = format!("room for one block of {block_sectors} sectors on {drive}");
            return Err(self.refuse("size", line, expected, format!("{len} sectors")));
        }
        Ok((start, len))
    }

    /// How many requests the job issues in a region of `region_bytes`.
    fn n_requests(&self, region_bytes: u64) -> Result<u64, WorkloadError> {
        let region_bytes = region_bytes - region_bytes % self.block_bytes;
        let pass_bytes = match self.io_size {
            None => region_bytes,
            Some(At { value: Amount::Bytes(bytes), .. }) => bytes,
            Some(At { value: Amount::Percent(percent), .. }) => {
                (u128::from(region_bytes) * u128::from(percent) / 100) as u64
            }
        };
        let Some(total_bytes) = pass_bytes.checked_mul(self.loops.value) else {
            let found = format!("{} times {pass_bytes} bytes", self.loops.value);
            let expected = "less than 2^64 bytes in all".to_owned();
            return Err(self.refuse("loops", self.loops.line, expected, found));
        };
        let n = total_bytes / self.block_bytes;
        if n == 0 {
            let line = self.io_size.map_or(self.line, |at| at.line);
            let expected = format!("at least one block of {} bytes", self.block_bytes);
            return Err(self.refuse("io_size", line, expected, format!("{total_bytes} bytes")));
        }
        Ok(self.number_ios.map_or(n, |limit| n.min(limit.value)))
    }

    fn refuse(&self, key: &str, line: u64, expected: String, found: String) -> WorkloadError {
        WorkloadError::Key {
            path: self.path.clone(),
            line,
            key: key.into(),
            found: found.into(),
            expected: expected.into(),
            advice: "change the key or use a larger drive".into(),
        }
    }

    /// The job as a canonical job file that reads back as the same job, provided that the
    /// environment variable `DOLLAR` is a dollar sign (the only way to write `${`).
    pub(crate) fn canonical(&self) -> String {
        use std::fmt::Write;
        let mut out = String::from("[job]\n");
        let rw = if self.sequential { "rw" } else { "randrw" };
        let mut put = |key: &str, value: &dyn std::fmt::Display| {
            let _ = writeln!(out, "{key}={value}");
        };
        put("name", &self.name.replace("${", "${DOLLAR}{"));
        put("rw", &rw);
        put("rwmixread", &self.read_percent);
        put("bs", &self.block_bytes);
        put("iodepth", &self.queue_depth);
        put("loops", &self.loops.value);
        match self.distribution {
            Distribution::Uniform => put("random_distribution", &"random"),
            Distribution::Zipf { theta } => {
                put("random_distribution", &format_args!("zipf:{theta}"));
            }
        }
        for (key, amount) in
            [("offset", self.offset), ("size", self.size), ("io_size", self.io_size)]
        {
            match amount.map(|at| at.value) {
                None => {}
                Some(Amount::Bytes(bytes)) => put(key, &bytes),
                Some(Amount::Percent(percent)) => put(key, &format_args!("{percent}%")),
            }
        }
        if let Some(limit) = self.number_ios {
            put("number_ios", &limit.value);
        }
        if let Some(seed) = self.seed {
            put("randseed", &seed);
        }
        out
    }
}
