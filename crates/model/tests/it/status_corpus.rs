//! What sessions of the real client were doing, line by line.
//!
//! The table says after which line, at what time, the state is another one. Between these lines
//! it must stay as it is, so every line of every recording in it is checked. It was written by
//! hand from the types, reasons and times of the lines and the rules of `docs/status.md`, not
//! printed by the program.
//!
//! What one would not guess: up to 2.1.58 a reply without a reason may be over, so a text makes
//! it perhaps the person's turn until its call follows; and a line that the program writes for
//! the model is work, also the caveat in front of a local command, until its output is there.

use std::fmt::Write;

use unspool_model::hook_events::HookEvent;
use unspool_model::log::{LineSplitter, Log};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::view::status::{self, HookSignal, SessionStatus, StatusSignals, StatusSource};
use unspool_testkit::corpus::{self, File};
use unspool_testkit::random::Random;

/// Version, scenario, the beginning of the file's name; then line, time and state.
const TABLE: &str = "
2.0.42 s01_text 9d9b8b09
    3 19:03:56 working
    4 19:03:56 waiting_for_input
2.0.42 s04_parallel c2a31ef6
    3 19:04:44 working
    6 19:04:44 working? Read
    7 19:04:44 working? Glob
    8 19:04:44 working? Grep
    9 19:04:44 working? Bash
    13 19:04:46 working
    14 19:04:46 waiting_for_input
2.0.42 s09_compact e4b749e5
    3 19:06:03 working
    5 19:06:03 working? Read
    6 19:06:04 working
    7 19:06:04 waiting_for_input
    10 19:06:15 working
    11 19:06:16 waiting_for_input
    16 19:06:29 working
    18 19:06:29 waiting_for_input
    22 19:06:42 working
    23 19:06:42 waiting_for_input
2.0.42 s13b_400 4ea5ddbf
    3 19:08:14 working
    4 19:08:15 waiting_for_input
    7 19:08:21 working
    8 19:08:21 waiting_for_input
2.0.42 s17_sigkill 0094c92f
    3 19:09:42 working
    5 19:09:42 working? Bash
    8 19:09:50 working
    9 19:09:50 waiting_for_input
2.0.76 i01_reject e624e857
    2 19:16:19 working
    3 19:16:20 waiting_for_input
    5 19:16:22 working
    6 19:16:23 waiting_for_input?
    7 19:16:23 working? Write
    8 19:16:25 working
    9 19:16:25 waiting_for_input
    11 19:16:27 working
    12 19:16:29 waiting_for_input
    14 19:16:30 working
    15 19:16:31 waiting_for_input?
    16 19:16:31 working? Write
    18 19:16:32 working
    19 19:16:34 waiting_for_input
2.0.76 i02_queue dfc8b2d3
    3 19:16:54 working
    4 19:16:55 waiting_for_input?
    5 19:16:55 working? Bash
    6 19:17:02 working
    8 19:17:05 waiting_for_input
    11 19:17:09 working
    14 19:17:14 waiting_for_input
2.0.76 i03_interrupt 4e0c7d69
    2 19:17:30 working
    3 19:17:35 waiting_for_input?
    4 19:17:36 waiting_for_input
    6 19:17:38 working
    7 19:17:38 waiting_for_input
    9 19:17:39 working
    10 19:17:39 waiting_for_input?
    11 19:17:39 working? Bash
    12 19:17:42 working
    13 19:17:42 waiting_for_input
    15 19:17:45 working
    16 19:17:45 waiting_for_input
2.0.76 i05_plan fa87b88a
    2 19:18:26 working
    3 19:18:27 waiting_for_input?
    4 19:18:27 working? Read
    5 19:18:27 working
    6 19:18:27 waiting_for_approval ExitPlanMode
    7 19:18:28 working
    8 19:18:29 waiting_for_input
    10 19:18:31 working
    11 19:18:31 waiting_for_input
2.0.76 i06_commands a6eaa788
    2 19:18:42 working
    3 19:18:43 waiting_for_input
    6 19:18:45 working
    8 19:18:45 waiting_for_input
    10 19:18:47 working
    12 19:18:47 waiting_for_input
    14 19:18:51 working
    15 19:18:51 waiting_for_input
    20 19:18:53 working
    22 19:18:53 waiting_for_input
    24 19:18:58 working
    25 19:18:58 waiting_for_input
    27 19:19:00 working
    28 19:19:00 waiting_for_input
2.0.76 s08c_agent_bg 4c8b487a
    2 19:13:14 working
    3 19:13:14 waiting_for_input?
    4 19:13:14 working? Task +1 agents
    5 19:13:14 working +1 agents
    6 19:13:14 waiting_for_input +1 agents
2.0.76 i07_agent_hooks f7304159
    2 19:19:22 working
    3 19:19:23 waiting_for_input?
    4 19:19:23 working? Task +1 agents
    5 19:19:27 working
    6 19:19:27 waiting_for_input
    9 19:19:29 working
    10 19:19:30 working? Bash
    11 19:19:35 working
    12 19:19:35 waiting_for_input
2.1.29 i01_reject ca2f730d
    2 19:09:25 working
    3 19:09:26 waiting_for_input?
    5 19:09:27 working
    6 19:09:29 waiting_for_input?
    7 19:09:29 working? Write
    8 19:09:29 working
    9 19:09:29 waiting_for_input
    11 19:09:32 working
2.1.29 i05_plan b95d272d
    2 19:12:03 working
    3 19:12:04 waiting_for_input?
    4 19:12:04 working? Read
    5 19:12:04 working
    7 19:12:04 waiting_for_approval ExitPlanMode
    8 19:12:04 working
2.1.29 i07_agent_hooks 78f6a49e
    3 19:14:16 working
    4 19:14:19 waiting_for_input?
    5 19:14:19 working? Task +1 agents
    11 19:14:25 waiting_for_input
    13 19:14:27 working
    15 19:14:28 waiting_for_input
2.1.29 s09b_autocompact 996d8c4a
    2 19:03:32 working
    3 19:03:32 waiting_for_input?
    4 19:03:33 working? Read
    5 19:03:33 working
    8 19:03:33 waiting_for_input?
    10 19:03:38 working
    11 19:03:38 waiting_for_input?
2.1.29 s13b_400 5753e964
    2 19:06:01 working
    3 19:06:01 error
    5 19:06:15 working
    6 19:06:16 waiting_for_input?
2.1.29 s13d_429_and_sse b9905f3c
    2 19:06:53 working
    3 19:06:55 waiting_for_input?
    4 19:06:55 waiting_for_input
    6 19:07:00 working
    7 19:07:00 waiting_for_input?
    8 19:07:00 error
    9 19:07:00 waiting_for_input?
2.1.29 s04_parallel 9eaa18df
    2 19:01:34 working
    4 19:01:34 waiting_for_input?
    5 19:01:34 working? Read
    6 19:01:35 working? Glob
    7 19:01:35 working? Grep
    8 19:01:35 working? Bash
    12 19:01:36 working
    13 19:01:36 waiting_for_input?
2.1.100 s05_write_edit fb40816d
    3 19:14:00 working
    6 19:14:01 working? Write
    8 19:14:02 working
    9 19:14:02 working? Read
    10 19:14:02 working
    11 19:14:02 working? Edit
    13 19:14:03 working
    14 19:14:03 waiting_for_input
    18 19:14:12 working
    20 19:14:12 working? Edit
    21 19:14:12 working
    22 19:14:12 waiting_for_input
2.1.100 s08b_agent_two 0ab09788
    3 19:14:26 working
    6 19:14:27 working? Task +1 agents
    7 19:14:27 working? Task +2 agents
    8 19:14:27 working? Task +1 agents
    9 19:14:27 working
    10 19:14:27 waiting_for_input
2.1.100 s12_hooks cbdabaae
    4 19:15:19 working
    8 19:15:19 working? Read
    10 19:15:19 working
    13 19:15:20 working? Task +1 agents
    15 19:15:20 working
    18 19:15:20 waiting_for_input
    19 19:15:20 working
    21 19:15:20 waiting_for_input
    26 19:15:25 working
    28 19:15:25 waiting_for_input
2.1.325 i01_reject 8cc3d856
    5 18:55:35 working
    19 18:55:35 waiting_for_input
    29 18:55:36 working
    32 18:55:36 working? Write
    33 18:55:37 working
    34 18:55:37 waiting_for_input
    37 18:55:39 working
    40 18:55:39 waiting_for_input
    45 18:55:40 working
    47 18:55:40 working? Write
    49 18:55:42 working
    51 18:55:42 waiting_for_input
2.1.325 i02_queue 2ae3115f
    6 18:55:49 working
    21 18:55:50 working? Bash
    30 18:55:54 working
    37 18:55:55 waiting_for_input
    42 18:55:58 working
    43 18:55:58 waiting_for_input
    48 18:56:00 working
    49 18:56:04 waiting_for_input
2.1.325 i03_interrupt 3380d708
    5 18:56:13 working
    24 18:56:19 waiting_for_input
    28 18:56:21 working
    29 18:56:21 waiting_for_input
    37 18:56:22 working
    41 18:56:23 working? Bash
    42 18:56:25 working
    43 18:56:25 waiting_for_input
    47 18:56:28 working
    48 18:56:28 waiting_for_input
2.1.325 i05_plan ef92fcad
    5 18:56:55 working
    22 18:56:55 working? Read
    27 18:56:56 working
    35 18:56:56 waiting_for_approval ExitPlanMode
    36 18:56:56 working
    40 18:56:57 waiting_for_input
    45 18:56:59 working
    46 18:56:59 waiting_for_input
2.1.325 i07_agent_hooks 95b74235
    6 18:57:37 working
    21 18:57:37 working? Agent +1 agents
    22 18:57:37 working +1 agents
    30 18:57:38 waiting_for_input +1 agents
    33 18:57:40 waiting_for_input
    35 18:57:40 working
    38 18:57:41 working? Bash
    39 18:57:45 working
    44 18:57:45 waiting_for_input
2.1.325 s08c_agent_bg 71c3db15
    3 18:39:37 working
    22 18:39:37 working? Agent +1 agents
    23 18:39:37 working +1 agents
    28 18:39:37 waiting_for_input +1 agents
    30 18:39:38 waiting_for_input
    32 18:39:38 working
    36 18:39:38 waiting_for_input
2.1.325 s09_compact b8809baf
    3 18:39:39 working
    20 18:39:40 working? Read
    23 18:39:40 working
    26 18:39:40 waiting_for_input
    33 18:39:40 working
    37 18:39:40 waiting_for_input
    47 18:39:41 working
    49 18:39:41 waiting_for_input
    61 18:39:41 working
    77 18:39:42 waiting_for_input
2.1.325 s13a_529 a6dc58f3
    3 18:39:57 working
    24 18:39:58 waiting_for_input
2.1.325 s17_sigkill 9908bcb5
    3 18:40:13 working
    20 18:40:13 working? Bash
    25 18:40:14 working
    26 18:40:14 waiting_for_input
    27 18:40:14 working
    29 18:40:14 waiting_for_input
2.1.325 s17c_sigint 687dd66d
    3 18:40:22 working
    20 18:40:22 working? Bash
    24 18:40:24 working
    26 18:40:24 waiting_for_input
    33 18:40:24 working
    35 18:40:25 waiting_for_input
2.1.325 s02_thinking f4f91ed0
    3 18:39:22 working
    19 18:39:22 waiting_for_input
    26 18:39:24 working
    31 18:39:24 working? Read
    32 18:39:24 working
    36 18:39:24 waiting_for_input
";

fn file(version: &str, scenario: &str, name: &str) -> File {
    let files = corpus::files();
    let fits = |file: &File| {
        let stem = file.path.file_stem().unwrap().to_string_lossy();
        file.version == version && file.scenario == scenario && stem.starts_with(name)
    };
    let found = files.into_iter().find(fits);
    found.unwrap_or_else(|| panic!("{version}/{scenario}/{name} is there"))
}

/// The state as the table has it: a question mark where it is not certain, and what is open.
fn told(session: &Session, status: &SessionStatus) -> String {
    let mut out = status.state.name().to_owned();
    if !status.sure {
        out.push('?');
    }
    if let Some(at) = status.pending {
        write!(out, " {}", session.text(session.calls[at as usize].tool)).unwrap();
    }
    match (status.agents, status.tasks) {
        (0, 0) => {}
        (agents, 0) => write!(out, " +{agents} agents").unwrap(),
        (agents, tasks) => write!(out, " +{agents} agents +{tasks} tasks").unwrap(),
    }
    out
}

/// The changes of a file, one per row.
fn changes(file: &File) -> String {
    let log = Log::new(file.bytes());
    let mut session = Session::new(TranscriptRole::Main);
    let (mut out, mut before) = (String::new(), "idle".to_owned());
    for line in log.lines() {
        session.push(&line);
        let now = session.last.unwrap_or(Time(0));
        let status = status::status(&session, &StatusSignals::default(), now);
        let state = told(&session, &status);
        if state != before {
            let clock = &now.to_string()[11..19];
            writeln!(out, "{} {clock} {state}", line.number).unwrap();
            before = state;
        }
    }
    out
}

#[test]
fn recordings_are_in_the_state_that_the_table_says_after_every_line() {
    let mut wrong = String::new();
    let recordings = recordings();
    for (name, expected) in &recordings {
        let [version, scenario, file_name] = name[..] else {
            panic!("{name:?} is no name");
        };
        let found = changes(&file(version, scenario, file_name));
        if !found.lines().eq(expected.iter().copied()) {
            writeln!(wrong, "{version} {scenario} {file_name}\n{found}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(recordings.len() >= 20);
}

/// The table as names of recordings, each with its rows.
fn recordings() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let mut all: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("    ") {
            Some(row) => all.last_mut().unwrap().1.push(row),
            None => all.push((line.split(' ').collect(), Vec::new())),
        }
    }
    all
}

/// What recorded hooks were told, event by event; nothing else is known.
const HOOKS: &[(&str, &str)] = &[
    (
        "2.0.76-i07_agent_hooks",
        "
        SessionStart waiting_for_input
        SubagentStop waiting_for_input
        SubagentStop waiting_for_input
        UserPromptSubmit working
        PreToolUse working
        PreToolUse working
        SubagentStop working
        Stop waiting_for_input
        UserPromptSubmit working
        PreToolUse working
        Stop waiting_for_input
        SessionEnd ended
        ",
    ),
    (
        "2.1.325-i07_agent_hooks",
        "
        SessionStart waiting_for_input
        UserPromptSubmit working
        PreToolUse working
        PreToolUse working
        Stop waiting_for_input
        SubagentStop waiting_for_input
        UserPromptSubmit working
        PreToolUse working
        UserPromptSubmit working
        Stop waiting_for_input
        SessionEnd ended
        ",
    ),
    (
        "2.1.325-s12_hooks",
        "
        SessionStart waiting_for_input
        UserPromptSubmit working
        PreToolUse working
        PostToolUse working
        PreToolUse working
        SubagentStart working
        SubagentStop working
        PostToolUse working
        Stop waiting_for_input
        Stop waiting_for_input
        SessionEnd ended
        SessionStart waiting_for_input
        UserPromptSubmit working
        Stop waiting_for_input
        SessionEnd ended
        ",
    ),
];

#[test]
fn recorded_hooks_tell_each_state() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    for (name, expected) in HOOKS {
        let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        let session = Session::new(TranscriptRole::Main);
        let mut signals = StatusSignals::default();
        let mut found = Vec::new();
        for (second, line) in text.lines().enumerate() {
            let told = HookEvent::read(line.as_bytes());
            assert_eq!(told.bad, None, "{line}");
            let (at, event) = (Time(1_000 * second as i64), told.event);
            let name = event.name.clone();
            signals.hooks.push(HookSignal { at, event });
            let status = status::status(&session, &signals, at);
            assert!(status.sure && status.from == StatusSource::Hook, "{line}");
            found.push(format!("{name} {}", status.state.name()));
        }
        let expected: Vec<_> = expected.lines().map(str::trim).collect();
        let expected: Vec<_> = expected.into_iter().filter(|row| !row.is_empty()).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// However the bytes arrive, the state after each line is the same.
#[test]
fn any_chunking_gives_the_same_states() {
    let mut random = Random::new(6);
    let mut checked = 0;
    for file in corpus::files() {
        let role = match file.role {
            corpus::Role::Main => TranscriptRole::Main,
            corpus::Role::Agent => TranscriptRole::Agent,
        };
        let bytes = file.bytes();
        if bytes.len() > 200_000 {
            continue;
        }
        let log = Log::new(bytes.clone());
        let mut whole = Session::new(role);
        let mut states = Vec::new();
        for line in log.lines().filter(|line| line.ended) {
            whole.push(&line);
            states.push(state(&whole));
        }
        let mut session = Session::new(role);
        let (mut splitter, mut at, mut seen) = (LineSplitter::default(), 0, 0);
        while at < bytes.len() {
            let end = (at + 1 + random.below(3_000) as usize).min(bytes.len());
            splitter.feed(&bytes[at..end], |line| {
                session.push(&line);
                assert_eq!(
                    state(&session),
                    states[seen],
                    "{} line {}",
                    file.name(),
                    seen + 1
                );
                seen += 1;
            });
            at = end;
        }
        assert_eq!(seen, states.len(), "{}", file.name());
        checked += seen;
    }
    assert!(checked > 3_500, "{checked} lines");
}

fn state(session: &Session) -> String {
    let now = session.last.unwrap_or(Time(0));
    let signals = StatusSignals::default();
    let then = Time(now.0 + status::IDLE_MS as i64);
    let now = status::status(session, &signals, now);
    let later = status::status(session, &signals, then);
    format!("{}, then {}", told(session, &now), told(session, &later))
}
