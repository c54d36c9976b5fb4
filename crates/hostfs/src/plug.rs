//! From bios to requests: merging, splitting and plugging, as the block layer does them.
//!
//! A thread that submits I/O holds its requests back (a plug) until there are enough of
//! them or the last one is large; then all go to the driver one after another. So making
//! the next requests overlaps with the device's work on those that went before. Source of
//! the rules and numbers: FAST'24 paper, section 3.1 (16 requests, 128 KiB), which are
//! `BLK_MAX_REQUEST_COUNT` and `BLK_PLUG_FLUSH_SIZE` of Linux 5.15.
//!
//! Invariant: requests leave in the order of their bios, and cover the same blocks. Cost:
//! O(1) per bio and request.

use std::collections::VecDeque;

use flashwise_hint::WriteHint;

use crate::costs::HostCosts;
use crate::io::{IoClass, IoOp};
use crate::layout::FsBlock;

/// On which device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// The one the file system is on.
    #[default]
    Main,
    /// The one an external journal is on.
    Journal,
}

/// A file whose writes are on their way; `NONE` for anything else.
pub(crate) const NO_FILE: u32 = u32::MAX;

/// A run of blocks to move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bio {
    pub(crate) op: IoOp,
    pub(crate) target: Target,
    pub(crate) start: FsBlock,
    pub(crate) len: u32,
    /// Pieces of memory it is in: one for each block where blocks are cached one by one
    /// (metadata, the log, logged data), one for a run of pages of a file.
    pub(crate) segments: u32,
    pub(crate) fua: bool,
    pub(crate) class: IoClass,
    pub(crate) hint: WriteHint,
    /// Inode index of the file it writes back.
    pub(crate) file: u32,
}

impl Bio {
    pub(crate) fn flush(target: Target) -> Self {
        Self {
            op: IoOp::Flush,
            target,
            start: FsBlock(0),
            len: 0,
            segments: 0,
            fua: false,
            class: IoClass::Journal,
            hint: WriteHint::NONE,
            file: NO_FILE,
        }
    }
}

/// A request on its way to the driver.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) bio: Bio,
    /// CPU time before it reaches the device \[ns\].
    pub(crate) cpu_ns: u64,
    /// When it was made \[ns\].
    pub(crate) made_ns: u64,
    /// Pages of files it writes back.
    pub(crate) n_pages: u32,
    /// Files whose bios were merged into it, besides that of the first.
    pub(crate) others: Vec<u32>,
}

impl Queued {
    /// Files that have pages in it.
    pub(crate) fn files(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.bio.file).chain(self.others.iter().copied()).filter(|f| *f != NO_FILE)
    }

    /// Merges a bio that continues it; whether its file had none in it.
    fn merge(&mut self, bio: &Bio) -> bool {
        self.bio.len += bio.len;
        self.bio.segments += bio.segments;
        if bio.file == NO_FILE {
            return false;
        }
        self.n_pages += bio.len;
        let is_new = self.files().all(|file| file != bio.file);
        if is_new {
            self.others.push(bio.file);
        }
        is_new
    }
}

/// How requests are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlugRules {
    /// Largest request \[blocks\].
    pub(crate) blocks_max: u32,
    /// Most pieces of memory in a request.
    pub(crate) segments_max: u32,
    /// Requests that end a plug.
    pub(crate) n_max: usize,
    /// Size of the last request that ends a plug \[blocks\].
    pub(crate) flush_blocks: u32,
}

/// Requests of one thread that are not at the device yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plug {
    queue: VecDeque<Queued>,
    /// Requests at the end of the queue that are still held back.
    n_held: usize,
    /// CPU time spent on them \[ns\].
    held_cpu_ns: u64,
    /// Now \[ns\]: when requests that are added are made.
    pub(crate) now_ns: u64,
}

impl Plug {
    /// Adds a bio: merges it with the request before, or makes requests of it; how many
    /// requests have pages of its file that had none before.
    pub(crate) fn add(&mut self, bio: Bio, rules: &PlugRules, costs: &HostCosts) -> u32 {
        if bio.op == IoOp::Flush {
            self.flush(costs);
            self.push(bio, costs);
            self.flush(costs);
            return 1;
        }
        self.held_cpu_ns += costs.bio_ns + u64::from(bio.len) * costs.bio_page_ns;
        if bio.op == IoOp::Discard {
            self.push(bio, costs);
            return 1;
        }
        let mut n_new = 0;
        let mut rest = bio;
        // Blocks of a bio with a segment each: both limits are one.
        let is_scattered = bio.segments == bio.len;
        let most = rules.blocks_max.min(if is_scattered { rules.segments_max } else { u32::MAX });
        if self.n_held > 0 {
            let queued = self.queue.back_mut().expect("a held request is queued");
            let last = &queued.bio;
            if continues(last, &rest)
                && last.len + rest.len <= rules.blocks_max
                && last.segments + rest.segments <= rules.segments_max
            {
                return u32::from(queued.merge(&rest));
            }
        }
        while rest.len > 0 {
            let len = rest.len.min(most);
            let last_blocks = self.queue.back().map_or(0, |q| q.bio.len);
            if self.n_held >= rules.n_max || (self.n_held > 0 && last_blocks >= rules.flush_blocks)
            {
                self.flush(costs);
            }
            let segments = if is_scattered { len } else { rest.segments };
            self.push(Bio { len, segments, ..rest }, costs);
            n_new += 1;
            rest.start.0 += len;
            rest.len -= len;
        }
        n_new
    }

    /// CPU time that the next request costs on top.
    pub(crate) fn spend(&mut self, ns: u64) {
        self.held_cpu_ns += ns;
    }

    fn push(&mut self, bio: Bio, costs: &HostCosts) {
        let n_pages = if bio.file == NO_FILE { 0 } else { bio.len };
        let (cpu_ns, made_ns) = (costs.command_ns, self.now_ns);
        self.queue.push_back(Queued { bio, cpu_ns, made_ns, n_pages, others: Vec::new() });
        self.n_held += 1;
        self.held_cpu_ns += costs.request_ns;
    }

    /// The thread will add no more for now: what is held back goes to the driver.
    pub(crate) fn flush(&mut self, costs: &HostCosts) {
        if self.n_held > 0 {
            let first = self.queue.len() - self.n_held;
            self.queue[first].cpu_ns = costs.command_ns + self.held_cpu_ns;
        }
        (self.n_held, self.held_cpu_ns) = (0, 0);
    }

    /// The next request for the driver.
    pub(crate) fn front(&self) -> Option<&Queued> {
        debug_assert_eq!(self.n_held, 0, "a plug is flushed before its requests leave");
        self.queue.front()
    }

    /// The CPU time of the next request was spent.
    pub(crate) fn paid(&mut self) {
        if let Some(first) = self.queue.front_mut() {
            first.cpu_ns = 0;
        }
    }

    /// All requests.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.queue.iter()
    }

    /// Replaces the next request by others, made of parts of it.
    pub(crate) fn replace_front(&mut self, parts: &[Bio]) {
        let Some(front) = self.queue.pop_front() else { return };
        for bio in parts.iter().rev() {
            let n_pages = 0;
            self.queue.push_front(Queued { bio: *bio, n_pages, others: Vec::new(), ..front });
        }
    }

    /// Takes the next request.
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        self.queue.pop_front()
    }
}

fn continues(last: &Bio, next: &Bio) -> bool {
    last.op == next.op
        && last.target == next.target
        && last.class == next.class
        && last.fua == next.fua
        && last.start.0 + last.len == next.start.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: PlugRules =
        PlugRules { blocks_max: 256, segments_max: 128, n_max: 16, flush_blocks: 32 };

    fn bio(start: u32, len: u32) -> Bio {
        Bio {
            op: IoOp::Read,
            start: FsBlock(start),
            len,
            segments: 1,
            class: IoClass::Data,
            ..Bio::flush(Target::Main)
        }
    }

    fn requests(bios: &[Bio]) -> Vec<(u32, u32, u64)> {
        let costs = HostCosts { bio_ns: 1, request_ns: 100, command_ns: 10_000, ..HostCosts::NONE };
        let mut plug = Plug::default();
        let n_new: u32 = bios.iter().map(|b| plug.add(*b, &RULES, &costs)).sum();
        plug.flush(&costs);
        assert_eq!(plug.queue.len(), n_new as usize);
        std::iter::from_fn(|| plug.pop()).map(|q| (q.bio.start.0, q.bio.len, q.cpu_ns)).collect()
    }

    #[test]
    fn neighbours_merge_up_to_the_largest_request() {
        let pages: Vec<Bio> = (0..75).map(|n| bio(n * 4, 4)).collect();
        let made = requests(&pages);
        // The bio that does not fit finds a large request before it, which ends the plug.
        assert_eq!(made, [(0, 256, 10_000 + 100 + 65), (256, 44, 10_000 + 100 + 10)]);
        assert_eq!(
            requests(&[bio(0, 600)]).iter().map(|r| r.1).collect::<Vec<_>>(),
            [256, 256, 88]
        );
    }

    #[test]
    fn blocks_in_memory_of_their_own_make_smaller_requests() {
        let log = Bio { segments: 300, ..bio(0, 300) };
        assert_eq!(requests(&[log]).iter().map(|r| r.1).collect::<Vec<_>>(), [128, 128, 44]);
        let files: Vec<Bio> = (0..130).map(|n| bio(n, 1)).collect();
        assert_eq!(requests(&files).iter().map(|r| r.1).collect::<Vec<_>>(), [128, 2]);
    }

    #[test]
    fn sixteen_requests_are_made_before_the_first_goes() {
        let scattered: Vec<Bio> = (0..20).map(|n| bio(n * 10, 1)).collect();
        let made = requests(&scattered);
        assert_eq!(made.len(), 20);
        assert_eq!(made[0].2, 10_000 + 16 * 100 + 17);
        assert!(made[1..16].iter().all(|r| r.2 == 10_000));
        assert_eq!(made[16].2, 10_000 + 4 * 100 + 3);
    }

    #[test]
    fn a_request_knows_all_files_that_have_pages_in_it() {
        let mut plug = Plug::default();
        let file = |start, file| Bio { op: IoOp::Write, file, ..bio(start, 2) };
        let bios = [file(0, 1), file(2, 1), file(4, 2), file(6, 1), file(8, NO_FILE)];
        let counts = bios.map(|bio| plug.add(bio, &RULES, &HostCosts::NONE));
        assert_eq!(counts, [1, 0, 1, 0, 0]);
        plug.flush(&HostCosts::NONE);
        let made = plug.pop().expect("one request");
        assert_eq!((made.bio.len, made.n_pages), (10, 8));
        assert!(made.files().eq([1, 2]));
    }

    #[test]
    fn a_flush_stands_between() {
        let made = requests(&[bio(0, 1), Bio::flush(Target::Main), bio(1, 1)]);
        assert_eq!(made.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(), [(0, 1), (0, 0), (1, 1)]);
    }
}
