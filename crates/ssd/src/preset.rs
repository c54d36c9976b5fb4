//! Named devices, files of the same form, and changes to single keys.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::config::{DeviceConfig, FaultConfig, KEYS, WearConfig};
use crate::error::PresetError;

/// The presets that are built in, by name, as TOML text.
pub const PRESETS: [(&str, &str); 13] = [
    ("fast24", include_str!("../../../presets/fast24.toml")),
    ("fast24-2p", include_str!("../../../presets/fast24-2p.toml")),
    ("nvme-a", include_str!("../../../presets/nvme-a.toml")),
    ("nvme-b", include_str!("../../../presets/nvme-b.toml")),
    ("nvme-c", include_str!("../../../presets/nvme-c.toml")),
    ("nvme-d", include_str!("../../../presets/nvme-d.toml")),
    ("sata-a", include_str!("../../../presets/sata-a.toml")),
    ("sata-b", include_str!("../../../presets/sata-b.toml")),
    ("tlc-slc", include_str!("../../../presets/tlc-slc.toml")),
    ("mqsim", include_str!("../../../presets/mqsim.toml")),
    ("bench-16g", include_str!("../../../presets/bench-16g.toml")),
    ("bench-1t", include_str!("../../../presets/bench-1t.toml")),
    ("tiny", include_str!("../../../presets/tiny.toml")),
];

impl DeviceConfig {
    /// The preset or preset file `name`, with `key=value` changes applied.
    pub fn open(name: &str, changes: &[String]) -> Result<Self, PresetError> {
        if let Some((name, text)) = PRESETS.iter().find(|(n, _)| *n == name) {
            return Self::parse(&format!("preset {name}"), text, changes);
        }
        match read_preset(name) {
            Ok(text) => Self::parse(name, &text, changes),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound && !is_path(name) => {
                let known: Vec<&str> = PRESETS.iter().map(|p| p.0).collect();
                let hint = did_you_mean(name, known.iter().copied());
                let name = name.to_owned();
                Err(PresetError::NoSuchPreset { name, known: known.join(", "), hint })
            }
            Err(source) => Err(PresetError::Io { path: name.to_owned(), source }),
        }
    }

    /// Reads a preset from its text; `place` names it in errors.
    pub fn parse(place: &str, text: &str, changes: &[String]) -> Result<Self, PresetError> {
        let syntax = |e: &toml::de::Error| PresetError::Syntax {
            place: match e.span() {
                Some(span) => format!("{place}:{}", line_of(text, span.start)),
                None => place.to_owned(),
            },
            message: e.message().to_owned(),
        };
        let mut table: toml::Table = text.parse().map_err(|e| syntax(&e))?;
        for (section, keys) in optional_sections() {
            table.entry(section).or_insert(keys);
        }
        check_keys(place, text, &table)?;
        // Types are checked while line numbers are still known.
        toml::from_str::<Self>(text).map_err(|e| syntax(&e))?;
        for change in changes {
            apply(&mut table, change)?;
        }
        table.try_into().map_err(|e: toml::de::Error| PresetError::Syntax {
            place: format!("--set {}", changes.join(" --set ")),
            message: e.message().to_owned(),
        })
    }

    /// The dotted name of a key; the section may be left out where that is enough.
    pub fn full_key(key: &str) -> Result<&'static str, PresetError> {
        full_key(key)
    }

    /// The preset as TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a preset is plain tables of plain values")
    }
}

/// `; did you mean «x»?`, if a known name is near.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let scored = known.map(|k| (strsim::jaro_winkler(word, k), k));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, near)) if score > 0.75 => format!("; did you mean «{near}»?"),
        _ => String::new(),
    }
}

/// Sections a preset file may leave out, with their defaults.
fn optional_sections() -> [(&'static str, toml::Value); 2] {
    let value = "plain tables of plain values";
    [
        ("wear", toml::Value::try_from(WearConfig::default()).expect(value)),
        ("faults", toml::Value::try_from(FaultConfig::default()).expect(value)),
    ]
}

/// Longest preset file accepted \[bytes\].
const PRESET_BYTES_MAX: u64 = 1 << 20;

/// The text of a preset file, of which a bounded part is read.
pub fn read_preset(path: impl AsRef<Path>) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(PRESET_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > PRESET_BYTES_MAX {
        let what = "longer than a preset can be (1 MiB)";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
    }
    Ok(text)
}

fn is_path(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || Path::new(name).extension().is_some()
}

fn line_of(text: &str, offset: usize) -> usize {
    text[..offset.min(text.len())].matches('\n').count() + 1
}

/// The line (from 1) on which a key of a file is set.
fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let (section, last) = key.split_once('.').unwrap_or(("", key));
    let mut current = "";
    let at = text.lines().position(|line| {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            current = head.split(']').next().unwrap_or("").trim();
        }
        let name = line.split('=').next().unwrap_or("").trim();
        current == section && name == last
    });
    at.map(|l| l + 1)
}

fn check_keys(place: &str, text: &str, table: &toml::Table) -> Result<(), PresetError> {
    for (section, value) in table {
        let inner = value.as_table();
        let keys: Vec<String> = match inner {
            Some(t) => t.keys().map(|k| format!("{section}.{k}")).collect(),
            None => vec![section.clone()],
        };
        for key in keys {
            if !KEYS.contains(&key.as_str()) {
                let line = line_of_key(text, &key);
                let place = line.map_or(place.to_owned(), |l| format!("{place}:{l}"));
                return Err(unknown(place, &key));
            }
        }
    }
    let present = |key: &str| match key.split_once('.') {
        Some((section, k)) => table.get(section).is_some_and(|s| s.get(k).is_some()),
        None => table.contains_key(key),
    };
    match KEYS.iter().find(|k| !present(k)) {
        Some(key) => {
            Err(PresetError::MissingKey { place: place.to_owned(), key: (*key).to_owned() })
        }
        None => Ok(()),
    }
}

fn unknown(place: String, key: &str) -> PresetError {
    let bare = key.rsplit('.').next().unwrap_or(key);
    let mut hint = did_you_mean(key, KEYS.iter().copied());
    // A bare or misplaced key is compared with the last part of every key.
    let ends: Vec<&&str> = KEYS.iter().filter(|k| k.rsplit('.').next() == Some(bare)).collect();
    if let [only] = ends[..] {
        hint = format!("; did you mean «{only}»?");
    } else if hint.is_empty() {
        hint = did_you_mean(bare, KEYS.iter().map(|k| k.rsplit('.').next().unwrap_or(k)));
    }
    PresetError::UnknownKey { place, key: key.to_owned(), hint }
}

/// Sets one key; the section may be left out where that is unambiguous.
fn apply(table: &mut toml::Table, change: &str) -> Result<(), PresetError> {
    let Some((key, value)) = change.split_once('=') else {
        return Err(PresetError::NotAnAssignment { text: change.to_owned() });
    };
    let (key, value) = (key.trim(), value.trim());
    let key = full_key(key)?;
    let (section, key) = key.split_once('.').unwrap_or(("", key));
    let inner = match section {
        "" => table,
        _ => table
            .get_mut(section)
            .and_then(toml::Value::as_table_mut)
            .expect("all sections were checked to be there"),
    };
    let old = inner.get(key).expect("all keys were checked to be there");
    let new = value_like(old, value).ok_or_else(|| PresetError::Syntax {
        place: format!("--set {change}"),
        message: format!("«{value}» is not {}", type_of(old)),
    })?;
    inner.insert(key.to_owned(), new);
    Ok(())
}

fn full_key(key: &str) -> Result<&'static str, PresetError> {
    if let Some(known) = KEYS.iter().find(|k| **k == key) {
        return Ok(known);
    }
    let ends: Vec<&'static str> =
        KEYS.iter().copied().filter(|k| k.rsplit('.').next() == Some(key)).collect();
    match ends[..] {
        [only] => Ok(only),
        [] => Err(unknown("--set".to_owned(), key)),
        _ => Err(PresetError::AmbiguousKey { key: key.to_owned(), candidates: ends.join(", ") }),
    }
}

/// Reads `text` as the type that `old` has; a whole number does for a fraction.
fn value_like(old: &toml::Value, text: &str) -> Option<toml::Value> {
    use toml::Value;
    match old {
        Value::String(_) => Some(Value::String(text.trim_matches('"').to_owned())),
        Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
        Value::Integer(_) => text.replace('_', "").parse().ok().map(Value::Integer),
        Value::Float(_) => text.replace('_', "").parse().ok().map(Value::Float),
        Value::Array(_) => {
            let items = text.trim_start_matches('[').trim_end_matches(']').split(',');
            let numbers: Option<Vec<Value>> =
                items.map(|i| i.trim().parse().ok().map(Value::Float)).collect();
            numbers.map(Value::Array)
        }
        _ => None,
    }
}

fn type_of(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::String(_) => "a word",
        toml::Value::Boolean(_) => "true or false",
        toml::Value::Integer(_) => "a whole number",
        toml::Value::Float(_) => "a number",
        _ => "a list of numbers, like [30, 42]",
    }
}
