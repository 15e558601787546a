//! Which turns are to be sent, and under which session.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use unspool_model::session::Session;
use unspool_model::view::turn_completion::TurnProgress;
use unspool_send::ledger::SendLedger;
use unspool_send::spans::{SessionTurnTraces, TraceSpanKind, TraceState, TurnTrace};
use unspool_send::trace_id::{SpanId, TraceDigest, TraceId, TraceStart};

/// What decides about a turn, without its spans.
#[derive(Clone, Debug)]
pub struct TurnTraceSummary {
    /// Its number, from 1.
    pub n: usize,
    /// Its trace.
    pub id: TraceId,
    /// The id it had before anybody answered.
    unanswered: Option<TraceId>,
    /// It still has that id.
    kept: bool,
    /// What it holds.
    pub digest: TraceDigest,
    /// How far it is.
    progress: TurnProgress,
    /// How many spans it has.
    pub spans: u32,
    /// Its last line.
    last_line: u32,
    /// The spans below its root, and which of them are replies.
    below: Box<[(SpanId, bool)]>,
}

impl TurnTraceSummary {
    fn of(trace: &TurnTrace) -> TurnTraceSummary {
        TurnTraceSummary {
            n: trace.n,
            id: trace.id,
            unanswered: trace.unanswered,
            kept: false,
            digest: trace.digest,
            progress: TurnProgress {
                over: trace.state == TraceState::Complete,
                answered: trace
                    .spans
                    .iter()
                    .any(|span| span.kind == TraceSpanKind::Generation),
            },
            spans: u32::try_from(trace.spans.len()).unwrap_or(u32::MAX),
            last_line: trace.last_line,
            below: below(trace).collect(),
        }
    }

    /// Its trace.
    pub fn trace(&self, traces: &SessionTurnTraces<'_>) -> Option<TurnTrace> {
        match self.kept {
            true => traces.turn_unanswered(self.n),
            false => traces.turn(self.n),
        }
    }

    fn ids(&self) -> impl Iterator<Item = TraceId> {
        [Some(self.id), self.unanswered].into_iter().flatten()
    }
}

/// The spans below the root of a trace, and which of them are replies.
pub fn below(trace: &TurnTrace) -> impl Iterator<Item = (SpanId, bool)> + '_ {
    let below = trace.spans.iter().skip(1);
    below.map(|span| (span.id, span.kind == TraceSpanKind::Generation))
}

/// The heads of all turns of a session.
pub fn heads(traces: &SessionTurnTraces<'_>) -> Vec<TurnTraceSummary> {
    traces
        .iter()
        .map(|trace| TurnTraceSummary::of(&trace))
        .collect()
}

/// The number of the last turn that is ready, with all before it.
pub fn settled(heads: &[TurnTraceSummary], left: bool) -> usize {
    let ready = heads.iter().take_while(|head| head.progress.is_ready(left));
    ready.last().map_or(0, |head| head.n)
}

/// Whether all of them were sent before, in some form.
pub fn are_known(heads: &[TurnTraceSummary], ledger: &SendLedger) -> bool {
    let known = |head: &TurnTraceSummary| head.ids().any(|id| ledger.sent(id).is_some());
    heads.iter().all(known)
}

/// A turn that went out before anybody answered keeps the id it has at the receiver.
pub fn keep_ids(
    heads: &mut [TurnTraceSummary],
    traces: &SessionTurnTraces<'_>,
    ledger: &SendLedger,
    owners: &TraceOwners,
) {
    let is_out = |id| ledger.sent(id).is_some() || owners.is_out(id);
    for head in heads {
        let Some(first) = head.unanswered else {
            continue;
        };
        if is_out(first) && !is_out(head.id) {
            let Some(trace) = traces.turn_unanswered(head.n) else {
                continue;
            };
            *head = TurnTraceSummary::of(&trace);
            head.kept = true;
        }
    }
}

/// What is known beside the ledger: who had which turn first, in this run.
#[derive(Default)]
pub struct TraceOwners {
    traces: HashMap<TraceId, TraceOwner>,
    /// The trace that a span stands in. Other files hold the same message in turns that begin with
    /// another one, and so in other traces: forks that begin later, and sub-agents that repeat what
    /// was said before them. The first of them has it.
    spans: HashMap<SpanId, TraceStart>,
}

struct TraceOwner {
    session: Arc<str>,
    /// How many spans it goes out with; 0 if it does not.
    spans: u32,
}

impl TraceOwners {
    /// A turn that an older file holds, which is not sent now.
    pub fn older(&mut self, id: TraceId, session: &Arc<str>) {
        self.traces.entry(id).or_insert_with(|| TraceOwner {
            session: Arc::clone(session),
            spans: 0,
        });
    }

    /// The spans of a trace are its own, unless another has them already, in this run or since an
    /// earlier one: those are told.
    pub fn place(
        &mut self,
        id: TraceId,
        below: impl Iterator<Item = (SpanId, bool)>,
        ledger: &SendLedger,
    ) -> Vec<(SpanId, bool)> {
        let start = id.start();
        let holder = |span| ledger.holder(span).unwrap_or(start);
        let taken = below.filter(|&(span, _)| {
            let first = self.spans.entry(span).or_insert_with(|| holder(span));
            *first != start
        });
        taken.collect()
    }

    /// Whether it goes out in this run.
    fn is_out(&self, id: TraceId) -> bool {
        self.traces.get(&id).is_some_and(|owner| owner.spans > 0)
    }
}

/// A session as it is looked at.
pub struct SessionToSend<'a> {
    /// Its id.
    pub id: &'a Arc<str>,
    /// What its lines mean.
    pub session: &'a Session,
    /// It was left: an open last turn goes as it is.
    pub left: bool,
    /// Resend everything.
    pub full: bool,
    /// Nothing of it is sent now: somebody else is at it.
    pub skip: bool,
}

/// What is to be sent of a session.
#[derive(Debug, Default)]
pub struct TurnsToSend {
    /// Turns, by their place in the heads, and the session each belongs to.
    pub turns: Vec<(usize, Arc<str>)>,
    /// Turns that were sent before.
    pub already: u64,
    /// Turns that belong to an older file.
    pub elsewhere: u64,
    /// Turns that are not over.
    pub waiting: u64,
    /// One of those will be sent as it is when the session is quiet for long.
    pub owed: bool,
    /// Spans that stand in another trace.
    pub foreign: HashSet<SpanId>,
}

/// What is to be sent; nobody else will send the same in this run.
pub fn choose(
    view: &SessionToSend<'_>,
    heads: &[TurnTraceSummary],
    ledger: &SendLedger,
    owners: &mut TraceOwners,
) -> TurnsToSend {
    let mut choice = TurnsToSend::default();
    let before = ledger.before(view.id);
    for (at, head) in heads.iter().enumerate() {
        let known = ledger.sent(head.id);
        let taken = owners.place(head.id, head.below.iter().copied(), ledger);
        let replies = |spans: &[(SpanId, bool)]| spans.iter().filter(|span| span.1).count();
        // All that was said in it is told elsewhere.
        let is_copy = replies(&taken) > 0 && replies(&taken) == replies(&head.below);
        choice.foreign.extend(taken.iter().map(|(span, _)| *span));
        let first = head.ids().find_map(|id| owners.traces.get(&id));
        // Whoever sent it first gave it its session; then whoever had it first in this run.
        let owner = known
            .map(|known| &known.session)
            .or_else(|| first.map(|first| &first.session));
        let owner = Arc::clone(owner.unwrap_or(view.id));
        let mine = owner == *view.id;
        let in_flight = first.map_or(0, |first| first.spans);
        let waits = !head.progress.is_ready(view.left);
        let sent = known.is_some_and(|known| known.has(head.digest)) && !view.full;
        let smaller = known.filter(|_| !mine && !view.full);
        let smaller = smaller.is_some_and(|known| head.spans <= known.spans);
        if is_copy || (in_flight > 0 && head.spans <= in_flight) {
            choice.elsewhere += 1;
        } else if sent {
            choice.already += 1;
        } else if waits {
            choice.waiting += 1;
            choice.owed |= head.progress.is_owed();
            owners.older(head.id, &owner);
        } else if smaller {
            choice.elsewhere += 1;
        } else if known.is_none() && !view.full && sent_before(view.session, head, before) {
            choice.already += 1;
        } else if view.skip {
            owners.older(head.id, &owner);
        } else {
            let session = Arc::clone(&owner);
            let spans = head.spans.max(1);
            owners.traces.insert(head.id, TraceOwner { session, spans });
            choice.turns.push((at, owner));
        }
    }
    choice
}

/// Whether an older exporter had sent the turn: all that was said in it stands in lines that
/// it had read. What the client adds afterwards, such as how long it took, does not count.
fn sent_before(session: &Session, head: &TurnTraceSummary, before: u32) -> bool {
    if head.last_line <= before {
        return head.last_line > 0;
    }
    if before == 0 {
        return false;
    }
    let records = &session.records;
    let start = records.partition_point(|record| record.line <= before);
    let end = records.partition_point(|record| record.line <= head.last_line);
    let said = |at: usize| records[at].is_conversation() && !records[at].is_meta();
    // Its prompt stands before, or all of it would be new.
    let mut opened = session.turns.iter().filter(|turn| turn.thread == 0);
    let prompt = head.n.checked_sub(1).and_then(|n| opened.nth(n));
    let prompt = prompt.map(|turn| &records[turn.record as usize]);
    prompt.is_some_and(|prompt| prompt.line <= before) && !(start..end).any(said)
}

#[cfg(test)]
mod tests {
    use unspool_model::log::Log;
    use unspool_model::price::Prices;
    use unspool_model::session::TranscriptRole;
    use unspool_send::ledger::{LedgerNote, ReceiverKey};
    use unspool_send::spans::{TraceFacts, TraceInput, TraceOptions};
    use unspool_testkit::script;

    use super::*;

    struct Case {
        session: Session,
        heads: Vec<TurnTraceSummary>,
    }

    fn case(text: &str) -> Case {
        let log = Log::new(script::jsonl(text));
        let session = Session::from_log(&log, TranscriptRole::Main);
        let facts = TraceFacts::default();
        let material = TraceInput {
            session: &session,
            source: &log,
            agents: Vec::new(),
            runs: &[],
            prices: Prices::bundled(),
        };
        let heads = heads(&SessionTurnTraces::new(
            material,
            &facts,
            TraceOptions::default(),
        ));
        Case { session, heads }
    }

    fn ledger() -> (tempfile::TempDir, SendLedger) {
        let dir = tempfile::tempdir().unwrap();
        let ledger = SendLedger::open(dir.path(), ReceiverKey([1; 8])).unwrap();
        (dir, ledger)
    }

    fn chosen(case: &Case, id: &str, ledger: &SendLedger, owners: &mut TraceOwners) -> TurnsToSend {
        let id: Arc<str> = id.into();
        let view = SessionToSend {
            id: &id,
            session: &case.session,
            left: false,
            full: false,
            skip: false,
        };
        choose(&view, &case.heads, ledger, owners)
    }

    fn note(head: &TurnTraceSummary, session: &str) -> LedgerNote {
        LedgerNote::Sent {
            trace: head.id,
            digest: head.digest,
            spans: head.spans,
            session: session.into(),
        }
    }

    const TWO: &str = "you: one\nclaude: yes\nyou: two\nclaude: yes [Read a]\nresult: Read a b\nclaude: done\nyou: three\n";

    #[test]
    fn what_is_over_goes_and_what_is_not_waits() {
        let (_dir, ledger) = ledger();
        let case = case(TWO);
        let choice = chosen(&case, "a", &ledger, &mut TraceOwners::default());
        assert_eq!(choice.turns.len(), 2);
        assert_eq!((choice.waiting, choice.owed), (1, false));
    }

    #[test]
    fn what_was_taken_does_not_go_again_unless_it_grew() {
        let (_dir, mut ledger) = ledger();
        let case = case(TWO);
        ledger.note(&[note(&case.heads[0], "a")]).unwrap();
        let choice = chosen(&case, "a", &ledger, &mut TraceOwners::default());
        assert_eq!((choice.turns.len(), choice.already), (1, 1));
        let mut grown = case;
        grown.heads[0].digest.0[0] ^= 1;
        let choice = chosen(&grown, "a", &ledger, &mut TraceOwners::default());
        assert_eq!((choice.turns.len(), choice.already), (2, 0));
    }

    #[test]
    fn a_copy_does_not_go_but_one_that_went_on_does_under_the_first_session() {
        let (_dir, mut ledger) = ledger();
        let case = case(TWO);
        let (one, two) = (&case.heads[0], &case.heads[1]);
        ledger.note(&[note(one, "a"), note(two, "a")]).unwrap();
        let mut copy = Case {
            session: case.session.clone(),
            heads: case.heads.clone(),
        };
        // Trimmed: another digest, and less of it.
        copy.heads[0].digest.0[0] ^= 1;
        copy.heads[1].digest.0[0] ^= 1;
        copy.heads[1].spans += 3;
        let choice = chosen(&copy, "b", &ledger, &mut TraceOwners::default());
        assert_eq!((choice.turns.len(), choice.elsewhere), (1, 1));
        assert_eq!(&*choice.turns[0].1, "a");
    }

    #[test]
    fn in_one_run_the_first_file_has_it() {
        let (_dir, ledger) = ledger();
        let case = case(TWO);
        let mut owners = TraceOwners::default();
        assert_eq!(chosen(&case, "a", &ledger, &mut owners).turns.len(), 2);
        let second = chosen(&case, "b", &ledger, &mut owners);
        assert_eq!((second.turns.len(), second.elsewhere), (0, 2));
        // What waits in the older file goes from the newer one, where it is over.
        let mut longer = case;
        longer.heads[2].progress = TurnProgress {
            over: true,
            answered: true,
        };
        let third = chosen(&longer, "c", &ledger, &mut owners);
        assert_eq!(third.turns.len(), 1);
        assert_eq!(&*third.turns[0].1, "a");
    }

    #[test]
    fn a_turn_that_went_out_without_an_answer_keeps_its_id_when_one_comes() {
        const ASKED: &str = "(name=a) you: one\nyou: two\nclaude: yes\n";
        let (_dir, mut ledger) = ledger();
        let asked = case(ASKED);
        let choice = chosen(&asked, "a", &ledger, &mut TraceOwners::default());
        assert_eq!(choice.turns.len(), 2, "another prompt follows it");
        let first = asked.heads[0].id;
        // Two clients wrote to one file; the first of them is slow.
        let text = ASKED.to_owned() + "(parent=a, id=msg_late) claude: late\n";
        let kept = |ledger: &SendLedger, owners: &TraceOwners| {
            let log = Log::new(script::jsonl(&text));
            let session = Session::from_log(&log, TranscriptRole::Main);
            let facts = TraceFacts::default();
            let material = TraceInput {
                session: &session,
                source: &log,
                agents: Vec::new(),
                runs: &[],
                prices: Prices::bundled(),
            };
            let traces = SessionTurnTraces::new(material, &facts, TraceOptions::default());
            let mut heads = heads(&traces);
            keep_ids(&mut heads, &traces, ledger, owners);
            let trace = heads[0].trace(&traces).unwrap();
            assert_eq!((trace.id, trace.digest), (heads[0].id, heads[0].digest));
            Case { session, heads }
        };
        // Nobody has it: it is named by its answer, as everywhere else.
        let fresh = kept(&ledger, &TraceOwners::default());
        assert_ne!(fresh.heads[0].id, first);
        // Somebody has it, from an earlier run.
        ledger.note(&[note(&asked.heads[0], "a")]).unwrap();
        let answered = kept(&ledger, &TraceOwners::default());
        assert_eq!(answered.heads[0].id, first);
        let choice = chosen(&answered, "a", &ledger, &mut TraceOwners::default());
        assert_eq!(choice.turns[0].0, 0, "it grew, so it goes again");
        // Both answers were sent under their own ids before: each stays as it is.
        ledger.note(&[note(&fresh.heads[0], "a")]).unwrap();
        assert_ne!(kept(&ledger, &TraceOwners::default()).heads[0].id, first);
    }

    #[test]
    fn in_one_run_too_an_answer_that_only_a_copy_has_comes_under_the_first_id() {
        let (_dir, ledger) = ledger();
        let asked = case("(name=a) you: one\nyou: two\nclaude: yes\n");
        let mut owners = TraceOwners::default();
        chosen(&asked, "a", &ledger, &mut owners);
        assert!(owners.is_out(asked.heads[0].id));
        let mut answered = case("you: one\nclaude: yes\n");
        answered.heads[0].unanswered = Some(asked.heads[0].id);
        let choice = chosen(&answered, "b", &ledger, &mut TraceOwners::default());
        assert_eq!(&*choice.turns[0].1, "b");
        let mut owners = TraceOwners::default();
        owners.older(asked.heads[0].id, &"a".into());
        let choice = chosen(&answered, "b", &ledger, &mut owners);
        assert_eq!(&*choice.turns[0].1, "a", "the older file had the prompt");
    }

    #[test]
    fn lines_that_an_older_exporter_sent_count() {
        let (_dir, mut ledger) = ledger();
        let case = case(
            "you: one\nclaude: yes\nyou: two\nclaude: part\nclaude: rest\nyou: three\nclaude: yes\n",
        );
        let first = case.heads[0].last_line;
        let before = |lines| LedgerNote::Before {
            session: "a".into(),
            lines,
        };
        ledger.note(&[before(first)]).unwrap();
        let choice = chosen(&case, "a", &ledger, &mut TraceOwners::default());
        assert_eq!(choice.already, 1);
        // It had read the beginning of a turn: that one goes, whole.
        ledger.note(&[before(case.heads[1].last_line - 1)]).unwrap();
        let choice = chosen(&case, "a", &ledger, &mut TraceOwners::default());
        assert_eq!(choice.already, 1);
        ledger.note(&[before(case.heads[1].last_line)]).unwrap();
        let choice = chosen(&case, "a", &ledger, &mut TraceOwners::default());
        assert_eq!(choice.already, 2);
    }
}
