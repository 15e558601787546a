//! What a session is begun with.

use std::path::PathBuf;
use std::sync::Arc;

use unspool_model::price::Prices;

use crate::api::client::Client;
use crate::commands::Commands;
use crate::definitions::Definitions;
use crate::hooks::Hooks;
use crate::memory::{Memory, Roots};
use crate::more::More;
use crate::permission::Policy;
use crate::record::Record;
use crate::request::Frame;
use crate::sandbox::Fence;
use crate::tools::Kept;

/// What a session needs.
pub struct Setup {
    /// The model's side.
    pub client: Client,
    /// The transcript.
    pub record: Record,
    /// What requests look like.
    pub frame: Frame,
    /// Who may do what.
    pub policy: Policy,
    /// What runs on events.
    pub hooks: Hooks,
    /// Where it works.
    pub place: Place,
    /// What is kept between calls.
    pub kept: Arc<Kept>,
    /// What people and the project wrote down.
    pub lore: Lore,
    /// Tools from elsewhere.
    pub more: Option<Arc<dyn More>>,
    /// Variables that the settings give to commands.
    pub env: Vec<(String, String)>,
    /// What commands cannot leave.
    pub fence: Option<Fence>,
    /// How often the model is asked in one turn.
    pub turns: Option<u32>,
    /// Dollars that may be spent.
    pub budget: Option<f64>,
    /// What models cost.
    pub prices: Arc<Prices>,
    /// Whether it makes room in the context by itself.
    pub compacts: bool,
    /// Whether somebody can be asked.
    pub asks: bool,
    /// The file of all prompts, if they are to be kept there too (`history.jsonl`).
    pub history: Option<PathBuf>,
    /// Where prompts come from: `typed`, `sdk`.
    pub source: Option<String>,
    /// How it begins: `startup` or `resume`.
    pub begins: &'static str,
    /// Whether it waits for sub-agents in the background before it closes: nobody is there who
    /// could ask for them later.
    pub stays: bool,
}

/// What people and the project wrote down for sessions.
#[derive(Clone, Debug)]
pub struct Lore {
    /// Slash commands and skills.
    pub commands: Commands,
    /// Kinds of sub-agents.
    pub agents: Definitions,
    /// Instructions.
    pub memory: Memory,
    /// Where they are looked for.
    pub roots: Roots,
    /// Whether somebody trusts the folder.
    pub trusted: bool,
}

/// Where a session works.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder it began in.
    pub project: PathBuf,
    /// More folders that belong to it.
    pub dirs: Vec<PathBuf>,
    /// The home folder.
    pub home: PathBuf,
    /// Where sessions are kept.
    pub config: PathBuf,
}
