//! A list to choose from, narrowed by typing: sessions, prompts, models.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_show::layout::cut;
use unspool_show::{Line, Paint, clean};

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it is called.
    pub label: String,
    /// What else there is to say.
    pub detail: String,
    /// What is handed back.
    pub value: String,
}

/// A list to choose from.
#[derive(Clone, Debug)]
pub struct Pick {
    /// What it is for, handed back with the choice.
    pub what: String,
    /// Its title.
    pub title: String,
    choices: Vec<Choice>,
    typed: String,
    shown: Vec<usize>,
    at: usize,
}

/// What a key did to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// Still choosing.
    Open,
    /// Nothing was chosen.
    Left,
    /// This.
    This(String),
}

impl Pick {
    /// A list.
    pub fn new(what: &str, title: &str, choices: Vec<Choice>) -> Pick {
        Pick {
            what: what.to_owned(),
            title: title.to_owned(),
            shown: (0..choices.len()).collect(),
            choices,
            typed: String::new(),
            at: 0,
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Picked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Left,
            KeyCode::Char('c') if control => return Picked::Left,
            KeyCode::Enter => {
                let choice = self.shown.get(self.at).map(|&at| &self.choices[at]);
                return choice.map_or(Picked::Left, |it| Picked::This(it.value.clone()));
            }
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Char('p') if control => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.down(),
            KeyCode::Char('n') if control => self.down(),
            KeyCode::PageUp => self.at = self.at.saturating_sub(10),
            KeyCode::PageDown => (0..10).for_each(|_| self.down()),
            KeyCode::Backspace => {
                self.typed.pop();
                self.narrow();
            }
            KeyCode::Char(c) if !control => {
                self.typed.push(c);
                self.narrow();
            }
            _ => {}
        }
        Picked::Open
    }

    fn down(&mut self) {
        self.at = (self.at + 1).min(self.shown.len().saturating_sub(1));
    }

    fn narrow(&mut self) {
        let texts: Vec<String> = self
            .choices
            .iter()
            .map(|choice| format!("{} {}", choice.label, choice.detail))
            .collect();
        self.shown = matching(&self.typed, &texts);
        self.at = 0;
    }

    /// The list in at most `height` rows.
    pub fn draw(&self, width: usize, height: usize) -> Vec<Line> {
        let mut lines = vec![Line::of(Paint::BOLD, &self.title)];
        let typed = Line::of(Paint::DIM, "search: ").with(Paint::PLAIN, &self.typed);
        lines.push(typed);
        let room = height.saturating_sub(3).max(1);
        let first = (self.at + 1).saturating_sub(room);
        for (row, &at) in self.shown.iter().enumerate().skip(first).take(room) {
            let choice = &self.choices[at];
            let (mark, paint) = match row == self.at {
                true => ("❯ ", Paint::PROMPT),
                false => ("  ", Paint::PLAIN),
            };
            let mut line = Line::of(paint, mark);
            line.push(paint, &clean::line(&choice.label));
            line.push(Paint::DIM, "  ");
            line.push(Paint::DIM, &clean::line(&choice.detail));
            lines.push(cut(&line, width));
        }
        if self.shown.is_empty() {
            lines.push(Line::of(Paint::DIM, "  nothing matches"));
        }
        lines.push(Line::of(Paint::DIM, "enter to choose, esc to go back"));
        lines
    }
}

/// The texts that match what was typed, the best first.
pub fn matching(typed: &str, texts: &[String]) -> Vec<usize> {
    if typed.trim().is_empty() {
        return (0..texts.len()).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::parse(typed, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let scored = texts.iter().enumerate().filter_map(|(at, text)| {
        let text = nucleo_matcher::Utf32Str::new(text, &mut buffer);
        Some((at, pattern.score(text, &mut matcher)?))
    });
    let mut scored: Vec<(usize, u32)> = scored.collect();
    scored.sort_by_key(|&(at, score)| (std::cmp::Reverse(score), at));
    scored.into_iter().map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    #[test]
    fn typing_narrows_and_enter_chooses() {
        let choice = |name: &str| Choice {
            label: name.to_owned(),
            detail: String::new(),
            value: format!("v-{name}"),
        };
        let mut pick = Pick::new("x", "Title", ["alpha", "beta", "gamma"].map(choice).into());
        assert_eq!(pick.key(key(KeyCode::Down)), Picked::Open);
        assert_eq!(
            pick.clone().key(key(KeyCode::Enter)),
            Picked::This("v-beta".to_owned())
        );
        pick.key(key(KeyCode::Char('g')));
        assert_eq!(
            pick.clone().key(key(KeyCode::Enter)),
            Picked::This("v-gamma".to_owned())
        );
        pick.key(key(KeyCode::Char('z')));
        assert_eq!(pick.clone().key(key(KeyCode::Enter)), Picked::Left);
        assert!(
            pick.draw(40, 8)
                .iter()
                .any(|line| line.text().contains("nothing matches"))
        );
        assert_eq!(pick.key(key(KeyCode::Esc)), Picked::Left);
    }
}
