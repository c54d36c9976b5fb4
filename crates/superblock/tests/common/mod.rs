//! Images made by the real tools, and what those tools say about them.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use flashwise_superblock::{ByteRange, FileSystem, Journal, Ring, find};

/// Where system tools lie that are not on the path of every user.
const SBIN: &str = "/usr/sbin:/sbin:/usr/local/sbin";

pub(crate) fn command(tool: &str) -> Command {
    let mut command = Command::new(tool);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{SBIN}"));
    command
}

/// Says that a test does less here, and why.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn skipped(needs: &str) {
    eprintln!("skipped: needs {needs}");
}

/// Whether all tools are here; says which is not.
pub(crate) fn have(tools: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":" + SBIN;
    let there = |tool: &str| path.split(':').any(|dir| Path::new(dir).join(tool).is_file());
    let missing = tools.iter().find(|tool| !there(tool));
    if let Some(tool) = missing {
        skipped(tool);
    }
    missing.is_none()
}

#[allow(clippy::print_stderr, reason = "what a tool said about its failure")]
fn complain(text: &str) {
    eprintln!("{text}");
}

/// Runs a tool and returns what it printed; `None` if it failed.
pub(crate) fn output(tool: &str, args: &[&str]) -> Option<String> {
    let out = command(tool).args(args).output().ok()?;
    if !out.status.success() {
        complain(&format!("{tool} {args:?}: {}", String::from_utf8_lossy(&out.stderr)));
        return None;
    }
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Runs a tool that must succeed.
pub(crate) fn run(tool: &str, args: &[&str]) -> String {
    output(tool, args).unwrap_or_else(|| panic!("{tool} {args:?} failed"))
}

/// An empty sparse file of so many MiB.
pub(crate) fn sparse(dir: &tempfile::TempDir, name: &str, mib: u64) -> PathBuf {
    let path = dir.path().join(name);
    File::create(&path).and_then(|f| f.set_len(mib << 20)).expect("a sparse file");
    path
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// An image made by mkfs.ext4; `None` if it refuses.
pub(crate) fn ext(
    dir: &tempfile::TempDir,
    name: &str,
    mib: u64,
    options: &[&str],
) -> Option<PathBuf> {
    let path = sparse(dir, name, mib);
    output("mkfs.ext4", &[&["-q", "-F"], options, &[text(&path)]].concat())?;
    Some(path)
}

pub(crate) fn open(path: &Path) -> File {
    File::open(path).expect("an image")
}

pub(crate) fn found(path: &Path) -> FileSystem {
    find(&open(path), 0).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub(crate) fn ring(fs: &FileSystem) -> &Ring {
    match &fs.journal {
        Journal::Internal(ring) => ring,
        other => panic!("expected a journal inside, found {other:?}"),
    }
}

/// The blocks of the journal as debugfs lists them, in order, as ranges \[bytes\].
pub(crate) fn debugfs_ranges(path: &Path, block_bytes: u64) -> Vec<ByteRange> {
    let listed = run("debugfs", &["-R", "blocks <8>", text(path)]);
    let mut blocks: Vec<u64> =
        listed.split_whitespace().map(|n| n.parse().expect("a block")).collect();
    // The list holds the blocks of the map too; `stat` names them by kind.
    let stat = run("debugfs", &["-R", "stat <8>", text(path)]);
    let maps = map_blocks(&stat);
    blocks.retain(|block| !maps.contains(block));
    let mut ranges: Vec<ByteRange> = vec![];
    for block in blocks {
        let start = block * block_bytes;
        match ranges.last_mut() {
            Some(last) if last.end() == start => last.bytes += block_bytes,
            _ => ranges.push(ByteRange { start, bytes: block_bytes }),
        }
    }
    ranges
}

/// Blocks of a map in the output of `stat`: `(IND):7`, `(ETB0):12`.
fn map_blocks(stat: &str) -> Vec<u64> {
    let items = stat.split([',', '\n', ' ']);
    let of_maps = items.filter(|item| item.contains("IND)") || item.contains("(ETB"));
    of_maps.filter_map(|item| item.rsplit(':').next()?.trim().parse().ok()).collect()
}

/// A number after `key` in the output of a tool.
pub(crate) fn number_after(text: &str, key: &str) -> u64 {
    let rest = text.split(key).nth(1).unwrap_or_else(|| panic!("no {key} in {text}"));
    let rest = rest.trim_start_matches([' ', '=', ':', '\t']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number after {key} in {text}"))
}
