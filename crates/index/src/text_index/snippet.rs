//! The few words of a text that show why it was found.

use std::borrow::Cow;
use std::ops::Range;

use super::word_splitting;

/// A piece of text on one line, with the places of what was looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankedSnippet {
    /// The text; `…` stands for what was cut off.
    pub text: String,
    /// What was looked for, as ranges of bytes.
    pub marks: Vec<Range<usize>>,
    /// How often it is in the whole text, as far as that was looked at.
    pub count: u32,
}

/// How many words of a text are looked at: enough for any prompt, bounded for logs.
const LOOKED_AT: usize = 400_000;

/// How many places are remembered, to choose the best of them.
const PLACES: usize = 2_000;

/// What stands before the first mark, as a part of the width.
const LEAD: usize = 4;

/// Where one of the terms stands.
struct TermMatch {
    range: Range<usize>,
    term: usize,
}

/// No secret is longer than this: a private key has some thousand characters.
const SECRET: usize = 16 << 10;

/// Like [`cut`], for a text in which secrets are yet to be masked. Of a long one only what
/// is near the snippet is.
pub fn cut_masked(
    text: &str,
    terms: &[Vec<String>],
    width: usize,
    mask: impl Fn(&str) -> Cow<'_, str>,
) -> RankedSnippet {
    if text.len() <= 4 * SECRET {
        return cut(&mask(text), terms, width);
    }
    let places = places(text, terms);
    let shown = window(text, &places, width);
    let start = text.floor_char_boundary(shown.start.saturating_sub(SECRET));
    let end = text.ceil_char_boundary(shown.end + SECRET);
    let mut snippet = cut(&mask(&text[start..end]), terms, width);
    snippet.count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    snippet
}

/// The part of a text, about `width` characters, that shows the most of the terms. Each
/// term is given by its folded words.
pub fn cut(text: &str, terms: &[Vec<String>], width: usize) -> RankedSnippet {
    let places = places(text, terms);
    let window = window(text, &places, width);
    let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
    let mut inside: Vec<Range<usize>> = places.into_iter().map(|place| place.range).collect();
    inside.retain(|range| range.start >= window.start && range.end <= window.end);
    // Terms may overlap; a longer one comes before those inside it.
    inside.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    RankedSnippet {
        count,
        ..on_one_line(text, window, inside)
    }
}

/// Where the terms stand, in the order of the text.
fn places(text: &str, terms: &[Vec<String>]) -> Vec<TermMatch> {
    let longest = terms.iter().map(Vec::len).max().unwrap_or(0);
    let mut places = Vec::new();
    // The last words, of which a term may be the end: whether each word of each term was
    // there is kept, not the words themselves.
    let mut recent: Vec<Range<usize>> = Vec::new();
    let mut matched: Vec<Vec<usize>> = vec![Vec::new(); terms.len()];
    let mut seen = 0;
    word_splitting::words(text, |range, word| {
        recent.push(range);
        if recent.len() > longest {
            recent.remove(0);
        }
        for (term, wanted) in terms.iter().enumerate() {
            // How many words of the term have matched, for each place it may have begun.
            let begun = &mut matched[term];
            begun.push(0);
            begun.retain_mut(|count| {
                let fits = wanted.get(*count).is_some_and(|want| want == word);
                *count += 1;
                fits
            });
            if begun.first() == Some(&wanted.len()) {
                begun.remove(0);
                let from = &recent[recent.len().saturating_sub(wanted.len())];
                let to = recent.last().map_or(from.end, |last| last.end);
                places.push(TermMatch {
                    range: from.start..to,
                    term,
                });
            }
        }
        seen += 1;
        seen < LOOKED_AT && places.len() < PLACES
    });
    places
}

/// The stretch of the text to show: the one with the most different terms, the first if
/// there are several.
fn window(text: &str, places: &[TermMatch], width: usize) -> Range<usize> {
    let mut best = (0, 0);
    for (at, first) in places.iter().enumerate() {
        let near = places[at..]
            .iter()
            .take_while(|place| place.range.end <= first.range.start + width);
        let mut terms: Vec<usize> = near.map(|place| place.term).collect();
        terms.sort_unstable();
        terms.dedup();
        if terms.len() > best.0 {
            best = (terms.len(), first.range.start);
        }
    }
    let start = back(text, best.1, width / LEAD);
    let end = forth(text, start, width).max(forth(text, best.1, 1));
    start..end
}

/// A place about `count` characters before `at`, at the start of a word.
fn back(text: &str, at: usize, count: usize) -> usize {
    let far = text[..at].char_indices().rev().take(count + 1);
    let chars: Vec<(usize, char)> = far.collect();
    if chars.len() <= count {
        return 0;
    }
    let edge = chars.iter().rev().find(|(_, char)| char.is_whitespace());
    let far = chars.last().map_or(at, |(far, _)| *far);
    edge.map_or(far, |(edge, char)| edge + char.len_utf8())
}

/// A place about `count` characters behind `at`, at the end of a word.
fn forth(text: &str, at: usize, count: usize) -> usize {
    let Some((limit, _)) = text[at..].char_indices().nth(count) else {
        return text.len();
    };
    let limit = at + limit;
    let inside = &text[at..limit];
    // A word as long as the window is cut.
    match inside.rfind(char::is_whitespace) {
        Some(edge) if edge > inside.len() / 2 => at + edge,
        _ => limit,
    }
}

/// Copies a stretch with every run of white space as one space, and moves the marks along.
fn on_one_line(text: &str, window: Range<usize>, places: Vec<Range<usize>>) -> RankedSnippet {
    let mut snippet = RankedSnippet::default();
    if !text[..window.start].trim().is_empty() {
        snippet.text.push('…');
    }
    let mut at = window.start;
    for place in places {
        // Marks do not overlap.
        if place.start < at {
            continue;
        }
        squeeze(&text[at..place.start], &mut snippet.text);
        let start = snippet.text.len();
        squeeze(&text[place.clone()], &mut snippet.text);
        snippet.marks.push(start..snippet.text.len());
        at = place.end;
    }
    squeeze(&text[at..window.end], &mut snippet.text);
    snippet.text.truncate(snippet.text.trim_end().len());
    if !text[window.end..].trim().is_empty() {
        snippet.text.push('…');
    }
    snippet
}

fn squeeze(text: &str, out: &mut String) {
    for char in text.chars() {
        if !char.is_whitespace() {
            out.push(char);
        } else if !out.is_empty() && !out.ends_with([' ', '…']) {
            out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, terms: &[&str], width: usize) -> String {
        let fold = |term: &&str| {
            let mut all = Vec::new();
            word_splitting::words(term, |_, word| {
                all.push(word.to_owned());
                true
            });
            all
        };
        let terms: Vec<Vec<String>> = terms.iter().map(fold).collect();
        let snippet = cut(text, &terms, width);
        let mut out = snippet.text.clone();
        for mark in snippet.marks.iter().rev() {
            out.insert(mark.end, ']');
            out.insert(mark.start, '[');
        }
        out
    }

    #[test]
    fn what_was_looked_for_is_marked() {
        assert_eq!(
            marked("Fix the Login", &["login", "fix"], 80),
            "[Fix] the [Login]"
        );
        assert_eq!(marked("a b c a b", &["a b"], 80), "[a b] c [a b]");
        assert_eq!(marked("a a b", &["a b"], 80), "a [a b]");
        assert_eq!(marked("Café, Bär", &["cafe", "bar"], 80), "[Café], [Bär]");
    }

    #[test]
    fn a_run_of_cjk_is_marked_as_a_whole() {
        assert_eq!(
            marked("连接数据库失败", &["数据库"], 80),
            "连接[数据库]失败"
        );
        assert_eq!(marked("数数据", &["数据"], 80), "数[数据]");
    }

    #[test]
    fn a_long_text_is_cut_around_the_best_place() {
        let far = "x ".repeat(300);
        let text = format!("alpha {far} alpha here is beta {far}");
        let cut = marked(&text, &["alpha", "beta"], 60);
        assert!(cut.starts_with('…') && cut.ends_with('…'), "{cut}");
        assert!(cut.contains("[alpha] here is [beta]"), "{cut}");
        assert!(cut.chars().count() < 75, "{cut}");
    }

    #[test]
    fn what_is_shown_of_a_long_text_is_masked() {
        let far = "x ".repeat(5 * SECRET);
        let text = format!("{far} hunter2 is the walrus {far}");
        fn mask(text: &str) -> Cow<'_, str> {
            text.replace("hunter2", "[REDACTED]").into()
        }
        let cut = cut_masked(&text, &[vec!["walrus".to_owned()]], 120, mask);
        assert!(
            cut.text.contains("[REDACTED] is the walrus"),
            "{}",
            cut.text
        );
        assert_eq!((cut.count, cut.marks.len()), (1, 1));
    }

    #[test]
    fn line_breaks_become_spaces() {
        assert_eq!(
            marked("  one\n\n two\tthree ", &["two"], 80),
            "one [two] three"
        );
        assert_eq!(marked("one\n two", &["one two"], 80), "[one two]");
    }

    #[test]
    fn without_a_place_the_start_is_shown() {
        assert_eq!(marked("nothing of it", &["else"], 80), "nothing of it");
        assert_eq!(marked("", &["else"], 80), "");
        let long = "数".repeat(500);
        assert_eq!(marked(&long, &[], 50).chars().count(), 51);
        assert_eq!(marked(&"y".repeat(500), &["y"], 50).chars().count(), 51);
    }
}
