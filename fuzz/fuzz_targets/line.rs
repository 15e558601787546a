//! Any bytes are a line: decoding never fails, and finds every object that a
//! JSON parser finds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_model::entry;

fuzz_target!(|bytes: &[u8]| {
    let decoded = entry::decode(bytes);
    let parsed = serde_json::from_slice::<serde_json::Value>(bytes);
    if parsed.is_ok_and(|value| value.is_object()) {
        assert_eq!(
            decoded.entries.len(),
            1,
            "an object is one entry: {:?}",
            decoded.faults
        );
    }
});
