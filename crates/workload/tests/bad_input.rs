//! Every way a trace can be wrong, and that the answer names the file, the line, what
//! was expected and what to do. Also the odd inputs that are right.

use std::io::Write;
use std::path::{Path, PathBuf};

use flashwise_hint::Lba;
use flashwise_workload::{
    Compression, Format, OpKind, Request, Source, TimeUnit, TraceOptions, WorkloadError, open_trace,
};

/// Keeps the directory alive as long as the file is needed.
struct File(#[allow(dead_code)] tempfile::TempDir, PathBuf);

fn file(content: &[u8]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.trace");
    std::fs::write(&path, content).unwrap();
    File(dir, path)
}

fn read(path: &Path, opts: &TraceOptions) -> Result<Vec<Request>, WorkloadError> {
    let mut reader = open_trace(path, opts)?;
    let mut out = Vec::new();
    loop {
        match reader.next_request() {
            Ok(Some(request)) => out.push(request),
            Ok(None) => return Ok(out),
            Err(error) => {
                let after = reader.next_request();
                assert!(matches!(after, Ok(None)), "a failed source ends: {after:?}");
                return Err(error);
            }
        }
    }
}

fn good(content: &[u8]) -> Vec<Request> {
    read(&file(content).1, &TraceOptions::default()).unwrap()
}

/// The message, after checking the line and that each part is in it.
fn bad_with(content: &[u8], opts: &TraceOptions, line: u64, parts: &[&str]) -> String {
    let file = file(content);
    let error = read(&file.1, opts).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.line(), Some(line), "{text}");
    assert!(text.contains(&format!("t.trace:{line}: ")), "{text}");
    for part in parts {
        assert!(text.contains(part), "no «{part}» in: {text}");
    }
    text
}

fn bad(content: &[u8], line: u64, parts: &[&str]) -> String {
    bad_with(content, &TraceOptions::default(), line, parts)
}

fn gz(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn many_rows(n: u64) -> Vec<u8> {
    // Poorly compressible addresses, so that cuts fall between rows.
    let row = |i: u64| format!("{} 0 {} 8 {}\n", i * 1000, (i * 7_919) % 1_000_003, i % 2);
    (0..n).map(row).collect::<String>().into_bytes()
}

const HEADER: &str = "version,time,op,size,lbn\n";

fn csv(rows: &str) -> Vec<u8> {
    format!("{HEADER}{rows}").into_bytes()
}

#[test]
fn golden_mqsim() {
    let file = file(b"938513000 4 264719034 16 0\n938828000 3 197570570 16 1\r\n938828000 3 0 1 1");
    let mut reader = open_trace(&file.1, &TraceOptions::default()).unwrap();
    assert_eq!((reader.format(), reader.compression()), (Format::Mqsim, Compression::None));
    let mut expected = [
        Request::new(OpKind::Write, Lba(264_719_034), 16),
        Request::new(OpKind::Read, Lba(197_570_570), 16),
        Request::new(OpKind::Read, Lba(0), 1),
    ];
    expected[1].at_ns = 315_000;
    expected[2].at_ns = 315_000;
    for request in expected {
        assert_eq!(reader.next_request().unwrap(), Some(request));
    }
    assert_eq!(reader.next_request().unwrap(), None);
    assert_eq!(reader.notices().len(), 1, "two devices in one address space are noted");
}

#[test]
fn golden_cloudphysics() {
    let rows = "1,5633898,2a,512,42932745\n1,5633898.5,28,6656,40409911\n1,5633899,42,1024,8\n\
                1,5633900,35,0,0\n1,5633900,93,4096,16\n";
    let mut expected = [
        Request::new(OpKind::Write, Lba(42_932_745), 1),
        Request::new(OpKind::Read, Lba(40_409_911), 13),
        Request::new(OpKind::Trim, Lba(8), 2),
        Request::new(OpKind::Flush, Lba(0), 0),
        Request::new(OpKind::WriteZeroes, Lba(16), 8),
    ];
    for (request, half_seconds) in expected.iter_mut().zip([0, 1, 2, 4, 4]) {
        request.at_ns = half_seconds * 500_000_000;
    }
    assert_eq!(good(&csv(rows)), expected);
    assert_eq!(good(&gz(&csv(rows))), expected);
    assert_eq!(good(&zstd::encode_all(&csv(rows)[..], 3).unwrap()), expected);
}

#[test]
fn every_time_unit_applies_to_every_format() {
    for (unit, ns) in [
        (TimeUnit::Seconds, 3_000_000_000),
        (TimeUnit::Milliseconds, 3_000_000),
        (TimeUnit::Microseconds, 3_000),
        (TimeUnit::Nanoseconds, 3),
    ] {
        let opts = TraceOptions { time_unit: Some(unit), ..TraceOptions::default() };
        for content in [b"5 0 8 8 0\n8 0 8 8 1\n".to_vec(), csv("1,5,28,512,1\n1,8,28,512,1\n")] {
            let requests = read(&file(&content).1, &opts).unwrap();
            assert_eq!(requests[1].at_ns, ns, "{unit}");
        }
    }
    assert_eq!(good(b"5 0 8 8 0\n8 0 8 8 1\n")[1].at_ns, 3);
    assert_eq!(good(&csv("1,5,28,512,1\n1,8,28,512,1\n"))[1].at_ns, 3_000_000_000);
}

#[test]
fn odd_but_right() {
    let one = Request::new(OpKind::Write, Lba(8), 8);
    for content in [
        &b"5 0 8 8 0"[..],
        b"5 0 8 8 0\n",
        b"5 0 8 8 0\r\n",
        b"5 0 8 8 0\r\n\r\n",
        b"5 0 8 8 0\n\n  \n\n",
        b"  5\t0  8 8 0  \n",
        b"\xef\xbb\xbf5 0 8 8 0\n",
    ] {
        assert_eq!(good(content), [one], "{content:?}");
    }
    let mut two_members = gz(b"5 0 8 8 0\n");
    two_members.extend(gz(b"6 0 8 8 0\n"));
    assert_eq!(good(&two_members).len(), 2);
}

#[test]
fn nothing_to_do() {
    bad(b"", 1, &["an empty file", "expected requests", "mqsim: time device lba sectors type"]);
    bad(&gz(b""), 1, &["an empty file"]);
    bad(HEADER.as_bytes(), 1, &["only a header", "version,time,op,size,lbn"]);
    bad(b"version,time,op,size,lbn", 1, &["only a header"]);
    bad(&csv("\n\n"), 3, &["only a header"]);
    let opts = TraceOptions { format: Some(Format::Mqsim), ..TraceOptions::default() };
    bad_with(b"\n\n", &opts, 2, &["only empty lines"]);
}

#[test]
fn not_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing.trace");
    let text = read(&missing, &TraceOptions::default()).unwrap_err().to_string();
    assert!(text.contains("missing.trace: cannot open") && text.contains("check the path"));
    let text = read(dir.path(), &TraceOptions::default()).unwrap_err().to_string();
    assert!(text.contains("cannot") && text.contains("directory"), "{text}");
}

#[test]
fn unknown_formats_list_the_known() {
    let parts = ["known format", "mqsim: time device", "cloudphysics: version,time", "found «"];
    for content in
        [&b"hello world\n"[..], b"\n5 0 8 8 0\n", b"1,2,3\n", b"5 0 8 8\n", b"\x7fELF\x02\x01\0\0"]
    {
        bad(content, 1, &parts);
    }
    bad(b"\x7fELF\x02\x01\0\0", 1, &["the file is binary"]);
    bad(b"\xfd7zXZ\0\0\0", 1, &["xz data", "after 0 complete rows"]);
    bad(b"[global]\nrw=read\n", 1, &["fio job", "*.fio"]);
    bad(b"BZh91AY", 1, &["bzip2 -d"]);
    let mut tar = vec![0; 1024];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    bad(&gz(&tar), 1, &["tar -xf"]);
    bad(b"PK\x03\x04zip", 1, &["unzip"]);
    let opts = TraceOptions { format: Some(Format::CloudPhysicsCsv), ..TraceOptions::default() };
    bad_with(b"1,5,28,512,1\n", &opts, 1, &["expected the header «version,time,op,size,lbn»"]);
}

#[test]
fn a_bad_row_is_named_with_its_column() {
    for (row, parts) in [
        ("7 0 8", &["expected 5 columns (time device lba sectors type), found 3 («7 0 8»)"][..]),
        ("7 0 8 8 0 9", &["expected 5 columns", "found 6"]),
        ("-7 0 8 8 0", &["the time", "not negative", "«-7»"]),
        ("x 0 8 8 0", &["the time", "«x»"]),
        ("7 -1 8 8 0", &["device number (column 2)", "«-1»"]),
        ("7 0 -8 8 0", &["first sector (column 3)", "not negative", "«-8»"]),
        ("7 0 8.5 8 0", &["first sector (column 3)", "«8.5»"]),
        ("7 0 8 -8 0", &["length in sectors (column 4)", "«-8»"]),
        ("7 0 8 0 0", &["a length of at least 1 sector", "found 0"]),
        ("7 0 8 4294967296 0", &["below 2^32 sectors"]),
        ("7 0 8 8 2", &["type (column 5) as 0 for a write or 1 for a read", "«2»"]),
        ("7 0 18446744073709551615 8 0", &["an end at or below sector", "18446744073709551615"]),
        ("7 0 18446744073709551616 8 0", &["below 2^64"]),
        ("18446744073709551616 0 8 8 0", &["below 2^64 ns", "time unit"]),
        ("7 0 8 8 \0", &["binary or damaged here"]),
        ("7 0 8\08 0", &["binary or damaged here"]),
    ] {
        let content = format!("5 0 8 8 0\n{row}\n9 0 8 8 0\n");
        bad(content.as_bytes(), 2, parts);
    }
    bad(b"5 0 8 8 0\n7 \xff\xfe 8 8 0\n", 2, &["device number", "binary or damaged"]);
    bad(b"5 0 8 8 0\ntrailing garbage", 2, &["expected 5 columns", "found 2"]);
    bad(b"5 0 8 8 0\n\n9 0 8 8 0\n", 2, &["an empty line before more rows"]);
}

#[test]
fn a_bad_csv_row_is_named_with_its_column() {
    for (row, parts) in [
        ("1,7,28,512", &["expected 5 columns (version,time,op,size,lbn), found 4"][..]),
        ("1,7,28,512,8,9", &["expected 5 columns", "found 6"]),
        ("x,7,28,512,8", &["version (column 1)", "«x»"]),
        ("1,-7,28,512,8", &["the time", "«-7»"]),
        ("1,,28,512,8", &["the time", "«»"]),
        ("1,7,12,512,8", &["read 8, 28, 88, a8; write a, 2a, 8a, aa", "«12»"]),
        ("1,7,28,0,8", &["multiple of 512 bytes", "found 0"]),
        ("1,7,28,513,8", &["multiple of 512 bytes", "found 513"]),
        ("1,7,28,-512,8", &["size in bytes (column 4)", "«-512»"]),
        ("1,7,28,512,-8", &["first sector (column 5)", "«-8»"]),
        ("1,18446744074,28,512,8", &["below 2^64 ns", "«18446744074» s"]),
        ("1,7,28,512,36028797018963967", &["an end at or below sector"]),
    ] {
        bad(&csv(&format!("1,5,28,512,8\n{row}\n1,9,28,512,8\n")), 3, parts);
    }
}

#[test]
fn time_may_not_go_back() {
    let text = bad(b"5 0 8 8 0\n9 0 8 8 0\n7 0 8 8 0\n", 3, &["7 ns after 9 ns"]);
    assert!(text.contains("`sort -s -n -k1,1`"), "{text}");
    let rows = csv("1,9.25,28,512,8\n1,9.125,28,512,8\n");
    bad(&rows, 3, &["9.125 s after 9.25 s", "`sort -s -t, -k2,2n`"]);
}

#[test]
fn endless_lines_are_cut_short() {
    let parts = ["a line of at most 65536 bytes"];
    bad(&vec![b'7'; 10 << 20], 1, &parts);
    let mut content = b"5 0 8 8 0\n".to_vec();
    content.resize(1 << 20, 0);
    bad(&content, 2, &parts);
    // Compressed, 64 MiB of zeroes are 64 KiB; still only one line is expanded.
    bad(&gz(&vec![0; 64 << 20]), 1, &parts);
}

#[test]
fn truncated_archives_say_after_how_many_rows() {
    let plain = many_rows(5000);
    for whole in [gz(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
        let half = &whole[..whole.len() / 2];
        let error = read(&file(half).1, &TraceOptions::default()).unwrap_err();
        let text = error.to_string();
        let WorkloadError::EndsEarly { rows, line, .. } = error else { panic!("{text}") };
        assert!(rows < 5000 && line == rows + 1, "{text}");
        assert!(text.contains("ends early, after") && text.contains("copy it again"), "{text}");
    }
    // At every byte: a cut is never taken for the end.
    let plain = many_rows(40);
    for whole in [gz(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
        for cut in 4..whole.len() {
            let result = read(&file(&whole[..cut]).1, &TraceOptions::default());
            assert!(
                matches!(result, Err(WorkloadError::EndsEarly { .. })),
                "cut at {cut} of {}: {result:?}",
                whole.len()
            );
        }
    }
}

#[test]
fn damaged_archives_and_garbage_behind_them_are_refused() {
    let plain = many_rows(3000);
    for whole in [gz(&plain), zstd::stream::encode_all(&plain[..], 3).unwrap()] {
        let mut garbage = whole.clone();
        garbage.extend_from_slice(b"garbage behind the end");
        let text = read(&file(&garbage).1, &TraceOptions::default()).unwrap_err().to_string();
        assert!(text.contains("damaged after 3000 complete rows"), "{text}");
    }
    let mut flipped = gz(&plain);
    let n = flipped.len();
    flipped[n - 6] ^= 0x40; // in the checksum at the end
    let text = read(&file(&flipped).1, &TraceOptions::default()).unwrap_err().to_string();
    assert!(text.contains("damaged after 3000 complete rows"), "{text}");
}

#[test]
fn a_bomb_is_bounded() {
    let plain = many_rows(100_000);
    for packed in [gz(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
        let exact = plain.len() as u64;
        let opts = |max_expanded_bytes| TraceOptions { max_expanded_bytes, ..Default::default() };
        assert_eq!(read(&file(&packed).1, &opts(exact)).unwrap().len(), 100_000);
        for limit in [exact - 1, 100_000] {
            let error = read(&file(&packed).1, &opts(limit)).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, WorkloadError::TooLarge { limit_bytes, .. }
                if limit_bytes == limit),
                "{text}"
            );
            assert!(text.contains(&format!("at most {limit} bytes")), "{text}");
        }
    }
}
