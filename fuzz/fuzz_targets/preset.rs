//! Device presets from any text.
//!
//! Oracle: a text that is accepted and written back as TOML is accepted again and
//! means the same; a text that is refused gets a message that names the place; and
//! a change of a key of an accepted preset either takes effect or is refused.
#![no_main]

use flashwise_ssd::DeviceConfig;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match DeviceConfig::parse("fuzzed.toml", text, &[]) {
        Err(e) => assert!(e.to_string().contains("fuzzed.toml"), "{e}"),
        Ok(cfg) => {
            let again = DeviceConfig::parse("again.toml", &cfg.to_toml(), &[]);
            // NaN is not equal to itself; the text is.
            assert_eq!(again.expect("what was written is read").to_toml(), cfg.to_toml());
            let change = ["geometry.channels=3".to_owned()];
            let changed = DeviceConfig::parse("fuzzed.toml", text, &change);
            assert_eq!(changed.expect("a valid change").geometry.channels, 3);
            // Numbers out of range are refused, not taken as others.
            let _ = (cfg.timing(), cfg.geometry());
        }
    }
});
