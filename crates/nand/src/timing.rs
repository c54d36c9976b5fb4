//! How long things take on one kind of flash. All values come from a preset, which
//! names the source of each.

use crate::geometry::CellMode;

/// Times of one cell mode \[ns\], by page type (LSB first) where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellTiming {
    /// Sense of a page.
    pub read_ns: [u64; 4],
    /// Sense when at most 4 KiB of the page are wanted.
    pub read_4k_ns: [u64; 4],
    /// Program of one program unit, by the type of its first page.
    pub program_ns: [u64; 4],
    /// Erase of one block.
    pub erase_ns: u64,
}

/// Times and abilities of a flash part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Native cell mode.
    pub native: CellMode,
    /// Times in the native cell mode.
    pub main: CellTiming,
    /// Times of blocks used in SLC mode.
    pub slc: CellTiming,
    /// Channel transfer \[ps per byte\].
    pub channel_ps_per_byte: u64,
    /// Largest piece of a read's channel transfer; other transfers may come between
    /// pieces \[bytes\]. Programs move in one piece.
    pub channel_chunk_bytes: u32,
    /// A die can sense the next page while the last one is transferred. Without
    /// it a die stays busy until its transfer ends (the emulator of FAST'24).
    pub cache_read: bool,
    /// A die can take in the next program unit while it programs the last one.
    pub cache_program: bool,
    /// Planes of a die sense different pages at the same time.
    pub independent_plane_reads: bool,
    /// Delay before a read can run on a die that programs \[ns\]; `None`: it waits.
    pub suspend_program_ns: Option<u64>,
    /// Delay before a read can run on a die that erases \[ns\]; `None`: it waits.
    pub suspend_erase_ns: Option<u64>,
    /// Times one operation may be suspended before reads wait for its end.
    pub suspends_max: u32,
}

impl Timing {
    /// Times of blocks in `mode`.
    #[inline]
    pub fn cell(&self, mode: CellMode) -> &CellTiming {
        if mode == CellMode::Slc && self.native != CellMode::Slc { &self.slc } else { &self.main }
    }

    /// Channel time of `bytes` \[ns, rounded up\].
    #[inline]
    pub fn transfer_ns(&self, bytes: u32) -> u64 {
        (u64::from(bytes) * self.channel_ps_per_byte).div_ceil(1000)
    }
}
