//! Bash: what it tells, and that nothing stays behind.

use std::path::{Path, PathBuf};

use serde_json::json;
use unspool_agent::tool_host::ToolHost;
use unspool_testkit::wait::wait_until;

use crate::host::{Session, text};

/// How many processes have this text among their arguments.
pub fn alive(mark: &str) -> usize {
    let read = std::fs::read_dir("/proc").unwrap().flatten();
    let has = read.filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let own = std::process::id().to_string();
        line.contains(mark) && entry.file_name().to_string_lossy() != own
    });
    has.count()
}

/// A number of seconds nobody else sleeps: a mark that stands among the arguments.
pub fn mark() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}.{}{next:03}", 6_000 + next, std::process::id())
}

#[test]
fn both_outputs_come_as_they_are_written() {
    let session = Session::new();
    let outcome = session.bash("echo hi; echo warn >&2; echo more");
    assert_eq!(text(&outcome), "hi\nwarn\nmore");
    assert_eq!(outcome.is_error, Some(false));
    assert_eq!(
        outcome.result,
        json!({"stdout": "hi\nwarn\nmore", "stderr": "", "interrupted": false,
               "isImage": false, "noOutputExpected": false})
    );
}

#[test]
fn nothing_written_is_said() {
    let session = Session::new();
    assert_eq!(
        text(&session.bash("true")),
        "(Bash completed with no output)"
    );
    let silent = session.bash("mkdir -p x/y");
    assert_eq!(silent.result["noOutputExpected"], true);
}

#[test]
fn a_code_other_than_zero_is_an_error_with_its_output() {
    let session = Session::new();
    let outcome = session.bash("echo out; exit 3");
    assert_eq!(text(&outcome), "Exit code 3\nout");
    assert_eq!(
        (outcome.is_error, outcome.result),
        (Some(true), json!("Error: Exit code 3\nout"))
    );
    assert_eq!(text(&session.bash("false")), "Exit code 1");
    assert!(text(&session.bash("if then")).starts_with("Exit code "));
    assert_eq!(text(&session.bash("kill -9 $$")), "Exit code 137");
}

#[test]
fn finding_nothing_is_no_error() {
    let session = Session::new();
    let outcome = session.bash("echo a | grep b");
    assert_eq!(outcome.is_error, Some(false));
    assert_eq!(text(&outcome), "(Bash completed with no output)");
    assert_eq!(
        outcome.result["returnCodeInterpretation"],
        "No matches found"
    );
}

#[test]
fn a_folder_inside_the_project_stays_and_one_outside_does_not() {
    let session = Session::new();
    session.write("deep/er/x", "");
    session.bash("cd deep/er");
    assert_eq!(text(&session.bash("pwd")), session.path("deep/er"));
    let outcome = session.bash("cd / && echo moved");
    let reset = format!("\nShell cwd was reset to {}", session.project.display());
    assert_eq!(outcome.result["stderr"], json!(reset));
    assert_eq!(text(&outcome), format!("moved{reset}"));
    assert_eq!(session.cwd(), session.project);
    session.bash("cd deep && exit 0");
    assert_eq!(session.cwd(), session.project.join("deep"));
    std::fs::remove_dir_all(session.project.join("deep")).unwrap();
    assert!(text(&session.bash("pwd")).contains("no longer exists"));
    assert_eq!(
        text(&session.bash("pwd")),
        session.project.display().to_string()
    );
}

#[test]
fn a_command_sees_no_input_no_terminal_and_no_variables_of_another() {
    let session = Session::new();
    assert_eq!(text(&session.bash("cat; echo end; X=1")), "end");
    assert_eq!(text(&session.bash("echo [$X] [$1] [$#]")), "[] [] [0]");
    let outcome = session.bash("(echo x >/dev/tty) 2>&1; true");
    assert!(text(&outcome).contains("/dev/tty"), "{}", text(&outcome));
    assert_eq!(
        text(&session.bash("cat <<'E'\na \"$b\" 'c'\nE")),
        "a \"$b\" 'c'"
    );
}

#[test]
fn bytes_that_are_no_text_and_escapes_are_told() {
    let session = Session::new();
    let outcome = session.bash(r"printf 'a\xffb\033[1mc'");
    assert_eq!(text(&outcome), "a\u{fffd}b\u{1b}[1mc");
}

#[test]
fn long_output_goes_to_a_file() {
    let session = Session::new();
    let outcome = session.bash("head -c 60000 /dev/zero | tr '\\0' x; echo");
    let path = outcome.result["persistedOutputPath"].as_str().unwrap();
    assert!(Path::new(path).starts_with(session.beside().join("tool-results")));
    assert_eq!(std::fs::metadata(path).unwrap().len(), 60_001);
    assert_eq!(outcome.result["persistedOutputSize"], 60_001);
    assert_eq!(outcome.result["stdout"].as_str().unwrap().len(), 30_000);
    let expected = format!(
        "<persisted-output>\nOutput too large (58.6KB). Full output saved to: {path}\n\nPreview (first 2KB):\n{}\n...\n</persisted-output>",
        "x".repeat(2_000)
    );
    assert_eq!(text(&outcome), expected);
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(Path::new(path)), 0o600);
    assert_eq!(mode(Path::new(path).parent().unwrap()), 0o700);
}

#[test]
fn thirty_thousand_characters_of_more_bytes_are_still_told() {
    let session = Session::new();
    let outcome = session.bash("for i in $(seq 3000); do printf '€€€€€€€€€€'; done");
    assert_eq!(text(&outcome).chars().count(), 30_000);
    assert!(
        !session
            .beside()
            .join("tool-results")
            .read_dir()
            .is_ok_and(|mut it| it.next().is_some())
    );
}

#[test]
fn a_failure_with_long_output_shows_both_ends() {
    let session = Session::new();
    let outcome = session.bash("seq 100000; exit 2");
    let told = text(&outcome);
    assert!(told.starts_with("Exit code 2\n1\n2\n") && told.ends_with("\n100000"));
    assert!(told.contains("truncated") && told.len() < 11_000);
}

#[test]
fn fifty_megabytes_are_counted_and_saved_and_not_held() {
    let session = Session::new();
    let outcome = session.bash("head -c 52428800 /dev/zero | tr '\\0' y");
    assert_eq!(outcome.result["persistedOutputSize"], 52_428_800);
    let path = outcome.result["persistedOutputPath"].as_str().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 52_428_800);
    assert!(text(&outcome).starts_with("<persisted-output>\nOutput too large (50MB)."));
}

#[test]
fn a_command_that_takes_too_long_goes_on_in_the_background() {
    let session = Session::new();
    let call = json!({"command": "echo first; read -t 2 <> <(:); echo second", "timeout": 300});
    let outcome = session.call("Bash", call);
    let id = outcome.result["backgroundTaskId"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(outcome.result["timedOutAfterMs"], 300);
    assert_eq!(outcome.result["stdout"], "first");
    assert!(text(&outcome).starts_with(&format!(
        "Command did not complete within its 1s timeout and was moved to the background (ID: {id}). Output is being written to: "
    )));
    let output = session.call("TaskOutput", json!({"task_id": id, "timeout": 20_000}));
    assert!(
        text(&output).contains("<status>completed</status>"),
        "{}",
        text(&output)
    );
    assert!(text(&output).contains("<output>\nfirst\nsecond\n</output>"));
}

#[test]
fn waiting_is_ended_when_its_time_is_over() {
    let session = Session::new();
    let mark = mark();
    let call = json!({"command": format!("sleep {mark}"), "timeout": 1000});
    let outcome = session.call("Bash", call);
    assert_eq!(text(&outcome), "Exit code 143\nCommand timed out after 1s");
    assert_eq!(outcome.is_error, Some(true));
    assert_eq!(alive(&mark), 0);
}

#[test]
fn a_command_in_the_background_is_looked_at_and_ended() {
    let session = Session::new();
    let mark = mark();
    let command = format!("echo up; sleep {mark}");
    let outcome = session.call(
        "Bash",
        json!({"command": command, "run_in_background": true}),
    );
    let id = outcome.result["backgroundTaskId"]
        .as_str()
        .unwrap()
        .to_owned();
    let task = session.kept().find(&id).unwrap();
    assert_eq!(
        text(&outcome),
        format!(
            "Command running in background with ID: {id}. Output is being written to: {}",
            task.file().display()
        )
    );
    wait_until("it writes", || {
        std::fs::read(task.file()).unwrap() == b"up\n"
    });
    let output = session.call("TaskOutput", json!({"task_id": id, "block": false}));
    assert!(text(&output).starts_with("<retrieval_status>not_ready</retrieval_status>"));
    let output = session.call("BashOutput", json!({"bash_id": id}));
    assert!(text(&output).starts_with("<status>running</status>\n\n<stdout>\nup\n</stdout>"));
    let output = session.call("BashOutput", json!({"bash_id": id}));
    assert!(!text(&output).contains("<stdout>"), "told twice");
    let ended = session.call("KillShell", json!({"shell_id": id}));
    assert!(
        text(&ended).starts_with("Successfully stopped shell"),
        "{}",
        text(&ended)
    );
    wait_until("all to end", || alive(&mark) == 0);
    assert!(text(&session.call("TaskStop", json!({"task_id": id}))).contains("status: killed"));
    assert!(session.kept().news().is_empty(), "who ended it knows");
    let unknown = session.call("KillBash", json!({"shell_id": "nope"}));
    assert_eq!(
        text(&unknown),
        "<tool_use_error>No shell found with ID: nope</tool_use_error>"
    );
}

#[test]
fn the_end_of_a_command_in_the_background_is_news_once() {
    let session = Session::new();
    let call = json!({"command": "exit 4", "description": "give up", "run_in_background": true});
    let outcome = session.call("Bash", call);
    let id = outcome.result["backgroundTaskId"].as_str().unwrap();
    let kept = session.kept();
    wait_until("it is done", || kept.find(id).unwrap().done().is_some());
    let news = kept.news();
    assert_eq!(news.len(), 1);
    assert!(news[0].contains(&format!("<task-id>{id}</task-id>")));
    assert!(news[0].contains("<status>failed</status>"));
    assert!(news[0].contains("Background command \"give up\" failed with exit code 4"));
    assert!(kept.news().is_empty());
}

#[test]
fn progress_is_told_from_the_second_second_on() {
    let session = Session::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("two reports", || {
                session.progress.lock().unwrap().len() >= 2
            });
            std::fs::write(session.project.join("go"), "").unwrap();
        });
        session.bash("echo line 1; while [ ! -e go ]; do sleep 0.05; done");
    });
    let told = session.progress.lock().unwrap();
    let seconds: Vec<u64> = told
        .iter()
        .filter_map(|data| data["elapsedTimeSeconds"].as_u64())
        .collect();
    assert!(
        seconds[0] >= 2 && seconds.is_sorted_by(|a, b| a < b),
        "{seconds:?}"
    );
    let keys: Vec<&String> = told[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "type",
            "output",
            "fullOutput",
            "elapsedTimeSeconds",
            "totalLines"
        ]
    );
    assert_eq!(told[0]["type"], "bash_progress");
    assert_eq!(
        (&told[0]["output"], &told[0]["totalLines"]),
        (&json!("line 1"), &json!(1))
    );
}

/// Stops a command once it is ready; what the call said.
fn stop(session: &Session, command: &str) -> String {
    let ready = session.project.join("ready");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| text(&session.bash(command)).to_owned());
        wait_until("it runs", || ready.exists());
        session.stop.tell();
        running.join().unwrap()
    })
}

#[test]
fn two_hundred_grandchildren_end_and_the_call_returns() {
    let session = Session::new();
    let mark = mark();
    let command = format!(
        "for i in $(seq 200); do (sleep {mark} & wait) & done; while [ $(pgrep -fc '^sleep {mark}') -lt 200 ]; do sleep 0.05; done; touch ready; wait"
    );
    let said = stop(&session, &command);
    assert_eq!(
        said,
        "Exit code 137\n[Request interrupted by user for tool use]"
    );
    wait_until("all to end", || alive(&mark) == 0);
}

#[test]
fn who_ignores_being_asked_and_who_left_the_group_end_too() {
    let session = Session::new();
    let mark = mark();
    let command = format!(
        "trap '' TERM INT HUP; setsid sleep {mark} & (setsid nohup bash -c \"trap '' TERM; sleep {mark}; sleep {mark}\" & ); sleep 0.3; touch ready; sleep {mark}; sleep {mark}"
    );
    stop(&session, &command);
    wait_until("all to end", || alive(&mark) == 0);
}

#[test]
fn what_a_command_leaves_behind_lives_until_the_session_ends() {
    let session = Session::new();
    let mark = mark();
    let outcome = session.bash(&format!("sleep {mark} & echo started"));
    assert_eq!(text(&outcome), "started");
    assert!(alive(&mark) > 0);
    session.kept().end();
    wait_until("all to end", || alive(&mark) == 0);
}

#[test]
fn who_closes_its_output_is_still_waited_for() {
    let session = Session::new();
    let outcome = session.bash("exec >&- 2>&-; sleep 0.3; touch done; exit 5");
    assert_eq!(text(&outcome), "Exit code 5");
    assert!(session.project.join("done").exists());
}

#[test]
fn many_commands_at_once_each_get_their_own_output() {
    let session = Session::new();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20)
            .map(|at| {
                let session = &session;
                scope.spawn(move || {
                    let outcome = session.bash(&format!("seq {at}000 {at}100; echo end {at}"));
                    assert!(text(&outcome).ends_with(&format!("end {at}")));
                })
            })
            .collect();
        for call in calls {
            call.join().unwrap();
        }
    });
}

#[test]
fn the_note_of_a_folder_does_not_stay() {
    let session = Session::new();
    let outcome = session.bash("ls -l $__unspool_cwd; echo $__unspool_cwd");
    let (listed, path) = text(&outcome).rsplit_once('\n').unwrap();
    assert!(listed.starts_with("-rw-------"), "{listed}");
    wait_until("the file is gone", || !Path::new(path).exists());
}

#[test]
fn what_stands_before_the_shell_runs_it() {
    let session = Session::new();
    *session.before.lock().unwrap() = vec!["/usr/bin/env".into(), "FENCED=yes".into()];
    assert_eq!(text(&session.bash("echo $FENCED")), "yes");
    *session.before.lock().unwrap() = vec!["/no/such/program".into()];
    let outcome = session.bash("echo ran");
    assert!(
        text(&outcome).starts_with("cannot start the command: "),
        "{}",
        text(&outcome)
    );
    assert_eq!(outcome.is_error, Some(true));
}

#[test]
fn a_guard_that_is_killed_takes_its_shell_with_it() {
    let session = Session::new();
    let mark = mark();
    let outcome = session.bash(&format!("echo $__unspool_cwd; kill -9 $PPID; sleep {mark}"));
    let told = text(&outcome).strip_prefix("Exit code 137\n").unwrap();
    std::fs::remove_file(told).unwrap();
    wait_until("all to end", || alive(&mark) == 0);
}

#[test]
fn output_that_cannot_be_saved_does_not_end_the_command() {
    let session = Session::new();
    std::fs::write(session.beside(), "a file where a folder should be").unwrap();
    let outcome = session.bash("seq 100000; touch done");
    assert!(session.project.join("done").exists());
    assert!(
        text(&outcome).contains("It could not be saved"),
        "{}",
        text(&outcome)
    );
    let call = json!({"command": "sleep 5", "run_in_background": true});
    assert!(text(&session.call("Bash", call)).contains("its output cannot be written"));
}

#[test]
fn a_command_has_its_three_streams_and_no_way_to_its_guard() {
    let session = Session::new();
    let outcome = session.bash("cd /proc/$$/fd; for fd in *; do echo $fd $(readlink $fd); done");
    let stream = |number: &str| {
        let mut lines = text(&outcome)
            .lines()
            .filter_map(|line| line.split_once(' '));
        lines
            .find(|(fd, _)| *fd == number)
            .map(|(_, to)| to.to_owned())
    };
    assert_eq!(stream("0").as_deref(), Some("/dev/null"));
    assert!(stream("1").is_some_and(|to| to.starts_with("pipe:")));
    assert_eq!(stream("1"), stream("2"));
    assert!(!text(&outcome).contains("socket:"), "{}", text(&outcome));
}

#[test]
fn a_guard_does_not_bear_the_name_of_the_program() {
    let session = Session::new();
    let outcome = session.bash("cat /proc/$PPID/comm; tr '\\0' ' ' </proc/$PPID/cmdline");
    let (name, words) = text(&outcome).split_once('\n').unwrap();
    assert_eq!(name, "shell-guard");
    assert!(words.starts_with("shell-guard __guard "), "{words}");
}

#[test]
fn what_is_left_behind_may_write_for_ever() {
    let session = Session::new();
    let mark = mark();
    let outcome = session.bash(&format!("echo started; yes {mark} & sleep 0.2"));
    assert!(
        outcome.result["stdout"]
            .as_str()
            .unwrap()
            .starts_with("started\n")
    );
    assert!(alive(&mark) > 0);
    session.kept().end();
    wait_until("all to end", || alive(&mark) == 0);
}

/// A repository of its own whose configuration and hooks leave a file behind.
fn trapped_repository(session: &Session) -> PathBuf {
    let mark = session.project.join("../ran").canonicalize();
    let mark = mark.unwrap_or_else(|_| session.project.parent().unwrap().join("ran"));
    let trap = session.project.parent().unwrap().join("trap");
    std::fs::write(&trap, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
    let run = |command: &str| {
        let outcome = session.bash(command);
        assert_ne!(
            outcome.is_error,
            Some(true),
            "{command}: {}",
            text(&outcome)
        );
    };
    run("chmod +x ../trap && git init -q . && git config user.name x && git config user.email x@y");
    run("git config core.fsmonitor ../trap && cp ../trap .git/hooks/pre-commit && rm -f ../ran");
    mark
}

#[test]
fn git_that_a_rule_allows_runs_no_hook_and_no_fsmonitor() {
    let session = Session::new();
    let mark = trapped_repository(&session);
    for command in [
        "git status",
        "echo x > a && git add a",
        "git commit -q -m x",
        "git log --oneline",
    ] {
        let outcome = session.bash(command);
        assert_ne!(
            outcome.is_error,
            Some(true),
            "{command}: {}",
            text(&outcome)
        );
        assert!(!mark.exists(), "{command}");
    }
    assert!(text(&session.bash("git log --oneline")).contains('x'));
}

#[test]
fn git_that_a_person_says_yes_to_runs_their_hooks() {
    let session = Session::new();
    let mark = trapped_repository(&session);
    *session.typed.lock().unwrap() = true;
    session.bash("git config core.fsmonitor '' && git commit -q --allow-empty -m x");
    assert!(mark.exists());
}
