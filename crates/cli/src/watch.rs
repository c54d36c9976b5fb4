//! `--series` and `--latencies`: what is seen while a replay runs, in files.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use flashwise_lab::{Interval, LatencyRow, ObserveError, Observer, Series, SeriesRow};
use flashwise_series::{Cell, Column, Kind, TableFile, check_name};
use flashwise_ssd::Ssd;
use flashwise_workload::Request;

use crate::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Write a row for each interval: throughput, latencies, write amplification, busy dies, wear
    /// (.csv, .csv.gz, .csv.zst or .parquet)
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Length of an interval in virtual time, for example 100ms [default: 200 to 1000 rows]
    #[arg(long, value_name = "TIME", requires = "series", value_parser = parse_interval)]
    series_interval: Option<u64>,
    /// Write a row for each request (.csv, .csv.gz, .csv.zst or .parquet)
    #[arg(long, value_name = "FILE")]
    latencies: Option<PathBuf>,
}

impl WatchArgs {
    /// A file is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.series.is_some() || self.latencies.is_some()
    }
}

/// A length of time \[ns\].
fn parse_interval(text: &str) -> Result<u64, String> {
    let expected = "expected a time such as 100ms, 10us, 1s or 5m";
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let ns_per_unit = match unit.trim() {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(expected.to_owned()),
    };
    let ns = number.parse::<f64>().map_err(|_| expected.to_owned())? * ns_per_unit;
    if (1.0..=1e18).contains(&ns) { Ok(ns.round() as u64) } else { Err(expected.to_owned()) }
}

/// The files of a run, one of each for all policies.
pub(crate) struct Files {
    interval: Interval,
    series: Option<TableFile>,
    latencies: Option<TableFile>,
}

impl Files {
    /// Creates what was asked for; `others` are files of the run that must not be hit.
    pub(crate) fn create(args: &WatchArgs, ssd: &Ssd, others: &[&Path]) -> Result<Self, Failure> {
        let asked = [("--series", &args.series), ("--latencies", &args.latencies)];
        for (option, path) in asked {
            let Some(path) = path else { continue };
            check_name(path).map_err(|e| Failure::Input(anyhow!("{option} {e}")))?;
            if others.iter().any(|other| same_file(path, other)) {
                let e = anyhow!("{option} {}: this run uses that file already", path.display());
                return Err(Failure::Input(e));
            }
        }
        if let (Some(a), Some(b)) = (&args.series, &args.latencies)
            && (a == b || same_file(a, b))
        {
            return Err(Failure::Input(anyhow!("--series and --latencies need a file each")));
        }
        let create = |path: &Option<PathBuf>, columns: Vec<Column>| {
            let table = path.as_ref().map(|p| TableFile::create(p, columns)).transpose();
            table.map_err(|e| Failure::Work(e.into()))
        };
        Ok(Self {
            interval: args.series_interval.map_or(Interval::Auto, Interval::Fixed),
            series: create(&args.series, series_columns(ssd.nand().geometry().n_dies()))?,
            latencies: create(&args.latencies, columns(LATENCY_COLUMNS))?,
        })
    }

    /// Rows are written while a replay runs, so that only one may run at a time.
    pub(crate) fn needs_turns(&self) -> bool {
        self.latencies.is_some()
    }

    /// Whoever watches the replay under one policy; `None`: nothing was asked for.
    pub(crate) fn watch<'a>(&'a mut self, policy: &'a str) -> Option<Watch<'a>> {
        let series = self.new_series();
        if series.is_none() && self.latencies.is_none() {
            return None;
        }
        Some(Watch { policy, series, latencies: self.latencies.as_mut(), start_ns: 0, n: 0 })
    }

    /// The same where replays run side by side (no turns are needed then).
    pub(crate) fn watch_beside<'a>(&self, policy: &'a str) -> Option<Watch<'a>> {
        let series = Some(self.new_series()?);
        Some(Watch { policy, series, latencies: None, start_ns: 0, n: 0 })
    }

    fn new_series(&self) -> Option<Series> {
        self.series.as_ref().map(|_| Series::new(self.interval))
    }

    /// Writes the series of one policy, once its replay has ended.
    pub(crate) fn add(&mut self, policy: &str, series: Option<Series>) -> Result<(), Failure> {
        let (Some(series), Some(table)) = (series, &mut self.series) else { return Ok(()) };
        for row in series.rows() {
            let mut cells = vec![Cell::Text(policy)];
            cells.extend(SERIES_COLUMNS.iter().map(|c| (c.2)(&row)));
            cells.extend(row.die_busy.iter().map(|&busy| Cell::from(busy)));
            let written = table.row(&cells);
            written.map_err(|e| Failure::Work(anyhow!("{}: {e}", table.path().display())))?;
        }
        Ok(())
    }

    /// All replays are done: the files are whole.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        for table in [self.series, self.latencies].into_iter().flatten() {
            let path = table.path().display().to_string();
            table.finish().map_err(|e| Failure::Work(anyhow!("{path}: {e}")))?;
        }
        Ok(())
    }
}

/// Both names lead to one file, which need not exist yet.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b || same_inode(&a, &b),
        (Err(_), Err(_)) => matches!((place(a), place(b)), (Some(a), Some(b)) if a == b),
        _ => false,
    }
}

/// Directory and name of a file that does not exist.
fn place(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(parent.canonicalize().ok()?.join(path.file_name()?))
}

/// Two names of one file (hard links).
#[cfg(unix)]
fn same_inode(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
    of(a).is_some() && of(a) == of(b)
}

#[cfg(not(unix))]
fn same_inode(_: &Path, _: &Path) -> bool {
    false
}

/// Watches one replay.
pub(crate) struct Watch<'a> {
    policy: &'a str,
    series: Option<Series>,
    latencies: Option<&'a mut TableFile>,
    start_ns: u64,
    n: u64,
}

impl Watch<'_> {
    /// What was seen, for [`Files::add`].
    pub(crate) fn into_series(self) -> Option<Series> {
        self.series
    }

    fn write_latency(&mut self, row: &LatencyRow) -> Result<(), ObserveError> {
        let Some(table) = &mut self.latencies else { return Ok(()) };
        let cells = [
            Cell::Text(self.policy),
            row.index.into(),
            row.arrival_us.into(),
            Cell::Text(row.op),
            row.lba.into(),
            u64::from(row.sectors).into(),
            row.latency_us.into(),
        ];
        let path = || table.path().display().to_string();
        let path = path();
        table.row(&cells).map_err(|source| ObserveError::Write { path, source })
    }
}

impl Observer for Watch<'_> {
    fn starts(&mut self, ssd: &Ssd, now_ns: u64) {
        self.start_ns = now_ns;
        if let Some(series) = &mut self.series {
            series.starts(ssd, now_ns);
        }
    }

    fn arrives(&mut self, ssd: &Ssd, at_ns: u64) -> Result<(), ObserveError> {
        self.series.as_mut().map_or(Ok(()), |series| series.arrives(ssd, at_ns))
    }

    fn completed(&mut self, r: &Request, at_ns: u64, done_ns: u64) -> Result<(), ObserveError> {
        if let Some(series) = &mut self.series {
            series.completed(r, at_ns, done_ns)?;
        }
        if self.latencies.is_some() {
            self.write_latency(&LatencyRow::new(self.n, self.start_ns, r, at_ns, done_ns))?;
        }
        self.n += 1;
        Ok(())
    }

    fn ends(&mut self, ssd: &Ssd, end_ns: u64) {
        if let Some(series) = &mut self.series {
            series.ends(ssd, end_ns);
        }
    }
}

/// Name, kind and value of a column.
type SeriesColumn = (&'static str, Kind, fn(&SeriesRow) -> Cell<'static>);

/// Columns between the policy and the dies.
const SERIES_COLUMNS: &[SeriesColumn] = &[
    ("time_s", Kind::Number, |r| r.time_s.into()),
    ("length_s", Kind::Number, |r| r.length_s.into()),
    ("requests", Kind::Whole, |r| r.requests.into()),
    ("read_requests", Kind::Whole, |r| r.read_requests.into()),
    ("write_requests", Kind::Whole, |r| r.write_requests.into()),
    ("trim_requests", Kind::Whole, |r| r.trim_requests.into()),
    ("flush_requests", Kind::Whole, |r| r.flush_requests.into()),
    ("read_bytes", Kind::Whole, |r| r.read_bytes.into()),
    ("write_bytes", Kind::Whole, |r| r.write_bytes.into()),
    ("read_mib_s", Kind::Number, |r| r.read_mib_s.into()),
    ("write_mib_s", Kind::Number, |r| r.write_mib_s.into()),
    ("iops", Kind::Number, |r| r.iops.into()),
    ("waf", Kind::Number, |r| r.waf.into()),
    ("bytes_host", Kind::Whole, |r| r.bytes_host.into()),
    ("bytes_programmed", Kind::Whole, |r| r.bytes_programmed.into()),
    ("bytes_gc", Kind::Whole, |r| r.bytes_gc.into()),
    ("read_p50_us", Kind::Number, |r| r.read_us[0].into()),
    ("read_p99_us", Kind::Number, |r| r.read_us[1].into()),
    ("read_p999_us", Kind::Number, |r| r.read_us[2].into()),
    ("read_max_us", Kind::Number, |r| r.read_us[3].into()),
    ("write_p50_us", Kind::Number, |r| r.write_us[0].into()),
    ("write_p99_us", Kind::Number, |r| r.write_us[1].into()),
    ("write_p999_us", Kind::Number, |r| r.write_us[2].into()),
    ("write_max_us", Kind::Number, |r| r.write_us[3].into()),
    ("free_blocks", Kind::Whole, |r| r.free_blocks.into()),
    ("erases", Kind::Whole, |r| r.erases.into()),
    ("erase_max", Kind::Whole, |r| u64::from(r.erase_max).into()),
    ("erase_mean", Kind::Number, |r| r.erase_mean.into()),
    ("die_busy_min", Kind::Number, |r| r.die_busy_range()[0].into()),
    ("die_busy_mean", Kind::Number, |r| r.die_busy_range()[1].into()),
    ("die_busy_max", Kind::Number, |r| r.die_busy_range()[2].into()),
];

const LATENCY_COLUMNS: &[(&str, Kind)] = &[
    ("policy", Kind::Text),
    ("index", Kind::Whole),
    ("arrival_us", Kind::Number),
    ("op", Kind::Text),
    ("lba", Kind::Whole),
    ("sectors", Kind::Whole),
    ("latency_us", Kind::Number),
];

fn columns(all: &[(&str, Kind)]) -> Vec<Column> {
    all.iter().map(|&(name, kind)| Column { name: name.to_owned(), kind }).collect()
}

fn series_columns(n_dies: u32) -> Vec<Column> {
    let mut all = columns(&[("policy", Kind::Text)]);
    let fixed = SERIES_COLUMNS.iter();
    all.extend(fixed.map(|c| Column { name: c.0.to_owned(), kind: c.1 }));
    let dies = (0..n_dies).map(|d| format!("die_{d}_busy"));
    all.extend(dies.map(|name| Column { name, kind: Kind::Number }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_times() {
        let cases = [
            ("100ms", 100_000_000),
            ("10us", 10_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("7ns", 7),
        ];
        for (text, ns) in cases {
            assert_eq!(parse_interval(text), Ok(ns));
        }
        for text in ["", "100", "ms", "0s", "-1s", "1.2.3s", "1d", "1e3s", "999999999999h"] {
            assert!(parse_interval(text).is_err_and(|e| e.contains("100ms")), "{text}");
        }
    }
}
