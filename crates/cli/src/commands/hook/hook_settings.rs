//! Our hooks in a settings file of the client: found, put in, taken out.
//!
//! Ours are known by their command alone, for clients drop every key that they do not know. All
//! here is text in, text out.

use serde_json::{Value, json};
use unspool_model::hook_events as events;

use super::hook_command;
use unspool_model::jsonc::{self, JsoncError, JsoncLayout, JsoncNode};

/// The client waits this long for a hook at most, in seconds. Ours needs some milliseconds; but
/// without a number of its own, `SessionEnd` is cut off after little more than a second.
const TIMEOUT: u64 = 10;

/// What a settings file says that matters to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookSettings {
    /// The events for which our hook is there, in order.
    pub events: Vec<String>,
    /// Our commands, each once.
    pub commands: Vec<String>,
    /// Commands of others that send to Langfuse as well.
    pub exporters: Vec<String>,
    /// Whether hooks are switched off altogether.
    pub disabled: bool,
    /// Variables that the client gives to hooks.
    pub env: Vec<(String, String)>,
}

/// What putting our hook in did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledHooks {
    /// The new text.
    pub text: String,
    /// Events for which it was added.
    pub added: Vec<String>,
    /// Events for which it had another command.
    pub updated: Vec<String>,
}

/// Looks at a settings file.
pub fn look(text: &str) -> Result<HookSettings, JsoncError> {
    let mut found = HookSettings::default();
    if text.trim().is_empty() {
        return Ok(found);
    }
    let root = jsonc::parse(text)?;
    for one in all(&root) {
        if hook_command::is_ours(one.command) {
            if !found.events.iter().any(|event| event == one.event) {
                found.events.push(one.event.to_owned());
            }
            once(&mut found.commands, one.command);
        } else if one.command.to_ascii_lowercase().contains("langfuse") {
            once(&mut found.exporters, one.command);
        }
    }
    found.disabled = root.get("disableAllHooks").is_some_and(JsoncNode::is_true);
    let env = root
        .get("env")
        .and_then(JsoncNode::members)
        .unwrap_or_default();
    for member in env {
        if let Some(value) = member.node.text() {
            found.env.push((member.key.clone(), value.to_owned()));
        }
    }
    Ok(found)
}

fn once(list: &mut Vec<String>, text: &str) {
    if !list.iter().any(|known| known == text) {
        list.push(text.to_owned());
    }
}

/// Puts our hook in for these events, where it is not in yet.
pub fn install(text: &str, events: &[&str], command: &str) -> Result<InstalledHooks, JsoncError> {
    let blank = text.trim().is_empty();
    let mut done = InstalledHooks {
        text: if blank { "{}\n" } else { text }.to_owned(),
        ..InstalledHooks::default()
    };
    for event in events {
        let root = jsonc::parse(&done.text)?;
        if let Some(ours) =
            all(&root).find(|one| one.event == *event && hook_command::is_ours(one.command))
        {
            if ours.command != command {
                done.text = jsonc::replace(&done.text, ours.node, &command.into());
                done.updated.push((*event).to_owned());
            }
            continue;
        }
        done.text = put(&done.text, &root, event, command)?;
        done.added.push((*event).to_owned());
    }
    // Whatever happens to the text in between, what is written can be read.
    jsonc::parse(&done.text)?;
    Ok(done)
}

fn put(text: &str, root: &JsoncNode, event: &str, command: &str) -> Result<String, JsoncError> {
    let layout = JsoncLayout::of(text, root);
    let wrong = |node: &JsoncNode, why| Err(JsoncError::at(text, node.place.start, why));
    if root.members().is_none() {
        return wrong(root, "settings must be an object");
    }
    let group = group(event, command);
    let Some(hooks) = root.get("hooks") else {
        let value = json!({ event: [group] });
        return Ok(jsonc::insert(text, root, &layout, Some("hooks"), &value));
    };
    if hooks.members().is_none() {
        return wrong(hooks, "`hooks` must be an object");
    }
    let Some(groups) = hooks.get(event) else {
        let value = json!([group]);
        return Ok(jsonc::insert(text, hooks, &layout, Some(event), &value));
    };
    if groups.items().is_none() {
        return wrong(groups, "the hooks of an event must be an array");
    }
    Ok(jsonc::insert(text, groups, &layout, None, &group))
}

fn group(event: &str, command: &str) -> Value {
    let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT});
    if events::is_by_tool(event) {
        // Older clients want to be told that all tools are meant.
        return json!({"matcher": "*", "hooks": [hook]});
    }
    json!({"hooks": [hook]})
}

/// Takes all our hooks out, with what is empty then. The events it was in for are named.
pub fn uninstall(text: &str) -> Result<(String, Vec<String>), JsoncError> {
    let mut text = text.to_owned();
    let mut events = Vec::new();
    if text.trim().is_empty() {
        return Ok((text, events));
    }
    loop {
        let root = jsonc::parse(&text)?;
        let Some(ours) = all(&root).find(|one| hook_command::is_ours(one.command)) else {
            return Ok((text, events));
        };
        once(&mut events, ours.event);
        // The largest thing that holds nothing but ours.
        text = if ours.hooks.items().is_some_and(|all| all.len() > 1) {
            jsonc::remove(&text, ours.hooks, ours.hook_at)
        } else if ours.groups.items().is_some_and(|all| all.len() > 1) {
            jsonc::remove(&text, ours.groups, ours.group_at)
        } else if ours.table.members().is_some_and(|all| all.len() > 1) {
            jsonc::remove(&text, ours.table, ours.event_at)
        } else {
            jsonc::remove(&text, &root, ours.table_at)
        };
    }
}

/// A command with everything around it.
struct HookCommandEntry<'a> {
    event: &'a str,
    command: &'a str,
    node: &'a JsoncNode,
    table_at: usize,
    table: &'a JsoncNode,
    event_at: usize,
    groups: &'a JsoncNode,
    group_at: usize,
    hooks: &'a JsoncNode,
    hook_at: usize,
}

/// Every command in a settings file, in order.
fn all(root: &JsoncNode) -> impl Iterator<Item = HookCommandEntry<'_>> {
    let members = root.members().unwrap_or_default();
    let table = members.iter().rposition(|member| member.key == "hooks");
    let table = table.map(|at| (at, &members[at].node));
    table.into_iter().flat_map(|(table_at, table)| {
        let events = table.members().unwrap_or_default().iter().enumerate();
        events.flat_map(move |(event_at, member)| {
            let groups = member.node.items().unwrap_or_default().iter().enumerate();
            groups.flat_map(move |(group_at, group)| {
                let hooks = group.get("hooks");
                hooks.into_iter().flat_map(move |hooks| {
                    let each = hooks.items().unwrap_or_default().iter().enumerate();
                    each.filter_map(move |(hook_at, hook)| {
                        let node = hook.get("command")?;
                        Some(HookCommandEntry {
                            event: &member.key,
                            command: node.text()?,
                            node,
                            table_at,
                            table,
                            event_at,
                            groups: &member.node,
                            group_at,
                            hooks,
                            hook_at,
                        })
                    })
                })
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool_testkit::random::Random;

    const COMMAND: &str = "/usr/local/bin/unspool hook";

    fn plain(text: &str) -> Value {
        fn value(node: &JsoncNode) -> Value {
            match &node.value {
                jsonc::JsoncValue::Object(members) => members
                    .iter()
                    .map(|member| (member.key.clone(), value(&member.node)))
                    .collect::<serde_json::Map<_, _>>()
                    .into(),
                jsonc::JsoncValue::Array(items) => {
                    items.iter().map(value).collect::<Vec<_>>().into()
                }
                jsonc::JsoncValue::Text(text) => text.as_str().into(),
                jsonc::JsoncValue::Plain(word) => serde_json::from_str(word).unwrap(),
            }
        }
        value(&jsonc::parse(text).unwrap())
    }

    #[test]
    fn an_empty_file_becomes_settings_that_a_person_can_read() {
        let done = install("", &["Stop", "PreToolUse"], COMMAND).unwrap();
        assert_eq!(
            done.text,
            r#"{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "/usr/local/bin/unspool hook",
            "timeout": 10
          }
        ]
      }
    ],
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/usr/local/bin/unspool hook",
            "timeout": 10
          }
        ]
      }
    ]
  }
}
"#
        );
        assert_eq!(done.added, ["Stop", "PreToolUse"]);
        assert_eq!(uninstall(&done.text).unwrap().0, "{}\n");
    }

    #[test]
    fn other_hooks_comments_and_order_stay_as_they_are() {
        let text = r#"{
    // mine, do not touch
    "model": "opus",
    "hooks": {
        "Stop": [
            { "hooks": [ { "type": "command", "command": "say done" } ] }, // loud
        ],
    },
    "env": { "A": "1" } /* last */
}
"#;
        let done = install(text, &["Stop", "SessionEnd"], COMMAND).unwrap();
        assert_eq!(
            done.text,
            r#"{
    // mine, do not touch
    "model": "opus",
    "hooks": {
        "Stop": [
            { "hooks": [ { "type": "command", "command": "say done" } ] }, // loud
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "/usr/local/bin/unspool hook",
                        "timeout": 10
                    }
                ]
            },
        ],
        "SessionEnd": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "/usr/local/bin/unspool hook",
                        "timeout": 10
                    }
                ]
            }
        ],
    },
    "env": { "A": "1" } /* last */
}
"#
        );
        assert_eq!(uninstall(&done.text).unwrap().0, text);
    }

    #[test]
    fn installing_again_changes_nothing_and_another_path_only_the_command() {
        let once = install("{}", &["Stop"], COMMAND).unwrap();
        let twice = install(&once.text, &["Stop"], COMMAND).unwrap();
        assert_eq!(twice.text, once.text);
        assert!(twice.added.is_empty() && twice.updated.is_empty());
        let moved = install(&once.text, &["Stop"], "/opt/unspool hook").unwrap();
        assert_eq!(moved.text, once.text.replace(COMMAND, "/opt/unspool hook"));
        assert_eq!(moved.updated, ["Stop"]);
    }

    #[test]
    fn ours_is_taken_out_of_wherever_a_person_put_it() {
        let text = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"},{"type":"command","command":"unspool hook --strict"},{"type":"command","command":"b"}]}],"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"'/x y/unspool' hook"}]}]}}"#;
        let (without, events) = uninstall(text).unwrap();
        assert_eq!(
            without,
            r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"},{"type":"command","command":"b"}]}]}}"#
        );
        assert_eq!(events, ["Stop", "PreToolUse"]);
    }

    #[test]
    fn what_matters_to_us_is_found() {
        let text = r#"{"disableAllHooks":true,"env":{"TRACE_TO_LANGFUSE":"true","N":1},"hooks":{"Stop":[{"hooks":[{"type":"command","command":"pnpm dlx github:elct9620/cc-langfuse"},{"type":"command","command":"unspool hook"},{"type":"prompt","prompt":"x"}]}]}}"#;
        let found = look(text).unwrap();
        assert_eq!(found.events, ["Stop"]);
        assert_eq!(found.exporters, ["pnpm dlx github:elct9620/cc-langfuse"]);
        assert!(found.disabled);
        assert_eq!(
            found.env,
            [("TRACE_TO_LANGFUSE".to_owned(), "true".to_owned())]
        );
        assert_eq!(look(" \n").unwrap(), HookSettings::default());
    }

    #[test]
    fn settings_of_another_shape_are_refused_with_the_line() {
        let why = |text: &str| {
            let wrong = install(text, &["Stop"], COMMAND).unwrap_err();
            (wrong.line, wrong.why)
        };
        assert_eq!(why("[]"), (1, "settings must be an object"));
        assert_eq!(why("{\n\"hooks\": []}"), (2, "`hooks` must be an object"));
        assert_eq!(
            why("{\"hooks\": {\n\n\"Stop\": {}}}"),
            (3, "the hooks of an event must be an array")
        );
        assert!(uninstall("{,}").is_err());
        // What is strange but not in our way is left alone.
        let strange = r#"{"hooks":{"Stop":[1,null,{"hooks":5}],"X":null}}"#;
        let done = install(strange, &["Stop"], COMMAND).unwrap();
        assert_eq!(uninstall(&done.text).unwrap().0, strange);
    }

    /// Settings that somebody may have written: any layout, comments anywhere.
    struct Writer {
        random: Random,
        pretty: bool,
        newline: &'static str,
        unit: &'static str,
    }

    impl Writer {
        fn gap(&mut self, depth: usize) -> String {
            let comment = match self.random.below(12) {
                0 => " /* c, } ] \" */".to_owned(),
                1 if self.pretty => format!(" // l, }} ] \"{}", self.newline),
                _ => String::new(),
            };
            if !self.pretty {
                return comment + [" ", ""][self.random.below(2) as usize];
            }
            format!("{comment}{}{}", self.newline, self.unit.repeat(depth))
        }

        fn list(&mut self, depth: usize, open: char, close: char, items: Vec<String>) -> String {
            if items.is_empty() {
                return format!("{open}{close}");
            }
            let mut out = String::from(open);
            let last = items.len() - 1;
            for (at, item) in items.iter().enumerate() {
                out += &self.gap(depth + 1);
                out += item;
                if at < last || self.random.chance(15) {
                    out += [" /* before */", "", "", ""][self.random.below(4) as usize];
                    out.push(',');
                }
                if self.pretty && self.random.chance(10) {
                    out += " // behind";
                    if at == last {
                        out += self.newline;
                    }
                }
            }
            out += &self.gap(depth);
            out.push(close);
            out
        }

        fn value(&mut self, depth: usize) -> String {
            match self.random.below(if depth > 4 { 4 } else { 6 }) {
                0 => "\"te//xt, /* \\\" } \u{e4}\"".to_owned(),
                1 => "-1.5e3".to_owned(),
                2 => "true".to_owned(),
                3 => "null".to_owned(),
                4 => {
                    let items = (0..self.random.below(3))
                        .map(|_| self.value(depth + 1))
                        .collect();
                    self.list(depth, '[', ']', items)
                }
                _ => {
                    let members = (0..self.random.below(3))
                        .map(|at| format!("\"k{at}\": {}", self.value(depth + 1)))
                        .collect();
                    self.list(depth, '{', '}', members)
                }
            }
        }

        fn hooks(&mut self) -> String {
            let names = ["Stop", "PreToolUse", "Mine", "SessionEnd"];
            let mut events = Vec::new();
            for name in names {
                if self.random.chance(50) {
                    let groups = (0..1 + self.random.below(2))
                        .map(|_| self.group())
                        .collect();
                    let groups = self.list(2, '[', ']', groups);
                    events.push(format!("\"{name}\": {groups}"));
                }
            }
            if events.is_empty() {
                events.push("\"Other\": []".to_owned());
            }
            self.list(1, '{', '}', events)
        }

        fn group(&mut self) -> String {
            let hook = r#"{"type": "command", "command": "echo 'unspool hook'"}"#.to_owned();
            let hooks = self.list(4, '[', ']', vec![hook]);
            let matcher = "\"matcher\": \"Bash\"".to_owned();
            self.list(3, '{', '}', vec![matcher, format!("\"hooks\": {hooks}")])
        }

        fn settings(&mut self) -> String {
            let mut members = Vec::new();
            for at in 0..self.random.below(3) {
                members.push(format!("\"a{at}\": {}", self.value(1)));
            }
            if self.random.chance(70) {
                let hooks = self.hooks();
                members.push(format!("\"hooks\": {hooks}"));
            }
            for at in 0..self.random.below(3) {
                members.push(format!("\"z{at}\": {}", self.value(1)));
            }
            if members.is_empty() {
                members.push("\"only\": 1".to_owned());
            }
            let top = ["", "// top\n", "\u{feff}"][self.random.below(3) as usize];
            let end = ["", "\n", "\n// end\n"][self.random.below(3) as usize];
            format!("{top}{}{end}", self.list(0, '{', '}', members))
        }
    }

    #[test]
    fn what_is_put_in_comes_out_again_without_a_trace_whatever_the_layout() {
        for seed in 0..3_000 {
            let mut random = Random::new(seed);
            let mut writer = Writer {
                pretty: random.chance(80),
                newline: random.pick::<&str>(&["\n", "\n", "\r\n"]),
                unit: random.pick::<&str>(&["  ", "    ", "\t"]),
                random,
            };
            let text = writer.settings();
            let before = plain(&text);
            let all = ["SessionStart", "Stop", "SessionEnd", "PreToolUse"];
            let done = install(&text, &all, COMMAND).unwrap();
            let after = plain(&done.text);
            for event in all {
                let groups = after["hooks"][event].as_array().unwrap();
                assert_eq!(groups.last().unwrap(), &group(event, COMMAND), "{seed}");
            }
            for (key, value) in before.as_object().unwrap() {
                assert!(key == "hooks" || &after[key] == value, "{seed}: {key}");
            }
            let comments = |text: &str| (text.matches("//").count(), text.matches("/*").count());
            assert_eq!(comments(&done.text), comments(&text), "{seed}");
            let (without, events) = uninstall(&done.text).unwrap();
            assert_eq!(without, text, "seed {seed}\n{}", done.text);
            assert_eq!(events.len(), 4);
        }
    }
}
