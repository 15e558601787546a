//! Several sessions become one.

use std::collections::HashSet;

use unspool_model::edit::merge::{self, Part};
use unspool_model::edit::{self, Pen, Written};
use unspool_model::session::{Role, Session};
use unspool_show::wire::edit::{Amounts, CheckRow, EditResult};
use unspool_store::rewrite::rewrite;

use super::along::Along;
use super::bench::Spot;
use super::veil::Veil;
use super::{Order, begin, fill, index, note};
use crate::failure::Failure;
use crate::world::{Chosen, World};

/// Makes one session of several, in the order given or by their first lines.
pub fn merge(
    world: &World,
    mut all: Vec<Chosen>,
    order: &Order,
    by_time: bool,
) -> Result<EditResult, Failure> {
    let files = all.iter().map(|chosen| chosen.session().cloned());
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<&str> = files.iter().map(|file| file.id.as_str()).collect();
    let parts: Vec<Part<'_>> = all
        .iter()
        .zip(&ids)
        .map(|(chosen, id)| Part {
            session: &chosen.family.main.session,
            source: &chosen.family.main.source,
            id,
        })
        .collect();
    let mut sequence: Vec<usize> = (0..parts.len()).collect();
    if by_time {
        sequence = merge::by_time(&parts);
    }
    let parts: Vec<Part<'_>> = sequence.iter().map(|&at| parts[at]).collect();
    let home = super::home(&files[sequence[0]], order)?;
    let title = order.title.clone().unwrap_or_else(|| {
        let title = super::title(parts[0].session, order, "Merged: ", None);
        format!("{title} (+{})", parts.len() - 1)
    });
    let mut merged = merge::plan(&parts, &home.id, &title)
        .map_err(|refused| Failure::failed(refused.why).hint("repair it with `unspool repair`"))?;
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
        let along = Along {
            world,
            file: chosen.session()?,
            identity: &one.identity,
            home: &home,
            veil: &Veil::new(None),
        };
        result.side_files += along.carry(&mut bench, &mut taken)?;
    }
    let path = home.transcript();
    let (written, draft) = bench.transcript(Spot::New(&path), Role::Main, |out| {
        let mut sum = Written::default();
        for one in &merged.parts {
            let main = &all[sequence[one.number]].family.main;
            let pen = Pen::new(&main.session, &one.plan, Some(&one.identity));
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
    index::enter(world, &mut bench, first, &home, &after.session)?;
    result.undo = bench.commit(|task| {
        task.sources.clone_from(&result.sources);
        note(task, &result);
    })?;
    Ok(result)
}

fn prove(merged: &merge::Merge, after: &Session, result: &mut EditResult) -> Result<(), Failure> {
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
            Err(Failure::failed(what)
                .hint("repair them first with `unspool repair`, or merge other sessions"))
        }
    }
}
