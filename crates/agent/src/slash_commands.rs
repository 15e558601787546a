//! Commands that somebody wrote: Markdown files that become prompts.
//!
//! A template is read once, from left to right: what arguments, commands and files bring in is
//! never looked into again, so none of it can be an order.
//!
//! Those of a folder grant nothing, trusted or not: somebody trusts what settings say, and a text
//! that is pulled later asks for no new yes. What one runs is judged by the rules alone.

use std::path::{Path, PathBuf};

use crate::agent_definitions::{LONGEST, folders, markdown};
use crate::folder_files::{self, SkippedFileReason};
use crate::front_matter::FrontMatter;
use crate::memory;

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOrigin {
    /// The user's own folder.
    User,
    /// The folder of the session.
    Folder,
}

/// A command or a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTemplate {
    /// What stands behind the slash.
    pub name: String,
    /// What it does; the first line of its text if nobody says.
    pub description: String,
    /// What to type behind its name.
    pub hint: Option<String>,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Rules that allow more while it runs. They count if the template is the user's own.
    pub allowed_tools: Vec<String>,
    /// The model it wants.
    pub model: Option<String>,
    /// Whether it is a skill, in a folder of its own.
    pub is_skill: bool,
    /// Whether the model may call it.
    pub for_model: bool,
    /// Whether a person may call it.
    pub for_person: bool,
    /// Where it comes from.
    pub origin: CommandOrigin,
    /// Its file.
    pub path: PathBuf,
    body: String,
}

/// What a command became.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpandedCommand {
    /// The prompt.
    pub text: String,
    /// Files the template names with `@`.
    pub files: Vec<PathBuf>,
    /// Rules that allow more while it runs; none from a folder.
    pub allowed_tools: Vec<String>,
    /// The model it wants; none from a folder that is not trusted.
    pub model: Option<String>,
}

/// Who runs the commands in a template, or refuses to.
pub trait TemplateCommandRunner {
    /// Runs a command that the template holds, if it may, and returns its output.
    fn run(&mut self, command: &str, allowed_tools: &[String]) -> Result<String, String>;
}

/// All commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlashCommands {
    /// By name.
    pub list: Vec<CommandTemplate>,
    /// Files that were not read, and why.
    pub left_out: Vec<(PathBuf, String)>,
}

impl SlashCommands {
    /// Reads commands and skills of the user and of the folder; the user's win, so that a folder
    /// cannot put its own text behind a name somebody knows. Links of the folder have to stay
    /// within `boundary`.
    pub fn find(config: &Path, project: &Path, boundary: &Path) -> SlashCommands {
        let mut all = SlashCommands::default();
        all.take_all(config, None, CommandOrigin::User);
        for (folder, within) in folders(config, project, boundary) {
            all.take_all(&folder, Some(&within), CommandOrigin::Folder);
        }
        all.list.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn take_all(&mut self, folder: &Path, within: Option<&Path>, origin: CommandOrigin) {
        let skills = folder.join("skills");
        let mut names: Vec<PathBuf> = Vec::new();
        match within.is_some_and(|within| folder_files::leaves(&skills, within)) {
            true => self.leave_out(&skills, within, &SkippedFileReason::Outside),
            false => {
                let entries = unspool_store::read_folder::entries(&skills);
                let entries = entries.into_iter().flatten().flatten();
                names.extend(entries.map(|entry| entry.path()));
            }
        }
        names.sort();
        for path in names {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            self.take(name, &path.join("SKILL.md"), within, true, origin);
        }
        let commands = folder.join("commands");
        for path in markdown(&commands, within, &mut self.left_out) {
            let below = path
                .strip_prefix(&commands)
                .unwrap_or(&path)
                .with_extension("");
            let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            self.take(Some(parts.join(":")), &path, within, false, origin);
        }
    }

    fn leave_out(&mut self, path: &Path, within: Option<&Path>, why: &SkippedFileReason) {
        self.left_out
            .extend(folder_files::describe_skipped_file(path, within, why));
    }

    fn take(
        &mut self,
        name: Option<String>,
        path: &Path,
        within: Option<&Path>,
        is_skill: bool,
        origin: CommandOrigin,
    ) {
        let Some(name) = name else { return };
        let text = match folder_files::read_text(path, within, LONGEST) {
            Ok(text) => text,
            Err(why) => return self.leave_out(path, within, &why),
        };
        if self.list.iter().any(|one| one.name == name) {
            return;
        }
        let (front, body) = FrontMatter::split(&text);
        let first = body.lines().map(|line| line.trim_start_matches(['#', ' ']));
        let first = first.map(str::trim).find(|line| !line.is_empty());
        self.list.push(CommandTemplate {
            description: front
                .text("description")
                .unwrap_or_else(|| first.unwrap_or_default().to_owned()),
            hint: front.text("argument-hint"),
            arguments: front.list("arguments").unwrap_or_default(),
            allowed_tools: front.list("allowed-tools").unwrap_or_default(),
            model: front.text("model").filter(|model| model != "inherit"),
            for_model: front.switch("disable-model-invocation") != Some(true),
            for_person: front.switch("user-invocable") != Some(false),
            is_skill,
            origin,
            path: path.to_path_buf(),
            body: body.to_owned(),
            name,
        });
    }

    /// The command of a name; the last part of one in a folder is enough if it is the only one.
    pub fn named(&self, name: &str) -> Option<&CommandTemplate> {
        let name = name.strip_prefix('/').unwrap_or(name);
        if let Some(exact) = self.list.iter().find(|one| one.name == name) {
            return Some(exact);
        }
        let is_last = |one: &&CommandTemplate| one.name.rsplit(':').next() == Some(name);
        let mut found = self.list.iter().filter(is_last);
        match (found.next(), found.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }
}

impl CommandTemplate {
    /// Makes the prompt. Commands in it run only if the folder is trusted or they are the user's
    /// own, and only if the runner lets them.
    pub fn expand(
        &self,
        arguments: &str,
        project: &Path,
        trusted: bool,
        runner: &mut dyn TemplateCommandRunner,
    ) -> Result<ExpandedCommand, String> {
        let may_run = trusted || self.origin == CommandOrigin::User;
        let mut done = ExpandedCommand::default();
        if may_run {
            done.model.clone_from(&self.model);
        }
        if self.origin == CommandOrigin::User {
            done.allowed_tools.clone_from(&self.allowed_tools);
        }
        if self.is_skill {
            let folder = self.path.parent().unwrap_or(project);
            let line = format!("Base directory for this skill: {}\n\n", folder.display());
            done.text.push_str(&line);
        }
        let words = words(arguments);
        let mut used = false;
        for piece in pieces(&self.body) {
            match piece {
                TemplatePart::Text(text) => {
                    let text = self.filled(text, arguments, &words, &mut used);
                    done.text.push_str(&text);
                }
                TemplatePart::Command(command) => {
                    if !may_run {
                        return Err(format!(
                            "/{} wants to run `{command}`, but the folder is not trusted",
                            self.name
                        ));
                    }
                    let command = self.filled(command, arguments, &words, &mut used);
                    let ran = runner.run(&command, &done.allowed_tools);
                    let output = ran.map_err(|why| self.not_run(&command, &why))?;
                    done.text.push_str(output.trim_end());
                }
            }
        }
        if !used && !arguments.trim().is_empty() {
            let gap = if done.text.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            done.text
                .push_str(&format!("{gap}ARGUMENTS: {}", arguments.trim()));
        }
        for name in memory::imports(&self.body) {
            let name = name.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']);
            done.files.push(project.join(name));
        }
        Ok(done)
    }

    /// Why a command in it did not run.
    fn not_run(&self, command: &str, why: &str) -> String {
        let text = format!("/{} could not run `{command}`: {why}", self.name);
        match self.origin == CommandOrigin::Folder && !self.allowed_tools.is_empty() {
            true => format!(
                "{text} (`allowed-tools` of a project's command are ignored; add a rule with /permissions)"
            ),
            false => text,
        }
    }

    /// Puts arguments in the places made for them.
    fn filled(&self, text: &str, arguments: &str, words: &[String], used: &mut bool) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            if let Some(before) = before.strip_suffix('\\') {
                out.push_str(before);
                out.push('$');
                rest = after;
                continue;
            }
            out.push_str(before);
            match self.place(after, arguments, words) {
                Some((value, len)) => {
                    *used = true;
                    out.push_str(&value);
                    rest = &after[len..];
                }
                None => {
                    out.push('$');
                    rest = after;
                }
            }
        }
        out + rest
    }

    /// What the place behind a dollar stands for, and how long its name is.
    fn place(&self, after: &str, arguments: &str, words: &[String]) -> Option<(String, usize)> {
        let word = |index: usize| words.get(index).cloned().unwrap_or_default();
        if after.starts_with("{CLAUDE_SKILL_DIR}") {
            let folder = self.path.parent()?.display().to_string();
            return Some((folder, "{CLAUDE_SKILL_DIR}".len()));
        }
        let len = after
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(after.len());
        let name = &after[..len];
        if name == "ARGUMENTS" {
            let inner = after[len..]
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'));
            return match inner {
                Some((index, _)) if !index.is_empty() => {
                    let value = word(index.parse().ok()?);
                    Some((value, len + index.len() + 2))
                }
                _ => Some((arguments.trim().to_owned(), len)),
            };
        }
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_digit()) {
            return Some((word(name.parse().ok()?), len));
        }
        let index = self.arguments.iter().position(|known| known == name)?;
        Some((word(index), len))
    }
}

enum TemplatePart<'a> {
    Text(&'a str),
    Command(&'a str),
}

/// Divides a template into text and commands: `` !`…` `` at the start of a word.
fn pieces(body: &str) -> Vec<TemplatePart<'_>> {
    let mut all = Vec::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(found) = body[at..].find("!`") {
        let start = at + found;
        let begins = body[..start]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        let end = body[start + 2..].find('`').map(|len| start + 2 + len);
        match end {
            Some(end) if begins && !body[start + 2..end].contains('\n') => {
                all.push(TemplatePart::Text(&body[from..start]));
                all.push(TemplatePart::Command(&body[start + 2..end]));
                from = end + 1;
                at = from;
            }
            _ => at = start + 2,
        }
    }
    all.push(TemplatePart::Text(&body[from..]));
    all
}

/// Arguments as a shell would divide them: at blanks outside quotes.
fn words(arguments: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = arguments.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, None) if c.is_whitespace() => all.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct CommandsFixture {
        temp: tempfile::TempDir,
    }

    /// Says what it was asked to run.
    #[derive(Default)]
    struct EchoCommandRunner {
        asked: Vec<String>,
        rules: Vec<String>,
    }

    impl TemplateCommandRunner for EchoCommandRunner {
        fn run(&mut self, command: &str, rules: &[String]) -> Result<String, String> {
            self.asked.push(command.to_owned());
            self.rules.extend_from_slice(rules);
            match command {
                "no" => Err("denied".to_owned()),
                _ => Ok(format!("<{command}> $0 !`evil`\n")),
            }
        }
    }

    impl CommandsFixture {
        fn new() -> CommandsFixture {
            CommandsFixture {
                temp: tempfile::tempdir().unwrap(),
            }
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn find(&self) -> SlashCommands {
            let project = self.temp.path().join("p");
            SlashCommands::find(&self.temp.path().join("c"), &project, &project)
        }

        fn expand(&self, body: &str, arguments: &str) -> String {
            self.write("c/commands/x.md", body);
            let commands = self.find();
            let project = self.temp.path().join("p");
            let done = commands.named("x").unwrap().expand(
                arguments,
                &project,
                false,
                &mut EchoCommandRunner::default(),
            );
            done.unwrap().text
        }
    }

    #[test]
    fn commands_and_skills_are_found_by_name() {
        let world = CommandsFixture::new();
        world.write("c/commands/git/commit.md", "---\ndescription: d\n---\nx");
        world.write("p/.claude/commands/plain.md", "# Title here\ntext");
        world.write(
            "p/.claude/skills/paint/SKILL.md",
            "---\nuser-invocable: false\n---\nx",
        );
        let all = world.find();
        let names: Vec<&str> = all.list.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["git:commit", "paint", "plain"]);
        assert_eq!(all.named("/commit").unwrap().description, "d");
        assert_eq!(all.named("plain").unwrap().description, "Title here");
        let skill = all.named("paint").unwrap();
        assert!(skill.is_skill && skill.for_model && !skill.for_person);
        assert!(all.named("nothing").is_none());
    }

    #[test]
    fn a_command_or_skill_behind_a_link_that_leaves_the_project_is_not_read() {
        let world = CommandsFixture::new();
        world.write("outside/SKILL.md", "secret");
        world.write("outside/x.md", "secret");
        world.write("p/docs/SKILL.md", "inside");
        world.write("p/.claude/skills/plain/SKILL.md", "plain");
        world.write("p/.claude/commands/plain2.md", "plain");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, world.temp.path().join(name)).unwrap();
        };
        link("../../../outside", "p/.claude/skills/out");
        link("../../docs", "p/.claude/skills/in");
        link("../../../outside/x.md", "p/.claude/commands/out2.md");
        link("../../docs/SKILL.md", "p/.claude/commands/in2.md");
        let all = world.find();
        let names: Vec<&str> = all.list.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["in", "in2", "plain", "plain2"]);
        let left_out = all.left_out.iter().map(|(path, _)| path);
        let left_out: Vec<_> = left_out.filter_map(|path| path.file_name()).collect();
        assert_eq!(left_out, ["out", "out2.md"]);
        // The same behind a folder that is a link, told once for all that lies in it.
        fs::remove_dir_all(world.temp.path().join("p/.claude")).unwrap();
        link("../outside", "p/.claude");
        world.write("outside/commands/x.md", "secret");
        world.write("outside/skills/s/SKILL.md", "secret");
        let all = world.find();
        assert_eq!(all.list, []);
        assert!(
            all.left_out
                .iter()
                .all(|(path, _)| path.ends_with("p/.claude"))
        );
    }

    #[test]
    fn a_folder_cannot_choose_the_model_of_a_command_before_it_is_trusted() {
        let world = CommandsFixture::new();
        let text = "---\nmodel: opus\nallowed-tools: Bash\n---\nx";
        world.write("p/.claude/commands/theirs.md", text);
        world.write("c/commands/mine.md", text);
        let wanted = |name: &str, trusted| {
            let found = world.find().named(name).unwrap().clone();
            let done = found.expand(
                "",
                world.temp.path(),
                trusted,
                &mut EchoCommandRunner::default(),
            );
            let done = done.unwrap();
            (done.model, done.allowed_tools.len())
        };
        let opus = || Some("opus".to_owned());
        assert_eq!(wanted("theirs", false), (None, 0));
        assert_eq!(wanted("theirs", true), (opus(), 0));
        assert_eq!(wanted("mine", false), (opus(), 1));
    }

    #[test]
    fn a_folder_cannot_put_its_text_behind_a_name_of_the_user() {
        let world = CommandsFixture::new();
        world.write("c/commands/commit.md", "mine");
        world.write("p/.claude/commands/commit.md", "theirs");
        assert_eq!(
            world.find().named("commit").unwrap().origin,
            CommandOrigin::User
        );
    }

    #[test]
    fn arguments_go_where_the_template_wants_them() {
        let world = CommandsFixture::new();
        assert_eq!(world.expand("a $ARGUMENTS b", "x  y"), "a x  y b");
        assert_eq!(world.expand("$1-$0-$2.", "'x y' z"), "z-x y-.");
        assert_eq!(world.expand("$ARGUMENTS[1]", "x y"), "y");
        assert_eq!(
            world.expand("---\narguments: [from, to]\n---\n$from>$to $other", "a b"),
            "a>b $other"
        );
        assert_eq!(
            world.expand(r"costs \$0 $", "x"),
            "costs $0 $\n\nARGUMENTS: x"
        );
    }

    #[test]
    fn arguments_without_a_place_stand_at_the_end() {
        let world = CommandsFixture::new();
        assert_eq!(world.expand("do it\n", "now"), "do it\n\nARGUMENTS: now");
        assert_eq!(world.expand("do it", " "), "do it");
    }

    #[test]
    fn what_is_put_in_is_never_an_order() {
        let world = CommandsFixture::new();
        let text = world.expand("$ARGUMENTS and !`date`", "!`evil` $0");
        assert_eq!(text, "!`evil` $0 and <date> $0 !`evil`");
    }

    #[test]
    fn a_command_runs_only_at_the_start_of_a_word() {
        let world = CommandsFixture::new();
        assert_eq!(world.expand("x!`a` `!`b` !`c\n`", ""), "x!`a` `!`b` !`c\n`");
        assert!(
            world
                .expand("!`git log $0`", "main")
                .starts_with("<git log main>")
        );
    }

    #[test]
    fn commands_of_a_folder_run_nothing_before_it_is_trusted() {
        let world = CommandsFixture::new();
        world.write(
            "p/.claude/commands/x.md",
            "---\nallowed-tools: Bash(rm:*)\n---\n!`evil`",
        );
        let commands = world.find();
        let template = commands.named("x").unwrap();
        let mut runner = EchoCommandRunner::default();
        let project = world.temp.path().join("p");
        assert!(template.expand("", &project, false, &mut runner).is_err());
        assert_eq!(runner.asked, Vec::<String>::new());
        let done = template.expand("", &project, true, &mut runner).unwrap();
        assert_eq!(runner.asked, ["evil"]);
        assert_eq!(runner.rules, Vec::<String>::new());
        assert_eq!(done.allowed_tools, Vec::<String>::new());
    }

    #[test]
    fn rules_of_a_command_of_a_folder_never_count_and_those_of_the_user_do() {
        let world = CommandsFixture::new();
        let text = "---\nallowed-tools: Bash(rm:*)\n---\n!`x`";
        world.write("p/.claude/commands/theirs.md", text);
        world.write("p/.claude/skills/skill/SKILL.md", text);
        world.write("c/commands/mine.md", text);
        let commands = world.find();
        let project = world.temp.path().join("p");
        for (name, count) in [("theirs", 0), ("skill", 0), ("mine", 1)] {
            let mut runner = EchoCommandRunner::default();
            let template = commands.named(name).unwrap();
            let done = template.expand("", &project, true, &mut runner).unwrap();
            assert_eq!(done.allowed_tools.len(), count, "{name}");
            assert_eq!(runner.rules.len(), count, "{name}");
        }
    }

    #[test]
    fn a_command_that_may_not_run_is_said_with_its_reason() {
        let world = CommandsFixture::new();
        world.write("c/commands/x.md", "!`no`");
        let project = world.temp.path().join("p");
        let commands = world.find();
        let failed = commands.named("x").unwrap();
        let failed = failed.expand("", &project, false, &mut EchoCommandRunner::default());
        assert_eq!(failed.unwrap_err(), "/x could not run `no`: denied");
    }

    #[test]
    fn files_of_the_template_are_told() {
        let world = CommandsFixture::new();
        world.write("c/commands/x.md", "look at @src/a.rs. `@not` $ARGUMENTS");
        let project = world.temp.path().join("p");
        let commands = world.find();
        let done = commands.named("x").unwrap();
        let done = done
            .expand("@arg", &project, false, &mut EchoCommandRunner::default())
            .unwrap();
        assert_eq!(done.files, [project.join("src/a.rs")]);
    }
}
