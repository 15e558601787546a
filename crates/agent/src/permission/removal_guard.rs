//! The guard for `rm` and `rmdir`: what would take away a home, a project or a system is asked
//! about in every mode, and so is what could become that if a variable is empty.

use std::path::{Path, PathBuf};

use super::destructive::is_system;
use super::path::ResolvedPath;
use super::shell_parser::{ShellWord, ShellWordPart};
use super::{PermissionPolicy, PermissionReason};

/// Names of programs that remove.
pub(super) fn removes(program: &str) -> bool {
    ["rm", "rmdir", "unlink", "shred", "srm"].contains(&program)
}

/// The text of a word up to what is not known yet.
fn known(word: &ShellWord) -> (String, bool) {
    let mut text = String::new();
    for (index, piece) in word.pieces.iter().enumerate() {
        match piece {
            ShellWordPart::Text(part) => text.push_str(part),
            ShellWordPart::Home if index == 0 => text.push('~'),
            _ => return (text, true),
        }
    }
    (text, false)
}

impl PermissionPolicy {
    /// Why removing these must be asked about. `cwds` are the folders it may run in; none if
    /// nobody knows.
    pub(super) fn guard_removal(
        &self,
        operands: &[ShellWord],
        cwds: Option<&[PathBuf]>,
    ) -> Option<PermissionReason> {
        let mut only_operands = false;
        for word in operands {
            let (text, is_open) = known(word);
            if !only_operands && text == "--" && !is_open {
                only_operands = true;
                continue;
            }
            if !only_operands && text.starts_with('-') && !is_open {
                if text.starts_with("--no-pres") {
                    return Some(PermissionReason::new(
                        "disables the protection of the root directory",
                    ));
                }
                continue;
            }
            if let Some(why) = self.guard_one(&text, is_open, &word.raw, cwds) {
                return Some(PermissionReason::new(why));
            }
        }
        None
    }

    fn guard_one(
        &self,
        text: &str,
        is_open: bool,
        raw: &str,
        cwds: Option<&[PathBuf]>,
    ) -> Option<String> {
        // Of what is open, the folder before it counts: `/*` and `"$x"/*` can be everything.
        let folder = match is_open {
            true => text.rfind('/').map_or("", |slash| &text[..=slash]),
            false => text,
        };
        if is_open && folder.is_empty() && !raw.trim_start_matches('"').starts_with('$') {
            // Names in the folder one stands in: all of them, or some that begin alike.
            if !text.is_empty() {
                return None;
            }
            let rest = raw.trim_start_matches(['*', '?']);
            if rest.starts_with(['.', '_', '-']) && rest.len() > 1 && !rest.contains('/') {
                return None;
            }
            return Some(format!(
                "removing {raw} could delete everything in the directory"
            ));
        }
        if is_open && folder.is_empty() {
            return Some(format!(
                "cannot tell in advance what removing {raw} would delete"
            ));
        }
        let absolute = folder.starts_with(['/', '~']);
        let folders: &[PathBuf] = match (absolute, cwds) {
            (_, Some(cwds)) => cwds,
            (true, None) => std::slice::from_ref(&self.project),
            (false, None) => {
                return Some(format!(
                    "cannot tell in which directory {raw} would be removed"
                ));
            }
        };
        folders.iter().find_map(|cwd| {
            let place = ResolvedPath::of(folder, cwd, &self.home);
            let is_critical = place.forms().any(|path| self.is_critical(path, cwd));
            is_critical.then(|| format!("removing {raw} would delete {}", place.written.display()))
        })
    }

    fn is_critical(&self, path: &Path, cwd: &Path) -> bool {
        let holds = |folder: &Path| folder.starts_with(path);
        is_system(path)
            || holds(&self.home)
            || holds(cwd)
            || holds(&self.root)
            || self
                .work
                .iter()
                .any(|folder| holds(&folder.written) || holds(&folder.real))
    }

    /// The same for a search that removes what it finds: there the own folder is no danger.
    pub(super) fn guard_search(
        &self,
        starts: &[ShellWord],
        cwds: Option<&[PathBuf]>,
    ) -> Option<PermissionReason> {
        let here = std::slice::from_ref(&self.project);
        let is_top = |path: &Path| self.is_machine(path);
        let could = |raw: &str| {
            let why = format!("removing what is found in {raw} could delete system files");
            Some(PermissionReason::new(why))
        };
        for cwd in cwds.unwrap_or(here) {
            if starts.is_empty() && is_top(cwd) {
                return could(".");
            }
            for word in starts {
                let (text, is_open) = known(word);
                let is_unknown = is_open && text.is_empty();
                let place = ResolvedPath::of(&text, cwd, &self.home);
                if is_unknown || place.forms().any(is_top) {
                    return could(&word.raw);
                }
            }
        }
        // Nobody knows where it stands.
        let is_relative = |word: &ShellWord| !word.raw.starts_with(['/', '~']);
        match cwds.is_none() && (starts.is_empty() || starts.iter().any(is_relative)) {
            true => could("an unknown directory"),
            false => None,
        }
    }
}
