//! Questions that a turn asks: whether a call may run, what a person wants, whether a plan is
//! right.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value, json};
use unspool_agent::driver::{Answer, Asked};
use unspool_agent::tool::Call;
use unspool_show::layout::{behind, wrap_text};
use unspool_show::{Line, Paint, clean, markdown};

use super::editor::{Did, Editor};
use super::spoken;

/// A question on the screen.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its number.
    pub ask: u64,
    call: Call,
    /// Where the session works.
    place: String,
    body: Body,
    options: Vec<Choice>,
    at: usize,
    /// Somebody writes why not, or an answer of their own.
    writes: Option<Editor>,
}

#[derive(Clone, Debug)]
enum Body {
    Permission {
        why: String,
    },
    Plan,
    /// Several questions, one after the other, and the answers so far.
    Questions {
        at: usize,
        given: Map<String, Value>,
        marked: Vec<usize>,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Choice {
    Yes(String),
    Always(String, Vec<String>),
    Value(String, Value),
    No(String),
    Option(String, String),
    Own,
}

impl Question {
    /// A question as it is asked.
    pub fn new(ask: u64, call: Call, what: Asked, place: &str) -> Question {
        let (body, options) = match what {
            Asked::Permission { why, always } => {
                let mut options = vec![Choice::Yes("Yes".to_owned())];
                if !always.is_empty() {
                    let label = format!("Yes, and do not ask again for {}", always.join(", "));
                    options.push(Choice::Always(label, always));
                }
                options.push(Choice::No("No, and say why".to_owned()));
                (Body::Permission { why }, options)
            }
            Asked::Plan => {
                let yes = |label: &str, mode: &str| {
                    let value = json!({"approved": true, "mode": mode});
                    Choice::Value(label.to_owned(), value)
                };
                let options = vec![
                    yes("Yes, and let it edit files", "acceptEdits"),
                    yes("Yes, and ask me for each change", "default"),
                    Choice::No("No, keep planning, and say why".to_owned()),
                ];
                (Body::Plan, options)
            }
            Asked::Question => {
                let body = Body::Questions {
                    at: 0,
                    given: Map::new(),
                    marked: Vec::new(),
                };
                (body, Vec::new())
            }
        };
        let mut question = Question {
            ask,
            call,
            place: place.to_owned(),
            body,
            options,
            at: 0,
            writes: None,
        };
        question.load();
        question
    }

    fn asked(&self) -> Option<&Value> {
        let Body::Questions { at, .. } = &self.body else {
            return None;
        };
        self.call.input.get("questions")?.as_array()?.get(*at)
    }

    /// The options of the question that is next.
    fn load(&mut self) {
        let Some(asked) = self.asked() else {
            return;
        };
        let text = |value: &Value, field: &str| {
            let text = value.get(field).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let options = asked.get("options").and_then(Value::as_array);
        let mut all: Vec<Choice> = options
            .into_iter()
            .flatten()
            .map(|option| Choice::Option(text(option, "label"), text(option, "description")))
            .collect();
        all.push(Choice::Own);
        self.options = all;
        self.at = 0;
    }

    fn takes_several(&self) -> bool {
        let several = self.asked().and_then(|asked| asked.get("multiSelect"));
        several.and_then(Value::as_bool).unwrap_or(false)
    }

    /// Takes a key: the answer, when there is one.
    pub fn key(&mut self, key: KeyEvent, width: usize) -> Option<Answer> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Esc || (control && key.code == KeyCode::Char('c')) {
            return match self.writes.take() {
                Some(_) if key.code == KeyCode::Esc => None,
                _ => Some(Answer::No(None)),
            };
        }
        if let Some(editor) = &mut self.writes {
            return match editor.key(key, width) {
                Did::Sent(text) => {
                    self.writes = None;
                    self.written(text)
                }
                Did::Nothing | Did::Changed => None,
            };
        }
        match key.code {
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => {
                self.at = (self.at + 1).min(self.options.len().saturating_sub(1));
            }
            KeyCode::Char(' ') if self.takes_several() => self.mark(),
            KeyCode::Enter => return self.choose(),
            KeyCode::Char('y') if self.has(&Body::is_permission) => return Some(Answer::Yes),
            KeyCode::Char('n') if self.has(&Body::is_permission) => {
                self.at = self.options.len() - 1;
                return self.choose();
            }
            KeyCode::Char(c @ '1'..='9') => {
                let at = c as usize - '1' as usize;
                if at < self.options.len() {
                    self.at = at;
                    match self.takes_several() {
                        true => self.mark(),
                        false => return self.choose(),
                    }
                }
            }
            _ => {}
        }
        None
    }

    /// Takes what was pasted.
    pub fn paste(&mut self, text: &str) {
        if let Some(editor) = &mut self.writes {
            editor.paste(text);
        }
    }

    fn has(&self, what: &dyn Fn(&Body) -> bool) -> bool {
        what(&self.body)
    }

    fn mark(&mut self) {
        let at = self.at;
        if let Body::Questions { marked, .. } = &mut self.body {
            match marked.iter().position(|&it| it == at) {
                Some(place) => drop(marked.remove(place)),
                None => marked.push(at),
            }
        }
    }

    fn choose(&mut self) -> Option<Answer> {
        match self.options.get(self.at)?.clone() {
            Choice::Yes(_) => Some(Answer::Yes),
            Choice::Always(_, rules) => Some(Answer::Always(rules)),
            Choice::Value(_, value) => Some(Answer::Value(value)),
            Choice::No(_) | Choice::Own => {
                self.writes = Some(Editor::new(Vec::new()));
                None
            }
            Choice::Option(label, _) => {
                let text = match &self.body {
                    Body::Questions { marked, .. } if !marked.is_empty() => {
                        let mut marked = marked.clone();
                        marked.sort_unstable();
                        let labels = marked.iter().filter_map(|&at| match &self.options[at] {
                            Choice::Option(label, _) => Some(label.as_str()),
                            _ => None,
                        });
                        labels.collect::<Vec<_>>().join(", ")
                    }
                    _ => label,
                };
                self.answered(text)
            }
        }
    }

    fn written(&mut self, text: String) -> Option<Answer> {
        match self.body {
            Body::Questions { .. } => self.answered(text),
            Body::Permission { .. } | Body::Plan => Some(Answer::No(Some(text))),
        }
    }

    /// Keeps an answer; all of them, when it was the last.
    fn answered(&mut self, text: String) -> Option<Answer> {
        let asked = self.asked()?.get("question")?.as_str()?.to_owned();
        let count = self.call.input.get("questions")?.as_array()?.len();
        let Body::Questions { at, given, marked } = &mut self.body else {
            return None;
        };
        given.insert(asked, Value::String(text));
        marked.clear();
        *at += 1;
        if *at >= count {
            return Some(Answer::Value(Value::Object(std::mem::take(given))));
        }
        self.load();
        None
    }

    /// The question in at most `height` rows, and where the cursor stands.
    pub fn draw(&mut self, width: usize, height: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let edge = Line::of(Paint::WARN, "│ ");
        let inside = width.saturating_sub(2).max(8);
        let mut bottom = self.bottom(inside);
        let mut cursor = None;
        if let Some(editor) = &mut self.writes {
            let laid = editor.lay(inside.saturating_sub(2));
            let at = bottom.len() + laid.cursor.0;
            cursor = Some((at, laid.cursor.1 + 4));
            bottom.extend(
                laid.rows
                    .iter()
                    .map(|row| Line::of(Paint::PLAIN, &format!("> {row}"))),
            );
        }
        bottom.push(Line::of(Paint::DIM, "enter to choose, esc to stop"));
        let room = height.saturating_sub(bottom.len()).max(2);
        let mut top = self.top(inside, room);
        if top.len() > room {
            let over = top.len() - room + 1;
            top.truncate(room - 1);
            let text = format!("… {over} more lines");
            top.push(Line::of(Paint::DIM, &text));
        }
        let above = top.len();
        top.extend(bottom);
        let lines = top.iter().map(|line| behind(&edge, line)).collect();
        (lines, cursor.map(|(row, column)| (above + row, column)))
    }

    fn top(&self, width: usize, room: usize) -> Vec<Line> {
        let bold = |text: &str| wrap_text(Paint::BOLD, &clean::line(text), width);
        match &self.body {
            Body::Permission { why } => {
                let mut lines = bold(&format!("{} wants to run", self.call.name));
                let why = wrap_text(Paint::DIM, &clean::line(why), width);
                let room = room.saturating_sub(lines.len() + why.len());
                lines.extend(spoken::preview(&self.call, &self.place, width, room));
                lines.extend(why);
                lines
            }
            Body::Plan => {
                let plan = self.call.input.get("plan").and_then(Value::as_str);
                let mut lines = bold("The plan");
                lines.extend(markdown::lines(plan.unwrap_or_default(), width));
                lines
            }
            Body::Questions { .. } => {
                let asked = self.asked().and_then(|asked| asked.get("question"));
                bold(asked.and_then(Value::as_str).unwrap_or_default())
            }
        }
    }

    fn bottom(&self, width: usize) -> Vec<Line> {
        let marked = match &self.body {
            Body::Questions { marked, .. } if self.takes_several() => Some(marked),
            _ => None,
        };
        let mut lines = Vec::new();
        for (at, option) in self.options.iter().enumerate() {
            let (label, detail) = match option {
                Choice::Yes(label) | Choice::Always(label, _) | Choice::No(label) => {
                    (label.as_str(), "")
                }
                Choice::Value(label, _) => (label.as_str(), ""),
                Choice::Option(label, detail) => (label.as_str(), detail.as_str()),
                Choice::Own => ("something else", ""),
            };
            let (sign, paint) = match at == self.at {
                true => ("❯", Paint::PROMPT),
                false => (" ", Paint::PLAIN),
            };
            let tick = match marked {
                Some(marked) if marked.contains(&at) => "[x] ",
                Some(_) => "[ ] ",
                None => "",
            };
            let text = format!("{sign} {} {tick}{}", at + 1, clean::line(label));
            lines.extend(wrap_text(paint, &text, width));
            if !detail.is_empty() {
                lines.extend(wrap_text(
                    Paint::DIM,
                    &format!("    {}", clean::line(detail)),
                    width,
                ));
            }
        }
        lines
    }
}

impl Body {
    fn is_permission(&self) -> bool {
        matches!(self, Body::Permission { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(question: &mut Question, code: KeyCode) -> Option<Answer> {
        question.key(KeyEvent::new(code, KeyModifiers::NONE), 60)
    }

    fn permission(always: &[&str]) -> Question {
        let call = Call {
            id: "t".to_owned(),
            name: "Bash".to_owned(),
            input: json!({"command": "npm test"}),
        };
        let what = Asked::Permission {
            why: "no rule allows it".to_owned(),
            always: always.iter().map(|rule| (*rule).to_owned()).collect(),
        };
        Question::new(1, call, what, "")
    }

    #[test]
    fn enter_says_yes_once_and_two_says_always() {
        assert_eq!(
            press(&mut permission(&[]), KeyCode::Enter),
            Some(Answer::Yes)
        );
        let rules = vec!["Bash(npm test)".to_owned()];
        let mut question = permission(&["Bash(npm test)"]);
        assert_eq!(
            press(&mut question, KeyCode::Char('2')),
            Some(Answer::Always(rules))
        );
    }

    #[test]
    fn no_asks_for_a_reason_and_esc_stops() {
        let mut question = permission(&[]);
        assert_eq!(press(&mut question, KeyCode::Char('n')), None);
        for c in "use 1".chars() {
            assert_eq!(press(&mut question, KeyCode::Char(c)), None);
        }
        let answer = press(&mut question, KeyCode::Enter);
        assert_eq!(answer, Some(Answer::No(Some("use 1".to_owned()))));
        assert_eq!(
            press(&mut permission(&[]), KeyCode::Esc),
            Some(Answer::No(None))
        );
    }

    #[test]
    fn the_command_and_the_reason_stand_in_the_question() {
        let (lines, _) = permission(&[]).draw(60, 20);
        let text: Vec<String> = lines.iter().map(Line::text).collect();
        let text = text.join("\n");
        assert!(
            text.contains("npm test") && text.contains("no rule allows it"),
            "{text}"
        );
    }

    #[test]
    fn a_long_change_leaves_room_for_the_reason_and_says_how_much_is_left_out() {
        let content = "x\n".repeat(60);
        let call = Call {
            id: "t".to_owned(),
            name: "Write".to_owned(),
            input: json!({"file_path": "/p/a.txt", "content": content}),
        };
        let what = Asked::Permission {
            why: "no rule allows it".to_owned(),
            always: Vec::new(),
        };
        let (lines, _) = Question::new(1, call, what, "/p").draw(60, 20);
        let text: Vec<String> = lines.iter().map(Line::text).collect();
        assert!(text.len() <= 20, "{text:#?}");
        assert!(text.iter().any(|line| line.contains("no rule allows it")));
        let shown = text.iter().filter(|line| line.ends_with("+ x")).count();
        let left = format!("{} more lines", 60 - shown);
        assert!(text.iter().any(|line| line.contains(&left)), "{text:#?}");
    }

    #[test]
    fn every_question_of_a_form_gets_its_answer() {
        let call = Call {
            id: "t".to_owned(),
            name: "AskUserQuestion".to_owned(),
            input: json!({"questions": [
                {"question": "Which?", "options": [{"label": "A", "description": ""}, {"label": "B", "description": "b"}]},
                {"question": "What?", "multiSelect": true, "options": [{"label": "C"}, {"label": "D"}]},
                {"question": "Else?", "options": [{"label": "E"}]},
            ]}),
        };
        let mut question = Question::new(1, call, Asked::Question, "");
        assert_eq!(press(&mut question, KeyCode::Char('2')), None);
        press(&mut question, KeyCode::Char('2'));
        press(&mut question, KeyCode::Char('1'));
        assert_eq!(press(&mut question, KeyCode::Enter), None);
        press(&mut question, KeyCode::Char('2'));
        press(&mut question, KeyCode::Char('x'));
        let answer = press(&mut question, KeyCode::Enter);
        let wanted = json!({"Which?": "B", "What?": "C, D", "Else?": "x"});
        assert_eq!(answer, Some(Answer::Value(wanted)));
    }
}
