//! Drives and file systems of the study.

use std::sync::{Arc, OnceLock};

use flashwise_hostfs::{FsConfig, HintAxes, HostCosts, JournalPlace};
use flashwise_lab::precondition;
use flashwise_ssd::{DeviceConfig, Lpn, Options as SsdOptions, RelationPolicy, Ssd};

use crate::StudyError;

/// A preset with changes, and its aged drive once somebody asked for it.
#[derive(Clone)]
pub(crate) struct Device {
    preset: &'static str,
    set: Vec<String>,
    aged: Arc<OnceLock<Ssd>>,
}

impl Device {
    pub(crate) fn new(preset: &'static str, set: &[&str]) -> Self {
        let set = set.iter().map(|&s| s.to_owned()).collect();
        Self { preset, set, aged: Arc::default() }
    }

    /// Preset and changes, as they are printed.
    pub(crate) fn name(&self) -> String {
        let set = self.set.iter().map(|s| format!(",{s}"));
        std::iter::once(self.preset.to_owned()).chain(set).collect()
    }

    /// The drive that published figures are of.
    pub(crate) fn is_papers(&self) -> bool {
        self.preset == super::PRESET && self.set.is_empty()
    }

    /// A blank drive.
    pub(crate) fn fresh(&self, relation: RelationPolicy) -> Result<Ssd, StudyError> {
        let config = DeviceConfig::open(self.preset, &self.set)?;
        Ok(Ssd::new(config, SsdOptions { relation, ..SsdOptions::default() })?)
    }

    /// A full drive in steady state under random overwrites.
    pub(crate) fn aged(&self, relation: RelationPolicy) -> Result<Ssd, StudyError> {
        if let Some(ssd) = self.aged.get() {
            return Ok(ssd.clone().with_relation(relation));
        }
        let blank = self.fresh(RelationPolicy::None)?;
        let aged = self.aged.get_or_init(|| {
            let mut ssd = blank;
            precondition(&mut ssd, AGE_SEED, |_| ());
            fill_open_units(&mut ssd);
            ssd
        });
        Ok(aged.clone().with_relation(relation))
    }
}

/// Overwrites units of 4 KiB until no program unit is part filled. Else every later piece
/// of 32 KiB would straddle two program units, which is not what is studied here.
fn fill_open_units(ssd: &mut Ssd) {
    let mut unit = 0;
    while ssd.ftl().n_part_filled() > 0 {
        ssd.fill_unit(Lpn(unit));
        unit += 1;
    }
}

/// One aged drive for all: what differs between rows is the workload and the policy.
const AGE_SEED: u64 = 1;

/// The file system of the artifact's scripts: ext4 without delayed allocation and
/// preallocation, its journal on another device, no write-back of its own accord. CPU
/// times are left out: the readers' gaps stand for the host.
pub(crate) fn artifact_fs(size_bytes: u64) -> FsConfig {
    FsConfig {
        journal: JournalPlace::External,
        journal_bytes: Some(8 << 30),
        delalloc: false,
        prealloc: false,
        stream_blocks: 4_200_000_000,
        writeback_ms: 0,
        expire_ms: 600_000,
        size_bytes: Some(size_bytes),
        mkfs_discard: false,
        costs: HostCosts::NONE,
        hints: HintAxes { relation: true, class: false, handle: false },
        ..FsConfig::default()
    }
}
