//! Random calls and random hosts.

use flashwise_hostfs::{Call, Fd, OpenFlags, PathId, Paths};
use proptest::prelude::*;

use crate::player::Step;

/// Names below the directory of a thread; any of them can be a file or a directory.
const NAMES: [&str; 14] = [
    "/a",
    "/b",
    "/a/x",
    "/a/y",
    "/a/c",
    "/a/c/x",
    "/b/x",
    "/b/c",
    "/b/c/x",
    "/b/c/d",
    "/x",
    "/y",
    "/z.mp4",
    "/a/c/z.jpg",
];

/// The paths of a thread whose directory is `base`.
pub(crate) fn paths_of(paths: &mut Paths, base: &str) -> Vec<PathId> {
    let mut all = vec![paths.intern(if base.is_empty() { "/" } else { base })];
    all.extend(NAMES.iter().map(|name| paths.intern(&format!("{base}{name}"))));
    all
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..100_000,
        6 => (0u64..2_000).prop_map(|page| page * 4096),
        2 => (0u64..4_000).prop_map(|sector| sector * 512),
        1 => (0u64..1_000).prop_map(|page| (10u64 << 40) + page * 4096),
        1 => prop_oneof![Just(u64::MAX), Just((u32::MAX as u64 - 2) * 4096), Just(1 << 44), Just(1 << 63)],
    ]
}

fn len() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..20_000,
        6 => (0u64..300).prop_map(|page| page * 4096),
        2 => (0u64..100).prop_map(|sector| sector * 512),
        1 => 0u64..(8 << 20),
        1 => prop_oneof![Just(u64::MAX), Just(1u64 << 40), Just(80u64 << 20)],
    ]
}

fn flags() -> impl Strategy<Value = OpenFlags> {
    (any::<bool>(), 0u8..4, any::<bool>(), 0u8..4, 0u8..4).prop_map(
        |(create, x, truncate, d, s)| OpenFlags {
            create,
            exclusive: x == 0,
            truncate,
            direct: d == 0,
            dsync: s == 0,
        },
    )
}

/// Calls on these paths, with descriptors from `first_fd` on.
fn call(paths: Vec<PathId>, first_fd: u32) -> impl Strategy<Value = Call> {
    let dirs = [paths[0], paths[1], paths[2]];
    let path = proptest::sample::select(paths);
    let fd = move || {
        prop_oneof![
            20 => (0u32..5).prop_map(move |n| Fd(first_fd + n)),
            1 => Just(Fd(u32::MAX)),
        ]
    };
    let names = prop_oneof![
        3 => path.clone().prop_map(|path| Call::Mkdir { path }),
        1 => path.clone().prop_map(|path| Call::Rmdir { path }),
        3 => path.clone().prop_map(|path| Call::Unlink { path }),
        3 => (path.clone(), path.clone()).prop_map(|(from, to)| Call::Rename { from, to }),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| Call::Link { from, to }),
        2 => (fd(), path.clone()).prop_map(|(fd, to)| Call::LinkFd { fd, to }),
        1 => path.clone().prop_map(|path| Call::Stat { path }),
        10 => (path, fd(), flags()).prop_map(|(path, fd, flags)| Call::Open { path, fd, flags }),
        1 => (proptest::sample::select(dirs.to_vec()), fd(), flags())
            .prop_map(|(dir, fd, flags)| Call::OpenTemporary { dir, fd, flags }),
        4 => fd().prop_map(|fd| Call::Close { fd }),
    ];
    let data = prop_oneof![
        6 => (fd(), offset(), len()).prop_map(|(fd, offset, len)| Call::Write { fd, offset, len }),
        3 => (fd(), len()).prop_map(|(fd, len)| Call::Append { fd, len }),
        4 => (fd(), offset(), len()).prop_map(|(fd, offset, len)| Call::Read { fd, offset, len }),
        2 => fd().prop_map(|fd| Call::Fsync { fd }),
        1 => fd().prop_map(|fd| Call::Fdatasync { fd }),
        1 => Just(Call::Sync),
        1 => Just(Call::Trim),
        2 => (fd(), offset()).prop_map(|(fd, size)| Call::Truncate { fd, size }),
        2 => (fd(), offset(), len(), any::<bool>()).prop_map(|(fd, offset, len, keep_size)| {
            Call::Fallocate { fd, offset, len, keep_size }
        }),
        2 => (fd(), offset(), len()).prop_map(|(fd, offset, len)| Call::PunchHole { fd, offset, len }),
    ];
    prop_oneof![1 => names, 1 => data]
}

fn pause_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => Just(1u64),
        4 => 1u64..1_000_000,
        2 => 1u64..1_000_000_000,
        1 => 1u64..40_000_000_000,
    ]
}

/// Steps of a thread.
pub(crate) fn steps(
    paths: Vec<PathId>,
    first_fd: u32,
    n_max: usize,
) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((call(paths, first_fd), pause_ns()), 1..n_max)
}

fn one_of(key: &'static str, values: &'static [&'static str]) -> BoxedStrategy<String> {
    proptest::sample::select(values).prop_map(move |v| format!(",{key}={v}")).boxed()
}

/// A host, as text. The first value of each key is the usual one.
pub(crate) fn host() -> impl Strategy<Value = String> {
    let journal = prop_oneof![
        Just("data=ordered"),
        Just("data=journal"),
        Just("data=writeback"),
        Just("data=ordered,journal=none"),
        Just("data=ordered,journal=external,journal-size=4m"),
        Just("data=journal,journal=external,journal-size=4m"),
        Just("data=ordered,journal-size=8m"),
    ];
    let dirty = prop_oneof![
        Just(""),
        Just(",dirty=4k,background=4k"),
        Just(",dirty=12k,background=8k"),
        Just(",dirty=1m,background=64k"),
        Just(",dirty=32m,background=16m"),
    ];
    let keys = vec![
        one_of("size", &["48m", "32m", "64m"]),
        one_of("delalloc", &["on", "off"]),
        one_of("prealloc", &["on", "on", "off"]),
        one_of("discard", &["off", "online", "1s"]),
        one_of("nr-requests", &["1023", "1", "2", "32"]),
        one_of("cores", &["0", "1", "2", "4"]),
        one_of("memory", &["64m", "4m"]),
        one_of("expire", &["30s", "0", "500ms"]),
        one_of("flusher", &["5s", "0", "100ms"]),
        one_of("readahead", &["128k", "0", "64m"]),
        one_of("read-cache", &["on", "on", "off"]),
        one_of("plug", &["16", "1"]),
        one_of("request", &["1m", "4k"]),
        one_of("segments", &["128", "1"]),
        one_of("costs", &["default", "none", "fast24"]),
        one_of("barrier", &["on", "on", "off"]),
        one_of("commit", &["5s", "1s", "900s"]),
        one_of("atime", &["relatime", "strict", "off"]),
        one_of("mkfs-discard", &["off", "on"]),
    ];
    (journal, dirty, keys)
        .prop_map(|(journal, dirty, keys)| format!("ext4,{journal}{dirty}{}", keys.concat()))
}
