//! A tool call in one line: what was done, to what, what came of it, how long it took.
//!
//! Below the line stand a few lines for failures, changes and questions; with
//! [`Tools::Full`] all of input and result.

use serde_json::Value;
use unspool_model::tool;
use unspool_model::view::outcome::{self, AgentOutcome, Outcome, Question, Todo, TodoState};
use unspool_model::view::transcript::{self, Call};
use unspool_model::view::turns::CallStatus as Status;
use unspool_model::view::workflow::Run;

use crate::layout::{behind_own, cut, cut_path, pad, wrap_own, wrap_text};
use crate::style::{Line, Paint, Style, Tools};
use crate::text::{few, limited, quoted};
use crate::{amount, diff, markdown};

/// Where the subject begins.
const SUBJECT: usize = 13;
/// Room for the time at the right.
const TIME: usize = 6;
/// Longest output that stands in the line of its call.
const BRIEF: usize = 24;
/// Lines of a failure, a change or a list.
const FEW: usize = 5;
/// Lines of a change.
const CHANGE: usize = 10;

/// The call in lines of at most `width` columns.
pub(crate) fn lines(call: &Call, style: &Style, width: usize) -> Vec<Line> {
    let mut lines = vec![head(call, width)];
    lines.extend(match style.tools {
        Tools::None => Vec::new(),
        Tools::Short => below(call, width),
        Tools::Full => everything(call, width),
    });
    lines
}

fn head(call: &Call, width: usize) -> Line {
    let failed = matches!(call.status, Status::Error | Status::Missing);
    let mut left = match failed {
        true => Line::of(Paint::ERROR, "✗ "),
        false => Line::of(Paint::PLAIN, "  "),
    };
    left.push(Paint::VERB, &call.verb);
    pad(&mut left, SUBJECT - 1);
    left.push(Paint::PLAIN, " ");
    // The subject says more than the result: in a narrow place the result gives way.
    let most = width.saturating_sub(SUBJECT + TIME + 20).clamp(8, 32);
    let right = right(call, most);
    let room = width.saturating_sub(left.width() + right.width() + 2);
    left.push(Paint::PLAIN, &subject(call, room));
    pad(&mut left, width.saturating_sub(right.width()));
    left.append(&right);
    cut(&left, width)
}

fn subject(call: &Call, room: usize) -> String {
    // Plans and questions stand below, whole.
    let below = matches!(call.outcome, Outcome::Plan(_) | Outcome::Asked(_));
    let subject = call
        .subject
        .as_deref()
        .filter(|_| !below)
        .unwrap_or_default();
    let kind = match &call.outcome {
        Outcome::Agent(agent) => agent.kind.as_deref(),
        _ => None,
    };
    let text = match kind {
        Some(kind) if kind != subject => format!("{kind} “{subject}”"),
        _ => subject.to_owned(),
    };
    let is_path = text.contains('/') && !text.contains(' ');
    if is_path {
        cut_path(&text, room)
    } else {
        cut(&Line::of(Paint::PLAIN, &text), room).text()
    }
}

/// The result in a few words, and the time.
fn right(call: &Call, most: usize) -> Line {
    let (paint, text) = result(call);
    let time = call.duration_ms.map(amount::duration).unwrap_or_default();
    let text = cut(&Line::of(paint, &text), most);
    text.with(Paint::DIM, &format!("  {time:>TIME$}"))
}

/// What a workflow run is called, how it went, and what its sub-agents are at.
pub(crate) fn run_lines(run: &Run, width: usize) -> Vec<Line> {
    let mut parts = vec![run.title().to_owned()];
    parts.push(amount::count(run.agents.len() as u64, "agent"));
    parts.extend(run.status.clone());
    let head = format!("    {}", parts.join(", "));
    let mut lines = vec![Line::of(Paint::DIM, &head)];
    for agent in &run.agents {
        let text = format!("      {}", transcript::run_agent_words(agent));
        lines.push(Line::of(Paint::DIM, &text));
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Whether a call has more to tell in brief than its line.
pub(crate) fn has_news(call: &Call) -> bool {
    let agent = call.agent.as_ref();
    call.status == Status::Error
        || call.change.is_some()
        || agent.is_some_and(|agent| !agent.items.is_empty())
        || is_told(&call.outcome)
}

/// Whether an outcome is something people talk about.
pub(crate) fn is_told(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Todos(_) | Outcome::Asked(_) | Outcome::Plan(_) | Outcome::Refused { .. }
    )
}

/// Fields of the input that the change or the outcome shows already.
pub(crate) fn shown_fields(call: &Call) -> &'static [&'static str] {
    match (&call.change, &call.outcome) {
        (Some(_), _) => &["old_string", "new_string", "content", "edits", "new_source"],
        (_, Outcome::Todos(_)) => &["todos"],
        (_, Outcome::Plan(_)) => &["plan"],
        _ => &[],
    }
}

/// The field of the input that the line of a call shows as its subject, as it was written.
pub(crate) fn whole_subject(call: &Call) -> Option<&str> {
    let subject = call.subject.as_deref()?;
    let below = matches!(call.outcome, Outcome::Plan(_) | Outcome::Asked(_));
    let fields = call.input.as_object().filter(|_| !below)?;
    let same = |name: &str, text: &str| {
        text == subject || (tool::is_path(name) && text.ends_with(subject))
    };
    let mut texts = fields
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_str()?)));
    texts
        .find(|(name, text)| same(name, text))
        .map(|(_, text)| text)
}

/// What came of a call, in a few words.
pub(crate) fn result(call: &Call) -> (Paint, String) {
    match (call.status, &call.outcome) {
        (_, Outcome::Refused { .. }) => (Paint::WARN, "refused".to_owned()),
        (Status::Running, _) => (Paint::WARN, "no result yet".to_owned()),
        (Status::Missing, _) => (Paint::ERROR, "no result".to_owned()),
        (
            Status::Error,
            Outcome::Ran {
                exit: Some(exit), ..
            },
        ) => (Paint::ERROR, format!("exit {exit}")),
        (Status::Error, _) => (Paint::ERROR, "failed".to_owned()),
        (Status::Ok, outcome) => (Paint::DIM, summary(call, outcome)),
    }
}

fn summary(call: &Call, outcome: &Outcome) -> String {
    if let Some(change) = &call.change
        && !matches!(outcome, Outcome::Wrote { created: true, .. })
    {
        let (added, removed) = diff::counts(change);
        return format!("+{added} −{removed}");
    }
    match outcome {
        Outcome::Read {
            lines,
            of: Some(of),
        } if lines + 1 < *of => {
            format!("{lines} of {}", amount::count(*of, "line"))
        }
        Outcome::Read { lines, .. } => amount::count(*lines, "line"),
        Outcome::Media(what) => what.clone(),
        Outcome::Ran {
            background: true, ..
        } => "in the background".to_owned(),
        Outcome::Ran {
            interrupted: true, ..
        } => "interrupted".to_owned(),
        Outcome::Ran {
            exit: Some(exit), ..
        } if *exit != 0 => format!("exit {exit}"),
        Outcome::Found { files, lines, cut } => found(*files, *lines, *cut),
        Outcome::Wrote { created, lines } => {
            let did = if *created { "created" } else { "wrote" };
            format!("{did} {}", amount::count(*lines, "line"))
        }
        Outcome::Fetched { bytes, status } => fetched(*bytes, *status),
        Outcome::Searched { results } => amount::count(*results, "result"),
        Outcome::Agent(agent) => worked(agent, call),
        Outcome::Todos(todos) => {
            let done = todos
                .iter()
                .filter(|todo| todo.state == TodoState::Done)
                .count();
            format!("{done}/{} done", todos.len())
        }
        Outcome::Moved {
            from: Some(from),
            to,
        } => format!("{from} → {to}").replace('_', " "),
        Outcome::Moved { from: None, to } => to.replace('_', " "),
        Outcome::Asked(questions) => answered(questions),
        Outcome::Plan(_) => "approved".to_owned(),
        Outcome::Ran { .. } | Outcome::Plain => printed(call),
        Outcome::Refused { .. } => "refused".to_owned(),
    }
}

/// What was printed, if it is short; else how much.
fn printed(call: &Call) -> String {
    let text = call.text.trim();
    // Tools we know say "done" in their own words; that is no news.
    let chatty = call.outcome == Outcome::Plain && tool::known(&call.name).is_some();
    match text.lines().count() {
        _ if is_quiet(text) && call.images > 0 => amount::count(call.images as u64, "image"),
        _ if chatty => String::new(),
        _ if is_quiet(text) => "no output".to_owned(),
        1 if text.chars().count() <= BRIEF => text.to_owned(),
        1 if matches!(call.outcome, Outcome::Ran { .. }) => String::new(),
        lines => amount::count(lines as u64, "line"),
    }
}

fn is_quiet(text: &str) -> bool {
    text.is_empty() || text == "(no content)" || text.contains("completed with no output")
}

fn found(files: Option<u64>, lines: Option<u64>, cut: bool) -> String {
    let more = if cut { "+" } else { "" };
    match (lines, files) {
        (Some(lines), Some(files)) => {
            format!(
                "{} in {}{more}",
                amount::count(lines, "line"),
                amount::count(files, "file")
            )
        }
        (Some(0), None) => "nothing".to_owned(),
        (Some(lines), None) => amount::count(lines, "line") + more,
        (None, Some(0)) => "nothing".to_owned(),
        (None, Some(files)) => amount::count(files, "file") + more,
        (None, None) => String::new(),
    }
}

fn fetched(bytes: Option<u64>, status: Option<u64>) -> String {
    let parts = [
        status.map(|status| status.to_string()),
        bytes.map(amount::bytes),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn worked(agent: &AgentOutcome, call: &Call) -> String {
    let calls = agent.calls.or(call.agent.as_ref().map(|agent| agent.calls));
    let mut parts = Vec::new();
    if agent.background {
        parts.push("in the background".to_owned());
    }
    parts.extend(calls.map(|calls| amount::count(calls, "call")));
    parts.extend(
        agent
            .tokens
            .map(|tokens| format!("{} tokens", amount::tokens(tokens))),
    );
    parts.join(", ")
}

fn answered(questions: &[Question]) -> String {
    let answers = questions
        .iter()
        .filter(|question| question.answer.is_some())
        .count();
    match (answers, questions.len()) {
        (0, _) => "no answer".to_owned(),
        (answers, all) if answers == all => "answered".to_owned(),
        (answers, all) => format!("{answers} of {all} answered"),
    }
}

/// The few lines that stand below a call in short form.
fn below(call: &Call, width: usize) -> Vec<Line> {
    if let Outcome::Refused { said } = &call.outcome {
        let said = said.iter().map(|said| format!("“{said}”"));
        return said
            .flat_map(|said| framed_text(&said, Paint::PLAIN, width, FEW))
            .collect();
    }
    if let Outcome::Asked(questions) = &call.outcome {
        return asked(questions, width);
    }
    match call.status {
        Status::Error => {
            let room = width.saturating_sub(SUBJECT + 2);
            framed(few(failure(call), Paint::PLAIN, FEW, |line| {
                wrap_own(line, room)
            }))
        }
        Status::Running => framed_text(last_lines(&call.text), Paint::DIM, width, FEW),
        Status::Missing => Vec::new(),
        Status::Ok => done(call, width),
    }
}

fn done(call: &Call, width: usize) -> Vec<Line> {
    let room = width.saturating_sub(SUBJECT + 2);
    match (&call.outcome, &call.change) {
        (Outcome::Wrote { created: true, .. }, _) => Vec::new(),
        (_, Some(change)) => framed(diff::lines(change, room, CHANGE)),
        (Outcome::Todos(todos), _) => framed(limited(todo_lines(todos, room), CHANGE)),
        (Outcome::Plan(plan), _) => framed(limited(markdown::lines(plan, room), CHANGE)),
        (
            Outcome::Ran {
                exit: Some(exit), ..
            },
            _,
        ) if *exit != 0 => framed_text(&call.text, Paint::PLAIN, width, FEW),
        (
            Outcome::Ran {
                background: false, ..
            },
            _,
        ) => one_line(call, width),
        (Outcome::Agent(agent), _) if !agent.background => report(call, agent, room),
        _ => Vec::new(),
    }
}

/// A single line that is too long for the line of its call.
fn one_line(call: &Call, width: usize) -> Vec<Line> {
    let text = call.text.trim();
    let long = text.lines().count() == 1 && text.chars().count() > BRIEF && !is_quiet(text);
    if long {
        framed_text(text, Paint::DIM, width, FEW)
    } else {
        Vec::new()
    }
}

/// An agent's last words; where its conversation is shown they stand there.
fn report(call: &Call, agent: &AgentOutcome, room: usize) -> Vec<Line> {
    let open = call
        .agent
        .as_ref()
        .is_some_and(|agent| !agent.items.is_empty());
    match agent.report.as_deref().filter(|_| !open) {
        Some(report) => framed(limited(markdown::lines(report, room), FEW)),
        None => Vec::new(),
    }
}

fn failure(call: &Call) -> &str {
    let text = outcome::failure(&call.text);
    // The head of the call says it already.
    match (&call.outcome, text.split_once('\n')) {
        (Outcome::Ran { exit: Some(_), .. }, Some((first, rest)))
            if first.starts_with("Exit code") =>
        {
            rest
        }
        (Outcome::Ran { exit: Some(_), .. }, None) if text.starts_with("Exit code") => "",
        _ => text,
    }
}

/// Of what a running command printed, the end counts.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let starts = text.rmatch_indices('\n').map(|(at, _)| at + 1);
    starts
        .take(FEW)
        .last()
        .filter(|_| text.lines().count() > FEW)
        .map_or(text, |at| &text[at..])
}

fn asked(questions: &[Question], width: usize) -> Vec<Line> {
    let room = width.saturating_sub(SUBJECT + 2);
    let mut lines = Vec::new();
    for question in questions {
        lines.extend(wrap_text(Paint::BOLD, &question.text, room));
        if !question.options.is_empty() {
            let options = question.options.join(" · ");
            lines.extend(wrap_text(Paint::DIM, &options, room));
        }
        match &question.answer {
            Some(answer) => lines.extend(wrap_text(Paint::ADDED, &format!("✓ {answer}"), room)),
            None => lines.push(Line::of(Paint::WARN, "(no answer)")),
        }
    }
    framed(lines)
}

fn todo_lines(todos: &[Todo], room: usize) -> Vec<Line> {
    let line = |todo: &Todo| {
        let (sign, paint) = match todo.state {
            TodoState::Open => ("☐ ", Paint::PLAIN),
            TodoState::Active => ("▶ ", Paint::BOLD),
            TodoState::Done => ("☑ ", Paint::DIM),
        };
        cut(&Line::of(paint, sign).with(paint, &todo.text), room)
    };
    todos.iter().map(line).collect()
}

/// Input and result, all of them.
fn everything(call: &Call, width: usize) -> Vec<Line> {
    let room = width.saturating_sub(SUBJECT + 2);
    let mut lines = Vec::new();
    if let Some(change) = &call.change {
        // All of it: lines that are too long are left to the terminal.
        lines.extend(framed(diff::lines(change, usize::MAX, usize::MAX - 1)));
    } else {
        lines.extend(framed(input(&call.input, room)));
    }
    if let Outcome::Asked(questions) = &call.outcome {
        lines.extend(asked(questions, width));
    }
    let paint = if call.status == Status::Error {
        Paint::ERROR
    } else {
        Paint::PLAIN
    };
    let text = quoted(&call.text, paint, width, &" ".repeat(SUBJECT), usize::MAX);
    if !text.is_empty() {
        let rule = Line::of(Paint::PLAIN, &" ".repeat(SUBJECT)).with(Paint::DIM, "├ result");
        lines.push(rule);
        lines.extend(text);
    }
    lines
}

fn input(input: &Value, room: usize) -> Vec<Line> {
    let Some(fields) = input.as_object() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (key, value) in fields {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let mut key_line = Line::of(Paint::DIM, &format!("{key}: "));
        if text.contains('\n') {
            lines.push(key_line);
            lines.extend(wrap_text(Paint::PLAIN, text.trim_end(), room));
        } else {
            key_line.push(Paint::PLAIN, &text);
            lines.extend(wrap_own(key_line, room));
        }
    }
    lines
}

fn framed(lines: Vec<Line>) -> Vec<Line> {
    let bar = Line::of(Paint::PLAIN, &" ".repeat(SUBJECT)).with(Paint::DIM, "│ ");
    let lines = lines.into_iter();
    lines.map(|line| behind_own(&bar, line)).collect()
}

fn framed_text(text: &str, paint: Paint, width: usize, limit: usize) -> Vec<Line> {
    quoted(text, paint, width, &" ".repeat(SUBJECT), limit)
}
