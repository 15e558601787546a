//! A place with a session in it, on which the program works as for a user.

use super::super::Problem;
use super::super::run::Place;
use super::effect;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use unspool_testkit::conformance::transcript::Transcript;
use unspool_testkit::conformance::{bases, prepared};

/// Older than anything that counts as being worked on.
const AGE: Duration = Duration::from_secs(3 * 24 * 3600);

type Others<'a> = Box<dyn Fn(&str) -> Option<PathBuf> + 'a>;

/// The place, the program, and the session in work.
pub struct Desk<'a> {
    place: &'a Place,
    program: &'a Path,
    /// Finds the session of another scenario.
    others: Others<'a>,
    transcript: Transcript,
    source: String,
    /// The text of the source.
    laid: String,
    made: String,
}

impl<'a> Desk<'a> {
    /// Puts a recording there as if it had been recorded there.
    pub fn lay(
        place: &'a Place,
        program: &'a Path,
        recording: &Path,
        change: &str,
        others: impl Fn(&str) -> Option<PathBuf> + 'a,
    ) -> Result<Desk<'a>, Problem> {
        std::fs::create_dir_all(moved(place))?;
        let mut transcript = bases::load(recording)?;
        prepared::apply(change, &mut transcript)?;
        let source = copy(place, recording, &transcript)?;
        let mut desk = Desk {
            place,
            program,
            others: Box::new(others),
            transcript,
            made: source.clone(),
            source,
            laid: String::new(),
        };
        desk.laid = desk.text().ok_or("the source is not there")?;
        Ok(desk)
    }

    /// Runs the program once; what it made becomes the session in work. Fails if the program
    /// does. Tells what the words promise and was not done.
    pub fn step(&mut self, words: &[&str]) -> Result<Option<String>, Problem> {
        let before = self.text();
        self.run(words)?;
        let after = self.text();
        let step = effect::Step {
            source: &self.laid,
            before: before.as_deref(),
            after: after.as_deref(),
        };
        let missing = effect::missing(words, &step);
        Ok(missing.map(|missing| format!("`unspool {}`: {missing}", words.join(" "))))
    }

    fn run(&mut self, words: &[&str]) -> Result<(), Problem> {
        let words = self.words(words)?;
        let output = Command::new(self.program)
            .args(&words)
            .arg("--json")
            .current_dir(&self.place.cwd)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.place.root)
            .env("CLAUDE_CONFIG_DIR", &self.place.config)
            .env("UNSPOOL_HOME", self.place.root.join("unspool"))
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(format!("`unspool {}`: {said}", words.join(" ")).into());
        }
        let rows = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        for row in rows.map_while(Result::ok) {
            // Only what can be resumed is a result; other rows tell of sessions that moved.
            if let (Some(session), true) = (row["session"].as_str(), row["resume"].is_string()) {
                self.made = session.to_owned();
            }
        }
        if self.file(&self.made).is_none() {
            self.made.clone_from(&self.source);
        }
        Ok(())
    }

    /// The session that came of it: its id and its text.
    pub fn result(&self) -> Result<(String, String), Problem> {
        let text = self.text().ok_or("no session is left")?;
        Ok((self.made.clone(), text))
    }

    /// The text of the session in work, if it is there.
    fn text(&self) -> Option<String> {
        let bytes = std::fs::read(self.file(&self.made)?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Fills in names: `{session}` the source, `{made}` the result so far, `{cwd}` and `{moved}`
    /// two directories, `{says:T}` the line with this text, `{second:S}` another scenario.
    fn words(&self, words: &[&str]) -> Result<Vec<String>, Problem> {
        words.iter().map(|word| self.word(word)).collect()
    }

    fn word(&self, word: &str) -> Result<String, Problem> {
        let inner = word
            .strip_prefix('{')
            .and_then(|word| word.strip_suffix('}'));
        let Some(inner) = inner else {
            return Ok(word.to_owned());
        };
        Ok(match inner.split_once(':') {
            None if inner == "session" => self.source.clone(),
            None if inner == "made" => self.made.clone(),
            None if inner == "cwd" => self.place.cwd.display().to_string(),
            None if inner == "moved" => moved(self.place).display().to_string(),
            Some(("says", text)) if self.transcript.has(text) => self.transcript.uuid(text),
            Some(("second", scenario)) => {
                let other = (self.others)(scenario).ok_or("there is no such scenario")?;
                copy(self.place, &other, &bases::load(&other)?)?
            }
            _ => return Err(format!("nothing is known of {word}").into()),
        })
    }

    fn file(&self, session: &str) -> Option<PathBuf> {
        let name = format!("{session}.jsonl");
        let projects = std::fs::read_dir(self.place.config.join("projects")).ok()?;
        let files = projects.flatten().map(|project| project.path().join(&name));
        files.into_iter().find(|file| file.is_file())
    }
}

/// The directory that sessions are moved to.
pub fn moved(place: &Place) -> PathBuf {
    place.root.join("moved")
}

/// Copies a recording with all that stands beside it; gives the id of its session.
fn copy(place: &Place, recording: &Path, transcript: &Transcript) -> Result<String, Problem> {
    let was = transcript.values().find_map(|line| line["cwd"].as_str());
    let was = was.unwrap_or("/nowhere").to_owned();
    let here = |text: String| text.replace(&was, &place.cwd.to_string_lossy());
    let folder = recording.parent().ok_or("the recording has no folder")?;
    copy_all(folder, &place.project(), &here)?;
    let scenario = folder.parent().and_then(Path::parent);
    let beside = scenario.unwrap_or(folder).join("dot-claude");
    copy_all(&beside, &place.config, &here)?;
    // Settings are no part of a session: a hook in them would run.
    let _ = std::fs::remove_file(place.config.join("settings.json"));
    let name = recording.file_name().unwrap_or_default();
    let file = place.project().join(name);
    std::fs::write(&file, here(transcript.text()))?;
    age(&place.config)?;
    let stem = file.file_stem().unwrap_or_default();
    Ok(stem.to_string_lossy().into_owned())
}

fn copy_all(from: &Path, to: &Path, change: &dyn Fn(String) -> String) -> Result<(), Problem> {
    if !from.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let (entry, target) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if entry.is_dir() {
            copy_all(&entry, &target, change)?;
        } else if let Ok(text) = std::fs::read_to_string(&entry) {
            std::fs::write(target, change(text))?;
        } else {
            std::fs::copy(&entry, target)?;
        }
    }
    Ok(())
}

/// Makes every file look old, because one that is being written is not edited in place.
fn age(folder: &Path) -> Result<(), Problem> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            age(&path)?;
        } else {
            let file = File::options().write(true).open(&path)?;
            file.set_modified(SystemTime::now() - AGE)?;
        }
    }
    Ok(())
}
