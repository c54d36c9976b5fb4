//! fio job files: what they mean, and that every slip is answered with its line.

use std::io;
use std::path::Path;

use flashwise_workload::{
    Direction, FioFile, Handles, JobPlan, JobSpec, JobTarget, Mix, Rate, Sequencer, Sizes, Spread,
    Think, WorkloadError, Zone, oracle, parse_fio_file, read_fio_file,
};

const GIB: u64 = 1 << 30;
/// A 32 GiB drive \[sectors\].
const DRIVE: u64 = 32 * GIB / 512;
const TARGET: JobTarget =
    JobTarget { capacity_sectors: DRIVE, n_handles: 4, seed: 1, queue_depth: None };

/// Files that jobs may include.
fn files(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str() {
        Some("common.inc") => Ok(b"bs=8k\niodepth=7 ; deep\n".to_vec()),
        Some("dir/a.inc") => Ok(b"include b.inc\n".to_vec()),
        Some("dir/b.inc") => Ok(b"bs=16k\n".to_vec()),
        Some("circle.inc") => Ok(b"include=circle.inc\n".to_vec()),
        Some("bad.inc") => Ok(b"bs=8k\nbs=wide\n".to_vec()),
        Some("section.inc") => Ok(b"[more]\n".to_vec()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

fn parse_at(path: &str, text: &str) -> Result<FioFile, WorkloadError> {
    let env = |name: &str| (name == "DEPTH").then(|| "16".to_owned());
    parse_fio_file(Path::new(path), text.as_bytes(), &env, &files)
}

fn parse(text: &str) -> Result<FioFile, WorkloadError> {
    parse_at("t.fio", text)
}

fn plan(text: &str) -> JobPlan {
    parse(text).unwrap().jobs(&TARGET).unwrap()
}

/// The only job of a file with these keys.
fn job(keys: &str) -> JobSpec {
    let mut plan = plan(&format!("[a]\n{keys}"));
    assert_eq!(plan.specs.len(), 1);
    plan.specs.remove(0)
}

fn check(error: &WorkloadError, line: u64, parts: &[&str]) {
    let message = error.to_string();
    assert!(message.starts_with(&format!("t.fio:{line}: ")), "{message}");
    assert_eq!(error.line(), Some(line));
    for part in parts {
        assert!(message.contains(part), "no «{part}» in: {message}");
    }
}

fn bad(text: &str, line: u64, parts: &[&str]) {
    check(&parse(text).unwrap_err(), line, parts);
}

/// Parses, but not on this drive.
fn unfit(text: &str, line: u64, parts: &[&str]) {
    check(&parse(text).unwrap().jobs(&TARGET).unwrap_err(), line, parts);
}

#[test]
fn golden_job() {
    let text = "; steady state\n[global]\nioengine=io_uring   # not modelled\ndirect=1\nbs=8k\n\n\
                [mixed]\nrw=randrw\nbs=4K\nrwmixread=10\nrwmixwrite=30\niodepth=${DEPTH}\n\
                offset=1g\nsize=50%\nio_size=2g\nloops=2\nrandom_distribution=zipf:1.1\n\
                norandommap\nrandseed=9\ngroup_reporting\n";
    let file = parse(text).unwrap();
    assert_eq!(file.notices().len(), 2, "{:?}", file.notices());
    assert!(file.notices()[0].contains("line 3") && file.notices()[0].contains("ioengine"));
    assert!(file.notices()[1].contains("line 4") && file.notices()[1].contains("direct"));
    let plan = file.jobs(&TARGET).unwrap();
    assert_eq!(plan.names, ["mixed"]);
    let job = &plan.specs[0];
    let s = &job.stream;
    assert_eq!((job.queue_depth, s.mix, s.seed), (16, Mix::ReadPercent(70), 9));
    assert_eq!((s.region_start, s.region_sectors), (GIB / 512, DRIVE / 2));
    assert_eq!((s.limit_bytes, s.sequential), (Some(4 * GIB), false));
    assert_eq!(s.sizes, [const { Sizes::Fixed(8) }; 3]);
    assert_eq!(s.spread, Spread::Zipf { theta: 1.1, center: None });
    assert!(job.is_plain() && !s.random_map);
}

#[test]
fn defaults_are_those_of_fio() {
    let target = JobTarget { capacity_sectors: 1001, seed: 7, ..TARGET };
    let plan = parse("[a job]\n").unwrap().jobs(&target).unwrap();
    let job = &plan.specs[0];
    let s = &job.stream;
    assert_eq!((job.name.as_str(), job.queue_depth), ("a job", 1));
    assert_eq!((s.mix, s.sequential, s.seed), (Mix::Only(Direction::Read), true, 7));
    assert_eq!((s.region_start, s.region_sectors), (0, 1001));
    // The tail that is shorter than a block is not touched.
    assert_eq!(job.synthetic().unwrap().n_requests, Some(125));
    let job = self::job("rw=randrw\nname=b\n");
    assert_eq!((job.name.as_str(), job.stream.mix), ("b", Mix::ReadPercent(50)));
    assert!(job.stream.random_map && job.synthetic().is_none());
}

#[test]
fn every_mode_of_rw_is_its_pattern() {
    use Direction::{Read, Trim, Write};
    for (mode, mix, sequential) in [
        ("read", Mix::Only(Read), true),
        ("write", Mix::Only(Write), true),
        ("trim", Mix::Only(Trim), true),
        ("randread", Mix::Only(Read), false),
        ("randwrite", Mix::Only(Write), false),
        ("randtrim", Mix::Only(Trim), false),
        ("rw", Mix::ReadPercent(50), true),
        ("readwrite", Mix::ReadPercent(50), true),
        ("randrw", Mix::ReadPercent(50), false),
        ("trimwrite", Mix::TrimWrite, true),
        ("randtrimwrite", Mix::TrimWrite, false),
    ] {
        let s = job(&format!("rw={mode}\n")).stream;
        assert_eq!((s.mix, s.sequential), (mix, sequential), "{mode}");
    }
    let sequencer = |identical| Some(Sequencer { every: 8, identical });
    assert_eq!(job("rw=randread:8\n").stream.sequencer, sequencer(false));
    let keys = "rw=randwrite:8\nrw_sequencer=identical\n";
    assert_eq!(job(keys).stream.sequencer, sequencer(true));
    assert_eq!(job("rw=write:8k\n").stream.gap_sectors, 16);
}

#[test]
fn block_sizes_by_direction_ranges_and_splits() {
    let sizes = |keys: &str| job(&format!("rw=randrw\n{keys}")).stream.sizes;
    let fixed = |[r, w, t]: [u32; 3]| [Sizes::Fixed(r), Sizes::Fixed(w), Sizes::Fixed(t)];
    assert_eq!(sizes("bs=8k\n"), fixed([16; 3]));
    assert_eq!(sizes("bs=8k,16k\n"), fixed([16, 32, 32]));
    assert_eq!(sizes("bs=,16k,\n"), fixed([8, 32, 8]));
    assert_eq!(sizes("bsrange=16k-4k,1k-2k\n")[0], Sizes::Range { min: 8, max: 32 });
    assert_eq!(sizes("bsrange=16k-4k,1k-2k\n")[2], Sizes::Range { min: 2, max: 4 });
    let split = Sizes::Split(vec![(8, 60), (128, 40)]);
    // A split counts, wherever it stands.
    assert_eq!(sizes("bssplit=4k/60:64k/40\nbsrange=1k-2k\nbs=8k\n")[1], split);
    assert_eq!(sizes("bssplit=4k,64k/60:8k/40\n")[0], Sizes::Fixed(8));
    let s = job("rw=randread\nbs=16k\nba=4k\n").stream;
    assert_eq!((s.align, s.random_map), ([8; 3], false));
}

#[test]
fn regions_sizes_and_limits() {
    let limit = |keys: &str| job(&format!("rw=write\nsize=1m\n{keys}")).stream.limit_bytes;
    assert_eq!(limit(""), Some(1 << 20));
    assert_eq!(limit("loops=3\n"), Some(3 << 20));
    assert_eq!(limit("io_size=50%\n"), Some(1 << 19));
    assert_eq!(limit("runtime=5\ntime_based\n"), None);
    let job = self::job("rw=write\nsize=1m\nio_size=4m\nnumber_ios=100\n");
    assert_eq!(job.synthetic().unwrap().n_requests, Some(100));
    // fio goes on until it has transferred at least io_size.
    let job = self::job("rw=write\nsize=1m\nio_size=10k\n");
    assert_eq!(job.synthetic().unwrap().n_requests, Some(3));
    let s = self::job("offset=75%\nsize=50%\n").stream;
    assert_eq!((s.region_start, s.region_sectors), (DRIVE / 4 * 3, DRIVE / 4));
    let plan = plan("[a]\nnumjobs=3\noffset=1g\noffset_increment=2g\nsize=1g\n");
    let starts: Vec<u64> = plan.specs.iter().map(|s| s.stream.region_start).collect();
    assert_eq!(starts, [GIB / 512, 3 * GIB / 512, 5 * GIB / 512]);
    assert_eq!(plan.names, ["a.0", "a.1", "a.2"]);
    assert_ne!(plan.specs[0].stream.seed, plan.specs[1].stream.seed);
}

#[test]
fn times_rates_pauses_and_flushes() {
    let job = self::job(
        "rw=randwrite\nruntime=30\ntime_based=1\nramp_time=500ms\nstartdelay=2\nthinktime=100\n\
         thinktime_blocks=8\nthinktime_blocks_type=issue\nrate=1m,500k\nfsync=32\nfdatasync=4\n\
         end_fsync=1\nsync=dsync\nrate_process=poisson\nexitall\n",
    );
    assert_eq!((job.runtime_ns, job.ramp_ns), (Some(30_000_000_000), 500_000_000));
    assert_eq!(job.start_delay_ns, 2_000_000_000);
    let think = Think { pause_ns: 100_000, every: 8, by_issue: true };
    assert_eq!(job.think, Some(think));
    let (read, write) = (Rate::Bytes(1 << 20), Rate::Bytes(500 << 10));
    assert_eq!(job.rates, [Some(read), Some(write), Some(write)]);
    let s = &job.stream;
    assert_eq!((s.flush_every, s.flush_at_end, s.fua), ([Some(32), Some(4)], true, true));
    assert!(job.poisson && job.exit_all && !job.is_plain());
    let rates = self::job("rate_iops=,200\n").rates;
    assert_eq!(rates, [None, Some(Rate::Requests(200)), Some(Rate::Requests(200))]);
    let delays: Vec<u64> = plan("[a]\nnumjobs=50\nstartdelay=1-2\nsize=1m\n")
        .specs
        .iter()
        .map(|spec| spec.start_delay_ns)
        .collect();
    assert!(delays.iter().all(|ns| (1_000_000_000..=2_000_000_000).contains(ns)));
    assert!(delays.iter().max() > delays.iter().min());
}

#[test]
fn distributions_of_random_addresses() {
    let spread = |text: &str| {
        job(&format!("rw=randread\nsize=100m\nrandom_distribution={text}\n")).stream.spread
    };
    assert_eq!(spread("random"), Spread::Uniform);
    assert_eq!(spread("zipf:1.2:0.5"), Spread::Zipf { theta: 1.2, center: Some(0.5) });
    assert_eq!(spread("pareto:0.3"), Spread::Pareto { h: 0.3, center: None });
    let normal = Spread::Normal { deviation_percent: 20.0, center: None };
    assert_eq!(spread("normal:20"), normal);
    let zones = vec![
        Zone { percent: 60, start: 0, end: 20_480 },
        Zone { percent: 40, start: 20_480, end: 204_800 },
    ];
    let Spread::Zoned(found) = spread("zoned:60/10:40/90") else { panic!() };
    assert_eq!(found[1], zones);
    let Spread::Zoned(found) = spread("zoned_abs:60/10m:40/90m,100/1m,100/2m") else { panic!() };
    assert_eq!(found[0], zones);
    assert_eq!(found[2], [Zone { percent: 100, start: 0, end: 4096 }]);
    let s = job("rw=randrw\npercentage_random=80,20\n").stream;
    assert_eq!(s.random_percent, [80, 20, 20]);
}

#[test]
fn sections_inherit_from_the_globals_above_and_stonewalls_part_groups() {
    let plan = plan(
        "[global]\nsize=1m\nbs=8k\n[a]\n[b]\nnumjobs=2\nbs=16k\n[global]\nbs=32k\n[c]\nstonewall\n\
         [d]\nbs=4k\n[e]\nwait_for_previous\nnumjobs=2\ngroup_reporting\n",
    );
    let sizes: Vec<u32> = plan.specs.iter().map(|spec| spec.stream.sizes[0].min()).collect();
    assert_eq!(sizes, [16, 32, 32, 64, 8, 64, 64]);
    let groups: Vec<u32> = plan.specs.iter().map(|spec| spec.group).collect();
    assert_eq!(groups, [0, 0, 0, 1, 1, 2, 2]);
    let rows: Vec<u32> = plan.specs.iter().map(|spec| spec.row).collect();
    assert_eq!(rows, [0, 1, 2, 3, 4, 5, 5]);
    assert_eq!(plan.names, ["a", "b.0", "b.1", "c", "d", "e x 2"]);
}

#[test]
fn included_files_stand_in_the_place_of_their_line() {
    let s = job("include common.inc\nsize=1m\n");
    assert_eq!((s.queue_depth, s.stream.sizes[0].clone()), (7, Sizes::Fixed(16)));
    let s = job("include common.inc\nbs=4k\nsize=1m\n");
    assert_eq!(s.stream.sizes[0], Sizes::Fixed(8));
    // Names are relative to the file that includes.
    let file = parse_at("dir/t.fio", "[a]\ninclude a.inc\n").unwrap();
    assert_eq!(file.jobs(&TARGET).unwrap().specs[0].stream.sizes[0], Sizes::Fixed(32));
    bad("[a]\ninclude no.inc\n", 2, &["`include`", "no.inc", "relative to the file"]);
    bad("[a]\ninclude\n", 2, &["`include`", "the name of a file"]);
    let error = parse("[a]\ninclude bad.inc\n").unwrap_err().to_string();
    assert!(error.starts_with("bad.inc:2: key `bs`"), "{error}");
    let error = parse("[a]\ninclude circle.inc\n").unwrap_err().to_string();
    assert!(error.contains("circle") && error.contains("16 deep"), "{error}");
    let error = parse("[a]\ninclude section.inc\n").unwrap_err().to_string();
    assert!(error.starts_with("section.inc:1:") && error.contains("keys only"), "{error}");
}

#[test]
fn handles_come_from_hints_and_placement() {
    let handles = |keys: &str| job(&format!("rw=write\n{keys}")).stream.handles;
    assert_eq!(handles(""), Handles::One(0));
    assert_eq!(handles("write_hint=none\n"), Handles::One(0));
    assert_eq!(handles("write_hint=medium\n"), Handles::One(2));
    assert_eq!(handles("fdp=1\n"), Handles::RoundRobin(vec![0, 1, 2, 3]));
    assert_eq!(handles("fdp=1\nfdp_pli=1,3\n"), Handles::RoundRobin(vec![1, 3]));
    let random = "dataplacement=streams\nplids=1-2\nplid_select=random\n";
    assert_eq!(handles(random), Handles::Random(vec![1, 2]));
    assert_eq!(handles("fdp=1\nplids=2\n"), Handles::One(2));
    // Identifiers without placement mean nothing, as in fio.
    assert_eq!(handles("plids=9\n"), Handles::One(0));
    let lacks = ["`plids`", "handle 4 of job «log»", "the drive has 4", "ftl.handles=6"];
    unfit("[log]\nrw=write\nfdp=1\nplids=1-5\n", 4, &lacks);
    unfit("[log]\nrw=write\nwrite_hint=extreme\n", 3, &["`write_hint`", "handle 4", "«log»"]);
    unfit("[log]\nrw=write\ndataplacement=streams\n", 3, &["`dataplacement`", "plids"]);
    job("rw=read\nwrite_hint=extreme\n");
    bad("[a]\nfdp=1\nplid_select=scheme\n", 3, &["`plid_select`", "roundrobin or random"]);
    bad("[a]\nwrite_hint=forever\n", 2, &["none, short, medium, long or extreme"]);
}

#[test]
fn unknown_and_unsupported_keys_are_named() {
    bad("[a]\niodpeth=4\n", 2, &["`iodpeth`", "did you mean `iodepth`?"]);
    bad("[a]\nmoonphase=4\n", 2, &["`moonphase`", "one of: rw, bs,"]);
    bad("[a]\nrandom_distributon=zipf:1.2\n", 2, &["did you mean `random_distribution`?"]);
    bad("[a]\nrw=read\nzonesize=1m\n", 3, &["`zonesize`", "zones are not modelled", "remove"]);
    bad("[a]\nlatency_target=5ms\n", 2, &["`latency_target`", "iodepth and runtime"]);
    bad("[a]\nread_iolog=x\n", 2, &["`read_iolog`", "trace"]);
    bad("[a]\nwait_for=b\n", 2, &["`wait_for`", "stonewall"]);
    bad("[a]\nzonemode=zbd\n", 2, &["`zonemode`", "expected none"]);
    bad("[a]\nioengine=cpuio\n", 2, &["`ioengine`", "reads and writes blocks"]);
    bad("[a]\nnrfiles=4\n", 2, &["`nrfiles`", "expected 1"]);
}

#[test]
fn keys_without_effect_are_noticed_with_the_reason() {
    let file = parse(
        "[global]\nverify=crc32c\ndirect=1\n[a]\nfilename=/dev/nvme0n1\nioengine=psync\niodepth=8\n\
         [b]\nfilename=/dev/nvme1n1\nrw=write\nrandom_distribution=zipf:1.2\nrate_min=1m\n",
    );
    let file = file.unwrap();
    let all = file.notices().join("\n");
    for part in [
        "line 2: `verify` has no effect here: contents are not modelled, so nothing is read back",
        "line 3: `direct` has no effect here: no page cache",
        "line 7: with ioengine=psync fio keeps one request in flight",
        "line 11: `random_distribution` has no effect on a sequential pattern",
        "line 12: `rate_min` has no effect here",
        "the jobs name different files",
    ] {
        assert!(all.contains(part), "no «{part}» in:\n{all}");
    }
}

#[test]
fn bad_values_say_what_is_expected() {
    for (line, parts) in [
        ("rw=erase", &["`rw`", "randtrimwrite", "«erase»"][..]),
        ("rw=write:-4k", &["`rw`", "not negative"]),
        ("bs=1000", &["`bs`", "multiple of 512"]),
        ("bs=4k,8k,16k,32k", &["`bs`", "one to three values"]),
        ("bs=0", &["multiple of 512"]),
        ("bs=4KiB", &["kb_base=1024"]),
        ("bsrange=4k", &["`bsrange`", "4k-64k"]),
        ("bssplit=4k/60:8k/60", &["`bssplit`", "add up to 100"]),
        ("size=101%", &["`size`", "0% to 100%"]),
        ("size=-1", &["`size`", "«-1»"]),
        ("io_size=99999999p", &["`io_size`", "below 2^64"]),
        ("iodepth=0", &["`iodepth`", "from 1 to 65535"]),
        ("rwmixread=101", &["from 0 to 100"]),
        ("random_distribution=gauss:3", &["zipf:theta"]),
        ("random_distribution=zipf:1", &["not 1"]),
        ("random_distribution=zoned:50/50", &["add up to 100"]),
        ("norandommap=maybe", &["1 or 0"]),
        ("numjobs=0", &["`numjobs`", "from 1 to 4096"]),
        ("runtime=5w", &["`runtime`", "unit d, h, m, s, ms or us"]),
        ("iodepth=${NOPE}", &["environment variable NOPE"]),
        ("kb_base=1001", &["1024 or 1000"]),
        ("exit_what=group", &["expected all"]),
        ("plids=0-500", &["`plids`", "at most 128"]),
        ("name=", &["a name"]),
        ("size", &["multiple of 512"]),
    ] {
        bad(&format!("[a]\n\n{line}\n"), 3, parts);
    }
    unfit(
        "[a]\nrate=1m\nrate_iops=100\n",
        3,
        &["`rate_iops`", "either rate or rate_iops", "remove one"],
    );
    unfit("[a]\ntime_based\n", 2, &["`time_based`", "a runtime"]);
}

#[test]
fn bad_structure_is_located() {
    bad("rw=read\n", 1, &["a section such as [job] first"]);
    bad("[a\nrw=read\n", 1, &["a section header"]);
    bad("[]\n", 1, &["a section header"]);
    bad("", 1, &["no job section"]);
    bad("[global]\nbs=4k\n", 3, &["no job section"]);
    bad("[a]\nrw=re\0ad\n", 2, &["binary or damaged"]);
    let parse = |text: &[u8]| parse_fio_file(Path::new("t.fio"), text, &|_| None, &files);
    assert_eq!(parse(b"[a]\n\xff=1\n").unwrap_err().line(), Some(2));
    let huge = vec![b'\n'; (1 << 20) + 1];
    let error = parse(&huge).unwrap_err();
    assert!(error.to_string().contains("1048576 bytes"), "{error}");
}

#[test]
fn what_does_not_fit_the_drive_names_key_and_capacity() {
    let drive = format!("{DRIVE} sectors (32.0 GiB)");
    unfit("[a]\nsize=33g\n", 2, &["`size`", "33.0 GiB", &drive]);
    unfit("[a]\noffset=50%\nsize=17g\n", 3, &["`size`", &drive]);
    unfit("[a]\noffset=32g\n", 2, &["`offset`", &drive]);
    unfit("[a]\nsize=1g\nnumjobs=40\noffset_increment=1g\n", 4, &["`offset_increment`", &drive]);
    unfit("[a]\nbs=64g\n", 1, &["`size`", "one block"]);
    unfit("[a]\nio_size=0\n", 2, &["`io_size`", "at least one request"]);
    unfit("[a]\nloops=9999p\nsize=1g\n", 2, &["`loops`"]);
    unfit("[a]\nnumjobs=3000\n[b]\nnumjobs=3000\n", 4, &["`numjobs`", "at most 4096"]);
    let far = "[a]\nrw=randread\nsize=1g\nrandom_distribution=zoned_abs:50/1g:50/1g\n";
    unfit(far, 4, &["`random_distribution`", "within the region"]);
}

#[test]
fn files_are_read_and_missing_ones_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.fio");
    std::fs::write(dir.path().join("size.inc"), "size=1m\n").unwrap();
    std::fs::write(&path, "[j]\nrw=randread\ninclude size.inc\n").unwrap();
    let plan = read_fio_file(&path, &|_| None).unwrap().jobs(&TARGET).unwrap();
    assert_eq!(plan.specs[0].stream.region_sectors, 2048);
    assert!(plan.regions_read().eq(std::iter::once(0..2048)));
    let text = read_fio_file(&dir.path().join("no.fio"), &|_| None).unwrap_err().to_string();
    assert!(text.contains("no.fio: cannot open"), "{text}");
    let text = read_fio_file(dir.path(), &|_| None).unwrap_err().to_string();
    assert!(text.contains("cannot read"), "{text}");
}

#[test]
fn the_example_jobs_are_what_they_say() {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jobs");
    for (file, reads) in
        [("random-overwrite.fio", 0), ("random-read.fio", 100), ("mixed-70-30.fio", 70)]
    {
        let file = read_fio_file(&jobs.join(file), &|_| None).unwrap();
        let spec = file.jobs(&TARGET).unwrap().specs[0].synthetic().unwrap();
        assert_eq!((spec.read_percent, spec.n_requests), (reads, Some(8 << 20)));
        assert_eq!((spec.region_start, spec.region_sectors), (0, DRIVE));
        assert_eq!((spec.block_sectors, spec.queue_depth, spec.sequential), (8, 32, false));
        let small = JobTarget { capacity_sectors: 1 << 20, ..TARGET };
        assert_eq!(file.jobs(&small).unwrap().specs.len(), 1, "runs on a small drive too");
    }
    for entry in std::fs::read_dir(&jobs).unwrap() {
        let path = entry.unwrap().path();
        let file = read_fio_file(&path, &|_| None).unwrap();
        let target = JobTarget { n_handles: 8, ..TARGET };
        file.jobs(&target).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Inputs that once broke the reader or its oracle.
#[test]
fn past_findings_stay_fixed() {
    for text in ["[a]\nsize=32\u{3a2}\n", "[a=r${b]\nbs=4k\n", "[$${]\n"] {
        oracle::fio_job(text.as_bytes());
    }
}

#[test]
fn a_variable_with_an_endless_name_is_named_in_short() {
    let text = format!("[j]\nrw=${{{}}}\n", "\u{18}zee".repeat(2000));
    let error = parse(&text).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("t.fio:2:") && message.len() < 1000, "{message}");
}
