//! A session with its sub-agents as rows.
//!
//! Nothing is decided here: the rows are those of the model's views. Texts are a second copy
//! of what stands in the transcripts, so they are cut short and secrets in them are masked.

use std::collections::HashMap;

use rusqlite::types::Value;
use unspool_model::entry::{self, LineKind};
use unspool_model::price::{Cost, Prices};
use unspool_model::secrets::SecretFinder;
use unspool_model::session::{EntryRecord, Index, Message, Session, ToolCall};
use unspool_model::time::Time;
use unspool_model::usage::Usage;
use unspool_model::user_input::UserInput;
use unspool_model::view::cost::CostSum;
use unspool_model::view::session_usage::{SessionFiles, SessionUsage, UsageTotal};
use unspool_model::view::status::StatusSignals;
use unspool_model::view::turns::{self, ThreadEnds, TurnRow};
use unspool_model::view::{agents, files, session_row};
use unspool_store::open::FileSource;
use unspool_store::{LoadedSession, SessionFile};

/// Rows of one view, one cell behind the other.
pub type TableCells = Vec<Value>;

/// The rows of a family, by view.
#[derive(Debug, Default)]
pub struct TableRows {
    pub sessions: TableCells,
    pub turns: TableCells,
    pub messages: TableCells,
    pub calls: TableCells,
    pub files: TableCells,
}

/// Tells what each turn of a file used, by its number.
pub type UsedByTurn<'a> = dyn Fn(&[TurnRow]) -> Vec<SessionUsage> + 'a;

/// Most characters of a text.
const TEXT: usize = 500;

/// So much of a text is searched for secrets: one that begins in what is kept must be seen
/// to its end.
const SEARCHED: usize = 8 << 10;

/// A text as it may be kept.
pub fn short(text: &str) -> String {
    let start = match text.char_indices().nth(SEARCHED) {
        Some((end, _)) => &text[..end],
        None => text,
    };
    entry::clip(&SecretFinder::standard().mask(start), TEXT)
}

/// The row of a session.
pub fn session(file: &SessionFile, files: &SessionFiles<'_>, prices: &Prices) -> TableCells {
    let session = files.session;
    // The time only decides the status, which is not among the columns: it would be old
    // before anybody asks.
    let row = session_row::row(
        files,
        &HashMap::new(),
        prices,
        &StatusSignals::default(),
        Time(0),
    );
    let first = |tally: &unspool_model::text_counts::TextCounts| {
        let first = tally.iter().next();
        first.map(|(text, _)| text.to_owned())
    };
    let mut cells = vec![
        file.path.display().to_string().into(),
        first(&session.cwds).into(),
        masked(row.title),
        masked(row.goal),
        masked(row.recent_output),
        count(row.turns),
        count(row.messages),
        count(row.calls),
        count(row.agents),
        time(session.first),
        time(session.last),
        row.model.into(),
        list(&session.models.texts()),
        session
            .versions
            .iter()
            .next_back()
            .map(|(version, _)| version.to_owned())
            .into(),
        list(&session.versions.texts()),
        session.branch.clone().into(),
        session.slug.clone().into(),
        session.permission_mode.clone().into(),
        session.entrypoint.clone().into(),
        list(&session.pr_links.texts()),
        count(row.compactions),
        number(file.bytes),
    ];
    let used = row.used.all();
    cells.extend(tokens(used.usage));
    cells.extend(costs(used.cost));
    cells.extend([
        row.context_tokens.map_or(Value::Null, number),
        row.context_limit.map_or(Value::Null, number),
        session.forked_from.as_ref().map(ToString::to_string).into(),
        masked(session.tag().map(str::to_owned)),
    ]);
    cells
}

/// Adds what one file of a family tells; `agent` is whose file it is, `used` what each of its turns
/// used by its number. The turns of a sub-agent used what the turn of its session did that sent it,
/// so that a sum over all turns has it once.
pub fn file(
    rows: &mut TableRows,
    loaded: &LoadedSession,
    agent: Option<&str>,
    used: Option<&UsedByTurn<'_>>,
) {
    let (session, source) = (&loaded.session, &loaded.source);
    let turns = turns::turns(session, source, turns::TurnOptions::default());
    let used = used.map(|used| used(&turns));
    let file = RowSourceFile {
        session,
        source,
        agent,
        course: ThreadEnds::of(session),
        turn_of: turns::numbers(session),
        threads: (0..session.threads.len() as Index)
            .map(|thread| agents::thread_name(session, thread))
            .collect(),
    };
    for turn in &turns {
        let used = used.as_ref().map(|used| used[turn.n].all());
        file.turn(&mut rows.turns, turn, used);
    }
    for (at, record) in session.records.iter().enumerate() {
        file.message(&mut rows.messages, at as Index, record);
    }
    for call in &session.calls {
        file.call(&mut rows.calls, call);
    }
    for touched in files::files(session, source) {
        let numbers = [
            touched.reads,
            touched.writes,
            touched.edits,
            touched.added,
            touched.removed,
            touched.versions,
        ];
        rows.files
            .extend([agent.map(str::to_owned).into(), short(&touched.path).into()]);
        rows.files.extend(numbers.map(count));
    }
}

/// One file of a family.
struct RowSourceFile<'a> {
    session: &'a Session,
    source: &'a FileSource,
    agent: Option<&'a str>,
    course: ThreadEnds,
    turn_of: Vec<Option<u32>>,
    threads: Vec<String>,
}

impl RowSourceFile<'_> {
    fn turn(&self, cells: &mut TableCells, turn: &TurnRow, used: Option<UsageTotal>) {
        let opener = &self.session.records[turn.record as usize];
        let mode = opener.permission_mode().map(|mode| self.session.text(mode));
        cells.extend([
            self.agent.map(str::to_owned).into(),
            count(turn.n),
            opener.line.into(),
            uuid(opener),
            turn.kind.name().to_owned().into(),
            turn.round.name().to_owned().into(),
            turn.live.into(),
            mode.map(str::to_owned).into(),
            short(&turn.prompt).into(),
            time(turn.at),
            time(turn.ended),
            turn.duration_ms.map_or(Value::Null, number),
            count(turn.messages.len()),
            count(turn.calls.len()),
            count(turns::agents(self.session, &turn.calls).len()),
            masked(turn.reply.clone()),
            turn.interrupted.into(),
            turn.compacted.into(),
        ]);
        match used {
            Some(used) => {
                cells.extend(tokens(used.usage));
                cells.extend(costs(used.cost));
            }
            None => cells.extend(std::iter::repeat_n(Value::Null, 8)),
        }
    }

    /// The message that begins on this line, if one does.
    fn message(&self, cells: &mut TableCells, at: Index, record: &EntryRecord) {
        match record.kind {
            LineKind::User if !record.is_duplicate() => self.said(cells, at, record),
            LineKind::Assistant => {
                let message = record
                    .message()
                    .map(|message| &self.session.messages[message as usize]);
                if let Some(message) = message.filter(|one| one.records.first() == Some(&at)) {
                    self.reply(cells, at, record, message);
                }
            }
            _ => {}
        }
    }

    fn said(&self, cells: &mut TableCells, at: Index, record: &EntryRecord) {
        let text = (record.input != UserInput::Results)
            .then(|| turns::prompt(self.session, self.source, record))
            .filter(|text| !text.is_empty());
        self.start(cells, at, record);
        cells.extend([
            Value::Null,
            "user".to_owned().into(),
            record.input.name().to_owned().into(),
            time(record.at()),
            Value::Null,
            masked(text),
        ]);
        cells.extend(std::iter::repeat_n(Value::Null, 7));
    }

    fn reply(&self, cells: &mut TableCells, at: Index, record: &EntryRecord, message: &Message) {
        let name = |name: Option<Index>| name.map(|name| self.session.text(name).to_owned());
        let kind = if message.synthetic {
            "synthetic"
        } else {
            "reply"
        };
        let said = turns::said(self.session, self.source, message);
        self.start(cells, at, record);
        cells.extend([
            self.session.message_id(message).map(str::to_owned).into(),
            "assistant".to_owned().into(),
            kind.to_owned().into(),
            time(message.first()),
            time(message.last()),
            masked(Some(said).filter(|said| !said.is_empty())),
            name(message.model()).into(),
            name(message.stop()).into(),
        ]);
        cells.extend(tokens(self.session.usage_of(message)));
    }

    fn call(&self, cells: &mut TableCells, call: &ToolCall) {
        let session = self.session;
        let record = &session.records[call.record as usize];
        let length = |block: Index| count(session.blocks[block as usize].body().len);
        let result = call.result.as_ref();
        let message = record
            .message()
            .and_then(|at| session.message_id(&session.messages[at as usize]));
        cells.extend([
            self.agent_of(record),
            self.turn_at(call.record),
            record.line.into(),
            session.call_id(call).to_owned().into(),
            uuid(record),
            result.map_or(Value::Null, |result| {
                uuid(&session.records[result.record as usize])
            }),
            message.map(str::to_owned).into(),
            session.text(call.tool).to_owned().into(),
            masked(session.subject(call).map(str::to_owned)),
            self.course.status(session, call).name().to_owned().into(),
            time(record.at()),
            turns::call_duration(session, call).map_or(Value::Null, number),
            length(call.block),
            result.map_or(Value::Null, |result| length(result.block)),
            session.agent_of(call).map(str::to_owned).into(),
        ]);
    }

    /// The columns that every message begins with.
    fn start(&self, cells: &mut TableCells, at: Index, record: &EntryRecord) {
        cells.extend([
            self.agent_of(record),
            self.turn_at(at),
            record.line.into(),
            uuid(record),
        ]);
    }

    /// Whose line it is: sub-agents may also speak inside their session's file.
    fn agent_of(&self, record: &EntryRecord) -> Value {
        let inside = (record.thread != 0).then(|| &*self.threads[record.thread as usize]);
        self.agent.or(inside).map(str::to_owned).into()
    }

    fn turn_at(&self, record: Index) -> Value {
        self.turn_of[record as usize].map_or(Value::Null, Value::from)
    }
}

fn uuid(record: &EntryRecord) -> Value {
    record.uuid.as_ref().map(ToString::to_string).into()
}

pub fn time(time: Option<Time>) -> Value {
    time.map(|time| time.to_string()).into()
}

fn masked(text: Option<String>) -> Value {
    text.map(|text| short(&text)).into()
}

fn count(number: usize) -> Value {
    self::number(number as u64)
}

fn number(number: u64) -> Value {
    i64::try_from(number).unwrap_or(i64::MAX).into()
}

/// What something cost, if that is known.
pub fn usd(cost: Option<Cost>) -> Value {
    cost.map(Cost::usd).into()
}

/// What something cost, what of that is known, and how many messages have no price.
fn costs(cost: CostSum) -> [Value; 3] {
    [
        usd(cost.total()),
        cost.known.usd().into(),
        number(cost.unpriced),
    ]
}

/// Tokens in the order of the columns.
pub fn tokens(usage: Usage) -> [Value; 5] {
    [
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write_5m,
        usage.cache_write_1h,
    ]
    .map(number)
}

fn list(texts: &[String]) -> Value {
    serde_json::json!(texts).to_string().into()
}
