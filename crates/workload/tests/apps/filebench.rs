//! The filebench personalities: what each loop does, how large things are, who waits.

use flashwise_hostfs::{Action, Call, OpenFlags};

use crate::runner;

/// `found` is within a share of `expected`.
fn near(what: &str, found: f64, expected: f64, within: f64) {
    let off = (found / expected - 1.0).abs();
    assert!(off <= within, "{what}: {found} instead of {expected}");
}

fn call(action: Action) -> Option<Call> {
    match action {
        Action::Call { call, .. } | Action::Spawn { call, .. } => Some(call),
        _ => None,
    }
}

#[test]
fn a_loop_of_varmail_makes_one_mail_and_reads_two() {
    let mut runner = runner("varmail,files=4000", 1, Some(1));
    let mut appends = Vec::new();
    let mut n_alive = Vec::new();
    runner.run(300_000, |seen| {
        if let Some(Call::Append { len, .. }) = call(seen.action) {
            appends.push(len);
        }
        if seen.label == "create" {
            n_alive.push(seen.fs.files.len() as f64);
        }
    });
    let count = |name: &str| runner.ops[name] as f64;
    let loops = count("create");
    let expected = [("fsync", 2.0), ("open", 2.0), ("read", 2.0), ("close", 3.0), ("append", 2.0)];
    for (name, per_loop) in expected {
        near(name, count(name) / loops, per_loop, 0.005);
    }
    // A file that is open is spared.
    assert!(count("delete") <= loops && count("delete") > 0.98 * loops);

    // Uniform below the 16 KiB that filebench is given, zero left out.
    let n = appends.len() as f64;
    near("mean append", appends.iter().sum::<u64>() as f64 / n, 16_384.0 / 2.0, 0.02);
    assert!(appends.iter().all(|len| (1..16_384).contains(len)));
    for eighth in 0..8 {
        let inside = appends.iter().filter(|len| **len / 2048 == eighth).count() as f64;
        near("appends of an eighth", inside, n / 8.0, 0.05);
    }

    // 80 % of the files at the start, and a file made for each deleted.
    near("files at the start", n_alive[0], 3200.0, 0.03);
    let last = n_alive[n_alive.len() - 1];
    assert!(last >= n_alive[0] - 16.0 && last <= 4000.0, "{last} files at the end");
}

/// Files are taken in rotation: between two opens of one file lie nearly all others.
#[test]
fn files_are_picked_in_rotation() {
    let mut runner = runner("varmail,files=500,threads=1,prealloc=100", 1, None);
    let mut order = Vec::new();
    runner.run(20_000, |seen| {
        if let Some(Call::Open { path, .. } | Call::Unlink { path }) = call(seen.action)
            && (seen.label == "open" || seen.label == "delete")
        {
            order.push(path);
        }
    });
    let mut last_seen = std::collections::HashMap::new();
    for (at, path) in order.iter().enumerate() {
        if let Some(before) = last_seen.insert(*path, at) {
            let gap: usize = at - before;
            assert!((480..=520).contains(&gap), "a file came again after {gap} picks");
        }
    }
    assert!(order.len() > 3 * 500);
}

#[test]
fn a_loop_of_fileserver_makes_reads_appends_and_deletes() {
    let mut runner = runner("fileserver,files=20000,mean_size=128k", 3, Some(1));
    let n_start = runner.fs.files.len() as f64;
    near("files at the start", n_start, 16_000.0, 0.02);
    let mean = runner.fs.files.values().map(|file| file.0 as f64).sum::<f64>() / n_start;
    near("mean size at the start", mean, 131_072.0, 0.03);
    runner.run(600_000, |_| {});
    let count = |name: &str| runner.ops[name] as f64;
    let loops = count("create");
    let expected = [
        ("write", 1.0),
        ("open", 2.0),
        ("read", 1.0),
        ("close", 3.0),
        ("append", 1.0),
        ("delete", 1.0),
        ("stat", 1.0),
    ];
    for (name, per_loop) in expected {
        near(name, count(name) / loops, per_loop, 0.01);
    }
    near("mean write", runner.bytes["write"] as f64 / count("write"), 131_072.0, 0.03);
    near("files at the end", runner.fs.files.len() as f64, n_start, 0.01);
}

/// A whole file moves in pieces, and only the last call ends the operation.
#[test]
fn whole_files_are_cut_into_pieces_of_one_operation() {
    let mut runner = runner("fileserver,files=200,threads=1,io_size=4k,append=3", 1, None);
    let (mut sizes, mut pieces) = (Vec::new(), Vec::new());
    runner.run(200_000, |seen| {
        let Action::Call { call, ends_op, .. } = seen.action else { return };
        match call {
            Call::Write { offset, len, .. } => {
                assert_eq!(offset, pieces.iter().sum::<u64>());
                assert!(len == 4096 || ends_op);
                pieces.push(len);
            }
            Call::Read { fd, offset, len } => {
                let size = seen.fs.files[&seen.fs.fds[&fd]].0;
                assert_eq!(len, 4096);
                assert_eq!(ends_op, offset >= size, "the read that returns nothing is the last");
            }
            _ => {
                if !pieces.is_empty() {
                    sizes.push(pieces.drain(..).sum::<u64>());
                }
            }
        }
    });
    assert_eq!(runner.ops["write"], sizes.len() as u64);
    assert!(sizes.len() > 500 && sizes.iter().any(|size| *size > 400_000));
}

#[test]
fn a_loop_of_webserver_reads_ten_pages_and_appends_to_the_log() {
    let mut runner = runner("webserver", 1, Some(1));
    assert_eq!(runner.fs.files.len(), 1001);
    let log = |fs: &crate::perfect::PerfectFs, paths: &flashwise_hostfs::Paths| {
        let of_log = fs.files.iter().filter(|(path, _)| paths.path(**path).contains("/logfiles/"));
        of_log.map(|(_, file)| file.0).sum::<u64>()
    };
    let before = log(&runner.fs, runner.app.paths());
    let mut appended = 0;
    runner.run(500_000, |seen| match call(seen.action) {
        Some(Call::Append { len, .. }) => appended += len,
        Some(Call::Unlink { .. } | Call::Write { .. }) => panic!("pages are only read"),
        _ => {}
    });
    near(
        "opens per append",
        runner.ops["open"] as f64 / runner.ops["appendlog"] as f64,
        10.0,
        0.02,
    );
    assert_eq!(runner.ops["open"] / 1000, runner.ops["close"] / 1000);
    let grown = log(&runner.fs, runner.app.paths()) - before;
    assert!(appended - grown <= 100 * 16_384 && grown > 0, "{grown} of {appended} bytes");
}

#[test]
fn a_loop_of_webproxy_reads_five_pages_per_new_one() {
    let mut runner = runner("webproxy,files=4000", 1, Some(1));
    // The size is fixed, not gamma.
    assert!(runner.fs.files.values().all(|file| file.0 == 16_384));
    runner.run(300_000, |_| {});
    let loops = runner.ops["create"] as f64;
    near("opens", runner.ops["open"] as f64 / loops, 5.0, 0.02);
    near("reads", runner.ops["read"] as f64 / loops, 5.0, 0.02);
    near("closes", runner.ops["close"] as f64 / loops, 6.0, 0.02);
}

/// With a rate, all threads together do so many operations a second.
#[test]
fn webproxy_keeps_to_its_rate() {
    let mut runner = runner("webproxy,files=4000,rate=500,runtime=20", 1, Some(1));
    assert!(runner.run(10_000_000, |_| {}));
    let ops = runner.ops.values().sum::<u64>() as f64;
    // A loop is paid for when it is over, so each thread is one ahead at the end.
    near("operations", ops, 20.0 * 500.0 + 100.0 * 19.0, 0.06);
    assert_eq!(runner.now_ns, 20_000_000_000);
}

#[test]
fn videoserver_streams_at_its_rate_and_replaces_videos() {
    let text = "videoserver,files=8,mean_size=4m,passive=40,threads=12,rate=64,runtime=30";
    let mut runner = runner(text, 1, Some(1));
    let mut read = 0;
    assert!(runner.run(10_000_000, |seen| {
        if let Some(Call::Read { fd, offset, len }) = call(seen.action) {
            read += len.min(seen.fs.files[&seen.fs.fds[&fd]].0 - offset);
        }
    }));
    near("bytes read", read as f64, 30.0 * 64.0 * 1_048_576.0, 0.02);
    // At 0, 10 and 20 s, each 4 MiB in calls of 1 MiB.
    let replaced = ["delete", "create", "write", "close"].map(|name| runner.ops[name]);
    assert_eq!(replaced, [3; 4]);
    assert_eq!(runner.bytes["write"], 12 << 20);
    assert_eq!(runner.now_ns, 30_000_000_000);
}

#[test]
fn oltp_writers_keep_in_step_with_its_sessions() {
    let mut runner = runner("oltp,runtime=400ms", 1, Some(1));
    let (mut n_reads, mut n_in_last) = (0_u64, 0_u64);
    assert!(runner.run(10_000_000, |seen| match seen.action {
        Action::Call { call: Call::Open { flags, .. }, .. } => {
            let expected = if seen.thread < 11 { OpenFlags::DSYNC } else { OpenFlags::PLAIN };
            assert_eq!(flags, expected, "{}", seen.label);
        }
        Action::Call { call: Call::Read { offset, len, .. }, .. } => {
            assert_eq!((seen.label, len, offset % 2048), ("shadowread", 2048, 0));
            n_reads += 1;
            n_in_last += u64::from(offset >= (10 << 20) - (1 << 20));
        }
        Action::Spawn { call: Call::Write { len, offset, .. }, .. } => {
            let expected = if seen.label == "lg-write" { 256 << 10 } else { 2048 };
            assert_eq!((len, offset % len), (expected, 0), "{}", seen.label);
        }
        _ => {}
    }));
    near("reads of the last tenth", n_in_last as f64, n_reads as f64 / 10.0, 0.1);
    // Each of ten writers writes 100 pages per 1000 reads, the log writer once per 3200;
    // both are ahead by one round at the start.
    let pages = runner.ops["dbwrite-a"] as f64;
    near("pages", pages, (n_reads / 1000 + 1) as f64 * 1000.0, 0.03);
    assert_eq!(runner.ops["lg-write"], n_reads / 3200 + 1);
}

/// Exactly so many operations, then every thread ends.
#[test]
fn a_number_of_operations_ends_the_run() {
    for text in ["varmail,ops=1234", "oltp,ops=1234", "webserver,ops=1"] {
        let mut runner = runner(text, 1, Some(1));
        assert!(runner.run(1_000_000, |_| {}));
        let expected = text.rsplit('=').next().and_then(|n| n.parse().ok());
        assert_eq!(Some(runner.ops.values().sum::<u64>()), expected, "{text}");
    }
}

/// Nothing to open, nothing to make: the run goes on, and virtual time with it.
#[test]
fn without_files_to_pick_threads_wait_and_go_on() {
    for text in [
        "varmail,files=3,threads=16,runtime=2",
        "fileserver,files=4,threads=50,runtime=2",
        "fileserver,files=100,prealloc=100,runtime=2",
        "webproxy,files=100,prealloc=0,runtime=2",
        "varmail,files=1,prealloc=0,runtime=2",
    ] {
        let mut runner = runner(text, 1, Some(1));
        assert!(runner.run(10_000_000, |_| {}), "{text}");
        assert_eq!(runner.now_ns / 1_000_000_000, 2, "{text}");
        assert!(runner.ops["read"] > 100, "{text}: {:?}", runner.ops);
    }
}
