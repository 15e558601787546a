//! What is decided about a session before it is written.

use super::books::Books;
use super::pen::Thread;
use super::text::Text;
use super::truth::Truth;
use crate::random::Random;

/// What all sessions of a tree share.
pub struct World {
    pub random: Random,
    pub text: Text,
    pub now: u64,
    pub truth: Truth,
    pub books: Books,
    /// Who writes the session at hand.
    pub client: Client,
}

/// What decides how a client writes usage.
#[derive(Clone, Copy, Default)]
pub struct Client {
    /// It talks to a gateway: no `requestId`, other models, and the lines before
    /// the last one know nothing about the input.
    pub is_gateway: bool,
    /// It often never writes the final output (2.1.11 to 2.1.58).
    pub is_unfinished: bool,
}

impl Client {
    pub fn new(version: &str, is_gateway: bool) -> Client {
        let patch = version
            .strip_prefix("2.1.")
            .and_then(|patch| patch.parse::<u32>().ok());
        Client {
            is_gateway,
            is_unfinished: patch.is_some_and(|patch| (11..=58).contains(&patch)),
        }
    }
}

/// Where sub-agents are, which is also which client wrote the session.
#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    /// `<session>/subagents/`, parallel results as a tree, progress lines (2.1).
    Folder,
    /// Beside the session, everything a chain (2.0).
    Flat,
    /// Inside the session's own file (1.0).
    Inline,
}

/// What is decided about a session before it is written.
pub struct Setting {
    pub cwd: String,
    pub folder: String,
    pub layout: Layout,
    pub start: u64,
    pub size: u64,
    pub result_bytes: u64,
    pub agents_per_thousand: u64,
    pub is_resumed: bool,
    /// How many turns it has at least, however small it is.
    pub least_turns: u64,
    pub is_torn: bool,
    pub is_compacted_late: bool,
    /// Its clock goes back once and then jumps a year ahead.
    pub is_skewed: bool,
    pub is_gateway: bool,
    /// It holds the texts to find.
    pub has_needles: bool,
    /// Its last line is one of them.
    pub has_tail: bool,
}

/// The thread of a sub-agent.
pub fn side_thread(setting: &Setting, session: &str, version: &str, agent: &str) -> Thread {
    Thread {
        envelope: envelope(setting, session, version, Some(agent)),
        last: None,
    }
}

/// What every line of a session repeats, from `isSidechain` on.
pub fn envelope(setting: &Setting, session: &str, version: &str, agent: Option<&str>) -> Vec<u8> {
    let cwd = &setting.cwd;
    let side = agent.is_some();
    let agent = agent.map_or(String::new(), |agent| format!(r#","agentId":"{agent}""#));
    format!(r#""isSidechain":{side},"userType":"external","cwd":"{cwd}","sessionId":"{session}","version":"{version}","gitBranch":"main"{agent}"#).into_bytes()
}

/// A client of this layout.
pub fn version(world: &mut World, layout: Layout) -> &'static str {
    let versions: &[&'static str] = match layout {
        Layout::Folder => &["2.1.29", "2.1.45", "2.1.63"],
        Layout::Flat => &["2.0.42", "2.0.76"],
        Layout::Inline => &["1.0.120"],
    };
    versions[world.random.below(versions.len() as u64) as usize]
}
