//! What is wrong with a session, and which client could resume it.

use std::collections::HashSet;

use crate::bitset::BitSet;
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::fault::{Fault, FaultKind, FaultList};
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::refused_content::{self, ContentSender};
use crate::session::{EntryRecord, Index, Session, TranscriptRole};
use crate::user_input::UserInput;
use crate::view::client_profile::{ClientGroups, ClientProfile, ClientRules};
use crate::view::messages;
use crate::view::turns::{CallStatus, ThreadEnds};

/// Whether a client could resume the session.
#[derive(Clone, Debug)]
pub struct ResumeCheck {
    /// The client.
    pub profile: ClientProfile,
    /// It would find the conversation.
    pub resumes: bool,
    /// Lines of the conversation that it would not send.
    pub lost: usize,
    /// The first such line.
    pub first_lost: Option<u32>,
    /// Why it would not resume, or what it would lose.
    pub why: Option<String>,
}

/// Every fault: of single lines, of links and of calls, by line, and what the API would refuse if
/// the newest client went on. All are counted, and of each kind the first are told.
pub fn faults(session: &Session) -> FaultList {
    faults_beside(session, &HashSet::new(), ClientProfile::NEWEST)
}

/// The same of a file whose lines may follow those of other files, as those of teammates and of
/// forked sub-agents do: `elsewhere` are the parents that stand in one of these.
/// What `client` takes out itself before it sends is no fault.
pub fn faults_beside(
    session: &Session,
    elsewhere: &HashSet<Id>,
    client: ClientProfile,
) -> FaultList {
    let links = graph::links(session);
    let mut faults = session.faults.clone();
    let links = broken_links(session, &links, elsewhere);
    links.for_each(|fault| faults.push(fault));
    broken_calls(session, &mut faults);
    refused(session, client, &mut faults);
    faults.sort();
    faults
}

/// The parents that the lines of a file name and that do not stand in it.
pub fn missing_parents(session: &Session) -> Vec<Id> {
    let links = graph::links(session);
    let missing = links.missing.iter();
    let missing = missing.map(|&at| &session.records[at as usize]);
    missing
        .filter_map(|record| session.parent_of(record).cloned())
        .collect()
}

fn broken_links<'a>(
    session: &'a Session,
    links: &'a ParentLinks,
    elsewhere: &'a HashSet<Id>,
) -> impl Iterator<Item = Fault> + 'a {
    let is_nowhere = |at: &&Index| {
        let parent = session.parent_of(&session.records[**at as usize]);
        parent.is_none_or(|parent| !elsewhere.contains(parent))
    };
    let missing = links.missing.iter().filter(is_nowhere).map(|&at| {
        let record = &session.records[at as usize];
        let parent = session.parent_of(record);
        let parent = parent.map(ToString::to_string).unwrap_or_default();
        let detail = format!("its parent {parent} is missing");
        Fault {
            line: record.line,
            kind: FaultKind::MissingParent,
            detail,
        }
    });
    let mut seen = HashSet::new();
    let cycles = links
        .cycles
        .iter()
        .filter(move |&&at| seen.insert(at))
        .map(|&at| {
            let line = session.records[at as usize].line;
            Fault {
                line,
                kind: FaultKind::Cycle,
                detail: "circular parents".to_owned(),
            }
        });
    missing.chain(cycles)
}

fn broken_calls(session: &Session, faults: &mut FaultList) {
    let course = ThreadEnds::of(session);
    for call in &session.calls {
        // What runs at the API is answered by another kind of block, in the same message.
        let local = session.blocks[call.block as usize].kind != BlockKind::ServerToolUse;
        if local && course.status(session, call) == CallStatus::Missing {
            let line = session.records[call.record as usize].line;
            let detail = format!(
                "the call {} ({}) has no result",
                session.call_id(call),
                session.text(call.tool)
            );
            faults.push(Fault {
                line,
                kind: FaultKind::CallWithoutResult,
                detail,
            });
        }
    }
    for (record, block) in session.orphan_results() {
        let record = &session.records[record as usize];
        let id = session.id_of(&session.blocks[block as usize]);
        let id = id.unwrap_or("?");
        let detail = format!("the call {id} is not in the file");
        faults.push(Fault {
            line: record.line,
            kind: FaultKind::ResultWithoutCall,
            detail,
        });
    }
}

/// What the API would refuse if this client went on.
fn refused(session: &Session, client: ClientProfile, faults: &mut FaultList) {
    let mut sender = ContentSender::new(session, client);
    // Of one line, each reason once.
    let mut told = None;
    for refused in refused_content::in_session(session) {
        let this = Some((refused.record, refused.refusal));
        if this == told || !sender.sends(&refused) {
            continue;
        }
        told = this;
        faults.push(Fault {
            line: session.records[refused.record as usize].line,
            kind: refused.refusal.fault(),
            detail: refused.refusal.why().to_owned(),
        });
    }
    error_tail(session, faults);
}

/// API errors at the end of the conversation. Other replies of the client's own are sent as if a
/// model had given them, and accepted.
fn error_tail(session: &Session, faults: &mut FaultList) {
    // What is live is found out only where there is something to find.
    if !session.records.iter().any(EntryRecord::is_api_error) {
        return;
    }
    let mut spoken = messages::live_lines(session, ClientProfile::Strict);
    spoken.retain(|&at| session.records[at as usize].is_conversation());
    let tail = clients_own_end(session, &spoken).iter();
    let errors = tail.map(|&at| &session.records[at as usize]);
    for record in errors.filter(|record| record.is_api_error()) {
        faults.push(Fault {
            line: record.line,
            kind: FaultKind::ErrorTail,
            detail: "the conversation ends with an API error written by the client".to_owned(),
        });
    }
}

/// Of the lines of a conversation, those at its end that the client itself said: that a request
/// failed, or that nothing was asked. None if nobody else said anything.
pub(crate) fn clients_own_end<'a>(session: &Session, spoken: &'a [Index]) -> &'a [Index] {
    let own = |at: &&Index| {
        let record = &session.records[**at as usize];
        let message = record.message().map(|at| &session.messages[at as usize]);
        let synthetic = message.is_some_and(|message| message.synthetic);
        record.kind == LineKind::Assistant && (record.is_api_error() || synthetic)
    };
    match spoken.iter().rev().take_while(own).count() {
        all if all == spoken.len() => &[],
        count => &spoken[spoken.len() - count..],
    }
}

/// For every client that matters for the session: whether it resumes it, and what it would lose.
pub fn resumable(session: &Session) -> Vec<ResumeCheck> {
    resumable_among(
        session,
        &ClientProfile::that_matter(session).into_iter().collect(),
    )
}

/// The same for these clients, oldest first.
pub fn resumable_among(session: &Session, clients: &ClientGroups) -> Vec<ResumeCheck> {
    let whole = conversation(session, ClientProfile::Strict);
    let mut all = Vec::new();
    for alike in clients.groups() {
        let Some(&first) = alike.first() else {
            continue;
        };
        let (client, _) = resume(session, &whole, first);
        let same = alike.iter().map(|&profile| ResumeCheck {
            profile,
            ..client.clone()
        });
        all.extend(same);
    }
    all.sort_by_key(|client| client.profile);
    all
}

/// For each of these clients whether it resumes the session, and the lines that it would build
/// its messages from. Clients that read the same lines are asked once.
pub(crate) fn by_client(
    session: &Session,
    clients: Vec<ClientProfile>,
) -> impl Iterator<Item = (ResumeCheck, Vec<Index>)> {
    let whole = conversation(session, ClientProfile::Strict);
    let mut asked: Vec<(ClientRules, ResumeCheck, Vec<Index>)> = Vec::new();
    clients.into_iter().map(move |profile| {
        let rules = profile.rules().about_lines();
        if let Some((_, same, lines)) = asked.iter().find(|(known, ..)| *known == rules) {
            let client = ResumeCheck {
                profile,
                ..same.clone()
            };
            return (client, lines.clone());
        }
        let (client, lines) = resume(session, &whole, profile);
        asked.push((rules, client.clone(), lines.clone()));
        (client, lines)
    })
}

/// Whether one client resumes the session.
pub fn resumable_by(session: &Session, profile: ClientProfile) -> ResumeCheck {
    resume(
        session,
        &conversation(session, ClientProfile::Strict),
        profile,
    )
    .0
}

fn resume(session: &Session, whole: &[Index], profile: ClientProfile) -> (ResumeCheck, Vec<Index>) {
    let outcome = messages::outcome(session, profile);
    let client = judge(session, whole, profile, &outcome);
    (client, outcome.lines())
}

fn judge(
    session: &Session,
    whole: &[Index],
    profile: ClientProfile,
    outcome: &messages::LiveLines,
) -> ResumeCheck {
    let none = |why: &str| ResumeCheck {
        profile,
        resumes: false,
        lost: whole.len(),
        first_lost: whole.first().map(|&at| session.records[at as usize].line),
        why: Some(why.to_owned()),
    };
    if whole.is_empty() {
        return none("there is nothing to send");
    }
    if session.role() == TranscriptRole::Agent {
        return none("sub-agent sessions cannot be resumed");
    }
    let lines = match outcome {
        messages::LiveLines::Lines(lines) => lines,
        messages::LiveLines::None => return none("it would find no conversation"),
        messages::LiveLines::Hangs => return none("it would hang on circular parents"),
    };
    let sent: BitSet = lines.iter().copied().collect();
    let lost: Vec<u32> = whole
        .iter()
        .filter(|&&at| !sent.contains(at))
        .map(|&at| session.records[at as usize].line)
        .collect();
    let why = (!lost.is_empty()).then(|| reason(lost.len(), lost[0]));
    ResumeCheck {
        profile,
        resumes: !whole.is_empty(),
        lost: lost.len(),
        first_lost: lost.first().copied(),
        why,
    }
}

fn reason(lost: usize, first: u32) -> String {
    match lost {
        1 => format!("line {first} would not be sent"),
        _ => format!("{lost} lines would not be sent, the first is line {first}"),
    }
}

/// The lines that a client sends as conversation.
fn conversation(session: &Session, profile: ClientProfile) -> Vec<Index> {
    let lines = messages::live_lines(session, profile);
    let said = |at: &Index| {
        let record = &session.records[*at as usize];
        let mut blocks = session.blocks_of(record).iter();
        let blank = blocks.all(|block| block.blank && block.kind != BlockKind::ToolResult);
        match record.kind {
            LineKind::Assistant => !record.is_api_error() && !blank,
            LineKind::User => record.input == UserInput::Results || !blank,
            _ => false,
        }
    };
    lines.into_iter().filter(said).collect()
}
