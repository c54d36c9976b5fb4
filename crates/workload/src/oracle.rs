//! What must hold for any input whatever: the checks that the fuzz targets run, as
//! plain functions, so that the test suite runs the very same code.
//!
//! Each panics when an invariant is broken. They are oracles in the strict sense: the
//! outcome is compared with a second way to compute it (writing and reading again, a
//! slow reading of the same text), not only watched for a crash.

use std::io::{Cursor, Write};
use std::path::Path;

use crate::{
    Compression, FioJob, Format, MAX_SECTORS, OpKind, Request, Source, Synthetic, TraceOptions,
    TraceReader, TraceWriter, WorkloadError, parse_fio_job, read_trace,
};

/// Name of the input in messages.
const NAME: &str = "input.trace";
/// Bound on expanded data \[bytes\]: small, so that bombs are cheap to try.
const MAX_EXPANDED_BYTES: u64 = 1 << 20;

/// Any bytes as a trace. If they are one: every row became a request within bounds and
/// in order of time, a slow reading of plain text agrees, and written down again
/// (plain, gzip and zstd) the requests read back the same. If not: the error names the
/// file and a line that exists.
pub fn trace_reader(data: &[u8]) {
    match read_all(data.to_vec(), None) {
        Ok((reader, requests)) => {
            assert!(!requests.is_empty(), "a trace without requests must be an error");
            assert_eq!(requests[0].at_ns, 0, "time starts with the first request");
            check_bounds(&requests);
            if reader.compression() == Compression::None {
                check_against_slow_reading(data, reader.format(), &requests);
            }
            check_round_trip(reader.format(), &requests);
        }
        Err(error) => check_error(&error, NAME, data),
    }
}

/// Any bytes as a fio job. If they are one: its canonical form reads back as the same
/// job, and on drives of several sizes it either yields requests within the drive or
/// an error that names the file and a line. If not: the same for the error.
pub fn fio_job(data: &[u8]) {
    let name = "input.fio";
    let env = |key: &str| (key == "SIZE").then(|| "64k".to_owned());
    let job = match parse_fio_job(Path::new(name), data, &env) {
        Ok(job) => job,
        Err(error) => return check_error(&error, name, data),
    };
    let text = job.canonical();
    let dollar = |key: &str| (key == "DOLLAR").then(|| "$".to_owned());
    let again = parse_fio_job(Path::new(name), text.as_bytes(), &dollar);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(text, again.canonical(), "the canonical form is a fixed point");
    check_job(&job, &again, name, data);
}

fn check_job(job: &FioJob, again: &FioJob, name: &str, data: &[u8]) {
    for capacity_sectors in [0, 8, 12_345, 1 << 21, 1 << 54] {
        match (job.synthetic(capacity_sectors, 1), again.synthetic(capacity_sectors, 1)) {
            (Ok(spec), Ok(other)) => {
                assert_eq!(spec, other);
                let mut source = Synthetic::new(spec).expect("a resolved job is a valid spec");
                for _ in 0..100 {
                    let Ok(Some(request)) = source.next_request() else {
                        break;
                    };
                    assert!(request.end() <= capacity_sectors, "{request:?} leaves the drive");
                    assert_eq!(u64::from(request.sectors) * 512, job.block_bytes);
                }
            }
            (Err(error), Err(_)) => check_error(&error, name, data),
            (one, other) => panic!("{one:?} but {other:?} on {capacity_sectors} sectors"),
        }
    }
}

fn read_all(
    data: Vec<u8>,
    format: Option<Format>,
) -> Result<(TraceReader, Vec<Request>), WorkloadError> {
    let opts =
        TraceOptions { format, max_expanded_bytes: MAX_EXPANDED_BYTES, ..TraceOptions::default() };
    let mut reader = read_trace(Path::new(NAME), Box::new(Cursor::new(data)), &opts)?;
    let mut requests = Vec::new();
    while let Some(request) = reader.next_request()? {
        requests.push(request);
    }
    assert_eq!(reader.rows(), requests.len() as u64);
    Ok((reader, requests))
}

fn check_bounds(requests: &[Request]) {
    assert!(requests.is_sorted_by_key(|request| request.at_ns), "time went back");
    for request in requests {
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        assert!(end.is_some_and(|end| end <= MAX_SECTORS), "{request:?}");
        assert_eq!(request.sectors == 0, request.op == OpKind::Flush, "{request:?}");
    }
}

/// Reads plain text again, row by row, with the standard library's own parsers.
fn check_against_slow_reading(data: &[u8], format: Format, requests: &[Request]) {
    let text = std::str::from_utf8(data).expect("an accepted trace is text");
    let rows = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty());
    let header = usize::from(format == Format::CloudPhysicsCsv);
    let rows: Vec<&str> = rows.skip(header).collect();
    assert_eq!(rows.len(), requests.len(), "each row is one request");
    for (row, request) in rows.iter().zip(requests) {
        let (lba, sectors) = match format {
            Format::Mqsim => {
                let columns: Vec<&str> = row.split_whitespace().collect();
                let writes = columns[4] == "0";
                assert_eq!(writes, request.op == OpKind::Write, "{row}");
                (columns[2].parse(), columns[3].parse())
            }
            Format::CloudPhysicsCsv if request.op == OpKind::Flush => continue,
            Format::CloudPhysicsCsv => {
                let columns: Vec<&str> = row.split(',').map(str::trim).collect();
                (columns[4].parse(), columns[3].parse().map(|bytes: u64| bytes / 512))
            }
        };
        assert_eq!(lba, Ok(request.lba.0), "{row}");
        assert_eq!(sectors, Ok(u64::from(request.sectors)), "{row}");
    }
}

fn check_round_trip(format: Format, requests: &[Request]) {
    let mut writer = TraceWriter::new(Path::new(NAME), Vec::new(), format).expect("in memory");
    for request in requests {
        writer.write(request).expect("what a format reads it can write");
    }
    let plain = writer.finish().expect("in memory");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("in memory");
    let gzip = gzip.finish().expect("in memory");
    let zstd = zstd::encode_all(&plain[..], 1).expect("in memory");
    for (data, compression) in
        [(plain, Compression::None), (gzip, Compression::Gzip), (zstd, Compression::Zstd)]
    {
        let (reader, again) = match read_all(data, None) {
            Ok(read) => read,
            // The canonical form may be longer than the input was.
            Err(WorkloadError::TooLarge { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        assert_eq!((reader.format(), reader.compression()), (format, compression));
        assert_eq!(again, requests);
    }
}

/// An error names the file, a line that exists, and says what was expected.
fn check_error(error: &WorkloadError, name: &str, data: &[u8]) {
    let text = error.to_string();
    assert_eq!(error.path(), Some(Path::new(name)), "{text}");
    let line = error.line().unwrap_or_else(|| panic!("no line in: {text}"));
    assert!(text.starts_with(&format!("{name}:{line}: ")), "{text}");
    assert!(text.contains("expected"), "{text}");
    assert!(text.len() < 2000 && !text.contains(['\n', '\0']), "{text:?}");
    let packed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    if !packed {
        let n_lines = data.split(|&byte| byte == b'\n').count() as u64;
        assert!((1..=n_lines).contains(&line), "of {n_lines} lines: {text}");
    }
}
