//! Agents that somebody defined: `.claude/agents/*.md`, with front matter and their prompt.

use std::fs;
use std::path::{Path, PathBuf};

use crate::front::Front;
use crate::permission::Mode;
use crate::settings;

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
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
    /// The mode it runs in. A folder that is not trusted sets none, and none bypasses questions.
    pub mode: Option<Mode>,
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
pub struct Definitions {
    /// By name.
    pub list: Vec<Definition>,
    /// File and reason.
    pub faults: Vec<(PathBuf, String)>,
}

impl Definitions {
    /// Reads the agents of a folder and of the user; the folder's win.
    pub fn find(config: &Path, project: &Path, trusted: bool) -> Definitions {
        let mut all = Definitions::default();
        for folder in folders(project) {
            all.take_all(&folder.join(".claude/agents"), Some(trusted));
        }
        all.take_all(&config.join("agents"), None);
        all.list.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The agent of a name.
    pub fn named(&self, name: &str) -> Option<&Definition> {
        self.list.iter().find(|one| one.name == name)
    }

    fn take_all(&mut self, folder: &Path, of_folder: Option<bool>) {
        for path in markdown(folder) {
            match read(&path, of_folder) {
                Ok(new) if self.named(&new.name).is_none() => self.list.push(new),
                Ok(_) => {}
                Err(why) => self.faults.push((path, why)),
            }
        }
    }
}

/// The folder and the top of its working tree.
pub(crate) fn folders(project: &Path) -> Vec<PathBuf> {
    let root = settings::root(project);
    let mut all = vec![project.to_path_buf()];
    if root != project {
        all.push(root);
    }
    all
}

/// All Markdown files below a folder, by name. Links to folders are not followed.
pub(crate) fn markdown(folder: &Path) -> Vec<PathBuf> {
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

fn read(path: &Path, of_folder: Option<bool>) -> Result<Definition, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let (front, body) = Front::split(&text);
    let need = |key: &str| {
        let text = front.text(key).filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("it has no {key}"))
    };
    let mode = front
        .text("permissionMode")
        .and_then(|mode| Mode::read(&mode));
    let mode = mode.map(|(mode, _)| mode).filter(|mode| match of_folder {
        Some(trusted) => trusted && *mode != Mode::Bypass,
        None => true,
    });
    // Which model is spoken to, and paid for, is not for a stranger to say.
    let heard = of_folder != Some(false);
    let model = front
        .text("model")
        .filter(|model| heard && model != "inherit");
    Ok(Definition {
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
        let all = Definitions::find(&temp.path().join("c"), &temp.path().join("p"), true);
        let one = all.named("review").unwrap();
        assert_eq!(one.description, "Looks: closely");
        assert_eq!(one.tools.as_deref().unwrap(), ["Read", "Grep"]);
        assert_eq!((one.mode, one.max_turns), (Some(Mode::Plan), Some(5)));
        assert_eq!((one.prompt.as_str(), one.of_folder), ("Look.", true));
        assert_eq!(all.faults[0].1, "it has no description");
        assert_eq!(all.list.len(), 1);
    }

    #[test]
    fn a_folder_cannot_choose_the_model_of_an_agent_before_it_is_trusted() {
        let temp = tempfile::tempdir().unwrap();
        let text = "---\nname: a\ndescription: d\nmodel: opus\n---\nx";
        write(temp.path(), "p/.claude/agents/a.md", text);
        let model = |trusted| {
            let all = Definitions::find(&temp.path().join("c"), &temp.path().join("p"), trusted);
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
        let modes = |trusted| -> Vec<Option<Mode>> {
            let all = Definitions::find(&temp.path().join("c"), &temp.path().join("p"), trusted);
            all.list.into_iter().map(|one| one.mode).collect()
        };
        assert_eq!(modes(false), [None, None]);
        assert_eq!(modes(true), [Some(Mode::AcceptEdits), None]);
    }
}
