//! The one vocabulary for machines: `--json`, the HTTP API and the event stream.
//!
//! Fields are promises: add freely, change only with a note in the changelog. One file per
//! family; each row type has a line in [`SCHEMAS`]. Inner types of the model do not derive
//! `Serialize`, so that nothing becomes a promise by accident.

pub mod block;
pub mod call;
pub mod check;
pub mod cost;
pub mod detail;
pub mod edit;
pub mod export;
pub mod file;
pub mod graph;
pub mod hit;
pub mod hook;
pub mod index;
pub mod item;
pub mod live;
pub mod log;
pub mod permission;
pub mod price;
pub mod secret;
pub mod send;
pub mod session;
pub mod turn;
pub mod usage;

use schemars::Schema;

/// Makes the JSON Schema of a row.
pub type MakeSchema = fn() -> Schema;

/// The name of each row and its JSON Schema.
pub const SCHEMAS: &[(&str, MakeSchema)] = &[
    ("block", || schemars::schema_for!(block::BlockRow)),
    ("call", || schemars::schema_for!(call::CallRow)),
    ("session", || schemars::schema_for!(session::SessionJson)),
    ("turn", || schemars::schema_for!(turn::TurnJson)),
    ("tree", || schemars::schema_for!(graph::TreeNodeJson)),
    ("agent", || schemars::schema_for!(graph::AgentJson)),
    ("export", || schemars::schema_for!(export::ExportRow)),
    ("file", || schemars::schema_for!(file::FileJson)),
    ("context", || schemars::schema_for!(file::ContextRow)),
    ("fault", || schemars::schema_for!(check::FaultRow)),
    ("verdict", || schemars::schema_for!(check::VerdictRow)),
    ("usage", || schemars::schema_for!(usage::UsageSum)),
    ("usage_trace", || schemars::schema_for!(usage::UsageTrace)),
    ("price", || schemars::schema_for!(price::PriceRow)),
    ("price_change", || {
        schemars::schema_for!(price::PriceChangeRow)
    }),
    ("secret", || schemars::schema_for!(secret::SecretRow)),
    ("hit", || schemars::schema_for!(hit::HitRow)),
    ("edit", || schemars::schema_for!(edit::EditResult)),
    ("hook", || schemars::schema_for!(hook::HookRow)),
    ("hook_edit", || schemars::schema_for!(hook::HookEditRow)),
    ("item", || schemars::schema_for!(item::ItemJson)),
    ("found", || schemars::schema_for!(item::ItemHitRow)),
    ("moment", || schemars::schema_for!(item::TimelineRow)),
    ("detail", || schemars::schema_for!(detail::DetailRow)),
    ("health", || schemars::schema_for!(detail::HealthRow)),
    ("index", || schemars::schema_for!(index::IndexRow)),
    ("edit", || schemars::schema_for!(edit::EditResult)),
    ("log", || schemars::schema_for!(log::LogRow)),
    ("undo", || schemars::schema_for!(log::UndoRow)),
    ("title", || schemars::schema_for!(log::TitleRow)),
    ("tag", || schemars::schema_for!(log::TagRow)),
    ("delete", || schemars::schema_for!(log::DeleteRow)),
    ("archive", || schemars::schema_for!(log::ArchiveRow)),
    ("purged", || schemars::schema_for!(log::PurgedRow)),
    ("move", || schemars::schema_for!(edit::MoveRow)),
    ("sent", || schemars::schema_for!(send::SentRow)),
    ("span", || schemars::schema_for!(send::SpanRow)),
    ("status", || schemars::schema_for!(live::StatusRow)),
    ("change", || {
        schemars::schema_for!(live::SessionChangeRow<'_>)
    }),
    ("removed", || schemars::schema_for!(live::RemovedRow)),
    ("daemon", || schemars::schema_for!(live::DaemonRow)),
    ("info", || schemars::schema_for!(check::InfoRow)),
    ("permission", || {
        schemars::schema_for!(permission::PermissionRow)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_schema_that_describes_its_fields() {
        for (name, schema) in SCHEMAS {
            let schema = serde_json::to_value(schema()).unwrap();
            let fields = schema["properties"].as_object().unwrap();
            assert!(!fields.is_empty(), "{name}");
            for (field, value) in fields {
                assert!(
                    value["description"].is_string(),
                    "{name}.{field} is not described"
                );
            }
        }
    }
}
