//! Applications as text: what is read, what is refused, and in which words.

use flashwise_workload::{AppError, AppSpec};
use proptest::prelude::*;

fn message(text: &str) -> String {
    match AppSpec::parse(text) {
        Ok(spec) => panic!("{text} was taken as {spec}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn defaults_are_those_of_the_list() {
    for app in AppSpec::list() {
        let plain = AppSpec::parse(app.name).expect("a name alone");
        let full = format!("{},{}", app.name, app.defaults);
        assert_eq!(AppSpec::parse(&full).as_ref(), Ok(&plain));
        assert_eq!((plain.to_string(), plain.name()), (full, app.name));
        assert!(!app.about.is_empty() && app.about.len() < 100);
    }
    let varmail = &AppSpec::list()[0];
    assert_eq!(
        varmail.defaults,
        "files=1000,mean_size=16k,threads=16,runtime=60,append=16k,io_size=1m,\
         dir_width=1000000,prealloc=80,ops=none"
    );
}

#[test]
fn settings_are_read_with_their_suffixes() {
    let spec = AppSpec::parse(" varmail , files = 20000, mean_size=64K,runtime=2.5s,ops=9 ");
    let spec = spec.expect("a text with blanks");
    assert_eq!(spec.runtime_ns(), Some(2_500_000_000));
    assert_eq!(spec.expected_bytes(), 20_000 * 65_536);
    assert!(spec.to_string().contains("files=20000,mean_size=64k"), "{spec}");
    assert!(spec.to_string().contains("runtime=2500ms"), "{spec}");
    assert_eq!(AppSpec::parse("postmark").map(|spec| spec.runtime_ns()), Ok(None));
    for app in AppSpec::list() {
        let spec = AppSpec::parse(app.name).expect("a name alone");
        let mib = spec.expected_bytes() >> 20;
        // Sums of the facts: varmail 16 MB, fileserver 1.3 GB, webproxy 160 MB, videos 2.2 TB.
        let expected = match app.name {
            "varmail" | "webserver" => 15,
            "fileserver" => 1250,
            "webproxy" => 156,
            "videoserver" => 226 * 10 * 1024,
            "oltp" => 110,
            _ => 2,
        };
        assert_eq!(mib, expected, "{}", app.name);
    }
}

#[test]
fn nonsense_is_refused_with_the_key_and_what_was_expected() {
    for (text, parts) in [
        ("varmial", &["unknown application «varmial»", "did you mean `varmail`?"][..]),
        ("", &["unknown application «»", "postmark"]),
        ("varmail,fils=3", &["unknown key «fils»", "did you mean `files`?", "dir_width"]),
        ("varmail,rate=3", &["varmail: unknown key «rate»"]),
        ("webserver,prealloc=3", &["unknown key «prealloc»"]),
        ("varmail,files", &["found «files»", "KEY=VALUE", "files=1000"]),
        ("varmail,", &["found «»", "KEY=VALUE"]),
        ("varmail,files=1,files=2", &["files is set twice"]),
        ("varmail,files=0", &["files: found «0»", "from 1 to 10000000"]),
        ("varmail,files=1000000000000", &["files:", "from 1 to 10000000"]),
        ("varmail,files=99999999999999999999999", &["files:"]),
        ("varmail,files=+5", &["files: found «+5»"]),
        ("varmail,files=1k", &["files: found «1k»"]),
        ("varmail,threads=0", &["threads: found «0»", "from 1 to 10000"]),
        ("varmail,runtime=-1", &["runtime: found «-1»", "seconds such as 60"]),
        ("varmail,runtime=0", &["runtime: found «0»", "from 1ms"]),
        ("varmail,runtime=1e9", &["runtime:"]),
        ("varmail,runtime=.5", &["runtime:"]),
        ("varmail,mean_size=5x", &["mean_size: found «5x»", "suffix k, m, g or t"]),
        ("varmail,mean_size=18446744073709551615t", &["mean_size:", "from 1 to 1t"]),
        ("varmail,prealloc=101", &["prealloc:", "from 0 to 100"]),
        ("varmail,dir_width=1", &["dir_width:", "from 2"]),
        ("varmail,append=2", &["append:", "from 3 to 1g"]),
        ("varmail,ops=0", &["ops:", "at least 1, or none"]),
        ("postmark,read_bias=11", &["read_bias:", "from 0 to 10, or -1"]),
        (
            "postmark,size_low=20k",
            &["size_high=10000 does not go with size_low=20k", "20k or more"],
        ),
        ("oltp,io_size=20m", &["mean_size=10m does not go with io_size=20m"]),
        ("oltp,log_size=1k", &["log_size=1k does not go with log_io=256k"]),
        ("videoserver,files=10000000,mean_size=1t", &["mean_size=1t", "at most 1024 PiB"]),
    ] {
        let message = message(text);
        assert!(message.is_ascii() || message.contains('«'), "{message}");
        for part in parts {
            assert!(message.contains(part), "{text}: «{message}» lacks «{part}»");
        }
    }
    let error = AppSpec::parse(&"x".repeat(1 << 20)).expect_err("a long name");
    assert!(error.to_string().len() < 400 && matches!(error, AppError::UnknownApp { .. }));
}

fn pieces() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "varmail",
        "oltp",
        "postmark",
        "videoserver",
        "files",
        "threads",
        "runtime",
        "mean_size",
        "io_size",
        "ops",
        "=",
        "=",
        "=",
        ",",
        ",",
        ",",
        "0",
        "1",
        "7",
        "64k",
        "1.5s",
        "20ms",
        "none",
        "-1",
        " ",
        "99999999999999999999",
        "é",
        "\u{0}",
    ]);
    prop::collection::vec(known, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![any::<String>(), pieces()]) {
        match AppSpec::parse(&text) {
            // What is taken means the same when written out.
            Ok(spec) => prop_assert_eq!(AppSpec::parse(&spec.to_string()), Ok(spec)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_setting_is_read_or_refused(app in 0_usize..7, key in 0_usize..13, value in "[0-9]{1,20}[kmgts]{0,2}") {
        let app = &AppSpec::list()[app];
        let pairs: Vec<_> = app.defaults.split(',').collect();
        let key = pairs[key % pairs.len()].split('=').next().unwrap_or("");
        if let Ok(spec) = AppSpec::parse(&format!("{},{key}={value}", app.name)) {
            prop_assert_eq!(AppSpec::parse(&spec.to_string()), Ok(spec));
        }
    }
}
