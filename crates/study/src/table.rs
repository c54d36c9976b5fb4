//! Lines of a study laid out as tables: for the terminal, and as Markdown.

use crate::{Point, WorkloadRow};

/// A table. Columns that say nothing are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns, unit included.
    pub header: Vec<String>,
    /// Cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// What stands where there is no figure.
const NOTHING: &str = "-";

/// Columns of workloads: name, and the text of a row.
type Column = (&'static str, fn(&WorkloadRow) -> String);
const COLUMNS: [Column; 12] = [
    ("workload", |r| r.workload.clone()),
    ("policy", |r| r.policy.clone()),
    ("device", |r| r.device.clone()),
    ("read MiB/s", |r| format!("{:.0}", r.read_mib_s)),
    ("published", |r| optional(r.paper_read_mib_s, 0)),
    ("of contiguous", |r| format!("{:.3}", r.normalized)),
    ("README", |r| optional(r.paper_normalized, 3)),
    ("Fig 12", |r| optional(r.paper_fig12, 3)),
    ("of fresh", |r| optional(r.of_fresh, 3)),
    ("senses/256 KiB", |r| format!("{:.2}", r.senses_per_256_kib)),
    ("pieces/file", |r| format!("{:.1}", r.pieces_per_file)),
    ("WAF", |r| format!("{:.2}", r.waf)),
];

fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |v| format!("{v:.digits$}"))
}

impl Table {
    /// Workloads under policies; a row that several workloads share, once.
    pub fn of_rows<'a>(rows: impl IntoIterator<Item = &'a WorkloadRow>) -> Self {
        let header = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut table = Self { header, rows: vec![] };
        for row in rows {
            let cells = COLUMNS.iter().map(|(_, text)| text(row)).collect();
            if !table.rows.contains(&cells) {
                table.rows.push(cells);
            }
        }
        table.trimmed()
    }

    /// Points of a sweep.
    pub fn of_points(points: &[&Point]) -> Self {
        let keys = distinct(points.iter().flat_map(|p| p.values.iter().map(|(key, _)| *key)));
        let digits = |key: &&str| {
            // Counts without a fraction.
            let is_whole = points.iter().filter_map(|p| p.get(key)).all(|v| v.fract() == 0.0);
            if is_whole { 0 } else { 3 }
        };
        let columns: Vec<_> = keys.iter().map(|key| (key, digits(key))).collect();
        let cells = |p: &&Point| {
            let fixed = [p.device.clone(), p.series.clone(), p.x.to_string()];
            let figures = columns.iter().map(|&(key, digits)| optional(p.get(key), digits));
            fixed.into_iter().chain(figures).collect()
        };
        let header = ["device", "series", "x"].iter().chain(&keys).map(|&k| k.to_owned());
        Self { header: header.collect(), rows: points.iter().map(cells).collect() }.trimmed()
    }

    /// Without a column.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        let kept = (0..self.header.len()).filter(|&i| self.header[i] != name).collect();
        self.with(kept)
    }

    /// As Markdown, with a final newline; nothing without rows.
    pub fn markdown(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let rule = "|---".repeat(self.header.len()) + "|\n";
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        line(&self.header) + &rule + &rows
    }

    fn trimmed(self) -> Self {
        let says = |&i: &usize| self.rows.iter().any(|row| row[i] != NOTHING);
        let kept = (0..self.header.len()).filter(says).collect();
        self.with(kept)
    }

    fn with(self, columns: Vec<usize>) -> Self {
        let pick = |cells: &Vec<String>| columns.iter().map(|&i| cells[i].clone()).collect();
        Self { header: pick(&self.header), rows: self.rows.iter().map(pick).collect() }
    }
}

/// Each of `names` once, in the order of their first appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = vec![];
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_a_figure_are_left_out() {
        let points =
            [Point::new("s", "a", "b", 1.0).with("mib", 2.5), Point::new("s", "a", "b", 0.5)];
        let table = Table::of_points(&points.iter().collect::<Vec<_>>());
        let text = "| device | series | x | mib |\n|---|---|---|---|\n\
            | a | b | 1 | 2.500 |\n| a | b | 0.5 | - |\n";
        assert_eq!(table.markdown(), text);
        let whole = Point::new("s", "a", "b", 1.0).with("n", 256.0);
        assert_eq!(Table::of_points(&[&whole]).rows[0][3], "256");
        let row = WorkloadRow { workload: "w".to_owned(), normalized: 0.5, ..Default::default() };
        let table = Table::of_rows([&row, &row]).without("device");
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.header.len(), 7);
        assert!(!table.header.iter().any(|h| h == "README" || h == "device"));
        assert_eq!(table.rows[0][3], "0.500");
    }
}
