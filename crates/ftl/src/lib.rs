//! The flash translation layer: where data goes, and what has to move so that it
//! can go there.
//!
//! Page-mapped with 32-bit tables. A *placement* is a frontier (open block) per
//! (handle or kind of collection, die); garbage collection works per die and
//! keeps data on its die. Time is not known here: physical work goes to a
//! [`Flash`], which queues it ([`flashwise_nand::Nand`]) or only counts it
//! ([`flashwise_nand::Instant`]), and what ended is reported back through
//! [`Ftl::on_done`].
//!
//! The write path starts in `write.rs` ([`Ftl::write_unit`]), asks `place.rs`
//! which die, appends, and pays for collection in `gc.rs`; `durable.rs` holds what
//! must be on the media before something may be erased; `wear.rs` and `health.rs` what
//! wears out and fails; `media.rs` and `recover.rs` are what survives a power failure and how it is read back.
//!
//! Invariants (all but the last are checked by [`Ftl::self_check`], the last by
//! power cuts in the model test of the device):
//! * the two maps are inverse where a place is valid; a block's valid count is the
//!   popcount of its bits; each die's and the device's totals are their sums;
//! * every block is in exactly one state, and closed blocks, no others, are in the
//!   victim index under their valid count;
//! * a die holds at most its good blocks less the reserve in valid data (a drive that
//!   became read-only may hold more), so collection always has something to gain, and room for it in a free block or in open ones;
//! * a block is erased only when everything that superseded its contents is on the
//!   media or protected against power loss.
//!
//! Cost: about 9.3 bytes per mapping unit at 28 % over-provisioning; a host write
//! is a handful of table accesses plus its share of collection.

mod blocks;
mod chain;
mod check;
mod codec;
mod config;
mod counters;
mod durable;
mod gc;
mod health;
mod lists;
mod map;
mod media;
mod memory;
mod place;
mod recover;
mod save;
mod victims;
mod wear;
mod write;
mod yields;

use std::collections::BTreeMap;

use flashwise_nand::{BlockId, DieId, Done, DoneKind, FastDiv, Flash, Layout, PageInfo, Ppn};

use blocks::{Blocks, DieBlocks};
use chain::Lanes;
pub use codec::{CodecError, Reader, Writer};
pub use config::{ConfigError, FtlConfig};
pub use counters::FtlCounters;
use durable::TrimLog;
pub use gc::VictimPolicy;
use health::BadReason;
pub use health::Health;
use map::Map;
pub use media::{Contents, Media, StoreError};
pub use place::{RelationPolicy, WriteContext};
use victims::Victims;
use wear::ScrubState;
pub use wear::{Scrub, WearLeveling};
use write::Frontier;
use yields::YieldBounds;

/// Logical page number: one mapping unit of the host's address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u32);

/// Where a mapping unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Die.
    pub die: DieId,
    /// Block.
    pub block: BlockId,
    /// Page of the block, counted over all planes.
    pub page_idx: u32,
    /// Plane and page type.
    pub page: PageInfo,
    /// On the media; else still in a buffer of the controller.
    pub on_media: bool,
}

/// The FTL.
#[derive(Clone, Debug)]
pub struct Ftl {
    cfg: FtlConfig,
    layout: Layout,
    block_div: FastDiv,
    die_div: FastDiv,
    map: Map,
    blocks: Blocks,
    dies: Vec<DieBlocks>,
    victims: Victims,
    frontiers: Vec<Frontier>,
    lanes: Lanes,
    /// Round-robin die of each handle.
    cursors: Vec<u16>,
    bounds: YieldBounds,
    /// Valid units all dies may hold.
    total_limit: u64,
    /// Bad blocks, retired or about to be.
    bad_blocks: BTreeMap<u32, BadReason>,
    /// Nothing new is taken: no spare blocks are left.
    read_only: bool,
    scrub: ScrubState,
    /// While a failed program is written again: the append that began it.
    redo_seq: u64,
    /// Somebody asks when blocks changed last.
    tracks_changes: bool,
    n_valid: u64,
    /// Erases of all dies.
    n_erases: u64,
    /// Number of the last append or trim.
    seq: u64,
    trims: TrimLog,
    media: Option<Media>,
    counters: FtlCounters,
}

impl Ftl {
    /// A blank device.
    pub fn new(cfg: FtlConfig, contents: Contents) -> Result<Self, ConfigError> {
        cfg.check()?;
        let oob = cfg.oob || !matches!(contents, Contents::None);
        let layout = cfg.layout();
        let n_blocks = cfg.geo.n_blocks();
        let n_physical = n_blocks * layout.units_per_block;
        let media =
            oob.then(|| Media::new(n_blocks, layout.units_per_block, cfg.geo.unit_bytes, contents));
        let mut ftl = Self::with_media(cfg, layout, n_physical, media);
        ftl.retire_factory_bad()?;
        ftl.set_lanes();
        Ok(ftl)
    }

    fn with_media(cfg: FtlConfig, layout: Layout, n_physical: u32, media: Option<Media>) -> Self {
        let geo = &cfg.geo;
        let (n_blocks, n_dies) = (geo.n_blocks(), geo.n_dies());
        let n_frontiers = (u32::from(cfg.n_handles) + config::N_GC_FRONTIERS) * n_dies;
        let per_die = geo.n_blocks_per_plane;
        let limit = (per_die - cfg.reserve_blocks()) * layout.units_per_block;
        Self {
            block_div: FastDiv::new(layout.units_per_block),
            die_div: FastDiv::new(geo.n_blocks_per_plane),
            map: Map::new(cfg.n_logical + cfg.n_meta(), n_physical),
            blocks: Blocks::new(n_blocks),
            dies: (0..n_dies).map(|d| DieBlocks::blank(d, per_die, limit)).collect(),
            victims: Victims::new(&cfg, layout.units_per_block),
            lanes: Lanes::default(),
            frontiers: vec![Frontier::CLOSED; n_frontiers as usize],
            cursors: vec![0; usize::from(cfg.n_handles)],
            bounds: YieldBounds::of(&cfg),
            total_limit: u64::from(limit) * u64::from(n_dies),
            bad_blocks: BTreeMap::new(),
            read_only: false,
            scrub: ScrubState::new(cfg.scrub, n_blocks, n_dies),
            redo_seq: u64::MAX,
            tracks_changes: !cfg.power_protected || cfg.victim == VictimPolicy::CostBenefit,
            n_valid: 0,
            n_erases: 0,
            seq: 0,
            trims: TrimLog::default(),
            media,
            counters: FtlCounters::default(),
            layout,
            cfg,
        }
    }

    /// What the FTL was built for.
    pub fn config(&self) -> &FtlConfig {
        &self.cfg
    }

    /// Changes what is done with relation hints; data stays where it is.
    pub fn set_relation(&mut self, relation: RelationPolicy) {
        self.cfg.relation = relation;
        self.set_lanes();
    }

    /// How units fill a block.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Totals.
    pub fn counters(&self) -> &FtlCounters {
        &self.counters
    }

    /// Where `lpn` is, if it is mapped.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.get(lpn.0)
    }

    /// Die, block and page of a place.
    #[inline]
    pub fn place(&self, ppn: Ppn) -> Place {
        let (block, offset) = self.block_div.div_rem(ppn.0);
        let page_idx = self.layout.page_of(offset);
        Place {
            die: DieId(self.die_div.div(block) as u16),
            block: BlockId(block),
            page_idx,
            page: self.layout.page(page_idx),
            on_media: self.blocks.is_programmed(block, offset),
        }
    }

    /// Applies an operation that ended.
    #[inline]
    pub fn on_done(&mut self, done: &Done) {
        match done.kind {
            DoneKind::Program { n_buffered } => {
                self.dies[usize::from(done.die.0)].n_queued -= u32::from(n_buffered);
                self.on_programmed(done.die, done.block);
            }
            DoneKind::Erase => self.on_erased(done.block),
        }
    }

    /// A program of `block` ended.
    #[inline]
    fn on_programmed(&mut self, die: DieId, block: BlockId) {
        if let Some(media) = &mut self.media {
            media.program_next(block.0, self.layout.units_per_pu);
        }
        self.blocks.add_programmed(block.0, self.layout.units_per_pu);
        if !self.cfg.power_protected {
            self.dies[usize::from(die.0)].pending_first_seq.pop_front();
        }
    }

    /// An erase of `block` ended.
    fn on_erased(&mut self, block: BlockId) {
        if let Some(media) = &mut self.media {
            media.erase(block.0);
        }
        self.blocks.erase_ended(block.0);
    }

    /// Contents and out-of-band data, if they are kept.
    pub fn media(&self) -> Option<&Media> {
        self.media.as_ref()
    }

    /// Reads the contents of `ppn` from wherever they are now. `Ok(false)`: none
    /// are kept.
    pub fn read_contents(&self, ppn: Ppn, into: &mut [u8]) -> Result<bool, StoreError> {
        let Some(media) = &self.media else {
            return Ok(false);
        };
        let (block, offset) = self.block_div.div_rem(ppn.0);
        media.read(block, offset, self.blocks.is_programmed(block, offset), into)
    }

    /// Free blocks of all dies.
    pub fn n_free_blocks(&self) -> u64 {
        self.dies.iter().map(|d| d.free.len() as u64).sum()
    }

    /// Places that hold nothing yet: free blocks, and the rest of open ones.
    pub fn n_blank(&self) -> u64 {
        let per_block = u64::from(self.layout.units_per_block);
        let open = self.frontiers.iter().filter(|f| f.is_open());
        self.n_free_blocks() * per_block + open.map(|f| per_block - u64::from(f.next)).sum::<u64>()
    }

    /// Units of the write buffer in program units that still fill.
    pub fn n_buffered(&self) -> u32 {
        self.frontiers.iter().map(|f| f.n_buffered).sum()
    }

    /// Program units of the host that are filled in part.
    pub fn n_part_filled(&self) -> usize {
        (0..self.n_host_frontiers()).filter(|&f| self.is_part_filled(f)).count()
    }

    /// Places for units on all dies.
    pub fn n_physical(&self) -> u64 {
        u64::from(self.cfg.geo.n_blocks()) * u64::from(self.layout.units_per_block)
    }

    /// Mapped units.
    pub fn n_valid(&self) -> u64 {
        self.n_valid
    }

    /// Valid units of each die.
    pub fn die_valid(&self) -> impl Iterator<Item = u32> + '_ {
        self.dies.iter().map(|d| d.n_valid)
    }

    /// Units that collection moved on each die since power-on.
    pub fn die_moved(&self) -> impl Iterator<Item = u64> + '_ {
        self.dies.iter().map(|d| d.n_moved)
    }

    /// Bytes of the mapping tables and block lists when fully used.
    pub fn table_bytes(&self) -> u64 {
        self.map.bytes() + self.blocks.bytes() + self.victims.bytes()
    }

    /// Additional senses until a page of `block` can be read.
    #[inline]
    pub fn read_retries(&self, block: BlockId, page_idx: u32) -> u8 {
        let plan = &self.cfg.faults;
        if plan.read_retry_ppm == 0 {
            return 0;
        }
        plan.read_retries(block, self.blocks.n_erases[block.0 as usize], page_idx)
    }

    /// Asks for the map entry of `lpn`, needed a batch of requests from now.
    #[inline]
    pub fn prefetch_map(&self, lpn: Lpn) {
        self.map.prefetch_lpn(lpn.0);
    }

    /// Asks for the state of the place `lpn` is at, needed half a batch from now.
    #[inline]
    pub fn prefetch_place(&self, lpn: Lpn) {
        if let Some(ppn) = self.map.get(lpn.0) {
            self.map.prefetch_ppn(ppn);
        }
    }

    #[inline]
    fn die_of_block(&self, block: u32) -> usize {
        self.die_div.div(block) as usize
    }

    /// Sends a finished program unit to the flash.
    #[inline]
    fn send_program<F: Flash>(
        &mut self,
        die: usize,
        block: u32,
        offset: u32,
        n_buffered: u32,
        ready_ns: u64,
        flash: &mut F,
    ) {
        let op = flashwise_nand::PageOp {
            die: DieId(die as u16),
            block: BlockId(block),
            mode: self.layout.mode,
            page: self.layout.page(self.layout.page_of(offset)),
            bytes: self.layout.units_per_pu * self.cfg.geo.unit_bytes,
            retries: 0,
            ready_ns,
        };
        flash.program(op, n_buffered);
        if F::INSTANT {
            self.on_programmed(op.die, op.block);
        } else {
            self.dies[die].n_queued += n_buffered;
        }
    }
}
