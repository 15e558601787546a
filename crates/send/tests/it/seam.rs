//! The end of a session, read alone, tells of its turns what the whole file tells, and nothing
//! is added behind a seam that changes a turn before it: for every seam that is found, and
//! every way in which the file goes on that is said to join it.

use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::split_point;
use unspool_send::spans::{
    SessionTurnTraces, SpanText, TraceFacts, TraceInput, TraceOptions, TraceSpan, TurnTrace,
};
use unspool_testkit::{corpus, graph, script};

struct Told {
    traces: Vec<(TurnTrace, Vec<(SpanText, SpanText)>)>,
    session: Session,
}

fn told(lines: &[&str], before: usize) -> Told {
    let log = Log::new(lines.concat());
    let session = Session::from_log(&log, TranscriptRole::Main);
    let facts = TraceFacts::default();
    let material = TraceInput {
        session: &session,
        source: &log,
        agents: Vec::new(),
        runs: &[],
        prices: Prices::bundled(),
    };
    let traces = SessionTurnTraces::new(material, &facts, TraceOptions::default()).behind(before);
    let texts = |trace: &TurnTrace| {
        let spans = trace.spans.iter();
        let both = |span: &TraceSpan| (traces.read(&span.input), traces.read(&span.output));
        spans.map(both).collect()
    };
    let all = traces.iter().map(|trace| {
        let texts = texts(&trace);
        (trace, texts)
    });
    let traces = all.collect();
    Told { traces, session }
}

/// Everything of a trace but where its texts stand.
fn facts(trace: &TurnTrace) -> String {
    let spans: Vec<String> = trace
        .spans
        .iter()
        .map(|span| {
            let TraceSpan {
                id,
                parent,
                kind,
                name,
                start,
                end,
                level,
                status,
                origin,
                usage,
                cost,
                stop,
                calls,
                metadata,
                ..
            } = span;
            format!(
                "{id} {parent:?} {kind:?} {name} {start:?} {end:?} {level:?} {status:?} \
                 {origin:?} {usage:?} {cost:?} {stop:?} {calls:?} {metadata:?}"
            )
        })
        .collect();
    let TurnTrace {
        id,
        unanswered,
        n,
        state,
        digest,
        session,
        prompt,
        start,
        end,
        metadata,
        ..
    } = trace;
    format!(
        "{id} {unanswered:?} {n} {state:?} {digest} {session} {prompt:?} {start:?} {end:?} \
         {metadata:?} {spans:#?}"
    )
}

/// Cuts a session where it can be cut when so many of its lines are there, and looks at it when
/// there are more. How often the end stood alone.
fn try_seams(name: &str, text: &str) -> usize {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut joined = 0;
    for now in (1..=lines.len()).rev().step_by(lines.len().div_ceil(8)) {
        let then = told(&lines[..now], 0);
        let Some(seam) = split_point::last(&then.session, usize::MAX) else {
            continue;
        };
        for later in (now..=lines.len()).step_by(lines.len().div_ceil(5)) {
            let rest = told(&lines[seam.lines as usize..later], seam.turns);
            if !seam.joins(&rest.session) {
                continue;
            }
            joined += 1;
            let whole = told(&lines[..later], 0);
            let (before, behind): (Vec<_>, Vec<_>) = whole
                .traces
                .iter()
                .partition(|(trace, _)| trace.n <= seam.turns);
            let case = format!("{name}: {now} of {later} lines, cut behind {}", seam.lines);
            assert_eq!(behind.len(), rest.traces.len(), "{case}");
            for ((one, said), (other, heard)) in behind.into_iter().zip(&rest.traces) {
                assert_eq!(facts(one), facts(other), "{case}");
                assert_eq!(said, heard, "{case}");
            }
            for ((one, _), (other, _)) in before.into_iter().zip(&then.traces) {
                assert_eq!((one.id, one.digest), (other.id, other.digest), "{case}");
            }
        }
    }
    joined
}

#[test]
fn the_end_of_a_recorded_session_tells_what_the_whole_of_it_tells() {
    let mut joined = 0;
    for file in corpus::files() {
        let text = std::fs::read_to_string(&file.path).unwrap_or_default();
        if text.lines().count() > 1 {
            joined += try_seams(&file.path.display().to_string(), &text);
        }
    }
    assert!(joined > 100, "{joined}");
}

#[test]
fn the_end_of_a_strange_session_tells_what_the_whole_of_it_tells() {
    let mut joined = 0;
    for seed in 0..120 {
        for (kind, lines) in [
            ("strange", graph::session(seed)),
            ("healthy", graph::healthy(seed)),
        ] {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            joined += try_seams(&format!("{kind} {seed}"), &text);
        }
    }
    assert!(joined > 100, "{joined}");
}

fn seam_of(text: &str) -> (Vec<u8>, split_point::SplitPoint) {
    let bytes = script::jsonl(text);
    let session = Session::from_log(&Log::new(bytes.clone()), TranscriptRole::Main);
    let seam = split_point::last(&session, usize::MAX).unwrap();
    (bytes, seam)
}

/// Whether the end of `start` and `more` still stands alone where `start` was cut.
fn joins(start: &str, more: &str) -> bool {
    let (_, seam) = seam_of(start);
    let whole = script::jsonl(&format!("{start}{more}"));
    let rest = Session::from_log(
        &Log::new(whole[seam.offset as usize..].to_vec()),
        TranscriptRole::Main,
    );
    seam.joins(&rest)
}

const TALK: &str = "you: one\n(name=a) claude: yes [Bash ls]\nresult: Bash ls x\n\
    (name=b) claude: done\n(name=p) you: two\n(name=c) claude: yes\n";

#[test]
fn a_session_that_goes_on_joins_and_one_that_goes_back_does_not() {
    let (_, seam) = seam_of(TALK);
    assert_eq!(seam.turns, 1);
    assert!(joins(TALK, ""));
    assert!(joins(
        TALK,
        "you: three\nclaude: good [Read f]\nresult: Read f x\n"
    ));
    assert!(
        !joins(TALK, "(parent=b) you: other\nclaude: yes\n"),
        "a rewind"
    );
    assert!(!joins(TALK, "(parent=a) claude: late\n"), "a late line");
}
