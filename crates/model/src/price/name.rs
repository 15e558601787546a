//! Names of models: what providers add to them, and which row a name means.

use std::collections::BTreeMap;

/// The row that a name means, other than by being its name.
pub fn find<'a>(keys: &'a BTreeMap<String, String>, model: &str) -> Option<&'a str> {
    let Name { region, base } = Name::of(model)?;
    let key = |base: &str| match &region {
        Some(region) => keys
            .get(&format!("{region}.{base}"))
            .or_else(|| keys.get(base)),
        None => keys.get(base),
    };
    let undated = || undated(&base).and_then(key);
    key(&base)
        .or_else(undated)
        .or_else(|| only_dated(keys, &base))
        .map(String::as_str)
}

/// The rows by the names they can be found with.
pub fn keys<'a>(rows: impl Iterator<Item = &'a String>) -> BTreeMap<String, String> {
    let mut ranked: BTreeMap<String, (u8, &str)> = BTreeMap::new();
    for row in rows {
        let Some((rank, name)) = rank(row).zip(Name::of(row)) else {
            continue;
        };
        let key = match name.region {
            Some(region) => format!("{region}.{}", name.base),
            None => name.base,
        };
        let place = ranked.entry(key).or_insert((rank, row));
        if rank < place.0 {
            *place = (rank, row);
        }
    }
    ranked
        .into_iter()
        .map(|(key, (_, row))| (key, row.to_owned()))
        .collect()
}

/// Whose price a row is: the maker's own before those of the two clouds. Other providers
/// are meant only by their full names.
fn rank(row: &str) -> Option<u8> {
    match row {
        _ if row.starts_with("vertex_ai/") => Some(2),
        _ if row.contains('/') => None,
        _ if row.contains(VENDOR) => Some(1),
        _ => Some(0),
    }
}

const VENDOR: &str = "anthropic.";

/// A name taken apart.
struct Name {
    /// `us` of `us.anthropic.…`, which can cost more.
    region: Option<String>,
    /// The model and perhaps its date: `claude-sonnet-4-5-20250929`.
    base: String,
}

impl Name {
    fn of(model: &str) -> Option<Name> {
        let model = model.trim();
        // The context was switched to a million: `claude-opus-4-6[1m]`.
        let model = model.split_once('[').map_or(model, |(name, _)| name);
        // Gateways and resource names put a path in front.
        let model = model.rsplit('/').next()?;
        let (region, model) = match model.split_once(VENDOR) {
            Some((region, model)) => (region.strip_suffix('.'), model),
            None => (None, model),
        };
        let model = model.strip_suffix("@default").unwrap_or(model);
        let model = without_revision(model);
        let model = model.strip_suffix("-latest").unwrap_or(model);
        Some(Name {
            region: region.map(str::to_owned),
            base: hyphens(model),
        })
        .filter(|name| !name.base.is_empty())
    }
}

/// Without Bedrock's `-v1`, `-v2:0` or `-v1:0:200k`.
fn without_revision(model: &str) -> &str {
    let Some((name, revision)) = model.rsplit_once("-v") else {
        return model;
    };
    let is_revision = revision.starts_with(|c: char| c.is_ascii_digit())
        && revision
            .chars()
            .all(|c| c.is_ascii_digit() || c == ':' || c == 'k');
    if is_revision { name } else { model }
}

/// `@` before a date and `.` inside a version are hyphens with the maker.
fn hyphens(model: &str) -> String {
    let mut out = String::with_capacity(model.len());
    let mut rest = model.chars().peekable();
    let mut digit = false;
    while let Some(c) = rest.next() {
        let before_digit = rest.peek().is_some_and(char::is_ascii_digit);
        let joins = before_digit && (c == '@' || (c == '.' && digit));
        out.push(if joins { '-' } else { c });
        digit = c.is_ascii_digit();
    }
    out
}

/// The name before a date.
fn undated(base: &str) -> Option<&str> {
    let (name, date) = base.rsplit_once('-')?;
    is_date(date).then_some(name)
}

fn is_date(text: &str) -> bool {
    text.len() == 8 && text.starts_with("20") && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The one row that is this name with a date; `None` if there are several.
fn only_dated<'a>(keys: &'a BTreeMap<String, String>, base: &str) -> Option<&'a String> {
    let start = format!("{base}-");
    let mut dated = keys
        .range(start.clone()..)
        .take_while(|(key, _)| key.starts_with(&start))
        .filter(|(key, _)| is_date(&key[start.len()..]))
        .map(|(_, row)| row);
    let first = dated.next()?;
    dated.next().is_none().then_some(first)
}
