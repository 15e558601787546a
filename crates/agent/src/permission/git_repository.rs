//! Which repository git would use in a folder, found as git finds it, without running git.
//!
//! A repository runs programs that its configuration names (`core.fsmonitor`, filters, hooks), and a
//! folder of ordinary files can be one: a bare repository needs only `HEAD`, `objects` and `refs`.
//! So git runs unasked only where it finds the repository of the project itself.

use std::fs;
use std::path::{Path, PathBuf};

use super::path::{cleaned, real};
use crate::folder_files;

/// A file named `.git` holds one path.
const LONGEST: u64 = 64 << 10;

/// What git finds when it looks upwards from a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FoundRepository {
    /// Nothing.
    Nothing,
    /// A folder with `.git`, and where that leads.
    WorkTree { top: PathBuf, git_dir: PathBuf },
    /// A folder that is a git directory itself.
    Bare(PathBuf),
}

/// Why git in this folder would not use the repository of the project; `None` if it does.
pub(super) fn foreign(project: &Path, cwd: &Path) -> Option<String> {
    let own = find(project);
    let found = find(cwd);
    match (&own, &found) {
        (_, FoundRepository::Bare(folder)) => Some(format!(
            "{} is a bare repository, and git would run programs that its configuration names",
            folder.display()
        )),
        (FoundRepository::WorkTree { top, git_dir }, _) if own == found => {
            // A git directory among the files of the project came with them.
            let hides = git_dir.starts_with(top) && *git_dir != top.join(".git");
            hides.then(|| {
                format!(
                    "the git directory {} is among the project's files",
                    git_dir.display()
                )
            })
        }
        _ if own == found => None,
        (_, FoundRepository::WorkTree { top, .. }) => Some(format!(
            "{} is another repository than the project's, and git would run programs that its configuration names",
            top.display()
        )),
        (_, FoundRepository::Nothing) => Some(format!(
            "{} is outside the project's repository",
            cwd.display()
        )),
    }
}

fn find(from: &Path) -> FoundRepository {
    let from = real(from).unwrap_or_else(|| cleaned(from));
    for folder in from.ancestors() {
        let entry = folder.join(".git");
        if let Some(git_dir) = git_dir(&entry) {
            return FoundRepository::WorkTree {
                top: folder.to_path_buf(),
                git_dir,
            };
        }
        if is_git_dir(folder) {
            return FoundRepository::Bare(folder.to_path_buf());
        }
    }
    FoundRepository::Nothing
}

/// Where an entry named `.git` leads; `None` if git passes over it.
fn git_dir(entry: &Path) -> Option<PathBuf> {
    let about = fs::metadata(entry).ok()?;
    if about.is_dir() {
        let folder = real(entry)?;
        return is_git_dir(&folder).then_some(folder);
    }
    // `gitdir: PATH`. Whatever else stands there, git does not look further up.
    let text = folder_files::read_text(entry, None, LONGEST).unwrap_or_default();
    let path = text.strip_prefix("gitdir:").unwrap_or_default().trim();
    let base = entry.parent().unwrap_or(entry);
    Some(real(&base.join(path)).unwrap_or_else(|| entry.to_path_buf()))
}

/// Whether git would take a folder for a git directory; rather once too often.
fn is_git_dir(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git_directory(at: &Path) {
        fs::create_dir_all(at.join("objects")).unwrap();
        fs::create_dir_all(at.join("refs")).unwrap();
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    fn project() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(temp.path()).unwrap().join("project");
        git_directory(&top.join(".git"));
        fs::create_dir_all(top.join("src/deep")).unwrap();
        (temp, top)
    }

    #[test]
    fn a_folder_below_the_project_uses_its_repository() {
        let (_temp, top) = project();
        for cwd in [top.clone(), top.join("src"), top.join("src/deep")] {
            assert_eq!(foreign(&top, &cwd), None, "{}", cwd.display());
        }
        // A session that began below the top of its repository.
        assert_eq!(foreign(&top.join("src"), &top.join("src/deep")), None);
        assert_eq!(foreign(&top.join("src"), &top), None);
    }

    #[test]
    fn another_repository_is_foreign_however_it_is_shipped() {
        let (_temp, top) = project();
        git_directory(&top.join("bare"));
        git_directory(&top.join("nested/.git"));
        fs::create_dir_all(top.join("pointed")).unwrap();
        fs::write(top.join("pointed/.git"), "gitdir: ../bare\n").unwrap();
        fs::create_dir_all(top.join("shared")).unwrap();
        fs::write(top.join("shared/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(top.join("shared/commondir"), "../bare\n").unwrap();
        std::os::unix::fs::symlink(top.join("bare"), top.join("src/link")).unwrap();
        fs::create_dir_all(top.join("bare/below")).unwrap();
        let folders = [
            "bare",
            "bare/below",
            "nested",
            "pointed",
            "shared",
            "src/link",
            ".git",
            "..",
        ];
        for folder in folders {
            assert!(foreign(&top, &top.join(folder)).is_some(), "{folder}");
        }
        // Also where the session began.
        assert!(foreign(&top.join("bare"), &top.join("bare")).is_some());
    }

    #[test]
    fn a_worktree_elsewhere_is_the_projects_own_and_one_among_its_files_is_not() {
        let (temp, top) = project();
        git_directory(&top.join(".git/worktrees/two"));
        let two = fs::canonicalize(temp.path()).unwrap().join("two");
        fs::create_dir_all(two.join("src")).unwrap();
        let pointer = format!("gitdir: {}\n", top.join(".git/worktrees/two").display());
        fs::write(two.join(".git"), pointer).unwrap();
        assert_eq!(foreign(&two, &two.join("src")), None);
        git_directory(&two.join("theme"));
        fs::write(two.join(".git"), "gitdir: theme\n").unwrap();
        assert!(foreign(&two, &two.join("src")).is_some());
    }
}
