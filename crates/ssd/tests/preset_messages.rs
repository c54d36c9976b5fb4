//! What a preset error tells its reader: every candidate of a short key, the right
//! line of a file, and advice that works when it is followed. And that no number at
//! all, however odd, ends in a panic.

mod common;

use common::build;
use flashwise_ssd::{DeviceConfig, KEYS, PRESETS};

fn refused(sets: &[&str]) -> String {
    build("tiny", sets).expect_err(&format!("{sets:?} should be refused"))
}

fn bare(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[test]
fn a_short_key_is_taken_if_it_is_the_only_one_and_names_all_candidates_if_not() {
    let (_, text) = PRESETS.into_iter().find(|p| p.0 == "tiny").expect("a preset");
    let tiny: toml::Table = text.parse().expect("TOML");
    for key in KEYS {
        let short = bare(key);
        let candidates: Vec<&str> = KEYS.into_iter().filter(|k| bare(k) == short).collect();
        let value = match key.split_once('.') {
            Some((section, k)) => &tiny[section][k],
            None => &tiny[key],
        };
        let set = format!("{short}={value}");
        match build("tiny", &[&set]) {
            Ok(ssd) => {
                assert_eq!(candidates, [key], "{set}");
                assert_eq!(ssd.config(), &DeviceConfig::open("tiny", &[]).expect("a preset"));
            }
            Err(message) => {
                assert!(candidates.len() > 1, "{message}");
                for candidate in candidates {
                    assert!(message.contains(candidate), "{set}: {message}");
                }
                assert!(message.contains("name the section"), "{message}");
            }
        }
    }
    assert!(refused(&["endurance=1"]).contains("flash.endurance, slc.endurance"));
}

#[test]
fn a_bound_on_wear_is_a_number_of_erases() {
    for value in ["-1", "1e7", "nan"] {
        let message = refused(&[&format!("ftl.yield_erases={value}")]);
        assert!(message.contains("ftl.yield_erases") && message.contains("per block"), "{message}");
    }
}

/// Values that hardly any key takes. None may panic; a refusal names a key.
const ODD: [&str; 22] = [
    "",
    " ",
    "0",
    "-0.0",
    "-1",
    "1",
    "3",
    "0.0001",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "1e308",
    "-1e308",
    "nan",
    "inf",
    "-inf",
    "[nan]",
    "[]",
    "=",
];

#[test]
fn no_value_of_any_key_panics() {
    for key in KEYS {
        for value in ODD {
            let set = format!("{key}={value}");
            if let Err(message) = build("tiny", &[&set]) {
                let named = KEYS.iter().any(|k| k.contains('.') && message.contains(k));
                assert!(named || message.contains("mapping units"), "{set}: {message}");
            }
        }
    }
}

#[test]
fn marks_of_collection_beyond_any_drive_are_refused() {
    for blocks in [u32::MAX, u32::MAX - 1, u32::MAX - 2] {
        let low = format!("ftl.gc_low_blocks={blocks}");
        let message = refused(&[&low, "ftl.gc_high_blocks=4294967295"]);
        assert!(message.contains("gc_low_blocks") || message.contains("reserve"), "{message}");
    }
}

fn file_error(text: &str) -> String {
    DeviceConfig::parse("mine.toml", text, &[]).expect_err("refused").to_string()
}

/// The preset with a line put in at the end of a section; its number is returned.
fn with_line(section: &str, line: &str) -> (String, usize) {
    let mut lines: Vec<&str> = PRESETS[0].1.lines().collect();
    let head = lines.iter().position(|l| *l == section).expect("the section is there");
    let end = lines[head..].iter().position(|l| l.is_empty()).map_or(lines.len(), |n| head + n);
    lines.insert(end, line);
    (lines.join("\n"), end + 1)
}

#[test]
fn an_unknown_key_of_a_file_is_named_with_its_line_and_the_nearest_key() {
    let cases = [
        ("[geometry]", "dies_per_chanel = 2", "geometry.dies_per_channel"),
        ("[flash]", "suspends_maximum = 2", "flash.suspends_max"),
        ("[host]", "mdts_kb = 2", "host.mdts_kib"),
        ("[ftl]", "overprovisioning = 2", "ftl.over_provisioning"),
    ];
    for (section, line, nearest) in cases {
        let (text, at) = with_line(section, line);
        let key = line.split(' ').next().expect("a key");
        let full = format!("«{}.{key}»", section.trim_matches(['[', ']']));
        let message = file_error(&text);
        assert!(message.contains(&full), "{message}");
        assert!(message.contains(&format!("did you mean «{nearest}»")), "{message}");
        assert!(message.contains(&format!("mine.toml:{at}:")), "line {at}: {message}");
    }
}

#[test]
fn an_unknown_key_that_begins_another_is_named_with_its_own_line() {
    let cases = [
        ("[slc]", "read = 2"),
        ("[flash]", "suspend_program = 2"),
        ("[host]", "mdts = 2"),
        ("[slc]", "channels = 2"),
        ("[host]", "capacity = 2"),
    ];
    for (section, line) in cases {
        let (text, at) = with_line(section, line);
        let message = file_error(&text);
        assert!(message.contains(&format!("mine.toml:{at}:")), "{line}, line {at}: {message}");
    }
}

#[test]
fn an_unknown_section_is_named_with_its_own_line() {
    let text = format!("{}\n[flesh]\nplanes = 2\n", PRESETS[0].1);
    let at = text.lines().position(|l| l == "[flesh]").expect("it is there") + 1;
    let message = file_error(&text);
    assert!(message.contains("flesh"), "{message}");
    let lines = [format!("mine.toml:{at}:"), format!("mine.toml:{}:", at + 1)];
    assert!(lines.iter().any(|l| message.contains(l)), "line {at}: {message}");
}

#[test]
fn the_smallest_spare_space_that_is_named_builds_every_preset() {
    for (name, _) in PRESETS {
        // Where a capacity is set, spare space is what is left.
        let sets = ["ftl.capacity_mib=0", "ftl.over_provisioning=0"];
        let message = build(name, &sets).expect_err("no spare space");
        assert!(
            message.starts_with("ftl.over_provisioning = 0: expected more than 0"),
            "{message}"
        );
        let least = message.rsplit(' ').next().expect("it ends with a number");
        let set = format!("ftl.over_provisioning={least}");
        let ssd = build(name, &["ftl.capacity_mib=0", &set]);
        let ssd = ssd.unwrap_or_else(|e| panic!("{name}, {set}: {e}"));
        let spare = ssd.ftl().config().over_provisioning();
        let least: f64 = least.parse().expect("a number");
        assert!((least..least + 0.2).contains(&spare), "{name}: {spare} of {least}");
    }
}

/// The number after `words` in a message.
fn advice(message: &str, words: &str) -> String {
    let at = message.find(words).unwrap_or_else(|| panic!("«{words}» is not in: {message}"));
    let rest = message[at + words.len()..].trim_start();
    rest.chars().take_while(char::is_ascii_digit).collect()
}

/// The advised number of blocks builds this capacity, and fewer do not.
fn assert_blocks_advised_work(capacity_mib: u64, protection: &str) {
    let capacity = format!("ftl.capacity_mib={capacity_mib}");
    let message = refused(&[protection, &capacity]);
    let advised = advice(&message, "geometry.blocks_per_plane to at least");
    let set = format!("geometry.blocks_per_plane={advised}");
    let ssd = build("tiny", &[protection, &capacity, &set]);
    let ssd = ssd.unwrap_or_else(|e| panic!("{capacity}, {set}: {e}"));
    assert_eq!(ssd.capacity_sectors(), capacity_mib * 2048);
    let fewer = advised.parse::<u32>().expect("a number") - 1;
    let set = format!("geometry.blocks_per_plane={fewer}");
    assert!(build("tiny", &[protection, &capacity, &set]).is_err(), "{capacity}, {set}");
}

#[test]
fn enough_blocks_for_a_capacity_are_named_and_work() {
    for mib in [26, 32, 64, 1000] {
        assert_blocks_advised_work(mib, "buffer.power_protected=true");
    }
}

#[test]
fn enough_blocks_for_a_capacity_without_power_protection_are_named_and_work() {
    for mib in [24, 32, 64, 1000] {
        assert_blocks_advised_work(mib, "buffer.power_protected=false");
    }
}

#[test]
fn enough_blocks_for_a_share_of_spare_space_are_named_and_work() {
    for n in 7..12 {
        let set = format!("geometry.blocks_per_plane={n}");
        if let Err(message) = build("tiny", &[&set]) {
            let blocks = advice(&message, "geometry.blocks_per_plane to at least");
            let advised = format!("geometry.blocks_per_plane={blocks}");
            let next = build("tiny", &[&advised]).err();
            assert_eq!(next, None, "{set} says {advised}");
        }
    }
}

#[test]
fn a_bound_that_is_named_is_the_one_that_was_crossed() {
    let small = refused(&["ftl.capacity_mib=0.0001"]);
    assert!(small.contains("at least"), "too small a capacity: {small}");
    let slow = refused(&["flash.channel_mb_s=1e-9"]);
    assert!(!slow.contains("up to"), "too slow a channel: {slow}");
    let much = refused(&["ftl.over_provisioning=101"]);
    assert!(!much.contains("more than 0"), "too much spare space: {much}");
}

#[test]
fn a_value_is_named_as_it_was_set() {
    let cases = [
        ("ftl.unit_kib", "3"),
        ("ftl.unit_kib", "128"),
        ("geometry.page_kib", "6"),
        ("geometry.pages_per_block", "9000"),
        ("geometry.dies_per_channel", "1024"),
    ];
    for (key, value) in cases {
        let set = format!("{key}={value}");
        let message = refused(&["geometry.channels=8", &set]);
        assert!(message.contains(&format!("{key} = {value}:")), "{set}: {message}");
    }
}

#[test]
fn too_few_blocks_and_no_spare_space_are_refused_at_once() {
    let start = std::time::Instant::now();
    for spare in ["0", "-1", "nan"] {
        let spare = format!("ftl.over_provisioning={spare}");
        let message = refused(&["geometry.blocks_per_plane=7", &spare]);
        assert!(message.contains("ftl.over_provisioning"), "{message}");
    }
    let took = start.elapsed();
    assert!(took.as_secs() < 5, "{took:?} for three messages");
}
