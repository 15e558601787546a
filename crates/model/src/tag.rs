//! A tag on a session, as the SDK writes it: one word or a few to find it by.

use crate::json;

/// The line that tags a session; the last one in a file counts, and an empty one takes the tag
/// off.
pub fn line(session: &str, tag: &str) -> String {
    format!(
        r#"{{"type":"tag","tag":{},"sessionId":{}}}"#,
        json::quoted(tag),
        json::quoted(session)
    )
}

/// A tag as it is kept: without characters that nobody sees, and without blanks around it. Two
/// tags that look the same should be the same.
pub fn cleaned(tag: &str) -> String {
    let shown: String = tag.chars().filter(|c| !is_hidden(*c)).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that only steer how others are shown, those for private use, and controls.
fn is_hidden(c: char) -> bool {
    (c.is_control() && !c.is_whitespace())
        || matches!(c,
            '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
            | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::{Session, TranscriptRole};

    fn tagged(lines: &[String]) -> Option<String> {
        let log = Log::new(lines.join("\n") + "\n");
        let session = Session::from_log(&log, TranscriptRole::Main);
        session.tag().map(str::to_owned)
    }

    #[test]
    fn the_line_is_the_one_the_sdk_writes() {
        let wanted = r#"{"type":"tag","tag":"needs review","sessionId":"s"}"#;
        assert_eq!(line("s", "needs review"), wanted);
    }

    #[test]
    fn the_last_tag_counts_and_an_empty_one_takes_it_off() {
        let (one, other, none) = (line("s", "one"), line("s", "other"), line("s", ""));
        assert_eq!(
            tagged(&[one.clone(), other.clone()]).as_deref(),
            Some("other")
        );
        assert_eq!(tagged(&[one, none.clone()]), None);
        assert_eq!(tagged(&[none, other]).as_deref(), Some("other"));
        // The inputs of tools have tags as well.
        let call = r#"{"type":"user","tag":"v1","message":{"role":"user","content":"x"}}"#;
        assert_eq!(tagged(&[call.to_owned()]), None);
    }

    #[test]
    fn what_nobody_sees_is_no_part_of_a_tag() {
        assert_eq!(cleaned("  a\u{200b}b \u{202e} c\n"), "ab c");
        assert_eq!(cleaned("\u{feff}\u{e001}"), "");
        assert_eq!(cleaned("日本 🎉"), "日本 🎉");
    }
}
