//! What the tests use beyond Rust, how to find it and how to install it.
//!
//! Nothing is installed because it is listed here, only because a step of
//! `cargo xtask test` needs it (or because `needs --install` was asked).
//! Nothing ever prompts: without the right to install, we say what is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// The release of the Python SDK the differential tests compare with. Pinned,
/// because a newer one may read transcripts differently and that is a change
/// to look at, not a test that fails one morning.
const SDK_VERSION: &str = "0.2.182";

/// A program or package that some step cannot do without.
pub struct Need {
    /// Its name, as printed.
    pub name: &'static str,
    /// The version found on this machine, if it is there and usable.
    find: fn() -> Option<String>,
    install: Install,
}

enum Install {
    /// With the system's package manager: packages per manager.
    System(&'static [(&'static str, &'static [&'static str])]),
    /// Into a private folder of ours.
    Private(fn() -> Outcome),
}

/// The Python interpreter, with the means to make virtual environments.
pub const PYTHON: Need = Need {
    name: "python3",
    find: find_python,
    install: Install::System(&[
        ("apt-get", &["python3", "python3-venv"]),
        ("dnf", &["python3"]),
        ("pacman", &["python"]),
        ("zypper", &["python3"]),
        ("apk", &["python3"]),
        ("brew", &["python"]),
    ]),
};

/// The Python SDK, in a private virtual environment.
pub const SDK: Need = Need {
    name: "claude-agent-sdk",
    find: find_sdk,
    install: Install::Private(install_sdk),
};

/// The release of the collector that stands between us and our receiver.
const ROTEL_VERSION: &str = "0.0.1a15";

/// A collector of OTLP, in a private virtual environment.
pub const ROTEL: Need = Need {
    name: "rotel",
    find: || package(&environment("rotel", ROTEL_VERSION), "rotel"),
    install: Install::Private(|| install_package("rotel", ROTEL_VERSION)),
};

/// The release of the receiver whose API tells what arrived.
const PHOENIX_VERSION: &str = "20.26.1";

/// A receiver of traces with an API and pages, in a private virtual environment. Large, so that
/// only who asks for it gets it.
pub const PHOENIX: Need = Need {
    name: "arize-phoenix",
    find: || {
        package(
            &environment("arize-phoenix", PHOENIX_VERSION),
            "arize-phoenix",
        )
    },
    install: Install::Private(|| install_package("arize-phoenix", PHOENIX_VERSION)),
};

/// Runs the scripts of the dashboard.
pub const NODE: Need = Need {
    name: "node",
    find: || version_of("node"),
    install: Install::System(&[
        ("apt-get", &["nodejs", "npm"]),
        ("dnf", &["nodejs", "npm"]),
        ("pacman", &["nodejs", "npm"]),
        ("zypper", &["nodejs", "npm"]),
        ("apk", &["nodejs", "npm"]),
        ("brew", &["node"]),
    ]),
};

/// Sees which programs are started and who is spoken to. Tests that want it do without where it
/// cannot be had, and say so.
pub const STRACE: Need = Need {
    name: "strace",
    find: || version_of("strace"),
    install: Install::System(&[
        ("apt-get", &["strace"]),
        ("dnf", &["strace"]),
        ("pacman", &["strace"]),
        ("zypper", &["strace"]),
        ("apk", &["strace"]),
    ]),
};

/// Opens the dashboard.
pub const CHROMIUM: Need = Need {
    name: "chromium",
    find: || CHROMIUM_NAMES.iter().find_map(|name| version_of(name)),
    install: Install::System(&[
        ("apt-get", &["chromium"]),
        ("dnf", &["chromium"]),
        ("pacman", &["chromium"]),
        ("zypper", &["chromium"]),
        ("apk", &["chromium"]),
        ("brew", &["--cask", "chromium"]),
    ]),
};

/// Drives the browser, in a private folder.
pub const PLAYWRIGHT: Need = Need {
    name: "playwright-core",
    find: find_playwright,
    install: Install::Private(install_playwright),
};

/// The release that drives the browser. Pinned: it must fit what systems have.
const PLAYWRIGHT_VERSION: &str = "1.65.0";

/// Two engines that make pages of Markdown, in a private folder.
pub const MARKDOWN: Need = Need {
    name: "marked and markdown-it",
    find: find_markdown,
    install: Install::Private(install_markdown),
};

/// Pinned: what another release understands is a change to look at.
const MARKDOWN_VERSIONS: [(&str, &str); 2] = [("marked", "18.2.0"), ("markdown-it", "15.0.3")];

const CHROMIUM_NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Everything, in the order in which it is installed: the SDK needs Python.
pub const ALL: &[&Need] = &[
    &PYTHON,
    &SDK,
    &ROTEL,
    &PHOENIX,
    &NODE,
    &CHROMIUM,
    &PLAYWRIGHT,
    &MARKDOWN,
    &STRACE,
];

impl Need {
    /// The version found here, if any.
    pub fn found(&self) -> Option<String> {
        (self.find)()
    }

    /// Installs it if this machine lets us, and says the version that is there now.
    pub fn provide(&self) -> Result<String, String> {
        if let Some(version) = self.found() {
            return Ok(version);
        }
        match self.install {
            Install::System(packages) => install_packages(packages)?,
            Install::Private(install) => install()?,
        }
        self.found()
            .ok_or_else(|| format!("{} is still missing after its installation", self.name))
    }
}

/// `cargo xtask needs [--install [NAME]…]`: shows what is there.
pub fn run(args: &[String]) -> Outcome {
    let wanted = |need: &&&Need| match args.split_first() {
        Some((flag, names)) if flag == "--install" => {
            names.is_empty() || names.iter().any(|name| name == need.name)
        }
        _ => false,
    };
    let mut missing = Vec::new();
    for need in ALL.iter().filter(wanted) {
        if let Err(reason) = need.provide() {
            missing.push(format!("{}: {reason}", need.name));
        }
    }
    for need in ALL {
        println!(
            "{} {}",
            need.name,
            need.found().as_deref().unwrap_or("not found")
        );
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(missing.join("; "))
    }
}

/// Where downloads and generated trees are kept: never inside the repository.
pub fn cache_dir() -> PathBuf {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(dir) = set("UNSPOOL_TEST_CACHE") {
        return dir;
    }
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("unspool-test")
}

/// The interpreter of the private environment that holds the SDK.
pub fn sdk_python() -> PathBuf {
    python_of(&environment("sdk", SDK_VERSION))
}

/// The program of the collector.
pub fn rotel() -> Result<PathBuf, String> {
    let script =
        "import os, rotel; print(os.path.join(os.path.dirname(rotel.__file__), 'rotel-agent'))";
    let python = python_of(&environment("rotel", ROTEL_VERSION));
    let path = output(python, &["-c", script]).ok_or("rotel is not installed")?;
    Ok(path.into())
}

/// The interpreter that starts Phoenix.
pub fn phoenix_python() -> PathBuf {
    python_of(&environment("arize-phoenix", PHOENIX_VERSION))
}

/// A private environment of Python.
fn environment(name: &str, version: &str) -> PathBuf {
    cache_dir().join(format!("{name}-{version}"))
}

fn python_of(venv: &Path) -> PathBuf {
    if cfg!(windows) {
        venv.join("Scripts/python.exe")
    } else {
        venv.join("bin/python")
    }
}

/// The version of a package in an environment.
fn package(venv: &Path, name: &str) -> Option<String> {
    let script = format!("import importlib.metadata as m; print(m.version('{name}'))");
    output(python_of(venv), &["-c", &script])
}

fn find_python() -> Option<String> {
    // Debian ships Python without `ensurepip`; then `python3 -m venv` fails late.
    output("python3", &["-c", "import ensurepip, venv"])?;
    version_of("python3")
}

fn find_sdk() -> Option<String> {
    let script =
        "import claude_agent_sdk, importlib.metadata as m; print(m.version('claude-agent-sdk'))";
    output(sdk_python(), &["-c", script])
}

fn install_sdk() -> Outcome {
    let package = format!("claude-agent-sdk=={SDK_VERSION}");
    install_into(&environment("sdk", SDK_VERSION), &package)
}

fn install_package(name: &str, version: &str) -> Outcome {
    install_into(&environment(name, version), &format!("{name}=={version}"))
}

/// Makes a private environment with one package.
fn install_into(venv: &Path, package: &str) -> Outcome {
    succeed(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(venv),
    )?;
    succeed(
        Command::new(python_of(venv))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-input",
            ])
            .arg(package),
    )
}

/// Where Chromium is.
pub fn chromium() -> Option<PathBuf> {
    let name = CHROMIUM_NAMES
        .iter()
        .find(|name| version_of(name).is_some())?;
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.find(|place| place.is_file())
}

/// The package that drives the browser.
pub fn playwright() -> PathBuf {
    playwright_folder().join("node_modules/playwright-core")
}

fn playwright_folder() -> PathBuf {
    cache_dir().join(format!("playwright-{PLAYWRIGHT_VERSION}"))
}

fn find_playwright() -> Option<String> {
    node_package(&playwright())
}

/// The version of a package of npm.
fn node_package(folder: &Path) -> Option<String> {
    let script = "console.log(require(process.argv[1] + '/package.json').version)";
    output("node", &["-e", script, folder.to_str()?])
}

/// Where the engines for Markdown are.
pub fn markdown() -> PathBuf {
    let versions = MARKDOWN_VERSIONS.map(|(_, version)| version);
    cache_dir().join(format!("markdown-{}", versions.join("-")))
}

fn find_markdown() -> Option<String> {
    let folder = markdown().join("node_modules");
    let versions = MARKDOWN_VERSIONS.map(|(name, _)| node_package(&folder.join(name)));
    let versions: Option<Vec<String>> = versions.into_iter().collect();
    Some(versions?.join(" and "))
}

fn install_markdown() -> Outcome {
    let packages = MARKDOWN_VERSIONS.map(|(name, version)| format!("{name}@{version}"));
    install_node(&markdown(), &packages)
}

/// Without its browsers: the one of the system is used.
fn install_playwright() -> Outcome {
    let package = format!("playwright-core@{PLAYWRIGHT_VERSION}");
    install_node(&playwright_folder(), &[package])
}

/// Installs packages of npm into a folder, without running anything of theirs.
fn install_node(folder: &Path, packages: &[String]) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    succeed(
        Command::new("npm")
            .args([
                "install",
                "--no-save",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
            ])
            .arg("--prefix")
            .arg(folder)
            .args(packages),
    )
}

fn install_packages(packages: &[(&str, &[&str])]) -> Outcome {
    let Some((manager, names)) = packages
        .iter()
        .find(|(manager, _)| version_of(manager).is_some())
    else {
        return Err("no package manager that we know".into());
    };
    let prefix = privilege(manager)?;
    let install: &[&str] = match *manager {
        "apt-get" => &["install", "--yes", "--no-install-recommends"],
        "dnf" => &["install", "--assumeyes"],
        "pacman" => &["--sync", "--noconfirm", "--needed"],
        "zypper" => &["--non-interactive", "install"],
        "apk" => &["add"],
        _ => &["install"],
    };
    if *manager == "apt-get" {
        // A fresh image has no package lists; a stale list only costs a retry.
        succeed(&mut privileged(prefix, manager, &["update", "--quiet"]))?;
    }
    succeed(privileged(prefix, manager, install).args(*names))
}

/// What has to stand before the package manager so that it may install.
fn privilege(manager: &str) -> Result<Option<&'static str>, String> {
    if manager == "brew" || output("id", &["-u"]).as_deref() == Some("0") {
        return Ok(None);
    }
    match output("sudo", &["-n", "true"]) {
        Some(_) => Ok(Some("sudo")),
        None => Err(format!("{manager} needs root, and sudo wants a password")),
    }
}

fn privileged(prefix: Option<&str>, manager: &str, args: &[&str]) -> Command {
    let mut command = Command::new(prefix.unwrap_or(manager));
    if prefix.is_some() {
        command.args(["-n", manager]);
    }
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// What `PROGRAM --version` says, reduced to the version.
fn version_of(program: &str) -> Option<String> {
    let text = output(program, &["--version"])?;
    let is_version = |word: &&str| {
        word.trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit())
    };
    let version = text
        .split_whitespace()
        .find(is_version)
        .unwrap_or("(unknown version)");
    Some(version.trim_start_matches('v').to_owned())
}

/// The trimmed standard output of a program that succeeded.
fn output(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Runs an installer, which may talk to people.
pub fn succeed(command: &mut Command) -> Outcome {
    let name = command.get_program().to_string_lossy().into_owned();
    // Whatever an installer says is conversation, so that stdout stays ours.
    let status = command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .map_err(|error| format!("{name}: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} ended with {status}"))
    }
}
