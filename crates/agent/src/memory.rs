//! What the model should know from the start: `CLAUDE.md` files and what they import.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::permission::path::{cleaned, real};
use crate::settings;

/// How many files may import each other in a row.
const DEEPEST: usize = 4;

/// More of one file is not read.
const LONGEST: u64 = 1 << 20;

/// Names in each folder, in the order they are read.
const NAMES: [&str; 3] = ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/// Where to look.
#[derive(Clone, Debug)]
pub struct Roots {
    /// The file of whoever manages the machine.
    pub managed: PathBuf,
    /// The client's folder, with the user's `CLAUDE.md`.
    pub config: PathBuf,
    /// The home folder.
    pub home: PathBuf,
    /// The folder the session began in.
    pub cwd: PathBuf,
    /// Whether files of the project may import files from outside.
    pub external: bool,
}

/// Whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Of whoever manages the machine.
    Managed,
    /// The user's own.
    User,
    /// The folder's.
    Project,
    /// The user's own for this folder.
    Local,
}

/// A file, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text, without comments.
    pub text: String,
    /// Whose it is; what is imported is whose imports it.
    pub whose: Whose,
    /// The file that imports it.
    pub from: Option<PathBuf>,
}

/// All files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// In the order in which the model reads them.
    pub files: Vec<MemoryFile>,
    /// Imports from outside the project that wait for a yes.
    pub external: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
}

/// Reads everything that counts at the start.
pub fn memory(roots: &Roots) -> Memory {
    let mut memory = Memory::default();
    memory.take(&roots.managed, Whose::Managed, roots);
    memory.take(&roots.config.join("CLAUDE.md"), Whose::User, roots);
    let mut folders: Vec<&Path> = roots.cwd.ancestors().collect();
    // The root of the system belongs to nobody's project.
    folders.pop();
    for folder in folders.into_iter().rev() {
        memory.take_folder(folder, roots);
    }
    memory
}

impl Memory {
    /// Adds what stands in folders below the first one, on the way to a file that was read.
    /// Returns what is new.
    pub fn beside(&mut self, file: &Path, roots: &Roots) -> Vec<MemoryFile> {
        let old = self.files.len();
        let file = cleaned(&roots.cwd.join(file));
        let Ok(below) = file.strip_prefix(&roots.cwd) else {
            return Vec::new();
        };
        let mut folder = roots.cwd.clone();
        for part in below.parent().into_iter().flat_map(Path::components) {
            folder.push(part);
            self.take_folder(&folder, roots);
        }
        self.files[old..].to_vec()
    }

    fn take_folder(&mut self, folder: &Path, roots: &Roots) {
        for name in NAMES {
            let whose = match name {
                "CLAUDE.local.md" => Whose::Local,
                _ => Whose::Project,
            };
            self.take(&folder.join(name), whose, roots);
        }
    }

    fn take(&mut self, path: &Path, whose: Whose, roots: &Roots) {
        self.take_one(path, whose, None, 0, roots);
    }

    fn take_one(
        &mut self,
        path: &Path,
        whose: Whose,
        from: Option<&Path>,
        depth: usize,
        roots: &Roots,
    ) {
        let Some(place) = real(path) else { return };
        if self.seen.contains(&place) {
            return;
        }
        let Some(text) = read(&place, &settings::root(&roots.cwd)) else {
            return;
        };
        self.seen.insert(place);
        let text = without_comments(&text);
        let wanted = imports(&text);
        self.files.push(MemoryFile {
            path: path.to_path_buf(),
            text,
            whose,
            from: from.map(Path::to_path_buf),
        });
        if depth == DEEPEST {
            return;
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        for name in wanted {
            let Some(target) = target(&name, folder, roots) else {
                continue;
            };
            if self.is_external(&target, whose, roots) {
                if !self.external.contains(&target) {
                    self.external.push(target);
                }
                continue;
            }
            self.take_one(&target, whose, Some(path), depth + 1, roots);
        }
    }

    /// A project may not bring in files of the person without being allowed to.
    fn is_external(&self, target: &Path, whose: Whose, roots: &Roots) -> bool {
        if roots.external || matches!(whose, Whose::Managed | Whose::User) {
            return false;
        }
        let root = settings::root(&roots.cwd);
        let inside = |path: &Path| match (real(path), real(&root)) {
            (Some(path), Some(root)) => path.starts_with(root),
            _ => false,
        };
        !inside(target)
    }
}

/// The file an import names, if it is there.
fn target(name: &str, folder: &Path, roots: &Roots) -> Option<PathBuf> {
    let full = |name: &str| match name.strip_prefix("~/") {
        Some(rest) => roots.home.join(rest),
        None => cleaned(&folder.join(name)),
    };
    // What ends a sentence is not part of a name.
    let shorter = name.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']);
    [name, shorter]
        .into_iter()
        .filter(|name| !name.is_empty())
        .map(full)
        .find(|path| path.is_file())
}

/// The text of a file that is one. Above the project, only our own files and the system's count:
/// anybody may have put one into a folder that all can write to.
fn read(path: &Path, root: &Path) -> Option<String> {
    let about = fs::metadata(path).ok()?;
    if !about.is_file() {
        return None;
    }
    let own = rustix::process::getuid().as_raw();
    let is_project = real(root).is_some_and(|root| path.starts_with(root));
    if !is_project && about.uid() != own && about.uid() != 0 {
        return None;
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    if bytes.contains(&0) {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where code stands in Markdown: fenced blocks and spans.
fn code(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut fence: Option<(usize, char, usize)> = None;
    let mut prose: Vec<Range<usize>> = Vec::new();
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.trim_start_matches(' ');
        let mark = bare.chars().next().filter(|c| "`~".contains(*c));
        let count = mark.map_or(0, |mark| bare.chars().take_while(|c| *c == mark).count());
        let is_fence = count >= 3 && line.len() - bare.len() < 4;
        match (fence, mark) {
            (Some((start, open, many)), Some(mark))
                if is_fence && mark == open && count >= many =>
            {
                if bare[count..].trim().is_empty() {
                    all.push(start..end);
                    fence = None;
                }
            }
            (Some(_), _) => {}
            (None, Some(mark)) if is_fence => fence = Some((at, mark, count)),
            (None, _) => prose.push(at..end),
        }
        at = end;
    }
    if let Some((start, ..)) = fence {
        all.push(start..text.len());
    }
    for part in prose {
        spans(text, part, &mut all);
    }
    all.sort_by_key(|range| range.start);
    all
}

/// Spans between as many backquotes as they began with, within a line.
fn spans(text: &str, part: Range<usize>, all: &mut Vec<Range<usize>>) {
    let bytes = &text.as_bytes()[..part.end];
    let run = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| **byte == b'`')
            .count()
    };
    let mut at = part.start;
    while at < part.end {
        let count = run(at);
        if count == 0 {
            at += 1;
            continue;
        }
        let mut next = at + count;
        let close = loop {
            if next >= part.end {
                break None;
            }
            match run(next) {
                0 => next += 1,
                same if same == count => break Some(next + same),
                other => next += other,
            }
        };
        match close {
            Some(end) => {
                all.push(at..end);
                at = end;
            }
            None => at += count,
        }
    }
}

fn is_code(code: &[Range<usize>], at: usize) -> bool {
    let before = code.partition_point(|range| range.start <= at);
    before > 0 && code[before - 1].contains(&at)
}

/// The text without `<!-- … -->`, which is for people; in code it stays.
pub fn without_comments(text: &str) -> String {
    let code = code(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find("<!--") {
        let start = at + found;
        let end = match text[start..].find("-->") {
            Some(end) if !is_code(&code, start) => start + end + 3,
            _ => {
                out.push_str(&text[at..start + 4]);
                at = start + 4;
                continue;
            }
        };
        out.push_str(&text[at..start]);
        at = end;
        // A comment that was alone on its line takes the line with it.
        let is_alone = out.is_empty() || out.ends_with('\n');
        if is_alone && text[at..].starts_with('\n') {
            at += 1;
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The paths behind `@`, outside code.
pub fn imports(text: &str) -> Vec<String> {
    let code = code(text);
    let mut all = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace()) || is_code(&code, at) {
            continue;
        }
        let mut name = String::new();
        let mut chars = text[at + 1..].chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.peek() == Some(&' ') => {
                    chars.next();
                    name.push(' ');
                }
                c if c.is_whitespace() || c == '`' => break,
                c => name.push(c),
            }
        }
        let starts = name
            .chars()
            .next()
            .is_some_and(|c| c.is_alphanumeric() || "./~_".contains(c));
        if starts && !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Adds a line to a memory file, which is made if it is not there.
pub fn append(file: &Path, text: &str) -> io::Result<()> {
    let old = match fs::metadata(file).and_then(|about| match about.is_file() {
        true => fs::read(file),
        false => Err(io::Error::other("not a regular file")),
    }) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = text.trim();
    let mut line = String::new();
    if !old.is_empty() && !old.ends_with(b"\n") {
        line.push('\n');
    }
    let is_item = text.starts_with(['-', '*', '#']);
    if !is_item {
        line.push_str("- ");
    }
    // One thing is one item, however many lines it has.
    line.push_str(&text.replace('\n', "\n  "));
    line.push('\n');
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    options.open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct World {
        temp: tempfile::TempDir,
    }

    impl World {
        fn new() -> World {
            let world = World {
                temp: tempfile::tempdir().unwrap(),
            };
            fs::create_dir_all(world.path("work/repo/.git")).unwrap();
            fs::create_dir_all(world.path("work/repo/src/deep")).unwrap();
            world
        }

        fn path(&self, name: &str) -> PathBuf {
            fs::canonicalize(self.temp.path()).unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn roots(&self) -> Roots {
            Roots {
                managed: self.path("etc/CLAUDE.md"),
                config: self.path("home/.claude"),
                home: self.path("home"),
                cwd: self.path("work/repo/src"),
                external: false,
            }
        }

        fn read(&self) -> Vec<String> {
            let files = memory(&self.roots()).files;
            files.into_iter().map(|file| file.text).collect()
        }
    }

    #[test]
    fn files_come_from_far_to_near() {
        let world = World::new();
        for (at, name) in [
            "etc/CLAUDE.md",
            "home/.claude/CLAUDE.md",
            "work/CLAUDE.md",
            "work/repo/CLAUDE.md",
            "work/repo/.claude/CLAUDE.md",
            "work/repo/CLAUDE.local.md",
            "work/repo/src/CLAUDE.md",
        ]
        .iter()
        .enumerate()
        {
            world.write(name, &at.to_string());
        }
        world.write("work/repo/src/deep/CLAUDE.md", "later");
        assert_eq!(world.read(), ["0", "1", "2", "3", "4", "5", "6"]);
    }

    #[test]
    fn a_nested_file_is_read_once_when_something_beside_it_is() {
        let world = World::new();
        world.write("work/repo/src/deep/CLAUDE.md", "nested");
        let mut memory = memory(&world.roots());
        assert_eq!(memory.files, []);
        let roots = world.roots();
        let file = world.path("work/repo/src/deep/x.rs");
        assert_eq!(memory.beside(&file, &roots)[0].text, "nested");
        assert_eq!(memory.beside(&file, &roots), []);
        assert_eq!(memory.beside(Path::new("/etc/passwd"), &roots), []);
        assert_eq!(memory.beside(Path::new("../../x/y"), &roots), []);
    }

    #[test]
    fn imports_are_relative_to_their_file_and_follow_it() {
        let world = World::new();
        world.write(
            "work/repo/CLAUDE.md",
            "see @docs/a.md, and @./b.md. Mail me@x.org",
        );
        world.write("work/repo/docs/a.md", "a @c.md");
        world.write("work/repo/docs/c.md", "c @a.md");
        world.write("work/repo/b.md", "b");
        let texts = world.read();
        assert_eq!(texts[1..], ["a @c.md", "c @a.md", "b"]);
    }

    #[test]
    fn four_imports_follow_each_other_and_the_fifth_does_not() {
        let world = World::new();
        world.write("work/repo/CLAUDE.md", "@1.md");
        for at in 1..=6 {
            world.write(&format!("work/repo/{at}.md"), &format!("@{}.md", at + 1));
        }
        assert_eq!(world.read(), ["@1.md", "@2.md", "@3.md", "@4.md", "@5.md"]);
    }

    #[test]
    fn code_imports_nothing() {
        let text = "`@a` ``x ` @b`` @c\n```\n@d\n```\n  ~~~\n@e\n~~~\n@f `@g\n`@h` \n```sh\n@i";
        assert_eq!(imports(text), ["c", "f"]);
    }

    #[test]
    fn a_project_needs_a_yes_for_files_from_outside() {
        let world = World::new();
        world.write("home/secret.md", "secret");
        world.write("work/repo/CLAUDE.md", "@~/secret.md @link.md");
        symlink(
            world.path("home/secret.md"),
            world.path("work/repo/link.md"),
        )
        .unwrap();
        let memory_of = memory(&world.roots());
        assert_eq!(memory_of.files.len(), 1);
        assert_eq!(memory_of.external.len(), 2);
        let roots = Roots {
            external: true,
            ..world.roots()
        };
        assert_eq!(memory(&roots).files[1].text, "secret");
    }

    #[test]
    fn the_users_own_file_imports_what_it_likes() {
        let world = World::new();
        world.write("home/notes.md", "notes");
        world.write("home/.claude/CLAUDE.md", "@~/notes.md");
        assert_eq!(world.read(), ["@~/notes.md", "notes"]);
    }

    #[test]
    fn comments_are_left_out_but_not_in_code() {
        assert_eq!(without_comments("a\n<!-- x\ny -->\nb"), "a\nb");
        assert_eq!(without_comments("a <!-- x --> b"), "a  b");
        assert_eq!(
            without_comments("`<!-- x -->` <!-- open"),
            "`<!-- x -->` <!-- open"
        );
        assert_eq!(
            without_comments("```\n<!-- x -->\n```\n"),
            "```\n<!-- x -->\n```\n"
        );
    }

    #[test]
    fn an_import_in_a_comment_is_none() {
        let world = World::new();
        world.write("work/repo/CLAUDE.md", "x\n<!-- @b.md -->\n");
        world.write("work/repo/b.md", "b");
        assert_eq!(world.read(), ["x\n"]);
    }

    #[test]
    fn pictures_and_folders_are_not_read() {
        let world = World::new();
        world.write("work/repo/CLAUDE.md", "@docs @pic.png @missing.md");
        world.write("work/repo/pic.png", "\u{0}x");
        fs::create_dir_all(world.path("work/repo/docs")).unwrap();
        assert_eq!(world.read().len(), 1);
    }

    #[test]
    fn what_is_remembered_is_an_item_on_a_line_of_its_own() {
        let world = World::new();
        let file = world.path("new/CLAUDE.md");
        append(&file, "use tabs\nalways").unwrap();
        fs::write(&file, fs::read_to_string(&file).unwrap().trim_end()).unwrap();
        append(&file, "- and spaces").unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "- use tabs\n  always\n- and spaces\n"
        );
    }
}
