//! `flashwise replay --inspect`: what was understood of a trace, without a drive.
//!
//! One JSON object is made first, and the tables are laid out from it, so that the two
//! cannot disagree. Its keys end in their units.

use anyhow::anyhow;
use serde_json::{Value, json};

use flashwise_report::{Figure, figures_table, json_text, list_table};
use flashwise_workload::{
    Profile, Profiled, SizeClass, Summary, TraceReader, open_trace, summarize,
};

use crate::Failure;
use crate::args::ReplayArgs;
use crate::output::{self, Progress};
use crate::replay::is_job;

/// Granularity of the footprint \[sectors\]: 4 KiB, the mapping unit of most drives.
const UNIT_SECTORS: u64 = 8;
const SECTOR_BYTES: u64 = 512;
/// Devices that the table lists; the JSON lists all.
const DEVICES_SHOWN: usize = 20;

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let path = args.input().display();
    if is_job(args.input()) {
        return Err(Failure::Input(anyhow!(
            "{path}: --inspect expects a trace, found a fio job (*.fio); replay the job, or read \
             it: it is the description"
        )));
    }
    let unused = [
        (!args.policies.is_empty(), "--policy"),
        (!args.set.is_empty(), "--set"),
        (args.fresh, "--fresh"),
        (args.queue_depth.is_some(), "--queue-depth"),
        (args.time_scale != 1.0, "--time-scale"),
        (args.save_drive.is_some(), "--save-drive"),
        (args.timing, "--timing"),
        (args.journal.is_asked(), "--journal-of or --journal-range"),
        (args.watch.is_asked(), "--series or --latencies"),
    ];
    for (_, name) in unused.iter().filter(|(given, _)| *given) {
        output::message(&format!("note: no effect of {name}: --inspect replays nothing"));
    }
    let progress = Progress::start("reading the trace");
    let reader = open_trace(args.input(), &args.trace_options()).map_err(Failure::input)?;
    let mut source = Profiled::new(reader);
    let summary = summarize(&mut source, UNIT_SECTORS).map_err(Failure::input)?;
    drop(progress);
    let (reader, profile) = source.into_parts();
    let object = object(args, &reader, &summary, &profile);
    if args.json {
        return output::results(&json_text(&object));
    }
    output::results(&tables(&object))
}

/// End of the last address; of devices side by side, of the one that ends last.
fn end_sectors(reader: &TraceReader, s: &Summary) -> u64 {
    let apart = reader.devices().iter().any(|d| d.base_sectors > 0);
    let ends = reader.devices().iter().map(|d| d.end_sectors);
    ends.max().filter(|_| apart).unwrap_or(s.max_lba_end)
}

fn object(args: &ReplayArgs, reader: &TraceReader, s: &Summary, p: &Profile) -> Value {
    let tally = reader.tally();
    let span_s = s.span_ns as f64 / 1e9;
    let mean = |bytes: u64, n: u64| (n > 0).then(|| bytes as f64 / n as f64);
    let percent = |part: u64, n: u64| (n > 0).then(|| part as f64 / n as f64 * 100.0);
    let sizes = p.sizes().iter().map(size).collect::<Vec<_>>();
    let others = tally.others.iter().map(|(why, n)| json!({ "reason": why, "lines": n }));
    let kinds = tally.bad_kinds.iter().map(|(what, n)| json!({ "expected": what, "lines": n }));
    let examples = tally
        .bad_examples
        .iter()
        .map(|bad| json!({ "line": bad.line, "expected": bad.expected, "found": bad.found }));
    let devices = reader.devices().iter().map(|d| {
        json!({
            "name": d.name,
            "rows": d.rows,
            "kept": d.kept,
            "end_bytes": d.end_sectors * SECTOR_BYTES,
            "base_bytes": d.base_sectors * SECTOR_BYTES,
        })
    });
    let mut notices = reader.notices();
    notices.extend(s.implausible_span());
    json!({
        "inspect": args.input().display().to_string(),
        "format": reader.format().to_string(),
        "compression": reader.compression().to_string(),
        "time_unit": reader.time_unit().to_string(),
        "lines": tally.lines,
        "rows": tally.rows,
        "requests": s.requests,
        "reads": s.reads,
        "writes": s.writes,
        "fua_writes": p.fua_writes,
        "trims": s.trims,
        "flushes": s.flushes,
        "write_zeroes": s.write_zeroes,
        "span_s": span_s,
        "requests_per_s": (s.span_ns > 0).then(|| s.requests as f64 / span_s),
        "busiest_second_requests": p.busiest_second_requests,
        "read_bytes": s.read_bytes,
        "write_bytes": s.write_bytes,
        "trim_bytes": s.trim_bytes,
        "mean_read_bytes": mean(s.read_bytes, s.reads),
        "mean_write_bytes": mean(s.write_bytes, s.writes),
        "sequential_reads_percent": percent(p.sequential_reads, s.reads),
        "sequential_writes_percent": percent(p.sequential_writes, s.writes),
        "footprint_bytes": s.touched.total_sectors() * SECTOR_BYTES,
        "read_footprint_bytes": s.read.total_sectors() * SECTOR_BYTES,
        "written_footprint_bytes": p.written.total_sectors() * SECTOR_BYTES,
        "end_bytes": end_sectors(reader, s) * SECTOR_BYTES,
        "sizes": sizes,
        "devices": devices.collect::<Vec<_>>(),
        "left_out_rows": tally.left_out,
        "late_rows": tally.late_rows,
        "late_max_us": tally.late_max_ns as f64 / 1e3,
        "rounded_rows": tally.rounded,
        "other_lines": others.collect::<Vec<_>>(),
        "skipped_lines": tally.bad,
        "skipped_kinds": kinds.collect::<Vec<_>>(),
        "skipped_examples": examples.collect::<Vec<_>>(),
        "notices": notices,
    })
}

fn size(class: &SizeClass) -> Value {
    json!({
        "bytes_max": class.bytes_max,
        "reads": class.reads,
        "writes": class.writes,
        "trims": class.trims,
        "write_zeroes": class.write_zeroes,
    })
}

const fn kib(key: &'static str, label: &'static str) -> Figure {
    Figure { per: 1024.0, ..Figure::plain(key, label, 1) }
}

const fn mib(key: &'static str, label: &'static str) -> Figure {
    Figure { per: (1 << 20) as f64, ..Figure::plain(key, label, 1) }
}

const FIGURES: &[Figure] = &[
    Figure::plain("format", "format", 0),
    Figure::plain("compression", "compression", 0),
    Figure::plain("time_unit", "unit of times", 0),
    Figure::plain("lines", "lines or records", 0),
    Figure::plain("rows", "  rows", 0),
    Figure::plain("left_out_rows", "  rows of other devices", 0),
    Figure::plain("skipped_lines", "  skipped as bad", 0),
    Figure::plain("span_s", "span [s]", 6),
    Figure::plain("requests", "requests", 0),
    Figure::plain("reads", "  reads", 0),
    Figure::plain("writes", "  writes", 0),
    Figure::plain("fua_writes", "    with force unit access", 0),
    Figure::plain("trims", "  trims", 0),
    Figure::plain("flushes", "  flushes", 0),
    Figure::plain("write_zeroes", "  write zeroes", 0),
    Figure::plain("requests_per_s", "requests per second, mean", 1),
    Figure::plain("busiest_second_requests", "  in the busiest second", 0),
    mib("read_bytes", "read [MiB]"),
    mib("write_bytes", "written [MiB]"),
    mib("trim_bytes", "trimmed [MiB]"),
    kib("mean_read_bytes", "mean read [KiB]"),
    kib("mean_write_bytes", "mean write [KiB]"),
    Figure::plain("sequential_reads_percent", "sequential reads [%]", 1),
    Figure::plain("sequential_writes_percent", "sequential writes [%]", 1),
    mib("footprint_bytes", "footprint in 4 KiB units [MiB]"),
    mib("read_footprint_bytes", "  read [MiB]"),
    mib("written_footprint_bytes", "  written [MiB]"),
    mib("end_bytes", "end of the last address [MiB]"),
];

fn tables(object: &Value) -> String {
    let mut out = figures_table(std::slice::from_ref(object), "inspect", FIGURES);
    let rows = |key: &str| object[key].as_array().map_or(&[][..], Vec::as_slice);
    let number = |row: &Value, key: &str| format!("{:>10}", row[key].as_u64().unwrap_or(0));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("").to_owned();
    let mut section = |title: &str, header: &[&str], lines: Vec<Vec<String>>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}\n{}", list_table(header, &lines)));
        }
    };
    let sizes = rows("sizes").iter().map(|row| {
        let up_to = format!("{:>10}", length(row["bytes_max"].as_u64().unwrap_or(0)));
        let kinds = ["reads", "writes", "trims", "write_zeroes"].map(|key| number(row, key));
        std::iter::once(up_to).chain(kinds).collect()
    });
    let header = ["     up to", "     reads", "    writes", "     trims", "    zeroes"];
    section("lengths", &header, sizes.collect());
    let devices = rows("devices").iter().take(DEVICES_SHOWN).map(|row| {
        let left_out = if row["kept"] == true { "" } else { "left out" };
        let mib = row["end_bytes"].as_u64().unwrap_or(0) as f64 / f64::from(1 << 20);
        let name = text(row, "name").chars().flat_map(char::escape_debug).collect();
        vec![name, number(row, "rows"), format!("{mib:>12.1}"), left_out.to_owned()]
    });
    let title = match rows("devices").len() {
        n if n > DEVICES_SHOWN => format!("devices (the first {DEVICES_SHOWN} of {n})"),
        _ => "devices".to_owned(),
    };
    section(&title, &["name", "      rows", "   end [MiB]", ""], devices.collect());
    let others =
        rows("other_lines").iter().map(|row| vec![number(row, "lines"), text(row, "reason")]);
    section("lines that are no requests", &["     lines", "reason"], others.collect());
    let kinds =
        rows("skipped_kinds").iter().map(|row| vec![number(row, "lines"), text(row, "expected")]);
    section("bad lines, skipped", &["     lines", "expected"], kinds.collect());
    let examples = rows("skipped_examples")
        .iter()
        .map(|row| vec![number(row, "line"), text(row, "found"), text(row, "expected")]);
    section("the first of them", &["      line", "found", "expected"], examples.collect());
    // What has a table of its own above is not said twice.
    let has_table = |n: &&str| n.starts_with("lines that are no") || n.starts_with("bad lines");
    let notices = rows("notices").iter().filter_map(Value::as_str).filter(|n| !has_table(n));
    let notices: String = notices.map(|notice| format!("note: {notice}\n")).collect();
    if !notices.is_empty() {
        out.push_str(&format!("\n{notices}"));
    }
    out
}

/// A power of two of bytes in its largest unit.
fn length(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1024 => (1, "B"),
        1024..0x10_0000 => (1 << 10, "KiB"),
        0x10_0000..0x4000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    format!("{} {name}", bytes / unit)
}
