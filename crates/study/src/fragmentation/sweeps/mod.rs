//! Sweeps: the analysis half of the paper (its sections 2 to 4), on drives shaped like those
//! it measured.
//!
//! Reads go to the raw drive ([`closed_loop`]) where the paper used the raw device, and
//! through the modelled ext4 and block layer ([`through_host`]) where it read a file.

mod closed_loop;
mod counter_example;
mod dof;
mod dummy_write;
mod find;
mod fit;
mod ram;
mod request_size;
mod stride;
mod through_host;

use flashwise_hostfs::HostCosts;

use crate::fragmentation::Options;
use crate::{Cell, Line, Point};

/// Drives with a regular die map, which the paper uses throughout.
const NVME: [&str; 2] = ["nvme-a", "nvme-b"];
const SATA: [&str; 2] = ["sata-a", "sata-b"];

/// The host of the paper: a core of [`HostCosts::DEFAULT`], which is one at 2.8 GHz, at the
/// 2.0 GHz of its Xeon Gold 6138 (table 1).
const HOST: HostCosts = {
    let d = HostCosts::DEFAULT;
    HostCosts {
        syscall_ns: slower(d.syscall_ns),
        map_ns: slower(d.map_ns),
        bio_ns: slower(d.bio_ns),
        bio_page_ns: slower(d.bio_page_ns),
        request_ns: slower(d.request_ns),
        command_ns: slower(d.command_ns),
        wake_ns: slower(d.wake_ns),
        ..d
    }
};

/// That host where a drive has a queue. The kernel gets hold of the pages of one bio, 256 at
/// most, and submits it before it turns to the next one, so only those of the first delay a
/// drive that is slower than the host. The modelled host makes one bio of any length, so
/// they are put into the call. Source: Linux 5.15, fs/iomap/direct-io.c, `BIO_MAX_VECS`.
const HOST_WITH_QUEUE: HostCosts =
    HostCosts { syscall_ns: HOST.syscall_ns + 256 * HOST.bio_page_ns, bio_page_ns: 0, ..HOST };

/// [`HOST`] or [`HOST_WITH_QUEUE`], for so many requests at the drive at once.
const fn host(depth: u32) -> HostCosts {
    if depth > 1 { HOST_WITH_QUEUE } else { HOST }
}

const fn slower(ns: u64) -> u64 {
    ns * 28 / 20
}

/// The cells of all sweeps.
pub(crate) fn cells(options: &Options) -> Vec<Cell> {
    let mut cells = dof::cells();
    cells.extend(ram::cells());
    cells.extend(request_size::cells(options));
    cells.extend(stride::cells(options));
    cells.extend(dummy_write::cells());
    cells.extend(counter_example::cells());
    cells
}

/// A value that only some points have.
trait WithPublished {
    fn with_published(self, key: &'static str, value: Option<f64>) -> Self;
}

impl WithPublished for Point {
    fn with_published(self, key: &'static str, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

fn lines(points: Vec<Point>) -> Vec<Line> {
    points.into_iter().map(Line::from).collect()
}
