//! Code with its keywords, texts, numbers and comments told apart.
//!
//! Not a parser: one pass that knows how comments and texts begin and end in a family of
//! languages, and which words are theirs. What it does not know stays plain. Colours are classes.

use std::io;

use super::escape::HtmlWriter;

/// How a family of languages is written.
struct LanguageFamily {
    /// Names of languages, as they stand behind the fence.
    names: &'static str,
    /// What begins a comment that ends with its line.
    comments: &'static [&'static str],
    /// What begins and ends any other comment.
    block: Option<(&'static str, &'static str)>,
    /// What texts stand between.
    quotes: &'static [char],
    /// Words of the language.
    words: &'static str,
}

const C: &[&str] = &["//"];
const BLOCK: Option<(&str, &str)> = Some(("/*", "*/"));

const FAMILIES: &[LanguageFamily] = &[
    LanguageFamily {
        names: "rust rs",
        comments: C,
        block: BLOCK,
        // A single quote begins a lifetime more often than a character.
        quotes: &['"'],
        words: "as async await break const continue crate dyn else enum extern false fn for if \
            impl in let loop match mod move mut pub ref return self Self static struct \
            super trait true type unsafe use where while",
    },
    LanguageFamily {
        names: "js javascript jsx ts typescript tsx svelte mjs",
        comments: C,
        block: BLOCK,
        quotes: &['"', '\'', '`'],
        words: "any as async await boolean break case catch class const continue default \
            delete do else enum export extends false finally for from function if \
            implements import in instanceof interface let new null number of private \
            public readonly return static string super switch this throw true try type \
            typeof undefined var void while yield",
    },
    LanguageFamily {
        names: "python py python3",
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        words: "False None True and as assert async await break class continue def del elif \
            else except finally for from global if import in is lambda match nonlocal not \
            or pass raise return self try while with yield",
    },
    LanguageFamily {
        names: "sh bash shell zsh console fish",
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        words: "case cd do done echo elif else esac exit export fi for function if in local \
            return set source then unset until while",
    },
    LanguageFamily {
        names: "go golang",
        comments: C,
        block: BLOCK,
        quotes: &['"', '\'', '`'],
        words: "any bool break byte case chan const continue default defer else error false \
            for func go if import int interface map nil package range return select string \
            struct switch true type var",
    },
    LanguageFamily {
        names: "c h cpp c++ cc hpp java kotlin kt cs csharp swift scala dart php",
        comments: C,
        block: BLOCK,
        quotes: &['"', '\''],
        words: "abstract auto bool boolean break case catch char class const continue default \
            delete do double else enum extends false final finally float for fun func \
            function guard if implements import in include int interface let long \
            namespace new nil null nullptr object override package private protected \
            public return self short sizeof static string struct super switch template \
            this throw throws true try typedef typename unsigned using val var virtual \
            void when while",
    },
    LanguageFamily {
        names: "sql sqlite postgres postgresql mysql",
        comments: &["--"],
        block: BLOCK,
        quotes: &['\'', '"'],
        words: "all alter and as asc begin between by case commit create delete desc distinct \
            drop else end exists from group having in index insert into is join key left \
            like limit not null on or order outer primary references select set table then \
            union unique update values view when where with",
    },
    LanguageFamily {
        names: "json jsonc json5 jsonl",
        comments: C,
        block: BLOCK,
        quotes: &['"'],
        words: "true false null",
    },
    LanguageFamily {
        names: "yaml yml toml ini dockerfile makefile make conf",
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        words: "true false null yes no FROM RUN COPY ENV CMD WORKDIR ENTRYPOINT ARG EXPOSE",
    },
    LanguageFamily {
        names: "ruby rb elixir ex",
        comments: &["#"],
        block: None,
        quotes: &['"', '\''],
        words: "alias and begin case class def defmodule do else elsif end ensure false fn for \
            if in module nil not or rescue require return self super then true unless \
            until when while yield",
    },
    LanguageFamily {
        names: "css scss less",
        comments: &[],
        block: BLOCK,
        quotes: &['"', '\''],
        words: "important media root keyframes import supports",
    },
];

/// Writes code in a language; one that is not known stays plain.
pub(crate) fn write(html: &mut HtmlWriter<'_>, language: &str, text: &str) -> io::Result<()> {
    let name = language.to_ascii_lowercase();
    let Some(family) = FAMILIES.iter().find(|family| holds(family.names, &name)) else {
        return html.text(text);
    };
    let mut rest = text;
    let mut plain = 0;
    while plain < rest.len() {
        let (before, from) = rest.split_at(plain);
        let Some((class, length)) = family.token(from, before.chars().next_back()) else {
            plain += step(from);
            continue;
        };
        html.text(before)?;
        html.raw(class)?;
        html.text(&from[..length])?;
        html.raw("</span>")?;
        rest = &from[length..];
        plain = 0;
    }
    html.text(rest)
}

fn holds(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// How far to go where nothing begins: a whole word, or one character.
fn step(text: &str) -> usize {
    match word(text) {
        0 => text.chars().next().map_or(1, char::len_utf8),
        length => length,
    }
}

/// The length of the word at the start of a text.
fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

impl LanguageFamily {
    /// What begins here, and how long it is.
    fn token(&self, text: &str, before: Option<char>) -> Option<(&'static str, usize)> {
        let line = || text.find('\n').unwrap_or(text.len());
        let starts = |mark: &&str| text.starts_with(*mark);
        // `a#b` and `http://` are no comments.
        let free = before.is_none_or(|c| !c.is_alphanumeric() && c != '$' && c != ':' && c != '{');
        if free && self.comments.iter().any(starts) {
            return Some(("<span class=\"hc\">", line()));
        }
        if let Some((open, close)) = self.block.filter(|(open, _)| text.starts_with(open)) {
            let end = text[open.len()..].find(close);
            let end = end.map_or(text.len(), |at| open.len() + at + close.len());
            return Some(("<span class=\"hc\">", end));
        }
        let first = text.chars().next()?;
        if self.quotes.contains(&first) {
            return Some(("<span class=\"hs\">", quoted(text, first)?));
        }
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        if first.is_ascii_digit() {
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '.' && c != '_');
            return Some(("<span class=\"hn\">", end.unwrap_or(text.len())));
        }
        let length = word(text);
        let name = &text[..length];
        let loud = || holds(self.names, "sql") && holds(self.words, &name.to_ascii_lowercase());
        let known = holds(self.words, name) || loud();
        known.then_some(("<span class=\"hk\">", length))
    }
}

/// The length of a text in quotes; one that does not end on its line is none, unless such
/// quotes go over lines.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let three: String = std::iter::repeat_n(quote, 3).collect();
    if quote != '`' && text.starts_with(&three) {
        let end = text[3..].find(&three);
        return Some(end.map_or(text.len(), |at| at + 6));
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if quote != '`' => return None,
            _ if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    (quote == '`').then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn html(language: &str, text: &str) -> String {
        let mut page = Vec::new();
        let mut html = HtmlWriter::new(&mut page);
        write(&mut html, language, text).unwrap();
        html.flush().unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn keywords_texts_numbers_and_comments_are_told_apart() {
        assert_eq!(
            html("rust", "fn f() -> u8 { 12 } // it's\nlet s = \"a\\\"b\";"),
            "<span class=\"hk\">fn</span> f() -&gt; u8 { <span class=\"hn\">12</span> } \
             <span class=\"hc\">// it&#39;s</span>\n<span class=\"hk\">let</span> s = \
             <span class=\"hs\">&quot;a\\&quot;b&quot;</span>;"
        );
        assert_eq!(
            html("py", "x = '''a\nb''' # c\ndefine = 1"),
            "x = <span class=\"hs\">&#39;&#39;&#39;a\nb&#39;&#39;&#39;</span> \
             <span class=\"hc\"># c</span>\ndefine = <span class=\"hn\">1</span>"
        );
        assert_eq!(
            html("sql", "SELECT a"),
            "<span class=\"hk\">SELECT</span> a"
        );
        assert_eq!(html("ts", "http://x"), "http://x");
        assert_eq!(
            html("sh", "it's\nfi"),
            "it&#39;s\n<span class=\"hk\">fi</span>"
        );
    }

    #[test]
    fn what_is_not_known_stays_plain_and_nothing_becomes_a_tag() {
        assert_eq!(html("brainf", "fn <b>"), "fn &lt;b&gt;");
        assert_eq!(
            html("js", "`<script>"),
            "<span class=\"hs\">&#96;&lt;script&gt;</span>"
        );
        assert_eq!(
            html("c", "/* <b>"),
            "<span class=\"hc\">/* &lt;b&gt;</span>"
        );
    }

    proptest! {
        #[test]
        fn not_a_character_is_lost(text in "\\PC*|[a-z0-9\"'`/*# \n\\\\]*", at in 0..FAMILIES.len()) {
            let mut plain = html(FAMILIES[at].names.split(' ').next().unwrap(), &text);
            for tag in ["<span class=\"hk\">", "<span class=\"hs\">", "<span class=\"hn\">", "<span class=\"hc\">", "</span>"] {
                plain = plain.replace(tag, "");
            }
            prop_assert_eq!(plain, super::super::escape::escaped(&text));
        }
    }
}
