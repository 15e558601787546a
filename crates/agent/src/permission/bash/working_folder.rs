//! Where parts of a command run: what `cd` does, and whether git there finds the project's repository.

use std::path::{Path, PathBuf};

use super::command_texts::{known_text, program, raw_path, shown};
use super::git_command::GitCommand;
use super::known_programs::{RUNNERS, stripped};
use super::{Cwds, PermissionPolicy};
use crate::permission::git_repository;
use crate::permission::path::{ResolvedPath, real};
use crate::permission::shell_parser::{ShellCommandPart, ShellScript, ShellWord};

/// Programs that run git where they stand.
const RUN_GIT: &[&str] = &["gh", "gitk", "gitui", "glab", "hub", "jj", "lazygit", "tig"];

/// Other systems of the kind of git.
const OTHER_SYSTEMS: &[&str] = &["bzr", "brz", "darcs", "fossil", "hg", "sl"];

impl PermissionPolicy {
    /// All folders a part may run in: the first, and in a loop those that any part goes to.
    pub(super) fn first_cwds(&self, script: &ShellScript, from: &[PathBuf]) -> Cwds {
        let mut cwds = Some(from.to_vec());
        if !script.repeats {
            return cwds;
        }
        // What still grows after some rounds grows for ever.
        for _ in 0..3 {
            let before = cwds.clone();
            for part in &script.parts {
                follow(part, &mut cwds, &self.home);
            }
            if cwds == before {
                return cwds;
            }
        }
        None
    }

    /// Whether a part goes to another folder than the one we stand in and the project's.
    pub(super) fn moves(&self, part: &ShellCommandPart, cwd: &Path) -> bool {
        let start = stripped(&part.words).unwrap_or(0);
        let Some(name) = part.words.get(start).map(program) else {
            return false;
        };
        match (name.as_str(), &part.words[start + 1..]) {
            ("cd", [target]) if !target.is_open() => {
                let text = raw_path(target);
                let place = ResolvedPath::of(&text, cwd, &self.home);
                let here = [real(cwd), real(&self.project)];
                text.is_empty() || text.starts_with('-') || !here.contains(&place.real)
            }
            ("cd" | "pushd" | "popd", _) => true,
            _ => false,
        }
    }

    /// `cd` within the project needs no rule.
    pub(super) fn allows_move(&self, name: &str, words: &[ShellWord], cwds: &Cwds) -> bool {
        let (Some(cwds), [_, target], "cd") = (cwds, words, name) else {
            return false;
        };
        let text = raw_path(target);
        if target.is_open() || text.starts_with('-') || text.is_empty() {
            return false;
        }
        cwds.iter().all(|cwd| {
            let place = ResolvedPath::of(&text, cwd, &self.home);
            self.work.iter().any(|folder| place.is_within(folder))
        })
    }

    /// Why git here would use another repository than the project's, and run what that names.
    pub(super) fn git_elsewhere(
        &self,
        words: &[ShellWord],
        cwds: &Cwds,
        moved: bool,
    ) -> Option<String> {
        let runs = words
            .first()
            .is_some_and(|word| RUNNERS.contains(&program(word).as_str()));
        let last = if runs { words.len() } else { 1 };
        (0..last.min(words.len())).find_map(|index| {
            let rest = &words[index + 1..];
            match program(&words[index]).as_str() {
                "git" => self.git_call_elsewhere(rest, cwds, moved),
                name if RUN_GIT.contains(&name) => self.git_call_elsewhere(&[], cwds, moved),
                name if OTHER_SYSTEMS.contains(&name) => {
                    self.other_elsewhere(name, rest, cwds, moved)
                }
                _ => None,
            }
        })
    }

    /// The other systems read the configuration of the folder they stand in, too, which names
    /// programs; and one below a repository of git came with its files.
    fn other_elsewhere(
        &self,
        name: &str,
        words: &[ShellWord],
        cwds: &Cwds,
        moved: bool,
    ) -> Option<String> {
        const ELSEWHERE: &[&str] = &["-R", "--rep", "--cw", "--conf", "--ignore"];
        let leaves = |word: &&ShellWord| {
            let text = known_text(word);
            ELSEWHERE.iter().any(|option| text.starts_with(option))
        };
        if let Some(word) = words.iter().find(leaves) {
            return Some(format!("`{name} {}` can have it look elsewhere", word.raw));
        }
        if moved || cwds.is_none() {
            let text =
                "runs after a change of directory, where another repository may name programs";
            return Some(format!("`{name}` {text}"));
        }
        let has = |folder: &str| self.project.join(folder).symlink_metadata().is_ok();
        let is_shipped = has(".git") && has(&format!(".{name}"));
        is_shipped.then(|| format!("the repository of `{name}` lies among the files of another"))
    }

    fn git_call_elsewhere(&self, words: &[ShellWord], cwds: &Cwds, moved: bool) -> Option<String> {
        let (folders, option) = GitCommand::read(words).elsewhere();
        if let Some(option) = option {
            return Some(format!(
                "`git {option}` can make git use another repository or run another program"
            ));
        }
        if moved {
            return Some(
                "git runs after a change of directory, where another repository may configure programs to run"
                    .to_owned(),
            );
        }
        let Some(cwds) = cwds else {
            return Some("cannot tell in which directory git would run".to_owned());
        };
        let project = real(&self.project);
        cwds.iter().find_map(|cwd| {
            let mut at = real(cwd).unwrap_or_else(|| cwd.clone());
            let from = at.clone();
            for folder in &folders {
                if folder.is_open() {
                    return Some(format!("cannot resolve `git -C {}` in advance", folder.raw));
                }
                let place = ResolvedPath::of(&raw_path(folder), &at, &self.home);
                at = place.real.unwrap_or(place.written);
            }
            if at != from && Some(&at) != project.as_ref() {
                return Some(format!("git would run in {}", at.display()));
            }
            git_repository::foreign(&self.project, &at)
        })
    }
}

/// What stands behind the options of `cd`.
fn behind_options(words: &[ShellWord]) -> &[ShellWord] {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.text().as_deref() {
            Some("--") => return &words[at + 1..],
            Some("-P" | "-L" | "-e" | "-@" | "-Pe" | "-eP") => at += 1,
            _ => break,
        }
    }
    &words[at..]
}

/// What `cd` does to where the next parts run.
pub(super) fn follow(part: &ShellCommandPart, cwds: &mut Cwds, home: &Path) {
    let start = stripped(&part.words).unwrap_or(0);
    let Some(name) = part.words.get(start).map(shown) else {
        return;
    };
    // Back to a folder that is among the known ones.
    if name == "popd"
        && part.words.len() == start + 1
        && cwds.as_ref().is_some_and(|known| known.len() > 1)
    {
        return;
    }
    if !["cd", "pushd", "popd"].contains(&name.as_str()) {
        return;
    }
    let Some(known) = cwds else { return };
    let text = match (name.as_str(), behind_options(&part.words[start + 1..])) {
        ("cd" | "pushd", [target]) if !target.is_open() => raw_path(target),
        ("cd", []) => "~".to_owned(),
        _ => String::new(),
    };
    // Two folders for each `cd`, because nobody knows whether it succeeded or stood in a subshell.
    if text.is_empty() || text.starts_with(['-', '+']) || known.len() > 16 {
        *cwds = None;
        return;
    }
    // The shell goes by the text, the system by links; both are possible.
    let moved: Vec<PathBuf> = known
        .iter()
        .map(|cwd| ResolvedPath::of(&text, cwd, home))
        .flat_map(|place| place.real.into_iter().chain([place.written]))
        .collect();
    for cwd in moved {
        if !known.contains(&cwd) {
            known.push(cwd);
        }
    }
}
