//! Whose reading rules apply: one row per client version that reads differently.
//!
//! Every row was recorded from the real client (`docs/conformance.md`). [`Profile::Strict`]
//! is ours: it loses nothing that can be sent, and the API accepts every answer.

/// A client version, or our own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// 2.0.50 and before.
    V2_0_50,
    /// 2.1.45.
    V2_1_45,
    /// 2.1.100.
    V2_1_100,
    /// 2.1.200.
    V2_1_200,
    /// 2.1.325 and later.
    V2_1_325,
    /// Our own.
    Strict,
}

/// How a client chooses the line to go on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// The newest prompt, reply or system line, the earlier one on a tie; a line without a
    /// time is neither newer nor older than any other.
    Newest,
    /// The newest line of any kind, the earlier one on a tie; lines without a time do not
    /// count.
    NewestTimed,
    /// The last line of the file, or the one that `last-prompt` names.
    LastLine,
    /// The same, but where lines follow the last line of the file, the newest of them.
    LastBranch,
}

/// What a client does about a circle of parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circle {
    /// It never comes back.
    Hangs,
    /// It stops at the first line it meets again.
    Stops,
    /// It treats a parent it has met as a lost one.
    Heals,
}

/// What a client does about a line that is `null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullLine {
    /// It passes over it.
    Skipped,
    /// It reads no further.
    EndsFile,
    /// It gives up on the file.
    Fails,
}

/// What becomes of parallel calls and results beside the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Siblings {
    /// They are lost.
    Lost,
    /// They follow the last line of their message: calls by time, then results by time.
    AfterMessage,
    /// They stand among the lines of their message as they do in the file.
    InFileOrder,
}

/// What becomes of lines that a compaction preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preserved {
    /// They are lost.
    Lost,
    /// They are put back if the boundary names the first and the last of them.
    Segment,
    /// They are put back if the boundary lists them, or else names first and last.
    ListOrSegment,
}

/// How calls and results are paired before sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Not at all.
    None,
    /// Missing results are filled in and results without calls dropped.
    Gentle,
    /// The same, and nothing is called or answered twice.
    Full,
}

/// How lines with one message id become one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Only lines that follow each other.
    Neighbours,
    /// Lines that only tool results part.
    AcrossResults,
}

/// How a prompt is sent that was typed while the model worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// Not as a message of the conversation.
    LeftOut,
    /// As a reminder in these words, inside the result before it where that is one string.
    Glued(&'static str, &'static str),
    /// As a text of its own, as the line has it or else in these words.
    Text(&'static str, &'static str),
}

/// What becomes of thinking of another model than the one the session goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignThinking {
    /// It is sent.
    Kept,
    /// It is dropped if it is signed.
    DroppedIfSigned,
    /// It is dropped.
    Dropped,
}

/// Makes [`Rules`], and lets one set of them be changed into another rule by rule.
macro_rules! rules {
    ($(#[doc = $about:literal] pub $rule:ident: $kind:ty,)*) => {
        /// The rules of one profile.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Rules {
            $(#[doc = $about] pub $rule: $kind,)*
        }

        impl Rules {
            /// From these rules to others, one rule at a time: what it is about, and the rules
            /// that apply from then on. So it can be seen which of them makes a difference.
            pub fn steps_to(self, other: &Rules) -> Vec<(&'static str, Rules)> {
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

rules! {
    /// Choice of the leaf.
    pub leaf: Leaf,
    /// Circles of parents.
    pub circle: Circle,
    /// Lines that are `null`.
    pub null_line: NullLine,
    /// Lines of one message.
    pub join: Join,
    /// Lost parents are healed by time; otherwise the history is cut there.
    pub heals: bool,
    /// Several objects on one line are read.
    pub reads_glued: bool,
    /// Without any line there is an empty conversation, not none.
    pub starts_empty: bool,
    /// `progress` lines are links of the chain.
    pub progress: bool,
    /// Parallel calls and results beside the chain.
    pub siblings: Siblings,
    /// Lines that a compaction preserved.
    pub preserved: Preserved,
    /// The output of local commands is sent.
    pub local_commands: bool,
    /// Prompts typed while the model worked.
    pub queued: Queued,
    /// Attachments that become reminders in the words of the moment; they part texts.
    pub reminders: &'static [&'static str],
    /// A call at the very end gets a synthetic result; otherwise it is dropped.
    pub completes: bool,
    /// How calls and results are paired before sending.
    pub pairing: Pairing,
    /// A message of results without calls is replaced by a note at either end of the history.
    pub notes_orphans: bool,
    /// Two texts that become neighbours in one message are parted by a line end.
    pub parts_texts: bool,
    /// Results come first even among the blocks of one line.
    pub results_first: bool,
    /// Lines of thinking or blank text alone are dropped, empty replies filled.
    pub fills: bool,
    /// Blank text stays where other lines of its message say something.
    pub keeps_blank: bool,
    /// Empty prompts say so, and replies that say no more than that are dropped.
    pub marks_empty: bool,
    /// A prompt without blocks is sent as an empty message.
    pub sends_empty: bool,
    /// Calls stand behind all other blocks of their message.
    pub calls_last: bool,
    /// Thinking of another model.
    pub foreign_thinking: ForeignThinking,
    /// Models the client does not know, by a part of their names, and the one it takes instead.
    pub unknown_models: (&'static [&'static str], &'static str),
    /// Tools that are sent under a newer name.
    pub renamed_tools: &'static [(&'static str, &'static str)],
    /// The plan is taken out of calls that present one.
    pub hides_plans: bool,
    /// Images in prompts are sent as the text `[image]`.
    pub images_as_text: bool,
    /// Notifications of background tasks are sent as reminders.
    pub wraps_notifications: bool,
    /// A line without content, or a reply that is one string, makes resuming fail.
    pub brittle: bool,
    /// A result without a time makes resuming fail.
    pub needs_result_times: bool,
    /// Failed results keep only their text.
    pub errors_are_text: bool,
}

impl Profile {
    /// All of them, oldest first, ours last.
    pub const ALL: [Profile; 6] = [
        Profile::V2_0_50,
        Profile::V2_1_45,
        Profile::V2_1_100,
        Profile::V2_1_200,
        Profile::V2_1_325,
        Profile::Strict,
    ];

    /// The newest client whose rules we know.
    pub const NEWEST: Profile = Profile::V2_1_325;

    /// The newest profile that is not newer than `version`; the oldest for older ones.
    pub fn for_version(version: &str) -> Option<Profile> {
        if version == "strict" {
            return Some(Profile::Strict);
        }
        let wanted = numbers(version)?;
        let clients = &Profile::ALL[..Profile::ALL.len() - 1];
        let fitting = clients
            .iter()
            .rev()
            .find(|profile| numbers(profile.name()) <= Some(wanted));
        Some(*fitting.unwrap_or(&Profile::V2_0_50))
    }

    /// The version it was recorded from.
    pub fn name(self) -> &'static str {
        match self {
            Profile::V2_0_50 => "2.0.50",
            Profile::V2_1_45 => "2.1.45",
            Profile::V2_1_100 => "2.1.100",
            Profile::V2_1_200 => "2.1.200",
            Profile::V2_1_325 => "2.1.325",
            Profile::Strict => "strict",
        }
    }

    /// Its rules.
    pub fn rules(self) -> Rules {
        match self {
            Profile::V2_0_50 => V2_0_50,
            Profile::V2_1_45 => V2_1_45,
            Profile::V2_1_100 => V2_1_100,
            Profile::V2_1_200 => V2_1_200,
            Profile::V2_1_325 => V2_1_325,
            Profile::Strict => STRICT,
        }
    }
}

const WHILE_WORKING: Queued = Queued::Glued(
    "The user sent a new message while you were working:\n",
    "\n\nIMPORTANT: After completing your current task, you MUST address the user's message \
     above. Do not ignore it.",
);

const V2_1_325: Rules = Rules {
    leaf: Leaf::LastBranch,
    circle: Circle::Heals,
    null_line: NullLine::Skipped,
    join: Join::AcrossResults,
    heals: true,
    reads_glued: true,
    starts_empty: false,
    progress: false,
    siblings: Siblings::InFileOrder,
    preserved: Preserved::ListOrSegment,
    local_commands: true,
    queued: Queued::Text(
        "The user sent a new message while you were working:\n",
        "\n\nThis is how Claude Code surfaces messages the user sends mid-turn \u{2014} within the \
         running turn, often alongside the next tool result, rather than as a separate \
         conversation turn. Address the message above as you continue this turn.",
    ),
    reminders: &[],
    completes: true,
    pairing: Pairing::Full,
    notes_orphans: true,
    parts_texts: true,
    results_first: false,
    fills: true,
    keeps_blank: false,
    marks_empty: true,
    sends_empty: false,
    calls_last: true,
    foreign_thinking: ForeignThinking::Dropped,
    unknown_models: (&[], ""),
    renamed_tools: &[("Task", "Agent")],
    hides_plans: false,
    images_as_text: false,
    wraps_notifications: true,
    brittle: false,
    needs_result_times: false,
    errors_are_text: true,
};

const V2_1_200: Rules = Rules {
    leaf: Leaf::LastLine,
    null_line: NullLine::Fails,
    siblings: Siblings::AfterMessage,
    queued: Queued::LeftOut,
    completes: false,
    notes_orphans: false,
    keeps_blank: true,
    sends_empty: true,
    foreign_thinking: ForeignThinking::DroppedIfSigned,
    unknown_models: (&["opus-5"], "claude-opus-4-8"),
    wraps_notifications: false,
    brittle: true,
    needs_result_times: true,
    ..V2_1_325
};

const V2_1_100: Rules = Rules {
    leaf: Leaf::NewestTimed,
    circle: Circle::Stops,
    null_line: NullLine::EndsFile,
    reads_glued: false,
    preserved: Preserved::Segment,
    queued: WHILE_WORKING,
    reminders: &[
        "todo_reminder",
        "task_reminder",
        "hook_additional_context",
        "file",
    ],
    keeps_blank: false,
    marks_empty: false,
    calls_last: false,
    foreign_thinking: ForeignThinking::Kept,
    unknown_models: (&[], ""),
    hides_plans: true,
    ..V2_1_200
};

const V2_1_45: Rules = Rules {
    leaf: Leaf::Newest,
    heals: false,
    progress: true,
    siblings: Siblings::Lost,
    preserved: Preserved::Lost,
    local_commands: false,
    reminders: &[],
    pairing: Pairing::Gentle,
    parts_texts: false,
    sends_empty: false,
    renamed_tools: &[],
    hides_plans: true,
    images_as_text: true,
    needs_result_times: false,
    errors_are_text: false,
    ..V2_1_100
};

const V2_0_50: Rules = Rules {
    circle: Circle::Hangs,
    null_line: NullLine::Skipped,
    join: Join::Neighbours,
    starts_empty: true,
    progress: false,
    queued: Queued::Glued(
        "The user sent the following message:\n",
        "\n\nPlease address this message and continue with your tasks.",
    ),
    pairing: Pairing::None,
    results_first: true,
    fills: false,
    hides_plans: false,
    images_as_text: false,
    ..V2_1_45
};

const STRICT: Rules = Rules {
    renamed_tools: &[],
    calls_last: false,
    errors_are_text: false,
    ..V2_1_325
};

fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version.trim_start_matches('v').splitn(3, '.');
    let mut next = || {
        let part = parts.next().unwrap_or("0");
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .map_or(part, |end| &part[..end]);
        digits.parse().ok()
    };
    Some((next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_lead_to_others_step_by_step() {
        for profile in Profile::ALL {
            let steps = profile.rules().steps_to(&STRICT);
            let last = steps.last().map_or(profile.rules(), |(_, rules)| *rules);
            assert_eq!(last, STRICT, "{}", profile.name());
        }
        let steps = V2_1_325.steps_to(&STRICT);
        let names: Vec<&str> = steps.iter().map(|(about, _)| *about).collect();
        assert_eq!(
            names,
            [
                "`calls_last`: Calls stand behind all other blocks of their message.",
                "`renamed_tools`: Tools that are sent under a newer name.",
                "`errors_are_text`: Failed results keep only their text.",
            ]
        );
    }

    #[test]
    fn the_newest_profile_not_newer_than_the_version_applies() {
        let name = |version| Profile::for_version(version).map(Profile::name);
        assert_eq!(name("1.0.11"), Some("2.0.50"));
        assert_eq!(name("2.0.76"), Some("2.0.50"));
        assert_eq!(name("2.1.99"), Some("2.1.45"));
        assert_eq!(name("2.1.100"), Some("2.1.100"));
        assert_eq!(name("2.1.324"), Some("2.1.200"));
        assert_eq!(name("3"), Some("2.1.325"));
        assert_eq!(name("strict"), Some("strict"));
        assert_eq!(name("newest"), None);
    }
}
