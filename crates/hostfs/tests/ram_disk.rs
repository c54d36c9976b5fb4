//! The host's part in reading a fragmented file: Figures 4 to 6 of the FAST'24 fragmentation
//! paper, on a RAM disk.

#![allow(clippy::print_stdout, reason = "figures are printed beside their bounds")]

use flashwise_hostfs::{
    Call, Fd, FsConfig, Host, IoOp, OpenFlags, Paths, RamDisk, RamSpeed, Script,
};

const FILE: u64 = 8 << 20;

/// Time to read an 8 MiB file in `n` pieces with one direct read \[us\], and the requests
/// that takes.
fn read_us(n: u64, fs: &str) -> (f64, usize) {
    let mut paths = Paths::new();
    let (file, dummy) = (paths.intern("/file"), paths.intern("/dummy"));
    let (file_fd, dummy_fd) = (Fd(0), Fd(1));
    let flags = OpenFlags { direct: true, ..OpenFlags::CREATE };
    let mut prepare = vec![
        Call::Open { path: file, fd: file_fd, flags },
        Call::Open { path: dummy, fd: dummy_fd, flags },
    ];
    for _ in 0..n {
        prepare.push(Call::Append { fd: file_fd, len: FILE / n });
        prepare.push(Call::Append { fd: dummy_fd, len: FILE / n });
    }
    let script =
        Script::new(paths, prepare, vec![Call::Read { fd: file_fd, offset: 0, len: FILE }]);
    let config = FsConfig::parse(fs).expect("a valid file system");
    let mut host = Host::new(script, &config, 8 << 30).expect("it fits");
    let mut disk = RamDisk::new(RamSpeed::DDR4);
    let mut n_reads = 0;
    host.run(|io| {
        n_reads += usize::from(io.op == IoOp::Read);
        disk.submit(io)
    })
    .expect("it runs");
    ((host.now_ns() - host.start_ns()) as f64 / 1000.0, n_reads)
}

#[test]
fn pieces_cost_the_host_half_as_much_again_at_depth_one_and_less_in_a_queue() {
    let fs = |depth| {
        format!(
            "ext4,journal=none,prealloc=off,stream_blocks=4200000000,nodelalloc,costs=fast24,segments=256,nr_requests={depth}"
        )
    };
    let (whole, n_whole) = read_us(1, &fs(1));
    let (pieces, n_pieces) = read_us(256, &fs(1));
    assert_eq!((n_whole, n_pieces), (8, 256));
    let ratio = pieces / whole;
    println!("depth 1: {whole:.0} us whole, {pieces:.0} us in 256 pieces: {ratio:.2} (paper 1.5)");
    assert!((1.4..1.7).contains(&ratio), "{ratio}");
    // Up to 8 pieces of 1 MiB nothing changes: requests are no longer than that.
    let (eight, n_eight) = read_us(8, &fs(1));
    assert_eq!(n_eight, 8);
    assert!((eight / whole - 1.0).abs() < 0.03, "{eight} {whole}");
    // In a queue the device works while the host makes the next requests. (The paper then sees
    // no difference at all: its RAM disk is slower than the work of its host, which this one is
    // not.)
    let (queued, _) = read_us(256, &fs(128));
    println!("depth 128: {queued:.0} us in 256 pieces");
    assert!(queued < 0.9 * pieces, "{queued} {pieces}");
}
