//! Whatever is on disk can be gone on with: recordings of the real client, cut anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use unspool_agent::request::RequestOptions;
use unspool_agent::transcript_writer::{SharedLineFields, TranscriptWriter};
use unspool_model::entry_writer::NewEntry;
use unspool_testkit::corpus;
use unspool_testkit::validator;

/// So many beginnings of each recording are tried, unless `UNSPOOL_CUTS` says otherwise.
const CUTS: usize = 24;

#[test]
fn any_beginning_of_any_recording_makes_a_request_that_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let frame = RequestOptions {
        model: "claude-sonnet-4-5".into(),
        ..RequestOptions::default()
    };
    let cuts = std::env::var("UNSPOOL_CUTS").ok();
    let cuts: usize = cuts.map_or(CUTS, |cuts| cuts.parse().unwrap());
    let (mut recordings, mut tried) = (0, 0);
    for file in corpus::files() {
        if file.role != corpus::Role::Main {
            continue;
        }
        let bytes = file.bytes();
        recordings += 1;
        for cut in 1..=cuts {
            let size = bytes.len() * cut / cuts;
            let path = folder.path().join("s.jsonl");
            std::fs::write(&path, &bytes[..size]).unwrap();
            let face = SharedLineFields {
                session: "s".into(),
                version: "v".into(),
                entrypoint: "cli".into(),
                slug: None,
                agent: None,
            };
            let mut record = TranscriptWriter::resume(&path, face, folder.path(), false).unwrap();
            record
                .add(NewEntry::Prompt {
                    content: "go on please".into(),
                    id: "p".into(),
                    mode: None,
                    source: None,
                })
                .unwrap();
            let ask = frame.ask(&record).expect("there is a prompt");
            let refused = validator::refusals(&ask.messages);
            assert_eq!(refused, [""; 0], "{} cut at {size}", file.name());
            assert!(
                ask.messages.contains("go on please"),
                "{} cut at {size}",
                file.name()
            );
            let now = std::fs::read(&path).unwrap();
            assert!(now.starts_with(&bytes[..size]), "nothing before is changed");
            tried += 1;
        }
    }
    println!(
        "resumed | {recordings} recordings, {cuts} beginnings of each, {tried} requests, none refused"
    );
    assert!(tried > 1_000, "{tried}");
}
