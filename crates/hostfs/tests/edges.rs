//! Corners where a host could wait for ever, work without bound, or lose something: tiny
//! limits, full file systems, threads that meet at one file.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use flashwise_hostfs::{
    Action, Application, Call, Fd, FsConfig, Host, HostError, Io, IoOp, OpId, OpenFlags, Outcome,
    PathId, Paths, RamDisk, RamSpeed,
};

const MIB: u64 = 1 << 20;
const FD: Fd = Fd(0);
const PAGE: u64 = 4096;

/// Threads that do what they are told.
struct Threads {
    paths: Paths,
    names: Vec<String>,
    todo: Vec<VecDeque<Action>>,
    /// Thread, how its call ended, and when.
    ended: Vec<(u32, Outcome, u64)>,
}

impl Threads {
    fn new(paths: Paths, todo: Vec<Vec<Action>>) -> Self {
        let todo = todo.into_iter().map(VecDeque::from).collect();
        Self { paths, names: vec!["call".to_owned()], todo, ended: vec![] }
    }

    fn outcomes(&self, thread: u32) -> Vec<Outcome> {
        self.ended.iter().filter(|e| e.0 == thread).map(|e| e.1).collect()
    }

    /// When the last call of a thread ended \[ns\].
    fn end_ns(&self, thread: u32) -> u64 {
        self.ended.iter().filter(|e| e.0 == thread).map(|e| e.2).max().unwrap_or(0)
    }
}

impl Application for Threads {
    fn n_threads(&self) -> u32 {
        self.todo.len() as u32
    }

    fn op_names(&self) -> &[String] {
        &self.names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        None
    }

    fn next(&mut self, thread: u32, _now_ns: u64) -> Action {
        self.todo[thread as usize].pop_front().unwrap_or(Action::End)
    }

    fn finished(&mut self, thread: u32, outcome: Outcome, now_ns: u64) {
        self.ended.push((thread, outcome, now_ns));
    }
}

fn call(call: Call) -> Action {
    Action::Call { call, op: OpId(0), ends_op: true }
}

fn calls(all: impl IntoIterator<Item = Call>) -> Vec<Action> {
    all.into_iter().map(call).collect()
}

fn open(path: PathId, fd: Fd) -> Call {
    Call::Open { path, fd, flags: OpenFlags { create: true, ..OpenFlags::PLAIN } }
}

/// Runs to the end on a RAM disk; all requests.
fn run(fs: &str, bytes: u64, app: Threads) -> (Host<Threads>, Vec<Io>) {
    let mut disk = RamDisk::new(RamSpeed::DDR4);
    run_on(fs, bytes, app, |io| disk.submit(io))
}

fn run_on(
    fs: &str,
    bytes: u64,
    app: Threads,
    mut submit: impl FnMut(&Io) -> u64,
) -> (Host<Threads>, Vec<Io>) {
    let config = FsConfig::parse(fs).expect("a valid host");
    let mut host = Host::new(app, &config, bytes).expect("it fits");
    let mut ios = vec![];
    while let Some(io) = host.next_io() {
        ios.push(io);
        assert!(ios.len() < 5_000_000, "it does not come to an end");
        host.completed(submit(&io));
    }
    host.self_check();
    (host, ios)
}

fn all_done(host: &Host<Threads>, thread: u32) -> bool {
    host.application().outcomes(thread).iter().all(|o| matches!(o, Outcome::Done(_)))
}

#[test]
fn big_logged_writes_of_many_threads_pass_through_a_tiny_journal() {
    let mut paths = Paths::new();
    let threads = (0..4).map(|t| {
        let (path, fd) = (paths.intern(&format!("/f{t}")), Fd(t));
        let mut all = vec![open(path, fd)];
        for n in 0..20 {
            all.push(Call::Write { fd, offset: n % 3 * MIB, len: MIB });
            if n % 4 == u64::from(t) {
                all.push(Call::Fsync { fd });
            }
        }
        calls(all)
    });
    let threads = threads.collect();
    let fs = "ext4,data=journal,journal-size=4m,nr-requests=1,flusher=0";
    let (host, _) = run(fs, 64 * MIB, Threads::new(paths, threads));
    assert_eq!(host.failure(), None);
    assert!((0..4).all(|t| all_done(&host, t)));
    assert!(host.counts().checkpoints > 0);
}

#[test]
fn tiny_limits_slow_writers_down_and_do_not_stop_them() {
    for fs in [
        "ext4,dirty=4k,background=4k,flusher=0,expire=0",
        "ext4,dirty=8k,background=8k,flusher=0",
        "ext4,dirty=12k,background=8k,flusher=0,journal=none",
        "ext4,data=journal,dirty=4k,background=4k,flusher=0,journal-size=4m",
        "ext4,memory=4m,dirty=1g,background=1g,readahead=0,delalloc=off",
        "ext4,memory=4m,dirty=1g,background=512m,readahead=64m,nr-requests=1,plug=1024",
    ] {
        let mut paths = Paths::new();
        let path = paths.intern("/f");
        let mut all = vec![open(path, FD), Call::Write { fd: FD, offset: 0, len: 8 * MIB }];
        for n in 0..200u64 {
            // Parts of pages, some of which are no longer in memory.
            all.push(Call::Write { fd: FD, offset: n * 37_777 % (8 * MIB), len: 5_000 });
            all.push(open(paths.intern(&format!("/g{}", n % 20)), Fd(1)));
            all.push(Call::Write { fd: Fd(1), offset: 0, len: 10_000 });
            all.push(Call::Close { fd: Fd(1) });
        }
        all.push(Call::Read { fd: FD, offset: 0, len: u64::MAX });
        all.push(Call::Sync);
        let (host, _) = run(fs, 256 * MIB, Threads::new(paths, vec![calls(all)]));
        assert_eq!(host.failure(), None, "{fs}");
        assert!(all_done(&host, 0), "{fs}");
        assert_eq!(host.cached_pages().1, 0, "{fs}");
    }
}

#[test]
fn a_sync_ends_while_others_write() {
    for last in [Call::Fsync { fd: FD }, Call::Sync] {
        let mut paths = Paths::new();
        let path = paths.intern("/f");
        let writes =
            (0..20_000u64).map(|n| Call::Write { fd: FD, offset: n % 64 * PAGE, len: PAGE });
        let writer = calls(std::iter::once(open(path, FD)).chain(writes));
        let syncer = vec![Action::SleepUntil { at_ns: 100_000 }, call(last)];
        let app = Threads::new(paths, vec![writer, syncer]);
        let (host, _) = run("ext4,cores=0", 256 * MIB, app);
        let app = host.application();
        assert!(all_done(&host, 1));
        assert!(app.end_ns(1) < app.end_ns(0) / 2, "{} {}", app.end_ns(1), app.end_ns(0));
    }
}

/// Two files whose blocks touch, written back by `sync` of one thread in one request: the
/// other thread's fsync waits for it too.
#[test]
fn fsync_waits_for_pages_that_left_in_a_request_of_another_file() {
    let mut paths = Paths::new();
    let (a, b) = (paths.intern("/a"), paths.intern("/b"));
    let write = |fd| Call::Write { fd, offset: 0, len: PAGE };
    let first = calls([open(a, Fd(0)), open(b, Fd(1)), write(Fd(0)), write(Fd(1)), Call::Sync]);
    let second = vec![Action::SleepUntil { at_ns: 100_000 }, call(Call::Fsync { fd: Fd(1) })];
    let slow_ns = 50_000_000;
    let (host, ios) =
        run_on("ext4,costs=none", 256 * MIB, Threads::new(paths, vec![first, second]), |io| {
            io.at_ns + slow_ns
        });
    let data = |io: &&Io| io.class == flashwise_hostfs::IoClass::Data;
    assert_eq!(ios.iter().filter(data).map(|io| io.sectors).collect::<Vec<_>>(), [16]);
    // Data, then log, flush and commit block.
    assert!(host.application().end_ns(1) >= 4 * slow_ns, "{}", host.application().end_ns(1));
}

#[test]
fn a_descriptor_may_be_closed_under_a_call() {
    let mut paths = Paths::new();
    let path = paths.intern("/f");
    let slow = calls([open(path, FD), Call::Write { fd: FD, offset: 0, len: 4 * MIB }]);
    let pause = |at_ns| Action::SleepUntil { at_ns };
    let hasty = vec![
        pause(50_000_000),
        call(Call::Unlink { path }),
        call(Call::Close { fd: FD }),
        call(open(path, FD)),
        call(Call::Write { fd: FD, offset: 0, len: PAGE }),
    ];
    let app = Threads::new(paths, vec![slow, hasty]);
    // The write waits for its own pages, 20 ms at a time.
    let fs = "ext4,dirty=64k,background=4k";
    let (host, _) = run_on(fs, 256 * MIB, app, |io| io.at_ns + 20_000_000);
    assert!(all_done(&host, 1));
    let written = [Outcome::Done(0), Outcome::Done(4 * MIB)];
    assert_eq!(host.application().outcomes(0), written);
}

#[test]
fn what_is_freed_is_discarded_at_once_and_only_while_it_is_free() {
    let mut paths = Paths::new();
    let (a, b) = (paths.intern("/a"), paths.intern("/b"));
    let todo = calls([
        open(a, FD),
        Call::Write { fd: FD, offset: 0, len: 4 * MIB },
        Call::Close { fd: FD },
        Call::Sync,
        Call::Unlink { path: a },
        Call::Sync,
        open(b, FD),
        Call::Write { fd: FD, offset: 0, len: 4 * MIB },
        Call::Sync,
    ]);
    let (_, ios) = run("ext4,discard", 64 * MIB, Threads::new(paths, vec![todo]));
    let discards: Vec<_> = ios.iter().filter(|io| io.op == IoOp::Discard).collect();
    assert_eq!(discards.iter().map(|io| u64::from(io.sectors) * 512).sum::<u64>(), 4 * MIB);
    let last_data = ios.iter().rposition(|io| io.class == flashwise_hostfs::IoClass::Data);
    let last = last_data.map(|at| ios[at].at_ns).expect("data was written");
    assert!(discards.iter().all(|io| io.at_ns < last));
}

#[test]
fn a_full_file_system_says_so_and_freed_space_comes_back() {
    for fs in ["ext4", "ext4,delalloc=off", "ext4,data=journal", "ext4,journal=none"] {
        let mut paths = Paths::new();
        let all: Vec<PathId> = (0..3).map(|n| paths.intern(&format!("/f{n}"))).collect();
        let todo = calls([
            open(all[0], Fd(0)),
            open(all[1], Fd(1)),
            Call::Write { fd: Fd(0), offset: 0, len: 10 * MIB },
            Call::Fsync { fd: Fd(0) },
            Call::Write { fd: Fd(1), offset: 0, len: 256 * MIB },
            Call::Append { fd: Fd(1), len: PAGE },
            Call::Fsync { fd: Fd(1) },
            // What the first file gives back can be had once that has committed.
            Call::Close { fd: Fd(0) },
            Call::Unlink { path: all[0] },
            Call::Append { fd: Fd(1), len: 8 * MIB },
            Call::Fsync { fd: Fd(1) },
            Call::Sync,
        ]);
        let (host, _) = run(fs, 64 * MIB, Threads::new(paths, vec![todo]));
        let outcomes = host.application().outcomes(0);
        let Outcome::Done(n) = outcomes[4] else { panic!("{fs}: {outcomes:?}") };
        assert!((20 * MIB..50 * MIB).contains(&n) && n % PAGE == 0, "{fs}: a short write of {n}");
        assert_eq!(outcomes[5], Outcome::NoSpace, "{fs}");
        assert_eq!(outcomes[9], Outcome::Done(8 * MIB), "{fs}");
        assert_eq!(host.cached_pages().1, 0, "{fs}");
    }
}

#[test]
fn inodes_and_directories_run_out_and_nothing_is_left_half_made() {
    // 4,096 inodes in 16 MiB; each file has a name of 200 bytes.
    let mut paths = Paths::new();
    let name = |n: u32| format!("/{n:0200}");
    let all: Vec<PathId> = (0..5000).map(|n| paths.intern(&name(n))).collect();
    let mut todo = vec![];
    for path in &all {
        todo.extend([open(*path, FD), Call::Close { fd: FD }]);
    }
    let (host, _) = run("ext4,size=16m", 16 * MIB, Threads::new(paths, vec![calls(todo)]));
    let made = host.application().outcomes(0);
    let n_made = made.iter().step_by(2).filter(|o| **o == Outcome::Done(0)).count();
    assert!((3000..4096).contains(&n_made), "{n_made} files");
    assert!(made.contains(&Outcome::NoSpace));
}

#[test]
fn a_directory_that_cannot_grow_stays_as_it_was() {
    for fs in ["ext4", "ext4,journal=none", "ext4,data=journal"] {
        let mut paths = Paths::new();
        let filler = paths.intern("/filler");
        let all: Vec<PathId> = (0..200).map(|n| paths.intern(&format!("/{n:0240}"))).collect();
        let mut todo = vec![open(filler, Fd(1))];
        // To the last block, then names until the directory needs one more.
        for _ in 0..3 {
            todo.extend([Call::Append { fd: Fd(1), len: 64 * MIB }, Call::Fsync { fd: Fd(1) }]);
        }
        for path in &all {
            todo.extend([open(*path, FD), Call::Close { fd: FD }]);
        }
        todo.extend([Call::Close { fd: Fd(1) }, Call::Unlink { path: filler }, Call::Sync]);
        for path in &all {
            todo.extend([open(*path, FD), Call::Close { fd: FD }]);
        }
        todo.extend(all.iter().map(|path| Call::Unlink { path: *path }));
        todo.push(Call::Sync);
        let n = all.len();
        let (host, _) = run(fs, 16 * MIB, Threads::new(paths, vec![calls(todo)]));
        let outcomes = host.application().outcomes(0);
        assert!(outcomes[7..7 + 2 * n].contains(&Outcome::NoSpace), "{fs}");
        assert!(outcomes[10 + 2 * n..].iter().all(|o| *o == Outcome::Done(0)), "{fs}");
    }
}

#[test]
fn a_journal_in_pieces_is_written_piece_by_piece() {
    let bytes = 8192 * MIB;
    let mut paths = Paths::new();
    let path = paths.intern("/f");
    let mut todo = vec![open(path, FD)];
    for n in 0..300 {
        todo.push(Call::Write { fd: FD, offset: n * 8 * MIB, len: 8 * MIB });
    }
    todo.push(Call::Fsync { fd: FD });
    let fs = "ext4,data=journal,journal-size=2g";
    let (host, ios) = run(fs, bytes, Threads::new(paths, vec![calls(todo)]));
    assert!(host.layout().journal_ranges().len() > 1, "the journal is in pieces");
    assert!(host.counts().commits > 0 && host.journal_rounds().is_some_and(|n| n > 1.0));
    for io in ios.iter().filter(|io| io.class == flashwise_hostfs::IoClass::Journal) {
        let blocks = (io.lba.0 / 8) as u32..(io.lba.0 / 8) as u32 + io.sectors / 8;
        let is_inside = |r: &std::ops::Range<u32>| r.start <= blocks.start && blocks.end <= r.end;
        assert!(io.sectors == 0 || host.layout().journal_ranges().iter().any(is_inside), "{io:?}");
    }
}

#[test]
fn threads_that_all_wait_are_an_error() {
    for fs in ["ext4", "ext4,flusher=0"] {
        let app =
            Threads::new(Paths::new(), vec![vec![Action::Park], vec![Action::Join, Action::Park]]);
        let (host, _) = run(fs, 64 * MIB, app);
        assert!(matches!(host.failure(), Some(HostError::Stalled { .. })), "{fs}");
    }
    let woken =
        vec![vec![Action::Park], vec![Action::Compute { ns: 5 }, Action::Wake { thread: 0 }]];
    assert_eq!(run("ext4", 64 * MIB, Threads::new(Paths::new(), woken)).0.failure(), None);
}

/// No call takes work out of proportion: a bound that a slow machine keeps, and that work in
/// the square of anything here does not.
fn within(seconds: u64, what: &str, run: impl FnOnce()) {
    let start = Instant::now();
    run();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(seconds), "{what} took {took:?}");
}

#[test]
fn a_sparse_file_of_terabytes_costs_what_is_in_it() {
    within(20, "a sparse file", || {
        let mut paths = Paths::new();
        let path = paths.intern("/f");
        let mut todo = vec![open(path, FD)];
        for n in 0..2_000u64 {
            let offset = (n * 7_919 % 4_000) * (4 << 30);
            todo.push(Call::Write { fd: FD, offset, len: PAGE });
            todo.push(Call::Read { fd: FD, offset: offset / 2, len: PAGE });
        }
        todo.push(Call::Sync);
        todo.push(Call::PunchHole { fd: FD, offset: 0, len: 8 << 40 });
        todo.push(Call::Truncate { fd: FD, size: 0 });
        todo.push(Call::Sync);
        let (host, _) = run("ext4", 1024 * MIB, Threads::new(paths, vec![calls(todo)]));
        assert!(all_done(&host, 0));
    });
}

#[test]
fn random_writes_to_a_sparse_file_stay_cheap() {
    within(60, "300,000 extents", || {
        let mut paths = Paths::new();
        let path = paths.intern("/f");
        let mut todo = vec![open(path, FD)];
        let mut draw = 1u64;
        for _ in 0..300_000u64 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let page = (draw >> 33) % (10 << 18);
            todo.push(Call::Write { fd: FD, offset: page * PAGE, len: PAGE });
        }
        todo.extend([Call::Sync, Call::Truncate { fd: FD, size: 0 }, Call::Sync]);
        let fs = "ext4,dirty=4m,background=1m";
        let (host, _) = run(fs, 16_384 * MIB, Threads::new(paths, vec![calls(todo)]));
        assert!(all_done(&host, 0));
    });
}
