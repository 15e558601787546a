//! Hooks: commands that the settings want to be run at certain moments, and what they answer.
//!
//! A hook gets JSON on its standard input. Code 0 is a yes, with JSON or text on its standard
//! output; 2 blocks, with the reason on standard error; anything else is a failure that stops
//! nothing. All hooks of a moment run at once, each in a session of its own without a terminal.

mod hook_process;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;
use unspool_model::hook_events;

use crate::permission::current_tool_name;
use crate::process::hook_guard;
use crate::settings::{SessionSettings, SettingSource, SettingsError};
use crate::stop::StopSignal;
use hook_process::watch;

/// A hook that says nothing about it may take so long.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much a hook may say: this many characters of each text.
pub const LONGEST: usize = 10_000;

/// Moments at which code 2 stops what was about to happen, or is told to the model.
const BLOCKING: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PermissionRequest",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "PreCompact",
];

/// What a hook decides about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDecision {
    /// Run it. Rules that deny or ask still count.
    Allow,
    /// Do not run it.
    Deny,
    /// Ask the person.
    Ask,
}

/// What all hooks of a moment said together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookResults {
    /// Why what was about to happen must not.
    pub block: Option<String>,
    /// A decision about a call; the strictest one.
    pub allow: Option<HookDecision>,
    /// Another input for the call.
    pub updated_input: Option<Value>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// A text for the person.
    pub system_message: Option<String>,
    /// Why all work should end.
    pub stop: Option<String>,
    /// Failures that stop nothing.
    pub errors: Vec<String>,
    /// What ran.
    pub ran: Vec<HookRun>,
}

/// One hook that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    /// Its command.
    pub command: String,
    /// How long it took.
    pub millis: u64,
    /// Its code; none if it was ended or never began.
    pub exit: Option<i32>,
    /// What it wrote, cut.
    pub stdout: String,
    /// What it wrote about failures, cut.
    pub stderr: String,
}

#[derive(Clone, Debug)]
struct HookCommand {
    event: String,
    matcher: HookMatcher,
    command: String,
    timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
enum HookMatcher {
    All,
    Names(Vec<String>),
    Pattern(Regex),
}

/// The hooks of a session.
#[derive(Clone, Debug)]
pub struct SessionHooks {
    hooks: Vec<HookCommand>,
    project: PathBuf,
    shim: Option<PathBuf>,
    /// Variables that the settings give them.
    env: Vec<(String, String)>,
    /// Hooks of kinds that are not known here.
    pub notes: Vec<String>,
}

impl SessionHooks {
    /// Takes the hooks of all settings that count. `shim` is our own program, which takes a hook
    /// away from the terminal; without it a hook only gets a group of its own.
    pub fn load(
        settings: &SessionSettings,
        project: &Path,
        shim: Option<&Path>,
    ) -> Result<SessionHooks, SettingsError> {
        let mut hooks = SessionHooks {
            hooks: Vec::new(),
            project: project.to_path_buf(),
            shim: shim.map(Path::to_path_buf),
            env: settings.variables(),
            notes: Vec::new(),
        };
        for (value, source) in settings.hooks() {
            hooks.take(&value, &source)?;
        }
        Ok(hooks)
    }

    fn take(&mut self, value: &Value, source: &SettingSource) -> Result<(), SettingsError> {
        let wrong = |why: String| SettingsError::rule(source, why);
        let Some(events) = value.as_object() else {
            return Err(wrong("hooks must be an object".to_owned()));
        };
        for (event, groups) in events {
            if !hook_events::is_event(event) {
                self.notes
                    .push(format!("{source}: no client has an event {event}"));
            }
            let Some(groups) = groups.as_array() else {
                return Err(wrong(format!("hooks.{event} must be a list")));
            };
            for group in groups {
                let matcher = match group.get("matcher") {
                    None | Some(Value::Null) => HookMatcher::All,
                    Some(Value::String(text)) => HookMatcher::read(text).map_err(|why| {
                        wrong(format!("hooks.{event}: the matcher {text}: {why}"))
                    })?,
                    Some(_) => {
                        return Err(wrong(format!("hooks.{event}: a matcher must be a string")));
                    }
                };
                let Some(list) = group.get("hooks").and_then(Value::as_array) else {
                    return Err(wrong(format!(
                        "hooks.{event}: a group needs a list of hooks"
                    )));
                };
                for hook in list {
                    self.take_one(event, &matcher, hook, source)?;
                }
            }
        }
        Ok(())
    }

    fn take_one(
        &mut self,
        event: &str,
        matcher: &HookMatcher,
        hook: &Value,
        source: &SettingSource,
    ) -> Result<(), SettingsError> {
        let kind = hook
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("command");
        if kind != "command" {
            // The client runs these as well; here only commands are run.
            let why = match hook_events::TYPES.contains(&kind) {
                true => "are not run here",
                false => "are not known here",
            };
            self.notes
                .push(format!("{source}: hooks of type {kind} {why}"));
            return Ok(());
        }
        let Some(command) = hook.get("command").and_then(Value::as_str) else {
            return Err(SettingsError::rule(
                source,
                format!("hooks.{event}: a hook has no command"),
            ));
        };
        let seconds = hook.get("timeout").and_then(Value::as_f64);
        let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.hooks.push(HookCommand {
            event: event.to_owned(),
            matcher: matcher.clone(),
            command: command.to_owned(),
            timeout,
        });
        Ok(())
    }

    /// Whether any hook waits for a moment.
    pub fn has(&self, event: &str) -> bool {
        self.hooks.iter().any(|hook| hook.event == event)
    }

    /// Runs every hook of a moment and puts together what they say. `about` is what matchers are
    /// compared with: the tool, the source, the trigger.
    pub fn run(
        &self,
        event: &str,
        about: Option<&str>,
        input: &Value,
        stop: &StopSignal,
    ) -> HookResults {
        let mut chosen: Vec<&HookCommand> = Vec::new();
        for hook in &self.hooks {
            let is_new = !chosen.iter().any(|other| other.command == hook.command);
            if hook.event == event && hook.matcher.fits(about) && is_new {
                chosen.push(hook);
            }
        }
        let text = input.to_string();
        let results: Vec<HookExit> = thread::scope(|scope| {
            let running: Vec<_> = chosen
                .iter()
                .map(|hook| scope.spawn(|| self.one(hook, &text, input, stop)))
                .collect();
            let ended = running.into_iter().map(|one| one.join());
            ended.map(|one| one.unwrap_or_default()).collect()
        });
        let mut said = HookResults::default();
        for (hook, ended) in chosen.iter().zip(results) {
            hook.hear(about, ended, &mut said);
        }
        said
    }

    fn one(&self, hook: &HookCommand, text: &str, input: &Value, stop: &StopSignal) -> HookExit {
        let began = Instant::now();
        let mut ended = HookExit::default();
        let cwd = input.get("cwd").and_then(Value::as_str).map(Path::new);
        let cwd = cwd.filter(|cwd| cwd.is_dir()).unwrap_or(&self.project);
        match self.start(&hook.command, cwd) {
            Err(error) => ended.fault = Some(format!("failed to start: {error}")),
            Ok(child) => watch(child, text, hook.patience(), stop, &mut ended),
        }
        ended.millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        ended
    }

    fn start(&self, command: &str, cwd: &Path) -> std::io::Result<Child> {
        use std::os::unix::process::CommandExt;
        let shell = match Path::new("/bin/bash").exists() {
            true => "/bin/bash",
            false => "/bin/sh",
        };
        let mut start = match &self.shim {
            Some(shim) => {
                let mut start = Command::new(shim);
                start.arg(hook_guard::WORD).arg(shell);
                start
            }
            None => {
                let mut start = Command::new(shell);
                start.process_group(0);
                start
            }
        };
        start
            .arg("-c")
            .arg(command)
            .current_dir(cwd)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("CLAUDE_PROJECT_DIR", &self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

impl HookMatcher {
    fn read(text: &str) -> Result<HookMatcher, String> {
        if text.is_empty() || text == "*" {
            return Ok(HookMatcher::All);
        }
        let is_name = |c: char| c.is_alphanumeric() || "_-|, ".contains(c);
        if text.chars().all(is_name) {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned());
            return Ok(HookMatcher::Names(names.collect()));
        }
        Regex::new(text)
            .map(HookMatcher::Pattern)
            .map_err(|_| "not a valid regular expression".to_owned())
    }

    /// Nothing to compare with: every hook of the moment is meant.
    fn fits(&self, about: Option<&str>) -> bool {
        let Some(about) = about else { return true };
        match self {
            HookMatcher::All => true,
            HookMatcher::Names(names) => names
                .iter()
                .any(|name| current_tool_name(name) == current_tool_name(about)),
            HookMatcher::Pattern(pattern) => {
                pattern.is_match(about) || (about == "Agent" && pattern.is_match("Task"))
            }
        }
    }
}

#[derive(Debug, Default)]
struct HookExit {
    millis: u64,
    exit: Option<i32>,
    stdout: String,
    stderr: String,
    fault: Option<String>,
}

impl HookCommand {
    fn patience(&self) -> Duration {
        self.timeout.unwrap_or(match self.event.as_str() {
            // Nobody waits for these.
            "SessionEnd" => Duration::from_millis(1500),
            "UserPromptSubmit" => Duration::from_secs(30),
            _ => PATIENCE,
        })
    }

    fn hear(&self, about: Option<&str>, ended: HookExit, said: &mut HookResults) {
        let name = match about {
            Some(about) => format!("{}:{about}", self.event),
            None => self.event.clone(),
        };
        let told = |text: &str| {
            format!(
                "{name} hook error: [{}]: {}",
                self.command,
                cut(text.trim_end())
            )
        };
        if let Some(fault) = &ended.fault {
            said.errors.push(told(fault));
        } else {
            match ended.exit {
                Some(0) => self.hear_yes(&ended.stdout, &told, said),
                Some(2) if BLOCKING.contains(&self.event.as_str()) => {
                    add(&mut said.block, told(&ended.stderr));
                    if ["PreToolUse", "PermissionRequest"].contains(&self.event.as_str()) {
                        decide(said, HookDecision::Deny);
                    }
                }
                Some(_) | None => said.errors.push(told(&ended.stderr)),
            }
        }
        said.ran.push(HookRun {
            command: self.command.clone(),
            millis: ended.millis,
            exit: ended.exit,
            stdout: cut(&ended.stdout),
            stderr: cut(&ended.stderr),
        });
    }

    fn hear_yes(&self, stdout: &str, told: &dyn Fn(&str) -> String, said: &mut HookResults) {
        let text = stdout.trim();
        if text.starts_with('{') {
            match serde_json::from_str::<Value>(text) {
                Ok(value) => self.hear_json(&value, said),
                Err(error) => said
                    .errors
                    .push(told(&format!("invalid JSON output: {error}"))),
            }
        } else if !text.is_empty()
            && ["SessionStart", "UserPromptSubmit"].contains(&self.event.as_str())
        {
            said.context.push(cut(text));
        }
    }

    fn hear_json(&self, value: &Value, said: &mut HookResults) {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(cut);
        if value.get("continue") == Some(&Value::Bool(false)) {
            let reason =
                text(value, "stopReason").unwrap_or_else(|| "stopped by a hook".to_owned());
            said.stop.get_or_insert(reason);
        }
        if let Some(message) = text(value, "systemMessage") {
            add(&mut said.system_message, message);
        }
        let reason = text(value, "reason");
        let is_call = ["PreToolUse", "PermissionRequest"].contains(&self.event.as_str());
        match value.get("decision").and_then(Value::as_str) {
            Some("block" | "deny") => {
                add(
                    &mut said.block,
                    reason.unwrap_or_else(|| "blocked by a hook".to_owned()),
                );
                if is_call {
                    decide(said, HookDecision::Deny);
                }
            }
            Some("approve" | "allow") if is_call => decide(said, HookDecision::Allow),
            _ => {}
        }
        let Some(own) = value.get("hookSpecificOutput") else {
            return;
        };
        if let Some(context) = text(own, "additionalContext") {
            said.context.push(context);
        }
        // Two events say the same in two shapes.
        let decision = own.get("decision");
        let word = own
            .get("permissionDecision")
            .or_else(|| decision?.get("behavior"))
            .and_then(Value::as_str);
        let why = text(own, "permissionDecisionReason").or_else(|| text(decision?, "message"));
        match word {
            Some("allow") => decide(said, HookDecision::Allow),
            Some("ask") => decide(said, HookDecision::Ask),
            Some("deny") => {
                decide(said, HookDecision::Deny);
                add(
                    &mut said.block,
                    why.unwrap_or_else(|| "denied by a hook".to_owned()),
                );
            }
            _ => {}
        }
        let input = own
            .get("updatedInput")
            .or_else(|| decision?.get("updatedInput"))
            .filter(|input| input.is_object());
        if let (Some(input), None) = (input, &said.updated_input) {
            said.updated_input = Some(input.clone());
        }
    }
}

/// The strictest decision counts.
fn decide(said: &mut HookResults, decision: HookDecision) {
    let weight = |decision: HookDecision| match decision {
        HookDecision::Allow => 0,
        HookDecision::Ask => 1,
        HookDecision::Deny => 2,
    };
    if said.allow.is_none_or(|old| weight(old) < weight(decision)) {
        said.allow = Some(decision);
    }
}

fn add(all: &mut Option<String>, more: String) {
    match all {
        Some(all) => {
            all.push('\n');
            all.push_str(&more);
        }
        None => *all = Some(more),
    }
}

/// At most so many characters, and how many are left out.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}… [{more} characters truncated]", &text[..end])
        }
    }
}

#[cfg(test)]
mod tests;
