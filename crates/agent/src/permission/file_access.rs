//! Files: which may be read and which written.

use std::path::Path;

use serde_json::Value;

use super::path::{ResolvedPath, protected};
use super::{PermissionFindings, PermissionMode, PermissionPolicy, PermissionReason};
use crate::settings::RuleKind;

impl PermissionPolicy {
    /// Judges a file that a tool would change.
    pub(super) fn rule_edit(&self, tool: &str, path: &str, cwd: &Path) -> PermissionFindings {
        let mut ruling = PermissionFindings::default();
        if path.trim().is_empty() || path.contains('\0') {
            ruling.firm(PermissionReason::new("missing file path"));
            return ruling;
        }
        let place = ResolvedPath::of_tool(path, cwd, &self.home);
        self.write(tool, &place, &mut ruling);
        ruling.always = self.always_edit(&place);
        ruling
    }

    /// Judges a file that would be written, by a tool or by a redirection.
    pub(super) fn write(&self, tool: &str, place: &ResolvedPath, ruling: &mut PermissionFindings) {
        let shown = place.written.display();
        let fitting = |kind| self.rules_of(kind, tool).find(|rule| rule.fits_file(place));
        if let Some(rule) = fitting(RuleKind::Deny) {
            ruling.deny(PermissionReason::of(
                format!("writing to {shown} is denied by rule"),
                rule,
            ));
        }
        if let Some(rule) = fitting(RuleKind::Ask) {
            ruling.firm(PermissionReason::of(
                format!("an ask rule matches writing to {shown}"),
                rule,
            ));
        }
        if place.real.is_none() {
            ruling.firm(PermissionReason::new(format!("{shown} is a symlink loop")));
            return;
        }
        let steers = |place: &ResolvedPath| {
            self.steering.iter().any(|folder| {
                place
                    .forms()
                    .any(|path| path.starts_with(&folder.written) || path.starts_with(&folder.real))
            })
        };
        if let Some(part) = protected(place, &self.work) {
            ruling.soft(PermissionReason::new(format!(
                "{shown} is protected: {part} can make other programs run commands"
            )));
            return;
        }
        let is_work = self.work.iter().any(|folder| place.is_within(folder));
        if steers(place) && !is_work {
            ruling.soft(PermissionReason::new(format!(
                "{shown} configures this client"
            )));
            return;
        }
        if let Some(rule) = fitting(RuleKind::Allow) {
            ruling.allow(PermissionReason::of("allowed by rule", rule));
            return;
        }
        match (is_work, self.mode) {
            (true, PermissionMode::AcceptEdits) => {
                ruling.allow(PermissionReason::new(
                    "mode acceptEdits, inside the project",
                ));
            }
            (true, _) => ruling.soft(PermissionReason::new(format!(
                "no rule allows writing to {shown}"
            ))),
            (false, _) => ruling.soft(PermissionReason::new(format!(
                "{shown} is outside the project"
            ))),
        }
    }

    /// Judges what a tool would read.
    pub(super) fn rule_read(&self, tool: &str, input: &Value, cwd: &Path) -> PermissionFindings {
        let mut ruling = PermissionFindings {
            reads: true,
            ..PermissionFindings::default()
        };
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let path = text("file_path").or(text("notebook_path")).or(text("path"));
        let base = match path {
            Some(path) if !path.trim().is_empty() => ResolvedPath::of_tool(path, cwd, &self.home),
            _ if tool == "Read" => {
                ruling.firm(PermissionReason::new("missing file path"));
                return ruling;
            }
            _ => ResolvedPath::of(".", cwd, &self.home),
        };
        if path.is_some_and(|path| path.contains('\0')) {
            ruling.firm(PermissionReason::new("missing file path"));
            return ruling;
        }
        self.read(tool, &base, &mut ruling);
        // A pattern can lead out of the folder it starts from.
        if let (Some(pattern), "Glob") = (text("pattern"), tool) {
            let (folder, rest) = crate::tools::glob::place(input, cwd, &self.home);
            self.read(
                tool,
                &ResolvedPath::of_tool(&folder.to_string_lossy(), cwd, &self.home),
                &mut ruling,
            );
            let climbs = rest.split('/').any(|part| part.contains(".."));
            if climbs || pattern.starts_with('~') || pattern.contains('\0') {
                ruling.soft(PermissionReason::new("the pattern leaves the directory"));
            }
        }
        ruling.always = self.always_read(&base);
        ruling
    }

    /// Judges a file that would be read, by a tool or by a redirection.
    pub(super) fn read(&self, tool: &str, place: &ResolvedPath, ruling: &mut PermissionFindings) {
        let shown = place.written.display();
        let fitting = |kind| self.rules_of(kind, tool).find(|rule| rule.fits_file(place));
        if let Some(rule) = fitting(RuleKind::Deny) {
            ruling.deny(PermissionReason::of(
                format!("reading {shown} is denied by rule"),
                rule,
            ));
        }
        if let Some(rule) = fitting(RuleKind::Ask) {
            ruling.firm(PermissionReason::of(
                format!("an ask rule matches reading {shown}"),
                rule,
            ));
        }
        if place.real.is_none() {
            ruling.firm(PermissionReason::new(format!("{shown} is a symlink loop")));
            return;
        }
        if let Some(rule) = fitting(RuleKind::Allow) {
            ruling.allow(PermissionReason::of("allowed by rule", rule));
            return;
        }
        let mut known = self.work.iter().chain(&self.readable);
        match known.any(|folder| place.is_within(folder)) {
            true => ruling.allow(PermissionReason::new("inside the project")),
            false => ruling.soft(PermissionReason::new(format!(
                "{shown} is outside the project"
            ))),
        }
    }
}
