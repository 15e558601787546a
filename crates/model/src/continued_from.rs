//! Which other sessions a transcript goes on from.
//!
//! When a plan is accepted, or a session goes on in a new file, the client ends the old one
//! without telling anybody. The new file gives it away: older clients left lines with the old
//! session's id in it, newer ones name the old transcript in the text of the hand-off. Either may
//! stand on any line. A fork is no such case: what it was made from has not ended.

use crate::entry::{self, LineKind};
use crate::text::{self, TextKind};
use crate::user_input::UserInput;

/// Marks of a line that may name another session; a line without them does not.
const MARKS: [&[u8]; 2] = [b"\"sessionId\"", b".jsonl"];

/// Calls `each` for every session that a line names as one before its own. The same name may
/// come again, and it is only a name: whether there is such a session is for others to see.
pub fn previous_sessions(line: &[u8], own: &str, each: &mut dyn FnMut(&str)) {
    if !may_name(line, own) {
        return;
    }
    let mut hands_over = false;
    for entry in entry::decode(line).entries {
        hands_over |= entry.kind == LineKind::User && entry.input == UserInput::Plan;
        if let Some(id) = entry.session.filter(|_| !entry.sidechain) {
            let id = id.to_string();
            if id != own {
                each(&id);
            }
        }
    }
    if hands_over {
        text::texts(line, &mut |text| {
            if matches!(text.place, TextKind::Prompt | TextKind::Other) {
                transcripts(&text.decode(), own, each);
            }
        });
    }
}

/// Whether it is worth decoding: lines of the session itself are nearly all there are.
fn may_name(line: &[u8], own: &str) -> bool {
    if memchr::memmem::find(line, MARKS[1]).is_some() {
        return true;
    }
    memchr::memmem::find_iter(line, MARKS[0]).any(|at| {
        let value = line[at + MARKS[0].len()..].trim_ascii_start();
        let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii_start();
        let value = value.strip_prefix(b"\"").unwrap_or(value);
        value
            .strip_prefix(own.as_bytes())
            .is_none_or(|rest| rest.first() != Some(&b'"'))
    })
}

/// The names of transcripts in a text, which stand at the end of a path.
fn transcripts(text: &str, own: &str, each: &mut dyn FnMut(&str)) {
    for (end, _) in text.match_indices(".jsonl") {
        let start = text[..end].rfind(['/', '\\']).map_or(0, |slash| slash + 1);
        let name = &text[start..end];
        let plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
        if start > 0 && !name.is_empty() && name != own && name.chars().all(plain) {
            each(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "b9fe78d3-e747-40f4-a296-9f3e9c045272";
    const OLD: &str = "b8d3edaf-b6c0-41dd-bde5-5cf6304b07a1";

    fn all(line: &str) -> Vec<String> {
        let mut all = Vec::new();
        previous_sessions(line.as_bytes(), OWN, &mut |id| all.push(id.to_owned()));
        all
    }

    #[test]
    fn a_line_of_another_session_names_it_and_one_of_its_own_does_not() {
        let line = |id: &str| {
            format!(
                r#"{{"type":"user","sessionId": "{id}","message":{{"role":"user","content":"x"}}}}"#
            )
        };
        assert_eq!(all(&line(OLD)), [OLD]);
        assert_eq!(all(&line(OWN)), [""; 0]);
        assert_eq!(
            all(r#"{"type":"file-history-snapshot","messageId":"m"}"#),
            [""; 0]
        );
        assert_eq!(all("not json \"sessionId\":\"x\""), [""; 0]);
    }

    #[test]
    fn a_plan_hand_off_names_the_transcript_in_its_text() {
        let plan = format!(
            r##"{{"type":"user","message":{{"role":"user","content":"Implement the following plan:\n\n# Plan\n\nread the full transcript at: /home/dev/.claude/projects/-p/{OLD}.jsonl"}},"uuid":"a","planContent":"# Plan","sessionId":"{OWN}"}}"##
        );
        assert_eq!(all(&plan), [OLD]);
        let windows = plan.replace("/home/dev/.claude/projects/-p/", r"C:\\Users\\dev\\-p\\");
        assert_eq!(all(&windows), [OLD]);
        // Anybody may talk about a transcript; only a hand-off ends one.
        let talk = plan
            .replace("Implement the following plan:", "look at this:")
            .replace(r##""planContent":"# Plan","##, "");
        assert_eq!(all(&talk), [""; 0]);
    }

    #[test]
    fn a_name_that_is_no_plain_file_name_is_none() {
        let plan = r#"{"type":"user","message":{"role":"user","content":"Implement the following plan:\n\nat /x/..jsonl and /x/.jsonl and /x/a b.jsonl or bare.jsonl"},"uuid":"a"}"#;
        assert_eq!(all(plan), [""; 0]);
    }

    #[test]
    fn a_sub_agent_in_the_file_is_no_session_before() {
        let line = format!(
            r#"{{"type":"assistant","isSidechain":true,"sessionId":"{OLD}","message":{{"id":"m","role":"assistant","content":[]}}}}"#
        );
        assert_eq!(all(&line), [""; 0]);
    }
}
