//! `cargo xtask conformance`: does our reader see what the real client sends?
//!
//! Resumes recorded sessions and edited copies of them with the real client,
//! in a network namespace that holds nothing but our scripted API, and
//! compares the first request with what a reader prints for the same file.
//! `conformance phoenix` asks a real receiver of traces instead.

mod bisect;
mod cases;
mod chat;
mod client;
mod compare;
mod edited;
mod newest;
mod options;
mod probes;
mod record;
mod report;
mod run;

use options::Options;
use std::process::Command;

/// Anything that stops the task, already worded for people.
type Problem = Box<dyn std::error::Error>;

/// Runs the task and turns its outcome into an exit code.
pub fn run(arguments: &[String]) -> crate::Outcome {
    if let Some((first, rest)) = arguments.split_first()
        && first == "phoenix"
    {
        return crate::phoenix::run(rest);
    }
    match Options::parse(arguments).and_then(perform) {
        Ok(true) => Ok(()),
        Ok(false) => Err("not everything is equal".to_owned()),
        Err(problem) => Err(problem.to_string()),
    }
}

/// True if every version is within the limit.
fn perform(mut options: Options) -> Result<bool, Problem> {
    if options.chat {
        return chat::perform(options);
    }
    if options.inside.is_none() {
        if options.newest {
            return newest::perform(options);
        }
        if options.bisect {
            return bisect::perform(&options);
        }
        if options.probes {
            return probes::perform(&options);
        }
    }
    // Built here, because inside the namespace nothing can be fetched.
    if options.edited && options.program.is_none() {
        options.program = Some(compare::program(&options)?);
    }
    let options = &options;
    if options.edited && options.only_make {
        return edited::only_make(options);
    }
    if let Some(version) = &options.inside {
        if options.newest {
            newest::version(options, version)?;
        } else if options.edited {
            edited::version(options, version)?;
        } else {
            run::version(options, version)?;
        }
        return Ok(true);
    }
    for version in &options.versions {
        if options.run {
            client::install(options, version)?;
            reenter(options, version)?;
        }
    }
    if options.edited {
        return edited::compare(options);
    }
    if options.write_fixtures {
        report::write_fixtures(options)?;
    }
    let mut good = true;
    let mut rows = Vec::new();
    for version in &options.versions {
        let row = compare::version(options, version)?;
        good &= row.passes();
        rows.push(row);
    }
    report::print(&rows);
    if options.write_docs {
        report::write_docs(&rows)?;
    }
    Ok(good)
}

/// Starts this program again inside a namespace without a network.
fn reenter(options: &Options, version: &str) -> Result<(), Problem> {
    let status = Command::new("unshare")
        .arg("-rn")
        .arg(std::env::current_exe()?)
        .args(["conformance", "--inside", version])
        .args(options.for_inside())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the run of {version} ended with {status}").into())
    }
}
