//! Requests written down in each format and read back: whatever a row can say arrives
//! unchanged, in every format. Also the rules that span rows: devices, order of time,
//! bad lines, and the compressions.

#[path = "support/rows.rs"]
mod rows;

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;

use flashwise_hint::Lba;
use flashwise_workload::{
    BlkAction, Compression, DeviceMode, Format, OpKind, Request, Source, TimeUnit, TraceOptions,
    TraceReader, WorkloadError, read_trace,
};
use proptest::prelude::*;
use rows::{Row, render};

/// Address space of each device of several \[sectors\], as docs/traces.md says.
const APART: u64 = 1 << 40;

fn read(data: &[u8], opts: &TraceOptions) -> Result<(Vec<Request>, TraceReader), WorkloadError> {
    let mut reader = read_trace(Path::new("t"), Box::new(Cursor::new(data.to_vec())), opts)?;
    let mut out = Vec::new();
    while let Some(request) = reader.next_request()? {
        out.push(request);
    }
    Ok((out, reader))
}

fn good(data: &[u8]) -> (Vec<Request>, TraceReader) {
    read(data, &TraceOptions::default()).unwrap()
}

fn random_rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0_u64..1 << 30, 0_u64..4, any::<bool>(), 0_u64..1 << 39, 1_u32..1 << 16);
    prop::collection::vec(row, 1..40).prop_map(|rows| {
        let mut at_us = 1_577_808_144_360_767;
        let row = |(gap, device, writes, lba, sectors)| {
            at_us += gap;
            Row { at_us, device, writes, lba, sectors }
        };
        rows.into_iter().map(row).collect()
    })
}

/// What the rows mean: devices side by side in order of appearance, if there are any.
fn expected(format: Format, rows: &[Row]) -> Vec<Request> {
    let no_devices = [Format::CloudPhysicsCsv, Format::Vscsi1, Format::Vscsi2, Format::Mqsim];
    let mut seen = Vec::new();
    let request = |r: &Row| {
        if !seen.contains(&r.device) {
            seen.push(r.device);
        }
        let slot = seen.iter().position(|d| *d == r.device).unwrap() as u64;
        let base = if no_devices.contains(&format) { 0 } else { slot * APART };
        let op = if r.writes { OpKind::Write } else { OpKind::Read };
        let at_ns = (r.at_us - rows[0].at_us) * 1000;
        Request { at_ns, ..Request::new(op, Lba(base + r.lba), r.sectors) }
    };
    rows.iter().map(request).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn rows_of_every_format_arrive_unchanged(rows in random_rows()) {
        for format in Format::ALL {
            let described = "device,op,size:bytes,lba:512,time:us";
            let columns = (format == Format::Custom).then(|| described.parse().unwrap());
            let opts = TraceOptions { columns, ..TraceOptions::default() };
            let (requests, reader) = read(&render(format, &rows), &opts).unwrap();
            prop_assert_eq!(reader.format(), format);
            prop_assert_eq!(requests, expected(format, &rows), "{}", format);
            prop_assert_eq!(reader.tally().rows, rows.len() as u64);
        }
    }

    /// The checks of the fuzz target, with bytes that resemble each format.
    #[test]
    fn damaged_rows_are_read_skipped_or_refused(
        rows in random_rows(),
        format in 0..Format::ALL.len(),
        how in any::<u8>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut data = vec![format as u8, how];
        data.extend(render(Format::ALL[format], &rows));
        for (at, byte) in changes {
            let at = 2 + at.index(data.len() - 2);
            data[at] = byte;
        }
        flashwise_workload::oracle::trace_formats(&data);
        flashwise_workload::oracle::trace_reader(&data[2..]);
    }

    #[test]
    fn any_description_is_read_or_refused(text in "[a-z0-9:,/. -]{0,60}") {
        flashwise_workload::oracle::columns(text.as_bytes());
    }
}

#[test]
fn every_time_unit_applies_to_every_format() {
    let at = |us, lba| Row { at_us: us, device: 1, writes: true, lba, sectors: 8 };
    for format in Format::ALL {
        for unit in TimeUnit::ALL {
            let columns = "device,op,size:bytes,lba:512,time:us".parse().unwrap();
            let columns = (format == Format::Custom).then_some(columns);
            let opts = TraceOptions { columns, time_unit: Some(unit), ..TraceOptions::default() };
            let (requests, reader) = read(&render(format, &[at(5, 8), at(8, 16)]), &opts).unwrap();
            assert_eq!(reader.time_unit(), unit);
            // The gap of 3 us, in the digits that the format prints, read in this unit.
            let digits = match format.time_unit() {
                _ if format == Format::Custom => 3,
                native => native.digits(),
            };
            let scale = 10_f64.powi(unit.digits() as i32 - digits as i32);
            let gap = requests[1].at_ns as f64;
            assert!((gap - 3000.0 * scale).abs() < 1.0, "{format} in {unit}: {gap}");
        }
    }
}

#[test]
fn recorded_times_may_step_back_a_little_and_simulator_inputs_may_not() {
    let late = b"1,R,0,512,1000\n1,R,512,512,999\n1,R,1024,512,1000\n1,R,1536,512,999\n";
    let (requests, reader) = good(late);
    let lbas: Vec<(u64, u64)> = requests.iter().map(|r| (r.at_ns, r.lba.0)).collect();
    assert_eq!(lbas, [(0, 1), (0, 3), (1000, 0), (1000, 2)], "a stable sort");
    assert_eq!((reader.tally().late_rows, reader.tally().late_max_ns), (2, 1000));
    let notices = reader.notices().join("\n");
    assert!(notices.contains("rows out of order: 2, by up to 0.001 ms"), "{notices}");

    let strict = TraceOptions { reorder_rows: Some(0), ..TraceOptions::default() };
    let text = read(late, &strict).unwrap_err().to_string();
    assert!(text.contains("t:2: expected times that never go back, found 999 us after"), "{text}");

    let lenient = TraceOptions { reorder_rows: Some(2), ..TraceOptions::default() };
    let (requests, _) = read(b"5 0 8 8 0\n9 0 8 8 0\n7 0 8 8 0\n", &lenient).unwrap();
    assert_eq!(requests.iter().map(|r| r.at_ns).collect::<Vec<_>>(), [0, 2, 4]);
}

#[test]
fn large_steps_back_are_errors_with_advice() {
    let jump = b"1,R,0,512,61000000\n1,R,512,512,999999\n";
    let text = read(jump, &TraceOptions::default()).unwrap_err().to_string();
    assert!(
        text.contains("at most 60 s and 4096 rows, found 999999 us after 61000000 us"),
        "{text}"
    );
    assert!(text.contains("`sort -s -t, -k5,5n`, or look further ahead with --reorder"), "{text}");
    let opts = TraceOptions { skip_bad: 1, ..TraceOptions::default() };
    let (requests, reader) = read(jump, &opts).unwrap();
    assert_eq!((requests.len(), reader.tally().bad), (1, 1));

    // A row that comes later than the rows held back.
    let mut far = String::new();
    for at in 0..5000 {
        writeln!(far, "1,R,0,512,{}", 1000 + at).unwrap();
    }
    far.push_str("1,R,0,512,1000\n");
    let text = read(far.as_bytes(), &TraceOptions::default()).unwrap_err().to_string();
    assert!(text.contains("t:5001: ") && text.contains("4096 rows"), "{text}");
    let opts = TraceOptions { reorder_rows: Some(6000), ..TraceOptions::default() };
    assert_eq!(read(far.as_bytes(), &opts).unwrap().0.len(), 5001);
}

const VOLUMES: &[u8] = b"7,R,0,512,1\n9,W,0,512,2\n7,W,512,512,3\n8,R,0,512,4\n";

#[test]
fn devices_lie_side_by_side_or_on_each_other_as_asked() {
    let lbas = |opts: &TraceOptions| -> Vec<u64> {
        read(VOLUMES, opts).unwrap().0.iter().map(|r| r.lba.0).collect()
    };
    let mut opts = TraceOptions::default();
    assert_eq!(lbas(&opts), [0, APART, 1, 2 * APART]);
    opts.devices = Some(DeviceMode::Shared);
    assert_eq!(lbas(&opts), [0, 0, 1, 0]);
    opts = TraceOptions { select: vec!["9".into(), "8".into()], ..TraceOptions::default() };
    assert_eq!(lbas(&opts), [0, APART]);
    let notices = read(VOLUMES, &opts).unwrap().1.notices().join("\n");
    assert!(notices.contains("rows of other devices, left out: 2 (7)"), "{notices}");
    assert!(notices.contains("2 devices (9, 8); they lie side by side"), "{notices}");
    opts.select.push("99".into());
    let text = read(VOLUMES, &opts).unwrap_err().to_string();
    assert!(text.contains("«99», did you mean `9`?, found rows of 7, 9, 8;"), "{text}");
    opts.select = vec!["x".into()];
    let text = read(b"fio version 2 iolog\nx add\n", &opts).unwrap_err().to_string();
    assert!(text.contains("«x», found no device names"), "{text}");
}

#[test]
fn blkparse_actions_are_chosen_and_their_absence_is_explained() {
    let text = b"8,0 0 1 0.1 7 D W 8 + 8 [x]\n8,0 0 2 0.2 0 C W 8 + 8 [0]\n";
    let of = |blkparse_action| {
        let opts = TraceOptions { blkparse_action, ..TraceOptions::default() };
        read(text, &opts).map(|(requests, _)| requests.len())
    };
    assert_eq!(of(BlkAction::Issue).unwrap(), 1);
    assert_eq!(of(BlkAction::Complete).unwrap(), 1);
    let message = of(BlkAction::Queue).unwrap_err().to_string();
    assert!(message.contains("line of action Q (--blkparse-action names another)"), "{message}");
    assert!(message.contains("action D (issued to the device): 1, action C"), "{message}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let columns = || Some("time,op,lba:512,size:512".parse().unwrap());
    let without_unit = TraceOptions { columns: columns(), ..TraceOptions::default() };
    let text = read(b"1 r 8 8", &without_unit).unwrap_err().to_string();
    assert!(text.contains("time without a unit") && text.contains("--time-unit"), "{text}");
    let other = TraceOptions { format: Some(Format::Msr), ..without_unit.clone() };
    let text = read(b"1 r 8 8", &other).unwrap_err().to_string();
    assert!(text.contains("expected the format custom"), "{text}");
    let with_unit = TraceOptions { time_unit: Some(TimeUnit::Milliseconds), ..without_unit };
    assert_eq!(read(b"1 r 8 8\n3 w 8 8", &with_unit).unwrap().0[1].at_ns, 2_000_000);
    let bare = TraceOptions { format: Some(Format::Custom), ..TraceOptions::default() };
    let text = read(b"1 r 8 8", &bare).unwrap_err().to_string();
    assert!(text.contains("for example time:us,op,lba:512,size:bytes"), "{text}");
}

#[test]
fn a_file_that_fits_two_formats_is_refused_with_both_names() {
    // 160 bytes that are records of both lengths.
    let mut data = vec![0; 160];
    for at in (0..160).step_by(32) {
        data[at + 12..at + 16].copy_from_slice(&[0x28, 0, 0, 1]);
    }
    for at in (0..160).step_by(40) {
        data[at..at + 4].copy_from_slice(&[0x28, 0, 0, 2]);
    }
    let both = read(&data, &TraceOptions::default()).unwrap_err();
    let text = both.to_string();
    assert!(text.contains("could be vscsi1 or vscsi2; name the right one with --format"), "{text}");
}

fn xz(plain: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(plain).unwrap();
    xz.finish().unwrap()
}

#[test]
fn xz_files_are_whole_or_refused() {
    let plain: String = (0..200).map(|i| format!("{i} 0 {} 8 1\n", i * 7919 % 10007)).collect();
    let packed = xz(plain.as_bytes());
    let (requests, reader) = good(&packed);
    assert_eq!((requests.len(), reader.compression()), (200, Compression::Xz));
    let two_streams = [packed.clone(), xz(b"900 0 8 8 1\n")].concat();
    assert_eq!(good(&two_streams).0.len(), 201);
    for cut in 7..packed.len() {
        let error = read(&packed[..cut], &TraceOptions::default());
        let error = error.expect_err("a cut is never taken for the end").to_string();
        assert!(error.contains("xz data ends early"), "cut at {cut}: {error}");
    }
    let garbage = [packed.clone(), b"garbage".to_vec()].concat();
    let text = read(&garbage, &TraceOptions::default()).unwrap_err().to_string();
    assert!(text.contains("damaged after 200 complete rows"), "{text}");
    for at in 6..packed.len() {
        let mut flipped = packed.clone();
        flipped[at] ^= 0x10;
        assert!(read(&flipped, &TraceOptions::default()).is_err(), "flipped at {at}");
    }
}

#[test]
fn an_xz_bomb_is_bounded_in_data_and_in_memory() {
    let packed = xz(&vec![b'7'; 10 << 20]);
    let opts = TraceOptions { max_expanded_bytes: 1 << 10, ..TraceOptions::default() };
    assert!(matches!(read(&packed, &opts), Err(WorkloadError::TooLarge { .. })));
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = 1 << 28;
    let mut big = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    big.write_all(b"1 0 8 8 1\n").unwrap();
    let text = read(&big.finish().unwrap(), &TraceOptions::default()).unwrap_err().to_string();
    assert!(text.contains("more than 128 MiB of memory"), "{text}");
}
