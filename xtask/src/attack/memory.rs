//! Lines without end: how much memory each reading command takes for a hostile file.
//!
//! The promise is 64 MB and twice the longest line, of which 64 MB count at most, and a little for
//! every line that makes sense: [`PER_LINE`] bytes, [`PER_LINE_SHOWN`] while a turn is written out.

use std::io::{BufWriter, Write};
use std::path::Path;

use unspool_testkit::home::slug;

use super::AttackLog;
use crate::measure;

const ID: &str = "11110000-0000-4000-8000-000000000001";

/// What a session keeps of each line.
const PER_LINE: f64 = 110.0;

/// What is held of each line of the turn that is being written as text: all of it, twice.
const PER_LINE_SHOWN: f64 = 750.0;

/// Commands that read whole sessions.
const COMMANDS: &[&[&str]] = &[
    &["ls", "--all"],
    &["info", ID],
    &["check", ID],
    &["turns", ID],
    &["show", ID],
    &["usage"],
    &["search", "needle"],
    &["scan", "--all"],
    &["messages", ID],
    &["context", ID],
    &["files", ID],
    &["tree", ID],
    &["export", ID, "--to", "md", "-o", "-"],
];

/// A file that costs a careless reader its memory.
struct HostileFile {
    name: &'static str,
    write: fn(&Path) -> std::io::Result<()>,
    /// The length of its longest line, in megabytes.
    longest: f64,
    /// How many lines make sense, in millions.
    lines: f64,
}

const FILES: &[HostileFile] = &[
    HostileFile {
        name: "2 GB of zeros in one line",
        write: |path| {
            let file = std::fs::File::create(path)?;
            file.set_len(2_000_000_000)
        },
        longest: 2_000.0,
        lines: 0.0,
    },
    HostileFile {
        name: "one string of 2 GB",
        write: |path| {
            let mut file = BufWriter::new(std::fs::File::create(path)?);
            file.write_all(br#"{"type":"user","message":{"role":"user","content":""#)?;
            let part = [b'a'; 1 << 20];
            for _ in 0..2_000 {
                file.write_all(&part)?;
            }
            file.write_all(b"\"}}\n")?;
            file.write_all(LAST.as_bytes())
        },
        longest: 2_100.0,
        lines: 0.0,
    },
    HostileFile {
        name: "a line with a million keys",
        write: |path| {
            let mut file = BufWriter::new(std::fs::File::create(path)?);
            file.write_all(b"{\"type\":\"user\"")?;
            for key in 0..1_000_000 {
                write!(file, ",\"key{key}\":1")?;
            }
            file.write_all(b"}\n")?;
            file.write_all(LAST.as_bytes())
        },
        longest: 14.0,
        lines: 0.0,
    },
    HostileFile {
        name: "a million types in a million lines",
        write: |path| {
            let mut file = BufWriter::new(std::fs::File::create(path)?);
            for kind in 0..1_000_000 {
                writeln!(file, "{{\"type\":\"kind{kind}\",\"field{kind}\":{kind}}}")?;
            }
            file.write_all(LAST.as_bytes())
        },
        longest: 0.0,
        lines: 1.0,
    },
    HostileFile {
        name: "12 MB of opening brackets",
        write: |path| {
            let mut file = BufWriter::new(std::fs::File::create(path)?);
            file.write_all(&vec![b'['; 12_000_000])?;
            file.write_all(b"\n")?;
            file.write_all(LAST.as_bytes())
        },
        longest: 12.0,
        lines: 0.0,
    },
];

/// An ordinary line after the hostile ones.
const LAST: &str = concat!(
    r#"{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/dev/x","#,
    r#""sessionId":"11110000-0000-4000-8000-000000000001","version":"2.1.325","type":"user","#,
    r#""message":{"role":"user","content":"the last needle"},"#,
    r#""uuid":"22220000-0000-4000-8000-000000000001","timestamp":"2026-01-05T11:00:00.000Z"}"#,
    "\n"
);

pub fn run(program: &Path, log: &mut AttackLog) -> Result<(), String> {
    for hostile in FILES {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let claude = folder.path().join("claude");
        let project = claude.join("projects").join(slug("/home/dev/x"));
        std::fs::create_dir_all(&project).map_err(|error| error.to_string())?;
        (hostile.write)(&project.join(format!("{ID}.jsonl"))).map_err(|error| error.to_string())?;
        let own = folder.path().join("unspool");
        let variables: [(&str, &Path); 3] = [
            ("HOME", folder.path()),
            ("CLAUDE_CONFIG_DIR", &claude),
            ("UNSPOOL_HOME", &own),
        ];
        let limit = 64.0 + 2.0 * hostile.longest.min(64.0);
        for command in COMMANDS {
            let per_line = match command[0] {
                "show" | "export" => PER_LINE_SHOWN,
                _ => PER_LINE,
            };
            let limit = limit + per_line * hostile.lines;
            let cost = measure::cost(program, command, &variables)?;
            eprintln!(
                "  {}: {}: {:.0} MB, {:.1} s, status {}",
                hostile.name, command[0], cost.peak, cost.wall, cost.status
            );
            log.held(cost.peak <= limit && (0..=2).contains(&cost.status), || {
                format!(
                    "{}: `{}` took {:.0} MB (at most {limit:.0}), status {}",
                    hostile.name, command[0], cost.peak, cost.status
                )
            });
        }
    }
    Ok(())
}
