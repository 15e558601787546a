//! What happens to the screen, and what it wants done.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use unspool_live::LiveChangeKind;
use unspool_model::time::Time;
use unspool_show::wire::edit::EditResult;
use unspool_show::wire::hit::HitRow;
use unspool_show::wire::session::SessionJson;

use crate::loader_protocol::{LoaderEvent, LoaderRequest};

/// Something happened.
#[derive(Clone, Debug)]
pub enum AppMessage {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The screen has another size: columns and rows.
    Resize(u16, u16),
    /// Time passed.
    Tick(Time),
    /// Sessions as they are now.
    Rows {
        /// All that are known.
        rows: Vec<Arc<SessionJson>>,
        /// Whether these are all.
        scanned: bool,
    },
    /// A session changed.
    News(LiveChangeKind),
    /// An open session says something.
    Book(u64, LoaderEvent),
    /// A search through everything found something.
    Hits {
        /// Its number.
        number: u64,
        /// The next hits.
        hits: Vec<HitRow>,
        /// Whether that was all; or what went wrong.
        done: Option<Result<(), String>>,
    },
    /// What a copy would be, or is.
    Trimmed(Result<Box<EditResult>, String>),
    /// A document was written.
    Exported(Result<PathBuf, String>),
    /// The client ended.
    Resumed(Result<(), String>),
}

/// A copy of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrimRequest {
    /// The session's file.
    pub path: PathBuf,
    /// The preset; none for a whole copy.
    pub preset: Option<&'static str>,
    /// Only to see what it would be.
    pub dry_run: bool,
}

/// Something is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum AppEffect {
    /// The end.
    Quit,
    /// The program sleeps until it is called back.
    Suspend,
    /// A session is to be read.
    Open {
        /// The number of the book.
        book: u64,
        /// Its file.
        path: PathBuf,
    },
    /// A session is no longer looked at.
    Close(u64),
    /// A question to an open session.
    Ask(u64, LoaderRequest),
    /// A search through everything; an earlier one stops.
    Search {
        /// Its number.
        number: u64,
        /// What to find; empty to stop.
        query: String,
    },
    /// The client is to be run.
    Resume {
        /// The session.
        id: String,
        /// Where.
        cwd: Option<PathBuf>,
        /// In a conversation of our own.
        talk: bool,
    },
    /// A copy of a session.
    Trim(TrimRequest),
    /// A document of a session.
    Export {
        /// The session's file.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// Text for the clipboard.
    Copy(String),
}
