//! The command as its users run it: what it prints, in which form, and how it ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn flashwise(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashwise"));
    command.args(args).current_dir(root).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Runs, expects success, returns the JSON object.
fn json(args: &[&str]) -> Value {
    let out = flashwise(args);
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("one JSON object")
}

/// Runs, expects this exit status, returns the message.
fn refused(status: i32, args: &[&str]) -> String {
    let out = flashwise(args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{args:?}: {message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

fn file(dir: &tempfile::TempDir, name: &str, contents: &[u8]) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::File::create(&path).and_then(|mut f| f.write_all(contents)).expect("a file");
    path.to_str().expect("a plain path").to_owned()
}

const TRACE: &[u8] = b"0 0 0 8 0\n1000 0 8 8 0\n2000 0 0 16 1\n";

#[test]
fn the_example_of_the_readme_gives_a_row_for_each_policy() {
    let args =
        ["replay", "examples/sqlite.trace", "--policy", "none", "--policy", "relation=hints"];
    let v = json(&[&args[..], &["--json"]].concat());
    assert_eq!((&v["replay"], &v["seed"]), (&"examples/sqlite.trace".into(), &1.into()));
    assert_eq!(v["steady"], true);
    let rows = v["rows"].as_array().expect("rows");
    let policies: Vec<&Value> = rows.iter().map(|r| &r["policy"]).collect();
    assert_eq!(policies, ["none", "relation=hints"]);
    assert_eq!(
        (&rows[0]["relations"], &rows[1]["relations"]),
        (&"none".into(), &"inferred".into())
    );
    for row in rows {
        assert_eq!(row["requests"], 10_215);
        let n = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} is a number"));
        assert!(n("waf") > 0.9 && n("read_p50_us") <= n("read_p99_us"));
        assert!(n("die_utilization") > 0.0 && n("die_utilization") <= 1.0);
    }
    let table = text(&flashwise(&args).stdout);
    for line in ["write amplification", "read latency, mean [us]", "bounded by", "digest"] {
        assert!(table.contains(line), "{line} is missing in\n{table}");
    }
}

#[test]
fn every_key_of_a_row_is_there() {
    let v = json(&["replay", "examples/sqlite.trace", "--device", "tiny", "--fresh", "--json"]);
    let keys = "workload policy requests read_requests write_requests host_mib_s read_mib_s \
        write_mib_s iops read_mean_us read_p50_us read_p99_us read_p999_us read_max_us \
        write_mean_us write_p50_us write_p99_us write_p999_us write_max_us waf bytes_host \
        bytes_gc bytes_fold bytes_padding bytes_rmw erases erase_max gc_runs free_blocks \
        die_collisions die_utilization channel_utilization bottleneck fitted_requests relations \
        digest";
    for key in keys.split_whitespace() {
        assert!(v["rows"][0].get(key).is_some(), "{key}");
    }
    assert!(v["rows"][0].get("cpu_s").is_none(), "speeds only with --timing");
    let args =
        ["replay", "examples/sqlite.trace", "--device", "tiny", "--fresh", "--json", "--timing"];
    let timed = json(&args);
    assert!(timed["rows"][0]["host_pages_per_cpu_s"].as_f64() > Some(0.0));
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    for args in [
        &["replay", "examples/sqlite.trace", "--json", "--policy", "hints"][..],
        &["replay", "examples/sqlite.trace", "--queue-depth", "16"],
        &["replay", "examples/jobs/mixed-70-30.fio", "--device", "tiny", "--seed", "7"],
        &["replay", "examples/jobs/mixed.fio", "--json", "--policy", "hints"],
        &["device", "show", "fast24"],
    ] {
        let (a, b) = (flashwise(args), flashwise(args));
        assert!(a.status.success(), "{}", text(&a.stderr));
        assert_eq!(a.stdout, b.stdout, "{args:?}");
    }
}

#[test]
fn a_saved_drive_gives_the_figures_of_the_run_that_saved_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("aged.fwdrive");
    let path = path.to_str().expect("a plain path");
    let first = json(&[
        "replay",
        "examples/sqlite.trace",
        "--device",
        "tiny",
        "--save-drive",
        path,
        "--json",
    ]);
    let again = json(&["replay", "examples/sqlite.trace", "--device", path, "--json"]);
    assert_eq!(first["rows"], again["rows"]);
    let message = refused(
        2,
        &["replay", "examples/sqlite.trace", "--device", path, "--set", "ftl.handles=2"],
    );
    assert!(message.contains("--set cannot change a saved drive"), "{message}");
}

#[test]
fn compressed_traces_read_as_plain_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut gz = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gz.write_all(TRACE).expect("memory takes it");
    let plain = file(&dir, "a.trace", TRACE);
    let packed = file(&dir, "b.trace", &gz.finish().expect("memory takes it"));
    let rows = |path: &str| {
        json(&["replay", path, "--device", "tiny", "--json"])["rows"][0]["digest"].clone()
    };
    assert_eq!(rows(&plain), rows(&packed));
}

#[test]
fn bad_traces_are_refused_with_file_line_and_advice() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[u8], &[&str]); 6] = [
        ("empty.trace", b"", &["empty"]),
        ("columns.trace", b"0 0 0 8 0\n5 0 8\n", &["columns.trace:2", "5 columns"]),
        ("binary.trace", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0", &["binary.trace"]),
        ("back.trace", b"9 0 0 8 0\n5 0 0 8 0\n", &["back.trace:2", "sort"]),
        ("size.trace", b"0 0 0 8 0\n5 0 0 0 0\n", &["size.trace:2"]),
        ("op.trace", b"0 0 0 8 0\n5 0 0 8 7\n", &["op.trace:2"]),
    ];
    for (name, contents, expected) in cases {
        let path = file(&dir, name, contents);
        let message = refused(2, &["replay", &path, "--device", "tiny"]);
        for part in expected {
            assert!(message.contains(part), "{name}: {message}");
        }
    }
    assert!(refused(2, &["replay", "no-such.trace"]).contains("no-such.trace"));
    assert!(refused(2, &["replay", "crates"]).contains("crates"));
}

#[test]
fn bad_usage_is_refused_with_what_was_meant() {
    let trace = "examples/sqlite.trace";
    let cases: [(&[&str], &str); 10] = [
        (&["--device", "fast42"], "did you mean «fast24»"),
        (&["--set", "geometry.chanels=8"], "did you mean «geometry.channels»"),
        (&["--set", "geometry.dies_per_channel=0"], "geometry.dies_per_channel"),
        (&["--set", "ftl.over_provisioning=0"], "smallest that works"),
        (&["--set", "ftl.capacity_mib=999999"], "geometry.blocks_per_plane"),
        (&["--policy", "hnts"], "did you mean «hints»"),
        (&["--queue-depth", "0"], "--queue-depth"),
        (&["--time-scale", "-1"], "--time-scale"),
        (&["--format", "mrs"], "did you mean `msr`?"),
        (&["--fit", "shrink"], "compact"),
    ];
    for (args, expected) in cases {
        let message = refused(2, &[&["replay", trace], args].concat());
        assert!(message.contains(expected), "{args:?}: {message}");
    }
    refused(2, &["replay"]);
    refused(2, &["replya", trace]);
}

#[test]
fn options_without_effect_are_named() {
    let args = ["replay", "examples/sqlite.trace", "--device", "tiny", "--fresh"];
    let args = [&args[..], &["--queue-depth", "4", "--time-scale", "2"]].concat();
    let out = flashwise(&args);
    assert!(out.status.success());
    assert!(text(&out.stderr).contains("no effect of --time-scale"), "{}", text(&out.stderr));
}

#[test]
fn addresses_beyond_the_drive_are_fitted_or_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let far = file(&dir, "far.trace", b"0 0 800000000 8 0\n1000 0 16 8 0\n2000 0 800000000 8 1\n");
    let v = json(&["replay", &far, "--device", "tiny", "--json"]);
    assert_eq!((&v["fit"], &v["rows"][0]["fitted_requests"]), (&"compact".into(), &3.into()));
    let message = refused(2, &["replay", &far, "--device", "tiny", "--fit", "reject"]);
    assert!(message.contains("800000000") && message.contains("compact"), "{message}");
    let near = json(&["replay", "examples/sqlite.trace", "--json"]);
    assert_eq!(near["rows"][0]["fitted_requests"], 0);
}

#[test]
fn a_drive_that_is_not_steady_is_reported_and_fails() {
    let args =
        ["--set", "precondition.tolerance_percent=0", "--set", "precondition.drive_writes_max=2"];
    let args =
        [&["replay", "examples/sqlite.trace", "--device", "tiny", "--json"], &args[..]].concat();
    let out = flashwise(&args);
    assert_eq!(out.status.code(), Some(1));
    let v: Value = serde_json::from_slice(&out.stdout).expect("results are printed all the same");
    assert_eq!(v["steady"], false);
    assert!(text(&out.stderr).contains("precondition.drive_writes_max"));
}

#[test]
fn shown_presets_can_be_given_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = text(&flashwise(&["device", "list"]).stdout);
    for name in [
        "fast24",
        "fast24-2p",
        "nvme-a",
        "nvme-b",
        "nvme-c",
        "nvme-d",
        "sata-a",
        "sata-b",
        "tlc-slc",
        "mqsim",
        "bench-16g",
        "bench-1t",
        "tiny",
    ] {
        assert!(list.contains(name), "{list}");
        let shown = flashwise(&["device", "show", name]);
        let path = file(&dir, &format!("{name}.toml"), &shown.stdout);
        let again = flashwise(&["device", "show", &path]);
        assert!(again.status.success(), "{}", text(&again.stderr));
    }
    let changed = text(&flashwise(&["device", "show", "tiny", "--set", "planes=1"]).stdout);
    assert!(changed.contains("planes = 1"), "{changed}");
}

const MSR: &[u8] = b"128166372003061629,usr,0,Read,4096,4096,41286\n\
    128166372003061639,usr,1,Write,4096,8192,1963\n\
    128166372003061634,usr,0,Write,8192,4096,1\n";

#[test]
fn inspecting_says_what_was_understood() {
    let v = json(&["replay", "--inspect", "examples/ext4.blkparse.gz", "--json"]);
    assert_eq!((&v["format"], &v["compression"]), (&"blkparse".into(), &"gzip".into()));
    let n = |key: &str| v[key].as_u64().unwrap_or_else(|| panic!("{key} is a whole number"));
    let others = v["other_lines"].as_array().expect("lines that are no requests");
    let others: u64 = others.iter().filter_map(|o| o["lines"].as_u64()).sum();
    assert_eq!(n("lines"), n("rows") + others);
    let kinds = ["reads", "writes", "trims", "flushes", "write_zeroes"].map(n);
    assert_eq!(n("requests"), kinds.iter().sum::<u64>());
    assert!(kinds[..4].iter().all(|n| *n > 0), "{kinds:?}");
    let of_sizes = |key: &str| {
        let sizes = v["sizes"].as_array().expect("a histogram");
        sizes.iter().filter_map(|size| size[key].as_u64()).sum::<u64>()
    };
    assert_eq!([of_sizes("reads"), of_sizes("writes")], [n("reads"), n("writes")]);
    assert!(n("footprint_bytes") <= n("read_footprint_bytes") + n("end_bytes"));

    let table = text(&flashwise(&["replay", "--inspect", "examples/fio-v3.iolog"]).stdout);
    for part in
        ["fio-iolog", "span [s]", "lengths", "a.dat", "b.dat", "512 TiB apart", "file actions"]
    {
        assert!(table.contains(part), "no «{part}» in\n{table}");
    }
    let message = refused(2, &["replay", "--inspect", "examples/jobs/random-read.fio"]);
    assert!(message.contains("found a fio job"), "{message}");
}

#[test]
fn recorded_traces_replay_with_their_choices_told() {
    let dir = tempfile::tempdir().expect("a directory");
    for trace in ["examples/ext4.blkparse.gz", "examples/fio-v3.iolog"] {
        let v = json(&["replay", trace, "--json"]);
        assert!(v["rows"][0]["requests"].as_u64() > Some(300), "{trace}");
    }
    let path = file(&dir, "usr.csv", MSR);
    let out = flashwise(&["replay", &path, "--device", "tiny", "--fresh"]);
    let notes = text(&out.stderr);
    for part in ["2 devices (usr_0, usr_1)", "rows out of order: 1", "response times"] {
        assert!(notes.contains(part), "no «{part}» in {notes}");
    }
    let rows = |args: &[&str]| {
        let args = [&["replay", &path, "--device", "tiny", "--fresh", "--json"], args].concat();
        json(&args)["rows"][0]["requests"].clone()
    };
    assert_eq!(rows(&[]), 3);
    assert_eq!(rows(&["--select", "usr_1"]), 1);
    assert_eq!(rows(&["--trace-devices", "shared"]), 3);
    let wrapped = ["replay", &path, "--device", "tiny", "--fresh", "--fit", "wrap"];
    let notes = text(&flashwise(&wrapped).stderr);
    assert!(notes.contains("fall on the same addresses"), "{notes}");
    let message = refused(2, &["replay", &path, "--select", "usr_2"]);
    assert!(message.contains("did you mean `usr_"), "{message}");
    assert!(refused(2, &["replay", &path, "--reorder", "0"]).contains("never go back"));
}

#[test]
fn bad_lines_are_skipped_as_far_as_allowed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(&dir, "usr.csv", &[MSR, b"oops\n", MSR].concat());
    assert!(refused(2, &["replay", "--inspect", &path]).contains("usr.csv:4: expected 7 columns"));
    let v = json(&["replay", "--inspect", &path, "--skip-bad", "1", "--json"]);
    assert_eq!((&v["skipped_lines"], &v["rows"]), (&1.into(), &6.into()));
    assert_eq!(v["skipped_examples"][0]["line"], 4);
}

#[test]
fn columns_are_described_or_the_grammar_is_explained() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(&dir, "own.txt", b"time op sector bytes\n5 W 8 4096\n9 R 8 4096\n");
    let inspect = ["replay", "--inspect", &path, "--json", "--columns"];
    let v = json(&[&inspect[..], &["time:us,op,lba:512,size:bytes"]].concat());
    assert_eq!((&v["format"], &v["requests"]), (&"custom".into(), &2.into()));
    assert_eq!(v["span_s"], 4e-6);
    let message = refused(2, &[&inspect[..], &["time:us,op,lba:512,sise:bytes"]].concat());
    assert!(message.contains("did you mean `size`?") && message.contains("for example time:us"));
    assert!(refused(2, &["replay", &path]).contains("--columns"));
}

#[test]
fn several_jobs_give_one_row_and_a_line_each() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = b"[global]\nsize=2m\n[reader]\nrw=randread\nnumjobs=2\ngroup_reporting\n\
        [log]\nrw=write\nfdatasync=4\n[scan]\nstonewall\nrw=read\nbs=64k\n";
    let path = file(&dir, "three.fio", text);
    let args = ["replay", &path, "--device", "tiny", "--policy", "none", "--policy", "hints"];
    let v = json(&[&args[..], &["--json"]].concat());
    assert_eq!(v["format"], "fio job");
    for row in v["rows"].as_array().expect("rows") {
        let jobs = row["jobs"].as_array().expect("jobs");
        let name = |job: &Value| job["name"].as_str().expect("a name").to_owned();
        assert_eq!(jobs.iter().map(name).collect::<Vec<_>>(), ["reader x 2", "log", "scan"]);
        let sum = |key: &str| jobs.iter().map(|job| job[key].as_u64().unwrap_or(0)).sum::<u64>();
        for key in ["requests", "read_requests", "write_requests", "flush_requests"] {
            assert_eq!(row[key], sum(key), "{key}");
        }
        assert_eq!((&jobs[0]["requests"], &jobs[2]["requests"]), (&1024.into(), &32.into()));
        // Four writes to a flush, but none after the last write.
        assert_eq!(
            (&jobs[1]["write_requests"], &jobs[1]["flush_requests"]),
            (&512.into(), &127.into())
        );
        assert!(jobs[0]["write_p50_us"].is_null() && jobs[1]["flush_p99_us"].as_f64() > Some(0.0));
    }
    let table = text_of(&args);
    for part in ["reader x 2", "scan", "flush 50 % [us]", "bounded by"] {
        assert!(table.contains(part), "no «{part}» in\n{table}");
    }
}

fn text_of(args: &[&str]) -> String {
    text(&flashwise(args).stdout)
}

#[test]
fn a_warm_up_is_left_out_and_a_run_of_nothing_else_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = "[a]\nrw=randwrite\nsize=50%\nruntime=200ms\ntime_based\n";
    let path = file(&dir, "ramp.fio", format!("{job}ramp_time=100ms\n").as_bytes());
    let v = json(&["replay", &path, "--device", "tiny", "--json"]);
    let elapsed = v["rows"][0]["elapsed_s"].as_f64().expect("a time");
    assert!((elapsed - 0.2).abs() < 0.01, "{elapsed}");
    let path = file(&dir, "only.fio", b"[a]\nrw=randwrite\nsize=64k\nramp_time=9\n");
    let message = refused(2, &["replay", &path, "--device", "tiny"]);
    assert!(message.contains("ramp_time") && message.contains("16 requests"), "{message}");
}

#[test]
fn bad_jobs_are_refused_with_file_line_and_advice() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[&str]); 6] = [
        ("[a]\nrw=randwrit\n", &["bad.fio:2", "`rw`", "randwrite"]),
        ("[a]\nnumjob=2\n", &["bad.fio:2", "did you mean `numjobs`?"]),
        ("[a]\nzonemode=zbd\n", &["bad.fio:2", "expected none"]),
        ("[a]\nsize=1t\n", &["bad.fio:2", "`size`", "a drive of"]),
        ("[w]\nrw=write\nwrite_hint=long\n", &["bad.fio:3", "handle 3 of job «w»", "ftl.handles"]),
        ("[a]\ninclude gone.inc\n", &["bad.fio:2", "gone.inc"]),
    ];
    for (text, expected) in cases {
        let path = file(&dir, "bad.fio", text.as_bytes());
        let message = refused(2, &["replay", &path, "--device", "tiny"]);
        for part in expected {
            assert!(message.contains(part), "no «{part}» in: {message}");
        }
    }
}

#[test]
fn a_study_is_named_and_its_directory_can_be_made() {
    assert!(refused(2, &["study", "fragmentaton"]).contains("fragmentation"));
    let dir = tempfile::tempdir().unwrap();
    let taken = file(&dir, "taken", b"a file");
    let message = refused(2, &["study", "fragmentation", "--quick", "--out", &taken]);
    assert!(message.contains(&taken) && message.contains("directory"), "{message}");
    let message = refused(2, &["study", "fragmentation", "--extents", &taken]);
    assert!(message.contains(&taken) && message.contains("filefrag -v"), "{message}");
}
