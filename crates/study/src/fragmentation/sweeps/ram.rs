//! The host's part in reading a file in pieces (Figures 4 to 6), on a RAM disk.
//!
//! The paper's figures contain its tracing. Its text gives two: the kernel's part of a read
//! in 256 pieces takes 9.7 ms, and at depth 1 that is 1.5 times the read of one piece. The
//! second is what the fixed time of a request at the RAM disk is set by, and nothing else
//! is; depth 128 follows.

use flashwise_hostfs::{HostCosts, RamDisk, RamSpeed};

use super::through_host::{FILE, HostRead, Pieces, fs, read_ram_disk};
use super::{HOST, WithPublished, lines};
use crate::{Cell, Line, Point, StudyError};

const DEVICE: &str = "ram disk";
const DOFS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// `nr_requests` of the paper; 128 is the RAM disk's default.
const DEPTHS: [u32; 2] = [1, 128];
/// Figure 6 is of this degree of fragmentation.
const OVERLAP_DOF: u64 = 128;

/// Pages of the file.
const PAGES: u64 = FILE / 4096;
/// Kernel time of a read in 256 pieces \[us\]. Source: section 3.1.
const PAPER_US: f64 = 9_700.0;
/// That by the time of one piece, at depth 1. Source: section 3.1.
const PAPER_RELATIVE: f64 = 1.5;

/// The host of the paper while it was traced: a page of a bio takes what one piece takes in
/// all, 9.7 ms / 1.5, by 2,048 pages. The rest is [`HOST`].
const TRACED: HostCosts = HostCosts { bio_page_ns: 2_640, ..HOST };

/// The RAM disk: copies as [`RamSpeed::DDR4`]. The fixed time of a request, in which another
/// thread wakes up and ends it, is calibrated on 1.5 times at depth 1.
const SPEED: RamSpeed = RamSpeed { request_ns: 9_400, ..RamSpeed::DDR4 };

/// One cell: all of it takes a few milliseconds.
pub(super) fn cells() -> Vec<Cell> {
    vec![Cell::new("dof-ram, dof-ram-parts and overlap", || {
        Ok([time()?, parts()?, overlap()?].concat())
    })]
}

fn read(dof: u64, depth: u32) -> Result<HostRead, StudyError> {
    read_ram_disk(&mut RamDisk::new(SPEED), &Pieces::of_section_3(dof), &fs(depth, TRACED))
}

fn series(depth: u32) -> String {
    format!("depth {depth}")
}

/// Figure 4.
fn time() -> Result<Vec<Line>, StudyError> {
    let mut points = vec![];
    for depth in DEPTHS {
        let whole = read(1, depth)?.ns as f64;
        for dof in DOFS {
            let ns = read(dof, depth)?.ns as f64;
            let published = match (depth, dof) {
                (_, 1) | (128, 256) => Some(1.0),
                (1, 256) => Some(PAPER_RELATIVE),
                _ => None,
            };
            let point = Point::new("dof-ram", DEVICE, series(depth), dof as f64)
                .with("read_ms", ns / 1e6)
                .with("relative", ns / whole)
                .with_published("paper_relative", published);
            points.push(point);
        }
    }
    Ok(lines(points))
}

/// What a read is made of \[us\]. The parts and the rest add up to the whole.
struct Parts {
    iomap_us: f64,
    bio_us: f64,
    /// CPU time of making requests and giving them to the driver.
    create_us: f64,
    /// Waiting for a free request.
    slot_us: f64,
    /// From the last request on.
    rest_us: f64,
}

impl Parts {
    /// Costs are known; waiting for requests is what is left before the last one is sent.
    fn of(read: &HostRead) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let n_requests = read.requests.len() as u64;
        let last_ns = read.requests.last().map_or(0, |r| r.0);
        let iomap_us = us(read.n_pieces * TRACED.map_ns);
        let bio_us = us(read.n_pieces * TRACED.bio_ns + PAGES * TRACED.bio_page_ns);
        let create_us = us(n_requests * (TRACED.request_ns + TRACED.command_ns));
        let cpu_us = us(TRACED.syscall_ns) + iomap_us + bio_us + create_us;
        let slot_us = us(last_ns) - cpu_us;
        Self { iomap_us, bio_us, create_us, slot_us, rest_us: us(read.ns - last_ns) }
    }
}

/// Figure 5. At depth 1 a request is there when the one before has ended, so its creation
/// contains the wait for that, as in the paper's trace of the read call.
fn parts() -> Result<Vec<Line>, StudyError> {
    let mut points = vec![];
    for depth in DEPTHS {
        for dof in DOFS {
            let read = read(dof, depth)?;
            let p = Parts::of(&read);
            let paper_us = (depth == 1).then_some(match dof {
                1 => Some(PAPER_US / PAPER_RELATIVE),
                256 => Some(PAPER_US),
                _ => None,
            });
            let point = Point::new("dof-ram-parts", DEVICE, series(depth), dof as f64)
                .with("iomap_us", p.iomap_us)
                .with("bio_us", p.bio_us)
                .with("request_us", p.create_us + p.slot_us)
                .with("slot_wait_us", p.slot_us.max(0.0))
                .with("after_last_us", p.rest_us)
                .with("total_us", read.ns as f64 / 1e3)
                .with_published("paper_total_us", paper_us.flatten());
            points.push(point);
        }
    }
    Ok(lines(points))
}

/// Figure 6: making requests beside the device's work on those before.
fn overlap() -> Result<Vec<Line>, StudyError> {
    let mut points = vec![];
    for depth in DEPTHS {
        let read = read(OVERLAP_DOF, depth)?;
        let p = Parts::of(&read);
        let host_us = p.iomap_us + p.bio_us + p.create_us;
        let busy_us = union_ns(&read.requests) as f64 / 1e3;
        let total_us = read.ns as f64 / 1e3;
        // Some of the total is neither: the call itself and waking up.
        let idle_us = (TRACED.syscall_ns + TRACED.wake_ns) as f64 / 1e3;
        let both_us = host_us + busy_us + idle_us - total_us;
        let each_us: u64 = read.requests.iter().map(|r| r.1 - r.0).sum();
        let point = Point::new("overlap", DEVICE, series(depth), OVERLAP_DOF as f64)
            .with("create_us", host_us)
            .with("device_us", busy_us)
            .with("requests_us", each_us as f64 / 1e3)
            .with("total_us", total_us)
            .with("overlap_us", both_us)
            .with("overlap_of_create_part", both_us / host_us)
            .with("overlap_of_device_part", both_us / busy_us);
        points.push(point);
    }
    Ok(lines(points))
}

/// Time during which at least one request is at the device; they are in order of begin.
fn union_ns(requests: &[(u64, u64)]) -> u64 {
    let (mut busy_ns, mut until_ns) = (0, 0);
    for &(at_ns, done_ns) in requests {
        busy_ns += done_ns.saturating_sub(at_ns.max(until_ns));
        until_ns = until_ns.max(done_ns);
    }
    busy_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_at_the_device_counts_once() {
        assert_eq!(union_ns(&[(0, 10), (5, 8), (8, 12), (20, 21)]), 13);
    }

    #[test]
    fn parts_and_rest_are_the_whole_read() {
        for (dof, depth) in [(1, 1), (256, 1), (256, 128)] {
            let read = read(dof, depth).unwrap();
            let p = Parts::of(&read);
            let sum = p.iomap_us + p.bio_us + p.create_us + p.slot_us + p.rest_us;
            let call = TRACED.syscall_ns as f64 / 1e3;
            assert!((sum + call - read.ns as f64 / 1e3).abs() < 1e-6);
            assert!(p.slot_us > -1e-6 && p.rest_us > 0.0);
            // Nothing waits for a request where there are enough.
            assert_eq!(p.slot_us < 1e-6, depth == 128, "{dof} {depth}: {}", p.slot_us);
        }
    }
}
