//! Paths as rules see them: where one really leads, and patterns in the manner of `.gitignore`.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::file;

/// A path twice: as it was written, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Absolute, without `.` and `..`.
    pub written: PathBuf,
    /// With all links followed; `None` if they lead nowhere, in a circle.
    pub real: Option<PathBuf>,
}

impl ResolvedPath {
    /// Looks at a path from a folder. `~/` is the home folder.
    pub fn of(path: &str, cwd: &Path, home: &Path) -> ResolvedPath {
        let full = match path.strip_prefix('~') {
            Some("") => home.to_path_buf(),
            Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => cwd.join(path),
        };
        ResolvedPath {
            written: cleaned(&full),
            real: real(&full),
        }
    }

    /// Looks at a path as the tools open it: first cleaned as text, then followed.
    pub fn of_tool(path: &str, cwd: &Path, home: &Path) -> ResolvedPath {
        let written = file::absolute(path, cwd, home);
        ResolvedPath {
            real: real(&written),
            written,
        }
    }

    /// Whether both forms lie in a folder.
    pub fn is_within(&self, folder: &ResolvedFolder) -> bool {
        let Some(real) = &self.real else { return false };
        real.starts_with(&folder.real)
            && (self.written.starts_with(&folder.written) || self.written.starts_with(&folder.real))
    }

    /// Both forms, or the one there is.
    pub fn forms(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.written.as_path()).chain(self.real.as_deref())
    }
}

/// A folder, as written and as it really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFolder {
    /// Absolute, without `.` and `..`.
    pub written: PathBuf,
    /// With all links followed.
    pub real: PathBuf,
}

impl ResolvedFolder {
    /// Looks at a folder.
    pub fn of(path: &Path) -> ResolvedFolder {
        let written = cleaned(path);
        let real = real(path).unwrap_or_else(|| written.clone());
        ResolvedFolder { written, real }
    }
}

/// Without `.` and `..`, by the text alone.
pub fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

/// Links that follow each other, at most.
const LINKS: usize = 40;

/// Where a path leads, part by part as the system goes, also where the rest does not exist yet.
pub fn real(path: &Path) -> Option<PathBuf> {
    let mut left: Vec<OsString> = path
        .components()
        .rev()
        .map(|part| part.as_os_str().to_owned())
        .collect();
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        match part.to_str() {
            Some("/") => at = PathBuf::from("/"),
            Some(".") => {}
            Some("..") => {
                at.pop();
            }
            _ => {
                let next = at.join(&part);
                match fs::read_link(&next) {
                    Ok(target) => {
                        links += 1;
                        if links > LINKS {
                            return None;
                        }
                        left.extend(
                            target
                                .components()
                                .rev()
                                .map(|part| part.as_os_str().to_owned()),
                        );
                    }
                    Err(_) => at = next,
                }
            }
        }
    }
    Some(at)
}

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    base: ResolvedFolder,
    parts: Vec<String>,
}

impl PathPattern {
    /// Reads a pattern: `//` from the root, `~/` from home, `/` from the settings file's folder,
    /// else from the folder one stands in.
    pub fn read(text: &str, base: &Path, cwd: &Path, home: &Path) -> Result<PathPattern, String> {
        if text.starts_with('!') {
            return Err("negated patterns (!) are not supported".to_owned());
        }
        if text.contains('\0') {
            return Err("a path cannot contain NUL".to_owned());
        }
        let (base, rest) = match text {
            text if text.starts_with("//") => (Path::new("/"), &text[2..]),
            "~" => (home, ""),
            text if text.starts_with("~/") => (home, &text[2..]),
            text if text.starts_with('~') => {
                return Err("only ~ and ~/ are supported, not ~user".to_owned());
            }
            text if text.starts_with('/') => (base, &text[1..]),
            text => (cwd, text),
        };
        let is_bare = !["/", "~", "./", "../"]
            .iter()
            .any(|start| text.starts_with(start));
        let rest = rest.strip_prefix("./").unwrap_or(rest);
        let mut from = base.to_path_buf();
        let mut parts: Vec<String> = Vec::new();
        for part in rest
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
        {
            match part {
                ".." if parts.is_empty() => {
                    from.pop();
                }
                ".." => {
                    parts.pop();
                }
                part => parts.push(part.to_owned()),
            }
        }
        // One name alone is meant at any depth, as in `.gitignore`.
        if is_bare && parts.len() == 1 {
            parts.insert(0, "**".to_owned());
        }
        Ok(PathPattern {
            base: ResolvedFolder::of(&from),
            parts,
        })
    }

    /// Whether a path, or a folder it lies in, fits: as it is written and where it leads.
    pub fn fits_both(&self, place: &ResolvedPath) -> bool {
        let Some(real) = &place.real else {
            return false;
        };
        self.fits(real) && self.fits(&place.written)
    }

    /// Whether one of the two fits.
    pub fn fits_either(&self, place: &ResolvedPath) -> bool {
        place.forms().any(|path| self.fits(path))
    }

    /// Whether a word that is not known yet could name such a file from one of these folders.
    pub fn could_be(
        &self,
        word: &super::shell_parser::ShellWord,
        cwds: &[PathBuf],
        home: &Path,
    ) -> bool {
        use super::shell_parser::ShellWordPart;
        let mut text = String::new();
        let mut hole = None;
        for piece in &word.pieces {
            match piece {
                ShellWordPart::Text(part) => text.push_str(part),
                ShellWordPart::Home => text.push_str(&home.to_string_lossy()),
                ShellWordPart::Glob(c) => text.push(*c),
                // Outside quotes it can be several words.
                ShellWordPart::Hole { quoted: false } => return true,
                ShellWordPart::Hole { .. } => hole = Some(text.len()),
            }
        }
        if let Some(hole) = hole {
            // The name of the file is known if it stands behind the hole.
            return match (text[hole..].rsplit_once('/'), self.parts.last()) {
                (Some((_, name)), Some(last)) if !name.is_empty() => {
                    last.contains(['*', '?', '[', '\\']) || names_meet(name, last)
                }
                _ => true,
            };
        }
        let folders = [&self.base.written, &self.base.real];
        cwds.iter().any(|cwd| {
            let full = cwd.join(&text);
            if full.components().any(|part| part == Component::ParentDir) {
                return true;
            }
            let names = names_of(&full);
            folders.iter().any(|base| {
                let mut rule = names_of(base);
                rule.extend(self.parts.iter().cloned());
                meets(&names, &rule)
            })
        })
    }

    /// Whether it could mean a file below a folder.
    pub fn could_lie_in(&self, folder: &Path) -> bool {
        let special = |part: &String| part.contains(['*', '?', '[', '\\']);
        let folder = ResolvedFolder::of(folder);
        let fixed: Vec<&String> = self
            .parts
            .iter()
            .take_while(|part| !special(part))
            .collect();
        let is_whole = fixed.len() == self.parts.len();
        [&self.base.written, &self.base.real]
            .into_iter()
            .any(|base| {
                let start = fixed
                    .iter()
                    .fold(base.clone(), |path, part| path.join(part));
                let mut folders = [&folder.written, &folder.real].into_iter();
                folders.any(|folder| {
                    start.starts_with(folder) || (!is_whole && folder.starts_with(&start))
                })
            })
    }

    /// The last name of the pattern, if it is no pattern itself.
    pub fn last_name(&self) -> Option<&str> {
        let last = self.parts.last().map(String::as_str);
        last.filter(|last| !last.contains(['*', '?', '[', '\\']))
    }

    fn fits(&self, path: &Path) -> bool {
        [&self.base.written, &self.base.real]
            .into_iter()
            .filter_map(|base| path.strip_prefix(base).ok())
            .any(|below| {
                let names: Vec<String> = below
                    .components()
                    .map(|part| part.as_os_str().to_string_lossy().into_owned())
                    .collect();
                // A folder that fits takes all that lies in it.
                (0..=names.len()).any(|end| parts_fit(&self.parts, &names[..end]))
            })
    }
}

fn parts_fit(parts: &[String], names: &[String]) -> bool {
    // Which of `names` may be next after each part; no backtracking.
    let mut open = vec![false; names.len() + 1];
    open[0] = true;
    for (index, part) in parts.iter().enumerate() {
        let mut next = vec![false; names.len() + 1];
        if part == "**" {
            let is_last = index + 1 == parts.len();
            let mut seen = false;
            for at in 0..=names.len() {
                // At the end it stands for what lies inside, not for the folder itself.
                next[at] = seen || (open[at] && !is_last);
                seen |= open[at];
            }
        } else {
            for at in 0..names.len() {
                next[at + 1] = open[at] && name_fits(part, &names[at]);
            }
        }
        open = next;
    }
    open[names.len()]
}

fn names_of(path: &Path) -> Vec<String> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    parts.collect()
}

/// Whether some path fits a pattern of the shell, and it or a folder it lies in fits a rule.
fn meets(names: &[String], rule: &[String]) -> bool {
    let (Some(part), Some(name)) = (rule.first(), names.first()) else {
        return rule.is_empty();
    };
    if part == "**" {
        return rule.len() == 1 || meets(names, &rule[1..]) || meets(&names[1..], rule);
    }
    // A pattern may name the folder whose content is meant.
    let is_folder = names.len() == 1 && rule.len() == 2 && rule[1] == "**" && is_pattern(name);
    names_meet(name, part) && (is_folder || meets(&names[1..], &rule[1..]))
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a name of a pattern of the shell and one of a rule could be the same.
fn names_meet(name: &str, part: &str) -> bool {
    let special = |c: char| ['*', '?', '[', '\\'].contains(&c);
    // The shell leaves hidden files out unless the pattern begins with their dot.
    if name.starts_with(['*', '?', '[']) && part.starts_with('.') {
        return false;
    }
    match (is_pattern(name), part.contains(special)) {
        (false, _) => name_fits(part, name),
        (true, false) => name_fits(name, part),
        (true, true) => {
            let start = |text: &str| text.split(special).next().unwrap_or_default().to_owned();
            let (one, other) = (start(name), start(part));
            one.starts_with(&other) || other.starts_with(&one)
        }
    }
}

/// `*`, `?` and `[…]` within one name.
pub(super) fn name_fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = folded(pattern);
    let name: Vec<char> = folded(name);
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => set(&pattern, p, name[n]),
            Some('\\') if pattern.get(p + 1) == Some(&name[n]) => Some(p + 2),
            Some(c) if *c == name[n] => Some(p + 1),
            _ => None,
        };
        match (step, star) {
            (Some(next), _) => {
                p = next;
                n += 1;
            }
            (None, Some((at, from))) => {
                p = at + 1;
                n = from + 1;
                star = Some((at, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Behind a set of characters that holds this one; a set without an end is a plain bracket.
fn set(pattern: &[char], at: usize, c: char) -> Option<usize> {
    let mut from = at + 1;
    let negated = matches!(pattern.get(from), Some('!' | '^'));
    from += usize::from(negated);
    let len = pattern.get(from + 1..)?.iter().position(|c| *c == ']');
    let Some(len) = len else {
        return (c == '[').then_some(at + 1);
    };
    let inside = &pattern[from..from + 1 + len];
    let mut found = false;
    let mut index = 0;
    while index < inside.len() {
        if inside.get(index + 1) == Some(&'-') && index + 2 < inside.len() {
            found |= inside[index] <= c && c <= inside[index + 2];
            index += 3;
        } else {
            found |= inside[index] == c;
            index += 1;
        }
    }
    (found != negated).then_some(from + len + 2)
}

/// Where the system does not tell letters apart by case, neither do rules.
fn folded(text: &str) -> Vec<char> {
    match cfg!(target_os = "macos") {
        true => text.to_lowercase().chars().collect(),
        false => text.chars().collect(),
    }
}

/// Folders that programs take orders from.
const PROTECTED_FOLDERS: &[&str] = &[
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".claude",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".ssh",
    ".gnupg",
];

/// Files that programs take orders from.
const PROTECTED_FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".ripgreprc",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pre-commit-config.yaml",
    ".mcp.json",
    ".claude.json",
];

/// Folders in `.claude` that hold texts and no orders.
const TEXTS: &[&str] = &["commands", "agents", "skills", "worktrees"];

/// Which part of a path makes it protected, looking only below the first folder that holds it.
pub fn protected(place: &ResolvedPath, folders: &[ResolvedFolder]) -> Option<String> {
    place.forms().find_map(|path| {
        let below = folders
            .iter()
            .flat_map(|folder| [&folder.written, &folder.real])
            .find_map(|folder| path.strip_prefix(folder).ok())
            .unwrap_or(path);
        protected_part(below)
    })
}

fn protected_part(below: &Path) -> Option<String> {
    let names: Vec<String> = below
        .components()
        .map(|part| part.as_os_str().to_string_lossy().to_lowercase())
        .collect();
    for (index, name) in names.iter().enumerate() {
        // Some systems leave out what stands at the end of a name.
        let name = name.trim_end_matches(['.', ' ']);
        if name == ".claude" {
            let next = names.get(index + 1).map(String::as_str);
            if next.is_some_and(|next| TEXTS.contains(&next)) {
                continue;
            }
        }
        if PROTECTED_FOLDERS.contains(&name) {
            return Some(name.to_owned());
        }
    }
    let last = names.last()?.trim_end_matches(['.', ' ']);
    PROTECTED_FILES.contains(&last).then(|| last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn fits(pattern: &str, path: &str) -> bool {
        let pattern = PathPattern::read(
            pattern,
            Path::new("/project"),
            Path::new("/project/here"),
            Path::new("/home/me"),
        );
        pattern.unwrap().fits(Path::new(path))
    }

    #[test]
    fn two_slashes_mean_the_root_and_one_the_folder_of_the_settings() {
        assert!(fits("//etc/**", "/etc/passwd"));
        assert!(!fits("/etc/**", "/etc/passwd"));
        assert!(fits("/etc/**", "/project/etc/passwd"));
        assert!(!fits("/etc/**", "/project/here/etc/passwd"));
    }

    #[test]
    fn a_tilde_means_home_and_a_bare_path_the_current_folder() {
        assert!(fits("~/.ssh/**", "/home/me/.ssh/id"));
        assert!(fits("src/**", "/project/here/src/a/b.rs"));
        assert!(!fits("src/**", "/project/src/b.rs"));
        assert!(fits("./src/*.rs", "/project/here/src/b.rs"));
        assert!(fits("../x", "/project/x"));
    }

    #[test]
    fn one_name_fits_at_any_depth_below_the_current_folder() {
        assert!(fits(".env", "/project/here/a/b/.env"));
        assert!(fits("*.pem", "/project/here/a/x.pem"));
        assert!(!fits(".env", "/project/.env"));
        assert!(!fits(".env", "/project/here/.environment"));
    }

    #[test]
    fn a_name_behind_a_dot_and_slash_fits_only_there() {
        assert!(fits("./.env", "/project/here/.env"));
        assert!(!fits("./.env", "/project/here/a/.env"));
    }

    #[test]
    fn a_folder_takes_what_lies_in_it_but_not_what_only_begins_like_it() {
        assert!(fits("//proj", "/proj/a"));
        assert!(!fits("//proj", "/proj-evil/a"));
        assert!(!fits("//proj/**", "/proj-evil/a"));
        assert!(fits("secrets/", "/project/here/secrets/key"));
    }

    #[test]
    fn a_star_stays_within_a_name_and_two_go_over_all() {
        assert!(fits("a/*/c", "/project/here/a/b/c"));
        assert!(!fits("a/*/c", "/project/here/a/b/b/c"));
        assert!(fits("a/**/c", "/project/here/a/b/b/c"));
        assert!(fits("a/**/c", "/project/here/a/c"));
        assert!(fits("a/[b-d]?", "/project/here/a/cx"));
        assert!(!fits("a/[!b-d]?", "/project/here/a/cx"));
    }

    #[test]
    fn two_stars_at_the_end_mean_what_lies_inside() {
        assert!(!fits("a/**", "/project/here/a"));
        assert!(fits("a/**", "/project/here/a/b"));
    }

    #[test]
    fn many_stars_take_no_longer_than_few() {
        let pattern = "*a".repeat(200);
        let name = "a".repeat(199) + "b";
        assert!(!name_fits(&pattern, &name));
        let parts = vec!["**".to_owned(); 100];
        let names = vec!["a".to_owned(); 100];
        assert!(parts_fit(&parts, &names));
    }

    #[test]
    fn a_link_leads_where_the_system_goes() {
        let temp = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        symlink(base.join("a/b"), base.join("link")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        symlink("nowhere/x", base.join("dangling")).unwrap();
        assert_eq!(real(&base.join("link/../new")), Some(base.join("a/new")));
        assert_eq!(real(&base.join("loop/x")), None);
        assert_eq!(real(&base.join("dangling")), Some(base.join("nowhere/x")));
        assert_eq!(real(Path::new("/proc/self/root/etc")), Some("/etc".into()));
    }

    #[test]
    fn allowing_needs_both_names_of_a_link_and_denying_one() {
        let temp = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir_all(base.join("in")).unwrap();
        fs::write(base.join("secret"), "").unwrap();
        symlink(base.join("secret"), base.join("in/open")).unwrap();
        let pattern = |text: &str| PathPattern::read(text, &base, &base, &base).unwrap();
        let place = ResolvedPath::of("in/open", &base, &base);
        assert!(!pattern("/in/**").fits_both(&place));
        assert!(pattern("/in/**").fits_either(&place));
        assert!(pattern("/secret").fits_either(&place));
        assert!(!place.is_within(&ResolvedFolder::of(&base.join("in"))));
    }

    #[test]
    fn orders_to_programs_are_protected_at_any_depth_and_texts_are_not() {
        let folder = [ResolvedFolder::of(Path::new("/p"))];
        let is_protected = |path: &str| {
            let place = ResolvedPath {
                written: path.into(),
                real: Some(path.into()),
            };
            protected(&place, &folder).is_some()
        };
        for path in [
            "/p/.git/hooks/pre-commit",
            "/p/sub/.git/config",
            "/p/.GIT/config",
            "/p/.claude/settings.json",
            "/p/.claude",
            "/p/.vscode/tasks.json",
            "/p/.mcp.json",
            "/p/sub/.bashrc",
            "/home/me/.bashrc",
            "/home/me/.ssh/config",
        ] {
            assert!(is_protected(path), "{path}");
        }
        for path in [
            "/p/.claude/commands/x.md",
            "/p/.claude/agents/x.md",
            "/p/.github/workflows/x.yml",
            "/p/.gitignore",
            "/p/src/main.rs",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn a_project_below_a_protected_folder_can_be_worked_in() {
        let folder = [ResolvedFolder::of(Path::new(
            "/home/me/.claude/worktrees/x",
        ))];
        let place = ResolvedPath {
            written: "/home/me/.claude/worktrees/x/a.rs".into(),
            real: Some("/home/me/.claude/worktrees/x/a.rs".into()),
        };
        assert_eq!(protected(&place, &folder), None);
    }
}
