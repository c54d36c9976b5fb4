//! Writing files through the modelled ext4 onto a drive, alone or beside another tenant.

use flashwise_hint::{Lba, SECTOR_BYTES, WriteHint};
use flashwise_hostfs::{FsConfig, Host, Io, IoClass, IoOp, PathId};
use flashwise_ssd::{Command, Lpn, Ssd, SsdCounters};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::plan::Plan;
use crate::StudyError;

pub(crate) const MIB: f64 = (1 << 20) as f64;

/// A run of blocks of a file, where they lie on the device \[512-byte sectors\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) lba: u64,
    pub(crate) sectors: u64,
}

/// A drive with files on it.
pub(crate) struct Written {
    pub(crate) ssd: Ssd,
    /// The pieces of each file, in its order.
    pub(crate) files: Vec<Vec<Piece>>,
    /// Bytes written by the time it took, preparation left out \[MiB/s\].
    pub(crate) mib_s: f64,
    /// Counters before the first write.
    pub(crate) before: SsdCounters,
}

/// Somebody else on the drive: overwrites of 32 KiB at random places of a range of it,
/// without hints.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    rng: Xoshiro256PlusPlus,
    first_unit: u64,
    n_places: u64,
}

/// Size of the tenant's writes \[mapping units of 4 KiB\].
const TENANT_UNITS: u64 = 8;

impl Tenant {
    /// A tenant of the drive from `first_bytes` on.
    pub(crate) fn new(ssd: &Ssd, first_bytes: u64, seed: u64) -> Self {
        let per_unit = ssd.sectors_per_unit();
        let first_unit = first_bytes / SECTOR_BYTES / per_unit;
        let n_places = (ssd.capacity_sectors() / per_unit - first_unit) / TENANT_UNITS;
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), first_unit, n_places }
    }

    fn next_unit(&mut self) -> u64 {
        let place = (u128::from(self.rng.next_u64()) * u128::from(self.n_places)) >> 64;
        self.first_unit + place as u64 * TENANT_UNITS
    }

    fn write(&mut self, ssd: &mut Ssd, now_ns: u64) -> Result<(), StudyError> {
        let per_unit = ssd.sectors_per_unit();
        let lba = Lba(self.next_unit() * per_unit);
        let sectors = (TENANT_UNITS * per_unit) as u32;
        let command = Command::Write { lba, sectors, fua: false, hint: WriteHint::NONE };
        submit(ssd, &command, now_ns, "the other tenant")?;
        Ok(())
    }

    /// So many of its writes, without time.
    pub(crate) fn write_at_rest(&mut self, ssd: &mut Ssd, n: u64) {
        for _ in 0..n {
            let first = self.next_unit();
            (first..first + TENANT_UNITS).for_each(|unit| ssd.fill_unit(Lpn(unit as u32)));
        }
    }
}

/// Submits a command of `what`.
pub(crate) fn submit(
    ssd: &mut Ssd,
    command: &Command,
    now_ns: u64,
    what: &str,
) -> Result<u64, StudyError> {
    ssd.submit(command, now_ns)
        .map_err(|source| StudyError::Command { what: what.to_owned(), source })
}

/// Carries out `plan` on a new file system on `ssd`; the pieces of `files` afterwards. The
/// tenant writes once after each write of data.
pub(crate) fn write_files(
    mut ssd: Ssd,
    fs: &FsConfig,
    plan: Plan,
    files: &[PathId],
    mut tenant: Option<&mut Tenant>,
    what: &str,
) -> Result<Written, StudyError> {
    let host_error = |source| StudyError::Host { what: what.to_owned(), source };
    let start_ns = ssd.rest();
    let before = ssd.counters();
    let device_bytes = ssd.capacity_sectors() * SECTOR_BYTES;
    let request_bytes = fs.request_bytes.min(ssd.max_sectors() * SECTOR_BYTES as u32);
    let fs = FsConfig { request_bytes, ..fs.clone() };
    let mut host = Host::new(plan, &fs, device_bytes).map_err(host_error)?;
    let mut bytes = 0;
    while let Some(io) = host.next_io() {
        let now_ns = start_ns + io.at_ns;
        let done_ns = submit(&mut ssd, &command_of(&io), now_ns, what)?;
        if io.op == IoOp::Write && io.class == IoClass::Data {
            bytes += if io.measured { u64::from(io.sectors) * SECTOR_BYTES } else { 0 };
            if let Some(tenant) = &mut tenant {
                tenant.write(&mut ssd, now_ns)?;
            }
        }
        host.completed(done_ns - start_ns);
    }
    if let Some(source) = host.failure() {
        return Err(host_error(source.clone()));
    }
    if let Some(call) = host.application().failure() {
        return Err(StudyError::Call { what: what.to_owned(), call });
    }
    let seconds = (host.now_ns() - host.start_ns()).max(1) as f64 / 1e9;
    let files = files.iter().map(|&path| pieces(&mut host, path)).collect();
    ssd.rest();
    Ok(Written { ssd, files, mib_s: bytes as f64 / MIB / seconds, before })
}

fn command_of(io: &Io) -> Command {
    let Io { lba, sectors, fua, hint, .. } = *io;
    match io.op {
        IoOp::Read => Command::Read { lba, sectors },
        IoOp::Write => Command::Write { lba, sectors, fua, hint },
        IoOp::Discard => Command::Trim { lba, sectors },
        IoOp::Flush => Command::Flush,
    }
}

/// Sectors of a block of the file system.
const BLOCK_SECTORS: u64 = 8;

fn pieces(host: &mut Host<Plan>, path: PathId) -> Vec<Piece> {
    let extents = host.extents(path).unwrap_or_default();
    let piece = |e: &flashwise_hostfs::Extent| Piece {
        lba: u64::from(e.start.0) * BLOCK_SECTORS,
        sectors: u64::from(e.len) * BLOCK_SECTORS,
    };
    extents.iter().map(piece).collect()
}
