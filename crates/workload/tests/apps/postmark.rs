//! PostMark: its counts, sizes and names.

use std::collections::HashSet;

use flashwise_hostfs::{Action, Call};

use crate::runner;

#[test]
fn makes_a_pool_does_transactions_and_deletes_all() {
    let mut runner = runner("postmark,files=2000,transactions=20000", 1, None);
    let (mut sizes, mut names, mut of_op) = (Vec::new(), HashSet::new(), 0);
    let mut most = 0;
    assert!(runner.run(10_000_000, |seen| {
        let Action::Call { call, ends_op, .. } = seen.action else { return };
        most = most.max(seen.fs.files.len());
        match call {
            Call::Open { path, .. } if seen.label.starts_with("create") => {
                assert!(names.insert(seen.paths.path(path).to_owned()), "a name came twice");
            }
            Call::Write { len, .. } => of_op += len,
            Call::Close { .. } if seen.label.starts_with("create") => {
                sizes.push(std::mem::take(&mut of_op));
            }
            Call::Close { fd } => {
                let size = seen.fs.files[&seen.fs.fds[&fd]].0;
                assert!(size <= 10_000, "grew to {size}");
            }
            _ => {}
        }
        let ends = matches!(call, Call::Close { .. } | Call::Unlink { .. });
        assert_eq!(ends, ends_op, "{call:?}");
    }));
    let count = |name: &str| runner.ops[name];
    assert_eq!(count("create-alone"), 2000);
    assert_eq!(count("create") + count("delete"), 20_000);
    assert_eq!(2000 + count("create"), count("delete") + count("delete-alone"));
    assert!(runner.fs.files.is_empty() && most <= 4000);
    // Biases of five in ten; a file that is full is not appended to.
    let half = 9_700..10_300;
    assert!(half.contains(&count("create")) && half.contains(&count("read")));
    let skipped = 20_000 - count("read") - count("append");
    assert!(skipped < 200, "{skipped} appends to full files");
    assert_eq!(names.len() as u64, 2000 + count("create"));
    assert!(names.contains("/postmark/1"));
    assert!(sizes.iter().all(|size| (500..10_000).contains(size)));
    let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
    assert!((mean / 5250.0 - 1.0).abs() < 0.02, "mean size {mean}");
}

#[test]
fn blocks_biases_and_directories_are_those_asked_for() {
    let text = "postmark,files=100,transactions=1000,subdirs=10,read_block=1k,write_block=4k,buffer=0,\
                size_low=3k,size_high=64k,read_bias=10,create_bias=-1";
    let mut runner = runner(text, 1, None);
    assert_eq!(runner.fs.dirs.len(), 11);
    let mut used = HashSet::new();
    assert!(runner.run(10_000_000, |seen| match seen.action {
        Action::Call { call: Call::Read { len, .. }, .. } => assert!(len <= 1024),
        Action::Call { call: Call::Write { len, .. }, .. } => assert!(len <= 4096),
        Action::Call { call: Call::Open { path, .. }, .. } => {
            used.insert(seen.paths.parent(path));
        }
        _ => {}
    }));
    assert_eq!(used.len(), 10);
    let counts = ["create-alone", "create", "read", "append", "delete", "delete-alone"];
    assert_eq!(counts.map(|name| runner.ops[name]), [100, 0, 1000, 0, 0, 100]);
}

/// Transactions end early when every file is deleted.
#[test]
fn ends_when_it_is_out_of_files() {
    let mut runner = runner("postmark,files=10,transactions=1000,create_bias=0", 1, None);
    assert!(runner.run(1_000_000, |_| {}));
    assert_eq!((runner.ops["delete"], runner.ops["delete-alone"]), (10, 0));
    assert!(runner.ops["read"] + runner.ops["append"] <= 10);
}

/// Twice as many files as the pool had are the most; more are silently not made.
#[test]
fn a_full_table_takes_no_more_files() {
    let mut runner = runner("postmark,files=10,transactions=1000,create_bias=10", 1, None);
    assert!(runner.run(1_000_000, |seen| assert!(seen.fs.files.len() <= 20)));
    assert_eq!((runner.ops["create"], runner.ops["delete-alone"]), (10, 20));
}

/// Against PostMark 1.53 itself with these settings and its seed 42: 9954 files made amid
/// transactions, 9992 read, 9931 appended to, 10046 deleted amid transactions, 1908 at
/// the end, 63.41 MiB read and 75.92 MiB written.
#[test]
fn counts_and_bytes_are_those_of_postmark() {
    let mut runner = runner("postmark,files=2000,transactions=20000", 42, None);
    let mut longest = 0;
    assert!(runner.run(10_000_000, |seen| {
        if let Action::Call { call: Call::Read { len, .. } | Call::Write { len, .. }, .. } =
            seen.action
        {
            longest = longest.max(len);
        }
    }));
    assert_eq!(longest, 4096);
    let near = |what: &str, found: f64, expected: f64, within: f64| {
        let off = (found / expected - 1.0).abs();
        assert!(off < within, "{what}: {found} instead of {expected}");
    };
    let counts = [("create", 9954.0), ("read", 9992.0), ("append", 9931.0), ("delete", 10_046.0)];
    for (name, expected) in counts {
        // Three standard deviations of a fair coin tossed 20000 times, twice over.
        near(name, runner.ops[name] as f64, expected, 0.03);
    }
    let mib = |name: &str| runner.bytes[name] as f64 / 1_048_576.0;
    near("MiB read", mib("read"), 63.41, 0.04);
    near("MiB written", mib("create") + mib("create-alone") + mib("append"), 75.92, 0.04);
}
