//! Files that programs put into folders: under which names they arrive, and where links lead that
//! lie there already. A repository can ship `assets/config -> ../.git/config`.

use std::path::{Path, PathBuf};

use super::command_texts::{known_text, program, raw_path};
use super::named_files::entries;
use crate::permission::path::ResolvedPath;
use crate::permission::shell_parser::ShellWord;

/// Programs that put their operands into the folder that is named last.
const PLACING: &[&str] = &["cp", "mv", "install", "rsync", "scp", "ln"];

/// More files than are looked through.
const MANY: usize = 5_000;

/// The files that a command would make or write in folders.
#[derive(Default)]
pub(super) struct ArrivingFiles {
    pub(super) paths: Vec<PathBuf>,
    /// Whether there may be others.
    pub(super) unknown: bool,
}

pub(super) fn arriving(words: &[ShellWord], cwds: &[PathBuf], home: &Path) -> ArrivingFiles {
    let mut found = ArrivingFiles::default();
    let name = words.first().map(program).unwrap_or_default();
    for cwd in cwds {
        match name.as_str() {
            "split" => parts_of(words, "x", cwd, home, &mut found),
            "csplit" => parts_of(words, "xx", cwd, home, &mut found),
            name if PLACING.contains(&name) => placed(words, cwd, home, &mut found),
            _ => {}
        }
    }
    found
}

fn placed(words: &[ShellWord], cwd: &Path, home: &Path, found: &mut ArrivingFiles) {
    let is_option =
        |word: &&ShellWord| known_text(word).starts_with('-') && known_text(word) != "-";
    let operands: Vec<&ShellWord> = words[1..].iter().filter(|word| !is_option(word)).collect();
    let named = words[1..].iter().filter(is_option).map(|word| {
        let text = known_text(word);
        match text.split_once('=') {
            Some((_, path)) => path.to_owned(),
            None => text.trim_start_matches("-t").to_owned(),
        }
    });
    // Which operand is the target depends on options with values; each folder may be it.
    let targets = operands.iter().map(|word| raw_path(word)).chain(named);
    for target in targets.filter(|target| !target.is_empty()) {
        let place = ResolvedPath::of(&target, cwd, home);
        let folder = place.real.unwrap_or(place.written);
        if !folder.is_dir() {
            continue;
        }
        for word in operands.iter().filter(|word| raw_path(word) != target) {
            placed_in(&folder, word, cwd, home, found);
        }
    }
}

fn placed_in(folder: &Path, word: &ShellWord, cwd: &Path, home: &Path, found: &mut ArrivingFiles) {
    let text = raw_path(word);
    if word.is_open() || text.is_empty() {
        // Whatever it is, it can only go astray where a link lies.
        found.unknown |= has_links(folder);
        return;
    }
    // `host:path` of other machines.
    let path = text.rsplit(':').next().unwrap_or_default();
    let source = ResolvedPath::of(path, cwd, home).written;
    let name = source.file_name().map(|name| folder.join(name));
    // `cp -rT a b` and `rsync a/ b` copy what lies in it.
    if source.is_dir() {
        below(&source, folder, found);
    }
    // `cp --parents`, `rsync -R`.
    if !path.starts_with(['/', '~']) {
        found.paths.push(folder.join(path));
    }
    if let Some(to) = name {
        below(&source, &to, found);
        found.paths.push(to);
    }
}

/// What a folder holds arrives below another.
fn below(source: &Path, to: &Path, found: &mut ArrivingFiles) {
    let mut left = vec![(source.to_path_buf(), to.to_path_buf())];
    while let Some((source, to)) = left.pop() {
        let is_folder = source.symlink_metadata().is_ok_and(|about| about.is_dir());
        if !is_folder {
            continue;
        }
        for entry in entries(&source) {
            if found.paths.len() >= MANY {
                found.unknown = true;
                return;
            }
            let to = to.join(entry.file_name());
            left.push((entry.path(), to.clone()));
            found.paths.push(to);
        }
    }
}

fn has_links(folder: &Path) -> bool {
    let entries = entries(folder);
    let mut kinds = entries.take(MANY).flat_map(|entry| entry.file_type());
    kinds.any(|kind| kind.is_symlink())
}

/// `split` and `csplit` write files whose names begin alike.
fn parts_of(words: &[ShellWord], usual: &str, cwd: &Path, home: &Path, found: &mut ArrivingFiles) {
    let last = words[1..]
        .iter()
        .rfind(|word| !known_text(word).starts_with('-'));
    let given = last
        .filter(|_| words.len() > 2)
        .map(raw_path)
        .unwrap_or_default();
    let mut starts = vec![usual.to_owned(), given];
    for (index, word) in words.iter().enumerate() {
        let text = known_text(word);
        match text
            .strip_prefix("--prefix=")
            .or_else(|| text.strip_prefix("-f"))
        {
            Some("") => starts.extend(words.get(index + 1).map(raw_path)),
            Some(start) => starts.push(start.to_owned()),
            None => {}
        }
    }
    for start in starts.iter().filter(|start| !start.is_empty()) {
        let place = ResolvedPath::of(start, cwd, home);
        let (folder, name) = match place.written.is_dir() && start.ends_with('/') {
            true => (place.written.clone(), String::new()),
            false => (
                place
                    .written
                    .parent()
                    .unwrap_or(Path::new("/"))
                    .to_path_buf(),
                place
                    .written
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
            ),
        };
        let entries = entries(&folder).take(MANY);
        let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let alike = links.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name));
        found.paths.extend(alike.map(|entry| entry.path()));
    }
}
