//! Programs that go through folders, so that no word names the files they read.

use std::path::{Path, PathBuf};

use super::command_texts::{known_text, program, raw_path};
use super::git_command::GitCommand;
use super::named_files::entries;
use super::{PermissionFindings, PermissionPolicy, PermissionReason};
use crate::permission::path::ResolvedPath;
use crate::permission::shell_parser::ShellWord;

/// More files than are looked through.
const MANY: usize = 20_000;

/// How a program goes through folders.
struct FolderReader {
    /// Whether it starts where it stands if it is given no folder.
    from_here: bool,
    /// Whether it passes over files whose names begin with a dot.
    skips_hidden: bool,
}

fn walk(words: &[ShellWord]) -> Option<FolderReader> {
    let name = program(words.first()?);
    let texts: Vec<String> = words[1..].iter().map(known_text).collect();
    let has_letter = |letters: &[char]| {
        let mut short = texts
            .iter()
            .filter(|text| text.starts_with('-') && !text.starts_with("--"));
        short.any(|text| text.contains(letters))
    };
    let has = |long: &str| {
        texts
            .iter()
            .any(|text| text.len() > 3 && text.starts_with(long))
    };
    let whole = |from_here| {
        Some(FolderReader {
            from_here,
            skips_hidden: false,
        })
    };
    match name.as_str() {
        "grep" | "egrep" | "fgrep" | "zgrep" => {
            let goes = has_letter(&['r', 'R'])
                || has("--rec")
                || has("--deref")
                || has("--directories=rec")
                || texts.iter().any(|text| text == "recurse");
            let is_rgrep = words[0].raw.ends_with("rgrep");
            (goes || is_rgrep).then(|| whole(true))?
        }
        "ack" => whole(true),
        "docker" | "podman" | "nerdctl" => {
            let mounts = has("--vol") || has("--mount") || has_letter(&['v']);
            mounts.then(|| whole(false))?
        }
        "rg" | "ag" | "ugrep" => {
            let sees_hidden =
                has("--hid") || has("--unr") || has_letter(&['u', '.']) || has("--no-ig");
            Some(FolderReader {
                from_here: true,
                skips_hidden: !sees_hidden,
            })
        }
        "find" | "fd" => {
            let acts = ["-exec", "-ok", "--exec", "-x", "-X"];
            let runs = texts
                .iter()
                .any(|text| acts.iter().any(|act| text.starts_with(act)));
            runs.then(|| whole(true))?
        }
        "tar" | "bsdtar" | "zip" | "7z" | "rsync" | "ln" | "mv" | "cpio" => whole(false),
        "cp" => {
            (has_letter(&['r', 'R', 'a']) || has("--rec") || has("--arch")).then(|| whole(false))?
        }
        "scp" => has_letter(&['r']).then(|| whole(false))?,
        "diff" => (has_letter(&['r']) || has("--rec")).then(|| whole(false))?,
        "git" => {
            let call = GitCommand::read(&words[1..]);
            let is_grep = call.name().as_deref() == Some("grep");
            (is_grep && (has("--no-index") || has("--untr"))).then(|| whole(true))?
        }
        _ => None,
    }
}

impl PermissionPolicy {
    /// A program that reads what lies below a folder, where a rule denies some of it.
    pub(super) fn folders_read(
        &self,
        words: &[ShellWord],
        cwds: &[PathBuf],
        ruling: &mut PermissionFindings,
    ) {
        let Some(walk) = walk(words) else {
            return;
        };
        if !self.denies_reading() {
            return;
        }
        let mut folders: Vec<PathBuf> = Vec::new();
        for word in &words[1..] {
            let mut texts = super::named_files::spellings(word, cwds, &self.home);
            let known = known_text(word);
            texts.extend(known.split([':', '=', ',']).map(str::to_owned));
            for text in texts
                .iter()
                .chain(&[raw_path(word)])
                .filter(|text| !text.is_empty())
            {
                let places = cwds
                    .iter()
                    .map(|cwd| ResolvedPath::of(text, cwd, &self.home));
                folders.extend(places.flat_map(|place| place.real.filter(|path| path.is_dir())));
            }
        }
        if folders.is_empty() && walk.from_here {
            folders.extend_from_slice(cwds);
        }
        folders.sort();
        folders.dedup();
        let name = program(&words[0]);
        for folder in folders {
            if let Some((path, rule)) = self.denied_below(&folder, walk.skips_hidden) {
                let shown = path.display();
                let text =
                    format!("`{name}` goes through a folder, and a rule denies reading {shown}");
                ruling.firm(PermissionReason::of(text, rule));
            }
        }
    }

    /// A file in a folder that a rule denies reading.
    fn denied_below(
        &self,
        folder: &Path,
        skips_hidden: bool,
    ) -> Option<(PathBuf, &super::PermissionRule)> {
        let mut left = vec![folder.to_path_buf()];
        let mut count = 0;
        while let Some(folder) = left.pop() {
            for entry in entries(&folder) {
                let path = entry.path();
                count += 1;
                if skips_hidden && entry.file_name().to_string_lossy().starts_with('.') {
                    continue;
                }
                let place = ResolvedPath::of(&path.to_string_lossy(), &self.project, &self.home);
                // Below so many files nobody knows what lies.
                if let Some(rule) = self.denying("Read", &place) {
                    return Some((path, rule));
                }
                if count > MANY {
                    let rule = self
                        .rules_of(crate::settings::RuleKind::Deny, "Read")
                        .next()?;
                    return Some((path, rule));
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left.push(path);
                }
            }
        }
        None
    }
}
