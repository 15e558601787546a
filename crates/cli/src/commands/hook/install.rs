//! `hook install` and `hook uninstall`: our command in the settings of the client.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use unspool_model::hook_events as events;
use unspool_show::clean;
use unspool_show::wire::hook::HookEditRow;
use unspool_store::atomic_write::{ContentHash, ModifiedTimePolicy};
use unspool_store::journal::JournalTask;
use unspool_store::open::{self, FileStamp};
use unspool_store::own_file;
use unspool_store::{TranscriptRole, find, read_end};

use super::{HookSettingsScope, hook_command, hook_settings};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use unspool_model::jsonc::JsoncError;

/// Arguments of `hook install`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool hook install                  for all your projects
  unspool hook install --live           also track the state of each session live
  unspool hook install --scope local    only for you, only in this project

Adds only unspool's entries; comments, order and other hooks stay as they are. Revert it with
`unspool undo` or `unspool hook uninstall`.")]
pub struct HookInstallArgs {
    /// Settings file to edit
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub scope: HookSettingsScope,

    /// Also install it for events that track session state: prompts, tools, permissions
    #[arg(long)]
    pub live: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `hook uninstall`.
#[derive(Debug, Args)]
pub struct HookUninstallArgs {
    /// Settings file to edit [default: all]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<HookSettingsScope>,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Settings are smaller.
const MOST: u64 = 4 << 20;

/// A settings file.
pub struct HookSettingsFile {
    /// Whose settings.
    pub scope: HookSettingsScope,
    /// Where it is, as a person would say.
    pub path: PathBuf,
    /// What stands in it, and as what it was read; nothing if there is none.
    content: Option<(String, FileStamp)>,
    /// Where it really is: a link is followed, so that it stays one.
    real: PathBuf,
}

impl HookSettingsFile {
    /// Reads the settings at a path.
    pub fn read(
        scope: HookSettingsScope,
        path: PathBuf,
    ) -> Result<HookSettingsFile, CommandFailure> {
        let real = real(&path)?;
        let content = match fs::symlink_metadata(&real) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
            _ => {
                let (mut file, metadata) = open::open(&real)?;
                Some((
                    text(&path, &mut file, metadata.len())?,
                    FileStamp::of(&metadata),
                ))
            }
        };
        Ok(HookSettingsFile {
            scope,
            path,
            content,
            real,
        })
    }

    /// Whether it may be written: through a link of a project, a file of the person or of
    /// another project would be changed.
    fn check_inside(&self) -> Result<(), CommandFailure> {
        let folder = self.path.parent().and_then(Path::parent);
        let root = folder.map(unspool_agent::settings::root);
        let root = root.and_then(|root| fs::canonicalize(root).ok());
        if self.scope == HookSettingsScope::User
            || root.is_none_or(|root| self.real.starts_with(root))
        {
            return Ok(());
        }
        Err(CommandFailure::failed(format!(
            "`{}` is behind a symlink that points outside the project",
            self.path.display()
        ))
        .hint("replace the symlink with a file, or use `--scope user`"))
    }

    /// What stands in it; nothing where there is none.
    pub fn text(&self) -> &str {
        self.content.as_ref().map_or("", |(text, _)| text)
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.content.is_some()
    }
}

fn text(path: &Path, file: &mut fs::File, size: u64) -> Result<String, CommandFailure> {
    use std::io::Read;
    if size > MOST {
        return Err(CommandFailure::failed(format!(
            "`{}` is too large for a settings file",
            path.display()
        )));
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|why| {
        let good = why.utf8_error().valid_up_to();
        let before = &why.as_bytes()[..good];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        broken(path, &format!("line {line} is not UTF-8"))
    })
}

/// The path behind links, also of a file that is not there yet.
fn real(path: &Path) -> Result<PathBuf, CommandFailure> {
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(real);
    }
    if fs::symlink_metadata(path).is_ok() {
        return Err(
            CommandFailure::failed(format!("`{}` is a broken symlink", path.display()))
                .hint("create its target, or remove the symlink"),
        );
    }
    let path = std::path::absolute(path)?;
    let folder = path
        .parent()
        .and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.join(name)),
        _ => Ok(path),
    }
}

fn broken(path: &Path, why: &str) -> CommandFailure {
    CommandFailure::failed(format!(
        "`{}` is not a valid settings file: {why}",
        path.display()
    ))
    .hint("fix it first; nothing was changed")
}

/// Why settings cannot be read, for people.
pub fn wrong(path: &Path, wrong: &JsoncError) -> CommandFailure {
    let why = format!(
        "line {}, column {}: {}",
        wrong.line, wrong.column, wrong.why
    );
    broken(path, &why)
}

/// Where the settings of a scope are. The first folder is the one that the client uses.
pub fn paths(world: &CommandContext, scope: HookSettingsScope) -> Vec<PathBuf> {
    match scope {
        HookSettingsScope::User => world
            .dirs
            .iter()
            .map(|dir| dir.join("settings.json"))
            .collect(),
        HookSettingsScope::Project => project(world, "settings.json"),
        HookSettingsScope::Local => project(world, "settings.local.json"),
    }
}

/// In the folder of the project that we are in: the nearest with settings or a repository.
fn project(world: &CommandContext, name: &str) -> Vec<PathBuf> {
    let Some(here) = &world.here else {
        return Vec::new();
    };
    let is_users = |folder: &Path| world.dirs.iter().any(|dir| *dir == folder.join(".claude"));
    let is_project = |folder: &&Path| {
        !is_users(folder) && (folder.join(".claude").is_dir() || folder.join(".git").exists())
    };
    let root = here.ancestors().find(is_project).unwrap_or(here);
    vec![root.join(".claude").join(name)]
}

/// Puts the hook in.
pub fn install(world: &CommandContext, args: &HookInstallArgs) -> Result<(), CommandFailure> {
    let Some(path) = paths(world, args.scope).into_iter().next() else {
        return Err(world.no_home());
    };
    let file = HookSettingsFile::read(args.scope, path)?;
    file.check_inside()?;
    let program = program()?;
    let command = hook_command::command(&program);
    let events = wanted(world, args.live);
    let done = hook_settings::install(file.text(), &events, &command)
        .map_err(|why| wrong(&file.path, &why))?;
    warn(world, &file, args);
    let changed = !done.added.is_empty() || !done.updated.is_empty();
    let mut row = HookEditRow {
        n: None,
        scope: args.scope.name().to_owned(),
        path: file.path.display().to_string(),
        added: done.added,
        updated: done.updated,
        removed: Vec::new(),
        command: Some(command),
    };
    if changed && !args.dry_run {
        let words = format!("install the hook in {}", file.path.display());
        row.n = Some(write(
            world,
            &file,
            "hook install",
            &words,
            Some(&done.text),
        )?);
    }
    print(world, &[row], args.dry_run)
}

/// The events to be told of: those that the clients here know.
fn wanted(world: &CommandContext, live: bool) -> Vec<&'static str> {
    let mut all = events::EXPORT.to_vec();
    if !live {
        return all;
    }
    let client = oldest_client(world);
    let known = |since: [u32; 3]| match client {
        Some(client) => since <= client,
        // Where nobody ever ran one, it is not an old one.
        None => since <= [2, 0, 45],
    };
    let (usual, later): (Vec<_>, Vec<_>) =
        events::LIVE.iter().partition(|(_, since)| known(*since));
    all.extend(usual.iter().map(|(event, _)| *event));
    if let (Some([a, b, c]), false) = (client, later.is_empty()) {
        let names: Vec<&str> = later.iter().map(|(event, _)| *event).collect();
        world.ui.note(&format!(
            "skipped, because client {a}.{b}.{c}, used here recently, would ignore a settings file that has them: {}",
            names.join(", ")
        ));
    }
    all
}

/// The oldest client that was used lately: several may be installed.
fn oldest_client(world: &CommandContext) -> Option<[u32; 3]> {
    /// Seven days, in milliseconds.
    const LATELY: i64 = 7 * 86_400_000;
    const SESSIONS: usize = 20;
    let mut found = find(&world.dirs).sessions;
    found.sort_by_key(|session| std::cmp::Reverse(session.modified));
    let newest = found.first()?.modified;
    let lately = found.iter().take(SESSIONS);
    let lately = lately.filter(|session| session.modified > newest - LATELY);
    let version = |session: &find::SessionFile| {
        let end = read_end(&session.path, TranscriptRole::Main, 1, 256 << 10).ok()?;
        let versions = end.session.versions.iter().map(|(name, _)| name);
        versions.filter_map(numbers).max()
    };
    lately.filter_map(version).min()
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split('.').map(|part| {
        let digits = part.find(|char: char| !char.is_ascii_digit());
        part[..digits.unwrap_or(part.len())].parse().ok()
    });
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// What a person should know before relying on it.
fn warn(world: &CommandContext, file: &HookSettingsFile, args: &HookInstallArgs) {
    for scope in HookSettingsScope::ALL {
        for path in paths(world, scope) {
            let Ok(other) = HookSettingsFile::read(scope, path) else {
                continue;
            };
            let Ok(found) = hook_settings::look(other.text()) else {
                continue;
            };
            for command in &found.exporters {
                world.ui.warn(&format!(
                    "`{}` also runs `{command}`, so turns would be sent twice; remove one of them",
                    other.path.display()
                ));
            }
            if found.disabled {
                world.ui.warn(&format!(
                    "`disableAllHooks` in `{}` disables every hook",
                    other.path.display()
                ));
            }
        }
    }
    if args.scope == HookSettingsScope::Project {
        world.ui.note(&format!(
            "`{}` is usually shared, but the command is a path on this machine; use `--scope local` to keep it to yourself",
            file.path.display()
        ));
    }
}

/// This program, by the name under which it will still be found after an update.
fn program() -> Result<PathBuf, CommandFailure> {
    let real = std::env::current_exe()?;
    let same = |path: &PathBuf| fs::canonicalize(path).ok() == fs::canonicalize(&real).ok();
    let called = std::env::args_os().next().map(PathBuf::from);
    let called = called.and_then(|name| {
        if name.components().count() > 1 {
            return std::path::absolute(name).ok();
        }
        let folders = std::env::var_os("PATH")?;
        let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(&name));
        paths.find(|path| path.is_absolute() && same(path))
    });
    Ok(called.filter(same).unwrap_or(real))
}

/// Takes the hook out.
pub fn uninstall(world: &CommandContext, args: &HookUninstallArgs) -> Result<(), CommandFailure> {
    let (mut rows, mut failed) = (Vec::new(), None);
    for scope in HookSettingsScope::ALL {
        if args.scope.is_some_and(|only| only != scope) {
            continue;
        }
        for path in paths(world, scope) {
            match take_out(world, scope, path, args.dry_run) {
                Ok(row) => rows.extend(row),
                // One file that cannot be read does not keep it in the others.
                Err(why) => failed = failed.or(Some(why)),
            }
        }
    }
    if !rows.is_empty() {
        print(world, &rows, args.dry_run)?;
    }
    match failed {
        Some(why) => Err(why),
        None if rows.is_empty() => Err(CommandFailure::nothing("the hook is not installed")
            .hint("`unspool hook status` lists the settings files")),
        None => Ok(()),
    }
}

/// Takes it out of one file; nothing if it is not in there.
fn take_out(
    world: &CommandContext,
    scope: HookSettingsScope,
    path: PathBuf,
    dry_run: bool,
) -> Result<Option<HookEditRow>, CommandFailure> {
    let file = HookSettingsFile::read(scope, path)?;
    let done = hook_settings::uninstall(file.text());
    let (text, removed) = done.map_err(|why| wrong(&file.path, &why))?;
    if removed.is_empty() {
        return Ok(None);
    }
    file.check_inside()?;
    let mut row = HookEditRow {
        n: None,
        scope: scope.name().to_owned(),
        path: file.path.display().to_string(),
        added: Vec::new(),
        updated: Vec::new(),
        removed,
        command: None,
    };
    if !dry_run {
        let words = format!("remove the hook from {}", file.path.display());
        let before = SettingsBackups::read(world).before(&file);
        let text = match &before {
            Some(before) => before.as_deref(),
            None => Some(text.as_str()),
        };
        row.n = Some(write(world, &file, "hook uninstall", &words, text)?);
    }
    Ok(Some(row))
}

/// Writes settings so that it can be undone; no text: the file goes.
fn write(
    world: &CommandContext,
    file: &HookSettingsFile,
    operation: &str,
    words: &str,
    text: Option<&str>,
) -> Result<u64, CommandFailure> {
    let folder = file.real.parent().unwrap_or(Path::new("."));
    let mut roots = vec![folder.to_owned()];
    // Where there are no settings yet, not even their folder.
    roots.extend(folder.parent().map(Path::to_owned));
    let mut work = world.begin(JournalTask {
        at: world.now().0,
        operation: operation.to_owned(),
        words: words.to_owned(),
        options: vec![file.scope.name().to_owned()],
        path: Some(file.path.clone()),
        roots,
        ..JournalTask::default()
    })?;
    match (&file.content, text) {
        (Some((_, stamp)), Some(text)) => {
            work.replace(&file.real, *stamp, ModifiedTimePolicy::Now, |out| {
                out.write_all(text.as_bytes())
            })?;
        }
        (None, Some(text)) => {
            work.create(&file.real, |out| out.write_all(text.as_bytes()))?;
        }
        (Some(_), None) => work.remove(&file.real)?,
        (None, None) => {}
    }
    let number = work.commit()?;
    let noted = match operation {
        "hook install" => {
            SettingsBackups::read(world).installed(world, file, text.unwrap_or_default())
        }
        _ => SettingsBackups::read(world).uninstalled(world, file),
    };
    if let Err(why) = noted {
        world
            .ui
            .warn(&format!("cannot save the previous settings: {why}"));
    }
    Ok(number)
}

/// What settings were before we touched them, so that they can be as they were to the last byte.
#[derive(Default, Serialize, Deserialize)]
struct SettingsBackups {
    files: Vec<SettingsBackup>,
}

#[derive(Serialize, Deserialize)]
struct SettingsBackup {
    path: PathBuf,
    /// As we left it.
    after: ContentHash,
    /// What it was; nothing if there was no such file.
    before: Option<String>,
}

impl SettingsBackups {
    fn place(world: &CommandContext) -> PathBuf {
        world.data("hook").join("installed.json")
    }

    /// What cannot be read is not known.
    fn read(world: &CommandContext) -> SettingsBackups {
        let bytes = own_file::read(&SettingsBackups::place(world)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// What a file was before, if nobody else changed it since.
    fn before(&self, file: &HookSettingsFile) -> Option<Option<String>> {
        let (text, _) = file.content.as_ref()?;
        let note = self.files.iter().find(|note| note.path == file.real)?;
        let now = ContentHash::of(text.as_bytes()).ok()?;
        (now == note.after).then(|| note.before.clone())
    }

    fn installed(
        mut self,
        world: &CommandContext,
        file: &HookSettingsFile,
        text: &str,
    ) -> std::io::Result<()> {
        let before = self.before(file);
        let before = before.unwrap_or_else(|| file.content.as_ref().map(|(text, _)| text.clone()));
        let after = ContentHash::of(text.as_bytes())?;
        self.files.retain(|note| note.path != file.real);
        self.files.push(SettingsBackup {
            path: file.real.clone(),
            after,
            before,
        });
        self.save(world)
    }

    fn uninstalled(
        mut self,
        world: &CommandContext,
        file: &HookSettingsFile,
    ) -> std::io::Result<()> {
        self.files.retain(|note| note.path != file.real);
        self.save(world)
    }

    fn save(&self, world: &CommandContext) -> std::io::Result<()> {
        own_file::replace(&SettingsBackups::place(world), &serde_json::to_vec(self)?)
    }
}

fn print(
    world: &CommandContext,
    rows: &[HookEditRow],
    dry_run: bool,
) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    for row in rows {
        if world.ui.json {
            world.ui.row(&mut out, row)?;
            continue;
        }
        let path = clean::line(&row.path);
        let would = if dry_run { "would be " } else { "" };
        let mut said = false;
        for (verb, events) in [
            ("installed in", &row.added),
            ("updated in", &row.updated),
            ("removed from", &row.removed),
        ] {
            if !events.is_empty() {
                writeln!(
                    out,
                    "{would}{verb} {path}: {}",
                    clean::line(&events.join(", "))
                )?;
                said = true;
            }
        }
        if !said {
            writeln!(out, "already installed in {path}")?;
        }
    }
    out.flush()?;
    if let Some(number) = rows.iter().rev().find_map(|row| row.n) {
        world.ui.note(&format!("undo with `unspool undo {number}`"));
    }
    if rows.iter().any(|row| !row.added.is_empty()) {
        world.ui.note("running sessions use it after a restart");
    }
    Ok(())
}
