//! What is true of a generated tree.

use std::collections::BTreeMap;
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

/// Messages and what they used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many, without synthetic ones.
    pub messages: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Searches of the web they made.
    pub web_searches: u64,
    /// How many were written by versions that often never wrote the final output (2.1.11 to 2.1.58).
    pub floor_messages: u64,
}

/// What a reader finds that makes a usual mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The mistake as a sentence.
    pub name: &'static str,
    /// The tokens it would report for the whole tree.
    pub usage: Usage,
}

/// A text that stands in one place of the tree only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needle {
    /// What makes it hard to find.
    pub kind: &'static str,
    /// What to search for.
    pub text: String,
    /// What kind of text holds it: `prompt`, `reply`, `thinking`, `tool`, `result`,
    /// `progress` or `title`.
    pub place: &'static str,
    /// The session it belongs to.
    pub session: String,
    /// The file it stands in, relative to the config directory.
    pub path: String,
    /// The line of that file, counted from 1; of a phrase over two lines the first.
    pub line: u64,
    /// The uuid of that line, if it has one.
    pub uuid: Option<String>,
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
    /// What counts for this session when each message of the tree counts once, in
    /// the oldest file it stands in: the main thread.
    pub counted: Count,
    /// The same of its sub-agents and compactions.
    pub counted_agents: Count,
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
    /// By day (UTC, of the first line of a message) and model.
    pub days: BTreeMap<(String, String), Count>,
    /// By model.
    pub models: BTreeMap<String, Count>,
    /// By working directory.
    pub projects: BTreeMap<String, Count>,
    /// What usual mistakes make of the tree.
    pub mistakes: Vec<Mistake>,
    /// Texts to find.
    pub needles: Vec<Needle>,
}

impl Usage {
    /// Field by field the larger one.
    #[must_use]
    pub fn max(self, other: Usage) -> Usage {
        self.each(other, u64::max)
    }

    /// Field by field what is left.
    #[must_use]
    pub fn minus(self, other: Usage) -> Usage {
        self.each(other, u64::saturating_sub)
    }

    /// All tokens.
    pub fn total(self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write_5m + self.cache_write_1h
    }

    fn each(self, other: Usage, merge: fn(u64, u64) -> u64) -> Usage {
        Usage {
            input: merge(self.input, other.input),
            output: merge(self.output, other.output),
            cache_read: merge(self.cache_read, other.cache_read),
            cache_write_5m: merge(self.cache_write_5m, other.cache_write_5m),
            cache_write_1h: merge(self.cache_write_1h, other.cache_write_1h),
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.messages += other.messages;
        self.usage += other.usage;
        self.web_searches += other.web_searches;
        self.floor_messages += other.floor_messages;
    }
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
            "days": self.days.iter().map(|((day, model), count)| {
                with(count.to_json(), json!({"day": day, "model": model}))
            }).collect::<Vec<_>>(),
            "models": named("model", &self.models), "projects": named("cwd", &self.projects),
            "mistakes": self.mistakes.iter().map(|mistake| {
                with(mistake.usage.to_json(), json!({"mistake": mistake.name}))
            }).collect::<Vec<_>>(),
            "needles": self.needles.iter().map(Needle::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Rows of counts, each with its name.
fn named(key: &str, counts: &BTreeMap<String, Count>) -> Vec<Value> {
    let row = |(name, count): (&String, &Count)| with(count.to_json(), json!({ key: name }));
    counts.iter().map(row).collect()
}

/// One object with the fields of both.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

impl Needle {
    fn to_json(&self) -> Value {
        json!({"kind": self.kind, "text": self.text, "place": self.place, "session": self.session,
            "path": self.path, "line": self.line, "uuid": self.uuid})
    }
}

impl Count {
    fn to_json(self) -> Value {
        json!({"messages": self.messages, "usage": self.usage.to_json(),
            "web_searches": self.web_searches, "floor_messages": self.floor_messages})
    }
}

impl SessionTruth {
    fn to_json(&self) -> Value {
        json!({
            "id": self.id, "path": self.path, "cwd": self.cwd, "version": self.version,
            "bytes": self.bytes, "lines": self.lines, "turns": self.turns, "live_turns": self.live_turns,
            "messages": self.messages, "calls": self.calls, "results": self.results, "agents": self.agents,
            "compactions": self.compactions, "torn": self.torn, "usage": self.usage.to_json(),
            "agent_usage": self.agent_usage.to_json(), "counted": self.counted.to_json(),
            "counted_agents": self.counted_agents.to_json(), "title": self.title, "first_prompt": self.first_prompt,
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
