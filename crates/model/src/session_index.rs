//! The client's own list of the sessions of a project (`sessions-index.json`): which texts in
//! it are whose.

use crate::json::{self, JsonCursor, Span};

/// A text in the list: what was said first in a session, or what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSessionText {
    /// The session.
    pub session: String,
    /// The text with its quotes.
    pub text: Span,
}

/// Fields by which a session is found; they say nothing of what was said in it.
const WAYS: &[&str] = &["sessionId", "fullPath", "projectPath"];

/// All texts of the list, in order. What cannot be read to its end has those in front.
pub fn texts(list: &[u8]) -> Vec<IndexedSessionText> {
    let mut all = Vec::new();
    let _ = JsonCursor::new(list).object(|c, key| match key {
        "entries" => c
            .array(|c| {
                all.extend(entry(c, list)?);
                Ok(())
            })
            .map(drop),
        _ => c.skip().map(drop),
    });
    all
}

fn entry(c: &mut JsonCursor<'_>, list: &[u8]) -> Result<Vec<IndexedSessionText>, json::JsonError> {
    let (mut session, mut texts) = (String::new(), Vec::new());
    c.object(|c, key| {
        let span = c.skip()?;
        if key == "sessionId" {
            session = json::string(span.of(list)).into_owned();
        } else if !WAYS.contains(&key) && span.of(list).starts_with(b"\"") {
            texts.push(span);
        }
        Ok(())
    })?;
    let texts = texts.into_iter().map(|text| IndexedSessionText {
        session: session.clone(),
        text,
    });
    Ok(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_with_their_session_and_ways_to_it_are_not() {
        let list = br#"{"version":1,"entries":[
            {"firstPrompt":"one","sessionId":"a","fullPath":"/a","fileMtime":5},
            7,
            {"sessionId":"b","summary":"t\"wo","projectPath":"/p"}],"originalPath":"/p"}"#;
        let told: Vec<(String, &[u8])> = texts(list)
            .into_iter()
            .map(|one| (one.session, one.text.of(list)))
            .collect();
        let wanted: [(String, &[u8]); 2] = [("a".into(), b"\"one\""), ("b".into(), br#""t\"wo""#)];
        assert_eq!(told, wanted);
        for torn in ["", "[]", r#"{"entries":[{"sessionId":"a","summary":"#] {
            assert_eq!(texts(torn.as_bytes()), [], "{torn}");
        }
    }
}
