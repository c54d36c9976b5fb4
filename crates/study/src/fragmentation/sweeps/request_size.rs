//! Reads of 8 MiB of a raw drive in requests of one size (Figure 7): what splitting a read
//! costs without a file system, at depth 1 and in a queue.

use flashwise_ssd::RelationPolicy;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::closed_loop::{Loop, RawDrive};
use super::fit::slope;
use super::{NVME, SATA, WithPublished, lines};
use crate::fragmentation::{Options, device::Device};
use crate::{Cell, Line, Point, StudyError};

const SWEEP: &str = "request-size";
const SLOPE: &str = "request-size-slope";
/// Read in all \[bytes\]. Source: section 3.1.
const TOTAL: u64 = 8 << 20;
/// Written before, in order \[bytes\]. Source: section 3.1.
const REGION: u64 = 1 << 30;
/// Request sizes \[bytes\]. Source: the artifact's `interface` scripts.
const SIZES: std::ops::RangeInclusive<u32> = 12..=23;
/// Smallest size of the paper's text \[bytes\].
const TEXT_SIZE_MIN: u64 = 32 << 10;
const DEPTHS: [usize; 2] = [1, 32];

/// Time of the host for each read at depth 1: its core has nothing else to do and falls
/// asleep. Calibrated on the 85 us that a request adds on NVMe; that of SATA follows.
const GAP_NS: u64 = 58_000;

/// A cell for each kind of drive, as the paper's slopes are.
pub(super) fn cells(options: &Options) -> Vec<Cell> {
    let n_rounds = if options.quick { 2 } else { 10 };
    let seed = options.seed;
    let kinds = [("nvme", NVME, 85.0), ("sata", SATA, 136.0)];
    let cell = |(kind, drives, paper_us): (&'static str, [&'static str; 2], f64)| {
        Cell::new(format!("{SWEEP} on {kind}"), move || {
            sweep(kind, drives, paper_us, n_rounds, seed)
        })
    };
    kinds.into_iter().map(cell).collect()
}

fn sweep(
    kind: &str,
    drives: [&'static str; 2],
    paper_us: f64,
    n_rounds: u64,
    seed: u64,
) -> Result<Vec<Line>, StudyError> {
    let (mut points, mut slopes) = (vec![], vec![]);
    for depth in DEPTHS {
        let mut of_kind = vec![];
        for drive in drives {
            let of_drive = times(drive, depth, n_rounds, seed)?;
            let point = |&(bytes, ms): &(u64, f64)| {
                Point::new(SWEEP, drive, format!("depth {depth}"), (bytes >> 10) as f64)
                    .with("read_ms", ms)
                    .with("requests", (TOTAL / bytes) as f64)
            };
            points.extend(of_drive.iter().map(point));
            slopes.push(slope_point(drive, depth, &of_drive, None));
            of_kind.extend(of_drive);
        }
        // The text has one slope for both drives of a kind; in a queue it sees none.
        let paper_us = if depth == 1 { paper_us } else { 0.0 };
        slopes.push(slope_point(kind, depth, &of_kind, Some(paper_us)));
    }
    points.extend(slopes);
    Ok(lines(points))
}

/// Request size \[bytes\] and time of the reads, the mean of the rounds \[ms\].
fn times(
    drive: &'static str,
    depth: usize,
    n_rounds: u64,
    seed: u64,
) -> Result<Vec<(u64, f64)>, StudyError> {
    let ssd = Device::new(drive, &[]).fresh(RelationPolicy::None)?;
    let mut raw = RawDrive::written(ssd, REGION);
    let reads = Loop { depth, gap_ns: if depth == 1 { GAP_NS } else { 0 } };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut times = vec![];
    for bytes in SIZES.map(|log| 1 << log) {
        let mut ns = 0;
        for _ in 0..n_rounds {
            let offset = |_| rng.next_u64() % (REGION / bytes) * bytes;
            let offsets: Vec<u64> = (0..TOTAL / bytes).map(offset).collect();
            ns += raw.read_all(reads, bytes, offsets)?;
        }
        times.push((bytes, ns as f64 / n_rounds as f64 / 1e6));
    }
    Ok(times)
}

/// What a request adds \[us\], with the sizes of the artifact and with those of the text.
fn slope_point(device: &str, depth: usize, times: &[(u64, f64)], paper_us: Option<f64>) -> Point {
    let slope_us = |min: u64| {
        let points = times.iter().filter(|t| t.0 >= min);
        let points: Vec<(f64, f64)> =
            points.map(|&(bytes, ms)| ((TOTAL / bytes) as f64, ms * 1e3)).collect();
        slope(&points)
    };
    let range = times.iter().filter(|t| t.0 >= TEXT_SIZE_MIN).map(|t| t.1);
    let (min, max) = range.fold((f64::INFINITY, 0.0_f64), |(a, b), ms| (a.min(ms), b.max(ms)));
    Point::new(SLOPE, device, format!("depth {depth}"), depth as f64)
        .with("slope_us", slope_us(0))
        .with("slope_from_32_kib_us", slope_us(TEXT_SIZE_MIN))
        .with("spread_from_32_kib_ms", max - min)
        .with_published("paper_slope_us", paper_us)
}
