//! Any bytes are a session, and the same one however they are cut into pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_model::graph;
use unspool_model::log::{Log, Splitter};
use unspool_model::session::{Role, Session};

fuzz_target!(|bytes: &[u8]| {
    let whole = Session::from_log(&Log::new(bytes), Role::Main);
    let size = 1 + usize::from(bytes.first().copied().unwrap_or(0));
    assert_eq!(
        outline(&whole),
        outline(&in_pieces(bytes, size)),
        "in pieces of {size}"
    );
    let links = graph::links(&whole);
    assert!(!graph::has_cycle(&links), "every line has one place");
    graph::live(&whole, &links);
    Session::from_log(&Log::new(bytes), Role::Agent);
});

fn in_pieces(bytes: &[u8], size: usize) -> Session {
    let mut session = Session::new(Role::Main);
    let mut splitter = Splitter::default();
    for piece in bytes.chunks(size) {
        splitter.feed(piece, |line| {
            session.push(&line);
        });
    }
    if let Some(tail) = splitter.tail() {
        session.push_tail(&tail);
    }
    session
}

/// What two readings of the same bytes must agree on; cheap, or it is all we measure.
fn outline(session: &Session) -> impl PartialEq + std::fmt::Debug + use<> {
    let records = session.records.iter();
    let places: Vec<_> = records
        .map(|record| {
            (
                record.line,
                record.offset,
                record.len(),
                record.thread,
                record.message(),
            )
        })
        .collect();
    let faults: Vec<_> = session
        .faults
        .iter()
        .map(|fault| (fault.line, fault.kind))
        .collect();
    (
        places,
        faults,
        session.turns.len(),
        session.calls.len(),
        session.usage(),
    )
}
