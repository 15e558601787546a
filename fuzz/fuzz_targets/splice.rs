//! Editing a field touches that field alone, and undoing it gives the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::borrow::Cow;
use unspool_model::json;
use unspool_model::log::Log;

const KEY: &str = "parentUuid";
const NEW: &str = r#""b3c1""#;

fuzz_target!(|bytes: &[u8]| {
    let log = Log::new(bytes);
    let same = log.edited(|line| Some(Cow::Borrowed(line.bytes)));
    assert_eq!(same.as_bytes(), bytes, "splicing nothing changes nothing");
    for line in log.lines() {
        edit(line.bytes);
    }
});

fn edit(line: &[u8]) {
    let Some(edited) = json::with_field(line, KEY, NEW) else {
        return;
    };
    let Some(span) = json::find(&edited, &[KEY]) else {
        panic!("the new field is not found");
    };
    assert_eq!(span.of(&edited), NEW.as_bytes());
    if let Some(old) = json::find(line, &[KEY]) {
        let old = String::from_utf8_lossy(old.of(line));
        // Bytes that are not UTF-8 cannot be given back as text.
        if !old.contains('\u{fffd}') {
            assert_eq!(
                json::with_field(&edited, KEY, &old).as_deref(),
                Some(line),
                "undone"
            );
        }
    }
}
