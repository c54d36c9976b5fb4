//! A preset together with the comment of every key.
//!
//! The comment after a value is the source of that value, so it must survive when
//! the preset is changed and written again. Written presets explain themselves: a
//! line above each key says what it means. Such lines are made, not kept, so
//! writing a written preset changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use flashwise_ssd::{DeviceConfig, KEYS, PRESETS, PresetError};

use crate::meaning::meaning;

/// A preset and the source of each of its values.
#[derive(Clone, Debug)]
pub struct Annotated {
    /// Comment lines at the top, without `#`.
    pub head: Vec<String>,
    cfg: DeviceConfig,
    sources: BTreeMap<&'static str, String>,
}

impl Annotated {
    /// The preset or preset file `name`.
    pub fn open(name: &str) -> Result<Self, PresetError> {
        let cfg = DeviceConfig::open(name, &[])?;
        if let Some((_, text)) = PRESETS.iter().find(|(n, _)| *n == name) {
            let lines = text.lines().map_while(|l| l.strip_prefix('#'));
            let head = lines.map(|l| l.trim().to_owned()).collect();
            return Ok(Self { head, ..Self::new(cfg, text) });
        }
        // The head of a file may have been made from the keys: it is not kept.
        let text = flashwise_ssd::read_preset(name)
            .map_err(|source| PresetError::Io { path: name.to_owned(), source })?;
        Ok(Self::new(cfg, &text))
    }

    /// A preset that came without comments.
    pub fn bare(cfg: DeviceConfig) -> Self {
        Self { head: vec![], cfg, sources: BTreeMap::new() }
    }

    /// `cfg` was read from `text`.
    fn new(cfg: DeviceConfig, text: &str) -> Self {
        let mut all = Self::bare(cfg);
        let Ok(document) = text.parse::<toml_edit::Document<String>>() else {
            // Both parsers are of one family; should they differ, comments are lost.
            return all;
        };
        for key in KEYS {
            let item = match key.split_once('.') {
                Some((section, key)) => document.get(section).and_then(|s| s.get(key)),
                None => document.get(key),
            };
            let suffix = item.and_then(toml_edit::Item::as_value).map(|v| v.decor().suffix());
            let raw = suffix.flatten().and_then(toml_edit::RawString::span);
            let comment = raw.and_then(|span| text.get(span)).unwrap_or("").trim();
            if let Some(comment) = comment.strip_prefix('#') {
                all.sources.insert(key, comment.trim().to_owned());
            }
        }
        all
    }

    /// The values.
    pub fn config(&self) -> &DeviceConfig {
        &self.cfg
    }

    /// Where the value of `key` comes from.
    pub fn source(&self, key: &str) -> Option<&str> {
        self.sources.get(key).map(String::as_str)
    }

    /// The value of `key` as TOML.
    pub fn value(&self, key: &str) -> Option<toml::Value> {
        let table: toml::Table = self.cfg.to_toml().parse().ok()?;
        lookup(&table, key).cloned()
    }

    /// Applies `key=value`; whatever that changes has `source` as its source from
    /// then on. Returns the key.
    pub fn set(&mut self, change: &str, source: &str) -> Result<&'static str, PresetError> {
        let place = "the preset";
        let key = DeviceConfig::full_key(change.split('=').next().unwrap_or("").trim());
        let text = self.cfg.to_toml();
        self.cfg = DeviceConfig::parse(place, &text, &[change.to_owned()])?;
        let key = key?;
        self.sources.insert(key, one_line(source));
        Ok(key)
    }

    /// Changes the values without a check; the keys named get `source`.
    pub fn change(&mut self, keys: &[&'static str], source: &str, how: impl Fn(&mut DeviceConfig)) {
        how(&mut self.cfg);
        for key in keys {
            assert!(KEYS.contains(key), "{key} is a key");
            self.sources.insert(key, one_line(source));
        }
    }

    /// Every key with its value as TOML.
    pub fn entries(&self) -> Vec<(&'static str, toml::Value)> {
        let table: toml::Table =
            self.cfg.to_toml().parse().expect("what was written as TOML is TOML");
        KEYS.iter().filter_map(|&key| Some((key, lookup(&table, key)?.clone()))).collect()
    }

    /// The preset as a file that `--device` takes, explained.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for line in &self.head {
            text.push_str(format!("# {}", one_line(line)).trim_end());
            text.push('\n');
        }
        let mut current = "";
        for (key, value) in self.entries() {
            let (section, name) = key.split_once('.').unwrap_or(("", key));
            if section != current {
                let _ = write!(text, "\n[{section}]\n");
                current = section;
            }
            if let Some(m) = meaning(key).filter(|_| !section.is_empty()) {
                let _ = writeln!(text, "# {}", m.text);
            }
            let source = self.source(key).map_or(String::new(), |s| format!("  # {s}"));
            let _ = writeln!(text, "{name} = {value}{source}");
        }
        text
    }
}

fn lookup<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        Some((section, key)) => table.get(section)?.get(key),
        None => table.get(key),
    }
}

/// A comment ends with its line, and holds no control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_that_is_written_keeps_its_values_and_sources() {
        for (name, _) in PRESETS {
            let preset = Annotated::open(name).expect("a preset");
            for key in KEYS.iter().filter(|k| k.contains('.')) {
                let source = preset.source(key).unwrap_or_else(|| panic!("{name}: {key}"));
                assert!(source.starts_with("source:") || source.starts_with("assumed"));
            }
            let written = preset.to_toml();
            let again = DeviceConfig::parse(name, &written, &[]).expect("what was written loads");
            let mut again = Annotated::new(again, &written);
            assert!(!preset.head.is_empty());
            again.head.clone_from(&preset.head);
            assert_eq!(again.config(), preset.config());
            assert_eq!(again.sources, preset.sources);
            assert_eq!(again.to_toml(), written, "{name}");
        }
    }

    #[test]
    fn a_change_has_its_own_source() {
        let mut preset = Annotated::open("tlc-slc").expect("a preset");
        let key = preset.set("channels=8", "asked for\nby a test").expect("a change");
        assert_eq!((key, preset.config().geometry.channels), ("geometry.channels", 8));
        assert_eq!(preset.source(key), Some("asked for by a test"));
        assert!(preset.to_toml().contains("\nchannels = 8  # asked for by a test\n"));
        assert!(preset.set("chanels=8", "").is_err());
        assert!(preset.set("channels", "").is_err());
    }

    #[test]
    fn tables_of_any_form_are_understood() {
        let text = Annotated::open("tiny").expect("a preset").to_toml();
        let (head, tail) = text.split_once("[link]").expect("a section");
        let (_, tail) = tail.split_once("\n[").expect("a section behind it");
        let inline = "link = { mb_s = 3000.0, full_duplex = true }\n";
        let text = format!("{inline}{head}[{tail}");
        let cfg = DeviceConfig::parse("inline", &text, &[]).expect("inline tables load");
        let preset = Annotated::new(cfg, &text);
        assert_eq!(preset.source("link.mb_s"), None);
        assert!(preset.source("buffer.kib").is_some_and(|s| s.starts_with("assumed")));
    }
}
