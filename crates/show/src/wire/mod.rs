//! The one vocabulary for machines: `--json`, the HTTP API and the event stream.
//!
//! Fields are promises: add freely, change only with a note in the changelog. One file per
//! family; each row type has a line in [`SCHEMAS`]. Inner types of the model do not derive
//! `Serialize`, so that nothing becomes a promise by accident.

pub mod block;
pub mod call;

use schemars::Schema;

/// Makes the JSON Schema of a row.
pub type MakeSchema = fn() -> Schema;

/// The name of each row and its JSON Schema.
pub const SCHEMAS: &[(&str, MakeSchema)] = &[
    ("block", || schemars::schema_for!(block::BlockRow)),
    ("call", || schemars::schema_for!(call::CallRow)),
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
