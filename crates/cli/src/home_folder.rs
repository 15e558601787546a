//! The home folder of whoever runs us, and where temporary files go. Decided here and nowhere else:
//! the working directory may be a stranger's repository and must never be taken for either.

use std::path::{Path, PathBuf};

use unspool_store::dirs;

/// The home folder: `$HOME`, or that of the account where the variable is unset, empty or relative.
/// Claude Code looks into the password database as well. `None`: there is no home, and so nothing
/// of a user.
pub fn home_folder() -> Option<PathBuf> {
    let named = std::env::var_os("HOME");
    let named = named.or_else(|| std::env::var_os("USERPROFILE").filter(|_| cfg!(windows)));
    dirs::home(named.as_deref(), account_home)
}

/// What the password database says; UNSPOOL_ACCOUNT_HOME says it in tests.
fn account_home() -> Option<PathBuf> {
    if let Some(home) = std::env::var_os("UNSPOOL_ACCOUNT_HOME") {
        return Some(home.into());
    }
    #[cfg(unix)]
    {
        let user = nix::unistd::User::from_uid(nix::unistd::Uid::current());
        user.ok().flatten().map(|user| user.dir)
    }
    #[cfg(not(unix))]
    None
}

/// Keeps temporary files out of the working directory, where TMPDIR is empty or relative.
pub fn ensure_absolute_temp_folder() {
    if !std::env::temp_dir().is_absolute() {
        let usual = if cfg!(unix) {
            "/tmp"
        } else {
            "C:\\Windows\\Temp"
        };
        // It is set once, here.
        let _ = tempfile::env::override_temp_dir(Path::new(usual));
    }
}
