//! Hooks, where there are none.

use serde_json::Value;

use crate::stop::Stop;

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
