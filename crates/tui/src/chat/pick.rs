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
    shown: Vec<Row>,
    at: usize,
    /// What is typed is looked for elsewhere, too.
    searches: bool,
    /// What is typed is being looked for, or was.
    looking: bool,
    /// All of it was found.
    done: bool,
}

/// A choice that is shown, and where else it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    choice: usize,
    found: Option<String>,
}

impl From<usize> for Row {
    fn from(choice: usize) -> Row {
        Row {
            choice,
            found: None,
        }
    }
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
            shown: (0..choices.len()).map(Row::from).collect(),
            choices,
            typed: String::new(),
            at: 0,
            searches: false,
            looking: false,
            done: false,
        }
    }

    /// The same, where what is typed is also looked for in what the choices stand for.
    pub fn searching(self) -> Pick {
        Pick {
            searches: true,
            ..self
        }
    }

    /// What is to be looked for, once.
    pub fn wants(&mut self) -> Option<String> {
        let wanted = self.searches && !self.looking && self.typed.trim().chars().count() > 1;
        self.looking |= wanted;
        wanted.then(|| self.typed.trim().to_owned())
    }

    /// What was found: it stands behind names that hold what is typed, and before names that
    /// only resemble it.
    pub fn found(&mut self, typed: &str, found: Vec<Choice>) {
        if !self.searches || typed != self.typed.trim() {
            return;
        }
        self.done = true;
        let now = self.shown.get(self.at).cloned();
        let (mut first, rest): (Vec<Row>, Vec<Row>) = std::mem::take(&mut self.shown)
            .into_iter()
            .partition(|row| holds(&self.choices[row.choice], typed));
        for hit in found {
            let choice = self.choices.iter().position(|it| it.value == hit.value);
            let Some(choice) = choice else { continue };
            if !first.iter().any(|row| row.choice == choice) {
                let found = Some(hit.detail);
                first.push(Row { choice, found });
            }
        }
        for row in rest {
            if !first.iter().any(|known| known.choice == row.choice) {
                first.push(row);
            }
        }
        self.shown = first;
        // Whoever has chosen already keeps the choice.
        if self.at > 0 {
            let same = now.and_then(|now| self.shown.iter().position(|it| it.choice == now.choice));
            self.at = same.unwrap_or(0);
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Picked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Picked::Left,
            KeyCode::Char('c') if control => return Picked::Left,
            KeyCode::Enter => {
                let choice = self.shown.get(self.at).map(|row| &self.choices[row.choice]);
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
        self.shown = matching(&self.typed, &texts)
            .into_iter()
            .map(Row::from)
            .collect();
        self.at = 0;
        (self.looking, self.done) = (false, false);
    }

    /// Takes what was pasted.
    pub fn paste(&mut self, text: &str) {
        self.typed.push_str(&clean::line(text));
        self.narrow();
    }

    /// The list in at most `height` rows.
    pub fn draw(&self, width: usize, height: usize) -> Vec<Line> {
        let mut lines = vec![Line::of(Paint::BOLD, &self.title)];
        let typed = Line::of(Paint::DIM, "search: ").with(Paint::PLAIN, &self.typed);
        lines.push(typed);
        let room = height.saturating_sub(3).max(1);
        let first = (self.at + 1).saturating_sub(room);
        for (number, row) in self.shown.iter().enumerate().skip(first).take(room) {
            let choice = &self.choices[row.choice];
            let (mark, paint) = match number == self.at {
                true => ("❯ ", Paint::PROMPT),
                false => ("  ", Paint::PLAIN),
            };
            let mut line = Line::of(paint, mark);
            line.push(paint, &clean::line(&choice.label));
            line.push(Paint::DIM, "  ");
            let detail = row.found.as_ref().unwrap_or(&choice.detail);
            line.push(Paint::DIM, &clean::line(detail));
            lines.push(cut(&line, width));
        }
        let looking = self.looking && !self.done;
        if self.shown.is_empty() && !looking {
            lines.push(Line::of(Paint::DIM, "  no matches"));
        }
        let foot = match looking {
            true => "enter to select, esc to go back; searching conversations …",
            false => "enter to select, esc to go back",
        };
        lines.push(cut(&Line::of(Paint::DIM, foot), width));
        lines
    }
}

fn holds(choice: &Choice, typed: &str) -> bool {
    let typed = typed.to_lowercase();
    let texts = [&choice.label, &choice.detail];
    texts
        .iter()
        .any(|text| text.to_lowercase().contains(&typed))
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

    fn choice(name: &str) -> Choice {
        Choice {
            label: name.to_owned(),
            detail: String::new(),
            value: format!("v-{name}"),
        }
    }

    #[test]
    fn what_was_said_is_found_behind_names_and_before_what_only_resembles() {
        let names = ["set a lamp", "salt", "beta", "other"];
        let mut pick = Pick::new("x", "Title", names.map(choice).into()).searching();
        assert_eq!(pick.wants(), None);
        for c in "sal".chars() {
            pick.key(key(KeyCode::Char(c)));
        }
        assert_eq!(pick.wants(), Some("sal".to_owned()));
        assert_eq!(pick.wants(), None, "it is asked for once");
        let hit = |value: &str| Choice {
            label: String::new(),
            detail: "… sal ammoniac …".to_owned(),
            value: value.to_owned(),
        };
        pick.found("s", vec![hit("v-other")]);
        pick.found("sal", vec![hit("v-beta"), hit("v-salt"), hit("v-gone")]);
        let shown: Vec<&str> = pick
            .shown
            .iter()
            .map(|row| pick.choices[row.choice].label.as_str())
            .collect();
        assert_eq!(shown, ["salt", "beta", "set a lamp"]);
        let lines: Vec<String> = pick.draw(40, 8).iter().map(Line::text).collect();
        assert!(lines[3].contains("beta  … sal ammoniac"), "{lines:?}");
    }

    #[test]
    fn typing_narrows_and_enter_chooses() {
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
                .any(|line| line.text().contains("no matches"))
        );
        assert_eq!(pick.key(key(KeyCode::Esc)), Picked::Left);
    }
}
