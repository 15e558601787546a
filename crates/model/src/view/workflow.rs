//! A workflow run: one call of the tool `Workflow` that sends many sub-agents, phase by phase.
//!
//! While it runs the client writes a journal of who began and who is done; when it is over, one
//! file that tells everything. Either may be missing.

use std::collections::HashMap;

use serde_json::Value;

use crate::json;

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkflowRun {
    /// Its id, such as `wf_57c6a296-6f2`.
    pub id: String,
    /// The task it runs as.
    pub task: Option<String>,
    /// The name of the workflow.
    pub name: Option<String>,
    /// What it is for.
    pub summary: Option<String>,
    /// `running`, `completed`, `failed`, `killed` …, if it is known.
    pub status: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// The titles of its phases, in order.
    pub phases: Vec<String>,
    /// Its sub-agents, in the order in which they began.
    pub agents: Vec<WorkflowAgent>,
}

/// A sub-agent of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowAgent {
    /// Its id.
    pub agent: String,
    /// What the workflow calls it.
    pub label: Option<String>,
    /// The title of its phase.
    pub phase: Option<String>,
    /// `queued`, `running`, `done`, `error` …
    pub state: Option<String>,
}

/// Most sub-agents of a run; a client starts a thousand at most.
const MOST: usize = 100_000;

impl WorkflowRun {
    /// A run as its files tell.
    pub fn read(id: &str, told: Option<&[u8]>, journal: Option<&[u8]>) -> WorkflowRun {
        let told = told.map_or(Value::Null, json::value);
        let mut run = WorkflowRun {
            id: id.to_owned(),
            task: text(&told, "taskId"),
            name: text(&told, "workflowName"),
            summary: text(&told, "summary"),
            status: text(&told, "status"),
            error: text(&told, "error"),
            ..WorkflowRun::default()
        };
        let mut places: HashMap<String, usize> = HashMap::new();
        for line in journal.unwrap_or_default().split(|byte| *byte == b'\n') {
            run.begin(&mut places, &json::value(line));
        }
        run.progress(&mut places, &told);
        let titles = list(&told, "phases").iter();
        let titles: Vec<String> = titles.filter_map(|phase| text(phase, "title")).collect();
        if !titles.is_empty() {
            run.phases = titles;
        }
        run
    }

    /// The sub-agent with this id.
    pub fn agent(&self, id: &str) -> Option<&WorkflowAgent> {
        self.agents.iter().find(|agent| agent.agent == id)
    }

    /// What it is called: by the name of the workflow, else by its id.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// Whether nothing of it goes on any more, as far as its own file tells.
    pub fn is_over(&self) -> bool {
        let status = self.status.as_deref();
        status.is_some_and(|status| !matches!(status, "running" | "pending" | "queued" | "paused"))
    }

    /// All that a person or a model wrote in it, and may hold secrets.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let agents = self.agents.iter_mut();
        let agents = agents.flat_map(|agent| [&mut agent.label, &mut agent.phase]);
        [&mut self.name, &mut self.summary, &mut self.error]
            .into_iter()
            .chain(agents)
            .flatten()
            .chain(&mut self.phases)
    }

    /// A line of the journal: a sub-agent began or is done.
    fn begin(&mut self, places: &mut HashMap<String, usize>, line: &Value) {
        let state = match line["type"].as_str() {
            Some("started") => "running",
            Some("result") => "done",
            _ => return,
        };
        let Some(agent) = self.place(places, line) else {
            return;
        };
        agent.label = text(line, "label").or(agent.label.take());
        agent.phase = text(line, "phase").or(agent.phase.take());
        agent.state = Some(state.to_owned());
    }

    /// What the file says that tells everything.
    fn progress(&mut self, places: &mut HashMap<String, usize>, told: &Value) {
        for node in list(told, "workflowProgress") {
            match node["type"].as_str() {
                Some("workflow_phase") => self.phases.extend(text(node, "title")),
                Some("workflow_agent") => {
                    if let Some(agent) = self.place(places, node) {
                        agent.label = text(node, "label").or(agent.label.take());
                        agent.phase = text(node, "phaseTitle").or(agent.phase.take());
                        agent.state = text(node, "state").or(agent.state.take());
                    }
                }
                _ => {}
            }
        }
    }

    fn place(
        &mut self,
        places: &mut HashMap<String, usize>,
        node: &Value,
    ) -> Option<&mut WorkflowAgent> {
        let id = text(node, "agentId")?;
        let next = self.agents.len();
        let at = match places.get(&id) {
            Some(at) => *at,
            None if next >= MOST => return None,
            None => {
                places.insert(id.clone(), next);
                self.agents.push(WorkflowAgent {
                    agent: id,
                    ..WorkflowAgent::default()
                });
                next
            }
        };
        self.agents.get_mut(at)
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text = value[key].as_str().filter(|text| !text.trim().is_empty());
    text.map(str::to_owned)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOURNAL: &[u8] = br#"{"type":"started","key":"v2:1","agentId":"a1"}
{"type":"started","key":"v2:2","agentId":"a2","label":"two","phase":"Map"}
{"type":"result","key":"v2:1","agentId":"a1","result":{"x":1}}
torn {"#;

    #[test]
    fn a_run_that_goes_on_is_known_by_its_journal() {
        let run = WorkflowRun::read("wf_1", None, Some(JOURNAL));
        let states: Vec<_> = run
            .agents
            .iter()
            .map(|agent| agent.state.as_deref())
            .collect();
        assert_eq!(states, [Some("done"), Some("running")]);
        assert_eq!(run.agents[1].label.as_deref(), Some("two"));
        assert_eq!((run.title(), run.is_over()), ("wf_1", false));
    }

    #[test]
    fn a_run_that_is_over_tells_name_phases_labels_and_states() {
        let told = br#"{"runId":"wf_1","taskId":"t","workflowName":"review","status":"completed","phases":[{"title":"Map"},{"title":"Verify"}],
            "workflowProgress":[{"type":"workflow_phase","index":1,"title":"Map"},
            {"type":"workflow_agent","agentId":"a1","label":"one","phaseIndex":1,"phaseTitle":"Map","state":"done"},
            {"type":"workflow_agent","agentId":"a3","label":"three","phaseTitle":"Verify","state":"error"}]}"#;
        let run = WorkflowRun::read("wf_1", Some(told), Some(JOURNAL));
        assert_eq!((run.title(), run.is_over()), ("review", true));
        assert_eq!(run.phases, ["Map", "Verify"]);
        let agents: Vec<_> = run
            .agents
            .iter()
            .map(|agent| {
                (
                    &*agent.agent,
                    agent.label.as_deref(),
                    agent.state.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            agents,
            [
                ("a1", Some("one"), Some("done")),
                ("a2", Some("two"), Some("running")),
                ("a3", Some("three"), Some("error")),
            ]
        );
        for broken in ["", "[]", "{\"workflowProgress\":7}"] {
            assert_eq!(
                WorkflowRun::read("x", Some(broken.as_bytes()), None).agents,
                []
            );
        }
    }
}
