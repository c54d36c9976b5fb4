//! Line and bar charts as SVG, for pages that lie in a repository.
//!
//! Own code rather than a plotting library, because of what the pages need: the same bytes
//! for the same chart (coordinates have one fixed decimal, no font is measured), colours
//! that change with the reader's light or dark scheme (classes and one media query), a
//! title that a screen reader finds, and published figures as hollow markers in the colour
//! of what they are compared with. Nothing is depended on.
//!
//! A value that cannot be shown (not finite, or not positive on a logarithmic axis) is left
//! out and parts the line; nothing panics.

mod draw;
mod layout;
mod scale;
mod text;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Heading, also the accessible title.
    pub title: String,
    /// What a reader who cannot see it should know, one sentence.
    pub description: String,
    /// How the series are drawn.
    pub kind: Kind,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is shown, in the order of the legend.
    pub series: Vec<Series>,
}

/// How series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Markers joined by lines.
    Lines,
    /// Bars side by side for each place on the x axis.
    Bars,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with its unit, for example `read time [ms]`.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
}

/// How values become places.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Even steps; the range begins at 0 unless values are below.
    Linear,
    /// Each power of two is one step.
    Log2,
    /// Value `i` is the place of name `i`.
    Names(Vec<String>),
}

/// One line, or one colour of bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Our values: x and y, in ascending x.
    pub points: Vec<(f64, f64)>,
    /// Published values: x and y; hollow markers.
    pub published: Vec<(f64, f64)>,
}

impl Chart {
    /// The chart as a complete SVG document with a final newline.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }
}
