//! What a session is begun with.

use std::path::PathBuf;
use std::sync::Arc;

use unspool_model::price::Prices;

use crate::agent_definitions::AgentDefinitions;
use crate::api::client::MessagesClient;
use crate::hooks::SessionHooks;
use crate::mcp_tools::McpTools;
use crate::memory::{MemoryFiles, MemoryRoots};
use crate::permission::PermissionPolicy;
use crate::request::RequestOptions;
use crate::sandbox::WriteSandbox;
use crate::slash_commands::SlashCommands;
use crate::tools::ToolState;
use crate::transcript_writer::TranscriptWriter;

/// What a session needs.
pub struct SessionSetup {
    /// The model's side.
    pub client: MessagesClient,
    /// The transcript.
    pub record: TranscriptWriter,
    /// What requests look like.
    pub frame: RequestOptions,
    /// Who may do what.
    pub policy: PermissionPolicy,
    /// What runs on events.
    pub hooks: SessionHooks,
    /// Where it works.
    pub place: SessionDirs,
    /// What is kept between calls.
    pub kept: Arc<ToolState>,
    /// What people and the project wrote down.
    pub lore: SessionCustomizations,
    /// Tools from elsewhere.
    pub more: Option<Arc<dyn McpTools>>,
    /// Variables that the settings give to commands.
    pub env: Vec<(String, String)>,
    /// What commands cannot leave.
    pub fence: Option<WriteSandbox>,
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
pub struct SessionCustomizations {
    /// Slash commands and skills.
    pub commands: SlashCommands,
    /// Kinds of sub-agents.
    pub agents: AgentDefinitions,
    /// Instructions.
    pub memory: MemoryFiles,
    /// Where they are looked for.
    pub roots: MemoryRoots,
    /// Whether somebody trusts the folder.
    pub trusted: bool,
}

/// Where a session works.
#[derive(Clone, Debug)]
pub struct SessionDirs {
    /// The folder it began in.
    pub project: PathBuf,
    /// More folders that belong to it.
    pub dirs: Vec<PathBuf>,
    /// The home folder.
    pub home: PathBuf,
    /// Where sessions are kept.
    pub config: PathBuf,
}
