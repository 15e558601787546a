//! Names of models: what providers add to them, and which row a name means.

use std::collections::BTreeMap;

/// The row that a name means, other than by being its name.
pub fn find<'a>(keys: &'a BTreeMap<String, String>, model: &str) -> Option<&'a str> {
    let ModelNameParts { region, base } = ModelNameParts::of(model)?;
    let Some(region) = region else {
        return listed(keys, &base);
    };
    let anywhere = || {
        // Where some regions have prices of their own, another one has too; which is unknown.
        let plain = region == GLOBAL || !differs_by_region(keys, &base);
        plain.then(|| listed(keys, &base)).flatten()
    };
    listed(keys, &format!("{region}.{base}")).or_else(anywhere)
}

/// All rows that are this name with a date, in the order of their dates.
pub fn dated<'a>(keys: &'a BTreeMap<String, String>, model: &str) -> Vec<&'a str> {
    match ModelNameParts::of(model) {
        Some(ModelNameParts { region: None, base }) => {
            with_dates(keys, &base).map(|row| &**row).collect()
        }
        _ => Vec::new(),
    }
}

/// A name without something at its end, if it has that.
pub fn without(model: &str, end: &str) -> Option<String> {
    let name = model.split_once('[').map_or(model, |(name, _)| name);
    let name = name.trim_end().strip_suffix(end)?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// A Claude model's name with the version where it used to stand, or where it stands now:
/// `claude-sonnet-4-5` for `claude-4.5-sonnet`, `claude-3-7-sonnet` for `claude-sonnet-3-7`,
/// and `claude-opus-4` for `claude-opus-4-0`.
pub fn reordered(model: &str) -> Option<String> {
    let ModelNameParts { region, base } = ModelNameParts::of(model)?;
    let rest = base.strip_prefix("claude-")?;
    let is_number = |part: &&str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = rest.split('-').collect();
    let name = match &parts[..] {
        [family, version @ ..] if is_family(family) => {
            let numbers = version.iter().take_while(|part| is_number(part)).count();
            let (numbers, more) = version.split_at(numbers);
            match numbers {
                [major, "0"] => [&[*family, major], more].concat(),
                [_, ..] => [numbers, &[*family], more].concat(),
                [] => return None,
            }
        }
        version => {
            let numbers = version.iter().take_while(|part| is_number(part)).count();
            let (numbers, rest) = version.split_at(numbers);
            match (numbers, rest) {
                ([], _) | (_, []) => return None,
                ([major, "0"], [family, more @ ..]) if is_family(family) => {
                    [&[*family, major], more].concat()
                }
                (numbers, [family, more @ ..]) if is_family(family) => {
                    [&[*family], numbers, more].concat()
                }
                _ => return None,
            }
        }
    };
    let name = format!("claude-{}", name.join("-"));
    Some(match region {
        Some(region) => format!("{region}.{VENDOR}{name}"),
        None => name,
    })
}

fn is_family(part: &str) -> bool {
    matches!(part, "opus" | "sonnet" | "haiku")
}

/// The row of a name, with or without its date.
fn listed<'a>(keys: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let undated = || undated(name).and_then(|name| keys.get(name));
    keys.get(name)
        .or_else(undated)
        .or_else(|| only_dated(keys, name))
        .map(String::as_str)
}

/// Whether any region has a price of its own for this model.
fn differs_by_region(keys: &BTreeMap<String, String>, base: &str) -> bool {
    let plain = undated(base).unwrap_or(base);
    keys.keys()
        .filter_map(|key| key.split_once('.'))
        .any(|(_, name)| undated(name).unwrap_or(name) == plain)
}

/// The rows by the names they can be found with.
pub fn keys<'a>(rows: impl Iterator<Item = &'a String>) -> BTreeMap<String, String> {
    let mut ranked: BTreeMap<String, (u8, &str)> = BTreeMap::new();
    for row in rows {
        let Some((rank, name)) = rank(row).zip(ModelNameParts::of(row)) else {
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

/// The region that is everywhere, and costs what the maker takes.
const GLOBAL: &str = "global";

/// A name taken apart.
struct ModelNameParts {
    /// `us` of `us.anthropic.…`, which can cost more.
    region: Option<String>,
    /// The model and perhaps its date: `claude-sonnet-4-5-20250929`.
    base: String,
}

impl ModelNameParts {
    fn of(model: &str) -> Option<ModelNameParts> {
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
        // Bedrock numbers the offers of a Claude model. With other makers a `-v3` is the model.
        let is_claude = model.to_ascii_lowercase().contains("claude");
        let model = if is_claude {
            without_revision(model)
        } else {
            model
        };
        let model = model.strip_suffix("-latest").unwrap_or(model);
        Some(ModelNameParts {
            region: region.map(str::to_owned),
            base: hyphens(model).to_ascii_lowercase(),
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
    let mut dated = with_dates(keys, base);
    let first = dated.next()?;
    dated.next().is_none().then_some(first)
}

fn with_dates<'a>(
    keys: &'a BTreeMap<String, String>,
    base: &str,
) -> impl Iterator<Item = &'a String> {
    let start = format!("{base}-");
    let end = start.clone();
    keys.range(start.clone()..)
        .take_while(move |(key, _)| key.starts_with(&end))
        .filter(move |(key, _)| is_date(&key[start.len()..]))
        .map(|(_, row)| row)
}
