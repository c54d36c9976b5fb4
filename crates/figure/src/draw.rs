//! Drawing: the layout as SVG. Every coordinate has one decimal.

use std::fmt::Write;

use crate::layout::{LABEL, LINE, Layout, SAMPLE, TICK, TITLE, WIDTH};
use crate::text::escape;
use crate::{Chart, Kind, Series};

/// Colours of series on light and on dark ground. Source: Okabe and Ito's set that the
/// colour-blind can tell apart, darkened and lightened for contrast of at least 3:1.
const COLOURS: [(&str, &str); 7] = [
    ("#0067a8", "#56b4e9"),
    ("#c24e00", "#ff9f51"),
    ("#007a5a", "#35c79a"),
    ("#a2477d", "#e39bc5"),
    ("#6b5b00", "#d9c63c"),
    ("#4d4d4d", "#bdbdbd"),
    ("#5b3fa8", "#b39df2"),
];

/// Points beyond which a line has no markers.
const MARKERS_MAX: usize = 48;
/// Half the size of a marker.
const MARKER: f64 = 3.6;

pub(crate) fn svg(chart: &Chart) -> String {
    let layout = Layout::new(chart);
    let mut out = String::new();
    head(&mut out, chart, &layout);
    axes(&mut out, chart, &layout);
    for (i, series) in chart.series.iter().enumerate() {
        put(&mut out, &format!("<g class=\"s{}\">", class(i)));
        if chart.kind == Kind::Bars {
            bars(&mut out, chart, &layout, i);
        } else {
            line(&mut out, &layout, series, i);
        }
        put(&mut out, "</g>");
    }
    if chart.kind == Kind::Bars {
        published_on_bars(&mut out, chart, &layout);
    }
    if layout.nothing_to_show(chart) {
        let (x, y) = (layout.x_at(0.5), layout.y_at(0.5));
        text(&mut out, (x, y), LABEL, "middle", "no data");
    }
    legend(&mut out, chart, &layout);
    put(&mut out, "</svg>");
    out
}

fn put(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn class(series: usize) -> usize {
    series % COLOURS.len()
}

fn head(out: &mut String, chart: &Chart, layout: &Layout) {
    let height = layout.height;
    let (title, description) = (escape(&chart.title), escape(&chart.description));
    put(
        out,
        &format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"t d\" \
             viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
             font-family=\"system-ui, Helvetica, Arial, sans-serif\">"
        ),
    );
    put(out, &format!("<title id=\"t\">{title}</title>"));
    put(out, &format!("<desc id=\"d\">{description}</desc>"));
    put(out, "<style>");
    scheme(out, "", ["#ffffff", "#1f2328", "#d8dee4"], |c| c.0);
    put(out, "@media (prefers-color-scheme: dark) {");
    scheme(out, " ", ["#0d1117", "#e6edf3", "#30363d"], |c| c.1);
    put(out, "}");
    put(out, "</style>");
    put(out, &format!("<rect class=\"ground\" width=\"{WIDTH:.0}\" height=\"{height:.0}\"/>"));
    for (i, line) in layout.title.iter().enumerate() {
        let y = 16.0 + TITLE * 0.8 + i as f64 * (TITLE + 4.0);
        text(out, (WIDTH / 2.0, y), TITLE, "middle", line);
    }
}

/// Ground, ink and grid, and the colours of series.
fn scheme(
    out: &mut String,
    indent: &str,
    [ground, ink, grid]: [&str; 3],
    pick: fn(&(&'static str, &'static str)) -> &'static str,
) {
    put(out, &format!("{indent}.ground {{ fill: {ground} }} text {{ fill: {ink} }}"));
    put(out, &format!("{indent}.axis {{ stroke: {ink} }} .grid {{ stroke: {grid} }}"));
    put(out, &format!("{indent}.hollow {{ fill: {ground} }} .any {{ stroke: {ink} }}"));
    for (i, colour) in COLOURS.iter().enumerate() {
        let c = pick(colour);
        put(out, &format!("{indent}.s{i} {{ stroke: {c} }} .s{i} .full {{ fill: {c} }}"));
    }
}

fn text(out: &mut String, (x, y): (f64, f64), size: f64, anchor: &str, what: &str) {
    let what = escape(what);
    put(
        out,
        &format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.0}\" text-anchor=\"{anchor}\">{what}</text>"
        ),
    );
}

fn stroke(out: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    put(
        out,
        &format!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ),
    );
}

fn axes(out: &mut String, chart: &Chart, layout: &Layout) {
    let Layout { left, right, top, bottom, .. } = *layout;
    for (at, label) in &layout.y.ticks {
        let y = layout.y_at(*at);
        stroke(out, "grid", (left, y), (right, y));
        text(out, (left - 8.0, y + TICK * 0.35), TICK, "end", label);
    }
    for ((at, _), lines) in layout.x.ticks.iter().zip(&layout.x_labels) {
        let x = layout.x_at(*at);
        if chart.kind == Kind::Lines {
            stroke(out, "grid", (x, top), (x, bottom));
        }
        for (i, line) in lines.iter().enumerate() {
            let y = bottom + 6.0 + TICK + i as f64 * (TICK + 3.0);
            text(out, (x, y), TICK, "middle", line);
        }
    }
    stroke(out, "axis", (left, bottom), (right, bottom));
    stroke(out, "axis", (left, top), (left, bottom));
    text(out, ((left + right) / 2.0, layout.x_label_y), LABEL, "middle", &chart.x.label);
    let (x, y) = (16.0 + LABEL * 0.6, (top + bottom) / 2.0);
    let label = escape(&chart.y.label);
    put(
        out,
        &format!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" font-size=\"{LABEL:.0}\" \
             text-anchor=\"middle\">{label}</text>"
        ),
    );
}

/// The line of a series, its markers, and what was published.
fn line(out: &mut String, layout: &Layout, series: &Series, i: usize) {
    let places: Vec<_> = series.points.iter().map(|&(x, y)| layout.at(x, y)).collect();
    for run in places.split(Option::is_none) {
        if run.len() < 2 {
            continue;
        }
        let mut path = String::new();
        for (x, y) in run.iter().flatten() {
            let _ = write!(path, " {x:.1},{y:.1}");
        }
        let path = path.trim_start();
        put(
            out,
            &format!("<polyline points=\"{path}\" fill=\"none\" stroke-width=\"2\"{}/>", dash(i)),
        );
    }
    if places.len() <= MARKERS_MAX {
        places.into_iter().flatten().for_each(|at| marker(out, at, i, "full"));
    }
    for &(x, y) in &series.published {
        layout.at(x, y).into_iter().for_each(|at| marker(out, at, i, "hollow"));
    }
}

/// Series that share a colour differ in their dashes.
fn dash(series: usize) -> &'static str {
    ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\""][series / COLOURS.len() % 3]
}

/// A marker; hollow ones are larger, so that one under them shows.
fn marker(out: &mut String, (x, y): (f64, f64), series: usize, class: &str) {
    let r = if class == "hollow" { MARKER + 1.6 } else { MARKER };
    let wide = "stroke-width=\"1.6\"";
    // A full marker on a hollow one stays to be seen.
    let see = if class == "hollow" { " fill-opacity=\"0.55\"" } else { "" };
    let shape = match series % 4 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\""),
        1 => {
            let (left, top, side) = (x - r * 0.9, y - r * 0.9, r * 1.8);
            format!("<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side:.1}\" height=\"{side:.1}\"")
        }
        2 => {
            let (left, right, low, high) = (x - r * 1.1, x + r * 1.1, y + r * 0.9, y - r * 1.2);
            let points = format!("{left:.1},{low:.1} {right:.1},{low:.1} {x:.1},{high:.1}");
            format!("<polygon points=\"{points}\"")
        }
        _ => {
            let (left, right, low, high) = (x - r * 1.3, x + r * 1.3, y + r * 1.3, y - r * 1.3);
            let points =
                format!("{left:.1},{y:.1} {x:.1},{low:.1} {right:.1},{y:.1} {x:.1},{high:.1}");
            format!("<polygon points=\"{points}\"")
        }
    };
    put(out, &format!("{shape} class=\"{class}\" {wide}{see}/>"));
}

/// Bars of a series.
fn bars(out: &mut String, chart: &Chart, layout: &Layout, i: usize) {
    let series = &chart.series[i];
    let n = chart.series.len();
    let floor = layout.y_at(layout.y.floor());
    for &(x, y) in &series.points {
        let (Some(place), Some((_, end))) = (layout.x.place(x), layout.at(x, y)) else { continue };
        let (left, wide) = layout.bar(place, i, n);
        let (top, height) = (end.min(floor), (end - floor).abs());
        put(
            out,
            &format!(
                "<rect class=\"full\" stroke=\"none\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" \
                 height=\"{height:.1}\"/>",
                left + 1.0,
                (wide - 2.0).max(0.5)
            ),
        );
    }
}

/// What was published, on top of all bars and in ink: it has to show within its own bar.
fn published_on_bars(out: &mut String, chart: &Chart, layout: &Layout) {
    let n = chart.series.len();
    put(out, "<g class=\"any\">");
    for (i, series) in chart.series.iter().enumerate() {
        for &(x, y) in &series.published {
            let (Some(place), Some((_, end))) = (layout.x.place(x), layout.at(x, y)) else {
                continue;
            };
            let (left, wide) = layout.bar(place, i, n);
            marker(out, (left + wide / 2.0, end), 0, "hollow");
        }
    }
    put(out, "</g>");
}

fn legend(out: &mut String, chart: &Chart, layout: &Layout) {
    for entry in &layout.legend {
        let (x, y) = (entry.x, entry.y);
        let middle = (x + (SAMPLE - 8.0) / 2.0, y);
        match entry.series {
            Some(i) => {
                put(out, &format!("<g class=\"s{}\">", class(i)));
                if chart.kind == Kind::Bars {
                    let (left, top, side) = (middle.0 - 7.0, y - 6.0, LINE - 6.0);
                    put(
                        out,
                        &format!(
                            "<rect class=\"full\" stroke=\"none\" x=\"{left:.1}\" y=\"{top:.1}\" \
                             width=\"14\" height=\"{side:.0}\"/>"
                        ),
                    );
                } else {
                    let end = x + SAMPLE - 8.0;
                    put(
                        out,
                        &format!(
                            "<path d=\"M{x:.1} {y:.1}H{end:.1}\" fill=\"none\" stroke-width=\"2\"{}/>",
                            dash(i)
                        ),
                    );
                    marker(out, middle, i, "full");
                }
                put(out, "</g>");
            }
            None => {
                put(out, "<g class=\"any\">");
                marker(out, middle, 0, "hollow");
                put(out, "</g>");
            }
        }
        text(out, (x + SAMPLE, y + TICK * 0.35), TICK, "start", &entry.text);
    }
}
