//! What is true of a generated tree.

use std::ops::AddAssign;

use serde_json::{Value, json};

/// Tokens, named as on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Written to the cache for an hour.
    pub cache_write_1h: u64,
}

/// What is true of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionTruth {
    /// The name of its file.
    pub id: String,
    /// Its file, relative to the config directory.
    pub path: String,
    /// Where it worked.
    pub cwd: String,
    /// The version that wrote it.
    pub version: String,
    /// The size of its file.
    pub bytes: u64,
    /// Finished lines of its file.
    pub lines: u64,
    /// Human acts in the main thread, on all branches: prompts, commands, shell lines.
    pub turns: u64,
    /// Those on the live branch.
    pub live_turns: u64,
    /// Different message ids of the main thread, without synthetic ones.
    pub messages: u64,
    /// Tool calls of the main thread.
    pub calls: u64,
    /// Their results.
    pub results: u64,
    /// Sub-agents, in files of their own or inside.
    pub agents: u64,
    /// Compactions.
    pub compactions: u64,
    /// 1 if the last line is unfinished.
    pub torn: u64,
    /// Tokens of the main thread, each message once.
    pub usage: Usage,
    /// Tokens of its sub-agents, each message once.
    pub agent_usage: Usage,
    /// The last title given, if any.
    pub title: Option<String>,
    /// The text of its first prompt.
    pub first_prompt: String,
    /// The time of its first and last line, in milliseconds.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    /// The session it was copied from.
    pub resumed_from: Option<String>,
}

/// What is true of the whole tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Every session, resumed copies included.
    pub sessions: Vec<SessionTruth>,
    /// Files of sub-agents.
    pub agent_files: u64,
    /// Files that are no sessions.
    pub junk_files: u64,
    /// The size of all `.jsonl` files.
    pub bytes: u64,
    /// Finished lines of sessions and sub-agents.
    pub lines: u64,
    /// Unfinished lines.
    pub torn: u64,
    /// Different message ids in the whole tree, without synthetic ones.
    pub messages: u64,
    /// Human acts, those in resumed copies once.
    pub turns: u64,
    /// Tokens, each message of the whole tree once.
    pub usage: Usage,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write_5m += other.cache_write_5m;
        self.cache_write_1h += other.cache_write_1h;
    }
}

impl Truth {
    /// The truth as one JSON document.
    pub fn to_json(&self) -> Value {
        json!({
            "sessions": self.sessions.iter().map(SessionTruth::to_json).collect::<Vec<_>>(),
            "agent_files": self.agent_files, "junk_files": self.junk_files, "bytes": self.bytes,
            "lines": self.lines, "torn": self.torn, "messages": self.messages, "turns": self.turns,
            "usage": self.usage.to_json(),
        })
    }
}

impl SessionTruth {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id, "path": self.path, "cwd": self.cwd, "version": self.version,
            "bytes": self.bytes, "lines": self.lines, "turns": self.turns, "live_turns": self.live_turns,
            "messages": self.messages, "calls": self.calls, "results": self.results, "agents": self.agents,
            "compactions": self.compactions, "torn": self.torn, "usage": self.usage.to_json(),
            "agent_usage": self.agent_usage.to_json(), "title": self.title, "first_prompt": self.first_prompt,
            "first": crate::moment::rfc3339(self.first), "last": crate::moment::rfc3339(self.last),
            "resumed_from": self.resumed_from,
        })
    }
}

impl Usage {
    fn to_json(self) -> Value {
        json!({"input": self.input, "output": self.output, "cache_read": self.cache_read,
            "cache_write_5m": self.cache_write_5m, "cache_write_1h": self.cache_write_1h})
    }
}
