//! What happens to a text before it leaves the machine: secrets go, long texts are cut, and
//! what no receiver can store is replaced.

use std::borrow::Cow;

use serde_json::Value;
use unspool_model::edit::redact::Redactor;
use unspool_model::json;

/// How texts are shaped.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanTextRules<'a> {
    /// What takes secrets out.
    pub redact: Option<&'a Redactor>,
    /// Texts are cut behind so many characters.
    pub max_chars: Option<usize>,
    /// Whether thinking is told at all.
    pub thinking: bool,
}

impl SpanTextRules<'_> {
    /// A text as it may leave.
    pub fn text(&self, text: String) -> String {
        self.cut(self.clean(text))
    }

    /// A text without secrets and without NUL, which databases refuse.
    fn clean(&self, text: String) -> String {
        let masked = self.redact.and_then(|redactor| redactor.text(&text));
        let text = match masked {
            Some(redacted) => String::from_utf8_lossy(&redacted.bytes).into_owned(),
            None => text,
        };
        if text.contains('\0') {
            return text.replace('\0', "\u{fffd}");
        }
        text
    }

    /// A text that is not too long. Secrets are gone by then, so none is cut in two.
    fn cut(&self, text: String) -> String {
        let Some(limit) = self.max_chars.filter(|&limit| text.len() > limit) else {
            return text;
        };
        let Some((end, _)) = text.char_indices().nth(limit) else {
            return text;
        };
        let more = text[end..].chars().count();
        format!("{}… [{more} more characters]", &text[..end])
    }

    /// A value as JSON text: raw as it stands in the file, unless something has to change.
    pub fn json(&self, raw: &[u8]) -> String {
        if raw.is_empty() {
            return "null".to_owned();
        }
        let masked = self.redact.and_then(|redactor| redactor.value(raw));
        let raw = masked.as_ref().map_or(raw, |redacted| &redacted.bytes);
        match self.as_it_is(raw) {
            Some(text) => text.to_owned(),
            None => self.value(json::value(raw)).to_string(),
        }
    }

    /// The bytes, if every parser reads them and nothing in them is too long.
    fn as_it_is<'b>(&self, raw: &'b [u8]) -> Option<&'b str> {
        let text = std::str::from_utf8(raw).ok()?;
        let short = self.max_chars.is_none_or(|limit| text.len() <= limit);
        // Raw control characters, NUL and half surrogate pairs need a closer look.
        let has = |part: &[u8]| memchr::memmem::find(raw, part).is_some();
        let odd = has_control(raw)
            || has(b"\\u0000")
            || ((has(b"\\ud") || has(b"\\uD")) && json::has_lone_surrogate(raw));
        (short && !odd).then_some(text)
    }

    /// A value whose strings are short enough and hold nothing that databases refuse.
    fn value(&self, value: Value) -> Value {
        let string = |text: String| {
            let text = match text.contains('\0') {
                true => text.replace('\0', "\u{fffd}"),
                false => text,
            };
            self.cut(text)
        };
        match value {
            Value::String(text) => Value::String(string(text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .into_iter()
                .map(|(key, field)| (key, self.value(field)))
                .collect(),
            other => other,
        }
    }

    /// A short text about something, such as a path or a title.
    pub fn note<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.redact.and_then(|redactor| redactor.text(text)) {
            Some(redacted) => String::from_utf8_lossy(&redacted.bytes).into_owned().into(),
            None => Cow::Borrowed(text),
        }
    }
}

/// Whether a control character stands there, many bytes at once.
fn has_control(raw: &[u8]) -> bool {
    let any = |block: &[u8]| block.iter().fold(false, |any, byte| any | (*byte < b' '));
    raw.chunks(64).any(any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::TraceOptions;

    fn token() -> String {
        format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8")
    }

    fn shape(max_chars: Option<usize>) -> SpanTextRules<'static> {
        SpanTextRules {
            redact: TraceOptions::default().redact,
            max_chars,
            thinking: false,
        }
    }

    #[test]
    fn secrets_are_masked_in_texts_and_inputs() {
        let token = token();
        let text = shape(None).text(format!("use {token} now"));
        assert_eq!(text, "use [REDACTED:github-pat] now");
        let raw = format!(r#"{{"command":"echo {token}", "n":1}}"#);
        let json = shape(None).json(raw.as_bytes());
        assert_eq!(json, r#"{"command":"echo [REDACTED:github-pat]", "n":1}"#);
        // On a line of a transcript this field would be left alone.
        let json = shape(None).json(format!(r#"{{"uuid":"{token}"}}"#).as_bytes());
        assert_eq!(json, r#"{"uuid":"[REDACTED:github-pat]"}"#);
    }

    #[test]
    fn a_secret_is_masked_before_the_text_is_cut() {
        let token = token();
        let text = shape(Some(10)).text(format!("use {token} now"));
        assert!(text.starts_with("use [REDAC… ["), "{text}");
    }

    #[test]
    fn a_cut_text_says_how_much_is_missing() {
        assert_eq!(
            shape(Some(3)).text("日本語です".to_owned()),
            "日本語… [2 more characters]"
        );
        assert_eq!(shape(Some(5)).text("日本語です".to_owned()), "日本語です");
    }

    #[test]
    fn a_cut_input_is_still_json() {
        let json = shape(Some(4)).json(br#"{"a":"123456","b":[1,"xy"]}"#);
        assert_eq!(json, r#"{"a":"1234… [2 more characters]","b":[1,"xy"]}"#);
    }

    #[test]
    fn what_databases_refuse_is_replaced() {
        assert_eq!(shape(None).text("a\0b".to_owned()), "a\u{fffd}b");
        assert_eq!(
            shape(None).json(br#"{"a":"x\u0000y"}"#),
            "{\"a\":\"x\u{fffd}y\"}"
        );
        let half = shape(None).json(br#"{"a":"\ud83d"}"#);
        assert!(serde_json::from_str::<Value>(&half).is_ok(), "{half}");
        assert_eq!(shape(None).json(b""), "null");
    }
}
