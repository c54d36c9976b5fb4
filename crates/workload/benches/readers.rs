//! How fast traces are read: `cargo bench -p flashwise-workload --bench readers`.
//!
//! A million random rows of each format in memory, read to the end: times in order
//! beside times of which every eighth steps back, and four devices in turns. The best
//! of five passes, in CPU time of one core.
#![allow(clippy::print_stdout, reason = "a benchmark reports to the person who ran it")]

use std::fmt::Write as _;
use std::io::Cursor;
use std::path::Path;

use cpu_time::ProcessTime;

use flashwise_workload::{Format, Source, TraceOptions, read_trace};

const N_ROWS: u64 = 1_000_000;
const N_PASSES: usize = 5;

fn main() {
    println!("{:14} {:>10} {:>14} {:>14}", "format", "MiB", "ns/row", "ns/row, late");
    for format in Format::ALL {
        let (data, late) = (render(format, 0), render(format, 7));
        let mib = data.len() as f64 / f64::from(1 << 20);
        let lenient = if format.reorder_rows() == 0 { f64::NAN } else { best_ns(format, &late) };
        println!("{:14} {mib:10.1} {:14.1} {lenient:14.1}", format.name(), best_ns(format, &data));
    }
}

/// Best time per row of several passes \[ns\].
fn best_ns(format: Format, data: &[u8]) -> f64 {
    let columns = (format == Format::Custom)
        .then(|| "device,op,size:bytes,lba:512,time:us".parse().expect("a description"));
    let opts = TraceOptions { columns, ..TraceOptions::default() };
    let pass = || {
        let input = Box::new(Cursor::new(data.to_vec()));
        let start = ProcessTime::now();
        let mut reader = read_trace(Path::new("bench"), input, &opts).expect("a trace");
        while reader.next_request().expect("a row").is_some() {}
        assert_eq!((reader.rows(), reader.format()), (N_ROWS, format));
        start.elapsed().as_nanos() as f64 / N_ROWS as f64
    };
    (0..N_PASSES).map(|_| pass()).fold(f64::INFINITY, f64::min)
}

/// Rows of a format; every eighth is `late_us` earlier than the one before.
fn render(format: Format, late_us: u64) -> Vec<u8> {
    let mut out = match format {
        Format::CloudPhysicsCsv => "version,time,op,size,lbn\n".to_owned(),
        Format::FioIolog => "fio version 3 iolog\n".to_owned(),
        _ => String::new(),
    };
    let mut binary = Vec::new();
    let mut draw = 1_u64;
    for i in 0..N_ROWS {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let us = 1_577_808_144_360_767 + i - u64::from(i % 8 == 7) * late_us;
        let (lba, sectors, device) = (draw >> 34, 8 * (1 + (draw >> 20) % 32), i % 4);
        let (offset, bytes) = (lba * 512, sectors * 512);
        let (s, below) = (us / 1_000_000, us % 1_000_000);
        let (letter, word, code) = match draw >> 63 {
            0 => ("R", "Read", 0x28_u8),
            _ => ("W", "Write", 0x2a),
        };
        let bit = u8::from(letter == "W");
        match format {
            Format::Mqsim => writeln!(out, "{us}000 {device} {lba} {sectors} {}", 1 - bit),
            Format::CloudPhysicsCsv => writeln!(out, "1,{s}.{below:06},{code:x},{bytes},{lba}"),
            Format::Msr => writeln!(out, "{us}0,h,{device},{word},{offset},{bytes},7"),
            Format::Alibaba => writeln!(out, "{device},{letter},{offset},{bytes},{us}"),
            Format::Tencent => writeln!(out, "{s},{lba},{sectors},{bit},{device}"),
            Format::Systor17 => {
                writeln!(out, "{s}.{below:06}000,0.000307000,{letter},{device},{offset},{bytes}")
            }
            Format::Fiu => writeln!(
                out,
                "{us}000 4253 nfsd {lba} {sectors} {letter} 6 {device} {draw:016x}{draw:016x}"
            ),
            Format::Spc => writeln!(out, "{device},{lba},{bytes},{letter},{s}.{below:06}"),
            Format::FioIolog => {
                let word = word.to_lowercase();
                writeln!(out, "{us} /dev/vd{device} {word} {offset} {bytes}")
            }
            Format::Blkparse => writeln!(
                out,
                "  8,{device}    3 {i:8} {s:5}.{below:06}000   697  Q {letter:>3}S {lba} + {sectors} [x]"
            ),
            Format::Custom => writeln!(out, "{device} {word} {bytes} {lba} {us}"),
            _ => {
                let words = [1, bytes as u32, 1].map(u32::to_le_bytes).concat();
                let version = if format == Format::Vscsi1 { 1 } else { 2 };
                let head = [code, 0, 0, version];
                let (lba, us) = (lba.to_le_bytes(), us.to_le_bytes());
                binary.extend(match version {
                    1 => [&words[..], &head, &lba, &us].concat(),
                    _ => [&head[..], &words, &lba, &us, &[0; 8]].concat(),
                });
                Ok(())
            }
        }
        .expect("memory takes it");
    }
    if binary.is_empty() { out.into_bytes() } else { binary }
}
