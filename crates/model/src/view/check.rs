//! What is wrong with a session, and which client could resume it.

use std::collections::HashSet;

use crate::block::BlockKind;
use crate::entry::Kind;
use crate::fault::{Fault, FaultKind, FaultList};
use crate::graph::{self, Links};
use crate::input::Input;
use crate::marks::Marks;
use crate::session::{Index, Role, Session};
use crate::view::messages;
use crate::view::profile::Profile;
use crate::view::turns::{CallStatus, Course};

/// Whether a client could resume the session.
#[derive(Clone, Debug)]
pub struct Resumable {
    /// The client.
    pub profile: Profile,
    /// It would find the conversation.
    pub resumes: bool,
    /// Lines of the conversation that it would not send.
    pub lost: usize,
    /// The first such line.
    pub first_lost: Option<u32>,
    /// Why it would not resume, or what it would lose.
    pub why: Option<String>,
}

/// Every fault: of single lines, of links and of calls, by line. All are counted, and of each kind
/// the first are told.
pub fn faults(session: &Session) -> FaultList {
    let links = graph::links(session);
    let mut faults = session.faults.clone();
    broken_links(session, &links).for_each(|fault| faults.push(fault));
    broken_calls(session, &mut faults);
    faults.sort();
    faults
}

fn broken_links<'a>(session: &'a Session, links: &'a Links) -> impl Iterator<Item = Fault> + 'a {
    let missing = links.missing.iter().map(|&at| {
        let record = &session.records[at as usize];
        let parent = session.parent_of(record);
        let parent = parent.map(ToString::to_string).unwrap_or_default();
        let detail = format!("its parent {parent} is not in the file");
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
                detail: "the line is its own ancestor".to_owned(),
            }
        });
    missing.chain(cycles)
}

fn broken_calls(session: &Session, faults: &mut FaultList) {
    let course = Course::of(session);
    for call in &session.calls {
        // What runs at the API is answered by another kind of block, in the same message.
        let local = session.blocks[call.block as usize].kind != BlockKind::ServerToolUse;
        if local && course.status(session, call) == CallStatus::Missing {
            let line = session.records[call.record as usize].line;
            let detail = format!(
                "the call {} ({}) never got a result",
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

/// For every known client: whether it resumes the session, and what it would lose.
pub fn resumable(session: &Session) -> Vec<Resumable> {
    by_client(session).map(|(client, _)| client).collect()
}

/// The same, with the lines that each client would build its messages from.
pub(crate) fn by_client(session: &Session) -> impl Iterator<Item = (Resumable, Vec<Index>)> {
    let whole = conversation(session, Profile::Strict);
    let clients = Profile::ALL.into_iter();
    let clients = clients.filter(|profile| *profile != Profile::Strict);
    clients.map(move |profile| resume(session, &whole, profile))
}

/// Whether one client resumes the session.
pub fn resumable_by(session: &Session, profile: Profile) -> Resumable {
    resume(session, &conversation(session, Profile::Strict), profile).0
}

fn resume(session: &Session, whole: &[Index], profile: Profile) -> (Resumable, Vec<Index>) {
    let outcome = messages::outcome(session, profile);
    let client = judge(session, whole, profile, &outcome);
    (client, outcome.lines())
}

fn judge(
    session: &Session,
    whole: &[Index],
    profile: Profile,
    outcome: &messages::Outcome,
) -> Resumable {
    let none = |why: &str| Resumable {
        profile,
        resumes: false,
        lost: whole.len(),
        first_lost: whole.first().map(|&at| session.records[at as usize].line),
        why: Some(why.to_owned()),
    };
    if whole.is_empty() {
        return none("there is nothing to send");
    }
    if session.role() == Role::Agent {
        return none("a sub-agent's file is not resumed on its own");
    }
    let lines = match outcome {
        messages::Outcome::Lines(lines) => lines,
        messages::Outcome::None => return none("it would find no conversation"),
        messages::Outcome::Hangs => return none("it would hang on a circle of parents"),
    };
    let sent: Marks = lines.iter().copied().collect();
    let lost: Vec<u32> = whole
        .iter()
        .filter(|&&at| !sent.contains(at))
        .map(|&at| session.records[at as usize].line)
        .collect();
    let why = (!lost.is_empty()).then(|| reason(lost.len(), lost[0]));
    Resumable {
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
fn conversation(session: &Session, profile: Profile) -> Vec<Index> {
    let lines = messages::live_lines(session, profile);
    let said = |at: &Index| {
        let record = &session.records[*at as usize];
        let blank = session.blocks_of(record).iter().all(|block| block.blank);
        match record.kind {
            Kind::Assistant => !record.is_api_error() && !blank,
            Kind::User => record.input == Input::Results || !blank,
            _ => false,
        }
    };
    lines.into_iter().filter(said).collect()
}
