//! The page cache: which pages of which file are in memory, and which of them are dirty.
//!
//! Pages of a file are kept in chunks of 64, each a few bit masks, so that runs of pages
//! cost one step per chunk. Chunks are in one list by last use; clean pages of the chunk
//! that was not used for longest go first. The kernel keeps two lists and ages pages one
//! by one; which pages stay differs only where the working set is near the size of memory.
//!
//! Invariants: a dirty page is present; a fresh page is dirty; totals are the sums of the
//! masks. Cost: a tree lookup per chunk, none for the chunk used last.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Pages in one chunk.
const CHUNK: u32 = 64;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// File it belongs to: an index the owner chooses.
    owner: u32,
    /// Number of the chunk in its file.
    index: u32,
    /// Pages in memory.
    present: u64,
    /// Pages that differ from the device.
    dirty: u64,
    /// Dirty pages whose blocks were never written.
    fresh: u64,
    prev: u32,
    next: u32,
}

/// What the cache knows about one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilePages {
    chunks: BTreeMap<u32, u32>,
    dirty_chunks: BTreeSet<u32>,
    /// Chunk used last, and its slot.
    last: Option<(u32, u32)>,
    /// Dirty pages.
    pub(crate) n_dirty: u32,
}

/// All cached pages.
#[derive(Clone, Debug)]
pub(crate) struct PageCache {
    chunks: Vec<Chunk>,
    unused: Vec<u32>,
    oldest: u32,
    newest: u32,
    n_pages: u64,
    n_dirty: u64,
    limit: u64,
}

/// Bits of the pages of `range` that lie in the chunk `index`.
fn bits(range: &Range<u32>, index: u32) -> u64 {
    let first = index * CHUNK;
    let from = range.start.max(first) - first;
    let to = range.end.min(first.saturating_add(CHUNK)).saturating_sub(first);
    if from >= to {
        return 0;
    }
    let upto = if to == CHUNK { u64::MAX } else { (1 << to) - 1 };
    upto & !((1u64 << from) - 1)
}

fn chunks_of(range: &Range<u32>) -> Range<u32> {
    range.start / CHUNK..range.end.div_ceil(CHUNK)
}

impl PageCache {
    /// An empty cache that keeps at most `limit` clean pages.
    pub(crate) fn new(limit: u64) -> Self {
        let (chunks, unused) = (vec![], vec![]);
        Self { chunks, unused, oldest: NIL, newest: NIL, n_pages: 0, n_dirty: 0, limit }
    }

    /// Pages in memory.
    pub(crate) fn n_pages(&self) -> u64 {
        self.n_pages
    }

    /// Dirty pages.
    pub(crate) fn n_dirty(&self) -> u64 {
        self.n_dirty
    }

    fn slot(&self, file: &mut FilePages, index: u32) -> Option<u32> {
        if let Some((last, slot)) = file.last
            && last == index
        {
            return Some(slot);
        }
        let slot = *file.chunks.get(&index)?;
        file.last = Some((index, slot));
        Some(slot)
    }

    fn slot_or_new(&mut self, file: &mut FilePages, owner: u32, index: u32) -> u32 {
        if let Some(slot) = self.slot(file, index) {
            self.touch(slot);
            return slot;
        }
        let chunk = Chunk { owner, index, prev: NIL, next: NIL, ..Chunk::default() };
        let slot = match self.unused.pop() {
            Some(slot) => slot,
            None => {
                self.chunks.push(chunk);
                self.chunks.len() as u32 - 1
            }
        };
        self.chunks[slot as usize] = chunk;
        self.link(slot);
        file.chunks.insert(index, slot);
        file.last = Some((index, slot));
        slot
    }

    fn link(&mut self, slot: u32) {
        let newest = self.newest;
        let chunk = &mut self.chunks[slot as usize];
        (chunk.prev, chunk.next) = (newest, NIL);
        match newest {
            NIL => self.oldest = slot,
            _ => self.chunks[newest as usize].next = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let Chunk { prev, next, .. } = self.chunks[slot as usize];
        match prev {
            NIL => self.oldest = next,
            _ => self.chunks[prev as usize].next = next,
        }
        match next {
            NIL => self.newest = prev,
            _ => self.chunks[next as usize].prev = prev,
        }
    }

    fn touch(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    /// Whether `page` is in memory, and how many pages from there to `end` are alike.
    pub(crate) fn run(&mut self, file: &mut FilePages, page: u32, end: u32) -> (bool, u32) {
        let mut state = None;
        let mut n = 0;
        for index in chunks_of(&(page..end)) {
            let slot = self.slot(file, index);
            let present = slot.map_or(0, |slot| self.chunks[slot as usize].present);
            let wanted = bits(&(page..end), index);
            let is_present = *state.get_or_insert_with(|| present & lowest(wanted) != 0);
            let unlike = wanted & if is_present { !present } else { present };
            if let Some(slot) = slot.filter(|_| is_present) {
                self.touch(slot);
            }
            if unlike != 0 {
                let before = wanted & (lowest(unlike) - 1);
                return (is_present, n + before.count_ones());
            }
            n += wanted.count_ones();
        }
        (state.unwrap_or(false), n)
    }

    /// Pages are in memory, as the device has them.
    pub(crate) fn fill(&mut self, file: &mut FilePages, owner: u32, range: Range<u32>) {
        for index in chunks_of(&range) {
            let slot = self.slot_or_new(file, owner, index);
            let chunk = &mut self.chunks[slot as usize];
            let new = bits(&range, index) & !chunk.present;
            chunk.present |= new;
            self.n_pages += u64::from(new.count_ones());
        }
    }

    /// Pages are written by a program; `fresh` where their blocks were never written.
    /// How many were clean before.
    pub(crate) fn dirty(
        &mut self,
        file: &mut FilePages,
        owner: u32,
        range: Range<u32>,
        fresh: bool,
    ) -> u32 {
        let mut n = 0;
        for index in chunks_of(&range) {
            let slot = self.slot_or_new(file, owner, index);
            let chunk = &mut self.chunks[slot as usize];
            let wanted = bits(&range, index);
            let new = (wanted & !chunk.present).count_ones();
            let clean = wanted & !chunk.dirty;
            if chunk.dirty == 0 && clean != 0 {
                file.dirty_chunks.insert(index);
            }
            chunk.present |= wanted;
            chunk.dirty |= wanted;
            if fresh {
                chunk.fresh |= wanted;
            }
            self.n_pages += u64::from(new);
            n += clean.count_ones();
        }
        file.n_dirty += n;
        self.n_dirty += u64::from(n);
        n
    }

    /// The first run of dirty pages in `range`, at most `n_max` long.
    pub(crate) fn next_dirty(
        &mut self,
        file: &mut FilePages,
        range: Range<u32>,
        n_max: u32,
    ) -> Option<Range<u32>> {
        let mut found: Option<Range<u32>> = None;
        for index in file.dirty_chunks.range(chunks_of(&range)).copied() {
            let slot = file.chunks[&index];
            let dirty = self.chunks[slot as usize].dirty & bits(&range, index);
            if dirty == 0 {
                if found.is_some() {
                    break;
                }
                continue;
            }
            let first = index * CHUNK;
            let start = dirty.trailing_zeros();
            let len = (dirty >> start).trailing_ones();
            match &mut found {
                None => found = Some(first + start..first + start + len),
                Some(run) if run.end == first && start == 0 => run.end = first + len,
                Some(_) => break,
            }
            if start + len < CHUNK {
                break;
            }
        }
        found.map(|run| run.start..run.end.min(run.start.saturating_add(n_max)))
    }

    /// Whether the block of a dirty page was never written.
    pub(crate) fn is_fresh(&self, file: &mut FilePages, page: u32) -> bool {
        let slot = self.slot(file, page / CHUNK);
        slot.is_some_and(|slot| self.chunks[slot as usize].fresh >> (page % CHUNK) & 1 != 0)
    }

    /// Pages were sent to the device: they are clean. How many were dirty.
    pub(crate) fn clean(&mut self, file: &mut FilePages, range: Range<u32>) -> u32 {
        let (mut n, chunks) = (0, chunks_of(&range));
        let mut from = chunks.start;
        while let Some(index) = file.dirty_chunks.range(from..chunks.end).next().copied() {
            from = index + 1;
            let chunk = &mut self.chunks[file.chunks[&index] as usize];
            let gone = chunk.dirty & bits(&range, index);
            chunk.dirty &= !gone;
            chunk.fresh &= !gone;
            n += gone.count_ones();
            if chunk.dirty == 0 {
                file.dirty_chunks.remove(&index);
            }
        }
        file.n_dirty -= n;
        self.n_dirty -= u64::from(n);
        n
    }

    /// Forgets pages, dirty ones too (truncate, unlink, direct writes).
    pub(crate) fn forget(&mut self, file: &mut FilePages, range: Range<u32>) {
        self.clean(file, range.clone());
        let gone: Vec<(u32, u32)> =
            file.chunks.range(chunks_of(&range)).map(|(index, slot)| (*index, *slot)).collect();
        for (index, slot) in gone {
            let chunk = &mut self.chunks[slot as usize];
            let lost = chunk.present & bits(&range, index);
            chunk.present &= !lost;
            self.n_pages -= u64::from(lost.count_ones());
            if chunk.present == 0 {
                self.release(slot);
                file.chunks.remove(&index);
                file.last = None;
            }
        }
    }

    fn release(&mut self, slot: u32) {
        self.unlink(slot);
        self.unused.push(slot);
    }

    /// Makes room: gives up clean pages, longest unused first, until at most `limit` are
    /// left or `n_max` chunks were looked at. Asks `goes(owner, index, is_empty)` before it
    /// takes pages out of a chunk, with whether none will be left in it.
    pub(crate) fn shrink(
        &mut self,
        limit: u64,
        n_max: usize,
        mut goes: impl FnMut(u32, u32, bool) -> bool,
    ) {
        // Chunks that stay are moved to the end: each is met once.
        let mut left = n_max.min(self.chunks.len() - self.unused.len());
        while self.n_pages > limit && left > 0 {
            left -= 1;
            let slot = self.oldest;
            let chunk = &mut self.chunks[slot as usize];
            let lost = chunk.present & !chunk.dirty;
            let is_empty = chunk.dirty == 0;
            if lost == 0 || !goes(chunk.owner, chunk.index, is_empty) {
                self.touch(slot);
                continue;
            }
            chunk.present = chunk.dirty;
            self.n_pages -= u64::from(lost.count_ones());
            if is_empty {
                self.release(slot);
            } else {
                self.touch(slot);
            }
        }
    }

    /// Whether [`PageCache::shrink`] to the limit of this cache has anything to do.
    pub(crate) fn is_over(&self) -> bool {
        self.n_pages > self.limit && self.n_pages > self.n_dirty
    }

    /// Dirty pages of a file, in order.
    pub(crate) fn dirty_pages<'a>(
        &'a self,
        file: &'a FilePages,
    ) -> impl Iterator<Item = u32> + use<'a> {
        file.chunks.iter().flat_map(|(index, slot)| {
            let dirty = self.chunks[*slot as usize].dirty;
            (0..CHUNK).filter(move |bit| dirty >> bit & 1 != 0).map(move |bit| index * CHUNK + bit)
        })
    }

    /// Checks masks, lists and totals against each other, given all files.
    ///
    /// # Panics
    ///
    /// If they do not agree.
    pub(crate) fn self_check<'a>(&self, files: impl Iterator<Item = (u32, &'a FilePages)>) {
        let (mut n_chunks, mut n_pages, mut n_dirty) = (0, 0u64, 0u64);
        for (owner, file) in files {
            for (index, slot) in &file.chunks {
                let chunk = &self.chunks[*slot as usize];
                assert_eq!((chunk.owner, chunk.index), (owner, *index), "a chunk is its file's");
                assert!(chunk.present != 0, "an empty chunk of slot {owner}");
                assert_eq!(chunk.dirty & !chunk.present, 0, "a dirty page is in memory");
                assert_eq!(chunk.fresh & !chunk.dirty, 0, "a fresh page is dirty");
                assert_eq!(chunk.dirty != 0, file.dirty_chunks.contains(index));
                n_pages += u64::from(chunk.present.count_ones());
                n_dirty += u64::from(chunk.dirty.count_ones());
                n_chunks += 1;
            }
            let n_dirty_chunks = file.dirty_chunks.iter().filter(|i| file.chunks.contains_key(i));
            assert_eq!(n_dirty_chunks.count(), file.dirty_chunks.len());
        }
        assert_eq!((n_pages, n_dirty), (self.n_pages, self.n_dirty), "pages of all files");
        assert_eq!(n_chunks, self.chunks.len() - self.unused.len(), "chunks of all files");
        let (mut n_listed, mut at, mut prev) = (0, self.oldest, NIL);
        while at != NIL {
            assert_eq!(self.chunks[at as usize].prev, prev, "the list of chunks");
            (prev, at, n_listed) = (at, self.chunks[at as usize].next, n_listed + 1);
        }
        assert_eq!((prev, n_listed), (self.newest, n_chunks), "the list of chunks");
    }

    /// Most clean pages kept.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}

impl FilePages {
    /// A chunk was given up.
    pub(crate) fn lost(&mut self, index: u32) {
        self.chunks.remove(&index);
        self.last = None;
    }
}

fn lowest(mask: u64) -> u64 {
    mask & mask.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_cover_what_they_should() {
        assert_eq!(bits(&(0..64), 0), u64::MAX);
        assert_eq!(bits(&(3..5), 0), 0b11000);
        assert_eq!((bits(&(60..70), 0), bits(&(60..70), 1)), (0xf << 60, 0x3f));
        assert_eq!(bits(&(0..64), 1), 0);
    }

    #[derive(Clone, Copy, Default, PartialEq, Debug)]
    struct Page {
        present: bool,
        dirty: bool,
        fresh: bool,
    }

    proptest! {
        /// Two files against a table of pages.
        #[test]
        fn the_masks_agree_with_a_table(
            steps in prop::collection::vec((0u8..6, 0usize..2, 0u32..200, 1u32..150), 1..80)
        ) {
            let mut cache = PageCache::new(150);
            let mut files = [FilePages::default(), FilePages::default()];
            let mut table = [[Page::default(); 400]; 2];
            for (kind, f, at, len) in steps {
                let range = at..at + len;
                let pages = &mut table[f][at as usize..(at + len) as usize];
                match kind {
                    0 => {
                        cache.fill(&mut files[f], f as u32, range);
                        pages.iter_mut().for_each(|p| p.present = true);
                    }
                    1 | 2 => {
                        let n = cache.dirty(&mut files[f], f as u32, range, kind == 1);
                        prop_assert_eq!(n as usize, pages.iter().filter(|p| !p.dirty).count());
                        for p in pages {
                            *p = Page { present: true, dirty: true, fresh: p.fresh || kind == 1 };
                        }
                    }
                    3 => {
                        cache.clean(&mut files[f], range);
                        pages.iter_mut().for_each(|p| (p.dirty, p.fresh) = (false, false));
                    }
                    4 => {
                        cache.forget(&mut files[f], range);
                        pages.iter_mut().for_each(|p| *p = Page::default());
                    }
                    _ => {
                        let limit = u64::from(len);
                        cache.shrink(limit, usize::MAX, |owner, index, is_empty| {
                            if is_empty {
                                files[owner as usize].lost(index);
                            }
                            true
                        });
                        // Which clean pages went is up to the cache; the totals are not.
                        for (f, pages) in table.iter_mut().enumerate() {
                            for (n, p) in (0u32..).zip(pages.iter_mut()) {
                                let (present, _) = cache.run(&mut files[f], n, n + 1);
                                prop_assert!(p.present || !present);
                                prop_assert!(present || !p.dirty);
                                p.present = present;
                            }
                        }
                        prop_assert!(cache.n_pages() <= limit.max(cache.n_dirty()));
                    }
                }
                let all = || table.iter().flatten();
                prop_assert_eq!(cache.n_pages() as usize, all().filter(|p| p.present).count());
                prop_assert_eq!(cache.n_dirty() as usize, all().filter(|p| p.dirty).count());
                for f in 0..2 {
                    let (present, n) = cache.run(&mut files[f], at, 400);
                    let same = table[f][at as usize..]
                        .iter().take_while(|p| p.present == present).count();
                    prop_assert_eq!(n as usize, same);
                    let dirty = cache.next_dirty(&mut files[f], at..400, 1000);
                    let first = (at..400).find(|p| table[f][*p as usize].dirty);
                    let expected = first.map(|first| {
                        let len = table[f][first as usize..].iter().take_while(|p| p.dirty);
                        first..first + len.count() as u32
                    });
                    prop_assert_eq!(dirty, expected);
                    for page in 0..400 {
                        let fresh = cache.is_fresh(&mut files[f], page);
                        prop_assert_eq!(fresh, table[f][page as usize].fresh);
                    }
                }
            }
        }
    }
}
