//! What is answered is what the commands print.

use serde_json::{Value, json};
use unspool_testkit::wait::wait_until;

use super::{Server, printed};
use crate::{ID, home, home_with_session};

#[test]
fn every_list_is_that_of_its_command() {
    let home = home_with_session();
    home.session(
        "/home/dev/y",
        "5e551000-0000-4000-8000-000000000002",
        "you: other\nclaude: yes",
    );
    let server = Server::start(&home, &[]);
    let pairs: &[(String, &[&str])] = &[
        ("/api/sessions".into(), &["ls", "--json"]),
        (
            "/api/sessions?project=x".into(),
            &["ls", "--json", "--project", "x"],
        ),
        (format!("/api/sessions/{ID}/tree"), &["tree", ID, "--json"]),
        (
            format!("/api/sessions/{ID}/context"),
            &["context", ID, "--json"],
        ),
        (
            "/api/search?q=thanks".into(),
            &["search", "thanks", "--json"],
        ),
        (
            "/api/search?q=o&in=reply&limit=2".into(),
            &["search", "o", "--in", "reply", "--limit", "2", "--json"],
        ),
        ("/api/usage?by=day".into(), &["usage", "day", "--json"]),
        (
            "/api/usage?by=project&split=model".into(),
            &["usage", "project", "--by", "model", "--json"],
        ),
    ];
    for (path, args) in pairs {
        let rows = printed(&home, args);
        assert!(!rows.is_empty(), "{args:?}");
        assert_eq!(server.rows(path), rows, "{path}");
    }
    let mut turns = server.rows(&format!("/api/sessions/{ID}/turns"));
    let first: Vec<Value> = turns
        .iter_mut()
        .map(|turn| turn.as_object_mut().unwrap().remove("first_item").unwrap())
        .collect();
    assert_eq!(turns, printed(&home, &["turns", ID, "--json"]));
    assert_eq!(first[0], 0);
    let detail = server.get(&format!("/api/sessions/{ID}")).json();
    assert_eq!(
        detail["agents_list"],
        json!(printed(&home, &["agents", ID, "--json"]))
    );
    assert_eq!(
        detail["files"],
        json!(printed(&home, &["files", ID, "--json"]))
    );
    assert_eq!(detail["resume"], format!("claude --resume {ID}"));
    let row = &printed(&home, &["ls", "--json", "--project", "x"])[0];
    for (name, value) in row.as_object().unwrap() {
        assert_eq!(&detail[name], value, "{name}");
    }
}

#[test]
fn a_session_can_be_read_in_any_ranges() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    for level in ["turns", "replies", "all"] {
        let list = format!("/api/sessions/{ID}/items?level={level}");
        let all = server.rows(&list);
        let total = server.get(&list);
        assert_eq!(total.header("unspool-total"), Some(&*all.len().to_string()));
        let mut pieces = Vec::new();
        for from in (0..all.len()).step_by(2) {
            pieces.extend(server.rows(&format!("{list}&from={from}&limit=2")));
        }
        assert_eq!(pieces, all, "{level}");
        assert_eq!(server.rows(&format!("{list}&last=2")), all[all.len() - 2..]);
        for (i, item) in all.iter().enumerate() {
            assert_eq!(item["i"], i);
            let one = server.get(&format!("/api/sessions/{ID}/items/{i}?level={level}"));
            assert_eq!(&one.json(), item);
        }
    }
    let turns = server.rows(&format!("/api/sessions/{ID}/items?level=turns"));
    assert_eq!(turns.len(), 2);
    assert_eq!(turns[0]["prompt"]["html"], "fix it");
    assert_eq!(turns[0]["reply"]["html"], "<p>done</p>\n");
    assert_eq!(turns[0]["tools"][0]["count"], 1);
    let second = turns[1]["first_item"].as_u64().unwrap();
    let at = server.rows(&format!("/api/sessions/{ID}/items?turn=2&limit=1"));
    assert_eq!(at[0]["i"], second);
    let turn = server.get(&format!("/api/sessions/{ID}/turns/2")).json();
    assert_eq!(turn["n"], 2);
    assert_eq!(turn["items"][0]["i"], second);
    assert_eq!(turn["items"][1]["text"], "thanks");
}

#[test]
fn a_call_shows_its_input_its_result_and_its_sub_agent() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let items = server.rows(&format!("/api/sessions/{ID}/items"));
    let call = |name: &str| items.iter().find(|item| item["name"] == name).unwrap();
    assert_eq!(call("Read")["result"]["text"], "fn main() {}");
    assert_eq!(call("Edit")["status"], "error");
    assert_eq!(call("Edit")["paint"], "err");
    let detail = server.get(&format!("/api/sessions/{ID}")).json();
    let agent = detail["agents_list"][0]["agent"].as_str().unwrap();
    let inner = server.rows(&format!("/api/sessions/{ID}/items?agent={agent}"));
    assert!(
        inner.iter().any(|item| item["text"] == "found"),
        "{inner:?}"
    );
    let unknown = server.get(&format!("/api/sessions/{ID}/items?agent=ffff"));
    assert_eq!(unknown.status, 404);
}

#[test]
fn what_is_added_to_a_session_is_there_when_it_is_asked_for_again() {
    use std::io::Write;
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let turns = format!("/api/sessions/{ID}/turns");
    assert_eq!(server.rows(&turns).len(), 2);
    let path = home
        .claude_dir()
        .join(format!("projects/-home-dev-x/{ID}.jsonl"));
    let line = json!({
        "type": "user", "uuid": "99999999-0000-4000-8000-000000000001", "sessionId": ID,
        "timestamp": "2026-01-05T11:59:00.000Z", "cwd": "/home/dev/x", "version": "2.1.0",
        "message": { "role": "user", "content": "and one more" },
    });
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    // First without its end, as a writer may be caught.
    let text = line.to_string();
    file.write_all(&text.as_bytes()[..40]).unwrap();
    assert_eq!(server.rows(&turns).len(), 2);
    file.write_all(&text.as_bytes()[40..]).unwrap();
    file.write_all(b"\n").unwrap();
    let now = server.rows(&turns);
    assert_eq!(now.len(), 3);
    assert_eq!(now[2]["prompt"], "and one more");
    assert_eq!(now[2]["uuid"], "99999999-0000-4000-8000-000000000001");
}

#[test]
fn text_is_found_where_it_stands() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let items = server.rows(&format!("/api/sessions/{ID}/items"));
    let find = |q: &str| server.rows(&format!("/api/sessions/{ID}/find?q={q}"));
    let at = |hit: &Value| &items[hit["i"].as_u64().unwrap() as usize];
    let hit = &find("thanks")[0];
    assert_eq!(at(hit)["text"], "thanks");
    assert_eq!(hit["turn"], 2);
    // A result stands at its call.
    let hit = &find("broken")[0];
    assert_eq!(at(hit)["name"], "Edit", "{hit}");
    assert!(find("nothing-like-this").is_empty());
    let empty = server.get(&format!("/api/sessions/{ID}/find?q="));
    assert_eq!(empty.status, 400);
}

#[test]
fn what_is_found_and_drawn_belongs_to_the_branch_that_is_read() {
    let home = home();
    home.session(
        "/home/dev/x",
        ID,
        "you: first parrot\n(name=b) claude: one\nyou: second parrot\nclaude: two\n\
         (parent=b) you: another parrot\nclaude: three parrot\nyou: and on\nclaude: four",
    );
    let server = Server::start(&home, &[]);
    let branches = server.get(&format!("/api/sessions/{ID}")).json()["branches"].clone();
    let old = branches.as_array().unwrap().iter();
    let old = old.filter(|branch| branch["live"] == false);
    let old: Vec<&str> = old.map(|branch| branch["uuid"].as_str().unwrap()).collect();
    assert_eq!(old.len(), 1, "{branches}");
    let branch = format!("branch={}", old[0]);
    let turns = |rows: Vec<Value>| -> Vec<i64> {
        rows.iter()
            .map(|row| row["turn"].as_i64().unwrap())
            .collect()
    };
    let found = |more: &str| server.rows(&format!("/api/sessions/{ID}/find?q=parrot&{more}"));
    assert_eq!(turns(found("")), [1, 2, 3, 3]);
    assert_eq!(turns(found(&branch)), [1, 2]);
    let answer = server.get(&format!("/api/sessions/{ID}/find?q=parrot&{branch}"));
    assert_eq!(answer.header("unspool-total"), Some("2"));
    // Where it is found is where the list of that branch has it.
    for hit in found(&branch) {
        let items = format!(
            "/api/sessions/{ID}/items?{branch}&from={}&limit=1",
            hit["i"]
        );
        let item = &server.rows(&items)[0];
        assert_eq!(item["turn"], hit["turn"], "{item}");
        assert!(item.to_string().contains("parrot"), "{item}");
    }
    let strip = |more: &str| server.rows(&format!("/api/sessions/{ID}/timeline?{more}"));
    assert_eq!(turns(strip("")), [1, 2, 3, 4]);
    assert_eq!(turns(strip(&branch)), [1, 2]);
    let none = format!("/api/sessions/{ID}/find?q=parrot&branch=nowhere");
    assert_eq!(server.get(&none).status, 404);
}

#[test]
fn the_end_of_a_large_session_is_there_before_all_of_it_is_read() {
    let home = home();
    let filler = "a long line of text that says little, again and again, ".repeat(1_500);
    let mut script = String::new();
    for n in 1..=220 {
        script.push_str(&format!("you: question {n}\nclaude: answer {n} {filler}\n"));
    }
    let path = home.session("/home/dev/x", ID, &script);
    assert!(path.metadata().unwrap().len() > 17 << 20);
    let server = Server::start(&home, &[]);
    let ask = |more: &str| server.get(&format!("/api/sessions/{ID}/items?last=5{more}"));
    let quick = ask("&quick=1&level=turns");
    assert_eq!(quick.header("unspool-partial"), Some("1"));
    let quick = quick.json();
    let quick = quick.as_array().unwrap();
    assert_eq!(quick.len(), 5);
    let prompts: Vec<&Value> = quick.iter().map(|row| &row["prompt"]["text"]).collect();
    assert_eq!(prompts[4], "question 220", "{quick:?}");
    // Places and turns are counted from the end, since nobody knows yet how many there are.
    let at = |name: &str| -> Vec<i64> {
        quick
            .iter()
            .map(|row| row[name].as_i64().unwrap())
            .collect()
    };
    assert_eq!(at("i"), [-5, -4, -3, -2, -1]);
    assert_eq!(at("turn"), [-5, -4, -3, -2, -1]);
    // All of it says the same, with places from the beginning.
    let whole = ask("&level=turns");
    assert_eq!(whole.header("unspool-partial"), None);
    let whole = whole.json();
    for (end, row) in quick.iter().zip(whole.as_array().unwrap()) {
        assert_eq!(end["prompt"], row["prompt"]);
        assert_eq!(end["uuid"], row["uuid"]);
        assert_eq!(
            end["turn"].as_i64().unwrap() + 221,
            row["turn"].as_i64().unwrap()
        );
    }
    // Who has it whole is not content with less.
    assert_eq!(ask("&quick=1&level=turns").header("unspool-partial"), None);
}

#[cfg(unix)]
#[test]
fn a_session_behind_a_link_is_listed_and_answered() {
    let home = home();
    let real = home.session("/home/dev/elsewhere", ID, "you: hello\nclaude: moved away");
    let outside = home.path().join("moved.jsonl");
    std::fs::rename(&real, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &real).unwrap();
    let server = Server::start(&home, &[]);
    let rows = server.rows("/api/sessions");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["id"], ID);
    assert_eq!(server.get(&format!("/api/sessions/{ID}")).status, 200);
    let items = server.rows(&format!("/api/sessions/{ID}/items"));
    assert!(format!("{items:?}").contains("moved away"));
    // Where it leads to nothing, there is nothing.
    std::fs::remove_file(&outside).unwrap();
    assert_eq!(server.get(&format!("/api/sessions/{ID}")).status, 404);
}

#[test]
fn a_trim_is_only_told_and_a_document_is_that_of_export() {
    let home = home_with_session();
    let before = everything(&home.claude_dir());
    let server = Server::start(&home, &[]);
    let trim = server.get(&format!("/api/sessions/{ID}/trim?preset=extreme"));
    assert_eq!(trim.status, 200);
    assert_eq!(trim.json()["dry_run"], true);
    assert!(trim.json()["calls"]["removed"].as_u64().unwrap() > 0);
    assert_eq!(
        server
            .get(&format!("/api/sessions/{ID}/trim?preset=none"))
            .status,
        400
    );
    for to in ["html", "md", "txt", "json", "jsonl", "messages"] {
        let answer = server.get(&format!("/api/sessions/{ID}/export?to={to}"));
        assert_eq!(answer.status, 200, "{to}");
        let named = answer.header("content-disposition").unwrap();
        assert!(named.starts_with("attachment; filename="), "{named}");
        let output = home.output(&["export", ID, "--to", to]);
        assert!(answer.body == output.stdout, "{to} differs");
    }
    assert_eq!(
        server
            .get(&format!("/api/sessions/{ID}/export?to=exe"))
            .status,
        400
    );
    assert_eq!(everything(&home.claude_dir()), before);
}

/// Every file below a folder, with its bytes.
fn everything(dir: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(everything(&path)),
            false => all.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn images_are_what_their_bytes_say_and_lines_are_as_they_stand() {
    let home = home();
    let image = |data: &str| json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } });
    let line = json!({
        "type": "user", "uuid": "99999999-0000-4000-8000-000000000001", "sessionId": ID,
        "timestamp": "2026-01-05T11:00:00.000Z", "cwd": "/home/dev/x", "version": "2.1.0",
        "message": { "role": "user", "content": [
            { "type": "text", "text": "look" },
            image("R0lGODlhAQABAAAAACw="),
            // A page that calls itself an image.
            image("PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+"),
        ] },
    });
    home.transcript("/home/dev/x", ID, format!("{line}\n"));
    let server = Server::start(&home, &[]);
    let items = server.rows(&format!("/api/sessions/{ID}/items"));
    let prompt = items.iter().find(|item| item["kind"] == "prompt").unwrap();
    let url = |k: usize| prompt["images"][k]["url"].as_str().unwrap().to_owned();
    let first = server.get(&url(0));
    assert_eq!(
        (first.status, first.header("content-type")),
        (200, Some("image/gif"))
    );
    assert!(first.body.starts_with(b"GIF89a"));
    assert_eq!(server.get(&url(1)).status, 404);
    assert_eq!(
        server.get(&format!("/api/sessions/{ID}/images/1/9")).status,
        404
    );
    let raw = server.get(&format!("/api/sessions/{ID}/raw/1"));
    assert_eq!(raw.json(), line);
    assert_eq!(server.get(&format!("/api/sessions/{ID}/raw/2")).status, 404);
}

#[test]
fn secrets_are_masked_everywhere() {
    let home = home();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    home.session(
        "/home/dev/x",
        ID,
        &format!("you: use {secret} please\nclaude: [Bash echo {secret}]\nresult: Bash echo {secret} {secret}\nclaude: {secret} it is"),
    );
    let server = Server::start(&home, &[]);
    let mut paths = vec!["/api/sessions".to_owned(), "/api/search?q=use".to_owned()];
    let parts = [
        "",
        "/turns",
        "/items",
        "/items?level=turns",
        "/items/1",
        "/raw/1",
        "/tree",
        "/find?q=use",
        "/context",
        "/export?to=html",
        "/export?to=jsonl",
        "/turns/1",
        "/trim",
    ];
    paths.extend(parts.map(|part| format!("/api/sessions/{ID}{part}")));
    for path in paths {
        let answer = server.get(&path);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{path}: {text}");
        assert!(!text.contains(&secret), "{path}");
    }
}

#[test]
fn a_taken_port_is_told_and_the_usual_one_gives_way() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let port = server.port.to_string();
    let output = home.output(&["serve", "--port", &port]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains(&format!("port {port} is already in use")),
        "{told}"
    );
    assert!(told.contains("--port"), "{told}");
    let output = home.output(&["serve", "--listen", "0.0.0.0"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(told.contains("--allow-remote"), "{told}");
}

#[test]
fn the_api_describes_itself() {
    let home = home_with_session();
    let server = Server::start(&home, &[]);
    let document = server.get("/api/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    for path in ["/api/sessions/{id}/items", "/api/events", "/api/hook"] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
    let fields = &document["components"]["schemas"]["item"]["properties"];
    assert!(fields["diff"].is_object());
    let health = server.get("/api/health").json();
    assert_eq!(
        (&health["ok"], &health["sessions"]),
        (&json!(true), &json!(1))
    );
}

#[test]
fn figures_follow_a_helper_that_writes_while_its_session_waits() {
    let home = home();
    home.session("/home/dev/x", ID, "you: a\n(usage=10/20/0/0/0) claude: b\n");
    let server = Server::start(&home, &[]);
    let turns = || server.rows(&format!("/api/sessions/{ID}/turns"));
    assert_eq!(turns()[0]["usage"]["output"], 20);
    for (output, all) in [(7, 27), (50, 70)] {
        let text = format!(
            "you: sum up\n(usage=100/{output}/0/0/0, id=msg_c{output}, isSidechain=true) claude: d\n"
        );
        home.agent("/home/dev/x", ID, "acompact-1", &text);
        wait_until("the compaction counts", || {
            turns()[0]["usage"]["output"] == all
        });
    }
}
