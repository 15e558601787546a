//! Tokens in names: of directories, branches, models, slugs, tools, agents, MCP servers, titles
//! and files. No command prints one, and nothing that we keep holds one.

use std::path::Path;

use serde_json::Value;
use unspool_testkit::home::Home;
use unspool_testkit::validator;

use crate::{ID, home};

/// A token that no folder name changes, put together here so that nobody finds one in this file.
pub fn token() -> String {
    let body = ["x7Qb9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0iKq8s"].concat();
    format!("sk-ant-oat01-{body}{}", body.replace('Q', "w"))
}

/// A machine with one session in whose names a token stands, and a sub-agent of it.
pub fn named() -> Home {
    let home = home();
    let token = token();
    let folder = format!(".claude/projects/-home-dev-{token}");
    let common = |uuid: &str, parent: &str| {
        format!(
            r#""uuid":"{uuid}","parentUuid":{parent},"sessionId":"{ID}","timestamp":"2026-01-05T10:00:00.000Z","cwd":"/home/dev/{token}","gitBranch":"fix/{token}","version":"2.1.45","slug":"{token}-otter","entrypoint":"sdk-{token}","userType":"external","isSidechain":false"#
        )
    };
    let usage = r#""usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":0,"cache_creation_input_tokens":0}"#;
    let lines = [
        format!(
            r#"{{{},"type":"user","message":{{"role":"user","content":"walrus please look"}}}}"#,
            common("u1", "null")
        ),
        format!(
            r#"{{{},"type":"assistant","requestId":"req_1","message":{{"id":"msg_1","type":"message","role":"assistant","model":"claude-{token}","stop_reason":"tool_use",{usage},"content":[{{"type":"tool_use","id":"toolu_1","name":"mcp__{token}__look","input":{{"q":"walrus"}}}},{{"type":"tool_use","id":"toolu_2","name":"Read","input":{{"file_path":"/home/dev/{token}/a.rs"}}}},{{"type":"tool_use","id":"toolu_3","name":"Task","input":{{"description":"look","prompt":"look","subagent_type":"agent-{token}"}}}}]}}}}"#,
            common("u2", "\"u1\"")
        ),
        format!(
            r#"{{{},"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":"walrus"}},{{"type":"tool_result","tool_use_id":"toolu_2","content":"fn a"}},{{"type":"tool_result","tool_use_id":"toolu_3","content":"done"}}]}}}}"#,
            common("u3", "\"u2\"")
        ),
        format!(
            r#"{{{},"type":"assistant","requestId":"req_2","message":{{"id":"msg_2","type":"message","role":"assistant","model":"claude-{token}","stop_reason":"end_turn",{usage},"content":[{{"type":"text","text":"walrus done"}}]}}}}"#,
            common("u4", "\"u3\"")
        ),
        format!(
            r#"{{{},"type":"system","subtype":"sub-{token}","content":"walrus","level":"info"}}"#,
            common("u5", "\"u4\"")
        ),
        format!(r#"{{"type":"custom-title","customTitle":"title {token}","sessionId":"{ID}"}}"#),
        format!(r#"{{"type":"odd-{token}","sessionId":"{ID}"}}"#),
        format!(r#"{{"type":"mode","mode":"mode-{token}","sessionId":"{ID}"}}"#),
    ];
    home.write(format!("{folder}/{ID}.jsonl"), lines.join("\n") + "\n");
    // A block that no API would take, so not in the session itself.
    let odd = format!(
        r#"{{{},"type":"assistant","requestId":"req_9","message":{{"id":"msg_9","type":"message","role":"assistant","model":"m","stop_reason":"end_turn",{usage},"content":[{{"type":"block-{token}","x":1}}]}}}}"#,
        common("u2", "\"u1\"")
    );
    home.write(
        format!("{folder}/{ID}/subagents/agent-a0000001.jsonl"),
        format!("{}\n{odd}\n", lines[0]).replace(
            "\"isSidechain\":false",
            "\"isSidechain\":true,\"agentId\":\"a0000001\"",
        ),
    );
    home.write(
        format!("{folder}/{ID}/subagents/agent-a0000001.meta.json"),
        format!(r#"{{"agentType":"agent-{token}","description":"look at {token}"}}"#),
    );
    home
}

/// Every command that names something of a session.
const COMMANDS: &[&[&str]] = &[
    &["ls"],
    &["ls", "--agents", "--all"],
    &["show", ID],
    &["show", ID, "--tools", "full", "--thinking", "--agents"],
    &["show", ID, "--raw"],
    &["show", ID, "--raw", "--line", "2"],
    &["turns", ID],
    &["turns", ID, "--calls"],
    &["info", ID],
    &["messages", ID],
    &["export", ID, "--to", "html"],
    &["export", ID, "--to", "md"],
    &["export", ID, "--to", "txt"],
    &["export", ID, "--to", "json"],
    &["export", ID, "--to", "jsonl"],
    &["export", ID, "--to", "messages"],
    &["tree", ID],
    &["agents", ID],
    &["files", ID],
    &["context", ID],
    &["check", ID],
    &["check", "--all"],
    &["search", "walrus"],
    &["search", "walrus", "--ranked"],
    &["index", "build"],
    &["usage"],
    &["usage", "--by", "project"],
    &["usage", "--by", "model"],
    &["usage", "--by", "session"],
    &["sql", "select * from sessions"],
    &["sql", "select * from calls"],
    &["sql", "select * from messages"],
    &["sql", "select * from files"],
    &["sql", "select * from turns"],
    &["sql", "select * from usage"],
    &["status"],
    &["scan", ID],
    &["scan", "--all"],
    &["redact", ID, "--dry-run"],
    &["send", ID, "--to", "otlp", "--dry-run"],
];

#[test]
fn no_command_prints_a_token_of_a_name_and_nothing_we_keep_holds_one() {
    let home = named();
    let token = token();
    let mut shown = 0;
    for args in COMMANDS {
        for json in [false, true] {
            let mut args = args.to_vec();
            args.extend(json.then_some("--json"));
            let output = home.output(&args);
            // 1 says that something was found; all above is a mistake of this list.
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1)), "{args:?}: {output:?}");
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(!text.contains(&token[..30]), "{args:?}: {text}");
            shown += usize::from(text.contains("[REDACTED:"));
        }
    }
    assert!(shown >= 20, "only {shown} commands name anything");
    let mut files = Vec::new();
    everything(home.path(), &mut files);
    let claude = home.claude_dir();
    let own: Vec<_> = files
        .iter()
        .filter(|path| !path.starts_with(&claude))
        .collect();
    assert!(!own.is_empty());
    for path in own {
        let bytes = std::fs::read(path).unwrap();
        let holds = bytes
            .windows(30)
            .any(|part| part == &token.as_bytes()[..30]);
        assert!(!holds, "{} holds it", path.display());
    }
}

#[test]
fn redacting_takes_tokens_out_of_names_in_the_file() {
    let home = named();
    let token = token();
    let path = format!(".claude/projects/-home-dev-{token}/{ID}.jsonl");
    // An hour older than the clock of this machine, so that it is not in use.
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_767_600_000);
    let mut options = std::fs::File::options();
    let file = options.append(true).open(home.path().join(&path)).unwrap();
    file.set_modified(then).unwrap();
    drop(file);
    let output = home.output(&["redact", ID, "--in-place"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(home.path().join(path)).unwrap();
    assert!(!text.contains(&token), "{told}\n{text}");
    assert!(text.contains("\"cwd\":\"/home/dev/[REDACTED:"), "{text}");
    assert!(text.contains("\"gitBranch\":\"fix/[REDACTED:"), "{text}");
    for kind in [
        "\"type\":\"odd-",
        "\"subtype\":\"sub-",
        "\"mode\":\"mode-",
        "\"entrypoint\":\"sdk-",
    ] {
        assert!(text.contains(&format!("{kind}[REDACTED:")), "{text}");
    }
    // The API would take it again, with all calls.
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let messages: Vec<Value> = lines.map(|line| line["message"].clone()).collect();
    let messages: Vec<&Value> = messages.iter().filter(|one| one.is_object()).collect();
    let history = serde_json::to_string(&messages).unwrap();
    assert!(history.contains("\"name\":\"mcp__REDACTED_"), "{history}");
    let refusals = validator::refusals_with_prompt(&history, "go on");
    assert_eq!(refusals, Vec::<String>::new(), "{history}");
    let checked = home.output(&["check", ID]);
    assert!(checked.status.success(), "{checked:?}");
    let exported = home.output(&["export", ID, "--to", "messages"]);
    let exported = String::from_utf8_lossy(&exported.stdout).into_owned();
    assert!(exported.contains("mcp__REDACTED_"), "{exported}");
}

fn everything(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => everything(&path, files),
            false => files.push(path),
        }
    }
}
