//! Variables with which git runs no program that a repository names by itself.
//!
//! For commands that a rule allows and nobody looked at: no hooks, no `core.fsmonitor`, no pager, and
//! no repository that is only a folder of ordinary files. A person who says yes to a command gets it
//! as they would type it, hooks included.

/// No repository that is only a folder of files. Package managers keep such repositories in their
/// caches and run git there, so this is only for commands that name git themselves.
const NOT_BARE: (&str, &str) = ("safe.bareRepository", "explicit");

/// What git is told, on top of its configuration.
const CONFIGURATION: &[(&str, &str)] = &[
    ("core.fsmonitor", ""),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
];

/// The variables for a command. `before` looks up what it would get without them: entries that
/// somebody gave git this way stay, ours stand behind them and win.
pub fn variables(command: &str, before: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut configuration = CONFIGURATION.to_vec();
    if command.contains("git") {
        configuration.push(NOT_BARE);
    }
    let count = before("GIT_CONFIG_COUNT").and_then(|count| count.trim().parse().ok());
    let first: usize = count.unwrap_or(0);
    let mut variables = vec![
        (
            "GIT_CONFIG_COUNT".to_owned(),
            (first + configuration.len()).to_string(),
        ),
        ("GIT_PAGER".to_owned(), "cat".to_owned()),
    ];
    for (index, (key, value)) in configuration.iter().enumerate() {
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
        let alone = variables("git status", |_| None);
        assert_eq!(value(&alone, "GIT_CONFIG_COUNT").as_deref(), Some("4"));
        assert_eq!(
            value(&alone, "GIT_CONFIG_KEY_3").as_deref(),
            Some("safe.bareRepository")
        );
        // Another program may keep bare repositories of its own.
        let other = variables("cargo build", |_| None);
        assert_eq!(value(&other, "GIT_CONFIG_COUNT").as_deref(), Some("3"));
        let two = |name: &str| (name == "GIT_CONFIG_COUNT").then(|| "2".to_owned());
        let behind = variables("git status", two);
        assert_eq!(value(&behind, "GIT_CONFIG_COUNT").as_deref(), Some("6"));
        assert_eq!(value(&behind, "GIT_CONFIG_KEY_0"), None);
        assert_eq!(value(&behind, "GIT_CONFIG_VALUE_2").as_deref(), Some(""));
    }
}
