//! What a user should know about a trace that was read: every choice that was made
//! for them, in one sentence each, with its count.

use super::{DeviceMode, DeviceUse, Format, Tally, TimeUnit};
use crate::names;

/// The notices, the most consequential first.
pub(crate) fn notices(
    format: Format,
    mode: DeviceMode,
    devices: &[DeviceUse],
    tally: &Tally,
) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(devices_notice(mode, devices));
    out.extend(bad_notice(tally));
    if tally.late_rows > 0 {
        out.push(format!(
            "rows out of order: {}, by up to {} ms; they were put in order of time",
            tally.late_rows,
            TimeUnit::Milliseconds.decimal(tally.late_max_ns)
        ));
    }
    if !tally.others.is_empty() {
        let each = tally.others.iter().map(|(why, n)| format!("{why}: {n}"));
        out.push(format!("lines that are no requests ({})", each.collect::<Vec<_>>().join(", ")));
    }
    if tally.rounded > 0 {
        out.push(format!(
            "rows that do not begin and end on 512-byte sectors: {}; they were rounded outward",
            tally.rounded
        ));
    }
    if let Some(unused) = format.unused_columns() {
        out.push(format!("{unused} in the trace are not used"));
    }
    out
}

fn devices_notice(mode: DeviceMode, devices: &[DeviceUse]) -> Option<String> {
    let kept: Vec<&str> = devices.iter().filter(|d| d.kept).map(|d| d.name.as_str()).collect();
    let left: Vec<&str> = devices.iter().filter(|d| !d.kept).map(|d| d.name.as_str()).collect();
    let mut parts = Vec::new();
    if !left.is_empty() {
        let rows: u64 = devices.iter().filter(|d| !d.kept).map(|d| d.rows).sum();
        parts.push(format!("rows of other devices, left out: {rows} ({})", names::list(&left)));
    }
    if kept.len() > 1 {
        let (n, list) = (kept.len(), names::list(&kept));
        parts.push(match mode {
            DeviceMode::Shared => format!(
                "the trace names {n} devices ({list}); they share one address space here \
                 (--trace-devices separate keeps them apart)"
            ),
            DeviceMode::Separate => format!(
                "the trace names {n} devices ({list}); they lie side by side, 512 TiB apart, in \
                 order of first appearance (--select NAME keeps one)"
            ),
        });
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn bad_notice(tally: &Tally) -> Option<String> {
    let n = tally.bad;
    let examples = tally
        .bad_examples
        .iter()
        .map(|bad| format!("line {}: expected {}, found {}", bad.line, bad.expected, bad.found));
    let examples = examples.collect::<Vec<_>>().join("; ");
    let more = if n > tally.bad_examples.len() as u64 { "; and more" } else { "" };
    (n > 0).then(|| format!("bad lines, skipped: {n} ({examples}{more})"))
}
