//! Applications on a file system, from the command line.

mod common;

use common::{json, printed, refused};

const QUICK: [&str; 4] =
    ["varmail,runtime=300ms,files=100", "--fresh", "--fs", "ext4,data=journal"];

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["replay"], &QUICK[..], more].concat()
}

#[test]
fn an_application_runs_on_a_file_system_on_a_drive() {
    let text = printed(&args(&["--policy", "none", "--policy", "relation=hints"]));
    for part in [
        "file system: ext4,data=journal,journal=internal,discard=off,mkfs_discard=off",
        "writers wait at 1638 MiB",
        "written to the device: data [MiB]",
        "rounds of the ring",
        "fsync",
        "operation  policy",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn json_has_what_the_application_saw_and_every_choice() {
    let v = json(&args(&["--json"]));
    assert_eq!(v["format"], "application");
    let row = &v["rows"][0];
    let files = &row["files"];
    let fs = files["fs"].as_str().expect("a file system");
    for choice in ["data=journal", "commit=5s", "nr_requests=1023", "costs=default", "age=0%"] {
        assert!(fs.contains(choice), "{choice} in {fs}");
    }
    let n = |key: &str| files[key].as_f64().unwrap_or_else(|| panic!("{key} is a number"));
    assert!(n("ops_per_s") > 0.0 && n("journal_bytes") > n("data_bytes"));
    assert_eq!(files["journal_bytes"], row["bytes_journal"]);
    let ops = files["op_rows"].as_array().expect("operations");
    assert!(ops.iter().any(|op| op["name"] == "fsync" && op["p99_us"].is_number()));
}

#[test]
fn the_same_command_prints_the_same_bytes_and_another_seed_others() {
    let first = printed(&args(&["--json"]));
    assert_eq!(first, printed(&args(&["--json"])));
    assert_ne!(first, printed(&args(&["--json", "--seed", "2"])));
}

#[test]
fn the_list_names_applications_and_options() {
    let text = printed(&["replay", "--list"]);
    for part in
        ["varmail", "postmark", "journal_size", "varmail,files=1000,", "data=journal,commit=1"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let v = json(&["replay", "--list", "--json"]);
    assert!(v["applications"].as_array().is_some_and(|apps| apps.len() == 7));
}

#[test]
fn a_ram_disk_shows_the_host_alone() {
    let v = json(&["replay", "varmail,runtime=300ms", "--device", "ramdisk", "--json"]);
    assert!(v["rows"][0]["files"]["ops_per_s"].as_f64().is_some_and(|n| n > 10_000.0));
    assert!(v["rows"][0]["waf"].is_null());
}

#[test]
fn what_is_wrong_is_named_with_what_to_do() {
    let message = |more: &[&str]| refused(2, &[&["replay"], more].concat());
    let near = message(&["varmial"]);
    assert!(near.contains("no such file") && near.contains("did you mean `varmail`"), "{near}");
    let value = message(&["varmail,threads=0"]);
    assert!(value.contains("threads") && value.contains("from 1"), "{value}");
    let fs = message(&["varmail", "--fs", "ext4,comit=3"]);
    assert!(fs.contains("--fs") && fs.contains("did you mean «commit»"), "{fs}");
    let kind = message(&["varmail", "--fs", "zfs"]);
    assert!(kind.contains("«zfs»") && kind.contains("expected ext4"), "{kind}");
    let large = message(&["videoserver"]);
    assert!(large.contains("2314240 MiB") && large.contains("fewer"), "{large}");
    let size = message(&["varmail", "--fs", "ext4,size=1t"]);
    assert!(size.contains("smaller size"), "{size}");
    let inspect = message(&["varmail", "--inspect"]);
    assert!(inspect.contains("--list"), "{inspect}");
    let full = refused(
        1,
        &[
            "replay",
            "varmail,mean_size=14k",
            "--device",
            "tiny",
            "--fresh",
            "--fs",
            "ext4,size=16m",
        ],
    );
    assert!(full.contains("no space left"), "{full}");
}
