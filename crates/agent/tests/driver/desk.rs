//! A session at work, in process, and a folder for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use unspool_agent::api::client::{Client, Patience};
use unspool_agent::api::model::Thinking;
use unspool_agent::commands::Commands;
use unspool_agent::definitions::Definitions;
use unspool_agent::driver::{self, Command, Handle, Lore, Notice, Place, Setup};
use unspool_agent::hooks::Hooks;
use unspool_agent::machine::Ending;
use unspool_agent::memory::{self, Roots};
use unspool_agent::permission::{Ground, Mode, Policy};
use unspool_agent::record::{Face, Record};
use unspool_agent::request::Frame;
use unspool_agent::settings::{Places, Settings};
use unspool_agent::tools::{self, Kept};
use unspool_ask::Access;
use unspool_model::price::Prices;
use unspool_testkit::model::Model;
use unspool_testkit::wait::LONG;

/// A session and the folder it works in.
pub struct Desk {
    pub folder: tempfile::TempDir,
    pub handle: Handle,
    pub notices: Receiver<Notice>,
}

impl Desk {
    pub fn new(model: &Model) -> Desk {
        Desk::with(model, "{}", |_| ())
    }

    /// One with these settings, and set up a little differently.
    pub fn with(model: &Model, settings: &str, change: impl FnOnce(&mut Setup)) -> Desk {
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
        assert!(self.handle.send(Command::Submit { content, context }));
    }

    /// Everything up to the notice that passes.
    pub fn until(&self, passes: impl Fn(&Notice) -> bool) -> Vec<Notice> {
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

    pub fn ended(&self) -> Ending {
        let all = self.until(|notice| matches!(notice, Notice::Ended { .. }));
        match all.into_iter().next_back() {
            Some(Notice::Ended { ending, .. }) => ending,
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

fn setup(model: &Model, project: &Path, config: &Path, settings: &str) -> Setup {
    let patience = Patience {
        retries: 0,
        ..Patience::default()
    };
    let client = Client::new(&model.url(), &Access::Key("k".into()), patience).unwrap();
    let face = Face {
        session: "5e551000-0000-4000-8000-000000000009".into(),
        version: "unspool-test".into(),
        entrypoint: "cli".into(),
        slug: None,
        agent: None,
    };
    let places = Places {
        user: config.to_owned(),
        managed: config.join("no-managed.json"),
        project: project.to_owned(),
        given: Some(settings.to_owned()),
    };
    let settings = Settings::load(&places).unwrap();
    let ground = Ground {
        project: project.to_owned(),
        home: config.to_owned(),
        ..Ground::default()
    };
    let roots = Roots {
        managed: config.join("none"),
        config: config.to_owned(),
        home: config.to_owned(),
        cwd: project.to_owned(),
        external: false,
    };
    let offered = tools::ALL.iter().filter(|tool| tool.is_offered());
    let offered = offered.map(|tool| json!({"name": tool.name(), "description": tool.description(), "input_schema": tool.schema()}));
    Setup {
        client,
        record: Record::new(&config.join("session.jsonl"), face, project, false),
        frame: Frame {
            model: "claude-sonnet-4-5".into(),
            thinking: Thinking::Auto,
            system: vec!["be brief".into()],
            tools: offered.collect(),
            ..Frame::default()
        },
        policy: Policy::load(&settings, ground, Mode::Default, &[], &[]).unwrap(),
        hooks: Hooks::load(&settings, project, None).unwrap(),
        place: Place {
            project: project.to_owned(),
            dirs: Vec::new(),
            home: config.to_owned(),
            config: config.to_owned(),
        },
        kept: Arc::new(Kept::with_guard(env!("CARGO_BIN_EXE_unspool-guard").into())),
        lore: Lore {
            commands: Commands::find(config, project, project),
            agents: Definitions::find(config, project, project, false),
            memory: memory::memory(&roots),
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
