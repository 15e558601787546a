//! What happens to a prompt before it is said: commands that somebody wrote are expanded and
//! hooks are heard. That may take long, so it is done beside, and can be stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use jiff::Timestamp;
use serde_json::Value;
use unspool_model::prompt_history;
use unspool_model::time::Time;
use unspool_store::append::TranscriptAppender;

use super::shared_session::{DriverMessage, SharedSession, catch_panic, lock};
use super::{SessionDriver, SessionNotice};
use crate::api::model;
use crate::slash_commands::{CommandTemplate, ExpandedCommand};
use crate::state_machine::{SubmittedPrompt, TurnEndReason, TurnEnding, TurnEvent};
use crate::stop::StopSignal;
use crate::transcript_writer::new_id;

/// Something that is done before anything can be said.
pub(super) struct PromptPreparation {
    number: u64,
    stop: StopSignal,
    /// What somebody wants to say; nothing while the session opens.
    said: Option<Value>,
}

/// What somebody said while something else was prepared.
pub(super) struct WaitingPrompt {
    content: Value,
    context: Vec<String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct PreparedPrompt {
    /// The prompt; `None` when the session has opened.
    prompt: Option<SubmittedPrompt>,
    /// Texts of hooks that ran when the session opened.
    opened: Vec<String>,
    warnings: Vec<String>,
    /// Why it is not said.
    refused: Option<String>,
    expanded: Option<ExpandedCommand>,
    /// Tokens in the context, counted.
    filled: Option<u64>,
}

impl SessionDriver {
    /// Hooks of the session's beginning: what they say goes with the first prompt.
    pub(super) fn open(&mut self) {
        if self.agent.is_some() || !self.shared.hooks.has("SessionStart") {
            return;
        }
        let begins = self.begins;
        self.beside(None, move |shared, stop| {
            let mut input = shared.about("SessionStart");
            input["source"] = begins.into();
            let said = shared.hooks.run("SessionStart", Some(begins), &input, stop);
            let texts = said.context.into_iter().map(|text| {
                format!("<system-reminder>\nSessionStart hook: {text}\n</system-reminder>")
            });
            PreparedPrompt {
                opened: texts.collect(),
                warnings: said.errors.into_iter().chain(said.system_message).collect(),
                ..PreparedPrompt::default()
            }
        });
    }

    /// Does something beside, which [`DriverMessage::Prepared`] ends.
    fn beside(
        &mut self,
        said: Option<Value>,
        work: impl FnOnce(&Arc<SharedSession>, &StopSignal) -> PreparedPrompt + Send + 'static,
    ) {
        self.prepared += 1;
        let (number, stop) = (self.prepared, StopSignal::new());
        self.preparing = Some(PromptPreparation {
            number,
            stop: stop.clone(),
            said,
        });
        let (shared, active) = (Arc::clone(&self.shared), Arc::clone(&self.active));
        active.fetch_add(1, Ordering::AcqRel);
        thread::spawn(move || {
            let prepared = catch_panic(|| work(&shared, &stop)).unwrap_or_default();
            active.fetch_sub(1, Ordering::AcqRel);
            shared.send(DriverMessage::Prepared(number, Box::new(prepared)));
        });
    }

    /// Says something, when it is its turn.
    pub(super) fn submit(&mut self, content: Value, context: Vec<String>) {
        if self.preparing.is_some() {
            self.waiting.push_back(WaitingPrompt { content, context });
            return self.tell_queued();
        }
        self.prepare(content, context);
    }

    fn prepare(&mut self, content: Value, mut context: Vec<String>) {
        if self.machine.is_idle() {
            self.begin_turn();
        }
        if let Some(words) = self.wants_summary(&content) {
            return self.step(TurnEvent::Compact { words });
        }
        self.remember(&content);
        context.append(&mut self.context);
        let mode = match self.agent {
            Some(_) => None,
            None => Some(lock(&self.shared.policy).mode().name().to_owned()),
        };
        let prompt = SubmittedPrompt {
            content,
            id: new_id(),
            mode,
            source: self.source.clone(),
            context,
        };
        let command = self.command_of(&prompt.content);
        let hooks = self.agent.is_none() && self.shared.hooks.has("UserPromptSubmit");
        // A guess is good enough, unless it decides whether a summary is made.
        let limits = &self.machine.limits;
        let close = self.machine.filled.saturating_mul(4) >= limits.full().saturating_mul(3);
        let counts = close && limits.compacts && self.shared.client.counts();
        if command.is_none() && !hooks && !counts {
            return self.step(TurnEvent::Submit(prompt));
        }
        self.beside(Some(prompt.content.clone()), move |shared, stop| {
            let filled = counts.then(|| counted(shared, stop)).flatten();
            let made = made(shared, prompt, command, hooks, stop);
            PreparedPrompt { filled, ..made }
        });
    }

    /// Whether somebody asks for a summary, and what it should be about. On a terminal that is a
    /// command; scripts have only prompts.
    fn wants_summary(&self, content: &Value) -> Option<Option<String>> {
        let rest = content.as_str()?.trim().strip_prefix("/compact")?;
        let ours = rest.is_empty() || rest.starts_with(char::is_whitespace);
        let words = Some(rest.trim().to_owned()).filter(|words| !words.is_empty());
        (ours && self.agent.is_none() && self.machine.is_idle()).then_some(words)
    }

    /// Keeps a prompt in the file of all prompts, if somebody wants that.
    fn remember(&mut self, content: &Value) {
        let (Some(file), Some(text)) = (&self.history, content.as_str()) else {
            return;
        };
        let line = prompt_history::line(&prompt_history::HistoryPrompt {
            text: text.to_owned(),
            pasted: Vec::new(),
            at: Some(Time(Timestamp::now().as_millisecond())),
            project: Some(self.shared.place.project.display().to_string()),
            session: Some(self.shared.session.clone()),
        });
        let added = TranscriptAppender::open(file, false).and_then(|mut file| file.add(&line));
        if let Err(error) = added {
            // One word about it is enough.
            self.history = None;
            self.tell(SessionNotice::Warn(format!(
                "cannot save the prompt history: {error}"
            )));
        }
    }

    /// A slash command that somebody wrote, and what was typed behind its name.
    fn command_of(&self, content: &Value) -> Option<(CommandTemplate, String)> {
        let typed = content.as_str()?.strip_prefix('/')?;
        if self.agent.is_some() {
            return None;
        }
        let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let lore = lock(&self.shared.lore);
        let found = lore.commands.named(name).filter(|one| one.for_person)?;
        Some((found.clone(), arguments.to_owned()))
    }

    /// Something beside has ended: what it was for is said, and then what waits.
    pub(super) fn take_prepared(&mut self, number: u64, prepared: PreparedPrompt) {
        let mine = |preparing: &mut PromptPreparation| preparing.number == number;
        let Some(preparing) = self.preparing.take_if(mine) else {
            return;
        };
        for text in prepared.warnings {
            self.tell(SessionNotice::Warn(text));
        }
        self.context.extend(prepared.opened);
        if let Some(filled) = prepared.filled.filter(|_| self.machine.is_idle()) {
            self.machine.filled = filled;
        }
        match (prepared.prompt, prepared.refused) {
            (Some(prompt), Some(why)) => {
                self.give_back(vec![prompt], TurnEndReason::Hook(why));
            }
            (Some(prompt), None) => {
                if let Some(expanded) = prepared.expanded {
                    self.widen(expanded);
                }
                self.step(TurnEvent::Submit(prompt));
            }
            (None, _) => {
                if let Some(content) = preparing.said {
                    let why = "internal error before the prompt was sent".to_owned();
                    self.give_back(vec![plain(content)], TurnEndReason::Hook(why));
                }
            }
        }
        while self.preparing.is_none()
            && let Some(WaitingPrompt { content, context }) = self.waiting.pop_front()
        {
            self.prepare(content, context);
            self.tell_queued();
        }
    }

    fn tell_queued(&mut self) {
        let count = self.waiting.len() + self.machine.queued();
        self.tell(SessionNotice::Queued(count));
    }

    /// What a command allows and wants, until its turn is over.
    fn widen(&mut self, expanded: ExpandedCommand) {
        if !expanded.allowed_tools.is_empty() {
            let mut policy = lock(&self.shared.policy);
            let wider = policy.with(&expanded.allowed_tools);
            self.narrow
                .get_or_insert(std::mem::replace(&mut policy, wider));
        }
        if let Some(name) = expanded.model {
            let mut frame = lock(&self.shared.frame);
            let before =
                std::mem::replace(&mut frame.model, model::named(&name, &self.shared.prices));
            self.own_model.get_or_insert(before);
        }
    }

    /// Stops what is prepared: nothing of it was said, and it is given back.
    pub(super) fn stop_preparing(&mut self) {
        let mut unsaid: Vec<Value> = Vec::new();
        if let Some(preparing) = self.preparing.take() {
            // Whoever runs there is ended; nobody waits for that.
            preparing.stop.tell();
            unsaid.extend(preparing.said);
        }
        unsaid.extend(self.waiting.drain(..).map(|waiting| waiting.content));
        if unsaid.is_empty() {
            return;
        }
        let prompts = unsaid.into_iter().map(plain);
        self.give_back(prompts.collect(), TurnEndReason::Interrupted);
    }

    /// Tells that prompts were not said: at once, or with the end of the turn that goes on.
    fn give_back(&mut self, prompts: Vec<SubmittedPrompt>, why: TurnEndReason) {
        self.unsaid.extend(prompts);
        if self.machine.is_idle() {
            self.finish(TurnEnding {
                why,
                text: String::new(),
                turns: 0,
                unsaid: Vec::new(),
            });
        }
    }
}

/// A prompt that was not said.
fn plain(content: Value) -> SubmittedPrompt {
    SubmittedPrompt {
        content,
        id: new_id(),
        mode: None,
        source: None,
        context: Vec::new(),
    }
}

/// Tokens of the conversation as it would be sent now.
fn counted(shared: &SharedSession, stop: &StopSignal) -> Option<u64> {
    let ask = {
        let record = lock(&shared.record);
        lock(&shared.frame).ask(&record)
    };
    shared.client.count(&ask?, stop)
}

/// A prompt with all that belongs to it.
fn made(
    shared: &Arc<SharedSession>,
    mut prompt: SubmittedPrompt,
    command: Option<(CommandTemplate, String)>,
    hooks: bool,
    stop: &StopSignal,
) -> PreparedPrompt {
    let mut prepared = PreparedPrompt::default();
    if let Some((template, arguments)) = command {
        match crate::tool_call::expand(shared, &template, &arguments, stop) {
            Ok(mut expanded) => {
                prompt.context.insert(0, std::mem::take(&mut expanded.text));
                prompt.content = called(&template.name, arguments.trim()).into();
                prepared.expanded = Some(expanded);
            }
            Err(why) => {
                prepared.warnings.push(why.clone());
                prepared.refused = Some(why);
                prepared.prompt = Some(prompt);
                return prepared;
            }
        }
    }
    if hooks {
        let mut input = shared.about("UserPromptSubmit");
        input["prompt"] = prompt.text().into();
        let said = shared.hooks.run("UserPromptSubmit", None, &input, stop);
        prepared.warnings.extend(said.errors);
        prepared.warnings.extend(said.system_message);
        if let Some(why) = said.block.or(said.stop) {
            let told = format!("a hook blocked the prompt: {why}");
            prepared.warnings.push(told);
            prepared.refused = Some(why);
        }
        let texts = said.context.into_iter().map(|text| {
            format!("<system-reminder>\nUserPromptSubmit hook: {text}\n</system-reminder>")
        });
        prompt.context.extend(texts);
    }
    prepared.prompt = Some(prompt);
    prepared
}

/// The line of a command that somebody wrote.
fn called(name: &str, arguments: &str) -> String {
    format!(
        "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n<command-args>{arguments}</command-args>"
    )
}
