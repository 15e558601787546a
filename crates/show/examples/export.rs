//! Writes a transcript as a document: `cargo run -p unspool-show --example export FILE html`.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::session_row;
use unspool_model::view::session_usage::SessionFiles;
use unspool_model::view::status::StatusSignals;
use unspool_show::document::{self, DocumentFormat, DocumentOptions, DocumentSource};
use unspool_show::wire::session::{SessionFileInfo, SessionJson};

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_default();
    let name = args.next().unwrap_or_else(|| "html".to_owned());
    let format = DocumentFormat::ALL
        .into_iter()
        .find(|format| format.name() == name);
    let log = Log::new(std::fs::read(&path)?);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let now = session.last.unwrap_or(unspool_model::time::Time(0));
    let agents = HashMap::new();
    let place = SessionFileInfo {
        id: "example".to_owned(),
        path,
        ..SessionFileInfo::default()
    };
    let row = session_row::row(
        &SessionFiles::alone(&session),
        &HashMap::new(),
        Prices::bundled(),
        &StatusSignals::default(),
        now,
    );
    let row = SessionJson::new(&session, row, place);
    let whole = DocumentSource {
        session: &session,
        source: &log,
        agents: &agents,
        row: &row,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let format = format.unwrap_or(DocumentFormat::Html);
    document::write(&mut out, &whole, format, &DocumentOptions::default())?;
    out.flush()
}
