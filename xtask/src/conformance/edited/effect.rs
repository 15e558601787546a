//! Whether a step did what it promises. A client that resumes a session in which nothing was
//! done shows nothing about the operation.

use unspool_model::block::BlockKind;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::check;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages;

/// A session before and after a step of the program; `None` where its file is gone.
pub struct Step<'a> {
    /// The session as it was laid out.
    pub source: &'a str,
    /// The session that the step was about.
    pub before: Option<&'a str>,
    /// What came of it.
    pub after: Option<&'a str>,
}

/// What a step with these words should have done and did not.
pub fn missing(words: &[&str], step: &Step<'_>) -> Option<String> {
    let done = |is: bool, what: &str| (!is).then(|| what.to_owned());
    let back = step.after == Some(step.source);
    match words {
        ["archive", "--restore", ..] => done(back, "the session did not come back as it was"),
        ["archive", .., "--remove"] => done(step.after.is_none(), "the session was not put away"),
        ["undo", ..] => {
            let undone = back && step.before != step.after;
            done(undone, "nothing was undone")
        }
        _ => {
            let (Some(before), Some(after)) = (step.before, step.after) else {
                return Some("there is no session".to_owned());
            };
            promised(words, &Facts::of(before), &Facts::of(after))
        }
    }
}

/// What a session holds, as far as operations change it.
struct Facts {
    text: String,
    session: Session,
    /// Bytes of calls and results, of thinking and of what is said.
    tools: usize,
    calls: usize,
    thinking: usize,
    said: usize,
    spoken: usize,
    /// The last line of the conversation.
    end: Option<String>,
    boundaries: usize,
    faults: usize,
}

impl Facts {
    fn of(text: &str) -> Facts {
        let log = Log::new(text);
        let session = Session::from_log(&log, TranscriptRole::Main);
        let sum = |kinds: &[BlockKind]| {
            let blocks = session.blocks.iter();
            let chosen = blocks.filter(|block| kinds.contains(&block.kind));
            chosen.fold((0, 0), |(count, bytes), block| {
                (count + 1, bytes + block.span().len)
            })
        };
        let live = messages::live_lines(&session, ClientProfile::Strict);
        let id = |at: &u32| session.records[*at as usize].uuid.as_ref();
        let end = live.last().and_then(id).map(ToString::to_string);
        Facts {
            text: text.to_owned(),
            tools: sum(&[BlockKind::ToolUse, BlockKind::ToolResult]).1,
            calls: sum(&[BlockKind::ToolUse]).0,
            thinking: sum(&[BlockKind::Thinking, BlockKind::RedactedThinking]).0,
            said: sum(&[BlockKind::Text]).1,
            spoken: live.len(),
            boundaries: session
                .records
                .iter()
                .filter(|record| record.kind.is_boundary())
                .count(),
            faults: check::faults(&session).len(),
            end,
            session,
        }
    }

    fn cwd(&self) -> Option<&str> {
        self.session.cwds.iter().next().map(|(cwd, _)| cwd)
    }

    fn count(&self, words: &str) -> usize {
        self.text.matches(words).count()
    }
}

const REDACTED: &str = "[REDACTED:";

fn promised(words: &[&str], before: &Facts, after: &Facts) -> Option<String> {
    let behind = |word: &str| {
        let place = words.iter().position(|other| *other == word)?;
        words.get(place + 1).copied()
    };
    let titled = |title: Option<&str>| after.session.given_title() == title;
    let moved = before.cwd() != after.cwd();
    let truncates = words.contains(&"truncate");
    // A clone that is made again in the same way must not lose more.
    let again = words.contains(&"{made}");
    let mut checks: Vec<(bool, &str)> = vec![(before.text != after.text, "nothing was done")];
    for word in words {
        checks.push(match *word {
            "--new-uuids" => {
                let shared = before
                    .session
                    .ids()
                    .any(|id| after.session.find(id).is_some());
                (!shared, "lines have their old ids")
            }
            "--cwd" | "move" => (moved, "it is in the old directory"),
            "--title" => (titled(behind("--title")), "it has another title"),
            "rename" => (titled(words.last().copied()), "it has another title"),
            "--strip-tools" if truncates => (
                after.tools < before.tools && after.calls == before.calls,
                "no call was cut short",
            ),
            "--strip-tools" => (after.calls < before.calls, "no call went"),
            "--preset" if again => (after.calls == before.calls, "calls went again"),
            "--preset" | "--keep-tools" | "--results-over" => (
                after.tools < before.tools,
                "calls and results are as they were",
            ),
            word if word.starts_with("--strip-thinking") => {
                (after.thinking < before.thinking, "no thinking went")
            }
            "--slim" => (
                after.session.records.len() < before.session.records.len(),
                "no line went",
            ),
            "--turns" | "--until" | "--drop-turn" => (after.spoken < before.spoken, "no turn went"),
            "--branch" => (after.end != before.end, "it goes on where it did"),
            "--redact" | "redact" => (
                after.count(REDACTED) > before.count(REDACTED),
                "no secret was replaced",
            ),
            "--compress" => (after.said < before.said, "no text is shorter"),
            "--summary" => (
                after.boundaries > before.boundaries
                    && behind("--summary-text").is_some_and(|text| after.count(text) > 0),
                "there is no summary",
            ),
            "repair" => (after.faults == 0, "faults are left"),
            "merge" => (after.spoken > before.spoken, "nothing came to it"),
            _ => continue,
        });
    }
    let wrong = checks.into_iter().find(|(done, _)| !done);
    wrong.map(|(_, what)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool_testkit::script;

    fn step(words: &[&str], before: &str, after: &str) -> Option<String> {
        missing(
            words,
            &Step {
                source: before,
                before: Some(before),
                after: Some(after),
            },
        )
    }

    fn text(script: &str) -> String {
        String::from_utf8(script::jsonl(script)).unwrap()
    }

    #[test]
    fn a_session_that_is_as_it_was_shows_nothing() {
        let same = text("you: a\nclaude: b [Bash ls]\nresult: Bash ls c\nclaude: d\n");
        for words in [&["clone", "x"][..], &["repair", "x"], &["undo"]] {
            assert!(step(words, &same, &same).is_some(), "{words:?}");
        }
        let gone = Step {
            source: &same,
            before: Some(&same),
            after: None,
        };
        assert_eq!(missing(&["archive", "x", "--remove"], &gone), None);
        assert!(missing(&["clone", "x"], &gone).is_some());
    }

    #[test]
    fn what_a_flag_promises_must_be_there() {
        let before = text("you: a\nclaude: b [Bash ls]\nresult: Bash ls c\nclaude: d\nyou: e\n");
        let after = text("you: a\nclaude: b\nclaude: d\nyou: e\n");
        assert_eq!(
            step(&["clone", "x", "--strip-tools", "50"], &before, &after),
            None
        );
        assert_eq!(
            step(&["clone", "x", "--preset", "heavy"], &before, &after),
            None
        );
        for word in [
            "--slim",
            "--redact",
            "--strip-thinking=50",
            "--summary",
            "--cwd",
        ] {
            let words = ["clone", "x", word, "1"];
            let missed = step(&words, &before, &after);
            let slim = word == "--slim" && missed.is_none();
            assert!(missed.is_some() || slim, "{word}");
        }
        let truncated = ["clone", "x", "--strip-tools", "100", "--mode", "truncate"];
        assert!(step(&truncated, &before, &after).is_some(), "calls went");
    }
}
