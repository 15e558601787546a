//! Questions in SQL: one statement that only reads.
//!
//! Three locks, each enough by itself: the file is opened for reading, the connection
//! refuses to write, and what a statement may do is checked while it is prepared.

use std::borrow::Cow;
use std::io;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Row, Statement};

use super::{SessionTables, sql_views};
use crate::db;
use crate::error::CacheError;

/// The tables, for reading only.
#[derive(Debug)]
pub struct ReadOnlyTables {
    connection: Connection,
}

/// A cell of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlCell<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Blob(&'a [u8]),
}

/// Takes in an answer.
pub trait SqlRowSink {
    /// The names of the columns, before the first row.
    fn columns(&mut self, names: &[&str]) -> io::Result<()>;
    /// The next row.
    fn row(&mut self, cells: &[SqlCell<'_>]) -> io::Result<()>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlQueryError {
    /// Nothing was asked.
    #[error("the query is empty")]
    Empty,
    /// Only one question at a time.
    #[error("the query has several statements")]
    Several,
    /// A question with gaps.
    #[error("query parameters are not supported")]
    Open,
    /// It is not a question.
    #[error("the query is not read-only")]
    Writes,
    /// SQLite does not understand it, or cannot do it.
    #[error("{message}")]
    Sql {
        /// What SQLite says.
        message: String,
        /// Where, in bytes.
        at: Option<usize>,
    },
    /// The answer could not be handed out.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<rusqlite::Error> for SqlQueryError {
    fn from(error: rusqlite::Error) -> SqlQueryError {
        use rusqlite::ErrorCode;
        let denied = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly)
        );
        let (message, at) = match error {
            rusqlite::Error::SqlInputError { msg, offset, .. } => {
                (msg, usize::try_from(offset).ok())
            }
            rusqlite::Error::SqliteFailure(_, Some(message)) => (message, None),
            other => (other.to_string(), None),
        };
        // Views are refused before anybody asks whether they may be written.
        if denied || message.starts_with("cannot modify ") {
            SqlQueryError::Writes
        } else {
            SqlQueryError::Sql { message, at }
        }
    }
}

impl SessionTables {
    /// The tables as they are now, for reading only.
    pub fn read_only(self) -> Result<ReadOnlyTables, CacheError> {
        let SessionTables {
            connection,
            path,
            kept,
        } = self;
        let connection = match kept {
            None => connection,
            Some((folder, _)) => {
                drop(connection);
                let reader = db::open_read(&folder, &sql_views::schema())?;
                reader.ok_or_else(|| CacheError::Damaged { path: path.clone() })?
            }
        };
        locked(connection).map_err(|why| CacheError::sql(&path, why))
    }
}

fn locked(mut connection: Connection) -> rusqlite::Result<ReadOnlyTables> {
    connection.pragma_update(None, "query_only", true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.authorizer(Some(may))?;
    Ok(ReadOnlyTables { connection })
}

/// What a statement may do.
fn may(asked: AuthContext<'_>) -> Authorization {
    let fine = match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Pragma { pragma_name, .. } => TOLD
            .iter()
            .any(|name| pragma_name.eq_ignore_ascii_case(name)),
        _ => false,
    };
    if fine {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

/// What may be asked about the tables themselves.
const TOLD: [&str; 4] = ["table_info", "table_xinfo", "table_list", "function_list"];

impl ReadOnlyTables {
    /// Whether a question can be asked at all, whatever is in the tables.
    pub fn check(sql: &str) -> Result<(), SqlQueryError> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(sql_views::schema().sql)?;
        let asked = locked(connection)?;
        asked.prepare(sql).map(drop)
    }

    /// Asks one question and hands the answer out, row by row; says how many there were.
    pub fn ask(&self, sql: &str, sink: &mut impl SqlRowSink) -> Result<u64, SqlQueryError> {
        let mut statement = self.prepare(sql)?;
        let names: Vec<&str> = statement.column_names().collect();
        let width = names.len();
        sink.columns(&names)?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            sink.row(&cells(row, width)?)?;
            count += 1;
        }
        Ok(count)
    }

    fn prepare(&self, sql: &str) -> Result<Statement<'_>, SqlQueryError> {
        let mut batch = Batch::new(&self.connection, sql);
        let statement = batch.next()?.ok_or(SqlQueryError::Empty)?;
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(SqlQueryError::Writes);
        }
        // What stands behind it may be wrong in itself.
        if !matches!(batch.next(), Ok(None)) {
            return Err(SqlQueryError::Several);
        }
        if statement.parameter_count() > 0 {
            return Err(SqlQueryError::Open);
        }
        Ok(statement)
    }
}

fn cells<'a>(row: &'a Row<'_>, width: usize) -> rusqlite::Result<Vec<SqlCell<'a>>> {
    let cell = |at: usize| {
        Ok(match row.get_ref(at)? {
            ValueRef::Null => SqlCell::Null,
            ValueRef::Integer(number) => SqlCell::Integer(number),
            ValueRef::Real(number) => SqlCell::Real(number),
            ValueRef::Text(text) => SqlCell::Text(String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => SqlCell::Blob(bytes),
        })
    };
    (0..width).map(cell).collect()
}
