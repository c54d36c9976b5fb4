//! `flashwise study`: fixed sets of experiments, with the published figures beside ours.
//!
//! The table is laid out from the same lines as the JSON.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::anyhow;
use serde_json::{Value, json};

use flashwise_report::{json_text, list_table};
use flashwise_study::fragmentation::layout::Layout;
use flashwise_study::fragmentation::{Real, extents};
use flashwise_study::{Cell, Study, Table, fragmentation, run_cells};

use crate::Failure;
use crate::output::{self, Progress};

#[derive(Debug, clap::Args)]
pub(crate) struct StudyArgs {
    /// The study
    #[arg(value_enum)]
    study: Name,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Fewer and smaller runs
    #[arg(long)]
    quick: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also read a file that lies as `filefrag -v` said of a real one (see
    /// examples/sqlite-fragmented.sh)
    #[arg(long, value_name = "FILE")]
    extents: Option<PathBuf>,
    /// Also write a page with all tables and figures (Markdown and SVG) into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print how long it took on stderr
    #[arg(long)]
    timing: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    /// Append and overwrite hints for dies (FAST'24)
    Fragmentation,
}

pub(crate) fn run(args: &StudyArgs) -> Result<(), Failure> {
    let Name::Fragmentation = args.study;
    if let Some(dir) = &args.out {
        // Before the work, not after it.
        std::fs::create_dir_all(dir.join(fragmentation::NAME)).map_err(|e| {
            Failure::Input(anyhow!(
                "--out {}: expected a directory that can be made: {e}",
                dir.display()
            ))
        })?;
    }
    let extents = args.extents.as_deref().map(cells_of).transpose()?;
    let started = Instant::now();
    let progress = Progress::start("running the study");
    let options = fragmentation::Options { quick: args.quick, seed: args.seed };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let failed = |e| Failure::Work(anyhow::Error::new(e));
    let study = fragmentation::run(&options, n_threads, |_| ()).map_err(failed)?;
    let lines = run_cells(&extents.unwrap_or_default(), n_threads, |_| ()).map_err(failed)?;
    let name = args.extents.as_deref().and_then(Path::file_name).unwrap_or_default();
    let real = Real { name: name.to_string_lossy().into_owned(), lines: Study { lines } };
    drop(progress);
    if args.timing {
        let seconds = started.elapsed().as_secs_f64();
        output::message(&format!("study: {seconds:.1} s on {n_threads} threads"));
    }
    if let Some(dir) = &args.out {
        write_page(dir, &fragmentation::files(&study, &real, &options))?;
    }
    if args.json {
        return output::results(&json_text(&object(args, &study, &real.lines)?));
    }
    let mut text = table(&study);
    if let Some(path) = &args.extents {
        text += &format!("\nthe file that lies as {} says\n{}", path.display(), table(&real.lines));
    }
    output::results(&text)
}

/// The cells of the file whose extents are in `path`.
fn cells_of(path: &Path) -> Result<Vec<Cell>, Failure> {
    let refused = |e: String| Failure::Input(anyhow!("--extents {}: {e}", path.display()));
    let bytes = std::fs::read(path).map_err(|e| refused(format!("cannot read: {e}")))?;
    // Only the name of the file can be something else than ASCII, and nobody needs it.
    let layout =
        Layout::parse(&String::from_utf8_lossy(&bytes)).map_err(|e| refused(e.to_string()))?;
    extents::cells(&layout).map_err(|e| refused(e.to_string()))
}

fn write_page(dir: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::write(&path, text)
            .map_err(|e| Failure::Work(anyhow!("{}: cannot write: {e}", path.display())))?;
    }
    output::message(&format!("{} files written to {}", files.len(), dir.display()));
    Ok(())
}

fn object(args: &StudyArgs, study: &Study, real: &Study) -> Result<Value, Failure> {
    let lines: Vec<_> = study.lines.iter().chain(&real.lines).collect();
    let rows = serde_json::to_value(lines).map_err(|e| Failure::Work(e.into()))?;
    Ok(json!({
        "study": fragmentation::NAME,
        "device": fragmentation::PRESET,
        "seed": args.seed,
        "rows": rows,
    }))
}

fn table(study: &Study) -> String {
    let mut text = listed(&Table::of_rows(study.rows()));
    for sweep in study.sweeps() {
        let points: Vec<_> = study.points(sweep).collect();
        text += &format!("\n{sweep}\n");
        text += &match points.len() {
            0..=fragmentation::POINTS_LISTED => listed(&Table::of_points(&points)),
            n => format!(" {n} points: --json prints them\n"),
        };
    }
    text
}

fn listed(table: &Table) -> String {
    let header: Vec<_> = table.header.iter().map(String::as_str).collect();
    list_table(&header, &table.rows)
}
