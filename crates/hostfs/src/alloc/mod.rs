//! Which blocks a file gets: an allocator after ext4's `mballoc`.
//!
//! Where data goes decides what a drive sees: whether a file is one stream or many pieces,
//! whether files that are written together share erase blocks, how free space looks to
//! `fstrim`. So the rules are those of the kernel, in the order in which it asks them:
//!
//! 1. A space set aside for the file, or the one small files share on this CPU.
//! 2. The request is enlarged by the size of the file; what is over becomes such a space.
//! 3. The goal: the block that goes on where the file ends.
//! 4. Searches, each less picky (`search.rs`): an aligned power of two, a group whose mean
//!    free run is long enough, the same for a shorter request, any run that is long enough,
//!    anything.
//! 5. What is set aside is given up, and the search begins again.
//!
//! Source of all rules: Linux 6.18, `fs/ext4/mballoc.c`, `balloc.c`, `extents.c`. Tests
//! compare the number of extents with that of a real ext4 (`tests/alloc_real.rs`).
//!
//! Left out: bigalloc, stripes, quota, groups whose bitmap was not read yet (the kernel skips
//! them at first; here all are known), races for a group.
//!
//! **Freed blocks.** ext4 counts blocks as free as soon as they are freed, but gives them out
//! only after the transaction that freed them has committed. [`BlockAllocator::mark_freed`]
//! is the first half, [`BlockAllocator::release_freed`] the second; [`BlockAllocator::release`]
//! is both. Between the halves [`BlockAllocator::free_blocks`] counts the blocks, yet
//! [`BlockAllocator::allocate`] may answer [`NoSpace`]: then commit and try again, if
//! [`BlockAllocator::freed_blocks`] is not 0, as ext4 does.
//!
//! Invariants ([`BlockAllocator::self_check`]): no block is given twice; structures of the
//! file system are never given; totals are sums over groups. Cost: 0.15 us for an allocation
//! while there is room, 4 us with its release when 95 % are in use and the rest is in pieces
//! (`tests/alloc_model.rs` prints both); 100 bytes for each group and 16 KiB more for each
//! that was used.

mod check;
mod group;
mod lists;
mod prealloc;
mod request;
mod search;

pub use request::{AllocOptions, BlockUse, Extent, Mapped, NoSpace, Request};

use std::ops::Range;

use crate::layout::{FLEX_GROUPS, FsBlock, GROUP_BLOCKS, Ino, Layout};
use group::{Group, Summary};
use lists::Lists;
use prealloc::{InodeSpace, Prealloc, SharedSpace};
use request::{POOL_MAX, POOL_PART, enlarged};
use search::Search;

/// Searches before the file system counts as full: one, and two after spaces were given up.
/// Source: `ext4_mb_new_blocks`.
const TRIES: u32 = 3;

/// The blocks of a file system.
#[derive(Clone, Debug)]
pub struct BlockAllocator {
    options: AllocOptions,
    n_blocks: u32,
    n_groups: u32,
    /// Blocks in use from the start.
    fixed: Vec<Range<u32>>,
    /// Groups that were used; the others are as the layout left them.
    groups: Vec<Option<Box<Group>>>,
    /// Counts of groups that were not used.
    untouched: Vec<Summary>,
    lists: Lists,
    prealloc: Prealloc,
    /// Blocks free on disk, by group.
    group_free: Vec<u32>,
    n_free: u64,
    /// Freed blocks that wait for their commit.
    n_freed: u64,
    /// Blocks promised to data in the page cache.
    n_reserved: u64,
    /// Blocks kept for root, and for extent trees.
    n_root: u64,
    n_pool: u64,
    /// Group where streams go on.
    stream_goals: Vec<u32>,
}

impl BlockAllocator {
    /// All blocks the layout left free.
    pub fn new(layout: &Layout, options: AllocOptions) -> Self {
        let n_groups = layout.n_groups();
        let mut allocator = Self {
            options,
            n_blocks: layout.n_blocks(),
            n_groups,
            fixed: layout.used().to_vec(),
            groups: vec![None; n_groups as usize],
            untouched: Vec::with_capacity(n_groups as usize),
            lists: Lists::new(n_groups),
            prealloc: Prealloc::new(options.n_cpus),
            group_free: Vec::with_capacity(n_groups as usize),
            n_free: 0,
            n_freed: 0,
            n_reserved: 0,
            n_root: u64::from(layout.reserved_blocks()),
            n_pool: u64::from((layout.n_blocks() / POOL_PART).min(POOL_MAX)),
            stream_goals: search::stream_goals(n_groups, options.n_cpus),
        };
        for group in 0..n_groups {
            let summary = Summary::of(allocator.fixed_free_runs(group).into_iter());
            allocator.lists.update(group, &summary);
            allocator.group_free.push(summary.n_free);
            allocator.n_free += u64::from(summary.n_free);
            allocator.untouched.push(summary);
        }
        allocator
    }

    /// The settings.
    pub fn options(&self) -> &AllocOptions {
        &self.options
    }

    /// How many groups there are.
    pub fn n_groups(&self) -> u32 {
        self.n_groups
    }

    /// The group of a block.
    pub fn group_of(&self, block: FsBlock) -> u32 {
        block.group()
    }

    /// Free blocks, as `statfs` would count them: preallocated blocks, promised ones and
    /// those whose freeing is not committed are among them.
    pub fn free_blocks(&self) -> u64 {
        self.n_free
    }

    /// Freed blocks that wait for their commit.
    pub fn freed_blocks(&self) -> u64 {
        self.n_freed
    }

    /// Blocks promised to data in the page cache.
    pub fn reserved_blocks(&self) -> u64 {
        self.n_reserved
    }

    /// Blocks set aside for files and not used.
    pub fn preallocated_blocks(&self) -> u64 {
        self.prealloc.n_blocks()
    }

    /// Free blocks of a group, as its descriptor counts them.
    pub fn free_in_group(&self, group: u32) -> u32 {
        self.group_free[group as usize]
    }

    /// Blocks a file may still get: free and neither promised nor kept.
    pub fn available_blocks(&self) -> u64 {
        self.n_free.saturating_sub(self.n_reserved + self.n_root + self.n_pool)
    }

    /// Promises blocks to data that is written to the page cache, so that a full file system
    /// is told when data is written and not when it is written back.
    pub fn reserve(&mut self, n_blocks: u32) -> Result<(), NoSpace> {
        if u64::from(n_blocks) > self.available_blocks() {
            return Err(self.no_space(n_blocks));
        }
        self.n_reserved += u64::from(n_blocks);
        Ok(())
    }

    /// Takes a promise back: the data was dropped before it was written back.
    pub fn unreserve(&mut self, n_blocks: u32) {
        let left = self.n_reserved.checked_sub(u64::from(n_blocks));
        self.n_reserved = left.expect("no more is taken back than was promised");
    }

    /// Gives blocks. Fewer than asked may come: ask again for the rest.
    pub fn allocate(&mut self, request: &Request) -> Result<Extent, NoSpace> {
        assert!(request.len > 0, "a request for no blocks");
        let mut len = request.len.min(GROUP_BLOCKS);
        if !request.reserved {
            let room = match request.usage {
                BlockUse::ExtentTree => self.n_free.saturating_sub(self.n_reserved),
                BlockUse::Data | BlockUse::Directory => self.available_blocks(),
            };
            while len > 0 && u64::from(len) > room {
                len /= 2;
            }
            if len == 0 {
                return Err(self.no_space(request.len));
            }
        }
        let (start, len) = match self.use_prealloc(request, len) {
            Some(found) => found,
            None => self.search_for(request, len).ok_or_else(|| self.no_space(request.len))?,
        };
        let group = start / GROUP_BLOCKS;
        self.group_mut(group).write_disk(start % GROUP_BLOCKS, len);
        self.group_free[group as usize] -= len;
        self.n_free -= u64::from(len);
        if request.reserved {
            self.unreserve(len);
        }
        Ok(Extent { logical: request.logical, start: FsBlock(start), len })
    }

    /// Counts blocks as free that can be used again only after a commit. They must have been
    /// given; they may span groups.
    pub fn mark_freed(&mut self, start: FsBlock, len: u32) {
        for (group, _, len) in pieces(start, len) {
            self.group_free[group as usize] += len;
        }
        self.n_free += u64::from(len);
        self.n_freed += u64::from(len);
    }

    /// The commit has come: blocks of [`Self::mark_freed`] can be given again.
    pub fn release_freed(&mut self, start: FsBlock, len: u32) {
        let left = self.n_freed.checked_sub(u64::from(len));
        self.n_freed = left.expect("blocks are marked as freed before they are released");
        for (group, offset, len) in pieces(start, len) {
            self.group_mut(group).clear_disk(offset, len);
            self.give(group, offset, len);
        }
    }

    /// Frees blocks that can be given again at once.
    pub fn release(&mut self, start: FsBlock, len: u32) {
        self.mark_freed(start, len);
        self.release_freed(start, len);
    }

    /// Takes blocks back that were just given and not used, and renews their promise. What is
    /// set aside for their inode has to be given up first.
    pub(crate) fn take_back(&mut self, start: FsBlock, len: u32, reserved: bool) {
        self.release(start, len);
        self.n_reserved += if reserved { u64::from(len) } else { 0 };
    }

    /// Free runs of a range, as allocations may take them.
    pub(crate) fn free_runs_in(&self, start: FsBlock, len: u32) -> Vec<(FsBlock, u32)> {
        let mut runs = Vec::new();
        for (group, offset, len) in pieces(start, len) {
            let (first, end) = (group * GROUP_BLOCKS, offset + len);
            let mut add = |run: Range<u32>| {
                let (from, to) = (run.start.max(offset), run.end.min(end));
                if from < to {
                    runs.push((FsBlock(first + from), to - from));
                }
            };
            let Some(maps) = &self.groups[group as usize] else {
                self.fixed_free_runs(group).into_iter().for_each(add);
                continue;
            };
            let mut at = offset;
            while let Some(run) = (at < end).then(|| maps.next_run(at)).flatten() {
                at = run.end;
                add(run);
            }
        }
        runs
    }

    /// Gives up what is set aside for an inode: at its last close, when it is cut or has a
    /// hole punched (before its blocks are freed), and when it is deleted.
    pub fn discard_preallocation(&mut self, ino: Ino) {
        for space in self.prealloc.remove_inode(ino) {
            self.give_inode_space(&space);
        }
    }

    /// Gives up all that is set aside, as unmounting does.
    pub fn discard_all_preallocations(&mut self) {
        let spaces = self.prealloc.remove_all();
        self.give_spaces(spaces);
    }

    /// Runs of blocks that are free and not set aside, in order: what `fstrim` tells the
    /// device. Runs end at group ends, as the kernel's do.
    pub fn free_extents(&self) -> impl Iterator<Item = (FsBlock, u32)> + '_ {
        (0..self.n_groups).flat_map(move |group| {
            let mut at = 0;
            let fixed = match self.groups[group as usize] {
                None => self.fixed_free_runs(group),
                Some(_) => Vec::new(),
            };
            let mut fixed = fixed.into_iter();
            std::iter::from_fn(move || {
                let run = match &self.groups[group as usize] {
                    None => fixed.next()?,
                    Some(maps) if at < GROUP_BLOCKS => maps.next_run(at)?,
                    Some(_) => return None,
                };
                at = run.end;
                Some((FsBlock(group * GROUP_BLOCKS + run.start), run.end - run.start))
            })
        })
    }

    fn no_space(&self, wanted: u32) -> NoSpace {
        NoSpace { wanted, available: self.available_blocks() }
    }

    /// Step 1: blocks that were set aside.
    fn use_prealloc(&mut self, request: &Request, len: u32) -> Option<(u32, u32)> {
        if request.usage != BlockUse::Data {
            return None;
        }
        if let Some(found) = self.prealloc.use_inode(request.ino, request.logical, len) {
            return Some(found);
        }
        if !matches!(self.kind_of_file(request, len), Kind::Small | Kind::SmallExact) {
            return None;
        }
        let goal = self.goal(request);
        let (start, given_up) = self.prealloc.use_shared(request.cpu, goal, len)?;
        self.give_spaces((Vec::new(), given_up));
        Some((start, len))
    }

    /// Steps 2 to 5: a search, and what is over is set aside.
    fn search_for(&mut self, request: &Request, len: u32) -> Option<(u32, u32)> {
        let kind = self.kind_of_file(request, len);
        let mut search = Search::new(request, len, kind, self.goal(request));
        if kind == Kind::Small {
            search.goal_len = self.options.mb_group_prealloc;
        } else if kind == Kind::Stream && !request.exact && self.options.prealloc {
            self.enlarge(request, len, &mut search);
        }
        search.wish_len = search.goal_len;
        for _ in 0..TRIES {
            if let Some((start, found)) = self.search(&mut search) {
                return Some(self.set_aside(request, &search, start, found));
            }
            let spaces = self.prealloc.remove_for(len);
            if spaces.0.is_empty() && spaces.1.is_empty() {
                return None;
            }
            self.give_spaces(spaces);
            search.restart();
        }
        None
    }

    /// How the kernel treats the file. Source: `ext4_mb_group_or_file`.
    fn kind_of_file(&self, request: &Request, len: u32) -> Kind {
        if request.usage != BlockUse::Data {
            return Kind::Metadata;
        }
        let end = request.logical.saturating_add(len);
        let closed = end == request.file_blocks && !request.open_for_write;
        let options = &self.options;
        let small = end.max(request.file_blocks) <= options.mb_stream_req
            && options.mb_group_prealloc > 0
            && options.prealloc;
        match (small, closed) {
            // A request for exactly this much still counts as one of a small file, but
            // finds a space only if one is there.
            (true, _) if !request.exact => Kind::Small,
            (true, _) => Kind::SmallExact,
            (false, false) => Kind::Stream,
            (false, true) => Kind::Closed,
        }
    }

    /// Where to look first. Source: `ext4_ext_find_goal`, `ext4_inode_to_goal_block`.
    fn goal(&self, request: &Request) -> FsBlock {
        if let Some(goal) = request.goal {
            return self.inside(u64::from(goal.0));
        }
        let logical = u64::from(request.logical);
        if let Some(left) = request.left {
            return self.inside(u64::from(left.block.0) + logical - u64::from(left.logical));
        }
        if let Some(right) = request.right {
            let before = u64::from(right.logical) - logical;
            if let Some(block) = u64::from(right.block.0).checked_sub(before) {
                return self.inside(block);
            }
        }
        let mut group = request.inode_group - request.inode_group % FLEX_GROUPS;
        if request.usage != BlockUse::Directory {
            group += 1;
        }
        let first = u64::from(group) * u64::from(GROUP_BLOCKS);
        if self.options.delalloc {
            return self.inside(first);
        }
        let last = u64::from(self.n_blocks) - 1;
        let len = u64::from(GROUP_BLOCKS).min(last.saturating_sub(first));
        self.inside(first + u64::from(request.cpu % 16) * (len / 16))
    }

    fn inside(&self, block: u64) -> FsBlock {
        FsBlock(u32::try_from(block).ok().filter(|block| *block < self.n_blocks).unwrap_or(0))
    }

    /// Step 2. Source: `ext4_mb_normalize_request`.
    fn enlarge(&self, request: &Request, len: u32, search: &mut Search) {
        let logical = request.logical;
        let (mut start, size) = enlarged(logical, len, request.file_blocks);
        let mut end = u64::from(start) + u64::from(size);
        if let Some(left) = request.left
            && start <= left.logical
        {
            start = left.logical + 1;
        }
        if let Some(right) = request.right {
            end = end.min(u64::from(right.logical));
        }
        end = end.min(u64::from(start) + u64::from(GROUP_BLOCKS));
        let (left_end, right_start) = self.prealloc.around(request.ino, logical);
        if let Some(left_end) = left_end {
            start = start.max(left_end as u32);
        }
        if let Some(right_start) = right_start {
            end = end.min(u64::from(right_start));
        }
        assert!(start <= logical && u64::from(logical) < end, "a request is inside its range");
        search.logical = start;
        search.goal_len = (end - u64::from(start)) as u32;
        if let Some(right) = request.right
            && u64::from(right.logical) == end
            && right.block.0 >= search.goal_len
        {
            search.goal = FsBlock(right.block.0 - search.goal_len);
            search.try_goal = true;
        }
        if let Some(left) = request.left
            && left.logical + 1 == start
            && left.block.0 + 1 < self.n_blocks
        {
            search.goal = FsBlock(left.block.0 + 1);
            search.try_goal = true;
        }
    }

    /// Makes a space of what was found beyond the request. Answers the part for the request.
    fn set_aside(
        &mut self,
        request: &Request,
        search: &Search,
        start: u32,
        found: u32,
    ) -> (u32, u32) {
        if found <= search.len {
            return (start, found);
        }
        if search.kind == Kind::Small {
            let rest = SharedSpace { start: start + search.len, len: found - search.len };
            let given_up = self.prealloc.add_shared(request.cpu, rest);
            self.give_spaces((Vec::new(), given_up));
            return (start, search.len);
        }
        let logical = search.place(found);
        let skip = request.logical - logical;
        let len = search.len.min(found - skip);
        if len < found {
            let space = InodeSpace { logical, start, len: found, n_free: found - len };
            self.prealloc.add_inode(request.ino, space);
        }
        (start + skip, len)
    }

    fn give_spaces(&mut self, (of_inodes, shared): (Vec<InodeSpace>, Vec<SharedSpace>)) {
        for space in &of_inodes {
            self.give_inode_space(space);
        }
        for space in &shared {
            let start = FsBlock(space.start);
            self.give(start.group(), start.offset(), space.len);
        }
    }

    /// Gives the unused blocks of a space back: those that are free on disk.
    fn give_inode_space(&mut self, space: &InodeSpace) {
        let start = FsBlock(space.start);
        let (group, mut at) = (start.group(), start.offset());
        let end = at + space.len;
        let mut n_given = 0;
        while let Some(run) = (at < end).then(|| self.group_mut(group).next_disk_free(at)).flatten()
        {
            at = run.end.min(end);
            if run.start < end {
                self.give(group, run.start, at - run.start);
                n_given += at - run.start;
            }
        }
        assert_eq!(n_given, space.n_free, "unused blocks of a space");
    }

    fn give(&mut self, group: u32, offset: u32, len: u32) {
        self.group_mut(group).give(offset, len);
        self.update_lists(group);
    }

    fn update_lists(&mut self, group: u32) {
        let summary = match &self.groups[group as usize] {
            Some(maps) => &maps.summary,
            None => &self.untouched[group as usize],
        };
        self.lists.update(group, summary);
    }

    fn summary(&self, group: u32) -> &Summary {
        match &self.groups[group as usize] {
            Some(maps) => &maps.summary,
            None => &self.untouched[group as usize],
        }
    }

    fn group_mut(&mut self, group: u32) -> &mut Group {
        if self.groups[group as usize].is_none() {
            let runs = self.fixed_free_runs(group);
            self.groups[group as usize] = Some(Box::new(Group::new(runs.into_iter())));
        }
        self.groups[group as usize].as_mut().expect("it was just made")
    }

    /// Free runs of a group as the layout left it, by place in the group.
    fn fixed_free_runs(&self, group: u32) -> Vec<Range<u32>> {
        let first = group * GROUP_BLOCKS;
        let end = first.saturating_add(GROUP_BLOCKS).min(self.n_blocks);
        let mut runs = Vec::new();
        let mut at = first;
        let from = self.fixed.partition_point(|used| used.end <= first);
        for used in self.fixed[from..].iter().take_while(|used| used.start < end) {
            if used.start > at {
                runs.push(at - first..used.start - first);
            }
            at = used.end;
        }
        if at < end {
            runs.push(at - first..end - first);
        }
        runs
    }
}

/// How a file is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Small: shares a space with others.
    Small,
    /// Small, and the request asks for exactly so much: uses a shared space, makes none.
    SmallExact,
    /// Large: goes on where the last such file did.
    Stream,
    /// Large and closed: nothing is set aside, and it is no stream.
    Closed,
    /// A directory or an extent tree.
    Metadata,
}

/// The parts of a range by group: group, place in it, length.
fn pieces(start: FsBlock, len: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let (mut at, mut left) = (start.0, len);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let block = FsBlock(at);
        let len = left.min(GROUP_BLOCKS - block.offset());
        at = at.wrapping_add(len);
        left -= len;
        Some((block.group(), block.offset(), len))
    })
}
