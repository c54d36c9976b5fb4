//! Commands, and what must be there.

use std::path::Path;
use std::process::Command;

use super::RealError;

/// Where the image lives: a tmpfs, so that the disk below adds nothing.
pub(crate) const MEMORY: &str = "/dev/shm";
/// Where tracefs is mounted by systemd and by the kernel itself.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";

const TOOLS: [&str; 8] =
    ["mkfs.ext4", "dumpe2fs", "debugfs", "filefrag", "losetup", "mount", "umount", "fstrim"];

/// What this machine lacks to make and watch a file system; `None` when all is there.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root".into());
    }
    for (path, what) in [
        ("/dev/loop-control", "loop devices"),
        (MEMORY, "a tmpfs at /dev/shm"),
        ("/sys/kernel/tracing/instances", "tracefs at /sys/kernel/tracing"),
        ("/sys/kernel/tracing/events/block/block_bio_queue", "block tracepoints"),
    ] {
        if !Path::new(path).exists() {
            return Some(what.into());
        }
    }
    let supported = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !supported.split_whitespace().any(|name| name == "ext4") {
        return Some("ext4 in the kernel".into());
    }
    let tool = TOOLS.into_iter().find(|tool| find(tool).is_none())?;
    Some(format!("the command {tool}"))
}

/// Path of a tool. `sbin` is searched too: it is not in everybody's `PATH`.
fn find(tool: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path);
    dirs.chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(tool))
        .find(|path| path.is_file())
}

/// Runs a command to its end and gives what it printed.
pub(crate) fn tool(name: &str, args: &[&str]) -> Result<String, RealError> {
    let path =
        find(name).ok_or_else(|| RealError::Missing { what: format!("the command {name}") })?;
    let output = Command::new(&path)
        .args(args)
        .env("LC_ALL", "C")
        .output()
        .map_err(RealError::io("run", &path))?;
    if !output.status.success() {
        return Err(RealError::Tool {
            command: format!("{name} {}", args.join(" ")),
            status: output.status.to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
