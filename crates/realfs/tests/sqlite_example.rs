//! The example that makes a fragmented SQLite database, with few rows, and what the study
//! reads of it.
//!
//! Needs root, a loop device, ext4, e2fsprogs and python3 with sqlite3; without them the
//! test says what is missing and ends.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "skipped tests say so")]

use std::process::Command;

use flashwise_study::fragmentation::extents;
use flashwise_study::fragmentation::layout::Layout;
use flashwise_study::{Line, run_cells};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sqlite-fragmented.sh");
const ROWS: u64 = 50;

#[test]
fn a_real_database_lies_in_a_piece_for_each_row_and_reads_as_that() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("extents");
    let run = Command::new(SCRIPT).arg(&path).arg(ROWS.to_string()).output().expect("bash");
    let message = String::from_utf8_lossy(&run.stderr);
    if let Some(what) = message.lines().find_map(|line| line.strip_prefix("needs ")) {
        eprintln!("skipped: needs {what}");
        return;
    }
    assert!(run.status.success(), "{message}");
    let text = std::fs::read_to_string(&path).expect("its output");
    let layout = Layout::parse(&text).expect("one file");
    assert_eq!(layout.block_bytes, 4096);
    // Each row is 4 blocks or, with a new leaf of the tree, 5, and has its own place.
    let n_blocks: u64 = layout.extents.iter().map(|e| e.len).sum();
    assert!((ROWS * 4..ROWS * 5).contains(&n_blocks), "{n_blocks} blocks");
    let n_extents = layout.extents.len() as u64;
    assert!((ROWS - 1..ROWS + 10).contains(&n_extents), "{n_extents} extents");
    let lines = run_cells(&extents::cells(&layout).expect("it fits"), 2, |_| ()).expect("runs");
    let rows: Vec<_> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Workload(row) => {
                Some((row.workload.as_str(), row.policy.as_str(), row.normalized))
            }
            Line::Point(_) => None,
        })
        .collect();
    let [
        ("extents-contiguous", "none", 1.0),
        ("extents", "none", none),
        ("extents", "hints", hints),
    ] = rows[..]
    else {
        panic!("{rows:?}");
    };
    assert!(none < hints && hints <= 1.001, "{none:.3} without hints, {hints:.3} with");
}
