//! Titles of sessions: as a person gives them, and what may stand for one.

use crate::json;

/// The line that gives a session a title; the last one in a file counts.
pub fn line(session: &str, title: &str) -> String {
    format!(
        r#"{{"type":"custom-title","customTitle":{},"sessionId":{}}}"#,
        json::quoted(title),
        json::quoted(session)
    )
}

/// What stands in `custom-title.json` beside a session (2.1.325).
pub fn note(title: &str) -> String {
    format!(r#"{{"customTitle":{}}}"#, json::quoted(title))
}

/// How the client begins the prompt by which it hands a plan over.
pub(crate) const PLAN: &str = "Implement the following plan:";

/// What names a session that was begun with this prompt: of a plan that was handed over, its
/// heading, for all of them begin alike.
pub fn of_prompt(prompt: &str) -> &str {
    let Some(plan) = prompt.strip_prefix(PLAN) else {
        return prompt;
    };
    let lines = || plan.lines().map(str::trim);
    let first = || lines().find(|line| !line.is_empty());
    let named = lines().find(|line| is_heading(line)).or_else(first);
    named.map_or(prompt, |line| line.trim_matches(['#', ' ']))
}

/// Whether a heading stands in this beginning of a plan that was handed over, and ends there.
pub(crate) fn has_heading(prompt: &str) -> bool {
    let whole = prompt.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().any(|line| is_heading(line.trim()))
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}

/// Whether a title repeats what the client said in place of a reply: all of it, or sentences
/// that it begins with.
pub(crate) fn repeats(title: &str, said: &str) -> bool {
    let (title, said) = (title.trim(), said.trim());
    // Titles are cut off where they are long.
    let cut = title.strip_suffix('…').or(title.strip_suffix("..."));
    let cut = cut.filter(|start| start.chars().count() >= CUT);
    let Some(rest) = said.strip_prefix(cut.unwrap_or(title)) else {
        return false;
    };
    let ends = title.ends_with(['.', '!', '?', ':']);
    let goes_on = rest.trim_start_matches([' ', '.']);
    !title.is_empty()
        && (rest.is_empty()
            || ends
            || cut.is_some()
            || rest.starts_with(['\n', '.'])
            || goes_on.starts_with(['·', '∙', '|', '(', '\n']))
}

/// A title that was cut off has at least so many characters.
const CUT: usize = 20;

/// Whether a title is what the client was told in place of one because a request failed. Older
/// ones took such an answer for a title.
pub fn is_failure(text: &str) -> bool {
    let text = text.trim();
    let lower = text.to_ascii_lowercase().replace('’', "'");
    let is_said = |start: &str| {
        let rest = lower.strip_prefix(start);
        rest.is_some_and(|rest| {
            rest.trim_start()
                .starts_with(['·', '∙', '|', '.', ':', '('])
                || rest.is_empty()
        })
    };
    FAILURES.iter().any(|start| is_said(start))
        || lower.ends_with("please run /login")
        || (lower.starts_with("you've hit your ") || lower.starts_with("you've reached your "))
            && lower.contains("limit")
        || lower.contains("limit reached ") && lower.contains("resets ")
        || lower.starts_with(r#"{"type":"error""#)
}

/// What failures begin with, up to their end or a mark.
const FAILURES: &[&str] = &[
    "api error",
    "claude ai usage limit reached",
    "claude usage limit reached",
    "connection error",
    "credit balance is too low",
    "execution error",
    "failed to authenticate",
    "internal server error",
    "invalid api key",
    "invalid authentication credentials",
    "not logged in",
    "no response requested",
    "oauth authentication is currently not supported",
    "oauth token has expired",
    "oauth token revoked",
    "overloaded",
    "prompt is too long",
    "rate limited",
    "request timed out",
    "unable to connect to api",
    "your account does not have access to claude code",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::{Session, TranscriptRole};

    #[test]
    fn the_line_is_the_one_the_client_writes() {
        let recorded = r#"{"type":"custom-title","customTitle":"lab title","sessionId":"99b0eb8e-9642-4a6c-ac89-ec7332a835f5"}"#;
        let written = line("99b0eb8e-9642-4a6c-ac89-ec7332a835f5", "lab title");
        assert_eq!(written, recorded);
        assert_eq!(note("lab title"), r#"{"customTitle":"lab title"}"#);
    }

    #[test]
    fn any_text_can_be_a_title() {
        let title = "\"quoted\" \\ line\nbreak 日本";
        let log = Log::new(line("s", title) + "\n");
        let session = Session::from_log(&log, TranscriptRole::Main);
        assert_eq!(session.given_title(), Some(title));
    }

    #[test]
    fn a_plan_is_named_by_its_heading() {
        let plan = |text: &str| of_prompt(&format!("{PLAN}\n\n{text}")).to_owned();
        assert_eq!(plan("# Move the parser\n\n## Context"), "Move the parser");
        assert_eq!(plan("\n## Plan: two files ##\nx"), "Plan: two files");
        assert_eq!(plan("Some words first.\n\n# The heading"), "The heading");
        assert_eq!(plan("1. no heading\n2. at all"), "1. no heading");
        assert_eq!(plan("#hashtag\nx"), "hashtag");
        assert_eq!(of_prompt(PLAN), PLAN);
        assert_eq!(of_prompt("fix it\n# not a plan"), "fix it\n# not a plan");
    }

    #[test]
    fn a_title_that_repeats_what_the_client_said_is_known_again() {
        let said = "There's an issue with the selected model (x). It may not exist or you may not have access to it. Run /model to pick a different model.";
        for title in [
            said,
            "There's an issue with the selected model (x). It may not exist or you may not have access to it.",
            " There's an issue with the selected model (x).",
            "There's an issue with the selected mod…",
            "There's an issue with the selected mod...",
        ] {
            assert!(repeats(title, said), "{title}");
        }
        for title in ["", "There's an issue", "There", "There...", "Fix the model"] {
            assert!(!repeats(title, said), "{title}");
        }
        assert!(repeats("Blocked", "Blocked\nby policy") && repeats("Blocked", "Blocked · ask"));
    }

    #[test]
    fn what_a_failed_request_said_is_no_title() {
        for text in [
            "API Error: 403 {\"error\":{\"type\":\"forbidden\"}}",
            "API Error (Connection error.)",
            "API Error",
            "Invalid API key · Please run /login",
            "Invalid API key · Fix external API key",
            "Not logged in · Please run /login",
            "Credit balance is too low",
            "Claude AI usage limit reached|1757080800",
            "5-hour limit reached ∙ resets 4pm",
            "You've hit your limit · resets 3am (Europe/Berlin)",
            "OAuth token revoked · Please run /login",
            "Prompt is too long",
        ] {
            assert!(is_failure(text), "{text}");
        }
        for text in [
            "API error handling in the parser",
            "Invalid API key messages for guests",
            "Rate limit reached by the crawler",
            "Fix login",
            "",
        ] {
            assert!(!is_failure(text), "{text}");
        }
    }
}
