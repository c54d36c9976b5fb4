//! What was published: the table of the artifact's README and Figure 12 of the paper.
//!
//! Source: Jun et al., "We Ain't Afraid of No File Fragmentation", FAST'24, and the README of
//! its artifact. The README says MB/s and divides MiB, so its figures are MiB/s.

/// Published figures of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Workload.
    pub workload: &'static str,
    /// Contiguous files \[MiB/s\].
    pub contiguous_mib_s: f64,
    /// README, without and with hints \[MiB/s\].
    pub readme_mib_s: [f64; 2],
    /// Figure 12, without and with hints, as a part of the contiguous case. The last workload
    /// has no figures there; the text says that hints gain 8.2 %.
    pub fig12: [Option<f64>; 2],
}

/// All of them.
pub const PUBLISHED: [Published; 7] = [
    row("append-worst", 2174.53, [397.26, 2126.48], [Some(0.19), Some(0.965)]),
    row("append-random", 2174.53, [1470.01, 2063.64], [Some(0.594), Some(0.942)]),
    row("overwrite-worst", 2174.53, [398.789, 2057.91], [Some(0.182), Some(0.977)]),
    row("overwrite-random", 2174.53, [1487.34, 2069.28], [Some(0.62), Some(0.984)]),
    row("sqlite", 870.044, [531.073, 849.64], [Some(0.6), Some(0.965)]),
    row("fileserver", 2739.8, [2149.4, 2611.8], [Some(0.8), Some(0.93)]),
    row("fileserver-small", 2776.3, [1721.0, 2099.3], [None, None]),
];

const fn row(
    workload: &'static str,
    contiguous_mib_s: f64,
    readme_mib_s: [f64; 2],
    fig12: [Option<f64>; 2],
) -> Published {
    Published { workload, contiguous_mib_s, readme_mib_s, fig12 }
}

/// The figures of a workload.
pub(crate) fn of(workload: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|p| p.workload == workload)
}
