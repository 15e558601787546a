//! Our own program in the place of a command: fenced in, or away from the terminal.

use std::path::Path;
use std::process::Command;

use super::*;
use unspool_agent::hooks::SessionHooks;
use unspool_agent::sandbox::{self, SandboxSupport, WriteSandbox};
use unspool_agent::stop::StopSignal;

const SHIM: &str = env!("CARGO_BIN_EXE_unspool-fence");

#[test]
fn a_command_behind_the_fence_writes_only_inside() {
    if sandbox::support() != SandboxSupport::Yes {
        return;
    }
    let world = World::new();
    let fence = WriteSandbox {
        write: vec![world.path("repo")],
    };
    let before = fence.before(Path::new(SHIM));
    let run = |command: &str| {
        let mut start = Command::new(&before[0]);
        start.args(&before[1..]).args(["/bin/sh", "-c", command]);
        start.stderr(std::process::Stdio::null());
        start.status().unwrap().success()
    };
    let (inside, outside) = (world.path("repo/x"), world.path("other/x"));
    assert!(run(&format!(
        "echo x > {} && echo y > /dev/null",
        inside.display()
    )));
    assert!(!run(&format!("echo x > {}", outside.display())));
    assert!(inside.exists() && !outside.exists());
}

#[test]
fn a_command_does_not_run_when_its_fence_is_not_clear() {
    let world = World::new();
    let mark = world.path("other/ran");
    for fence in ["", "{}", "nonsense", r#"{"write": [1]}"#] {
        let mut start = Command::new(SHIM);
        start
            .args([sandbox::WORD, fence, "/usr/bin/touch"])
            .arg(&mark);
        let output = start.output().unwrap();
        assert_eq!(output.status.code(), Some(126), "{fence}");
    }
    assert!(!mark.exists());
}

#[test]
fn a_hook_is_in_a_session_that_whoever_keeps_it_leads() {
    let world = World::new();
    let hook = r#"read -r line < /proc/$$/stat; set -- $line; [ "$6" = "$PPID" ] && echo "alone""#;
    let hooks = json!({"SessionStart": [{"hooks": [{"type": "command", "command": hook}]}]});
    world.write(
        "config/settings.json",
        &json!({ "hooks": hooks }).to_string(),
    );
    let settings = SessionSettings::load(&world.places()).unwrap();
    let hooks = SessionHooks::load(&settings, &world.path("repo"), Some(Path::new(SHIM))).unwrap();
    let said = hooks.run(
        "SessionStart",
        Some("startup"),
        &json!({}),
        &StopSignal::new(),
    );
    assert_eq!(said.context, ["alone"], "{said:?}");
}

#[test]
fn a_hook_of_a_folder_that_is_not_trusted_does_not_run() {
    let world = World::new();
    let mark = world.path("other/ran");
    let command = format!("touch {}", mark.display());
    let hooks = json!({"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]});
    world.write(
        "repo/.claude/settings.json",
        &json!({ "hooks": hooks }).to_string(),
    );
    let mut settings = SessionSettings::load(&world.places()).unwrap();
    let run = |settings: &SessionSettings| {
        let hooks = SessionHooks::load(settings, &world.path("repo"), None).unwrap();
        hooks.run(
            "SessionStart",
            Some("startup"),
            &json!({}),
            &StopSignal::new(),
        );
        mark.exists()
    };
    assert!(!run(&settings));
    settings.trust(true);
    assert!(run(&settings));
}
