//! The whole way on a real ext4: work in, sums out, nothing left behind.
//!
//! Needs root, loop devices, tracefs and e2fsprogs; without them each test says what is
//! missing and ends.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "skipped tests say so")]

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flashwise_hostfs::{Action, Application, Call, Fd, OpId, OpenFlags, Outcome, Paths};
use flashwise_realfs::observed::Structure;
use flashwise_realfs::scripts::script;
use flashwise_realfs::{Closing, Data, Journal, Options, RealFs, Report, missing, run, run_script};

/// One test at a time: a change of a setting in `/proc/sys/vm` makes the kernel write all
/// dirty pages of the machine.
static ONE: Mutex<()> = Mutex::new(());

/// Whether to go on; says why not.
fn possible() -> Option<MutexGuard<'static, ()>> {
    if let Some(what) = missing() {
        eprintln!("skipped: needs {what}");
        return None;
    }
    Some(ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// No commit but those that are asked for, however slow the machine is.
fn small() -> Options {
    let mount = vec!["commit=300".into()];
    Options { mib: 256, journal: Journal::Internal { mib: Some(16) }, mount, ..Options::default() }
}

fn run_named(name: &str, options: &Options) -> (RealFs, Report) {
    let fs = RealFs::make(options).expect("a file system");
    let mut script = script(name).expect("a script");
    let report = run_script(&fs, &mut script, Closing::Sync).expect("a run");
    assert_eq!(script.failed(), [], "{name}: no call is expected to fail");
    (fs, report)
}

/// Each fsync that finds a new inode size commits: descriptor, three blocks of metadata,
/// and a commit block that is preceded by a flush and forced to the medium.
#[test]
fn an_append_with_fsync_costs_a_transaction() {
    let Some(_one) = possible() else { return };
    // Large enough not to wrap: moving the tail would take flushes too.
    let journal = Journal::Internal { mib: Some(32) };
    let (fs, report) = run_named("append-fsync", &Options { journal, ..small() });
    let seen = &report.during;
    assert_eq!(seen.writes.data.bytes, 1000 * 4096);
    assert_eq!(seen.writes.data.requests, 1000);
    assert_eq!(seen.journal.commits, 1000);
    // Anybody who makes the machine write dirty pages may move the journal's tail.
    assert!((1000..1010).contains(&seen.preflush_bios), "{}", seen.preflush_bios);
    assert!((1000..1010).contains(&seen.fua_bios), "{}", seen.fua_bios);
    // The device has no FUA: a flush before the commit block and one after it.
    assert!((2000..2020).contains(&seen.flush_requests), "{}", seen.flush_requests);
    // The first transaction also holds what making the file changed.
    let ring = seen.structures[&Structure::JournalRing];
    assert!((1000 * 5 * 4096..1010 * 5 * 4096).contains(&ring), "{ring}");
    assert_eq!(seen.journal.blocks_logged * 4096, ring, "the journal's own count agrees");
    let total = report.total();
    assert_eq!((total.layout.files, total.layout.bytes), (1, 1000 * 4096));
    assert!(total.layout.extents < 20, "{:?}", total.layout);
    // The last transactions are still in the ring, of known structures.
    let all = fs.transactions().expect("a journal");
    let last = all[report.tids.last().expect("a commit")].clone();
    let mut held: Vec<Structure> = last.homes.iter().map(|home| fs.structure(*home)).collect();
    held.sort();
    assert_eq!(held, [Structure::GroupDescriptors, Structure::BlockBitmap, Structure::InodeTable]);
    assert!(last.committed);
}

/// Data in place needs no transaction, only a flush: timestamps are not asked for.
#[test]
fn an_overwrite_with_dsync_costs_a_flush() {
    let Some(_one) = possible() else { return };
    for name in ["overwrite-dsync", "overwrite-fdatasync"] {
        let (_fs, report) = run_named(name, &small());
        let seen = &report.during;
        assert_eq!((seen.writes.data.bytes, seen.writes.data.requests), (1000 * 4096, 1000));
        assert_eq!((seen.journal.commits, seen.preflush_bios), (0, 1000), "{name}");
        assert_eq!((seen.fua_bios, seen.flush_requests), (0, 1000), "{name}");
    }
}

/// A new timestamp is metadata that fsync makes durable and fdatasync does not.
#[test]
fn a_new_timestamp_costs_a_transaction() {
    let Some(_one) = possible() else { return };
    for (name, commits) in [("overwrite-fsync-paced", 200), ("overwrite-fdatasync-paced", 0)] {
        let (_fs, report) = run_named(name, &small());
        let seen = &report.during;
        assert_eq!((seen.journal.commits, seen.journal.blocks), (commits, commits), "{name}");
        assert_eq!(seen.journal.blocks_logged, 3 * commits, "{name}");
        assert_eq!(seen.preflush_bios, 200, "{name}");
    }
}

/// What no transaction holds and no allocation announced would be unknown.
#[test]
fn every_block_written_is_known() {
    let Some(_one) = possible() else { return };
    for name in ["create", "mkdir", "punch-hole", "sqlite-like"] {
        let (_fs, report) = run_named(name, &small());
        let written = report.total();
        assert_eq!(written.written_bytes(), written.structures.values().sum::<u64>(), "{name}");
        for unknown in [Structure::Unknown, Structure::UnknownMetadata] {
            assert!(!written.structures.contains_key(&unknown), "{name}: {written:?}");
        }
        if name == "mkdir" {
            // One block each, and those of the directory they are in.
            let directories = written.structures[&Structure::Directory];
            assert!((1000..1050).contains(&(directories / 4096)), "{directories}");
        }
    }
}

/// The kernel marks such data as metadata on its way home; it is data all the same.
#[test]
fn with_data_in_the_journal_it_is_written_twice() {
    let Some(_one) = possible() else { return };
    let options = Options { data: Data::Journal, ..small() };
    let (_fs, report) = run_named("append-two-buffered", &options);
    let total = report.total();
    let bytes = 500 * 16 * 1024;
    assert_eq!(total.writes.data.bytes, bytes);
    assert!((bytes..bytes * 11 / 10).contains(&total.writes.journal.bytes));

    let options = Options { mount: Vec::new(), journal: Journal::None, ..small() };
    let (fs, report) = run_named("append-two-buffered", &options);
    let total = report.total();
    assert_eq!((total.writes.data.bytes, total.writes.journal.bytes), (bytes, 0));
    assert_eq!(total.journal.commits, 0);
    assert!(fs.transactions().expect("no journal").is_empty());
}

#[test]
fn a_journal_can_be_on_another_device() {
    let Some(_one) = possible() else { return };
    let options = Options { journal: Journal::External { mib: 16 }, ..small() };
    let (fs, report) = run_named("append-fsync", &options);
    let seen = &report.during;
    assert_eq!((seen.journal.commits, seen.writes.data.bytes), (1000, 1000 * 4096));
    assert_eq!(seen.journal.blocks_logged * 4096, seen.structures[&Structure::JournalRing]);
    assert!(!fs.transactions().expect("a journal").is_empty());
}

#[test]
fn nothing_is_left_behind_not_even_by_a_panic() {
    let Some(_one) = possible() else { return };
    let vm = Path::new("/proc/sys/vm/dirty_writeback_centisecs");
    let before = std::fs::read_to_string(vm).expect("a setting");
    let mut root = None;
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let vm = vec![("dirty_writeback_centisecs".into(), "777".into())];
        let fs = RealFs::make(&Options { vm, ..small() }).expect("a file system");
        root = Some(fs.root().to_owned());
        assert!(is_mounted(fs.root()));
        std::fs::write(fs.root().join("a"), "a").expect("a file");
        panic!("as a failing test would");
    }));
    assert!(result.is_err());
    let root = root.expect("it was made");
    let dir = root.parent().expect("a directory");
    assert!(!is_mounted(&root) && !dir.exists(), "{}", dir.display());
    let name = dir.file_name().expect("a name");
    assert!(!Path::new("/sys/kernel/tracing/instances").join(name).exists());
    assert!(!losetup().contains(&*name.to_string_lossy()));
    assert_eq!(std::fs::read_to_string(vm).expect("a setting"), before);
}

fn is_mounted(at: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("proc");
    mounts.contains(&*at.to_string_lossy())
}

fn losetup() -> String {
    let output = std::process::Command::new("losetup").arg("--list").output().expect("losetup");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Two threads: one makes calls and checks their outcomes, the other parks until woken.
struct Two {
    paths: Paths,
    ops: Vec<String>,
    actions: [Vec<Action>; 2],
    outcomes: Vec<Outcome>,
}

impl Application for Two {
    fn n_threads(&self) -> u32 {
        2
    }

    fn op_names(&self) -> &[String] {
        &self.ops
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        None
    }

    fn next(&mut self, thread: u32, _now_ns: u64) -> Action {
        let actions = &mut self.actions[thread as usize];
        if actions.is_empty() { Action::End } else { actions.remove(0) }
    }

    fn finished(&mut self, _thread: u32, outcome: Outcome, _now_ns: u64) {
        self.outcomes.push(outcome);
    }
}

#[test]
fn calls_end_as_applications_are_told() {
    let Some(_one) = possible() else { return };
    let mut paths = Paths::new();
    let [dir, a, b, c] = ["/d", "/d/a", "/d/b", "/d/c"].map(|path| paths.intern(path));
    let fd = Fd(3);
    let direct = OpenFlags { create: true, direct: true, ..OpenFlags::PLAIN };
    let exclusive = OpenFlags { create: true, exclusive: true, ..OpenFlags::PLAIN };
    let done = Outcome::Done;
    let calls = [
        (Call::Mkdir { path: dir }, done(0)),
        (Call::Mkdir { path: dir }, Outcome::Exists),
        (Call::Open { path: a, fd, flags: OpenFlags::PLAIN }, Outcome::NotFound),
        (Call::Open { path: a, fd, flags: direct }, done(0)),
        (Call::Write { fd, offset: 0, len: 8192 }, done(8192)),
        (Call::Write { fd, offset: 100, len: 8192 }, Outcome::Invalid),
        (Call::Append { fd, len: 4096 }, done(4096)),
        (Call::Read { fd, offset: 8192, len: 65536 }, done(4096)),
        (Call::Stat { path: a }, done(12288)),
        (Call::Fallocate { fd, offset: 0, len: 65536, keep_size: true }, done(0)),
        (Call::Stat { path: a }, done(12288)),
        (Call::PunchHole { fd, offset: 0, len: 4096 }, done(0)),
        (Call::Truncate { fd, size: 100 }, done(0)),
        (Call::Open { path: b, fd, flags: exclusive }, Outcome::Invalid),
        (Call::Close { fd }, done(0)),
        (Call::Close { fd }, Outcome::Invalid),
        (Call::Open { path: a, fd, flags: exclusive }, Outcome::Exists),
        (Call::OpenTemporary { dir, fd, flags: OpenFlags::PLAIN }, done(0)),
        (Call::Append { fd, len: 10 }, done(10)),
        (Call::LinkFd { fd, to: b }, done(0)),
        (Call::LinkFd { fd, to: a }, Outcome::Exists),
        (Call::Fdatasync { fd }, done(0)),
        (Call::Close { fd }, done(0)),
        (Call::Stat { path: b }, done(10)),
        (Call::Link { from: b, to: c }, done(0)),
        (Call::Rename { from: c, to: a }, done(0)),
        (Call::Unlink { path: dir }, Outcome::IsDirectory),
        (Call::Rmdir { path: dir }, Outcome::IsDirectory),
        (Call::Open { path: dir, fd, flags: OpenFlags::PLAIN }, Outcome::IsDirectory),
        (Call::Open { path: a, fd, flags: OpenFlags::DSYNC }, done(0)),
        // More than there is.
        (Call::Write { fd, offset: 0, len: 300 << 20 }, Outcome::NoSpace),
        (Call::Close { fd }, done(0)),
        (Call::Unlink { path: a }, done(0)),
        // The same file: it keeps its blocks until its last name is gone.
        (Call::Unlink { path: b }, done(0)),
        (Call::Unlink { path: c }, Outcome::NotFound),
        // Blocks can be reused, and discarded, once the deletion is committed.
        (Call::Sync, done(0)),
        (Call::Trim, done(0)),
    ];
    let op = OpId(0);
    let mut first: Vec<Action> =
        calls.iter().map(|(call, _)| Action::Call { call: *call, op, ends_op: true }).collect();
    // Before the second thread parks, most likely; and nothing is lost by that.
    first.insert(0, Action::Wake { thread: 1 });
    let spawned = Call::Open { path: c, fd: Fd(9), flags: OpenFlags::CREATE };
    first.extend([Action::Spawn { call: spawned, op }, Action::Join]);
    // Parks once more than it is woken: ends with the time limit.
    let second = vec![Action::Park, Action::Compute { ns: 1000 }, Action::Park];
    let actions = [first, second];
    let mut app = Two { paths, ops: vec!["op".into()], actions, outcomes: Vec::new() };
    let fs = RealFs::make(&small()).expect("a file system");
    let limit = Duration::from_secs(4);
    let report = run(&fs, &mut app, limit, Closing::AsIs).expect("a run");
    for ((call, expected), outcome) in calls.iter().zip(&app.outcomes) {
        assert_eq!(outcome, expected, "{call:?}");
    }
    assert_eq!(app.outcomes.len(), calls.len());
    assert_eq!(report.ops[0].n, calls.len() as u64 + 1, "the spawned call counts too");
    let failed = calls.iter().filter(|(_, outcome)| !matches!(outcome, Outcome::Done(_))).count();
    assert_eq!(report.failed_calls, failed as u64);
    assert!(fs.root().join("d/c").exists());
    assert!(report.during.discards.bytes > 100 << 20, "{:?}", report.during.discards);
    assert!(report.elapsed_ns >= limit.as_nanos() as u64);
    assert!(app.actions.iter().all(Vec::is_empty), "both threads did all");
}

#[test]
fn runs_on_one_file_system_are_counted_apart() {
    let Some(_one) = possible() else { return };
    let fs = RealFs::make(&small()).expect("a file system");
    for n_blocks in [3, 5] {
        let mut paths = Paths::new();
        let path = paths.intern(&format!("/f{n_blocks}"));
        let (fd, op) = (Fd(0), OpId(0));
        let calls = [
            Call::Open { path, fd, flags: OpenFlags::CREATE },
            Call::Append { fd, len: n_blocks * 4096 },
            Call::Fsync { fd },
        ];
        let first = calls.map(|call| Action::Call { call, op, ends_op: true }).to_vec();
        let actions = [first, Vec::new()];
        let mut app = Two { paths, ops: vec!["op".into()], actions, outcomes: Vec::new() };
        let report = run(&fs, &mut app, Duration::MAX, Closing::Sync).expect("a run");
        assert_eq!(report.during.writes.data.bytes, n_blocks * 4096);
        assert_eq!(report.during.journal.commits, 1);
        assert_eq!(report.tids.len() as u64, report.total().journal.commits);
    }
}

#[test]
fn a_bad_setting_is_named_and_leaves_nothing() {
    let Some(_one) = possible() else { return };
    let options = Options { ext4: vec![("no_such_tunable".into(), "1".into())], ..small() };
    let error = RealFs::make(&options).err().expect("an error").to_string();
    assert!(error.contains("no_such_tunable"), "{error}");
    let options = Options { mount: vec!["no_such_option".into()], ..Options::default() };
    let error = RealFs::make(&options).err().expect("an error").to_string();
    assert!(error.contains("no_such_option"), "{error}");
}
