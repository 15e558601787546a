//! Why a reader differs from the client in single cases.
//!
//! A miss that is not in this list is a mistake to be found.

/// Version (empty: any), case, reason.
const KNOWN: &[(&str, &str, &str)] = &[];

/// The reason, if it is known.
pub fn reason(version: &str, case: &str) -> Option<&'static str> {
    let matches =
        |known: &&(&str, &str, &str)| (known.0.is_empty() || known.0 == version) && known.1 == case;
    KNOWN.iter().find(matches).map(|known| known.2)
}
