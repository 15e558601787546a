//! Variables that builtins of the shell set: `read PATH` changes what runs next as `PATH=` does.

use super::command_texts::known_text;
use super::known_programs::is_safe;
use crate::permission::shell_parser::{ShellWord, ShellWordPart};

/// What a builtin would set or take away that may change what programs do; `None` if nothing.
/// `words` begin with the program.
pub(super) fn unsafe_assignment(words: &[ShellWord]) -> Option<String> {
    let (first, arguments) = words.split_first()?;
    let name = first.text()?;
    match name.as_str() {
        "declare" | "typeset" | "local" => declared(arguments),
        "export" | "readonly" => exported(arguments, name == "export"),
        "unset" => named(arguments, "", "fn", true),
        "read" => named(arguments, "dinNptu", "", true).or_else(|| array(arguments, "a")),
        "mapfile" | "readarray" => named(arguments, "dnOsucC", "C", true),
        "printf" => behind_option(arguments, 'v'),
        "wait" => behind_option(arguments, 'p'),
        "getopts" => match arguments.get(1) {
            Some(word) => variable(word, true),
            None => None,
        },
        // These calculate, and every name in them may be set.
        "let" => Some(shown_or(arguments.first(), "let")),
        _ => None,
    }
}

fn shown_or(word: Option<&ShellWord>, other: &str) -> String {
    word.map_or_else(|| other.to_owned(), |word| word.raw.clone())
}

/// What a word names as a variable, if that is not beyond doubt harmless.
fn variable(word: &ShellWord, lasting: bool) -> Option<String> {
    let text = known_text(word);
    let name = match text.split_once('=') {
        Some((name, _)) => name.strip_suffix('+').unwrap_or(name),
        None if word.is_open() => return Some(word.raw.clone()),
        None => text.as_str(),
    };
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_own = ["REPLY", "MAPFILE"].contains(&name);
    match is_plain && (is_own || is_safe(name, lasting)) {
        true => None,
        false => Some(name.to_owned()),
    }
}

fn could_be_option(word: &ShellWord) -> bool {
    match word.pieces.first() {
        Some(ShellWordPart::Text(text)) if !text.is_empty() => {
            text.starts_with('-') && word.is_open()
        }
        Some(ShellWordPart::Home) => false,
        _ => word.is_open(),
    }
}

/// Names behind options; `values` are letters of options that take a value, `bad` those with which
/// something else is set.
fn named(arguments: &[ShellWord], values: &str, bad: &str, lasting: bool) -> Option<String> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        if could_be_option(word) {
            return Some(word.raw.clone());
        }
        let text = known_text(word);
        if text == "--" {
            break;
        }
        if !text.starts_with('-') || text.len() < 2 {
            at -= 1;
            break;
        }
        let letters: Vec<char> = text.chars().skip(1).collect();
        for (index, letter) in letters.iter().enumerate() {
            if bad.contains(*letter) {
                return Some(text);
            }
            if values.contains(*letter) {
                at += usize::from(index + 1 == letters.len());
                break;
            }
        }
    }
    let rest = arguments.get(at..).unwrap_or_default();
    rest.iter().find_map(|word| variable(word, lasting))
}

/// `read -a NAME`.
fn array(arguments: &[ShellWord], letter: &str) -> Option<String> {
    for (index, word) in arguments.iter().enumerate() {
        let text = known_text(word);
        let Some(letters) = text.strip_prefix('-') else {
            break;
        };
        if let Some(place) = letters.find(letter) {
            let glued = &letters[place + 1..];
            return match glued.is_empty() {
                true => arguments
                    .get(index + 1)
                    .and_then(|word| variable(word, true)),
                false => Some(glued.to_owned()).filter(|name| !is_safe(name, true)),
            };
        }
    }
    None
}

/// `printf -v NAME`, `wait -p NAME`, also glued.
fn behind_option(arguments: &[ShellWord], letter: char) -> Option<String> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        if could_be_option(word) {
            return Some(word.raw.clone());
        }
        let text = known_text(word);
        if text == "--" || !text.starts_with('-') {
            return None;
        }
        if let Some(place) = text.find(letter) {
            let glued = &text[place + 1..];
            return match (glued.is_empty(), arguments.get(at)) {
                (true, Some(next)) => variable(next, true),
                (true, None) => None,
                (false, _) => Some(glued.to_owned()).filter(|name| !is_safe(name, true)),
            };
        }
    }
    None
}

fn declared(arguments: &[ShellWord]) -> Option<String> {
    let mut lasting = true;
    for word in arguments {
        if could_be_option(word) {
            return Some(word.raw.clone());
        }
        let text = known_text(word);
        if text.starts_with(['-', '+']) {
            // A name for another variable, and numbers, which are calculated.
            if text.contains(['n', 'i']) {
                return Some(text);
            }
            lasting &= !text.contains('x');
            if text.contains(['f', 'F', 'p']) {
                return None;
            }
            continue;
        }
        if let Some(name) = variable(word, lasting) {
            return Some(name);
        }
    }
    None
}

/// What is exported reaches programs, under whatever name.
fn exported(arguments: &[ShellWord], exports: bool) -> Option<String> {
    for word in arguments {
        if could_be_option(word) {
            return Some(word.raw.clone());
        }
        let text = known_text(word);
        if text.starts_with('-') {
            match text.contains('f') {
                true => return Some(text),
                false => continue,
            }
        }
        if let Some(name) = variable(word, !exports) {
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::shell_parser::parse;

    fn found(command: &str) -> Option<String> {
        let script = parse(command).unwrap();
        unsafe_assignment(&script.parts[0].words)
    }

    #[test]
    fn a_builtin_that_sets_a_variable_of_programs_is_found() {
        for command in [
            "read PATH",
            "read -r -p x PATH",
            "read -a PATH",
            "read -raPATH",
            "read x IFS",
            "mapfile PATH",
            "mapfile -t -n 1 PATH",
            "readarray -C evil -c 1 x",
            "printf -v PATH x",
            "printf -vPATH x",
            "printf -v 'BASH_CMDS[git]' x",
            "printf '-v' PATH x",
            "printf \"$x\" PATH",
            "getopts ab PATH",
            "declare PATH=x",
            "declare -x path=x",
            "declare -n r=PATH",
            "declare -i x",
            "typeset -gx HOME",
            "export PATH",
            "export path=x",
            "export -f git",
            "readonly PATH=x",
            "unset PATH",
            "unset -f git",
            "unset x PATH",
            "let PATH=1",
            "wait -p PATH",
            "wait -n -p PATH 1",
            "read $x",
            "declare $x",
            "declare PATH+=x",
        ] {
            assert!(found(command).is_some(), "{command}");
        }
        for command in [
            "read -r line",
            "read",
            "read -p PATH: answer",
            "read -a parts",
            "mapfile -t lines",
            "printf '%s' PATH",
            "printf -v out '%s' PATH",
            "printf -- -v PATH",
            "declare -a parts",
            "declare x=$HOME",
            "local name",
            "export LANG=C",
            "readonly name=x",
            "unset name",
            "getopts ab option",
            "wait",
            "wait 12",
            "echo PATH",
        ] {
            assert_eq!(found(command), None, "{command}");
        }
    }
}
