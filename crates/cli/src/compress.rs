//! Texts written shorter by a model, or by any command.
//!
//! First it is said what this would take; then, if the person wants it, the texts are asked
//! for, many at once. Answers are kept until the texts they are for are old, so that what was
//! broken off goes on where it ended. What cannot be had leaves the text as it was.

mod answer_cache;
mod consent;
mod cost_estimate;
mod provider;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use unspool_ask::{AskLimits, AskStop, ModelQuestion, ask};
use unspool_model::edit::EditPlan;
use unspool_model::edit::compress::{self as rules, CompressRange, CompressTask};
use unspool_model::log::TranscriptSource;
use unspool_model::session::{Index, Session};
use unspool_model::usage::Usage;
use unspool_show::format;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;
use answer_cache::AnswerCache;
use cost_estimate::CompressEstimate;

pub use provider::CompressProvider;

/// What is asked, and of whom.
#[derive(Clone, Debug)]
pub struct CompressOptions {
    /// Which turns, and how short; see [`permission_rules::bands`].
    pub bands: Vec<CompressRange>,
    /// Prompts too.
    pub include_user: bool,
    /// Who is asked.
    pub who: CompressProvider,
    /// The person has agreed already.
    pub yes: bool,
    /// Nobody is asked.
    pub dry_run: bool,
    /// How long to wait, how often to ask, how much at once.
    pub patience: AskLimits,
}

/// What became of the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressReport {
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
    world: &CommandContext,
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    options: &CompressOptions,
) -> Result<CompressReport, CommandFailure> {
    let tasks = rules::tasks(session, source, plan, &options.bands, options.include_user);
    if tasks.is_empty() {
        let why = "nothing to compress: all texts in these ranges are short or already compressed";
        world.ui.note(why);
        return Ok(CompressReport::default());
    }
    let requests: Vec<String> = tasks.iter().map(rules::request).collect();
    let kept = AnswerCache::of(world, &options.who);
    let mut answers: Vec<Option<String>> = requests
        .iter()
        .zip(&tasks)
        .map(|(request, task)| {
            let known = kept.get(request);
            known.filter(|text| rules::refuse(task, text).is_none())
        })
        .collect();
    let mut report = CompressReport {
        texts: tasks.len() as u64,
        kept: answers.iter().flatten().count() as u64,
        ..CompressReport::default()
    };
    let missing: Vec<usize> = (0..tasks.len())
        .filter(|&at| answers[at].is_none())
        .collect();
    let chosen = missing.iter().map(|&at| (&tasks[at], &requests[at]));
    let estimate = CompressEstimate::of(chosen);
    tell(world, &report, &estimate, options);
    if !options.dry_run && !missing.is_empty() {
        consent::ask(world, options, &estimate)?;
        let chosen: Vec<(usize, &CompressTask, &String)> = missing
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
            report.after += unspool_model::token_estimate::of_text(text);
        }
    }
    conclude(world, &report);
    Ok(report)
}

/// Asks for what is missing, and keeps every answer as it comes.
fn fetch(
    world: &CommandContext,
    options: &CompressOptions,
    kept: &AnswerCache,
    chosen: &[(usize, &CompressTask, &String)],
    answers: &mut [Option<String>],
    report: &mut CompressReport,
) -> Result<(), CommandFailure> {
    let provider = options.who.provider().map_err(stopped)?;
    let questions: Vec<ModelQuestion> = chosen
        .iter()
        .map(|(_, task, request)| ModelQuestion {
            text: (*request).clone(),
            material: task.text.clone(),
            wish: rules::instruction(task),
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
    let mut bar = ProgressBar::new(&world.ui, "compressing");
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
    world: &CommandContext,
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &EditPlan,
    before: Index,
    options: &CompressOptions,
) -> Result<String, CommandFailure> {
    let told = rules::conversation_excerpt(session, source, plan, before, DIGEST)
        .ok_or_else(|| CommandFailure::failed("there is nothing to summarize before this turn"))?;
    let request = rules::summary_request(&told);
    let kept = AnswerCache::of(world, &options.who);
    if let Some(text) = kept.get(&request) {
        return Ok(text);
    }
    let estimate = CompressEstimate::of_summary(&request);
    world
        .ui
        .note(&format!("summary: {}", estimate.words(world, &options.who)));
    if options.dry_run {
        return Ok(PENDING.to_owned());
    }
    consent::ask(world, options, &estimate)?;
    let provider = options.who.provider().map_err(stopped)?;
    let question = ModelQuestion {
        tokens: unspool_model::token_estimate::of_text(&request),
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
        CommandFailure::failed(format!("cannot summarize: {why}"))
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

fn stopped(stopped: AskStop) -> CommandFailure {
    CommandFailure::failed(stopped.why).hint(stopped.hint)
}

fn tell(
    world: &CommandContext,
    report: &CompressReport,
    estimate: &CompressEstimate,
    options: &CompressOptions,
) {
    let texts = format::count(report.texts, "text");
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

fn conclude(world: &CommandContext, report: &CompressReport) {
    if let (Some(why), failed) = (&report.why, report.failed) {
        let texts = report.texts;
        let what = format!("{failed} of {texts} texts were not shortened: {why}");
        world.ui.warn(&what);
    }
}
