//! The model against a real ext4: live where that is possible, and against figures that
//! were observed on one.
//!
//! The first test runs the quick cases of `ext4-compare` and needs root, loop devices,
//! tracefs and e2fsprogs; without them it says what is missing and ends. The second needs
//! nothing: it holds the model to figures of Linux 6.18 and e2fsprogs 1.47.0.
#![allow(clippy::print_stderr, reason = "skipped tests say so")]

use flashwise_realfs::beside::{Case, Figures, Mode, all, modelled};
use flashwise_realfs::observed::Class;

/// How many fsyncs share a commit depends on what else the machine does: observed journal
/// bytes of one case differ by up to 20 % between runs on a busy machine.
#[cfg(target_os = "linux")]
const GROUP_PERCENT: f64 = 30.0;

/// Everything that the quick cases of `ext4-compare` say is within the targets. A row of
/// several threads that misses one by chance gets two more tries.
#[cfg(target_os = "linux")]
#[test]
fn quick_cases_are_within_the_targets() {
    use flashwise_realfs::beside::{Miss, Row, modelled_as, quick, real};
    if let Some(what) = flashwise_realfs::missing() {
        eprintln!("skipped: needs {what}");
        return;
    }
    let misses = |case: &Case| -> Vec<Miss> {
        let real = real(case).expect("a case").expect("a real ext4");
        let model = modelled_as(case, &real.times).expect("a case");
        let misses = Row { case: case.clone(), real, model }.misses().into_iter();
        let is_chance = |miss: &Miss| !case.is_script() && miss.percent.abs() < GROUP_PERCENT;
        misses.filter(|miss| !is_chance(miss)).collect()
    };
    for case in quick() {
        // Other work of the machine can get between: what misses has to miss three times.
        let mut last = misses(&case);
        for _ in 0..2 {
            if last.is_empty() {
                break;
            }
            last = misses(&case);
        }
        assert_eq!(last, [], "{} {}", case.load, case.mode_name());
    }
}

/// What a case came to on a real ext4.
struct Observed {
    load: &'static str,
    mode: Mode,
    /// Name of the setting; empty for the plain one.
    setting: &'static str,
    /// Journal, metadata and data \[KiB\].
    kib: [u64; 3],
    /// Flushes and FUA writes.
    flushes: u64,
    fua: u64,
    commits: u64,
    extents: u64,
}

const fn observed(
    load: &'static str,
    mode: Mode,
    setting: &'static str,
    kib: [u64; 3],
    [flushes, fua, commits, extents]: [u64; 4],
) -> Observed {
    Observed { load, mode, setting, kib, flushes, fua, commits, extents }
}

use Mode::{Journal, None, Ordered};

/// Printed by `ext4-compare create create-fsync … --json` on Linux 6.18. Cases whose
/// figures do not depend on time.
const OBSERVED: &[Observed] = &[
    observed("create", Ordered, "", [312, 304, 4000], [2, 1, 1, 1000]),
    observed("create", Journal, "", [4328, 300, 4000], [3, 2, 2, 1000]),
    observed("create", None, "", [0, 300, 4000], [2, 0, 0, 1000]),
    observed("create-fsync", Ordered, "", [32020, 296, 4000], [1002, 1000, 1000, 1000]),
    observed("create-fsync", Journal, "", [36032, 300, 4000], [2003, 1001, 1001, 1000]),
    observed("create-fsync", None, "", [0, 8068, 4000], [1002, 0, 0, 1000]),
    observed("append-fsync", Ordered, "", [20012, 24, 4000], [1001, 1000, 1000, 3]),
    observed("append-fsync", Journal, "", [24016, 24, 4000], [2002, 1001, 1001, 3]),
    observed("append-fsync", None, "", [0, 4020, 4000], [1001, 0, 0, 3]),
    observed("append-fdatasync", Ordered, "", [20012, 24, 4000], [1001, 1000, 1000, 3]),
    observed("append-fdatasync", Journal, "", [24016, 24, 4000], [2002, 1001, 1001, 3]),
    observed("append-fdatasync", None, "", [0, 4020, 4000], [1001, 0, 0, 3]),
    observed("overwrite-fsync-paced", Ordered, "", [2400, 4, 800], [201, 200, 200, 1]),
    observed("overwrite-fsync-paced", Journal, "", [3204, 4, 800], [401, 201, 201, 2]),
    observed("overwrite-fsync-paced", None, "", [0, 796, 800], [201, 0, 0, 1]),
    observed("overwrite-fdatasync-paced", Ordered, "", [12, 4, 800], [201, 1, 1, 1]),
    observed("overwrite-fdatasync-paced", Journal, "", [3204, 4, 800], [402, 201, 201, 2]),
    observed("overwrite-fdatasync-paced", None, "", [0, 800, 800], [201, 0, 0, 1]),
    observed("rename-replace", Ordered, "", [9628, 24, 2400], [301, 301, 301, 1]),
    observed("rename-replace", Journal, "", [12028, 24, 2400], [602, 301, 301, 1]),
    observed("rename-replace", None, "", [0, 2420, 2400], [301, 0, 0, 1]),
    observed("delete", Ordered, "", [304, 296, 0], [3, 1, 1, 0]),
    observed("delete", Journal, "", [296, 288, 0], [2, 1, 1, 0]),
    observed("delete", None, "", [0, 292, 0], [2, 0, 0, 0]),
    observed("mkdir", Ordered, "", [4324, 4300, 0], [2, 1, 1, 0]),
    observed("mkdir", Journal, "", [4320, 4296, 0], [3, 1, 1, 0]),
    observed("mkdir", None, "", [0, 4296, 0], [2, 0, 0, 0]),
    observed("append-four-extents", Ordered, "", [24004, 12, 4000], [1001, 1001, 1000, 4]),
    observed("append-four-extents", Journal, "", [24008, 12, 4000], [2002, 1002, 1001, 4]),
    observed("append-four-extents", None, "", [0, 4008, 4000], [1001, 0, 0, 4]),
    observed("append-two", Ordered, "", [11980, 32, 8000], [501, 500, 500, 20]),
    observed("append-two", Journal, "", [19984, 32, 8000], [1002, 501, 501, 20]),
    observed("append-two", None, "", [0, 3988, 8000], [501, 0, 0, 20]),
    observed("append-two-buffered", Ordered, "", [44, 24, 8000], [2, 2, 2, 2]),
    observed("append-two-buffered", Journal, "", [8072, 32, 8000], [2, 2, 2, 20]),
    observed("append-two-buffered", None, "", [0, 24, 8000], [1, 0, 0, 2]),
    observed("truncate-append", Ordered, "", [12000, 16, 8000], [501, 500, 500, 1]),
    observed("truncate-append", Journal, "", [20004, 16, 8000], [1001, 501, 501, 1]),
    observed("truncate-append", None, "", [0, 2008, 8000], [501, 0, 0, 1]),
    observed("sequential", Ordered, "", [44, 32, 262144], [2, 1, 1, 2]),
    observed("sequential", Journal, "", [263504, 40, 262144], [28, 26, 14, 5]),
    observed("sequential", None, "", [0, 32, 262144], [2, 0, 0, 2]),
    observed("tmpfile", Ordered, "", [18140, 160, 8000], [502, 501, 501, 500]),
    observed("tmpfile", Journal, "", [26140, 160, 8000], [1002, 501, 501, 500]),
    observed("tmpfile", None, "", [0, 2156, 8000], [501, 0, 0, 500]),
    observed("fallocate-fill", Ordered, "", [12308, 24, 65536], [1025, 1024, 1024, 1]),
    observed("fallocate-fill", Journal, "", [77868, 24, 65536], [2053, 1030, 1025, 1]),
    observed("fallocate-fill", None, "", [0, 4116, 65536], [1025, 0, 0, 1]),
    observed("punch-hole", Ordered, "", [24, 16, 0], [2, 1, 1, 256]),
    observed("punch-hole", Journal, "", [24, 16, 0], [2, 1, 1, 256]),
    observed("punch-hole", None, "", [0, 16, 0], [2, 0, 0, 256]),
    observed(
        "create-fsync",
        Ordered,
        "4 MiB journal",
        [32272, 308, 4000],
        [1063, 1061, 1000, 1000],
    ),
    observed("append-fsync", Ordered, "4 MiB journal", [20068, 24, 4000], [1003, 1014, 1000, 3]),
    observed("rename-replace", Ordered, "4 MiB journal", [9652, 24, 2400], [301, 307, 301, 1]),
    observed("sequential", Ordered, "4 MiB journal", [44, 32, 262144], [2, 1, 1, 2]),
    observed("append-fsync", Ordered, "external", [20012, 24, 4000], [2001, 1000, 1000, 3]),
    observed("create-fsync", Ordered, "external", [32020, 296, 4000], [2002, 1000, 1000, 1000]),
    observed("delete", Ordered, "discard", [300, 292, 0], [3, 1, 1, 0]),
    observed("rename-replace", Ordered, "discard", [9628, 24, 2400], [301, 301, 301, 1]),
    observed("truncate-append", Ordered, "discard", [12000, 16, 8000], [501, 500, 500, 1]),
    observed(
        "create-fsync",
        Journal,
        "4 MiB journal",
        [36516, 308, 4000],
        [2124, 1122, 1001, 1000],
    ),
    observed("append-fsync", Journal, "4 MiB journal", [24088, 24, 4000], [2004, 1019, 1001, 3]),
    observed("rename-replace", Journal, "4 MiB journal", [12060, 24, 2400], [601, 309, 301, 1]),
    observed("sequential", Journal, "4 MiB journal", [268276, 40, 262144], [435, 435, 218, 5]),
    observed("append-fsync", Journal, "external", [24016, 24, 4000], [2002, 1001, 1001, 3]),
    observed("create-fsync", Journal, "external", [36032, 300, 4000], [2003, 1001, 1001, 1000]),
    observed("delete", Journal, "discard", [304, 296, 0], [2, 1, 1, 0]),
    observed("rename-replace", Journal, "discard", [12028, 24, 2400], [601, 301, 301, 1]),
    observed("truncate-append", Journal, "discard", [20004, 16, 8000], [1002, 501, 501, 1]),
    observed("append-fsync", Ordered, "mb_stream_req 4", [20012, 24, 4000], [1001, 1000, 1000, 3]),
    observed("append-fsync", Ordered, "mb_stream_req 64", [20012, 24, 4000], [1001, 1000, 1000, 3]),
    observed("append-two", Ordered, "mb_stream_req 4", [11972, 32, 8000], [501, 500, 500, 18]),
    observed("append-two", Ordered, "mb_stream_req 64", [11980, 32, 8000], [501, 500, 500, 40]),
];

fn case(load: &str, mode: Mode, setting: &str) -> Case {
    let mut cases = all().into_iter();
    let found = cases.find(|case| {
        case.load_name() == load
            && case.mode == mode
            && case.delalloc
            && case.setting.name == setting
    });
    found.expect("a case of the comparison")
}

/// Within 2 % or four blocks: ext4 writes the superblock, or a block of the root
/// directory, once more or less, or syncs in two commits.
fn is_near(real_kib: u64, model: u64) -> bool {
    let (real, model) = (real_kib as f64, model as f64 / 1024.0);
    (real - model).abs() <= (0.02 * real).max(16.0)
}

/// Same, counted: 6 %, or two more or less. The 6 % are superblock writes of a journal of
/// 4 MiB with data in it, whose tail the kernel moves in more steps.
fn is_nearly(real: u64, model: u64) -> bool {
    real.abs_diff(model) <= (real * 6 / 100).max(2)
}

/// The model against the figures above: bytes per class within 2 % (the target is 15 %),
/// and nearly the same numbers of flushes, FUA writes, commits and extents.
#[test]
fn the_model_gives_what_was_observed() {
    let mut wrong = vec![];
    for seen in OBSERVED {
        let model: Figures =
            modelled(&case(seen.load, seen.mode, seen.setting)).expect("a case of the model");
        let what = format!("{} {:?} {}", seen.load, seen.mode, seen.setting);
        for (class, kib) in Class::ALL.into_iter().zip(seen.kib) {
            let bytes = model.bytes[class];
            if !is_near(kib, bytes) {
                wrong.push(format!("{what}, {}: {kib} KiB, {} KiB", class.name(), bytes / 1024));
            }
        }
        for (name, real, model) in [
            ("flushes", seen.flushes, model.flushes),
            ("FUA writes", seen.fua, model.fua),
            ("commits", seen.commits, model.commits),
            ("extents", seen.extents, model.extents),
        ] {
            if !is_nearly(real, model) {
                wrong.push(format!("{what}, {name}: {real}, {model}"));
            }
        }
    }
    assert!(wrong.is_empty(), "observed, then the model:\n{}", wrong.join("\n"));
}
