//! Kernel settings, changed for a while and put back when dropped.

use std::path::{Path, PathBuf};

use super::RealError;

/// Settings that were changed.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// File and what it held, in the order of changes.
    saved: Vec<(PathBuf, String)>,
}

/// Pairs of which writing one sets the other to 0. Source: `vm.rst` in the kernel's
/// admin guide.
const TWINS: [(&str, &str); 2] =
    [("dirty_bytes", "dirty_ratio"), ("dirty_background_bytes", "dirty_background_ratio")];

impl Settings {
    /// Changes a setting.
    pub(crate) fn set(&mut self, path: &Path, value: &str) -> Result<(), RealError> {
        let old = read(path)?;
        // A limit in bytes that is 0 means that the ratio holds; only writing the ratio
        // brings that back.
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let twin = TWINS.iter().find_map(|(bytes, ratio)| match name {
            _ if name == *bytes && old == "0" => Some(*ratio),
            _ if name == *ratio && old == "0" => Some(*bytes),
            _ => None,
        });
        let entry = match twin {
            Some(twin) => {
                let twin = path.with_file_name(twin);
                let old = read(&twin)?;
                (twin, old)
            }
            None => (path.to_owned(), old),
        };
        std::fs::write(path, value).map_err(RealError::io("write", path))?;
        self.saved.push(entry);
        Ok(())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        while let Some((path, old)) = self.saved.pop() {
            // Nobody is left to tell; the next setting is put back all the same.
            let _ = std::fs::write(path, old);
        }
    }
}

fn read(path: &Path) -> Result<String, RealError> {
    let text = std::fs::read_to_string(path).map_err(RealError::io("read", path))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_put_back_in_reverse() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        let holds = |name: &str| std::fs::read_to_string(path(name)).expect("a file");
        for (name, value) in [("a", "1\n"), ("dirty_bytes", "0\n"), ("dirty_ratio", "20\n")] {
            std::fs::write(path(name), value).expect("a file");
        }
        let mut settings = Settings::default();
        settings.set(&path("a"), "2").expect("a file");
        settings.set(&path("a"), "3").expect("a file");
        settings.set(&path("dirty_bytes"), "4096").expect("a file");
        std::fs::write(path("dirty_ratio"), "0").expect("what the kernel does");
        assert!(settings.set(&path("none"), "1").is_err());
        assert_eq!((holds("a").as_str(), holds("dirty_bytes").as_str()), ("3", "4096"));
        drop(settings);
        assert_eq!((holds("a").as_str(), holds("dirty_ratio").as_str()), ("1", "20"));
    }
}
