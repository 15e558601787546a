//! A session at work, in process, and a folder for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use unspool_agent::agent_definitions::AgentDefinitions;
use unspool_agent::api::client::{ApiRetryPolicy, MessagesClient};
use unspool_agent::api::model::ThinkingMode;
use unspool_agent::driver::{
    self, SessionCommand, SessionCustomizations, SessionDirs, SessionHandle, SessionNotice,
    SessionSetup,
};
use unspool_agent::hooks::SessionHooks;
use unspool_agent::memory::{self, MemoryRoots};
use unspool_agent::permission::{PermissionDirs, PermissionMode, PermissionPolicy};
use unspool_agent::request::RequestOptions;
use unspool_agent::settings::{SessionSettings, SettingsPaths};
use unspool_agent::slash_commands::SlashCommands;
use unspool_agent::state_machine::TurnEnding;
use unspool_agent::tools::{self, ToolState};
use unspool_agent::transcript_writer::{SharedLineFields, TranscriptWriter};
use unspool_ask::ApiCredential;
use unspool_model::price::Prices;
use unspool_testkit::model::Model;
use unspool_testkit::wait::LONG;

/// A session and the folder it works in.
pub struct Desk {
    pub folder: tempfile::TempDir,
    pub handle: SessionHandle,
    pub notices: Receiver<SessionNotice>,
}

impl Desk {
    pub fn new(model: &Model) -> Desk {
        Desk::with(model, "{}", |_| ())
    }

    /// One with these settings, and set up a little differently.
    pub fn with(model: &Model, settings: &str, change: impl FnOnce(&mut SessionSetup)) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (project, config) = (root.join("project"), root.join("config"));
        std::fs::create_dir_all(&project).unwrap();
        let mut setup = setup(model, &project, &config, settings);
        change(&mut setup);
        let (sender, notices) = channel();
        let handle = driver::start(setup, move |notice| drop(sender.send(notice)));
        Desk {
            folder,
            handle,
            notices,
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("project")
            .join(name)
    }

    pub fn say(&self, words: &str) {
        let content = words.into();
        let context = Vec::new();
        assert!(
            self.handle
                .send(SessionCommand::Submit { content, context })
        );
    }

    /// Everything up to the notice that passes.
    pub fn until(&self, passes: impl Fn(&SessionNotice) -> bool) -> Vec<SessionNotice> {
        let mut all = Vec::new();
        loop {
            let notice = self
                .notices
                .recv_timeout(LONG)
                .unwrap_or_else(|_| panic!("waited in vain: {all:?}"));
            let found = passes(&notice);
            all.push(notice);
            if found {
                return all;
            }
        }
    }

    pub fn ended(&self) -> TurnEnding {
        let all = self.until(|notice| matches!(notice, SessionNotice::Ended { .. }));
        match all.into_iter().next_back() {
            Some(SessionNotice::Ended { ending, .. }) => ending,
            other => panic!("{other:?}"),
        }
    }

    pub fn lines(&self) -> Vec<Value> {
        let path = self.folder.path().join("config/session.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn setup(model: &Model, project: &Path, config: &Path, settings: &str) -> SessionSetup {
    let patience = ApiRetryPolicy {
        retries: 0,
        ..ApiRetryPolicy::default()
    };
    let client =
        MessagesClient::new(&model.url(), &ApiCredential::Key("k".into()), patience).unwrap();
    let face = SharedLineFields {
        session: "5e551000-0000-4000-8000-000000000009".into(),
        version: "unspool-test".into(),
        entrypoint: "cli".into(),
        slug: None,
        agent: None,
    };
    let places = SettingsPaths {
        user: config.to_owned(),
        managed: config.join("no-managed.json"),
        project: project.to_owned(),
        given: Some(settings.to_owned()),
    };
    let settings = SessionSettings::load(&places).unwrap();
    let ground = PermissionDirs {
        project: project.to_owned(),
        home: config.to_owned(),
        ..PermissionDirs::default()
    };
    let roots = MemoryRoots {
        managed: config.join("none"),
        config: config.to_owned(),
        home: config.to_owned(),
        cwd: project.to_owned(),
        external: false,
    };
    let offered = tools::ALL.iter().filter(|tool| tool.is_offered());
    let offered = offered.map(|tool| json!({"name": tool.name(), "description": tool.description(), "input_schema": tool.schema()}));
    SessionSetup {
        client,
        record: TranscriptWriter::new(&config.join("session.jsonl"), face, project, false),
        frame: RequestOptions {
            model: "claude-sonnet-4-5".into(),
            thinking: ThinkingMode::Auto,
            system: vec!["be brief".into()],
            tools: offered.collect(),
            ..RequestOptions::default()
        },
        policy: PermissionPolicy::load(&settings, ground, PermissionMode::Default, &[], &[])
            .unwrap(),
        hooks: SessionHooks::load(&settings, project, None).unwrap(),
        place: SessionDirs {
            project: project.to_owned(),
            dirs: Vec::new(),
            home: config.to_owned(),
            config: config.to_owned(),
        },
        kept: Arc::new(ToolState::with_guard(
            env!("CARGO_BIN_EXE_unspool-guard").into(),
        )),
        lore: SessionCustomizations {
            commands: SlashCommands::find(config, project, project),
            agents: AgentDefinitions::find(config, project, project, false),
            memory: memory::load_memory(&roots),
            roots,
            trusted: false,
        },
        more: None,
        env: settings.variables(),
        fence: None,
        turns: None,
        budget: None,
        prices: Arc::new(Prices::bundled().clone()),
        compacts: true,
        asks: true,
        history: None,
        source: Some("typed".into()),
        begins: "startup",
        stays: false,
    }
}
