//! A real ext4 on a loop device over memory, gone when dropped.
//!
//! The image is a sparse file in tmpfs, so the device is fast, discards work and nothing
//! of it survives. The device has a volatile write cache and no FUA, as the loop driver
//! says; a FUA bio becomes a write and a flush.
//!
//! Invariant: dropping a [`RealFs`], also while a panic unwinds, unmounts, detaches and
//! deletes in that order. A killed process leaves things behind; [`super::sweep_leftovers`] takes
//! away those of processes that are gone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::RealError;
use super::device::{Loop, Mount, PREFIX};
use super::settings::Settings;
use super::tools::{MEMORY, missing, tool};
use super::tracefs::Trace;
use crate::collect::{Collector, ExternalJournal};
use crate::journal;
use crate::layout::{self, FileExtents, Layout};
use crate::observed::{self, Structure};
use crate::trace::{Dev, Event, Line};

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
            all.extend(layout::parse_filefrag(&tool("filefrag", &args)?));
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
