//! A tool call in one line: what was done, to what, what came of it, how long it took.
//!
//! Below the line stand a few lines for failures, changes and questions; with
//! [`ToolDetail::Full`] all of input and result.

use serde_json::Value;
use unspool_model::tool;
use unspool_model::view::tool_outcome::{
    self, AgentOutcome, TodoItem, TodoState, ToolCallOutcome, UserQuestion,
};
use unspool_model::view::transcript::{self, TranscriptCall};
use unspool_model::view::turns::CallStatus as Status;
use unspool_model::view::workflow::WorkflowRun;

use crate::layout::{behind_own, cut, cut_path, pad, wrap_own, wrap_text};
use crate::style::{ConversationStyle, StyledLine, TextStyle, ToolDetail};
use crate::text::{few, limited, quoted};
use crate::{diff, format, markdown};

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
pub(crate) fn lines(
    call: &TranscriptCall,
    style: &ConversationStyle,
    width: usize,
) -> Vec<StyledLine> {
    let mut lines = vec![head(call, width)];
    lines.extend(match style.tools {
        ToolDetail::None => Vec::new(),
        ToolDetail::Short => below(call, width),
        ToolDetail::Full => everything(call, width),
    });
    lines
}

fn head(call: &TranscriptCall, width: usize) -> StyledLine {
    let failed = matches!(call.status, Status::Error | Status::Missing);
    let mut left = match failed {
        true => StyledLine::of(TextStyle::ERROR, "✗ "),
        false => StyledLine::of(TextStyle::PLAIN, "  "),
    };
    left.push(TextStyle::VERB, &call.verb);
    pad(&mut left, SUBJECT - 1);
    left.push(TextStyle::PLAIN, " ");
    // The subject says more than the result: in a narrow place the result gives way.
    let most = width.saturating_sub(SUBJECT + TIME + 20).clamp(8, 32);
    let right = right(call, most);
    let room = width.saturating_sub(left.width() + right.width() + 2);
    left.push(TextStyle::PLAIN, &subject(call, room));
    pad(&mut left, width.saturating_sub(right.width()));
    left.append(&right);
    cut(&left, width)
}

fn subject(call: &TranscriptCall, room: usize) -> String {
    // Plans and questions stand below, whole.
    let below = matches!(
        call.outcome,
        ToolCallOutcome::Plan(_) | ToolCallOutcome::Asked(_)
    );
    let subject = call
        .subject
        .as_deref()
        .filter(|_| !below)
        .unwrap_or_default();
    let kind = match &call.outcome {
        ToolCallOutcome::Agent(agent) => agent.kind.as_deref(),
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
        cut(&StyledLine::of(TextStyle::PLAIN, &text), room).text()
    }
}

/// The result in a few words, and the time.
fn right(call: &TranscriptCall, most: usize) -> StyledLine {
    let (paint, text) = result(call);
    let time = call.duration_ms.map(format::duration).unwrap_or_default();
    let text = cut(&StyledLine::of(paint, &text), most);
    text.with(TextStyle::DIM, &format!("  {time:>TIME$}"))
}

/// What a workflow run is called, how it went, and what its sub-agents are at.
pub(crate) fn run_lines(run: &WorkflowRun, width: usize) -> Vec<StyledLine> {
    let mut parts = vec![run.title().to_owned()];
    parts.push(format::count(run.agents.len() as u64, "agent"));
    parts.extend(run.status.clone());
    let head = format!("    {}", parts.join(", "));
    let mut lines = vec![StyledLine::of(TextStyle::DIM, &head)];
    for agent in &run.agents {
        let text = format!("      {}", transcript::run_agent_words(agent));
        lines.push(StyledLine::of(TextStyle::DIM, &text));
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Whether a call has more to tell in brief than its line.
pub(crate) fn has_news(call: &TranscriptCall) -> bool {
    let agent = call.agent.as_ref();
    call.status == Status::Error
        || call.change.is_some()
        || agent.is_some_and(|agent| !agent.items.is_empty())
        || is_told(&call.outcome)
}

/// Whether an outcome is something people talk about.
pub(crate) fn is_told(outcome: &ToolCallOutcome) -> bool {
    matches!(
        outcome,
        ToolCallOutcome::Todos(_)
            | ToolCallOutcome::Asked(_)
            | ToolCallOutcome::Plan(_)
            | ToolCallOutcome::Refused { .. }
    )
}

/// Fields of the input that the change or the outcome shows already.
pub(crate) fn shown_fields(call: &TranscriptCall) -> &'static [&'static str] {
    match (&call.change, &call.outcome) {
        (Some(_), _) => &["old_string", "new_string", "content", "edits", "new_source"],
        (_, ToolCallOutcome::Todos(_)) => &["todos"],
        (_, ToolCallOutcome::Plan(_)) => &["plan"],
        _ => &[],
    }
}

/// The field of the input that the line of a call shows as its subject, as it was written.
pub(crate) fn whole_subject(call: &TranscriptCall) -> Option<&str> {
    let subject = call.subject.as_deref()?;
    let below = matches!(
        call.outcome,
        ToolCallOutcome::Plan(_) | ToolCallOutcome::Asked(_)
    );
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
pub(crate) fn result(call: &TranscriptCall) -> (TextStyle, String) {
    match (call.status, &call.outcome) {
        (_, ToolCallOutcome::Refused { .. }) => (TextStyle::WARN, "refused".to_owned()),
        (Status::Running, _) => (TextStyle::WARN, "no result yet".to_owned()),
        (Status::Missing, _) => (TextStyle::ERROR, "no result".to_owned()),
        (
            Status::Error,
            ToolCallOutcome::Ran {
                exit: Some(exit), ..
            },
        ) => (TextStyle::ERROR, format!("exit {exit}")),
        (Status::Error, _) => (TextStyle::ERROR, "failed".to_owned()),
        (Status::Ok, outcome) => (TextStyle::DIM, summary(call, outcome)),
    }
}

fn summary(call: &TranscriptCall, outcome: &ToolCallOutcome) -> String {
    if let Some(change) = &call.change
        && !matches!(outcome, ToolCallOutcome::Wrote { created: true, .. })
    {
        let (added, removed) = diff::counts(change);
        return format!("+{added} −{removed}");
    }
    match outcome {
        ToolCallOutcome::Read {
            lines,
            of: Some(of),
        } if lines + 1 < *of => {
            format!("{lines} of {}", format::count(*of, "line"))
        }
        ToolCallOutcome::Read { lines, .. } => format::count(*lines, "line"),
        ToolCallOutcome::Media(what) => what.clone(),
        ToolCallOutcome::Ran {
            background: true, ..
        } => "in the background".to_owned(),
        ToolCallOutcome::Ran {
            interrupted: true, ..
        } => "interrupted".to_owned(),
        ToolCallOutcome::Ran {
            exit: Some(exit), ..
        } if *exit != 0 => format!("exit {exit}"),
        ToolCallOutcome::Found { files, lines, cut } => found(*files, *lines, *cut),
        ToolCallOutcome::Wrote { created, lines } => {
            let did = if *created { "created" } else { "wrote" };
            format!("{did} {}", format::count(*lines, "line"))
        }
        ToolCallOutcome::Fetched { bytes, status } => fetched(*bytes, *status),
        ToolCallOutcome::Searched { results } => format::count(*results, "result"),
        ToolCallOutcome::Agent(agent) => worked(agent, call),
        ToolCallOutcome::Todos(todos) => {
            let done = todos
                .iter()
                .filter(|todo| todo.state == TodoState::Done)
                .count();
            format!("{done}/{} done", todos.len())
        }
        ToolCallOutcome::Moved {
            from: Some(from),
            to,
        } => format!("{from} → {to}").replace('_', " "),
        ToolCallOutcome::Moved { from: None, to } => to.replace('_', " "),
        ToolCallOutcome::Asked(questions) => answered(questions),
        ToolCallOutcome::Plan(_) => "approved".to_owned(),
        ToolCallOutcome::Ran { .. } | ToolCallOutcome::Plain => printed(call),
        ToolCallOutcome::Refused { .. } => "refused".to_owned(),
    }
}

/// What was printed, if it is short; else how much.
fn printed(call: &TranscriptCall) -> String {
    let text = call.text.trim();
    // Tools we know say "done" in their own words; that is no news.
    let chatty = call.outcome == ToolCallOutcome::Plain && tool::known(&call.name).is_some();
    match text.lines().count() {
        _ if is_quiet(text) && call.images > 0 => format::count(call.images as u64, "image"),
        _ if chatty => String::new(),
        _ if is_quiet(text) => "no output".to_owned(),
        1 if text.chars().count() <= BRIEF => text.to_owned(),
        1 if matches!(call.outcome, ToolCallOutcome::Ran { .. }) => String::new(),
        lines => format::count(lines as u64, "line"),
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
                format::count(lines, "line"),
                format::count(files, "file")
            )
        }
        (Some(0), None) => "nothing".to_owned(),
        (Some(lines), None) => format::count(lines, "line") + more,
        (None, Some(0)) => "nothing".to_owned(),
        (None, Some(files)) => format::count(files, "file") + more,
        (None, None) => String::new(),
    }
}

fn fetched(bytes: Option<u64>, status: Option<u64>) -> String {
    let parts = [
        status.map(|status| status.to_string()),
        bytes.map(format::bytes),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn worked(agent: &AgentOutcome, call: &TranscriptCall) -> String {
    let calls = agent.calls.or(call.agent.as_ref().map(|agent| agent.calls));
    let mut parts = Vec::new();
    if agent.background {
        parts.push("in the background".to_owned());
    }
    parts.extend(calls.map(|calls| format::count(calls, "call")));
    parts.extend(
        agent
            .tokens
            .map(|tokens| format!("{} tokens", format::tokens(tokens))),
    );
    parts.join(", ")
}

fn answered(questions: &[UserQuestion]) -> String {
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
fn below(call: &TranscriptCall, width: usize) -> Vec<StyledLine> {
    if let ToolCallOutcome::Refused { said } = &call.outcome {
        let said = said.iter().map(|said| format!("“{said}”"));
        return said
            .flat_map(|said| framed_text(&said, TextStyle::PLAIN, width, FEW))
            .collect();
    }
    if let ToolCallOutcome::Asked(questions) = &call.outcome {
        return asked(questions, width);
    }
    match call.status {
        Status::Error => {
            let room = width.saturating_sub(SUBJECT + 2);
            framed(few(failure(call), TextStyle::PLAIN, FEW, |line| {
                wrap_own(line, room)
            }))
        }
        Status::Running => framed_text(last_lines(&call.text), TextStyle::DIM, width, FEW),
        Status::Missing => Vec::new(),
        Status::Ok => done(call, width),
    }
}

fn done(call: &TranscriptCall, width: usize) -> Vec<StyledLine> {
    let room = width.saturating_sub(SUBJECT + 2);
    match (&call.outcome, &call.change) {
        (ToolCallOutcome::Wrote { created: true, .. }, _) => Vec::new(),
        (_, Some(change)) => framed(diff::lines(change, room, CHANGE)),
        (ToolCallOutcome::Todos(todos), _) => framed(limited(todo_lines(todos, room), CHANGE)),
        (ToolCallOutcome::Plan(plan), _) => framed(limited(markdown::lines(plan, room), CHANGE)),
        (
            ToolCallOutcome::Ran {
                exit: Some(exit), ..
            },
            _,
        ) if *exit != 0 => framed_text(&call.text, TextStyle::PLAIN, width, FEW),
        (
            ToolCallOutcome::Ran {
                background: false, ..
            },
            _,
        ) => one_line(call, width),
        (ToolCallOutcome::Agent(agent), _) if !agent.background => report(call, agent, room),
        _ => Vec::new(),
    }
}

/// A single line that is too long for the line of its call.
fn one_line(call: &TranscriptCall, width: usize) -> Vec<StyledLine> {
    let text = call.text.trim();
    let long = text.lines().count() == 1 && text.chars().count() > BRIEF && !is_quiet(text);
    if long {
        framed_text(text, TextStyle::DIM, width, FEW)
    } else {
        Vec::new()
    }
}

/// An agent's last words; where its conversation is shown they stand there.
fn report(call: &TranscriptCall, agent: &AgentOutcome, room: usize) -> Vec<StyledLine> {
    let open = call
        .agent
        .as_ref()
        .is_some_and(|agent| !agent.items.is_empty());
    match agent.report.as_deref().filter(|_| !open) {
        Some(report) => framed(limited(markdown::lines(report, room), FEW)),
        None => Vec::new(),
    }
}

fn failure(call: &TranscriptCall) -> &str {
    let text = tool_outcome::failure(&call.text);
    // The head of the call says it already.
    match (&call.outcome, text.split_once('\n')) {
        (ToolCallOutcome::Ran { exit: Some(_), .. }, Some((first, rest)))
            if first.starts_with("Exit code") =>
        {
            rest
        }
        (ToolCallOutcome::Ran { exit: Some(_), .. }, None) if text.starts_with("Exit code") => "",
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

fn asked(questions: &[UserQuestion], width: usize) -> Vec<StyledLine> {
    let room = width.saturating_sub(SUBJECT + 2);
    let mut lines = Vec::new();
    for question in questions {
        lines.extend(wrap_text(TextStyle::BOLD, &question.text, room));
        if !question.options.is_empty() {
            let options = question.options.join(" · ");
            lines.extend(wrap_text(TextStyle::DIM, &options, room));
        }
        match &question.answer {
            Some(answer) => lines.extend(wrap_text(TextStyle::ADDED, &format!("✓ {answer}"), room)),
            None => lines.push(StyledLine::of(TextStyle::WARN, "(no answer)")),
        }
    }
    framed(lines)
}

fn todo_lines(todos: &[TodoItem], room: usize) -> Vec<StyledLine> {
    let line = |todo: &TodoItem| {
        let (sign, paint) = match todo.state {
            TodoState::Open => ("☐ ", TextStyle::PLAIN),
            TodoState::Active => ("▶ ", TextStyle::BOLD),
            TodoState::Done => ("☑ ", TextStyle::DIM),
        };
        cut(&StyledLine::of(paint, sign).with(paint, &todo.text), room)
    };
    todos.iter().map(line).collect()
}

/// Input and result, all of them.
fn everything(call: &TranscriptCall, width: usize) -> Vec<StyledLine> {
    let room = width.saturating_sub(SUBJECT + 2);
    let mut lines = Vec::new();
    if let Some(change) = &call.change {
        // All of it: lines that are too long are left to the terminal.
        lines.extend(framed(diff::lines(change, usize::MAX, usize::MAX - 1)));
    } else {
        lines.extend(framed(input(&call.input, room)));
    }
    if let ToolCallOutcome::Asked(questions) = &call.outcome {
        lines.extend(asked(questions, width));
    }
    let paint = if call.status == Status::Error {
        TextStyle::ERROR
    } else {
        TextStyle::PLAIN
    };
    let text = quoted(&call.text, paint, width, &" ".repeat(SUBJECT), usize::MAX);
    if !text.is_empty() {
        let rule =
            StyledLine::of(TextStyle::PLAIN, &" ".repeat(SUBJECT)).with(TextStyle::DIM, "├ result");
        lines.push(rule);
        lines.extend(text);
    }
    lines
}

fn input(input: &Value, room: usize) -> Vec<StyledLine> {
    let Some(fields) = input.as_object() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (key, value) in fields {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let mut key_line = StyledLine::of(TextStyle::DIM, &format!("{key}: "));
        if text.contains('\n') {
            lines.push(key_line);
            lines.extend(wrap_text(TextStyle::PLAIN, text.trim_end(), room));
        } else {
            key_line.push(TextStyle::PLAIN, &text);
            lines.extend(wrap_own(key_line, room));
        }
    }
    lines
}

fn framed(lines: Vec<StyledLine>) -> Vec<StyledLine> {
    let bar = StyledLine::of(TextStyle::PLAIN, &" ".repeat(SUBJECT)).with(TextStyle::DIM, "│ ");
    let lines = lines.into_iter();
    lines.map(|line| behind_own(&bar, line)).collect()
}

fn framed_text(text: &str, paint: TextStyle, width: usize, limit: usize) -> Vec<StyledLine> {
    quoted(text, paint, width, &" ".repeat(SUBJECT), limit)
}
