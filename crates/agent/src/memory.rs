//! What the model should know from the start: `CLAUDE.md` files and what they import.
//!
//! What a project brings along has to lie in the project, also behind a link: everything here is
//! sent before anybody trusts it. The person's own files may be links to anywhere.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::folder_files::{self, SkippedFileReason};
use crate::permission::path::{cleaned, real};

/// How many files may import each other in a row.
const DEEPEST: usize = 4;

/// More of one file is not read.
const LONGEST: u64 = 1 << 20;

/// More of all files together is not read.
const LONGEST_TOGETHER: usize = 8 << 20;

/// Names in each folder, in the order they are read.
const NAMES: [&str; 3] = ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/// Where to look.
#[derive(Clone, Debug)]
pub struct MemoryRoots {
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
pub enum MemoryOwner {
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
    pub whose: MemoryOwner,
    /// The file that imports it.
    pub from: Option<PathBuf>,
}

/// All files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFiles {
    /// In the order in which the model reads them.
    pub files: Vec<MemoryFile>,
    /// Imports from outside the project that wait for a yes.
    pub external: Vec<PathBuf>,
    /// Files that were not read, and why: links that leave the project, pipes.
    pub left_out: Vec<(PathBuf, String)>,
    seen: HashSet<PathBuf>,
    /// Bytes of all files.
    length: usize,
    /// Whether something was left out because it would have been too much.
    is_full: bool,
}

impl MemoryRoots {
    /// The folder that files of the project and their links have to lie in.
    fn boundary(&self) -> PathBuf {
        folder_files::boundary(&self.cwd, &self.home)
    }
}

/// Reads everything that counts at the start.
pub fn load_memory(roots: &MemoryRoots) -> MemoryFiles {
    let mut memory = MemoryFiles::default();
    memory.take(&roots.managed, MemoryOwner::Managed, roots);
    memory.take(&roots.config.join("CLAUDE.md"), MemoryOwner::User, roots);
    let mut folders: Vec<&Path> = roots.cwd.ancestors().collect();
    // The root of the system belongs to nobody's project.
    folders.pop();
    for folder in folders.into_iter().rev() {
        memory.take_folder(folder, roots);
    }
    memory
}

impl MemoryFiles {
    /// Adds what stands in folders below the first one, on the way to a file that was read.
    /// Returns what is new.
    pub fn beside(&mut self, file: &Path, roots: &MemoryRoots) -> Vec<MemoryFile> {
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

    fn take_folder(&mut self, folder: &Path, roots: &MemoryRoots) {
        let boundary = roots.boundary();
        // A folder above the project answers for itself only.
        let within = match folder.starts_with(&boundary) {
            true => &boundary,
            false => folder,
        };
        for name in NAMES {
            let whose = match name {
                "CLAUDE.local.md" => MemoryOwner::Local,
                _ => MemoryOwner::Project,
            };
            self.take_one(&folder.join(name), whose, Some(within), None, 0, roots);
        }
    }

    /// Takes a file that the person, or whoever manages the machine, wrote.
    fn take(&mut self, path: &Path, whose: MemoryOwner, roots: &MemoryRoots) {
        self.take_one(path, whose, None, None, 0, roots);
    }

    fn take_one(
        &mut self,
        path: &Path,
        whose: MemoryOwner,
        within: Option<&Path>,
        from: Option<&Path>,
        depth: usize,
        roots: &MemoryRoots,
    ) {
        let Some(place) = real(path) else { return };
        if self.seen.contains(&place) {
            return;
        }
        if self.length >= LONGEST_TOGETHER {
            if !self.is_full {
                self.is_full = true;
                let why =
                    format!("skipped: all instructions together exceed {LONGEST_TOGETHER} bytes");
                self.left_out.push((path.to_path_buf(), why));
            }
            return;
        }
        let text = match read(path, within, &roots.boundary()) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(why) => return self.leave_out(path, within, &why),
        };
        self.seen.insert(place);
        let text = without_comments(&text);
        self.length += text.len();
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
            let boundary = roots.boundary();
            let is_free =
                roots.external || matches!(whose, MemoryOwner::Managed | MemoryOwner::User);
            let within = (!is_free).then_some(boundary.as_path());
            self.take_one(&target, whose, within, Some(path), depth + 1, roots);
        }
    }

    /// Notes that a file is not read, once.
    fn leave_out(&mut self, path: &Path, within: Option<&Path>, why: &SkippedFileReason) {
        let told = folder_files::describe_skipped_file(path, within, why);
        if let Some(told) = told.filter(|told| !self.left_out.contains(told)) {
            self.left_out.push(told);
        }
    }

    /// A project may not bring in files of the person without being allowed to.
    fn is_external(&self, target: &Path, whose: MemoryOwner, roots: &MemoryRoots) -> bool {
        if roots.external || matches!(whose, MemoryOwner::Managed | MemoryOwner::User) {
            return false;
        }
        let boundary = roots.boundary();
        let inside = |path: &Path| match (real(path), real(&boundary)) {
            (Some(path), Some(root)) => path.starts_with(root),
            _ => false,
        };
        !inside(target)
    }
}

/// The file an import names, if it is there.
fn target(name: &str, folder: &Path, roots: &MemoryRoots) -> Option<PathBuf> {
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

/// The text of a file. Outside the project, only our own files and the system's count: anybody
/// may have put one into a folder that all can write to.
fn read(
    path: &Path,
    within: Option<&Path>,
    boundary: &Path,
) -> Result<Option<String>, SkippedFileReason> {
    let (file, about) = folder_files::open(path, within)?;
    let own = rustix::process::getuid().as_raw();
    let is_ours = |about: &fs::Metadata| about.uid() == own || about.uid() == 0;
    // A link to a file of ours may be somebody else's.
    let is_project = !folder_files::leaves(path, boundary);
    let counts = is_project || (is_ours(&about) && is_ours(&fs::symlink_metadata(path)?));
    if !counts {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    if bytes.contains(&0) {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
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
    let (mut all, mut known) = (Vec::new(), HashSet::new());
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
        if starts && known.insert(name.clone()) {
            all.push(name);
        }
    }
    all
}

/// Adds a line to a memory file, which is made if it is not there. A link may not leave `within`.
pub fn append(file: &Path, within: &Path, text: &str) -> io::Result<()> {
    let failed = |why: SkippedFileReason| io::Error::other(why.to_string());
    let is_open = match folder_files::open(file, Some(within)) {
        Ok((mut old, about)) if about.len() > 0 => {
            let mut last = [0];
            old.seek(SeekFrom::End(-1))?;
            old.read_exact(&mut last)?;
            last != *b"\n"
        }
        Ok(_) | Err(SkippedFileReason::Absent) => false,
        Err(why) => return Err(failed(why)),
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = text.trim();
    let mut line = String::new();
    if is_open {
        line.push('\n');
    }
    let is_item = text.starts_with(['-', '*', '#']);
    if !is_item {
        line.push_str("- ");
    }
    // One thing is one item, however many lines it has.
    line.push_str(&text.replace('\n', "\n  "));
    line.push('\n');
    folder_files::append(file, within, line.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct MemoryFixture {
        temp: tempfile::TempDir,
    }

    impl MemoryFixture {
        fn new() -> MemoryFixture {
            let world = MemoryFixture {
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

        fn roots(&self) -> MemoryRoots {
            MemoryRoots {
                managed: self.path("etc/CLAUDE.md"),
                config: self.path("home/.claude"),
                home: self.path("home"),
                cwd: self.path("work/repo/src"),
                external: false,
            }
        }

        fn read(&self) -> Vec<String> {
            let files = load_memory(&self.roots()).files;
            files.into_iter().map(|file| file.text).collect()
        }
    }

    #[test]
    fn files_come_from_far_to_near() {
        let world = MemoryFixture::new();
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
        let world = MemoryFixture::new();
        world.write("work/repo/src/deep/CLAUDE.md", "nested");
        let mut memory = load_memory(&world.roots());
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
        let world = MemoryFixture::new();
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
        let world = MemoryFixture::new();
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
        let world = MemoryFixture::new();
        world.write("home/secret.md", "secret");
        world.write("work/repo/CLAUDE.md", "@~/secret.md @link.md");
        symlink(
            world.path("home/secret.md"),
            world.path("work/repo/link.md"),
        )
        .unwrap();
        let memory_of = load_memory(&world.roots());
        assert_eq!(memory_of.files.len(), 1);
        assert_eq!(memory_of.external.len(), 2);
        let roots = MemoryRoots {
            external: true,
            ..world.roots()
        };
        assert_eq!(load_memory(&roots).files[1].text, "secret");
    }

    #[test]
    fn a_link_of_a_project_stays_in_it_and_one_above_it_in_its_own_folder() {
        let world = MemoryFixture::new();
        world.write("home/secret.md", "secret");
        world.write("work/notes.md", "above");
        world.write("work/other.md", "secret");
        world.write("work/repo/AGENTS.md", "inside");
        let link = |target: &str, name: &str| {
            symlink(world.path(target), world.path(name)).unwrap();
        };
        link("work/notes.md", "work/CLAUDE.md");
        link("home/secret.md", "work/CLAUDE.local.md");
        link("work/repo/AGENTS.md", "work/repo/CLAUDE.md");
        link("work/other.md", "work/repo/CLAUDE.local.md");
        link("home", "work/repo/.claude");
        world.write("home/CLAUDE.md", "secret");
        link("home/secret.md", "work/repo/src/CLAUDE.md");
        let memory = load_memory(&world.roots());
        let texts: Vec<&str> = memory.files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(texts, ["above", "inside"]);
        let left_out: Vec<&PathBuf> = memory.left_out.iter().map(|(path, _)| path).collect();
        assert_eq!(
            left_out,
            [
                &world.path("work/CLAUDE.local.md"),
                &world.path("work/repo/.claude"),
                &world.path("work/repo/CLAUDE.local.md"),
                &world.path("work/repo/src/CLAUDE.md"),
            ]
        );
    }

    #[test]
    fn a_link_above_the_project_that_somebody_else_made_is_not_followed() {
        let world = MemoryFixture::new();
        world.write("work/private.md", "private");
        let link = world.path("work/CLAUDE.md");
        symlink("private.md", &link).unwrap();
        assert_eq!(world.read(), ["private"]);
        // Only root can give a link away.
        if std::os::unix::fs::lchown(&link, Some(12345), None).is_ok() {
            assert_eq!(world.read(), [""; 0]);
        }
    }

    #[test]
    fn what_is_read_of_all_files_together_has_an_end() {
        let world = MemoryFixture::new();
        let names: String = (0..20).map(|at| format!("@{at}.md ")).collect();
        world.write("work/repo/CLAUDE.md", &names);
        for at in 0..20 {
            world.write(&format!("work/repo/{at}.md"), &"x".repeat(1 << 20));
        }
        let memory = load_memory(&world.roots());
        let all: usize = memory.files.iter().map(|file| file.text.len()).sum();
        assert!(all <= LONGEST_TOGETHER + (1 << 20), "{all}");
        assert_eq!((memory.left_out.len(), memory.files.len()), (1, 9));
    }

    #[test]
    fn what_is_remembered_goes_into_no_file_outside() {
        let world = MemoryFixture::new();
        world.write("home/profile", "export A=1");
        let file = world.path("work/repo/CLAUDE.md");
        symlink(world.path("home/profile"), &file).unwrap();
        assert!(append(&file, &world.path("work/repo"), "x").is_err());
        let kept = fs::read_to_string(world.path("home/profile")).unwrap();
        assert_eq!(kept, "export A=1");
    }

    #[test]
    fn the_users_own_file_imports_what_it_likes() {
        let world = MemoryFixture::new();
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
        let world = MemoryFixture::new();
        world.write("work/repo/CLAUDE.md", "x\n<!-- @b.md -->\n");
        world.write("work/repo/b.md", "b");
        assert_eq!(world.read(), ["x\n"]);
    }

    #[test]
    fn pictures_and_folders_are_not_read() {
        let world = MemoryFixture::new();
        world.write("work/repo/CLAUDE.md", "@docs @pic.png @missing.md");
        world.write("work/repo/pic.png", "\u{0}x");
        fs::create_dir_all(world.path("work/repo/docs")).unwrap();
        assert_eq!(world.read().len(), 1);
    }

    #[test]
    fn what_is_remembered_is_an_item_on_a_line_of_its_own() {
        let world = MemoryFixture::new();
        let file = world.path("new/CLAUDE.md");
        let within = world.path("new");
        fs::create_dir_all(&within).unwrap();
        append(&file, &within, "use tabs\nalways").unwrap();
        fs::write(&file, fs::read_to_string(&file).unwrap().trim_end()).unwrap();
        append(&file, &within, "- and spaces").unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "- use tabs\n  always\n- and spaces\n"
        );
    }
}
