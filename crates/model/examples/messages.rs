//! Prints what a client would send on resume: `cargo run --example messages FILE [VERSION]`
//!
//! Exits with 1 where it would find no conversation, with 2 where it would hang.

use unspool_model::log::Log;
use unspool_model::session::{Role, Session};
use unspool_model::view::messages::{self, Resume};
use unspool_model::view::profile::Profile;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let profile = arguments
        .next()
        .and_then(|version| Profile::for_version(&version))
        .unwrap_or(Profile::NEWEST);
    let log = Log::new(std::fs::read(&path)?);
    let session = Session::from_log(&log, Role::Main);
    match messages::messages(&session, &log, profile) {
        Resume::Messages(all) => println!("{}", messages::to_json(&all)),
        Resume::NoConversation => std::process::exit(1),
        Resume::Hangs => std::process::exit(2),
    }
    Ok(())
}
