//! What a walk finds, and what it passes over.

use std::fs;

use unspool_store::resolve::{SessionTarget, resolve};
use unspool_store::session_with_agents::{agents_of, read_session_with_agents};

use crate::kit::{Home, reply, user};

#[test]
fn all_three_places_of_sub_agents_are_found() {
    let home = Home::new();
    home.write("-p/s1.jsonl", user("s1", "/p", "hi"));
    home.write("-p/s2.jsonl", user("s2", "/p", "hi"));
    home.write("-p/agent-flat1.jsonl", user("s1", "/p", "a") + &reply("b"));
    home.write("-p/agent-flat2.jsonl", user("s2", "/p", "a") + &reply("b"));
    home.write("-p/s1/subagents/agent-a1.jsonl", user("s1", "/p", "a"));
    home.write(
        "-p/s1/subagents/agent-a1.meta.json",
        r#"{"agentType":"Explore"}"#,
    );
    home.write(
        "-p/s1/subagents/deep/er/agent-a2.jsonl",
        user("s1", "/p", "a"),
    );
    home.write("-p/subagents/agent-a3.jsonl", user("s1", "/p", "a"));
    home.write("-p/memory/notes.md", "x");
    home.write("-p/sessions-index.json", "{}");
    let found = home.find();
    let sessions: Vec<_> = found.sessions.iter().map(|file| &file.id[..]).collect();
    assert_eq!(sessions, ["s1", "s2"]);
    assert!(found.sessions[0].beside.is_some() && found.sessions[1].beside.is_none());
    let ids = |at: usize| {
        let mut ids: Vec<_> = agents_of(&found, &found.sessions[at])
            .iter()
            .map(|agent| agent.id.clone())
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(0), ["a1", "a2", "a3", "flat1"]);
    assert_eq!(ids(1), ["flat2"]);
    assert!(found.others.is_empty() && found.warnings.is_empty());

    let family = read_session_with_agents(&found, &found.sessions[0]).unwrap();
    assert_eq!(family.agents.len(), 4);
    let typed = family.agents.iter().find(|agent| agent.id == "a1").unwrap();
    let meta = typed.meta.as_ref().unwrap();
    assert_eq!(meta.agent_type.as_deref(), Some("Explore"));
}

#[test]
fn a_session_named_by_its_path_brings_its_sub_agents_too() {
    let home = Home::new();
    let path = home.write("-p/s1.jsonl", user("s1", "/p", "hi"));
    home.write("-p/agent-flat1.jsonl", user("s1", "/p", "a") + &reply("b"));
    home.write("-p/s1/subagents/agent-a1.jsonl", user("s1", "/p", "a"));
    let nothing = unspool_store::FoundSessionFiles::default();
    let resolved = resolve(&nothing, path.to_str().unwrap(), None).unwrap();
    let SessionTarget::Session(file) = resolved.target else {
        panic!("a session");
    };
    assert_eq!(
        read_session_with_agents(&nothing, &file)
            .unwrap()
            .agents
            .len(),
        2
    );
}

#[test]
fn what_is_no_conversation_is_listed_apart() {
    let home = Home::new();
    home.write("-p/s1.jsonl", user("s1", "/p", "hi"));
    home.write("-p/empty.jsonl", "");
    home.write("-p/agent-empty.jsonl", "");
    home.write("-p/agent-acompact-12.jsonl", user("s1", "/p", "a"));
    home.write("-p/s1/subagents/agent-aprompt_suggestion-9.jsonl", "{}\n");
    home.write(
        "-p/agent-w1.jsonl",
        user("s1", "/p", "Warmup") + &reply("ok"),
    );
    home.write("-p/agent-w2.jsonl", reply("ok"));
    home.write("-p/agent-real.jsonl", user("s1", "/p", "look"));
    home.write("loose.jsonl", user("s1", "/p", "hi"));
    let mut found = home.find();
    assert_eq!(found.others.len(), 5, "{:?}", found.others);
    assert_eq!(
        read_session_with_agents(&found, &found.sessions[0])
            .unwrap()
            .agents
            .len(),
        1
    );
    found.identify_agents();
    assert_eq!(found.others.len(), 6);
    let agents: Vec<_> = found.agents.iter().collect();
    assert_eq!(
        (agents.len(), agents[0].session.as_deref()),
        (2, Some("s1"))
    );
    assert!(found.warnings.is_empty());
}

#[cfg(unix)]
#[test]
fn strange_things_get_one_warning_each_and_never_block() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    let home = Home::new();
    let good = home.write("-p/good.jsonl", user("good", "/p", "hi"));
    let dir = good.parent().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(dir.join("pipe.jsonl"))
        .status();
    assert!(made.unwrap().success());
    let _listener = UnixListener::bind(dir.join("socket.jsonl")).unwrap();
    symlink("self.jsonl", dir.join("self.jsonl")).unwrap();
    symlink("/nowhere/at/all", dir.join("dangling.jsonl")).unwrap();
    symlink("/dev/zero", dir.join("zero.jsonl")).unwrap();
    symlink("..", dir.join("up")).unwrap();
    fs::create_dir(dir.join("folder.jsonl")).unwrap();
    symlink(dir.join("good.jsonl"), dir.join("link.jsonl")).unwrap();
    let found = home.find();
    let warned: Vec<_> = found
        .warnings
        .iter()
        .map(|warning| {
            let name = warning.path.file_name().unwrap();
            (name.to_str().unwrap(), &warning.why[..])
        })
        .collect();
    let names: Vec<_> = warned.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "dangling.jsonl",
            "folder.jsonl",
            "pipe.jsonl",
            "self.jsonl",
            "socket.jsonl",
            "up",
            "zero.jsonl"
        ]
    );
    assert!(warned.contains(&("pipe.jsonl", "a pipe, not a file")));
    assert!(warned.contains(&("folder.jsonl", "a folder, not a file")));
    let sessions: Vec<_> = found.sessions.iter().map(|file| &file.id[..]).collect();
    assert_eq!(sessions, ["good", "link"]);
}

#[cfg(unix)]
#[test]
fn what_we_may_not_read_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::new();
    let path = home.write("-p/s1.jsonl", user("s1", "/p", "hi"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        return; // For this user nothing is forbidden.
    }
    let error = unspool_store::read(&path, unspool_store::TranscriptRole::Main).unwrap_err();
    assert_eq!(error.warning(&path).why, "no permission to read it");
    let dir = path.parent().unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o000)).unwrap();
    let found = home.find();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(found.warnings.len(), 1);
    assert_eq!(found.warnings[0].why, "no permission to read it");
}

#[cfg(unix)]
#[test]
fn names_may_be_long_and_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let home = Home::new();
    let long = "n".repeat(249);
    home.write(&format!("-p/{long}.jsonl"), user("s1", "/p", "hi"));
    let odd = home
        .path()
        .join("projects/-p")
        .join(OsStr::from_bytes(b"\xff\xfe.jsonl"));
    fs::write(&odd, user("s2", "/p", "hi")).unwrap();
    let found = home.find();
    assert_eq!((found.sessions.len(), found.warnings.len()), (2, 0));
    for file in &found.sessions {
        assert!(unspool_store::read(&file.path, unspool_store::TranscriptRole::Main).is_ok());
    }
}

#[test]
fn a_config_folder_given_twice_or_missing_changes_nothing() {
    let home = Home::new();
    home.write("-p/s1.jsonl", user("s1", "/p", "hi"));
    let dirs = [
        home.path().to_owned(),
        home.path().join("projects/.."),
        home.path().join("nothing"),
    ];
    let found = unspool_store::find(&dirs);
    assert_eq!((found.sessions.len(), found.warnings.len()), (1, 0));
}
