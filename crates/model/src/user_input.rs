//! What a user line is: a person's act that opens a turn, or something a program wrote.
//!
//! The order of the questions matters and was measured on 13,254 real lines (98–100 %
//! precise). String content alone says nothing: of the string lines only 58 % are prompts,
//! and 12 % of the prompts are arrays.

use std::borrow::Cow;

/// What a user line turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UserInput {
    /// Typed or pasted by a person (images alone count).
    Prompt,
    /// A slash command.
    Command,
    /// A shell command typed behind `!`.
    Shell,
    /// A note typed behind `#`.
    Memory,
    /// A plan handed over to a fresh context; written by the program for the person.
    Plan,
    /// Results of tool calls.
    Results,
    /// "[Request interrupted by user]": ends a turn, opens none.
    Interrupt,
    /// The summary that a compaction left.
    Summary,
    /// Written by the program for the model (`isMeta`): skill bodies, caveats, hook feedback.
    Meta,
    /// Output of local and shell commands, notifications, messages of other agents.
    #[default]
    Machine,
}

impl UserInput {
    /// Whether it opens a turn.
    pub fn opens_turn(self) -> bool {
        match self {
            UserInput::Prompt
            | UserInput::Command
            | UserInput::Shell
            | UserInput::Memory
            | UserInput::Plan => true,
            UserInput::Results
            | UserInput::Interrupt
            | UserInput::Summary
            | UserInput::Meta
            | UserInput::Machine => false,
        }
    }

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            UserInput::Prompt => "prompt",
            UserInput::Command => "command",
            UserInput::Shell => "shell",
            UserInput::Memory => "memory",
            UserInput::Plan => "plan",
            UserInput::Results => "tool_result",
            UserInput::Interrupt => "interrupt",
            UserInput::Summary => "summary",
            UserInput::Meta => "meta",
            UserInput::Machine => "machine",
        }
    }
}

/// What stands on a user line beside its text.
#[derive(Clone, Copy, Debug, Default)]
pub struct UserLineFacts<'a> {
    /// It holds a tool result.
    pub results: bool,
    /// It holds an image or a document.
    pub media: bool,
    /// `isMeta`.
    pub meta: bool,
    /// `isCompactSummary`.
    pub summary: bool,
    /// `isVisibleInTranscriptOnly`.
    pub transcript_only: bool,
    /// `planContent` is there.
    pub plan: bool,
    /// `origin.kind`.
    pub origin: Option<&'a str>,
    /// The line is a teammate's: others of its team tell it what to do.
    pub teammate: bool,
}

/// Kinds of input that people filter by; a line may be several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputKinds(u8);

impl InputKinds {
    /// Plain text.
    pub const TEXT: InputKinds = InputKinds(1);
    /// Lines selected in an editor.
    pub const IDE_SELECTION: InputKinds = InputKinds(2);
    /// A file open in an editor.
    pub const IDE_OPENED_FILE: InputKinds = InputKinds(4);
    /// An image or document.
    pub const IMAGE: InputKinds = InputKinds(8);
    /// A slash command.
    pub const COMMAND: InputKinds = InputKinds(16);
    /// A tool result.
    pub const TOOL_RESULT: InputKinds = InputKinds(32);

    const NAMES: [(InputKinds, &'static str); 6] = [
        (InputKinds::TEXT, "text"),
        (InputKinds::IDE_SELECTION, "ide_selection"),
        (InputKinds::IDE_OPENED_FILE, "ide_opened_file"),
        (InputKinds::IMAGE, "image"),
        (InputKinds::COMMAND, "command"),
        (InputKinds::TOOL_RESULT, "tool_result"),
    ];

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn of_bits(bits: u8) -> InputKinds {
        InputKinds(bits)
    }

    /// Adds a kind.
    pub fn insert(&mut self, kind: InputKinds) {
        self.0 |= kind.0;
    }

    /// Whether `kind` is among them.
    pub fn contains(self, kind: InputKinds) -> bool {
        self.0 & kind.0 != 0
    }

    /// Their names, in a fixed order.
    pub fn names(self) -> Vec<&'static str> {
        let with_name = InputKinds::NAMES
            .iter()
            .filter(|(kind, _)| self.contains(*kind));
        with_name.map(|(_, name)| *name).collect()
    }
}

/// Says what a user line is.
pub fn classify(text: &str, facts: UserLineFacts<'_>) -> UserInput {
    if facts.results {
        return UserInput::Results;
    }
    if facts.summary {
        return UserInput::Summary;
    }
    if facts.meta {
        return UserInput::Meta;
    }
    if facts.teammate && !facts.transcript_only && is_told_by_team(stripped(text)) {
        return UserInput::Prompt;
    }
    // A plan that was accepted goes on by itself, and says so in its origin.
    let foreign = facts.origin.is_some_and(|kind| kind != "human") && !facts.plan;
    if facts.transcript_only || foreign {
        return UserInput::Machine;
    }
    let text = stripped(text);
    let starts = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    if starts(COMMAND) {
        // The client writes the tags around nothing as well.
        match command_name(text) {
            Some(_) => UserInput::Command,
            None => UserInput::Machine,
        }
    } else if starts(&["<bash-input>"]) {
        UserInput::Shell
    } else if starts(&["<user-memory-input>"]) {
        UserInput::Memory
    } else if starts(&["[Request interrupted by user"]) {
        UserInput::Interrupt
    } else if starts(&["This session is being continued from a previous conversation"]) {
        UserInput::Summary
    } else if starts(MACHINE)
        || starts_with_tag(text, MACHINE_TAGS)
        || text.trim() == "(no content)"
    {
        UserInput::Machine
    } else if facts.plan || starts(&["Implement the following plan:\n"]) {
        UserInput::Plan
    } else if text.trim().is_empty() && !facts.media {
        UserInput::Machine
    } else {
        UserInput::Prompt
    }
}

const COMMAND: &[&str] = &["<command-name>", "<command-message>"];

/// Tags around what a program wrote, with or without attributes.
const MACHINE_TAGS: &[&str] = &[
    "task-notification",
    "teammate-message",
    "bash-stdout",
    "bash-stderr",
    "bash-notification",
    "ci-monitor-event",
];

/// Whether a text is a message of a team that says something. Teams also tell each other in JSON
/// who is idle and who may go.
fn is_told_by_team(text: &str) -> bool {
    team_messages(text).any(|message| !message.starts_with('{'))
}

/// What the messages of a team in a text say.
fn team_messages(text: &str) -> impl Iterator<Item = &str> {
    const CLOSE: &str = "</teammate-message>";
    let is_one = starts_with_tag(text, &["teammate-message"]);
    let parts = text.split("<teammate-message").skip(1);
    parts.filter(move |_| is_one).filter_map(|part| {
        let (_, inside) = part.split_once('>')?;
        let inside = inside.split(CLOSE).next().unwrap_or_default().trim();
        Some(inside).filter(|inside| !inside.is_empty())
    })
}

const MACHINE: &[&str] = &[
    "<local-command-",
    "Caveat: The messages below were generated by the user while running local commands",
    "Operation stopped by hook:",
    "[Image: source:",
    "Stop hook feedback:",
    "Unknown command: /",
    "Unknown slash command: ",
    "Unknown skill: ",
    "This slash command can only be invoked by Claude, not directly by users.",
];

/// Whether a text begins with one of these tags, and not with one whose name only begins so.
fn starts_with_tag(text: &str, tags: &[&str]) -> bool {
    let Some(text) = text.strip_prefix('<') else {
        return false;
    };
    let ends = |rest: &str| rest.starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace());
    let mut tags = tags.iter();
    tags.any(|tag| text.strip_prefix(tag).is_some_and(ends))
}

const WRAPPERS: &[&str] = &["ide_opened_file", "ide_selection", "ide_diagnostics"];

/// What the program tells the model beside what a person typed.
const REMINDER: &str = "system-reminder";

/// The text without the wrappers that editors and the program put in front of it.
pub fn stripped(text: &str) -> &str {
    let mut rest = text.trim_start();
    'next: loop {
        for tag in WRAPPERS {
            if let Some(behind) = behind_tag(rest, tag) {
                // A wrapper that never closes is the whole text.
                rest = behind.unwrap_or("").trim_start();
                continue 'next;
            }
        }
        match behind_reminder(rest) {
            Some(behind) => rest = behind.trim_start(),
            None => return rest,
        }
    }
}

/// What stands behind a tag that the text begins with; nothing within if it never closes.
fn behind_tag<'a>(text: &'a str, tag: &str) -> Option<Option<&'a str>> {
    let inner = text
        .strip_prefix('<')?
        .strip_prefix(tag)?
        .strip_prefix('>')?;
    Some(behind_close(inner, tag))
}

fn behind_close<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let close = format!("</{tag}>");
    let at = text.find(&close)?;
    Some(&text[at + close.len()..])
}

/// What stands behind a reminder that the text begins with. One that never closes was typed, as
/// in a question about the tag; so was one with attributes that has nothing behind it.
fn behind_reminder(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?.strip_prefix(REMINDER)?;
    if let Some(inner) = inner.strip_prefix('>') {
        return behind_close(inner, REMINDER);
    }
    let inner = inner.strip_prefix(char::is_whitespace)?;
    let behind = behind_close(&inner[inner.find('>')? + 1..], REMINDER)?;
    Some(behind).filter(|behind| !behind.trim().is_empty())
}

/// Which kinds of input the text holds.
pub fn kinds(text: &str, facts: UserLineFacts<'_>) -> InputKinds {
    let mut kinds = InputKinds::default();
    if facts.results {
        kinds.insert(InputKinds::TOOL_RESULT);
    }
    if facts.media {
        kinds.insert(InputKinds::IMAGE);
    }
    if text.contains("<ide_selection>") {
        kinds.insert(InputKinds::IDE_SELECTION);
    }
    if text.contains("<ide_opened_file>") {
        kinds.insert(InputKinds::IDE_OPENED_FILE);
    }
    let rest = stripped(text).trim();
    if COMMAND.iter().any(|start| rest.starts_with(start)) {
        kinds.insert(InputKinds::COMMAND);
    } else if !rest.is_empty() {
        kinds.insert(InputKinds::TEXT);
    }
    kinds
}

/// The text as a person would read it: wrappers off, commands as they were typed.
pub fn readable(text: &str) -> Cow<'_, str> {
    let text = stripped(text);
    let starts = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    if let Some(name) = command_name(text).filter(|_| starts(COMMAND)) {
        let args = tagged(text, "command-args").unwrap_or_default().trim();
        let slash = if name.starts_with('/') { "" } else { "/" };
        let whole = format!("{slash}{name} {args}");
        return Cow::Owned(whole.trim_end().to_owned());
    }
    if let Some(command) = tagged(text, "bash-input").filter(|_| starts(&["<bash-input>"])) {
        return Cow::Owned(format!("! {command}"));
    }
    let note = tagged(text, "user-memory-input");
    if let Some(note) = note.filter(|_| starts(&["<user-memory-input>"])) {
        return Cow::Owned(format!("# {note}"));
    }
    if is_told_by_team(text) {
        let told = team_messages(text).filter(|message| !message.starts_with('{'));
        return Cow::Owned(told.collect::<Vec<_>>().join("\n\n"));
    }
    Cow::Borrowed(text.trim_end())
}

/// The name of the command that was typed, with or without its slash.
pub fn command_name(text: &str) -> Option<&str> {
    let named = |open: &&str| {
        let (_, name) = text.split_once(open)?;
        let name = name.split("</").next().unwrap_or(name).trim();
        Some(name).filter(|name| !name.trim_start_matches('/').is_empty())
    };
    COMMAND.iter().find_map(named)
}

/// What stands between `<tag>` and `</tag>`.
pub fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let open = format!("<{tag}>");
    let start = text.find(&open)? + open.len();
    let end = text[start..].find(&format!("</{tag}>"))?;
    Some(&text[start..start + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &str) -> UserInput {
        classify(text, UserLineFacts::default())
    }

    #[test]
    fn a_prompt_is_what_a_person_typed_whatever_its_wrapping() {
        assert_eq!(input("fix it"), UserInput::Prompt);
        assert_eq!(
            input("<ide_opened_file>a.rs</ide_opened_file>\n继续"),
            UserInput::Prompt
        );
        assert_eq!(
            input("<system-reminder>x</system-reminder> go"),
            UserInput::Prompt
        );
        assert_eq!(
            classify(
                "",
                UserLineFacts {
                    media: true,
                    ..UserLineFacts::default()
                }
            ),
            UserInput::Prompt
        );
    }

    #[test]
    fn what_a_team_tells_a_teammate_opens_a_turn_and_its_protocol_does_not() {
        let told = |text: &str, teammate| {
            classify(
                text,
                UserLineFacts {
                    teammate,
                    ..UserLineFacts::default()
                },
            )
        };
        let task = "<teammate-message teammate_id=\"team-lead\" summary=\"Look\">\nlook at </a>\n</teammate-message>";
        assert_eq!(told(task, true), UserInput::Prompt);
        assert_eq!(
            told(task, false),
            UserInput::Machine,
            "a lead is not told what to do"
        );
        let idle = "<teammate-message teammate_id=\"b\">\n{\"type\":\"idle_notification\"}\n</teammate-message>";
        assert_eq!(told(idle, true), UserInput::Machine);
        assert_eq!(told(&format!("{idle}\n\n{task}"), true), UserInput::Prompt);
        assert_eq!(readable(&format!("{idle}\n\n{task}")), "look at </a>");
    }

    #[test]
    fn commands_shell_lines_notes_and_plans_open_turns_of_their_own_kind() {
        assert_eq!(
            input("<command-name>/model</command-name>"),
            UserInput::Command
        );
        assert_eq!(
            input("<command-message>greet</command-message>"),
            UserInput::Command
        );
        assert_eq!(input("<bash-input>ls</bash-input>"), UserInput::Shell);
        assert_eq!(
            input("<user-memory-input>x</user-memory-input>"),
            UserInput::Memory
        );
        assert_eq!(
            input("Implement the following plan:\n\n1. x"),
            UserInput::Plan
        );
        assert_eq!(
            classify(
                "do x",
                UserLineFacts {
                    plan: true,
                    ..UserLineFacts::default()
                }
            ),
            UserInput::Plan
        );
    }

    #[test]
    fn what_a_program_wrote_opens_nothing() {
        let machine = [
            "<local-command-stdout>x</local-command-stdout>",
            "<task-notification>\n<task-id>1",
            "<teammate-message teammate_id=\"a\">",
            "<bash-stdout>x</bash-stdout>",
            "Caveat: The messages below were generated by the user while running local commands.",
            "(no content)",
            "  ",
            "<ide_opened_file>only a wrapper</ide_opened_file>",
            "<ide_selection>never closed",
            "Unknown command: /deploy",
            "Unknown command: /deploy. Did you mean /debug?",
            "<command-message></command-message>",
            "<command-name> </command-name>\n<command-message></command-message>",
            "<command-message>",
            "<teammate-message>x",
            "Stop hook feedback: blocked",
        ];
        for text in machine {
            assert_eq!(input(text), UserInput::Machine, "{text}");
        }
        let foreign = UserLineFacts {
            origin: Some("task-notification"),
            ..UserLineFacts::default()
        };
        assert_eq!(classify("hello", foreign), UserInput::Machine);
        assert_eq!(
            classify(
                "hello",
                UserLineFacts {
                    origin: Some("human"),
                    ..UserLineFacts::default()
                }
            ),
            UserInput::Prompt
        );
        assert_eq!(
            classify(
                "skill body",
                UserLineFacts {
                    meta: true,
                    ..UserLineFacts::default()
                }
            ),
            UserInput::Meta
        );
        assert_eq!(
            classify(
                "x",
                UserLineFacts {
                    transcript_only: true,
                    ..UserLineFacts::default()
                }
            ),
            UserInput::Machine
        );
    }

    #[test]
    fn what_only_looks_like_a_tag_of_the_program_was_typed() {
        let typed = [
            "<task-notification-status>ready",
            "<teammate-messages>what are these?",
            "<system-reminder> what does this tag do?",
            "<system-reminderish>x</system-reminderish>",
            "<system-reminder data-role=\"x\">c</system-reminder>",
            "Unknown command: what does the client mean?",
            "<command-messages>x",
        ];
        for text in typed {
            assert_eq!(input(text), UserInput::Prompt, "{text}");
            assert_eq!(readable(text), text);
        }
        assert_eq!(
            input("<system-reminder>only this</system-reminder>"),
            UserInput::Machine
        );
        let told = "<system-reminder>a</system-reminder>\n<system-reminder data-role=\"x\">b\
                    </system-reminder>\nthe prompt";
        assert_eq!(
            (input(told), &*readable(told)),
            (UserInput::Prompt, "the prompt")
        );
        let notice = "<system-reminder>a</system-reminder><task-notification>x";
        assert_eq!(input(notice), UserInput::Machine);
    }

    #[test]
    fn a_prompt_that_speaks_of_tags_reads_as_it_was_typed() {
        let text = "explain <command-name>/x</command-name> and <bash-input>ls</bash-input>";
        assert_eq!((input(text), &*readable(text)), (UserInput::Prompt, text));
        let text = "<command-message></command-message>\n<command-name>/x</command-name>";
        assert_eq!((input(text), &*readable(text)), (UserInput::Command, "/x"));
    }

    #[test]
    fn a_tool_result_is_never_a_prompt() {
        assert_eq!(
            classify(
                "text beside it",
                UserLineFacts {
                    results: true,
                    ..UserLineFacts::default()
                }
            ),
            UserInput::Results
        );
    }

    #[test]
    fn an_interrupt_ends_a_turn_and_opens_none() {
        assert_eq!(
            input("[Request interrupted by user for tool use]"),
            UserInput::Interrupt
        );
        assert!(!UserInput::Interrupt.opens_turn());
    }

    #[test]
    fn a_summary_without_its_flag_is_still_a_summary() {
        assert_eq!(
            input("This session is being continued from a previous conversation that ran out"),
            UserInput::Summary
        );
    }

    #[test]
    fn a_line_may_be_several_kinds_of_input() {
        let facts = UserLineFacts {
            media: true,
            ..UserLineFacts::default()
        };
        let text = "<ide_selection>lines 1 to 2</ide_selection>look";
        assert_eq!(
            kinds(text, facts).names(),
            ["text", "ide_selection", "image"]
        );
        assert_eq!(
            kinds("<command-name>/x</command-name>", UserLineFacts::default()).names(),
            ["command"]
        );
    }

    #[test]
    fn commands_read_as_they_were_typed() {
        let text = "<command-message>greet</command-message>\n<command-name>/greet</command-name>\n<command-args>Bob</command-args>";
        assert_eq!(readable(text), "/greet Bob");
        assert_eq!(readable("<command-name>model</command-name>"), "/model");
        assert_eq!(readable("<bash-input>ls -l</bash-input>"), "! ls -l");
        assert_eq!(
            readable("<ide_opened_file>x</ide_opened_file>\n go on\n"),
            "go on"
        );
    }
}
