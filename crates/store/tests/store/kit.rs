//! Small things for tests: a folder with sessions, lines, and repeatable chance.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Home(tempfile::TempDir);

impl Home {
    pub fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn dirs(&self) -> Vec<PathBuf> {
        vec![self.path().to_owned()]
    }

    /// Writes a file below `projects`.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join("projects").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn find(&self) -> unspool_store::FoundSessionFiles {
        unspool_store::find(&self.dirs())
    }
}

pub fn user(session: &str, cwd: &str, text: &str) -> String {
    let cwd = cwd.replace('\\', "\\\\");
    format!(
        r#"{{"type":"user","uuid":"u-{text}","parentUuid":null,"sessionId":"{session}","cwd":"{cwd}","timestamp":"2026-01-03T15:44:58.325Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

pub fn reply(text: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"a-{text}","message":{{"id":"m-{text}","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":3,"output_tokens":7}}}}}}"#
    ) + "\n"
}

/// Chance that is the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A transcript with all that makes reading hard: long, blank, broken and glued lines.
pub fn transcript(dice: &mut Dice, lines: usize) -> Vec<u8> {
    let mut out = String::new();
    for at in 0..lines {
        let long = "日x\\n".repeat(dice.below(60));
        let parent = dice.below(at + 1);
        match dice.below(12) {
            0 => out.push_str(&user("s", "/p", &format!("{at} {long}"))),
            1 => out.push('\n'),
            2 => out.push_str("{\"torn\":\n"),
            3 => out.push_str("{\"type\":\"mode\"}{\"type\":\"mode\"}\n"),
            4 => out.push_str("  [1,2]\r\n"),
            5 => writeln!(out, r#"{{"type":"system","subtype":"turn_duration","uuid":"{at}","durationMs":{at}}}"#).unwrap(),
            6..=8 => writeln!(out, r#"{{"type":"assistant","uuid":"{at}","parentUuid":"{parent}","message":{{"id":"m{}","role":"assistant","content":[{{"type":"tool_use","id":"t{at}","name":"Read","input":{{"file_path":"{long}"}}}}],"usage":{{"output_tokens":{at}}}}}}}"#, at / 3).unwrap(),
            _ => writeln!(out, r#"{{"type":"user","uuid":"{at}","parentUuid":"{parent}","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{parent}","content":"{long}"}}]}}}}"#).unwrap(),
        }
    }
    match dice.below(4) {
        0 => out.push_str("{\"type\":\"us"),
        1 => out.push_str("{\"type\":\"mode\"}"),
        _ => {}
    }
    out.into_bytes()
}
