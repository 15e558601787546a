//! All of the screen's state. Nothing here reads, draws or waits.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use ratatui::layout::Rect;
use unspool_model::time::Time;
use unspool_show::wire::edit::EditResult;
use unspool_show::{StyledLine, ToolDetail};

use crate::conversation_view::ConversationView;
use crate::loader_protocol::{
    ConversationId, FindHit, PageOptions, PageRequest, SessionFacts, SidePanelKind,
};
use crate::session_list::SessionList;

/// The state.
#[derive(Debug)]
pub struct BrowserApp {
    /// Columns and rows.
    pub size: (u16, u16),
    /// The clock.
    pub now: Time,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// Use colours.
    pub color: bool,
    /// What stands above everything, such as that this is a demo.
    pub banner: Option<String>,
    /// The list.
    pub list: SessionList,
    /// The session that is read; the list is below it.
    pub session: Option<SessionScreen>,
    /// What stands in front of it all.
    pub overlay: Option<ScreenOverlay>,
    /// Shows what is chosen beside the list.
    pub preview: bool,
    /// Something to say, and whether it is bad.
    pub note: Option<(String, bool)>,
    /// How many books were opened.
    pub(crate) books: u64,
    /// The last click: where and when.
    pub(crate) click: Option<(u16, u16, Time)>,
}

/// A session that is read.
#[derive(Debug)]
pub struct SessionScreen {
    /// The number of its book.
    pub book: u64,
    /// Its file.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// The session and the sub-agents one went into.
    pub stack: Vec<ConversationView>,
    /// How much of tools.
    pub tools: ToolDetail,
    /// With thinking.
    pub thinking: bool,
    /// What stands beside it.
    pub side: Option<SidePanel>,
    /// What is looked for.
    pub find: SessionFind,
    /// What is known about it.
    pub facts: SessionFacts,
    /// Why it cannot be read.
    pub failed: Option<String>,
    /// A place to go to once all was read: a sub-agent, and a line.
    pub(crate) goal: Option<(Option<String>, u32)>,
    /// Pages that were asked for.
    pub(crate) asked: Option<PageRequest>,
}

/// What stands beside a conversation.
#[derive(Debug)]
pub struct SidePanel {
    /// What.
    pub side: SidePanelKind,
    /// Its lines; none until they come.
    pub lines: Option<Vec<StyledLine>>,
    /// The first one that is shown.
    pub top: usize,
}

/// A search in a session.
#[derive(Debug, Default)]
pub struct SessionFind {
    /// Whether somebody types.
    pub typing: bool,
    /// What to find.
    pub query: String,
    /// Where it is.
    pub hits: Vec<FindHit>,
    /// The one that is shown.
    pub at: Option<usize>,
    /// Whether it still looks.
    pub searching: bool,
    /// The number of the search.
    pub number: u64,
}

/// What stands in front of it all.
#[derive(Debug)]
pub enum ScreenOverlay {
    /// The keys.
    Help {
        /// The first line that is shown.
        top: usize,
    },
    /// A choice.
    Menu(ActionMenu),
    /// A copy of a session.
    Trim(TrimDialog),
    /// The line of the file behind a block.
    Raw {
        /// Its number.
        line: u32,
        /// Its text; none until it comes.
        lines: Option<Vec<StyledLine>>,
        /// The first one that is shown.
        top: usize,
    },
}

/// A choice.
#[derive(Debug)]
pub struct ActionMenu {
    /// What is chosen.
    pub title: &'static str,
    /// A key, words and what it does.
    pub choices: Vec<(char, String, ActionMenuChoice)>,
    /// The one under the cursor.
    pub at: usize,
    /// What it is done to.
    pub subject: ActionSession,
}

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionMenuChoice {
    /// Copies a text.
    Copy(String),
    /// Copies the block under the cursor.
    CopyBlock,
    /// Writes a document.
    Export(&'static str),
    /// Makes a copy: of which preset.
    Trim(Option<&'static str>),
}

/// A session that something is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionSession {
    /// Its id.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
}

/// A copy of a session on its way.
#[derive(Debug)]
pub struct TrimDialog {
    /// Of what.
    pub subject: ActionSession,
    /// By which preset.
    pub preset: Option<&'static str>,
    /// How far it is.
    pub stage: TrimStage,
}

/// How far a copy is.
#[derive(Debug)]
pub enum TrimStage {
    /// It is being worked out what it would be.
    Planning,
    /// This is what it would be: yes or no?
    Planned(Box<EditResult>),
    /// It is being written.
    Writing,
    /// It is there.
    Done(Box<EditResult>),
    /// It could not be done.
    Failed(String),
}

/// Columns of text at most.
const LONGEST: usize = 120;
/// A side has room beside the conversation from this width on.
const WIDE: u16 = 110;

impl BrowserApp {
    /// An empty screen.
    pub fn new(size: (u16, u16), now: Time, zone: TimeZone, color: bool) -> BrowserApp {
        BrowserApp {
            size,
            now,
            zone,
            color,
            banner: None,
            list: SessionList::default(),
            session: None,
            overlay: None,
            preview: true,
            note: None,
            books: 0,
            click: None,
        }
    }

    /// The whole screen.
    pub fn screen(&self) -> Rect {
        Rect::new(0, 0, self.size.0, self.size.1)
    }

    /// The screen without the lines above and below.
    pub fn body(&self) -> Rect {
        let above = 1 + u16::from(self.banner.is_some());
        let screen = self.screen();
        Rect {
            y: above.min(screen.height),
            height: screen.height.saturating_sub(above + 1),
            ..screen
        }
    }

    /// The conversation or the list, and what stands beside it.
    pub fn halves(&self) -> (Rect, Option<Rect>) {
        let body = self.body();
        let beside = match &self.session {
            Some(session) => session.side.is_some(),
            None => self.preview,
        };
        if !beside || body.width < WIDE {
            return (body, None);
        }
        let right = (body.width * 2 / 5).clamp(44, 72);
        let left = Rect {
            width: body.width - right,
            ..body
        };
        let right = Rect {
            x: left.width,
            width: right,
            ..body
        };
        (left, Some(right))
    }

    /// Where what stands beside the conversation is drawn: beside it, or over it.
    pub fn side_area(&self) -> Option<Rect> {
        self.session.as_ref()?.side.as_ref()?;
        let (_, right) = self.halves();
        Some(right.unwrap_or(self.body()))
    }

    /// Columns for the text of a conversation.
    pub fn text_width(&self) -> usize {
        // The mark at the left, and a column at the right that stays free.
        // Longer lines are hard to read.
        usize::from(self.halves().0.width)
            .saturating_sub(3)
            .clamp(20, LONGEST)
    }

    /// Columns for what stands beside it.
    pub fn side_width(&self) -> usize {
        let area = self.side_area().unwrap_or_default();
        usize::from(area.width).saturating_sub(3).max(16)
    }
}

impl SessionScreen {
    /// A session of which nothing is known yet.
    pub fn new(book: u64, path: PathBuf, id: String) -> SessionScreen {
        SessionScreen {
            book,
            path,
            id,
            stack: vec![ConversationView::new(ConversationId::Main, String::new())],
            tools: ToolDetail::Short,
            thinking: false,
            side: None,
            find: SessionFind::default(),
            facts: SessionFacts::default(),
            failed: None,
            goal: None,
            asked: None,
        }
    }

    /// The conversation one is in.
    pub fn level(&self) -> Option<&ConversationView> {
        self.stack.last()
    }

    /// The same, to be changed.
    pub fn level_mut(&mut self) -> Option<&mut ConversationView> {
        self.stack.last_mut()
    }

    /// The level of a conversation.
    pub(crate) fn level_of(&mut self, of: &ConversationId) -> Option<&mut ConversationView> {
        self.stack.iter_mut().find(|level| level.of == *of)
    }

    /// How pages are to be laid out.
    pub(crate) fn look(&self, width: usize) -> PageOptions {
        PageOptions {
            width,
            tools: self.tools,
            thinking: self.thinking,
            open: self
                .level()
                .map(|level| level.open.clone())
                .unwrap_or_default(),
        }
    }
}
