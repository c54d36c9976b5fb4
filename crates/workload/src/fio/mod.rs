//! fio job files, as the jobs they describe.
//!
//! fio jobs are how engineers already write down a workload. The reader takes the keys
//! that shape what a drive sees, collects keys that cannot matter to a modelled drive as
//! notices, and refuses the rest by name: a key that is silently ignored would be a
//! different workload. Sizes and percentages are resolved against the drive only in
//! [`FioFile::jobs`], so one file runs on any drive. `docs/fio.md` says what each key
//! means here, and where fio differs.
//!
//! Path of a file: `lines` (sections, includes, variables), `options` (keys and values,
//! with `keys` and `value`), `resolve` (a drive). Source: fio's HOWTO, `init.c`,
//! `options.c` and `parse.c`.

mod canonical;
mod keys;
mod lines;
mod options;
mod resolve;
mod value;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

pub use resolve::{JobPlan, JobTarget};

use crate::WorkloadError;
use options::Options;

/// Answers `${NAME}`.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;
/// Reads an included file.
type Files<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// A size in a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent, 0 to 100, of the drive (for `io_size`: of the region).
    Percent(u32),
}

/// A job file as written; sizes are not resolved yet.
#[derive(Clone, Debug)]
pub struct FioFile {
    path: PathBuf,
    jobs: Vec<FioJob>,
    notices: Vec<String>,
}

/// One job section with what [global] adds to it.
#[derive(Clone, Debug)]
struct FioJob {
    name: String,
    /// Line of the section header.
    place: lines::Place,
    options: Options,
}

/// Reads a fio job file; `env` answers `${NAME}`.
pub fn read_fio_file(path: &Path, env: Env<'_>) -> Result<FioFile, WorkloadError> {
    let failed = |action, advice| {
        move |source| WorkloadError::Io { path: path.to_owned(), action, advice, source }
    };
    std::fs::File::open(path).map_err(failed("open", "check the path and its permissions"))?;
    let text = lines::read(path)
        .map_err(failed("read", "check that it is a readable file, not a directory"))?;
    parse_fio_file(path, &text, env, &lines::read)
}

/// Parses the text of a fio job file; `path` is its name in messages, and `files` reads
/// the files it includes.
pub fn parse_fio_file(
    path: &Path,
    text: &[u8],
    env: Env<'_>,
    files: Files<'_>,
) -> Result<FioFile, WorkloadError> {
    let mut global = Options::default();
    let mut jobs: Vec<FioJob> = vec![];
    let mut notices = vec![];
    for section in lines::sections(path, text, env, files)? {
        if section.is_global {
            global = global.with(&section, &mut notices)?;
            continue;
        }
        let options = global.with(&section, &mut notices)?;
        let name = options.name.clone().unwrap_or(section.name);
        jobs.push(FioJob { name, place: section.place, options });
    }
    for job in &jobs {
        job.add_notices(&mut notices);
    }
    let files: BTreeSet<_> = jobs.iter().map(|job| job.options.filename.as_deref()).collect();
    if files.len() > 1 {
        notices.push(
            "the jobs name different files: here they share the drive; part them by `offset`"
                .to_owned(),
        );
    }
    Ok(FioFile { path: path.to_owned(), jobs, notices })
}

impl FioFile {
    /// What a user should know: keys without effect here, and where fio would differ.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Number of job sections.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl FioJob {
    fn add_notices(&self, notices: &mut Vec<String>) {
        let o = &self.options;
        let mut note = |key: &str, what: &str| {
            let line = o.places.get(key).map_or(self.place.line, |place| place.line);
            notices.push(format!("line {line}: {what}"));
        };
        let sequential = o.rw.is_none_or(|rw| rw.sequential);
        if sequential && o.distribution.is_some() {
            note(
                "random_distribution",
                "`random_distribution` has no effect on a sequential pattern",
            );
        }
        if let (Some(engine), Some(2..)) = (&o.synchronous, o.iodepth) {
            let what = format!(
                "with ioengine={engine} fio keeps one request in flight; here `iodepth` counts"
            );
            note("iodepth", &what);
        }
    }
}
