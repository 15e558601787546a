//! A text that is still being said: paragraphs that are over can be shown for good.

/// The part of a text that has not been shown yet.
#[derive(Clone, Debug, Default)]
pub struct ParagraphStream {
    text: String,
}

impl ParagraphStream {
    /// Takes more of it, and gives what is over: whole paragraphs, whole blocks of code.
    pub fn push(&mut self, more: &str) -> Option<String> {
        self.text.push_str(more);
        // Only an empty line ends a paragraph, so most pieces end none.
        let end = more.contains('\n').then(|| self.end())??;
        let rest = self.text.split_off(end);
        let over = std::mem::replace(&mut self.text, rest);
        (!over.trim().is_empty()).then_some(over)
    }

    /// What has not been shown.
    pub fn rest(&self) -> &str {
        &self.text
    }

    /// All of it is over.
    pub fn end_all(&mut self) -> Option<String> {
        let over = std::mem::take(&mut self.text);
        (!over.trim().is_empty()).then_some(over)
    }

    /// Behind the last empty line that stands outside of code and lists.
    fn end(&self) -> Option<usize> {
        let (mut fence, mut end, mut at) = (None::<&str>, None, 0);
        for line in self.text.split_inclusive('\n') {
            let start = line.trim_start();
            at += line.len();
            match fence {
                Some(mark) if start.starts_with(mark) => fence = None,
                Some(_) => {}
                None if start.starts_with("```") => fence = Some("```"),
                None if start.starts_with("~~~") => fence = Some("~~~"),
                None if line == "\n" || line == "\r\n" => end = Some(at),
                None => {}
            }
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, step: usize) -> Vec<String> {
        let mut stream = ParagraphStream::default();
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(step).map(String::from_iter);
        let mut all: Vec<String> = pieces.filter_map(|piece| stream.push(&piece)).collect();
        all.extend(stream.end_all());
        all
    }

    #[test]
    fn a_paragraph_is_shown_when_it_is_over() {
        assert_eq!(
            shown("one\ntwo\n\nthree\n\nfour", 1),
            ["one\ntwo\n\n", "three\n\n", "four"]
        );
    }

    #[test]
    fn code_is_not_torn_at_its_empty_lines() {
        let text = "see\n\n```rust\na\n\nb\n```\n\nend";
        assert_eq!(
            shown(text, 1),
            ["see\n\n", "```rust\na\n\nb\n```\n\n", "end"]
        );
    }

    #[test]
    fn nothing_is_lost_however_it_is_cut() {
        let text = "# a\n\n- b\n\n- c\n\n~~~\n```\n\n~~~\n\nd";
        for step in 1..text.len() {
            assert_eq!(shown(text, step).concat(), text);
        }
    }
}
