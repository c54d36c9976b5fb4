//! Applications by name, and their settings as text: `varmail,files=20000,threads=4`.

use std::fmt;

use flashwise_hostfs::Application;

use super::error::AppError;
use super::fileset::Size;
use super::flow::Flow;
use super::keys::{Key, NONE, SECOND, Values};
use super::personality::{self, Workload};
use super::postmark::PostMark;
use crate::names::{excerpt, nearest};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Most bytes of all files of an application together, assumed: far above any drive, far
/// below what sums of offsets can hold.
const MAX_BYTES: u64 = 1 << 60;

/// An application, its keys in the order they are listed, and their defaults.
struct App {
    name: &'static str,
    about: &'static str,
    defaults: &'static [(Key, u64)],
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Filebench(fn(&Values) -> Workload),
    PostMark,
}

/// Defaults. Source: `workloads/*.f` of filebench (head of 2020-02) and PostMark 1.5.
/// Webproxy and videoserver have no run time there; theirs is that of the others.
const APPS: [App; 7] = [
    App {
        name: "varmail",
        about: "mail server: small files written once and made durable, read, deleted",
        defaults: &[
            (Key::Files, 1000),
            (Key::MeanSize, 16 * KIB),
            (Key::Threads, 16),
            (Key::Runtime, 60 * SECOND),
            (Key::Append, 16 * KIB),
            (Key::IoSize, MIB),
            (Key::DirWidth, 1_000_000),
            (Key::Prealloc, 80),
            (Key::Ops, NONE),
        ],
        kind: Kind::Filebench(personality::varmail),
    },
    App {
        name: "fileserver",
        about: "home directories: whole files written and read, appended to, deleted",
        defaults: &[
            (Key::Files, 10_000),
            (Key::MeanSize, 128 * KIB),
            (Key::Threads, 50),
            (Key::Runtime, 60 * SECOND),
            (Key::Append, 16 * KIB),
            (Key::IoSize, MIB),
            (Key::DirWidth, 20),
            (Key::Prealloc, 80),
            (Key::Ops, NONE),
        ],
        kind: Kind::Filebench(personality::fileserver),
    },
    App {
        name: "webserver",
        about: "pages read whole, and one log that all threads append to",
        defaults: &[
            (Key::Files, 1000),
            (Key::MeanSize, 16 * KIB),
            (Key::Threads, 100),
            (Key::Runtime, 60 * SECOND),
            (Key::Append, 16 * KIB),
            (Key::IoSize, MIB),
            (Key::DirWidth, 20),
            (Key::Ops, NONE),
        ],
        kind: Kind::Filebench(personality::webserver),
    },
    App {
        name: "webproxy",
        about: "cache of pages: fetched, read five times, replaced",
        defaults: &[
            (Key::Files, 10_000),
            (Key::MeanSize, 16 * KIB),
            (Key::Threads, 100),
            (Key::Runtime, 60 * SECOND),
            (Key::Append, 16 * KIB),
            (Key::IoSize, MIB),
            (Key::DirWidth, 1_000_000),
            (Key::Prealloc, 80),
            (Key::Ops, NONE),
            (Key::Rate, 0),
        ],
        kind: Kind::Filebench(personality::webproxy),
    },
    App {
        name: "videoserver",
        about: "videos streamed at a rate [MiB/s], and one thread that replaces passive ones",
        defaults: &[
            (Key::Files, 32),
            (Key::MeanSize, 10 * GIB),
            (Key::Threads, 48),
            (Key::Runtime, 60 * SECOND),
            (Key::IoSize, MIB),
            (Key::DirWidth, 20),
            (Key::Prealloc, 50),
            (Key::Ops, NONE),
            (Key::Rate, 96),
            (Key::Passive, 194),
            (Key::ReadSize, 256 * KIB),
            (Key::Interval, 10 * SECOND),
        ],
        kind: Kind::Filebench(personality::videoserver),
    },
    App {
        name: "oltp",
        about: "database: sessions that read and compute, page writers, a log writer",
        defaults: &[
            (Key::Files, 10),
            (Key::MeanSize, 10 * MIB),
            (Key::Threads, 200),
            (Key::Runtime, 60 * SECOND),
            (Key::IoSize, 2 * KIB),
            (Key::DirWidth, 1024),
            (Key::Prealloc, 100),
            (Key::Ops, NONE),
            (Key::Rate, 0),
            (Key::Writers, 10),
            (Key::LogSize, 10 * MIB),
            (Key::LogIo, 256 * KIB),
            (Key::UserMode, 200_000),
        ],
        kind: Kind::Filebench(personality::oltp),
    },
    App {
        name: "postmark",
        about: "PostMark: transactions on a pool of small files, one thread",
        defaults: &[
            (Key::Files, 500),
            (Key::Transactions, 500),
            (Key::SizeLow, 500),
            (Key::SizeHigh, 10_000),
            (Key::Subdirs, 0),
            (Key::ReadBlock, 512),
            (Key::WriteBlock, 512),
            (Key::Buffer, 4 * KIB),
            (Key::ReadBias, 5),
            (Key::CreateBias, 5),
        ],
        kind: Kind::PostMark,
    },
];

/// What a listing says about an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppAbout {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// All keys with their defaults, as [`AppSpec::parse`] reads them.
    pub defaults: String,
}

/// An application with its settings, ready to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppSpec {
    /// Index into the table of applications.
    app: usize,
    values: Values,
}

impl AppSpec {
    /// Reads `NAME[,KEY=VALUE]...`, for example `varmail,files=20000,runtime=25`. What is
    /// not set has the default of [`list`](Self::list). Sizes take the suffixes k, m, g
    /// and t (powers of 1024), times s and ms.
    pub fn parse(text: &str) -> Result<Self, AppError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or("");
        let Some(index) = APPS.iter().position(|app| app.name == name) else {
            let names = APPS.map(|app| app.name);
            return Err(AppError::UnknownApp {
                found: excerpt(name.as_bytes()).into(),
                suggestion: nearest(name, names),
                known: names.join(", ").into(),
            });
        };
        let app = &APPS[index];
        let mut values = Values::default();
        for (key, value) in app.defaults {
            values[*key] = *value;
        }
        let mut seen = Vec::new();
        for part in parts {
            let (key, value) = app.setting(part)?;
            let name = key.rules().name;
            if seen.contains(&key) {
                return Err(AppError::Twice { app: app.name, key: name });
            }
            seen.push(key);
            values[key] = key.parse(value).map_err(|expected| AppError::Value {
                app: app.name,
                key: name,
                found: excerpt(value.as_bytes()).into(),
                expected: expected.into(),
            })?;
        }
        let spec = Self { app: index, values };
        spec.check()?;
        Ok(spec)
    }

    /// All applications.
    pub fn list() -> Vec<AppAbout> {
        APPS.iter()
            .map(|app| {
                let pair = |(key, value): &(Key, u64)| setting(*key, *value);
                let defaults = app.defaults.iter().map(pair).collect::<Vec<_>>().join(",");
                AppAbout { name: app.name, about: app.about, defaults }
            })
            .collect()
    }

    /// Name of the application.
    pub fn name(&self) -> &'static str {
        APPS[self.app].name
    }

    /// When its threads end \[ns since the start\]; `None` if they end on their own.
    pub fn runtime_ns(&self) -> Option<u64> {
        let has_runtime = APPS[self.app].defaults.iter().any(|(key, _)| *key == Key::Runtime);
        has_runtime.then_some(self.values[Key::Runtime])
    }

    /// Bytes of all files if all of them are there, on average; appends and directories
    /// come on top.
    pub fn expected_bytes(&self) -> u64 {
        let values = &self.values;
        let total = match APPS[self.app].kind {
            Kind::Filebench(describe) => describe(values)
                .sets
                .iter()
                .map(|set| {
                    let (Size::Fixed(bytes) | Size::Gamma(bytes)) = set.size;
                    u128::from(set.files) * u128::from(bytes)
                })
                .sum(),
            Kind::PostMark => {
                let mean = u128::from(values[Key::SizeLow] + values[Key::SizeHigh]) / 2;
                u128::from(values[Key::Files]) * mean
            }
        };
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    /// The application; the same seed makes the same one.
    pub fn build(&self, seed: u64) -> Box<dyn Application + Send> {
        let values = &self.values;
        match APPS[self.app].kind {
            Kind::Filebench(describe) => {
                let (runtime_ns, max_ops) = (values[Key::Runtime], values[Key::Ops]);
                Box::new(Flow::new(&describe(values), runtime_ns, max_ops, seed))
            }
            Kind::PostMark => Box::new(PostMark::new(values, seed)),
        }
    }

    /// Refuses values that do not go together.
    fn check(&self) -> Result<(), AppError> {
        let has = |key: Key| APPS[self.app].defaults.iter().any(|(known, _)| *known == key);
        for (large, small) in [(Key::SizeHigh, Key::SizeLow), (Key::LogSize, Key::LogIo)] {
            self.at_least(large, small)?;
        }
        if has(Key::Writers) {
            self.at_least(Key::MeanSize, Key::IoSize)?;
        }
        if self.expected_bytes() > MAX_BYTES {
            let key = if has(Key::MeanSize) { Key::MeanSize } else { Key::SizeHigh };
            return Err(self.together(key, Key::Files, "at most 1024 PiB in all files".into()));
        }
        Ok(())
    }

    fn at_least(&self, large: Key, small: Key) -> Result<(), AppError> {
        if self.values[large] >= self.values[small] {
            return Ok(());
        }
        let bound = format!("{} or more", small.written(self.values[small]));
        Err(self.together(large, small, bound))
    }

    fn together(&self, key: Key, other: Key, expected: String) -> AppError {
        AppError::Together {
            app: self.name(),
            key: key.rules().name,
            found: key.written(self.values[key]).to_string().into(),
            other: setting(other, self.values[other]).into(),
            expected: expected.into(),
        }
    }
}

/// The name and all settings, as [`AppSpec::parse`] reads them.
impl fmt::Display for AppSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        APPS[self.app].defaults.iter().try_for_each(|(key, _)| {
            write!(f, ",{}={}", key.rules().name, key.written(self.values[*key]))
        })
    }
}

impl App {
    /// Splits `KEY=VALUE`.
    fn setting<'a>(&self, part: &'a str) -> Result<(Key, &'a str), AppError> {
        let Some((name, value)) = part.split_once('=') else {
            let (key, value) = self.defaults[0];
            return Err(AppError::Setting {
                app: self.name,
                found: excerpt(part.as_bytes()).into(),
                example: setting(key, value).into(),
            });
        };
        let (name, value) = (name.trim(), value.trim());
        let names: Vec<_> = self.defaults.iter().map(|(key, _)| key.rules().name).collect();
        match names.iter().position(|known| *known == name) {
            Some(index) => Ok((self.defaults[index].0, value)),
            None => Err(AppError::UnknownKey {
                app: self.name,
                found: excerpt(name.as_bytes()).into(),
                suggestion: nearest(name, names.iter().copied()),
                known: names.join(", ").into(),
            }),
        }
    }
}

fn setting(key: Key, value: u64) -> String {
    format!("{}={}", key.rules().name, key.written(value))
}
