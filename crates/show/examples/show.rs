//! Prints a session, for looking at it: `show FILE [WIDTH] [color] [full] [thinking] [agents] [last]`.

use std::collections::HashMap;
use std::path::Path;

use unspool_model::log::Log;
use unspool_model::session::{Role, Session};
use unspool_model::view::pick::Pick;
use unspool_model::view::transcript::{AgentFile, transcript};
use unspool_show::{Style, Tools, conversation};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let Some(path) = arguments.first().map(Path::new) else {
        return Ok(());
    };
    let (log, session) = open(path, Role::Main)?;
    let files = agents(path)?;
    let mut map = HashMap::new();
    for (id, (log, session)) in &files {
        map.insert(
            id.clone(),
            AgentFile {
                session,
                source: log,
                call: None,
                run: None,
            },
        );
    }
    let last = "-1".parse().ok().filter(|_| has("last"));
    let pick = Pick {
        turns: last.into_iter().collect(),
        agents: has("agents"),
    };
    let style = Style {
        width: arguments
            .get(1)
            .and_then(|width| width.parse().ok())
            .unwrap_or(80),
        color: has("color"),
        thinking: has("thinking"),
        tools: if has("full") {
            Tools::Full
        } else {
            Tools::Short
        },
        ..Style::default()
    };
    let items = transcript(&session, &log, &map, &pick);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    conversation(&mut out, &items, &style)?;
    std::io::Write::flush(&mut out)
}

fn open(path: &Path, role: Role) -> std::io::Result<(Log, Session)> {
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
                files.push((id.to_owned(), open(&path, Role::Agent)?));
            }
        }
    }
    Ok(files)
}
