//! Loads that were measured once, at length, beside the model.
//!
//! The real ones: filebench on Linux 6.18, ext4 with 64 MiB of journal on 8 GiB, loop over
//! tmpfs, two cores, at most 128 MiB of dirty pages for the device, 25 s, one run each,
//! about 5 % apart from run to run; bios counted by tracepoints.
//! Those runs are bounded by time, not by work, and were limited by the CPU: shares of
//! bytes are comparable, bytes only as far as the model is as fast.

use flashwise_hostfs::{FsConfig, Host, RamDisk};
use flashwise_workload::AppSpec;
use serde::Serialize;

use super::wrap::Timed;
use super::{CompareError, Figures, LOOP_DEVICE};

/// CPU time of the program and the kernel beyond the model's own, per call \[ns\]: what
/// threads of a short varmail spent outside of fsync on the same two cores, with the
/// tracepoints on (0.6 s of 21,500 calls, two threads on each core).
const CALL_NS: u64 = 14_000;

/// A load that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Application and settings.
    pub load: &'static str,
    /// `data=` mode.
    pub mode: &'static str,
    /// Written \[MB\].
    pub written_mb: f64,
    /// Shares of journal, metadata and data in that \[%\].
    pub shares: [f64; 3],
    /// Mean requests of journal and data \[KiB\].
    pub request_kib: [f64; 2],
    /// Rounds of the ring.
    pub rounds: f64,
}

const fn row(
    load: &'static str,
    mode: &'static str,
    written_mb: f64,
    shares: [f64; 3],
    request_kib: [f64; 2],
    rounds: f64,
) -> Published {
    Published { load, mode, written_mb, shares, request_kib, rounds }
}

const VARMAIL: &str = "varmail,threads=4,runtime=25s";
const WEBPROXY: &str = "webproxy,threads=4,runtime=25s";
const FILESERVER: &str = "fileserver,threads=4,runtime=25s";
const OLTP: &str = "oltp,threads=4,runtime=25s";

/// All of them, in the order of the table they are from.
pub const PUBLISHED: [Published; 15] = [
    row(VARMAIL, "journal", 7517.0, [78.2, 0.0, 21.8], [24.0, 7.0], 87.0),
    row(VARMAIL, "ordered", 6000.0, [64.8, 0.0, 35.2], [21.0, 8.0], 57.0),
    row(VARMAIL, "writeback", 5944.0, [64.8, 0.0, 35.2], [21.0, 8.0], 57.0),
    row("varmail,threads=16,runtime=25s", "ordered", 2575.0, [48.0, 0.0, 52.0], [38.0, 8.0], 18.0),
    row("varmail,threads=16,runtime=25s", "journal", 2837.0, [68.4, 0.0, 31.6], [52.0, 7.0], 28.0),
    row(
        "varmail,files=20000,threads=4,runtime=25s",
        "journal",
        1573.0,
        [76.1, 2.1, 21.8],
        [24.0, 8.0],
        17.0,
    ),
    row(WEBPROXY, "journal", 6007.0, [64.6, 0.0, 35.3], [479.0, 11.0], 57.0),
    row(WEBPROXY, "ordered", 248.0, [4.7, 0.0, 95.3], [380.0, 375.0], 0.2),
    row(WEBPROXY, "writeback", 210.0, [5.5, 0.0, 94.4], [379.0, 389.0], 0.2),
    row(FILESERVER, "journal", 10_403.0, [52.7, 2.0, 45.3], [481.0, 11.0], 82.0),
    row(FILESERVER, "ordered", 17_057.0, [0.2, 0.0, 99.8], [452.0, 56.0], 0.4),
    row(FILESERVER, "writeback", 16_730.0, [0.1, 0.0, 99.9], [452.0, 54.0], 0.3),
    row("oltp,threads=11,runtime=25s", "journal", 4478.0, [66.0, 0.0, 34.0], [10.0, 5.0], 44.0),
    row(OLTP, "ordered", 1330.0, [0.0, 0.0, 100.0], [0.0, 5.0], 0.0),
    row(OLTP, "writeback", 2455.0, [0.0, 0.0, 100.0], [0.0, 5.0], 0.0),
];

impl Published {
    /// The same on the model, without a sync at the end. Write-back begins at half of the
    /// limit, as in the kernel where nothing else is said.
    pub fn modelled(&self) -> Result<Figures, CompareError> {
        let text = format!(
            "ext4,data={},journal-size=64m,request=1280k,segments=128,memory=16g,dirty=128m,\
             background=64m,cores=2",
            self.mode
        );
        let config =
            FsConfig::parse(&text).map_err(|source| CompareError::Config { text, source })?;
        let app = AppSpec::parse(self.load)
            .map_err(|source| CompareError::Load { load: self.load.to_owned(), source })?;
        let mut host = Host::new(Timed::slowed(app.build(1), CALL_NS), &config, 8 << 30)?;
        let mut disk = RamDisk::new(LOOP_DEVICE);
        host.run(|io| super::model::submit(&mut disk, io))?;
        Ok(Figures::modelled(&host, host.application().times()))
    }
}
