//! Applications on a file system on a drive.

use flashwise_hostfs::{Call, Fd, FsConfig, Host, HostError, OpenFlags, Paths, RamSpeed, Script};
use flashwise_lab::{LabError, Pace, Policy, Replay, Row, replay_files, run_files_on_ram};
use flashwise_ssd::{DeviceConfig, Options, Ssd};
use flashwise_workload::AppSpec;

fn drive(preset: &str, policy: &Policy) -> Ssd {
    let cfg = DeviceConfig::open(preset, &[]).expect("a preset");
    Ssd::new(cfg, Options::default()).expect("a drive").with_relation(policy.relation)
}

fn run(app: &str, fs: &str, policy: &str) -> Row {
    let policy = Policy::parse(policy).expect("a policy");
    let mut ssd = drive("tlc-slc", &policy);
    let app = AppSpec::parse(app).expect("an application").build(1);
    let config = FsConfig::parse(fs).expect("a file system");
    let mut host = Host::new(app, &config, ssd.capacity_sectors() * 512).expect("it fits");
    let spec =
        Replay { workload: "app", policy: &policy, pace: Pace::Driven, fit: None, cpu_clock: None };
    replay_files(&mut ssd, &mut host, &spec).expect("it runs")
}

const VARMAIL: &str = "varmail,runtime=1s";

#[test]
fn the_bytes_of_the_host_are_the_bytes_of_the_drive() {
    let row = run(VARMAIL, "ext4,data=journal", "none");
    let files = row.files.as_ref().expect("an application ran");
    let classes = row.classes.expect("writes carry classes");
    assert_eq!(files.journal_bytes, classes.bytes_journal);
    assert_eq!(files.metadata_bytes, classes.bytes_metadata);
    assert_eq!(files.data_bytes, classes.bytes_hot + classes.bytes_cold);
    let all = files.journal_bytes + files.metadata_bytes + files.data_bytes;
    assert_eq!(all, row.bytes_host);
    assert_eq!(row.flush_requests, files.flushes);
    assert!(files.commits > 100 && row.relations == flashwise_lab::Relations::None);
    let ops: u64 = files.op_rows.iter().map(|op| op.ops).sum();
    assert_eq!(ops, files.ops);
    // The preparation does not count: a second is what it ran.
    assert!((0.99..1.1).contains(&files.run_s), "{}", files.run_s);
    assert!((row.elapsed_s / files.run_s - 1.0).abs() < 1e-3, "{}", row.elapsed_s);
}

#[test]
fn the_same_run_gives_the_same_row() {
    let row =
        || run("fileserver,files=200,threads=8,runtime=1s", "ext4,memory=64m", "relation=hints");
    let first = row();
    assert_eq!(first, row());
    assert_eq!(first.relations, flashwise_lab::Relations::Carried);
}

#[test]
fn what_the_journal_holds_decides_what_the_drive_gets() {
    let share = |fs: &str| {
        let files = run(VARMAIL, fs, "none").files.expect("an application ran");
        files.journal_bytes as f64 / (files.journal_bytes + files.data_bytes) as f64
    };
    let (journal, ordered) = (share("ext4,data=journal"), share("ext4"));
    assert!(journal > ordered + 0.05, "{journal} {ordered}");
    assert_eq!(share("ext4,journal=none"), 0.0);
    // An external journal is on a device of its own: its bytes do not reach the drive.
    let row = run(VARMAIL, "ext4,journal=external", "none");
    let files = row.files.expect("an application ran");
    assert!(files.journal_bytes > 0);
    assert_eq!(row.bytes_host, files.data_bytes + files.metadata_bytes);
}

#[test]
fn an_application_that_never_needs_the_drive_is_a_row() {
    let mut paths = Paths::new();
    let path = paths.intern("/a");
    let calls = vec![
        Call::Open { path, fd: Fd(0), flags: OpenFlags::CREATE },
        Call::Append { fd: Fd(0), len: 4096 },
        Call::Close { fd: Fd(0) },
        Call::Stat { path },
    ];
    let policy = Policy::none();
    let mut ssd = drive("tlc-slc", &policy);
    let script = Script::new(paths, vec![], calls);
    let mut host = Host::new(script, &FsConfig::default(), 1 << 30).expect("it fits");
    let spec =
        Replay { workload: "app", policy: &policy, pace: Pace::Driven, fit: None, cpu_clock: None };
    let row = replay_files(&mut ssd, &mut host, &spec).expect("it runs");
    assert_eq!(row.requests, 0);
    let files = row.files.expect("it ran");
    assert_eq!(files.ops, 4);
    assert!((row.elapsed_s / files.run_s - 1.0).abs() < 1e-6, "{}", row.elapsed_s);
}

#[test]
fn files_that_do_not_fit_are_told_with_the_call_that_failed() {
    let policy = Policy::none();
    let mut ssd = drive("tiny", &policy);
    let app = AppSpec::parse("varmail,files=5000,mean_size=64k").expect("valid").build(1);
    let config = FsConfig::parse("ext4,journal_size=4m").expect("valid");
    let host = Host::new(app, &config, ssd.capacity_sectors() * 512);
    let mut host = host.expect("the file system itself fits");
    let spec =
        Replay { workload: "app", policy: &policy, pace: Pace::Driven, fit: None, cpu_clock: None };
    let error = replay_files(&mut ssd, &mut host, &spec).expect_err("20 MiB take no 320 MiB");
    assert!(matches!(error, LabError::Host(HostError::Prepare { .. })), "{error}");
    assert!(error.to_string().contains("no space left"), "{error}");
}

#[test]
fn a_ram_disk_shows_the_host_alone() {
    let run = |fs: &str| {
        let app = AppSpec::parse("varmail,runtime=1s,threads=4").expect("valid").build(1);
        let config = FsConfig::parse(fs).expect("valid");
        let mut host = Host::new(app, &config, 8 << 30).expect("it fits");
        run_files_on_ram(&mut host, RamSpeed::DDR4).expect("it runs").ops_per_s
    };
    let (two, one) = (run("ext4,cores=2"), run("ext4,cores=1"));
    assert!((1.3..2.1).contains(&(two / one)), "{two} {one}");
    assert!(run("ext4,costs=none") > two);
}
