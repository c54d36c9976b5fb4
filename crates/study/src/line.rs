//! What a study prints: figures of a workload under a policy, and points of a sweep.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// One line of results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// A workload under a policy.
    Workload(Box<WorkloadRow>),
    /// A point of a sweep.
    Point(Point),
}

/// A workload under a policy on a device. Published figures are null where there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkloadRow {
    /// Workload; with the suffix `-aged` on a drive in steady state, whose collection went
    /// on between the writes and the reads.
    pub workload: String,
    /// Relation policy.
    pub policy: String,
    /// Preset, with what was changed in it.
    pub device: String,
    /// Reading the files \[MiB/s\].
    pub read_mib_s: f64,
    /// That by the same files written without interference on the same device, fresh.
    pub normalized: f64,
    /// Published counterpart: the artifact's README.
    pub paper_normalized: Option<f64>,
    /// Published counterpart: Figure 12 of the paper.
    pub paper_fig12: Option<f64>,
    /// Published read throughput, MiB by second whatever its unit is called \[MiB/s\].
    pub paper_read_mib_s: Option<f64>,
    /// Writing, interference included \[MiB/s\].
    pub write_mib_s: f64,
    /// Senses that waited for their die, while reading.
    pub die_collisions: u64,
    /// Pages sensed for each 256 KiB read.
    pub senses_per_256_kib: f64,
    /// Bytes programmed by bytes written, from the first write to the reads.
    pub waf: f64,
    /// For an aged drive: read throughput by that of the same workload and policy on the
    /// fresh drive.
    pub of_fresh: Option<f64>,
    /// For an aged drive: part of the files' units that collection moved before they were
    /// read.
    pub moved_part: Option<f64>,
    /// Pieces a file lies in, on average.
    pub pieces_per_file: f64,
    /// Units whose hinted die was passed over.
    pub hints_yielded: u64,
}

/// A point of a sweep: a place on the x axis of one series and the values there.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Sweep, for example `dof`.
    pub sweep: &'static str,
    /// Device.
    pub device: String,
    /// Which line of the figure, for example `depth 1`.
    pub series: String,
    /// Place on the x axis, in the unit the sweep's description names.
    pub x: f64,
    /// Values, each under a key that ends in its unit.
    pub values: Vec<(&'static str, f64)>,
}

impl Point {
    /// A point without values.
    pub fn new(
        sweep: &'static str,
        device: impl Into<String>,
        series: impl Into<String>,
        x: f64,
    ) -> Self {
        Self { sweep, device: device.into(), series: series.into(), x, values: vec![] }
    }

    /// The point with one more value.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: f64) -> Self {
        self.values.push((key, value));
        self
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.values.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }
}

impl From<WorkloadRow> for Line {
    fn from(row: WorkloadRow) -> Self {
        Self::Workload(Box::new(row))
    }
}

impl From<Point> for Line {
    fn from(point: Point) -> Self {
        Self::Point(point)
    }
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(4 + self.values.len()))?;
        map.serialize_entry("sweep", self.sweep)?;
        map.serialize_entry("device", &self.device)?;
        map.serialize_entry("series", &self.series)?;
        map.serialize_entry("x", &self.x)?;
        for (key, value) in &self.values {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_one_flat_object() {
        let point = Point::new("dof", "fast24", "depth 1", 256.0).with("read_ms", 1.5);
        assert_eq!(point.get("read_ms"), Some(1.5));
        assert_eq!(
            serde_json::to_string(&Line::from(point)).unwrap(),
            r#"{"sweep":"dof","device":"fast24","series":"depth 1","x":256.0,"read_ms":1.5}"#
        );
    }
}
