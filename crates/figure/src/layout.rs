//! Layout: what is where, in units of the drawing.

use crate::scale::Ruler;
use crate::text::{width, wrap};
use crate::{Chart, Kind, Scale};

/// Width of a drawing.
pub(crate) const WIDTH: f64 = 760.0;
/// Font sizes.
pub(crate) const TITLE: f64 = 16.0;
pub(crate) const LABEL: f64 = 13.0;
pub(crate) const TICK: f64 = 12.0;
/// Height of a line of the legend, and of tick names.
pub(crate) const LINE: f64 = 18.0;
/// Width of a legend entry's sample, with the gap after it.
pub(crate) const SAMPLE: f64 = 34.0;

const PLOT_HEIGHT: f64 = 320.0;
const MARGIN: f64 = 16.0;

/// One entry of the legend.
pub(crate) struct Entry {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) text: String,
    /// Series; none for the entry that explains hollow markers.
    pub(crate) series: Option<usize>,
}

/// Where everything is.
pub(crate) struct Layout {
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
    /// The plot's edges.
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// Lines of the title.
    pub(crate) title: Vec<String>,
    pub(crate) legend: Vec<Entry>,
    /// Lines of each tick of the x axis; none where there is no room for a label.
    pub(crate) x_labels: Vec<Vec<String>>,
    /// Base lines of the x axis label and of the whole \[from the top\].
    pub(crate) x_label_y: f64,
    pub(crate) height: f64,
}

impl Layout {
    pub(crate) fn new(chart: &Chart) -> Self {
        let points = || chart.series.iter().flat_map(|s| s.points.iter().chain(&s.published));
        let x = Ruler::new(&chart.x, points().map(|p| p.0)).within(points().map(|p| p.0));
        let y = Ruler::new(&chart.y, points().map(|p| p.1));
        let title = wrap(&chart.title, TITLE, WIDTH - 2.0 * MARGIN);
        let widest = y.ticks.iter().map(|(_, label)| width(label, TICK)).fold(0.0, f64::max);
        let left = MARGIN + LABEL + 10.0 + widest.min(WIDTH / 4.0) + 8.0;
        let right = WIDTH - MARGIN - 8.0;
        let legend_top = MARGIN + title.len() as f64 * (TITLE + 4.0) + 4.0;
        let (legend, legend_lines) = legend(chart, left, right, legend_top);
        let top = legend_top + legend_lines as f64 * LINE + 12.0;
        let bottom = top + PLOT_HEIGHT;
        let x_labels = x_labels(chart, &x, right - left);
        let n_lines = x_labels.iter().map(Vec::len).max().unwrap_or(0);
        let x_label_y = bottom + 10.0 + n_lines as f64 * (TICK + 3.0) + LABEL + 4.0;
        let height = x_label_y + MARGIN;
        Self { x, y, left, right, top, bottom, title, legend, x_labels, x_label_y, height }
    }

    /// No point has a place.
    pub(crate) fn nothing_to_show(&self, chart: &Chart) -> bool {
        let mut all = chart.series.iter().flat_map(|s| s.points.iter().chain(&s.published));
        all.all(|&(x, y)| self.at(x, y).is_none())
    }

    /// Where a point is drawn.
    pub(crate) fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x_at(self.x.place(x)?), self.y_at(self.y.place(y)?)))
    }

    pub(crate) fn x_at(&self, part: f64) -> f64 {
        self.left + part * (self.right - self.left)
    }

    pub(crate) fn y_at(&self, part: f64) -> f64 {
        self.bottom - part * (self.bottom - self.top)
    }

    /// Left edge and width of the bar of series `i` of `n` at a place \[drawing units\].
    pub(crate) fn bar(&self, place: f64, i: usize, n: usize) -> (f64, f64) {
        let group = (self.right - self.left) * self.x.step() * 0.76;
        let each = (group / n.max(1) as f64).min(44.0);
        let from = self.x_at(place) - each * n as f64 / 2.0;
        (from + each * i as f64, each)
    }
}

/// Entries in lines between two edges, and how many lines.
fn legend(chart: &Chart, left: f64, right: f64, top: f64) -> (Vec<Entry>, usize) {
    let names = chart.series.iter().enumerate().map(|(i, s)| (s.name.clone(), Some(i)));
    let hollow = chart.series.iter().any(|s| !s.published.is_empty());
    let hollow = hollow.then(|| ("published".to_owned(), None));
    let (mut x, mut n_lines, mut entries) = (left, 1, vec![]);
    for (text, series) in names.chain(hollow) {
        let room = SAMPLE + width(&text, TICK) + 18.0;
        if x > left && x + room > right {
            (x, n_lines) = (left, n_lines + 1);
        }
        let y = top + LINE * (n_lines as f64 - 0.5);
        entries.push(Entry { x, y, text, series });
        x += room;
    }
    if entries.is_empty() {
        n_lines = 0;
    }
    (entries, n_lines)
}

/// Names are broken into lines; numbers that would touch the one before are left out.
fn x_labels(chart: &Chart, x: &Ruler, wide: f64) -> Vec<Vec<String>> {
    if matches!(chart.x.scale, Scale::Names(_)) || chart.kind == Kind::Bars {
        let room = wide * x.step() - 14.0;
        return x.ticks.iter().map(|(_, label)| wrap(label, TICK, room)).collect();
    }
    let mut free_from = f64::NEG_INFINITY;
    let one = |(at, label): &(f64, String)| {
        let half = width(label, TICK) / 2.0;
        if at * wide - half < free_from {
            return vec![];
        }
        free_from = at * wide + half + 8.0;
        vec![label.clone()]
    };
    x.ticks.iter().map(one).collect()
}
