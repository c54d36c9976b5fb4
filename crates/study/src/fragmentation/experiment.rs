//! One workload on one device: the contiguous files, then every policy, fresh and aged.

use flashwise_hostfs::PathId;
use flashwise_ssd::{Lpn, RelationPolicy, Ssd};

use super::device::{Device, artifact_fs};
use super::plan::{Files, Plan};
use super::published;
use super::read::{ReadFigures, Reader};
use super::write::{Piece, Tenant, Written, write_files};
use crate::{Line, StudyError, WorkloadRow};

/// A workload.
pub(crate) struct Experiment {
    /// Name in the rows.
    pub(crate) workload: &'static str,
    /// Name of the contiguous case in the rows.
    pub(crate) contiguous: &'static str,
    /// The same files without interference.
    pub(crate) contiguous_plan: Box<dyn Fn() -> (Plan, Files) + Send + Sync>,
    /// The workload, with a seed.
    pub(crate) plan: Box<dyn Fn(u64) -> (Plan, Files) + Send + Sync>,
    /// Runs with seeds 0 and on, whose figures are averaged as the artifact does.
    pub(crate) n_seeds: u64,
    /// Files that are read, the first so many.
    pub(crate) n_files: usize,
    /// Times each is read.
    pub(crate) n_reads: usize,
    /// Who reads.
    pub(crate) reader: Reader,
    /// Share of the files' units that collection moves between writing and reading on the
    /// aged drive, unless `STEADY_WRITES_MAX` come first.
    pub(crate) moved_part: f64,
    /// Size of the file system; the rest of the drive is somebody else's \[bytes\].
    pub(crate) fs_bytes: u64,
}

/// Longest the other tenant goes on before the files are read \[drive writes\].
const STEADY_WRITES_MAX: f64 = 1.0;
/// Steps of that.
const STEADY_STEPS: u64 = 16;
/// Runs on the aged drive: one for so many on the fresh one.
const AGED_SEEDS_PART: u64 = 4;

/// Means over the seeds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) read: ReadFigures,
    pub(crate) write_mib_s: f64,
    waf: f64,
    pieces_per_file: f64,
    pub(crate) hints_yielded: u64,
    moved_part: f64,
}

impl Experiment {
    /// Rows of this workload on a fresh `device`, the contiguous case first, and on an aged
    /// one, each for the policies that are to be shown there.
    pub(crate) fn run(
        &self,
        device: &Device,
        policies: &[RelationPolicy],
        aged: &Device,
        aged_policies: &[RelationPolicy],
    ) -> Result<Vec<Line>, StudyError> {
        let contiguous = self.contiguous(device)?;
        let whole = contiguous.read.mib_s;
        let mut row = self.row(device, self.contiguous, RelationPolicy::None, &contiguous);
        row.normalized = 1.0;
        row.paper_read_mib_s =
            published::of(self.workload).filter(|_| device.is_papers()).map(|p| p.contiguous_mib_s);
        let mut lines = vec![row.into()];
        // The aged drive is a smaller one, so it has a contiguous case of its own.
        let aged_whole = self.contiguous(aged)?.read.mib_s;
        for &policy in policies {
            let fresh = self.mean(device, policy, false, self.n_seeds)?;
            let mut row = self.row(device, self.workload, policy, &fresh);
            row.normalized = fresh.read.mib_s / whole;
            lines.push(row.into());
            if aged_policies.contains(&policy) {
                lines.push(self.aged_row(aged, policy, aged_whole)?.into());
            }
        }
        Ok(lines)
    }

    fn aged_row(
        &self,
        device: &Device,
        policy: RelationPolicy,
        whole: f64,
    ) -> Result<WorkloadRow, StudyError> {
        let n_seeds = self.n_seeds.div_ceil(AGED_SEEDS_PART);
        let fresh = self.mean(device, policy, false, n_seeds)?;
        let aged = self.mean(device, policy, true, n_seeds)?;
        let mut row = self.row(device, &format!("{}-aged", self.workload), policy, &aged);
        row.normalized = aged.read.mib_s / whole;
        row.of_fresh = Some(aged.read.mib_s / fresh.read.mib_s);
        row.moved_part = Some(aged.moved_part);
        Ok(row)
    }

    pub(crate) fn contiguous(&self, device: &Device) -> Result<Figures, StudyError> {
        let (plan, files) = (self.contiguous_plan)();
        let ssd = device.fresh(RelationPolicy::None)?;
        let n = self.n_files.min(files.ids.len());
        let written = write_files(
            ssd,
            &artifact_fs(self.fs_bytes),
            plan,
            &files.ids[..n],
            None,
            self.contiguous,
        )?;
        self.figures(written, 0.0)
    }

    pub(crate) fn mean(
        &self,
        device: &Device,
        policy: RelationPolicy,
        aged: bool,
        n_seeds: u64,
    ) -> Result<Figures, StudyError> {
        let mut sum = Figures::default();
        for seed in 0..n_seeds {
            let f = self.once(device, policy, aged, seed)?;
            sum.read.mib_s += f.read.mib_s;
            sum.read.die_collisions += f.read.die_collisions;
            sum.read.senses_per_256_kib += f.read.senses_per_256_kib;
            sum.write_mib_s += f.write_mib_s;
            sum.waf += f.waf;
            sum.pieces_per_file += f.pieces_per_file;
            sum.hints_yielded += f.hints_yielded;
            sum.moved_part += f.moved_part;
        }
        let n = n_seeds as f64;
        Ok(Figures {
            read: ReadFigures {
                mib_s: sum.read.mib_s / n,
                die_collisions: sum.read.die_collisions / n_seeds,
                senses_per_256_kib: sum.read.senses_per_256_kib / n,
            },
            write_mib_s: sum.write_mib_s / n,
            waf: sum.waf / n,
            pieces_per_file: sum.pieces_per_file / n,
            hints_yielded: sum.hints_yielded / n_seeds,
            moved_part: sum.moved_part / n,
        })
    }

    fn once(
        &self,
        device: &Device,
        policy: RelationPolicy,
        aged: bool,
        seed: u64,
    ) -> Result<Figures, StudyError> {
        let ssd = if aged { device.aged(policy)? } else { device.fresh(policy)? };
        let (plan, files) = (self.plan)(seed);
        let n = self.n_files.min(files.ids.len());
        let wanted: &[PathId] = &files.ids[..n];
        let mut tenant = aged.then(|| Tenant::new(&ssd, self.fs_bytes, seed));
        let mut written = write_files(
            ssd,
            &artifact_fs(self.fs_bytes),
            plan,
            wanted,
            tenant.as_mut(),
            self.workload,
        )?;
        let moved = match &mut tenant {
            Some(tenant) => collect_steadily(&mut written, tenant, self.moved_part),
            None => 0.0,
        };
        self.figures(written, moved)
    }

    fn figures(&self, mut written: Written, moved_part: f64) -> Result<Figures, StudyError> {
        let after = written.ssd.counters().since(&written.before).ftl;
        let n_pieces: usize = written.files.iter().map(Vec::len).sum();
        let pieces_per_file = n_pieces as f64 / written.files.len().max(1) as f64;
        let reads = (0..self.n_reads).flat_map(|_| &written.files).map(Vec::as_slice);
        Ok(Figures {
            read: self.reader.read(&mut written.ssd, reads)?,
            write_mib_s: written.mib_s,
            waf: after.waf().unwrap_or(1.0),
            pieces_per_file,
            hints_yielded: after.hints_yielded,
            moved_part,
        })
    }

    fn row(
        &self,
        device: &Device,
        workload: &str,
        policy: RelationPolicy,
        f: &Figures,
    ) -> WorkloadRow {
        let of_policy = match policy {
            RelationPolicy::None => Some(0),
            RelationPolicy::Hints => Some(1),
            RelationPolicy::Chain => None,
        };
        let paper = published::of(workload).zip(of_policy).filter(|_| device.is_papers());
        let readme = paper.map(|(p, i)| p.readme_mib_s[i]);
        WorkloadRow {
            workload: workload.to_owned(),
            policy: policy.name().to_owned(),
            device: device.name(),
            read_mib_s: f.read.mib_s,
            paper_read_mib_s: readme,
            paper_normalized: paper.map(|(p, i)| p.readme_mib_s[i] / p.contiguous_mib_s),
            paper_fig12: paper.and_then(|(p, i)| p.fig12[i]),
            write_mib_s: f.write_mib_s,
            die_collisions: f.read.die_collisions,
            senses_per_256_kib: f.read.senses_per_256_kib,
            waf: f.waf,
            pieces_per_file: f.pieces_per_file,
            hints_yielded: f.hints_yielded,
            ..WorkloadRow::default()
        }
    }
}

/// Lets the other tenant write until collection has moved `enough` of the files; the part of
/// their units that is elsewhere then.
fn collect_steadily(written: &mut Written, tenant: &mut Tenant, enough: f64) -> f64 {
    let Written { ssd, files, .. } = written;
    let per_unit = ssd.sectors_per_unit();
    let before = places(ssd, files);
    let drive_units = ssd.capacity_sectors() / per_unit;
    let step = (drive_units as f64 * STEADY_WRITES_MAX / STEADY_STEPS as f64 / 8.0) as u64;
    let mut moved = 0.0;
    for _ in 0..STEADY_STEPS {
        tenant.write_at_rest(ssd, step);
        let now = places(ssd, files);
        let n_moved = before.iter().zip(&now).filter(|(a, b)| a != b).count();
        moved = n_moved as f64 / before.len().max(1) as f64;
        if moved >= enough {
            break;
        }
    }
    moved
}

/// Where each unit of the files is.
fn places(ssd: &Ssd, files: &[Vec<Piece>]) -> Vec<u32> {
    let per_unit = ssd.sectors_per_unit();
    let units =
        files.iter().flatten().flat_map(|p| p.lba / per_unit..(p.lba + p.sectors) / per_unit);
    units.filter_map(|unit| ssd.ftl().lookup(Lpn(unit as u32))).map(|ppn| ppn.0).collect()
}
