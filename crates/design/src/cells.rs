//! Typical parts by cell mode, for `--cell` and for the number of dies.

use flashwise_ssd::CellMode;

/// A typical part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) mode: CellMode,
    pub(crate) page_order: &'static str,
    /// Sense by page type \[us\].
    pub(crate) read_us: &'static [f64],
    /// Sense of at most 4 KiB by page type \[us\].
    pub(crate) read_4k_us: &'static [f64],
    /// Program of one program unit of two planes of 16 KiB pages \[us\].
    pub(crate) program_us: f64,
    pub(crate) times_source: &'static str,
    pub(crate) endurance: u64,
    /// Data of one die. Assumed: parts of the last years.
    pub(crate) die_gib: u64,
}

/// Times: nand-timing of ConZone, which cites ISSCC'20 (SLC) and ISSCC'24 (TLC, QLC);
/// MLC from the 970 PRO profile of NVMeVirt. Endurance: orders of magnitude.
pub(crate) const PARTS: [Part; 4] = [
    Part {
        name: "slc",
        mode: CellMode::Slc,
        page_order: "one-shot",
        read_us: &[20.0],
        read_4k_us: &[20.0],
        program_us: 75.0,
        times_source: "ConZone SLC (ISSCC'20), per 32 KiB",
        endurance: 60_000,
        die_gib: 16,
    },
    Part {
        name: "mlc",
        mode: CellMode::Mlc,
        page_order: "alternate",
        read_us: &[30.0, 42.0],
        read_4k_us: &[29.8, 41.8],
        program_us: 185.0,
        times_source: "NVMeVirt 970 PRO (MLC), 185 us per 32 KiB",
        endurance: 6000,
        die_gib: 32,
    },
    Part {
        name: "tlc",
        mode: CellMode::Tlc,
        page_order: "one-shot",
        read_us: &[32.0],
        read_4k_us: &[32.0],
        program_us: 937.5,
        times_source: "ConZone TLC (ISSCC'24), per 96 KiB",
        endurance: 3000,
        die_gib: 64,
    },
    Part {
        name: "qlc",
        mode: CellMode::Qlc,
        page_order: "one-shot",
        read_us: &[85.0],
        read_4k_us: &[85.0],
        program_us: 6098.0,
        times_source: "ConZone QLC (ISSCC'24), two-step, per 128 KiB",
        endurance: 1000,
        die_gib: 128,
    },
];

/// The part of a cell mode.
pub(crate) fn part(mode: CellMode) -> &'static Part {
    &PARTS[mode.bits() as usize - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_in_the_order_of_their_bits() {
        for p in &PARTS {
            assert_eq!(part(p.mode).name, p.name);
        }
    }
}
