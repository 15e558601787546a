//! Programs of `sed` and `awk`: whether they write, read or run something by themselves.

use super::{ArgumentEffect, behind, could_be_option};
use crate::permission::bash::command_texts::known_text;
use crate::permission::shell_parser::ShellWord;

/// `sed`: a script of known commands is fine, files that are changed in place are written.
pub(super) fn sed(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let mut effects = Vec::new();
    let mut scripts: Vec<&ShellWord> = Vec::new();
    // Each with whether it stands behind `--`.
    let mut operands: Vec<(&ShellWord, bool)> = Vec::new();
    let mut in_place = false;
    let mut glued = Vec::new();
    let mut at = 0;
    let mut only_operands = false;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let text = known_text(word);
        if only_operands || !text.starts_with('-') || text == "-" {
            operands.push((word, only_operands));
            continue;
        }
        if text == "--" {
            only_operands = true;
            continue;
        }
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            let is = |option: &str| !name.is_empty() && option.starts_with(name);
            match () {
                () if is("in-place") => in_place = true,
                () if is("file") => effects.push(ArgumentEffect::Runs(format!("sed {text}"))),
                () if is("expression") => match long.contains('=') {
                    true => glued.push(behind(word, name.chars().count() + 3)),
                    false => {
                        scripts.extend(arguments.get(at));
                        at += 1;
                    }
                },
                () if is("line-length") => at += usize::from(!long.contains('=')),
                () if word.is_open() => effects.push(ArgumentEffect::Runs(format!("sed {text}"))),
                () => {}
            }
            continue;
        }
        if word.is_open() {
            effects.push(ArgumentEffect::Runs(format!("sed {}", word.raw)));
            continue;
        }
        let count = text.chars().count();
        for (index, letter) in text.chars().enumerate().skip(1) {
            let is_last = index + 1 == count;
            match letter {
                'i' | 'I' => {
                    in_place = true;
                    break;
                }
                'e' if is_last => {
                    scripts.extend(arguments.get(at));
                    at += 1;
                }
                'e' => {
                    glued.push(behind(word, index + 1));
                    break;
                }
                'f' => {
                    effects.push(ArgumentEffect::Runs(format!("sed {text}")));
                    break;
                }
                'l' => {
                    at += usize::from(is_last);
                    break;
                }
                _ => {}
            }
        }
    }
    scripts.extend(&glued);
    if scripts.is_empty() && !operands.is_empty() {
        scripts.push(operands.remove(0).0);
    }
    for script in scripts {
        let is_plain = script.text().is_some_and(|text| is_plain_sed(&text));
        if !is_plain {
            effects.push(ArgumentEffect::Runs(format!("sed {}", script.raw)));
        }
    }
    for (operand, is_behind) in operands {
        if !is_behind && could_be_option(operand) {
            effects.push(ArgumentEffect::Runs(format!("sed {}", operand.raw)));
        }
        if in_place {
            effects.push(ArgumentEffect::Writes(operand.clone()));
        }
    }
    effects
}

/// Whether a script of `sed` holds only commands that touch nothing but the text.
fn is_plain_sed(script: &str) -> bool {
    let chars: Vec<char> = script.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            ' ' | '\t' | '\n' | ';' | '{' | '}' | '!' | ',' | '$' | '+' | '~' | '0'..='9' => {
                at += 1;
            }
            '/' => match delimited(&chars, at + 1, '/') {
                Some(end) => at = modifiers(&chars, end),
                None => return false,
            },
            '\\' => match chars.get(at + 1).copied() {
                Some(mark) if mark != '\n' => match delimited(&chars, at + 2, mark) {
                    Some(end) => at = modifiers(&chars, end),
                    None => return false,
                },
                _ => return false,
            },
            's' | 'y' => {
                let command = chars[at];
                let Some(mark) = chars.get(at + 1).copied() else {
                    return false;
                };
                if mark == '\n' || mark == '\\' {
                    return false;
                }
                let middle = delimited(&chars, at + 2, mark);
                let Some(end) = middle.and_then(|middle| delimited(&chars, middle, mark)) else {
                    return false;
                };
                at = end;
                while let Some(flag) = chars.get(at) {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' if command == 's' => at += 1,
                        ' ' | '\t' | '\n' | ';' | '}' | '#' => break,
                        _ => return false,
                    }
                }
            }
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'l'
            | 'q' | 'Q' | 'F' => at += 1,
            '#' | ':' | 'b' | 't' | 'T' => {
                // A label: to the end of the line, or of the command.
                let stops: &[char] = if chars[at] == '#' {
                    &['\n']
                } else {
                    &['\n', ';']
                };
                while at < chars.len() && !stops.contains(&chars[at]) {
                    at += 1;
                }
            }
            'a' | 'i' | 'c' => {
                while at < chars.len() && chars[at] != '\n' {
                    // A line that goes on.
                    at += if chars[at] == '\\' { 2 } else { 1 };
                }
            }
            _ => return false,
        }
    }
    true
}

/// Behind the next mark that is not escaped; `None` if it is not beyond doubt where that is.
fn delimited(chars: &[char], from: usize, mark: char) -> Option<usize> {
    let mut at = from;
    let mut bracket = false;
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            // Programs differ about a mark in brackets.
            c if *c == mark && bracket => return None,
            c if *c == mark => return Some(at + 1),
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
        at += 1;
    }
    None
}

fn modifiers(chars: &[char], from: usize) -> usize {
    let more = chars[from..].iter().take_while(|c| ['I', 'M'].contains(*c));
    from + more.count()
}

/// `awk`: a program that neither writes nor runs anything is fine.
pub(super) fn awk(arguments: &[ShellWord]) -> Vec<ArgumentEffect> {
    let runs = |text: &str| vec![ArgumentEffect::Runs(format!("awk {text}"))];
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let text = known_text(word);
        if text == "--" {
            continue;
        }
        if text.starts_with('-') && text.len() > 1 {
            match text.as_str() {
                "-F" | "-v" | "--field-separator" | "--assign" => at += 1,
                _ if text.starts_with("-F") || text.starts_with("-v") => {}
                _ => return runs(&text),
            }
            continue;
        }
        // The first operand is the program; what follows are files.
        return match word.text().is_some_and(|program| is_plain_awk(&program)) {
            true => Vec::new(),
            false => runs(&word.raw),
        };
    }
    Vec::new()
}

fn is_plain_awk(program: &str) -> bool {
    let without = program.replace("||", "").replace(">=", "");
    let prints = program.contains("print");
    let words = ["system", "getline", "@", "close", "fflush"];
    let redirects = prints && without.contains('>');
    let runs = without.contains('|') || words.iter().any(|word| program.contains(word));
    !redirects && !runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_sed_is_plain_if_it_touches_only_the_text() {
        for script in [
            "s/a/b/",
            "s|a/b|c|g;p",
            "1,5p",
            "/x/d",
            "$!d",
            "/a/,/b/{s/x/y/2;p}",
            "y/abc/xyz/",
            "s/[a-z]*w x//",
            "a\\\nhello w world",
            "5q",
        ] {
            assert!(is_plain_sed(script), "{script}");
        }
        for script in [
            "w out",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/e",
            "1e touch x",
            "e",
            "r .env",
            "R .env",
            "p;w out",
            "/x/w out",
            "\\,x,w out",
            "s,a,b,;W out",
            "s/[/]/x/w out/",
            "$!{w out\n}",
            "a\\\ntext\nw out",
            "v",
            "s/a/b",
        ] {
            assert!(!is_plain_sed(script), "{script}");
        }
    }

    #[test]
    fn a_program_of_awk_is_plain_if_it_only_prints() {
        for program in [
            "{print $1}",
            "$3 > 10",
            "NR==1 || NR>=5 {print}",
            "BEGIN{x=1} END{print x}",
        ] {
            assert!(is_plain_awk(program), "{program}");
        }
        for program in [
            "{print > \"out\"}",
            "{print >> \"out\"}",
            "{print | \"sh\"}",
            "BEGIN{system(\"x\")}",
            "{\"date\" | getline}",
            "{getline x < \".env\"}",
            "{printf \"x\">FILENAME}",
            "@load \"x\"",
        ] {
            assert!(!is_plain_awk(program), "{program}");
        }
    }
}
