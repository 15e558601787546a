//! What keys do: one table, which the program obeys and the help shows.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The list of sessions, where typing searches.
    List,
    /// A conversation.
    Session,
    /// Everywhere.
    Any,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leaves the program.
    Quit,
    /// Puts the program to sleep, as shells do.
    Suspend,
    /// Goes back one step.
    Back,
    /// Shows the help.
    Help,
    /// One up.
    Up,
    /// One down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Half a page up.
    HalfUp,
    /// Half a page down.
    HalfDown,
    /// A line up, the block stays.
    LineUp,
    /// A line down, the block stays.
    LineDown,
    /// The start.
    Start,
    /// The end.
    End,
    /// Opens what is under the cursor.
    Open,
    /// Starts typing a search.
    Find,
    /// The next turn.
    NextTurn,
    /// The turn before.
    PreviousTurn,
    /// The next prompt a person typed.
    NextPrompt,
    /// The prompt before.
    PreviousPrompt,
    /// Folds or unfolds a turn.
    Fold,
    /// Folds or unfolds all turns.
    FoldAll,
    /// More or less of tools.
    Tools,
    /// Thinking on and off.
    Thinking,
    /// Follows the end on and off.
    Follow,
    /// The next hit.
    NextHit,
    /// The hit before.
    PreviousHit,
    /// What fills the context.
    Context,
    /// Tokens and cost.
    Usage,
    /// Files that were touched.
    Files,
    /// The lines of the file behind a block.
    Raw,
    /// Runs the client.
    Resume,
    /// Goes on with it in a conversation of our own.
    Talk,
    /// A copy, trimmed or whole.
    Trim,
    /// Writes a document.
    Export,
    /// Copies something.
    Copy,
    /// Shows or hides the preview.
    Preview,
    /// Deletes a character of the search.
    Erase,
    /// Deletes a word of the search.
    EraseWord,
    /// Deletes the search.
    EraseAll,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A character.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// Another key.
    Key(KeyCode),
}

impl Stroke {
    /// The key of an event.
    pub fn of(event: &KeyEvent) -> Stroke {
        match event.code {
            // What is pressed with Alt is no letter, and no key of ours.
            KeyCode::Char(_) if event.modifiers.contains(KeyModifiers::ALT) => {
                Stroke::Key(KeyCode::Null)
            }
            KeyCode::Char(char) if event.modifiers.contains(KeyModifiers::CONTROL) => {
                Stroke::Ctrl(char.to_ascii_lowercase())
            }
            KeyCode::Char(char) => Stroke::Char(char),
            code => Stroke::Key(code),
        }
    }

    /// What is written on it.
    pub fn label(self) -> String {
        match self {
            Stroke::Char(' ') => "Space".to_owned(),
            Stroke::Char(char) => char.to_string(),
            Stroke::Ctrl(char) => format!("^{}", char.to_ascii_uppercase()),
            Stroke::Key(code) => match code {
                KeyCode::Up => "↑".to_owned(),
                KeyCode::Down => "↓".to_owned(),
                KeyCode::Left => "←".to_owned(),
                KeyCode::Right => "→".to_owned(),
                KeyCode::PageUp => "PgUp".to_owned(),
                KeyCode::PageDown => "PgDn".to_owned(),
                KeyCode::Backspace => "BkSp".to_owned(),
                KeyCode::BackTab => "S-Tab".to_owned(),
                KeyCode::F(number) => format!("F{number}"),
                other => format!("{other:?}"),
            },
        }
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where it holds.
    pub place: Place,
    /// What it does.
    pub action: Action,
    /// The keys.
    pub keys: &'static [Stroke],
    /// What it does, in words.
    pub words: &'static str,
}

const fn bind(
    place: Place,
    action: Action,
    keys: &'static [Stroke],
    words: &'static str,
) -> Binding {
    Binding {
        place,
        action,
        keys,
        words,
    }
}

use KeyCode as K;
use Place::{Any, List, Session};
use Stroke::{Char, Ctrl, Key};

/// Every key.
pub const TABLE: &[Binding] = &[
    bind(
        Session,
        Action::Down,
        &[Char('j'), Key(K::Down)],
        "next block",
    ),
    bind(
        Session,
        Action::Up,
        &[Char('k'), Key(K::Up)],
        "previous block",
    ),
    bind(
        Session,
        Action::NextTurn,
        &[Char('J'), Key(K::Right)],
        "next turn",
    ),
    bind(
        Session,
        Action::PreviousTurn,
        &[Char('K'), Key(K::Left)],
        "previous turn",
    ),
    bind(Session, Action::NextPrompt, &[Char(']')], "next prompt"),
    bind(
        Session,
        Action::PreviousPrompt,
        &[Char('[')],
        "previous prompt",
    ),
    bind(
        Session,
        Action::PageDown,
        &[Char(' '), Key(K::PageDown)],
        "page down",
    ),
    bind(
        Session,
        Action::PageUp,
        &[Char('b'), Key(K::PageUp)],
        "page up",
    ),
    bind(
        Session,
        Action::HalfDown,
        &[Char('d'), Ctrl('d')],
        "half page down",
    ),
    bind(Session, Action::HalfUp, &[Ctrl('u')], "half page up"),
    bind(Session, Action::LineDown, &[Ctrl('e')], "line down"),
    bind(Session, Action::LineUp, &[Ctrl('y')], "line up"),
    bind(
        Session,
        Action::Start,
        &[Char('g'), Key(K::Home)],
        "go to start",
    ),
    bind(
        Session,
        Action::End,
        &[Char('G'), Key(K::End)],
        "go to end, and follow",
    ),
    bind(
        Session,
        Action::Open,
        &[Key(K::Enter)],
        "open turn, call or agent",
    ),
    bind(Session, Action::Fold, &[Key(K::Tab)], "fold the turn"),
    bind(
        Session,
        Action::FoldAll,
        &[Char('a'), Key(K::BackTab)],
        "fold all turns",
    ),
    bind(
        Session,
        Action::Tools,
        &[Char('t')],
        "tools: none, short, full",
    ),
    bind(Session, Action::Thinking, &[Char('T')], "thinking"),
    bind(Session, Action::Follow, &[Char('F')], "follow the end"),
    bind(Session, Action::Find, &[Char('/')], "find in the session"),
    bind(Session, Action::NextHit, &[Char('n')], "next hit"),
    bind(Session, Action::PreviousHit, &[Char('N')], "previous hit"),
    bind(
        Session,
        Action::Context,
        &[Char('c')],
        "what fills the context",
    ),
    bind(Session, Action::Usage, &[Char('u')], "tokens and cost"),
    bind(
        Session,
        Action::Files,
        &[Char('f')],
        "files read and changed",
    ),
    bind(Session, Action::Raw, &[Char('o')], "raw line of the file"),
    bind(
        Session,
        Action::Resume,
        &[Char('r'), Ctrl('r')],
        "resume in Claude Code",
    ),
    bind(
        Session,
        Action::Talk,
        &[Char('R'), Ctrl('g')],
        "resume in unspool chat",
    ),
    bind(
        Session,
        Action::Trim,
        &[Char('x'), Ctrl('t')],
        "clone, trimmed or whole",
    ),
    bind(Session, Action::Export, &[Char('e')], "export to a file"),
    bind(
        Session,
        Action::Copy,
        &[Char('y')],
        "copy block, id or path",
    ),
    bind(
        Session,
        Action::Back,
        &[Key(K::Esc), Key(K::Backspace), Char('h')],
        "back",
    ),
    bind(Session, Action::Quit, &[Char('q')], "quit"),
    bind(Session, Action::Help, &[Char('?'), Key(K::F(1))], "help"),
    bind(
        List,
        Action::Down,
        &[Key(K::Down), Ctrl('n'), Ctrl('j')],
        "next session",
    ),
    bind(
        List,
        Action::Up,
        &[Key(K::Up), Ctrl('p'), Ctrl('k')],
        "previous session",
    ),
    bind(
        List,
        Action::PageDown,
        &[Key(K::PageDown), Ctrl('d')],
        "page down",
    ),
    bind(List, Action::PageUp, &[Key(K::PageUp)], "page up"),
    bind(List, Action::Start, &[Key(K::Home)], "go to first"),
    bind(List, Action::End, &[Key(K::End)], "go to last"),
    bind(List, Action::Open, &[Key(K::Enter), Key(K::Right)], "open"),
    bind(List, Action::Find, &[Char('/')], "search (or just type)"),
    bind(
        List,
        Action::Erase,
        &[Key(K::Backspace), Ctrl('h')],
        "delete a character",
    ),
    bind(List, Action::EraseWord, &[Ctrl('w')], "delete a word"),
    bind(List, Action::EraseAll, &[Ctrl('u')], "clear the search"),
    bind(List, Action::Preview, &[Key(K::Tab)], "preview"),
    bind(List, Action::Resume, &[Ctrl('r')], "resume in Claude Code"),
    bind(List, Action::Talk, &[Ctrl('g')], "resume in unspool chat"),
    bind(List, Action::Trim, &[Ctrl('t')], "clone, trimmed or whole"),
    bind(List, Action::Export, &[Ctrl('e')], "export to a file"),
    bind(List, Action::Copy, &[Ctrl('y')], "copy id or path"),
    bind(List, Action::Back, &[Key(K::Esc)], "clear search, or quit"),
    bind(List, Action::Quit, &[Char('q')], "quit (nothing typed)"),
    bind(
        List,
        Action::Help,
        &[Char('?'), Key(K::F(1))],
        "help (nothing typed)",
    ),
    bind(Any, Action::Suspend, &[Ctrl('z')], "suspend (`fg` resumes)"),
    bind(Any, Action::Quit, &[Ctrl('c')], "quit"),
];

/// What a key does in a place.
pub fn action(place: Place, stroke: Stroke) -> Option<Action> {
    let fits = |binding: &&Binding| binding.place == place || binding.place == Any;
    let mut bindings = TABLE.iter().filter(fits);
    bindings
        .find(|binding| binding.keys.contains(&stroke))
        .map(|binding| binding.action)
}

/// The first key that does this in a place, for hints.
pub fn key(place: Place, action: Action) -> String {
    let mut fitting = TABLE
        .iter()
        .filter(|binding| binding.place == place && binding.action == action);
    fitting
        .next()
        .and_then(|binding| binding.keys.first())
        .map(|stroke| stroke.label())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_does_two_things_in_one_place() {
        for place in [List, Session] {
            let mut seen = Vec::new();
            let here = TABLE
                .iter()
                .filter(|binding| binding.place == place || binding.place == Any);
            for stroke in here.flat_map(|binding| binding.keys) {
                assert!(!seen.contains(stroke), "{stroke:?} in {place:?}");
                seen.push(*stroke);
            }
        }
    }

    #[test]
    fn in_the_list_letters_are_for_searching_but_for_q() {
        for char in ('a'..='z').chain('A'..='Z').chain('0'..='9') {
            let found = action(List, Char(char));
            assert_eq!(found, (char == 'q').then_some(Action::Quit), "{char}");
        }
    }
}
