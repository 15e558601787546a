//! The views that SQL may ask: their columns, what they mean, and the tables behind them.
//!
//! Names and meanings are promises, the same as those of JSON rows. The tables behind the
//! views are not: a view has the columns of its table and those of the family the row
//! belongs to. Another list of columns makes another version of the database by itself;
//! raise [`MEANING`] when a column keeps its name and means something else.

use std::sync::LazyLock;

use crate::db::DatabaseSchema;

/// Raise this when rows of the same columns are made differently.
const MEANING: u32 = 4;

/// What is in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Whole numbers; truth is 1 and 0.
    Integer,
    /// Other numbers.
    Real,
}

impl ColumnKind {
    /// The name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Text => "TEXT",
            ColumnKind::Integer => "INTEGER",
            ColumnKind::Real => "REAL",
        }
    }
}

/// A column of a view.
#[derive(Clone, Copy, Debug)]
pub struct ViewColumn {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub kind: ColumnKind,
    /// What it means, in one line.
    pub about: &'static str,
    /// Where it comes from.
    origin: ColumnOrigin,
}

/// Where a column of a view comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnOrigin {
    /// It is stored with the row.
    Row,
    /// It stands with the family, not with the row.
    Family,
    /// It is made of others when somebody asks, so that it takes no place on disk.
    Made(&'static str),
}

/// A view.
#[derive(Clone, Copy, Debug)]
pub struct SqlView {
    /// Its name.
    pub name: &'static str,
    /// What a row is, in one line.
    pub about: &'static str,
    /// Its columns in order.
    pub columns: &'static [ViewColumn],
}

impl SqlView {
    /// The columns of the table behind it.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &'static ViewColumn> {
        self.columns
            .iter()
            .filter(|column| column.origin == ColumnOrigin::Row)
    }

    /// Puts a row into the table behind it.
    pub(crate) fn insert(&self) -> String {
        let marks = ", ?".repeat(self.stored().count());
        format!("INSERT INTO {}_rows VALUES (?, ?{marks})", self.name)
    }
}

const fn text(name: &'static str, about: &'static str) -> ViewColumn {
    ViewColumn {
        name,
        kind: ColumnKind::Text,
        about,
        origin: ColumnOrigin::Row,
    }
}

const fn int(name: &'static str, about: &'static str) -> ViewColumn {
    ViewColumn {
        kind: ColumnKind::Integer,
        ..text(name, about)
    }
}

const fn of_family(name: &'static str, about: &'static str) -> ViewColumn {
    ViewColumn {
        origin: ColumnOrigin::Family,
        ..text(name, about)
    }
}

const fn made(name: &'static str, of: &'static str, about: &'static str) -> ViewColumn {
    ViewColumn {
        origin: ColumnOrigin::Made(of),
        ..text(name, about)
    }
}

const SESSION: ViewColumn = of_family("session", "the id of the session");
const PROJECT: ViewColumn = of_family("project", "the directory of its project");
const AGENT: ViewColumn = text("agent", "the sub-agent; NULL for the session itself");
const INPUT: ViewColumn = int("input", "uncached input tokens");
const OUTPUT: ViewColumn = int("output", "output tokens");
const CACHE_READ: ViewColumn = int("cache_read", "input tokens read from the cache");
const CACHE_5M: ViewColumn = int("cache_write_5m", "tokens written to the five-minute cache");
const CACHE_1H: ViewColumn = int("cache_write_1h", "tokens written to the one-hour cache");

const COST: ViewColumn = ViewColumn {
    kind: ColumnKind::Real,
    ..text("cost_usd", "cost in dollars; NULL if a price is unknown")
};

const COST_KNOWN: ViewColumn = ViewColumn {
    kind: ColumnKind::Real,
    ..text(
        "cost_usd_known",
        "cost of its messages that have a known price",
    )
};

const UNPRICED: ViewColumn = int(
    "unpriced_messages",
    "number of its messages without a known price",
);

/// One row per session.
pub const SESSIONS: SqlView = SqlView {
    name: "sessions",
    about: "one row per session; tokens and cost include its sub-agents, the client's own helpers, and what it repeats of another session",
    columns: &[
        of_family("id", "the id: the name of its file"),
        text("path", "its file"),
        PROJECT,
        text("cwd", "the directory it started in"),
        text("title", "its title, else its first prompt"),
        text("goal", "the first prompt, up to 200 characters"),
        text("recent_output", "the last reply, up to 500 characters"),
        int("turns", "turns"),
        int("messages", "replies, each counted once"),
        int("calls", "tool calls"),
        int("agents", "sub-agents"),
        text("first", "its first timestamp"),
        text("last", "its last timestamp"),
        text("model", "the model of the last reply"),
        text("models", "all models, as a JSON array"),
        text("version", "the latest client version"),
        text("versions", "all versions, as a JSON array"),
        text("git_branch", "the last git branch"),
        text("slug", "the slug of the session"),
        text("permission_mode", "the last permission mode"),
        text("entrypoint", "how the client was started"),
        text("pr_links", "pull requests made in it, as a JSON array"),
        int("compactions", "how often its context was compacted"),
        int("bytes", "bytes of its file"),
        INPUT,
        OUTPUT,
        CACHE_READ,
        CACHE_5M,
        CACHE_1H,
        COST,
        COST_KNOWN,
        UNPRICED,
        int("context_tokens", "tokens in the context of the last reply"),
        int("context_limit", "tokens that fit into the context window"),
        text("forked_from", "the session it was forked from"),
        text("tag", "its tag"),
    ],
};

/// One row per turn.
pub const TURNS: SqlView = SqlView {
    name: "turns",
    about: "one row per turn: from a prompt or command to the final reply; tokens and cost are those of `unspool turns`: sub-agents and the client's own helpers count in the turn that began them, so the turns of a sub-agent have NULL there (see `usage` for each sub-agent)",
    columns: &[
        SESSION,
        AGENT,
        PROJECT,
        int("n", "its number, from 1"),
        int("line", "the line that opened it"),
        text("uuid", "the id of that line"),
        text("kind", "prompt, command, shell, memory or plan"),
        text("round", "new_session, resume or new_round"),
        int("live", "1 on the live branch, 0 if rewound"),
        text("permission_mode", "its permission mode"),
        text("prompt", "the prompt, up to 500 characters"),
        text("at", "when"),
        text("ended", "when it ended; NULL while it is running"),
        int("duration_ms", "duration"),
        int("messages", "replies, each counted once"),
        int("calls", "tool calls"),
        int("agents", "sub-agents it started"),
        text("reply", "the last reply, up to 500 characters"),
        int("interrupted", "1 if the user interrupted it"),
        int("compacted", "1 if the context was compacted meanwhile"),
        INPUT,
        OUTPUT,
        CACHE_READ,
        CACHE_5M,
        CACHE_1H,
        COST,
        COST_KNOWN,
        UNPRICED,
    ],
};

/// One row per message.
pub const MESSAGES: SqlView = SqlView {
    name: "messages",
    about: "one row per message of a file: user messages, and each reply once",
    columns: &[
        SESSION,
        AGENT,
        PROJECT,
        int("turn", "the number of its turn"),
        int("line", "its first line"),
        text("uuid", "the id of that line"),
        text(
            "id",
            "the id the API gave a reply; replies repeated in other files share it",
        ),
        text("role", "user or assistant"),
        text(
            "kind",
            "reply, synthetic, or what a user line is: prompt, tool_result, meta …",
        ),
        text("at", "timestamp; of a reply, that of its first line"),
        text("ended", "of a reply, the timestamp of its last line"),
        text(
            "text",
            "its text, up to 500 characters; NULL for tool results (see calls)",
        ),
        text("model", "the model of a reply"),
        text("stop_reason", "the stop reason of a reply"),
        INPUT,
        OUTPUT,
        CACHE_READ,
        CACHE_5M,
        CACHE_1H,
    ],
};

/// One row per tool call.
pub const CALLS: SqlView = SqlView {
    name: "calls",
    about: "one row per tool call",
    columns: &[
        SESSION,
        AGENT,
        PROJECT,
        int("turn", "the number of its turn"),
        int("line", "the line that made it"),
        text("id", "its id"),
        text("uuid", "the id of that line"),
        text("result_uuid", "the id of the line with its result"),
        text("message", "the id of the reply that made it"),
        text("name", "the tool"),
        text("subject", "its subject: a path, a command, a pattern"),
        text("status", "ok, error, missing or running"),
        text("at", "when it was made"),
        int("duration_ms", "time from call to result"),
        int("input_bytes", "bytes of its input"),
        int("result_bytes", "bytes of its result"),
        text("started_agent", "the sub-agent it started"),
    ],
};

/// One row per message of the API, counted once over all files.
pub const USAGE: SqlView = SqlView {
    name: "usage",
    about: "one row per message of the API, counted once however many files hold it: sum this for tokens and cost",
    columns: &[
        text("session", "the id of the session it counts in"),
        AGENT,
        text("project", "the directory of its project"),
        text("id", "the id the API gave it, else that of its line"),
        text("model", "its model"),
        text("at", "when"),
        made(
            "day",
            "date(r.at, 'localtime')",
            "the local day of that, as `unspool usage` counts",
        ),
        INPUT,
        OUTPUT,
        CACHE_READ,
        CACHE_5M,
        CACHE_1H,
        COST,
        ViewColumn {
            kind: ColumnKind::Real,
            ..made(
                "cost_usd_known",
                "coalesce(r.cost_usd, 0)",
                "the same; 0 where its price is not known",
            )
        },
        ViewColumn {
            kind: ColumnKind::Integer,
            ..made(
                "unpriced_messages",
                "(r.cost_usd IS NULL)",
                "1 if its price is not known",
            )
        },
        int(
            "output_is_floor",
            "1 if the client did not record the final output tokens (lower bound)",
        ),
    ],
};

/// One row per file that a session touched.
pub const FILES: SqlView = SqlView {
    name: "files",
    about: "one row per file that a session read or changed",
    columns: &[
        SESSION,
        AGENT,
        PROJECT,
        text("path", "its path as the tools were given it"),
        int("reads", "number of reads"),
        int("writes", "number of whole-file writes"),
        int("edits", "number of edits"),
        int("added", "lines added"),
        int("removed", "lines removed"),
        int("versions", "number of the client's backups of it"),
    ],
};

/// All views.
pub const VIEWS: [&SqlView; 6] = [&SESSIONS, &TURNS, &MESSAGES, &CALLS, &USAGE, &FILES];

/// A family is a session with its sub-agents; all its rows are made at once. `print` changes
/// when one of its files does; `titles` stands for the titles that other files gave when its
/// own was made, NULL if it has one itself. Files of which messages count are `counted`.
const OWN: &str = "
CREATE TABLE families (
  id INTEGER PRIMARY KEY,
  path BLOB NOT NULL UNIQUE,
  print INTEGER NOT NULL,
  titles INTEGER,
  session TEXT NOT NULL,
  project TEXT NOT NULL
);
CREATE TABLE given (family INTEGER NOT NULL, leaf INTEGER NOT NULL, title TEXT NOT NULL);
CREATE TABLE counted (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, print INTEGER NOT NULL);
";

static SQL: LazyLock<String> = LazyLock::new(|| {
    let mut sql = OWN.to_owned();
    for view in VIEWS {
        let SqlView { name, .. } = view;
        let stored = view.stored().map(|column| {
            let ViewColumn { name, kind, .. } = column;
            format!(",\n  {name} {}", kind.name())
        });
        let stored: String = stored.collect();
        let shown = view.columns.iter().map(|column| {
            let ViewColumn { name, origin, .. } = column;
            match origin {
                ColumnOrigin::Family if *name == "id" => "f.session AS id".to_owned(),
                ColumnOrigin::Family => format!("f.{name} AS {name}"),
                ColumnOrigin::Row => format!("r.{name} AS {name}"),
                ColumnOrigin::Made(of) => format!("{of} AS {name}"),
            }
        });
        let shown: Vec<String> = shown.collect();
        let shown = shown.join(", ");
        // Joined to the left so that SQLite leaves the family out where nobody asks for it.
        sql += &format!(
            "CREATE TABLE {name}_rows (
  family INTEGER NOT NULL,
  place INTEGER NOT NULL{stored},
  PRIMARY KEY (family, place)
) WITHOUT ROWID;
CREATE VIEW {name} AS SELECT {shown} FROM {name}_rows r LEFT JOIN families f ON f.id = r.family;
"
        );
    }
    sql
});

/// The database behind the views.
pub(crate) fn schema() -> DatabaseSchema {
    let hash = SQL.bytes().fold(0u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    DatabaseSchema {
        name: "tables.db",
        version: MEANING << 24 | hash >> 8,
        sql: &SQL,
    }
}
