//! Somebody exchanges files and folders for links while we write.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::disk::test::watched;
use crate::journal::tests::kit::{self, Deed, Home};

/// A place that nobody asked us to write to.
struct Outside {
    dir: tempfile::TempDir,
}

impl Outside {
    fn new() -> Outside {
        let dir = kit::temp();
        let names = ["s1.jsonl", "s2.jsonl", "s1/custom-title.json"];
        for name in names.into_iter().chain(["s1/tool-results/t1.txt"]) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "precious\n").unwrap();
        }
        Outside { dir }
    }

    fn is_untouched(&self) -> bool {
        let mut files = Vec::new();
        list(self.dir.path(), &mut files);
        let kept = |path: &PathBuf| fs::read(path).unwrap() == b"precious\n";
        files.len() == 4 && files.iter().all(kept)
    }
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Puts a link beside what it will be exchanged with.
fn link(home: &Home, name: &str, to: &Path) -> (PathBuf, PathBuf) {
    let real = home.at(name);
    let link = home.at("spare");
    symlink(to, &link).unwrap();
    (real, link)
}

fn exchange(one: &Path, other: &Path) {
    let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
}

const DEEDS: [Deed; 4] = [kit::clone, kit::edit, kit::title, kit::moving];

#[test]
fn a_link_that_appears_before_any_call_leads_nowhere() {
    for deed in DEEDS {
        for name in ["projects/-p", "projects/-p/s1", "projects/-p/s1.jsonl"] {
            for k in 0.. {
                let (home, outside) = (Home::new(), Outside::new());
                let behind = outside.dir.path().to_owned();
                let behind = match name {
                    "projects/-p" => behind,
                    name => behind.join(name.rsplit('/').next().unwrap()),
                };
                let (real, link) = link(&home, name, &behind);
                let mut calls = 0;
                let reached = std::rc::Rc::new(std::cell::Cell::new(false));
                let flag = reached.clone();
                let hook = move |_| {
                    if calls == k {
                        exchange(&real, &link);
                        flag.set(true);
                    }
                    calls += 1;
                };
                let _ = watched(hook, || deed(&home));
                assert!(outside.is_untouched(), "{name} at call {k}");
                if !reached.get() {
                    break;
                }
            }
        }
    }
}

#[test]
fn links_that_come_and_go_lead_nowhere() {
    race(2_000);
}

#[test]
#[ignore = "minutes: a hundred thousand tries"]
fn links_that_come_and_go_lead_nowhere_for_long() {
    race(100_000);
}

fn race(tries: usize) {
    let (home, outside) = (Home::new(), Outside::new());
    let (real, link) = link(&home, "projects/-p", outside.dir.path());
    let over = AtomicBool::new(false);
    let (mut done, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                exchange(&real, &link);
                std::thread::yield_now();
            }
        });
        for at in 0..tries {
            // The work begins anew each time; what is noted is not what is tested.
            let mut work = home.begin("race").unwrap();
            let path = home.at(&format!("projects/-p/new-{at}.jsonl"));
            let staged = work.create(&path, |out| out.write_all(b"{}\n"));
            let line = work.append_line(&home.at("projects/-p/s1.jsonl"), "{}", None);
            match staged.and(line).and_then(|()| work.commit()) {
                Ok(_) => done += 1,
                Err(_) => refused += 1,
            }
            let _ = fs::remove_dir_all(home.undo_dir());
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{done} done, {refused} refused");
    assert!(outside.is_untouched());
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
}
