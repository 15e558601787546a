//! Sessions of all kinds: sub-agents and their calls, workflow runs, teams, sessions in the
//! background, forks and plans that were handed over.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use unspool_testkit::home::Home;
use unspool_testkit::script;
use unspool_testkit::sink::Sink;

use crate::{ID, home};

const CWD: &str = "/home/dev/x";
const OTHER: &str = "5e551000-0000-4000-8000-000000000002";
const THIRD: &str = "6f551000-0000-4000-8000-000000000003";

fn rows(home: &Home, args: &[&str]) -> Vec<Value> {
    let output = home.output(&[args, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn texts<'a>(rows: &'a [Value], field: &str) -> Vec<&'a str> {
    rows.iter()
        .map(|row| row[field].as_str().unwrap_or("-"))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// A machine with a recording of the client.
fn recorded(version: &str, scenario: &str) -> Home {
    let home = home();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/corpus");
    let from = corpus.join(version).join(scenario);
    copy(&from.join("projects"), &home.claude_dir().join("projects"));
    let rest = from.join("dot-claude");
    if rest.is_dir() {
        copy(&rest, &home.claude_dir());
    }
    home
}

/// Lines of a script with uuids and message ids of their own.
fn lines(script: &str, ids: &str) -> String {
    let text = String::from_utf8(script::jsonl(script)).unwrap();
    text.replace("00000000-0000-4000-8000", &format!("{ids}-0000-4000-8000"))
        .replace("msg_0", &format!("msg_{ids}_"))
}

#[test]
fn a_call_has_one_agent_and_what_the_client_did_for_itself_is_told_apart() {
    let home = recorded("2.1.29", "i07_agent_hooks");
    let agents = rows(&home, &["agents", "78f6a49e"]);
    let sent: Vec<_> = agents
        .iter()
        .filter(|row| row["kind"] == "sub_agent")
        .collect();
    assert_eq!(sent.len(), 1, "{agents:?}");
    assert_eq!(sent[0]["agent"], "aeecb07");
    assert_eq!(sent[0]["call"], "toolu_fake_main_3_1_c2046a");
    let helpers = agents
        .iter()
        .filter(|row| row["kind"] == "prompt_suggestion");
    assert_eq!(helpers.count(), 2);
    let listed = rows(&home, &["ls"]);
    assert_eq!(listed[0]["agents"], 1, "helpers are no sub-agents");
    let all = rows(&home, &["ls", "--all"]);
    let kinds: Vec<_> = all
        .iter()
        .filter(|row| !row["not_a_session"].is_null())
        .collect();
    assert_eq!(kinds.len(), 2);
    assert!(
        kinds
            .iter()
            .all(|row| row["agent_kind"] == "prompt_suggestion")
    );
}

#[test]
fn a_sub_agent_that_only_replied_counts_where_a_call_names_it() {
    let named = r#"raw: {"type":"user","uuid":"r1","parentUuid":"00000000-0000-4000-8000-000000000002","toolUseResult":{"status":"completed","agentId":"a1b2c3d"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001","content":"done"}]},"timestamp":"2026-01-05T11:00:00.000Z"}"#;
    for (named, agents, kind) in [(named, 1, "sub_agent"), ("", 0, "warm_up")] {
        let home = home();
        let script = format!("you: go\nclaude: [Task look]\n{named}\n");
        home.session(CWD, ID, &script);
        let reply = format!("(cwd={CWD}, session={ID}, agent=a1b2c3d)\nclaude: seen\n");
        home.write(
            format!(".claude/projects/-home-dev-x/{ID}/subagents/agent-a1b2c3d.jsonl"),
            lines(&reply, "11111111"),
        );
        assert_eq!(rows(&home, &["ls"])[0]["agents"], agents);
        let listed = rows(&home, &["agents", ID]);
        let own = listed.iter().find(|row| row["agent"] == "a1b2c3d").unwrap();
        assert_eq!(own["kind"], kind);
        let messages = |by: &str| rows(&home, &["info", ID])[0]["used_by"][by]["messages"].clone();
        assert_eq!(messages("agents"), agents);
        let in_sql = rows(&home, &["sql", "select agents from sessions"]);
        assert_eq!(in_sql[0]["agents"], agents);
        let all = rows(&home, &["ls", "--all"]);
        let own = all.iter().find(|row| row["id"] == "agent-a1b2c3d").unwrap();
        assert_eq!(own["agent_kind"], kind);
    }
}

fn with_workflow() -> Home {
    let home = home();
    let launched = r#"raw: {"type":"user","uuid":"r1","parentUuid":"00000000-0000-4000-8000-000000000002","sessionId":"5e551000-0000-4000-8000-000000000001","toolUseResult":{"status":"async_launched","taskId":"t9","taskType":"local_workflow","workflowName":"review","runId":"wf_1"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001","content":"Workflow launched in background. Task ID: t9"}]},"timestamp":"2026-01-05T11:00:00.000Z"}"#;
    let script =
        format!("you: go\nclaude: [Workflow review]\n{launched}\n(parent=r1) claude: it runs\n");
    home.session(CWD, ID, &script);
    let folder = format!(".claude/projects/-home-dev-x/{ID}");
    for (agent, words) in [("a1", "map the code"), ("a2", "verify it")] {
        let text = format!(
            "(cwd={CWD}, session={ID}, agent={agent})\nyou: {words}\nclaude: [Read a.rs]\nresult: Read a.rs x\nclaude: done\n"
        );
        let path = format!("{folder}/subagents/workflows/wf_1/agent-{agent}");
        home.write(
            format!("{path}.jsonl"),
            lines(&text, &format!("aaaaaa{agent}")),
        );
        home.write(
            format!("{path}.meta.json"),
            r#"{"agentType":"workflow-subagent"}"#,
        );
    }
    home.write(
        format!("{folder}/subagents/workflows/wf_1/journal.jsonl"),
        "{\"type\":\"started\",\"key\":\"k1\",\"agentId\":\"a1\"}\n{\"type\":\"started\",\"key\":\"k2\",\"agentId\":\"a2\"}\n{\"type\":\"result\",\"key\":\"k1\",\"agentId\":\"a1\",\"result\":\"ok\"}\n",
    );
    home
}

#[test]
fn a_workflow_run_is_shown_with_its_phases_labels_and_states() {
    let home = with_workflow();
    let agents = rows(&home, &["agents", ID]);
    assert_eq!(
        texts(&agents, "kind"),
        ["workflow_run", "workflow_agent", "workflow_agent"]
    );
    assert_eq!(texts(&agents, "call"), ["toolu_0001"; 3]);
    assert_eq!(texts(&agents, "state"), ["-", "done", "running"]);
    let folder = format!(".claude/projects/-home-dev-x/{ID}/workflows/wf_1.json");
    home.write(folder, r#"{"runId":"wf_1","taskId":"t9","workflowName":"review-branch","status":"completed","phases":[{"title":"Map"},{"title":"Verify"}],"workflowProgress":[{"type":"workflow_agent","agentId":"a1","label":"core","phaseTitle":"Map","state":"done"},{"type":"workflow_agent","agentId":"a2","label":"tests","phaseTitle":"Verify","state":"error"}]}"#);
    let agents = rows(&home, &["agents", ID]);
    assert_eq!(texts(&agents, "name"), ["review-branch", "core", "tests"]);
    assert_eq!(texts(&agents, "phase"), ["Map, Verify", "Map", "Verify"]);
    assert_eq!(
        texts(&agents, "status"),
        ["completed", "completed", "failed"]
    );
    assert_eq!(texts(&agents, "parent"), ["-", "wf_1", "wf_1"]);
    let shown = home.run(&["show", ID]);
    assert!(
        shown.contains("review-branch, 2 agents, completed"),
        "{shown}"
    );
    assert!(shown.contains("Verify · tests: error"), "{shown}");
    let open = home.run(&["show", ID, "--agents"]);
    assert!(
        open.contains("map the code") && open.contains("verify it"),
        "{open}"
    );
    let table = home.run(&["agents", ID]);
    assert!(table.contains("Map · core: map the code"), "{table}");
}

#[test]
fn side_questions_compactions_and_warm_ups_are_shown_as_what_they_are() {
    let home = home();
    home.session(CWD, ID, "you: go\nclaude: done\n");
    let folder = format!(".claude/projects/-home-dev-x/{ID}/subagents");
    let text =
        |more: &str, ids: &str| lines(&format!("(cwd={CWD}, session={ID}, agent=x)\n{more}"), ids);
    for (id, script, ids) in [
        (
            "aside_question-1a2b",
            "you: go\nyou: what is it?\nclaude: a thing\n",
            "11111111",
        ),
        (
            "acompact-1a2b",
            "you: go\nyou: summarise\nclaude: short\n",
            "22222222",
        ),
        ("a1b2c3d", "you: Warmup\nclaude: ok\n", "33333333"),
    ] {
        home.write(format!("{folder}/agent-{id}.jsonl"), text(script, ids));
    }
    let agents = rows(&home, &["agents", ID]);
    let mut kinds = texts(&agents, "kind");
    kinds.sort_unstable();
    assert_eq!(kinds, ["compaction", "side_question", "warm_up"]);
    let asked = agents
        .iter()
        .find(|row| row["kind"] == "side_question")
        .unwrap();
    assert_eq!(asked["description"], "what is it?");
    assert_eq!(rows(&home, &["ls"])[0]["agents"], 0);
}

/// A lead and a teammate, each with a session of its own.
fn with_team() -> Home {
    let home = home();
    home.session(
        CWD,
        ID,
        "(teamName=crew) you: build it\n(teamName=crew) claude: [Agent review]\n",
    );
    let told = r#"<teammate-message teammate_id="team-lead" summary="Review it">\nreview the parser\n</teammate-message>"#;
    let mate = format!(
        "(cwd={CWD}, session={OTHER}, teamName=crew, agentName=reviewer)\n(parent=00000000-0000-4000-8000-000000000001) you: {told}\nclaude: it is fine\n"
    );
    home.transcript(CWD, OTHER, lines(&mate, "bbbbbbbb"));
    home
}

#[test]
fn teammates_have_a_title_turns_and_cost_and_no_parent_is_missing() {
    let home = with_team();
    // Its first line follows one of the lead's.
    let path = home
        .claude_dir()
        .join(format!("projects/-home-dev-x/{OTHER}.jsonl"));
    let text = fs::read_to_string(&path).unwrap();
    let own = "\"parentUuid\":\"bbbbbbbb-0000-4000-8000-000000000001\"";
    let leads = "\"parentUuid\":\"00000000-0000-4000-8000-000000000001\"";
    fs::write(&path, text.replacen(own, leads, 1)).unwrap();
    let mate = &rows(&home, &["ls"])
        .into_iter()
        .find(|row| row["id"] == OTHER)
        .unwrap();
    assert_eq!(
        (&mate["turns"], &mate["title"]),
        (&1.into(), &"review the parser".into())
    );
    assert_eq!(
        (&mate["team"], &mate["teammate"]),
        (&"crew".into(), &"reviewer".into())
    );
    assert!(mate["cost_usd"].as_f64().is_some());
    let faults = |args: &[&str]| {
        let rows = rows(&home, args);
        texts(&rows, "kind").contains(&"missing_parent")
    };
    assert!(!faults(&["check", OTHER]) && !faults(&["check", "--all"]));
    let told = rows(&home, &["info", OTHER]);
    assert_eq!(told[0]["faults"].as_array().unwrap().len(), 0, "{told:?}");
    let team = rows(&home, &["agents", ID]);
    let mate = team.iter().find(|row| row["kind"] == "teammate").unwrap();
    assert_eq!(
        (&mate["name"], &mate["agent"]),
        (&"reviewer".into(), &OTHER.into())
    );
    assert_eq!((&mate["team"], &mate["turns"]), (&"crew".into(), &1.into()));
    // And the other way round.
    let lead = rows(&home, &["agents", OTHER]);
    assert_eq!(texts(&lead, "name"), ["team-lead"]);
}

#[test]
fn a_team_is_found_over_several_folders_and_late_in_a_session() {
    let home = home();
    let long = "word ".repeat(20_000);
    let lead = format!("you: {long}\nclaude: ok\n(teamName=crew) you: build it\n");
    home.session(CWD, ID, &lead);
    let told = r#"<teammate-message teammate_id="team-lead">\nreview it\n</teammate-message>"#;
    let mate = |session: &str, name: &str, parent: &str, cwd: &str| {
        format!(
            "(cwd={cwd}, session={session}, teamName=crew, agentName={name})\n(parent={parent}) you: {told}\nclaude: fine\n"
        )
    };
    // One works in a worktree and follows a line of the lead.
    let parent = "00000000-0000-4000-8000-000000000003";
    let worktree = "/home/dev/worktrees/one";
    let first = mate(OTHER, "reviewer", parent, worktree);
    home.transcript(
        worktree,
        OTHER,
        lines(&first, "bbbbbbbb").replace(
            "\"parentUuid\":\"bbbbbbbb-0000-4000-8000-000000000003\"",
            &format!("\"parentUuid\":\"{parent}\""),
        ),
    );
    let second = format!("(cwd={CWD}, session={THIRD}, teamName=other)\nyou: go\nclaude: done\n");
    home.transcript(CWD, THIRD, lines(&second, "cccccccc"));
    let names = |id: &str| {
        let team = rows(&home, &["agents", id]);
        texts(&team, "name")
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(ID), ["reviewer"]);
    assert_eq!(names(OTHER), ["team-lead"]);
    for args in [["check", OTHER], ["check", "--all"]] {
        let rows = rows(&home, &args);
        assert!(
            !texts(&rows, "kind").contains(&"missing_parent"),
            "{args:?}"
        );
    }
    let told = rows(&home, &["info", OTHER]);
    assert_eq!(told[0]["faults"].as_array().unwrap().len(), 0, "{told:?}");
}

#[test]
fn a_worker_that_only_the_daemon_lists_is_listed() {
    let home = home();
    home.session(CWD, ID, "you: go\nclaude: done\n");
    let roster = format!(
        r#"{{"workers":{{"5e551000":{{"sessionId":"{OTHER}","pid":1,"cwd":"{CWD}"}},"0badcafe":{{"pid":2,"cwd":"{CWD}"}}}}}}"#
    );
    home.write(".claude/daemon/roster.json", roster);
    home.write(
        ".claude/jobs/77777777/state.json",
        format!(r#"{{"state":"starting","intent":"try it","cwd":"{CWD}"}}"#),
    );
    let listed = rows(&home, &["ls"]);
    let mut ids = texts(&listed, "id");
    ids.sort_unstable();
    let mut wanted = ["0badcafe", ID, OTHER, "77777777"];
    wanted.sort_unstable();
    assert_eq!(ids, wanted);
    for id in ["0badcafe", OTHER] {
        let row = listed.iter().find(|row| row["id"] == id).unwrap();
        assert_eq!(
            (&row["project"], &row["process"]),
            (&CWD.into(), &"bg".into())
        );
        assert_eq!(row["background"]["listed"], true, "{row}");
    }
    let job = listed.iter().find(|row| row["id"] == "77777777").unwrap();
    assert_eq!(
        (&job["title"], &job["background"]["state"]),
        (&"try it".into(), &"starting".into())
    );
    assert_eq!(job["background"]["listed"], false);
}

#[test]
fn a_recorded_session_in_the_background_is_listed_with_its_status() {
    let home = recorded("2.1.327", "x07_background");
    let row = &rows(&home, &["ls"])[0];
    assert_eq!(
        (&row["process"], &row["status"]),
        (&"bg".into(), &"ended".into())
    );
    let job = &row["background"];
    assert_eq!(
        (&job["id"], &job["state"]),
        (&"97151185".into(), &"stopped".into())
    );
    assert_eq!(job["intent"], "do it in the background");
    assert_eq!(job["last"], "bg running\n\nbg finished");
    assert_eq!(job["listed"], false);
    let table = home.run(&["ls"]);
    assert!(table.contains("background stopped"), "{table}");
}

#[test]
fn a_session_in_the_background_is_listed_before_anything_is_written_and_works() {
    let home = home();
    home.session(CWD, ID, "you: go\nclaude: done\n");
    let state = format!(
        r#"{{"state":"working","intent":"try it","sessionId":"{OTHER}","cwd":"{CWD}","createdAt":"2026-01-05T11:59:00.000Z","updatedAt":"2026-01-05T11:59:30.000Z"}}"#
    );
    home.write(".claude/jobs/5e551000/state.json", state);
    home.write(
        ".claude/daemon/roster.json",
        r#"{"workers":{"5e551000":{"pid":1}}}"#,
    );
    let rows = rows(&home, &["ls"]);
    let job = rows.iter().find(|row| row["id"] == OTHER).unwrap();
    assert_eq!(
        (&job["title"], &job["project"]),
        (&"try it".into(), &CWD.into())
    );
    assert_eq!(job["background"]["listed"], true);
}

#[test]
fn a_copy_in_the_background_is_never_named_instead_of_its_original() {
    let home = home();
    home.session(CWD, ID, "you: fix the parser\nclaude: done\n");
    let copy = format!(
        "(cwd={CWD}, session={OTHER}, sessionKind=bg)\nyou: fix the parser\nclaude: done\nclaude: more\n"
    );
    home.transcript(CWD, OTHER, script::jsonl(&copy));
    let id = |args: &[&str]| rows(&home, args)[0]["session"].as_str().unwrap().to_owned();
    assert_eq!(id(&["info", "fix the parser"]), ID);
    assert_eq!(id(&["info", "5e551000"]), ID, "both begin so");
    assert_eq!(id(&["info", OTHER]), OTHER, "its own id still names it");
    let output = home
        .command()
        .args(["info", "@", "--json"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(ID), "{text}");
}

#[test]
fn a_copy_with_a_long_unmarked_history_is_not_named_either() {
    let home = home();
    let long = "word ".repeat(20_000);
    let history = format!("you: fix the parser\nclaude: {long}\n");
    home.session(CWD, ID, &history);
    let copy = format!(
        "(cwd={CWD}, session={OTHER})\n{history}(sessionKind=bg) you: go on\n(sessionKind=bg) claude: more\n"
    );
    home.transcript(CWD, OTHER, script::jsonl(&copy));
    for asked in ["fix the parser", "@"] {
        let info = rows(&home, &["info", asked]);
        assert_eq!(info[0]["session"], ID, "{asked}");
    }
}

#[test]
fn a_recorded_branch_knows_the_session_it_came_from() {
    let home = recorded("2.1.327", "x06_branch");
    let tree = rows(&home, &["tree", "1acba8bf"]);
    let origin = tree.iter().find(|row| row["kind"] == "origin").unwrap();
    assert_eq!(origin["uuid"], "255ea72f-11d0-4ef8-8651-875df0c6faee");
    let text = home.run(&["tree", "1acba8bf"]);
    assert!(text.contains("forked from 255ea72f"), "{text}");
}

#[test]
fn a_reply_asked_in_another_session_names_the_origin_of_a_fork() {
    let home = home();
    let fork = format!("you: go\n(requestSessionId={ID}) claude: done\nyou: on\nclaude: yes\n");
    home.session(CWD, ID, "you: go\nclaude: done\n");
    home.session(CWD, OTHER, &fork);
    let rows = rows(&home, &["ls"]);
    let fork = rows.iter().find(|row| row["id"] == OTHER).unwrap();
    assert_eq!(fork["forked_from"], ID);
    assert!(
        rows.iter()
            .any(|row| row["id"] == ID && row["forked_from"].is_null())
    );
}

#[test]
fn a_plan_that_was_handed_over_is_linked_in_both_trees() {
    let home = home();
    home.session(CWD, ID, "you: plan it\nclaude: here it is\n");
    let plan = format!(
        "(cwd={CWD}, session={THIRD})\nyou: Implement the following plan:\\n\\n# Do it\nclaude: done\n"
    );
    let plan = lines(&plan, "cccccccc").replacen(
        "\"parentUuid\":null",
        "\"parentUuid\":\"00000000-0000-4000-8000-000000000002\"",
        1,
    );
    home.transcript(CWD, THIRD, plan);
    let tree = rows(&home, &["tree", THIRD]);
    let before = tree.iter().find(|row| row["kind"] == "before").unwrap();
    assert_eq!(before["uuid"], ID);
    assert_eq!(tree[0]["parent"], before["id"]);
    let tree = rows(&home, &["tree", ID]);
    let after = tree.iter().find(|row| row["kind"] == "after").unwrap();
    assert_eq!(after["uuid"], THIRD);
    let text = home.run(&["tree", THIRD]);
    assert!(text.contains("continued from 5e551000"), "{text}");
}

/// Each span with the trace it stands in; no span stands in two.
fn traces(home: &Home) -> HashMap<String, String> {
    let spans = rows(home, &["send", "--all", "--to", "otlp", "--dry-run"]);
    let mut seen: HashMap<String, String> = HashMap::new();
    for span in &spans {
        let (id, trace) = (
            span["span"].as_str().unwrap(),
            span["trace"].as_str().unwrap(),
        );
        let known = seen
            .entry(id.to_owned())
            .or_insert_with(|| trace.to_owned());
        assert_eq!(known, trace, "{} stands in two traces", span["name"]);
    }
    let ids: HashSet<&str> = spans
        .iter()
        .filter_map(|span| span["span"].as_str())
        .collect();
    let parents = spans.iter().filter_map(|span| span["parent"].as_str());
    parents.for_each(|parent| assert!(ids.contains(parent), "a parent is gone"));
    seen
}

/// A session, and a fork that begins with the end of its turn.
fn with_late_fork() -> Home {
    let home = home();
    let whole = "(id=m1) claude: one [Read a]\nresult: Read a x\n(id=m2) claude: two [Read b]\nresult: Read b y\n(id=m3) claude: three\n";
    home.session(CWD, ID, &format!("you: go\n{whole}you: on\nclaude: yes\n"));
    // The fork holds the end of the turn, and went on.
    let text = fs::read_to_string(
        home.claude_dir()
            .join(format!("projects/-home-dev-x/{ID}.jsonl")),
    )
    .unwrap();
    let kept: Vec<&str> = text.lines().skip(4).collect();
    let prompt = lines(
        &format!("(cwd={CWD}, session={OTHER})\nyou: go\n"),
        "dddddddd",
    );
    let fork = prompt + &kept[..3].join("\n").replace(ID, OTHER) + "\n";
    let more = lines(
        &format!("(cwd={CWD}, session={OTHER})\n(id=m9) claude: new\nyou: bye\nclaude: bye\n"),
        "eeeeeeee",
    );
    home.transcript(CWD, OTHER, fork + &more);
    home
}

#[test]
fn a_span_stands_in_one_trace_though_a_fork_begins_later() {
    let spans = traces(&with_late_fork());
    assert!(spans.len() > 8);
}

#[test]
fn a_span_stands_in_one_trace_in_whatever_runs_it_is_sent() {
    for runs in [
        &[OTHER, "--all"][..],
        &[ID, "--all"],
        // As a hook sends: one session in each run.
        &[OTHER, ID, OTHER],
    ] {
        let sink = Sink::otlp();
        let mut home = with_late_fork();
        home.set("OTEL_EXPORTER_OTLP_ENDPOINT", &sink.url());
        for run in runs {
            let output = home.output(&["send", run, "--to", "otlp"]);
            assert!(output.status.success(), "{runs:?} {run}: {output:?}");
        }
        let mut traces: HashMap<String, HashSet<String>> = HashMap::new();
        for span in sink.spans() {
            traces.entry(span.id).or_default().insert(span.trace);
        }
        assert!(traces.len() > 8, "{runs:?}: {}", traces.len());
        let shared = traces.values().filter(|traces| traces.len() > 1).count();
        assert_eq!(shared, 0, "{runs:?}");
        assert_eq!(sink.faults(), [""; 0], "{runs:?}");
    }
}

#[test]
fn sub_agents_that_repeat_each_other_are_told_once() {
    let home = home();
    home.session(CWD, ID, "you: go\nclaude: [Task one]\nresult: Task one x\nclaude: ok\nyou: on\nclaude: [Task two]\nresult: Task two y\nclaude: ok\n");
    let told = "(id=msg_a) claude: first\n(id=msg_b) claude: second\n";
    home.agent(CWD, ID, "a0000001", &format!("you: one\n{told}"));
    home.agent(
        CWD,
        ID,
        "a0000002",
        &format!("you: two\n{told}(id=msg_c) claude: third\n"),
    );
    traces(&home);
}

#[test]
fn sub_agents_whose_session_is_gone_are_named() {
    let home = home();
    home.session(CWD, ID, "you: go\nclaude: done\n");
    home.agent(CWD, OTHER, "a0000009", "you: look\nclaude: seen\n");
    let output = home.output(&["send", "--all", "--to", "otlp", "--dry-run"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("agent-a0000009"), "{told}");
}

#[test]
fn many_sub_agents_whose_sessions_are_gone_are_counted_and_the_first_are_named() {
    let home = home();
    home.session(
        CWD,
        ID,
        "you: go\nclaude: [Task one]\nresult: Task one x\nclaude: done\n",
    );
    home.agent(CWD, ID, "a7777777", "you: one\nclaude: seen\n");
    for n in 0..23 {
        let name = format!("a00000{n:02}");
        home.agent(CWD, OTHER, &name, "you: look\nclaude: seen\n");
    }
    let told = |args: &[&str]| {
        let output = home.output(&[&["send", "--to", "otlp", "--dry-run"], args].concat());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let all = told(&["--all"]);
    assert!(
        all.contains("23 sub-agents whose sessions were deleted (agent-a00000"),
        "{all}"
    );
    assert!(all.contains(", 3 more)"), "{all}");
    assert!(!all.contains("a7777777"), "{all}");
    // Who names a session does not ask about others.
    assert!(!told(&[ID]).contains("sub-agent"));
}
