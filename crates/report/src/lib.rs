//! Results as text: JSON for programs, tables for people.
//!
//! Nothing here computes. A table is laid out from the same JSON object that
//! `--json` prints, so the two cannot disagree.

mod table;

pub use table::{Figure, figures_table, list_table};

/// One JSON object as indented text with a final newline. Keys keep their order.
pub fn json_text(object: &serde_json::Value) -> String {
    let mut text = serde_json::to_string_pretty(object).expect("a JSON value is serialisable");
    text.push('\n');
    text
}
