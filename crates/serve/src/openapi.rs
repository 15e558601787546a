//! The description of the API for programs that read such.

use serde_json::{Map, Value, json};
use unspool_show::wire::SCHEMAS;

/// What an address gives.
struct ApiEndpoint {
    path: &'static str,
    method: &'static str,
    about: &'static str,
    /// The row, and whether there are many.
    gives: Option<(&'static str, bool)>,
    queries: &'static [&'static str],
}

const fn get(
    path: &'static str,
    about: &'static str,
    gives: Option<(&'static str, bool)>,
    queries: &'static [&'static str],
) -> ApiEndpoint {
    ApiEndpoint {
        path,
        method: "get",
        about,
        gives,
        queries,
    }
}

const PLACES: &[ApiEndpoint] = &[
    get("/api/health", "server health", Some(("health", false)), &[]),
    get(
        "/api/sessions",
        "sessions, newest first",
        Some(("session", true)),
        &["project", "since", "status", "limit"],
    ),
    get(
        "/api/sessions/{id}",
        "one session",
        Some(("detail", false)),
        &[],
    ),
    get(
        "/api/sessions/{id}/turns",
        "its turns",
        Some(("turn_at", true)),
        &["from", "limit", "last", "agent"],
    ),
    get(
        "/api/sessions/{id}/turns/{n}",
        "one turn with its items",
        Some(("turn_at", false)),
        &["from", "limit", "agent"],
    ),
    get(
        "/api/sessions/{id}/items",
        "a range of its items",
        Some(("item", true)),
        &[
            "from", "limit", "last", "turn", "line", "level", "agent", "branch", "quick",
        ],
    ),
    get(
        "/api/sessions/{id}/items/{i}",
        "one item, not truncated",
        Some(("item", false)),
        &["level", "agent", "branch"],
    ),
    get(
        "/api/sessions/{id}/raw/{line}",
        "a raw line of its file, secrets masked",
        None,
        &["agent"],
    ),
    get(
        "/api/sessions/{id}/images/{line}/{k}",
        "an image on a line",
        None,
        &["agent"],
    ),
    get(
        "/api/sessions/{id}/find",
        "occurrences of a text in it",
        Some(("found", true)),
        &["q", "limit", "agent", "branch"],
    ),
    get(
        "/api/sessions/{id}/timeline",
        "its turns in buckets, for a timeline",
        Some(("moment", true)),
        &["buckets", "agent", "branch"],
    ),
    get(
        "/api/sessions/{id}/context",
        "what fills its context",
        Some(("context", true)),
        &["most"],
    ),
    get(
        "/api/sessions/{id}/tree",
        "its branches and forks",
        Some(("tree", true)),
        &[],
    ),
    get(
        "/api/sessions/{id}/trim",
        "dry run of a trimmed copy",
        Some(("edit", false)),
        &["preset"],
    ),
    get(
        "/api/sessions/{id}/export",
        "the session as a document",
        None,
        &["to", "detail"],
    ),
    get(
        "/api/search",
        "full-text search in all sessions",
        Some(("hit", true)),
        &[
            "q", "ranked", "regex", "project", "since", "until", "limit", "in",
        ],
    ),
    get(
        "/api/usage",
        "tokens and cost",
        Some(("usage", true)),
        &["by", "split", "since", "until", "project"],
    ),
    get(
        "/api/events",
        "changes as server-sent events: `snapshot`, `session`, `removed`, `scanned`",
        None,
        &["session", "after"],
    ),
    get("/api/openapi.json", "this document", None, &[]),
    ApiEndpoint {
        path: "/api/login",
        method: "post",
        about: "exchanges the token for an access key, to be sent as `Authorization: Bearer`",
        gives: None,
        queries: &[],
    },
    ApiEndpoint {
        path: "/api/logout",
        method: "post",
        about: "revokes the access key that it is sent with",
        gives: None,
        queries: &[],
    },
    ApiEndpoint {
        path: "/api/hook",
        method: "post",
        about: "accepts a hook event as Claude Code sends it",
        gives: None,
        queries: &[],
    },
];

/// The document.
pub fn document(version: &str) -> Value {
    let mut schemas = Map::new();
    for (name, schema) in SCHEMAS {
        take(&mut schemas, name, schema().to_value());
    }
    let turn = schemars::schema_for!(unspool_show::wire::detail::TurnDetailRow);
    take(&mut schemas, "turn_at", turn.to_value());
    let mut paths = Map::new();
    for place in PLACES {
        paths.insert(
            place.path.to_owned(),
            json!({ place.method: operation(place) }),
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "unspool",
            "version": version,
            "description": "Sessions of Claude Code on this machine. All data requires `Authorization: Bearer` with the token that `unspool serve` prints, or with an access key from `/api/login`.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}

/// Puts a schema and the ones it refers to beside each other, as such documents have them.
fn take(schemas: &mut Map<String, Value>, name: &str, mut schema: Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
        let inner = fields.remove("$defs");
        for (name, inner) in inner
            .as_ref()
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let mut inner = inner.clone();
            relink(&mut inner);
            schemas.insert(name.clone(), inner);
        }
    }
    relink(&mut schema);
    schemas.insert(name.to_owned(), schema);
}

fn relink(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value
                    .as_str()
                    .and_then(|text| text.strip_prefix("#/$defs/"))
                {
                    Some(to) if name == "$ref" => {
                        *value = format!("#/components/schemas/{to}").into();
                    }
                    _ => relink(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(relink),
        _ => {}
    }
}

fn operation(place: &ApiEndpoint) -> Value {
    let inside = place.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        )
    });
    let behind = place
        .queries
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
    let parameters: Vec<Value> = inside.chain(behind).collect();
    let done = match place.gives {
        None => json!({ "description": place.about }),
        Some((name, many)) => {
            let one = json!({ "$ref": format!("#/components/schemas/{name}") });
            let schema = match many {
                true => json!({ "type": "array", "items": one }),
                false => one,
            };
            json!({
                "description": place.about,
                "content": { "application/json": { "schema": schema } },
            })
        }
    };
    let answers = place.method == "get" || place.path == "/api/login";
    let status = if answers { "200" } else { "204" };
    json!({
        "summary": place.about,
        "parameters": parameters,
        "responses": {
            status: done,
            "403": { "description": "missing or wrong token, unknown host, or foreign origin" },
            "404": { "description": "not found" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document("0");
        let text = document.to_string();
        let parts = text.split("#/components/schemas/").skip(1);
        let mut count = 0;
        for name in parts.filter_map(|part| part.split('"').next()) {
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name} is missing"
            );
            count += 1;
        }
        assert!(count > 20, "{count}");
        assert!(!text.contains("$defs"));
    }
}
