//! What a host can say about one write. `WriteHint` is 24 bytes and `Copy`, so it
//! travels in every request without cost.

/// Bytes of one logical sector, the unit of [`Lba`]. Source: the LBA format with
/// LBADS = 9 that every NVMe namespace here reports (NVMe base specification,
/// "LBA Format Data Structure").
pub const SECTOR_BYTES: u64 = 512;

/// Logical block address of a namespace \[512-byte sectors\].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

impl Lba {
    /// Byte offset of this sector in its namespace.
    pub const fn byte_offset(self) -> u64 {
        self.0 * SECTOR_BYTES
    }
}

/// Placement handle: the lifetime group a write belongs to (an NVMe stream
/// identifier or FDP placement handle). 0 is the default group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u16);

/// How a write relates to the other blocks of its file. Source: the append and
/// overwrite hints of Jun et al., FAST'24, section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Nothing is known.
    #[default]
    None,
    /// The write continues a file.
    Append {
        /// Where the previous block of that file is stored.
        prev: Lba,
    },
    /// The write replaces blocks of a file in place.
    Overwrite,
}

/// What kind of data a write carries. Source: the data classes of the SLC-cache
/// scheme by file-system features (hot, cold, journal), plus file-system metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataClass {
    /// Nothing is known.
    #[default]
    Unspecified,
    /// Likely to be rewritten or deleted soon.
    Hot,
    /// Likely to stay.
    Cold,
    /// A journal: written in a ring, dead after one round.
    Journal,
    /// File-system metadata other than the journal.
    Metadata,
}

/// Everything a host says about one write command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WriteHint {
    /// Relation to other blocks of the same file.
    pub relation: Relation,
    /// Kind of data.
    pub class: DataClass,
    /// Lifetime group.
    pub handle: Handle,
}

impl WriteHint {
    /// A hint that says nothing.
    pub const NONE: Self =
        Self { relation: Relation::None, class: DataClass::Unspecified, handle: Handle(0) };

    /// The write continues the file whose previous block is at `prev`.
    pub const fn append(prev: Lba) -> Self {
        Self { relation: Relation::Append { prev }, ..Self::NONE }
    }

    /// The write replaces file blocks in place.
    pub const fn overwrite() -> Self {
        Self { relation: Relation::Overwrite, ..Self::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_stays_small_and_silent_by_default() {
        assert!(size_of::<WriteHint>() <= 24);
        assert_eq!(WriteHint::default(), WriteHint::NONE);
        assert_eq!(Lba(3).byte_offset(), 1536);
    }
}
