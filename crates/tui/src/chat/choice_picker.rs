//! A list to choose from, narrowed by typing: sessions, prompts, models.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_show::layout::cut;
use unspool_show::{StyledLine, TextStyle, clean};

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PickerChoice {
    /// What it is called.
    pub label: String,
    /// What else there is to say.
    pub detail: String,
    /// What is handed back.
    pub value: String,
}

/// A list to choose from.
#[derive(Clone, Debug)]
pub struct ChoicePicker {
    /// What it is for, handed back with the choice.
    pub what: String,
    /// Its title.
    pub title: String,
    choices: Vec<PickerChoice>,
    typed: String,
    shown: Vec<PickerRow>,
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
struct PickerRow {
    choice: usize,
    found: Option<String>,
}

impl From<usize> for PickerRow {
    fn from(choice: usize) -> PickerRow {
        PickerRow {
            choice,
            found: None,
        }
    }
}

/// What a key did to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickerKeyResult {
    /// Still choosing.
    Open,
    /// Nothing was chosen.
    Left,
    /// This.
    This(String),
}

impl ChoicePicker {
    /// A list.
    pub fn new(what: &str, title: &str, choices: Vec<PickerChoice>) -> ChoicePicker {
        ChoicePicker {
            what: what.to_owned(),
            title: title.to_owned(),
            shown: (0..choices.len()).map(PickerRow::from).collect(),
            choices,
            typed: String::new(),
            at: 0,
            searches: false,
            looking: false,
            done: false,
        }
    }

    /// The same, where what is typed is also looked for in what the choices stand for.
    pub fn searching(self) -> ChoicePicker {
        ChoicePicker {
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
    pub fn found(&mut self, typed: &str, found: Vec<PickerChoice>) {
        if !self.searches || typed != self.typed.trim() {
            return;
        }
        self.done = true;
        let now = self.shown.get(self.at).cloned();
        let (mut first, rest): (Vec<PickerRow>, Vec<PickerRow>) = std::mem::take(&mut self.shown)
            .into_iter()
            .partition(|row| holds(&self.choices[row.choice], typed));
        for hit in found {
            let choice = self.choices.iter().position(|it| it.value == hit.value);
            let Some(choice) = choice else { continue };
            if !first.iter().any(|row| row.choice == choice) {
                let found = Some(hit.detail);
                first.push(PickerRow { choice, found });
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
    pub fn key(&mut self, key: KeyEvent) -> PickerKeyResult {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return PickerKeyResult::Left,
            KeyCode::Char('c') if control => return PickerKeyResult::Left,
            KeyCode::Enter => {
                let choice = self.shown.get(self.at).map(|row| &self.choices[row.choice]);
                return choice.map_or(PickerKeyResult::Left, |it| {
                    PickerKeyResult::This(it.value.clone())
                });
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
        PickerKeyResult::Open
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
            .map(PickerRow::from)
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
    pub fn draw(&self, width: usize, height: usize) -> Vec<StyledLine> {
        let mut lines = vec![StyledLine::of(TextStyle::BOLD, &self.title)];
        let typed = StyledLine::of(TextStyle::DIM, "search: ").with(TextStyle::PLAIN, &self.typed);
        lines.push(typed);
        let room = height.saturating_sub(3).max(1);
        let first = (self.at + 1).saturating_sub(room);
        for (number, row) in self.shown.iter().enumerate().skip(first).take(room) {
            let choice = &self.choices[row.choice];
            let (mark, paint) = match number == self.at {
                true => ("❯ ", TextStyle::PROMPT),
                false => ("  ", TextStyle::PLAIN),
            };
            let mut line = StyledLine::of(paint, mark);
            line.push(paint, &clean::line(&choice.label));
            line.push(TextStyle::DIM, "  ");
            let detail = row.found.as_ref().unwrap_or(&choice.detail);
            line.push(TextStyle::DIM, &clean::line(detail));
            lines.push(cut(&line, width));
        }
        let looking = self.looking && !self.done;
        if self.shown.is_empty() && !looking {
            lines.push(StyledLine::of(TextStyle::DIM, "  no matches"));
        }
        let foot = match looking {
            true => "enter to select, esc to go back; searching conversations …",
            false => "enter to select, esc to go back",
        };
        lines.push(cut(&StyledLine::of(TextStyle::DIM, foot), width));
        lines
    }
}

fn holds(choice: &PickerChoice, typed: &str) -> bool {
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

    fn choice(name: &str) -> PickerChoice {
        PickerChoice {
            label: name.to_owned(),
            detail: String::new(),
            value: format!("v-{name}"),
        }
    }

    #[test]
    fn what_was_said_is_found_behind_names_and_before_what_only_resembles() {
        let names = ["set a lamp", "salt", "beta", "other"];
        let mut pick = ChoicePicker::new("x", "Title", names.map(choice).into()).searching();
        assert_eq!(pick.wants(), None);
        for c in "sal".chars() {
            pick.key(key(KeyCode::Char(c)));
        }
        assert_eq!(pick.wants(), Some("sal".to_owned()));
        assert_eq!(pick.wants(), None, "it is asked for once");
        let hit = |value: &str| PickerChoice {
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
        let lines: Vec<String> = pick.draw(40, 8).iter().map(StyledLine::text).collect();
        assert!(lines[3].contains("beta  … sal ammoniac"), "{lines:?}");
    }

    #[test]
    fn typing_narrows_and_enter_chooses() {
        let mut pick =
            ChoicePicker::new("x", "Title", ["alpha", "beta", "gamma"].map(choice).into());
        assert_eq!(pick.key(key(KeyCode::Down)), PickerKeyResult::Open);
        assert_eq!(
            pick.clone().key(key(KeyCode::Enter)),
            PickerKeyResult::This("v-beta".to_owned())
        );
        pick.key(key(KeyCode::Char('g')));
        assert_eq!(
            pick.clone().key(key(KeyCode::Enter)),
            PickerKeyResult::This("v-gamma".to_owned())
        );
        pick.key(key(KeyCode::Char('z')));
        assert_eq!(pick.clone().key(key(KeyCode::Enter)), PickerKeyResult::Left);
        assert!(
            pick.draw(40, 8)
                .iter()
                .any(|line| line.text().contains("no matches"))
        );
        assert_eq!(pick.key(key(KeyCode::Esc)), PickerKeyResult::Left);
    }
}
