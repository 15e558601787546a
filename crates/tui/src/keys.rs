//! What keys do: one table, which the program obeys and the help shows.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyContext {
    /// The list of sessions, where typing searches.
    List,
    /// A conversation.
    Session,
    /// Everywhere.
    Any,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
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
pub enum KeyStroke {
    /// A character.
    Char(char),
    /// A character with Ctrl.
    Ctrl(char),
    /// Another key.
    Key(KeyCode),
}

impl KeyStroke {
    /// The key of an event.
    pub fn of(event: &KeyEvent) -> KeyStroke {
        match event.code {
            // What is pressed with Alt is no letter, and no key of ours.
            KeyCode::Char(_) if event.modifiers.contains(KeyModifiers::ALT) => {
                KeyStroke::Key(KeyCode::Null)
            }
            KeyCode::Char(char) if event.modifiers.contains(KeyModifiers::CONTROL) => {
                KeyStroke::Ctrl(char.to_ascii_lowercase())
            }
            KeyCode::Char(char) => KeyStroke::Char(char),
            code => KeyStroke::Key(code),
        }
    }

    /// What is written on it.
    pub fn label(self) -> String {
        match self {
            KeyStroke::Char(' ') => "Space".to_owned(),
            KeyStroke::Char(char) => char.to_string(),
            KeyStroke::Ctrl(char) => format!("^{}", char.to_ascii_uppercase()),
            KeyStroke::Key(code) => match code {
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
pub struct KeyBinding {
    /// Where it holds.
    pub place: KeyContext,
    /// What it does.
    pub action: KeyAction,
    /// The keys.
    pub keys: &'static [KeyStroke],
    /// What it does, in words.
    pub words: &'static str,
}

const fn bind(
    place: KeyContext,
    action: KeyAction,
    keys: &'static [KeyStroke],
    words: &'static str,
) -> KeyBinding {
    KeyBinding {
        place,
        action,
        keys,
        words,
    }
}

use KeyCode as K;
use KeyContext::{Any, List, Session};
use KeyStroke::{Char, Ctrl, Key};

/// Every key.
pub const TABLE: &[KeyBinding] = &[
    bind(
        Session,
        KeyAction::Down,
        &[Char('j'), Key(K::Down)],
        "next block",
    ),
    bind(
        Session,
        KeyAction::Up,
        &[Char('k'), Key(K::Up)],
        "previous block",
    ),
    bind(
        Session,
        KeyAction::NextTurn,
        &[Char('J'), Key(K::Right)],
        "next turn",
    ),
    bind(
        Session,
        KeyAction::PreviousTurn,
        &[Char('K'), Key(K::Left)],
        "previous turn",
    ),
    bind(Session, KeyAction::NextPrompt, &[Char(']')], "next prompt"),
    bind(
        Session,
        KeyAction::PreviousPrompt,
        &[Char('[')],
        "previous prompt",
    ),
    bind(
        Session,
        KeyAction::PageDown,
        &[Char(' '), Key(K::PageDown)],
        "page down",
    ),
    bind(
        Session,
        KeyAction::PageUp,
        &[Char('b'), Key(K::PageUp)],
        "page up",
    ),
    bind(
        Session,
        KeyAction::HalfDown,
        &[Char('d'), Ctrl('d')],
        "half page down",
    ),
    bind(Session, KeyAction::HalfUp, &[Ctrl('u')], "half page up"),
    bind(Session, KeyAction::LineDown, &[Ctrl('e')], "line down"),
    bind(Session, KeyAction::LineUp, &[Ctrl('y')], "line up"),
    bind(
        Session,
        KeyAction::Start,
        &[Char('g'), Key(K::Home)],
        "go to start",
    ),
    bind(
        Session,
        KeyAction::End,
        &[Char('G'), Key(K::End)],
        "go to end, and follow",
    ),
    bind(
        Session,
        KeyAction::Open,
        &[Key(K::Enter)],
        "open turn, call or agent",
    ),
    bind(Session, KeyAction::Fold, &[Key(K::Tab)], "fold the turn"),
    bind(
        Session,
        KeyAction::FoldAll,
        &[Char('a'), Key(K::BackTab)],
        "fold all turns",
    ),
    bind(
        Session,
        KeyAction::Tools,
        &[Char('t')],
        "tools: none, short, full",
    ),
    bind(Session, KeyAction::Thinking, &[Char('T')], "thinking"),
    bind(Session, KeyAction::Follow, &[Char('F')], "follow the end"),
    bind(
        Session,
        KeyAction::Find,
        &[Char('/')],
        "find in the session",
    ),
    bind(Session, KeyAction::NextHit, &[Char('n')], "next hit"),
    bind(
        Session,
        KeyAction::PreviousHit,
        &[Char('N')],
        "previous hit",
    ),
    bind(
        Session,
        KeyAction::Context,
        &[Char('c')],
        "what fills the context",
    ),
    bind(Session, KeyAction::Usage, &[Char('u')], "tokens and cost"),
    bind(
        Session,
        KeyAction::Files,
        &[Char('f')],
        "files read and changed",
    ),
    bind(
        Session,
        KeyAction::Raw,
        &[Char('o')],
        "raw line of the file",
    ),
    bind(
        Session,
        KeyAction::Resume,
        &[Char('r'), Ctrl('r')],
        "resume in Claude Code",
    ),
    bind(
        Session,
        KeyAction::Talk,
        &[Char('R'), Ctrl('g')],
        "resume in unspool chat",
    ),
    bind(
        Session,
        KeyAction::Trim,
        &[Char('x'), Ctrl('t')],
        "clone, trimmed or whole",
    ),
    bind(Session, KeyAction::Export, &[Char('e')], "export to a file"),
    bind(
        Session,
        KeyAction::Copy,
        &[Char('y')],
        "copy block, id or path",
    ),
    bind(
        Session,
        KeyAction::Back,
        &[Key(K::Esc), Key(K::Backspace), Char('h')],
        "back",
    ),
    bind(Session, KeyAction::Quit, &[Char('q')], "quit"),
    bind(Session, KeyAction::Help, &[Char('?'), Key(K::F(1))], "help"),
    bind(
        List,
        KeyAction::Down,
        &[Key(K::Down), Ctrl('n'), Ctrl('j')],
        "next session",
    ),
    bind(
        List,
        KeyAction::Up,
        &[Key(K::Up), Ctrl('p'), Ctrl('k')],
        "previous session",
    ),
    bind(
        List,
        KeyAction::PageDown,
        &[Key(K::PageDown), Ctrl('d')],
        "page down",
    ),
    bind(List, KeyAction::PageUp, &[Key(K::PageUp)], "page up"),
    bind(List, KeyAction::Start, &[Key(K::Home)], "go to first"),
    bind(List, KeyAction::End, &[Key(K::End)], "go to last"),
    bind(
        List,
        KeyAction::Open,
        &[Key(K::Enter), Key(K::Right)],
        "open",
    ),
    bind(List, KeyAction::Find, &[Char('/')], "search (or just type)"),
    bind(
        List,
        KeyAction::Erase,
        &[Key(K::Backspace), Ctrl('h')],
        "delete a character",
    ),
    bind(List, KeyAction::EraseWord, &[Ctrl('w')], "delete a word"),
    bind(List, KeyAction::EraseAll, &[Ctrl('u')], "clear the search"),
    bind(List, KeyAction::Preview, &[Key(K::Tab)], "preview"),
    bind(
        List,
        KeyAction::Resume,
        &[Ctrl('r')],
        "resume in Claude Code",
    ),
    bind(
        List,
        KeyAction::Talk,
        &[Ctrl('g')],
        "resume in unspool chat",
    ),
    bind(
        List,
        KeyAction::Trim,
        &[Ctrl('t')],
        "clone, trimmed or whole",
    ),
    bind(List, KeyAction::Export, &[Ctrl('e')], "export to a file"),
    bind(List, KeyAction::Copy, &[Ctrl('y')], "copy id or path"),
    bind(
        List,
        KeyAction::Back,
        &[Key(K::Esc)],
        "clear search, or quit",
    ),
    bind(List, KeyAction::Quit, &[Char('q')], "quit (nothing typed)"),
    bind(
        List,
        KeyAction::Help,
        &[Char('?'), Key(K::F(1))],
        "help (nothing typed)",
    ),
    bind(
        Any,
        KeyAction::Suspend,
        &[Ctrl('z')],
        "suspend (`fg` resumes)",
    ),
    bind(Any, KeyAction::Quit, &[Ctrl('c')], "quit"),
];

/// What a key does in a place.
pub fn action(place: KeyContext, stroke: KeyStroke) -> Option<KeyAction> {
    let fits = |binding: &&KeyBinding| binding.place == place || binding.place == Any;
    let mut bindings = TABLE.iter().filter(fits);
    bindings
        .find(|binding| binding.keys.contains(&stroke))
        .map(|binding| binding.action)
}

/// The first key that does this in a place, for hints.
pub fn key(place: KeyContext, action: KeyAction) -> String {
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
            assert_eq!(found, (char == 'q').then_some(KeyAction::Quit), "{char}");
        }
    }
}
