//! One rule: `Tool` or `Tool(what)`, in the syntax of the original.

use std::path::Path;

use super::glob::GlobPattern as Glob;
use super::path::{PathPattern as Paths, ResolvedPath};
use crate::settings::{RuleKind, SettingSource, WrittenRule};

/// A rule that was understood.
#[derive(Clone, Debug)]
pub struct PermissionRule {
    /// What it wants.
    pub kind: RuleKind,
    /// As it was written.
    pub text: String,
    /// Where.
    pub source: SettingSource,
    /// The tool it names, by its name today.
    pub tool: String,
    /// Which uses of the tool.
    pub what: RuleTarget,
}

/// Which uses of a tool a rule means.
#[derive(Clone, Debug)]
pub enum RuleTarget {
    /// All.
    All,
    /// Commands of a shape.
    Command(Glob),
    /// Files.
    Paths(Paths),
    /// Pages of a host.
    Host(Glob),
    /// Agents or skills of a name.
    Name(Glob),
    /// Something that only another client understands.
    Unknown,
}

/// Tools that change files.
pub const EDITS: &[&str] = &["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// Tools that read files.
pub const READS: &[&str] = &["Read", "Glob", "Grep", "LS", "NotebookRead"];

/// The name a tool has today.
pub fn current_tool_name(tool: &str) -> &str {
    match tool {
        "Task" => "Agent",
        "SlashCommand" => "Skill",
        tool => tool,
    }
}

impl PermissionRule {
    /// Reads a rule; `cwd` and `home` are what paths in it may be relative to.
    pub fn read(written: &WrittenRule, cwd: &Path, home: &Path) -> Result<PermissionRule, String> {
        let text = written.text.trim();
        let (tool, spec) = match text.split_once('(') {
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(spec) => (tool, Some(spec)),
                None => return Err(format!("the rule {text} does not end with `)`")),
            },
            None => (text, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-*.".contains(c);
        if tool.is_empty() || !tool.chars().all(is_name) {
            return Err(format!("the rule {text} does not begin with a tool name"));
        }
        if written.kind == RuleKind::Allow && is_too_wide(tool) {
            return Err(format!(
                "the rule {text} is too broad to allow: name the tools"
            ));
        }
        let tool = current_tool_name(tool).to_owned();
        let what = match spec.map(str::trim) {
            None | Some("*" | ":*") => RuleTarget::All,
            Some("") => return Err(format!("the rule {text} is empty between ( and )")),
            Some(spec) => what(&tool, spec, &written.base, cwd, home)?,
        };
        Ok(PermissionRule {
            kind: written.kind,
            text: text.to_owned(),
            source: written.source.clone(),
            tool,
            what,
        })
    }

    /// Whether it speaks of a tool at all. Rules for editing speak of all that edits, and rules
    /// for reading of all that reads; what allows one of the others allows only that one.
    pub fn names(&self, tool: &str) -> bool {
        let tool = current_tool_name(tool);
        if self.tool == tool {
            return true;
        }
        let strict = self.kind != RuleKind::Allow;
        for (family, head) in [(EDITS, "Edit"), (READS, "Read")] {
            let is_of = |name: &str| family.contains(&name);
            if is_of(tool) && (self.tool == head || (strict && head == "Edit" && is_of(&self.tool)))
            {
                return true;
            }
        }
        if self.tool.contains('*') {
            return Glob::read(&self.tool).fits(tool);
        }
        // A server without a tool means all its tools.
        let server = self.tool.strip_prefix("mcp__");
        server.is_some_and(|server| !server.contains("__"))
            && tool
                .strip_prefix(self.tool.as_str())
                .is_some_and(|rest| rest.starts_with("__"))
    }

    /// Whether it means a file.
    pub fn fits_file(&self, place: &ResolvedPath) -> bool {
        match &self.what {
            RuleTarget::All => true,
            RuleTarget::Paths(paths) if self.kind == RuleKind::Allow => paths.fits_both(place),
            RuleTarget::Paths(paths) => paths.fits_either(place),
            RuleTarget::Unknown => self.kind != RuleKind::Allow,
            _ => false,
        }
    }

    /// Whether it means a name: of an agent, a skill or a host. `None` is a name nobody knows.
    pub fn fits_name(&self, name: Option<&str>) -> bool {
        match (&self.what, name) {
            (RuleTarget::All, _) => true,
            (RuleTarget::Host(glob) | RuleTarget::Name(glob), Some(name)) => glob.fits(name),
            (RuleTarget::Host(_) | RuleTarget::Name(_), None) | (RuleTarget::Unknown, _) => {
                self.kind != RuleKind::Allow
            }
            _ => false,
        }
    }
}

/// Whether a name with stars would allow more than one server: the server must be named whole.
fn is_too_wide(tool: &str) -> bool {
    let Some(star) = tool.find('*') else {
        return false;
    };
    let server = tool[..star].strip_prefix("mcp__").unwrap_or_default();
    server.find("__").unwrap_or(0) == 0
}

fn what(
    tool: &str,
    spec: &str,
    base: &Path,
    cwd: &Path,
    home: &Path,
) -> Result<RuleTarget, String> {
    Ok(match tool {
        "Bash" => RuleTarget::Command(Glob::command(spec)),
        tool if EDITS.contains(&tool) || READS.contains(&tool) => {
            RuleTarget::Paths(Paths::read(spec, base, cwd, home)?)
        }
        "WebFetch" => match spec.strip_prefix("domain:") {
            Some(host) => RuleTarget::Host(Glob::read(
                &host.trim().trim_end_matches('.').to_ascii_lowercase(),
            )),
            None => RuleTarget::Unknown,
        },
        "Agent" | "Skill" => RuleTarget::Name(Glob::command(spec)),
        _ => RuleTarget::Unknown,
    })
}

/// The host of an address, if it is beyond doubt which one it is.
pub fn host(url: &str) -> Option<String> {
    let start = url.get(..8)?.to_ascii_lowercase();
    let rest = match () {
        () if start == "https://" => &url[8..],
        () if start.starts_with("http://") => &url[7..],
        () => return None,
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = match rest[..end].rsplit_once(':') {
        Some((host, port)) if !host.starts_with('[') => {
            port.parse::<u16>().ok()?;
            host
        }
        Some(_) => return None,
        None => &rest[..end],
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    let is_clear = url.chars().all(|c| !c.is_control() && !c.is_whitespace())
        && !rest[..end].contains('\\')
        && !rest[end..].starts_with('\\')
        && host.split('.').all(is_label);
    is_clear.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SettingsLayer;

    fn rule(kind: RuleKind, text: &str) -> Result<PermissionRule, String> {
        let written = WrittenRule {
            kind,
            text: text.to_owned(),
            source: SettingSource::spoken(SettingsLayer::Flag),
            base: "/p".into(),
        };
        PermissionRule::read(&written, Path::new("/p"), Path::new("/home/me"))
    }

    #[test]
    fn a_rule_without_brackets_or_with_a_star_means_the_whole_tool() {
        for text in ["Bash", "Bash(*)", "Bash(:*)"] {
            assert!(
                matches!(rule(RuleKind::Deny, text).unwrap().what, RuleTarget::All),
                "{text}"
            );
        }
    }

    #[test]
    fn a_rule_that_cannot_be_understood_is_an_error() {
        for text in ["", "Bash(", "Bash(x", "(x)", "Bash()", "rm -rf", "Read(!x)"] {
            assert!(rule(RuleKind::Deny, text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_old_name_of_a_tool_means_the_new_one() {
        assert!(rule(RuleKind::Deny, "Task(x)").unwrap().names("Agent"));
        assert!(rule(RuleKind::Deny, "Agent(x)").unwrap().names("Task"));
    }

    #[test]
    fn a_rule_for_editing_means_all_that_edits() {
        let edit = rule(RuleKind::Allow, "Edit(src/**)").unwrap();
        assert!(edit.names("Write") && edit.names("NotebookEdit") && !edit.names("Read"));
        let write = rule(RuleKind::Allow, "Write(src/**)").unwrap();
        assert!(write.names("Write") && !write.names("Edit"));
        assert!(rule(RuleKind::Deny, "Write(src/**)").unwrap().names("Edit"));
        assert!(rule(RuleKind::Deny, "Read(.env)").unwrap().names("Grep"));
    }

    #[test]
    fn a_server_means_all_its_tools_and_not_those_of_a_longer_name() {
        let server = rule(RuleKind::Allow, "mcp__git").unwrap();
        assert!(server.names("mcp__git__push"));
        assert!(!server.names("mcp__github__push"));
        assert!(rule(RuleKind::Deny, "mcp__*").unwrap().names("mcp__a__b"));
        assert!(
            rule(RuleKind::Allow, "mcp__git__*")
                .unwrap()
                .names("mcp__git__x")
        );
    }

    #[test]
    fn nobody_can_allow_all_tools_by_a_star() {
        for text in ["*", "mcp__*", "B*", "mcp__gi*", "mcp____*"] {
            assert!(rule(RuleKind::Allow, text).is_err(), "{text}");
            assert!(rule(RuleKind::Deny, text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_host_is_compared_whole_and_one_in_doubt_is_none() {
        let allow = rule(RuleKind::Allow, "WebFetch(domain:example.com)").unwrap();
        let deny = rule(RuleKind::Deny, "WebFetch(domain:example.com)").unwrap();
        for url in [
            "https://example.com/x",
            "http://EXAMPLE.com",
            "https://example.com.:443/?q",
        ] {
            assert!(allow.fits_name(host(url).as_deref()), "{url}");
        }
        for url in [
            "https://example.com.evil.org/",
            "https://evil-example.com/",
            "https://example.com@evil.org/",
            "https://evil.org/example.com",
            "https://evil.org#@example.com",
        ] {
            assert!(!allow.fits_name(host(url).as_deref()), "{url}");
        }
        for url in [
            "https://example.com\\@evil.org/",
            "https://user@example.com/",
            "https://example.com\0.evil.org/",
            "https://exa\tmple.com/",
            "ftp://example.com/",
            "https://ex%61mple.com/",
            "https:///example.com",
            "https://[::1]/",
        ] {
            assert_eq!(host(url), None, "{url}");
            assert!(deny.fits_name(None) && !allow.fits_name(None));
        }
        let below = rule(RuleKind::Allow, "WebFetch(domain:*.example.com)").unwrap();
        assert!(below.fits_name(Some("a.example.com")));
        assert!(!below.fits_name(Some("example.com")));
    }
}
