//! Prints what a client would send on resume: `cargo run --example messages FILE [VERSION]`
//!
//! Exits with 1 where it would find no conversation, with 2 where it would hang.

use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let profile = arguments
        .next()
        .and_then(|version| ClientProfile::for_version(&version))
        .unwrap_or(ClientProfile::NEWEST);
    let log = Log::new(std::fs::read(&path)?);
    let session = Session::from_log(&log, TranscriptRole::Main);
    match messages::messages(&session, &log, profile) {
        ResumeResult::Messages(all) => println!("{}", messages::to_json(&all)),
        ResumeResult::NoConversation => std::process::exit(1),
        ResumeResult::Hangs => std::process::exit(2),
    }
    Ok(())
}
