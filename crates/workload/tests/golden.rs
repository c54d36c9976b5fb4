//! A hand-made file for each format, with the odd cases of that format, and what is
//! read from it: `tests/golden/NAME` and `tests/golden/NAME.expected`, which is
//! reviewed as a diff. `FLASHWISE_BLESS=1 cargo test -p flashwise-workload --test
//! golden` writes the expected files anew.
//!
//! Beside that, what must hold for every format: line ends, a byte order mark,
//! compression and a missing last line end change nothing; a bad line is named by its
//! number, and skipped and reported if that is allowed.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use flashwise_workload::{
    Format, Request, Source, Summary, TraceOptions, TraceReader, WorkloadError, read_trace,
    summarize,
};

const FILES: [(&str, Format); 15] = [
    ("mqsim.trace", Format::Mqsim),
    ("cloudphysics.csv", Format::CloudPhysicsCsv),
    ("vscsi1.bin", Format::Vscsi1),
    ("vscsi2.bin", Format::Vscsi2),
    ("msr.csv", Format::Msr),
    ("msr-volumes.csv", Format::Msr),
    ("alibaba.csv", Format::Alibaba),
    ("tencent.csv", Format::Tencent),
    ("systor17.csv", Format::Systor17),
    ("fiu.txt", Format::Fiu),
    ("spc.csv", Format::Spc),
    ("fio-iolog-v2.log", Format::FioIolog),
    ("fio-iolog-v3.log", Format::FioIolog),
    ("blkparse.txt", Format::Blkparse),
    ("custom.txt", Format::Custom),
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn content(name: &str) -> Vec<u8> {
    std::fs::read(golden(name)).unwrap()
}

/// Only described columns need an option.
fn options(format: Format) -> TraceOptions {
    let described = "time:us,op,lba:512,size:bytes,-,device";
    let columns = (format == Format::Custom).then(|| described.parse().unwrap());
    TraceOptions { columns, ..TraceOptions::default() }
}

fn open(name: &str, data: &[u8], opts: &TraceOptions) -> Result<TraceReader, WorkloadError> {
    read_trace(Path::new(name), Box::new(Cursor::new(data.to_vec())), opts)
}

fn read(
    name: &str,
    data: &[u8],
    opts: &TraceOptions,
) -> Result<(Vec<Request>, TraceReader), WorkloadError> {
    let mut reader = open(name, data, opts)?;
    let mut out = Vec::new();
    while let Some(request) = reader.next_request()? {
        out.push(request);
    }
    Ok((out, reader))
}

/// Requests and counts as text.
fn describe(requests: &[Request], reader: &TraceReader) -> String {
    let mut out = format!("{}, times in {}\n", reader.format(), reader.time_unit());
    for r in requests {
        let fua = if r.fua { " fua" } else { "" };
        writeln!(out, "{} {:?} {} {}{fua}", r.at_ns, r.op, r.lba.0, r.sectors).unwrap();
    }
    let tally = reader.tally();
    writeln!(out, "lines {} rows {} bad {}", tally.lines, tally.rows, tally.bad).unwrap();
    for device in reader.devices() {
        let (name, rows, end) = (&device.name, device.rows, device.end_sectors);
        writeln!(out, "device {name}: {rows} rows, end {end}, base {}", device.base_sectors)
            .unwrap();
    }
    for notice in reader.notices() {
        writeln!(out, "note: {notice}").unwrap();
    }
    out
}

#[test]
fn every_format_is_read_as_its_golden_file_says() {
    for (name, format) in FILES {
        let (requests, reader) = read(name, &content(name), &options(format)).unwrap();
        assert_eq!(reader.format(), format, "{name}");
        let found = describe(&requests, &reader);
        let path = golden(&format!("{name}.expected"));
        if std::env::var_os("FLASHWISE_BLESS").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        assert_eq!(found, std::fs::read_to_string(&path).unwrap(), "{name}");
    }
}

#[test]
fn every_format_has_a_golden_file() {
    for format in Format::ALL {
        assert!(FILES.iter().any(|(_, known)| *known == format), "{format}");
    }
}

fn text_files() -> impl Iterator<Item = (&'static str, Format)> {
    FILES.into_iter().filter(|(name, _)| !name.ends_with(".bin"))
}

#[test]
fn line_ends_and_byte_order_marks_change_nothing() {
    for (name, format) in text_files() {
        let plain = content(name);
        let (expected, _) = read(name, &plain, &options(format)).unwrap();
        let text = String::from_utf8(plain).unwrap().replace('\r', "");
        let text = text.trim_start_matches('\u{feff}').to_owned();
        for variant in [
            text.clone(),
            text.replace('\n', "\r\n"),
            format!("\u{feff}{text}"),
            text.trim_end().to_owned(),
            format!("{text}\n \n"),
        ] {
            let (requests, reader) = read(name, variant.as_bytes(), &options(format)).unwrap();
            assert_eq!((requests, reader.format()), (expected.clone(), format), "{name}");
        }
    }
}

fn packed(plain: &[u8]) -> [Vec<u8>; 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain).unwrap();
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(plain).unwrap();
    let zstd = zstd::encode_all(plain, 1).unwrap();
    [gzip.finish().unwrap(), xz.finish().unwrap(), zstd]
}

#[test]
fn packed_files_read_as_plain_ones() {
    for (name, format) in FILES {
        let plain = content(name);
        let (expected, _) = read(name, &plain, &options(format)).unwrap();
        for data in packed(&plain) {
            let (requests, reader) = read(name, &data, &options(format)).unwrap();
            assert_eq!((requests, reader.format()), (expected.clone(), format), "{name}");
        }
    }
}

#[test]
fn a_named_format_reads_as_the_detected_one() {
    for (name, format) in FILES {
        let opts = TraceOptions { format: Some(format), ..options(format) };
        let (expected, _) = read(name, &content(name), &options(format)).unwrap();
        assert_eq!(read(name, &content(name), &opts).unwrap().0, expected, "{name}");
    }
}

#[test]
fn a_bad_line_is_named_or_skipped_and_reported() {
    for (name, format) in text_files() {
        let plain = content(name);
        let (expected, whole) = read(name, &plain, &options(format)).unwrap();
        let mut lines: Vec<&[u8]> = plain.split_inclusive(|&byte| byte == b'\n').collect();
        lines.insert(4, b"gar bage,\n");
        let damaged = lines.concat();
        let error = read(name, &damaged, &options(format)).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("{name}:5: expected ")), "{text}");
        assert!(text.contains("--skip-bad"), "{text}");

        let opts = TraceOptions { skip_bad: 1, ..options(format) };
        let (requests, reader) = read(name, &damaged, &opts).unwrap();
        assert_eq!(requests, expected, "{name}");
        let tally = reader.tally();
        assert_eq!((tally.bad, tally.lines), (1, whole.tally().lines + 1), "{name}");
        assert_eq!(tally.bad_examples[0].line, 5, "{name}");
        assert!(reader.notices().iter().any(|n| n.contains("bad lines, skipped: 1 (line 5:")));

        lines.insert(4, b"gar bage,\n");
        let text = read(name, &lines.concat(), &opts).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{name}:6: expected ")), "{text}");
        assert!(text.contains("(bad lines before it, skipped: 1)"), "{text}");
    }
}

#[test]
fn a_truncated_record_is_named() {
    for (name, format) in [("vscsi1.bin", Format::Vscsi1), ("vscsi2.bin", Format::Vscsi2)] {
        let whole = content(name);
        let cut = &whole[..whole.len() - 1];
        let text = read(name, cut, &options(format)).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{name}:6: expected a record of ")), "{text}");
        assert!(text.contains("truncated"), "{text}");
        let opts = TraceOptions { skip_bad: 1, ..options(format) };
        let (requests, reader) = read(name, cut, &opts).unwrap();
        assert_eq!((requests.len(), reader.tally().bad), (4, 1));
    }
}

/// Extents do not depend on which devices come first, only on what each touches.
#[test]
fn selecting_each_device_gives_all_rows_once() {
    for (name, format) in FILES {
        let all = open(name, &content(name), &options(format)).map(summary).unwrap();
        let (_, reader) = read(name, &content(name), &options(format)).unwrap();
        let mut requests = 0;
        for device in reader.devices() {
            let select = vec![device.name.clone()];
            let opts = TraceOptions { select, ..options(format) };
            requests += open(name, &content(name), &opts).map(summary).unwrap().requests;
        }
        if !reader.devices().is_empty() {
            assert_eq!(requests, all.requests, "{name}");
        }
        let opts = TraceOptions { select: vec!["nothing".to_owned()], ..options(format) };
        let text = read(name, &content(name), &opts).unwrap_err().to_string();
        assert!(text.contains("selected device «nothing»"), "{text}");
    }
}

fn summary(mut reader: TraceReader) -> Summary {
    summarize(&mut reader, 8).unwrap()
}
