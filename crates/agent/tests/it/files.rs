//! Read, Write, Edit and NotebookEdit: texts and results as the original's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use unspool_agent::tool::{ToolContent, ToolOutcome};
use unspool_agent::tool_host::ToolHost;

use crate::host::{Session, text};

fn read(session: &Session, name: &str) -> ToolOutcome {
    session.call("Read", json!({"file_path": session.path(name)}))
}

fn edit(session: &Session, name: &str, old: &str, new: &str) -> ToolOutcome {
    let input = json!({"file_path": session.path(name), "old_string": old, "new_string": new});
    session.call("Edit", input)
}

fn error(text: &str) -> String {
    format!("<tool_use_error>{text}</tool_use_error>")
}

#[test]
fn a_text_is_read_with_numbers_and_tabs() {
    let session = Session::new();
    let path = session.write("a.txt", "alpha\nbeta\n\tgamma\n");
    let outcome = read(&session, "a.txt");
    assert_eq!(text(&outcome), "1\talpha\n2\tbeta\n3\t\tgamma\n4\t");
    assert_eq!(outcome.is_error, None);
    assert_eq!(
        outcome.result,
        json!({"type": "text", "file": {"filePath": path, "content": "alpha\nbeta\n\tgamma\n",
               "numLines": 4, "startLine": 1, "totalLines": 4}})
    );
}

#[test]
fn a_part_is_read_by_offset_and_limit() {
    let session = Session::new();
    let path = session.write("a.txt", "1\n2\n3\n4\n5\n");
    let outcome = session.call("Read", json!({"file_path": path, "offset": 2, "limit": 2}));
    assert_eq!(text(&outcome), "2\t2\n3\t3");
    assert_eq!(outcome.result["file"]["content"], "2\n3");
    assert_eq!(outcome.result["file"]["startLine"], 2);
    assert_eq!(outcome.result["file"]["totalLines"], 6);
}

#[test]
fn past_the_end_and_empty_are_warnings() {
    let session = Session::new();
    let path = session.write("long.txt", "x\n".repeat(3000));
    let outcome = session.call("Read", json!({"file_path": path, "offset": 99_999}));
    assert_eq!(
        text(&outcome),
        "<system-reminder>Warning: the file exists but is shorter than the provided offset (99999). The file has 3001 lines.</system-reminder>"
    );
    session.write("empty.txt", "");
    let outcome = read(&session, "empty.txt");
    assert_eq!(
        text(&outcome),
        "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
    );
    assert_eq!(outcome.is_error, None);
}

#[test]
fn what_cannot_be_read_is_told_as_the_original_tells_it() {
    let session = Session::new();
    let missing = format!(
        "File does not exist. Note: your current working directory is {}.",
        session.project.display()
    );
    let outcome = read(&session, "nope.txt");
    assert_eq!(text(&outcome), missing);
    assert_eq!(
        (outcome.is_error, outcome.result),
        (Some(true), json!(format!("Error: {missing}")))
    );
    fs::create_dir(session.project.join("dir")).unwrap();
    assert_eq!(
        text(&read(&session, "dir")),
        format!(
            "EISDIR: illegal operation on a directory, read '{}'",
            session.path("dir")
        )
    );
    session.write("x.dat", b"a\0b");
    assert_eq!(
        text(&read(&session, "x.dat")),
        "This tool cannot read binary files. The file appears to be a binary .dat file. Please use appropriate tools for binary file analysis."
    );
    session.write("big.txt", "x\n".repeat(1 << 19));
    assert!(text(&read(&session, "big.txt")).starts_with(
        "File content (1MB) exceeds maximum allowed size (256KB). Use offset and limit"
    ));
    let outcome = session.call("Read", json!({"file_path": "/dev/zero"}));
    assert!(text(&outcome).contains("never come to an end"));
}

#[test]
fn part_of_a_large_file_can_be_read_and_a_long_line_whole() {
    let session = Session::new();
    let path = session.write("big.txt", "line\n".repeat(1_000_000));
    let outcome = session.call(
        "Read",
        json!({"file_path": path, "offset": 999_999, "limit": 1}),
    );
    assert_eq!(text(&outcome), "999999\tline");
    session.write("wide.txt", "y".repeat(5_000));
    assert_eq!(text(&read(&session, "wide.txt")).len(), 5_002);
}

#[test]
fn a_file_of_many_tokens_is_shown_from_its_beginning() {
    let session = Session::new();
    let path = session.write("many.txt", "twenty characters 20\n".repeat(8_000));
    let outcome = read(&session, "many.txt");
    assert_eq!(outcome.result["file"]["truncatedByTokenCap"], true);
    let shown = outcome.result["file"]["numLines"].as_u64().unwrap();
    assert!(text(&outcome).contains(&format!("Read on with offset {}", shown + 1)));
    assert!(text(&outcome).contains("PARTIAL view"));
    let all = session.call("Read", json!({"file_path": path, "allow_large": true}));
    assert_eq!(all.result["file"]["numLines"], 8_001);
    let rest = session.call("Read", json!({"file_path": path, "offset": shown + 1}));
    assert!(text(&rest).starts_with(&format!("{}\ttwenty", shown + 1)));
}

/// The smallest picture there is.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 3, 0, 0,
    0, 2, 8, 2, 0, 0, 0, 0, 0, 0, 0,
];

#[test]
fn an_image_is_a_block_and_one_that_is_too_large_is_refused() {
    let session = Session::new();
    session.write("p.png", PNG);
    let outcome = read(&session, "p.png");
    let ToolContent::Blocks(blocks) = &outcome.content else {
        panic!("no blocks");
    };
    assert_eq!(blocks[0]["source"]["media_type"], "image/png");
    let file = &outcome.result["file"];
    assert_eq!(file["originalSize"], PNG.len());
    assert_eq!(
        file["dimensions"],
        json!({"originalWidth": 3, "originalHeight": 2, "displayWidth": 3, "displayHeight": 2})
    );
    let mut wide = PNG.to_vec();
    wide[18..20].copy_from_slice(&[0x40, 0]);
    session.write("wide.png", wide);
    assert!(text(&read(&session, "wide.png")).contains("16384 x 2 pixels"));
    let mut heavy = PNG.to_vec();
    heavy.resize(4 << 20, 0);
    session.write("heavy.png", heavy);
    assert!(text(&read(&session, "heavy.png")).contains("takes 4MB, and the limit is 3.8MB"));
    session.write("lie.png", "text");
    assert!(text(&read(&session, "lie.png")).starts_with("This tool cannot read binary"));
}

#[test]
fn a_pdf_is_a_document_and_its_single_pages_are_refused_with_a_way_on() {
    let session = Session::new();
    let path = session.write("a.pdf", "%PDF-1.4\n...");
    let outcome = read(&session, "a.pdf");
    let ToolContent::Blocks(blocks) = &outcome.content else {
        panic!("no blocks");
    };
    assert_eq!(
        blocks[0]["text"],
        format!("PDF file read: {path} (12 bytes)")
    );
    assert_eq!(blocks[1]["type"], "document");
    let outcome = session.call("Read", json!({"file_path": path, "pages": "1-2"}));
    assert!(text(&outcome).contains("pdftotext -f"));
}

fn notebook() -> Value {
    json!({
        "cells": [
            {"cell_type": "markdown", "id": "m1", "metadata": {}, "source": ["# A\n", "b"]},
            {"cell_type": "code", "id": "c1", "metadata": {}, "execution_count": 3,
             "source": "1+1",
             "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                         {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["t1", "t2"]}]},
        ],
        "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5,
    })
}

#[test]
fn a_notebook_is_read_as_cells_and_a_cell_is_changed() {
    let session = Session::new();
    let path = session.write(
        "n.ipynb",
        serde_json::to_string_pretty(&notebook()).unwrap(),
    );
    let change = |input: Value| {
        let mut whole = json!({"notebook_path": path, "new_source": "x"});
        for (key, value) in input.as_object().unwrap() {
            whole[key] = value.clone();
        }
        session.call("NotebookEdit", whole)
    };
    assert_eq!(
        text(&change(json!({"cell_id": "c1"}))),
        error("File has not been read yet. Read it first before writing to it.")
    );
    let outcome = read(&session, "n.ipynb");
    let ToolContent::Blocks(blocks) = &outcome.content else {
        panic!("no blocks");
    };
    assert_eq!(
        blocks[0]["text"],
        "<cell id=\"m1\"><cell_type>markdown</cell_type># A\nb</cell id=\"m1\">\n<cell id=\"c1\">1+1</cell id=\"c1\">\n2\nE: v\nt1\nt2\n"
    );
    assert_eq!(outcome.result["type"], "notebook");
    assert_eq!(
        text(&change(json!({"cell_id": "c1"}))),
        "Updated cell c1 with x"
    );
    let now: Value = serde_json::from_slice(&session.bytes("n.ipynb")).unwrap();
    assert_eq!(now["cells"][1]["outputs"], json!([]));
    let inserted = change(json!({"edit_mode": "insert", "cell_type": "code", "cell_id": "m1"}));
    assert!(text(&inserted).starts_with("Inserted cell "));
    assert_eq!(
        text(&change(json!({"edit_mode": "delete", "cell_id": "m1"}))),
        "Deleted cell m1"
    );
    let now: Value = serde_json::from_slice(&session.bytes("n.ipynb")).unwrap();
    assert_eq!(now["cells"].as_array().unwrap().len(), 2);
    assert_eq!(now["cells"][1]["id"], "c1");
    assert!(text(&change(json!({"cell_id": "zz"}))).contains("Cell with ID \"zz\" not found"));
    assert_eq!(session.changes.lock().unwrap().len(), 3);
}

#[test]
fn a_file_is_written_with_its_folders_and_then_updated() {
    let session = Session::new();
    let path = session.path("new/deep/a.txt");
    let outcome = session.call("Write", json!({"file_path": path, "content": "fresh\n"}));
    assert_eq!(
        text(&outcome),
        format!(
            "File created successfully at: {path} (file state is current in your context — no need to Read it back)"
        )
    );
    assert_eq!(
        outcome.result,
        json!({"type": "create", "filePath": path, "content": "fresh\n", "structuredPatch": [],
               "originalFile": null, "userModified": false})
    );
    let outcome = session.call("Write", json!({"file_path": path, "content": "other\n"}));
    assert_eq!(
        text(&outcome),
        format!(
            "The file {path} has been updated successfully. (file state is current in your context — no need to Read it back)"
        )
    );
    assert_eq!(outcome.result["type"], "update");
    assert_eq!(outcome.result["originalFile"], "fresh\n");
    assert_eq!(
        outcome.result["structuredPatch"][0]["lines"],
        json!(["-fresh", "+other"])
    );
    assert_eq!(session.changes.lock().unwrap().len(), 2);
}

#[test]
fn a_file_that_was_not_read_or_has_changed_is_not_written_over() {
    let session = Session::new();
    let path = session.write("a.txt", "mine\n");
    let write = || session.call("Write", json!({"file_path": path, "content": "x"}));
    assert_eq!(
        text(&write()),
        error("File has not been read yet. Read it first before writing to it.")
    );
    read(&session, "a.txt");
    session.write("a.txt", "mine, changed\n");
    assert!(text(&write()).contains("File has been modified since read"));
    // The same content again, later: nothing has changed.
    session.write("a.txt", "mine\n");
    assert!(text(&write()).contains("updated successfully"));
    assert_eq!(session.changes.lock().unwrap().len(), 1);
}

#[test]
fn an_edit_is_told_as_the_original_tells_it() {
    let session = Session::new();
    let path = session.write("a.txt", "one\ntwo\nthree\n");
    read(&session, "a.txt");
    let outcome = edit(&session, "a.txt", "two", "TWO");
    assert_eq!(
        text(&outcome),
        format!(
            "The file {path} has been updated successfully. (file state is current in your context — no need to Read it back)"
        )
    );
    assert_eq!(
        outcome.result,
        json!({"filePath": path, "oldString": "two", "newString": "TWO",
               "originalFile": "one\ntwo\nthree\n",
               "structuredPatch": [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3,
                                    "lines": [" one", "-two", "+TWO", " three"]}],
               "userModified": false, "replaceAll": false})
    );
    assert_eq!(session.bytes("a.txt"), b"one\nTWO\nthree\n");
    assert_eq!(
        *session.changes.lock().unwrap(),
        [session.project.join("a.txt")]
    );
}

#[test]
fn an_edit_that_cannot_be_made_changes_nothing() {
    let session = Session::new();
    session.write("a.txt", "x y x\n");
    assert_eq!(
        text(&edit(&session, "a.txt", "x", "x")),
        error("No changes to make: old_string and new_string are exactly the same.")
    );
    assert_eq!(
        text(&edit(&session, "a.txt", "x", "z")),
        error("File has not been read yet. Read it first before writing to it.")
    );
    read(&session, "a.txt");
    assert_eq!(
        text(&edit(&session, "a.txt", "q\nr", "z")),
        error("String to replace not found in file.\nString: q\nr")
    );
    assert_eq!(
        text(&edit(&session, "a.txt", "x", "z")),
        error(
            "Found 2 matches of the string to replace, but replace_all is false. To replace all occurrences, set replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: x"
        )
    );
    assert!(text(&edit(&session, "none.txt", "x", "z")).contains("File does not exist."));
    assert_eq!(session.bytes("a.txt"), b"x y x\n");
    assert!(session.changes.lock().unwrap().is_empty());
}

#[test]
fn every_occurrence_is_replaced_if_asked() {
    let session = Session::new();
    let path = session.write("a.txt", "x y x\nx\n");
    read(&session, "a.txt");
    let input =
        json!({"file_path": path, "old_string": "x", "new_string": "xx", "replace_all": true});
    let outcome = session.call("Edit", input);
    assert_eq!(
        text(&outcome),
        format!(
            "The file {path} has been updated successfully. All occurrences were successfully replaced. (file state is current in your context — no need to Read it back)"
        )
    );
    assert_eq!(session.bytes("a.txt"), b"xx y xx\nxx\n");
}

#[test]
fn a_file_that_has_changed_may_still_be_edited_where_it_is_quoted_exactly() {
    let session = Session::new();
    let path = session.write("a.txt", "one\ntwo\n");
    read(&session, "a.txt");
    session.write("a.txt", "zero\none\ntwo\n");
    let outcome = edit(&session, "a.txt", "two", "2");
    assert_eq!(
        text(&outcome),
        format!("The file {path} has been updated successfully.")
    );
    assert_eq!(outcome.result["contentNotInModelContext"], true);
    assert_eq!(session.bytes("a.txt"), b"zero\none\n2\n");
    session.write("b.txt", "b\n");
    session.kept().saw_before(&session.project.join("b.txt"));
    let outcome = edit(&session, "b.txt", "b", "B");
    assert_eq!(outcome.result["contentNotInModelContext"], true);
}

#[test]
fn line_ends_marks_and_encodings_stay() {
    let session = Session::new();
    session.write("crlf.txt", "one\r\ntwo\r\nthree\r\n");
    assert_eq!(
        text(&read(&session, "crlf.txt")),
        "1\tone\n2\ttwo\n3\tthree\n4\t"
    );
    edit(&session, "crlf.txt", "one\ntwo", "1\n2\n2b");
    assert_eq!(session.bytes("crlf.txt"), b"1\r\n2\r\n2b\r\nthree\r\n");
    let input = json!({"file_path": session.path("crlf.txt"), "content": "a\nb\n"});
    session.call("Write", input);
    assert_eq!(session.bytes("crlf.txt"), b"a\r\nb\r\n");
    session.write("mixed.txt", "one\r\ntwo\nthree\n");
    read(&session, "mixed.txt");
    edit(&session, "mixed.txt", "two\nthree", "2\n3");
    edit(&session, "mixed.txt", "one\n2", "1\n2");
    assert_eq!(session.bytes("mixed.txt"), b"1\r\n2\n3\n");
    session.write("mark.txt", "\u{feff}one\n");
    assert_eq!(text(&read(&session, "mark.txt")), "1\tone\n2\t");
    edit(&session, "mark.txt", "one", "1");
    assert_eq!(session.bytes("mark.txt"), "\u{feff}1\n".as_bytes());
    session.write("wide.txt", b"\xff\xfea\0\n\0");
    assert_eq!(text(&read(&session, "wide.txt")), "1\ta\n2\t");
    edit(&session, "wide.txt", "a", "é");
    assert_eq!(session.bytes("wide.txt"), b"\xff\xfe\xe9\0\n\0");
    session.write("latin.txt", b"caf\xe9\nx\n");
    read(&session, "latin.txt");
    edit(&session, "latin.txt", "x", "y");
    assert_eq!(session.bytes("latin.txt"), b"caf\xe9\ny\n");
}

#[test]
fn links_are_followed_and_modes_stay() {
    let session = Session::new();
    session.write("real.sh", "#!/bin/sh\n");
    let real = session.project.join("real.sh");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o750)).unwrap();
    symlink("real.sh", session.project.join("link.sh")).unwrap();
    read(&session, "link.sh");
    // Read by one name, edited by another: it is the same file.
    assert!(text(&edit(&session, "real.sh", "sh\n", "bash\n")).contains("updated"));
    edit(&session, "link.sh", "bash", "zsh");
    assert_eq!(session.bytes("real.sh"), b"#!/bin/zsh\n");
    assert!(
        fs::symlink_metadata(session.project.join("link.sh"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o750
    );
}

#[test]
fn an_edit_without_old_text_makes_a_file() {
    let session = Session::new();
    edit(&session, "new.txt", "", "hello\n");
    assert_eq!(session.bytes("new.txt"), b"hello\n");
    assert!(text(&edit(&session, "new.txt", "", "again")).contains("already exists"));
}

#[test]
fn a_hundred_thousand_replacements_are_made_in_one_go() {
    let session = Session::new();
    let path = session.write("a.txt", "ab\n".repeat(100_000));
    session.call("Read", json!({"file_path": path, "limit": 1}));
    let input =
        json!({"file_path": path, "old_string": "a", "new_string": "A", "replace_all": true});
    assert!(text(&session.call("Edit", input)).contains("All occurrences"));
    assert_eq!(session.bytes("a.txt"), "Ab\n".repeat(100_000).as_bytes());
}

#[test]
fn a_change_to_a_large_file_does_not_write_all_of_it_down() {
    let session = Session::new();
    let path = session.write("a.txt", format!("{}needle\n", "line\n".repeat(1 << 19)));
    session.call("Read", json!({"file_path": path, "limit": 1}));
    let outcome = edit(&session, "a.txt", "needle", "thread");
    assert_eq!(outcome.result["originalFile"], Value::Null);
    assert!(outcome.result.to_string().len() < 1_000);
    session.write("huge.txt", "");
    let huge = fs::File::options()
        .write(true)
        .open(session.project.join("huge.txt"))
        .unwrap();
    huge.set_len(65 << 20).unwrap();
    assert!(text(&edit(&session, "huge.txt", "a", "b")).contains("65MB is too large"));
}
