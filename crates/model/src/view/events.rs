//! What happened beside the conversation: compactions, interrupts, errors, hooks, and prompts
//! typed while the model worked.

use crate::entry::LineKind;
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::user_input::UserInput;
use crate::view::prompt_queue;
use crate::view::transcript::ItemBody;
use crate::view::transcript::line_text;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEvent {
    /// The line that tells of it.
    pub record: Index,
    /// What it was.
    pub what: SessionEventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEventKind {
    /// The context was compacted.
    Compaction {
        /// Only old tool results were cleared.
        micro: bool,
        /// `manual` or `auto`.
        trigger: Option<Box<str>>,
        /// Tokens before.
        before: Option<u64>,
        /// Tokens after.
        after: Option<u64>,
        /// The line that holds the summary.
        summary: Option<Index>,
    },
    /// A person stopped the model.
    Interrupt,
    /// A call of the API failed; the client may try again.
    ApiError,
    /// The API failed for good: the client says so in place of a reply.
    Failure,
    /// A prompt was typed while the model worked.
    Queued(String),
    /// A hook failed or blocked.
    Hook,
}

/// All events of a session, those of sub-agents in its file too, in file order.
pub fn events(session: &Session) -> Vec<SessionEvent> {
    let mut typed = prompt_queue::typed_meanwhile(session)
        .into_iter()
        .peekable();
    let mut events: Vec<SessionEvent> = Vec::new();
    let mut open = vec![OngoingEvents::default(); session.threads.len()];
    for (at, record) in (0..).zip(&session.records) {
        if let Some((_, text)) = typed.next_if(|(line, _)| *line == at) {
            let what = SessionEventKind::Queued(text);
            events.push(SessionEvent { record: at, what });
        }
        if record.is_duplicate() {
            continue;
        }
        let open = &mut open[record.thread as usize];
        let what = match record.kind {
            LineKind::CompactBoundary | LineKind::MicroBoundary => {
                let boundary = session.boundary_of(record);
                open.compaction = Some(events.len());
                SessionEventKind::Compaction {
                    micro: !record.kind.is_boundary(),
                    trigger: boundary.and_then(|boundary| boundary.trigger.clone()),
                    before: boundary.and_then(|boundary| boundary.before),
                    after: boundary.and_then(|boundary| boundary.after),
                    summary: None,
                }
            }
            LineKind::User if record.input == UserInput::Summary => match open.compaction.take() {
                Some(compaction) => {
                    summarised(&mut events[compaction], at);
                    continue;
                }
                // Before there were boundaries.
                None => SessionEventKind::Compaction {
                    micro: false,
                    trigger: None,
                    before: None,
                    after: None,
                    summary: Some(at),
                },
            },
            LineKind::User if record.input == UserInput::Interrupt => SessionEventKind::Interrupt,
            LineKind::User if record.input.opens_turn() => {
                open.hook = false;
                continue;
            }
            LineKind::Assistant if record.is_api_error() => SessionEventKind::Failure,
            LineKind::ApiError => SessionEventKind::ApiError,
            LineKind::Attachment | LineKind::System if record.is_trouble() => {
                open.hook = true;
                SessionEventKind::Hook
            }
            // The summary at the end of a turn repeats what the hook's own line said.
            LineKind::StopHookSummary if record.is_trouble() && !open.hook => {
                SessionEventKind::Hook
            }
            _ => continue,
        };
        events.push(SessionEvent { record: at, what });
    }
    events
}

/// What a thread is in the middle of.
#[derive(Clone, Default)]
struct OngoingEvents {
    /// A compaction whose summary has not come yet.
    compaction: Option<usize>,
    /// A hook told of its trouble.
    hook: bool,
}

fn summarised(event: &mut SessionEvent, line: Index) {
    if let SessionEventKind::Compaction { summary, .. } = &mut event.what {
        *summary = Some(line);
    }
}

/// What an event says, read from its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDetail {
    /// The error, the prompt, the output of the hook; the summary of a compaction.
    pub text: String,
    /// Which attempt failed, of how many.
    pub attempt: Option<(u64, u64)>,
    /// The event of a hook.
    pub hook: Option<String>,
    /// The hook kept something from happening.
    pub blocked: bool,
}

/// Reads what an event says.
pub fn detail(
    session: &Session,
    source: &dyn TranscriptSource,
    event: &SessionEvent,
) -> EventDetail {
    let record = &session.records[event.record as usize];
    match &event.what {
        SessionEventKind::Queued(text) => EventDetail::said(text.clone()),
        SessionEventKind::Compaction { summary, .. } => {
            let summary = summary.map(|line| line_text::text_of(session, source, line));
            EventDetail::said(summary.unwrap_or_default())
        }
        SessionEventKind::Interrupt | SessionEventKind::Failure => {
            EventDetail::said(line_text::text_of(session, source, event.record))
        }
        SessionEventKind::ApiError => match line_text::api_error(&session.bytes_of(source, record))
        {
            ItemBody::ApiError { text, attempt } => EventDetail {
                attempt,
                ..EventDetail::said(text)
            },
            _ => EventDetail::default(),
        },
        SessionEventKind::Hook => {
            let bytes = session.bytes_of(source, record);
            let hook = match record.kind {
                LineKind::Attachment => line_text::attached_hook(&bytes),
                _ => line_text::stop_hook(&bytes),
            };
            EventDetail {
                hook: Some(hook.event),
                blocked: hook.blocked,
                ..EventDetail::said(hook.output)
            }
        }
    }
}

impl EventDetail {
    fn said(text: String) -> EventDetail {
        EventDetail {
            text,
            ..EventDetail::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::TranscriptRole;

    fn read(lines: &[&str]) -> (Session, Log) {
        let log = Log::new(lines.join("\n") + "\n");
        (Session::from_log(&log, TranscriptRole::Main), log)
    }

    #[test]
    fn a_compaction_has_the_summary_that_follows_it() {
        let (session, log) = read(&[
            r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a","compactMetadata":{"trigger":"auto","preTokens":900}}"#,
            r#"{"type":"user","uuid":"c","parentUuid":"b","isCompactSummary":true,"message":{"role":"user","content":"in short"}}"#,
        ]);
        let events = events(&session);
        let [
            SessionEvent {
                record: 1,
                what:
                    SessionEventKind::Compaction {
                        micro: false,
                        trigger: Some(trigger),
                        before: Some(900),
                        summary: Some(2),
                        ..
                    },
            },
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(&**trigger, "auto");
        assert_eq!(detail(&session, &log, &events[0]).text, "in short");
    }

    #[test]
    fn a_failed_call_tells_which_attempt_it_was_and_the_last_one_that_it_was_the_last() {
        let (session, log) = read(&[
            r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"system","subtype":"api_error","uuid":"b","parentUuid":"a","error":{"message":"overloaded"},"retryAttempt":2,"maxRetries":10}"#,
            r#"{"type":"assistant","uuid":"c","parentUuid":"b","isApiErrorMessage":true,"message":{"id":"m","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error: 529"}]}}"#,
            r#"{"type":"user","uuid":"d","parentUuid":"c","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
        ]);
        let events = events(&session);
        let whats: Vec<&SessionEventKind> = events.iter().map(|event| &event.what).collect();
        assert_eq!(
            whats,
            [
                &SessionEventKind::ApiError,
                &SessionEventKind::Failure,
                &SessionEventKind::Interrupt
            ]
        );
        let first = detail(&session, &log, &events[0]);
        assert_eq!((&*first.text, first.attempt), ("overloaded", Some((2, 10))));
        assert_eq!(detail(&session, &log, &events[1]).text, "API Error: 529");
    }

    #[test]
    fn what_was_typed_meanwhile_is_an_event() {
        let (session, _) = read(&[
            r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"queue-operation","operation":"enqueue","content":"and this"}"#,
            r#"{"type":"queue-operation","operation":"remove"}"#,
        ]);
        let events = events(&session);
        assert_eq!(
            events[0].what,
            SessionEventKind::Queued("and this".to_owned())
        );
        assert_eq!((events.len(), events[0].record), (1, 2));
    }
}
