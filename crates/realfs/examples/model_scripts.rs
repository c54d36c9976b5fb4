//! scratch
#![allow(clippy::print_stdout)]
use flashwise_hostfs::*;
fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| script | mode | ops | J B/op | J req/op | J KiB/req | M B/op | M req | D B/op | D req/op | D KiB/req | flush/op | FUA/op | commits | log/commit | sb | cp blocks | frags/files | reads KiB/req | us/op"
    );
    for name in flashwise_realfs::scripts::NAMES {
        if !only.is_empty() && !only.iter().any(|o| o == name) {
            continue;
        }
        for mode in ["ordered", "journal"] {
            let s = flashwise_realfs::scripts::script(name).unwrap();
            let n = s.n_ops() as f64;
            let cfg = FsConfig::parse(&format!("ext4,data={mode},journal-size=64m,request=1280k"))
                .unwrap();
            let mut host = Host::new(s, &cfg, 1 << 30).unwrap();
            let mut disk = RamDisk::new(RamSpeed::DDR4);
            let t = std::time::Instant::now();
            let r = host.run(|io| disk.submit(io));
            let el = t.elapsed();
            let c = host.counts();
            let cl = |k: IoClass| {
                let c = c.class(k);
                (
                    c.write_bytes as f64 / n,
                    c.write_requests as f64 / n,
                    c.write_bytes as f64 / 1024.0 / c.write_requests.max(1) as f64,
                    c.write_requests,
                )
            };
            let (j, m, d) = (cl(IoClass::Journal), cl(IoClass::Metadata), cl(IoClass::Data));
            let rd = c.class(IoClass::Data);
            let (files, frags) = host.fragmentation();
            println!(
                "| {name} | {mode} | {n} | {:.0} | {:.3} | {:.1} | {:.0} | {} | {:.0} | {:.3} | {:.1} | {:.3} | {:.3} | {} | {:.2} | {} | {} | {frags}/{files} | {}/{} | {:.1} | {r:?} {el:?} failed {:?}",
                j.0,
                j.1,
                j.2,
                m.0,
                m.3,
                d.0,
                d.1,
                d.2,
                c.flushes as f64 / n,
                c.fua as f64 / n,
                c.commits,
                c.log_blocks as f64 / c.commits.max(1) as f64,
                c.journal_superblocks,
                c.checkpoint_blocks,
                rd.read_bytes / 1024,
                rd.read_requests,
                (host.now_ns() - host.start_ns()) as f64 / 1e3 / n,
                host.application().failed().len()
            );
        }
    }
}
