//! `schema`: JSON Schemas of our rows.

use std::io::Write;

use clap::Args;
use unspool_show::wire::SCHEMAS;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Only the schema of this row, such as `session` or `turn`
    pub row: Option<String>,
}

/// Prints schemas.
pub fn run(world: &CommandContext, args: &SchemaArgs) -> Result<(), CommandFailure> {
    let mut out = world.ui.data();
    if let Some(wanted) = &args.row {
        let found = SCHEMAS.iter().find(|(name, _)| name == wanted);
        let Some((_, schema)) = found else {
            let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
            return Err(CommandFailure::nothing(format!("unknown row `{wanted}`"))
                .hint(format!("use one of {}", names.join(", "))));
        };
        serde_json::to_writer_pretty(&mut out, &schema())?;
    } else {
        let all: serde_json::Map<String, serde_json::Value> = SCHEMAS
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), schema().into()))
            .collect();
        serde_json::to_writer_pretty(&mut out, &all)?;
    }
    writeln!(out)?;
    Ok(out.flush()?)
}
