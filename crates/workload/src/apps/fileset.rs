//! A set of files in a directory tree, and which of them are there, open or busy.
//!
//! After filebench's `fileset.c` (version 1.5): the tree grows until it holds the files
//! asked for. Each directory draws a depth and a width, both gamma of shape 1.5. It holds
//! files if it lies as deep as its draw or deeper, else directories. The root is never
//! full. Each file draws its size once and keeps it when it is deleted and made again.
//!
//! Files are picked in rotation, not at random: the next one at or after a rotor that is
//! of the wanted kind and not busy, that is, amid an open, unlink or stat of another
//! thread. Filebench keeps a file busy during its close as well, which is left out.
//!
//! Invariants: a file is in exactly one of `present` and `absent` once it was offered for
//! preallocation; one that is open is present. Memory: 40 bytes a file and about 150 for
//! its path, and none is added later.

use flashwise_hostfs::{PathId, Paths};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use super::gamma::Gamma;
use super::index_set::IndexSet;
use crate::zipf::mul_shift;

/// Shape of all gamma distributions. Source: filebench, `fs_dirgamma` defaults to 1500
/// thousandths; `gamma:1.5` in its personalities for sizes.
const SHAPE: f64 = 1.5;

/// How large the files of a set are \[bytes\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// All alike.
    Fixed(u64),
    /// Gamma distributed with this mean.
    Gamma(u64),
}

/// A file set to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetSpec {
    /// Name of its directory, in the root.
    pub(super) name: &'static str,
    /// Files.
    pub(super) files: u64,
    /// How large they are.
    pub(super) size: Size,
    /// Mean entries per directory.
    pub(super) dir_width: u64,
    /// Probability that a file is there at the start \[percent\].
    pub(super) prealloc: u64,
}

/// One file.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    /// Drawn size \[bytes\], what writing it whole writes.
    pub(super) size: u64,
    /// Length as far as is known \[bytes\].
    pub(super) len: u64,
    /// Its path.
    pub(super) path: PathId,
    /// Descriptors that are open.
    n_open: u32,
    busy: bool,
}

/// A set of files.
#[derive(Clone, Debug)]
pub(super) struct FileSet {
    /// Directories, parents first.
    dirs: Vec<PathId>,
    files: Vec<File>,
    present: IndexSet,
    absent: IndexSet,
    /// Files not yet offered for preallocation.
    fresh: IndexSet,
    prealloc_percent: u64,
    /// Where the next pick of a present file starts.
    rotor_present: u32,
    /// Where the next pick of an absent file starts.
    rotor_absent: u32,
    rng: Xoshiro256PlusPlus,
}

/// Mean depth that directories draw around. Source: filebench, `fileset_populate`.
pub(super) fn mean_depth(files: u64, dir_width: u64) -> f64 {
    (files as f64).ln() / (dir_width as f64).ln()
}

/// A directory that still fills.
struct Open {
    path: String,
    /// Depth; the root of the set is 1.
    depth: u32,
    /// Entries so far, and at the end; the root has no end.
    entries: u64,
    entries_max: u64,
    /// Holds files.
    leaf: bool,
}

impl FileSet {
    /// Draws the tree and all sizes.
    pub(super) fn new(spec: &SetSpec, paths: &mut Paths, mut rng: Xoshiro256PlusPlus) -> Self {
        let n = u32::try_from(spec.files).expect("checked when it was parsed");
        let mut set = Self {
            dirs: Vec::new(),
            files: Vec::with_capacity(n as usize),
            present: IndexSet::new(n),
            absent: IndexSet::new(n),
            fresh: IndexSet::new(n),
            prealloc_percent: spec.prealloc,
            rotor_present: 0,
            rotor_absent: 0,
            rng: rng.clone(),
        };
        set.populate(spec, paths, &mut rng);
        for file in 0..n {
            set.fresh.insert(file);
        }
        set.rng = rng;
        set
    }

    fn populate(&mut self, spec: &SetSpec, paths: &mut Paths, rng: &mut Xoshiro256PlusPlus) {
        let depths = Gamma::new(SHAPE, mean_depth(spec.files, spec.dir_width));
        let widths = Gamma::new(SHAPE, spec.dir_width as f64);
        let path = format!("/{}", spec.name);
        self.dirs.push(paths.intern(&path));
        let root = Open { path, depth: 1, entries: 0, entries_max: u64::MAX, leaf: false };
        let mut open = vec![root];
        while (self.files.len() as u64) < spec.files {
            let dir = open.last_mut().expect("the root never fills");
            if dir.entries == dir.entries_max {
                open.pop();
                continue;
            }
            dir.entries += 1;
            let path = format!("{}/{:08}", dir.path, dir.entries);
            let id = paths.intern(&path);
            if dir.leaf {
                let size = match spec.size {
                    Size::Fixed(bytes) => bytes,
                    Size::Gamma(mean) => Gamma::new(SHAPE, mean as f64).sample(rng) as u64,
                };
                self.files.push(File { size, len: 0, path: id, n_open: 0, busy: false });
                continue;
            }
            self.dirs.push(id);
            let depth = dir.depth + 1;
            let drawn_depth = (depths.sample(rng) as u32).max(1);
            let entries_max = (widths.sample(rng).ceil() as u64).max(1);
            open.push(Open { path, depth, entries: 0, entries_max, leaf: depth >= drawn_depth });
        }
    }

    /// Directories, parents first.
    pub(super) fn dirs(&self) -> &[PathId] {
        &self.dirs
    }

    /// Number of files, there or not.
    pub(super) fn len(&self) -> u32 {
        self.files.len() as u32
    }

    pub(super) fn file(&self, file: u32) -> &File {
        &self.files[file as usize]
    }

    /// The next file that has to be there at the start; the others are marked as absent.
    /// In filebench's order: the next one at or after a random one.
    pub(super) fn next_preallocated(&mut self) -> Option<u32> {
        loop {
            let start = mul_shift(self.rng.next_u64(), self.files.len() as u64) as u32;
            let file = self.fresh.next_around(start)?;
            self.fresh.remove(file);
            if mul_shift(self.rng.next_u64(), 100) < self.prealloc_percent {
                self.present.insert(file);
                self.files[file as usize].len = self.files[file as usize].size;
                return Some(file);
            }
            self.absent.insert(file);
        }
    }

    /// Picks a file that is there and makes it busy. `rotor`: a rotation of the caller's
    /// own, else that of the set.
    pub(super) fn pick_present(&mut self, rotor: Option<&mut u32>) -> Option<u32> {
        let rotor = rotor.unwrap_or(&mut self.rotor_present);
        pick(&self.present, &mut self.files, rotor)
    }

    /// Picks a file that is not there and makes it busy.
    pub(super) fn pick_absent(&mut self) -> Option<u32> {
        pick(&self.absent, &mut self.files, &mut self.rotor_absent)
    }

    /// The call on a picked file is over, and the file is there or not.
    pub(super) fn release(&mut self, file: u32, is_there: bool) {
        let (to, from) = match is_there {
            true => (&mut self.present, &mut self.absent),
            false => (&mut self.absent, &mut self.present),
        };
        from.remove(file);
        to.insert(file);
        let file = &mut self.files[file as usize];
        file.busy = false;
        if !is_there {
            file.len = 0;
        }
    }

    /// A picked file was not touched after all.
    pub(super) fn put_back(&mut self, file: u32) {
        self.files[file as usize].busy = false;
    }

    /// Some descriptor of the file is open.
    pub(super) fn is_open(&self, file: u32) -> bool {
        self.files[file as usize].n_open > 0
    }

    /// A descriptor was opened.
    pub(super) fn opened(&mut self, file: u32) {
        self.files[file as usize].n_open += 1;
    }

    /// A descriptor was closed.
    pub(super) fn closed(&mut self, file: u32) {
        self.files[file as usize].n_open -= 1;
    }

    /// The length is known to be this \[bytes\].
    pub(super) fn set_len(&mut self, file: u32, len: u64) {
        self.files[file as usize].len = len;
    }
}

/// The next member at or after the rotor that is not busy.
fn pick(from: &IndexSet, files: &mut [File], rotor: &mut u32) -> Option<u32> {
    let first = from.next_around(*rotor)?;
    // As in filebench: busy files are passed over, but the rotor stands behind the first.
    *rotor = first + 1;
    let mut file = first;
    while files[file as usize].busy {
        file = from.next_around(file + 1)?;
        if file == first {
            return None;
        }
    }
    files[file as usize].busy = true;
    Some(file)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    fn build(files: u64, dir_width: u64, prealloc: u64, seed: u64) -> (FileSet, Paths) {
        let size = Size::Gamma(16_384);
        let spec = SetSpec { name: "set", files, size, dir_width, prealloc };
        let mut paths = Paths::new();
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (FileSet::new(&spec, &mut paths, rng), paths)
    }

    /// Probability that a gamma number of shape 1.5 and this mean is below `x`: the
    /// density x^0.5 e^-x / Gamma(1.5), by the midpoint rule.
    fn below(x: f64, mean: f64) -> f64 {
        let end = x * SHAPE / mean;
        let n = 100_000;
        let step = end / f64::from(n);
        let middles = (0..n).map(|i| (f64::from(i) + 0.5) * step);
        let area = middles.map(|x| x.sqrt() * (-x).exp() * step).sum::<f64>();
        area / (std::f64::consts::PI.sqrt() / 2.0)
    }

    #[test]
    fn a_very_wide_set_is_one_directory() {
        let (set, paths) = build(1000, 1_000_000, 80, 1);
        assert!((mean_depth(1000, 1_000_000) - 0.5).abs() < 1e-12);
        let dirs: Vec<_> = set.dirs().iter().map(|dir| paths.path(*dir)).collect();
        assert_eq!(dirs, ["/set", "/set/00000001"]);
        assert_eq!(paths.path(set.file(999).path), "/set/00000001/00001000");
    }

    /// Directories of the second level are leaves if their draw, rounded down, is at most
    /// their depth of 2; full leaves are as wide as a gamma number rounded up.
    #[test]
    fn depth_and_width_follow_their_draws() {
        let (files, width) = (8000, 20);
        let mean = mean_depth(files, width);
        assert!((mean - 3.0).abs() < 0.001, "20^3 files are three levels");
        let (mut n_second, mut n_leaf, mut deepest) = (0.0, 0.0, 0);
        let (mut n_wide, mut sum_wide) = (0.0, 0.0);
        for seed in 0..100 {
            let (set, paths) = build(files, width, 80, seed);
            let mut n_files = std::collections::BTreeMap::new();
            for file in 0..set.len() {
                *n_files.entry(paths.parent(set.file(file).path)).or_insert(0) += 1;
            }
            let second: Vec<_> =
                set.dirs().iter().filter(|dir| paths.parent(**dir) == set.dirs()[0]).collect();
            n_second += second.len() as f64;
            n_leaf += second.iter().filter(|dir| n_files.contains_key(dir)).count() as f64;
            // The directory that was being filled last is not full.
            n_files.remove(&paths.parent(set.file(set.len() - 1).path));
            n_wide += n_files.len() as f64;
            sum_wide += n_files.values().map(|n| f64::from(*n)).sum::<f64>();
            let depth = |dir: &PathId| paths.path(*dir).matches('/').count();
            deepest = deepest.max(set.dirs().iter().map(depth).max().unwrap_or(0));
        }
        let (found, expected) = (n_leaf / n_second, below(3.0, mean));
        // The draw that decides when a tree is complete is a deep one, so that leaves are
        // a little more rare than in one endless tree.
        assert!((found - expected).abs() < 0.06, "{found} leaves instead of {expected}");
        // A number rounded up gains half on average, and 0.03 since few are near zero.
        let mean_width = sum_wide / n_wide;
        assert!((mean_width - 20.5).abs() < 0.4, "width {mean_width}");
        assert!((5..30).contains(&deepest), "{deepest} levels");
    }

    #[test]
    fn preallocation_offers_each_file_once() {
        for prealloc in [0, 35, 80, 100] {
            let (mut set, _) = build(10_000, 20, prealloc, 5);
            let mut there = std::iter::from_fn(|| set.next_preallocated()).collect::<Vec<_>>();
            let n = there.len() as f64;
            assert!((n - 100.0 * prealloc as f64).abs() < 200.0, "{n} at {prealloc} %");
            assert!(!there.is_sorted() || there.len() < 2, "in order of their numbers");
            there.sort_unstable();
            there.dedup();
            assert_eq!(there.len() as f64, n);
        }
    }

    #[test]
    fn busy_files_are_passed_over_and_absent_ones_are_not_present() {
        let (mut set, _) = build(4, 20, 100, 1);
        while set.next_preallocated().is_some() {}
        assert_eq!(set.pick_absent(), None);
        let picks: Vec<_> = (0..5).map(|_| set.pick_present(None)).collect();
        assert_eq!(picks, [Some(0), Some(1), Some(2), Some(3), None]);
        set.put_back(2);
        set.release(3, false);
        assert_eq!((set.pick_absent(), set.pick_present(None)), (Some(3), Some(2)));
        let mut own = 0;
        set.put_back(1);
        assert_eq!((set.pick_present(Some(&mut own)), own), (Some(1), 1));
    }

    /// A size is drawn once: mean and variance are those of the distribution.
    #[test]
    fn sizes_are_gamma() {
        let (set, _) = build(100_000, 20, 100, 9);
        let sizes: Vec<_> = (0..set.len()).map(|file| set.file(file).size as f64).collect();
        let n = sizes.len() as f64;
        let mean = sizes.iter().sum::<f64>() / n;
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / n;
        assert!((mean / 16_384.0 - 1.0).abs() < 0.01, "mean {mean}");
        let expected = 16_384.0_f64.powi(2) / SHAPE;
        assert!((variance / expected - 1.0).abs() < 0.03, "variance {variance}");
    }
}
