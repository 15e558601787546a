//! One short form for what a client sends and what a reader prints.
//!
//! A message becomes its role and one string per block: the kind, ids, names,
//! a hash of inputs, and the beginning of texts. Texts that do not come from
//! the transcript are shown by a hash only, so that no prompt of the client
//! ends up in a recording.

use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The prompt that every resume run asks.
pub const PING: &str = "conformance ping";

/// Short texts the client makes up, known from the format notes.
const KNOWN: [&str; 6] = [
    NO_RESPONSE,
    CONTINUE,
    "(no content)",
    "[Tool result missing due to internal error]",
    "[Request interrupted by user]",
    "[Request interrupted by user for tool use]",
];
const NO_RESPONSE: &str = "No response requested.";
const CONTINUE: &str = "Continue from where you left off.";
const REMINDER: &str = "<system-reminder>";
/// With this, 2.1.69 names the tools that a search would find, ahead of everything.
const TOOLS_TO_FIND: &str = "<available-deferred-tools>";
/// What parts a result from a reminder behind it.
const GLUED: &str = " + ";
const SHOWN: usize = 60;
const FILLER: &str = "lorem ipsum dolor sit amet ";
const FILLER_START: &str = "lorem ipsum";

/// The strings of a transcript; what is not among them was made by the client.
#[derive(Default)]
pub struct Texts {
    all: BTreeSet<String>,
    spoken: BTreeSet<String>,
    stored: BTreeSet<String>,
}

impl Texts {
    /// Collects the strings of all lines that are JSON.
    pub fn of(file: &str) -> Texts {
        let mut texts = Texts::default();
        let file = squeezed(file);
        let file = file.strip_prefix('\u{feff}').unwrap_or(&file);
        for line in file.lines() {
            let stream = serde_json::Deserializer::from_str(line.trim_matches('\0')).into_iter();
            for value in stream.map_while(Result::<Value, _>::ok) {
                collect(&value, &mut texts.all);
                if value["type"] == "user" || value["type"] == "assistant" {
                    for block in contents(&value["message"]["content"]) {
                        collect(&block["text"], &mut texts.spoken);
                    }
                }
                collect(&value["attachment"]["prompt"], &mut texts.spoken);
                collect(&value["rendered"], &mut texts.stored);
                if value["attachment"]["type"] == "queued_command" {
                    collect(&value["rendered"], &mut texts.spoken);
                }
            }
        }
        texts
    }

    fn has(&self, text: &str) -> bool {
        self.all.contains(text) || self.all.contains(text.trim())
    }

    /// The longest spoken text that the client wrapped into this one.
    fn inside(&self, text: &str) -> Option<&str> {
        let parts = self.spoken.iter().filter(|own| own.len() >= 8);
        let parts = parts.filter(|own| text.contains(own.as_str()));
        parts.max_by_key(|own| own.len()).map(String::as_str)
    }
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            texts.insert(unwrapped(text).to_owned());
            texts.insert(text.trim_end().to_owned());
            texts.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The words inside a reminder.
fn unwrapped(text: &str) -> &str {
    let inner = text.trim().strip_prefix(REMINDER);
    let inner = inner.and_then(|text| text.strip_suffix("</system-reminder>"));
    inner.map_or(text, str::trim)
}

/// Reduces a messages array; `{"role", "blocks"}` for each message.
///
/// Dropped on both sides: the prompt of the run and all that follows it,
/// reminders and system texts that are not in the transcript, and the closing
/// pair that a resume adds to an unanswered conversation.
pub fn history(messages: &Value, texts: &Texts) -> Vec<Value> {
    let messages = squeezed(&messages.to_string());
    let messages = serde_json::from_str(&messages).unwrap_or_default();
    let mut kept = before_prompt(&messages, texts);
    let trailing = kept
        .iter()
        .rposition(|message| message["role"] != "system")
        .map_or(0, |last| last + 1);
    let mut system = kept.split_off(trailing);
    strip_closing(&mut kept);
    kept.append(&mut system);
    let mut reduced = Vec::new();
    for message in &kept {
        let all = contents(&message["content"]);
        let blocks: Vec<String> = all.iter().filter_map(|b| block(b, texts)).collect();
        let role = &message["role"];
        if !blocks.is_empty() || (all.is_empty() && role != "system") {
            reduced.push(json!({"role": role, "blocks": blocks}));
        }
    }
    reduced
}

/// The messages ahead of the prompt of the run, without what is made afresh.
fn before_prompt(messages: &Value, texts: &Texts) -> Vec<Value> {
    let mut kept = Vec::new();
    let mut over = false;
    for message in messages.as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        // Stored system texts at the end are sent after the new prompt.
        if over && role != "system" {
            break;
        }
        let mut all = contents(&message["content"]);
        if role == "system" {
            all = paragraphs(&all, texts);
        }
        let asked = all.iter().position(|block| block["text"] == PING);
        let had = all.len();
        all.truncate(asked.unwrap_or(had));
        all.retain(|b| b["type"] != "text" || block(b, texts).is_some());
        if asked.is_some() {
            end_without_seam(&mut all);
        }
        if !all.is_empty() || (had == 0 && role != "system") {
            kept.push(json!({"role": role, "content": all}));
        }
        over |= asked.is_some();
    }
    kept
}

/// Takes off the newline that the client adds to a text when another one follows.
fn end_without_seam(blocks: &mut [Value]) {
    let last = blocks.last_mut().map(|block| &mut block["text"]);
    if let Some(Value::String(text)) = last {
        text.truncate(text.strip_suffix('\n').unwrap_or(text).len());
    }
}

/// The history without reminders: system messages, and texts that are stored as attachments.
///
/// A reminder may stand by itself or behind a result. A text that somebody also said stays.
pub fn without_reminders(history: &[Value], texts: &Texts) -> Vec<Value> {
    let stored = texts
        .stored
        .iter()
        .filter(|text| !texts.spoken.contains(*text));
    let stored: BTreeSet<String> = stored
        .flat_map(|text| [cut(text), cut(&format!("{text}\n"))])
        .collect();
    let plain = |block: &str| match block.split_once(' ') {
        Some(("text", text)) if stored.contains(text) => None,
        Some(("tool_result", _)) => Some(match block.split_once(GLUED) {
            Some((result, reminder)) if stored.contains(reminder) => result.to_owned(),
            _ => block.to_owned(),
        }),
        _ => Some(block.to_owned()),
    };
    let spoken = history.iter().filter(|message| message["role"] != "system");
    let mut out: Vec<Value> = Vec::new();
    for message in spoken {
        let before = message["blocks"].as_array().map_or(0, Vec::len);
        let blocks = message["blocks"].as_array().into_iter().flatten();
        let blocks: Vec<String> = blocks
            .filter_map(|block| plain(block.as_str().unwrap_or_default()))
            .collect();
        if blocks.len() == before || !blocks.is_empty() {
            out.push(json!({"role": message["role"], "blocks": blocks}));
        }
    }
    out
}

/// Removes what a resume appends to a conversation that ends with the user.
fn strip_closing(messages: &mut Vec<Value>) {
    let says = |block: &Value, text: &str| block["text"] == text;
    let only = |message: &Value, text: &str| {
        let all = contents(&message["content"]);
        all.len() == 1 && says(&all[0], text)
    };
    let answers = |m: &Value| m["role"] == "assistant" && only(m, NO_RESPONSE);
    if messages.last().is_some_and(answers) {
        messages.pop();
    }
    let Some(last) = messages.last_mut().filter(|last| last["role"] == "user") else {
        return;
    };
    let mut blocks = contents(&last["content"]);
    if blocks.last().is_some_and(|block| says(block, CONTINUE)) {
        blocks.pop();
        if blocks.is_empty() {
            messages.pop();
        } else {
            end_without_seam(&mut blocks);
            last["content"] = blocks.into();
        }
    }
}

/// The stored texts in a message of the system; the client joins them, and adds fresh ones.
fn paragraphs(blocks: &[Value], texts: &Texts) -> Vec<Value> {
    let all = blocks.iter().filter_map(|block| block["text"].as_str());
    // One notice may hold several texts, joined by a single newline.
    let parts = all.flat_map(|text| text.split("\n\n")).flat_map(|part| {
        let whole = texts.stored.contains(part);
        if whole {
            vec![part]
        } else {
            part.lines().collect()
        }
    });
    let own = parts.filter(|part| texts.stored.contains(*part));
    own.map(|part| json!({"type": "text", "text": part}))
        .collect()
}

fn contents(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// One block, or nothing if the client adds it afresh on every run.
fn block(block: &Value, texts: &Texts) -> Option<String> {
    let word = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
    let kind = word("type");
    Some(match kind.as_str() {
        "text" => {
            let text = word("text");
            let fresh = [REMINDER, TOOLS_TO_FIND];
            let fresh = fresh.iter().any(|tag| text.trim_start().starts_with(tag));
            if fresh && !is_own(&text, texts) {
                return None;
            }
            format!("text {}", shown(&text, texts))
        }
        "thinking" => format!("thinking {}", shown(&word("thinking"), texts)),
        "tool_use" => format!(
            "tool_use {} {} {}",
            word("id"),
            word("name"),
            hash(&block["input"].to_string())
        ),
        "tool_result" => {
            let mark = if block["is_error"] == true {
                " error"
            } else {
                ""
            };
            let content = result_content(&block["content"], texts);
            format!("tool_result {}{mark} {content}", word("tool_use_id"))
        }
        "image" | "document" => format!("{kind} {}", hash(&block["source"].to_string())),
        _ => {
            let mut plain = block.clone();
            if let Some(fields) = plain.as_object_mut() {
                fields.remove("cache_control");
            }
            format!("{kind} {}", hash(&plain.to_string()))
        }
    })
}

fn is_own(text: &str, texts: &Texts) -> bool {
    texts.has(text) || texts.inside(text).is_some()
}

fn result_content(content: &Value, texts: &Texts) -> String {
    match content {
        // The client trims a result before it glues a reminder to it.
        Value::String(text) => shown(text.trim_end(), texts),
        Value::Array(items) => {
            let items = items.iter().filter_map(|item| block(item, texts));
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Null => "none".to_owned(),
        other => hash(&other.to_string()),
    }
}

/// The beginning of a text from the transcript; a hash of any other.
fn shown(text: &str, texts: &Texts) -> String {
    if texts.has(text) || KNOWN.contains(&text) {
        return cut(text);
    }
    // Reminders are stored apart and glued to the result before them.
    if let Some((own, reminder)) = text.split_once("\n\n<system-reminder>")
        && texts.has(own)
    {
        let reminder = format!("{REMINDER}{reminder}");
        let fresh = !is_own(&reminder, texts);
        let shown = if fresh {
            String::new()
        } else {
            format!("{GLUED}{}", shown(&reminder, texts))
        };
        return format!("{}{shown}", cut(own));
    }
    match texts.inside(text) {
        Some(own) => format!("~{} around {}", hash(text), cut(own)),
        None => format!("~{}", hash(text)),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… {}", &text[..at], hash(text)),
        None => text.to_owned(),
    }
}

/// What identifies the file of a case: a hash of it, whatever the length of filler in it.
pub fn input_hash(file: &str) -> String {
    hash(&squeezed(file))
}

/// The text with every run of filler made equally short.
///
/// Recordings hold filler in place of what the client says in its own words; the copies in
/// this repository hold less of it.
fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find(FILLER_START) {
        let run = rest[found..].bytes().zip(FILLER.bytes().cycle());
        let length = run.take_while(|(one, other)| one == other).count();
        out.push_str(&rest[..found]);
        out.push_str(FILLER_START);
        rest = &rest[found + length..];
    }
    out + rest
}

/// FNV-1a, which is enough to tell texts apart and the same on every machine.
pub fn hash(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{:08x}", hash >> 32 ^ hash & 0xffff_ffff)
}

/// Whether two reduced histories are the same; texts the client made up count as equal.
pub fn same(left: &[Value], right: &[Value]) -> bool {
    let plain = |side: &[Value]| side.iter().map(masked).collect::<Vec<_>>();
    plain(left) == plain(right)
}

fn masked(message: &Value) -> (String, Vec<String>) {
    let blocks = message["blocks"].as_array().into_iter().flatten();
    let blocks = blocks.filter_map(Value::as_str).map(mask);
    let role = message["role"].as_str().unwrap_or_default();
    (role.to_owned(), blocks.collect())
}

/// `text ~12345678` becomes `text ~`.
fn mask(block: &str) -> String {
    match block.split_once('~') {
        Some((head, tail)) => {
            let rest = tail.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            format!("{head}~{rest}")
        }
        None => block.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"type":"user","message":{"content":"said"}}
{"type":"attachment","attachment":{"type":"date"},"rendered":[{"content":"<system-reminder>\nstored\n</system-reminder>"}]}
{"type":"attachment","attachment":{"type":"note"},"rendered":[{"content":"bare words"}]}
{"type":"user","message":{"content":[{"type":"tool_result","content":"out"}]}}"#;

    fn plain(messages: Value) -> Vec<Value> {
        let texts = Texts::of(FILE);
        without_reminders(&history(&messages, &texts), &texts)
    }

    #[test]
    fn a_stored_reminder_is_left_out_wherever_it_stands() {
        let reminder = "<system-reminder>\nstored\n</system-reminder>";
        let result =
            |content: &str| json!({"type": "tool_result", "tool_use_id": "t", "content": content});
        let text = |text: &str| json!({"type": "text", "text": text});
        let with = json!([
            {"role": "user", "content": [text("bare words\n"), text("said")]},
            {"role": "system", "content": "stored"},
            {"role": "user", "content": [result(&format!("out\n\n{reminder}"))]},
        ]);
        let without = json!([
            {"role": "user", "content": "said"},
            {"role": "user", "content": [result("out")]},
        ]);
        assert_eq!(plain(with), plain(without));
    }

    #[test]
    fn what_a_client_says_anew_on_every_run_is_left_out() {
        let said = json!({"role": "user", "content": "said"});
        let tools = "<available-deferred-tools>\nBash\n</available-deferred-tools>";
        let with = json!([{"role": "user", "content": tools}, said]);
        assert_eq!(plain(with), plain(json!([said])));
    }

    #[test]
    fn only_the_side_of_the_client_is_stripped() {
        let texts = Texts::of(FILE);
        let with = json!([{"role": "user", "content": [{"type": "text", "text": "bare words"}]}]);
        assert!(!same(&plain(with.clone()), &history(&with, &texts)));
    }

    #[test]
    fn the_length_of_filler_does_not_matter() {
        let long = "a lorem ipsum dolor sit amet lorem ipsum dolor b";
        assert_eq!(input_hash(long), input_hash("a lorem ipsum dolor b"));
    }
}
