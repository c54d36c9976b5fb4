//! What single calls do to the device, after what a real ext4 was measured to do.

use flashwise_hostfs::{
    Call, Counts, Fd, FsConfig, Host, IoClass, OpenFlags, Outcome, Paths, RamDisk, RamSpeed, Script,
};

const GIB: u64 = 1 << 30;

/// Runs a script on a RAM disk.
fn run(fs: &str, script: Script) -> Host<Script> {
    let config = FsConfig::parse(fs).expect("a valid file system");
    let mut host = Host::new(script, &config, GIB).expect("it fits");
    let mut disk = RamDisk::new(RamSpeed::DDR4);
    host.run(|io| disk.submit(io)).expect("it runs");
    host
}

fn class(counts: &Counts, class: IoClass) -> (u64, u64) {
    let c = counts.class(class);
    (c.write_requests, c.write_bytes)
}

/// `n` times: make a file, write 4 KiB, fsync, close.
fn create_fsync(n: u32) -> Script {
    let mut paths = Paths::new();
    let dir = paths.intern("/d");
    let mut calls = vec![];
    for k in 0..n {
        let path = paths.intern(&format!("/d/f{k:04}"));
        let fd = Fd(0);
        calls.extend([
            Call::Open { path, fd, flags: OpenFlags::CREATE },
            Call::Write { fd, offset: 0, len: 4096 },
            Call::Fsync { fd },
            Call::Close { fd },
        ]);
    }
    Script::new(paths, vec![Call::Mkdir { path: dir }], calls)
}

#[test]
fn create_write_fsync() {
    let host = run("ext4,journal_size=64m", create_fsync(1000));
    assert!(host.application().outcomes.iter().all(|o| matches!(o, Outcome::Done(_))));
    let c = host.counts();
    // Real: 8.01 log blocks a commit, one commit and one data request of 4 KiB a file, one
    // flush and one FUA.
    assert_eq!((c.commits, c.fua), (1000, 1000));
    assert_eq!(class(&c, IoClass::Data), (1000, 4_096_000));
    let log = c.log_blocks as f64 / 1000.0;
    assert!((7.8..8.2).contains(&log), "{log} log blocks a commit");
    assert_eq!(c.flushes, 1000);
}
