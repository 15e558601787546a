//! `/permissions`: rules shown with the place each stands in, added and taken out.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use unspool_agent::driver::{SessionCommand, SessionDirs};
use unspool_agent::permission::{PermissionMode, PermissionPolicy, offered_rules, rule_editing};
use unspool_agent::settings::{
    RuleKind, SessionSettings, SettingSource, SettingsLayer, TrustGatedSetting,
};
use unspool_agent::trust::{FolderTrust, TrustFile};
use unspool_tui::chat::{ChoicePicker, CommandReply, PickerChoice};

use super::workspace::{places, policy};
use super::{ChatArgs, chat_commands};
use crate::command_context::CommandContext;

/// The rules of a session, and where they come from.
pub struct SessionPermissionRules {
    world: Arc<CommandContext>,
    args: ChatArgs,
    place: SessionDirs,
}

/// A rule, and where it stands.
struct PermissionRuleEntry {
    kind: RuleKind,
    text: String,
    source: SettingSource,
}

impl PermissionRuleEntry {
    /// Whether it stands in a file that belongs to the person or the folder.
    fn is_ours(&self) -> bool {
        let scope = self.source.scope;
        self.source.path.is_some() && (scope.is_of_folder() || scope == SettingsLayer::User)
    }
}

impl SessionPermissionRules {
    /// The rules of a session in a place.
    pub fn new(
        world: Arc<CommandContext>,
        args: ChatArgs,
        place: SessionDirs,
    ) -> SessionPermissionRules {
        SessionPermissionRules { world, args, place }
    }

    /// What `/permissions` and its words do.
    pub fn told(&self, words: &str, mode: PermissionMode) -> CommandReply {
        let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let rest = rest.trim();
        let done = match (first, rest) {
            ("", _) => self.list(mode).map(|output| CommandReply::Answered {
                command: "/permissions".to_owned(),
                output,
            }),
            ("allow" | "ask" | "deny", "") => Err(format!(
                "missing rule: for example `/permissions {first} Bash(npm test:*)`"
            )),
            ("allow", rule) => self.add(RuleKind::Allow, rule),
            ("ask", rule) => self.add(RuleKind::Ask, rule),
            ("deny", rule) => self.add(RuleKind::Deny, rule),
            ("remove", rule) => self.remove(rule),
            (name, _) => match PermissionMode::read(name) {
                Some((mode, _)) => Ok(CommandReply::Do(vec![SessionCommand::Mode(mode)])),
                None => Err(format!(
                    "`{name}` is not a permission mode: use default, acceptEdits, plan, dontAsk or bypassPermissions"
                )),
            },
        };
        done.unwrap_or_else(CommandReply::Fail)
    }

    /// Rules that are always allowed from now on, as somebody answered.
    pub fn keep(&self, rules: &[String]) -> Result<String, String> {
        let (path, acts) = self.changed(|| offered_rules::store(rules, &self.place.project))?;
        let kept = format!("{} added to {}", rules.join(", "), path.display());
        Ok(match acts {
            true => kept,
            false => format!("{kept}; later sessions apply it once this folder is trusted"),
        })
    }

    /// What a program that answers for a person changes with its answer, in the words of the
    /// original: rules for this session or in a file, the mode, and folders.
    pub fn obey(&self, update: &Value) -> Result<SessionCommand, String> {
        let field = |name: &str| update[name].as_str().unwrap_or_default();
        match field("type") {
            "addRules" => {
                let kind = kind_of(field("behavior"))
                    .ok_or_else(|| format!("`{}` is not allow, ask or deny", field("behavior")))?;
                let rules = update["rules"].as_array().into_iter().flatten();
                let rules: Vec<String> = rules.filter_map(rule_of).collect();
                let file = match field("destination") {
                    "localSettings" => Some(SettingsLayer::Local),
                    "projectSettings" => Some(SettingsLayer::Project),
                    "userSettings" => Some(SettingsLayer::User),
                    _ => None,
                };
                if let Some(scope) = file {
                    self.store(kind, scope, &rules)?;
                }
                // Whatever a file is worth here, whoever answers wants it now.
                Ok(SessionCommand::Also(kind, rules))
            }
            "setMode" => match PermissionMode::read(field("mode")) {
                Some((mode, _)) => Ok(SessionCommand::Mode(mode)),
                None => Err(format!("`{}` is not a permission mode", field("mode"))),
            },
            "addDirectories" => {
                let dirs = update["directories"].as_array().into_iter().flatten();
                let dirs = dirs.filter_map(Value::as_str).map(PathBuf::from);
                Ok(SessionCommand::Folders(dirs.collect()))
            }
            other => Err(format!("`{other}` is not supported")),
        }
    }

    fn settings(&self) -> Result<SessionSettings, String> {
        let mut settings = SessionSettings::load(&places(&self.args, &self.place))
            .map_err(|why| why.to_string())?;
        let standing = self.trust().check(&settings);
        settings.trust(standing.is_ok_and(|standing| standing == FolderTrust::Trusted));
        Ok(settings)
    }

    fn trust(&self) -> TrustFile {
        TrustFile::at(self.world.trusted())
    }

    fn policy(&self, settings: &SessionSettings) -> Result<PermissionPolicy, String> {
        let mut notes = Vec::new();
        policy(&self.world, &self.args, &self.place, settings, &mut notes)
            .map_err(|failure| chat_commands::failure_line(&failure))
    }

    fn all(&self, settings: &SessionSettings) -> Result<Vec<PermissionRuleEntry>, String> {
        let policy = self.policy(settings)?;
        let rules = policy
            .listed()
            .map(|(kind, text, source)| PermissionRuleEntry {
                kind,
                text: text.to_owned(),
                source: source.clone(),
            });
        Ok(rules.collect())
    }

    fn list(&self, mode: PermissionMode) -> Result<String, String> {
        let settings = self.settings()?;
        let mut text = format!("mode: {}\n\n", mode.name());
        let all = self.all(&settings)?;
        match all.is_empty() {
            true => text.push_str("no rules\n"),
            false => text.push_str("| behavior | rule | source |\n|---|---|---|\n"),
        }
        for PermissionRuleEntry {
            kind,
            text: rule,
            source,
        } in &all
        {
            let rule = rule.replace('|', "\\|");
            let kind = kind.key();
            text.push_str(&format!("| {kind} | `{rule}` | {} |\n", self.shown(source)));
        }
        if !settings.is_trusted() && !settings.acting().is_empty() {
            text.push_str(
                "\nThis folder is not trusted: allow rules in its settings are ignored.\n",
            );
        }
        text.push_str(
            "\n`/permissions allow|ask|deny RULE` adds a rule for you in this folder; \
             append `in user` for all your projects, `in project` to share it. \
             `/permissions remove` removes a rule. \
             `/permissions MODE` changes the mode: default, acceptEdits, plan, dontAsk.",
        );
        Ok(text)
    }

    /// Where a rule stands, as short as it can be told.
    fn shown(&self, source: &SettingSource) -> String {
        let name = match source.scope {
            SettingsLayer::User => "user",
            SettingsLayer::Project => "project",
            SettingsLayer::Local => "local",
            _ => return source.to_string(),
        };
        let path = source.path.as_deref().unwrap_or(&self.place.project);
        let short = path.strip_prefix(&self.place.project);
        let short = short.unwrap_or(path).display();
        format!("{name}, {short}:{}", source.line)
    }

    fn add(&self, kind: RuleKind, words: &str) -> Result<CommandReply, String> {
        let (rule, scope) = match words.rsplit_once(" in ") {
            Some((rule, "user")) => (rule, SettingsLayer::User),
            Some((rule, "project")) => (rule, SettingsLayer::Project),
            Some((rule, "local")) => (rule, SettingsLayer::Local),
            _ => (words, SettingsLayer::Local),
        };
        let rule = rule.trim().to_owned();
        let (path, new, acts) = self.store(kind, scope, std::slice::from_ref(&rule))?;
        let told = match new {
            true => format!("{} `{rule}` added to {}", kind.key(), path.display()),
            false => format!("{} `{rule}` is already in {}", kind.key(), path.display()),
        };
        self.renewed(
            match acts || kind != RuleKind::Allow || scope == SettingsLayer::User {
                true => told,
                false => format!("{told}; it applies once this folder is trusted (`--trust`)"),
            },
        )
    }

    /// Writes rules into a file: which it is, whether they are new there, and whether they act.
    fn store(
        &self,
        kind: RuleKind,
        scope: SettingsLayer,
        rules: &[String],
    ) -> Result<(PathBuf, bool, bool), String> {
        let policy = self.policy(&self.settings()?)?;
        for rule in rules {
            policy
                .check(kind, rule)
                .map_err(|why| format!("`{rule}` is not a valid rule: {why}"))?;
        }
        let path = rule_editing::file(scope, &self.place.config, &self.place.project)
            .ok_or("rules can only be stored in user, project or local settings")?;
        let (new, acts) = self.changed(|| {
            rule_editing::change(&path, scope, |old| rule_editing::added(old, kind, rules))
        })?;
        Ok((path, new, acts))
    }

    fn remove(&self, rule: &str) -> Result<CommandReply, String> {
        let settings = self.settings()?;
        let mut all = self.all(&settings)?;
        all.retain(PermissionRuleEntry::is_ours);
        if !rule.is_empty() {
            all.retain(|one| one.text == rule);
        }
        if all.is_empty() {
            return Err(match rule {
                "" => "there are no rules to remove".to_owned(),
                rule => format!("`{rule}` is not in your settings or this folder's"),
            });
        }
        if let ([one], false) = (all.as_slice(), rule.is_empty()) {
            return self.take_out(one);
        }
        let choices = all.iter().map(|one| PickerChoice {
            label: format!("{} {}", one.kind.key(), one.text),
            detail: self.shown(&one.source),
            value: value(one).to_string(),
        });
        Ok(CommandReply::Pick(ChoicePicker::new(
            "remove-rule",
            "Remove which rule?",
            choices.collect(),
        )))
    }

    /// Takes out a rule that was chosen.
    pub fn chosen(&self, value: &str) -> CommandReply {
        let one = serde_json::from_str(value).ok().and_then(|it| one(&it));
        let done = match one {
            Some(one) => self.take_out(&one),
            None => Err("no rule was chosen".to_owned()),
        };
        done.unwrap_or_else(CommandReply::Fail)
    }

    fn take_out(&self, one: &PermissionRuleEntry) -> Result<CommandReply, String> {
        let path = one
            .source
            .path
            .as_deref()
            .ok_or("the rule is not in a file")?;
        self.changed(|| {
            rule_editing::change(path, one.source.scope, |old| {
                rule_editing::removed(old, one.kind, &one.text)
            })
        })?;
        self.renewed(format!(
            "{} `{}` removed from {}",
            one.kind.key(),
            one.text,
            path.display()
        ))
    }

    /// The session goes on with the rules as they stand now.
    fn renewed(&self, told: String) -> Result<CommandReply, String> {
        let policy = self.policy(&self.settings()?)?;
        Ok(CommandReply::Done(
            told,
            vec![SessionCommand::Rules(Box::new(policy))],
        ))
    }

    /// Changes settings. If all that the folder's would do was fine before, it still is: the
    /// person did this. Whether it is.
    fn changed<T>(&self, change: impl FnOnce() -> Result<T, String>) -> Result<(T, bool), String> {
        let trust = self.trust();
        let before = self.settings()?;
        let fine = before.is_trusted() || before.acting().is_empty();
        let done = change()?;
        let after = self.settings()?;
        let fine = fine && others(&before) == others(&after);
        if fine {
            trust.store(&after).map_err(|why| why.to_string())?;
        }
        Ok((done, fine))
    }
}

/// What a folder would do, beside allowing things.
fn others(settings: &SessionSettings) -> Vec<(String, Option<PathBuf>, Value)> {
    let all = settings.acting().into_iter();
    let all = all.filter(|one| one.key != "permissions.allow");
    all.map(|TrustGatedSetting { key, source, value }| (key, source.path, value))
        .collect()
}

fn value(one: &PermissionRuleEntry) -> Value {
    let scope = match one.source.scope {
        SettingsLayer::User => "user",
        SettingsLayer::Project => "project",
        _ => "local",
    };
    json!({"kind": one.kind.key(), "rule": one.text, "scope": scope, "path": one.source.path})
}

fn one(value: &Value) -> Option<PermissionRuleEntry> {
    let kind = kind_of(value["kind"].as_str()?)?;
    let scope = match value["scope"].as_str()? {
        "user" => SettingsLayer::User,
        "project" => SettingsLayer::Project,
        _ => SettingsLayer::Local,
    };
    Some(PermissionRuleEntry {
        kind,
        text: value["rule"].as_str()?.to_owned(),
        source: SettingSource {
            scope,
            path: Some(PathBuf::from(value["path"].as_str()?)),
            line: 0,
        },
    })
}

/// The kind of this name.
fn kind_of(name: &str) -> Option<RuleKind> {
    let kinds = [RuleKind::Deny, RuleKind::Ask, RuleKind::Allow];
    kinds.into_iter().find(|kind| name == kind.key())
}

/// A rule as one text, from its two parts.
fn rule_of(rule: &Value) -> Option<String> {
    let tool = rule["toolName"].as_str()?;
    Some(match rule["ruleContent"].as_str() {
        Some(content) if !content.is_empty() => format!("{tool}({content})"),
        _ => tool.to_owned(),
    })
}
