//! `flashwise device`: what drives there are.

use flashwise_report::list_table;
use flashwise_ssd::{DeviceConfig, Options, PRESETS, Ssd};

use crate::args::{DeviceArgs, DeviceVerb};
use crate::{Failure, output};

pub(crate) fn run(args: &DeviceArgs) -> Result<(), Failure> {
    match &args.verb {
        DeviceVerb::List => list(),
        DeviceVerb::Show { preset, set } => show(preset, set),
    }
}

fn list() -> Result<(), Failure> {
    let mut rows = vec![];
    for (name, _) in PRESETS {
        let cfg = DeviceConfig::open(name, &[]).map_err(Failure::input)?;
        let about = cfg.about.clone();
        let ssd = Ssd::new(cfg, Options::default()).map_err(Failure::input)?;
        let op = ssd.ftl().config().over_provisioning() * 100.0;
        let dies = ssd.nand().geometry().n_dies();
        let mib = ssd.capacity_sectors() / 2048;
        let size = if mib >= 10_240 { format!("{} GiB", mib / 1024) } else { format!("{mib} MiB") };
        rows.push(vec![name.to_owned(), size, format!("{op:.1} %"), dies.to_string(), about]);
    }
    output::results(&list_table(&["preset", "exported", "spare", "dies", "about"], &rows))
}

/// Unchanged presets are shown as they were written, with the source of every
/// number; changes are listed, and checked, above them.
fn show(preset: &str, set: &[String]) -> Result<(), Failure> {
    let cfg = DeviceConfig::open(preset, set).map_err(Failure::input)?;
    let ssd = Ssd::new(cfg, Options::default()).map_err(Failure::input)?;
    let ftl = ssd.ftl();
    let layout = ftl.layout();
    let unit_kib = ftl.config().geo.unit_bytes / 1024;
    let mut text = format!(
        "# exported {} MiB, spare {:.2} % beyond a reserve of {} blocks per die\n\
         # program unit {} KiB, stripe {} KiB, block {} KiB; tables {:.2} bytes per exported unit\n",
        ssd.capacity_sectors() / 2048,
        ftl.config().over_provisioning() * 100.0,
        ftl.config().reserve_blocks(),
        layout.units_per_pu * unit_kib,
        layout.units_per_pu * unit_kib * ftl.config().geo.n_dies(),
        layout.units_per_block * unit_kib,
        ftl.table_bytes() as f64 / f64::from(ftl.config().n_logical),
    );
    let built_in = PRESETS.iter().find(|(name, _)| *name == preset);
    match built_in {
        Some((_, source)) if set.is_empty() => text.push_str(source),
        _ => text.push_str(&ssd.config().to_toml()),
    }
    output::results(&text)
}
