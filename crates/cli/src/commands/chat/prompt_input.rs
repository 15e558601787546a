//! What goes in: a prompt, what is piped in, or a stream of JSON lines.

use std::io::{BufRead, IsTerminal, Read};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::{Value, json};
use unspool_agent::api::model::{self, FAMILIES};
use unspool_agent::driver::{QuestionAnswer, SessionCommand, SessionCommandSender, SessionSetup};
use unspool_agent::permission::PermissionMode;
use unspool_show::clean;

use super::permission_rules::SessionPermissionRules;
use super::{ChatArgs, ChatInputFormat};
use crate::commands::chat::chat_output;
use crate::failure::CommandFailure;
use crate::ui;

/// So much may be piped in.
const MOST: u64 = 10 << 20;

/// How long to wait for something that is piped in beside the prompt.
const PIPED: Duration = Duration::from_secs(3);

/// What goes in.
pub enum ChatInput {
    /// One prompt.
    Prompt(String),
    /// One JSON object per line, until there are no more.
    Stream,
}

/// What is told to whoever controls us, and what they may change.
pub struct ChatControl {
    about: Value,
    rules: SessionPermissionRules,
}

impl ChatControl {
    /// For a session that is about to begin.
    pub fn new(setup: &SessionSetup, rules: SessionPermissionRules) -> ChatControl {
        let commands = setup.lore.commands.list.iter();
        let commands = commands
            .filter(|command| command.for_person)
            .map(|command| {
                json!({
                    "name": command.name, "description": command.description,
                    "argumentHint": command.hint.as_deref().unwrap_or_default(),
                })
            });
        let compact = json!({
            "name": "compact", "description": "Replace the conversation with a summary",
            "argumentHint": "[instructions for the summary]",
        });
        let agents = setup.lore.agents.list.iter();
        let agents =
            agents.map(|agent| json!({"name": agent.name, "description": agent.description}));
        let models = FAMILIES.map(|family| {
            json!({"value": family, "displayName": family, "description": model::named(family, &setup.prices)})
        });
        let about = json!({
            "commands": std::iter::once(compact).chain(commands).collect::<Vec<_>>(),
            "agents": agents.collect::<Vec<_>>(), "models": models,
            "output_style": "default", "available_output_styles": ["default"],
            "account": {}, "pid": std::process::id(),
        });
        ChatControl { about, rules }
    }
}

impl ChatInput {
    /// What the arguments and standard input say.
    pub fn read(args: &ChatArgs) -> Result<ChatInput, CommandFailure> {
        if args.input_format == ChatInputFormat::StreamJson {
            return Ok(ChatInput::Stream);
        }
        let piped = piped(args.prompt.is_some())?;
        let parts = [piped.as_deref(), args.prompt.as_deref()];
        let parts: Vec<&str> = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.trim().is_empty())
            .collect();
        if parts.is_empty() {
            return Err(CommandFailure::failed("no prompt")
                .hint("pass a prompt, as in `unspool chat -p \"…\"`, or pipe one in"));
        }
        Ok(ChatInput::Prompt(parts.join("\n\n")))
    }

    /// Hands it to the session.
    pub fn feed(self, remote: SessionCommandSender, desk: ChatControl) {
        match self {
            ChatInput::Prompt(text) => {
                submit(Value::String(text), &remote);
                remote.send(SessionCommand::Close);
            }
            ChatInput::Stream => {
                std::thread::spawn(move || {
                    let lines = std::io::stdin().lock().lines();
                    for line in lines.map_while(Result::ok) {
                        if let Ok(value) = serde_json::from_str(&line) {
                            take(&value, &remote, &desk);
                        } else if !line.trim().is_empty() {
                            ui::say("Warning: skipping an input line that is not JSON");
                        }
                    }
                    remote.send(SessionCommand::Close);
                });
            }
        }
    }
}

/// What stands in standard input. Beside a prompt it is not waited for without end: some
/// programs leave it open and never write.
fn piped(optional: bool) -> Result<Option<String>, CommandFailure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let (sender, read) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let result = std::io::stdin()
            .lock()
            .take(MOST + 1)
            .read_to_end(&mut bytes);
        let _ = sender.send(result.map(|_| bytes));
    });
    let result = if optional {
        match read.recv_timeout(PIPED) {
            Ok(result) => result,
            Err(_) => return Ok(None),
        }
    } else {
        match read.recv() {
            Ok(result) => result,
            Err(_) => return Ok(None),
        }
    };
    let bytes = result?;
    if bytes.len() as u64 > MOST {
        return Err(
            CommandFailure::failed("the piped input is larger than 10 MB")
                .hint("write it to a file and name the file in the prompt"),
        );
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Says something. The one command of the client that needs nobody is obeyed.
fn submit(content: Value, remote: &SessionCommandSender) {
    let text = match &content {
        Value::String(text) => Some(text.as_str()),
        blocks => blocks[0]["text"].as_str(),
    };
    let words = text.and_then(|text| text.trim().strip_prefix("/compact"));
    let words = words.filter(|words| words.is_empty() || words.starts_with(char::is_whitespace));
    let words = words.map(|words| words.trim().to_owned());
    remote.send(match words {
        Some(words) => SessionCommand::Compact {
            words: Some(words).filter(|words| !words.is_empty()),
        },
        None => SessionCommand::Submit {
            content,
            context: Vec::new(),
        },
    });
}

/// One object of the stream.
fn take(value: &Value, remote: &SessionCommandSender, desk: &ChatControl) {
    match value["type"].as_str() {
        Some("user") => {
            let content = value["message"]["content"].clone();
            if content.is_string() || content.is_array() {
                submit(content, remote);
            }
        }
        Some("control_request") => control(value, remote, desk),
        Some("control_response") => answer(&value["response"], remote, desk),
        _ => {}
    }
}

fn control(value: &Value, remote: &SessionCommandSender, desk: &ChatControl) {
    let request = &value["request"];
    let field = |name: &str| request[name].as_str();
    let told = |command: SessionCommand| Ok((Some(command), json!({})));
    let answer = match field("subtype").unwrap_or_default() {
        "interrupt" => told(SessionCommand::Interrupt),
        "set_permission_mode" => {
            let name = field("mode").unwrap_or_default();
            match PermissionMode::read(name) {
                Some((mode, _)) => Ok((
                    Some(SessionCommand::Mode(mode)),
                    json!({"mode": mode.name()}),
                )),
                None => Err(format!("`{name}` is not a permission mode")),
            }
        }
        // No name is the one it would begin with.
        "set_model" => told(SessionCommand::Model(
            field("model").unwrap_or("default").to_owned(),
        )),
        "initialize" => Ok((None, desk.about.clone())),
        other => Err(format!("`{other}` is not supported")),
    };
    let (command, answer) = match answer {
        Ok((command, answer)) => (command, Ok(answer)),
        Err(why) => (None, Err(why)),
    };
    // First the answer, then what comes of it: who reads finds them in this order.
    chat_output::respond(value["request_id"].as_str().unwrap_or_default(), answer);
    command.map(|command| remote.send(command));
}

/// The answer to a question about a permission.
fn answer(response: &Value, remote: &SessionCommandSender, desk: &ChatControl) {
    let id = response["request_id"].as_str().unwrap_or_default();
    let Some(ask) = id
        .strip_prefix("ask-")
        .and_then(|number| number.parse().ok())
    else {
        return;
    };
    let said = &response["response"];
    // What is changed for later counts for this call as well.
    let updates = said["updatedPermissions"].as_array();
    let updates = updates.filter(|_| said["behavior"] == "allow");
    for update in updates.into_iter().flatten() {
        match desk.rules.obey(update) {
            Ok(command) => drop(remote.send(command)),
            Err(why) => ui::say(&format!(
                "Warning: permission update rejected: {}",
                clean::text(&why)
            )),
        }
    }
    let answer = match said["behavior"].as_str() {
        Some("allow") => match &said["updatedInput"] {
            input if input.is_object() => QuestionAnswer::Changed(input.clone()),
            _ => QuestionAnswer::Yes,
        },
        _ if said["interrupt"] == true => QuestionAnswer::No(None),
        _ => QuestionAnswer::No(Some(said["message"].as_str().unwrap_or("no").to_owned())),
    };
    remote.send(SessionCommand::Answer { ask, answer });
}
