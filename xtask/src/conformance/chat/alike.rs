//! Whether two clients tell the model the same conversation, and if not, why.

use super::super::Problem;
use super::super::record::Outcome;
use serde_json::Value;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::conformance::reduce::{self, Texts};

/// The short form of messages without what means nothing: the order of results in one message,
/// the old name of a tool, and newlines at the end of a text, which clients put between two.
pub fn history(messages: &Value, texts: &Texts) -> Vec<Value> {
    let mut messages = messages.clone();
    for message in messages.as_array_mut().into_iter().flatten() {
        let Some(blocks) = message["content"].as_array_mut() else {
            continue;
        };
        for block in blocks.iter_mut() {
            if block["name"] == "Task" {
                block["name"] = "Agent".into();
            }
            if let Some(text) = block["text"].as_str().map(str::trim_end) {
                block["text"] = text.into();
            }
        }
        let is_result = |block: &Value| block["type"] == "tool_result";
        for run in blocks.chunk_by_mut(|one, other| is_result(one) && is_result(other)) {
            run.sort_by_key(|block| block["tool_use_id"].to_string());
        }
    }
    reduce::history(&messages, texts)
}

/// A reason for a difference, and what is left on both sides without it.
struct Step {
    name: &'static str,
    /// It can only be the reason where a block begins so.
    about: &'static str,
    keeps: fn(&str, &[String]) -> bool,
}

const STEPS: [Step; 3] = [
    Step {
        name: "calls that the API ran itself (`server_tool_use`) and their results are sent as they are; we send them as words",
        about: "server_tool_use",
        keeps: |block, _| {
            let kind = block.split(' ').next().unwrap_or_default();
            !kind.starts_with("server_")
                && kind != "web_search_tool_result"
                && !block.starts_with("text ~")
        },
    },
    Step {
        name: "calls that a kill left without a result are not sent; we send them with a result that says so",
        about: "tool_result",
        keeps: |block, lost| !lost.iter().any(|id| block.split(' ').nth(1) == Some(id)),
    },
    Step {
        name: "our note that the connection broke is not sent",
        about: "text The connection broke off",
        keeps: |block, _| !block.starts_with("text The connection broke off"),
    },
];

/// Why what a client sent is not what we would send: nothing if it is the same, `None` if no
/// reason is known.
///
/// First the rules of the client become ours, one by one: each that changes what is sent is a
/// reason. What is left are the few things that we do and no client does.
pub fn reasons(
    seen: &Outcome,
    bytes: &[u8],
    version: &str,
    texts: &Texts,
) -> Result<Option<Vec<&'static str>>, Problem> {
    let Outcome::Sent(seen) = seen else {
        return Ok(None);
    };
    let log = Log::new(bytes);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let short = |resume: ResumeResult| -> Result<Vec<Value>, Problem> {
        Ok(match resume {
            ResumeResult::Messages(all) => {
                let messages = serde_json::from_str(&messages::to_json(&all))?;
                history(&messages, texts)
            }
            ResumeResult::NoConversation | ResumeResult::Hangs => Vec::new(),
        })
    };
    let own = short(messages::messages(&session, &log, ClientProfile::Strict))?;
    if reduce::same(seen, &own) {
        return Ok(Some(Vec::new()));
    }
    let profile = ClientProfile::for_version(version).ok_or("an unknown version")?;
    let mut sent = short(messages::messages(&session, &log, profile))?;
    if !reduce::same(seen, &sent) {
        return Ok(None);
    }
    let mut reasons = Vec::new();
    for (about, rules) in profile.rules().steps_to(&ClientProfile::Strict.rules()) {
        let next = short(messages::by_rules(&session, &log, &rules))?;
        if !reduce::same(&sent, &next) {
            reasons.push(about);
        }
        sent = next;
    }
    Ok(of_ours(&sent, &own).map(|ours| {
        reasons.extend(ours);
        reasons
    }))
}

/// Which of the things that only we do make the difference.
fn of_ours(seen: &[Value], own: &[Value]) -> Option<Vec<&'static str>> {
    let lost = made_up(own);
    let fits = |steps: &[&Step]| {
        let left = |side: &[Value]| without(side, steps, &lost);
        reduce::same(&left(seen), &left(own))
    };
    let all: Vec<&str> = seen.iter().chain(own).flat_map(blocks).collect();
    let applies = |step: &&Step| all.iter().any(|block| block.starts_with(step.about));
    let mut steps: Vec<&Step> = STEPS.iter().filter(applies).collect();
    if !fits(&steps) {
        return None;
    }
    for step in &STEPS {
        let less: Vec<&Step> = steps
            .iter()
            .copied()
            .filter(|other| other.name != step.name)
            .collect();
        if fits(&less) {
            steps = less;
        }
    }
    Some(steps.iter().map(|step| step.name).collect())
}

/// The calls whose results are in no file.
fn made_up(own: &[Value]) -> Vec<String> {
    let blocks = own.iter().flat_map(blocks);
    let results = blocks.filter(|block| block.starts_with("tool_result") && block.contains(" ~"));
    results
        .filter_map(|block| block.split(' ').nth(1).map(str::to_owned))
        .collect()
}

fn blocks(message: &Value) -> Vec<&str> {
    let blocks = message["blocks"].as_array().into_iter().flatten();
    blocks.filter_map(Value::as_str).collect()
}

/// The messages with what is left of them; neighbours of one role become one.
fn without(side: &[Value], steps: &[&Step], lost: &[String]) -> Vec<Value> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    for message in side {
        let kept = blocks(message).into_iter();
        let kept = kept.filter(|block| steps.iter().all(|step| (step.keeps)(block, lost)));
        let kept: Vec<String> = kept.map(str::to_owned).collect();
        let role = message["role"].as_str().unwrap_or_default();
        match out.last_mut().filter(|(last, _)| last == role) {
            Some((_, blocks)) => blocks.extend(kept),
            None if kept.is_empty() => {}
            None => out.push((role.to_owned(), kept)),
        }
    }
    let message = |(role, blocks)| serde_json::json!({"role": role, "blocks": blocks});
    out.into_iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(blocks: &[&str]) -> Vec<Value> {
        let [first, rest @ ..] = blocks else {
            return Vec::new();
        };
        vec![
            json!({"role": "user", "blocks": [first]}),
            json!({"role": "assistant", "blocks": rest}),
        ]
    }

    #[test]
    fn order_of_results_old_names_and_last_newlines_mean_nothing() {
        let texts = Texts::default();
        let one = json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Task", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "2", "content": "b"},
                {"type": "tool_result", "tool_use_id": "1", "content": "a"},
                {"type": "text", "text": "x\n"}]}]);
        let other = json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "Agent", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "a"},
                {"type": "tool_result", "tool_use_id": "2", "content": "b"},
                {"type": "text", "text": "x"}]}]);
        assert_eq!(history(&one, &texts), history(&other, &texts));
    }

    #[test]
    fn a_known_difference_is_named_and_any_other_is_not() {
        let all = sent(&["text a", "text b"]);
        assert_eq!(of_ours(&all, &all), Some(vec![]));
        let search = sent(&["text a", "server_tool_use 1", "text b"]);
        let words = sent(&["text a", "text ~1", "text b"]);
        assert_eq!(of_ours(&search, &words), Some(vec![STEPS[0].name]));
        assert_eq!(of_ours(&sent(&["text a"]), &all), None);
        assert_eq!(of_ours(&all, &words), None, "no search was made");
    }

    #[test]
    fn a_rule_that_changes_what_is_sent_is_the_reason() {
        let notice = "<task-notification>it is over</task-notification>";
        let line = json!({"type": "user", "uuid": "00000000-0000-4000-8000-000000000001", "parentUuid": null,
            "sessionId": "s", "timestamp": "2026-01-05T12:00:00.000Z",
            "origin": {"kind": "task-notification"}, "message": {"role": "user", "content": notice}});
        let text = format!("{line}\n");
        let texts = Texts::of(&text);
        let plain = json!([{"role": "user", "content": [{"type": "text", "text": notice}]}]);
        let seen = Outcome::Sent(history(&plain, &texts));
        let reasons = reasons(&seen, text.as_bytes(), "2.1.200", &texts).unwrap();
        let reasons = reasons.expect("there is a reason");
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(
            reasons[0].starts_with("`wraps_notifications`"),
            "{reasons:?}"
        );
    }
}
