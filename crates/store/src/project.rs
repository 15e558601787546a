//! Which project a session belongs to, and the name of its folder.
//!
//! The folder's name is made from the path of the project but loses characters, so it is
//! never decoded: the project is the first working directory that the lines name.

use unspool_model::session::Session;

/// How many characters of a path the client keeps in the name of a folder.
const KEPT: usize = 200;

/// The folder that the client makes for sessions started in `path`.
///
/// Every UTF-16 unit that is not an ASCII letter or digit becomes a dash. From 2.1.100 on
/// long names are cut and end in a hash of the path.
pub fn slug(path: &str) -> String {
    let dashed = |unit: u16| match char::from_u32(u32::from(unit)) {
        Some(kept) if kept.is_ascii_alphanumeric() => kept,
        _ => '-',
    };
    let all: String = path.encode_utf16().map(dashed).collect();
    match all.get(..KEPT) {
        Some(start) if all.len() > KEPT => format!("{start}-{}", base36(hash(path))),
        _ => all,
    }
}

/// `String.hashCode` of Java, without its sign.
fn hash(path: &str) -> u32 {
    let step = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    path.encode_utf16().fold(0, step).unsigned_abs()
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The project a working directory belongs to: itself, or the main one of a worktree that
/// the client made (`…/.claude/worktrees/NAME`).
pub fn project_of(cwd: &str) -> &str {
    for inside in ["/.claude/worktrees/", "\\.claude\\worktrees\\"] {
        match cwd.find(inside) {
            Some(at) if at > 0 => return &cwd[..at],
            _ => {}
        }
    }
    cwd
}

/// What to call a project: the last part of its path, whichever separators it uses.
pub fn project_name(path: &str) -> &str {
    let last = path.rsplit(['/', '\\']).find(|part| !part.is_empty());
    last.unwrap_or(path)
}

/// The project of a session: of the first directory its lines name, else its folder's name.
pub fn project<'a>(session: &'a Session, folder: &'a str) -> &'a str {
    let first = session.cwds.iter().next();
    first.map_or(folder, |(cwd, _)| project_of(cwd))
}

/// A form in which equal places are equal: without separators at the end, and for Windows
/// with a large drive letter and one kind of separator.
pub fn path_comparison_key(path: &str) -> String {
    let trimmed = path.trim_end_matches(['/', '\\']);
    let kept = if trimmed.is_empty() { path } else { trimmed };
    match kept.as_bytes() {
        [drive, b':', ..] if drive.is_ascii_alphabetic() => {
            format!("{}{}", drive.to_ascii_uppercase() as char, &kept[1..]).replace('/', "\\")
        }
        _ => kept.to_owned(),
    }
}

/// Whether two paths name the same place, as far as their text tells.
pub fn same_path(a: &str, b: &str) -> bool {
    path_comparison_key(a) == path_comparison_key(b)
}

/// Whether a person who writes `wanted` means this project: its name, its directory, or a
/// part of it.
pub fn project_matches(project: &str, wanted: &str) -> bool {
    project_name(project).eq_ignore_ascii_case(wanted)
        || same_path(project, wanted)
        || project.to_lowercase().contains(&wanted.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_as_the_client_names_it() {
        let cases = [
            ("with.dot", "with-dot"),
            ("under_score", "under-score"),
            ("with space", "with-space"),
            ("ünïcode-日本", "-n-code---"),
            ("emoji😀x", "emoji--x"),
            ("a+b=c@d,e'f(g)[h]~!#$%&", "a-b-c-d-e-f-g--h-------"),
            ("/home/Dev/x9", "-home-Dev-x9"),
            ("E:\\workspaces\\project", "E--workspaces-project"),
            ("E:\\x", "E--x"),
            ("", ""),
        ];
        for (path, folder) in cases {
            assert_eq!(slug(path), folder, "{path}");
        }
    }

    #[test]
    fn a_long_name_is_cut_and_ends_in_a_hash_of_the_path() {
        let path = |length: usize| format!("/{}", "a".repeat(length - 1));
        assert_eq!(slug(&path(200)).len(), 200);
        let long = slug(&path(201));
        assert_eq!(long, format!("-{}-{}", "a".repeat(199), "b6ymvl"));
        // The hash is that of the path, so paths with one slug differ.
        let other = slug(&format!("/{}_é", "a".repeat(205)));
        assert_eq!(other, format!("-{}-{}", "a".repeat(199), "vbcam4"));
    }

    #[test]
    fn a_worktree_belongs_to_its_main_project() {
        let cases = [
            ("/p/app/.claude/worktrees/wt1", "/p/app"),
            ("/p/app/.claude/worktrees/wt1/src", "/p/app"),
            ("C:\\p\\.claude\\worktrees\\a", "C:\\p"),
            ("/p/app", "/p/app"),
            ("/.claude/worktrees/x", "/.claude/worktrees/x"),
        ];
        for (cwd, project) in cases {
            assert_eq!(project_of(cwd), project);
        }
    }

    #[test]
    fn a_project_is_called_by_the_last_part_of_its_path() {
        let cases = [
            ("/home/dev/app/", "app"),
            ("E:\\workspaces\\project", "project"),
            ("C:\\mixed/way", "way"),
            ("/", "/"),
            ("-home-dev", "-home-dev"),
        ];
        for (path, name) in cases {
            assert_eq!(project_name(path), name);
        }
    }

    #[test]
    fn drive_letters_compare_without_case() {
        assert!(same_path("c:\\Users\\x", "C:\\Users\\x\\"));
        assert!(same_path("C:/Users/x", "c:\\Users\\x"));
        assert!(!same_path("c:\\users\\x", "C:\\Users\\x"));
        assert!(same_path("/a/b/", "/a/b") && !same_path("/a/B", "/a/b"));
        assert!(same_path("/", "/") && !same_path("/", ""));
    }
}
