//! The filebench personalities, as data: file sets, threads and their lists of flowops.
//!
//! Source: `workloads/*.f` of filebench at the head of 2020-02 and its `flowop_library.c`
//! for what a flowop does. Descriptors are numbered from 0 here, `fd=1` there. Names in op labels are those of the personality where one kind
//! occurs in two roles.

use super::fileset::{SetSpec, Size};
use super::keys::{Key, Values};

/// What runs.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    /// File sets.
    pub(super) sets: Vec<SetSpec>,
    /// Kinds of threads.
    pub(super) programs: Vec<Program>,
    /// Events per second that [`Flowop::Limit`] shares out; 0: no limit.
    pub(super) event_rate: u64,
}

/// Threads that do the same.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// How many.
    pub(super) instances: u64,
    /// What each does, over and over.
    pub(super) steps: Vec<Step>,
}

/// One flowop of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Label of its operation; empty for one that makes no calls.
    pub(super) label: &'static str,
    /// What to do.
    pub(super) flowop: Flowop,
    /// How often, one after another.
    pub(super) times: u32,
}

/// A descriptor of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The one of this number.
    At(u32),
    /// The next of all descriptors of the thread, in turn; files too are picked in an
    /// order of the thread's own (`opennext`).
    Next,
}

/// Which file set a flowop opens a file of, where its descriptor is not open.
pub(super) type Set = usize;

/// What a flowop does. Lengths in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flowop {
    /// Make a file that is not there, and open it.
    Create { set: Set, slot: u32 },
    /// Open a file that is there.
    Open { set: Set, slot: u32 },
    /// Close.
    Close { slot: u32 },
    /// Unlink a file that is there and that nobody has open.
    Delete { set: Set },
    /// Ask for the attributes of a file that is there.
    Stat { set: Set },
    /// Append a random length below `below`. With a set: opens a file first if need be.
    Append { set: Option<Set>, slot: u32, below: u64 },
    /// Make the file durable.
    Fsync { slot: u32 },
    /// Write the drawn size from the start, `piece` by `piece`.
    WriteWhole { slot: u32, piece: u64 },
    /// Read from the start until a read returns nothing, `piece` by `piece`.
    ReadWhole { slot: u32, piece: u64 },
    /// Read `len` bytes: at a random multiple of `len`, else where the last read ended.
    Read { set: Set, slot: Slot, len: u64, random: bool },
    /// Write `len` bytes at a random multiple of it without waiting, durable when done.
    AioWrite { set: Set, slot: Slot, len: u64 },
    /// Wait for what was written so.
    AioWait,
    /// Wait until as many posts came as `value`, which posters may run ahead of by
    /// `high_water`. A program has at most one.
    SemBlock { value: u64, high_water: u64 },
    /// Post once to each thread of a program.
    SemPost { program: usize },
    /// Compute: a loop of so many stores to memory.
    Hog { stores: u64 },
    /// Sleep.
    Delay { ns: u64 },
    /// Wait for the events that what was done since the last time costs.
    Limit(Limit),
}

/// What costs an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Each pass (`eventlimit`).
    Passes,
    /// Each operation of this thread (`opslimit`).
    Operations,
    /// Each MiB this thread moved, begun ones whole (`bwlimit`).
    Mebibytes,
}

const fn step(label: &'static str, flowop: Flowop) -> Step {
    Step { label, flowop, times: 1 }
}

fn sized(values: &Values) -> SetSpec {
    SetSpec {
        name: "bigfileset",
        files: values[Key::Files],
        size: Size::Gamma(values[Key::MeanSize]),
        dir_width: values[Key::DirWidth],
        prealloc: values[Key::Prealloc],
    }
}

fn one_program(set: SetSpec, values: &Values, steps: Vec<Step>) -> Workload {
    let programs = vec![Program { instances: values[Key::Threads], steps }];
    Workload { sets: vec![set], programs, event_rate: 0 }
}

/// Open, read whole, close.
fn read_a_file(piece: u64) -> [Step; 3] {
    [
        step("open", Flowop::Open { set: 0, slot: 0 }),
        step("read", Flowop::ReadWhole { slot: 0, piece }),
        step("close", Flowop::Close { slot: 0 }),
    ]
}

/// A mail server: small files that are written once, made durable, read and deleted.
pub(super) fn varmail(values: &Values) -> Workload {
    let piece = values[Key::IoSize];
    let append = Flowop::Append { set: None, slot: 0, below: values[Key::Append] };
    let mut steps = vec![
        step("delete", Flowop::Delete { set: 0 }),
        step("create", Flowop::Create { set: 0, slot: 0 }),
        step("append", append),
        step("fsync", Flowop::Fsync { slot: 0 }),
        step("close", Flowop::Close { slot: 0 }),
        step("open", Flowop::Open { set: 0, slot: 0 }),
        step("read", Flowop::ReadWhole { slot: 0, piece }),
        step("append", append),
        step("fsync", Flowop::Fsync { slot: 0 }),
        step("close", Flowop::Close { slot: 0 }),
    ];
    steps.extend(read_a_file(piece));
    one_program(sized(values), values, steps)
}

/// Home directories: whole files written and read, appends, deletes.
pub(super) fn fileserver(values: &Values) -> Workload {
    let piece = values[Key::IoSize];
    let below = values[Key::Append];
    let mut steps = vec![
        step("create", Flowop::Create { set: 0, slot: 0 }),
        step("write", Flowop::WriteWhole { slot: 0, piece }),
        step("close", Flowop::Close { slot: 0 }),
        step("open", Flowop::Open { set: 0, slot: 0 }),
        step("append", Flowop::Append { set: None, slot: 0, below }),
        step("close", Flowop::Close { slot: 0 }),
    ];
    steps.extend(read_a_file(piece));
    steps.push(step("delete", Flowop::Delete { set: 0 }));
    steps.push(step("stat", Flowop::Stat { set: 0 }));
    one_program(sized(values), values, steps)
}

/// Pages read whole, and one log that all threads append to.
pub(super) fn webserver(values: &Values) -> Workload {
    let mut steps = read_a_file(values[Key::IoSize]).repeat(10);
    let below = values[Key::Append];
    steps.push(step("appendlog", Flowop::Append { set: Some(1), slot: 1, below }));
    let pages = SetSpec { prealloc: 100, ..sized(values) };
    let mut workload = one_program(pages, values, steps);
    workload.sets.push(SetSpec { name: "logfiles", files: 1, ..pages });
    workload
}

/// A cache of pages: each is fetched, read some times, and replaced.
pub(super) fn webproxy(values: &Values) -> Workload {
    let below = values[Key::Append];
    let mut steps = vec![
        step("delete", Flowop::Delete { set: 0 }),
        step("create", Flowop::Create { set: 0, slot: 0 }),
        step("append", Flowop::Append { set: None, slot: 0, below }),
        step("close", Flowop::Close { slot: 0 }),
    ];
    steps.extend(read_a_file(values[Key::IoSize]).repeat(5));
    steps.push(step("", Flowop::Limit(Limit::Operations)));
    let set = SetSpec { size: Size::Fixed(values[Key::MeanSize]), ..sized(values) };
    Workload { event_rate: values[Key::Rate], ..one_program(set, values, steps) }
}

/// Videos streamed at a rate, and one thread that replaces those nobody watches.
pub(super) fn videoserver(values: &Values) -> Workload {
    let size = Size::Fixed(values[Key::MeanSize]);
    let active = SetSpec {
        name: "activevids",
        files: values[Key::Files],
        size,
        // Source: `videoserver.f`, as the width of the passive set below.
        dir_width: 4,
        prealloc: 100,
    };
    let passive = SetSpec {
        name: "passivevids",
        files: values[Key::Passive],
        size,
        dir_width: values[Key::DirWidth],
        prealloc: values[Key::Prealloc],
    };
    let writer = vec![
        step("delete", Flowop::Delete { set: 1 }),
        step("create", Flowop::Create { set: 1, slot: 0 }),
        step("write", Flowop::WriteWhole { slot: 0, piece: values[Key::IoSize] }),
        step("close", Flowop::Close { slot: 0 }),
        step("", Flowop::Delay { ns: values[Key::Interval] }),
    ];
    let read =
        Flowop::Read { set: 0, slot: Slot::At(0), len: values[Key::ReadSize], random: false };
    let reader = vec![step("read", read), step("", Flowop::Limit(Limit::Mebibytes))];
    Workload {
        sets: vec![active, passive],
        programs: vec![
            Program { instances: 1, steps: writer },
            Program { instances: values[Key::Threads], steps: reader },
        ],
        event_rate: values[Key::Rate],
    }
}

/// A database: sessions that read and compute, writers of pages, a writer of the log.
pub(super) fn oltp(values: &Values) -> Workload {
    let len = values[Key::IoSize];
    let data =
        SetSpec { name: "datafiles", size: Size::Fixed(values[Key::MeanSize]), ..sized(values) };
    let log =
        SetSpec { name: "logfile", files: 1, size: Size::Fixed(values[Key::LogSize]), ..data };
    let log_write = Flowop::AioWrite { set: 1, slot: Slot::At(0), len: values[Key::LogIo] };
    // Numbers of posts and stores below: source, `oltp.f`.
    let log_writer = vec![
        step("lg-write", log_write),
        step("", Flowop::AioWait),
        step("", Flowop::SemBlock { value: 3200, high_water: 1000 }),
    ];
    let page_write = Flowop::AioWrite { set: 0, slot: Slot::Next, len };
    let page_writer = vec![
        Step { times: 100, ..step("dbwrite-a", page_write) },
        step("", Flowop::Hog { stores: 10_000 }),
        step("", Flowop::SemBlock { value: 1000, high_water: 2000 }),
        step("", Flowop::AioWait),
    ];
    let session = vec![
        step("shadowread", Flowop::Read { set: 0, slot: Slot::Next, len, random: true }),
        step("", Flowop::Hog { stores: values[Key::UserMode] }),
        step("", Flowop::SemPost { program: 0 }),
        step("", Flowop::SemPost { program: 1 }),
        step("", Flowop::Limit(Limit::Passes)),
    ];
    Workload {
        sets: vec![data, log],
        programs: vec![
            Program { instances: 1, steps: log_writer },
            Program { instances: values[Key::Writers], steps: page_writer },
            Program { instances: values[Key::Threads], steps: session },
        ],
        event_rate: values[Key::Rate],
    }
}
