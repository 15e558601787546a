//! What may be asked of the index, and how it is said to SQLite.
//!
//! A query is words, "phrases", -not, and filters such as `project:webshop`. What a person
//! types never reaches SQLite as syntax: every word becomes a quoted phrase here.

use std::fmt::Write;

use super::word_splitting;

/// A ranked query, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankedQuery {
    /// Words and phrases that must all be in a line.
    pub terms: Vec<String>,
    /// Words and phrases that must not be.
    pub without: Vec<String>,
    /// Any of these projects: by name, directory, or a part of it.
    pub projects: Vec<String>,
    /// Calls and results of any of these tools.
    pub tools: Vec<String>,
    /// Transcripts that touched a path with this in it.
    pub files: Vec<String>,
    /// Transcripts in which any of these models answered.
    pub models: Vec<String>,
    /// Lines written on any of these branches.
    pub branches: Vec<String>,
    /// Not older than this, as it was written.
    pub since: Option<String>,
}

/// Why a query makes no sense, and what would.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RankedQueryError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// The accepted forms, in one line.
pub const FORMS: &str = "use words, \"phrases\", -not, project: tool: file: since: model: \
                         branch: (values with spaces in quotes)";

const FILTERS: [&str; 6] = ["project", "tool", "file", "since", "model", "branch"];

impl RankedQuery {
    /// Reads what a person typed.
    pub fn parse(text: &str) -> Result<RankedQuery, RankedQueryError> {
        let mut query = RankedQuery::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            rest = query.item(rest)?.trim_start();
        }
        query.check()?;
        Ok(query)
    }

    /// Takes one item off the front.
    fn item<'a>(&mut self, text: &'a str) -> Result<&'a str, RankedQueryError> {
        let (not, item) = match text.strip_prefix('-') {
            Some(item) => (true, item),
            None => (false, text),
        };
        if let Some((name, value)) = filter(item) {
            return self.filter(not, name, value);
        }
        let (term, rest) = value(item)?;
        if !has_words(term) {
            return Err(wrong(
                format!(
                    "`{}` contains no word to search for",
                    text[..text.len() - rest.len()].trim_end()
                ),
                "ranked search finds letters and digits only; search without `--ranked` for other characters",
            ));
        }
        if let Some(long) = too_long(term) {
            return Err(wrong(
                format!("`{long}` is too long for the index"),
                "search without `--ranked`",
            ));
        }
        let list = if not {
            &mut self.without
        } else {
            &mut self.terms
        };
        list.push(term.to_owned());
        Ok(rest)
    }

    fn filter<'a>(
        &mut self,
        not: bool,
        name: &str,
        text: &'a str,
    ) -> Result<&'a str, RankedQueryError> {
        if !FILTERS.contains(&name) {
            return Err(wrong(
                format!("unknown filter `{name}:`"),
                format!(
                    "to search for it as text, put it in quotes; the filters are {}:",
                    FILTERS.join(": ")
                ),
            ));
        }
        if not {
            return Err(wrong(
                format!("`-{name}:` is not supported"),
                "only words and phrases can be excluded",
            ));
        }
        let (value, rest) = value(text)?;
        if value.trim().is_empty() {
            return Err(wrong(
                format!("`{name}:` has no value"),
                format!("put it right after the colon, such as `{name}:\"a value\"`"),
            ));
        }
        let value = value.to_owned();
        match name {
            "project" => self.projects.push(value),
            "tool" => self.tools.push(value),
            "file" => self.files.push(value),
            "model" => self.models.push(value),
            "branch" => self.branches.push(value),
            _ if self.since.is_some() => {
                return Err(wrong("`since:` is given twice".to_owned(), FORMS));
            }
            _ => self.since = Some(value),
        }
        Ok(rest)
    }

    fn check(&self) -> Result<(), RankedQueryError> {
        let filtered = !self.projects.is_empty()
            || !self.tools.is_empty()
            || !self.files.is_empty()
            || !self.models.is_empty()
            || !self.branches.is_empty()
            || self.since.is_some();
        if self.terms.is_empty() && !self.without.is_empty() {
            return Err(wrong(
                "the query only excludes".to_owned(),
                "add a word or phrase to search for",
            ));
        }
        if self.terms.is_empty() && !filtered {
            return Err(wrong("the query is empty".to_owned(), FORMS));
        }
        Ok(())
    }

    /// The query in the language of FTS5; `None` if it only has filters.
    pub(crate) fn expression(&self) -> Option<String> {
        let mut all = String::new();
        for term in &self.terms {
            let joint = if all.is_empty() { "" } else { " AND " };
            all.push_str(joint);
            quote(term, &mut all);
        }
        for term in &self.without {
            let _ = write!(all, " NOT ");
            quote(term, &mut all);
        }
        (!self.terms.is_empty()).then_some(all)
    }

    /// The folded words of each term, to mark them in text.
    pub(crate) fn marks(&self) -> Vec<Vec<String>> {
        let folded = |term: &String| {
            let mut all = Vec::new();
            word_splitting::words(term, |_, word| {
                all.push(word.to_owned());
                true
            });
            all
        };
        self.terms.iter().map(folded).collect()
    }
}

fn wrong(message: String, hint: impl Into<String>) -> RankedQueryError {
    RankedQueryError {
        message,
        hint: hint.into(),
    }
}

/// The name and what follows, if the text begins with a filter.
///
/// Addresses, paths of Rust, drives and clock times have colons too and are words.
fn filter(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !char.is_ascii_lowercase())?;
    let value = text[end..].strip_prefix(':')?;
    let name = &text[..end];
    let odd = value.starts_with([':', '/', '\\']) && !FILTERS.contains(&name);
    let is_word = end < 2 || odd || value.starts_with("//");
    (!is_word).then_some((name, value))
}

/// The quoted text or the word at the front, and what follows.
fn value(text: &str) -> Result<(&str, &str), RankedQueryError> {
    if let Some(inner) = text.strip_prefix('"') {
        let end = inner.find('"').ok_or_else(|| {
            wrong(
                format!("the quote before `{}` is not closed", start(inner)),
                "close it with another \"",
            )
        })?;
        return Ok((&inner[..end], &inner[end + 1..]));
    }
    let end = text.find(|char: char| char.is_whitespace() || char == '"');
    Ok(text.split_at(end.unwrap_or(text.len())))
}

fn start(text: &str) -> &str {
    let end = text.char_indices().nth(20).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn has_words(term: &str) -> bool {
    let mut any = false;
    word_splitting::words(term, |_, _| {
        any = true;
        false
    });
    any
}

fn too_long(term: &str) -> Option<&str> {
    let mut long = None;
    word_splitting::words(term, |place, _| {
        let fits = place.len() <= word_splitting::LONGEST;
        if !fits {
            long = Some(place);
        }
        fits
    });
    long.map(|place| &term[place])
}

/// A term as a phrase of FTS5, in which nothing but a quote has a meaning.
fn quote(term: &str, out: &mut String) {
    let mut split = String::new();
    word_splitting::split(term, &mut split);
    out.push('"');
    // A zero byte would end the expression; it separates words like any other such byte.
    out.push_str(&split.replace(['"', '\0'], " "));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> String {
        RankedQuery::parse(text)
            .unwrap()
            .expression()
            .unwrap_or_default()
    }

    fn message(text: &str) -> String {
        RankedQuery::parse(text).unwrap_err().message
    }

    #[test]
    fn words_and_phrases_must_all_be_there() {
        assert_eq!(expression("fix login"), r#""fix" AND "login""#);
        assert_eq!(
            expression(r#""the login page" bug"#),
            r#""the login page" AND "bug""#
        );
    }

    #[test]
    fn what_follows_a_dash_must_not_be_there() {
        assert_eq!(expression(r#"a -b -"c d""#), r#""a" NOT "b" NOT "c d""#);
        // A dash inside a word is none.
        assert_eq!(expression("well-known"), r#""well-known""#);
    }

    #[test]
    fn cjk_becomes_a_phrase_of_characters() {
        assert_eq!(expression("数据库"), r#"" 数  据  库 ""#);
    }

    #[test]
    fn syntax_of_sqlite_is_only_text() {
        assert_eq!(
            expression("a OR b* NEAR(c) ^d {e}"),
            r#""a" AND "OR" AND "b*" AND "NEAR(c)" AND "^d" AND "{e}""#
        );
    }

    #[test]
    fn filters_are_taken_out_of_the_words() {
        let query = RankedQuery::parse(
            r#"project:web tool:Bash file:"a b.rs" since:7d model:opus branch:x y"#,
        )
        .unwrap();
        assert_eq!(query.terms, ["y"]);
        assert_eq!(query.projects, ["web"]);
        assert_eq!(query.tools, ["Bash"]);
        assert_eq!(query.files, ["a b.rs"]);
        assert_eq!(query.since.as_deref(), Some("7d"));
        assert_eq!(query.models, ["opus"]);
        assert_eq!(query.branches, ["x"]);
        assert_eq!(RankedQuery::parse("since:7d").unwrap().expression(), None);
        assert_eq!(
            RankedQuery::parse("project:/a/b").unwrap().projects,
            ["/a/b"]
        );
    }

    #[test]
    fn addresses_paths_and_times_are_no_filters() {
        let all = [
            "https://x.org/a",
            "file:///tmp",
            "std::io",
            r"C:\Users",
            "12:30",
            "a:b",
        ];
        for text in all {
            assert_eq!(RankedQuery::parse(text).unwrap().terms, [text]);
        }
    }

    #[test]
    fn a_wrong_query_says_what_is_wrong() {
        let cases = [
            ("", "the query is empty"),
            ("  ", "the query is empty"),
            ("-a", "the query only excludes"),
            ("-a since:7d", "the query only excludes"),
            (r#"a "b c"#, "the quote before `b c` is not closed"),
            ("error:x", "unknown filter `error:`"),
            ("project: x", "`project:` has no value"),
            ("-tool:Bash x", "`-tool:` is not supported"),
            ("a !!", "`!!` contains no word to search for"),
            ("a - b", "`-` contains no word to search for"),
            ("since:1d since:2d a", "`since:` is given twice"),
        ];
        for (text, said) in cases {
            assert_eq!(message(text), said, "{text}");
        }
        let long = "x".repeat(word_splitting::LONGEST + 1);
        assert!(message(&long).ends_with("is too long for the index"));
    }
}
