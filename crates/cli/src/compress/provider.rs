//! Who is asked.

use serde_json::Value;
use unspool_ask::{
    ANTHROPIC_API, AnswerProvider, ApiCredential, AskStop, MessagesApi, ShellProvider,
};
use unspool_model::edit::compress;

/// Who is asked for shorter texts.
#[derive(Clone, Debug)]
pub enum CompressProvider {
    /// A command, by its line for the shell.
    Command(String),
    /// A model behind the Messages API.
    Model {
        /// Its name.
        name: String,
        /// Where the API is.
        base: String,
        /// What gives access to it, if anything does.
        access: Option<ApiCredential>,
    },
}

/// Small and quick: writing shorter is no hard task.
const MODEL: &str = "claude-haiku-4-5";

impl CompressProvider {
    /// The command, if one is named, else the model by this name or the usual one, with what
    /// the environment says about the API.
    pub fn chosen(with: Option<&str>, model: Option<&str>) -> CompressProvider {
        if let Some(line) = with {
            return CompressProvider::Command(line.to_owned());
        }
        let variable = |name: &str| std::env::var(name).ok();
        let base = variable("ANTHROPIC_BASE_URL").filter(|base| !base.trim().is_empty());
        CompressProvider::Model {
            name: model.unwrap_or(MODEL).to_owned(),
            base: base.unwrap_or_else(|| ANTHROPIC_API.to_owned()),
            access: ApiCredential::from_variables(variable),
        }
    }

    /// The name for people, and for what is kept of its answers.
    pub fn name(&self) -> &str {
        match self {
            CompressProvider::Command(line) => line,
            CompressProvider::Model { name, .. } => name,
        }
    }

    /// The text of an answer. A model is asked for a form, in which an error is no answer. What
    /// a command prints is the text, unless all of it is such a form; an error is how it ends.
    pub fn answer(&self, said: &str) -> Result<String, String> {
        let said = said.trim();
        let is_form = || said.starts_with('{') && serde_json::from_str::<Value>(said).is_ok();
        let form = match self {
            CompressProvider::Command(_) => compress::answer(said).filter(|_| is_form()),
            CompressProvider::Model { .. } => compress::answer(said),
        };
        let text = match (form, self) {
            (Some(text), _) => text,
            (None, CompressProvider::Command(_)) => said.to_owned(),
            (None, CompressProvider::Model { .. }) => {
                return Err("the response is not the requested JSON object".to_owned());
            }
        };
        match text.is_empty() {
            true => Err("the response is empty".to_owned()),
            false => Ok(text),
        }
    }

    /// The one who answers.
    pub fn provider(&self) -> Result<Box<dyn AnswerProvider>, AskStop> {
        match self {
            CompressProvider::Command(line) => Ok(Box::new(ShellProvider::new(line))),
            CompressProvider::Model { name, base, access } => {
                let access = access.as_ref().ok_or_else(|| AskStop {
                    why: "no API credentials: neither ANTHROPIC_API_KEY nor \
                          ANTHROPIC_AUTH_TOKEN is set"
                        .to_owned(),
                    hint: "set one of them, or use a command with `--with CMD`".to_owned(),
                })?;
                Ok(Box::new(MessagesApi::new(base, access, name)?))
            }
        }
    }
}
