//! Commands in, completion times out: the core loop of the simulator is
//! [`Ssd::submit`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashwise_ftl::{
    Contents, Ftl, FtlConfig, FtlCounters, Lpn, Media, Place, RelationPolicy, WriteContext,
};
use flashwise_hint::{Lba, Relation, SECTOR_BYTES, WriteHint};
use flashwise_nand::{Calendar, Counters, DieId, Done, DoneKind, Instant, Nand, PageRead};

use crate::config::{self, DeviceConfig};
use crate::error::{CommandError, PresetError};

/// What a host can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read sectors.
    Read {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
    },
    /// Write sectors.
    Write {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
        /// Force unit access: done when on the media (or protected).
        fua: bool,
        /// What the host says about the data.
        hint: WriteHint,
    },
    /// Forget sectors; they read as zeros. Mapping units trimmed in part keep
    /// their contents.
    Trim {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
    },
    /// Make sectors read as zeros.
    WriteZeroes {
        /// First sector.
        lba: Lba,
        /// Number of sectors.
        sectors: u32,
    },
    /// Make everything acknowledged durable.
    Flush,
}

/// How to build a device, beyond its preset.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is done with append and overwrite hints.
    pub relation: RelationPolicy,
    /// Where contents are kept.
    pub contents: Contents,
    /// Keep out-of-band data even without contents, so that [`Ssd::power_cut`]
    /// works. A loaded drive has it if the saved one had.
    pub crash_recovery: bool,
}

/// Totals since power-on. Subtract two of them for an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SsdCounters {
    /// Of the translation layer.
    pub ftl: FtlCounters,
    /// Of the flash.
    pub nand: Counters,
    /// Channel time booked, summed over channels \[ns\].
    pub channel_busy_ns: u64,
    /// Link time booked, device to host \[ns\].
    pub link_out_busy_ns: u64,
    /// Link time booked, host to device \[ns\].
    pub link_in_busy_ns: u64,
    /// Reads of old contents to complete a partly written mapping unit.
    pub rmw_reads: u64,
    /// Mapping units read from the write buffer.
    pub buffer_hits: u64,
    /// Writes that waited for buffer space.
    pub buffer_waits: u64,
}

impl SsdCounters {
    /// What came since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            ftl: self.ftl.since(&earlier.ftl),
            nand: self.nand.since(&earlier.nand),
            channel_busy_ns: self.channel_busy_ns - earlier.channel_busy_ns,
            link_out_busy_ns: self.link_out_busy_ns - earlier.link_out_busy_ns,
            link_in_busy_ns: self.link_in_busy_ns - earlier.link_in_busy_ns,
            rmw_reads: self.rmw_reads - earlier.rmw_reads,
            buffer_hits: self.buffer_hits - earlier.buffer_hits,
            buffer_waits: self.buffer_waits - earlier.buffer_waits,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Latencies {
    read_ns: u64,
    read_4k_ns: u64,
    write_ns: u64,
    write_4k_ns: u64,
    link_ps_per_byte: u64,
    idle_ns: u64,
}

/// A page to read for the current command.
#[derive(Clone, Copy, Debug)]
struct Sense {
    key: (u32, u32),
    page: PageRead,
}

/// A drive.
#[derive(Clone, Debug)]
pub struct Ssd {
    pub(crate) cfg: DeviceConfig,
    pub(crate) ftl: Ftl,
    pub(crate) nand: Nand,
    link_out: Calendar,
    link_in: Calendar,
    full_duplex: bool,
    latencies: Latencies,
    pub(crate) unit_shift: u32,
    max_sectors: u32,
    buffer_units: u32,
    buffer_used: u32,
    now_ns: u64,
    /// Commands since all dies were last brought up to date.
    n_since_sweep: u32,
    rmw_reads: u64,
    buffer_hits: u64,
    buffer_waits: u64,
    reads: Vec<Sense>,
}

/// What the preset says about the controller, checked.
pub(crate) struct Limits {
    latencies: Latencies,
    buffer_units: u32,
    mdts: u32,
}

impl Limits {
    /// Reads and checks every key that is neither of the flash nor of the FTL.
    pub(crate) fn of(cfg: &DeviceConfig, ftl: &FtlConfig) -> Result<Self, PresetError> {
        let (fw, link) = (&cfg.firmware, &cfg.link);
        let latencies = Latencies {
            read_ns: config::ns("firmware.read_us", fw.read_us)?,
            read_4k_ns: config::ns("firmware.read_4k_us", fw.read_4k_us)?,
            write_ns: config::ns("firmware.write_us", fw.write_us)?,
            write_4k_ns: config::ns("firmware.write_4k_us", fw.write_4k_us)?,
            link_ps_per_byte: config::ps_per_byte("link.mb_s", link.mb_s)?,
            idle_ns: config::ns("ftl.idle_us", cfg.ftl.idle_us)?,
        };
        let unit_bytes = ftl.geo.unit_bytes;
        let buffer_units = config::kib("buffer.kib", cfg.buffer.kib)? / unit_bytes;
        let least = ftl.layout().units_per_pu;
        if buffer_units < least {
            let expected = format!("at least one program unit ({} KiB)", least * unit_bytes / 1024);
            return Err(PresetError::value("buffer.kib", cfg.buffer.kib, expected));
        }
        let mdts = config::kib("host.mdts_kib", cfg.host.mdts_kib)?;
        if mdts < unit_bytes.max(4096) {
            let expected = "at least 4 KiB and one mapping unit".to_owned();
            return Err(PresetError::value("host.mdts_kib", cfg.host.mdts_kib, expected));
        }
        cfg.check_use()?;
        Ok(Self { latencies, buffer_units, mdts })
    }
}

/// Commands after which all dies are brought up to date. Work that waits on a die
/// nobody touches must start before channels forget the time it belongs to.
const SWEEP_INTERVAL: u32 = 32;

impl Ssd {
    /// A blank drive.
    pub fn new(cfg: DeviceConfig, options: Options) -> Result<Self, PresetError> {
        let mut ftl_cfg = cfg.ftl_config(options.relation)?;
        ftl_cfg.oob = options.crash_recovery;
        let ftl = Ftl::new(ftl_cfg, options.contents)?;
        let nand = Nand::new(ftl.config().geo, cfg.timing()?);
        Self::assemble(cfg, ftl, nand)
    }

    pub(crate) fn assemble(cfg: DeviceConfig, ftl: Ftl, nand: Nand) -> Result<Self, PresetError> {
        let Limits { latencies, buffer_units, mdts } = Limits::of(&cfg, ftl.config())?;
        let unit_bytes = ftl.config().geo.unit_bytes;
        Ok(Self {
            full_duplex: cfg.link.full_duplex,
            latencies,
            unit_shift: (unit_bytes / SECTOR_BYTES as u32).trailing_zeros(),
            max_sectors: mdts / SECTOR_BYTES as u32,
            buffer_units,
            buffer_used: 0,
            link_out: Calendar::default(),
            link_in: Calendar::default(),
            now_ns: 0,
            n_since_sweep: 0,
            rmw_reads: 0,
            buffer_hits: 0,
            buffer_waits: 0,
            reads: vec![],
            cfg,
            ftl,
            nand,
        })
    }

    /// Carries out `command`, which reaches the device at `now_ns`; returns when it
    /// is done \[ns\]. A refused command has no effect, but for one that meets the end of
    /// the spare blocks: what comes before in it is written.
    ///
    /// # Panics
    /// If `now_ns` lies before that of an earlier command.
    #[inline]
    pub fn submit(&mut self, command: &Command, now_ns: u64) -> Result<u64, CommandError> {
        let done_ns = match *command {
            Command::Read { lba, sectors } => return self.submit_read(lba, sectors, now_ns),
            Command::Write { lba, sectors, fua, hint } => {
                return self.submit_write(lba, sectors, fua, &hint, now_ns);
            }
            // Trims and zeroes move no data, so any length will do.
            Command::Trim { lba, sectors } => {
                self.check_range(lba, sectors, u32::MAX)?;
                self.check_writable()?;
                self.catch_up(now_ns);
                self.trim(lba, sectors, now_ns)
            }
            Command::WriteZeroes { lba, sectors } => {
                self.check_range(lba, sectors, u32::MAX)?;
                self.check_writable()?;
                self.catch_up(now_ns);
                self.write_zeroes(lba, sectors, now_ns)?
            }
            Command::Flush => {
                self.catch_up(now_ns);
                self.flush(now_ns)
            }
        };
        self.unless_failed(done_ns)
    }

    /// [`Ssd::submit`] of a read.
    #[inline]
    pub fn submit_read(
        &mut self,
        lba: Lba,
        sectors: u32,
        now_ns: u64,
    ) -> Result<u64, CommandError> {
        self.check_range(lba, sectors, self.max_sectors)?;
        self.catch_up(now_ns);
        let done_ns = self.read(lba, sectors, now_ns);
        self.unless_failed(done_ns)
    }

    /// [`Ssd::submit`] of a write.
    #[inline]
    pub fn submit_write(
        &mut self,
        lba: Lba,
        sectors: u32,
        fua: bool,
        hint: &WriteHint,
        now_ns: u64,
    ) -> Result<u64, CommandError> {
        self.submit_data(lba, sectors, fua, hint, None, now_ns)
    }

    /// A write, with its data where contents are kept.
    #[inline]
    pub(crate) fn submit_data(
        &mut self,
        lba: Lba,
        sectors: u32,
        fua: bool,
        hint: &WriteHint,
        data: Option<&[u8]>,
        now_ns: u64,
    ) -> Result<u64, CommandError> {
        let n_handles = self.ftl.config().n_handles;
        if hint.handle.0 >= n_handles {
            return Err(CommandError::NoSuchHandle { handle: hint.handle.0, n_handles });
        }
        self.check_range(lba, sectors, self.max_sectors)?;
        self.check_writable()?;
        self.catch_up(now_ns);
        let done_ns = self.write(lba, sectors, fua, hint, data, now_ns)?;
        self.unless_failed(done_ns)
    }

    /// The answer to a command, unless contents could not be read or written.
    #[inline]
    fn unless_failed(&self, done_ns: u64) -> Result<u64, CommandError> {
        match self.ftl.media().and_then(Media::failure) {
            Some(failure) => Err(failure.clone().into()),
            None => Ok(done_ns),
        }
    }

    /// Sectors the host sees.
    pub fn capacity_sectors(&self) -> u64 {
        u64::from(self.ftl.config().n_logical) << self.unit_shift
    }

    /// Sectors in one mapping unit.
    pub fn sectors_per_unit(&self) -> u64 {
        1 << self.unit_shift
    }

    /// Mapping units that so many sectors fill, the last perhaps in part.
    #[inline]
    pub fn units_of(&self, sectors: u32) -> u64 {
        (u64::from(sectors) + self.sectors_per_unit() - 1) >> self.unit_shift
    }

    /// Longest command \[sectors\].
    pub fn max_sectors(&self) -> u32 {
        self.max_sectors
    }

    /// What the drive was built from.
    pub fn config(&self) -> &DeviceConfig {
        &self.cfg
    }

    /// The translation layer, to look at.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// The flash, to look at.
    pub fn nand(&self) -> &Nand {
        &self.nand
    }

    /// Moment of the last command \[ns\].
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Totals since power-on.
    pub fn counters(&self) -> SsdCounters {
        SsdCounters {
            ftl: *self.ftl.counters(),
            nand: *self.nand.counters(),
            channel_busy_ns: self.nand.channel_busy_ns(),
            link_out_busy_ns: self.link_out.busy_ns(),
            link_in_busy_ns: self.link_in.busy_ns(),
            rmw_reads: self.rmw_reads,
            buffer_hits: self.buffer_hits,
            buffer_waits: self.buffer_waits,
        }
    }

    /// Checks every invariant; returns the first violation.
    pub fn self_check(&self) -> Result<(), String> {
        self.ftl.self_check(&self.nand)?;
        let (used, buffered) = (self.buffer_used, self.ftl.n_buffered() + self.nand.n_buffered());
        if used > self.buffer_units || used != buffered {
            let units = self.buffer_units;
            return Err(format!("{used} of {units} buffer units used, {buffered} units buffered"));
        }
        Ok(())
    }

    /// Ends all work under way and returns when that is \[ns\]; later commands
    /// come no earlier.
    pub fn rest(&mut self) -> u64 {
        let end = self.nand.drain();
        self.apply_done(u64::MAX);
        self.now_ns = self.now_ns.max(end);
        self.bring_dies_up_to_date(self.now_ns);
        self.now_ns
    }

    /// Writes whole mapping units without timing, for filling a drive at rest.
    /// Collection runs and is counted as always. Nothing happens once the drive is
    /// read-only.
    #[inline]
    pub fn fill_unit(&mut self, lpn: Lpn) {
        if self.ftl.is_read_only() {
            return;
        }
        let unit_bytes = self.ftl.config().geo.unit_bytes;
        let mut ctx = self.ftl.begin_write(&WriteHint::NONE, None, 1);
        let flash = &mut Instant(&mut self.nand);
        self.ftl.write_unit(&mut ctx, lpn, unit_bytes, None, 0, flash);
        self.release_at_once();
    }

    /// Programs that took no time free their buffer space at once.
    #[inline]
    pub(crate) fn release_at_once(&mut self) {
        self.buffer_used -= self.nand.take_released();
    }

    /// Lets collection run up to its high mark on every die without timing, as a
    /// drive does that is left alone for a while.
    pub fn fill_idle(&mut self) {
        for die in 0..self.ftl.config().geo.n_dies() as u16 {
            while self.ftl.collect_idle(DieId(die), 0, &mut Instant(&mut self.nand)) {}
        }
        self.release_at_once();
    }

    /// The unit has contents.
    pub fn is_mapped(&self, lpn: Lpn) -> bool {
        self.ftl.lookup(lpn).is_some()
    }

    /// Asks for the map entry of a sector needed a batch of requests from now.
    #[inline]
    pub fn prefetch_map(&self, lba: Lba) {
        self.ftl.prefetch_map(self.lpn(lba));
    }

    /// Asks for the state of the place a sector is at, needed half a batch from
    /// now.
    #[inline]
    pub fn prefetch_place(&self, lba: Lba) {
        if lba.0 < self.capacity_sectors() {
            self.ftl.prefetch_place(self.lpn(lba));
        }
    }

    #[inline]
    pub(crate) fn lpn(&self, lba: Lba) -> Lpn {
        Lpn((lba.0 >> self.unit_shift) as u32)
    }

    #[inline]
    fn check_range(&self, lba: Lba, sectors: u32, max: u32) -> Result<(), CommandError> {
        let (first, capacity) = (lba.0, self.capacity_sectors());
        let end = first.saturating_add(u64::from(sectors));
        match () {
            () if sectors == 0 => Err(CommandError::Empty),
            () if sectors > max => Err(CommandError::TooLong { sectors, max }),
            () if end > capacity => Err(CommandError::OutOfRange { first, end, capacity }),
            () => Ok(()),
        }
    }

    #[inline]
    fn check_writable(&self) -> Result<(), CommandError> {
        if self.ftl.is_read_only() { Err(self.read_only()) } else { Ok(()) }
    }

    #[cold]
    fn read_only(&self) -> CommandError {
        CommandError::ReadOnly { health: self.ftl.health() }
    }

    /// Brings the device up to `now_ns`: reports what ended, starts what could,
    /// and spends idle time on collection.
    #[inline]
    pub(crate) fn catch_up(&mut self, now_ns: u64) {
        assert!(now_ns >= self.now_ns, "time went back from {} to {now_ns}", self.now_ns);
        self.n_since_sweep += 1;
        if now_ns - self.now_ns > self.latencies.idle_ns {
            self.collect_while_idle(now_ns);
        }
        if self.n_since_sweep >= SWEEP_INTERVAL {
            self.bring_dies_up_to_date(now_ns);
        }
        self.apply_done(now_ns);
        self.now_ns = now_ns;
    }

    fn bring_dies_up_to_date(&mut self, now_ns: u64) {
        self.n_since_sweep = 0;
        self.nand.advance_all(now_ns);
        self.link_out.forget_before(now_ns);
        self.link_in.forget_before(now_ns);
    }

    /// What the dies do in a silence, in order of time: without power protection one die
    /// may have to wait for what another programs.
    #[cold]
    fn collect_while_idle(&mut self, now_ns: u64) {
        let idle_from = self.now_ns + self.latencies.idle_ns;
        let dies = 0..self.ftl.config().geo.n_dies() as u16;
        let mut turns: BinaryHeap<_> = dies.map(|die| Reverse((idle_from, die))).collect();
        while let Some(Reverse((from, die))) = turns.pop() {
            let id = DieId(die);
            self.nand.advance(id, now_ns);
            let start = self.nand.idle_from(id).map_or(u64::MAX, |free| free.max(from));
            if start >= now_ns {
                continue;
            }
            if start > from {
                turns.push(Reverse((start, die)));
                continue;
            }
            self.apply_done(start);
            if self.ftl.collect_idle(id, start, &mut self.nand) {
                turns.push(Reverse((start, die)));
                continue;
            }
            // Nothing for now; data may become too old later in the silence.
            if let Some(at) = self.ftl.next_age_look_ns(id).filter(|&at| start < at) {
                turns.push(Reverse((at, die)));
            }
        }
        self.n_since_sweep = SWEEP_INTERVAL;
    }

    #[inline]
    pub(crate) fn apply_done(&mut self, now_ns: u64) {
        while let Some(done) = self.nand.pop_done(now_ns) {
            self.apply(&done);
        }
    }

    #[inline]
    fn apply(&mut self, done: &Done) {
        self.ftl.on_done(done);
        if let DoneKind::Program { n_buffered } = done.kind {
            self.buffer_used -= u32::from(n_buffered);
        }
    }

    fn read(&mut self, lba: Lba, sectors: u32, now_ns: u64) -> u64 {
        let bytes = sectors * SECTOR_BYTES as u32;
        let latency =
            if bytes <= 4096 { self.latencies.read_4k_ns } else { self.latencies.read_ns };
        let start_ns = now_ns + latency;
        let first = self.lpn(lba);
        let last = self.lpn(Lba(lba.0 + u64::from(sectors) - 1));
        let mut left = bytes;
        let mut unit_left = bytes;
        let unit_bytes = self.ftl.config().geo.unit_bytes;
        let mut done_ns = start_ns;
        let mut buffered = 0;
        let mut reads = std::mem::take(&mut self.reads);
        reads.clear();
        for lpn in first.0..=last.0 {
            // The host link carries what was asked for, not whole units.
            let part = unit_left.min(unit_bytes);
            unit_left -= part;
            match self.on_media(Lpn(lpn), start_ns) {
                Some(place) => self.add_sense(&mut reads, &place),
                None => buffered += part,
            }
        }
        for sense in &reads {
            let (link, ps) = (&mut self.link_out, self.latencies.link_ps_per_byte);
            self.nand.read(&sense.page, start_ns, |end_ns, n| {
                let n = n.min(left);
                left -= n;
                done_ns = done_ns.max(link.book(end_ns, transfer_ns(n, ps)));
            });
        }
        if self.ftl.counts_reads() {
            for sense in &reads {
                let (block, die) = (sense.key.0, sense.page.die);
                self.ftl.note_read(die, block, start_ns, &mut self.nand);
            }
        }
        self.reads = reads;
        let buffered = buffered.min(left);
        if buffered > 0 {
            let ns = transfer_ns(buffered, self.latencies.link_ps_per_byte);
            done_ns = done_ns.max(self.link_out.book(start_ns, ns));
        }
        done_ns
    }

    /// Where `lpn` has to be sensed; `None`: unmapped or buffered.
    #[inline]
    fn on_media(&mut self, lpn: Lpn, at_ns: u64) -> Option<Place> {
        let ppn = self.ftl.lookup(lpn)?;
        let place = self.ftl.place(ppn);
        if place.on_media {
            return Some(place);
        }
        // Its program may have ended in the meantime.
        self.nand.advance(place.die, at_ns);
        self.apply_done(at_ns);
        let place = self.ftl.place(ppn);
        self.buffer_hits += u64::from(!place.on_media);
        place.on_media.then_some(place)
    }

    /// Adds a unit to the pages a command reads; units of one page (or of one page
    /// in several planes, where the die senses as a whole) share a sense.
    #[inline]
    fn add_sense(&self, reads: &mut Vec<Sense>, place: &Place) {
        let page_key = if self.nand.timing().independent_plane_reads {
            place.page_idx
        } else {
            place.page_idx - u32::from(place.page.plane)
        };
        let key = (place.block.0, page_key);
        let page = self.page_read(place);
        match reads.iter_mut().rev().find(|s| s.key == key) {
            Some(same) => {
                same.page.bytes += page.bytes;
                same.page.planes |= page.planes;
            }
            None => reads.push(Sense { key, page }),
        }
    }

    /// The read of one unit.
    #[inline]
    fn page_read(&self, place: &Place) -> PageRead {
        PageRead {
            die: place.die,
            block: place.block,
            row: place.page_idx - u32::from(place.page.plane),
            planes: 1 << place.page.plane,
            mode: self.ftl.layout().mode,
            page: place.page,
            bytes: self.ftl.config().geo.unit_bytes,
            retries: self.ftl.read_retries(place.block, place.page_idx),
        }
    }

    fn write(
        &mut self,
        lba: Lba,
        sectors: u32,
        fua: bool,
        hint: &WriteHint,
        data: Option<&[u8]>,
        now_ns: u64,
    ) -> Result<u64, CommandError> {
        let bytes = sectors * SECTOR_BYTES as u32;
        let l = &self.latencies;
        let latency = l.write_ns + l.write_4k_ns * u64::from(bytes.div_ceil(4096));
        let moved = transfer_ns(bytes, l.link_ps_per_byte);
        let link = if self.full_duplex { &mut self.link_in } else { &mut self.link_out };
        let mut at_ns = link.book(now_ns + latency, moved);
        let prev = match hint.relation {
            Relation::Append { prev } if prev.0 < self.capacity_sectors() => Some(self.lpn(prev)),
            _ => None,
        };
        let per_unit = self.sectors_per_unit();
        let n_units = (lba.0 + u64::from(sectors)).div_ceil(per_unit) - lba.0 / per_unit;
        let mut ctx = self.ftl.begin_write(hint, prev, n_units as u32);
        if u64::from(sectors) == per_unit && lba.0.is_multiple_of(per_unit) && data.is_none() {
            // By far the most common write: one whole unit.
            at_ns = self.write_unit(&mut ctx, self.lpn(lba), bytes, None, at_ns);
            return Ok(if fua { self.force(lba, lba.0 + per_unit, at_ns) } else { at_ns });
        }
        let (mut sector, end) = (lba.0, lba.0 + u64::from(sectors));
        while sector < end {
            let unit_end = (sector | (per_unit - 1)) + 1;
            let n = unit_end.min(end) - sector;
            let lpn = self.lpn(Lba(sector));
            let host_bytes = (n * SECTOR_BYTES) as u32;
            let merged = match data {
                None => None,
                Some(d) => {
                    let from = ((sector - lba.0) * SECTOR_BYTES) as usize;
                    let part = &d[from..from + host_bytes as usize];
                    Some(self.merge(lpn, sector & (per_unit - 1), part)?)
                }
            };
            at_ns = self.write_unit(&mut ctx, lpn, host_bytes, merged.as_deref(), at_ns);
            sector += n;
            if sector < end {
                // It may have lost its last spare block; the rest has no place then.
                self.check_writable()?;
            }
        }
        Ok(if fua { self.force(lba, end, at_ns) } else { at_ns })
    }

    /// Writes `host_bytes` of one unit; when it is in the buffer \[ns\].
    #[inline]
    fn write_unit(
        &mut self,
        ctx: &mut WriteContext,
        lpn: Lpn,
        host_bytes: u32,
        data: Option<&[u8]>,
        mut at_ns: u64,
    ) -> u64 {
        if self.buffer_used >= self.buffer_units {
            at_ns = self.wait_for_buffer(at_ns);
        }
        if host_bytes < self.ftl.config().geo.unit_bytes && !self.ftl.will_coalesce(lpn) {
            at_ns = self.read_old(lpn, at_ns);
        }
        let placed = self.ftl.write_unit(ctx, lpn, host_bytes, data, at_ns, &mut self.nand);
        self.buffer_used += u32::from(placed);
        at_ns
    }

    /// Waits until the buffer takes another unit.
    fn wait_for_buffer(&mut self, mut at_ns: u64) -> u64 {
        self.buffer_waits += 1;
        while self.buffer_used >= self.buffer_units {
            match self.nand.pop_next() {
                Some(done) => {
                    at_ns = at_ns.max(done.end_ns);
                    self.apply(&done);
                }
                None => {
                    let sent = self.ftl.program_oldest_open(at_ns, &mut self.nand);
                    assert!(sent, "a full buffer holds units that can be programmed");
                }
            }
        }
        at_ns
    }

    /// A unit is written in part: its old contents have to be read first.
    fn read_old(&mut self, lpn: Lpn, at_ns: u64) -> u64 {
        let Some(place) = self.on_media(lpn, at_ns) else {
            return at_ns;
        };
        self.rmw_reads += 1;
        let mut end_ns = at_ns;
        self.nand.read(&self.page_read(&place), at_ns, |end, _| end_ns = end_ns.max(end));
        end_ns
    }

    /// Force unit access: programs the units of sectors `lba..end`, unless the buffer
    /// is as good; when that is done \[ns\].
    fn force(&mut self, lba: Lba, end: u64, at_ns: u64) -> u64 {
        if self.ftl.config().power_protected {
            return at_ns;
        }
        let mut done_ns = at_ns;
        for lpn in self.lpn(lba).0..=self.lpn(Lba(end - 1)).0 {
            if let Some(die) = self.ftl.program_now(Lpn(lpn), at_ns, &mut self.nand) {
                done_ns = done_ns.max(self.nand.run_programs(die));
            }
        }
        done_ns
    }

    fn flush(&mut self, now_ns: u64) -> u64 {
        let start_ns = now_ns + self.latencies.write_ns;
        if self.ftl.config().power_protected {
            return start_ns;
        }
        let mut done_ns = self.ftl.flush(start_ns, &mut self.nand);
        for die in 0..self.ftl.config().geo.n_dies() as u16 {
            done_ns = done_ns.max(self.nand.run_programs(DieId(die)));
        }
        done_ns
    }

    fn trim(&mut self, lba: Lba, sectors: u32, now_ns: u64) -> u64 {
        let per_unit = self.sectors_per_unit();
        let first = lba.0.div_ceil(per_unit) as u32;
        let end = ((lba.0 + u64::from(sectors)) / per_unit) as u32;
        if first < end {
            self.ftl.trim(Lpn(first), end - first);
        }
        now_ns + self.latencies.write_ns
    }

    /// Whole units are unmapped, the edges written.
    fn write_zeroes(&mut self, lba: Lba, sectors: u32, now_ns: u64) -> Result<u64, CommandError> {
        let per_unit = self.sectors_per_unit();
        let end = lba.0 + u64::from(sectors);
        let (inner, inner_end) = (lba.0.div_ceil(per_unit) * per_unit, end / per_unit * per_unit);
        let mut done_ns = self.trim(lba, sectors, now_ns);
        let edges = if inner >= inner_end {
            // Within one unit, or two parts of neighbouring units.
            let cut = inner.min(end);
            [(lba.0, cut), (cut, end)]
        } else {
            [(lba.0, inner), (inner_end, end)]
        };
        for (from, to) in edges {
            if from < to {
                let n = (to - from) as u32;
                let keeps_contents = !matches!(self.keeps(), Contents::None);
                let zeros = keeps_contents.then(|| vec![0u8; n as usize * SECTOR_BYTES as usize]);
                let hint = WriteHint::NONE;
                let end = self.write(Lba(from), n, false, &hint, zeros.as_deref(), now_ns)?;
                done_ns = done_ns.max(end);
            }
        }
        Ok(done_ns)
    }
}

#[inline]
fn transfer_ns(bytes: u32, ps_per_byte: u64) -> u64 {
    (u64::from(bytes) * ps_per_byte).div_ceil(1000)
}
