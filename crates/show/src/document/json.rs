//! A session as one JSON object: what is known about it, and its blocks as `show --json` has
//! them.

use std::io;

use serde_json::Value;
use unspool_model::view::turn_selection::TurnSelection;

use super::{DocumentOptions, DocumentSource, cut, cut_note};
use crate::wire::block::BlockRow;

/// Writes the object, one row per line.
pub(super) fn write(
    out: &mut dyn io::Write,
    whole: &DocumentSource<'_>,
    options: &DocumentOptions,
) -> io::Result<()> {
    out.write_all(b"{\"session\":")?;
    serde_json::to_writer(&mut *out, whole.row)?;
    out.write_all(b",\"rows\":[")?;
    let pick = TurnSelection {
        turns: Vec::new(),
        agents: true,
    };
    let mut first = true;
    let mut take = |row: BlockRow| {
        out.write_all(if std::mem::take(&mut first) {
            b"\n"
        } else {
            b",\n"
        })?;
        serde_json::to_writer(&mut *out, &shortened(row, options.max_chars))?;
        io::Result::Ok(())
    };
    BlockRow::each(whole.session, whole.source, "main", &pick, &mut take)?;
    let mut agents: Vec<_> = whole.agents.iter().collect();
    agents.sort_by_key(|(id, _)| *id);
    for (id, file) in agents {
        BlockRow::each(file.session, file.source, id, &pick, &mut take)?;
    }
    out.write_all(b"\n]}\n")
}

fn shortened(mut row: BlockRow, limit: Option<usize>) -> BlockRow {
    if limit.is_none() {
        return row;
    }
    if let Some(text) = &mut row.text {
        shorten(text, limit);
    }
    let values = [&mut row.input, &mut row.content];
    values
        .into_iter()
        .flatten()
        .for_each(|value| shorten_in(value, limit));
    row
}

fn shorten(text: &mut String, limit: Option<usize>) {
    let (kept, left) = cut(text, limit);
    if left > 0 {
        *text = format!("{kept}{}", cut_note(left));
    }
}

fn shorten_in(value: &mut Value, limit: Option<usize>) {
    match value {
        Value::String(text) => shorten(text, limit),
        Value::Array(all) => all.iter_mut().for_each(|value| shorten_in(value, limit)),
        Value::Object(all) => all.values_mut().for_each(|value| shorten_in(value, limit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
