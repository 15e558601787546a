//! A damaged session made whole.

use std::collections::HashSet;
use std::io::Write;

use unspool_model::edit::check::{CONVERSATION, FAULTS};
use unspool_model::edit::repair::{Reading, Repair};
use unspool_model::edit::{self, Pen, Plan};
use unspool_model::session::Role;
use unspool_show::wire::edit::{Amounts, CheckRow, EditResult, LostRow, MendedRow};
use unspool_store::carry::Home;
use unspool_store::find::SessionFile;
use unspool_store::live::Live;
use unspool_store::read::{self, Loaded};
use unspool_store::rewrite;
use unspool_store::write::Times;

use super::veil::Veil;
use super::{Order, begin, carry_along, fill, home, identity, index, note, proof, title};
use crate::failure::Failure;
use crate::world::{Chosen, World};

/// Mends a session; `None` if there is nothing to mend.
pub fn repair(
    world: &World,
    chosen: &Chosen,
    order: &Order,
    in_place: bool,
) -> Result<Option<EditResult>, Failure> {
    let file = chosen.session()?;
    let main = &chosen.family.main;
    let repair = read_again(main, file)?;
    if repair.is_empty() {
        return Ok(None);
    }
    let mut result = outline(main, &repair, file, order);
    if order.dry_run {
        let mut fold = proof::Fold::default();
        write(&repair, main, None, &mut fold).map_err(|why| unread(file, why))?;
        prove(&repair, main, &fold.session(), &mut result)?;
        return Ok(Some(result));
    }
    if in_place {
        let live = Live::look(&world.dirs, world.now().0);
        if let Some(why) = live.why(file) {
            let what = format!("session {} is in use: {why}", file.id);
            return Err(Failure::failed(what)
                .hint("end the client first, or mend a copy without `--in-place`"));
        }
        let mut work = begin(world, file, order, &Home::of(file))?;
        work.task().session = None;
        let staged = work.replace(&file.path, file.stamp, Times::Keep, |out| {
            write(&repair, main, None, out)
        })?;
        let after = read::read(&staged.path, Role::Main)?;
        prove(&repair, main, &after.session, &mut result)?;
        note(&mut work, &result, &Home::of(file));
        result.undo = Some(work.commit()?);
        return Ok(Some(result));
    }
    let home = home(file, order)?;
    let identity = identity(&main.session, file, order, &home)?;
    result.session.clone_from(&home.id);
    result.path = home.transcript().display().to_string();
    result.resume = format!("claude --resume {}", home.id);
    let title = title(&main.session, order, "Repaired: ", None);
    result.title = Some(title.clone());
    let mut plan = Plan::new(&repair.session);
    let end = repair.session.records.len() as u32;
    plan.insert(end, unspool_model::title::line(&identity.session, &title));
    let mut work = begin(world, file, order, &home)?;
    let veil = &mut Veil::new(None);
    result.side_files = carry_along(
        &mut work,
        chosen,
        &identity,
        &home,
        veil,
        &mut HashSet::new(),
    )?;
    index::enter(world, &mut work, file, &home, &result)?;
    let staged = work.create(&home.transcript(), |out| {
        let pen = Pen::new(&repair.session, &plan, Some(&identity));
        write(&repair, main, Some(pen), out)
    })?;
    let after = read::read(&staged.path, Role::Main)?;
    prove(&repair, main, &after.session, &mut result)?;
    result.bytes.after = after.bytes;
    result.lines.added += 1;
    note(&mut work, &result, &home);
    result.undo = Some(work.commit()?);
    Ok(Some(result))
}

fn read_again(main: &Loaded, file: &SessionFile) -> Result<Repair, Failure> {
    let mut reading = Reading::new(Role::Main);
    rewrite::lines(main, |line| reading.push(line)).map_err(|why| unread(file, why))?;
    Ok(reading.finish(&main.source))
}

fn unread(file: &SessionFile, why: std::io::Error) -> Failure {
    unspool_store::Error::io(&file.path, why).into()
}

/// Writes the mended lines, through a pen if they become those of another session.
fn write(
    repair: &Repair,
    main: &Loaded,
    mut pen: Option<Pen<'_>>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut failed = None;
    let mut buffer = Vec::new();
    repair.each(&main.source, |line| {
        match &mut pen {
            Some(pen) => pen.line(line, &mut buffer),
            None => {
                buffer.extend_from_slice(line.bytes);
                buffer.push(b'\n');
            }
        }
        if failed.is_none() {
            failed = out.write_all(&buffer).err();
        }
        buffer.clear();
    });
    if let Some(mut pen) = pen {
        pen.end(&mut buffer);
    }
    match failed {
        Some(error) => Err(error),
        None => out.write_all(&buffer),
    }
}

fn outline(main: &Loaded, repair: &Repair, file: &SessionFile, order: &Order) -> EditResult {
    let lost = repair.lost.iter();
    let mended = repair.mended.iter();
    let mut result = EditResult {
        operation: order.operation.to_owned(),
        source: file.id.clone(),
        session: file.id.clone(),
        path: file.path.display().to_string(),
        resume: format!("claude --resume {}", file.id),
        dry_run: order.dry_run,
        tokens: Amounts {
            before: edit::tokens(&main.session),
            after: 0,
        },
        lost: lost
            .map(|lost| LostRow {
                what: lost.what.clone(),
                tokens: lost.tokens,
            })
            .collect(),
        mended: mended
            .map(|mended| MendedRow {
                line: mended.line,
                kind: mended.kind.to_string(),
                what: mended.what.clone(),
            })
            .collect(),
        ..EditResult::default()
    };
    fill(&mut result, repair.written);
    result
}

fn prove(
    repair: &Repair,
    main: &Loaded,
    after: &unspool_model::session::Session,
    result: &mut EditResult,
) -> Result<(), Failure> {
    result.tokens.after = edit::tokens(after);
    let problems = repair.compare(&main.session, after);
    let clients = edit::check::clients_known();
    let names = [FAULTS, CONVERSATION].into_iter().chain(clients);
    result.checks = names
        .map(|name| {
            let wrong = problems.iter().find(|problem| problem.about == name);
            let fine = match name {
                FAULTS => "none is left",
                CONVERSATION => "every line that was in it still is",
                _ => "resumes it",
            };
            CheckRow {
                name: name.to_owned(),
                ok: wrong.is_none(),
                detail: wrong.map_or_else(|| fine.to_owned(), |problem| problem.what.clone()),
            }
        })
        .collect();
    match problems.first() {
        None => Ok(()),
        Some(first) => {
            let what = format!("it cannot be mended: {}; nothing was written", first.what);
            let hint = "see what is broken with `unspool check`; a copy up to a turn before it \
                        may help: `unspool clone --until N`";
            Err(Failure::failed(what).hint(hint))
        }
    }
}
