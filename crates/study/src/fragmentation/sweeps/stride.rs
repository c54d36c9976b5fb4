//! Reads of 4 KiB at random multiples of a stride (Figure 8): what a drive puts on a die
//! before it goes on to the next one, and after how much it begins again, seen from outside.

use std::iter::repeat_with;

use flashwise_ssd::{RelationPolicy, Ssd};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::closed_loop::{Loop, RawDrive};
use super::find::{Curve, found};
use super::{WithPublished, lines};
use crate::fragmentation::{Options, device::Device};
use crate::{Cell, Line, Point, StudyError};

const SWEEP: &str = "stride";
const FOUND: &str = "stride-found";
/// Written before, in order \[bytes\]. Source: the artifact's `alignment` scripts.
const FILE: u64 = 2 << 30;
/// Length of a read \[bytes\].
const READ: u64 = 4 << 10;
/// Step and last of the strides \[KiB\]. Source: section 3.2.
const STEP_KIB: u64 = 4;
const LAST_KIB: u64 = 1024;
/// 8 jobs with 4 reads under way each. Source: the artifact's `alignment` scripts.
const LOOP: Loop = Loop { depth: 32, gap_ns: 0 };

/// A drive of Figure 8: the preset, and what the paper found with it.
struct Drive {
    preset: &'static str,
    /// Stripe \[KiB\], from the text.
    paper_stripe_kib: f64,
    /// What goes to one die at a time \[KiB\], from the text; none where dips are not at
    /// powers of two.
    paper_grain_kib: Option<f64>,
    /// Published throughputs: stride \[KiB\], MB/s.
    paper_mb_s: &'static [(u64, f64)],
}

const DRIVES: [Drive; 6] = [
    drive("nvme-a", 1024.0, Some(32.0), &[(4, 2600.0), (1024, 166.0)]),
    drive("nvme-b", 256.0, Some(32.0), &[(4, 3020.0), (256, 480.0)]),
    drive("nvme-c", 584.0, None, &[]),
    drive("nvme-d", 604.0, None, &[]),
    drive("sata-a", 32.0, Some(4.0), &[(4, 400.0), (32, 62.0)]),
    drive("sata-b", 256.0, Some(16.0), &[(4, 400.0), (256, 82.0)]),
];

const fn drive(
    preset: &'static str,
    paper_stripe_kib: f64,
    paper_grain_kib: Option<f64>,
    paper_mb_s: &'static [(u64, f64)],
) -> Drive {
    Drive { preset, paper_stripe_kib, paper_grain_kib, paper_mb_s }
}

/// A cell for each drive.
pub(super) fn cells(options: &Options) -> Vec<Cell> {
    let n_reads = if options.quick { 800 } else { 4_000 };
    let seed = options.seed;
    let cell = |drive: &'static Drive| {
        let name = format!("{SWEEP} on {}", drive.preset);
        Cell::new(name, move || sweep(drive, n_reads, seed))
    };
    DRIVES.iter().map(cell).collect()
}

fn sweep(drive: &Drive, n_reads: u64, seed: u64) -> Result<Vec<Line>, StudyError> {
    let ssd = Device::new(drive.preset, &[]).fresh(RelationPolicy::None)?;
    let mut raw = RawDrive::written(ssd, FILE);
    let mut curve = vec![];
    for stride_kib in (STEP_KIB..=LAST_KIB).step_by(STEP_KIB as usize) {
        curve.push((stride_kib, throughput(&mut raw, stride_kib << 10, n_reads, seed)?));
    }
    let point = |&(stride_kib, mb_s): &(u64, f64)| {
        let paper = drive.paper_mb_s.iter().find(|p| p.0 == stride_kib).map(|p| p.1);
        Point::new(SWEEP, drive.preset, "4 KiB reads", stride_kib as f64)
            .with("read_mb_s", mb_s)
            .with_published("paper_mb_s", paper)
    };
    let mut points: Vec<Point> = curve.iter().map(point).collect();
    points.push(found_point(drive, &raw.ssd, &Curve { points: curve, depth: LOOP.depth }));
    Ok(lines(points))
}

/// What the reads come to \[MB/s\].
fn throughput(raw: &mut RawDrive, stride: u64, n_reads: u64, seed: u64) -> Result<f64, StudyError> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ stride);
    let n_places = FILE / stride;
    let offset = || ((u128::from(rng.next_u64()) * u128::from(n_places)) >> 64) as u64 * stride;
    let n_before = n_reads / 8;
    let offsets = repeat_with(offset).take((n_before + n_reads + 1) as usize);
    let ns = raw.read_steadily(LOOP, READ, offsets, n_before as usize)?;
    Ok((n_reads * READ) as f64 * 1e3 / ns as f64)
}

/// What the curve says, beside what the drive is and what the paper found.
fn found_point(drive: &Drive, ssd: &Ssd, curve: &Curve) -> Point {
    let found = found(curve);
    let (grain, stripe) = made_of(ssd);
    Point::new(FOUND, drive.preset, "from the curve", 0.0)
        .with("stripe_kib", found.stripe_kib as f64)
        .with("preset_stripe_kib", stripe)
        .with("paper_stripe_kib", drive.paper_stripe_kib)
        .with("grain_kib", found.grain_kib as f64)
        .with("grain_below_kib", found.grain_below_kib as f64)
        .with("preset_grain_kib", grain)
        .with_published("paper_grain_kib", drive.paper_grain_kib)
        .with("dies_by_depth_of_dip", found.n_dies)
        .with("preset_dies", stripe / grain)
        .with("slowest_part", found.slowest_part)
        .with("period_error", found.period_error)
}

/// What goes to one die at a time, and the stripe \[KiB\].
fn made_of(ssd: &Ssd) -> (f64, f64) {
    let config = ssd.config();
    let g = &config.geometry;
    let unit_kib = g.page_kib * f64::from(g.planes);
    let grain = if config.ftl.grain_kib > 0.0 { config.ftl.grain_kib } else { unit_kib };
    (grain, grain * f64::from(g.channels * g.dies_per_channel))
}
