//! What may be typed on: commands behind `/`, files behind `@`.

use std::ops::Range;

use unspool_show::layout::cut;
use unspool_show::{StyledLine, TextStyle, clean};

use super::choice_picker::matching;

/// Rows of the menu.
const ROWS: usize = 6;
/// Choices that are looked through by keys.
const MOST: usize = 50;

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// Its place in the text, with its sign.
    part: Range<usize>,
    typed: String,
    file: bool,
}

impl CompletionRequest {
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.file
    }
}

/// The menu.
#[derive(Clone, Debug)]
pub struct CompletionMenu {
    wants: CompletionRequest,
    /// What is put in, and what it is.
    choices: Vec<(String, String)>,
    at: usize,
}

impl CompletionMenu {
    /// What somebody is typing, if it can be completed.
    pub fn wants(text: &str, at: usize) -> Option<CompletionRequest> {
        let before = text.get(..at)?;
        if let Some(typed) = before.strip_prefix('/')
            && !typed.contains(char::is_whitespace)
        {
            return Some(CompletionRequest {
                part: 0..at,
                typed: typed.to_owned(),
                file: false,
            });
        }
        let start = before.rfind(char::is_whitespace).map_or(0, |space| {
            space + before[space..].chars().next().map_or(1, char::len_utf8)
        });
        let typed = before[start..].strip_prefix('@')?;
        Some(CompletionRequest {
            part: start..at,
            typed: typed.to_owned(),
            file: true,
        })
    }

    /// The menu for it; none if nothing fits. It stays where it was, if it can.
    pub fn new(
        wants: CompletionRequest,
        commands: &[(String, String)],
        files: &[String],
        before: Option<&CompletionMenu>,
    ) -> Option<CompletionMenu> {
        let choices: Vec<(String, String)> = match wants.file {
            true => {
                let fit = matching(&wants.typed, files);
                let file = |at: usize| match files[at].contains(char::is_whitespace) {
                    true => (format!("@\"{}\" ", files[at]), String::new()),
                    false => (format!("@{} ", files[at]), String::new()),
                };
                fit.into_iter().take(MOST).map(file).collect()
            }
            false => {
                let names: Vec<String> = commands.iter().map(|(name, _)| name.clone()).collect();
                let fit = matching(&wants.typed, &names);
                let command = |at: usize| {
                    let (name, about) = &commands[at];
                    (format!("/{name}"), about.clone())
                };
                fit.into_iter().take(MOST).map(command).collect()
            }
        };
        // Nothing is left to choose when it stands there already.
        let whole = |text: &str| text.trim_end() == format!("{}{}", sign(&wants), wants.typed);
        if choices.is_empty() || (wants.file && choices.len() == 1 && whole(&choices[0].0)) {
            return None;
        }
        let at = before
            .filter(|menu| menu.choices == choices)
            .map_or(0, |menu| menu.at);
        Some(CompletionMenu { wants, choices, at })
    }

    /// Whether a command is chosen.
    pub fn is_command(&self) -> bool {
        !self.wants.file
    }

    /// One up.
    pub fn up(&mut self) {
        self.at = self.at.checked_sub(1).unwrap_or(self.choices.len() - 1);
    }

    /// One down.
    pub fn down(&mut self) {
        self.at = (self.at + 1) % self.choices.len();
    }

    /// What is put where.
    pub fn choice(&self) -> Option<(Range<usize>, String)> {
        let (text, _) = self.choices.get(self.at)?;
        Some((self.wants.part.clone(), text.clone()))
    }

    /// The menu in a few rows.
    pub fn draw(&self, width: usize) -> Vec<StyledLine> {
        let first = (self.at + 1).saturating_sub(ROWS);
        let shown = self.choices.iter().enumerate().skip(first).take(ROWS);
        let longest = shown
            .clone()
            .map(|(_, (text, _))| text.chars().count())
            .max();
        let longest = longest.unwrap_or(0).min(30);
        let line = |(at, (text, about)): (usize, &(String, String))| {
            let paint = match at == self.at {
                true => TextStyle::PROMPT,
                false => TextStyle::PLAIN,
            };
            let mut line = StyledLine::of(paint, &format!("  {:<longest$}  ", clean::line(text)));
            line.push(TextStyle::DIM, &clean::line(about));
            cut(&line, width)
        };
        shown.map(line).collect()
    }
}

fn sign(wants: &CompletionRequest) -> char {
    if wants.file { '@' } else { '/' }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> Vec<(String, String)> {
        [("clear", "new"), ("compact", "sum"), ("cost", "money")]
            .map(|(name, about)| (name.to_owned(), about.to_owned()))
            .to_vec()
    }

    #[test]
    fn commands_are_offered_at_the_start_and_files_at_any_word() {
        assert!(CompletionMenu::wants("/co", 3).is_some_and(|wants| !wants.is_file()));
        assert!(CompletionMenu::wants("x /co", 5).is_none());
        assert!(CompletionMenu::wants("/cost now", 9).is_none());
        let wants = CompletionMenu::wants("see @sr", 7);
        assert!(wants.clone().is_some_and(|wants| wants.is_file()));
        let files = ["src/main.rs".to_owned(), "docs/x.md".to_owned()];
        let menu = wants.and_then(|wants| CompletionMenu::new(wants, &[], &files, None));
        let choice = menu.as_ref().and_then(CompletionMenu::choice);
        assert_eq!(choice, Some((4..7, "@src/main.rs ".to_owned())));
    }

    #[test]
    fn the_menu_narrows_and_goes_round() {
        let wants = CompletionMenu::wants("/co", 3);
        let menu = wants.and_then(|wants| CompletionMenu::new(wants, &commands(), &[], None));
        let mut menu = menu.unwrap_or_else(|| panic!("no menu"));
        assert_eq!(menu.choices.len(), 2);
        menu.up();
        assert_eq!(menu.at, 1);
        menu.down();
        assert_eq!(menu.at, 0);
        assert!(
            CompletionMenu::wants("/zzz", 4)
                .and_then(|wants| CompletionMenu::new(wants, &commands(), &[], None))
                .is_none()
        );
    }
}
