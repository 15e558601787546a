//! Where a session works and what may happen there: folders, settings, trust, rules.

use std::path::{Path, PathBuf};

use unspool_agent::driver::SessionDirs;
use unspool_agent::permission::{PermissionDirs, PermissionMode, PermissionPolicy};
use unspool_agent::settings::{self, SessionSettings, SettingsError, SettingsPaths};
use unspool_agent::trust::{FolderTrust, TrustFile};

use super::{ChatArgs, terminal_chat};
use crate::app_dirs::NOWHERE;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

pub(super) fn broken(broken: SettingsError) -> CommandFailure {
    let hint = broken.hint();
    CommandFailure::failed(broken).hint(hint)
}

/// Where settings are.
pub(super) fn places(args: &ChatArgs, place: &SessionDirs) -> SettingsPaths {
    SettingsPaths {
        user: place.config.clone(),
        managed: settings::MANAGED.into(),
        project: place.project.clone(),
        given: args.settings.clone(),
    }
}

/// What settings files say. One that cannot be read might forbid something: nothing begins.
pub(super) fn settings(
    world: &CommandContext,
    args: &ChatArgs,
    place: &SessionDirs,
    notes: &mut Vec<String>,
) -> Result<SessionSettings, CommandFailure> {
    let mut settings = SessionSettings::load(&places(args, place)).map_err(broken)?;
    notes.extend(settings.notes.iter().cloned());
    let trust = TrustFile::at(world.trusted());
    if args.trust {
        trust.store(&settings)?;
    }
    let standing = trust.check(&settings);
    if let Err(why) = &standing {
        notes.push(format!(
            "treating every folder as untrusted: {why}; delete that file to reset trust"
        ));
    }
    let trusted = matches!(standing, Ok(FolderTrust::Trusted));
    settings.trust(trusted);
    let acting = settings.acting();
    if let Ok(standing) = standing
        && !trusted
        && !acting.is_empty()
        && !args.is_alone()
    {
        terminal_chat::ask_for_trust(world, &settings, &acting, &trust, standing)?;
        settings.trust(trust.check(&settings)? == FolderTrust::Trusted);
    }
    if !settings.is_trusted() && !acting.is_empty() {
        let mut keys: Vec<&str> = acting.iter().map(|one| one.key.as_str()).collect();
        keys.dedup();
        notes.push(format!(
            "this folder is not trusted: ignoring these of its settings: {}; use `--trust` to accept them",
            keys.join(", ")
        ));
    }
    Ok(settings)
}

pub(super) fn policy(
    world: &CommandContext,
    args: &ChatArgs,
    place: &SessionDirs,
    settings: &SessionSettings,
    notes: &mut Vec<String>,
) -> Result<PermissionPolicy, CommandFailure> {
    let mode = match &args.permission_mode {
        None => settings
            .default_mode()
            .map_or(PermissionMode::Default, |(mode, _)| mode),
        Some(name) => {
            let (mode, note) = PermissionMode::read(name).ok_or_else(|| {
                CommandFailure::failed(format!("`{name}` is not a permission mode"))
                    .hint("use default, acceptEdits, plan, dontAsk or bypassPermissions")
            })?;
            notes.extend(note.map(str::to_owned));
            mode
        }
    };
    let ground = PermissionDirs {
        project: place.project.clone(),
        dirs: place.dirs.clone(),
        home: place.home.clone(),
        readable: Vec::new(),
        steering: vec![
            place.config.clone(),
            world.own.config.clone(),
            world.own.data.clone(),
        ],
    };
    let (allowed, denied) = (rules(&args.allowed_tools), rules(&args.disallowed_tools));
    let policy =
        PermissionPolicy::load(settings, ground, mode, &allowed, &denied).map_err(broken)?;
    notes.extend(policy.notes.iter().cloned());
    Ok(policy)
}

/// Rules may be given one by one, or several with commas or spaces between them.
fn rules(given: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for text in given {
        let (mut depth, mut rule) = (0_u32, String::new());
        for letter in text.chars() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (letter == ',' || letter.is_whitespace()) {
                rules.push(std::mem::take(&mut rule));
            } else {
                rule.push(letter);
            }
        }
        rules.push(rule);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

pub(super) fn place(
    world: &CommandContext,
    args: &ChatArgs,
) -> Result<SessionDirs, CommandFailure> {
    let here = world
        .here
        .as_deref()
        .ok_or_else(|| CommandFailure::failed("the current directory no longer exists"))?;
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let project = real(here);
    let mut dirs = Vec::new();
    for dir in &args.add_dir {
        if !dir.is_dir() {
            return Err(CommandFailure::failed(format!(
                "no such directory: `{}`",
                dir.display()
            )));
        }
        dirs.push(real(dir));
    }
    // Nobody's `~` is the project.
    let home = world.home.clone();
    let home = home.unwrap_or_else(|| PathBuf::from(NOWHERE));
    // The person's rules may forbid something: without knowing where they are, nothing begins.
    let config = world.dirs.first().ok_or_else(|| world.no_home())?;
    let config = std::path::absolute(config)?;
    Ok(SessionDirs {
        project,
        dirs,
        home,
        config,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parted_outside_of_brackets() {
        let given = ["Read,Bash(git log, -1) Edit".to_owned(), "Write".to_owned()];
        assert_eq!(
            rules(&given),
            ["Read", "Bash(git log, -1)", "Edit", "Write"]
        );
    }
}
