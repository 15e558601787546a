//! What may be done: modes, rules and the guards that no rule opens.
//!
//! A call is judged in one order: what denies, what cannot be undone, what wants to be asked,
//! the mode, what allows. The first that applies decides, and the verdict names it with the file
//! and line it came from. Nothing here asks or runs anything; only links are followed.

mod bash;
mod destructive;
pub mod explain;
mod file_access;
mod git_repository;
pub mod glob;
pub mod offered_rules;
pub mod path;
mod removal_guard;
mod rule;
pub mod rule_editing;
pub mod shell_parser;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::settings::{
    RuleKind, SessionSettings, SettingSource, SettingsError, SettingsLayer, WrittenRule,
};
use path::{ResolvedFolder, ResolvedPath};
use rule::{EDITS, PermissionRule, READS};

pub use rule::current_tool_name;

/// How much is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PermissionMode {
    /// Ask for whatever changes something.
    #[default]
    Default,
    /// Files in the project may be changed.
    AcceptEdits,
    /// Only reading.
    Plan,
    /// What would be asked is denied.
    DontAsk,
    /// Ask nothing but what cannot be undone.
    Bypass,
}

impl PermissionMode {
    /// Reads a name, with a note where this client does something else than the name says.
    pub fn read(name: &str) -> Option<(PermissionMode, Option<&'static str>)> {
        Some(match name {
            "default" | "manual" => (PermissionMode::Default, None),
            "acceptEdits" => (PermissionMode::AcceptEdits, None),
            "plan" => (PermissionMode::Plan, None),
            "dontAsk" => (PermissionMode::DontAsk, None),
            "bypassPermissions" => (PermissionMode::Bypass, None),
            "auto" => (
                PermissionMode::Default,
                Some("mode auto is not supported; using mode default"),
            ),
            _ => return None,
        })
    }

    /// Its name, as in settings and transcripts.
    pub fn name(self) -> &'static str {
        match self {
            PermissionMode::Default => "default",
            PermissionMode::AcceptEdits => "acceptEdits",
            PermissionMode::Plan => "plan",
            PermissionMode::DontAsk => "dontAsk",
            PermissionMode::Bypass => "bypassPermissions",
        }
    }

    /// Whether it lets nothing run that another would not.
    pub fn allows_no_more_than(self, other: PermissionMode) -> bool {
        let width = |mode: PermissionMode| match mode {
            PermissionMode::Plan => 0,
            PermissionMode::DontAsk => 1,
            PermissionMode::Default => 2,
            PermissionMode::AcceptEdits => 3,
            PermissionMode::Bypass => 4,
        };
        width(self) <= width(other)
    }

    /// Whether a session that is resumed may begin in it.
    pub fn is_restored(self) -> bool {
        !matches!(self, PermissionMode::Plan | PermissionMode::Bypass)
    }
}

/// Why something was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionReason {
    /// In words.
    pub text: String,
    /// The rule behind it and where it stands.
    pub rule: Option<(String, SettingSource)>,
    /// Only a person can answer it: no mode does, and no hook that allows calls.
    pub firm: bool,
}

impl PermissionReason {
    fn new(text: impl Into<String>) -> PermissionReason {
        PermissionReason {
            text: text.into(),
            rule: None,
            firm: false,
        }
    }

    fn of(text: impl Into<String>, rule: &PermissionRule) -> PermissionReason {
        PermissionReason {
            text: text.into(),
            rule: Some((rule.text.clone(), rule.source.clone())),
            firm: false,
        }
    }
}

impl fmt::Display for PermissionReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)?;
        match &self.rule {
            Some((rule, source)) => write!(out, ": {rule} ({source})"),
            None => Ok(()),
        }
    }
}

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionVerdict {
    /// Run it.
    Allow {
        /// What allows it.
        by: PermissionReason,
    },
    /// Ask the person.
    Ask {
        /// Why.
        why: PermissionReason,
        /// The rules that "always" would add; none if it can only be allowed once.
        always: Vec<String>,
        /// What the model is told if nobody can be asked.
        text: String,
    },
    /// Do not run it.
    Deny {
        /// What forbids it.
        by: PermissionReason,
        /// What the model is told.
        text: String,
    },
}

/// Where a session stands.
#[derive(Clone, Debug, Default)]
pub struct PermissionDirs {
    /// The folder it began in.
    pub project: PathBuf,
    /// More folders that belong to it.
    pub dirs: Vec<PathBuf>,
    /// The home folder.
    pub home: PathBuf,
    /// Folders of ours that may be read: outputs that were put aside.
    pub readable: Vec<PathBuf>,
    /// Folders that steer the client: its settings and ours. Nothing is written there unasked.
    pub steering: Vec<PathBuf>,
}

/// Rules and mode of one session.
#[derive(Clone, Debug)]
pub struct PermissionPolicy {
    mode: PermissionMode,
    rules: Vec<PermissionRule>,
    project: PathBuf,
    root: PathBuf,
    home: PathBuf,
    work: Vec<ResolvedFolder>,
    readable: Vec<ResolvedFolder>,
    steering: Vec<ResolvedFolder>,
    no_bypass: bool,
    /// Only who manages the machine allows anything.
    only_managed: bool,
    /// Commands run behind a fence, and leaving it is asked about.
    fenced: bool,
    /// Rules that were left out, and what else somebody should know.
    pub notes: Vec<String>,
}

/// What was found about a call, before the mode is asked.
#[derive(Debug, Default)]
struct PermissionFindings {
    /// Something forbids it.
    deny: Option<PermissionReason>,
    /// It is asked about in every mode.
    firm: Option<PermissionReason>,
    /// It is asked about unless nothing is.
    soft: Option<PermissionReason>,
    /// What allows it.
    by: Option<PermissionReason>,
    /// Whether it only reads.
    reads: bool,
    always: Vec<String>,
    /// What was found about each part of a command.
    steps: Vec<explain::CommandPartFinding>,
}

impl PermissionFindings {
    fn deny(&mut self, reason: PermissionReason) {
        self.deny.get_or_insert(reason);
    }

    fn firm(&mut self, reason: PermissionReason) {
        let firm = true;
        self.firm.get_or_insert(PermissionReason { firm, ..reason });
    }

    fn soft(&mut self, reason: PermissionReason) {
        self.soft.get_or_insert(reason);
    }

    fn allow(&mut self, reason: PermissionReason) {
        self.by.get_or_insert(reason);
    }
}

/// Why a rule is left out where only managed ones count.
const MANAGED: &str = "only managed settings may allow tools on this machine";

/// Tools that only concern the conversation.
const FREE: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillBash",
    "KillShell",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "Skill",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
];

impl PermissionPolicy {
    /// Makes rules of settings and of `--allowedTools` and `--disallowedTools`.
    pub fn load(
        settings: &SessionSettings,
        ground: PermissionDirs,
        mode: PermissionMode,
        allowed: &[String],
        denied: &[String],
    ) -> Result<PermissionPolicy, SettingsError> {
        let mut work = vec![ResolvedFolder::of(&ground.project)];
        work.extend(
            ground
                .dirs
                .iter()
                .map(|dir| ResolvedFolder::of(&ground.project.join(dir))),
        );
        for (dir, _) in settings.dirs() {
            let place = ResolvedPath::of(&dir.to_string_lossy(), &ground.project, &ground.home);
            work.push(ResolvedFolder::of(&place.written));
        }
        let mut policy = PermissionPolicy {
            mode: PermissionMode::Default,
            rules: Vec::new(),
            root: settings.root().to_path_buf(),
            work,
            readable: ground
                .readable
                .iter()
                .map(|dir| ResolvedFolder::of(dir))
                .collect(),
            steering: ground
                .steering
                .iter()
                .map(|dir| ResolvedFolder::of(dir))
                .collect(),
            project: ground.project,
            home: ground.home,
            no_bypass: settings.forbids_bypass(),
            only_managed: settings.is_managed("allowManagedPermissionRulesOnly"),
            fenced: false,
            notes: Vec::new(),
        };
        for written in settings.rules() {
            policy.take(&written)?;
        }
        let flags = [(RuleKind::Deny, denied), (RuleKind::Allow, allowed)];
        for (kind, texts) in flags {
            if kind == RuleKind::Allow && policy.only_managed && !texts.is_empty() {
                policy.notes.push(MANAGED.to_owned());
                continue;
            }
            for text in texts {
                policy.take(&policy.spoken(kind, SettingsLayer::Flag, text))?;
            }
        }
        if let Err(note) = policy.set_mode(mode) {
            policy.notes.push(note);
        }
        Ok(policy)
    }

    fn spoken(&self, kind: RuleKind, scope: SettingsLayer, text: &str) -> WrittenRule {
        WrittenRule {
            kind,
            text: text.to_owned(),
            source: SettingSource::spoken(scope),
            base: self.root.clone(),
        }
    }

    /// A rule that allows and is not understood allows nothing; one that denies stops everything.
    fn take(&mut self, written: &WrittenRule) -> Result<(), SettingsError> {
        match PermissionRule::read(written, &self.project, &self.home) {
            Ok(rule) => self.rules.push(rule),
            Err(why) if written.kind == RuleKind::Allow => {
                self.notes
                    .push(format!("{}: ignored: {why}", written.source));
            }
            Err(why) => return Err(SettingsError::rule(&written.source, why)),
        }
        Ok(())
    }

    /// The mode it is in.
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// Changes the mode, unless somebody forbade it.
    pub fn set_mode(&mut self, mode: PermissionMode) -> Result<(), String> {
        if mode == PermissionMode::Bypass && self.no_bypass {
            return Err("settings disable the mode bypassPermissions".to_owned());
        }
        self.mode = mode;
        Ok(())
    }

    /// Allows or denies something, or has it asked, for the rest of the session.
    pub fn add(&mut self, kind: RuleKind, rule: &str) -> Result<(), String> {
        if self.only_managed {
            return Err(MANAGED.to_owned());
        }
        let written = self.spoken(kind, SettingsLayer::Session, rule);
        self.rules
            .push(PermissionRule::read(&written, &self.project, &self.home)?);
        Ok(())
    }

    /// Allows rules of a command's front matter while it runs: a copy with them.
    pub fn with(&self, rules: &[String]) -> PermissionPolicy {
        let mut more = self.clone();
        for rule in rules {
            if let Err(why) = more.add(RuleKind::Allow, rule) {
                more.notes.push(format!("ignored: {why}"));
            }
        }
        more
    }

    /// Says that commands run behind a fence, so that leaving it is asked about.
    pub fn set_fenced(&mut self, yes: bool) {
        self.fenced = yes;
    }

    /// Adds a folder to the session.
    pub fn add_dir(&mut self, dir: &Path) {
        self.work.push(ResolvedFolder::of(&self.project.join(dir)));
    }

    /// Whether a tool is offered to the model: not if all of it is denied.
    pub fn offers(&self, tool: &str) -> bool {
        !self.rules.iter().any(|rule| {
            rule.kind == RuleKind::Deny
                && rule.names(tool)
                && matches!(rule.what, rule::RuleTarget::All)
        })
    }

    /// Whether a file must not be read, so that searches leave it out.
    pub fn hides(&self, path: &Path) -> bool {
        // Asked for each file of a search: without rules nothing is looked up.
        if self.rules_of(RuleKind::Deny, "Read").next().is_none() {
            return false;
        }
        let place = ResolvedPath::of_tool(&path.to_string_lossy(), &self.project, &self.home);
        self.rules_of(RuleKind::Deny, "Read")
            .any(|rule| rule.fits_file(&place))
    }

    /// All rules: what they want, as they were written, and where.
    pub fn listed(&self) -> impl Iterator<Item = (RuleKind, &str, &SettingSource)> {
        let rules = self.rules.iter();
        rules.map(|rule| (rule.kind, rule.text.as_str(), &rule.source))
    }

    /// Whether a rule can be understood, and why not.
    pub fn check(&self, kind: RuleKind, rule: &str) -> Result<(), String> {
        let written = self.spoken(kind, SettingsLayer::Session, rule);
        PermissionRule::read(&written, &self.project, &self.home).map(drop)
    }

    /// Takes the rules of another, which were read anew. What was allowed for this session stays.
    pub fn renew(&mut self, other: &PermissionPolicy) {
        self.rules
            .retain(|rule| rule.source.scope == SettingsLayer::Session);
        self.rules.extend(other.rules.iter().cloned());
    }

    fn rules_of<'a>(
        &'a self,
        kind: RuleKind,
        tool: &'a str,
    ) -> impl Iterator<Item = &'a PermissionRule> {
        self.rules
            .iter()
            .filter(move |rule| rule.kind == kind && rule.names(tool))
    }

    /// Whether a call may run.
    pub fn judge(&self, tool: &str, input: &Value, cwd: &Path) -> PermissionVerdict {
        let ruling = self.rule(tool, input, cwd);
        self.finish(ruling, tool, input)
    }

    fn rule(&self, tool: &str, input: &Value, cwd: &Path) -> PermissionFindings {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        match current_tool_name(tool) {
            "Bash" => {
                let mut ruling = self.rule_bash(text("command").unwrap_or_default(), cwd);
                let leaves = input.get("dangerouslyDisableSandbox") == Some(&Value::Bool(true));
                if self.fenced && leaves {
                    ruling.firm(PermissionReason::new("runs outside the sandbox"));
                }
                ruling
            }
            name if EDITS.contains(&name) => {
                let path = text("file_path").or(text("notebook_path"));
                self.rule_edit(name, path.unwrap_or_default(), cwd)
            }
            name if READS.contains(&name) => self.rule_read(name, input, cwd),
            "WebFetch" => {
                let host = text("url").and_then(rule::host);
                let always = host.as_ref().map(|host| format!("WebFetch(domain:{host})"));
                let mut ruling = self.rule_name(tool, host.as_deref());
                ruling.always = always.into_iter().collect();
                ruling
            }
            "Agent" => self.rule_name(tool, text("subagent_type")),
            "Skill" => self.rule_name(tool, text("skill").or(text("command"))),
            _ => self.rule_name(tool, None),
        }
    }

    fn rule_name(&self, tool: &str, name: Option<&str>) -> PermissionFindings {
        let mut ruling = PermissionFindings {
            reads: FREE.contains(&current_tool_name(tool))
                || ["WebFetch", "WebSearch"].contains(&tool),
            ..PermissionFindings::default()
        };
        let fitting = |kind| self.rules_of(kind, tool).find(|rule| rule.fits_name(name));
        if let Some(rule) = fitting(RuleKind::Deny) {
            ruling.deny(PermissionReason::of("denied by rule", rule));
        }
        if let Some(rule) = fitting(RuleKind::Ask) {
            ruling.firm(PermissionReason::of("an ask rule matches", rule));
        }
        match fitting(RuleKind::Allow) {
            Some(rule) => ruling.allow(PermissionReason::of("allowed by rule", rule)),
            None if FREE.contains(&current_tool_name(tool)) => {
                ruling.allow(PermissionReason::new("only affects the conversation"));
            }
            None => {
                ruling.soft(PermissionReason::new(format!("no rule allows {tool}")));
                ruling.always = vec![tool.to_owned()];
            }
        }
        ruling
    }

    /// The mode has its say.
    fn finish(&self, ruling: PermissionFindings, tool: &str, input: &Value) -> PermissionVerdict {
        if let Some(by) = ruling.deny {
            let text = denied(tool, input);
            return PermissionVerdict::Deny { by, text };
        }
        if self.mode == PermissionMode::Plan && !ruling.reads {
            let by = PermissionReason::new("plan mode is read-only");
            let text = format!(
                "Permission to use {tool} has been denied: in plan mode only reading is allowed. \
                 Present the plan instead of carrying it out."
            );
            return PermissionVerdict::Deny { by, text };
        }
        let ask = match (ruling.firm, ruling.soft) {
            (Some(firm), _) => Some((firm, Vec::new())),
            (None, Some(_)) if self.mode == PermissionMode::Bypass => None,
            (None, Some(soft)) => Some((soft, ruling.always)),
            (None, None) => None,
        };
        let Some((why, always)) = ask else {
            let by = ruling
                .by
                .filter(|_| self.mode != PermissionMode::Bypass)
                .unwrap_or_else(|| {
                    PermissionReason::new(format!("permission mode {}", self.mode.name()))
                });
            return PermissionVerdict::Allow { by };
        };
        if self.mode == PermissionMode::DontAsk {
            let text = format!(
                "Permission to use {tool} has been denied: it needs approval, and the mode \
                 dontAsk never asks."
            );
            return PermissionVerdict::Deny { by: why, text };
        }
        PermissionVerdict::Ask {
            why,
            always,
            text: unanswered(tool, input),
        }
    }
}

fn file_of(input: &Value) -> Option<&str> {
    ["file_path", "notebook_path", "path"]
        .iter()
        .find_map(|key| input.get(key)?.as_str())
}

/// What the model is told about a call that a rule denies.
fn denied(tool: &str, input: &Value) -> String {
    match current_tool_name(tool) {
        "Bash" => {
            let command = input.get("command").and_then(Value::as_str);
            format!(
                "Permission to use Bash with command {} has been denied.",
                command.unwrap_or_default()
            )
        }
        name if EDITS.contains(&name) || READS.contains(&name) => {
            "<tool_use_error>File is in a directory that is denied by your permission settings.\
             </tool_use_error>"
                .to_owned()
        }
        _ => format!("Permission to use {tool} has been denied."),
    }
}

/// What the model is told about a call that nobody could be asked about.
fn unanswered(tool: &str, input: &Value) -> String {
    let name = current_tool_name(tool);
    match file_of(input) {
        Some(path) if EDITS.contains(&name) => {
            format!(
                "Claude requested permissions to write to {path}, but you haven't granted it yet."
            )
        }
        Some(path) if READS.contains(&name) => {
            format!(
                "Claude requested permissions to read from {path}, but you haven't granted it yet."
            )
        }
        _ => format!("Claude requested permissions to use {tool}, but you haven't granted it yet."),
    }
}
