//! Sessions that are gone, as far as the client's history of prompts remembers them.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::Path;

use unspool_model::prompt_history::{self, HistoryPrompt};
use unspool_model::secrets::SecretFinder;
use unspool_model::time::Time;
use unspool_show::wire::log::{PurgedPrompt, PurgedRow};
use unspool_show::{clean, format};
use unspool_store::{archive, long_lines, open};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Lists them, the oldest first.
pub fn run(world: &CommandContext, dir: &Path) -> Result<(), CommandFailure> {
    let found = world.walked()?;
    let mut present: HashSet<&str> = found.sessions.iter().map(|file| file.id.as_str()).collect();
    // A session without a reply is there as well, if only as an empty file.
    let others = found.others.iter();
    present.extend(others.filter_map(|file| file.path.file_stem()?.to_str()));
    let archives = archive::list(dir);
    let archived: HashSet<&str> = archives.iter().map(|one| one.session.as_str()).collect();
    let mut sessions: BTreeMap<String, Vec<HistoryPrompt>> = BTreeMap::new();
    for config in &world.dirs {
        read(world, &config.join("history.jsonl"), &mut sessions);
    }
    sessions.retain(|id, _| !present.contains(id.as_str()));
    let finder = (!world.reveal).then(SecretFinder::standard);
    let mut rows: Vec<PurgedRow> = sessions
        .into_iter()
        .map(|(id, prompts)| row(id, prompts, &archived, finder))
        .collect();
    rows.sort_by(|a, b| (&a.last, &a.session).cmp(&(&b.last, &b.session)));
    if rows.is_empty() {
        return Err(CommandFailure::nothing(
            "the prompt history names no deleted sessions",
        ));
    }
    let mut out = world.ui.out();
    for row in &rows {
        match world.ui.json {
            true => world.ui.row(&mut out, row)?,
            false => print(world, &mut out, row)?,
        }
    }
    Ok(out.flush()?)
}

fn read(world: &CommandContext, path: &Path, sessions: &mut BTreeMap<String, Vec<HistoryPrompt>>) {
    let Ok((file, _)) = open::open(path) else {
        return;
    };
    let read = long_lines::each_line(&file, |line| {
        // Older clients did not say which session it was.
        if let Some(prompt) = prompt_history::prompt(line)
            && let Some(session) = prompt.session.clone()
        {
            sessions.entry(session).or_default().push(prompt);
        }
    });
    if let Err(error) = read {
        world.ui.warn(&format!("{}: {error}", path.display()));
    }
}

fn row(
    session: String,
    prompts: Vec<HistoryPrompt>,
    archived: &HashSet<&str>,
    finder: Option<&SecretFinder>,
) -> PurgedRow {
    let masked = |text: String| match finder {
        Some(finder) => finder.mask(&text).into_owned(),
        None => text,
    };
    let times = || prompts.iter().filter_map(|prompt| prompt.at);
    PurgedRow {
        archived: archived.contains(session.as_str()),
        first: times().min().map(|time| time.to_string()),
        last: times().max().map(|time| time.to_string()),
        project: prompts.iter().find_map(|prompt| prompt.project.clone()),
        session,
        prompts: prompts
            .into_iter()
            .map(|prompt| PurgedPrompt {
                at: prompt.at.map(|time| time.to_string()),
                text: masked(prompt.text),
                pasted: prompt.pasted.into_iter().map(masked).collect(),
            })
            .collect(),
    }
}

fn print(
    world: &CommandContext,
    out: &mut dyn Write,
    row: &PurgedRow,
) -> Result<(), CommandFailure> {
    let moment = |text: &Option<String>| {
        let time = text.as_deref().and_then(Time::parse);
        time.map_or_else(String::new, |time| format::moment(time, world.ui.zone()))
    };
    let kept = if row.archived { "  archived" } else { "" };
    writeln!(
        out,
        "{}  {}  {}{kept}",
        clean::line(&row.session),
        moment(&row.last),
        clean::line(row.project.as_deref().unwrap_or_default())
    )?;
    for prompt in &row.prompts {
        writeln!(
            out,
            "  {}  {}",
            moment(&prompt.at),
            clean::line(&prompt.text)
        )?;
    }
    Ok(())
}
