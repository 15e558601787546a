//! A hundred thousand sessions in one home.

use std::path::Path;

use unspool_testkit::home::slug;
use unspool_testkit::script;

use super::AttackLog;
use crate::measure;

const SESSIONS: usize = 100_000;

/// More would mean that memory grows with texts instead of rows.
const MOST_MEGABYTES: f64 = 512.0;

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let claude = folder.path().join("claude");
    for number in 0..SESSIONS {
        // A thousand projects of a hundred sessions.
        let cwd = format!("/home/dev/p{}", number % 1_000);
        let id = format!("{number:08x}-0000-4000-8000-000000000001");
        let project = claude.join("projects").join(slug(&cwd));
        if number < 1_000 {
            std::fs::create_dir_all(&project).map_err(|error| error.to_string())?;
        }
        let talk = format!("(cwd={cwd}, session={id})\nyou: question {number}\nclaude: answer");
        std::fs::write(project.join(format!("{id}.jsonl")), script::jsonl(&talk))
            .map_err(|error| error.to_string())?;
    }
    let own = folder.path().join("unspool");
    let variables: [(&str, &Path); 3] = [
        ("HOME", folder.path()),
        ("CLAUDE_CONFIG_DIR", &claude),
        ("UNSPOOL_HOME", &own),
    ];
    let last = format!("question {}", SESSIONS - 1);
    let commands: &[&[&str]] = &[
        &["ls"],
        &["ls", "--json"],
        &["search", &last],
        &["usage"],
        &["usage"],
        &["status"],
        &["check", "--all"],
        &["scan", "--all"],
    ];
    for command in commands {
        let cost = measure::cost(program, command, &variables)?;
        eprintln!(
            "  {}: {:.0} MB, {:.1} s, status {}",
            command.join(" "),
            cost.peak,
            cost.wall,
            cost.status
        );
        log.held(
            cost.peak <= MOST_MEGABYTES && (0..=1).contains(&cost.status),
            || {
                format!(
                    "`{}` took {:.0} MB, status {}",
                    command.join(" "),
                    cost.peak,
                    cost.status
                )
            },
        );
    }
    Ok(())
}
