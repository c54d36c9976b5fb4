//! What must hold for any input whatever: the checks that the fuzz targets run, as
//! plain functions, so that the test suite runs the very same code.
//!
//! Each panics when an invariant is broken. They are oracles in the strict sense: the
//! outcome is compared with a second way to compute it (writing and reading again, a
//! slow reading of the same text), not only watched for a crash.

use std::io::{Cursor, Write};
use std::path::Path;

use crate::{
    BlkAction, Columns, Compression, DeviceMode, Driver, Format, JobPlan, JobSet, JobSpec,
    JobStream, JobTarget, MAX_SECTORS, OpKind, Request, Source, Synthetic, TraceOptions,
    TraceReader, TraceWriter, WorkloadError, parse_fio_file, read_trace,
};

/// Name of the input in messages.
const NAME: &str = "input.trace";
/// Bound on expanded data \[bytes\]: small, so that bombs are cheap to try.
const MAX_EXPANDED_BYTES: u64 = 1 << 20;

/// Any bytes as a trace whose format is detected. If they are one: every line is
/// accounted for, every row became a request within bounds and in order of time, a slow
/// reading of plain text agrees, and packed or written down again the requests read
/// back the same. If not: the error names the file and a line that exists.
pub fn trace_reader(data: &[u8]) {
    check_trace(data, &options());
}

/// The same for any format and any options: the first byte names the format, the
/// second the options, and the rest is the file.
pub fn trace_formats(data: &[u8]) {
    let [format, how, data @ ..] = data else { return };
    let format = Format::ALL[usize::from(*format) % Format::ALL.len()];
    let described = ["time:us,op,lba:512,size:bytes,device", "-,size:4k,lba:4k,op:0/1/2/3,time:s"];
    let described = described[usize::from(*how & 1)];
    let columns = (format == Format::Custom).then(|| described.parse().expect("a description"));
    let actions = [BlkAction::Queue, BlkAction::Issue, BlkAction::Complete, BlkAction::Queue];
    let opts = TraceOptions {
        format: Some(format),
        columns,
        blkparse_action: actions[usize::from(*how & 3)],
        devices: [None, None, Some(DeviceMode::Shared), Some(DeviceMode::Separate)]
            [usize::from(*how >> 2 & 3)],
        skip_bad: [0, 0, 1, 1 << 20][usize::from(*how >> 4 & 3)],
        reorder_rows: [None, None, Some(0), Some(3)][usize::from(*how >> 6 & 3)],
        ..options()
    };
    check_trace(data, &opts);
}

/// Any text as a description of columns. If it is one, it prints as it reads.
pub fn columns(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Columns>() {
        Ok(columns) => assert_eq!(columns.to_string().parse::<Columns>().unwrap(), columns),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("expected") && text.len() < 2000, "{text}");
        }
    }
}

fn options() -> TraceOptions {
    TraceOptions { max_expanded_bytes: MAX_EXPANDED_BYTES, ..TraceOptions::default() }
}

fn check_trace(data: &[u8], opts: &TraceOptions) {
    let result = read_all(data.to_vec(), opts);
    if let Ok((reader, requests)) = &result {
        assert!(!requests.is_empty(), "a trace without requests must be an error");
        assert_eq!(requests[0].at_ns, 0, "time starts with the first request");
        check_bounds(requests);
        check_tally(reader, requests.len() as u64);
        if reader.compression() == Compression::None {
            check_lines(data, reader);
            if *opts == options() {
                check_against_slow_reading(data, reader.format(), requests);
            }
        }
        check_round_trip(requests);
    }
    if let Err(error) = &result {
        check_error(error, NAME, data);
    }
    check_packed(data, opts, &result);
}

/// Any bytes as a fio job file. If they are one: its canonical form reads back as the
/// same jobs, and on drives of several sizes the jobs either run or an error names the
/// file and a line. If not: the same for the error. Running means: requests lie in the
/// region of their job, issue times never go back, and a slow drive and a fast one are
/// both served. Whether the jobs ran on any drive.
pub fn fio_job(data: &[u8]) -> bool {
    let name = "input.fio";
    let env = |key: &str| (key == "SIZE").then(|| "64k".to_owned());
    let files = |path: &Path| match path.to_str() {
        Some("more.inc") => Ok(b"iodepth=4\nnumjobs=2\n".to_vec()),
        Some("self.inc") => Ok(b"include self.inc\n".to_vec()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    let file = match parse_fio_file(Path::new(name), data, &env, &files) {
        Ok(file) => file,
        Err(error) => {
            check_fio_error(&error, name, data);
            return false;
        }
    };
    let text = file.canonical();
    let dollar = |key: &str| (key == "DOLLAR").then(|| "$".to_owned());
    let again = parse_fio_file(Path::new(name), text.as_bytes(), &dollar, &files);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(text, again.canonical(), "the canonical form is a fixed point");
    let mut ran = false;
    for capacity_sectors in [0, 8, 12_345, 1 << 21, 1 << 54] {
        let target = JobTarget { capacity_sectors, n_handles: 4, seed: 1, queue_depth: None };
        match (file.jobs(&target), again.jobs(&target)) {
            (Ok(plan), Ok(other)) => {
                assert_eq!(plan, other);
                check_plan(plan, capacity_sectors);
                ran = true;
            }
            (Err(error), Err(_)) => check_fio_error(&error, name, data),
            (one, other) => panic!("{one:?} but {other:?} on {capacity_sectors} sectors"),
        }
    }
    ran
}

/// Errors of an included file name that file.
fn check_fio_error(error: &WorkloadError, name: &str, data: &[u8]) {
    match error.path().and_then(Path::to_str) {
        Some(path @ ("more.inc" | "self.inc")) => check_error(error, path, b"one line\n"),
        _ => check_error(error, name, data),
    }
}

fn check_plan(plan: JobPlan, capacity_sectors: u64) {
    if plan.specs.len() > 64 || plan.specs.iter().any(|spec| spec.queue_depth > 4096) {
        return;
    }
    for spec in &plan.specs {
        let end = spec.stream.region_start + spec.stream.region_sectors;
        assert!(spec.stream.region_sectors > 0 && end <= capacity_sectors, "{spec:?}");
        assert!((spec.row as usize) < plan.names.len());
        if let Some(fast) = spec.synthetic() {
            let mut fast = Synthetic::new(fast).expect("a valid spec");
            let mut slow = JobStream::new(spec.stream.clone());
            for _ in 0..50 {
                assert_eq!(fast.next_request().unwrap(), slow.next_request().unwrap());
            }
        }
    }
    let specs = plan.specs.clone();
    let mut set = JobSet::new(plan.specs, plan.names, 500);
    let mut last_ns = 0;
    for i in 0..300_u64 {
        let Some(issue) = set.next_issue() else { return };
        let request = issue.request;
        assert!(request.at_ns >= last_ns, "time went back: {request:?}");
        last_ns = request.at_ns;
        if request.op != OpKind::Flush {
            let fits = |spec: &&JobSpec| {
                let s = &spec.stream;
                let end = s.region_start + s.region_sectors;
                spec.row == issue.job
                    && (s.region_start..end).contains(&request.lba.0)
                    && request.end() <= end
            };
            assert!(specs.iter().any(|spec| fits(&spec)), "{issue:?} leaves its region");
            assert!(request.sectors > 0);
        }
        set.completed(request.at_ns.saturating_add([0, 90_000, 7, 4_000_000][i as usize % 4]));
    }
}

type ReadAll = Result<(TraceReader, Vec<Request>), WorkloadError>;

fn read_all(data: Vec<u8>, opts: &TraceOptions) -> ReadAll {
    let mut reader = read_trace(Path::new(NAME), Box::new(Cursor::new(data)), opts)?;
    let mut requests = Vec::new();
    while let Some(request) = reader.next_request()? {
        requests.push(request);
    }
    Ok((reader, requests))
}

/// Every line is counted once, and every row yields a request, or two with a flush.
fn check_tally(reader: &TraceReader, n_requests: u64) {
    let tally = reader.tally();
    let others: u64 = tally.others.iter().map(|(_, n)| n).sum();
    assert_eq!(tally.lines, tally.rows + tally.left_out + tally.bad + others, "{tally:?}");
    assert_eq!(tally.bad, tally.bad_kinds.iter().map(|(_, n)| n).sum::<u64>(), "{tally:?}");
    match reader.format() {
        Format::Blkparse => assert!((tally.rows..=2 * tally.rows).contains(&n_requests)),
        _ => assert_eq!(tally.rows, n_requests),
    }
}

/// The lines of the tally are those of the file: its records, or all that are not
/// empty, without a header, and one for each gap of empty lines between others.
fn check_lines(data: &[u8], reader: &TraceReader) {
    let expected = match reader.format() {
        Format::Vscsi1 => data.len().div_ceil(32),
        Format::Vscsi2 => data.len().div_ceil(40),
        format => {
            let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
            let empty: Vec<bool> = data
                .split(|&byte| byte == b'\n')
                .map(|line| line.trim_ascii().is_empty())
                .collect();
            let full = empty.iter().filter(|empty| !**empty).count();
            let gaps = empty.windows(2).filter(|pair| pair[0] && !pair[1]).count();
            let gaps = gaps * usize::from(format != Format::Blkparse);
            full + gaps - usize::from(reader.has_header())
        }
    };
    assert_eq!(reader.tally().lines, expected as u64, "{:?}", reader.tally());
}

/// Reading again, plain or packed, gives the same.
fn check_packed(data: &[u8], opts: &TraceOptions, result: &ReadAll) {
    let mut inputs = vec![data.to_vec()];
    let is_plain = match result {
        Ok((reader, _)) => reader.compression() == Compression::None,
        Err(_) => !is_packed(data),
    };
    if is_plain && (data.len() as u64) < MAX_EXPANDED_BYTES {
        inputs.push(gzip(data));
        inputs.push(zstd::encode_all(data, 1).expect("in memory"));
    }
    for input in inputs {
        match (read_all(input, opts), result) {
            (Ok((_, again)), Ok((_, requests))) => assert_eq!(again, *requests),
            (Err(again), Err(error)) => assert_eq!(again.to_string(), error.to_string()),
            (again, _) => panic!("{again:?} after {result:?}"),
        }
    }
}

fn is_packed(data: &[u8]) -> bool {
    data.starts_with(&[0x1f, 0x8b])
        || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        || data.starts_with(b"\xfd7zXZ\0")
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(data).expect("in memory");
    gzip.finish().expect("in memory")
}

fn check_bounds(requests: &[Request]) {
    assert!(requests.is_sorted_by_key(|request| request.at_ns), "time went back");
    for request in requests {
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        assert!(end.is_some_and(|end| end <= MAX_SECTORS), "{request:?}");
        assert_eq!(request.sectors == 0, request.op == OpKind::Flush, "{request:?}");
    }
}

/// Reads the formats of simulators again, row by row, with the standard library's own
/// parsers. The other formats have a generator that knows the answer (tests/formats.rs).
fn check_against_slow_reading(data: &[u8], format: Format, requests: &[Request]) {
    if !matches!(format, Format::Mqsim | Format::CloudPhysicsCsv) {
        return;
    }
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
            _ if request.op == OpKind::Flush => continue,
            _ => {
                let columns: Vec<&str> = row.split(',').map(str::trim).collect();
                (columns[4].parse(), columns[3].parse().map(|bytes: u64| bytes / 512))
            }
        };
        assert_eq!(lba, Ok(request.lba.0), "{row}");
        assert_eq!(sectors, Ok(u64::from(request.sectors)), "{row}");
    }
}

/// Written down in the formats that can be written, the requests read back the same.
fn check_round_trip(requests: &[Request]) {
    let plain: Vec<Request> = requests.iter().map(|r| Request { fua: false, ..*r }).collect();
    for format in [Format::Mqsim, Format::CloudPhysicsCsv] {
        let mut writer = TraceWriter::new(Path::new(NAME), Vec::new(), format).expect("in memory");
        let written = plain.iter().try_for_each(|request| writer.write(request));
        match written {
            Err(WorkloadError::NotExpressible { .. }) if format == Format::Mqsim => continue,
            written => written.expect("every operation has a code"),
        }
        let written = writer.finish().expect("in memory");
        match read_all(written, &options()) {
            Ok((reader, again)) => assert_eq!((reader.format(), again), (format, plain.clone())),
            Err(error) => panic!("{error}"),
        }
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
    if !is_packed(data) {
        let n_lines = data.split(|&byte| byte == b'\n').count();
        let n_lines = n_lines.max(data.len().div_ceil(32)) as u64;
        assert!((1..=n_lines).contains(&line), "of {n_lines} lines: {text}");
    }
}
