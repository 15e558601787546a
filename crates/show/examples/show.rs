//! Prints a session, for looking at it: `show FILE [WIDTH] [color] [full] [thinking] [agents] [last]`.

use std::collections::HashMap;
use std::path::Path;

use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::transcript::{AgentTranscript, transcript};
use unspool_model::view::turn_selection::TurnSelection;
use unspool_show::{ConversationStyle, ToolDetail, conversation};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let Some(path) = arguments.first().map(Path::new) else {
        return Ok(());
    };
    let (log, session) = open(path, TranscriptRole::Main)?;
    let files = agents(path)?;
    let mut map = HashMap::new();
    for (id, (log, session)) in &files {
        map.insert(
            id.clone(),
            AgentTranscript {
                session,
                source: log,
                call: None,
                run: None,
            },
        );
    }
    let last = "-1".parse().ok().filter(|_| has("last"));
    let pick = TurnSelection {
        turns: last.into_iter().collect(),
        agents: has("agents"),
    };
    let style = ConversationStyle {
        width: arguments
            .get(1)
            .and_then(|width| width.parse().ok())
            .unwrap_or(80),
        color: has("color"),
        thinking: has("thinking"),
        tools: if has("full") {
            ToolDetail::Full
        } else {
            ToolDetail::Short
        },
        ..ConversationStyle::default()
    };
    let items = transcript(&session, &log, &map, &pick);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    conversation(&mut out, &items, &style)?;
    std::io::Write::flush(&mut out)
}

fn open(path: &Path, role: TranscriptRole) -> std::io::Result<(Log, Session)> {
    let log = Log::new(std::fs::read(path)?);
    let session = Session::from_log(&log, role);
    Ok((log, session))
}

type File = (String, (Log, Session));

fn agents(path: &Path) -> std::io::Result<Vec<File>> {
    let beside = path.with_extension("").join("subagents");
    let folders = [Some(beside.as_path()), path.parent()];
    let mut files = Vec::new();
    for folder in folders
        .into_iter()
        .flatten()
        .filter(|folder| folder.is_dir())
    {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let is_file = path
                .extension()
                .is_some_and(|extension| extension == "jsonl");
            if let Some(id) = name.strip_prefix("agent-").filter(|_| is_file) {
                files.push((id.to_owned(), open(&path, TranscriptRole::Agent)?));
            }
        }
    }
    Ok(files)
}
