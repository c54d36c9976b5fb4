//! Calls on the mount.
//!
//! Descriptors are those of the application; a table maps them to open files. Contents
//! are arbitrary and never zero, so nothing below can leave them out.

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flashwise_hostfs::{Call, Fd, OpenFlags, Outcome, PathId, Paths};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::RealError;
use super::tools::tool;

/// Alignment of buffers and, for `O_DIRECT`, of what callers ask for \[bytes\]. Enough for
/// any logical block size up to a page.
const ALIGN: usize = 4096;
/// Largest part of a transfer that is made in one system call \[bytes\]; bounds memory.
const CALL_BYTES: u64 = 64 << 20;

/// `O_DSYNC`. Source: `include/uapi/asm-generic/fcntl.h` of Linux. `OFlags::DSYNC` of
/// rustix 1.1 is `O_SYNC` instead, which also makes timestamps durable: a commit more
/// whenever the clock of files has ticked.
#[cfg(not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64")))]
const O_DSYNC: OFlags = OFlags::from_bits_retain(0o10_000);
#[cfg(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64"))]
const O_DSYNC: OFlags = OFlags::DSYNC;

/// Open files of an application.
pub(crate) struct Files {
    root: PathBuf,
    open: Mutex<Vec<Option<Arc<File>>>>,
}

/// A buffer whose start is aligned for `O_DIRECT`.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    fn of(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len + ALIGN {
            // 0xA5: anything but zero.
            self.bytes.resize(len + ALIGN, 0xA5);
        }
        let skip = self.bytes.as_ptr().align_offset(ALIGN);
        &mut self.bytes[skip..skip + len]
    }
}

/// A call with the paths it names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) call: Call,
    first: PathBuf,
    second: PathBuf,
}

impl Files {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), open: Mutex::default() }
    }

    /// Looks up the paths of a call, so that it can be made without the application.
    pub(crate) fn name(&self, call: Call, paths: &Paths) -> Named {
        let path = |id: PathId| self.root.join(paths.path(id).trim_start_matches('/'));
        let (first, second) = match call {
            Call::Mkdir { path: p }
            | Call::Rmdir { path: p }
            | Call::Open { path: p, .. }
            | Call::OpenTemporary { dir: p, .. }
            | Call::Unlink { path: p }
            | Call::Stat { path: p } => (path(p), PathBuf::new()),
            Call::Rename { from, to } | Call::Link { from, to } => (path(from), path(to)),
            Call::LinkFd { to, .. } => (path(to), PathBuf::new()),
            _ => Default::default(),
        };
        Named { call, first, second }
    }

    /// Makes a call. An error means that the mount is broken; all else is an outcome.
    pub(crate) fn make(&self, named: &Named, buffer: &mut Buffer) -> Result<Outcome, RealError> {
        match self.try_make(named, buffer) {
            Ok(n) => Ok(Outcome::Done(n)),
            Err(Errno::NOSPC | Errno::DQUOT) => Ok(Outcome::NoSpace),
            Err(Errno::NOENT) => Ok(Outcome::NotFound),
            Err(Errno::EXIST) => Ok(Outcome::Exists),
            Err(Errno::NOTEMPTY | Errno::ISDIR) => Ok(Outcome::IsDirectory),
            Err(Errno::BADF | Errno::INVAL | Errno::NOTDIR | Errno::OPNOTSUPP | Errno::PERM) => {
                Ok(Outcome::Invalid)
            }
            Err(errno) => Err(RealError::Call { call: named.call, source: errno.into() }),
        }
    }

    fn try_make(&self, named: &Named, buffer: &mut Buffer) -> Result<u64, Errno> {
        let (first, second) = (&named.first, &named.second);
        match named.call {
            Call::Mkdir { .. } => rustix::fs::mkdir(first, Mode::from_raw_mode(0o755))?,
            Call::Rmdir { .. } => rustix::fs::rmdir(first)?,
            Call::Open { fd, flags, .. } => self.open(first, fd, flags)?,
            Call::OpenTemporary { fd, flags, .. } => self.open_temporary(first, fd, flags)?,
            Call::Close { fd } => drop(self.take(fd)?),
            Call::Read { fd, offset, len } => return read(&*self.file(fd)?, offset, len, buffer),
            Call::Write { fd, offset, len } => {
                let file = self.file(fd)?;
                return in_parts(len, buffer, |done, part| {
                    file.write_at(part, offset + done).map_err(errno)
                });
            }
            Call::Append { fd, len } => {
                let file = self.file(fd)?;
                return in_parts(len, buffer, |_, part| {
                    let parts = [IoSlice::new(part)];
                    rustix::io::pwritev2(&*file, &parts, 0, ReadWriteFlags::APPEND)
                });
            }
            Call::Fsync { fd } => rustix::fs::fsync(&*self.file(fd)?)?,
            Call::Fdatasync { fd } => rustix::fs::fdatasync(&*self.file(fd)?)?,
            Call::Sync => self.sync()?,
            Call::Truncate { fd, size } => rustix::fs::ftruncate(&*self.file(fd)?, size)?,
            Call::Fallocate { fd, offset, len, keep_size } => {
                let mode =
                    if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                rustix::fs::fallocate(&*self.file(fd)?, mode, offset, len)?;
            }
            Call::PunchHole { fd, offset, len } => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&*self.file(fd)?, mode, offset, len)?;
            }
            Call::Unlink { .. } => rustix::fs::unlink(first)?,
            Call::Rename { .. } => rustix::fs::rename(first, second)?,
            Call::Link { .. } => rustix::fs::link(first, second)?,
            Call::LinkFd { fd, .. } => {
                let file = self.file(fd)?;
                rustix::fs::linkat(file.as_fd(), "", CWD, first, AtFlags::EMPTY_PATH)?;
            }
            Call::Stat { .. } => {
                return Ok(u64::try_from(rustix::fs::stat(first)?.st_size).unwrap_or(0));
            }
            // The ioctl FITRIM would need unsafe code; the command makes the same call.
            Call::Trim => {
                tool("fstrim", &[&self.root.to_string_lossy()]).map_err(|_| Errno::OPNOTSUPP)?;
            }
        }
        Ok(0)
    }

    /// Writes all of this file system out (`syncfs`). `sync` would do the same to every
    /// other file system of the machine.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        let root = File::open(&self.root).map_err(errno)?;
        rustix::fs::syncfs(&root)
    }

    /// Closes what is open.
    pub(crate) fn close_all(&self) {
        self.open.lock().expect("no holder panics").clear();
    }

    fn open(&self, path: &Path, fd: Fd, flags: OpenFlags) -> Result<(), Errno> {
        self.must_be_free(fd)?;
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(flags.create && !flags.exclusive)
            .create_new(flags.create && flags.exclusive)
            .truncate(flags.truncate)
            .custom_flags(custom(flags).bits() as i32)
            .open(path)
            .map_err(errno)?;
        self.put(fd, file)
    }

    fn open_temporary(&self, dir: &Path, fd: Fd, flags: OpenFlags) -> Result<(), Errno> {
        self.must_be_free(fd)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | custom(flags);
        let file = rustix::fs::open(dir, flags, Mode::from_raw_mode(0o644))?;
        self.put(fd, file.into())
    }

    fn put(&self, fd: Fd, file: File) -> Result<(), Errno> {
        let mut open = self.open.lock().expect("no holder panics");
        let at = fd.0 as usize;
        if open.len() <= at {
            open.resize(at + 1, None);
        }
        if open[at].is_some() {
            return Err(Errno::BADF);
        }
        open[at] = Some(Arc::new(file));
        Ok(())
    }

    /// Before the file is made, so that a refused call makes none.
    fn must_be_free(&self, fd: Fd) -> Result<(), Errno> {
        if self.file(fd).is_ok() { Err(Errno::BADF) } else { Ok(()) }
    }

    fn take(&self, fd: Fd) -> Result<Arc<File>, Errno> {
        let mut open = self.open.lock().expect("no holder panics");
        open.get_mut(fd.0 as usize).and_then(Option::take).ok_or(Errno::BADF)
    }

    fn file(&self, fd: Fd) -> Result<Arc<File>, Errno> {
        let open = self.open.lock().expect("no holder panics");
        open.get(fd.0 as usize).and_then(Option::clone).ok_or(Errno::BADF)
    }
}

fn custom(flags: OpenFlags) -> OFlags {
    let mut custom = OFlags::empty();
    custom.set(OFlags::DIRECT, flags.direct);
    custom.set(O_DSYNC, flags.dsync);
    custom
}

fn read(file: &File, offset: u64, len: u64, buffer: &mut Buffer) -> Result<u64, Errno> {
    in_parts(len, buffer, |done, part| file.read_at(part, offset + done).map_err(errno))
}

/// Moves `len` bytes in as few parts as it takes; ends early at the end of the file.
fn in_parts(
    len: u64,
    buffer: &mut Buffer,
    mut part: impl FnMut(u64, &mut [u8]) -> Result<usize, Errno>,
) -> Result<u64, Errno> {
    let mut done = 0;
    while done < len {
        let want = (len - done).min(CALL_BYTES) as usize;
        match part(done, buffer.of(want)) {
            Ok(0) => break,
            Ok(n) => done += n as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `O_SYNC` has one bit more.
    #[test]
    fn durable_data_is_not_durable_timestamps() {
        let custom = custom(OpenFlags::DSYNC);
        assert_eq!(custom & OFlags::SYNC, O_DSYNC);
        assert_ne!(custom, OFlags::SYNC);
    }
}
