//! Drives that are designed: whatever is asked for, there is either a preset that
//! loads and exports it, or a message that says what works.

use proptest::prelude::*;

use flashwise_design::{Annotated, Ask, Derived, DesignError, Wish, design, parse_size};
use flashwise_ssd::{DeviceConfig, KEYS, Options, PRESETS, Ssd};

fn wish(size: &str, like: &str) -> Wish {
    Wish {
        capacity_bytes: parse_size(size).expect("a size"),
        capacity_source: format!("asked for: --capacity {size}"),
        like: like.to_owned(),
        name: "mine".to_owned(),
        ..Wish::default()
    }
}

fn made(wish: &Wish) -> Annotated {
    design(wish).unwrap_or_else(|e| panic!("{wish:?}: {e}"))
}

fn refused(wish: &Wish, parts: &[&str]) {
    let message = design(wish).expect_err(&format!("{wish:?} should be refused")).to_string();
    for part in parts {
        assert!(message.contains(part), "«{part}» is not in: {message}");
    }
}

fn exported(preset: &Annotated) -> f64 {
    Derived::of(preset.config()).expect("a drive").get("exported_bytes").expect("a size")
}

#[test]
fn usual_capacities_like_every_preset_export_what_was_asked_for() {
    for (like, _) in PRESETS {
        for size in ["1G", "32GiB", "480G", "960G", "1.92T", "3.84T", "7.68T", "15.36T"] {
            let wish = wish(size, like);
            let model = DeviceConfig::open(like, &[]).unwrap();
            let unit_bytes = model.ftl.unit_kib * 1024.0;
            let is_odd = !(model.geometry.page_kib / model.ftl.unit_kib % 2.0).eq(&0.0);
            if is_odd && wish.capacity_bytes as f64 * 1.1 / unit_bytes > f64::from(u32::MAX) {
                // No larger unit divides its page.
                refused(&wish, &["geometry.page_kib", "multiple of the mapping unit"]);
                continue;
            }
            let preset = made(&wish);
            let cfg = preset.config();
            let short = wish.capacity_bytes as f64 - exported(&preset);
            assert!(
                (0.0..cfg.ftl.unit_kib * 1024.0).contains(&short),
                "{size} like {like}: {short}"
            );
            let model = model.check().unwrap();
            let op = cfg.check().unwrap().over_provisioning();
            let wanted = model.over_provisioning();
            // Tiny rounds its own spare space up from 25 %. A small drive of many dies has so
            // few blocks on each that one or two more show.
            let most = (1.25 * wanted).max(wanted + 2.0 / f64::from(cfg.geometry.blocks_per_plane));
            assert!(op >= 0.8 * wanted && op < most, "{size} like {like}: {op}, {wanted}");
            assert_eq!(cfg.ftl.over_provisioning, (op * 1e6).round() / 1e6);
        }
    }
}

#[test]
fn a_small_one_is_built_and_works_to_the_last_sector() {
    let preset = made(&wish("1GiB", "tlc-slc"));
    let mut ssd = Ssd::new(preset.config().clone(), Options::default()).expect("a drive");
    assert_eq!(ssd.capacity_sectors(), 2 << 20);
    for lpn in 0..(1u32 << 18) {
        ssd.fill_unit(flashwise_ssd::Lpn(lpn));
    }
    ssd.self_check().unwrap();
}

#[test]
fn every_number_says_where_it_comes_from() {
    let mut wish = wish("1.92T", "tlc-slc");
    wish.asks = vec![
        Ask::new("--read-us", "flash.read_us", "40,50"),
        Ask::new("--handles", "ftl.handles", 4),
    ];
    wish.dies = Some(24);
    wish.op_percent = Some(28.0);
    let preset = made(&wish);
    for key in KEYS.iter().filter(|k| k.contains('.')) {
        let source = preset.source(key).unwrap_or_else(|| panic!("{key} has no source"));
        let known = ["source:", "assumed", "asked for:"].iter().any(|s| source.starts_with(s));
        assert!(known, "{key}: {source}");
    }
    let says = |key: &str, part: &str| {
        let source = preset.source(key).unwrap();
        assert!(source.contains(part), "{key}: {source}");
    };
    says("flash.read_us", "asked for: --read-us 40,50");
    says("flash.read_4k_us", "asked for: --read-us");
    says("ftl.handles", "asked for: --handles 4");
    says("geometry.dies_per_channel", "asked for: --dies 24");
    says("geometry.blocks_per_plane", "28 % spare (asked for: --op 28)");
    says("ftl.capacity_mib", "asked for: --capacity 1.92T");
    assert_eq!(preset.config().flash.read_us, [40.0, 50.0]);
    wish.asks.push(Ask::new("--set", "name", "another"));
    assert_eq!(made(&wish).config().name, "another");
    let op = preset.config().check().unwrap().over_provisioning();
    assert!((0.28..0.29).contains(&op), "{op}");
}

#[test]
fn another_cell_mode_brings_its_times() {
    let qlc = made(&Wish { cell: Some("qlc".into()), ..wish("3.84T", "tlc-slc") });
    let c = qlc.config();
    assert_eq!((c.flash.native.as_str(), c.flash.page_order.as_str()), ("qlc", "one-shot"));
    assert_eq!(
        (c.flash.read_us[0], c.flash.program_us[0], c.flash.endurance),
        (85.0, 6098.0, 1000)
    );
    assert_eq!(c.geometry.pages_per_block, 512, "128 rows of four bits");
    assert!(qlc.source("flash.read_us").unwrap().contains("ConZone QLC"));
    let same = made(&Wish { cell: Some("tlc".into()), ..wish("3.84T", "tlc-slc") });
    assert_eq!(same.config().flash.program_us, [937.5]);
    let mut slower = Wish { cell: Some("qlc".into()), ..wish("3.84T", "tlc-slc") };
    slower.asks.push(Ask::new("--read-us", "flash.read_us", 99));
    assert_eq!(made(&slower).config().flash.read_us, [99.0]);
}

#[test]
fn very_large_drives_get_larger_mapping_units() {
    let preset = made(&wish("30.72T", "tlc-slc"));
    assert_eq!(preset.config().ftl.unit_kib, 8.0);
    assert!(preset.source("ftl.unit_kib").unwrap().contains("2^32"));
    assert_eq!(made(&wish("61.44T", "tlc-slc")).config().ftl.unit_kib, 16.0);
    refused(&wish("122.88T", "tlc-slc"), &["--capacity", "122.88 TB", "2^32", "--page-kib"]);
    let mut larger = wish("122.88T", "tlc-slc");
    larger.asks = vec![
        Ask::new("--page-kib", "geometry.page_kib", 32),
        Ask::new("--mdts-kib", "host.mdts_kib", 1024),
    ];
    assert_eq!(made(&larger).config().ftl.unit_kib, 32.0);
}

#[test]
fn what_cannot_be_is_refused_with_the_option_and_what_works() {
    let base = || wish("960G", "tlc-slc");
    let ask = |option: &str, key: &str, value: &str| Wish {
        asks: vec![Ask::new(option, key, value)],
        ..base()
    };
    refused(&Wish { dies: Some(10), channels: Some(4), ..base() }, &["--dies 10", "8 or 12"]);
    refused(&Wish { dies: Some(0), ..base() }, &["--dies 0", "1 to 4096"]);
    refused(&Wish { channels: Some(5000), ..base() }, &["--channels 5000"]);
    refused(&Wish { op_percent: Some(0.0), ..base() }, &["--op 0", "more than 0"]);
    refused(&Wish { op_percent: Some(f64::NAN), ..base() }, &["--op"]);
    refused(&Wish { cell: Some("plc".into()), ..base() }, &["--cell plc", "qlc"]);
    refused(&Wish { like: "tlc-slv".into(), ..base() }, &["did you mean «tlc-slc»"]);
    refused(&ask("--planes", "geometry.planes", "9"), &["--planes", "at most 8"]);
    refused(&ask("--planes", "geometry.planes", "two"), &["--planes", "whole number"]);
    refused(&ask("--read-us", "flash.read_us", "-1"), &["--read-us", "0 to"]);
    refused(&ask("--handles", "ftl.handles", "500"), &["--handles", "at most 128"]);
    refused(
        &ask("--unit-kib", "ftl.unit_kib", "32"),
        &["--unit-kib", "multiple of the mapping unit"],
    );
    refused(&ask("--read-us", "flash.read_us", ""), &["--read-us: «» is not"]);
    refused(&ask("--unit-kib", "ftl.unit_kib", "3"), &["--unit-kib", "power of two"]);
    refused(&ask("--buffer-mib", "buffer.kib", "4"), &["--buffer-mib", "program unit (96 KiB)"]);
    refused(&ask("--set", "geometry.channels", "8"), &["--set geometry.channels=8", "--channels"]);
    refused(&ask("--set", "ftl.capacity_mib", "8"), &["--capacity"]);
    refused(&ask("--set", "ftl.victm", "fifo"), &["did you mean"]);
    refused(
        &ask("--pages-per-block", "geometry.pages_per_block", "100"),
        &["--pages-per-block", "multiple of 3"],
    );
    refused(&Wish { capacity_bytes: 100, ..base() }, &["--capacity", "less than one mapping unit"]);
}

#[test]
fn a_design_can_be_the_model_of_another() {
    let dir = std::env::temp_dir().join(format!("flashwise-design-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("first.toml");
    std::fs::write(&path, made(&wish("960G", "tlc-slc")).to_toml()).unwrap();
    let second = made(&wish("960G", path.to_str().unwrap()));
    std::fs::remove_dir_all(&dir).unwrap();
    let first = made(&wish("960G", "tlc-slc"));
    assert_eq!(second.config().geometry, first.config().geometry);
    assert_eq!(second.source("flash.read_us"), first.source("flash.read_us"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_wish_makes_a_drive_or_is_refused_with_a_message(
        exponent in 5.0f64..15.5,
        like in 0..PRESETS.len(),
        op in proptest::option::of(prop_oneof![0.0f64..1.0, 1.0..50.0, 50.0..2000.0]),
        dies in proptest::option::of(prop_oneof![1u32..64, 1u32..5000]),
        channels in proptest::option::of(1u32..40),
        cell in proptest::option::of(prop_oneof![Just("slc"), Just("mlc"), Just("tlc"), Just("qlc")]),
        planes in proptest::option::of(1u32..10),
        pages in proptest::option::of(prop_oneof![1u32..50, 1u32..5000]),
        page_kib in proptest::option::of(prop_oneof![Just(4), Just(8), Just(16), Just(32), Just(7)]),
        unit_kib in proptest::option::of(prop_oneof![Just(1), Just(4), Just(16), Just(64)]),
        handles in proptest::option::of(1u16..140),
        protected in proptest::option::of(any::<bool>()),
    ) {
        let like = PRESETS[like].0;
        let mut wish = wish("1G", like);
        wish.capacity_bytes = 10f64.powf(exponent) as u64;
        (wish.op_percent, wish.dies, wish.channels) = (op, dies, channels);
        wish.cell = cell.map(str::to_owned);
        let mut ask = |option: &str, key: &str, value: Option<String>| {
            wish.asks.extend(value.map(|v| Ask::new(option, key, v)));
        };
        ask("--planes", "geometry.planes", planes.map(|v| v.to_string()));
        ask("--pages-per-block", "geometry.pages_per_block", pages.map(|v| v.to_string()));
        ask("--page-kib", "geometry.page_kib", page_kib.map(|v: i32| v.to_string()));
        ask("--unit-kib", "ftl.unit_kib", unit_kib.map(|v: i32| v.to_string()));
        ask("--handles", "ftl.handles", handles.map(|v| v.to_string()));
        ask("--power-protected", "buffer.power_protected", protected.map(|v| v.to_string()));
        match design(&wish) {
            Ok(preset) => {
                let again = DeviceConfig::parse("again", &preset.to_toml(), &[]).expect("it loads");
                prop_assert_eq!(&again, preset.config());
                prop_assert!(again.check().is_ok());
                let short = wish.capacity_bytes as f64 - exported(&preset);
                let unit = again.ftl.unit_kib * 1024.0;
                prop_assert!((0.0..unit).contains(&short), "{} short", short);
                let op = again.check().expect("checked").over_provisioning();
                let wanted = wish.op_percent.map_or(0.0, |p| p / 100.0);
                prop_assert!(op >= wanted - 1e-6, "{} of {}", op, wanted);
            }
            Err(e @ DesignError::Preset(_)) => prop_assert!(false, "{}: no option is named", e),
            Err(e) => prop_assert!(e.to_string().len() > 20, "{}", e),
        }
    }
}
