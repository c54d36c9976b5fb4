//! The applications: filebench personalities and PostMark on a perfect file system.

mod filebench;
mod parser;
mod perfect;
mod postmark;

use flashwise_hostfs::{Action, Call, Outcome};
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

/// One call in ten fails, in a way that suits it or not: no panic, no thread that spins
/// or waits for ever, no descriptor lost.
#[test]
fn every_application_survives_faults() {
    for app in AppSpec::list() {
        for order in 1..4 {
            let text = match app.name {
                "postmark" => "postmark,files=5000,transactions=60000".to_owned(),
                name => small(name) + ",runtime=1000",
            };
            let mut runner = runner(&text, order, Some(order));
            runner.fs.strict = false;
            runner.faults = 10;
            assert!(!runner.run(200_000, |_| {}), "{text} ended");
            let n_ops = runner.ops.values().sum::<u64>();
            assert!(n_ops > 200, "{text}: {n_ops} operations");
            let per_thread = if app.name == "oltp" { 10 } else { 2 };
            let bound = runner.app.n_threads() as usize * per_thread;
            assert!(runner.fs.max_fds <= bound, "{text}: {} descriptors", runner.fs.max_fds);
        }
    }
}

/// A device that is full from the start: writes fail, all else goes on to the end.
#[test]
fn every_application_ends_on_a_full_device() {
    for app in AppSpec::list() {
        let text = match app.name {
            "postmark" => "postmark".to_owned(),
            name => small(name) + ",runtime=500ms",
        };
        let mut runner = runner(&text, 1, Some(1));
        runner.fs.full = true;
        assert!(runner.run(10_000_000, |_| {}), "{text}");
    }
}

/// Time of an action, for a reader of `--nocapture`; bounded only far above it.
#[test]
#[allow(clippy::print_stdout, reason = "the figures are for whoever asks with --nocapture")]
fn actions_are_fast() {
    for app in AppSpec::list() {
        let text = match app.name {
            "postmark" => "postmark,files=20000,transactions=100000".to_owned(),
            name => small(name) + ",runtime=1000000",
        };
        let mut app = AppSpec::parse(&text).expect("a text that parses").build(1);
        while app.prepare().is_some() {}
        let (mut ready, mut n_actions) = (vec![true; app.n_threads() as usize], 0_u64);
        let start = cpu_time::ProcessTime::now();
        let mut now_ns = 0;
        while n_actions < 2_000_000 && ready.contains(&true) {
            for thread in 0..app.n_threads() {
                if !ready[thread as usize] {
                    continue;
                }
                n_actions += 1;
                now_ns += 1000;
                match app.next(thread, now_ns) {
                    Action::Call { call: Call::Read { len, .. }, .. } => {
                        app.finished(thread, Outcome::Done(len), now_ns);
                    }
                    Action::Call { .. } => app.finished(thread, Outcome::Done(0), now_ns),
                    Action::SleepUntil { at_ns } => now_ns = now_ns.max(at_ns),
                    Action::Park | Action::End => ready[thread as usize] = false,
                    Action::Wake { thread } => ready[thread as usize] = true,
                    _ => {}
                }
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / n_actions as f64;
        println!("{text}: {n_actions} actions, {ns:.0} ns each, {:.1} M/s", 1000.0 / ns);
        assert!(ns < 5_000.0, "{text}: {ns} ns per action");
    }
}
