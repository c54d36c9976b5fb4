//! Lines of the kernel's trace, as values.
//!
//! A line of `trace_pipe` is `task-pid [cpu] flags seconds: event: text`. A task name may
//! hold blanks, colons and brackets, so a line is not split from the left: the name of the
//! event between `": "` and `": "` is longer than any task name (15 characters), and is
//! searched for. Block events repeat the task name at their end, after all other fields.
//!
//! Formats: `events/block`, `events/ext4` and `events/jbd2` of tracefs (`print fmt` in
//! each `format` file); letters of `rwbs`: `blk_fill_rwbs` in Linux' `kernel/trace/blktrace.c`.
//!
//! Cost: a few searches in about 120 bytes per line.

use thiserror::Error;

/// Kind of a block operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Read (`R`).
    Read,
    /// Write (`W`). Without sectors: a flush at bio level.
    Write,
    /// Discard (`D`), also a secure erase (`DE`).
    Discard,
    /// Flush (`F`), at request level.
    Flush,
    /// Anything else (`N`): write zeroes, zone management.
    Other,
}

/// Operation and flags of a bio or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rwbs {
    /// Operation.
    pub op: Op,
    /// All completed writes become durable first.
    pub preflush: bool,
    /// Durable when complete.
    pub fua: bool,
    /// Read ahead.
    pub readahead: bool,
    /// Somebody waits for it.
    pub sync: bool,
    /// Metadata.
    pub meta: bool,
}

impl Rwbs {
    /// Of the letters of a trace line, for example `FWFSM`.
    pub fn parse(letters: &str) -> Option<Self> {
        let bytes = letters.as_bytes();
        let is_op = |at: usize| bytes.get(at).is_some_and(|b| b"RWDFNZ".contains(b));
        // An F before an operation is a preflush; F alone is the operation.
        let preflush = bytes.first() == Some(&b'F') && is_op(1);
        let at = usize::from(preflush);
        let op = match bytes.get(at)? {
            b'R' => Op::Read,
            b'W' => Op::Write,
            b'D' => Op::Discard,
            b'F' => Op::Flush,
            b'N' | b'Z' => Op::Other,
            _ => return None,
        };
        let mut rwbs =
            Self { op, preflush, fua: false, readahead: false, sync: false, meta: false };
        for letter in &bytes[at + 1..] {
            match letter {
                b'F' => rwbs.fua = true,
                b'A' => rwbs.readahead = true,
                b'S' => rwbs.sync = true,
                b'M' => rwbs.meta = true,
                // Secure erase, atomic, and the second letter of zone operations.
                b'A'..=b'Z' => {}
                _ => return None,
            }
        }
        Some(rwbs)
    }
}

/// Device number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dev {
    /// Driver.
    pub major: u32,
    /// Device of that driver.
    pub minor: u32,
}

impl Dev {
    /// The number that filters of block and ext4 events compare with (`MKDEV` inside the
    /// kernel: 20 bits of minor number).
    pub fn as_filter(self) -> u32 {
        (self.major << 20) | self.minor
    }

    /// Of `major,minor` or, as in sysfs, `major:minor`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once([',', ':'])?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

/// A bio or a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Device.
    pub dev: Dev,
    /// Operation and flags.
    pub rwbs: Rwbs,
    /// First sector \[512 bytes\].
    pub sector: u64,
    /// Sectors; 0 for a flush.
    pub n_sectors: u64,
    /// Name of the thread that submitted it.
    pub comm: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The file system handed a bio to the block layer.
    Bio(Block),
    /// The block layer handed a request to the device.
    Request(Block),
    /// Blocks got an owner.
    Allocated {
        /// Owner.
        inode: u64,
        /// First block.
        block: u64,
        /// Blocks.
        n: u64,
        /// They hold contents of a regular file; otherwise directory entries or metadata
        /// of the owner.
        data: bool,
    },
    /// An inode got an owner.
    InodeAllocated {
        /// Which.
        inode: u64,
        /// Type and permissions, as `st_mode`.
        mode: u32,
    },
    /// A transaction was committed.
    Committed {
        /// Its number.
        tid: u32,
        /// Handles in it.
        handles: u64,
        /// Blocks in it.
        blocks: u64,
        /// Blocks written for it.
        logged: u64,
    },
    /// A checkpointed transaction left the journal.
    Checkpointed {
        /// Its number.
        tid: u32,
        /// Blocks the checkpoint itself wrote home.
        written: u64,
    },
    /// A line that was written to `trace_marker`.
    Marker(String),
    /// Events were lost for want of buffer space.
    Lost(u64),
}

/// An event and when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time \[us\] of the trace clock.
    pub at_us: u64,
    /// What happened.
    pub event: Event,
}

/// A line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "trace line {line:?}: {wrong}; the kernel's format may have changed, compare tracefs events/*/format"
)]
pub struct BadLine {
    /// The line.
    pub line: String,
    /// What is wrong with it.
    pub wrong: &'static str,
}

/// Reads a line. `None`: a comment, an empty line, or an event nobody asked for.
pub fn parse(line: &str) -> Result<Option<Line>, BadLine> {
    let bad = |wrong| BadLine { line: line.to_owned(), wrong };
    if let Some(n) = lost(line) {
        return Ok(Some(Line { at_us: 0, event: Event::Lost(n) }));
    }
    for (mark, read) in EVENTS {
        if let Some(at) = line.find(mark) {
            let at_us = time_us(&line[..at]).ok_or_else(|| bad("no time before the event"))?;
            let text = line[at + mark.len()..].trim_end();
            let event = read(text).ok_or_else(|| bad("fields are not as expected"))?;
            return Ok(Some(Line { at_us, event }));
        }
    }
    Ok(None)
}

type Read = fn(&str) -> Option<Event>;

const EVENTS: [(&str, Read); 7] = [
    (": block_bio_queue: ", |text| bio(text).map(Event::Bio)),
    (": block_rq_issue: ", |text| request(text).map(Event::Request)),
    (": ext4_allocate_blocks: ", allocated),
    (": ext4_allocate_inode: ", inode_allocated),
    (": jbd2_run_stats: ", committed),
    (": jbd2_checkpoint_stats: ", checkpointed),
    (": tracing_mark_write: ", |text| Some(Event::Marker(text.to_owned()))),
];

/// `CPU:1 [LOST 123 EVENTS]`.
fn lost(line: &str) -> Option<u64> {
    let rest = line.trim_start().strip_prefix("CPU:")?;
    let (_, rest) = rest.split_once("[LOST ")?;
    rest.strip_suffix(" EVENTS]")
        .or_else(|| rest.split_once(" EVENTS]").map(|(n, _)| n))?
        .parse()
        .ok()
}

/// The time that ends the text before an event: `… 24519.920454`.
fn time_us(before: &str) -> Option<u64> {
    let (seconds, fraction) = before.rsplit(' ').next()?.split_once('.')?;
    if fraction.len() != 6 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000)?.checked_add(fraction.parse().ok()?)
}

/// `7,0 WS 266240 + 8 [task]`.
fn bio(text: &str) -> Option<Block> {
    let (dev, text) = text.split_once(' ')?;
    let (rwbs, text) = text.split_once(' ')?;
    place(dev, rwbs, text)
}

/// `7,0 WS 4096 () 266240 + 8 be,0,4 [task]`.
fn request(text: &str) -> Option<Block> {
    let (dev, text) = text.split_once(' ')?;
    let (rwbs, text) = text.split_once(' ')?;
    let (_bytes, text) = text.split_once(" (")?;
    let (_command, text) = text.split_once(") ")?;
    place(dev, rwbs, text)
}

/// `266240 + 8 …[task]`.
fn place(dev: &str, rwbs: &str, text: &str) -> Option<Block> {
    let (sector, text) = text.split_once(" + ")?;
    let (n_sectors, text) = text.split_once(' ')?;
    let (_priority, comm) = text.split_once('[')?;
    let (sector, n_sectors): (u64, u64) = (sector.parse().ok()?, n_sectors.parse().ok()?);
    // Beyond any device: bytes must fit in 64 bits.
    sector.checked_add(n_sectors)?.checked_mul(512)?;
    Some(Block {
        dev: Dev::parse(dev)?,
        rwbs: Rwbs::parse(rwbs)?,
        sector,
        n_sectors,
        comm: comm.strip_suffix(']')?.to_owned(),
    })
}

/// The number after `name` in `… name 12 …`.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut words = text.split(' ');
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}

/// `dev 7,0 ino 12 flags HINT_DATA|DELALLOC_RESV len 1 block 33280 lblk 0 …`; the flags
/// may be empty, which leaves two blanks.
fn allocated(text: &str) -> Option<Event> {
    let (_, flags) = text.split_once(" flags ")?;
    let (flags, rest) = flags.split_once(" len ").or_else(|| flags.split_once("len "))?;
    let n = rest.split(' ').next()?.parse().ok()?;
    // HINT_DATA is set for regular files alone: ext4_ext_map_blocks in fs/ext4/extents.c.
    let data = flags.split('|').any(|flag| flag.trim() == "HINT_DATA");
    Some(Event::Allocated { inode: field(text, "ino")?, block: field(rest, "block")?, n, data })
}

/// `dev 7,0 ino 12 dir 2 mode 0100777`.
fn inode_allocated(text: &str) -> Option<Event> {
    let (_, mode) = text.split_once(" mode ")?;
    let mode = u32::from_str_radix(mode.trim(), 8).ok()?;
    Some(Event::InodeAllocated { inode: field(text, "ino")?, mode })
}

/// `dev 7,0 tid 2 … handle_count 4 blocks 6 blocks_logged 8`.
fn committed(text: &str) -> Option<Event> {
    Some(Event::Committed {
        tid: field(text, "tid")?.try_into().ok()?,
        handles: field(text, "handle_count")?,
        blocks: field(text, "blocks")?,
        logged: field(text, "blocks_logged")?,
    })
}

/// `dev 7,0 tid 12 chp_time 0 forced_to_close 0 written 0 dropped 3`.
fn checkpointed(text: &str) -> Option<Event> {
    Some(Event::Checkpointed {
        tid: field(text, "tid")?.try_into().ok()?,
        written: field(text, "written")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Event {
        parse(line).unwrap_or_else(|e| panic!("{e}")).expect("an event").event
    }

    #[test]
    fn a_bio_is_read_with_its_flags() {
        let line = "    jbd2/loop0-8-20755   [001] ..... 24520.298566: block_bio_queue: 7,0 FWFSM 524352 + 8 [jbd2/loop0-8]";
        let parsed = parse(line).expect("well formed").expect("an event");
        assert_eq!(parsed.at_us, 24_520_298_566);
        let Event::Bio(bio) = parsed.event else { panic!("a bio") };
        assert_eq!((bio.dev.major, bio.dev.minor), (7, 0));
        assert_eq!((bio.sector, bio.n_sectors, bio.comm.as_str()), (524_352, 8, "jbd2/loop0-8"));
        let Rwbs { op, preflush, fua, readahead, sync, meta } = bio.rwbs;
        assert_eq!(op, Op::Write);
        assert_eq!([preflush, fua, readahead, sync, meta], [true, true, false, true, true]);
    }

    #[test]
    fn odd_task_names_do_not_shift_fields() {
        let line =
            " a: [b] + c-77  [000] d..1. 1.000002: block_bio_queue: 7,12 RAM 8 + 16 [a: [b] + c]";
        let Event::Bio(bio) = event(line) else { panic!("a bio") };
        assert_eq!((bio.sector, bio.n_sectors, bio.dev.minor), (8, 16, 12));
        assert_eq!(bio.comm, "a: [b] + c");
        assert!(bio.rwbs.readahead && bio.rwbs.meta && bio.rwbs.op == Op::Read);
    }

    #[test]
    fn a_request_is_read_and_a_flush_has_no_sectors() {
        let line = "  kworker/1:1H-78 [001] .N... 24520.294881: block_rq_issue: 7,0 RAM 8192 () 536 + 16 be,0,4 [kworker/1:1H]";
        let Event::Request(request) = event(line) else { panic!("a request") };
        assert_eq!((request.sector, request.n_sectors), (536, 16));
        let line = "  kworker/1:1H-78 [001] ..... 24520.298588: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [kworker/1:1H]";
        let Event::Request(flush) = event(line) else { panic!("a request") };
        assert_eq!((flush.rwbs.op, flush.n_sectors), (Op::Flush, 0));
    }

    #[test]
    fn letters_of_operations() {
        let op = |letters| Rwbs::parse(letters).map(|r| (r.op, r.preflush, r.fua));
        assert_eq!(op("F"), Some((Op::Flush, false, false)));
        assert_eq!(op("FF"), Some((Op::Flush, true, false)));
        assert_eq!(op("WFS"), Some((Op::Write, false, true)));
        assert_eq!(op("FWS"), Some((Op::Write, true, false)));
        assert_eq!(op("DS"), Some((Op::Discard, false, false)));
        assert_eq!(op("N"), Some((Op::Other, false, false)));
        assert_eq!((op(""), op("X"), op("W+")), (None, None, None));
    }

    #[test]
    fn allocations_tell_data_from_metadata() {
        let data = event(
            "python3-1 [000] ..... 1.000001: ext4_allocate_blocks: dev 7,0 ino 12 flags HINT_DATA|DELALLOC_RESV|USE_RESV len 1024 block 33280 lblk 0 goal 32768 lleft 0 lright 0 pleft 0 pright 0",
        );
        assert_eq!(data, Event::Allocated { inode: 12, block: 33280, n: 1024, data: true });
        let directory = event(
            "python3-1 [000] ..... 1.000001: ext4_allocate_blocks: dev 7,0 ino 8193 flags  len 1 block 2127 lblk 0 goal 0 lleft 0 lright 0 pleft 0 pright 0",
        );
        assert_eq!(directory, Event::Allocated { inode: 8193, block: 2127, n: 1, data: false });
        let inode = event(
            "python3-1 [000] ..... 1.000001: ext4_allocate_inode: dev 7,0 ino 8193 dir 2 mode 040777",
        );
        assert_eq!(inode, Event::InodeAllocated { inode: 8193, mode: 0o40777 });
    }

    #[test]
    fn the_journal_tells_its_commits() {
        let commit = event(
            "jbd2/loop0-8-2 [001] ...1. 1.000001: jbd2_run_stats: dev 7,0 tid 2 wait 0 request_delay 0 running 4 locked 0 flushing 0 logging 0 handle_count 4 blocks 6 blocks_logged 8",
        );
        assert_eq!(commit, Event::Committed { tid: 2, handles: 4, blocks: 6, logged: 8 });
        let checkpoint = event(
            "jbd2/loop0-8-2 [001] ...2. 1.000001: jbd2_checkpoint_stats: dev 7,0 tid 12 chp_time 0 forced_to_close 0 written 5 dropped 3",
        );
        assert_eq!(checkpoint, Event::Checkpointed { tid: 12, written: 5 });
    }

    #[test]
    fn lost_events_markers_and_strangers() {
        assert_eq!(event("CPU:1 [LOST 123 EVENTS]"), Event::Lost(123));
        assert_eq!(
            event("x-1 [000] ..... 1.000001: tracing_mark_write: start"),
            Event::Marker("start".into())
        );
        assert_eq!(parse("# tracer: nop"), Ok(None));
        assert_eq!(parse(""), Ok(None));
        assert_eq!(parse("x-1 [000] ..... 1.000001: sched_switch: a ==> b"), Ok(None));
    }

    #[test]
    fn a_damaged_line_is_an_error_that_quotes_it() {
        for line in [
            "x-1 [000] ..... 1.000001: block_bio_queue: 7,0 WS",
            "x-1 [000] ..... 1.000001: block_bio_queue: 7,0 WS many + 8 [x]",
            "x-1 [000] ..... 1.000001: block_bio_queue: 7,0 ?? 1 + 8 [x]",
            "x-1 [000] ..... soon: block_bio_queue: 7,0 WS 1 + 8 [x]",
            "x-1 [000] ..... 1.000001: ext4_allocate_blocks: dev 7,0 ino 12",
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.to_string().contains(line.split(' ').next().expect("a word")));
        }
    }
}
