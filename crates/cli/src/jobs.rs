//! The figures of each job, for a person to read.

use flashwise_report::list_table;
use serde_json::Value;

/// Columns: heading, key in the figures of a job, digits after the point.
const COLUMNS: [(&str, &str, usize); 9] = [
    ("requests", "requests", 0),
    ("per second", "iops", 0),
    ("MiB/s", "host_mib_s", 1),
    ("read 50 % [us]", "read_p50_us", 1),
    ("99 %", "read_p99_us", 1),
    ("write 50 % [us]", "write_p50_us", 1),
    ("99 %", "write_p99_us", 1),
    ("flush 50 % [us]", "flush_p50_us", 1),
    ("99 %", "flush_p99_us", 1),
];

/// A table of the jobs of all rows, with a blank line before it; nothing for a workload
/// that has fewer than two.
pub(crate) fn table(rows: &[Value]) -> String {
    let jobs = |row: &Value| row["jobs"].as_array().cloned().unwrap_or_default();
    let n_jobs = rows.first().map_or(0, |row| jobs(row).len());
    if n_jobs < 2 {
        return String::new();
    }
    let all: Vec<(String, Vec<Value>)> =
        rows.iter().map(|row| (text(&row["policy"]), jobs(row))).collect();
    let used: Vec<_> = COLUMNS
        .into_iter()
        .filter(|(_, key, _)| all.iter().flat_map(|row| &row.1).any(|job| !job[*key].is_null()))
        .collect();
    let mut lines = vec![];
    for job in 0..n_jobs {
        for (policy, jobs) in &all {
            let mut line = vec![text(&jobs[job]["name"]), policy.clone()];
            line.extend(used.iter().map(|(_, key, decimals)| match jobs[job][*key].as_f64() {
                Some(value) => format!("{value:.decimals$}"),
                None => "-".to_owned(),
            }));
            lines.push(line);
        }
    }
    let header = ["job", "policy"].into_iter().chain(used.iter().map(|(heading, ..)| *heading));
    format!("\n{}", list_table(&header.collect::<Vec<_>>(), &lines))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
