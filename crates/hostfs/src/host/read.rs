//! Reading: from the page cache, with read-ahead, or past it.

use std::ops::Range;

use super::{Flow, Host};
use crate::application::{Application, Outcome};
use crate::call::Fd;
use crate::data::pages_of;
use crate::inode::PAGE;

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
    pub(super) fn step_read(&mut self, a: u32, read: &mut Read) -> Flow {
        let i = match self.fs.file(read.fd) {
            Ok(file) => file.inode,
            Err(outcome) => return Flow::Done(outcome),
        };
        match read.stage {
            ReadStage::Begin => self.begin_read(a, i, read),
            ReadStage::Page => self.read_page(a, i, read),
            ReadStage::Ahead { first, last } => {
                let end_ns = std::mem::take(&mut self.actors[a as usize].io_end_ns);
                if let Some(file) = self.fs.file_mut(read.fd) {
                    file.ahead.pending.push((first..last, end_ns));
                }
                read.stage = ReadStage::Page;
                Flow::Cpu(0)
            }
            ReadStage::Direct => Flow::Done(Outcome::Done(read.end - read.offset)),
        }
    }

    fn begin_read(&mut self, a: u32, i: u32, read: &mut Read) -> Flow {
        let inode = &self.fs.inodes[i as usize];
        read.end = read.end.min(inode.size);
        if read.at >= read.end {
            return Flow::Done(Outcome::Done(0));
        }
        let is_direct = self.fs.file(read.fd).is_ok_and(|f| f.flags.direct);
        self.fs.note_read(i);
        if !is_direct && self.fs.cfg.read_cache {
            read.stage = ReadStage::Page;
            return Flow::Cpu(0);
        }
        // Straight from the device. Dirty pages go there first.
        let pages = pages_of(read.offset, read.end - read.offset);
        if is_direct && self.fs.inodes[i as usize].pages.n_dirty > 0 {
            let mut bios = vec![];
            let n = self.fs.write_back(i, pages.clone(), u32::MAX, a, |bio| bios.push(bio));
            if n > 0 {
                self.add_all(a, &bios);
                return Flow::Io;
            }
        }
        self.counts.cache_misses += pages.len() as u64;
        self.read_from_device(a, i, pages);
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
        if read.at >= read.end {
            return Flow::Done(Outcome::Done(read.end - read.offset));
        }
        let (page, last) = ((read.at / PAGE) as u32, read.end.div_ceil(PAGE) as u32);
        let inode = &mut self.fs.inodes[i as usize];
        let (is_present, n) = self.fs.cache.run(&mut inode.pages, page, last);
        let n_file = inode.n_pages();
        let max = (self.fs.cfg.readahead_bytes / PAGE) as u32;
        let io_max = self.rules.blocks_max;
        let now_ns = self.now_ns;
        let Some(file) = self.fs.file_mut(read.fd) else { return Flow::Done(Outcome::Invalid) };
        if !is_present {
            let window = file.ahead.miss(page, last - page, max, io_max);
            let window = window.start..window.end.min(n_file);
            self.counts.cache_misses += u64::from(n);
            self.read_missing(a, i, window);
            return Flow::Io;
        }
        let run = page..page + n;
        let ready_ns = file.ahead.ready_ns(&run, now_ns);
        if ready_ns > now_ns {
            return Flow::Until(ready_ns + self.fs.cfg.costs.wake_ns);
        }
        let ahead = file
            .ahead
            .hit(&run, last - page, max, io_max)
            .map(|w| w.start.min(n_file)..w.end.min(n_file));
        if let Some(window) = ahead.filter(|w| !w.is_empty()) {
            read.stage = ReadStage::Ahead { first: window.start, last: window.end };
            self.actors[a as usize].io_end_ns = 0;
            self.read_missing(a, i, window);
            return Flow::Cpu(0);
        }
        file.ahead.read_to(run.end);
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
