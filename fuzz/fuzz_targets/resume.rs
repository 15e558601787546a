//! What would be sent on resume: no client's rules panic or hang on any bytes,
//! and our own give only what the API accepts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use unspool_model::log::Log;
use unspool_model::session::{Role, Session};
use unspool_model::view::messages::{ApiMessage, PieceKind, Resume, Speaker, messages, to_json};
use unspool_model::view::profile::Profile;

const PROFILES: [Profile; 5] = [
    Profile::client("2.0.50"),
    Profile::client("2.1.45"),
    Profile::client("2.1.100"),
    Profile::client("2.1.200"),
    Profile::client("2.1.325"),
];

fuzz_target!(|bytes: &[u8]| {
    let log = Log::new(bytes);
    let session = Session::from_log(&log, Role::Main);
    for profile in PROFILES {
        messages(&session, &log, profile);
    }
    if let Resume::Messages(messages) = messages(&session, &log, Profile::Strict) {
        check(&messages);
        let json = serde_json::from_str::<serde_json::Value>(&to_json(&messages));
        assert!(json.is_ok(), "not JSON: {json:?}");
    }
});

/// The rules of the API.
fn check(messages: &[ApiMessage]) {
    let first = messages.first().map(|message| message.role);
    assert_ne!(first, Some(Speaker::Assistant), "the person speaks first");
    for message in messages {
        assert!(!message.content.is_empty(), "a message has content");
        assert!(
            !message
                .content
                .iter()
                .any(|piece| piece.kind == PieceKind::Text && piece.blank)
        );
    }
    for pair in messages.windows(2) {
        assert_eq!(
            ids(&pair[0], PieceKind::Call),
            ids(&pair[1], PieceKind::Result),
            "calls and results"
        );
    }
}

fn ids(message: &ApiMessage, kind: PieceKind) -> Vec<&str> {
    let pieces = message.content.iter().filter(|piece| piece.kind == kind);
    let mut ids: Vec<&str> = pieces.filter_map(|piece| piece.call.as_deref()).collect();
    ids.sort_unstable();
    ids
}
