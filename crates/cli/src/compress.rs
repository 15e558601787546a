//! Texts written shorter by a model, or by any command.
//!
//! First it is said what this would take; then, if the person wants it, the texts are asked
//! for, many at once. Answers are kept until the texts they are for are old, so that what was
//! broken off goes on where it ended. What cannot be had leaves the text as it was.

mod consent;
mod estimate;
mod kept;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod who;

use unspool_ask::{Patience, Question, Stopped, ask};
use unspool_model::edit::Plan;
use unspool_model::edit::compress::{self as rules, Band, Task};
use unspool_model::log::Source;
use unspool_model::session::{Index, Session};
use unspool_model::usage::Usage;
use unspool_show::amount;

use crate::failure::Failure;
use crate::progress::Bar;
use crate::world::World;
use estimate::Estimate;
use kept::Kept;

pub use who::Who;

/// What is asked, and of whom.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which turns, and how short; see [`rules::bands`].
    pub bands: Vec<Band>,
    /// Prompts too.
    pub include_user: bool,
    /// Who is asked.
    pub who: Who,
    /// The person has agreed already.
    pub yes: bool,
    /// Nobody is asked.
    pub dry_run: bool,
    /// How long to wait, how often to ask, how much at once.
    pub patience: Patience,
}

/// What became of the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Texts that were to become shorter.
    pub texts: u64,
    /// Those that did.
    pub shortened: u64,
    /// Those of them whose answers were kept from an earlier run.
    pub kept: u64,
    /// Those that stay as they are because there was no answer.
    pub failed: u64,
    /// Why the first of these failed.
    pub why: Option<String>,
    /// About how many tokens the shortened texts took before.
    pub before: u64,
    /// About how many they take now.
    pub after: u64,
    /// What it took, as far as it is told.
    pub spent: Usage,
    /// Those that nobody was asked for: what stands for them is as long as they should become.
    pub guessed: u64,
}

/// Asks for the texts in the bands and writes what comes into the plan. Call it when other
/// operations have said what goes, and before the plan is settled.
///
/// Fails if the person does not want it or if nobody can be asked; then nothing is planned.
pub fn run(
    world: &World,
    session: &Session,
    source: &dyn Source,
    plan: &mut Plan,
    options: &Options,
) -> Result<Report, Failure> {
    let tasks = rules::tasks(session, source, plan, &options.bands, options.include_user);
    if tasks.is_empty() {
        let why = "nothing to compress: all texts in these ranges are short or already compressed";
        world.ui.note(why);
        return Ok(Report::default());
    }
    let requests: Vec<String> = tasks.iter().map(rules::request).collect();
    let kept = Kept::of(world, &options.who);
    let mut answers: Vec<Option<String>> = requests
        .iter()
        .zip(&tasks)
        .map(|(request, task)| {
            let known = kept.get(request);
            known.filter(|text| rules::refuse(task, text).is_none())
        })
        .collect();
    let mut report = Report {
        texts: tasks.len() as u64,
        kept: answers.iter().flatten().count() as u64,
        ..Report::default()
    };
    let missing: Vec<usize> = (0..tasks.len())
        .filter(|&at| answers[at].is_none())
        .collect();
    let chosen = missing.iter().map(|&at| (&tasks[at], &requests[at]));
    let estimate = Estimate::of(chosen);
    tell(world, &report, &estimate, options);
    if !options.dry_run && !missing.is_empty() {
        consent::ask(world, options, &estimate)?;
        let chosen: Vec<(usize, &Task, &String)> = missing
            .iter()
            .map(|&at| (at, &tasks[at], &requests[at]))
            .collect();
        fetch(world, options, &kept, &chosen, &mut answers, &mut report)?;
    }
    if options.dry_run {
        report.guessed = missing.len() as u64;
        for at in missing {
            answers[at] = Some(rules::guess(&tasks[at]));
        }
    }
    for (task, answer) in tasks.iter().zip(&answers) {
        if let Some(text) = answer {
            rules::apply(plan, task, text);
            report.shortened += 1;
            report.before += task.tokens;
            report.after += unspool_model::tokens::of_text(text);
        }
    }
    conclude(world, &report);
    Ok(report)
}

/// Asks for what is missing, and keeps every answer as it comes.
fn fetch(
    world: &World,
    options: &Options,
    kept: &Kept,
    chosen: &[(usize, &Task, &String)],
    answers: &mut [Option<String>],
    report: &mut Report,
) -> Result<(), Failure> {
    let provider = options.who.provider().map_err(stopped)?;
    let questions: Vec<Question> = chosen
        .iter()
        .map(|(_, task, request)| Question {
            text: (*request).clone(),
            material: task.text.clone(),
            wish: rules::wish(task),
            tokens: task.tokens,
            limit: limit(&task.text),
        })
        .collect();
    let accept = |at: usize, said: &str| {
        let text = options.who.answer(said)?;
        match rules::refuse(chosen[at].1, &text) {
            Some(why) => Err(why.to_owned()),
            None => Ok(text),
        }
    };
    let all: u64 = chosen
        .iter()
        .map(|(_, task, _)| task.text.len() as u64)
        .sum();
    let mut bar = Bar::new(&world.ui, "compressing");
    let mut done = 0;
    let mut each = |at: usize, answer: &Result<String, String>| {
        let (_, task, request) = chosen[at];
        if let Ok(text) = answer {
            kept.put(request, text);
        }
        done += task.text.len() as u64;
        bar.show(done, all);
    };
    let asked = ask(
        &*provider,
        &questions,
        &options.patience,
        &accept,
        &mut each,
    );
    bar.clear();
    let (came, spent) = asked.map_err(stopped)?;
    report.spent = Usage {
        input: spent.input,
        output: spent.output,
        ..Usage::default()
    };
    for ((at, _, _), answer) in chosen.iter().zip(came) {
        match answer {
            Ok(text) => answers[*at] = Some(text),
            Err(why) => {
                report.failed += 1;
                report.why.get_or_insert(why);
            }
        }
    }
    Ok(())
}

/// Asks for a summary of the live conversation before a record, which is the first one of a
/// turn. What the plan removes is not told.
pub fn summary(
    world: &World,
    session: &Session,
    source: &dyn Source,
    plan: &Plan,
    before: Index,
    options: &Options,
) -> Result<String, Failure> {
    let told = rules::digest(session, source, plan, before, DIGEST)
        .ok_or_else(|| Failure::failed("there is nothing to summarize before this turn"))?;
    let request = rules::summary_request(&told);
    let kept = Kept::of(world, &options.who);
    if let Some(text) = kept.get(&request) {
        return Ok(text);
    }
    let estimate = Estimate::of_summary(&request);
    world
        .ui
        .note(&format!("summary: {}", estimate.words(world, &options.who)));
    if options.dry_run {
        return Ok(PENDING.to_owned());
    }
    consent::ask(world, options, &estimate)?;
    let provider = options.who.provider().map_err(stopped)?;
    let question = Question {
        tokens: unspool_model::tokens::of_text(&request),
        text: request.clone(),
        material: told,
        wish: rules::SUMMARY_WISH.to_owned(),
        limit: SUMMARY,
    };
    let accept = |_: usize, said: &str| options.who.answer(said);
    let asked = ask(
        &*provider,
        &[question],
        &options.patience,
        &accept,
        &mut |_, _| (),
    );
    let (mut came, _) = asked.map_err(stopped)?;
    let text = came
        .pop()
        .unwrap_or_else(|| Err("no request was sent".into()));
    let text = text.map_err(|why| {
        Failure::failed(format!("cannot summarize: {why}"))
            .hint("retry, or pass a summary with `--summary-text`")
    })?;
    kept.put(&request, &text);
    Ok(text)
}

/// How many characters of a conversation are told for a summary.
const DIGEST: usize = 400_000;

/// How many tokens a summary may take.
const SUMMARY: u64 = 8_192;

/// What stands for a summary that nobody was asked for.
const PENDING: &str = "[placeholder for the summary]";

/// How many tokens an answer may take: as many as the text itself, in whatever script.
fn limit(text: &str) -> u64 {
    (text.len() as u64 / 2 + 512).clamp(1_024, 16_000)
}

fn stopped(stopped: Stopped) -> Failure {
    Failure::failed(stopped.why).hint(stopped.hint)
}

fn tell(world: &World, report: &Report, estimate: &Estimate, options: &Options) {
    let texts = amount::count(report.texts, "text");
    let from = match report.kept {
        0 => String::new(),
        kept => format!(", {kept} cached"),
    };
    let rest = match report.texts - report.kept {
        0 => "no requests needed".to_owned(),
        _ => estimate.words(world, &options.who),
    };
    world.ui.note(&format!("compress: {texts}{from}; {rest}"));
}

fn conclude(world: &World, report: &Report) {
    if let (Some(why), failed) = (&report.why, report.failed) {
        let texts = report.texts;
        let what = format!("{failed} of {texts} texts were not shortened: {why}");
        world.ui.warn(&what);
    }
}
