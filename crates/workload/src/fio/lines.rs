//! From the text of a job file to sections of keys and values: comments, headers,
//! `include`, `${NAME}`.
//!
//! Invariants: a key knows the file and line it came from; what is read is bounded in
//! bytes, files and depth, so that files that include each other end in an error.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Env, Files, value};
use crate::{WorkloadError, names};

/// Most bytes of a job file and what it includes, assumed: a thousand times a long one.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Deepest nesting and most files, assumed: far above any real use.
const MAX_DEPTH: usize = 16;
const MAX_INCLUDES: usize = 256;

/// A line of a file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) path: Arc<Path>,
    pub(crate) line: u64,
}

impl Place {
    pub(crate) fn key_error(
        &self,
        key: &str,
        found: &str,
        expected: impl Into<Box<str>>,
        advice: impl Into<Box<str>>,
    ) -> WorkloadError {
        WorkloadError::Key {
            path: self.path.to_path_buf(),
            line: self.line,
            key: names::excerpt(key.as_bytes()).into(),
            found: found.into(),
            expected: expected.into(),
            advice: advice.into(),
        }
    }

    fn syntax(&self, expected: &str, found: String, advice: &str) -> WorkloadError {
        WorkloadError::Syntax {
            path: self.path.to_path_buf(),
            line: self.line,
            found: found.into(),
            expected: expected.into(),
            advice: advice.into(),
        }
    }
}

/// A key and its value, variables expanded.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) place: Place,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// A section.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) is_global: bool,
    pub(crate) settings: Vec<Setting>,
}

/// Cuts a job file into its sections.
pub(crate) fn sections(
    path: &Path,
    text: &[u8],
    env: Env<'_>,
    files: Files<'_>,
) -> Result<Vec<Section>, WorkloadError> {
    let mut cutter =
        Cutter { env, files, sections: vec![], bytes_left: MAX_FILE_BYTES, n_includes: 0 };
    let place = Place { path: path.into(), line: 1 };
    cutter.take(text.len() as u64, &place)?;
    let last_line = cutter.file(path, text, 0)?;
    if cutter.sections.iter().all(|section| section.is_global) {
        return Err(WorkloadError::Empty {
            path: path.to_owned(),
            line: last_line,
            found: "no job section",
            expected: "one section such as [job] with its keys".into(),
        });
    }
    Ok(cutter.sections)
}

struct Cutter<'a> {
    env: Env<'a>,
    files: Files<'a>,
    sections: Vec<Section>,
    bytes_left: u64,
    n_includes: usize,
}

impl Cutter<'_> {
    fn take(&mut self, bytes: u64, place: &Place) -> Result<(), WorkloadError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or_else(|| WorkloadError::TooLarge {
            path: place.path.to_path_buf(),
            line: place.line,
            rows: 0,
            limit_bytes: MAX_FILE_BYTES,
        })?;
        Ok(())
    }

    /// Reads the lines of one file; the number of the last one.
    fn file(&mut self, path: &Path, text: &[u8], depth: usize) -> Result<u64, WorkloadError> {
        let path: Arc<Path> = path.into();
        let mut place = Place { path, line: 0 };
        for raw in text.split(|&byte| byte == b'\n') {
            place.line += 1;
            let Ok(text) = std::str::from_utf8(raw) else {
                let found = format!("«{}»", names::excerpt(raw));
                return Err(place.syntax("UTF-8 text", found, "save the file as UTF-8"));
            };
            let text = if place.line == 1 { text.trim_start_matches('\u{feff}') } else { text };
            let text = text.split([';', '#']).next().unwrap_or_default().trim();
            if text.contains('\0') {
                let found = format!("«{}»", names::excerpt(raw));
                return Err(place.syntax("text", found, "the file is binary or damaged here"));
            }
            match text.strip_prefix('[') {
                _ if text.is_empty() => {}
                Some(header) if depth == 0 => self.header(&place, header)?,
                Some(_) => {
                    let found = format!("«{}»", names::excerpt(text.as_bytes()));
                    let advice = "an included file holds keys of one section; move its sections";
                    return Err(place.syntax("keys only in an included file", found, advice));
                }
                None => self.setting(&place, text, depth)?,
            }
        }
        Ok(place.line)
    }

    fn header(&mut self, place: &Place, header: &str) -> Result<(), WorkloadError> {
        let name = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
        let Some(name) = name else {
            let found = format!("«[{}»", names::excerpt(header.as_bytes()));
            return Err(place.syntax("a section header such as [job]", found, "close it with `]`"));
        };
        self.sections.push(Section {
            place: place.clone(),
            name: name.to_owned(),
            // fio takes every name that begins so.
            is_global: name.starts_with("global"),
            settings: vec![],
        });
        Ok(())
    }

    fn setting(&mut self, place: &Place, text: &str, depth: usize) -> Result<(), WorkloadError> {
        if self.sections.is_empty() {
            let found = format!("«{}»", names::excerpt(text.as_bytes()));
            let expected = "a section such as [job] first";
            return Err(place.syntax(expected, found, "add a section header"));
        }
        let included = text.strip_prefix("include").and_then(|rest| {
            let name = rest.trim_start().trim_start_matches('=').trim();
            (rest.is_empty() || rest.starts_with([' ', '\t', '='])).then_some(name)
        });
        let (key, raw) = match (included, text.split_once('=')) {
            (Some(name), _) => ("include", name),
            (None, Some((key, raw))) => (key.trim(), raw.trim()),
            (None, None) => (text, "1"),
        };
        let value = value::expand(raw, self.env).map_err(|expected| {
            let found = format!("«{}»", names::excerpt(raw.as_bytes()));
            place.key_error(key, &found, expected, "correct the value")
        })?;
        let value = value.trim();
        if included.is_some() {
            return self.include(place, value, depth);
        }
        let setting =
            Setting { place: place.clone(), key: key.to_owned(), value: value.to_owned() };
        if let Some(section) = self.sections.last_mut() {
            section.settings.push(setting);
        }
        Ok(())
    }

    /// Reads another file in the place of the line that names it.
    fn include(&mut self, place: &Place, name: &str, depth: usize) -> Result<(), WorkloadError> {
        let refuse = |found: &str, expected: &str, advice: &str| {
            Err(place.key_error("include", found, expected, advice))
        };
        let shown = format!("«{}»", names::excerpt(name.as_bytes()));
        if name.is_empty() {
            return refuse("none", "the name of a file", "name the file to include");
        }
        self.n_includes += 1;
        if depth + 1 > MAX_DEPTH || self.n_includes > MAX_INCLUDES {
            let expected = format!("at most {MAX_INCLUDES} files, nested {MAX_DEPTH} deep");
            return refuse(&shown, &expected, "files must not include each other in a circle");
        }
        let path: PathBuf = place.path.parent().unwrap_or(Path::new("")).join(name);
        let text = match (self.files)(&path) {
            Ok(text) => text,
            Err(error) => {
                let found = format!("{shown} ({error})");
                let advice = "names are relative to the file that includes";
                return refuse(&found, "a readable file", advice);
            }
        };
        self.take(text.len() as u64, place)?;
        self.file(&path, &text, depth + 1)?;
        Ok(())
    }
}

/// Reads a file whole, up to the bound.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    Ok(text)
}
