//! `hook` from outside: what the client feels of it, and what it leaves behind.

mod marks;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unspool_testkit::home::Home;
use unspool_testkit::sink::{PUBLIC, SECRET, Sink};
use unspool_testkit::wait::wait_until;

use crate::{ID, home, home_with_session};

/// What the client would give to a hook.
fn event(home: &Home, name: &str, more: Value) -> String {
    let mut event = json!({
        "session_id": ID,
        "transcript_path": transcript(home),
        "cwd": "/home/dev/x",
        "hook_event_name": name,
    });
    let fields = event.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    event.to_string()
}

fn transcript(home: &Home) -> PathBuf {
    home.claude_dir()
        .join("projects/-home-dev-x")
        .join(format!("{ID}.jsonl"))
}

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.command();
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn tell(home: &Home, args: &[&str], input: &[u8]) -> Output {
    let mut child = start(home, args);
    // A hook that does not read to the end is its own affair.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The client obeys what a hook prints and how it ends.
#[track_caller]
fn assert_silent(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(text, "");
}

fn log(home: &Home) -> String {
    fs::read_to_string(home.unspool_dir().join("hook.log")).unwrap_or_default()
}

fn noted(home: &Home) -> Vec<Value> {
    let path = home.unspool_dir().join(format!("events/{ID}.jsonl"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn an_event_is_noted_without_a_word() {
    let home = home_with_session();
    let call =
        json!({"tool_name": "Bash", "tool_input": {"command": "cargo test"}, "tool_use_id": "t1"});
    assert_silent(&tell(
        &home,
        &["hook"],
        event(&home, "PreToolUse", call).as_bytes(),
    ));
    let asks = json!({"message": "Claude needs your permission", "notification_type": "permission_prompt"});
    assert_silent(&tell(
        &home,
        &["hook"],
        event(&home, "Notification", asks).as_bytes(),
    ));
    let all = noted(&home);
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[0]["tool"], &all[0]["subject"]),
        (&json!("Bash"), &json!("cargo test"))
    );
    assert_eq!(all[1]["event"], "Notification");
    assert_eq!(all[1]["notification"], "permission_prompt");
    assert_eq!(all[1]["cwd"], "/home/dev/x");
    assert_eq!(log(&home), "");
}

#[test]
fn whatever_comes_on_standard_input_the_client_feels_nothing() {
    let home = home();
    for (input, expected) in [
        ("", "standard input was empty"),
        ("  \n", "standard input was empty"),
        ("not json", "not a hook event"),
        ("[1,2]", "not a hook event"),
        ("{\"hook_event_name\":\"Stop\"", "not valid JSON at byte"),
        ("{\"hook_event_name\":\"Stop\"}", "Stop has no session_id"),
        (
            "{\"session_id\":{},\"hook_event_name\":7}",
            "not a hook event",
        ),
        ("\u{0}\u{1}", "not a hook event"),
    ] {
        assert_silent(&tell(&home, &["hook"], input.as_bytes()));
        let log = log(&home);
        let last = log.lines().last().unwrap_or_default();
        assert!(log.contains(expected), "{input:?}: {log}");
        let (time, rest) = last.split_at(19);
        assert!(jiff_like(time), "{last}");
        assert!(
            rest.starts_with(" [ERROR] ") || rest.starts_with(" [WARN] "),
            "{last}"
        );
    }
}

/// `YYYY-MM-DD HH:MM:SS`
fn jiff_like(text: &str) -> bool {
    let shape: String = text
        .chars()
        .map(|char| if char.is_ascii_digit() { '0' } else { char })
        .collect();
    shape == "0000-00-00 00:00:00"
}

#[cfg(unix)]
#[test]
fn what_we_write_is_for_nobody_else() {
    use std::os::unix::fs::PermissionsExt;
    let home = home_with_session();
    tell(&home, &["hook"], b"x");
    tell(&home, &["hook"], event(&home, "Stop", json!({})).as_bytes());
    let mode = |name: &str| {
        let path = home.unspool_dir().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("hook.log"), 0o600);
    assert_eq!(mode("events"), 0o700);
    assert_eq!(mode(&format!("events/{ID}.jsonl")), 0o600);
}

#[test]
fn a_hundred_megabytes_are_taken_and_the_beginning_counts() {
    let home = home_with_session();
    let big = "x".repeat(100 << 20);
    let text = event(
        &home,
        "PostToolUse",
        json!({"tool_name": "Read", "zz_response": big}),
    );
    let output = tell(&home, &["hook"], text.as_bytes());
    assert_silent(&output);
    assert_eq!(noted(&home)[0]["event"], "PostToolUse");
    assert!(log(&home).contains("larger than"), "{}", log(&home));
}

#[test]
fn a_stream_that_never_ends_is_not_waited_for() {
    let home = home_with_session();
    let mut child = start(&home, &["hook"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(event(&home, "Stop", json!({})).as_bytes())
        .unwrap();
    wait_until("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(noted(&home)[0]["event"], "Stop");
    assert_eq!(log(&home), "");
    // Nor one that says nothing at all.
    let mut child = start(&home, &["hook"]);
    let silent = child.stdin.take().unwrap();
    wait_until("it ends", || child.try_wait().unwrap().is_some());
    drop((stdin, silent));
    assert!(
        log(&home).contains("standard input was empty"),
        "{}",
        log(&home)
    );
}

#[test]
fn a_flag_that_is_not_known_does_not_stop_the_client() {
    let home = home_with_session();
    let stop = event(&home, "Stop", json!({}));
    assert_silent(&tell(&home, &["hook", "--brand-new"], stop.as_bytes()));
    assert_silent(&tell(
        &home,
        &["hook", "Stop", "--timezone", "Nowhere/At_All"],
        stop.as_bytes(),
    ));
    assert_eq!(noted(&home).len(), 2);
}

#[test]
fn where_it_is_asked_for_a_failure_is_told_but_never_as_an_order_to_stop() {
    let home = home();
    let output = tell(&home, &["hook", "--strict"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let stop = event(&home, "Stop", json!({}));
    assert_silent(&tell(&home, &["hook", "--strict"], stop.as_bytes()));
}

#[test]
fn a_folder_that_cannot_be_written_is_no_trouble_for_the_client() {
    let home = home_with_session();
    home.write(".unspool", "a file in the way");
    let stop = event(&home, "Stop", json!({}));
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
}

#[test]
fn without_keys_one_line_says_what_is_missing() {
    let mut home = home_with_session();
    home.set("TRACE_TO_LANGFUSE", "True")
        .set("LANGFUSE_PUBLIC_KEY", "pk")
        .set("LANGFUSE_SECRET_KEY", "");
    let stop = event(&home, "Stop", json!({}));
    for _ in 0..3 {
        assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    }
    let log = log(&home);
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains("[ERROR]") && log.contains("LANGFUSE_SECRET_KEY"),
        "{log}"
    );
    assert!(!home.unspool_dir().join("hook/jobs").exists());
}

#[test]
fn nothing_is_sent_unless_it_is_asked_for() {
    let mut home = home_with_session();
    home.set("LANGFUSE_PUBLIC_KEY", "pk")
        .set("LANGFUSE_SECRET_KEY", "sk")
        .set("TRACE_TO_LANGFUSE", "yes");
    let stop = event(&home, "Stop", json!({}));
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    assert!(!home.unspool_dir().join("hook/jobs").exists());
    assert_eq!(log(&home), "");
}

#[test]
fn many_hooks_at_once_are_all_noted() {
    let home = home_with_session();
    let children: Vec<Child> = (0..12)
        .map(|n| {
            let mut child = start(&home, &["hook"]);
            let call = json!({"tool_name": "Bash", "tool_use_id": format!("t{n}")});
            let text = event(&home, "PreToolUse", call);
            child
                .stdin
                .take()
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            child
        })
        .collect();
    for child in children {
        assert_silent(&child.wait_with_output().unwrap());
    }
    let mut calls: Vec<String> = noted(&home)
        .iter()
        .map(|one| one["call"].to_string())
        .collect();
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), 12);
}

/// A machine that would send to an address where nobody is.
fn sending_home() -> Home {
    let mut home = home_with_session();
    home.set("TRACE_TO_LANGFUSE", "true")
        .set("LANGFUSE_PUBLIC_KEY", "pk-lf-1")
        .set("LANGFUSE_SECRET_KEY", "sk-lf-1")
        .set("LANGFUSE_BASE_URL", "http://127.0.0.1:9")
        .set("UNSPOOL_RETRY_SECONDS", "1")
        .set("CC_LANGFUSE_DEBUG", "TRUE");
    home
}

/// A machine that sends to this receiver.
fn connected_home(sink: &Sink) -> Home {
    let mut home = sending_home();
    home.set("CC_LANGFUSE_PUBLIC_KEY", PUBLIC)
        .set("CC_LANGFUSE_SECRET_KEY", SECRET)
        .set("LANGFUSE_BASE_URL", &sink.url());
    home
}

fn is_done(home: &Home) -> bool {
    let jobs = fs::read_dir(home.unspool_dir().join("hook/jobs"));
    jobs.is_ok_and(|mut files| files.next().is_none())
}

#[test]
fn what_was_said_is_sent_after_the_hook_returned_and_only_once() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    let stop = event(&home, "Stop", json!({"last_assistant_message": "welcome"}));
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    wait_until("it is sent", || is_done(&home));
    assert_eq!(sink.faults(), [""; 0]);
    assert_eq!(sink.roots().len(), 2, "{}", log(&home));
    assert!(
        log(&home).contains(&format!("[INFO] Stop of {ID}: 2 turns and ")),
        "{}",
        log(&home)
    );
    // The end of the session has nothing new.
    let requests = sink.requests();
    assert_silent(&tell(
        &home,
        &["hook"],
        event(&home, "SessionEnd", json!({})).as_bytes(),
    ));
    wait_until("it is looked at", || {
        log(&home).contains("SessionEnd of 5e551000-0000-4000-8000-000000000001: 0 turns")
    });
    assert_eq!(sink.requests(), requests);
}

/// `/dev/full` is a disk without room.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_noted_or_logged_because_the_disk_is_full_is_sent_all_the_same() {
    use std::os::unix::fs::symlink;
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    let own = home.unspool_dir();
    fs::create_dir_all(own.join("events")).unwrap();
    symlink("/dev/full", own.join(format!("events/{ID}.jsonl"))).unwrap();
    let stop = event(&home, "Stop", json!({"last_assistant_message": "welcome"}));
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    wait_until("it is sent", || is_done(&home));
    assert_eq!(sink.roots().len(), 2, "{}", log(&home));
    assert!(log(&home).contains("cannot record"), "{}", log(&home));
    // Nor is the log needed.
    let said = log(&home);
    fs::remove_file(own.join("hook.log")).unwrap();
    symlink("/dev/full", own.join("hook.log")).unwrap();
    let end = event(&home, "SessionEnd", json!({}));
    assert_silent(&tell(&home, &["hook"], end.as_bytes()));
    wait_until("it is looked at", || is_done(&home));
    assert!(!said.is_empty() && sink.faults().is_empty());
}

#[test]
fn a_turn_that_is_written_after_the_hook_was_told_is_sent_whole() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    let whole = fs::read(transcript(&home)).unwrap();
    let cut = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    fs::write(transcript(&home), &whole[..cut]).unwrap();
    let stop = event(&home, "Stop", json!({"last_assistant_message": "welcome"}));
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(sink.requests(), 0, "{}", log(&home));
    fs::write(transcript(&home), &whole).unwrap();
    wait_until("it is sent", || is_done(&home));
    let roots = sink.roots();
    assert_eq!(roots.len(), 2, "{}", log(&home));
    assert!(
        roots[1]
            .text("langfuse.observation.output")
            .contains("welcome")
    );
    assert!(roots.iter().all(|root| root.times == 1));
}

#[test]
fn the_session_before_a_plan_is_sent_with_the_one_after_it() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    let new = "5e551000-0000-4000-8000-000000000002";
    let old = transcript(&home);
    let text = format!(
        "Implement the following plan:\n\n1. x\n\nread the full transcript at: {}",
        old.display()
    );
    let plan = json!({
        "type": "user", "uuid": "9a000000-0000-4000-8000-000000000001", "parentUuid": null,
        "sessionId": new, "timestamp": "2026-01-05T11:00:00.000Z", "planContent": "1. x",
        "message": {"role": "user", "content": text},
    });
    let reply = json!({
        "type": "assistant", "uuid": "9a000000-0000-4000-8000-000000000002",
        "parentUuid": plan["uuid"], "sessionId": new, "timestamp": "2026-01-05T11:00:01.000Z",
        "message": {"id": "msg_new", "role": "assistant", "model": "claude-opus-4-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "did it"}]},
    });
    let path = home.transcript("/home/dev/x", new, format!("{plan}\n{reply}\n"));
    let stop = json!({"session_id": new, "transcript_path": path, "hook_event_name": "Stop"});
    assert_silent(&tell(&home, &["hook"], stop.to_string().as_bytes()));
    wait_until("it is sent", || is_done(&home));
    let prompts: Vec<String> = sink
        .roots()
        .iter()
        .map(|root| root.text("langfuse.observation.input").to_owned())
        .collect();
    assert!(
        prompts.iter().any(|text| text.contains("fix it")),
        "{prompts:?} {}",
        log(&home)
    );
    assert!(
        prompts.iter().any(|text| text.contains("1. x")),
        "{prompts:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_killed_worker_did_not_send_is_sent_by_the_next() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    let stop = event(
        &home,
        "Stop",
        json!({"last_assistant_message": "never written"}),
    );
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    end(&workers(&home));
    assert_eq!(sink.requests(), 0);
    assert_silent(&tell(
        &home,
        &["hook"],
        event(&home, "SessionEnd", json!({})).as_bytes(),
    ));
    wait_until("it is sent", || is_done(&home));
    assert_eq!(sink.roots().len(), 2, "{}", log(&home));
}

#[test]
fn two_hooks_at_once_send_each_turn_once() {
    let sink = Sink::langfuse();
    let home = connected_home(&sink);
    let stop = event(&home, "Stop", json!({"last_assistant_message": "welcome"}));
    let children: Vec<Child> = (0..4)
        .map(|_| {
            let mut child = start(&home, &["hook"]);
            child
                .stdin
                .take()
                .unwrap()
                .write_all(stop.as_bytes())
                .unwrap();
            child
        })
        .collect();
    for child in children {
        assert_silent(&child.wait_with_output().unwrap());
    }
    wait_until("it is sent", || is_done(&home));
    let roots = sink.roots();
    assert_eq!(roots.len(), 2, "{}", log(&home));
    assert!(roots.iter().all(|root| root.times == 1));
}

#[test]
fn a_receiver_that_is_down_is_one_line_and_nothing_is_lost() {
    let home = sending_home();
    let stop = event(&home, "Stop", json!({"last_assistant_message": "welcome"}));
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    wait_until("it gives up", || log(&home).contains("[ERROR]"));
    let errors = log(&home).matches("[ERROR]").count();
    assert_eq!(errors, 1, "{}", log(&home));
    let sink = Sink::langfuse();
    let mut home = home;
    home.set("LANGFUSE_PUBLIC_KEY", PUBLIC)
        .set("LANGFUSE_SECRET_KEY", SECRET)
        .set("LANGFUSE_BASE_URL", &sink.url());
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    wait_until("it is sent", || is_done(&home));
    assert_eq!(sink.roots().len(), 2, "{}", log(&home));
}

/// The processes that work for this home.
#[cfg(target_os = "linux")]
fn workers(home: &Home) -> Vec<u32> {
    let jobs = home.unspool_dir().join("hook/jobs").display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&jobs)
    })
    .collect()
}

#[cfg(target_os = "linux")]
fn end(pids: &[u32]) {
    for pid in pids {
        let kill = std::process::Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status();
        assert!(kill.is_ok());
    }
}

/// A number of `/proc/PID/stat`: 3 is the group, 4 the session.
#[cfg(target_os = "linux")]
fn stat(pid: u32, at: usize) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(at - 1).unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn the_hook_returns_while_the_worker_still_waits_and_nobody_holds_the_worker() {
    let home = sending_home();
    // What was said never comes, so the worker waits for seconds.
    let stop = event(
        &home,
        "Stop",
        json!({"last_assistant_message": "never written"}),
    );
    assert_silent(&tell(&home, &["hook"], stop.as_bytes()));
    // It bears its own name only after a moment.
    let until = Instant::now() + Duration::from_secs(60);
    let mut pids = workers(&home);
    while pids.is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
        pids = workers(&home);
    }
    assert_eq!(pids.len(), 1, "{}", log(&home));
    let own = std::process::id();
    assert_ne!(stat(pids[0], 4), stat(own, 4), "another session");
    assert_ne!(stat(pids[0], 3), stat(own, 3), "another group");
    for (handle, target) in
        (0..3).map(|at| (at, fs::read_link(format!("/proc/{}/fd/{at}", pids[0]))))
    {
        assert_eq!(target.unwrap(), Path::new("/dev/null"), "{handle}");
    }
    end(&pids);
    // Killed in the middle, it leaves its job to others.
    assert_eq!(
        fs::read_dir(home.unspool_dir().join("hook/jobs"))
            .unwrap()
            .count(),
        1
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_worker_survives_when_the_group_of_the_client_is_killed() {
    let home = sending_home();
    let stop = event(
        &home,
        "Stop",
        json!({"last_assistant_message": "never written"}),
    );
    home.write("event.json", &stop);
    // A client that starts the hook in its own group and is killed with all of it.
    let program = home.command().get_program().to_owned();
    let script = "\"$1\" hook < \"$2\"; echo done; sleep 60";
    let mut client = home.command();
    let mut shell = std::process::Command::new("setsid");
    shell
        .arg("sh")
        .args(["-c", script, "sh"])
        .arg(program)
        .arg(home.path().join("event.json"));
    shell.envs(
        client
            .env_remove("nothing")
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    let mut said = [0; 5];
    child.stdout.take().unwrap().read_exact(&mut said).unwrap();
    let pids = workers(&home);
    assert_eq!(pids.len(), 1, "{}", log(&home));
    let group = format!("-{}", child.id());
    let killed = std::process::Command::new("kill")
        .args(["-9", "--", &group])
        .status();
    assert!(killed.unwrap().success());
    child.wait().unwrap();
    assert_eq!(workers(&home), pids, "it still works");
    end(&pids);
}

fn settings(home: &Home) -> PathBuf {
    home.claude_dir().join("settings.json")
}

const MINE: &str = "{\n    // mine\n    \"model\": \"opus\", /* x */\n    \"hooks\": {\n        \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }],\n    },\n}";

#[test]
fn installing_adds_our_events_and_uninstalling_leaves_no_trace() {
    let home = home();
    home.write(".claude/settings.json", MINE);
    let said = home.run(&["hook", "install"]);
    assert!(
        said.starts_with("installed in $HOME/.claude/settings.json: SessionStart, Stop, SubagentStop, PreCompact, SessionEnd\n"),
        "{said}"
    );
    let text = fs::read_to_string(settings(&home)).unwrap();
    assert!(
        text.contains("// mine") && text.contains("say done"),
        "{text}"
    );
    assert_eq!(text.matches(" hook\"").count(), 5);
    let again = home.run(&["hook", "install"]);
    assert!(again.starts_with("already installed"), "{again}");
    let live = home.run(&["hook", "install", "--live"]);
    assert!(live.contains("PermissionRequest"), "{live}");
    assert!(
        home.run(&["hook", "uninstall"])
            .starts_with("removed from $HOME/.claude/settings.json")
    );
    assert_eq!(fs::read_to_string(settings(&home)).unwrap(), MINE);
    let none = home.run(&["hook", "uninstall"]);
    assert!(
        none.contains("the hook is not installed") && none.contains("--- status 1"),
        "{none}"
    );
}

#[test]
fn settings_that_we_made_are_gone_again() {
    let home = home();
    home.run(&["hook", "install"]);
    assert!(settings(&home).exists());
    home.run(&["hook", "uninstall"]);
    assert!(!settings(&home).exists());
}

#[test]
fn what_others_changed_in_between_stays() {
    let home = home();
    home.write(".claude/settings.json", MINE);
    home.run(&["hook", "install"]);
    let text = fs::read_to_string(settings(&home))
        .unwrap()
        .replace("\"opus\"", "\"sonnet\"");
    fs::write(settings(&home), text).unwrap();
    home.run(&["hook", "uninstall"]);
    assert_eq!(
        fs::read_to_string(settings(&home)).unwrap(),
        MINE.replace("\"opus\"", "\"sonnet\"")
    );
}

#[test]
fn an_install_can_be_undone_like_any_edit() {
    let home = home();
    home.write(".claude/settings.json", MINE);
    home.run(&["hook", "install"]);
    let undone = home.run(&["undo"]);
    assert!(
        undone.contains("undone 1: install the hook in $HOME/.claude/settings.json"),
        "{undone}"
    );
    assert_eq!(fs::read_to_string(settings(&home)).unwrap(), MINE);
    // What was noted then does not count any more.
    home.write(".claude/settings.json", "{\"a\": 1}");
    home.run(&["hook", "install"]);
    home.run(&["hook", "uninstall"]);
    assert_eq!(fs::read_to_string(settings(&home)).unwrap(), "{\"a\": 1}");
}

#[test]
fn broken_settings_are_named_with_the_line_and_left_alone() {
    let home = home();
    let broken = "{\n  \"a\": 1,\n  \"b\" 2\n}\n";
    home.write(".claude/settings.json", broken);
    for args in [["hook", "install"], ["hook", "uninstall"]] {
        assert_eq!(
            home.run(&args),
            "--- stderr\nError: `$HOME/.claude/settings.json` is not a valid settings file: line 3, column 7: expected a colon\nHint: fix it first; nothing was changed\n--- status 2\n"
        );
    }
    assert_eq!(fs::read_to_string(settings(&home)).unwrap(), broken);
    let status = home.run(&["hook", "status"]);
    assert!(status.contains("line 3, column 7"), "{status}");
    fs::write(settings(&home), b"{\n\"a\": \"\xff\"}").unwrap();
    assert!(
        home.run(&["hook", "install"])
            .contains("line 2 is not UTF-8")
    );
}

#[cfg(unix)]
#[test]
fn settings_behind_a_link_stay_behind_it() {
    let home = home();
    let target = home.write("dotfiles/claude.json", "{}\n");
    fs::create_dir_all(home.claude_dir()).unwrap();
    std::os::unix::fs::symlink(&target, settings(&home)).unwrap();
    home.run(&["hook", "install"]);
    assert!(fs::symlink_metadata(settings(&home)).unwrap().is_symlink());
    assert!(
        fs::read_to_string(&target)
            .unwrap()
            .contains("unspool hook")
    );
    home.run(&["hook", "uninstall"]);
    assert!(fs::symlink_metadata(settings(&home)).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), "{}\n");
    fs::remove_file(&target).unwrap();
    let said = home.run(&["hook", "install"]);
    assert!(said.contains("is a broken symlink"), "{said}");
}

#[test]
fn a_project_has_settings_of_its_own() {
    let home = home();
    let project = home.work_dir();
    fs::create_dir_all(project.join(".git")).unwrap();
    let said = home.run(&["hook", "install", "--scope", "project"]);
    assert!(
        said.contains("installed in $HOME/project/.claude/settings.json"),
        "{said}"
    );
    assert!(said.contains("--scope local"), "{said}");
    let local = home.run(&["hook", "install", "--scope", "local"]);
    assert!(
        local.contains("$HOME/project/.claude/settings.local.json"),
        "{local}"
    );
    assert!(!settings(&home).exists());
    let gone = home.run(&["hook", "uninstall"]);
    assert_eq!(gone.matches("removed from").count(), 2, "{gone}");
}

#[test]
fn an_older_client_is_not_given_events_that_it_does_not_know() {
    let home = home();
    let line = r#"{"type":"user","uuid":"a","parentUuid":null,"version":"2.0.30","sessionId":"s","message":{"role":"user","content":"hi"}}"#;
    home.transcript("/home/dev/x", ID, format!("{line}\n"));
    let said = home.run(&["hook", "install", "--live"]);
    let text = fs::read_to_string(settings(&home)).unwrap();
    assert!(
        text.contains("PreToolUse") && !text.contains("PermissionRequest"),
        "{text}"
    );
    assert!(said.contains("client 2.0.30"), "{said}");
    let newer = line.replace("2.0.30", "2.1.325");
    home.transcript("/home/dev/x", ID, format!("{newer}\n"));
    home.run(&["hook", "install", "--live"]);
    let text = fs::read_to_string(settings(&home)).unwrap();
    assert!(
        text.contains("PermissionRequest") && text.contains("StopFailure"),
        "{text}"
    );
}

#[test]
fn another_exporter_is_named() {
    let home = home();
    let other = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"pnpm dlx github:elct9620/cc-langfuse"}]}]}}"#;
    home.write(".claude/settings.json", other);
    let said = home.run(&["hook", "install"]);
    assert!(
        said.contains("cc-langfuse`, so turns would be sent twice"),
        "{said}"
    );
    let rows = home.output(&["hook", "status", "--json"]);
    let text = String::from_utf8(rows.stdout).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        first["other_exporters"][0],
        "pnpm dlx github:elct9620/cc-langfuse"
    );
    assert_eq!(
        (&first["scope"], &first["installed"]),
        (&json!("user"), &json!(true))
    );
}

#[test]
fn the_status_says_what_is_there_and_what_happened() {
    let mut home = home_with_session();
    home.set("TRACE_TO_LANGFUSE", "true");
    tell(
        &home,
        &["hook"],
        event(&home, "SessionStart", json!({"source": "startup"})).as_bytes(),
    );
    let rows = home.output(&["hook", "status", "--json"]);
    let text = String::from_utf8(rows.stdout).unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["installed"], false);
    assert_eq!(rows[0]["last_event"]["event"], "SessionStart");
    assert_eq!(rows[0]["sending"]["wanted"], true);
    assert_eq!(rows[0]["sending"]["ready"], false);
    assert!(
        rows[0]["last_log"]
            .as_str()
            .unwrap()
            .contains("LANGFUSE_PUBLIC_KEY")
    );
    // The settings of the client may hold what is missing.
    home.write(
        ".claude/settings.json",
        r#"{"env":{"CC_LANGFUSE_PUBLIC_KEY":"pk-lf-x","LANGFUSE_SECRET_KEY":"sk-lf-secret","LANGFUSE_HOST":"https://me:word@lf.example"}}"#,
    );
    home.run(&["hook", "install", "--live"]);
    let status = home.run(&["hook", "status"]);
    assert!(
        status.contains("user     export, live  $HOME/.claude/settings.json"),
        "{status}"
    );
    assert!(status.contains("sending     on:"), "{status}");
    assert!(status.contains("to https://lf.example/"), "{status}");
    assert!(!status.contains("sk-lf-secret"), "{status}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let home = home();
    let said = home.run(&["hook", "install", "--dry-run"]);
    assert!(said.starts_with("would be installed in"), "{said}");
    assert!(!settings(&home).exists() && !home.unspool_dir().join("undo").exists());
}
