//! `flashwise device`: what drives there are, and what they are made of.

use std::path::Path;

use serde_json::{Map, Value, json};

use flashwise_design::{Annotated, Derived, meaning};
use flashwise_report::{json_text, list_table};
use flashwise_ssd::{DeviceConfig, Options, PRESETS, Ssd, is_saved_drive};

use crate::args::{DeviceArgs, DeviceVerb};
use crate::{Failure, device_new, output};

pub(crate) fn run(args: &DeviceArgs) -> Result<(), Failure> {
    match &args.verb {
        DeviceVerb::List => list(),
        DeviceVerb::Show { preset, set, json } => show(preset, set, *json),
        DeviceVerb::New(args) => device_new::run(args),
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

/// A file that `--device` takes: derived figures and meanings are comments.
fn show(preset: &str, set: &[String], json: bool) -> Result<(), Failure> {
    let mut drive = open(preset)?;
    for change in set {
        drive.set(change, &format!("asked for: --set {change}")).map_err(Failure::input)?;
    }
    let derived = Derived::of(drive.config()).map_err(Failure::input)?;
    if json {
        return output::results(&json_text(&as_json(preset, set, &drive, &derived)));
    }
    if !drive.head.is_empty() {
        drive.head.push(String::new());
    }
    let explained = explain(&drive, &derived);
    drive.head.extend(explained);
    output::results(&drive.to_toml())
}

fn open(preset: &str) -> Result<Annotated, Failure> {
    let path = Path::new(preset);
    if is_saved_drive(path) {
        let ssd = Ssd::load(path, Options::default()).map_err(Failure::input)?;
        return Ok(Annotated::bare(ssd.config().clone()));
    }
    Annotated::open(preset).map_err(Failure::input)
}

/// Lines for the head of a preset.
pub(crate) fn explain(drive: &Annotated, derived: &Derived) -> Vec<String> {
    let about = format!("{}: {}", drive.config().name, drive.config().about);
    let mut head = vec![about, String::new(), "What follows from the keys below:".to_owned()];
    head.extend(derived.lines());
    head.push("Rates are bounds by resource once the buffer is full and blocks are erased; the smallest wins.".to_owned());
    head
}

fn as_json(preset: &str, set: &[String], drive: &Annotated, derived: &Derived) -> Value {
    let keys = drive.entries().into_iter().map(|(key, value)| {
        let m = meaning(key);
        json!({
            "key": key,
            "value": serde_json::to_value(value).unwrap_or(Value::Null),
            "unit": m.map(|m| m.unit).filter(|u| !u.is_empty()),
            "meaning": m.map(|m| m.text),
            "source": drive.source(key),
        })
    });
    let facts = derived.facts.iter().map(|f| (f.key.to_owned(), json!(f.value)));
    let rates = derived.rates.iter().map(|r| {
        let (bounded_by, least) = r.smallest();
        let bounds: Map<String, Value> =
            r.bounds.iter().map(|(name, v)| ((*name).to_owned(), json!(v))).collect();
        (r.key.to_owned(), json!({"bound": least, "bounded_by": bounded_by, "by_resource": bounds}))
    });
    json!({
        "device": preset,
        "set": set,
        "keys": keys.collect::<Vec<_>>(),
        "derived": facts.collect::<Map<_, _>>(),
        "rates": rates.collect::<Map<_, _>>(),
    })
}
