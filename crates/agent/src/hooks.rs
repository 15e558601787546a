//! Hooks: commands that the settings want to be run at certain moments, and what they answer.
//!
//! A hook gets JSON on its standard input. Code 0 is a yes, with JSON or text on its standard
//! output; 2 blocks, with the reason on standard error; anything else is a failure that stops
//! nothing. All hooks of a moment run at once, each in a session of its own without a terminal.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use crate::permission::today;
use crate::sandbox;
use crate::settings::{Broken, Settings, Source};
use crate::stop::Stop;

/// A hook that says nothing about it may take so long.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much a hook may say: this many characters of each text.
pub const LONGEST: usize = 10_000;

/// What is read of a hook's output; the rest is passed over.
const READ: u64 = 1 << 20;

/// How long a hook that was asked to end may take.
const GRACE: Duration = Duration::from_millis(500);

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
pub enum Decision {
    /// Run it. Rules that deny or ask still count.
    Allow,
    /// Do not run it.
    Deny,
    /// Ask the person.
    Ask,
}

/// What all hooks of a moment said together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Why what was about to happen must not.
    pub block: Option<String>,
    /// A decision about a call; the strictest one.
    pub allow: Option<Decision>,
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
    pub ran: Vec<Ran>,
}

/// One hook that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
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
struct Hook {
    event: String,
    matcher: Matcher,
    command: String,
    timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Matcher {
    All,
    Names(Vec<String>),
    Pattern(Regex),
}

/// The hooks of a session.
#[derive(Clone, Debug)]
pub struct Hooks {
    hooks: Vec<Hook>,
    project: PathBuf,
    shim: Option<PathBuf>,
    /// Hooks of kinds that are not known here.
    pub notes: Vec<String>,
}

impl Hooks {
    /// Takes the hooks of all settings that count. `shim` is our own program, which takes a hook
    /// away from the terminal; without it a hook only gets a group of its own.
    pub fn load(settings: &Settings, project: &Path, shim: Option<&Path>) -> Result<Hooks, Broken> {
        let mut hooks = Hooks {
            hooks: Vec::new(),
            project: project.to_path_buf(),
            shim: shim.map(Path::to_path_buf),
            notes: Vec::new(),
        };
        for (value, source) in settings.hooks() {
            hooks.take(&value, &source)?;
        }
        Ok(hooks)
    }

    fn take(&mut self, value: &Value, source: &Source) -> Result<(), Broken> {
        let wrong = |why: String| Broken::rule(source, why);
        let Some(events) = value.as_object() else {
            return Err(wrong("hooks should be an object".to_owned()));
        };
        for (event, groups) in events {
            let Some(groups) = groups.as_array() else {
                return Err(wrong(format!("hooks.{event} should be a list")));
            };
            for group in groups {
                let matcher = match group.get("matcher") {
                    None | Some(Value::Null) => Matcher::All,
                    Some(Value::String(text)) => Matcher::read(text).map_err(|why| {
                        wrong(format!("hooks.{event}: the matcher {text}: {why}"))
                    })?,
                    Some(_) => return Err(wrong(format!("hooks.{event}: a matcher is a string"))),
                };
                let Some(list) = group.get("hooks").and_then(Value::as_array) else {
                    return Err(wrong(format!(
                        "hooks.{event}: a group has no list of hooks"
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
        matcher: &Matcher,
        hook: &Value,
        source: &Source,
    ) -> Result<(), Broken> {
        let kind = hook
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("command");
        if kind != "command" {
            self.notes
                .push(format!("{source}: hooks of type {kind} are not known here"));
            return Ok(());
        }
        let Some(command) = hook.get("command").and_then(Value::as_str) else {
            return Err(Broken::rule(
                source,
                format!("hooks.{event}: a hook has no command"),
            ));
        };
        let seconds = hook.get("timeout").and_then(Value::as_f64);
        let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.hooks.push(Hook {
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
    pub fn run(&self, event: &str, about: Option<&str>, input: &Value, stop: &Stop) -> Said {
        let mut chosen: Vec<&Hook> = Vec::new();
        for hook in &self.hooks {
            let is_new = !chosen.iter().any(|other| other.command == hook.command);
            if hook.event == event && hook.matcher.fits(about) && is_new {
                chosen.push(hook);
            }
        }
        let text = input.to_string();
        let results: Vec<Ended> = thread::scope(|scope| {
            let running: Vec<_> = chosen
                .iter()
                .map(|hook| scope.spawn(|| self.one(hook, &text, input, stop)))
                .collect();
            let ended = running.into_iter().map(|one| one.join());
            ended.map(|one| one.unwrap_or_default()).collect()
        });
        let mut said = Said::default();
        for (hook, ended) in chosen.iter().zip(results) {
            hook.hear(about, ended, &mut said);
        }
        said
    }

    fn one(&self, hook: &Hook, text: &str, input: &Value, stop: &Stop) -> Ended {
        let began = Instant::now();
        let mut ended = Ended::default();
        let cwd = input.get("cwd").and_then(Value::as_str).map(Path::new);
        let cwd = cwd.filter(|cwd| cwd.is_dir()).unwrap_or(&self.project);
        match self.start(&hook.command, cwd) {
            Err(error) => ended.fault = Some(format!("it could not be started: {error}")),
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
                start.arg(sandbox::ALONE).arg(shell);
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
            .env("CLAUDE_PROJECT_DIR", &self.project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

impl Matcher {
    fn read(text: &str) -> Result<Matcher, String> {
        if text.is_empty() || text == "*" {
            return Ok(Matcher::All);
        }
        let is_name = |c: char| c.is_alphanumeric() || "_-|, ".contains(c);
        if text.chars().all(is_name) {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned());
            return Ok(Matcher::Names(names.collect()));
        }
        Regex::new(text)
            .map(Matcher::Pattern)
            .map_err(|_| "this is not a pattern".to_owned())
    }

    /// Nothing to compare with: every hook of the moment is meant.
    fn fits(&self, about: Option<&str>) -> bool {
        let Some(about) = about else { return true };
        match self {
            Matcher::All => true,
            Matcher::Names(names) => names.iter().any(|name| today(name) == today(about)),
            Matcher::Pattern(pattern) => {
                pattern.is_match(about) || (about == "Agent" && pattern.is_match("Task"))
            }
        }
    }
}

#[derive(Debug, Default)]
struct Ended {
    millis: u64,
    exit: Option<i32>,
    stdout: String,
    stderr: String,
    fault: Option<String>,
}

impl Hook {
    fn patience(&self) -> Duration {
        self.timeout.unwrap_or(match self.event.as_str() {
            // Nobody waits for these.
            "SessionEnd" => Duration::from_millis(1500),
            "UserPromptSubmit" => Duration::from_secs(30),
            _ => PATIENCE,
        })
    }

    fn hear(&self, about: Option<&str>, ended: Ended, said: &mut Said) {
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
                        decide(said, Decision::Deny);
                    }
                }
                Some(_) | None => said.errors.push(told(&ended.stderr)),
            }
        }
        said.ran.push(Ran {
            command: self.command.clone(),
            millis: ended.millis,
            exit: ended.exit,
            stdout: cut(&ended.stdout),
            stderr: cut(&ended.stderr),
        });
    }

    fn hear_yes(&self, stdout: &str, told: &dyn Fn(&str) -> String, said: &mut Said) {
        let text = stdout.trim();
        if text.starts_with('{') {
            match serde_json::from_str::<Value>(text) {
                Ok(value) => self.hear_json(&value, said),
                Err(error) => said
                    .errors
                    .push(told(&format!("its JSON is broken: {error}"))),
            }
        } else if !text.is_empty()
            && ["SessionStart", "UserPromptSubmit"].contains(&self.event.as_str())
        {
            said.context.push(cut(text));
        }
    }

    fn hear_json(&self, value: &Value, said: &mut Said) {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(cut);
        if value.get("continue") == Some(&Value::Bool(false)) {
            let reason =
                text(value, "stopReason").unwrap_or_else(|| "a hook ended the work".to_owned());
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
                    reason.unwrap_or_else(|| "a hook blocked it".to_owned()),
                );
                if is_call {
                    decide(said, Decision::Deny);
                }
            }
            Some("approve" | "allow") if is_call => decide(said, Decision::Allow),
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
            Some("allow") => decide(said, Decision::Allow),
            Some("ask") => decide(said, Decision::Ask),
            Some("deny") => {
                decide(said, Decision::Deny);
                add(
                    &mut said.block,
                    why.unwrap_or_else(|| "a hook denied it".to_owned()),
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
fn decide(said: &mut Said, decision: Decision) {
    let weight = |decision: Decision| match decision {
        Decision::Allow => 0,
        Decision::Ask => 1,
        Decision::Deny => 2,
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
            format!("{}… [{more} characters left out]", &text[..end])
        }
    }
}

/// Sees a hook to its end.
fn watch(mut child: Child, text: &str, patience: Duration, stop: &Stop, ended: &mut Ended) {
    let (mut input, stdout, stderr) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = text.to_owned();
    // A hook that reads nothing must not hold us up.
    thread::spawn(move || {
        if let Some(input) = &mut input {
            let _ = input.write_all(text.as_bytes());
        }
    });
    let (stdout, stderr) = (read(stdout), read(stderr));
    let end = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) => {}
            Err(_) => break None,
        }
        let left = end.saturating_duration_since(Instant::now());
        if stop.is_told() || left.is_zero() {
            finish(&mut child);
            ended.fault = Some(match stop.is_told() {
                true => "it was ended, because all work was".to_owned(),
                false => format!(
                    "it took longer than {} s and was ended",
                    patience.as_secs_f64()
                ),
            });
            break None;
        }
        stop.wait(left.min(Duration::from_millis(5)));
    };
    ended.exit = status.and_then(|status| status.code());
    ended.stdout = heard(&stdout);
    ended.stderr = heard(&stderr);
}

/// Ends a hook and its group: first it is asked.
fn finish(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if matches!(child.try_wait(), Ok(Some(_))) {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    // Whoever stayed in the group is ended with it.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads in a thread, so that two full pipes do not wait for each other.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut pipe = pipe;
            let mut buffer = vec![0; 16 << 10];
            let mut left = READ;
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let keep = count.min(usize::try_from(left).unwrap_or(usize::MAX));
                left -= keep as u64;
                if keep > 0 && send.send(buffer[..keep].to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    receive
}

/// What was read. Something a hook left running may hold its output open; nobody waits for that.
fn heard(pipe: &Receiver<Vec<u8>>) -> String {
    let mut bytes = Vec::new();
    while let Ok(more) = pipe.recv_timeout(Duration::from_millis(200)) {
        bytes.extend(more);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Places;
    use serde_json::json;

    struct World {
        temp: tempfile::TempDir,
    }

    impl World {
        fn new() -> World {
            World {
                temp: tempfile::tempdir().unwrap(),
            }
        }

        fn load(&self, hooks: Value) -> Result<Hooks, Broken> {
            let places = Places {
                user: self.temp.path().join("config"),
                managed: self.temp.path().join("managed.json"),
                project: self.temp.path().to_path_buf(),
                given: Some(json!({ "hooks": hooks }).to_string()),
            };
            let settings = Settings::load(&places).unwrap();
            Hooks::load(&settings, self.temp.path(), None)
        }

        fn run(&self, event: &str, commands: &[&str]) -> Said {
            let hooks: Vec<Value> = commands
                .iter()
                .map(|command| json!({"type": "command", "command": command}))
                .collect();
            let hooks = self.load(json!({ event: [{"hooks": hooks}] })).unwrap();
            let input = json!({"hook_event_name": event, "cwd": self.temp.path()});
            hooks.run(event, None, &input, &Stop::new())
        }
    }

    #[test]
    fn a_hook_gets_the_event_on_its_standard_input() {
        let said = World::new().run("UserPromptSubmit", &["cat | tr -d '{}'"]);
        assert!(said.context[0].contains("\"hook_event_name\":\"UserPromptSubmit\""));
    }

    #[test]
    fn code_two_blocks_with_the_reason_on_standard_error() {
        let world = World::new();
        let hooks = world
            .load(json!({"PreToolUse": [{"matcher": "Bash", "hooks": [
                {"type": "command", "command": "echo no >&2; exit 2"}]}]}))
            .unwrap();
        let said = hooks.run("PreToolUse", Some("Bash"), &json!({}), &Stop::new());
        assert_eq!(
            said.block.as_deref(),
            Some("PreToolUse:Bash hook error: [echo no >&2; exit 2]: no")
        );
        assert_eq!(said.allow, Some(Decision::Deny));
    }

    #[test]
    fn code_two_stops_nothing_where_nothing_can_be_stopped() {
        let said = World::new().run("Notification", &["exit 2"]);
        assert_eq!((said.block, said.errors.len()), (None, 1));
    }

    #[test]
    fn any_other_code_is_told_and_stops_nothing() {
        let said = World::new().run("PreToolUse", &["echo bad >&2; exit 1", "/does/not/exist"]);
        assert_eq!((said.block, said.allow, said.errors.len()), (None, None, 2));
        assert!(said.errors[0].ends_with("]: bad"));
    }

    #[test]
    fn json_decides_changes_and_adds() {
        let answer = json!({"systemMessage": "hello", "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow",
            "updatedInput": {"command": "ls"}, "additionalContext": "more"}});
        let said = World::new().run("PreToolUse", &[&format!("echo '{answer}'")]);
        assert_eq!(said.allow, Some(Decision::Allow));
        assert_eq!(said.updated_input, Some(json!({"command": "ls"})));
        assert_eq!(said.context, ["more"]);
        assert_eq!(said.system_message.as_deref(), Some("hello"));
    }

    #[test]
    fn a_hook_can_end_all_work() {
        let said = World::new().run(
            "Stop",
            &[r#"echo '{"continue": false, "stopReason": "enough"}'"#],
        );
        assert_eq!(said.stop.as_deref(), Some("enough"));
    }

    #[test]
    fn the_strictest_of_several_hooks_counts() {
        let decide = |word: &str| {
            format!(
                r#"echo '{{"hookSpecificOutput": {{"permissionDecision": "{word}", "permissionDecisionReason": "r"}}}}'"#
            )
        };
        let (allow, ask, deny) = (decide("allow"), decide("ask"), decide("deny"));
        let world = World::new();
        assert_eq!(
            world.run("PreToolUse", &[&allow, &ask]).allow,
            Some(Decision::Ask)
        );
        let said = world.run("PreToolUse", &[&deny, &allow, &ask]);
        assert_eq!(
            (said.allow, said.block.as_deref()),
            (Some(Decision::Deny), Some("r"))
        );
    }

    #[test]
    fn a_request_for_permission_is_answered_in_its_own_shape() {
        let answer =
            json!({"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not now"}}});
        let said = World::new().run("PermissionRequest", &[&format!("echo '{answer}'")]);
        assert_eq!(
            (said.allow, said.block.as_deref()),
            (Some(Decision::Deny), Some("not now"))
        );
    }

    #[test]
    fn plain_text_reaches_the_model_only_where_it_should() {
        let world = World::new();
        assert_eq!(world.run("SessionStart", &["echo hi"]).context, ["hi"]);
        assert!(world.run("PostToolUse", &["echo hi"]).context.is_empty());
        let said = world.run("SessionStart", &["echo '{broken'"]);
        assert_eq!((said.context.len(), said.errors.len()), (0, 1));
    }

    #[test]
    fn the_same_command_runs_once_and_several_run_at_once() {
        let world = World::new();
        let folder = world.temp.path().display().to_string();
        // Each ends well only if it meets the other.
        let meets = |own: &str, other: &str| {
            format!(
                "cd '{folder}'; : > {own}; for i in $(seq 600); do [ -e {other} ] && exit 0; sleep 0.1; done; exit 1"
            )
        };
        let (one, other) = (meets("one", "other"), meets("other", "one"));
        let said = world.run("Stop", &["true", "true", &one, &other]);
        let exits: Vec<Option<i32>> = said.ran.iter().map(|ran| ran.exit).collect();
        assert_eq!(exits, [Some(0); 3]);
    }

    #[test]
    fn a_matcher_is_a_list_of_names_or_a_pattern() {
        let fits = |matcher: &str, about: &str| Matcher::read(matcher).unwrap().fits(Some(about));
        assert!(fits("Edit|Write", "Write") && !fits("Edit|Write", "NotebookWrite"));
        assert!(fits("", "x") && fits("*", "x"));
        assert!(fits("Notebook.*", "NotebookEdit") && fits("mcp__.*__write", "mcp__a__write"));
        assert!(fits("Task", "Agent"));
        assert!(Matcher::read("(").is_err());
    }

    /// How many processes have this among their arguments.
    fn alive(mark: &str) -> usize {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .filter(|line| String::from_utf8_lossy(line).contains(mark))
            .count()
    }

    /// A number of seconds that nobody else sleeps.
    fn mark(number: u32) -> String {
        format!("8{number}.{}", std::process::id())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_hook_that_takes_too_long_is_ended_with_its_group_and_blocks_nothing() {
        let (world, mark) = (World::new(), mark(1));
        let command = format!("sleep {mark} & sleep {mark}");
        let hooks = world
            .load(json!({"PreToolUse": [{"hooks": [
                {"type": "command", "command": command, "timeout": 0.2}]}]}))
            .unwrap();
        let said = hooks.run("PreToolUse", None, &json!({}), &Stop::new());
        assert_eq!((said.block, said.errors.len()), (None, 1));
        let end = Instant::now() + Duration::from_secs(60);
        while alive(&mark) > 0 {
            assert!(Instant::now() < end, "it runs on");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_hook_ends_when_all_work_does() {
        let world = World::new();
        let hooks = world
            .load(json!({"Stop": [{"hooks": [{"type": "command", "command": "sleep 600"}]}]}))
            .unwrap();
        let stop = Stop::new();
        let other = stop.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            other.tell();
        });
        let said = hooks.run("Stop", None, &json!({}), &stop);
        assert_eq!(said.errors.len(), 1);
    }

    #[test]
    fn what_a_hook_says_is_cut_and_much_output_does_not_hold_it_up() {
        let said = World::new().run("SessionStart", &["head -c 5000000 /dev/zero | tr '\\0' x"]);
        assert_eq!(said.ran[0].exit, Some(0));
        assert!(said.context[0].chars().count() < LONGEST + 60);
        assert!(said.context[0].ends_with("characters left out]"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_hook_that_reads_nothing_and_leaves_something_running_holds_nobody_up() {
        let (world, mark) = (World::new(), mark(2));
        let command = format!("sleep {mark} & exit 0");
        let hooks = world
            .load(json!({"Stop": [{"hooks": [{"type": "command", "command": command}]}]}))
            .unwrap();
        let input = json!({"text": "x".repeat(1 << 20)});
        let said = hooks.run("Stop", None, &input, &Stop::new());
        assert_eq!(said.ran[0].exit, Some(0));
        assert_eq!(alive(&mark), 1, "nobody waited for it");
    }

    #[test]
    fn hooks_of_the_wrong_shape_are_an_error() {
        let world = World::new();
        for hooks in [
            json!([]),
            json!({"Stop": {}}),
            json!({"Stop": [{"matcher": "("  , "hooks": []}]}),
            json!({"Stop": [{"hooks": [{"type": "command"}]}]}),
            json!({"Stop": [{}]}),
        ] {
            assert!(world.load(hooks.clone()).is_err(), "{hooks}");
        }
        let other = world
            .load(json!({"Stop": [{"hooks": [{"type": "prompt"}]}]}))
            .unwrap();
        assert_eq!((other.notes.len(), other.has("Stop")), (1, false));
    }
}
