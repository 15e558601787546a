//! `chat` on a terminal: a conversation, and what comes after it.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use unspool_agent::driver::{self, SessionCommand, SessionNotice};
use unspool_agent::permission::rule_editing;
use unspool_agent::settings::{SessionSettings, SettingsLayer, TrustGatedSetting};
use unspool_agent::trust::{FolderTrust, TrustFile};
use unspool_show::{TextStyle, shell_command};
use unspool_tui::chat::{
    ChatExit, ChatOptions, FolderSettings, NextConversation, TypedAhead, ask_trust,
    restore_terminal,
};

use super::ChatArgs;
use super::chat_commands::{ChatCommands, ChatStatus};
use super::session_setup::{PreparedChat, open};
use crate::commands::show;
use unspool_store::own_file;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Prompts that the editor remembers.
const REMEMBERED: usize = 500;

/// Talks until somebody leaves.
pub fn run(world: CommandContext, mut args: ChatArgs) -> Result<(), CommandFailure> {
    let world = Arc::new(world);
    let _back = TerminalRestorer;
    let mut ahead = TypedAhead::default();
    loop {
        let opened = open(&world, &args)?;
        if args.resume.is_some() || args.go_on {
            restore_terminal();
            show_end(&world, &opened);
        }
        let session = opened.session.clone();
        let left = converse(&world, &mut args, opened, ahead)?;
        ahead = left.ahead;
        match left.next {
            NextConversation::Leave => {
                let again = format!(
                    "resume this session with: {}",
                    shell_command::chat(None, &session)
                );
                world.ui.note(&again);
                return Ok(());
            }
            NextConversation::New => (args.resume, args.go_on) = (None, false),
            NextConversation::Resume(id) => (args.resume, args.go_on) = (Some(id.into()), false),
        }
        (args.fork_session, args.session_id) = (false, None);
    }
}

/// The terminal is given back however this ends.
struct TerminalRestorer;

impl Drop for TerminalRestorer {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// What was said last, so that a person knows where they are.
fn show_end(world: &CommandContext, opened: &PreparedChat) {
    // A session that cannot be shown can still be gone on with.
    let _ = show::end(world, opened.setup.record.path().as_os_str(), 2);
}

fn converse(
    world: &Arc<CommandContext>,
    args: &mut ChatArgs,
    opened: PreparedChat,
    ahead: TypedAhead,
) -> Result<ChatExit, CommandFailure> {
    let PreparedChat {
        mut setup,
        notes,
        variable,
        ..
    } = opened;
    setup.asks = true;
    let prompts = world.own.data.join("prompts.jsonl");
    let project = setup.place.project.clone();
    let history = remembered(&prompts, &project);
    let seen = Arc::new(Mutex::new(ChatStatus {
        model: setup.frame.model.clone(),
        mode: setup.policy.mode(),
        ..ChatStatus::default()
    }));
    let mut talk = ChatCommands::new(Arc::clone(world), &setup, args, Arc::clone(&seen));
    let (mode, model) = (setup.policy.mode(), setup.frame.model.clone());
    let greeting = greeting(&model, &project, &setup.place.home, &notes);
    let (sender, notices) = channel();
    let handle = driver::start(setup, move |notice| {
        if let Ok(mut seen) = seen.lock() {
            seen.take(&notice);
        }
        // Nobody looks any more: the session ends by itself.
        let _ = sender.send(notice);
    });
    talk.keeps(prompts);
    let remote = handle.remote();
    let left = unspool_tui::chat::run(ChatOptions {
        desk: Arc::new(talk),
        tell: Box::new(move |command| remote.send(command)),
        notices,
        history,
        greeting,
        mode,
        model,
        variable: variable.to_owned(),
        place: project.display().to_string(),
        rules_file: rules_file(&project),
        color: world.ui.style().color,
        first: args.prompt.take(),
        ahead,
    });
    handle.send(SessionCommand::Interrupt);
    handle.send(SessionCommand::Close);
    handle.join();
    Ok(left?)
}

/// Shows all that a folder's settings would do, and asks whether they may.
pub fn ask_for_trust(
    world: &CommandContext,
    settings: &SessionSettings,
    acting: &[TrustGatedSetting],
    trust: &TrustFile,
    standing: FolderTrust,
) -> Result<(), CommandFailure> {
    let root = settings.root();
    let named = |one: &TrustGatedSetting| {
        let file = one.source.path.as_deref().unwrap_or(root);
        let file = file.strip_prefix(root).unwrap_or(file).display();
        match one.source.line {
            0 => format!("{} ({file})", one.key),
            line => format!("{} ({file}:{line})", one.key),
        }
    };
    let asked = FolderSettings {
        folder: root.display().to_string(),
        settings: acting
            .iter()
            .map(|one| (named(one), one.value.clone()))
            .collect(),
        changed: standing == FolderTrust::Changed,
    };
    if ask_trust(asked, world.ui.style().color)? {
        trust.store(settings)?;
    }
    Ok(())
}

/// Where "always" is stored, as short as it can be told.
fn rules_file(project: &Path) -> String {
    let file = rule_editing::file(SettingsLayer::Local, Path::new(""), project).unwrap_or_default();
    let short = file.strip_prefix(project).unwrap_or(&file);
    short.display().to_string()
}

fn greeting(
    model: &str,
    project: &Path,
    home: &Path,
    notes: &[String],
) -> Vec<(TextStyle, String)> {
    let place = match project.strip_prefix(home) {
        Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => project.display().to_string(),
    };
    let keys = "/help for commands, esc interrupts, shift-tab cycles permission modes";
    let mut lines = vec![
        (
            TextStyle::BOLD,
            format!("unspool chat with {model} in {place}"),
        ),
        (TextStyle::DIM, keys.to_owned()),
    ];
    lines.extend(notes.iter().map(|note| (TextStyle::WARN, note.clone())));
    lines
}

/// What was typed in this folder before, oldest first.
fn remembered(file: &Path, project: &Path) -> Vec<String> {
    let Ok(file) = own_file::open(file) else {
        return Vec::new();
    };
    let project = project.display().to_string();
    let lines = io::BufReader::new(file).lines().map_while(Result::ok);
    let mut all: Vec<String> = lines
        .filter_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            let here = line.get("project")?.as_str()? == project;
            here.then(|| line.get("text")?.as_str().map(str::to_owned))?
        })
        .collect();
    let over = all.len().saturating_sub(REMEMBERED);
    all.drain(..over);
    all
}

/// Keeps what was typed.
pub fn remember(file: &Path, project: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        own_file::make_folder(folder)?;
    }
    let line = json!({"project": project.display().to_string(), "text": text});
    own_file::append(file)?.write_all(format!("{line}\n").as_bytes())
}

/// Where prompts are kept.
pub type PromptHistoryPath = PathBuf;

impl ChatStatus {
    /// Takes note of what the session tells.
    fn take(&mut self, notice: &SessionNotice) {
        match notice {
            SessionNotice::Usage {
                filled,
                window,
                spent,
            } => {
                self.filled = (*filled, *window);
                self.spent = spent.clone();
            }
            SessionNotice::Mode(mode) => self.mode = *mode,
            SessionNotice::Model(model) => self.model.clone_from(model),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_remembered_by_folder_and_only_for_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own/prompts.jsonl");
        remember(&file, Path::new("/a"), "one\ntwo").unwrap();
        remember(&file, Path::new("/b"), "other").unwrap();
        remember(&file, Path::new("/a"), "three").unwrap();
        assert_eq!(remembered(&file, Path::new("/a")), ["one\ntwo", "three"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
