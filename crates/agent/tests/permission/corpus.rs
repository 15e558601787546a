//! Thousands of commands of one corpus: each gets at least what it must, and what is allowed is run
//! in a real shell and springs no trap.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use super::*;
use unspool_agent::process::git_environment;
use unspool_agent::sandbox::{self, SandboxSupport, WriteSandbox};
use unspool_testkit::permission_corpus::{self, CorpusProject, Least, PermissionCase};

/// The folder of the corpus, and policies for the rules of its cases.
struct Corpus {
    _temp: tempfile::TempDir,
    project: CorpusProject,
    policies: HashMap<String, PermissionPolicy>,
}

impl Corpus {
    fn new() -> Corpus {
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        Corpus {
            project: CorpusProject::plant(&root).unwrap(),
            policies: HashMap::new(),
            _temp: temp,
        }
    }

    fn policy(&mut self, case: &PermissionCase) -> &PermissionPolicy {
        let key = format!("{:?} {}", case.rules, case.mode);
        let root = &self.project.root;
        let (project, home) = (self.project.project(), self.project.home());
        self.policies.entry(key).or_insert_with(|| {
            let config = root.join("config");
            fs::create_dir_all(&config).unwrap();
            let rules = json!({"allow": case.rules.allow, "deny": case.rules.deny});
            let text = json!({ "permissions": rules }).to_string();
            fs::write(config.join("settings.json"), text).unwrap();
            let settings = SessionSettings::load(&SettingsPaths {
                user: config,
                managed: root.join("managed.json"),
                project: project.clone(),
                given: None,
            });
            let ground = PermissionDirs {
                project,
                home,
                ..PermissionDirs::default()
            };
            let mode = PermissionMode::read(case.mode).unwrap().0;
            PermissionPolicy::load(&settings.unwrap(), ground, mode, &[], &[]).unwrap()
        })
    }

    fn judge(&mut self, case: &PermissionCase) -> Got {
        let cwd = self.project.project().join(case.cwd);
        bash(self.policy(case), &case.command, &cwd)
    }
}

fn least(case: &PermissionCase) -> Got {
    match case.least {
        Least::Allow => Got::Allow,
        Least::Ask => Got::Ask,
        Least::Deny => Got::Deny,
    }
}

#[test]
fn every_case_of_the_corpus_gets_at_least_what_it_must_and_what_is_fine_is_allowed() {
    let mut corpus = Corpus::new();
    let cases = permission_corpus::cases();
    let mut lax = Vec::new();
    let mut strict = Vec::new();
    let mut families: HashMap<&str, usize> = HashMap::new();
    for case in &cases {
        *families.entry(case.family).or_default() += 1;
        let (got, least) = (corpus.judge(case), least(case));
        let line = format!(
            "{}: {:?}: {got:?}, not {least:?}",
            case.family, case.command
        );
        if got < least {
            lax.push(line);
        } else if least == Got::Allow && got > least {
            strict.push(line);
        }
    }
    println!("{} commands: {families:?}", cases.len());
    assert!(cases.len() > 3_000, "{}", cases.len());
    let (lax, strict) = (lax.join("\n"), strict.join("\n"));
    assert!(
        lax.is_empty() && strict.is_empty(),
        "too lax:\n{lax}\ntoo strict:\n{strict}"
    );
}

/// Runs a command as the tool would after a rule allowed it: behind a fence if there is one.
fn run(corpus: &Corpus, command: &str, cwd: &Path, guarded: bool) {
    let fence = WriteSandbox {
        write: vec![corpus.project.root.clone()],
    };
    let mut words: Vec<std::ffi::OsString> = Vec::new();
    if sandbox::support() == SandboxSupport::Yes {
        words.extend(fence.before(Path::new(env!("CARGO_BIN_EXE_unspool-fence"))));
    }
    words.extend(["/bin/bash", "--norc", "--noprofile", "-c"].map(Into::into));
    let mut start = Command::new("/usr/bin/timeout");
    start
        .arg("10")
        .args(words)
        .arg(command)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", corpus.project.home())
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if guarded {
        start.envs(git_environment::variables(command, |_| None));
    }
    start.status().unwrap();
}

/// Files that programs take orders from, as they are now.
fn orders(corpus: &Corpus) -> Vec<Option<Vec<u8>>> {
    let files = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/post-checkout",
        ".claude/settings.json",
        ".vscode/tasks.json",
        ".bashrc",
        ".env",
        "../outside/x",
        "src/main.rs",
        "names/written",
    ];
    let project = corpus.project.project();
    files.map(|name| fs::read(project.join(name)).ok()).to_vec()
}

#[test]
fn what_the_corpus_allows_springs_no_trap_in_a_real_shell() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let mut corpus = Corpus::new();
    let project = corpus.project.project();
    // The traps work: git that nobody guards runs what the configuration there names.
    for folder in ["docs/theme", "vendor/lib", "pkg/linked"] {
        run(&corpus, "git status", &project.join(folder), false);
        let sprung = fs::remove_file(corpus.project.marker()).is_ok();
        assert!(sprung, "the trap in {folder} does not work");
    }
    let before = orders(&corpus);
    let mut ran = 0;
    for case in permission_corpus::cases() {
        let speaks = ["https://", "fetch", "pull", "clone", "push"];
        let is_alone = !speaks.iter().any(|word| case.command.contains(word));
        if !case.may_run() || !is_alone || corpus.judge(&case) != Got::Allow {
            continue;
        }
        // Denied files are judged under a rule for all commands, which may write anything.
        if case.rules.allow == ["Bash"] && case.least != Least::Allow {
            panic!("{:?} is allowed", case.command);
        }
        run(&corpus, &case.command, &project.join(case.cwd), true);
        ran += 1;
        let told = fs::read_to_string(corpus.project.marker());
        assert!(told.is_err(), "{:?} ran {told:?}", case.command);
        assert_eq!(orders(&corpus), before, "{:?} wrote", case.command);
    }
    println!("{ran} commands ran");
    assert!(ran > 100, "{ran}");
}

#[test]
fn guarded_git_runs_nothing_that_a_repository_names_even_where_it_was_not_asked_about() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let corpus = Corpus::new();
    let project = corpus.project.project();
    for folder in ["docs/theme", "vendor/lib", "pkg/linked"] {
        for command in [
            "git status",
            "git add -A .",
            "git commit -q --allow-empty -m x",
        ] {
            run(&corpus, command, &project.join(folder), true);
            let told = fs::read_to_string(corpus.project.marker());
            assert!(told.is_err(), "{command} in {folder} ran {told:?}");
        }
    }
}
