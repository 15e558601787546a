//! Settings files: who says what, and on which line.
//!
//! There are five places: managed by whoever runs the machine, given by `--settings`, local
//! and project (both inside the folder), and the user's own. The first one that has a value
//! wins; lists of rules add up. A file that cannot be read is an error and never left out, for
//! a rule that denies might stand in it. What a folder says acts only when it is trusted; what
//! it denies or wants to be asked about always counts. A file of a folder that is a link to a file
//! outside of it only denies and asks.

mod settings_file;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use unspool_model::jsonc::{self, JsoncError, JsoncNode};

use crate::folder_files::{self, SkippedFileReason};
use crate::permission::PermissionMode;
use settings_file::{LONGEST, SettingsFile};

/// Where managed settings stand on this system.
#[cfg(target_os = "macos")]
pub const MANAGED: &str = "/Library/Application Support/ClaudeCode/managed-settings.json";
/// Where managed settings stand on this system.
#[cfg(not(target_os = "macos"))]
pub const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// Where to look.
#[derive(Clone, Debug)]
pub struct SettingsPaths {
    /// The client's folder (`$CLAUDE_CONFIG_DIR`), with the user's `settings.json`.
    pub user: PathBuf,
    /// The managed file, usually [`MANAGED`].
    pub managed: PathBuf,
    /// The folder the session begins in.
    pub project: PathBuf,
    /// `--settings`: a path or JSON itself.
    pub given: Option<String>,
}

/// Who says something. The first in this order wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingsLayer {
    /// Whoever manages the machine.
    Managed,
    /// `--settings`.
    Given,
    /// A flag of the command line.
    Flag,
    /// An answer in this session.
    Session,
    /// `.claude/settings.local.json`.
    Local,
    /// `.claude/settings.json`.
    Project,
    /// The user's own file.
    User,
}

impl SettingsLayer {
    /// Whether it comes with the folder, and so perhaps from a stranger.
    pub fn is_of_folder(self) -> bool {
        matches!(self, SettingsLayer::Local | SettingsLayer::Project)
    }

    fn name(self) -> &'static str {
        match self {
            SettingsLayer::Managed => "managed settings",
            SettingsLayer::Given => "--settings",
            SettingsLayer::Flag => "command line",
            SettingsLayer::Session => "this session",
            SettingsLayer::Local => "local settings",
            SettingsLayer::Project => "project settings",
            SettingsLayer::User => "user settings",
        }
    }
}

/// Where something was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingSource {
    /// By whom.
    pub scope: SettingsLayer,
    /// In which file, if in one.
    pub path: Option<PathBuf>,
    /// On which line, from 1; 0 if there are no lines.
    pub line: usize,
}

impl SettingSource {
    /// Something that stands in no file.
    pub fn spoken(scope: SettingsLayer) -> SettingSource {
        SettingSource {
            scope,
            path: None,
            line: 0,
        }
    }
}

impl fmt::Display for SettingSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(out, "{}:{}", path.display(), self.line),
            None => out.write_str(self.scope.name()),
        }
    }
}

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The file, or the argument.
    pub place: String,
    /// Line and column, from 1, if known.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub why: String,
}

impl SettingsError {
    /// What to do next.
    pub fn hint(&self) -> String {
        format!(
            "fix or remove {}; it may contain deny rules, so it cannot be ignored",
            self.place
        )
    }

    fn at(place: &str, text: &str, byte: usize, why: impl Into<String>) -> SettingsError {
        let wrong = JsoncError::at(text, byte, "");
        SettingsError {
            place: place.to_owned(),
            at: Some((wrong.line, wrong.column)),
            why: why.into(),
        }
    }

    /// A rule that cannot be understood.
    pub fn rule(source: &SettingSource, why: impl Into<String>) -> SettingsError {
        SettingsError {
            place: match &source.path {
                Some(path) => path.display().to_string(),
                None => source.scope.name().to_owned(),
            },
            at: (source.line > 0).then_some((source.line, 1)),
            why: why.into(),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.place)?;
        if let Some((line, column)) = self.at {
            write!(out, ":{line}:{column}")?;
        }
        write!(out, ": {}", self.why)
    }
}

impl std::error::Error for SettingsError {}

/// What a rule wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleKind {
    /// Never.
    Deny,
    /// Ask each time.
    Ask,
    /// Go on.
    Allow,
}

impl RuleKind {
    /// Its key in `permissions`.
    pub fn key(self) -> &'static str {
        match self {
            RuleKind::Deny => "deny",
            RuleKind::Ask => "ask",
            RuleKind::Allow => "allow",
        }
    }
}

/// A rule as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRule {
    /// What it wants.
    pub kind: RuleKind,
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub source: SettingSource,
    /// What a path with one `/` at its start is relative to.
    pub base: PathBuf,
}

/// Something a folder would do if it were trusted.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustGatedSetting {
    /// Its key, with dots.
    pub key: String,
    /// Where it stands.
    pub source: SettingSource,
    /// What it says.
    pub value: Value,
}

/// All settings, in the order in which they win.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    files: Vec<SettingsFile>,
    root: PathBuf,
    others: Vec<TrustGatedSetting>,
    /// The text of each `.mcp.json`, as it was when trust was asked for.
    server_files: Vec<(PathBuf, String)>,
    trusted: bool,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl SessionSettings {
    /// Reads every file there is. The folder is not trusted yet.
    pub fn load(places: &SettingsPaths) -> Result<SessionSettings, SettingsError> {
        let root = root(&places.project);
        let mut settings = SessionSettings {
            files: Vec::new(),
            root: root.clone(),
            others: Vec::new(),
            server_files: Vec::new(),
            trusted: false,
            notes: Vec::new(),
        };
        settings.take_managed(&places.managed)?;
        if let Some(given) = &places.given {
            settings.take_given(given, &places.project)?;
        }
        let user = places.user.join("settings.json");
        let own = fs::canonicalize(&user).ok();
        let mut folders = vec![places.project.clone()];
        if root != places.project {
            folders.push(root);
        }
        for (scope, name) in [
            (SettingsLayer::Local, "settings.local.json"),
            (SettingsLayer::Project, "settings.json"),
        ] {
            for folder in &folders {
                let path = folder.join(".claude").join(name);
                // In the home folder, the user's own file is not the folder's as well.
                if own.is_some() && fs::canonicalize(&path).ok() == own {
                    continue;
                }
                settings.take(scope, &path, folder)?;
            }
        }
        settings.take(SettingsLayer::User, &user, &places.user)?;
        for folder in &folders {
            settings.take_other(&folder.join(".mcp.json"));
        }
        Ok(settings)
    }

    /// No settings at all, in a folder.
    pub fn none(project: &Path) -> SessionSettings {
        SessionSettings {
            files: Vec::new(),
            root: root(project),
            others: Vec::new(),
            server_files: Vec::new(),
            trusted: false,
            notes: Vec::new(),
        }
    }

    fn take_managed(&mut self, path: &Path) -> Result<(), SettingsError> {
        let base = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        // Parts beside the file count more than the file, the last name most.
        let beside = path.with_extension("d");
        let mut parts: Vec<PathBuf> = match unspool_store::read_folder::entries(&beside) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(_) => Vec::new(),
        };
        parts.retain(|part| {
            part.extension().is_some_and(|end| end == "json")
                && !part
                    .file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        });
        parts.sort();
        for part in parts.iter().rev() {
            self.take(SettingsLayer::Managed, part, &base)?;
        }
        self.take(SettingsLayer::Managed, path, &base)
    }

    fn take_given(&mut self, given: &str, project: &Path) -> Result<(), SettingsError> {
        if given.trim_start().starts_with('{') {
            let text = given.to_owned();
            return self.put(
                SettingsLayer::Given,
                "--settings",
                None,
                project,
                text,
                false,
            );
        }
        let path = project.join(given);
        if !path.exists() {
            return Err(SettingsError {
                place: path.display().to_string(),
                at: None,
                why: "no such file (--settings)".to_owned(),
            });
        }
        let base = path.parent().unwrap_or(project).to_path_buf();
        self.take(SettingsLayer::Given, &path, &base)
    }

    fn take(
        &mut self,
        scope: SettingsLayer,
        path: &Path,
        base: &Path,
    ) -> Result<(), SettingsError> {
        let place = path.display().to_string();
        let within = scope.is_of_folder().then(|| self.root.clone());
        let mut read = folder_files::read_text(path, within.as_deref(), LONGEST);
        let is_outside = matches!(read, Err(SkippedFileReason::Outside));
        if is_outside {
            // It might deny something, so it is not passed over.
            read = folder_files::read_text(path, None, LONGEST);
        }
        let text = match read {
            Ok(text) => text,
            Err(SkippedFileReason::Absent) => return Ok(()),
            Err(why) => {
                return Err(SettingsError {
                    place,
                    at: None,
                    why: why.to_string(),
                });
            }
        };
        if is_outside {
            self.notes.push(format!(
                "{place}: symlink leads outside the project, so only its deny rules apply"
            ));
        }
        self.put(scope, &place, Some(path), base, text, is_outside)
    }

    fn put(
        &mut self,
        scope: SettingsLayer,
        place: &str,
        path: Option<&Path>,
        base: &Path,
        text: String,
        is_outside: bool,
    ) -> Result<(), SettingsError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let root = jsonc::parse(&text).map_err(|wrong| SettingsError {
            place: place.to_owned(),
            at: Some((wrong.line, wrong.column)),
            why: wrong.why.to_owned(),
        })?;
        let file = SettingsFile {
            scope,
            place: place.to_owned(),
            path: path.map(Path::to_path_buf),
            base: base.to_path_buf(),
            text,
            root,
            is_outside,
        };
        file.check()?;
        self.files.push(file);
        Ok(())
    }

    fn take_other(&mut self, path: &Path) {
        let text = match folder_files::read_text(path, Some(&self.root), LONGEST) {
            Ok(text) => text,
            Err(why) => {
                if let Some((path, why)) =
                    folder_files::describe_skipped_file(path, Some(&self.root), &why)
                {
                    self.notes.push(format!("{}: {why}", path.display()));
                }
                return;
            }
        };
        self.server_files.push((path.to_path_buf(), text.clone()));
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        self.others.push(TrustGatedSetting {
            key: ".mcp.json".to_owned(),
            source: SettingSource {
                scope: SettingsLayer::Project,
                path: Some(path.to_path_buf()),
                line: 1,
            },
            value,
        });
    }

    /// The top of the working tree, or the folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lets what the folder says act, or not.
    pub fn trust(&mut self, yes: bool) {
        self.trusted = yes;
    }

    /// Whether what the folder says acts.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// The text of a `.mcp.json` that may act: the very one that somebody was asked about.
    pub fn server_file(&self, path: &Path) -> Option<&str> {
        let mut files = self.server_files.iter().filter(|_| self.trusted);
        let found = files.find(|(known, _)| known == path);
        found.map(|(_, text)| text.as_str())
    }

    /// All that the folder would do if it were trusted, whether it is or not.
    pub fn acting(&self) -> Vec<TrustGatedSetting> {
        let mut all = Vec::new();
        let of_folder = self.files.iter().filter(|file| file.scope.is_of_folder());
        for file in of_folder.filter(|file| !file.is_outside) {
            file.acting(&mut all);
        }
        all.extend(self.others.iter().cloned());
        all
    }

    /// Files whose word counts.
    fn heard(&self) -> impl Iterator<Item = &SettingsFile> {
        self.files.iter().filter(|file| self.may_act(file))
    }

    fn may_act(&self, file: &SettingsFile) -> bool {
        !file.scope.is_of_folder() || (self.trusted && !file.is_outside)
    }

    /// The first value at a path of keys, and where it stands.
    pub fn value(&self, path: &[&str]) -> Option<(Value, SettingSource)> {
        self.heard().find_map(|file| file.value(path))
    }

    /// Every value at a path of keys, the one that wins first.
    pub fn values(&self, path: &[&str]) -> Vec<(Value, SettingSource)> {
        self.heard().filter_map(|file| file.value(path)).collect()
    }

    /// Only what the managed files say.
    fn managed(&self, path: &[&str]) -> Option<Value> {
        self.files
            .iter()
            .filter(|file| file.scope == SettingsLayer::Managed)
            .find_map(|file| file.value(path))
            .map(|(value, _)| value)
    }

    /// Whether a switch is on in the managed files.
    pub fn is_managed(&self, key: &str) -> bool {
        self.managed(&[key]) == Some(Value::Bool(true))
    }

    /// Whether bypassing all questions is forbidden, by anybody who is heard.
    pub fn forbids_bypass(&self) -> bool {
        let path = ["permissions", "disableBypassPermissionsMode"];
        self.heard()
            .filter_map(|file| file.value(&path))
            .any(|(value, _)| value == "disable" || value == true)
    }

    /// All rules that count, in the order in which files win.
    pub fn rules(&self) -> Vec<WrittenRule> {
        let only_managed = self.is_managed("allowManagedPermissionRulesOnly");
        let mut all = Vec::new();
        for file in &self.files {
            for kind in [RuleKind::Deny, RuleKind::Ask, RuleKind::Allow] {
                let is_heard = match kind {
                    // What forbids or asks counts even from a stranger.
                    RuleKind::Deny | RuleKind::Ask => true,
                    RuleKind::Allow => {
                        self.may_act(file)
                            && (!only_managed || file.scope == SettingsLayer::Managed)
                    }
                };
                if is_heard {
                    file.rules(kind, &mut all);
                }
            }
        }
        all
    }

    /// The mode a session begins in. A folder cannot switch questions off, trusted or not.
    pub fn default_mode(&self) -> Option<(PermissionMode, SettingSource)> {
        self.heard().find_map(|file| {
            let (value, source) = file.value(&["permissions", "defaultMode"])?;
            let (mode, _) = PermissionMode::read(value.as_str()?)?;
            if mode == PermissionMode::Bypass && file.scope.is_of_folder() {
                return None;
            }
            Some((mode, source))
        })
    }

    /// More folders that belong to the session.
    pub fn dirs(&self) -> Vec<(PathBuf, SettingSource)> {
        let mut all = Vec::new();
        for file in self.heard() {
            let path = ["permissions", "additionalDirectories"];
            let Some(node) = file.node(&path) else {
                continue;
            };
            for item in node.items().unwrap_or_default() {
                if let Some(text) = item.text() {
                    all.push((PathBuf::from(text), file.source(item)));
                }
            }
        }
        all
    }

    /// Variables for whatever the session runs; the first to name one wins.
    pub fn env(&self) -> Vec<(String, String, SettingSource)> {
        let mut all: Vec<(String, String, SettingSource)> = Vec::new();
        for file in self.heard() {
            let Some(node) = file.node(&["env"]) else {
                continue;
            };
            for member in node.members().unwrap_or_default() {
                let named = all.iter().any(|(name, ..)| *name == member.key);
                // What no variable can be called would keep every program from starting.
                if named || member.key.is_empty() || member.key.contains(['=', '\0']) {
                    continue;
                }
                let value = match plain(&member.node) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                let value = value.replace('\0', "");
                all.push((member.key.clone(), value, file.source(&member.node)));
            }
        }
        all
    }

    /// The same without who says it.
    pub fn variables(&self) -> Vec<(String, String)> {
        let all = self.env().into_iter();
        all.map(|(name, value, _)| (name, value)).collect()
    }

    /// The model to begin with.
    pub fn model(&self) -> Option<String> {
        let (value, _) = self.value(&["model"])?;
        value.as_str().map(str::to_owned)
    }

    /// Hooks, those of the file that wins first.
    pub fn hooks(&self) -> Vec<(Value, SettingSource)> {
        let only_managed = self.is_managed("allowManagedHooksOnly");
        let off = self
            .value(&["disableAllHooks"])
            .is_some_and(|(value, _)| value == true);
        let managed_off = self.managed(&["disableAllHooks"]) == Some(Value::Bool(true));
        self.heard()
            .filter(|file| match file.scope {
                // Only who manages the machine takes managed hooks away.
                SettingsLayer::Managed => !managed_off,
                _ => !off && !only_managed,
            })
            .filter_map(|file| file.value(&["hooks"]))
            .collect()
    }
}

/// The nearest folder upwards that is the top of a working tree, else the folder itself.
pub fn root(folder: &Path) -> PathBuf {
    let top = folder
        .ancestors()
        .find(|above| above.join(".git").symlink_metadata().is_ok());
    top.unwrap_or(folder).to_path_buf()
}

/// A node as an ordinary value.
pub fn plain(node: &JsoncNode) -> Value {
    match &node.value {
        jsonc::JsoncValue::Object(members) => {
            let fields = members
                .iter()
                .map(|member| (member.key.clone(), plain(&member.node)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        jsonc::JsoncValue::Array(items) => Value::Array(items.iter().map(plain).collect()),
        jsonc::JsoncValue::Text(text) => Value::String(text.clone()),
        jsonc::JsoncValue::Plain(word) => serde_json::from_str(word).unwrap_or(Value::Null),
    }
}
