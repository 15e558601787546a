//! The least that can be said about permissions, hooks and skills.

use std::path::Path;

use serde_json::Value;

use crate::stop::Stop;
use crate::tools;

/// How much is allowed without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Reading is allowed.
    #[default]
    Default,
    /// Changing files, too.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// What would be asked is refused.
    DontAsk,
    /// Everything.
    Bypass,
}

impl Mode {
    /// The name it has in settings.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "acceptEdits",
            Mode::Plan => "plan",
            Mode::DontAsk => "dontAsk",
            Mode::Bypass => "bypassPermissions",
        }
    }

    /// The mode of a name.
    pub fn parse(name: &str) -> Option<Mode> {
        Some(match name {
            "default" | "manual" | "auto" => Mode::Default,
            "acceptEdits" => Mode::AcceptEdits,
            "plan" => Mode::Plan,
            "dontAsk" => Mode::DontAsk,
            "bypassPermissions" => Mode::Bypass,
            _ => return None,
        })
    }
}

/// Why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// In words.
    pub text: String,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allow {
        /// Why.
        by: Reason,
    },
    /// Somebody has to be asked.
    Ask {
        /// Why.
        why: Reason,
        /// Rules that would save the question.
        always: Vec<String>,
    },
    /// It may not.
    Deny {
        /// Why.
        by: Reason,
        /// What the model is told.
        text: String,
    },
}

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    mode: Mode,
    allowed: Vec<String>,
    denied: Vec<String>,
}

impl Policy {
    /// By names of tools alone.
    pub fn new(mode: Mode, allowed: Vec<String>, denied: Vec<String>) -> Policy {
        Policy {
            mode,
            allowed,
            denied,
        }
    }

    /// Whether a call may run.
    pub fn judge(&self, tool: &str, input: &Value, _cwd: &Path) -> Verdict {
        let names = |rules: &[String]| {
            rules
                .iter()
                .any(|rule| rule.split('(').next() == Some(tool))
        };
        let by = Reason::default();
        if names(&self.denied) {
            let text = format!("Permission to use {tool} has been denied.");
            return Verdict::Deny { by, text };
        }
        let reads = tools::named(tool).is_some_and(|tool| tool.only_reads(input));
        let edits = matches!(tool, "Write" | "Edit" | "NotebookEdit");
        let free = reads
            || names(&self.allowed)
            || self.mode == Mode::Bypass
            || (edits && self.mode == Mode::AcceptEdits);
        if free {
            return Verdict::Allow { by };
        }
        Verdict::Ask {
            why: by,
            always: vec![tool.to_owned()],
        }
    }

    /// Whether a tool is offered at all.
    pub fn offers(&self, tool: &str) -> bool {
        !self.denied.iter().any(|rule| rule == tool)
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Another mode.
    pub fn set_mode(&mut self, mode: Mode) -> Result<(), String> {
        self.mode = mode;
        Ok(())
    }

    /// One rule more, for this session.
    pub fn add(&mut self, rule: &str) -> Result<(), String> {
        self.allowed.push(rule.to_owned());
        Ok(())
    }
}

/// What hooks decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
    /// Somebody is asked.
    Ask,
}

/// What hooks said.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Why it is blocked.
    pub block: Option<String>,
    /// Whether a call may run.
    pub allow: Option<Decision>,
    /// Another input.
    pub updated_input: Option<Value>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// A text for the person.
    pub system_message: Option<String>,
    /// Why everything ends.
    pub stop: Option<String>,
    /// What went wrong with hooks.
    pub errors: Vec<String>,
}

/// No hooks.
#[derive(Clone, Debug, Default)]
pub struct Hooks {}

impl Hooks {
    /// Runs what is set up for an event.
    pub fn run(&self, _event: &str, _about: Option<&str>, _input: &Value, _stop: &Stop) -> Said {
        Said::default()
    }
}
