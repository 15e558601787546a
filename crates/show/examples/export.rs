//! Writes a transcript as a document: `cargo run -p unspool-show --example export FILE html`.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Role, Session};
use unspool_model::view::row;
use unspool_model::view::session_usage::SessionFiles;
use unspool_model::view::status::Signals;
use unspool_show::document::{self, Format, Options, Whole};
use unspool_show::wire::session::{Place, SessionRow};

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_default();
    let name = args.next().unwrap_or_else(|| "html".to_owned());
    let format = Format::ALL.into_iter().find(|format| format.name() == name);
    let log = Log::new(std::fs::read(&path)?);
    let session = Session::from_log(&log, Role::Main);
    let now = session.last.unwrap_or(unspool_model::time::Time(0));
    let agents = HashMap::new();
    let place = Place {
        id: "example".to_owned(),
        path,
        ..Place::default()
    };
    let row = row::row(
        &SessionFiles::alone(&session),
        &HashMap::new(),
        Prices::bundled(),
        &Signals::default(),
        now,
    );
    let row = SessionRow::new(&session, row, place);
    let whole = Whole {
        session: &session,
        source: &log,
        agents: &agents,
        row: &row,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let format = format.unwrap_or(Format::Html);
    document::write(&mut out, &whole, format, &Options::default())?;
    out.flush()
}
