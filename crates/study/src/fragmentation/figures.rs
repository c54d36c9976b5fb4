//! The figures of the study, as SVG documents.

use flashwise_figure::{Axis, Chart, Kind, Scale, Series};

use crate::table::distinct;
use crate::{Point, Study};

/// Suffix of workloads on an aged drive.
pub(super) const AGED: &str = "-aged";

/// How a sweep is drawn.
struct Spec {
    sweep: &'static str,
    title: &'static str,
    x: &'static str,
    is_log: bool,
    y: &'static str,
    key: &'static str,
    published: &'static str,
}

const SPECS: [Spec; 6] = [
    Spec {
        sweep: "dof",
        title: "Read time of an 8 MiB file against its pieces",
        x: "pieces",
        is_log: true,
        y: "read time, by that of one piece",
        key: "relative",
        published: "paper_relative",
    },
    Spec {
        sweep: "dof-ram",
        title: "Read time on a RAM disk against pieces",
        x: "pieces",
        is_log: true,
        y: "read time, by that of one piece",
        key: "relative",
        published: "paper_relative",
    },
    Spec {
        sweep: "request-size",
        title: "Reading 8 MiB in requests of one size",
        x: "request size [KiB]",
        is_log: true,
        y: "read time [ms]",
        key: "read_ms",
        published: "",
    },
    Spec {
        sweep: "stride",
        title: "4 KiB reads at multiples of a stride",
        x: "stride [KiB]",
        is_log: false,
        y: "read throughput [MB/s]",
        key: "read_mb_s",
        published: "paper_mb_s",
    },
    Spec {
        sweep: "small-appends",
        title: "Appends of half a program unit",
        x: "buffer that chain may use [KiB]",
        is_log: false,
        y: "read throughput, by that of contiguous files",
        key: "normalized",
        published: "",
    },
    Spec {
        sweep: "small-appends-rows",
        title: "Appends of half a program unit, planes sensed together",
        x: "buffer that chain may use [KiB]",
        is_log: false,
        y: "read throughput, by that of contiguous files",
        key: "normalized",
        published: "",
    },
];

/// Figures of `study`: name of the file, and its text. A sweep has one for all drives, but
/// the stride, whose curves would hide one another, has one for each.
pub(super) fn figures(study: &Study) -> Vec<(String, String)> {
    let mut all = vec![];
    for is_aged in [false, true] {
        let rows = study.rows().filter(|r| r.workload.ends_with(AGED) == is_aged);
        for device in distinct(rows.map(|r| r.device.as_str())) {
            let chart = workloads(study, device, is_aged);
            all.push((of_workloads(device, is_aged), chart.svg()));
        }
    }
    for spec in &SPECS {
        let points: Vec<_> = study.points(spec.sweep).collect();
        if spec.sweep == "stride" {
            for device in distinct(points.iter().map(|p| p.device.as_str())) {
                let of_device = points.iter().copied().filter(|p| p.device == device).collect();
                let name = format!("{}-{device}.svg", spec.sweep);
                all.push((name, chart(spec, &of_device, &format!(", {device}")).svg()));
            }
        } else {
            all.push((format!("{}.svg", spec.sweep), chart(spec, &points, "").svg()));
        }
    }
    for sweep in ["dummy-write", "counter-example"] {
        all.push((format!("{sweep}.svg"), bars(study, sweep).svg()));
    }
    all
}

/// Name of the figure of the workloads on a device.
pub(super) fn of_workloads(device: &str, is_aged: bool) -> String {
    let preset = device.split(',').next().unwrap_or(device);
    format!("workloads-{preset}{}.svg", if is_aged { AGED } else { "" })
}

fn chart(spec: &Spec, points: &Vec<&Point>, of: &str) -> Chart {
    let mut series: Vec<Series> = vec![];
    let has_one_device = distinct(points.iter().map(|p| p.device.as_str())).len() == 1;
    for p in points {
        let name = match has_one_device {
            true => p.series.clone(),
            false => format!("{}, {}", p.device, p.series),
        };
        let at = series.iter().position(|s| s.name == name).unwrap_or_else(|| {
            series.push(Series { name, ..Series::default() });
            series.len() - 1
        });
        series[at].points.extend(p.get(spec.key).map(|y| (p.x, y)));
        series[at].published.extend(p.get(spec.published).map(|y| (p.x, y)));
    }
    for s in &mut series {
        s.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let scale = if spec.is_log { Scale::Log2 } else { Scale::Linear };
    Chart {
        title: format!("{}{of}", spec.title),
        description: format!("{} against {}; hollow markers are published.", spec.y, spec.x),
        kind: Kind::Lines,
        x: Axis { label: spec.x.to_owned(), scale },
        y: Axis { label: spec.y.to_owned(), scale: Scale::Linear },
        series,
    }
}

/// Read throughput of every workload on one fresh or aged drive, by that of contiguous files.
fn workloads(study: &Study, device: &str, is_aged: bool) -> Chart {
    let rows = study.rows().filter(|r| r.device == device);
    let rows = rows.filter(|r| !r.workload.ends_with("contiguous"));
    let rows: Vec<_> = rows.filter(|r| r.workload.ends_with(AGED) == is_aged).collect();
    let names = distinct(rows.iter().map(|r| r.workload.as_str()));
    let place = |name: &str| names.iter().position(|n| *n == name).unwrap_or(0) as f64;
    let series = distinct(rows.iter().map(|r| r.policy.as_str())).into_iter().map(|policy| {
        let of = rows.iter().filter(|r| r.policy == policy);
        let published = |r: &&&crate::WorkloadRow| Some((place(&r.workload), r.paper_normalized?));
        Series {
            name: policy.to_owned(),
            points: of.clone().map(|r| (place(&r.workload), r.normalized)).collect(),
            published: of.filter_map(|r| published(&r)).collect(),
        }
    });
    let title = match is_aged {
        true => format!("The same on an aged drive, {device}"),
        false => format!("Reading fragmented and overwritten files, {device}"),
    };
    named(
        &title,
        "workload",
        names.iter().map(|n| n.trim_end_matches(AGED).to_owned()).collect(),
        series.collect(),
    )
}

fn bars(study: &Study, sweep: &str) -> Chart {
    let points: Vec<_> = study.points(sweep).collect();
    let names = distinct(points.iter().map(|p| p.series.as_str()));
    let place = |p: &Point| names.iter().position(|n| *n == p.series).unwrap_or(0) as f64;
    let series = distinct(points.iter().map(|p| p.device.as_str())).into_iter().map(|device| {
        let of = points.iter().filter(|p| p.device == device);
        let of_key = |key: &str| -> Vec<(f64, f64)> {
            of.clone().filter_map(|p| Some((place(p), p.get(key)?))).collect()
        };
        Series {
            name: device.to_owned(),
            points: of_key("normalized"),
            published: of_key("paper_normalized"),
        }
    });
    let title = match sweep {
        "dummy-write" => "Dummies of a stripe between pieces",
        _ => "Pieces and dies",
    };
    named(title, "file", names.iter().map(|&n| n.to_owned()).collect(), series.collect())
}

fn named(title: &str, x: &str, names: Vec<String>, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_owned(),
        description:
            "Read throughput by that of the contiguous file; hollow markers are published."
                .to_owned(),
        kind: Kind::Bars,
        x: Axis { label: x.to_owned(), scale: Scale::Names(names) },
        y: Axis { label: "of contiguous".to_owned(), scale: Scale::Linear },
        series,
    }
}
