//! Any operations in any order: the result resumes, and nothing else was touched.
//!
//! `UNSPOOL_CASES` sets how many cases each test draws.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use unspool_model::edit::cut_turns::{self, CutOptions, CutPoint};
use unspool_model::edit::thinking::{self, ThinkingShare};
use unspool_model::edit::tools::{self, KeptToolTurns, StripToolCalls, ToolCallAction};
use unspool_model::edit::{EditPlan, PlanSettings, slim};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::random::Random;
use unspool_testkit::tree::{self, Options};
use unspool_testkit::{graph, validator};

use crate::edit::{edited, mains};

/// One operation with its parameters.
#[derive(Clone, Debug)]
enum Operation {
    Preset(KeptToolTurns),
    Keep(KeptToolTurns),
    Strip(StripToolCalls),
    ResultsOver(usize),
    Thinking(ThinkingShare),
    Slim,
    Cut(CutOptions),
}

/// What to do with one session.
struct Case {
    operations: Vec<Operation>,
    settings: PlanSettings,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.operations, self.settings)
    }
}

impl Operation {
    fn any(session: &Session, random: &mut Random) -> Operation {
        let percent = *random.pick(&[0, 10, 34, 50, 75, 99, 100, 255]);
        let keep = KeptToolTurns {
            turns: random.below(6) as usize,
            truncate: percent,
        };
        match random.below(8) {
            0 => Operation::Preset(keep),
            1 => Operation::Keep(keep),
            2 => Operation::Strip(StripToolCalls {
                percent,
                mode: *random.pick(&[ToolCallAction::Remove, ToolCallAction::Truncate]),
            }),
            3 => Operation::ResultsOver(random.range(60, 2_000) as usize),
            4 => Operation::Thinking(
                *random.pick(&[ThinkingShare::All, ThinkingShare::Oldest(percent)]),
            ),
            5 => Operation::Slim,
            _ => Operation::Cut(any_cut(session, random)),
        }
    }

    /// Whether doing it again promises to change nothing. Turns that went shift the numbers.
    fn is_settled(&self) -> bool {
        match self {
            Operation::Cut(cut) => {
                let numbered = matches!(cut.until, Some(CutPoint::Turn(_)));
                cut.turns.is_empty() && cut.without.is_empty() && !numbered
            }
            _ => true,
        }
    }

    fn wish(&self, log: &Log, session: &Session, plan: &mut EditPlan) {
        match self {
            Operation::Preset(keep) => tools::preset(session, log, plan, *keep),
            Operation::Keep(keep) => tools::keep(session, log, plan, *keep),
            Operation::Strip(strip) => tools::strip(session, log, plan, *strip),
            Operation::ResultsOver(bytes) => tools::results_over(session, log, plan, *bytes),
            Operation::Thinking(share) => thinking::strip(session, plan, *share),
            Operation::Slim => slim::slim(session, plan),
            // What is refused changes nothing.
            Operation::Cut(cut) => drop(cut_turns::cut(session, plan, cut)),
        }
    }
}

/// Some cut of a session.
pub fn any_cut(session: &Session, random: &mut Random) -> CutOptions {
    let count = u64::from(session.threads[0].turns).max(1);
    let number = |random: &mut Random| random.range(1, count + 1) as i64;
    let ids: Vec<String> = session
        .records
        .iter()
        .filter(|record| record.thread == 0)
        .filter_map(|record| record.uuid.as_ref().map(ToString::to_string))
        .collect();
    let id = |random: &mut Random| match ids.is_empty() {
        true => "none".to_owned(),
        false => random.pick(&ids).clone(),
    };
    let mut cut = CutOptions::default();
    match random.below(6) {
        0 => {
            let (from, to) = (number(random), number(random));
            let text = format!("{}..{}", from.min(to), from.max(to));
            cut.turns = vec![text.parse().unwrap()];
        }
        1 => cut.until = Some(CutPoint::Turn(number(random))),
        2 => cut.until = Some(CutPoint::Line(id(random))),
        3 => cut.branch = Some(id(random)),
        4 => cut.without = vec![number(random)],
        _ => cut.without = (0..random.range(1, 4)).map(|_| number(random)).collect(),
    }
    cut
}

impl Case {
    fn any(session: &Session, random: &mut Random) -> Case {
        let many = random.range(1, 4);
        Case {
            operations: (0..many).map(|_| Operation::any(session, random)).collect(),
            settings: PlanSettings {
                keep_tree: random.chance(25),
            },
        }
    }

    /// The edited session; `None` if nothing would be left of it.
    fn apply(&self, log: &Log, name: &str) -> Option<Log> {
        let (after, written, problems) = edited(log, None, self.settings, |session, plan| {
            for operation in &self.operations {
                operation.wish(log, session, plan);
            }
        });
        if problems
            .iter()
            .any(|problem| problem.what.starts_with("the conversation would be empty"))
        {
            return None;
        }
        assert_eq!(problems, [], "{name}: {self:?}");
        let lines = written.kept + written.changed + written.dropped;
        assert_eq!(lines as usize, log.lines().count(), "{name}: {self:?}");
        assert_eq!(written.after as usize, after.as_bytes().len(), "{name}");
        Some(after)
    }

    fn check(&self, log: &Log, name: &str) -> Option<Log> {
        let after = self.apply(log, name)?;
        only_spliced(log, &after, &format!("{name}: {self:?}"));
        let session = Session::from_log(&after, TranscriptRole::Main);
        if let ResumeResult::Messages(all) =
            messages::messages(&session, &after, ClientProfile::Strict)
        {
            let sent = messages::to_json(&all);
            let refusals = validator::refusals_with_prompt(&sent, "x");
            assert_eq!(refusals, Vec::<String>::new(), "{name}: {self:?}");
        }
        if self.operations.len() == 1 && self.operations[0].is_settled() {
            let again = self.apply(&after, name)?;
            let [once, twice] = [&after, &again].map(|log| String::from_utf8_lossy(log.as_bytes()));
            assert_eq!(twice, once, "{name}: {self:?} twice");
        }
        Some(after)
    }
}

/// Fields that an edit may splice; all others stay as they are.
const SPLICED: &[&str] = &[
    "parentUuid",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "interruptedMessageUuid",
    "leafUuid",
    "explicit",
    "messageId",
    "snapshotMessageId",
    "timestamp",
    "toolUseResult",
    "compactMetadata",
    "snapshot",
];

/// Lines are the same bytes, or differ in spliced fields alone.
fn only_spliced(before: &Log, after: &Log, name: &str) {
    let mut old: HashMap<String, Vec<Value>> = HashMap::new();
    let mut bytes: HashMap<Vec<u8>, usize> = HashMap::new();
    for line in before.lines() {
        *bytes.entry(line.bytes.to_vec()).or_default() += 1;
        if let Ok(value) = serde_json::from_slice::<Value>(line.bytes) {
            old.entry(key(&value)).or_default().push(value);
        }
    }
    for line in after.lines() {
        assert!(line.ended, "{name}");
        if bytes.contains_key(line.bytes) {
            continue;
        }
        let new: Value = serde_json::from_slice(line.bytes).unwrap();
        let candidates = old.get(&key(&new)).map(Vec::as_slice).unwrap_or_default();
        // The one line that may be new says where to go on.
        let is_note = new["type"] == "last-prompt" && new["lastPrompt"].is_null();
        let same = candidates
            .iter()
            .any(|old| rest(old) == rest(&new) && is_part(&new, old));
        assert!(same || is_note, "{name}: {new:#}\n{candidates:#?}");
    }
}

fn key(line: &Value) -> String {
    let id = line["uuid"].as_str().unwrap_or_default();
    format!("{} {id}", line["type"])
}

/// A line without what may be spliced.
fn rest(line: &Value) -> Value {
    let mut line = line.clone();
    if let Some(fields) = line.as_object_mut() {
        fields.retain(|key, _| !SPLICED.contains(&key.as_str()));
    }
    if let Some(message) = line.get_mut("message").and_then(Value::as_object_mut) {
        message.remove("content");
        message.remove("stop_reason");
    }
    line
}

/// Whether the blocks of a line are blocks of the old one, but for texts that were cut.
fn is_part(new: &Value, old: &Value) -> bool {
    let blocks = |line: &Value| match &line["message"]["content"] {
        Value::Array(blocks) => blocks.iter().map(without_texts).collect(),
        _ => Vec::new(),
    };
    let (new, old): (Vec<Value>, Vec<Value>) = (blocks(new), blocks(old));
    let mut left = old.iter();
    new.iter().all(|block| left.any(|old| old == block))
}

fn without_texts(block: &Value) -> Value {
    let mut block = block.clone();
    let kind = block["type"].as_str().unwrap_or_default().to_owned();
    if let Some(fields) = block.as_object_mut() {
        match kind.as_str() {
            "tool_use" => drop(fields.remove("input")),
            "tool_result" => drop(fields.remove("content")),
            _ => {}
        }
    }
    block
}

fn cases(usually: u64) -> u64 {
    let asked = std::env::var("UNSPOOL_CASES").ok();
    asked.map_or(usually, |text| {
        text.parse().expect("UNSPOOL_CASES is a number")
    })
}

/// Several cases, each on what the one before made of the session.
fn check_all(log: &Log, random: &mut Random, name: &str) {
    let mut log = log.clone();
    for step in 0..random.range(1, 3) {
        let session = Session::from_log(&log, TranscriptRole::Main);
        let case = Case::any(&session, random);
        let Some(after) = case.check(&log, &format!("{name}, step {step}")) else {
            return;
        };
        log = after;
    }
}

#[test]
fn any_operations_on_a_generated_session_leave_one_that_resumes() {
    for seed in 0..cases(300) {
        let log = Log::new(graph::healthy(seed).join("\n") + "\n");
        let mut random = Random::new(seed ^ 0x0b5);
        check_all(&log, &mut random, &format!("seed {seed}"));
    }
}

#[test]
fn any_operations_on_a_recording_leave_one_that_resumes() {
    let mains = mains();
    for nth in 0..cases(150) {
        let mut random = Random::new(nth ^ 0x4ec);
        let (name, log) = random.pick(&mains).clone();
        check_all(&log, &mut random, &format!("case {nth}: {name}"));
    }
}

#[test]
fn any_operations_on_months_of_work_leave_sessions_that_resume() {
    let dir = tempfile::tempdir().unwrap();
    let truth = tree::generate(dir.path(), &Options::small()).unwrap();
    for (nth, truth) in truth.sessions.iter().enumerate() {
        let log = Log::new(std::fs::read(dir.path().join(&truth.path)).unwrap());
        if log.as_bytes().len() > 500_000 {
            continue;
        }
        let mut random = Random::new(nth as u64);
        check_all(&log, &mut random, &truth.path);
    }
}
