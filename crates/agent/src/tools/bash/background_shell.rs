//! A command that runs in the background.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::SHOWN;
use crate::process::RunningCommand;
use crate::tool::ToolCallRequest;
use crate::tools::{BackgroundExit, BackgroundTask};

#[derive(Debug)]
pub struct BackgroundShell {
    id: String,
    call: String,
    command: String,
    description: String,
    file: PathBuf,
    running: RunningCommand,
    /// So many bytes of its output were given.
    given: AtomicU64,
    killed: AtomicBool,
    told: AtomicBool,
}

impl BackgroundShell {
    pub fn new(
        id: &str,
        call: &ToolCallRequest,
        file: PathBuf,
        running: RunningCommand,
    ) -> BackgroundShell {
        let command = call.input["command"].as_str().unwrap_or_default();
        let about = call.input["description"].as_str();
        BackgroundShell {
            id: id.to_owned(),
            call: call.id.clone(),
            command: command.to_owned(),
            description: about.unwrap_or(command).to_owned(),
            file,
            running,
            given: AtomicU64::new(0),
            killed: AtomicBool::new(false),
            told: AtomicBool::new(false),
        }
    }
}

impl BackgroundTask for BackgroundShell {
    fn id(&self) -> &str {
        &self.id
    }

    fn call(&self) -> &str {
        &self.call
    }

    fn kind(&self) -> &'static str {
        "local_bash"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn command(&self) -> &str {
        &self.command
    }

    fn done(&self) -> Option<BackgroundExit> {
        let ended = self.running.ended()?;
        let status = match ended.code {
            _ if self.killed.load(Ordering::Relaxed) => "killed",
            0 => "completed",
            _ => "failed",
        };
        Some(BackgroundExit {
            status,
            code: Some(ended.code),
        })
    }

    fn wait(&self, time: Duration) {
        self.running.wait(time);
    }

    fn output(&self, again: bool) -> String {
        let from = match again {
            true => 0,
            false => self.given.load(Ordering::Relaxed),
        };
        let (missing, text, total) = self.running.output(|output| {
            let (missing, text) = output.since(from);
            (missing, text, output.total())
        });
        if !again {
            self.given.store(total, Ordering::Relaxed);
        }
        let over = text.chars().count().saturating_sub(SHOWN);
        let shown: String = text.chars().skip(over).collect();
        match missing > 0 || over > 0 {
            true => format!(
                "[Only the end is shown. Full output: {}]\n\n{shown}",
                self.file.display()
            ),
            false => shown,
        }
    }

    fn file(&self) -> PathBuf {
        self.file.clone()
    }

    fn stop(&self) {
        if self.running.ended().is_none() {
            self.killed.store(true, Ordering::Relaxed);
        }
        self.running.end();
    }

    fn told(&self) -> bool {
        self.told.swap(true, Ordering::Relaxed)
    }
}
