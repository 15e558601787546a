//! Agents that somebody defined: `.claude/agents/*.md`, with front matter and their prompt.

use std::fs;
use std::path::{Path, PathBuf};

use crate::folder_files::{self, SkippedFileReason};
use crate::front_matter::FrontMatter;
use crate::permission::PermissionMode;
use crate::settings;

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDefinition {
    /// What it is called.
    pub name: String,
    /// When it is useful.
    pub description: String,
    /// The tools it has; all if nobody says.
    pub tools: Option<Vec<String>>,
    /// Tools it does not have.
    pub disallowed: Vec<String>,
    /// Its model; `inherit` and none mean that of whoever starts it.
    pub model: Option<String>,
    /// The mode it wants to run in. That of a folder counts where it allows no more than the mode
    /// of whoever starts it; one that is not trusted sets none, and none bypasses questions.
    pub mode: Option<PermissionMode>,
    /// How many turns it may take.
    pub max_turns: Option<u32>,
    /// What it is told.
    pub prompt: String,
    /// Its file.
    pub path: PathBuf,
    /// Whether it comes with the folder.
    pub of_folder: bool,
}

/// All agents, and files that could not be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDefinitions {
    /// By name.
    pub list: Vec<AgentDefinition>,
    /// File and reason.
    pub faults: Vec<(PathBuf, String)>,
}

impl AgentDefinitions {
    /// Reads the agents of a folder and of the user; the folder's win. Links of the folder have
    /// to stay within `boundary`.
    pub fn find(config: &Path, project: &Path, boundary: &Path, trusted: bool) -> AgentDefinitions {
        let mut all = AgentDefinitions::default();
        for (folder, within) in folders(config, project, boundary) {
            all.take_all(&folder.join("agents"), Some(&within), Some(trusted));
        }
        all.take_all(&config.join("agents"), None, None);
        all.list.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The agent of a name.
    pub fn named(&self, name: &str) -> Option<&AgentDefinition> {
        self.list.iter().find(|one| one.name == name)
    }

    fn take_all(&mut self, folder: &Path, within: Option<&Path>, of_folder: Option<bool>) {
        for path in markdown(folder, within, &mut self.faults) {
            let text = match folder_files::read_text(&path, within, LONGEST) {
                Ok(text) => text,
                Err(why) => {
                    self.faults
                        .extend(folder_files::describe_skipped_file(&path, within, &why));
                    continue;
                }
            };
            match read(&path, &text, of_folder) {
                Ok(new) if self.named(&new.name).is_none() => self.list.push(new),
                Ok(_) => {}
                Err(why) => self.faults.push((path, why)),
            }
        }
    }
}

/// Nobody writes an agent, a command or a skill longer than this.
pub(crate) const LONGEST: u64 = 1 << 20;

/// `.claude` of a folder and of the top of its working tree, each with the folder that its links
/// have to stay within. The person's own folder is not the project's as well.
pub(crate) fn folders(config: &Path, project: &Path, boundary: &Path) -> Vec<(PathBuf, PathBuf)> {
    let root = settings::root(project);
    let own = fs::canonicalize(config).ok();
    let mut all = Vec::new();
    for folder in [project, root.as_path()] {
        let claude = folder.join(".claude");
        let is_own = own.is_some() && fs::canonicalize(&claude).ok() == own;
        if is_own || all.iter().any(|(known, _)| *known == claude) {
            continue;
        }
        let within = match folder.starts_with(boundary) {
            true => boundary,
            false => folder,
        };
        all.push((claude, within.to_path_buf()));
    }
    all
}

/// All Markdown files below a folder, by name. Links to folders are not followed; where the folder
/// itself leads out of `within`, nothing is read and `left_out` says so.
pub(crate) fn markdown(
    folder: &Path,
    within: Option<&Path>,
    left_out: &mut Vec<(PathBuf, String)>,
) -> Vec<PathBuf> {
    if within.is_some_and(|within| folder_files::leaves(folder, within)) {
        left_out.extend(folder_files::describe_skipped_file(
            folder,
            within,
            &SkippedFileReason::Outside,
        ));
        return Vec::new();
    }
    let mut all = Vec::new();
    let mut left = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = left.pop() {
        for entry in unspool_store::read_folder::entries(&folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth < 8 {
                left.push((path, depth + 1));
            } else if path.extension().is_some_and(|end| end == "md") && path.is_file() {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

fn read(path: &Path, text: &str, of_folder: Option<bool>) -> Result<AgentDefinition, String> {
    let (front, body) = FrontMatter::split(text);
    let need = |key: &str| {
        let text = front.text(key).filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("missing {key}"))
    };
    let mode = front
        .text("permissionMode")
        .and_then(|mode| PermissionMode::read(&mode));
    let mode = mode.map(|(mode, _)| mode).filter(|mode| match of_folder {
        Some(trusted) => trusted && *mode != PermissionMode::Bypass,
        None => true,
    });
    // Which model is spoken to, and paid for, is not for a stranger to say.
    let heard = of_folder != Some(false);
    let model = front
        .text("model")
        .filter(|model| heard && model != "inherit");
    Ok(AgentDefinition {
        name: need("name")?,
        description: need("description")?,
        tools: front.list("tools").filter(|tools| tools != &["*"]),
        disallowed: front.list("disallowedTools").unwrap_or_default(),
        model,
        mode,
        max_turns: front.text("maxTurns").and_then(|turns| turns.parse().ok()),
        prompt: body.trim_end().to_owned(),
        path: path.to_path_buf(),
        of_folder: of_folder.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn find(root: &Path, trusted: bool) -> AgentDefinitions {
        let project = root.join("p");
        AgentDefinitions::find(&root.join("c"), &project, &project, trusted)
    }

    #[test]
    fn an_agent_behind_a_link_that_leaves_the_project_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        write(
            temp.path(),
            "outside/a.md",
            "---\nname: a\ndescription: secret\n---\nsecret",
        );
        write(
            temp.path(),
            "p/docs/b.md",
            "---\nname: b\ndescription: d\n---\nx",
        );
        fs::create_dir_all(temp.path().join("p/.claude/agents")).unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, temp.path().join(name)).unwrap();
        };
        link("../../../outside/a.md", "p/.claude/agents/a.md");
        link("../../docs/b.md", "p/.claude/agents/b.md");
        let all = find(temp.path(), true);
        let names: Vec<&str> = all.list.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["b"]);
        assert_eq!(all.faults.len(), 1);
        assert!(all.faults[0].0.ends_with("agents/a.md"), "{:?}", all.faults);
    }

    #[test]
    fn an_agent_has_a_name_a_description_and_a_prompt() {
        let temp = tempfile::tempdir().unwrap();
        write(
            temp.path(),
            "p/.claude/agents/review/r.md",
            "---\nname: review\ndescription: Looks: closely\ntools: Read, Grep\nmodel: haiku\n\
             permissionMode: plan\nmaxTurns: 5\n---\n\nLook.\n",
        );
        write(
            temp.path(),
            "c/agents/review.md",
            "---\nname: review\ndescription: mine\n---\nx",
        );
        write(temp.path(), "c/agents/bad.md", "---\nname: bad\n---\nx");
        let all = find(temp.path(), true);
        let one = all.named("review").unwrap();
        assert_eq!(one.description, "Looks: closely");
        assert_eq!(one.tools.as_deref().unwrap(), ["Read", "Grep"]);
        assert_eq!(
            (one.mode, one.max_turns),
            (Some(PermissionMode::Plan), Some(5))
        );
        assert_eq!((one.prompt.as_str(), one.of_folder), ("Look.", true));
        assert_eq!(all.faults[0].1, "missing description");
        assert_eq!(all.list.len(), 1);
    }

    #[test]
    fn a_folder_cannot_choose_the_model_of_an_agent_before_it_is_trusted() {
        let temp = tempfile::tempdir().unwrap();
        let text = "---\nname: a\ndescription: d\nmodel: opus\n---\nx";
        write(temp.path(), "p/.claude/agents/a.md", text);
        let model = |trusted| {
            let all = find(temp.path(), trusted);
            all.list[0].model.clone()
        };
        assert_eq!(model(false), None);
        assert_eq!(model(true).as_deref(), Some("opus"));
    }

    #[test]
    fn a_folder_cannot_give_an_agent_more_rights_before_it_is_trusted_and_never_all() {
        let temp = tempfile::tempdir().unwrap();
        let text =
            |mode| format!("---\nname: {mode}\ndescription: d\npermissionMode: {mode}\n---\n");
        write(temp.path(), "p/.claude/agents/a.md", &text("acceptEdits"));
        write(
            temp.path(),
            "p/.claude/agents/b.md",
            &text("bypassPermissions"),
        );
        let modes = |trusted| -> Vec<Option<PermissionMode>> {
            let all = find(temp.path(), trusted);
            all.list.into_iter().map(|one| one.mode).collect()
        };
        assert_eq!(modes(false), [None, None]);
        assert_eq!(modes(true), [Some(PermissionMode::AcceptEdits), None]);
    }
}
