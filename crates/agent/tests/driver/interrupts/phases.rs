//! Where a session can be stopped, and how it gets there.

use std::time::Duration;

use serde_json::{Value, json};
use unspool_agent::driver::{QuestionKind, SessionCommand, SessionNotice};
use unspool_agent::mcp_tools::{McpServerStatus, McpTools, OfferedTool};
use unspool_agent::stop::StopSignal;
use unspool_agent::tool::{ToolCallRequest, ToolOutcome};
use unspool_testkit::model::{Answer as Said, Step, call, text, thinking};

use super::Trial;
use unspool_testkit::wait::LONG;

/// A point of a session's work.
pub struct Phase {
    pub name: &'static str,
    /// Whether nobody is asked for permission.
    pub free: bool,
    /// Whether the model is told afterwards that it was stopped.
    pub told: bool,
    /// The settings of the session, with the mark of the trial.
    pub settings: fn(&str) -> Value,
    /// Brings it there.
    pub reach: fn(&Trial),
}

const fn phase(name: &'static str, reach: fn(&Trial)) -> Phase {
    Phase {
        name,
        free: true,
        told: true,
        settings: |_| json!({}),
        reach,
    }
}

/// A phase in which a hook runs.
const fn hooked(name: &'static str, settings: fn(&str) -> Value, reach: fn(&Trial)) -> Phase {
    Phase {
        settings,
        ..phase(name, reach)
    }
}

/// A hook that does this when it is run for the first time.
fn hook(event: &str, command: &str) -> Value {
    let once = format!(
        "cd \"$CLAUDE_PROJECT_DIR\"; [ -e hooked ] && exit 0; : > hooked; {command}; : > later"
    );
    let hooks = json!([{"hooks": [{"type": "command", "command": once}]}]);
    json!({"hooks": {event: hooks}})
}

/// Every point there is.
pub const ALL: &[Phase] = &[
    phase("before the first byte", |trial| {
        trial.plays([Said::text("never").before(0, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.gate();
    }),
    phase("before the first event", |trial| {
        let silent = Step::Send(": nothing yet\n\n".to_owned());
        let answer = Said::text("never").before(0, Step::Gate("gate"));
        trial.plays([answer.before(0, silent)]);
        trial.desk.say("one");
        trial.gate();
    }),
    phase("in thinking", |trial| {
        let answer = Said::blocks(&[thinking("so and so"), text("never")]);
        trial.plays([answer.before(4, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::Thinking(_)));
    }),
    phase("in text", |trial| {
        trial.plays([Said::text("so and so").before(4, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::Text(_)));
    }),
    phase("in the input of a call", |trial| {
        let blocks = [text("I look."), trial.bash("toolu_1", ": > later")];
        trial.plays([Said::blocks(&blocks).before(8, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.hears(|notice| is_delta(notice, "input_json_delta"));
    }),
    phase("between two blocks", |trial| {
        let blocks = [
            thinking("so"),
            text("I look."),
            trial.bash("toolu_1", ": > later"),
        ];
        trial.plays([Said::blocks(&blocks).before(11, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.hears(|notice| is_event(notice, "content_block_stop", 1));
    }),
    phase("behind a whole call", |trial| {
        let blocks = [trial.bash("toolu_1", ": > later"), text("and so on")];
        trial.plays([Said::blocks(&blocks).before(8, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::Text(_)));
    }),
    phase("with a prompt that waits", |trial| {
        trial.plays([Said::text("so and so").before(4, Step::Gate("gate"))]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::Text(_)));
        trial.desk.say("two");
        trial.hears(|notice| matches!(notice, SessionNotice::Queued(1)));
    }),
    phase("at the end of an answer with calls", |trial| {
        let slow = trial.bash("toolu_1", "sleep MARK; : > later");
        trial.plays([Said::blocks(&[text("I look."), slow])]);
        trial.desk.say("one");
        trial.hears(
            |notice| matches!(notice, SessionNotice::Raw(event) if event["type"] == "message_stop"),
        );
    }),
    phase("between results and the next request", |trial| {
        let quick = trial.bash("toolu_1", "true");
        let never = Said::text("never").before(0, Step::Gate("gate"));
        trial.plays([Said::blocks(&[quick]), never]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::CallEnded { .. }));
    }),
    phase("a tool that only reads", |trial| {
        let search = call("toolu_1", "WebSearch", json!({"query": "weather"}));
        let found = Said::text("never").before(3, Step::Gate("gate"));
        trial.plays([Said::blocks(&[search]), found]);
        trial.desk.say("one");
        trial.gate();
    }),
    phase("Bash", |trial| {
        let slow = trial.bash("toolu_1", ": > began; sleep MARK; : > later");
        trial.plays([Said::blocks(&[slow])]);
        trial.desk.say("one");
        trial.made("began");
    }),
    phase("Bash that ignores TERM", |trial| {
        let deaf = "trap '' TERM INT HUP; setsid sleep MARK & : > began; sleep MARK; sleep MARK; : > later";
        trial.plays([Said::blocks(&[trial.bash("toolu_1", deaf)])]);
        trial.desk.say("one");
        trial.made("began");
    }),
    phase("several tools at once", |trial| {
        let search = |id: &str| call(id, "WebSearch", json!({"query": "weather"}));
        let glob = call("toolu_3", "Glob", json!({"pattern": "*"}));
        let later = trial.bash("toolu_4", ": > later");
        let found = || Said::text("never").before(3, Step::Gate("gate"));
        let calls = [search("toolu_1"), search("toolu_2"), glob, later];
        trial.plays([Said::blocks(&calls), found(), found()]);
        trial.desk.say("one");
        // Both searches and the conversation itself.
        assert!(trial.model.asked(3, LONG));
        trial.gate();
    }),
    Phase {
        free: false,
        ..phase("permission asked", |trial| {
            trial.plays([Said::blocks(&[trial.bash("toolu_1", ": > later")])]);
            trial.desk.say("one");
            trial.hears(|notice| {
                asks(notice, |what| {
                    matches!(what, QuestionKind::Permission { .. })
                })
            });
        })
    },
    phase("a question asked", |trial| {
        let options =
            json!([{"label": "a", "description": "A"}, {"label": "b", "description": "B"}]);
        let question = json!({"question": "Which?", "header": "Which", "options": options, "multiSelect": false});
        let input = json!({"questions": [question]});
        trial.plays([Said::blocks(&[call("toolu_1", "AskUserQuestion", input)])]);
        trial.desk.say("one");
        trial.hears(|notice| asks(notice, |what| *what == QuestionKind::Question));
    }),
    phase("a plan shown", |trial| {
        let input = json!({"plan": "Do it."});
        trial.plays([Said::blocks(&[call("toolu_1", "ExitPlanMode", input)])]);
        trial.desk.say("one");
        trial.hears(|notice| asks(notice, |what| *what == QuestionKind::Plan));
    }),
    hooked(
        "hook before a call",
        |mark| hook("PreToolUse", &format!("sleep {mark}")),
        |trial| {
            trial.plays([Said::blocks(&[trial.bash("toolu_1", ": > later")])]);
            trial.desk.say("one");
            trial.made("hooked");
        },
    ),
    hooked(
        "hook after a call",
        |mark| hook("PostToolUse", &format!("sleep {mark}")),
        |trial| {
            trial.plays([Said::blocks(&[trial.bash("toolu_1", "true")])]);
            trial.desk.say("one");
            trial.made("hooked");
        },
    ),
    hooked(
        "hook at the end of a turn",
        |mark| hook("Stop", &format!("sleep {mark}")),
        |trial| {
            trial.desk.say("one");
            trial.made("hooked");
        },
    ),
    hooked(
        "hook that ignores TERM",
        |mark| {
            let deaf = format!("trap '' TERM; sleep {mark}; sleep {mark}");
            hook("PreToolUse", &deaf)
        },
        |trial| {
            trial.plays([Said::blocks(&[trial.bash("toolu_1", ": > later")])]);
            trial.desk.say("one");
            trial.made("hooked");
        },
    ),
    Phase {
        free: false,
        ..hooked(
            "hook in place of a person",
            |mark| hook("PermissionRequest", &format!("sleep {mark}")),
            |trial| {
                trial.plays([Said::blocks(&[trial.bash("toolu_1", ": > later")])]);
                trial.desk.say("one");
                trial.made("hooked");
            },
        )
    },
    Phase {
        told: false,
        ..hooked(
            "hook on a prompt",
            |mark| hook("UserPromptSubmit", &format!("sleep {mark}")),
            |trial| {
                trial.desk.say("one");
                trial.made("hooked");
            },
        )
    },
    Phase {
        told: false,
        ..hooked(
            "hook at the beginning",
            |mark| hook("SessionStart", &format!("sleep {mark}")),
            |trial| {
                trial.desk.say("one");
                trial.hears(|notice| matches!(notice, SessionNotice::Queued(1)));
                trial.made("hooked");
            },
        )
    },
    Phase {
        told: false,
        ..hooked(
            "hook before a summary",
            |mark| hook("PreCompact", &format!("sleep {mark}")),
            |trial| {
                trial.desk.say("one");
                trial.desk.ended();
                trial
                    .desk
                    .handle
                    .send(SessionCommand::Compact { words: None });
                trial.made("hooked");
            },
        )
    },
    phase("waiting to try again", |trial| {
        let busy = Said::fails("529 Overloaded", "overloaded_error", "not now");
        trial.plays([busy.header("retry-after", "50")]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::Retry { .. }));
    }),
    Phase {
        told: false,
        ..phase("a summary that was asked for", |trial| {
            trial.desk.say("one");
            trial.desk.ended();
            trial.plays([Said::text("never").before(3, Step::Gate("gate"))]);
            trial
                .desk
                .handle
                .send(SessionCommand::Compact { words: None });
            trial.gate();
        })
    },
    phase("a summary because the context is full", |trial| {
        let never = Said::text("never").before(3, Step::Gate("gate"));
        trial.plays([Said::counted(&[text("much")], 195_000), never]);
        trial.desk.say("one");
        trial.desk.ended();
        trial.desk.say("two");
        trial.gate();
    }),
    phase("a sub-agent that is answered", |trial| {
        let never = Said::text("never").before(3, Step::Gate("gate"));
        trial.plays([Said::blocks(&[agent()]), never]);
        trial.desk.say("one");
        trial.gate();
    }),
    phase("a sub-agent that runs a command", |trial| {
        let slow = trial.bash("toolu_2", ": > began; sleep MARK; : > later");
        trial.plays([Said::blocks(&[agent()]), Said::blocks(&[slow])]);
        trial.desk.say("one");
        trial.made("began");
    }),
    phase("a tool of a server", |trial| {
        trial.plays([Said::blocks(&[call(
            "toolu_1",
            "mcp__slow__wait",
            json!({}),
        )])]);
        trial.desk.say("one");
        trial.hears(|notice| matches!(notice, SessionNotice::CallBegan(_)));
    }),
];

fn agent() -> Value {
    let input = json!({"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"});
    call("toolu_1", "Agent", input)
}

fn asks(notice: &SessionNotice, passes: impl Fn(&QuestionKind) -> bool) -> bool {
    matches!(notice, SessionNotice::Ask { what, .. } if passes(what))
}

fn is_delta(notice: &SessionNotice, kind: &str) -> bool {
    matches!(notice, SessionNotice::Raw(event) if event["delta"]["type"] == kind)
}

fn is_event(notice: &SessionNotice, kind: &str, index: u64) -> bool {
    matches!(notice, SessionNotice::Raw(event) if event["type"] == kind && event["index"] == index)
}

/// A server whose only tool waits until it is stopped.
pub struct Slow;

impl McpTools for Slow {
    fn offers(&self) -> Vec<OfferedTool> {
        vec![OfferedTool {
            name: "mcp__slow__wait".to_owned(),
            description: "Waits.".to_owned(),
            schema: json!({"type": "object", "properties": {}}),
            only_reads: false,
        }]
    }

    fn servers(&self) -> Vec<McpServerStatus> {
        Vec::new()
    }

    fn run(&self, _: &ToolCallRequest, stop: &StopSignal) -> ToolOutcome {
        match stop.wait(Duration::from_secs(600)) {
            true => ToolOutcome::failed("It was stopped."),
            false => ToolOutcome::failed("Nobody stopped it."),
        }
    }
}
