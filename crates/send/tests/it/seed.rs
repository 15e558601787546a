//! Against the older exporter: everything its rules give is in our traces.
//!
//! Its rules are written here a second time, from their description and not from our model:
//! a line is what `type` or `message.role` says, a turn begins at a user line without results,
//! neighbouring lines with one id are one message. What differs is one of the reasons listed
//! in `docs/sending.md`, and every reason is checked, not only given.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use unspool_send::spans::{
    SessionTurnTraces, SpanTextLocation, TraceSpan, TraceSpanKind, TraceSpanLevel, TurnTrace,
};
use unspool_send::trace_id::SpanId;
use unspool_testkit::corpus;

use crate::tell::{Told, said, span};

/// A turn by the older rules.
#[derive(Default)]
struct Turn {
    user: Value,
    replies: Vec<Reply>,
    results: Vec<Value>,
}

/// A message by the older rules.
struct Reply {
    id: Option<String>,
    model: String,
    blocks: Vec<Value>,
    usage: Option<Value>,
}

fn content(line: &Value) -> Vec<Value> {
    let content = match line["message"].is_object() {
        true => &line["message"]["content"],
        false => &line["content"],
    };
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn text(blocks: &[Value]) -> String {
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Lines to turns, as the older exporter groups them.
fn turns(bytes: &[u8]) -> Vec<Turn> {
    let lines = String::from_utf8_lossy(bytes).into_owned();
    let lines = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut done: Vec<Turn> = Vec::new();
    let mut open: Option<Turn> = None;
    for line in lines.filter(|line| line["isMeta"] != true) {
        let role = line["type"].as_str().or(line["message"]["role"].as_str());
        let blocks = content(&line);
        match (role, &mut open) {
            (Some("user"), Some(turn)) if is_result(&blocks) => turn.results.push(line),
            (Some("user"), None) if is_result(&blocks) => {}
            (Some("user"), _) => {
                done.extend(open.take().filter(|turn| !turn.replies.is_empty()));
                open = Some(Turn {
                    user: line,
                    ..Turn::default()
                });
            }
            (Some("assistant"), Some(turn)) => reply(turn, &line, blocks),
            _ => {}
        }
    }
    done.extend(open.filter(|turn| !turn.replies.is_empty()));
    done
}

fn is_result(blocks: &[Value]) -> bool {
    blocks.iter().any(|block| block["type"] == "tool_result")
}

fn reply(turn: &mut Turn, line: &Value, blocks: Vec<Value>) {
    let message = &line["message"];
    let id = message["id"].as_str().map(str::to_owned);
    let usage = Some(message["usage"].clone()).filter(Value::is_object);
    match turn.replies.last_mut().filter(|last| last.id == id) {
        Some(last) => {
            last.blocks.extend(blocks);
            last.usage = usage.or(last.usage.take());
        }
        None => turn.replies.push(Reply {
            id,
            model: message["model"].as_str().unwrap_or("unknown").to_owned(),
            blocks,
            usage,
        }),
    }
}

/// Why something is told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The client wrote the message itself: it is an event, or nothing.
    Synthetic,
    /// The line that the older rules take for a prompt was typed by no person.
    NotAPrompt,
    /// The prompt is told as it was typed, without the client's wrappers.
    Wrapped,
    /// Images are references.
    Image,
    /// The output of a turn is the last thing said in it, not an empty text.
    LastWords,
    /// Turns are cut elsewhere, so another reply is the last one.
    OtherCut,
}

/// What was compared, and what differed for which reason.
#[derive(Default)]
struct Account {
    same: BTreeMap<&'static str, usize>,
    other: BTreeMap<(&'static str, Reason), usize>,
    wrong: Vec<String>,
}

impl Account {
    fn check(
        &mut self,
        what: &'static str,
        same: bool,
        reason: Option<Reason>,
        detail: impl Fn() -> String,
    ) {
        match (same, reason) {
            (true, _) => *self.same.entry(what).or_default() += 1,
            (false, Some(reason)) => *self.other.entry((what, reason)).or_default() += 1,
            (false, None) => self.wrong.push(format!("{what}: {}", detail())),
        }
    }
}

struct Side<'a> {
    name: String,
    traces: &'a SessionTurnTraces<'a>,
    all: &'a [TurnTrace],
}

impl Side<'_> {
    fn find(&self, id: &str) -> Option<(&TurnTrace, &TraceSpan)> {
        let id = SpanId::of(id);
        let mut all = self.all.iter();
        all.find_map(|trace| Some((trace, trace.spans.iter().find(|span| span.id == id)?)))
    }

    fn turn(&self, turn: &Turn, account: &mut Account) {
        let mut first = true;
        for reply in &turn.replies {
            if reply.model == "<synthetic>" {
                account.check("generation", false, Some(Reason::Synthetic), String::new);
                continue;
            }
            let found = reply.id.as_deref().and_then(|id| self.find(id));
            let Some((trace, span)) = found else {
                account.check("generation", false, None, || {
                    format!("{} {:?}", self.name, reply.id)
                });
                continue;
            };
            if first {
                self.root(turn, (trace, span), account);
            }
            self.generation(turn, reply, (trace, span), first, account);
            first = false;
        }
    }

    fn root(&self, turn: &Turn, (trace, first): (&TurnTrace, &TraceSpan), account: &mut Account) {
        let root = &trace.spans[0];
        let leads = leads(trace, first);
        let named = root.kind == TraceSpanKind::Agent && root.name == format!("Turn {}", trace.n);
        account.check("root", named && root.parent.is_none(), None, || {
            self.name.clone()
        });
        let asked = text(&content(&turn.user));
        let ours = said(self.traces, &root.input).unwrap_or_default();
        let same = ours == json!({"role": "user", "content": asked});
        account.check(
            "input of a turn",
            same,
            prompt_reason(&turn.user, &asked, &ours, leads),
            || format!("{}: {asked:?} is {ours}", self.name),
        );
        let last = turn
            .replies
            .iter()
            .rev()
            .find(|reply| reply.model != "<synthetic>");
        let words = last.map(|reply| text(&reply.blocks)).unwrap_or_default();
        let ours = said(self.traces, &root.output);
        let same = ours == Some(json!({"role": "assistant", "content": words}));
        let reason = match last.and_then(|last| self.find(last.id.as_deref()?)) {
            _ if words.trim().is_empty() => Some(Reason::LastWords),
            Some((other, _)) if other.id != trace.id => Some(Reason::OtherCut),
            Some((_, span)) => {
                let later = trace
                    .spans
                    .iter()
                    .skip_while(|other| other.id != span.id)
                    .skip(1);
                let mut later = later.filter(|other| other.kind == TraceSpanKind::Generation);
                later
                    .any(|later| later.parent == Some(root.id))
                    .then_some(Reason::OtherCut)
            }
            None => None,
        };
        account.check("output of a turn", same, reason, || {
            format!("{}: {words:?} is {ours:?}", self.name)
        });
    }

    fn generation(
        &self,
        turn: &Turn,
        reply: &Reply,
        (trace, span): (&TurnTrace, &TraceSpan),
        first: bool,
        account: &mut Account,
    ) {
        let placed =
            span.kind == TraceSpanKind::Generation && span.parent == Some(trace.spans[0].id);
        account.check(
            "generation",
            placed && span.name == reply.model,
            None,
            || format!("{} {:?}", self.name, reply.id),
        );
        let words = text(&reply.blocks);
        let ours = said(self.traces, &span.output);
        // A text without a visible character is none for us.
        let words = if words.trim().is_empty() { "" } else { &words };
        let same = ours == Some(json!({"role": "assistant", "content": words}));
        account.check("output of a generation", same, None, || {
            format!("{}: {words:?} is {ours:?}", self.name)
        });
        let leads = leads(trace, span);
        let given = span.input != SpanTextLocation::None;
        account.check(
            "input on the first generation only",
            given == leads,
            None,
            || self.name.clone(),
        );
        account.check(
            "first generation of a turn",
            leads || !first,
            Some(Reason::OtherCut),
            String::new,
        );
        self.usage(reply, span, account);
        let tools = reply.blocks.iter();
        let tools: Vec<&Value> = tools.filter(|block| block["type"] == "tool_use").collect();
        let count = span.metadata.iter().find(|(key, _)| *key == "tool_count");
        account.check(
            "tool_count",
            count.is_some_and(|(_, count)| *count == tools.len()),
            None,
            || format!("{} {:?}", self.name, reply.id),
        );
        for block in tools {
            self.tool(turn, block, span, account);
        }
    }

    fn usage(&self, reply: &Reply, span: &TraceSpan, account: &mut Account) {
        let Some(usage) = &reply.usage else {
            return account.check("usage", span.usage.is_none(), None, || self.name.clone());
        };
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        let theirs = [
            count("input_tokens"),
            count("output_tokens"),
            count("cache_read_input_tokens"),
            count("cache_creation_input_tokens"),
        ];
        let ours = span.usage.map(|usage| {
            let writes = usage.cache_write_5m + usage.cache_write_1h;
            [usage.input, usage.output, usage.cache_read, writes]
        });
        account.check("usage", ours == Some(theirs), None, || {
            format!("{}: {theirs:?} is {ours:?}", self.name)
        });
    }

    fn tool(&self, turn: &Turn, block: &Value, generation: &TraceSpan, account: &mut Account) {
        let id = block["id"].as_str().unwrap_or_default();
        let Some((_, span)) = self.find(id) else {
            return account.check("tool", false, None, || format!("{} {id}", self.name));
        };
        let placed = span.kind == TraceSpanKind::Tool && span.parent == Some(generation.id);
        account.check("tool", placed && block["name"] == span.name, None, || {
            format!("{} {id}", self.name)
        });
        let input = said(self.traces, &span.input);
        account.check(
            "input of a tool",
            input.as_ref() == Some(&block["input"]),
            None,
            || format!("{} {id}: {input:?}", self.name),
        );
        let results = turn.results.iter().flat_map(content);
        let mut results = results.filter(|result| result["tool_use_id"] == id);
        let result = results.next();
        let theirs = result
            .as_ref()
            .map_or(Value::Null, |result| result["content"].clone());
        let ours = said(self.traces, &span.output).unwrap_or_default();
        let image =
            theirs.to_string().contains(r#""type":"image""#) && ours.to_string().contains("blake3");
        // A text that happens to be JSON is told as it is.
        let same = ours == theirs
            || theirs.as_str().is_some_and(|text| {
                serde_json::from_str(text).is_ok_and(|json: Value| json == ours)
            });
        let reason = match (&result, image) {
            (_, true) => Some(Reason::Image),
            (None, _) => Some(Reason::OtherCut),
            _ => None,
        };
        account.check("output of a tool", same, reason, || {
            format!("{} {id}: {theirs} is {ours}", self.name)
        });
        let failed = result.is_some_and(|result| result["is_error"] == true);
        let level = span.level == TraceSpanLevel::Error;
        account.check(
            "level of a tool",
            level == failed,
            reason.filter(|reason| *reason == Reason::OtherCut),
            || format!("{} {id}", self.name),
        );
    }
}

/// Whether a generation is the first under its parent.
fn leads(trace: &TurnTrace, span: &TraceSpan) -> bool {
    let mut generations = trace
        .spans
        .iter()
        .filter(|other| other.parent == span.parent && other.kind == TraceSpanKind::Generation);
    generations.next().is_some_and(|other| other.id == span.id)
}

fn prompt_reason(user: &Value, asked: &str, ours: &Value, leads: bool) -> Option<Reason> {
    let content = &ours["content"];
    if content.is_array() {
        return Some(Reason::Image);
    }
    let ours = content.as_str().unwrap_or_default();
    let start = asked.trim_start();
    let by_nobody = [
        "[Request interrupted",
        "<local-command",
        "<task-notification",
        "<bash-stdout>",
        "This session is being continued",
    ];
    let nobody = by_nobody
        .iter()
        .any(|by_nobody| start.starts_with(by_nobody));
    if nobody
        || !leads
        || user["isCompactSummary"] == true
        || user["origin"]["kind"]
            .as_str()
            .is_some_and(|kind| kind != "human")
    {
        return Some(Reason::NotAPrompt);
    }
    let wrapped = start.starts_with('<') || asked.contains("<system-reminder>");
    let typed = ours.trim_start_matches(['/', '!', '#', ' ']);
    let holds = typed.split_whitespace().all(|word| asked.contains(word));
    (wrapped && holds).then_some(Reason::Wrapped)
}

#[test]
fn every_observation_of_the_older_exporter_is_in_our_traces() {
    let mut account = Account::default();
    let mut files = 0;
    for file in corpus::files() {
        if file.role != corpus::Role::Main {
            continue;
        }
        files += 1;
        let bytes = file.bytes();
        let told = Told::bytes(bytes.clone());
        let traces = told.traces_by(unspool_send::spans::TraceOptions {
            redact: None,
            ..Default::default()
        });
        let all: Vec<TurnTrace> = traces.iter().collect();
        let side = Side {
            name: file.name(),
            traces: &traces,
            all: &all,
        };
        for turn in turns(&bytes) {
            side.turn(&turn, &mut account);
        }
    }
    println!(
        "{files} files\nsame: {:#?}\nother: {:#?}",
        account.same, account.other
    );
    let wrong = account.wrong.len();
    assert!(
        wrong == 0,
        "{wrong}:\n{}",
        account.wrong[..wrong.min(20)].join("\n")
    );
    assert!(account.same["generation"] > 300 && account.same["tool"] > 150);
}

/// The shapes that the older exporter's own description shows: no `type` on replies, content
/// at the top of the line, no uuids.
#[test]
fn the_shapes_of_its_own_description_give_its_own_tree() {
    let lines = [
        r#"{"sessionId":"sess1","type":"user","timestamp":"2025-01-15T10:00:00Z","content":"read a file"}"#,
        r#"{"timestamp":"2025-01-15T10:00:05Z","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"path":"/"}}],"usage":{"input_tokens":100,"output_tokens":50,"cache_read_input_tokens":20}}}"#,
        r#"{"type":"user","timestamp":"2025-01-15T10:00:10Z","content":[{"type":"tool_result","tool_use_id":"t1","content":"file data"}]}"#,
        r#"{"message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}}"#,
    ];
    let told = Told::lines(&lines);
    let trace = told.only();
    let tree = r#"agent Turn 1 < {"role":"user","content":"read a file"} > {"role":"assistant","content":"done"}
  generation claude-sonnet-4-5-20250929 < {"role":"user","content":"read a file"} > {"role":"assistant","content":""}
    tool Read < {"path":"/"} > "file data"
  generation unknown > {"role":"assistant","content":"done"}
"#;
    assert_eq!(told.tree(), tree);
    let usage = span(&trace, "claude-sonnet-4-5-20250929").usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.cache_read), (100, 50, 20));
    assert_eq!(span(&trace, "unknown").usage, None);
}
