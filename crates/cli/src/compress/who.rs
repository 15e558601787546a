//! Who is asked.

use serde_json::Value;
use unspool_ask::{ANTHROPIC_API, Access, Api, Provider, Shell, Stopped};
use unspool_model::edit::compress;

/// Who is asked for shorter texts.
#[derive(Clone, Debug)]
pub enum Who {
    /// A command, by its line for the shell.
    Command(String),
    /// A model behind the Messages API.
    Model {
        /// Its name.
        name: String,
        /// Where the API is.
        base: String,
        /// What gives access to it, if anything does.
        access: Option<Access>,
    },
}

/// Small and quick: writing shorter is no hard task.
const MODEL: &str = "claude-haiku-4-5";

impl Who {
    /// The command, if one is named, else the model by this name or the usual one, with what
    /// the environment says about the API.
    pub fn chosen(with: Option<&str>, model: Option<&str>) -> Who {
        if let Some(line) = with {
            return Who::Command(line.to_owned());
        }
        let variable = |name: &str| std::env::var(name).ok();
        let base = variable("ANTHROPIC_BASE_URL").filter(|base| !base.trim().is_empty());
        Who::Model {
            name: model.unwrap_or(MODEL).to_owned(),
            base: base.unwrap_or_else(|| ANTHROPIC_API.to_owned()),
            access: Access::from_variables(variable),
        }
    }

    /// The name for people, and for what is kept of its answers.
    pub fn name(&self) -> &str {
        match self {
            Who::Command(line) => line,
            Who::Model { name, .. } => name,
        }
    }

    /// The text of an answer. A model is asked for a form, in which an error is no answer. What
    /// a command prints is the text, unless all of it is such a form; an error is how it ends.
    pub fn answer(&self, said: &str) -> Result<String, String> {
        let said = said.trim();
        let is_form = || said.starts_with('{') && serde_json::from_str::<Value>(said).is_ok();
        let form = match self {
            Who::Command(_) => compress::answer(said).filter(|_| is_form()),
            Who::Model { .. } => compress::answer(said),
        };
        let text = match (form, self) {
            (Some(text), _) => text,
            (None, Who::Command(_)) => said.to_owned(),
            (None, Who::Model { .. }) => {
                return Err("the response is not the requested JSON object".to_owned());
            }
        };
        match text.is_empty() {
            true => Err("the response is empty".to_owned()),
            false => Ok(text),
        }
    }

    /// The one who answers.
    pub fn provider(&self) -> Result<Box<dyn Provider>, Stopped> {
        match self {
            Who::Command(line) => Ok(Box::new(Shell::new(line))),
            Who::Model { name, base, access } => {
                let access = access.as_ref().ok_or_else(|| Stopped {
                    why: "no API credentials: neither ANTHROPIC_API_KEY nor \
                          ANTHROPIC_AUTH_TOKEN is set"
                        .to_owned(),
                    hint: "set one of them, or use a command with `--with CMD`".to_owned(),
                })?;
                Ok(Box::new(Api::new(base, access, name)?))
            }
        }
    }
}
