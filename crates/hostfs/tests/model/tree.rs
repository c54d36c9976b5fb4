//! A file system as a map: names, sizes, links, and which pages have blocks. Slow, simple,
//! and written from what the calls are documented to do.

use std::collections::{BTreeMap, BTreeSet};

use flashwise_hostfs::{Call, Fd, OpenFlags, Outcome, PathId, Paths};

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Largest file: 2^32 - 2 blocks.
const MAX_SIZE: u64 = (u32::MAX as u64 - 1) * PAGE;
/// Most bytes of one read or write.
const RW_MAX: u64 = 0x7fff_f000;
/// Descriptors are smaller.
const FD_MAX: u32 = 1 << 20;

/// A file or directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Names of a directory; `None` for a file.
    entries: Option<BTreeMap<String, usize>>,
    pub(crate) size: u64,
    pub(crate) links: u32,
    opens: u32,
    may_be_linked: bool,
    /// Pages that hold data, and when the last write of each began \[ns\].
    pub(crate) data: BTreeMap<u32, u64>,
    /// Pages that were reserved and hold none.
    pub(crate) reserved: BTreeSet<u32>,
    /// A call failed half-way: which pages have blocks is not known.
    pub(crate) is_fuzzy: bool,
}

impl Node {
    fn cut(&mut self, first: u32, end: u32) {
        self.data.retain(|page, _| !(first..end).contains(page));
        self.reserved.retain(|page| !(first..end).contains(page));
    }

    fn truncate(&mut self, size: u64) {
        if size <= self.size {
            self.cut(size.div_ceil(PAGE) as u32, u32::MAX);
        }
        self.size = size;
    }

    fn wrote(&mut self, offset: u64, len: u64, start_ns: u64) {
        for page in offset / PAGE..(offset + len).div_ceil(PAGE) {
            self.data.insert(page as u32, start_ns);
            self.reserved.remove(&(page as u32));
        }
        self.size = self.size.max(offset + len);
    }
}

/// The whole.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    pub(crate) files: BTreeMap<u32, (usize, OpenFlags)>,
}

const ROOT: usize = 0;

type Found<T> = Result<T, Outcome>;

impl Tree {
    pub(crate) fn new() -> Self {
        let root = Node { entries: Some(BTreeMap::new()), links: 2, ..Node::default() };
        Self { nodes: vec![root], files: BTreeMap::new() }
    }

    pub(crate) fn resolve(&self, path: &str) -> Found<usize> {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let entries = self.nodes[at].entries.as_ref().ok_or(Outcome::NotFound)?;
            at = *entries.get(name).ok_or(Outcome::NotFound)?;
        }
        Ok(at)
    }

    fn split(path: &str) -> (&str, &str) {
        path.rsplit_once('/').expect("paths are absolute")
    }

    fn parent(&self, path: &str) -> Found<usize> {
        let dir = self.resolve(Self::split(path).0)?;
        let is_dir = self.nodes[dir].entries.is_some();
        if is_dir && path != "/" { Ok(dir) } else { Err(Outcome::Invalid) }
    }

    fn enter(&mut self, path: &str, node: usize) {
        let dir = self.parent(path).expect("it was there");
        let entries = self.nodes[dir].entries.as_mut().expect("it is a directory");
        entries.insert(Self::split(path).1.to_owned(), node);
    }

    fn leave(&mut self, path: &str) {
        let dir = self.parent(path).expect("it was there");
        let entries = self.nodes[dir].entries.as_mut().expect("it is a directory");
        entries.remove(Self::split(path).1);
    }

    fn is_dir(&self, node: usize) -> bool {
        self.nodes[node].entries.is_some()
    }

    fn is_empty(&self, node: usize) -> bool {
        self.nodes[node].entries.as_ref().is_some_and(BTreeMap::is_empty)
    }

    pub(crate) fn file(&self, fd: Fd) -> Found<(usize, OpenFlags)> {
        self.files.get(&fd.0).copied().ok_or(Outcome::Invalid)
    }

    fn is_free(&self, fd: Fd) -> bool {
        fd.0 < FD_MAX && !self.files.contains_key(&fd.0)
    }

    /// Files and directories with a name, by path.
    pub(crate) fn all(&self) -> Vec<(String, usize)> {
        let mut found = vec![];
        let mut todo = vec![(String::new(), ROOT)];
        while let Some((path, node)) = todo.pop() {
            for (name, child) in self.nodes[node].entries.iter().flatten() {
                let path = format!("{path}/{name}");
                found.push((path.clone(), *child));
                todo.push((path, *child));
            }
        }
        found
    }

    /// Pages that living files can have at most.
    pub(crate) fn n_pages(&self) -> u64 {
        let living = self.nodes.iter().filter(|node| node.links + node.opens > 0);
        living
            .map(|node| {
                let sure = (node.data.len() + node.reserved.len()) as u64;
                if node.is_fuzzy { u64::MAX / 1024 } else { sure }
            })
            .sum()
    }

    pub(crate) fn is_directory_path(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|node| self.is_dir(node))
    }

    /// How a call has to end if there is room.
    pub(crate) fn expect(&self, paths: &Paths, call: &Call) -> Outcome {
        self.check(paths, call).map_or_else(|outcome| outcome, Outcome::Done)
    }

    fn check(&self, paths: &Paths, call: &Call) -> Found<u64> {
        let path = |id: PathId| paths.path(id);
        match *call {
            Call::Mkdir { path: p } => {
                if self.resolve(path(p)).is_ok() {
                    return Err(Outcome::Exists);
                }
                self.parent(path(p)).map(|_| 0)
            }
            Call::Rmdir { path: p } => {
                let node = self.resolve(path(p))?;
                match self.is_dir(node) {
                    false => Err(Outcome::Invalid),
                    true if node == ROOT || !self.is_empty(node) => Err(Outcome::IsDirectory),
                    true => Ok(0),
                }
            }
            Call::Open { path: p, fd, flags } => {
                if !self.is_free(fd) {
                    return Err(Outcome::Invalid);
                }
                match self.resolve(path(p)) {
                    Ok(_) if flags.create && flags.exclusive => Err(Outcome::Exists),
                    Ok(node) if self.is_dir(node) => Err(Outcome::IsDirectory),
                    Ok(_) => Ok(0),
                    Err(_) if !flags.create => Err(Outcome::NotFound),
                    Err(_) => self.parent(path(p)).map(|_| 0),
                }
            }
            Call::OpenTemporary { dir, fd, .. } => {
                let node = self.resolve(path(dir))?;
                if self.is_dir(node) && self.is_free(fd) { Ok(0) } else { Err(Outcome::Invalid) }
            }
            Call::Close { fd } | Call::Fsync { fd } | Call::Fdatasync { fd } => {
                self.file(fd).map(|_| 0)
            }
            Call::Read { fd, offset, len } => {
                let (node, flags) = self.file(fd)?;
                let len = len.min(RW_MAX);
                check_direct(flags, offset, len)?;
                Ok(self.nodes[node].size.saturating_sub(offset).min(len))
            }
            Call::Write { fd, offset, len } => self.check_write(fd, Some(offset), len),
            Call::Append { fd, len } => self.check_write(fd, None, len),
            Call::Sync | Call::Trim => Ok(0),
            Call::Truncate { fd, size } => {
                self.file(fd)?;
                if size > MAX_SIZE { Err(Outcome::Invalid) } else { Ok(0) }
            }
            Call::Fallocate { fd, offset, len, .. } => {
                self.file(fd)?;
                let end = offset.checked_add(len).filter(|end| len > 0 && *end <= MAX_SIZE);
                end.map(|_| 0).ok_or(Outcome::Invalid)
            }
            Call::PunchHole { fd, offset, len } => {
                self.file(fd)?;
                let end = offset.checked_add(len).filter(|_| len > 0);
                end.map(|_| 0).ok_or(Outcome::Invalid)
            }
            Call::Unlink { path: p } => {
                let node = self.resolve(path(p))?;
                if self.is_dir(node) { Err(Outcome::IsDirectory) } else { Ok(0) }
            }
            Call::Rename { from, to } => self.check_rename(path(from), path(to)),
            Call::Link { from, to } => self.check_link(self.resolve(path(from))?, path(to)),
            Call::LinkFd { fd, to } => self.check_link(self.file(fd)?.0, path(to)),
            Call::Stat { path: p } => self.resolve(path(p)).map(|node| self.nodes[node].size),
        }
    }

    fn check_write(&self, fd: Fd, offset: Option<u64>, len: u64) -> Found<u64> {
        let (node, flags) = self.file(fd)?;
        let len = len.min(RW_MAX);
        let offset = offset.unwrap_or(self.nodes[node].size);
        offset.checked_add(len).filter(|end| *end <= MAX_SIZE).ok_or(Outcome::Invalid)?;
        check_direct(flags, offset, len).map(|()| len)
    }

    fn check_link(&self, node: usize, to: &str) -> Found<u64> {
        if self.is_dir(node) {
            return Err(Outcome::IsDirectory);
        }
        if self.resolve(to).is_ok() {
            return Err(Outcome::Exists);
        }
        self.parent(to)?;
        let is_alive = self.nodes[node].links > 0 || self.nodes[node].may_be_linked;
        if is_alive { Ok(0) } else { Err(Outcome::NotFound) }
    }

    fn check_rename(&self, from: &str, to: &str) -> Found<u64> {
        let node = self.resolve(from)?;
        if from == to {
            return Ok(0);
        }
        self.parent(from)?;
        self.parent(to)?;
        let mut above = to;
        while self.is_dir(node) && !above.is_empty() && above != "/" {
            if self.resolve(above) == Ok(node) {
                return Err(Outcome::Invalid);
            }
            above = Self::split(above).0;
        }
        match self.resolve(to) {
            Err(_) => Ok(0),
            Ok(old) if old == node => Ok(0),
            Ok(old) => match (self.is_dir(node), self.is_dir(old)) {
                (false, false) => Ok(0),
                (true, true) if self.is_empty(old) => Ok(0),
                _ => Err(Outcome::IsDirectory),
            },
        }
    }

    /// A call ended like this; it began at `start_ns`.
    pub(crate) fn apply(&mut self, paths: &Paths, call: &Call, outcome: Outcome, start_ns: u64) {
        let Outcome::Done(n) = outcome else {
            self.failed(call, outcome);
            return;
        };
        let path = |id: PathId| paths.path(id).to_owned();
        match *call {
            Call::Mkdir { path: p } => {
                let entries = Some(BTreeMap::new());
                let node = self.add(Node { entries, links: 2, ..Node::default() });
                self.enter(&path(p), node);
            }
            Call::Rmdir { path: p } => {
                let node = self.resolve(&path(p)).expect("it was there");
                self.leave(&path(p));
                self.nodes[node].links = 0;
            }
            Call::Open { path: p, fd, flags } => {
                let node = match self.resolve(&path(p)) {
                    Ok(node) => {
                        if flags.truncate {
                            self.nodes[node].truncate(0);
                        }
                        node
                    }
                    Err(_) => {
                        let node = self.add(Node { links: 1, ..Node::default() });
                        self.enter(&path(p), node);
                        node
                    }
                };
                self.nodes[node].opens += 1;
                self.files.insert(fd.0, (node, flags));
            }
            Call::OpenTemporary { fd, flags, .. } => {
                let node = self.add(Node { opens: 1, may_be_linked: true, ..Node::default() });
                self.files.insert(fd.0, (node, flags));
            }
            Call::Close { fd } => {
                let (node, _) = self.files.remove(&fd.0).expect("it was open");
                self.nodes[node].opens -= 1;
            }
            Call::Write { fd, offset, .. } if n > 0 => {
                let (node, _) = self.file(fd).expect("it was open");
                self.nodes[node].wrote(offset, n, start_ns);
            }
            Call::Append { fd, .. } if n > 0 => {
                let (node, _) = self.file(fd).expect("it was open");
                let offset = self.nodes[node].size;
                self.nodes[node].wrote(offset, n, start_ns);
            }
            Call::Truncate { fd, size } => {
                let (node, _) = self.file(fd).expect("it was open");
                self.nodes[node].truncate(size);
            }
            Call::Fallocate { fd, offset, len, keep_size } => {
                let (node, _) = self.file(fd).expect("it was open");
                let node = &mut self.nodes[node];
                for page in (offset / PAGE) as u32..(offset + len).div_ceil(PAGE) as u32 {
                    if !node.data.contains_key(&page) {
                        node.reserved.insert(page);
                    }
                }
                node.size = if keep_size { node.size } else { node.size.max(offset + len) };
            }
            Call::PunchHole { fd, offset, len } => {
                let (node, _) = self.file(fd).expect("it was open");
                let node = &mut self.nodes[node];
                let end = (offset + len).min(node.size);
                let last = if end == node.size { end.div_ceil(PAGE) } else { end / PAGE };
                if offset < end {
                    node.cut(offset.div_ceil(PAGE) as u32, last as u32);
                }
            }
            Call::Unlink { path: p } => self.unlink(&path(p)),
            Call::Rename { from, to } => self.rename(&path(from), &path(to)),
            Call::Link { from, to } => {
                let node = self.resolve(&path(from)).expect("it was there");
                self.link(node, &path(to));
            }
            Call::LinkFd { fd, to } => {
                let (node, _) = self.file(fd).expect("it was open");
                self.link(node, &path(to));
            }
            _ => {}
        }
    }

    fn failed(&mut self, call: &Call, outcome: Outcome) {
        if outcome != Outcome::NoSpace {
            return;
        }
        // What was reserved before room ran out stays; so does what a direct write mapped
        // inside the file.
        let fd = match *call {
            Call::Fallocate { fd, .. } | Call::Write { fd, .. } | Call::Append { fd, .. } => fd,
            _ => return,
        };
        if let Ok((node, flags)) = self.file(fd)
            && (flags.direct || matches!(call, Call::Fallocate { .. }))
        {
            self.nodes[node].is_fuzzy = true;
        }
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn link(&mut self, node: usize, to: &str) {
        self.nodes[node].links += 1;
        self.nodes[node].may_be_linked = false;
        self.enter(to, node);
    }

    fn unlink(&mut self, path: &str) {
        let node = self.resolve(path).expect("it was there");
        self.leave(path);
        self.nodes[node].links -= 1;
    }

    fn rename(&mut self, from: &str, to: &str) {
        let node = self.resolve(from).expect("it was there");
        match self.resolve(to) {
            Ok(old) if old == node => return,
            Ok(old) if self.is_dir(old) => {
                self.leave(to);
                self.nodes[old].links = 0;
            }
            Ok(_) => self.unlink(to),
            Err(_) => {}
        }
        self.leave(from);
        self.enter(to, node);
    }
}

fn check_direct(flags: OpenFlags, offset: u64, len: u64) -> Found<()> {
    let is_aligned = offset.is_multiple_of(512) && len.is_multiple_of(512);
    if flags.direct && !is_aligned { Err(Outcome::Invalid) } else { Ok(()) }
}
