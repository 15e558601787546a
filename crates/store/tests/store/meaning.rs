//! What a person means by a session argument.

use std::path::Path;
use std::time::{Duration, SystemTime};

use unspool_store::StoreError;
use unspool_store::resolve::{ResolvedSession, SessionTarget, latest_in_directory, resolve};

use crate::kit::{Home, reply, user};

fn aged(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn id(resolved: Result<ResolvedSession, StoreError>) -> String {
    match resolved.unwrap().target {
        SessionTarget::Session(file) => file.id,
        SessionTarget::Agent(file) => format!("agent-{}", file.id),
    }
}

fn home() -> Home {
    let home = Home::new();
    let title = "{\"type\":\"custom-title\",\"customTitle\":\"My Title\"}\n";
    let path = home.write("-p/abcd1111.jsonl", user("x", "/p", "first") + title);
    aged(&path, 30);
    let path = home.write("-p/abcd2222.jsonl", user("x", "/p", "second") + &reply("r"));
    aged(&path, 20);
    let path = home.write(
        "-p--claude-worktrees-w/ffff.jsonl",
        user("x", "/p/.claude/worktrees/w", "wt"),
    );
    aged(&path, 25);
    let path = home.write("-q/e.jsonl", user("x", "/q", "third"));
    aged(&path, 10);
    home.write("-p/queue.jsonl", "{\"type\":\"queue-operation\"}\n");
    home.write(
        "-p/abcd1111/subagents/agent-a77777.jsonl",
        user("x", "/p", "go"),
    );
    home
}

#[test]
fn the_start_of_an_id_is_enough_if_only_one_fits() {
    let home = home();
    let found = home.find();
    let say = |argument: &str| resolve(&found, argument, None);
    assert_eq!(id(say("abcd1")), "abcd1111");
    assert_eq!(id(say("ABCD2")), "abcd2222");
    assert_eq!(id(say("e")), "e", "a short id in full");
    assert_eq!(id(say("agent-a7777")), "agent-a77777");
    assert_eq!(id(say("a7777")), "agent-a77777");
    let Err(StoreError::Ambiguous { candidates, .. }) = say("abcd") else {
        panic!("two sessions begin with abcd");
    };
    let listed: Vec<_> = candidates
        .iter()
        .map(|one| (&one.id[..], one.title.as_deref().unwrap()))
        .collect();
    assert_eq!(listed, [("abcd2222", "second"), ("abcd1111", "My Title")]);
    let error = say("abc").unwrap_err().to_string();
    assert_eq!(
        error,
        "`abc` is too short; use at least 4 characters of the id"
    );
    let error = say("0123").unwrap_err();
    assert_eq!(error.to_string(), "no session starts with `0123`");
    assert!(error.hint().unwrap().contains("unspool ls"));
}

#[test]
fn a_title_means_its_session() {
    let home = home();
    let summary = "{\"type\":\"summary\",\"summary\":\"Given Name\",\"leafUuid\":\"a-r\"}\n";
    home.write("-q/zzz.jsonl", user("x", "/q", "fourth") + summary);
    let found = home.find();
    let say = |argument: &str| resolve(&found, argument, None);
    assert_eq!(id(say("My Title")), "abcd1111");
    assert_eq!(id(say("\"my title\"")), "abcd1111");
    assert_eq!(id(say("third")), "e");
    assert_eq!(
        id(say("Given name")),
        "abcd2222",
        "titled from another file"
    );
    let error = say("no such thing").unwrap_err().to_string();
    assert_eq!(error, "no session has the id or title `no such thing`");
    assert!(say("").is_err());
}

#[test]
fn a_path_means_its_file_wherever_it_is() {
    let home = home();
    let found = home.find();
    let inside = home.path().join("projects/-p/../-p/abcd1111.jsonl");
    let target = resolve(&found, inside.to_str().unwrap(), None)
        .unwrap()
        .target;
    assert!(
        matches!(target, SessionTarget::Session(file) if &*file.folder == "-p" && file.beside.is_some())
    );
    let outside = home.path().join("copy.jsonl");
    std::fs::write(&outside, user("x", "/p", "hi")).unwrap();
    assert_eq!(id(resolve(&found, outside.to_str().unwrap(), None)), "copy");
    let missing = resolve(&found, "/nowhere/x.jsonl", None).unwrap_err();
    assert!(matches!(missing, StoreError::MissingFile { .. }));
}

#[test]
fn an_at_sign_means_the_latest_of_this_directory() {
    let home = home();
    let found = home.find();
    let say = |argument: &str, here: &str| resolve(&found, argument, Some(Path::new(here)));
    assert_eq!(id(say("@", "/p")), "abcd2222");
    assert_eq!(id(say("@1", "/p")), "abcd2222");
    assert_eq!(
        id(say("@2", "/p")),
        "ffff",
        "a worktree belongs to its project"
    );
    assert_eq!(id(say("@3", "/p")), "abcd1111");
    assert!(say("@", "/p").unwrap().note.is_none());
    assert_eq!(
        say("@4", "/p").unwrap_err().to_string(),
        "no `@4`: only 3 sessions found"
    );
    let below = say("@", "/p/src/deep").unwrap();
    assert!(below.note.as_ref().unwrap().contains("`/p`"));
    assert_eq!(id(Ok(below)), "abcd2222");
    let elsewhere = say("@", "/elsewhere").unwrap();
    assert!(elsewhere.note.is_some());
    assert_eq!(id(Ok(elsewhere)), "e");
    assert!(say("@0", "/p").is_err() && say("@x", "/p").is_err());
}

#[test]
fn only_the_very_directory_counts_where_nothing_else_is_wanted() {
    let home = home();
    let found = home.find();
    let here = |dir: &str| latest_in_directory(&found, Path::new(dir)).map(|file| file.id.as_str());
    assert_eq!(here("/p"), Some("abcd2222"));
    assert_eq!(here("/q"), Some("e"));
    assert_eq!(here("/p/src/deep"), None);
    assert_eq!(here("/elsewhere"), None);
}

#[test]
fn a_copy_in_the_background_is_not_the_session_of_a_directory() {
    let home = Home::new();
    let lines = |words: &str, kind: &str| {
        let line = |uuid: &str, kind: &str, text: &str| {
            format!(
                r#"{{"type":"user","uuid":"{uuid}","parentUuid":null,"cwd":"/p",{kind}"message":{{"role":"user","content":"{text}"}}}}"#
            ) + "\n"
        };
        let bg = r#""sessionKind":"bg","#;
        let more = line("b", bg, "more");
        let first = line("a", kind, words);
        (first.clone(), first + &more)
    };
    let long = "word ".repeat(20_000);
    for (words, kind) in [("hi", r#""sessionKind":"bg","#), (&*long, "")] {
        let (_, copy) = lines(words, kind);
        let (original, _) = lines(words, "");
        let original = home.write("-p/aaaa1111.jsonl", original);
        let copy = home.write("-p/bbbb2222.jsonl", copy);
        let at = |path: &Path, seconds: u64| {
            let time =
                std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000 + seconds);
            std::fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        at(&original, 0);
        at(&copy, 60);
        let found = home.find();
        let here = latest_in_directory(&found, Path::new("/p")).unwrap();
        assert_eq!(here.id, "aaaa1111");
        let latest = resolve(&found, "@", Some(Path::new("/p")));
        assert_eq!(id(latest), "aaaa1111");
        let elsewhere = resolve(&found, "@", Some(Path::new("/elsewhere")));
        assert_eq!(id(elsewhere), "aaaa1111");
    }
}

#[test]
fn a_windows_directory_is_found_whatever_the_case_of_its_drive() {
    let home = Home::new();
    home.write("c--Users-x/s1.jsonl", user("s1", "c:\\Users\\x", "hi"));
    let found = home.find();
    let resolved = resolve(&found, "@", Some(Path::new("C:\\Users\\x"))).unwrap();
    assert!(resolved.note.is_none());
}
