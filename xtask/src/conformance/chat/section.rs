//! The part of `docs/conformance.md` that is about sessions of our own client.

use super::super::{Problem, report};
use super::judge::{CLIENTS, Found};

/// The heading of the part.
pub const HEADING: &str = "## Sessions of our own client";

/// The tables.
pub fn text(found: &Found) -> String {
    let all = found.transcripts;
    let mut rows = vec![
        (
            "conversations had as scripted".to_owned(),
            found.played,
            found.conversations,
        ),
        (
            "homes without a fault (`unspool check --all`)".to_owned(),
            found.faultless,
            found.conversations,
        ),
        (
            "transcripts whose messages the API takes (strict)".to_owned(),
            found.valid,
            all,
        ),
    ];
    for (_, client) in CLIENTS {
        let some = found.profiles.get(client).copied().unwrap_or_default();
        rows.push((
            format!("transcripts with a conversation for {client}, by our rules"),
            some,
            all,
        ));
    }
    rows.push((
        "transcripts the SDK reads as we do".to_owned(),
        found.sdk,
        all,
    ));
    let mut text = format!(
        "{} conversations, {all} transcripts, {} of sub-agents, {} lines.\n\n| what | good | of |\n|---|---|---|\n",
        found.conversations, found.agents, found.lines
    );
    for (what, good, of) in rows {
        text += &format!("| {what} | {good} | {of} |\n");
    }
    for (reason, count) in &found.otherwise {
        text +=
            &format!("| read otherwise by the SDK, explained: `{reason}` | {count} | {all} |\n");
    }
    if !found.rows.is_empty() {
        text += "\n| real client | resumed | of | sent what we foretell | sent the conversation that we would send |\n|---|---|---|---|---|\n";
    }
    for row in &found.rows {
        text += &format!(
            "| {} | {} | {} | {} | {} |\n",
            row.version, row.resumed, row.tried, row.foretold, row.same
        );
    }
    if found.rows.iter().any(|row| !row.otherwise.is_empty()) {
        text += "\nThe others, by reason. A name stands for a rule of `crates/model/src/view/client_profile.rs` that is another for the client than for us:\n\n";
    }
    for row in &found.rows {
        for (reason, count) in &row.otherwise {
            text += &format!(
                "- {}, {count}: {}.\n",
                row.version,
                reason.trim_end_matches('.')
            );
        }
        for miss in &row.misses {
            let first = miss.lines().next().unwrap_or_default();
            text += &format!("- {first}; no rule of this task explains it.\n");
        }
    }
    text
}

/// Writes the part into the page and leaves the rest of it as it is.
pub fn write(found: &Found) -> Result<(), Problem> {
    let mut acts: Vec<String> = Vec::new();
    for (act, count) in &found.acts {
        acts.push(format!("{act} {count}"));
    }
    let section = format!(
        "{HEADING}\n\n{}\n{}\nConversations by what happens in them: {}.\n",
        include_str!("preamble.md"),
        text(found),
        acts.join(", ")
    );
    report::put_section(HEADING, &section)
}
