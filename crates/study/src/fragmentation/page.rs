//! The page of the study, docs/studies/fragmentation.md: its text is written by hand, and
//! what stands between `<!-- table: NAME -->` and `<!-- end -->` comes from the lines of the
//! study.
//!
//! NAME is `fresh` or `aged` (workloads, a table and a figure for each device), `extents`, a
//! sweep, `rest` (every sweep that has no place of its own), or `run` (how it was run, if
//! not as the text was). A table of which the study has no lines keeps what it had.

use super::Options;
use super::figures::{self, AGED};
use crate::Study;
use crate::table::{Table, distinct};

const PAGE: &str = include_str!("../../../../docs/studies/fragmentation.md");
const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end -->";
/// Name of the page, and of the directory of its figures beside it.
pub const NAME: &str = "fragmentation";
/// Points of a sweep that are listed; longer ones are in the JSON and the figures.
pub const POINTS_LISTED: usize = 100;

/// What came of a real file.
#[derive(Clone, Debug, Default)]
pub struct Real {
    /// Name of the file that has its extents.
    pub name: String,
    /// Its lines; none without one.
    pub lines: Study,
}

/// The files of the page: name and text.
pub fn files(study: &Study, real: &Real, options: &Options) -> Vec<(String, String)> {
    let mut files: Vec<_> = figures::figures(study)
        .into_iter()
        .map(|(name, svg)| (format!("{NAME}/{name}"), svg))
        .collect();
    files.push((format!("{NAME}.md"), page(PAGE, study, real, options)));
    files
}

fn page(template: &str, study: &Study, real: &Real, options: &Options) -> String {
    let mut text = String::new();
    let mut left = template;
    while let Some((before, after)) = left.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n").expect("a table has a name");
        let (old, after) = after.split_once(END).expect("a table ends");
        let new = match name {
            "fresh" => workloads(study, false),
            "aged" => workloads(study, true),
            "run" => run(options),
            "rest" => rest(template, study),
            "extents" => extents(real),
            sweep => {
                let points = study.points(sweep).chain(real.lines.points(sweep));
                Table::of_points(&points.collect::<Vec<_>>()).markdown()
            }
        };
        // With empty lines around it: else Markdown takes it for a part of the comment.
        let new = match new.as_str() {
            "" if name != "run" => old.to_owned(),
            "" => String::new(),
            new => format!("\n{new}\n"),
        };
        text += &format!("{before}{BEGIN}{name} -->\n{new}{END}");
        left = after;
    }
    text + left
}

fn workloads(study: &Study, is_aged: bool) -> String {
    let rows: Vec<_> = study.rows().filter(|r| r.workload.ends_with(AGED) == is_aged).collect();
    let devices = distinct(rows.iter().map(|r| r.device.as_str()));
    let one = |device: &&str| {
        let table = Table::of_rows(rows.iter().copied().filter(|r| r.device == *device));
        let figure = figures::of_workloads(device, is_aged);
        let table = table.without("device").markdown();
        format!("On `{device}`:\n\n![Read throughput by workload]({NAME}/{figure})\n\n{table}")
    };
    devices.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn extents(real: &Real) -> String {
    let table = Table::of_rows(real.lines.rows()).markdown();
    if table.is_empty() { table } else { format!("`{}`:\n\n{table}", real.name) }
}

/// A table for each sweep that the page names nowhere else, folded.
fn rest(template: &str, study: &Study) -> String {
    let mut text = String::new();
    for sweep in study.sweeps() {
        let points: Vec<_> = study.points(sweep).collect();
        let has_a_place = template.contains(&format!("{BEGIN}{sweep} -->"));
        if !has_a_place && points.len() <= POINTS_LISTED {
            let table = Table::of_points(&points).markdown();
            let name = format!("<summary><code>{sweep}</code></summary>");
            text += &format!("<details>{name}\n\n{table}\n</details>\n");
        }
    }
    text
}

fn run(options: &Options) -> String {
    match options {
        Options { quick: false, seed: 1 } => String::new(),
        Options { quick, seed } => {
            let quick = if *quick { " --quick" } else { "" };
            format!(
                "**The tables and figures here are of `--seed {seed}{quick}`; the text is of the \
                 command above.**\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, WorkloadRow};

    fn options() -> Options {
        Options { quick: false, seed: 1 }
    }

    fn row() -> Study {
        let row = WorkloadRow { workload: "extents".to_owned(), ..WorkloadRow::default() };
        Study { lines: vec![row.into()] }
    }

    #[test]
    fn tables_are_made_anew_and_text_stays() {
        let point = Point::new("dof", "d", "s", 1.0).with("read_ms", 2.5);
        let other = Point::new("overlap", "d", "s", 3.0).with("read_ms", 4.0);
        let study = Study { lines: vec![point.into(), other.into()] };
        let template = "A\n<!-- table: dof -->\nold\n<!-- end -->\nB\n<!-- table: extents -->\n\
            kept\n<!-- end -->\n<!-- table: rest --><!-- end -->\nC\n";
        let template = template.replace("rest --><", "rest -->\n<");
        let text = page(&template, &study, &Real::default(), &options());
        assert!(text.starts_with("A\n<!-- table: dof -->\n\n| device |"), "{text}");
        assert!(text.contains("| d | s | 1 | 2.500 |\n\n<!-- end -->\nB\n"), "{text}");
        assert!(text.contains("extents -->\nkept\n<!-- end -->"), "{text}");
        assert!(text.contains("<code>overlap</code>") && !text.contains("<code>dof</code>"));
        let real = Real { name: "db.extents".to_owned(), lines: row() };
        let with_real = page(&text, &study, &real, &options());
        assert!(with_real.contains("-->\n\n`db.extents`:\n\n| workload |"), "{with_real}");
        assert_eq!(page(&text, &study, &Real::default(), &options()), text);
    }

    #[test]
    fn a_run_that_is_not_that_of_the_text_says_so() {
        let template = "<!-- table: run -->\n<!-- end -->\n";
        let study = Study::default();
        assert_eq!(page(template, &study, &Real::default(), &options()), template);
        let text = page(template, &study, &Real::default(), &Options { quick: true, seed: 7 });
        assert!(text.contains("`--seed 7 --quick`"), "{text}");
    }
}
