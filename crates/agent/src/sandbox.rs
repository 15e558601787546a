//! A fence around commands: they may read as before, and write only in some folders.
//!
//! The kernel keeps it (Landlock), for a process and all it starts, for ever. Since we cannot put
//! ourselves behind it, a command is started through our own program: called with [`WORD`], it
//! fences itself in and becomes the command.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

#[cfg(unix)]
use crate::process::hook_guard;

/// The first argument that makes our program fence itself in: then the fence, then the command.
pub const WORD: &str = "__fence";

/// What the kernel can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxSupport {
    /// It keeps the fence.
    Yes,
    /// It cannot, and why.
    No(String),
}

/// Where a command may write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteSandbox {
    /// The folders.
    pub write: Vec<PathBuf>,
}

/// Devices that everybody writes to.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

impl WriteSandbox {
    /// The project, folders that belong to it, and folders for temporary files.
    pub fn around(project: &Path, dirs: &[PathBuf], temp: &Path) -> WriteSandbox {
        let mut write = vec![project.to_path_buf()];
        write.extend(dirs.iter().cloned());
        write.extend([temp, Path::new("/tmp"), Path::new("/var/tmp")].map(Path::to_path_buf));
        write.dedup();
        WriteSandbox { write }
    }

    /// What stands before a command so that it runs behind the fence; `program` is our own.
    pub fn before(&self, program: &Path) -> Vec<OsString> {
        vec![program.into(), WORD.into(), self.to_arg().into()]
    }

    fn to_arg(&self) -> String {
        let folders: Vec<_> = self.write.iter().map(|dir| dir.to_string_lossy()).collect();
        json!({ "write": folders }).to_string()
    }

    fn from_arg(arg: &str) -> Option<WriteSandbox> {
        let value: Value = serde_json::from_str(arg).ok()?;
        let folders = value.get("write")?.as_array()?.iter();
        let write = folders.map(|dir| dir.as_str().map(PathBuf::from));
        Some(WriteSandbox {
            write: write.collect::<Option<_>>()?,
        })
    }

    /// Fences in this thread and all that it starts, for ever.
    pub fn apply(&self) -> io::Result<()> {
        kernel::apply(self)
    }
}

/// Whether the kernel can keep a fence.
pub fn support() -> SandboxSupport {
    kernel::support()
}

/// Does what [`WORD`] or [`hook_guard::WORD`] ask for, if this program was called so. To be called
/// first.
#[cfg(unix)]
pub fn run_as_wrapper() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let word = arguments.next()?;
    let done = match word.to_str() {
        Some(WORD) => arguments
            .next()
            .and_then(|fence| WriteSandbox::from_arg(fence.to_str()?))
            .ok_or_else(|| io::Error::other("invalid sandbox description"))
            .and_then(|fence| fence.apply()),
        Some(hook_guard::WORD) => return Some(hook_guard::run(arguments)),
        _ => return None,
    };
    Some(become_command(done, arguments))
}

#[cfg(unix)]
fn become_command(
    ready: io::Result<()>,
    mut arguments: impl Iterator<Item = OsString>,
) -> ExitCode {
    use std::os::unix::process::CommandExt;
    let error = match (ready, arguments.next()) {
        // A command that should stand behind a fence does not run without it.
        (Err(error), _) => error,
        (Ok(()), None) => io::Error::other("no command given"),
        (Ok(()), Some(program)) => std::process::Command::new(program).args(arguments).exec(),
    };
    let _ = writeln!(io::stderr(), "sandbox: {error}");
    ExitCode::from(126)
}

#[cfg(target_os = "linux")]
mod kernel {
    use landlock::{
        ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetStatus, path_beneath_rules,
    };

    use super::*;

    /// The newest rights we know; what an older kernel does not know is left out.
    const KNOWN: ABI = ABI::V5;

    pub fn apply(fence: &WriteSandbox) -> io::Result<()> {
        let folders = fence.write.iter().map(PathBuf::as_path);
        let devices = DEVICES.iter().map(Path::new);
        let rights = AccessFs::from_write(KNOWN);
        let fenced = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(rights)
            .and_then(|rules| rules.create())
            .and_then(|rules| rules.add_rules(path_beneath_rules(folders.chain(devices), rights)))
            .and_then(|rules| rules.restrict_self())
            .map_err(io::Error::other)?;
        match fenced.ruleset {
            RulesetStatus::NotEnforced => Err(io::Error::other(MISSING)),
            _ => Ok(()),
        }
    }

    const MISSING: &str = "this kernel has no Landlock, or it is disabled";

    pub fn support() -> SandboxSupport {
        let made = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(ABI::V1))
            .and_then(|rules| rules.create());
        match made {
            Ok(_) => SandboxSupport::Yes,
            Err(_) => SandboxSupport::No(MISSING.to_owned()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::*;

    const MISSING: &str = "the sandbox needs Linux with Landlock";

    pub fn apply(_: &WriteSandbox) -> io::Result<()> {
        Err(io::Error::other(MISSING))
    }

    pub fn support() -> SandboxSupport {
        SandboxSupport::No(MISSING.to_owned())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// Runs something in a thread of its own, which stays fenced in until it ends.
    fn fenced(fence: WriteSandbox, act: impl FnOnce() + Send + 'static) {
        if let SandboxSupport::No(why) = support() {
            println!("not tested: {why}");
            return;
        }
        std::thread::spawn(move || {
            fence.apply().unwrap();
            act();
        })
        .join()
        .unwrap();
    }

    fn shell(command: &str) -> bool {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .stderr(std::process::Stdio::null());
        shell.status().unwrap().success()
    }

    #[test]
    fn a_command_writes_inside_and_not_outside() {
        let temp = tempfile::tempdir().unwrap();
        let (inside, outside) = (temp.path().join("in"), temp.path().join("out"));
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("old"), "old").unwrap();
        let fence = WriteSandbox {
            write: vec![inside.clone()],
        };
        let (near, far) = (inside.clone(), outside.clone());
        fenced(fence, move || {
            let (near, far) = (near.display(), far.display());
            assert!(shell(&format!(
                "echo x > {near}/new && mkdir {near}/d && rm {near}/new"
            )));
            assert!(shell(&format!("cat {far}/old > /dev/null")));
            for bad in [
                format!("echo x > {far}/new"),
                format!("echo x >> {far}/old"),
                format!("rm {far}/old"),
                format!("mv {far}/old {near}/old"),
                format!("mkdir {far}/d"),
                format!("ln -s {far} {near}/link && echo x > {near}/link/new"),
                format!("truncate -s 0 {far}/old"),
            ] {
                assert!(!shell(&bad), "{bad}");
            }
        });
        assert_eq!(fs::read_to_string(outside.join("old")).unwrap(), "old");
        // Only the thread was fenced in.
        fs::write(outside.join("after"), "").unwrap();
    }

    #[test]
    fn a_fence_goes_through_an_argument_unchanged() {
        let fence = WriteSandbox::around(Path::new("/a b"), &["/c\"d".into()], Path::new("/tmp"));
        assert_eq!(WriteSandbox::from_arg(&fence.to_arg()), Some(fence.clone()));
        assert_eq!(WriteSandbox::from_arg("{}"), None);
        assert_eq!(fence.before(Path::new("/x"))[1], WORD);
    }
}
