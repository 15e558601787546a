//! `chat` with servers that offer tools, and with folders that nobody trusts yet.
#![cfg(unix)]

use serde_json::{Value, json};
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, call};

use crate::chat::{command, err, fine};
use crate::home;

/// A server in a few lines of shell: it says that it was started, and echoes.
const SERVER: &str = r#"touch started
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) version=$(printf '%s' "$line" | sed -n 's/.*"protocolVersion":"\([^"]*\)".*/\1/p')
      echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"'$version'","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'tools/list'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"say","description":"says it","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}}' ;;
    *'tools/call'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"the server said it"}]}}' ;;
  esac
done
"#;

fn config() -> String {
    json!({"mcpServers": {"one": {"command": "sh", "args": ["-c", SERVER]}}}).to_string()
}

/// The folder the program runs in.
fn project(home: &Home) -> std::path::PathBuf {
    home.command().get_current_dir().unwrap().to_owned()
}

#[test]
fn the_tools_of_a_server_are_offered_called_and_written_down() {
    let home = home();
    let said = call("toolu_1", "mcp__one__say", json!({"text": "x"}));
    let model = Model::playing(vec![
        Answer::stopping(&[said], "tool_use"),
        Answer::text("done"),
    ])
    .unwrap();
    let args = [
        "--mcp-config",
        &config(),
        "--allowedTools",
        "mcp__one__say",
        "use it",
    ];
    let output = command(&home, &model, &args).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    fine(&model);
    let requests = model.requests();
    let tools = requests[0].body["tools"].as_array().unwrap().clone();
    let named = |tool: &Value| tool["name"] == "mcp__one__say";
    assert!(tools.iter().any(named), "{tools:?}");
    assert!(requests[1].body.to_string().contains("the server said it"));
}

#[test]
fn a_server_that_nobody_allowed_is_not_called() {
    let home = home();
    let said = call("toolu_1", "mcp__one__say", json!({"text": "x"}));
    let model = Model::playing(vec![
        Answer::stopping(&[said], "tool_use"),
        Answer::text("done"),
    ])
    .unwrap();
    let args = ["--mcp-config", &config(), "use it"];
    let output = command(&home, &model, &args).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let told = model.requests()[1].body.to_string();
    assert!(!told.contains("the server said it"), "{told}");
}

#[test]
fn nothing_of_a_folder_runs_before_it_is_trusted() {
    let home = home();
    let folder = project(&home);
    std::fs::write(folder.join(".mcp.json"), config()).unwrap();
    std::fs::create_dir_all(folder.join(".claude")).unwrap();
    let hook =
        |event: &str| json!({event: [{"hooks": [{"type": "command", "command": "touch hooked"}]}]});
    let settings = json!({
        "hooks": hook("UserPromptSubmit"),
        "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"},
        "permissions": {"allow": ["Bash"], "defaultMode": "acceptEdits"},
    });
    std::fs::write(folder.join(".claude/settings.json"), settings.to_string()).unwrap();
    let touch = || {
        call(
            "toolu_1",
            "Bash",
            json!({"command": "touch ran", "description": "x"}),
        )
    };
    let model = Model::playing(vec![
        Answer::stopping(&[touch()], "tool_use"),
        Answer::text("done"),
        Answer::text("again"),
    ])
    .unwrap();
    let output = command(&home, &model, &["do it"]).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains("not trusted"), "{}", err(&output));
    for made in ["started", "hooked", "ran"] {
        assert!(!folder.join(made).exists(), "{made}");
    }
    // A yes is kept outside of the folder, and then its settings act.
    let trusting = command(&home, &model, &["--trust", "again"])
        .output()
        .unwrap();
    let stays = std::fs::read_dir(&folder).unwrap().flatten();
    let names: Vec<_> = stays.map(|entry| entry.file_name()).collect();
    assert!(
        folder.join("hooked").exists(),
        "{names:?} {}",
        err(&trusting)
    );
    assert!(folder.join("started").exists(), "{names:?}");
}

#[test]
fn a_folder_that_nobody_trusts_chooses_no_model() {
    let home = home();
    let folder = project(&home);
    std::fs::create_dir_all(folder.join(".claude/commands")).unwrap();
    std::fs::create_dir_all(folder.join(".claude/agents")).unwrap();
    std::fs::write(
        folder.join(".claude/settings.json"),
        json!({"model": "claude-opus-4-1", "env": {"ANTHROPIC_MODEL": "claude-opus-4-1"}})
            .to_string(),
    )
    .unwrap();
    let front = "---\nname: theirs\ndescription: d\nmodel: claude-opus-4-1\n---\ndo it";
    std::fs::write(folder.join(".claude/commands/theirs.md"), front).unwrap();
    std::fs::write(folder.join(".claude/agents/theirs.md"), front).unwrap();
    let input = json!({"description": "d", "prompt": "p", "subagent_type": "theirs"});
    let model = Model::playing(vec![Answer::blocks(&[call("toolu_1", "Agent", input)])]).unwrap();
    let models = |from: usize| -> Vec<String> {
        let requests = model.requests();
        let names = requests[from..]
            .iter()
            .map(|request| &request.body["model"]);
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    let mut plain = home.command();
    let output = plain
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", model.url())
        .args(["chat", "-p", "/theirs"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let asked = models(0);
    assert_eq!(asked.len(), 3, "the session, its agent, the session");
    assert!(asked.iter().all(|name| !name.contains("opus")), "{asked:?}");
    // Once somebody trusts it, its command may.
    let output = command(&home, &model, &["--trust", "/theirs"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(models(3), ["claude-opus-4-1"]);
}

#[test]
fn a_list_of_trusted_folders_that_cannot_be_read_is_told_and_trusts_nobody() {
    let home = home();
    let folder = project(&home);
    std::fs::create_dir_all(folder.join(".claude")).unwrap();
    let settings = json!({"permissions": {"defaultMode": "acceptEdits"}}).to_string();
    std::fs::write(folder.join(".claude/settings.json"), settings).unwrap();
    let model = Model::playing(vec![]).unwrap();
    let output = command(&home, &model, &["--trust", "hi"]).output().unwrap();
    assert_eq!(err(&output), "");
    let files = walk(home.path());
    let list = files
        .iter()
        .find(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("\"folders\"")))
        .unwrap();
    std::fs::write(list, "torn{").unwrap();
    let output = command(&home, &model, &["hi"]).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let told = err(&output);
    assert!(
        told.contains("treating every folder as untrusted"),
        "{told}"
    );
    assert!(told.contains("permissions.defaultMode"), "{told}");
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => all.extend(walk(&entry.path())),
            false => all.push(entry.path()),
        }
    }
    all
}
