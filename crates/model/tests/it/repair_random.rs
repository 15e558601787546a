//! Repair: thousands of damaged sessions, each made whole.

use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_testkit::random::Random;
use unspool_testkit::{corpus, graph};

use crate::repair::repaired;

fn joined(lines: &[String]) -> Vec<u8> {
    let mut out = lines.join("\n").into_bytes();
    out.push(b'\n');
    out
}

/// Breaks something at random.
fn damaged(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..random.range(1, 5) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let lines: Vec<Vec<u8>> = bytes
            .split_inclusive(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        if lines.is_empty() {
            return bytes;
        }
        let nth = random.below(lines.len() as u64) as usize;
        let other = random.below(lines.len() as u64) as usize;
        let mut now = lines.clone();
        match random.below(15) {
            // Bytes are lost, perhaps with a line end.
            0 => {
                let end = (at + random.range(1, 300) as usize).min(bytes.len());
                bytes.drain(at..end);
                continue;
            }
            // The end is lost.
            1 => {
                bytes.truncate(at);
                continue;
            }
            // Two lines become one.
            2 => drop(now[nth].pop()),
            3 => drop(now.remove(nth)),
            4 => now.insert(other, lines[nth].clone()),
            5 => now.swap(nth, other),
            // The parent of one line becomes that of another.
            6 => now[nth] = swapped(&lines[nth], &lines[other], "\"parentUuid\":"),
            7 => now[nth] = swapped(&lines[nth], &lines[other], "\"uuid\":"),
            8 => now[nth] = swapped(&lines[nth], &lines[other], "\"tool_use_id\":"),
            9 => now.insert(nth, b"null\n".to_vec()),
            10 => now.insert(nth, b"\0\0\0\0\n".to_vec()),
            11 => drop(now[0].splice(0..0, *b"\xef\xbb\xbf")),
            12 => now[nth].insert(0, b'\r'),
            // A byte becomes another: broken texts, control characters, broken UTF-8.
            13 if at < bytes.len() => {
                bytes[at] = *random.pick(&[0, 1, 9, 0x80, 0xc3, 0xff, b'"', b'\\', b'{', b'}']);
                continue;
            }
            _ => now[nth] = swapped(&lines[nth], &lines[other], "\"id\":"),
        }
        bytes = now.concat();
    }
    bytes
}

/// A line with the value of a field that another has.
fn swapped(line: &[u8], other: &[u8], field: &str) -> Vec<u8> {
    let place = |line: &[u8]| {
        let text = String::from_utf8_lossy(line).into_owned();
        let start = text.find(field)? + field.len();
        let end = text[start..].find([',', '}'])? + start;
        Some((text, start, end))
    };
    let (Some((text, start, end)), Some((other, from, to))) = (place(line), place(other)) else {
        return line.to_vec();
    };
    format!("{}{}{}", &text[..start], &other[from..to], &text[end..]).into_bytes()
}

fn check(bytes: Vec<u8>) {
    repaired(&Log::new(bytes));
}

#[test]
fn healthy_graphs_are_made_fit_for_every_client() {
    for seed in 0..300 {
        check(joined(&graph::healthy(seed)));
    }
}

#[test]
fn broken_graphs_are_made_whole() {
    for seed in 0..500 {
        check(joined(&graph::session(seed)));
    }
}

#[test]
fn damaged_graphs_are_made_whole() {
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        check(damaged(joined(&graph::healthy(seed)), &mut random));
    }
}

fn mains() -> Vec<(String, Vec<u8>)> {
    let files = corpus::files().into_iter();
    files
        .filter(|file| file.role == corpus::Role::Main)
        .map(|file| (file.name(), file.bytes()))
        .collect()
}

#[test]
fn recordings_are_made_fit_for_every_client() {
    for (_, bytes) in mains() {
        check(bytes);
    }
}

#[test]
fn damaged_recordings_are_made_whole() {
    let all = mains();
    for (seed, (_, bytes)) in all.into_iter().enumerate() {
        if bytes.is_empty() || bytes.len() > 200_000 {
            continue;
        }
        for more in 0..3 {
            let mut random = Random::new(seed as u64 * 7 + more);
            check(damaged(bytes.clone(), &mut random));
        }
    }
}

#[test]
fn what_every_client_reads_whole_keeps_every_byte() {
    let mut kept = 0;
    for seed in 0..60 {
        let log = Log::new(joined(&graph::healthy(seed)));
        let (after, _) = repaired(&log);
        let (again, repair) = repaired(&after);
        assert_eq!(again.as_bytes(), after.as_bytes());
        assert!(repair.is_empty());
        let lines: std::collections::HashSet<&[u8]> = log.lines().map(|line| line.bytes).collect();
        kept += after
            .lines()
            .filter(|line| lines.contains(line.bytes))
            .count();
    }
    assert!(kept > 500, "{kept}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_repaired(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let log = Log::new(bytes);
        repaired(&log);
    }

    #[test]
    fn any_pieces_of_lines_are_repaired(picks in proptest::collection::vec((0usize..12, 0usize..90), 0..40)) {
        let lines = graph::healthy(3);
        let mut bytes = Vec::new();
        for (kind, nth) in picks {
            let line = lines[nth % lines.len()].as_bytes();
            match kind {
                0..5 => bytes.extend_from_slice(line),
                5 => bytes.extend_from_slice(&line[..line.len() / 2]),
                6 => bytes.extend_from_slice(&line[line.len() / 3..]),
                7 => bytes.extend_from_slice(b"{\"type\":\"user\"}"),
                _ => {}
            }
            if kind != 4 {
                bytes.push(b'\n');
            }
        }
        let log = Log::new(bytes);
        Session::from_log(&log, TranscriptRole::Main);
        check(log.as_bytes().to_vec());
    }
}
