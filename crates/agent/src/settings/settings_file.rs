//! One file of settings: what stands in it, and where.

use std::path::PathBuf;

use serde_json::Value;
use unspool_model::jsonc::{JsoncError, JsoncNode};

use super::{
    RuleKind, SettingSource, SettingsError, SettingsLayer, TrustGatedSetting, WrittenRule, plain,
};
use crate::permission::PermissionMode;

/// Nobody writes settings longer than this.
pub(super) const LONGEST: u64 = 4 << 20;

/// One file, or what stands in an argument.
#[derive(Clone, Debug)]
pub(super) struct SettingsFile {
    pub(super) scope: SettingsLayer,
    pub(super) place: String,
    pub(super) path: Option<PathBuf>,
    pub(super) base: PathBuf,
    pub(super) text: String,
    pub(super) root: JsoncNode,
    /// Whether it comes with the folder, by a link to a file outside of it.
    pub(super) is_outside: bool,
}

impl SettingsFile {
    pub(super) fn source(&self, node: &JsoncNode) -> SettingSource {
        SettingSource {
            scope: self.scope,
            path: self.path.clone(),
            line: JsoncError::at(&self.text, node.place.start, "").line,
        }
    }

    pub(super) fn broken(&self, node: &JsoncNode, why: impl Into<String>) -> SettingsError {
        SettingsError::at(&self.place, &self.text, node.place.start, why)
    }

    pub(super) fn node(&self, path: &[&str]) -> Option<&JsoncNode> {
        path.iter().try_fold(&self.root, |node, key| node.get(key))
    }

    pub(super) fn value(&self, path: &[&str]) -> Option<(Value, SettingSource)> {
        let node = self.node(path)?;
        Some((plain(node), self.source(node)))
    }

    /// What must have the right shape, because leaving it out would allow more.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.root.members().is_none() {
            return Err(self.broken(&self.root, "settings must be an object"));
        }
        self.check_once(&self.root, &["permissions", "hooks", "disableAllHooks"])?;
        let Some(permissions) = self.root.get("permissions") else {
            return Ok(());
        };
        if permissions.members().is_none() {
            return Err(self.broken(permissions, "permissions must be an object"));
        }
        self.check_once(permissions, &["deny", "ask", "allow", "defaultMode"])?;
        for kind in [RuleKind::Deny, RuleKind::Ask, RuleKind::Allow] {
            let Some(list) = permissions.get(kind.key()) else {
                continue;
            };
            let Some(items) = list.items() else {
                let why = format!("permissions.{} must be a list of rules", kind.key());
                return Err(self.broken(list, why));
            };
            if let Some(item) = items.iter().find(|item| item.text().is_none()) {
                return Err(self.broken(item, "a rule must be a string"));
            }
        }
        if let Some(mode) = permissions.get("defaultMode")
            && mode.text().and_then(PermissionMode::read).is_none()
        {
            return Err(self.broken(mode, "unknown permission mode"));
        }
        Ok(())
    }

    /// The last of two equal keys counts for every reader; rules in the first would be lost.
    pub(super) fn check_once(
        &self,
        object: &JsoncNode,
        keys: &[&str],
    ) -> Result<(), SettingsError> {
        for key in keys {
            let mut same = object
                .members()
                .unwrap_or_default()
                .iter()
                .filter(|member| member.key == *key);
            if let (Some(_), Some(second)) = (same.next(), same.next()) {
                let why = format!("duplicate key {key}");
                return Err(SettingsError::at(
                    &self.place,
                    &self.text,
                    second.place.start,
                    why,
                ));
            }
        }
        Ok(())
    }

    pub(super) fn rules(&self, kind: RuleKind, all: &mut Vec<WrittenRule>) {
        let Some(list) = self.node(&["permissions", kind.key()]) else {
            return;
        };
        for item in list.items().unwrap_or_default() {
            if let Some(text) = item.text() {
                all.push(WrittenRule {
                    kind,
                    text: text.to_owned(),
                    source: self.source(item),
                    base: self.base.clone(),
                });
            }
        }
    }

    pub(super) fn acting(&self, all: &mut Vec<TrustGatedSetting>) {
        for member in self.root.members().unwrap_or_default() {
            if member.key == "$schema" {
                continue;
            }
            if member.key != "permissions" {
                all.push(self.act(member.key.clone(), &member.node));
                continue;
            }
            for inner in member.node.members().unwrap_or_default() {
                let is_empty = inner.node.items().is_some_and(<[JsoncNode]>::is_empty);
                if !["deny", "ask"].contains(&inner.key.as_str()) && !is_empty {
                    all.push(self.act(format!("permissions.{}", inner.key), &inner.node));
                }
            }
        }
    }

    pub(super) fn act(&self, key: String, node: &JsoncNode) -> TrustGatedSetting {
        TrustGatedSetting {
            key,
            source: self.source(node),
            value: plain(node),
        }
    }
}
