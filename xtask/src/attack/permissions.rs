//! The permission corpus: every command is put to the release program, and what is allowed is run
//! in a real shell by the test that holds both together.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use unspool_testkit::permission_corpus::{self, CorpusProject, Least, PermissionCase};

use super::AttackLog;

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let folder = tempfile::tempdir().map_err(told)?;
    let root = folder.path().canonicalize().map_err(told)?;
    let project = CorpusProject::plant(&root).map_err(told)?;
    // Where a case runs elsewhere, its directory would count as the project here.
    let cases = permission_corpus::cases();
    for case in cases.iter().filter(|case| case.cwd.is_empty()) {
        let got = verdict(program, &project, case)?;
        log.held(got >= case.least, || {
            let command = case.command.escape_debug();
            format!(
                "{}: `{command}` gets {got:?}, not {:?}",
                case.family, case.least
            )
        });
    }
    super::tests(log, "unspool-agent", "permission", "")
}

/// What the program says about a command.
fn verdict(
    program: &Path,
    project: &CorpusProject,
    case: &PermissionCase,
) -> Result<Least, String> {
    // An argument cannot hold it, and a shell cannot run it.
    if case.command.contains('\0') {
        return Ok(Least::Deny);
    }
    let permissions = json!({"allow": case.rules.allow, "deny": case.rules.deny});
    let settings = json!({ "permissions": permissions }).to_string();
    let output = Command::new(program)
        .args([
            "chat",
            "--json",
            "--permission-mode",
            case.mode,
            "--settings",
            &settings,
        ])
        .arg(format!("--explain-permission={}", case.command))
        .current_dir(project.project())
        .env("HOME", project.home())
        .env("CLAUDE_CONFIG_DIR", project.root.join("claude"))
        .env("UNSPOOL_HOME", project.root.join("unspool"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let row: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match row["verdict"].as_str() {
        Some("allow") => Ok(Least::Allow),
        Some("ask") => Ok(Least::Ask),
        Some("deny") => Ok(Least::Deny),
        _ => {
            let error = String::from_utf8_lossy(&output.stderr);
            let command = case.command.escape_debug();
            Err(format!("`{command}`: {} {}", output.status, error.trim()))
        }
    }
}
