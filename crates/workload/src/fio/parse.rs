//! From the text of a job file to a [`FioJob`]: sections, comments, keys.
//!
//! Invariants: each key is known, with effect or without, or an error; errors carry the
//! line; a file is read up to a bound. Within the file later lines override earlier
//! ones, as in fio.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::value::{self, Expected};
use super::{Amount, At, FioJob};
use crate::{Distribution, WorkloadError, names};

/// Largest job file accepted \[bytes\], assumed: a thousand times a long one.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Keys that shape the pattern.
const KEYS: [&str; 17] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "size",
    "offset",
    "io_size",
    "loops",
    "number_ios",
    "iodepth",
    "rwmixread",
    "rwmixwrite",
    "random_distribution",
    "norandommap",
    "randseed",
    "numjobs",
    "name",
];

/// Keys that cannot change what a modelled drive sees.
const NO_EFFECT: [&str; 10] = [
    "ioengine",
    "direct",
    "filename",
    "group_reporting",
    "verify",
    "thread",
    "invalidate",
    "buffered",
    "description",
    "stonewall",
];

/// Reads a fio job file; `env` answers `${NAME}`.
pub fn read_fio_job(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<FioJob, WorkloadError> {
    let failed = |action, advice| {
        move |source| WorkloadError::Io { path: path.to_owned(), action, advice, source }
    };
    let file = File::open(path).map_err(failed("open", "check the path and its permissions"))?;
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(failed("read", "check that it is a readable file, not a directory"))?;
    parse_fio_job(path, &text, env)
}

/// Parses the text of a fio job file; `path` is its name in messages.
pub fn parse_fio_job(
    path: &Path,
    text: &[u8],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<FioJob, WorkloadError> {
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(WorkloadError::TooLarge {
            path: path.to_owned(),
            line: 1,
            rows: 0,
            limit_bytes: MAX_FILE_BYTES,
        });
    }
    let mut parser = Parser { path, env, draft: Draft::default(), line: 0, in_global: false };
    for raw in text.split(|&byte| byte == b'\n') {
        parser.line += 1;
        parser.take_line(raw)?;
    }
    parser.finish()
}

/// What has been read so far.
#[derive(Default)]
struct Draft {
    section: Option<At<String>>,
    name: Option<String>,
    notices: Vec<String>,
    pattern: Option<Pattern>,
    block_bytes: Option<u64>,
    queue_depth: Option<u32>,
    mix_read: Option<u32>,
    distribution: Option<Distribution>,
    norandommap: bool,
    seed: Option<u64>,
    offset: Option<At<Amount>>,
    size: Option<At<Amount>>,
    io_size: Option<At<Amount>>,
    loops: Option<At<u64>>,
    number_ios: Option<At<u64>>,
}

#[derive(Clone, Copy)]
struct Pattern {
    sequential: bool,
    /// Fixed share of reads; `None`: mixed.
    read_percent: Option<u32>,
}

struct Parser<'a> {
    path: &'a Path,
    env: &'a dyn Fn(&str) -> Option<String>,
    draft: Draft,
    line: u64,
    in_global: bool,
}

impl Parser<'_> {
    fn take_line(&mut self, raw: &[u8]) -> Result<(), WorkloadError> {
        let Ok(text) = std::str::from_utf8(raw) else {
            let found = format!("«{}»", names::excerpt(raw));
            return Err(self.syntax("UTF-8 text", found, "save the file as UTF-8"));
        };
        let text = if self.line == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let text = text.split([';', '#']).next().unwrap_or_default().trim();
        if text.contains('\0') {
            let found = format!("«{}»", names::excerpt(raw));
            return Err(self.syntax("text", found, "the file is binary or damaged here"));
        }
        if text.is_empty() {
            return Ok(());
        }
        if let Some(header) = text.strip_prefix('[') {
            return self.take_section(header);
        }
        if self.draft.section.is_none() && !self.in_global {
            let found = format!("«{}»", names::excerpt(text.as_bytes()));
            return Err(self.syntax(
                "a section such as [job] first",
                found,
                "add a section header",
            ));
        }
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            None => (text, "1"),
        };
        self.take_key(key, value)
    }

    fn take_section(&mut self, header: &str) -> Result<(), WorkloadError> {
        let name = header.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty());
        let Some(name) = name else {
            let found = format!("«[{}»", names::excerpt(header.as_bytes()));
            return Err(self.syntax("a section header such as [job]", found, "close it with `]`"));
        };
        self.in_global = name == "global";
        match &self.draft.section {
            Some(_) if self.in_global => Err(self.syntax(
                "[global] before the job",
                "it after the job, where it has no effect".to_owned(),
                "move it up",
            )),
            Some(first) => {
                let (name, first) = (names::excerpt(name.as_bytes()), first.line);
                let found = format!("another, [{name}], after the one on line {first}");
                Err(self.syntax("one job section", found, "put each job in a file of its own"))
            }
            None if self.in_global => Ok(()),
            None => {
                self.draft.section = Some(At { value: name.to_owned(), line: self.line });
                Ok(())
            }
        }
    }

    fn take_key(&mut self, key: &str, raw: &str) -> Result<(), WorkloadError> {
        let expanded = value::expand(raw, self.env);
        let expanded = expanded.map_err(|expected| self.key(key, raw, expected))?;
        let text = expanded.trim();
        if NO_EFFECT.contains(&key) {
            if key == "verify" && text != "0" {
                let expected = "0: the stored data is not modelled by a pattern".to_owned();
                return Err(self.key(key, text, expected));
            }
            let line = self.line;
            self.draft
                .notices
                .push(format!("line {line}: `{key}` has no effect on a modelled drive"));
            return Ok(());
        }
        if !KEYS.contains(&key) {
            return Err(self.unknown_key(key));
        }
        self.apply(key, text).map_err(|expected| self.key(key, text, expected))
    }

    fn apply(&mut self, key: &str, text: &str) -> Result<(), Expected> {
        let line = self.line;
        let draft = &mut self.draft;
        let at = |value: Amount| Some(At { value, line });
        let count = |value: u64| Some(At { value, line });
        match key {
            "rw" | "readwrite" => draft.pattern = Some(pattern(text)?),
            "bs" | "blocksize" => {
                let bytes = value::integer(text)?;
                if bytes == 0 || bytes % 512 != 0 || bytes / 512 > u64::from(u32::MAX) {
                    return Err("one block size, a multiple of 512 bytes below 2 TiB".to_owned());
                }
                draft.block_bytes = Some(bytes);
            }
            "size" => draft.size = at(value::amount(text)?),
            "offset" => draft.offset = at(value::amount(text)?),
            "io_size" => draft.io_size = at(value::amount(text)?),
            "loops" => draft.loops = count(value::bounded(text, 1, u64::MAX)?),
            "number_ios" => draft.number_ios = count(value::bounded(text, 1, u64::MAX)?),
            "iodepth" => {
                // Source: the largest queue an NVMe controller may offer (CAP.MQES).
                draft.queue_depth = Some(value::bounded(text, 1, 65_536)? as u32);
            }
            "rwmixread" => draft.mix_read = Some(value::bounded(text, 0, 100)? as u32),
            "rwmixwrite" => draft.mix_read = Some(100 - value::bounded(text, 0, 100)? as u32),
            "random_distribution" => draft.distribution = Some(value::distribution(text)?),
            "norandommap" => draft.norandommap = value::switch(text)?,
            "randseed" => draft.seed = Some(value::integer(text)?),
            "numjobs" => {
                if value::integer(text)? != 1 {
                    return Err("1: one job is one stream; raise iodepth instead".to_owned());
                }
            }
            _ => {
                if text.is_empty() {
                    return Err("a name".to_owned());
                }
                draft.name = Some(text.to_owned());
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<FioJob, WorkloadError> {
        let Some(section) = &self.draft.section else {
            return Err(WorkloadError::Empty {
                path: self.path.to_owned(),
                line: self.line,
                found: "no job section",
                expected: "one section such as [job] with its keys".into(),
            });
        };
        let draft = &self.draft;
        let pattern =
            draft.pattern.unwrap_or(Pattern { sequential: true, read_percent: Some(100) });
        let distribution = draft.distribution.unwrap_or(Distribution::Uniform);
        let mut notices = draft.notices.clone();
        if !pattern.sequential && !draft.norandommap && distribution == Distribution::Uniform {
            notices.push(
                "`norandommap` is not set: fio would visit every block once per pass, here \
                 addresses are independent draws"
                    .to_owned(),
            );
        }
        if pattern.sequential && draft.distribution.is_some() {
            notices.push("`random_distribution` has no effect on a sequential pattern".to_owned());
        }
        Ok(FioJob {
            name: draft.name.clone().unwrap_or_else(|| section.value.clone()),
            notices,
            queue_depth: draft.queue_depth.unwrap_or(1),
            read_percent: pattern.read_percent.or(draft.mix_read).unwrap_or(50),
            sequential: pattern.sequential,
            distribution,
            block_bytes: draft.block_bytes.unwrap_or(4096),
            seed: draft.seed,
            path: PathBuf::from(self.path),
            line: section.line,
            offset: draft.offset,
            size: draft.size,
            io_size: draft.io_size,
            loops: draft.loops.unwrap_or(At { value: 1, line: section.line }),
            number_ios: draft.number_ios,
        })
    }

    fn syntax(&self, expected: &str, found: String, advice: &str) -> WorkloadError {
        WorkloadError::Syntax {
            path: self.path.to_owned(),
            line: self.line,
            found: found.into(),
            expected: expected.into(),
            advice: advice.into(),
        }
    }

    fn key(&self, key: &str, found: &str, expected: Expected) -> WorkloadError {
        WorkloadError::Key {
            path: self.path.to_owned(),
            line: self.line,
            key: names::excerpt(key.as_bytes()).into(),
            found: format!("«{}»", names::excerpt(found.as_bytes())).into(),
            expected: expected.into(),
            advice: "correct the value".into(),
        }
    }

    fn unknown_key(&self, key: &str) -> WorkloadError {
        let known = || KEYS.into_iter().chain(NO_EFFECT);
        let advice = match (names::nearest(key, known()), key) {
            (_, "runtime" | "time_based") => {
                "bound the job by io_size, loops or number_ios instead of time".to_owned()
            }
            (Some(name), _) => format!("did you mean `{name}`?"),
            (None, _) => "remove the key if the pattern does not depend on it".to_owned(),
        };
        WorkloadError::Key {
            path: self.path.to_owned(),
            line: self.line,
            key: names::excerpt(key.as_bytes()).into(),
            found: "an unknown or unsupported key".into(),
            expected: format!("one of: {}", known().collect::<Vec<_>>().join(", ")).into(),
            advice: advice.into(),
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, Expected> {
    let (sequential, read_percent) = match text {
        "read" => (true, Some(100)),
        "write" => (true, Some(0)),
        "rw" | "readwrite" => (true, None),
        "randread" => (false, Some(100)),
        "randwrite" => (false, Some(0)),
        "randrw" => (false, None),
        _ => {
            let known = "read, write, randread, randwrite, rw, readwrite or randrw";
            return Err(known.to_owned());
        }
    };
    Ok(Pattern { sequential, read_percent })
}
