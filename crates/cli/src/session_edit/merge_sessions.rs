//! Several sessions become one.

use std::collections::HashSet;

use unspool_model::edit::merge::{self, MergeSource};
use unspool_model::edit::{self, LineRewriter, RewriteCounts};
use unspool_model::session::{Session, TranscriptRole};
use unspool_show::wire::edit::{Amounts, CheckRow, EditResult};
use unspool_store::rewrite::rewrite;

use super::edit_redactor::EditRedactor;
use super::side_files::SideFileCopier;
use super::staging::StagingTarget;
use super::{EditRequest, begin, client_session_index, fill, note};
use crate::command_context::{ChosenSession, CommandContext};
use crate::failure::CommandFailure;

/// Makes one session of several, in the order given or by their first lines.
pub fn merge(
    world: &CommandContext,
    mut all: Vec<ChosenSession>,
    order: &EditRequest,
    by_time: bool,
) -> Result<EditResult, CommandFailure> {
    let files = all.iter().map(|chosen| chosen.session().cloned());
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
    let parts: Vec<MergeSource<'_>> = all
        .iter()
        .zip(&ids)
        .map(|(chosen, id)| MergeSource {
            session: &chosen.family.main.session,
            source: &chosen.family.main.source,
            id,
        })
        .collect();
    let mut sequence: Vec<usize> = (0..parts.len()).collect();
    if by_time {
        sequence = merge::by_time(&parts);
    }
    let parts: Vec<MergeSource<'_>> = sequence.iter().map(|&at| parts[at]).collect();
    let home = super::home(&files[sequence[0]], order)?;
    let title = order.title.clone().unwrap_or_else(|| {
        let title = super::title(parts[0].session, order, "Merged: ", None);
        format!("{title} (+{})", parts.len() - 1)
    });
    let mut merged = merge::plan(&parts, &home.id, &title).map_err(|refused| {
        CommandFailure::failed(refused.why).hint("repair it with `unspool repair`")
    })?;
    for said in &merged.notes {
        world.ui.note(said);
    }
    let before = parts.iter().map(|part| edit::tokens(part.session)).sum();
    let mut result = EditResult {
        operation: order.operation.to_owned(),
        source: parts[0].id.to_owned(),
        sources: parts.iter().map(|part| part.id.to_owned()).collect(),
        session: home.id.clone(),
        path: home.transcript().display().to_string(),
        resume: world.resume_command(
            super::directory(parts[0].session, order).as_deref(),
            &home.id,
        ),
        title: Some(title),
        dry_run: order.dry_run,
        tokens: Amounts { before, after: 0 },
        ..EditResult::default()
    };
    let first = &files[sequence[0]];
    let mut bench = begin(world, first, order, &home)?;
    let mut taken = HashSet::new();
    for one in &merged.parts {
        let chosen = &all[sequence[one.number]];
        let along = SideFileCopier {
            world,
            file: chosen.session()?,
            identity: &one.identity,
            home: &home,
            veil: &EditRedactor::new(None),
        };
        result.side_files += along.carry(&mut bench, &mut taken)?;
    }
    let path = home.transcript();
    let (written, draft) =
        bench.transcript(StagingTarget::New(&path), TranscriptRole::Main, |out| {
            let mut sum = RewriteCounts::default();
            for one in &merged.parts {
                let main = &all[sequence[one.number]].family.main;
                let pen = LineRewriter::new(&main.session, &one.plan, Some(&one.identity));
                sum += rewrite(main, pen, &|_| None, out)?;
            }
            Ok(sum)
        })?;
    // What is wanted is known by now, and the old sessions may go.
    merged.parts.clear();
    for chosen in &mut all {
        chosen.family.main.session = Session::default();
    }
    let after = draft.read()?;
    fill(&mut result, written);
    prove(&merged, &after.session, &mut result)?;
    client_session_index::add_session(world, &mut bench, first, &home, &after.session)?;
    result.undo = bench.commit(|task| {
        task.sources.clone_from(&result.sources);
        note(task, &result);
    })?;
    Ok(result)
}

fn prove(
    merged: &merge::SessionMerge,
    after: &Session,
    result: &mut EditResult,
) -> Result<(), CommandFailure> {
    result.tokens.after = edit::tokens(after);
    let problems = merged.compare(after);
    result.checks = edit::check::clients_of(after)
        .into_iter()
        .map(|name| CheckRow {
            ok: problems.iter().all(|problem| problem.about != *name),
            name,
            detail: "resumes it".to_owned(),
        })
        .collect();
    match problems.first() {
        None => Ok(()),
        Some(first) => {
            let what = format!(
                "cannot merge these sessions: {}; nothing was written",
                first.what
            );
            Err(CommandFailure::failed(what)
                .hint("repair them first with `unspool repair`, or merge other sessions"))
        }
    }
}
