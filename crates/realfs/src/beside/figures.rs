//! What is compared: sums of one run, and two runs side by side.

use flashwise_hostfs::{Application, Host, IoClass};
use serde::Serialize;

use super::{Case, Times};
use crate::observed::{Class, Observed, PerClass, Structure};

/// Largest difference of the bytes of a class \[%\]. Our target.
const BYTES_PERCENT: f64 = 15.0;
/// Largest difference of extents per file \[%\]. Our target.
const EXTENTS_PERCENT: f64 = 10.0;
/// Share of all bytes below which a class is not held to the target \[%\]: a few blocks
/// more or less of it change nothing for a drive.
const SHARE_PERCENT: f64 = 5.0;

/// Difference that is never a miss \[bytes\]: four blocks. ext4 writes the superblock, or the
/// root directory, once more or less.
const SLACK_BYTES: u64 = 4 * 4096;

/// Sums of one run, the final sync included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Written \[bytes\].
    pub bytes: PerClass<u64>,
    /// Requests that write.
    pub requests: PerClass<u64>,
    /// Read \[bytes\].
    pub read_bytes: PerClass<u64>,
    /// Flushes that were asked for: those before a commit block, and empty ones.
    pub flushes: u64,
    /// Writes that are durable when they complete.
    pub fua: u64,
    /// Discarded \[bytes\].
    pub discard_bytes: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Blocks logged, descriptors and commit blocks included.
    pub log_blocks: u64,
    /// Rounds of the journal's ring.
    pub wraps: f64,
    /// Writes of the journal's superblock.
    pub journal_superblocks: u64,
    /// Blocks that had to go home for log space.
    pub checkpoint_blocks: u64,
    /// Files at the end.
    pub files: u64,
    /// Runs of adjacent blocks they lie in.
    pub extents: u64,
    /// Where the time of threads went, the final sync excluded.
    pub times: Times,
}

impl Figures {
    /// Those of a real run.
    pub fn observed(seen: &Observed, times: Times) -> Self {
        let mut figures = Self {
            flushes: seen.preflush_bios,
            fua: seen.fua_bios,
            discard_bytes: seen.discards.bytes,
            commits: seen.journal.commits,
            log_blocks: seen.structures.get(&Structure::JournalRing).copied().unwrap_or(0) / 4096,
            wraps: seen.journal_wraps(),
            journal_superblocks: seen.journal.superblock_writes,
            checkpoint_blocks: seen.journal.checkpoint_written,
            files: seen.layout.files,
            extents: seen.layout.extents,
            times,
            ..Self::default()
        };
        for class in Class::ALL {
            figures.bytes[class] = seen.writes[class].bytes;
            figures.requests[class] = seen.writes[class].requests;
            figures.read_bytes[class] = seen.reads[class].bytes;
        }
        figures
    }

    /// Those of the model, when it has ended.
    pub fn modelled<A: Application>(host: &Host<A>, times: Times) -> Self {
        let counts = host.counts();
        let (files, extents) = host.fragmentation();
        let ring = host.journal_blocks().unwrap_or(0).saturating_sub(1);
        let mut figures = Self {
            flushes: counts.flushes,
            fua: counts.fua,
            discard_bytes: counts.discard_bytes,
            commits: counts.commits,
            log_blocks: counts.log_blocks,
            wraps: if ring == 0 { 0.0 } else { counts.log_blocks as f64 / ring as f64 },
            journal_superblocks: counts.journal_superblocks,
            checkpoint_blocks: counts.checkpoint_blocks,
            files,
            extents,
            times,
            ..Self::default()
        };
        let classes = [IoClass::Journal, IoClass::Metadata, IoClass::Data];
        for (class, of) in Class::ALL.into_iter().zip(classes) {
            let of_class = counts.class(of);
            figures.bytes[class] = of_class.write_bytes;
            figures.requests[class] = of_class.write_requests;
            figures.read_bytes[class] = of_class.read_bytes;
        }
        figures
    }

    /// All bytes written.
    pub fn written_bytes(&self) -> u64 {
        Class::ALL.iter().map(|class| self.bytes[*class]).sum()
    }

    /// Share of a class in the bytes written \[%\].
    pub fn share_percent(&self, class: Class) -> f64 {
        100.0 * self.bytes[class] as f64 / (self.written_bytes() as f64).max(1.0)
    }

    /// Mean size of the requests of a class \[KiB\]; 0 without any.
    pub fn request_kib(&self, class: Class) -> f64 {
        match self.requests[class] {
            0 => 0.0,
            n => self.bytes[class] as f64 / n as f64 / 1024.0,
        }
    }

    /// Mean number of extents of a file; 0 without files.
    pub fn extents_per_file(&self) -> f64 {
        if self.files == 0 { 0.0 } else { self.extents as f64 / self.files as f64 }
    }
}

/// A target that a row misses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// Of what.
    pub what: &'static str,
    /// What the real one did.
    pub real: f64,
    /// What the model did.
    pub model: f64,
    /// By how much the model differs \[%\].
    pub percent: f64,
}

/// One case on both.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What ran.
    pub case: Case,
    /// On a real ext4.
    pub real: Figures,
    /// On the model.
    pub model: Figures,
}

impl Row {
    /// By how much the model's figure differs \[%\].
    pub fn percent(real: f64, model: f64) -> f64 {
        match real == 0.0 {
            true if model == 0.0 => 0.0,
            true => f64::INFINITY,
            false => 100.0 * (model - real) / real,
        }
    }

    /// By how much the bytes of a class differ \[%\].
    pub fn bytes_percent(&self, class: Class) -> f64 {
        Self::percent(self.real.bytes[class] as f64, self.model.bytes[class] as f64)
    }

    /// Targets that are missed: bytes of each class that has 5 % of them or more, within
    /// 15 % or four blocks, and extents per file, within 10 %.
    pub fn misses(&self) -> Vec<Miss> {
        let mut misses = vec![];
        let mut check = |what, real: f64, model: f64, most: f64| {
            let percent = Self::percent(real, model);
            if percent.abs() > most {
                misses.push(Miss { what, real, model, percent });
            }
        };
        for class in Class::ALL {
            let share = self.real.share_percent(class).max(self.model.share_percent(class));
            let (real, model) = (self.real.bytes[class], self.model.bytes[class]);
            if share >= SHARE_PERCENT && real.abs_diff(model) > SLACK_BYTES {
                check(class.name(), real as f64, model as f64, BYTES_PERCENT);
            }
        }
        let (real, model) = (self.real.extents_per_file(), self.model.extents_per_file());
        check("extents per file", real, model, EXTENTS_PERCENT);
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beside::named;

    #[test]
    fn a_class_of_few_bytes_is_not_held_to_the_target() {
        let real = Figures {
            bytes: PerClass { journal: 1_000_000, metadata: 20_000, data: 1_000_000 },
            files: 1,
            extents: 10,
            ..Figures::default()
        };
        let model = Figures {
            bytes: PerClass { journal: 1_140_000, metadata: 40_000, data: 1_160_000 },
            extents: 11,
            ..real
        };
        let case = named("create").expect("a script");
        let misses = Row { case, real, model }.misses();
        let what: Vec<&str> = misses.iter().map(|miss| miss.what).collect();
        assert_eq!(what, ["data"]);
        assert!((misses[0].percent - 16.0).abs() < 1e-9);
    }

    #[test]
    fn what_only_one_of_them_writes_is_infinitely_off() {
        assert_eq!(Row::percent(0.0, 0.0), 0.0);
        assert_eq!(Row::percent(0.0, 1.0), f64::INFINITY);
        assert_eq!(Row::percent(4.0, 3.0), -25.0);
    }
}
