//! A damaged session made whole.

use std::collections::HashSet;
use std::io::Write;

use unspool_model::edit::check::{CONVERSATION, FAULTS};
use unspool_model::edit::copy_identity::CopyIdentity;
use unspool_model::edit::repair::{self, ConversationIds, RepairReader, RepairedSession};
use unspool_model::edit::{self, EditPlan, LineRewriter};
use unspool_model::session::{Session, TranscriptRole};
use unspool_show::wire::edit::{Amounts, CheckRow, EditResult, LostRow, MendedRow};
use unspool_store::copy_side_files::SessionCopyLocation;
use unspool_store::find::SessionFile;
use unspool_store::read::LoadedSession;
use unspool_store::rewrite;
use unspool_store::session_in_use::InUseSessions;

use super::edit_redactor::EditRedactor;
use super::side_files::SideFileCopier;
use super::staging::{StagingTarget, WrittenTranscript};
use super::{EditRequest, begin, client_session_index, fill, home, identity, note, title};
use crate::command_context::{ChosenSession, CommandContext};
use crate::failure::CommandFailure;

/// Mends a session; `None` if there is nothing to mend.
pub fn repair(
    world: &CommandContext,
    mut chosen: ChosenSession,
    order: &EditRequest,
    in_place: bool,
) -> Result<Option<EditResult>, CommandFailure> {
    let file = chosen.session()?.clone();
    let old = DamagedSessionFacts::of(&chosen.family.main.session, &file, order, in_place)?;
    let known = std::mem::take(&mut chosen.family.main.session);
    let repair = read_again(&chosen.family.main, known, &file)?;
    if repair.is_empty() {
        return Ok(None);
    }
    match in_place {
        true => in_place_of(world, &chosen, repair, old, order).map(Some),
        false => copy(world, &chosen, repair, old, order).map(Some),
    }
}

/// What has to be known of the damaged session; the session itself is not kept beside the
/// mended one.
struct DamagedSessionFacts {
    said: ConversationIds,
    tokens: u64,
    home: SessionCopyLocation,
    identity: CopyIdentity,
    title: String,
    /// Where it is resumed.
    directory: Option<String>,
}

impl DamagedSessionFacts {
    fn of(
        session: &Session,
        file: &SessionFile,
        order: &EditRequest,
        in_place: bool,
    ) -> Result<DamagedSessionFacts, CommandFailure> {
        let home = match in_place {
            true => SessionCopyLocation::of(file),
            false => home(file, order)?,
        };
        Ok(DamagedSessionFacts {
            said: ConversationIds::of(session),
            tokens: edit::tokens(session),
            identity: identity(session, file, order, &home)?,
            title: title(session, order, "Repaired: ", None),
            directory: super::directory(session, order),
            home,
        })
    }
}

/// Changes the session itself.
fn in_place_of(
    world: &CommandContext,
    chosen: &ChosenSession,
    mut repair: RepairedSession,
    old: DamagedSessionFacts,
    order: &EditRequest,
) -> Result<EditResult, CommandFailure> {
    let (file, main) = (chosen.session()?, &chosen.family.main);
    let live = InUseSessions::look(&world.dirs, world.now().0);
    if let Some(why) = live.why(file) {
        let what = format!("session {} is in use: {why}", file.id);
        return Err(CommandFailure::failed(what)
            .hint("close the session first, or repair a copy without `--in-place`"));
    }
    let mut result = outline(world, &repair, &old, file, order);
    let mut bench = begin(world, file, order, &old.home)?;
    let spot = StagingTarget::Over(&file.path, file.stamp);
    let ((), draft) = bench.transcript(spot, TranscriptRole::Main, |out| {
        write(&repair, main, None, out)
    })?;
    repair.session = Session::default();
    let after = draft.read()?;
    prove(&repair, &old, &after, &mut result)?;
    result.undo = bench.commit(|task| {
        task.session = None;
        note(task, &result);
    })?;
    Ok(result)
}

/// Makes a mended session of a damaged one.
fn copy(
    world: &CommandContext,
    chosen: &ChosenSession,
    mut repair: RepairedSession,
    old: DamagedSessionFacts,
    order: &EditRequest,
) -> Result<EditResult, CommandFailure> {
    let (file, main) = (chosen.session()?, &chosen.family.main);
    let mut result = outline(world, &repair, &old, file, order);
    let (home, identity, title) = (&old.home, &old.identity, &old.title);
    let mut plan = EditPlan::new(&repair.session);
    let end = repair.session.records.len() as u32;
    plan.insert(end, unspool_model::title::line(&identity.session, title));
    result.title = Some(title.clone());
    result.lines.added += 1;
    let mut bench = begin(world, file, order, home)?;
    let along = SideFileCopier {
        world,
        file,
        identity,
        home,
        veil: &EditRedactor::new(None),
    };
    result.side_files = along.carry(&mut bench, &mut HashSet::new())?;
    let path = home.transcript();
    let ((), draft) = bench.transcript(StagingTarget::New(&path), TranscriptRole::Main, |out| {
        let pen = LineRewriter::new(&repair.session, &plan, Some(identity));
        write(&repair, main, Some(pen), out)
    })?;
    drop(plan);
    repair.session = Session::default();
    let after = draft.read()?;
    prove(&repair, &old, &after, &mut result)?;
    client_session_index::add_session(world, &mut bench, file, home, &after.session)?;
    result.undo = bench.commit(|task| note(task, &result))?;
    Ok(result)
}

/// Looks at every line by itself, on all cores, and mends what they say together.
fn read_again(
    main: &LoadedSession,
    known: Session,
    file: &SessionFile,
) -> Result<RepairedSession, CommandFailure> {
    let mut reading = RepairReader::new(TranscriptRole::Main);
    rewrite::map_lines_in_order(main, repair::line_condition, |line, looked| {
        reading.take(line, looked)
    })
    .map_err(|why| unread(file, why))?;
    Ok(reading.finish(&main.source, Some(known)))
}

fn unread(file: &SessionFile, why: std::io::Error) -> CommandFailure {
    unspool_store::StoreError::io(&file.path, why).into()
}

/// Writes the mended lines, through a pen if they become those of another session.
fn write(
    repair: &RepairedSession,
    main: &LoadedSession,
    mut pen: Option<LineRewriter<'_>>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut failed = None;
    let mut buffer = Vec::new();
    repair.each(&main.source, |line| {
        if line.is_omitted() {
            if let Some(pen) = &mut pen {
                pen.line(line, &mut buffer);
            }
            // Only lines of the old file are so long.
            if let (None, Some(offset)) = (&failed, repair.kept_at(line)) {
                let copied = main.source.copy(offset, line.length(), out);
                failed = copied.and_then(|()| out.write_all(b"\n")).err();
            }
            return;
        }
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

fn outline(
    world: &CommandContext,
    repair: &RepairedSession,
    old: &DamagedSessionFacts,
    file: &SessionFile,
    order: &EditRequest,
) -> EditResult {
    let home = &old.home;
    let lost = repair.lost.iter();
    let mended = repair.mended.iter();
    let mut result = EditResult {
        operation: order.operation.to_owned(),
        source: file.id.clone(),
        session: home.id.clone(),
        path: home.transcript().display().to_string(),
        resume: world.resume_command(old.directory.as_deref(), &home.id),
        dry_run: order.dry_run,
        tokens: Amounts {
            before: old.tokens,
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
    repair: &RepairedSession,
    old: &DamagedSessionFacts,
    after: &WrittenTranscript,
    result: &mut EditResult,
) -> Result<(), CommandFailure> {
    result.bytes.after = after.bytes;
    result.tokens.after = edit::tokens(&after.session);
    let problems = repair.compare(&old.said, &after.session);
    let long = !after.session.long_lines.is_empty();
    let clients = edit::check::clients_of(&after.session);
    let names = [FAULTS, CONVERSATION].map(str::to_owned);
    let names = names.into_iter().chain(clients);
    result.checks = names
        .map(|name| {
            let wrong = problems.iter().find(|problem| problem.about == *name);
            let fine = match &*name {
                FAULTS if long => "none left except lines that are too long to decode",
                FAULTS => "none left",
                CONVERSATION => "no line was lost",
                _ => "resumes it",
            };
            CheckRow {
                ok: wrong.is_none(),
                detail: wrong.map_or_else(|| fine.to_owned(), |problem| problem.what.clone()),
                name,
            }
        })
        .collect();
    match problems.first() {
        None => Ok(()),
        Some(first) => {
            let what = format!("cannot repair it: {}; nothing was written", first.what);
            let hint = "see the faults with `unspool check`; a copy up to an earlier turn may help: \
                        `unspool clone --until N`";
            Err(CommandFailure::failed(what).hint(hint))
        }
    }
}
