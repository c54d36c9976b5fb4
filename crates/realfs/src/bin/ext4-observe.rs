//! `ext4-observe`: runs scripts on a real ext4 and prints what reached the device.
//!
//! One row per script and mode, bytes and counts per operation of the script, the final
//! `syncfs` included. `--json` gives everything, as an array of objects.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("skipped: needs Linux");
    std::process::ExitCode::FAILURE
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::process::ExitCode;

    use anyhow::{Context, Result, bail};
    use clap::{Parser, ValueEnum};
    use flashwise_realfs::observed::{Class, Observed};
    use flashwise_realfs::scripts::{NAMES, Script, script};
    use flashwise_realfs::trace::{Block, Event, Line};
    use flashwise_realfs::{
        Closing, Data, Journal, Options, RealFs, Report, missing, run_script, sweep_leftovers,
    };
    use serde_json::{Value, json};

    /// Runs scripts on a real ext4 (loop device over memory) and prints what reached the
    /// block device. Needs root.
    #[derive(Parser)]
    #[command(name = "ext4-observe")]
    struct Args {
        /// Scripts to run; all without any.
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
        scripts: Vec<String>,
        /// What goes through the journal; several are run one after another.
        #[arg(long, value_enum, default_value = "ordered", value_delimiter = ',')]
        mode: Vec<Mode>,
        /// Allocate blocks when they are written, not when they are written back.
        #[arg(long)]
        nodelalloc: bool,
        /// Size of the device in MiB.
        #[arg(long, default_value_t = 1024)]
        size_mib: u64,
        /// Size of the journal in MiB.
        #[arg(long, default_value_t = 64)]
        journal_mib: u64,
        /// Put the journal on a device of its own.
        #[arg(long)]
        external: bool,
        /// Mount option; may be given again.
        #[arg(long = "mount", value_name = "OPTION")]
        mount: Vec<String>,
        /// Argument for mkfs.ext4; may be given again.
        #[arg(long = "mkfs", value_name = "ARG", allow_hyphen_values = true)]
        mkfs: Vec<String>,
        /// Setting in /sys/fs/ext4/DEVICE, such as mb_stream_req=16.
        #[arg(long, value_name = "FILE=VALUE", value_parser = pair)]
        ext4: Vec<(String, String)>,
        /// Setting in /sys/block/DEVICE, such as queue/read_ahead_kb=128.
        #[arg(long, value_name = "FILE=VALUE", value_parser = pair)]
        device: Vec<(String, String)>,
        /// Setting in /proc/sys/vm while it runs, such as dirty_expire_centisecs=100.
        #[arg(long, value_name = "FILE=VALUE", value_parser = pair)]
        vm: Vec<(String, String)>,
        /// Mount anew after files are prepared, so that no metadata is cached.
        #[arg(long)]
        cold: bool,
        /// No syncfs at the end.
        #[arg(long)]
        as_is: bool,
        /// Print everything as JSON.
        #[arg(long)]
        json: bool,
        /// Write every bio, request and commit to a file: one line each, in order of time.
        #[arg(long, value_name = "FILE")]
        dump: Option<PathBuf>,
        /// Print what the scripts do and end.
        #[arg(long)]
        list: bool,
        /// Take away what killed runs left and end.
        #[arg(long)]
        clean: bool,
    }

    #[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
    enum Mode {
        Ordered,
        Journal,
        Writeback,
        /// No journal at all.
        None,
    }

    fn pair(text: &str) -> Result<(String, String), String> {
        let (file, value) = text.split_once('=').ok_or("expected FILE=VALUE")?;
        Ok((file.to_owned(), value.to_owned()))
    }

    pub(super) fn main() -> ExitCode {
        match work(&Args::parse()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        }
    }

    fn work(args: &Args) -> Result<()> {
        if args.list {
            for script in NAMES.into_iter().filter_map(script) {
                println!("{:<20} {:>5} x {}", script.name(), script.n_ops(), script.about());
            }
            return Ok(());
        }
        if let Some(what) = missing() {
            bail!("skipped: needs {what}");
        }
        if args.clean {
            for found in sweep_leftovers() {
                println!("removed {found}");
            }
            return Ok(());
        }
        let names: Vec<&str> = match args.scripts.as_slice() {
            [] => NAMES.to_vec(),
            some => some.iter().map(String::as_str).collect(),
        };
        let mut all = Vec::new();
        if !args.json {
            print_head();
        }
        for name in names {
            for mode in &args.mode {
                let mut script = script(name).context("a known script")?;
                let seen = observe(args, *mode, &mut script)
                    .with_context(|| format!("script {name}, mode {}", mode_name(*mode)))?;
                if args.json {
                    all.push(seen.json);
                } else {
                    print_row(&script, *mode, &seen.report);
                }
            }
        }
        if args.json {
            println!("{}", serde_json::to_string_pretty(&all)?);
        }
        Ok(())
    }

    struct Seen {
        report: Report,
        json: Value,
    }

    fn observe(args: &Args, mode: Mode, script: &mut Script) -> Result<Seen> {
        let fs = RealFs::make(&options(args, mode))?;
        if args.dump.is_some() {
            fs.keep_lines();
        }
        let closing = if args.as_is { Closing::AsIs } else { Closing::Sync };
        let report = run_script(&fs, script, closing)?;
        if let Some(path) = &args.dump {
            dump(path, &fs.take_lines())?;
        }
        let json = json!({
            "script": script.name(),
            "mode": mode_name(mode),
            "delalloc": !args.nodelalloc,
            "n_ops": script.n_ops(),
            "during": report.during,
            "closing": report.closing,
            "elapsed_ns": report.elapsed_ns,
            "failed": script.failed().len(),
            "transactions": transactions(&fs, &report)?,
            "extents": fs.extents()?.iter().take(8)
                .map(|file| json!({ "path": file.path, "runs": file.runs }))
                .collect::<Vec<_>>(),
        });
        Ok(Seen { report, json })
    }

    fn options(args: &Args, mode: Mode) -> Options {
        let journal = match mode {
            Mode::None => Journal::None,
            _ if args.external => Journal::External { mib: args.journal_mib },
            _ => Journal::Internal { mib: Some(args.journal_mib) },
        };
        let mut options = Options {
            mib: args.size_mib,
            journal,
            data: match mode {
                Mode::Ordered | Mode::None => Data::Ordered,
                Mode::Journal => Data::Journal,
                Mode::Writeback => Data::Writeback,
            },
            delalloc: !args.nodelalloc,
            mount: args.mount.clone(),
            mkfs: args.mkfs.clone(),
            ext4: args.ext4.clone(),
            vm: args.vm.clone(),
            cold: args.cold,
            ..Options::default()
        };
        options.device.extend(args.device.iter().cloned());
        options
    }

    /// Shapes of the measured transactions that are still in the ring: how many blocks of
    /// which structure, and how often that shape came.
    fn transactions(fs: &RealFs, report: &Report) -> Result<Value> {
        let mut shapes: BTreeMap<String, u64> = BTreeMap::new();
        let all = fs.transactions()?;
        for transaction in report.tids.iter().filter_map(|tid| all.get(tid)) {
            let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
            for home in &transaction.homes {
                *counts.entry(fs.structure(*home).name()).or_default() += 1;
            }
            let mut shape: Vec<String> =
                counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
            shape.push(format!("{} descriptor", transaction.descriptors));
            if transaction.revokes > 0 {
                shape.push(format!("{} revoke", transaction.revokes));
            }
            if !transaction.committed {
                shape.push("no commit block".into());
            }
            *shapes.entry(shape.join(", ")).or_default() += 1;
        }
        let mut shapes: Vec<(String, u64)> = shapes.into_iter().collect();
        shapes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let n_shapes = shapes.len();
        let top: Vec<Value> =
            shapes.into_iter().take(12).map(|(shape, n)| json!([n, shape])).collect();
        Ok(json!({ "n_shapes": n_shapes, "shapes": top }))
    }

    fn dump(path: &Path, lines: &[Line]) -> Result<()> {
        use std::io::Write;
        let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
        let mut out = std::io::BufWriter::new(file);
        let start = lines.first().map_or(0, |line| line.at_us);
        for line in lines {
            let at_ms = (line.at_us - start) as f64 / 1e3;
            let what = match &line.event {
                Event::Bio(bio) => format!("bio     {}", block(bio)),
                Event::Request(request) => format!("request {}", block(request)),
                other => format!("{other:?}"),
            };
            writeln!(out, "{at_ms:10.3} {what}")?;
        }
        Ok(())
    }

    fn block(block: &Block) -> String {
        let r = block.rwbs;
        let flags: String =
            [(r.preflush, 'P'), (r.fua, 'U'), (r.readahead, 'A'), (r.sync, 'S'), (r.meta, 'M')]
                .into_iter()
                .filter_map(|(set, letter)| set.then_some(letter))
                .collect();
        format!(
            "{:?} {flags:<3} block {} + {} B by {}",
            r.op,
            block.sector / 8,
            block.n_sectors * 512,
            block.comm
        )
    }

    fn print_head() {
        println!(
            "per operation, the final syncfs included; sizes are means of requests\n\
             {:<20} {:<9} {:>6} | {:>9} {:>9} {:>9} | {:>7} {:>7} {:>7} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>7} {:>6}",
            "script",
            "mode",
            "ops",
            "journal B",
            "meta B",
            "data B",
            "j req",
            "m req",
            "d req",
            "j KiB",
            "m KiB",
            "d KiB",
            "pflush",
            "fua",
            "flush",
            "commits",
            "ext/f"
        );
    }

    fn print_row(script: &Script, mode: Mode, report: &Report) {
        let total: Observed = report.total();
        let per = |n: u64| n as f64 / script.n_ops() as f64;
        let bytes = Class::ALL.map(|class| per(total.writes[class].bytes));
        let requests = Class::ALL.map(|class| per(total.writes[class].requests));
        let sizes = Class::ALL.map(|class| total.writes[class].mean_request_bytes() / 1024.0);
        println!(
            "{:<20} {:<9} {:>6} | {:>9.0} {:>9.0} {:>9.0} | {:>7.3} {:>7.3} {:>7.3} | {:>6.1} {:>6.1} {:>6.1} | {:>6.3} {:>6.3} {:>6.3} | {:>7} {:>6.2}",
            script.name(),
            mode_name(mode),
            script.n_ops(),
            bytes[0],
            bytes[1],
            bytes[2],
            requests[0],
            requests[1],
            requests[2],
            sizes[0],
            sizes[1],
            sizes[2],
            per(total.preflush_bios),
            per(total.fua_bios),
            per(total.flush_requests),
            total.journal.commits,
            total.layout.extents_per_file()
        );
    }

    fn mode_name(mode: Mode) -> &'static str {
        match mode {
            Mode::Ordered => "ordered",
            Mode::Journal => "journal",
            Mode::Writeback => "writeback",
            Mode::None => "none",
        }
    }
}
