//! What was written, and why. All counts are 64-bit and in bytes or events.

/// Totals since the counters were last reset.
///
/// Bytes add up: programmed = `host` - `coalesced` + `gc` + `fold` + `padding` +
/// `rmw` + `meta` + `redo`, where programmed counts places taken in program units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Bytes the host wrote.
    pub bytes_host: u64,
    /// Host bytes that replaced buffered data in place.
    pub bytes_coalesced: u64,
    /// Bytes moved by garbage collection.
    pub bytes_gc: u64,
    /// Bytes moved from SLC blocks to native ones.
    pub bytes_fold: u64,
    /// Bytes of places left empty so that a program unit could be programmed.
    pub bytes_padding: u64,
    /// The rest of mapping units that the host wrote in part: old contents, or
    /// zeros where there were none.
    pub bytes_rmw: u64,
    /// Bytes of records of trimmed addresses.
    pub bytes_meta: u64,
    /// Bytes of failed programs that were programmed again elsewhere.
    pub bytes_redo: u64,
    /// Blocks chosen by garbage collection.
    pub gc_runs: u64,
    /// Blocks emptied because they were erased less often than others.
    pub leveling_runs: u64,
    /// Blocks emptied because they were read often or held old data.
    pub scrub_runs: u64,
    /// Blocks emptied and erased.
    pub erases: u64,
    /// Units trimmed that were mapped.
    pub units_trimmed: u64,
    /// Units whose hinted die was passed over.
    pub hints_yielded: u64,
    /// Those of them whose die was worn ahead of the others.
    pub hints_yielded_wear: u64,
    /// Those of the rest whose die held its share of the write buffer.
    pub hints_yielded_buffer: u64,
}

impl FtlCounters {
    /// Bytes that took a place on the flash.
    pub fn bytes_programmed(&self) -> u64 {
        self.bytes_host - self.bytes_coalesced
            + self.bytes_gc
            + self.bytes_fold
            + self.bytes_padding
            + self.bytes_rmw
            + self.bytes_meta
            + self.bytes_redo
    }

    /// Write amplification: programmed by host bytes; `None` before any write.
    pub fn waf(&self) -> Option<f64> {
        (self.bytes_host > 0).then(|| self.bytes_programmed() as f64 / self.bytes_host as f64)
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes_host: self.bytes_host - earlier.bytes_host,
            bytes_coalesced: self.bytes_coalesced - earlier.bytes_coalesced,
            bytes_gc: self.bytes_gc - earlier.bytes_gc,
            bytes_fold: self.bytes_fold - earlier.bytes_fold,
            bytes_padding: self.bytes_padding - earlier.bytes_padding,
            bytes_rmw: self.bytes_rmw - earlier.bytes_rmw,
            bytes_meta: self.bytes_meta - earlier.bytes_meta,
            bytes_redo: self.bytes_redo - earlier.bytes_redo,
            gc_runs: self.gc_runs - earlier.gc_runs,
            leveling_runs: self.leveling_runs - earlier.leveling_runs,
            scrub_runs: self.scrub_runs - earlier.scrub_runs,
            erases: self.erases - earlier.erases,
            units_trimmed: self.units_trimmed - earlier.units_trimmed,
            hints_yielded: self.hints_yielded - earlier.hints_yielded,
            hints_yielded_wear: self.hints_yielded_wear - earlier.hints_yielded_wear,
            hints_yielded_buffer: self.hints_yielded_buffer - earlier.hints_yielded_buffer,
        }
    }
}
