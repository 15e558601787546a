//! A session at work, in process: what a front end asks for and is told.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unspool_agent::api::client::{Client, Patience};
use unspool_agent::api::model::Thinking;
use unspool_agent::commands::Commands;
use unspool_agent::definitions::Definitions;
use unspool_agent::driver::{self, Answer, Command, Handle, Lore, Notice, Place, Setup};
use unspool_agent::hooks::Hooks;
use unspool_agent::machine::{Ending, Why};
use unspool_agent::memory::{self, Roots};
use unspool_agent::permission::{Ground, Mode, Policy};
use unspool_agent::record::{Face, Record};
use unspool_agent::request::Frame;
use unspool_agent::settings::Settings;
use unspool_agent::tools::{self, Kept};
use unspool_ask::Access;
use unspool_testkit::model::{Answer as Said, Model, Step, call, text};

const LONG: Duration = Duration::from_secs(30);

/// A session and the folder it works in.
struct Desk {
    folder: tempfile::TempDir,
    handle: Handle,
    notices: Receiver<Notice>,
}

impl Desk {
    fn new(model: &Model) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (project, config) = (root.join("project"), root.join("config"));
        std::fs::create_dir_all(&project).unwrap();
        let setup = setup(model, &project, &config);
        let (sender, notices) = channel();
        let handle = driver::start(setup, move |notice| drop(sender.send(notice)));
        Desk {
            folder,
            handle,
            notices,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap()
            .join("project")
            .join(name)
    }

    fn say(&self, words: &str) {
        let content = words.into();
        let context = Vec::new();
        assert!(self.handle.send(Command::Submit { content, context }));
    }

    /// Everything up to the notice that passes.
    fn until(&self, passes: impl Fn(&Notice) -> bool) -> Vec<Notice> {
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

    fn ended(&self) -> Ending {
        let all = self.until(|notice| matches!(notice, Notice::Ended { .. }));
        match all.into_iter().next_back() {
            Some(Notice::Ended { ending, .. }) => ending,
            other => panic!("{other:?}"),
        }
    }

    fn lines(&self) -> Vec<Value> {
        let path = self.folder.path().join("config/session.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn setup(model: &Model, project: &Path, config: &Path) -> Setup {
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
    let settings = Settings::none(project);
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
            commands: Commands::find(config, project),
            agents: Definitions::find(config, project, false),
            memory: memory::memory(&roots),
            roots,
            trusted: false,
        },
        more: None,
        fence: None,
        turns: None,
        budget: None,
        compacts: true,
        asks: true,
        source: Some("typed".into()),
        begins: "startup",
    }
}

fn write(desk_file: &Path, id: &str, content: &str) -> Value {
    call(
        id,
        "Write",
        json!({"file_path": desk_file, "content": content}),
    )
}

/// A model whose answers are known only when the desk stands.
fn model_with(first: impl Fn(usize, &str) -> Said + Send + Sync + 'static) -> Model {
    Model::start(move |at, request| {
        let folder = request.body["system"].to_string();
        first(at, &folder)
    })
    .unwrap()
}

fn answer(desk: &Desk, notices: &[Notice], answer: Answer) {
    let Some(Notice::Ask { ask, .. }) = notices.last() else {
        panic!("{notices:?}");
    };
    desk.handle.send(Command::Answer { ask: *ask, answer });
}

#[test]
fn somebody_is_asked_and_what_they_say_counts() {
    let said = Arc::new(std::sync::Mutex::new(Vec::<Said>::new()));
    let script = Arc::clone(&said);
    let model = model_with(move |at, _| {
        script
            .lock()
            .unwrap()
            .get(at)
            .cloned()
            .unwrap_or_else(|| Said::text("done"))
    });
    let desk = Desk::new(&model);
    let file = desk.file("new.txt");
    *said.lock().unwrap() = vec![
        Said::blocks(&[write(&file, "toolu_1", "one")]),
        Said::text("written"),
        Said::blocks(&[write(&file, "toolu_2", "two")]),
        Said::blocks(&[
            write(&file, "toolu_3", "three"),
            write(&file, "toolu_4", "four"),
        ]),
    ];
    desk.say("write it");
    let asked = desk.until(|notice| matches!(notice, Notice::Ask { .. }));
    assert!(!file.exists());
    answer(&desk, &asked, Answer::Yes);
    assert_eq!(desk.ended().text, "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    // A no with a reason goes to the model; a bare one ends the turn, and nothing else runs.
    desk.say("again");
    let asked = desk.until(|notice| matches!(notice, Notice::Ask { .. }));
    answer(&desk, &asked, Answer::No(Some("use another name".into())));
    let asked = desk.until(|notice| matches!(notice, Notice::Ask { .. }));
    assert!(
        model.requests()[3].body["messages"]
            .to_string()
            .contains("use another name")
    );
    answer(&desk, &asked, Answer::No(None));
    assert_eq!(desk.ended().why, Why::Interrupted);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    desk.say("and now");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn going_back_takes_files_and_words_back() {
    let said = Arc::new(std::sync::Mutex::new(Vec::<Said>::new()));
    let script = Arc::clone(&said);
    let model = model_with(move |at, _| {
        script
            .lock()
            .unwrap()
            .get(at)
            .cloned()
            .unwrap_or_else(|| Said::text("done"))
    });
    let desk = Desk::new(&model);
    desk.handle.send(Command::Mode(Mode::AcceptEdits));
    let (old, new) = (desk.file("old.txt"), desk.file("new.txt"));
    std::fs::write(&old, "before").unwrap();
    *said.lock().unwrap() = vec![
        Said::text("hello"),
        Said::blocks(&[call("toolu_r", "Read", json!({"file_path": old}))]),
        Said::blocks(&[
            write(&old, "toolu_1", "after"),
            write(&new, "toolu_2", "new"),
        ]),
        Said::text("changed"),
    ];
    desk.say("first words");
    desk.ended();
    desk.say("second words");
    assert_eq!(desk.ended().text, "changed");
    assert!(new.exists());
    let lines = desk.lines();
    let prompt = lines
        .iter()
        .find(|line| line["message"]["content"] == "second words")
        .unwrap();
    desk.handle.send(Command::Rewind {
        prompt: prompt["uuid"].as_str().unwrap().to_owned(),
        files: true,
        conversation: true,
    });
    let told = desk.until(|notice| matches!(notice, Notice::Rewound { .. }));
    assert!(
        !told.iter().any(|notice| matches!(notice, Notice::Warn(_))),
        "{told:?}"
    );
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "before");
    assert!(!new.exists());
    desk.say("third words");
    desk.ended();
    let sent = model.requests().last().unwrap().body["messages"].to_string();
    assert!(
        sent.contains("first words") && sent.contains("third words"),
        "{sent}"
    );
    assert!(!sent.contains("second words"), "{sent}");
    assert_eq!(model.refusals(), [""; 0]);
    let before = desk.lines().len();
    assert!(before > lines.len(), "nothing is taken out of the file");
}

#[test]
fn a_command_of_ones_own_runs_without_the_model_which_hears_of_it_later() {
    let model = Model::playing(vec![]).unwrap();
    let desk = Desk::new(&model);
    desk.handle
        .send(Command::Shell("echo out; echo again".into()));
    desk.until(|notice| matches!(notice, Notice::CallEnded { .. }));
    assert_eq!(model.requests().len(), 0);
    desk.say("what was that");
    desk.ended();
    let sent = model.requests()[0].body["messages"].to_string();
    assert!(
        sent.contains("<bash-input>echo out; echo again</bash-input>"),
        "{sent}"
    );
    assert!(
        sent.contains("<bash-stdout>out\\\\nagain</bash-stdout>")
            || sent.contains("<bash-stdout>out\\nagain</bash-stdout>"),
        "{sent}"
    );
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn what_is_typed_while_it_works_is_said_when_it_can_be_heard() {
    let model = Model::playing(vec![
        Said::blocks(&[
            text("working"),
            call("toolu_1", "Glob", json!({"pattern": "*"})),
        ])
        .before(4, Step::Gate("first")),
        Said::text("heard both"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("one");
    assert!(model.reached("first", LONG));
    desk.say("two");
    desk.until(|notice| matches!(notice, Notice::Queued(1)));
    model.open("first");
    assert_eq!(desk.ended().text, "heard both");
    let sent = model.requests()[1].body["messages"].to_string();
    assert!(sent.contains("two"), "{sent}");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn stopping_takes_less_than_a_fifth_of_a_second() {
    let model = Model::playing(vec![
        Said::text("slow").before(3, Step::Gate("never")),
        Said::blocks(&[call("toolu_1", "Bash", json!({"command": "sleep 47.25"}))]),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("one");
    assert!(model.reached("never", LONG));
    let began = Instant::now();
    desk.handle.send(Command::Interrupt);
    assert_eq!(desk.ended().why, Why::Interrupted);
    let speaking = began.elapsed();
    desk.handle.send(Command::Mode(Mode::Bypass));
    desk.say("two");
    desk.until(|notice| matches!(notice, Notice::CallBegan(_)));
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    desk.handle.send(Command::Interrupt);
    assert_eq!(desk.ended().why, Why::Interrupted);
    let running = began.elapsed();
    // Twice the promise, for machines that do other things too.
    assert!(speaking < Duration::from_millis(400), "{speaking:?}");
    assert!(running < Duration::from_millis(400), "{running:?}");
    desk.say("three");
    assert_eq!(desk.ended().text, "done");
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn a_summary_can_be_asked_for() {
    let model = Model::playing(vec![
        Said::text("hello"),
        Said::text("ALL IN SHORT"),
        Said::text("on"),
    ])
    .unwrap();
    let desk = Desk::new(&model);
    desk.say("old words");
    desk.ended();
    desk.handle.send(Command::Compact {
        words: Some("the names".into()),
    });
    assert_eq!(desk.ended().why, Why::Compacted);
    assert!(
        model.requests()[1].body["messages"]
            .to_string()
            .contains("the names")
    );
    desk.say("new words");
    assert_eq!(desk.ended().text, "on");
    let sent = model.requests()[2].body["messages"].to_string();
    assert!(
        sent.contains("ALL IN SHORT") && !sent.contains("old words"),
        "{sent}"
    );
    assert_eq!(model.refusals(), [""; 0]);
}
