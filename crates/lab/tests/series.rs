//! The series of a replay against its row: the same requests, bytes and erases, only
//! told apart by time.

mod common;

use common::{drive, fill, random, sequential, units};
use flashwise_hint::Lba;
use flashwise_lab::{
    Interval, LabError, ObserveError, Pace, Policy, Replay, Row, Series, SeriesRow, precondition,
    replay, replay_observed,
};
use flashwise_ssd::Ssd;
use flashwise_workload::{OpKind, Request, Source};

fn watched(
    ssd: &mut Ssd,
    source: impl Source,
    pace: Pace,
    interval: Interval,
) -> Result<(Row, Vec<SeriesRow>), LabError> {
    let policy = Policy::none();
    let spec = Replay { workload: "test", policy: &policy, pace, fit: None, cpu_clock: None };
    let mut series = Series::new(interval);
    let row = replay_observed(ssd, source, &spec, &mut series)?;
    Ok((row, series.rows()))
}

fn closed(queue_depth: u32) -> Pace {
    Pace::Closed { queue_depth, gap_ns: 0 }
}

fn sums_agree(row: &Row, series: &[SeriesRow]) {
    let sum = |of: fn(&SeriesRow) -> u64| series.iter().map(of).sum::<u64>();
    assert_eq!(sum(|r| r.requests), row.requests);
    assert_eq!(sum(|r| r.read_requests), row.read_requests);
    assert_eq!(sum(|r| r.write_requests), row.write_requests);
    assert_eq!(sum(|r| r.trim_requests), row.trim_requests);
    assert_eq!(sum(|r| r.flush_requests), row.flush_requests);
    assert_eq!(sum(|r| r.bytes_host), row.bytes_host);
    assert_eq!(sum(|r| r.bytes_gc), row.bytes_gc);
    assert_eq!(sum(|r| r.erases), row.erases);
    let mib = sum(|r| r.read_bytes + r.write_bytes) as f64 / f64::from(1 << 20);
    assert!((mib / row.elapsed_s / row.host_mib_s - 1.0).abs() < 1e-9);
    if let Some(waf) = row.waf {
        let found = sum(|r| r.bytes_programmed) as f64 / sum(|r| r.bytes_host) as f64;
        assert!((found - waf).abs() < 1e-9);
    }
    let last = series.last().expect("an interval");
    assert_eq!((last.free_blocks, last.erase_max), (row.free_blocks, row.erase_max));
    assert!((last.time_s + last.length_s - row.elapsed_s).abs() < 1e-9);
    for (a, b) in series.iter().zip(&series[1..]) {
        assert!((a.time_s + a.length_s - b.time_s).abs() < 1e-9, "no gap and no overlap");
        assert!(a.erase_max <= b.erase_max && a.erase_mean <= b.erase_mean);
    }
    let longest = |of: fn(&SeriesRow) -> Option<f64>| {
        series.iter().filter_map(of).fold(None, |m: Option<f64>, v| Some(m.map_or(v, |m| m.max(v))))
    };
    assert_eq!(longest(|r| r.read_us[3]), row.read_max_us);
    assert_eq!(longest(|r| r.write_us[3]), row.write_max_us);
}

#[test]
fn sums_over_intervals_of_any_length_are_those_of_the_row() {
    let mut aged = drive("tiny", &[]);
    precondition(&mut aged, 1, |_| ());
    let lengths = [1_000, 77_777, 1_000_000, 50_000_000, u64::MAX / 4];
    for interval in lengths.map(Interval::Fixed).into_iter().chain([Interval::Auto]) {
        for queue_depth in [1, 32] {
            let mut ssd = aged.clone();
            let source = random(&ssd, 50, 3000, 3);
            match watched(&mut ssd, source, closed(queue_depth), interval) {
                Ok((row, series)) => sums_agree(&row, &series),
                Err(LabError::Observe(ObserveError::TooManyIntervals { .. })) => {
                    assert_eq!(interval, Interval::Fixed(1_000));
                }
                Err(e) => panic!("{e}"),
            }
        }
    }
}

#[test]
fn a_series_of_one_interval_is_the_row() {
    let mut ssd = drive("tiny", &[]);
    precondition(&mut ssd, 1, |_| ());
    let source = random(&ssd, 50, 20_000, 3);
    let hour = Interval::Fixed(3_600_000_000_000);
    let (row, series) = watched(&mut ssd, source, closed(8), hour).unwrap();
    let [one] = &series[..] else { panic!("{} intervals", series.len()) };
    assert_eq!(one.read_us, [row.read_p50_us, row.read_p99_us, row.read_p999_us, row.read_max_us]);
    let writes = [row.write_p50_us, row.write_p99_us, row.write_p999_us, row.write_max_us];
    assert_eq!(one.write_us, writes);
    assert_eq!((one.waf, one.iops), (row.waf, row.iops));
    assert_eq!((one.read_mib_s, one.write_mib_s), (row.read_mib_s, row.write_mib_s));
    let [min, mean, max] = one.die_busy_range();
    assert!(min <= mean && mean <= max && max <= 1.0);
    // The row counts operations that began in full, the series up to the end.
    assert!((mean / row.die_utilization - 1.0).abs() < 0.01, "{mean}, {}", row.die_utilization);
}

#[test]
fn who_is_watched_does_the_same() {
    let mut aged = drive("tiny", &[]);
    precondition(&mut aged, 1, |_| ());
    let policy = Policy::none();
    let pace = closed(16);
    let spec = Replay { workload: "test", policy: &policy, pace, fit: None, cpu_clock: None };
    let mut alone = aged.clone();
    let source = random(&alone, 30, 10_000, 5);
    let expected = replay(&mut alone, source, &spec).unwrap();
    for interval in [Interval::Auto, Interval::Fixed(200_000)] {
        let mut ssd = aged.clone();
        let source = random(&ssd, 30, 10_000, 5);
        let (row, series) = watched(&mut ssd, source, pace, interval).unwrap();
        assert_eq!(row, expected);
        let mut again = aged.clone();
        let source = random(&again, 30, 10_000, 5);
        assert_eq!(watched(&mut again, source, pace, interval).unwrap().1, series);
    }
}

#[test]
fn without_a_length_there_are_some_hundred_intervals() {
    for n in [2_000, 20_000, 100_000] {
        let mut ssd = drive("tiny", &[]);
        let n_units = units(&ssd);
        fill(&mut ssd, n_units);
        let source = random(&ssd, 100, n, 1);
        let (row, series) = watched(&mut ssd, source, closed(4), Interval::Auto).unwrap();
        assert!((200..=1000).contains(&series.len()), "{n}: {}", series.len());
        sums_agree(&row, &series);
    }
}

#[test]
fn a_busy_die_is_told_from_idle_ones() {
    let mut ssd = drive("bench-16g", &[]);
    let n_units = units(&ssd) / 8;
    fill(&mut ssd, n_units);
    // One unit, so one die, again and again.
    let reads: Vec<Request> = (0..500).map(|_| Request::new(OpKind::Read, Lba(0), 8)).collect();
    let interval = Interval::Fixed(1_000_000);
    let (_, series) = watched(&mut ssd, reads.into_iter(), closed(4), interval).unwrap();
    for row in &series[1..series.len() - 1] {
        let busy = row.die_busy.iter().filter(|&&b| b > 0.0).count();
        assert_eq!((busy, row.die_busy.len()), (1, 16), "{row:?}");
        // One of two planes that sense on their own, without a pause.
        assert!((0.45..=0.55).contains(&row.die_busy_range()[2]), "{row:?}");
    }
}

#[test]
fn gaps_and_far_completions_have_their_intervals() {
    let mut ssd = drive("tiny", &[]);
    let at = |ms: u64, op, lba| Request { at_ns: ms * 1_000_000, ..Request::new(op, Lba(lba), 8) };
    let requests = vec![
        at(0, OpKind::Write, 0),
        at(5000, OpKind::Write, 8),
        at(5001, OpKind::Flush, 0),
        at(9000, OpKind::Trim, 0),
        at(9000, OpKind::Read, 8),
    ];
    let open = Pace::Open { time_scale: 1.0 };
    let second = Interval::Fixed(1_000_000_000);
    let (row, series) = watched(&mut ssd, requests.into_iter(), open, second).unwrap();
    sums_agree(&row, &series);
    let n: Vec<u64> = series.iter().map(|r| r.requests).collect();
    assert_eq!(n, [1, 0, 0, 0, 0, 2, 0, 0, 0, 2]);
    let quiet = &series[2];
    assert_eq!((quiet.waf, quiet.read_us, quiet.iops), (None, [None; 4], 0.0));
    // An overloaded open loop is told completions far ahead of arrivals.
    let mut ssd = drive("tiny", &[]);
    let n_units = units(&ssd);
    let burst = sequential(&ssd, OpKind::Write, 8, 2 * n_units);
    let (row, series) = watched(&mut ssd, burst, open, Interval::Auto).unwrap();
    sums_agree(&row, &series);
    assert!(series.iter().filter(|r| r.requests > 0).count() > 100);
}
