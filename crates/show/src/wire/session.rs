//! A session on one line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspool_model::session::Session;
use unspool_model::usage::Usage;
use unspool_model::view::session_row::SessionRow as Row;
use unspool_model::view::session_usage::SessionUsage;
use unspool_model::view::status::{AttentionNeed, BackgroundJob, SessionState, SessionStatus};

use crate::wire::cost::{self, UsageByOrigin};

/// Tokens, each message counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the five-minute cache.
    pub cache_write_5m: u64,
    /// Input written to the one-hour cache.
    pub cache_write_1h: u64,
}

impl From<Usage> for UsageRow {
    fn from(usage: Usage) -> UsageRow {
        UsageRow {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write_5m: usage.cache_write_5m,
            cache_write_1h: usage.cache_write_1h,
        }
    }
}

/// The call a session waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingTool {
    /// The tool.
    pub name: String,
    /// The subject of the call.
    pub subject: Option<String>,
    /// Since when.
    pub since: Option<String>,
}

/// A session in the background, as the client's daemon keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundRow {
    /// Its id among the client's jobs: the start of the session's.
    pub id: String,
    /// Its state as the client names it: `working`, `stopped`, `done` …
    pub state: String,
    /// A short description of its current work.
    pub detail: Option<String>,
    /// Its task.
    pub intent: Option<String>,
    /// Its last reply.
    pub last: Option<String>,
    /// When the state was last written.
    pub since: Option<String>,
    /// Whether the client's daemon lists it as running.
    pub listed: bool,
}

impl From<BackgroundJob> for BackgroundRow {
    fn from(job: BackgroundJob) -> BackgroundRow {
        BackgroundRow {
            id: job.id,
            state: job.state,
            detail: job.detail,
            intent: job.intent,
            last: job.last,
            since: job.since.map(|since| since.to_string()),
            listed: job.listed,
        }
    }
}

/// Where a session was found.
#[derive(Clone, Debug, Default)]
pub struct SessionFileInfo {
    /// Its id.
    pub id: String,
    /// Its file.
    pub path: String,
    /// Its project.
    pub project: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// The session it is a sub-agent of.
    pub parent: Option<String>,
}

/// A session, as `ls` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionJson {
    /// The id: the name of its file.
    pub id: String,
    /// Its file.
    pub path: String,
    /// The directory of its project; for worktrees that of the repository.
    pub project: String,
    /// The directory it was started in.
    pub cwd: Option<String>,
    /// Its title, else its first prompt.
    pub title: Option<String>,
    /// The first prompt, up to 200 characters.
    pub goal: Option<String>,
    /// The last reply, up to 500 characters.
    pub recent_output: Option<String>,
    /// The last prompt, up to 200 characters.
    pub last_prompt: Option<String>,
    /// `working`, `waiting_for_approval`, `waiting_for_input`, `idle`, `compacting`, `error` or
    /// `ended`.
    pub status: String,
    /// Source of the status: `hook`, `registry`, `transcript` or `process`.
    pub status_from: String,
    /// Whether the status is certain; if not, it is the most likely one.
    pub status_sure: bool,
    /// Since when.
    pub status_since: Option<String>,
    /// What it needs: `you` (blocked until you answer), `waiting` (your turn), or nothing,
    /// because it is `working` or `idle`.
    #[serde(default)]
    pub need: String,
    /// The pending question.
    pub question: Option<String>,
    /// The last API error; present while working if the client retries.
    pub error: Option<String>,
    /// When the usage limit that it reached resets.
    pub resets: Option<String>,
    /// Number of its sub-agents that are working.
    pub agents_working: usize,
    /// Number of its background commands.
    pub tasks_running: usize,
    /// The call it waits for.
    pub pending_tool: Option<PendingTool>,
    /// Turns.
    pub turns: usize,
    /// Replies, each counted once.
    pub messages: usize,
    /// Tool calls.
    pub calls: usize,
    /// Sub-agents.
    pub agents: usize,
    /// Whether it is a sub-agent itself.
    pub is_subagent: bool,
    /// Its first timestamp.
    pub first: Option<String>,
    /// Its last timestamp.
    pub last: Option<String>,
    /// The model of the last reply.
    pub model: Option<String>,
    /// All models.
    pub models: Vec<String>,
    /// The latest client version.
    pub version: Option<String>,
    /// All versions.
    pub versions: Vec<String>,
    /// The last git branch.
    pub git_branch: Option<String>,
    /// The slug of the session.
    pub slug: Option<String>,
    /// The last permission mode.
    pub permission_mode: Option<String>,
    /// How the client was started.
    pub entrypoint: Option<String>,
    /// Pull requests made in it.
    pub pr_links: Vec<String>,
    /// Number of compactions.
    pub compactions: usize,
    /// Bytes of its file.
    pub bytes: u64,
    /// Tokens, those of its sub-agents and of the client's own helpers included.
    pub usage: UsageRow,
    /// Its cost; null if any message has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of its messages that have a known price.
    #[serde(default)]
    pub cost_usd_known: Option<f64>,
    /// Number of its messages without a known price.
    #[serde(default)]
    pub unpriced_messages: u64,
    /// Who used these tokens; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<UsageByOrigin>,
    /// Its cost since local midnight; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_today_usd: Option<f64>,
    /// Cost since local midnight of its messages that have a known price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_today_usd_known: Option<f64>,
    /// Tokens in the context of the last reply.
    pub context_tokens: Option<u64>,
    /// Size of the context window in tokens.
    pub context_limit: Option<u64>,
    /// The session it is a sub-agent of.
    pub parent: Option<String>,
    /// The session it was forked from.
    pub forked_from: Option<String>,
    /// Its tag, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// What kind of process wrote it, such as `bg` for one in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The client's state of it as a background session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundRow>,
    /// The team it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Its name in the team; absent for the team's lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teammate: Option<String>,
    /// For a sub-agent's file, its kind: `sub_agent`, `workflow_agent`, `teammate`, or
    /// what the client did for itself: `side_question`, `compaction`, `prompt_suggestion`,
    /// `warm_up`, `memory` or `digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_kind: Option<String>,
    /// Why it is not a session, for files that `--all` lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_a_session: Option<String>,
    /// Only the start and the end have been read: numbers and totals are incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl SessionJson {
    /// What it wants from a person.
    pub fn need(&self) -> AttentionNeed {
        let state = SessionState::named(&self.status).unwrap_or(SessionState::Idle);
        AttentionNeed::of(state, self.question.is_some())
    }

    /// What it is doing, for people.
    pub fn doing(&self) -> &str {
        match self.status.as_str() {
            "waiting_for_input" if self.question.is_some() => "asks you",
            "waiting_for_input" => "your turn",
            "waiting_for_approval" => "needs you",
            other => other,
        }
    }

    /// What was said in it, and may hold secrets.
    pub fn said(&mut self) -> impl Iterator<Item = &mut Option<String>> {
        let pending = self.pending_tool.iter_mut().map(|tool| &mut tool.subject);
        let job = self.background.iter_mut();
        let job = job.flat_map(|job| [&mut job.detail, &mut job.intent, &mut job.last]);
        [
            &mut self.title,
            &mut self.goal,
            &mut self.recent_output,
            &mut self.last_prompt,
            &mut self.question,
            &mut self.error,
            &mut self.tag,
        ]
        .into_iter()
        .chain(pending)
        .chain(job)
    }

    /// Names of directories, files, models, branches and tools, which may hold tokens.
    pub fn names(&mut self) -> impl Iterator<Item = &mut String> {
        let optional = [
            &mut self.cwd,
            &mut self.model,
            &mut self.version,
            &mut self.git_branch,
            &mut self.slug,
            &mut self.permission_mode,
            &mut self.entrypoint,
        ];
        let lists = [&mut self.models, &mut self.versions, &mut self.pr_links];
        let tool = self.pending_tool.iter_mut().map(|tool| &mut tool.name);
        [&mut self.path, &mut self.project]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(lists.into_iter().flatten())
            .chain(tool)
    }

    /// The same, with what was used since local midnight.
    #[must_use]
    pub fn with_today(self, today: &SessionUsage) -> SessionJson {
        let (cost, known, _) = cost::cost_fields(today.all().cost);
        SessionJson {
            cost_today_usd: cost,
            cost_today_usd_known: Some(known),
            ..self
        }
    }

    /// The row of a session.
    pub fn new(session: &Session, row: Row, place: SessionFileInfo) -> SessionJson {
        let time = |time: Option<unspool_model::time::Time>| time.map(|time| time.to_string());
        let pending_tool = pending_tool(session, &row.status);
        let status = row.status;
        let question = status.waits.and_then(|waits| waits.question);
        let used = row.used.all();
        let (cost_usd, known, unpriced_messages) = cost::cost_fields(used.cost);
        SessionJson {
            id: place.id,
            path: place.path,
            project: place.project,
            cwd: session.cwds.iter().next().map(|(cwd, _)| cwd.to_owned()),
            title: row.title,
            goal: row.goal,
            recent_output: row.recent_output,
            last_prompt: row.last_prompt,
            status: status.state.name().to_owned(),
            status_from: status.from.name().to_owned(),
            status_sure: status.sure,
            status_since: time(status.since),
            need: AttentionNeed::of(status.state, question.is_some())
                .word()
                .to_owned(),
            question,
            error: status.error,
            resets: time(status.resets),
            agents_working: status.agents,
            tasks_running: status.tasks,
            pending_tool,
            turns: row.turns,
            messages: row.messages,
            calls: row.calls,
            agents: row.agents,
            is_subagent: place.parent.is_some(),
            first: time(session.first),
            last: time(session.last),
            model: row.model,
            models: session.models.texts(),
            version: session
                .versions
                .iter()
                .next_back()
                .map(|(version, _)| version.to_owned()),
            versions: session.versions.texts(),
            git_branch: session.branch.clone(),
            slug: session.slug.clone(),
            permission_mode: session.permission_mode.clone(),
            entrypoint: session.entrypoint.clone(),
            pr_links: session.pr_links.texts(),
            compactions: row.compactions,
            bytes: place.bytes,
            usage: used.usage.into(),
            cost_usd,
            cost_usd_known: Some(known),
            unpriced_messages,
            used_by: Some(UsageByOrigin::from(&row.used)),
            cost_today_usd: None,
            cost_today_usd_known: None,
            context_tokens: row.context_tokens,
            context_limit: row.context_limit,
            parent: place.parent,
            forked_from: session.forked_from.as_ref().map(ToString::to_string),
            tag: session.tag().map(str::to_owned),
            process: session.process.as_deref().map(str::to_owned),
            background: row.job.map(Into::into),
            team: session.team.as_deref().map(str::to_owned),
            teammate: session.member.as_deref().map(str::to_owned),
            agent_kind: None,
            not_a_session: None,
            partial: false,
        }
    }
}

/// The call that runs or must be allowed; hooks may tell of it before it stands in the file.
fn pending_tool(session: &Session, status: &SessionStatus) -> Option<PendingTool> {
    let in_file = status.pending.map(|at| &session.calls[at as usize]);
    let asked = status.waits.as_ref();
    let asked = asked.and_then(|waits| Some((waits, waits.tool.clone()?)));
    if let Some((waits, name)) = asked {
        let call = in_file.filter(|call| waits.call.as_deref() == Some(session.call_id(call)));
        let since = call.and_then(|call| session.records[call.record as usize].at());
        return Some(PendingTool {
            name,
            subject: waits.subject.clone(),
            since: since.or(status.since).map(|since| since.to_string()),
        });
    }
    in_file.map(|call| PendingTool {
        name: session.text(call.tool).to_owned(),
        subject: session.subject(call).map(str::to_owned),
        since: session.records[call.record as usize]
            .at()
            .map(|at| at.to_string()),
    })
}
