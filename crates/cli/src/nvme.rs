//! Asking an NVMe drive what it is, or reading what another program asked it.
//!
//! The only real I/O to a drive is here: the identify command and a log page, by the
//! passthrough ioctl of Linux. Both read. Decoding is in `flashwise-design`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::anyhow;

use flashwise_design::{IDENTIFY_BYTES, Identity};

use crate::Failure;

/// Asks the drive at `path`, or decodes the file at `path`.
pub(crate) fn identify(path: &Path) -> Result<Identity, Failure> {
    let refused =
        |e: &dyn std::fmt::Display| Failure::Input(anyhow!("--from {}: {e}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| refused(&with_advice(&e)))?;
    if meta.is_dir() {
        return Err(refused(&"a directory; expected an NVMe drive such as /dev/nvme0, or a file"));
    }
    if meta.is_file() {
        let bytes = read_dump(path)?;
        return Identity::decode(&bytes).map_err(|e| refused(&e));
    }
    if !is_device(&meta) {
        return Err(refused(&"neither a drive nor a file"));
    }
    let file = File::open(path).map_err(|e| refused(&with_advice(&e)))?;
    drive::ask(&file).map_err(|e| refused(&e))
}

/// A pipe would keep its reader waiting.
fn is_device(meta: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        meta.file_type().is_char_device() || meta.file_type().is_block_device()
    }
    #[cfg(not(unix))]
    {
        !meta.is_dir()
    }
}

/// The bytes of a dump; one byte more than any dump has is enough to refuse it.
pub(crate) fn read_dump(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![];
    let most = 2 * IDENTIFY_BYTES as u64 + 1;
    let read = File::open(path).and_then(|f| f.take(most).read_to_end(&mut bytes));
    read.map_err(|e| Failure::Input(anyhow!("--from {}: {}", path.display(), with_advice(&e))))?;
    Ok(bytes)
}

fn with_advice(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::PermissionDenied => {
            format!("{e}; asking a drive needs root, or give a file that «nvme id-ctrl -b» wrote")
        }
        std::io::ErrorKind::NotFound => {
            format!("{e}; drives of this machine: ls /dev/nvme*")
        }
        _ => e.to_string(),
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod drive {
    //! The passthrough ioctl.

    use std::ffi::c_void;
    use std::fs::File;
    use std::os::fd::AsFd;

    use rustix::io::Errno;
    use rustix::ioctl;

    use flashwise_design::{IDENTIFY_BYTES, Identity};

    /// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h.
    #[repr(C)]
    #[derive(Default)]
    struct AdminCommand {
        opcode: u8,
        flags: u8,
        reserved: u16,
        nsid: u32,
        cdw2: u32,
        cdw3: u32,
        metadata: u64,
        addr: u64,
        metadata_len: u32,
        data_len: u32,
        cdw10: u32,
        cdw11: u32,
        cdw12: u32,
        cdw13: u32,
        cdw14: u32,
        cdw15: u32,
        timeout_ms: u32,
        result: u32,
    }

    /// NVME_IOCTL_ADMIN_CMD, and NVME_IOCTL_ID: the namespace of a block device.
    const ADMIN: ioctl::Opcode = ioctl::opcode::read_write::<AdminCommand>(b'N', 0x41);
    const NSID: ioctl::Opcode = ioctl::opcode::none(b'N', 0x40);

    const GET_LOG_PAGE: u8 = 0x02;
    const IDENTIFY: u8 = 0x06;
    const CNS_NAMESPACE: u32 = 0;
    const CNS_CONTROLLER: u32 = 1;
    const LOG_FDP_CONFIGURATIONS: u32 = 0x20;

    pub(super) fn ask(file: &File) -> Result<Identity, String> {
        let mut both = identify(file, 0, CNS_CONTROLLER)?;
        // A controller has no namespace of its own: its first one is asked for.
        let nsid = namespace_of(file).unwrap_or(1);
        both.extend(identify(file, nsid, CNS_NAMESPACE)?);
        let mut identity = Identity::decode(&both).map_err(|e| e.to_string())?;
        let group = identity.namespace.map_or(0, |n| n.endurance_group);
        if identity.controller.as_ref().is_some_and(|c| c.placement) && group != 0 {
            // A drive that does not tell has its handles left open.
            if let Ok(log) = placement_log(file, group) {
                identity.add_placement_log(&log);
            }
        }
        Ok(identity)
    }

    fn identify(file: &File, nsid: u32, cns: u32) -> Result<Vec<u8>, String> {
        let command = AdminCommand { opcode: IDENTIFY, nsid, cdw10: cns, ..Default::default() };
        admin(file, command, IDENTIFY_BYTES)
    }

    fn placement_log(file: &File, group: u16) -> Result<Vec<u8>, String> {
        const BYTES: usize = 512;
        let n_words = (BYTES / 4 - 1) as u32;
        let command = AdminCommand {
            opcode: GET_LOG_PAGE,
            cdw10: LOG_FDP_CONFIGURATIONS | n_words << 16,
            cdw11: u32::from(group) << 16,
            ..Default::default()
        };
        admin(file, command, BYTES)
    }

    /// Carries out a command that reads `bytes`.
    fn admin(file: &File, mut command: AdminCommand, bytes: usize) -> Result<Vec<u8>, String> {
        let mut data = vec![0u8; bytes];
        command.addr = data.as_mut_ptr().expose_provenance() as u64;
        command.data_len = bytes as u32;
        let call = Call { opcode: ADMIN, argument: std::ptr::from_mut(&mut command).cast() };
        // SAFETY: the opcode is that of an ioctl that reads and writes one AdminCommand,
        // which `argument` points to, and writes at most `data_len` bytes at `addr`,
        // which are those of `data`; both live until it returns.
        match unsafe { ioctl::ioctl(file.as_fd(), call) } {
            Ok(0) => Ok(data),
            Ok(status) => Err(format!("the drive refuses the command (NVMe status {status:#x})")),
            Err(Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP) => {
                Err("not an NVMe drive (it does not take NVMe commands)".to_owned())
            }
            Err(Errno::ACCESS | Errno::PERM) => {
                Err("not permitted; asking a drive needs root".to_owned())
            }
            Err(e) => Err(format!("the drive did not answer: {e}")),
        }
    }

    /// The namespace behind a block device; none behind a controller.
    fn namespace_of(file: &File) -> Option<u32> {
        let call = Call { opcode: NSID, argument: std::ptr::null_mut() };
        // SAFETY: NVME_IOCTL_ID takes no argument; other drivers refuse the opcode.
        unsafe { ioctl::ioctl(file.as_fd(), call) }.ok().filter(|&n| n > 0)
    }

    /// An ioctl whose return value matters: an NVMe status, or a namespace.
    struct Call {
        opcode: ioctl::Opcode,
        argument: *mut c_void,
    }

    // SAFETY: opcode and argument are passed on as they are; nothing is read back but
    // the return value.
    unsafe impl ioctl::Ioctl for Call {
        type Output = u32;
        const IS_MUTATING: bool = true;

        fn opcode(&self) -> ioctl::Opcode {
            self.opcode
        }

        fn as_ptr(&mut self) -> *mut c_void {
            self.argument
        }

        unsafe fn output_from_ptr(
            out: ioctl::IoctlOutput,
            _: *mut c_void,
        ) -> rustix::io::Result<u32> {
            Ok(out as u32)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_opcode_is_that_of_the_kernel_header() {
            assert_eq!(size_of::<AdminCommand>(), 72);
            assert_eq!(ADMIN, 0xC048_4E41);
            assert_eq!(NSID, 0x4E40);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod drive {
    use std::fs::File;

    use flashwise_design::Identity;

    pub(super) fn ask(_: &File) -> Result<Identity, String> {
        Err("drives can be asked on Linux only; give a file that «nvme id-ctrl -b» wrote"
            .to_owned())
    }
}
