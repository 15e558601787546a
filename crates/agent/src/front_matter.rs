//! The front matter of Markdown files: the few shapes of YAML that people write there.
//!
//! It is read as leniently as other clients read it: a colon in a description is part of the
//! description, and a line that means nothing is passed over.

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FrontMatterValue {
    Text(String),
    List(Vec<String>),
}

/// Keys and values before a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    fields: Vec<(String, FrontMatterValue)>,
}

impl FrontMatter {
    /// Divides a file into its front matter and its text.
    pub fn split(file: &str) -> (FrontMatter, &str) {
        let file = file.strip_prefix('\u{feff}').unwrap_or(file);
        let Some((first, rest)) = file.split_once('\n') else {
            return (FrontMatter::default(), file);
        };
        if first.trim_end() != "---" {
            return (FrontMatter::default(), file);
        }
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == "---" {
                let body = &rest[at + line.len()..];
                return (
                    FrontMatter::read(&rest[..at]),
                    body.trim_start_matches(['\r', '\n']),
                );
            }
            at += line.len();
        }
        (FrontMatter::default(), file)
    }

    fn read(text: &str) -> FrontMatter {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let mut fields = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let line = lines[at];
            at += 1;
            let is_key = |c: char| c.is_alphanumeric() || "_-".contains(c);
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            if key.is_empty() || !key.chars().all(is_key) {
                continue;
            }
            let start = at;
            while lines
                .get(at)
                .is_some_and(|line| line.is_empty() || line.starts_with([' ', '\t', '-']))
            {
                at += 1;
            }
            let below = &lines[start..at];
            if let Some(field) = field(value.trim(), below) {
                fields.push((key.to_owned(), field));
            }
        }
        FrontMatter { fields }
    }

    fn get(&self, key: &str) -> Option<&FrontMatterValue> {
        let mut fields = self.fields.iter().rev();
        fields.find(|(name, _)| name == key).map(|(_, field)| field)
    }

    /// A text; a list is joined.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.get(key)? {
            FrontMatterValue::Text(text) => Some(text.clone()),
            FrontMatterValue::List(items) => Some(items.join(", ")),
        }
    }

    /// A list; a text is divided at commas, or else at spaces, outside brackets.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        match self.get(key)? {
            FrontMatterValue::List(items) => Some(items.clone()),
            FrontMatterValue::Text(text) => {
                let by_comma = divided(text, ',');
                match by_comma.len() {
                    1 => Some(divided(text, ' ')),
                    _ => Some(by_comma),
                }
            }
        }
    }

    /// Whether a switch is on, if it is there.
    pub fn switch(&self, key: &str) -> Option<bool> {
        match self.text(key)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }
}

fn field(value: &str, below: &[&str]) -> Option<FrontMatterValue> {
    if let Some(mark) = value.strip_prefix(['|', '>'])
        && mark
            .chars()
            .all(|c| c == '-' || c == '+' || c.is_ascii_digit())
    {
        let joint = if value.starts_with('|') { "\n" } else { " " };
        return Some(FrontMatterValue::Text(block(below, joint)));
    }
    if let Some(inner) = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        let items = divided(inner, ',').into_iter();
        return Some(FrontMatterValue::List(
            items.map(|item| unquoted(&item)).collect(),
        ));
    }
    if value.is_empty() || value.starts_with('#') {
        let items: Vec<String> = below
            .iter()
            .filter_map(|line| line.trim_start().strip_prefix('-'))
            .map(|item| unquoted(plain(item.trim())))
            .collect();
        return (!items.is_empty()).then_some(FrontMatterValue::List(items));
    }
    if value.starts_with(['"', '\'']) {
        return Some(FrontMatterValue::Text(unquoted(value)));
    }
    let more = below
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty());
    let lines: Vec<&str> = std::iter::once(plain(value)).chain(more).collect();
    Some(FrontMatterValue::Text(lines.join(" ")))
}

/// Lines with the indent of the first taken away.
fn block(lines: &[&str], joint: &str) -> String {
    let first = lines.iter().find(|line| !line.is_empty());
    let indent = first.map_or(0, |line| line.len() - line.trim_start().len());
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.get(indent..).unwrap_or_default())
        .collect();
    lines.join(joint).trim_end().to_owned()
}

/// Without a comment behind it.
fn plain(value: &str) -> &str {
    if value.starts_with(['"', '\'']) {
        return value;
    }
    value.find(" #").map_or(value, |at| value[..at].trim_end())
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        let Some(rest) = value.strip_prefix(quote) else {
            continue;
        };
        let Some(end) = rest.rfind(quote) else {
            continue;
        };
        let inner = &rest[..end];
        return match quote {
            '\'' => inner.replace("''", "'"),
            _ => serde_json::from_str(&format!("\"{inner}\"")).unwrap_or_else(|_| inner.to_owned()),
        };
    }
    value.to_owned()
}

/// Divides outside brackets and quotes; empty items are left out.
fn divided(text: &str, at: char) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == at && depth == 0 {
            items.push(String::new());
        } else if let Some(last) = items.last_mut() {
            last.push(c);
        }
    }
    let items = items.into_iter().map(|item| item.trim().to_owned());
    items.filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> FrontMatter {
        FrontMatter::split(&format!("---\n{text}\n---\nbody\n")).0
    }

    #[test]
    fn a_file_is_divided_at_its_second_line_of_dashes() {
        let (front, body) = FrontMatter::split("---\nname: x\n---\n\nhello\n---\nmore\n");
        assert_eq!(front.text("name").as_deref(), Some("x"));
        assert_eq!(body, "hello\n---\nmore\n");
        assert_eq!(FrontMatter::split("no front\n---\n").1, "no front\n---\n");
        assert_eq!(
            FrontMatter::split("---\nnever closed\n").1,
            "---\nnever closed\n"
        );
        assert_eq!(
            FrontMatter::split("\u{feff}---\r\na: b\r\n---\r\nx")
                .0
                .text("a")
                .as_deref(),
            Some("b")
        );
    }

    #[test]
    fn a_colon_in_a_description_belongs_to_it() {
        let front = front("description: Use this: when in doubt # not this");
        assert_eq!(
            front.text("description").as_deref(),
            Some("Use this: when in doubt")
        );
    }

    #[test]
    fn quotes_are_taken_off_and_keep_what_is_inside() {
        let front = front("a: \"x # y\\n\"\nb: 'it''s'\nc: \"\"");
        assert_eq!(front.text("a").as_deref(), Some("x # y\n"));
        assert_eq!(front.text("b").as_deref(), Some("it's"));
        assert_eq!(front.text("c").as_deref(), Some(""));
    }

    #[test]
    fn a_list_is_written_in_any_of_four_ways() {
        let want = ["Bash(git add:*, -p)", "Read"];
        for text in [
            "t: Bash(git add:*, -p), Read",
            "t: Bash(git add:*, -p) Read",
            "t: [Bash(git add:*, -p), \"Read\"]",
            "t:\n  - Bash(git add:*, -p)\n  - 'Read'",
            "t:\n- Bash(git add:*, -p)\n- Read",
        ] {
            assert_eq!(front(text).list("t").unwrap(), want, "{text}");
        }
    }

    #[test]
    fn a_text_may_go_on_over_lines() {
        assert_eq!(
            front("a: one\n  two\nb: x").text("a").as_deref(),
            Some("one two")
        );
        assert_eq!(
            front("a: |\n  one\n    two\nb: x").text("a").as_deref(),
            Some("one\n  two")
        );
        assert_eq!(
            front("a: >-\n  one\n  two").text("a").as_deref(),
            Some("one two")
        );
    }

    #[test]
    fn what_is_nested_deeper_is_passed_over() {
        let front = front("hooks:\n  Stop:\n    x: y\nname: z\n???\n");
        assert_eq!(
            (front.text("hooks"), front.text("name").as_deref()),
            (None, Some("z"))
        );
    }

    #[test]
    fn a_switch_is_on_off_or_not_there() {
        let front = front("a: true\nb: No\nc: maybe");
        assert_eq!(
            [
                front.switch("a"),
                front.switch("b"),
                front.switch("c"),
                front.switch("d")
            ],
            [Some(true), Some(false), None, None]
        );
    }
}
