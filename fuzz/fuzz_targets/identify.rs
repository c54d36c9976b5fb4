//! Identify data of a drive from any bytes.
//!
//! Oracle: what decodes has printable text and a capacity that is not zero; two
//! structures in one buffer mean the same as one after the other, whichever comes
//! first.
#![no_main]

use flashwise_design::{IDENTIFY_BYTES, Identity};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = Identity::decode(data);
    // Any input becomes two structures, so that their contents are reached.
    let mut both = data.to_vec();
    both.resize(2 * IDENTIFY_BYTES, 0);
    let Ok(whole) = Identity::decode(&both) else { return };
    let printable = |text: &str| text.bytes().all(|c| (0x20..0x7F).contains(&c));
    let c = whole.controller.as_ref().expect("two structures hold a controller");
    assert!(printable(&c.model) && printable(&c.serial) && printable(&c.firmware));
    assert_ne!(whole.capacity_bytes(), Some(0));
    let (controller, namespace) = both.split_at(IDENTIFY_BYTES);
    for (first, second) in [(controller, namespace), (namespace, controller)] {
        let Ok(mut one) = Identity::decode(first) else { continue };
        if one.add(second).is_ok() {
            assert_eq!(one, whole);
        }
    }
});
