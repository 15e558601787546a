//! `/commands`, `!commands` and `#memory`.

use super::*;

#[test]
fn commands_are_completed_and_answered_without_the_model() {
    let mut talk = Talk::with(vec![]);
    talk.press("/cos");
    talk.shows("show the cost of this session");
    talk.press("\t\r");
    talk.shows("so far");
    talk.say("/nonsense");
    talk.shows("unknown command /nonsense");
    talk.say("/exit");
    assert_eq!(talk.terminal.ends(), 0);
    assert_eq!(talk.model.requests().len(), 0);
}

#[test]
fn help_names_every_command() {
    let (home, model) = (home(), Model::playing(vec![]).unwrap());
    let terminal = Terminal::of(&program(&home, &model), 60, 100);
    let mut talk = Talk {
        home,
        model,
        terminal,
    };
    talk.shows("asks before edits");
    talk.say("/help");
    let screen = talk.shows("/exit");
    for name in [
        "clear",
        "compact",
        "resume",
        "rewind",
        "model",
        "cost",
        "context",
        "permissions",
        "agents",
        "mcp",
        "memory",
        "export",
        "help",
    ] {
        assert!(screen.contains(&format!("/{name} ")), "{name}\n{screen}");
    }
    talk.leaves();
}

#[test]
fn a_summary_takes_the_place_of_what_was_said() {
    let mut talk = Talk::with(vec![
        Answer::text("the long answer"),
        Answer::text("in short: it was long"),
        Answer::text("after that"),
    ]);
    talk.say("a question");
    talk.answers("the long answer");
    talk.say("/compact what matters");
    talk.answers("was compacted");
    let asked = talk.model.requests()[1].body.to_string();
    assert!(asked.contains("what matters"), "{asked}");
    talk.say("go on");
    talk.answers("after that");
    let sent = talk.sent().to_string();
    assert!(sent.contains("in short: it was long"), "{sent}");
    talk.leaves();
}

#[test]
fn the_model_is_chosen_from_a_list_or_by_name() {
    let mut talk = Talk::with(vec![Answer::text("one"), Answer::text("two")]);
    talk.say("/model");
    talk.shows("Which model? (current: claude-sonnet-4-5)");
    talk.press("haiku\r");
    talk.shows("claude-haiku");
    talk.say("hi");
    talk.answers("one");
    let model = |talk: &Talk| talk.model.requests().last().unwrap().body["model"].clone();
    assert!(model(&talk).as_str().unwrap().contains("haiku"));
    talk.say("/model claude-opus-4-1");
    talk.shows("claude-opus-4-1");
    talk.say("hi");
    talk.answers("two");
    assert_eq!(model(&talk), "claude-opus-4-1");
    talk.leaves();
}

#[test]
fn cost_context_and_cache_are_told() {
    let usage = json!({"input_tokens": 1000, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 99_000, "output_tokens": 1});
    let mut events = unspool_testkit::model::events(
        &[unspool_testkit::model::text("an answer")],
        "end_turn",
        1000,
    );
    events[0]["message"]["usage"] = usage;
    let mut talk = Talk::with(vec![Answer::events(&events)]);
    talk.say("hi");
    talk.answers("an answer");
    let screen = talk.shows("context 50 %");
    for part in ["claude-sonnet-4-5", "100.0k", "$0.03", "cache 99 %"] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    talk.say("/cost");
    let screen = talk.shows("so far");
    assert!(
        screen.contains("claude-sonnet-4-5") && screen.contains("cache read"),
        "{screen}"
    );
    talk.say("/context");
    talk.shows("of 200.0k tokens");
    talk.leaves();
}

#[test]
fn agents_servers_and_memory_are_listed() {
    let home = home();
    home.write(
        ".claude/agents/digger.md",
        "---\nname: digger\ndescription: digs deep\n---\ndig",
    );
    home.write("project/CLAUDE.md", "use tabs\n");
    let mut talk = Talk::at(home, Model::playing(vec![]).unwrap(), &[]);
    talk.say("/agents");
    let screen = talk.shows("digger");
    assert!(screen.contains("digs deep"), "{screen}");
    talk.say("/mcp");
    talk.shows("no MCP servers");
    talk.say("/memory");
    talk.shows("CLAUDE.md (1 line)");
    talk.leaves();
}

#[test]
fn what_is_to_be_remembered_is_in_the_memory_of_the_next_session() {
    let mut talk = Talk::with(vec![Answer::text("as you like")]);
    talk.say("#use tabs, never spaces");
    talk.shows("added to");
    let memory = std::fs::read_to_string(talk.file("CLAUDE.md")).unwrap();
    assert!(memory.contains("use tabs, never spaces"), "{memory}");
    talk.press("/clear\r");
    talk.say("hi");
    talk.answers("as you like");
    let system = talk.model.requests()[0].body["system"].to_string();
    assert!(system.contains("use tabs, never spaces"), "{system}");
    talk.leaves();
}

#[test]
fn a_command_of_the_person_runs_unasked_and_the_model_hears_of_it() {
    let mut talk = Talk::with(vec![Answer::text("I see")]);
    talk.say("!echo one; echo two >&2");
    let screen = talk.shows("two");
    assert!(screen.contains("one"), "{screen}");
    talk.rests();
    talk.say("what was that");
    talk.answers("I see");
    let sent = talk.sent().to_string();
    assert!(sent.contains("echo one; echo two"), "{sent}");
    talk.leaves();
}

#[test]
fn what_is_said_while_a_command_of_the_person_runs_waits_for_its_end() {
    let mut talk = Talk::with(vec![Answer::text("I see")]);
    talk.say("!echo begun; until test -e go; do sleep 0.05; done; echo over");
    talk.shows("running your command");
    talk.say("what was that");
    talk.shows("next: what was that");
    assert_eq!(talk.model.requests().len(), 0);
    std::fs::write(talk.file("go"), "").unwrap();
    talk.answers("I see");
    let sent = talk.sent().to_string();
    assert!(
        sent.contains("over") && sent.contains("what was that"),
        "{sent}"
    );
    talk.leaves();
}

#[test]
fn a_session_is_written_to_a_file() {
    let mut talk = Talk::with(vec![Answer::text("an answer")]);
    talk.say("hi");
    talk.answers("an answer");
    talk.say("/export md");
    talk.shows("written to");
    let files = std::fs::read_dir(talk.home.work_dir()).unwrap().flatten();
    let file = files
        .map(|file| file.path())
        .find(|path| path.extension().is_some_and(|end| end == "md"));
    let text = std::fs::read_to_string(file.unwrap()).unwrap();
    assert!(text.contains("an answer"), "{text}");
    talk.leaves();
}

#[test]
fn commands_and_skills_that_somebody_wrote_are_offered_and_expanded() {
    let home = home();
    home.write(
        "project/.claude/commands/greet.md",
        "---\ndescription: greets somebody\n---\nSay hello to $ARGUMENTS, loudly.",
    );
    home.write(
        ".claude/skills/cook/SKILL.md",
        "---\nname: cook\ndescription: cooks something\n---\nHeat the pan first.",
    );
    let model = Model::playing(vec![Answer::text("HELLO BOB"), Answer::text("sizzle")]).unwrap();
    let mut talk = Talk::at(home, model, &[]);
    talk.press("/gre");
    talk.shows("greets somebody");
    talk.press("\t Bob\r");
    talk.answers("HELLO BOB");
    let sent = talk.sent().to_string();
    assert!(sent.contains("Say hello to Bob, loudly."), "{sent}");
    talk.say("/cook eggs");
    talk.answers("sizzle");
    let sent = talk.sent().to_string();
    assert!(sent.contains("Heat the pan first."), "{sent}");
    talk.leaves();
}

#[test]
fn rules_are_listed_with_their_place_added_and_taken_out() {
    let home = home();
    home.write(
        ".claude/settings.json",
        "{\n  \"permissions\": {\n    \"deny\": [\"Bash(rm:*)\"]\n  }\n}\n",
    );
    let touch = |id: &str, name: &str| Answer::blocks(&[bash(id, &format!("touch {name}"))]);
    let model = Model::playing(vec![
        touch("toolu_1", "one"),
        Answer::text("made one"),
        touch("toolu_2", "two"),
        Answer::text("not two"),
    ])
    .unwrap();
    let mut talk = Talk::at(home, model, &[]);
    talk.say("/permissions");
    let screen = talk.shows("mode: default");
    assert!(
        screen.contains("deny") && screen.contains("Bash(rm:*)"),
        "{screen}"
    );
    assert!(screen.contains("settings.json:3"), "{screen}");
    talk.say("/permissions allow Bash(touch:*)");
    talk.shows("added to");
    let local = talk.file(".claude/settings.local.json");
    assert!(
        std::fs::read_to_string(&local)
            .unwrap()
            .contains("Bash(touch:*)")
    );
    talk.say("make it");
    talk.answers("made one");
    talk.say("/permissions remove");
    talk.shows("Remove which rule?");
    talk.press("touch");
    talk.shows("❯ allow Bash(touch:*)");
    talk.press("\r");
    talk.shows("removed from");
    assert!(!std::fs::read_to_string(&local).unwrap().contains("touch"));
    talk.say("/permissions deny Bash(touch:*) in user");
    talk.terminal.until("the rule of the user", |screen| {
        screen.matches("added to").count() == 2
    });
    let user = std::fs::read_to_string(talk.home.claude_dir().join("settings.json")).unwrap();
    assert!(
        user.contains("Bash(rm:*)") && user.contains("Bash(touch:*)"),
        "{user}"
    );
    talk.say("again");
    talk.answers("not two");
    assert!(!talk.file("two").exists());
    talk.say("/permissions allow Bash(");
    talk.shows("is not a valid rule");
    talk.leaves();
}
