//! Lines of `history.jsonl`: every prompt that was typed, kept when its session is not.

use crate::json;
use crate::time::Time;

/// A prompt as the client remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPrompt {
    /// What was typed; pasted text stands as a mark in it.
    pub text: String,
    /// What was pasted, as far as it was kept.
    pub pasted: Vec<String>,
    /// When.
    pub at: Option<Time>,
    /// The directory.
    pub project: Option<String>,
    /// The session (2.0.64 and later).
    pub session: Option<String>,
}

/// Reads one line; nothing if it is not such a line.
pub fn prompt(line: &[u8]) -> Option<HistoryPrompt> {
    let all = json::value(line);
    let text = |key: &str| all[key].as_str().map(str::to_owned);
    let pasted = all["pastedContents"].as_object().into_iter().flatten();
    Some(HistoryPrompt {
        text: text("display")?,
        pasted: pasted
            .filter_map(|(_, one)| one["content"].as_str().map(str::to_owned))
            .collect(),
        at: all["timestamp"].as_i64().map(Time),
        project: text("project"),
        session: text("sessionId"),
    })
}

/// The line of a prompt, as clients from 2.0.64 on write it.
pub fn line(prompt: &HistoryPrompt) -> String {
    let pasted = prompt.pasted.iter().zip(1_u32..).map(|(content, id)| {
        let one = serde_json::json!({"id": id, "type": "text", "content": content});
        (id.to_string(), one)
    });
    let pasted: serde_json::Map<String, serde_json::Value> = pasted.collect();
    serde_json::json!({
        "display": prompt.text, "pastedContents": pasted,
        "timestamp": prompt.at.map(|at| at.0), "project": prompt.project,
        "sessionId": prompt.session,
    })
    .to_string()
}

/// The session that a line belongs to, without reading the rest of it.
pub fn session(line: &[u8]) -> Option<String> {
    let span = json::find(line, &["sessionId"])?;
    Some(json::string(span.of(line)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_read_with_what_was_pasted() {
        let line = br#"{"display":"see [Pasted text #1]","pastedContents":{"1":{"id":1,"type":"text","content":"a\nb"},"2":{"contentHash":"x"}},"timestamp":1794770306193,"project":"/p","sessionId":"s"}"#;
        let prompt = prompt(line).unwrap();
        assert_eq!(prompt.text, "see [Pasted text #1]");
        assert_eq!(prompt.pasted, ["a\nb"]);
        assert_eq!(prompt.at, Some(Time(1_794_770_306_193)));
        assert_eq!(
            (prompt.project.as_deref(), prompt.session.as_deref()),
            (Some("/p"), Some("s"))
        );
    }

    #[test]
    fn a_prompt_that_is_written_is_read_again() {
        let said = HistoryPrompt {
            text: "see [Pasted text #1]\n\u{1f600}".into(),
            pasted: vec!["a\nb".into()],
            at: Some(Time(1_794_770_306_193)),
            project: Some("/p".into()),
            session: Some("s".into()),
        };
        let line = line(&said);
        assert!(!line.contains('\n'));
        assert_eq!(prompt(line.as_bytes()), Some(said));
        assert_eq!(session(line.as_bytes()).as_deref(), Some("s"));
    }

    #[test]
    fn what_is_no_prompt_is_nothing() {
        for line in ["", "torn{", "[]", r#"{"display":5}"#] {
            assert_eq!(prompt(line.as_bytes()), None, "{line}");
        }
    }
}
