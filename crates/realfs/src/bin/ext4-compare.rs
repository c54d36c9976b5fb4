//! `ext4-compare`: the same work on a real ext4 and on the model, side by side.
//!
//! One row per load and mode, the final sync included: bytes per class, real, model and
//! difference; requests, flushes, commits and extents as `real / model`. Needs root, unless
//! only the model is asked for.
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
    use std::process::ExitCode;

    use anyhow::{Context, Result, bail};
    use clap::Parser;
    use flashwise_realfs::beside::{self, Case, Figures, PUBLISHED, Published, Row};
    use flashwise_realfs::missing;
    use flashwise_realfs::observed::Class;

    /// Runs work on a real ext4 and on the model and prints both. Needs root.
    #[derive(Parser)]
    #[command(name = "ext4-compare")]
    struct Args {
        /// Loads to run, scripts or personalities; all without any.
        loads: Vec<String>,
        /// Only rows whose mode begins so, such as ordered or "journal,".
        #[arg(long)]
        mode: Option<String>,
        /// A subset that takes less than a minute.
        #[arg(long)]
        quick: bool,
        /// The model at its own pace, not at that of the real run.
        #[arg(long)]
        unpaced: bool,
        /// Only the model, which needs no root: nothing is compared.
        #[arg(long)]
        model_only: bool,
        /// The model beside long runs that were measured once; needs no root.
        #[arg(long)]
        published: bool,
        /// Print rows as JSON.
        #[arg(long)]
        json: bool,
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
        if args.published {
            return published(args);
        }
        if !args.model_only
            && let Some(what) = missing()
        {
            bail!("skipped: needs {what}");
        }
        let cases = if args.quick { beside::quick() } else { beside::all() };
        let is_wanted = |case: &Case| {
            let load = args.loads.is_empty() || args.loads.iter().any(|l| l == case.load_name());
            load && args.mode.as_ref().is_none_or(|m| case.mode_name().starts_with(m.as_str()))
        };
        let mut rows = vec![];
        if !args.json {
            print_head();
        }
        for case in cases.into_iter().filter(is_wanted) {
            let row = compare(args, &case)
                .with_context(|| format!("{} in mode {}", case.load, case.mode_name()))?;
            if !args.json {
                print_row(&row);
            }
            rows.push(row);
        }
        if args.json {
            println!("{}", serde_json::to_string_pretty(&rows)?);
        } else {
            let missed = rows.iter().filter(|row| !row.misses().is_empty()).count();
            println!("\n{} rows, {missed} of them miss a target", rows.len());
        }
        Ok(())
    }

    fn published(args: &Args) -> Result<()> {
        println!(
            "| load | mode | journal, metadata, data %: measured | model | MB | KiB per request j, d | rounds |\n\
             |---|---|---|---|---|---|---|"
        );
        let is_wanted = |row: &&Published| {
            let name = row.load.split(',').next().unwrap_or_default();
            let mode = args.mode.as_ref().is_none_or(|m| row.mode.starts_with(m.as_str()));
            mode && (args.loads.is_empty() || args.loads.iter().any(|load| load == name))
        };
        for row in PUBLISHED.iter().filter(is_wanted) {
            let model = row.modelled().with_context(|| format!("{} {}", row.load, row.mode))?;
            let [journal, metadata, data] = Class::ALL.map(|class| model.share_percent(class));
            println!(
                "| {} | {} | {:.1}, {:.1}, {:.1} | {journal:.1}, {metadata:.1}, {data:.1} | {:.0}/{:.0} | {:.0}/{:.0}, {:.0}/{:.0} | {:.1}/{:.1} |",
                row.load,
                row.mode,
                row.shares[0],
                row.shares[1],
                row.shares[2],
                row.written_mb,
                model.written_bytes() as f64 / 1e6,
                row.request_kib[0],
                model.request_kib(Class::Journal),
                row.request_kib[1],
                model.request_kib(Class::Data),
                row.rounds,
                model.wraps
            );
        }
        Ok(())
    }

    fn compare(args: &Args, case: &Case) -> Result<Row> {
        let real = match args.model_only {
            true => Figures::default(),
            false => beside::real(case)??,
        };
        let model = match args.unpaced || args.model_only {
            true => beside::modelled(case)?,
            false => beside::modelled_as(case, &real.times)?,
        };
        Ok(Row { case: case.clone(), real, model })
    }

    fn print_head() {
        println!(
            "| load | mode | journal KiB | metadata KiB | data KiB | requests j, m, d | KiB per request j, m, d | flushes | FUA | commits | rounds | extents per file | s | misses |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        );
    }

    fn print_row(row: &Row) {
        let Row { case, real, model } = row;
        let bytes = Class::ALL.map(|class| {
            let percent = row.bytes_percent(class);
            format!(
                "{} / {} ({percent:+.1} %)",
                real.bytes[class] / 1024,
                model.bytes[class] / 1024
            )
        });
        let three = |of: &dyn Fn(Class) -> String| Class::ALL.map(of).join(", ");
        let requests =
            three(&|class| format!("{}/{}", real.requests[class], model.requests[class]));
        let sizes = three(&|class| {
            format!("{:.0}/{:.0}", real.request_kib(class), model.request_kib(class))
        });
        let misses: Vec<String> = row
            .misses()
            .iter()
            .map(|miss| format!("{} {:+.0} %", miss.what, miss.percent))
            .collect();
        println!(
            "| {} | {} | {} | {requests} | {sizes} | {}/{} | {}/{} | {}/{} | {:.2}/{:.2} | {:.2}/{:.2} | {:.2}/{:.2} | {} |",
            case.load_name(),
            case.mode_name(),
            bytes.join(" | "),
            real.flushes,
            model.flushes,
            real.fua,
            model.fua,
            real.commits,
            model.commits,
            real.wraps,
            model.wraps,
            real.extents_per_file(),
            model.extents_per_file(),
            real.times.elapsed_ns as f64 / 1e9,
            model.times.elapsed_ns as f64 / 1e9,
            misses.join("; ")
        );
    }
}
