//! What becomes of things that are typed in a conversation: prompts, `/commands`, `!commands`,
//! `#memory`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use serde_json::{Value, json};
use unspool_agent::commands::Commands;
use unspool_agent::definitions::Definitions;
use unspool_agent::driver::{Command, Setup, Spent};
use unspool_agent::memory::{self, Roots};
use unspool_agent::more::{Health, More};
use unspool_agent::permission::{Mode, always};
use unspool_agent::settings::{Places, Settings};
use unspool_agent::trust::Trust;
use unspool_model::view::{context, turns};
use unspool_show::amount;
use unspool_tui::chat::{Choice, Desk, Next, Pick, Told};

use super::talk;
use crate::commands::{export, ls};
use crate::failure::Failure;
use crate::world::{self, World};

/// Commands that are always there.
const COMMANDS: &[(&str, &str)] = &[
    ("help", "what there is"),
    ("clear", "begin a new session; this one is kept"),
    (
        "compact",
        "replace the conversation by a summary; words behind it say what matters",
    ),
    ("resume", "go on with another session"),
    (
        "rewind",
        "go back to before a prompt: the conversation, the files, or both",
    ),
    ("model", "show or change the model"),
    ("cost", "what this session has cost"),
    ("context", "what fills the context"),
    ("permissions", "show the rules, or change the mode"),
    ("agents", "agents that are defined"),
    ("mcp", "servers that offer tools"),
    ("memory", "files the model is told at the start"),
    (
        "export",
        "write this session to a file: html, md, txt, json",
    ),
    ("exit", "leave"),
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
/// Sessions and files in a list.
const MOST: usize = 20_000;

/// What was heard of the session last.
#[derive(Debug, Default)]
pub struct Seen {
    /// The model.
    pub model: String,
    /// The mode.
    pub mode: Mode,
    /// Tokens in the context, and how many fit.
    pub filled: (u64, u64),
    /// What was spent.
    pub spent: Spent,
}

/// Answers what is typed.
pub struct Talk {
    world: Arc<World>,
    path: PathBuf,
    project: PathBuf,
    config: PathBuf,
    prompts: Option<talk::Prompts>,
    rules: Vec<String>,
    trusted: bool,
    more: Option<Arc<dyn More>>,
    seen: Arc<Mutex<Seen>>,
    templates: Commands,
    roots: Roots,
    places: Places,
}

impl Talk {
    /// The desk of a session.
    pub fn new(world: Arc<World>, setup: &Setup, places: Places, seen: Arc<Mutex<Seen>>) -> Talk {
        let place = &setup.place;
        Talk {
            templates: setup.lore.commands.clone(),
            roots: setup.lore.roots.clone(),
            places,
            world,
            path: setup.record.path().to_owned(),
            project: place.project.clone(),
            config: place.config.clone(),
            prompts: None,
            rules: setup.policy.listed(),
            trusted: setup.lore.trusted,
            more: setup.more.clone(),
            seen,
        }
    }

    /// Keeps prompts in this file.
    pub fn keeps(&mut self, prompts: talk::Prompts) {
        self.prompts = Some(prompts);
    }

    fn seen<T>(&self, ask: impl FnOnce(&Seen) -> T) -> T {
        let seen = self.seen.lock();
        ask(&seen.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn slash(&self, name: &str, rest: &str) -> Told {
        match name {
            "help" => Told::Say(self.help()),
            "clear" | "new" => Told::Go(Next::New),
            "exit" | "quit" => Told::Go(Next::Leave),
            "compact" => {
                let words = Some(rest.to_owned()).filter(|words| !words.is_empty());
                Told::Do(vec![Command::Compact { words }])
            }
            "resume" | "continue" if !rest.is_empty() => Told::Go(Next::Resume(rest.to_owned())),
            "resume" | "continue" => self.sessions(),
            "rewind" => self.prompts(),
            "model" if rest.is_empty() => models(&self.seen(|seen| seen.model.clone())),
            "model" => Told::Do(vec![Command::Model(rest.to_owned())]),
            "permissions" | "mode" if !rest.is_empty() => mode(rest),
            "cost" => self.answered(name, self.cost()),
            "context" => match self.context() {
                Ok(text) => self.answered(name, text),
                Err(failure) => Told::Fail(told(&failure)),
            },
            "permissions" | "mode" => self.answered(name, self.permissions()),
            "agents" => self.answered(name, self.agents()),
            "mcp" => self.answered(name, self.servers()),
            "memory" => self.answered(name, self.memory()),
            "export" => self.export(rest),
            _ => self.template(name, rest),
        }
    }

    fn answered(&self, name: &str, output: String) -> Told {
        Told::Answered {
            command: format!("/{name}"),
            output,
        }
    }

    fn help(&self) -> String {
        let mut text = String::from("| command | what it does |\n|---|---|\n");
        for (name, about) in self.commands() {
            text.push_str(&format!("| /{name} | {} |\n", about.replace('|', "/")));
        }
        text.push_str(
            "\n`!command` runs a command yourself, `#text` is remembered in CLAUDE.md, `@file` names a file.\n\n\
             `enter` sends, `alt-enter` or `\\` and `enter` begin a line, `esc` stops, `esc esc` goes back to a prompt,\n\
             `shift-tab` changes what is allowed, `ctrl-z` puts it to sleep, `ctrl-d` leaves.\n",
        );
        text
    }

    fn cost(&self) -> String {
        self.seen(|seen| {
            let mut text = format!("{} so far", amount::dollars(seen.spent.usd));
            for (model, (usage, usd)) in &seen.spent.models {
                text.push_str(&format!(
                    "\n- {model}: {}; {} in, {} out, {} from the cache",
                    amount::dollars(*usd),
                    amount::tokens(usage.input + usage.cache_write_5m + usage.cache_write_1h),
                    amount::tokens(usage.output),
                    amount::tokens(usage.cache_read),
                ));
            }
            for model in &seen.spent.unpriced {
                text.push_str(&format!("\n- {model} has no price we know"));
            }
            text
        })
    }

    fn context(&self) -> Result<String, Failure> {
        let chosen = self.world.view(Some(self.path.as_os_str()))?;
        let main = &chosen.family.main;
        let context = context::context(&main.session, &main.source, 0);
        let (filled, window) = self.seen(|seen| seen.filled);
        let tokens = if filled > 0 { filled } else { context.tokens };
        let mut text = match window {
            0 => format!("{} tokens\n\n", amount::tokens(tokens)),
            window => format!(
                "{} of {} tokens\n\n",
                amount::tokens(tokens),
                amount::tokens(window)
            ),
        };
        text.push_str("| what | tokens | share |\n|---|---:|---:|\n");
        for row in &context.categories {
            let share = (row.share * 100.0).round();
            text.push_str(&format!(
                "| {} | {} | {share} % |\n",
                row.category,
                amount::tokens(row.tokens)
            ));
        }
        Ok(text)
    }

    fn permissions(&self) -> String {
        let mode = self.seen(|seen| seen.mode);
        let mut text = format!("mode: {}\n", mode.name());
        if self.rules.is_empty() {
            text.push_str("\nno rules\n");
        }
        for rule in &self.rules {
            text.push_str(&format!("- `{rule}`\n"));
        }
        text.push_str(
            "\n`/permissions MODE` changes the mode: default, acceptEdits, plan, dontAsk",
        );
        text
    }

    fn agents(&self) -> String {
        let all = Definitions::find(&self.config, &self.project, self.trusted);
        let mut text = String::new();
        for one in &all.list {
            text.push_str(&format!("- **{}**: {}\n", one.name, one.description));
        }
        for (path, why) in &all.faults {
            text.push_str(&format!("- {}: {why}\n", path.display()));
        }
        match text.is_empty() {
            true => "no agents are defined; put Markdown files into `.claude/agents/`".to_owned(),
            false => text,
        }
    }

    fn servers(&self) -> String {
        let servers = self.more.as_ref().map(|more| more.servers());
        let mut text = String::new();
        for server in servers.iter().flatten() {
            let tools = amount::count(server.tools as u64, "tool");
            let how = match &server.health {
                Health::Failed(why) => format!("failed: {why}"),
                Health::NeedsLogin => {
                    "wants a login: give it a header with a token in its settings".to_owned()
                }
                health => format!("{}, {tools}", health.name()),
            };
            text.push_str(&format!("- **{}**: {how}\n", server.name));
        }
        match text.is_empty() {
            true => "no servers; `.mcp.json` and `--mcp-config` name them".to_owned(),
            false => text,
        }
    }

    fn memory(&self) -> String {
        let memory = memory::memory(&self.roots);
        let mut text = String::new();
        for file in &memory.files {
            let lines = file.text.lines().count() as u64;
            text.push_str(&format!(
                "- {} ({})\n",
                file.path.display(),
                amount::count(lines, "line")
            ));
        }
        for path in &memory.external {
            text.push_str(&format!(
                "- {} is outside the project and is not read\n",
                path.display()
            ));
        }
        match text.is_empty() {
            true => "no CLAUDE.md is read here; `#text` begins one".to_owned(),
            false => text,
        }
    }

    fn export(&self, format: &str) -> Told {
        let format = if format.is_empty() { "html" } else { format };
        match export::beside(&self.world, self.path.as_os_str(), format) {
            Ok(path) => Told::Say(format!("written to `{}`", path.display())),
            Err(failure) => Told::Fail(told(&failure)),
        }
    }

    fn sessions(&self) -> Told {
        let found = match self.world.found() {
            Ok(found) => found,
            Err(failure) => return Told::Fail(told(&failure)),
        };
        let prices = self.world.prices();
        let now = world::now();
        let rows = ls::rows(&self.world, &found, false, &prices, now);
        let choices = rows.into_iter().take(MOST).map(|mut row| {
            ls::mask(&self.world, &mut row);
            Choice {
                label: row.title.clone().unwrap_or_else(|| row.id.clone()),
                detail: format!("{}  {}", row.project, ls::short(&row.id)),
                value: row.id,
            }
        });
        Told::Pick(Pick::new(
            "resume",
            "Go on with which session?",
            choices.collect(),
        ))
    }

    /// A command or skill that somebody wrote: the session expands it.
    fn template(&self, name: &str, rest: &str) -> Told {
        if self.templates.named(name).is_none_or(|it| !it.for_person) {
            return Told::Fail(format!("there is no command /{name}; /help lists them"));
        }
        let text = format!("/{name} {rest}").trim_end().to_owned();
        Told::Submit {
            content: Value::String(text.clone()),
            text,
            context: Vec::new(),
        }
    }

    /// What is said, with the pictures and files it names.
    fn prompt(&self, text: &str) -> Told {
        let (mut blocks, mut context) = (Vec::new(), Vec::new());
        for word in text.split_whitespace() {
            let named = word.strip_prefix('@');
            let path = self.project.join(unquoted(named.unwrap_or(word)));
            match (picture(&path), named) {
                (Some(block), _) => blocks.push(block),
                (None, Some(name)) => context.extend(file(&path, name)),
                (None, None) => {}
            }
        }
        let content = match blocks.is_empty() {
            true => Value::String(text.to_owned()),
            false => {
                blocks.push(json!({"type": "text", "text": text}));
                Value::Array(blocks)
            }
        };
        Told::Submit {
            text: text.to_owned(),
            content,
            context,
        }
    }
}

impl Desk for Talk {
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

    fn typed(&self, text: &str) -> Told {
        if let Some(prompts) = &self.prompts {
            // A prompt that cannot be remembered can still be said.
            let _ = talk::remember(prompts, &self.project, text);
        }
        if let Some(command) = text.strip_prefix('!').filter(|it| !it.trim().is_empty()) {
            return Told::Do(vec![Command::Shell(command.trim().to_owned())]);
        }
        if let Some(words) = text.strip_prefix('#').filter(|it| !it.trim().is_empty()) {
            let file = self.project.join("CLAUDE.md");
            return match memory::append(&file, words) {
                Ok(()) => Told::Say(format!("remembered in `{}`", file.display())),
                Err(why) => Told::Fail(format!("`{}`: {why}", file.display())),
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

    fn chosen(&self, what: &str, value: &str) -> Told {
        match what {
            "resume" => Told::Go(Next::Resume(value.to_owned())),
            "model" => Told::Do(vec![Command::Model(value.to_owned())]),
            "rewind" => {
                let choice = |label: &str, how: &str| Choice {
                    label: label.to_owned(),
                    detail: String::new(),
                    value: format!("{how} {value}"),
                };
                let choices = vec![
                    choice("the conversation and the files", "both"),
                    choice("the conversation only", "conversation"),
                    choice("the files only", "files"),
                ];
                Told::Pick(Pick::new("rewind-how", "Go back with what?", choices))
            }
            "rewind-how" => {
                let (how, prompt) = value.split_once(' ').unwrap_or(("both", value));
                Told::Do(vec![Command::Rewind {
                    prompt: prompt.to_owned(),
                    files: how != "conversation",
                    conversation: how != "files",
                }])
            }
            _ => Told::Fail(format!("nobody asked for {what}")),
        }
    }

    fn prompts(&self) -> Told {
        let chosen = match self.world.view(Some(self.path.as_os_str())) {
            Ok(chosen) => chosen,
            Err(_) => return Told::Fail("nothing has been said yet".to_owned()),
        };
        let main = &chosen.family.main;
        let turns = turns::turns(&main.session, &main.source, turns::Options::default());
        let choices = turns
            .iter()
            .rev()
            .filter(|turn| turn.live)
            .filter_map(|turn| {
                let prompt = main.session.records[turn.record as usize].uuid.as_ref()?;
                Some(Choice {
                    label: turn.prompt.clone(),
                    detail: String::new(),
                    value: prompt.to_string(),
                })
            });
        let choices: Vec<Choice> = choices.collect();
        match choices.is_empty() {
            true => Told::Fail("nothing has been said yet".to_owned()),
            false => Told::Pick(Pick::new(
                "rewind",
                "Go back to before which prompt?",
                choices,
            )),
        }
    }

    fn keep(&self, rules: &[String]) -> Result<String, String> {
        let path = always::store(rules, &self.project).map_err(|why| why.to_string())?;
        // Who trusts the folder said this themselves: it is not asked for again.
        if self.trusted {
            let settings = Settings::load(&self.places).map_err(|why| why.to_string())?;
            let stored = Trust::at(self.world.trusted()).store(&settings);
            stored.map_err(|why| why.to_string())?;
        }
        Ok(format!("{} kept in {}", rules.join(", "), path.display()))
    }
}

fn models(now: &str) -> Told {
    let choice = |(name, about): (&str, &str)| Choice {
        label: name.to_owned(),
        detail: about.to_owned(),
        value: name.to_owned(),
    };
    let all = [
        ("opus", "the most able"),
        ("sonnet", "able and quick"),
        ("haiku", "the quickest"),
    ];
    let title = format!("Which model? now: {now}");
    Told::Pick(Pick::new("model", &title, all.map(choice).into()))
}

fn mode(name: &str) -> Told {
    match Mode::read(name) {
        Some((mode, _)) => Told::Do(vec![Command::Mode(mode)]),
        None => Told::Fail(format!(
            "`{name}` is no mode: default, acceptEdits, plan, dontAsk or bypassPermissions"
        )),
    }
}

fn told(failure: &Failure) -> String {
    match failure {
        Failure::Nothing(told) | Failure::Failed(told) => match &told.hint {
            Some(hint) => format!("{}; {hint}", told.message),
            None => told.message.clone(),
        },
        Failure::Found | Failure::Code(_) | Failure::Closed => "it ended early".to_owned(),
    }
}

/// A path as terminals paste it: in quotes, or with blanks behind backslashes.
fn unquoted(word: &str) -> String {
    let word = word.trim_matches(['\'', '"']);
    word.replace('\\', "")
}

fn picture(path: &Path) -> Option<Value> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    let (_, kind) = PICTURES.iter().find(|(known, _)| *known == end)?;
    let size = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?
        .len();
    if size > LARGEST {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    Some(json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}))
}

/// What stands in a file, for the model alone.
fn file(path: &Path, name: &str) -> Option<String> {
    if path.is_dir() {
        let mut names: Vec<String> = std::fs::read_dir(path)
            .ok()?
            .flatten()
            .take(1000)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        return Some(format!("The folder {name} holds:\n{}", names.join("\n")));
    }
    let mut text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push_str("\n[the rest is left out; read the file]");
    }
    Some(format!("The file {name}:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_path_loses_its_quotes() {
        assert_eq!(unquoted("'/a/b.png'"), "/a/b.png");
        assert_eq!(unquoted("/a/b\\ c.png"), "/a/b c.png");
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
