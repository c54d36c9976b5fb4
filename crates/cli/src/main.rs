//! The `flashwise` command. Arguments are read here, work is done in the crates
//! below, and only here is anything printed: results on stdout, progress and
//! messages on stderr. Exit status: 0 done, 1 the work failed or did not reach what
//! was asked, 2 bad usage or bad input.

mod args;
mod device;
mod device_new;
mod files;
mod inspect;
mod jobs;
mod journal;
mod nvme;
mod output;
mod replay;
mod side_by_side;
mod study;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Verb};

/// How a command ends when it does not succeed.
#[derive(Debug)]
enum Failure {
    /// The input or the usage is at fault: exit 2.
    Input(anyhow::Error),
    /// The work failed: exit 1.
    Work(anyhow::Error),
}

impl Failure {
    fn input(e: impl Into<anyhow::Error>) -> Self {
        Self::Input(e.into())
    }
}

fn main() -> ExitCode {
    let result = match Args::parse().verb {
        Verb::Replay(args) => replay::run(&args),
        Verb::Device(args) => device::run(&args),
        Verb::Journal(args) => journal::run(&args),
        Verb::Study(args) => study::run(&args),
    };
    let (code, error) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Work(e)) => (1, e),
        Err(Failure::Input(e)) => (2, e),
    };
    // Every error names its cause in its own text.
    output::message(&format!("error: {error}"));
    ExitCode::from(code)
}
