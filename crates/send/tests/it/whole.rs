//! Nothing is left out, and nothing is told twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_model::price::Prices;
use unspool_model::session::{Message, Session};
use unspool_send::spans::{
    SessionTurnTraces, TraceFacts, TraceInput, TraceOptions, TraceSpanKind, TraceSubAgent,
};
use unspool_store::find;
use unspool_store::read::SessionReader;
use unspool_store::session_with_agents::{self, SessionWithAgents};
use unspool_testkit::{corpus, tree};

/// Messages by id, with their output.
type Messages = BTreeMap<String, u64>;

fn take(all: &mut Messages, session: &Session, messages: &[Message]) {
    for message in messages.iter().filter(|message| !message.synthetic) {
        let line = message
            .records
            .first()
            .map(|&at| &session.records[at as usize].uuid);
        let id = session.message_id(message).map(str::to_owned);
        let id = id.or_else(|| line?.as_ref().map(ToString::to_string));
        all.entry(id.unwrap_or_default())
            .or_insert(session.usage_of(message).output);
    }
}

/// What the files say.
fn said(family: &SessionWithAgents) -> Messages {
    let mut all = Messages::new();
    take(
        &mut all,
        &family.main.session,
        &family.main.session.messages,
    );
    for agent in &family.agents {
        take(
            &mut all,
            &agent.loaded.session,
            &agent.loaded.session.messages,
        );
    }
    // Of sub-agents whose files are gone there are copies.
    let main = &family.main.session;
    take(&mut all, main, &main.copies);
    all
}

/// What is told.
fn told(family: &SessionWithAgents) -> Messages {
    let facts = TraceFacts::default();
    let agents = family.agents.iter().map(|agent| TraceSubAgent {
        file: agent.listed(),
        source: &agent.loaded.source,
    });
    let material = TraceInput {
        session: &family.main.session,
        source: &family.main.source,
        agents: agents.collect(),
        runs: &family.runs,
        prices: Prices::bundled(),
    };
    let mut all = Messages::new();
    for trace in SessionTurnTraces::new(material, &facts, TraceOptions::default()).iter() {
        for span in trace
            .spans
            .into_iter()
            .filter(|span| span.kind == TraceSpanKind::Generation)
        {
            let output = span.usage.map_or(0, |usage| usage.output);
            let twice = all.insert(span.origin.unwrap_or_default(), output);
            assert!(twice.is_none(), "told twice");
        }
    }
    all
}

/// Compares all sessions of a config folder; how many messages there were.
fn compare(config: &Path) -> usize {
    let mut found = find::find(&[config.to_owned()]);
    found.identify_agents();
    let mut messages = 0;
    for file in &found.sessions {
        let family = session_with_agents::read_session_with_agents_by(
            &SessionReader::default(),
            &found,
            file,
        )
        .unwrap();
        let (said, told) = (said(&family), told(&family));
        let lost: Vec<_> = said
            .iter()
            .filter(|(id, _)| !told.contains_key(*id))
            .collect();
        let more: Vec<_> = told
            .iter()
            .filter(|(id, _)| !said.contains_key(*id))
            .collect();
        let name = file.path.display();
        assert!(lost.is_empty(), "{name}: not told: {lost:?}");
        assert!(more.is_empty(), "{name}: never said: {more:?}");
        assert!(said == told, "{name}: other tokens");
        messages += said.len();
    }
    messages
}

#[test]
fn every_message_of_a_recorded_session_and_its_sub_agents_is_told_once() {
    let config = |file: corpus::File| {
        let mut above = file.path.ancestors();
        let projects = above.find(|folder| folder.ends_with("projects"))?;
        projects.parent().map(Path::to_owned)
    };
    let mut configs: Vec<PathBuf> = corpus::files().into_iter().filter_map(config).collect();
    configs.sort();
    configs.dedup();
    let messages: usize = configs.iter().map(|config| compare(config)).sum();
    assert!(messages > 300, "{messages}");
}

#[test]
fn every_message_of_generated_sessions_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join(".claude");
    tree::generate(&config, &tree::Options::small()).unwrap();
    let messages = compare(&config);
    assert!(messages > 500, "{messages}");
}
