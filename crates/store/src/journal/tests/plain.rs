//! What works do, and how they are undone, on a disk that does not fail.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use crate::atomic_write::ModifiedTimePolicy;
use crate::disk::DiskCall;
use crate::disk::test::watched;
use crate::error::StoreError;
use crate::journal::tests::kit::{self, Deed, Home};
use crate::journal::{JournalTask, UndoOptions};

const DEEDS: [Deed; 4] = [kit::clone, kit::edit, kit::title, kit::moving];

#[test]
fn undoing_brings_everything_back_and_undoing_that_does_it_again() {
    for deed in DEEDS {
        let home = Home::new();
        let before = home.picture();
        assert_eq!(deed(&home).unwrap(), 1);
        let after = home.picture();
        assert_ne!(before, after);
        assert_eq!(kit::undo(&home).unwrap(), 2);
        assert_eq!(home.picture(), before);
        assert_eq!(kit::redo(&home).unwrap(), 3);
        assert_eq!(home.picture(), after);
        assert_eq!(home.undo(Some(3)).unwrap().0, 4);
        assert_eq!(home.picture(), before);
    }
}

#[test]
fn without_a_number_the_latest_that_is_not_undone_is_meant() {
    let home = Home::new();
    let before = home.picture();
    kit::clone(&home).unwrap();
    kit::edit(&home).unwrap();
    kit::undo(&home).unwrap();
    kit::undo(&home).unwrap();
    assert_eq!(home.picture(), before);
    let error = kit::undo(&home).unwrap_err();
    assert_eq!(error.to_string(), "there is nothing to undo");
    let error = home.undo(Some(1)).unwrap_err();
    assert_eq!(error.to_string(), "edit 1 was already undone by edit 4");
    let list = home.journal().list().unwrap();
    let undone: Vec<_> = list.iter().map(|one| one.undone_by).collect();
    assert_eq!(undone, [Some(4), Some(3), None, None]);
}

#[test]
fn a_work_that_is_dropped_leaves_nothing() {
    let home = Home::new();
    let before = home.picture();
    let mut work = home.begin("clone").unwrap();
    let staged = work
        .create(&home.at("projects/-new/deep/s9.jsonl"), |out| {
            out.write_all(b"{}\n")
        })
        .unwrap();
    assert_eq!(fs::read(&staged.path).unwrap(), b"{}\n");
    assert_eq!(staged.mark.size, 3);
    drop(work);
    assert_eq!(home.picture(), before);
    assert_eq!(home.noted(), 0);
}

#[test]
fn new_files_are_for_nobody_else_and_replaced_ones_keep_mode_and_time() {
    let home = Home::new();
    let name = "projects/-p/s1.jsonl";
    let before = fs::metadata(home.at(name)).unwrap();
    kit::clone(&home).unwrap();
    kit::edit(&home).unwrap();
    let mode = |name: &str| fs::metadata(home.at(name)).unwrap().mode() & 0o7777;
    assert_eq!(mode("projects/-p/s9.jsonl"), 0o600);
    assert_eq!(mode("projects/-p/s9"), 0o700);
    assert_eq!(mode(name), 0o644);
    let after = fs::metadata(home.at(name)).unwrap();
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert_ne!(after.ino(), before.ino());
    for entry in fs::read_dir(home.undo_dir()).unwrap() {
        let metadata = entry.unwrap().metadata().unwrap();
        assert_eq!(metadata.mode() & 0o077, 0);
    }
}

#[test]
fn a_file_that_changed_since_is_not_touched_but_moved_aside_if_forced() {
    let home = Home::new();
    let before = home.picture();
    kit::edit(&home).unwrap();
    home.write("projects/-p/s1.jsonl", "{\"new\":1}\n");
    let error = home.undo(None).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("s1.jsonl` changed since: 10 bytes now, 8 bytes then")
    );
    assert!(error.hint().unwrap().contains("--force"));
    assert_eq!(home.noted(), 1);
    home.undo_as(None, true).unwrap();
    let aside = "projects/-p/s1.jsonl.changed-1";
    assert_eq!(home.read(aside), "{\"new\":1}\n");
    fs::remove_file(home.at(aside)).unwrap();
    assert_eq!(home.picture(), before);
}

#[test]
fn a_clone_that_was_continued_is_not_removed_without_force() {
    let home = Home::new();
    kit::clone(&home).unwrap();
    home.write(
        "projects/-p/s9.jsonl",
        "{\"a\":9}\n{\"b\":9}\n{\"more\":1}\n",
    );
    assert!(home.undo(None).is_err());
    assert!(home.at("projects/-p/s9/tool-results/t1.txt").exists());
    home.undo_as(None, true).unwrap();
    assert!(!home.at("projects/-p/s9.jsonl").exists());
    assert!(
        home.read("projects/-p/s9.jsonl.changed-1")
            .ends_with("{\"more\":1}\n")
    );
}

#[test]
fn a_line_with_others_behind_it_is_taken_back_by_another_line() {
    let home = Home::new();
    kit::title(&home).unwrap();
    let with = "{\"torn\":\n{\"title\":\"y\"}\n";
    assert_eq!(home.read("projects/-p/s2.jsonl"), with);
    home.write("projects/-p/s2.jsonl", &format!("{with}{{\"more\":1}}\n"));
    home.undo(None).unwrap();
    let taken_back = format!("{with}{{\"more\":1}}\n{{\"title\":\"x\"}}\n");
    assert_eq!(home.read("projects/-p/s2.jsonl"), taken_back);
}

#[test]
fn what_is_in_use_is_not_undone_and_a_line_is_then_added_not_cut() {
    let home = Home::new();
    kit::title(&home).unwrap();
    kit::edit(&home).unwrap();
    let how = UndoOptions {
        at: 0,
        force: true,
        in_use: &|path| {
            let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
            is_transcript.then(|| "process 7 works on it".to_owned())
        },
    };
    let error = home.journal().undo(None, &how).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("is in use: process 7 works on it")
    );
    home.journal().undo(Some(1), &how).unwrap();
    assert!(
        home.read("projects/-p/s2.jsonl")
            .ends_with("{\"title\":\"y\"}\n{\"title\":\"x\"}\n")
    );
}

#[test]
fn a_file_that_changed_after_it_was_read_is_not_replaced() {
    let home = Home::new();
    let name = "projects/-p/s1.jsonl";
    let stamp = home.stamp(name);
    home.write(name, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    let before = home.picture();
    let mut work = home.begin("edit").unwrap();
    let error = work
        .replace(&home.at(name), stamp, ModifiedTimePolicy::Now, |_| Ok(()))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("was changed by another program during the edit")
    );
    drop(work);
    // Also between the preparation and the end.
    let mut work = home.begin("edit").unwrap();
    let stamp = home.stamp(name);
    work.create(&home.at("todos/new.json"), |_| Ok(())).unwrap();
    work.replace(&home.at(name), stamp, ModifiedTimePolicy::Now, |_| Ok(()))
        .unwrap();
    home.write(name, "{\"other\":1}\n");
    assert!(work.commit().is_err());
    home.write(name, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    assert_eq!(home.picture(), before);
    assert_eq!(home.noted(), 0);
}

#[test]
fn a_line_that_comes_between_the_last_look_and_the_renaming_is_not_lost() {
    let home = Home::new();
    let name = "projects/-p/s1.jsonl";
    let path = home.at(name);
    let before = home.picture();
    // The note, the note again, the side file, the transcript.
    let mut renames = 0;
    let late = move |call: DiskCall| {
        renames += usize::from(call == DiskCall::Rename);
        if call == DiskCall::Rename && renames == 4 {
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, b"{\"late\":1}\n").unwrap();
        }
    };
    let error = watched(late, || kit::edit(&home)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("was changed by another program during the edit")
    );
    assert!(home.read(name).ends_with("{\"b\":2}\n{\"late\":1}\n"));
    home.write(name, "{\"a\":1}\n{\"b\":2}\n");
    assert_eq!(home.picture(), before);
    assert_eq!(home.noted(), 0);
}

#[test]
fn nothing_is_overwritten_or_written_elsewhere() {
    let home = Home::new();
    let before = home.picture();
    let outside = kit::temp();
    let mut work = home.begin("clone").unwrap();
    let refused = |result: Result<_, StoreError>| result.map(drop).unwrap_err().to_string();
    let name = home.at("projects/-p/s1.jsonl");
    assert!(
        refused(work.create(&name, |_| Ok(())))
            .ends_with("already exists: refusing to overwrite it")
    );
    let wrong = [
        outside.path().join("x.jsonl"),
        home.at("../x.jsonl"),
        home.at("projects/../../x.jsonl"),
        home.at(""),
    ];
    for path in wrong {
        let error = refused(work.create(&path, |_| Ok(())));
        assert!(error.starts_with("refusing to write to"), "{error}");
    }
    drop(work);
    assert_eq!(home.picture(), before);
}

#[test]
fn links_are_not_written_through() {
    let home = Home::new();
    let outside = kit::temp();
    fs::write(outside.path().join("victim"), "precious").unwrap();
    symlink(outside.path(), home.at("projects/-link")).unwrap();
    symlink(
        outside.path().join("victim"),
        home.at("projects/-p/l.jsonl"),
    )
    .unwrap();
    let mut work = home.begin("edit").unwrap();
    let error = work.create(&home.at("projects/-link/x.jsonl"), |_| Ok(()));
    assert!(error.unwrap_err().to_string().contains("is a symlink"));
    let link = home.at("projects/-p/l.jsonl");
    let stamp = home.stamp("projects/-p/l.jsonl");
    let error = work.replace(&link, stamp, ModifiedTimePolicy::Now, |_| Ok(()));
    assert!(error.unwrap_err().to_string().contains("is a symlink"));
    assert!(work.append_line(&link, "{}", None).is_err());
    assert!(work.remove(&link).is_err());
    drop(work);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    let victim = fs::read_to_string(outside.path().join("victim")).unwrap();
    assert_eq!(victim, "precious");
}

#[test]
fn a_folder_that_others_may_write_is_refused() {
    let home = Home::new();
    let folder = home.at("projects/-p");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let error = kit::clone(&home).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("-p` is world-writable: refusing to write to it")
    );
    assert!(error.hint().unwrap().contains("chmod"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    kit::clone(&home).unwrap();
}

#[test]
fn a_read_only_folder_is_named_and_nothing_changes() {
    let home = Home::new();
    if fs::metadata(home.at("")).unwrap().uid() == 0 {
        // The administrator may write everywhere; the failing disk covers this.
        return;
    }
    let folder = home.at("projects/-p");
    let before = home.picture();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    let error = kit::edit(&home).unwrap_err();
    assert!(error.to_string().ends_with("permission denied"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(home.picture(), before);
}

#[test]
fn two_editors_at_once_take_turns_or_fail_clearly() {
    let home = Home::new();
    let work = home.begin("first").unwrap();
    let error = home.begin("second").unwrap_err();
    let process = std::process::id();
    assert_eq!(
        error.to_string(),
        format!("another unspool (process {process}) is editing")
    );
    drop(work);
    home.begin("second").unwrap();
    let turns: Vec<u64> = std::thread::scope(|scope| {
        let one = |name: String| {
            let journal = home.journal().wait(std::time::Duration::from_secs(30));
            let mut work = journal.begin(home.task("many")).unwrap();
            work.create(&home.at("todos").join(name), |_| Ok(()))
                .unwrap();
            work.commit().unwrap()
        };
        let threads: Vec<_> = (0..8)
            .map(|at| scope.spawn(move || (0..5).map(|n| one(format!("{at}-{n}"))).collect()))
            .collect();
        let numbers = threads
            .into_iter()
            .flat_map(|thread| -> Vec<u64> { thread.join().unwrap() });
        numbers.collect()
    });
    let mut turns = turns;
    turns.sort_unstable();
    assert_eq!(turns, (1..=40).collect::<Vec<u64>>());
}

#[test]
fn old_copies_go_but_what_was_done_stays_known() {
    let home = Home::new();
    let day = 86_400_000;
    let at = |at: i64| JournalTask {
        at,
        ..home.task("edit")
    };
    let name = "projects/-p/s1.jsonl";
    for turn in 0..60 {
        let mut work = home.journal().begin(at(turn)).unwrap();
        work.replace(
            &home.at(name),
            home.stamp(name),
            ModifiedTimePolicy::Now,
            |out| write!(out, "{turn}"),
        )
        .unwrap();
        work.commit().unwrap();
    }
    home.journal().begin(at(40 * day)).unwrap();
    let list = home.journal().list().unwrap();
    assert_eq!(list.len(), 60);
    let pruned = list.iter().filter(|one| one.entry.pruned).count();
    assert_eq!(pruned, 10);
    assert!(!home.undo_dir().join("000001/0").exists());
    assert!(home.undo_dir().join("000011/0").exists());
    let error = home.undo(Some(1)).unwrap_err();
    assert!(error.to_string().ends_with("were pruned"));
}

#[test]
fn a_path_is_changed_once() {
    let home = Home::new();
    let mut work = home.begin("edit").unwrap();
    let path: PathBuf = home.at("todos/x.json");
    work.create(&path, |_| Ok(())).unwrap();
    let error = work.create(&path, |_| Ok(())).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("would be changed twice in one edit")
    );
}
