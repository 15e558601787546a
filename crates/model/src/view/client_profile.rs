//! Whose reading rules apply: every rule with the versions in which it changes.
//!
//! Each value was seen at the real client of that version and of the one before it
//! (`docs/conformance.md`). [`ClientProfile::Strict`] is ours: it loses nothing that can be sent, and
//! the API accepts every answer.

use std::fmt;

use crate::session::Session;

/// A version of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

impl ClientVersion {
    /// The newest client whose rules we know.
    pub const NEWEST: ClientVersion = ClientVersion::known("2.1.327");

    /// The version that a text begins with, such as `2.1.45`; missing numbers are 0.
    pub const fn parse(text: &str) -> Option<ClientVersion> {
        let bytes = text.as_bytes();
        let mut at = (!bytes.is_empty() && bytes[0] == b'v') as usize;
        let mut numbers = [0_u32; 3];
        let mut place = 0;
        while place < 3 {
            let start = at;
            while at < bytes.len() && bytes[at].is_ascii_digit() {
                let digit = (bytes[at] - b'0') as u32;
                numbers[place] = numbers[place].saturating_mul(10).saturating_add(digit);
                at += 1;
            }
            if at == start {
                return None;
            }
            if at >= bytes.len() || bytes[at] != b'.' {
                break;
            }
            at += 1;
            place += 1;
        }
        let [major, minor, patch] = numbers;
        Some(ClientVersion {
            major,
            minor,
            patch,
        })
    }

    /// A version written in the program.
    const fn known(text: &str) -> ClientVersion {
        match ClientVersion::parse(text) {
            Some(version) => version,
            None => panic!("a version has numbers"),
        }
    }
}

impl fmt::Display for ClientVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A client of some version, or our own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientProfile {
    /// A client of this version.
    Client(ClientVersion),
    /// Our own.
    Strict,
}

/// How a client chooses the line to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafRule {
    /// The newest line of any kind, the earlier one on a tie; a line without a time is neither
    /// newer nor older than any other.
    Newest,
    /// The same, but lines without a time do not count.
    NewestTimed,
    /// The last line that no other follows.
    LastChildless,
    /// The last line of the file.
    LastLine,
    /// The same, but where lines follow the last line of the file, the newest of them.
    LastBranch,
}

/// What a client does about a circle of parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleRule {
    /// It never comes back.
    Hangs,
    /// It stops at the first line it meets again.
    Stops,
    /// It treats a parent it has met as a lost one.
    Heals,
}

/// What a client does about a line that is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullLineRule {
    /// It passes over it.
    Skipped,
    /// It reads no further.
    EndsFile,
    /// It gives up on the file.
    Fails,
}

/// What becomes of parallel calls and results beside the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiblingsRule {
    /// They are lost.
    Lost,
    /// They follow the last line of their message: calls by time, then results by time.
    AfterMessage,
    /// They stand among the lines of their message as they do in the file.
    InFileOrder,
}

/// What becomes of calls without results at the very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenCallRule {
    /// They are dropped.
    Never,
    /// They get a result if another call of their message has one.
    BesideResults,
    /// They get a result that says that the session ended.
    Always,
}

/// What becomes of lines that a compaction preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreservedRule {
    /// They are lost.
    Lost,
    /// They are put back if the boundary names the first and the last of them.
    Segment,
    /// They are put back if the boundary lists them, or else names first and last.
    ListOrSegment,
}

/// How calls and results are paired before sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PairingRule {
    /// Not at all.
    None,
    /// Missing results are filled in.
    Filled,
    /// The same, and results without calls are dropped.
    Gentle,
    /// The same, and nothing is answered twice or before it was asked.
    Strict,
    /// The same, nothing is called twice, and where no result is left a note says so.
    Full,
}

/// How lines with one message id become one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageJoinRule {
    /// Only lines that follow each other.
    Neighbours,
    /// Lines that follow each other but for tool results.
    AcrossResults,
    /// Lines that no prompt parts.
    AcrossReplies,
}

/// How a prompt is sent that was typed while the model worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedPromptRule {
    /// Not as a message of the conversation.
    LeftOut,
    /// As a reminder in these words, inside the result before it where that is one string.
    Glued(&'static str, &'static str),
    /// As a text of its own, as the line has it or else in these words.
    Text(&'static str, &'static str),
}

/// What becomes of thinking of another model than the one the session goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignThinkingRule {
    /// It is sent.
    Kept,
    /// It is dropped if it is signed.
    DroppedIfSigned,
}

/// What a client does about several objects on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GluedLineRule {
    /// It passes over the line.
    Skipped,
    /// It reads the first of them.
    First,
    /// It reads all of them.
    All,
}

/// How far a client does what a `last-prompt` line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LastPromptRule {
    /// Not at all.
    Ignored,
    /// It goes on from the line that is named if the last line of the file does not follow it;
    /// if nothing came after an explicit one, in any case.
    Explicit,
    /// The same, and an explicit one that names no line leaves nothing of the conversation.
    Nowhere,
}

/// What becomes of tools that a search for tools has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolReferencesRule {
    /// They are sent.
    Kept,
    /// They are taken out, as if there were no search.
    Removed,
    /// They are sent, and a text behind the results says that the tools are loaded. Tools of
    /// servers, which the client may not have any more, are taken out.
    Loaded,
}

/// What a client does about last lines from which no prompt or reply can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilentEndRule {
    /// It goes on from them.
    Leaf,
    /// It goes on from the last line that is none; without one there is no conversation.
    Skipped,
    /// The same, but where all lines are like that, it goes on from the last.
    SkippedIfOthers,
}

/// When a file without any line to go on from is an empty conversation, and not none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyStartRule {
    /// Whatever else is in it.
    Always,
    /// If it gives the session a title.
    WithTitle,
    /// Never.
    Never,
}

/// What becomes of a message of thinking and blank text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlankThinkingRule {
    /// It is sent.
    Sent,
    /// It is dropped, and the prompts around it stay two.
    LeavesGap,
    /// It is dropped.
    Dropped,
}

/// Where the answer stands that a resume adds to an open conversation with output of local
/// commands at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputAnswerRule {
    /// Behind the output.
    Never,
    /// Before the output, if a prompt or command is open; not if results are.
    ToPrompts,
    /// Before the output, if a prompt or results are open; a command needs no answer.
    ToAllButCommands,
}

/// Makes [`ClientRules`] out of their history: what the oldest client does, and from which version on
/// it is done otherwise.
macro_rules! rules {
    ($(
        #[doc = $about:literal]
        $rule:ident: $kind:ty = $oldest:expr $(, $first:literal => $value:expr)*;
    )*) => {
        /// The rules of one version.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct ClientRules {
            $(#[doc = $about] pub $rule: $kind,)*
        }

        impl ClientRules {
            /// The rules of a version; a newer one than all known reads as the newest.
            pub fn of(version: ClientVersion) -> ClientRules {
                ClientRules {
                    $($rule: at(version, $oldest, &[$((ClientVersion::known($first), $value)),*]),)*
                }
            }

            /// Every change of a rule: the rule, the first version that has it, and what it
            /// is then, as the program writes it. The oldest client stands first, without a
            /// version.
            pub fn history() -> Vec<RuleChange> {
                let mut all = Vec::new();
                $(
                    all.push(RuleChange {
                        rule: stringify!($rule),
                        about: $about,
                        first: None,
                        value: format!("{:?}", { let value: $kind = $oldest; value }),
                    });
                    $(
                        all.push(RuleChange {
                            rule: stringify!($rule),
                            about: $about,
                            first: Some(const { ClientVersion::known($first) }),
                            value: format!("{:?}", { let value: $kind = $value; value }),
                        });
                    )*
                )*
                all
            }

            /// From these rules to others, one rule at a time: what it is about, and the rules
            /// that apply from then on. So it can be seen which of them makes a difference.
            pub fn steps_to(self, other: &ClientRules) -> Vec<(&'static str, ClientRules)> {
                let mut now = self;
                let mut steps = Vec::new();
                $(
                    if now.$rule != other.$rule {
                        now.$rule = other.$rule;
                        steps.push((concat!("`", stringify!($rule), "`:", $about), now));
                    }
                )*
                steps
            }
        }
    };
}

/// The value that a rule has in a version: the oldest, or the last that began by then.
fn at<T: Copy>(version: ClientVersion, oldest: T, changes: &[(ClientVersion, T)]) -> T {
    let begun = changes.iter().rev().find(|(first, _)| *first <= version);
    begun.map_or(oldest, |(_, value)| *value)
}

/// A change of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleChange {
    /// The name of the rule.
    pub rule: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The first version with it; none for what the oldest client does.
    pub first: Option<ClientVersion>,
    /// What is done.
    pub value: String,
}

rules! {
    /// Choice of the leaf.
    leaf: LeafRule = LeafRule::Newest, "2.1.75" => LeafRule::NewestTimed, "2.1.101" => LeafRule::LastChildless,
        "2.1.116" => LeafRule::LastLine,
        "2.1.257" => LeafRule::LastBranch;
    /// Circles of parents.
    circle: CycleRule = CycleRule::Hangs, "2.1.30" => CycleRule::Stops, "2.1.108" => CycleRule::Heals;
    /// Lines that are `null`.
    null_line: NullLineRule = NullLineRule::Skipped, "2.1.19" => NullLineRule::EndsFile,
        "2.1.116" => NullLineRule::Fails, "2.1.229" => NullLineRule::Skipped;
    /// Lines of one message.
    join: MessageJoinRule = MessageJoinRule::Neighbours, "2.0.57" => MessageJoinRule::AcrossResults,
        "2.1.47" => MessageJoinRule::AcrossReplies;
    /// Lost parents are healed by time; otherwise the history is cut there.
    heals: bool = false, "2.1.91" => true;
    /// Several objects on one line.
    glued: GluedLineRule = GluedLineRule::Skipped, "2.1.113" => GluedLineRule::First;
    /// Last lines from which no prompt or reply can be reached.
    silent_end: SilentEndRule = SilentEndRule::Leaf, "2.1.101" => SilentEndRule::Skipped,
        "2.1.187" => SilentEndRule::SkippedIfOthers;
    /// What a `last-prompt` line says counts.
    last_prompt: LastPromptRule = LastPromptRule::Ignored, "2.1.120" => LastPromptRule::Explicit,
        "2.1.191" => LastPromptRule::Nowhere;
    /// Parallel calls and their results are one point: who follows one of them follows all.
    siblings_are_one: bool = false, "2.1.286" => true;
    /// A session that the model has ended is not resumed.
    stays_ended: bool = false, "2.1.205" => true;
    /// What there is without any line of a conversation.
    starts_empty: EmptyStartRule = EmptyStartRule::Always, "2.1.1" => EmptyStartRule::WithTitle,
        "2.1.5" => EmptyStartRule::Never;
    /// `progress` lines are links of the chain.
    progress: bool = false, "2.1.9" => true, "2.1.91" => false;
    /// Parallel calls and results beside the chain.
    siblings: SiblingsRule = SiblingsRule::Lost, "2.1.80" => SiblingsRule::AfterMessage,
        "2.1.261" => SiblingsRule::InFileOrder;
    /// Lines that a compaction preserved.
    preserved: PreservedRule = PreservedRule::Lost, "2.1.76" => PreservedRule::Segment,
        "2.1.141" => PreservedRule::ListOrSegment;
    /// The output of local commands is sent.
    local_commands: bool = false, "2.1.63" => true;
    /// Prompts typed while the model worked.
    queued: QueuedPromptRule = WHEN_DONE, "2.1.20" => WHILE_WORKING, "2.1.200" => QueuedPromptRule::LeftOut,
        "2.1.325" => MID_TURN;
    /// A model that takes no system messages between others gets them as reminders.
    queued_by_model: bool = false, "2.1.187" => true;
    /// Such a reminder has the words that are stored with the prompt.
    queued_as_stored: bool = false, "2.1.268" => true;
    /// The answer to an open conversation stands before the output of local commands.
    answers_before_output: OutputAnswerRule = OutputAnswerRule::Never,
        "2.1.101" => OutputAnswerRule::ToPrompts, "2.1.281" => OutputAnswerRule::ToAllButCommands;
    /// Attachments that become reminders in the words of the moment; they part texts.
    reminders: &'static [&'static str] = &[], "2.1.100" => &[
        "todo_reminder",
        "task_reminder",
        "hook_additional_context",
        "file",
    ], "2.1.200" => &[];
    /// Calls at the very end get a synthetic result or are dropped.
    completes: OpenCallRule = OpenCallRule::Never, "2.1.265" => OpenCallRule::BesideResults,
        "2.1.281" => OpenCallRule::Always;
    /// How calls and results are paired before sending.
    pairing: PairingRule = PairingRule::None, "2.1.20" => PairingRule::Filled,
        "2.1.21" => PairingRule::Gentle, "2.1.76" => PairingRule::Strict, "2.1.88" => PairingRule::Full;
    /// What runs at the API is answered in the same message or not sent.
    needs_server_results: bool = false, "2.1.77" => true;
    /// Results before the first reply are dropped.
    drops_first_orphans: bool = false, "2.1.69" => true;
    /// A first message of results without calls is replaced by a note.
    notes_first_orphans: bool = false, "2.1.268" => true;
    /// A last message of results without calls is replaced by a note.
    notes_last_orphans: bool = false, "2.1.281" => true;
    /// Two texts that become neighbours in one message are parted by a line end.
    parts_texts: bool = false, "2.1.78" => true;
    /// Results come first even among the blocks of one line.
    results_first: bool = true, "2.1.30" => false;
    /// Messages of thinking alone are dropped.
    drops_thinking_alone: bool = false, "2.1.7" => true;
    /// Replies without blocks say that there is no content.
    fills_empty: bool = false, "2.1.30" => true;
    /// Lines of blank text are dropped.
    drops_blank: bool = false, "2.1.32" => true;
    /// Text of no length stays where other lines of its message say something.
    keeps_blank: bool = false, "2.1.187" => true, "2.1.259" => false;
    /// Replies that say only that there is no content are dropped.
    drops_no_content: bool = false, "2.1.124" => true;
    /// Empty prompts say that there is no content.
    marks_empty: bool = false, "2.1.152" => true;
    /// A first prompt without words is left out: reminders stand in its place.
    drops_empty_start: bool = false, "2.1.152" => true, "2.1.268" => false;
    /// A prompt without blocks is sent as an empty message.
    sends_empty: bool = false, "2.1.69" => true, "2.1.258" => false;
    /// Calls stand behind all other blocks of their message.
    calls_last: bool = false, "2.1.121" => true;
    /// Thinking of another model.
    foreign_thinking: ForeignThinkingRule = ForeignThinkingRule::Kept,
        "2.1.152" => ForeignThinkingRule::DroppedIfSigned;
    /// Models the client does not know, by a part of their names, and the one it takes instead.
    unknown_models: (&'static [&'static str], &'static str) = (&[], ""),
        "2.1.152" => (&["opus-5", "haiku-5"], "claude-opus-4-8"),
        "2.1.219" => (&["haiku-5"], "claude-haiku-4-5");
    /// Tools that are sent under a newer name.
    renamed_tools: &'static [(&'static str, &'static str)] = &[],
        "2.1.51" => RENAMED_FIRST, "2.1.63" => RENAMED, "2.1.69" => &[], "2.1.70" => RENAMED,
        "2.1.160" => RENAMED_MORE, "2.1.277" => &[("Task", "Agent"), ("KillShell", "TaskStop")],
        "2.1.304" => &[("Task", "Agent")];
    /// What is taken out of calls that present a plan.
    hides_of_plans: &'static [&'static str] = &[], "2.0.54" => &["plan"], "2.1.69" => &[], "2.1.70" => &["plan"],
        "2.1.76" => &["plan", "planFilePath"], "2.1.187" => &[];
    /// Images in prompts are sent as the text `[image]`.
    images_as_text: bool = false, "2.1.38" => true, "2.1.69" => false;
    /// Notifications of background tasks are sent as reminders.
    wraps_notifications: bool = false, "2.1.205" => true;
    /// A line without content makes resuming fail.
    brittle: bool = true, "2.1.275" => false;
    /// A reply whose content is one string makes resuming fail.
    refuses_string_replies: bool = true, "2.1.277" => false;
    /// Two results beside the chain, of which one has no time, make resuming fail.
    needs_result_times: bool = false, "2.1.80" => true, "2.1.261" => false;
    /// Lines that are only for the screen (`isVirtual`) are sent.
    sends_virtual: bool = true, "2.1.88" => false;
    /// Notes that another model went on are dropped.
    drops_fallbacks: bool = false, "2.1.169" => true;
    /// Tools that a search has found, in its result.
    tool_references: ToolReferencesRule = ToolReferencesRule::Kept,
        "2.0.65" => ToolReferencesRule::Removed, "2.1.304" => ToolReferencesRule::Loaded;
    /// Lines of replies with neither a message id nor a request id are messages of their own.
    parts_nameless: bool = false, "2.1.251" => true;
    /// Thinking beside blank text.
    blank_thinking: BlankThinkingRule = BlankThinkingRule::Sent, "2.1.33" => BlankThinkingRule::LeavesGap,
        "2.1.269" => BlankThinkingRule::Dropped;
    /// The same on one line: it is as if the line were not there.
    drops_blank_thought: bool = false, "2.1.251" => true;
    /// Calls without results go alone; otherwise a line goes whose calls all have none.
    open_calls_alone: bool = true, "2.1.30" => false;
    /// Failed results keep only their text.
    errors_are_text: bool = false, "2.1.83" => true;
}

impl ClientProfile {
    /// The newest client whose rules we know.
    pub const NEWEST: ClientProfile = ClientProfile::Client(ClientVersion::NEWEST);

    /// One client of each era, oldest first: what was written in it is what they read best.
    pub const ERAS: [ClientProfile; 5] = [
        ClientProfile::client("2.0.50"),
        ClientProfile::client("2.1.45"),
        ClientProfile::client("2.1.100"),
        ClientProfile::client("2.1.200"),
        ClientProfile::NEWEST,
    ];

    /// A client of a version that is known when the program is written.
    pub const fn client(version: &str) -> ClientProfile {
        ClientProfile::Client(ClientVersion::known(version))
    }

    /// The client of this version, whichever it is; `strict` is our own rules.
    pub fn for_version(version: &str) -> Option<ClientProfile> {
        match version {
            "strict" => Some(ClientProfile::Strict),
            _ => ClientVersion::parse(version).map(ClientProfile::Client),
        }
    }

    /// One client of each era, and our own rules.
    pub fn eras_and_strict() -> impl Iterator<Item = ClientProfile> {
        ClientProfile::ERAS
            .into_iter()
            .chain([ClientProfile::Strict])
    }

    /// The clients that matter for a session: one of each era, those that wrote it, and the
    /// newest; oldest first.
    pub fn that_matter(session: &Session) -> Vec<ClientProfile> {
        let wrote = session.versions.iter();
        let wrote = wrote.filter_map(|(version, _)| ClientVersion::parse(version));
        let mut all: Vec<ClientProfile> = ClientProfile::ERAS.to_vec();
        all.extend(wrote.map(ClientProfile::Client));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Its version, or `strict`.
    pub fn name(self) -> String {
        self.to_string()
    }

    /// Its rules.
    pub fn rules(self) -> ClientRules {
        match self {
            ClientProfile::Client(version) => ClientRules::of(version),
            ClientProfile::Strict => ClientRules::strict(),
        }
    }
}

/// Clients of many versions, those that choose the same lines of any file together: one of them
/// answers for all.
#[derive(Clone, Debug, Default)]
pub struct ClientGroups(Vec<(ClientRules, Vec<ClientProfile>)>);

impl ClientGroups {
    /// Takes in one more, unless it is there.
    pub fn add(&mut self, profile: ClientProfile) {
        let rules = profile.rules().about_lines();
        match self.0.iter_mut().find(|(known, _)| *known == rules) {
            Some((_, alike)) if alike.contains(&profile) => {}
            Some((_, alike)) => alike.push(profile),
            None => self.0.push((rules, vec![profile])),
        }
    }

    /// The clients that are alike.
    pub fn groups(&self) -> impl Iterator<Item = &[ClientProfile]> {
        self.0.iter().map(|(_, alike)| alike.as_slice())
    }
}

impl FromIterator<ClientProfile> for ClientGroups {
    fn from_iter<T: IntoIterator<Item = ClientProfile>>(profiles: T) -> ClientGroups {
        let mut clients = ClientGroups::default();
        for profile in profiles {
            clients.add(profile);
        }
        clients
    }
}

impl fmt::Display for ClientProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientProfile::Client(version) => version.fmt(f),
            ClientProfile::Strict => f.write_str("strict"),
        }
    }
}

impl ClientRules {
    /// Our own: the newest client's, without what only changes how things are said.
    fn strict() -> ClientRules {
        ClientRules {
            renamed_tools: &[],
            unknown_models: (&[], ""),
            calls_last: false,
            errors_are_text: false,
            glued: GluedLineRule::All,
            stays_ended: false,
            queued_by_model: false,
            answers_before_output: OutputAnswerRule::Never,
            tool_references: ToolReferencesRule::Kept,
            ..ClientRules::of(ClientVersion::NEWEST)
        }
    }

    /// The same rules about which lines are read, with the newest client's about what is made
    /// of them: two clients that are equal in these build their messages from the same lines.
    pub fn about_lines(&self) -> ClientRules {
        ClientRules {
            leaf: self.leaf,
            circle: self.circle,
            null_line: self.null_line,
            heals: self.heals,
            glued: self.glued,
            silent_end: self.silent_end,
            last_prompt: self.last_prompt,
            siblings_are_one: self.siblings_are_one,
            stays_ended: self.stays_ended,
            starts_empty: self.starts_empty,
            progress: self.progress,
            siblings: self.siblings,
            preserved: self.preserved,
            needs_result_times: self.needs_result_times,
            ..ClientRules::of(ClientVersion::NEWEST)
        }
    }
}

impl QueuedPromptRule {
    /// The same as a reminder.
    pub(crate) fn glued(self) -> QueuedPromptRule {
        match self {
            QueuedPromptRule::Text(before, after) => QueuedPromptRule::Glued(before, after),
            QueuedPromptRule::LeftOut => WHILE_WORKING,
            glued @ QueuedPromptRule::Glued(..) => glued,
        }
    }
}

/// Names of tools that a client of 2.1.51 gives to tools of older ones.
const RENAMED_FIRST: &[(&str, &str)] = &[
    ("KillShell", "TaskStop"),
    ("AgentOutputTool", "TaskOutput"),
    ("BashOutputTool", "TaskOutput"),
];

/// Names of tools that a client of 2.1.63 gives to tools of older ones.
const RENAMED: &[(&str, &str)] = &[
    ("Task", "Agent"),
    ("KillShell", "TaskStop"),
    ("AgentOutputTool", "TaskOutput"),
    ("BashOutputTool", "TaskOutput"),
];

/// The same, with names that came later.
const RENAMED_MORE: &[(&str, &str)] = &[
    ("Task", "Agent"),
    ("KillShell", "TaskStop"),
    ("AgentOutputTool", "TaskOutput"),
    ("BashOutputTool", "TaskOutput"),
    ("AgentOutput", "TaskOutput"),
    ("BashOutput", "TaskOutput"),
];

const WHEN_DONE: QueuedPromptRule = QueuedPromptRule::Glued(
    "The user sent the following message:\n",
    "\n\nPlease address this message and continue with your tasks.",
);

const WHILE_WORKING: QueuedPromptRule = QueuedPromptRule::Glued(
    "The user sent a new message while you were working:\n",
    "\n\nIMPORTANT: After completing your current task, you MUST address the user's message \
     above. Do not ignore it.",
);

const MID_TURN: QueuedPromptRule = QueuedPromptRule::Text(
    "The user sent a new message while you were working:\n",
    "\n\nThis is how Claude Code surfaces messages the user sends mid-turn \u{2014} within the \
     running turn, often alongside the next tool result, rather than as a separate \
     conversation turn. Address the message above as you continue this turn.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_lead_to_others_step_by_step() {
        let strict = ClientProfile::Strict.rules();
        for profile in ClientProfile::eras_and_strict() {
            let steps = profile.rules().steps_to(&strict);
            let last = steps.last().map_or(profile.rules(), |(_, rules)| *rules);
            assert_eq!(last, strict, "{profile}");
        }
        let steps = ClientProfile::NEWEST.rules().steps_to(&strict);
        let names: Vec<&str> = steps.iter().map(|(about, _)| *about).collect();
        assert_eq!(
            names,
            [
                "`glued`: Several objects on one line.",
                "`stays_ended`: A session that the model has ended is not resumed.",
                "`queued_by_model`: A model that takes no system messages between others gets them as reminders.",
                "`answers_before_output`: The answer to an open conversation stands before the output of local commands.",
                "`calls_last`: Calls stand behind all other blocks of their message.",
                "`unknown_models`: Models the client does not know, by a part of their names, and the one it takes instead.",
                "`renamed_tools`: Tools that are sent under a newer name.",
                "`tool_references`: Tools that a search has found, in its result.",
                "`errors_are_text`: Failed results keep only their text.",
            ]
        );
    }

    #[test]
    fn any_version_is_a_client_and_a_word_is_none() {
        let name = |version| ClientProfile::for_version(version).map(ClientProfile::name);
        for version in ["1.0.11", "2.0.76", "2.1.99", "2.1.324", "3.0.0"] {
            assert_eq!(name(version).as_deref(), Some(version));
        }
        assert_eq!(name("3").as_deref(), Some("3.0.0"));
        assert_eq!(name("v2.1.45-beta.1").as_deref(), Some("2.1.45"));
        assert_eq!(name("strict").as_deref(), Some("strict"));
        assert_eq!((name("newest"), name("2."), name("")), (None, None, None));
    }

    #[test]
    fn each_rule_changes_in_the_order_of_versions() {
        let history = ClientRules::history();
        for (before, after) in history.iter().zip(&history[1..]) {
            if before.rule == after.rule {
                assert!(before.first < after.first, "{}", after.rule);
                assert_ne!(before.value, after.value, "{}", after.rule);
            } else {
                assert_eq!(after.first, None);
            }
        }
        let newest = history.iter().filter_map(|change| change.first).max();
        assert!(newest <= Some(ClientVersion::NEWEST));
    }

    #[test]
    fn clients_that_choose_the_same_lines_answer_together() {
        let versions = ["2.1.325", "2.0.50", "2.1.327", "2.0.50", "2.0.51"];
        let clients: ClientGroups = versions.into_iter().map(ClientProfile::client).collect();
        let groups: Vec<Vec<String>> = clients
            .groups()
            .map(|alike| alike.iter().map(|profile| profile.name()).collect())
            .collect();
        assert_eq!(groups, [["2.1.325", "2.1.327"], ["2.0.50", "2.0.51"]]);
    }

    #[test]
    fn a_client_newer_than_all_known_reads_as_the_newest() {
        let newer = ClientProfile::for_version("2.1.9999").unwrap();
        assert_eq!(newer.rules(), ClientProfile::NEWEST.rules());
        let older = ClientProfile::for_version("0.2.9").unwrap();
        assert_eq!(older.rules(), ClientProfile::client("2.0.0").rules());
    }
}
