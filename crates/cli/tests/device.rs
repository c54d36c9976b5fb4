//! `flashwise device`: drives that are explained and made.

mod common;

use common::{file, json, path, printed, refused};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Identify data of a controller and a namespace of 240 GB, by hand.
fn identify_data() -> (Vec<u8>, Vec<u8>) {
    let (mut ctrl, mut ns) = (vec![0u8; 4096], vec![0u8; 4096]);
    ctrl[4..24].copy_from_slice(format!("{:20}", "SN123").as_bytes());
    ctrl[24..64].copy_from_slice(format!("{:40}", "Acme Drive 240").as_bytes());
    ctrl[64..72].copy_from_slice(b"FW 3.14 ");
    ctrl[77] = 6;
    ctrl[520] = 4;
    ns[..8].copy_from_slice(&468_862_128u64.to_le_bytes());
    ns[24] = 1 << 4;
    ns[64] = 31; // 32 blocks of 512 bytes
    ns[128 + 2] = 9;
    (ctrl, ns)
}

#[test]
fn a_drive_for_a_capacity_is_written_and_loads() {
    let dir = directory();
    let out = path(&dir, "mine.toml");
    printed(&["device", "new", "--capacity", "960G", "--like", "tlc-slc", "--out", &out]);
    let shown = json(&["device", "show", &out, "--json"]);
    assert_eq!(shown["derived"]["exported_bytes"], 960e9);
    let text = std::fs::read_to_string(&out).expect("a file");
    for part in [
        "# asked for: --capacity 960G",
        "# source: ConZone TLC",
        "# assumed",
        "write amplification",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text, printed(&["device", "new", "--capacity", "960G"]), "tlc-slc is the default");
    let again = refused(2, &["device", "new", "--capacity", "1G", "--out", &out]);
    assert!(again.contains("--force") && again.contains("mine.toml"), "{again}");
    printed(&["device", "new", "--capacity", "64M", "--like", "tiny", "--out", &out, "--force"]);
    let row = &json(&["replay", "examples/sqlite.trace", "--device", &out, "--fresh", "--json"])["rows"]
        [0];
    assert_eq!(row["requests"], 10_215);
}

#[test]
fn every_option_reaches_its_key_and_its_comment() {
    let options = "--planes 4 --page-kib 8 --pages-per-block 768 --read-us 40,45 --read-4k-us 30 \
        --program-us 800 --erase-us 5000 --endurance 1234 --channel-mb-s 2000 --link-gb-s 7 \
        --buffer-mib 64 --power-protected true --unit-kib 8 --handles 8 --mdts-kib 512 --dies 32 \
        --channels 8 --op 28 --set ftl.victim=fifo";
    let args = ["device", "new", "--capacity", "1.92T"];
    let args: Vec<&str> = args.into_iter().chain(options.split_whitespace()).collect();
    let text = printed(&args);
    for line in [
        "planes = 4  # asked for: --planes 4",
        "page_kib = 8.0  # asked for: --page-kib 8",
        "read_us = [40.0, 45.0]  # asked for: --read-us 40,45",
        "read_4k_us = [30.0]  # asked for: --read-4k-us 30",
        "endurance = 1234  # asked for: --endurance 1234",
        "mb_s = 7000.0  # asked for: --link-gb-s 7",
        "kib = 65536.0  # asked for: --buffer-mib 64",
        "power_protected = true  # asked for: --power-protected true",
        "unit_kib = 8.0  # asked for: --unit-kib 8",
        "dies_per_channel = 4  # asked for: --dies 32",
        "channels = 8  # asked for: --channels 8",
        "victim = \"fifo\"  # asked for: --set ftl.victim=fifo",
    ] {
        assert!(text.contains(line), "«{line}» is not in\n{text}");
    }
}

#[test]
fn bad_wishes_are_refused_with_what_works() {
    let cases: [(&[&str], &[&str]); 12] = [
        (&["--capacity", "960X"], &["--capacity", "960G", "512GiB"]),
        (&["--capacity", "-1G"], &["--capacity"]),
        (&["--capacity", "0"], &["more than 0"]),
        (&["--capacity", "1T", "--like", "tlc-slv"], &["did you mean «tlc-slc»"]),
        (&["--capacity", "1T", "--cell", "plc"], &["--cell plc", "qlc"]),
        (&["--capacity", "1T", "--dies", "10", "--channels", "4"], &["8 or 12"]),
        (&["--capacity", "1T", "--op", "0"], &["--op 0"]),
        (&["--capacity", "1T", "--op", "-5"], &["--op -5"]),
        (&["--capacity", "1T", "--read-us", "fast"], &["--read-us", "list of numbers"]),
        (&["--capacity", "1T", "--read-us", "-3"], &["--read-us"]),
        (&["--capacity", "500T"], &["2^32", "--unit-kib"]),
        (&["--capacity", "1T", "--force"], &["--out"]),
    ];
    for (args, parts) in cases {
        let message = refused(2, &[&["device", "new"], args].concat());
        for part in parts {
            assert!(message.contains(part), "{args:?}: «{part}» is not in {message}");
        }
    }
    assert!(refused(2, &["device", "new"]).contains("--capacity"));
    let nowhere = ["device", "new", "--capacity", "1T", "--out", "no/such/dir/x.toml"];
    assert!(refused(1, &nowhere).contains("no/such/dir/x.toml"));
}

#[test]
fn identify_data_becomes_a_drive() {
    let dir = directory();
    let (ctrl, ns) = identify_data();
    let both = file(&dir, "both.bin", &[ctrl.clone(), ns.clone()].concat());
    let (ctrl, ns) = (file(&dir, "ctrl.bin", &ctrl), file(&dir, "ns.bin", &ns));
    let text = printed(&["device", "new", "--from", &both]);
    for part in [
        "Taken from «Acme Drive 240», serial SN123, firmware FW 3.14.",
        "name = \"acme-drive-240\"",
        "capacity_mib = 228936.578125  # source: identify data of the drive, NSZE",
        "mdts_kib = 256.0  # source: identify data of the drive, MDTS",
        "power_protected = true  # source: identify data of the drive, VWC: no volatile",
        "unit_kib = 16.0  # source: identify data of the drive, NPWG",
        "tells nothing of dies, channels, times and spare space: those are of tlc-slc",
    ] {
        assert!(text.contains(part), "«{part}» is not in\n{text}");
    }
    assert_eq!(text, printed(&["device", "new", "--from", &ns, "--from", &ctrl]));
    let over = printed(&["device", "new", "--from", &both, "--capacity", "1T", "--unit-kib", "4"]);
    assert!(
        over.contains("asked for: --capacity 1T") && over.contains("unit_kib = 4.0  # asked for")
    );
    let alone = refused(2, &["device", "new", "--from", &ctrl]);
    assert!(alone.contains("--capacity") && alone.contains("second --from"), "{alone}");
    printed(&["device", "new", "--from", &ctrl, "--capacity", "240G"]);
}

#[test]
fn what_is_no_drive_is_refused_with_advice() {
    let dir = directory();
    let short = file(&dir, "short.bin", b"too short");
    let cases: [(&str, &[&str]); 5] = [
        ("/dev/nvme77", &["/dev/nvme77", "ls /dev/nvme*"]),
        (&short, &["short.bin", "9 bytes", "nvme id-ctrl -b"]),
        ("Cargo.toml", &["Cargo.toml", "expected 4096"]),
        ("crates", &["crates", "directory"]),
        ("/dev/null", &["/dev/null", "not an NVMe drive"]),
    ];
    for (from, parts) in cases {
        let message = refused(2, &["device", "new", "--from", from]);
        for part in parts {
            assert!(message.contains(part), "{from}: «{part}» is not in {message}");
        }
    }
}

#[test]
fn every_preset_is_explained_as_text_and_as_json() {
    for name in [
        "fast24",
        "fast24-2p",
        "nvme-a",
        "nvme-b",
        "nvme-c",
        "nvme-d",
        "sata-a",
        "sata-b",
        "tlc-slc",
        "mqsim",
        "bench-16g",
        "bench-1t",
        "tiny",
    ] {
        let text = printed(&["device", "show", name]);
        for part in [
            "over-provisioning",
            "sequential read",
            "bounded by",
            "random 4 KiB write, steady",
            "# Channels",
        ] {
            assert!(text.contains(part), "{name}: «{part}» is not in\n{text}");
        }
        let v = json(&["device", "show", name, "--json"]);
        for key in v["keys"].as_array().expect("keys") {
            assert!(key["meaning"].is_string(), "{key}");
            let bare = !key["key"].as_str().expect("a name").contains('.');
            assert!(bare || key["source"].is_string(), "{name}: {key}");
        }
        for key in ["raw_bytes", "exported_bytes", "random_4k_waf", "endurance_tb", "table_bytes"] {
            assert!(v["derived"][key].as_f64() > Some(0.0), "{name}: {key}");
        }
        assert!(v["rates"]["sequential_read_mib_s"]["bounded_by"].is_string(), "{name}");
    }
    let v = json(&["device", "show", "tlc-slc", "--json", "--set", "channels=8"]);
    let channels =
        v["keys"].as_array().and_then(|k| k.iter().find(|k| k["key"] == "geometry.channels"));
    assert_eq!(channels.map(|k| &k["source"]), Some(&"asked for: --set channels=8".into()));
    assert!(refused(2, &["device", "show", "fast42"]).contains("did you mean «fast24»"));
    assert!(
        refused(2, &["device", "show", "tiny", "--set", "planes=0"]).contains("geometry.planes")
    );
}

#[test]
fn a_saved_drive_is_explained_too() {
    let dir = directory();
    let saved = path(&dir, "aged.fwdrive");
    printed(&[
        "replay",
        "examples/sqlite.trace",
        "--device",
        "tiny",
        "--fresh",
        "--save-drive",
        &saved,
    ]);
    assert!(printed(&["device", "show", &saved]).contains("write amplification"));
}
