//! Tokens over many files: what counts, how often, and on which day.

use std::collections::BTreeMap;

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use unspool_model::file_usage::FileUsage;
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Message, Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::usage::{PricingTerms, Usage};
use unspool_model::view::usage::group::{FileOwner, FileOwners, GroupBy, GroupKey, GroupSources};
use unspool_model::view::usage::period;
use unspool_model::view::usage::{self, CountOutcome, CountedMessage, UsageLedger};
use unspool_testkit::random::Random;
use unspool_testkit::{corpus, graph, script};

fn spending(bytes: &[u8]) -> FileUsage {
    let mut spending = FileUsage::default();
    spending.feed(0, bytes);
    spending
}

fn scripted(text: &str) -> FileUsage {
    spending(&script::jsonl(text))
}

/// A reply as a bare line, for cases that no script can write.
fn reply(id: &str, output: u64, rest: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"u-{id}-{output}","timestamp":"2026-01-05T10:00:00.000Z","version":"2.1.100","message":{{"id":"{id}","role":"assistant","model":"claude-opus-4-5-20251101","content":[],"stop_reason":"end_turn","usage":{{"input_tokens":1,"output_tokens":{output}}}}}{rest}}}"#
    )
}

/// A copy of a reply in a parent's progress.
fn copied(id: &str, output: u64) -> String {
    let inner = reply(id, output, "");
    format!(
        r#"{{"type":"progress","uuid":"p-{id}-{output}","timestamp":"2026-01-05T09:00:00.000Z","data":{{"type":"agent_progress","message":{inner}}}}}"#
    )
}

fn file(lines: &[String]) -> FileUsage {
    spending((lines.join("\n") + "\n").as_bytes())
}

type Told = (Usage, PricingTerms, Option<Time>, Option<String>);

/// What the fold says about every message with tokens that the client did not write itself.
fn folded(session: &Session, messages: &[Message]) -> BTreeMap<String, Told> {
    let told = messages
        .iter()
        .filter(|message| message.has_usage() && !message.synthetic);
    let one = |message: &Message| {
        let model = message.model().map(|model| session.text(model).to_owned());
        let id = session.message_id(message).unwrap_or_default().to_owned();
        (
            id,
            (
                session.usage_of(message),
                session.terms_of(message),
                message.first(),
                model,
            ),
        )
    };
    told.map(one).filter(|(id, _)| !id.is_empty()).collect()
}

fn scanned(spending: &FileUsage, copies: bool) -> BTreeMap<String, Told> {
    let wanted = spending
        .messages
        .iter()
        .filter(|spent| spent.marks.copy == copies && (copies || !spent.marks.synthetic));
    let one = |spent: &_| {
        let model = spending.model(spent).map(str::to_owned);
        (
            spending.id(spent).to_owned(),
            (spent.usage, spent.terms, spent.at, model),
        )
    };
    wanted.map(one).collect()
}

fn agree(name: &str, bytes: &[u8]) {
    let log = Log::new(bytes.to_vec());
    let session = Session::from_log(&log, TranscriptRole::Main);
    let spending = spending(bytes);
    let own: BTreeMap<_, _> = scanned(&spending, false).into_iter().collect();
    let fold = folded(&session, &session.messages);
    for (id, told) in &fold {
        assert_eq!(own.get(id), Some(told), "{name}: {id}");
    }
    // Messages without an id go by their line's; the fold keeps each apart.
    let nameless = session
        .messages
        .iter()
        .filter(|message| session.message_id(message).is_none())
        .filter(|message| message.has_usage() && !message.synthetic);
    assert_eq!(own.len(), fold.len() + nameless.count(), "{name}");
    assert_eq!(
        scanned(&spending, true),
        folded(&session, &session.copies),
        "{name}: copies"
    );
}

#[test]
fn the_scan_says_what_the_fold_says_of_every_recording() {
    let mut messages = 0;
    for file in corpus::files() {
        agree(&file.name(), &file.bytes());
        messages += spending(&file.bytes()).messages.len();
    }
    assert!(messages > 300, "{messages}");
}

#[test]
fn the_scan_says_what_the_fold_says_of_strange_sessions() {
    for seed in 0..300 {
        let text = graph::session(seed).join("\n") + "\n";
        agree(&format!("seed {seed}"), text.as_bytes());
    }
}

#[test]
fn however_the_lines_arrive_the_spending_is_the_same() {
    let mut random = Random::new(5);
    for file in corpus::files().iter().step_by(7) {
        let bytes = file.bytes();
        let whole = spending(&bytes);
        let mut pieces = FileUsage::default();
        let mut at = 0;
        while at < bytes.len() {
            let want = (at + 1 + random.below(9_000) as usize).min(bytes.len());
            let end = bytes[want..].iter().position(|byte| *byte == b'\n');
            let end = end.map_or(bytes.len(), |end| want + end + 1);
            let mut piece = FileUsage::default();
            piece.feed(at as u64, &bytes[at..end]);
            if random.chance(50) {
                piece = FileUsage::unpack(&piece.pack()).unwrap();
            }
            pieces.reopen();
            pieces.append(&piece);
            at = end;
        }
        assert_eq!(pieces, whole, "{}", file.name());
    }
}

#[test]
fn what_was_written_down_is_read_back() {
    for file in corpus::files() {
        let whole = spending(&file.bytes());
        let packed = whole.pack();
        let back = FileUsage::unpack(&packed).unwrap();
        assert_eq!(back.messages, whole.messages, "{}", file.name());
        assert_eq!(back.origin, whole.origin);
        assert_eq!(back.last, whole.last);
        assert!(FileUsage::unpack(&packed[..packed.len() - 1]).is_none());
    }
}

proptest! {
    #[test]
    fn damaged_bytes_are_no_spending_and_no_crash(
        at in 0..2000usize, byte in any::<u8>(), cut in 0..2000usize,
    ) {
        let mut packed = scripted("you: a\nclaude: b [Read x]\nresult: Read x ok\nclaude: c\n").pack();
        let len = packed.len();
        packed[at % len] = byte;
        packed.truncate(len - cut % len);
        let _ = FileUsage::unpack(&packed);
    }

    #[test]
    fn any_line_may_be_asked_for_its_tokens(line in "\\PC{0,200}") {
        spending(format!("{{\"usage\":{line}}}\n\"usage\"{line}").as_bytes());
    }
}

#[test]
fn lines_of_one_message_repeat_its_tokens_and_the_most_is_true() {
    let one = file(&[reply("m", 1, ""), reply("m", 7, ""), reply("m", 3, "")]);
    let counted = UsageLedger::of(&[&one]).counted;
    assert_eq!(counted.len(), 1);
    assert_eq!(
        (counted[0].usage().input, counted[0].usage().output),
        (1, 7)
    );
    assert_eq!(one.messages[0].lines, 3);
}

#[test]
fn a_message_counts_once_over_all_files_and_in_the_oldest() {
    let late = r#","x":1"#;
    let first = file(&[reply("a", 5, ""), reply("b", 6, "")]);
    let more = reply("c", 7, late).replace("2026-01-05", "2026-01-06");
    let resumed = file(&[reply("a", 5, ""), reply("b", 9, ""), more]);
    for files in [[&first, &resumed], [&resumed, &first]] {
        let counted = UsageLedger::of(&files).counted;
        let output: u64 = counted.iter().map(|one| one.usage().output).sum();
        assert_eq!((counted.len(), output), (3, 5 + 9 + 7));
        let oldest = files.iter().position(|file| file.messages.len() == 2);
        let in_oldest = counted
            .iter()
            .filter(|one| Some(one.file as usize) == oldest);
        assert_eq!(in_oldest.count(), 2);
    }
}

#[test]
fn the_order_in_which_files_are_added_changes_nothing() {
    let spendings: Vec<FileUsage> = corpus::files()
        .iter()
        .map(|file| spending(&file.bytes()))
        .collect();
    let mut order: Vec<usize> = (0..spendings.len()).collect();
    let told = |order: &[usize]| {
        let mut ledger = UsageLedger::default();
        for &nth in order {
            ledger.add(nth as u32, &spendings[nth]);
        }
        let files: Vec<&FileUsage> = spendings.iter().collect();
        let fates = usage::count_outcomes(&files, &ledger).into_iter();
        let told = fates.map(|(file, message, fate, of)| {
            let one = of.map(|of| &ledger.counted[of]);
            let one = one.map(|one| (one.usage(), one.at(), one.marks(), ledger.model(one)));
            format!("{file} {message} {fate:?} {one:?}")
        });
        let told: Vec<String> = told.collect();
        let counted = told.iter().filter(|told| told.contains("Counted"));
        assert_eq!(counted.count(), ledger.counted.len());
        told
    };
    let forwards = told(&order);
    assert!(forwards.len() > 500);
    order.reverse();
    assert_eq!(told(&order), forwards);
    let mut random = Random::new(7);
    for _ in 0..5 {
        let many = order.len() as u64;
        (0..order.len()).for_each(|at| order.swap(at, random.below(many) as usize));
        assert_eq!(told(&order), forwards);
    }
}

#[test]
fn a_copy_that_says_it_was_forked_is_never_the_original() {
    let fork = r#","forkedFrom":{"sessionId":"s","messageUuid":"u"}"#;
    let forked = file(&[reply("a", 5, fork)]);
    let later = reply("z", 1, "").replace("2026-01-05", "2026-02-05");
    let original = file(&[reply("a", 5, ""), later]);
    let counted = UsageLedger::of(&[&forked, &original]).counted;
    let one = counted.iter().find(|one| one.usage().output == 5).unwrap();
    assert_eq!(one.file, 1);
}

#[test]
fn a_sub_agents_own_file_comes_before_the_copy_in_its_parent() {
    let parent = file(&[copied("m", 8), copied("lost", 4)]);
    let agent = file(&[reply("m", 2, "")]);
    for files in [[&parent, &agent], [&agent, &parent]] {
        let counted = UsageLedger::of(&files).counted;
        let mut outputs: Vec<u64> = counted.iter().map(|one| one.usage().output).collect();
        outputs.sort_unstable();
        // What is only left as a copy was spent all the same.
        assert_eq!(outputs, [2, 4]);
    }
}

#[test]
fn messages_without_an_id_go_by_their_line() {
    let line = |uuid: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","message":{{"role":"assistant","model":"m","usage":{{"output_tokens":3}}}}}}"#
        )
    };
    let first = file(&[line("u1"), line("u2")]);
    let copy = file(&[line("u1")]);
    assert_eq!(UsageLedger::of(&[&first, &copy]).counted.len(), 2);
    // Without even that, each line stands for itself.
    let bare = r#"{"type":"assistant","message":{"usage":{"output_tokens":3}}}"#.to_owned();
    assert_eq!(
        UsageLedger::of(&[&file(&[bare.clone(), bare])])
            .counted
            .len(),
        2
    );
}

#[test]
fn an_empty_id_names_nothing() {
    let line = |uuid: &str, tokens: u64| {
        reply("m", tokens, "")
            .replace(r#""id":"m""#, r#""id":"""#)
            .replace("u-m", uuid)
    };
    let files = [&file(&[line("a", 1), line("b", 2)])];
    let output: u64 = UsageLedger::of(&files)
        .counted
        .iter()
        .map(|one| one.usage().output)
        .sum();
    assert_eq!(output, 3);
}

#[test]
fn cache_writes_that_one_line_splits_and_another_does_not_count_once() {
    let line = |split: &str| {
        let usage = format!(r#""usage":{{"cache_creation_input_tokens":100{split},"#);
        reply("m", 1, "").replace(r#""usage":{"#, &usage)
    };
    let split =
        r#","cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":70}"#;
    for lines in [[line(""), line(split)], [line(split), line("")]] {
        let usage = UsageLedger::of(&[&file(&lines)]).counted[0].usage();
        assert_eq!((usage.cache_write_5m, usage.cache_write_1h), (30, 70));
    }
}

#[test]
fn windows_do_not_move_with_what_is_asked_for() {
    let at = |id: &str, time: &str| reply(id, 1, "").replace("2026-01-05T10:00:00.000Z", time);
    let spending = file(&[
        at("a", "2026-01-05T22:10:00.000Z"),
        at("b", "2026-01-06T01:30:00.000Z"),
        at("c", "2026-01-06T03:10:00.000Z"),
    ]);
    let (ledger, places, zone) = (
        UsageLedger::of(&[&spending]),
        FileOwners::from_iter([FileOwner::default()]),
        TimeZone::UTC,
    );
    let books = GroupSources::new(&ledger, &places, Prices::bundled(), &zone);
    let since = Time::parse("2026-01-06T00:00:00.000Z");
    let rows = books.group(&[GroupBy::Block], |one| one.at() >= since);
    let starts: Vec<String> = rows
        .iter()
        .map(|(keys, sum)| match &keys[0] {
            GroupKey::Block(Some(start)) => {
                format!("{} {}", &start.to_string()[..16], sum.messages)
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(starts, ["2026-01-05T22:00 1", "2026-01-06T03:00 1"]);
}

#[test]
fn what_the_client_wrote_itself_counts_nothing() {
    let own = reply("e", 5, "").replace("claude-opus-4-5-20251101", "<synthetic>");
    let files = [&file(&[own, reply("m", 2, "")])];
    let ledger = UsageLedger::of(&files);
    assert_eq!(ledger.counted.len(), 1);
    let fates = usage::count_outcomes(&files, &ledger);
    assert_eq!(
        fates.iter().map(|fate| fate.2).collect::<Vec<_>>(),
        [CountOutcome::Synthetic, CountOutcome::Counted]
    );
}

#[test]
fn every_message_of_every_file_has_one_fate() {
    let first = file(&[reply("a", 5, ""), copied("s", 1)]);
    let later = reply("b", 1, "").replace("2026-01-05", "2026-02-05");
    let resumed = file(&[reply("a", 5, ""), later]);
    let agent = file(&[reply("s", 9, "")]);
    let files = [&first, &resumed, &agent];
    let fates: Vec<_> = usage::count_outcomes(&files, &UsageLedger::of(&files))
        .iter()
        .map(|fate| fate.2)
        .collect();
    assert_eq!(
        fates,
        [
            CountOutcome::Counted,
            CountOutcome::Copy,
            CountOutcome::Elsewhere,
            CountOutcome::Counted,
            CountOutcome::Counted
        ]
    );
}

#[test]
fn output_that_was_never_written_to_the_end_is_a_floor() {
    let by = |version: &str, stop: &str| {
        let line = reply("m", 1, "").replace("2.1.100", version);
        file(&[line.replace(r#""end_turn""#, stop)])
    };
    let is_floor = |spending: &FileUsage| {
        let ledger = UsageLedger::of(&[spending]);
        ledger.floor(&ledger.counted[0]).is_some()
    };
    for version in ["1.0.11", "2.0.50", "2.1.11", "2.1.58"] {
        assert!(is_floor(&by(version, "null")), "{version}");
        assert!(!is_floor(&by(version, r#""tool_use""#)), "{version}");
    }
    for version in ["2.0.36", "2.0.42", "2.1.59", "2.1.325", "unknown"] {
        assert!(!is_floor(&by(version, "null")), "{version}");
    }
}

#[test]
fn a_session_is_as_full_as_its_last_own_reply_was_given() {
    let script = "you: a\n(usage=10/20/1000/50/5) claude: b\n(agent=a1) agent: look\n(agent=a1 usage=9/9/9/9/9) claude: c\n";
    let last = |spending: &FileUsage| usage::context(spending).map(|last| last.usage.context());
    let scripted = scripted(script);
    assert_eq!(last(&scripted), Some(10 + 1000 + 50 + 5));
    assert_eq!(last(&FileUsage::default()), None);
    let limit = |prices: &Prices| UsageLedger::of(&[&scripted]).context(0, prices).unwrap().1;
    let bundled = Prices::bundled();
    let model = scripted.model(usage::context(&scripted).unwrap()).unwrap();
    assert_eq!(limit(bundled), bundled.limit(model, 0));
    // A limit that the person wrote counts here as everywhere.
    let own =
        format!(r#"{{"models": {{"{model}": {{"input": 1, "output": 2, "limit": 77000}}}}}}"#);
    let own = bundled.merged(Prices::parse(&own).unwrap());
    assert_eq!(limit(&own), Some(77_000));
}

fn times(texts: &[&str]) -> Vec<Time> {
    texts
        .iter()
        .map(|text| Time::parse(&format!("{text}.000Z")).unwrap())
        .collect()
}

#[test]
fn a_window_begins_at_the_full_hour_of_its_first_message_and_lasts_five_hours() {
    let moments = times(&[
        "2026-01-05T10:40:00",
        "2026-01-05T15:00:00",
        "2026-01-05T15:00:01",
        "2026-01-05T21:30:00",
        // Out of order: a clock was wrong, or files were read side by side.
        "2026-01-05T12:00:00",
    ]);
    let starts: Vec<String> = period::windows(&moments)
        .iter()
        .map(|start| start.to_string()[11..16].to_owned())
        .collect();
    assert_eq!(starts, ["10:00", "10:00", "15:00", "21:00", "10:00"]);
}

#[test]
fn a_day_is_that_of_the_zone_also_when_clocks_change() {
    let day = |text: &str, zone: &str| {
        let zone = TimeZone::get(zone).unwrap();
        period::day(times(&[text])[0], &zone).to_string()
    };
    // In Berlin, 2026-03-29 has 23 hours and 2026-10-25 has 25.
    assert_eq!(day("2026-03-28T22:59:59", "Europe/Berlin"), "2026-03-28");
    assert_eq!(day("2026-03-28T23:00:00", "Europe/Berlin"), "2026-03-29");
    assert_eq!(day("2026-03-29T21:59:59", "Europe/Berlin"), "2026-03-29");
    assert_eq!(day("2026-03-29T22:00:00", "Europe/Berlin"), "2026-03-30");
    assert_eq!(day("2026-10-25T22:59:59", "Europe/Berlin"), "2026-10-25");
    assert_eq!(day("2026-10-25T23:00:00", "Europe/Berlin"), "2026-10-26");
    assert_eq!(
        day("2026-01-05T10:00:00", "Pacific/Kiritimati"),
        "2026-01-06"
    );
    assert_eq!(day("2026-01-05T10:00:00", "Pacific/Niue"), "2026-01-04");
    assert_eq!(day("2026-01-05T18:29:59", "Asia/Kolkata"), "2026-01-05");
    assert_eq!(day("2026-01-05T18:30:00", "Asia/Kolkata"), "2026-01-06");
}

#[test]
fn a_day_lasts_from_midnight_to_midnight_also_when_clocks_change() {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    for (text, start, hours) in [
        ("2026-03-29T12:00:00", "2026-03-28T23:00:00.000Z", 23),
        ("2026-10-25T22:59:59", "2026-10-24T22:00:00.000Z", 25),
        ("2026-11-16T23:00:00", "2026-11-16T23:00:00.000Z", 24),
    ] {
        let day = period::around(times(&[text])[0], &zone);
        assert_eq!(day.start.to_string(), start);
        assert_eq!(day.end.since(day.start), hours * 3_600_000, "{text}");
    }
}

#[test]
fn a_week_begins_on_monday() {
    let week = |text: &str| period::week(text.parse().unwrap(), Weekday::Monday).to_string();
    assert_eq!(week("2026-01-05"), "2026-01-05");
    assert_eq!(week("2026-01-11"), "2026-01-05");
    assert_eq!(week("2026-01-01"), "2025-12-29");
}

#[test]
fn groups_add_up_to_the_total_whatever_they_go_by() {
    let spendings: Vec<FileUsage> = corpus::files()
        .iter()
        .map(|file| spending(&file.bytes()))
        .collect();
    let files: Vec<&FileUsage> = spendings.iter().collect();
    let mut places = FileOwners::default();
    for nth in 0..files.len() {
        places.push(FileOwner {
            session: Some(&format!("s{nth}")),
            agent: None,
            project: &format!("p{}", nth % 3),
        });
    }
    let ledger = UsageLedger::of(&files);
    let counted = &ledger.counted;
    let zone = TimeZone::UTC;
    let books = GroupSources::new(&ledger, &places, Prices::bundled(), &zone);
    let all = |_: &CountedMessage| true;
    let total = books.total(&books.group(&[GroupBy::Day], all));
    assert_eq!(total.messages as usize, counted.len());
    for per in [
        GroupBy::Day,
        GroupBy::Week,
        GroupBy::Month,
        GroupBy::Session,
        GroupBy::Project,
        GroupBy::Model,
        GroupBy::Block,
    ] {
        let rows = books.group(&[per, GroupBy::Model], all);
        let usage: Usage = rows.iter().map(|(_, sum)| sum.usage).sum();
        assert_eq!(usage, total.usage, "{per:?}");
        let shaped: u64 = rows.iter().flat_map(|(_, sum)| &sum.shape).sum();
        let timed = counted.iter().filter(|one| one.at().is_some());
        assert_eq!(
            shaped,
            timed.map(|one| one.usage().total()).sum::<u64>(),
            "{per:?}"
        );
    }
}

#[test]
fn a_cost_is_unknown_if_that_of_one_message_is() {
    let strange = reply("b", 6, "").replace("claude-opus-4-5-20251101", "some-other-model");
    let spending = file(&[reply("a", 5, ""), strange]);
    let ledger = UsageLedger::of(&[&spending]);
    let places = FileOwners::from_iter([FileOwner::default()]);
    let zone = TimeZone::UTC;
    let books = GroupSources::new(&ledger, &places, Prices::bundled(), &zone);
    let rows = books.group(&[GroupBy::Model], |_| true);
    let cost = |name: &str| {
        let row = rows
            .iter()
            .find(|(keys, _)| keys[0] == GroupKey::Text(Some(name.to_owned())));
        row.unwrap().1.cost.total()
    };
    assert!(cost("claude-opus-4-5-20251101").is_some());
    assert_eq!(cost("some-other-model"), None);
    let total = books.total(&rows);
    assert_eq!((total.cost.total(), total.cost.unpriced), (None, 1));
}
