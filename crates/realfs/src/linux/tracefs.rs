//! A private trace of block devices, read while it is written.
//!
//! An instance of tracefs has buffers and events of its own, so other users of tracing are
//! not disturbed. A thread reads `trace_pipe` and gives each event to a function. Phases
//! are told apart by lines that are written into the trace itself (`trace_marker`): their
//! place among the events is exact, whatever the reading thread is late by.
//!
//! Lost events are reported by the kernel in the stream and counted in `per_cpu/*/stats`.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::RealError;
use super::tools::TRACEFS;
use crate::trace::{self, Dev, Event, Line};

/// Events that are traced, and the field that tells the device.
const EVENTS: [&str; 6] = [
    "block/block_bio_queue",
    "block/block_rq_issue",
    "ext4/ext4_allocate_blocks",
    "ext4/ext4_allocate_inode",
    "jbd2/jbd2_run_stats",
    "jbd2/jbd2_checkpoint_stats",
];

/// How long the reading thread sleeps when there is nothing to read.
const POLL: Duration = Duration::from_millis(5);
/// How long to wait for a marker to come out of the trace \[s\].
const MARKER_SECONDS: u64 = 60;

/// A trace that runs.
pub(crate) struct Trace {
    dir: PathBuf,
    shared: Arc<Shared>,
    marked: AtomicU64,
    reader: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    state: Mutex<State>,
    marked: Condvar,
}

#[derive(Default)]
struct State {
    markers: Vec<String>,
    error: Option<RealError>,
}

impl Trace {
    /// Starts tracing `devs` with buffers of `kib` KiB per CPU. `each` is called by a
    /// thread of its own, in order of time.
    pub(crate) fn start(
        name: &str,
        devs: &[Dev],
        kib: u64,
        each: impl FnMut(&Line) + Send + 'static,
    ) -> Result<Self, RealError> {
        let dir = Path::new(TRACEFS).join("instances").join(name);
        std::fs::create_dir(&dir).map_err(RealError::io("make", &dir))?;
        // From here on, dropping removes the instance.
        let mut trace =
            Self { dir, shared: Arc::default(), marked: AtomicU64::new(0), reader: None };
        trace.write("tracing_on", "0")?;
        trace.write("trace_clock", "mono")?;
        trace.write("buffer_size_kb", &kib.to_string())?;
        let filter: Vec<String> =
            devs.iter().map(|dev| format!("dev == {}", dev.as_filter())).collect();
        for event in EVENTS {
            trace.write(&format!("events/{event}/filter"), &filter.join(" || "))?;
            trace.write(&format!("events/{event}/enable"), "1")?;
        }
        let path = trace.dir.join("trace_pipe");
        let pipe = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .map_err(RealError::io("open", &path))?;
        let shared = Arc::clone(&trace.shared);
        trace.reader = Some(std::thread::spawn(move || read_pipe(pipe, path, &shared, each)));
        trace.write("tracing_on", "1")?;
        Ok(trace)
    }

    /// Writes a line into the trace and waits until the reading thread came to it: all
    /// events before it were given out, and none that follows it.
    pub(crate) fn mark(&self, phase: &str) -> Result<(), RealError> {
        // Numbered: a file system may see several runs.
        let marker = format!("{phase} {}", self.marked.fetch_add(1, Ordering::Relaxed));
        self.write("trace_marker", &marker)?;
        let mut state = self.shared.state.lock().expect("no holder panics");
        for _ in 0..MARKER_SECONDS * 10 {
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if state.markers.contains(&marker) {
                return Ok(());
            }
            let wait = self.shared.marked.wait_timeout(state, Duration::from_millis(100));
            state = wait.expect("no holder panics").0;
        }
        Err(RealError::NoMarker { marker, seconds: MARKER_SECONDS })
    }

    /// Events the kernel dropped or overwrote so far.
    pub(crate) fn lost(&self) -> Result<u64, RealError> {
        let path = self.dir.join("per_cpu");
        let mut lost = 0;
        for cpu in std::fs::read_dir(&path).map_err(RealError::io("list", &path))? {
            let stats = cpu.map_err(RealError::io("list", &path))?.path().join("stats");
            let text = std::fs::read_to_string(&stats).map_err(RealError::io("read", &stats))?;
            lost += text
                .lines()
                .filter_map(|line| line.split_once(": "))
                .filter(|(name, _)| {
                    matches!(*name, "overrun" | "commit overrun" | "dropped events")
                })
                .filter_map(|(_, n)| n.trim().parse::<u64>().ok())
                .sum::<u64>();
        }
        Ok(lost)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), RealError> {
        let path = self.dir.join(file);
        // Files of tracefs cannot be made, only opened.
        let mut options = std::fs::OpenOptions::new();
        let open = options.write(true).open(&path).map_err(RealError::io("open", &path))?;
        std::io::Write::write_all(&mut &open, text.as_bytes())
            .map_err(RealError::io("write", &path))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        let _ = std::fs::remove_dir(&self.dir);
    }
}

fn read_pipe(mut pipe: std::fs::File, path: PathBuf, shared: &Shared, mut each: impl FnMut(&Line)) {
    let mut buffer = vec![0; 1 << 16];
    let mut text = Vec::new();
    let fail = |error| {
        shared.state.lock().expect("no holder panics").error.get_or_insert(error);
        shared.marked.notify_all();
    };
    loop {
        let n = match pipe.read(&mut buffer) {
            Ok(n) => n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(e) => return fail(RealError::io("read", &path)(e)),
        };
        if n == 0 {
            if shared.stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(POLL);
            continue;
        }
        text.extend_from_slice(&buffer[..n]);
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { continue };
        for line in String::from_utf8_lossy(&text[..end]).lines() {
            match trace::parse(line) {
                Ok(None) => {}
                Ok(Some(line)) => {
                    each(&line);
                    if let Event::Marker(marker) = line.event {
                        shared.state.lock().expect("no holder panics").markers.push(marker);
                        shared.marked.notify_all();
                    }
                }
                Err(bad) => fail(bad.into()),
            }
        }
        text.drain(..=end);
    }
}
