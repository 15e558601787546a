//! A title that a person gives, as the client writes it.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::{Role, Session};

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
        let session = Session::from_log(&log, Role::Main);
        assert_eq!(session.given_title(), Some(title));
    }
}
