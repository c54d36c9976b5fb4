//! The shape of the flash and how data fills it.
//!
//! A *block* here is what one die erases at once: one physical block in each of
//! its planes. A *program unit* is what one die programs at once: one page per
//! plane, times the bits per cell where the part programs all of them in one shot.
//! Mapping units fill a program unit page by page, planes innermost, so that
//! consecutive units share a page and consecutive pages lie on different planes.

use crate::math::FastDiv;

/// A die, numbered so that consecutive dies sit on different channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DieId(pub u16);

/// A block of the whole device: die x blocks per die + index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// Physical place of one mapping unit: block x units per block + offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

/// How many bits a cell of a block stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CellMode {
    /// One bit.
    Slc = 1,
    /// Two bits.
    Mlc = 2,
    /// Three bits.
    #[default]
    Tlc = 3,
    /// Four bits.
    Qlc = 4,
}

impl CellMode {
    /// Bits per cell.
    pub const fn bits(self) -> u32 {
        self as u32
    }
}

/// Which bit of the cell a page of a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageOrder {
    /// All bits of a word line are programmed at once.
    OneShot,
    /// One page at a time, types in turn (LSB, MSB, LSB, …). Source: the page-type
    /// rule of NVMeVirt's 970 PRO profile and of MQSim for MLC (page modulo bits).
    #[default]
    Alternate,
    /// One page at a time in shared-page order: pages 0-5 are LSB, 6-7 CSB, then
    /// ((p - 8) / 2) modulo the bits. Source: Yaakobi et al., ICNC 2012, as used
    /// by MQSim and SimpleSSD for TLC.
    Shared,
}

/// Size of everything, in the terms of a data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels (buses) between controller and flash.
    pub n_channels: u32,
    /// Dies on each channel.
    pub n_dies_per_channel: u32,
    /// Planes in each die.
    pub n_planes: u32,
    /// Blocks in each plane.
    pub n_blocks_per_plane: u32,
    /// Pages in each physical block, in the native cell mode.
    pub n_pages_per_block: u32,
    /// Data bytes of one page.
    pub page_bytes: u32,
    /// Bytes of one mapping unit.
    pub unit_bytes: u32,
}

impl Geometry {
    /// Dies of the device.
    pub const fn n_dies(&self) -> u32 {
        self.n_channels * self.n_dies_per_channel
    }

    /// Blocks of the device (each spans the planes of its die).
    pub const fn n_blocks(&self) -> u32 {
        self.n_dies() * self.n_blocks_per_plane
    }

    /// Mapping units in one page.
    pub const fn units_per_page(&self) -> u32 {
        self.page_bytes / self.unit_bytes
    }

    /// The channel of a die.
    #[inline]
    pub const fn channel_of(&self, die: DieId) -> u32 {
        die.0 as u32 % self.n_channels
    }
}

/// Plane and page type of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInfo {
    /// Plane in the die.
    pub plane: u8,
    /// Bit of the cell: 0 = LSB, 1 = CSB or MSB of two, 2 = MSB of three, 3 = TSB.
    pub ptype: u8,
}

/// How mapping units fill a block of one cell mode.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Cell mode described.
    pub mode: CellMode,
    /// Mapping units in one page.
    pub units_per_page: u32,
    /// Mapping units in one program unit.
    pub units_per_pu: u32,
    /// Mapping units in one block.
    pub units_per_block: u32,
    page_div: FastDiv,
    pages: Vec<PageInfo>,
}

impl Layout {
    /// Layout of blocks in `mode` on a part whose native mode is `native`: with
    /// fewer bits per cell a block has proportionally fewer pages.
    pub fn new(geo: &Geometry, native: CellMode, mode: CellMode, order: PageOrder) -> Self {
        let n_rows = geo.n_pages_per_block * mode.bits() / native.bits();
        let rows_per_pu = if order == PageOrder::OneShot { mode.bits() } else { 1 };
        let n_rows = n_rows / rows_per_pu * rows_per_pu;
        let upp = geo.units_per_page();
        let pages = (0..n_rows * geo.n_planes)
            .map(|page| PageInfo {
                plane: (page % geo.n_planes) as u8,
                ptype: page_type(page / geo.n_planes, mode.bits(), order),
            })
            .collect();
        Self {
            mode,
            units_per_page: upp,
            units_per_pu: upp * geo.n_planes * rows_per_pu,
            units_per_block: upp * geo.n_planes * n_rows,
            page_div: FastDiv::new(upp),
            pages,
        }
    }

    /// Page (counted over all planes) that holds the unit at `offset` of a block.
    #[inline]
    pub fn page_of(&self, offset: u32) -> u32 {
        self.page_div.div(offset)
    }

    /// Plane and type of a page of the block.
    #[inline]
    pub fn page(&self, page_idx: u32) -> PageInfo {
        self.pages[page_idx as usize]
    }
}

fn page_type(row: u32, bits: u32, order: PageOrder) -> u8 {
    let t = match order {
        PageOrder::OneShot | PageOrder::Alternate => row % bits,
        PageOrder::Shared if bits < 3 => row % bits,
        PageOrder::Shared => match row {
            0..=5 => 0,
            6..=7 => 1,
            _ => ((row - 8) >> 1) % bits,
        },
    };
    t as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geo() -> Geometry {
        Geometry {
            n_channels: 4,
            n_dies_per_channel: 2,
            n_planes: 2,
            n_blocks_per_plane: 10,
            n_pages_per_block: 12,
            page_bytes: 16384,
            unit_bytes: 4096,
        }
    }

    #[test]
    fn one_shot_tlc_fills_page_by_page_planes_innermost() {
        let l = Layout::new(&geo(), CellMode::Tlc, CellMode::Tlc, PageOrder::OneShot);
        assert_eq!((l.units_per_pu, l.units_per_block), (4 * 2 * 3, 4 * 2 * 12));
        let at = |unit| l.page(l.page_of(unit));
        assert_eq!(at(3), PageInfo { plane: 0, ptype: 0 });
        assert_eq!(at(4), PageInfo { plane: 1, ptype: 0 });
        assert_eq!(at(8), PageInfo { plane: 0, ptype: 1 });
        assert_eq!(at(23), PageInfo { plane: 1, ptype: 2 });
        assert_eq!(at(24), PageInfo { plane: 0, ptype: 0 }, "the next program unit");
    }

    #[test]
    fn slc_mode_has_a_third_of_the_pages() {
        let l = Layout::new(&geo(), CellMode::Tlc, CellMode::Slc, PageOrder::OneShot);
        assert_eq!((l.units_per_pu, l.units_per_block), (8, 32));
    }

    #[test]
    fn page_type_orders_follow_their_sources() {
        let types = |bits, order, n| (0..n).map(|r| page_type(r, bits, order)).collect::<Vec<_>>();
        assert_eq!(types(2, PageOrder::Alternate, 4), [0, 1, 0, 1]);
        let tlc = types(3, PageOrder::Shared, 16);
        assert_eq!(tlc, [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn consecutive_dies_sit_on_different_channels() {
        let g = geo();
        let chans: Vec<u32> = (0..8).map(|d| g.channel_of(DieId(d))).collect();
        assert_eq!(chans, [0, 1, 2, 3, 0, 1, 2, 3]);
    }
}
