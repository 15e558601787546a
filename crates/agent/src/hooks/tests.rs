use super::*;
use crate::settings::SettingsPaths;
use serde_json::json;
use unspool_testkit::wait::wait_until;

struct World {
    temp: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        World {
            temp: tempfile::tempdir().unwrap(),
        }
    }

    fn load(&self, hooks: Value) -> Result<SessionHooks, SettingsError> {
        let places = SettingsPaths {
            user: self.temp.path().join("config"),
            managed: self.temp.path().join("managed.json"),
            project: self.temp.path().to_path_buf(),
            given: Some(json!({ "hooks": hooks }).to_string()),
        };
        let settings = SessionSettings::load(&places).unwrap();
        SessionHooks::load(&settings, self.temp.path(), None)
    }

    fn run(&self, event: &str, commands: &[&str]) -> HookResults {
        let hooks: Vec<Value> = commands
            .iter()
            .map(|command| json!({"type": "command", "command": command}))
            .collect();
        let hooks = self.load(json!({ event: [{"hooks": hooks}] })).unwrap();
        let input = json!({"hook_event_name": event, "cwd": self.temp.path()});
        hooks.run(event, None, &input, &StopSignal::new())
    }
}

#[test]
fn a_hook_gets_the_event_on_its_standard_input() {
    let said = World::new().run("UserPromptSubmit", &["cat | tr -d '{}'"]);
    assert!(said.context[0].contains("\"hook_event_name\":\"UserPromptSubmit\""));
}

#[test]
fn code_two_blocks_with_the_reason_on_standard_error() {
    let world = World::new();
    let hooks = world
        .load(json!({"PreToolUse": [{"matcher": "Bash", "hooks": [
            {"type": "command", "command": "echo no >&2; exit 2"}]}]}))
        .unwrap();
    let said = hooks.run("PreToolUse", Some("Bash"), &json!({}), &StopSignal::new());
    assert_eq!(
        said.block.as_deref(),
        Some("PreToolUse:Bash hook error: [echo no >&2; exit 2]: no")
    );
    assert_eq!(said.allow, Some(HookDecision::Deny));
}

#[test]
fn code_two_stops_nothing_where_nothing_can_be_stopped() {
    let said = World::new().run("Notification", &["exit 2"]);
    assert_eq!((said.block, said.errors.len()), (None, 1));
}

#[test]
fn any_other_code_is_told_and_stops_nothing() {
    let said = World::new().run("PreToolUse", &["echo bad >&2; exit 1", "/does/not/exist"]);
    assert_eq!((said.block, said.allow, said.errors.len()), (None, None, 2));
    assert!(said.errors[0].ends_with("]: bad"));
}

#[test]
fn json_decides_changes_and_adds() {
    let answer = json!({"systemMessage": "hello", "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": {"command": "ls"}, "additionalContext": "more"}});
    let said = World::new().run("PreToolUse", &[&format!("echo '{answer}'")]);
    assert_eq!(said.allow, Some(HookDecision::Allow));
    assert_eq!(said.updated_input, Some(json!({"command": "ls"})));
    assert_eq!(said.context, ["more"]);
    assert_eq!(said.system_message.as_deref(), Some("hello"));
}

#[test]
fn a_hook_can_end_all_work() {
    let said = World::new().run(
        "Stop",
        &[r#"echo '{"continue": false, "stopReason": "enough"}'"#],
    );
    assert_eq!(said.stop.as_deref(), Some("enough"));
}

#[test]
fn the_strictest_of_several_hooks_counts() {
    let decide = |word: &str| {
        format!(
            r#"echo '{{"hookSpecificOutput": {{"permissionDecision": "{word}", "permissionDecisionReason": "r"}}}}'"#
        )
    };
    let (allow, ask, deny) = (decide("allow"), decide("ask"), decide("deny"));
    let world = World::new();
    assert_eq!(
        world.run("PreToolUse", &[&allow, &ask]).allow,
        Some(HookDecision::Ask)
    );
    let said = world.run("PreToolUse", &[&deny, &allow, &ask]);
    assert_eq!(
        (said.allow, said.block.as_deref()),
        (Some(HookDecision::Deny), Some("r"))
    );
}

#[test]
fn a_request_for_permission_is_answered_in_its_own_shape() {
    let answer =
        json!({"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not now"}}});
    let said = World::new().run("PermissionRequest", &[&format!("echo '{answer}'")]);
    assert_eq!(
        (said.allow, said.block.as_deref()),
        (Some(HookDecision::Deny), Some("not now"))
    );
}

#[test]
fn plain_text_reaches_the_model_only_where_it_should() {
    let world = World::new();
    assert_eq!(world.run("SessionStart", &["echo hi"]).context, ["hi"]);
    assert!(world.run("PostToolUse", &["echo hi"]).context.is_empty());
    let said = world.run("SessionStart", &["echo '{broken'"]);
    assert_eq!((said.context.len(), said.errors.len()), (0, 1));
}

#[test]
fn the_same_command_runs_once_and_several_run_at_once() {
    let world = World::new();
    let folder = world.temp.path().display();
    // Each waits for the other.
    let wait = |own: &str, other: &str| {
        format!("cd {folder}; echo x >> {own}; while [ ! -e {other} ]; do sleep 0.01; done")
    };
    let (one, two) = (wait("a", "b"), wait("b", "a"));
    let said = world.run("Stop", &[&one, &one, &two]);
    assert_eq!(said.ran.len(), 2);
    assert!(said.ran.iter().all(|ran| ran.exit == Some(0)));
    let ran = std::fs::read_to_string(world.temp.path().join("a")).unwrap();
    assert_eq!(ran, "x\n");
}

#[test]
fn a_matcher_is_a_list_of_names_or_a_pattern() {
    let fits = |matcher: &str, about: &str| HookMatcher::read(matcher).unwrap().fits(Some(about));
    assert!(fits("Edit|Write", "Write") && !fits("Edit|Write", "NotebookWrite"));
    assert!(fits("", "x") && fits("*", "x"));
    assert!(fits("Notebook.*", "NotebookEdit") && fits("mcp__.*__write", "mcp__a__write"));
    assert!(fits("Task", "Agent"));
    assert!(HookMatcher::read("(").is_err());
}

/// Whether a process does something.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn a_hook_that_takes_too_long_is_ended_with_its_group_and_blocks_nothing() {
    let world = World::new();
    let note = world.temp.path().join("pid");
    let command = format!("sleep 300 & echo $! > {}; sleep 300", note.display());
    let hooks = world
        .load(json!({"PreToolUse": [{"hooks": [
            {"type": "command", "command": command, "timeout": 1}]}]}))
        .unwrap();
    let said = hooks.run("PreToolUse", None, &json!({}), &StopSignal::new());
    assert_eq!((said.block, said.errors.len()), (None, 1));
    // A machine that is very busy may not even have started it.
    if let Ok(pid) = std::fs::read_to_string(&note) {
        wait_until("what it started is gone", || !lives(pid.trim()));
    }
}

#[test]
fn a_hook_ends_when_all_work_does() {
    let world = World::new();
    let note = world.temp.path().join("began");
    let command = format!("touch {}; sleep 300", note.display());
    let hooks = world
        .load(json!({"Stop": [{"hooks": [{"type": "command", "command": command}]}]}))
        .unwrap();
    let stop = StopSignal::new();
    let other = stop.clone();
    thread::spawn(move || {
        wait_until("it runs", || note.exists());
        other.tell();
    });
    let said = hooks.run("Stop", None, &json!({}), &stop);
    assert!(said.errors[0].contains("interrupted"), "{said:?}");
}

#[test]
fn what_a_hook_says_is_cut_and_much_output_does_not_hold_it_up() {
    let said = World::new().run("SessionStart", &["head -c 5000000 /dev/zero | tr '\\0' x"]);
    assert_eq!(said.ran[0].exit, Some(0));
    assert!(said.context[0].chars().count() < LONGEST + 60);
    assert!(said.context[0].ends_with("characters truncated]"));
}

#[test]
fn a_hook_that_reads_nothing_and_leaves_something_running_holds_nobody_up() {
    let world = World::new();
    let command = "sleep 300 & echo $! >&2; echo '{\"systemMessage\": \"left\"}'";
    let hooks = world
        .load(json!({"Stop": [{"hooks": [{"type": "command", "command": command}]}]}))
        .unwrap();
    let input = json!({"text": "x".repeat(1 << 20)});
    let said = hooks.run("Stop", None, &input, &StopSignal::new());
    assert_eq!(said.ran[0].exit, Some(0));
    assert_eq!(said.system_message.as_deref(), Some("left"));
    let left = said.ran[0].stderr.trim();
    assert!(lives(left), "nobody waited for it");
    let left = rustix::process::Pid::from_raw(left.parse().unwrap()).unwrap();
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn hooks_of_the_wrong_shape_are_an_error() {
    let world = World::new();
    for hooks in [
        json!([]),
        json!({"Stop": {}}),
        json!({"Stop": [{"matcher": "("  , "hooks": []}]}),
        json!({"Stop": [{"hooks": [{"type": "command"}]}]}),
        json!({"Stop": [{}]}),
    ] {
        assert!(world.load(hooks.clone()).is_err(), "{hooks}");
    }
    let other = world
        .load(json!({"Stop": [{"hooks": [{"type": "prompt"}]}]}))
        .unwrap();
    assert_eq!((other.notes.len(), other.has("Stop")), (1, false));
}

#[test]
fn what_the_client_would_run_is_told_from_what_nobody_knows() {
    let world = World::new();
    let notes = |event: &str, kind: &str| {
        let hooks = json!({event: [{"hooks": [{"type": kind, "command": "true"}]}]});
        world.load(hooks).unwrap().notes
    };
    for kind in ["http", "mcp_tool", "prompt", "agent"] {
        let told = notes("Stop", kind);
        assert!(
            told[0].ends_with(&format!("hooks of type {kind} are not run here")),
            "{told:?}"
        );
    }
    assert!(notes("Stop", "carrier")[0].ends_with("are not known here"));
    assert!(notes("TeammateIdle", "command").is_empty());
    assert!(notes("BrandNew", "command")[0].ends_with("no client has an event BrandNew"));
}
