//! What this machine knows to be secret: the rules, and values of its environment.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::OnceLock;

use unspool_model::edit::redact::Redactor;
use unspool_model::secrets::SecretFinder;
use unspool_store::own_file;

/// Words in the names of variables that hold secrets.
const NAMES: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASS"];

/// Shorter values are found everywhere.
const SHORTEST: usize = 12;

/// The rules, and the values of variables that are called a secret.
pub fn known() -> &'static SecretFinder {
    static KNOWN: OnceLock<SecretFinder> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let variables = std::env::vars_os();
        let variables = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        SecretFinder::standard()
            .with_values(variables.filter(|(name, value)| is_secret(name, value)))
    })
}

/// What takes secrets out of all that is shown.
pub fn masker() -> &'static Redactor {
    static MASKER: OnceLock<Redactor> = OnceLock::new();
    MASKER.get_or_init(|| Redactor::masking(known().clone()))
}

/// What takes tokens out of names: those of known forms, and known values.
pub fn name_masker() -> &'static Redactor {
    static MASKER: OnceLock<Redactor> = OnceLock::new();
    MASKER.get_or_init(|| Redactor::masking(known().forms_only()))
}

/// The same for documents, which never show the copies of files beside results.
pub fn page_masker() -> &'static Redactor {
    static MASKER: OnceLock<Redactor> = OnceLock::new();
    MASKER.get_or_init(|| masker().clone().without_copies())
}

fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // `SSH_ASKPASS` names a program.
    let is_file = || value.starts_with('/') && Path::new(value).exists();
    NAMES.iter().any(|word| name.contains(word)) && value.len() >= SHORTEST && !is_file()
}

/// Where the key of placeholders is kept.
const KEY: &str = "redact.key";

/// What puts placeholders in place of secrets. The key of their hashes is made once and kept
/// in the config folder, so that the same secret has the same placeholder from now on; a dry
/// run keeps nothing.
pub fn redactor(config: &Path, dry_run: bool) -> io::Result<Redactor> {
    let path = config.join(KEY);
    let key = match own_file::read(&path) {
        Ok(bytes) => bytes.try_into().map_err(|_| {
            io::Error::new(ErrorKind::InvalidData, "not a 32-byte key; remove the file")
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(io::Error::other)?;
            if !dry_run {
                own_file::replace(&path, &key)?;
            }
            Ok(key)
        }
        Err(error) => Err(error),
    };
    let key =
        key.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(Redactor::new(known().clone(), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_secret_by_name_and_length() {
        assert!(is_secret("MY_API_KEY", "0123456789ab"));
        assert!(is_secret("db_password", "correct horse"));
        assert!(!is_secret("MY_API_KEY", "short"));
        assert!(!is_secret("EDITOR", "0123456789ab"));
        assert!(!is_secret("SSH_ASKPASS", "/usr/bin/env"));
    }

    #[test]
    fn the_key_is_made_once_for_nobody_else_to_read() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("new");
        redactor(&config, true).unwrap();
        assert!(!config.exists());
        let one = redactor(&config, false).unwrap();
        let two = redactor(&config, false).unwrap();
        assert_eq!(one.hash("x"), two.hash("x"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(config.join(KEY))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::write(config.join(KEY), "short").unwrap();
        assert!(redactor(&config, false).is_err());
    }
}
