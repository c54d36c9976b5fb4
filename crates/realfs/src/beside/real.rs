//! A case on a real ext4.

use std::time::Duration;

use super::wrap::Timed;
use super::{Case, CompareError, Figures, Mode};
use crate::linux::{Closing, Data, Journal, Options, RealError, RealFs, Report, run, run_script};

/// Longest a run may take: several times what the longest needs \[s\].
const LIMIT_S: u64 = 120;

/// Runs a case on a real ext4. The inner error is that of the file system.
pub fn real(case: &Case) -> Result<Result<Figures, RealError>, CompareError> {
    let mut app = Timed::new(case.application()?);
    let mut carry_out = || -> Result<Report, RealError> {
        let fs = RealFs::make(&options(case))?;
        match case.is_script() {
            true => run_script(&fs, &mut app, Closing::Sync),
            false => run(&fs, &mut app, Duration::from_secs(LIMIT_S), Closing::Sync),
        }
    };
    let report = carry_out();
    let times = app.times();
    Ok(report.map(|report| Figures::observed(&report.total(), times)))
}

fn options(case: &Case) -> Options {
    let owned = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(file, value)| ((*file).to_owned(), (*value).to_owned())).collect()
    };
    let setting = &case.setting;
    let mib = setting.journal_mib;
    let mut mount: Vec<String> = setting.mount.iter().map(|&option| option.to_owned()).collect();
    if case.mode != Mode::None {
        mount.push("commit=300".to_owned());
    }
    Options {
        mib: case.size_mib,
        journal: match case.mode {
            Mode::None => Journal::None,
            _ if setting.external => Journal::External { mib },
            _ => Journal::Internal { mib: Some(mib) },
        },
        data: match case.mode {
            Mode::Ordered | Mode::None => Data::Ordered,
            Mode::Journal => Data::Journal,
            Mode::Writeback => Data::Writeback,
        },
        delalloc: case.delalloc,
        mount,
        ext4: owned(setting.ext4),
        vm: owned(setting.vm),
        ..Options::default()
    }
}
