//! `flashwise replay`: a trace or a job on a modelled drive.

use std::path::Path;

use anyhow::anyhow;
use serde_json::{Value, json};

use flashwise_lab::{Aging, Pace, Policy, Row, fill_ranges, in_words, precondition};
use flashwise_report::{Figure, figures_table, json_text};
use flashwise_ssd::{DeviceConfig, Options, Ssd, is_saved_drive};
use flashwise_workload::{
    Fit, FitMode, JobPlan, JobSpec, JobTarget, Summary, open_trace, read_fio_file, summarize,
};

use crate::Failure;
use crate::args::ReplayArgs;
use crate::files::{self, App};
use crate::inspect;
use crate::jobs;
use crate::journal;
use crate::output::{self, Progress};
use crate::side_by_side::SideBySide;
use crate::watch::{Files, same_file};

/// What is replayed.
pub(crate) enum Work {
    Trace { summary: Box<Summary>, format: String, n_devices_apart: usize },
    Jobs { plan: JobPlan },
    App { app: Box<App> },
}

/// The one job of a plan that is a plain closed loop.
pub(crate) fn plain(plan: &JobPlan) -> Option<&JobSpec> {
    match &plan.specs[..] {
        [only] if only.is_plain() => Some(only),
        _ => None,
    }
}

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    if args.list {
        return files::list(args.json);
    }
    let app = files::app(args)?;
    if args.inspect {
        if app.is_some() {
            let input = args.input().display();
            let e = anyhow!("--inspect is for traces; {input} is an application, see --list");
            return Err(Failure::Input(e));
        }
        return inspect::run(args);
    }
    if let Some(app) = app.as_ref().filter(|_| files::is_on_ram(args)) {
        return files::run_on_ram(args, app);
    }
    let policies = policies(args)?;
    let mut ssd = open_device(args)?;
    let loaded = is_saved_drive(Path::new(&args.device));
    let (work, notices) = open_work(args, app, &ssd)?;
    let unused = unused_options(args, &work, loaded);
    notices.iter().chain(&unused).for_each(|n| output::message(&format!("note: {n}")));
    let pace = pace(args, &ssd, &work)?;
    let fit = fit(args, &ssd, &work)?;
    let classes = journal::classes(args, &ssd, &work)?;
    check_save_drive(args)?;
    let mut files = watch_files(args, &ssd)?;
    let aging = age(args, &mut ssd, loaded);
    if let Some(a) = aging.as_ref().filter(|a| a.read_only) {
        return Err(unsteady(a));
    }
    if !args.fresh {
        fill_what_is_read(&mut ssd, &work, fit.as_ref())?;
    }
    if let Some(path) = &args.save_drive {
        ssd.save(path).map_err(|e| Failure::Work(e.into()))?;
    }
    let all = SideBySide {
        args,
        work: &work,
        pace,
        fit: fit.as_ref(),
        policies: &policies,
        classes: &classes,
    };
    let rows = all.run(ssd, &mut files)?;
    files.finish()?;
    if !classes.is_empty() && rows.iter().all(|row| row.classes.is_none()) {
        output::message(
            "note: no write of the trace lies wholly in the journal; is the image one of the \
             traced device?",
        );
    }
    print(args, &rows, &work, aging.as_ref(), fit.as_ref())?;
    if let Some(row) = rows.iter().find(|row| row.stopped.is_some()) {
        let why = row.stopped.as_deref().unwrap_or_default();
        let policy = &row.policy;
        return Err(Failure::Work(anyhow!(
            "policy {policy}: the figures end before the workload does: {why}"
        )));
    }
    match aging {
        Some(a) if !a.steady => Err(unsteady(&a)),
        _ => Ok(()),
    }
}

/// Options that were given and change nothing.
fn unused_options(args: &ReplayArgs, work: &Work, loaded: bool) -> Vec<String> {
    let is_job = !matches!(work, Work::Trace { .. });
    let is_app = matches!(work, Work::App { .. });
    let unused = [
        (args.fs.is_some() && !is_app, "--fs: a trace or a job is of a device, not of files"),
        (
            args.queue_depth.is_some() && is_app,
            "--queue-depth: a file system has --fs ext4,nr_requests=N",
        ),
        (args.time_scale != 1.0 && is_job, "--time-scale: a job has no arrival times"),
        (
            args.time_scale != 1.0 && !is_job && args.queue_depth.is_some(),
            "--time-scale: with --queue-depth requests do not arrive at their times",
        ),
        (args.fresh && loaded, "--fresh: the drive is used as it was saved, and nothing is filled"),
    ];
    let given = unused.into_iter().filter(|(given, _)| *given).map(|(_, what)| what.to_owned());
    let of_traces = args.given_trace_options().into_iter().filter(|_| is_job);
    let what = if is_app { "an application" } else { "a fio job" };
    let of_traces = of_traces.map(|name| format!("{name}: the input is {what}"));
    given.chain(of_traces).map(|what| format!("no effect of {what}")).collect()
}

fn policies(args: &ReplayArgs) -> Result<Vec<Policy>, Failure> {
    if args.policies.is_empty() {
        return Ok(vec![Policy::none()]);
    }
    let parsed: Result<Vec<_>, _> = args.policies.iter().map(|p| Policy::parse(p)).collect();
    parsed.map_err(Failure::input)
}

fn open_device(args: &ReplayArgs) -> Result<Ssd, Failure> {
    let path = Path::new(&args.device);
    if is_saved_drive(path) {
        if !args.set.is_empty() {
            let e = anyhow!("--set cannot change a saved drive; age another one with it");
            return Err(Failure::Input(e));
        }
        return Ssd::load(path, Options::default()).map_err(Failure::input);
    }
    let cfg = DeviceConfig::open(&args.device, &args.set).map_err(Failure::input)?;
    Ssd::new(cfg, Options::default()).map_err(Failure::input)
}

fn open_work(
    args: &ReplayArgs,
    app: Option<App>,
    ssd: &Ssd,
) -> Result<(Work, Vec<String>), Failure> {
    if let Some(app) = app {
        let notices = app.check(ssd.capacity_sectors() * 512)?;
        return Ok((Work::App { app: Box::new(app) }, notices));
    }
    if is_job(args.input()) {
        let file = read_fio_file(args.input(), &|name| std::env::var(name).ok())
            .map_err(Failure::input)?;
        let target = JobTarget {
            capacity_sectors: ssd.capacity_sectors(),
            n_handles: ssd.ftl().config().n_handles,
            seed: args.seed,
            queue_depth: args.queue_depth,
        };
        let plan = file.jobs(&target).map_err(Failure::input)?;
        return Ok((Work::Jobs { plan }, file.notices().to_vec()));
    }
    let progress = Progress::start("reading the trace");
    let mut reader = open_trace(args.input(), &args.trace_options()).map_err(Failure::input)?;
    let summary = summarize(&mut reader, ssd.sectors_per_unit()).map_err(Failure::input)?;
    drop(progress);
    let mut notices = reader.notices();
    notices.extend(summary.implausible_span());
    let apart = reader.devices().iter().any(|device| device.base_sectors > 0);
    if args.fit == FitMode::Wrap && summary.max_lba_end > ssd.capacity_sectors() {
        let together = "with --fit wrap several devices fall on the same addresses of the drive; \
                        --fit compact keeps them apart";
        notices.extend(apart.then(|| together.to_owned()));
    }
    let format = reader.format().to_string();
    let n_devices_apart = if apart { reader.devices().len() } else { 0 };
    Ok((Work::Trace { summary: Box::new(summary), format, n_devices_apart }, notices))
}

/// Whether the input is a fio job, which is told by its name.
pub(crate) fn is_job(input: &Path) -> bool {
    input.extension().is_some_and(|e| e == "fio")
}

fn pace(args: &ReplayArgs, ssd: &Ssd, work: &Work) -> Result<Pace, Failure> {
    let gap_ns = (ssd.config().host.gap_us * 1000.0).round() as u64;
    if !(args.time_scale.is_finite() && args.time_scale > 0.0) {
        let e = anyhow!("--time-scale {}: expected a positive factor", args.time_scale);
        return Err(Failure::Input(e));
    }
    if args.queue_depth.is_some_and(|n| !(1..=65_535).contains(&n)) {
        let n = args.queue_depth.unwrap_or(0);
        return Err(Failure::Input(anyhow!("--queue-depth {n}: expected 1 to 65535")));
    }
    let queue_depth = match (args.queue_depth, work) {
        (_, Work::App { .. }) => return Ok(Pace::Driven),
        (None, Work::Trace { .. }) => return Ok(Pace::Open { time_scale: args.time_scale }),
        (Some(n), Work::Trace { .. }) => n,
        (_, Work::Jobs { plan }) => match plain(plan) {
            Some(job) => job.queue_depth,
            None => return Ok(Pace::Driven),
        },
    };
    Ok(Pace::Closed { queue_depth, gap_ns })
}

/// The drive must not be saved over what it was made from.
fn check_save_drive(args: &ReplayArgs) -> Result<(), Failure> {
    let Some(path) = &args.save_drive else { return Ok(()) };
    let others = [args.input(), Path::new(&args.device)];
    if others.iter().any(|other| same_file(path, other)) {
        let e = anyhow!("--save-drive {}: this run uses that file already", path.display());
        return Err(Failure::Input(e));
    }
    Ok(())
}

/// The files of `--series` and `--latencies`, created before the work begins.
fn watch_files(args: &ReplayArgs, ssd: &Ssd) -> Result<Files, Failure> {
    let mut others = vec![args.input(), Path::new(&args.device)];
    others.extend(args.save_drive.as_deref());
    Files::create(&args.watch, ssd, &others)
}

/// A mapping of addresses, if the drive is too small for some.
fn fit(args: &ReplayArgs, ssd: &Ssd, work: &Work) -> Result<Option<Fit>, Failure> {
    let Work::Trace { summary, .. } = work else { return Ok(None) };
    let capacity = ssd.capacity_sectors();
    if summary.max_lba_end <= capacity {
        return Ok(None);
    }
    let fit = Fit::new(args.fit, summary, capacity, ssd.sectors_per_unit());
    fit.map(Some).map_err(|e| Failure::Input(anyhow!("{}: {e}", args.input().display())))
}

fn age(args: &ReplayArgs, ssd: &mut Ssd, loaded: bool) -> Option<Aging> {
    if args.fresh || loaded {
        return None;
    }
    let progress = Progress::start("ageing the drive");
    let most = ssd.config().precondition.drive_writes_max;
    Some(precondition(ssd, args.seed, |n| {
        progress.say(&format!("ageing the drive: {n:.2} of at most {most} drive writes"));
    }))
}

/// Reads of addresses that were never written would cost nothing.
fn fill_what_is_read(ssd: &mut Ssd, work: &Work, fit: Option<&Fit>) -> Result<(), Failure> {
    match work {
        Work::Trace { summary, .. } => {
            for range in summary.read.iter() {
                let fitted = match fit {
                    None => vec![(range.start, range.end)],
                    Some(fit) => fit.map_range(range.start, range.end).map_err(Failure::input)?,
                };
                fill_ranges(ssd, fitted.into_iter().map(|(start, end)| start..end));
            }
        }
        // A file system reads what it wrote.
        Work::App { .. } => {}
        Work::Jobs { plan } => {
            fill_ranges(ssd, plan.regions_read());
        }
    }
    Ok(())
}

pub(crate) fn workload_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn unsteady(a: &Aging) -> Failure {
    if a.read_only {
        return Failure::Work(anyhow!(
            "the drive became read-only after {:.2} drive writes while it was aged: it lost its \
             last spare block. Lower the chances of failure (faults.*) or raise \
             ftl.over_provisioning with --set, or start from a blank drive with --fresh",
            a.drive_writes
        ));
    }
    let spread = a.waf_spread_percent.map_or("unknown".to_owned(), |s| format!("{s:.1} %"));
    Failure::Work(anyhow!(
        "the drive did not reach a steady state within {:.1} drive writes: write amplification \
         still differed by {spread} between windows. Raise precondition.drive_writes_max, \
         precondition.window_drive_writes or precondition.tolerance_percent with --set, or start \
         from a blank drive with --fresh",
        a.drive_writes
    ))
}

fn print(
    args: &ReplayArgs,
    rows: &[Row],
    work: &Work,
    aging: Option<&Aging>,
    fit: Option<&Fit>,
) -> Result<(), Failure> {
    let values: Result<Vec<Value>, _> = rows.iter().map(serde_json::to_value).collect();
    let values = values.map_err(|e| Failure::Work(e.into()))?;
    let summary: Vec<String> = rows.iter().skip(1).map(|r| in_words(&rows[0], r)).collect();
    let fit_done = fit.map_or("none needed".to_owned(), |_| args.fit.to_string());
    if args.json {
        let format = match work {
            Work::Trace { format, .. } => format.as_str(),
            Work::Jobs { .. } => "fio job",
            Work::App { .. } => "application",
        };
        return output::results(&json_text(&json!({
            "replay": args.input().display().to_string(),
            "device": args.device,
            "set": args.set,
            "seed": args.seed,
            "format": format,
            "fit": fit_done,
            "steady": aging.map(|a| a.steady),
            "precondition": aging,
            "rows": values,
            "summary": summary,
        })));
    }
    let mut text = format!("{} on {}\n", args.input().display(), args.device);
    text.push_str(&match aging {
        Some(a) => aged_line(a),
        None if is_saved_drive(Path::new(&args.device)) => "drive: as saved\n".to_owned(),
        None => "drive: blank (--fresh)\n".to_owned(),
    });
    if let Work::App { app } = work {
        text.push_str(&files::fs_line(app));
    }
    if fit.is_some() {
        text.push_str(&fitted_line(args, work));
    }
    text.push('\n');
    text.push_str(&figures_table(&values, "policy", FIGURES));
    text.push_str(&files::table(&values));
    text.push_str(&jobs::table(&values));
    if !summary.is_empty() {
        text.push_str(&format!("\n{}\n", summary.join("\n")));
    }
    output::results(&text)
}

fn aged_line(a: &Aging) -> String {
    let how = match a.waf {
        Some(waf) if a.steady => format!(
            ", then overwritten {:.2} times at random: steady, write amplification {waf:.3}",
            a.drive_writes
        ),
        Some(waf) => format!(
            ", then overwritten {:.2} times at random: NOT steady, write amplification {waf:.3}",
            a.drive_writes
        ),
        None => String::new(),
    };
    format!("drive: filled to {:.0} %{how}\n", a.occupancy * 100.0)
}

fn fitted_line(args: &ReplayArgs, work: &Work) -> String {
    let Work::Trace { summary, n_devices_apart, .. } = work else { return String::new() };
    let what = match n_devices_apart {
        0 => format!(
            "beyond the drive (up to {:.1} GiB)",
            summary.max_lba_end as f64 / f64::from(2 << 20)
        ),
        n => format!("of {n} devices side by side"),
    };
    format!(
        "addresses: {what}, fitted by {}; footprint {:.1} MiB\n",
        args.fit,
        summary.touched.total_sectors() as f64 / 2048.0
    )
}

const MIB: f64 = (1 << 20) as f64;

/// A figure in bytes, shown in MiB.
pub(crate) const fn mib(key: &'static str, label: &'static str) -> Figure {
    Figure { per: MIB, ..Figure::plain(key, label, 1) }
}

/// A part, shown in percent.
pub(crate) const fn percent(key: &'static str, label: &'static str) -> Figure {
    Figure { per: 0.01, ..Figure::plain(key, label, 1) }
}

const FIGURES: &[Figure] = &[
    Figure::plain("requests", "requests", 0),
    Figure::plain("read_requests", "  reads", 0),
    Figure::plain("write_requests", "  writes", 0),
    Figure::rare("trim_requests", "  trims"),
    Figure::rare("flush_requests", "  flushes"),
    Figure::plain("elapsed_s", "elapsed [s]", 4),
    Figure::plain("host_mib_s", "throughput [MiB/s]", 1),
    Figure::plain("iops", "requests per second", 0),
    Figure::plain("waf", "write amplification", 3),
    Figure::plain("read_mean_us", "read latency, mean [us]", 1),
    Figure::plain("read_p50_us", "  50 %", 1),
    Figure::plain("read_p99_us", "  99 %", 1),
    Figure::plain("read_p999_us", "  99.9 %", 1),
    Figure::plain("read_max_us", "  slowest", 1),
    Figure::plain("write_mean_us", "write latency, mean [us]", 1),
    Figure::plain("write_p50_us", "  50 %", 1),
    Figure::plain("write_p99_us", "  99 %", 1),
    Figure::plain("write_p999_us", "  99.9 %", 1),
    Figure::plain("write_max_us", "  slowest", 1),
    mib("bytes_host", "written by the host [MiB]"),
    Figure { rare: true, ..mib("bytes_journal", "  of it journal [MiB]") },
    Figure { rare: true, ..mib("bytes_metadata", "  of it metadata [MiB]") },
    Figure { rare: true, ..mib("bytes_hot", "  of it hot [MiB]") },
    Figure { rare: true, ..mib("bytes_cold", "  of it cold [MiB]") },
    mib("bytes_gc", "  moved by collection [MiB]"),
    mib("bytes_padding", "  padding [MiB]"),
    mib("bytes_rmw", "  completing partial units [MiB]"),
    mib("bytes_coalesced", "  merged in the buffer [MiB]"),
    Figure::plain("erases", "blocks erased", 0),
    Figure::plain("erase_max", "most erases of one block", 0),
    Figure::plain("erase_spread", "  more than the least worn", 0),
    Figure::plain("tbw_tb", "endurance at this amplification [TBW]", 1),
    Figure::plain("life_years", "life left at this rate [years]", 2),
    Figure::rare("bad_blocks", "bad blocks"),
    Figure::plain("spare_blocks", "spare blocks", 0),
    Figure::rare("read_retries", "additional senses (retries)"),
    Figure::rare("leveling_runs", "blocks moved to level wear"),
    Figure::rare("scrub_runs", "blocks scrubbed"),
    Figure::plain("free_blocks", "free blocks", 0),
    Figure::plain("page_reads", "page reads", 0),
    Figure::plain("die_collisions", "  that waited for their die", 0),
    percent("die_utilization", "dies busy [%]"),
    percent("channel_utilization", "channels busy [%]"),
    percent("link_utilization", "link busy [%]"),
    Figure::plain("die_imbalance", "fullest die / mean", 4),
    Figure::plain("bottleneck", "bounded by", 0),
    Figure::plain("fitted_requests", "requests moved to fit", 0),
    Figure::plain("relations", "relation hints", 0),
    Figure::plain("cpu_s", "CPU time [s]", 3),
    Figure::plain("host_pages_per_cpu_s", "host pages per CPU second", 0),
    Figure::plain("digest", "digest", 0),
];
