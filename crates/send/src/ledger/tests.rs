use std::collections::BTreeSet;
use std::fs;
use std::thread;

use tempfile::TempDir;

use super::*;

const KEY: ReceiverKey = ReceiverKey([1; 8]);
const OTHER: ReceiverKey = ReceiverKey([2; 8]);

fn sent(n: u64, content: u8) -> LedgerNote {
    LedgerNote::Sent {
        trace: TraceId::of(&n.to_string()),
        digest: TraceDigest([content; 16]),
        spans: 3,
        session: "5e55".into(),
    }
}

fn trace(n: u64) -> TraceId {
    TraceId::of(&n.to_string())
}

fn has(ledger: &SendLedger, n: u64, content: u8) -> bool {
    let sent = ledger.sent(trace(n));
    sent.is_some_and(|sent| sent.has(TraceDigest([content; 16])))
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_first_trace_that_a_span_was_sent_in_has_it() {
    let dir = folder();
    let [a, b, c] = ["msg_a", "msg_b", "msg_c"].map(SpanId::of);
    let held = |n, spans: &[SpanId]| LedgerNote::Held {
        trace: trace(n),
        spans: spans.to_vec(),
    };
    let mut ledger = SendLedger::open(dir.path(), KEY).unwrap();
    ledger
        .note(&[held(1, &[a, b]), sent(1, 1), held(2, &[b, c]), held(3, &[])])
        .unwrap();
    for ledger in [ledger, SendLedger::open(dir.path(), KEY).unwrap()] {
        let holders = [a, b, c].map(|span| ledger.holder(span));
        let [one, two] = [1, 2].map(|n| Some(trace(n).start()));
        assert_eq!(holders, [one, one, two]);
        assert_eq!((ledger.len(), ledger.damaged()), (1, 0));
    }
    let other = SendLedger::open(dir.path(), OTHER).unwrap();
    assert_eq!(other.holder(a), None);
}

#[test]
fn what_was_noted_is_known_to_the_next_one_and_only_for_its_receiver() {
    let dir = folder();
    let notes = [
        sent(1, 1),
        sent(1, 2),
        LedgerNote::Before {
            session: "a".into(),
            lines: 7,
        },
        LedgerNote::Adopted,
        LedgerNote::Due {
            path: "/x y\n/ü.jsonl".into(),
            open: true,
        },
    ];
    SendLedger::open(dir.path(), KEY)
        .unwrap()
        .note(&notes)
        .unwrap();
    let ledger = SendLedger::open(dir.path(), KEY).unwrap();
    assert!(has(&ledger, 1, 1) && has(&ledger, 1, 2) && !has(&ledger, 1, 3));
    assert_eq!(&*ledger.sent(trace(1)).unwrap().session, "5e55");
    assert_eq!((ledger.before("a"), ledger.before("b")), (7, 0));
    assert!(ledger.adopted());
    let due: Vec<_> = ledger.due().collect();
    assert_eq!(due, [(Path::new("/x y\n/ü.jsonl"), true)]);
    let other = SendLedger::open(dir.path(), OTHER).unwrap();
    assert!(other.is_empty() && !other.adopted() && other.due().next().is_none());
}

#[test]
fn a_file_cut_anywhere_loses_only_what_was_cut_and_goes_on() {
    let dir = folder();
    let path = dir.path().join("ledger");
    let mut ledger = SendLedger::open(dir.path(), KEY).unwrap();
    for n in 0..4 {
        ledger.note(&[sent(n, 1)]).unwrap();
    }
    let whole = fs::read(&path).unwrap();
    for size in 0..whole.len() {
        fs::write(&path, &whole[..size]).unwrap();
        let mut ledger = SendLedger::open(dir.path(), KEY).unwrap();
        let lines = whole[..size].iter().filter(|byte| **byte == b'\n').count();
        let known = (0..4).take_while(|n| has(&ledger, *n, 1)).count();
        assert_eq!(known, lines.saturating_sub(1), "cut at {size}");
        ledger.note(&[sent(9, 1)]).unwrap();
        let ledger = SendLedger::open(dir.path(), KEY).unwrap();
        assert!(has(&ledger, 9, 1), "cut at {size}");
        assert_eq!(
            (ledger.len(), ledger.damaged()),
            (known + 1, 0),
            "cut at {size}"
        );
    }
}

#[test]
fn a_damaged_line_is_passed_over() {
    let dir = folder();
    let path = dir.path().join("ledger");
    let notes: Vec<LedgerNote> = (0..3).map(|n| sent(n, 1)).collect();
    SendLedger::open(dir.path(), KEY)
        .unwrap()
        .note(&notes)
        .unwrap();
    let whole = fs::read(&path).unwrap();
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in head..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let ledger = SendLedger::open(dir.path(), KEY).unwrap();
        let known = (0..3).filter(|n| has(&ledger, *n, 1)).count();
        // A newline that is none joins two lines; one too many cuts one in two.
        assert!((1..3).contains(&known), "flipped {at}: {known} known");
    }
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let dir = folder();
    let path = dir.path().join("ledger");
    fs::write(&path, "unspool sent 2 0\nanything\n").unwrap();
    let error = SendLedger::open(dir.path(), KEY).unwrap_err();
    assert!(error.to_string().contains("newer unspool"), "{error}");
    assert_eq!(
        fs::read(&path).unwrap(),
        b"unspool sent 2 0\nanything\n".to_vec()
    );
}

#[test]
fn something_else_is_moved_away() {
    let dir = folder();
    let path = dir.path().join("ledger");
    fs::write(&path, vec![0; 100]).unwrap();
    let mut ledger = SendLedger::open(dir.path(), KEY).unwrap();
    ledger.note(&[sent(1, 1)]).unwrap();
    assert!(has(&SendLedger::open(dir.path(), KEY).unwrap(), 1, 1));
    assert_eq!(
        fs::read(path.with_extension("damaged")).unwrap(),
        vec![0; 100]
    );
}

#[test]
fn what_others_note_is_seen_at_once() {
    let dir = folder();
    let mut one = SendLedger::open(dir.path(), KEY).unwrap();
    let mut two = SendLedger::open(dir.path(), KEY).unwrap();
    one.note(&[sent(1, 1)]).unwrap();
    two.note(&[sent(2, 1)]).unwrap();
    assert!(has(&two, 1, 1) && !has(&one, 2, 1));
    one.refresh().unwrap();
    assert!(has(&one, 2, 1));
}

#[test]
fn many_at_once_lose_nothing() {
    let dir = folder();
    thread::scope(|scope| {
        for worker in 0..8_u64 {
            let folder = dir.path();
            scope.spawn(move || {
                for n in 0..25 {
                    let mut ledger = SendLedger::open(folder, KEY).unwrap();
                    ledger.note(&[sent(worker * 100 + n, 1)]).unwrap();
                }
            });
        }
    });
    let ledger = SendLedger::open(dir.path(), KEY).unwrap();
    assert_eq!((ledger.len(), ledger.damaged()), (200, 0));
}

#[test]
fn a_file_that_is_mostly_old_is_written_anew_and_says_the_same() {
    let dir = folder();
    let path = dir.path().join("ledger");
    let due = |n: u64, open| LedgerNote::Due {
        path: format!("/{n}").into(),
        open,
    };
    let mut other = SendLedger::open(dir.path(), OTHER).unwrap();
    other.note(&[sent(5, 9)]).unwrap();
    let mut ledger = SendLedger::open(dir.path(), KEY).unwrap();
    let mut notes = vec![due(1, false), due(2, true), LedgerNote::Adopted];
    for content in 0..30 {
        notes.extend((0..100).map(|n| sent(n, content)));
    }
    notes.push(LedgerNote::Paid { path: "/1".into() });
    ledger.note(&notes).unwrap();
    let large = fs::metadata(&path).unwrap().len();
    let mut new = SendLedger::open(dir.path(), KEY).unwrap();
    let small = fs::metadata(&path).unwrap().len();
    assert!(small * 4 < large, "{small} of {large}");
    assert!((0..100).all(|n| has(&new, n, 29) && has(&new, n, 26) && !has(&new, n, 25)));
    assert!(new.adopted());
    assert_eq!(new.due().collect::<Vec<_>>(), [(Path::new("/2"), true)]);
    assert!(has(&SendLedger::open(dir.path(), OTHER).unwrap(), 5, 9));
    // One that knew the old file notices.
    ledger.note(&[sent(200, 1)]).unwrap();
    assert_eq!(ledger.len(), 101);
    new.refresh().unwrap();
    assert!(has(&new, 200, 1));
}

#[test]
fn lines_of_an_older_program_about_a_path_with_a_token_go_and_nothing_that_was_sent() {
    let dir = folder();
    let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
    let path = PathBuf::from(format!("/p/{token}/s.jsonl"));
    let other = PathBuf::from("/p/t.jsonl");
    let mut ledger = SendLedger::open(dir.path(), KEY).unwrap();
    ledger.note(&[sent(1, 1), sent(1, 2), sent(2, 1)]).unwrap();
    let mut bytes = fs::read(dir.path().join("ledger")).unwrap();
    for path in [path.clone(), other.clone()] {
        ledger_line::write(&mut bytes, KEY, &LedgerNote::Due { path, open: true });
    }
    ledger_line::write(&mut bytes, OTHER, &sent(3, 1));
    fs::write(dir.path().join("ledger"), bytes).unwrap();
    let ledger = SendLedger::open(dir.path(), KEY).unwrap();
    let due: BTreeSet<_> = ledger.due().map(|(path, _)| path.to_owned()).collect();
    assert_eq!(
        due,
        BTreeSet::from([path, other.clone()]),
        "this process sends it"
    );
    let text = fs::read_to_string(dir.path().join("ledger")).unwrap();
    assert!(!text.contains(&token), "{text}");
    let ledger = SendLedger::open(dir.path(), KEY).unwrap();
    assert!(has(&ledger, 1, 1) && has(&ledger, 1, 2) && has(&ledger, 2, 1));
    assert_eq!(ledger.due().collect::<Vec<_>>(), [(&*other, true)]);
    assert!(has(&SendLedger::open(dir.path(), OTHER).unwrap(), 3, 1));
}

#[test]
fn a_claim_is_held_by_one() {
    let dir = folder();
    let first = SendClaim::attempt(dir.path(), 7).unwrap();
    assert!(first.is_some());
    assert!(SendClaim::attempt(dir.path(), 7).unwrap().is_none());
    assert!(SendClaim::attempt(dir.path(), 8).unwrap().is_some());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| SendClaim::wait(dir.path(), 7).unwrap());
        drop(first);
        assert_eq!(waiting.join().unwrap().slot, 7);
    });
}

#[test]
fn sessions_are_spread_over_the_locks() {
    let slots: BTreeSet<u8> = (0..100)
        .map(|n| SendClaim::slot(KEY, &n.to_string()))
        .collect();
    assert!(slots.len() > 60, "{}", slots.len());
}

#[cfg(unix)]
#[test]
fn files_are_for_nobody_else_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder();
    let new = dir.path().join("a/sent");
    SendLedger::open(&new, KEY)
        .unwrap()
        .note(&[sent(1, 1)])
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&new), 0o700);
    assert_eq!(mode(&new.join("ledger")), 0o600);
    assert_eq!(mode(&new.join("ledger.lock")), 0o600);
}

/// `/dev/full` is a disk without room.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_nothing_counts_as_noted() {
    let dir = folder();
    let ledger = SendLedger::open(dir.path(), KEY).unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let why = ledger.append_to(full, b"x").unwrap_err();
    let error = LedgerError {
        doing: "write",
        path: ledger.path.clone(),
        why,
    };
    assert!(error.hint().contains("free disk space"), "{error}");
    assert!(ledger.is_empty());
}
