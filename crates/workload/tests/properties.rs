//! What holds for random traces, random bytes and random drives.

use std::io::Write as _;

use flashwise_hint::{Lba, Relation, WriteHint};
use flashwise_workload::{
    Extents, Fit, FitMode, Format, OpKind, Request, Summary, WorkloadError, oracle, summarize,
};
use proptest::prelude::*;

/// A valid trace of either format, as text.
fn trace_text() -> impl Strategy<Value = String> {
    let rows = prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 54, 1_u32.., 0_usize..14), 1..60);
    (rows, any::<bool>(), any::<bool>(), 0_u64..1000).prop_map(|(rows, mqsim, crlf, decimals)| {
        let codes =
            ["8", "28", "88", "a8", "a", "2a", "8a", "aa", "42", "35", "91", "41", "93", "0x2A"];
        let end = if crlf { "\r\n" } else { "\n" };
        let mut out = String::new();
        if !mqsim {
            out += &format!("version,time,op,size,lbn{end}");
        }
        let mut time = 0;
        for (gap, lba, sectors, kind) in rows {
            time += gap;
            out += &if mqsim {
                format!("{time} {kind} {lba} {sectors} {}{end}", kind % 2)
            } else {
                let (whole, bytes) = (time / 1000, u64::from(sectors) * 512);
                format!("1,{whole}.{decimals:03},{},{bytes},{lba}{end}", codes[kind])
            };
        }
        out
    })
}

/// Bytes that resemble a trace: a valid one with a few bytes replaced.
fn damaged_trace() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (trace_text(), bytes).prop_map(|(text, changes)| {
        let mut data = text.into_bytes();
        for (at, byte) in changes {
            let at = at.index(data.len());
            data[at] = byte;
        }
        data
    })
}

fn fio_text() -> impl Strategy<Value = String> {
    let keys = prop::sample::select(vec![
        "rw",
        "bs",
        "size",
        "offset",
        "io_size",
        "loops",
        "number_ios",
        "iodepth",
        "rwmixread",
        "rwmixwrite",
        "random_distribution",
        "norandommap",
        "randseed",
        "numjobs",
        "name",
        "verify",
        "direct",
        "nonsense",
    ]);
    let values = prop::sample::select(vec![
        "1", "0", "4k", "50%", "100%", "1m", "8g", "randrw", "write", "randread", "zipf:1.2",
        "zipf:0.5", "random", "${SIZE}", "${NOPE}", "70", "512", "513", "9999999p", "", "1e3",
    ]);
    prop::collection::vec((keys, values), 0..8).prop_map(|lines| {
        let mut out = String::from("[global]\niodepth=4 ; deep\n[j]\n");
        for (key, value) in lines {
            out += &format!("{key}={value}\n");
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The oracle writes what it read in plain, gzip and zstd and reads it again.
    #[test]
    fn valid_traces_round_trip(text in trace_text()) {
        oracle::trace_reader(text.as_bytes());
    }

    #[test]
    fn damaged_traces_are_read_or_refused(data in damaged_trace()) {
        oracle::trace_reader(&data);
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..400)) {
        oracle::trace_reader(&data);
        oracle::fio_job(&data);
    }

    /// Bytes behind the marks of the compressions reach the decoders.
    #[test]
    fn any_archive_is_read_or_refused(
        magic in prop::sample::select(vec![
            &b"\x1f\x8b\x08\0"[..],
            b"\x28\xb5\x2f\xfd",
            b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46",
        ]),
        data in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        oracle::trace_reader(&[magic, &data].concat());
    }

    #[test]
    fn damaged_archives_are_read_or_refused(
        data in damaged_trace(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut xz = lzma_rust2::XzWriter::new(vec![], lzma_rust2::XzOptions::with_preset(0)).unwrap();
        xz.write_all(&data).unwrap();
        for mut packed in [zstd::encode_all(&data[..], 1).unwrap(), xz.finish().unwrap()] {
            let at = at.index(packed.len());
            packed[at] = byte;
            oracle::trace_reader(&packed);
        }
    }

    #[test]
    fn fio_jobs_are_read_or_refused(text in fio_text()) {
        oracle::fio_job(text.as_bytes());
    }
}

/// Random workloads whose addresses spread far beyond a small drive.
fn workload() -> impl Strategy<Value = Vec<Request>> {
    let row = (0_u64..5000, 1_u32..40, 0_usize..4, prop::option::of(0_u64..6000));
    prop::collection::vec(row, 1..40).prop_map(|rows| {
        let ops = [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::WriteZeroes];
        let request = |(lba, sectors, op, prev): (u64, u32, usize, Option<u64>)| {
            let mut request = Request::new(ops[op], Lba(lba), sectors);
            request.hint = prev.map_or(WriteHint::NONE, |prev| WriteHint::append(Lba(prev)));
            request
        };
        rows.into_iter().map(request).collect()
    })
}

fn summary(list: &[Request], align: u64) -> Summary {
    summarize(&mut Vec::from(list).into_iter(), align).unwrap()
}

fn prev(request: &Request) -> Option<u64> {
    match request.hint.relation {
        Relation::Append { prev } => Some(prev.0),
        _ => None,
    }
}

proptest! {
    #[test]
    fn compacting_is_injective_ordered_and_dense(list in workload(), align in 1_u64..17) {
        let summary = summary(&list, align);
        let footprint = summary.touched.total_sectors();
        let fit = match Fit::new(FitMode::Compact, &summary, footprint, align) {
            Ok(fit) => fit,
            Err(error) => panic!("the footprint itself must do: {error}"),
        };
        // Every touched sector on its own: order kept, no two on one place, offset kept.
        let mut places = Vec::new();
        for sector in summary.touched.iter().flatten() {
            let mut probe = Request::new(OpKind::Read, Lba(sector), 1);
            if fit.apply(&mut probe).is_ok() {
                prop_assert_eq!(probe.lba.0 % align, sector % align);
                places.push(probe.lba.0);
            }
        }
        if fit.is_identity() {
            prop_assert!(summary.max_lba_end <= footprint);
        } else {
            prop_assert_eq!(&places, &(0..footprint).collect::<Vec<_>>());
        }
        for request in &list {
            let mut moved = *request;
            let changed = fit.apply(&mut moved).unwrap();
            prop_assert_eq!(changed, moved.lba != request.lba);
            prop_assert!(moved.end() <= footprint);
            prop_assert_eq!((moved.sectors, moved.op), (request.sectors, request.op));
            if !fit.is_identity() && let Some(before) = prev(request) {
                let known = summary.touched.contains(before);
                prop_assert_eq!(prev(&moved).is_some(), known);
                prop_assert!(prev(&moved).is_none_or(|prev| prev < footprint));
            }
        }
        // One mapping unit less and it no longer fits.
        if summary.max_lba_end > footprint && footprint > align {
            let error = Fit::new(FitMode::Compact, &summary, footprint - align, align).unwrap_err();
            let text = error.to_string();
            prop_assert!(text.contains(&format!("{footprint} sectors")), "{}", text);
            prop_assert!(text.contains(&format!("{} sectors", footprint - align)), "{}", text);
        }
    }

    #[test]
    fn wrapping_stays_inside_and_loses_nothing(
        list in workload(),
        align in 1_u64..17,
        capacity in 100_u64..3000,
    ) {
        let summary = summary(&list, align);
        let fit = Fit::new(FitMode::Wrap, &summary, capacity, align).unwrap();
        let reachable: Extents = summary
            .touched
            .iter()
            .flat_map(|range| fit.map_range(range.start, range.end.min(summary.max_lba_end)).unwrap())
            .map(|(start, end)| start..end)
            .collect();
        let usable = if fit.is_identity() { capacity } else { capacity - capacity % align };
        for request in &list {
            let mut moved = *request;
            let changed = fit.apply(&mut moved).unwrap();
            prop_assert_eq!(changed, moved.lba != request.lba);
            prop_assert_eq!((moved.sectors, moved.op), (request.sectors, request.op));
            prop_assert!(moved.end() <= usable);
            prop_assert!(prev(&moved).is_none_or(|prev| prev < usable));
            let sectors = u64::from(request.sectors);
            let wrapped = request.lba.0 % usable;
            if fit.is_identity() || wrapped + sectors <= usable {
                prop_assert_eq!(moved.lba.0, if fit.is_identity() { request.lba.0 } else { wrapped });
            } else if usable >= sectors + align {
                prop_assert_eq!(moved.lba.0 % align, request.lba.0 % align);
                prop_assert!(usable - moved.end() < align, "shifted no further than needed");
            }
            let covered = (moved.lba.0..moved.end()).all(|sector| reachable.contains(sector));
            prop_assert!(covered, "{:?} outside {:?}", moved, reachable);
        }
    }

    #[test]
    fn rejecting_names_exactly_the_requests_that_do_not_fit(
        list in workload(),
        capacity in 100_u64..6000,
    ) {
        let fit = Fit::new(FitMode::Reject, &summary(&list, 8), capacity, 8).unwrap();
        for request in &list {
            let mut moved = *request;
            match fit.apply(&mut moved) {
                Ok(changed) => {
                    prop_assert!(!changed && moved.lba == request.lba);
                    prop_assert!(request.end() <= capacity);
                }
                Err(error) => {
                    prop_assert!(request.end() > capacity);
                    let text = error.to_string();
                    prop_assert!(text.contains(&format!("LBA {}", request.lba.0)), "{}", text);
                    prop_assert!(text.contains(&format!("{capacity} sectors")), "{}", text);
                }
            }
        }
    }
}

#[test]
fn what_fits_is_never_changed() {
    let list = [Request::new(OpKind::Write, Lba(90), 10)];
    for mode in FitMode::ALL {
        let fit = Fit::new(mode, &summary(&list, 8), 100, 8).unwrap();
        let mut request = list[0];
        assert!(fit.is_identity() && !fit.apply(&mut request).unwrap());
        assert_eq!(request, list[0]);
    }
}

#[test]
fn a_request_the_summary_did_not_see_is_refused() {
    let list = [Request::new(OpKind::Write, Lba(8000), 8)];
    let fit = Fit::new(FitMode::Compact, &summary(&list, 8), 80, 8).unwrap();
    let mut stray = Request::new(OpKind::Write, Lba(8008), 8);
    let error = fit.apply(&mut stray).unwrap_err();
    assert!(matches!(error, WorkloadError::NotTouched { lba: 8008, .. }), "{error}");
    let mut flush = Request::new(OpKind::Flush, Lba(0), 0);
    assert!(!fit.apply(&mut flush).unwrap());
}

#[test]
fn bad_drives_and_names_are_refused() {
    let summary = Summary::default();
    for (capacity, align) in [(0, 8), (7, 8), (8, 0)] {
        let text = Fit::new(FitMode::Wrap, &summary, capacity, align).unwrap_err().to_string();
        assert!(text.contains("at least one mapping unit"), "{text}");
    }
    let text = "compcat".parse::<FitMode>().unwrap_err().to_string();
    assert!(text.contains("did you mean `compact`?") && text.contains("wrap, compact, reject"));
    assert_eq!(Format::ALL.len(), 13, "new formats need a generator in formats.rs");
}
