//! `cargo xtask web`: the committed page of the dashboard is what its sources give.
//!
//! The sources are checked and built with exactly the packages of the lock file, into another
//! folder, and every file is compared byte for byte. `cargo build` never needs Node: it embeds
//! what is committed. `cargo xtask web --write` puts the new page in its place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, needs};

/// What the page may weigh, compressed as browsers get it from elsewhere.
const MOST: u64 = 200_000;

/// Checks, builds and compares.
pub fn run(args: &[String]) -> Outcome {
    let write = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => return Err("usage: cargo xtask web [--write]".into()),
    };
    packages()?;
    npm(&["run", "--silent", "check"])?;
    npm(&["run", "--silent", "test"])?;
    let dist = folder().join("dist");
    if write {
        npm(&["run", "--silent", "build"])?;
    } else {
        same_as(&dist)?;
    }
    let weight = weight(&dist)?;
    println!("the page weighs {weight} bytes compressed (at most {MOST})");
    if weight > MOST {
        return Err("the page is too heavy".into());
    }
    Ok(())
}

/// The sources of the page.
pub fn folder() -> PathBuf {
    crate::root().join("web")
}

/// Installs exactly what the lock file names, if it is not there.
pub fn packages() -> Outcome {
    let lock = folder().join("package-lock.json");
    let installed = folder().join("node_modules/.package-lock.json");
    let time = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
    match (time(&lock), time(&installed)) {
        (Some(wanted), Some(there)) if there >= wanted => Ok(()),
        // Not `npm ci`: a lock that was made where packages for other systems could not be had
        // does not name them, and that refuses it.
        _ => npm(&["install", "--no-save", "--no-audit", "--no-fund"]),
    }
}

fn npm(args: &[&str]) -> Outcome {
    needs::succeed(Command::new("npm").args(args).current_dir(folder()))
}

/// Builds into a folder of its own and compares.
fn same_as(dist: &Path) -> Outcome {
    let fresh = std::env::temp_dir().join(format!("unspool-web-{}", std::process::id()));
    let out = fresh.display().to_string();
    let built = npm(&["run", "--silent", "build", "--", "--outDir", &out]);
    let compared = built.and_then(|()| compare(&files(dist)?, &files(&fresh)?));
    // Left-overs in the temporary folder harm nobody.
    let _ = std::fs::remove_dir_all(&fresh);
    compared
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn compare(committed: &Files, fresh: &Files) -> Outcome {
    let differs = |name: &&PathBuf| committed.get(*name) != fresh.get(*name);
    let names = committed.keys().chain(fresh.keys());
    match names.into_iter().find(differs) {
        None => Ok(()),
        Some(name) => Err(format!(
            "web/dist is not what its sources give ({}); `cargo xtask web --write` makes it so",
            name.display()
        )),
    }
}

/// Every file below a folder, by its name there.
fn files(folder: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        let told = |error: std::io::Error| format!("{}: {error}", at.display());
        for entry in std::fs::read_dir(&at).map_err(told)? {
            let path = entry.map_err(told)?.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(name) = path.strip_prefix(folder) {
                files.insert(name.to_path_buf(), std::fs::read(&path).map_err(told)?);
            }
        }
    }
    Ok(files)
}

/// Bytes of all files, each compressed.
fn weight(dist: &Path) -> Result<u64, String> {
    const SCRIPT: &str = "const {readdirSync,readFileSync}=require('node:fs');\
        const {gzipSync}=require('node:zlib');const dir=process.argv[1];\
        const files=readdirSync(dir,{recursive:true,withFileTypes:true}).filter(f=>f.isFile());\
        console.log(files.reduce((sum,f)=>sum+gzipSync(readFileSync((f.parentPath??f.path)+'/'+f.name),{level:9}).length,0))";
    let output = Command::new("node")
        .args(["-e", SCRIPT])
        .arg(dist)
        .output()
        .map_err(|error| format!("node: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim()
        .parse()
        .map_err(|_| format!("nobody knows how heavy {} is", dist.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[(&str, &str)]) -> Files {
        let file = |(name, text): &(&str, &str)| (name.into(), text.as_bytes().to_vec());
        names.iter().map(file).collect()
    }

    #[test]
    fn a_page_that_was_not_built_again_is_noticed() {
        let old = files(&[("index.html", "a"), ("assets/x.js", "b")]);
        assert!(compare(&old, &old.clone()).is_ok());
        for other in [
            files(&[("index.html", "a"), ("assets/x.js", "c")]),
            files(&[("index.html", "a"), ("assets/y.js", "b")]),
            files(&[("index.html", "a")]),
        ] {
            assert!(compare(&old, &other).is_err());
            assert!(compare(&other, &old).is_err());
        }
    }
}
