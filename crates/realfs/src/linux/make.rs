//! A real ext4 on a loop device over memory, gone when dropped.
//!
//! The image is a sparse file in tmpfs, so the device is fast, discards work and nothing
//! of it survives. The device has a volatile write cache and no FUA, as the loop driver
//! says; a FUA bio becomes a write and a flush.
//!
//! Invariant: dropping a [`RealFs`], also while a panic unwinds, unmounts, detaches and
//! deletes in that order. A killed process leaves things behind; [`sweep_leftovers`] takes
//! away those of processes that are gone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::RealError;
use super::settings::Settings;
use super::tools::{MEMORY, missing, tool};
use super::tracefs::Trace;
use crate::collect::{Collector, ExternalJournal};
use crate::journal;
use crate::layout::{self, Layout};
use crate::observed::{self, Structure};
use crate::trace::{Dev, Event, Line};

/// Prefix of directories and trace instances; the process number follows.
const PREFIX: &str = "flashwise-realfs-";

/// Where the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// None.
    None,
    /// Inside the file system.
    Internal {
        /// Size \[MiB\]; `None` as `mkfs` thinks.
        mib: Option<u64>,
    },
    /// On a device of its own.
    External {
        /// Size \[MiB\].
        mib: u64,
    },
}

/// What goes through the journal (mount option `data=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Metadata; data is written home before the transaction commits.
    Ordered,
    /// Data too.
    Journal,
    /// Metadata; data whenever.
    Writeback,
}

/// How to make and mount it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the device \[MiB\].
    pub mib: u64,
    /// The journal.
    pub journal: Journal,
    /// What goes through it; without one, nothing does.
    pub data: Data,
    /// Blocks are allocated when written back (`delalloc`).
    pub delalloc: bool,
    /// More mount options, such as `noatime` or `commit=1`.
    pub mount: Vec<String>,
    /// More arguments of `mkfs.ext4`.
    pub mkfs: Vec<String>,
    /// Files of `/sys/fs/ext4/<device>` and what to write there, for example
    /// `mb_stream_req`.
    pub ext4: Vec<(String, String)>,
    /// Files of `/sys/block/<device>` likewise, for example `queue/max_sectors_kb` or
    /// `bdi/max_bytes`.
    pub device: Vec<(String, String)>,
    /// Files of `/proc/sys/vm` likewise; put back when dropped. They hold for the whole
    /// machine meanwhile.
    pub vm: Vec<(String, String)>,
    /// Unmount and mount again after files are prepared. Dropping the page cache alone
    /// leaves metadata that the journal still refers to: 1000 `stat` then read nothing.
    /// Descriptors must not stay open meanwhile.
    pub cold: bool,
    /// Buffer of the trace per CPU \[KiB\].
    pub trace_kib: u64,
}

impl Default for Options {
    /// 1 GiB, 64 MiB of journal, `data=ordered`, `delalloc`, `noatime` unset. The device
    /// reads 128 KiB ahead, the default of the kernel (`VM_READAHEAD_PAGES` in
    /// `include/linux/pagemap.h`), which loop devices raise.
    fn default() -> Self {
        Self {
            mib: 1024,
            journal: Journal::Internal { mib: Some(64) },
            data: Data::Ordered,
            delalloc: true,
            mount: Vec::new(),
            mkfs: Vec::new(),
            ext4: Vec::new(),
            device: vec![("queue/read_ahead_kb".into(), "128".into())],
            vm: Vec::new(),
            cold: false,
            trace_kib: 16 << 10,
        }
    }
}

/// A mounted file system that is watched.
///
/// Fields are dropped in this order: settings back, trace, mount, devices, directory.
pub struct RealFs {
    _settings: Settings,
    trace: Trace,
    mount: Mount,
    _external: Option<Loop>,
    device: Loop,
    dir: tempfile::TempDir,
    layout: Layout,
    options: Options,
    collector: Arc<Mutex<Collector>>,
    requests: Arc<Mutex<Option<Vec<Line>>>>,
}

impl RealFs {
    /// Makes and mounts one. All that happens on the device is watched from before the
    /// mount on.
    pub fn make(options: &Options) -> Result<Self, RealError> {
        if let Some(what) = missing() {
            return Err(RealError::Missing { what });
        }
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let dir = tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(MEMORY)
            .map_err(RealError::io("make a directory in", MEMORY))?;
        let device = Loop::attach(&dir.path().join("image"), options.mib)?;
        let external = match options.journal {
            Journal::External { mib } => Some(Loop::attach(&dir.path().join("journal"), mib)?),
            _ => None,
        };
        mkfs(options, &device, external.as_ref())?;
        let layout = read_layout(&device.image)?;
        let mut settings = Settings::default();
        for (file, value) in &options.device {
            settings.set(&device.sysfs().join(file), value)?;
        }
        let collector =
            Arc::new(Mutex::new(collector(options, &layout, &device, external.as_ref())));
        let requests: Arc<Mutex<Option<Vec<Line>>>> = Arc::default();
        let (to_collector, to_requests) = (Arc::clone(&collector), Arc::clone(&requests));
        let devs: Vec<Dev> =
            [Some(&device), external.as_ref()].into_iter().flatten().map(|d| d.dev).collect();
        let name =
            dir.path().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let trace = Trace::start(&name, &devs, options.trace_kib, move |line| {
            on_line(line, &to_collector, &to_requests);
        })?;
        let mount = Mount::new(&device, &dir.path().join("mnt"), &mount_options(options))?;
        for (file, value) in &options.ext4 {
            settings.set(&tunable(&device, file), value)?;
        }
        for (file, value) in &options.vm {
            settings.set(&Path::new("/proc/sys/vm").join(file), value)?;
        }
        Ok(Self {
            _settings: settings,
            trace,
            mount,
            _external: external,
            device,
            dir,
            layout,
            options: options.clone(),
            collector,
            requests,
        })
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.mount.at
    }

    /// Forgets what is cached of the prepared files; all is written out.
    pub(crate) fn cool_down(&self) -> Result<(), RealError> {
        if self.options.cold {
            self.mount.again(&self.device, &mount_options(&self.options))?;
            for (file, value) in &self.options.ext4 {
                let path = tunable(&self.device, file);
                std::fs::write(&path, value).map_err(RealError::io("write", &path))?;
            }
        }
        // Of the whole machine: there is no call to drop those of one file system.
        let path = "/proc/sys/vm/drop_caches";
        std::fs::write(path, "3").map_err(RealError::io("write", path))
    }

    /// Where things are on the device.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What a block of the file system holds, as far as is known now.
    pub fn structure(&self, block: u64) -> Structure {
        self.with_collector(|collector| collector.structure(block, true))
    }

    /// Keeps every bio, request and commit from now on, for [`Self::take_lines`].
    pub fn keep_lines(&self) {
        *self.requests.lock().expect("no holder panics") = Some(Vec::new());
    }

    /// What was kept, in order of time.
    pub fn take_lines(&self) -> Vec<Line> {
        let mut kept = self.requests.lock().expect("no holder panics");
        kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Asks the collector something.
    pub(crate) fn with_collector<T>(&self, ask: impl FnOnce(&mut Collector) -> T) -> T {
        ask(&mut self.collector.lock().expect("no holder panics"))
    }

    /// Everything before this call was collected.
    pub(crate) fn mark(&self, marker: &str) -> Result<(), RealError> {
        self.trace.mark(marker)
    }

    /// Refuses a trace with holes.
    pub(crate) fn check_lost(&self) -> Result<(), RealError> {
        let events = self.trace.lost()?.max(self.with_collector(|c| c.lost()));
        if events > 0 { Err(RealError::Lost { events }) } else { Ok(()) }
    }

    /// Regular files and the runs of blocks they lie in, by `filefrag`.
    pub fn extents(&self) -> Result<Vec<FileExtents>, RealError> {
        let mut files = Vec::new();
        list_files(self.root(), &mut files)?;
        files.sort();
        let mut all = Vec::new();
        // Far below the limit of arguments, also with long names.
        for some in files.chunks(256) {
            let mut args = vec!["-v"];
            args.extend(some.iter().filter_map(|path| path.to_str()));
            all.extend(parse_filefrag(&tool("filefrag", &args)?));
        }
        Ok(all)
    }

    /// The same, summed.
    pub(crate) fn file_layout(&self) -> Result<observed::Layout, RealError> {
        let mut sum = observed::Layout::default();
        for file in self.extents()? {
            sum.files += 1;
            sum.extents += file.runs.len() as u64;
            sum.bytes += file.runs.iter().map(|(_, n)| n).sum::<u64>() * self.layout.block_bytes;
        }
        Ok(sum)
    }

    /// What the blocks of committed transactions hold, by number of the transaction: read
    /// from the ring of an internal journal as it is now. Overwritten ones are absent.
    pub fn transactions(
        &self,
    ) -> Result<std::collections::BTreeMap<u32, journal::Transaction>, RealError> {
        let bytes = if matches!(self.options.journal, Journal::External { .. }) {
            // Two blocks: one with an ext4 superblock, then that of the journal.
            let path = self.dir.path().join("journal");
            let image = std::fs::read(&path).map_err(RealError::io("read", &path))?;
            image.get(4096..).unwrap_or_default().to_vec()
        } else if self.layout.journal.is_empty() {
            return Ok(Default::default());
        } else {
            let mut bytes = Vec::new();
            let path = &self.device.image;
            let image = std::fs::File::open(path).map_err(RealError::io("open", path))?;
            for (first, n) in &self.layout.journal {
                let at = bytes.len();
                bytes.resize(at + (n * self.layout.block_bytes) as usize, 0);
                let offset = first * self.layout.block_bytes;
                std::os::unix::fs::FileExt::read_exact_at(&image, &mut bytes[at..], offset)
                    .map_err(RealError::io("read", path))?;
            }
            bytes
        };
        Ok(journal::parse(&bytes)?)
    }
}

/// Runs of adjacent blocks of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExtents {
    /// Path on the machine.
    pub path: String,
    /// First block and number of blocks, in order of the file.
    pub runs: Vec<(u64, u64)>,
}

/// Rows of `filefrag -v` look like
/// `   0:        0..    1023:      34816..     35839:   1024:             last,eof`.
/// Extents that follow each other on the device are one run.
fn parse_filefrag(text: &str) -> Vec<FileExtents> {
    let mut all: Vec<FileExtents> = Vec::new();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for line in text.lines() {
        if let Some((path, _)) = line.rsplit_once(": ").filter(|(_, end)| end.contains(" extent")) {
            all.push(FileExtents { path: path.to_owned(), runs: std::mem::take(&mut runs) });
            continue;
        }
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let [number, _, physical, n, ..] = fields[..] else { continue };
        let first = physical.split("..").next().and_then(|first| first.trim().parse().ok());
        let (Ok(_), Some(first), Ok(n)) = (number.parse::<u64>(), first, n.parse::<u64>()) else {
            continue;
        };
        match runs.last_mut() {
            Some((start, have)) if *start + *have == first => *have += n,
            _ => runs.push((first, n)),
        }
    }
    all
}

fn list_files(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), RealError> {
    for entry in std::fs::read_dir(dir).map_err(RealError::io("list", dir))? {
        let entry = entry.map_err(RealError::io("list", dir))?;
        let kind = entry.file_type().map_err(RealError::io("look at", entry.path()))?;
        if kind.is_dir() {
            list_files(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn on_line(line: &Line, collector: &Mutex<Collector>, requests: &Mutex<Option<Vec<Line>>>) {
    collector.lock().expect("no holder panics").event(&line.event);
    let wanted = matches!(
        line.event,
        Event::Bio(_) | Event::Request(_) | Event::Committed { .. } | Event::Marker(_)
    );
    if wanted && let Some(kept) = requests.lock().expect("no holder panics").as_mut() {
        kept.push(line.clone());
    }
}

fn collector(
    options: &Options,
    layout: &Layout,
    device: &Loop,
    external: Option<&Loop>,
) -> Collector {
    // The second block of the device holds the journal's superblock when blocks have 4 KiB.
    let place = external.map(|device| ExternalJournal { dev: device.dev, superblock: 1 });
    let mut collector = Collector::new(device.dev, layout, place);
    if let Journal::External { mib } = options.journal {
        collector.set_ring_bytes((mib << 20) - 2 * layout.block_bytes);
    }
    collector
}

fn mkfs(options: &Options, device: &Loop, external: Option<&Loop>) -> Result<(), RealError> {
    // Without lazy initialisation, no thread writes inode tables after the mount.
    let mut args: Vec<String> =
        ["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
            .map(Into::into)
            .into();
    match options.journal {
        Journal::None => args.extend(["-O".into(), "^has_journal".into()]),
        Journal::Internal { mib } => {
            args.extend(mib.into_iter().flat_map(|mib| ["-J".into(), format!("size={mib}")]));
        }
        Journal::External { .. } => {
            if let Some(journal) = external {
                tool("mkfs.ext4", &["-q", "-F", "-b", "4096", "-O", "journal_dev", &journal.path])?;
                args.extend(["-J".into(), format!("device={}", journal.path)]);
            }
        }
    }
    args.extend(options.mkfs.iter().cloned());
    args.push(device.path.clone());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    tool("mkfs.ext4", &args)?;
    Ok(())
}

fn mount_options(options: &Options) -> String {
    let mut all = vec![if options.delalloc { "delalloc" } else { "nodelalloc" }];
    if options.journal != Journal::None {
        all.push(match options.data {
            Data::Ordered => "data=ordered",
            Data::Journal => "data=journal",
            Data::Writeback => "data=writeback",
        });
    }
    // The kernel warns about delalloc with data=journal and turns it off itself.
    if options.data == Data::Journal {
        all.remove(0);
    }
    all.extend(options.mount.iter().map(String::as_str));
    all.join(",")
}

/// A setting of the mounted file system.
fn tunable(device: &Loop, file: &str) -> PathBuf {
    Path::new("/sys/fs/ext4").join(device.name()).join(file)
}

/// Reads where metadata is. Directories that `mkfs` makes have no allocation events.
fn read_layout(image: &Path) -> Result<Layout, RealError> {
    let path = image.to_string_lossy();
    let mut layout = layout::parse_dumpe2fs(&tool("dumpe2fs", &[&path])?)?;
    let stat = |inode: u64| {
        let text = tool("debugfs", &["-R", &format!("stat <{inode}>"), &path])?;
        layout::parse_stat(&text).map_err(RealError::from)
    };
    // Inodes 2 and 11: the root and lost+found.
    for inode in [2, 11] {
        for (first, n) in stat(inode)?.0 {
            layout.blocks.set(first, n, Structure::Directory);
        }
    }
    // Inode 8: the journal; empty where there is none inside.
    let (journal, tree) = stat(8)?;
    for (at, (first, n)) in journal.iter().copied().enumerate() {
        layout.blocks.set(first, n, Structure::JournalRing);
        if at == 0 {
            layout.blocks.set(first, 1, Structure::JournalSuperblock);
        }
    }
    for block in tree {
        layout.blocks.set(block, 1, Structure::ExtentTree);
    }
    layout.journal = journal;
    Ok(layout)
}

/// A loop device and its image.
struct Loop {
    path: String,
    image: PathBuf,
    dev: Dev,
}

impl Loop {
    fn attach(image: &Path, mib: u64) -> Result<Self, RealError> {
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

    fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    fn sysfs(&self) -> PathBuf {
        Path::new("/sys/block").join(self.name())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = tool("losetup", &["--detach", &self.path]);
    }
}

/// A mount.
struct Mount {
    at: PathBuf,
}

impl Mount {
    fn new(device: &Loop, at: &Path, options: &str) -> Result<Self, RealError> {
        std::fs::create_dir(at).map_err(RealError::io("make", at))?;
        let mount = Self { at: at.to_owned() };
        mount.attach(device, options)?;
        Ok(mount)
    }

    fn again(&self, device: &Loop, options: &str) -> Result<(), RealError> {
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
    for place in [MEMORY, "/sys/kernel/tracing/instances"] {
        let Ok(entries) = std::fs::read_dir(place) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !gone(&name) {
                continue;
            }
            let path = entry.path();
            found.push(path.to_string_lossy().into_owned());
            if place == MEMORY {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_that_touch_are_one_run() {
        let text = "\
Filesystem type is: ef53
File size of /m/a is 16384 (4 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       1:      34816..     34817:      2:
   1:        2..       2:      34818..     34818:      1:             unwritten
   2:        3..       3:        900..       900:      1:      34819: last,eof
/m/a: 2 extents found
File size of /m/b: c is 0 (0 blocks of 4096 bytes)
/m/b: c: 0 extents found
";
        assert_eq!(
            parse_filefrag(text),
            [
                FileExtents { path: "/m/a".into(), runs: vec![(34816, 3), (900, 1)] },
                FileExtents { path: "/m/b: c".into(), runs: vec![] },
            ]
        );
    }
}
