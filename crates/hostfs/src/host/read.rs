//! Reading: from the page cache, with read-ahead, or past it.

use std::ops::Range;

use super::{Flow, Host};
use crate::application::{Application, Outcome};
use crate::call::{Fd, OpenFlags};
use crate::data::pages_of;
use crate::inode::{OpenFile, PAGE, ReadAhead};

/// Pages looked at in one step.
const STEP_PAGES: u32 = 1024;

/// Where a read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) fd: Fd,
    /// First byte.
    pub(super) offset: u64,
    /// Byte after the last; cut to the size of the file when it begins.
    pub(super) end: u64,
    /// Bytes copied so far lie before this one.
    pub(super) at: u64,
    /// Pages before this one were read for it, so they are there even if memory is so short
    /// that they went again.
    pub(super) got: u32,
    pub(super) stage: ReadStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadStage {
    /// Begin.
    Begin,
    /// Go on at `at`.
    Page,
    /// Pages were read ahead: note when they come.
    Ahead { first: u32, last: u32 },
    /// All was asked for from the device.
    Direct,
}

impl<A: Application> Host<A> {
    pub(super) fn step_read(
        &mut self,
        a: u32,
        read: &mut Read,
        file: Option<(u32, OpenFlags)>,
    ) -> Flow {
        let (i, flags) = file.expect("a read has its file");
        match read.stage {
            ReadStage::Begin => self.begin_read(a, i, flags, read),
            ReadStage::Page => self.read_page(a, i, read),
            ReadStage::Ahead { first, last } => {
                let end_ns = std::mem::take(&mut self.actors[a as usize].io_end_ns);
                if let Some(file) = self.read_file(i, read.fd) {
                    file.ahead.pending.push((first..last, end_ns));
                }
                read.stage = ReadStage::Page;
                Flow::Cpu(0)
            }
            ReadStage::Direct => {
                self.direct_ended(file);
                Flow::Done(Outcome::Done(read.end - read.offset))
            }
        }
    }

    /// The open file of a read, unless it was closed meanwhile.
    fn read_file(&mut self, i: u32, fd: Fd) -> Option<&mut OpenFile> {
        self.fs.file_mut(fd).filter(|file| file.inode == i)
    }

    fn begin_read(&mut self, a: u32, i: u32, flags: OpenFlags, read: &mut Read) -> Flow {
        read.end = read.end.min(self.fs.inodes[i as usize].size);
        if read.at >= read.end {
            return Flow::Done(Outcome::Done(0));
        }
        self.fs.note_read(i);
        if !flags.direct && self.fs.cfg.read_cache {
            read.stage = ReadStage::Page;
            return Flow::Cpu(0);
        }
        // Straight from the device. Dirty pages go there first, or are read where they are.
        let pages = pages_of(read.offset, read.end - read.offset);
        let wait = match flags.direct {
            true => self.settle_pages(a, i, pages.clone()),
            false => self.wait_writeback(a, i),
        };
        if let Some(flow) = wait {
            return flow;
        }
        let mut at = pages.start;
        while at < pages.end {
            let dirty = self.fs.next_dirty(i, at..pages.end).unwrap_or(pages.end..pages.end);
            self.counts.cache_misses += u64::from(dirty.start - at);
            self.read_from_device(a, i, at..dirty.start);
            at = dirty.end;
        }
        self.fs.inodes[i as usize].n_direct += 1;
        read.stage = ReadStage::Direct;
        Flow::Io
    }

    fn read_from_device(&mut self, a: u32, i: u32, pages: Range<u32>) {
        let mut bios = vec![];
        self.fs.read_bios(i, pages, |bio| bios.push(bio));
        let map_ns = self.fs.cfg.costs.map_ns;
        for bio in bios {
            self.actors[a as usize].plug.spend(map_ns);
            self.add(a, bio);
        }
    }

    fn read_page(&mut self, a: u32, i: u32, read: &mut Read) -> Flow {
        // It may have been cut meanwhile.
        read.end = read.end.min(self.fs.inodes[i as usize].size).max(read.offset);
        if read.at >= read.end {
            return Flow::Done(Outcome::Done(read.end - read.offset));
        }
        let (page, last) = ((read.at / PAGE) as u32, read.end.div_ceil(PAGE) as u32);
        let n_file = self.fs.inodes[i as usize].n_pages();
        let max = (self.fs.cfg.readahead_bytes / PAGE) as u32;
        let (io_max, now_ns) = (self.rules.blocks_max, self.now_ns);
        let (is_present, n) = if page < read.got {
            (true, read.got.min(last) - page)
        } else {
            let inode = &mut self.fs.inodes[i as usize];
            self.fs.cache.run(&mut inode.pages, page, last.min(page.saturating_add(STEP_PAGES)))
        };
        let mut closed = ReadAhead::default();
        let ahead = match self.read_file(i, read.fd) {
            Some(file) => &mut file.ahead,
            None => &mut closed,
        };
        if !is_present {
            let window = ahead.miss(page, last - page, max, io_max);
            let window = window.start..window.end.min(n_file);
            read.got = window.end.max(page + 1);
            self.counts.cache_misses += window.len().min(n as usize) as u64;
            self.read_missing(a, i, window);
            return Flow::Io;
        }
        let run = page..page + n;
        let ready_ns = ahead.ready_ns(&run, now_ns);
        if ready_ns > now_ns {
            return Flow::Until(ready_ns + self.fs.cfg.costs.wake_ns);
        }
        let window = ahead
            .hit(&run, last - page, max, io_max)
            .map(|w| w.start.min(n_file)..w.end.min(n_file));
        if let Some(window) = window.filter(|w| !w.is_empty()) {
            read.stage = ReadStage::Ahead { first: window.start, last: window.end };
            self.actors[a as usize].io_end_ns = 0;
            self.read_missing(a, i, window);
            return Flow::Cpu(0);
        }
        ahead.read_to(run.end);
        self.counts.cache_hits += u64::from(n);
        read.at = u64::from(run.end) * PAGE;
        Flow::Cpu(u64::from(n) * self.fs.cfg.costs.page_ns)
    }

    /// Reads those pages of a window that are not in memory.
    fn read_missing(&mut self, a: u32, i: u32, window: Range<u32>) {
        let mut page = window.start;
        while page < window.end {
            let inode = &mut self.fs.inodes[i as usize];
            let (is_present, n) = self.fs.cache.run(&mut inode.pages, page, window.end);
            if !is_present {
                self.read_from_device(a, i, page..page + n);
                self.fs.cached(i, page..page + n);
            }
            page += n.max(1);
        }
    }
}
