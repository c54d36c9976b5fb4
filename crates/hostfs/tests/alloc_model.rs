//! The block allocator against a list of owners: no block is given twice, structures are
//! never given, counts add up, and when everything is released everything is free.

#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::time::Instant;

use flashwise_hostfs::alloc::{AllocOptions, BlockAllocator, BlockUse, Mapped, Request};
use flashwise_hostfs::layout::{FsBlock, Ino, JournalSize, Layout, LayoutOptions};
use proptest::prelude::*;

/// A step of a random life of some files.
#[derive(Clone, Debug)]
enum Step {
    Write { file: u32, logical: u32, len: u32, open: bool, cpu: u32 },
    Fallocate { file: u32, len: u32 },
    Tree { file: u32 },
    Directory { file: u32 },
    Delete { file: u32, at_commit: bool },
    Close { file: u32 },
    Commit,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0u32..12;
    let step = prop_oneof![
        12 => (file.clone(), prop_oneof![Just(u32::MAX), 0u32..4000], 1u32..600, any::<bool>(), 0u32..3)
            .prop_map(|(file, logical, len, open, cpu)| Step::Write { file, logical, len, open, cpu }),
        2 => (file.clone(), 1u32..9000).prop_map(|(file, len)| Step::Fallocate { file, len }),
        2 => file.clone().prop_map(|file| Step::Tree { file }),
        2 => file.clone().prop_map(|file| Step::Directory { file }),
        2 => (file.clone(), any::<bool>()).prop_map(|(file, at_commit)| Step::Delete { file, at_commit }),
        2 => file.prop_map(|file| Step::Close { file }),
        1 => Just(Step::Commit),
    ];
    prop::collection::vec(step, 1..120)
}

/// Files as a list of blocks, and blocks as a list of owners.
struct Model {
    layout: Layout,
    allocator: BlockAllocator,
    owner: Vec<bool>,
    /// Block of the file to block of the device. Trees and directories use high numbers.
    files: Vec<BTreeMap<u32, u32>>,
    freed: Vec<(FsBlock, u32)>,
}

impl Model {
    fn new(n_blocks: u64, options: AllocOptions) -> Self {
        let journal = JournalSize::None;
        let layout =
            Layout::new(&LayoutOptions { journal, ..LayoutOptions::new(n_blocks) }).unwrap();
        let allocator = BlockAllocator::new(&layout, options);
        let owner = vec![false; layout.n_blocks() as usize];
        Self { layout, allocator, owner, files: vec![BTreeMap::new(); 12], freed: Vec::new() }
    }

    fn take(&mut self, file: u32, request: Request) -> bool {
        let mut request = request;
        let mut left = request.len;
        while left > 0 {
            request.len = left;
            let map = &self.files[file as usize];
            let mapped = |(logical, block): (&u32, &u32)| Mapped {
                logical: *logical,
                block: FsBlock(*block),
            };
            request.left = map.range(..request.logical).next_back().map(mapped);
            request.right = map.range(request.logical..).next().map(mapped);
            if request.reserved && self.allocator.reserve(left).is_err() {
                return false;
            }
            let Ok(extent) = self.allocator.allocate(&request) else {
                if request.reserved {
                    self.allocator.unreserve(left);
                }
                // A real file system would commit and try again.
                return false;
            };
            if request.reserved {
                self.allocator.unreserve(left - extent.len);
            }
            assert!(extent.len >= 1 && extent.len <= left);
            assert_eq!(extent.start.group(), FsBlock(extent.start.0 + extent.len - 1).group());
            for idx in 0..extent.len {
                let block = extent.start.0 + idx;
                assert!(!self.layout.is_metadata(FsBlock(block)), "{block} is metadata");
                assert!(!self.owner[block as usize], "{block} was given twice");
                self.owner[block as usize] = true;
                assert_eq!(extent.logical, request.logical);
                let old = self.files[file as usize].insert(extent.logical + idx, block);
                assert_eq!(old, None);
            }
            request.logical += extent.len;
            left -= extent.len;
        }
        true
    }

    fn commit(&mut self) {
        for (start, len) in std::mem::take(&mut self.freed) {
            self.allocator.release_freed(start, len);
            self.owner[start.0 as usize..(start.0 + len) as usize].fill(false);
        }
    }

    fn delete(&mut self, file: u32, at_commit: bool) {
        self.allocator.discard_preallocation(Ino(100 + file));
        for block in std::mem::take(&mut self.files[file as usize]).into_values() {
            if at_commit {
                self.allocator.mark_freed(FsBlock(block), 1);
                self.freed.push((FsBlock(block), 1));
            } else {
                self.allocator.release(FsBlock(block), 1);
                self.owner[block as usize] = false;
            }
        }
    }

    fn step(&mut self, step: &Step) {
        const HIGH: u32 = 1 << 24;
        match *step {
            Step::Write { file, logical, len, open, cpu } => {
                let map = &self.files[file as usize];
                let end = map.range(..HIGH).next_back().map_or(0, |(last, _)| last + 1);
                let logical = if logical == u32::MAX { end } else { logical };
                if map.contains_key(&logical) {
                    return;
                }
                let next = map.range(logical..).next().map_or(u32::MAX, |(next, _)| *next);
                let len = len.min(next - logical);
                let size = end.max(logical + len);
                let request = Request {
                    open_for_write: open,
                    cpu,
                    ..Request::data(Ino(100 + file), file % 3, logical, len, size)
                };
                self.take(file, request);
            }
            Step::Fallocate { file, len } => {
                let map = &self.files[file as usize];
                let end = map.range(..HIGH).next_back().map_or(0, |(last, _)| last + 1);
                let size = end + len;
                let request = Request {
                    exact: true,
                    reserved: false,
                    ..Request::data(Ino(100 + file), file % 3, end, len, size)
                };
                self.take(file, request);
            }
            Step::Tree { file } => {
                let logical = HIGH + 2 * self.files[file as usize].len() as u32;
                let usage = BlockUse::ExtentTree;
                let request = Request::data(Ino(100 + file), file % 3, logical, 1, 1);
                self.take(file, Request { usage, reserved: false, ..request });
            }
            Step::Directory { file } => {
                let logical = HIGH + 1 + 2 * self.files[file as usize].len() as u32;
                let usage = BlockUse::Directory;
                let request = Request::data(Ino(100 + file), file % 3, logical, 1, 1);
                self.take(file, Request { usage, reserved: false, ..request });
            }
            Step::Delete { file, at_commit } => self.delete(file, at_commit),
            Step::Close { file } => self.allocator.discard_preallocation(Ino(100 + file)),
            Step::Commit => self.commit(),
        }
    }

    fn check(&self) {
        self.allocator.self_check();
        let n_owned = self.owner.iter().filter(|owned| **owned).count() as u64;
        let n_waiting: u64 = self.freed.iter().map(|(_, len)| u64::from(*len)).sum();
        let n_free = u64::from(self.layout.free_blocks());
        assert_eq!(self.allocator.free_blocks(), n_free - n_owned + n_waiting);
        assert_eq!(self.allocator.freed_blocks(), n_waiting);
        assert_eq!(self.allocator.reserved_blocks(), 0);
        let mut n_trim = 0;
        for (start, len) in self.allocator.free_extents() {
            n_trim += u64::from(len);
            assert!(self.owner[start.0 as usize..(start.0 + len) as usize].iter().all(|o| !o));
        }
        let set_aside = self.allocator.preallocated_blocks();
        assert_eq!(n_trim, self.allocator.free_blocks() - n_waiting - set_aside);
    }

    fn end(mut self) {
        self.commit();
        for file in 0..12 {
            self.delete(file, false);
        }
        self.allocator.discard_all_preallocations();
        self.check();
        let fresh = BlockAllocator::new(&self.layout, AllocOptions::default());
        assert!(self.allocator.free_extents().eq(fresh.free_extents()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn blocks_have_one_owner(
        steps in steps(),
        n_blocks in prop_oneof![Just(8_000u64), Just(70_000), Just(600_000)],
        prealloc in any::<bool>(),
        small in prop_oneof![Just((16, 512)), Just((64, 64)), Just((0, 0))],
    ) {
        let (mb_stream_req, mb_group_prealloc) = small;
        let options = AllocOptions {
            prealloc,
            mb_stream_req,
            mb_group_prealloc,
            n_cpus: 2,
            ..AllocOptions::default()
        };
        let mut model = Model::new(n_blocks, options);
        for step in &steps {
            model.step(step);
            model.check();
        }
        model.end();
    }
}

#[test]
fn a_file_system_can_be_filled_to_the_last_block_that_is_not_kept() {
    let mut model = Model::new(40_000, AllocOptions::default());
    let mut logical = 0;
    while model.allocator.available_blocks() > 0 {
        let len = model.allocator.available_blocks().min(700) as u32;
        let request = Request::data(Ino(100), 0, logical, len, logical + len);
        assert!(model.take(0, request));
        logical += len;
    }
    assert!(model.allocator.reserve(1).is_err());
    let request = Request { reserved: false, ..Request::data(Ino(101), 0, 0, 1, 1) };
    let refused = model.allocator.allocate(&request).unwrap_err();
    assert!(refused.to_string().contains("no space left"));
    // The pool kept for extent trees is still there.
    let usage = BlockUse::ExtentTree;
    assert!(model.allocator.allocate(&Request { usage, ..request }).is_ok());
    model.allocator.self_check();
}

/// Prints the cost of an allocation; asserts only what any build and machine reaches.
#[test]
fn an_allocation_costs_little() {
    let layout = Layout::new(&LayoutOptions::new(120 << 18)).unwrap();
    let mut allocator = BlockAllocator::new(&layout, AllocOptions::default());
    let mut extents = Vec::new();
    let n_files = 2000;
    let begin = Instant::now();
    let mut n_calls = 0u32;
    let mut last: Vec<Option<Mapped>> = vec![None; n_files as usize];
    for round in 0..64u32 {
        for file in 0..n_files {
            let logical = round * 4;
            let mut request = Request::data(Ino(100 + file), file % 32, logical, 4, logical + 4);
            request.left = last[file as usize];
            request.reserved = false;
            let extent = allocator.allocate(&request).unwrap();
            assert_eq!(extent.len, 4);
            last[file as usize] = Some(extent.last());
            extents.push((extent.start, extent.len));
            n_calls += 1;
        }
    }
    let ns = begin.elapsed().as_nanos() / u128::from(n_calls);
    let begin = Instant::now();
    for (start, len) in &extents {
        allocator.release(*start, *len);
    }
    let release_ns = begin.elapsed().as_nanos() / u128::from(n_calls);
    eprintln!("{ns} ns for an allocation, {release_ns} ns for a release");
    assert!(ns < 20_000 && release_ns < 20_000);
}

/// The same on a file system that is almost full of holes, where searches look far.
#[test]
fn an_allocation_on_a_full_file_system_costs_little() {
    let layout = Layout::new(&LayoutOptions::new(16 << 18)).unwrap();
    let mut allocator = BlockAllocator::new(&layout, AllocOptions::default());
    let mut seed = 1u64;
    let mut random = |n: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % u64::from(n)) as u32
    };
    let mut files: Vec<Vec<(FsBlock, u32)>> = Vec::new();
    let (mut n_calls, mut ino) = (0u32, 100);
    let mut begin = Instant::now();
    for round in 0..400_000u32 {
        if round == 200_000 {
            (begin, n_calls) = (Instant::now(), 0);
        }
        let len = 1 + random(60);
        let mut extents: Vec<(FsBlock, u32)> = Vec::new();
        let mut logical = 0;
        let mut left = None;
        while logical < len && allocator.available_blocks() > u64::from(len) {
            let mut request = Request::data(Ino(ino), ino % 128, logical, len - logical, len);
            request.left = left;
            request.reserved = false;
            let extent = allocator.allocate(&request).unwrap();
            n_calls += 1;
            left = Some(extent.last());
            logical += extent.len;
            extents.push((extent.start, extent.len));
        }
        allocator.discard_preallocation(Ino(ino));
        ino += 1;
        files.push(extents);
        while allocator.available_blocks() < u64::from(layout.free_blocks()) / 20 {
            let idx = random(files.len() as u32) as usize;
            for (start, len) in files.swap_remove(idx) {
                allocator.release(start, len);
            }
        }
    }
    let ns = begin.elapsed().as_nanos() / u128::from(n_calls);
    eprintln!("{ns} ns for an allocation and a release, 95 % full");
    allocator.self_check();
    assert!(ns < 100_000);
}
