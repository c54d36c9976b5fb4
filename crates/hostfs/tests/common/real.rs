//! Operations on a real ext4 in a loop device.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{How, Op, Run, Setup, dir_of, join};

/// `O_DIRECT` on x86-64 and aarch64 differ.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };

/// One file system at a time: the comparison needs quiet CPUs.
static ONE: Mutex<()> = Mutex::new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A mounted file system that goes away at the end, also of a test that fails.
pub(crate) struct Real {
    image: PathBuf,
    device: String,
    dir: PathBuf,
    mounted: bool,
    files: BTreeMap<u32, File>,
    dirs: BTreeMap<u32, PathBuf>,
    buffer: Vec<u8>,
    _one: std::sync::MutexGuard<'static, ()>,
}

fn run(tool: &str, args: &[&str]) -> Option<String> {
    let out = Command::new(tool).args(args).output().ok()?;
    out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// How many CPUs the kernel can have, which is what ext4 counts.
pub(crate) fn possible_cpus() -> u32 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit(['-', ',']).next().unwrap_or("0").parse().unwrap_or(0);
    last + 1_u32
}

impl Real {
    /// `None`, with a word of why, where it cannot be done.
    pub(crate) fn new(setup: &Setup) -> Option<Self> {
        let one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_root = run("id", &["-u"]).as_deref() == Some("0");
        if !is_root || !Path::new("/dev/loop-control").exists() || !Path::new("/dev/shm").is_dir() {
            println!("skipped: needs root and a loop device");
            return None;
        }
        if run("mkfs.ext4", &["-V"]).is_none() || run("filefrag", &["-V"]).is_none() {
            println!("skipped: needs mkfs.ext4 and filefrag");
            return None;
        }
        let name = format!(
            "flashwise-alloc-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let mut real = Self {
            image: Path::new("/dev/shm").join(&name),
            device: String::new(),
            dir: std::env::temp_dir().join(&name),
            mounted: false,
            files: BTreeMap::new(),
            dirs: BTreeMap::from([(0, std::env::temp_dir().join(&name))]),
            buffer: vec![0x5a; (8 << 20) + 4096],
            _one: one,
        };
        File::create(&real.image).unwrap().set_len(u64::from(setup.mib) << 20).unwrap();
        std::fs::create_dir_all(&real.dir).unwrap();
        let image = real.image.to_str().unwrap();
        // Without hashed directories it is known when the directory grows.
        let args = ["-q", "-F", "-b", "4096", "-m", "0", "-O", "^dir_index", image];
        run("mkfs.ext4", &args).expect("mkfs.ext4");
        let Some(device) = run("losetup", &["-f", "--show", image]) else {
            println!("skipped: needs root and a loop device");
            return None;
        };
        real.device = device;
        let options = if setup.delalloc { "noatime" } else { "noatime,nodelalloc" };
        let dir = real.dir.to_str().unwrap();
        if run("mount", &["-o", options, &real.device, dir]).is_none() {
            println!("skipped: needs root and a kernel with ext4");
            return None;
        }
        real.mounted = true;
        real.set("mb_stream_req", setup.mb_stream_req);
        real.set("mb_group_prealloc", setup.mb_group_prealloc);
        // Small files share a space for each CPU: stay on one.
        let task = std::fs::read_link("/proc/thread-self").unwrap();
        let task = task.file_name().unwrap().to_str().unwrap().to_string();
        run("taskset", &["-cp", "0", &task]);
        // Let the kernel read all bitmaps, as it does soon after mounting.
        std::fs::read_to_string(real.proc("mb_groups")).ok();
        Some(real)
    }

    fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc/fs/ext4").join(self.device.trim_start_matches("/dev/")).join(name)
    }

    fn set(&self, name: &str, value: Option<u32>) {
        let dir = Path::new("/sys/fs/ext4").join(self.device.trim_start_matches("/dev/"));
        if let Some(value) = value {
            std::fs::write(dir.join(name), value.to_string()).unwrap();
        }
    }

    fn path(&self, file: u32) -> PathBuf {
        self.dirs[&dir_of(file)].join(format!("file{file:05}"))
    }

    /// The inode number of a file.
    pub(crate) fn ino(&self, file: u32) -> u32 {
        std::fs::metadata(self.path(file)).unwrap().ino() as u32
    }

    /// The inode number of a directory.
    pub(crate) fn dir_ino(&self, dir: u32) -> u32 {
        std::fs::metadata(&self.dirs[&dir]).unwrap().ino() as u32
    }

    /// Free blocks.
    pub(crate) fn free_blocks(&self) -> u64 {
        let text = run("stat", &["-f", "-c", "%f", self.dir.to_str().unwrap()]);
        text.expect("stat").parse().unwrap()
    }

    fn create(&mut self, file: u32, how: How) {
        let mut options = OpenOptions::new();
        options.write(true).read(true).create_new(true);
        if how == How::Direct {
            options.custom_flags(O_DIRECT);
        }
        self.files.insert(file, options.open(self.path(file)).unwrap());
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Mkdir { dir, parent } => {
                let path = self.dirs[&parent].join(format!("dir{dir:06}"));
                std::fs::create_dir(&path).unwrap();
                self.dirs.insert(dir, path);
            }
            Op::Create(file, how) => self.create(file, how),
            Op::Write { file, at, len } => {
                // O_DIRECT wants aligned memory.
                let skip = self.buffer.as_ptr().align_offset(4096);
                let data = &self.buffer[skip..skip + len as usize * 4096];
                self.files[&file].write_all_at(data, u64::from(at) * 4096).unwrap();
            }
            Op::Fallocate { file, len } => {
                let bytes = (u64::from(len) * 4096).to_string();
                let path = self.path(file);
                run("fallocate", &["-l", &bytes, path.to_str().unwrap()]).expect("fallocate");
            }
            Op::Sync(file) => self.files[&file].sync_data().unwrap(),
            Op::Close(file) => drop(self.files.remove(&file)),
            Op::Delete(file) => std::fs::remove_file(self.path(file)).unwrap(),
            Op::SyncAll => {
                run("sync", &["-f", self.dir.to_str().unwrap()]).expect("sync");
            }
        }
    }

    /// Where the files are.
    pub(crate) fn runs(&self, files: &[u32]) -> Vec<Vec<Run>> {
        let paths: Vec<String> =
            files.iter().map(|file| self.path(*file).to_str().unwrap().to_string()).collect();
        let mut all = Vec::new();
        for some in paths.chunks(500) {
            let mut args = vec!["-v"];
            args.extend(some.iter().map(String::as_str));
            let text = run("filefrag", &args).expect("filefrag");
            let mut runs: Vec<Vec<Run>> = Vec::new();
            for line in text.lines() {
                if line.starts_with("File size of ") {
                    runs.push(Vec::new());
                }
                let words: Vec<u32> = line
                    .split(|c: char| !c.is_ascii_digit())
                    .filter_map(|word| word.parse().ok())
                    .collect();
                // index: first..last of the file: first..last on the device: length
                if line.contains("..") && words.len() >= 6 {
                    let run = (words[1], words[3]..words[4] + 1);
                    runs.last_mut().expect("a file was named").push(run);
                }
            }
            all.extend(runs.into_iter().map(join));
        }
        assert_eq!(all.len(), files.len(), "filefrag tells of each file");
        all
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.files.clear();
        if self.mounted {
            run("umount", &[self.dir.to_str().unwrap()]);
        }
        if !self.device.is_empty() {
            run("losetup", &["-d", &self.device]);
        }
        std::fs::remove_dir(&self.dir).ok();
        std::fs::remove_file(&self.image).ok();
    }
}
