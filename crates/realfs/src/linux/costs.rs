//! CPU time of file-system calls on this machine, as the model counts it.
//!
//! Each figure is the CPU time of the calling thread, the least of five rounds: other load
//! and what the device's own threads do are not in it. Figures of a shared machine still
//! differ by a third from run to run.

use std::fs::{File, OpenOptions, remove_file};
use std::io::Write as _;
use std::os::unix::fs::{FileExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cpu_time::ThreadTime;

/// Rounds of which the fastest counts.
const ROUNDS: usize = 5;
const PAGE: u64 = 4096;
/// Pages of the file that is read and overwritten (64 MiB).
const N_PAGES: u64 = 16_384;

/// CPU time of one of `n` calls \[ns\].
fn measure(n: u64, mut call: impl FnMut(u64) -> std::io::Result<()>) -> std::io::Result<f64> {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let start = ThreadTime::now();
        for i in 0..n {
            call(i)?;
        }
        least = least.min(start.elapsed().as_nanos() as f64 / n as f64);
    }
    Ok(least)
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn names(dir: &Path, n: u64) -> Vec<PathBuf> {
    (0..n).map(|i| dir.join(format!("host-costs-{i:05}"))).collect()
}

/// CPU time to make and to remove a file of so many pages \[ns\].
fn make_and_remove(dir: &Path, n: u64, pages: u64) -> std::io::Result<(f64, f64)> {
    let names = names(dir, n);
    let contents = vec![1; (pages * PAGE) as usize];
    let (mut made, mut removed) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let start = ThreadTime::now();
        for name in &names {
            let mut file = open(name)?;
            if pages > 0 {
                file.write_all(&contents)?;
            }
        }
        made = made.min(start.elapsed().as_nanos() as f64 / n as f64);
        let start = ThreadTime::now();
        names.iter().try_for_each(remove_file)?;
        removed = removed.min(start.elapsed().as_nanos() as f64 / n as f64);
    }
    Ok((made, removed))
}

/// CPU time of reads past the page cache, of 4 KiB and of 1 MiB \[ns\]; none where the file
/// system has no such reads.
fn direct_reads(file: &File, path: &Path) -> std::io::Result<(f64, f64)> {
    file.sync_all()?;
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else {
        return Ok((f64::NAN, f64::NAN));
    };
    // Memory has to begin at a page.
    let mut memory = vec![0; (1 << 20) + PAGE as usize];
    let skip = memory.as_ptr().align_offset(PAGE as usize);
    let aligned = &mut memory[skip..skip + (1 << 20)];
    let place = |i: u64, pages: u64| i * 7919 % (N_PAGES / pages) * pages * PAGE;
    let small = measure(20_000, |i| file.read_exact_at(&mut aligned[..4096], place(i, 1)))?;
    let large = measure(500, |i| file.read_exact_at(aligned, place(i, 256)))?;
    Ok((small, large))
}

/// What calls cost in a directory: (what, CPU time \[ns\], the fields of
/// `flashwise_hostfs::HostCosts` it is made of). 100 MiB are used for a while.
pub fn host_costs(dir: &Path) -> std::io::Result<Vec<(&'static str, f64, &'static str)>> {
    let path = dir.join("host-costs-file");
    let file = open(&path)?;
    let mib = vec![1; 1 << 20];
    for at in 0..(N_PAGES * PAGE) >> 20 {
        file.write_all_at(&mib, at << 20)?;
    }
    let mut buffer = vec![0; 1 << 16];
    let at = |i: u64, pages: u64| i % (N_PAGES / pages) * pages * PAGE;
    let read = |i: u64, buffer: &mut [u8], pages| file.read_exact_at(buffer, at(i, pages));
    let read_byte = measure(200_000, |i| read(i, &mut buffer[..1], 1))?;
    let read_page = measure(100_000, |i| read(i, &mut buffer[..4096], 1))?;
    let read_64k = measure(20_000, |i| read(i, &mut buffer, 16))?;
    let write_page = measure(100_000, |i| file.write_all_at(&mib[..4096], at(i, 1)))?;
    let write_64k = measure(20_000, |i| file.write_all_at(&mib[..1 << 16], at(i, 16)))?;
    let stat = measure(100_000, |_| std::fs::metadata(&path).map(drop))?;
    let open_close = measure(100_000, |_| open(&path).map(drop))?;
    let (direct_4k, direct_1m) = direct_reads(&file, &path)?;
    remove_file(&path)?;
    let (make, remove) = make_and_remove(dir, 5_000, 0)?;
    let (make_128k, remove_128k) = make_and_remove(dir, 500, 32)?;
    let copy = (read_64k - read_byte) / 16.0;
    let over = (write_64k - write_page) / 15.0;
    Ok(vec![
        ("read of one byte, cached", read_byte, "syscall_ns"),
        ("read of 4 KiB, cached", read_page, ""),
        ("  each 4 KiB of a read of 64 KiB", copy, "page_ns"),
        ("overwrite of 4 KiB, buffered", write_page, ""),
        ("  each 4 KiB of one of 64 KiB", over, "page_ns"),
        ("  beside that and the system call", write_page - over - read_byte, "write_ns"),
        ("stat", stat, "syscall_ns + path_ns"),
        ("open and close", open_close, "2 syscall_ns + path_ns"),
        ("make an empty file", make, "... + namespace_ns + log blocks"),
        ("remove one", remove, "syscall_ns + path_ns + namespace_ns + log blocks"),
        ("each 4 KiB written to a new file", (make_128k - make) / 32.0, "page_ns + new_page_ns"),
        ("each 4 KiB of a file removed", (remove_128k - remove) / 32.0, "free_page_ns"),
        ("direct read of 4 KiB", direct_4k, "syscall_ns + map_ns + bio... + command_ns"),
        ("direct read of 1 MiB", direct_1m, "the same, with 256 bio_page_ns"),
    ])
}
