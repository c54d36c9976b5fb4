//! Tables: figures down, policies across.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;

/// One line of a table of figures.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Key in the row.
    pub key: &'static str,
    /// What the reader sees, unit included.
    pub label: &'static str,
    /// Digits after the point.
    pub decimals: usize,
    /// Divides the value, for a unit that reads better.
    pub per: f64,
    /// Left out where it is 0 in every column.
    pub rare: bool,
}

impl Figure {
    /// A figure shown as it is.
    pub const fn plain(key: &'static str, label: &'static str, decimals: usize) -> Self {
        Self { key, label, decimals, per: 1.0, rare: false }
    }

    /// A count that is 0 most of the time, and left out then.
    pub const fn rare(key: &'static str, label: &'static str) -> Self {
        Self { key, label, decimals: 0, per: 1.0, rare: true }
    }

    fn is_left_out(&self, rows: &[Value]) -> bool {
        let nothing = |v: &Value| v.is_null() || (self.rare && v.as_f64() == Some(0.0));
        rows.iter().all(|r| nothing(&r[self.key]))
    }
}

/// A table with a column for every row of results, headed by its `head` key, and a
/// line for every figure that any of them has. Later columns also say by how many
/// percent they differ from the first.
pub fn figures_table(rows: &[Value], head: &str, figures: &[Figure]) -> String {
    let mut table = new_table();
    let heads = rows.iter().map(|r| r[head].as_str().unwrap_or("").to_owned());
    table.set_header(std::iter::once(String::new()).chain(heads));
    for f in figures {
        if f.is_left_out(rows) {
            continue;
        }
        let cells = rows.iter().enumerate().map(|(i, r)| {
            let change = if i == 0 { String::new() } else { change(&rows[0][f.key], &r[f.key]) };
            cell(&r[f.key], f) + &change
        });
        table.add_row(std::iter::once(f.label.to_owned()).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    finish(&table)
}

/// A plain table with a header.
pub fn list_table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = new_table();
    table.set_header(header.iter().copied());
    rows.iter().for_each(|r| {
        table.add_row(r);
    });
    finish(&table)
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

fn finish(table: &Table) -> String {
    let lines = table.lines().map(|l| l.trim_end().to_owned() + "\n");
    lines.collect()
}

fn cell(value: &Value, f: &Figure) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(s) => s.clone(),
        Value::Number(n) => {
            let v = n.as_f64().unwrap_or(f64::NAN) / f.per;
            grouped(&format!("{v:.*}", f.decimals))
        }
        other => other.to_string(),
    }
}

/// Difference from the first column, as wide in every line: ` +12.3 %`.
fn change(first: &Value, other: &Value) -> String {
    let text = match (first.as_f64(), other.as_f64()) {
        (Some(a), Some(b)) if a != 0.0 && a != b => {
            let percent = (b / a - 1.0) * 100.0;
            let decimals = if percent.abs() < 9.95 { 1 } else { 0 };
            match percent {
                p if p > 9999.0 => "> x100".to_owned(),
                p if p.abs() < 0.05 => "~0 %".to_owned(),
                p => format!("{p:+.decimals$} %"),
            }
        }
        _ => String::new(),
    };
    format!("{text:>9}")
}

/// Thousands apart.
fn grouped(number: &str) -> String {
    let (sign, rest) = match number.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", number),
    };
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thousands_are_apart() {
        let cases =
            [("0", "0"), ("999", "999"), ("1000", "1,000"), ("-1234567.50", "-1,234,567.50")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn absent_figures_are_dashes_and_absent_lines_are_left_out() {
        let rows = [json!({"p": "none", "a": 1234.5, "b": null}), json!({"p": "hints", "b": null})];
        let figures = [Figure::plain("a", "A [us]", 1), Figure::plain("b", "B", 0)];
        let text = figures_table(&rows, "p", &figures);
        assert!(text.contains("A [us]") && text.contains("1,234.5") && text.contains('-'));
        assert!(!text.contains('B'), "{text}");
    }

    #[test]
    fn later_columns_say_how_they_differ() {
        let base = json!(200.0);
        let cases = [(json!(210.0), "+5.0 %"), (json!(100.0), "-50 %"), (json!(200.0), "")];
        for (other, text) in cases {
            assert_eq!(change(&base, &other).trim(), text);
        }
        assert_eq!(change(&json!(0.0), &json!(3.0)).trim(), "");
        assert_eq!(change(&base, &json!(200.02)).trim(), "~0 %");
        assert_eq!(change(&json!(1.0), &json!(1e6)).trim(), "> x100");
        assert_eq!(change(&base, &json!("word")).len(), change(&base, &json!(1.0)).len());
    }

    #[test]
    fn rare_counts_show_only_where_one_is_not_zero() {
        let rows = [json!({"p": "none", "a": 0}), json!({"p": "hints", "a": 3})];
        let figures = [Figure::rare("a", "bad")];
        assert!(figures_table(&rows, "p", &figures).contains("bad"));
        assert!(!figures_table(&rows[..1], "p", &figures).contains("bad"));
    }
}
