//! Short, deterministic pieces of work to compare file systems by, one thread each.
//!
//! Each repeats one operation that programs are known for (append to a log and make it
//! durable, replace a file as editors do, a database transaction), so that figures can be
//! read per operation. They are applications like any other: the real file system and a
//! model carry out the very same calls.
//!
//! Sizes are ours, small enough that a script takes seconds and a journal of 16 MiB or
//! more does not always wrap. No I/O; making one costs some hundred kilobytes of calls.

use flashwise_hostfs::{Action, Application, Call, Fd, OpId, OpenFlags, Outcome, PathId, Paths};

/// 4 KiB, a block of the file system and of most databases \[bytes\].
const BLOCK: u64 = 4096;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes per call where a file is written or read from one end to the other; the size
/// `cp` of GNU coreutils uses is of this order.
const CHUNK: u64 = 256 * KIB;

/// A thing a script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a call.
    Call(Call),
    /// Wait for a while of this many ns.
    Sleep(u64),
}

/// A list of calls, as an application of one thread.
#[derive(Clone, Debug)]
pub struct Script {
    name: &'static str,
    about: &'static str,
    n_ops: u64,
    op_names: Vec<String>,
    paths: Paths,
    prepare: Vec<Call>,
    steps: Vec<Step>,
    prepared: usize,
    done: usize,
    failed: Vec<(Call, Outcome)>,
}

/// All scripts by name, in the order of tables.
pub const NAMES: [&str; 31] = [
    "create",
    "create-fsync",
    "append-fsync",
    "append-fdatasync",
    "overwrite-fsync",
    "overwrite-fdatasync",
    "overwrite-fsync-paced",
    "overwrite-fdatasync-paced",
    "overwrite-dsync",
    "overwrite-direct",
    "rename-replace",
    "delete",
    "mkdir",
    "append-four-extents",
    "append-two",
    "append-two-buffered",
    "truncate-append",
    "sequential",
    "random-overwrite",
    "sqlite-like",
    "tmpfile",
    "tmpfile-drop",
    "fallocate-fill",
    "punch-hole",
    "writeback",
    "delete-trim",
    "read-sequential",
    "read-random",
    "read-small",
    "read-direct",
    "stat-cold",
];

/// The script of a name of [`NAMES`].
pub fn script(name: &str) -> Option<Script> {
    let name = NAMES.into_iter().find(|known| *known == name)?;
    let mut s = Script {
        name,
        about: "",
        n_ops: 0,
        op_names: vec![name.to_owned()],
        paths: Paths::new(),
        prepare: Vec::new(),
        steps: Vec::new(),
        prepared: 0,
        done: 0,
        failed: Vec::new(),
    };
    let dir = s.paths.intern("/d");
    s.prepare.push(Call::Mkdir { path: dir });
    (s.about, s.n_ops) = match name {
        "create" => s.create(false),
        "create-fsync" => s.create(true),
        "append-fsync" => s.append(Call::Fsync { fd: A }),
        "append-fdatasync" => s.append(Call::Fdatasync { fd: A }),
        "overwrite-fsync" => s.overwrite(OpenFlags::PLAIN, Some(Call::Fsync { fd: A })),
        "overwrite-fdatasync" => s.overwrite(OpenFlags::PLAIN, Some(Call::Fdatasync { fd: A })),
        "overwrite-fsync-paced" => s.overwrite_paced(Call::Fsync { fd: A }),
        "overwrite-fdatasync-paced" => s.overwrite_paced(Call::Fdatasync { fd: A }),
        "overwrite-dsync" => s.overwrite(OpenFlags::DSYNC, None),
        "overwrite-direct" => s.overwrite(OpenFlags::DIRECT, None),
        "rename-replace" => s.rename_replace(),
        "delete" => s.delete(false),
        "delete-trim" => s.delete(true),
        "mkdir" => s.mkdir(),
        "append-four-extents" => s.append_four_extents(),
        "append-two" => s.append_two(true),
        "append-two-buffered" => s.append_two(false),
        "truncate-append" => s.truncate_append(),
        "sequential" => s.sequential(),
        "random-overwrite" => s.random_overwrite(),
        "sqlite-like" => s.sqlite_like(),
        "tmpfile" => s.tmpfile(true),
        "tmpfile-drop" => s.tmpfile(false),
        "fallocate-fill" => s.fallocate_fill(),
        "punch-hole" => s.punch_hole(),
        "writeback" => s.writeback(),
        "read-sequential" => s.read_sequential(),
        "read-random" => s.read_random(),
        "read-small" => s.read_small(),
        "read-direct" => s.read_direct(),
        "stat-cold" => s.stat_cold(),
        _ => return None,
    };
    Some(s)
}

const A: Fd = Fd(0);
const B: Fd = Fd(1);

impl Script {
    /// Its name in [`NAMES`].
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What one operation is.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Operations, by which figures are divided.
    pub fn n_ops(&self) -> u64 {
        self.n_ops
    }

    /// Calls that prepare files.
    pub fn prepare_calls(&self) -> &[Call] {
        &self.prepare
    }

    /// What is measured.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Calls that did not end well. None is expected to fail.
    pub fn failed(&self) -> &[(Call, Outcome)] {
        &self.failed
    }

    fn call(&mut self, call: Call) {
        self.steps.push(Step::Call(call));
    }

    fn open(&mut self, path: PathId, fd: Fd, flags: OpenFlags) {
        self.call(Call::Open { path, fd, flags });
    }

    fn file(&mut self, i: u64) -> PathId {
        self.paths.intern(&format!("/d/f{i:04}"))
    }

    /// Prepares a file of `len` bytes.
    fn prepare_file(&mut self, path: PathId, len: u64) {
        self.prepare.push(Call::Open { path, fd: A, flags: OpenFlags::CREATE });
        for offset in (0..len).step_by(CHUNK as usize) {
            let len = CHUNK.min(len - offset);
            self.prepare.push(Call::Write { fd: A, offset, len });
        }
        self.prepare.push(Call::Close { fd: A });
    }

    fn create(&mut self, fsync: bool) -> (&'static str, u64) {
        for i in 0..1000 {
            let path = self.file(i);
            self.open(path, A, OpenFlags::CREATE);
            self.call(Call::Write { fd: A, offset: 0, len: BLOCK });
            if fsync {
                self.call(Call::Fsync { fd: A });
            }
            self.call(Call::Close { fd: A });
        }
        self.call(Call::Sync);
        if fsync {
            ("make a file of 4 KiB, fsync it, close it", 1000)
        } else {
            ("make a file of 4 KiB, close it; sync at the end", 1000)
        }
    }

    fn append(&mut self, durable: Call) -> (&'static str, u64) {
        let path = self.file(0);
        self.open(path, A, OpenFlags::CREATE);
        for _ in 0..1000 {
            self.call(Call::Append { fd: A, len: BLOCK });
            self.call(durable);
        }
        self.call(Call::Close { fd: A });
        ("append 4 KiB to one file and make it durable", 1000)
    }

    /// Four extents are what an inode holds without a tree. Source: `i_block` of 60 bytes,
    /// 12 of them header, 12 per extent ("The Contents of inode.i_block" in the kernel's
    /// ext4 documentation).
    fn append_four_extents(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, BLOCK);
        self.prepare.push(Call::Open { path, fd: A, flags: OpenFlags::PLAIN });
        for hole in 1..4 {
            self.prepare.push(Call::Write { fd: A, offset: hole * MIB, len: BLOCK });
        }
        self.prepare.push(Call::Close { fd: A });
        self.open(path, A, OpenFlags::PLAIN);
        for _ in 0..1000 {
            self.call(Call::Append { fd: A, len: BLOCK });
            self.call(Call::Fsync { fd: A });
        }
        self.call(Call::Close { fd: A });
        ("append 4 KiB to a file of four extents and make it durable", 1000)
    }

    fn overwrite(&mut self, flags: OpenFlags, durable: Option<Call>) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 1000 * BLOCK);
        self.open(path, A, flags);
        for i in 0..1000 {
            self.call(Call::Write { fd: A, offset: i * BLOCK, len: BLOCK });
            self.steps.extend(durable.map(Step::Call));
        }
        self.call(Call::Close { fd: A });
        ("overwrite the next 4 KiB of a file of 4 MB", 1000)
    }

    /// Timestamps of files come from a clock that ticks each 1 to 10 ms (`CONFIG_HZ` 1000 to
    /// 100). A write in the same tick as the last leaves the inode clean, so what an
    /// unpaced overwrite costs depends on how fast the machine is.
    fn overwrite_paced(&mut self, durable: Call) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 200 * BLOCK);
        self.open(path, A, OpenFlags::PLAIN);
        for i in 0..200 {
            self.steps.push(Step::Sleep(12_000_000));
            self.call(Call::Write { fd: A, offset: i * BLOCK, len: BLOCK });
            self.call(durable);
        }
        self.call(Call::Close { fd: A });
        ("12 ms after the last, overwrite the next 4 KiB of a file", 200)
    }

    fn rename_replace(&mut self) -> (&'static str, u64) {
        let (path, tmp) = (self.file(0), self.paths.intern("/d/f0000.tmp"));
        self.prepare_file(path, 2 * BLOCK);
        for _ in 0..300 {
            self.open(tmp, A, OpenFlags::CREATE);
            self.call(Call::Write { fd: A, offset: 0, len: 2 * BLOCK });
            self.call(Call::Fsync { fd: A });
            self.call(Call::Close { fd: A });
            self.call(Call::Rename { from: tmp, to: path });
        }
        ("write 8 KiB beside a file, fsync it, rename it over the file", 300)
    }

    fn delete(&mut self, trim: bool) -> (&'static str, u64) {
        for i in 0..1000 {
            let path = self.file(i);
            self.prepare_file(path, 2 * BLOCK);
        }
        for i in 0..1000 {
            let path = self.file(i);
            self.call(Call::Unlink { path });
        }
        self.call(Call::Sync);
        if trim {
            self.call(Call::Trim);
            ("delete a file of 8 KiB; sync and trim at the end", 1000)
        } else {
            ("delete a file of 8 KiB; sync at the end", 1000)
        }
    }

    fn mkdir(&mut self) -> (&'static str, u64) {
        for i in 0..1000 {
            let path = self.file(i);
            self.call(Call::Mkdir { path });
        }
        self.call(Call::Sync);
        ("make a directory in a directory; sync at the end", 1000)
    }

    fn append_two(&mut self, durable: bool) -> (&'static str, u64) {
        let (a, b) = (self.file(0), self.file(1));
        self.open(a, A, OpenFlags::CREATE);
        self.open(b, B, OpenFlags::CREATE);
        for _ in 0..250 {
            for fd in [A, B] {
                self.call(Call::Append { fd, len: 16 * KIB });
                if durable {
                    self.call(Call::Fdatasync { fd });
                }
            }
        }
        self.call(Call::Close { fd: A });
        self.call(Call::Close { fd: B });
        if durable {
            ("append 16 KiB to one of two files in turn, fdatasync it", 500)
        } else {
            ("append 16 KiB to one of two files in turn", 500)
        }
    }

    fn truncate_append(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 16 * KIB);
        self.open(path, A, OpenFlags::PLAIN);
        for _ in 0..500 {
            self.call(Call::Truncate { fd: A, size: 0 });
            self.call(Call::Append { fd: A, len: 16 * KIB });
            self.call(Call::Fdatasync { fd: A });
        }
        self.call(Call::Close { fd: A });
        ("cut a file to nothing, append 16 KiB, fdatasync it", 500)
    }

    fn sequential(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.open(path, A, OpenFlags::CREATE);
        for offset in (0..256 * MIB).step_by(CHUNK as usize) {
            self.call(Call::Write { fd: A, offset, len: CHUNK });
        }
        self.call(Call::Fsync { fd: A });
        self.call(Call::Close { fd: A });
        ("write 1 MiB of a new file of 256 MiB; fsync at the end", 256)
    }

    fn random_overwrite(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 64 * MIB);
        self.open(path, A, OpenFlags::PLAIN);
        let mut random = SplitMix(1);
        for i in 0..4096 {
            let offset = random.below(64 * MIB / BLOCK) * BLOCK;
            self.call(Call::Write { fd: A, offset, len: BLOCK });
            if i % 64 == 63 {
                self.call(Call::Fsync { fd: A });
            }
        }
        self.call(Call::Close { fd: A });
        ("overwrite a random 4 KiB of 64 MiB; fsync after each 64", 4096)
    }

    /// A rollback journal of three pages: 512 bytes of header padded to a sector, then per
    /// page its number, contents and a checksum. Source: "Database File Format", The
    /// Rollback Journal, sqlite.org/fileformat.html. The sync of the directory is left out.
    fn sqlite_like(&mut self) -> (&'static str, u64) {
        let (db, journal) = (self.paths.intern("/d/a.db"), self.paths.intern("/d/a.db-journal"));
        self.prepare_file(db, 4 * MIB);
        self.open(db, A, OpenFlags::PLAIN);
        let mut random = SplitMix(2);
        for _ in 0..200 {
            self.open(journal, B, OpenFlags::CREATE);
            self.call(Call::Write { fd: B, offset: 0, len: 512 });
            for page in 0..3 {
                let len = BLOCK + 8;
                self.call(Call::Write { fd: B, offset: 512 + page * len, len });
            }
            self.call(Call::Fsync { fd: B });
            for _ in 0..3 {
                let offset = random.below(4 * MIB / BLOCK) * BLOCK;
                self.call(Call::Write { fd: A, offset, len: BLOCK });
            }
            self.call(Call::Fsync { fd: A });
            self.call(Call::Close { fd: B });
            self.call(Call::Unlink { path: journal });
        }
        self.call(Call::Close { fd: A });
        ("transaction of 3 pages of 4 KiB with a rollback journal", 200)
    }

    fn tmpfile(&mut self, keep: bool) -> (&'static str, u64) {
        let dir = self.paths.intern("/d");
        for i in 0..500 {
            self.call(Call::OpenTemporary { dir, fd: A, flags: OpenFlags::PLAIN });
            self.call(Call::Write { fd: A, offset: 0, len: 16 * KIB });
            if keep {
                let to = self.file(i);
                self.call(Call::Fsync { fd: A });
                self.call(Call::LinkFd { fd: A, to });
            }
            self.call(Call::Close { fd: A });
        }
        if keep {
            ("write 16 KiB to a file without a name, fsync it, name it", 500)
        } else {
            ("write 16 KiB to a file without a name, close it", 500)
        }
    }

    fn fallocate_fill(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.open(path, A, OpenFlags::CREATE);
        self.call(Call::Fallocate { fd: A, offset: 0, len: 64 * MIB, keep_size: false });
        for i in 0..1024 {
            self.call(Call::Write { fd: A, offset: i * 64 * KIB, len: 64 * KIB });
            self.call(Call::Fdatasync { fd: A });
        }
        self.call(Call::Close { fd: A });
        ("write the next 64 KiB of 64 MiB that were reserved, fdatasync", 1024)
    }

    fn punch_hole(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 16 * MIB);
        self.open(path, A, OpenFlags::PLAIN);
        for i in 0..256 {
            self.call(Call::PunchHole { fd: A, offset: i * 64 * KIB, len: 16 * KIB });
        }
        self.call(Call::Fsync { fd: A });
        self.call(Call::Close { fd: A });
        ("free the first 16 KiB of the next 64 KiB; fsync at the end", 256)
    }

    fn writeback(&mut self) -> (&'static str, u64) {
        for i in 0..16 {
            let path = self.file(i);
            self.open(path, A, OpenFlags::CREATE);
            for offset in (0..4 * MIB).step_by(CHUNK as usize) {
                self.call(Call::Write { fd: A, offset, len: CHUNK });
            }
            self.call(Call::Close { fd: A });
            self.steps.push(Step::Sleep(100_000_000));
        }
        self.steps.push(Step::Sleep(2_000_000_000));
        ("write a file of 4 MiB, sleep for 100 ms; 2 s at the end, no sync", 16)
    }

    fn read_sequential(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 64 * MIB);
        self.open(path, A, OpenFlags::PLAIN);
        for offset in (0..64 * MIB).step_by(CHUNK as usize) {
            self.call(Call::Read { fd: A, offset, len: CHUNK });
        }
        self.call(Call::Close { fd: A });
        ("read 256 KiB of a file of 64 MiB from one end to the other", 256)
    }

    fn read_small(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 16 * MIB);
        self.open(path, A, OpenFlags::PLAIN);
        for offset in (0..16 * MIB).step_by(BLOCK as usize) {
            self.call(Call::Read { fd: A, offset, len: BLOCK });
        }
        self.call(Call::Close { fd: A });
        ("read 4 KiB of a file of 16 MiB from one end to the other", 16 * MIB / BLOCK)
    }

    fn read_direct(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 64 * MIB);
        self.open(path, A, OpenFlags::DIRECT);
        for offset in (0..64 * MIB).step_by(4 * CHUNK as usize) {
            self.call(Call::Read { fd: A, offset, len: 4 * CHUNK });
        }
        self.call(Call::Close { fd: A });
        ("read 1 MiB of a file of 64 MiB past the page cache", 64)
    }

    fn stat_cold(&mut self) -> (&'static str, u64) {
        for i in 0..1000 {
            let path = self.file(i);
            self.prepare_file(path, BLOCK);
        }
        for i in 0..1000 {
            let path = self.file(i);
            self.call(Call::Stat { path });
        }
        ("ask for the size of a file that no cache knows", 1000)
    }

    fn read_random(&mut self) -> (&'static str, u64) {
        let path = self.file(0);
        self.prepare_file(path, 64 * MIB);
        self.open(path, A, OpenFlags::PLAIN);
        let mut random = SplitMix(3);
        for _ in 0..1000 {
            let offset = random.below(64 * MIB / BLOCK) * BLOCK;
            self.call(Call::Read { fd: A, offset, len: BLOCK });
        }
        self.call(Call::Close { fd: A });
        ("read a random 4 KiB of a file of 64 MiB", 1000)
    }
}

impl Application for Script {
    fn n_threads(&self) -> u32 {
        1
    }

    fn op_names(&self) -> &[String] {
        &self.op_names
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }

    fn prepare(&mut self) -> Option<Call> {
        let call = self.prepare.get(self.prepared).copied();
        self.prepared += usize::from(call.is_some());
        call
    }

    fn next(&mut self, _thread: u32, now_ns: u64) -> Action {
        let step = self.steps.get(self.done).copied();
        self.done += 1;
        match step {
            // Figures are divided by `n_ops`; the runner need not know where one ends.
            Some(Step::Call(call)) => Action::Call { call, op: OpId(0), ends_op: true },
            Some(Step::Sleep(ns)) => Action::SleepUntil { at_ns: now_ns + ns },
            None => Action::End,
        }
    }

    fn finished(&mut self, _thread: u32, outcome: Outcome, _now_ns: u64) {
        if let (Some(Step::Call(call)), false) = (
            self.done.checked_sub(1).and_then(|at| self.steps.get(at)),
            matches!(outcome, Outcome::Done(_)),
        ) {
            self.failed.push((*call, outcome));
        }
    }
}

/// Sebastiano Vigna's `splitmix64`: the same stream everywhere, in four lines.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // The bias is below n / 2^64.
        (z ^ (z >> 31)) % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_name_makes_a_script_that_ends() {
        for name in NAMES {
            let mut script = script(name).expect(name);
            assert!(script.n_ops() > 0 && !script.about().is_empty(), "{name}");
            while script.prepare().is_some() {}
            let mut n = 0;
            while script.next(0, 0) != Action::End {
                script.finished(0, Outcome::Done(0), 0);
                n += 1;
            }
            assert_eq!(n, script.steps().len(), "{name}");
            assert_eq!(script.failed(), []);
        }
        assert!(script("creat").is_none());
    }

    #[test]
    fn descriptors_are_opened_before_use_and_closed_once() {
        for name in NAMES {
            let script = script(name).expect(name);
            let mut open = HashSet::new();
            let calls = script.steps().iter().filter_map(|step| match step {
                Step::Call(call) => Some(call),
                Step::Sleep(_) => None,
            });
            for call in script.prepare_calls().iter().chain(calls) {
                match call {
                    Call::Open { fd, .. } | Call::OpenTemporary { fd, .. } => {
                        assert!(open.insert(*fd), "{name}: {call:?}");
                    }
                    Call::Close { fd } => assert!(open.remove(fd), "{name}: {call:?}"),
                    Call::Write { fd, .. }
                    | Call::Append { fd, .. }
                    | Call::Read { fd, .. }
                    | Call::Fsync { fd }
                    | Call::Fdatasync { fd }
                    | Call::LinkFd { fd, .. } => assert!(open.contains(fd), "{name}: {call:?}"),
                    _ => {}
                }
            }
            assert!(open.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_same_name_gives_the_same_calls() {
        let twice = || script("random-overwrite").expect("known").steps().to_vec();
        assert_eq!(twice(), twice());
    }
}
