//! What may be done: modes, rules and the guards that no rule opens.
//!
//! A call is judged in one order: what denies, what cannot be undone, what wants to be asked,
//! the mode, what allows. The first that applies decides, and the verdict names it with the file
//! and line it came from. Nothing here asks or runs anything; only links are followed.

pub mod always;
mod bash;
mod destructive;
pub mod explain;
mod files;
mod git_repository;
pub mod glob;
pub mod path;
mod remove;
mod rule;
pub mod shell;
pub mod written;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::settings::{Broken, Kind, Scope, Settings, Source, Written};
use path::{Folder, Place};
use rule::{EDITS, READS, Rule};

pub use rule::today;

/// How much is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
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

impl Mode {
    /// Reads a name, with a note where this client does something else than the name says.
    pub fn read(name: &str) -> Option<(Mode, Option<&'static str>)> {
        Some(match name {
            "default" | "manual" => (Mode::Default, None),
            "acceptEdits" => (Mode::AcceptEdits, None),
            "plan" => (Mode::Plan, None),
            "dontAsk" => (Mode::DontAsk, None),
            "bypassPermissions" => (Mode::Bypass, None),
            "auto" => (
                Mode::Default,
                Some("mode auto is not supported; using mode default"),
            ),
            _ => return None,
        })
    }

    /// Its name, as in settings and transcripts.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Plan => "plan",
            Mode::DontAsk => "dontAsk",
            Mode::Bypass => "bypassPermissions",
        }
    }

    /// Whether it lets nothing run that another would not.
    pub fn allows_no_more_than(self, other: Mode) -> bool {
        let width = |mode: Mode| match mode {
            Mode::Plan => 0,
            Mode::DontAsk => 1,
            Mode::Default => 2,
            Mode::AcceptEdits => 3,
            Mode::Bypass => 4,
        };
        width(self) <= width(other)
    }

    /// Whether a session that is resumed may begin in it.
    pub fn is_restored(self) -> bool {
        !matches!(self, Mode::Plan | Mode::Bypass)
    }
}

/// Why something was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// In words.
    pub text: String,
    /// The rule behind it and where it stands.
    pub rule: Option<(String, Source)>,
    /// Only a person can answer it: no mode does, and no hook that allows calls.
    pub firm: bool,
}

impl Reason {
    fn new(text: impl Into<String>) -> Reason {
        Reason {
            text: text.into(),
            rule: None,
            firm: false,
        }
    }

    fn of(text: impl Into<String>, rule: &Rule) -> Reason {
        Reason {
            text: text.into(),
            rule: Some((rule.text.clone(), rule.source.clone())),
            firm: false,
        }
    }
}

impl fmt::Display for Reason {
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
pub enum Verdict {
    /// Run it.
    Allow {
        /// What allows it.
        by: Reason,
    },
    /// Ask the person.
    Ask {
        /// Why.
        why: Reason,
        /// The rules that "always" would add; none if it can only be allowed once.
        always: Vec<String>,
        /// What the model is told if nobody can be asked.
        text: String,
    },
    /// Do not run it.
    Deny {
        /// What forbids it.
        by: Reason,
        /// What the model is told.
        text: String,
    },
}

/// Where a session stands.
#[derive(Clone, Debug, Default)]
pub struct Ground {
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
pub struct Policy {
    mode: Mode,
    rules: Vec<Rule>,
    project: PathBuf,
    root: PathBuf,
    home: PathBuf,
    work: Vec<Folder>,
    readable: Vec<Folder>,
    steering: Vec<Folder>,
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
struct Ruling {
    /// Something forbids it.
    deny: Option<Reason>,
    /// It is asked about in every mode.
    firm: Option<Reason>,
    /// It is asked about unless nothing is.
    soft: Option<Reason>,
    /// What allows it.
    by: Option<Reason>,
    /// Whether it only reads.
    reads: bool,
    always: Vec<String>,
    /// What was found about each part of a command.
    steps: Vec<explain::Step>,
}

impl Ruling {
    fn deny(&mut self, reason: Reason) {
        self.deny.get_or_insert(reason);
    }

    fn firm(&mut self, reason: Reason) {
        let firm = true;
        self.firm.get_or_insert(Reason { firm, ..reason });
    }

    fn soft(&mut self, reason: Reason) {
        self.soft.get_or_insert(reason);
    }

    fn allow(&mut self, reason: Reason) {
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

impl Policy {
    /// Makes rules of settings and of `--allowedTools` and `--disallowedTools`.
    pub fn load(
        settings: &Settings,
        ground: Ground,
        mode: Mode,
        allowed: &[String],
        denied: &[String],
    ) -> Result<Policy, Broken> {
        let mut work = vec![Folder::of(&ground.project)];
        work.extend(
            ground
                .dirs
                .iter()
                .map(|dir| Folder::of(&ground.project.join(dir))),
        );
        for (dir, _) in settings.dirs() {
            let place = Place::of(&dir.to_string_lossy(), &ground.project, &ground.home);
            work.push(Folder::of(&place.written));
        }
        let mut policy = Policy {
            mode: Mode::Default,
            rules: Vec::new(),
            root: settings.root().to_path_buf(),
            work,
            readable: ground.readable.iter().map(|dir| Folder::of(dir)).collect(),
            steering: ground.steering.iter().map(|dir| Folder::of(dir)).collect(),
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
        let flags = [(Kind::Deny, denied), (Kind::Allow, allowed)];
        for (kind, texts) in flags {
            if kind == Kind::Allow && policy.only_managed && !texts.is_empty() {
                policy.notes.push(MANAGED.to_owned());
                continue;
            }
            for text in texts {
                policy.take(&policy.spoken(kind, Scope::Flag, text))?;
            }
        }
        if let Err(note) = policy.set_mode(mode) {
            policy.notes.push(note);
        }
        Ok(policy)
    }

    fn spoken(&self, kind: Kind, scope: Scope, text: &str) -> Written {
        Written {
            kind,
            text: text.to_owned(),
            source: Source::spoken(scope),
            base: self.root.clone(),
        }
    }

    /// A rule that allows and is not understood allows nothing; one that denies stops everything.
    fn take(&mut self, written: &Written) -> Result<(), Broken> {
        match Rule::read(written, &self.project, &self.home) {
            Ok(rule) => self.rules.push(rule),
            Err(why) if written.kind == Kind::Allow => {
                self.notes
                    .push(format!("{}: ignored: {why}", written.source));
            }
            Err(why) => return Err(Broken::rule(&written.source, why)),
        }
        Ok(())
    }

    /// The mode it is in.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes the mode, unless somebody forbade it.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), String> {
        if mode == Mode::Bypass && self.no_bypass {
            return Err("settings disable the mode bypassPermissions".to_owned());
        }
        self.mode = mode;
        Ok(())
    }

    /// Allows or denies something, or has it asked, for the rest of the session.
    pub fn add(&mut self, kind: Kind, rule: &str) -> Result<(), String> {
        if self.only_managed {
            return Err(MANAGED.to_owned());
        }
        let written = self.spoken(kind, Scope::Session, rule);
        self.rules
            .push(Rule::read(&written, &self.project, &self.home)?);
        Ok(())
    }

    /// Allows rules of a command's front matter while it runs: a copy with them.
    pub fn with(&self, rules: &[String]) -> Policy {
        let mut more = self.clone();
        for rule in rules {
            if let Err(why) = more.add(Kind::Allow, rule) {
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
        self.work.push(Folder::of(&self.project.join(dir)));
    }

    /// Whether a tool is offered to the model: not if all of it is denied.
    pub fn offers(&self, tool: &str) -> bool {
        !self.rules.iter().any(|rule| {
            rule.kind == Kind::Deny && rule.names(tool) && matches!(rule.what, rule::What::All)
        })
    }

    /// Whether a file must not be read, so that searches leave it out.
    pub fn hides(&self, path: &Path) -> bool {
        // Asked for each file of a search: without rules nothing is looked up.
        if self.rules_of(Kind::Deny, "Read").next().is_none() {
            return false;
        }
        let place = Place::of_tool(&path.to_string_lossy(), &self.project, &self.home);
        self.rules_of(Kind::Deny, "Read")
            .any(|rule| rule.fits_file(&place))
    }

    /// All rules: what they want, as they were written, and where.
    pub fn listed(&self) -> impl Iterator<Item = (Kind, &str, &Source)> {
        let rules = self.rules.iter();
        rules.map(|rule| (rule.kind, rule.text.as_str(), &rule.source))
    }

    /// Whether a rule can be understood, and why not.
    pub fn check(&self, kind: Kind, rule: &str) -> Result<(), String> {
        let written = self.spoken(kind, Scope::Session, rule);
        Rule::read(&written, &self.project, &self.home).map(drop)
    }

    /// Takes the rules of another, which were read anew. What was allowed for this session stays.
    pub fn renew(&mut self, other: &Policy) {
        self.rules
            .retain(|rule| rule.source.scope == Scope::Session);
        self.rules.extend(other.rules.iter().cloned());
    }

    fn rules_of<'a>(&'a self, kind: Kind, tool: &'a str) -> impl Iterator<Item = &'a Rule> {
        self.rules
            .iter()
            .filter(move |rule| rule.kind == kind && rule.names(tool))
    }

    /// Whether a call may run.
    pub fn judge(&self, tool: &str, input: &Value, cwd: &Path) -> Verdict {
        let ruling = self.rule(tool, input, cwd);
        self.finish(ruling, tool, input)
    }

    fn rule(&self, tool: &str, input: &Value, cwd: &Path) -> Ruling {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        match today(tool) {
            "Bash" => {
                let mut ruling = self.rule_bash(text("command").unwrap_or_default(), cwd);
                let leaves = input.get("dangerouslyDisableSandbox") == Some(&Value::Bool(true));
                if self.fenced && leaves {
                    ruling.firm(Reason::new("runs outside the sandbox"));
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

    fn rule_name(&self, tool: &str, name: Option<&str>) -> Ruling {
        let mut ruling = Ruling {
            reads: FREE.contains(&today(tool)) || ["WebFetch", "WebSearch"].contains(&tool),
            ..Ruling::default()
        };
        let fitting = |kind| self.rules_of(kind, tool).find(|rule| rule.fits_name(name));
        if let Some(rule) = fitting(Kind::Deny) {
            ruling.deny(Reason::of("denied by rule", rule));
        }
        if let Some(rule) = fitting(Kind::Ask) {
            ruling.firm(Reason::of("an ask rule matches", rule));
        }
        match fitting(Kind::Allow) {
            Some(rule) => ruling.allow(Reason::of("allowed by rule", rule)),
            None if FREE.contains(&today(tool)) => {
                ruling.allow(Reason::new("only affects the conversation"));
            }
            None => {
                ruling.soft(Reason::new(format!("no rule allows {tool}")));
                ruling.always = vec![tool.to_owned()];
            }
        }
        ruling
    }

    /// The mode has its say.
    fn finish(&self, ruling: Ruling, tool: &str, input: &Value) -> Verdict {
        if let Some(by) = ruling.deny {
            let text = denied(tool, input);
            return Verdict::Deny { by, text };
        }
        if self.mode == Mode::Plan && !ruling.reads {
            let by = Reason::new("plan mode is read-only");
            let text = format!(
                "Permission to use {tool} has been denied: in plan mode only reading is allowed. \
                 Present the plan instead of carrying it out."
            );
            return Verdict::Deny { by, text };
        }
        let ask = match (ruling.firm, ruling.soft) {
            (Some(firm), _) => Some((firm, Vec::new())),
            (None, Some(_)) if self.mode == Mode::Bypass => None,
            (None, Some(soft)) => Some((soft, ruling.always)),
            (None, None) => None,
        };
        let Some((why, always)) = ask else {
            let by = ruling
                .by
                .filter(|_| self.mode != Mode::Bypass)
                .unwrap_or_else(|| Reason::new(format!("permission mode {}", self.mode.name())));
            return Verdict::Allow { by };
        };
        if self.mode == Mode::DontAsk {
            let text = format!(
                "Permission to use {tool} has been denied: it needs approval, and the mode \
                 dontAsk never asks."
            );
            return Verdict::Deny { by: why, text };
        }
        Verdict::Ask {
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
    match today(tool) {
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
    let name = today(tool);
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
