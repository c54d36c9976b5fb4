//! Loop devices and mounts that undo themselves when dropped.

use std::path::{Path, PathBuf};

use super::RealError;
use super::tools::{MEMORY, TRACEFS, tool};
use crate::trace::Dev;

/// Prefix of directories and trace instances; the process number follows.
pub(crate) const PREFIX: &str = "flashwise-realfs-";

/// A loop device and its image.
pub(crate) struct Loop {
    pub(crate) path: String,
    pub(crate) image: PathBuf,
    pub(crate) dev: Dev,
}

impl Loop {
    pub(crate) fn attach(image: &Path, mib: u64) -> Result<Self, RealError> {
        let file = std::fs::File::create_new(image).map_err(RealError::io("make", image))?;
        file.set_len(mib << 20).map_err(RealError::io("size", image))?;
        let path =
            tool("losetup", &["--find", "--show", &image.to_string_lossy()])?.trim().to_owned();
        // From here on, dropping detaches.
        let mut device = Self { path, image: image.to_owned(), dev: Dev { major: 0, minor: 0 } };
        let file = device.sysfs().join("dev");
        let text = std::fs::read_to_string(&file).map_err(RealError::io("read", &file))?;
        device.dev = Dev::parse(text.trim()).ok_or_else(|| RealError::Missing {
            what: format!("a device number in {}", file.display()),
        })?;
        Ok(device)
    }

    pub(crate) fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    pub(crate) fn sysfs(&self) -> PathBuf {
        Path::new("/sys/block").join(self.name())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.path]);
    }
}

/// A mount.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
}

impl Mount {
    pub(crate) fn new(device: &Loop, at: &Path, options: &str) -> Result<Self, RealError> {
        std::fs::create_dir(at).map_err(RealError::io("make", at))?;
        let mount = Self { at: at.to_owned() };
        mount.attach(device, options)?;
        Ok(mount)
    }

    pub(crate) fn again(&self, device: &Loop, options: &str) -> Result<(), RealError> {
        tool("umount", &[&self.at.to_string_lossy()])?;
        self.attach(device, options)
    }

    fn attach(&self, device: &Loop, options: &str) -> Result<(), RealError> {
        let at = self.at.to_string_lossy();
        tool("mount", &["-t", "ext4", "-o", options, &device.path, &at])?;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let at = self.at.to_string_lossy();
        if tool("umount", &[&at]).is_err() {
            // Somebody still has a file open: take it out of sight, the rest follows.
            let _ = tool("umount", &["--lazy", &at]);
        }
    }
}

/// Takes away what killed processes left: mounts, loop devices, images and traces whose
/// process is gone. Returns what was found.
pub fn sweep_leftovers() -> Vec<String> {
    let gone = |name: &str| {
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    let mut found = Vec::new();
    for place in [Path::new(MEMORY), &Path::new(TRACEFS).join("instances")] {
        let Ok(entries) = std::fs::read_dir(place) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !gone(&name) {
                continue;
            }
            let path = entry.path();
            found.push(path.to_string_lossy().into_owned());
            if place == Path::new(MEMORY) {
                let _ = tool("umount", &[&path.join("mnt").to_string_lossy()]);
                for image in ["image", "journal"] {
                    detach_image(&path.join(image));
                }
                let _ = std::fs::remove_dir_all(&path);
            } else {
                let _ = std::fs::remove_dir(&path);
            }
        }
    }
    found
}

/// Detaches the loop devices of an image; their names come first in `losetup -j`.
fn detach_image(image: &Path) {
    let Ok(text) = tool("losetup", &["--associated", &image.to_string_lossy()]) else { return };
    for device in text.lines().filter_map(|line| line.split(':').next()) {
        let _ = tool("losetup", &["--detach", device]);
    }
}
