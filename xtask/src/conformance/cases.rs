//! Which cases a run is about.

use super::Problem;
use super::options::Options;
pub use unspool_testkit::conformance::cases::Case;
use unspool_testkit::conformance::cases::{self, given};

/// The files named on the command line, or all cases whose names match.
pub fn of(options: &Options, version: &str) -> Result<Vec<Case>, Problem> {
    if !options.files.is_empty() {
        let files = options.files.iter().map(|file| given(file));
        return Ok(files.collect::<std::io::Result<_>>()?);
    }
    let mut cases = cases::of(&options.corpus, version)?;
    if let Some(only) = &options.only {
        cases.retain(|case| case.name.contains(only.as_str()));
    }
    Ok(cases)
}
