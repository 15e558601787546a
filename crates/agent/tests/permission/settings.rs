//! Settings files: who wins, and what a broken one does.

use super::*;
use unspool_agent::settings::{RuleKind, SettingsError, SettingsLayer};

fn broken(world: &World) -> SettingsError {
    SessionSettings::load(&world.places()).unwrap_err()
}

#[test]
fn a_broken_file_is_an_error_with_its_name_and_line_in_every_scope() {
    for name in [
        "config/settings.json",
        "repo/.claude/settings.json",
        "repo/.claude/settings.local.json",
        "managed.json",
    ] {
        let world = World::new();
        world.write(
            name,
            "{\n  \"permissions\": {\n    \"deny\": [\"Bash(curl *)\"\n  }\n}\n",
        );
        let told = broken(&world).to_string();
        let start = format!("{}:4:3: ", world.path(name).display());
        assert!(told.starts_with(&start), "{told}");
        assert!(broken(&world).hint().contains("cannot be ignored"));
    }
}

#[test]
fn rules_of_the_wrong_shape_are_an_error_and_not_left_out() {
    for (text, line) in [
        (r#"[]"#, 1),
        (r#"{"permissions": []}"#, 1),
        ("{\"permissions\": {\n\"deny\": \"Bash\"}}", 2),
        ("{\"permissions\": {\"deny\": [\n\n1]}}", 3),
        ("{\"permissions\": {\"defaultMode\": \"yolo\"}}", 1),
        ("{\"permissions\": {\"deny\": []},\n\"permissions\": {}}", 2),
        (
            "{\"permissions\": {\"deny\": [\"Bash\"],\n\"deny\": []}}",
            2,
        ),
    ] {
        let world = World::new();
        world.write("config/settings.json", text);
        assert_eq!(broken(&world).at.unwrap().0, line, "{text}");
    }
}

#[test]
fn a_rule_that_denies_and_is_not_understood_stops_everything_and_one_that_allows_is_left_out() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(x", "*", "Bash(ls *)"]}));
    let policy = world.policy(PermissionMode::Default);
    assert_eq!(policy.notes.len(), 2);
    assert_eq!(bash(&policy, "ls", &world.path("repo")), Got::Allow);
    world.rules(json!({"deny": ["Bash(x"]}));
    let settings = SessionSettings::load(&world.places()).unwrap();
    let failed =
        PermissionPolicy::load(&settings, world.ground(), PermissionMode::Default, &[], &[])
            .unwrap_err();
    assert!(
        failed
            .to_string()
            .contains("settings.json:1:1: the rule Bash(x"),
        "{failed}"
    );
}

#[test]
fn comments_and_a_last_comma_are_no_fault_and_an_empty_file_says_nothing() {
    let world = World::new();
    world.write(
        "config/settings.json",
        "// mine\n{\"model\": \"opus\", /* x */}\n",
    );
    world.write("managed.json", "  \n");
    assert_eq!(
        SessionSettings::load(&world.places())
            .unwrap()
            .model()
            .as_deref(),
        Some("opus")
    );
}

#[test]
fn managed_wins_over_given_over_local_over_project_over_user() {
    let world = World::new();
    let mut places = world.places();
    let names = [
        ("config/settings.json", SettingsLayer::User),
        ("repo/.claude/settings.json", SettingsLayer::Project),
        ("repo/.claude/settings.local.json", SettingsLayer::Local),
        ("given.json", SettingsLayer::Given),
        ("managed.json", SettingsLayer::Managed),
        ("managed.d/20.json", SettingsLayer::Managed),
    ];
    for (name, scope) in names {
        world.write(
            name,
            &json!({"model": name, "env": {"A": name}}).to_string(),
        );
        if scope == SettingsLayer::Given {
            places.given = Some(world.path(name).display().to_string());
        }
        let mut settings = SessionSettings::load(&places).unwrap();
        settings.trust(true);
        let (value, source) = settings.value(&["model"]).unwrap();
        assert_eq!((value, source.scope, source.line), (json!(name), scope, 1));
        assert_eq!(source.path, Some(world.path(name)));
        assert_eq!(settings.env()[0].1, name);
    }
}

#[test]
fn settings_can_be_given_as_json_and_a_file_that_is_not_there_is_an_error() {
    let world = World::new();
    let mut places = world.places();
    places.given = Some(r#"{"permissions": {"deny": ["Bash(ls *)"]}}"#.to_owned());
    let settings = SessionSettings::load(&places).unwrap();
    assert_eq!(settings.rules()[0].source.to_string(), "--settings");
    places.given = Some("missing.json".to_owned());
    assert!(
        SessionSettings::load(&places)
            .unwrap_err()
            .to_string()
            .contains("missing.json: no such file")
    );
    places.given = Some("{\"a\": ".to_owned());
    assert!(
        SessionSettings::load(&places)
            .unwrap_err()
            .to_string()
            .starts_with("--settings:1:")
    );
}

#[test]
fn whoever_manages_the_machine_can_take_rules_hooks_and_bypass_away() {
    let world = World::new();
    world.write(
        "config/settings.json",
        &json!({
        "hooks": {"Stop": []}, "permissions": {"allow": ["Bash(ls *)"], "deny": ["Bash(x)"]}})
        .to_string(),
    );
    world.write(
        "managed.json",
        &json!({
        "allowManagedPermissionRulesOnly": true, "allowManagedHooksOnly": true,
        "hooks": {"Stop": []},
        "permissions": {"disableBypassPermissionsMode": "disable", "allow": ["Bash(pwd)"]}})
        .to_string(),
    );
    let settings = SessionSettings::load(&world.places()).unwrap();
    assert_eq!(settings.hooks().len(), 1);
    let mut policy =
        PermissionPolicy::load(&settings, world.ground(), PermissionMode::Bypass, &[], &[])
            .unwrap();
    assert_eq!(
        (policy.mode(), policy.notes.len()),
        (PermissionMode::Default, 1)
    );
    assert!(policy.set_mode(PermissionMode::Bypass).is_err());
    let cwd = world.path("repo");
    assert!(policy.add(RuleKind::Allow, "Bash(ls *)").is_err());
    let flags = ["Bash(ls *)".to_owned()];
    let flagged = PermissionPolicy::load(
        &settings,
        world.ground(),
        PermissionMode::Default,
        &flags,
        &[],
    )
    .unwrap();
    assert_eq!(bash(&flagged, "ls", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "ls", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "pwd", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "x", &cwd), Got::Deny);
}

#[test]
fn only_who_manages_the_machine_takes_managed_hooks_away() {
    let world = World::new();
    world.write(
        "config/settings.json",
        r#"{"disableAllHooks": true, "hooks": {"Stop": []}}"#,
    );
    world.write("managed.json", r#"{"hooks": {"Stop": []}}"#);
    let settings = SessionSettings::load(&world.places()).unwrap();
    let scopes: Vec<SettingsLayer> = settings
        .hooks()
        .into_iter()
        .map(|(_, source)| source.scope)
        .collect();
    assert_eq!(scopes, [SettingsLayer::Managed]);
}

#[test]
fn a_pipe_in_the_place_of_settings_does_not_hold_us_up() {
    let world = World::new();
    fs::create_dir_all(world.path("config/settings.json")).unwrap();
    assert!(broken(&world).to_string().contains("not a regular file"));
}

#[test]
fn a_slash_is_the_folder_of_the_settings_file() {
    let world = World::new();
    world.write(
        "repo/.claude/settings.json",
        r#"{"permissions": {"deny": ["Edit(/src/**)"]}}"#,
    );
    let policy = world.policy(PermissionMode::Bypass);
    let cwd = world.path("repo/src");
    let edit = |path: &str| got(&policy.judge("Edit", &json!({ "file_path": path }), &cwd));
    let inside = world.path("repo/src/a").display().to_string();
    assert_eq!(
        (edit(&inside), edit("a"), edit("../a")),
        (Got::Deny, Got::Deny, Got::Allow)
    );
}
