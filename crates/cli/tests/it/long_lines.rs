//! Lines that are too long to be held: whatever the file, the program takes little memory, loses
//! nothing and reads the lines around them.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::process::Command;
use std::process::Output;

use unspool_testkit::home::Home;

use super::home;

const SESSION: &str = "5e551000-0000-4000-8000-0000000000aa";

#[cfg(target_os = "linux")]
/// So many bytes may be held at once: 64 MB, and twice the longest line up to 64 MB.
const MOST_MEMORY: u64 = 192 << 20;

fn prompt(number: u8, text: &str) -> String {
    let parent = match number {
        1 => "null".to_owned(),
        _ => format!("\"00000000-0000-4000-8000-00000000000{}\"", number - 1),
    };
    format!(
        r#"{{"type":"user","uuid":"00000000-0000-4000-8000-00000000000{number}","parentUuid":{parent},"sessionId":"{SESSION}","timestamp":"2026-01-01T00:00:0{number}Z","cwd":"/home/dev/x","version":"2.1.100","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

/// A session with a prompt before and behind what `write` puts between them.
fn session_around(home: &Home, write: impl FnOnce(&mut File)) -> PathBuf {
    let path = home.session("/home/dev/x", SESSION, "you: hi");
    let mut file = File::create(&path).unwrap();
    file.write_all(prompt(1, "the first prompt").as_bytes())
        .unwrap();
    write(&mut file);
    file.write_all(prompt(2, "the last prompt").as_bytes())
        .unwrap();
    path
}

/// A line of a gigabyte, nearly all of it a hole; `needle` stands in its midst.
fn gigabyte(file: &mut File, needle: &str) {
    file.seek(SeekFrom::Current(1 << 29)).unwrap();
    file.write_all(needle.as_bytes()).unwrap();
    file.seek(SeekFrom::Current(1 << 29)).unwrap();
    file.write_all(b"\n").unwrap();
}

/// Runs the program where more memory than this cannot be had.
#[cfg(target_os = "linux")]
fn run(home: &Home, args: &[&str]) -> Output {
    let command = home.command();
    let mut limited = Command::new("sh");
    let script = format!("ulimit -d {}; exec \"$0\" \"$@\"", MOST_MEMORY >> 10);
    limited.arg("-c").arg(script);
    limited.arg(command.get_program()).args(args);
    limited.env_clear();
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    limited.output().unwrap()
}

#[cfg(not(target_os = "linux"))]
fn run(home: &Home, args: &[&str]) -> Output {
    home.output(args)
}

fn told(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn size(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

#[test]
fn a_line_of_a_gigabyte_is_read_past_in_little_memory() {
    let home = home();
    session_around(&home, |file| gigabyte(file, "needle"));
    let listed = run(&home, &["ls", "--json"]);
    assert!(listed.status.success(), "{}", told(&listed));
    assert!(
        told(&listed).contains("the last prompt"),
        "{}",
        told(&listed)
    );
    let checked = run(&home, &["check", SESSION, "--json"]);
    assert!(told(&checked).contains("too_long"), "{}", told(&checked));
    assert!(
        told(&checked).contains("1.1 GB long; not decoded"),
        "{}",
        told(&checked)
    );
    let shown = run(&home, &["show", SESSION]);
    assert!(shown.status.success(), "{}", told(&shown));
    for said in ["the first prompt", "the last prompt", "1.1 GB long"] {
        assert!(told(&shown).contains(said), "{said}: {}", told(&shown));
    }
    for args in [["turns", SESSION], ["info", SESSION], ["context", SESSION]] {
        let output = run(&home, &args);
        assert!(output.status.success(), "{args:?}: {}", told(&output));
    }
    for args in [&["usage"][..], &["scan"], &["status"]] {
        let output = run(&home, args);
        assert!(
            output.status.code().is_some_and(|code| code <= 1),
            "{args:?}: {}",
            told(&output)
        );
    }
}

#[test]
fn a_text_inside_a_line_of_a_gigabyte_is_found() {
    let home = home();
    session_around(&home, |file| gigabyte(file, "\"the needle in it\""));
    let found = run(&home, &["search", "needle in it", "--json"]);
    assert!(found.status.success(), "{}", told(&found));
    assert!(told(&found).contains("\"line\":2"), "{}", told(&found));
    let found = run(&home, &["search", "the last prompt", "--json"]);
    assert!(told(&found).contains("\"line\":3"), "{}", told(&found));
}

#[test]
fn a_file_that_is_one_line_of_ten_gigabytes_is_listed() {
    let home = home();
    let path = home.session("/home/dev/x", SESSION, "you: hi");
    let file = File::create(&path).unwrap();
    file.set_len(10 << 30).unwrap();
    let checked = run(&home, &["check", SESSION, "--json"]);
    assert!(told(&checked).contains("too_long"), "{}", told(&checked));
    // It is no conversation, and nothing fits.
    let listed = run(&home, &["ls"]);
    assert_eq!(listed.status.code(), Some(1), "{}", told(&listed));
}

#[test]
fn a_copy_keeps_every_byte_of_a_line_that_nobody_decodes() {
    let home = home();
    let long = "0123456789".repeat(7 << 20);
    let path = session_around(&home, |file| {
        file.write_all(long.as_bytes()).unwrap();
        file.write_all(b"\n").unwrap();
    });
    let cloned = run(&home, &["clone", SESSION, "--json"]);
    assert!(cloned.status.success(), "{}", told(&cloned));
    let told = told(&cloned);
    let copy = path
        .parent()
        .unwrap()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|other| *other != path && other.extension().is_some_and(|it| it == "jsonl"))
        .unwrap_or_else(|| panic!("{told}"));
    assert!(size(&copy) >= size(&path), "{told}");
    let copy = std::fs::read(copy).unwrap();
    let lines: Vec<&[u8]> = copy.split(|byte| *byte == b'\n').collect();
    let at = lines.iter().position(|line| *line == long.as_bytes());
    let at = at.unwrap_or_else(|| panic!("{told}"));
    let says = |at: usize| String::from_utf8_lossy(lines[at]).into_owned();
    assert!(
        says(at - 1).contains("the first prompt"),
        "{}",
        says(at - 1)
    );
    assert!(says(at + 1).contains("the last prompt"), "{}", says(at + 1));
}
