//! A job file written down in full: every job with all its keys, nothing inherited.
//!
//! It reads back as the same jobs, which is how the reader is tested: what a key means
//! is compared with a second way to say it.

use std::fmt::{Display, Write};

use super::options::{MODES, Options, Placement, WRITE_HINTS};
use super::value::{KbBase, RandomDistribution};
use super::{Amount, FioFile, FioJob};
use crate::Rate;

impl FioFile {
    /// A job file that reads back as the same jobs, provided that the environment
    /// variable `DOLLAR` is a dollar sign (the only way to write `${`).
    pub(crate) fn canonical(&self) -> String {
        let mut out = Out(String::new());
        for job in &self.jobs {
            out.job(job);
        }
        out.0
    }
}

struct Out(String);

impl Out {
    fn put(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key}={value}");
    }

    fn put_some<T: Display>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Values by direction, empty where none is set.
    fn put_three<T>(&mut self, key: &str, values: &[Option<T>; 3], text: impl Fn(&T) -> String) {
        if values.iter().any(Option::is_some) {
            let parts: Vec<String> =
                values.iter().map(|value| value.as_ref().map_or(String::new(), &text)).collect();
            self.put(key, parts.join(","));
        }
    }

    fn put_amount(&mut self, key: &str, amount: Option<Amount>) {
        match amount {
            None => {}
            Some(Amount::Bytes(bytes)) => self.put(key, bytes),
            Some(Amount::Percent(percent)) => self.put(key, format_args!("{percent}%")),
        }
    }

    fn put_if(&mut self, key: &str, set: bool) {
        if set {
            self.put(key, 1);
        }
    }

    fn put_ns(&mut self, key: &str, ns: u64) {
        if ns > 0 {
            self.put(key, format_args!("{}us", ns / 1000));
        }
    }

    fn job(&mut self, job: &FioJob) {
        let o = &job.options;
        self.0.push_str("[job]\n");
        self.put("name", job.name.replace("${", "${DOLLAR}{"));
        self.pattern(o);
        self.sizes(o);
        self.timing(o);
        self.put_some("fsync", o.fsync);
        self.put_some("fdatasync", o.fdatasync);
        self.put_if("end_fsync", o.flush_at_end);
        self.put_if("sync", o.fua);
        let hint = WRITE_HINTS.iter().find(|hint| hint.1 == o.write_hint);
        self.put_some("write_hint", hint.map(|hint| hint.0));
        let placement = match o.placement {
            Placement::None => "none",
            Placement::Fdp => "fdp",
            Placement::Streams => "streams",
        };
        self.put("dataplacement", placement);
        if !o.plids.is_empty() {
            let plids: Vec<String> = o.plids.iter().map(u16::to_string).collect();
            self.put("plids", plids.join(","));
        }
        self.put("plid_select", if o.random_plids { "random" } else { "roundrobin" });
        self.put_if("group_reporting", o.group_reporting);
        self.put("kb_base", if o.kb_base == KbBase::Decimal { 1000 } else { 1024 });
    }

    fn pattern(&mut self, o: &Options) {
        if let Some(rw) = o.rw {
            let mode = MODES.iter().find(|mode| (mode.1, mode.2) == (rw.mix, rw.sequential));
            let mode = mode.map_or("read", |mode| mode.0);
            self.put("rw", format_args!("{mode}:{}", rw.suffix));
        }
        if o.identical {
            self.put("rw_sequencer", "identical");
        }
        self.put_some("rwmixread", o.mix_read);
        if let Some(distribution) = &o.distribution {
            self.put("random_distribution", text_of(distribution));
        }
        self.put_three("percentage_random", &o.random_percent, u32::to_string);
        self.put_if("norandommap", o.norandommap);
        self.put_some("randseed", o.seed);
    }

    fn sizes(&mut self, o: &Options) {
        let bytes = |sectors: &u32| (u64::from(*sectors) * 512).to_string();
        self.put_three("bs", &o.bs, bytes);
        self.put_three("bsrange", &o.bsrange, |(min, max)| {
            format!("{}-{}", bytes(min), bytes(max))
        });
        self.put_three("bssplit", &o.bssplit, |parts| {
            let parts = parts.iter().map(|(sectors, p)| format!("{}/{p}", bytes(sectors)));
            parts.collect::<Vec<_>>().join(":")
        });
        self.put_three("ba", &o.ba, bytes);
        self.put_amount("size", o.size);
        self.put_amount("io_size", o.io_size);
        self.put_amount("offset", o.offset);
        self.put_amount("offset_increment", o.offset_increment);
        self.put_some("loops", o.loops);
        self.put_some("number_ios", o.number_ios);
    }

    fn timing(&mut self, o: &Options) {
        self.put_some("iodepth", o.iodepth);
        self.put_some("numjobs", o.numjobs);
        self.put_ns("thinktime", o.thinktime_ns);
        self.put_some("thinktime_blocks", o.thinktime_blocks);
        if o.think_by_issue {
            self.put("thinktime_blocks_type", "issue");
        }
        let rate = |rate: &Rate| match rate {
            Rate::Bytes(n) | Rate::Requests(n) => n.to_string(),
        };
        self.put_three("rate", &o.rate, rate);
        self.put_three("rate_iops", &o.rate_iops, rate);
        if o.poisson {
            self.put("rate_process", "poisson");
        }
        self.put_ns("runtime", o.runtime_ns);
        self.put_if("time_based", o.time_based);
        self.put_ns("ramp_time", o.ramp_ns);
        let (from_ns, to_ns) = o.start_delay_ns;
        self.put("startdelay", format_args!("{}us-{}us", from_ns / 1000, to_ns / 1000));
        self.put_if("stonewall", o.stonewall);
        self.put_if("exitall", o.exit_all);
    }
}

fn text_of(distribution: &RandomDistribution) -> String {
    let with = |name: &str, value: f64, center: &Option<f64>| match center {
        None => format!("{name}:{value}"),
        Some(center) => format!("{name}:{value}:{center}"),
    };
    match distribution {
        RandomDistribution::Random => "random".to_owned(),
        RandomDistribution::Zipf { theta, center } => with("zipf", *theta, center),
        RandomDistribution::Pareto { h, center } => with("pareto", *h, center),
        RandomDistribution::Normal { deviation_percent, center } => {
            with("normal", *deviation_percent, center)
        }
        RandomDistribution::Zoned { zones, absolute } => {
            let list = |zones: &Vec<(u32, u64)>| {
                let parts = zones.iter().map(|(access, size)| format!("{access}/{size}"));
                parts.collect::<Vec<_>>().join(":")
            };
            let lists: Vec<String> = zones.iter().map(list).collect();
            let name = if *absolute { "zoned_abs" } else { "zoned" };
            format!("{name}:{}", lists.join(","))
        }
    }
}
