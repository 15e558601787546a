//! What a person wants of a session: to say something, to go back, to run a command.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::json;
use unspool_model::entry_writer::NewEntry;
use unspool_model::rewind::files_before;

use super::shared_session::{DriverMessage, lock};
use super::{SessionCommand, SessionDriver, SessionNotice};
use crate::api::model;
use crate::state_machine::TurnEvent;
use crate::stop::StopSignal;
use crate::tool::{ToolCallRequest, ToolContent, ToolOutcome};
use crate::tool_call::CallApproval;
use crate::transcript_writer::new_id;

impl SessionDriver {
    pub(super) fn command(&mut self, command: SessionCommand) {
        match command {
            SessionCommand::Submit { content, context } => self.submit(content, context),
            SessionCommand::Interrupt => {
                // A call that is stopped withdraws its question itself; a sub-agent in the
                // background is not stopped, and its question stays.
                self.stop_preparing();
                self.stays = false;
                if let Some((stop, _)) = &self.own {
                    stop.tell();
                }
                self.step(TurnEvent::Interrupt);
            }
            SessionCommand::Answer { ask, answer } => {
                if let Some(reply) = self.questions.remove(&ask) {
                    let _ = reply.send(answer);
                }
            }
            SessionCommand::Mode(mode) => {
                let set = lock(&self.shared.policy).set_mode(mode);
                match set {
                    Ok(()) => self.tell(SessionNotice::Mode(mode)),
                    Err(why) => self.tell(SessionNotice::Warn(why)),
                }
            }
            SessionCommand::Rules(fresh) => {
                lock(&self.shared.policy).renew(&fresh);
                if let Some(narrow) = &mut self.narrow {
                    narrow.renew(&fresh);
                }
            }
            SessionCommand::Also(kind, rules) => {
                for rule in rules {
                    let added = lock(&self.shared.policy).add(kind, &rule);
                    let narrow = self.narrow.as_mut().map(|narrow| narrow.add(kind, &rule));
                    if let Err(why) = added.and(narrow.unwrap_or(Ok(()))) {
                        self.tell(SessionNotice::Warn(format!("ignored: {why}")));
                    }
                }
            }
            SessionCommand::Folders(dirs) => {
                for dir in dirs {
                    lock(&self.shared.policy).add_dir(&dir);
                    if let Some(narrow) = &mut self.narrow {
                        narrow.add_dir(&dir);
                    }
                }
            }
            SessionCommand::Model(name) => {
                let name = model::named(&name, &self.shared.prices);
                lock(&self.shared.frame).model.clone_from(&name);
                self.own_model = None;
                self.machine.limits.window = model::window(&name, 0, &self.shared.prices);
                self.tell(SessionNotice::Model(name));
            }
            SessionCommand::Compact { words } => {
                self.began = Instant::now();
                self.step(TurnEvent::Compact { words });
            }
            SessionCommand::Rewind {
                prompt,
                files,
                conversation,
            } => self.rewind(&prompt, files, conversation),
            SessionCommand::Shell(command) => self.shell(command),
            SessionCommand::Title(title) => drop(self.append(NewEntry::Title(title))),
            SessionCommand::Local { command, output } => {
                let name = command.trim_start_matches('/');
                let called = format!(
                    "<command-name>/{name}</command-name>\n            <command-message>{name}</command-message>\n            <command-args></command-args>"
                );
                let output = format!("<local-command-stdout>{output}</local-command-stdout>");
                for text in [called, output] {
                    if !self.append(NewEntry::LocalCommand(text)) {
                        break;
                    }
                }
            }
            SessionCommand::Close => self.closing = true,
        }
    }

    fn rewind(&mut self, prompt: &str, files: bool, conversation: bool) {
        if !self.is_idle() {
            return self.tell(SessionNotice::Warn(
                "cannot rewind while a turn is running".to_owned(),
            ));
        }
        let (before, kept, said) = {
            let record = lock(&self.shared.record);
            let loaded = record.loaded();
            let kept =
                loaded.and_then(|loaded| files_before(&loaded.session, &loaded.source, prompt));
            (record.before(prompt), kept, record.said(prompt))
        };
        let Some(parent) = before else {
            return self.tell(SessionNotice::Warn(format!("unknown prompt `{prompt}`")));
        };
        if files {
            match kept {
                Some(kept) => {
                    let failed = lock(&self.shared.history).restore(&kept);
                    for why in failed {
                        self.tell(SessionNotice::Warn(format!("not restored: {why}")));
                    }
                }
                None => self.tell(SessionNotice::Warn(
                    "no file backups exist from before that prompt".to_owned(),
                )),
            }
        }
        if conversation {
            let written = self.append(NewEntry::LastPrompt {
                text: String::new(),
                leaf: parent.clone(),
                explicit: true,
            });
            if !written {
                return;
            }
            let mut record = lock(&self.shared.record);
            record.go_to(parent);
            self.machine.filled = record.filled();
        }
        self.tell(SessionNotice::Rewound {
            prompt: said.unwrap_or_default(),
            files,
            conversation,
        });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.machine.is_idle() && self.own.is_none() && self.preparing.is_none()
    }

    /// Runs a command of the person's own. What it says is there for the model's next answer.
    fn shell(&mut self, command: String) {
        if !self.is_idle() {
            return self.tell(SessionNotice::Warn(
                "a turn is running: wait for it, or interrupt it".to_owned(),
            ));
        }
        let id = new_id();
        let typed = format!("<bash-input>{command}</bash-input>");
        if !self.append(spoken(typed, &id)) {
            return;
        }
        let call = ToolCallRequest {
            id: format!("shell-{id}"),
            name: "Bash".to_owned(),
            input: json!({"command": command}),
        };
        self.tell(SessionNotice::CallBegan(call.clone()));
        let stop = StopSignal::new();
        self.own = Some((stop.clone(), id));
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            let outcome =
                crate::tool_call::run_builtin_tool(&shared, &call, &stop, CallApproval::Person);
            shared.send(DriverMessage::Shell(call, outcome));
        });
    }

    pub(super) fn shell_done(&mut self, call: ToolCallRequest, outcome: ToolOutcome) {
        let Some((_, id)) = self.own.take() else {
            return;
        };
        let field = |name: &str| outcome.result[name].as_str().map(str::to_owned);
        let (out, error) = match (&outcome.content, field("stdout")) {
            (_, Some(out)) => (out, field("stderr").unwrap_or_default()),
            (ToolContent::Text(text), None) => (String::new(), text.clone()),
            (ToolContent::Blocks(_), None) => Default::default(),
        };
        let text = format!("<bash-stdout>{out}</bash-stdout><bash-stderr>{error}</bash-stderr>");
        self.append(spoken(text, &id));
        self.tell(SessionNotice::CallEnded { call, outcome });
    }
}

/// A line that somebody typed, or that was printed for them.
fn spoken(text: String, id: &str) -> NewEntry {
    NewEntry::Prompt {
        content: text.into(),
        id: id.to_owned(),
        mode: None,
        source: None,
    }
}
