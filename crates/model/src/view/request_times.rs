//! When the model was asked: the time of the line that stands before its message.

use crate::entry::LineKind;
use crate::session::Session;
use crate::time::Time;
use crate::user_input::UserInput;

/// When each message was asked for, by message: the time of what was said before it in its
/// thread, a prompt or a result; its own first line where nothing was, and where a clock went
/// backwards. `None` if neither has a time.
pub fn asked(session: &Session) -> Vec<Option<Time>> {
    let mut before: Vec<Option<Time>> = vec![None; session.threads.len()];
    let mut asked: Vec<Option<Option<Time>>> = vec![None; session.messages.len()];
    for record in session
        .records
        .iter()
        .filter(|record| !record.is_duplicate())
    {
        let told = match record.kind {
            LineKind::User => record.input != UserInput::Summary,
            LineKind::Assistant => true,
            _ => false,
        };
        if !told {
            continue;
        }
        let last = &mut before[record.thread as usize];
        if let Some(message) = record.message() {
            let first = &mut asked[message as usize];
            if first.is_none() {
                *first = Some(earlier(*last, record.at()));
            }
        }
        *last = record.at();
    }
    asked.into_iter().map(Option::flatten).collect()
}

/// The first of two times, as far as there are any.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::TranscriptRole;

    fn session(lines: &[&str]) -> Session {
        Session::from_log(&Log::new(lines.join("\n") + "\n"), TranscriptRole::Main)
    }

    fn user(second: u32, content: &str) -> String {
        format!(
            r#"{{"type":"user","timestamp":"2026-01-01T00:00:{second:02}.000Z","message":{{"role":"user","content":{content}}}}}"#
        )
    }

    fn reply(second: u32, id: &str) -> String {
        format!(
            r#"{{"type":"assistant","timestamp":"2026-01-01T00:00:{second:02}.000Z","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{second}"}}]}}}}"#
        )
    }

    fn seconds(session: &Session) -> Vec<Option<i64>> {
        let start = Time::parse("2026-01-01T00:00:00.000Z").unwrap();
        let all = asked(session).into_iter();
        all.map(|at| Some((at?.0 - start.0) / 1000)).collect()
    }

    #[test]
    fn a_message_was_asked_for_when_the_line_before_it_was_written() {
        let result = r#"[{"type":"tool_result","tool_use_id":"t","content":"x"}]"#;
        let lines = [
            user(1, "\"hi\""),
            reply(3, "a"),
            reply(4, "a"),
            user(9, result),
            reply(12, "b"),
            reply(15, "c"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(seconds(&session(&lines)), [Some(1), Some(9), Some(12)]);
    }

    #[test]
    fn a_clock_that_goes_backwards_does_not_make_it_later_than_its_own_line() {
        let lines = [user(30, "\"hi\""), reply(3, "a")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(seconds(&session(&lines)), [Some(3)]);
        assert_eq!(seconds(&session(&lines[1..])), [Some(3)]);
    }

    #[test]
    fn without_times_there_is_none() {
        let bare = r#"{"type":"assistant","message":{"id":"a","role":"assistant","content":"x"}}"#;
        assert_eq!(asked(&session(&[bare])), [None]);
        // Nor is that of an earlier line one.
        let prompt = r#"{"type":"user","message":{"role":"user","content":"x"}}"#;
        let lines = [user(1, "\"hi\""), reply(3, "b")];
        let lines = [&lines[0], &lines[1], prompt, bare];
        assert_eq!(asked(&session(&lines)).last(), Some(&None));
    }
}
