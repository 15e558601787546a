//! Any text can be searched for secrets: what is found lies in it, in order and on whole
//! characters, and once masked nothing is left to find.

#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_model::secrets::Secrets;

fuzz_target!(|text: &str| {
    let secrets = Secrets::standard();
    let found = secrets.find(text);
    let mut end = 0;
    for secret in &found {
        assert!(secret.range.start >= end, "in order: {found:?}");
        let is_some = text.get(secret.range.clone()).is_some_and(|text| !text.is_empty());
        assert!(is_some, "on whole characters: {found:?}");
        end = secret.range.end;
    }
    let masked = secrets.mask(text);
    assert_eq!(secrets.find(&masked), [], "left in {masked:?}");
});
