//! `host-costs`: CPU time of file-system calls on this machine, as the model counts it
//! (`flashwise_hostfs::HostCosts`).
//!
//! The directory should be on an ext4, best on a loop device in memory, so that nothing
//! waits.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use clap::Parser as _;

    /// Measure what file-system calls cost on one core of this machine.
    #[derive(Debug, clap::Parser)]
    #[command(version, max_term_width = 100)]
    struct Args {
        /// Directory to work in; 100 MiB are used for a while
        dir: std::path::PathBuf,
    }

    let dir = Args::parse().dir;
    match flashwise_realfs::host_costs(&dir) {
        Ok(rows) => {
            for (what, ns, field) in rows {
                println!("{what:<36} {ns:>8.0} ns  {field}");
            }
            std::process::ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("error: {}: {e}; name a directory that can be written", dir.display());
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!("skipped: needs Linux");
    std::process::ExitCode::FAILURE
}
