//! The host against a naive file system and a device that watches: random calls on random
//! hosts, some of them wrong, on a file system that is soon full.
//!
//! Checked: how each call ends; the books of the host after every few calls; which pages
//! have blocks after a sync; that what fsync promised is on the device, in that order; that
//! data, journal, metadata and discards stay where they belong; and that all space is free
//! in the end.

mod device;
mod player;
mod steps;
mod tree;

use flashwise_hostfs::{Advance, Call, DataMode, Fd, FsConfig, Host, JournalPlace, Outcome, Paths};
use proptest::prelude::*;

use device::{Device, Speed};
use player::{Ended, Player, Removals, Step};
use tree::{PAGE, Tree};

/// Size of the device \[bytes\].
const DEVICE_BYTES: u64 = 64 << 20;

/// Steps of the host that no run here needs.
const STEPS_MAX: u64 = 2_000_000;

/// A run that is watched.
struct Watch {
    host: Host<Player>,
    device: Device,
    /// One for each thread; none where threads share a directory.
    trees: Vec<Tree>,
    removals: Removals,
    n_seen: usize,
    n_checks: u64,
    /// Free blocks in the beginning.
    n_free: u64,
}

impl Watch {
    fn new(
        fs: &str,
        paths: Paths,
        threads: Vec<Vec<Step>>,
        trees: Vec<Tree>,
        speed: Speed,
        seed: u64,
    ) -> Self {
        let removals = Removals::default();
        let player = Player::new(paths, threads, removals.clone());
        let config = FsConfig::parse(fs).expect("a valid host");
        let host = Host::new(player, &config, DEVICE_BYTES).expect("it fits");
        let n_free = host.free_blocks();
        let device = Device::new(speed, seed);
        Self { host, device, trees, removals, n_seen: 0, n_checks: 0, n_free }
    }

    /// Runs to the end.
    fn run(&mut self) {
        let mut n_steps = 0u64;
        loop {
            n_steps += 1;
            assert!(n_steps < STEPS_MAX, "it does not come to an end");
            match self.host.advance() {
                Advance::Io(io) => {
                    let done_ns = self.device.submit(&self.host, &io);
                    self.host.completed(done_ns);
                }
                Advance::Step => {}
                Advance::End => break,
            }
            self.look();
        }
        self.look();
        self.host.self_check();
        assert_eq!(self.host.failure(), None);
    }

    fn look(&mut self) {
        let n_ended = self.host.application().ended.len();
        while self.n_seen < n_ended {
            let ended = self.host.application().ended[self.n_seen];
            self.n_seen += 1;
            if self.n_seen.is_multiple_of(5) {
                self.host.self_check();
                self.n_checks += 1;
            }
            if !self.trees.is_empty() {
                self.compare(&ended);
            }
        }
        for (removal, tree) in self.removals.borrow_mut().iter_mut().zip(&self.trees) {
            if removal.is_wanted && removal.paths.is_none() {
                // What is below comes after what is above.
                let all = tree.all().into_iter().rev();
                let all = all.map(|(path, _)| (path.clone(), tree.is_directory_path(&path)));
                removal.paths = Some(all.collect()).filter(|all: &Vec<_>| !all.is_empty());
            }
        }
    }

    fn paths(&self) -> &Paths {
        use flashwise_hostfs::Application;
        self.host.application().paths()
    }

    fn compare(&mut self, ended: &Ended) {
        let paths = self.paths().clone();
        let tree = &self.trees[ended.thread as usize];
        let expected = tree.expect(&paths, &ended.call);
        let call = &ended.call;
        let is_directory_size =
            matches!(call, Call::Stat { path } if tree.is_directory_path(paths.path(*path)));
        if ended.outcome != expected && !is_directory_size {
            assert!(
                self.may_fail(call, expected, ended.outcome),
                "{call:?} ended with {:?}, not {expected:?}",
                ended.outcome
            );
        }
        let base_ns = self.host.start_ns();
        let start_ns = base_ns + ended.start_ns;
        let tree = &mut self.trees[ended.thread as usize];
        tree.apply(&paths, call, ended.outcome, start_ns);
        if matches!(ended.outcome, Outcome::Done(_)) {
            self.check_promise(ended, base_ns + ended.end_ns);
        }
    }

    /// Whether a call that finds no room may end like this.
    fn may_fail(&self, call: &Call, expected: Outcome, outcome: Outcome) -> bool {
        let Outcome::Done(n) = expected else { return false };
        let n_wanted = match *call {
            Call::Write { len, .. } | Call::Append { len, .. } => len.min(1 << 40) / PAGE + 2,
            Call::Fallocate { len, .. } => len / PAGE + 2,
            Call::Open { .. } | Call::Mkdir { .. } | Call::Rename { .. } => 2,
            Call::Link { .. } | Call::LinkFd { .. } | Call::OpenTemporary { .. } => 2,
            _ => return false,
        };
        let is_write = matches!(call, Call::Write { .. } | Call::Append { .. });
        let is_allowed = match outcome {
            Outcome::NoSpace => true,
            Outcome::Done(short) => is_write && short < n && short > 0,
            _ => false,
        };
        // Some room is kept for extent trees, and directories and trees take some.
        let n_used: u64 =
            self.trees.iter().map(Tree::n_pages).sum::<u64>().saturating_add(n_wanted);
        // Calls of other threads that are under way are not counted.
        is_allowed && (self.trees.len() > 1 || n_used >= self.n_free * 9 / 10)
    }

    /// What a call that makes data durable has promised.
    fn check_promise(&mut self, ended: &Ended, now_ns: u64) {
        let tree = &self.trees[ended.thread as usize];
        let node = match ended.call {
            Call::Fsync { fd } | Call::Fdatasync { fd } => tree.file(fd).expect("it is open").0,
            Call::Write { fd, .. } | Call::Append { fd, .. } => {
                let (node, flags) = tree.file(fd).expect("it is open");
                if !flags.dsync {
                    return;
                }
                node
            }
            Call::Sync => {
                self.check_blocks();
                return;
            }
            _ => return,
        };
        self.check_durable(ended.thread as usize, node, now_ns);
    }

    /// The extents of a file, if the application knows its path.
    fn extents(&mut self, path: &str) -> Option<Vec<flashwise_hostfs::Extent>> {
        let n_paths = self.paths().len();
        let id = self.paths().clone().intern(path);
        let is_known = (id.0 as usize) < n_paths;
        is_known.then(|| self.host.extents(id).expect("it has a name"))
    }

    fn check_durable(&mut self, thread: usize, node: usize, now_ns: u64) {
        let config = self.host.config().clone();
        let all = self.trees[thread].all();
        // A file without a name cannot be asked about.
        let Some((path, _)) = all.into_iter().find(|(_, n)| *n == node) else { return };
        let Some(extents) = self.extents(&path) else { return };
        let node = &self.trees[thread].nodes[node];
        for (page, since_ns) in &node.data {
            let extent = extents.iter().find(|e| (e.logical..e.logical + e.len).contains(page));
            let extent = extent.unwrap_or_else(|| panic!("page {page} of {path} has no block"));
            assert!(!extent.unwritten, "page {page} of {path} is not written");
            let block = extent.start.0 + (page - extent.logical);
            let is_home = self.device.is_durable(block, *since_ns, now_ns, config.barrier);
            let is_logged = config.data == DataMode::Journal
                && (config.journal == JournalPlace::External
                    || !config.barrier
                    || self.device.has_committed(*since_ns, now_ns));
            assert!(is_home || is_logged, "page {page} of {path}, block {block}, is not durable");
        }
    }

    /// After a sync each page has its block.
    fn check_blocks(&mut self) {
        if self.trees.len() > 1 {
            // Others write meanwhile.
            return;
        }
        assert_eq!(self.host.cached_pages().1, 0, "dirty pages after a sync");
        for (path, node) in self.trees[0].all() {
            let is_dir = self.trees[0].is_directory_path(&path);
            if is_dir || self.trees[0].nodes[node].is_fuzzy {
                continue;
            }
            let Some(extents) = self.extents(&path) else { continue };
            let node = &self.trees[0].nodes[node];
            let mapped = |unwritten: bool| {
                let of_kind = extents.iter().filter(move |e| e.unwritten == unwritten);
                of_kind.flat_map(|e| e.logical..e.logical + e.len)
            };
            assert!(mapped(false).eq(node.data.keys().copied()), "pages of {path}");
            assert!(mapped(true).eq(node.reserved.iter().copied()), "reserved pages of {path}");
        }
    }
}

/// Closes all descriptors of a thread.
fn closing(fds: std::ops::Range<u32>) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![(Call::Sync, 1)];
    steps.extend(fds.map(|fd| (Call::Close { fd: Fd(fd) }, 1)));
    steps.push((Call::Sync, 1));
    steps
}

fn speed() -> impl Strategy<Value = Speed> {
    prop_oneof![Just(Speed::Fast), Just(Speed::Wild), Just(Speed::Instant)]
}

fn one_thread() -> (Paths, Vec<flashwise_hostfs::PathId>) {
    let mut paths = Paths::new();
    let all = steps::paths_of(&mut paths, "");
    (paths, all)
}

fn run_one(fs: &str, steps: &[Step], speed: Speed, seed: u64) -> Watch {
    let (paths, _) = one_thread();
    let mut steps = steps.to_vec();
    steps.extend(closing(0..5));
    let mut watch = Watch::new(fs, paths, vec![steps], vec![Tree::new()], speed, seed);
    watch.run();
    assert!(watch.trees[0].all().is_empty(), "all was removed");
    assert_eq!(watch.host.free_blocks(), watch.n_free, "all space is free again");
    watch
}

/// So many cases, or as many as `PROPTEST_CASES` says.
fn cases(n: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = std::env::var("PROPTEST_CASES").map_or(n, |_| default.cases);
    ProptestConfig { cases, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_host_agrees_with_a_map(
        fs in steps::host(),
        steps in steps::steps(one_thread().1, 0, 80),
        speed in speed(),
        seed in any::<u64>(),
    ) {
        run_one(&fs, &steps, speed, seed);
    }
}

/// Each thread in a directory of its own.
fn three_threads(base: [&str; 3]) -> (Paths, Vec<Vec<flashwise_hostfs::PathId>>) {
    let mut paths = Paths::new();
    let all = base.map(|base| steps::paths_of(&mut paths, base));
    (paths, all.to_vec())
}

fn run_three(fs: &str, base: [&str; 3], threads: &[Vec<Step>], speed: Speed, seed: u64) -> Watch {
    let (paths, all) = three_threads(base);
    let is_shared = base[0] == base[1];
    let mut players = vec![];
    for (n, steps) in threads.iter().enumerate() {
        let mut own: Vec<Step> = vec![(Call::Mkdir { path: all[n][0] }, 1)];
        own.extend(steps.iter().copied());
        let first = if is_shared { 0 } else { n as u32 * 100 };
        if !is_shared {
            own.extend(closing(first..first + 5));
        }
        players.push(own);
    }
    let trees = if is_shared { vec![] } else { vec![Tree::new(); 3] };
    let mut watch = Watch::new(fs, paths, players, trees, speed, seed);
    watch.run();
    if !is_shared {
        assert!(watch.trees.iter().all(|tree| tree.all().is_empty()), "all was removed");
        assert_eq!(watch.host.free_blocks(), watch.n_free, "all space is free again");
    }
    watch
}

const APART: [&str; 3] = ["/t0", "/t1", "/t2"];
const SHARED: [&str; 3] = ["/t", "/t", "/t"];

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn threads_in_their_own_directories_agree_with_maps(
        fs in steps::host(),
        a in steps::steps(three_threads(APART).1[0].clone(), 0, 40),
        b in steps::steps(three_threads(APART).1[1].clone(), 100, 40),
        c in steps::steps(three_threads(APART).1[2].clone(), 200, 40),
        speed in speed(),
        seed in any::<u64>(),
    ) {
        run_three(&fs, APART, &[a, b, c], speed, seed);
    }

    #[test]
    fn threads_that_share_files_keep_the_books_right(
        fs in steps::host(),
        a in steps::steps(three_threads(SHARED).1[0].clone(), 0, 40),
        b in steps::steps(three_threads(SHARED).1[1].clone(), 0, 40),
        c in steps::steps(three_threads(SHARED).1[2].clone(), 0, 40),
        speed in speed(),
        seed in any::<u64>(),
    ) {
        run_three(&fs, SHARED, &[a, b, c], speed, seed);
    }

    #[test]
    fn the_same_run_asks_the_same_of_the_device(
        fs in steps::host(),
        a in steps::steps(three_threads(SHARED).1[0].clone(), 0, 40),
        b in steps::steps(three_threads(SHARED).1[1].clone(), 0, 40),
        seed in any::<u64>(),
    ) {
        let run = || run_three(&fs, SHARED, &[a.clone(), b.clone(), vec![]], Speed::Wild, seed);
        let (first, second) = (run(), run());
        prop_assert_eq!(first.device.n_ios, second.device.n_ios);
        prop_assert_eq!(first.device.digest, second.device.digest);
    }
}
