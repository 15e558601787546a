//! Names that were replaced do not come back.
//!
//! A retired module or type is listed with what it is called now.

use super::{SourceTree, Violation};

/// Retired names and their replacements. Types are whole words of code; a name with `/` or `.rs` is
/// part of a path.
const RETIRED: &[(&str, &str)] = &[];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.product_sources() {
        for (name, now) in RETIRED {
            let is_path = name.contains('/') || name.ends_with(".rs");
            let lines: Vec<usize> = match is_path {
                true => file.path.contains(name).then_some(1).into_iter().collect(),
                false => lines_with_word(file.code_lines(), name),
            };
            found.extend(lines.into_iter().map(|line| Violation {
                check: "retired-words",
                file: file.path.clone(),
                line,
                what: format!("`{name}` is called `{now}`"),
            }));
        }
    }
    found
}

fn lines_with_word<'t>(lines: impl Iterator<Item = (usize, &'t str)>, word: &str) -> Vec<usize> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let has = |code: &str| code.split(|char| !is_word(char)).any(|part| part == word);
    lines
        .filter(|(_, code)| has(code))
        .map(|(line, _)| line)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_whole_and_not_as_part_of_another() {
        let code = [
            (1, "let desk = 1;"),
            (2, "desktop()"),
            (3, "use a::desk::B;"),
        ];
        assert_eq!(lines_with_word(code.into_iter(), "desk"), [1, 3]);
    }
}
