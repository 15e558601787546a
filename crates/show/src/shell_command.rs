//! Commands for a person to paste into a shell: those that resume a session.
//!
//! Directory and id come from transcripts and file names, so a shell must take them for nothing
//! but words. What is written holds printable characters only: it means the same after it went
//! through a terminal, a clipboard or a page.

use crate::clean;

/// The command that resumes a session in the client, after going to its directory.
pub fn resume(directory: Option<&str>, id: &str) -> String {
    within(directory, &format!("claude {}", resume_option(id)))
}

/// The command that goes on with a session in a conversation of our own.
pub fn chat(directory: Option<&str>, id: &str) -> String {
    within(directory, &format!("unspool chat {}", resume_option(id)))
}

/// The arguments that resume a session, for a program that is started without a shell.
pub fn resume_arguments(id: &str) -> Vec<String> {
    match id.starts_with('-') {
        // As a word of its own it would be taken for an option.
        true => vec![format!("--resume={id}")],
        false => vec!["--resume".to_owned(), id.to_owned()],
    }
}

fn resume_option(id: &str) -> String {
    let words: Vec<String> = resume_arguments(id).iter().map(|it| quote(it)).collect();
    words.join(" ")
}

fn within(directory: Option<&str>, command: &str) -> String {
    // No path holds a zero byte; a shell would drop it and go somewhere else.
    let directory = directory.filter(|it| !it.is_empty() && !it.contains('\0'));
    let Some(directory) = directory else {
        return command.to_owned();
    };
    // `cd -` and CDPATH mean other places.
    let here = if directory.starts_with('/') { "" } else { "./" };
    // A substitution loses newlines at its end, so something follows them.
    let end = if directory.ends_with('\n') { "/." } else { "" };
    let directory = quote(&format!("{here}{directory}{end}"));
    format!("cd -- {directory} && {command}")
}

/// The text as one word of a POSIX shell.
///
/// Characters that a terminal obeys or hides are told by `printf`, which every shell has;
/// `$'…'` is not known to all of them. Newlines at the end are lost then.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let is_shown = |c: char| !c.is_control() && !clean::is_deceptive(c);
    if text.chars().all(is_shown) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut told = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' => told.push_str(r"\\"),
            '\'' => told.push_str(r"\0047"),
            c if is_shown(c) => told.push(c),
            c => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    told.push_str(&format!("\\0{byte:03o}"));
                }
            }
        }
    }
    format!("\"$(printf %b '{told}')\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_session_needs_no_quotes() {
        assert_eq!(resume(None, "2f72-01"), "claude --resume 2f72-01");
        assert_eq!(
            resume(Some("/home/dev/x"), "2f72"),
            "cd -- /home/dev/x && claude --resume 2f72"
        );
        assert_eq!(chat(None, "2f72"), "unspool chat --resume 2f72");
    }

    #[test]
    fn an_id_is_never_an_option_and_a_directory_never_a_place_before() {
        assert_eq!(resume(None, "--x"), "claude --resume=--x");
        assert_eq!(
            resume(Some("-"), "$(x)"),
            "cd -- ./- && claude --resume '$(x)'"
        );
    }

    #[cfg(unix)]
    mod in_a_shell {
        use std::path::Path;
        use std::process::Command;

        use proptest::prelude::*;
        use tempfile::TempDir;

        use super::super::*;

        /// A client that only says where it is and what it was given. A function of the shell:
        /// a file that was just written cannot always be run beside other tests.
        const CLIENT: &str = "claude() { { pwd; printf '%s\\0' \"$@\"; } >\"$TOLD\"; }";

        /// What a shell makes of a command: the directory and the arguments of the client.
        fn told(shell: &str, place: &Path, command: &str) -> (String, Vec<String>) {
            let status = Command::new(shell)
                .args(["-c", &format!("{CLIENT}\n{command}")])
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("HOME", place)
                .env("CDPATH", place)
                .env("TOLD", place.join("told"))
                .current_dir(place.join("here"))
                .status()
                .unwrap();
            assert!(status.success(), "{command}");
            let told = std::fs::read_to_string(place.join("told")).unwrap();
            let (arguments, directory) = {
                let end = told.rfind("\n--resume").unwrap();
                (&told[end + 1..], &told[..end])
            };
            let arguments = arguments.split_terminator('\0').map(str::to_owned);
            (directory.to_owned(), arguments.collect())
        }

        fn leads_there(name: &str, id: &str) {
            let place = TempDir::new().unwrap();
            let place = place.path().canonicalize().unwrap();
            let here = place.join("here");
            std::fs::create_dir(&here).unwrap();
            if std::fs::create_dir(here.join(name)).is_err() {
                return;
            }
            let before = names(&here);
            for shell in ["sh", "bash"] {
                let whole = format!("{}/{name}", here.display());
                for directory in [whole.as_str(), name] {
                    let command = resume(Some(directory), id);
                    assert!(!command.contains(char::is_control), "{command:?}");
                    assert_eq!(crate::clean::text(&command), command);
                    let (there, arguments) = told(shell, &place, &command);
                    let there = there.strip_suffix("/.").unwrap_or(&there);
                    assert_eq!(there, whole, "{shell}: {command}");
                    assert_eq!(arguments, resume_arguments(id), "{shell}: {command}");
                }
            }
            assert_eq!(names(&here), before, "{name:?} made something");
        }

        fn names(folder: &Path) -> Vec<std::ffi::OsString> {
            let entries = std::fs::read_dir(folder).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        }

        #[test]
        fn hostile_names_are_only_names() {
            for name in [
                "$(touch x)",
                "`touch x`",
                "it's",
                "a\nb",
                "a\n",
                "; touch x",
                "-",
                "--",
                "-P",
                "a b",
                "~",
                "日本語",
                "a\"b",
                "a\\b",
                "a\\0101b",
                "$HOME",
                "a&&touch x",
                "a|touch x",
                "#a",
                "!!",
                "*",
                "{a,b}",
                "a\u{1b}[31mb",
                "a\u{202e}b",
                "a\rb",
                "a\tb",
                "'\n'",
                "%s%n",
                "\\\n$(touch x)",
            ] {
                leads_there(name, name.trim_end_matches('\n'));
            }
        }

        proptest! {
            #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
            #[test]
            fn any_name_is_only_a_name(
                name in "[^/\\x00.]([^/\\x00]|[$`'\"\\\\;&|<>(){}*?#~!\n \\-]|touch x){0,12}",
                id in "[^/\\x00\n]{1,8}",
            ) {
                leads_there(&name, &id);
            }
        }
    }
}
