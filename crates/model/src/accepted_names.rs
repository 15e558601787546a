//! Names that the API accepts: of tools, calls and results. What it refuses is found by `check`,
//! mended by `repair`, and sent under another name by our own rules, all by this one rule.

/// The longest name that is accepted.
const LONGEST: usize = 200;

/// Whether the API accepts a text as the name of a tool or as the id of a call.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && text.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The name of a tool in a form that is accepted; `None` if it is one.
pub fn tool_name(text: &str) -> Option<String> {
    if is_name(text) {
        return None;
    }
    let plain = plain(text, LONGEST);
    Some(match plain.is_empty() {
        true => "unnamed".to_owned(),
        false => plain,
    })
}

/// The id of a call in a form that is accepted, for the call and for its result; `None` if it is
/// one, or if there is none. Different ids stay different.
pub fn call_id(text: &str) -> Option<String> {
    if text.is_empty() || is_name(text) {
        return None;
    }
    let mark = hash(text);
    let kept = plain(text, LONGEST - 17);
    Some(format!("{kept}_{mark:016x}"))
}

/// Every character that is refused becomes `_`.
fn plain(text: &str, most: usize) -> String {
    let plain = |c: char| match u8::try_from(c) {
        Ok(byte) if is_plain(byte) => c,
        _ => '_',
    };
    text.chars().take(most).map(plain).collect()
}

/// FNV-1a, which is the same in every run.
fn hash(text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(start, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_that_is_accepted_and_ids_stay_apart() {
        let long = "a".repeat(201);
        for text in ["functions.Bash:0", "a b", "Lesen \u{fc}", &long] {
            let name = tool_name(text).unwrap();
            let id = call_id(text).unwrap();
            assert!(is_name(&name) && is_name(&id), "{name} {id}");
            assert_eq!((tool_name(&name), call_id(&id)), (None, None));
        }
        assert_ne!(call_id("call.1"), call_id("call:1"));
        assert_eq!((tool_name("Bash"), call_id("toolu_1")), (None, None));
        assert_eq!(tool_name("").as_deref(), Some("unnamed"));
        assert_eq!(call_id(""), None);
    }
}
