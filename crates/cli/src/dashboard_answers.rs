//! What the dashboard asks, answered by the functions behind the commands.

mod item_rows;
mod word_index_status;

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use unspool_index::usage_cache::UsageCache;
use unspool_live::{LiveEvent, LiveSessions};
use unspool_model::find::{CaseMode, SearchScope, TextQuery};
use unspool_model::hook_events;
use unspool_model::price::Prices;
use unspool_model::view::transcript;
use unspool_model::view::transcript::outline::ItemClass;
use unspool_model::view::turns::{self, CallStatus, TurnRow as Turn};
use unspool_model::view::{commits, context, files, session_row};
use unspool_serve::{
    ContextQuery, DashboardApi, DashboardError, DashboardResponse, ExportQuery, FindQuery,
    ItemsQuery, ResponseKind, SearchSessionsQuery, SessionsQuery, ThreadQuery, TimelineQuery,
    TrimQuery, TurnsQuery, UsageQuery,
};
use unspool_show::shell_command;
use unspool_show::wire::cost;
use unspool_show::wire::detail::{BranchRow, CommitRow, DetailRow};
use unspool_show::wire::file::FileJson;
use unspool_show::wire::graph::{AgentJson, TreeNodeJson};
use unspool_show::wire::item::{self, CUT, ItemHitRow, TimelineRow};
use unspool_show::wire::session::SessionJson;
use unspool_store::hook_events::RecordedHookEvent;
use unspool_store::resolve::SessionTarget;
use unspool_store::search::{self, SearchFileKind, SearchRequest, SearchTimeRange};

use crate::background_indexing;
use crate::command_context::CommandContext;
use crate::commands::{agents, clone, export, ls, search as searching, tree, usage};
use crate::failure::CommandFailure;
use crate::secrets;
use crate::session_cache::{OpenConversation, OpenSession, SessionCache};
use item_rows::{ItemLevel, range};
use word_index_status::WordIndexStatus;

/// The most items of one answer.
const ITEMS: usize = 200;
/// The most turns of one answer, where somebody counts.
const TURNS: usize = 1_000;
/// The most hits of one answer.
const HITS: usize = 500;
/// How many hits unless somebody says.
const FEW: usize = 50;
/// The most pieces of a context that are named.
const PIECES: usize = 100;
/// The most parts of a strip.
const BUCKETS: usize = 2_000;
/// The world, and what is kept of it between questions.
pub struct DashboardBackend {
    inner: Arc<DashboardState>,
}

struct DashboardState {
    world: CommandContext,
    live: LiveSessions,
    desk: SessionCache,
    prices: Prices,
    spendings: Mutex<UsageCache>,
    words: WordIndexStatus,
}

impl From<CommandFailure> for DashboardError {
    fn from(failure: CommandFailure) -> DashboardError {
        let (status, told) = match failure {
            CommandFailure::Nothing(told) => (404, told),
            CommandFailure::Failed(told) => (500, told),
            CommandFailure::Found | CommandFailure::Code(_) | CommandFailure::Closed => {
                return DashboardError::failed("the client disconnected");
            }
        };
        let refused = DashboardError::new(status, secrets::known().mask(&told.message));
        match told.hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        }
    }
}

/// A question that makes no sense is the asker's fault.
fn bad(failure: CommandFailure) -> DashboardError {
    let mut refused = DashboardError::from(failure);
    if refused.status == 500 {
        refused.status = 400;
    }
    refused
}

impl DashboardBackend {
    /// A desktop on this world.
    pub fn new(mut world: CommandContext, live: LiveSessions) -> DashboardBackend {
        // What is wrong is answered, not printed.
        world.ui.quiet = true;
        let cache = world.demo.is_none().then_some(world.own.cache.as_path());
        let spendings = Mutex::new(UsageCache::open(cache, true));
        let prices = world.prices().into_owned();
        DashboardBackend {
            inner: Arc::new(DashboardState {
                world,
                live,
                desk: SessionCache::default(),
                prices,
                spendings,
                words: WordIndexStatus::default(),
            }),
        }
    }

    fn world(&self) -> &CommandContext {
        &self.inner.world
    }

    fn with<T>(
        &self,
        id: &str,
        job: impl FnOnce(&OpenSession) -> Result<T, CommandFailure>,
    ) -> Result<T, DashboardError> {
        Ok(self.inner.desk.with(&self.inner.world, id, job)?)
    }
}

impl DashboardApi for DashboardBackend {
    fn sessions(
        &self,
        ask: &SessionsQuery,
        rows: Vec<Arc<SessionJson>>,
        _scanned: bool,
    ) -> Result<DashboardResponse, DashboardError> {
        let (project, since) = (ask.project.as_deref(), ask.since.as_deref());
        let wanted = ls::SessionFilter::new(self.world(), project, since, ask.status.as_deref());
        let wanted = wanted.map_err(bad)?;
        let limit = ask.limit.unwrap_or(usize::MAX);
        let rows = rows
            .iter()
            .map(|row| &**row)
            .filter(|row| wanted.takes(row));
        DashboardResponse::json(&rows.take(limit).collect::<Vec<_>>())
    }

    fn session(
        &self,
        id: &str,
        row: Option<Arc<SessionJson>>,
    ) -> Result<DashboardResponse, DashboardError> {
        let world = self.world();
        let detail = self.with(id, |opened| {
            let chosen = &opened.chosen;
            let main = &chosen.family.main;
            if !main.session.is_used() {
                return Err(CommandFailure::nothing("no such session"));
            }
            let view = opened.view(None, None)?;
            let course = view.outline.base().course();
            let own = |at: &u32| {
                let call = &main.session.calls[*at as usize];
                main.session.records[call.record as usize].thread == 0
            };
            let calls: Vec<u32> = (0..main.session.calls.len() as u32).filter(own).collect();
            let agents = agents::rows(world, chosen);
            let commits = commits::commits(&main.session, &main.source);
            let directory = main.session.cwds.iter().next().map(|(cwd, _)| cwd);
            let directory = directory.filter(|it| Path::new(it).is_dir());
            Ok(DetailRow {
                row: match row {
                    Some(row) if !row.partial => (*row).clone(),
                    _ => export::row(world, chosen),
                },
                resume: shell_command::resume(directory, id),
                chat: shell_command::chat(directory, id),
                items: view.all.len(),
                agents_list: agents
                    .iter()
                    .map(|(row, used)| AgentJson::new(row, *used))
                    .collect(),
                files: files::files(&main.session, &main.source)
                    .iter()
                    .map(FileJson::from)
                    .collect(),
                branches: branches(opened),
                commits: commits.iter().map(CommitRow::from).collect(),
                tools: item::tools(&main.session, course, &calls),
            })
        })?;
        DashboardResponse::json(&detail)
    }

    fn turns(&self, id: &str, ask: &TurnsQuery) -> Result<DashboardResponse, DashboardError> {
        let counted = ask.from.is_some() || ask.limit.is_some() || ask.last.is_some();
        let most = if counted { TURNS } else { usize::MAX };
        let (rows, total, from) = self.with(id, |opened| {
            let view = opened.view(ask.agent.as_deref(), None)?;
            let turns = match view.outline.thread() {
                0 => view.outline.base().turns(),
                _ => &[],
            };
            let range = range(turns.len(), ask.from, ask.limit, ask.last, most);
            let rows = self.turn_rows(opened, &view, &turns[range.clone()]);
            Ok((rows, turns.len(), range.start))
        })?;
        let answer = DashboardResponse::json(&rows)?;
        Ok(answer
            .with("unspool-total", total)
            .with("unspool-from", from))
    }

    fn turn(
        &self,
        id: &str,
        n: usize,
        ask: &TurnsQuery,
    ) -> Result<DashboardResponse, DashboardError> {
        let (row, total) = self.with(id, |opened| {
            let view = opened.view(ask.agent.as_deref(), None)?;
            let part = view.outline.part(n);
            let part = part.ok_or_else(|| CommandFailure::nothing("no such turn"))?;
            let own = view.outline.range(part);
            let wanted = range(own.len(), ask.from, ask.limit, ask.last, ITEMS);
            let places = own.start + wanted.start..own.start + wanted.end;
            let items = ItemsQuery {
                agent: ask.agent.clone(),
                ..ItemsQuery::default()
            };
            let rows = self.rows(opened, &view, id, &items, places, Some(CUT))?;
            let turn = turns::numbered(view.outline.base().turns(), n).cloned();
            let turn = turn.filter(|_| view.outline.thread() == 0);
            let mut told = self.turn_rows(opened, &view, turn.as_slice());
            let row = told.pop().map(|mut row| {
                row.items = Some(rows.clone());
                row
            });
            Ok((row.ok_or(rows), own.len()))
        })?;
        let answer = match row {
            Ok(row) => DashboardResponse::json(&row)?,
            Err(items) => DashboardResponse::json(&serde_json::json!({ "n": n, "items": items }))?,
        };
        Ok(answer.with("unspool-total", total))
    }

    fn items(&self, id: &str, ask: &ItemsQuery) -> Result<DashboardResponse, DashboardError> {
        let level = ItemLevel::named(ask.level.as_deref()).map_err(bad)?;
        if let Some(answer) = self.quickly(id, ask)? {
            return Ok(answer);
        }
        let (rows, total, from) = self.with(id, |opened| {
            let view = opened.view(ask.agent.as_deref(), ask.branch.as_deref())?;
            let total = level.count(&view);
            let from = match (ask.turn, ask.line) {
                (Some(turn), _) => {
                    let part = view.outline.part(turn);
                    let part = part.ok_or_else(|| CommandFailure::nothing("no such turn"))?;
                    let first = view.outline.range(part).start as u32;
                    let at = view.all.binary_search(&first);
                    let at =
                        at.map_err(|_| CommandFailure::nothing("no such turn on this branch"))?;
                    Some(level.place(&view, at))
                }
                (None, Some(line)) => {
                    let (session, _) = opened.lines(&view);
                    Some(level.place(&view, view.at_line(session, line)))
                }
                (None, None) => ask.from,
            };
            let range = range(total, from, ask.limit, ask.last, ITEMS);
            let rows = self.rows(opened, &view, id, ask, range.clone(), Some(CUT))?;
            Ok((rows, total, range.start))
        })?;
        let answer = DashboardResponse::json(&rows)?;
        Ok(answer
            .with("unspool-total", total)
            .with("unspool-from", from))
    }

    fn item(
        &self,
        id: &str,
        i: usize,
        ask: &ItemsQuery,
    ) -> Result<DashboardResponse, DashboardError> {
        let level = ItemLevel::named(ask.level.as_deref()).map_err(bad)?;
        let row = self.with(id, |opened| {
            let view = opened.view(ask.agent.as_deref(), ask.branch.as_deref())?;
            if i >= level.count(&view) {
                return Err(CommandFailure::nothing("no such item"));
            }
            let mut rows = self.rows(opened, &view, id, ask, i..i + 1, None)?;
            rows.pop()
                .ok_or_else(|| CommandFailure::nothing("no such item"))
        })?;
        DashboardResponse::json(&row)
    }

    fn raw(
        &self,
        id: &str,
        line: u32,
        thread: &ThreadQuery,
    ) -> Result<DashboardResponse, DashboardError> {
        let bytes = self.with(id, |opened| {
            let (session, source) = opened.lines_of(thread.agent.as_deref())?;
            let from = session.records.partition_point(|record| record.line < line);
            let record = session.records.get(from).filter(|one| one.line == line);
            let record = record.ok_or_else(|| CommandFailure::nothing("no such line"))?;
            let bytes = source.bytes(record.offset, record.len());
            let bytes = bytes
                .ok_or_else(|| CommandFailure::nothing("the line is no longer in the file"))?;
            Ok(bytes.into_owned())
        })?;
        Ok(DashboardResponse {
            kind: ResponseKind::Json,
            bytes,
            remarks: Vec::new(),
        })
    }

    fn image(
        &self,
        id: &str,
        line: u32,
        k: usize,
        thread: &ThreadQuery,
    ) -> Result<DashboardResponse, DashboardError> {
        let data = self.with(id, |opened| {
            let (session, source) = opened.lines_of(thread.agent.as_deref())?;
            let pictures = transcript::pictures(session, source, line);
            let picture = pictures.into_iter().nth(k);
            let picture = picture.ok_or_else(|| CommandFailure::nothing("no such image"))?;
            Ok(picture.data)
        })?;
        let image = unspool_show::image_type::decode(&data);
        let (kind, bytes) =
            image.ok_or_else(|| DashboardError::absent("unsupported image format"))?;
        Ok(DashboardResponse {
            kind: ResponseKind::Image(kind),
            bytes,
            remarks: Vec::new(),
        })
    }

    fn find(&self, id: &str, ask: &FindQuery) -> Result<DashboardResponse, DashboardError> {
        let world = self.world();
        let query = TextQuery::literal(&ask.q, CaseMode::Smart);
        let query = query.map_err(|_| DashboardError::bad("the query is empty"))?;
        let scope = SearchScope {
            places: Vec::new(),
            paths: false,
            around: 0,
            reveal: world.reveal,
            secrets: (!world.reveal).then(|| secrets::known().clone()),
        };
        let most = ask.limit.unwrap_or(HITS).min(HITS);
        let (rows, total) = self.with(id, |opened| {
            let whole = opened.view(ask.agent.as_deref(), None)?;
            let view = opened.view(ask.agent.as_deref(), ask.branch.as_deref())?;
            let (session, _) = opened.lines(&view);
            let is_shown = |hit: &search::SearchHit| {
                let at = whole.at_line(session, line_of(hit));
                let entry = whole.all.get(at);
                ask.branch.is_none() || entry.is_some_and(|&entry| view.shows(entry))
            };
            let path = opened.path(ask.agent.as_deref())?;
            let sources = match &opened.chosen.target {
                SessionTarget::Session(file) => search::files(
                    &unspool_store::find::find_beside_transcript(&file.path),
                    file,
                ),
                SessionTarget::Agent(file) => vec![search::agent_search_file(file)],
            };
            let is_own = |source: &search::SearchFile| {
                source.path == path && source.holds != SearchFileKind::Output
            };
            let sources: Vec<_> = sources.into_iter().filter(is_own).collect();
            let what = SearchRequest {
                query: &query,
                scope: &scope,
                span: SearchTimeRange::default(),
            };
            let mut hits = Vec::new();
            let mut total = 0;
            let threads = unspool_store::parallel::threads();
            search::search(&sources, &what, threads, |_, hit| {
                if is_shown(&hit) {
                    total += 1;
                    if hits.len() < most {
                        hits.push(hit);
                    }
                }
                std::ops::ControlFlow::Continue(())
            });
            let row = |hit: &search::SearchHit| {
                let at = view.at_line(session, line_of(hit));
                let at = of_kind(&view, at, hit.found.place.name());
                let entry = view.all.get(at).copied().unwrap_or(0) as usize;
                ItemHitRow {
                    i: at,
                    turn: view.outline.turn(view.outline.part_at(entry)),
                    line: hit.line,
                    r#where: hit.found.place.name().to_owned(),
                    snippet: hit.found.snippet.whole(),
                }
            };
            Ok((hits.iter().map(row).collect::<Vec<_>>(), total))
        })?;
        Ok(DashboardResponse::json(&rows)?.with("unspool-total", total))
    }

    fn timeline(&self, id: &str, ask: &TimelineQuery) -> Result<DashboardResponse, DashboardError> {
        let buckets = ask.buckets.unwrap_or(240).clamp(1, BUCKETS);
        let rows = self.with(id, |opened| {
            let view = opened.view(ask.agent.as_deref(), ask.branch.as_deref())?;
            let (session, _) = opened.lines(&view);
            let all = match view.outline.thread() {
                0 => view.outline.base().turns(),
                _ => &[],
            };
            let shown = view.turns().map(|part| view.outline.turn(part)).enumerate();
            let shown = shown.filter_map(|(at, n)| Some((at, turns::numbered(all, n)?)));
            let turns: Vec<(usize, &Turn)> = shown.collect();
            let each = turns.len().div_ceil(buckets).max(1);
            let course = view.outline.base().course();
            let used = opened.used(&self.inner.prices);
            let moment = |turns: &[(usize, &Turn)]| {
                let mut one = TimelineRow {
                    cost_usd: Some(0.0),
                    ..TimelineRow::default()
                };
                for &(at, turn) in turns {
                    if one.turns == 0 {
                        one.turn = turn.n;
                        one.i = at;
                        one.at = turn.at.map(|at| at.to_string());
                    }
                    one.turns += 1;
                    one.ms += turn.duration_ms.unwrap_or(0);
                    one.calls += turn.calls.len();
                    let failed = turn.calls.iter().filter(|&&call| {
                        let call = &session.calls[call as usize];
                        course.status(session, call) == CallStatus::Error
                    });
                    one.failed += failed.count();
                    let all = used.get(turn.n).copied().unwrap_or_default().all();
                    one.output += all.usage.output;
                    let (cost, known, unpriced) = cost::cost_fields(all.cost);
                    one.cost_usd = one.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
                    one.cost_usd_known += known;
                    one.unpriced_messages += unpriced;
                    let context = turn.messages.iter().rev();
                    let mut context = context
                        .map(|&at| session.usage_of(&session.messages[at as usize]).context());
                    one.context_tokens = context.find(|&tokens| tokens > 0).or(one.context_tokens);
                    one.compacted |= turn.compacted;
                    one.live |= turn.live;
                }
                one
            };
            Ok(turns.chunks(each).map(moment).collect::<Vec<_>>())
        })?;
        DashboardResponse::json(&rows)
    }

    fn context(&self, id: &str, ask: &ContextQuery) -> Result<DashboardResponse, DashboardError> {
        let most = ask.most.unwrap_or(10).min(PIECES);
        let (context, limit) = self.with(id, |opened| {
            let main = &opened.chosen.family.main;
            let context = context::context(&main.session, &main.source, most);
            let model = session_row::model(&main.session);
            let tokens = context.tokens;
            let limit = model.and_then(|model| self.inner.prices.limit(&model, tokens));
            Ok((context, limit))
        })?;
        let rows = crate::commands::context::rows(&context);
        let answer = DashboardResponse::json(&rows)?
            .with("unspool-tokens", context.tokens)
            .with("unspool-measured", context.measured);
        Ok(match limit {
            Some(limit) => answer.with("unspool-limit", limit),
            None => answer,
        })
    }

    fn tree(&self, id: &str) -> Result<DashboardResponse, DashboardError> {
        let rows = self.with(id, |opened| {
            let nodes = tree::nodes(self.world(), &opened.chosen);
            Ok(nodes.iter().map(TreeNodeJson::from).collect::<Vec<_>>())
        })?;
        DashboardResponse::json(&rows)
    }

    fn trim(&self, id: &str, ask: &TrimQuery) -> Result<DashboardResponse, DashboardError> {
        let world = self.world();
        let target = self.inner.desk.file(world, id)?;
        let chosen = world.load(target)?;
        let preset = ask.preset.as_deref().unwrap_or("default");
        let result = clone::preview(world, chosen, preset).map_err(bad)?;
        DashboardResponse::json(&result)
    }

    fn export(
        &self,
        id: &str,
        ask: &ExportQuery,
        out: &mut dyn Write,
    ) -> Result<(), DashboardError> {
        let to = ask.to.as_deref().unwrap_or("html");
        let to = export::ExportFormatArg::from_str(to, true).map_err(DashboardError::bad)?;
        let detail = ask.detail.as_deref();
        let detail = detail.map(|detail| export::ExportDetailArg::from_str(detail, true));
        let detail = detail.transpose().map_err(DashboardError::bad)?;
        let args = export::ExportArgs {
            to: Some(to),
            detail,
            ..export::ExportArgs::default()
        };
        let world = self.world();
        let target = self.inner.desk.file(world, id)?;
        // Read for itself: whoever takes long to read it must not keep others waiting.
        let chosen = world.look(target)?;
        Ok(export::document(world, &args, &chosen, out)?)
    }

    fn search(&self, ask: &SearchSessionsQuery) -> Result<DashboardResponse, DashboardError> {
        let places = ask.r#in.as_deref().unwrap_or_default().split(',');
        let places = places.filter(|place| !place.is_empty());
        let places = places.map(searching::place).collect::<Result<Vec<_>, _>>();
        let limit = ask.limit.unwrap_or(FEW).clamp(1, HITS);
        let ranked = ask.ranked.is_some_and(|ranked| ranked != 0);
        let args = searching::SearchArgs {
            query: ask.q.clone(),
            regex: ask.regex.is_some_and(|regex| regex != 0),
            places: places.map_err(DashboardError::bad)?,
            project: ask.project.clone(),
            since: ask.since.clone(),
            until: ask.until.clone(),
            limit: Some(limit),
            ranked,
            no_background: true,
            ..searching::SearchArgs::default()
        };
        if ask.q.trim().is_empty() {
            return DashboardResponse::json(&Vec::<()>::new());
        }
        let world = self.world();
        if ranked && !self.has_words() {
            let none = DashboardResponse::json(&Vec::<()>::new())?;
            return Ok(none.with("unspool-index", "building"));
        }
        if ranked {
            let (rows, behind) = searching::ranked::rows(world, &args).map_err(bad)?;
            // Thinking and tool results are gathered by a process of its own.
            if behind && self.inner.words.are_due() {
                background_indexing::start(world);
            }
            let state = if behind { "building" } else { "ready" };
            return Ok(DashboardResponse::json(&rows)?.with("unspool-index", state));
        }
        DashboardResponse::json(&searching::rows(world, &args, limit).map_err(bad)?)
    }

    fn usage(&self, ask: &UsageQuery) -> Result<DashboardResponse, DashboardError> {
        let named =
            |name: &str| usage::UsageGroupArg::from_str(name, true).map_err(DashboardError::bad);
        let split = ask.split.as_deref().unwrap_or_default().split(',');
        let split = split.filter(|name| !name.is_empty()).map(named);
        let args = usage::UsageArgs {
            per: named(ask.by.as_deref().unwrap_or("day"))?,
            by: split.collect::<Result<_, _>>()?,
            since: ask.since.clone(),
            until: ask.until.clone(),
            project: ask.project.clone(),
            start_of_week: usage::WeekStart::default(),
            own: false,
            explain: None,
            live: false,
            no_cache: false,
        };
        let spendings = &self.inner.spendings;
        let mut spendings = spendings.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = usage::rows(self.world(), &args, &mut spendings).map_err(bad)?;
        DashboardResponse::json(&rows)
    }

    fn hook(&self, event: &[u8]) -> Result<(), DashboardError> {
        let told = hook_events::HookEvent::read(event);
        if told.event.session.is_empty() || told.event.name.is_empty() {
            return Err(DashboardError::bad("not a hook event"));
        }
        let noted = RecordedHookEvent::new(&told.event, self.world().now().0);
        // What is told twice is true once: the loop is told even where nothing can be noted.
        let _ = self.world().events().note(&noted);
        self.inner.live.tell(LiveEvent::Hook(Box::new(noted)));
        Ok(())
    }
}

/// The line of a hit, as items count them.
fn line_of(hit: &search::SearchHit) -> u32 {
    u32::try_from(hit.line).unwrap_or(u32::MAX)
}

/// The item on the same line that holds what was found.
fn of_kind(view: &OpenConversation, at: usize, place: &str) -> usize {
    let wanted = match place {
        "tool" | "result" => ItemClass::Call,
        "thinking" => ItemClass::Thinking,
        _ => return at,
    };
    let entry = |at: usize| {
        let entry = view.all.get(at)?;
        Some(view.outline.entries()[*entry as usize])
    };
    let Some(first) = entry(at) else { return at };
    let same = (at..).take_while(|&next| entry(next).is_some_and(|one| one.line == first.line));
    let mut fits = same.filter(|&next| entry(next).is_some_and(|one| one.class == wanted));
    fits.next().unwrap_or(at)
}

/// The ends of the branches of a session, the live one first.
fn branches(opened: &OpenSession) -> Vec<BranchRow> {
    let main = &opened.chosen.family.main;
    let id = opened.chosen.id();
    let nodes = unspool_model::view::tree::tree(&main.session, &main.source, id, &[]);
    let inner: std::collections::HashSet<usize> =
        nodes.iter().filter_map(|node| node.parent).collect();
    let ends = nodes
        .iter()
        .filter(|node| !inner.contains(&node.id) && node.line > 0);
    let mut rows: Vec<BranchRow> = ends
        .map(|node| BranchRow {
            uuid: node.uuid.clone(),
            label: node.label.clone(),
            at: node.at.map(|at| at.to_string()),
            live: node.live,
        })
        .collect();
    rows.sort_by_key(|row| !row.live);
    rows
}
