//! One line of results. Every key ends in its unit; what cannot be said (the
//! latency of reads where there were none) is null, never a made-up number.

use serde::Serialize;

/// Where the relation hints of writes came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Relations {
    /// None were used.
    #[default]
    None,
    /// The workload has them.
    Carried,
    /// Taken from addresses: mapped = overwrite, predecessor mapped = append.
    Inferred,
}

/// Bytes of host writes by the class they carried. Writes without a class are in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassBytes {
    /// Bytes of a journal.
    pub bytes_journal: u64,
    /// Bytes of other file-system metadata.
    pub bytes_metadata: u64,
    /// Bytes of hot data.
    pub bytes_hot: u64,
    /// Bytes of cold data.
    pub bytes_cold: u64,
}

/// Figures of one workload under one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Workload.
    pub workload: String,
    /// Policy, as given.
    pub policy: String,
    /// Requests of all kinds; all were carried out.
    pub requests: u64,
    /// Reads.
    pub read_requests: u64,
    /// Writes (write zeroes included).
    pub write_requests: u64,
    /// Trims.
    pub trim_requests: u64,
    /// Flushes.
    pub flush_requests: u64,
    /// From the first arrival to the last completion \[s\].
    pub elapsed_s: f64,
    /// Read and written \[MiB/s\].
    pub host_mib_s: f64,
    /// Read \[MiB/s\].
    pub read_mib_s: f64,
    /// Written \[MiB/s\].
    pub write_mib_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// Mean latency of reads \[us\].
    pub read_mean_us: Option<f64>,
    /// Median \[us\].
    pub read_p50_us: Option<f64>,
    /// 99 % of reads are faster \[us\].
    pub read_p99_us: Option<f64>,
    /// 99.9 % of reads are faster \[us\].
    pub read_p999_us: Option<f64>,
    /// Slowest read \[us\].
    pub read_max_us: Option<f64>,
    /// Mean latency of writes \[us\].
    pub write_mean_us: Option<f64>,
    /// Median \[us\].
    pub write_p50_us: Option<f64>,
    /// 99 % of writes are faster \[us\].
    pub write_p99_us: Option<f64>,
    /// 99.9 % of writes are faster \[us\].
    pub write_p999_us: Option<f64>,
    /// Slowest write \[us\].
    pub write_max_us: Option<f64>,
    /// Bytes programmed by bytes written by the host.
    pub waf: Option<f64>,
    /// Bytes the host wrote.
    pub bytes_host: u64,
    /// Bytes moved by garbage collection.
    pub bytes_gc: u64,
    /// Bytes of failed programs, programmed again elsewhere.
    pub bytes_redo: u64,
    /// Bytes folded from SLC to native blocks.
    pub bytes_fold: u64,
    /// Bytes of padding.
    pub bytes_padding: u64,
    /// Bytes rewritten because a mapping unit was written in part.
    pub bytes_rmw: u64,
    /// Bytes of trim records.
    pub bytes_meta: u64,
    /// Host bytes that replaced buffered data and were never programmed.
    pub bytes_coalesced: u64,
    /// What the host's writes said about their data, if any said something.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassBytes>,
    /// Blocks erased.
    pub erases: u64,
    /// Most erases of one block, over the life of the drive.
    pub erase_max: u32,
    /// That number by the cycles a block is good for.
    pub life_used: f64,
    /// Most erases of a block less the fewest, over the drive.
    pub erase_spread: u32,
    /// Bytes the host can write before the blocks reach their endurance, from new and at
    /// this run's write amplification \[TB, 10^12 bytes\]; wear is assumed level.
    pub tbw_tb: Option<f64>,
    /// Time until then, from now and at the rate of this run \[years\].
    pub life_years: Option<f64>,
    /// Blocks chosen by garbage collection.
    pub gc_runs: u64,
    /// Blocks emptied because they lagged behind in wear.
    pub leveling_runs: u64,
    /// Blocks emptied because they were read often or held old data.
    pub scrub_runs: u64,
    /// Additional senses of pages that could not be read at first.
    pub read_retries: u64,
    /// Blocks that are bad.
    pub bad_blocks: u32,
    /// Blocks that can still fail before the drive becomes read-only, at best.
    pub spare_blocks: u64,
    /// Free blocks at the end.
    pub free_blocks: u64,
    /// Senses that waited for their die.
    pub die_collisions: u64,
    /// Senses for host reads.
    pub page_reads: u64,
    /// Mapping units served from the write buffer.
    pub buffer_hits: u64,
    /// Time planes were busy, as a part of all planes' time.
    pub die_utilization: f64,
    /// Time channels were busy, as a part of all channels' time.
    pub channel_utilization: f64,
    /// Time the busier direction of the link was busy.
    pub link_utilization: f64,
    /// Valid units of the fullest die by the mean of all dies.
    pub die_imbalance: f64,
    /// The resource that bounds throughput.
    pub bottleneck: String,
    /// Requests whose address was changed to fit the drive.
    pub fitted_requests: u64,
    /// Where relation hints came from.
    pub relations: Relations,
    /// Units whose hinted die was passed over.
    pub hints_yielded: u64,
    /// Mean requests in flight (by Little's law, from latencies).
    pub in_flight_mean: f64,
    /// Hash of all completions and final counters.
    pub digest: String,
    /// Why the run ended before its workload did: the drive became read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// What an application on a file system got, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Box<crate::files::FilesRow>>,
    /// Figures of each job, if the workload is made of jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobRow>,
    /// CPU time of the replay \[s\] (only when timed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Mapping units read and written per CPU second (only when timed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_pages_per_cpu_s: Option<f64>,
}

/// Figures of one job among several on the same drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobRow {
    /// Name of the job.
    pub name: String,
    /// Requests of all kinds.
    pub requests: u64,
    /// Reads.
    pub read_requests: u64,
    /// Writes.
    pub write_requests: u64,
    /// Trims.
    pub trim_requests: u64,
    /// Flushes.
    pub flush_requests: u64,
    /// From its first measured request to its last completion \[s\].
    pub elapsed_s: f64,
    /// Read and written \[MiB/s\].
    pub host_mib_s: f64,
    /// Read \[MiB/s\].
    pub read_mib_s: f64,
    /// Written \[MiB/s\].
    pub write_mib_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// Mean latency of reads \[us\].
    pub read_mean_us: Option<f64>,
    /// Median \[us\].
    pub read_p50_us: Option<f64>,
    /// 99 % of reads are faster \[us\].
    pub read_p99_us: Option<f64>,
    /// Mean latency of writes \[us\].
    pub write_mean_us: Option<f64>,
    /// Median \[us\].
    pub write_p50_us: Option<f64>,
    /// 99 % of writes are faster \[us\].
    pub write_p99_us: Option<f64>,
    /// Median latency of flushes \[us\].
    pub flush_p50_us: Option<f64>,
    /// 99 % of flushes are faster \[us\].
    pub flush_p99_us: Option<f64>,
}
