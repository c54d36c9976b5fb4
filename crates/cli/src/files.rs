//! Applications on a file system as the input of a replay.

use std::path::Path;

use anyhow::anyhow;
use serde_json::{Value, json};

use flashwise_hostfs::{FsConfig, Host, RamSpeed};
use flashwise_lab::run_files_on_ram;
use flashwise_report::{Figure, figures_table, json_text, list_table};
use flashwise_workload::AppSpec;

use crate::Failure;
use crate::args::ReplayArgs;
use crate::output::{self, Progress};
use crate::replay::{mib, percent};

/// Device that is memory, not flash. Source: FAST'24 fragmentation paper, Figures 4 to 6.
const RAM_DISK: &str = "ramdisk";

/// Size of the RAM disk \[bytes\], assumed: it holds no data, so it costs nothing.
const RAM_DISK_BYTES: u64 = 64 << 30;

/// An application and the file system it uses.
pub(crate) struct App {
    pub(crate) spec: AppSpec,
    pub(crate) fs: FsConfig,
}

/// The application an input names; `None` where it names a file.
pub(crate) fn app(args: &ReplayArgs) -> Result<Option<App>, Failure> {
    let input = args.input();
    let text = input.to_string_lossy();
    let name = text.split(',').next().unwrap_or_default();
    let is_known = AppSpec::list().iter().any(|app| app.name == name);
    let looks_like_one = !name.is_empty() && !name.contains(['/', '.', '\\']);
    if input.exists() || !(is_known || looks_like_one) {
        return Ok(None);
    }
    let spec = AppSpec::parse(&text).map_err(|e| match is_known {
        true => Failure::input(e),
        false => Failure::Input(anyhow!("{text}: there is no such file; as an application: {e}")),
    })?;
    let fs = match &args.fs {
        None => FsConfig::default(),
        Some(text) => {
            FsConfig::parse(text).map_err(|e| Failure::Input(anyhow!("--fs {text}: {e}")))?
        }
    };
    Ok(Some(App { spec, fs }))
}

impl App {
    /// What a device of so many bytes cannot take, before anything is aged.
    pub(crate) fn check(&self, device_bytes: u64) -> Result<Vec<String>, Failure> {
        Host::new(self.spec.build(0), &self.fs, device_bytes).map_err(Failure::input)?;
        let size = self.fs.size_bytes.unwrap_or(device_bytes);
        let files = self.spec.expected_bytes();
        if files > size {
            let name = self.spec.name();
            let in_mib = |bytes: u64| bytes.div_ceil(1 << 20);
            return Err(Failure::Input(anyhow!(
                "{name}: its files take {} MiB and the file system has {} MiB; choose fewer or \
                 smaller files (for example {name},files=...), or a larger drive",
                in_mib(files),
                in_mib(size)
            )));
        }
        Ok(vec![])
    }
}

/// `replay --list`: the applications.
pub(crate) fn list(as_json: bool) -> Result<(), Failure> {
    let apps = AppSpec::list();
    if as_json {
        let apps: Vec<Value> = apps
            .iter()
            .map(|a| json!({"name": a.name, "about": a.about, "defaults": a.defaults}))
            .collect();
        let keys: Vec<Value> =
            FsConfig::keys().map(|(key, takes)| json!({"key": key, "takes": takes})).collect();
        return output::results(&json_text(&json!({"applications": apps, "fs_keys": keys})));
    }
    let lines: Vec<Vec<String>> =
        apps.iter().map(|a| vec![a.name.to_owned(), a.about.to_owned()]).collect();
    let mut text = list_table(&["application", "about"], &lines);
    text.push_str(
        "\nSettings follow the name, for example varmail,files=20000,threads=4,runtime=25s:\n\n",
    );
    for app in &apps {
        text.push_str(&format!("  {},{}\n", app.name, app.defaults));
    }
    text.push_str(
        "\nThe file system is --fs ext4 with options, for example ext4,data=journal,commit=1:\n\n",
    );
    let default = FsConfig::default();
    let lines: Vec<Vec<String>> = FsConfig::keys()
        .zip(default.choices())
        .map(|((key, takes), (_, value, _))| {
            let value = if value.len() > 20 { "a list".to_owned() } else { value };
            vec![key.to_owned(), value, takes.to_owned()]
        })
        .collect();
    text.push_str(&list_table(&["key", "default", "takes"], &lines));
    output::results(&text)
}

/// Whether the application runs on a RAM disk rather than a drive.
pub(crate) fn is_on_ram(args: &ReplayArgs) -> bool {
    args.device == RAM_DISK && !Path::new(&args.device).exists()
}

/// `--device ramdisk`: what the host takes by itself.
pub(crate) fn run_on_ram(args: &ReplayArgs, app: &App) -> Result<(), Failure> {
    let unused = [
        (!args.set.is_empty(), "--set"),
        (!args.policies.is_empty(), "--policy"),
        (args.save_drive.is_some(), "--save-drive"),
        (args.fresh, "--fresh"),
        (args.watch.is_asked(), "--series and --latencies"),
    ];
    for (_, name) in unused.into_iter().filter(|(given, _)| *given) {
        output::message(&format!("note: no effect of {name}: a RAM disk is no drive"));
    }
    app.check(RAM_DISK_BYTES)?;
    let progress = Progress::start(&format!("running {} on a RAM disk", app.spec.name()));
    let built = app.spec.build(args.seed);
    let mut host = Host::new(built, &app.fs, RAM_DISK_BYTES).map_err(Failure::input)?;
    let files = run_files_on_ram(&mut host, RamSpeed::DDR4).map_err(|e| Failure::Work(e.into()))?;
    drop(progress);
    let row =
        json!({"workload": args.input().display().to_string(), "policy": "-", "files": files});
    if args.json {
        return output::results(&json_text(&json!({
            "replay": args.input().display().to_string(),
            "device": args.device,
            "seed": args.seed,
            "rows": [row],
        })));
    }
    let mut text = format!("{} on {}\n{}", args.input().display(), args.device, fs_line(app));
    text.push_str(&table(&[row]));
    output::results(&text)
}

/// What is modelled, in a line or two.
pub(crate) fn fs_line(app: &App) -> String {
    let c = &app.fs;
    let others = c.choices().iter().filter(|choice| choice.2).count();
    format!(
        "file system: {} ({others} more by default; --json lists all)\n\
         memory: {} MiB, write-back from {} MiB dirty, writers wait at {} MiB\n",
        c.summary(),
        c.memory_bytes >> 20,
        c.background_limit() >> 20,
        c.dirty_limit() >> 20
    )
}

const FIGURES: &[Figure] = &[
    Figure::plain("run_s", "application ran [s]", 3),
    Figure::plain("ops", "operations", 0),
    Figure::plain("ops_per_s", "  per second", 0),
    Figure::rare("ops_failed", "  failed"),
    Figure::plain("app_mib_s", "  read and written [MiB/s]", 1),
    mib("data_bytes", "written to the device: data [MiB]"),
    mib("journal_bytes", "  journal [MiB]"),
    mib("metadata_bytes", "  metadata [MiB]"),
    Figure::plain("data_request_kib", "mean write: data [KiB]", 1),
    Figure::plain("journal_request_kib", "  journal [KiB]", 1),
    Figure::plain("metadata_request_kib", "  metadata [KiB]", 1),
    mib("read_bytes", "read from the device [MiB]"),
    percent("cache_hit_part", "page cache hits [%]"),
    Figure::plain("flushes", "flushes", 0),
    Figure::plain("fua_writes", "  forced writes", 0),
    Figure { rare: true, ..mib("discard_bytes", "discarded [MiB]") },
    Figure::plain("commits", "transactions", 0),
    Figure::plain("blocks_per_commit", "  log blocks of each", 2),
    mib("journal_size_bytes", "journal size [MiB]"),
    Figure::plain("journal_rounds", "  rounds of the ring", 2),
    Figure::rare("checkpoint_blocks", "  blocks written home for log space"),
    Figure::plain("files", "files at the end", 0),
    Figure::plain("pieces_per_file", "  pieces of each", 3),
];

/// Tables of what applications got, and of their operations; nothing for other rows.
pub(crate) fn table(rows: &[Value]) -> String {
    let files: Vec<Value> = rows
        .iter()
        .filter_map(|row| {
            let mut files = row.get("files")?.clone();
            files["policy"] = row["policy"].clone();
            Some(files)
        })
        .collect();
    if files.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", figures_table(&files, "policy", FIGURES));
    let empty = vec![];
    let mut lines = vec![];
    let n_ops = files[0]["op_rows"].as_array().map_or(0, Vec::len);
    let number = |value: &Value, digits: usize| match value.as_f64() {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    };
    for op in 0..n_ops {
        for row in &files {
            let ops = row["op_rows"].as_array().unwrap_or(&empty);
            let Some(op) = ops.get(op) else { continue };
            lines.push(vec![
                op["name"].as_str().unwrap_or_default().to_owned(),
                row["policy"].as_str().unwrap_or_default().to_owned(),
                number(&op["ops"], 0),
                number(&op["ops_per_s"], 0),
                number(&op["mib_s"], 1),
                number(&op["p50_us"], 1),
                number(&op["p99_us"], 1),
                number(&op["p999_us"], 1),
            ]);
        }
    }
    let header =
        ["operation", "policy", "number", "per second", "MiB/s", "50 % [us]", "99 %", "99.9 %"];
    text.push_str(&format!("\n{}", list_table(&header, &lines)));
    text
}
