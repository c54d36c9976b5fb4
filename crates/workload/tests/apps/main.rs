//! The applications: filebench personalities and PostMark on a perfect file system.

mod filebench;
mod perfect;
mod postmark;

use flashwise_workload::AppSpec;
use perfect::Runner;

/// An application from its text.
fn runner(text: &str, seed: u64, order: Option<u64>) -> Runner {
    let spec = AppSpec::parse(text).unwrap_or_else(|error| panic!("{error}"));
    Runner::new(spec.build(seed), order)
}

/// What a test can run of each: videos that fit in memory and a short while.
fn small(name: &str) -> String {
    match name {
        "videoserver" => "videoserver,mean_size=4m,passive=20,interval=100ms".to_owned(),
        "fileserver" => "fileserver,files=2000".to_owned(),
        "webproxy" => "webproxy,files=2000".to_owned(),
        other => other.to_owned(),
    }
}

#[test]
fn every_application_makes_legal_calls_only() {
    for app in AppSpec::list() {
        for order in [None, Some(1), Some(2)] {
            let mut runner = runner(&small(app.name), 1, order);
            runner.run(200_000, |_| {});
            let idle: Vec<_> = runner.ops.iter().filter(|(_, n)| **n == 0).collect();
            assert!(idle.is_empty(), "{}: never done: {idle:?}", app.name);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_calls_and_another_seed_others() {
    for app in AppSpec::list() {
        let digest = |seed| {
            let mut runner = runner(&small(app.name), seed, Some(3));
            let mut n_wakes = 0;
            runner.run(20_000, |seen| n_wakes += u64::from(seen.label.is_empty()));
            (runner.digest(), n_wakes)
        };
        assert_eq!(digest(7), digest(7), "{}", app.name);
        // Nothing of the videos is drawn but the tree and which of them are there.
        assert_ne!(digest(7).0, digest(8).0, "{}", app.name);
    }
}

/// Descriptors belong to a thread and are few: one for each file it works on at once.
#[test]
fn descriptors_do_not_leak() {
    for (text, per_thread, threads) in [
        ("varmail", 1, 16),
        ("fileserver,files=2000", 1, 50),
        ("webserver", 2, 100),
        ("webproxy,files=2000", 1, 100),
        ("videoserver,mean_size=4m,passive=20", 1, 49),
        ("oltp", 10, 211),
        ("postmark", 1, 1),
    ] {
        let mut runner = runner(text, 1, Some(4));
        assert_eq!(runner.app.n_threads(), threads, "{text}");
        runner.run(100_000, |seen| assert!(seen.thread < threads));
        let max_fds = runner.fs.max_fds;
        assert!(max_fds <= (threads * per_thread) as usize, "{text}: {max_fds}");
    }
}
