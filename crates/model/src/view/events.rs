//! What happened beside the conversation: compactions, interrupts, errors, hooks, and prompts
//! typed while the model worked.

use crate::entry::Kind;
use crate::input::Input;
use crate::log::Source;
use crate::session::{Index, Session};
use crate::view::queue;
use crate::view::transcript::Body;
use crate::view::transcript::says;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The line that tells of it.
    pub record: Index,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
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
pub fn events(session: &Session) -> Vec<Event> {
    let mut typed = queue::typed_meanwhile(session).into_iter().peekable();
    let mut events: Vec<Event> = Vec::new();
    let mut open = vec![Open::default(); session.threads.len()];
    for (at, record) in (0..).zip(&session.records) {
        if let Some((_, text)) = typed.next_if(|(line, _)| *line == at) {
            let what = What::Queued(text);
            events.push(Event { record: at, what });
        }
        if record.is_duplicate() {
            continue;
        }
        let open = &mut open[record.thread as usize];
        let what = match record.kind {
            Kind::CompactBoundary | Kind::MicroBoundary => {
                let boundary = session.boundary_of(record);
                open.compaction = Some(events.len());
                What::Compaction {
                    micro: !record.kind.is_boundary(),
                    trigger: boundary.and_then(|boundary| boundary.trigger.clone()),
                    before: boundary.and_then(|boundary| boundary.before),
                    after: boundary.and_then(|boundary| boundary.after),
                    summary: None,
                }
            }
            Kind::User if record.input == Input::Summary => match open.compaction.take() {
                Some(compaction) => {
                    summarised(&mut events[compaction], at);
                    continue;
                }
                // Before there were boundaries.
                None => What::Compaction {
                    micro: false,
                    trigger: None,
                    before: None,
                    after: None,
                    summary: Some(at),
                },
            },
            Kind::User if record.input == Input::Interrupt => What::Interrupt,
            Kind::User if record.input.opens_turn() => {
                open.hook = false;
                continue;
            }
            Kind::Assistant if record.is_api_error() => What::Failure,
            Kind::ApiError => What::ApiError,
            Kind::Attachment | Kind::System if record.is_trouble() => {
                open.hook = true;
                What::Hook
            }
            // The summary at the end of a turn repeats what the hook's own line said.
            Kind::StopHookSummary if record.is_trouble() && !open.hook => What::Hook,
            _ => continue,
        };
        events.push(Event { record: at, what });
    }
    events
}

/// What a thread is in the middle of.
#[derive(Clone, Default)]
struct Open {
    /// A compaction whose summary has not come yet.
    compaction: Option<usize>,
    /// A hook told of its trouble.
    hook: bool,
}

fn summarised(event: &mut Event, line: Index) {
    if let What::Compaction { summary, .. } = &mut event.what {
        *summary = Some(line);
    }
}

/// What an event says, read from its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
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
pub fn detail(session: &Session, source: &dyn Source, event: &Event) -> Detail {
    let record = &session.records[event.record as usize];
    match &event.what {
        What::Queued(text) => Detail::said(text.clone()),
        What::Compaction { summary, .. } => {
            let summary = summary.map(|line| says::text_of(session, source, line));
            Detail::said(summary.unwrap_or_default())
        }
        What::Interrupt | What::Failure => {
            Detail::said(says::text_of(session, source, event.record))
        }
        What::ApiError => match says::api_error(&session.bytes_of(source, record)) {
            Body::ApiError { text, attempt } => Detail {
                attempt,
                ..Detail::said(text)
            },
            _ => Detail::default(),
        },
        What::Hook => {
            let bytes = session.bytes_of(source, record);
            let hook = match record.kind {
                Kind::Attachment => says::attached_hook(&bytes),
                _ => says::stop_hook(&bytes),
            };
            Detail {
                hook: Some(hook.event),
                blocked: hook.blocked,
                ..Detail::said(hook.output)
            }
        }
    }
}

impl Detail {
    fn said(text: String) -> Detail {
        Detail {
            text,
            ..Detail::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::Role;

    fn read(lines: &[&str]) -> (Session, Log) {
        let log = Log::new(lines.join("\n") + "\n");
        (Session::from_log(&log, Role::Main), log)
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
            Event {
                record: 1,
                what:
                    What::Compaction {
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
        let whats: Vec<&What> = events.iter().map(|event| &event.what).collect();
        assert_eq!(whats, [&What::ApiError, &What::Failure, &What::Interrupt]);
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
        assert_eq!(events[0].what, What::Queued("and this".to_owned()));
        assert_eq!((events.len(), events[0].record), (1, 2));
    }
}
