//! A file that is read through the modelled ext4 and block layer.

use flashwise_hint::SECTOR_BYTES;
use flashwise_hostfs::{
    Call, Extent, FsConfig, Host, HostCosts, Io, IoOp, JournalPlace, PathId, RamDisk,
};
use flashwise_ssd::{Command, Ssd};

use crate::StudyError;
use crate::fragmentation::device::artifact_fs;
use crate::fragmentation::plan::{Files, Plan};
use crate::fragmentation::write::submit;

/// Size of the file \[bytes\]. Source: section 3.
pub(super) const FILE: u64 = 8 << 20;

/// Longest write of a dummy file \[bytes\]: its begin finds room right behind the piece.
const DUMMY_WRITE: u64 = 64 << 10;

/// A file that is written in pieces beside a dummy file, then read by one direct read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    /// Number of pieces. All are of length `len` but the last, which is what is left.
    pub(super) n: u64,
    /// Their length \[bytes\].
    pub(super) len: u64,
    /// What is written to a dummy file after each \[bytes\].
    pub(super) between: u64,
    /// The file is there, written in one go, and the pieces overwrite it; the last is not
    /// longer than the others then.
    pub(super) overwrite: bool,
    /// Times that the journal commits meanwhile, evenly.
    pub(super) n_commits: u64,
}

impl Pieces {
    /// A file in one piece.
    pub(super) const WHOLE: Self =
        Self { n: 1, len: FILE, between: 0, overwrite: false, n_commits: 0 };

    /// Section 3: equal pieces that begin 8 MB apart, nothing is flushed.
    pub(super) fn of_section_3(n: u64) -> Self {
        let len = FILE / n;
        Self { n, len, between: FILE - len, ..Self::WHOLE }
    }

    fn plan(&self) -> (Plan, PathId) {
        let mut files = Files::default();
        let (file, open) = files.create("/file", true);
        let mut prepare = vec![open];
        if self.overwrite {
            prepare.push(Call::Append { fd: file, len: FILE });
        }
        let commits_by = |i: u64| i * (self.n_commits + 1) / self.n;
        for i in 0..self.n {
            let offset = i * self.len;
            let is_rest = i + 1 == self.n && !self.overwrite;
            let len = if is_rest { FILE - offset } else { self.len };
            prepare.push(Call::Write { fd: file, offset, len });
            if self.between > 0 {
                let (dummy, open) = files.create(&format!("/dummy{i}"), true);
                prepare.push(open);
                for offset in (0..self.between).step_by(DUMMY_WRITE as usize) {
                    let len = DUMMY_WRITE.min(self.between - offset);
                    prepare.push(Call::Write { fd: dummy, offset, len });
                }
                prepare.push(Call::Close { fd: dummy });
            }
            if i > 0 && commits_by(i) > commits_by(i - 1) {
                prepare.push(Call::Fsync { fd: file });
            }
        }
        let read = Call::Read { fd: file, offset: 0, len: FILE };
        (Plan::new(files.paths, prepare, vec![vec![read]]), files.ids[0])
    }
}

/// The file system of section 3: as the artifact's, but its journal is on the drive and the
/// host takes time.
pub(super) fn fs(nr_requests: u32, costs: HostCosts) -> FsConfig {
    FsConfig {
        journal: JournalPlace::Internal,
        journal_bytes: None,
        nr_requests,
        segments: 256,
        costs,
        ..artifact_fs(4 << 30)
    }
}

/// What a read did.
#[derive(Clone, Debug)]
pub(super) struct HostRead {
    /// From the call to its return \[ns\].
    pub(super) ns: u64,
    /// Pieces the file lies in.
    pub(super) n_pieces: u64,
    /// When each request was at the device, and when it was done \[ns since the call\].
    pub(super) requests: Vec<(u64, u64)>,
}

/// Writes the file of `pieces` on `ssd`, lets the drive come to rest, and reads it.
pub(super) fn read_drive(
    mut ssd: Ssd,
    pieces: &Pieces,
    fs: &FsConfig,
) -> Result<HostRead, StudyError> {
    let bytes = ssd.capacity_sectors() * SECTOR_BYTES;
    // The clock of the drive is ahead of the host's by its rest.
    let (mut ahead_ns, mut has_rested) = (0, false);
    run(pieces, fs, bytes, |io| {
        if io.measured && !std::mem::replace(&mut has_rested, true) {
            ahead_ns = ssd.rest().saturating_sub(io.at_ns);
        }
        let done_ns = submit(&mut ssd, &command_of(io), io.at_ns + ahead_ns, "a file in pieces")?;
        Ok(done_ns - ahead_ns)
    })
}

/// The same on a RAM disk.
pub(super) fn read_ram_disk(
    disk: &mut RamDisk,
    pieces: &Pieces,
    fs: &FsConfig,
) -> Result<HostRead, StudyError> {
    run(pieces, fs, 8 << 30, |io| Ok(disk.submit(io)))
}

fn run(
    pieces: &Pieces,
    fs: &FsConfig,
    device_bytes: u64,
    mut submit: impl FnMut(&Io) -> Result<u64, StudyError>,
) -> Result<HostRead, StudyError> {
    let what = || format!("a file in {} pieces", pieces.n);
    let host_error = |source| StudyError::Host { what: what(), source };
    let (plan, path) = pieces.plan();
    let mut host = Host::new(plan, fs, device_bytes).map_err(host_error)?;
    let mut requests = vec![];
    while let Some(io) = host.next_io() {
        let done_ns = submit(&io)?;
        if io.measured {
            requests.push((io.at_ns - host.start_ns(), done_ns - host.start_ns()));
        }
        host.completed(done_ns);
    }
    if let Some(source) = host.failure() {
        return Err(host_error(source.clone()));
    }
    if let Some(call) = host.application().failure() {
        return Err(StudyError::Call { what: what(), call });
    }
    let n_pieces = host.extents(path).map_or(0, |extents| joined(&extents));
    Ok(HostRead { ns: host.now_ns() - host.start_ns(), n_pieces, requests })
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

/// Extents that are not the continuation of the one before.
fn joined(extents: &[Extent]) -> u64 {
    let begins = extents.windows(2).filter(|e| e[0].start.0 + e[0].len != e[1].start.0);
    begins.count() as u64 + u64::from(!extents.is_empty())
}
