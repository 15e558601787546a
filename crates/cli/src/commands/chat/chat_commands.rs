//! What becomes of things that are typed in a conversation: prompts, `/commands`, `!commands`,
//! `#memory`.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use serde_json::{Value, json};
use unspool_agent::agent_definitions::AgentDefinitions;
use unspool_agent::driver::{RunUsage, SessionCommand, SessionSetup};
use unspool_agent::folder_files;
use unspool_agent::mcp_tools::{McpServerHealth, McpTools};
use unspool_agent::memory::{self, MemoryRoots};
use unspool_agent::permission::PermissionMode;
use unspool_agent::slash_commands::SlashCommands;
use unspool_model::view::{context, turns};
use unspool_show::format;
use unspool_tui::chat::{
    ChatBackend, ChatPrompt, ChoicePicker, CommandReply, NextConversation, PickerChoice,
};

use super::permission_rules::SessionPermissionRules;
use super::{ChatArgs, terminal_chat};
use crate::commands::{export, ls, search};
use unspool_store::read_folder;

use crate::command_context::{self, CommandContext};
use crate::failure::CommandFailure;

/// Commands that are always there.
const COMMANDS: &[(&str, &str)] = &[
    ("help", "list commands and keys"),
    ("clear", "start a new session; this one is kept"),
    (
        "compact",
        "replace the conversation with a summary; add instructions for it after the command",
    ),
    ("resume", "resume another session"),
    (
        "rewind",
        "rewind the conversation, the files, or both to before a prompt",
    ),
    ("model", "show or change the model"),
    ("cost", "show the cost of this session"),
    ("context", "show what fills the context window"),
    (
        "permissions",
        "list, add and remove permission rules, or change the mode",
    ),
    ("agents", "list the defined sub-agents"),
    ("mcp", "list MCP servers"),
    ("memory", "list the memory files (CLAUDE.md) in use"),
    ("export", "export this session: html, md, txt, json"),
    ("exit", "quit"),
];

/// Pictures the API takes, by the ends of their names.
const PICTURES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

/// A picture larger than this is not sent.
const LARGEST: u64 = 5 << 20;
/// A file that is named with `@` is told as far as this.
const LONGEST: usize = 200_000;
/// Sessions that hold what is looked for.
const FOUND: usize = 100;
/// Sessions and files in a list.
const MOST: usize = 20_000;

/// What was heard of the session last.
#[derive(Debug, Default)]
pub struct ChatStatus {
    /// The model.
    pub model: String,
    /// The mode.
    pub mode: PermissionMode,
    /// Tokens in the context, and how many fit.
    pub filled: (u64, u64),
    /// What was spent.
    pub spent: RunUsage,
}

/// Answers what is typed.
pub struct ChatCommands {
    world: Arc<CommandContext>,
    path: PathBuf,
    project: PathBuf,
    config: PathBuf,
    prompts: Option<terminal_chat::PromptHistoryPath>,
    rules: SessionPermissionRules,
    trusted: bool,
    more: Option<Arc<dyn McpTools>>,
    seen: Arc<Mutex<ChatStatus>>,
    templates: SlashCommands,
    roots: MemoryRoots,
}

impl ChatCommands {
    /// The desk of a session.
    pub fn new(
        world: Arc<CommandContext>,
        setup: &SessionSetup,
        args: &ChatArgs,
        seen: Arc<Mutex<ChatStatus>>,
    ) -> ChatCommands {
        let place = &setup.place;
        ChatCommands {
            templates: setup.lore.commands.clone(),
            roots: setup.lore.roots.clone(),
            rules: SessionPermissionRules::new(Arc::clone(&world), args.clone(), place.clone()),
            world,
            path: setup.record.path().to_owned(),
            project: place.project.clone(),
            config: place.config.clone(),
            prompts: None,
            trusted: setup.lore.trusted,
            more: setup.more.clone(),
            seen,
        }
    }

    /// Keeps prompts in this file.
    pub fn keeps(&mut self, prompts: terminal_chat::PromptHistoryPath) {
        self.prompts = Some(prompts);
    }

    fn seen<T>(&self, ask: impl FnOnce(&ChatStatus) -> T) -> T {
        let seen = self.seen.lock();
        ask(&seen.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn slash(&self, name: &str, rest: &str) -> CommandReply {
        match name {
            "help" => CommandReply::Say(self.help()),
            "clear" | "new" => CommandReply::Go(NextConversation::New),
            "exit" | "quit" => CommandReply::Go(NextConversation::Leave),
            "compact" => {
                let words = Some(rest.to_owned()).filter(|words| !words.is_empty());
                CommandReply::Do(vec![SessionCommand::Compact { words }])
            }
            "resume" | "continue" if !rest.is_empty() => {
                CommandReply::Go(NextConversation::Resume(rest.to_owned()))
            }
            "resume" | "continue" => self.sessions(),
            "rewind" => self.prompts(),
            "model" if rest.is_empty() => models(&self.seen(|seen| seen.model.clone())),
            "model" => CommandReply::Do(vec![SessionCommand::Model(rest.to_owned())]),
            "cost" => self.answered(name, self.cost()),
            "context" => match self.context() {
                Ok(text) => self.answered(name, text),
                Err(failure) => CommandReply::Fail(failure_line(&failure)),
            },
            "permissions" | "mode" => self.rules.told(rest, self.seen(|seen| seen.mode)),
            "agents" => self.answered(name, self.agents()),
            "mcp" => self.answered(name, self.servers()),
            "memory" => self.answered(name, self.memory()),
            "export" => self.export(rest),
            _ => self.template(name, rest),
        }
    }

    fn answered(&self, name: &str, output: String) -> CommandReply {
        CommandReply::Answered {
            command: format!("/{name}"),
            output,
        }
    }

    fn help(&self) -> String {
        let mut text = String::from("| command | description |\n|---|---|\n");
        for (name, about) in self.commands() {
            text.push_str(&format!("| /{name} | {} |\n", about.replace('|', "/")));
        }
        text.push_str(
            "\n`!command` runs a shell command, `#text` adds to CLAUDE.md, `@file` attaches a file.\n\n\
             `enter` sends, `alt-enter` or `\\` and `enter` insert a newline, `esc` interrupts, `esc esc` rewinds,\n\
             `shift-tab` cycles permission modes, `ctrl-z` suspends, `ctrl-d` quits.\n",
        );
        text
    }

    fn cost(&self) -> String {
        self.seen(|seen| {
            let mut text = format!(
                "{} so far",
                format::cost_told(
                    seen.spent.cost(),
                    Some(seen.spent.usd),
                    seen.spent.unpriced_messages
                )
            );
            for (model, (usage, usd)) in &seen.spent.models {
                text.push_str(&format!(
                    "\n- {model}: {}; {} input, {} output, {} cache read",
                    format::dollars(*usd),
                    format::tokens(usage.input + usage.cache_write_5m + usage.cache_write_1h),
                    format::tokens(usage.output),
                    format::tokens(usage.cache_read),
                ));
            }
            for model in &seen.spent.unpriced {
                text.push_str(&format!("\n- {model} has no known price"));
            }
            text
        })
    }

    fn context(&self) -> Result<String, CommandFailure> {
        let chosen = self.world.view(Some(self.path.as_os_str()))?;
        let main = &chosen.family.main;
        let context = context::context(&main.session, &main.source, 0);
        let (filled, window) = self.seen(|seen| seen.filled);
        let tokens = if filled > 0 { filled } else { context.tokens };
        let mut text = match window {
            0 => format!("{} tokens\n\n", format::tokens(tokens)),
            window => format!(
                "{} of {} tokens\n\n",
                format::tokens(tokens),
                format::tokens(window)
            ),
        };
        text.push_str("| what | tokens | share |\n|---|---:|---:|\n");
        for row in &context.categories {
            let share = (row.share * 100.0).round();
            text.push_str(&format!(
                "| {} | {} | {share} % |\n",
                row.category,
                format::tokens(row.tokens)
            ));
        }
        Ok(text)
    }

    /// The folder that files of the project have to lie in.
    fn boundary(&self) -> PathBuf {
        folder_files::boundary(&self.project, &self.roots.home)
    }

    fn agents(&self) -> String {
        let boundary = self.boundary();
        let all = AgentDefinitions::find(&self.config, &self.project, &boundary, self.trusted);
        let mut text = String::new();
        for one in &all.list {
            text.push_str(&format!("- **{}**: {}\n", one.name, one.description));
        }
        for (path, why) in &all.faults {
            text.push_str(&format!("- {}: {why}\n", path.display()));
        }
        match text.is_empty() {
            true => "no sub-agents are defined; add Markdown files to `.claude/agents/`".to_owned(),
            false => text,
        }
    }

    fn servers(&self) -> String {
        let servers = self.more.as_ref().map(|more| more.servers());
        let mut text = String::new();
        for server in servers.iter().flatten() {
            let tools = format::count(server.tools as u64, "tool");
            let how = match &server.health {
                McpServerHealth::Failed(why) => format!("failed: {why}"),
                McpServerHealth::NeedsLogin => {
                    "needs authentication: add a header with a token to its configuration"
                        .to_owned()
                }
                health => format!("{}, {tools}", health.name()),
            };
            text.push_str(&format!("- **{}**: {how}\n", server.name));
        }
        match text.is_empty() {
            true => "no MCP servers; add them to `.mcp.json` or use `--mcp-config`".to_owned(),
            false => text,
        }
    }

    fn memory(&self) -> String {
        let memory = memory::load_memory(&self.roots);
        let mut text = String::new();
        for file in &memory.files {
            let lines = file.text.lines().count() as u64;
            text.push_str(&format!(
                "- {} ({})\n",
                file.path.display(),
                format::count(lines, "line")
            ));
        }
        for (path, why) in &memory.left_out {
            text.push_str(&format!("- {}: {why}\n", path.display()));
        }
        for path in &memory.external {
            text.push_str(&format!(
                "- {} skipped: outside the project\n",
                path.display()
            ));
        }
        match text.is_empty() {
            true => "no CLAUDE.md in use; `#text` creates one".to_owned(),
            false => text,
        }
    }

    fn export(&self, format: &str) -> CommandReply {
        let format = if format.is_empty() { "html" } else { format };
        match export::beside(&self.world, self.path.as_os_str(), format) {
            Ok(path) => CommandReply::Say(format!("written to `{}`", path.display())),
            Err(failure) => CommandReply::Fail(failure_line(&failure)),
        }
    }

    fn sessions(&self) -> CommandReply {
        let found = match self.world.found() {
            Ok(found) => found,
            Err(failure) => return CommandReply::Fail(failure_line(&failure)),
        };
        let prices = self.world.prices();
        let now = command_context::now();
        let rows = ls::rows(
            &self.world,
            &found,
            ls::ListedRowKinds::default(),
            &prices,
            now,
        );
        let choices = rows.into_iter().take(MOST).map(|mut row| {
            ls::mask(&self.world, &mut row);
            PickerChoice {
                label: row.title.clone().unwrap_or_else(|| row.id.clone()),
                detail: format!("{}  {}", row.project, ls::short(&row.id)),
                value: row.id,
            }
        });
        let pick = ChoicePicker::new("resume", "Resume which session?", choices.collect());
        CommandReply::Pick(pick.searching())
    }

    /// A command or skill that somebody wrote: the session expands it.
    fn template(&self, name: &str, rest: &str) -> CommandReply {
        if self.templates.named(name).is_none_or(|it| !it.for_person) {
            return CommandReply::Fail(format!(
                "unknown command /{name}; /help lists all commands"
            ));
        }
        let text = format!("/{name} {rest}").trim_end().to_owned();
        CommandReply::Submit(ChatPrompt {
            content: Value::String(text.clone()),
            text,
            context: Vec::new(),
        })
    }

    /// What is said, with the pictures and files it names.
    fn prompt(&self, text: &str) -> CommandReply {
        let (mut blocks, mut context) = (Vec::new(), Vec::new());
        for FileMention { name, at } in named(text) {
            let bare = name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
            let paths = [&name, bare].map(|name| self.project.join(name));
            let picture = paths.iter().find_map(|path| picture(path));
            match picture {
                Some(block) => blocks.push(block),
                None if at => {
                    context.extend(paths.iter().find_map(|path| file(path, &name)));
                }
                None => {}
            }
        }
        let content = match blocks.is_empty() {
            true => Value::String(text.to_owned()),
            false => {
                blocks.push(json!({"type": "text", "text": text}));
                Value::Array(blocks)
            }
        };
        CommandReply::Submit(ChatPrompt {
            text: text.to_owned(),
            content,
            context,
        })
    }
}

impl ChatBackend for ChatCommands {
    fn commands(&self) -> Vec<(String, String)> {
        let own = COMMANDS
            .iter()
            .map(|(name, about)| ((*name).to_owned(), (*about).to_owned()));
        let theirs = self.templates.list.iter().filter(|it| it.for_person);
        let theirs = theirs.map(|it| (it.name.clone(), it.description.clone()));
        own.chain(theirs).collect()
    }

    fn files(&self) -> Vec<String> {
        unspool_agent::tools::glob::listed(&self.project, MOST)
    }

    fn typed(&self, text: &str) -> CommandReply {
        if let Some(prompts) = &self.prompts {
            // A prompt that cannot be remembered can still be said.
            let _ = terminal_chat::remember(prompts, &self.project, text);
        }
        if let Some(command) = text.strip_prefix('!').filter(|it| !it.trim().is_empty()) {
            return CommandReply::Do(vec![SessionCommand::Shell(command.trim().to_owned())]);
        }
        if let Some(words) = text.strip_prefix('#').filter(|it| !it.trim().is_empty()) {
            let file = self.project.join("CLAUDE.md");
            return match memory::append(&file, &self.boundary(), words) {
                Ok(()) => CommandReply::Say(format!("added to `{}`", file.display())),
                Err(why) => CommandReply::Fail(format!("`{}`: {why}", file.display())),
            };
        }
        match text.strip_prefix('/') {
            // A path is no command.
            Some(rest)
                if !rest
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .contains('/') =>
            {
                let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                self.slash(name, rest.trim())
            }
            _ => self.prompt(text),
        }
    }

    fn leaves(&self, text: &str) -> bool {
        let name = text
            .strip_prefix('/')
            .and_then(|rest| rest.split_whitespace().next());
        matches!(
            name,
            Some("clear" | "new" | "exit" | "quit" | "resume" | "continue")
        )
    }

    fn chosen(&self, what: &str, value: &str) -> CommandReply {
        match what {
            "resume" => CommandReply::Go(NextConversation::Resume(value.to_owned())),
            "model" => CommandReply::Do(vec![SessionCommand::Model(value.to_owned())]),
            "remove-rule" => self.rules.chosen(value),
            "rewind" => {
                let choice = |label: &str, how: &str| PickerChoice {
                    label: label.to_owned(),
                    detail: String::new(),
                    value: format!("{how} {value}"),
                };
                let choices = vec![
                    choice("the conversation and the files", "both"),
                    choice("the conversation only", "conversation"),
                    choice("the files only", "files"),
                ];
                CommandReply::Pick(ChoicePicker::new("rewind-how", "Rewind what?", choices))
            }
            "rewind-how" => {
                let (how, prompt) = value.split_once(' ').unwrap_or(("both", value));
                CommandReply::Do(vec![SessionCommand::Rewind {
                    prompt: prompt.to_owned(),
                    files: how != "conversation",
                    conversation: how != "files",
                }])
            }
            _ => CommandReply::Fail(format!("unexpected choice: {what}")),
        }
    }

    fn search(&self, typed: &str, wanted: &dyn Fn() -> bool) -> Vec<PickerChoice> {
        let mut found: Vec<PickerChoice> = Vec::new();
        // What cannot be searched has no hits; the titles are still there.
        let _ = search::stream(&self.world, typed, &mut |hit| {
            if !found.iter().any(|choice| choice.value == hit.session) {
                found.push(PickerChoice {
                    label: String::new(),
                    detail: hit.snippet,
                    value: hit.session,
                });
            }
            match found.len() < FOUND && wanted() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        found
    }

    fn prompts(&self) -> CommandReply {
        let chosen = match self.world.view(Some(self.path.as_os_str())) {
            Ok(chosen) => chosen,
            Err(_) => return CommandReply::Fail("the conversation is empty".to_owned()),
        };
        let main = &chosen.family.main;
        let turns = turns::turns(&main.session, &main.source, turns::TurnOptions::default());
        let choices = turns
            .iter()
            .rev()
            .filter(|turn| turn.live && turn.n > 0)
            .filter_map(|turn| {
                let prompt = main.session.records[turn.record as usize].uuid.as_ref()?;
                Some(PickerChoice {
                    label: turn.prompt.clone(),
                    detail: String::new(),
                    value: prompt.to_string(),
                })
            });
        let choices: Vec<PickerChoice> = choices.collect();
        match choices.is_empty() {
            true => CommandReply::Fail("the conversation is empty".to_owned()),
            false => CommandReply::Pick(ChoicePicker::new(
                "rewind",
                "Rewind to before which prompt?",
                choices,
            )),
        }
    }

    fn keep(&self, rules: &[String]) -> Result<String, String> {
        self.rules.keep(rules)
    }
}

fn models(now: &str) -> CommandReply {
    let choice = |(name, about): (&str, &str)| PickerChoice {
        label: name.to_owned(),
        detail: about.to_owned(),
        value: name.to_owned(),
    };
    let all = [
        ("opus", "most capable"),
        ("sonnet", "capable and fast"),
        ("haiku", "fastest"),
    ];
    let title = format!("Which model? (current: {now})");
    CommandReply::Pick(ChoicePicker::new("model", &title, all.map(choice).into()))
}

/// A failure as one line.
pub fn failure_line(failure: &CommandFailure) -> String {
    match failure {
        CommandFailure::Nothing(told) | CommandFailure::Failed(told) => match &told.hint {
            Some(hint) => format!("{}; {hint}", told.message),
            None => told.message.clone(),
        },
        CommandFailure::Found | CommandFailure::Code(_) | CommandFailure::Closed => {
            "interrupted".to_owned()
        }
    }
}

/// A word of a prompt that may name a file.
#[derive(Debug, PartialEq, Eq)]
struct FileMention {
    name: String,
    /// It stands behind an `@`.
    at: bool,
}

/// The words of a prompt. Paths with blanks are one word as terminals paste them: in quotes, or
/// with backslashes before the blanks.
fn named(text: &str) -> Vec<FileMention> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (at, word) = match rest.strip_prefix('@') {
            Some(word) => (true, word),
            None => (false, rest),
        };
        let quote = word.chars().next().filter(|c| ['\'', '"'].contains(c));
        let inside = quote.and_then(|quote| word[1..].split_once(quote));
        // An apostrophe is no quote: what it would hold ends in the middle of a word.
        let inside = inside.filter(|(_, after)| {
            let next = after.chars().next();
            next.is_none_or(|c| c.is_whitespace() || c.is_ascii_punctuation())
        });
        let (name, after) = match inside {
            Some((name, after)) => (name.to_owned(), after),
            None => plain(word),
        };
        all.push(FileMention { name, at });
        rest = after.trim_start();
    }
    all
}

/// The first word, without its backslashes, and what follows it.
fn plain(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c.is_whitespace() => return (name, &text[at..]),
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            c => name.push(c),
        }
    }
    (name, "")
}

fn picture(path: &Path) -> Option<Value> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    let (_, kind) = PICTURES.iter().find(|(known, _)| *known == end)?;
    let bytes = unspool_agent::file::read(path, LARGEST).ok()?;
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    Some(json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}))
}

/// What stands in a file, for the model alone.
fn file(path: &Path, name: &str) -> Option<String> {
    if path.is_dir() {
        let mut names: Vec<String> = read_folder::entries(path)
            .ok()?
            .flatten()
            .take(1000)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        return Some(format!("The folder {name} holds:\n{}", names.join("\n")));
    }
    let (file, _) = unspool_agent::file::open(path).ok()?;
    let mut bytes = Vec::new();
    let most = LONGEST as u64 + 1;
    file.take(most).read_to_end(&mut bytes).ok()?;
    let is_longer = bytes.len() > LONGEST;
    if let Err(error) = std::str::from_utf8(&bytes)
        && is_longer
        && error.error_len().is_none()
    {
        // The last character was cut in two.
        bytes.truncate(error.valid_up_to());
    }
    let mut text = String::from_utf8(bytes).ok()?;
    if is_longer {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push_str("\n[truncated; read the file for the rest]");
    }
    Some(format!("The file {name}:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_however_terminals_paste_it() {
        let names =
            |text: &str| -> Vec<String> { named(text).into_iter().map(|word| word.name).collect() };
        assert_eq!(names("see '/a/b c.png' now"), ["see", "/a/b c.png", "now"]);
        assert_eq!(names("/a/b\\ c.png"), ["/a/b c.png"]);
        assert_eq!(names("it's 'a x"), ["it's", "'a", "x"]);
        let at = named("@\"my file.txt\", @b");
        assert_eq!((at[0].name.as_str(), at[0].at), ("my file.txt", true));
        assert_eq!((at[2].name.as_str(), at[2].at), ("b", true));
    }

    #[test]
    fn a_picture_is_a_block_and_a_text_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (png, text) = (folder.path().join("a.PNG"), folder.path().join("a.txt"));
        std::fs::write(&png, [0x89, b'P']).unwrap();
        std::fs::write(&text, "x").unwrap();
        assert_eq!(picture(&png).unwrap()["source"]["media_type"], "image/png");
        assert_eq!(picture(&text), None);
        assert_eq!(picture(&folder.path().join("none.png")), None);
        assert_eq!(file(&text, "a.txt"), Some("The file a.txt:\nx".to_owned()));
    }
}
