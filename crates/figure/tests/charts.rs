//! Charts as documents: what must be in them, and that nothing breaks them.

use flashwise_figure::{Axis, Chart, Kind, Scale, Series};
use proptest::prelude::*;

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn series(name: &str, points: &[(f64, f64)], published: &[(f64, f64)]) -> Series {
    Series { name: name.to_owned(), points: points.to_vec(), published: published.to_vec() }
}

fn chart(kind: Kind, x: Scale, y: Scale, series: Vec<Series>) -> Chart {
    let (x, y) = (axis("pieces", x), axis("time [ms]", y));
    Chart { title: "Read time".into(), description: "It rises.".into(), kind, x, y, series }
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn a_line_has_its_markers_and_published_points_are_hollow() {
    let one = series("depth 1", &[(1.0, 2.0), (2.0, 3.0), (4.0, 9.0)], &[(4.0, 8.0)]);
    let svg = chart(Kind::Lines, Scale::Log2, Scale::Linear, vec![one]).svg();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("<title id=\"t\">Read time</title>") && svg.contains("role=\"img\""));
    assert_eq!(count(&svg, "<polyline"), 1);
    // Three points and one in the legend; one published and one in the legend.
    assert_eq!((count(&svg, "class=\"full\""), count(&svg, "class=\"hollow\"")), (4, 2));
    assert!(svg.contains(">published</text>") && svg.contains(">time [ms]</text>"));
    assert!(svg.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_value_without_a_place_parts_the_line() {
    let points = [(1.0, 1.0), (2.0, 2.0), (4.0, f64::NAN), (8.0, 3.0), (16.0, 0.0), (32.0, 4.0)];
    let one = vec![series("a", &points, &[])];
    let linear = chart(Kind::Lines, Scale::Log2, Scale::Linear, one.clone()).svg();
    assert_eq!(count(&linear, "<polyline"), 2);
    // On a logarithmic axis 0 has no place either, and single points are no line.
    let log = chart(Kind::Lines, Scale::Log2, Scale::Log2, one).svg();
    assert_eq!((count(&log, "<polyline"), count(&log, "class=\"full\"")), (1, 5));
    assert!(!linear.contains("NaN") && !log.contains("inf"));
}

#[test]
fn bars_of_a_group_stand_side_by_side_from_zero() {
    let names = Scale::Names(vec!["append".into(), "overwrite".into()]);
    let all = vec![
        series("none", &[(0.0, 0.5), (1.0, 0.25)], &[(0.0, 0.6)]),
        series("hints", &[(0.0, 1.0), (1.0, 1.0)], &[]),
    ];
    let svg = chart(Kind::Bars, names, Scale::Linear, all).svg();
    let bars: Vec<(f64, f64, f64)> = svg
        .lines()
        .filter(|l| l.starts_with("<rect class=\"full\"") && !l.contains("width=\"14\""))
        .map(|l| {
            let of = |key: &str| l.split(key).nth(1).and_then(|v| v.split('"').next()).unwrap();
            let number = |key| of(key).parse::<f64>().unwrap();
            (number(" x=\""), number(" width=\""), number(" height=\""))
        })
        .collect();
    assert_eq!(bars.len(), 4);
    let [a, b, c, _] = bars[..] else { unreachable!() };
    assert!((a.2 - 2.0 * b.2).abs() < 0.2 && (c.2 - 2.0 * a.2).abs() < 0.2, "{bars:?}");
    assert!(a.0 + a.1 <= c.0 && c.0 < b.0, "{bars:?}");
    assert_eq!(count(&svg, "class=\"hollow\""), 2);
}

#[test]
fn text_is_escaped_and_an_empty_chart_says_so() {
    let mut empty = chart(Kind::Lines, Scale::Linear, Scale::Linear, vec![series("<&>", &[], &[])]);
    empty.title = "a < b & \"c\"".into();
    let svg = empty.svg();
    assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.contains("&lt;&amp;&gt;"));
    assert!(svg.contains(">no data<"));
}

fn scale() -> impl Strategy<Value = Scale> {
    let names = proptest::collection::vec("\\PC{0,20}", 0..5).prop_map(Scale::Names);
    prop_oneof![Just(Scale::Linear), Just(Scale::Log2), names]
}

fn points() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let value = || prop_oneof![any::<f64>(), -10.0..1e4f64, Just(0.0), Just(f64::INFINITY)];
    proptest::collection::vec((value(), value()), 0..8)
}

proptest! {
    /// Any values and texts: the same bytes twice, tags that close, every coordinate a
    /// number within the drawing.
    #[test]
    fn any_chart_is_a_drawing(
        is_bars: bool,
        x in scale(),
        y in scale(),
        name in any::<String>(),
        all in proptest::collection::vec((points(), points()), 0..9),
    ) {
        let kind = if is_bars { Kind::Bars } else { Kind::Lines };
        let all = all.iter().map(|(ours, theirs)| series(&name, ours, theirs)).collect();
        let chart = chart(kind, x, y, all);
        let svg = chart.svg();
        prop_assert_eq!(&svg, &chart.svg());
        prop_assert_eq!(count(&svg, "<g "), count(&svg, "</g>"));
        prop_assert_eq!(count(&svg, "<text "), count(&svg, "</text>"));
        for key in [" x=\"", " y=\"", " cx=\"", " cy=\"", " x1=\"", " y2=\"", " height=\""] {
            for value in svg.split(key).skip(1).filter_map(|v| v.split('"').next()) {
                let value: f64 = value.parse().expect(value);
                prop_assert!((-1.0..1e5).contains(&value), "{key}{value}");
            }
        }
    }
}
