//! `flashwise device new`: a preset for a capacity, or for a drive of this machine.
//!
//! Every option becomes a key of the file, with the option in its comment. What an
//! identify command tells comes first, so options overrule it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use flashwise_design::{Annotated, Ask, Derived, Identity, Wish, design, parse_size};

use crate::{Failure, device, nvme, output};

/// Tables from which on it is said how large they are \[GiB\]: not every machine has
/// that.
const MEMORY_NOTE_GIB: f64 = 4.0;

#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// Exported capacity: 960G and 1.92T are decimal as vendors use them, 512GiB is binary
    #[arg(
        long,
        value_name = "SIZE",
        required_unless_present = "from",
        allow_negative_numbers = true,
        allow_hyphen_values = true
    )]
    capacity: Option<String>,
    /// Preset or preset file that says everything else
    #[arg(long, default_value = "tlc-slc", value_name = "PRESET|FILE")]
    like: String,
    /// NVMe drive to ask (/dev/nvme0, /dev/nvme0n1), or identify data in a file; a second file may
    /// hold the namespace
    #[arg(long, value_name = "DEVICE|FILE", num_args = 1)]
    from: Vec<PathBuf>,
    /// Name in the file [default: from capacity and model]
    #[arg(long)]
    name: Option<String>,
    /// Write to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace the file of --out if it exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Spare space in percent of the capacity [default: as the model]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    op: Option<f64>,
    /// Dies of the drive [default: by capacity and cell mode]
    #[arg(long)]
    dies: Option<u32>,
    /// Channels [default: by dies]
    #[arg(long)]
    channels: Option<u32>,
    /// Bits per cell: slc, mlc, tlc or qlc; another than the model's brings its times along
    #[arg(long, value_name = "MODE")]
    cell: Option<String>,
    #[command(flatten)]
    keys: KeyArgs,
    /// Change any other key; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Options that set one key each.
#[derive(Debug, clap::Args)]
struct KeyArgs {
    /// Planes of a die; a program takes a page of each
    #[arg(long)]
    planes: Option<u32>,
    /// Page in KiB
    #[arg(long, value_name = "KIB")]
    page_kib: Option<f64>,
    /// Pages in a block of one plane
    #[arg(long, value_name = "N")]
    pages_per_block: Option<u32>,
    /// Sense of a page in us; a list 30,42 by page type, LSB first
    #[arg(long, value_name = "US", allow_hyphen_values = true)]
    read_us: Option<String>,
    /// Sense of at most 4 KiB in us [default: as --read-us]
    #[arg(long, value_name = "US", allow_hyphen_values = true)]
    read_4k_us: Option<String>,
    /// Program of a program unit in us; a list by page type
    #[arg(long, value_name = "US", allow_hyphen_values = true)]
    program_us: Option<String>,
    /// Erase of a block in us
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    erase_us: Option<f64>,
    /// Cycles a block is good for
    #[arg(long, value_name = "CYCLES")]
    endurance: Option<u64>,
    /// Rate of a channel in MB/s
    #[arg(long, value_name = "MB/S", allow_negative_numbers = true)]
    channel_mb_s: Option<f64>,
    /// Rate of the host link in GB/s
    #[arg(long, value_name = "GB/S", allow_negative_numbers = true)]
    link_gb_s: Option<f64>,
    /// Write buffer in MiB
    #[arg(long, value_name = "MIB", allow_negative_numbers = true)]
    buffer_mib: Option<f64>,
    /// The write buffer survives a power failure: true or false
    #[arg(long, value_name = "BOOL")]
    power_protected: Option<bool>,
    /// Mapping unit in KiB
    #[arg(long, value_name = "KIB")]
    unit_kib: Option<f64>,
    /// Placement handles (streams)
    #[arg(long, value_name = "N")]
    handles: Option<u16>,
    /// Largest command in KiB
    #[arg(long, value_name = "KIB")]
    mdts_kib: Option<f64>,
}

impl KeyArgs {
    fn asks(&self) -> Vec<Ask> {
        let text = |v: &dyn ToString| v.to_string();
        let scaled = |option: &str, key: &str, given: f64, factor: f64| Ask {
            source: format!("asked for: {option} {given}"),
            ..Ask::new(option, key, given * factor)
        };
        let plain = [
            ("--planes", "geometry.planes", self.planes.map(|v| text(&v))),
            ("--page-kib", "geometry.page_kib", self.page_kib.map(|v| text(&v))),
            (
                "--pages-per-block",
                "geometry.pages_per_block",
                self.pages_per_block.map(|v| text(&v)),
            ),
            ("--read-us", "flash.read_us", self.read_us.clone()),
            ("--read-4k-us", "flash.read_4k_us", self.read_4k_us.clone()),
            ("--program-us", "flash.program_us", self.program_us.clone()),
            ("--erase-us", "flash.erase_us", self.erase_us.map(|v| text(&v))),
            ("--endurance", "flash.endurance", self.endurance.map(|v| text(&v))),
            ("--channel-mb-s", "flash.channel_mb_s", self.channel_mb_s.map(|v| text(&v))),
            ("--power-protected", "buffer.power_protected", self.power_protected.map(|v| text(&v))),
            ("--unit-kib", "ftl.unit_kib", self.unit_kib.map(|v| text(&v))),
            ("--handles", "ftl.handles", self.handles.map(|v| text(&v))),
            ("--mdts-kib", "host.mdts_kib", self.mdts_kib.map(|v| text(&v))),
        ];
        let plain =
            plain.into_iter().filter_map(|(option, key, v)| Some(Ask::new(option, key, v?)));
        let link = self.link_gb_s.map(|v| scaled("--link-gb-s", "link.mb_s", v, 1000.0));
        let buffer = self.buffer_mib.map(|v| scaled("--buffer-mib", "buffer.kib", v, 1024.0));
        plain.chain(link).chain(buffer).collect()
    }
}

pub(crate) fn run(args: &NewArgs) -> Result<(), Failure> {
    // Told before anything is done.
    if let Some(path) = &args.out
        && path.exists()
        && !args.force
    {
        let e = anyhow!("{}: there is such a file; --force replaces it", path.display());
        return Err(Failure::Input(e));
    }
    let identity = identity(&args.from)?;
    let wish = wish(args, identity.as_ref())?;
    let mut preset = design(&wish).map_err(Failure::input)?;
    let derived = Derived::of(preset.config()).map_err(Failure::input)?;
    let memory = derived.get("table_bytes").unwrap_or(0.0) / f64::from(1 << 30);
    if memory > MEMORY_NOTE_GIB {
        output::message(&format!("note: to simulate this drive takes {memory:.1} GiB of memory"));
    }
    let mut head = std::mem::take(&mut preset.head);
    head.push(String::new());
    head.extend(device::explain(&preset, &derived));
    preset.head = head;
    write(args.out.as_deref(), args.force, &preset.to_toml())
}

fn write(out: Option<&Path>, force: bool, text: &str) -> Result<(), Failure> {
    let Some(path) = out else { return output::results(text) };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    if !force {
        options.create_new(true);
    }
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| Failure::Work(anyhow!("{}: {e}", path.display())))
}

fn wish(args: &NewArgs, identity: Option<&Identity>) -> Result<Wish, Failure> {
    let mut wish = Wish {
        like: args.like.clone(),
        cell: args.cell.clone(),
        op_percent: args.op,
        dies: args.dies,
        channels: args.channels,
        ..Wish::default()
    };
    if let Some(id) = identity {
        told(&mut wish, id, args)?;
    }
    if let Some(size) = &args.capacity {
        let bytes = parse_size(size).map_err(|e| Failure::Input(anyhow!("--capacity: {e}")))?;
        wish.capacity_bytes = bytes;
        wish.capacity_source = format!("asked for: --capacity {size}");
    }
    wish.asks.extend(args.keys.asks());
    wish.asks.extend(args.set.iter().map(|change| Ask {
        option: "--set".to_owned(),
        change: change.clone(),
        source: format!("asked for: --set {change}"),
    }));
    wish.name = args.name.clone().unwrap_or_else(|| default_name(args, identity));
    Ok(wish)
}

fn default_name(args: &NewArgs, identity: Option<&Identity>) -> String {
    let like = Path::new(&args.like).file_stem().unwrap_or_default().to_string_lossy();
    let model = identity.and_then(|id| id.controller.as_ref()).map_or("", |c| &c.model);
    match &args.capacity {
        _ if !model.is_empty() => {
            let dashed =
                |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
            model.chars().map(dashed).collect()
        }
        Some(size) => format!("{like}-{}", size.trim().to_lowercase()),
        None => format!("{like}-like"),
    }
}

fn identity(from: &[PathBuf]) -> Result<Option<Identity>, Failure> {
    let Some((first, more)) = from.split_first() else { return Ok(None) };
    let mut identity = nvme::identify(first)?;
    for path in more {
        let bytes = nvme::read_dump(path)?;
        let refused = |e| Failure::Input(anyhow!("--from {}: {e}", path.display()));
        identity.add(&bytes).map_err(refused)?;
    }
    Ok(Some(identity))
}

/// Takes over what the drive says about itself; the head of the file says what it
/// does not tell.
fn told(wish: &mut Wish, id: &Identity, args: &NewArgs) -> Result<(), Failure> {
    let ask = |key: &str, value: String, field: &str| Ask {
        option: "--from".to_owned(),
        change: format!("{key}={value}"),
        source: format!("source: identify data of the drive, {field}"),
    };
    match id.capacity_bytes() {
        Some(bytes) => {
            wish.capacity_bytes = bytes;
            let field = if id.namespace.is_some() { "NSZE" } else { "TNVMCAP" };
            wish.capacity_source = format!("source: identify data of the drive, {field}");
        }
        None if args.capacity.is_none() => {
            return Err(Failure::Input(anyhow!(
                "--from: the controller does not report a capacity; add the namespace (a second \
                 --from, or 8192 bytes of both) or --capacity"
            )));
        }
        None => {}
    }
    if let Some(c) = &id.controller {
        // No limit, and limits beyond what is modelled, say nothing.
        if let n @ 1..=16 = c.mdts {
            let kib = 4u64 << n;
            let field = "MDTS, taken as pages of 4 KiB";
            wish.asks.push(ask("host.mdts_kib", kib.to_string(), field));
        }
        let field = if c.write_cache {
            "VWC: a volatile write cache"
        } else {
            "VWC: no volatile write cache"
        };
        wish.asks.push(ask("buffer.power_protected", (!c.write_cache).to_string(), field));
    }
    if let Some(n) = id.n_handles {
        wish.asks.push(ask("ftl.handles", n.min(128).to_string(), "FDP configurations, NRUH"));
    }
    let granularity = id.namespace.and_then(|n| n.write_granularity).unwrap_or(0);
    // Units are parts of a page.
    let model = Annotated::open(&args.like).map_err(Failure::input)?;
    let page_kib = args.keys.page_kib.unwrap_or(model.config().geometry.page_kib);
    let largest = (page_kib * 1024.0) as u64;
    if granularity.is_power_of_two() && (4096..=largest.min(65_536)).contains(&granularity) {
        let kib = (granularity / 1024).to_string();
        wish.asks.push(ask("ftl.unit_kib", kib, "NPWG: the granularity it prefers for writes"));
    }
    wish.head = told_in_words(id, &args.like);
    Ok(())
}

fn told_in_words(id: &Identity, like: &str) -> Vec<String> {
    let mut lines = vec![];
    if let Some(c) = &id.controller {
        lines.push(format!(
            "Taken from «{}», serial {}, firmware {}.",
            c.model, c.serial, c.firmware
        ));
        let yes = |b: bool| if b { "yes" } else { "no" };
        lines.push(format!(
            "It takes trims: {}. Volatile write cache: {}. FDP: {}. Directives (streams): {}.",
            yes(c.deallocates),
            yes(c.write_cache),
            yes(c.placement),
            yes(c.directives),
        ));
        if c.placement && id.n_handles.is_none() {
            lines.push(
                "How many placement handles it has is in a log, which was not read: --handles."
                    .into(),
            );
        }
    }
    if let Some(n) = id.namespace {
        let optimal = n
            .optimal_write
            .map_or("not told".to_owned(), |bytes| format!("{} KiB", bytes as f64 / 1024.0));
        lines.push(format!(
            "Namespace: {} logical blocks of {} bytes; optimal write size (NOWS): {optimal}.",
            n.n_blocks, n.block_bytes
        ));
    }
    lines.push(format!(
        "Identify data tells nothing of dies, channels, times and spare space: those are of {like}."
    ));
    lines
}
