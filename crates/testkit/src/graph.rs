//! Random session graphs, small and strange, for properties and differential tests.
//!
//! [`healthy`] draws only shapes that clients write: branches, parallel results
//! as a tree or as a chain, compaction with and without kept lines, sidechains,
//! links that are no message. [`session`] also breaks some of them: loops,
//! missing parents, parents that come later, uuids used twice, no timestamps,
//! lines that are no JSON. Every line still belongs to a known seed, so a
//! failing test is repeated by its number. Texts are short; sizes are the
//! business of [`crate::tree`].

use serde_json::{Value, json};

use crate::moment;
use crate::random::Random;

/// The lines of the session with this number, possibly broken.
pub fn session(seed: u64) -> Vec<String> {
    let mut graph = grow(seed);
    let mut random = Random::new(seed ^ 0xbad);
    for harm in HARMS {
        if random.chance(20) {
            harm(&mut graph.lines, &mut random);
        }
    }
    let mut lines: Vec<String> = graph.lines.iter().map(Value::to_string).collect();
    if random.chance(15) {
        spoil_text(&mut lines, &mut random);
    }
    lines
}

/// The lines of the session with this number, as a client could have written them.
pub fn healthy(seed: u64) -> Vec<String> {
    grow(seed).lines.iter().map(Value::to_string).collect()
}

/// The same, with lines of other kinds between the calls of a message and between their results,
/// as a client writes them whose tools run while the message is still arriving.
pub fn busy(seed: u64) -> Vec<String> {
    let mut graph = begin(seed);
    graph.is_busy = true;
    go_on(&mut graph);
    graph.lines.iter().map(Value::to_string).collect()
}

type Step = fn(&mut Graph);

/// What can come next in a session, and how often.
const STEPS: &[(u64, Step)] = &[
    (18, Graph::prompt),
    (16, |graph| graph.reply(&["text"])),
    (8, |graph| graph.reply(&["thinking", "text"])),
    (16, Graph::calls),
    (4, Graph::meta),
    (3, Graph::command),
    (3, Graph::interrupt),
    (6, Graph::progress),
    (6, Graph::attachment),
    (4, Graph::queue),
    (4, Graph::compact),
    (5, Graph::sidechain),
    (7, Graph::rewind),
    (3, Graph::synthetic),
    (3, Graph::duration),
    (3, Graph::title),
    (4, Graph::last_prompt),
    (2, Graph::unknown),
    (3, Graph::snapshot),
];

fn grow(seed: u64) -> Graph {
    let mut graph = begin(seed);
    go_on(&mut graph);
    graph
}

fn begin(seed: u64) -> Graph {
    let mut random = Random::new(seed);
    let is_tree = random.chance(65);
    let versions: &[&str] = if is_tree {
        &["2.1.29", "2.1.45", "2.1.100", "2.1.325"]
    } else {
        &["2.0.42", "2.0.76"]
    };
    let version = random.pick(versions);
    let steps = random.range(1, 30);
    Graph {
        random,
        version,
        is_tree,
        steps,
        now: moment::START,
        ..Graph::default()
    }
}

fn go_on(graph: &mut Graph) {
    graph.prompt();
    let total: u64 = STEPS.iter().map(|(weight, _)| weight).sum();
    for _ in 0..graph.steps {
        let mut at = graph.random.below(total);
        for (weight, step) in STEPS {
            if at < *weight {
                step(graph);
                break;
            }
            at -= weight;
        }
    }
}

#[derive(Default)]
struct Graph {
    random: Random,
    lines: Vec<Value>,
    version: &'static str,
    is_tree: bool,
    /// How many steps it has.
    steps: u64,
    /// Other lines stand between calls and between results.
    is_busy: bool,
    /// Where the next line hangs, and every uuid of the main thread.
    last: Option<String>,
    main: Vec<String>,
    count: u64,
    now: u64,
    /// Set while the lines of a sub-agent are written.
    agent: Option<String>,
}

impl Graph {
    fn text(&mut self) -> String {
        self.count += 1;
        format!("text {}", self.count)
    }

    /// Writes a line of the chain and returns its uuid.
    fn chain(&mut self, kind: &str, parent: Option<String>, fields: Value) -> String {
        self.count += 1;
        // Ties happen, and clients disagree about them.
        self.now += if self.random.chance(4) {
            0
        } else {
            self.random.range(1, 90_000)
        };
        let uuid = format!(
            "{:08x}-0000-4000-8000-{:012x}",
            self.random.next() as u32,
            self.count
        );
        let mut line = json!({
            "parentUuid": parent, "isSidechain": self.agent.is_some(), "userType": "external",
            "cwd": "/home/dev/graph", "sessionId": "96a9c000-0000-4000-8000-000000000000",
            "version": self.version, "gitBranch": "main", "type": kind, "uuid": uuid,
            "timestamp": moment::rfc3339(self.now),
        });
        if let Some(agent) = &self.agent {
            line["agentId"] = json!(agent);
        }
        merge(&mut line, fields);
        self.lines.push(line);
        if self.agent.is_none() {
            self.main.push(uuid.clone());
        }
        self.last = Some(uuid.clone());
        uuid
    }

    fn user(&mut self, content: Value, fields: Value) -> String {
        let mut all = json!({"message": {"role": "user", "content": content}});
        merge(&mut all, fields);
        let parent = self.last.clone();
        self.chain("user", parent, all)
    }

    fn prompt(&mut self) {
        let text = self.text();
        let content = if self.random.chance(85) {
            json!(text)
        } else {
            json!([{"type": "text", "text": text}])
        };
        let fields = if self.is_tree {
            json!({"permissionMode": "default"})
        } else {
            json!({})
        };
        self.user(content, fields);
    }

    fn message_id(&mut self) -> String {
        self.count += 1;
        format!("msg_{:06}", self.count)
    }

    fn block(&mut self, id: &str, block: Value) -> String {
        let parent = self.last.clone();
        let output = self.random.range(1, 500);
        let message = json!({
            "id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
            "content": [block], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100,
                "output_tokens": output},
        });
        self.chain(
            "assistant",
            parent,
            json!({"message": message, "requestId": id.replacen("msg", "req", 1)}),
        )
    }

    fn reply(&mut self, kinds: &[&str]) {
        let id = self.message_id();
        for kind in kinds {
            let text = self.text();
            let block = match *kind {
                "thinking" => json!({"type": "thinking", "thinking": text, "signature": "c2ln"}),
                _ => json!({"type": "text", "text": text}),
            };
            self.block(&id, block);
        }
    }

    /// A message with calls, and their results in any order; some never come.
    fn calls(&mut self) {
        let id = self.message_id();
        if self.random.chance(40) {
            let text = self.text();
            self.block(&id, json!({"type": "text", "text": text}));
        }
        let mut open = Vec::new();
        for _ in 0..self.random.range(1, 5) {
            self.count += 1;
            let call = format!("toolu_{:06}", self.count);
            let name = *self.random.pick(&["Read", "Bash", "Edit", "mcp__x__y"]);
            let uuid = self.block(
                &id,
                json!({"type": "tool_use", "id": call, "name": name, "input": {"n": self.count}}),
            );
            open.push((call, uuid));
            self.between();
            // A slow stream lets a result in between the blocks of its message.
            if self.random.chance(10) {
                self.answer(&mut open);
            }
        }
        while !open.is_empty() {
            if self.random.chance(7) {
                open.pop();
            } else {
                self.answer(&mut open);
                self.between();
            }
        }
    }

    /// What a hook or a running tool writes meanwhile.
    fn between(&mut self) {
        while self.is_busy && self.random.chance(35) {
            match self.random.below(4) {
                0 => self.attachment(),
                1 => self.duration(),
                _ => self.progress(),
            }
        }
    }

    fn answer(&mut self, open: &mut Vec<(String, String)>) {
        let index = self.random.below(open.len() as u64) as usize;
        let (call, uuid) = open.remove(index);
        let is_error = self.random.chance(10);
        let text = self.text();
        let mut block = json!({"tool_use_id": call, "type": "tool_result", "content": text});
        if is_error {
            block["is_error"] = json!(true);
        }
        let mut fields = json!({"message": {"role": "user", "content": [block]}});
        let parent = if self.is_tree {
            fields["sourceToolAssistantUUID"] = json!(uuid);
            Some(uuid)
        } else {
            self.last.clone()
        };
        self.chain("user", parent, fields);
    }

    fn meta(&mut self) {
        let text = self.text();
        self.user(json!(text), json!({"isMeta": true}));
    }

    fn command(&mut self) {
        self.user(
            json!("<command-name>/model</command-name>\n<command-args></command-args>"),
            json!({}),
        );
        self.user(
            json!("<local-command-stdout>ok</local-command-stdout>"),
            json!({}),
        );
    }

    fn interrupt(&mut self) {
        self.user(
            json!([{"type": "text", "text": "[Request interrupted by user]"}]),
            json!({}),
        );
    }

    fn progress(&mut self) {
        let parent = self.last.clone();
        let data = json!({"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": "PostToolUse:Read", "command": "callback"});
        let before = self.last.clone();
        self.chain(
            "progress",
            parent,
            json!({"data": data, "toolUseID": "toolu_h", "parentToolUseID": "toolu_h"}),
        );
        if self.random.chance(40) {
            // A side branch: nothing hangs on it.
            self.last = before;
        }
    }

    fn attachment(&mut self) {
        let parent = self.last.clone();
        let text = self.text();
        let attachment = match self.random.below(3) {
            0 => {
                json!({"type": "queued_command", "prompt": text, "commandMode": "prompt", "humanTurn": true})
            }
            1 => {
                json!({"type": "hook_success", "hookName": "SessionStart:startup", "content": text})
            }
            _ => json!({"type": "skill_listing", "content": text}),
        };
        self.chain("attachment", parent, json!({"attachment": attachment}));
    }

    fn queue(&mut self) {
        let text = self.text();
        for operation in ["enqueue", "remove"] {
            self.now += 1;
            let timestamp = moment::rfc3339(self.now);
            self.lines.push(
                json!({"type": "queue-operation", "operation": operation, "timestamp": timestamp,
                "sessionId": "96a9c000-0000-4000-8000-000000000000", "content": text}),
            );
        }
    }

    fn compact(&mut self) {
        let logical = self.last.clone();
        let mut metadata = json!({"trigger": "auto", "preTokens": 155_000});
        let boundary = self.lines.len();
        let kept: Vec<String> = self.main.iter().rev().take(3).rev().cloned().collect();
        let fields = json!({"subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
            "level": "info", "logicalParentUuid": logical, "compactMetadata": metadata});
        self.chain("system", None, fields);
        if self.random.chance(8) {
            // No summary follows: the client was killed.
            return;
        }
        let text = format!("This session is being continued. {}", self.text());
        let summary = self.user(
            json!(text),
            json!({"isVisibleInTranscriptOnly": true, "isCompactSummary": true}),
        );
        if self.random.chance(35) {
            metadata["preservedSegment"] =
                json!({"headUuid": kept.first(), "anchorUuid": summary, "tailUuid": kept.last()});
            metadata["preservedMessages"] =
                json!({"anchorUuid": summary, "uuids": kept, "allUuids": kept});
            self.lines[boundary]["compactMetadata"] = metadata;
        }
    }

    /// The conversation of a sub-agent inside the main file.
    fn sidechain(&mut self) {
        if self.agent.is_some() {
            return;
        }
        let resume = self.last.take();
        self.count += 1;
        self.agent = Some(format!("a{:06x}", self.count));
        self.prompt();
        self.calls();
        self.reply(&["text"]);
        self.agent = None;
        self.last = resume;
    }

    fn rewind(&mut self) {
        self.last = if self.random.chance(10) {
            None
        } else {
            Some(self.random.pick(&self.main).clone())
        };
        self.prompt();
    }

    fn synthetic(&mut self) {
        let parent = self.last.clone();
        let id = self.message_id();
        let message = json!({"id": id, "type": "message", "role": "assistant", "model": "<synthetic>",
            "content": [{"type": "text", "text": "No response requested."}], "stop_reason": "stop_sequence",
            "usage": {"input_tokens": 0, "output_tokens": 0}});
        self.chain("assistant", parent, json!({"message": message}));
    }

    fn duration(&mut self) {
        let parent = self.last.clone();
        let millis = self.random.range(100, 100_000);
        self.chain(
            "system",
            parent,
            json!({"subtype": "turn_duration", "durationMs": millis, "isMeta": false}),
        );
    }

    fn title(&mut self) {
        let text = self.text();
        let line = match self.random.below(3) {
            0 => json!({"type": "custom-title", "customTitle": text}),
            1 => json!({"type": "ai-title", "aiTitle": text}),
            _ => {
                json!({"type": "summary", "summary": text, "leafUuid": self.random.pick(&self.main)})
            }
        };
        self.lines.push(line);
    }

    fn last_prompt(&mut self) {
        let leaf = match self.random.below(4) {
            0 => "00000000-0000-0000-0000-000000000000".to_owned(),
            1 => "ffffffff-0000-4000-8000-000000000000".to_owned(),
            _ => self.random.pick(&self.main).clone(),
        };
        let mut line = json!({"type": "last-prompt", "lastPrompt": "text", "leafUuid": leaf});
        if self.random.chance(25) {
            line["explicit"] = json!(true);
        }
        self.lines.push(line);
    }

    fn unknown(&mut self) {
        let parent = self.last.clone();
        self.chain(
            "from-the-future",
            parent,
            json!({"payload": {"deep": [1, 2, {"x": null}]}}),
        );
    }

    fn snapshot(&mut self) {
        let message = self.random.pick(&self.main);
        self.lines.push(json!({"type": "file-history-snapshot", "messageId": message, "isSnapshotUpdate": false,
            "snapshot": {"messageId": message, "trackedFileBackups": {}, "timestamp": moment::rfc3339(self.now)}}));
    }
}

type Harm = fn(&mut Vec<Value>, &mut Random);

/// The ways in which a graph can be broken; each is drawn on its own.
const HARMS: &[Harm] = &[
    // A parent that is nowhere.
    |lines, random| {
        *field(lines, random, "parentUuid") = json!("dead0000-0000-4000-8000-000000000000")
    },
    // Its own parent.
    |lines, random| {
        let line = linked(lines, random);
        line["parentUuid"] = line["uuid"].clone();
    },
    // A loop: an earlier line hangs on a later one.
    |lines, random| {
        let later = linked(lines, random)["uuid"].clone();
        *field(lines, random, "parentUuid") = later;
    },
    // A second root.
    |lines, random| *field(lines, random, "parentUuid") = Value::Null,
    // A parent later in the file than its child.
    |lines, random| {
        let last = lines.len() as u64;
        let (a, b) = (random.below(last) as usize, random.below(last) as usize);
        lines.swap(a, b);
    },
    // The same uuid on two lines, with different content.
    |lines, random| {
        let mut copy = linked(lines, random).clone();
        copy["isMeta"] = json!(true);
        let at = random.range(0, lines.len() as u64 + 1) as usize;
        lines.insert(at, copy);
    },
    // No time on one line.
    |lines, random| remove(linked(lines, random), "timestamp"),
    // No time on any line.
    |lines, random| {
        if random.chance(30) {
            lines.iter_mut().for_each(|line| remove(line, "timestamp"));
        }
    },
    // Time runs backwards.
    |lines, random| *field(lines, random, "timestamp") = json!("2020-02-02T02:02:02.020Z"),
    // A line is lost.
    |lines, random| {
        if lines.len() > 1 {
            lines.remove(random.below(lines.len() as u64) as usize);
        }
    },
    // A sidechain line stands in the main thread.
    |lines, random| *field(lines, random, "isSidechain") = json!(true),
    // A message without an id.
    |lines, random| {
        let line = linked(lines, random);
        if let Some(message) = line.get_mut("message") {
            remove(message, "id");
        }
    },
    // A line of another session.
    |lines, random| {
        *field(lines, random, "sessionId") = json!("07e50000-0000-4000-8000-000000000000")
    },
    // A line without a uuid that has everything else.
    |lines, random| remove(linked(lines, random), "uuid"),
];

/// Lines that are no JSON object, or two on one line.
fn spoil_text(lines: &mut Vec<String>, random: &mut Random) {
    let at = random.below(lines.len() as u64) as usize;
    match random.below(5) {
        0 => lines.insert(at, String::new()),
        1 => lines.insert(at, "not json".into()),
        2 => lines.insert(at, "[1,2]".into()),
        3 => {
            let half = lines[at].len() / 2;
            lines[at].truncate(half);
        }
        _ => {
            let twice = lines[at].clone();
            lines[at].push_str(&twice);
        }
    }
}

/// Some line with a uuid; the first one, the opening prompt, always has one
/// unless a harm took it, and then any line will do.
fn linked<'a>(lines: &'a mut [Value], random: &mut Random) -> &'a mut Value {
    let places: Vec<usize> = (0..lines.len())
        .filter(|&at| lines[at].get("uuid").is_some())
        .collect();
    let at = if places.is_empty() {
        0
    } else {
        *random.pick(&places)
    };
    &mut lines[at]
}

fn field<'a>(lines: &'a mut [Value], random: &mut Random, name: &str) -> &'a mut Value {
    &mut linked(lines, random)[name]
}

fn remove(value: &mut Value, name: &str) {
    if let Some(map) = value.as_object_mut() {
        map.shift_remove(name);
    }
}

fn merge(line: &mut Value, fields: Value) {
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
        line.extend(fields);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_session() {
        assert_eq!(session(42), session(42));
        assert_ne!(session(42), session(43));
    }

    #[test]
    fn a_healthy_session_names_only_parents_that_stand_before() {
        for seed in 0..300 {
            let mut seen = BTreeSet::new();
            for line in healthy(seed) {
                let line: Value = serde_json::from_str(&line).unwrap();
                if let Some(parent) = line["parentUuid"].as_str() {
                    assert!(seen.contains(parent), "seed {seed}: {line}");
                }
                if let Some(uuid) = line["uuid"].as_str() {
                    assert!(seen.insert(uuid.to_owned()), "seed {seed}: {uuid} twice");
                }
            }
        }
    }

    #[test]
    fn a_thousand_seeds_show_every_kind_of_harm() {
        let (mut broken, mut missing, mut doubled, mut timeless) = (0, 0, 0, 0);
        for seed in 0..1000 {
            let mut uuids = BTreeSet::new();
            for line in session(seed) {
                let Ok(line) = serde_json::from_str::<Value>(&line) else {
                    broken += 1;
                    continue;
                };
                let Some(uuid) = line["uuid"].as_str() else {
                    continue;
                };
                doubled += usize::from(!uuids.insert(uuid.to_owned()));
                missing += usize::from(
                    line["parentUuid"]
                        .as_str()
                        .is_some_and(|p| p.starts_with("dead")),
                );
                timeless += usize::from(line.get("timestamp").is_none());
            }
        }
        assert!(broken > 50 && missing > 50 && doubled > 50 && timeless > 50);
    }
}
