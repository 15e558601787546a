//! The conversation as items: everything stands once, with what belongs to it.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use unspool_model::log::{Log, TranscriptSource};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::tool_outcome::{ToolCallOutcome, UserQuestion};
use unspool_model::view::transcript::{
    self, AgentTranscript, AgentTranscripts, ItemBody, TranscriptCall, TranscriptItem,
    TranscriptReader, TurnExtent,
};
use unspool_model::view::turn_selection::TurnSelection;

use crate::make::{Read, call, read, reply, result, system, text, user};

fn items(read: &Read) -> Vec<TranscriptItem> {
    transcript::transcript(
        &read.session,
        &read.log,
        &AgentTranscripts::new(),
        &TurnSelection::default(),
    )
}

/// One word per item.
fn outline(read: &Read) -> String {
    let words = items(read).iter().map(word).collect::<Vec<_>>();
    words.join(" ")
}

fn word(item: &TranscriptItem) -> String {
    match &item.body {
        ItemBody::Turn(head) => format!("#{}", head.n),
        ItemBody::Prompt(prompt) => format!("prompt={}", prompt.text),
        ItemBody::Reply { text, .. } => format!("reply={text}"),
        ItemBody::Thinking { text, .. } => format!("thinking={text}"),
        ItemBody::Call(call) => format!("{}:{}", call.name, call.status.name()),
        ItemBody::Orphan { call, .. } => format!("orphan={call}"),
        ItemBody::Queued { text, .. } => format!("queued={text}"),
        ItemBody::Interrupt { .. } => "interrupt".to_owned(),
        ItemBody::Compaction { .. } => "compaction".to_owned(),
        ItemBody::Summary { .. } => "summary".to_owned(),
        ItemBody::ApiError { .. } => "api-error".to_owned(),
        ItemBody::Hook(_) => "hook".to_owned(),
        ItemBody::Command { command, .. } => {
            format!("command={}", command.as_deref().unwrap_or("-"))
        }
        ItemBody::Notice { .. } => "notice".to_owned(),
        ItemBody::Notes(_) => "notes".to_owned(),
        ItemBody::Unknown { label } => format!("unknown={label}"),
        ItemBody::Fault { .. } => "fault".to_owned(),
    }
}

fn calls(read: &Read) -> Vec<TranscriptCall> {
    let bodies = items(read).into_iter().map(|item| item.body);
    bodies
        .filter_map(|body| match body {
            ItemBody::Call(call) => Some(*call),
            _ => None,
        })
        .collect()
}

fn says(uuid: &str, parent: &str, clock: &str, words: &str) -> String {
    reply(uuid, parent, clock, uuid, &format!("[{}]", text(words)))
}

#[test]
fn every_block_of_a_line_is_an_item() {
    let blocks = format!(
        r#"[{{"type":"thinking","thinking":"hm","signature":"s"}},{},{}]"#,
        text("look"),
        call("t1", "Read", "{}")
    );
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply("b", "a", "10:00:01", "m", &blocks),
        user("c", "b", "10:00:02", &result("t1", r#""x""#)),
        says("d", "c", "10:00:03", "done"),
    ]);
    assert_eq!(
        outline(&read),
        "#1 prompt=go thinking=hm reply=look Read:ok reply=done"
    );
}

#[test]
fn a_result_knows_its_tool_however_late_it_comes() {
    let mut lines = vec![
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Bash", r#"{"command":"ls"}"#)),
        ),
    ];
    assert_eq!(outline(&read(&lines)), "#1 prompt=go Bash:running");
    lines.push(user("c", "b", "12:00:00", &result("t1", r#""files""#)));
    let later = read(&lines);
    assert_eq!(outline(&later), "#1 prompt=go Bash:ok");
    let call = &calls(&later)[0];
    assert_eq!(
        (call.subject.as_deref(), call.text.as_str()),
        (Some("ls"), "files")
    );
}

#[test]
fn a_result_without_its_call_is_shown_as_an_orphan() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        user("b", "a", "10:00:01", &result("t9", r#""left over""#)),
        says("c", "b", "10:00:02", "done"),
    ]);
    assert_eq!(outline(&read), "#1 prompt=go orphan=t9 reply=done");
}

#[test]
fn a_compaction_hides_nothing_that_went_before() {
    let summary =
        user("d", "c", "10:00:03", r#""So far""#).replacen('{', "{\"isCompactSummary\":true,", 1);
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        says("b", "a", "10:00:01", "done"),
        system(
            "c",
            "",
            "10:00:02",
            "compact_boundary",
            r#","logicalParentUuid":"b","compactMetadata":{"trigger":"auto","preTokens":9}"#,
        ),
        summary,
        user("e", "d", "10:00:04", &result("t0", r#""of a call before""#)),
        says("f", "e", "10:00:05", "on"),
    ]);
    let outline = outline(&read);
    for part in [
        "prompt=go",
        "reply=done",
        "compaction",
        "summary",
        "orphan=t0",
        "reply=on",
    ] {
        assert!(outline.contains(part), "{part} in {outline}");
    }
}

#[test]
fn a_result_counts_before_the_progress_of_its_call() {
    let progress = r#"{"type":"progress","uuid":"x","parentUuid":"b","timestamp":"2026-01-03T10:00:02.000Z","toolUseID":"t1","parentToolUseID":"t1","data":{"type":"bash_progress","output":"half way","fullOutput":"half way"}}"#;
    let mut lines = vec![
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Bash", r#"{"command":"make"}"#)),
        ),
        progress.to_owned(),
    ];
    assert_eq!(calls(&read(&lines))[0].text, "half way");
    lines.push(user("c", "x", "10:00:05", &result("t1", r#""all done""#)));
    assert_eq!(calls(&read(&lines))[0].text, "all done");
}

/// Counts how often it is asked.
struct Counted<'a> {
    log: &'a Log,
    reads: AtomicUsize,
}

impl TranscriptSource for Counted<'_> {
    fn bytes(&self, offset: u64, len: usize) -> Option<Cow<'_, [u8]>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.log.bytes(offset, len)
    }
}

#[test]
fn many_running_calls_do_not_read_each_line_of_progress_again_for_each() {
    let count = 200;
    let calls: Vec<_> = (0..count)
        .map(|n| call(&format!("t{n}"), "Bash", r#"{"command":"make"}"#))
        .collect();
    let mut lines = vec![
        user("a", "", "10:00:00", r#""go""#),
        reply("b", "a", "10:00:01", "m", &format!("[{}]", calls.join(","))),
    ];
    for (round, n) in (0..2).flat_map(|round| (0..count).map(move |n| (round, n))) {
        lines.push(format!(
            r#"{{"type":"progress","uuid":"x{round}-{n}","parentUuid":"b","timestamp":"2026-01-03T10:00:02.000Z","parentToolUseID":"t{n}","data":{{"type":"bash_progress","output":"{round} of {n}"}}}}"#
        ));
    }
    let read = read(&lines);
    let source = Counted {
        log: &read.log,
        reads: AtomicUsize::new(0),
    };
    let items = transcript::transcript(
        &read.session,
        &source,
        &AgentTranscripts::new(),
        &TurnSelection::default(),
    );
    let texts: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::Call(call) => Some(call.text.clone()),
            _ => None,
        })
        .collect();
    let last: Vec<_> = (0..count).map(|n| format!("1 of {n}")).collect();
    assert_eq!(texts, last);
    let reads = source.reads.into_inner();
    assert!(
        reads < 5 * lines.len(),
        "{reads} reads of {} lines",
        lines.len()
    );
}

#[test]
fn a_file_of_bookkeeping_alone_has_nothing_to_say() {
    let read = read(&[
        r#"{"type":"file-history-snapshot","messageId":"a","snapshot":{}}"#,
        r#"{"type":"summary","summary":"S","leafUuid":"zz"}"#,
        r#"{"type":"queue-operation","operation":"dequeue","sessionId":"s"}"#,
    ]);
    assert!(
        items(&read)
            .iter()
            .all(|item| matches!(item.body, ItemBody::Notes(_)))
    );
    assert!(!read.session.is_conversation());
}

#[test]
fn commands_are_shown_as_typed_and_summaries_are_no_prompts() {
    let read = read(&[
        user(
            "a",
            "",
            "10:00:00",
            r#""<command-name>/model</command-name>\n<command-args>opus</command-args>""#,
        ),
        user(
            "b",
            "a",
            "10:00:01",
            r#""<local-command-stdout>Set model</local-command-stdout>""#,
        ),
        user(
            "c",
            "b",
            "10:00:02",
            r#""This session is being continued from a previous conversation that""#,
        ),
    ]);
    let outline = outline(&read);
    assert!(
        outline.contains("/model opus") && outline.contains("summary"),
        "{outline}"
    );
    assert!(!outline.contains('<'), "{outline}");
}

/// The questions of a call and the answers beside its result.
fn questions(input: &str, answers: Option<&str>) -> Vec<UserQuestion> {
    let mut lines = vec![
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "AskUserQuestion", input)),
        ),
    ];
    if let Some(answers) = answers {
        let line = user("c", "b", "10:00:02", &result("t1", r#""answered""#));
        lines.push(line.replacen(
            '{',
            &format!("{{\"toolUseResult\":{{\"answers\":{answers}}},"),
            1,
        ));
    }
    match &calls(&read(&lines))[0].outcome {
        ToolCallOutcome::Asked(questions) => questions.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_question_is_pending_answered_or_answered_in_part() {
    let one = r#"{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}"#;
    let pending = questions(one, None);
    assert_eq!(
        (pending[0].options.len(), pending[0].answer.as_deref()),
        (2, None)
    );
    let answered = questions(one, Some(r#"{"Which?":"B"}"#));
    assert_eq!(answered[0].answer.as_deref(), Some("B"));
    let two = r#"{"questions":[{"question":"Which?"},{"question":"When?"}]}"#;
    let part = questions(two, Some(r#"{"When?":"now"}"#));
    let answers: Vec<_> = part
        .iter()
        .map(|question| question.answer.as_deref())
        .collect();
    assert_eq!(answers, [None, Some("now")]);
    let several = questions(one, Some(r#"{"Which?":["A","B"]}"#));
    assert_eq!(several[0].answer.as_deref(), Some("A, B"));
    assert_eq!(questions(r#"{"questions":[]}"#, None), []);
    assert_eq!(questions("{}", None), []);
}

#[test]
fn a_sub_agents_conversation_opens_under_its_call() {
    let line = user(
        "c",
        "b",
        "10:00:09",
        &result("t1", r#"[{"type":"text","text":"found"}]"#),
    )
    .replacen(
        '{',
        r#"{"toolUseResult":{"status":"completed","agentId":"ab97f57"},"#,
        1,
    );
    let parent = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Task", r#"{"description":"Find"}"#)),
        ),
        line,
    ]);
    let side = |line: String| {
        line.replace(
            "\"isSidechain\":false",
            "\"isSidechain\":true,\"agentId\":\"ab97f57\"",
        )
    };
    let log = Log::new(format!(
        "{}\n{}\n",
        side(user("s", "", "10:00:02", r#""find it""#)),
        side(says("s2", "s", "10:00:03", "found"))
    ));
    let session = Session::from_log(&log, TranscriptRole::Agent);
    let file = AgentTranscript::new(&session, &log);
    let agents = AgentTranscripts::from([("ab97f57".to_owned(), file)]);
    let pick = TurnSelection {
        agents: true,
        ..TurnSelection::default()
    };
    let items = transcript::transcript(&parent.session, &parent.log, &agents, &pick);
    let inner = items.iter().find_map(|item| match &item.body {
        ItemBody::Call(call) => call.agent.as_ref(),
        _ => None,
    });
    let inner: Vec<_> = inner.unwrap().items.iter().map(word).collect();
    assert!(inner.contains(&"reply=found".to_owned()), "{inner:?}");
}

/// Every item of the recordings, by itself and in ranges, is the one that the whole walk makes.
#[test]
fn any_range_of_items_is_that_of_the_whole_conversation() {
    use unspool_model::view::transcript::outline::{ItemClass, OutlineBase, TranscriptOutline};
    let mut ranges = 0;
    for file in unspool_testkit::corpus::files() {
        let log = Log::new(file.bytes());
        let session = Session::from_log(&log, TranscriptRole::Main);
        let base = OutlineBase::of(&session);
        let outline = TranscriptOutline::of(&session, &log, &base, 0);
        let whole = transcript::transcript(
            &session,
            &log,
            &AgentTranscripts::new(),
            &TurnSelection::default(),
        );
        let shape: Vec<_> = whole
            .iter()
            .map(|item| (item.line, ItemClass::of(&item.body)))
            .collect();
        let entries = outline.entries().iter();
        let entries: Vec<_> = entries.map(|entry| (entry.line, entry.class)).collect();
        assert_eq!(entries, shape, "{}", file.name());
        for part in 0..outline.parts() {
            let all = outline.range(part);
            for from in all.clone() {
                for to in [from + 1, from + 3, all.end] {
                    let to = to.min(all.end);
                    let items = outline.items(&session, &log, &AgentTranscripts::new(), from..to);
                    let told = format!("{items:?}");
                    assert_eq!(told, format!("{:?}", &whole[from..to]), "{}", file.name());
                    ranges += 1;
                }
            }
        }
    }
    assert!(ranges > 1000, "{ranges}");
}

#[test]
fn a_reading_in_pieces_says_what_the_whole_says() {
    let mut lines = vec![user("a", "", "10:00:00", r#""go""#)];
    for n in 0..20 {
        let (id, up) = (
            format!("b{n}"),
            if n == 0 {
                "a".to_owned()
            } else {
                format!("r{}", n - 1)
            },
        );
        let made = call(&format!("t{n}"), "Bash", r#"{"command":"x"}"#);
        lines.push(reply(
            &id,
            &up,
            "10:00:01",
            &format!("m{n}"),
            &format!("[{made}]"),
        ));
        lines.push("{torn".to_owned());
        lines.push(user(
            &format!("r{n}"),
            &id,
            "10:00:02",
            &result(&format!("t{n}"), r#""ok""#),
        ));
    }
    lines.push(user("z", "r19", "10:00:03", r#""again""#));
    let read = read(&lines);
    let agents = AgentTranscripts::new();
    let reading = TranscriptReader::new(&read.session, &read.log, &agents);
    let stretches: Vec<TurnExtent> = reading.turn_extents().collect();
    assert_eq!(
        stretches.iter().map(|one| one.turn).collect::<Vec<_>>(),
        [1, 2]
    );
    let whole: Vec<String> = items(&read).iter().map(word).collect();
    for size in [1, 2, 3, 7, 100] {
        let mut pieces = Vec::new();
        for (at, stretch) in stretches.iter().enumerate() {
            assert_eq!(reading.records(at).len(), stretch.lines);
            for start in (0..stretch.lines).step_by(size) {
                pieces.extend(reading.items(at, start..start + size).iter().map(word));
            }
        }
        assert_eq!(pieces, whole, "{size} lines at a time");
    }
    assert!(reading.items(9, 0..9).is_empty() && reading.items(0, 500..900).is_empty());
}
