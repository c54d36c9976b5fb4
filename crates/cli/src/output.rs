//! Printing. A reader that goes away (`| head`) ends the program quietly.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::Failure;

/// Prints results.
pub(crate) fn results(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(Failure::Work(anyhow::anyhow!("standard output: {e}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a message to the person at the terminal.
pub(crate) fn message(text: &str) {
    // Nobody can be told that standard error is gone.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A line of progress, shown only to a person.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(crate) fn start(what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner().with_message(what.to_owned());
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg}").expect("a constant template"),
        );
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    pub(crate) fn say(&self, what: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(what.to_owned());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
