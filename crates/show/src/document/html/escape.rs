//! The one place where text becomes HTML.
//!
//! Markup can only be written from literals of this program ([`HtmlWriter::raw`] takes nothing
//! else); whatever comes from a transcript goes through [`HtmlWriter::text`], which is safe both
//! between tags and within a quoted attribute. So nothing in a transcript can become a tag, an
//! attribute or a script. Control characters become visible, and so does what changes the
//! order of text or takes no space, as in [`crate::clean`].

use std::io;

use crate::clean;

/// How much is gathered before it is written.
const FLUSH: usize = 64 << 10;

/// A page on its way to a writer.
pub(crate) struct HtmlWriter<'a> {
    out: &'a mut dyn io::Write,
    buffer: Vec<u8>,
}

impl<'a> HtmlWriter<'a> {
    /// A page without a word.
    pub(crate) fn new(out: &'a mut dyn io::Write) -> HtmlWriter<'a> {
        HtmlWriter {
            out,
            buffer: Vec::new(),
        }
    }

    /// Markup of ours.
    pub(crate) fn raw(&mut self, markup: &'static str) -> io::Result<()> {
        self.buffer.extend_from_slice(markup.as_bytes());
        self.flush_if_full()
    }

    /// A text of any origin, between tags or in a quoted attribute.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        escape(text, &mut self.buffer);
        self.flush_if_full()
    }

    /// A number.
    pub(crate) fn number(&mut self, number: impl Into<i64>) -> io::Result<()> {
        let number: i64 = number.into();
        self.buffer.extend_from_slice(number.to_string().as_bytes());
        Ok(())
    }

    /// Data in base64, or nothing if it is anything else.
    pub(crate) fn base64(&mut self, data: &str) -> io::Result<()> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        if data.bytes().all(fits) {
            self.buffer.extend_from_slice(data.as_bytes());
        }
        self.flush_if_full()
    }

    /// Hands everything to the writer.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FLUSH {
            return self.flush();
        }
        Ok(())
    }
}

/// Bytes that may need more than to be copied.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut at = 0;
    while at < 0x20 {
        special[at] = at != 0x09 && at != 0x0a;
        at += 1;
    }
    special[0x7f] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'&' as usize] = true;
    special[b'"' as usize] = true;
    special[b'\'' as usize] = true;
    special[b'`' as usize] = true;
    // The first bytes of characters that are controls or deceive; see `clean`.
    special[0xc2] = true;
    special[0xd8] = true;
    special[0xe1] = true;
    special[0xe2] = true;
    special[0xe3] = true;
    special[0xef] = true;
    special[0xf3] = true;
    special
};

/// How many bytes at the start are ASCII that can be seen and is only copied. Eight bytes are
/// looked at together: in code, what is to be replaced is never far.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The lowest high bit is set where the first zero byte is.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let same = |word: u64, byte: u8| zeros(word ^ (ONES * u64::from(byte)));
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk() {
        let word = u64::from_le_bytes(*word);
        // `<` and `>` differ in one bit, and so do `&` and the apostrophe.
        let markup = same(word | ONES << 1, b'>') | same(word | ONES, b'\'') | same(word, b'"');
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found = markup | same(word, b'`') | same(word, 0x7f) | control | (word & HIGH);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at
}

/// Adds a text to a page.
fn escape(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut at = 0;
    while at < bytes.len() {
        at += plain(&bytes[at..]);
        let common = |byte: &&u8| !SPECIAL[usize::from(**byte)];
        at += bytes[at..].iter().take(8).take_while(common).count();
        if !bytes
            .get(at)
            .is_some_and(|byte| SPECIAL[usize::from(*byte)])
        {
            continue;
        }
        let Some(c) = text[at..].chars().next() else {
            break;
        };
        let end = at + c.len_utf8();
        if let Some(instead) = instead(c, &text[..at], &text[end..]) {
            out.extend_from_slice(&bytes[start..at]);
            out.extend_from_slice(instead.as_bytes());
            start = end;
        }
        at = end;
    }
    out.extend_from_slice(&bytes[start..]);
}

/// What is written in place of a character; `None` for the character itself.
fn instead(c: char, before: &str, behind: &str) -> Option<std::borrow::Cow<'static, str>> {
    Some(match c {
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '&' => "&amp;".into(),
        '"' => "&quot;".into(),
        '\'' => "&#39;".into(),
        '`' => "&#96;".into(),
        // Alone it starts a line again: a newline, so that nothing is hidden.
        '\r' if behind.starts_with(['\n', '\r']) => "".into(),
        '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => "\n".into(),
        '\0'..='\u{1f}' => picture(0x2400 + c as u32),
        '\u{7f}' => "\u{2421}".into(),
        '\u{80}'..='\u{9f}' => named(c),
        '\u{200c}' | '\u{200d}' if clean::joins(before, behind) => return None,
        '\u{e0100}'..='\u{e01ef}' if before.chars().next_back().is_some_and(|c| !c.is_ascii()) => {
            return None;
        }
        _ if clean::is_deceptive(c) => named(c),
        _ => return None,
    })
}

fn picture(code: u32) -> std::borrow::Cow<'static, str> {
    char::from_u32(code)
        .unwrap_or('\u{fffd}')
        .to_string()
        .into()
}

fn named(c: char) -> std::borrow::Cow<'static, str> {
    format!("&lt;U+{:04X}&gt;", c as u32).into()
}

/// A text as it stands in a page; for tests and for what is not written to a page.
#[cfg(test)]
pub(crate) fn escaped(text: &str) -> String {
    let mut out = Vec::new();
    escape(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_opens_a_tag_or_ends_an_attribute_gets_through() {
        assert_eq!(
            escaped("<a href=\"x\" b='y'>&`"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&#96;"
        );
        assert_eq!(
            escaped("plain ünïcode → text\n\tx"),
            "plain ünïcode → text\n\tx"
        );
    }

    #[test]
    fn controls_and_deceptive_characters_are_visible() {
        assert_eq!(escaped("a\0b\u{1b}[31m"), "a␀b␛[31m");
        assert_eq!(escaped("a\r\nb\rc"), "a\nb\nc");
        assert_eq!(
            escaped("\u{202e}x\u{200b}"),
            "&lt;U+202E&gt;x&lt;U+200B&gt;"
        );
        assert_eq!(escaped("👩\u{200d}💻 e\u{301}"), "👩\u{200d}💻 e\u{301}");
        assert_eq!(escaped("\u{80}\u{ad}"), "&lt;U+0080&gt;&lt;U+00AD&gt;");
    }

    #[test]
    fn data_that_is_not_base64_is_left_out() {
        let mut page = Vec::new();
        let mut html = HtmlWriter::new(&mut page);
        html.base64("QUJD+/==").unwrap();
        html.base64("\" onerror=x").unwrap();
        html.flush().unwrap();
        assert_eq!(page, b"QUJD+/==");
    }

    proptest! {
        #[test]
        fn a_text_is_written_as_its_halves_are(one in "[ -~\\n]{0,60}", two in "[<>&\"'`a-zé]{0,9}", three in "[ -~\\n]{0,60}") {
            let all = escaped(&format!("{one}{two}{three}"));
            let halves: String = [&one, &two, &three].map(|part| {
                part.chars().map(|c| escaped(&c.to_string())).collect::<String>()
            }).concat();
            prop_assert_eq!(all, halves);
        }

        #[test]
        fn no_text_has_a_character_that_means_something_in_html(text in "\\PC*|[ -~\\x00-\\x1f]*") {
            let out = escaped(&text);
            prop_assert!(!out.contains(['<', '>', '"', '\'', '`', '\0', '\r']));
            let known = ["amp;", "lt;", "gt;", "quot;", "#39;", "#96;"];
            for (at, _) in out.match_indices('&') {
                prop_assert!(known.iter().any(|name| out[at + 1..].starts_with(name)));
            }
        }
    }
}
