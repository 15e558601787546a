//! The row of a session, from a fold of all of it or of its ends.

use std::collections::HashMap;
use std::ops::Range;

use unspool_model::file_usage::FileUsage;
use unspool_model::secrets::SecretFinder;
use unspool_model::session::Session;
use unspool_model::time::Time;
use unspool_model::view::session_row;
use unspool_model::view::session_usage::{self, SessionFiles};
use unspool_model::view::status::{self, SessionState, StatusSignals};
use unspool_model::view::usage::period;
use unspool_show::wire::session::{SessionFileInfo, SessionJson};
use unspool_store::find::SessionFile;
use unspool_store::project;

use crate::LiveSettings;

/// What a row is made of.
pub struct SessionRowParts<'a> {
    /// Where it is.
    pub file: &'a SessionFile,
    /// What it is.
    pub session: &'a Session,
    /// Its sub-agents.
    pub agents: &'a [&'a Session],
    /// What the client's own helpers used.
    pub helpers: &'a [&'a FileUsage],
    /// The title another file gives it.
    pub title: Option<&'a str>,
    /// What is known about it beside its files.
    pub signals: &'a StatusSignals,
}

/// The name of a project, without tokens if what is read is masked. The directory in a session
/// is masked already, the name of its folder is not.
fn shown_project(project: &str, setting: &LiveSettings) -> String {
    match setting.mask {
        Some(_) => SecretFinder::forms().mask(project).into_owned(),
        None => project.to_owned(),
    }
}

/// The row of a session at `now`.
pub fn row(parts: &SessionRowParts<'_>, setting: &LiveSettings, now: Time) -> SessionJson {
    let SessionRowParts { file, session, .. } = *parts;
    let prices = &setting.prices;
    let place = SessionFileInfo {
        id: file.id.clone(),
        path: file.path.display().to_string(),
        project: shown_project(project::project(session, &file.folder), setting),
        bytes: file.bytes,
        parent: None,
    };
    let files = SessionFiles {
        session,
        agents: parts.agents,
        helpers: parts.helpers,
    };
    let view = session_row::row(&files, &HashMap::new(), prices, parts.signals, now);
    let midnight = period::around(now, &setting.zone).start;
    let today = session_usage::usage_since(&files, prices, midnight);
    let mut row = SessionJson::new(session, view, place).with_today(&today);
    if let (Some(title), None) = (parts.title, session.given_title()) {
        row.title = Some(title.to_owned());
    }
    row
}

/// The row of a session of which only the end was read: what the end tells is taken from
/// there, the rest from an older row.
pub fn row_from_new_end(old: &SessionJson, end: SessionJson, today: &Range<Time>) -> SessionJson {
    let old = old.clone();
    let row = SessionJson {
        project: old.project,
        cwd: old.cwd,
        title: old.title,
        goal: old.goal,
        recent_output: end.recent_output.or(old.recent_output),
        last_prompt: end.last_prompt.or(old.last_prompt),
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
        cost_usd_known: old.cost_usd_known,
        unpriced_messages: old.unpriced_messages,
        used_by: old.used_by,
        cost_today_usd: old.cost_today_usd,
        cost_today_usd_known: old.cost_today_usd_known,
        context_tokens: end.context_tokens.or(old.context_tokens),
        context_limit: end.context_limit.or(old.context_limit),
        forked_from: old.forked_from,
        tag: end.tag.or(old.tag),
        partial: old.partial,
        ..end
    };
    row_on_day(row, today)
}

/// A row from another time, on this day: where nothing was said today, nothing was spent.
pub fn row_on_day(mut row: SessionJson, today: &Range<Time>) -> SessionJson {
    let last = row.last.as_deref().and_then(Time::parse);
    if last.is_none_or(|last| last < today.start) {
        row.cost_today_usd = Some(0.0);
        row.cost_today_usd_known = Some(0.0);
    }
    row
}

/// The row of a session of which only the start and the end were read.
pub fn row_from_ends(start: SessionJson, end: SessionJson, titled: bool) -> SessionJson {
    SessionJson {
        project: start.project,
        cwd: start.cwd.or(end.cwd),
        title: if titled {
            end.title
        } else {
            start.title.or(end.title)
        },
        goal: start.goal.or(end.goal),
        first: start.first.or(end.first),
        last_prompt: end.last_prompt.or(start.last_prompt),
        slug: end.slug.or(start.slug),
        entrypoint: end.entrypoint.or(start.entrypoint),
        forked_from: start.forked_from,
        tag: end.tag.or(start.tag),
        // What part of it cost says nothing.
        cost_usd: None,
        cost_usd_known: None,
        unpriced_messages: 0,
        used_by: None,
        cost_today_usd: None,
        cost_today_usd_known: None,
        partial: true,
        ..end
    }
}

/// After so long without a sign nothing changes by time alone, in milliseconds.
const CALM: i64 = status::IDLE_MS as i64 + 60_000;

impl SessionRowParts<'_> {
    /// What the session is doing.
    pub fn state(&self, now: Time) -> SessionState {
        status::family(self.session, self.agents, self.signals, now).state
    }

    /// Whether time alone may change what it is doing.
    pub fn is_restless(&self, now: Time) -> bool {
        let status = status::family(self.session, self.agents, self.signals, now);
        let later = self.state(Time(now.0.saturating_add(CALM)));
        status.state != later || status.resets.is_some_and(|resets| resets > now)
    }

    /// When time alone changes what it is doing, to the second.
    pub fn changes(&self, now: Time) -> Option<Time> {
        let status = status::family(self.session, self.agents, self.signals, now);
        let resets = status.resets.filter(|resets| *resets > now);
        let (mut before, mut after) = (now.0, now.0.saturating_add(CALM));
        if self.state(Time(after)) == status.state {
            return resets;
        }
        while after - before > 1_000 {
            let middle = before + (after - before) / 2;
            match self.state(Time(middle)) == status.state {
                true => before = middle,
                false => after = middle,
            }
        }
        Some(resets.map_or(Time(after), |resets| resets.min(Time(after))))
    }
}
