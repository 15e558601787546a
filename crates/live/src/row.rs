//! The row of a session, from a fold of all of it or of its ends.

use std::collections::HashMap;

use unspool_model::price::Prices;
use unspool_model::session::Session;
use unspool_model::time::Time;
use unspool_model::view::{row, status};
use unspool_show::wire::session::{Place, SessionRow};
use unspool_store::find::SessionFile;
use unspool_store::project;

/// What a row is made of.
pub struct Parts<'a> {
    /// Where it is.
    pub file: &'a SessionFile,
    /// What it is.
    pub session: &'a Session,
    /// Its sub-agents.
    pub agents: &'a [&'a Session],
    /// The title another file gives it.
    pub title: Option<&'a str>,
}

/// The row of a session at `now`.
pub fn row(parts: &Parts<'_>, prices: &Prices, now: Time) -> SessionRow {
    let Parts { file, session, .. } = *parts;
    let place = Place {
        id: file.id.clone(),
        path: file.path.display().to_string(),
        project: project::project(session, &file.folder).to_owned(),
        bytes: file.bytes,
        parent: None,
    };
    let view = row::row(
        session,
        parts.agents,
        &HashMap::new(),
        prices,
        &status::Signals::default(),
        now,
    );
    let mut row = SessionRow::new(session, view, place);
    if let (Some(title), None) = (parts.title, session.given_title()) {
        row.title = Some(title.to_owned());
    }
    row
}

/// The row of a session of which only the end was read: what the end tells is taken from
/// there, the rest from an older row.
pub fn renewed(old: &SessionRow, end: SessionRow) -> SessionRow {
    let old = old.clone();
    SessionRow {
        project: old.project,
        cwd: old.cwd,
        title: old.title,
        goal: old.goal,
        recent_output: end.recent_output.or(old.recent_output),
        turns: old.turns,
        messages: old.messages,
        calls: old.calls,
        agents: old.agents,
        first: old.first,
        last: end.last.or(old.last),
        model: end.model.or(old.model),
        models: old.models,
        version: end.version.or(old.version),
        versions: old.versions,
        git_branch: end.git_branch.or(old.git_branch),
        slug: end.slug.or(old.slug),
        permission_mode: end.permission_mode.or(old.permission_mode),
        entrypoint: end.entrypoint.or(old.entrypoint),
        pr_links: old.pr_links,
        compactions: old.compactions,
        usage: old.usage,
        cost_usd: old.cost_usd,
        context_tokens: end.context_tokens.or(old.context_tokens),
        context_limit: end.context_limit.or(old.context_limit),
        forked_from: old.forked_from,
        partial: old.partial,
        ..end
    }
}

/// The row of a session of which only the start and the end were read.
pub fn ends(start: SessionRow, end: SessionRow, titled: bool) -> SessionRow {
    SessionRow {
        project: start.project,
        cwd: start.cwd.or(end.cwd),
        title: if titled {
            end.title
        } else {
            start.title.or(end.title)
        },
        goal: start.goal.or(end.goal),
        first: start.first.or(end.first),
        slug: end.slug.or(start.slug),
        entrypoint: end.entrypoint.or(start.entrypoint),
        forked_from: start.forked_from,
        // What part of it cost says nothing.
        cost_usd: None,
        partial: true,
        ..end
    }
}

/// Whether time alone may change the state of a session.
pub fn restless(parts: &Parts<'_>, _prices: &Prices, now: Time) -> bool {
    let later = Time(now.0.saturating_add(status::IDLE_MS as i64 + 1));
    let state = |now| status::status(parts.session, &status::Signals::default(), now).state;
    state(now) != state(later)
}
