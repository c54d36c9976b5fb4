//! What is compared: loads, modes and settings.

use serde::Serialize;

use crate::scripts;

/// What goes through the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Metadata; data before the commit.
    Ordered,
    /// Metadata and data.
    Journal,
    /// Metadata; data at any time.
    Writeback,
    /// There is no journal.
    None,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ordered, Self::Journal, Self::Writeback, Self::None];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Journal => "journal",
            Self::Writeback => "writeback",
            Self::None => "none",
        }
    }
}

/// A setting of both sides, in the words of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its name in tables; empty for the plain one.
    pub name: &'static str,
    /// Size of the journal \[MiB\].
    pub journal_mib: u64,
    /// The journal is on a device of its own.
    pub external: bool,
    /// More settings of the model.
    pub model: &'static str,
    /// More mount options.
    pub mount: &'static [&'static str],
    /// Settings in `/sys/fs/ext4/DEVICE`.
    pub ext4: &'static [(&'static str, &'static str)],
    /// Settings in `/proc/sys/vm`.
    pub vm: &'static [(&'static str, &'static str)],
}

/// 64 MiB of journal, nothing else.
const PLAIN: Setting = Setting {
    name: "",
    journal_mib: 64,
    external: false,
    model: "",
    mount: &[],
    ext4: &[],
    vm: &[],
};

/// A journal that wraps all the time: the smallest that the model takes, and four times
/// what mke2fs takes.
const SMALL: Setting = Setting { name: "4 MiB journal", journal_mib: 4, ..PLAIN };

const EXTERNAL: Setting = Setting { name: "external", external: true, ..PLAIN };

const DISCARD: Setting =
    Setting { name: "discard", model: "discard=online", mount: &["discard"], ..PLAIN };

/// Dirty pages go home after a second.
const AGED: Setting = Setting {
    name: "expire 1 s",
    model: "expire=1s,flusher=500ms",
    vm: &[("dirty_expire_centisecs", "100"), ("dirty_writeback_centisecs", "50")],
    ..PLAIN
};

/// Dirty pages go home when there are 16 MiB of them.
const BACKGROUND: Setting = Setting {
    name: "background 16 MiB",
    model: "dirty=32m,background=16m",
    vm: &[("dirty_bytes", "33554432"), ("dirty_background_bytes", "16777216")],
    ..PLAIN
};

const STREAM_4: Setting = Setting {
    name: "mb_stream_req 4",
    model: "stream-blocks=4",
    ext4: &[("mb_stream_req", "4")],
    ..PLAIN
};

const STREAM_64: Setting = Setting {
    name: "mb_stream_req 64",
    model: "stream-blocks=64",
    ext4: &[("mb_stream_req", "64")],
    ..PLAIN
};

/// The personalities, short: a bounded number of operations, so that both sides do the
/// same work, of four threads on a set of files that takes a second to make.
const PERSONALITIES: [&str; 5] = [
    "varmail,files=1000,threads=4,ops=20000",
    "fileserver,files=1000,threads=4,ops=20000",
    "webserver,files=500,threads=4,ops=8000",
    "webproxy,files=1000,threads=4,ops=20000",
    "oltp,files=4,mean_size=10m,threads=4,writers=2,usermode=1000,ops=10000",
];

/// What runs, and on what file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Case {
    /// Name of a script, or an application with its settings.
    pub load: String,
    /// What goes through the journal.
    pub mode: Mode,
    /// Blocks are allocated at write-back.
    pub delalloc: bool,
    /// The rest.
    pub setting: Setting,
    /// Size of the device \[MiB\].
    pub size_mib: u64,
    /// Seed of the application.
    pub seed: u64,
}

impl Case {
    fn new(load: &str, mode: Mode) -> Self {
        Self {
            load: load.to_owned(),
            mode,
            delalloc: true,
            setting: PLAIN,
            size_mib: 2048,
            seed: 1,
        }
    }

    fn with(self, setting: Setting) -> Self {
        Self { setting, ..self }
    }

    /// Whether it is a script: one thread, which runs on one CPU.
    pub fn is_script(&self) -> bool {
        scripts::NAMES.contains(&self.load.as_str())
    }

    /// The load without its settings.
    pub fn load_name(&self) -> &str {
        self.load.split(',').next().unwrap_or_default()
    }

    /// Mode and what differs from the plain setting.
    pub fn mode_name(&self) -> String {
        let delalloc = if self.delalloc { "" } else { " nodelalloc" };
        let comma = if self.setting.name.is_empty() { "" } else { ", " };
        format!("{}{delalloc}{comma}{}", self.mode.name(), self.setting.name)
    }

    /// Cores its threads share.
    pub(super) fn n_cores(&self) -> u32 {
        2
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.size_mib << 20
    }

    /// The settings of the model: those of a loop device and of this machine. No commit but
    /// those that are asked for, however slow the machine is.
    pub(super) fn config(&self) -> String {
        let mut text = String::from("ext4,request=1280k,segments=128,memory=16g,commit=300");
        let mut say = |word: &str| {
            text.push(',');
            text.push_str(word);
        };
        say(&format!("cores={}", self.n_cores()));
        match self.mode {
            Mode::None => say("journal=none"),
            mode => {
                say(&format!("data={}", mode.name()));
                say(&format!("journal-size={}m", self.setting.journal_mib));
                if self.setting.external {
                    say("journal=external");
                }
            }
        }
        if !self.delalloc {
            say("nodelalloc");
        }
        if !self.setting.model.is_empty() {
            say(self.setting.model);
        }
        text
    }
}

/// A script in ordered mode.
pub fn named(load: &str) -> Option<Case> {
    let case = Case::new(load, Mode::Ordered);
    case.application().is_ok().then_some(case)
}

/// Everything.
pub fn all() -> Vec<Case> {
    let mut cases = vec![];
    for load in scripts::NAMES.iter().chain(&PERSONALITIES) {
        for mode in Mode::ALL {
            cases.push(Case::new(load, mode));
            // With data=journal there is no delayed allocation anyway.
            if mode != Mode::Journal {
                cases.push(Case { delalloc: false, ..Case::new(load, mode) });
            }
        }
    }
    cases.extend(settings());
    cases
}

/// Loads under settings that change them.
fn settings() -> Vec<Case> {
    let mut cases = vec![];
    let [varmail, fileserver, ..] = PERSONALITIES;
    for mode in [Mode::Ordered, Mode::Journal] {
        for load in ["create-fsync", "append-fsync", "rename-replace", "sequential", varmail] {
            cases.push(Case::new(load, mode).with(SMALL));
        }
        for load in ["append-fsync", "create-fsync", varmail] {
            cases.push(Case::new(load, mode).with(EXTERNAL));
        }
        for load in ["delete", "rename-replace", "truncate-append", fileserver] {
            cases.push(Case::new(load, mode).with(DISCARD));
        }
        cases.push(Case::new("writeback", mode).with(AGED));
        cases.push(Case::new("writeback", mode).with(BACKGROUND));
    }
    for load in ["append-fsync", "append-two", fileserver] {
        cases.push(Case::new(load, Mode::Ordered).with(STREAM_4));
        cases.push(Case::new(load, Mode::Ordered).with(STREAM_64));
    }
    cases
}

/// A subset that takes less than a minute.
pub fn quick() -> Vec<Case> {
    let scripts =
        ["create", "create-fsync", "append-fsync", "append-two", "rename-replace", "delete"];
    let mut cases = vec![];
    for mode in [Mode::Ordered, Mode::Journal] {
        cases.extend(scripts.iter().map(|load| Case::new(load, mode)));
        cases.push(Case::new("create-fsync", mode).with(SMALL));
        cases.push(Case::new(PERSONALITIES[0], mode));
        cases.push(Case::new(PERSONALITIES[1], mode));
    }
    cases
}
