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
    /// The newest time of all lines; the earlier line on a tie.
    Newest,
    /// The last line of the file, or the one `last-prompt` names.
    FileOrder,
}

/// What a client does about a circle of parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circle {
    /// It never comes back.
    Hangs,
    /// It stops at the first line it meets again.
    Stops,
    /// It follows the file instead.
    Heals,
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

/// The rules of one profile.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Choice of the leaf.
    pub leaf: Leaf,
    /// Circles of parents.
    pub circle: Circle,
    /// Lines of one message.
    pub join: Join,
    /// Unknown parents are healed by time; otherwise the history is cut there.
    pub heals: bool,
    /// Several objects on one line are read.
    pub reads_glued: bool,
    /// Lines without an id take part (all of them as one).
    pub takes_nameless: bool,
    /// Without any line there is an empty conversation, not none.
    pub starts_empty: bool,
    /// `progress` lines are links of the chain.
    pub progress: bool,
    /// Parallel calls and their results are brought back by message id.
    pub siblings: bool,
    /// Lines that a compaction preserved are put back.
    pub preserved: bool,
    /// The output of local commands is sent.
    pub local_commands: bool,
    /// Prompts typed while the model worked are sent.
    pub queued: bool,
    /// A call at the very end gets a synthetic result; otherwise it is dropped.
    pub completes: bool,
    /// How calls and results are paired before sending.
    pub pairing: Pairing,
    /// Two texts that become neighbours in one message are parted by a line end.
    pub parts_texts: bool,
    /// Lines of thinking or blank text alone are dropped, empty ones filled.
    pub fills: bool,
    /// Calls stand behind all other blocks of their message.
    pub calls_last: bool,
    /// Thinking of another model than the last one is dropped.
    pub drops_foreign_thinking: bool,
    /// Notifications of background tasks are sent as reminders.
    pub wraps_notifications: bool,
    /// A reply that is one string, or a prompt without content, makes resuming fail.
    pub brittle: bool,
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
        let newest = Rules {
            leaf: Leaf::FileOrder,
            circle: Circle::Heals,
            join: Join::AcrossResults,
            heals: true,
            reads_glued: true,
            takes_nameless: true,
            starts_empty: false,
            progress: false,
            siblings: true,
            preserved: true,
            local_commands: true,
            queued: true,
            completes: true,
            pairing: Pairing::Full,
            parts_texts: true,
            fills: true,
            calls_last: true,
            drops_foreign_thinking: true,
            wraps_notifications: true,
            brittle: false,
            errors_are_text: true,
        };
        let v2_1_200 = Rules {
            completes: false,
            reads_glued: false,
            ..newest
        };
        let v2_1_100 = Rules {
            leaf: Leaf::Newest,
            preserved: false,
            queued: false,
            calls_last: false,
            drops_foreign_thinking: false,
            wraps_notifications: false,
            errors_are_text: false,
            ..v2_1_200
        };
        let v2_1_45 = Rules {
            circle: Circle::Stops,
            heals: false,
            progress: true,
            siblings: false,
            local_commands: false,
            pairing: Pairing::Gentle,
            parts_texts: false,
            ..v2_1_100
        };
        match self {
            Profile::V2_0_50 => Rules {
                circle: Circle::Hangs,
                join: Join::Neighbours,
                starts_empty: true,
                progress: false,
                pairing: Pairing::None,
                fills: false,
                brittle: true,
                ..v2_1_45
            },
            Profile::V2_1_45 => v2_1_45,
            Profile::V2_1_100 => v2_1_100,
            Profile::V2_1_200 => v2_1_200,
            Profile::V2_1_325 | Profile::Strict => newest,
        }
    }
}

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
