//! What a call costs the model: `cargo bench -p flashwise-hostfs --bench host`.
//!
//! One thread makes one kind of call, or one small round of calls, again and again on a
//! device that takes 20 us a request. Best of three passes, in CPU time of one core; the
//! preparation does not count. An argument after `--` picks the cases whose names contain it.
#![allow(clippy::print_stdout, reason = "a benchmark reports to the person who ran it")]

use cpu_time::ProcessTime;

use flashwise_hostfs::{
    Action, Application, Call, Fd, FsConfig, Host, OpId, OpenFlags, Outcome, PathId, Paths,
};

const N_PASSES: usize = 3;
const GIB: u64 = 1 << 30;
const DEVICE_BYTES: u64 = 64 * GIB;
const REQUEST_NS: u64 = 20_000;
const FD: Fd = Fd(0);

/// Calls of one thread: some that prepare, then `n_rounds` rounds of `round(n)`.
struct Rounds<F> {
    paths: Paths,
    prepare: std::vec::IntoIter<Call>,
    names: Vec<String>,
    round: F,
    n_left: u64,
    n: u64,
    now: Vec<Call>,
    n_calls: u64,
}

impl<F: FnMut(u64, &mut Vec<Call>)> Application for Rounds<F> {
    fn n_threads(&self) -> u32 {
        1
    }

    fn op_names(&self) -> &[String] {
        &self.names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        self.prepare.next()
    }

    fn next(&mut self, _thread: u32, _now_ns: u64) -> Action {
        if self.now.is_empty() {
            if self.n_left == 0 {
                return Action::End;
            }
            self.n_left -= 1;
            (self.round)(self.n, &mut self.now);
            self.n += 1;
            self.now.reverse();
        }
        self.n_calls += 1;
        let call = self.now.pop().expect("a round has calls");
        Action::Call { call, op: OpId(0), ends_op: true }
    }

    fn finished(&mut self, _thread: u32, outcome: Outcome, _now_ns: u64) {
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    }
}

/// What a case runs.
struct Case<F> {
    name: &'static str,
    fs: &'static str,
    n_rounds: u64,
    paths: Paths,
    prepare: Vec<Call>,
    round: F,
}

fn run<F: FnMut(u64, &mut Vec<Call>) + Clone>(case: &Case<F>) {
    let mut wanted = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    if wanted.next().is_some_and(|part| !case.name.contains(&part)) {
        return;
    }
    let pass = || {
        let app = Rounds {
            paths: case.paths.clone(),
            prepare: case.prepare.clone().into_iter(),
            names: vec!["call".to_owned()],
            round: case.round.clone(),
            n_left: case.n_rounds,
            n: 0,
            now: vec![],
            n_calls: 0,
        };
        let config = FsConfig::parse(case.fs).expect("a valid host");
        let mut host = Host::new(app, &config, DEVICE_BYTES).expect("it fits");
        let (mut start, mut n_ios) = (None, 0u64);
        while let Some(io) = host.next_io() {
            if io.measured {
                start.get_or_insert_with(ProcessTime::now);
                n_ios += 1;
            }
            host.completed(io.at_ns + REQUEST_NS);
            host.take_ops();
        }
        // Calls before the first request count too, but take little.
        let ns = start.map_or(0, |start| start.elapsed().as_nanos());
        (ns as f64, host.application().n_calls as f64, n_ios)
    };
    let passes: Vec<(f64, f64, u64)> = (0..N_PASSES).map(|_| pass()).collect();
    let best = passes.iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are passes");
    let (ns, n_calls, n_ios) = *best;
    let ios = n_ios as f64 / n_calls;
    let rate = n_calls * 1e3 / ns;
    let rounds = case.n_rounds as f64 * 1e3 / ns;
    println!("{:34} {:10.0} {ios:10.2} {rate:12.3} {rounds:12.3}", case.name, ns / n_calls,);
}

fn random(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

/// A file of so many bytes, open.
fn file(paths: &mut Paths, bytes: u64) -> (PathId, Vec<Call>) {
    let path = paths.intern("/file");
    let open = Call::Open { path, fd: FD, flags: OpenFlags::CREATE };
    (path, vec![open, Call::Write { fd: FD, offset: 0, len: bytes }])
}

fn main() {
    println!(
        "{:34} {:>10} {:>10} {:>12} {:>12}",
        "calls", "ns/call", "IOs/call", "M calls/s", "M rounds/s"
    );
    simple();
    overwrite();
    creates();
    appends();
    mail();
}

/// A request first, so that the clock starts.
fn first(n: u64, calls: &mut Vec<Call>) {
    if n == 0 {
        calls.push(Call::Append { fd: FD, len: 4096 });
        calls.push(Call::Fsync { fd: FD });
    }
}

fn simple() {
    let mut paths = Paths::new();
    let (path, prepare) = file(&mut paths, 64 << 20);
    let name = "stat, open, close, cached 4k read";
    let round = move |n: u64, calls: &mut Vec<Call>| {
        first(n, calls);
        let (fd, flags) = (Fd(1), OpenFlags::PLAIN);
        let offset = random(n) % (8 << 20) / 4096 * 4096;
        calls.extend([
            Call::Stat { path },
            Call::Open { path, fd, flags },
            Call::Read { fd, offset, len: 4096 },
            Call::Close { fd },
        ]);
    };
    run(&Case { name, fs: "ext4", n_rounds: 500_000, paths, prepare, round });
}

fn overwrite() {
    let mut paths = Paths::new();
    let (_, prepare) = file(&mut paths, GIB);
    let name = "4k random overwrite of 1 GiB";
    let round = |n: u64, calls: &mut Vec<Call>| {
        let offset = random(n) % GIB / 4096 * 4096;
        calls.push(Call::Write { fd: FD, offset, len: 4096 });
    };
    let fs = "ext4,memory=1g";
    run(&Case { name, fs, n_rounds: 1_000_000, paths, prepare, round });
}

fn creates() {
    let mut paths = Paths::new();
    let (_, prepare) = file(&mut paths, 4096);
    let all: Vec<PathId> = (0..1000).map(|n| paths.intern(&format!("/f{n:06}"))).collect();
    let name = "create, write 16k, close, unlink";
    let round = move |n: u64, calls: &mut Vec<Call>| {
        first(n, calls);
        let (path, fd) = (all[n as usize % all.len()], Fd(1));
        calls.extend([
            Call::Open { path, fd, flags: OpenFlags::CREATE },
            Call::Write { fd, offset: 0, len: 16384 },
            Call::Close { fd },
            Call::Unlink { path },
        ]);
    };
    run(&Case { name, fs: "ext4", n_rounds: 300_000, paths, prepare, round });
}

fn appends() {
    let mut paths = Paths::new();
    let (_, prepare) = file(&mut paths, 4096);
    let name = "append 4k, fsync";
    let round = |_: u64, calls: &mut Vec<Call>| {
        calls.extend([Call::Append { fd: FD, len: 4096 }, Call::Fsync { fd: FD }]);
    };
    run(&Case { name, fs: "ext4", n_rounds: 500_000, paths, prepare, round });
}

/// What a mail server does, after filebench's varmail: delete; create, append, fsync; open,
/// read, append, fsync; open, read.
fn mail() {
    const N_FILES: u64 = 1000;
    let mut paths = Paths::new();
    let dir = paths.intern("/mail");
    let all: Vec<PathId> = (0..N_FILES).map(|n| paths.intern(&format!("/mail/f{n:06}"))).collect();
    let fd = Fd(1);
    let mut prepare = vec![Call::Mkdir { path: dir }];
    for path in &all {
        prepare.extend([
            Call::Open { path: *path, fd, flags: OpenFlags::CREATE },
            Call::Append { fd, len: 16384 },
            Call::Close { fd },
        ]);
    }
    let name = "mail server, 16k mails";
    let round = move |n: u64, calls: &mut Vec<Call>| {
        let pick = |salt: u64| all[(random(2 * n + salt) % N_FILES) as usize];
        let (new, old) = (all[(n % N_FILES) as usize], pick(1));
        let close = Call::Close { fd };
        calls.extend([
            Call::Unlink { path: new },
            Call::Open { path: new, fd, flags: OpenFlags::CREATE },
            Call::Append { fd, len: 16384 },
            Call::Fsync { fd },
            close,
            Call::Open { path: old, fd, flags: OpenFlags::PLAIN },
            Call::Read { fd, offset: 0, len: 1 << 20 },
            Call::Append { fd, len: 16384 },
            Call::Fsync { fd },
            close,
            Call::Open { path: pick(0), fd, flags: OpenFlags::PLAIN },
            Call::Read { fd, offset: 0, len: 1 << 20 },
            close,
        ]);
    };
    run(&Case { name, fs: "ext4", n_rounds: 100_000, paths, prepare, round });
}
