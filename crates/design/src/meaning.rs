//! What each key of a preset means, for people: `device show` and written presets
//! say it beside the value.

/// Unit and meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Unit of the value; empty: none.
    pub unit: &'static str,
    /// One line.
    pub text: &'static str,
}

/// Unit and meaning of `key`, if it is known.
pub fn meaning(key: &str) -> Option<Meaning> {
    let found = MEANINGS.iter().find(|(k, _, _)| *k == key);
    found.map(|&(_, unit, text)| Meaning { unit, text })
}

#[rustfmt::skip]
const MEANINGS: &[(&str, &str, &str)] = &[
    ("name", "", "Name of the drive."),
    ("about", "", "One line on what it stands for."),
    ("geometry.channels", "", "Channels (buses) between controller and flash."),
    ("geometry.dies_per_channel", "", "Dies on each channel."),
    ("geometry.planes", "", "Planes of a die, which program and erase together."),
    ("geometry.blocks_per_plane", "", "Blocks in each plane."),
    ("geometry.pages_per_block", "", "Pages in each block of a plane."),
    ("geometry.page_kib", "KiB", "Data of one page [KiB]."),
    ("flash.native", "", "Bits per cell: slc, mlc, tlc or qlc."),
    ("flash.page_order", "", "How page types follow each other: one-shot, alternate or shared."),
    ("flash.read_us", "us", "Sense of a page, by page type, LSB first; one value: all alike [us]."),
    ("flash.read_4k_us", "us", "Sense where at most 4 KiB of the page are wanted [us]."),
    ("flash.program_us", "us", "Program of one program unit, by the type of its first page [us]."),
    ("flash.erase_us", "us", "Erase of a block [us]."),
    ("flash.endurance", "cycles", "Program / erase cycles a block is good for."),
    ("flash.channel_mb_s", "MB/s", "Rate of one channel [MB/s]."),
    ("flash.channel_chunk_kib", "KiB", "Largest part of a page that crosses the channel in one piece [KiB]."),
    ("flash.cache_read", "", "The next sense overlaps the transfer of the last page."),
    ("flash.cache_program", "", "The next transfer overlaps the program of the last unit."),
    ("flash.independent_plane_reads", "", "Planes sense different pages at the same time."),
    ("flash.suspend_program_us", "us", "Delay of a read that suspends a program; negative: it waits [us]."),
    ("flash.suspend_erase_us", "us", "Delay of a read that suspends an erase; negative: it waits [us]."),
    ("flash.suspends_max", "", "Times one operation may be suspended."),
    ("slc.read_us", "us", "Sense of a page in SLC mode [us]."),
    ("slc.program_us", "us", "Program of one page per plane in SLC mode [us]."),
    ("slc.erase_us", "us", "Erase of a block in SLC mode [us]."),
    ("slc.endurance", "cycles", "Cycles a block is good for in SLC mode."),
    ("link.mb_s", "MB/s", "Rate of the host link [MB/s]."),
    ("link.full_duplex", "", "Both directions at once."),
    ("firmware.read_us", "us", "Controller latency of a read [us]."),
    ("firmware.read_4k_us", "us", "Controller latency of a read of at most 4 KiB [us]."),
    ("firmware.write_us", "us", "Controller latency of a write [us]."),
    ("firmware.write_4k_us", "us", "Added for each 4 KiB written [us]."),
    ("buffer.kib", "KiB", "Write buffer [KiB]."),
    ("buffer.power_protected", "", "The write buffer survives a power failure."),
    ("buffer.coalesce", "", "A unit rewritten while its program unit still fills takes no new place."),
    ("ftl.unit_kib", "KiB", "Mapping unit: what one entry of the map covers [KiB]."),
    ("ftl.over_provisioning", "", "Spare per exported byte, reserve excluded; used where capacity_mib is 0."),
    ("ftl.capacity_mib", "MiB", "Exported capacity; 0: from over_provisioning [MiB]."),
    ("ftl.handles", "", "Placement handles (streams)."),
    ("ftl.victim", "", "Which block is collected: greedy, cost-benefit or fifo."),
    ("ftl.gc_low_blocks", "blocks", "Free blocks of a die below which host writes pay for collection."),
    ("ftl.gc_high_blocks", "blocks", "Free blocks of a die up to which idle time is used."),
    ("ftl.idle_us", "us", "Silence after which the drive is idle [us]."),
    ("ftl.yield_percent", "percent", "How far below the mean the slack of a die may lie before writes pass it over [percent]."),
    ("ftl.yield_erases", "erases per block", "Lead of a die over the mean of all dies at which hinted writes pass it over."),
    ("ftl.yield_programs", "program units", "Of the write buffer, kept for each other die: hinted writes pass over a die for which the rest waits; 0: none."),
    ("ftl.grain_kib", "KiB", "What goes to one die before the next one is due; 0: a program unit [KiB]."),
    ("ftl.chain_kib", "KiB", "Write buffer for pieces that chain keeps for their slot; at most half of it [KiB]."),
    ("wear.leveling", "", "How erases are spread over blocks: none, dynamic or static."),
    ("wear.gap_max", "erases", "Lag of the least worn block of a die at which its data moves (static)."),
    ("wear.scrub_reads", "", "Senses in a block since its erase after which its data moves; 0: never."),
    ("wear.scrub_hours", "h", "Age of data after which it moves; 0: never [h]."),
    ("faults.seed", "", "Seed of all failures."),
    ("faults.factory_bad_ppm", "ppm", "Blocks that are bad from the start [ppm]."),
    ("faults.program_fail_ppm", "ppm", "Programs that fail [ppm]."),
    ("faults.erase_fail_ppm", "ppm", "Erases that fail [ppm]."),
    ("faults.read_retry_ppm", "ppm", "Pages that need another sense; as many of those a third, and so on [ppm]."),
    ("faults.read_retries_max", "", "Most additional senses of one read."),
    ("faults.worn_factor", "", "Growth of these chances over the endurance of a block."),
    ("host.mdts_kib", "KiB", "Largest command; longer requests are cut [KiB]."),
    ("host.gap_us", "us", "Host time between a completion and the next request of a closed loop [us]."),
    ("precondition.occupancy", "", "Part of the exported space that ageing fills [0..1]."),
    ("precondition.overwrite", "", "Ageing overwrites: random or none."),
    ("precondition.tolerance_percent", "percent", "Windows of write amplification this close are steady [percent]."),
    ("precondition.window_drive_writes", "drive writes", "Length of such a window [drive writes]."),
    ("precondition.drive_writes_max", "drive writes", "Overwrites after which ageing gives up [drive writes]."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use flashwise_ssd::KEYS;

    #[test]
    fn every_key_has_a_meaning_and_its_unit() {
        for key in KEYS {
            let m = meaning(key).unwrap_or_else(|| panic!("MEANINGS lacks {key}"));
            assert!(m.text.ends_with('.'), "{key}");
            for (end, unit) in [
                ("_us", "us"),
                ("kib", "KiB"),
                ("_mib", "MiB"),
                ("mb_s", "MB/s"),
                ("_percent", "percent"),
            ] {
                assert!(!key.ends_with(end) || m.unit == unit, "{key}: {}", m.unit);
            }
        }
        assert_eq!(MEANINGS.len(), KEYS.len());
        assert_eq!(meaning("no.key"), None);
    }
}
