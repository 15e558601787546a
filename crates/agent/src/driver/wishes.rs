//! What a person wants of a session: to say something, to go back, to run a command.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use serde_json::json;
use unspool_model::rewind::files_before;
use unspool_model::write::Entry;

use super::shared::{Message, lock};
use super::{Command, Driver, Notice};
use crate::api::model;
use crate::call::Approval;
use crate::machine::Event;
use crate::record::new_id;
use crate::stop::Stop;
use crate::tool::{Call, Content, Outcome};

impl Driver {
    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Submit { content, context } => self.submit(content, context),
            Command::Interrupt => {
                // A call that is stopped withdraws its question itself; a sub-agent in the
                // background is not stopped, and its question stays.
                self.stop_preparing();
                self.stays = false;
                if let Some((stop, _)) = &self.own {
                    stop.tell();
                }
                self.step(Event::Interrupt);
            }
            Command::Answer { ask, answer } => {
                if let Some(reply) = self.questions.remove(&ask) {
                    let _ = reply.send(answer);
                }
            }
            Command::Mode(mode) => {
                let set = lock(&self.shared.policy).set_mode(mode);
                match set {
                    Ok(()) => self.tell(Notice::Mode(mode)),
                    Err(why) => self.tell(Notice::Warn(why)),
                }
            }
            Command::Rules(fresh) => {
                lock(&self.shared.policy).renew(&fresh);
                if let Some(narrow) = &mut self.narrow {
                    narrow.renew(&fresh);
                }
            }
            Command::Also(kind, rules) => {
                for rule in rules {
                    let added = lock(&self.shared.policy).add(kind, &rule);
                    let narrow = self.narrow.as_mut().map(|narrow| narrow.add(kind, &rule));
                    if let Err(why) = added.and(narrow.unwrap_or(Ok(()))) {
                        self.tell(Notice::Warn(format!("ignored: {why}")));
                    }
                }
            }
            Command::Folders(dirs) => {
                for dir in dirs {
                    lock(&self.shared.policy).add_dir(&dir);
                    if let Some(narrow) = &mut self.narrow {
                        narrow.add_dir(&dir);
                    }
                }
            }
            Command::Model(name) => {
                let name = model::named(&name, &self.shared.prices);
                lock(&self.shared.frame).model.clone_from(&name);
                self.own_model = None;
                self.machine.limits.window = model::window(&name, 0, &self.shared.prices);
                self.tell(Notice::Model(name));
            }
            Command::Compact { words } => {
                self.began = Instant::now();
                self.step(Event::Compact { words });
            }
            Command::Rewind {
                prompt,
                files,
                conversation,
            } => self.rewind(&prompt, files, conversation),
            Command::Shell(command) => self.shell(command),
            Command::Title(title) => drop(self.append(Entry::Title(title))),
            Command::Local { command, output } => {
                let name = command.trim_start_matches('/');
                let called = format!(
                    "<command-name>/{name}</command-name>\n            <command-message>{name}</command-message>\n            <command-args></command-args>"
                );
                let output = format!("<local-command-stdout>{output}</local-command-stdout>");
                for text in [called, output] {
                    if !self.append(Entry::LocalCommand(text)) {
                        break;
                    }
                }
            }
            Command::Close => self.closing = true,
        }
    }

    fn rewind(&mut self, prompt: &str, files: bool, conversation: bool) {
        if !self.is_idle() {
            return self.tell(Notice::Warn(
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
            return self.tell(Notice::Warn(format!("unknown prompt `{prompt}`")));
        };
        if files {
            match kept {
                Some(kept) => {
                    let failed = lock(&self.shared.history).restore(&kept);
                    for why in failed {
                        self.tell(Notice::Warn(format!("not restored: {why}")));
                    }
                }
                None => self.tell(Notice::Warn(
                    "no file backups exist from before that prompt".to_owned(),
                )),
            }
        }
        if conversation {
            let written = self.append(Entry::LastPrompt {
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
        self.tell(Notice::Rewound {
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
            return self.tell(Notice::Warn(
                "a turn is running: wait for it, or interrupt it".to_owned(),
            ));
        }
        let id = new_id();
        let typed = format!("<bash-input>{command}</bash-input>");
        if !self.append(spoken(typed, &id)) {
            return;
        }
        let call = Call {
            id: format!("shell-{id}"),
            name: "Bash".to_owned(),
            input: json!({"command": command}),
        };
        self.tell(Notice::CallBegan(call.clone()));
        let stop = Stop::new();
        self.own = Some((stop.clone(), id));
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            let outcome = crate::call::own(&shared, &call, &stop, Approval::Person);
            shared.send(Message::Shell(call, outcome));
        });
    }

    pub(super) fn shell_done(&mut self, call: Call, outcome: Outcome) {
        let Some((_, id)) = self.own.take() else {
            return;
        };
        let field = |name: &str| outcome.result[name].as_str().map(str::to_owned);
        let (out, error) = match (&outcome.content, field("stdout")) {
            (_, Some(out)) => (out, field("stderr").unwrap_or_default()),
            (Content::Text(text), None) => (String::new(), text.clone()),
            (Content::Blocks(_), None) => Default::default(),
        };
        let text = format!("<bash-stdout>{out}</bash-stdout><bash-stderr>{error}</bash-stderr>");
        self.append(spoken(text, &id));
        self.tell(Notice::CallEnded { call, outcome });
    }
}

/// A line that somebody typed, or that was printed for them.
fn spoken(text: String, id: &str) -> Entry {
    Entry::Prompt {
        content: text.into(),
        id: id.to_owned(),
        mode: None,
        source: None,
    }
}
