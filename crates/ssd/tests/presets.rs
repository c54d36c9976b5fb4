//! Presets and changes to them: every number has a source, every mistake a message
//! that names the key, what was found and what would do.

mod common;

use common::build;
use flashwise_hint::{Lba, WriteHint};
use flashwise_ssd::{Command, DeviceConfig, KEYS, PRESETS};

/// The message of a change that cannot work; it must hold all of `parts`.
fn refused(sets: &[&str], parts: &[&str]) {
    let message = build("tiny", sets).expect_err(&format!("{sets:?} should be refused"));
    for part in parts {
        assert!(message.contains(part), "{sets:?}: «{part}» is not in: {message}");
    }
}

#[test]
fn every_preset_builds_and_survives_being_written_down() {
    for (name, text) in PRESETS {
        let ssd = build(name, &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(ssd.config().name, name);
        // On a drive of tests, block lists weigh more than maps.
        let n_units = u64::from(ssd.ftl().config().n_logical);
        assert!(n_units < 1 << 16 || ssd.ftl().table_bytes() < 10 * n_units, "{name}");
        let again = DeviceConfig::parse("again", &ssd.config().to_toml(), &[]);
        assert_eq!(&again.expect("what was written is read"), ssd.config());
        assert!(!text.is_empty());
    }
}

#[test]
fn every_number_of_a_preset_has_a_source_or_says_that_it_is_assumed() {
    for (name, text) in PRESETS {
        for (i, line) in text.lines().enumerate() {
            let Some((key, rest)) = line.split_once('=') else { continue };
            if line.starts_with('#') || ["name", "about"].contains(&key.trim()) {
                continue;
            }
            let comment = rest.split_once('#').map_or("", |(_, c)| c.trim());
            let sourced = comment.starts_with("source:") || comment.starts_with("assumed");
            assert!(sourced, "presets/{name}.toml:{}: {line}", i + 1);
        }
    }
}

#[test]
fn keys_can_be_named_in_full_or_by_their_end_where_that_is_enough() {
    assert_eq!(build("tiny", &["geometry.channels=3"]).unwrap().config().geometry.channels, 3);
    assert_eq!(build("tiny", &["channels=3"]).unwrap().config().geometry.channels, 3);
    assert_eq!(build("tiny", &[" planes = 1 "]).unwrap().config().geometry.planes, 1);
    let reads = build("tiny", &["flash.read_us=[20, 30]"]).unwrap().config().flash.read_us.clone();
    assert_eq!(reads, [20.0, 30.0]);
    refused(&["read_us=3"], &["flash.read_us", "slc.read_us", "firmware.read_us"]);
    refused(&["geometry.chanels=3"], &["«geometry.chanels»", "did you mean «geometry.channels»"]);
    refused(&["chanels=3"], &["did you mean «channels»"]);
    refused(&["slc.channels=3"], &["did you mean «geometry.channels»"]);
    refused(&["geometry.channels"], &["key=value", "geometry.channels=8"]);
    refused(&["geometry.channels=two"], &["geometry.channels=two", "whole number"]);
    refused(&["flash.cache_read=maybe"], &["true or false"]);
    refused(&["flash.read_us=[a]"], &["list of numbers"]);
    refused(&["geometry.channels=-1"], &["geometry.channels"]);
}

#[test]
fn every_known_key_can_be_set_to_what_it_is() {
    let cfg = DeviceConfig::open("tiny", &[]).unwrap();
    let table: toml::Table = cfg.to_toml().parse().unwrap();
    for key in KEYS {
        let value = match key.split_once('.') {
            Some((section, k)) => &table[section][k],
            None => &table[key],
        };
        let set = format!("{key}={}", value.to_string().trim_matches('"'));
        assert_eq!(DeviceConfig::open("tiny", std::slice::from_ref(&set)).unwrap(), cfg, "{set}");
    }
}

#[test]
fn a_file_is_refused_with_line_and_key() {
    let good = PRESETS[0].1;
    let message = |text: &str| DeviceConfig::parse("mine.toml", text, &[]).unwrap_err().to_string();
    let line = 1 + good.lines().position(|l| l.starts_with("planes")).unwrap();
    let misspelt = message(&good.replace("\nplanes", "\nplains"));
    assert!(misspelt.contains(&format!("mine.toml:{line}")), "{misspelt}");
    assert!(misspelt.contains("«geometry.plains»") && misspelt.contains("geometry.planes"));
    let wrong = message(&good.replace("\nplanes = 1", "\nplanes = \"one\""));
    assert!(wrong.contains(&format!("mine.toml:{line}")), "{wrong}");
    let missing: Vec<&str> = good.lines().filter(|l| !l.starts_with("planes")).collect();
    let missing = message(&missing.join("\n"));
    assert!(missing.contains("mine.toml") && missing.contains("«geometry.planes» is missing"));
    assert!(message("geometry = 3").contains("mine.toml"));
    assert!(message("[geometry\n").contains("mine.toml:1"));
    assert!(message("").contains("missing"));
    let absent = DeviceConfig::open("no/such.toml", &[]).unwrap_err().to_string();
    assert!(absent.contains("no/such.toml"), "{absent}");
    let near = DeviceConfig::open("fast42", &[]).unwrap_err().to_string();
    assert!(near.contains("did you mean «fast24»") && near.contains("tlc-slc"), "{near}");
}

#[test]
fn impossible_shapes_are_refused_with_what_would_do() {
    for key in ["channels", "dies_per_channel", "planes", "blocks_per_plane", "pages_per_block"] {
        let set = format!("geometry.{key}=0");
        refused(&[&set], &[&format!("geometry.{key} = 0"), "at least 1"]);
    }
    refused(&["geometry.page_kib=6"], &["geometry.page_kib", "multiple of the mapping unit"]);
    refused(&["ftl.unit_kib=3"], &["ftl.unit_kib = 3:", "power of two"]);
    refused(&["ftl.unit_kib=128"], &["ftl.unit_kib", "64 KiB"]);
    refused(&["geometry.planes=9"], &["geometry.planes = 9", "at most 8"]);
    refused(&["geometry.pages_per_block=9000"], &["geometry.pages_per_block", "32767"]);
    let one_shot = ["flash.native=tlc", "flash.page_order=one-shot"];
    refused(&one_shot, &["geometry.pages_per_block = 16", "multiple of 3"]);
    refused(&["geometry.blocks_per_plane=100000000"], &["2^32"]);
    refused(&["geometry.channels=4294967295"], &["geometry.channels", "at most 1024"]);
    refused(&["geometry.blocks_per_plane=5"], &["geometry.blocks_per_plane"]);
    refused(&["ftl.capacity_mib=32"], &["geometry.blocks_per_plane to at least", "reserve"]);
    refused(&["ftl.handles=0"], &["ftl.handles = 0", "at least 1"]);
    refused(&["ftl.handles=129"], &["ftl.handles", "at most 128"]);
    refused(&["ftl.gc_low_blocks=1"], &["gc_low_blocks"]);
    refused(&["ftl.victim=newest"], &["ftl.victim = «newest»", "greedy, cost-benefit, fifo"]);
    refused(&["flash.native=plc"], &["slc, mlc, tlc, qlc"]);
    refused(&["flash.page_order=any"], &["one-shot, alternate, shared"]);
    refused(&["precondition.overwrite=maybe"], &["random, none"]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    refused(&["flash.channel_mb_s=0"], &["flash.channel_mb_s = 0", "positive"]);
    refused(&["link.mb_s=-5"], &["link.mb_s = -5"]);
    refused(&["link.mb_s=inf"], &["link.mb_s = inf"]);
    refused(&["flash.erase_us=nan"], &["flash.erase_us = NaN"]);
    refused(&["flash.program_us=[-1]"], &["flash.program_us = -1"]);
    refused(&["flash.read_us=[1,2,3,4,5]"], &["flash.read_us", "one to four"]);
    refused(&["buffer.kib=4"], &["buffer.kib = 4", "program unit (16 KiB)"]);
    refused(&["host.mdts_kib=1"], &["host.mdts_kib"]);
    refused(&["host.gap_us=-1"], &["host.gap_us = -1"]);
    refused(&["precondition.occupancy=1.5"], &["precondition.occupancy = 1.5", "0 to 1"]);
    refused(&["precondition.window_drive_writes=0"], &["precondition.window_drive_writes"]);
    refused(&["slc.endurance=0"], &["slc.endurance", "at least 1"]);
}

#[test]
fn the_smallest_spare_space_that_is_named_really_works() {
    for protected in ["true", "false"] {
        let set = format!("buffer.power_protected={protected}");
        let message = build("tiny", &[&set, "ftl.over_provisioning=0"]).unwrap_err();
        let named = message.split("geometry is ").nth(1).expect("a smallest value is named");
        let op = format!("ftl.over_provisioning={}", named.trim());
        let mut ssd = build("tiny", &[&set, &op]).unwrap_or_else(|e| panic!("{op}: {e}"));
        let n_units = ssd.capacity_sectors() / 8;
        let (mut now, mut x) = (0, 9u64);
        for i in 0..4 * n_units {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = if i < n_units { i } else { (x >> 33) % n_units };
            let lba = Lba(unit * 8);
            let write = Command::Write { lba, sectors: 8, fua: false, hint: WriteHint::NONE };
            now = ssd.submit(&write, now).expect("a full drive takes overwrites");
        }
        ssd.self_check().unwrap();
        assert_eq!(ssd.ftl().n_valid(), n_units);
    }
}
