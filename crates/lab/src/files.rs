//! An application on a file system on a drive.
//!
//! The host hands out requests one by one and hears when each was done, so it is a
//! [`Driver`] like jobs are, and everything that watches a replay watches it too. Beside
//! the figures of the drive there are those the application sees ([`FilesRow`]).

use flashwise_hostfs::{Application, Host, HostError, Io, IoClass, IoOp, RamDisk, RamSpeed};
use flashwise_ssd::Ssd;
use flashwise_workload::{Driver, Issue, OpKind, Request};
use serde::Serialize;

use crate::error::LabError;
use crate::jobs::replay_jobs_observed;
use crate::measure::Latencies;
use crate::observe::Observer;
use crate::replay::{NO_BOTTLENECK, Replay};
use crate::row::Row;

/// What an application got out of its file system, and what that did to the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FilesRow {
    /// The file system, with every choice.
    pub fs: String,
    /// Time the application ran \[s\].
    pub run_s: f64,
    /// Operations of the application.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Operations that failed, for example for want of space.
    pub ops_failed: u64,
    /// Bytes the application read and wrote, by second \[MiB/s\].
    pub app_mib_s: f64,
    /// Bytes written to the journal, its superblock included.
    pub journal_bytes: u64,
    /// Bytes of metadata written home.
    pub metadata_bytes: u64,
    /// Bytes of files written home.
    pub data_bytes: u64,
    /// Mean size of a write to the journal \[KiB\].
    pub journal_request_kib: Option<f64>,
    /// Mean size of a write of metadata \[KiB\].
    pub metadata_request_kib: Option<f64>,
    /// Mean size of a write of data \[KiB\].
    pub data_request_kib: Option<f64>,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Flushes, those before a commit block included.
    pub flushes: u64,
    /// Writes with force unit access.
    pub fua_writes: u64,
    /// Bytes of discards.
    pub discard_bytes: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Blocks of the log a transaction took, its commit block included.
    pub blocks_per_commit: Option<f64>,
    /// Rounds of the journal's ring, from mkfs on.
    pub journal_rounds: Option<f64>,
    /// Size of the journal.
    pub journal_size_bytes: Option<u64>,
    /// Writes of the journal's superblock.
    pub journal_superblock_writes: u64,
    /// Blocks written home because the log was full.
    pub checkpoint_blocks: u64,
    /// Part of the pages read that were in the page cache.
    pub cache_hit_part: Option<f64>,
    /// Files with blocks at the end.
    pub files: u64,
    /// Pieces a file lies in, on average.
    pub pieces_per_file: Option<f64>,
    /// Bytes of the file system no file has at the end.
    pub free_bytes: u64,
    /// Each kind of operation.
    pub op_rows: Vec<OpRow>,
}

/// One kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OpRow {
    /// Its name.
    pub name: String,
    /// How many.
    pub ops: u64,
    /// Per second.
    pub ops_per_s: f64,
    /// Bytes read or written \[MiB/s\].
    pub mib_s: f64,
    /// Mean latency, as the application sees it \[us\].
    pub mean_us: Option<f64>,
    /// Median \[us\].
    pub p50_us: Option<f64>,
    /// 99 % are faster \[us\].
    pub p99_us: Option<f64>,
    /// 99.9 % are faster \[us\].
    pub p999_us: Option<f64>,
}

/// Operations of one kind so far.
#[derive(Clone, Debug, Default)]
struct OpMeter {
    latencies: Latencies,
    bytes: u64,
    failed: u64,
}

/// A host as a driver of a drive.
struct FileDriver<'a, A> {
    host: &'a mut Host<A>,
    ops: Ops,
    names: Vec<String>,
}

/// Operations by kind.
struct Ops {
    names: Vec<String>,
    meters: Vec<OpMeter>,
}

impl Ops {
    fn new(names: &[String]) -> Self {
        let meters = names.iter().map(|_| OpMeter::default()).collect();
        Self { names: names.to_vec(), meters }
    }

    fn take<A: Application>(&mut self, host: &mut Host<A>) {
        for done in host.take_ops() {
            let meter = &mut self.meters[usize::from(done.op.0)];
            meter.latencies.record(done.end_ns - done.start_ns);
            meter.bytes += done.bytes;
            meter.failed += u64::from(done.failed);
        }
    }
}

impl<A: Application> Driver for FileDriver<'_, A> {
    fn next_issue(&mut self) -> Option<Issue> {
        let io = self.host.next_io();
        self.ops.take(self.host);
        let io = io?;
        let op = match io.op {
            IoOp::Read => OpKind::Read,
            IoOp::Write => OpKind::Write,
            IoOp::Discard => OpKind::Trim,
            IoOp::Flush => OpKind::Flush,
        };
        let Io { at_ns, lba, sectors, fua, hint, .. } = io;
        let request = Request { at_ns, op, lba, sectors, fua, hint };
        Some(Issue { request, job: io.class as u32, measured: io.measured })
    }

    fn completed(&mut self, done_ns: u64) {
        self.host.completed(done_ns);
    }

    fn job_names(&self) -> &[String] {
        &self.names
    }

    fn span_ns(&self) -> Option<(u64, u64)> {
        Some((self.host.start_ns(), self.host.now_ns()))
    }
}

/// Runs the application of `host` on `ssd`, from making its files to its end; what is
/// measured begins after they are made. `spec.pace` and `spec.fit` do not apply.
pub fn replay_files<A: Application>(
    ssd: &mut Ssd,
    host: &mut Host<A>,
    spec: &Replay<'_>,
) -> Result<Row, LabError> {
    replay_files_observed(ssd, host, spec, &mut ())
}

/// [`replay_files`], with somebody who is told of every request.
pub fn replay_files_observed<A: Application, O: Observer>(
    ssd: &mut Ssd,
    host: &mut Host<A>,
    spec: &Replay<'_>,
    observer: &mut O,
) -> Result<Row, LabError> {
    let names = IoClass::ALL.map(|class| format!("{class:?}").to_lowercase()).to_vec();
    let ops = Ops::new(host.application().op_names());
    let mut driver = FileDriver { host, ops, names };
    let mut row = replay_jobs_observed(ssd, &mut driver, spec, observer)?;
    let FileDriver { host, ops, .. } = driver;
    if let Some(failure) = host.failure() {
        return Err(LabError::Host(failure.clone()));
    }
    if row.bottleneck == NO_BOTTLENECK {
        row.bottleneck = "the host".to_owned();
    }
    row.files = Some(Box::new(files_row(host, &ops)));
    Ok(row)
}

/// Runs the application of `host` on a RAM disk.
pub fn run_files_on_ram<A: Application>(
    host: &mut Host<A>,
    speed: RamSpeed,
) -> Result<FilesRow, HostError> {
    let mut ops = Ops::new(host.application().op_names());
    let mut disk = RamDisk::new(speed);
    while let Some(io) = host.next_io() {
        let done_ns = disk.submit(&io);
        host.completed(done_ns);
        ops.take(host);
    }
    ops.take(host);
    match host.failure() {
        Some(failure) => Err(failure.clone()),
        None => Ok(files_row(host, &ops)),
    }
}

const MIB: f64 = (1 << 20) as f64;

fn files_row<A: Application>(host: &Host<A>, ops: &Ops) -> FilesRow {
    let c = host.counts();
    let run_s = ((host.now_ns() - host.start_ns()).max(1)) as f64 / 1e9;
    let kib = |class| {
        let c = c.class(class);
        (c.write_requests > 0).then(|| c.write_bytes as f64 / 1024.0 / c.write_requests as f64)
    };
    let written = |class| c.class(class).write_bytes;
    let n_ops: u64 = ops.meters.iter().map(|m| m.latencies.len()).sum();
    let n_bytes: u64 = ops.meters.iter().map(|m| m.bytes).sum();
    let (n_files, n_pieces) = host.fragmentation();
    let n_pages = c.cache_hits + c.cache_misses;
    let choices = host.config().choices();
    let choices: Vec<String> = choices.iter().map(|(k, v, _)| format!("{k}={v}")).collect();
    let op_rows = ops.names.iter().zip(&ops.meters).filter(|(_, m)| !m.latencies.is_empty());
    FilesRow {
        fs: format!("ext4,{}", choices.join(",")),
        run_s,
        ops: n_ops,
        ops_per_s: n_ops as f64 / run_s,
        ops_failed: ops.meters.iter().map(|m| m.failed).sum(),
        app_mib_s: n_bytes as f64 / MIB / run_s,
        journal_bytes: written(IoClass::Journal),
        metadata_bytes: written(IoClass::Metadata),
        data_bytes: written(IoClass::Data),
        journal_request_kib: kib(IoClass::Journal),
        metadata_request_kib: kib(IoClass::Metadata),
        data_request_kib: kib(IoClass::Data),
        read_bytes: IoClass::ALL.into_iter().map(|class| c.class(class).read_bytes).sum(),
        flushes: c.flushes,
        fua_writes: c.fua,
        discard_bytes: c.discard_bytes,
        commits: c.commits,
        blocks_per_commit: (c.commits > 0).then(|| c.log_blocks as f64 / c.commits as f64),
        journal_rounds: host.journal_rounds(),
        journal_size_bytes: host.journal_blocks().map(|n| n * 4096),
        journal_superblock_writes: c.journal_superblocks,
        checkpoint_blocks: c.checkpoint_blocks,
        cache_hit_part: (n_pages > 0).then(|| c.cache_hits as f64 / n_pages as f64),
        files: n_files,
        pieces_per_file: (n_files > 0).then(|| n_pieces as f64 / n_files as f64),
        free_bytes: host.free_blocks() * 4096,
        op_rows: op_rows.map(|(name, meter)| op_row(name, meter, run_s)).collect(),
    }
}

fn op_row(name: &str, meter: &OpMeter, run_s: f64) -> OpRow {
    let l = &meter.latencies;
    OpRow {
        name: name.to_owned(),
        ops: l.len(),
        ops_per_s: l.len() as f64 / run_s,
        mib_s: meter.bytes as f64 / MIB / run_s,
        mean_us: l.mean_us(),
        p50_us: l.quantile_us(0.5),
        p99_us: l.quantile_us(0.99),
        p999_us: l.quantile_us(0.999),
    }
}
