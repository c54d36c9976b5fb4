//! How fast traces are read: `cargo bench -p flashwise-workload --bench readers`.
//!
//! A million random rows of each format in memory, read to the end: times in order
//! beside times of which every eighth steps back, and four devices in turns. The best
//! of five passes, in CPU time of one core.
#![allow(clippy::print_stdout, reason = "a benchmark reports to the person who ran it")]

#[path = "../tests/support/rows.rs"]
mod rows;

use std::io::Cursor;
use std::path::Path;

use cpu_time::ProcessTime;

use flashwise_workload::{Format, Source, TraceOptions, read_trace};
use rows::{Row, render};

const N_ROWS: u64 = 1_000_000;
const N_PASSES: usize = 5;

fn main() {
    println!("{:14} {:>10} {:>14} {:>14}", "format", "MiB", "ns/row", "ns/row, late");
    let (in_order, late) = (draw_rows(0), draw_rows(7));
    for format in Format::ALL {
        let (data, late) = (render(format, &in_order), render(format, &late));
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

/// Random rows; every eighth is `late_us` earlier than the one before.
fn draw_rows(late_us: u64) -> Vec<Row> {
    let mut draw = 1_u64;
    let row = |i| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Row {
            at_us: 1_577_808_144_360_767 + i - u64::from(i % 8 == 7) * late_us,
            device: i % 4,
            writes: draw >> 63 == 1,
            lba: draw >> 34,
            sectors: 8 * (1 + (draw >> 20) as u32 % 32),
        }
    };
    (0..N_ROWS).map(row).collect()
}
