//! Every key of fio, and what becomes of it here.
//!
//! A key either shapes the pattern, or cannot change what a modelled drive sees (it is
//! named in a notice), or is refused with the reason: a key that is silently ignored
//! would be another workload. A key that is none of them is a slip.
//!
//! Source: `fio --cmdhelp=all` of fio 3.33, and options.c of fio's head.

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It shapes the pattern.
    Used,
    /// It changes nothing that the drive sees, for the reason given.
    NoEffect(&'static str),
    /// It would change the pattern in a way that is not supported.
    Refused(&'static str),
}

/// Keys that shape the pattern.
pub(crate) const USED: [&str; 50] = [
    "rw",
    "bs",
    "bsrange",
    "bssplit",
    "ba",
    "size",
    "io_size",
    "offset",
    "offset_increment",
    "loops",
    "number_ios",
    "iodepth",
    "numjobs",
    "rwmixread",
    "rwmixwrite",
    "rw_sequencer",
    "random_distribution",
    "percentage_random",
    "norandommap",
    "randseed",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "rate",
    "rate_iops",
    "rate_process",
    "runtime",
    "time_based",
    "ramp_time",
    "startdelay",
    "stonewall",
    "exitall",
    "exit_what",
    "fsync",
    "fdatasync",
    "end_fsync",
    "fsync_on_close",
    "sync",
    "write_hint",
    "fdp",
    "dataplacement",
    "plids",
    "plid_select",
    "group_reporting",
    "kb_base",
    "nrfiles",
    "zonemode",
    "ioengine",
    "name",
    "include",
];

/// Second names of keys.
const ALIASES: [(&str, &str); 25] = [
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("blockalign", "ba"),
    ("io_limit", "io_size"),
    ("fileoffset", "offset"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
    ("data_placement", "dataplacement"),
    ("fdp_pli", "plids"),
    ("fdp_pli_select", "plid_select"),
    ("nr_files", "nrfiles"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("fill_fs", "fill_device"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("iomem", "mem"),
    ("mem_align", "iomem_align"),
    ("disable_bw", "disable_bw_measurement"),
    ("flow_watermark", "flow"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
];

/// Keys without effect, by reason.
const NO_EFFECT: [(&str, &[&str]); 11] = [
    (
        "all jobs work on the one drive",
        &[
            "filename",
            "directory",
            "filename_format",
            "unique_filename",
            "filetype",
            "opendir",
            "openfiles",
            "file_service_type",
            "lockfile",
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "allow_file_create",
            "allow_mounted_write",
            "fallocate",
            "fadvise_hint",
            "overwrite",
            "unlink",
            "unlink_each_loop",
            "pre_read",
            "file_append",
            "error_dump",
            "dircreate",
        ],
    ),
    ("no page cache is modelled", &["direct", "buffered", "invalidate", "uncached", "atomic"]),
    (
        "the host is a queue and a gap between requests",
        &[
            "thread",
            "cpumask",
            "cpus_allowed",
            "cpus_allowed_policy",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "nice",
            "prio",
            "prioclass",
            "priohint",
            "lockmem",
            "mem",
            "iomem_align",
            "hugepage-size",
            "ioscheduler",
            "cgroup",
            "cgroup_nodelete",
            "cgroup_weight",
            "uid",
            "gid",
            "gtod_reduce",
            "gtod_cpu",
            "clocksource",
            "comm",
            "gpu_dev_id",
            "thinktime_spin",
            "hipri",
            "hipri_percentage",
            "fixedbufs",
            "registerfiles",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "nonvectored",
            "nowait",
            "force_async",
            "userspace_reap",
            "cmd_type",
            "md_per_io_size",
            "pi_act",
            "pi_chk",
            "apptag",
            "apptag_mask",
            "busy_poll",
            "libaio_vectored",
            "single_instance",
            "no_completion_thread",
            "cmdprio_percentage",
            "cmdprio_class",
            "cmdprio",
            "cmdprio_bssplit",
            "cmdprio_hint",
            "exec_prerun",
            "exec_postrun",
        ],
    ),
    (
        "requests are issued one at a time, as soon as the queue has room",
        &[
            "iodepth_batch",
            "iodepth_batch_complete_min",
            "iodepth_batch_complete_max",
            "iodepth_low",
            "io_submit_mode",
            "serialize_overlap",
        ],
    ),
    (
        "contents are not modelled, so nothing is read back",
        &[
            "verify",
            "do_verify",
            "verify_only",
            "verifysort",
            "verifysort_nr",
            "verify_interval",
            "verify_offset",
            "verify_pattern",
            "verify_pattern_interval",
            "verify_fatal",
            "verify_dump",
            "verify_async",
            "verify_async_cpus",
            "verify_backlog",
            "verify_backlog_batch",
            "experimental_verify",
            "verify_state_load",
            "verify_state_save",
            "verify_write_sequence",
            "verify_header_seed",
            "verify_policy",
            "trim_percentage",
            "trim_verify_zero",
            "trim_backlog",
            "trim_backlog_batch",
        ],
    ),
    (
        "contents are not modelled",
        &[
            "zero_buffers",
            "refill_buffers",
            "scramble_buffers",
            "buffer_pattern",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_working_set_percentage",
            "dedupe_global",
        ],
    ),
    ("results repeat by --seed or randseed", &["randrepeat", "allrandrepeat", "random_generator"]),
    ("an order without repetition takes no memory", &["softrandommap"]),
    (
        "nothing stops a job that is slow or fails",
        &[
            "rate_min",
            "rate_iops_min",
            "rate_cycle",
            "max_latency",
            "continue_on_error",
            "ignore_error",
            "exitall_on_error",
        ],
    ),
    (
        "reports are those of replay",
        &[
            "description",
            "new_group",
            "stats",
            "per_job_logs",
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "write_iolog",
            "bwavgtime",
            "iopsavgtime",
            "log_entries",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_window_value",
            "log_max_value",
            "log_offset",
            "log_prio",
            "log_issue_time",
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
            "job_start_clock_id",
            "block_error_percentiles",
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "significant_figures",
            "disk_util",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "unified_rw_reporting",
            "unit_base",
        ],
    ),
    ("zones are not modelled", &["ignore_zone_limits", "read_beyond_wp"]),
];

/// Keys that are refused, by reason.
const REFUSED: [(&str, &[&str]); 14] = [
    ("addresses and lengths are whole sectors of 512 bytes", &["bs_unaligned"]),
    ("lengths depend on the direction only", &["bs_is_seq_rand"]),
    ("say percentage_random=100 minus its value", &["percentage_sequential"]),
    ("say offset as a whole number of blocks", &["offset_align"]),
    ("a job works on one region: say size and offset", &["filesize", "fill_device", "num_range"]),
    (
        "zones are not modelled",
        &[
            "zonesize",
            "zonecapacity",
            "zonerange",
            "zoneskip",
            "max_open_zones",
            "job_max_open_zones",
            "zone_reset_threshold",
            "zone_reset_frequency",
            "recover_zbd_write_error",
            "write_zone_remainder",
        ],
    ),
    (
        "the random map is the only order without repetition",
        &["sprandom", "spr_num_regions", "spr_op", "spr_cs", "random_sequence_stride"],
    ),
    ("say fsync or fdatasync", &["write_barrier", "sync_file_range", "end_syncfs"]),
    ("say stonewall or startdelay", &["wait_for"]),
    ("say ramp_time", &["ramp_size"]),
    (
        "the queue depth and the run time are fixed: say iodepth and runtime",
        &[
            "latency_target",
            "latency_window",
            "latency_percentile",
            "latency_run",
            "steadystate",
            "steadystate_duration",
            "steadystate_ramp_time",
            "steadystate_check_interval",
        ],
    ),
    (
        "pauses are counted in requests: say thinktime_blocks",
        &["thinktime_iotime", "thinkcycles", "rate_ignore_thinktime"],
    ),
    ("jobs do not balance each other: say rate", &["flow", "flow_id", "flow_sleep", "rwmixcycle"]),
    (
        "give the recorded trace to replay itself, or write the pattern out",
        &[
            "read_iolog",
            "read_iolog_chunked",
            "replay_no_stall",
            "replay_redirect",
            "replay_scale",
            "replay_align",
            "replay_time_scale",
            "replay_skip",
            "merge_blktrace_file",
            "merge_blktrace_scalars",
            "merge_blktrace_iters",
            "profile",
            "create_only",
            "dp_scheme",
            "write_mode",
            "readfua",
            "writefua",
            "deac",
        ],
    ),
];

/// The first name of a key, and what becomes of it; `None`: there is no such key.
pub(crate) fn look_up(key: &str) -> Option<(&'static str, Fate)> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, name)| name);
    if let Some(used) = USED.iter().find(|used| **used == name) {
        return Some((used, Fate::Used));
    }
    let find = |lists: &'static [(&str, &[&'static str])]| {
        let found = |(why, keys): &(&'static str, &[&'static str])| {
            keys.iter().find(|known| **known == name).map(|known| (*known, *why))
        };
        lists.iter().find_map(found)
    };
    let without = find(&NO_EFFECT).map(|(known, why)| (known, Fate::NoEffect(why)));
    without.or_else(|| find(&REFUSED).map(|(known, why)| (known, Fate::Refused(why))))
}

/// All names there are, those that shape the pattern first.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    let listed = NO_EFFECT.iter().chain(&REFUSED).flat_map(|(_, keys)| keys.iter().copied());
    USED.into_iter().chain(ALIASES.iter().map(|(alias, _)| *alias)).chain(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_listed_once() {
        let mut names: Vec<&str> = all().collect();
        names.sort_unstable();
        let n = names.len();
        names.dedup();
        assert_eq!(names.len(), n);
        assert!(all().all(|name| look_up(name).is_some()));
    }

    /// The keys that `fio --cmdhelp=all` of 3.33 lists.
    const FIO_3_33: &str = "description name wait_for filename lockfile directory \
        filename_format unique_filename opendir rw bs ba bsrange bssplit bs_unaligned randrepeat \
        randseed norandommap ignore_error rw_sequencer ioengine iodepth iodepth_batch \
        iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low serialize_overlap \
        io_submit_mode size io_size fill_device filesize file_append offset offset_increment \
        offset_align number_ios random_generator random_distribution percentage_random \
        allrandrepeat nrfiles file_service_type openfiles fallocate fadvise_hint fsync fdatasync \
        write_barrier sync_file_range direct atomic buffered overwrite loops numjobs startdelay \
        runtime time_based verify_only ramp_time clocksource mem verify do_verify \
        verify_interval verify_offset verify_pattern verify_fatal verify_dump verify_async \
        verify_backlog verify_backlog_batch experimental_verify verify_state_load \
        verify_state_save trim_percentage trim_verify_zero trim_backlog trim_backlog_batch \
        write_iolog read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale \
        replay_align replay_time_scale replay_skip merge_blktrace_file merge_blktrace_scalars \
        merge_blktrace_iters exec_prerun exec_postrun ioscheduler zonemode zonesize zonecapacity \
        zonerange zoneskip read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits \
        zone_reset_threshold zone_reset_frequency lockmem rwmixread rwmixwrite nice prio \
        prioclass thinktime thinktime_spin thinktime_blocks thinktime_blocks_type \
        thinktime_iotime rate rate_min rate_process rate_cycle rate_ignore_thinktime rate_iops \
        rate_iops_min max_latency latency_target latency_window latency_percentile latency_run \
        invalidate sync write_hint create_serialize create_fsync create_on_open create_only \
        allow_file_create allow_mounted_write pre_read cpumask cpus_allowed cpus_allowed_policy \
        numa_cpu_nodes numa_mem_policy end_fsync fsync_on_close unlink unlink_each_loop exitall \
        exit_what exitall_on_error stonewall new_group thread per_job_logs write_bw_log \
        bwavgtime write_lat_log write_iops_log iopsavgtime log_entries log_avg_msec \
        log_hist_msec log_hist_coarseness write_hist_log log_max_value log_offset log_prio \
        log_compression log_compression_cpus log_store_compressed log_unix_epoch \
        log_alternate_epoch log_alternate_epoch_clock_id block_error_percentiles group_reporting \
        stats zero_buffers refill_buffers scramble_buffers buffer_pattern \
        buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode \
        dedupe_working_set_percentage dedupe_global clat_percentiles lat_percentiles \
        slat_percentiles percentile_list significant_figures disk_util gtod_reduce disable_lat \
        disable_clat disable_slat disable_bw_measurement gtod_cpu unified_rw_reporting \
        continue_on_error error_dump profile cgroup cgroup_nodelete cgroup_weight uid gid \
        kb_base unit_base hugepage-size flow_id flow flow_sleep steadystate \
        steadystate_duration steadystate_ramp_time";

    #[test]
    fn no_key_of_fio_is_unknown() {
        let unknown: Vec<&str> =
            FIO_3_33.split_whitespace().filter(|key| look_up(key).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
