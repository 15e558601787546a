//! Every recording of the real client, read by us.
//!
//! For each file: no fault that is not really in it ([`FAULTS`], each looked
//! at), no type and no field we have no name for, splicing that changes nothing
//! changes no byte, and the same session however its bytes arrive.
//!
//! And the proof that `view::messages` is right: what the API received. With
//! `-p` (scenarios `s…`) every prompt is put to a fresh process, which has just
//! read the file, so a request that ends in a prompt behind an earlier reply
//! shows how that version reads its own transcript. The file has grown since;
//! the state it was read in is a number of its lines. So for each such request
//! there must be a number of lines of one session of the scenario from which
//! the view for that version gives either the whole request, or the request
//! without its last message, the new prompt. As a history with replies in it is
//! compared in full, this fixes the state to the lines around the prompt.
//!
//! Requests that end in tool results, and those of interactive sessions
//! (`i…`), came from a process that still had the conversation in memory, with
//! what it never wrote. Most of them agree too; how many may only grow.
//!
//! Not compared: role `system`, `<system-reminder>` texts (made anew on every
//! start, and stubbed in the recordings), how blocks are spread over
//! neighbouring user messages, a closing "No response requested." (which the
//! view puts behind an unanswered prompt), the input of `ExitPlanMode` (some
//! versions send it empty) and the new name of the tool `Task`.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use unspool_model::json::{self, JsonCursor};
use unspool_model::log::{LineSplitter, Log};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::check;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::corpus::{self, File};
use unspool_testkit::random::Random;

fn role(file: &File) -> TranscriptRole {
    match file.role {
        corpus::Role::Main => TranscriptRole::Main,
        corpus::Role::Agent => TranscriptRole::Agent,
    }
}

fn read(file: &File) -> (Log, Session) {
    let log = Log::new(file.bytes());
    let session = Session::from_log(&log, role(file));
    (log, session)
}

/// What is really wrong in the recordings: scenario, kind of fault, why it is there.
const FAULTS: &[(&str, &str, &str)] = &[
    (
        "2.0.42/s17_sigkill",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.0.42/s17c_sigint",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.0.76/s17_sigkill",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.0.76/s17b_sigkill_stream",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.0.76/s17c_sigint",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.1.29/s17_sigkill",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.1.29/s17b_sigkill_stream",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.1.29/s17c_sigint",
        "call_without_result",
        "killed or stopped while the call ran",
    ),
    (
        "2.0.76/i07_agent_hooks",
        "missing_parent",
        "the line of a hook was not written",
    ),
    (
        "2.1.29/i01_reject",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i02_queue",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i03_interrupt",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i04_rewind",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i05_plan",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i06_commands",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i07_agent_hooks",
        "missing_parent",
        "the prompt suggester's file starts in mid-conversation, and lines of hooks were not written",
    ),
    (
        "2.1.29/i04_rewind",
        "call_without_result",
        "the line with the result went to the prompt suggester's file alone",
    ),
    (
        "2.1.29/i04_rewind",
        "result_without_call",
        "the line with the result went to the prompt suggester's file alone",
    ),
    (
        "2.1.29/i07_agent_hooks",
        "call_without_result",
        "the line with the result went to the prompt suggester's file alone",
    ),
    (
        "2.1.29/i07_agent_hooks",
        "result_without_call",
        "the line with the result went to the prompt suggester's file alone",
    ),
    (
        "2.1.29/i09_plan_full",
        "missing_parent",
        "the end of the old conversation was written to the new file",
    ),
    (
        "2.1.29/i09_plan_full",
        "result_without_call",
        "the end of the old conversation was written to the new file",
    ),
];

#[test]
fn every_fault_found_in_the_recordings_is_really_there() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in corpus::files() {
        let (_, session) = read(&file);
        for fault in check::faults(&session) {
            let key = format!("{}/{} {}", file.version, file.scenario, fault.kind.name());
            let detail = format!("{} line {}: {}", file.name(), fault.line, fault.detail);
            found.entry(key).or_default().push(detail);
        }
    }
    let expected: Vec<String> = FAULTS
        .iter()
        .map(|(scenario, kind, _)| format!("{scenario} {kind}"))
        .collect();
    let surprises: Vec<_> = found
        .iter()
        .filter(|(key, _)| !expected.contains(key))
        .collect();
    assert!(surprises.is_empty(), "{surprises:#?}");
    let gone: Vec<_> = expected
        .iter()
        .filter(|key| !found.contains_key(*key))
        .collect();
    assert!(gone.is_empty(), "no longer found: {gone:#?}");
}

#[test]
fn every_type_and_field_in_the_recordings_is_known() {
    for file in corpus::files() {
        let (_, session) = read(&file);
        assert!(
            session.unknown.is_empty(),
            "{}: {:?}",
            file.name(),
            session.unknown
        );
    }
}

#[test]
fn splicing_nothing_changes_no_byte_of_any_recording() {
    for file in corpus::files() {
        let log = Log::new(file.bytes());
        let same = log.edited(|line| Some(line.bytes.into()));
        assert!(same.as_bytes() == log.as_bytes(), "{}", file.name());
    }
}

#[test]
fn setting_a_field_to_its_own_value_changes_no_byte_of_any_line() {
    let mut fields = 0;
    for file in corpus::files() {
        let log = Log::new(file.bytes());
        for line in log.lines() {
            for (key, raw) in top_level(line.bytes) {
                let same = json::with_field(line.bytes, &key, &raw).unwrap();
                assert!(
                    same == line.bytes,
                    "{} line {}: {key}",
                    file.name(),
                    line.number
                );
                let other = json::with_field(line.bytes, &key, "null").unwrap();
                let back = json::with_field(&other, &key, &raw).unwrap();
                assert!(
                    back == line.bytes,
                    "{} line {}: {key}",
                    file.name(),
                    line.number
                );
                fields += 1;
            }
        }
    }
    assert!(fields > 40_000, "{fields} fields");
}

fn top_level(line: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut cursor = JsonCursor::new(line);
    let scanned = cursor.object(|cursor, key| {
        let raw = cursor.skip()?.of(line);
        fields.push((key.to_owned(), String::from_utf8(raw.to_vec()).unwrap()));
        Ok(())
    });
    assert!(scanned.is_ok(), "{}", String::from_utf8_lossy(line));
    fields
}

#[test]
fn a_recording_is_the_same_session_in_a_thousand_cuttings_of_its_bytes() {
    let files: Vec<File> = corpus::files()
        .into_iter()
        .filter(|f| !f.bytes().is_empty())
        .collect();
    let mut random = Random::new(1);
    for cutting in 0..1_000 {
        let file = &files[cutting % files.len()];
        let bytes = file.bytes();
        let whole = digest(&Session::from_log(&Log::new(bytes.clone()), role(file)));
        let longest = *random.pick(&[3, 40, 700, 9_000, 100_000]);
        let mut session = Session::new(role(file));
        let mut splitter = LineSplitter::default();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let size = (random.below(longest) as usize + 1).min(rest.len());
            let (piece, behind) = rest.split_at(size);
            splitter.feed(piece, |line| {
                session.push(&line);
            });
            rest = behind;
        }
        if let Some(tail) = splitter.tail() {
            session.push_tail(&tail);
        }
        assert_eq!(
            digest(&session),
            whole,
            "{}, cutting {cutting}",
            file.name()
        );
    }
}

/// A number for everything that a reader asks of a session.
fn digest(session: &Session) -> u64 {
    let mut hasher = DefaultHasher::new();
    for record in &session.records {
        (record.line, record.offset, record.len(), record.thread).hash(&mut hasher);
        record
            .uuid
            .as_ref()
            .map(ToString::to_string)
            .hash(&mut hasher);
        session.label_of(record).hash(&mut hasher);
    }
    for turn in &session.turns {
        (turn.record, turn.thread).hash(&mut hasher);
    }
    for message in &session.messages {
        let usage = session.usage_of(message);
        (session.message_id(message), &message.records, usage.output).hash(&mut hasher);
        (usage.input, usage.cache_read).hash(&mut hasher);
        (usage.cache_write_5m, usage.cache_write_1h).hash(&mut hasher);
    }
    for call in &session.calls {
        let result = call.result.as_ref();
        (
            session.call_id(call),
            call.record,
            result.map(|r| (r.record, r.is_error)),
        )
            .hash(&mut hasher);
    }
    for fault in check::faults(session) {
        (fault.line, fault.kind, fault.detail).hash(&mut hasher);
    }
    hasher.finish()
}

/// A message as it is compared: who, and what.
type Said = (String, Vec<String>);

/// Requests that no state of a transcript gives: scenario, number of the request, why.
const NOT_FROM_A_FILE: &[(&str, usize, &str)] = &[];

#[test]
fn the_view_of_messages_is_what_the_api_received() {
    let mut scenarios: BTreeMap<(String, String), Vec<File>> = BTreeMap::new();
    for file in corpus::files() {
        if file.role == corpus::Role::Main {
            let key = (file.version.clone(), file.scenario.clone());
            scenarios.entry(key).or_default().push(file);
        }
    }
    let (mut prompts, mut running) = ((0, 0), (0, 0));
    let mut misses = Vec::new();
    for ((version, scenario), files) in &scenarios {
        let wanted: Vec<(usize, bool, Vec<Said>)> = corpus::requests(version, scenario)
            .iter()
            .enumerate()
            .filter_map(|(at, request)| {
                let said = conversation(&request["messages"]);
                let answered = said.iter().any(|(role, _)| role == "assistant");
                answered.then(|| (at, ends_in_prompt(&said), said))
            })
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let states: Vec<Vec<Said>> = files
            .iter()
            .flat_map(|file| states(file, version))
            .collect();
        for (at, is_prompt, said) in wanted {
            let (history, _) = said.split_at(said.len() - 1);
            let resumed = is_prompt && scenario.starts_with('s');
            let found = states.contains(&said) || is_prompt && states.iter().any(|s| s == history);
            let count = if resumed { &mut prompts } else { &mut running };
            count.1 += 1;
            count.0 += usize::from(found);
            if !found && resumed {
                misses.push((format!("{version}/{scenario}"), at, nearest(&states, &said)));
            }
        }
    }
    println!("resumed {prompts:?}, running {running:?}");
    let listed = |miss: &(String, usize, String)| {
        NOT_FROM_A_FILE
            .iter()
            .any(|(scenario, at, _)| *scenario == miss.0 && *at == miss.1)
    };
    let surprises: Vec<_> = misses.iter().filter(|miss| !listed(miss)).collect();
    for miss in &surprises {
        println!("{} request {}:\n{}", miss.0, miss.1, miss.2);
    }
    assert!(surprises.is_empty(), "{} requests", surprises.len());
    assert_eq!(misses.len(), NOT_FROM_A_FILE.len());
    assert!(
        prompts.0 >= 100 && running.0 >= 200,
        "{prompts:?} {running:?}"
    );
}

/// The conversations that the lines of a file gave, one after the other, as it grew.
fn states(file: &File, version: &str) -> Vec<Vec<Said>> {
    let profile = ClientProfile::for_version(version).unwrap();
    let log = Log::new(file.bytes());
    let mut session = Session::new(TranscriptRole::Main);
    let mut states: Vec<Vec<Said>> = Vec::new();
    for line in log.lines() {
        if line.ended {
            session.push(&line);
        } else {
            session.push_tail(&line);
        }
        let ResumeResult::Messages(all) = messages::messages(&session, &log, profile) else {
            continue;
        };
        let all: Value = serde_json::from_str(&messages::to_json(&all)).unwrap();
        let mut said = conversation(&all);
        let unanswered = said
            .last()
            .is_some_and(|(_, blocks)| *blocks == ["text No response requested."]);
        if unanswered {
            let mut without = said.clone();
            without.pop();
            states.push(without);
        }
        if states.last() != Some(&said) {
            states.push(std::mem::take(&mut said));
        }
    }
    states
}

fn nearest(states: &[Vec<Said>], said: &[Said]) -> String {
    let common = |state: &Vec<Said>| state.iter().zip(said).take_while(|(a, b)| a == b).count();
    let best = states
        .iter()
        .max_by_key(|state| (common(state), usize::MAX - state.len()));
    let same = best.map_or(0, common);
    let show = |rest: &[Said]| {
        rest.iter()
            .map(|s| format!("    {s:.400?}\n"))
            .collect::<String>()
    };
    let ours = best.map(|state| show(&state[same..])).unwrap_or_default();
    format!(
        "  {same} messages alike, then sent:\n{}  and ours:\n{ours}",
        show(&said[same..])
    )
}

fn ends_in_prompt(said: &[Said]) -> bool {
    said.last().is_some_and(|(role, blocks)| {
        role == "user" && !blocks.iter().any(|block| block.starts_with("result "))
    })
}

fn conversation(messages: &Value) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    for message in messages.as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        if role == "system" {
            continue;
        }
        let mut blocks: Vec<String> = match &message["content"] {
            Value::String(text) => words(text).into_iter().collect(),
            Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
            other => panic!("content {other}"),
        };
        match said.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if role == "user" && last == role => content.append(&mut blocks),
            _ => said.push((role.to_owned(), blocks)),
        }
    }
    said
}

fn words(text: &str) -> Option<String> {
    let text = without_reminders(text);
    (!text.is_empty()).then(|| format!("text {text}"))
}

fn block(block: &Value) -> Option<String> {
    match block["type"].as_str().unwrap() {
        "text" => words(block["text"].as_str().unwrap()),
        "tool_use" => Some(call(block)),
        "tool_result" => {
            let content = match &block["content"] {
                Value::String(text) => without_reminders(text),
                Value::Array(items) => items
                    .iter()
                    .filter_map(self::block)
                    .collect::<Vec<_>>()
                    .join("|"),
                _ => String::new(),
            };
            let content = content.strip_prefix("text ").unwrap_or(&content).to_owned();
            let failed = block["is_error"] == true;
            Some(format!(
                "result {} {failed} {content}",
                block["tool_use_id"]
            ))
        }
        "thinking" => Some(format!(
            "thinking {} {}",
            block["thinking"], block["signature"]
        )),
        other => Some(other.to_owned()),
    }
}

fn call(block: &Value) -> String {
    let (name, input) = (&block["name"], &block["input"]);
    match name.as_str().unwrap_or_default() {
        "ExitPlanMode" => format!("call {} {name}", block["id"]),
        "Task" => format!("call {} \"Agent\" {input}", block["id"]),
        _ => format!("call {} {name} {input}", block["id"]),
    }
}

fn without_reminders(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("<system-reminder>") {
        out.push_str(before);
        rest = behind
            .split_once("</system-reminder>")
            .map_or("", |(_, behind)| behind);
    }
    // A stub ends at the first end mark, of a reminder that quotes others.
    let (_, rest) = rest.rsplit_once("</system-reminder>").unwrap_or(("", rest));
    out.push_str(rest);
    out.trim().to_owned()
}
