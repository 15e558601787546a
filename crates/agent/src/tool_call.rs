//! One call from beginning to end: checked, allowed, run, told.
//!
//! Runs on a thread of its own and may wait for a person; whoever stops it gets it back soon.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use unspool_model::entry_writer::NewEntry;
use unspool_model::time::Time;

use crate::api::client::MessagesRequest;
use crate::api::model::{self, ThinkingMode};
use crate::driver::{
    DriverMessage, QuestionAnswer, QuestionKind, SessionCommand, SessionNotice, SharedSession, lock,
};
use crate::hooks::{HookDecision, HookRun};
use crate::mcp_tools::McpTools;
use crate::permission::{PermissionMode, PermissionVerdict};
use crate::settings::RuleKind;
use crate::slash_commands::{CommandTemplate, ExpandedCommand, TemplateCommandRunner};
use crate::state_machine::{REJECTED, TurnHalt};
use crate::stop::StopSignal;
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContent, ToolContext, ToolOutcome};
use crate::tool_host::ToolHost;
use crate::tools::{self, ToolState};
use crate::transcript_writer::new_id;

/// What came of a call.
pub(crate) struct FinishedCall {
    pub(crate) outcome: ToolOutcome,
    pub(crate) halt: TurnHalt,
    /// Texts for the model, behind all results.
    pub(crate) later: Vec<String>,
}

impl FinishedCall {
    fn with(outcome: ToolOutcome) -> FinishedCall {
        FinishedCall {
            outcome,
            halt: TurnHalt::No,
            later: Vec::new(),
        }
    }

    /// The tool itself is at fault.
    pub(crate) fn broken() -> FinishedCall {
        FinishedCall::with(ToolOutcome::failed(
            "The tool crashed. Its work may be incomplete.",
        ))
    }

    fn rejected() -> FinishedCall {
        let mut outcome = ToolOutcome::failed(REJECTED);
        outcome.result = "User rejected tool use".into();
        FinishedCall {
            halt: TurnHalt::Rejected,
            ..FinishedCall::with(outcome)
        }
    }
}

/// Who runs a call.
enum CallRunner {
    Own(&'static dyn BuiltinTool),
    Other(Arc<dyn McpTools>),
}

/// Finds who runs a call, and sees whether its input can be taken.
fn doer(
    shared: &SharedSession,
    call: &mut ToolCallRequest,
) -> Result<CallRunner, Box<ToolOutcome>> {
    if call.name.starts_with("mcp__") {
        let more = shared.more.as_ref().filter(|more| {
            let offers = more.offers();
            offers.iter().any(|offer| offer.name == call.name)
        });
        return more
            .map(|more| CallRunner::Other(Arc::clone(more)))
            .ok_or_else(|| Box::new(tools::unknown(&call.name)));
    }
    let tool = tools::check(&call.name, &mut call.input)?;
    // A sub-agent has no more tools than it was given.
    let given = |frame: &crate::request::RequestOptions| {
        frame.tools.iter().any(|given| given["name"] == tool.name())
    };
    if shared.above.is_some() && tool.is_offered() && !given(&lock(&shared.frame)) {
        return Err(Box::new(tools::unknown(&call.name)));
    }
    Ok(CallRunner::Own(tool))
}

/// Makes a call.
pub(crate) fn run_call(
    shared: &Arc<SharedSession>,
    call: &ToolCallRequest,
    stop: &StopSignal,
) -> FinishedCall {
    let mut call = call.clone();
    let doer = match doer(shared, &mut call) {
        Ok(doer) => doer,
        Err(outcome) => return FinishedCall::with(*outcome),
    };
    let cwd = lock(&shared.cwd).clone();
    let before = before(shared, &mut call, stop);
    let mut later = before.context;
    let allowed = match before.verdict {
        Err(done) => Err(done),
        Ok(decision) => allow(shared, &mut call, decision, &cwd, stop),
    };
    let approval = match allowed {
        Ok(approval) => approval,
        Err(done) => return *done,
    };
    if stop.is_told() {
        return FinishedCall::rejected();
    }
    let host = CallHost {
        shared: Arc::clone(shared),
        call: call.clone(),
        stop: stop.clone(),
        approval,
    };
    let scene = ToolContext {
        cwd,
        stop,
        host: &host,
    };
    let began = Instant::now();
    let outcome = match &doer {
        CallRunner::Own(tool) => tool.run(&call, &scene),
        CallRunner::Other(more) => more.run(&call, stop),
    };
    if call.name == "Read" && outcome.is_error != Some(true) {
        later.extend(nearby(shared, &call));
    }
    let after = after(shared, &call, &outcome, began, stop);
    later.extend(after.later);
    FinishedCall {
        outcome,
        halt: after.halt,
        later,
    }
}

/// Who let a call run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallApproval {
    /// Rules, or a hook: nobody looked at this very call.
    Rules,
    /// A person: they typed it, said yes to it, or chose the mode that asks nothing.
    Person,
}

/// Runs what somebody else let run: nobody is asked.
pub(crate) fn run_builtin_tool(
    shared: &Arc<SharedSession>,
    call: &ToolCallRequest,
    stop: &StopSignal,
    approval: CallApproval,
) -> ToolOutcome {
    let Some(tool) = tools::named(&call.name) else {
        return ToolOutcome::failed(format!("there is no tool {}", call.name));
    };
    let host = CallHost {
        shared: Arc::clone(shared),
        call: call.clone(),
        stop: stop.clone(),
        approval,
    };
    let scene = ToolContext {
        cwd: lock(&shared.cwd).clone(),
        stop,
        host: &host,
    };
    tool.run(call, &scene)
}

/// Instructions that stand beside a file that was read, the first time.
fn nearby(shared: &SharedSession, call: &ToolCallRequest) -> Option<String> {
    let path = call.input["file_path"].as_str()?;
    let mut lore = lock(&shared.lore);
    let roots = lore.roots.clone();
    let known = lore.memory.left_out.len();
    let files = lore.memory.beside(Path::new(path), &roots);
    let left_out = lore.memory.left_out[known..].iter();
    let left_out = left_out.map(|(path, why)| format!("{}: {why}", path.display()));
    warn(shared, left_out.collect(), None);
    let files: Vec<(PathBuf, String)> = files
        .into_iter()
        .map(|file| (file.path, file.text))
        .collect();
    let text = crate::system_prompt::memory_prompt(&files)?;
    Some(format!("<system-reminder>\n{text}\n</system-reminder>"))
}

/// Makes the prompt that a command or skill stands for.
pub(crate) fn expand(
    shared: &Arc<SharedSession>,
    template: &CommandTemplate,
    arguments: &str,
    stop: &StopSignal,
) -> Result<ExpandedCommand, String> {
    let trusted = lock(&shared.lore).trusted;
    let mut runs = AllowedCommandRunner { shared, stop };
    template.expand(arguments, &shared.place.project, trusted, &mut runs)
}

/// Runs commands that stand in a template, if they are allowed without asking.
struct AllowedCommandRunner<'a> {
    shared: &'a Arc<SharedSession>,
    stop: &'a StopSignal,
}

impl TemplateCommandRunner for AllowedCommandRunner<'_> {
    fn run(&mut self, command: &str, allowed_tools: &[String]) -> Result<String, String> {
        let call = ToolCallRequest {
            id: format!("command-{}", new_id()),
            name: "Bash".to_owned(),
            input: json!({"command": command}),
        };
        let cwd = lock(&self.shared.cwd).clone();
        let policy = lock(&self.shared.policy).with(allowed_tools);
        match policy.judge("Bash", &call.input, &cwd) {
            PermissionVerdict::Allow { .. } => {}
            PermissionVerdict::Ask { text, .. } | PermissionVerdict::Deny { text, .. } => {
                return Err(text);
            }
        }
        let outcome = run_builtin_tool(self.shared, &call, self.stop, CallApproval::Rules);
        let text = match &outcome.content {
            ToolContent::Text(text) => text.clone(),
            ToolContent::Blocks(_) => String::new(),
        };
        match outcome.is_error {
            Some(true) => Err(text),
            _ => Ok(text),
        }
    }
}

struct PreToolUseResult {
    verdict: Result<Option<HookDecision>, Box<FinishedCall>>,
    context: Vec<String>,
}

/// What hooks say before a call.
fn before(
    shared: &Arc<SharedSession>,
    call: &mut ToolCallRequest,
    stop: &StopSignal,
) -> PreToolUseResult {
    let mut input = shared.about("PreToolUse");
    input["tool_name"] = call.name.as_str().into();
    input["tool_input"] = call.input.clone();
    input["tool_use_id"] = call.id.as_str().into();
    let said = shared
        .hooks
        .run("PreToolUse", Some(&call.name), &input, stop);
    warn(shared, said.errors, said.system_message);
    note_hooks(shared, "PreToolUse", Some(call), &said.ran);
    if let Some(input) = said.updated_input {
        call.input = input;
    }
    let verdict = match (said.block, said.stop) {
        (_, Some(why)) => Err(Box::new(FinishedCall {
            halt: TurnHalt::Told(why.clone()),
            ..FinishedCall::with(ToolOutcome::failed(why))
        })),
        (Some(why), None) => Err(Box::new(FinishedCall::with(ToolOutcome::failed(why)))),
        (None, None) => Ok(said.allow),
    };
    PreToolUseResult {
        verdict,
        context: said
            .context
            .into_iter()
            .map(|text| reminder("PreToolUse", &text))
            .collect(),
    }
}

struct PostToolUseResult {
    halt: TurnHalt,
    later: Vec<String>,
}

fn after(
    shared: &Arc<SharedSession>,
    call: &ToolCallRequest,
    outcome: &ToolOutcome,
    began: Instant,
    stop: &StopSignal,
) -> PostToolUseResult {
    let event = match outcome.is_error {
        Some(true) => "PostToolUseFailure",
        _ => "PostToolUse",
    };
    let mut input = shared.about(event);
    input["tool_name"] = call.name.as_str().into();
    input["tool_input"] = call.input.clone();
    input["tool_use_id"] = call.id.as_str().into();
    input["tool_response"] = outcome.result.clone();
    input["duration_ms"] = u64::try_from(began.elapsed().as_millis())
        .unwrap_or(0)
        .into();
    let said = shared.hooks.run(event, Some(&call.name), &input, stop);
    warn(shared, said.errors, said.system_message);
    note_hooks(shared, event, Some(call), &said.ran);
    let told = said.block.into_iter().chain(said.context);
    PostToolUseResult {
        halt: said.stop.map_or(TurnHalt::No, TurnHalt::Told),
        later: told.map(|text| reminder(event, &text)).collect(),
    }
}

/// Notes which hooks ran, for a call or at the end of a turn.
pub(crate) fn note_hooks(
    shared: &SharedSession,
    event: &str,
    call: Option<&ToolCallRequest>,
    ran: &[HookRun],
) {
    let name = call.map_or_else(|| event.to_owned(), |call| format!("{event}:{}", call.name));
    let id = call.map_or_else(new_id, |call| call.id.clone());
    for hook in ran {
        let data = json!({
            "type": "hook_progress", "hookEvent": event, "hookName": name,
            "command": hook.command,
        });
        // What cannot be noted is no reason to stop; the next line tells about the disk.
        let _ = shared.add(NewEntry::Progress {
            data,
            call: id.clone(),
            id: id.clone(),
        });
    }
}

fn reminder(event: &str, text: &str) -> String {
    format!("<system-reminder>\n{event} hook: {text}\n</system-reminder>")
}

fn warn(shared: &SharedSession, errors: Vec<String>, message: Option<String>) {
    for text in errors.into_iter().chain(message) {
        shared.send(DriverMessage::Tell(SessionNotice::Warn(text)));
    }
}

/// Whether it may run: what the rules say, then what a person says.
fn allow(
    shared: &Arc<SharedSession>,
    call: &mut ToolCallRequest,
    hook: Option<HookDecision>,
    cwd: &Path,
    stop: &StopSignal,
) -> Result<CallApproval, Box<FinishedCall>> {
    let (verdict, mode) = {
        let policy = lock(&shared.policy);
        (policy.judge(&call.name, &call.input, cwd), policy.mode())
    };
    let (why, always, text) = match (verdict, hook) {
        (PermissionVerdict::Deny { text, .. }, _) => return Err(denied(shared, call, text)),
        (_, Some(HookDecision::Deny)) => {
            let text = "A hook does not allow this call.".to_owned();
            return Err(denied(shared, call, text));
        }
        (PermissionVerdict::Allow { .. }, Some(HookDecision::Ask)) => {
            let text = "A hook wants this call to be asked about, and nobody can be asked.";
            (
                "a hook requires approval".to_owned(),
                Vec::new(),
                text.to_owned(),
            )
        }
        (PermissionVerdict::Allow { .. }, _) if mode == PermissionMode::Bypass => {
            return Ok(CallApproval::Person);
        }
        (PermissionVerdict::Allow { .. }, _) => return Ok(CallApproval::Rules),
        // What a rule or a guard wants asked is asked, whatever a hook allows.
        (PermissionVerdict::Ask { why, .. }, Some(HookDecision::Allow)) if !why.firm => {
            return Ok(CallApproval::Rules);
        }
        (PermissionVerdict::Ask { why, always, text }, _) => (why.to_string(), always, text),
    };
    match requested(shared, call, stop) {
        Some(HookDecision::Allow) => return Ok(CallApproval::Rules),
        Some(HookDecision::Deny) => return Err(denied(shared, call, text)),
        Some(HookDecision::Ask) | None => {}
    }
    if !shared.asks {
        return Err(denied(shared, call, text));
    }
    let what = permission(shared, call, why, always, cwd);
    match ask(shared, call, what, stop) {
        Some(QuestionAnswer::Yes | QuestionAnswer::Value(_)) => Ok(CallApproval::Person),
        Some(QuestionAnswer::Changed(input)) => {
            call.input = input;
            // Another input is another call: what is denied stays denied.
            match lock(&shared.policy).judge(&call.name, &call.input, cwd) {
                PermissionVerdict::Deny { text, .. } => Err(denied(shared, call, text)),
                PermissionVerdict::Allow { .. } | PermissionVerdict::Ask { .. } => {
                    Ok(CallApproval::Person)
                }
            }
        }
        Some(QuestionAnswer::Always(rules)) => {
            // A sub-agent has rules of its own; the session gets them as well.
            if shared.above.is_some() {
                let mut policy = lock(&shared.policy);
                for rule in &rules {
                    if let Err(why) = policy.add(RuleKind::Allow, rule) {
                        shared.send(DriverMessage::Tell(SessionNotice::Warn(why)));
                    }
                }
            }
            let also = SessionCommand::Also(RuleKind::Allow, rules);
            shared.top().send(DriverMessage::Command(also));
            Ok(CallApproval::Person)
        }
        Some(QuestionAnswer::No(Some(reason))) => {
            let text = format!("{REJECTED} The user said: {reason}");
            let mut outcome = ToolOutcome::failed(text);
            outcome.result = "User rejected tool use".into();
            tell_denied(shared, call, reason, true);
            Err(Box::new(FinishedCall::with(outcome)))
        }
        Some(QuestionAnswer::No(None)) => {
            tell_denied(shared, call, REJECTED.to_owned(), true);
            Err(Box::new(FinishedCall::rejected()))
        }
        None => Err(Box::new(FinishedCall::rejected())),
    }
}

/// What hooks say where a person would be asked.
fn requested(
    shared: &SharedSession,
    call: &ToolCallRequest,
    stop: &StopSignal,
) -> Option<HookDecision> {
    if !shared.hooks.has("PermissionRequest") {
        return None;
    }
    let mut input = shared.about("PermissionRequest");
    input["tool_name"] = call.name.as_str().into();
    input["tool_input"] = call.input.clone();
    let said = shared
        .hooks
        .run("PermissionRequest", Some(&call.name), &input, stop);
    warn(shared, said.errors, said.system_message);
    said.allow
}

fn denied(shared: &SharedSession, call: &ToolCallRequest, text: String) -> Box<FinishedCall> {
    tell_denied(shared, call, text.clone(), false);
    Box::new(FinishedCall::with(ToolOutcome::failed(text)))
}

fn tell_denied(shared: &SharedSession, call: &ToolCallRequest, why: String, asked: bool) {
    shared.send(DriverMessage::Tell(SessionNotice::Denied {
        call: call.clone(),
        why,
        asked,
    }));
}

/// What a person is shown who has to allow a call: why it is asked, every command that it runs,
/// and the rules that would save the question.
fn permission(
    shared: &SharedSession,
    call: &ToolCallRequest,
    why: String,
    always: Vec<String>,
    cwd: &Path,
) -> QuestionKind {
    let policy = lock(&shared.policy);
    let command = match call.name.as_str() {
        "Bash" => call.input["command"].as_str(),
        _ => None,
    };
    let parts = command.map_or_else(Vec::new, |command| policy.explain(command, cwd).steps);
    let always = policy.sufficient(&call.name, &call.input, cwd, always);
    QuestionKind::Permission { why, always, parts }
}

/// Asks a person and waits, until there is an answer or somebody stops it.
fn ask(
    shared: &Arc<SharedSession>,
    call: &ToolCallRequest,
    what: QuestionKind,
    stop: &StopSignal,
) -> Option<QuestionAnswer> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let ask = NEXT.fetch_add(1, Ordering::Relaxed);
    let (reply, answers) = channel();
    let top = shared.top();
    top.send(DriverMessage::Ask {
        ask,
        call: call.clone(),
        what,
        agent: shared.agent.clone(),
        reply,
    });
    loop {
        match answers.recv_timeout(Duration::from_millis(25)) {
            Ok(answer) => return Some(answer),
            Err(RecvTimeoutError::Timeout) if !stop.is_told() => {}
            Err(_) => {
                top.send(DriverMessage::Withdraw(ask));
                return None;
            }
        }
    }
}

impl CallHost {
    /// An approved plan is carried out in another mode.
    fn leave_plan(&self, answer: &QuestionAnswer) {
        let wanted = match answer {
            QuestionAnswer::Value(said) => said["mode"].as_str().and_then(PermissionMode::read),
            _ => None,
        };
        let mode = wanted.map_or(PermissionMode::Default, |(mode, _)| mode);
        let set = lock(&self.shared.policy).set_mode(mode);
        self.shared.send(DriverMessage::Tell(match set {
            Ok(()) => SessionNotice::Mode(mode),
            Err(why) => SessionNotice::Warn(why),
        }));
    }
}

/// The session around a call.
struct CallHost {
    shared: Arc<SharedSession>,
    call: ToolCallRequest,
    stop: StopSignal,
    approval: CallApproval,
}

impl ToolHost for CallHost {
    fn project(&self) -> &Path {
        &self.shared.place.project
    }

    fn dirs(&self) -> &[PathBuf] {
        &self.shared.place.dirs
    }

    fn home(&self) -> &Path {
        &self.shared.place.home
    }

    fn beside(&self) -> &Path {
        &self.shared.beside
    }

    fn session(&self) -> &str {
        &self.shared.session
    }

    fn kept(&self) -> Arc<ToolState> {
        Arc::clone(&self.shared.kept)
    }

    fn set_cwd(&self, cwd: PathBuf) {
        lock(&self.shared.record).cwd.clone_from(&cwd);
        *lock(&self.shared.cwd) = cwd;
    }

    fn will_change(&self, path: &Path) -> std::io::Result<()> {
        let top = self.shared.top();
        let message = {
            let record = lock(&self.shared.record);
            let line = record.line_of(&self.call.id);
            line.or_else(|| record.parent().map(str::to_owned))
                .unwrap_or_default()
        };
        let now = Time(Timestamp::now().as_millisecond());
        let entry = lock(&top.history).change(path, &message, now)?;
        if let Some(entry) = entry {
            top.add(entry).map_err(std::io::Error::other)?;
        }
        Ok(())
    }

    fn progress(&self, call: &ToolCallRequest, data: Value) {
        let kind = data["type"]
            .as_str()
            .unwrap_or("progress")
            .replace('_', "-");
        let id = new_id();
        let entry = NewEntry::Progress {
            data: data.clone(),
            call: call.id.clone(),
            id: format!("{kind}-{}", &id[..8]),
        };
        // What cannot be noted is shown all the same; the next line tells about the disk.
        let _ = self.shared.add(entry);
        self.shared
            .send(DriverMessage::Tell(SessionNotice::Progress {
                call: call.id.clone(),
                data,
            }));
    }

    fn before_shell(&self, _call: &ToolCallRequest) -> Vec<std::ffi::OsString> {
        match (&self.shared.fence, std::env::current_exe()) {
            (Some(fence), Ok(program)) => fence.before(&program),
            _ => Vec::new(),
        }
    }

    fn runs_as_typed(&self) -> bool {
        self.approval == CallApproval::Person
    }

    fn env(&self) -> &[(String, String)] {
        &self.shared.env
    }

    fn hides(&self, path: &Path) -> bool {
        lock(&self.shared.policy).hides(path)
    }

    fn agent(&self, call: &ToolCallRequest) -> ToolOutcome {
        crate::sub_agents::run(&self.shared, call, &self.stop)
    }

    fn question(&self, call: &ToolCallRequest) -> ToolOutcome {
        if !self.shared.asks {
            return ToolOutcome::failed(
                "Nobody is here to answer. Decide yourself, and say what you decided.",
            );
        }
        match ask(&self.shared, call, QuestionKind::Question, &self.stop) {
            Some(answer @ (QuestionAnswer::Value(_) | QuestionAnswer::Changed(_))) => {
                let given = match &answer {
                    QuestionAnswer::Value(said) => said.get("answers").unwrap_or(said).as_object(),
                    // Whoever speaks for a program gives the answers with the questions.
                    QuestionAnswer::Changed(input) => input["answers"].as_object(),
                    _ => None,
                };
                let given = given.cloned().unwrap_or_default();
                let told: Vec<String> = given
                    .iter()
                    .map(|(question, answer)| {
                        let answer = answer
                            .as_str()
                            .map_or_else(|| answer.to_string(), str::to_owned);
                        format!("\"{question}\"=\"{answer}\"")
                    })
                    .collect();
                let text = format!(
                    "User has answered your questions: {}. You can now continue with the user's answers in mind.",
                    told.join(", ")
                );
                ToolOutcome::done(
                    text,
                    json!({"questions": call.input["questions"], "answers": given}),
                )
            }
            Some(QuestionAnswer::No(Some(reason))) => {
                ToolOutcome::failed(format!("The user did not answer, and said: {reason}"))
            }
            _ => {
                let mut outcome = ToolOutcome::failed(REJECTED);
                outcome.result = "User rejected tool use".into();
                outcome
            }
        }
    }

    fn plan(&self, call: &ToolCallRequest) -> ToolOutcome {
        if !self.shared.asks {
            return ToolOutcome::failed(
                "Nobody is here to approve the plan. Give it as your answer.",
            );
        }
        let answer = ask(&self.shared, call, QuestionKind::Plan, &self.stop);
        let approved = match &answer {
            Some(QuestionAnswer::Value(said)) => said["approved"] != false,
            Some(QuestionAnswer::Yes | QuestionAnswer::Always(_) | QuestionAnswer::Changed(_)) => {
                true
            }
            Some(QuestionAnswer::No(_)) | None => false,
        };
        match answer {
            Some(said) if approved => {
                self.leave_plan(&said);
                let plan = call.input["plan"].as_str().unwrap_or_default();
                let text = format!(
                    "User has approved your plan. Carry it out.\n\n## Approved Plan:\n{plan}"
                );
                ToolOutcome::done(
                    text,
                    json!({"plan": plan, "isAgent": self.shared.above.is_some()}),
                )
            }
            Some(QuestionAnswer::No(Some(reason))) => {
                ToolOutcome::failed(format!("The user wants the plan changed: {reason}"))
            }
            _ => {
                let mut outcome = ToolOutcome::failed(REJECTED);
                outcome.result = "User rejected tool use".into();
                outcome
            }
        }
    }

    fn small_model(&self, prompt: &str) -> Result<String, String> {
        let ask = plain(model::small(&self.shared.prices), prompt, 4_096);
        let (blocks, message) = self
            .shared
            .client
            .collect(ask, &self.stop)
            .map_err(|trouble| trouble.message)?;
        lock(&self.shared.top().spent).add(&message.model, &message.usage, &self.shared.prices);
        Ok(blocks
            .iter()
            .filter_map(|block| block.json["text"].as_str())
            .collect())
    }

    fn count(&self, text: &str) -> Option<u64> {
        let model = lock(&self.shared.frame).model.clone();
        let ask = plain(model, text, 1);
        self.shared.client.count(&ask, &self.stop)
    }

    fn web_search(&self, call: &ToolCallRequest) -> Result<Vec<Value>, String> {
        let field = |name: &str| call.input[name].as_str().unwrap_or_default();
        let model = lock(&self.shared.frame).model.clone();
        let prompt = format!("Search the web for: {}", field("query"));
        let mut tool = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8});
        for list in ["allowed_domains", "blocked_domains"] {
            if call.input[list]
                .as_array()
                .is_some_and(|domains| !domains.is_empty())
            {
                tool[list] = call.input[list].clone();
            }
        }
        let mut all = Vec::new();
        let mut messages = vec![json!({"role": "user", "content": prompt})];
        // The API may pause and wants its own words back to go on.
        for _ in 0..8 {
            let mut ask = plain(model.clone(), "", 8_192);
            ask.messages = Value::Array(messages.clone()).to_string();
            ask.tools = vec![tool.clone()];
            let (blocks, message) = self
                .shared
                .client
                .collect(ask, &self.stop)
                .map_err(|trouble| trouble.message)?;
            lock(&self.shared.top().spent).add(&message.model, &message.usage, &self.shared.prices);
            let said: Vec<Value> = blocks.into_iter().map(|block| block.json).collect();
            all.extend(said.iter().cloned());
            if message.stop.as_deref() != Some("pause_turn") {
                break;
            }
            messages.push(json!({"role": "assistant", "content": said}));
        }
        Ok(all)
    }

    fn skill(&self, name: &str, arguments: &str) -> Result<String, String> {
        let found = {
            let lore = lock(&self.shared.lore);
            lore.commands
                .named(name)
                .filter(|one| one.for_model)
                .cloned()
        };
        let template = found.ok_or_else(|| format!("Unknown skill: {name}"))?;
        expand(&self.shared, &template, arguments, &self.stop).map(|done| done.text)
    }
}

/// A question without a conversation.
fn plain(model: String, prompt: &str, most: u64) -> MessagesRequest {
    MessagesRequest {
        model,
        most,
        thinking: ThinkingMode::Off,
        effort: None,
        system: Vec::new(),
        tools: Vec::new(),
        messages: json!([{"role": "user", "content": prompt}]).to_string(),
        more: Map::new(),
        betas: Vec::new(),
    }
}

/// The words of a content.
pub(crate) fn content_text(content: &ToolContent) -> String {
    match content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Texts of content blocks.
pub(crate) fn blocks(texts: &[String]) -> ToolContent {
    let blocks = texts
        .iter()
        .map(|text| json!({"type": "text", "text": text}));
    ToolContent::Blocks(blocks.collect())
}
