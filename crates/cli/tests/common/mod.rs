//! Running the command and reading what it says.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn flashwise(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashwise"));
    command.args(args).current_dir(root).output().expect("the command runs")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Runs, expects success, returns what was printed.
pub(crate) fn printed(args: &[&str]) -> String {
    let out = flashwise(args);
    assert!(out.status.success(), "{args:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// Runs, expects success, returns the JSON object.
pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).expect("one JSON object")
}

/// Runs, expects this exit status, returns the message.
pub(crate) fn refused(status: i32, args: &[&str]) -> String {
    let out = flashwise(args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {message}");
    assert!(!message.contains("panicked") && out.stdout.is_empty(), "{message}");
    message
}

pub(crate) fn path(dir: &tempfile::TempDir, name: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    path.to_str().expect("a plain path").to_owned()
}

pub(crate) fn file(dir: &tempfile::TempDir, name: &str, contents: &[u8]) -> String {
    let path = path(dir, name);
    std::fs::write(&path, contents).expect("a file");
    path
}
