//! What sessions do at given times, told as a table: lines, hooks, the registry, and the state.
//!
//! A script is read from top to bottom. Each row has a time; what happens stands behind it.
//! Rows with `=` say what must be known then: the state, how it is known (`?` behind that: not
//! for certain), and what else there is to say. Times never run backwards within a script.
//!
//! ```text
//! prompt TEXT            a person types            over                 the turn is over
//! says TEXT              a reply ends              interrupt            a person presses Escape
//! begins TEXT            a reply goes on           error TEXT           the API failed for good
//! thinks                 the model thinks          retry TEXT           the API failed, once more
//! calls ID TOOL ABOUT    …; ID TOOL ABOUT          compacted HOW        auto or manual
//! result ID              a call is done            notice TASK STATUS   something in the background
//! agent ID: ROW          a line in the file of a sub-agent
//! sent ID AGENT          the call started an agent in the background
//! left ID TASK           the call started a command in the background
//! hook NAME; KEY=VALUE   what a hook is told
//! registry WORD          what the registry says; `dead`, `away` behind it; `none`, `missing`
//! ```

use std::collections::BTreeMap;

use unspool_model::hook_events::{HookEvent, RunningTask};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::view::status::{
    self, HookSignal, RegistryEntry, RegistryState, RegistryStatus, SessionStatus, StatusSignals,
    ZoneOffsets,
};

use crate::make::time;

/// How each client writes what a reply stopped for.
#[derive(Clone, Copy, PartialEq)]
enum Stops {
    Never,
    LastLine,
    EveryLine,
}

const CLIENTS: [(&str, Stops); 5] = [
    ("2.0.42", Stops::EveryLine),
    ("2.0.76", Stops::LastLine),
    ("2.1.29", Stops::Never),
    ("2.1.100", Stops::LastLine),
    ("2.1.325", Stops::EveryLine),
];

/// A file that is being written.
#[derive(Default)]
struct File {
    lines: Vec<String>,
    last: Option<String>,
}

impl File {
    /// Adds a line that hangs on the one before.
    fn add(&mut self, version: &str, agent: Option<&str>, clock: &str, rest: &str) {
        let uuid = format!("u{}-{}", agent.unwrap_or_default(), self.lines.len());
        let parent = match &self.last {
            Some(last) => format!("\"{last}\""),
            None => "null".to_owned(),
        };
        let own = match agent {
            Some(agent) => format!(r#""isSidechain":true,"agentId":"{agent}""#),
            None => r#""isSidechain":false"#.to_owned(),
        };
        self.lines.push(format!(
            r#"{{"uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","version":"{version}","timestamp":"{}",{own},{rest}}}"#,
            time(clock)
        ));
        self.last = Some(uuid);
    }

    fn session(&self, role: TranscriptRole) -> Session {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        Session::from_log(&Log::new(text), role)
    }
}

/// A script while it is played.
struct Stage {
    version: &'static str,
    stops: Stops,
    main: File,
    agents: BTreeMap<String, File>,
    signals: StatusSignals,
    messages: usize,
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

impl Stage {
    fn new((version, stops): (&'static str, Stops)) -> Stage {
        let zones = ZoneOffsets(|zone, _| (zone == Some("europe/berlin")).then_some(3_600));
        Stage {
            version,
            stops,
            main: File::default(),
            agents: BTreeMap::new(),
            signals: StatusSignals {
                zones,
                ..StatusSignals::default()
            },
            messages: 0,
        }
    }

    fn line(&mut self, agent: Option<&str>, clock: &str, rest: &str) {
        let file = match agent {
            Some(agent) => self.agents.entry(agent.to_owned()).or_default(),
            None => &mut self.main,
        };
        file.add(self.version, agent, clock, rest);
    }

    fn user(&mut self, agent: Option<&str>, clock: &str, content: &str, more: &str) {
        let rest =
            format!(r#""type":"user","message":{{"role":"user","content":{content}}}{more}"#);
        self.line(agent, clock, &rest);
    }

    /// A reply of several lines, as all clients write it: one line for each piece.
    fn reply(&mut self, agent: Option<&str>, clock: &str, pieces: &[String], stop: &str) {
        self.messages += 1;
        let id = format!("m{}", self.messages);
        for (at, piece) in pieces.iter().enumerate() {
            let says = match self.stops {
                Stops::Never => false,
                Stops::LastLine => at + 1 == pieces.len(),
                Stops::EveryLine => true,
            };
            let stop = match says && !stop.is_empty() {
                true => quoted(stop),
                false => "null".to_owned(),
            };
            let rest = format!(
                r#""type":"assistant","message":{{"id":"{id}","model":"claude-opus-4-5","role":"assistant","content":[{piece}],"stop_reason":{stop},"usage":{{"input_tokens":10,"output_tokens":5}}}}"#
            );
            self.line(agent, clock, &rest);
        }
    }

    fn calls(&mut self, agent: Option<&str>, clock: &str, rest: &str) {
        let pieces: Vec<String> = rest
            .split("; ")
            .map(|call| {
                let mut words = call.splitn(3, ' ');
                let (id, tool) = (words.next().unwrap(), words.next().unwrap());
                let about = words.next().unwrap_or_default();
                let input = match tool {
                    "AskUserQuestion" => format!(r#"{{"questions":[{{"question":"{about}"}}]}}"#),
                    "ExitPlanMode" => format!(r#"{{"plan":"{about}"}}"#),
                    "Agent" => format!(r#"{{"description":"{about}"}}"#),
                    "TaskStop" => format!(r#"{{"task_id":"{about}"}}"#),
                    "Read" => format!(r#"{{"file_path":"{about}"}}"#),
                    _ => format!(r#"{{"command":"{about}"}}"#),
                };
                format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{input}}}"#)
            })
            .collect();
        self.reply(agent, clock, &pieces, "tool_use");
    }

    fn result(&mut self, agent: Option<&str>, clock: &str, id: &str, more: &str) {
        let content = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}]"#);
        self.user(agent, clock, &content, more);
    }

    fn play(&mut self, clock: &str, row: &str) {
        let (word, rest) = row.split_once(' ').unwrap_or((row, ""));
        match word {
            "hook" => self.hook(clock, rest),
            "registry" => self.registry(clock, rest),
            "agent" => {
                let (agent, row) = rest.split_once(": ").unwrap();
                let (word, rest) = row.split_once(' ').unwrap_or((row, ""));
                self.write(Some(agent), clock, word, rest);
            }
            _ => self.write(None, clock, word, rest),
        }
    }

    fn write(&mut self, agent: Option<&str>, clock: &str, word: &str, rest: &str) {
        let words: Vec<&str> = rest.split(' ').collect();
        let text = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
        match word {
            "prompt" => self.user(agent, clock, &quoted(rest), ""),
            "says" => self.reply(agent, clock, &[text(rest)], "end_turn"),
            "begins" => self.reply(agent, clock, &[text(rest)], "tool_use"),
            "thinks" => {
                let piece = r#"{"type":"thinking","thinking":"hm","signature":""}"#.to_owned();
                self.reply(agent, clock, &[piece], "");
            }
            "calls" => self.calls(agent, clock, rest),
            "result" => self.result(agent, clock, words[0], ""),
            "sent" => {
                let more = format!(
                    r#","toolUseResult":{{"status":"async_launched","agentId":"{}"}}"#,
                    words[1]
                );
                self.result(agent, clock, words[0], &more);
            }
            "left" => {
                let more = format!(
                    r#","toolUseResult":{{"stdout":"","backgroundTaskId":"{}"}}"#,
                    words[1]
                );
                self.result(agent, clock, words[0], &more);
            }
            "interrupt" => self.user(
                agent,
                clock,
                "\"[Request interrupted by user for tool use]\"",
                "",
            ),
            "over" => self.line(
                agent,
                clock,
                r#""type":"system","subtype":"turn_duration","durationMs":9"#,
            ),
            "error" => {
                let rest = format!(
                    r#""type":"assistant","isApiErrorMessage":true,"error":"rate_limit","message":{{"id":"e{clock}","model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","content":[{}]}}"#,
                    text(rest)
                );
                self.line(agent, clock, &rest);
            }
            "retry" => {
                let rest = format!(
                    r#""type":"system","subtype":"api_error","level":"error","error":{{"formatted":{}}},"retryInMs":500,"retryAttempt":1,"maxRetries":10"#,
                    quoted(rest)
                );
                self.line(agent, clock, &rest);
            }
            "compacted" => {
                let boundary = format!(
                    r#""type":"system","subtype":"compact_boundary","compactMetadata":{{"trigger":"{rest}","preTokens":9}}"#
                );
                self.line(agent, clock, &boundary);
                self.user(
                    agent,
                    clock,
                    "\"This session is being continued\"",
                    r#","isCompactSummary":true"#,
                );
            }
            "notice" => {
                let text = format!(
                    "<task-notification>\n<task-id>{}</task-id>\n<status>{}</status>\n</task-notification>",
                    words[0], words[1]
                );
                self.user(
                    agent,
                    clock,
                    &quoted(&text),
                    r#","origin":{"kind":"task-notification"}"#,
                );
            }
            other => panic!("what is `{other}`?"),
        }
    }

    fn hook(&mut self, clock: &str, rest: &str) {
        let mut parts = rest.split("; ");
        let mut event = HookEvent {
            name: parts.next().unwrap().to_owned(),
            session: "s".into(),
            ..HookEvent::default()
        };
        for part in parts {
            let (key, text) = part.split_once('=').unwrap();
            let value = Some(text.to_owned());
            match key {
                "call" => event.call = value,
                "tool" => event.tool = value,
                "about" => event.subject = value,
                "agent" => event.agent = value,
                "kind" => event.notification = value,
                "message" => event.message = value,
                "reason" => event.reason = value,
                "error" => event.error = value,
                "running" => {
                    let ids = text.split(',').filter(|id| !id.is_empty());
                    let one = |id: &str| RunningTask {
                        id: id.to_owned(),
                        agent: id.starts_with('a'),
                    };
                    event.running = Some(ids.map(one).collect());
                }
                other => panic!("what is `{other}`?"),
            }
        }
        let at = Time::parse(&time(clock)).unwrap();
        self.signals.hooks.push(HookSignal { at, event });
    }

    fn registry(&mut self, clock: &str, rest: &str) {
        let (word, how) = rest.split_once(' ').unwrap_or((rest, ""));
        let alive = match how {
            "dead" => Some(false),
            "away" => None,
            _ => Some(true),
        };
        self.signals.registry = match word {
            "none" => RegistryState::Unknown,
            "missing" => RegistryState::Missing,
            // The client dies, and its note stays as it was.
            "dies" => match self.signals.registry.clone() {
                RegistryState::Entry(entry) => RegistryState::Entry(RegistryEntry {
                    alive: Some(false),
                    ..entry
                }),
                other => other,
            },
            word => RegistryState::Entry(RegistryEntry {
                says: RegistryStatus::named(word),
                since: Time::parse(&time(clock)),
                alive,
            }),
        };
    }

    fn status(&self, clock: &str) -> (Session, SessionStatus) {
        let main = self.main.session(TranscriptRole::Main);
        let agents: Vec<Session> = self
            .agents
            .values()
            .map(|file| file.session(TranscriptRole::Agent))
            .collect();
        let agents: Vec<&Session> = agents.iter().collect();
        let now = Time::parse(&time(clock)).unwrap();
        let status = status::family(&main, &agents, &self.signals, now);
        (main, status)
    }
}

/// A status as the rows write it.
fn told(session: &Session, status: &SessionStatus) -> String {
    let mut out = format!("{} {}", status.state.name(), status.from.name());
    if !status.sure {
        out.push('?');
    }
    let waits = status.waits.clone().unwrap_or_default();
    let pending = status.pending.map(|at| &session.calls[at as usize]);
    let tool = waits
        .tool
        .clone()
        .or_else(|| Some(session.text(pending?.tool).to_owned()));
    let about = waits
        .subject
        .clone()
        .or_else(|| session.subject(pending?).map(str::to_owned));
    if let Some(tool) = tool {
        out += &format!(", {tool} {}", about.unwrap_or_default());
    }
    if let Some(agent) = waits.agent {
        out += &format!(", in {agent}");
    }
    if let Some(question) = waits.question {
        out += &format!(", asks {question}");
    }
    if let Some(error) = &status.error {
        out += &format!(", {error}");
    }
    if let Some(resets) = status.resets {
        out += &format!(", until {}", &resets.to_string()[11..16]);
    }
    match (status.agents, status.tasks) {
        (0, 0) => {}
        (agents, 0) => out += &format!(", agents {agents}"),
        (0, tasks) => out += &format!(", tasks {tasks}"),
        (agents, tasks) => out += &format!(", agents {agents}, tasks {tasks}"),
    }
    out
}

/// Plays a script for some clients.
fn play(name: &str, clients: &[(&'static str, Stops)], script: &str) {
    let mut asked = 0;
    for &client in clients {
        let mut stage = Stage::new(client);
        for (number, row) in script.lines().enumerate() {
            let row = row.trim();
            let Some((clock, row)) = row.split_once(' ') else {
                continue;
            };
            let row = row.trim();
            let Some(expected) = row.strip_prefix("= ") else {
                stage.play(clock, row);
                continue;
            };
            asked += 1;
            let (session, status) = stage.status(clock);
            // `~`: not for certain where the client never says what a reply stopped for.
            let doubt = if client.1 == Stops::Never { "?" } else { "" };
            let expected = expected.replace('~', doubt);
            let found = told(&session, &status);
            assert_eq!(
                found,
                expected,
                "{name}, {}, row {}: {row}",
                client.0,
                number + 1
            );
        }
    }
    assert!(asked > 0, "{name} asks nothing");
}

fn all(name: &str, script: &str) {
    play(name, &CLIENTS, script);
}

/// Clients from 2.0.45 on ask their hooks before they ask a person.
fn asking(name: &str, script: &str) {
    play(name, &CLIENTS[1..], script);
}

/// Only the client that has a registry, and names sub-agents to its hooks.
fn newest(name: &str, script: &str) {
    play(name, &CLIENTS[4..], script);
}

#[test]
fn a_turn_without_hooks() {
    all(
        "a turn",
        "
        10:00:00 = idle transcript
        10:00:00 prompt fix it
        10:00:00 = working transcript
        10:00:01 thinks
        10:00:01 = working transcript
        10:00:02 calls t1 Bash cargo test
        10:00:03 = working transcript?, Bash cargo test
        10:00:09 result t1
        10:00:09 = working transcript
        10:00:12 says done
        10:00:12 = waiting_for_input transcript~
        10:00:12 over
        10:00:12 = waiting_for_input transcript
        10:05:11 = waiting_for_input transcript
        10:05:12 = idle transcript
        10:09:00 prompt and now this
        10:09:00 = working transcript
        10:13:59 = working transcript
        10:14:00 = idle transcript?
        ",
    );
}

#[test]
fn a_text_before_a_call_is_not_the_end_of_the_turn() {
    let script = "
        10:00:00 prompt fix it
        10:00:01 begins let me see
        10:00:01 = working transcript
        10:00:02 calls t1 Bash ls
        10:00:02 = working transcript?, Bash ls
        ";
    // Who says why on every line says so at once; who says nothing yet, but always does in the
    // end, has not ended.
    let cut = (CLIENTS[3].0, Stops::Never);
    play("a text", &[CLIENTS[0], CLIENTS[4], cut], script);
    let doubtful = script.replace(
        "= working transcript\n",
        "= waiting_for_input transcript?\n",
    );
    let slow = (CLIENTS[1].0, Stops::Never);
    play("a text", &[slow, CLIENTS[2]], &doubtful);
}

#[test]
fn the_same_turn_with_hooks() {
    all(
        "a turn with hooks",
        "
        10:00:00 hook SessionStart; reason=startup
        10:00:00 = waiting_for_input hook
        10:00:05 hook UserPromptSubmit
        10:00:05 = working hook
        10:00:05 prompt fix it
        10:00:07 calls t1 Bash cargo test
        10:00:07 hook PreToolUse; call=t1; tool=Bash; about=cargo test
        10:00:08 = working hook, Bash cargo test
        10:00:20 hook PostToolUse; call=t1; tool=Bash; about=cargo test
        10:00:20 result t1
        10:00:21 = working hook
        10:00:25 says done
        10:00:25 hook Stop
        10:00:25 over
        10:00:26 = waiting_for_input hook
        10:05:25 = idle hook
        10:06:00 hook SessionEnd; reason=prompt_input_exit
        10:06:00 = ended hook
        23:00:00 = ended hook
        ",
    );
}

#[test]
fn who_asks_for_permission_waits_until_the_call_is_answered() {
    asking(
        "permission",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Bash rm -rf x
        10:00:01 hook PreToolUse; call=t1; tool=Bash; about=rm -rf x
        10:00:02 hook PermissionRequest; tool=Bash; about=rm -rf x
        10:00:02 = waiting_for_approval hook, Bash rm -rf x
        10:00:08 hook Notification; kind=permission_prompt; message=Claude needs your permission to use Bash
        10:00:08 = waiting_for_approval hook, Bash rm -rf x
        10:06:00 = waiting_for_approval hook, Bash rm -rf x
        18:00:00 = waiting_for_approval hook, Bash rm -rf x
        18:00:10 result t1
        18:00:10 = working transcript
        ",
    );
    asking(
        "allowed, as the hook tells",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Bash make
        10:00:02 hook PermissionRequest; tool=Bash; about=make
        10:00:03 = waiting_for_approval hook, Bash make
        10:01:00 hook PostToolUse; call=t1; tool=Bash; about=make
        10:01:00 = working hook
        ",
    );
    asking(
        "refused",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Bash make
        10:00:02 hook PermissionRequest; tool=Bash; about=make
        10:01:00 interrupt
        10:01:00 = waiting_for_input transcript
        ",
    );
}

#[test]
fn the_result_of_one_call_does_not_answer_another() {
    asking(
        "two calls",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Read a.rs; t2 Bash make
        10:00:01 hook PreToolUse; call=t1; tool=Read; about=a.rs
        10:00:01 hook PreToolUse; call=t2; tool=Bash; about=make
        10:00:02 hook PermissionRequest; tool=Bash; about=make
        10:00:03 hook PostToolUse; call=t1; tool=Read; about=a.rs
        10:00:03 result t1
        10:00:04 = waiting_for_approval hook, Bash make
        11:00:00 = waiting_for_approval hook, Bash make
        11:00:01 hook PostToolUse; call=t2; tool=Bash; about=make
        11:00:01 = working hook
        11:00:01 result t2
        11:00:02 = working hook
        ",
    );
    all(
        "two calls without hooks",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Read a.rs; t2 AskUserQuestion which one
        10:00:02 result t1
        10:00:02 = waiting_for_input transcript, AskUserQuestion which one, asks which one
        11:00:00 = waiting_for_input transcript, AskUserQuestion which one, asks which one
        11:00:01 result t2
        11:00:01 = working transcript
        ",
    );
    asking(
        "the same command, asked for twice",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Bash make
        10:00:01 hook PreToolUse; call=t1; tool=Bash; about=make
        10:00:02 hook PermissionRequest; tool=Bash; about=make
        10:00:03 result t1
        10:00:04 calls t2 Bash make
        10:00:04 hook PreToolUse; call=t2; tool=Bash; about=make
        10:00:05 hook PermissionRequest; tool=Bash; about=make
        10:00:06 = waiting_for_approval hook, Bash make
        10:00:07 result t2
        10:00:07 = working transcript
        ",
    );
}

#[test]
fn old_clients_say_it_only_in_a_notification() {
    all(
        "notification",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Read a.rs; t2 Bash make
        10:00:01 hook PreToolUse; call=t1; tool=Read; about=a.rs
        10:00:01 hook PreToolUse; call=t2; tool=Bash; about=make
        10:00:07 hook Notification; message=Claude needs your permission to use Bash
        10:00:07 = waiting_for_approval hook, Bash make
        10:00:08 hook PostToolUse; call=t1; tool=Read; about=a.rs
        10:00:08 result t1
        10:00:08 = waiting_for_approval hook, Bash make
        13:00:00 = waiting_for_approval hook, Bash make
        13:00:01 result t2
        13:00:01 = working transcript
        13:00:05 says done
        13:01:05 hook Notification; message=Claude is waiting for your input
        13:01:05 = waiting_for_input hook
        13:06:05 = idle hook
        ",
    );
    all(
        "a notification alone",
        "
        10:00:00 prompt fix it
        10:00:01 calls t1 Bash make
        10:00:07 hook Notification; message=Claude needs your permission
        10:00:07 = waiting_for_approval hook, Bash make, asks Claude needs your permission
        10:01:00 result t1
        10:01:00 = working transcript
        ",
    );
}

#[test]
fn a_question_is_no_request_for_permission() {
    asking(
        "question",
        "
        10:00:00 prompt which one
        10:00:01 calls t1 AskUserQuestion red or blue
        10:00:01 hook PreToolUse; call=t1; tool=AskUserQuestion; about=red or blue
        10:00:01 hook PermissionRequest; tool=AskUserQuestion; about=red or blue
        10:00:02 = waiting_for_input hook, AskUserQuestion red or blue, asks red or blue
        19:00:00 = waiting_for_input hook, AskUserQuestion red or blue, asks red or blue
        19:00:01 hook PostToolUse; call=t1; tool=AskUserQuestion; about=red or blue
        19:00:01 = working hook
        ",
    );
    all(
        "plan",
        "
        10:00:00 prompt plan it
        10:00:01 calls t1 ExitPlanMode first this
        10:00:02 = waiting_for_approval transcript, ExitPlanMode first this
        19:00:00 = waiting_for_approval transcript, ExitPlanMode first this
        19:00:01 prompt no, otherwise
        19:00:01 = working transcript
        ",
    );
    newest(
        "a server asks",
        "
        10:00:00 prompt go
        10:00:01 calls t1 mcp__x__y z
        10:00:02 hook Elicitation; message=your name
        10:00:02 = waiting_for_input hook, mcp__x__y z, asks your name
        12:00:02 = waiting_for_input hook, mcp__x__y z, asks your name
        12:00:03 hook ElicitationResult
        12:00:03 = working hook, mcp__x__y z
        ",
    );
}

#[test]
fn what_is_newer_beats_what_is_older() {
    all(
        "lines after a stop",
        "
        10:00:00 prompt go
        10:00:01 says done
        10:00:01 hook Stop
        10:00:02 = waiting_for_input hook
        10:00:30 prompt more
        10:00:30 = working transcript
        10:00:40 says done again
        10:00:41 = waiting_for_input transcript~
        ",
    );
    all(
        "a stop that another hook did not accept",
        "
        10:00:00 prompt go
        10:00:01 says done
        10:00:01 hook Stop
        10:00:03 calls t1 Bash make
        10:00:03 = working transcript?, Bash make
        10:00:05 result t1
        10:00:06 says really done
        10:00:06 hook Stop
        10:00:07 = waiting_for_input hook
        ",
    );
    all(
        "opened again without hooks",
        "
        10:00:00 prompt go
        10:00:01 says done
        10:00:02 hook SessionEnd
        10:00:03 = ended hook
        11:00:00 prompt more
        11:00:00 = working transcript
        ",
    );
    all(
        "opened again with hooks",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:00:02 hook SessionEnd
        10:00:03 = ended hook
        11:00:00 hook SessionStart; reason=resume
        11:00:00 = waiting_for_input hook
        11:06:00 = idle hook
        ",
    );
    all(
        "hooks that were noted out of order",
        "
        10:00:00 prompt go
        10:00:02 says done
        10:00:02 hook Stop
        10:00:01 hook PostToolUse; call=t1; tool=Bash
        10:00:03 = waiting_for_input hook
        ",
    );
}

#[test]
fn sub_agents_do_not_speak_for_their_session() {
    newest(
        "an agent in the foreground",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Agent look; t2 Agent search
        10:00:01 = working transcript?, Agent search, agents 2
        10:00:02 agent a1: prompt look
        10:00:03 hook SubagentStart; agent=a1
        10:00:04 hook PreToolUse; agent=a1; call=x1; tool=Bash; about=ls
        10:00:05 hook PostToolUse; agent=a1; call=x1; tool=Bash; about=ls
        10:04:00 agent a1: calls x2 Bash make
        10:08:00 = working transcript?, Agent search, agents 2
        10:08:00 agent a1: says found
        10:08:00 hook SubagentStop; agent=a1
        10:08:00 result t1
        10:08:01 = working transcript?, Agent search, agents 1
        10:09:00 result t2
        10:09:00 = working transcript
        ",
    );
    newest(
        "a stop of an agent",
        "
        10:00:00 hook UserPromptSubmit
        10:00:00 prompt go
        10:00:01 calls t1 Agent look
        10:00:01 hook PreToolUse; call=t1; tool=Agent; about=look
        10:00:05 hook SubagentStop; agent=a1
        10:00:05 = working hook, Agent look, agents 1
        10:00:06 hook Stop; agent=a1
        10:00:06 = working hook, Agent look, agents 1
        10:00:07 hook SessionEnd; agent=a1
        10:00:07 = working hook, Agent look, agents 1
        ",
    );
    newest(
        "an agent must be allowed something",
        "
        10:00:00 hook UserPromptSubmit
        10:00:00 prompt go
        10:00:01 calls t1 Agent look
        10:00:01 hook PreToolUse; call=t1; tool=Agent; about=look
        10:00:04 hook PreToolUse; agent=a1; call=x1; tool=Bash; about=rm x
        10:00:05 hook PermissionRequest; agent=a1; tool=Bash; about=rm x
        10:00:05 = waiting_for_approval hook, Bash rm x, in a1, agents 1
        12:00:05 = waiting_for_approval hook, Bash rm x, in a1, agents 1
        12:00:06 hook PostToolUse; agent=a1; call=x1; tool=Bash; about=rm x
        12:00:06 = working hook, Agent look, agents 1
        ",
    );
    play(
        "clients that do not name the agent",
        &[CLIENTS[1], CLIENTS[2]],
        "
        10:00:00 prompt go
        10:00:01 calls t1 Agent look
        10:00:04 agent a1: calls x1 Bash rm x
        10:00:04 hook PreToolUse; call=x1; tool=Bash; about=rm x
        10:00:05 hook PermissionRequest; tool=Bash; about=rm x
        10:00:05 = waiting_for_approval hook, Bash rm x, agents 1
        10:00:09 agent a1: result x1
        10:00:09 = working hook, Agent look, agents 1
        ",
    );
    play(
        "an agent in the background that is not named",
        &[CLIENTS[1], CLIENTS[2]],
        "
        10:00:00 prompt go
        10:00:01 calls t1 Agent look
        10:00:02 sent t1 a1
        10:00:03 says on its way
        10:00:03 hook Stop
        10:00:04 agent a1: calls x1 Bash make
        10:00:04 hook PreToolUse; call=x1; tool=Bash; about=make
        10:00:05 = waiting_for_input hook, agents 1
        10:00:06 hook PostToolUse; call=x1; tool=Bash; about=make
        10:00:06 = waiting_for_input hook, agents 1
        ",
    );
}

#[test]
fn what_goes_on_in_the_background_is_counted_beside_the_state() {
    newest(
        "agents in the background",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Agent look; t2 Agent search
        10:00:02 sent t1 a1
        10:00:02 sent t2 a2
        10:00:02 agent a1: prompt look
        10:00:03 says both are on their way
        10:00:03 over
        10:00:04 = waiting_for_input transcript, agents 2
        10:00:30 agent a1: says found
        10:00:31 = waiting_for_input transcript, agents 1
        10:00:40 notice a1 completed
        10:00:40 = working transcript, agents 1
        10:00:50 says one is back
        10:01:00 hook SubagentStop; agent=a2
        10:01:01 = waiting_for_input transcript
        ",
    );
    newest(
        "a command in the background",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Bash npm start
        10:00:02 left t1 b1
        10:00:03 says it runs
        10:00:04 = waiting_for_input transcript, tasks 1
        10:10:00 = idle transcript
        10:10:00 registry idle
        10:10:01 = idle registry, tasks 1
        10:11:00 prompt stop it
        10:11:01 calls t2 TaskStop b1
        10:11:02 result t2
        10:11:03 = working transcript
        ",
    );
    newest(
        "what a stop says still runs",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Agent look; t2 Bash make
        10:00:02 sent t1 a1
        10:00:02 left t2 b1
        10:00:03 says on their way
        10:00:03 hook Stop; running=a1,b1
        10:00:04 = waiting_for_input hook, agents 1, tasks 1
        10:01:00 hook Stop; running=
        10:01:01 = waiting_for_input hook
        ",
    );
    newest(
        "nothing runs behind a client that is gone",
        "
        10:00:00 prompt go
        10:00:01 registry busy
        10:00:01 calls t1 Agent look
        10:00:02 sent t1 a1
        10:00:03 = working registry, agents 1
        10:00:04 registry dies
        10:00:04 = ended process
        ",
    );
}

#[test]
fn the_registry_knows_what_lines_cannot_tell() {
    newest(
        "a dialog",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 Bash rm x
        10:00:02 = working registry, Bash rm x
        10:00:03 registry waiting
        10:00:03 = waiting_for_approval registry, Bash rm x
        12:00:00 = waiting_for_approval registry, Bash rm x
        12:00:01 registry busy
        12:00:01 = working registry, Bash rm x
        12:00:09 result t1
        12:00:10 = working registry
        12:00:11 says done
        12:00:11 registry idle
        12:00:12 = waiting_for_input registry
        12:05:11 = idle registry
        ",
    );
    newest(
        "a command that takes an hour",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 Bash make world
        10:59:00 = working registry, Bash make world
        ",
    );
    newest(
        "a prompt that the registry has not heard of yet",
        "
        10:00:00 prompt go
        10:00:01 says done
        10:00:01 registry idle
        10:00:30 prompt more
        10:00:30 = working transcript
        10:00:31 registry busy
        10:00:31 = working registry
        ",
    );
    newest(
        "a turn that was broken off without a line",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:00:05 registry idle
        10:00:05 = waiting_for_input registry
        10:05:05 = idle registry
        ",
    );
    newest(
        "a question while it says busy",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 AskUserQuestion which
        10:00:02 = waiting_for_input transcript, AskUserQuestion which, asks which
        10:09:02 = waiting_for_input transcript, AskUserQuestion which, asks which
        10:09:03 registry busy
        10:09:03 = working registry, AskUserQuestion which
        ",
    );
    newest(
        "one call waits while another one ends",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Read a.rs; t2 Bash make
        10:00:02 registry waiting
        10:00:03 result t1
        10:00:03 = waiting_for_approval registry, Bash make
        ",
    );
    newest(
        "a hook is trusted more, until the registry is newer",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:00:02 hook PermissionRequest; tool=Bash; about=make
        10:00:02 = waiting_for_approval hook, Bash make
        10:00:05 registry busy
        10:00:05 = working registry, Bash make
        ",
    );
    newest(
        "a session on another machine",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:00:02 registry waiting away
        10:00:02 = waiting_for_approval registry?, Bash make
        ",
    );
}

#[test]
fn who_is_gone_neither_works_nor_waits() {
    newest(
        "killed in the middle",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:00:02 = working registry, Bash make
        10:00:03 registry dies
        10:00:03 = ended process
        23:00:00 = ended process
        ",
    );
    newest(
        "killed while it asked",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 AskUserQuestion which
        10:00:03 registry dies
        10:00:03 = ended process
        ",
    );
    newest(
        "killed, and opened again",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:00:03 registry dies
        10:00:03 = ended process
        10:10:00 hook SessionStart; reason=resume
        10:10:00 = waiting_for_input hook
        ",
    );
    newest(
        "no longer in the registry",
        "
        10:00:00 prompt go
        10:00:01 calls t1 AskUserQuestion which
        10:00:10 registry missing
        10:00:10 = waiting_for_input transcript, AskUserQuestion which, asks which
        10:01:01 = ended registry?
        ",
    );
    // Clients before 2.1.139 never are in it.
    play(
        "never was in the registry",
        &CLIENTS[..4],
        "
        10:00:00 prompt go
        10:00:01 calls t1 AskUserQuestion which
        10:00:10 registry missing
        18:00:00 = waiting_for_input transcript, AskUserQuestion which, asks which
        ",
    );
    newest(
        "a turn that is over is no end",
        "
        10:00:00 prompt go
        10:00:01 says done
        10:00:10 registry missing
        10:04:00 = waiting_for_input transcript
        10:06:00 = idle transcript
        ",
    );
    newest(
        "alive, and nothing else is known",
        "
        10:00:00 registry other
        10:00:00 prompt go
        10:00:01 calls t1 Bash make
        10:20:00 = working process?, Bash make
        ",
    );
}

#[test]
fn a_failure_says_what_failed_and_until_when() {
    all(
        "a limit",
        "
        10:00:00 prompt go
        10:00:01 error You've hit your limit · resets 3pm (Europe/Berlin)
        10:00:02 = error transcript, You've hit your limit · resets 3pm (Europe/Berlin), until 14:00
        13:59:59 = error transcript, You've hit your limit · resets 3pm (Europe/Berlin), until 14:00
        14:00:00 = idle transcript
        14:01:00 prompt go on
        14:01:00 = working transcript
        ",
    );
    all(
        "any other failure",
        "
        10:00:00 prompt go
        10:00:01 error API Error: 400 bad request
        10:00:02 = error transcript, API Error: 400 bad request
        10:05:01 = idle transcript
        ",
    );
    newest(
        "the registry does not speak of failures",
        "
        10:00:00 registry busy
        10:00:00 prompt go
        10:00:01 error API Error: 400 bad request
        10:00:01 = error transcript, API Error: 400 bad request
        10:00:02 registry idle
        10:00:02 = error transcript, API Error: 400 bad request
        10:00:30 registry busy
        10:00:30 = working registry
        ",
    );
    newest(
        "a failure that is tried again",
        "
        10:00:00 prompt go
        10:00:01 retry 529 overloaded
        10:00:01 = working transcript, 529 overloaded (attempt 1 of 10)
        10:00:03 says done
        10:00:03 = waiting_for_input transcript
        ",
    );
    newest(
        "as the hook tells it",
        "
        10:00:00 hook UserPromptSubmit
        10:00:00 prompt go
        10:00:01 hook StopFailure; error=rate_limit; message=Claude AI usage limit reached|1767448800
        10:00:02 = error hook, Claude AI usage limit reached|1767448800, until 14:00
        12:00:02 = error hook, Claude AI usage limit reached|1767448800, until 14:00
        12:30:00 prompt again
        12:30:00 = working transcript
        ",
    );
}

#[test]
fn a_compaction_lasts_from_its_hook_to_its_boundary() {
    all(
        "by itself",
        "
        10:00:00 prompt go
        10:00:01 calls t1 Read a.rs
        10:00:02 result t1
        10:00:03 hook PreCompact; reason=auto
        10:00:03 = compacting hook
        10:01:00 compacted auto
        10:01:00 = working transcript
        ",
    );
    all(
        "by hand",
        "
        10:00:00 prompt go
        10:00:01 says done
        10:00:03 hook PreCompact; reason=manual
        10:00:03 = compacting hook
        10:01:00 compacted manual
        10:01:00 = waiting_for_input transcript
        10:01:00 hook SessionStart; reason=compact
        10:01:01 = waiting_for_input hook
        ",
    );
    newest(
        "as the hook tells it",
        "
        10:00:00 prompt go
        10:00:03 hook PreCompact; reason=auto
        10:00:50 hook PostCompact; reason=auto
        10:00:50 = working hook
        ",
    );
}

/// The counts that the daemon of the fifth document gets wrong; what it says about states stands
/// in the tables above: an approval that becomes idle, a result that answers another call, a
/// prompt that stays unnoticed, a sub-agent that speaks for its session.
#[test]
fn lines_without_a_session_are_not_read_twice_and_a_reply_is_counted_once() {
    let mut stage = Stage::new(CLIENTS[4]);
    for turn in 0..5 {
        // Every session has such lines; they name no session.
        let snapshot = r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{}}"#;
        stage.main.lines.push(snapshot.to_owned());
        stage.play(&format!("10:0{turn}:00"), "prompt more");
        let pieces =
            ["one", "two", "three"].map(|text| format!(r#"{{"type":"text","text":"{text}"}}"#));
        stage.reply(None, &format!("10:0{turn}:01"), &pieces, "end_turn");
        let title = r#"{"type":"summary","summary":"S","leafUuid":"elsewhere"}"#;
        stage.main.lines.push(title.to_owned());
    }
    let text: String = stage
        .main
        .lines
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let mut splitter = unspool_model::log::LineSplitter::default();
    let mut session = Session::new(TranscriptRole::Main);
    for piece in text.as_bytes().chunks(77) {
        splitter.feed(piece, |line| {
            session.push(&line);
        });
    }
    let now = Time::parse(&time("10:04:02")).unwrap();
    let none = std::collections::HashMap::new();
    let prices = unspool_model::price::Prices::bundled();
    let row = unspool_model::view::session_row::row(
        &unspool_model::view::session_usage::SessionFiles::alone(&session),
        &none,
        prices,
        &stage.signals,
        now,
    );
    assert_eq!((row.turns, row.messages), (5, 5));
    assert_eq!(
        (row.used.own.usage.input, row.used.own.usage.output),
        (50, 25)
    );
    assert_eq!(told(&session, &row.status), "waiting_for_input transcript");
    assert_eq!(row.last_prompt.as_deref(), Some("more"));
}
