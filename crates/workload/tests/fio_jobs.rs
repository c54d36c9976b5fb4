//! fio job files: what they mean, and that every slip is answered with its line.

use std::path::Path;

use flashwise_workload::{
    Distribution, FioJob, Source, Synthetic, WorkloadError, oracle, parse_fio_job, read_fio_job,
};

const GIB: u64 = 1 << 30;
/// A 32 GiB drive \[sectors\].
const DRIVE: u64 = 32 * GIB / 512;

fn parse(text: &str) -> Result<FioJob, WorkloadError> {
    let env = |name: &str| (name == "DEPTH").then(|| "16".to_owned());
    parse_fio_job(Path::new("t.fio"), text.as_bytes(), &env)
}

fn bad(text: &str, line: u64, parts: &[&str]) {
    let error = parse(text).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with(&format!("t.fio:{line}: ")), "{message}");
    assert_eq!(error.line(), Some(line));
    for part in parts {
        assert!(message.contains(part), "no «{part}» in: {message}");
    }
}

#[test]
fn golden_job() {
    let text = "; steady state\n[global]\nioengine=io_uring   # not modelled\ndirect=1\nbs=8k\n\n\
                [mixed]\nrw=randrw\nbs=4K\nrwmixread=10\nrwmixwrite=30\niodepth=${DEPTH}\n\
                offset=1g\nsize=50%\nio_size=2g\nloops=2\nrandom_distribution=zipf:1.1\n\
                norandommap\nrandseed=9\ngroup_reporting\n";
    let job = parse(text).unwrap();
    assert_eq!((job.name.as_str(), job.queue_depth, job.read_percent), ("mixed", 16, 70));
    assert_eq!(job.notices.len(), 3, "{:?}", job.notices);
    assert!(job.notices[0].contains("line 3") && job.notices[0].contains("ioengine"));
    let spec = job.synthetic(DRIVE, 1).unwrap();
    assert_eq!((spec.region_start, spec.region_sectors), (GIB / 512, DRIVE / 2));
    assert_eq!(spec.n_requests, Some(2 * 2 * GIB / 4096));
    assert_eq!((spec.block_sectors, spec.seed, spec.sequential), (8, 9, false));
    assert_eq!(spec.distribution, Distribution::Zipf { theta: 1.1 });
}

#[test]
fn defaults_are_those_of_fio() {
    let job = parse("[a job]\n").unwrap();
    let spec = job.synthetic(1001, 7).unwrap();
    assert_eq!((job.name.as_str(), spec.queue_depth, spec.read_percent), ("a job", 1, 100));
    assert!(spec.sequential);
    assert_eq!((spec.block_sectors, spec.region_start, spec.region_sectors), (8, 0, 1001));
    assert_eq!((spec.n_requests, spec.seed), (Some(125), 7));
    let job = parse("[a]\nrw=randrw\nname=b\n").unwrap();
    assert_eq!((job.name.as_str(), job.read_percent), ("b", 50));
    assert!(job.notices[0].contains("norandommap"), "{:?}", job.notices);
}

#[test]
fn bounds_on_requests_combine() {
    let n = |keys: &str| {
        let job = parse(&format!("[a]\nrw=write\nsize=1m\n{keys}")).unwrap();
        job.synthetic(DRIVE, 1).unwrap().n_requests.unwrap()
    };
    assert_eq!(n(""), 256);
    assert_eq!(n("loops=3\n"), 768);
    assert_eq!(n("io_size=50%\n"), 128);
    assert_eq!(n("io_size=4m\nnumber_ios=100\n"), 100);
    assert_eq!(n("number_ios=1k\n"), 256);
}

#[test]
fn unknown_keys_are_named_with_a_suggestion() {
    bad("[a]\niodpeth=4\n", 2, &["`iodpeth`", "did you mean `iodepth`?", "one of: rw,"]);
    bad("[a]\nrw=read\nzonemode=zbd\n", 3, &["`zonemode`", "unknown or unsupported"]);
    bad("[a]\nruntime=60\n", 2, &["`runtime`", "io_size, loops or number_ios"]);
    bad("[a]\ntime_based\n", 2, &["io_size, loops or number_ios"]);
    bad("[a]\ninclude other.fio\n", 2, &["unknown or unsupported"]);
}

#[test]
fn bad_values_say_what_is_expected() {
    for (line, parts) in [
        ("rw=trim", &["`rw`", "randwrite", "«trim»"][..]),
        ("bs=1000", &["`bs`", "multiple of 512"]),
        ("bs=4k,8k", &["`bs`", "whole number"]),
        ("bs=0", &["multiple of 512"]),
        ("bs=4KiB", &["kb_base=1024"]),
        ("size=101%", &["`size`", "0% to 100%"]),
        ("size=-1", &["`size`", "«-1»"]),
        ("io_size=99999999p", &["`io_size`", "below 2^64"]),
        ("iodepth=0", &["`iodepth`", "from 1 to 65536"]),
        ("rwmixread=101", &["from 0 to 100"]),
        ("random_distribution=pareto:0.2", &["zipf:theta"]),
        ("norandommap=maybe", &["1 or 0"]),
        ("numjobs=4", &["`numjobs`", "raise iodepth"]),
        ("verify=crc32c", &["`verify`", "expected 0"]),
        ("iodepth=${NOPE}", &["environment variable NOPE"]),
        ("name=", &["a name"]),
        ("size", &["multiple of 512"]),
    ] {
        bad(&format!("[a]\n\n{line}\n"), 3, parts);
    }
}

#[test]
fn bad_structure_is_located() {
    bad("rw=read\n", 1, &["a section such as [job] first"]);
    bad("[a]\n[b]\n", 2, &["one job section", "[b]", "line 1"]);
    bad("[a]\n[global]\nbs=4k\n", 2, &["[global] before the job", "move it up"]);
    bad("[a\nrw=read\n", 1, &["a section header"]);
    bad("[]\n", 1, &["a section header"]);
    bad("", 1, &["no job section"]);
    bad("[global]\nbs=4k\n", 3, &["no job section"]);
    bad("[a]\nrw=re\0ad\n", 2, &["binary or damaged"]);
    let error = parse_fio_job(Path::new("t.fio"), b"[a]\n\xff=1\n", &|_| None).unwrap_err();
    assert_eq!(error.line(), Some(2));
    let huge = vec![b'\n'; (1 << 20) + 1];
    let error = parse_fio_job(Path::new("t.fio"), &huge, &|_| None).unwrap_err();
    assert!(error.to_string().contains("1048576 bytes"), "{error}");
}

#[test]
fn what_does_not_fit_the_drive_names_key_and_capacity() {
    let refused = |text: &str, parts: &[&str]| {
        let message = parse(text).unwrap().synthetic(DRIVE, 1).unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "no «{part}» in: {message}");
        }
    };
    let drive = format!("{DRIVE} sectors (32.0 GiB)");
    refused("[a]\nsize=33g\n", &["t.fio:2:", "`size`", "33.0 GiB", &drive]);
    refused("[a]\noffset=50%\nsize=100%\n", &["t.fio:3:", "`size`", &drive]);
    refused("[a]\noffset=32g\n", &["t.fio:2:", "`offset`", &drive]);
    refused("[a]\nbs=64g\n", &["t.fio:1:", "`size`", "one block"]);
    refused("[a]\nio_size=512\n", &["t.fio:2:", "`io_size`", "one block of 4096"]);
    refused("[a]\nloops=9999p\nsize=1g\n", &["t.fio:2:", "`loops`"]);
}

#[test]
fn files_are_read_and_missing_ones_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.fio");
    std::fs::write(&path, "[j]\nrw=randread\nsize=1m\nnorandommap\n").unwrap();
    let job = read_fio_job(&path, &|_| None).unwrap();
    let mut source = Synthetic::new(job.synthetic(DRIVE, 1).unwrap()).unwrap();
    let mut n = 0;
    while let Some(request) = source.next_request().unwrap() {
        assert!(request.end() <= 2048);
        n += 1;
    }
    assert_eq!(n, 256);
    let text = read_fio_job(&dir.path().join("no.fio"), &|_| None).unwrap_err().to_string();
    assert!(text.contains("no.fio: cannot open"), "{text}");
    let text = read_fio_job(dir.path(), &|_| None).unwrap_err().to_string();
    assert!(text.contains("cannot read"), "{text}");
}

#[test]
fn the_example_jobs_are_what_they_say() {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jobs");
    for (file, reads, n) in [
        ("random-overwrite.fio", 0, Some(8 << 20)),
        ("random-read.fio", 100, Some(8 << 20)),
        ("mixed-70-30.fio", 70, Some(8 << 20)),
    ] {
        let job = read_fio_job(&jobs.join(file), &|_| None).unwrap();
        let spec = job.synthetic(DRIVE, 1).unwrap();
        assert_eq!((spec.read_percent, spec.n_requests), (reads, n), "{file}");
        assert_eq!((spec.region_start, spec.region_sectors), (0, DRIVE), "{file}");
        assert_eq!((spec.block_sectors, spec.queue_depth, spec.sequential), (8, 32, false));
        assert_eq!(spec.distribution, Distribution::Uniform);
        let small = job.synthetic(1 << 20, 1).unwrap();
        assert_eq!(small.n_requests, n, "{file} runs on a small drive too");
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
    let error = parse_fio_job(Path::new("a.fio"), text.as_bytes(), &|_| None).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("a.fio:2:") && message.len() < 1000, "{message}");
}
