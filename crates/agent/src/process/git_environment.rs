//! Variables with which git runs no program that a repository names by itself.
//!
//! For commands that a rule allows and nobody looked at: no hooks, no `core.fsmonitor`, no pager, and
//! no repository that is only a folder of ordinary files. A person who says yes to a command gets it
//! as they would type it, hooks included.

/// What git is told, on top of its configuration.
const CONFIGURATION: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", ""),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
];

/// The variables. `before` looks up what a command would get without them: entries that somebody
/// gave git this way stay, ours stand behind them and win.
pub fn variables(before: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let count = before("GIT_CONFIG_COUNT").and_then(|count| count.trim().parse().ok());
    let first: usize = count.unwrap_or(0);
    let mut variables = vec![
        (
            "GIT_CONFIG_COUNT".to_owned(),
            (first + CONFIGURATION.len()).to_string(),
        ),
        ("GIT_PAGER".to_owned(), "cat".to_owned()),
    ];
    for (index, (key, value)) in CONFIGURATION.iter().enumerate() {
        let number = first + index;
        variables.push((format!("GIT_CONFIG_KEY_{number}"), (*key).to_owned()));
        variables.push((format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_gave_git_stays_and_ours_comes_behind_it() {
        let value = |all: &[(String, String)], name: &str| {
            let found = all.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.clone())
        };
        let alone = variables(|_| None);
        assert_eq!(value(&alone, "GIT_CONFIG_COUNT").as_deref(), Some("4"));
        assert_eq!(
            value(&alone, "GIT_CONFIG_KEY_0").as_deref(),
            Some("safe.bareRepository")
        );
        let behind = variables(|name| (name == "GIT_CONFIG_COUNT").then(|| "2".to_owned()));
        assert_eq!(value(&behind, "GIT_CONFIG_COUNT").as_deref(), Some("6"));
        assert_eq!(value(&behind, "GIT_CONFIG_KEY_0"), None);
        assert_eq!(value(&behind, "GIT_CONFIG_VALUE_3").as_deref(), Some(""));
    }
}
