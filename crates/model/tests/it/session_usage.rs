//! What a session used is one number, however it is asked for.

use jiff::tz::TimeZone;
use unspool_model::file_usage::FileUsage;
use unspool_model::log::Log;
use unspool_model::price::{Cost, Prices};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::agents::{self, StartingCalls, SubAgentSession};
use unspool_model::view::cost::CostSum;
use unspool_model::view::session_usage::{
    SessionFiles, SessionUsage, session_usage, usage_by_turn, usage_since,
};
use unspool_model::view::turns::{self, TurnOptions};
use unspool_model::view::usage::UsageLedger;
use unspool_model::view::usage::group::{FileOwner, FileOwners, GroupBy, GroupSources};
use unspool_testkit::{corpus, graph, script};

fn spending(bytes: &[u8]) -> FileUsage {
    let mut spending = FileUsage::default();
    spending.feed(0, bytes);
    spending
}

fn read(text: &str, role: TranscriptRole) -> Session {
    Session::from_log(&Log::new(script::jsonl(text)), role)
}

/// What all files of one session used, as `usage session` counts it.
fn counted(files: &[&FileUsage]) -> (u64, unspool_model::usage::Usage, CostSum) {
    let ledger = UsageLedger::of(files);
    let place = FileOwner {
        session: Some("s"),
        ..FileOwner::default()
    };
    let places: FileOwners = files.iter().map(|_| place).collect();
    let zone = TimeZone::UTC;
    let books = GroupSources::new(&ledger, &places, Prices::bundled(), &zone);
    let rows = books.group(&[GroupBy::Session], |_| true);
    let sum = rows
        .into_iter()
        .next()
        .map(|(_, sum)| sum)
        .unwrap_or_default();
    (sum.messages, sum.usage, sum.cost)
}

fn told(used: &SessionUsage) -> (u64, unspool_model::usage::Usage, CostSum) {
    let all = used.all();
    (all.messages, all.usage, all.cost)
}

/// Asks every way there is about a session and these files beside it, and hands back the answer.
fn agree(name: &str, main: &[u8], beside: &[Vec<u8>], helpers: &[Vec<u8>]) -> SessionUsage {
    let prices = Prices::bundled();
    let fold = |bytes: &[u8], role| Session::from_log(&Log::new(bytes.to_vec()), role);
    let log = Log::new(main.to_vec());
    let session = Session::from_log(&log, TranscriptRole::Main);
    let folded: Vec<Session> = beside
        .iter()
        .map(|one| fold(one, TranscriptRole::Agent))
        .collect();
    let folded: Vec<&Session> = folded.iter().collect();
    let scanned: Vec<FileUsage> = helpers.iter().map(|one| spending(one)).collect();
    let scanned: Vec<&FileUsage> = scanned.iter().collect();
    let files = SessionFiles {
        session: &session,
        agents: &folded,
        helpers: &scanned,
    };
    let used = session_usage(&files, prices);
    let all = std::iter::once(main).chain(beside.iter().map(|one| &**one));
    let mut all: Vec<FileUsage> = all.map(spending).collect();
    all.extend(helpers.iter().map(|one| spending(one)));
    let all: Vec<&FileUsage> = all.iter().collect();
    assert_eq!(told(&used), counted(&all), "{name}: lists and `usage`");
    let rows = turns::outline(&session, TurnOptions::default());
    let calls = StartingCalls {
        threads: agents::thread_calls(&session, &log),
        ..StartingCalls::default()
    };
    let by_turn = usage_by_turn(&files, &calls, &rows, prices);
    let mut sum = SessionUsage::default();
    by_turn.into_iter().for_each(|turn| sum += turn);
    assert_eq!(sum, used, "{name}: the sum of turns");
    if rows.iter().all(|row| row.at.is_some()) {
        let since = usage_since(&files, prices, unspool_model::time::Time(i64::MIN));
        assert!(since.all().messages <= used.all().messages, "{name}");
    }
    used
}

#[test]
fn every_recording_used_the_same_by_every_way_of_asking() {
    let files = corpus::files();
    for (nth, main) in files.iter().enumerate() {
        agree(&main.name(), &main.bytes(), &[], &[]);
        // Any files may stand beside any other: what is in two of them counts once.
        let near = files.iter().cycle().skip(nth + 1).take(3);
        let near: Vec<Vec<u8>> = near.map(|file| file.bytes()).collect();
        agree(&main.name(), &main.bytes(), &near[..1], &near[1..]);
    }
}

#[test]
fn every_generated_session_used_the_same_by_every_way_of_asking() {
    for seed in 0..200 {
        let text = graph::session(seed).join("\n") + "\n";
        let other = graph::session(seed + 1_000).join("\n") + "\n";
        agree(
            &format!("seed {seed}"),
            text.as_bytes(),
            &[other.clone().into_bytes()],
            &[text.clone().into_bytes(), other.into_bytes()],
        );
    }
}

#[test]
fn what_the_client_did_for_itself_is_told_apart_and_not_left_out() {
    let main = "you: a\n(usage=10/20/0/0/0) claude: b\n";
    let mut helper = script::jsonl(main);
    let own = "you: sum up\n(usage=100/7/0/0/0, id=msg_own) claude: summary\n";
    helper.extend(script::jsonl(own));
    let used = agree("helper", &script::jsonl(main), &[], &[helper]);
    assert_eq!((used.own.messages, used.own.usage.output), (1, 20));
    assert_eq!(used.client.usage.output, 7);
    assert_eq!(used.agents.messages, 0);
}

#[test]
fn a_sub_agent_counts_in_the_turn_that_sent_it() {
    let log = Log::new(script::jsonl(
        "you: one\nclaude: fine\nyou: two\nclaude: sending [Task Look]\nresult: Task done\nyou: three\nclaude: ok\n",
    ));
    let main = Session::from_log(&log, TranscriptRole::Main);
    let helper = read(
        "(usage=5/300/0/0/0, id=msg_far) claude: found\n",
        TranscriptRole::Agent,
    );
    let agents = [&helper];
    let files = SessionFiles {
        agents: &agents,
        ..SessionFiles::alone(&main)
    };
    let file = SubAgentSession {
        call: main.calls.first().map(|call| main.call_id(call)),
        ..SubAgentSession::new("a1", &helper)
    };
    let calls = agents::starting_calls(&main, &log, &[file], &[]);
    assert_eq!(calls.files, [Some(0)]);
    let rows = turns::outline(&main, TurnOptions::default());
    let used = usage_by_turn(&files, &calls, &rows, Prices::bundled());
    let outputs: Vec<u64> = used.iter().map(|turn| turn.agents.usage.output).collect();
    assert_eq!(outputs, [0, 0, 300, 0]);
}

/// A reply as a bare line.
fn reply(id: &str, model: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"u{id}","timestamp":"2026-01-05T10:00:00.000Z"{more},"message":{{"id":"{id}","role":"assistant","model":"{model}","content":[],"usage":{{"input_tokens":1000000,"output_tokens":0}}}}}}"#
    ) + "\n"
}

#[test]
fn one_message_without_a_price_does_not_hide_what_the_others_cost() {
    let text = reply("a", "claude-opus-4-5", "") + &reply("b", "nobody-knows-1", "");
    let used = agree("unpriced", text.as_bytes(), &[], &[]);
    let cost = used.all().cost;
    assert_eq!(cost.total(), None);
    assert_eq!(
        cost,
        CostSum {
            known: Cost(5_000_000_000_000),
            unpriced: 1
        }
    );
}

#[test]
fn what_an_old_client_said_of_the_cost_counts_where_no_price_is_known() {
    let unknown = reply("a", "nobody-knows-1", r#","costUSD":0.25"#);
    let again = unknown.replace("\"ua\"", "\"ub\"");
    let used = agree("stated", (unknown + &again).as_bytes(), &[], &[]);
    assert_eq!(used.all().cost.total(), Some(Cost(250_000_000_000)));
    // A price that is known goes before, and nothing is what it says where it did not know.
    let known = reply("a", "claude-opus-4-5", r#","costUSD":0.25"#);
    let used = agree("priced", known.as_bytes(), &[], &[]);
    assert_eq!(used.all().cost.total(), Some(Cost(5_000_000_000_000)));
    let nothing = reply("a", "nobody-knows-1", r#","costUSD":0"#);
    let used = agree("nothing", nothing.as_bytes(), &[], &[]);
    assert_eq!(used.all().cost.total(), None);
    let spent = spending(reply("a", "x", r#","costUSD":0.25"#).as_bytes());
    assert_eq!(
        FileUsage::unpack(&spent.pack()).unwrap().messages,
        spent.messages
    );
}
